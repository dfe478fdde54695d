//! The properties that were set, each checked on its own.

use ottla_sorted::SortedMap;

use super::{
    check::{check, convert, flags_with, shortened},
    error::{ConfigError, ConfigErrorKind},
    java::reading,
    properties_file,
    shown::is_secret,
    spelling::{self, Spelling},
    suggest::closest,
    table::{self, Kind, Property, Scope},
};
use crate::secret::Secret;

/// The set of defaults that a configuration uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// librdkafka's defaults, for the C library.
    Librdkafka,
    /// Safe defaults: acks=all, idempotence, checksums.
    Rust,
}

/// The properties that were set, by any of their names.
///
/// A value is checked when it is set; contradictions between values are found when an [`EffectiveConfig`](super::EffectiveConfig) is created.
#[derive(Clone)]
pub struct RawConfig {
    profile: Profile,
    scope: Scope,
    modified: SortedMap<Key, Setting>,
}

/// A property with its current value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The property's name, never an alias.
    pub property: &'static str,
    /// The scope of the row.
    pub scope: Scope,
    /// The value.
    pub value: String,
    /// True if the property was set, even if to its default.
    pub is_modified: bool,
}

type Key = (bool, &'static str);

#[derive(Clone)]
struct Setting {
    name: &'static str,
    value: Value,
    /// The number that was written, if the value is the nearest one that this client has.
    written: Option<String>,
}

/// The value of a property.
#[derive(Clone)]
enum Value {
    Text(String),
    /// A password, a key or a token, which is overwritten in memory when it is replaced or dropped.
    Secret(Secret),
}

impl Value {
    fn new(property: &str, value: String) -> Self {
        if is_secret(property) { Self::Secret(Secret::new(value.into_bytes())) } else { Self::Text(value) }
    }

    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            // It was made of text.
            Self::Secret(secret) => std::str::from_utf8(secret.expose()).unwrap_or_default(),
        }
    }
}

impl RawConfig {
    /// Creates a client configuration with defaults only.
    pub fn new(profile: Profile) -> RawConfig {
        RawConfig { profile, scope: Scope::Global, modified: SortedMap::new() }
    }

    /// Creates a topic configuration with defaults only: a name that exists in both scopes means the topic's property.
    pub fn topic(profile: Profile) -> RawConfig {
        RawConfig { profile, scope: Scope::Topic, modified: SortedMap::new() }
    }

    /// Returns the profile, which selects the defaults.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the scope in which names are looked up first.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns a copy without the topic properties that were set.
    #[must_use]
    pub fn without_topics(&self) -> RawConfig {
        let mut other = self.clone();
        other.modified.retain(|(is_topic, _), _| !is_topic);
        other
    }

    /// Returns the topic properties that were set, as a topic configuration.
    #[must_use]
    pub fn of_topics(&self) -> RawConfig {
        let mut other = self.clone();
        other.scope = Scope::Topic;
        other.modified.retain(|(is_topic, _), _| *is_topic);
        other
    }

