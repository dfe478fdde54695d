//! Consumer groups of the classic protocol, and committed offsets.

mod common;

use std::time::Duration;

use common::World;
use ottla_embedded_broker::{ClusterOptions, ConnectionId};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        delete_groups::DeleteGroupsRequest,
        describe_groups::DescribeGroupsRequest,
        find_coordinator::FindCoordinatorRequest,
        heartbeat::HeartbeatRequest,
        join_group::{self, JoinGroupRequest, JoinGroupResponse},
        leave_group::{self, LeaveGroupRequest},
        list_groups::ListGroupsRequest,
        offset_commit::{self, OffsetCommitRequest},
        offset_delete::{self, OffsetDeleteRequest},
        offset_fetch::{self, OffsetFetchRequest},
        sync_group::{self, SyncGroupRequest},
    },
    uuid::Uuid,
};

const GROUP: &str = "g";
const MS: Duration = Duration::from_millis(1);

fn coordinator(world: &mut World) -> i32 {
    let connection = world.open(1);
    world.call(connection, 3, &FindCoordinatorRequest { key: GROUP.to_owned(), ..Default::default() }).node_id
}

fn open(world: &mut World) -> ConnectionId {
    let broker = coordinator(world);
    world.open(broker)
}

fn join_request(member_id: &str, instance: Option<&str>, protocols: &[&str]) -> JoinGroupRequest {
    let protocols = protocols.iter().map(|name| join_group::request::Protocol {
        name: (*name).to_owned(),
        metadata: format!("{name} metadata").into_bytes(),
    });
    JoinGroupRequest {
        group_id: GROUP.to_owned(),
        session_timeout_ms: 1000,
        rebalance_timeout_ms: 3000,
        member_id: member_id.to_owned(),
        group_instance_id: instance.map(str::to_owned),
        protocol_type: "consumer".to_owned(),
        protocols: protocols.collect(),
        reason: None,
    }
}

/// Joins with a member ID that is requested first, as clients do from version 4 on. The response may be delayed.
fn join(world: &mut World, connection: ConnectionId, protocols: &[&str]) -> (String, i32) {
    let given = world.call(connection, 9, &join_request("", None, protocols));
    assert_eq!(given.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    let id = world.send(connection, 9, &join_request(&given.member_id, None, protocols));
    (given.member_id, id)
}

fn joined(world: &mut World, connection: ConnectionId, id: i32) -> Option<JoinGroupResponse> {
    world.respond::<JoinGroupRequest>(connection, 9, id)
}

fn sync_request(member_id: &str, generation_id: i32, assignments: &[(&str, &str)]) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member, assignment)| sync_group::request::Assignment {
        member_id: (*member).to_owned(),
        assignment: assignment.as_bytes().to_vec(),
    });
    SyncGroupRequest {
        group_id: GROUP.to_owned(),
        generation_id,
        member_id: member_id.to_owned(),
        protocol_type: None,
        protocol_name: None,
        assignments: assignments.collect(),
        group_instance_id: None,
    }
}

fn heartbeat(world: &mut World, connection: ConnectionId, member_id: &str, generation_id: i32) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: GROUP.to_owned(),
        generation_id,
        member_id: member_id.to_owned(),
        group_instance_id: None,
    };
    world.call(connection, 4, &request).error_code
}

fn state(world: &mut World) -> String {
    let connection = open(world);
    let groups = vec![GROUP.to_owned()];
    world.call(connection, 6, &DescribeGroupsRequest { groups, ..Default::default() }).groups[0]
        .group_state
        .clone()
}

/// Creates a stable group of one member in generation 1.
fn stable() -> (World, ConnectionId, String) {
    let mut world = World::with_topic();
    let connection = open(&mut world);
    let (member, id) = join(&mut world, connection, &["range"]);
    assert_eq!(joined(&mut world, connection, id).unwrap().generation_id, 1);
    let response = world.call(connection, 5, &sync_request(&member, 1, &[(&member, "all")]));
    assert_eq!((response.error_code, response.assignment.as_slice()), (ErrorCode::NONE, &b"all"[..]));
    (world, connection, member)
}

