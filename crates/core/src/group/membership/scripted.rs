//! The classic member against a scripted coordinator.

mod custom;
mod inherited;
mod joins;

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        heartbeat::HeartbeatResponse,
        join_group::{JoinGroupRequest, JoinGroupResponse, response::Member as JoinedMember},
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    vocabulary::TopicPartition,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    super::{
        assignor::{Assignor, TopicTable},
        exchange::{Subscription, decode_assignment, encode_assignment},
        settings::GroupSettings,
    },
    classic::{ClassicMember, Step, Term},
    requests::MemberRequest,
};
use crate::group::departure::GroupMembershipOperation;
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
};

const START: Instant = Instant::from_nanos(1_000_000_000);

/// A member, and the requests that have no response yet.
struct Script {
    now: Instant,
    member: ClassicMember,
    owned: SortedSet<TopicPartition>,
    requests: Vec<(Term, MemberRequest)>,
    /// The other steps, as short texts.
    steps: Vec<String>,
    /// The time at which the last heartbeat was sent.
    beat_at: Instant,
}

impl Script {
    fn new() -> Self {
        Self::with(GroupSettings::with_defaults("g"))
    }

    fn with(settings: GroupSettings) -> Self {
        let member = ClassicMember::new(Arc::new(settings), Rng::from_seed(1));
        let owned = SortedSet::new();
        let mut script =
            Self { now: START, member, owned, requests: Vec::new(), steps: Vec::new(), beat_at: START };
        script.member.subscribe(script.now, names(&["t"]));
        script.settle();
        script
    }

    fn of_static_member() -> Self {
        Self::with(GroupSettings { instance_id: Some("i".into()), ..GroupSettings::with_defaults("g") })
    }

    /// A member of generation 1 with the partition t 0.
    fn stable() -> Self {
        let mut script = Self::new();
        script.join_as_follower("m", 1);
        script.sync(Ok(assignment(&[0])));
        assert_eq!(script.take_steps(), ["assign [t [0]]"]);
        script
    }

    fn settle(&mut self) {
        loop {
            self.member.advance(self.now, &self.owned, true);
            let Some(step) = self.member.poll_step() else { break };
            match step {
                Step::Send { term, request, .. } => {
                    if matches!(request, MemberRequest::Heartbeat(_)) {
                        self.beat_at = self.now;
                    }
                    self.requests.push((term, request));
                }
                Step::Assign(partitions) => {
                    self.steps.push(format!("assign {:?}", Vec::from_iter(partitions)))
                }
                Step::Settle => self.member.handle_settled(self.now),
                Step::Error(error) => self.steps.push(format!("error {error}")),
                Step::Fatal(error) => self.steps.push(format!("fatal {error}")),
                other => self.steps.push(format!("{other:?}").to_lowercase()),
            }
        }
    }

    /// Advances the time up to the next deadlines.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self.member.poll_timeout(true).filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.member.handle_timeout(self.now);
            let before = self.requests.len();
            self.settle();
            assert!(self.requests.len() < before + 5, "it sends again and again without time passing");
        }
        self.now = until;
    }

    fn take_steps(&mut self) -> Vec<String> {
        std::mem::take(&mut self.steps)
    }

    fn take(&mut self, name: &str) -> (Term, MemberRequest) {
        let place = self.requests.iter().position(|(_, request)| request.api().name() == name);
        let place = place.unwrap_or_else(|| panic!("no {name} in {:?}", self.requests));
        self.requests.remove(place)
    }

    fn sent(&self) -> Vec<&'static str> {
        self.requests.iter().map(|(_, request)| request.api().name()).collect()
    }

    fn take_join(&mut self) -> (Term, JoinGroupRequest) {
        match self.take("JoinGroup") {
            (term, MemberRequest::Join(request)) => (term, request),
            other => panic!("{other:?}"),
        }
    }

    fn take_sync(&mut self) -> (Term, SyncGroupRequest) {
        match self.take("SyncGroup") {
            (term, MemberRequest::Sync(request)) => (term, request),
            other => panic!("{other:?}"),
        }
    }

    fn join(&mut self, result: Result<JoinGroupResponse, Error>) -> bool {
        let (term, _) = self.take_join();
        let moved = self.member.handle_join(self.now, term, result);
        self.settle();
        moved
    }

    fn refuse_join(&mut self, code: ErrorCode) -> bool {
        self.join(Ok(JoinGroupResponse { error_code: code, ..Default::default() }))
    }

    fn join_as_follower(&mut self, id: &str, generation: i32) {
        self.join(Ok(joined(id, generation, "other", &[])));
    }

    fn sync(&mut self, result: Result<SyncGroupResponse, Error>) -> bool {
        let (term, _) = self.take_sync();
        let moved = self.member.handle_sync(self.now, term, result);
        self.settle();
        moved
    }

    fn refuse_sync(&mut self, code: ErrorCode) -> bool {
        self.sync(Ok(SyncGroupResponse { error_code: code, ..Default::default() }))
    }

    fn beat(&mut self, code: ErrorCode) -> bool {
        let (term, _) = self.take("Heartbeat");
        let response = HeartbeatResponse { error_code: code, ..Default::default() };
        let moved = self.member.handle_heartbeat(self.now, term, Ok((self.beat_at, response)));
        self.settle();
        moved
    }

    /// Advances to the next heartbeat and responds to it.
    fn beat_after_interval(&mut self, code: ErrorCode) -> bool {
        self.pass(Duration::from_secs(3));
        self.beat(code)
    }

    fn revoked(&mut self) {
        self.member.handle_revoked(self.now);
        self.settle();
    }
}

