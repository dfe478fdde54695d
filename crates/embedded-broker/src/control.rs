//! Controls for tests: topics, leaders, faults, broken connections, killed brokers.

use std::time::Duration;

use ottla_protocol::{api::ApiKey, error_code::ErrorCode, uuid::Uuid};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    api::{self, share_sessions::ShareSessions},
    cluster::{Broker, Cluster, Output, RequestRecord},
    connection::ConnectionId,
    faults::{Fault, ScriptScope, ScriptStep},
    options::{BrokerId, ClusterOptions},
    telemetry::Telemetry,
    topics::{Partition, TopicIndex},
};

/// Controls a [`Cluster`]. Changes take effect at once, at the time of the last input.
#[derive(Debug)]
pub struct Control<'a> {
    pub(crate) cluster: &'a mut Cluster,
}

/// The fate of records that a killed leader had but that no follower had received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The followers keep them.
    Kept,
    /// They are lost.
    Lost,
}

/// The kinds of keys that have a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorKey<'a> {
    /// A consumer group.
    Group(&'a str),
    /// A transactional id.
    Transaction(&'a str),
}

/// The state of a partition in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// The leader, if there is one.
    pub leader: Option<BrokerId>,
    /// The leader epoch, which rises with each change of the leader.
    pub leader_epoch: i32,
    /// The brokers with a replica.
    pub replicas: Vec<BrokerId>,
    /// The brokers with an in-sync replica.
    pub in_sync: Vec<BrokerId>,
    /// The first offset.
    pub log_start_offset: i64,
    /// The offset up to which consumers may read.
    pub high_watermark: i64,
    /// The offset up to which consumers with `isolation.level=read_committed` may read.
    pub last_stable_offset: i64,
    /// The offset of the next record.
    pub log_end_offset: i64,
    /// The size of the log in bytes.
    pub bytes: u64,
}

impl<'a> Control<'a> {
    pub(crate) fn new(cluster: &'a mut Cluster) -> Self {
        Self { cluster }
    }

    /// Returns the cluster's options. Changes apply from the next request on; options that describe the brokers have no
    /// effect.
    pub fn options(&mut self) -> &mut ClusterOptions {
        &mut self.cluster.options
    }

