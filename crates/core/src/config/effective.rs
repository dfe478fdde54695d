//! The effective configuration: the value of each property after the rules between properties were applied.
//!
//! A client creates one [`EffectiveConfig`] when it starts. Each machine reads its settings from it
//! (`ConnectionSettings::new`, `ProducerSettings::new`, ...), so that a property is copied once: from its row into the
//! field of the machine that uses it. Reading can't fail, because every value was checked when it was set, and the
//! contradictions between values were found when the effective configuration was created.

use std::time::Duration;

use ottla_sorted::SortedMap;

use super::{
    error::{ConfigError, ConfigErrorKind},
    raw::{Profile, RawConfig},
    rules,
    servers::ServerAddress,
    table::{self, Scope, Side},
};

/// The values of all properties for one client, or for one topic of a producer.
#[derive(Clone, Debug)]
pub struct EffectiveConfig<'a> {
    client: &'a RawConfig,
    /// The topic's own configuration, which takes precedence over the client's for properties of topics.
    topic: Option<&'a RawConfig>,
    /// Values that a rule adapted, by the property's own name.
    adapted: SortedMap<&'static str, String>,
    warnings: Vec<String>,
}

impl<'a> EffectiveConfig<'a> {
    /// Returns the configuration of an admin client. Error: the properties that contradict each other.
    pub fn admin(raw: &'a RawConfig) -> Result<Self, ConfigError> {
        Self::of_kind(raw, Side::Both, |config| {
            // Describing a topic must not create it.
            config.adapt("allow.auto.create.topics", false);
            Ok(())
        })
    }

    /// Returns the configuration of a producer. Error: the properties that contradict each other.
    pub fn producer(raw: &'a RawConfig) -> Result<Self, ConfigError> {
        Self::of_kind(raw, Side::Producer, rules::producer::apply)
    }

    /// Returns the configuration of a consumer. Error: the properties that contradict each other.
    pub fn consumer(raw: &'a RawConfig) -> Result<Self, ConfigError> {
        Self::of_kind(raw, Side::Consumer, rules::consumer::apply)
    }

    /// Returns the configuration of a share consumer. Error: the properties that contradict each other.
    pub fn share_consumer(raw: &'a RawConfig) -> Result<Self, ConfigError> {
        Self::of_kind(raw, Side::Consumer, rules::consumer::apply_to_share_consumer)
    }

    /// Returns the configuration of a topic with properties of its own. Properties that `topic` does not set have the
    /// value that they have in `client`. Error: the properties that contradict each other.
    pub fn topic(client: &'a RawConfig, topic: &'a RawConfig) -> Result<Self, ConfigError> {
        let mut config = Self { topic: Some(topic), ..Self::unchecked(client) };
        rules::topic::apply(&mut config)?;
        Ok(config)
    }

    fn of_kind(
        raw: &'a RawConfig,
        side: Side,
        rules_of_kind: impl FnOnce(&mut Self) -> Result<(), ConfigError>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self::unchecked(raw);
        rules::client::apply(&mut config, side)?;
        rules_of_kind(&mut config)?;
        rules::strict(&config)?;
        Ok(config)
    }

    /// Returns a configuration to which no rules have been applied.
    pub(super) fn unchecked(client: &'a RawConfig) -> Self {
        Self { client, topic: None, adapted: SortedMap::new(), warnings: Vec::new() }
    }

    /// Returns the warnings for the application's log, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns true if the client connects to controllers instead of brokers (KIP-919).
    pub fn has_controllers(&self) -> bool {
        !self.text("bootstrap.controllers").is_empty()
    }

    /// Returns the name and the value of the property that lists the servers.
    pub(crate) fn server_list(&self) -> (&'static str, &str) {
        let name = if self.has_controllers() { "bootstrap.controllers" } else { "bootstrap.servers" };
        (name, self.text(name))
    }

    /// Returns `bootstrap.servers` or `bootstrap.controllers`, without duplicates. It may be empty, see
    /// [`EffectiveConfig::require_servers`].
    pub fn servers(&self) -> Vec<ServerAddress> {
        let (_, list) = self.server_list();
        match self.client.profile() {
            Profile::Librdkafka => ServerAddress::parse_usable(list).0,
            Profile::Rust => ServerAddress::parse_list(list).unwrap_or_default(),
        }
    }

    /// Returns the reasons for which entries of the list of servers are skipped.
    pub fn unusable_servers(&self) -> Vec<String> {
        match self.client.profile() {
            Profile::Librdkafka => ServerAddress::parse_usable(self.server_list().1).1,
            Profile::Rust => Vec::new(),
        }
    }

