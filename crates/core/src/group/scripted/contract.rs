//! The rebalance contract: the application is asked, and answers.

use super::*;
use crate::{
    contract::part::SnapshotTime,
    fetch::{partition::StoredOffset, position::Offset},
    group::{
        GroupProtocol,
        departure::GroupMembershipOperation,
        rebalance::RebalanceAnswer,
        shared::{
            Answers, GroupShared, GroupSink, GroupView, RebalanceEvent, RebalanceKind, RebalanceProtocol,
        },
    },
    stats::{Purpose, Statistics},
    sync::Mutex,
};

/// An application that answers rebalances.
#[derive(Debug)]
struct Application {
    answers: Answers,
    notes: Mutex<Vec<String>>,
    last: Mutex<Option<RebalanceEvent>>,
}

impl GroupSink for Application {
    fn answers(&self) -> Answers {
        self.answers
    }

    fn rebalance(&self, event: RebalanceEvent) {
        let kind = match event.kind {
            RebalanceKind::Assign => "assign",
            RebalanceKind::Revoke => "revoke",
            RebalanceKind::Lost => "lost",
        };
        let numbers: Vec<i32> = event.partitions.iter().map(|key| key.partition).collect();
        self.notes.lock().push(format!("{kind} {numbers:?}"));
        *self.last.lock() = Some(event);
    }

    fn committed(&self, offsets: &[GroupOffset], outcome: &CommitResult) {
        let offsets: Vec<_> = offsets.iter().map(|offset| (offset.partition, offset.offset)).collect();
        self.notes.lock().push(format!("committed {offsets:?} {}", outcome.is_ok()));
    }

    fn error(&self, error: Error) {
        self.notes.lock().push(format!("error {:?}", error.kind()));
    }

    fn poll_overdue(&self, since: Duration, _limit: Duration) {
        self.notes.lock().push(format!("overdue {}", since.as_secs()));
    }
}

impl Application {
    fn new(answers: Answers) -> Arc<Self> {
        Arc::new(Self { answers, notes: Mutex::default(), last: Mutex::default() })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock())
    }
}

impl Script {
    fn asked(assignor: Assignor) -> (Self, Arc<Application>) {
        let application = Application::new(Answers::Application);
        let script = Self::with_application(assignor, &application);
        (script, application)
    }

    /// A member of generation 1 that is offered the partitions t 0 and t 1.
    fn with_application(assignor: Assignor, application: &Arc<Application>) -> Self {
        let mut script = Self::with(&[("t", 4)], vec![assignor.into()]);
        script.group.settings.shared.set_sink(Arc::clone(application) as _);
        script.join("other", &[]);
        script.sync(&[("t", 0), ("t", 1)]);
        script
    }

    /// The application assigns partitions as the last event says, or gives them up.
    fn answer_last(&mut self, application: &Application) {
        let event = application.last.lock().take().expect("an event");
        let number = event.number;
        self.command(GroupCommand::Answer(RebalanceAnswer::Accepted(number, Vec::new())));
    }

    fn command(&mut self, command: GroupCommand) {
        self.group.handle_command(self.now, command);
        self.settle();
    }

    /// The application calls the function that the C library maps to `RebalanceAnswer::Changed`.
    fn unassign_all(&mut self) {
        let all = self.shared.assignment().into_iter().collect();
        let offsets = self.shared.offsets_to_commit(&all);
        let _stopped = self.shared.assign(&[]);
        self.command(GroupCommand::Answer(RebalanceAnswer::Changed(offsets)));
    }

    fn is_handed_out(&self, partition: i32) -> bool {
        !self.shared.partition("t", partition).expect("it is assigned").is_paused()
    }

    fn commit_succeeds(&mut self) -> Vec<(i32, i64)> {
        let (offsets, done) = self.commits.pop().expect("a commit");
        done.complete(Ok(vec![Ok(()); offsets.len()]));
        self.settle();
        offsets.iter().map(|offset| (offset.partition, offset.offset)).collect()
    }

    fn poll(&mut self) {
        if self.group.settings.shared.note_poll(self.now) {
            self.command(GroupCommand::Polled);
        }
    }
}

#[test]
fn nothing_is_fetched_until_the_application_responds() {
    let (mut script, application) = Script::asked(Assignor::Range);
    assert_eq!(application.take(), ["assign [0, 1]"]);
    assert!(!script.take_fetch().iter().any(|entry| entry.starts_with("start")));
    assert_eq!(script.group.rebalance.state_name(), Some("wait-assign-call"));
    script.answer_last(&application);
    assert_eq!(script.take_fetch(), ["start [t [0], t [1]]"]);
    assert_eq!(script.group.rebalance.state_name(), None);
}

