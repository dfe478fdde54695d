//! JoinGroup: the request with the member's subscription, and the generation in the response.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::join_group::{JoinGroupRequest, JoinGroupResponse, request::Protocol},
    primitive::EncodeError,
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::SortedSet;

use super::{
    super::super::{
        assignor::{Assignor, Strategy},
        exchange::{Subscription, bound_topics, last_assignment_data, sticky_user_data},
    },
    ClassicMember, Inherited, Leadership, MemberRequest, State, Term, Unanswered, bad_response, has_moved,
    is_final, millis,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
};

impl ClassicMember {
    /// Sends the subscription, which names the partitions that the member owns.
    pub(super) fn join(&mut self, now: Instant, owned: &SortedSet<TopicPartition>) {
        let before = self.term;
        self.term += 1;
        self.state = State::Joining;
        self.must_rejoin = false;
        if self.generation.is_some() {
            // The response to a heartbeat in flight will be ignored.
            self.heartbeat.next.get_or_insert(now + self.settings.heartbeat_interval);
        }
        let protocols = self.settings.assignors.iter().map(|assignor| {
            let subscription = self.subscription(assignor, owned)?;
            let metadata = subscription
                .encode()
                .map_err(|error: EncodeError| Error::new(ErrorKind::InvalidArgument, error.to_string()))?;
            Ok(Protocol { name: assignor.name().to_owned(), metadata })
        });
        let protocols = match protocols.collect::<Result<_, Error>>() {
            Ok(protocols) => protocols,
            Err(error) if error.kind() == ErrorKind::AssignorFailed => return self.step_down(now, error),
            Err(error) => return self.fail(error),
        };
        let request = JoinGroupRequest {
            group_id: self.settings.group_id.to_string(),
            session_timeout_ms: millis(self.settings.session_timeout),
            rebalance_timeout_ms: millis(self.settings.max_poll_interval),
            member_id: self.member_id.clone(),
            group_instance_id: self.settings.instance_id.clone(),
            protocol_type: self.settings.protocol_type.clone(),
            protocols,
            reason: Some(self.reason.clone()),
        };
        // The coordinator responds at once to the first request of a dynamic member, with a member ID. A longer timeout
        // would only delay the next attempt on a connection without a response.
        let is_first = self.member_id.is_empty() && self.settings.instance_id.is_none();
        let timeout = self.rebalance_timeout();
        let timeout = if is_first { timeout.min(self.settings.session_timeout) } else { timeout };
        self.unanswered = Some(Unanswered { term: self.term, before, until: None });
        self.heartbeat.was_refused = false;
        self.send(MemberRequest::Join(request), timeout);
    }

    /// Returns the subscription that the leader gets if the group chooses this assignor. Error: the assignor is the
    /// application's, and it failed.
    fn subscription(
        &self,
        assignor: &Strategy,
        owned: &SortedSet<TopicPartition>,
    ) -> Result<Subscription, Error> {
        let generation = self.generation.filter(|_| !owned.is_empty());
        let user_data = match assignor {
            Strategy::BuiltIn(Assignor::Range | Assignor::RoundRobin) => None,
            Strategy::BuiltIn(Assignor::Sticky) => {
                last_assignment_data(&self.last_assigned.0, self.last_assigned.1)
            }
            Strategy::BuiltIn(Assignor::CooperativeSticky) => Some(sticky_user_data(generation)),
            Strategy::Custom(assignor) => assignor.user_data(&self.topics.iter().cloned().collect())?,
        };
        Ok(Subscription {
            topics: self.topics.clone(),
            owned: owned.clone(),
            generation,
            rack: self.settings.rack.clone(),
            user_data,
            ignored_topics: 0,
        })
    }

