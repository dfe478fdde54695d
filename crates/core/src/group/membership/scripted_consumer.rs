//! The member of the consumer protocol against a scripted coordinator.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::consumer_group_heartbeat::{
        ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
        response::{Assignment, TopicPartition as Assigned},
    },
    uuid::Uuid,
    vocabulary::TopicPartition,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    super::settings::{GroupProtocol, GroupSettings},
    classic::{Step, Term},
    consumer_protocol::ConsumerMember,
    requests::MemberRequest,
};
use crate::{
    contract::metadata::{Metadata, TopicMetadata},
    error::{Error, ErrorKind},
    group::departure::GroupMembershipOperation,
    machine::Instant,
    rng::Rng,
};

mod leaving;
mod owned;
mod polls;

const START: Instant = Instant::from_nanos(1_000_000_000);
const INTERVAL: Duration = Duration::from_secs(5);

/// A member, and the requests without a response.
struct Script {
    now: Instant,
    member: ConsumerMember,
    owned: SortedSet<TopicPartition>,
    metadata: Metadata,
    /// True while the rebalance waits for a commit or for the application.
    is_busy: bool,
    /// True if the application takes time for each assignment.
    is_slow: bool,
    requests: Vec<(Term, MemberRequest)>,
    /// The other steps, as short texts.
    steps: Vec<String>,
}

fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// Metadata of topics by name, each with its ID.
fn metadata(topics: &[(&str, u8)]) -> Metadata {
    let topic = |number| TopicMetadata { id: id(number), ..TopicMetadata::default() };
    let topics = topics.iter().map(|(name, number)| (Arc::from(*name), topic(*number)));
    Metadata { topics: topics.collect(), ..Metadata::default() }
}

fn names(names: &[&str]) -> SortedSet<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn keys(keys: &[(&str, i32)]) -> SortedSet<TopicPartition> {
    keys.iter().map(|key| TopicPartition::from(*key)).collect()
}

/// A response with an epoch and, if given, the partitions by topic number.
fn accepted(epoch: i32, assigned: Option<&[(u8, &[i32])]>) -> ConsumerGroupHeartbeatResponse {
    let assignment = assigned.map(|topics| Assignment {
        topic_partitions: topics
            .iter()
            .map(|(topic, numbers)| Assigned { topic_id: id(*topic), partitions: numbers.to_vec() })
            .collect(),
    });
    ConsumerGroupHeartbeatResponse {
        member_epoch: epoch,
        heartbeat_interval_ms: 5_000,
        assignment,
        ..Default::default()
    }
}

fn refused(error_code: ErrorCode) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse { error_code, ..Default::default() }
}

