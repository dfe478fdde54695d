//! Calls about groups, with scripted brokers.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    consumer_protocol::{ConsumerProtocolAssignment, assignment::AssignedPartition},
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::{ConsumerGroupDescribeResponse, response as consumer},
        delete_groups::{DeleteGroupsResponse, response as deleted},
        describe_groups::{DescribeGroupsResponse, response as described},
        leave_group::{LeaveGroupResponse, response as left},
        list_groups::{ListGroupsRequest, ListGroupsResponse, response as listed},
        offset_commit::{OffsetCommitRequest, OffsetCommitResponse, response as committed},
        offset_delete::{OffsetDeleteResponse, response as offset_deleted},
        offset_fetch::{OffsetFetchRequest, OffsetFetchResponse, response as fetched},
    },
    message::Message,
    primitive::Reader,
    vocabulary::{NodeId, TopicPartition},
};

use super::{
    GroupState, GroupType,
    delete::{MemberToRemove, delete_group, remove_members},
    describe::describe_group,
    list::{GroupFilter, list_groups},
    offsets::{alter_group_offsets, alter_group_offsets_once, delete_group_offsets, list_group_offsets},
};
use crate::{
    admin::{AdminCall, AdminCalls},
    completion::{Waiting, completion},
    connection::{
        Response,
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    contract::{
        metadata::{Metadata, Node, PartitionMetadata, TopicMetadata},
        part::{AdminRequest, MetadataChanges, Need, Needs, Part, RequestOwner},
        route::{CoordinatorKey, Route},
    },
    error::{Error, ErrorKind},
    machine::Instant,
    offsets::committed::GroupOffset,
    rng::Rng,
};

const START: Instant = Instant::from_nanos(1_000_000_000);
pub(in crate::admin) const TIMEOUT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(200);

/// The calls of a client in a cluster of two brokers.
pub(in crate::admin) struct Script {
    calls: AdminCalls,
    now: Instant,
}

/// A request: owner, route, API, version range and body.
pub(in crate::admin) struct Sent {
    owner: AdminRequest,
    pub(in crate::admin) route: Route,
    api: ApiKey,
    pub(in crate::admin) versions: RangeInclusive<i16>,
    pub(in crate::admin) body: Vec<u8>,
}

fn node(id: i32) -> NodeId {
    NodeId::from_wire(id).expect("a node ID")
}

fn metadata() -> Metadata {
    let broker = |host: &str| Node { host: host.into(), port: 9092, rack: None };
    let partition = PartitionMetadata { leader: Some(node(2)), ..PartitionMetadata::default() };
    let topic = TopicMetadata { partitions: [partition].into(), ..TopicMetadata::default() };
    Metadata {
        nodes: [(node(1), broker("a")), (node(2), broker("b"))].into(),
        topics: [("t".into(), topic)].into(),
        ..Metadata::default()
    }
}

impl Script {
    pub(in crate::admin) fn new<T>(
        call: impl FnOnce(crate::completion::Completion<T>) -> AdminCall,
    ) -> (Self, Waiting<T>) {
        let backoff = (Duration::from_millis(100), Duration::from_millis(100));
        let mut calls = AdminCalls::new(Duration::from_secs(60), backoff, Rng::from_seed(1));
        let (done, waiting) = completion();
        calls.start(START, call(done));
        calls.handle_metadata(START, &metadata(), &MetadataChanges::default());
        (Self { calls, now: START }, waiting)
    }

    /// Returns the lookup of coordinators and the other request that are due, encoded in these versions.
    pub(in crate::admin) fn due(&mut self, lookup: i16, version: i16) -> (Sent, Sent) {
        let in_version = |api| if api == ApiKey::FindCoordinator { lookup } else { version };
        let mut sent = self.sent_in(in_version);
        assert_eq!(sent.len(), 2, "two requests are due");
        sent.sort_by_key(|sent| sent.api != ApiKey::FindCoordinator);
        let other = sent.remove(1);
        (sent.remove(0), other)
    }

    /// Returns the requests that are due after the time step, encoded in `version`.
    pub(in crate::admin) fn sent(&mut self, version: i16) -> Vec<Sent> {
        self.sent_in(|_| version)
    }

    fn sent_in(&mut self, version: impl Fn(ApiKey) -> i16) -> Vec<Sent> {
        self.now += STEP;
        self.calls.handle_timeout(self.now, None);
        self.calls.advance(self.now, &metadata());
        let mut sent = Vec::new();
        while let Some(need) = self.calls.poll_need() {
            let Need::Request { route, request, owner: RequestOwner::Admin(owner) } = need else { continue };
            let mut body = Vec::new();
            (request.encode)(version(request.api), &mut body).expect("it can be encoded");
            sent.push(Sent { owner, route, api: request.api, versions: request.versions, body });
        }
        sent
    }

    /// Returns the only request that is due.
    pub(in crate::admin) fn one(&mut self, version: i16) -> Sent {
        let mut sent = self.sent(version);
        assert_eq!(sent.len(), 1, "one request is due");
        sent.remove(0)
    }

    pub(in crate::admin) fn respond(
        &mut self,
        request: &Sent,
        version: i16,
        response: &impl Message,
    ) -> bool {
        let mut bytes = Vec::new();
        response.encode(version, &mut bytes).expect("it can be encoded");
        let sent = InFlight {
            correlation_id: 1,
            api: request.api,
            version,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_response: true,
            queued_at: self.now,
            written_at: self.now,
            timeout: TIMEOUT,
        };
        let response = Response { request: sent, frame: Frame { len: bytes.len(), bytes }, body: 0 };
        self.calls.handle_response(self.now, request.owner, Ok(response))
    }

    pub(in crate::admin) fn fail(&mut self, request: &Sent, kind: ErrorKind) -> bool {
        self.calls.handle_response(self.now, request.owner, Err(Error::new(kind, "")))
    }
}

fn to_coordinator() -> Route {
    Route::Coordinator(CoordinatorKey::group("g"))
}

fn keys(partitions: &[i32]) -> Vec<TopicPartition> {
    partitions.iter().map(|number| TopicPartition::new("t", *number)).collect()
}

fn groups(ids: &[&str]) -> ListGroupsResponse {
    let group = |id: &&str| listed::Group {
        group_id: (*id).to_owned(),
        protocol_type: "consumer".into(),
        group_state: "Stable".into(),
        group_type: "classic".into(),
    };
    ListGroupsResponse { groups: ids.iter().map(group).collect(), ..Default::default() }
}

#[test]
fn groups_of_all_brokers_are_listed_once_and_in_order() {
    let filter = GroupFilter { states: vec![GroupState::Stable], types: vec![GroupType::Classic] };
    let (mut script, waiting) = Script::new(|done| list_groups(filter, TIMEOUT, done));
    let sent = script.sent(5);
    let routes: Vec<&Route> = sent.iter().map(|sent| &sent.route).collect();
    assert_eq!(routes, [&Route::Node(1), &Route::Node(2)]);
    let request = ListGroupsRequest::decode(&mut Reader::new(&sent[0].body), 5).unwrap();
    assert_eq!((&*request.states_filter[0], &*request.types_filter[0]), ("Stable", "Classic"));
    script.respond(&sent[0], 5, &groups(&["b", "a"]));
    assert_eq!(waiting.try_take(), None, "the other broker has not responded");
    script.respond(&sent[1], 5, &groups(&["c", "b"]));
    let listings = waiting.try_take().expect("both responded").expect("the call succeeds");
    let ids: Vec<&str> = listings.groups.iter().map(|group| &*group.group_id).collect();
    assert_eq!((ids, listings.failed), (vec!["a", "b", "c"], vec![]));
    assert_eq!(listings.groups[0].state, GroupState::Stable);
    assert_eq!(listings.groups[0].group_type, GroupType::Classic);
    assert!(listings.groups[0].is_of_consumers());
}

#[test]
fn broker_that_fails_is_reported_beside_the_groups_of_the_others() {
    let (mut script, waiting) = Script::new(|done| list_groups(GroupFilter::default(), TIMEOUT, done));
    let sent = script.sent(5);
    script.respond(&sent[0], 5, &groups(&["a"]));
    let loading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    script.respond(&sent[1], 5, &ListGroupsResponse { error_code: loading, ..Default::default() });
    let again = script.one(5);
    assert_eq!(again.route, Route::Node(2), "only the broker that failed is asked again");
    script.fail(&again, ErrorKind::Disconnected);
    script.now += TIMEOUT;
    script.calls.handle_timeout(script.now, None);
    let listings = waiting.try_take().expect("the deadline passed").expect("there is a partial result");
    assert_eq!(listings.groups.len(), 1);
    assert_eq!(listings.failed.len(), 1);
    assert_eq!((listings.failed[0].0, listings.failed[0].1.kind()), (2, ErrorKind::Disconnected));
    assert_eq!(script.calls.poll_timeout(), None, "nothing is left");
}

#[test]
fn listing_without_metadata_fails_at_its_deadline() {
    let mut calls = AdminCalls::new(TIMEOUT, (STEP, STEP), Rng::from_seed(1));
    let (done, waiting) = completion();
    calls.start(START, list_groups(GroupFilter::default(), TIMEOUT, done));
    calls.handle_timeout(START + TIMEOUT, None);
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
}

fn classic_group(error_code: ErrorCode, assignment: Vec<u8>) -> DescribeGroupsResponse {
    let assigned = ConsumerProtocolAssignment {
        assigned_partitions: vec![AssignedPartition { topic: "t".into(), partitions: vec![1, 0] }],
        user_data: None,
    };
    let member = |id: &str, member_assignment| described::Member {
        member_id: id.into(),
        member_assignment,
        ..described::Member::default()
    };
    let group = described::Group {
        error_code,
        group_id: "g".into(),
        group_state: "Stable".into(),
        protocol_type: "consumer".into(),
        protocol_data: "range".into(),
        authorized_operations: i32::MIN,
        members: vec![member("m1", assignment), member("m2", assigned.to_bytes(0).unwrap())],
        ..described::Group::default()
    };
    DescribeGroupsResponse { groups: vec![group], ..Default::default() }
}

#[test]
fn assignment_that_cannot_be_read_is_left_out() {
    let (mut script, waiting) = Script::new(|done| describe_group("g", true, TIMEOUT, done));
    let first = script.one(1);
    assert_eq!((first.api, first.route.clone()), (ApiKey::ConsumerGroupDescribe, to_coordinator()));
    let group = consumer::Group {
        error_code: ErrorCode::GROUP_ID_NOT_FOUND,
        group_id: "g".into(),
        ..Default::default()
    };
    script.respond(&first, 1, &ConsumerGroupDescribeResponse { groups: vec![group], ..Default::default() });
    let second = script.one(5);
    assert_eq!(second.api, ApiKey::DescribeGroups);
    let mut response = classic_group(ErrorCode::NONE, vec![0, 0, 0x7f, 0xff, 0xff, 0xff]);
    response.groups[0].authorized_operations = 0b1000;
    script.respond(&second, 5, &response);
    let group = waiting.try_take().unwrap().unwrap();
    assert_eq!(
        (group.group_type, group.state, &*group.assignor),
        (GroupType::Classic, GroupState::Stable, "range")
    );
    assert_eq!(group.members[0].assignment, []);
    assert_eq!(group.members[1].assignment, keys(&[0, 1]));
    assert_eq!(group.authorized_operations.unwrap().iter().collect::<Vec<_>>(), [3]);
}

#[test]
fn group_is_described_by_a_broker_without_the_consumer_protocol() {
    let (mut script, waiting) = Script::new(|done| describe_group("g", false, TIMEOUT, done));
    let first = script.one(1);
    script.fail(&first, ErrorKind::UnsupportedVersion);
    let second = script.one(0);
    assert_eq!(second.api, ApiKey::DescribeGroups);
    assert!(script.respond(&second, 0, &classic_group(ErrorCode::NOT_COORDINATOR, Vec::new())), "it moved");
    let third = script.one(0);
    script.respond(&third, 0, &classic_group(ErrorCode::NONE, Vec::new()));
    assert_eq!(waiting.try_take().unwrap().unwrap().members.len(), 2);
}

#[test]
fn group_of_the_consumer_protocol_has_epochs_and_targets() {
    let (mut script, waiting) = Script::new(|done| describe_group("g", false, TIMEOUT, done));
    let request = script.one(1);
    let topic = |partitions| consumer::TopicPartition {
        topic_name: "t".into(),
        partitions,
        ..consumer::TopicPartition::default()
    };
    let member = consumer::Member {
        member_id: "m".into(),
        member_epoch: 3,
        assignment: consumer::Assignment { topic_partitions: vec![topic(vec![0])] },
        target_assignment: consumer::TargetAssignment { topic_partitions: vec![topic(vec![1, 0])] },
        member_type: 1,
        ..consumer::Member::default()
    };
    let group = consumer::Group {
        group_id: "g".into(),
        group_state: "Reconciling".into(),
        group_epoch: 4,
        assignment_epoch: 4,
        assignor_name: "uniform".into(),
        members: vec![member],
        ..consumer::Group::default()
    };
    script.respond(&request, 1, &ConsumerGroupDescribeResponse { groups: vec![group], ..Default::default() });
    let group = waiting.try_take().unwrap().unwrap();
    assert_eq!((group.group_type, group.state), (GroupType::Consumer, GroupState::Reconciling));
    assert_eq!((group.group_epoch, group.members[0].epoch), (Some(4), Some(3)));
    assert_eq!(group.members[0].assignment, keys(&[0]));
    assert_eq!(group.members[0].target_assignment, Some(keys(&[0, 1])));
    assert_eq!(group.members[0].uses_classic, Some(false));
}

fn deletion(error_code: ErrorCode) -> DeleteGroupsResponse {
    let results =
        vec![deleted::DeleteGroupsResult { group_id: "g".into(), error_code, ..Default::default() }];
    DeleteGroupsResponse { results, ..Default::default() }
}

#[test]
fn group_that_an_earlier_request_deleted_counts_as_deleted() {
    let (mut script, waiting) = Script::new(|done| delete_group("g", TIMEOUT, done));
    let first = script.one(2);
    script.fail(&first, ErrorKind::Disconnected);
    let second = script.one(2);
    script.respond(&second, 2, &deletion(ErrorCode::GROUP_ID_NOT_FOUND));
    assert_eq!(waiting.try_take(), Some(Ok(())));

    let (mut script, waiting) = Script::new(|done| delete_group("g", TIMEOUT, done));
    let first = script.one(2);
    script.respond(&first, 2, &deletion(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
    let second = script.one(2);
    script.respond(&second, 2, &deletion(ErrorCode::GROUP_ID_NOT_FOUND));
    let error = waiting.try_take().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::GROUP_ID_NOT_FOUND));
}

#[test]
fn message_of_a_failed_deletion_is_part_of_the_error() {
    let (mut script, waiting) = Script::new(|done| delete_group("g", TIMEOUT, done));
    let request = script.one(3);
    let mut response = deletion(ErrorCode::GROUP_DELETION_FAILED);
    response.results[0].error_message = Some("the plug-in is down".into());
    script.respond(&request, 3, &response);
    let error = waiting.try_take().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::GROUP_DELETION_FAILED));
    assert!(error.to_string().contains("the plug-in is down"), "{error}");
}

