//! The cluster without I/O, spoken to with the generated protocol types.

mod common;

use std::time::Duration;

use common::{Batch, World, base_offsets, fetch_request, frame, produce_request, records_of};
use ottla_embedded_broker::{
    BrokerId, BrokerRelease, Cluster, ClusterOptions, Fault, FaultAction, Output, Tail,
};
use ottla_protocol::{
    api::ApiKey,
    batch::{
        Batch as ReadBatch, BatchHeader, Batches, ChunkPool, LegacyFormat, RecordBatchBuilder, Records,
        SealOptions, layout, put_message_set,
    },
    compress::Compression,
    error_code::ErrorCode,
    generated::{
        api_versions::ApiVersionsRequest,
        create_partitions::{self, CreatePartitionsRequest},
        create_topics::{self, CreateTopicsRequest},
        delete_records::{self, DeleteRecordsRequest},
        delete_topics::{self, DeleteTopicsRequest},
        describe_cluster::DescribeClusterRequest,
        describe_configs::{self, DescribeConfigsRequest},
        describe_topic_partitions::{self, DescribeTopicPartitionsRequest},
        fetch::{self, FetchRequest},
        find_coordinator::FindCoordinatorRequest,
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        init_producer_id::InitProducerIdRequest,
        list_offsets::{self, ListOffsetsRequest},
        metadata::{self, MetadataRequest},
        offset_for_leader_epoch::{self, OffsetForLeaderEpochRequest},
        produce::ProduceRequest,
    },
    message::Request,
    time::Instant,
    uuid::Uuid,
};

const MS: Duration = Duration::from_millis(1);

/// What Apache Kafka 4.3.1 says it serves, of the APIs that this cluster has.
const KAFKA_4_3_1: &[(i16, i16, i16)] = &[
    (0, 0, 13),
    (1, 4, 18),
    (2, 1, 11),
    (3, 0, 13),
    (8, 2, 10),
    (9, 1, 10),
    (10, 0, 6),
    (11, 0, 9),
    (12, 0, 4),
    (13, 0, 5),
    (14, 0, 5),
    (15, 0, 6),
    (16, 0, 5),
    (18, 0, 4),
    (19, 2, 7),
    (20, 1, 6),
    (21, 0, 2),
    (22, 0, 5),
    (23, 2, 4),
    (32, 1, 4),
    (33, 0, 2),
    (37, 0, 3),
    (42, 0, 2),
    (44, 0, 1),
    (46, 0, 0),
    (60, 0, 2),
    (68, 0, 1),
    (69, 0, 1),
    (74, 0, 1),
    (75, 0, 0),
    (76, 1, 1),
    (77, 1, 1),
    (78, 1, 2),
    (79, 1, 2),
    (90, 0, 1),
    (91, 0, 0),
    (92, 0, 0),
];

fn software() -> ApiVersionsRequest {
    ApiVersionsRequest { client_software_name: "ottla".to_owned(), client_software_version: "1.0".to_owned() }
}

#[test]
fn the_versions_of_kafka_4_3_1_are_advertised() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    for version in 0..=4 {
        let answer = world.call(connection, version, &software());
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let told: Vec<_> =
            answer.api_keys.iter().map(|k| (k.api_key, k.min_version, k.max_version)).collect();
        assert_eq!(told, KAFKA_4_3_1);
    }
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let mut bytes = frame(5, 4, &software());
    bytes[7] = 99;
    world.cluster.handle_bytes(world.now, connection, &bytes);
    world.drain();
    let answer = world.answer::<ApiVersionsRequest>(connection, 0, 5).unwrap();
    assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(answer.api_keys.len(), 1);
    let key = &answer.api_keys[0];
    assert_eq!((key.api_key, key.min_version, key.max_version), (18, 0, 4));
    assert_eq!(
        world.call(connection, 4, &software()).error_code,
        ErrorCode::NONE,
        "the connection stays open"
    );
}

#[test]
fn any_other_version_that_is_not_served_closes_the_connection() {
    for (api, version) in [(0u8, 2u8), (0, 14), (1, 3), (3, 14), (17, 0), (99, 0)] {
        let mut world = World::with_topic();
        let connection = world.open(1);
        world.cluster.handle_bytes(
            world.now,
            connection,
            &[0, 0, 0, 10, 0, api, 0, version, 0, 0, 0, 1, 255, 255],
        );
        world.drain();
        assert!(world.is_closed(connection), "API {api} version {version}");
    }
}

/// Calls a function for every API that always answers, with its request and the versions that are served.
macro_rules! every_request {
    ($act:ident $(, $argument:expr)?) => {{
        use ottla_protocol::generated::*;
        $act::<fetch::FetchRequest>(4..=18 $(, $argument)?);
        $act::<list_offsets::ListOffsetsRequest>(1..=11 $(, $argument)?);
        $act::<metadata::MetadataRequest>(0..=13 $(, $argument)?);
        $act::<offset_commit::OffsetCommitRequest>(2..=10 $(, $argument)?);
        $act::<offset_fetch::OffsetFetchRequest>(1..=10 $(, $argument)?);
        $act::<find_coordinator::FindCoordinatorRequest>(0..=6 $(, $argument)?);
        $act::<join_group::JoinGroupRequest>(0..=9 $(, $argument)?);
        $act::<heartbeat::HeartbeatRequest>(0..=4 $(, $argument)?);
        $act::<leave_group::LeaveGroupRequest>(0..=5 $(, $argument)?);
        $act::<sync_group::SyncGroupRequest>(0..=5 $(, $argument)?);
        $act::<describe_groups::DescribeGroupsRequest>(0..=6 $(, $argument)?);
        $act::<list_groups::ListGroupsRequest>(0..=5 $(, $argument)?);
        $act::<create_topics::CreateTopicsRequest>(2..=7 $(, $argument)?);
        $act::<delete_topics::DeleteTopicsRequest>(1..=6 $(, $argument)?);
        $act::<delete_records::DeleteRecordsRequest>(0..=2 $(, $argument)?);
        $act::<init_producer_id::InitProducerIdRequest>(0..=5 $(, $argument)?);
        $act::<offset_for_leader_epoch::OffsetForLeaderEpochRequest>(2..=4 $(, $argument)?);
        $act::<describe_configs::DescribeConfigsRequest>(1..=4 $(, $argument)?);
        $act::<create_partitions::CreatePartitionsRequest>(0..=3 $(, $argument)?);
        $act::<delete_groups::DeleteGroupsRequest>(0..=2 $(, $argument)?);
        $act::<incremental_alter_configs::IncrementalAlterConfigsRequest>(0..=1 $(, $argument)?);
        $act::<list_partition_reassignments::ListPartitionReassignmentsRequest>(0..=0 $(, $argument)?);
        $act::<describe_cluster::DescribeClusterRequest>(0..=2 $(, $argument)?);
        $act::<list_config_resources::ListConfigResourcesRequest>(0..=1 $(, $argument)?);
        $act::<describe_topic_partitions::DescribeTopicPartitionsRequest>(0..=0 $(, $argument)?);
    }};
}

