//! Administrative calls about groups.
//!
//! | file | calls | route |
//! |---|---|---|
//! | [`list`] | the groups of the cluster | every broker |
//! | [`describe`] | state, assignor, members and assignments | each group's coordinator |
//! | [`delete`] | groups, and members of a group | each group's coordinator |
//! | [`remove_all`] | all members of a group | the group's coordinator |
//! | [`describe_many`] | the same for many groups | one request per coordinator (`batches`) |
//! | [`streams_groups`] | describe streams groups, with [`topology_description`] | one request per coordinator (`describe_typed`) |
//! | [`offsets`] | list, alter and delete the committed offsets of a group | the group's coordinator |
//! | [`share_groups`] | describe share groups (as streams groups), and list, alter and delete their start offsets | the group's coordinator |
//!
//! Errors of the coordinator that pass by themselves (it is loading, moving or not known yet) are retried until the deadline
//! of the call.

pub(crate) mod batches;
pub mod delete;
pub mod describe;
pub mod describe_many;
pub mod describe_typed;
pub mod list;
pub mod offsets;
pub mod remove_all;
#[cfg(test)]
pub(in crate::admin) mod scripted;
#[cfg(test)]
mod scripted_batches;
#[cfg(test)]
mod scripted_removal;
#[cfg(test)]
mod scripted_typed;
pub mod share_groups;
pub mod streams_groups;
pub mod topology_description;

use ottla_protocol::error_code::ErrorCode;

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GroupState {
    /// The coordinator did not report a state, or one that this library does not know.
    Unknown,
    /// Classic protocol: the coordinator waits for members to join.
    PreparingRebalance,
    /// Classic protocol: the coordinator waits for the leader's assignment.
    CompletingRebalance,
    /// All members have their partitions.
    Stable,
    /// The group does not exist, or is being removed.
    Dead,
    /// The group has no members.
    Empty,
    /// Consumer protocol: the coordinator computes the assignment.
    Assigning,
    /// Consumer protocol: members are giving up or taking over partitions.
    Reconciling,
    /// Streams protocol: internal topics are missing.
    NotReady,
}

impl GroupState {
    /// All states.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::PreparingRebalance,
        Self::CompletingRebalance,
        Self::Stable,
        Self::Dead,
        Self::Empty,
        Self::Assigning,
        Self::Reconciling,
        Self::NotReady,
    ];

    /// Returns the name that brokers and Kafka's tools use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
            Self::Empty => "Empty",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::NotReady => "NotReady",
        }
    }

    /// Returns the state with this name, in upper or lower case; `Unknown` for any other name.
    pub fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(name));
        found.unwrap_or(Self::Unknown)
    }
}

/// The type of a group: the protocol of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GroupType {
    /// The coordinator did not report a type, or one that this library does not know.
    Unknown,
    /// The consumer protocol (KIP-848).
    Consumer,
    /// The classic protocol, or a group that only has committed offsets.
    Classic,
    /// A share group (KIP-932).
    Share,
    /// A Kafka Streams group (KIP-1071).
    Streams,
}

impl GroupType {
    /// All types.
    pub const ALL: [Self; 5] = [Self::Unknown, Self::Consumer, Self::Classic, Self::Share, Self::Streams];

    /// Returns the name that brokers and Kafka's tools use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Consumer => "Consumer",
            Self::Classic => "Classic",
            Self::Share => "Share",
            Self::Streams => "Streams",
        }
    }

    /// Returns the type with this name, in upper or lower case; `Unknown` for any other name.
    pub fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name));
        found.unwrap_or(Self::Unknown)
    }
}

/// Returns true if the coordinator reports a condition that passes by itself.
const fn is_temporary(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::UNSTABLE_OFFSET_COMMIT
    )
}
