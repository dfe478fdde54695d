//! Members: joining, epochs, expiry and assignment.

use super::*;

#[test]
fn each_share_member_has_a_partition_even_if_members_exceed_them() {
    let mut world = world(|_| ());
    let first = heartbeat(&mut world, "a", 0, Some(&["t"]));
    assert_eq!(
        (first.error_code, first.member_epoch, first.heartbeat_interval_ms),
        (ErrorCode::NONE, 1, 5000)
    );
    assert_eq!(first.member_id.as_deref(), Some("a"));
    assert_eq!(assigned(&first), Some(vec![0, 1]));
    assert_eq!(assigned(&heartbeat(&mut world, "a", 1, None)), None, "there is no news");

    let second = heartbeat(&mut world, "b", 0, Some(&["t"]));
    assert_eq!((second.member_epoch, assigned(&second).unwrap().len()), (2, 1));
    let news = heartbeat(&mut world, "a", 1, None);
    assert_eq!((news.member_epoch, assigned(&news).unwrap().len()), (2, 1));
    assert_ne!(assigned(&news), assigned(&second));

    let third = heartbeat(&mut world, "c", 0, Some(&["t"]));
    assert!(!assigned(&third).unwrap().is_empty());
    let group = describe(&mut world);
    assert_eq!((group.group_state.as_str(), group.assignor_name.as_str()), ("Stable", "simple"));
    assert_eq!((group.group_epoch, group.assignment_epoch, group.members.len()), (3, 3, 3));
    assert_eq!(group.members[2].assignment.topic_partitions[0].topic_name, "t");
    assert_ne!(group.authorized_operations, i32::MIN);

    assert_eq!(heartbeat(&mut world, "a", -1, None).member_epoch, -1);
    assert_eq!(heartbeat(&mut world, "b", -1, None).member_epoch, -1);
    let alone = heartbeat(&mut world, "c", third.member_epoch, None);
    assert_eq!(assigned(&alone), Some(vec![0, 1]));
    world.cluster.control().create_partitions("t", 3).unwrap();
    let more = heartbeat(&mut world, "c", alone.member_epoch, None);
    assert_eq!(assigned(&more), Some(vec![0, 1, 2]));
    assert_eq!(heartbeat(&mut world, "c", -1, None).error_code, ErrorCode::NONE);
    assert_eq!(describe(&mut world).group_state, "Empty");
}

