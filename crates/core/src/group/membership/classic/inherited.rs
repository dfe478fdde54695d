//! DescribeGroups: the assignment that a returning static leader did not compute (KIP-814).
//!
//! The coordinator keeps the assignment of a static member that restarts, and a leader that returns leaves the group as
//! it is. But partitions may have been added while it was away, when no member observed the topics. So the leader asks
//! the coordinator once what is assigned, and begins a rebalance if a partition is unassigned.

use ottla_protocol::{
    error_code::ErrorCode, generated::describe_groups::DescribeGroupsResponse, vocabulary::TopicPartition,
};
use ottla_sorted::SortedSet;

use super::{
    super::super::exchange::decode_assignment, ClassicMember, MemberRequest, State, Term, has_moved,
};
use crate::{error::Error, machine::Instant};

/// The check of an assignment that the leader did not compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inherited {
    /// The leader knows the assignment, or the member does not lead.
    None,
    /// The coordinator is asked at this time, or once the member is stable.
    CheckAt(Instant),
    /// DescribeGroups is in flight.
    InFlight,
}

/// The state of a group without a rebalance, as DescribeGroups reports it.
const STABLE: &str = "Stable";

impl ClassicMember {
    /// Returns when [`ClassicMember::query_inherited`] is due.
    pub(super) fn inherited_timeout(&self) -> Option<Instant> {
        match (self.inherited, &self.state) {
            (Inherited::CheckAt(at), State::Stable) => Some(at),
            _ => None,
        }
    }

    /// Asks for the assignment, if that is due.
    pub(super) fn query_inherited(&mut self, now: Instant) {
        if self.inherited_timeout().is_some_and(|at| at <= now) {
            self.inherited = Inherited::InFlight;
            let request = MemberRequest::Describe(self.settings.group_id.to_string());
            self.send(request, self.settings.request_timeout);
        }
    }

    /// Handles the response to DescribeGroups, or the error instead of one. Returns true if the coordinator moved.
    pub(in crate::group) fn handle_described(
        &mut self,
        now: Instant,
        term: Term,
        result: Result<DescribeGroupsResponse, Error>,
    ) -> bool {
        if term != self.term || self.inherited != Inherited::InFlight {
            return false;
        }
        let group = result.map(|response| response.groups.into_iter().next().unwrap_or_default());
        match group {
            Ok(group) if group.error_code == ErrorCode::NONE && group.group_state == STABLE => {
                self.inherited = Inherited::None;
                let assignments = group.members.iter();
                let assigned =
                    assignments.filter_map(|member| decode_assignment(&member.member_assignment).ok());
                self.compare_inherited(now, &assigned.flatten().collect());
                false
            }
            Ok(group) if !group.error_code.is_error() || group.error_code.is_retriable() => {
                self.inherited = Inherited::CheckAt(now + self.settings.heartbeat_interval);
                has_moved(group.error_code)
            }
            Err(error) if error.is_retriable() => {
                self.inherited = Inherited::CheckAt(now + self.settings.heartbeat_interval);
                false
            }
            // Without permission to describe the group, the next rebalance assigns what is left out.
            Ok(_) | Err(_) => {
                self.inherited = Inherited::None;
                false
            }
        }
    }

    fn compare_inherited(&mut self, now: Instant, assigned: &SortedSet<TopicPartition>) {
        let topics = self.leads.iter().flatten();
        let mut partitions = topics.flat_map(|(name, table)| {
            (0..table.partitions()).map(|number| TopicPartition::new(name.clone(), number as i32))
        });
        if !partitions.all(|key| assigned.contains(&key)) {
            self.rejoin(now, "a partition is assigned to no member");
        }
    }
}
