//! The checks after each step, and in a settled group.

use std::{sync::Arc, time::Duration};

use ottla_sorted::{SortedMap, SortedSet};

use super::{
    GROUP, Protocol, REBALANCE, Run, SESSION,
    member::{Holding, Member, Question, State},
};
use crate::checkers::Broken;
use ottla_core::{
    cluster::command::Command, completion::completion, fetch::partition::PartitionHandle,
    group::assignor::Assignor, stats::Gather,
};
use ottla_protocol::vocabulary::TopicPartition;

/// The partitions of all members: the member, and the identity of its assignment.
pub(super) type Holders = SortedMap<TopicPartition, (usize, Arc<PartitionHandle>)>;

/// A member that lost its session learns it when its connection times out or its host continues.
const LEARNS: Duration = Duration::from_secs(2);

impl Run {
    /// Handles the events of a member, and adopts its partitions.
    pub(super) fn observe(&mut self, index: usize) -> Result<(), Broken> {
        self.take_events(index)?;
        let now = self.world.now;
        let member = &mut self.members[index];
        if matches!(member.state, State::Failed) {
            return Ok(());
        }
        for error in member.inbox.errors() {
            let context = error.context();
            let what = format!("{:?} of {:?}", error.kind(), (&context.api, &context.topic));
            let last = member.errors.insert(what.clone(), now);
            if last.is_some_and(|last| last + Duration::from_secs(1) > now) {
                return Err(Broken::new("errors", format!("member {index}: {what} twice: {error}")));
            }
        }
        let (mut held, mut is_changed) = (SortedMap::new(), false);
        for key in member.shared.assignment() {
            let Ok(handle) = member.shared.partition(&key.topic, key.partition) else { continue };
            let place = key;
            let known = member.held.remove(&place).filter(|known| Arc::ptr_eq(&known.handle, &handle));
            let committed = || self.committed.get(&place).copied().unwrap_or(0);
            is_changed |= known.is_none();
            let holding = known.unwrap_or_else(|| Holding { handle, committed: committed(), next: None });
            held.insert(place, holding);
        }
        self.summary.changes += u64::from(is_changed || !member.held.is_empty());
        member.held = held;
        Ok(())
    }

    /// A member gets the records of a partition in order, from the committed offset on.
    pub(super) fn check_delivery(
        &mut self,
        index: usize,
        place: &TopicPartition,
        offset: i64,
    ) -> Result<(), Broken> {
        let now = self.world.now;
        let member = &mut self.members[index];
        if member.must_get_nothing(now) {
            let event = member.question.as_ref().map(|question| &question.event);
            let what = format!("member {index} got offset {offset} of {place:?} during {event:?}");
            return Err(Broken::new("asked", what));
        }
        let committed = self.committed.get(place).copied().unwrap_or(0);
        let is_first = member.held.get(place).is_some_and(|holding| holding.next.is_none());
        let is_given_up_late = is_first && self.is_given_up_late(place, Some(index));
        let member = &mut self.members[index];
        let Some(holding) = member.held.get_mut(place) else {
            let what = format!("member {index} got offset {offset} of {place:?}, which it does not have");
            return Err(Broken::new("continuity", what));
        };
        let allowed = match holding.next {
            Some(next) => next..=next,
            None if is_given_up_late => 0..=committed,
            None => holding.committed..=committed,
        };
        holding.next = Some(offset + 1);
        if allowed.contains(&offset) {
            return Ok(());
        }
        let what = format!("member {index} got offset {offset} of {place:?} instead of {allowed:?}");
        Err(Broken::new("continuity", what))
    }

    /// Returns true if a member other than the `holder` may still commit a partition. The coordinator of a group that is converted
    /// during a cooperative rebalance gives partitions away before their member gave them up, and accepts its last commits.
    fn is_given_up_late(&self, place: &TopicPartition, holder: Option<usize>) -> bool {
        let now = self.world.now;
        let mut others = self.members.iter().enumerate().filter(|(index, _)| Some(*index) != holder);
        matches!(self.setup.protocol, Protocol::Mixed(_))
            && others.any(|(_, member)| member.is_asked_to_revoke(place) || member.has_just_answered(now))
    }

    /// Committed offsets grow, and only up to what members received.
    pub(super) fn check_commits(&mut self) -> Result<(), Broken> {
        for (topic, partitions) in &self.setup.topics {
            for partition in 0..*partitions {
                let Some(committed) = self.world.cluster.control().committed_offset(GROUP, topic, partition)
                else {
                    continue;
                };
                let place = TopicPartition::new(&**topic, partition);
                let received = self.received.get(&place).copied().unwrap_or(0);
                if committed > received {
                    let what =
                        format!("offset {committed} of {place:?} is committed, {received} was received");
                    return Err(Broken::new("ahead", what));
                }
                let before = self.committed.insert(Clone::clone(&place), committed);
                if before.is_some_and(|before| before > committed) && !self.is_given_up_late(&place, None) {
                    let what = format!("offset {committed} of {place:?} was committed after {before:?}");
                    return Err(Broken::new("rewound", what));
                }
            }
        }
        Ok(())
    }

