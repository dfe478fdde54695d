//! The requests of the cluster actor that wait for a connection or for a response.

use std::collections::VecDeque;

use ottla_protocol::vocabulary::NodeId;
use ottla_sorted::SortedMap;

use crate::{
    contract::{
        part::RequestOwner,
        route::{CoordinatorKey, Route, RoutedRequest},
    },
    machine::Instant,
};

/// Requests without a response.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next_token: u64,
    sent: SortedMap<u64, Sent>,
    waiting: VecDeque<Waiting>,
}

/// A request that was sent to a broker actor.
#[derive(Debug)]
pub(super) struct Sent {
    /// The owner.
    pub(super) owner: RequestOwner,
    /// The coordinator that it went to, and its node.
    pub(super) coordinator: Option<(CoordinatorKey, NodeId)>,
}

/// A request that no broker actor can take yet.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The time at which it fails.
    pub(super) deadline: Instant,
    /// The destination.
    pub(super) route: Route,
    /// The request.
    pub(super) request: RoutedRequest,
    /// The owner.
    pub(super) owner: RequestOwner,
}

impl Requests {
    /// Returns true if requests wait for a connection.
    pub(super) fn any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the requests that wait for a connection.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    /// Keeps a request until there is a connection, or until its deadline.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// Takes all waiting requests.
    pub(super) fn take_waiting(&mut self) -> VecDeque<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Takes the requests that wait for a coordinator.
    pub(super) fn take_waiting_for(&mut self, key: &CoordinatorKey) -> VecDeque<Waiting> {
        let is_for_key = |waiting: &Waiting| waiting.route.coordinator() == Some(key);
        let (taken, left) = self.take_waiting().into_iter().partition(is_for_key);
        self.waiting = left;
        taken
    }

    /// Takes the requests whose deadline has passed.
    pub(super) fn take_late(&mut self, now: Instant) -> VecDeque<Waiting> {
        let (late, left) = self.take_waiting().into_iter().partition(|waiting| waiting.deadline <= now);
        self.waiting = left;
        late
    }

    /// Returns when the first waiting request fails.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    /// Records that a request was sent. Returns the token of its response.
    pub(super) fn sent(&mut self, sent: Sent) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        self.sent.insert(token, sent);
        token
    }

    /// Takes the request that a response belongs to.
    pub(super) fn take(&mut self, token: u64) -> Option<Sent> {
        self.sent.remove(&token)
    }

    /// Removes the metadata requests: their responses will be ignored.
    pub(super) fn forget_metadata(&mut self) {
        self.sent.retain(|_, sent| sent.owner != RequestOwner::Metadata);
        self.waiting.retain(|waiting| waiting.owner != RequestOwner::Metadata);
    }

    /// Removes all waiting requests because the client closes.
    pub(super) fn close(&mut self) {
        self.waiting.clear();
    }
}