/// Sends an empty request in every version that is served and expects an answer that decodes to its last byte.
fn sweep<R: Request>(versions: std::ops::RangeInclusive<i16>) {
    for version in versions {
        let mut world = World::with_topic();
        let connection = world.open(1);
        let id = world.send(connection, version, &R::default());
        world.pass(Duration::from_secs(60));
        assert!(world.answer::<R>(connection, version, id).is_some(), "{:?} version {version}", R::API_KEY);
    }
}

#[test]
fn every_served_version_of_every_api_is_answered() {
    every_request!(sweep);
}

#[test]
fn what_is_produced_in_any_version_is_fetched_in_any_version() {
    let mut world = World::with_topic();
    let id = world.cluster.control().topic_id("t").unwrap();
    let connection = world.open(1);
    let mut next = 0;
    for version in 3..=13 {
        let mut request = produce_request("t", 0, 1, Batch::of(3).build());
        request.topic_data[0].topic_id = id;
        let answer = world.call(connection, version, &request);
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(
            (partition.error_code, partition.base_offset),
            (ErrorCode::NONE, next),
            "version {version}"
        );
        if version >= 13 {
            assert_eq!(answer.responses[0].topic_id, id);
        }
        next += 3;
    }
    for version in 4..=18 {
        let mut request = fetch_request("t", &[(0, 4)], 0);
        request.topics[0].topic_id = id;
        let answer = world.call(connection, version, &request);
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(
            (partition.error_code, partition.high_watermark),
            (ErrorCode::NONE, next),
            "version {version}"
        );
        assert_eq!(partition.last_stable_offset, next);
        let offsets = base_offsets(&records_of(&answer, 0));
        assert_eq!(offsets, (1..11).map(|i| i * 3).collect::<Vec<i64>>(), "version {version}");
    }
}

#[test]
fn a_stored_batch_differs_from_the_produced_one_only_in_offset_and_epoch() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.produce(connection, 0, Batch::of(2).build());
    assert!(world.cluster.control().move_leader("t", 0, Some(BrokerId(2))));
    let other = world.open(2);
    let batch = Batch::of(5).value_size(3000).build();
    assert_eq!(world.produce(other, 0, batch.clone()), (ErrorCode::NONE, 2));
    let stored = world.fetch(other, 0, 2).records.unwrap();
    assert_eq!(stored[..8], 2i64.to_be_bytes());
    assert_eq!(stored[12..16], 1i32.to_be_bytes());
    assert_eq!((&stored[8..12], &stored[16..]), (&batch[8..12], &batch[16..]));
}

#[test]
fn bad_batches_are_refused_as_kafka_does() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let good = Batch::of(2).build();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut batch = good.clone();
        change(&mut batch);
        batch
    };
    let cases: Vec<(&str, Vec<u8>, ErrorCode)> = vec![
        ("no batch", Vec::new(), ErrorCode::INVALID_RECORD),
        ("half a header", good[..40].to_vec(), ErrorCode::CORRUPT_MESSAGE),
        ("half a batch", good[..70].to_vec(), ErrorCode::CORRUPT_MESSAGE),
        ("two batches", [good.clone(), good.clone()].concat(), ErrorCode::INVALID_RECORD),
        ("an old magic", with(&|b| b[16] = 1), ErrorCode::INVALID_RECORD),
        ("a flipped bit", with(&|b| b[65] ^= 1), ErrorCode::CORRUPT_MESSAGE),
        ("a negative length", with(&|b| b[8] = 0x80), ErrorCode::CORRUPT_MESSAGE),
        ("a length of 2 GiB", with(&|b| b[8] = 0x7f), ErrorCode::CORRUPT_MESSAGE),
        ("too large", Batch::of(2).value_size(600_000).build(), ErrorCode::MESSAGE_TOO_LARGE),
        ("a control batch", Batch { attributes: 0x20, ..Batch::of(1) }.build(), ErrorCode::INVALID_RECORD),
        ("no records", Batch::of(0).build(), ErrorCode::INVALID_RECORD),
        ("a producer without a sequence", Batch::of(1).producer(5, 0, -1).build(), ErrorCode::INVALID_RECORD),
        (
            "transactional without a producer",
            Batch { attributes: 0x10, ..Batch::of(1) }.build(),
            ErrorCode::INVALID_RECORD,
        ),
    ];
    for (what, batch, error) in cases {
        assert_eq!(world.produce(connection, 0, batch), (error, -1), "{what}");
    }
    let answer = world.call(connection, 12, &produce_request("t", 0, 2, good.clone()));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::INVALID_REQUIRED_ACKS);
    let answer = world.call(connection, 12, &produce_request("no", 0, 1, good.clone()));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let zstd = Batch { attributes: 4, ..Batch::of(1) }.build();
    let answer = world.call(connection, 6, &produce_request("t", 0, 1, zstd));
    assert_eq!(
        answer.responses[0].partition_responses[0].error_code,
        ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
    );
    assert_eq!(world.produce(connection, 0, good), (ErrorCode::NONE, 0));
}

#[test]
fn sequences_are_checked_and_duplicates_are_acknowledged_with_their_old_offset() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let init = InitProducerIdRequest {
        transactional_id: None,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let id = world.call(connection, 5, &init).producer_id;
    assert_ne!(world.call(connection, 5, &init).producer_id, id);
    let batch = |epoch, sequence| Batch::of(3).producer(id, epoch, sequence).build();
    assert_eq!(world.produce(connection, 0, batch(0, 0)), (ErrorCode::NONE, 0));
    assert_eq!(world.produce(connection, 0, batch(0, 3)), (ErrorCode::NONE, 3));
    assert_eq!(world.produce(connection, 0, batch(0, 0)), (ErrorCode::NONE, 0));
    assert_eq!(world.produce(connection, 0, batch(0, 9)), (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().log_end_offset, 6);
    let bump = InitProducerIdRequest { producer_id: id, producer_epoch: 0, ..init };
    let bumped = world.call(connection, 5, &bump);
    assert_eq!((bumped.producer_id, bumped.producer_epoch), (id, 1));
    assert_eq!(world.produce(connection, 0, batch(1, 0)), (ErrorCode::NONE, 6));
    assert_eq!(world.produce(connection, 0, batch(0, 6)), (ErrorCode::INVALID_PRODUCER_EPOCH, -1));
}

#[test]
fn unacknowledged_produce_has_no_answer_but_an_error_closes_the_connection() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.send(connection, 9, &produce_request("t", 0, 0, Batch::of(4).build()));
    assert!(world.outputs.is_empty());
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().high_watermark, 4);
    world.send(connection, 9, &produce_request("t", 1, 0, Batch::of(4).build()));
    assert!(world.is_closed(connection));
}