#[test]
fn member_joins_after_the_response_and_heartbeats_continue() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    script.consume(1, 7);
    application.take();
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(application.take(), ["revoke [0, 1]"]);
    assert!(!script.is_handed_out(0), "records are held until the answer");
    for _ in 0..20 {
        script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert!(script.sent().is_empty(), "a minute later it still waits");
    script.unassign_all();
    assert_eq!(script.commit_succeeds(), [(1, 7)]);
    assert_eq!(script.sent(), ["JoinGroup"]);
    assert_eq!(application.take(), ["committed [(1, 7)] true"]);
}

#[test]
fn partitions_that_the_application_keeps_are_taken_from_it() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.command(GroupCommand::Answer(RebalanceAnswer::Changed(Vec::new())));
    assert!(script.shared.assignment().is_empty());
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn revocation_becomes_a_loss_when_the_membership_is_lost() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    script.consume(0, 3);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    application.take();
    script.beat(ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(script.group.settings.shared.is_assignment_lost());
    assert!(application.take().is_empty(), "the same event has to be answered");
    script.unassign_all();
    assert!(script.commits.is_empty());
    assert!(!script.group.settings.shared.is_assignment_lost());
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn membership_lost_during_a_revocation_takes_nothing_over() {
    let (mut script, application) = Script::asked(Assignor::CooperativeSticky);
    script.answer_last(&application);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.join("other", &[]);
    application.take();
    script.sync(&[("t", 0), ("t", 2)]);
    script.beat(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(application.take(), ["revoke [1]"]);
    script.answer_last(&application);
    assert_eq!(application.take(), ["lost [0]"], "neither is partition 2 assigned");
    script.answer_last(&application);
    assert!(application.take().is_empty() && script.shared.assignment().is_empty());
    assert_eq!(script.joining().owned, keys(&[]));
}

#[test]
fn lost_partitions_are_reported_as_lost_and_held() {
    for assignor in [Assignor::Range, Assignor::CooperativeSticky] {
        let (mut script, application) = Script::asked(assignor);
        script.answer_last(&application);
        script.consume(0, 3);
        application.take();
        script.beat(ErrorCode::ILLEGAL_GENERATION);
        assert_eq!(application.take(), ["lost [0, 1]"]);
        assert!(script.group.settings.shared.is_assignment_lost());
        assert!(!script.is_handed_out(0));
        script.answer_last(&application);
        assert!(script.commits.is_empty());
        assert_eq!(script.sent(), ["JoinGroup"]);
        assert!(!script.group.settings.shared.is_assignment_lost());
    }
}

#[test]
fn empty_assignments_come_in_pairs_in_eager_groups_only() {
    for (assignor, expected) in
        [(Assignor::Range, vec!["assign []", "revoke []"]), (Assignor::CooperativeSticky, vec!["assign []"])]
    {
        let application = Application::new(Answers::Application);
        let mut script = Script::with(&[("t", 4)], vec![assignor.into()]);
        script.group.settings.shared.set_sink(Arc::clone(&application) as _);
        script.join("other", &[]);
        script.sync(&[]);
        script.answer_last(&application);
        script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!(application.take(), expected);
    }
}

#[test]
fn cooperative_member_is_asked_for_the_difference() {
    let (mut script, application) = Script::asked(Assignor::CooperativeSticky);
    script.answer_last(&application);
    script.consume(1, 5);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.join("other", &[]);
    application.take();
    script.sync(&[("t", 0), ("t", 2)]);
    assert_eq!(application.take(), ["revoke [1]"]);
    assert!(!script.is_handed_out(0), "all partitions are held");
    script.answer_last(&application);
    assert_eq!(script.commit_succeeds(), [(1, 5)]);
    assert_eq!(application.take(), ["committed [(1, 5)] true", "assign [2]"]);
    assert!(script.sent().is_empty());
    script.answer_last(&application);
    assert!(script.is_handed_out(0));
    assert_eq!(script.joining().owned, keys(&[0, 2]));
}

#[test]
fn hold_of_a_rebalance_and_the_pause_of_the_application_are_independent() {
    let (mut script, application) = Script::asked(Assignor::CooperativeSticky);
    script.answer_last(&application);
    script.shared.pause(&[TopicPartition::new("t", 0)]).expect("it is assigned");
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.join("other", &[]);
    script.sync(&[("t", 0), ("t", 1), ("t", 2)]);
    script.shared.resume(&[TopicPartition::new("t", 0)]).expect("it is assigned");
    assert!(!script.is_handed_out(0), "the rebalance still holds it");
    script.shared.pause(&[TopicPartition::new("t", 0)]).expect("it is assigned");
    script.answer_last(&application);
    assert!(!script.is_handed_out(0), "the application paused it");
    assert!(script.is_handed_out(1));
}

#[test]
fn library_responds_when_the_deadline_passes() {
    let application = Application::new(Answers::ApplicationWithDeadline);
    let mut script = Script::with_application(Assignor::Range, &application);
    script.take_fetch();
    let deadline = application.last.lock().as_ref().and_then(|event| event.deadline).expect("a deadline");
    while script.now < deadline {
        script.poll();
        script.beat(ErrorCode::NONE);
    }
    assert_eq!(script.take_fetch(), ["start [t [0], t [1]]"]);
    let late = RebalanceAnswer::Accepted(1, vec![(TopicPartition::new("t", 0), Offset::At(5))]);
    script.command(GroupCommand::Answer(late));
    assert!(script.take_fetch().is_empty(), "a late answer changes nothing");
}

#[test]
fn closing_asks_before_the_member_leaves() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    application.take();
    let (done, waiting) = completion();
    script.command(GroupCommand::Close(GroupMembershipOperation::Default, done));
    assert_eq!(application.take(), ["revoke [0, 1]"]);
    assert!(script.sent().is_empty());
    script.unassign_all();
    assert_eq!(script.sent(), ["LeaveGroup"]);
    assert_eq!(waiting.try_take(), None);
}

#[test]
fn member_of_the_consumer_protocol_has_its_id_from_the_start() {
    let script = Script::subscribed(GroupProtocol::Consumer, &["t"]);
    let view = script.group.settings.shared.view();
    assert_eq!((&*view.member_id, view.generation), (script.group.member.member_id(), None));
    assert!(!view.member_id.is_empty());
}

#[test]
fn lost_membership_is_kept_for_offsets_until_the_consumer_unsubscribes() {
    let shared = GroupShared::default();
    let show = |id: &str, generation, protocol| {
        let (member_id, generation) = (id.to_owned(), Generation::from_wire(generation));
        shared.set_view(GroupView { member_id, generation, protocol, last: None });
        let view = shared.view();
        let (id, generation) = view.for_offsets();
        (id.to_owned(), generation.map(Generation::get))
    };
    let eager = Some(RebalanceProtocol::Eager);
    let identity = |id: &str, generation| (id.to_owned(), Some(generation));
    assert_eq!(show("", -1, eager), (String::new(), None));
    assert_eq!(show("a", 4, eager), identity("a", 4));
    assert_eq!(show("", -1, eager), identity("a", 4), "the coordinator refuses it");
    assert_eq!(show("", -1, eager), identity("a", 4));
    assert_eq!(show("b", 1, eager), identity("b", 1));
    assert_eq!(show("", -1, None), (String::new(), None), "a consumer without a group has none");
}

#[test]
fn statistics_count_assignments_and_revocations() {
    let (mut script, application) = Script::asked(Assignor::Range);
    let figures = |script: &mut Script| {
        let mut statistics = Statistics::default();
        let at = SnapshotTime { now: script.now, began: START, purpose: Purpose::Query };
        script.group.add_statistics(at, &mut statistics);
        let group = statistics.group.expect("there is a group");
        (group.join_state, group.rebalance_cnt, group.assignment_size)
    };
    assert_eq!(figures(&mut script), ("wait-assign-call", 1, 2));
    script.answer_last(&application);
    assert_eq!(figures(&mut script), ("steady", 1, 2));
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(figures(&mut script), ("wait-unassign-call", 2, 0));
    script.unassign_all();
    assert_eq!(figures(&mut script), ("wait-join", 2, 0));
    let (done, _waiting) = completion();
    script.command(GroupCommand::Unsubscribe(done));
    let mut statistics = Statistics::default();
    let at = SnapshotTime { now: script.now, began: START, purpose: Purpose::Query };
    script.group.add_statistics(at, &mut statistics);
    assert_eq!(statistics.group.expect("there is a group").rebalance_reason, "the consumer unsubscribed");
}

#[test]
fn fatal_error_unassigns_without_asking() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    application.take();
    script.beat(ErrorCode::FENCED_INSTANCE_ID);
    assert!(application.take().is_empty());
    assert!(script.shared.assignment().is_empty());
    let (done, waiting) = completion();
    script.command(GroupCommand::Close(GroupMembershipOperation::Default, done));
    assert_eq!(waiting.try_take(), Some(()));
}

