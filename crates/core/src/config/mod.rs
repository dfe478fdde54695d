//! Configuration, in three steps: [`table`] says what there is, [`RawConfig`] holds what was said, and the views
//! ([`ClientView`], [`ProducerView`], [`ConsumerView`]) say what it means, as durations, sizes and enums that are
//! checked against each other.
//!
//! A new property is a row in `table/`, and a field in `view.rs` if something looks at it.

mod error;
mod markdown;
mod patterns;
mod properties_file;
mod raw;
mod rules;
mod servers;
mod suggest;
pub mod table;
mod view;

pub use error::{ConfigError, ConfigErrorKind};
pub use markdown::markdown;
pub use patterns::{BadPattern, TopicPatterns};
pub use raw::{Entry, Profile, RawConfig};
pub use servers::ServerAddress;
pub use suggest::closest;
pub use view::{
    Acks, AddressFamily, ClientView, Compression, CompressionCodec, ConsumerView, IsolationLevel,
    KafkaVersion, Linger, MetadataRecovery, OffsetReset, PartitionerName, ProducerView, TopicRecreatePolicy,
    TopicView,
};