#[test]
fn a_fetch_waits_for_enough_bytes_or_until_its_time_is_up() {
    let mut world = World::with_topic();
    let (producer, consumer) = (world.open(1), world.open(1));
    let size = i32::try_from(Batch::of(1).build().len()).unwrap();
    let mut request = fetch_request("t", &[(0, 0)], 500);
    request.min_bytes = size * 2;
    let id = world.send(consumer, 12, &request);
    world.produce(producer, 0, Batch::of(1).build());
    assert!(world.answer::<FetchRequest>(consumer, 12, id).is_none(), "one batch is not enough");
    world.produce(producer, 0, Batch::of(1).build());
    let answer = world.answer::<FetchRequest>(consumer, 12, id).expect("two batches are");
    assert_eq!(base_offsets(&records_of(&answer, 0)), [0, 1]);

    let id = world.send(consumer, 12, &fetch_request("t", &[(0, 2)], 500));
    world.pass(MS * 499);
    assert!(world.answer::<FetchRequest>(consumer, 12, id).is_none());
    world.pass(MS);
    let answer = world.answer::<FetchRequest>(consumer, 12, id).expect("the time is up");
    assert!(records_of(&answer, 0).is_empty());
    assert_eq!(world.cluster.poll_timeout(), None, "no timer is left behind");
}

#[test]
fn requests_behind_a_waiting_fetch_wait_too() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let fetch = world.send(connection, 12, &fetch_request("t", &[(0, 0)], 300));
    let cluster =
        world.send(connection, 2, &DescribeClusterRequest { endpoint_type: 1, ..Default::default() });
    assert!(world.outputs.is_empty());
    world.pass(MS * 300);
    assert!(world.answer::<FetchRequest>(connection, 12, fetch).is_some());
    let answer = world.answer::<DescribeClusterRequest>(connection, 2, cluster).unwrap();
    assert_eq!(answer.brokers.len(), 3);
}

#[test]
fn a_waiting_fetch_hears_of_a_new_leader_and_of_a_deleted_topic() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let id = world.send(connection, 10, &fetch_request("t", &[(0, 0)], 5000));
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    world.drain();
    let answer = world.answer::<FetchRequest>(connection, 10, id).unwrap();
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let other = world.open(2);
    let id = world.send(other, 12, &fetch_request("t", &[(0, 0)], 5000));
    world.cluster.control().delete_topic("t");
    world.drain();
    let answer = world.answer::<FetchRequest>(other, 12, id).unwrap();
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn an_incremental_session_tells_only_news() {
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
fn the_first_batch_is_fetched_whatever_its_size_and_limits_hold_after_it() {
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
        let answer = world.call(connection, 12, &request);
        [0, 1].map(|partition| base_offsets(&records_of(&answer, partition)).len())
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
        let answer = world.call(connection, 12, &request);
        assert_eq!(answer.responses[0].partitions[0].error_code, error, "epoch {epoch}");
    }
}

#[test]
fn the_old_leader_names_the_new_one_where_the_version_can() {
    let mut world = World::with_topic();
    world.cluster.control().set_rack(BrokerId(2), Some("r2"));
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    let id = world.cluster.control().topic_id("t").unwrap();
    let connection = world.open(1);
    for version in 3..=13 {
        let mut request = produce_request("t", 0, -1, Batch::of(1).build());
        request.topic_data[0].topic_id = id;
        let answer = world.call(connection, version, &request);
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
        let told = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
        assert_eq!(told, if version >= 10 { (2, 1) } else { (-1, -1) }, "Produce version {version}");
        let endpoints: Vec<_> =
            answer.node_endpoints.iter().map(|e| (e.node_id, e.rack.as_deref())).collect();
        assert_eq!(endpoints, if version >= 10 { vec![(2, Some("r2"))] } else { vec![] });
    }
    for version in 4..=18 {
        let mut request = fetch_request("t", &[(0, 0)], 0);
        request.topics[0].topic_id = id;
        request.topics[0].partitions[0].current_leader_epoch = 0;
        let answer = world.call(connection, version, &request);
        let partition = &answer.responses[0].partitions[0];
        let expected =
            if version >= 9 { ErrorCode::FENCED_LEADER_EPOCH } else { ErrorCode::NOT_LEADER_OR_FOLLOWER };
        assert_eq!(partition.error_code, expected, "Fetch version {version}");
        let told = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
        assert_eq!(told, if version >= 16 { (2, 1) } else { (-1, -1) }, "Fetch version {version}");
        assert_eq!(answer.node_endpoints.len(), usize::from(version >= 16));
    }
}

#[test]
fn consumers_of_version_11_may_read_from_followers_and_are_sent_to_their_rack() {
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
    let answer = world.call(leader, 11, &request);
    assert_eq!(answer.responses[0].partitions[0].preferred_read_replica, 2);
    let answer = world.call(follower, 11, &request);
    assert_eq!(base_offsets(&records_of(&answer, 0)), [0]);
    let answer = world.call(follower, 10, &request);
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
}