impl Script {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut GroupSettings)) -> Self {
        let mut settings =
            GroupSettings { group_protocol: GroupProtocol::Consumer, ..GroupSettings::with_defaults("g") };
        change(&mut settings);
        let mut script = Self {
            now: START,
            member: ConsumerMember::new(Arc::new(settings), Rng::from_seed(1)),
            owned: SortedSet::new(),
            metadata: metadata(&[("t", 1)]),
            is_busy: false,
            is_slow: false,
            requests: Vec::new(),
            steps: Vec::new(),
        };
        script.member.subscribe(START, names(&["t"]), None);
        script.settle();
        script
    }

    fn of_static_member() -> Self {
        Self::with(|settings| settings.instance_id = Some("i".into()))
    }

    /// A member in epoch 1 that owns t 0 and t 1, and has acknowledged them.
    fn stable() -> Self {
        Self::new().joined()
    }

    fn joined(mut self) -> Self {
        self.answer(accepted(1, Some(&[(1, &[0, 1])])));
        assert_eq!(self.take_steps(), ["assign [t [0], t [1]]"]);
        self.answer(accepted(1, None));
        assert!(self.requests.is_empty());
        self
    }

    /// Carries out the member's steps, as the rebalance does.
    fn settle(&mut self) {
        self.member.handle_metadata(&self.metadata);
        for _ in 0..50 {
            self.member.advance(self.now, &self.owned, !self.is_busy);
            let Some(step) = self.member.poll_step() else { return };
            match step {
                Step::Send { term, request, .. } => self.requests.push((term, request)),
                Step::Assign(partitions) => {
                    self.steps.push(format!("assign {:?}", Vec::from_iter(&partitions)));
                    self.owned = partitions;
                    self.is_busy |= self.is_slow;
                }
                Step::Lost => {
                    self.steps.push("lost".to_owned());
                    self.owned.clear();
                    if !self.is_slow {
                        self.member.handle_revoked(self.now);
                    }
                }
                Step::Error(error) => self.steps.push(format!("error {error}")),
                Step::Fatal(error) => self.steps.push(format!("fatal {error}")),
                other => self.steps.push(format!("{other:?}").to_lowercase()),
            }
        }
        panic!("the member does not settle: {:?}", self.steps);
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = 0;
        while let Some(next) = self.member.poll_timeout(!self.is_busy).filter(|next| *next <= until) {
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < 10, "it wants to run again and again without time passing");
            self.now = self.now.max(next);
            self.member.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    fn take_steps(&mut self) -> Vec<String> {
        std::mem::take(&mut self.steps)
    }

    fn take_heartbeat(&mut self) -> (Term, ConsumerGroupHeartbeatRequest) {
        assert!(!self.requests.is_empty(), "no heartbeat");
        match self.requests.remove(0) {
            (term, MemberRequest::ConsumerHeartbeat { request, .. }) => (term, *request),
            other => panic!("{other:?}"),
        }
    }

    /// Responds to the heartbeat in flight, and returns it.
    fn answer(&mut self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatRequest {
        let (term, request) = self.take_heartbeat();
        self.member.handle_heartbeat(self.now, term, Ok((self.now, response)));
        self.settle();
        request
    }

    fn fail(&mut self, kind: ErrorKind) -> ConsumerGroupHeartbeatRequest {
        let (term, request) = self.take_heartbeat();
        self.member.handle_heartbeat(self.now, term, Err(Error::new(kind, "")));
        self.settle();
        request
    }

    fn epoch(&self) -> Option<i32> {
        self.member.identity().map(|(_, epoch)| epoch.get())
    }
}

/// Returns the partitions that a heartbeat reports, by topic.
fn reported(request: &ConsumerGroupHeartbeatRequest) -> Option<SortedMap<Uuid, Vec<i32>>> {
    let topics = request.topic_partitions.as_ref()?;
    Some(topics.iter().map(|topic| (topic.topic_id, topic.partitions.clone())).collect())
}

fn is_full(request: &ConsumerGroupHeartbeatRequest) -> bool {
    request.rebalance_timeout_ms == 300_000
        && request.subscribed_topic_names.is_some()
        && request.topic_partitions.is_some()
}

#[test]
fn first_heartbeat_joins_with_everything_and_a_member_id_of_its_own() {
    let mut script = Script::with(|settings| {
        settings.rack = Some("r".into());
        settings.remote_assignor = Some("range".into());
    });
    let (_, request) = script.take_heartbeat();
    let expected = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: request.member_id.clone(),
        member_epoch: 0,
        instance_id: None,
        rack_id: Some("r".into()),
        rebalance_timeout_ms: 300_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        subscribed_topic_regex: None,
        server_assignor: Some("range".into()),
        topic_partitions: Some(Vec::new()),
    };
    assert_eq!(request, expected);
    assert!(Uuid::parse(&request.member_id).is_some_and(|id| !id.is_zero()), "{}", request.member_id);
}

