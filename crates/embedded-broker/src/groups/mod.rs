//! Consumer groups and their committed offsets.
//!
//! A name belongs to one group with one protocol. In the classic protocol (`classic`) a member assigns the partitions,
//! in the consumer protocol of KIP-848 (`consumer`) the broker does (`assignor`). A group without members is replaced
//! by one of the other protocol, and a group with members is converted (`migration`), as in Kafka. Committed offsets belong
//! to the name and survive both.

mod assignor;
mod classic;
mod consumer;
mod migration;
mod pending;
mod streams;

use ottla_protocol::{
    consumer_protocol::ConsumerProtocolSubscription,
    error_code::ErrorCode,
    generated::{
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
        join_group::{JoinGroupRequest, JoinGroupResponse},
        streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse},
        streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateRequest,
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    time::Instant,
    uuid::Uuid,
};
use ottla_sorted::SortedMap;

pub use assignor::Assignor;
pub(crate) use assignor::Partitions;
pub(crate) use classic::{ClassicGroup, GroupResponses, GroupState, Joiner, join_error, sync_error};
pub(crate) use pending::PendingOffsets;
pub(crate) use streams::{
    MissingTopic, StreamsGroup, StreamsMember, StreamsSettings, Task, Tasks, by_subtopology, is_leaving,
};

pub(crate) use consumer::{
    ConsumerGroup, ConsumerMember, Heartbeat, LEAVES, LEAVES_FOR_A_WHILE, ManualTarget, Settings, TopicRegex,
};

use crate::{
    cluster::{Cluster, Timer},
    connection::{Pending, Waiter},
    provisioning::Refusal,
    topics::Topics,
};

/// All groups of the cluster. A hash of the name selects the coordinator.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: SortedMap<String, Group>,
    /// Assignments set by tests, also for groups that don't exist.
    manual: SortedMap<String, ManualTarget>,
    next_member: u64,
}

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    pub kind: GroupKind,
    pub offsets: SortedMap<(String, i32), CommittedOffset>,
    /// Offsets of open transactions.
    pub pending: PendingOffsets,
    /// The number of offsets that were committed, for the order of commits.
    writes: u64,
    timer: Option<Instant>,
}

/// Who assigns.
#[derive(Debug)]
pub(crate) enum GroupKind {
    /// A group whose leader assigns.
    Classic(ClassicGroup),
    /// The broker.
    Consumer(ConsumerGroup),
    /// The broker, which assigns tasks.
    Streams(StreamsGroup),
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Option<String>,
    /// The number of the commit in its group: later commits have larger ones.
    pub written: u64,
}

impl Groups {
    /// Returns the group of this name.
    pub fn get(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// Returns the group of this name, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Group> {
        self.groups.get_mut(name)
    }

