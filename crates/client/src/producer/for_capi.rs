//! Access for the C library, which uses the core itself.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    error::Result,
    event::EventQueue,
    produce::{shared::ProducerShared, topic::ProducerTopic},
};
use ottla_net::ClientHandle;

use crate::{sasl::Sasl, start};

use super::{Producer, Topic};

impl Producer {
    /// Returns the credentials of SASL, if it is in use.
    #[doc(hidden)]
    pub fn sasl(&self) -> Option<&Sasl> {
        self.inner.client.sasl()
    }

    /// Closes without flushing.
    pub fn end(&self, timeout: Duration) -> Result<()> {
        self.inner.end(timeout, start::last_push(timeout))
    }

    /// Returns the part that the producer shares with its I/O threads.
    #[doc(hidden)]
    #[inline]
    pub fn core(&self) -> &Arc<ProducerShared> {
        &self.inner.shared
    }

    /// Returns the handle to the client's actors.
    #[doc(hidden)]
    pub fn handle(&self) -> &ClientHandle {
        &self.inner.client
    }

    /// Returns the events of the client.
    #[doc(hidden)]
    pub fn events(&self) -> &Arc<EventQueue> {
        &self.inner.events
    }
}

impl Topic {
    /// Returns the core's producer and topic.
    #[doc(hidden)]
    #[inline]
    pub fn core(&self) -> (&ProducerShared, &Arc<ProducerTopic>) {
        (&self.inner.shared, &self.topic)
    }
}
