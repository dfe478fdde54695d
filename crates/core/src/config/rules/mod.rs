//! The rules between properties, one function each.
//!
//! Two properties that contradict each other are an error only if the application set both; if one of them is a
//! default, the default is adapted. In both cases the message names both, in the application's spelling.
//!
//! | file | rules |
//! |---|---|
//! | [`client`] | of every kind of client |
//! | [`producer`] | of producers |
//! | [`linger`] | of `linger.ms` and `broker.linger.ms`, for producers and their topics |
//! | [`topic`] | of topics with properties of their own |
//! | [`consumer`] | of consumers |
//! | [`security`] | of TLS and SASL |
//! | [`java`] | of properties that only the Java clients have |

pub(super) mod client;
pub(super) mod consumer;
mod java;
mod linger;
pub(super) mod producer;
mod security;
pub(super) mod topic;

use super::{
    effective::EffectiveConfig,
    error::{ConfigError, ConfigErrorKind},
};

type Outcome<T = ()> = Result<T, ConfigError>;

/// Turns the first warning into an error if `config.strict` is set.
pub(super) fn strict(config: &EffectiveConfig<'_>) -> Outcome {
    match config.warnings().first() {
        Some(warning) if config.boolean("config.strict") => {
            let property = warning.split('`').nth(1).unwrap_or("config.strict").to_string();
            Err(ConfigError::new(property, ConfigErrorKind::Strict { warning: warning.clone() }))
        }
        _ => Ok(()),
    }
}

/// The error of two properties that contradict each other.
fn conflict(
    config: &EffectiveConfig<'_>,
    property: &'static str,
    other: &'static str,
    sentence: impl Fn(&str, &str) -> String,
) -> ConfigError {
    let (property, other) = (config.name(property), config.name(other));
    let kind = ConfigErrorKind::Conflict { other: other.to_string(), sentence: sentence(property, other) };
    ConfigError::new(property, kind)
}

/// Returns whether a rule applies although only one of its two properties was set: the C library checks the effective
/// values, as programs expect.
fn is_strict(config: &EffectiveConfig<'_>, name: &'static str) -> bool {
    config.is_librdkafka() || config.is_modified(name)
}