fn list(world: &mut World, partition: i32, timestamp: i64) -> (ErrorCode, i64, i64) {
    let connection = world.open(1);
    let wanted =
        list_offsets::request::Partition { partition_index: partition, timestamp, ..Default::default() };
    let topic = list_offsets::request::Topic { name: "t".to_owned(), partitions: vec![wanted] };
    let answer =
        world.call(connection, 11, &ListOffsetsRequest { topics: vec![topic], ..Default::default() });
    let found = &answer.topics[0].partitions[0];
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
fn metadata_names_topics_by_name_by_id_and_creates_them_if_both_sides_agree() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let id = world.cluster.control().topic_id("t").unwrap();
    let all = world.call(connection, 0, &MetadataRequest { topics: Some(Vec::new()), ..Default::default() });
    assert_eq!(all.topics.len(), 1);
    let none = world.call(connection, 1, &MetadataRequest { topics: Some(Vec::new()), ..Default::default() });
    assert_eq!((none.topics.len(), none.brokers.len()), (0, 3));
    let all = world.call(connection, 13, &MetadataRequest { topics: None, ..Default::default() });
    let topic = &all.topics[0];
    assert_eq!((topic.name.as_deref(), topic.topic_id), (Some("t"), id));
    let leaders: Vec<i32> = topic.partitions.iter().map(|p| p.leader_id).collect();
    assert_eq!(leaders, [1, 2, 3]);

    let ask = |world: &mut World, name: Option<&str>, topic_id, allow_auto_topic_creation| {
        let topic = metadata::request::Topic { name: name.map(str::to_owned), topic_id };
        let topics = Some(vec![topic]);
        let answer = world.call(
            connection,
            12,
            &MetadataRequest { topics, allow_auto_topic_creation, ..Default::default() },
        );
        (answer.topics[0].error_code, answer.topics[0].partitions.len())
    };
    assert_eq!(ask(&mut world, None, id, false), (ErrorCode::NONE, 3));
    assert_eq!(ask(&mut world, Some(""), id, false), (ErrorCode::NONE, 3), "as the Java client asks by id");
    assert_eq!(ask(&mut world, None, Uuid([7; 16]), false), (ErrorCode::UNKNOWN_TOPIC_ID, 0));
    assert_eq!(ask(&mut world, Some("new"), Uuid::ZERO, false), (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, 0));
    assert_eq!(ask(&mut world, Some("new"), Uuid::ZERO, true), (ErrorCode::NONE, 4));
    assert_eq!(ask(&mut world, Some("a b"), Uuid::ZERO, true), (ErrorCode::INVALID_TOPIC_EXCEPTION, 0));
    let long = "x".repeat(300);
    assert_eq!(ask(&mut world, Some(&long), Uuid::ZERO, true), (ErrorCode::INVALID_TOPIC_EXCEPTION, 0));
    world.cluster.control().options().auto_create_topics = false;
    assert_eq!(ask(&mut world, Some("newer"), Uuid::ZERO, true), (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, 0));
}

fn metadata_leader(world: &mut World, partition: usize) -> (i32, i32, ErrorCode) {
    let broker = (1..=3).find(|id| world.cluster.control().is_alive(BrokerId(*id))).unwrap();
    let connection = world.open(broker);
    let answer = world.call(connection, 13, &MetadataRequest { topics: None, ..Default::default() });
    let partition = &answer.topics[0].partitions[partition];
    (partition.leader_id, partition.leader_epoch, partition.error_code)
}

#[test]
fn frozen_metadata_goes_on_naming_the_old_leader() {
    let mut world = World::with_topic();
    world.cluster.control().freeze_metadata();
    world.cluster.control().move_leader("t", 0, Some(BrokerId(3)));
    assert_eq!(metadata_leader(&mut world, 0), (1, 0, ErrorCode::NONE));
    world.cluster.control().thaw_metadata();
    assert_eq!(metadata_leader(&mut world, 0), (3, 1, ErrorCode::NONE));
}

#[test]
fn replica_lists_of_unequal_length_are_refused() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let assign = |lists: &[&[i32]]| {
        let assignment = |(partition_index, ids): (i32, &&[i32])| create_topics::request::Assignment {
            partition_index,
            broker_ids: ids.to_vec(),
        };
        (0..).zip(lists).map(assignment).collect()
    };
    let mut create = |name: &str, lists: &[&[i32]]| {
        let topic = create_topics::request::Topic {
            name: name.to_owned(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: assign(lists),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
        let answer = world.call(connection, 7, &request);
        (answer.topics[0].error_code, answer.topics[0].error_message.clone().unwrap_or_default())
    };
    assert_eq!(create("equal", &[&[1, 2], &[2, 3]]).0, ErrorCode::NONE);
    let (code, message) = create("unequal", &[&[1, 2], &[3]]);
    assert_eq!(code, ErrorCode::INVALID_REPLICA_ASSIGNMENT);
    assert!(message.contains("partition 1 with 1 replica(s)"), "{message}");
}

#[test]
fn topics_are_created_described_grown_and_deleted() {
    let mut world = World::with_topic();
    let connection = world.open(2);
    let topic = |name: &str, num_partitions, replication_factor| create_topics::request::Topic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        ..Default::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![
            topic("a", 5, 2),
            topic("b", -1, -1),
            topic("t", 1, 1),
            topic("c", 0, 1),
            topic("d", 1, 4),
            topic("e f", 1, 1),
            topic("g", i32::MAX, 1),
        ],
        ..Default::default()
    };
    let answer = world.call(connection, 7, &request);
    let told: Vec<_> =
        answer.topics.iter().map(|t| (t.error_code, t.num_partitions, t.replication_factor)).collect();
    assert_eq!(
        told,
        [
            (ErrorCode::NONE, 5, 2),
            (ErrorCode::NONE, 4, 3),
            (ErrorCode::TOPIC_ALREADY_EXISTS, -1, -1),
            (ErrorCode::INVALID_PARTITIONS, -1, -1),
            (ErrorCode::INVALID_REPLICATION_FACTOR, -1, -1),
            (ErrorCode::INVALID_TOPIC_EXCEPTION, -1, -1),
            (ErrorCode::INVALID_PARTITIONS, -1, -1),
        ]
    );
    let grow = |name: &str, count| create_partitions::request::Topic {
        name: name.to_owned(),
        count,
        assignments: None,
    };
    let request = CreatePartitionsRequest {
        topics: vec![grow("a", 7), grow("b", 4), grow("no", 9)],
        ..Default::default()
    };
    let answer = world.call(connection, 3, &request);
    let errors: Vec<_> = answer.results.iter().map(|r| r.error_code).collect();
    assert_eq!(
        errors,
        [ErrorCode::NONE, ErrorCode::INVALID_PARTITIONS, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]
    );
    assert!(world.cluster.control().partition("a", 6).is_some());

    let mut cursor = None;
    let mut seen = Vec::new();
    loop {
        let request =
            DescribeTopicPartitionsRequest { response_partition_limit: 3, cursor, ..Default::default() };
        let answer = world.call(connection, 0, &request);
        for topic in &answer.topics {
            seen.extend(topic.partitions.iter().map(|p| (topic.name.clone().unwrap(), p.partition_index)));
        }
        let Some(next) = answer.next_cursor else { break };
        cursor = Some(describe_topic_partitions::request::Cursor {
            topic_name: next.topic_name,
            partition_index: next.partition_index,
        });
    }
    let expected = [("a", 7), ("b", 4), ("t", 3)];
    let expected = expected.iter().flat_map(|(name, n)| (0..*n).map(|i| ((*name).to_owned(), i)));
    assert_eq!(seen, expected.collect::<Vec<_>>(), "page by page, each once");

    let id = world.cluster.control().topic_id("a").unwrap();
    let by_id = delete_topics::request::Topic { name: None, topic_id: id };
    let by_name = delete_topics::request::Topic { name: Some("no".to_owned()), topic_id: Uuid::ZERO };
    let answer = world.call(
        connection,
        6,
        &DeleteTopicsRequest { topics: vec![by_id, by_name], ..Default::default() },
    );
    let told: Vec<_> = answer.responses.iter().map(|r| (r.name.clone().unwrap(), r.error_code)).collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(told, [("a".to_owned(), ErrorCode::NONE), ("no".to_owned(), unknown)]);
    assert_eq!(world.cluster.control().topics(), ["b", "t"]);
}

