//! Groups of consumers, and the offsets that they committed.
//!
//! A name is one group's, of one protocol: in the classic one (`classic`) a member assigns the partitions, in the consumer
//! protocol of KIP-848 (`consumer`) the broker does (`assignor`). A group without members gives way to one of the other
//! protocol, as in Kafka; one that has members does not: Kafka's migration of live groups is not here. What was
//! committed is the name's, whatever its group.

mod assignor;
mod classic;
mod consumer;

use std::collections::BTreeMap;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
        join_group::{JoinGroupRequest, JoinGroupResponse},
    },
    time::Instant,
    uuid::Uuid,
};

pub(crate) use assignor::{Assignor, Partitions};
pub(crate) use classic::{Asker, ClassicGroup, GroupAnswers, GroupState, join_error, sync_error};
pub(crate) use consumer::{
    ConsumerGroup, ConsumerMember, Heartbeat, LEAVES, LEAVES_FOR_A_WHILE, ManualTarget, Settings, TopicRegex,
};

use crate::{
    cluster::{Cluster, Timer},
    connection::Pending,
    provisioning::Refusal,
    topics::Topics,
};

/// All groups of the cluster. Which broker coordinates one is a matter of its name.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<String, Group>,
    /// What was assigned by hand, also to groups that are yet to come.
    manual: BTreeMap<String, ManualTarget>,
    next_member: u64,
}

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    pub kind: GroupKind,
    pub offsets: BTreeMap<(String, i32), CommittedOffset>,
    timer: Option<Instant>,
}

/// Who assigns.
#[derive(Debug)]
pub(crate) enum GroupKind {
    /// One of the members.
    Classic(ClassicGroup),
    /// The broker.
    Consumer(ConsumerGroup),
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Option<String>,
}

impl Groups {
    /// The group of this name.
    pub fn get(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// All groups, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Group)> {
        self.groups.iter()
    }

    /// The group of this name, created as one of the classic protocol if there is none.
    pub fn entry(&mut self, name: &str) -> &mut Group {
        self.groups.entry(name.to_owned()).or_insert_with(|| Group {
            kind: GroupKind::Classic(ClassicGroup::new()),
            offsets: BTreeMap::new(),
            timer: None,
        })
    }

    /// The group of this name, if it is of the classic protocol.
    pub fn classic_mut(&mut self, name: &str) -> Option<&mut ClassicGroup> {
        match &mut self.groups.get_mut(name)?.kind {
            GroupKind::Classic(group) => Some(group),
            GroupKind::Consumer(_) => None,
        }
    }

    /// A ConsumerGroupHeartbeat of who stays or comes; the first one makes the group.
    pub fn consumer_heartbeat(
        &mut self,
        now: Instant,
        topics: &Topics,
        settings: Settings<'_>,
        heartbeat: Heartbeat,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let name = heartbeat.body.group_id.clone();
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
        let answer = group.heartbeat(now, topics, &settings, heartbeat)?;
        self.entry(&name).kind = GroupKind::Consumer(group);
        Ok(answer)
    }

    /// A ConsumerGroupHeartbeat of who goes.
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

    /// From now on the members of a group of the consumer protocol get what is said here; with `None`, what the assignor
    /// says.
    pub fn set_manual_target(&mut self, topics: &Topics, name: &str, target: Option<ManualTarget>) {
        match target {
            Some(target) => self.manual.insert(name.to_owned(), target),
            None => self.manual.remove(name),
        };
        if let Some(Group { kind: GroupKind::Consumer(group), .. }) = self.groups.get_mut(name) {
            group.retarget(topics, self.manual.get(name));
        }
    }

    /// A member leaves by a LeaveGroup request, its own or an administrator's.
    pub fn leave(
        &mut self,
        now: Instant,
        name: &str,
        (member_id, instance_id): (&str, Option<&str>),
        answers: &mut GroupAnswers,
    ) -> Result<(), ErrorCode> {
        match &mut self.groups.get_mut(name).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?.kind {
            GroupKind::Classic(group) => group.leave(now, member_id, instance_id, answers),
            GroupKind::Consumer(group) => group.remove_member(member_id, instance_id),
        }
    }

    /// Forgets a group with all that was committed.
    pub fn remove(&mut self, name: &str) {
        self.groups.remove(name);
    }

