//! Incremental fetch sessions (KIP-227): the partitions that a client fetches from a broker, so that it doesn't repeat
//! them in each request.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{error_code::ErrorCode, time::Instant};
use ottla_sorted::SortedMap;

use crate::random::Random;

/// The fetch sessions of one broker.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    sessions: SortedMap<i32, FetchSession>,
    slots: usize,
}

/// One client's session.
#[derive(Debug)]
pub(crate) struct FetchSession {
    /// The epoch that the client's next request must have.
    pub next_epoch: i32,
    pub uses_topic_ids: bool,
    created: Instant,
    last_used: Instant,
    /// The fetched partitions, by the order in which they are served.
    partitions: SortedMap<u64, SessionPartition>,
    order: SortedMap<SessionKey, u64>,
    next_order: u64,
}

/// A partition, identified by the topic name or ID of the request, because the topic may not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionKey {
    pub topic: TopicName,
    pub partition: i32,
}

/// A topic name or ID, as the client sent it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TopicName {
    Name(Arc<str>),
    Id([u8; 16]),
}

/// A partition of a session, with the state that the client received last.
#[derive(Clone, Debug)]
pub(crate) struct SessionPartition {
    pub key: SessionKey,
    pub requested: RequestedPartition,
    /// The leader epoch of the request; -1 if unknown.
    pub high_watermark: i64,
    pub log_start_offset: i64,
}

/// A partition in a Fetch request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestedPartition {
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    pub last_fetched_epoch: i32,
    pub max_bytes: i32,
}

/// A session that was used more recently than this isn't evicted for a session that is not larger.
const EVICTION: Duration = Duration::from_secs(120);

impl FetchSessions {
    pub fn new(slots: usize) -> Self {
        Self { sessions: SortedMap::new(), slots }
    }

    pub fn clear(&mut self) {
        self.sessions.clear();
    }

    pub fn remove(&mut self, id: i32) {
        self.sessions.remove(&id);
    }

    pub fn get_mut(&mut self, id: i32) -> Option<&mut FetchSession> {
        self.sessions.get_mut(&id)
    }

    pub fn get(&self, id: i32) -> Option<&FetchSession> {
        self.sessions.get(&id)
    }

    /// Returns the session if the request has its ID and next epoch.
    pub fn resume(
        &mut self,
        id: i32,
        epoch: i32,
        uses_topic_ids: bool,
    ) -> Result<&mut FetchSession, ErrorCode> {
        let session = self.sessions.get_mut(&id).ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        if session.next_epoch != epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.uses_topic_ids != uses_topic_ids {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        Ok(session)
    }

    /// Creates a session for these partitions; returns none if there is no room.
    pub fn create(
        &mut self,
        now: Instant,
        random: &mut Random,
        uses_topic_ids: bool,
        partitions: Vec<SessionPartition>,
    ) -> Option<i32> {
        if self.sessions.len() >= self.slots && !self.evict(now, partitions.len()) {
            return None;
        }
        let mut id = random.positive_i32();
        while self.sessions.contains_key(&id) {
            id = random.positive_i32();
        }
        let mut session = FetchSession {
            next_epoch: 1,
            uses_topic_ids,
            created: now,
            last_used: now,
            partitions: SortedMap::new(),
            order: SortedMap::new(),
            next_order: 0,
        };
        for partition in partitions {
            session.put(partition);
        }
        self.sessions.insert(id, session);
        Some(id)
    }

    /// Evicts a session that has been unused for long, or else one that is smaller than the new session.
    fn evict(&mut self, now: Instant, size: usize) -> bool {
        let stale = self.sessions.iter().min_by_key(|(_, session)| session.last_used);
        if let Some((id, session)) = stale
            && now.saturating_since(session.last_used) > EVICTION
        {
            let id = *id;
            self.sessions.remove(&id);
            return true;
        }
        let old =
            self.sessions.iter().filter(|(_, session)| now.saturating_since(session.created) > EVICTION);
        if let Some((id, session)) = old.min_by_key(|(_, session)| session.partitions.len())
            && session.partitions.len() < size
        {
            let id = *id;
            self.sessions.remove(&id);
            return true;
        }
        false
    }
}

impl FetchSession {
    pub fn used(&mut self, now: Instant) {
        self.last_used = now;
        self.next_epoch = if self.next_epoch == i32::MAX { 1 } else { self.next_epoch + 1 };
    }

    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Adds a partition, or replaces its fetch parameters.
    pub fn put(&mut self, partition: SessionPartition) {
        if let Some(known) = self.order.get(&partition.key).and_then(|order| self.partitions.get_mut(order)) {
            known.requested = partition.requested;
            return;
        }
        self.order.insert(partition.key.clone(), self.next_order);
        self.partitions.insert(self.next_order, partition);
        self.next_order += 1;
    }