#[test]
fn topic_configuration_is_described_changed_and_obeyed() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let change = |name: &str, operation, value: Option<&str>| incremental_alter_configs::request::Config {
        name: name.to_owned(),
        config_operation: operation,
        value: value.map(str::to_owned),
    };
    let alter = |world: &mut World, configs| {
        let resource = incremental_alter_configs::request::Resource {
            resource_type: 2,
            resource_name: "t".to_owned(),
            configs,
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        world.call(connection, 1, &request).responses[0].error_code
    };
    let set = vec![
        change("max.message.bytes", 0, Some("200")),
        change("message.timestamp.type", 0, Some("LogAppendTime")),
    ];
    assert_eq!(alter(&mut world, set), ErrorCode::NONE);
    assert_eq!(alter(&mut world, vec![change("no.such", 0, Some("1"))]), ErrorCode::INVALID_CONFIG);
    assert_eq!(alter(&mut world, vec![change("max.message.bytes", 0, Some("x"))]), ErrorCode::INVALID_CONFIG);
    assert_eq!(alter(&mut world, vec![change("max.message.bytes", 2, Some("1"))]), ErrorCode::INVALID_CONFIG);
    let resource = describe_configs::request::Resource {
        resource_type: 2,
        resource_name: "t".to_owned(),
        configuration_keys: Some(vec!["max.message.bytes".to_owned(), "cleanup.policy".to_owned()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = world.call(connection, 4, &request);
    let told: Vec<_> =
        answer.results[0].configs.iter().map(|c| (c.value.clone().unwrap(), c.config_source)).collect();
    assert_eq!(told, [("delete".to_owned(), 5), ("200".to_owned(), 1)]);

    assert_eq!(
        world.produce(connection, 0, Batch::of(1).value_size(300).build()),
        (ErrorCode::MESSAGE_TOO_LARGE, -1)
    );
    world.pass(MS * 7);
    let answer = world.call(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    let append_time = answer.responses[0].partition_responses[0].log_append_time_ms;
    assert_eq!(append_time, ClusterOptions::default().unix_time_origin_ms + 7);
    let stored = world.fetch(connection, 0, 0).records.unwrap();
    assert_eq!(stored[35..43], append_time.to_be_bytes());
    let crc = u32::try_from(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &stored[21..])).unwrap();
    assert_eq!(stored[17..21], crc.to_be_bytes(), "the checksum covers the changed timestamp");
}

#[test]
fn epochs_end_where_the_next_leader_began() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.produce(connection, 0, Batch::of(5).build());
    for _ in 0..3 {
        world.cluster.control().move_leader("t", 0, Some(BrokerId(1)));
    }
    world.produce(connection, 0, Batch::of(5).build());
    let end_of = |world: &mut World, leader_epoch| {
        let wanted =
            offset_for_leader_epoch::request::Partition { partition: 0, leader_epoch, ..Default::default() };
        let topic =
            offset_for_leader_epoch::request::Topic { topic: "t".to_owned(), partitions: vec![wanted] };
        let answer = world.call(
            connection,
            4,
            &OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() },
        );
        let found = &answer.topics[0].partitions[0];
        (found.leader_epoch, found.end_offset)
    };
    assert_eq!(end_of(&mut world, 0), (0, 5));
    assert_eq!(end_of(&mut world, 2), (0, 5));
    assert_eq!(end_of(&mut world, 3), (3, 10));
    assert_eq!(end_of(&mut world, 4), (-1, -1));

    world.cluster.control().truncate_log("t", 0, 5);
    let mut request = fetch_request("t", &[(0, 10)], 0);
    request.topics[0].partitions[0].last_fetched_epoch = 3;
    let answer = world.call(connection, 12, &request);
    let diverging = &answer.responses[0].partitions[0].diverging_epoch;
    assert_eq!((diverging.epoch, diverging.end_offset), (0, 5));
}

#[test]
fn records_are_deleted_up_to_the_high_watermark() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.produce(connection, 0, Batch::of(5).build());
    let delete = |world: &mut World, offset| {
        let wanted = delete_records::request::Partition { partition_index: 0, offset };
        let topic = delete_records::request::Topic { name: "t".to_owned(), partitions: vec![wanted] };
        let answer =
            world.call(connection, 2, &DeleteRecordsRequest { topics: vec![topic], ..Default::default() });
        (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].low_watermark)
    };
    assert_eq!(delete(&mut world, 3), (ErrorCode::NONE, 3));
    assert_eq!(delete(&mut world, 6), (ErrorCode::OFFSET_OUT_OF_RANGE, -1));
    assert_eq!(delete(&mut world, -1), (ErrorCode::NONE, 5));
}

#[test]
fn coordinators_are_found_one_by_one_and_many_at_once() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let one =
        world.call(connection, 3, &FindCoordinatorRequest { key: "g".to_owned(), ..Default::default() });
    let keys = vec!["g".to_owned(), "h".to_owned()];
    let many =
        world.call(connection, 6, &FindCoordinatorRequest { coordinator_keys: keys, ..Default::default() });
    assert_eq!(many.coordinators.len(), 2);
    assert_eq!(many.coordinators[0].node_id, one.node_id);
    world.cluster.control().kill_broker(BrokerId(one.node_id), Tail::Kept);
    let broker = if one.node_id == 1 { 2 } else { 1 };
    let connection = world.open(broker);
    let other =
        world.call(connection, 3, &FindCoordinatorRequest { key: "g".to_owned(), ..Default::default() });
    assert_ne!(other.node_id, one.node_id, "a broker that is down coordinates nothing");
}

#[test]
fn a_lost_answer_leaves_the_records_in_the_log_and_a_closed_connection_does_not() {
    let mut world = World::with_topic();
    let inject = |world: &mut World, action| {
        world.cluster.control().inject(Fault::new(action).api(ApiKey::Produce).times(1));
    };
    inject(&mut world, FaultAction::LoseAnswer);
    let connection = world.open(1);
    world.send(connection, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    assert!(world.is_closed(connection));
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().log_end_offset, 1);

    inject(&mut world, FaultAction::CloseConnection);
    let connection = world.open(1);
    world.send(connection, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    assert!(world.is_closed(connection));
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().log_end_offset, 1);

    let connection = world.open(1);
    assert_eq!(
        world.produce(connection, 0, Batch::of(1).build()),
        (ErrorCode::NONE, 1),
        "the faults are over"
    );
}

