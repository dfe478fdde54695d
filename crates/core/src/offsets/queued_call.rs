//! Calls to the group's coordinator that have no result yet: in the queue, or in flight.

use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedMap;

use super::{
    commit::CommitCall,
    committed::{CommittedResult, Committer, QuestionId},
    topic_ids::RequestIds,
};
use crate::{completion::Completion, error::Error, machine::Instant};

/// The content of a request in flight.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Queries of positions, without those that were cancelled meanwhile.
    Offsets(SortedMap<QuestionId, TopicPartition>, RequestIds),
    /// A call of the application.
    Call(QueuedCall, RequestIds),
    /// A call that failed at its deadline. Later calls wait for the response: the coordinator may still carry the request
    /// out.
    GivenUp { is_commit: bool },
}

impl Asked {
    /// Returns true if the request commits offsets.
    pub(crate) const fn is_commit(&self) -> bool {
        match self {
            Self::Offsets(..) => false,
            Self::Call(call, _) => matches!(call.kind, QueuedKind::Commit(_)),
            Self::GivenUp { is_commit } => *is_commit,
        }
    }

    /// Returns the deadline of a call that has no result.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Call(call, _) => Some(call.terms.deadline),
            Self::Offsets(..) | Self::GivenUp { .. } => None,
        }
    }

    /// Fails a call whose deadline has passed.
    pub(crate) fn give_up(&mut self, error: Error) {
        if let Self::Call(..) = self {
            let is_commit = self.is_commit();
            if let Self::Call(call, _) = std::mem::replace(self, Self::GivenUp { is_commit }) {
                call.kind.fail(error);
            }
        }
    }
}

/// A call of the application.
#[derive(Debug)]
pub(crate) struct QueuedCall {
    pub(crate) terms: CallTerms,
    pub(crate) kind: QueuedKind,
}

/// The kinds of calls in the queue.
#[derive(Debug)]
pub(crate) enum QueuedKind {
    Commit(CommitCall),
    Committed(Vec<TopicPartition>, Completion<CommittedResult>),
}

impl QueuedKind {
    /// Ends the call with an error.
    pub(crate) fn fail(self, error: Error) {
        match self {
            Self::Commit(call) => call.fail(error.with_api("OffsetCommit")),
            Self::Committed(_, done) => done.complete(Err(error.with_api("OffsetFetch"))),
        }
    }
}

/// The deadline and identity of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallTerms {
    /// The time at which the call fails.
    pub(crate) deadline: Instant,
    /// The identity under which the commit was made.
    pub(crate) committer: Committer,
    /// The refusal of the commit in a generation or member epoch that has ended: it is repeated in a later one.
    pub(crate) stale: Option<Error>,
}