    /// Sets a property. The last call wins, whichever of the property's names it uses.
    ///
    /// `topic.` in front of a topic's property is allowed, as in kcat.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        // The classes and parameters of Java's providers, whose list has no effect either.
        if self.profile == Profile::Rust && name.starts_with("config.providers.") {
            return Ok(());
        }
        let property = self.find(name)?;
        let canonical = property.canonical();
        let mut written = None;
        let value = match self.profile {
            Profile::Rust => {
                let reading = reading::read(property, value);
                written = reading.is_nearest.then(|| shortened(value.trim()));
                let checked = check(self.profile, property, name, &reading.value)?;
                convert(self.profile, property, name, checked)?
            }
            Profile::Librdkafka => match spelling::read(property, value) {
                Spelling::Checked(value) => {
                    let value = check(self.profile, property, name, &value)?;
                    let value = match property.kind {
                        Kind::Flags(words) => flags_with(words, self.value(canonical), &value),
                        _ => value,
                    };
                    convert(self.profile, property, name, value)?
                }
                Spelling::Unchecked(value) => value.to_owned(),
                Spelling::Unset => {
                    self.modified.remove(&key(canonical));
                    return Ok(());
                }
                Spelling::Unchanged => return Ok(()),
                Spelling::Refused(expected) => {
                    let kind =
                        ConfigErrorKind::Malformed { value: shortened(value), expected: expected.to_owned() };
                    return Err(ConfigError::new(name, kind));
                }
            },
        };
        self.modified.insert(
            key(canonical),
            Setting { name: property.name, value: Value::new(canonical.name, value), written },
        );
        Ok(())
    }

    /// Resets a property to its default.
    pub fn unset(&mut self, name: &str) -> Result<(), ConfigError> {
        let canonical = self.find(name)?.canonical();
        self.modified.remove(&key(canonical));
        Ok(())
    }

    /// Returns the value of a property: the one that was set, or the default.
    pub fn get(&self, name: &str) -> Result<&str, ConfigError> {
        Ok(self.value(self.find(name)?.canonical()))
    }

    /// Returns whether a property was set.
    pub fn is_modified(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|property| self.modified.contains_key(&key(property.canonical())))
    }

    /// Iterates over all properties that have a value, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        table::properties()
            .filter(|property| property.alias.is_none() && property.kind != Kind::Call)
            .filter(|property| self.scope == Scope::Global || property.scope == Scope::Topic)
            .map(|property| Entry {
                property: property.name,
                scope: property.scope,
                value: self.value(property).to_string(),
                is_modified: self.modified.contains_key(&key(property)),
            })
    }

    /// Sets every property of a file's text, which is read as `java.util.Properties` reads it. Errors contain `file` as the
    /// file's name.
    pub fn load(&mut self, file: &str, text: &str) -> Result<(), ConfigError> {
        for (line, pair) in properties_file::parse(text) {
            // A line without `=` that begins with no property's name may be a piece of a password or a key.
            let known = pair.ok().filter(|pair| pair.is_explicit || self.find(&pair.name).is_ok());
            let outcome = match known {
                Some(pair) => self.set(&pair.name, &pair.value),
                None => Err(ConfigError::new("", ConfigErrorKind::NotAProperty)),
            };
            outcome.map_err(|error| ConfigError { place: Some((file.to_string(), line)), ..error })?;
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<&'static Property, ConfigError> {
        table::find(self.scope, name)
            .or_else(|| {
                let topic = table::find(Scope::Topic, name.strip_prefix("topic.")?)?;
                (topic.scope == Scope::Topic).then_some(topic)
            })
            .ok_or_else(|| {
                let suggestion = closest(name, table::properties().map(|property| property.name));
                ConfigError::new(name, ConfigErrorKind::Unknown { suggestion })
            })
    }

    fn value(&self, canonical: &'static Property) -> &str {
        match self.modified.get(&key(canonical)) {
            Some(setting) => setting.value.text(),
            None => match self.profile {
                Profile::Rust => canonical.rust_default.unwrap_or(canonical.default),
                Profile::Librdkafka => canonical.default,
            },
        }
    }
}

// Getters for the effective configuration and its rules. The names are those of rows, and the values were checked when
// they were set, so the getters can't fail; a test reads every row's defaults through them.
impl RawConfig {
    pub(super) fn text(&self, name: &'static str) -> &str {
        table::find(self.scope, name).map_or("", |property| self.value(property.canonical()))
    }

