//! ShareFetch (78), versions 1 and 2: acknowledges records that a member has acquired, and acquires more from the
//! partitions of its share session (epoch 0 opens a session, -1 closes it).
//!
//! The broker responds at once if `min_bytes` can be acquired or there is an error, else as soon as they can be
//! acquired, or after `max_wait_ms`. Records are acquired in whole record batches, which may exceed `max_records`; from
//! version 2 on a request can make the limit strict (KIP-1206). A request that renews locks (KIP-1222) fetches nothing.
//! An unknown group has no members, but its records can be fetched.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        share_acknowledge::request::AcknowledgementBatch,
        share_fetch::{ShareFetchRequest, ShareFetchResponse, response},
    },
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    share_acknowledge::{Acknowledged, Acknowledgements},
    share_sessions::{CLOSES, OPENS, SharePartitionKey, ShareSessionKey},
};
use crate::{
    cluster::{Cluster, Timer},
    connection::{ConnectionId, Pending, Request},
    options::{BrokerId, IsolationLevel, ShareGroupOptions, ShareOffsetReset},
    provisioning::Refusal,
    share_partitions::{AcquireLimits, Acquired, SharePartition, Source},
    timers::TimerKey,
    topics::TopicIndex,
};

/// A ShareFetch request that waits for records.
#[derive(Debug)]
pub(crate) struct PendingShareFetch {
    pub request: Request,
    key: ShareSessionKey,
    requested: Requested,
    /// The response contains all partitions, not only those with changes.
    is_full: bool,
    acknowledged: SortedMap<SharePartitionKey, Acknowledged>,
    timer: Option<TimerKey>,
}

/// The parameters of a ShareFetch request.
#[derive(Clone, Copy, Debug)]
struct Requested {
    min_bytes: usize,
    max_bytes: usize,
    max_records: i64,
    batch_size: i64,
    is_strict: bool,
}

impl Cluster {
    pub(crate) fn share_fetch(&mut self, mut request: Request, mut body: ShareFetchRequest) {
        let (group, member) = (body.group_id.take(), body.member_id.take());
        let opened = self.share_session_key(&request, group, member).and_then(|key| {
            check(&body)?;
            self.follow_share_session(&request, &key, &body)?;
            Ok(key)
        });
        let key = match opened {
            Ok(key) => key,
            Err(refusal) => return self.refuse_share_fetch(&request, refusal),
        };
        let requested = Requested {
            min_bytes: usize::try_from(body.min_bytes).unwrap_or(0),
            max_bytes: usize::try_from(body.max_bytes).unwrap_or(0).min(self.options.fetch_max_bytes),
            max_records: i64::from(body.max_records.max(0)),
            batch_size: i64::from(body.batch_size.max(1)),
            is_strict: body.share_acquire_mode == RECORD_LIMIT,
        };
        let (epoch, renews) = (body.share_session_epoch, body.is_renew_ack);
        let max_wait = Duration::from_millis(u64::try_from(body.max_wait_ms).unwrap_or(0));
        let acknowledged = acknowledgements(body);
        let parts = self.share_session_partitions(request.broker, &key).into_iter();
        let parts: SortedSet<_> = parts.chain(acknowledged.iter().map(|(partition, _)| *partition)).collect();
        self.strike_share_partitions(&mut request, parts);
        let acknowledged = self.acknowledge_all(&request, &key, renews, acknowledged);
        let is_full = epoch == OPENS;
        let mut pending = PendingShareFetch { request, key, requested, is_full, acknowledged, timer: None };
        if epoch == CLOSES {
            self.end_share_session(pending.request.broker, &pending.key);
            return self.respond_to_share_fetch(pending, Vec::new());
        }
        if renews || requested.max_records == 0 {
            return self.respond_to_share_fetch(pending, Vec::new());
        }
        if max_wait.is_zero() || self.share_fetch_is_ready(&pending) {
            return self.finish_share_fetch(pending);
        }
        pending.timer = Some(self.timers.set(self.now + max_wait, Timer::Expire(pending.request.waiter())));
        self.wait_to_share_fetch(pending);
    }