    /// Fails if there are no bootstrap servers.
    pub fn require_servers(&self) -> Result<(), ConfigError> {
        if self.servers().is_empty() {
            let purpose = "a client has to know at least one broker, as host:port";
            return Err(ConfigError::new("bootstrap.servers", ConfigErrorKind::Missing { purpose }));
        }
        Ok(())
    }
}

// The getters that settings are read with. `name` is the name of a row; a test reads every row's default through them.
impl EffectiveConfig<'_> {
    /// Returns the value of a property as text.
    pub fn text(&self, name: &'static str) -> &str {
        if let Some(topic) = self.topic_with(name) {
            return topic.text(name);
        }
        match self.adapted.get(canonical(name)) {
            Some(value) => value,
            None => self.client.text(name),
        }
    }

    /// Returns text, or None if it is empty.
    pub fn non_empty(&self, name: &'static str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Returns whether a property is `true`.
    pub fn boolean(&self, name: &'static str) -> bool {
        self.text(name) == "true"
    }

    /// Returns a whole number.
    pub fn integer(&self, name: &'static str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Returns a number of bytes or of other things.
    pub fn size(&self, name: &'static str) -> usize {
        self.integer(name).max(0) as usize
    }

    /// Returns a number, or None if it is 0 or negative, which means "no limit" or "the default".
    pub fn positive(&self, name: &'static str) -> Option<usize> {
        Some(self.size(name)).filter(|size| *size > 0)
    }

    /// Returns a number with a fraction.
    pub fn float(&self, name: &'static str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// Returns a duration from a number of milliseconds.
    pub fn millis(&self, name: &'static str) -> Duration {
        Duration::from_millis(self.integer(name).max(0) as u64)
    }

    /// Returns a duration from a number of milliseconds, or None if it is 0 or negative, which means "never" or "no
    /// limit".
    pub fn positive_millis(&self, name: &'static str) -> Option<Duration> {
        Some(self.millis(name)).filter(|duration| !duration.is_zero())
    }

    /// Returns a duration from a number of milliseconds, or None if the application did not set the property.
    pub fn modified_millis(&self, name: &'static str) -> Option<Duration> {
        self.is_modified(name).then(|| self.millis(name))
    }

    /// Returns a duration from a number of milliseconds with a fraction.
    pub fn float_millis(&self, name: &'static str) -> Duration {
        Duration::from_secs_f64(self.float(name) / 1000.0)
    }

    /// Returns whether the application set the property, for the client or for the topic.
    pub fn is_modified(&self, name: &'static str) -> bool {
        self.topic_with(name).is_some() || self.client.is_modified(name)
    }

    /// Returns whether the value for the topic is not the client's, because the topic's own configuration or a rule set
    /// it.
    pub fn differs_from_client(&self, name: &'static str) -> bool {
        self.topic_with(name).is_some()
            || (self.topic.is_some() && self.adapted.contains_key(canonical(name)))
    }

    /// The topic's own configuration, if it decides the value of the property.
    fn topic_with(&self, name: &'static str) -> Option<&RawConfig> {
        let topic = self.topic?;
        let is_of_topics = table::find(Scope::Topic, name)
            .is_some_and(|property| property.canonical().scope == Scope::Topic);
        // `inherit` is a value of `compression.codec` in the scope of topics.
        (is_of_topics && topic.is_modified(name) && topic.text(name) != "inherit").then_some(topic)
    }
}

// For the rules.
impl<'a> EffectiveConfig<'a> {
    pub(super) fn client_raw(&self) -> &'a RawConfig {
        self.client
    }

    /// The configuration that decides the value of the property: the topic's or the client's.
    pub(super) fn decider(&self, name: &'static str) -> &RawConfig {
        self.topic_with(name).unwrap_or(self.client)
    }

    pub(crate) fn is_librdkafka(&self) -> bool {
        self.client.profile() == Profile::Librdkafka
    }

    /// Returns the name under which a property was set, or else `name`: messages use the application's spelling.
    pub(super) fn name(&self, name: &'static str) -> &'static str {
        self.decider(name).name(name)
    }

    /// Replaces the client's value of a property.
    pub(super) fn adapt(&mut self, name: &'static str, value: impl ToString) {
        self.adapted.insert(canonical(name), value.to_string());
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

fn canonical(name: &'static str) -> &'static str {
    table::find(Scope::Global, name).map_or(name, |property| property.canonical().name)
}