    /// A commit that succeeded is committed.
    pub(super) fn check_outcomes(&mut self, index: usize) -> Result<(), Broken> {
        let mut index_of_commit = 0;
        while let Some(commit) = self.members[index].commits.get(index_of_commit) {
            let Some(outcome) = commit.outcome.try_take() else {
                index_of_commit += 1;
                continue;
            };
            let commit = self.members[index].commits.remove(index_of_commit);
            let results = outcome.unwrap_or_default();
            if results.is_empty() {
                self.summary.commits.1 += 1;
            }
            for (offset, result) in commit.offsets.iter().zip(results) {
                let place = TopicPartition::new(Arc::clone(&offset.topic), offset.partition);
                let committed = self.committed.get(&place).copied().unwrap_or(0);
                match result {
                    Ok(()) if committed < offset.offset => {
                        let what =
                            format!("the commit of {offset:?} succeeded, and {committed} is committed");
                        return Err(Broken::new("commits", what));
                    }
                    Ok(()) => self.summary.commits.0 += 1,
                    Err(_) => self.summary.commits.1 += 1,
                }
            }
        }
        Ok(())
    }

    /// A member without a session, or whose application does not poll, has no partitions.
    pub(super) fn check_absence(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.world.now;
        let member = &self.members[index];
        if !member.is_subscribed() {
            return Ok(());
        }
        if matches!(member.protocol, Protocol::Classic(_)) && self.is_over(member) {
            self.members[index].overdue = Some(now);
        }
        let member = &self.members[index];
        let membership = &mut self.world.wire.membership;
        let is_outside = member.group.view().generation.is_none();
        membership.set_outside(now, member.client, is_outside);
        let idle = now - member.polled;
        // The coordinator may have withdrawn partitions while the application takes others over, and waits no longer.
        let is_overdue = !matches!(member.protocol, Protocol::Classic(_))
            && member.question.as_ref().is_some_and(|question| question.since + REBALANCE <= now);
        // Without a membership there are no heartbeats. The coordinator may still count the member.
        if idle >= REBALANCE || is_overdue || member.group.is_assignment_lost() {
            membership.rest(member.client);
        } else {
            membership.check_silence(now, member.client)?;
            if member.question.is_none() && member.answered + LEARNS < now {
                membership.check_withdrawn(now, member.client)?;
            }
        }
        // Until the application has responded, it gets no records.
        let is_told =
            member.question.is_some() || member.has_just_answered(now) || member.group.is_assignment_lost();
        let has_partitions = !member.held.is_empty() && !is_told;
        // Both times pass on the host, whatever happens to its connections.
        let is_lost = member.awake_since + LEARNS < now && has_partitions;
        if is_lost && idle > REBALANCE + LEARNS {
            let what = format!("member {index} did not poll for {idle:?} and has {:?}", member.held.keys());
            return Err(Broken::new("polls", what));
        }
        let acknowledged = membership.acknowledged(member.client);
        let is_classic = matches!(member.protocol, Protocol::Classic(_));
        match acknowledged {
            Some(at) if is_classic && is_lost && at + SESSION + LEARNS < now => {
                let what = format!(
                    "member {index} has {:?}, {:?} after its last heartbeat",
                    member.held.keys(),
                    now - at
                );
                Err(Broken::new("session", what))
            }
            _ => Ok(()),
        }
    }

    /// The coordinator has stopped waiting for a classic member. It counts from the beginning of the rebalance, a heartbeat
    /// before the application is asked, or longer if it had to respond to another rebalance first.
    fn is_over(&self, member: &Member) -> bool {
        let undisturbed = self.world.wire.membership.undisturbed(member.client);
        undisturbed.is_some_and(|since| since + REBALANCE < self.world.now)
    }

    /// Returns true if a later member has the same instance ID: this one learns with its next request that it is fenced.
    fn is_replaced(&self, member: &Member) -> bool {
        let is_later = |other: &Member| other.client > member.client && other.instance == member.instance;
        member.instance.is_some() && self.members.iter().any(is_later)
    }

