//! A static leader that returns to its group, and the assignment that it did not compute.

use ottla_protocol::generated::describe_groups::{
    DescribeGroupsResponse,
    response::{Group, Member as DescribedMember},
};

use super::*;

/// A static leader that returned to a group whose topic has three partitions.
fn returned() -> Script {
    let mut script = Script::of_static_member();
    let response = joined("m", 3, "m", &[("m", subscription(&["t"])), ("n", subscription(&["t"]))]);
    script.join(Ok(JoinGroupResponse { skip_assignment: true, ..response }));
    script.member.assign(script.now, [(Arc::from("t"), TopicTable::without_racks(3))].into());
    script.settle();
    assert_eq!(script.sent(), ["SyncGroup"]);
    script.sync(Ok(assignment(&[0])));
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
    script
}

/// Responds to DescribeGroups: the members have these partitions.
fn describe(script: &mut Script, state: &str, code: ErrorCode, assigned: &[&[i32]]) -> bool {
    let members = assigned.iter().map(|numbers| DescribedMember {
        member_assignment: assignment(numbers).assignment,
        ..Default::default()
    });
    let group = Group {
        error_code: code,
        group_state: state.into(),
        members: members.collect(),
        ..Default::default()
    };
    let (term, _) = script.take("DescribeGroups");
    let response = DescribeGroupsResponse { groups: vec![group], ..Default::default() };
    let has_moved = script.member.handle_described(script.now, term, Ok(response));
    script.settle();
    has_moved
}

#[test]
fn returning_leader_joins_again_if_a_partition_is_unassigned() {
    let mut script = returned();
    describe(&mut script, "Stable", ErrorCode::NONE, &[&[0], &[1]]);
    assert_eq!(script.take_steps(), ["revoke"]);
    script.revoked();
    let (_, request) = script.take_join();
    assert_eq!(request.reason.as_deref(), Some("a partition is assigned to no member"));
}

#[test]
fn returning_leader_keeps_a_complete_assignment() {
    let mut script = returned();
    describe(&mut script, "Stable", ErrorCode::NONE, &[&[0], &[1, 2]]);
    assert_eq!(script.take_steps(), [""; 0]);
    script.beat_after_interval(ErrorCode::NONE);
    assert!(!script.sent().contains(&"DescribeGroups"), "it asks once");
}

#[test]
fn returning_leader_asks_again_while_the_coordinator_is_not_ready() {
    let mut script = returned();
    assert!(!describe(&mut script, "", ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, &[]));
    assert!(!script.sent().contains(&"DescribeGroups"), "not before an interval");
    script.beat_after_interval(ErrorCode::NONE);
    assert!(describe(&mut script, "", ErrorCode::NOT_COORDINATOR, &[]), "it has moved");
    script.beat_after_interval(ErrorCode::NONE);
    describe(&mut script, "PreparingRebalance", ErrorCode::NONE, &[]);
    script.beat_after_interval(ErrorCode::NONE);
    describe(&mut script, "", ErrorCode::GROUP_AUTHORIZATION_FAILED, &[]);
    script.beat_after_interval(ErrorCode::NONE);
    assert!(!script.sent().contains(&"DescribeGroups"), "it must not");
    assert_eq!(script.take_steps(), [""; 0]);
}
