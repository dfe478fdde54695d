//! The builder of a share consumer: its configuration and its callbacks.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use ottla_core::{
    config::EffectiveConfig,
    error::Result,
    event::EventQueue,
    lock::Mutex,
    observer::Observer,
    share::{held::HeldRecords, settings::ShareSettings, shared::ShareShared},
    stats::Statistics,
};
use ottla_net::{PassedCredentials, Transport};

use super::{Inner, ShareConsumer};
use crate::{config::Config, logging::Logger, producer::config_error, start};

/// Creates a [`ShareConsumer`] with callbacks.
pub struct ShareConsumerBuilder<'a> {
    config: &'a Config,
    hooks: start::Hooks,
    needs_servers: bool,
}

impl<'a> ShareConsumerBuilder<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, hooks: start::Hooks::default(), needs_servers: true }
    }

    /// Accepts a configuration without `bootstrap.servers`, for the C library.
    #[cfg(feature = "capi")]
    #[doc(hidden)]
    #[must_use]
    pub const fn servers_later(mut self) -> Self {
        self.needs_servers = false;
        self
    }

    /// Starts the share consumer, without a subscription. It connects in the background.
    ///
    /// Error: the configuration contradicts itself, or has no `bootstrap.servers` or no `group.id`.
    pub fn build(self) -> Result<ShareConsumer> {
        let config = EffectiveConfig::share_consumer(&self.config.raw).map_err(config_error)?;
        if self.needs_servers {
            config.require_servers().map_err(config_error)?;
        }
        let shared = Arc::new(ShareShared::new(ShareSettings::new(&config)?));
        let events = Arc::new(EventQueue::default());
        let logger = Logger::new(start::new_name(&config, "share-consumer"), &self.config.raw);
        let client = start::client(
            &config,
            logger,
            start::Role::ShareConsumer(Arc::clone(&shared)),
            Arc::clone(&events),
            self.hooks,
            start::seeded_rng().next_u64(),
        )?;
        let inner = Inner {
            shared,
            client: Arc::new(client),
            events,
            held: HeldRecords::default(),
            topics: Mutex::default(),
            is_closing: AtomicBool::new(false),
        };
        Ok(ShareConsumer { inner: Arc::new(inner) })
    }
}

start::hook_setters!(ShareConsumerBuilder<'_>);

impl fmt::Debug for ShareConsumerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareConsumerBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
