//! The builder of a consumer: its configuration and its callbacks.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
};

use ottla_core::{
    config::EffectiveConfig,
    error::{Error, ErrorKind, Result},
    event::EventQueue,
    fetch::{settings::ConsumerSettings, shared::ConsumerShared},
    group::{
        GroupProtocol, GroupSettings,
        assignor::custom::{CustomAssignor, PartitionAssignor},
    },
    lock::Mutex,
    observer::Observer,
    stats::Statistics,
    wall_clock::WallClock,
};
use ottla_net::{PassedCredentials, Transport, clock};

use super::{Consumer, Inner, rebalances::Questions, subscription::Subscription};
use crate::{
    config::Config,
    interceptors::{Chain, ConsumerInterceptor},
    logging::Logger,
    producer::config_error,
    start,
};

/// Creates a [`Consumer`] with callbacks.
pub struct ConsumerBuilder<'a> {
    config: &'a Config,
    hooks: start::Hooks,
    assignors: Vec<Arc<dyn PartitionAssignor>>,
    interceptors: Vec<Arc<dyn ConsumerInterceptor>>,
    needs_servers: bool,
}

impl<'a> ConsumerBuilder<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self {
            config,
            hooks: start::Hooks::default(),
            assignors: Vec::new(),
            interceptors: Vec::new(),
            needs_servers: true,
        }
    }

    /// Accepts a configuration without `bootstrap.servers`. The consumer connects once
    /// [`Consumer::add_bootstrap_servers`] names a server.
    #[must_use]
    pub const fn servers_later(mut self) -> Self {
        self.needs_servers = false;
        self
    }

    /// Registers an assignor that `partition.assignment.strategy` may name, beside the built-in ones. Several can be
    /// registered. A consumer of the classic protocol that leads its group calls it.
    #[must_use]
    pub fn assignor(mut self, assignor: impl PartitionAssignor + 'static) -> Self {
        self.assignors.push(Arc::new(assignor));
        self
    }

    /// Adds an interceptor, which sees every record that the application gets, and every commit (KIP-42). Several are called in
    /// the order in which they were added. If one panics, the client goes on and reports
    /// [`ErrorKind::CallbackPanicked`] as an event.
    #[must_use]
    pub fn interceptor(mut self, interceptor: impl ConsumerInterceptor + 'static) -> Self {
        self.interceptors.push(Arc::new(interceptor));
        self
    }

    /// Starts the consumer, without partitions. It connects in the background.
    ///
    /// Error: the configuration contradicts itself, or has no `bootstrap.servers`; an [assignor](Self::assignor) has an invalid
    /// name, or two of them have the same.
    pub fn build(mut self) -> Result<Consumer> {
        self.hooks.others = !self.assignors.is_empty() || !self.interceptors.is_empty();
        let assignors = registered(self.assignors)?;
        let config = EffectiveConfig::consumer(&self.config.raw).map_err(config_error)?;
        if self.needs_servers {
            config.require_servers().map_err(config_error)?;
        }
        let shared =
            Arc::new(ConsumerShared::new(ConsumerSettings::new(&config, WallClock::new(clock::unix_nanos))));
        let events = Arc::new(EventQueue::default());
        let seed = start::seeded_rng().next_u64();
        let logger = Logger::new(start::new_name(&config, "consumer"), &self.config.raw);
        let group = GroupSettings::with_assignors(&config, &assignors);
        let unused = unused_assignors(&assignors, &group);
        let of_group = group.as_ref().map(|group| Arc::clone(&group.shared)).unwrap_or_default();
        let is_classic = group.as_ref().is_ok_and(|group| group.group_protocol == GroupProtocol::Classic);
        let refusal = group.as_ref().err().cloned();
        let interceptors = Arc::new(Chain::new(self.interceptors, Arc::clone(&events)));
        let questions = Questions::new(Arc::clone(&events), Arc::clone(&interceptors));
        let subscription = Subscription::new(refusal, is_classic, of_group, questions);
        if !interceptors.is_empty() {
            // Automatic commits are reported to the sink.
            subscription.group().set_sink(Arc::clone(subscription.questions()) as _);
        }
        let client = start::client(
            &config,
            logger,
            start::Role::Consumer(Arc::clone(&shared), group.ok().map(Box::new)),
            Arc::clone(&events),
            self.hooks,
            seed,
        )?;
        let warnings = client.warnings().iter().cloned().chain(unused).collect();
        let inner = Inner {
            shared,
            client: Arc::new(client),
            events,
            single: Mutex::default(),
            subscription,
            warnings,
            instance_id: config.non_empty("group.instance.id"),
            last_route: AtomicU64::new(0),
            interceptors,
        };
        Ok(Consumer { inner: Arc::new(inner) })
    }
}

/// Checks the application's assignors.
fn registered(assignors: Vec<Arc<dyn PartitionAssignor>>) -> Result<Vec<CustomAssignor>> {
    let mut registered: Vec<CustomAssignor> = Vec::with_capacity(assignors.len());
    for assignor in assignors {
        let assignor = CustomAssignor::new(assignor)?;
        if registered.iter().any(|known| known.name() == assignor.name()) {
            let detail = format!("two registered assignors have the name \"{}\"", assignor.name());
            return Err(Error::new(ErrorKind::InvalidArgument, detail));
        }
        registered.push(assignor);
    }
    Ok(registered)
}

/// Returns a warning for each registered assignor that the consumer never uses.
fn unused_assignors(registered: &[CustomAssignor], group: &Result<GroupSettings>) -> Vec<String> {
    let Ok(group) = group else { return Vec::new() };
    let is_classic = group.group_protocol == GroupProtocol::Classic;
    let is_used = |name: &str| is_classic && group.assignors.iter().any(|used| used.name() == name);
    let unused = registered.iter().map(CustomAssignor::name).filter(|name| !is_used(name));
    let warning = |name: &str| match is_classic {
        true => format!(
            "the assignor \"{name}\" is registered, but partition.assignment.strategy does not name it"
        ),
        false => format!(
            "the assignor \"{name}\" is not used: with group.protocol=consumer the coordinator assigns"
        ),
    };
    unused.map(warning).collect()
}

start::hook_setters!(ConsumerBuilder<'_>);

impl fmt::Debug for ConsumerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerBuilder")
            .field("config", &self.config)
            .field("hooks", &self.hooks)
            .field("assignors", &self.assignors.len())
            .field("interceptors", &self.interceptors.len())
            .field("servers_later", &!self.needs_servers)
            .finish()
    }
}
