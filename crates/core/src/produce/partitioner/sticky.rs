//! The partition that a topic's keyless records go to for now.
//!
//! It changes when its batch is sealed or when `sticky.partitioning.linger.ms` is over, whichever comes first: spread
//! evenly in the long run, and together in one batch in the short.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use ottla_protocol::time::Instant;

use super::random;

/// The sticky partition of one topic, shared by the threads that produce to it.
///
/// Reading it is two loads. When two threads change it at the same time both choices are fine, and one of them stays.
#[derive(Debug)]
pub struct StickyPartition {
    partition: AtomicI32,
    /// When it changes at the latest, in nanoseconds.
    until: AtomicU64,
}

const NONE: i32 = -1;

impl StickyPartition {
    /// Not chosen yet.
    pub const fn new() -> StickyPartition {
        StickyPartition { partition: AtomicI32::new(NONE), until: AtomicU64::new(0) }
    }

    /// The partition to take now. With a `linger` of zero it is another one for every record.
    #[inline]
    pub fn partition(
        &self,
        now: Instant,
        linger: Duration,
        partition_count: i32,
        is_available: &dyn Fn(i32) -> bool,
        random: impl FnMut() -> u64,
    ) -> i32 {
        let current = self.partition.load(Ordering::Relaxed);
        if (0..partition_count).contains(&current) && now.as_nanos() < self.until.load(Ordering::Relaxed) {
            return current;
        }
        self.change(now, linger, partition_count, is_available, random)
    }

    /// The partition's batch was sealed: the next record goes to another one.
    pub fn seal(&self, partition: i32) {
        let _ = self.partition.compare_exchange(partition, NONE, Ordering::Relaxed, Ordering::Relaxed);
    }

    #[cold]
    fn change(
        &self,
        now: Instant,
        linger: Duration,
        partition_count: i32,
        is_available: &dyn Fn(i32) -> bool,
        random: impl FnMut() -> u64,
    ) -> i32 {
        let next = random::partition(partition_count, is_available, random);
        let linger = u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
        self.until.store(now.as_nanos().saturating_add(linger), Ordering::Relaxed);
        self.partition.store(next, Ordering::Relaxed);
        next
    }
}

impl Default for StickyPartition {
    fn default() -> StickyPartition {
        StickyPartition::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINGER: Duration = Duration::from_millis(10);

    /// Goes round, so that tests can tell the choices apart.
    fn round_robin(count: u64) -> impl FnMut() -> u64 {
        let mut next = 0;
        move || {
            next = (next + 1) % count;
            (u64::MAX / count) * next + count
        }
    }

    #[test]
    fn records_stay_together_until_the_linger_is_over() {
        let (sticky, mut random) = (StickyPartition::new(), round_robin(4));
        let mut at = |millis| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            sticky.partition(now, LINGER, 4, &|_| true, &mut random)
        };
        assert_eq!([at(0), at(1), at(9), at(10), at(19), at(25)], [1, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_sealed_batch_ends_it_but_only_of_the_sticky_partition() {
        let (sticky, mut random) = (StickyPartition::new(), round_robin(4));
        let mut pick = || sticky.partition(Instant::ZERO, LINGER, 4, &|_| true, &mut random);
        assert_eq!(pick(), 1);
        sticky.seal(3);
        assert_eq!(pick(), 1);
        sticky.seal(1);
        assert_eq!(pick(), 2);
    }

    #[test]
    fn with_no_linger_every_record_gets_a_partition_of_its_own() {
        let (sticky, mut random) = (StickyPartition::new(), round_robin(4));
        let mut pick = || sticky.partition(Instant::ZERO, Duration::ZERO, 4, &|_| true, &mut random);
        assert_eq!([pick(), pick(), pick(), pick()], [1, 2, 3, 0]);
    }

    #[test]
    fn a_topic_that_was_made_anew_with_fewer_partitions_ends_it() {
        let (sticky, mut random) = (StickyPartition::new(), round_robin(4));
        let mut pick = |count| sticky.partition(Instant::ZERO, LINGER, count, &|_| true, &mut random);
        assert_eq!((pick(4), pick(4), pick(1)), (1, 1, 0));
    }
}
