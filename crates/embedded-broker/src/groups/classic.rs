//! A group of the classic protocol: members join, the leader assigns, and all members receive their assignment.
//!
//! A group is `Empty` without members, `PreparingRebalance` until all members have joined or rejoined,
//! `CompletingRebalance` until the leader has sent the assignment, and then `Stable`. JoinGroup and SyncGroup requests
//! wait for these transitions as [`Pending::Group`](crate::connection::Pending::Group).

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        join_group::{JoinGroupRequest, JoinGroupResponse, response::Member as JoinedMember},
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    time::Instant,
};
use ottla_sorted::SortedMap;

use crate::connection::Waiter;

/// A group whose leader assigns the partitions.
#[derive(Debug)]
pub(crate) struct ClassicGroup {
    pub state: GroupState,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol: Option<String>,
    pub leader: Option<String>,
    pub members: SortedMap<String, Member>,
    /// Member IDs that were issued but have not joined, with their expiry.
    pending_members: SortedMap<String, Instant>,
    /// The member ID of each static member, by instance ID.
    instances: SortedMap<String, String>,
    /// The deadline for members to join or sync.
    deadline: Instant,
    /// The rebalance is the first one of a group that was empty: it always waits for its deadline.
    waits_for_more: bool,
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

/// One member.
#[derive(Debug)]
pub(crate) struct Member {
    pub instance_id: Option<String>,
    pub client_id: String,
    pub protocols: Vec<(String, Vec<u8>)>,
    pub assignment: Vec<u8>,
    session_timeout: Duration,
    rebalance_timeout: Duration,
    /// The time at which the member's session expires without a request of the member.
    expires: Instant,
    joining: Option<Waiter>,
    syncing: Option<Waiter>,
    /// The member has joined the rebalance in progress, even if its connection has closed.
    joined: bool,
    /// The order of joining: the first member becomes the leader.
    order: u64,
}

/// The parts of a member that a conversion to or from the consumer protocol keeps.
#[derive(Debug)]
pub(crate) struct ClassicParts {
    pub instance_id: Option<String>,
    pub client_id: String,
    pub protocols: Vec<(String, Vec<u8>)>,
    pub assignment: Vec<u8>,
    pub session_timeout: Duration,
    pub rebalance_timeout: Duration,
}

/// Responses to requests that waited.
#[derive(Debug, Default)]
pub(crate) struct GroupResponses {
    pub joins: Vec<(Waiter, JoinGroupResponse)>,
    pub syncs: Vec<(Waiter, SyncGroupResponse)>,
}

/// The sender of a request, as far as the request's body doesn't contain it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joiner<'a> {
    pub waiter: Waiter,
    pub version: i16,
    pub client_id: &'a str,
}

impl Member {
    /// Returns true if the member waits for a response from the group, so that it can't send heartbeats.
    fn waits(&self) -> bool {
        self.joining.is_some() || self.syncing.is_some()
    }
}

impl GroupState {
    /// Returns Kafka's name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

impl ClassicGroup {
    pub fn new() -> Self {
        Self {
            state: GroupState::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: SortedMap::new(),
            pending_members: SortedMap::new(),
            instances: SortedMap::new(),
            deadline: Instant::FAR_FUTURE,
            waits_for_more: false,
        }
    }

    /// Ends the group, and returns its members. Waiting requests fail with REBALANCE_IN_PROGRESS.
    pub fn into_parts(self, responses: &mut GroupResponses) -> Vec<(String, ClassicParts)> {
        let mut parts = Vec::new();
        for (id, member) in self.members {
            if let Some(waiter) = member.joining {
                responses.joins.push((waiter, join_error(ErrorCode::REBALANCE_IN_PROGRESS, &id)));
            }
            if let Some(waiter) = member.syncing {
                responses.syncs.push((waiter, sync_error(ErrorCode::REBALANCE_IN_PROGRESS)));
            }
            let Member { instance_id, client_id, protocols, assignment, .. } = member;
            let (session_timeout, rebalance_timeout) = (member.session_timeout, member.rebalance_timeout);
            let kept = ClassicParts {
                instance_id,
                client_id,
                protocols,
                assignment,
                session_timeout,
                rebalance_timeout,
            };
            parts.push((id, kept));
        }
        parts
    }

