//! Commits, and what administrators do with groups.

use super::*;

#[test]
fn offset_commit_accepts_epochs_since_the_partition_was_assigned() {
    let mut group = Group::of_two();
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::NONE);
    assert_eq!(group.commit(10, ("a", 3), 1), ErrorCode::NONE);
    assert_eq!(group.commit(9, ("a", 2), 0), ErrorCode::NONE, "it has had 0 since epoch 2 (KIP-1251)");
    assert_eq!(group.commit(9, ("a", 2), 2), ErrorCode::STALE_MEMBER_EPOCH, "2 is b's");
    assert_eq!(group.commit(9, ("b", 2), 2), ErrorCode::STALE_MEMBER_EPOCH, "it was a's then");
    assert_eq!(group.commit(9, ("a", 1), 0), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(group.commit(9, ("a", 4), 0), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(group.commit(9, ("z", 3), 0), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.commit(9, ("", -1), 0), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.commit(8, ("a", 3), 0), ErrorCode::UNSUPPORTED_VERSION);

    assert_eq!(group.committed(Some("a"), 3), Ok(5));
    assert_eq!(group.committed(None, -1), Ok(5), "a request without a member ID may read");
    assert_eq!(group.committed(Some("a"), 2), Err(ErrorCode::STALE_MEMBER_EPOCH));
    assert_eq!(group.committed(Some("a"), 4), Err(ErrorCode::STALE_MEMBER_EPOCH));
    assert_eq!(group.committed(Some("z"), 3), Err(ErrorCode::UNKNOWN_MEMBER_ID));
    assert_eq!(group.committed(Some(""), -1), Err(ErrorCode::UNKNOWN_MEMBER_ID));

    group.send(&short("a", -1));
    group.send(&short("b", -1));
    assert_eq!(group.commit(9, ("", -1), 0), ErrorCode::NONE, "the group is empty");
}

#[test]
fn offset_commit_needs_the_current_epoch_before_kip_1251() {
    let mut group = Group::of_two();
    group.world.cluster.control().options().group_consumer_relaxed_commits = false;
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::NONE);
    assert_eq!(group.commit(9, ("a", 2), 0), ErrorCode::STALE_MEMBER_EPOCH, "it has had 0 since epoch 2");
    assert_eq!(group.commit(9, ("a", 4), 0), ErrorCode::STALE_MEMBER_EPOCH);
}

#[test]
fn group_that_is_being_loaded_refuses_requests_for_that_time() {
    let mut group = Group::of_two();
    group.world.cluster.control().load_group(GROUP, SECOND);
    assert_eq!(group.send(&short("a", 3)).error_code, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    group.world.pass(SECOND);
    assert_eq!(group.send(&short("a", 3)).error_code, ErrorCode::NONE);
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::NONE);
}

#[test]
fn commit_with_an_epoch_of_an_unknown_group_is_refused() {
    let mut group = Group::new();
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(group.commit(8, ("a", 3), 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(group.committed(Some("a"), 3), Ok(-1));
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND);
}

#[test]
fn consumer_group_is_described_listed_and_deleted_when_empty() {
    let mut group = Group::of_two();
    let described = group.describe();
    let member = &described.members[0];
    assert_eq!((member.member_id.as_str(), member.member_epoch, member.member_type), ("a", 3, 1));
    assert_eq!(
        (member.client_id.as_str(), member.subscribed_topic_names.as_slice()),
        ("test", &["t".to_owned()][..])
    );
    assert_eq!(member.assignment.topic_partitions[0].topic_name, "t");
    assert_eq!(member.assignment.topic_partitions, member.target_assignment.topic_partitions);
    let (connection, groups) = (group.connection, vec![GROUP.to_owned()]);
    let old = DescribeGroupsRequest { groups, ..Default::default() };
    let reported = |group: &mut Group, version| {
        let reported = group.world.call(connection, version, &old).groups.remove(0);
        (reported.error_code, reported.group_state)
    };
    assert_eq!(reported(&mut group, 6), (ErrorCode::GROUP_ID_NOT_FOUND, "Dead".to_owned()));
    assert_eq!(reported(&mut group, 5), (ErrorCode::NONE, "Dead".to_owned()));

    let list = |group: &mut Group, states: &[&str], types: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let request = ListGroupsRequest { states_filter: words(states), types_filter: words(types) };
        let listed = group.world.call(connection, 5, &request).groups;
        listed.into_iter().map(|of| (of.group_type, of.protocol_type, of.group_state)).collect::<Vec<_>>()
    };
    let expected = ("consumer".to_owned(), "consumer".to_owned(), "Stable".to_owned());
    assert_eq!(list(&mut group, &[], &["Consumer"]), std::slice::from_ref(&expected));
    assert_eq!(list(&mut group, &["stable"], &[]), [expected]);
    assert!(list(&mut group, &["Empty"], &[]).is_empty() && list(&mut group, &[], &["classic"]).is_empty());

    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] };
    let deleted = |group: &mut Group| group.world.call(connection, 2, &delete).results[0].error_code;
    assert_eq!(deleted(&mut group), ErrorCode::NON_EMPTY_GROUP);
    group.send(&short("a", -1));
    group.send(&short("b", -1));
    assert_eq!(deleted(&mut group), ErrorCode::NONE);
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND);
}

fn classic_join(member_id: &str) -> JoinGroupRequest {
    let protocol = join_group::request::Protocol { name: "range".to_owned(), metadata: Vec::new() };
    JoinGroupRequest {
        group_id: GROUP.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        ..Default::default()
    }
}

fn leave_group(member_id: &str) -> LeaveGroupRequest {
    let member = leave_group::request::Member { member_id: member_id.to_owned(), ..Default::default() };
    LeaveGroupRequest { group_id: GROUP.to_owned(), members: vec![member], ..Default::default() }
}

/// Kafka would migrate a live group (KIP-848); here it has to be empty.
#[test]
fn empty_group_changes_protocol_and_keeps_committed_offsets() {
    let mut group = Group::new();
    let connection = group.connection;
    group.join("a");
    group.commit(9, ("a", 2), 0);
    let refused = group.world.call(connection, 3, &classic_join(""));
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    group.send(&short("a", -1));
    let joined = group.world.call(connection, 3, &classic_join(""));
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
    assert_eq!(group.committed(None, -1), Ok(5));

    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND, "it is a classic one now");
    for request in [join("a", &["t"]), short("a", 2), short("a", -1)] {
        assert_eq!(group.error(&request), ErrorCode::GROUP_ID_NOT_FOUND);
    }
    group.world.call(connection, 5, &leave_group(&joined.member_id));
    assert_eq!(group.join("a"), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.committed(Some("a"), 2), Ok(5));
}

#[test]
fn leave_group_of_an_administrator_removes_members() {
    let mut group = Group::of_two();
    let leave = |group: &mut Group, member: &str, instance: Option<&str>| {
        let mut request = leave_group(member);
        request.members[0].group_instance_id = instance.map(str::to_owned);
        group.world.call(group.connection, 5, &request).members[0].error_code
    };
    assert_eq!(leave(&mut group, "z", None), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(leave(&mut group, "", Some("i")), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(leave(&mut group, "b", None), ErrorCode::NONE);
    assert_eq!(group.reported(&short("a", 3)), (4, Some(vec![0, 1, 2, 3])));
    group.reported(&with_instance(join("c", &["t"]), "i"));
    assert_eq!(leave(&mut group, "a", Some("i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(leave(&mut group, "", Some("i")), ErrorCode::NONE);
    assert_eq!(group.describe().members.len(), 1);
}
