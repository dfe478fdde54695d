//! The settings of the cluster actor.

use std::{sync::Arc, time::Duration};

use ottla_protocol::generated::metadata::{MetadataResponse, response::Topic};

use crate::{
    config::{EffectiveConfig, TopicPatterns},
    error::{Error, ErrorKind},
    event::Event,
    group::GroupSettings,
    sasl::SaslShared,
    share::shared::ShareShared,
    stats::StatisticsSink,
    streams::shared::StreamsShared,
    telemetry::settings::TelemetrySettings,
};

/// The settings of the cluster actor.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// `bootstrap.servers` or `bootstrap.controllers`.
    pub bootstrap: Vec<(String, u16)>,
    /// The servers are controllers (KIP-919).
    pub of_controllers: bool,
    /// What is wrong with `bootstrap.servers`, to be reported as the client starts.
    pub wrong_servers: Vec<Event>,
    /// `topic.metadata.refresh.interval.ms`; `None` refreshes only on demand.
    pub refresh_interval: Option<Duration>,
    /// `topic.metadata.refresh.sparse=false`: the timer asks for all topics of the cluster.
    pub refresh_all_topics: bool,
    /// `topic.blacklist`: these topics are left out of every metadata response.
    pub hidden_topics: TopicPatterns,
    /// `exclude.internal.topics`: patterns of subscriptions match no internal topic.
    pub exclude_internal_topics: bool,
    /// `topic.metadata.refresh.fast.interval.ms`: the first wait while something is unknown.
    pub fast_refresh: Duration,
    /// `retry.backoff.max.ms`: the longest wait while something is unknown.
    pub fast_refresh_max: Duration,
    /// `socket.timeout.ms`.
    pub request_timeout: Duration,
    /// `allow.auto.create.topics`.
    pub auto_create_topics: bool,
    /// `metadata.recovery.rebootstrap.trigger.ms`; `None` if `metadata.recovery.strategy` is `none`.
    pub rebootstrap_after: Option<Duration>,
    /// `metadata.cluster.check.enable`, unless `metadata.recovery.strategy` is `none`: brokers check that they are the node and
    /// the cluster that the client expects (KIP-1242).
    pub checks_cluster: bool,
    /// `metadata.leader.discovery`: go to a new leader as soon as the old one names it (KIP-951).
    pub leader_discovery: bool,
    /// The membership in the group of `group.id`, for a consumer that may subscribe to topics.
    pub group: Option<GroupSettings>,
    /// The state of a share consumer.
    pub share: Option<Arc<ShareShared>>,
    /// The state of a member of a streams group.
    pub streams: Option<Arc<StreamsShared>>,
    /// The mechanism and the credentials of SASL, if it is in use.
    pub sasl: Option<Arc<SaslShared>>,
    /// `statistics.interval.ms`, and the sink of the snapshots.
    pub statistics: Option<StatisticsSettings>,
    /// `enable.metrics.push`: client telemetry.
    pub telemetry: Option<TelemetrySettings>,
}

/// Periodic statistics.
#[derive(Clone)]
pub struct StatisticsSettings {
    /// `statistics.interval.ms`.
    pub interval: Duration,
    /// Takes the snapshots.
    pub sink: Arc<dyn StatisticsSink>,
}

impl std::fmt::Debug for StatisticsSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StatisticsSettings(every {:?})", self.interval)
    }
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            bootstrap: Vec::new(),
            of_controllers: false,
            wrong_servers: Vec::new(),
            refresh_interval: Some(Duration::from_secs(300)),
            refresh_all_topics: false,
            hidden_topics: TopicPatterns::default(),
            exclude_internal_topics: true,
            fast_refresh: Duration::from_millis(100),
            fast_refresh_max: Duration::from_secs(1),
            request_timeout: Duration::from_secs(60),
            auto_create_topics: true,
            rebootstrap_after: Some(Duration::from_secs(300)),
            checks_cluster: true,
            leader_discovery: true,
            group: None,
            share: None,
            streams: None,
            sasl: None,
            statistics: None,
            telemetry: None,
        }
    }
}

