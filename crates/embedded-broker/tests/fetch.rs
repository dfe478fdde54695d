//! Fetch and ListOffsets: waiting, limits, sessions, replicas, errors.

mod common;

use std::time::Duration;

use common::{Batch, World, base_offsets, fetch_request, produce_request, records_of};
use ottla_embedded_broker::{BrokerId, ClusterOptions};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        describe_cluster::DescribeClusterRequest,
        fetch::{self, FetchRequest},
        list_offsets::{self, ListOffsetsRequest},
    },
};

const MS: Duration = Duration::from_millis(1);

#[test]
fn fetch_waits_for_enough_bytes_or_its_max_wait() {
    let mut world = World::with_topic();
    let (producer, consumer) = (world.open(1), world.open(1));
    let size = i32::try_from(Batch::of(1).build().len()).unwrap();
    let mut request = fetch_request("t", &[(0, 0)], 500);
    request.min_bytes = size * 2;
    let id = world.send(consumer, 12, &request);
    world.produce(producer, 0, Batch::of(1).build());
    assert!(world.respond::<FetchRequest>(consumer, 12, id).is_none(), "one batch is not enough");
    world.produce(producer, 0, Batch::of(1).build());
    let response = world.respond::<FetchRequest>(consumer, 12, id).expect("two batches are");
    assert_eq!(base_offsets(&records_of(&response, 0)), [0, 1]);

    let id = world.send(consumer, 12, &fetch_request("t", &[(0, 2)], 500));
    world.pass(MS * 499);
    assert!(world.respond::<FetchRequest>(consumer, 12, id).is_none());
    world.pass(MS);
    let response = world.respond::<FetchRequest>(consumer, 12, id).expect("the time is up");
    assert!(records_of(&response, 0).is_empty());
    assert_eq!(world.cluster.poll_timeout(), None, "no timer is left behind");
}

#[test]
fn requests_after_a_waiting_fetch_wait_too() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let fetch = world.send(connection, 12, &fetch_request("t", &[(0, 0)], 300));
    let cluster =
        world.send(connection, 2, &DescribeClusterRequest { endpoint_type: 1, ..Default::default() });
    assert!(world.outputs.is_empty());
    world.pass(MS * 300);
    assert!(world.respond::<FetchRequest>(connection, 12, fetch).is_some());
    let response = world.respond::<DescribeClusterRequest>(connection, 2, cluster).unwrap();
    assert_eq!(response.brokers.len(), 3);
}

