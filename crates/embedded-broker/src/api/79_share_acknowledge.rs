//! ShareAcknowledge (79), versions 1 and 2: members acknowledge the records that they have acquired; epoch -1 also
//! closes their session. From version 2 on, a request that renews locks (KIP-1222) must set `is_renew_ack`.
//!
//! The acknowledgements of a partition are applied atomically.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::share_acknowledge::{ShareAcknowledgeRequest, ShareAcknowledgeResponse, request, response},
    uuid::Uuid,
};
use ottla_sorted::SortedMap;

use super::share_sessions::{CLOSES, OPENS, SharePartitionKey, ShareSessionKey};
use crate::{
    cluster::{Cluster, Timer},
    connection::Request,
    options::BrokerId,
    provisioning::Refusal,
    share_partitions::{AcknowledgeType, Acknowledgement, DeliveryRules},
    topics::TopicIndex,
};

/// The acknowledgements of a partition in a request.
pub(crate) type Acknowledgements = (SharePartitionKey, Vec<request::AcknowledgementBatch>);

/// The result of the acknowledgements of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub error: ErrorCode,
    pub message: Option<String>,
}

impl Cluster {
    pub(crate) fn share_acknowledge(
        &mut self,
        request: &mut Request,
        body: ShareAcknowledgeRequest,
    ) -> ShareAcknowledgeResponse {
        let mut response =
            ShareAcknowledgeResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let epoch = body.share_session_epoch;
        let key = self.share_session_key(request, body.group_id, body.member_id);
        let key = key.and_then(|key| {
            self.go_on_to_acknowledge(request.broker, &key, epoch).map_err(|error| (error, String::new()))?;
            Ok(key)
        });
        let key = match key {
            Ok(key) => key,
            Err((error_code, message)) => {
                response.error_code = error_code;
                response.error_message = Some(message).filter(|message| !message.is_empty());
                return response;
            }
        };
        let partitions = body.topics.into_iter().flat_map(|topic| {
            let id = topic.topic_id.0;
            topic.partitions.into_iter().map(move |p| ((id, p.partition_index), p.acknowledgement_batches))
        });
        let partitions: Vec<Acknowledgements> = partitions.collect();
        self.strike_share_partitions(request, partitions.iter().map(|(partition, _)| *partition));
        let done = self.acknowledge_all(request, &key, body.is_renew_ack, partitions);
        if epoch == CLOSES {
            self.end_share_session(request.broker, &key);
        }
        if request.version >= 2 {
            let lock = self.share_settings(&key.group).record_lock_duration.as_millis();
            response.acquisition_lock_timeout_ms = i32::try_from(lock).unwrap_or(i32::MAX);
        }
        let mut leaders = SortedMap::new();
        for ((topic_id, partition_index), acknowledged) in done {
            let mut partition = response::Partition {
                partition_index,
                error_code: acknowledged.error,
                error_message: acknowledged.message,
                ..Default::default()
            };
            if let Some((leader, epoch)) =
                self.leader_to_report((topic_id, partition_index), acknowledged.error)
            {
                partition.current_leader =
                    response::CurrentLeader { leader_id: leader.0, leader_epoch: epoch };
                leaders.insert(leader, ());
            }
            match response.responses.last_mut() {
                Some(topic) if topic.topic_id.0 == topic_id => topic.partitions.push(partition),
                _ => response
                    .responses
                    .push(response::Response { topic_id: Uuid(topic_id), partitions: vec![partition] }),
            }
        }
        response.node_endpoints = leaders
            .into_keys()
            .filter_map(|id| {
                let broker = &self.brokers[&id];
                Some(response::NodeEndpoint {
                    node_id: id.0,
                    host: broker.host.clone(),
                    port: self.port_for(request.connection, id)?,
                    rack: broker.rack.clone(),
                })
            })
            .collect();
        response
    }

    /// Validates the group and member of a request and returns the key of their share session.
    pub(crate) fn share_session_key(
        &self,
        request: &Request,
        group: Option<String>,
        member: Option<String>,
    ) -> Result<ShareSessionKey, Refusal> {
        let invalid = |message: &str| Err((ErrorCode::INVALID_REQUEST, message.to_owned()));
        if let Some(error) = request.struck.error {
            return Err((error, String::new()));
        }
        let Some(group) = group.filter(|group| !group.is_empty()) else {
            return invalid("Invalid group id in the request.");
        };
        self.check_group_access(request, &group).map_err(|error| (error, error.description().to_owned()))?;
        let Some(member) = member.filter(|member| (1..=36).contains(&member.len())) else {
            return invalid("Invalid member id in the request.");
        };
        if self.is_other_group(&group) {
            return Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {group} is not a share group.")));
        }
        Ok(ShareSessionKey { group, member })
    }