    /// A JoinGroup request: the answer, if it needn't wait.
    pub fn join(
        &mut self,
        now: Instant,
        initial_delay: std::time::Duration,
        asker: Asker<'_>,
        body: &JoinGroupRequest,
        answers: &mut GroupAnswers,
    ) -> Option<JoinGroupResponse> {
        self.next_member += 1;
        let new_id = format!("{}-{:08x}", asker.client_id, self.next_member);
        let group = self.entry(&body.group_id);
        match &mut group.kind {
            GroupKind::Classic(group) => group.join(now, initial_delay, asker, body, new_id, answers),
            GroupKind::Consumer(members) if !members.members.is_empty() => {
                Some(join_error(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &body.member_id))
            }
            GroupKind::Consumer(_) => {
                let mut classic = ClassicGroup::new();
                let answer = classic.join(now, initial_delay, asker, body, new_id, answers);
                group.kind = GroupKind::Classic(classic);
                answer
            }
        }
    }
}

fn not_a_consumer_group(name: &str) -> Refusal {
    (ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {name} is not a consumer group."))
}

impl Group {
    /// May offsets be committed by this member (or, with a negative generation, by somebody who is none)?
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
        }
    }

    /// Whether who may commit may do so for this partition.
    pub fn check_commit_of(
        &self,
        member_id: &str,
        epoch: i32,
        topic: Uuid,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        match &self.kind {
            GroupKind::Classic(_) => Ok(()),
            GroupKind::Consumer(group) => group.check_commit_of(member_id, epoch, topic, partition),
        }
    }

    /// May committed offsets be told to this member, or to somebody who doesn't say who it is? A classic group asks nobody.
    pub fn check_offset_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match &self.kind {
            GroupKind::Classic(_) => Ok(()),
            GroupKind::Consumer(group) => group.check_offset_fetch(member_id, epoch),
        }
    }

    /// As Kafka writes it.
    pub fn state_name(&self) -> &'static str {
        match &self.kind {
            GroupKind::Classic(group) => group.state.name(),
            GroupKind::Consumer(group) => group.state_name(),
        }
    }

    /// As Kafka writes it.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            GroupKind::Classic(_) => "classic",
            GroupKind::Consumer(_) => "consumer",
        }
    }

    /// What its members say they are.
    pub fn protocol_type(&self) -> &str {
        match &self.kind {
            GroupKind::Classic(group) => group.protocol_type.as_deref().unwrap_or_default(),
            GroupKind::Consumer(_) => "consumer",
        }
    }

    /// It has no members.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            GroupKind::Classic(group) => group.state == GroupState::Empty,
            GroupKind::Consumer(group) => group.members.is_empty(),
        }
    }

    fn handle_timeout(&mut self, now: Instant, answers: &mut GroupAnswers) {
        self.timer = self.timer.filter(|timer| *timer > now);
        match &mut self.kind {
            GroupKind::Classic(group) => group.handle_timeout(now, answers),
            GroupKind::Consumer(group) => group.handle_timeout(now),
        }
    }

    /// When the group has to be looked at next, if that wasn't arranged for already.
    fn next_timer(&mut self) -> Option<Instant> {
        let next = match &self.kind {
            GroupKind::Classic(group) => group.next_due(),
            GroupKind::Consumer(group) => group.next_due(),
        };
        let next = next.filter(|next| self.timer.is_none_or(|timer| timer > *next))?;
        self.timer = Some(next);
        Some(next)
    }
}

impl Cluster {
    /// A group's time has come.
    pub(crate) fn group_timeout(&mut self, name: &str) {
        let mut answers = GroupAnswers::default();
        if let Some(group) = self.groups.groups.get_mut(name) {
            group.handle_timeout(self.now, &mut answers);
        }
        self.settle_group(name, answers);
    }

    /// Sends the answers that a change of a group made possible, and sees to its timer.
    pub(crate) fn settle_group(&mut self, name: &str, answers: GroupAnswers) {
        for (waiter, mut response) in answers.joins {
            if let Some(Pending::Group(request)) = self.take_pending(waiter) {
                response.throttle_time_ms = request.throttle_ms();
                self.answer_with(&request, &response);
            }
        }
        for (waiter, mut response) in answers.syncs {
            if let Some(Pending::Group(request)) = self.take_pending(waiter) {
                response.throttle_time_ms = request.throttle_ms();
                self.answer_with(&request, &response);
            }
        }
        if let Some(at) = self.groups.groups.get_mut(name).and_then(Group::next_timer) {
            self.timers.set(at, Timer::Group(name.to_owned()));
        }
    }
}
