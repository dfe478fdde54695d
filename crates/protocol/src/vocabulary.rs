//! The vocabulary types: small values that machines and applications share.
//!
//! On the wire a missing value is a sentinel, `-1`. Above the codec it is `None`: [`NodeId::from_wire`] and its
//! siblings decode the sentinel, and `to_wire` encodes it. No other code compares with `-1`.
//!
//! | type | what it names | sentinel |
//! |---|---|---|
//! | [`TopicPartition`] | a partition of a topic | |
//! | [`NodeId`] | a broker or a controller | -1 |
//! | [`LeaderEpoch`] | a term of a partition's leader (KIP-101) | -1 |
//! | [`RecordOffset`] | a position in a partition's log | -1 |
//! | [`ProducerEpoch`] | an incarnation of a producer ID (KIP-98) | -1 |
//! | [`Generation`] | a generation of a classic consumer group | -1 |

use std::{fmt, sync::Arc};

/// A partition of a topic. Cheap to clone: the name is shared.
///
/// Partitions order by topic name and then by number, which is the order in which requests list them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number, counted from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// The partition `partition` of the topic `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl From<(Arc<str>, i32)> for TopicPartition {
    fn from((topic, partition): (Arc<str>, i32)) -> Self {
        Self { topic, partition }
    }
}

impl From<(&str, i32)> for TopicPartition {
    fn from((topic, partition): (&str, i32)) -> Self {
        Self { topic: Arc::from(topic), partition }
    }
}

impl From<(&String, i32)> for TopicPartition {
    fn from((topic, partition): (&String, i32)) -> Self {
        Self::from((topic.as_str(), partition))
    }
}

/// Shows `topic [partition]`, as log lines and errors do.
impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Defines a number that is at least 0 and whose absence is -1 on the wire.
macro_rules! wire_number {
    ($(#[$docs:meta])* $name:ident($raw:ty)) => {
        $(#[$docs])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($raw);

        impl $name {
            /// The value, or `None` if `raw` is negative.
            pub const fn from_wire(raw: $raw) -> Option<Self> {
                if raw < 0 { None } else { Some(Self(raw)) }
            }

            /// The number that stands for `value` on the wire: -1 for `None`.
            pub const fn to_wire(value: Option<Self>) -> $raw {
                match value {
                    Some(Self(raw)) => raw,
                    None => -1,
                }
            }

            /// The number.
            pub const fn get(self) -> $raw {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

wire_number! {
    /// The ID of a node: a broker or a controller.
    NodeId(i32)
}
wire_number! {
    /// The epoch of a partition's leader: it grows with every election (KIP-101, KIP-320).
    LeaderEpoch(i32)
}
wire_number! {
    /// The offset of a record in its partition's log.
    RecordOffset(i64)
}
wire_number! {
    /// The epoch of a producer ID: it grows when the producer is fenced or starts over (KIP-98, KIP-360).
    ProducerEpoch(i16)
}
wire_number! {
    /// The generation of a classic consumer group: it grows with every rebalance.
    Generation(i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_value_is_minus_one_on_the_wire_only() {
        assert_eq!(NodeId::from_wire(-1), None);
        assert_eq!(NodeId::from_wire(i32::MIN), None);
        assert_eq!(NodeId::from_wire(0).map(NodeId::get), Some(0));
        assert_eq!(LeaderEpoch::to_wire(None), -1);
        assert_eq!(LeaderEpoch::to_wire(LeaderEpoch::from_wire(7)), 7);
        assert_eq!(RecordOffset::to_wire(RecordOffset::from_wire(i64::MAX)), i64::MAX);
    }

    #[test]
    fn partitions_order_by_topic_then_number() {
        let mut partitions = [("b", 0), ("a", 10), ("a", 9)].map(TopicPartition::from);
        partitions.sort();
        assert_eq!(partitions.map(|partition| partition.to_string()), ["a [9]", "a [10]", "b [0]"]);
    }
}
