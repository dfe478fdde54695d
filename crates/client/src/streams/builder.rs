//! The builder of a member of a streams group.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use ottla_core::{
    admin::groups::topology_description::TopologyDescription,
    config::EffectiveConfig,
    error::Result,
    event::EventQueue,
    observer::Observer,
    stats::Statistics,
    streams::{settings::StreamsSettings, shared::StreamsShared, topology::Topology},
};
use ottla_net::{PassedCredentials, Transport};

use super::{Inner, StreamsMember};
use crate::{config::Config, logging::Logger, producer::config_error, start};

/// Creates a [`StreamsMember`] with an endpoint, tags or callbacks.
pub struct StreamsMemberBuilder<'a> {
    config: &'a Config,
    topology: Topology,
    description: Option<TopologyDescription>,
    process_id: Option<String>,
    endpoint: Option<(String, u16)>,
    tags: Vec<(String, String)>,
    hooks: start::Hooks,
}

impl<'a> StreamsMemberBuilder<'a> {
    pub(super) fn new(config: &'a Config, topology: Topology) -> Self {
        let hooks = start::Hooks::default();
        Self {
            config,
            topology,
            description: None,
            process_id: None,
            endpoint: None,
            tags: Vec::new(),
            hooks,
        }
    }

    /// Sets the description of the topology's nodes, for people and tools. The member sends it when the coordinator asks for it,
    /// which needs a plug-in of the brokers that stores it (KIP-1331, Kafka 4.4). Everyone who may describe the group can read it.
    #[must_use]
    pub fn topology_description(mut self, description: TopologyDescription) -> Self {
        self.description = Some(description);
        self
    }

    /// Sets the ID of the process, which members that share its state on disk have in common. The default is the member ID.
    #[must_use]
    pub fn process_id(mut self, process_id: impl Into<String>) -> Self {
        self.process_id = Some(process_id.into());
        self
    }

    /// Sets host and port under which other processes of the application reach this one. The members learn the partitions behind
    /// each endpoint ([`StreamsEvent::Endpoints`](super::StreamsEvent::Endpoints)).
    #[must_use]
    pub fn endpoint(mut self, host: impl Into<String>, port: u16) -> Self {
        self.endpoint = Some((host.into(), port));
        self
    }

    /// Adds a tag by which the coordinator spreads standby tasks, for example over zones.
    #[must_use]
    pub fn client_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((key.into(), value.into()));
        self
    }

    /// Starts the member, which has not joined. It connects in the background.
    ///
    /// # Errors
    ///
    /// The configuration contradicts itself, has no `bootstrap.servers` or no `group.id`, or the topology or its description is
    /// wrong.
    pub fn build(self) -> Result<StreamsMember> {
        // The session is a setting of the brokers, as that of a share consumer.
        let config = EffectiveConfig::share_consumer(&self.config.raw).map_err(config_error)?;
        config.require_servers().map_err(config_error)?;
        let settings = StreamsSettings {
            process_id: self.process_id.map(Arc::from),
            endpoint: self.endpoint,
            client_tags: self.tags.into_iter().collect(),
            ..StreamsSettings::new(&config, self.topology)?.with_description(self.description)?
        };
        let shared = Arc::new(StreamsShared::new(settings));
        let events = Arc::new(EventQueue::default());
        let logger = Logger::new(start::new_name(&config, "streams-member"), &self.config.raw);
        let client = start::client(
            &config,
            logger,
            start::Role::StreamsMember(Arc::clone(&shared)),
            Arc::clone(&events),
            self.hooks,
            start::seeded_rng().next_u64(),
        )?;
        let inner = Inner {
            shared,
            client: Arc::new(client),
            events,
            has_joined: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        };
        Ok(StreamsMember { inner: Arc::new(inner) })
    }
}

start::hook_setters!(StreamsMemberBuilder<'_>);

impl fmt::Debug for StreamsMemberBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamsMemberBuilder").field("topology", &self.topology).finish_non_exhaustive()
    }
}