#[test]
fn member_leaves_before_the_loss_when_the_application_does_not_poll() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    application.take();
    script.poll();
    let polled = script.now;
    while script.now < polled + Duration::from_secs(296) {
        script.beat(ErrorCode::NONE);
    }
    let notes = application.take();
    let warnings: Vec<_> = notes.iter().filter(|note| note.starts_with("overdue")).collect();
    assert_eq!(warnings, ["overdue 150", "overdue 240"]);
    script.pass(Duration::from_secs(8));
    script.requests.retain(|(.., request)| request.api != ApiKey::Heartbeat);
    let notes = application.take();
    assert_eq!(notes, ["error MaxPollExceeded", "lost [0, 1]"]);
    assert_eq!(script.sent(), ["LeaveGroup"]);
    script.take(ApiKey::LeaveGroup);
    script.answer_last(&application);
    script.pass(Duration::from_secs(600));
    assert!(script.sent().is_empty(), "it does not join before the application polls");
    assert!(application.take().is_empty());
    script.poll();
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn blocked_poll_counts_as_polling() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    application.take();
    script.group.settings.shared.begin_blocking();
    for _ in 0..300 {
        script.beat(ErrorCode::NONE);
    }
    assert!(application.take().is_empty(), "15 minutes in one poll");
    assert!(!script.group.settings.shared.end_blocking(script.now));
}