fn names(names: &[&str]) -> SortedSet<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn joined(id: &str, generation: i32, leader: &str, members: &[(&str, Vec<u8>)]) -> JoinGroupResponse {
    let member = |(id, metadata): &(&str, Vec<u8>)| JoinedMember {
        member_id: (*id).to_owned(),
        metadata: metadata.clone(),
        ..JoinedMember::default()
    };
    JoinGroupResponse {
        generation_id: generation,
        protocol_name: Some("range".into()),
        leader: leader.to_owned(),
        member_id: id.to_owned(),
        members: members.iter().map(member).collect(),
        ..JoinGroupResponse::default()
    }
}

fn subscription(topics: &[&str]) -> Vec<u8> {
    Subscription { topics: names(topics), ..Subscription::default() }.encode().expect("it can be encoded")
}

fn assignment(partitions: &[i32]) -> SyncGroupResponse {
    let partitions: Vec<_> = partitions.iter().map(|number| TopicPartition::new("t", *number)).collect();
    let assignment = encode_assignment(&partitions, None).expect("it can be encoded");
    SyncGroupResponse { assignment, ..SyncGroupResponse::default() }
}

fn disconnected<T>() -> Result<T, Error> {
    Err(Error::new(ErrorKind::Disconnected, ""))
}

#[test]
fn first_join_is_repeated_at_once_with_the_member_id() {
    let mut script = Script::new();
    let (term, request) = script.take_join();
    assert_eq!(
        (&*request.member_id, request.session_timeout_ms, request.rebalance_timeout_ms),
        ("", 45_000, 300_000)
    );
    let offered: Vec<&str> = request.protocols.iter().map(|protocol| &*protocol.name).collect();
    assert_eq!(offered, ["range", "roundrobin"]);
    let required = JoinGroupResponse {
        error_code: ErrorCode::MEMBER_ID_REQUIRED,
        member_id: "m".into(),
        ..Default::default()
    };
    assert!(!script.member.handle_join(script.now, term, Ok(required)));
    script.settle();
    assert_eq!(script.take_join().1.member_id, "m");
    assert!(script.take_steps().is_empty());
}

#[test]
fn broker_that_never_accepts_a_member_id_is_backed_off_from() {
    let mut script = Script::new();
    let mut joins = 0;
    for number in 0.. {
        if script.now > START + Duration::from_secs(10) {
            break;
        }
        if script.sent().is_empty() {
            script.pass(Duration::from_millis(50));
            continue;
        }
        joins += 1;
        let required = JoinGroupResponse {
            error_code: ErrorCode::MEMBER_ID_REQUIRED,
            member_id: format!("m{number}"),
            ..Default::default()
        };
        script.join(Ok(required));
    }
    assert!((10..60).contains(&joins), "{joins} joins in 10 s");
}

#[test]
fn follower_sends_no_assignment_and_gets_its_own() {
    let mut script = Script::new();
    script.join_as_follower("m", 1);
    let (term, request) = script.take_sync();
    assert_eq!((request.generation_id, &*request.member_id), (1, "m"));
    assert!(request.assignments.is_empty());
    script.member.handle_sync(script.now, term, Ok(assignment(&[2, 0])));
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0], t [2]]"]);
    assert_eq!(script.member.identity().map(|(id, generation)| (id, generation.get())), Some(("m", 1)));
}

