//! What tests can make happen: topics, leaders, faults, broken connections, killed brokers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode, uuid::Uuid};

use crate::{
    api::{self, share_sessions::ShareSessions},
    cluster::{Broker, Cluster, Output, RequestRecord},
    connection::ConnectionId,
    faults::{Fault, ScriptScope, ScriptStep},
    options::{BrokerId, ClusterOptions},
    producer_state::ProducerStates,
    releases::BrokerRelease,
    telemetry::Telemetry,
    topics::{Partition, TopicIndex},
};

/// Power over a [`Cluster`]. What it does takes effect at once, at the time of the last input.
#[derive(Debug)]
pub struct Control<'a> {
    cluster: &'a mut Cluster,
}

/// What becomes of records that a killed broker had taken but no follower had yet got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The followers have them after all.
    Kept,
    /// They are lost.
    Lost,
}

/// What has a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorKey<'a> {
    /// A consumer group.
    Group(&'a str),
    /// A transactional id.
    Transaction(&'a str),
}

/// A partition as the cluster sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// Who leads, if anybody.
    pub leader: Option<BrokerId>,
    /// How often the leader changed.
    pub leader_epoch: i32,
    /// Who has a replica.
    pub replicas: Vec<BrokerId>,
    /// Whose replica is in sync.
    pub in_sync: Vec<BrokerId>,
    /// The first offset.
    pub log_start_offset: i64,
    /// Where consumers may read to.
    pub high_watermark: i64,
    /// The next record's offset.
    pub log_end_offset: i64,
    /// Bytes in the log.
    pub bytes: u64,
}

impl<'a> Control<'a> {
    pub(crate) fn new(cluster: &'a mut Cluster) -> Self {
        Self { cluster }
    }

    /// The cluster's options. Changes hold from the next request on; those that describe the brokers have no effect.
    pub fn options(&mut self) -> &mut ClusterOptions {
        &mut self.cluster.options
    }