    /// Applies injected faults to the parts of a request.
    pub(crate) fn strike_share_partitions(
        &mut self,
        request: &mut Request,
        partitions: impl IntoIterator<Item = SharePartitionKey>,
    ) {
        if self.faults.is_empty() {
            return;
        }
        for (topic_id, partition) in partitions {
            let Some(index) = self.topics.by_id(Uuid(topic_id)) else { continue };
            let Some(name) = self.topics.get(index).map(|topic| topic.name.clone()) else { continue };
            if let Some(error) = self.injected_error(request, &name, partition) {
                request.struck.partition_errors.push((index, partition, error));
            }
        }
    }

    /// Applies all acknowledgements of a request.
    pub(crate) fn acknowledge_all(
        &mut self,
        request: &Request,
        key: &ShareSessionKey,
        renews: bool,
        partitions: Vec<Acknowledgements>,
    ) -> SortedMap<SharePartitionKey, Acknowledged> {
        let mut done: SortedMap<SharePartitionKey, Acknowledged> = SortedMap::new();
        for (partition, batches) in partitions {
            let result = self.acknowledge_partition(request, key, renews, partition, batches);
            let entry = done.entry(partition).or_default();
            if let Err((error, message)) = result
                && entry.error == ErrorCode::NONE
            {
                *entry = Acknowledged { error, message: Some(message).filter(|message| !message.is_empty()) };
            }
        }
        done
    }

    fn acknowledge_partition(
        &mut self,
        request: &Request,
        key: &ShareSessionKey,
        renews: bool,
        partition: SharePartitionKey,
        batches: Vec<request::AcknowledgementBatch>,
    ) -> Result<(), Refusal> {
        let invalid = |message: &str| (ErrorCode::INVALID_REQUEST, message.to_owned());
        let settings = self.share_settings(&key.group);
        let renews = renews && settings.renew_acknowledge_enable;
        let acknowledgements = check(batches, renews).map_err(invalid)?;
        let topic = self.share_partition_here(request, partition)?;
        let rules = DeliveryRules {
            max_delivery_count: settings.delivery_count_limit,
            renewed_until: self.now + settings.record_lock_duration,
        };
        let group = self.share_groups.groups.get_mut(&key.group);
        let state = group.and_then(|group| group.partitions.get_mut(&(topic, partition.1)));
        let (Some(state), Some(led)) = (state, self.topics.partition(topic, partition.1)) else {
            let message = "The group has not fetched from this partition.".to_owned();
            return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
        };
        state.see(led);
        let acknowledged = state.acknowledge(&key.member, &acknowledgements, rules);
        acknowledged.map_err(|(error, message)| (error, message.to_owned()))?;
        // The records that follow may be acquired now, even if none were released: there is room for more locks.
        self.settle_share_partition(&key.group, topic, partition.1);
        self.wake_share_fetches(topic, partition.1);
        Ok(())
    }

