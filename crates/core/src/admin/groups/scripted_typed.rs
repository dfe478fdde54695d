//! Descriptions of share groups and streams groups, against scripted brokers.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        share_group_describe::{
            ShareGroupDescribeRequest, ShareGroupDescribeResponse, response as share_response,
        },
        streams_group_describe::{
            StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, response as streams_response,
        },
    },
    primitive::Reader,
};

use super::{
    GroupState,
    describe_typed::Included,
    scripted::{Script, TIMEOUT},
    scripted_batches::{OK, coordinators, names},
    share_groups::describe_share_groups,
    streams_groups::{StreamsTask, describe_streams_groups},
    topology_description::{
        StoredDescription, SubtopologyDescription, TopologyDescription, TopologyNode, TopologyNodeKind,
    },
};
use crate::{admin::How, contract::route::Route, error::ErrorKind};

fn share_groups(of: &[(&str, ErrorCode)]) -> ShareGroupDescribeResponse {
    let group = |(group_id, error_code): &(&str, ErrorCode)| share_response::Group {
        group_id: (*group_id).to_owned(),
        error_code: *error_code,
        group_state: "Stable".to_owned(),
        ..share_response::Group::default()
    };
    ShareGroupDescribeResponse { groups: of.iter().map(group).collect(), ..Default::default() }
}

fn streams_group(group_id: &str) -> streams_response::Group {
    let task = |id: &str, partitions: &[i32]| (id.to_owned(), partitions.to_vec());
    let active = [task("1", &[2]), task("0", &[1, 0])]
        .map(|(subtopology_id, partitions)| streams_response::ActiveTask { subtopology_id, partitions });
    let member = streams_response::Member {
        member_id: "m".to_owned(),
        process_id: "p".to_owned(),
        user_endpoint: Some(streams_response::UserEndpoint { host: "h".to_owned(), port: 65_535 }),
        assignment: streams_response::Assignment { active_tasks: active.to_vec(), ..Default::default() },
        ..Default::default()
    };
    let changelog = streams_response::StateChangelogTopic { name: "c".to_owned(), ..Default::default() };
    let subtopology = streams_response::TopologySubtopology {
        subtopology_id: "0".to_owned(),
        source_topics: vec!["t".to_owned()],
        state_changelog_topics: vec![changelog],
        ..Default::default()
    };
    streams_response::Group {
        group_id: group_id.to_owned(),
        group_state: "NotReady".to_owned(),
        topology: Some(streams_response::Topology { epoch: 3, subtopologies: Some(vec![subtopology]) }),
        members: vec![member],
        ..Default::default()
    }
}

#[test]
fn share_groups_are_described_with_one_request_per_coordinator() {
    let groups = names(&["b", "a", "c", "d"]);
    let (mut script, waiting) = Script::new(|done| describe_share_groups(groups, true, TIMEOUT, done));
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("a", 1, OK), ("b", 2, OK), ("c", 1, OK), ("d", 2, OK)]));
    let sent = script.sent(1);
    let requests: Vec<_> = sent
        .iter()
        .map(|sent| ShareGroupDescribeRequest::decode(&mut Reader::new(&sent.body), 1).unwrap())
        .collect();
    assert_eq!((&sent[0].route, &sent[1].route), (&Route::Node(1), &Route::Node(2)));
    assert_eq!(requests[0].group_ids, ["a", "c"]);
    assert_eq!(requests[1].group_ids, ["b", "d"]);
    assert!(requests.iter().all(|request| request.include_authorized_operations));
    let missing = ErrorCode::GROUP_ID_NOT_FOUND;
    script.respond(&sent[0], 1, &share_groups(&[("a", OK), ("c", missing)]));
    // The coordinator of b moves; d is omitted.
    script.respond(&sent[1], 1, &share_groups(&[("b", ErrorCode::NOT_COORDINATOR), ("strange", OK)]));
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("b", 1, OK), ("d", 2, OK)]));
    let sent = script.sent(1);
    script.respond(&sent[0], 1, &share_groups(&[("b", OK)]));
    script.respond(&sent[1], 1, &share_groups(&[("d", OK)]));
    let results = waiting.try_take().expect("all responded");
    assert_eq!(results.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["b", "a", "c", "d"]);
    let kinds: Vec<_> =
        results.iter().map(|(_, result)| result.as_ref().map_err(|e| e.kind()).err()).collect();
    assert_eq!(kinds, [None, None, Some(ErrorKind::Broker(missing)), None]);
    let group = results[0].1.as_ref().unwrap();
    assert_eq!(
        (group.state, group.coordinator.as_ref().map(|broker| broker.id)),
        (GroupState::Stable, Some(1))
    );
}

