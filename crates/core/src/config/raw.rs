//! What was said: the properties that were set, each checked on its own.

use std::collections::BTreeMap;

use super::error::{ConfigError, ConfigErrorKind};
use super::patterns::TopicPatterns;
use super::properties_file;
use super::servers::ServerAddress;
use super::suggest::closest;
use super::table::{self, Conversion, Kind, Property, Scope, Status};

/// Which defaults hold where nothing was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// librdkafka's, property by property: for the C library.
    Librdkafka,
    /// The safe ones: acks=all, idempotence, checksums.
    Rust,
}

/// The properties that were set, by any of their names.
///
/// A value is checked when it is set; whether the values fit together is seen when a view is made.
#[derive(Clone, Debug)]
pub struct RawConfig {
    profile: Profile,
    scope: Scope,
    said: BTreeMap<Key, Said>,
}

/// One property with the value it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The row, never an alias.
    pub property: &'static str,
    /// The scope of the row.
    pub scope: Scope,
    /// The value.
    pub value: String,
    /// Whether it was set, even if to its default.
    pub is_modified: bool,
}

type Key = (bool, &'static str);

#[derive(Clone, Debug)]
struct Said {
    name: &'static str,
    value: String,
}

impl RawConfig {
    /// A client's configuration, in which nothing was said.
    pub fn new(profile: Profile) -> RawConfig {
        RawConfig { profile, scope: Scope::Global, said: BTreeMap::new() }
    }

    /// A topic's configuration, in which nothing was said: a name that exists in both scopes means the topic's.
    pub fn topic(profile: Profile) -> RawConfig {
        RawConfig { profile, scope: Scope::Topic, said: BTreeMap::new() }
    }

    /// Which defaults hold.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The same, as if nothing had been said about topics.
    #[must_use]
    pub fn without_topics(&self) -> RawConfig {
        let mut other = self.clone();
        other.said.retain(|(is_topic, _), _| !is_topic);
        other
    }

    /// What was said about topics, as a topic's configuration.
    #[must_use]
    pub fn of_topics(&self) -> RawConfig {
        let mut other = self.clone();
        other.scope = Scope::Topic;
        other.said.retain(|(is_topic, _), _| *is_topic);
        other
    }

    /// Sets a property. The last word counts, whichever of its names is used.
    ///
    /// `topic.` in front of a topic's property is allowed, as in kcat.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let property = self.find(name)?;
        let value = check(property, name, value)?;
        let canonical = property.canonical();
        let value = match property.alias.map(|alias| alias.conversion) {
            Some(conversion) => convert(conversion, canonical, name, value)?,
            None => value,
        };
        self.said.insert(key(canonical), Said { name: property.name, value });
        Ok(())
    }

    /// Takes back what was said about a property, so that it has its default.
    pub fn unset(&mut self, name: &str) -> Result<(), ConfigError> {
        let canonical = self.find(name)?.canonical();
        self.said.remove(&key(canonical));
        Ok(())
    }

    /// The value of a property: what was said, or the default.
    pub fn get(&self, name: &str) -> Result<&str, ConfigError> {
        Ok(self.value(self.find(name)?.canonical()))
    }

    /// Whether something was said about a property.
    pub fn is_modified(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|property| self.said.contains_key(&key(property.canonical())))
    }

    /// All properties that hold a value, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        table::properties()
            .filter(|property| property.alias.is_none() && property.kind != Kind::Call)
            .filter(|property| self.scope == Scope::Global || property.scope == Scope::Topic)
            .map(|property| Entry {
                property: property.name,
                scope: property.scope,
                value: self.value(property).to_string(),
                is_modified: self.said.contains_key(&key(property)),
            })
    }

    /// Sets every property of a file's text: `name=value` lines as in Java's .properties files and in those of
    /// librdkafka's tools. `file` is the name that errors give.
    pub fn load(&mut self, file: &str, text: &str) -> Result<(), ConfigError> {
        for (line, pair) in properties_file::parse(text) {
            let placed = |error: ConfigError| ConfigError { place: Some((file.to_string(), line)), ..error };
            match pair {
                Ok((name, value)) => self.set(&name, &value).map_err(placed)?,
                Err(text) => {
                    let kind = ConfigErrorKind::NotAProperty { line: text.clone() };
                    return Err(placed(ConfigError::new(text, kind)));
                }
            }
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
        match self.said.get(&key(canonical)) {
            Some(said) => &said.value,
            None => match self.profile {
                Profile::Rust => canonical.rust_default.unwrap_or(canonical.default),
                Profile::Librdkafka => canonical.default,
            },
        }
    }
}

