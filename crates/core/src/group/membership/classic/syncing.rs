//! SyncGroup: the leader computes and sends the assignment, and every member gets its part of it.

use std::sync::Arc;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::sync_group::{SyncGroupRequest, SyncGroupResponse, request::Assignment},
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    super::super::{
        assignor::{
            Assignor, GroupTable, Strategy, TopicTable,
            custom::{CustomAssignor, MemberAssignment},
        },
        exchange::{assignment_user_data, decode_assignment, encode_assignment},
    },
    ClassicMember, Inherited, Leadership, MemberRequest, State, Step, Term, bad_response, has_moved,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
};

impl ClassicMember {
    /// Computes the assignment with the leader's topics, and sends it. A member without a known leader only observes its topics
    /// from then on. Does nothing unless the member waits for that.
    pub(in crate::group) fn assign(&mut self, now: Instant, topics: SortedMap<Arc<str>, TopicTable>) {
        if self.has_no_leader && matches!(self.state, State::Stable) {
            self.leads = Some(topics);
            return;
        }
        if !matches!(self.state, State::Assigning(_)) {
            return debug_assert!(false, "only a leader assigns");
        }
        let State::Assigning(leadership) = std::mem::replace(&mut self.state, State::WaitToJoin(now)) else {
            return;
        };
        let Leadership { assignor, members, is_skipped } = *leadership;
        self.leads = Some(topics.clone());
        if is_skipped {
            self.inherited = Inherited::CheckAt(now);
            return self.sync(assignor, Vec::new());
        }
        let table = GroupTable::new(members, topics.into_iter().collect());
        let assignments = match assignor.assign(&table) {
            Ok(assignments) => assignments,
            Err(error) => return self.step_down(now, error),
        };
        let mut encoded = Vec::with_capacity(assignments.len());
        for (member, assigned) in table.members().iter().zip(assignments) {
            match encode_assignment(&assigned.partitions, assigned.user_data) {
                Ok(assignment) => encoded.push(Assignment { member_id: member.id.clone(), assignment }),
                Err(error) => return self.fail(Error::new(ErrorKind::Bug, error.to_string())),
            }
        }
        self.sync(assignor, encoded);
    }

    pub(super) fn sync(&mut self, assignor: Strategy, assignments: Vec<Assignment>) {
        let request = SyncGroupRequest {
            group_id: self.settings.group_id.to_string(),
            generation_id: Generation::to_wire(self.generation),
            member_id: self.member_id.clone(),
            group_instance_id: self.settings.instance_id.clone(),
            protocol_type: Some(self.settings.protocol_type.clone()),
            protocol_name: Some(assignor.name().to_owned()),
            assignments,
        };
        self.state = State::Syncing(assignor);
        self.send(MemberRequest::Sync(request), self.rebalance_timeout());
    }

    /// Handles the response to SyncGroup, or the error instead of one. Returns true if the coordinator moved.
    pub(in crate::group) fn handle_sync(
        &mut self,
        now: Instant,
        term: Term,
        result: Result<SyncGroupResponse, Error>,
    ) -> bool {
        let expected = term == self.term && matches!(self.state, State::Syncing(_));
        let Some(response) = self.take_response(now, expected, result) else { return false };
        let code = response.error_code;
        match code {
            ErrorCode::NONE => self.handle_synced(now, &response),
            ErrorCode::REBALANCE_IN_PROGRESS => self.wait_to_join(now, "another rebalance began"),
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.member_id.clear();
                self.lose_after_backoff(now, code, "SyncGroup");
            }
            ErrorCode::ILLEGAL_GENERATION => self.lose_after_backoff(now, code, "SyncGroup"),
            ErrorCode::FENCED_INSTANCE_ID => self.fence("SyncGroup"),
            code => self.retry_join(now, Error::broker(code, None).with_api("SyncGroup")),
        }
        has_moved(code)
    }

    fn handle_synced(&mut self, now: Instant, response: &SyncGroupResponse) {
        let assigned = match decode_assignment(&response.assignment) {
            Ok(assigned) => assigned,
            Err(error) => return self.retry_join(now, error),
        };
        let (known, unknown): (SortedSet<_>, SortedSet<_>) =
            assigned.into_iter().partition(|key| self.topics.contains(&key.topic));
        self.begin_session(now);
        self.backoff.reset();
        self.reported = None;
        let used = std::mem::replace(&mut self.state, State::Stable);
        if let State::Syncing(Strategy::Custom(assignor)) = used {
            self.pass_assignment_on(&assignor, &known, response);
        }
        if let Some(key) = unknown.first().filter(|_| !self.must_rejoin) {
            let detail = format!(
                "the group's leader assigned {} partitions of topics that this consumer does not subscribe to, such as \
                 {key}; they are not consumed",
                unknown.len()
            );
            self.report(bad_response("SyncGroup", detail));
        }
        self.is_assigned = true;
        if self.settings.assignors.contains(&Strategy::BuiltIn(Assignor::Sticky)) {
            self.last_assigned = (known.clone(), self.generation);
        }
        self.steps.push_back(Step::Assign(known));
        if self.must_rejoin {
            let reason = std::mem::take(&mut self.reason);
            self.begin_rebalance(now, &reason);
        }
    }

    /// Passes the assignment on to the application's assignor. Its failure does not change the assignment.
    fn pass_assignment_on(
        &mut self,
        assignor: &CustomAssignor,
        known: &SortedSet<TopicPartition>,
        response: &SyncGroupResponse,
    ) {
        let assignment = MemberAssignment {
            partitions: known.iter().cloned().collect(),
            user_data: assignment_user_data(&response.assignment),
        };
        if let Err(error) = assignor.on_assignment(&assignment, Generation::to_wire(self.generation)) {
            self.report(error);
        }
    }
}
