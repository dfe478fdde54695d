//! The settings of a member of a streams group.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::topology::Topology;
use crate::{
    admin::groups::topology_description::TopologyDescription,
    config::EffectiveConfig,
    error::{Error, ErrorKind},
};

/// The settings of a member of a streams group.
#[derive(Clone, Debug)]
pub struct StreamsSettings {
    /// `group.id`: the application.
    pub group_id: Arc<str>,
    /// `group.instance.id`: the member is static.
    pub instance_id: Option<Arc<str>>,
    /// `client.rack`.
    pub rack: Option<Arc<str>>,
    /// `max.poll.interval.ms`: the time in which the application gives up revoked tasks; after it the coordinator removes the
    /// member.
    pub rebalance_timeout: Duration,
    /// `socket.timeout.ms`.
    pub request_timeout: Duration,
    /// The first and the longest wait before a failed request is repeated.
    pub backoff: (Duration, Duration),
    /// What the application processes.
    pub topology: Topology,
    /// The description of the topology's nodes, which is sent if the coordinator asks for it (KIP-1331).
    pub description: Option<TopologyDescription>,
    /// The process: its members share the state on its disk. `None` for an ID of the member's own.
    pub process_id: Option<Arc<str>>,
    /// Host and port under which other processes of the application reach this one.
    pub endpoint: Option<(String, u16)>,
    /// The tags by which the coordinator spreads standby tasks.
    pub client_tags: BTreeMap<String, String>,
}

impl StreamsSettings {
    /// Reads the settings from the configuration.
    ///
    /// # Errors
    ///
    /// There is no `group.id`, or the topology is wrong.
    pub fn new(config: &EffectiveConfig<'_>, topology: Topology) -> Result<Self, Error> {
        let Some(group_id) = config.non_empty("group.id") else {
            let detail = "`group.id` is not set; a member of a streams group needs it";
            return Err(Error::new(ErrorKind::InvalidArgument, detail));
        };
        topology.check()?;
        let first_backoff = config.millis("retry.backoff.ms");
        Ok(Self {
            instance_id: config.non_empty("group.instance.id").map(Arc::from),
            rack: config.non_empty("client.rack").map(Arc::from),
            rebalance_timeout: config.millis("max.poll.interval.ms"),
            request_timeout: config.millis("socket.timeout.ms"),
            backoff: (first_backoff, config.millis("retry.backoff.max.ms").max(first_backoff)),
            ..Self::with_defaults(group_id, topology)
        })
    }

    /// Sets the description of the topology's nodes.
    ///
    /// # Errors
    ///
    /// The description contradicts itself.
    pub fn with_description(self, description: Option<TopologyDescription>) -> Result<Self, Error> {
        description.as_ref().map_or(Ok(()), TopologyDescription::check)?;
        Ok(Self { description, ..self })
    }

    /// Returns the settings of a member of the group `group_id` with the defaults of the properties.
    pub fn with_defaults(group_id: impl Into<Arc<str>>, topology: Topology) -> Self {
        Self {
            group_id: group_id.into(),
            instance_id: None,
            rack: None,
            rebalance_timeout: Duration::from_secs(300),
            request_timeout: Duration::from_secs(60),
            backoff: (Duration::from_millis(100), Duration::from_secs(1)),
            topology,
            description: None,
            process_id: None,
            endpoint: None,
            client_tags: BTreeMap::new(),
        }
    }
}