#[test]
fn target_is_carried_out_and_acknowledged_at_once() {
    let mut script = Script::new();
    script.metadata = metadata(&[]);
    script.answer(accepted(1, Some(&[(1, &[0, 1])])));
    assert_eq!(script.take_steps(), Vec::<String>::new(), "the name of the topic is not known");
    assert!(matches!(&script.requests[..], [(_, MemberRequest::TopicNames(ids))] if *ids == [id(1)]));
    script.requests.clear();
    script.metadata = metadata(&[("t", 1)]);
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0], t [1]]"]);
    let request = script.answer(accepted(1, None));
    assert_eq!(reported(&request), Some([(id(1), vec![0, 1])].into()));
    assert_eq!(request.subscribed_topic_names, None, "it did not change");
    assert_eq!(script.epoch(), Some(1));
    script.pass(INTERVAL - Duration::from_millis(1));
    assert!(script.requests.is_empty(), "nothing to report");
    script.pass(Duration::from_millis(1));
    let request = script.answer(accepted(1, None));
    assert!(request.topic_partitions.is_none() && request.rebalance_timeout_ms == -1);
}

#[test]
fn member_without_partitions_at_first_reports_only_the_real_assignment() {
    let mut script = Script::new();
    script.answer(accepted(1, Some(&[])));
    assert_eq!(script.take_steps(), Vec::<String>::new());
    assert!(script.requests.is_empty(), "it was reported with the join");
    script.pass(INTERVAL);
    script.answer(accepted(2, Some(&[(1, &[0])])));
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
    script.answer(accepted(2, Some(&[])));
    assert_eq!(script.take_steps(), ["assign []"], "later it is a revocation");
}

#[test]
fn new_member_without_partitions_asks_for_them_several_times() {
    let mut script = Script::new();
    script.answer(accepted(1, Some(&[])));
    for wait in [250, 500, 1_000, 1_500, 1_750, 5_000, 5_000] {
        script.pass(Duration::from_millis(wait - 1));
        assert!(script.requests.is_empty(), "{wait} ms");
        script.pass(Duration::from_millis(1));
        script.answer(accepted(1, None));
    }
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.answer(accepted(2, Some(&[])));
    script.answer(accepted(2, None));
    script.pass(INTERVAL - Duration::from_millis(1));
    assert!(script.requests.is_empty(), "one that gave its partitions up is not new");
}

#[test]
fn partition_is_held_until_its_commit_is_done() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.is_busy = true;
    script.answer(accepted(1, Some(&[(1, &[0])])));
    script.is_busy = false;
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
    let (term, request) = script.take_heartbeat();
    assert_eq!(reported(&request), Some([(id(1), vec![0])].into()));

    // The commit of t 0 takes time, and a response is lost meanwhile.
    script.is_busy = true;
    script.member.handle_heartbeat(script.now, term, Ok((script.now, accepted(2, Some(&[])))));
    script.owned.clear();
    script.settle();
    assert_eq!(script.member.held().len(), 1);
    script.pass(INTERVAL);
    script.fail(ErrorKind::Disconnected);
    script.pass(Duration::from_secs(1));
    let (_, request) = script.take_heartbeat();
    assert_eq!(reported(&request), Some([(id(1), vec![0])].into()), "it is still held");
}

#[test]
fn heartbeat_after_a_lost_response_has_all_fields() {
    for kind in [ErrorKind::RequestTimedOut, ErrorKind::Disconnected] {
        let mut script = Script::stable();
        script.pass(INTERVAL);
        assert!(!is_full(&script.fail(kind)));
        script.pass(Duration::from_millis(150));
        let request = script.answer(accepted(1, Some(&[(1, &[0, 1])])));
        assert!(is_full(&request), "{request:?}");
        assert_eq!(reported(&request), Some([(id(1), vec![0, 1])].into()));
        assert!(script.take_steps().is_empty(), "the same target changes nothing");
        script.pass(INTERVAL);
        assert!(!is_full(&script.answer(accepted(1, None))));
    }
}

#[test]
fn member_keeps_its_partitions_without_a_coordinator() {
    let mut script = Script::stable();
    for _ in 0..60 {
        script.pass(INTERVAL);
        script.fail(ErrorKind::Disconnected);
    }
    assert_eq!(script.owned.len(), 2);
    assert_eq!(script.epoch(), Some(1));
    assert!(script.take_steps().is_empty());
}