    /// Responds to a ShareFetch if there are enough records now, or lets it wait.
    pub(crate) fn resume_share_fetch(&mut self, pending: PendingShareFetch) {
        if self.share_fetch_is_ready(&pending) {
            self.finish_share_fetch(pending);
        } else {
            self.wait_to_share_fetch(pending);
        }
    }

    /// Responds to a ShareFetch with the records that are available now.
    pub(crate) fn finish_share_fetch(&mut self, mut pending: PendingShareFetch) {
        if let Some(timer) = pending.timer.take() {
            self.timers.cancel(timer);
        }
        let settings = self.share_settings(&pending.key.group);
        let member: Arc<str> = pending.key.member.as_str().into();
        let mut requested = pending.requested;
        let (mut found, mut at_least_one) = (Vec::new(), true);
        for key in self.share_session_partitions(pending.request.broker, &pending.key) {
            let mut limits = self.acquire_limits(&settings, &requested);
            limits.at_least_one = at_least_one;
            let acquired = self.with_share_partition(&pending, key, &settings, |state, source| {
                state.acquire(&member, &limits, source)
            });
            if let Ok((topic, acquired)) = &acquired {
                at_least_one &= acquired.bytes == 0;
                requested.max_bytes = requested.max_bytes.saturating_sub(acquired.bytes);
                requested.max_records = (requested.max_records - acquired.records).max(0);
                self.settle_share_partition(&pending.key.group, *topic, key.1);
            }
            found.push((key, acquired.map(|(_, acquired)| acquired)));
        }
        self.respond_to_share_fetch(pending, found);
    }

    /// Closes the share sessions of a closed connection; returns false if it had none.
    pub(crate) fn end_share_sessions_of(&mut self, broker: BrokerId, connection: ConnectionId) -> bool {
        let Some(state) = self.brokers.get(&broker) else { return false };
        let gone = state.share_sessions.of_connection(connection);
        for key in &gone {
            self.end_share_session(broker, key);
        }
        !gone.is_empty()
    }

