//! Chooses the partition of a record for which the application does not set one.
//!
//! There are three families: [`round_robin`], a hash of the key, one file each ([`consistent`], [`murmur2`], [`fnv1a`]), so that equal
//! keys go to the same partition, and [`random`]. The names with `_random` hash the key if there is one. Records
//! without a key stay together until their batch is sent ([`Pick::Sticky`]), which results in larger batches.
//!
//! # Pitfalls
//!
//! - Only `consistent_random` treats an empty key as no key; the other partitioners hash it
//!   (`only_consistent_random_takes_an_empty_key_for_none`).

use std::{fmt, mem};

pub mod consistent;
pub mod fnv1a;
pub mod murmur2;
pub mod random;
pub mod round_robin;

use round_robin::Turns;

/// The rule by which a partition is chosen.
#[derive(Default)]
pub enum Partitioner {
    /// A random partition, whatever the key.
    Random,
    /// CRC32 of the key; records without a key all go to one partition.
    Consistent,
    /// CRC32 of the key; records with an empty or no key go to a random partition.
    #[default]
    ConsistentRandom,
    /// The Java client's hash of the key; records without a key all go to one partition.
    Murmur2,
    /// The Java client's hash of the key; records without a key go to a random partition.
    Murmur2Random,
    /// FNV-1a of the key; records without a key all go to one partition.
    Fnv1a,
    /// FNV-1a of the key; records without a key go to a random partition.
    Fnv1aRandom,
    /// All to the sticky partition, whatever the key.
    Sticky,
    /// The partitions in turn, whatever the key.
    RoundRobin(Turns),
    /// The application's own partitioner.
    Custom(CustomPartitioner),
}

/// The application's own partitioner: returns a partition below the count. Any other number fails the record.
pub type CustomPartitioner = Box<dyn Fn(&PartitionChoice<'_>) -> i32 + Send + Sync>;

/// The input of an application's partitioner.
pub struct PartitionChoice<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The record's key.
    pub key: Option<&'a [u8]>,
    /// The number of partitions.
    pub partition_count: i32,
    /// The application's number for the record.
    pub opaque: u64,
    /// Returns whether a partition has a leader that takes records now.
    pub is_available: &'a dyn Fn(i32) -> bool,
}

/// The result of a partitioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// This partition.
    Partition(i32),
    /// The current partition for records without a key, which the topic stores.
    Sticky,
    /// The application's partitioner named a partition that doesn't exist.
    Invalid(i32),
}

impl Partitioner {
    /// Returns the partitioner with this name in `partitioner`, or else the default.
    pub fn named(name: &str) -> Self {
        match name {
            "random" => Self::Random,
            "consistent" => Self::Consistent,
            "murmur2" => Self::Murmur2,
            "murmur2_random" => Self::Murmur2Random,
            "fnv1a" => Self::Fnv1a,
            "fnv1a_random" => Self::Fnv1aRandom,
            "sticky" => Self::Sticky,
            "round_robin" => Self::RoundRobin(Turns::default()),
            _ => Self::ConsistentRandom,
        }
    }

    /// Returns whether both choose the same partitions. An application's partitioner is equal to no other.
    pub fn is_same(&self, other: &Partitioner) -> bool {
        !matches!(self, Partitioner::Custom(_)) && mem::discriminant(self) == mem::discriminant(other)
    }

    /// Chooses a partition. `partition_count` is at least 1; `random` returns random bits and is called only if needed.
    #[inline]
    pub fn pick(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        partition_count: i32,
        opaque: u64,
        is_available: &dyn Fn(i32) -> bool,
        random: impl FnMut() -> u64,
    ) -> Pick {
        debug_assert!(partition_count > 0);
        let hashed = match (self, key) {
            (Partitioner::ConsistentRandom, None | Some([])) => return Pick::Sticky,
            (Partitioner::Murmur2Random | Partitioner::Fnv1aRandom | Partitioner::Random, None)
            | (Partitioner::Sticky, _) => return Pick::Sticky,
            (Partitioner::Random, Some(_)) => random::partition(partition_count, is_available, random),
            (Partitioner::Consistent | Partitioner::ConsistentRandom, key) => {
                consistent::partition(key.unwrap_or_default(), partition_count)
            }
            (Partitioner::Murmur2 | Partitioner::Murmur2Random, key) => {
                murmur2::partition(key.unwrap_or_default(), partition_count)
            }
            (Partitioner::Fnv1a | Partitioner::Fnv1aRandom, key) => {
                fnv1a::partition(key.unwrap_or_default(), partition_count)
            }
            (Partitioner::RoundRobin(turns), _) => turns.next(topic, partition_count, is_available),
            (Partitioner::Custom(choose), key) => {
                let partition =
                    choose(&PartitionChoice { topic, key, partition_count, opaque, is_available });
                if !(0..partition_count).contains(&partition) {
                    return Pick::Invalid(partition);
                }
                partition
            }
        };
        Pick::Partition(hashed)
    }
}