#[test]
fn second_member_makes_the_first_rejoin_and_the_leader_assign_to_both() {
    let (mut world, first, leader) = stable();
    assert_eq!(heartbeat(&mut world, first, &leader, 1), ErrorCode::NONE);
    let second = open(&mut world);
    let (follower, follower_join) = join(&mut world, second, &["range"]);
    assert!(joined(&mut world, second, follower_join).is_none(), "it waits for the first member");
    assert_eq!(heartbeat(&mut world, first, &leader, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let again = world.call(first, 9, &join_request(&leader, None, &["range"]));
    assert_eq!((again.generation_id, again.leader.as_str(), again.members.len()), (2, leader.as_str(), 2));
    let response = joined(&mut world, second, follower_join).unwrap();
    assert_eq!(
        (response.generation_id, response.members.len()),
        (2, 0),
        "only the leader gets the list of members"
    );

    let follower_sync = world.send(second, 5, &sync_request(&follower, 2, &[]));
    assert!(world.outputs.is_empty(), "there is no assignment yet");
    let response = world.call(first, 5, &sync_request(&leader, 2, &[(&leader, "one"), (&follower, "two")]));
    assert_eq!(response.assignment, b"one");
    let response = world.respond::<SyncGroupRequest>(second, 5, follower_sync).unwrap();
    assert_eq!(response.assignment, b"two");
    assert_eq!(state(&mut world), "Stable");
    assert_eq!(heartbeat(&mut world, second, &follower, 1), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(heartbeat(&mut world, second, "stranger", 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn silent_member_is_removed_after_its_session_timeout() {
    let (mut world, connection, member) = stable();
    for _ in 0..5 {
        world.pass(MS * 900);
        assert_eq!(heartbeat(&mut world, connection, &member, 1), ErrorCode::NONE);
    }
    world.pass(MS * 1001);
    assert_eq!(heartbeat(&mut world, connection, &member, 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(state(&mut world), "Empty");
    assert_eq!(world.cluster.poll_timeout(), None, "no timer is left behind");
}

#[test]
fn late_timer_does_not_extend_a_session() {
    let (mut world, connection, member) = stable();
    world.pass_without_timeouts(MS * 999);
    assert_eq!(heartbeat(&mut world, connection, &member, 1), ErrorCode::NONE);
    world.pass_without_timeouts(MS * 1001);
    assert_eq!(heartbeat(&mut world, connection, &member, 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(state(&mut world), "Empty");
}

#[test]
fn late_timer_does_not_extend_a_rebalance() {
    let (mut world, silent, _) = stable();
    let second = open(&mut world);
    let (member, id) = join(&mut world, second, &["range"]);
    world.pass_without_timeouts(MS * 3001);
    // Any request shows the time.
    coordinator(&mut world);
    let response = joined(&mut world, second, id).expect("the rebalance has ended");
    assert_eq!(response.members.iter().map(|of| &of.member_id).collect::<Vec<_>>(), [&member]);
    assert!(world.respond::<HeartbeatRequest>(silent, 4, 0).is_none());
}

#[test]
fn member_that_rejoins_too_late_is_removed() {
    let (mut world, first, silent) = stable();
    let second = open(&mut world);
    let (_, id) = join(&mut world, second, &["range"]);
    for _ in 0..3 {
        world.pass(MS * 900);
        assert_eq!(heartbeat(&mut world, first, &silent, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert!(joined(&mut world, second, id).is_none());
    world.pass(MS * 300);
    let response = joined(&mut world, second, id).unwrap();
    assert_eq!((response.generation_id, response.members.len()), (2, 1));
    assert_eq!(heartbeat(&mut world, first, &silent, 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn leader_that_never_assigns_is_removed() {
    let mut world = World::with_topic();
    let (first, second) = (open(&mut world), open(&mut world));
    let (leader, id) = join(&mut world, first, &["range"]);
    joined(&mut world, first, id).unwrap();
    let (_, id) = join(&mut world, second, &["range"]);
    world.call(first, 9, &join_request(&leader, None, &["range"]));
    let follower = joined(&mut world, second, id).unwrap();
    let sync = world.send(second, 5, &sync_request(&follower.member_id, 2, &[]));
    for _ in 0..4 {
        heartbeat(&mut world, first, &leader, 2);
        world.pass(MS * 800);
    }
    let response = world.respond::<SyncGroupRequest>(second, 5, sync).unwrap();
    assert_eq!(response.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    let again = world.call(second, 9, &join_request(&follower.member_id, None, &["range"]));
    assert_eq!((again.leader.as_str(), again.members.len()), (follower.member_id.as_str(), 1));
}

#[test]
fn leaving_member_starts_a_rebalance() {
    let (mut world, connection, member) = stable();
    let leave = |world: &mut World, member_id: &str| {
        let members =
            vec![leave_group::request::Member { member_id: member_id.to_owned(), ..Default::default() }];
        let request = LeaveGroupRequest { group_id: GROUP.to_owned(), members, ..Default::default() };
        world.call(connection, 5, &request).members[0].error_code
    };
    assert_eq!(leave(&mut world, "stranger"), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(leave(&mut world, &member), ErrorCode::NONE);
    assert_eq!(state(&mut world), "Empty");
    let request = LeaveGroupRequest { group_id: GROUP.to_owned(), member_id: member, ..Default::default() };
    assert_eq!(world.call(connection, 1, &request).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn group_chooses_a_protocol_that_all_members_support() {
    let mut world = World::with_topic();
    let (first, second, third) = (open(&mut world), open(&mut world), open(&mut world));
    let (leader, id) = join(&mut world, first, &["range", "sticky"]);
    assert_eq!(joined(&mut world, first, id).unwrap().protocol_name.as_deref(), Some("range"));
    let (_, id) = join(&mut world, second, &["sticky", "other"]);
    let again = world.call(first, 9, &join_request(&leader, None, &["range", "sticky"]));
    assert_eq!(again.protocol_name.as_deref(), Some("sticky"));
    assert_eq!(again.members[0].metadata, b"sticky metadata");
    joined(&mut world, second, id).unwrap();
    let refused = world.call(third, 9, &join_request("", None, &["range"]));
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn returning_static_member_causes_no_rebalance() {
    let mut world = World::with_topic();
    let connection = open(&mut world);
    let first = world.call(connection, 9, &join_request("", Some("i1"), &["range"]));
    assert_eq!(first.generation_id, 1);
    world.call(connection, 5, &sync_request(&first.member_id, 1, &[(&first.member_id, "all")]));
    let back = world.call(connection, 9, &join_request("", Some("i1"), &["range"]));
    assert_eq!((back.error_code, back.generation_id), (ErrorCode::NONE, 1));
    assert_ne!(back.member_id, first.member_id);
    assert!(back.skip_assignment);
    let response = world.call(connection, 5, &sync_request(&back.member_id, 1, &[]));
    assert_eq!(response.assignment, b"all");
    let fenced = world.call(connection, 9, &join_request(&first.member_id, Some("i1"), &["range"]));
    assert_eq!(fenced.error_code, ErrorCode::FENCED_INSTANCE_ID);
}

#[test]
fn empty_group_waits_for_more_members_if_configured() {
    let options = ClusterOptions { group_initial_rebalance_delay: MS * 500, ..Default::default() };
    let mut world = World::new(options);
    let (first, second) = (open(&mut world), open(&mut world));
    let (_, first_join) = join(&mut world, first, &["range"]);
    world.pass(MS * 300);
    let (_, second_join) = join(&mut world, second, &["range"]);
    assert!(world.outputs.is_empty());
    world.pass(MS * 200);
    assert_eq!(joined(&mut world, first, first_join).unwrap().members.len(), 2);
    assert_eq!(joined(&mut world, second, second_join).unwrap().generation_id, 1);
}

#[test]
fn only_the_coordinator_serves_a_group() {
    let mut world = World::with_topic();
    let other = coordinator(&mut world) % 3 + 1;
    let connection = world.open(other);
    let response = world.call(connection, 9, &join_request("", None, &["range"]));
    assert_eq!(response.error_code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(heartbeat(&mut world, connection, "m", 1), ErrorCode::NOT_COORDINATOR);
}

fn commit(
    world: &mut World,
    connection: ConnectionId,
    version: i16,
    (member_id, generation): (&str, i32),
    (partition, offset): (i32, i64),
) -> ErrorCode {
    let topic_id = world.cluster.control().topic_id("t").unwrap();
    let partition = offset_commit::request::Partition {
        partition_index: partition,
        committed_offset: offset,
        committed_metadata: Some("mine".to_owned()),
        ..Default::default()
    };
    let topic = offset_commit::request::Topic { name: "t".to_owned(), topic_id, partitions: vec![partition] };
    let request = OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation_id_or_member_epoch: generation,
        member_id: member_id.to_owned(),
        topics: vec![topic],
        ..Default::default()
    };
    world.call(connection, version, &request).topics[0].partitions[0].error_code
}

#[test]
fn members_commit_in_their_generation_and_others_only_into_an_empty_group() {
    let (mut world, connection, member) = stable();
    assert_eq!(commit(&mut world, connection, 9, (&member, 1), (0, 5)), ErrorCode::NONE);
    assert_eq!(commit(&mut world, connection, 10, (&member, 1), (1, 6)), ErrorCode::NONE);
    assert_eq!(commit(&mut world, connection, 9, (&member, 2), (0, 7)), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(commit(&mut world, connection, 9, ("", -1), (0, 7)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(
        commit(&mut world, connection, 9, (&member, 1), (9, 7)),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );

    for version in 1..=7 {
        let topic =
            offset_fetch::request::OffsetFetchTopic { name: "t".to_owned(), partition_indexes: vec![0, 2] };
        let request = OffsetFetchRequest {
            group_id: GROUP.to_owned(),
            topics: Some(vec![topic]),
            ..Default::default()
        };
        let response = world.call(connection, version, &request);
        let reported: Vec<_> = response.topics[0].partitions.iter().map(|p| p.committed_offset).collect();
        assert_eq!(reported, [5, -1], "version {version}");
    }
    let topic_id = world.cluster.control().topic_id("t").unwrap();
    for version in 8..=10 {
        let group = |topics| offset_fetch::request::Group {
            group_id: GROUP.to_owned(),
            topics,
            ..Default::default()
        };
        let topic = offset_fetch::request::GroupTopic {
            name: "t".to_owned(),
            topic_id,
            partition_indexes: vec![1, 2],
        };
        let strange = offset_fetch::request::GroupTopic {
            name: "s".to_owned(),
            topic_id: Uuid([9; 16]),
            partition_indexes: vec![0],
        };
        let groups = vec![group(Some(vec![topic, strange])), group(None)];
        let response = world.call(connection, version, &OffsetFetchRequest { groups, ..Default::default() });
        let offsets = |group: usize| -> Vec<i64> {
            let topics = response.groups[group].topics.iter();
            topics.flat_map(|topic| topic.partitions.iter().map(|p| p.committed_offset)).collect()
        };
        assert_eq!(offsets(0), [6, -1, -1], "version {version}");
        assert_eq!(offsets(1), [5, 6], "all that was committed, in version {version}");
    }
}

#[test]
fn groups_are_listed_described_and_deleted_when_empty() {
    let (mut world, connection, member) = stable();
    commit(&mut world, connection, 9, (&member, 1), (0, 5));
    let listed = world.call(connection, 5, &ListGroupsRequest::default());
    assert_eq!(
        (listed.groups[0].group_id.as_str(), listed.groups[0].group_state.as_str()),
        (GROUP, "Stable")
    );
    let empty = ListGroupsRequest { states_filter: vec!["Empty".to_owned()], ..Default::default() };
    assert!(world.call(connection, 5, &empty).groups.is_empty());
    let groups = vec![GROUP.to_owned(), String::new()];
    let described = world.call(connection, 6, &DescribeGroupsRequest { groups, ..Default::default() });
    assert_eq!(described.groups[0].members[0].member_assignment, b"all");
    assert_eq!(described.groups[1].error_code, ErrorCode::INVALID_GROUP_ID);

    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] };
    assert_eq!(world.call(connection, 2, &delete).results[0].error_code, ErrorCode::NON_EMPTY_GROUP);
    world.pass(MS * 1001);
    assert_eq!(commit(&mut world, connection, 9, ("", -1), (0, 8)), ErrorCode::NONE, "it is empty now");
    assert_eq!(world.call(connection, 2, &delete).results[0].error_code, ErrorCode::NONE);
    assert_eq!(world.call(connection, 2, &delete).results[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
}

fn delete_offsets(world: &mut World, connection: ConnectionId, group: &str) -> (ErrorCode, Vec<ErrorCode>) {
    let partitions =
        [0, 1, 9].map(|partition_index| offset_delete::request::Partition { partition_index }).to_vec();
    let topics = ["t", "strange"]
        .map(|name| offset_delete::request::Topic { name: name.to_owned(), partitions: partitions.clone() });
    let request = OffsetDeleteRequest { group_id: group.to_owned(), topics: topics.to_vec() };
    let response = world.call(connection, 0, &request);
    let codes = response.topics.iter().flat_map(|topic| topic.partitions.iter().map(|one| one.error_code));
    (response.error_code, codes.collect())
}

#[test]
fn offsets_are_deleted_unless_a_member_subscribes_to_the_topic() {
    const UNKNOWN: ErrorCode = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let mut world = World::with_topic();
    let connection = open(&mut world);
    assert_eq!(delete_offsets(&mut world, connection, GROUP).0, ErrorCode::GROUP_ID_NOT_FOUND);
    let (mut world, connection, member) = stable();
    commit(&mut world, connection, 9, (&member, 1), (0, 5));
    commit(&mut world, connection, 9, (&member, 1), (1, 6));
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    let (error, codes) = delete_offsets(&mut world, connection, GROUP);
    assert_eq!(error, ErrorCode::NONE);
    assert_eq!(codes, [subscribed, subscribed, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]);
    world.pass(MS * 1001);
    let (error, codes) = delete_offsets(&mut world, connection, GROUP);
    assert_eq!(error, ErrorCode::NONE);
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]);
    let request = OffsetFetchRequest { group_id: GROUP.to_owned(), topics: None, ..Default::default() };
    assert_eq!(world.call(connection, 7, &request).topics, []);
}