#[test]
fn share_member_is_identified_by_id_and_epoch() {
    let mut world = world(|options| options.max_size = 1);
    let refused = |world: &mut World, request: &ShareGroupHeartbeatRequest| {
        let connection = world.open(1);
        let response = world.call(connection, 1, request);
        assert!(response.error_message.is_some());
        response.error_code
    };
    let t = Some(&["t"][..]);
    let beat = heartbeat_request;
    assert_eq!(refused(&mut world, &beat("", 0, t)), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", -2, t)), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", 0, None)), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", 0, Some(&[]))), ErrorCode::INVALID_REQUEST);
    let rack = ShareGroupHeartbeatRequest { rack_id: Some(String::new()), ..beat("a", 0, t) };
    assert_eq!(refused(&mut world, &rack), ErrorCode::INVALID_REQUEST);
    let nobody = ShareGroupHeartbeatRequest { group_id: String::new(), ..beat("a", 0, t) };
    assert_eq!(refused(&mut world, &nobody), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", 1, None)), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(refused(&mut world, &beat("a", -1, None)), ErrorCode::GROUP_ID_NOT_FOUND);

    assert_eq!(heartbeat(&mut world, "a", 0, t).member_epoch, 1);
    assert_eq!(refused(&mut world, &beat("b", 0, t)), ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(refused(&mut world, &beat("b", 1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(refused(&mut world, &beat("b", -1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(refused(&mut world, &beat("a", 7, None)), ErrorCode::FENCED_MEMBER_EPOCH);
    let again = heartbeat(&mut world, "a", 1, Some(&["t", "other"]));
    assert_eq!((again.member_epoch, again.error_code), (2, ErrorCode::NONE));
    let lost = heartbeat(&mut world, "a", 1, None);
    assert_eq!(
        (lost.member_epoch, lost.error_code),
        (2, ErrorCode::NONE),
        "it may not have got that response"
    );
    let rejoined = heartbeat(&mut world, "a", 0, t);
    assert_eq!((rejoined.member_epoch, assigned(&rejoined)), (3, Some(vec![0, 1])));
    assert_eq!(refused(&mut world, &beat("a", 1, None)), ErrorCode::FENCED_MEMBER_EPOCH);
}

#[test]
fn silent_share_member_is_removed_after_the_session_timeout() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    heartbeat(&mut world, "b", 0, Some(&["t"]));
    let mut epoch = 1;
    for _ in 0..4 {
        world.pass(400 * MS);
        let response = heartbeat(&mut world, "a", epoch, None);
        assert_eq!(response.error_code, ErrorCode::NONE);
        epoch = response.member_epoch;
    }
    assert_eq!(epoch, 3, "the group changed when b left");
    assert_eq!(heartbeat(&mut world, "b", 2, None).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(describe(&mut world).members.len(), 1);
    world.pass(1000 * MS);
    assert_eq!(describe(&mut world).group_state, "Empty");
}

#[test]
fn late_timer_does_not_extend_a_share_members_session() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    world.pass_without_timeouts(1001 * MS);
    assert_eq!(heartbeat(&mut world, "a", 1, None).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn share_partitions_can_be_assigned_manually() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    heartbeat(&mut world, "b", 0, Some(&["t"]));
    let mut control = world.cluster.control();
    assert_eq!(control.share_group_members(GROUP), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(control.share_group_members("other"), None);
    let both = vec![("t".to_owned(), 0), ("t".to_owned(), 1), ("t".to_owned(), 9), ("none".to_owned(), 0)];
    let shared = BTreeMap::from([("a".to_owned(), both), ("b".to_owned(), vec![("t".to_owned(), 0)])]);
    assert!(control.assign_share_group(GROUP, Some(&shared)));
    assert!(!control.assign_share_group("other", Some(&shared)));
    let a = heartbeat(&mut world, "a", 1, Some(&["t"]));
    assert_eq!(assigned(&a), Some(vec![0, 1]), "what does not exist is left out");
    assert_eq!(assigned(&heartbeat(&mut world, "b", 2, None)), Some(vec![0]));
    assert_eq!(assigned(&heartbeat(&mut world, "c", 0, Some(&["t"]))), Some(vec![]), "it was not named");

    world.cluster.control().assign_share_group(GROUP, None);
    let epoch = describe(&mut world).members[2].member_epoch;
    assert_eq!(assigned(&heartbeat(&mut world, "c", epoch, None)).unwrap().len(), 1, "three share two");
}

#[test]
fn group_name_belongs_to_one_group_type() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    let connection = world.open(1);
    let protocol = join_group::request::Protocol { name: "range".to_owned(), metadata: Vec::new() };
    let join = JoinGroupRequest {
        group_id: GROUP.to_owned(),
        session_timeout_ms: 1000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        ..Default::default()
    };
    assert_eq!(world.call(connection, 5, &join).error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let beat = ConsumerGroupHeartbeatRequest {
        group_id: GROUP.to_owned(),
        member_id: "a".to_owned(),
        rebalance_timeout_ms: 1000,
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    assert_eq!(world.call(connection, 1, &beat).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let partitions = vec![offset_commit::request::Partition { partition_index: 0, ..Default::default() }];
    let topics =
        vec![offset_commit::request::Topic { name: "t".to_owned(), partitions, ..Default::default() }];
    let commit = OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation_id_or_member_epoch: -1,
        topics,
        ..Default::default()
    };
    let response = world.call(connection, 8, &commit);
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let other = OffsetCommitRequest { group_id: "classic".to_owned(), ..commit };
    assert_eq!(world.call(connection, 8, &other).topics[0].partitions[0].error_code, ErrorCode::NONE);
    let join = ShareGroupHeartbeatRequest {
        group_id: "classic".to_owned(),
        ..heartbeat_request("a", 0, Some(&["t"]))
    };
    assert_eq!(world.call(connection, 1, &join).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let mut session = Session::new(&mut world, "a");
    let fetch = ShareFetchRequest { group_id: Some(join.group_id), ..session.request(&[0], 0, &[]) };
    assert_eq!(session.call(&mut world, &fetch).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let groups = vec![GROUP.to_owned()];
    let described = world.call(connection, 6, &DescribeGroupsRequest { groups, ..Default::default() });
    assert_eq!(described.groups[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let group_ids = vec!["classic".to_owned(), "none".to_owned()];
    let request = ShareGroupDescribeRequest { group_ids, include_authorized_operations: false };
    for group in world.call(connection, 1, &request).groups {
        assert_eq!(group.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    }
}
