//! The builder of a producer: its configuration and its callbacks.

use std::{fmt, sync::Arc};

use ottla_core::{
    config::EffectiveConfig,
    error::Result,
    event::EventQueue,
    observer::Observer,
    produce::{
        partitioner::Partitioner,
        report::{DeliveryBatch, DeliverySink, NoReports},
        settings::ProducerSettings,
        shared::ProducerShared,
        transaction::api::FunctionNames,
    },
    stats::Statistics,
};
use ottla_net::{PassedCredentials, Transport};

use super::{Inner, Producer, config_error};
use crate::{
    config::Config,
    guard::Guard,
    interceptors::{Chain, Intercepted, ProducerInterceptor},
    logging::Logger,
    start,
    wait::in_callback,
};

/// Creates a [`Producer`] with callbacks.
pub struct ProducerBuilder<'a> {
    config: &'a Config,
    sink: Option<Arc<dyn DeliverySink>>,
    partitioner: Option<Partitioner>,
    interceptors: Vec<Arc<dyn ProducerInterceptor>>,
    hooks: start::Hooks,
    needs_servers: bool,
}

impl<'a> ProducerBuilder<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        let hooks = start::Hooks::default();
        Self { config, sink: None, partitioner: None, interceptors: Vec::new(), hooks, needs_servers: true }
    }

    /// Calls `on_delivery` with the reports of each batch, on an I/O thread. The function must not block; it may send
    /// records. If it panics, its records count as reported, and the client reports
    /// [`ErrorKind::CallbackPanicked`](crate::ErrorKind::CallbackPanicked) as an event.
    #[must_use]
    pub fn on_delivery(mut self, on_delivery: impl Fn(&DeliveryBatch) + Send + Sync + 'static) -> Self {
        self.sink = Some(Arc::new(Callback(on_delivery)));
        self
    }

    /// Passes the reports of each batch to `sink`, on an I/O thread.
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn DeliverySink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Accepts a configuration without `bootstrap.servers`. The producer queues records, and connects once
    /// [`Producer::add_bootstrap_servers`] names a server.
    #[must_use]
    pub const fn servers_later(mut self) -> Self {
        self.needs_servers = false;
        self
    }

    /// Replaces the partitioner of the configuration's property `partitioner`.
    #[must_use]
    pub fn partitioner(mut self, partitioner: Partitioner) -> Self {
        self.partitioner = Some(partitioner);
        self
    }

    /// Adds an interceptor, which sees every record before it is queued, and every delivery (KIP-42). Several are called in the
    /// order in which they were added. If one panics, the record goes on as it was before, and the client reports
    /// [`ErrorKind::CallbackPanicked`](crate::ErrorKind::CallbackPanicked) as an event.
    #[must_use]
    pub fn interceptor(mut self, interceptor: impl ProducerInterceptor + 'static) -> Self {
        self.interceptors.push(Arc::new(interceptor));
        self
    }

    /// Starts the producer. It connects in the background.
    ///
    /// Error: the configuration contradicts itself, or has no `bootstrap.servers`.
    pub fn build(mut self) -> Result<Producer> {
        self.hooks.others =
            self.sink.is_some() || self.partitioner.is_some() || !self.interceptors.is_empty();
        let config = EffectiveConfig::producer(&self.config.raw).map_err(config_error)?;
        if self.needs_servers {
            config.require_servers().map_err(config_error)?;
        }
        let mut settings = ProducerSettings::new(&config);
        settings.keep_opaques = self.sink.is_some() || !self.interceptors.is_empty();
        if let Some(partitioner) = self.partitioner {
            settings = settings.with_partitioner(partitioner);
        }
        let is_unobserved = self.sink.is_none();
        let logger = Logger::new(start::new_name(&config, "producer"), &self.config.raw);
        let events = Arc::new(EventQueue::default());
        let sink: Arc<dyn DeliverySink> = match self.sink {
            Some(sink) => Arc::new(Guarded { sink, guard: Guard(Arc::clone(&events)) }),
            None => Arc::new(NoReports),
        };
        let interceptors = Arc::new(Chain::new(self.interceptors, Arc::clone(&events)));
        let sink = match interceptors.is_empty() {
            true => sink,
            false => Arc::new(Intercepted { chain: Arc::clone(&interceptors), sink }),
        };
        let sink = Logger::before(&logger, sink);
        let mut rng = start::seeded_rng();
        let shared = Arc::new(ProducerShared::new(settings, sink, rng.fork()));
        shared.transactions.iter().for_each(|transactions| transactions.set_names(FunctionNames::Rust));
        let client = Arc::new(start::client(
            &config,
            logger,
            start::Role::Producer(Arc::clone(&shared)),
            Arc::clone(&events),
            self.hooks,
            rng.next_u64(),
        )?);
        let drop_timeout = config.millis("drop.timeout.ms");
        let config = self.config.raw.clone();
        let inner = Inner { shared, client, events, config, drop_timeout, is_unobserved, interceptors };
        Ok(Producer { inner: Arc::new(inner) })
    }
}

start::hook_setters!(ProducerBuilder<'_>);

impl fmt::Debug for ProducerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerBuilder")
            .field("config", &self.config)
            .field("on_delivery", &self.sink.is_some())
            .field("partitioner", &self.partitioner)
            .field("interceptors", &self.interceptors.len())
            .field("hooks", &self.hooks)
            .field("servers_later", &!self.needs_servers)
            .finish()
    }
}

/// Reports a panic of the application's function as an event. The records have their report: the client goes on.
struct Guarded {
    sink: Arc<dyn DeliverySink>,
    guard: Guard,
}

impl DeliverySink for Guarded {
    fn deliver(&self, batch: DeliveryBatch) {
        self.guard.call("on_delivery", || self.sink.deliver(batch));
    }

    fn keeps_charge(&self) -> bool {
        self.sink.keeps_charge()
    }
}

struct Callback<F>(F);

impl<F: Fn(&DeliveryBatch) + Send + Sync> DeliverySink for Callback<F> {
    fn deliver(&self, batch: DeliveryBatch) {
        in_callback(|| (self.0)(&batch));
    }
}