    /// Opens the session, continues it, or validates that it may be closed.
    fn follow_share_session(
        &mut self,
        request: &Request,
        key: &ShareSessionKey,
        body: &ShareFetchRequest,
    ) -> Result<(), Refusal> {
        let limit = self.options.share_groups.max_share_sessions;
        let Some(broker) = self.brokers.get_mut(&request.broker) else {
            return Err((ErrorCode::BROKER_NOT_AVAILABLE, String::new()));
        };
        let sessions = &mut broker.share_sessions;
        let partitions = body.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.topic_id.0, partition.partition_index))
        });
        let followed = match body.share_session_epoch {
            OPENS => sessions.open(key.clone(), request.connection, partitions.collect(), limit),
            CLOSES => sessions.get(key).map(|_| ()).ok_or(ErrorCode::SHARE_SESSION_NOT_FOUND),
            epoch => sessions.go_on(key, epoch).map(|session| {
                session.partitions.extend(partitions);
                for topic in &body.forgotten_topics_data {
                    for partition in &topic.partitions {
                        session.partitions.remove(&(topic.topic_id.0, *partition));
                    }
                }
            }),
        };
        followed.map_err(|error| (error, String::new()))
    }

    /// Returns true if there are enough records for a response, or an error.
    fn share_fetch_is_ready(&mut self, pending: &PendingShareFetch) -> bool {
        let settings = self.share_settings(&pending.key.group);
        let limits = self.acquire_limits(&settings, &pending.requested);
        let partitions = self.share_session_partitions(pending.request.broker, &pending.key);
        if partitions.is_empty() {
            return true;
        }
        let enough = pending.requested.min_bytes.min(pending.requested.max_bytes);
        let mut bytes = 0;
        for key in partitions {
            let available = self.with_share_partition(pending, key, &settings, |state, source| {
                state.available_bytes(&limits, source, enough)
            });
            match available {
                Ok((_, available)) => bytes += available,
                Err(_) => return true,
            }
        }
        bytes >= enough
    }

    fn wait_to_share_fetch(&mut self, pending: PendingShareFetch) {
        let waiter = pending.request.waiter();
        for (topic_id, partition) in self.share_session_partitions(pending.request.broker, &pending.key) {
            let index = self.topics.by_id(Uuid(topic_id));
            if let Some(state) = index.and_then(|index| self.topics.partition_mut(index, partition)) {
                state.share_waiters.retain(|known| known.connection != waiter.connection);
                state.share_waiters.push(waiter);
            }
        }
        self.wait(Pending::ShareFetch(pending));
    }

    fn share_session_partitions(&self, broker: BrokerId, key: &ShareSessionKey) -> Vec<SharePartitionKey> {
        let broker = self.brokers.get(&broker);
        let session = broker.and_then(|broker| broker.share_sessions.get(key));
        session.map(|session| session.rotated()).unwrap_or_default()
    }

    /// Calls a function with the share group's state of a partition and the offset up to which it may be read.
    fn with_share_partition<R>(
        &mut self,
        pending: &PendingShareFetch,
        key: SharePartitionKey,
        settings: &ShareGroupOptions,
        act: impl FnOnce(&mut SharePartition, Source<'_>) -> R,
    ) -> Result<(TopicIndex, R), Refusal> {
        let topic = self.share_partition_here(&pending.request, key)?;
        let Some(led) = self.topics.partition(topic, key.1) else {
            return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, String::new()));
        };
        let unix_ms = self.unix_ms();
        let group = self.share_groups.groups.entry(pending.key.group.clone()).or_default();
        let state = group.partitions.entry((topic, key.1)).or_insert_with(|| {
            let start = match settings.auto_offset_reset {
                ShareOffsetReset::Earliest => led.log.start_offset(),
                ShareOffsetReset::Latest => led.log.end_offset(),
                ShareOffsetReset::ByDuration(back) => led.log.offset_reaching(since(unix_ms, back)),
            };
            SharePartition::new(start, led.leader_epoch)
        });
        state.see(led);
        let read_committed = settings.isolation_level == IsolationLevel::ReadCommitted;
        let end = if read_committed { led.last_stable_offset() } else { led.log.high_watermark() };
        let committed = read_committed.then_some(&led.transactions);
        Ok((topic, act(state, Source { log: &led.log, end, committed })))
    }

    fn acquire_limits(&self, settings: &ShareGroupOptions, requested: &Requested) -> AcquireLimits {
        AcquireLimits {
            max_records: requested.max_records,
            is_strict: requested.is_strict,
            batch_size: requested.batch_size,
            max_bytes: requested.max_bytes,
            at_least_one: true,
            max_record_locks: i64::from(settings.partition_max_record_locks),
            until: self.now + settings.record_lock_duration,
        }
    }

    fn refuse_share_fetch(&mut self, request: &Request, (error_code, message): Refusal) {
        let response = ShareFetchResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code,
            error_message: Some(message).filter(|message| !message.is_empty()),
            ..Default::default()
        };
        self.respond_with(request, &response);
    }

    fn respond_to_share_fetch(
        &mut self,
        pending: PendingShareFetch,
        found: Vec<(SharePartitionKey, Result<Acquired, Refusal>)>,
    ) {
        let PendingShareFetch { request, key, is_full, mut acknowledged, .. } = pending;
        let mut partitions = Vec::new();
        for (partition, acquired) in found {
            let done = acknowledged.remove(&partition);
            let has_news = acquired.as_ref().map_or(true, |acquired| acquired.records > 0);
            if is_full || has_news || done.is_some() {
                partitions.push((partition, acquired, done));
            }
        }
        let rest = acknowledged.into_iter();
        partitions.extend(rest.map(|(partition, done)| (partition, Ok(Acquired::default()), Some(done))));
        partitions.sort_by_key(|(partition, ..)| *partition);

        let lock = self.share_settings(&key.group).record_lock_duration.as_millis();
        let mut response = ShareFetchResponse {
            throttle_time_ms: request.throttle_ms(),
            acquisition_lock_timeout_ms: i32::try_from(lock).unwrap_or(i32::MAX),
            ..Default::default()
        };
        let mut leaders = SortedMap::new();
        for (key, acquired, done) in partitions {
            let done = done.unwrap_or_default();
            let (error_code, error_message, acquired) = match acquired {
                Ok(acquired) => (ErrorCode::NONE, None, acquired),
                Err((error, message)) => (error, Some(message), Acquired::default()),
            };
            let mut partition = response::Partition {
                partition_index: key.1,
                error_code,
                error_message: error_message.filter(|message| !message.is_empty()),
                acknowledge_error_code: done.error,
                acknowledge_error_message: done.message,
                records: acquired.batches.concat(),
                ..Default::default()
            };
            for range in acquired.ranges {
                partition.acquired_records.push(response::AcquiredRecord {
                    first_offset: range.first,
                    last_offset: range.last,
                    delivery_count: range.delivery_count,
                });
            }
            let leader =
                self.leader_to_report(key, error_code).or_else(|| self.leader_to_report(key, done.error));
            if let Some((leader, epoch)) = leader {
                partition.current_leader =
                    response::CurrentLeader { leader_id: leader.0, leader_epoch: epoch };
                leaders.insert(leader, ());
            }
            match response.responses.last_mut() {
                Some(topic) if topic.topic_id.0 == key.0 => topic.partitions.push(partition),
                _ => response
                    .responses
                    .push(response::Response { topic_id: Uuid(key.0), partitions: vec![partition] }),
            }
        }
        for id in leaders.into_keys() {
            let broker = &self.brokers[&id];
            let Some(port) = self.port_for(request.connection, id) else { continue };
            response.node_endpoints.push(response::NodeEndpoint {
                node_id: id.0,
                host: broker.host.clone(),
                port,
                rack: broker.rack.clone(),
            });
        }
        self.respond_with(&request, &response);
    }
}