    /// Checks that the partition exists, that this broker leads it, and that no fault is injected.
    pub(crate) fn share_partition_here(
        &mut self,
        request: &Request,
        (topic_id, partition): SharePartitionKey,
    ) -> Result<TopicIndex, Refusal> {
        let refuse = |error| Err((error, String::new()));
        let Some(index) = self.topics.by_id(Uuid(topic_id)) else {
            return refuse(ErrorCode::UNKNOWN_TOPIC_ID);
        };
        if let Some(error) = request.struck.partition_error(index, partition) {
            return refuse(error);
        }
        let name = self.topics.get(index).map(|topic| topic.name.as_str()).unwrap_or_default();
        if let Some(error) = self.topic_refusal(request, name) {
            return refuse(error);
        }
        let Some(state) = self.topics.partition(index, partition) else {
            return refuse(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        };
        if state.leader != Some(request.broker) {
            return refuse(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        Ok(index)
    }

    /// Returns the partition's leader for a client that sent its request to the wrong broker (KIP-951).
    pub(crate) fn leader_to_report(
        &self,
        (topic_id, partition): SharePartitionKey,
        error: ErrorCode,
    ) -> Option<(BrokerId, i32)> {
        let is_wrong = error == ErrorCode::NOT_LEADER_OR_FOLLOWER || error == ErrorCode::FENCED_LEADER_EPOCH;
        let index = self.topics.by_id(Uuid(topic_id)).filter(|_| is_wrong)?;
        let state = self.topics.partition(index, partition)?;
        state.leader.map(|leader| (leader, state.leader_epoch))
    }

    /// Ends a member's share session, and releases the records that it acquired through it.
    pub(crate) fn end_share_session(&mut self, broker: BrokerId, key: &ShareSessionKey) {
        let session = self.brokers.get_mut(&broker).and_then(|broker| broker.share_sessions.close(key));
        let limit = self.share_settings(&key.group).delivery_count_limit;
        for (topic_id, partition) in session.map(|session| session.partitions).unwrap_or_default() {
            let Some(index) = self.topics.by_id(Uuid(topic_id)) else { continue };
            let Some(led) = self.topics.partition(index, partition) else { continue };
            let group = self.share_groups.groups.get_mut(&key.group);
            let Some(state) = group.and_then(|group| group.partitions.get_mut(&(index, partition))) else {
                continue;
            };
            if led.leader == Some(broker) {
                state.see(led);
                if state.release(&key.member, limit) {
                    self.wake_share_fetches(index, partition);
                }
            }
        }
    }

    /// Releases the expired locks of a partition.
    pub(crate) fn share_locks_timeout(&mut self, group: &str, topic: TopicIndex, partition: i32) {
        let limit = self.share_settings(group).delivery_count_limit;
        let groups = &mut self.share_groups.groups;
        let state = groups.get_mut(group).and_then(|group| group.partitions.get_mut(&(topic, partition)));
        if state.is_some_and(|state| state.expire(self.now, limit)) {
            self.wake_share_fetches(topic, partition);
        }
        self.settle_share_partition(group, topic, partition);
    }

    /// Sets the timer for the locks of a partition.
    pub(crate) fn settle_share_partition(&mut self, group: &str, topic: TopicIndex, partition: i32) {
        let groups = &mut self.share_groups.groups;
        let state = groups.get_mut(group).and_then(|group| group.partitions.get_mut(&(topic, partition)));
        if let Some(at) = state.and_then(|state| state.next_timer()) {
            self.timers.set(at, Timer::ShareLocks(group.to_owned(), topic, partition));
        }
    }

    /// Wakes the ShareFetch requests that wait at a partition.
    pub(crate) fn wake_share_fetches(&mut self, topic: TopicIndex, partition: i32) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            self.satisfied.extend(state.share_waiters.drain(..));
        }
    }

    fn go_on_to_acknowledge(
        &mut self,
        broker: BrokerId,
        key: &ShareSessionKey,
        epoch: i32,
    ) -> Result<(), ErrorCode> {
        let Some(broker) = self.brokers.get_mut(&broker) else { return Err(ErrorCode::BROKER_NOT_AVAILABLE) };
        match epoch {
            OPENS => Err(ErrorCode::INVALID_SHARE_SESSION_EPOCH),
            CLOSES => broker.share_sessions.get(key).map(|_| ()).ok_or(ErrorCode::SHARE_SESSION_NOT_FOUND),
            _ => broker.share_sessions.go_on(key, epoch).map(|_| ()),
        }
    }
}

/// Rejects invalid acknowledgements.
fn check(
    batches: Vec<request::AcknowledgementBatch>,
    renews: bool,
) -> Result<Vec<Acknowledgement>, &'static str> {
    let mut previous = -1;
    let mut checked = Vec::with_capacity(batches.len());
    for batch in batches {
        let request::AcknowledgementBatch { first_offset: first, last_offset: last, acknowledge_types } =
            batch;
        if first > last {
            return Err("The first offset of an acknowledgement is greater than its last one.");
        }
        if first < previous {
            return Err("Acknowledgements overlap, or are not in the order of their offsets.");
        }
        previous = last;
        let count = i64::try_from(acknowledge_types.len()).unwrap_or(i64::MAX);
        if count == 0 || count > 1 && last.checked_sub(first) != Some(count - 1) {
            return Err("An acknowledgement must have one type, or one for each offset.");
        }
        let types: Option<Vec<AcknowledgeType>> =
            acknowledge_types.into_iter().map(AcknowledgeType::from_i8).collect();
        let types = types.ok_or("The type of acknowledgement is unknown.")?;
        if !renews && types.contains(&AcknowledgeType::Renew) {
            return Err(
                "Locks can only be renewed by a request with is_renew_ack, in a group whose configuration allows it.",
            );
        }
        checked.push(Acknowledgement { first, last, types });
    }
    Ok(checked)
}
