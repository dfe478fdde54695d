//! The group part against a scripted coordinator and scripted metadata.

mod contract;
mod epochs;
mod generations;
mod patterns;
mod topic_ids;

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        heartbeat::HeartbeatResponse,
        join_group::{JoinGroupRequest, JoinGroupResponse, response::Member as JoinedMember},
        offset_commit::OffsetCommitRequest,
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    message::Message,
    primitive::Reader,
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::SortedSet;

use super::{
    Group, GroupCommand, GroupSettings, SubscribedTopics,
    assignor::{Assignor, Strategy},
    exchange::{Subscription, decode_assignment, encode_assignment},
};
use crate::{
    completion::{Waiting, completion},
    connection::{
        Response,
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    contract::{
        metadata::{Metadata, PartitionMetadata, TopicMetadata},
        part::{GroupRequest, Interest, MetadataChanges, Need, Needs, Part, RequestOwner},
        route::{Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    fetch::{FetchCommand, settings::ConsumerSettings, shared::ConsumerShared},
    group::departure::GroupMembershipOperation,
    machine::Instant,
    offsets::committed::{
        CommitResult, CommittedOffsets, Committer, GroupCall, GroupCallKind, GroupOffset, Held,
        MemberIdentity, QuestionId,
    },
    rng::Rng,
    turns::Turns,
};

/// A subscription to these topics and patterns.
pub(super) fn subscribe(entries: &[&str]) -> GroupCommand {
    GroupCommand::Subscribe(SubscribedTopics::parse(entries.iter().copied()).expect("it is valid"))
}

const START: Instant = Instant::from_nanos(1_000_000_000);

/// A group part, and its requests to the cluster actor.
struct Script {
    now: Instant,
    shared: Arc<ConsumerShared>,
    group: Group,
    metadata: Metadata,
    requests: Vec<(GroupRequest, Route, RoutedRequest)>,
    /// The commands to the fetch manager, as short texts.
    fetch: Vec<String>,
    commits: Vec<(Vec<GroupOffset>, crate::completion::Completion<CommitResult>)>,
    metadata_requests: usize,
    /// The identity for commits.
    committer: Committer,
    /// A commit that the application made has no outcome yet.
    application_commits: bool,
}

impl Script {
    fn new(topics: &[(&str, usize)]) -> Self {
        Self::with(topics, vec![Assignor::Range.into()])
    }

    fn with(topics: &[(&str, usize)], assignors: Vec<Strategy>) -> Self {
        let settings = ConsumerSettings { group_id: Some("g".into()), ..ConsumerSettings::default() };
        let shared = Arc::new(ConsumerShared::new(settings));
        let of_group = GroupSettings { assignors, ..GroupSettings::with_defaults("g") };
        let group = Group::new(Arc::clone(&shared), of_group, Rng::from_seed(1));
        let mut script = Self {
            now: START,
            shared,
            group,
            metadata: metadata(topics),
            requests: Vec::new(),
            fetch: Vec::new(),
            commits: Vec::new(),
            metadata_requests: 0,
            committer: Committer::Nobody,
            application_commits: false,
        };
        script.group.handle_command(START, subscribe(&["t"]));
        script.settle();
        script
    }

    /// A member of generation 1 with the partitions t 0 and t 1.
    fn stable() -> Self {
        let mut script = Self::new(&[("t", 4)]);
        script.join("other", &[]);
        script.sync(&[("t", 0), ("t", 1)]);
        script
    }

    fn settle(&mut self) {
        self.group.advance(self.now, &self.metadata);
        let mut turns = Turns::default();
        while let Some(need) = self.group.poll_need() {
            turns.take(self.now, 10_000);
            match need {
                Need::Request { route, request, owner: RequestOwner::Group(owner) } => {
                    self.requests.push((owner, route, request));
                }
                Need::Tell(FetchCommand::Start(starts)) => {
                    let keys = starts.iter().map(|start| start.handle.key().clone()).collect::<Vec<_>>();
                    self.fetch.push(format!("start {keys:?}"));
                }
                Need::Tell(FetchCommand::Stop(handles)) => {
                    let keys = handles.iter().map(|handle| handle.key().clone()).collect::<Vec<_>>();
                    self.fetch.push(format!("stop {keys:?}"));
                }
                Need::Tell(FetchCommand::CommitAs(committer)) => self.note_committer(committer),
                Need::Tell(FetchCommand::Group(GroupCall {
                    kind: GroupCallKind::Commit(offsets, done),
                    ..
                })) if offsets.is_empty() && !self.application_commits => {
                    done.complete(Ok(Vec::new()));
                    self.group.advance(self.now, &self.metadata);
                }
                Need::Tell(FetchCommand::Group(GroupCall {
                    kind: GroupCallKind::Commit(offsets, done),
                    ..
                })) => self.commits.push((offsets, done)),
                Need::Metadata(_) => self.metadata_requests += 1,
                Need::Event(event) => self.fetch.push(format!("event {event:?}")),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Notes the identity for commits, if its generation changed.
    fn note_committer(&mut self, committer: Committer) {
        let text = |committer: &Committer| match committer {
            Committer::Member(member) => format!("commit as {}", member.generation),
            other => format!("commit as {other:?}"),
        };
        if text(&committer) != text(&self.committer) {
            self.fetch.push(text(&committer));
        }
        self.committer = committer;
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = Turns::default();
        while let Some(next) = self.group.poll_timeout().filter(|next| *next <= until) {
            turns.take(next.max(self.now), 10);
            self.now = self.now.max(next);
            self.group.handle_timeout(self.now, None);
            self.settle();
        }
        self.now = until;
    }

    fn take(&mut self, api: ApiKey) -> (GroupRequest, RoutedRequest) {
        let place = self.requests.iter().position(|(.., request)| request.api == api);
        let (owner, _, request) = self.requests.remove(place.unwrap_or_else(|| panic!("no {}", api.name())));
        (owner, request)
    }

    fn respond<M: Message>(&mut self, api: ApiKey, response: &M) {
        let (owner, request) = self.take(api);
        let version = *request.versions.end();
        self.group.handle_response(self.now, owner, Ok(as_response(self.now, api, version, response)));
        self.settle();
    }

    fn join(&mut self, leader: &str, members: &[(&str, &[&str])]) {
        let members = members.iter().map(|(id, topics)| JoinedMember {
            member_id: (*id).to_owned(),
            metadata: Subscription {
                topics: topics.iter().map(|topic| Arc::from(*topic)).collect(),
                ..Subscription::default()
            }
            .encode()
            .expect("it can be encoded"),
            ..JoinedMember::default()
        });
        let generation_id = self.group.member.identity().map_or(1, |(_, generation)| generation.get() + 1);
        let response = JoinGroupResponse {
            generation_id,
            protocol_name: Some(self.group.settings.assignors[0].name().to_owned()),
            leader: leader.into(),
            member_id: "m".into(),
            members: members.collect(),
            ..JoinGroupResponse::default()
        };
        self.respond(ApiKey::JoinGroup, &response);
    }

    fn sync(&mut self, partitions: &[(&str, i32)]) {
        let partitions: Vec<TopicPartition> =
            partitions.iter().map(|key| TopicPartition::from(*key)).collect();
        let assignment = encode_assignment(&partitions, None).expect("it can be encoded");
        self.respond(ApiKey::SyncGroup, &SyncGroupResponse { assignment, ..Default::default() });
    }

    fn beat(&mut self, error_code: ErrorCode) {
        self.pass(Duration::from_secs(3));
        self.respond(ApiKey::Heartbeat, &HeartbeatResponse { error_code, ..Default::default() });
    }

    fn handle_metadata(&mut self, topics: &[(&str, usize)]) -> bool {
        self.metadata = metadata(topics);
        let incomplete = self.group.handle_metadata(self.now, &self.metadata, &MetadataChanges::default());
        self.settle();
        incomplete
    }

    /// Delivers the records of a partition up to an offset to the application.
    fn consume(&self, partition: i32, offset: i64) {
        let handle = self.shared.partition("t", partition).expect("it is assigned");
        handle.start_at(0);
        handle.set_position(offset, -1);
    }

    fn sent(&self) -> Vec<&'static str> {
        self.requests.iter().map(|(.., request)| request.api.name()).collect()
    }

    fn take_fetch(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fetch)
    }
}

fn metadata(topics: &[(&str, usize)]) -> Metadata {
    let topic = |count| TopicMetadata {
        partitions: vec![PartitionMetadata::default(); count],
        ..TopicMetadata::default()
    };
    let topics = topics.iter().map(|(name, count)| (Arc::from(*name), topic(*count)));
    Metadata { topics: topics.collect(), ..Metadata::default() }
}

fn as_response<M: Message>(now: Instant, api: ApiKey, version: i16, response: &M) -> Response {
    let mut bytes = Vec::new();
    response.encode(version, &mut bytes).expect("it can be encoded");
    let request = InFlight {
        correlation_id: 1,
        api,
        version,
        tag: RequestTag::Cluster(0),
        payload: Payload::Bytes(Vec::new()),
        expects_response: true,
        queued_at: now,
        written_at: now,
        timeout: Duration::from_secs(30),
    };
    Response { request, frame: Frame { len: bytes.len(), bytes }, body: 0 }
}

fn interest(group: &Group) -> SortedSet<Arc<str>> {
    let mut interest = Interest::default();
    group.add_topics(&mut interest);
    interest.used
}

#[test]
fn member_fetches_its_assigned_partitions() {
    let mut script = Script::stable();
    let expected = ["commit as Outside", "commit as 1", "start [t [0], t [1]]"];
    assert_eq!(script.take_fetch(), expected);
    assert_eq!(script.shared.assignment().len(), 2);
}

#[test]
fn refusal_of_sync_group_counts_without_an_assignment() {
    let mut script = Script::new(&[("t", 1)]);
    script.join("other", &[]);
    let (owner, _) = script.take(ApiKey::SyncGroup);
    let refused =
        SyncGroupResponse { error_code: ErrorCode::REBALANCE_IN_PROGRESS, ..SyncGroupResponse::default() };
    let mut response = as_response(script.now, ApiKey::SyncGroup, 2, &refused);
    // The throttle time, the error code, and null instead of the assignment.
    response.frame.bytes[6..10].copy_from_slice(&(-1i32).to_be_bytes());
    script.group.handle_response(script.now, owner, Ok(response));
    script.settle();
    let _ = script.take(ApiKey::JoinGroup);
    assert!(!script.take_fetch().iter().any(|what| what.starts_with("event")));
}

#[test]
fn join_does_not_delay_heartbeats_and_commits() {
    let mut script = Script::new(&[("t", 1)]);
    assert!(matches!(script.requests[0].1, Route::Rebalance(_)));
    script.join("other", &[]);
    assert!(matches!(script.requests[0].1, Route::Rebalance(_)), "SyncGroup may wait, too");
    script.sync(&[]);
    script.pass(Duration::from_secs(3));
    assert!(matches!(script.requests[0].1, Route::Coordinator(_)));
}

#[test]
fn member_joins_after_commits_that_the_application_made() {
    for mut script in [Script::stable(), Script::cooperative()] {
        script.application_commits = true;
        script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
        assert!(!script.sent().contains(&"JoinGroup"), "{:?}", script.sent());
        let (offsets, done) =
            script.commits.pop().expect("a commit without offsets, which waits for the others");
        assert!(offsets.is_empty());
        done.complete(Ok(Vec::new()));
        script.settle();
        assert!(script.sent().contains(&"JoinGroup"), "{:?}", script.sent());
    }
}

#[test]
fn commit_without_offsets_completes_after_the_commits_before_it() {
    let mut offsets = committed_offsets(member(1, None));
    let first = commit(&mut offsets);
    let (done, waiting) = completion();
    let kind = GroupCallKind::Commit(Vec::new(), done);
    offsets.call(START, GroupCall { timeout: Duration::from_secs(60), kind });
    let (number, _) = offsets.poll_request(START).expect("a request");
    assert!(offsets.poll_request(START).is_none() && waiting.try_take().is_none());
    offsets.handle_response(START, number, Err(Error::new(ErrorKind::Disconnected, "")));
    assert!(waiting.try_take().is_none(), "the commit is tried again");
    let later = START + Duration::from_secs(61);
    offsets.handle_timeout(later);
    assert!(first.try_take().is_some_and(|result| result.is_err()));
    assert!(waiting.try_take().is_some());
}

#[test]
fn revoked_partitions_are_committed_before_the_member_joins_again() {
    let mut script = Script::stable();
    script.take_fetch();
    script.consume(1, 7);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.take_fetch(), ["stop [t [0], t [1]]"]);
    assert!(script.sent().is_empty(), "the commit comes first");
    let (offsets, done) = script.commits.pop().expect("a commit");
    let committed: Vec<_> = offsets.iter().map(|offset| (offset.partition, offset.offset)).collect();
    assert_eq!(committed, [(1, 7)], "nothing was handed out of the other partition");
    done.complete(Ok(vec![Ok(())]));
    script.settle();
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn commit_without_an_outcome_delays_a_rebalance_for_a_bounded_time() {
    let mut script = Script::stable();
    script.consume(0, 1);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    for _ in 0..20 {
        script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn lost_partitions_are_not_committed() {
    let mut script = Script::stable();
    script.take_fetch();
    script.consume(0, 9);
    script.beat(ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(script.commits.is_empty());
    assert_eq!(script.take_fetch(), ["commit as Outside", "stop [t [0], t [1]]"]);
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn membership_lost_during_the_commit_ends_it() {
    let mut script = Script::stable();
    script.consume(0, 9);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.commits.len(), 1);
    script.beat(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn offsets_are_committed_at_intervals_while_they_change() {
    let mut script = Script::stable();
    script.consume(0, 5);
    let mut committed = Vec::new();
    for second in 0..30 {
        if second == 12 {
            script.consume(0, 6);
        }
        script.pass(Duration::from_secs(1));
        if script.sent().contains(&"Heartbeat") {
            script.respond(ApiKey::Heartbeat, &HeartbeatResponse::default());
        }
        if let Some((offsets, done)) = script.commits.pop() {
            let handle = script.shared.partition("t", 0).expect("it is assigned");
            handle.set_committed(offsets[0].offset, None);
            committed.push(offsets[0].offset);
            done.complete(Ok(vec![Ok(())]));
            script.settle();
        }
    }
    assert_eq!(committed, [5, 6]);
}

#[test]
fn refused_commit_makes_the_member_check_its_membership() {
    let mut script = Script::stable();
    script.take_fetch();
    script.consume(0, 5);
    script.pass(Duration::from_secs(3));
    script.respond(ApiKey::Heartbeat, &HeartbeatResponse::default());
    script.pass(Duration::from_millis(2500));
    let (_, done) = script.commits.pop().expect("a commit");
    done.complete(Ok(vec![Err(Error::broker(ErrorCode::ILLEGAL_GENERATION, None))]));
    script.settle();
    script.settle();
    assert_eq!(script.sent(), ["Heartbeat"], "it does not wait for the interval");
    assert!(script.take_fetch().is_empty(), "the application gets no report");
}

#[test]
fn commit_that_is_forbidden_is_reported_once() {
    let mut script = Script::stable();
    script.take_fetch();
    for round in 0..4 {
        script.consume(0, 5 + round);
        script.pass(Duration::from_secs(5));
        let (_, done) = script.commits.pop().expect("a commit");
        done.complete(Ok(vec![Err(Error::broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED, None))]));
        script.settle();
        if script.sent().contains(&"Heartbeat") {
            script.respond(ApiKey::Heartbeat, &HeartbeatResponse::default());
        }
    }
    let events = script.take_fetch();
    assert_eq!(events.len(), 1, "{events:?}");
}

#[test]
fn leader_joins_again_when_a_topic_of_another_member_grows() {
    let mut script = Script::new(&[("t", 2)]);
    script.join("m", &[("m", &["t"]), ("n", &["t", "u"])]);
    assert!(interest(&script.group).contains("u"), "it asks for the topics of all members");
    assert!(script.sent().is_empty());
    script.handle_metadata(&[("t", 2), ("u", 1)]);
    let (_, request) = script.requests.last().map(|(owner, _, request)| (owner, request)).expect("SyncGroup");
    let mut bytes = Vec::new();
    (request.encode)(5, &mut bytes).expect("it can be encoded");
    let request = SyncGroupRequest::decode(&mut Reader::new(&bytes), 5).expect("it can be decoded");
    let of_n = request.assignments.iter().find(|sent| sent.member_id == "n").expect("it is assigned");
    let expected: SortedSet<_> = [("t", 1), ("u", 0)].map(TopicPartition::from).into();
    assert_eq!(decode_assignment(&of_n.assignment), Ok(expected));
    script.sync(&[("t", 0)]);
    assert!(!script.handle_metadata(&[("t", 2), ("u", 1)]));
    script.take_fetch();
    script.handle_metadata(&[("t", 2), ("u", 2)]);
    assert_eq!(script.take_fetch(), ["stop [t [0]]"]);
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn member_without_a_leader_joins_again_when_its_topic_grows() {
    let mut script = Script::new(&[("t", 2)]);
    script.join("", &[]);
    script.sync(&[("t", 0), ("t", 1)]);
    script.take_fetch();
    script.handle_metadata(&[("t", 2)]);
    assert!(script.sent().is_empty());
    script.handle_metadata(&[("t", 3)]);
    assert_eq!(script.take_fetch(), ["stop [t [0], t [1]]"]);
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn follower_does_not_join_again_when_topics_change() {
    let mut script = Script::stable();
    script.handle_metadata(&[("t", 9)]);
    assert!(script.sent().is_empty());
}

#[test]
fn leaving_aborts_commits_and_sends_leave_group() {
    let mut script = Script::stable();
    script.take_fetch();
    script.consume(0, 3);
    let (done, waiting) = completion();
    script.group.handle_command(script.now, GroupCommand::Close(GroupMembershipOperation::Default, done));
    script.settle();
    assert_eq!(script.take_fetch(), ["stop [t [0], t [1]]"]);
    let (_, committed) = script.commits.pop().expect("a commit");
    committed.complete(Ok(vec![Ok(())]));
    script.settle();
    assert_eq!(script.sent(), ["LeaveGroup"]);
    assert_eq!(waiting.try_take(), None);
    let (owner, _) = script.take(ApiKey::LeaveGroup);
    script.group.handle_response(script.now, owner, Err(Error::new(ErrorKind::Disconnected, "")));
    script.settle();
    assert_eq!(waiting.try_take(), Some(()));
    assert_eq!(script.take_fetch(), ["commit as Outside", "commit as Nobody"]);
    script.pass(Duration::from_secs(600));
    assert!(script.sent().is_empty(), "it is silent afterwards");
}

#[test]
fn leaving_ends_without_a_response() {
    let mut script = Script::stable();
    script.consume(0, 3);
    let (done, waiting) = completion();
    script.group.handle_command(script.now, GroupCommand::Unsubscribe(done));
    script.settle();
    script.pass(Duration::from_secs(12));
    assert_eq!(waiting.try_take(), Some(()));
}

#[test]
fn subscription_during_leaving_follows_it() {
    let mut script = Script::stable();
    let (done, waiting) = completion();
    script.group.handle_command(script.now, GroupCommand::Unsubscribe(done));
    script.group.handle_command(script.now, subscribe(&["u"]));
    script.metadata = metadata(&[("t", 4), ("u", 1)]);
    script.settle();
    assert_eq!(script.sent(), ["LeaveGroup"]);
    let (owner, _) = script.take(ApiKey::LeaveGroup);
    script.group.handle_response(script.now, owner, Err(Error::new(ErrorKind::Disconnected, "")));
    script.settle();
    assert_eq!(waiting.try_take(), Some(()));
    assert_eq!(script.sent(), ["JoinGroup"]);
    assert_eq!(interest(&script.group), [Arc::from("u")].into());
}

// ---- commits of members

fn committed_offsets(committer: Committer) -> CommittedOffsets {
    let backoff = (Duration::from_millis(100), Duration::from_secs(1));
    let mut offsets = CommittedOffsets::new("g".into(), true, Duration::from_secs(30), backoff);
    offsets.commit_as(committer);
    offsets
}

fn member(generation: i32, instance_id: Option<&str>) -> Committer {
    Committer::Member(MemberIdentity {
        member_id: "m".into(),
        generation: Generation::from_wire(generation).expect("it is valid"),
        instance_id: instance_id.map(str::to_owned),
        held: Held::Nothing,
    })
}

fn commit(offsets: &mut CommittedOffsets) -> Waiting<CommitResult> {
    commit_within(offsets, Duration::from_secs(30))
}

fn commit_within(offsets: &mut CommittedOffsets, timeout: Duration) -> Waiting<CommitResult> {
    commit_offset(offsets, GroupOffset::new("t", 0, 1), timeout)
}

fn commit_offset(
    offsets: &mut CommittedOffsets,
    offset: GroupOffset,
    timeout: Duration,
) -> Waiting<CommitResult> {
    let (done, waiting) = completion();
    let kind = GroupCallKind::Commit(vec![offset], done);
    offsets.call(START, GroupCall { timeout, kind });
    waiting
}

#[test]
fn commit_names_the_member_in_every_version() {
    for instance_id in [None, Some("i")] {
        let mut offsets = committed_offsets(member(4, instance_id));
        let _waiting = commit(&mut offsets);
        let (_, request) = offsets.poll_request(START).expect("a request");
        assert_eq!(*request.versions.start(), if instance_id.is_some() { 7 } else { 2 });
        for version in request.versions {
            let mut bytes = Vec::new();
            (request.encode)(version, &mut bytes).expect("it can be encoded");
            let sent = OffsetCommitRequest::decode(&mut Reader::new(&bytes), version).expect("a request");
            assert_eq!((sent.generation_id_or_member_epoch, &*sent.member_id), (4, "m"));
            assert_eq!(sent.group_instance_id.as_deref(), instance_id);
        }
    }
}

#[test]
fn commit_is_not_repeated_in_another_generation() {
    let mut offsets = committed_offsets(member(1, None));
    let waiting = commit(&mut offsets);
    let (number, _) = offsets.poll_request(START).expect("a request");
    offsets.handle_response(START, number, Err(Error::new(ErrorKind::Disconnected, "")));
    offsets.commit_as(member(2, None));
    let later = START + Duration::from_secs(1);
    offsets.handle_timeout(later);
    assert!(offsets.poll_request(later).is_none());
    let error = waiting.try_take().expect("it is completed").expect_err("it failed");
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.to_string().contains("rebalanced"), "{error}");
}

#[test]
fn subscribed_consumer_outside_its_group_commits_nothing() {
    let mut offsets = committed_offsets(Committer::Outside);
    let waiting = commit(&mut offsets);
    assert!(offsets.poll_request(START).is_none());
    let error = waiting.try_take().expect("it is completed").expect_err("it failed");
    assert!(error.to_string().contains("not a member"), "{error}");
    assert_eq!(error.context().refusal, Some(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn partitions_assigned_outside_the_group_wait_for_a_membership() {
    let mut offsets = committed_offsets(Committer::Outside);
    offsets.start(TopicPartition::new(Arc::from("t"), 0));
    assert!(offsets.poll_request(START).is_none());
    offsets.commit_as(member(3, None));
    let (_, request) = offsets.poll_request(START).expect("a request");
    assert_eq!(request.api, ApiKey::OffsetFetch);
}

// ---- cooperative members

impl Script {
    /// A cooperative member of generation 1 with the partitions t 0 and t 1.
    fn cooperative() -> Self {
        let mut script = Self::with(&[("t", 4)], vec![Assignor::CooperativeSticky.into()]);
        script.join("other", &[]);
        script.sync(&[("t", 0), ("t", 1)]);
        script.take_fetch();
        script
    }

    /// Returns the subscription in the JoinGroup request that has no response yet.
    fn joining(&self) -> Subscription {
        let (.., request) =
            self.requests.iter().find(|(.., sent)| sent.api == ApiKey::JoinGroup).expect("JoinGroup");
        let mut bytes = Vec::new();
        (request.encode)(9, &mut bytes).expect("it can be encoded");
        let request = JoinGroupRequest::decode(&mut Reader::new(&bytes), 9).expect("it can be decoded");
        Subscription::decode(&request.protocols[0].metadata).expect("it can be decoded")
    }
}

fn keys(numbers: &[i32]) -> SortedSet<TopicPartition> {
    numbers.iter().map(|number| TopicPartition::new("t", *number)).collect()
}

#[test]
fn cooperative_member_keeps_its_partitions_while_it_joins() {
    let mut script = Script::cooperative();
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(script.sent(), ["JoinGroup"]);
    assert!(script.take_fetch().is_empty(), "nothing stops");
    let sent = script.joining();
    assert_eq!((sent.owned, sent.generation.map(Generation::get)), (keys(&[0, 1]), Some(1)));
}

#[test]
fn cooperative_member_revokes_only_moving_partitions_and_rejoins() {
    let mut script = Script::cooperative();
    script.consume(1, 5);
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.join("other", &[]);
    script.sync(&[("t", 0), ("t", 2)]);
    assert_eq!(script.take_fetch(), ["commit as 2", "stop [t [1]]"]);
    let (offsets, done) = script.commits.pop().expect("a commit");
    assert_eq!((offsets[0].partition, offsets[0].offset), (1, 5));
    assert!(script.sent().is_empty());
    done.complete(Ok(vec![Ok(())]));
    script.settle();
    assert_eq!(script.take_fetch(), ["start [t [2]]"]);
    assert_eq!(script.joining().owned, keys(&[0, 2]), "the others wait for what it gave up");
    script.join("other", &[]);
    script.sync(&[("t", 0), ("t", 2)]);
    assert_eq!(script.take_fetch(), ["commit as 3"], "the same assignment changes nothing");
    assert!(script.sent().is_empty());
}

#[test]
fn cooperative_member_loses_everything_with_its_membership() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION] {
        let mut script = Script::cooperative();
        script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
        script.respond(ApiKey::JoinGroup, &JoinGroupResponse { error_code: code, ..Default::default() });
        assert_eq!(script.take_fetch(), ["commit as Outside", "stop [t [0], t [1]]"], "{code}");
        assert_eq!(script.joining().owned, keys(&[]), "{code}");
    }
}

#[test]
fn cooperative_member_gives_up_topics_that_it_dropped() {
    let mut script = Script::cooperative();
    script.consume(0, 4);
    script.group.handle_command(script.now, subscribe(&["u"]));
    script.settle();
    assert_eq!(script.take_fetch(), ["stop [t [0], t [1]]"]);
    let (_, done) = script.commits.pop().expect("a commit");
    done.complete(Ok(vec![Ok(())]));
    script.settle();
    let sent = script.joining();
    assert_eq!((sent.owned, sent.topics), (keys(&[]), [Arc::from("u")].into()));
}
