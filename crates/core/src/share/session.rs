//! A share session: its epoch, and the partitions that the broker counts to it (KIP-932).
//!
//! ```text
//!            opens: epoch 0, all partitions            epoch 1, 2, ... i32::MAX, 1, ...
//!  Closed ────────────────────────────────► Open ──────────────────────────────────────┐
//!    ▲                                       │ ▲                                        │
//!    │ a lost or refused request; epoch -1   │ └────────────────────────────────────────┘
//!    └───────────────────────────────────────┘
//! ```
//!
//! ShareFetch and ShareAcknowledge share the epoch, which orders them, so that one request is in flight at a time.
//!
//! # Pitfalls
//!
//! - A session that opens can't acknowledge anything. What the member had acquired before was released with its connection,
//!   or stays locked until the lock ends: a session that replaces another one does not release its records
//!   (`opening_session_has_all_partitions_and_epoch_0`).
//! - An acknowledgement in ShareFetch adds its partition to the broker's session again, even if the member no longer fetches from
//!   it. One in ShareAcknowledge does not: a member that took it for added would never get another record of the partition
//!   (`only_a_fetch_adds_the_partition_that_it_acknowledges`).

use ottla_protocol::uuid::Uuid;
use ottla_sorted::SortedSet;

use super::shared::SessionId;

/// A partition as share sessions identify it.
pub(crate) type PartitionId = (Uuid, i32);

/// The epoch of a request that opens a session.
const OPENS: i32 = 0;
/// The epoch of a request that ends a session.
pub(crate) const ENDS: i32 = -1;

/// The share session of one connection.
#[derive(Debug, Default)]
pub(crate) enum ShareSession {
    #[default]
    Closed,
    Open {
        id: SessionId,
        /// The epoch of the next request.
        epoch: i32,
        /// The partitions that the broker counts to the session.
        known: SortedSet<PartitionId>,
    },
}

/// The session's part of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: i32,
    pub(crate) added: SortedSet<PartitionId>,
    pub(crate) forgotten: SortedSet<PartitionId>,
}

impl ShareSession {
    /// Returns the session's ID.
    pub(crate) const fn id(&self) -> Option<SessionId> {
        match self {
            Self::Closed => None,
            Self::Open { id, .. } => Some(*id),
        }
    }

    /// Returns the head of a ShareFetch of the `wanted` partitions that acknowledges records of others. A closed session is
    /// opened under the ID `new`.
    pub(crate) fn fetch(
        &mut self,
        wanted: &SortedSet<PartitionId>,
        acknowledged: &SortedSet<PartitionId>,
        new: impl FnOnce() -> SessionId,
    ) -> Head {
        match self {
            Self::Closed => {
                *self = Self::Open { id: new(), epoch: 1, known: wanted.clone() };
                Head { epoch: OPENS, added: wanted.clone(), forgotten: SortedSet::new() }
            }
            Self::Open { epoch, known, .. } => {
                let added = wanted.difference(known).copied().collect();
                let is_forgotten = |id: &&PartitionId| !wanted.contains(id) && !acknowledged.contains(id);
                let forgotten = known.iter().filter(is_forgotten).copied().collect();
                *known = wanted | acknowledged;
                Head { epoch: advance(epoch), added, forgotten }
            }
        }
    }

    /// Returns the epoch of a ShareAcknowledge; `None` without a session.
    pub(crate) fn acknowledge(&mut self) -> Option<i32> {
        match self {
            Self::Closed => None,
            Self::Open { epoch, .. } => Some(advance(epoch)),
        }
    }

    /// Ends the session. Returns its ID.
    pub(crate) fn end(&mut self) -> Option<SessionId> {
        let id = self.id();
        *self = Self::Closed;
        id
    }
}

/// Returns the epoch, and advances it.
fn advance(epoch: &mut i32) -> i32 {
    let this = *epoch;
    *epoch = this.checked_add(1).unwrap_or(1);
    this
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PartitionId = (Uuid([1; 16]), 0);
    const B: PartitionId = (Uuid([1; 16]), 1);

    fn set(ids: &[PartitionId]) -> SortedSet<PartitionId> {
        ids.iter().copied().collect()
    }

    fn head(epoch: i32, added: &[PartitionId], forgotten: &[PartitionId]) -> Head {
        Head { epoch, added: set(added), forgotten: set(forgotten) }
    }

    #[test]
    fn opening_session_has_all_partitions_and_epoch_0() {
        let mut session = ShareSession::default();
        assert_eq!(session.acknowledge(), None, "there is no session");
        assert_eq!(session.fetch(&set(&[A, B]), &set(&[]), || SessionId(7)), head(0, &[A, B], &[]));
        assert_eq!(session.id(), Some(SessionId(7)));
        assert_eq!(session.fetch(&set(&[A, B]), &set(&[]), || SessionId(8)), head(1, &[], &[]));
        assert_eq!(session.acknowledge(), Some(2), "the APIs share the epoch");
        assert_eq!(session.end(), Some(SessionId(7)));
        assert_eq!(session.fetch(&set(&[B]), &set(&[]), || SessionId(9)), head(0, &[B], &[]));
        assert_eq!(session.id(), Some(SessionId(9)));
    }

    #[test]
    fn later_requests_have_only_changes_of_partitions() {
        let mut session = ShareSession::default();
        session.fetch(&set(&[A]), &set(&[]), || SessionId(1));
        assert_eq!(session.fetch(&set(&[B]), &set(&[]), || SessionId(2)), head(1, &[B], &[A]));
        assert_eq!(session.fetch(&set(&[B]), &set(&[]), || SessionId(2)), head(2, &[], &[]));
    }

    #[test]
    fn only_a_fetch_adds_the_partition_that_it_acknowledges() {
        let mut session = ShareSession::default();
        session.fetch(&set(&[A, B]), &set(&[]), || SessionId(1));
        assert_eq!(session.fetch(&set(&[B]), &set(&[A]), || SessionId(1)), head(1, &[], &[]));
        assert_eq!(session.fetch(&set(&[B]), &set(&[]), || SessionId(1)), head(2, &[], &[A]));
        session.acknowledge();
        assert_eq!(session.fetch(&set(&[A, B]), &set(&[]), || SessionId(1)), head(4, &[A], &[]));
    }

    #[test]
    fn epoch_after_the_largest_is_1() {
        let mut session = ShareSession::Open { id: SessionId(1), epoch: i32::MAX, known: set(&[A]) };
        assert_eq!(session.acknowledge(), Some(i32::MAX));
        assert_eq!(session.acknowledge(), Some(1));
    }
}
