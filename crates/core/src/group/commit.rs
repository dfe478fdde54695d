//! Automatic commits: the offsets to commit, the time of the commit, and its outcome.
//!
//! Offsets are committed every `auto.commit.interval.ms`, and when partitions are given up. Only offsets of delivered
//! records are committed, and only if they differ from the committed ones.

use std::time::Duration;

use ottla_protocol::error_code::ErrorCode;

use super::Group;
use crate::{
    completion::{Waiting, completion},
    contract::part::Need,
    error::{Error, ErrorKind},
    fetch::FetchCommand,
    machine::{Instant, earliest},
    offsets::committed::{CommitResult, GroupCall, GroupCallKind, GroupOffset},
};
/// A commit whose outcome is not known yet.
#[derive(Debug)]
pub(super) struct CommitInFlight {
    offsets: Vec<GroupOffset>,
    waiting: Waiting<CommitResult>,
    /// The time after which the member no longer waits for the outcome.
    until: Instant,
}

impl CommitInFlight {
    /// Creates a commit that takes at most `timeout`, and the call that carries it out.
    pub(super) fn new(now: Instant, offsets: Vec<GroupOffset>, timeout: Duration) -> (Self, FetchCommand) {
        let (done, waiting) = completion();
        let call = GroupCall { timeout, kind: GroupCallKind::Commit(offsets.clone(), done) };
        (Self { offsets, waiting, until: now + timeout + SPARE }, FetchCommand::Group(call))
    }

    /// Returns the offsets.
    pub(super) fn offsets(&self) -> &[GroupOffset] {
        &self.offsets
    }

    /// Returns the outcome, if it is known or the wait for it has ended.
    pub(super) fn outcome(&self, now: Instant) -> Option<CommitResult> {
        let late =
            || Err(Error::new(ErrorKind::TimedOut, "the commit's outcome did not become known in time"));
        self.waiting.try_take().or_else(|| (self.until <= now).then(late))
    }

    /// Returns the time after which the member no longer waits for the outcome.
    pub(super) const fn until(&self) -> Instant {
        self.until
    }
}

/// Added to the timeout of the call, in case that the call does not end by itself.
const SPARE: Duration = Duration::from_secs(1);

/// Commits offsets at intervals.
#[derive(Debug)]
pub(super) struct AutoCommit {
    interval: Option<Duration>,
    next: Option<Instant>,
    in_flight: Option<CommitInFlight>,
    /// The last reported error: each is reported once until a commit succeeds.
    reported: Option<ErrorKind>,
}

impl AutoCommit {
    pub(super) const fn new(interval: Option<Duration>) -> Self {
        Self { interval, next: None, in_flight: None, reported: None }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.next, self.in_flight.as_ref().map(CommitInFlight::until))
    }

    pub(super) fn close(&mut self) {
        self.next = None;
        self.in_flight = None;
    }

    /// Returns the error of a commit that the application should get, if any. Errors caused by a rebalance are omitted:
    /// the partition is committed again, or belongs to another member.
    pub(super) fn judge(&mut self, outcome: &CommitResult) -> Option<Error> {
        let error = match outcome {
            Ok(results) => results.iter().find_map(|result| result.as_ref().err()),
            Err(error) => Some(error),
        };
        let Some(error) = error else {
            self.reported = None;
            return None;
        };
        if is_about_membership(error) || error.is_retriable() || self.reported == Some(error.kind()) {
            return None;
        }
        self.reported = Some(error.kind());
        Some(error.clone())
    }
}

/// Returns true if an error shows that the member has to join again.
pub(super) fn is_about_membership(error: &Error) -> bool {
    let codes = [
        ErrorCode::REBALANCE_IN_PROGRESS,
        ErrorCode::ILLEGAL_GENERATION,
        ErrorCode::UNKNOWN_MEMBER_ID,
        ErrorCode::FENCED_INSTANCE_ID,
        ErrorCode::STALE_MEMBER_EPOCH,
        ErrorCode::FENCED_MEMBER_EPOCH,
    ];
    match error.kind() {
        ErrorKind::Broker(code) => codes.contains(&code),
        kind => kind == ErrorKind::State,
    }
}

impl Group {
    /// Commits the offsets of delivered records, if the interval has passed.
    pub(super) fn commit_if_due(&mut self, now: Instant) {
        if let Some(outcome) = self.auto_commit.in_flight.as_ref().and_then(|commit| commit.outcome(now))
            && let Some(commit) = self.auto_commit.in_flight.take()
        {
            self.handle_committed(now, commit.offsets(), &outcome);
        }
        let Some(interval) = self.auto_commit.interval else { return };
        if self.rebalance.owned().is_empty() {
            self.auto_commit.next = None;
            return;
        }
        let next = *self.auto_commit.next.get_or_insert(now + interval);
        if next > now {
            return;
        }
        self.auto_commit.next = Some(now + interval);
        let is_member = self.member.identity().is_some();
        if self.auto_commit.in_flight.is_some() || self.rebalance.is_busy() || !is_member {
            return;
        }
        let offsets = self.shared.all_offsets_to_commit();
        if !offsets.is_empty() {
            let (commit, command) = CommitInFlight::new(now, offsets, self.settings.request_timeout);
            self.auto_commit.in_flight = Some(commit);
            self.needs.push_back(Need::Tell(command));
        }
    }

    /// Commits offsets without waiting for the outcome: an automatic commit is in flight already.
    pub(super) fn commit_beside(&mut self, now: Instant, offsets: Vec<GroupOffset>) {
        if !offsets.is_empty() {
            let (_, command) = CommitInFlight::new(now, offsets, self.settings.request_timeout);
            self.needs.push_back(Need::Tell(command));
        }
    }

    /// Handles the outcome of an automatic commit.
    pub(super) fn handle_committed(&mut self, now: Instant, offsets: &[GroupOffset], outcome: &CommitResult) {
        if let Some(sink) = self.settings.shared.sink() {
            sink.committed(offsets, outcome);
        }
        let errors = match outcome {
            Ok(results) => results.iter().filter_map(|result| result.as_ref().err()).collect(),
            Err(error) => vec![error],
        };
        if errors.into_iter().any(is_about_membership) {
            self.member.check_membership(now);
        }
        if let Some(error) = self.auto_commit.judge(outcome) {
            self.report(error);
        }
    }
}