    pub(super) fn float(&self, name: &'static str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// Returns the name under which a property was set, or else `name`: messages use the application's spelling.
    pub(super) fn name(&self, name: &'static str) -> &'static str {
        table::find(self.scope, name)
            .and_then(|property| self.modified.get(&key(property.canonical())))
            .map_or(name, |setting| setting.name)
    }

    /// Returns the number that was written, if the value of a property is the nearest one that this client has.
    pub(super) fn written(&self, property: &'static Property) -> Option<&str> {
        self.modified.get(&key(property.canonical()))?.written.as_deref()
    }

    /// Iterates over the rows that were set, with the name that the application used.
    pub(super) fn modified(&self) -> impl Iterator<Item = (&'static Property, &'static str)> + '_ {
        self.modified.iter().filter_map(|((is_topic, canonical), setting)| {
            let scope = if *is_topic { Scope::Topic } else { Scope::Global };
            Some((table::find(scope, canonical)?, setting.name))
        })
    }
}

fn key(canonical: &'static Property) -> Key {
    (canonical.scope == Scope::Topic, canonical.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EffectiveConfig;

    fn error(name: &str, value: &str) -> String {
        RawConfig::new(Profile::Rust).set(name, value).unwrap_err().to_string()
    }

    fn value(name: &str, value: &str) -> String {
        let mut config = RawConfig::new(Profile::Rust);
        config.set(name, value).unwrap();
        config.get(name).unwrap().to_string()
    }

    #[test]
    fn librdkafka_flags_accumulate_and_rust_flags_are_replaced() {
        let flags = |profile, changes: &[&str]| {
            let mut config = RawConfig::new(profile);
            for change in changes {
                config.set("debug", change).unwrap();
            }
            config.get("debug").unwrap().to_string()
        };
        let accumulated = |changes: &[&str]| flags(Profile::Librdkafka, changes);
        assert_eq!(accumulated(&["msg", "+broker", "-msg,queue"]), "broker,queue");
        assert_eq!(accumulated(&["BROKER,-broker"]), "");
        assert!(
            accumulated(&["all"]).starts_with("generic,broker,") && accumulated(&["all"]).ends_with(",all")
        );
        assert!(
            !accumulated(&["all", "-msg"]).contains("msg") && !accumulated(&["all", "-msg"]).contains("all")
        );
        assert_eq!(accumulated(&["all", "-all"]), "");
        assert_eq!(flags(Profile::Rust, &["msg", "broker"]), "broker");
    }

    #[test]
    fn librdkafka_texts_are_unset_by_empty_ones() {
        let mut config = RawConfig::new(Profile::Librdkafka);
        config.set("client.id", "me").unwrap();
        config.set("client.id", "").unwrap();
        assert_eq!((config.get("client.id").unwrap(), config.is_modified("client.id")), ("rdkafka", false));
        config.set("bootstrap.servers", " host/path:x").unwrap();
        assert_eq!(config.get("metadata.broker.list").unwrap(), "host/path:x");
    }

    #[test]
    fn every_default_is_a_value_that_may_be_set() {
        for profile in [Profile::Rust, Profile::Librdkafka] {
            let defaults = RawConfig::new(profile);
            for entry in defaults.iter() {
                let mut config = match entry.scope {
                    Scope::Global => RawConfig::new(profile),
                    Scope::Topic => RawConfig::topic(profile),
                };
                // In librdkafka the property exists on Windows only.
                if profile == Profile::Rust || entry.property != "ssl.ca.certificate.stores" {
                    config.set(entry.property, &entry.value).unwrap();
                }
                assert_eq!(config.get(entry.property).unwrap(), entry.value);
            }
        }
        for alias in table::properties().filter(|property| property.alias.is_some()) {
            check(Profile::Rust, alias, alias.name, alias.default).unwrap();
        }
    }

    #[test]
    fn every_number_out_of_its_range_is_an_error_that_names_the_range() {
        for property in table::properties() {
            let (below, above) = match property.kind {
                Kind::Integer { min, max, .. } => (i128::from(min) - 1, i128::from(max) + 1),
                Kind::Float { min, max, .. } => (min as i128 - 1, max as i128 + 1),
                _ => continue,
            };
            for number in [below, above] {
                let message = check(Profile::Rust, property, property.name, &number.to_string())
                    .unwrap_err()
                    .to_string();
                assert!(message.contains(property.name) && message.contains(&property.range()), "{message}");
            }
        }
    }

    #[test]
    fn acks_above_one_are_for_the_c_library_only() {
        let mut rust = RawConfig::new(Profile::Rust);
        let mut c = RawConfig::new(Profile::Librdkafka);
        for name in ["acks", "request.required.acks"] {
            for value in ["-1", "0", "1", "all"] {
                rust.set(name, value).unwrap();
                c.set(name, value).unwrap();
            }
            let error = rust.set(name, "2").unwrap_err().to_string();
            assert_eq!(error, format!("`{name}` is 2, but must be in -1 .. 1, all"));
            c.set(name, "1000").unwrap();
            let error = c.set(name, "1001").unwrap_err().to_string();
            assert_eq!(error, format!("`{name}` is 1001, but must be in -1 .. 1000, all"));
        }
    }

    #[test]
    fn every_property_that_takes_words_or_numbers_refuses_others() {
        for property in table::properties() {
            if matches!(property.kind, Kind::Text | Kind::Call) {
                continue;
            }
            let message =
                check(Profile::Rust, property, property.name, "certainly-not").unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("`{}` is \"certainly-not\", but must be ", property.name)),
                "{message}"
            );
        }
    }

