//! A random partition, preferably one with a leader.

/// Returns a random partition. If it has no leader, a second one is drawn, but no third: a cluster with few leaders
/// left costs little time.
#[inline]
pub fn partition(
    partition_count: i32,
    is_available: &dyn Fn(i32) -> bool,
    mut random: impl FnMut() -> u64,
) -> i32 {
    let first = below(partition_count, random());
    if is_available(first) { first } else { below(partition_count, random()) }
}

/// Returns a number below the count from random bits.
#[inline]
pub(super) fn below(count: i32, random: u64) -> i32 {
    ((u128::from(random) * count.max(0) as u128) >> 64) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_a_leader_is_avoided_once() {
        let mut bits = [0u64, u64::MAX].into_iter();
        assert_eq!(partition(4, &|partition| partition != 0, || bits.next().unwrap()), 3);
        let mut bits = [0u64, 0].into_iter();
        assert_eq!(partition(4, &|_| false, || bits.next().unwrap()), 0);
    }

    #[test]
    fn any_bits_give_a_number_below_the_count() {
        assert_eq!((below(1, u64::MAX), below(i32::MAX, u64::MAX), below(0, 5)), (0, i32::MAX - 1, 0));
    }
}
