//! The protocol among the members of a classic consumer group: subscriptions and assignments.
//!
//! The broker treats both as opaque bytes. They begin with their version. A reader decodes a later version than it
//! knows as the latest that it knows, because later versions only append fields.

use crate::primitive::{DecodeError, EncodeError, Reader, Writer};

pub use crate::generated::{
    consumer_protocol_assignment::{ConsumerProtocolAssignment, data as assignment},
    consumer_protocol_subscription::{ConsumerProtocolSubscription, data as subscription},
};

/// The latest version of both messages.
pub const LATEST_VERSION: i16 = 3;

macro_rules! versioned {
    ($name:ident) => {
        impl $name {
            /// Encodes the message, with its version in front.
            pub fn to_bytes(&self, version: i16) -> Result<Vec<u8>, EncodeError> {
                let mut out = Vec::new();
                Writer::new(&mut out, false).i16(version);
                self.encode(version, &mut out)?;
                Ok(out)
            }

            /// Decodes the message with the version in front, and returns the version too.
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
    fn subscription_loses_only_fields_that_its_version_lacks() {
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
    fn later_version_is_decoded_as_the_latest_known() {
        let assignment = ConsumerProtocolAssignment { user_data: Some(vec![1]), ..Default::default() };
        let mut bytes = assignment.to_bytes(3).unwrap();
        bytes[1] = 9;
        bytes.push(0xff);
        assert_eq!(ConsumerProtocolAssignment::from_bytes(&bytes), Ok((9, assignment)));
    }
}