#[test]
fn coordinator_that_moved_is_asked_at_once_and_then_backed_off_from() {
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut script = Script::stable();
        script.pass(INTERVAL);
        let (term, _) = script.take_heartbeat();
        assert!(script.member.handle_heartbeat(script.now, term, Ok((script.now, refused(code)))));
        script.settle();
        assert!(is_full(&script.answer(refused(code))), "at once");
        assert!(script.requests.is_empty(), "then after a back-off");
        script.pass(Duration::from_millis(500));
        assert_eq!(script.requests.len(), 1);
    }
}

#[test]
fn fenced_member_joins_at_once_with_the_same_id() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::GROUP_ID_NOT_FOUND]
    {
        let mut script = Script::stable();
        script.pass(INTERVAL);
        let before = script.answer(refused(code));
        assert_eq!(script.take_steps(), ["lost"], "{code}");
        assert_eq!(script.epoch(), None);
        let (_, request) = script.take_heartbeat();
        assert_eq!((request.member_epoch, &request.member_id), (0, &before.member_id), "{code}");
        assert_eq!(request.topic_partitions, Some(Vec::new()));
        assert!(is_full(&request));
    }
}

#[test]
fn member_that_is_refused_while_it_joins_takes_another_id_and_backs_off() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.answer(refused(ErrorCode::FENCED_MEMBER_EPOCH));
    let first = script.answer(refused(ErrorCode::FENCED_MEMBER_EPOCH));
    assert!(script.requests.is_empty(), "it backs off");
    script.pass(Duration::from_secs(1));
    let (_, second) = script.take_heartbeat();
    assert_ne!(first.member_id, second.member_id);
}

#[test]
fn static_member_releases_its_own_instance_id() {
    let mut script = Script::of_static_member();
    script.fail(ErrorKind::Disconnected);
    script.pass(Duration::from_secs(1));
    let joining = script.answer(refused(ErrorCode::UNRELEASED_INSTANCE_ID));
    let request = script.answer(ConsumerGroupHeartbeatResponse { member_epoch: -2, ..Default::default() });
    assert_eq!((request.member_epoch, &request.member_id), (-2, &joining.member_id));
    assert_eq!(request.instance_id.as_deref(), Some("i"));
    let (_, request) = script.take_heartbeat();
    assert_eq!(request.member_epoch, 0, "it joins at once");
    assert!(script.take_steps().is_empty(), "the application does not notice");
}

#[test]
fn instance_id_whose_session_ended_meanwhile_is_taken_again() {
    let mut script = Script::of_static_member();
    script.fail(ErrorKind::Disconnected);
    script.pass(Duration::from_secs(1));
    script.answer(refused(ErrorCode::UNRELEASED_INSTANCE_ID));
    assert_eq!(script.answer(refused(ErrorCode::UNKNOWN_MEMBER_ID)).member_epoch, -2);
    let (_, request) = script.take_heartbeat();
    assert_eq!(request.member_epoch, 0, "it joins at once");
    assert!(script.take_steps().is_empty(), "the application does not notice");
}

#[test]
fn instance_id_of_another_member_is_fatal_and_named() {
    let mut script = Script::of_static_member();
    script.answer(refused(ErrorCode::UNRELEASED_INSTANCE_ID));
    let steps = script.take_steps();
    assert!(steps.len() == 1 && steps[0].starts_with("fatal"), "{steps:?}");
    assert!(steps[0].contains("UNRELEASED_INSTANCE_ID") && steps[0].contains("\"i\""), "{steps:?}");
    script.pass(INTERVAL * 10);
    assert!(script.requests.is_empty(), "it does not try again");

    // The release is refused as well: the instance ID is another member's.
    let mut script = Script::of_static_member();
    script.fail(ErrorKind::RequestTimedOut);
    script.pass(Duration::from_secs(1));
    script.answer(refused(ErrorCode::UNRELEASED_INSTANCE_ID));
    script.answer(refused(ErrorCode::FENCED_INSTANCE_ID));
    assert!(script.take_steps()[0].starts_with("fatal"));
}