#[test]
fn leader_assigns_all_members_once_it_knows_their_topics() {
    let mut script = Script::new();
    let members = [("m", subscription(&["t"])), ("n", subscription(&["t", "u"])), ("bad", vec![0, 3, 0x7f])];
    script.join(Ok(joined("m", 1, "m", &members)));
    assert!(script.sent().is_empty(), "the topics are unknown");
    assert_eq!(script.member.topics_to_assign(), Some(names(&["t", "u"])));
    let tables =
        [("t", 3), ("u", 1)].map(|(name, count)| (Arc::from(name), TopicTable::without_racks(count)));
    script.member.assign(script.now, tables.into());
    script.settle();
    let (_, request) = script.take_sync();
    let sent: SortedMap<&str, usize> = request
        .assignments
        .iter()
        .map(|sent| (&*sent.member_id, decode_assignment(&sent.assignment).expect("it can be decoded").len()))
        .collect();
    assert_eq!(sent, [("m", 2), ("n", 2)].into());
    let steps = script.take_steps();
    assert!(steps.len() == 1 && steps[0].contains("\"bad\""), "{steps:?}");
}

#[test]
fn leader_ignores_and_reports_impossible_topics_of_a_member() {
    use ottla_protocol::consumer_protocol::ConsumerProtocolSubscription;

    let mut script = Script::new();
    let topics = (0..30_000).map(|number| format!("no topic {number}")).chain(["t".to_owned()]);
    let hostile = ConsumerProtocolSubscription { topics: topics.collect(), ..Default::default() };
    let hostile = hostile.to_bytes(3).expect("it can be encoded");
    script.join(Ok(joined("m", 1, "m", &[("hostile", hostile), ("m", subscription(&["t"]))])));
    assert_eq!(
        script.member.topics_to_assign(),
        Some(names(&["t"])),
        "no metadata is requested for the rest"
    );
    let steps = script.take_steps();
    assert!(steps.len() == 1 && steps[0].contains("30000 topics of member \"hostile\""), "{steps:?}");
    script.member.assign(script.now, [(Arc::from("t"), TopicTable::without_racks(2))].into());
    script.settle();
    let (_, request) = script.take_sync();
    let counts =
        request.assignments.iter().map(|sent| decode_assignment(&sent.assignment).map(|keys| keys.len()));
    assert_eq!(counts.collect::<Vec<_>>(), [Ok(1), Ok(1)], "both are served");
}

#[test]
fn returning_static_leader_sends_no_assignment() {
    let mut script = Script::of_static_member();
    let response = joined("m", 3, "m", &[("m", subscription(&["t"]))]);
    script.join(Ok(JoinGroupResponse { skip_assignment: true, ..response }));
    script.member.assign(script.now, [(Arc::from("t"), TopicTable::without_racks(3))].into());
    script.settle();
    let (term, request) = script.take_sync();
    assert!(request.assignments.is_empty());
    script.member.handle_sync(script.now, term, Ok(assignment(&[0])));
    assert_eq!(script.member.observed_topics().map(SortedMap::len), Some(1), "it observes the topics");
}

#[test]
fn eager_member_gives_everything_up_before_it_joins_again() {
    let mut script = Script::stable();
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.take_steps(), ["revoke"]);
    assert!(script.sent().is_empty());
    script.revoked();
    let (_, request) = script.take_join();
    assert_eq!(request.member_id, "m");
    assert_eq!(request.reason.as_deref(), Some("the group is rebalancing"));
}