    /// Returns all groups in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Group)> {
        self.groups.iter()
    }

    /// Returns the group of this name; creates a classic group if it does not exist.
    pub fn entry(&mut self, name: &str) -> &mut Group {
        self.groups.entry(name.to_owned()).or_insert_with(|| Group {
            kind: GroupKind::Classic(ClassicGroup::new()),
            offsets: SortedMap::new(),
            pending: PendingOffsets::default(),
            writes: 0,
            timer: None,
        })
    }

    /// Handles a ConsumerGroupHeartbeat of a member that joins or stays; the first one creates the group.
    pub fn consumer_heartbeat(
        &mut self,
        now: Instant,
        topics: &Topics,
        settings: Settings<'_>,
        heartbeat: Heartbeat,
        responses: &mut GroupResponses,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let name = heartbeat.body.group_id.clone();
        if heartbeat.body.member_epoch == 0 && settings.is_migrating {
            self.upgrade(now, topics, &name, responses);
        }
        let settings = Settings { manual: self.manual.get(&name), ..settings };
        match self.groups.get_mut(&name) {
            Some(Group { kind: GroupKind::Consumer(group), .. }) => {
                return group.heartbeat(now, topics, &settings, heartbeat);
            }
            Some(group) if heartbeat.body.member_epoch != 0 || !group.is_empty() => {
                return Err(not_a_consumer_group(&name));
            }
            None if heartbeat.body.member_epoch != 0 => {
                return Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Consumer group {name} not found.")));
            }
            Some(_) | None => {}
        }
        let mut group = ConsumerGroup::new();
        let response = group.heartbeat(now, topics, &settings, heartbeat)?;
        self.entry(&name).kind = GroupKind::Consumer(group);
        Ok(response)
    }

    /// Converts a classic group with members.
    fn upgrade(&mut self, now: Instant, topics: &Topics, name: &str, responses: &mut GroupResponses) {
        let Some(Group { kind, .. }) = self.groups.get_mut(name) else { return };
        if !matches!(kind, GroupKind::Classic(group) if group.is_convertible()) {
            return;
        }
        *kind = match std::mem::replace(kind, GroupKind::Classic(ClassicGroup::new())) {
            GroupKind::Classic(group) => {
                GroupKind::Consumer(ConsumerGroup::from_classic(now, topics, group, responses))
            }
            kind @ (GroupKind::Consumer(_) | GroupKind::Streams(_)) => kind,
        };
    }

    /// Converts a group of the consumer protocol that has only classic members left.
    pub fn downgrade(&mut self, now: Instant, topics: &Topics, name: &str, responses: &mut GroupResponses) {
        let Some(Group { kind, .. }) = self.groups.get_mut(name) else { return };
        if let GroupKind::Consumer(group) = kind
            && group.is_to_be_classic()
        {
            *kind = GroupKind::Classic(group.to_classic(now, topics, false, responses));
        }
    }

    /// Handles a Heartbeat request of a classic member.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        name: &str,
        (member_id, instance_id): (&str, Option<&str>),
        generation: i32,
    ) -> Result<(), ErrorCode> {
        match &mut self.groups.get_mut(name).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?.kind {
            GroupKind::Classic(group) => group.heartbeat(now, member_id, instance_id, generation),
            GroupKind::Consumer(group) => group.classic_heartbeat(now, member_id, instance_id, generation),
            GroupKind::Streams(_) => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    /// Handles a SyncGroup request; returns the response unless it has to wait.
    pub fn sync(
        &mut self,
        now: Instant,
        topics: &Topics,
        waiter: Waiter,
        body: SyncGroupRequest,
        responses: &mut GroupResponses,
    ) -> Option<SyncGroupResponse> {
        match self.groups.get_mut(&body.group_id).map(|group| &mut group.kind) {
            Some(GroupKind::Classic(group)) => group.sync(now, waiter, body, responses),
            Some(GroupKind::Consumer(group)) => Some(group.classic_sync(now, topics, &body)),
            Some(GroupKind::Streams(_)) | None => Some(sync_error(ErrorCode::UNKNOWN_MEMBER_ID)),
        }
    }

    /// Handles a ConsumerGroupHeartbeat of a member that leaves.
    pub fn consumer_leave(
        &mut self,
        body: &ConsumerGroupHeartbeatRequest,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        match self.groups.get_mut(&body.group_id) {
            Some(Group { kind: GroupKind::Consumer(group), .. }) => group.leave(body),
            Some(_) => Err(not_a_consumer_group(&body.group_id)),
            None => Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {} not found.", body.group_id))),
        }
    }

    /// Handles a StreamsGroupHeartbeat of a member that joins or stays; the first one creates the group.
    pub fn streams_heartbeat(
        &mut self,
        now: Instant,
        topics: &Topics,
        settings: &StreamsSettings,
        client_id: &str,
        body: &StreamsGroupHeartbeatRequest,
    ) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
        let name = &body.group_id;
        match self.groups.get_mut(name) {
            Some(Group { kind: GroupKind::Streams(group), .. }) => {
                return group.heartbeat(now, topics, settings, client_id, body);
            }
            Some(group) if body.member_epoch != 0 || !group.is_empty() => {
                return Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} is not a streams group.")));
            }
            None if body.member_epoch != 0 => {
                return Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Streams group {name} not found.")));
            }
            Some(_) | None => {}
        }
        let mut group = StreamsGroup::default();
        let response = group.heartbeat(now, topics, settings, client_id, body)?;
        self.entry(name).kind = GroupKind::Streams(group);
        Ok(response)
    }

    /// Handles a StreamsGroupHeartbeat of a member that leaves.
    pub fn streams_leave(
        &mut self,
        body: &StreamsGroupHeartbeatRequest,
    ) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
        let name = &body.group_id;
        match self.groups.get_mut(name) {
            Some(Group { kind: GroupKind::Streams(group), .. }) => group.leave(body),
            Some(_) => Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} is not a streams group."))),
            None => Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} not found."))),
        }
    }

    /// Stores the description of a streams group's topology.
    pub fn store_topology_description(
        &mut self,
        body: StreamsGroupTopologyDescriptionUpdateRequest,
    ) -> Result<(), Refusal> {
        let name = &body.group_id;
        match self.groups.get_mut(name) {
            Some(Group { kind: GroupKind::Streams(group), .. }) => group.store_description(body),
            Some(_) => Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} is not a streams group."))),
            None => Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} not found."))),
        }
    }

    /// Returns the internal topics that a streams group lacks.
    pub fn missing_topics(&self, name: &str) -> Vec<MissingTopic> {
        match self.groups.get(name) {
            Some(Group { kind: GroupKind::Streams(group), .. }) => group.missing_topics().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Overrides the assignor of a group of the consumer protocol; `None` returns control to it.
    pub fn set_manual_target(&mut self, topics: &Topics, name: &str, target: Option<ManualTarget>) {
        match target {
            Some(target) => self.manual.insert(name.to_owned(), target),
            None => self.manual.remove(name),
        };
        if let Some(Group { kind: GroupKind::Consumer(group), .. }) = self.groups.get_mut(name) {
            group.retarget(topics, self.manual.get(name));
        }
    }

    /// Handles a LeaveGroup request, from the member itself or from an administrator.
    pub fn leave(
        &mut self,
        now: Instant,
        name: &str,
        (member_id, instance_id): (&str, Option<&str>),
        responses: &mut GroupResponses,
    ) -> Result<(), ErrorCode> {
        match &mut self.groups.get_mut(name).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?.kind {
            GroupKind::Classic(group) => group.leave(now, member_id, instance_id, responses),
            GroupKind::Consumer(group) => group.remove_member(member_id, instance_id),
            GroupKind::Streams(_) => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    /// Removes a group with its committed offsets.
    pub fn remove(&mut self, name: &str) {
        self.groups.remove(name);
    }

    /// Removes the offsets that groups committed for a topic, as Kafka does when the topic is deleted.
    pub fn forget_topic(&mut self, topic: &str) {
        for group in self.groups.values_mut() {
            group.offsets.retain(|(name, _), _| name != topic);
            group.pending.forget_topic(topic);
        }
    }

    /// Handles a JoinGroup request; returns the response unless it has to wait.
    pub fn join(
        &mut self,
        now: Instant,
        topics: &Topics,
        initial_delay: std::time::Duration,
        joiner: Joiner<'_>,
        body: &JoinGroupRequest,
        responses: &mut GroupResponses,
    ) -> Option<JoinGroupResponse> {
        self.next_member += 1;
        let new_id = format!("{}-{:08x}", joiner.client_id, self.next_member);
        let group = self.entry(&body.group_id);
        match &mut group.kind {
            GroupKind::Classic(group) => group.join(now, initial_delay, joiner, body, new_id, responses),
            GroupKind::Consumer(members) if !members.members.is_empty() => {
                let (response, is_settled) = members.classic_join(now, topics, joiner, body, new_id);
                if is_settled {
                    group.kind = GroupKind::Classic(members.to_classic(now, topics, true, responses));
                }
                Some(response)
            }
            GroupKind::Streams(members) if !members.members.is_empty() => {
                Some(join_error(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &body.member_id))
            }
            GroupKind::Consumer(_) | GroupKind::Streams(_) => {
                let mut classic = ClassicGroup::new();
                let response = classic.join(now, initial_delay, joiner, body, new_id, responses);
                group.kind = GroupKind::Classic(classic);
                response
            }
        }
    }
}

fn not_a_consumer_group(name: &str) -> Refusal {
    (ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} is not a consumer group."))
}

impl Group {
    /// Checks whether this member may commit offsets. With a negative generation the client is not a member.
    pub fn check_commit(
        &mut self,
        now: Instant,
        version: i16,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        match &mut self.kind {
            GroupKind::Classic(group) => group.check_commit(now, member_id, instance_id, generation),
            GroupKind::Consumer(group) => group.check_commit(version, member_id, generation),
            GroupKind::Streams(group) => group.check_commit(member_id, generation),
        }
    }

    /// Checks whether this member, or a client that names no member, may commit offsets in a transaction.
    pub fn check_transactional_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        let names_member = generation >= 0 || !member_id.is_empty() || instance_id.is_some();
        if !names_member || generation < 0 && self.is_empty() {
            return Ok(());
        }
        match &self.kind {
            GroupKind::Classic(group) => {
                group.check_member(member_id, instance_id)?;
                if generation == group.generation { Ok(()) } else { Err(ErrorCode::ILLEGAL_GENERATION) }
            }
            GroupKind::Consumer(group) => group.check_commit(i16::MAX, member_id, generation),
            GroupKind::Streams(group) => group.check_commit(member_id, generation),
        }
    }

    /// Checks whether a member that may commit is in its current epoch, as coordinators before KIP-1251 do.
    pub fn check_commit_epoch(&self, member_id: &str, epoch: i32) -> Result<(), ErrorCode> {
        match &self.kind {
            GroupKind::Classic(_) | GroupKind::Streams(_) => Ok(()),
            GroupKind::Consumer(group) => {
                group.members.get(member_id).map_or(Ok(()), |member| member.check_epoch(epoch))
            }
        }
    }

    /// Checks whether a member that may commit may do so for this partition.
    pub fn check_commit_of(
        &self,
        member_id: &str,
        epoch: i32,
        topic: Uuid,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        match &self.kind {
            GroupKind::Classic(_) | GroupKind::Streams(_) => Ok(()),
            GroupKind::Consumer(group) => group.check_commit_of(member_id, epoch, topic, partition),
        }
    }

    /// Checks whether this member, or a client that names no member, may fetch committed offsets. A classic group
    /// allows every client.
    pub fn check_offset_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match &self.kind {
            GroupKind::Classic(_) => Ok(()),
            GroupKind::Consumer(group) => group.check_offset_fetch(member_id, epoch),
            GroupKind::Streams(group) => group.check_offset_fetch(member_id, epoch),
        }
    }

    /// Returns Kafka's name of the state.
    pub fn state_name(&self) -> &'static str {
        match &self.kind {
            GroupKind::Classic(group) => group.state.name(),
            GroupKind::Consumer(group) => group.state_name(),
            GroupKind::Streams(group) => group.state_name(),
        }
    }

    /// Returns Kafka's name of the type.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            GroupKind::Classic(_) => "classic",
            GroupKind::Consumer(_) => "consumer",
            GroupKind::Streams(_) => "streams",
        }
    }

    /// Returns the protocol type that the members sent.
    pub fn protocol_type(&self) -> &str {
        match &self.kind {
            GroupKind::Classic(group) => group.protocol_type.as_deref().unwrap_or_default(),
            GroupKind::Consumer(_) => "consumer",
            GroupKind::Streams(_) => "streams",
        }
    }

    /// Returns true if a member subscribes to the topic. A classic member whose subscription can't be read might.
    pub fn subscribes_to(&self, topics: &Topics, topic: &str) -> bool {
        match &self.kind {
            GroupKind::Classic(group) => group.members.values().any(|member| {
                let chosen = |(name, _): &&(String, Vec<u8>)| Some(name) == group.protocol.as_ref();
                let metadata = member.protocols.iter().find(chosen).or(member.protocols.first());
                let decoded = metadata.map(|(_, bytes)| ConsumerProtocolSubscription::from_bytes(bytes));
                match decoded {
                    Some(Ok((_, subscription))) => subscription.topics.iter().any(|name| name == topic),
                    _ => true,
                }
            }),
            GroupKind::Streams(group) => group.subscribes_to(topic),
            GroupKind::Consumer(group) => {
                let id = topics.by_name(topic).and_then(|index| topics.get(index)).map(|topic| topic.id);
                id.is_some_and(|id| {
                    group.members.values().any(|member| member.subscribed(topics).contains(&id))
                })
            }
        }
    }

    /// Returns true if it has no members.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            GroupKind::Classic(group) => group.state == GroupState::Empty,
            GroupKind::Consumer(group) => group.members.is_empty(),
            GroupKind::Streams(group) => group.members.is_empty(),
        }
    }

    fn handle_timeout(&mut self, now: Instant, responses: &mut GroupResponses) {
        self.timer = self.timer.filter(|timer| *timer > now);
        match &mut self.kind {
            GroupKind::Classic(group) => group.handle_timeout(now, responses),
            GroupKind::Consumer(group) => group.handle_timeout(now),
            GroupKind::Streams(group) => group.handle_timeout(now),
        }
    }

    /// Returns when the group must be checked next, if no timer is set for it.
    fn next_timer(&mut self) -> Option<Instant> {
        let next = match &self.kind {
            GroupKind::Classic(group) => group.next_due(),
            GroupKind::Consumer(group) => group.next_due(),
            GroupKind::Streams(group) => group.next_due(),
        };
        let next = next.filter(|next| self.timer.is_none_or(|timer| timer > *next))?;
        self.timer = Some(next);
        Some(next)
    }
}

impl Cluster {
    /// Handles a group's timer.
    pub(crate) fn group_timeout(&mut self, name: &str) {
        let mut responses = GroupResponses::default();
        if let Some(group) = self.groups.groups.get_mut(name) {
            group.handle_timeout(self.now, &mut responses);
        }
        self.settle_group(name, responses);
    }

    /// Sends the responses that became available by a change of a group, and sets its timer.
    pub(crate) fn settle_group(&mut self, name: &str, mut responses: GroupResponses) {
        self.groups.downgrade(self.now, &self.topics, name, &mut responses);
        for (waiter, mut response) in responses.joins {
            if let Some(Pending::Group(request)) = self.take_pending(waiter) {
                response.throttle_time_ms = request.throttle_ms();
                self.respond_with(&request, &response);
            }
        }
        for (waiter, mut response) in responses.syncs {
            if let Some(Pending::Group(request)) = self.take_pending(waiter) {
                response.throttle_time_ms = request.throttle_ms();
                self.respond_with(&request, &response);
            }
        }
        if let Some(at) = self.groups.groups.get_mut(name).and_then(Group::next_timer) {
            self.timers.set(at, Timer::Group(name.to_owned()));
        }
    }
}