    /// Creates a topic; the partitions' leaders are the brokers in turn.
    pub fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
    ) -> Result<Uuid, ErrorCode> {
        let created = self.cluster.create_topic(name, partitions, replication_factor, BTreeMap::new(), false);
        created
            .map(|index| self.cluster.topics.get(index).map_or(Uuid::ZERO, |topic| topic.id))
            .map_err(|(code, _)| code)
    }

    /// Deletes a topic; false if there is none of this name.
    pub fn delete_topic(&mut self, name: &str) -> bool {
        let Some(index) = self.cluster.topics.by_name(name) else { return false };
        self.cluster.delete_topic(index);
        self.cluster.run();
        true
    }

    /// Deletes a topic and creates it anew, empty and with another id.
    pub fn recreate_topic(
        &mut self,
        name: &str,
        partitions: i32,
        replication_factor: i16,
    ) -> Result<Uuid, ErrorCode> {
        self.delete_topic(name);
        self.create_topic(name, partitions, replication_factor)
    }

    /// Gives a topic more partitions.
    pub fn create_partitions(&mut self, name: &str, count: i32) -> Result<(), ErrorCode> {
        let index = self.cluster.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        self.cluster.create_partitions(index, count, false).map_err(|(code, _)| code)
    }

    /// The names of all topics.
    pub fn topics(&self) -> Vec<String> {
        self.cluster.topics.in_order().map(|(_, topic)| topic.name.clone()).collect()
    }

    /// A topic's id.
    pub fn topic_id(&self, name: &str) -> Option<Uuid> {
        let index = self.cluster.topics.by_name(name)?;
        self.cluster.topics.get(index).map(|topic| topic.id)
    }

    /// How a partition stands.
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
            log_end_offset: partition.log.end_offset(),
            bytes: partition.log.bytes(),
        })
    }

    /// The record batches of a partition, as they are stored.
    pub fn batches(&self, topic: &str, partition: i32) -> Vec<bytes::Bytes> {
        let found = self
            .cluster
            .topics
            .by_name(topic)
            .and_then(|index| self.cluster.topics.partition(index, partition));
        found.map_or_else(Vec::new, |p| p.log.batches_from(0).map(|batch| batch.bytes.clone()).collect())
    }

    /// Changes the stored bytes of the record batch that has this offset, as a broken disk does; false if there is none.
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

    /// Moves a partition's leadership, to a broker that needn't have had a replica; the leader epoch rises. With `None`
    /// nobody leads. False if there is no such partition or broker.
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
        // The new leader was in sync: what the old one had, it has.
        let end = state.log.end_offset();
        state.elect(leader);
        self.cluster.advance_high_watermark(index, partition, end);
        self.cluster.wake_partition(index, partition);
        self.cluster.run();
        true
    }

    /// Moves every partition's leadership to the next of its replicas that is up.
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

    /// Gives partitions back to their first replica, where that is up and in sync.
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

    /// Takes a broker down: its connections break, and its partitions go to other replicas in sync, if there are any.
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
        for (topic, partition) in self.all_partitions() {
            self.lose_replica(topic, partition, broker, tail);
        }
        if self.cluster.controller == broker
            && let Some((id, _)) = self.cluster.brokers.iter().find(|(_, broker)| broker.alive)
        {
            self.cluster.controller = *id;
        }
        self.cluster.run();
    }

    /// Brings a broker back with its logs; it leads again where nobody else could.
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
        if !controller_is_up {
            self.cluster.controller = broker;
        }
        self.cluster.run();
    }

    /// The broker is up.
    pub fn is_alive(&self, broker: BrokerId) -> bool {
        self.cluster.brokers.get(&broker).is_some_and(|broker| broker.alive)
    }

    /// The ids of all brokers, up or not.
    pub fn brokers(&self) -> Vec<BrokerId> {
        self.cluster.brokers.keys().copied().collect()
    }

    /// Makes another broker the controller.
    pub fn move_controller(&mut self, broker: BrokerId) {
        if self.is_alive(broker) {
            self.cluster.controller = broker;
        }
    }

    /// Puts a broker into a rack, or into none.
    pub fn set_rack(&mut self, broker: BrokerId, rack: Option<&str>) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.rack = rack.map(str::to_owned);
        }
    }

    /// Every answer of the broker comes this much later than it could.
    pub fn set_latency(&mut self, broker: BrokerId, latency: Duration) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.latency = latency;
        }
    }

    /// Takes no connections for a broker, or takes them again. The cluster goes on as if it were up: nobody else leads for
    /// it, and clients are still told of it.
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

    /// Whether clients are told that the broker exists. It goes on serving those that know it.
    pub fn set_listed(&mut self, broker: BrokerId, is_listed: bool) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.unlisted = !is_listed;
        }
    }

    /// Where clients are told to find a broker; it listens where it did.
    pub fn set_endpoint(&mut self, broker: BrokerId, host: &str, port: u16) {
        self.cluster.set_endpoint(broker, host, port);
    }

    /// Adds a broker, which takes over its share of the partitions. False if its id is taken or negative. The driver has
    /// to listen for it: over TCP see [`EmbeddedCluster::add_broker`](crate::EmbeddedCluster::add_broker).
    pub fn add_broker(&mut self, broker: BrokerId, host: &str, port: u16) -> bool {
        if broker.0 < 0 || self.cluster.brokers.contains_key(&broker) {
            return false;
        }
        let state = Broker::new(&self.cluster.options, host.to_owned(), port);
        self.cluster.brokers.insert(broker, state);
        let count = self.cluster.brokers.len();
        let share: Vec<_> = self.all_partitions().into_iter().skip(count - 1).step_by(count).collect();
        for (topic, partition) in share {
            if let Some(name) = self.cluster.topics.get(topic).map(|topic| topic.name.clone()) {
                self.move_leader(&name, partition, Some(broker));
            }
        }
        true
    }

    /// Removes a broker for good; other brokers get its replicas, and partitions that it led another leader. False if
    /// there is none of this id.
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

    /// Chooses the coordinator of a group or a transactional id, which needn't be a broker that exists.
    pub fn set_coordinator(&mut self, key: CoordinatorKey<'_>, broker: BrokerId) {
        let key = match key {
            CoordinatorKey::Group(group) => (0, group.to_owned()),
            CoordinatorKey::Transaction(id) => (1, id.to_owned()),
        };
        self.cluster.coordinators.insert(key, broker);
    }

    /// Gives the members of a group of the consumer protocol these partitions of topics, in place of what the assignor
    /// would; members that are not named get none. With `None` the assignor decides again. The group's epoch rises, and
    /// the members learn of it by their heartbeats. It holds for a group that is yet to come as well; partitions that there
    /// are not are given as soon as there are.
    pub fn set_target_assignment<'t>(
        &mut self,
        group: &str,
        target: Option<impl IntoIterator<Item = (&'t str, Vec<(&'t str, i32)>)>>,
    ) {
        let target = target.map(|members| {
            let mut target: BTreeMap<String, BTreeSet<(String, i32)>> = BTreeMap::new();
            for (member_id, partitions) in members {
                let partitions =
                    partitions.into_iter().map(|(topic, partition)| (topic.to_owned(), partition));
                target.entry(member_id.to_owned()).or_default().extend(partitions);
            }
            target
        });
        self.cluster.groups.set_manual_target(&self.cluster.topics, group, target);
    }

    /// Lets Metadata answer this error for a topic, or the truth again.
    pub fn set_topic_error(&mut self, topic: &str, error: Option<ErrorCode>) {
        match error {
            Some(error) => self.cluster.topic_errors.insert(topic.to_owned(), error),
            None => self.cluster.topic_errors.remove(topic),
        };
    }

    /// Sends the consumers of a partition to this broker, or no longer. False if there is no such partition.
    pub fn set_preferred_replica(&mut self, topic: &str, partition: i32, broker: Option<BrokerId>) -> bool {
        self.change_partition(topic, partition, |state| state.preferred_replica = broker)
    }

    /// Log start offset and high watermark that the preferred replica gives; `None` for the truth.
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

    /// The next Metadata answer names this leader (-1: none) and leader epoch, the one after it the next that was pushed.
    pub fn push_told_leader(&mut self, topic: &str, partition: i32, leader: i32, epoch: i32) -> bool {
        self.change_partition(topic, partition, |state| state.told_leaders.push_back((leader, epoch)))
    }

    /// Appends steps to the script of an API: each of the next requests takes one.
    pub fn script(&mut self, scope: ScriptScope, api: i16, steps: impl IntoIterator<Item = ScriptStep>) {
        self.cluster.faults.extend_script(scope, api, steps);
    }

    /// How many steps of a script are left.
    pub fn script_len(&self, scope: &ScriptScope, api: i16) -> usize {
        self.cluster.faults.script_len(scope, api)
    }

    /// Forgets what is left of a script.
    pub fn clear_script(&mut self, scope: &ScriptScope, api: i16) {
        self.cluster.faults.clear_script(scope, api);
    }

    /// Lets requests fail, connections break, answers be late or get lost.
    pub fn inject(&mut self, fault: Fault) {
        self.cluster.faults.push(fault);
    }

    /// Ends all faults that were injected.
    pub fn clear_faults(&mut self) {
        self.cluster.faults.clear();
    }

    /// Metadata answers go on naming the leaders of now, until [`thaw_metadata`](Self::thaw_metadata).
    pub fn freeze_metadata(&mut self) {
        let mut leaders = BTreeMap::new();
        for (topic, partition) in self.all_partitions() {
            if let Some(state) = self.cluster.topics.partition(topic, partition) {
                leaders.insert((topic, partition), (state.leader, state.leader_epoch));
            }
        }
        self.cluster.stale_leaders = Some(leaders);
    }

    /// Metadata answers tell the truth again.
    pub fn thaw_metadata(&mut self) {
        self.cluster.stale_leaders = None;
    }

    /// Closes a broker's connections, or all.
    pub fn close_connections(&mut self, broker: Option<BrokerId>) {
        for connection in self.cluster.connections_of(broker) {
            self.cluster.close(connection, "the test closed the connection");
        }
    }

    /// The open connections to a broker, or all.
    pub fn connections(&self, broker: Option<BrokerId>) -> Vec<ConnectionId> {
        self.cluster.connections_of(broker)
    }

    /// The versions of an API that brokers can serve, if they can at all.
    pub fn implemented_versions(&self, api: i16) -> Option<(i16, i16)> {
        api::SERVED.iter().find(|(served, ..)| *served as i16 == api).map(|(_, min, max)| (*min, *max))
    }

    /// Limits a broker to these versions of an API, or all brokers; an empty range (`max < min`) removes the API.
    pub fn set_api_versions(&mut self, broker: Option<BrokerId>, api: ApiKey, min: i16, max: i16) {
        for (id, state) in &mut self.cluster.brokers {
            if broker.is_none_or(|broker| broker == *id) {
                state.api_versions.insert(api as i16, (min, max));
            }
        }
        if broker.is_none() {
            // Brokers that are added later are like the others.
            self.cluster.options.api_versions.insert(api as i16, (min, max));
        }
    }

    /// Lets all brokers serve only what this release did.
    pub fn emulate(&mut self, release: BrokerRelease) {
        for broker in self.cluster.brokers.values_mut() {
            broker.api_versions = release.api_versions();
        }
    }

    /// A broker forgets all fetch sessions.
    pub fn evict_fetch_sessions(&mut self, broker: BrokerId) {
        if let Some(broker) = self.cluster.brokers.get_mut(&broker) {
            broker.sessions.clear();
        }
    }

    /// The ids of a share group's members, if there is such a group.
    pub fn share_group_members(&self, group: &str) -> Option<Vec<String>> {
        let group = self.cluster.share_groups.groups.get(group)?;
        Some(group.members.keys().cloned().collect())
    }

    /// Assigns the partitions of topics to a share group's members by hand, in place of the assignor; who isn't named gets
    /// none. With `None` the assignor assigns again. Members hear of it with their next heartbeat. False if there is no
    /// such group.
    pub fn assign_share_group(
        &mut self,
        group: &str,
        assignments: Option<&BTreeMap<String, Vec<(String, i32)>>>,
    ) -> bool {
        self.cluster.assign_share_group(group, assignments)
    }

    /// A partition forgets a producer, as when its records have expired.
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
            self.cluster.advance_log_start(index, partition, offset);
        }
    }

    /// Loses the records of a partition from `offset` on, as an unclean leader election does; the leader epoch rises.
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

    /// Which metrics clients are asked for, and what they pushed.
    pub fn telemetry(&mut self) -> &mut Telemetry {
        &mut self.cluster.telemetry
    }

    /// From now on all requests are recorded.
    pub fn record_requests(&mut self) {
        self.cluster.is_recording = true;
    }

    /// From now on no request is recorded; those that were stay.
    pub fn stop_recording(&mut self) {
        self.cluster.is_recording = false;
    }

    /// The requests that were recorded and not taken.
    pub fn requests(&self) -> &[RequestRecord] {
        &self.cluster.request_log
    }

    /// The requests since the last call, if they are recorded.
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

    fn all_partitions(&self) -> Vec<(TopicIndex, i32)> {
        let topics = self.cluster.topics.in_order();
        topics.flat_map(|(index, topic)| topic.partitions.iter().map(move |p| (index, p.index))).collect()
    }

    fn lose_replica(&mut self, topic: TopicIndex, partition: i32, broker: BrokerId, tail: Tail) {
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
    /// Loses a partition's records from `offset` on, and what was known from them.
    pub(crate) fn truncate(&mut self, topic: TopicIndex, partition: i32, offset: i64) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            let before = state.log.bytes();
            state.log.truncate(offset);
            state.replicating.clear();
            state.producers = ProducerStates::rebuild(state.log.headers());
            self.stored_bytes -= before - state.log.bytes();
            for group in self.share_groups.groups.values_mut() {
                if let Some(seen) = group.partitions.get_mut(&(topic, partition)) {
                    seen.see(state);
                }
            }
        }
    }
}