impl fmt::Debug for Partitioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Partitioner::Random => "Random",
            Partitioner::Consistent => "Consistent",
            Partitioner::ConsistentRandom => "ConsistentRandom",
            Partitioner::Murmur2 => "Murmur2",
            Partitioner::Murmur2Random => "Murmur2Random",
            Partitioner::Fnv1a => "Fnv1a",
            Partitioner::Fnv1aRandom => "Fnv1aRandom",
            Partitioner::Sticky => "Sticky",
            Partitioner::RoundRobin(_) => "RoundRobin",
            Partitioner::Custom(_) => "Custom",
        })
    }
}

impl fmt::Debug for PartitionChoice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionChoice")
            .field("topic", &self.topic)
            .field("key", &self.key)
            .field("partition_count", &self.partition_count)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(partitioner: &Partitioner, key: Option<&[u8]>) -> Pick {
        partitioner.pick("t", key, 12, 0, &|_| true, || 7 << 60)
    }

    #[test]
    fn records_without_a_key_follow_the_partitioner() {
        use Partitioner::*;
        for partitioner in [Random, ConsistentRandom, Murmur2Random, Fnv1aRandom, Sticky] {
            assert_eq!(pick(&partitioner, None), Pick::Sticky, "{partitioner:?}");
        }
        for partitioner in [Consistent, Murmur2, Fnv1a] {
            assert_eq!(pick(&partitioner, None), pick(&partitioner, Some(b"")), "{partitioner:?}");
            assert!(matches!(pick(&partitioner, None), Pick::Partition(0..12)));
        }
    }

    #[test]
    fn only_consistent_random_takes_an_empty_key_for_none() {
        assert_eq!(pick(&Partitioner::ConsistentRandom, Some(b"")), Pick::Sticky);
        assert_eq!(
            pick(&Partitioner::Murmur2Random, Some(b"")),
            Pick::Partition(murmur2::partition(b"", 12))
        );
        assert_eq!(pick(&Partitioner::Fnv1aRandom, Some(b"")), Pick::Partition(fnv1a::partition(b"", 12)));
    }

    #[test]
    fn with_a_key_the_random_variants_choose_like_the_plain_ones() {
        use Partitioner::*;
        for (plain, random) in
            [(Consistent, ConsistentRandom), (Murmur2, Murmur2Random), (Fnv1a, Fnv1aRandom)]
        {
            for key in 0..1000u32 {
                let key = key.to_be_bytes();
                assert_eq!(pick(&plain, Some(&key)), pick(&random, Some(&key)));
            }
        }
    }

    #[test]
    fn custom_partitioner_result_is_range_checked() {
        let last = Partitioner::Custom(Box::new(|choice| choice.partition_count - 1));
        assert_eq!(pick(&last, Some(b"k")), Pick::Partition(11));
        let beyond = Partitioner::Custom(Box::new(|choice| choice.partition_count));
        assert_eq!(pick(&beyond, None), Pick::Invalid(12));
        let none = Partitioner::Custom(Box::new(|_| -1));
        assert_eq!(pick(&none, None), Pick::Invalid(-1));
    }

    #[test]
    fn every_partitioner_stays_below_the_count_and_reaches_all_partitions() {
        use Partitioner::*;
        for partitioner in [Random, Consistent, Murmur2, Fnv1a] {
            let mut seed = 0u64;
            let mut hits = [0; 7];
            for key in 0..7000u32 {
                let random = || {
                    seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    (seed ^ (seed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
                };
                match partitioner.pick("t", Some(format!("key-{key}").as_bytes()), 7, 0, &|_| true, random) {
                    Pick::Partition(partition) => hits[partition as usize] += 1,
                    other => panic!("{partitioner:?} returned {other:?}"),
                }
            }
            assert!(hits.iter().all(|hits| (800..1200).contains(hits)), "{partitioner:?}: {hits:?}");
        }
    }
}
