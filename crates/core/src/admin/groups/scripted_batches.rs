//! Descriptions of many groups, against scripted brokers.

use std::sync::Arc;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::{
            ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, response as consumer,
        },
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse, response as classic},
        find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse, response as found},
    },
    primitive::Reader,
};

use super::{
    GroupState, GroupType,
    describe_many::describe_groups,
    scripted::{Script, Sent, TIMEOUT},
};
use crate::{completion::Completion, contract::route::Route, error::ErrorKind};

pub(super) fn names(groups: &[&str]) -> Vec<Arc<str>> {
    groups.iter().map(|group| Arc::from(*group)).collect()
}

/// A response that names the coordinator of each group, or an error.
pub(super) fn coordinators(of: &[(&str, i32, ErrorCode)]) -> FindCoordinatorResponse {
    let one = |(key, node_id, error_code): &(&str, i32, ErrorCode)| found::Coordinator {
        key: (*key).to_owned(),
        node_id: *node_id,
        error_code: *error_code,
        host: "h".to_owned(),
        port: 9092,
        ..found::Coordinator::default()
    };
    FindCoordinatorResponse { coordinators: of.iter().map(one).collect(), ..Default::default() }
}

fn consumer_groups(of: &[(&str, ErrorCode)]) -> ConsumerGroupDescribeResponse {
    let group = |(group_id, error_code): &(&str, ErrorCode)| consumer::Group {
        group_id: (*group_id).to_owned(),
        error_code: *error_code,
        group_state: "Stable".to_owned(),
        ..consumer::Group::default()
    };
    ConsumerGroupDescribeResponse { groups: of.iter().map(group).collect(), ..Default::default() }
}

fn classic_groups(of: &[(&str, ErrorCode)]) -> DescribeGroupsResponse {
    let group = |(group_id, error_code): &(&str, ErrorCode)| classic::Group {
        group_id: (*group_id).to_owned(),
        error_code: *error_code,
        group_state: "Empty".to_owned(),
        protocol_type: "consumer".to_owned(),
        ..classic::Group::default()
    };
    DescribeGroupsResponse { groups: of.iter().map(group).collect(), ..Default::default() }
}

fn requested(sent: &Sent) -> Vec<String> {
    ConsumerGroupDescribeRequest::decode(&mut Reader::new(&sent.body), 1).unwrap().group_ids
}

pub(super) const OK: ErrorCode = ErrorCode::NONE;

fn start<T>(
    groups: &[&str],
    call: impl FnOnce(Vec<Arc<str>>, Completion<T>) -> crate::admin::AdminCall,
) -> (Script, crate::completion::Waiting<T>) {
    let groups = names(groups);
    Script::new(|done| call(groups, done))
}

#[test]
fn groups_are_described_with_one_request_per_coordinator() {
    let (mut script, waiting) =
        start(&["b", "a", "c"], |groups, done| describe_groups(groups, false, false, TIMEOUT, done));
    let lookup = script.one(4);
    let request = FindCoordinatorRequest::decode(&mut Reader::new(&lookup.body), 4).unwrap();
    assert_eq!(
        (lookup.route.clone(), request.coordinator_keys),
        (Route::Any, ["a", "b", "c"].map(str::to_owned).to_vec())
    );
    script.respond(&lookup, 4, &coordinators(&[("a", 1, OK), ("b", 2, OK), ("c", 1, OK)]));
    let sent = script.sent(1);
    assert_eq!((&sent[0].route, &sent[1].route), (&Route::Node(1), &Route::Node(2)));
    assert_eq!((requested(&sent[0]), requested(&sent[1])), (vec!["a".into(), "c".into()], vec!["b".into()]));
    let missing = ErrorCode::GROUP_ID_NOT_FOUND;
    // A group that was not requested is ignored.
    script.respond(&sent[0], 1, &consumer_groups(&[("a", OK), ("b", OK), ("c", missing)]));
    script.respond(&sent[1], 1, &consumer_groups(&[("b", ErrorCode::GROUP_AUTHORIZATION_FAILED)]));
    let next = script.one(5);
    let request = DescribeGroupsRequest::decode(&mut Reader::new(&next.body), 5).unwrap();
    assert_eq!((next.route.clone(), request.groups), (Route::Node(1), vec!["c".to_owned()]));
    script.respond(&next, 5, &classic_groups(&[("c", OK)]));
    let results = waiting.try_take().expect("all responded");
    assert_eq!(results.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["b", "a", "c"]);
    let types: Vec<_> =
        results.iter().map(|(_, result)| result.as_ref().ok().map(|one| one.group_type)).collect();
    assert_eq!(types, [None, Some(GroupType::Consumer), Some(GroupType::Classic)]);
    let coordinator = results[2].1.as_ref().unwrap().coordinator.as_ref().unwrap();
    assert_eq!((coordinator.id, &*coordinator.host), (1, "h"));
}

