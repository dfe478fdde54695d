//! The settings of a group member.

use std::{sync::Arc, time::Duration};

use super::{
    assignor::{Assignor, RebalanceProtocol, Strategy, custom::CustomAssignor},
    shared::GroupShared,
};
use crate::{
    config::EffectiveConfig,
    error::{Error, ErrorKind},
};

/// The protocol between members and coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupProtocol {
    /// The classic protocol: the group's leader assigns.
    #[default]
    Classic,
    /// The consumer protocol (KIP-848): the coordinator assigns.
    Consumer,
}

/// The settings of a group member.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// `group.id`.
    pub group_id: Arc<str>,
    /// `group.instance.id`.
    pub instance_id: Option<String>,
    /// `group.protocol`.
    pub group_protocol: GroupProtocol,
    /// `group.remote.assignor`: the assignor that a coordinator of the consumer protocol uses; `None` if it chooses.
    pub remote_assignor: Option<String>,
    /// `group.protocol.type`.
    pub protocol_type: String,
    /// `partition.assignment.strategy`, the preferred one first; at least one.
    pub assignors: Vec<Strategy>,
    /// `session.timeout.ms`.
    pub session_timeout: Duration,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// `max.poll.interval.ms`, which the broker takes as the rebalance timeout.
    pub max_poll_interval: Duration,
    /// True if stored offsets are committed automatically (`enable.auto.commit`).
    pub auto_commit: bool,
    /// `auto.commit.interval.ms`; `None` if offsets are committed only when partitions are given up.
    pub auto_commit_interval: Option<Duration>,
    /// `topic.metadata.propagation.max.ms`: the time in which all brokers learn of a new topic.
    pub topic_propagation: Duration,
    /// `client.rack`.
    pub rack: Option<Arc<str>>,
    /// The timeout of a request that the coordinator responds to at once (`socket.timeout.ms`).
    pub request_timeout: Duration,
    /// The first and the longest wait before a failed request is repeated.
    pub backoff: (Duration, Duration),
    /// The state that the application's threads share with the member.
    pub shared: Arc<GroupShared>,
}

impl GroupSettings {
    /// Reads the settings from the configuration. Error: why the consumer can't be a member of a group.
    pub fn new(config: &EffectiveConfig<'_>) -> Result<Self, Error> {
        Self::with_assignors(config, &[])
    }

    /// Reads the settings from the configuration, whose `partition.assignment.strategy` may name these assignors of the
    /// application. Error: why the consumer can't be a member of a group.
    pub fn with_assignors(config: &EffectiveConfig<'_>, custom: &[CustomAssignor]) -> Result<Self, Error> {
        let Some(group_id) = config.non_empty("group.id") else {
            return Err(invalid(
                "`group.id` is not set; a consumer that subscribes to topics needs it".to_owned(),
            ));
        };
        let group_protocol = match config.text("group.protocol") {
            "consumer" => GroupProtocol::Consumer,
            _ => GroupProtocol::Classic,
        };
        let first_backoff = config.millis("retry.backoff.ms");
        Ok(Self {
            group_id: group_id.into(),
            instance_id: config.non_empty("group.instance.id"),
            group_protocol,
            remote_assignor: config.non_empty("group.remote.assignor"),
            protocol_type: config.text("group.protocol.type").to_owned(),
            assignors: assignors(config.text("partition.assignment.strategy"), custom)?,
            session_timeout: config.millis("session.timeout.ms"),
            heartbeat_interval: config.millis("heartbeat.interval.ms"),
            max_poll_interval: config.millis("max.poll.interval.ms"),
            auto_commit: config.boolean("enable.auto.commit"),
            auto_commit_interval: config.positive_millis("auto.commit.interval.ms"),
            topic_propagation: config.millis("topic.metadata.propagation.max.ms"),
            rack: config.non_empty("client.rack").map(Arc::from),
            request_timeout: config.millis("socket.timeout.ms"),
            backoff: (first_backoff, config.millis("retry.backoff.max.ms").max(first_backoff)),
            shared: Arc::default(),
        })
    }

