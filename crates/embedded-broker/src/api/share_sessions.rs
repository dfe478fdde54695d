//! Share sessions (KIP-932): the partitions that a member of a share group fetches from a broker, so that it doesn't
//! repeat them in each request. A session ends with its connection, and the records acquired through it are released.

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::{SortedMap, SortedSet};

use crate::connection::ConnectionId;

/// The share sessions of one broker.
#[derive(Debug, Default)]
pub(crate) struct ShareSessions {
    sessions: SortedMap<ShareSessionKey, ShareSession>,
}

/// The group and member of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShareSessionKey {
    pub group: String,
    pub member: String,
}

/// A partition, identified by topic ID, because the topic may have been deleted.
pub(crate) type SharePartitionKey = ([u8; 16], i32);

/// One member's session.
#[derive(Debug)]
pub(crate) struct ShareSession {
    /// The epoch that the member's next request must have.
    next_epoch: i32,
    connection: ConnectionId,
    pub partitions: SortedSet<SharePartitionKey>,
}

/// The epochs that open and close a session.
pub(crate) const OPENS: i32 = 0;
pub(crate) const CLOSES: i32 = -1;

impl ShareSessions {
    /// Opens a session and replaces an existing session of the member, whose records stay locked. Fails if there are `limit` sessions.
    pub fn open(
        &mut self,
        key: ShareSessionKey,
        connection: ConnectionId,
        partitions: SortedSet<SharePartitionKey>,
        limit: usize,
    ) -> Result<(), ErrorCode> {
        self.sessions.remove(&key);
        if self.sessions.len() >= limit {
            return Err(ErrorCode::SHARE_SESSION_LIMIT_REACHED);
        }
        self.sessions.insert(key, ShareSession { next_epoch: 1, connection, partitions });
        Ok(())
    }

    /// Returns the session if `epoch` is its next epoch, and increments the epoch.
    pub fn go_on(&mut self, key: &ShareSessionKey, epoch: i32) -> Result<&mut ShareSession, ErrorCode> {
        let session = self.sessions.get_mut(key).ok_or(ErrorCode::SHARE_SESSION_NOT_FOUND)?;
        if session.next_epoch != epoch {
            return Err(ErrorCode::INVALID_SHARE_SESSION_EPOCH);
        }
        session.next_epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
        Ok(session)
    }

    pub fn get(&self, key: &ShareSessionKey) -> Option<&ShareSession> {
        self.sessions.get(key)
    }

    /// Ends a session.
    pub fn close(&mut self, key: &ShareSessionKey) -> Option<ShareSession> {
        self.sessions.remove(key)
    }

    /// Returns the keys of this connection's sessions.
    pub fn of_connection(&self, connection: ConnectionId) -> Vec<ShareSessionKey> {
        let of = self.sessions.iter().filter(|(_, session)| session.connection == connection);
        of.map(|(key, _)| key.clone()).collect()
    }
}

impl ShareSession {
    /// Returns the partitions in the order in which they are served; the order rotates with each call.
    pub fn rotated(&self) -> Vec<SharePartitionKey> {
        let count = self.partitions.len().max(1);
        let first = usize::try_from(self.next_epoch).unwrap_or(0) % count;
        let (before, after) = (self.partitions.iter().take(first), self.partitions.iter().skip(first));
        after.chain(before).copied().collect()
    }
}