/// The `share_acquire_mode` of a request that accepts at most `max_records`.
const RECORD_LIMIT: i8 = 1;

/// Returns the timestamp that is `back` before `unix_ms`.
fn since(unix_ms: i64, back: Duration) -> i64 {
    unix_ms.saturating_sub(i64::try_from(back.as_millis()).unwrap_or(i64::MAX))
}

fn check(body: &ShareFetchRequest) -> Result<(), Refusal> {
    let invalid = |message: &str| Err((ErrorCode::INVALID_REQUEST, message.to_owned()));
    let mut partitions = body.topics.iter().flat_map(|topic| &topic.partitions);
    let acknowledges = partitions.any(|partition| !partition.acknowledgement_batches.is_empty());
    if body.share_session_epoch == OPENS && acknowledges {
        return invalid("A request that opens a share session can't acknowledge anything.");
    }
    if !(0..=RECORD_LIMIT).contains(&body.share_acquire_mode) {
        return invalid("The acquire mode is unknown.");
    }
    let fetches =
        [body.max_bytes, body.min_bytes, body.max_records, body.max_wait_ms].iter().any(|n| *n != 0);
    if body.is_renew_ack && fetches {
        return invalid("A request that renews locks must have 0 for all of its limits.");
    }
    Ok(())
}

/// Converts the acknowledgements of a ShareFetch to a ShareAcknowledge request.
fn acknowledgements(body: ShareFetchRequest) -> Vec<Acknowledgements> {
    let mut all = Vec::new();
    for topic in body.topics {
        for partition in topic.partitions {
            let batches = partition.acknowledgement_batches.into_iter().map(|batch| AcknowledgementBatch {
                first_offset: batch.first_offset,
                last_offset: batch.last_offset,
                acknowledge_types: batch.acknowledge_types,
            });
            let batches: Vec<_> = batches.collect();
            if !batches.is_empty() {
                all.push(((topic.topic_id.0, partition.partition_index), batches));
            }
        }
    }
    all
}
