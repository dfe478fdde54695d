//! A group of the consumer protocol (KIP-848): the broker assigns, and members receive their assignment in heartbeat
//! responses.
//!
//! There are three epochs. The group epoch rises when a member joins, leaves or changes its subscription, or when
//! subscribed topics change. The next heartbeat then computes the target assignment of that epoch. Each member moves to
//! the target in steps of its own: first it is asked to revoke the partitions that it loses, and once its heartbeat
//! shows that it has done so, it reaches the target's epoch and gets the new partitions that other members have
//! released.
//!
//! Unlike Kafka, the group resolves a regular expression immediately, while Kafka finds its topics by a later
//! heartbeat. Target assignments are computed as soon as they are needed (`group.consumer.assignment.interval.ms=0`).
//!
//! ```text
//!  heartbeat ─► who is it (join, fence) ─► subscriptions, topics ─► target ─► reconcile ─► response
//! ```
//!
//! # Pitfalls
//!
//! - A member of the consumer protocol (KIP-848) keeps its epoch until it has revoked the partitions that it has to
//!   revoke; it may be in the group's epoch while it still waits for partitions of others
//!   (`partitions_are_assigned_only_after_their_revocation`).
//! - A member may commit in an older epoch if it has owned the partition since then (KIP-1251, Kafka 4.3). To fetch
//!   offsets it must be in its current epoch (`offset_commit_accepts_epochs_since_the_partition_was_assigned`).
//! - An instance ID that is in use is refused even to the member that has it, if it joins again without having left
//!   (`returning_static_member_gets_its_partitions_back`).

pub(super) mod member;

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::consumer_group_heartbeat::{
        ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, request, response,
    },
    time::Instant,
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

pub(crate) use self::member::{ConsumerMember, TopicRegex};
use self::member::{MemberState, id_of, partition_count};
use super::assignor::{Assignor, Partitions, Subscriber};
use crate::{provisioning::Refusal, topics::Topics};

/// The epoch of a member that leaves.
pub(crate) const LEAVES: i32 = -1;
/// The epoch of a static member that leaves and may return.
pub(crate) const LEAVES_FOR_A_WHILE: i32 = -2;

/// A group to which the broker assigns partitions.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    pub epoch: i32,
    /// The group epoch for which the target assignment was computed.
    pub assignment_epoch: i32,
    pub members: SortedMap<String, ConsumerMember>,
    /// The member ID of each static member, by instance ID.
    pub(super) instances: SortedMap<String, String>,
    /// The subscribed topics and their number of partitions.
    topics: SortedMap<Uuid, i32>,
    /// The version of the cluster's topics from which `topics` was computed.
    topics_version: u64,
    /// The assignor if no member names one.
    default_assignor: Assignor,
}

/// An assignment set by a test: member ID to topic names and partitions.
pub(crate) type ManualTarget = SortedMap<String, SortedSet<(String, i32)>>;

/// Settings that apply to all groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    /// The assignor of members that name none.
    pub assignor: Assignor,
    pub max_size: usize,
    /// True if classic groups with members are converted.
    pub is_migrating: bool,
    /// Overrides the assignor.
    pub manual: Option<&'a ManualTarget>,
}

/// A validated heartbeat.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub body: ConsumerGroupHeartbeatRequest,
    pub client_id: String,
    pub assignor: Option<Assignor>,
    /// `Some(None)` ends the subscription to a regular expression. An invalid one is rejected only after the member's
    /// epoch was checked.
    pub topic_regex: Result<Option<Option<TopicRegex>>, Refusal>,
}

impl ConsumerGroup {
    pub fn new() -> Self {
        Self {
            epoch: 1,
            assignment_epoch: 0,
            members: SortedMap::new(),
            instances: SortedMap::new(),
            topics: SortedMap::new(),
            topics_version: 0,
            default_assignor: Assignor::Uniform,
        }
    }