    pub fn forget(&mut self, key: &SessionKey) {
        if let Some(order) = self.order.remove(key) {
            self.partitions.remove(&order);
        }
    }

    /// Returns the partitions in the order in which they are served.
    pub fn partitions(&self) -> impl Iterator<Item = (u64, &SessionPartition)> {
        self.partitions.iter().map(|(order, partition)| (*order, partition))
    }

    pub fn partition_mut(&mut self, order: u64) -> Option<&mut SessionPartition> {
        self.partitions.get_mut(&order)
    }

    /// Moves a partition behind all others because it got records this time.
    pub fn move_to_end(&mut self, order: u64) {
        if self.next_order == order + 1 {
            return;
        }
        let Some(partition) = self.partitions.remove(&order) else { return };
        self.order.insert(partition.key.clone(), self.next_order);
        self.partitions.insert(self.next_order, partition);
        self.next_order += 1;
    }
}

impl SessionPartition {
    pub fn new(topic: TopicName, partition: i32, requested: RequestedPartition) -> Self {
        let key = SessionKey { topic, partition };
        Self { key, requested, high_watermark: -1, log_start_offset: -1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(n: i32) -> Vec<SessionPartition> {
        let requested = RequestedPartition {
            current_leader_epoch: -1,
            fetch_offset: 0,
            last_fetched_epoch: -1,
            max_bytes: 100,
        };
        (0..n).map(|i| SessionPartition::new(TopicName::Name("t".into()), i, requested)).collect()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn session_continues_only_in_its_next_epoch() {
        let (mut sessions, mut random) = (FetchSessions::new(2), Random::new(1));
        let id = sessions.create(at(0), &mut random, true, partitions(2)).unwrap();
        assert_eq!(sessions.resume(id + 1, 1, true).err(), Some(ErrorCode::FETCH_SESSION_ID_NOT_FOUND));
        assert_eq!(sessions.resume(id, 2, true).err(), Some(ErrorCode::INVALID_FETCH_SESSION_EPOCH));
        assert_eq!(sessions.resume(id, 1, false).err(), Some(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR));
        let session = sessions.resume(id, 1, true).unwrap();
        session.used(at(1));
        assert_eq!(session.next_epoch, 2);
    }

    #[test]
    fn full_cache_evicts_stale_then_smaller_old_sessions() {
        let (mut sessions, mut random) = (FetchSessions::new(2), Random::new(1));
        let small = sessions.create(at(0), &mut random, true, partitions(1)).unwrap();
        let large = sessions.create(at(0), &mut random, true, partitions(5)).unwrap();
        assert_eq!(sessions.create(at(100), &mut random, true, partitions(3)), None, "all are too young");
        for id in [small, large] {
            sessions.get_mut(id).unwrap().used(at(110));
        }
        assert_eq!(sessions.create(at(121), &mut random, true, partitions(1)), None, "none is smaller");
        let other = sessions.create(at(121), &mut random, true, partitions(3)).unwrap();
        assert!(sessions.get_mut(small).is_none());
        sessions.get_mut(other).unwrap().used(at(300));
        assert!(sessions.create(at(300), &mut random, true, partitions(1)).is_some());
        assert!(sessions.get_mut(large).is_none(), "it was not used for three minutes");
    }

    #[test]
    fn partitions_that_returned_records_are_served_last() {
        let (mut sessions, mut random) = (FetchSessions::new(2), Random::new(1));
        let id = sessions.create(at(0), &mut random, true, partitions(3)).unwrap();
        let session = sessions.get_mut(id).unwrap();
        session.move_to_end(0);
        let order: Vec<i32> = session.partitions().map(|(_, p)| p.key.partition).collect();
        assert_eq!(order, [1, 2, 0]);
        let again = session.partitions().next().unwrap().1.clone();
        session.put(again);
        session.forget(&partitions(3)[2].key);
        let order: Vec<i32> = session.partitions().map(|(_, p)| p.key.partition).collect();
        assert_eq!(order, [1, 0]);
    }
}
