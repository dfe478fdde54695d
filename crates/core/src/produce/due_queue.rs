//! The partitions that wait, by when they are due.

use std::collections::VecDeque;

use crate::machine::Instant;

/// Slots in the order of their times, and of their numbers where the times are equal; each pair is in it once.
///
/// They come nearly in order and leave from the front, a thousand times per request where a broker leads a thousand
/// partitions: a queue that is kept sorted costs a fraction of a tree then. What comes out of order is inserted at its
/// place.
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

    /// Takes a slot out.
    pub fn remove(&mut self, due: Instant, slot: usize) {
        let entry = (due, slot);
        if self.sorted.front() == Some(&entry) {
            self.sorted.pop_front();
        } else if let Ok(place) = self.sorted.binary_search(&entry) {
            self.sorted.remove(place);
        }
    }

    /// The one that is due first.
    pub fn first(&self) -> Option<(Instant, usize)> {
        self.sorted.front().copied()
    }

    /// The one that is due last.
    pub fn last(&self) -> Option<(Instant, usize)> {
        self.sorted.back().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_holds_what_a_sorted_set_holds() {
        let mut rng = Rng::from_seed(1);
        let (mut queue, mut set) = (DueQueue::default(), BTreeSet::new());
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
