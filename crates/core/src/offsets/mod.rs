//! Offsets of partitions, as leaders and coordinators know them.
//!
//! - [`list_offsets`]: the first and the last offset, or that of a time, from the leader (ListOffsets).
//! - [`committed`]: the queue of commits and of queries for committed offsets, which go to the group's coordinator one behind
//!   the other.
//! - `commit`: one commit, and which of its refusals are tried again.
//! - `committer`: the member in whose name offsets are committed, and what it holds meanwhile.
//! - `topic_ids`: the IDs of topics in these requests, since Kafka 4.4 (KIP-1319).

pub(crate) mod commit;
pub mod committed;
mod committed_response;
mod committed_versions;
mod committer;
pub mod list_offsets;
pub(crate) mod queued_call;
pub(crate) mod topic_ids;
