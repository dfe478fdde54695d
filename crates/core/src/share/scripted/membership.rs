//! The membership, without a cluster actor: steps and responses.

use ottla_protocol::generated::share_group_heartbeat::{
    ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
    response::{Assignment, TopicPartition as AssignedTopic},
};
use ottla_sorted::SortedSet;

use super::{
    super::membership::{ShareMember, Step},
    *,
};

struct Member {
    now: Instant,
    member: ShareMember,
    term: u64,
}

impl Member {
    fn new() -> Self {
        let member = ShareMember::new(settings(), Rng::from_seed(1));
        let mut member = Self { now: Instant::from_nanos(1_000_000_000), member, term: 0 };
        member.subscribe(&["t"]);
        member
    }

    fn subscribe(&mut self, topics: &[&str]) {
        let topics: SortedSet<Arc<str>> = topics.iter().map(|topic| Arc::from(*topic)).collect();
        self.member.subscribe(self.now, topics);
    }

    /// Returns the next heartbeat, if one is sent.
    fn next(&mut self) -> Option<ShareGroupHeartbeatRequest> {
        self.member.advance(self.now);
        match self.member.poll_step()? {
            Step::Send(request, term) => {
                self.term = term;
                let mut bytes = Vec::new();
                (request.encode)(1, &mut bytes).expect("it has version 1");
                Some(ShareGroupHeartbeatRequest::decode(&mut Reader::new(&bytes), 1).expect("it is valid"))
            }
            other => panic!("{other:?}"),
        }
    }

    fn heartbeat(&mut self) -> ShareGroupHeartbeatRequest {
        self.next().expect("a heartbeat")
    }

    fn respond(&mut self, response: &ShareGroupHeartbeatResponse) -> bool {
        let mut bytes = Vec::new();
        response.encode(1, &mut bytes).expect("it has version 1");
        self.member.handle_decoded(
            self.now,
            self.term,
            Ok(ShareGroupHeartbeatResponse::decode(&mut Reader::new(&bytes), 1).expect("it is valid")),
        )
    }

    fn confirm(&mut self, member_epoch: i32, assignment: Option<Assignment>) {
        self.respond(&ShareGroupHeartbeatResponse {
            member_epoch,
            heartbeat_interval_ms: 5_000,
            assignment,
            ..ShareGroupHeartbeatResponse::default()
        });
    }

    fn refuse(&mut self, error_code: ErrorCode) -> bool {
        self.respond(&ShareGroupHeartbeatResponse { error_code, ..ShareGroupHeartbeatResponse::default() })
    }
}

fn assigned(partitions: &[i32]) -> Option<Assignment> {
    let topic = AssignedTopic { topic_id: T, partitions: partitions.to_vec() };
    Some(Assignment { topic_partitions: vec![topic] })
}

#[test]
fn member_joins_and_sends_only_changes() {
    let mut member = Member::new();
    let request = member.heartbeat();
    assert_eq!((request.member_epoch, &*request.group_id), (0, "g"));
    assert_eq!(request.subscribed_topic_names, Some(vec!["t".to_owned()]));
    let id = request.member_id;
    member.confirm(3, assigned(&[0, 1]));
    assert_eq!(member.member.assignment()[&T], SortedSet::from([0, 1]));
    assert!(member.next().is_none());
    member.now += Duration::from_secs(5);
    let request = member.heartbeat();
    assert_eq!((request.member_epoch, request.member_id, request.subscribed_topic_names), (3, id, None));
    member.confirm(3, None);
    assert_eq!(member.member.assignment()[&T], SortedSet::from([0, 1]), "nothing changed");
    member.subscribe(&["t", "u"]);
    let names = member.heartbeat().subscribed_topic_names.expect("they changed");
    assert_eq!(names, ["t", "u"]);
}

#[test]
fn fenced_member_joins_again_with_its_id() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::GROUP_ID_NOT_FOUND]
    {
        let mut member = Member::new();
        let id = member.heartbeat().member_id;
        member.confirm(3, assigned(&[0]));
        member.now += Duration::from_secs(5);
        let _ = member.heartbeat();
        member.refuse(code);
        assert!(member.member.assignment().is_empty());
        let request = member.heartbeat();
        assert_eq!((request.member_epoch, request.member_id), (0, id));
        assert!(request.subscribed_topic_names.is_some());
    }
}

#[test]
fn coordinator_that_moved_is_asked_again_with_all_fields() {
    let mut member = Member::new();
    let _ = member.heartbeat();
    member.confirm(3, None);
    member.now += Duration::from_secs(5);
    let _ = member.heartbeat();
    assert!(member.refuse(ErrorCode::NOT_COORDINATOR));
    let request = member.heartbeat();
    assert_eq!(request.member_epoch, 3);
    assert!(request.subscribed_topic_names.is_some());
}

#[test]
fn group_of_another_type_is_fatal() {
    let mut member = Member::new();
    let _ = member.heartbeat();
    member.refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let Some(Step::Fail(error)) = member.member.poll_step() else { panic!("it is fatal") };
    assert!(error.to_string().contains("not a share group"), "{error}");
    member.now += Duration::from_secs(60);
    assert!(member.next().is_none());
}

#[test]
fn member_leaves_with_epoch_minus_1() {
    let mut member = Member::new();
    let _ = member.heartbeat();
    member.confirm(3, None);
    member.member.leave(member.now + Duration::from_secs(5));
    assert_eq!(member.heartbeat().member_epoch, -1);
    member.confirm(-1, None);
    assert!(matches!(member.member.poll_step(), Some(Step::Left)));
    assert!(member.next().is_none());
}

#[test]
fn leaving_ends_at_its_deadline() {
    let mut member = Member::new();
    let _ = member.heartbeat();
    member.confirm(3, None);
    member.member.leave(member.now + Duration::from_secs(5));
    let _ = member.heartbeat();
    member.now += Duration::from_secs(5);
    member.member.handle_timeout(member.now);
    assert!(matches!(member.member.poll_step(), Some(Step::Left)));
}

#[test]
fn member_without_polls_leaves_and_joins_with_the_next_poll() {
    let mut member = Member::new();
    let _ = member.heartbeat();
    member.confirm(3, assigned(&[0]));
    member.member.handle_poll_exceeded();
    assert_eq!(member.heartbeat().member_epoch, -1);
    assert!(member.member.assignment().is_empty());
    assert!(member.next().is_none());
    member.member.handle_polled(member.now);
    assert_eq!(member.heartbeat().member_epoch, 0);
}

#[test]
fn invalid_response_makes_the_member_join_again() {
    for (epoch, assignment) in [(0, None), (-5, None), (4, assigned(&[-1]))] {
        let mut member = Member::new();
        let _ = member.heartbeat();
        member.confirm(epoch, assignment);
        assert!(matches!(member.member.poll_step(), Some(Step::Report(_))));
        member.now += Duration::from_secs(2);
        assert_eq!(member.heartbeat().member_epoch, 0);
    }
}