    /// Creates a topic; the partitions are led by the brokers in turn.
    pub fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
    ) -> Result<Uuid, ErrorCode> {
        let created =
            self.cluster.create_topic(name, partitions, replication_factor, SortedMap::new(), false);
        created
            .map(|index| self.cluster.topics.get(index).map_or(Uuid::ZERO, |topic| topic.id))
            .map_err(|(code, _)| code)
    }

    /// Deletes a topic; returns false if it doesn't exist.
    pub fn delete_topic(&mut self, name: &str) -> bool {
        let Some(index) = self.cluster.topics.by_name(name) else { return false };
        self.cluster.delete_topic(index);
        self.cluster.run();
        true
    }

    /// Deletes a topic and recreates it, empty and with another ID.
    pub fn recreate_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
    ) -> Result<Uuid, ErrorCode> {
        self.delete_topic(name);
        self.create_topic(name, partitions, replication_factor)
    }

    /// Adds partitions to a topic.
    pub fn create_partitions(&mut self, name: &str, count: i32) -> Result<(), ErrorCode> {
        let index = self.cluster.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        self.cluster.create_partitions(index, count, false).map_err(|(code, _)| code)
    }

    /// Returns the names of all topics.
    pub fn topics(&self) -> Vec<String> {
        self.cluster.topics.in_order().map(|(_, topic)| topic.name.clone()).collect()
    }

    /// A topic's id.
    pub fn topic_id(&self, name: &str) -> Option<Uuid> {
        let index = self.cluster.topics.by_name(name)?;
        self.cluster.topics.get(index).map(|topic| topic.id)
    }

    /// Returns the state of a partition.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<PartitionState> {
        let index = self.cluster.topics.by_name(topic)?;
        let partition = self.cluster.topics.partition(index, partition)?;
        Some(PartitionState {
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            replicas: partition.replicas.clone(),
            in_sync: partition.in_sync.clone(),
            log_start_offset: partition.log.start_offset(),
            high_watermark: partition.log.high_watermark(),
            last_stable_offset: partition.last_stable_offset(),
            log_end_offset: partition.log.end_offset(),
            bytes: partition.log.bytes(),
        })
    }

    /// Returns the record batches of a partition as they are stored.
    pub fn batches(&self, topic: &str, partition: i32) -> Vec<bytes::Bytes> {
        let found = self
            .cluster
            .topics
            .by_name(topic)
            .and_then(|index| self.cluster.topics.partition(index, partition));
        found.map_or_else(Vec::new, |p| p.log.batches_from(0).map(|batch| batch.bytes.clone()).collect())
    }

    /// Changes the stored bytes of the record batch with this offset, as a broken disk does; returns false if there is
    /// no such batch.
    pub fn damage_batch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        damage: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Some(index) = self.cluster.topics.by_name(topic) else { return false };
        let partition = self.cluster.topics.partition_mut(index, partition);
        partition.is_some_and(|partition| partition.log.damage(offset, damage))
    }

    /// Moves a partition's leadership to any broker, with or without a replica; the leader epoch rises. `None` leaves
    /// the partition without a leader. Returns false if the partition or broker doesn't exist.
    pub fn move_leader(&mut self, topic: &str, partition: i32, leader: Option<BrokerId>) -> bool {
        if leader.is_some_and(|leader| !self.cluster.brokers.contains_key(&leader)) {
            return false;
        }
        let Some(index) = self.cluster.topics.by_name(topic) else { return false };
        let Some(state) = self.cluster.topics.partition_mut(index, partition) else { return false };
        if let Some(leader) = leader {
            if !state.replicas.contains(&leader) {
                state.replicas.push(leader);
            }
            if !state.in_sync.contains(&leader) {
                state.in_sync.push(leader);
            }
        }
        // The new leader was in sync, so it has all records of the old one.
        let end = state.log.end_offset();
        state.elect(leader);
        self.cluster.advance_high_watermark(index, partition, end);
        self.cluster.wake_partition(index, partition);
        self.cluster.run();
        true
    }

    /// Moves the leadership of every partition to the next of its replicas that is up.
    pub fn rotate_leaders(&mut self) {
        for (topic, partition) in self.all_partitions() {
            let Some(state) = self.cluster.topics.partition(topic, partition) else { continue };
            let at = state.replicas.iter().position(|id| Some(*id) == state.leader).map_or(0, |at| at + 1);
            let mut next = state.replicas.iter().cycle().skip(at).take(state.replicas.len());
            let next = next.find(|id| self.cluster.brokers[id].alive).copied();
            let Some(name) = self.cluster.topics.get(topic).map(|topic| topic.name.clone()) else { continue };
            if next.is_some() {
                self.move_leader(&name, partition, next);
            }
        }
    }

    /// Moves the leadership of partitions to their first replica if it is up and in sync.
    pub fn elect_preferred_leaders(&mut self) {
        for (topic, partition) in self.all_partitions() {
            let Some(state) = self.cluster.topics.partition(topic, partition) else { continue };
            let preferred = state.replicas.first().copied();
            let in_sync =
                preferred.is_some_and(|id| state.in_sync.contains(&id) && self.cluster.brokers[&id].alive);
            if preferred != state.leader
                && in_sync
                && let Some(name) = self.cluster.topics.get(topic).map(|topic| topic.name.clone())
            {
                self.move_leader(&name, partition, preferred);
            }
        }
    }

    /// Takes a broker down: its connections break, and other in-sync replicas, if there are any, take over its
    /// partitions.
    pub fn kill_broker(&mut self, broker: BrokerId, tail: Tail) {
        match self.cluster.brokers.get_mut(&broker) {
            Some(state) if state.alive => {
                state.alive = false;
                state.sessions.clear();
                self.cluster.telemetry_clients.remove(&broker);
                state.share_sessions = ShareSessions::default();
            }
            _ => return,
        }
        self.cluster.emit(Output::StopListening { broker });
        self.close_connections(Some(broker));
        // Without a quorum nobody notices it.
        let noticed = if self.cluster.has_quorum { self.all_partitions() } else { Vec::new() };
        for (topic, partition) in noticed {
            self.lose_replica(topic, partition, broker, tail);
        }
        if self.cluster.controller == broker
            && let Some((id, _)) = self.cluster.brokers.iter().find(|(_, broker)| broker.alive)
        {
            self.cluster.controller = *id;
        }
        self.cluster.move_transaction_coordinators();
        self.cluster.run();
    }

    /// Restarts a broker with its logs. It leads the partitions again that have no other possible leader.
    pub fn restart_broker(&mut self, broker: BrokerId) {
        match self.cluster.brokers.get_mut(&broker) {
            Some(state) if !state.alive => state.alive = true,
            _ => return,
        }
        self.cluster.emit(Output::StartListening { broker });
        for (topic, partition) in self.all_partitions() {
            let Some(state) = self.cluster.topics.partition_mut(topic, partition) else { continue };
            if !state.replicas.contains(&broker) {
                continue;
            }
            if state.leader.is_some() {
                if !state.in_sync.contains(&broker) {
                    state.in_sync.push(broker);
                }
            } else if state.in_sync.contains(&broker) {
                state.elect(Some(broker));
            }
        }
        let controller_is_up =
            self.cluster.brokers.get(&self.cluster.controller).is_some_and(|state| state.alive);
        if !controller_is_up && self.cluster.has_quorum {
            self.cluster.controller = broker;
        }
        self.cluster.move_transaction_coordinators();
        self.cluster.run();
    }

    /// Returns true if the broker is up.
    pub fn is_alive(&self, broker: BrokerId) -> bool {
        self.cluster.brokers.get(&broker).is_some_and(|broker| broker.alive)
    }

    /// Returns the IDs of all brokers, up or down.
    pub fn brokers(&self) -> Vec<BrokerId> {
        self.cluster.brokers.keys().copied().collect()
    }

    /// Makes another broker the controller.
    pub fn move_controller(&mut self, broker: BrokerId) {
        if self.is_alive(broker) && self.cluster.has_quorum {
            self.cluster.controller = broker;
        }
    }

    /// Sets the controller id that brokers report: also the id of a broker that does not exist, or -1.
    pub fn set_controller_id(&mut self, controller: BrokerId) {
        self.cluster.controller = controller;
    }

    /// Sets or removes a broker's rack.
    pub fn set_rack(&mut self, broker: BrokerId, rack: Option<&str>) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.rack = rack.map(str::to_owned);
        }
    }

    /// Delays every response of the broker by this duration.
    pub fn set_latency(&mut self, broker: BrokerId, latency: Duration) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.latency = latency;
        }
    }

    /// Makes a broker respond to each Fetch request at once, without a fetch session and with all requested partitions,
    /// as some proxies and other implementations do; or lets it wait for records again.
    pub fn set_hasty(&mut self, broker: BrokerId, is_hasty: bool) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.is_hasty = is_hasty;
            broker.sessions.clear();
        }
    }

    /// Refuses connections to a broker, or accepts them again. The cluster treats the broker as up: it keeps its
    /// leadership, and metadata responses list it.
    pub fn set_reachable(&mut self, broker: BrokerId, is_reachable: bool) {
        match self.cluster.brokers.get_mut(&broker) {
            Some(state) if state.unreachable == is_reachable => state.unreachable = !is_reachable,
            _ => return,
        }
        if is_reachable {
            self.cluster.emit(Output::StartListening { broker });
        } else {
            self.cluster.emit(Output::StopListening { broker });
            self.close_connections(Some(broker));
        }
        self.cluster.run();
    }

    /// Sets whether metadata responses list the broker. It still serves clients that know it.
    pub fn set_listed(&mut self, broker: BrokerId, is_listed: bool) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.unlisted = !is_listed;
        }
    }

    /// Sets the endpoint that clients receive for a broker; the listener stays where it is.
    pub fn set_endpoint(&mut self, broker: BrokerId, host: &str, port: u16) {
        self.cluster.set_endpoint(broker, host, port);
    }

    /// Adds a broker, which takes over its share of the partitions. Returns false if its ID is in use or negative. The
    /// driver has to listen for it: over TCP see [`EmbeddedCluster::add_broker`](crate::EmbeddedCluster::add_broker).
    pub fn add_broker(&mut self, broker: BrokerId, host: &str, port: u16) -> bool {
        if broker.0 < 0 || self.cluster.brokers.contains_key(&broker) {
            return false;
        }
        let state = Broker::new(&self.cluster.options, host.to_owned(), port);
        self.cluster.brokers.insert(broker, state);
        self.cluster.move_transaction_coordinators();
        let count = self.cluster.brokers.len();
        let share: Vec<_> = self.all_partitions().into_iter().skip(count - 1).step_by(count).collect();
        for (topic, partition) in share {
            if let Some(name) = self.cluster.topics.get(topic).map(|topic| topic.name.clone()) {
                self.move_leader(&name, partition, Some(broker));
            }
        }
        true
    }

    /// Removes a broker permanently. Other brokers get its replicas, and its partitions get other leaders. Returns
    /// false if the broker doesn't exist.
    pub fn remove_broker(&mut self, broker: BrokerId) -> bool {
        if !self.cluster.brokers.contains_key(&broker) {
            return false;
        }
        self.kill_broker(broker, Tail::Kept);
        self.cluster.brokers.remove(&broker);
        for (topic, partition) in self.all_partitions() {
            let Some(state) = self.cluster.topics.partition(topic, partition) else { continue };
            if !state.replicas.contains(&broker) {
                continue;
            }
            let alive = self.cluster.alive_brokers();
            let free = |id: &&BrokerId| !state.replicas.contains(id);
            let after = alive.iter().copied().filter(|id| *id > broker).find(|id| free(&id));
            let next = after.or_else(|| alive.iter().find(free).copied());
            let Some(state) = self.cluster.topics.partition_mut(topic, partition) else { continue };
            for ids in [&mut state.replicas, &mut state.in_sync] {
                ids.retain(|id| *id != broker);
                ids.extend(next);
            }
            if state.leader.is_none() {
                state.elect(state.in_sync.iter().find(|id| alive.contains(id)).copied());
            }
            self.cluster.wake_partition(topic, partition);
        }
        self.cluster.run();
        true
    }

    /// Sets the coordinator of a group or a transactional ID. The broker needn't exist.
    pub fn set_coordinator(&mut self, key: CoordinatorKey<'_>, broker: BrokerId) {
        let key = match key {
            CoordinatorKey::Group(group) => (0, group.to_owned()),
            CoordinatorKey::Transaction(id) => (1, id.to_owned()),
        };
        self.cluster.coordinators.insert(key, broker);
        self.cluster.move_transaction_coordinators();
    }

    /// Makes the coordinator of a group respond with COORDINATOR_LOAD_IN_PROGRESS for this duration, as one does that
    /// has just become the coordinator.
    pub fn load_group(&mut self, group: &str, duration: Duration) {
        let until = self.cluster.now + duration;
        self.cluster.loading_groups.insert(group.to_owned(), until);
    }

    /// Returns the committed offset of a group for a partition.
    pub fn committed_offset(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let offsets = &self.cluster.groups.get(group)?.offsets;
        offsets.get(&(topic.to_owned(), partition)).map(|committed| committed.offset)
    }

    /// Assigns these partitions to the members of a consumer-protocol group in place of the assignor; unnamed members
    /// get none. `None` returns control to the assignor. The group's epoch rises, and the members receive the change in
    /// their heartbeat responses. The group and the partitions needn't exist: the assignment applies as soon as they
    /// do.
    pub fn set_target_assignment<'t>(
        &mut self,
        group: &str,
        target: Option<impl IntoIterator<Item = (&'t str, Vec<(&'t str, i32)>)>>,
    ) {
        let target = target.map(|members| {
            let mut target: SortedMap<String, SortedSet<(String, i32)>> = SortedMap::new();
            for (member_id, partitions) in members {
                let partitions =
                    partitions.into_iter().map(|(topic, partition)| (topic.to_owned(), partition));
                target.entry(member_id.to_owned()).or_default().extend(partitions);
            }
            target
        });
        self.cluster.groups.set_manual_target(&self.cluster.topics, group, target);
    }

    /// Sets the error that Metadata responses contain for a topic, or removes it.
    pub fn set_topic_error(&mut self, topic: &str, error: Option<ErrorCode>) {
        match error {
            Some(error) => self.cluster.topic_errors.insert(topic.to_owned(), error),
            None => self.cluster.topic_errors.remove(topic),
        };
    }

    /// Sets or removes the preferred read replica of a partition. Returns false if there is no such partition.
    pub fn set_preferred_replica(&mut self, topic: &str, partition: i32, broker: Option<BrokerId>) -> bool {
        self.change_partition(topic, partition, |state| state.preferred_replica = broker)
    }

    /// Sets the log start offset and high watermark that the preferred replica reports; `None` reports the real values.
    pub fn set_preferred_replica_watermarks(
        &mut self,
        topic: &str,
        partition: i32,
        log_start_offset: Option<i64>,
        high_watermark: Option<i64>,
    ) -> bool {
        self.change_partition(topic, partition, |state| {
            state.preferred_watermarks = (log_start_offset, high_watermark);
        })
    }

    /// Queues a leader (-1: none) and leader epoch: each Metadata response takes the next queued one.
    pub fn push_reported_leader(&mut self, topic: &str, partition: i32, leader: i32, epoch: i32) -> bool {
        self.change_partition(topic, partition, |state| state.reported_leaders.push_back((leader, epoch)))
    }

    /// Appends steps to the script of an API: each following request takes one step.
    pub fn script(&mut self, scope: ScriptScope, api: i16, steps: impl IntoIterator<Item = ScriptStep>) {
        self.cluster.faults.extend_script(scope, api, steps);
    }

    /// Returns the number of remaining steps of a script.
    pub fn script_len(&self, scope: &ScriptScope, api: i16) -> usize {
        self.cluster.faults.script_len(scope, api)
    }

    /// Drops the remaining steps of a script.
    pub fn clear_script(&mut self, scope: &ScriptScope, api: i16) {
        self.cluster.faults.clear_script(scope, api);
    }

    /// Injects a fault: failed requests, broken connections, late or lost responses.
    pub fn inject(&mut self, fault: Fault) {
        self.cluster.faults.push(fault);
    }

    /// Removes all injected faults.
    pub fn clear_faults(&mut self) {
        self.cluster.faults.clear();
    }

    /// Makes Metadata responses name the current leaders until [`thaw_metadata`](Self::thaw_metadata).
    pub fn freeze_metadata(&mut self) {
        let mut leaders = SortedMap::new();
        for (topic, partition) in self.all_partitions() {
            if let Some(state) = self.cluster.topics.partition(topic, partition) {
                leaders.insert((topic, partition), (state.leader, state.leader_epoch));
            }
        }
        self.cluster.stale_leaders = Some(leaders);
    }

    /// Makes Metadata responses name the real leaders again.
    pub fn thaw_metadata(&mut self) {
        self.cluster.stale_leaders = None;
    }

    /// Closes the connections of one broker, or all.
    pub fn close_connections(&mut self, broker: Option<BrokerId>) {
        for connection in self.cluster.connections_of(broker) {
            self.cluster.close(connection, "the test closed the connection");
        }
    }

    /// Takes the warnings since the last call, at most 1,000: topic configurations that were accepted and have no
    /// effect.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.cluster.warnings)
    }

    /// Returns the size of the buffers for unhandled requests in bytes, over all connections.
    pub fn queued_request_bytes(&self) -> usize {
        self.cluster.request_bytes
    }

    /// Returns the open connections of one broker, or all.
    pub fn connections(&self, broker: Option<BrokerId>) -> Vec<ConnectionId> {
        self.cluster.connections_of(broker)
    }

    /// Returns the versions of an API that brokers implement, if they implement it.
    pub fn implemented_versions(&self, api: i16) -> Option<(i16, i16)> {
        api::SERVED.iter().find(|(served, ..)| *served as i16 == api).map(|(_, min, max)| (*min, *max))
    }

    /// Limits one broker or all brokers to these versions of an API; an empty range (`max < min`) removes the API.
    pub fn set_api_versions(&mut self, broker: Option<BrokerId>, api: ApiKey, min: i16, max: i16) {
        for (id, state) in &mut self.cluster.brokers {
            if broker.is_none_or(|broker| broker == *id) {
                state.api_versions.insert(api as i16, (min, max));
            }
        }
        if broker.is_none() {
            // The limit also applies to brokers that are added later.
            self.cluster.options.api_versions.insert(api as i16, (min, max));
        }
    }

    /// Evicts all fetch sessions of a broker.
    pub fn evict_fetch_sessions(&mut self, broker: BrokerId) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.sessions.clear();
        }
    }

    /// Returns the IDs of a share group's members, if the group exists.
    pub fn share_group_members(&self, group: &str) -> Option<Vec<String>> {
        let group = self.cluster.share_groups.groups.get(group)?;
        Some(group.members.keys().cloned().collect())
    }

    /// Assigns partitions to a share group's members in place of the assignor; unnamed members get none. `None` returns
    /// control to the assignor. Members receive the change with their next heartbeat response. Returns false if there
    /// is no such group.
    pub fn assign_share_group(
        &mut self,
        group: &str,
        assignments: Option<&std::collections::BTreeMap<String, Vec<(String, i32)>>>,
    ) -> bool {
        self.cluster.assign_share_group(group, assignments)
    }

    /// Removes a producer's state from a partition, as if its records had expired.
    pub fn forget_producer(&mut self, topic: &str, partition: i32, producer_id: i64) {
        if let Some(index) = self.cluster.topics.by_name(topic)
            && let Some(partition) = self.cluster.topics.partition_mut(index, partition)
        {
            partition.producers.forget(producer_id);
        }
    }

    /// Deletes the records of a partition before `offset`.
    pub fn delete_records(&mut self, topic: &str, partition: i32, offset: i64) {
        if let Some(index) = self.cluster.topics.by_name(topic) {
            self.cluster.delete_records_before(index, partition, offset);
        }
    }

    /// Truncates a partition at `offset`, as an unclean leader election does; the leader epoch rises.
    pub fn truncate_log(&mut self, topic: &str, partition: i32, offset: i64) {
        if let Some(index) = self.cluster.topics.by_name(topic) {
            self.cluster.truncate(index, partition, offset);
            if let Some(partition) = self.cluster.topics.partition_mut(index, partition) {
                let leader = partition.leader;
                partition.elect(leader);
            }
            self.cluster.wake_partition(index, partition);
            self.cluster.run();
        }
    }

    /// Returns the requested metrics of clients, and the metrics that they pushed.
    pub fn telemetry(&mut self) -> &mut Telemetry {
        &mut self.cluster.telemetry
    }

    /// Starts to record all requests.
    pub fn record_requests(&mut self) {
        self.cluster.is_recording = true;
    }

    /// Stops recording requests; recorded requests are kept.
    pub fn stop_recording(&mut self) {
        self.cluster.is_recording = false;
    }

    /// Returns the recorded requests that were not taken.
    pub fn requests(&self) -> &[RequestRecord] {
        &self.cluster.request_log
    }

    /// Takes the recorded requests since the last call.
    pub fn take_requests(&mut self) -> Vec<RequestRecord> {
        std::mem::take(&mut self.cluster.request_log)
    }

    fn change_partition(&mut self, topic: &str, partition: i32, change: impl FnOnce(&mut Partition)) -> bool {
        let Some(index) = self.cluster.topics.by_name(topic) else { return false };
        let Some(state) = self.cluster.topics.partition_mut(index, partition) else { return false };
        change(state);
        self.cluster.wake_partition(index, partition);
        self.cluster.run();
        true
    }

    pub(crate) fn all_partitions(&self) -> Vec<(TopicIndex, i32)> {
        let topics = self.cluster.topics.in_order();
        topics.flat_map(|(index, topic)| topic.partitions.iter().map(move |p| (index, p.index))).collect()
    }

    pub(crate) fn lose_replica(&mut self, topic: TopicIndex, partition: i32, broker: BrokerId, tail: Tail) {
        let Some(state) = self.cluster.topics.partition_mut(topic, partition) else { return };
        if !state.replicas.contains(&broker) {
            return;
        }
        if state.in_sync.len() > 1 {
            state.in_sync.retain(|id| *id != broker);
        }
        let (leader, end, watermark) = (state.leader, state.log.end_offset(), state.log.high_watermark());
        if leader == Some(broker) {
            let in_sync = state.in_sync.clone();
            let next = in_sync.into_iter().find(|id| self.cluster.brokers[id].alive);
            if let Some(state) = self.cluster.topics.partition_mut(topic, partition) {
                state.elect(next);
            }
            match tail {
                Tail::Kept => self.cluster.advance_high_watermark(topic, partition, end),
                Tail::Lost => self.cluster.truncate(topic, partition, watermark),
            }
        }
        self.cluster.wake_partition(topic, partition);
    }
}

impl Cluster {
    /// Truncates a partition at `offset`, with the state derived from the lost records.
    pub(crate) fn truncate(&mut self, topic: TopicIndex, partition: i32, offset: i64) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            let before = state.log.bytes();
            state.log.truncate(offset);
            state.replicating.clear();
            state.rebuild_producers();
            self.stored_bytes -= before - state.log.bytes();
            for group in self.share_groups.groups.values_mut() {
                if let Some(seen) = group.partitions.get_mut(&(topic, partition)) {
                    seen.see(state);
                }
            }
        }
    }
}