    /// Returns the settings of a member of the group `group_id` with librdkafka's defaults.
    pub fn with_defaults(group_id: impl Into<Arc<str>>) -> Self {
        Self {
            group_id: group_id.into(),
            instance_id: None,
            group_protocol: GroupProtocol::Classic,
            remote_assignor: None,
            protocol_type: "consumer".to_owned(),
            assignors: vec![Assignor::Range.into(), Assignor::RoundRobin.into()],
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            max_poll_interval: Duration::from_secs(300),
            auto_commit: true,
            auto_commit_interval: Some(Duration::from_secs(5)),
            topic_propagation: Duration::from_secs(30),
            rack: None,
            request_timeout: Duration::from_secs(60),
            backoff: (Duration::from_millis(100), Duration::from_secs(1)),
            shared: Arc::default(),
        }
    }

    /// Returns how the member gives partitions up. Members of the consumer protocol are cooperative. One eager assignor in
    /// the list makes the member eager, as in the Java client: the group may choose that assignor at any rebalance.
    pub fn protocol(&self) -> RebalanceProtocol {
        let is_cooperative = self.group_protocol == GroupProtocol::Consumer
            || self.assignors.iter().all(Strategy::is_cooperative);
        if is_cooperative { RebalanceProtocol::Cooperative } else { RebalanceProtocol::Eager }
    }
}

/// Returns the assignors of a comma-separated list of names.
fn assignors(names: &str, custom: &[CustomAssignor]) -> Result<Vec<Strategy>, Error> {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let own = custom.iter().find(|assignor| assignor.name() == name).cloned();
        own.map(Strategy::Custom).or_else(|| Assignor::from_name(name).map(Strategy::BuiltIn))
    };
    let assignors = names.map(|name| {
        find(name).ok_or_else(|| {
            let known = Assignor::ALL.iter().map(|assignor| assignor.name());
            let known: Vec<_> = known.chain(custom.iter().map(CustomAssignor::name)).collect();
            let known = known.join(", ");
            invalid(format!("`partition.assignment.strategy` has no assignor `{name}`; use some of: {known}"))
        })
    });
    let assignors = assignors.collect::<Result<Vec<_>, Error>>()?;
    if assignors.is_empty() {
        return Err(invalid(
            "`partition.assignment.strategy` is empty; a group needs an assignor".to_owned(),
        ));
    }
    Ok(assignors)
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Profile, RawConfig};

    #[test]
    fn defaults_are_those_of_the_properties() {
        let mut raw = RawConfig::new(Profile::Librdkafka);
        raw.set("group.id", "g").expect("it is a property");
        let config = EffectiveConfig::consumer(&raw).expect("nothing contradicts");
        let of_properties = GroupSettings::new(&config).expect("it has a group");
        assert_eq!(format!("{of_properties:?}"), format!("{:?}", GroupSettings::with_defaults("g")));
    }

    #[test]
    fn mixed_strategies_make_the_member_eager() {
        for (names, expected) in [
            ("cooperative-sticky", RebalanceProtocol::Cooperative),
            ("cooperative-sticky, range", RebalanceProtocol::Eager),
            ("roundrobin,range", RebalanceProtocol::Eager),
        ] {
            let assignors = assignors(names, &[]).expect("they are built in");
            let settings = GroupSettings { assignors, ..GroupSettings::with_defaults("g") };
            assert_eq!(settings.protocol(), expected, "{names}");
        }
    }

    #[test]
    fn strategy_without_a_known_assignor_is_refused() {
        for (names, expected) in
            [("", "is empty"), (" , ", "is empty"), ("range,Range", "no assignor `Range`")]
        {
            let error = assignors(names, &[]).expect_err("it is refused");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
