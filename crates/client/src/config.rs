//! What the application says of its configuration.

use ottla_core::config::{ConfigError, ConsumerView, ProducerView, Profile, RawConfig};

/// Properties by their usual names, librdkafka's or the Java client's, on top of safe defaults: `acks=all`, idempotence
/// on, checksums checked.
#[derive(Clone, Debug)]
pub struct Config {
    raw: RawConfig,
}

impl Config {
    /// The defaults.
    pub fn new() -> Self {
        Self { raw: RawConfig::new(Profile::Rust) }
    }

    /// What was said already, in another way.
    pub const fn from_raw(raw: RawConfig) -> Self {
        Self { raw }
    }

    /// Sets a property. The error names it, what it may be, and a similar name where it is unknown.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&mut Self, ConfigError> {
        self.raw.set(name, value)?;
        Ok(self)
    }

    /// A property's value; `None` if there is no such property.
    pub fn get(&self, name: &str) -> Option<String> {
        self.raw.get(name).ok().map(|value| value.to_string())
    }

    /// What was said, for parts that need all of it.
    pub const fn raw(&self) -> &RawConfig {
        &self.raw
    }

    /// What was said, to add to it in other ways: from a file, for example.
    pub const fn raw_mut(&mut self) -> &mut RawConfig {
        &mut self.raw
    }
}

/// Whether a producer's or a consumer's configuration holds together, also where it names no broker yet.
pub fn check_config(raw: &RawConfig, is_consumer: bool) -> Result<(), ConfigError> {
    if is_consumer { ConsumerView::new(raw).map(|_| ()) } else { ProducerView::new(raw).map(|_| ()) }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}
