//! The state that all clones of a producer share, and the drop of the last one.

use std::{future::poll_fn, io::Write, sync::Arc, time::Duration};

use ottla_core::{
    cluster::command::Command, config::RawConfig, error::Result, event::EventQueue,
    produce::shared::ProducerShared, waiters::Waiter,
};
use ottla_net::is_io_thread;

use crate::{
    start,
    wait::{check_may_wait, wait_for},
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
}

impl Inner {
    /// Closes without flushing. A last push of client metrics may take `last_push`.
    pub(super) fn end(&self, timeout: Duration, last_push: Duration) -> Result<()> {
        self.shared.close(None);
        // Besides the last push, closing waits for no broker, only for the I/O threads.
        self.client.end(timeout, last_push)
    }

    /// Waits for the delivery of queued records, if this thread may block and the I/O threads are alive.
    fn flush_at_drop(&self) {
        let may_wait = !std::thread::panicking()
            && !is_io_thread()
            && check_may_wait("drop").is_ok()
            && self.client.is_of_this_process();
        if may_wait && !self.drop_timeout.is_zero() && self.shared.queued_messages() > 0 {
            let _flushing = Flushing::start(self);
            let mut waiter = Waiter::default();
            let flushed = poll_fn(|context| self.shared.poll_flushed(&mut waiter, context));
            wait_for(flushed, self.drop_timeout);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.shared.is_closed() || self.client.is_closing() {
            return;
        }
        self.flush_at_drop();
        let left = self.shared.queued_messages();
        if left > 0 && self.is_unobserved {
            // Nothing else reports the loss. A closed stderr is no reason to panic in a drop.
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
    pub(super) fn start(inner: &Inner) -> Self {
        inner.shared.start_flush();
        let _ = inner.client.command(Command::Flush);
        Self(Arc::clone(&inner.shared))
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        self.0.end_flush();
    }
}
