//! A streams group (KIP-1071): members describe one topology, and the broker assigns its tasks.
//!
//! Epochs and reconciliation are those of the consumer protocol ([`consumer`](super::consumer)), with tasks instead of
//! partitions. An active task is assigned once all other members have released it. The assignor gives each task to the member
//! that has it, as far as that is balanced, and is deterministic.
//!
//! ```text
//!  heartbeat ─► who is it (join, fence) ─► topology, its topics ─► target ─► reconcile ─► response
//! ```
//!
//! Unlike Kafka, the group has no warm-up tasks, and standby tasks as many as
//! [`ClusterOptions`](crate::ClusterOptions) says for all groups.
//!
//! # Pitfalls
//!
//! - An assignment is sent once, when it changes or when the member joins. A member that misses it hears of it when it joins
//!   again (`streams_assignment_is_sent_once`).

mod assign;
mod description;
mod member;
mod tasks;
mod topology;

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        streams_group_heartbeat::{
            StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, request, response,
        },
        streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateRequest,
    },
    time::Instant,
};
use ottla_sorted::{SortedMap, SortedSet};

pub(crate) use self::{
    description::DescriptionStore,
    member::StreamsMember,
    tasks::{Task, Tasks, by_subtopology},
    topology::{MissingTopic, Ready},
};
use self::{member::Progress, topology::configure};
use crate::{provisioning::Refusal, topics::Topics};

const LEAVES: i32 = -1;
const LEAVES_FOR_A_WHILE: i32 = -2;
/// The code of the status that a member requested a shutdown.
const SHUTDOWN: i8 = 4;

/// A group to which the broker assigns tasks.
#[derive(Debug, Default)]
pub(crate) struct StreamsGroup {
    pub epoch: i32,
    /// The group epoch for which the target assignment was computed.
    pub assignment_epoch: i32,
    pub topology: Option<request::Topology>,
    pub members: SortedMap<String, StreamsMember>,
    /// The number of tasks of each subtopology, or why there are none yet.
    configured: Ready,
    /// The member that requested that the application shuts down.
    shutdown: Option<String>,
    endpoint_epoch: i32,
    /// The description of the topology.
    pub descriptions: DescriptionStore,
}

/// Settings that apply to all groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamsSettings {
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    pub standby_replicas: usize,
    pub task_offset_interval: Duration,
    /// `None`: members are not asked for descriptions of their topology.
    pub description_interval: Option<Duration>,
}