/// Passes time with heartbeats that succeed.
fn pass_with_heartbeats(script: &mut Script, heartbeats: u32) {
    (0..heartbeats).for_each(|_| script.beat(ErrorCode::NONE));
}

#[test]
fn automatic_commit_waits_for_the_outcome_of_the_one_before() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    application.take();
    script.consume(0, 5);
    pass_with_heartbeats(&mut script, 2);
    assert_eq!(script.commits.len(), 1);
    script.consume(0, 6);
    pass_with_heartbeats(&mut script, 4);
    assert_eq!(script.commits.len(), 1, "two intervals later");
    assert_eq!(script.commit_succeeds(), [(0, 5)]);
    pass_with_heartbeats(&mut script, 2);
    assert_eq!(script.commit_succeeds(), [(0, 6)]);
    assert_eq!(application.take(), ["committed [(0, 5)] true", "committed [(0, 6)] true"]);
}

/// The answer to a revocation commits the offsets, and no other commit may be on its way then.
#[test]
fn nothing_is_committed_automatically_while_the_application_is_asked() {
    let (mut script, application) = Script::asked(Assignor::CooperativeSticky);
    script.answer_last(&application);
    script.consume(0, 3);
    script.consume(1, 5);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.join("other", &[]);
    script.sync(&[("t", 0)]);
    application.take();
    assert_eq!(script.group.rebalance.state_name(), Some("wait-unassign-call"));
    pass_with_heartbeats(&mut script, 5);
    assert!(script.commits.is_empty(), "three intervals later");
    script.answer_last(&application);
    assert_eq!(script.commit_succeeds(), [(1, 5)]);
    assert_eq!(application.take(), ["committed [(1, 5)] true", "assign []"]);
    script.answer_last(&application);
}

#[test]
fn stored_offsets_are_committed_and_die_with_the_assignment() {
    let (mut script, application) = Script::asked(Assignor::Range);
    script.answer_last(&application);
    script.consume(0, 9);
    let stored = StoredOffset { offset: 4, leader_epoch: None, metadata: "m".into() };
    script.shared.store_offset("t", 0, stored.clone(), None).expect("it is assigned");
    let refused = script.shared.store_offset("t", 3, stored, None).expect_err("it is not assigned");
    assert_eq!(refused.kind(), ErrorKind::State);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.unassign_all();
    assert_eq!(script.commit_succeeds(), [(0, 4)]);
    script.join("other", &[]);
    script.sync(&[("t", 0)]);
    script.answer_last(&application);
    assert_eq!(script.shared.all_offsets_to_commit(), []);
}

#[test]
fn first_join_that_gets_no_response_ends_with_the_session_timeout() {
    let mut script = Script::new(&[("t", 1)]);
    let (owner, request) = script.take(ApiKey::JoinGroup);
    assert_eq!(request.timeout, Duration::from_secs(45));
    let required = JoinGroupResponse {
        error_code: ErrorCode::MEMBER_ID_REQUIRED,
        member_id: "m".into(),
        ..Default::default()
    };
    let response = as_response(script.now, ApiKey::JoinGroup, 9, &required);
    script.group.handle_response(script.now, owner, Ok(response));
    script.settle();
    assert_eq!(script.take(ApiKey::JoinGroup).1.timeout, Duration::from_secs(305));
}