    /// No two members hold a partition, unless one of them may have lost its session without knowing.
    pub(super) fn check_holders(&self) -> Result<(), Broken> {
        let now = self.world.now;
        let mut holders: SortedMap<&TopicPartition, usize> = SortedMap::new();
        let is_well = |member: &&Member| {
            // A member that was removed learns it with the next heartbeat, and its application with the next event.
            let membership = &self.world.wire.membership;
            let is_out = member.question.is_some() && !membership.is_member(member.client);
            let is_over = self.is_over(member);
            // The library has responded at the deadline, which passes while the application is busy, too.
            let is_answered_late = |question: &Question| {
                let is_past = question.event.deadline.is_some_and(|deadline| deadline <= now);
                is_over || is_past || question.since + REBALANCE < now + LEARNS
            };
            // A classic member that responded too late learns from the response to its JoinGroup which partitions it
            // lost.
            let is_late = is_over && matches!(member.protocol, Protocol::Classic(_))
                || member.question.as_ref().is_some_and(is_answered_late)
                || member.has_just_answered(now);
            !matches!(member.state, State::Gone | State::Failed | State::Suspended(_))
                && !member.group.is_assignment_lost()
                && !is_late
                && !is_out
                && !self.is_replaced(member)
                && (!self.setup.has_faults || member.well_since + SESSION + SESSION < now)
        };
        // A cooperative leader leaves partitions that move unassigned at first. If the group is converted then, the
        // coordinator assigns them before their member has revoked them.
        let is_mixed = matches!(self.setup.protocol, Protocol::Mixed(_));
        for member in self.members.iter().filter(is_well) {
            for place in member.held.keys() {
                if (is_mixed || member.is_asked_late()) && member.is_asked_to_revoke(place) {
                    continue;
                }
                if let Some(other) = holders.insert(place, member.client) {
                    let what = format!("clients {other} and {} hold {place:?}", member.client);
                    return Err(Broken::new("two holders", what));
                }
            }
        }
        Ok(())
    }

    // ---- a settled group

    pub(super) fn is_settled(&self) -> bool {
        let partitions: usize = self.setup.topics.iter().map(|(_, count)| *count as usize).sum();
        let members = || self.members.iter().filter(|member| member.is_subscribed());
        let held: Vec<&TopicPartition> = members().flat_map(|member| member.held.keys()).collect();
        let others_are_gone = self
            .members
            .iter()
            .all(|member| matches!(member.state, State::Gone | State::Failed | State::Subscribed));
        let distinct: SortedSet<_> = held.iter().collect();
        let is_idle = members().all(|member| member.question.is_none());
        others_are_gone && is_idle && held.len() == partitions && distinct.len() == partitions
    }

    /// Returns a record that no member got.
    pub(super) fn missing(&mut self) -> Option<(TopicPartition, i64)> {
        for (topic, partitions) in &self.setup.topics {
            for partition in 0..*partitions {
                let state = self.world.cluster.control().partition(topic, partition)?;
                let place = TopicPartition::new(&**topic, partition);
                let offsets = 0..state.high_watermark;
                if let Some(offset) =
                    { offsets }.find(|offset| !self.delivered.contains(&(place.clone(), *offset)))
                {
                    return Some((place, offset));
                }
            }
        }
        None
    }

    /// Returns the holder of each partition.
    pub(super) fn holders(&self) -> Holders {
        let members = self.members.iter().enumerate().filter(|(_, member)| member.is_subscribed());
        let held = members.flat_map(|(index, member)| {
            let held = member.held.iter();
            held.map(move |(place, holding)| (place.clone(), (index, Arc::clone(&holding.handle))))
        });
        held.collect()
    }

    /// One member joined or left: others keep their partitions, and sticky assignors move nothing else.
    pub(super) fn check_moves(&self, before: &Holders, changed: usize) -> Result<(), Broken> {
        let is_cooperative = match self.setup.protocol {
            Protocol::Classic(assignor) => assignor == Assignor::CooperativeSticky,
            Protocol::Consumer => true,
            Protocol::Mixed(_) => false,
        };
        let is_sticky =
            matches!(self.setup.protocol, Protocol::Classic(Assignor::Sticky | Assignor::CooperativeSticky));
        let after = self.holders();
        for (place, (holder, handle)) in &after {
            let Some((was, known)) = before.get(place) else { continue };
            if is_cooperative && holder == was && !Arc::ptr_eq(handle, known) {
                let what = format!("member {holder} still has {place:?}, and had to revoke it meanwhile");
                return Err(Broken::new("taken away", what));
            }
            if is_sticky && holder != was && *holder != changed && *was != changed {
                let what = format!("{place:?} moved from {was} to {holder} when {changed} joined or left");
                return Err(Broken::new("assignor", what));
            }
        }
        Ok(())
    }

    /// The statistics of settled members agree with their assignments.
    pub(super) fn check_statistics(&mut self) -> Result<(), Broken> {
        let mut waiting = Vec::new();
        for (index, member) in self.members.iter().enumerate().filter(|(_, member)| member.is_subscribed()) {
            let (done, statistics) = completion();
            let gather = Arc::new(Gather::for_caller(done));
            self.world.clients[member.client].commands.push(Command::Statistics(gather));
            waiting.push((index, statistics));
        }
        self.run_for(Duration::from_secs(1))?;
        for (index, statistics) in waiting {
            let group = statistics.try_take().and_then(|statistics| statistics.group);
            let member = &self.members[index];
            let is_right = group.as_ref().is_some_and(|group| {
                // For the other members, the library responds.
                let is_counted = group.rebalance_cnt == member.rebalances || member.rebalances == 0;
                let is_steady = (group.state, group.join_state) == ("up", "steady");
                is_steady && is_counted && group.assignment_size == member.held.len() as i64
            });
            if !is_right {
                let what = format!(
                    "member {index} has {} partitions after {} rebalances: {group:?}",
                    member.held.len(),
                    member.rebalances
                );
                return Err(Broken::new("statistics", what));
            }
        }
        Ok(())
    }
}