    #[test]
    fn profiles_differ_only_in_safe_properties() {
        let (rust, c) = (RawConfig::new(Profile::Rust), RawConfig::new(Profile::Librdkafka));
        assert_eq!(rust.get("enable.idempotence").unwrap(), "true");
        assert_eq!(c.get("enable.idempotence").unwrap(), "false");
        assert_eq!(rust.get("check.crcs").unwrap(), "true");
        assert_eq!(c.get("check.crcs").unwrap(), "false");
        assert_eq!((rust.get("acks").unwrap(), c.get("acks").unwrap()), ("-1", "-1"));
    }

    #[test]
    fn a_property_has_one_value_under_all_its_names() {
        let mut config = RawConfig::new(Profile::Rust);
        config.set("metadata.broker.list", "a:1").unwrap();
        config.set("bootstrap.servers", "b:2").unwrap();
        assert_eq!(config.get("metadata.broker.list").unwrap(), "b:2");
        assert!(config.is_modified("metadata.broker.list"));
        config.unset("metadata.broker.list").unwrap();
        assert_eq!(config.get("bootstrap.servers").unwrap(), "");
        assert!(!config.is_modified("bootstrap.servers"));
    }

    #[test]
    fn explicit_topic_properties_are_kept_apart() {
        let mut config = RawConfig::new(Profile::Librdkafka);
        for (name, value) in [("acks", "1"), ("linger.ms", "7"), ("compression.codec", "gzip")] {
            config.set(name, value).unwrap();
        }
        let (rest, topics) = (config.without_topics(), config.of_topics());
        assert_eq!((rest.get("acks").unwrap(), rest.get("linger.ms").unwrap()), ("-1", "7"));
        assert_eq!(
            rest.get("compression.codec").unwrap(),
            "gzip",
            "that one is the client's, for all topics"
        );
        assert_eq!((topics.get("acks").unwrap(), topics.get("compression.codec").unwrap()), ("1", "inherit"));
        assert!(topics.iter().all(|entry| entry.scope == Scope::Topic));
    }

    #[test]
    fn java_names_are_converted() {
        let mut config = RawConfig::new(Profile::Rust);
        config.set("buffer.memory", "33554432").unwrap();
        assert_eq!(config.get("queue.buffering.max.kbytes").unwrap(), "32768");
        config.set("buffer.memory", "33554433").unwrap();
        assert_eq!(config.get("queue.buffering.max.kbytes").unwrap(), "32769");
        config.set("send.buffer.bytes", "-1").unwrap();
        assert_eq!(config.get("socket.send.buffer.bytes").unwrap(), "0");
        config.set("fetch.max.wait.ms", "20").unwrap();
        assert_eq!(config.get("fetch.wait.max.ms").unwrap(), "20");
    }

    #[test]
    fn values_are_kept_in_their_usual_spelling() {
        assert_eq!(value("enable.idempotence", "T"), "true");
        assert_eq!(value("acks", "All"), "-1");
        assert_eq!(value("security.protocol", "PLAINTEXT"), "plaintext");
        assert_eq!(value("linger.ms", "0.50"), "0.5");
        assert_eq!(value("broker.linger.ms", "AUTO"), "auto");
        assert_eq!(value("socket.timeout.ms", " 0x3E8 "), "1000");
        assert_eq!(value("debug", "broker, topic"), "broker,topic");
    }

