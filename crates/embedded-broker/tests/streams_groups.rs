//! Streams groups (KIP-1071): joins, epochs, tasks, topics and errors.

#[path = "common/mod.rs"]
mod common;

use std::time::Duration;

use common::World;
use ottla_embedded_broker::{ClusterOptions, ConnectionId};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        join_group::{JoinGroupRequest, request as request_of_join},
        list_groups::ListGroupsRequest,
        streams_group_describe::{StreamsGroupDescribeRequest, response as described},
        streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, request},
        streams_group_topology_description_update::{
            StreamsGroupTopologyDescriptionUpdateRequest, request as update,
        },
    },
};

const SECOND: Duration = Duration::from_secs(1);

/// One broker with topic `t` of four partitions, and a connection.
struct Group {
    world: World,
    connection: ConnectionId,
}

fn topology(sources: &[&str]) -> request::Topology {
    let source_topics = sources.iter().map(|name| (*name).to_owned()).collect();
    let part = request::Subtopology { subtopology_id: "a".to_owned(), source_topics, ..Default::default() };
    request::Topology { epoch: 0, subtopologies: vec![part] }
}

fn join(member: &str) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        member_id: member.to_owned(),
        rebalance_timeout_ms: 5_000,
        topology: Some(topology(&["t"])),
        active_tasks: Some(vec![]),
        standby_tasks: Some(vec![]),
        warmup_tasks: Some(vec![]),
        process_id: Some(member.to_owned()),
        client_tags: Some(vec![]),
        ..Default::default()
    }
}

/// A heartbeat that names these active tasks, if any are given.
fn beat(member: &str, member_epoch: i32, active: Option<&[i32]>) -> StreamsGroupHeartbeatRequest {
    let task =
        |list: &[i32]| request::ActiveTask { subtopology_id: "a".to_owned(), partitions: list.to_vec() };
    StreamsGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        member_id: member.to_owned(),
        member_epoch,
        active_tasks: active.map(|list| vec![task(list)]),
        standby_tasks: active.map(|_| vec![]),
        warmup_tasks: active.map(|_| vec![]),
        ..Default::default()
    }
}

/// The content of a successful response: the epoch, and the partitions of active tasks if there are any.
type Reported = (i32, Option<Vec<i32>>);

impl Group {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut ClusterOptions)) -> Self {
        let mut options = ClusterOptions { brokers: 1, ..ClusterOptions::default() };
        change(&mut options);
        let mut world = World::new(options);
        world.cluster.control().create_topic("t", 4, 1).unwrap();
        let connection = world.open(1);
        Self { world, connection }
    }

    fn send(&mut self, request: &StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
        self.world.call(self.connection, 1, request)
    }

    fn reported(&mut self, request: &StreamsGroupHeartbeatRequest) -> Reported {
        let response = self.send(request);
        assert_eq!(response.error_code, ErrorCode::NONE, "{:?}", response.error_message);
        let active =
            response.active_tasks.map(|tasks| tasks.into_iter().flat_map(|task| task.partitions).collect());
        (response.member_epoch, active)
    }

    fn refused(&mut self, request: &StreamsGroupHeartbeatRequest) -> ErrorCode {
        self.send(request).error_code
    }

    fn describe(&mut self) -> described::Group {
        let request = StreamsGroupDescribeRequest {
            group_ids: vec!["g".to_owned()],
            include_authorized_operations: true,
            include_topology_description: true,
        };
        let connection = self.connection;
        self.world.call(connection, 1, &request).groups.remove(0)
    }
}

