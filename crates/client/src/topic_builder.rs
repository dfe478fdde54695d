//! A topic with settings of its own.

use std::sync::Arc;

use ottla_core::{
    config::{
        ConfigError, ConfigErrorKind, RawConfig, TopicView,
        table::{self, Scope, Side},
    },
    produce::{order::QueueOrder, partitioner::Partitioner},
};

use crate::{
    producer::{Producer, Topic},
    start,
};

/// Makes a [`Topic`] with settings of its own; everything else it shares with the producer's other topics: connections,
/// queue, flush, purge, reports, statistics, and the idempotent producer's identity.
///
/// These may differ: `acks`, `request.timeout.ms`, `message.timeout.ms`, `compression.type`, `compression.level`,
/// `partitioner`, `queuing.strategy` and `broker.linger.ms`. They are those of the topic and not of the handle: a topic keeps the settings with
/// which it was first used, but for `broker.linger.ms`, of which the last word counts.
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
#[derive(Debug)]
pub struct TopicBuilder<'a> {
    producer: &'a Producer,
    name: &'a str,
    own: RawConfig,
    /// What it does not say has the property's default, and not what the producer's configuration says.
    says_all: bool,
    partitioner: Option<Partitioner>,
    order: Option<QueueOrder>,
}

/// Whether a topic may have this configuration with a client that has that one, as [`TopicBuilder::config`] takes it.
pub fn check_topic_config(client: &RawConfig, own: &RawConfig) -> Result<(), ConfigError> {
    TopicView::new(&client.without_topics(), own).map(drop)
}

impl<'a> TopicBuilder<'a> {
    pub(crate) const fn new(producer: &'a Producer, name: &'a str, own: RawConfig) -> Self {
        Self { producer, name, own, says_all: false, partitioner: None, order: None }
    }

    /// Sets a property of the topic. The error names it, and says why where a topic can't have its own.
    pub fn set(mut self, property: &str, value: &str) -> Result<Self, ConfigError> {
        self.own.set(property, value)?;
        let found = table::find(Scope::Topic, property.strip_prefix("topic.").unwrap_or(property));
        let reason = match found {
            Some(found) if found.scope != Scope::Topic => {
                "it holds for all topics of a producer; make a producer of its own for the topic"
            }
            Some(found) if found.side == Side::Consumer => "it belongs to a consumer",
            _ => return Ok(self),
        };
        Err(refused(property, value, reason))
    }

    /// Takes a whole configuration of a topic: what it doesn't say has its default, whatever the producer's configuration
    /// says of topics.
    #[must_use]
    pub fn config(mut self, own: RawConfig) -> Self {
        self.own = own;
        self.says_all = true;
        self
    }

    /// Takes a partitioner for the topic, of the application or by name.
    #[must_use]
    pub fn partitioner(mut self, partitioner: Partitioner) -> Self {
        self.partitioner = Some(partitioner);
        self
    }

    /// Lets what waits in a partition be sent in another order than that in which it came, whatever `queuing.strategy` says.
    /// What is already in a request, or waits to be sent again, is not put in order any more.
    #[must_use]
    pub fn order(mut self, order: QueueOrder) -> Self {
        self.order = Some(order);
        self
    }

    /// The handle. The error says what contradicts the producer's configuration, or that the topic is in use already with
    /// other settings.
    pub fn build(self) -> Result<Topic, ConfigError> {
        let Self { producer, name, own, says_all, partitioner, order } = self;
        let view = match says_all {
            true => TopicView::new(&producer.config().without_topics(), &own)?,
            false => TopicView::new(producer.config(), &own)?,
        };
        let shared = producer.shared();
        let said = own.iter().find(|entry| entry.is_modified && entry.property != "broker.linger.ms");
        let partitioner = match partitioner {
            Some(own) => Some(Arc::new(own)),
            None if says_all || own.is_modified("partitioner") => Some(Arc::new(view.partitioner.into())),
            None => None,
        };
        let topic = if says_all || said.is_some() || partitioner.is_some() || order.is_some() {
            let settings =
                start::topic_settings(&view, shared.topic_settings(), partitioner, order.map(Arc::new));
            let topic = producer.topic_with_settings(name, &settings);
            if !topic.settings().is_same(&settings) {
                let (property, value) =
                    said.map_or(("partitioner", String::new()), |e| (e.property, e.value));
                let reason = "the topic is in use with other settings; a topic keeps those with which it was first used";
                return Err(refused(property, &value, reason));
            }
            topic
        } else {
            producer.topic(name)
        };
        if let Some(linger) = view.linger {
            topic.set_linger(linger);
        }
        Ok(topic)
    }
}

fn refused(property: &str, value: &str, reason: &'static str) -> ConfigError {
    let kind = ConfigErrorKind::Refused { value: value.to_owned(), reason };
    ConfigError { property: property.to_owned(), kind, place: None }
}