    #[test]
    fn errors_name_the_valid_values() {
        assert_eq!(error("lingr.ms", "5"), "there is no property `lingr.ms`; did you mean `linger.ms`?");
        assert_eq!(error("linger.ms", "-1"), "`linger.ms` is -1, but must be in 0 .. 900000");
        assert_eq!(error("linger.ms", "NaN"), "`linger.ms` is NaN, but must be in 0 .. 900000");
        assert_eq!(
            error("retries", "many"),
            "`retries` is \"many\", but must be a whole number in 0 .. 2147483647"
        );
        assert_eq!(
            error("retries", "99999999999999999999"),
            "`retries` is 99999999999999999999, but must be in 0 .. 2147483647"
        );
        assert_eq!(error("acks", "most"), "`acks` is \"most\", but must be a whole number in -1 .. 1, all");
        assert_eq!(error("check.crcs", "yes"), "`check.crcs` is \"yes\", but must be true or false");
        assert_eq!(
            error("compression.type", "brotli"),
            "`compression.type` is \"brotli\", but must be one of: none, gzip, snappy, lz4, zstd"
        );
        assert_eq!(
            error("bootstrap.servers", "ok:1,http://host:9092"),
            "`bootstrap.servers`: http://host:9092: http:// is not a Kafka listener; write host:port"
        );
        assert!(error("dr_msg_cb", "x").contains("set by a call"));
        assert!(error("compression.type", &"x".repeat(1 << 20)).len() < 300);
    }

    #[test]
    fn in_a_topic_configuration_names_of_both_scopes_mean_the_topic() {
        let mut config = RawConfig::topic(Profile::Rust);
        config.set("compression.codec", "inherit").unwrap();
        assert!(RawConfig::new(Profile::Rust).set("compression.codec", "inherit").is_err());
        assert!(config.iter().all(|entry| entry.scope == Scope::Topic));
    }

    #[test]
    fn a_topic_property_may_have_the_prefix_that_kcat_knows() {
        let mut config = RawConfig::new(Profile::Rust);
        config.set("topic.acks", "1").unwrap();
        assert_eq!(config.get("acks").unwrap(), "1");
        assert!(config.set("topic.client.id", "x").is_err());
    }

    #[test]
    fn an_error_in_a_file_names_the_file_and_the_line() {
        let mut config = RawConfig::new(Profile::Rust);
        let error = config.load("my.properties", "# mine\nacks=all\nlingr.ms=3\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "my.properties:3: there is no property `lingr.ms`; did you mean `linger.ms`?"
        );
        assert_eq!(config.get("acks").unwrap(), "-1");
        let error = config.load("my.properties", "acks=1\n\njust words\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "my.properties:3: the line is not a property; write name=value, and a backslash at the end of a line that continues"
        );
    }

    #[test]
    fn garbage_is_an_error_and_never_more_than_that() {
        let mut rng = crate::rng::Rng::from_seed(7);
        let letters: Vec<char> = "=:\\#!\n\t .,-+0x9aZäu\u{0}\u{fffd}".chars().collect();
        let names: Vec<_> = table::properties().map(|property| property.name).collect();
        let mut accepted = 0;
        for _ in 0..1000 {
            let text: String =
                (0..rng.below(12)).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect();
            let name = names[rng.below(names.len() as u64) as usize];
            let mut config = RawConfig::new(Profile::Rust);
            accepted += u32::from(config.set(name, &text).is_ok());
            let _ = config.set(&text, &text);
            let _ = config.load("f", &format!("{text}{name}={text}\n{text}"));
            for result in [
                EffectiveConfig::admin(&config).map(drop),
                EffectiveConfig::producer(&config).map(drop),
                EffectiveConfig::consumer(&config).map(drop),
            ] {
                if let Err(error) = result {
                    assert!(error.to_string().len() < 1000);
                }
            }
        }
        assert!(accepted > 50, "texts are accepted where any text goes: {accepted}");
    }
}
