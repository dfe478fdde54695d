//! Access for the C library, which uses the core itself.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    completion::Waiting,
    error::Result,
    event::EventQueue,
    share::{acquired::AcquiredRecords, held::HeldRecords, shared::ShareShared},
};
use ottla_net::ClientHandle;

use super::{ShareConsumer, poll::BlockedPoll};
use crate::{sasl::Sasl, start, wait::wait_for};

impl ShareConsumer {
    /// Returns the credentials of SASL, if it is in use.
    #[doc(hidden)]
    pub fn sasl(&self) -> Option<&Sasl> {
        self.inner.client.sasl()
    }

    /// Returns the part that the consumer shares with its I/O threads.
    #[doc(hidden)]
    pub fn core(&self) -> &Arc<ShareShared> {
        &self.inner.shared
    }

    /// Returns the records that the application has.
    #[doc(hidden)]
    pub fn held(&self) -> &HeldRecords {
        &self.inner.held
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

    /// Closes the connections, without leaving the group.
    #[doc(hidden)]
    pub fn end(&self, timeout: Duration) -> Result<()> {
        self.forget_subscription();
        self.inner.shared.close();
        self.inner.client.end(timeout, start::last_push(timeout))
    }

    /// Ends the subscription for the calls of the application.
    #[doc(hidden)]
    pub fn forget_subscription(&self) {
        self.inner.topics.lock().clear();
    }

    /// Waits for a commit, at most for this duration.
    #[doc(hidden)]
    pub fn wait(&self, waiting: Waiting<()>, timeout: Option<Duration>) {
        let _ = wait_for(waiting, timeout.unwrap_or(Duration::MAX));
    }

    /// Sends the acknowledgements so far, and returns acquired records as soon as there are some; none when there are
    /// outcomes of acknowledgements or events, or after `timeout`. `continues` is true if the call continues an earlier
    /// poll.
    #[doc(hidden)]
    pub fn poll_acquired(&self, timeout: Duration, continues: bool) -> Result<Vec<Arc<AcquiredRecords>>> {
        if !continues {
            self.begin_poll();
        }
        let consumer = self.clone();
        let mut blocked = None;
        let taken = std::future::poll_fn(move |context| {
            let taken = consumer.take_acquired(context, true);
            if taken.is_pending() && blocked.is_none() {
                blocked = Some(BlockedPoll::begin(&consumer.inner));
            }
            taken
        });
        wait_for(taken, timeout).unwrap_or_else(|| Ok(Vec::new()))
    }
}