#[test]
fn waiting_fetch_returns_at_a_new_leader_and_a_deleted_topic() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let id = world.send(connection, 10, &fetch_request("t", &[(0, 0)], 5000));
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    world.drain();
    let response = world.respond::<FetchRequest>(connection, 10, id).unwrap();
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let other = world.open(2);
    let id = world.send(other, 12, &fetch_request("t", &[(0, 0)], 5000));
    world.cluster.control().delete_topic("t");
    world.drain();
    let response = world.respond::<FetchRequest>(other, 12, id).unwrap();
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn incremental_session_returns_only_changes() {
    let mut world = World::with_topic();
    for _ in 0..2 {
        let name = "t";
        world.cluster.control().move_leader(name, 1, Some(BrokerId(1)));
    }
    let connection = world.open(1);
    world.produce(connection, 0, Batch::of(1).build());
    let id = world.cluster.control().topic_id("t").unwrap();
    let mut request = fetch_request("t", &[(0, 0), (1, 0)], 0);
    request.topics[0].topic_id = id;
    request.session_epoch = 0;
    let full = world.call(connection, 16, &request);
    assert_ne!(full.session_id, 0);
    assert_eq!(full.responses[0].partitions.len(), 2);

    let mut next =
        FetchRequest { topics: Vec::new(), session_id: full.session_id, session_epoch: 1, ..request.clone() };
    next.topics.push(fetch::request::Topic {
        topic_id: id,
        partitions: vec![fetch::request::Partition {
            partition: 0,
            fetch_offset: 1,
            partition_max_bytes: 1000,
            ..Default::default()
        }],
        ..Default::default()
    });
    let nothing = world.call(connection, 16, &next);
    assert_eq!((nothing.session_id, nothing.responses.len()), (full.session_id, 0));

    world.produce(connection, 1, Batch::of(2).build());
    next.topics.clear();
    next.session_epoch = 2;
    let news = world.call(connection, 16, &next);
    assert_eq!(news.responses[0].partitions.len(), 1);
    assert_eq!(news.responses[0].partitions[0].partition_index, 1);

    let repeated = world.call(connection, 16, &next);
    assert_eq!((repeated.error_code, repeated.session_id), (ErrorCode::INVALID_FETCH_SESSION_EPOCH, 0));

    next.session_epoch = 3;
    next.forgotten_topics_data.push(fetch::request::ForgottenTopicsData {
        topic_id: id,
        partitions: vec![1],
        ..Default::default()
    });
    let forgotten = world.call(connection, 16, &next);
    assert_eq!((forgotten.error_code, forgotten.responses.len()), (ErrorCode::NONE, 0));

    world.cluster.control().evict_fetch_sessions(BrokerId(1));
    next.session_epoch = 4;
    assert_eq!(world.call(connection, 16, &next).error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn first_batch_is_fetched_regardless_of_size_limits() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().move_leader("t", 1, Some(BrokerId(1)));
    for partition in [0, 0, 1, 1] {
        world.produce(connection, partition, Batch::of(1).value_size(5000).build());
    }
    let limited = |world: &mut World, max_bytes, partition_max_bytes| {
        let mut request = fetch_request("t", &[(0, 0), (1, 0)], 0);
        request.max_bytes = max_bytes;
        for partition in &mut request.topics[0].partitions {
            partition.partition_max_bytes = partition_max_bytes;
        }
        let response = world.call(connection, 12, &request);
        [0, 1].map(|partition| base_offsets(&records_of(&response, partition)).len())
    };
    assert_eq!(limited(&mut world, 1, 1 << 20), [1, 0]);
    assert_eq!(limited(&mut world, 1 << 20, 1), [1, 0]);
    assert_eq!(limited(&mut world, 11_000, 1 << 20), [2, 0]);
    assert_eq!(limited(&mut world, 1 << 20, 6000), [1, 1]);
    assert_eq!(limited(&mut world, 1 << 20, 1 << 20), [2, 2]);
    world.cluster.control().options().partial_batches = true;
    let mut request = fetch_request("t", &[(0, 0)], 0);
    request.topics[0].partitions[0].partition_max_bytes = 6000;
    assert_eq!(
        records_of(&world.call(connection, 12, &request), 0).len(),
        6000,
        "a real broker cuts batches off"
    );
}

#[test]
fn offsets_outside_the_log_and_wrong_epochs_are_refused() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    for _ in 0..3 {
        world.produce(connection, 0, Batch::of(1).build());
    }
    world.cluster.control().delete_records("t", 0, 1);
    for (offset, error) in [
        (0, ErrorCode::OFFSET_OUT_OF_RANGE),
        (1, ErrorCode::NONE),
        (3, ErrorCode::NONE),
        (4, ErrorCode::OFFSET_OUT_OF_RANGE),
        (-1, ErrorCode::OFFSET_OUT_OF_RANGE),
    ] {
        assert_eq!(world.fetch(connection, 0, offset).error_code, error, "offset {offset}");
    }
    for _ in 0..2 {
        world.cluster.control().move_leader("t", 0, Some(BrokerId(1)));
    }
    for (epoch, error) in [
        (-1, ErrorCode::NONE),
        (1, ErrorCode::FENCED_LEADER_EPOCH),
        (2, ErrorCode::NONE),
        (3, ErrorCode::UNKNOWN_LEADER_EPOCH),
    ] {
        let mut request = fetch_request("t", &[(0, 1)], 0);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let response = world.call(connection, 12, &request);
        assert_eq!(response.responses[0].partitions[0].error_code, error, "epoch {epoch}");
    }
}

