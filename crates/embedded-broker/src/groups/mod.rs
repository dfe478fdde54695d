//! Groups of consumers, and the offsets that they committed.
//!
//! A name is one group's, of one protocol: in the classic one (`classic`) a member assigns the partitions.
//! What was committed is the name's, whatever its group.

mod classic;

use std::collections::BTreeMap;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::join_group::{JoinGroupRequest, JoinGroupResponse},
    time::Instant,
};

pub(crate) use classic::{Asker, ClassicGroup, GroupAnswers, GroupState, join_error, sync_error};

use crate::{
    cluster::{Cluster, Timer},
    connection::Pending,
};

/// All groups of the cluster. Which broker coordinates one is a matter of its name.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<String, Group>,
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
        match &mut self.entry(&body.group_id).kind {
            GroupKind::Classic(group) => group.join(now, initial_delay, asker, body, new_id, answers),
        }
    }
}

impl Group {
    /// May offsets be committed by this member (or, with a negative generation, by somebody who is none)?
    pub fn check_commit(
        &mut self,
        now: Instant,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        match &mut self.kind {
            GroupKind::Classic(group) => group.check_commit(now, member_id, instance_id, generation),
        }
    }

    /// As Kafka writes it.
    pub fn state_name(&self) -> &'static str {
        match &self.kind {
            GroupKind::Classic(group) => group.state.name(),
        }
    }

    /// As Kafka writes it.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            GroupKind::Classic(_) => "classic",
        }
    }

    /// What its members say they are.
    pub fn protocol_type(&self) -> &str {
        match &self.kind {
            GroupKind::Classic(group) => group.protocol_type.as_deref().unwrap_or_default(),
        }
    }

    /// It has no members.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            GroupKind::Classic(group) => group.state == GroupState::Empty,
        }
    }

    fn handle_timeout(&mut self, now: Instant, answers: &mut GroupAnswers) {
        self.timer = self.timer.filter(|timer| *timer > now);
        match &mut self.kind {
            GroupKind::Classic(group) => group.handle_timeout(now, answers),
        }
    }

    /// When the group has to be looked at next, if that wasn't arranged for already.
    fn next_timer(&mut self) -> Option<Instant> {
        let next = match &self.kind {
            GroupKind::Classic(group) => group.next_due(),
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