impl ClusterSettings {
    /// Reads the settings from the configuration. There are no statistics, because the sink is missing, no telemetry,
    /// because the wall clock is missing, no group, share group or streams group, which only their members have, and no SASL, whose state is shared.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        let fast_refresh = config.millis("topic.metadata.refresh.fast.interval.ms");
        let rebootstraps = config.text("metadata.recovery.strategy") != "none";
        Self {
            wrong_servers: wrong_servers(config),
            bootstrap: config.servers().into_iter().map(|server| (server.host, server.port)).collect(),
            of_controllers: config.has_controllers(),
            refresh_interval: config.positive_millis("topic.metadata.refresh.interval.ms"),
            refresh_all_topics: !config.boolean("topic.metadata.refresh.sparse"),
            hidden_topics: TopicPatterns::parse(config.text("topic.blacklist")).unwrap_or_default(),
            exclude_internal_topics: config.boolean("exclude.internal.topics"),
            fast_refresh,
            fast_refresh_max: config.millis("retry.backoff.max.ms").max(fast_refresh),
            request_timeout: config.millis("socket.timeout.ms"),
            auto_create_topics: config.boolean("allow.auto.create.topics"),
            rebootstrap_after: rebootstraps
                .then(|| config.millis("metadata.recovery.rebootstrap.trigger.ms")),
            checks_cluster: rebootstraps && config.boolean("metadata.cluster.check.enable"),
            leader_discovery: config.boolean("metadata.leader.discovery"),
            group: None,
            share: None,
            streams: None,
            sasl: None,
            statistics: None,
            telemetry: None,
        }
    }

    /// Returns the names of the existing topics in a response that patterns of subscriptions may match.
    pub(super) fn matchable(&self, response: &MetadataResponse) -> Vec<Arc<str>> {
        let is_excluded = |topic: &Topic| topic.is_internal && self.exclude_internal_topics;
        let topics =
            response.topics.iter().filter(|topic| !topic.error_code.is_error() && !is_excluded(topic));
        let names = topics.filter_map(|topic| topic.name.as_deref());
        names.filter(|name| !self.hidden_topics.matches(name)).map(Arc::from).collect()
    }
}

/// Returns an error for each unusable entry of `bootstrap.servers`, and one more if no entry is usable. Without the property
/// there is none: the application may add brokers.
fn wrong_servers(config: &EffectiveConfig<'_>) -> Vec<Event> {
    let unusable = config.unusable_servers().into_iter();
    let mut events: Vec<_> =
        unusable.map(|reason| Event::Error(Error::new(ErrorKind::Resolve, reason))).collect();
    let (name, list) = config.server_list();
    if config.servers().is_empty() && !list.is_empty() {
        let detail = format!("`{name}` has no usable entry");
        events.push(Event::AllBrokersDown(Error::new(ErrorKind::AllBrokersDown, detail)));
    }
    events
}

#[cfg(test)]
mod tests {
    use ottla_protocol::error_code::ErrorCode;

    use super::*;

    #[test]
    fn patterns_match_no_hidden_failed_or_internal_topics() {
        let topic = |name: &str, is_internal, error_code| Topic {
            name: Some(name.to_owned()),
            is_internal,
            error_code,
            ..Topic::default()
        };
        let response = MetadataResponse {
            topics: vec![
                topic("orders", false, ErrorCode::NONE),
                topic("secret", false, ErrorCode::NONE),
                topic("lost", false, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
                topic("__consumer_offsets", true, ErrorCode::NONE),
            ],
            ..MetadataResponse::default()
        };
        let hidden_topics = TopicPatterns::parse("^sec").unwrap();
        let mut settings = ClusterSettings { hidden_topics, ..ClusterSettings::default() };
        assert_eq!(settings.matchable(&response), ["orders".into()]);
        settings.exclude_internal_topics = false;
        assert_eq!(settings.matchable(&response), ["orders".into(), "__consumer_offsets".into()]);
    }
}
