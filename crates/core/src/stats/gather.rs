//! Collects the parts of a snapshot from the owners. Each holds a reference while it has still to add something; whoever
//! lets go last completes the snapshot, so that nobody has to be counted and an owner that goes away can't hold it up.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use super::snapshot::Statistics;
use crate::completion::Completion;

/// Takes snapshots. Called on an I/O thread: it must not block.
pub trait StatisticsSink: Send + Sync {
    /// Takes one.
    fn take(&self, statistics: Statistics);
}

impl<F: Fn(Statistics) + Send + Sync> StatisticsSink for F {
    fn take(&self, statistics: Statistics) {
        self(statistics);
    }
}

/// A snapshot that is being gathered.
pub struct Gather {
    /// Windows start anew after this snapshot.
    pub reset: bool,
    parts: Mutex<Statistics>,
    target: Option<Target>,
}

enum Target {
    Caller(Completion<Statistics>),
    Sink(Arc<dyn StatisticsSink>),
}

impl Gather {
    /// For a caller who waits.
    pub fn for_caller(caller: Completion<Statistics>) -> Self {
        Self { reset: false, parts: Mutex::default(), target: Some(Target::Caller(caller)) }
    }

    /// For the periodic event.
    pub fn for_sink(sink: Arc<dyn StatisticsSink>) -> Self {
        Self { reset: true, parts: Mutex::default(), target: Some(Target::Sink(sink)) }
    }

    /// Adds a part.
    pub fn add(&self, part: impl FnOnce(&mut Statistics)) {
        part(&mut self.parts.lock());
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        let mut statistics = std::mem::take(self.parts.get_mut());
        statistics.sum_up();
        match self.target.take() {
            Some(Target::Caller(caller)) => caller.complete(statistics),
            Some(Target::Sink(sink)) => sink.take(statistics),
            None => {}
        }
    }
}

impl fmt::Debug for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gather(reset: {})", self.reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::completion;

    #[test]
    fn a_snapshot_is_complete_when_the_last_owner_let_go_even_if_one_adds_nothing() {
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
