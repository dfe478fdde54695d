//! Access for the C library, which uses the core itself.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
    time::Duration,
};

use ottla_core::{
    cluster::command::Command,
    completion::{Waiting, completion},
    error::Result,
    event::EventQueue,
    share::{ShareCommand, acquired::AcquiredRecords, held::HeldRecords, shared::ShareShared},
};
use ottla_net::ClientHandle;

use super::{ShareConsumer, poll::Waits};
use crate::{sasl::Sasl, start};

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

    /// Begins a poll: sends the acknowledgements so far, and asks all brokers for records.
    #[doc(hidden)]
    pub fn begin_acquiring(&self) {
        self.begin_poll();
    }

    /// Returns acquired records as soon as there are some, or none when there are outcomes of acknowledgements or events.
    #[doc(hidden)]
    pub fn acquire(&self) -> impl Future<Output = Result<Vec<Arc<AcquiredRecords>>>> + use<> {
        let consumer = self.clone();
        let mut waits = Waits::default();
        poll_fn(move |context| consumer.take_acquired(context, true, &mut waits))
    }

    /// Begins to leave the group, with the acknowledgements so far, at the latest after this time. The future is ready when
    /// that is done.
    #[doc(hidden)]
    pub fn begin_leaving(&self, timeout: Duration) -> Waiting<()> {
        self.inner.held.commit(&self.inner.shared);
        self.forget_subscription();
        let (done, left) = completion();
        let _ = self.inner.client.command(Command::Share(ShareCommand::Leave(timeout, done)));
        left
    }
}
