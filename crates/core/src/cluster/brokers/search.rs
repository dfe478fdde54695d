//! The search for a broker while none is up: candidates are tried side by side, each a moment after the one before it.
//!
//! ```text
//!   0 ms     250 ms     500 ms     750 ms
//!   A ─────────────────────────────┐ closed: three are enough
//!            B ── refused          │
//!               C ──────────────── up: all others are closed
//!                    D ────────────┘
//! ```
//!
//! Candidates are the known nodes, and then the bootstrap servers. The first that is ready wins. A candidate that fails is
//! followed at once. With more than three, the oldest gives way to the next one, so that silent servers do not hide the one
//! that responds; the waits double in each round, because a slow network may need longer than the first ones.
//!
//! # Pitfalls
//!
//! - Failures are counted per candidate: a server that refuses is tried several times while a silent one is tried once
//!   (`silent_server_is_not_down_while_another_refuses_twice`).

use std::{collections::VecDeque, time::Duration};

use super::{Brokers, Metadata};
use crate::{
    contract::broker::BrokerKey,
    machine::Instant,
    message::{ConnectionMessage, ToBroker},
};

/// The wait for a candidate before the next one is tried beside it, in the first round.
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// The longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The number of candidates that are tried at once.
const AT_ONCE: usize = 3;

/// The candidates that are being tried.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Those that have not failed yet, the oldest first.
    running: VecDeque<BrokerKey>,
    /// The index of the next candidate.
    next: usize,
    /// The number of waits that passed.
    waits: usize,
    /// The end of the present wait; `None` while no request needs a broker.
    until: Option<Instant>,
}

impl Brokers {
    /// Searches for a broker if none is up.
    pub(in crate::cluster) fn find(&mut self, now: Instant, metadata: &Metadata) {
        if self.any_up() || self.closing || self.candidates(metadata) == 0 {
            return;
        }
        match &mut self.search {
            Some(search) => {
                search.until.get_or_insert(now);
            }
            None => {
                let next = self.rng.below(metadata.nodes.len() as u64) as usize;
                self.search = Some(Search { next, ..Search::default() });
                self.try_next(now, metadata);
            }
        }
    }

    /// Tries the next candidate after `failed`, if a connection is still `needed`.
    pub(in crate::cluster) fn find_another(
        &mut self,
        now: Instant,
        failed: BrokerKey,
        metadata: &Metadata,
        needed: bool,
    ) {
        let Some(search) = &mut self.search else { return };
        let before = search.running.len();
        search.running.retain(|key| *key != failed);
        if search.running.len() == before {
            return;
        }
        let is_last = search.running.is_empty();
        if needed && !self.any_up() {
            self.try_next(now, metadata);
        } else if is_last {
            self.search = None;
        }
    }

    /// Tries the next candidate if the last one has not responded in time.
    pub(in crate::cluster) fn handle_timeout(&mut self, now: Instant, metadata: &Metadata, needed: bool) {
        let Some(search) = self.search.as_mut().filter(|search| search.until.is_some_and(|at| at <= now))
        else {
            return;
        };
        search.until = None;
        search.waits += 1;
        if needed {
            self.try_next(now, metadata);
        }
    }

    /// Returns when to call [`Brokers::handle_timeout`].
    pub(in crate::cluster) fn poll_timeout(&self) -> Option<Instant> {
        self.search.as_ref().filter(|_| !self.closing).and_then(|search| search.until)
    }

    /// Adds bootstrap servers. If no broker is up and a connection is needed, tries them immediately.
    pub(in crate::cluster) fn add_servers(
        &mut self,
        now: Instant,
        servers: Vec<(String, u16)>,
        metadata: &Metadata,
    ) {
        let first = self.servers.len();
        for server in servers {
            if !self.servers.contains(&server) {
                self.servers.push(server);
            }
        }
        let index = metadata.nodes.len() + first;
        if let Some(search) = &mut self.search
            && self.servers.len() > first
        {
            search.next = index;
            self.try_next(now, metadata);
        }
    }

    /// Ends the search because `up` is connected: the others are no longer needed.
    pub(super) fn end_search(&mut self, up: BrokerKey) {
        self.abandon_search(&[up]);
    }

    /// Ends the search, except that `keep` go on.
    pub(super) fn abandon_search(&mut self, keep: &[BrokerKey]) {
        let running = self.search.take().unwrap_or_default().running;
        for key in running.into_iter().filter(|key| !keep.contains(key)) {
            self.send(key, ToBroker::Connection(ConnectionMessage::StopConnecting));
        }
    }

    /// Returns the number of candidates if each of them has failed since a broker was up last.
    pub(super) fn failed_candidates(&self, metadata: &Metadata) -> Option<usize> {
        let nodes = metadata.nodes.keys().map(|node| self.data_connection(*node));
        let servers = (nodes.len()..self.candidates(metadata))
            .map(|index| self.bootstrap.get(&(index - metadata.nodes.len())).copied());
        let mut keys: Vec<BrokerKey> = nodes.chain(servers).collect::<Option<_>>()?;
        keys.sort_unstable();
        keys.dedup();
        keys.iter().all(|key| self.failed_since_up.contains(key)).then_some(keys.len())
    }

    fn candidates(&self, metadata: &Metadata) -> usize {
        let nodes = metadata.nodes.len();
        if nodes > 0 && !self.recovers { nodes } else { nodes + self.servers.len() }
    }

    /// Connects to the next candidate that is not being tried, and closes the oldest if there are too many.
    fn try_next(&mut self, now: Instant, metadata: &Metadata) {
        let Some(mut search) = self.search.take().filter(|_| !self.closing) else { return };
        let count = self.candidates(metadata).max(1);
        for _ in 0..count {
            let index = search.next % count;
            search.next = index + 1;
            let key = self.candidate(index, metadata).filter(|key| !search.running.contains(key));
            if let Some(key) = key {
                search.running.push_back(key);
                self.send(key, ToBroker::Connection(ConnectionMessage::Connect));
                break;
            }
        }
        if search.running.len() > AT_ONCE
            && let Some(oldest) = search.running.pop_front()
        {
            self.send(oldest, ToBroker::Connection(ConnectionMessage::StopConnecting));
        }
        let round = u32::try_from(search.waits / count).unwrap_or(u32::MAX);
        let wait = NEXT_AFTER.saturating_mul(1 << round.min(20)).min(LONGEST_WAIT);
        search.until = Some(now + wait);
        self.search = Some(search);
    }

    /// Returns the broker actor of a candidate, and starts it if necessary.
    fn candidate(&mut self, index: usize, metadata: &Metadata) -> Option<BrokerKey> {
        let Some(place) = index.checked_sub(metadata.nodes.len()) else {
            let node = *metadata.nodes.keys().nth(index)?;
            return self.of_node(node, metadata);
        };
        if let Some(key) = self.bootstrap.get(&place) {
            return Some(*key);
        }
        let (host, port) = self.servers.get(place)?.clone();
        let key = self.start(host, port, None);
        self.bootstrap.insert(place, key);
        Some(key)
    }
}
