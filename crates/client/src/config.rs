//! What the application says of its configuration.

use ottla_core::config::{ConfigError, Profile, RawConfig};

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

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}