#[test]
fn groups_are_described_by_the_broker_that_the_options_name() {
    let groups = names(&["a", "b"]);
    let how = How { broker: Some(2), ..How::default() };
    let (mut script, waiting) =
        Script::new(|done| describe_share_groups(groups, false, TIMEOUT, done).done(how));
    for code in [ErrorCode::NOT_COORDINATOR, OK] {
        let sent = script.one(1);
        assert_eq!(sent.route, Route::Node(2));
        script.respond(&sent, 1, &share_groups(&[("a", code), ("b", code)]));
    }
    let results = waiting.try_take().expect("it responded");
    assert!(results.iter().all(|(_, result)| result.as_ref().is_ok_and(|group| group.coordinator.is_none())));
}

#[test]
fn groups_that_responses_leave_out_fail_after_four_attempts() {
    let (mut script, waiting) =
        Script::new(|done| describe_share_groups(names(&["a"]), false, TIMEOUT, done));
    for _ in 0..4 {
        assert_eq!(waiting.try_take(), None);
        let lookup = script.one(4);
        script.respond(&lookup, 4, &coordinators(&[("a", 1, OK)]));
        let sent = script.one(1);
        script.respond(&sent, 1, &share_groups(&[]));
    }
    let results = waiting.try_take().expect("the call has ended");
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::BadResponse);
}

#[test]
fn streams_group_is_described_with_its_topology_and_tasks() {
    let (mut script, waiting) =
        Script::new(|done| describe_streams_groups(names(&["a", "b"]), Included::default(), TIMEOUT, done));
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("a", 1, OK), ("b", 1, OK)]));
    let sent = script.one(0);
    let request = StreamsGroupDescribeRequest::decode(&mut Reader::new(&sent.body), 0).unwrap();
    assert_eq!(request.group_ids, ["a", "b"]);
    let refused = streams_response::Group {
        group_id: "b".to_owned(),
        error_code: ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ..Default::default()
    };
    let groups = vec![streams_group("a"), refused];
    script.respond(&sent, 0, &StreamsGroupDescribeResponse { groups, ..Default::default() });
    let results = waiting.try_take().expect("it responded");
    let group = results[0].1.as_ref().unwrap();
    let topology = group.topology.as_ref().unwrap();
    assert_eq!((group.state, topology.epoch), (GroupState::NotReady, 3));
    assert_eq!(topology.subtopologies[0].state_changelog_topics[0].partitions, None);
    let member = &group.members[0];
    assert_eq!(member.user_endpoint, Some(("h".to_owned(), 65_535)));
    let task = |id: &str, partition| StreamsTask { subtopology_id: id.to_owned(), partition };
    assert_eq!(member.assignment.active, [task("0", 0), task("0", 1), task("1", 2)]);
    let refused = ErrorKind::Broker(ErrorCode::GROUP_AUTHORIZATION_FAILED);
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), refused);
}

#[test]
fn brokers_without_streams_groups_are_an_unsupported_version() {
    let (mut script, waiting) =
        Script::new(|done| describe_streams_groups(names(&["a"]), Included::default(), TIMEOUT, done));
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("a", 1, OK)]));
    let sent = script.one(0);
    script.fail(&sent, ErrorKind::UnsupportedVersion);
    let results = waiting.try_take().expect("there is nothing to retry");
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::UnsupportedVersion);
}

#[test]
fn topology_description_is_requested_from_brokers_that_have_it() {
    for version in [0, 1] {
        let included = Included { topology_description: true, ..Included::default() };
        let (mut script, waiting) =
            Script::new(|done| describe_streams_groups(names(&["a"]), included, TIMEOUT, done));
        let lookup = script.one(4);
        script.respond(&lookup, 4, &coordinators(&[("a", 1, OK)]));
        let sent = script.one(version);
        let request = StreamsGroupDescribeRequest::decode(&mut Reader::new(&sent.body), version).unwrap();
        assert_eq!(request.include_topology_description, version == 1);
        let node = streams_response::Node { name: "n".to_owned(), node_type: 3, ..Default::default() };
        let part = streams_response::TopologyDescriptionSubtopology {
            subtopology_id: "0".to_owned(),
            nodes: vec![node],
        };
        let description =
            streams_response::TopologyDescription { subtopologies: vec![part], ..Default::default() };
        let is_new = version == 1;
        let group = streams_response::Group {
            topology_description: is_new.then_some(description),
            topology_description_status: if is_new { 3 } else { 0 },
            ..streams_group("a")
        };
        script.respond(
            &sent,
            version,
            &StreamsGroupDescribeResponse { groups: vec![group], ..Default::default() },
        );
        let results = waiting.try_take().expect("it responded");
        let expected = match is_new {
            false => StoredDescription::NotRequested,
            true => StoredDescription::Available(TopologyDescription {
                subtopologies: vec![SubtopologyDescription {
                    id: "0".to_owned(),
                    nodes: vec![TopologyNode {
                        name: "n".to_owned(),
                        kind: TopologyNodeKind::Sink { topic: None },
                        successors: Vec::new(),
                    }],
                }],
                global_stores: Vec::new(),
            }),
        };
        assert_eq!(results[0].1.as_ref().unwrap().topology_description, expected);
    }
}
