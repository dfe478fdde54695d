//! The tasks that a member owns, on their way from one assignment to the next.
//!
//! ```text
//!  assign ──► what is lost? ── some ──► Revoked ── acknowledge ──► again
//!                           └─ none ──► Assigned: what is new
//! ```
//!
//! A task is owned from the event that assigns it until the application has acknowledged the event that revokes it. Each task
//! is in one revocation after each assignment of it.

use ottla_sorted::SortedMap;

use super::{
    news::{RevocationReason, StreamsEvent, StreamsRevocation},
    task::TaskSets,
};

/// The tasks of a member.
#[derive(Debug, Default)]
pub(super) struct OwnedTasks {
    /// The tasks that the application has, with the revoked ones.
    owned: TaskSets,
    /// The last assignment; none after the membership has ended.
    target: TaskSets,
    /// The revocations that the application has not acknowledged.
    revoked: SortedMap<u64, TaskSets>,
    last_revocation: u64,
}

impl OwnedTasks {
    /// Returns the tasks that the application has, with those that it has not given up yet.
    pub(super) const fn all(&self) -> &TaskSets {
        &self.owned
    }

    /// Takes an assignment. Returns the event that leads to it, if one is due.
    pub(super) fn assign(&mut self, target: TaskSets) -> Option<StreamsEvent> {
        self.target = target;
        self.reconcile()
    }

    /// Takes the end of the membership. Returns the event for the tasks that are not revoked yet.
    pub(super) fn lose(&mut self, reason: RevocationReason) -> Option<StreamsEvent> {
        self.target = TaskSets::default();
        let mut lost = self.owned.clone();
        for revoked in self.revoked.values() {
            lost = lost.without(revoked);
        }
        self.revoke(lost, reason)
    }

    /// Forgets all tasks, which the application has stopped. A late acknowledgement of one of their revocations acknowledges no
    /// later one.
    pub(super) fn clear(&mut self) {
        *self = Self { last_revocation: self.last_revocation, ..Self::default() };
    }

    /// The application has given up the tasks of this revocation. Returns the event that follows, if one is due.
    pub(super) fn acknowledge(&mut self, revocation: u64) -> Option<StreamsEvent> {
        let revoked = self.revoked.remove(&revocation)?;
        self.owned = self.owned.without(&revoked);
        self.reconcile()
    }

    /// Takes the next step to the last assignment, unless the application has to give up tasks first.
    fn reconcile(&mut self) -> Option<StreamsEvent> {
        if !self.revoked.is_empty() {
            return None;
        }
        let event = self.revoke(self.owned.without(&self.target), RevocationReason::Reassigned);
        if event.is_some() {
            return event;
        }
        let new = self.target.without(&self.owned);
        self.owned = self.owned.with(&new);
        (!new.is_empty()).then(|| StreamsEvent::Assigned(new.to_tasks()))
    }

    fn revoke(&mut self, revoked: TaskSets, reason: RevocationReason) -> Option<StreamsEvent> {
        if revoked.is_empty() {
            return None;
        }
        self.last_revocation += 1;
        let revocation = StreamsRevocation { id: self.last_revocation, tasks: revoked.to_tasks(), reason };
        self.revoked.insert(self.last_revocation, revoked);
        Some(StreamsEvent::Revoked(revocation))
    }
}
