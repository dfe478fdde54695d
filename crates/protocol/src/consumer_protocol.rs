//! What the members of a classic consumer group tell each other through the broker: subscriptions and assignments.
//!
//! To the broker both are bytes. They begin with their version, and a reader takes a version later than it knows for
//! the latest that it knows: later versions only append.

use crate::primitive::{DecodeError, EncodeError, Reader, Writer};

pub use crate::generated::{
    consumer_protocol_assignment::{ConsumerProtocolAssignment, data as assignment},
    consumer_protocol_subscription::{ConsumerProtocolSubscription, data as subscription},
};

/// The latest version of both.
pub const LATEST_VERSION: i16 = 3;

macro_rules! versioned {
    ($name:ident) => {
        impl $name {
            /// The bytes, with the version in front.
            pub fn to_bytes(&self, version: i16) -> Result<Vec<u8>, EncodeError> {
                let mut out = Vec::new();
                Writer::new(&mut out, false).i16(version);
                self.encode(version, &mut out)?;
                Ok(out)
            }

            /// Reads the bytes, with the version in front, and gives the version too.
            pub fn from_bytes(bytes: &[u8]) -> Result<(i16, Self), DecodeError> {
                let mut reader = Reader::new(bytes);
                let version = reader.at(concat!(stringify!($name), ".version")).i16()?;
                let body = Self::decode(&mut reader, version.min(LATEST_VERSION))?;
                Ok((version, body))
            }
        }
    };
}
versioned!(ConsumerProtocolSubscription);
versioned!(ConsumerProtocolAssignment);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_round_trips_and_loses_only_what_its_version_lacks() {
        let subscription = ConsumerProtocolSubscription {
            topics: vec!["a".to_owned()],
            user_data: None,
            owned_partitions: vec![subscription::OwnedPartition {
                topic: "a".to_owned(),
                partitions: vec![1, 2],
            }],
            generation_id: 5,
            rack_id: Some("r".to_owned()),
        };
        let bytes = subscription.to_bytes(3).unwrap();
        assert_eq!(ConsumerProtocolSubscription::from_bytes(&bytes), Ok((3, subscription.clone())));
        let bytes = subscription.to_bytes(1).unwrap();
        let older = ConsumerProtocolSubscription { generation_id: -1, rack_id: None, ..subscription };
        assert_eq!(ConsumerProtocolSubscription::from_bytes(&bytes), Ok((1, older)));
    }

    #[test]
    fn a_later_version_is_read_as_the_latest_known() {
        let assignment = ConsumerProtocolAssignment { user_data: Some(vec![1]), ..Default::default() };
        let mut bytes = assignment.to_bytes(3).unwrap();
        bytes[1] = 9;
        bytes.push(0xff);
        assert_eq!(ConsumerProtocolAssignment::from_bytes(&bytes), Ok((9, assignment)));
    }
}
