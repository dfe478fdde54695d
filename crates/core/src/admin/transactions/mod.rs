//! Administrative calls about transactions (KIP-664): listing and describing them, and ending those that hang.
//!
//! | file | calls | route |
//! |---|---|---|
//! | [`list`] | the transactional IDs of the cluster | every broker |
//! | [`describe`] | state, producer and partitions of a transactional ID | its coordinator |
//! | [`producers`] | the producers that write to a partition | the partition's leader |
//! | [`fence`] | raises the epoch of a transactional ID, which ends its producer | its coordinator |
//! | [`abort`] | writes the abort marker of a transaction that its coordinator has forgotten | the partition's leader |
//!
//! A transaction hangs if a partition's leader has records of it and its coordinator will never end it. Consumers with
//! `read_committed` then never read beyond its first record.

pub mod abort;
pub mod describe;
pub mod fence;
pub mod list;
pub mod producers;
#[cfg(test)]
mod scripted;

/// The state of a transactional ID at its coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TransactionState {
    /// The coordinator reported a state that this library does not know.
    Unknown,
    /// A producer has the ID, and no transaction has begun.
    Empty,
    /// A transaction has partitions.
    Ongoing,
    /// The transaction is committed; its markers are being written.
    PrepareCommit,
    /// The transaction is aborted; its markers are being written.
    PrepareAbort,
    /// The last transaction is committed.
    CompleteCommit,
    /// The last transaction is aborted.
    CompleteAbort,
    /// A newer producer or the timeout ends the transaction.
    PrepareEpochFence,
    /// The ID has expired.
    Dead,
}

impl TransactionState {
    /// All states.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
        Self::PrepareEpochFence,
        Self::Dead,
    ];

    /// Returns the name that brokers and Kafka's tools use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
            Self::PrepareEpochFence => "PrepareEpochFence",
            Self::Dead => "Dead",
        }
    }

    /// Returns the state with this name, in upper or lower case; `Unknown` for any other name.
    pub fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(name));
        found.unwrap_or(Self::Unknown)
    }
}
