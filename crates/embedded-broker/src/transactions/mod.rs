//! Transactions: the coordinator of transactional IDs, the markers, and the transactions of a partition.
//!
//! ```text
//!            first participant          EndTxn, timeout, new producer          all markers written
//! Empty ───────────────────▶ Ongoing ─────────────────────────▶ PrepareCommit ───────────────────▶ CompleteCommit
//!                               ▲                               PrepareAbort  ───────────────────▶ CompleteAbort
//!                               └────────────────────────────────── first participant ──────────────────┘
//! ```
//!
//! `rules` decides what a request may do to a transactional ID, without time and without I/O. `coordinator` finds the
//! coordinator and its timeouts. `markers` writes the end of a transaction to its partitions and groups, some time after
//! the response to EndTxn, as Kafka does. `partition` has the open and the aborted transactions of one log.
//!
//! # Pitfalls
//!
//! - Between EndTxn and the last marker, requests of the next transaction get CONCURRENT_TRANSACTIONS
//!   (`next_transaction_waits_for_the_markers_of_the_last_one`).
//! - A new coordinator writes all markers of an unfinished end again, so a log can contain a marker twice
//!   (`new_coordinator_writes_the_markers_again`).

mod control;
mod coordinator;
mod markers;
mod partition;
mod rules;

use std::time::Duration;

use ottla_protocol::time::Instant;
use ottla_sorted::{SortedMap, SortedSet};

pub use control::TransactionDescription;
pub(crate) use markers::{Marker, MarkerStep, Round, marker_in};
pub(crate) use partition::PartitionTransactions;
use rules::EPOCH_BUMPS;
pub(crate) use rules::{Ending, Initialization, ProducerKey};

use crate::options::BrokerId;

/// The topic in which Kafka stores committed offsets. This cluster has no such topic, but names it as Kafka does.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// The number of partitions of [`OFFSETS_TOPIC`] (`offsets.topic.num.partitions`).
const OFFSETS_PARTITIONS: i32 = 50;

/// The transactional IDs of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    ids: SortedMap<String, Transaction>,
    /// The delays of markers that tests have set, by topic and partition.
    marker_delays: SortedMap<(String, i32), Duration>,
    /// The transactional IDs whose coordinator still loads them, each with the time at which it finishes.
    loading: SortedMap<String, Instant>,
}

/// A transactional ID and its transaction.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub producer_id: i64,
    /// The producer ID before the last change of the state.
    pub previous_producer_id: i64,
    /// The producer ID that takes effect when the transaction is complete, because the epochs are used up.
    pub next_producer_id: Option<i64>,
    /// The epoch of the producer; -1 before the first one.
    pub epoch: i16,
    /// The epoch before the last bump that the producer itself requested; -1 without one.
    pub last_epoch: i16,
    pub timeout_ms: i32,
    pub state: TransactionState,
    pub participants: SortedSet<Participant>,
    /// The transaction version of the client that began or ended the transaction.
    pub version: i16,
    /// The epoch that InitProducerId gave last.
    pub given: Option<i16>,
    /// An epoch that two producers have: one from InitProducerId, the other from EndTxn.
    pub doubled: Option<i16>,
    /// True if the second one has used it.
    pub is_confused: bool,
    /// The start of the transaction, in milliseconds since 1970; -1 without one.
    pub started_ms: i64,
    /// The start of the transaction.
    pub started: Instant,
    /// The coordinator that last wrote the state, and its epoch, which rises with each move.
    pub coordinator: Option<BrokerId>,
    pub coordinator_epoch: i32,
    /// The participants whose markers are missing.
    pub unmarked: SortedMap<Participant, MarkerStep>,
    /// The round of marker writing: timers of earlier rounds are ignored.
    pub round: u64,
}

/// The state of a transactional ID, as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionState {
    Empty,
    Ongoing,
    PrepareCommit,
    PrepareAbort,
    CompleteCommit,
    CompleteAbort,
}

/// A part of a transaction that needs a marker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Participant {
    /// A partition of a topic.
    Partition(String, i32),
    /// The offsets of a group.
    Group(String),
}

impl Transactions {
    /// Returns the state of a transactional ID.
    pub fn get(&self, id: &str) -> Option<&Transaction> {
        self.ids.get(id)
    }

    /// Returns all transactional IDs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Transaction)> {
        self.ids.iter()
    }
}

impl Participant {
    /// Returns the topic and partition that gets the marker in Kafka.
    pub fn topic_partition(&self) -> (&str, i32) {
        match self {
            Self::Partition(topic, partition) => (topic, *partition),
            Self::Group(group) => (OFFSETS_TOPIC, offsets_partition(group)),
        }
    }
}

/// Returns the partition of [`OFFSETS_TOPIC`] with the offsets of a group: Java's hash of the name selects it.
pub(crate) fn offsets_partition(group: &str) -> i32 {
    let hash = group.encode_utf16().fold(0i32, |hash, c| hash.wrapping_mul(31).wrapping_add(i32::from(c)));
    hash.checked_abs().unwrap_or(0) % OFFSETS_PARTITIONS
}

impl TransactionState {
    /// Returns Kafka's name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// Returns true if markers are being written.
    pub fn is_ending(self) -> bool {
        matches!(self, Self::PrepareCommit | Self::PrepareAbort)
    }
}
