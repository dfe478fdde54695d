//! The partitions of a member, and since when it has held each of them.

use std::{mem, sync::Arc};

use ottla_protocol::vocabulary::{Generation, TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};

use crate::offsets::committed::HeldSince;

/// The partitions of a member.
#[derive(Debug, Default)]
pub(super) struct Owned {
    partitions: SortedSet<TopicPartition>,
    /// The partitions and the generation since when each is held, as of the last query.
    since: HeldSince,
    /// True if the partitions changed since.
    is_changed: bool,
}

impl Owned {
    /// Returns the partitions.
    pub(super) const fn partitions(&self) -> &SortedSet<TopicPartition> {
        &self.partitions
    }

    /// Changes the partitions.
    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut SortedSet<TopicPartition>) -> T) -> T {
        self.is_changed = true;
        change(&mut self.partitions)
    }

    /// Takes all partitions.
    pub(super) fn take(&mut self) -> SortedSet<TopicPartition> {
        self.change(mem::take)
    }

    /// Returns the generation since when each partition is held; new ones are held since `generation`.
    pub(super) fn held_since(&mut self, generation: Generation) -> HeldSince {
        if mem::take(&mut self.is_changed) {
            let since = |key: &TopicPartition| self.since.get(key).copied().unwrap_or(generation);
            let held: SortedMap<_, _> = self.partitions.iter().map(|key| (key.clone(), since(key))).collect();
            self.since = Arc::new(held);
        }
        Arc::clone(&self.since)
    }

    /// Forgets since when the partitions are held: another member may have had them.
    pub(super) fn forget_held(&mut self) {
        self.since = Arc::default();
        self.is_changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_is_held_since_it_was_taken_over_last() {
        let generation = |number| Generation::from_wire(number).expect("it is valid");
        let key = |number| TopicPartition::new("t", number);
        let held = |owned: &mut Owned, now: i32| -> Vec<(i32, i32)> {
            let held = owned.held_since(generation(now));
            held.iter().map(|(key, since)| (key.partition, since.get())).collect()
        };
        let mut owned = Owned::default();
        owned.change(|owned| owned.extend([key(0), key(1)]));
        assert_eq!(held(&mut owned, 3), [(0, 3), (1, 3)]);
        owned.change(|owned| owned.remove(&key(1)));
        assert_eq!(held(&mut owned, 4), [(0, 3)]);
        owned.change(|owned| owned.insert(key(1)));
        assert_eq!(held(&mut owned, 5), [(0, 3), (1, 5)]);
        owned.forget_held();
        assert_eq!(held(&mut owned, 6), [(0, 6), (1, 6)], "the membership ended in between");
        owned.take();
        assert_eq!(held(&mut owned, 7), []);
    }
}
