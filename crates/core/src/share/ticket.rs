//! A commit that waits for the outcomes of its acknowledgements.

use std::{collections::BTreeMap, fmt};

use ottla_protocol::vocabulary::TopicPartition;

use crate::{
    completion::{Completion, Waiting, completion},
    error::Error,
    sync::Mutex,
};

/// The outcome of a commit: the result of each partition with acknowledgements, the first error if it has several. A
/// partition without a result has no response yet.
pub type CommitOutcome = BTreeMap<TopicPartition, Option<Result<(), Error>>>;

/// A commit that waits for the outcomes of its acknowledgements.
pub struct CommitTicket(Mutex<State>);

struct State {
    partitions: CommitOutcome,
    /// The number of submissions without an outcome, and 1 while there may be more of them.
    open: usize,
    done: Option<Completion<()>>,
}

impl CommitTicket {
    /// Creates a ticket, and what waits for it after [`CommitTicket::seal`].
    pub(crate) fn new() -> (Self, Waiting<()>) {
        let (done, waiting) = completion();
        (Self(Mutex::new(State { partitions: BTreeMap::new(), open: 1, done: Some(done) })), waiting)
    }

    /// Adds a submission.
    pub(crate) fn add(&self, partition: &TopicPartition) {
        let mut state = self.0.lock();
        state.open += 1;
        state.partitions.entry(partition.clone()).or_insert(None);
    }

    /// Adds the outcome of a submission.
    pub(crate) fn settle(&self, partition: &TopicPartition, result: Result<(), Error>) {
        let mut state = self.0.lock();
        let known = state.partitions.entry(partition.clone()).or_insert(None);
        if !matches!(known, Some(Err(_))) {
            *known = Some(result);
        }
        let done = state.close_one();
        drop(state);
        drop(done);
    }

    /// No submission follows.
    pub(crate) fn seal(&self) {
        let done = self.0.lock().close_one();
        drop(done);
    }

    /// Returns the outcomes so far.
    pub fn outcome(&self) -> CommitOutcome {
        self.0.lock().partitions.clone()
    }
}

impl State {
    /// Returns the completion, which completes when it is dropped, with the last outcome.
    fn close_one(&mut self) -> Option<Completion<()>> {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 { self.done.take() } else { None }
    }
}

impl fmt::Debug for CommitTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommitTicket")
    }
}