#[test]
fn response_without_the_group_is_refused_after_some_attempts() {
    let (mut script, waiting) = Script::new(|done| delete_group("g", TIMEOUT, done));
    for _ in 0..4 {
        assert_eq!(waiting.try_take(), None);
        let request = script.one(2);
        script.respond(&request, 2, &DeleteGroupsResponse::default());
    }
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::BadResponse);
}

#[test]
fn each_removed_member_has_its_result() {
    let members = vec![
        MemberToRemove::Instance("i".into()),
        MemberToRemove::Member("m".into()),
        MemberToRemove::Member("x".into()),
    ];
    let (mut script, waiting) =
        Script::new(|done| remove_members("g", members, Some("because".into()), TIMEOUT, done));
    let request = script.one(5);
    let member = |id: &str, instance: Option<&str>, error_code| left::Member {
        member_id: id.into(),
        group_instance_id: instance.map(Into::into),
        error_code,
    };
    let members =
        vec![member("m", None, ErrorCode::UNKNOWN_MEMBER_ID), member("", Some("i"), ErrorCode::NONE)];
    script.respond(&request, 5, &LeaveGroupResponse { members, ..Default::default() });
    let results = waiting.try_take().unwrap().unwrap();
    let kinds: Vec<_> = results.into_iter().map(|result| result.map_err(|error| error.kind())).collect();
    let unknown = ErrorKind::Broker(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(kinds, [Ok(()), Err(unknown), Err(ErrorKind::BadResponse)]);
}

/// An offset of each partition of topic `t`, with its error code.
fn offsets(version: i16, offsets: &[(i32, i64, ErrorCode)]) -> OffsetFetchResponse {
    let old = |(partition_index, committed_offset, error_code): &(i32, i64, ErrorCode)| {
        fetched::OffsetFetchTopicPartition {
            partition_index: *partition_index,
            committed_offset: *committed_offset,
            error_code: *error_code,
            metadata: Some("m".into()),
            ..fetched::OffsetFetchTopicPartition::default()
        }
    };
    let new = |(partition_index, committed_offset, error_code): &(i32, i64, ErrorCode)| {
        fetched::GroupTopicPartition {
            partition_index: *partition_index,
            committed_offset: *committed_offset,
            error_code: *error_code,
            metadata: Some("m".into()),
            ..fetched::GroupTopicPartition::default()
        }
    };
    if version < 8 {
        let topic =
            fetched::OffsetFetchTopic { name: "t".into(), partitions: offsets.iter().map(old).collect() };
        return OffsetFetchResponse { topics: vec![topic], ..Default::default() };
    }
    let topic = fetched::GroupTopic {
        name: "t".into(),
        partitions: offsets.iter().map(new).collect(),
        ..fetched::GroupTopic::default()
    };
    let group = fetched::Group { group_id: "g".into(), topics: vec![topic], ..Default::default() };
    OffsetFetchResponse { groups: vec![group], ..Default::default() }
}

#[test]
fn committed_offsets_are_listed_in_every_version() {
    for (version, all) in [(1, false), (2, true), (7, false), (8, true), (9, false)] {
        let wanted = (!all).then(|| keys(&[1, 0, 5]));
        let (mut script, waiting) =
            Script::new(|done| list_group_offsets("g", wanted, version >= 7, TIMEOUT, done));
        let request = script.one(version);
        assert_eq!(request.route, to_coordinator());
        let decoded = OffsetFetchRequest::decode(&mut Reader::new(&request.body), version).unwrap();
        assert_eq!(decoded.require_stable, version >= 7);
        script.respond(
            &request,
            version,
            &offsets(version, &[(0, 7, ErrorCode::NONE), (1, -1, ErrorCode::NONE)]),
        );
        let results = waiting.try_take().unwrap().unwrap();
        let shown: Vec<_> = results
            .iter()
            .map(|(key, result)| (key.partition, result.as_ref().unwrap().as_ref().map(|found| found.offset)))
            .collect();
        let expected =
            if all { vec![(0, Some(7)), (1, None)] } else { vec![(1, None), (0, Some(7)), (5, None)] };
        assert_eq!(shown, expected, "v{version}");
    }
}

#[test]
fn unstable_offset_is_requested_again_until_the_deadline() {
    let (mut script, waiting) = Script::new(|done| list_group_offsets("g", None, true, TIMEOUT, done));
    let unstable = ErrorCode::UNSTABLE_OFFSET_COMMIT;
    for _ in 0..3 {
        let request = script.one(8);
        script.respond(&request, 8, &offsets(8, &[(0, 7, ErrorCode::NONE), (1, -1, unstable)]));
        assert_eq!(waiting.try_take(), None);
    }
    script.now += TIMEOUT;
    script.calls.handle_timeout(script.now, None);
    let results = waiting.try_take().unwrap().expect("the other partition has a result");
    assert_eq!(results[0].1.as_ref().unwrap().as_ref().unwrap().offset, 7);
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(unstable));
}

