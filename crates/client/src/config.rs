//! The configuration of a client.

use std::fmt;

use ottla_core::{
    config::{ConfigError, Profile, RawConfig},
    error::Result,
};

use crate::producer::config_error;

/// Properties of a client, by their names in librdkafka or the Java client (CONFIGURATION.md lists them). The defaults are
/// safe: `acks=all`, idempotence enabled, checksums verified.
///
/// ```
/// # fn main() -> ottla::Result<()> {
/// use ottla::Config;
///
/// let config = Config::from_properties([("bootstrap.servers", "127.0.0.1:9092"), ("linger.ms", "10")])?;
/// assert_eq!(config.get("linger.ms").as_deref(), Some("10"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) raw: RawConfig,
}

impl Config {
    /// Creates a configuration with the defaults.
    pub fn new() -> Self {
        Self { raw: RawConfig::new(Profile::Rust) }
    }

    /// Creates a configuration with these properties.
    pub fn from_properties<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let mut config = Self::new();
        for (name, value) in properties {
            config.set(name.as_ref(), value.as_ref()).map_err(config_error)?;
        }
        Ok(config)
    }

    /// Wraps a configuration of the core.
    #[cfg(feature = "capi")]
    pub const fn from_raw(raw: RawConfig) -> Self {
        Self { raw }
    }

    /// Sets a property.
    ///
    /// Error: the property is unknown or the value is invalid. The error names both, the valid values, and a property of a
    /// similar name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&mut Self, ConfigError> {
        self.raw.set(name, value)?;
        Ok(self)
    }

    /// Returns the value of a property; `None` if there is no such property.
    pub fn get(&self, name: &str) -> Option<String> {
        self.raw.get(name).ok().map(|value| value.to_string())
    }

    /// Sets the properties of a file, which is read as `java.util.Properties` reads it. `file` is the name that errors mention,
    /// `text` the content.
    pub fn load(&mut self, file: &str, text: &str) -> Result<&mut Self, ConfigError> {
        self.raw.load(file, text)?;
        Ok(self)
    }

    /// Returns whether a property was set, even if to its default.
    pub fn is_modified(&self, name: &str) -> bool {
        self.raw.is_modified(name)
    }

    /// Returns the configuration of the core.
    #[cfg(feature = "capi")]
    pub const fn raw(&self) -> &RawConfig {
        &self.raw
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows the properties that were set; secrets are masked.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.raw, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_properties_fails_when_a_property_is_unknown() {
        let error = Config::from_properties([("linger.millis", "1")]).unwrap_err();
        assert!(error.to_string().contains("linger.millis"), "{error}");
    }
}