#[test]
fn injected_errors_hit_their_api_topic_and_partition_only() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().move_leader("t", 1, Some(BrokerId(1)));
    let error = FaultAction::Error(ErrorCode::NOT_ENOUGH_REPLICAS);
    world.cluster.control().inject(Fault::new(error).api(ApiKey::Produce).topic("t").partition(1).times(1));
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()), (ErrorCode::NONE, 0));
    assert_eq!(world.produce(connection, 1, Batch::of(1).build()), (ErrorCode::NOT_ENOUGH_REPLICAS, -1));
    assert_eq!(world.produce(connection, 1, Batch::of(1).build()), (ErrorCode::NONE, 0));
    let error = FaultAction::Error(ErrorCode::UNKNOWN_SERVER_ERROR);
    world.cluster.control().inject(Fault::new(error).api(ApiKey::Fetch).times(2));
    let answer = world.call(connection, 12, &fetch_request("t", &[(0, 0)], 500));
    assert_eq!(answer.error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    let answer = world.call(connection, 6, &fetch_request("t", &[(0, 0)], 500));
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(world.fetch(connection, 0, 0).error_code, ErrorCode::NONE);
}

#[test]
fn late_answers_keep_their_order() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let delay = FaultAction::Delay(MS * 100);
    world.cluster.control().inject(Fault::new(delay).api(ApiKey::Metadata).times(1));
    world.cluster.control().set_latency(BrokerId(1), MS * 10);
    let first = world.send(connection, 13, &MetadataRequest::default());
    let second = world.send(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    assert_eq!(
        world.cluster.control().partition("t", 0).unwrap().log_end_offset,
        1,
        "only the answer is late"
    );
    world.pass(MS * 99);
    assert!(world.outputs.is_empty());
    world.pass(MS);
    assert!(world.answer::<MetadataRequest>(connection, 13, first).is_some());
    assert!(world.answer::<ProduceRequest>(connection, 12, second).is_some());
    let third = world.send(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    world.pass(MS * 10);
    assert!(world.answer::<ProduceRequest>(connection, 12, third).is_some());
}

#[test]
fn an_answer_without_delay_does_not_pass_one_that_is_due_at_the_same_time() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().set_latency(BrokerId(1), MS * 10);
    let first = world.send(connection, 13, &MetadataRequest::default());
    world.cluster.control().set_latency(BrokerId(1), Duration::ZERO);
    // The timer is not served yet when the next request comes.
    world.now += MS * 10;
    let second = world.send(connection, 13, &MetadataRequest::default());
    world.pass(MS);
    assert!(world.answer::<MetadataRequest>(connection, 13, first).is_some());
    assert!(world.answer::<MetadataRequest>(connection, 13, second).is_some());
}

#[test]
fn answers_can_be_spoiled() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().inject(Fault::new(FaultAction::ShiftCorrelationId(5)).times(1));
    let id = world.send(connection, 4, &software());
    assert!(world.answer::<ApiVersionsRequest>(connection, 4, id + 5).is_some());

    world.cluster.control().inject(Fault::new(FaultAction::Throttle(MS * 250)).times(1));
    assert_eq!(world.call(connection, 4, &software()).throttle_time_ms, 250);

    world.cluster.control().inject(Fault::new(FaultAction::ReplaceAnswer(b"HTTP/1.1 400".to_vec())).times(1));
    world.send(connection, 4, &software());
    let Some(Output::Send { frame, .. }) = world.outputs.pop_front() else { panic!("no answer") };
    assert_eq!(frame.to_vec(), b"HTTP/1.1 400");

    world.cluster.control().inject(Fault::new(FaultAction::NeverAnswer).times(1));
    let silent = world.open(1);
    world.send(silent, 4, &software());
    world.send(silent, 4, &software());
    world.pass(Duration::from_secs(100));
    assert!(world.outputs.is_empty());

    world.cluster.control().inject(Fault::new(FaultAction::TruncateAnswer(7)).times(1));
    world.send(connection, 4, &software());
    world.pass(Duration::ZERO);
    let Some(Output::Send { frame, .. }) = world.outputs.pop_front() else { panic!("no answer") };
    assert_eq!(frame.len(), 7);
    assert!(world.is_closed(connection));
}

fn lagging() -> World {
    let options = ClusterOptions { replication_lag: MS * 20, ..Default::default() };
    let mut world = World::new(options);
    world.cluster.control().create_topic("t", 3, 3).unwrap();
    world
}

#[test]
fn with_lagging_followers_acks_all_waits_and_consumers_see_nothing_yet() {
    let mut world = lagging();
    let (producer, consumer) = (world.open(1), world.open(1));
    let id = world.send(producer, 12, &produce_request("t", 0, -1, Batch::of(3).build()));
    assert_eq!(world.fetch(consumer, 0, 0).high_watermark, 0);
    world.pass(MS * 19);
    assert!(world.answer::<ProduceRequest>(producer, 12, id).is_none());
    world.pass(MS);
    let answer = world.answer::<ProduceRequest>(producer, 12, id).unwrap();
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    assert_eq!(world.fetch(consumer, 0, 0).high_watermark, 3);

    let mut request = produce_request("t", 0, -1, Batch::of(3).build());
    request.timeout_ms = 5;
    let id = world.send(producer, 12, &request);
    world.pass(MS * 5);
    let answer = world.answer::<ProduceRequest>(producer, 12, id).unwrap();
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::REQUEST_TIMED_OUT);
}

#[test]
fn a_killed_broker_loses_only_what_followers_had_not_got() {
    let mut world = lagging();
    let connection = world.open(1);
    let batch = |sequence| Batch::of(1).producer(9, 0, sequence).build();
    world.call(connection, 12, &produce_request("t", 0, 1, batch(0)));
    world.pass(MS * 20);
    world.call(connection, 12, &produce_request("t", 0, 1, batch(1)));
    let waiting = world.send(connection, 12, &produce_request("t", 0, -1, batch(2)));
    world.cluster.control().kill_broker(BrokerId(1), Tail::Lost);
    world.drain();
    assert!(world.is_closed(connection));
    assert!(world.answer::<ProduceRequest>(connection, 12, waiting).is_none());
    assert!(world.cluster.open(world.now, BrokerId(1)).is_none());
    let state = world.cluster.control().partition("t", 0).unwrap();
    assert_eq!((state.leader, state.leader_epoch, state.log_end_offset), (Some(BrokerId(2)), 1, 1));
    assert_eq!(state.in_sync, [BrokerId(2), BrokerId(3)]);
    let connection = world.open(2);
    let answer = world.call(connection, 12, &produce_request("t", 0, 1, batch(1)));
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(
        (partition.error_code, partition.base_offset),
        (ErrorCode::NONE, 1),
        "the sequence is known as lost"
    );

    world.cluster.control().restart_broker(BrokerId(1));
    let state = world.cluster.control().partition("t", 0).unwrap();
    assert_eq!((state.leader, state.in_sync.len()), (Some(BrokerId(2)), 3));
    world.cluster.control().elect_preferred_leaders();
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().leader, Some(BrokerId(1)));
}

