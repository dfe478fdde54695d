//! The waiting partitions, ordered by the time at which they are due.

use std::collections::VecDeque;

use crate::machine::Instant;

/// Slots ordered by time, then by number; each pair appears once.
///
/// Entries arrive almost in order and leave from the front, a thousand times per request if a broker leads a thousand
/// partitions: a sorted queue costs a fraction of a tree then. An entry out of order is inserted at its position.
#[derive(Debug, Default)]
pub struct DueQueue {
    sorted: VecDeque<(Instant, usize)>,
}

impl DueQueue {
    /// Adds a slot.
    pub fn insert(&mut self, due: Instant, slot: usize) {
        let entry = (due, slot);
        if self.sorted.back().is_none_or(|last| *last < entry) {
            self.sorted.push_back(entry);
        } else if let Err(place) = self.sorted.binary_search(&entry) {
            self.sorted.insert(place, entry);
        }
    }

    /// Removes a slot.
    pub fn remove(&mut self, due: Instant, slot: usize) {
        let entry = (due, slot);
        if self.sorted.front() == Some(&entry) {
            self.sorted.pop_front();
        } else if let Ok(place) = self.sorted.binary_search(&entry) {
            self.sorted.remove(place);
        }
    }

    /// Returns the entry that is due first.
    pub fn first(&self) -> Option<(Instant, usize)> {
        self.sorted.front().copied()
    }

    /// Returns the entry that is due last.
    pub fn last(&self) -> Option<(Instant, usize)> {
        self.sorted.back().copied()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use ottla_sorted::SortedSet;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_agrees_with_a_sorted_set() {
        let mut rng = Rng::from_seed(1);
        let (mut queue, mut set) = (DueQueue::default(), SortedSet::new());
        for _ in 0..20_000 {
            let entry = (Instant::from_nanos(rng.below(20)), rng.below(4) as usize);
            if rng.below(2) == 0 {
                queue.insert(entry.0, entry.1);
                set.insert(entry);
            } else {
                queue.remove(entry.0, entry.1);
                set.remove(&entry);
            }
            assert!(queue.sorted.iter().eq(set.iter()));
            assert_eq!((queue.first(), queue.last()), (set.first().copied(), set.last().copied()));
            assert_eq!((queue.len(), queue.is_empty()), (set.len(), set.is_empty()));
        }
    }
}