#[test]
fn streams_assignment_is_sent_once() {
    let mut group = Group::new();
    assert_eq!(group.reported(&join("a")), (1, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.reported(&beat("a", 1, None)), (1, None));
    assert_eq!(group.reported(&beat("a", 1, Some(&[0, 1, 2, 3]))), (1, None));
    // A member that joins again gets everything again, and keeps its epoch.
    assert_eq!(group.reported(&join("a")), (1, Some(vec![0, 1, 2, 3])));
    let described = group.describe();
    assert_eq!(
        (&*described.group_state, described.group_epoch, described.assignment_epoch),
        ("Stable", 1, 1)
    );
    assert_eq!(described.topology.unwrap().subtopologies.unwrap()[0].source_topics, ["t"]);
    assert_eq!(described.members[0].assignment.active_tasks[0].partitions, [0, 1, 2, 3]);
    assert_ne!(described.authorized_operations, i32::MIN);
    let listed = group.world.call(group.connection, 5, &ListGroupsRequest::default()).groups;
    assert_eq!((&*listed[0].group_type, &*listed[0].group_state), ("streams", "Stable"));
}

#[test]
fn offsets_are_kept_for_tasks_of_the_member_only() {
    let mut group = Group::new();
    let _ = group.reported(&join("a"));
    let offset = |subtopology_id: &str, partition| request::TaskOffset {
        subtopology_id: subtopology_id.to_owned(),
        partition,
        offset: 7,
    };
    let task_offsets = Some(vec![offset("a", 3), offset("a", 99), offset("other", 3)]);
    let _ = group.reported(&StreamsGroupHeartbeatRequest { task_offsets, ..beat("a", 1, None) });
    let member = group.describe().members.remove(0);
    let known: Vec<_> =
        member.task_offsets.iter().map(|it| (&*it.subtopology_id, it.partition, it.offset)).collect();
    assert_eq!(known, [("a", 3, 7)]);
}

#[test]
fn tasks_of_a_chain_are_as_many_as_those_of_its_beginning() {
    let mut group = Group::new();
    let part = |number: usize| {
        let name = |number: usize| format!("between-{number}");
        let source =
            request::RepartitionSourceTopic { name: name(number.saturating_sub(1)), ..Default::default() };
        request::Subtopology {
            subtopology_id: format!("{:04}", 9999 - number),
            source_topics: if number == 0 { vec!["t".to_owned()] } else { vec![] },
            repartition_source_topics: if number == 0 { vec![] } else { vec![source] },
            repartition_sink_topics: vec![name(number)],
            ..Default::default()
        }
    };
    // The last one comes first, so that each look at all of them finds out about one more.
    let subtopologies = std::iter::once(part(0)).chain((1..20).rev().map(part)).collect();
    let topology = Some(request::Topology { epoch: 0, subtopologies });
    let _ = group.send(&StreamsGroupHeartbeatRequest { topology, ..join("a") });
    assert_eq!(group.reported(&beat("a", 1, None)).1.map(|tasks| tasks.len()), Some(20 * 4));
}

#[test]
fn active_task_goes_to_another_member_after_it_is_given_up() {
    let mut group = Group::new();
    let _ = group.reported(&join("a"));
    assert_eq!(group.reported(&join("b")), (2, Some(vec![])));
    assert_eq!(group.reported(&beat("a", 1, None)), (1, Some(vec![0, 1])));
    assert_eq!(group.reported(&beat("b", 2, Some(&[]))), (2, None));
    assert_eq!(group.describe().group_state, "Reconciling");
    assert_eq!(group.reported(&beat("a", 1, Some(&[0, 1, 2, 3]))), (1, None), "it has them still");
    assert_eq!(group.reported(&beat("a", 1, Some(&[0, 1]))), (2, None));
    assert_eq!(group.reported(&beat("b", 2, None)), (2, Some(vec![2, 3])));
    assert_eq!(group.describe().group_state, "Stable");

    assert_eq!(group.reported(&beat("a", -1, None)), (-1, None));
    assert_eq!(group.reported(&beat("b", 2, None)), (3, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.reported(&beat("b", -1, None)), (-1, None));
    assert_eq!(group.describe().group_state, "Empty");
}

#[test]
fn old_epoch_is_accepted_if_no_task_is_too_many() {
    let mut group = Group::new();
    let _ = group.reported(&join("a"));
    let _ = group.reported(&join("b"));
    let _ = group.reported(&beat("a", 1, None));
    let _ = group.reported(&beat("a", 1, Some(&[0, 1])));
    // The response with epoch 2 was lost.
    assert_eq!(group.reported(&beat("a", 1, Some(&[0, 1]))), (2, None));
    assert_eq!(group.refused(&beat("a", 1, Some(&[0, 1, 2]))), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.refused(&beat("a", 1, None)), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.refused(&beat("a", 7, None)), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.refused(&beat("c", 2, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.refused(&beat("c", -1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn silent_and_slow_members_are_removed() {
    let mut group = Group::with(|options| options.group_streams_session_timeout = SECOND * 10);
    let _ = group.reported(&join("a"));
    let _ = group.reported(&join("b"));
    assert_eq!(group.reported(&beat("a", 1, None)), (1, Some(vec![0, 1])));
    // `a` does not give up its tasks within its rebalance timeout of 5 s.
    group.world.pass(SECOND * 6);
    assert_eq!(group.refused(&beat("a", 1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.reported(&beat("b", 2, None)), (3, Some(vec![0, 1, 2, 3])));
    group.world.pass(SECOND * 11);
    assert_eq!(group.refused(&beat("b", 3, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.describe().group_state, "Empty");
}

#[test]
fn status_names_missing_topics_and_internal_ones_are_created() {
    let mut group = Group::new();
    let mut request = join("a");
    let mut topology = topology(&["t", "missing"]);
    let changelog = request::StateChangelogTopic { name: "counts".to_owned(), ..Default::default() };
    topology.subtopologies[0].state_changelog_topics = vec![changelog];
    request.topology = Some(topology);
    let response = group.send(&request);
    let status = response.status.unwrap();
    assert_eq!((status[0].status_code, &*status[0].status_detail), (1, "Source topics missing are missing."));
    assert_eq!(response.active_tasks, Some(vec![]));
    assert_eq!(group.describe().group_state, "NotReady");
    group.world.cluster.control().create_topic("missing", 5, 1).unwrap();
    let response = group.send(&beat("a", 1, None));
    assert_eq!(response.status.unwrap()[0].status_code, 3);
    let (epoch, active) = group.reported(&beat("a", response.member_epoch, None));
    assert_eq!(active, Some(vec![0, 1, 2, 3, 4]));
    assert!(group.world.cluster.control().partition("counts", 4).is_some());
    let response =
        group.send(&StreamsGroupHeartbeatRequest { shutdown_application: true, ..beat("a", epoch, None) });
    assert_eq!(response.status.unwrap()[0].status_code, 4);
}

#[test]
fn standby_tasks_go_to_other_processes() {
    let mut group = Group::with(|options| options.group_streams_num_standby_replicas = 1);
    let first = group.send(&join("a"));
    assert_eq!(first.standby_tasks, Some(vec![]), "there is no other process");
    let second = group.send(&StreamsGroupHeartbeatRequest { process_id: Some("a".to_owned()), ..join("b") });
    assert_eq!(second.standby_tasks, Some(vec![]));
    let third = group.send(&join("c"));
    assert_eq!(third.standby_tasks.unwrap()[0].partitions.len(), 3, "those of the other process");
}

#[test]
fn requests_that_break_the_rules_are_refused() {
    let mut group = Group::new();
    let invalid = [
        StreamsGroupHeartbeatRequest { member_id: String::new(), ..join("a") },
        StreamsGroupHeartbeatRequest { group_id: String::new(), ..join("a") },
        StreamsGroupHeartbeatRequest { instance_id: Some(String::new()), ..join("a") },
        StreamsGroupHeartbeatRequest { rack_id: Some(String::new()), ..join("a") },
        StreamsGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..join("a") },
        StreamsGroupHeartbeatRequest { topology: None, ..join("a") },
        StreamsGroupHeartbeatRequest { standby_tasks: None, ..join("a") },
        StreamsGroupHeartbeatRequest { member_epoch: -2, ..join("a") },
        StreamsGroupHeartbeatRequest { member_epoch: -3, ..join("a") },
        StreamsGroupHeartbeatRequest { member_epoch: 1, ..join("a") },
        StreamsGroupHeartbeatRequest { warmup_tasks: None, ..beat("a", 1, Some(&[])) },
    ];
    for request in invalid {
        assert_eq!(group.refused(&request), ErrorCode::INVALID_REQUEST, "{request:?}");
    }
    assert_eq!(group.refused(&beat("a", 1, None)), ErrorCode::GROUP_ID_NOT_FOUND);
    let _ = group.reported(&join("a"));
    let other = StreamsGroupHeartbeatRequest { topology: Some(topology(&["u"])), ..join("b") };
    assert_eq!(group.refused(&other), ErrorCode::INVALID_REQUEST);
    let classic = JoinGroupRequest {
        group_id: "g".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![request_of_join::Protocol { name: "range".to_owned(), ..Default::default() }],
        ..Default::default()
    };
    let connection = group.connection;
    let response = group.world.call(connection, 3, &classic);
    assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn static_member_that_returns_keeps_its_tasks() {
    let mut group = Group::new();
    let of_instance = |request| StreamsGroupHeartbeatRequest { instance_id: Some("i".to_owned()), ..request };
    assert_eq!(group.reported(&of_instance(join("a"))), (1, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.refused(&of_instance(join("b"))), ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.reported(&of_instance(beat("a", -2, None))), (-2, None));
    let (_, active) = group.reported(&of_instance(join("b")));
    assert_eq!(active, Some(vec![0, 1, 2, 3]));
    assert_eq!(group.refused(&beat("a", 1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
}

fn push(member: &str) -> StreamsGroupTopologyDescriptionUpdateRequest {
    let node =
        |name: &str, node_type| update::Node { name: name.to_owned(), node_type, ..Default::default() };
    let nodes = vec![node("source", 1), node("processor", 2), node("sink", 3)];
    let part = update::Subtopology { subtopology_id: "a".to_owned(), nodes };
    let store = update::GlobalStore {
        source: update::Source { name: "pages".to_owned(), node_type: 1, ..Default::default() },
        processor: update::Processor {
            name: "pages-store".to_owned(),
            node_type: 2,
            stores: vec!["pages".to_owned()],
            ..Default::default()
        },
    };
    StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: "g".to_owned(),
        member_id: member.to_owned(),
        topology_epoch: 0,
        topology_description: update::TopologyDescription {
            subtopologies: vec![part],
            global_stores: vec![store],
        },
    }
}

#[test]
fn description_of_the_topology_is_asked_for_stored_and_returned() {
    let mut group = Group::with(|options| options.group_streams_description_interval = Some(SECOND * 30));
    assert!(group.send(&join("a")).topology_description_required);
    assert!(!group.send(&beat("a", 1, None)).topology_description_required, "one question at a time");
    assert!(!group.send(&join("b")).topology_description_required);
    assert_eq!(group.describe().topology_description_status, 1);
    group.world.pass(SECOND * 30);
    let epoch = group.send(&beat("b", 2, None)).member_epoch;
    let asked = group.send(&beat("a", 1, None));
    assert!(!asked.topology_description_required, "b was asked");
    let connection = group.connection;
    assert_eq!(group.world.call(connection, 0, &push("b")).error_code, ErrorCode::NONE);
    let described = group.describe();
    assert_eq!(described.topology_description_status, 3);
    let description = described.topology_description.expect("it is stored");
    let types: Vec<_> = description.subtopologies[0].nodes.iter().map(|node| node.node_type).collect();
    assert_eq!((types, &*description.global_stores[0].processor.stores[0]), (vec![1, 2, 3], "pages"));
    group.world.pass(SECOND * 31);
    let later = group.send(&beat("b", epoch, None));
    assert!(!later.topology_description_required, "it is stored");
    group.world.cluster.control().lose_topology_description("g");
    assert!(group.send(&beat("b", later.member_epoch, None)).topology_description_required);
    let progress = group.world.cluster.control().streams_progress("g").expect("it exists").description;
    assert_eq!((progress.asked, progress.pushed, progress.unasked, progress.is_stored), (3, 1, 0, false));
}

#[test]
fn descriptions_that_break_the_rules_are_refused() {
    let mut group = Group::new();
    assert!(!group.send(&join("a")).topology_description_required);
    let connection = group.connection;
    let refused = |group: &mut Group, request: &StreamsGroupTopologyDescriptionUpdateRequest| {
        group.world.call(connection, 0, request).error_code
    };
    assert_eq!(refused(&mut group, &push("a")), ErrorCode::UNSUPPORTED_VERSION, "there is no plug-in");
    group.world.cluster.control().options().group_streams_description_interval = Some(SECOND);
    let with = |change: fn(&mut StreamsGroupTopologyDescriptionUpdateRequest)| {
        let mut request = push("a");
        change(&mut request);
        request
    };
    let cases = [
        (with(|it| it.member_id.clear()), ErrorCode::INVALID_REQUEST),
        (with(|it| it.group_id.clear()), ErrorCode::INVALID_REQUEST),
        (with(|it| it.topology_epoch = 1), ErrorCode::INVALID_REQUEST),
        (
            with(|it| it.topology_description.subtopologies[0].nodes[0].node_type = 4),
            ErrorCode::INVALID_REQUEST,
        ),
        (
            with(|it| it.topology_description.global_stores[0].processor.node_type = 3),
            ErrorCode::INVALID_REQUEST,
        ),
        (push("other"), ErrorCode::UNKNOWN_MEMBER_ID),
        (with(|it| it.group_id = "missing".to_owned()), ErrorCode::GROUP_ID_NOT_FOUND),
    ];
    for (request, code) in cases {
        assert_eq!(refused(&mut group, &request), code, "{request:?}");
    }
    let none = beat("a", 1, None);
    assert!(!group.world.call(connection, 0, &none).topology_description_required, "version 0 can't ask");
}
