//! Share sessions and the fetches in them.

use super::*;

#[test]
fn share_fetch_waits_for_records_and_may_return_none() {
    let mut world = world(|_| ());
    let mut a = Session::new(&mut world, "a");
    let request = a.request(&[0, 1], 500, &[]);
    let id = world.send(a.connection, 2, &request);
    world.pass(499 * MS);
    assert!(world.outputs.is_empty());
    world.pass(1 * MS);
    let response = world.respond::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert_eq!(response.responses[0].partitions.len(), 2, "the first response has all partitions");

    let request = a.request(&[], 500, &[]);
    let id = world.send(a.connection, 2, &request);
    produce(&mut world, 1, 2);
    let response = world.respond::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    assert_eq!(response.responses[0].partitions.len(), 1, "later ones of what there is");
    assert_eq!(fetched(&response, 1).acquired, [(0, 1, 1)]);

    let request = ShareFetchRequest { min_bytes: 300, ..a.request(&[], 500, &[]) };
    let id = world.send(a.connection, 2, &request);
    produce(&mut world, 0, 2);
    assert!(world.outputs.is_empty(), "that was not enough");
    produce(&mut world, 0, 9);
    let response = world.respond::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    assert_eq!(fetched(&response, 0).acquired, [(0, 10, 1)]);
}

#[test]
fn byte_limit_does_not_apply_to_the_first_batch() {
    let mut world = world(|_| ());
    for _ in 0..3 {
        let connection = world.open(1);
        world.produce(connection, 0, Batch::of(1).value_size(1000).build());
    }
    let mut a = Session::new(&mut world, "a");
    let request = ShareFetchRequest { max_bytes: 1, ..a.request(&[0], 0, &[]) };
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(0, 0, 1)]);
    let request = ShareFetchRequest { max_bytes: -5, ..a.request(&[], 0, &[]) };
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(1, 1, 1)]);
}