fn commits(codes: &[(i32, ErrorCode)]) -> OffsetCommitResponse {
    let partition = |(partition_index, error_code): &(i32, ErrorCode)| committed::Partition {
        partition_index: *partition_index,
        error_code: *error_code,
    };
    let partitions = codes.iter().map(partition).collect();
    let topic = committed::Topic { name: "t".into(), partitions, ..Default::default() };
    OffsetCommitResponse { topics: vec![topic], ..Default::default() }
}

#[test]
fn only_offsets_without_a_result_are_committed_again() {
    let offsets = vec![GroupOffset::new("t", 0, 7), GroupOffset::new("t", 1, 8)];
    let (mut script, waiting) = Script::new(|done| alter_group_offsets("g", offsets, TIMEOUT, done));
    let request = script.one(9);
    let moved = ErrorCode::NOT_COORDINATOR;
    assert!(script.respond(&request, 9, &commits(&[(0, ErrorCode::NONE), (1, moved)])));
    let request = script.one(9);
    let decoded = OffsetCommitRequest::decode(&mut Reader::new(&request.body), 9).unwrap();
    let again: Vec<_> = decoded.topics[0].partitions.iter().map(|one| one.partition_index).collect();
    assert_eq!(again, [1]);
    assert_eq!((decoded.generation_id_or_member_epoch, &*decoded.member_id), (-1, ""));
    script.respond(&request, 9, &commits(&[(1, ErrorCode::UNKNOWN_MEMBER_ID)]));
    let results = waiting.try_take().unwrap().unwrap();
    assert_eq!(results[0].1, Ok(()));
    let error = results[1].1.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_MEMBER_ID));
    assert!(error.to_string().contains("stop them first"), "{error}");
}