#[test]
fn old_leader_names_the_new_one_if_the_version_allows() {
    let mut world = World::with_topic();
    world.cluster.control().set_rack(BrokerId(2), Some("r2"));
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    let id = world.cluster.control().topic_id("t").unwrap();
    let connection = world.open(1);
    for version in 3..=13 {
        let mut request = produce_request("t", 0, -1, Batch::of(1).build());
        request.topic_data[0].topic_id = id;
        let response = world.call(connection, version, &request);
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
        let reported = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
        assert_eq!(reported, if version >= 10 { (2, 1) } else { (-1, -1) }, "Produce version {version}");
        let endpoints: Vec<_> =
            response.node_endpoints.iter().map(|e| (e.node_id, e.rack.as_deref())).collect();
        assert_eq!(endpoints, if version >= 10 { vec![(2, Some("r2"))] } else { vec![] });
    }
    for version in 4..=18 {
        let mut request = fetch_request("t", &[(0, 0)], 0);
        request.topics[0].topic_id = id;
        request.topics[0].partitions[0].current_leader_epoch = 0;
        let response = world.call(connection, version, &request);
        let partition = &response.responses[0].partitions[0];
        let expected =
            if version >= 9 { ErrorCode::FENCED_LEADER_EPOCH } else { ErrorCode::NOT_LEADER_OR_FOLLOWER };
        assert_eq!(partition.error_code, expected, "Fetch version {version}");
        let reported = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
        assert_eq!(reported, if version >= 16 { (2, 1) } else { (-1, -1) }, "Fetch version {version}");
        assert_eq!(response.node_endpoints.len(), usize::from(version >= 16));
    }
}

#[test]
fn fetch_version_11_reads_from_followers_in_the_consumers_rack() {
    let options = ClusterOptions {
        racks: ["a", "b", "c"].map(str::to_owned).to_vec(),
        rack_aware_fetch: true,
        ..Default::default()
    };
    let mut world = World::new(options);
    world.cluster.control().create_topic("t", 1, 3).unwrap();
    let (leader, follower) = (world.open(1), world.open(2));
    world.produce(leader, 0, Batch::of(2).build());
    let mut request = fetch_request("t", &[(0, 0)], 500);
    request.rack_id = "b".to_owned();
    let response = world.call(leader, 11, &request);
    assert_eq!(response.responses[0].partitions[0].preferred_read_replica, 2);
    let response = world.call(follower, 11, &request);
    assert_eq!(base_offsets(&records_of(&response, 0)), [0]);
    let response = world.call(follower, 10, &request);
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
}

fn list(world: &mut World, partition: i32, timestamp: i64) -> (ErrorCode, i64, i64) {
    let connection = world.open(1);
    let requested =
        list_offsets::request::Partition { partition_index: partition, timestamp, ..Default::default() };
    let topic = list_offsets::request::Topic { name: "t".to_owned(), partitions: vec![requested] };
    let response =
        world.call(connection, 11, &ListOffsetsRequest { topics: vec![topic], ..Default::default() });
    let found = &response.topics[0].partitions[0];
    (found.error_code, found.offset, found.timestamp)
}

#[test]
fn offsets_are_listed_by_name_and_by_timestamp() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    for first in [100, 300, 200] {
        world.produce(connection, 0, Batch::of(10).first_timestamp(first).build());
    }
    world.cluster.control().delete_records("t", 0, 2);
    let none = ErrorCode::NONE;
    assert_eq!(list(&mut world, 0, -1), (none, 30, -1));
    assert_eq!(list(&mut world, 0, -2), (none, 2, -1));
    assert_eq!(list(&mut world, 0, -3), (none, 19, 309));
    assert_eq!(list(&mut world, 0, -4), (none, 2, -1));
    assert_eq!(list(&mut world, 0, -5), (none, -1, -1));
    assert_eq!(list(&mut world, 0, 105), (none, 5, 105));
    assert_eq!(list(&mut world, 0, 150), (none, 10, 300));
    assert_eq!(list(&mut world, 0, 310), (none, -1, -1));
    assert_eq!(list(&mut world, 1, -1).0, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(list(&mut world, 9, -1).0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn hasty_broker_responds_to_fetch_at_once_without_a_session() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().set_hasty(BrokerId(1), true);
    let mut request = fetch_request("t", &[(0, 0)], 5000);
    request.session_epoch = 0;
    for _ in 0..2 {
        let response = world.call(connection, 12, &request);
        assert_eq!((response.error_code, response.session_id), (ErrorCode::NONE, 0));
        assert_eq!(response.responses[0].partitions[0].partition_index, 0, "it names the partition");
        assert!(records_of(&response, 0).is_empty());
    }
    world.cluster.control().set_hasty(BrokerId(1), false);
    let id = world.send(connection, 12, &request);
    assert!(world.respond::<FetchRequest>(connection, 12, id).is_none(), "it waits for records again");
}
