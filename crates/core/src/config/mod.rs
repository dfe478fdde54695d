//! Configuration, in three steps: [`table`] defines the properties, [`RawConfig`] holds the values that the application
//! set, each checked on its own, and [`EffectiveConfig`] has the value of every property after the rules between them.
//!
//! Each machine reads its settings from the effective configuration: `ConnectionSettings`, `ClusterSettings`,
//! `ProducerSettings`, `TopicSettings` and `ConsumerSettings` stand beside their machines in this crate, `SocketSettings`
//! in `ottla-net`. This module knows none of them.
//!
//! A new property is a row in `table/` and, if code uses it, a field of the settings of the machine that does. A new
//! machine has its settings beside itself, with a constructor that takes `&EffectiveConfig`. Rules between properties are
//! functions in `rules/`. Only the settings of SASL stand here ([`sasl`]), because rules check them.

mod check;
mod choices;
mod effective;
mod error;
pub mod java;
mod markdown;
mod patterns;
mod properties_file;
mod proxy;
mod raw;
mod rules;
pub mod sasl;
mod servers;
mod shown;
mod spelling;
mod suggest;
pub mod table;
mod version;

pub use choices::{AddressFamily, DamagedBatchPolicy, IsolationLevel, OffsetReset, TopicRecreatePolicy};
pub use effective::EffectiveConfig;
pub use error::{ConfigError, ConfigErrorKind};
pub use markdown::markdown;
pub use patterns::{BadPattern, TopicPatterns};
pub use proxy::{ProxyProtocol, ProxyUrl};
pub use raw::{Entry, Profile, RawConfig};
pub use servers::ServerAddress;
pub use shown::is_secret;
pub use suggest::closest;
pub use version::KafkaVersion;