    /// Handles a heartbeat of a member that joins or stays.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        topics: &Topics,
        settings: &Settings<'_>,
        heartbeat: Heartbeat,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let joins = heartbeat.body.member_epoch == 0;
        let asked_for_all = joins
            || (heartbeat.body.rebalance_timeout_ms != -1
                && (heartbeat.body.subscribed_topic_names.is_some()
                    || heartbeat.body.subscribed_topic_regex.is_some())
                && heartbeat.body.topic_partitions.is_some());
        self.check_size(&heartbeat.body, settings.max_size)?;
        self.default_assignor = settings.assignor;
        let Heartbeat { body, client_id, assignor, topic_regex } = heartbeat;
        let topic_regex = if joins {
            // A joining member may replace another one, after which the request can no longer be rejected.
            let regex = topic_regex?;
            self.admit(&body)?;
            regex
        } else {
            self.admit(&body)?;
            topic_regex?
        };
        let member_id = body.member_id.clone();
        let member = self.members.entry(member_id.clone()).or_insert_with(ConsumerMember::new);
        let subscribes_anew = member.update(&body, client_id, assignor, topic_regex);
        member.expires = now + settings.session_timeout;
        if let Some(instance_id) = &body.instance_id {
            self.instances.insert(instance_id.clone(), member_id.clone());
        }
        let topics_changed = self.update_topics(topics, settings.manual, subscribes_anew);
        if subscribes_anew || topics_changed {
            self.epoch += 1;
        }
        if self.epoch > self.assignment_epoch {
            self.compute_target(topics, settings.manual);
        }
        let was_assigned = self.members.get(&member_id).map(|member| member.assigned.clone());
        self.reconcile(now, &member_id, body.topic_partitions.as_deref());
        let Some(member) = self.members.get(&member_id) else {
            return Err((ErrorCode::UNKNOWN_SERVER_ERROR, "The member is lost.".to_owned()));
        };
        let changed = was_assigned.as_ref() != Some(&member.assigned);
        let assignment = (asked_for_all || changed).then(|| response::Assignment {
            topic_partitions: member
                .assigned
                .iter()
                .map(|(topic_id, partitions)| response::TopicPartition {
                    topic_id: *topic_id,
                    partitions: partitions.iter().copied().collect(),
                })
                .collect(),
        });
        let interval = i32::try_from(settings.heartbeat_interval.as_millis()).unwrap_or(i32::MAX);
        Ok(ConsumerGroupHeartbeatResponse {
            member_epoch: member.epoch,
            member_id: Some(member_id),
            heartbeat_interval_ms: interval,
            assignment,
            ..Default::default()
        })
    }

    /// Handles a heartbeat of a member that leaves.
    pub fn leave(
        &mut self,
        body: &ConsumerGroupHeartbeatRequest,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        match &body.instance_id {
            Some(instance_id) => self.check_instance(instance_id, &body.member_id)?,
            None if !self.members.contains_key(&body.member_id) => {
                return Err(unknown_member(&body.group_id, &body.member_id));
            }
            None => {}
        }
        if body.member_epoch == LEAVES_FOR_A_WHILE {
            // It keeps its partitions until its session expires, and no partition moves.
            if let Some(member) = self.members.get_mut(&body.member_id) {
                member.epoch = LEAVES_FOR_A_WHILE;
                member.revoking.clear();
                member.revokes_until = Instant::FAR_FUTURE;
            }
        } else {
            self.remove(&body.member_id);
        }
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(body.member_id.clone()),
            member_epoch: body.member_epoch,
            ..Default::default()
        })
    }

    /// Handles a LeaveGroup request, by which an administrator removes members.
    pub fn remove_member(&mut self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        let by_instance = match instance_id {
            Some(instance_id) if member_id.is_empty() => {
                Some(self.instances.get(instance_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?.clone())
            }
            Some(instance_id) => {
                self.check_instance(instance_id, member_id).map_err(|(code, _)| code)?;
                None
            }
            None => None,
        };
        let member_id = by_instance.as_deref().unwrap_or(member_id);
        if !self.members.contains_key(member_id) {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.remove(member_id);
        Ok(())
    }

    /// Makes the next heartbeat compute the target assignment again, because the manual assignment has changed.
    pub fn retarget(&mut self, topics: &Topics, manual: Option<&ManualTarget>) {
        self.update_topics(topics, manual, true);
        self.epoch += 1;
    }

    /// Checks whether this member may commit offsets. With a negative epoch the client is not a member. If the member's
    /// epoch is old, the partition decides ([`check_commit_of`](Self::check_commit_of)).
    pub fn check_commit(&self, version: i16, member_id: &str, epoch: i32) -> Result<(), ErrorCode> {
        if epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if member.classic.is_some() {
            return if epoch == member.epoch { Ok(()) } else { Err(ErrorCode::ILLEGAL_GENERATION) };
        }
        // Older request versions don't have the errors that this member must understand.
        if version < 9 {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        if epoch <= member.epoch { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    /// Checks whether a member with this epoch may commit for this partition. An older epoch than its current one is
    /// valid if it has owned the partition since then (KIP-1251).
    pub fn check_commit_of(
        &self,
        member_id: &str,
        epoch: i32,
        topic: Uuid,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        let Some(member) = self.members.get(member_id).filter(|member| member.epoch != epoch) else {
            return Ok(());
        };
        let since = member.has_since.get(&(topic, partition));
        if since.is_some_and(|since| *since <= epoch) { Ok(()) } else { Err(ErrorCode::STALE_MEMBER_EPOCH) }
    }

    /// Checks whether this member, or a client that names no member, may fetch committed offsets.
    pub fn check_offset_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        if member_id.is_none() && epoch < 0 {
            return Ok(());
        }
        let member = self.members.get(member_id.unwrap_or_default()).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        member.check_epoch(epoch)
    }

    /// Returns Kafka's name of the state.
    pub fn state_name(&self) -> &'static str {
        let is_there = |member: &ConsumerMember| {
            member.state == MemberState::Stable && member.epoch == self.assignment_epoch
        };
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(is_there) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Returns the assignor that most members request. A member without a preference doesn't vote.
    pub fn assignor(&self) -> Assignor {
        let mut votes: SortedMap<Assignor, usize> = SortedMap::new();
        for assignor in self.members.values().filter_map(|member| member.assignor) {
            *votes.entry(assignor).or_default() += 1;
        }
        let most = votes.values().max().copied();
        votes
            .iter()
            .find(|(_, count)| Some(**count) == most)
            .map_or(self.default_assignor, |(requested, _)| *requested)
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
        self.members.values().map(ConsumerMember::due).min()
    }

    fn check_size(&self, body: &ConsumerGroupHeartbeatRequest, max_size: usize) -> Result<(), Refusal> {
        let takes_over = body.instance_id.as_ref().is_some_and(|id| self.instances.contains_key(id));
        if self.members.len() < max_size || self.members.contains_key(&body.member_id) || takes_over {
            return Ok(());
        }
        let message = format!(
            "The consumer group has reached its maximum capacity of {max_size} members; set group.consumer.max.size \
             higher or use fewer members."
        );
        Err((ErrorCode::GROUP_MAX_SIZE_REACHED, message))
    }

    /// Finds or creates the member of a heartbeat, and checks whether it may stay or join. A returning static member
    /// replaces its predecessor.
    fn admit(&mut self, body: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
        let joins = body.member_epoch == 0;
        if let Some(instance_id) = &body.instance_id {
            match self.instances.get(instance_id) {
                None if joins => {}
                Some(known) if joins => {
                    let known = known.clone();
                    // This includes a request with the same member ID: two processes may have the same configuration.
                    // Classic members do not report that they leave (KAFKA-17228).
                    let is_held = |member: &ConsumerMember| {
                        member.classic.is_none() && member.epoch != LEAVES_FOR_A_WHILE
                    };
                    if self.members.get(&known).is_some_and(is_held) {
                        let message = format!(
                            "Static member {} with instance id {instance_id} cannot join the group because the instance id is \
                             owned by {known} member.",
                            body.member_id
                        );
                        return Err((ErrorCode::UNRELEASED_INSTANCE_ID, message));
                    }
                    self.replace_static(&known, &body.member_id);
                }
                _ => self.check_instance(instance_id, &body.member_id)?,
            }
        }
        match self.members.get(&body.member_id) {
            Some(member) => member.check_heartbeat(body),
            None if joins => Ok(()),
            None => Err(unknown_member(&body.group_id, &body.member_id)),
        }
    }

    pub(super) fn check_instance(&self, instance_id: &str, member_id: &str) -> Result<(), Refusal> {
        match self.instances.get(instance_id) {
            None => Err((ErrorCode::UNKNOWN_MEMBER_ID, format!("Instance id {instance_id} is unknown."))),
            Some(known) if known != member_id => {
                let message = format!(
                    "Static member {member_id} with instance id {instance_id} was fenced by member {known}."
                );
                Err((ErrorCode::FENCED_INSTANCE_ID, message))
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn replace_static(&mut self, known: &str, member_id: &str) {
        if let Some(mut member) = self.members.remove(known) {
            (member.epoch, member.previous_epoch, member.state) = (0, 0, MemberState::Stable);
            self.members.insert(member_id.to_owned(), member);
        }
    }

    fn remove(&mut self, member_id: &str) {
        let Some(member) = self.members.remove(member_id) else { return };
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        // A group that becomes a classic one keeps its generation, so that the members can commit.
        if !self.is_to_be_classic() {
            self.epoch += 1;
        }
    }

    /// Updates the subscribed topics; returns true if they or their partitions changed.
    pub(super) fn update_topics(
        &mut self,
        topics: &Topics,
        manual: Option<&ManualTarget>,
        must: bool,
    ) -> bool {
        if !must && self.topics_version == topics.version() {
            return false;
        }
        self.topics_version = topics.version();
        let by_hand = manual.into_iter().flat_map(SortedMap::values).flatten().map(|(name, _)| name.as_str());
        let mut ids: SortedSet<Uuid> = by_hand.filter_map(|name| id_of(topics, name)).collect();
        for member in self.members.values() {
            ids.extend(member.subscribed(topics));
        }
        let found = ids.into_iter().map(|id| (id, partition_count(topics, id))).collect();
        let changed = self.topics != found;
        self.topics = found;
        changed
    }

    pub(super) fn compute_target(&mut self, topics: &Topics, manual: Option<&ManualTarget>) {
        self.assignment_epoch = self.epoch;
        let targets = match manual {
            Some(manual) => {
                let of =
                    |id| manual.get(id).map_or_else(Partitions::new, |requested| resolve(topics, requested));
                self.members.keys().map(of).collect()
            }
            None => {
                let subscribers: Vec<_> = self
                    .members
                    .iter()
                    .map(|(member_id, member)| Subscriber {
                        member_id,
                        instance_id: member.instance_id.as_deref(),
                        topics: member.subscribed(topics),
                        target: &member.target,
                    })
                    .collect();
                self.assignor().assign(&self.topics, &subscribers)
            }
        };
        for (member, target) in self.members.values_mut().zip(targets) {
            member.target = target;
        }
    }

    /// Moves a member one step towards its target. `owned` contains the partitions that the heartbeat reports, if it
    /// does.
    pub(super) fn reconcile(
        &mut self,
        now: Instant,
        member_id: &str,
        owned: Option<&[request::TopicPartition]>,
    ) {
        let Some(member) = self.members.get(member_id) else { return };
        let epoch = match member.state {
            MemberState::Stable if member.epoch == self.assignment_epoch => return,
            MemberState::UnrevokedPartitions if owns_any(owned, &member.revoking) => return,
            // The member has revoked the requested partitions, which completes the step to the next epoch.
            MemberState::UnrevokedPartitions => member.epoch + 1,
            MemberState::Stable | MemberState::UnreleasedPartitions => member.epoch,
        };
        let mut assigned = intersection(&member.assigned, &member.target);
        let revoking = difference(&member.assigned, &assigned);
        let missing = difference(&member.target, &assigned);
        let (free, unreleased) = self.split_by_owner(member_id, missing);
        let assignment_epoch = self.assignment_epoch;
        let Some(member) = self.members.get_mut(member_id) else { return };
        let (state, epoch, revoking) = if !revoking.is_empty() && owns_any(owned, &revoking) {
            member.revokes_until = now + member.rebalance_timeout;
            (MemberState::UnrevokedPartitions, epoch, revoking)
        } else {
            for (topic, partitions) in free {
                assigned.entry(topic).or_default().extend(partitions);
            }
            member.revokes_until = Instant::FAR_FUTURE;
            let state = if unreleased { MemberState::UnreleasedPartitions } else { MemberState::Stable };
            (state, assignment_epoch, Partitions::new())
        };
        if member.epoch != epoch {
            member.previous_epoch = member.epoch;
            member.epoch = epoch;
        }
        (member.state, member.assigned, member.revoking) = (state, assigned, revoking);
        member.note_since_when();
    }

    /// Returns the partitions of `requested` that no other member owns, and whether some are owned.
    pub(super) fn split_by_owner(&self, member_id: &str, requested: Partitions) -> (Partitions, bool) {
        let mut free = requested;
        let mut unreleased = false;
        let others = self.members.iter().filter(|(id, _)| *id != member_id).map(|(_, member)| member);
        for (topic, partitions) in others.flat_map(|other| other.assigned.iter().chain(&other.revoking)) {
            if let Some(free) = free.get_mut(topic) {
                unreleased |= partitions.iter().filter(|partition| free.remove(partition)).count() > 0;
            }
        }
        free.retain(|_, partitions| !partitions.is_empty());
        (free, unreleased)
    }
}

fn unknown_member(group: &str, member_id: &str) -> Refusal {
    (ErrorCode::UNKNOWN_MEMBER_ID, format!("Member {member_id} is not a member of group {group}."))
}

/// Returns those of the named partitions that exist.
fn resolve(topics: &Topics, requested: &SortedSet<(String, i32)>) -> Partitions {
    let mut found = Partitions::new();
    for (name, partition) in requested {
        if let Some(id) = id_of(topics, name)
            && (0..partition_count(topics, id)).contains(partition)
        {
            found.entry(id).or_default().insert(*partition);
        }
    }
    found
}

/// Returns true if a member with these owned partitions owns any of `revoked`. A member that doesn't report its
/// partitions may own them all.
fn owns_any(owned: Option<&[request::TopicPartition]>, revoked: &Partitions) -> bool {
    owned.is_none_or(|owned| {
        owned.iter().any(|topic| {
            let revoked = revoked.get(&topic.topic_id);
            revoked.is_some_and(|revoked| topic.partitions.iter().any(|p| revoked.contains(p)))
        })
    })
}

fn intersection(of: &Partitions, with: &Partitions) -> Partitions {
    select(of, with, |partitions, others| partitions.intersection(others).copied().collect())
}

pub(super) fn difference(of: &Partitions, without: &Partitions) -> Partitions {
    select(of, without, |partitions, others| partitions.difference(others).copied().collect())
}

fn select(
    of: &Partitions,
    by: &Partitions,
    choose: impl Fn(&SortedSet<i32>, &SortedSet<i32>) -> SortedSet<i32>,
) -> Partitions {
    let none = SortedSet::new();
    let chosen =
        of.iter().map(|(topic, partitions)| (*topic, choose(partitions, by.get(topic).unwrap_or(&none))));
    chosen.filter(|(_, partitions)| !partitions.is_empty()).collect()
}