impl StreamsGroup {
    /// Handles a heartbeat of a member that joins or stays. `topics` are those of the cluster.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        topics: &Topics,
        settings: &StreamsSettings,
        client_id: &str,
        body: &StreamsGroupHeartbeatRequest,
    ) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
        let joins = body.member_epoch == 0;
        self.admit(body)?;
        let is_new = !self.members.contains_key(&body.member_id);
        let changed_topology = self.take_topology(body)?;
        let member = self.members.entry(body.member_id.clone()).or_insert_with(StreamsMember::new);
        let is_changed = member.update(body, client_id);
        member.expires = now + settings.session_timeout;
        self.endpoint_epoch += i32::from(is_changed && member.endpoint.is_some());
        let configured =
            self.topology.as_ref().map_or_else(Ready::default, |topology| configure(topology, topics));
        let is_reconfigured = configured.tasks != self.configured.tasks;
        self.configured = configured;
        if is_new || is_changed || changed_topology || is_reconfigured {
            self.epoch += 1;
        }
        if self.epoch > self.assignment_epoch {
            self.compute_target(settings.standby_replicas);
        }
        if body.shutdown_application {
            self.shutdown = Some(body.member_id.clone());
        }
        let before = self.members.get(&body.member_id).map(|member| member.assigned.clone());
        let owned = Tasks::of_request(body);
        self.reconcile(now, &body.member_id, owned.as_ref());
        let mut response = self.response(settings, body, joins, before.as_ref());
        response.topology_description_required = self.asks_for_description(now, settings, &body.member_id);
        Ok(response)
    }

    /// Returns true if this member is to send a description of its topology, which is the group's.
    fn asks_for_description(&mut self, now: Instant, settings: &StreamsSettings, member_id: &str) -> bool {
        let (Some(interval), Some(topology)) = (settings.description_interval, &self.topology) else {
            return false;
        };
        let member = self.members.get_mut(member_id).filter(|member| member.topology_epoch == topology.epoch);
        let Some(member) = member else { return false };
        let asks = self.descriptions.asks(now, topology.epoch, interval);
        member.is_asked |= asks;
        asks
    }

    /// Stores the description of a member's topology.
    pub fn store_description(
        &mut self,
        body: StreamsGroupTopologyDescriptionUpdateRequest,
    ) -> Result<(), Refusal> {
        let Some(member) = self.members.get(&body.member_id) else {
            return Err(unknown(&body.member_id, &body.group_id));
        };
        self.descriptions.pushed += 1;
        self.descriptions.unasked += u64::from(!member.is_asked);
        let epoch = self.topology.as_ref().map_or(-1, |topology| topology.epoch);
        if epoch != body.topology_epoch {
            let message = format!(
                "The topology epoch {} is not that of the group, which is {epoch}.",
                body.topology_epoch
            );
            return Err((ErrorCode::INVALID_REQUEST, message));
        }
        self.descriptions.store(epoch, body.topology_description);
        Ok(())
    }

    fn response(
        &self,
        settings: &StreamsSettings,
        body: &StreamsGroupHeartbeatRequest,
        joins: bool,
        before: Option<&Tasks>,
    ) -> StreamsGroupHeartbeatResponse {
        let millis = |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        let mut response = StreamsGroupHeartbeatResponse {
            member_id: body.member_id.clone(),
            heartbeat_interval_ms: millis(settings.heartbeat_interval),
            task_offset_interval_ms: millis(settings.task_offset_interval),
            acceptable_recovery_lag: 10_000,
            endpoint_information_epoch: self.endpoint_epoch,
            ..Default::default()
        };
        let Some(member) = self.members.get(&body.member_id) else { return response };
        response.member_epoch = member.epoch;
        if joins || before != Some(&member.assigned) {
            let (active, standby, warmup) = member.assigned.to_response();
            response.active_tasks = Some(active);
            response.standby_tasks = Some(standby);
            response.warmup_tasks = Some(warmup);
        }
        let mut status = self.configured.status();
        if member.topology_epoch < self.topology.as_ref().map_or(0, |topology| topology.epoch) {
            let detail = "The member's topology epoch is behind the group's.".to_owned();
            status.push(response::Status { status_code: 0, status_detail: detail });
        }
        if let Some(by) = &self.shutdown {
            let status_detail = format!(
                "Streams group member {by} encountered a fatal error and requested a shutdown for the entire application."
            );
            status.push(response::Status { status_code: SHUTDOWN, status_detail });
        }
        response.status = (!status.is_empty()).then_some(status);
        if body.endpoint_information_epoch != self.endpoint_epoch {
            response.partitions_by_user_endpoint = Some(self.endpoints());
        }
        response
    }

    fn endpoints(&self) -> Vec<response::PartitionsByUserEndpoint> {
        let with_endpoint =
            self.members.values().filter_map(|member| Some((member, member.endpoint.clone()?)));
        let topics = |tasks: &SortedSet<Task>| {
            self.topology.as_ref().map_or_else(SortedMap::new, |topology| topology::sources(topology, tasks))
        };
        let described = with_endpoint.map(|(member, (host, port))| response::PartitionsByUserEndpoint {
            user_endpoint: response::UserEndpoint { host, port },
            active_partitions: topics(&member.assigned.active)
                .into_iter()
                .map(|(topic, partitions)| response::ActivePartition { topic, partitions })
                .collect(),
            standby_partitions: topics(&member.assigned.standby)
                .into_iter()
                .map(|(topic, partitions)| response::StandbyPartition { topic, partitions })
                .collect(),
        });
        described.collect()
    }

    /// Handles a heartbeat of a member that leaves.
    pub fn leave(
        &mut self,
        body: &StreamsGroupHeartbeatRequest,
    ) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
        let Some(member) = self.members.get_mut(&body.member_id) else {
            return Err(unknown(&body.member_id, &body.group_id));
        };
        if body.member_epoch == LEAVES_FOR_A_WHILE && member.instance_id.is_some() {
            member.epoch = LEAVES_FOR_A_WHILE;
            member.revoking = Tasks::default();
            member.revokes_until = Instant::FAR_FUTURE;
        } else {
            self.remove(&body.member_id);
        }
        Ok(StreamsGroupHeartbeatResponse {
            member_id: body.member_id.clone(),
            member_epoch: body.member_epoch,
            ..Default::default()
        })
    }

    /// Checks whether this member may commit offsets. With a negative epoch the client is not a member.
    pub fn check_commit(&self, member_id: &str, epoch: i32) -> Result<(), ErrorCode> {
        if epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if epoch == member.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    /// Checks whether this member, or a client that names no member, may fetch committed offsets.
    pub fn check_offset_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        match member_id {
            None if epoch < 0 => Ok(()),
            member_id => {
                let member =
                    self.members.get(member_id.unwrap_or_default()).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
                if epoch == member.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
            }
        }
    }

    /// Returns Kafka's name of the state.
    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.configured.tasks.is_none() {
            "NotReady"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(|member| member.is_stable_in(self.assignment_epoch)) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Returns true if the topology reads the topic.
    pub fn subscribes_to(&self, topic: &str) -> bool {
        let parts = self.topology.iter().flat_map(|topology| &topology.subtopologies);
        let mut names = parts.flat_map(|part| {
            part.source_topics.iter().chain(part.repartition_source_topics.iter().map(|it| &it.name))
        });
        !self.members.is_empty() && names.any(|name| name == topic)
    }

    /// Returns the internal topics that do not exist.
    pub fn missing_topics(&self) -> &[MissingTopic] {
        &self.configured.missing
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        let gone = self.members.iter().filter(|(_, member)| member.due() <= now).map(|(id, _)| id.clone());
        for member_id in gone.collect::<Vec<_>>() {
            self.remove(&member_id);
        }
    }

    /// Returns when the group must be checked next, if at all.
    pub fn next_due(&self) -> Option<Instant> {
        self.members.values().map(StreamsMember::due).min()
    }

    /// Checks whether the member of a heartbeat may stay or join. A returning static member replaces its predecessor.
    fn admit(&mut self, body: &StreamsGroupHeartbeatRequest) -> Result<(), Refusal> {
        let joins = body.member_epoch == 0;
        if let Some(instance_id) = &body.instance_id
            && joins
        {
            let known =
                self.members.iter().find(|(_, member)| member.instance_id.as_ref() == Some(instance_id));
            let known = known.map(|(id, member)| (id.clone(), member.epoch));
            match known {
                Some((_, epoch)) if epoch != LEAVES_FOR_A_WHILE => {
                    let message = format!("Static member with instance id {instance_id} is in the group.");
                    return Err((ErrorCode::UNRELEASED_INSTANCE_ID, message));
                }
                Some((id, _)) => {
                    if let Some(mut member) = self.members.remove(&id) {
                        (member.epoch, member.progress) = (0, Progress::Stable);
                        self.members.insert(body.member_id.clone(), member);
                    }
                }
                None => {}
            }
        }
        match self.members.get(&body.member_id) {
            Some(member) => member.check_epoch(body),
            None if joins => Ok(()),
            None => Err(unknown(&body.member_id, &body.group_id)),
        }
    }

    /// Takes the topology of a member that joins. Returns true if it is the first one. A member with an earlier epoch gets no tasks.
    fn take_topology(&mut self, body: &StreamsGroupHeartbeatRequest) -> Result<bool, Refusal> {
        let Some(new) = &body.topology else { return Ok(false) };
        if let Some(known) = &self.topology {
            let is_accepted = known == new || known.epoch > new.epoch;
            let message = "Topology updates are not supported yet.".to_owned();
            return if is_accepted { Ok(false) } else { Err((ErrorCode::INVALID_REQUEST, message)) };
        }
        self.topology = Some(new.clone());
        Ok(true)
    }

    fn remove(&mut self, member_id: &str) {
        if let Some(member) = self.members.remove(member_id) {
            self.epoch += 1;
            self.endpoint_epoch += i32::from(member.endpoint.is_some());
        }
        if self.members.is_empty() {
            self.shutdown = None;
        }
    }

    fn compute_target(&mut self, standby_replicas: usize) {
        self.assignment_epoch = self.epoch;
        let epoch = self.topology.as_ref().map_or(0, |topology| topology.epoch);
        let tasks = self.configured.tasks.clone().unwrap_or_default();
        assign::assign(&mut self.members, &tasks, epoch, standby_replicas);
    }

    /// Moves a member one step towards its target. `owned` are the tasks that the heartbeat reports, if it does.
    fn reconcile(&mut self, now: Instant, member_id: &str, owned: Option<&Tasks>) {
        let Some(member) = self.members.get(member_id) else { return };
        let may_own = |revoking: &Tasks| owned.is_none_or(|owned| owned.has_any(revoking));
        match member.progress {
            Progress::Stable if member.epoch == self.assignment_epoch => return,
            Progress::Revoking if may_own(&member.revoking) => return,
            _ => {}
        }
        let mut assigned = member.assigned.intersection(&member.target);
        let revoking = member.assigned.without(&assigned);
        let missing = member.target.without(&assigned);
        let (free, is_waiting) = self.split_by_owner(member_id, missing);
        let (epoch, at_once) = (self.assignment_epoch, !revoking.is_empty() && may_own(&revoking));
        let Some(member) = self.members.get_mut(member_id) else { return };
        if at_once {
            member.revokes_until = now + member.rebalance_timeout;
            (member.progress, member.revoking, member.assigned) = (Progress::Revoking, revoking, assigned);
            return;
        }
        assigned = assigned.with(&free);
        member.revokes_until = Instant::FAR_FUTURE;
        member.progress = if is_waiting { Progress::Waiting } else { Progress::Stable };
        (member.revoking, member.assigned) = (Tasks::default(), assigned);
        if member.epoch != epoch {
            member.previous_epoch = std::mem::replace(&mut member.epoch, epoch);
        }
    }

    /// Returns the tasks of `requested` that no other member owns as an active one, and whether some are owned. Other roles are
    /// free: each process has a state of its own.
    fn split_by_owner(&self, member_id: &str, requested: Tasks) -> (Tasks, bool) {
        let mut free = requested;
        let mut is_waiting = false;
        for (_, other) in self.members.iter().filter(|(id, _)| *id != member_id) {
            for task in other.assigned.active.iter().chain(&other.revoking.active) {
                is_waiting |= free.active.remove(task);
            }
        }
        (free, is_waiting)
    }
}

fn unknown(member_id: &str, group_id: &str) -> Refusal {
    let message = format!("Member {member_id} is not a member of group {group_id}.");
    (ErrorCode::UNKNOWN_MEMBER_ID, message)
}

/// Returns true if the epoch is one of a member that leaves.
pub(crate) const fn is_leaving(epoch: i32) -> bool {
    matches!(epoch, LEAVES | LEAVES_FOR_A_WHILE)
}