#[test]
fn share_session_requires_its_next_epoch_and_releases_records() {
    let mut world = world(|options| options.max_share_sessions = 2);
    produce(&mut world, 0, 2);
    let mut a = Session::new(&mut world, "a");
    let in_epoch = |a: &mut Session, world: &mut World, epoch: i32| {
        a.epoch = epoch;
        let request = a.request(&[0], 0, &[]);
        a.call(world, &request).error_code
    };
    assert_eq!(in_epoch(&mut a, &mut world, 1), ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(in_epoch(&mut a, &mut world, -1), ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(in_epoch(&mut a, &mut world, 0), ErrorCode::NONE);
    for wrong in [2, 7, -2, i32::MAX, i32::MIN] {
        assert_eq!(in_epoch(&mut a, &mut world, wrong), ErrorCode::INVALID_SHARE_SESSION_EPOCH);
        let response = a.acknowledge_in(&mut world, wrong, false, &[(0, 1, &[ACCEPT])]);
        assert_eq!(response.error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    }
    let opens = a.acknowledge_in(&mut world, 0, false, &[(0, 1, &[ACCEPT])]);
    assert_eq!(opens.error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH, "only a fetch opens a session");
    assert_eq!(in_epoch(&mut a, &mut world, 1), ErrorCode::NONE);

    let (mut b, mut c) = (Session::new(&mut world, "b"), Session::new(&mut world, "c"));
    assert_eq!(b.acquired(&mut world), []);
    assert_eq!(in_epoch(&mut c, &mut world, 0), ErrorCode::SHARE_SESSION_LIMIT_REACHED);
    assert_eq!(in_epoch(&mut a, &mut world, 0), ErrorCode::NONE, "it replaces its own");
    let closed = a.acknowledge_in(&mut world, -1, false, &[(0, 0, &[ACCEPT])]);
    assert_eq!(
        (closed.error_code, closed.responses[0].partitions[0].error_code),
        (ErrorCode::NONE, ErrorCode::NONE)
    );
    assert_eq!(b.acquired(&mut world), [(1, 1, 2)], "what a had not acknowledged");
    assert_eq!(in_epoch(&mut a, &mut world, 1), ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(in_epoch(&mut c, &mut world, 0), ErrorCode::NONE);
    // A broken connection closes its session as well.
    world.cluster.handle_closed(world.now, b.connection);
    assert_eq!(c.acquired(&mut world), [(1, 1, 3)]);
    let closing =
        ShareFetchRequest { share_session_epoch: -1, ..c.request(&[], 0, &[(0, &[(1, 1, &[ACCEPT])])]) };
    let closed = c.call(&mut world, &closing);
    assert_eq!(closed.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (2, 0));
    assert_eq!(in_epoch(&mut c, &mut world, 2), ErrorCode::SHARE_SESSION_NOT_FOUND);
}

#[test]
fn share_fetch_requires_group_and_member() {
    let mut world = world(|_| ());
    let mut a = Session::new(&mut world, "a");
    let long = "m".repeat(37);
    for (group, member) in [
        (None, Some("a")),
        (Some(""), Some("a")),
        (Some("g"), None),
        (Some("g"), Some("")),
        (Some("g"), Some(&long[..])),
    ] {
        let request = ShareFetchRequest {
            group_id: group.map(str::to_owned),
            member_id: member.map(str::to_owned),
            share_session_epoch: 0,
            ..a.request(&[0], 0, &[])
        };
        assert_eq!(a.call(&mut world, &request).error_code, ErrorCode::INVALID_REQUEST);
    }
    a.epoch = 0;
    let request = ShareFetchRequest { share_acquire_mode: 2, ..a.request(&[0], 0, &[]) };
    assert_eq!(a.call(&mut world, &request).error_code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn partitions_can_be_added_to_and_removed_from_a_session() {
    let mut world = world(|_| ());
    produce(&mut world, 1, 1);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), []);
    let request = a.request(&[1], 0, &[]);
    assert_eq!(fetched(&a.call(&mut world, &request), 1).acquired, [(0, 0, 1)]);
    let mut request = a.request(&[], 0, &[]);
    request.forgotten_topics_data =
        vec![share_fetch::request::ForgottenTopicsData { topic_id: a.topic_id, partitions: vec![0, 1, 9] }];
    a.call(&mut world, &request);
    produce(&mut world, 1, 1);
    let request = a.request(&[], 100, &[]);
    let response = a.call(&mut world, &request);
    assert!(response.responses.is_empty(), "a session without partitions has nothing to wait for");
}

#[test]
fn new_leader_is_named_and_has_no_locks() {
    let share_groups =
        ShareGroupOptions { auto_offset_reset: ShareOffsetReset::Earliest, ..ShareGroupOptions::default() };
    let mut world = World::new(ClusterOptions { share_groups, ..ClusterOptions::default() });
    world.cluster.control().create_topic("t", 1, 3).unwrap();
    produce(&mut world, 0, 3);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT]), (1, 1, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(1, 1, 2)]);
    // A waiting fetch returns at once.
    let request = a.request(&[], 5000, &[]);
    let id = world.send(a.connection, 2, &request);
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    world.drain();
    let response = world.respond::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((partition.current_leader.leader_id, partition.current_leader.leader_epoch), (2, 1));
    assert_eq!(response.node_endpoints.len(), 1);
    assert_eq!((response.node_endpoints[0].node_id, response.node_endpoints[0].port), (2, 9093));

    let (epoch, late) = (a.epoch, &[(1, 1, &[ACCEPT][..])]);
    let response = a.acknowledge_in(&mut world, epoch, false, late);
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((partition.current_leader.leader_id, response.node_endpoints[0].node_id), (2, 2));

    let mut b = Session::new(&mut world, "a");
    b.connection = world.open(2);
    assert_eq!(b.acquired(&mut world), [(1, 1, 2), (2, 2, 1)], "unwritten acknowledgements have no effect");
    assert_eq!(b.acknowledge(&mut world, &[(1, 2, &[ACCEPT])]), ErrorCode::NONE);
    produce_at(&mut world, 2);
    assert_eq!(b.acquired(&mut world), [(3, 3, 1)]);
    world.cluster.control().kill_broker(BrokerId(2), Tail::Kept);
    let leader = world.cluster.control().partition("t", 0).unwrap().leader.unwrap();
    let mut c = Session::new(&mut world, "c");
    c.connection = world.open(leader.0);
    assert_eq!(c.acquired(&mut world), [(3, 3, 1)]);
}

#[test]
fn deleted_topics_and_faults_are_reported_per_partition() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 1);
    let mut a = Session::new(&mut world, "a");
    let fault = Fault::new(FaultAction::Error(ErrorCode::KAFKA_STORAGE_ERROR)).api(ApiKey::ShareFetch);
    world.cluster.control().inject(fault.topic("t").partition(0).times(1));
    assert_eq!(a.fetch(&mut world).error, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(a.fetch(&mut world).acquired, [(0, 0, 1)]);
    let request = a.request(&[7], 1000, &[]);
    let response = a.call(&mut world, &request);
    assert_eq!(fetched(&response, 7).error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    world.cluster.control().delete_topic("t");
    let got = a.fetch(&mut world);
    assert_eq!(got.error, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::UNKNOWN_TOPIC_ID);
    world.cluster.control().create_topic("t", 1, 1).unwrap();
    produce(&mut world, 0, 1);
    let mut b = Session::new(&mut world, "a");
    assert_eq!(b.acquired(&mut world), [(0, 0, 1)], "another topic of that name is another one");
}

#[test]
fn errors_can_be_injected_into_whole_share_requests() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 1);
    for api in [ApiKey::ShareGroupHeartbeat, ApiKey::ShareFetch, ApiKey::ShareAcknowledge] {
        let fault = Fault::new(FaultAction::Error(ErrorCode::NOT_COORDINATOR)).api(api).times(1);
        world.cluster.control().inject(fault);
    }
    let failed = heartbeat(&mut world, "a", 0, Some(&["t"]));
    assert_eq!((failed.error_code, failed.member_epoch), (ErrorCode::NOT_COORDINATOR, 0));
    assert_eq!(heartbeat(&mut world, "a", 0, Some(&["t"])).member_epoch, 1);
    let mut a = Session::new(&mut world, "a");
    let request = a.request(&[0], 0, &[]);
    assert_eq!(a.call(&mut world, &request).error_code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(
        fetched(&a.call(&mut world, &request), 0).acquired,
        [(0, 0, 1)],
        "no session was opened before"
    );
    let refused = a.acknowledge_in(&mut world, 1, false, &[(0, 0, &[ACCEPT])]);
    assert_eq!((refused.error_code, refused.responses.len()), (ErrorCode::NOT_COORDINATOR, 0));
    assert_eq!(
        a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]),
        ErrorCode::NONE,
        "and it is in the same epoch still"
    );
}