#[test]
fn permanent_errors_are_fatal() {
    for code in [
        ErrorCode::GROUP_ID_NOT_FOUND,
        ErrorCode::GROUP_MAX_SIZE_REACHED,
        ErrorCode::UNSUPPORTED_ASSIGNOR,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::UNSUPPORTED_VERSION,
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::INVALID_REGULAR_EXPRESSION,
        ErrorCode::FENCED_INSTANCE_ID,
    ] {
        let mut script = Script::new();
        script.answer(refused(code));
        let steps = script.take_steps();
        assert!(steps.len() == 1 && steps[0].starts_with("fatal"), "{code}: {steps:?}");
    }
    let mut script = Script::new();
    script.fail(ErrorKind::UnsupportedVersion);
    let steps = script.take_steps();
    assert!(steps[0].contains("group.protocol=classic"), "{steps:?}");
}

#[test]
fn loading_coordinator_is_asked_again_without_an_error() {
    let mut script = Script::new();
    for _ in 0..5 {
        script.answer(refused(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
        assert!(script.requests.is_empty(), "it backs off");
        script.pass(Duration::from_secs(2));
    }
    assert!(script.take_steps().is_empty());
}

#[test]
fn member_that_may_not_read_a_topic_stays_and_reports_it_once() {
    let mut script = Script::stable();
    for _ in 0..5 {
        script.pass(INTERVAL);
        script.answer(refused(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
        assert!(script.requests.is_empty(), "the next heartbeat follows after the interval");
    }
    let steps = script.take_steps();
    assert!(steps.len() == 1 && steps[0].contains("TOPIC_AUTHORIZATION_FAILED"), "{steps:?}");
    assert_eq!(script.owned.len(), 2);
}

#[test]
fn changed_subscription_is_reported_at_once_and_alone() {
    let mut script = Script::stable();
    script.member.subscribe(script.now, names(&["u"]), None);
    script.settle();
    assert_eq!(script.take_steps(), ["assign []"], "the partitions of t are given up");
    let request = script.answer(accepted(1, None));
    assert_eq!(request.subscribed_topic_names, Some(vec!["u".into()]));
    assert_eq!(reported(&request), Some(SortedMap::new()));
    assert_eq!(request.rebalance_timeout_ms, -1);
}

#[test]
fn subscription_that_changes_while_a_heartbeat_is_in_flight_follows_it() {
    let mut script = Script::new();
    script.member.subscribe(script.now, names(&["t", "u"]), Some("v.*".into()));
    script.settle();
    assert_eq!(script.requests.len(), 1, "one heartbeat at a time");
    script.answer(accepted(1, Some(&[])));
    let (_, request) = script.take_heartbeat();
    assert_eq!(request.subscribed_topic_names, Some(vec!["t".into(), "u".into()]));
    assert_eq!(request.subscribed_topic_regex.as_deref(), Some("v.*"));
}

#[test]
fn removed_pattern_is_sent_as_an_empty_one() {
    let mut script = Script::new();
    script.member.subscribe(script.now, names(&["t"]), Some("v.*".into()));
    script.answer(accepted(1, Some(&[])));
    script.answer(accepted(2, None));
    script.member.subscribe(script.now, names(&["t"]), None);
    script.settle();
    assert_eq!(script.fail(ErrorKind::Disconnected).subscribed_topic_regex.as_deref(), Some(""));
    script.pass(Duration::from_secs(1));
    let (_, request) = script.take_heartbeat();
    assert_eq!(request.subscribed_topic_regex.as_deref(), Some(""), "the coordinator may have missed it");
}

#[test]
fn unknown_topic_id_is_asked_for_with_growing_waits() {
    let mut script = Script::new();
    script.answer(accepted(1, Some(&[(1, &[0]), (9, &[0])])));
    assert_eq!(script.take_steps(), ["assign [t [0]]"], "what is known is not delayed");
    let mut queries = 0;
    for _ in 0..300 {
        script.pass(Duration::from_millis(100));
        for (term, request) in std::mem::take(&mut script.requests) {
            match request {
                MemberRequest::TopicNames(ids) => {
                    queries += 1;
                    assert!(ids.contains(&id(9)), "{ids:?}");
                    script.member.handle_names(script.now, term, Ok(Vec::new()));
                }
                MemberRequest::ConsumerHeartbeat { .. } => {
                    let response = Ok((script.now, accepted(1, None)));
                    script.member.handle_heartbeat(script.now, term, response);
                }
                other => panic!("{other:?}"),
            }
            script.settle();
        }
    }
    assert!((20..40).contains(&queries), "{queries} queries in 30 seconds");
    script.member.subscribe(script.now, names(&["t", "u"]), None);
    script.pass(Duration::from_secs(2));
    let term = script
        .requests
        .iter()
        .find_map(|(term, request)| matches!(request, MemberRequest::TopicNames(_)).then_some(*term));
    script.member.handle_names(script.now, term.expect("a query"), Ok(vec![(id(9), "u".into())]));
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0], u [0]]"]);
}

#[test]
fn topic_that_was_never_subscribed_to_is_not_consumed() {
    let mut script = Script::stable();
    script.metadata = metadata(&[("t", 1), ("x", 7)]);
    script.pass(INTERVAL);
    script.answer(accepted(2, Some(&[(1, &[0, 1]), (7, &[0])])));
    assert_eq!(script.owned, keys(&[("t", 0), ("t", 1)]));
}

#[test]
fn recreated_topic_is_revoked_before_it_is_assigned() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.metadata = metadata(&[("t", 2)]);
    script.answer(accepted(2, Some(&[(2, &[0])])));
    assert_eq!(script.take_steps(), ["assign []", "assign [t [0]]"]);
    let request = script.requests.iter().find_map(|(_, request)| match request {
        MemberRequest::ConsumerHeartbeat { request, .. } => Some(request),
        _ => None,
    });
    assert_eq!(reported(request.expect("a heartbeat")), Some([(id(2), vec![0])].into()));
}

#[test]
fn target_that_arrives_during_a_rebalance_replaces_the_next_one() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.is_busy = true;
    script.answer(accepted(2, Some(&[(1, &[2])])));
    script.pass(INTERVAL);
    script.answer(accepted(3, Some(&[(1, &[0, 1, 3])])));
    assert!(script.take_steps().is_empty(), "the rebalance is busy");
    script.is_busy = false;
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0], t [1], t [3]]"]);
}

