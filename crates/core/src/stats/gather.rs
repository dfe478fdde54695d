//! Collects the parts of a snapshot from the actors. Each actor holds a reference until it has added its part. Dropping
//! the last reference completes the snapshot, so that no count of actors is needed and an actor that ends cannot delay
//! it.
//!
//! # Pitfalls
//!
//! - A snapshot is complete when the last actor drops it, so an actor that goes away can't hold it up
//!   (`snapshot_completes_when_the_last_actor_lets_go`).

use std::{fmt, sync::Arc};

use crate::lock::Mutex;

use super::{purpose::Purpose, snapshot::Statistics};
use crate::completion::Completion;

/// Receives snapshots. It is called on an I/O thread and must not block.
pub trait StatisticsSink: Send + Sync {
    /// Takes a snapshot.
    fn take(&self, statistics: Statistics);
}

impl<F: Fn(Statistics) + Send + Sync> StatisticsSink for F {
    fn take(&self, statistics: Statistics) {
        self(statistics);
    }
}

/// The entry of a snapshot's `brokers` that a connection counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerEntryKind {
    /// The entry of its node.
    Node,
    /// The entry of the group's coordinator, whichever node that is.
    GroupCoordinator,
}

/// A snapshot that is being gathered.
pub struct Gather {
    /// The purpose of the snapshot.
    pub purpose: Purpose,
    parts: Mutex<Statistics>,
    target: Option<Target>,
}

enum Target {
    Caller(Completion<Statistics>),
    Sink(Arc<dyn StatisticsSink>),
}

impl Gather {
    /// Creates a snapshot for a caller that waits for it.
    pub fn for_caller(caller: Completion<Statistics>) -> Self {
        Self { purpose: Purpose::Query, parts: Mutex::default(), target: Some(Target::Caller(caller)) }
    }

    /// Creates a snapshot for the periodic event.
    pub fn for_sink(sink: Arc<dyn StatisticsSink>) -> Self {
        Self { purpose: Purpose::Periodic, parts: Mutex::default(), target: Some(Target::Sink(sink)) }
    }

    /// Creates a snapshot for a push of client metrics.
    pub(crate) fn for_push(sink: Arc<dyn StatisticsSink>) -> Self {
        Self { purpose: Purpose::Push, parts: Mutex::default(), target: Some(Target::Sink(sink)) }
    }

    /// Adds a part.
    pub fn add(&self, part: impl FnOnce(&mut Statistics)) {
        part(&mut self.parts.lock());
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        let mut statistics = std::mem::take(self.parts.get_mut());
        if self.purpose != Purpose::Push {
            statistics.sum_up();
        }
        match self.target.take() {
            Some(Target::Caller(caller)) => caller.complete(statistics),
            Some(Target::Sink(sink)) => sink.take(statistics),
            None => {}
        }
    }
}

impl fmt::Debug for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gather({:?})", self.purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::completion;

    #[test]
    fn snapshot_completes_when_the_last_actor_lets_go() {
        let (done, waiting) = completion();
        let first = Arc::new(Gather::for_caller(done));
        let second = Arc::clone(&first);
        first.add(|statistics| statistics.replyq = 7);
        drop(first);
        assert!(waiting.try_take().is_none());
        drop(second);
        assert_eq!(waiting.try_take().map(|statistics| statistics.replyq), Some(7));
    }
}