#[test]
fn heartbeats_continue_while_partitions_are_revoked() {
    let mut script = Script::stable();
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    for _ in 0..30 {
        script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(script.take_steps(), ["revoke"], "90 s later it is still a member");
}

#[test]
fn heartbeats_go_on_while_a_join_waits() {
    let mut script = Script::stable();
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    script.revoked();
    assert_eq!(script.take_steps(), ["revoke"]);
    for code in [ErrorCode::REBALANCE_IN_PROGRESS, ErrorCode::ILLEGAL_GENERATION] {
        for _ in 0..20 {
            script.beat_after_interval(code);
        }
    }
    assert_eq!(script.sent(), ["JoinGroup"], "the join is neither repeated nor given up");
    script.join_as_follower("m", 2);
    script.sync(Ok(assignment(&[1])));
    assert_eq!(script.take_steps(), ["assign [t [1]]"]);
}

#[test]
fn heartbeat_in_flight_at_a_join_is_followed_by_others() {
    let mut script = Script::stable();
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.take_steps(), ["revoke"]);
    script.pass(Duration::from_secs(3));
    script.revoked();
    assert_eq!(script.sent(), ["Heartbeat", "JoinGroup"]);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    for _ in 0..20 {
        script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(script.sent(), ["JoinGroup"], "the session did not end while the join waited");
    assert!(script.take_steps().is_empty());
}

#[test]
fn session_ends_a_timeout_after_the_last_acknowledged_heartbeat_was_sent() {
    let mut script = Script::stable();
    script.pass(Duration::from_secs(3));
    let sent = script.now;
    script.now += Duration::from_secs(10);
    script.beat(ErrorCode::NONE);
    while script.sent().contains(&"Heartbeat") {
        script.take("Heartbeat");
    }
    script.pass(Duration::from_secs(45) - (script.now - sent) - Duration::from_millis(1));
    assert!(script.take_steps().is_empty());
    script.pass(Duration::from_millis(1));
    assert_eq!(script.take_steps(), ["lost"], "and no error");
    assert_eq!(script.member.identity(), None);
    script.revoked();
    assert_eq!(script.take_join().1.member_id, "m", "the coordinator may still know the member");
}

#[test]
fn lost_membership_gives_partitions_up_as_lost() {
    let cases = [(ErrorCode::UNKNOWN_MEMBER_ID, ""), (ErrorCode::ILLEGAL_GENERATION, "m")];
    for (code, id_afterwards) in cases {
        let mut script = Script::stable();
        script.beat_after_interval(code);
        assert_eq!(script.take_steps(), ["lost"], "{code}");
        assert_eq!(script.member.identity(), None);
        script.revoked();
        assert_eq!(script.take_join().1.member_id, id_afterwards, "{code}");
    }
}

#[test]
fn fenced_static_member_fails_for_good() {
    let mut script = Script::of_static_member();
    script.join_as_follower("m", 1);
    script.sync(Ok(assignment(&[0])));
    script.take_steps();
    script.beat_after_interval(ErrorCode::FENCED_INSTANCE_ID);
    let steps = script.take_steps();
    assert_eq!(steps[0], "lost");
    assert!(steps[1].starts_with("fatal") && steps[1].contains("\"i\""), "{steps:?}");
    script.revoked();
    script.pass(Duration::from_secs(600));
    assert!(script.sent().is_empty(), "it sends nothing any more");
    let mut script = Script::of_static_member();
    script.refuse_join(ErrorCode::FENCED_INSTANCE_ID);
    assert!(script.take_steps()[0].starts_with("fatal"));
    let mut script = Script::of_static_member();
    script.join_as_follower("m", 1);
    script.refuse_sync(ErrorCode::FENCED_INSTANCE_ID);
    assert!(script.take_steps()[0].starts_with("fatal"));
}

#[test]
fn unknown_member_joins_as_a_new_one() {
    let mut script = Script::stable();
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    script.revoked();
    script.refuse_join(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(script.take_join().1.member_id, "");
}

#[test]
fn refused_sync_leads_to_another_join() {
    let cases = [
        (ErrorCode::REBALANCE_IN_PROGRESS, "m", false),
        (ErrorCode::ILLEGAL_GENERATION, "m", false),
        (ErrorCode::UNKNOWN_MEMBER_ID, "", false),
        (ErrorCode::NOT_COORDINATOR, "m", true),
    ];
    for (code, id, moves) in cases {
        let mut script = Script::new();
        script.join_as_follower("m", 1);
        assert_eq!(script.refuse_sync(code), moves, "{code}");
        script.pass(Duration::from_millis(200));
        assert_eq!(script.take_join().1.member_id, id, "{code}");
        assert!(script.take_steps().is_empty(), "{code} is not the application's concern");
    }
}

#[test]
fn refused_join_is_reported_once_and_repeated_with_back_off() {
    for code in [
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode::INVALID_SESSION_TIMEOUT,
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::GROUP_MAX_SIZE_REACHED,
    ] {
        let mut script = Script::new();
        for _ in 0..5 {
            script.refuse_join(code);
            assert!(script.sent().is_empty(), "{code}: it waits before it joins again");
            script.pass(Duration::from_millis(1300));
        }
        let steps = script.take_steps();
        assert!(steps.len() == 1 && steps[0].contains(&code.to_string()), "{code}: {steps:?}");
    }
}

#[test]
fn lost_connections_are_no_errors_of_the_group() {
    let mut script = Script::new();
    script.join(disconnected());
    script.pass(Duration::from_millis(200));
    script.join_as_follower("m", 1);
    script.sync(disconnected());
    script.pass(Duration::from_millis(500));
    script.join_as_follower("m", 2);
    script.sync(Ok(assignment(&[0])));
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
}

#[test]
fn moved_coordinator_gets_the_next_heartbeat_soon() {
    let mut script = Script::stable();
    assert!(script.beat_after_interval(ErrorCode::NOT_COORDINATOR));
    script.pass(Duration::from_millis(200));
    script.beat(ErrorCode::NONE);
    assert!(script.take_steps().is_empty(), "it is still a member");
}

#[test]
fn responses_of_an_earlier_term_are_ignored() {
    let mut script = Script::stable();
    script.pass(Duration::from_secs(3));
    let (old, _) = script.take("Heartbeat");
    script.member.rejoin(script.now, "test");
    script.settle();
    script.revoked();
    script.join_as_follower("m", 2);
    let late = HeartbeatResponse { error_code: ErrorCode::UNKNOWN_MEMBER_ID, ..Default::default() };
    script.member.handle_heartbeat(script.now, old, Ok((script.now, late)));
    script.settle();
    assert_eq!(script.member.identity().map(|(_, generation)| generation.get()), Some(2));
}

#[test]
fn late_heartbeat_does_not_revive_a_member_that_left() {
    let mut script = Script::stable();
    script.pass(Duration::from_secs(3));
    let (term, _) = script.take("Heartbeat");
    script.member.leave(script.now, GroupMembershipOperation::LeaveGroup, "test");
    script.settle();
    let late = HeartbeatResponse::default();
    script.member.handle_heartbeat(script.now, term, Ok((script.now, late)));
    script.settle();
    assert_eq!(script.member.identity(), None);
    assert_eq!(script.sent(), ["LeaveGroup"]);
    script.pass(Duration::from_secs(60));
    assert_eq!(script.sent(), ["LeaveGroup"]);
    assert_eq!(script.take_steps(), ["left"], "leaving has a bound");
}

#[test]
fn member_leaves_as_the_operation_demands() {
    use GroupMembershipOperation::{Default, LeaveGroup, RemainInGroup};
    for (is_static, operation, expected) in [
        (true, Default, vec![]),
        (true, LeaveGroup, vec!["LeaveGroup"]),
        (true, RemainInGroup, vec![]),
        (false, Default, vec!["LeaveGroup"]),
        (false, LeaveGroup, vec!["LeaveGroup"]),
        (false, RemainInGroup, vec![]),
    ] {
        let mut script = if is_static { Script::of_static_member() } else { Script::new() };
        script.join_as_follower("m", 1);
        script.sync(Ok(assignment(&[0])));
        script.take_steps();
        script.member.leave(script.now, operation, "test");
        script.settle();
        let leaves = !expected.is_empty();
        assert_eq!(script.sent(), expected, "{operation:?}");
        assert_eq!(script.take_steps().is_empty(), leaves);
    }
}

#[test]
fn changed_subscription_waits_for_the_rebalance_in_progress() {
    let mut script = Script::new();
    script.member.subscribe(script.now, names(&["t", "u"]));
    script.settle();
    assert_eq!(script.sent(), ["JoinGroup"], "one join is in flight");
    script.join_as_follower("m", 1);
    script.sync(Ok(assignment(&[0])));
    assert_eq!(script.take_steps(), ["assign [t [0]]", "revoke"]);
    script.revoked();
    let (_, request) = script.take_join();
    let sent = Subscription::decode(&request.protocols[0].metadata).expect("it can be decoded");
    assert_eq!(sent.topics, names(&["t", "u"]));
}

#[test]
fn partitions_of_other_topics_are_reported_and_left_out() {
    let mut script = Script::new();
    script.join_as_follower("m", 1);
    let partitions = [("t", 0), ("stray", 1)].map(TopicPartition::from);
    let assignment = encode_assignment(&partitions, None).expect("it can be encoded");
    script.sync(Ok(SyncGroupResponse { assignment, ..Default::default() }));
    let steps = script.take_steps();
    assert!(steps[0].contains("stray [1]"), "{steps:?}");
    assert_eq!(steps[1..], ["assign [t [0]]"]);
}

#[test]
fn coordinator_that_contradicts_itself_is_reported_and_backed_off_from() {
    let garbage = || Ok(SyncGroupResponse { assignment: vec![0, 0, 0x7f, 0xff], ..Default::default() });
    let mut script = Script::new();
    for _ in 0..3 {
        script.join_as_follower("m", 1);
        script.sync(garbage());
        assert!(script.sent().is_empty());
        script.pass(Duration::from_secs(2));
    }
    assert_eq!(script.take_steps().len(), 1);
    for response in [
        JoinGroupResponse { protocol_name: None, ..joined("m", 1, "m", &[]) },
        JoinGroupResponse { protocol_name: Some("mine".into()), ..joined("m", 1, "m", &[]) },
        joined("m", -1, "m", &[]),
        joined("", 1, "", &[]),
    ] {
        let mut script = Script::new();
        script.join(Ok(response.clone()));
        assert_eq!(script.take_steps().len(), 1, "{response:?}");
        script.pass(Duration::from_secs(2));
        assert_eq!(script.sent(), ["JoinGroup"], "{response:?}");
    }
}

#[test]
fn generation_that_goes_back_makes_the_member_a_new_one() {
    let mut script = Script::new();
    script.join_as_follower("m", 5);
    script.refuse_sync(ErrorCode::REBALANCE_IN_PROGRESS);
    script.join_as_follower("m", 4);
    assert!(script.take_steps()[0].contains("generation 4 after generation 5"));
    assert_eq!(script.take_join().1.member_id, "");
}

#[test]
fn old_group_assignor_names_are_offered_in_order() {
    let assignors = vec![Assignor::RoundRobin.into(), Assignor::Range.into()];
    let mut script = Script::with(GroupSettings { assignors, ..GroupSettings::with_defaults("g") });
    let (_, request) = script.take_join();
    let offered: Vec<&str> = request.protocols.iter().map(|protocol| &*protocol.name).collect();
    assert_eq!(offered, ["roundrobin", "range"]);
}

#[test]
fn sticky_member_joins_with_its_last_assignment_although_it_owns_nothing() {
    let settings =
        GroupSettings { assignors: vec![Assignor::Sticky.into()], ..GroupSettings::with_defaults("g") };
    let mut script = Script::with(settings);
    let sticky = |response| JoinGroupResponse { protocol_name: Some("sticky".into()), ..response };
    let member = |request: &JoinGroupRequest| {
        let sent = Subscription::decode(&request.protocols[0].metadata).expect("it can be decoded");
        assert!(sent.owned.is_empty(), "an eager member owns nothing when it joins");
        sent.into_member(Some(Assignor::Sticky), "m".into(), None)
    };
    let (term, request) = script.take_join();
    assert_eq!((member(&request).owned, member(&request).generation), (Vec::new(), None));
    script.member.handle_join(script.now, term, Ok(sticky(joined("m", 7, "other", &[]))));
    script.settle();
    script.sync(Ok(assignment(&[2, 0])));
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    script.revoked();
    let (term, request) = script.take_join();
    let last = member(&request);
    assert_eq!(
        (last.owned, last.generation),
        ([("t", 0), ("t", 2)].map(TopicPartition::from).to_vec(), Some(7))
    );

    // As the leader it keeps partitions where they were.
    let other = Subscription { topics: names(&["t"]), ..Subscription::default() };
    let members =
        [("a", other.encode().expect("it can be encoded")), ("m", request.protocols[0].metadata.clone())];
    script.member.handle_join(script.now, term, Ok(sticky(joined("m", 8, "m", &members))));
    script.settle();
    script.member.assign(script.now, [(Arc::from("t"), TopicTable::without_racks(4))].into());
    script.settle();
    let (_, request) = script.take_sync();
    let assigned = |id: &str| {
        let sent = request.assignments.iter().find(|sent| sent.member_id == id).expect("it is assigned");
        let keys = decode_assignment(&sent.assignment).expect("it can be decoded");
        keys.into_iter().map(|key| key.partition).collect::<Vec<_>>()
    };
    assert_eq!((assigned("a"), assigned("m")), (vec![1, 3], vec![0, 2]));
}