#[test]
fn epoch_that_goes_back_ends_the_membership_with_an_error() {
    for response in [accepted(0, None), accepted(-1, None), accepted(2, Some(&[(1, &[-3])]))] {
        let mut script = Script::stable();
        script.pass(INTERVAL);
        script.answer(response);
        let steps = script.take_steps();
        assert!(steps.len() == 2 && steps[0].starts_with("error") && steps[1] == "lost", "{steps:?}");
        assert!(script.requests.is_empty(), "it backs off");
        script.pass(Duration::from_secs(1));
        assert_eq!(script.take_heartbeat().1.member_epoch, 0);
    }
}

#[test]
fn refused_commit_brings_the_next_heartbeat_forward() {
    let mut script = Script::stable();
    script.member.check_membership(script.now);
    script.settle();
    script.answer(accepted(2, None));
    assert_eq!(script.epoch(), Some(2));
}

#[test]
fn commits_that_are_refused_again_and_again_cause_no_storm_of_heartbeats() {
    let mut script = Script::stable();
    let mut heartbeats = 0;
    for _ in 0..100 {
        script.member.check_membership(script.now);
        script.settle();
        if !script.requests.is_empty() {
            heartbeats += 1;
            script.answer(accepted(1, None));
        }
        script.pass(INTERVAL / 20);
    }
    assert!((5..=11).contains(&heartbeats), "{heartbeats} in five intervals");
}

#[test]
fn partitions_are_held_since_the_epoch_in_which_they_came() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.answer(accepted(4, Some(&[(1, &[1, 2])])));
    script.settle();
    let held: Vec<_> = script.member.held().iter().map(|(key, since)| (key.partition, since.get())).collect();
    assert_eq!(held, [(1, 1), (2, 4)]);
}