#[test]
fn a_partition_whose_only_replica_is_down_has_no_leader_until_it_is_back() {
    let mut world = World::new(ClusterOptions::default());
    world.cluster.control().create_topic("t", 3, 1).unwrap();
    let connection = world.open(2);
    world.produce(connection, 1, Batch::of(2).build());
    world.cluster.control().kill_broker(BrokerId(2), Tail::Lost);
    assert_eq!(metadata_leader(&mut world, 1), (-1, 1, ErrorCode::LEADER_NOT_AVAILABLE));
    world.cluster.control().restart_broker(BrokerId(2));
    assert_eq!(metadata_leader(&mut world, 1), (2, 2, ErrorCode::NONE));
    assert_eq!(world.cluster.control().partition("t", 1).unwrap().log_end_offset, 2);
}

#[test]
fn too_few_replicas_in_sync_refuse_acks_all_only() {
    let mut world = World::new(ClusterOptions { min_insync_replicas: 2, ..Default::default() });
    world.cluster.control().create_topic("t", 1, 2).unwrap();
    world.cluster.control().kill_broker(BrokerId(2), Tail::Kept);
    let connection = world.open(1);
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()), (ErrorCode::NOT_ENOUGH_REPLICAS, -1));
    let answer = world.call(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
}

#[test]
fn logs_stay_within_their_bytes_and_drop_the_oldest_records() {
    let mut world = World::new(ClusterOptions { retention_bytes: 100_000, ..Default::default() });
    world.cluster.control().create_topic("t", 3, 3).unwrap();
    for i in 0..300 {
        let connection = world.open(i % 3 + 1);
        world.produce(connection, i % 3, Batch::of(10).value_size(100).build());
    }
    let states: Vec<_> = (0..3).map(|p| world.cluster.control().partition("t", p).unwrap()).collect();
    let bytes: u64 = states.iter().map(|state| state.bytes).sum();
    assert!((50_000..=100_000).contains(&bytes), "{bytes} bytes");
    for state in states {
        assert_eq!(state.log_end_offset, 1000);
        assert!(state.log_start_offset > 0);
    }
}

#[test]
fn a_discarding_cluster_counts_and_keeps_nothing() {
    let mut world = World::new(ClusterOptions { discard: true, ..Default::default() });
    world.cluster.control().create_topic("t", 1, 1).unwrap();
    let connection = world.open(1);
    for i in 0..10 {
        assert_eq!(
            world.produce(connection, 0, Batch::of(7).value_size(20_000).build()),
            (ErrorCode::NONE, i * 7)
        );
    }
    let state = world.cluster.control().partition("t", 0).unwrap();
    assert_eq!((state.log_start_offset, state.high_watermark, state.bytes), (70, 70, 0));
}

#[test]
fn an_older_broker_can_be_emulated() {
    let mut world = World::with_topic();
    world.cluster.control().set_api_versions(None, ApiKey::Metadata, 0, 4);
    world.cluster.control().set_api_versions(Some(BrokerId(1)), ApiKey::DescribeCluster, 0, -1);
    let connection = world.open(1);
    let told = world.call(connection, 3, &software()).api_keys;
    let metadata = told.iter().find(|key| key.api_key == 3).unwrap();
    assert_eq!((metadata.min_version, metadata.max_version), (0, 4));
    assert!(told.iter().all(|key| key.api_key != 60));
    assert_eq!(world.call(connection, 4, &MetadataRequest::default()).brokers.len(), 3);
    world.send(connection, 5, &MetadataRequest::default());
    assert!(world.is_closed(connection));
}

#[test]
fn clients_of_earlier_times_produce_and_fetch_message_sets() {
    let releases =
        [BrokerRelease::V0_8_2, BrokerRelease::V0_9_0, BrokerRelease::V0_10_0, BrokerRelease::V0_10_1];
    for (release, produce_version, fetch_version) in [
        (releases[0], 0, 0),
        (releases[1], 1, 1),
        (releases[2], 2, 2),
        (releases[3], 2, 3),
        (BrokerRelease::V0_11_0, 2, 5),
    ] {
        let mut world = World::new(ClusterOptions::default().emulate(release));
        world.cluster.control().create_topic("t", 1, 1).unwrap();
        let connection = world.open(1);
        let format = if produce_version < 2 { LegacyFormat::V0 } else { LegacyFormat::V1 };
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        builder.append(500, Some(b"k"), Some(b"v"), &[]);
        builder.append(501, None, None, &[]);
        let set = builder.seal(&SealOptions::default()).unwrap();
        let (header, set) = (BatchHeader::parse(&set.to_vec()).unwrap(), set.to_vec());
        let mut message_set = Vec::new();
        let records = Records::new(&header, &set[layout::RECORDS..]).map(Result::unwrap);
        put_message_set(format, Compression::None, None, records, &mut message_set).unwrap();
        for base_offset in [0, 2] {
            let request = produce_request("t", 0, 1, message_set.clone());
            let answer = world.call(connection, produce_version, &request);
            let partition = &answer.responses[0].partition_responses[0];
            assert_eq!((partition.error_code, partition.base_offset), (ErrorCode::NONE, base_offset));
        }
        let answer = world.call(connection, fetch_version, &fetch_request("t", &[(0, 0)], 0));
        let fetched = records_of(&answer, 0);
        let batches: Vec<_> = Batches::new(&fetched).map(Result::unwrap).collect();
        if fetch_version >= 4 {
            assert_eq!(batches.len(), 2);
            continue;
        }
        let messages: Vec<_> = batches
            .iter()
            .map(|batch| match batch {
                ReadBatch::Legacy(message) => *message,
                ReadBatch::V2(_) => panic!("{release:?} knows no record batches"),
            })
            .collect();
        assert_eq!(messages.iter().map(|m| m.offset).collect::<Vec<_>>(), [0, 1, 2, 3], "{release:?}");
        assert_eq!(
            (messages[2].key, messages[2].value, messages[3].value),
            (Some(&b"k"[..]), Some(&b"v"[..]), None)
        );
        let timestamps: Vec<_> = messages.iter().map(|m| m.timestamp).collect();
        let expected = if fetch_version < 2 { [-1; 4] } else { [500, 501, 500, 501] };
        assert_eq!(timestamps, expected, "{release:?}");
        let wanted =
            list_offsets::request::Partition { timestamp: -1, max_num_offsets: 5, ..Default::default() };
        let topic = list_offsets::request::Topic { name: "t".to_owned(), partitions: vec![wanted] };
        let answer =
            world.call(connection, 0, &ListOffsetsRequest { topics: vec![topic], ..Default::default() });
        assert_eq!(answer.topics[0].partitions[0].old_style_offsets, [4, 0]);
    }
}

