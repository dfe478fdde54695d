//! Live conversion of groups between the protocols, and classic members of consumer-protocol groups (KIP-848).
//!
//! ```text
//!            the first member of the consumer protocol joins
//!  Classic ──────────────────────────────────────────────────► Consumer, with members of both kinds
//!          ◄──────────────────────────────────────────────────
//!            the last member of the consumer protocol is gone
//! ```
//!
//! If the last member of the consumer protocol is static and returns as a classic member, the group needs no rebalance,
//! unless the subscription changed (KAFKA-17228), or a member does not have its whole target yet. In the latter case Apache
//! Kafka 4.3 begins no rebalance either: what is missing stays unassigned until a member joins for another reason.
//!
//! A classic member keeps its requests. Heartbeats return the error that makes it join when its target has changed;
//! JoinGroup reports what it owns, as the heartbeat of a consumer-protocol member does; SyncGroup returns what it got.
//! Its generation is its member epoch. No classic member is the leader of this kind of group.

use std::time::Duration;

use ottla_protocol::{
    consumer_protocol::{
        ConsumerProtocolAssignment, ConsumerProtocolSubscription, assignment::AssignedPartition,
    },
    error_code::ErrorCode,
    generated::{
        consumer_group_heartbeat::request,
        join_group::{JoinGroupRequest, JoinGroupResponse},
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    time::Instant,
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    assignor::Partitions,
    classic::{ClassicGroup, ClassicParts, GroupResponses, GroupState, Joiner, join_error, sync_error},
    consumer::{
        ConsumerGroup, ConsumerMember,
        member::{MemberState, id_of},
    },
};
use crate::topics::Topics;

/// The protocol type of groups that can be converted.
const PROTOCOL_TYPE: &str = "consumer";

/// The classic side of a member in a group of the consumer protocol.
#[derive(Clone, Debug)]
pub(crate) struct ClassicSide {
    /// The assignors that the member offers, each with its subscription.
    pub protocols: Vec<(String, Vec<u8>)>,
    pub session_timeout: Duration,
}

impl ClassicSide {
    /// Decodes the subscription: topics, and the partitions that the member owns.
    fn subscription(&self, topics: &Topics) -> Option<(SortedSet<String>, Vec<request::TopicPartition>)> {
        let (_, metadata) = self.protocols.first()?;
        let (_, decoded) = ConsumerProtocolSubscription::from_bytes(metadata).ok()?;
        let owned = decoded.owned_partitions.into_iter().filter_map(|owned| {
            let topic_id = id_of(topics, &owned.topic)?;
            Some(request::TopicPartition { topic_id, partitions: owned.partitions })
        });
        let owned = owned.collect();
        Some((decoded.topics.into_iter().collect(), owned))
    }
}

impl ConsumerGroup {
    /// Converts a classic group that [`ClassicGroup::is_convertible`]; its members keep their partitions.
    pub fn from_classic(
        now: Instant,
        topics: &Topics,
        group: ClassicGroup,
        responses: &mut GroupResponses,
    ) -> Self {
        // Members have an epoch of at least 1; a group that all have left begins where its next member makes it 1.
        let epoch = if group.members.is_empty() { group.generation } else { group.generation.max(1) };
        let mut converted = Self::new();
        (converted.epoch, converted.assignment_epoch) = (epoch, epoch);
        for (id, parts) in group.into_parts(responses) {
            let mut member = ConsumerMember::new();
            let classic = ClassicSide { protocols: parts.protocols, session_timeout: parts.session_timeout };
            member.topic_names = classic.subscription(topics).map(|(names, _)| names).unwrap_or_default();
            member.assigned = decode_assignment(topics, &parts.assignment);
            member.target.clone_from(&member.assigned);
            (member.epoch, member.previous_epoch) = (epoch, epoch);
            member.instance_id = parts.instance_id;
            member.client_id = parts.client_id;
            member.expires = now + classic.session_timeout;
            member.rebalance_timeout = parts.rebalance_timeout;
            member.classic = Some(classic);
            member.note_since_when();
            if let Some(instance) = &member.instance_id {
                converted.instances.insert(instance.clone(), id.clone());
            }
            converted.members.insert(id, member);
        }
        converted
    }

    /// Returns true if all members are classic ones, so that the group becomes a classic group again.
    pub fn is_to_be_classic(&self) -> bool {
        !self.members.is_empty() && self.members.values().all(|member| member.classic.is_some())
    }

    /// Converts the group into a classic one. Its members have to join unless it `is_settled`.
    pub fn to_classic(
        &self,
        now: Instant,
        topics: &Topics,
        is_settled: bool,
        responses: &mut GroupResponses,
    ) -> ClassicGroup {
        let parts = self.members.iter().filter_map(|(id, member)| {
            let classic = member.classic.as_ref()?;
            let parts = ClassicParts {
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                protocols: classic.protocols.clone(),
                assignment: encode_assignment(topics, &member.assigned),
                session_timeout: classic.session_timeout,
                rebalance_timeout: member.rebalance_timeout,
            };
            Some((id.clone(), parts))
        });
        let mut group = ClassicGroup::from_parts(now, PROTOCOL_TYPE, self.epoch, parts);
        if !is_settled {
            group.prepare_rebalance(now, Duration::ZERO, responses);
        }
        group
    }

    /// Returns true if a classic member takes the place of the last member of the consumer protocol.
    fn replaces_last_consumer(&self, body: &JoinGroupRequest) -> bool {
        let instance = body.group_instance_id.as_ref().filter(|_| body.member_id.is_empty());
        let replaced = instance.and_then(|instance| self.instances.get(instance));
        replaced.is_some_and(|replaced| {
            self.members.iter().all(|(id, member)| member.classic.is_none() == (id == replaced))
        })
    }

    /// Handles a JoinGroup request of a classic member. Returns the response, and true if the group becomes a classic one
    /// that needs no rebalance.
    pub fn classic_join(
        &mut self,
        now: Instant,
        topics: &Topics,
        joiner: Joiner<'_>,
        body: &JoinGroupRequest,
        new_id: String,
    ) -> (JoinGroupResponse, bool) {
        let is_downgrade = self.replaces_last_consumer(body);
        let classic = ClassicSide {
            protocols: body.protocols.iter().map(|p| (p.name.clone(), p.metadata.clone())).collect(),
            session_timeout: millis(body.session_timeout_ms),
        };
        let subscription = classic.subscription(topics).filter(|_| body.protocol_type == PROTOCOL_TYPE);
        let Some((names, owned)) = subscription else {
            return (join_error(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, &body.member_id), false);
        };
        let member_id = match self.classic_id(joiner.version, body, new_id) {
            Ok(id) => id,
            Err((code, id)) => return (join_error(code, &id), false),
        };
        let is_new = !self.members.contains_key(&member_id);
        let member = self.members.entry(member_id.clone()).or_insert_with(ConsumerMember::new);
        let is_changed = is_new || member.topic_names != names;
        member.topic_names = names;
        member.instance_id.clone_from(&body.group_instance_id);
        member.client_id = joiner.client_id.to_owned();
        member.rebalance_timeout = millis(body.rebalance_timeout_ms.max(body.session_timeout_ms));
        member.expires = now + classic.session_timeout;
        member.revokes_until = Instant::FAR_FUTURE;
        let protocol = classic.protocols.first().map(|(name, _)| name.clone());
        member.classic = Some(classic);
        if let Some(instance) = &body.group_instance_id {
            self.instances.insert(instance.clone(), member_id.clone());
        }
        let must_rebalance = self.update_topics(topics, None, is_changed) || is_changed;
        // A group that becomes a classic one keeps its generation, and its leader assigns.
        if !is_downgrade {
            self.epoch += i32::from(must_rebalance);
            if self.epoch > self.assignment_epoch {
                self.compute_target(topics, None);
            }
        }
        if !(is_downgrade && must_rebalance) {
            self.reconcile(now, &member_id, Some(&owned));
        }
        let response = JoinGroupResponse {
            generation_id: self.members.get(&member_id).map_or(-1, |member| member.epoch),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: protocol,
            member_id,
            ..Default::default()
        };
        let has_target =
            |member: &ConsumerMember| member.state == MemberState::Stable && member.epoch == self.epoch;
        (response, is_downgrade && !must_rebalance && self.members.values().all(has_target))
    }

    /// Returns the ID of a classic member that joins; a static member takes the place of the one with its instance ID,
    /// whose protocol does not matter (KAFKA-17228).
    fn classic_id(
        &mut self,
        version: i16,
        body: &JoinGroupRequest,
        new_id: String,
    ) -> Result<String, (ErrorCode, String)> {
        let known = body.group_instance_id.as_ref().and_then(|id| self.instances.get(id)).cloned();
        match known {
            Some(known) if body.member_id.is_empty() => {
                self.replace_static(&known, &new_id);
                Ok(new_id)
            }
            Some(known) if known != body.member_id => {
                Err((ErrorCode::FENCED_INSTANCE_ID, body.member_id.clone()))
            }
            None if body.member_id.is_empty() && body.group_instance_id.is_none() && version >= 4 => {
                Err((ErrorCode::MEMBER_ID_REQUIRED, new_id))
            }
            _ if body.member_id.is_empty() => Ok(new_id),
            _ => Ok(body.member_id.clone()),
        }
    }

    /// Handles a SyncGroup request of a classic member.
    pub fn classic_sync(
        &mut self,
        now: Instant,
        topics: &Topics,
        body: &SyncGroupRequest,
    ) -> SyncGroupResponse {
        let instance = body.group_instance_id.as_deref();
        if let Err(code) = self.check_classic(&body.member_id, instance, body.generation_id) {
            return sync_error(code);
        }
        let group_epoch = self.epoch;
        let Some(member) = self.members.get_mut(&body.member_id) else {
            return sync_error(ErrorCode::UNKNOWN_MEMBER_ID);
        };
        member.heard_of_classic(now);
        if member.epoch < group_epoch && member.state != MemberState::UnrevokedPartitions {
            return sync_error(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        SyncGroupResponse {
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: body.protocol_name.clone(),
            assignment: encode_assignment(topics, &member.assigned),
            ..Default::default()
        }
    }

    /// Handles a Heartbeat request of a classic member.
    pub fn classic_heartbeat(
        &mut self,
        now: Instant,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        self.check_classic(member_id, instance_id, generation)?;
        let waits = self.waits_for_others(member_id);
        let group_epoch = self.epoch;
        let member = self.members.get_mut(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        member.heard_of_classic(now);
        let must_join = member.epoch < group_epoch
            || member.state == MemberState::UnrevokedPartitions
            || member.state == MemberState::UnreleasedPartitions && !waits;
        if !must_join {
            return Ok(());
        }
        member.revokes_until = member.revokes_until.min(now + member.rebalance_timeout);
        Err(ErrorCode::REBALANCE_IN_PROGRESS)
    }

    /// Checks the member of a classic request.
    fn check_classic(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            self.check_instance(instance_id, member_id).map_err(|(code, _)| code)?;
        }
        let member = self.members.get(member_id).filter(|member| member.classic.is_some());
        let member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if member.epoch == generation { Ok(()) } else { Err(ErrorCode::ILLEGAL_GENERATION) }
    }

    /// Returns true if other members own all partitions that the member's target has and it lacks.
    fn waits_for_others(&self, member_id: &str) -> bool {
        let Some(member) = self.members.get(member_id) else { return false };
        let (free, _) =
            self.split_by_owner(member_id, super::consumer::difference(&member.target, &member.assigned));
        free.is_empty()
    }
}

impl ConsumerMember {
    fn heard_of_classic(&mut self, now: Instant) {
        if let Some(classic) = &self.classic {
            self.expires = now + classic.session_timeout;
        }
    }
}

fn millis(wire: i32) -> Duration {
    Duration::from_millis(u64::try_from(wire).unwrap_or(0))
}

fn decode_assignment(topics: &Topics, bytes: &[u8]) -> Partitions {
    let Ok((_, decoded)) = ConsumerProtocolAssignment::from_bytes(bytes) else { return Partitions::new() };
    let mut partitions = Partitions::new();
    for assigned in decoded.assigned_partitions {
        if let Some(id) = id_of(topics, &assigned.topic) {
            partitions.entry(id).or_default().extend(assigned.partitions);
        }
    }
    partitions
}

fn encode_assignment(topics: &Topics, partitions: &Partitions) -> Vec<u8> {
    let name =
        |id: Uuid| topics.by_id(id).and_then(|index| topics.get(index)).map(|topic| topic.name.clone());
    let assigned: SortedMap<String, Vec<i32>> = partitions
        .iter()
        .filter_map(|(id, numbers)| Some((name(*id)?, numbers.iter().copied().collect())))
        .collect();
    let assigned =
        assigned.into_iter().map(|(topic, partitions)| AssignedPartition { topic, partitions }).collect();
    let assignment = ConsumerProtocolAssignment { assigned_partitions: assigned, user_data: None };
    assignment.to_bytes(0).unwrap_or_default()
}

impl ClassicGroup {
    /// Returns true if the group is not empty, and all members exchange the subscriptions of consumers. A group whose
    /// members have all left while it waited for more is not empty until that wait ends.
    pub fn is_convertible(&self) -> bool {
        let is_readable = |metadata: &[u8]| ConsumerProtocolSubscription::from_bytes(metadata).is_ok();
        self.state != GroupState::Empty
            && self.protocol_type.as_deref() == Some(PROTOCOL_TYPE)
            && self
                .members
                .values()
                .all(|member| member.protocols.first().is_some_and(|(_, metadata)| is_readable(metadata)))
    }
}