#[test]
fn moved_coordinators_are_looked_up_again() {
    let (mut script, waiting) =
        start(&["a", "b"], |groups, done| describe_groups(groups, false, false, TIMEOUT, done));
    let unavailable = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("a", -1, unavailable), ("b", -1, unavailable)]));
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("a", 1, OK), ("b", 2, OK)]));
    let sent = script.sent(1);
    script.respond(&sent[0], 1, &consumer_groups(&[("a", ErrorCode::NOT_COORDINATOR)]));
    script.respond(&sent[1], 1, &consumer_groups(&[("b", ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)]));
    assert_eq!(waiting.try_take(), None);
    // The coordinator of b loads, and stays the coordinator; that of a is looked up again.
    let (lookup, again) = script.due(4, 1);
    let request = FindCoordinatorRequest::decode(&mut Reader::new(&lookup.body), 4).unwrap();
    assert_eq!(request.coordinator_keys, ["a"]);
    assert_eq!((again.route.clone(), requested(&again)), (Route::Node(2), vec!["b".to_owned()]));
    script.respond(&lookup, 4, &coordinators(&[("a", 2, OK)]));
    script.respond(&again, 1, &consumer_groups(&[("b", OK)]));
    let last = script.one(1);
    assert_eq!((last.route.clone(), requested(&last)), (Route::Node(2), vec!["a".to_owned()]));
    script.respond(&last, 1, &consumer_groups(&[("a", OK)]));
    let results = waiting.try_take().expect("all responded");
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
}

#[test]
fn lost_connection_and_omitted_groups_are_repeated_until_the_deadline() {
    let (mut script, waiting) =
        start(&["a", "b"], |groups, done| describe_groups(groups, false, false, TIMEOUT, done));
    let lookup = script.one(4);
    script.respond(&lookup, 4, &coordinators(&[("a", 1, OK), ("b", 2, OK)]));
    let sent = script.sent(1);
    script.respond(&sent[0], 1, &consumer_groups(&[]));
    script.fail(&sent[1], ErrorKind::Disconnected);
    for _ in 0..60 {
        script.sent(4);
    }
    let results = waiting.try_take().expect("the deadline is over");
    let kinds: Vec<_> = results.iter().map(|(_, result)| result.as_ref().unwrap_err().kind()).collect();
    assert_eq!(kinds, [ErrorKind::BadResponse, ErrorKind::Disconnected]);
}

#[test]
fn old_brokers_look_up_one_group_at_a_time_and_describe_classic_ones() {
    let (mut script, waiting) =
        start(&["a", "b"], |groups, done| describe_groups(groups, false, true, TIMEOUT, done));
    let lookup = script.one(4);
    script.fail(&lookup, ErrorKind::UnsupportedVersion);
    let lookups = script.sent(3);
    assert_eq!(lookups.len(), 2);
    for lookup in &lookups {
        script.respond(lookup, 3, &FindCoordinatorResponse { node_id: 1, ..Default::default() });
    }
    let sent = script.one(1);
    script.fail(&sent, ErrorKind::UnsupportedVersion);
    let sent = script.one(5);
    script.respond(&sent, 5, &classic_groups(&[("a", OK), ("b", ErrorCode::GROUP_ID_NOT_FOUND)]));
    let results = waiting.try_take().expect("all responded");
    let states: Vec<_> = results.iter().map(|(_, result)| result.as_ref().unwrap().state).collect();
    assert_eq!(states, [GroupState::Empty, GroupState::Dead]);
}