    /// Handles the response to JoinGroup, or the error instead of one. Returns true if the coordinator moved.
    pub(in crate::group) fn handle_join(
        &mut self,
        now: Instant,
        term: Term,
        result: Result<JoinGroupResponse, Error>,
    ) -> bool {
        let answered = self.unanswered.take_if(|unanswered| unanswered.term == term);
        let is_abandoned = answered.is_some_and(|answered| answered.until.is_some());
        let is_unknown =
            result.as_ref().is_ok_and(|response| response.error_code == ErrorCode::UNKNOWN_MEMBER_ID);
        if is_abandoned && is_unknown {
            self.member_id.clear();
        }
        let expected = term == self.term && matches!(self.state, State::Joining);
        let Some(response) = self.take_response(now, expected, result) else { return false };
        let code = response.error_code;
        match code {
            ErrorCode::NONE => self.handle_joined(now, response),
            ErrorCode::MEMBER_ID_REQUIRED if !response.member_id.is_empty() && self.required_ids < 2 => {
                self.required_ids += 1;
                self.member_id = response.member_id;
                self.state = State::WaitToJoin(now);
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.member_id.clear();
                self.lose_after_backoff(now, code, "JoinGroup");
            }
            ErrorCode::ILLEGAL_GENERATION => self.lose_after_backoff(now, code, "JoinGroup"),
            ErrorCode::FENCED_INSTANCE_ID => self.fence("JoinGroup"),
            code => self.retry_join(now, Error::broker(code, None).with_api("JoinGroup")),
        }
        has_moved(code)
    }

    fn handle_joined(&mut self, now: Instant, response: JoinGroupResponse) {
        let generation = Generation::from_wire(response.generation_id);
        let goes_back = self.member_id == response.member_id && generation < self.generation;
        let named = response.protocol_name.as_deref().unwrap_or_default();
        let assignor = self.settings.assignors.iter().find(|assignor| assignor.name() == named).cloned();
        let (Some(generation), Some(assignor)) = (generation, assignor) else {
            let generation = response.generation_id;
            let detail = format!(
                "the coordinator chose the assignor \"{named}\" and generation {generation}, of which this member offers \
                 or understands none; check that all members set the same partition.assignment.strategy"
            );
            return self.retry_join(now, bad_response("JoinGroup", detail));
        };
        if response.member_id.is_empty() || goes_back {
            let known = Generation::to_wire(self.generation);
            let detail = format!(
                "the coordinator returned member ID \"{}\" with generation {generation} after generation {known}; joining \
                 the group as a new member",
                response.member_id
            );
            self.report(bad_response("JoinGroup", detail));
            self.member_id.clear();
            return self.lose_after_backoff(now, ErrorCode::ILLEGAL_GENERATION, "JoinGroup");
        }
        self.term += 1;
        self.required_ids = 0;
        self.member_id = response.member_id;
        self.generation = Some(generation);
        self.has_no_leader = response.leader.is_empty();
        self.leads = None;
        self.inherited = Inherited::None;
        self.begin_session(now);
        if response.leader != self.member_id {
            return self.sync(assignor, Vec::new());
        }
        let mut members = Vec::with_capacity(response.members.len());
        for member in response.members {
            match Subscription::decode(&member.metadata) {
                Ok(subscription) => {
                    let (id, instance) = (member.member_id, member.group_instance_id);
                    if subscription.ignored_topics > 0 {
                        let detail = format!(
                            "{} topics of member \"{id}\" are ignored, because Kafka does not allow their names, or \
                             because there are too many; the group's other members are not affected",
                            subscription.ignored_topics
                        );
                        self.report(bad_response("JoinGroup", detail));
                    }
                    members.push(subscription.into_member(assignor.built_in(), id, instance));
                }
                Err(error) => {
                    let detail = format!(
                        "the subscription of member \"{}\" can't be read, so that it is assigned no partitions: {error}",
                        member.member_id
                    );
                    self.report(bad_response("JoinGroup", detail));
                }
            }
        }
        let removed = bound_topics(&mut members, &self.topics);
        if removed > 0 {
            let detail = format!(
                "{removed} topics of the members with the most topics are ignored, because the group subscribes to too many; \
                 the group's other members are not affected"
            );
            self.report(bad_response("JoinGroup", detail));
        }
        let is_skipped = response.skip_assignment;
        self.state = State::Assigning(Box::new(Leadership { assignor, members, is_skipped }));
    }

    /// Joins again after a back-off. Errors that do not resolve by themselves are reported to the application.
    pub(super) fn retry_join(&mut self, now: Instant, error: Error) {
        let wait = self.backoff.next(&mut self.rng);
        if is_final(&error) {
            return self.fail(error);
        }
        if !error.is_retriable() {
            self.report(error.with_next_attempt(wait));
        }
        self.required_ids = 0;
        self.state = State::WaitToJoin(now + wait);
    }
}