// What the views and the rules read. The names are those of rows, and the values were checked when they were set, so
// there is nothing left to go wrong; a test reads every row's defaults through these.
impl RawConfig {
    pub(super) fn text(&self, name: &'static str) -> &str {
        table::find(self.scope, name).map_or("", |property| self.value(property.canonical()))
    }

    pub(super) fn boolean(&self, name: &'static str) -> bool {
        self.text(name) == "true"
    }

    pub(super) fn integer(&self, name: &'static str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    pub(super) fn float(&self, name: &'static str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// The name under which a property was set, or else the one given: messages use the application's words.
    pub(super) fn name(&self, name: &'static str) -> &'static str {
        table::find(self.scope, name)
            .and_then(|property| self.said.get(&key(property.canonical())))
            .map_or(name, |said| said.name)
    }

    /// The rows that something was said about, with the name that was used.
    pub(super) fn said(&self) -> impl Iterator<Item = (&'static Property, &'static str)> + '_ {
        self.said.iter().filter_map(|((is_topic, canonical), said)| {
            let scope = if *is_topic { Scope::Topic } else { Scope::Global };
            Some((table::find(scope, canonical)?, said.name))
        })
    }
}

fn key(canonical: &'static Property) -> Key {
    (canonical.scope == Scope::Topic, canonical.name)
}

/// The value in its usual spelling, if the property takes it.
fn check(property: &'static Property, name: &str, value: &str) -> Result<String, ConfigError> {
    let malformed = |expected: String| {
        ConfigError::new(name, ConfigErrorKind::Malformed { value: shortened(value), expected })
    };
    let out_of_range = || {
        let kind = ConfigErrorKind::OutOfRange { value: shortened(value), range: property.range() };
        ConfigError::new(name, kind)
    };
    let not_one_of = |word: &str| {
        let kind = ConfigErrorKind::NotOneOf { value: shortened(word), allowed: property.range() };
        ConfigError::new(name, kind)
    };
    let trimmed = value.trim();
    let checked = match property.kind {
        Kind::Boolean => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" => "true".to_string(),
            "false" | "f" | "0" => "false".to_string(),
            _ => return Err(malformed("true or false".into())),
        },
        Kind::Integer { min, max, names } => {
            let named =
                names.iter().find(|(word, _)| word.eq_ignore_ascii_case(trimmed)).map(|(_, number)| *number);
            let number = match named {
                Some(number) => number,
                None => match whole_number(trimmed) {
                    Some(number) => number,
                    None if trimmed
                        .parse::<f64>()
                        .is_ok_and(|number| number.is_finite() && number.fract() == 0.0) =>
                    {
                        return Err(out_of_range());
                    }
                    None => return Err(malformed(format!("a whole number in {}", property.range()))),
                },
            };
            if !(min..=max).contains(&number) {
                return Err(out_of_range());
            }
            number.to_string()
        }
        Kind::Float { auto: true, .. } if trimmed.eq_ignore_ascii_case("auto") => "auto".to_string(),
        Kind::Float { min, max, .. } => {
            let number: f64 =
                trimmed.parse().map_err(|_| malformed(format!("a number in {}", property.range())))?;
            if !(min..=max).contains(&number) {
                return Err(out_of_range());
            }
            number.to_string()
        }
        Kind::OneOf(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(trimmed)) {
            Some(word) => word.to_string(),
            None => return Err(not_one_of(trimmed)),
        },
        Kind::Flags(words) => {
            let mut flags = Vec::new();
            for flag in trimmed.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
                // librdkafka's debug flags can be switched off again with a minus.
                let bare = flag.strip_prefix('-').unwrap_or(flag);
                if !words.contains(&bare) {
                    return Err(not_one_of(flag));
                }
                flags.push(flag);
            }
            flags.join(",")
        }
        Kind::Text | Kind::Call => value.to_string(),
    };
    if property.canonical().name == "metadata.broker.list" {
        ServerAddress::parse_list(&checked)
            .map_err(|sentence| ConfigError::new(name, ConfigErrorKind::BadServer { sentence }))?;
    }
    if property.name == "topic.blacklist" {
        TopicPatterns::parse(&checked).map_err(|error| malformed(error.to_string()))?;
    }
    match property.status {
        Status::Refused(reason) if property.kind == Kind::Call || checked != property.default => {
            let value = if property.kind == Kind::Text { String::new() } else { shortened(&checked) };
            Err(ConfigError::new(name, ConfigErrorKind::Refused { value, reason }))
        }
        _ => Ok(checked),
    }
}