#[test]
fn offsets_that_are_committed_once_have_the_first_response() {
    let offsets = vec![GroupOffset::new("t", 0, 7), GroupOffset::new("t", 1, 8)];
    let (mut script, waiting) = Script::new(|done| alter_group_offsets_once("g", offsets, TIMEOUT, done));
    let request = script.one(9);
    let moved = ErrorCode::NOT_COORDINATOR;
    let has_moved = script.respond(&request, 9, &commits(&[(0, ErrorCode::NONE), (1, moved)]));
    assert!(has_moved, "the next call looks for the coordinator");
    let results = waiting.try_take().unwrap().unwrap();
    assert_eq!(results[0].1, Ok(()));
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(moved));
}

#[test]
fn results_of_partitions_do_not_fail_each_other() {
    let (mut script, waiting) =
        Script::new(|done| delete_group_offsets("g", keys(&[0, 1, 2]), TIMEOUT, done));
    let request = script.one(0);
    let partition = |partition_index, error_code| offset_deleted::Partition { partition_index, error_code };
    let partitions = vec![partition(0, ErrorCode::NONE), partition(1, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC)];
    let topics = vec![offset_deleted::Topic { name: "t".into(), partitions }];
    script.respond(&request, 0, &OffsetDeleteResponse { topics, ..Default::default() });
    script.now += TIMEOUT;
    script.calls.handle_timeout(script.now, None);
    let results = waiting.try_take().unwrap().unwrap();
    let kinds: Vec<_> =
        results.iter().map(|(_, result)| result.as_ref().copied().map_err(Error::kind)).collect();
    let subscribed = ErrorKind::Broker(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    assert_eq!(kinds, [Ok(()), Err(subscribed), Err(ErrorKind::BadResponse)]);
}

#[test]
fn refusal_of_the_whole_deletion_is_the_error_of_the_call() {
    let (mut script, waiting) = Script::new(|done| delete_group_offsets("g", keys(&[0]), TIMEOUT, done));
    let request = script.one(0);
    let error_code = ErrorCode::GROUP_ID_NOT_FOUND;
    script.respond(&request, 0, &OffsetDeleteResponse { error_code, ..Default::default() });
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::Broker(error_code));
}
