//! A topic with settings of its own.

use std::{borrow::Cow, fmt, sync::Arc};

use ottla_core::{
    config::{
        ConfigError, ConfigErrorKind, EffectiveConfig, RawConfig,
        table::{self, Scope, Side},
    },
    produce::{
        collector::Linger, order::QueueOrder, partitioner::Partitioner, topic_settings::TopicSettings,
    },
};

use super::{Producer, Topic};

/// Creates a [`Topic`] with settings of its own. It shares everything else with the producer's other topics: connections,
/// queue, flush, purge, reports, statistics, and the idempotent producer's ID.
///
/// A topic may have its own `acks`, `request.timeout.ms`, `message.timeout.ms`, `compression.type`, `compression.level`,
/// `partitioner`, `queuing.strategy` and `broker.linger.ms`. The settings belong to the topic and not to the handle: a
/// topic keeps those of its first handle. Only `broker.linger.ms` can be changed later; the last handle wins.
///
/// ```
/// # fn example(producer: &ottla::Producer) -> Result<(), Box<dyn std::error::Error>> {
/// let metrics = producer
///     .topic_builder("metrics")
///     .set("message.timeout.ms", "5000")?
///     .set("compression.type", "zstd")?
///     .build()?;
/// metrics.send(ottla::Record::new().value("load 0.7"))?;
/// # Ok(())
/// # }
/// ```
pub struct TopicBuilder<'a> {
    producer: &'a Producer,
    name: &'a str,
    own: RawConfig,
    /// Properties that `own` does not set have their defaults, and not the values of the producer's configuration.
    is_complete: bool,
    partitioner: Option<Partitioner>,
    order: Option<QueueOrder>,
    any_name: bool,
}

impl<'a> TopicBuilder<'a> {
    pub(crate) const fn new(producer: &'a Producer, name: &'a str, own: RawConfig) -> Self {
        Self { producer, name, own, is_complete: false, partitioner: None, order: None, any_name: false }
    }

    /// Sets a property of the topic.
    ///
    /// Error: the property is unknown, its value is invalid, or a topic can't have its own value of it.
    pub fn set(mut self, property: &str, value: &str) -> Result<Self, ConfigError> {
        self.own.set(property, value)?;
        let found = table::find(Scope::Topic, property.strip_prefix("topic.").unwrap_or(property));
        let reason = match found {
            Some(found) if found.scope != Scope::Topic => {
                "it applies to all topics of a producer; create a separate producer for the topic"
            }
            Some(found) if found.side == Side::Consumer => "it is a property of consumers",
            _ => return Ok(self),
        };
        Err(refused(property, value, reason))
    }

    /// Replaces the whole configuration of the topic: properties that `own` does not set have their defaults, whatever the
    /// producer's configuration sets for topics.
    #[cfg(feature = "capi")]
    #[must_use]
    pub fn config(mut self, own: RawConfig) -> Self {
        self.own = own;
        self.is_complete = true;
        self
    }

    /// Sets the topic's partitioner: a function of the application, or a built-in one.
    #[must_use]
    pub fn partitioner(mut self, partitioner: Partitioner) -> Self {
        self.partitioner = Some(partitioner);
        self
    }

    /// Sends the queued records of a partition in another order than that of the calls, instead of `queuing.strategy`. The
    /// order applies to records that are in no request yet; retries keep their place.
    #[must_use]
    pub fn order(mut self, order: QueueOrder) -> Self {
        self.order = Some(order);
        self
    }

    /// Leaves the check of the topic's name to the brokers: records to an invalid one fail.
    #[cfg(feature = "capi")]
    #[must_use]
    pub const fn any_name(mut self) -> Self {
        self.any_name = true;
        self
    }

    /// Returns the topic.
    ///
    /// Error: a property contradicts the producer's configuration, or the topic is in use with other settings.
    pub fn build(self) -> Result<Topic, ConfigError> {
        let Self { producer, name, own, is_complete, partitioner, order, any_name } = self;
        if partitioner.is_some() || order.is_some() {
            producer.inner.client.calls_out();
        }
        let client = match is_complete {
            true => Cow::Owned(producer.config().without_topics()),
            false => Cow::Borrowed(producer.config()),
        };
        let config = EffectiveConfig::topic(&client, &own)?;
        let shared = producer.shared();
        let modified = own.iter().find(|entry| entry.is_modified && entry.property != "broker.linger.ms");
        let topic = if is_complete || modified.is_some() || partitioner.is_some() || order.is_some() {
            let mut settings = TopicSettings::of_topic(&config, &shared.settings);
            match partitioner {
                Some(own) => settings.partitioner = Arc::new(own),
                None if is_complete || own.is_modified("partitioner") => {}
                // The producer's may be the application's own, which the configuration does not know.
                None => settings.partitioner = Arc::clone(&shared.topic_settings().partitioner),
            }
            if let Some(order) = order {
                settings.order = Some(Arc::new(order));
            }
            let topic = producer.topic_with_settings(name, &settings, any_name);
            if !topic.settings().is_same(&settings) {
                let (property, value) =
                    modified.map_or(("partitioner", String::new()), |e| (e.property, e.value));
                let reason =
                    "the topic is in use with other settings; a topic keeps those of its first handle";
                return Err(refused(property, &value, reason));
            }
            topic
        } else {
            producer.topic_with_settings(name, shared.topic_settings(), any_name)
        };
        if let Some(linger) = Linger::of_topic(&config) {
            topic.set_linger(linger);
        }
        Ok(topic)
    }
}

fn refused(property: &str, value: &str, reason: &'static str) -> ConfigError {
    let kind = ConfigErrorKind::Refused { value: value.to_owned(), reason };
    ConfigError { property: property.to_owned(), kind, place: None }
}

impl fmt::Debug for TopicBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicBuilder")
            .field("name", &self.name)
            .field("own", &self.own)
            .field("partitioner", &self.partitioner)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