    /// Creates a group whose members have their assignments.
    pub fn from_parts(
        now: Instant,
        protocol_type: &str,
        generation: i32,
        parts: impl Iterator<Item = (String, ClassicParts)>,
    ) -> Self {
        let mut group = Self {
            state: GroupState::Stable,
            generation,
            protocol_type: Some(protocol_type.to_owned()),
            ..Self::new()
        };
        for (order, (id, parts)) in parts.enumerate() {
            if let Some(instance) = &parts.instance_id {
                group.instances.insert(instance.clone(), id.clone());
            }
            let ClassicParts { instance_id, client_id, protocols, assignment, session_timeout, .. } = parts;
            let member = Member {
                instance_id,
                client_id,
                protocols,
                assignment,
                session_timeout,
                rebalance_timeout: parts.rebalance_timeout,
                expires: now + session_timeout,
                joining: None,
                syncing: None,
                joined: false,
                order: order as u64,
            };
            group.members.insert(id, member);
        }
        group.protocol = group.vote();
        group.leader = group.members.keys().next().cloned();
        group
    }

    /// Validates the member of a Heartbeat, SyncGroup, OffsetCommit or LeaveGroup request.
    pub fn check_member(&self, member_id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance_id {
            match self.instances.get(instance) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(id) if id != member_id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ErrorCode::UNKNOWN_MEMBER_ID) }
    }

