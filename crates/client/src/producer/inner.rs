//! The state that all clones of a producer share, and the drop of the last one.

use std::{future::poll_fn, io::Write, sync::Arc, time::Duration};

use crate::{
    background::spawn,
    interceptors::{Chain, ProducerInterceptor},
    start,
};
use ottla_core::{
    cluster::command::Command, config::RawConfig, error::Result, event::EventQueue,
    produce::shared::ProducerShared, waiters::Waiter,
};

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<ProducerShared>,
    pub(super) client: Arc<start::Client>,
    pub(super) events: Arc<EventQueue>,
    pub(super) config: RawConfig,
    pub(super) drop_timeout: Duration,
    /// There is no callback for delivery reports: only a [`Delivery`](super::Delivery) receives one.
    pub(super) is_unobserved: bool,
    pub(super) interceptors: Arc<Chain<dyn ProducerInterceptor>>,
}

impl Inner {
    /// Closes without flushing. A last push of client metrics may take `last_push`.
    pub(super) fn end(&self, timeout: Duration, last_push: Duration) -> Result<()> {
        self.shared.close(None);
        // Besides the last push, closing waits for no broker, only for the I/O threads.
        self.client.end(timeout, last_push)
    }

    /// Delivers queued records in the background, until `drop.timeout.ms` has passed.
    fn flush_at_drop(&self) {
        let rest = Rest {
            shared: Arc::clone(&self.shared),
            client: Arc::clone(&self.client),
            drop_timeout: self.drop_timeout,
            is_unobserved: self.is_unobserved,
        };
        let may_flush = !std::thread::panicking() && self.client.is_of_this_process();
        if !may_flush || self.drop_timeout.is_zero() || self.shared.queued_messages() == 0 {
            return drop(rest);
        }
        spawn(async move {
            let flushing = Flushing::start(&rest.shared, &rest.client);
            let mut waiter = Waiter::default();
            let flushed = poll_fn(|context| rest.shared.poll_flushed(&mut waiter, context));
            rest.client.within(rest.drop_timeout, flushed).await;
            drop(flushing);
        });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.shared.is_closed() && !self.client.is_closing() {
            self.flush_at_drop();
        }
    }
}

/// What a producer that was dropped still has to deliver.
struct Rest {
    shared: Arc<ProducerShared>,
    client: Arc<start::Client>,
    drop_timeout: Duration,
    is_unobserved: bool,
}

impl Drop for Rest {
    fn drop(&mut self) {
        let left = self.shared.queued_messages();
        if left > 0 && self.is_unobserved {
            // Nothing else reports the loss. A closed stderr is not a reason to panic in a drop.
            let _ = writeln!(
                std::io::stderr(),
                "ottla: a producer was dropped and {left} of its messages may not be delivered \
                 (drop.timeout.ms={}); call Producer::close with more time before",
                self.drop_timeout.as_millis()
            );
        }
    }
}

/// Disables the linger for as long as it lives.
pub(super) struct Flushing(Arc<ProducerShared>);

impl Flushing {
    pub(super) fn start(shared: &Arc<ProducerShared>, client: &start::Client) -> Self {
        shared.start_flush();
        let _ = client.command(Command::Flush);
        Self(Arc::clone(shared))
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        self.0.end_flush();
    }
}