/// The value of the property that an alias stands for.
fn convert(
    conversion: Conversion,
    canonical: &'static Property,
    name: &str,
    value: String,
) -> Result<String, ConfigError> {
    let number = || whole_number(&value).unwrap_or(0);
    let converted = match conversion {
        // Checked again, because the other row may refuse a value or know a narrower range.
        Conversion::Same => value,
        Conversion::BytesToKibibytes => (number() as u64).div_ceil(1024).to_string(),
        Conversion::MinusOneToZero => number().max(0).to_string(),
    };
    check(canonical, name, &converted)
}

/// A number as in C: decimal, or hexadecimal after 0x.
fn whole_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            i64::from_str_radix(hex, 16).ok()?
        }
        Some(_) => return None,
        None if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(if negative { -number } else { number })
}

/// A value as it stands in an error: nobody wants a megabyte there.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, value: &str) -> String {
        RawConfig::new(Profile::Rust).set(name, value).unwrap_err().to_string()
    }

    fn value(name: &str, value: &str) -> String {
        let mut config = RawConfig::new(Profile::Rust);
        config.set(name, value).unwrap();
        config.get(name).unwrap().to_string()
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
                config.set(entry.property, &entry.value).unwrap();
                assert_eq!(config.get(entry.property).unwrap(), entry.value);
            }
        }
        for alias in table::properties().filter(|property| property.alias.is_some()) {
            check(alias, alias.name, alias.default).unwrap();
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
                let message = check(property, property.name, &number.to_string()).unwrap_err().to_string();
                assert!(message.contains(property.name) && message.contains(&property.range()), "{message}");
            }
        }
    }

    #[test]
    fn every_property_that_takes_words_or_numbers_refuses_others() {
        for property in table::properties() {
            if matches!(property.kind, Kind::Text | Kind::Call) {
                continue;
            }
            let message = check(property, property.name, "certainly-not").unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("`{}` is \"certainly-not\", but must be ", property.name)),
                "{message}"
            );
        }
    }

    #[test]
    fn the_two_profiles_differ_in_what_is_safe() {
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
    fn what_was_said_about_topics_can_be_told_from_the_rest() {
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
    fn errors_say_what_would_be_right() {
        assert_eq!(error("lingr.ms", "5"), "there is no property `lingr.ms`; did you mean `linger.ms`?");
        assert_eq!(error("linger.ms", "900001"), "`linger.ms` is 900001, but must be in 0 .. 900000");
        assert_eq!(error("linger.ms", "NaN"), "`linger.ms` is NaN, but must be in 0 .. 900000");
        assert_eq!(
            error("retries", "many"),
            "`retries` is \"many\", but must be a whole number in 0 .. 2147483647"
        );
        assert_eq!(
            error("retries", "99999999999999999999"),
            "`retries` is 99999999999999999999, but must be in 0 .. 2147483647"
        );
        assert_eq!(
            error("acks", "most"),
            "`acks` is \"most\", but must be a whole number in -1 .. 1000, all"
        );
        assert_eq!(error("check.crcs", "yes"), "`check.crcs` is \"yes\", but must be true or false");
        assert_eq!(
            error("compression.type", "brotli"),
            "`compression.type` is \"brotli\", but must be one of: none, gzip, snappy, lz4, zstd"
        );
        assert_eq!(
            error("security.protocol", "ssl"),
            "`security.protocol` can't be \"ssl\": TLS and SASL aren't built yet, only plaintext"
        );
        assert_eq!(error("sasl.password", "secret"), "`sasl.password` can't be set: SASL isn't built yet");
        assert_eq!(
            error("bootstrap.servers", "ok:1,http://host:9092"),
            "`bootstrap.servers`: http://host:9092: http:// is no Kafka listener; write host:port"
        );
        assert!(error("dr_msg_cb", "x").contains("set by a call"));
        assert!(error("compression.type", &"x".repeat(1 << 20)).len() < 300);
    }

    #[test]
    fn a_refused_property_may_be_set_to_its_default() {
        assert_eq!(value("transactional.id", ""), "");
        assert_eq!(value("queuing.strategy", "fifo"), "fifo");
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
        assert_eq!(error.to_string(), "my.properties:3: \"just words\" is no property; write name=value");
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
                crate::config::ClientView::new(&config).map(|_| ()),
                crate::config::ProducerView::new(&config).map(|_| ()),
                crate::config::ConsumerView::new(&config).map(|_| ()),
            ] {
                if let Err(error) = result {
                    assert!(error.to_string().len() < 1000);
                }
            }
        }
        assert!(accepted > 50, "texts are accepted where any text goes: {accepted}");
    }
}