    /// A Heartbeat request.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        self.check_member(member_id, instance_id)?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        self.heard_of(now, member_id);
        match self.state {
            GroupState::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            GroupState::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
        }
    }

    /// Checks whether this member may commit offsets. With a negative generation the client is not a member.
    pub fn check_commit(
        &mut self,
        now: Instant,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        if generation < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        self.check_member(member_id, instance_id)?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.state == GroupState::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.heard_of(now, member_id);
        Ok(())
    }

    /// A member leaves.
    pub fn leave(
        &mut self,
        now: Instant,
        member_id: &str,
        instance_id: Option<&str>,
        responses: &mut GroupResponses,
    ) -> Result<(), ErrorCode> {
        let by_instance =
            instance_id.filter(|_| member_id.is_empty()).and_then(|id| self.instances.get(id).cloned());
        let member_id = by_instance.as_deref().unwrap_or(member_id);
        if self.pending_members.remove(member_id).is_some() {
            self.complete_join_if_all_are_there(now, responses);
            return Ok(());
        }
        self.check_member(member_id, instance_id)?;
        self.remove(now, member_id, responses);
        Ok(())
    }

    /// Handles a SyncGroup request; returns the response unless it has to wait.
    pub fn sync(
        &mut self,
        now: Instant,
        waiter: Waiter,
        body: SyncGroupRequest,
        responses: &mut GroupResponses,
    ) -> Option<SyncGroupResponse> {
        if let Err(error) = self.check_sync(&body) {
            return Some(sync_error(error));
        }
        let member_id = body.member_id;
        self.heard_of(now, &member_id);
        match self.state {
            GroupState::Empty => Some(sync_error(ErrorCode::UNKNOWN_MEMBER_ID)),
            GroupState::PreparingRebalance => Some(sync_error(ErrorCode::REBALANCE_IN_PROGRESS)),
            GroupState::Stable => Some(self.sync_response(&member_id)),
            GroupState::CompletingRebalance => {
                if let Some(member) = self.members.get_mut(&member_id) {
                    member.syncing = Some(waiter);
                }
                if self.leader.as_deref() == Some(&member_id) {
                    for assignment in body.assignments {
                        if let Some(member) = self.members.get_mut(&assignment.member_id) {
                            member.assignment = assignment.assignment;
                        }
                    }
                    self.state = GroupState::Stable;
                    self.deadline = Instant::FAR_FUTURE;
                    self.respond_to_syncs(now, responses);
                }
                None
            }
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant, responses: &mut GroupResponses) {
        self.pending_members.retain(|_, expires| *expires > now);
        let is_gone = |member: &Member| member.expires <= now && !member.waits();
        let gone = self.members.iter().filter(|(_, member)| is_gone(member)).map(|(id, _)| id.clone());
        for id in gone.collect::<Vec<_>>() {
            self.remove(now, &id, responses);
        }
        if self.deadline <= now {
            match self.state {
                GroupState::PreparingRebalance => self.complete_join(now, responses),
                GroupState::CompletingRebalance => {
                    let silent = self.members.iter().filter(|(_, member)| member.syncing.is_none());
                    for id in silent.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                        self.forget(&id);
                    }
                    self.prepare_rebalance(now, Duration::ZERO, responses);
                }
                GroupState::Empty | GroupState::Stable => self.deadline = Instant::FAR_FUTURE,
            }
        }
        self.complete_join_if_all_are_there(now, responses);
    }

    /// Returns when the group must be checked next, if at all.
    pub fn next_due(&self) -> Option<Instant> {
        let expiries = self.members.values().filter(|member| !member.waits()).map(|member| member.expires);
        let next = expiries.chain(self.pending_members.values().copied()).chain([self.deadline]).min()?;
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Handles a JoinGroup request; returns the response unless it has to wait.
    pub fn join(
        &mut self,
        now: Instant,
        initial_delay: Duration,
        joiner: Joiner<'_>,
        body: &JoinGroupRequest,
        new_id: String,
        responses: &mut GroupResponses,
    ) -> Option<JoinGroupResponse> {
        let refuse = |error, member_id: &str| Some(join_error(error, member_id));
        if let Err(error) = self.check_protocols(body) {
            return refuse(error, &body.member_id);
        }
        let session_timeout = Duration::from_millis(u64::try_from(body.session_timeout_ms).unwrap_or(0));
        let known_instance = body.group_instance_id.as_ref().and_then(|id| self.instances.get(id)).cloned();
        let member_id = match (&body.group_instance_id, known_instance) {
            (Some(_), Some(known)) if body.member_id.is_empty() => {
                return self.replace_static(now, joiner, body, &known, new_id, responses);
            }
            (Some(_), Some(known)) if known != body.member_id => {
                return refuse(ErrorCode::FENCED_INSTANCE_ID, &body.member_id);
            }
            (None, _) if body.member_id.is_empty() && joiner.version >= 4 => {
                self.pending_members.insert(new_id.clone(), now + session_timeout);
                return refuse(ErrorCode::MEMBER_ID_REQUIRED, &new_id);
            }
            _ if body.member_id.is_empty() => new_id,
            _ => body.member_id.clone(),
        };
        let was_pending = self.pending_members.remove(&member_id).is_some();
        let is_new = body.member_id.is_empty() || was_pending;
        if !is_new && !self.members.contains_key(&member_id) {
            return refuse(ErrorCode::UNKNOWN_MEMBER_ID, &member_id);
        }
        let changed = self.put_member(now, joiner, body, &member_id, session_timeout);
        match self.state {
            GroupState::CompletingRebalance if !is_new && !changed => {
                return Some(self.join_response(&member_id));
            }
            GroupState::Stable if !is_new && !changed && self.leader.as_deref() != Some(&member_id) => {
                return Some(self.join_response(&member_id));
            }
            _ => {}
        }
        if let Some(member) = self.members.get_mut(&member_id) {
            member.joining = Some(joiner.waiter);
            member.joined = true;
        }
        if self.state != GroupState::PreparingRebalance {
            self.prepare_rebalance(now, initial_delay, responses);
        }
        self.complete_join_if_all_are_there(now, responses);
        None
    }

    fn check_protocols(&self, body: &JoinGroupRequest) -> Result<(), ErrorCode> {
        let inconsistent = Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        if body.protocol_type.is_empty() || body.protocols.is_empty() {
            return inconsistent;
        }
        let others =
            || self.members.iter().filter(|(id, _)| **id != body.member_id).map(|(_, member)| member);
        if others().next().is_none() {
            return Ok(());
        }
        if self.protocol_type.as_deref() != Some(&body.protocol_type) {
            return inconsistent;
        }
        let is_common =
            |name: &str| others().all(|member| member.protocols.iter().any(|(known, _)| known == name));
        if body.protocols.iter().any(|protocol| is_common(&protocol.name)) { Ok(()) } else { inconsistent }
    }

    /// Adds or updates a member; returns true if its protocols changed.
    fn put_member(
        &mut self,
        now: Instant,
        joiner: Joiner<'_>,
        body: &JoinGroupRequest,
        member_id: &str,
        session_timeout: Duration,
    ) -> bool {
        let rebalance_ms =
            if body.rebalance_timeout_ms < 0 { body.session_timeout_ms } else { body.rebalance_timeout_ms };
        let protocols: Vec<_> = body.protocols.iter().map(|p| (p.name.clone(), p.metadata.clone())).collect();
        self.protocol_type = Some(body.protocol_type.clone());
        if let Some(instance) = &body.group_instance_id {
            self.instances.insert(instance.clone(), member_id.to_owned());
        }
        let order = self.members.values().map(|member| member.order + 1).max().unwrap_or(0);
        let member = self.members.entry(member_id.to_owned()).or_insert_with(|| Member {
            instance_id: body.group_instance_id.clone(),
            client_id: joiner.client_id.to_owned(),
            protocols: protocols.clone(),
            assignment: Vec::new(),
            session_timeout,
            rebalance_timeout: Duration::ZERO,
            expires: Instant::ZERO,
            joining: None,
            syncing: None,
            joined: false,
            order,
        });
        let changed = member.protocols != protocols;
        member.protocols = protocols;
        member.session_timeout = session_timeout;
        member.rebalance_timeout = Duration::from_millis(u64::try_from(rebalance_ms).unwrap_or(0));
        member.expires = now + session_timeout;
        changed
    }

    /// Replaces a static member that has returned under a new member ID. The group doesn't rebalance if the protocols
    /// are the same.
    fn replace_static(
        &mut self,
        now: Instant,
        joiner: Joiner<'_>,
        body: &JoinGroupRequest,
        known: &str,
        new_id: String,
        responses: &mut GroupResponses,
    ) -> Option<JoinGroupResponse> {
        let Some(mut member) = self.members.remove(known) else {
            return Some(join_error(ErrorCode::UNKNOWN_MEMBER_ID, known));
        };
        if let Some(waiter) = member.joining.take() {
            responses.joins.push((waiter, join_error(ErrorCode::FENCED_INSTANCE_ID, known)));
        }
        if let Some(waiter) = member.syncing.take() {
            responses.syncs.push((waiter, sync_error(ErrorCode::FENCED_INSTANCE_ID)));
        }
        self.members.insert(new_id.clone(), member);
        if self.leader.as_deref() == Some(known) {
            self.leader = Some(new_id.clone());
        }
        let session_timeout = Duration::from_millis(u64::try_from(body.session_timeout_ms).unwrap_or(0));
        let changed = self.put_member(now, joiner, body, &new_id, session_timeout);
        if self.state == GroupState::Stable && !changed {
            let mut response = self.join_response(&new_id);
            if self.leader.as_deref() == Some(&new_id) {
                if joiner.version >= 9 {
                    response.skip_assignment = true;
                } else {
                    // An old client would assign again if the response named it as the leader.
                    response.leader = known.to_owned();
                    response.members = Vec::new();
                }
            }
            return Some(response);
        }
        if let Some(member) = self.members.get_mut(&new_id) {
            member.joining = Some(joiner.waiter);
            member.joined = true;
        }
        if self.state != GroupState::PreparingRebalance {
            self.prepare_rebalance(now, Duration::ZERO, responses);
        }
        self.complete_join_if_all_are_there(now, responses);
        None
    }

    pub fn prepare_rebalance(
        &mut self,
        now: Instant,
        initial_delay: Duration,
        responses: &mut GroupResponses,
    ) {
        for member in self.members.values_mut() {
            if let Some(waiter) = member.syncing.take() {
                responses.syncs.push((waiter, sync_error(ErrorCode::REBALANCE_IN_PROGRESS)));
                member.expires = now + member.session_timeout;
            }
            member.joined = member.joining.is_some();
        }
        self.waits_for_more = self.state == GroupState::Empty && !initial_delay.is_zero();
        let longest = self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default();
        self.deadline = now + if self.waits_for_more { initial_delay } else { longest };
        self.state = GroupState::PreparingRebalance;
    }

    fn complete_join_if_all_are_there(&mut self, now: Instant, responses: &mut GroupResponses) {
        if self.state == GroupState::PreparingRebalance
            && !self.waits_for_more
            && self.pending_members.is_empty()
            && self.members.values().all(|member| member.joined)
        {
            self.complete_join(now, responses);
        }
    }

    fn complete_join(&mut self, now: Instant, responses: &mut GroupResponses) {
        self.waits_for_more = false;
        let late = self.members.iter().filter(|(_, member)| !member.joined && member.instance_id.is_none());
        for id in late.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.forget(&id);
        }
        self.generation += 1;
        if self.members.is_empty() {
            self.state = GroupState::Empty;
            (self.leader, self.protocol) = (None, None);
            self.deadline = Instant::FAR_FUTURE;
            return;
        }
        if !self
            .leader
            .as_ref()
            .is_some_and(|leader| self.members.get(leader).is_some_and(|member| member.joined))
        {
            let joined = self.members.iter().filter(|(_, member)| member.joined);
            self.leader = joined.min_by_key(|(_, member)| member.order).map(|(id, _)| id.clone());
        }
        self.protocol = self.vote();
        self.state = GroupState::CompletingRebalance;
        let longest = self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or_default();
        self.deadline = now + longest;
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in ids {
            let response = self.join_response(&id);
            if let Some(member) = self.members.get_mut(&id) {
                member.expires = now + member.session_timeout;
                if let Some(waiter) = member.joining.take() {
                    responses.joins.push((waiter, response));
                }
            }
        }
    }

    /// Returns the protocol with the most votes among those that all members support.
    fn vote(&self) -> Option<String> {
        let is_common =
            |name: &str| self.members.values().all(|m| m.protocols.iter().any(|(known, _)| known == name));
        let mut votes: SortedMap<&str, u32> = SortedMap::new();
        for member in self.members.values() {
            if let Some((name, _)) = member.protocols.iter().find(|(name, _)| is_common(name)) {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().max()?;
        votes.iter().find(|(_, n)| *n == most).map(|(name, _)| (*name).to_owned())
    }

    fn join_response(&self, member_id: &str) -> JoinGroupResponse {
        let leader = self.leader.clone().unwrap_or_default();
        let mut response = JoinGroupResponse {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: Some(self.protocol.clone().unwrap_or_default()),
            member_id: member_id.to_owned(),
            ..Default::default()
        };
        if leader == member_id {
            let members = self.members.iter().map(|(id, member)| {
                let chosen = member.protocols.iter().find(|(name, _)| Some(name) == self.protocol.as_ref());
                JoinedMember {
                    member_id: id.clone(),
                    group_instance_id: member.instance_id.clone(),
                    metadata: chosen.map(|(_, metadata)| metadata.clone()).unwrap_or_default(),
                }
            });
            response.members = members.collect();
        }
        response.leader = leader;
        response
    }

    fn check_sync(&self, body: &SyncGroupRequest) -> Result<(), ErrorCode> {
        self.check_member(&body.member_id, body.group_instance_id.as_deref())?;
        if body.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let other = |requested: &Option<String>, is: &Option<String>| requested.is_some() && requested != is;
        if other(&body.protocol_type, &self.protocol_type) || other(&body.protocol_name, &self.protocol) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        Ok(())
    }

    fn respond_to_syncs(&mut self, now: Instant, responses: &mut GroupResponses) {
        let ids: Vec<String> = self.members.keys().cloned().collect();
        for id in ids {
            let response = self.sync_response(&id);
            if let Some(member) = self.members.get_mut(&id)
                && let Some(waiter) = member.syncing.take()
            {
                member.expires = now + member.session_timeout;
                responses.syncs.push((waiter, response));
            }
        }
    }

    fn sync_response(&self, member_id: &str) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: self
                .members
                .get(member_id)
                .map(|member| member.assignment.clone())
                .unwrap_or_default(),
            ..Default::default()
        }
    }

    fn heard_of(&mut self, now: Instant, member_id: &str) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.expires = now + member.session_timeout;
        }
    }

    fn remove(&mut self, now: Instant, member_id: &str, responses: &mut GroupResponses) {
        let Some(member) = self.forget(member_id) else { return };
        if let Some(waiter) = member.joining {
            responses.joins.push((waiter, join_error(ErrorCode::UNKNOWN_MEMBER_ID, "")));
        }
        if let Some(waiter) = member.syncing {
            responses.syncs.push((waiter, sync_error(ErrorCode::UNKNOWN_MEMBER_ID)));
        }
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.prepare_rebalance(now, Duration::ZERO, responses);
                self.complete_join_if_all_are_there(now, responses);
            }
            GroupState::PreparingRebalance => self.complete_join_if_all_are_there(now, responses),
            GroupState::Empty => {}
        }
    }

    fn forget(&mut self, member_id: &str) -> Option<Member> {
        let member = self.members.remove(member_id)?;
        if let Some(instance) = &member.instance_id {
            self.instances.remove(instance);
        }
        if self.leader.as_deref() == Some(member_id) {
            self.leader = None;
        }
        Some(member)
    }
}

pub(crate) fn join_error(error_code: ErrorCode, member_id: &str) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code,
        member_id: member_id.to_owned(),
        protocol_name: Some(String::new()),
        ..Default::default()
    }
}

pub(crate) fn sync_error(error_code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code, ..Default::default() }
}