#[test]
fn a_broker_older_than_api_versions_closes_the_connection_when_asked() {
    let mut world = World::new(ClusterOptions::default().emulate(BrokerRelease::V0_9_0));
    let connection = world.open(1);
    world.send(connection, 0, &software());
    assert!(world.is_closed(connection));
    let connection = world.open(1);
    let all = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    assert_eq!(world.call(connection, 0, &all).brokers.len(), 3);
}

/// A run with everything in it: what came out, in bytes.
fn eventful_run(seed: u64, cut: usize) -> Vec<u8> {
    let options = ClusterOptions { seed, replication_lag: MS * 3, ..Default::default() };
    let mut cluster = Cluster::new(options);
    cluster.control().create_topic("t", 3, 3).unwrap();
    let mut transcript = Vec::new();
    let mut now = Instant::ZERO;
    let connections: Vec<_> = (1..=3).map(|id| cluster.open(now, BrokerId(id)).unwrap()).collect();
    for step in 0..200 {
        now += MS;
        let broker = step % 3;
        let partition = i32::try_from(broker).unwrap();
        let bytes = match step % 4 {
            0 | 1 => frame(1, 12, &produce_request("t", partition, -1, Batch::of(3).value_size(900).build())),
            2 => frame(2, 12, &fetch_request("t", &[(partition, 0)], 10)),
            _ => frame(3, 13, &MetadataRequest { topics: None, ..Default::default() }),
        };
        for piece in bytes.chunks(cut) {
            cluster.handle_bytes(now, connections[broker], piece);
        }
        if step % 50 == 49 {
            cluster.control().rotate_leaders();
            cluster.control().create_topic(&format!("t{step}"), 2, 2).unwrap();
        }
        while let Some(due) = cluster.poll_timeout().filter(|due| *due <= now) {
            cluster.handle_timeout(due);
        }
        while let Some(output) = cluster.poll_output() {
            match output {
                Output::Send { connection, frame } => {
                    transcript.extend_from_slice(&connection.0.to_be_bytes());
                    transcript.extend(frame.to_vec());
                }
                other => transcript.extend(format!("{other:?}").bytes()),
            }
        }
    }
    transcript
}

#[test]
fn the_same_seed_gives_the_same_bytes_however_the_input_is_cut() {
    let first = eventful_run(7, usize::MAX);
    assert!(first.len() > 100_000);
    assert_eq!(first, eventful_run(7, usize::MAX));
    assert_eq!(first, eventful_run(7, 13));
    assert_ne!(first, eventful_run(8, usize::MAX), "topic ids come from the seed");
}

/// An empty request in every version that is served.
fn add_frames<R: Request>(versions: std::ops::RangeInclusive<i16>, frames: &mut Vec<Vec<u8>>) {
    frames.extend(versions.map(|version| frame(1, version, &R::default())));
}

#[test]
fn hostile_frames_never_panic_and_never_stop_the_cluster() {
    let mut world = World::with_topic();
    let mut seeds: Vec<Vec<u8>> = vec![
        frame(1, 12, &produce_request("t", 0, -1, Batch::of(3).build())),
        frame(1, 13, &produce_request("t", 0, 1, Batch::of(3).build())),
        frame(1, 12, &fetch_request("t", &[(0, 0), (1, 5)], 0)),
        frame(1, 18, &fetch_request("t", &[(0, 0)], 0)),
        frame(1, 12, &MetadataRequest { topics: None, ..Default::default() }),
        frame(1, 4, &software()),
    ];
    every_request!(add_frames, &mut seeds);
    let mut random = 88172645463325252u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    for round in 0..30_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=next(4) {
            let at = 4 + next(bytes.len() - 4);
            match next(3) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
                _ => {
                    bytes.truncate(at.max(5));
                    let length = i32::try_from(bytes.len() - 4).unwrap();
                    bytes[..4].copy_from_slice(&length.to_be_bytes());
                }
            }
        }
        let connection = world.open(1);
        world.cluster.handle_bytes(world.now, connection, &bytes);
        world.pass(MS);
        world.cluster.handle_closed(world.now, connection);
        world.outputs.clear();
    }
    let connection = world.open(1);
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()).0, ErrorCode::NONE);
}

#[test]
fn a_removed_broker_leaves_its_partitions_to_others_and_an_added_one_takes_its_share() {
    let mut world = World::with_topic();
    world.cluster.control().create_topic("spread", 6, 2).unwrap();
    let removed = BrokerId(2);
    assert!(world.cluster.control().remove_broker(removed));
    assert!(!world.cluster.control().remove_broker(removed));
    let mut control = world.cluster.control();
    for partition in 0..6 {
        let state = control.partition("spread", partition).unwrap();
        assert_eq!((state.replicas.len(), state.in_sync.len()), (2, 2), "{state:?}");
        assert!(!state.replicas.contains(&removed) && state.leader.is_some_and(|leader| leader != removed));
    }
    assert!(control.add_broker(BrokerId(0), "localhost", 9999));
    assert!(!control.add_broker(BrokerId(0), "localhost", 9999) && !control.add_broker(BrokerId(-1), "a", 1));
    let led = (0..6).filter(|p| control.partition("spread", *p).unwrap().leader == Some(BrokerId(0)));
    assert_eq!(led.count(), 2);
}

#[test]
fn a_broker_that_is_unlisted_or_unreachable_keeps_its_partitions() {
    let mut world = World::with_topic();
    world.cluster.control().create_topic("kept", 3, 1).unwrap();
    let led = world.cluster.control().partition("kept", 1).unwrap().leader.unwrap();
    let other = world.cluster.control().brokers().into_iter().find(|id| *id != led).unwrap();
    world.cluster.control().set_reachable(led, false);
    assert_eq!(world.cluster.open(world.now, led), None);
    let connection = world.open(other.0);
    let brokers =
        |answer: &metadata::MetadataResponse| answer.brokers.iter().map(|b| b.node_id).collect::<Vec<_>>();
    let answer = world.call(connection, 9, &MetadataRequest::default());
    assert!(brokers(&answer).contains(&led.0));
    world.cluster.control().set_reachable(led, true);
    assert!(world.cluster.open(world.now, led).is_some());
    world.cluster.control().set_listed(led, false);
    let answer = world.call(connection, 9, &MetadataRequest::default());
    assert!(!brokers(&answer).contains(&led.0));
    assert_eq!(world.cluster.control().partition("kept", 1).unwrap().leader, Some(led));
}
