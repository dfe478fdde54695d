//! The cluster without I/O, driven by the generated protocol types.

mod common;

use std::time::Duration;

use common::{Batch, World, base_offsets, fetch_request, frame, produce_request, records_of, software};
use ottla_embedded_broker::{BrokerId, BrokerRelease, Cluster, ClusterOptions, Output};
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
        init_producer_id::InitProducerIdRequest,
        list_offsets::{self, ListOffsetsRequest},
        metadata::MetadataRequest,
    },
    message::Request,
    time::Instant,
};

const MS: Duration = Duration::from_millis(1);

/// The versions that Apache Kafka 4.4.0 advertises, of the APIs that this cluster has.
const KAFKA_4_4_0: &[(i16, i16, i16)] = &[
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
    (17, 0, 1),
    (18, 0, 5),
    (19, 2, 7),
    (20, 1, 6),
    (21, 0, 2),
    (22, 0, 5),
    (23, 2, 4),
    (24, 0, 5),
    (25, 0, 4),
    (26, 0, 5),
    (27, 1, 2),
    (28, 0, 6),
    (29, 1, 3),
    (30, 1, 3),
    (31, 1, 3),
    (32, 1, 4),
    (33, 0, 2),
    (34, 1, 2),
    (35, 1, 5),
    (36, 0, 2),
    (37, 0, 3),
    (38, 1, 3),
    (39, 1, 2),
    (40, 1, 2),
    (41, 1, 3),
    (42, 0, 3),
    (43, 0, 2),
    (44, 0, 1),
    (45, 0, 1),
    (46, 0, 0),
    (47, 0, 0),
    (48, 0, 1),
    (49, 0, 1),
    (50, 0, 0),
    (51, 0, 0),
    (55, 0, 2),
    (57, 0, 2),
    (60, 0, 2),
    (61, 0, 0),
    (64, 0, 0),
    (65, 0, 0),
    (66, 0, 2),
    (68, 0, 1),
    (69, 0, 1),
    (74, 0, 1),
    (75, 0, 0),
    (76, 1, 1),
    (77, 1, 1),
    (78, 1, 2),
    (79, 1, 2),
    (88, 0, 1),
    (89, 0, 1),
    (90, 0, 1),
    (91, 0, 0),
    (92, 0, 0),
    (93, 0, 0),
    (94, 0, 0),
];

#[test]
fn versions_of_kafka_4_4_are_advertised() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    for version in 0..=4 {
        let response = world.call(connection, version, &software());
        assert_eq!(response.error_code, ErrorCode::NONE);
        let reported: Vec<_> =
            response.api_keys.iter().map(|k| (k.api_key, k.min_version, k.max_version)).collect();
        assert_eq!(reported, KAFKA_4_4_0);
    }
}

#[test]
fn unknown_version_of_api_versions_gets_a_response_in_version_0() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let mut bytes = frame(5, 4, &software());
    bytes[7] = 99;
    world.cluster.handle_bytes(world.now, connection, &bytes);
    world.drain();
    let response = world.respond::<ApiVersionsRequest>(connection, 0, 5).unwrap();
    assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(response.api_keys.len(), 1);
    let key = &response.api_keys[0];
    assert_eq!((key.api_key, key.min_version, key.max_version), (18, 0, 5));
    assert_eq!(
        world.call(connection, 4, &software()).error_code,
        ErrorCode::NONE,
        "the connection stays open"
    );
}

#[test]
fn unsupported_version_of_another_api_closes_the_connection() {
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

/// Calls a function for every API that always responds, with its request and the served versions.
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
        $act::<describe_acls::DescribeAclsRequest>(1..=3 $(, $argument)?);
        $act::<create_acls::CreateAclsRequest>(1..=3 $(, $argument)?);
        $act::<delete_acls::DeleteAclsRequest>(1..=3 $(, $argument)?);
        $act::<describe_configs::DescribeConfigsRequest>(1..=4 $(, $argument)?);
        $act::<create_partitions::CreatePartitionsRequest>(0..=3 $(, $argument)?);
        $act::<delete_groups::DeleteGroupsRequest>(0..=3 $(, $argument)?);
        $act::<offset_delete::OffsetDeleteRequest>(0..=0 $(, $argument)?);
        $act::<incremental_alter_configs::IncrementalAlterConfigsRequest>(0..=1 $(, $argument)?);
        $act::<list_partition_reassignments::ListPartitionReassignmentsRequest>(0..=0 $(, $argument)?);
        $act::<describe_cluster::DescribeClusterRequest>(0..=2 $(, $argument)?);
        $act::<list_config_resources::ListConfigResourcesRequest>(0..=1 $(, $argument)?);
        $act::<describe_topic_partitions::DescribeTopicPartitionsRequest>(0..=0 $(, $argument)?);
        $act::<add_partitions_to_txn::AddPartitionsToTxnRequest>(0..=5 $(, $argument)?);
        $act::<add_offsets_to_txn::AddOffsetsToTxnRequest>(0..=4 $(, $argument)?);
        $act::<end_txn::EndTxnRequest>(0..=5 $(, $argument)?);
        $act::<write_txn_markers::WriteTxnMarkersRequest>(1..=2 $(, $argument)?);
        $act::<txn_offset_commit::TxnOffsetCommitRequest>(0..=6 $(, $argument)?);
        $act::<describe_producers::DescribeProducersRequest>(0..=0 $(, $argument)?);
        $act::<describe_transactions::DescribeTransactionsRequest>(0..=0 $(, $argument)?);
        $act::<list_transactions::ListTransactionsRequest>(0..=2 $(, $argument)?);
        $act::<streams_group_heartbeat::StreamsGroupHeartbeatRequest>(0..=1 $(, $argument)?);
        $act::<streams_group_describe::StreamsGroupDescribeRequest>(0..=1 $(, $argument)?);
        $act::<streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateRequest>(
            0..=0 $(, $argument)?
        );
    }};
}

/// Sends an empty request in every served version and expects a response that decodes to its last byte.
fn sweep<R: Request>(versions: std::ops::RangeInclusive<i16>) {
    for version in versions {
        let mut world = World::with_topic();
        let connection = world.open(1);
        let id = world.send(connection, version, &R::default());
        world.pass(Duration::from_secs(60));
        assert!(world.respond::<R>(connection, version, id).is_some(), "{:?} version {version}", R::API_KEY);
    }
}

#[test]
fn every_served_version_of_every_api_gets_a_response() {
    every_request!(sweep);
}

#[test]
fn records_produced_in_any_version_are_fetched_in_any_version() {
    let mut world = World::with_topic();
    let id = world.cluster.control().topic_id("t").unwrap();
    let connection = world.open(1);
    let mut next = 0;
    for version in 3..=13 {
        let mut request = produce_request("t", 0, 1, Batch::of(3).build());
        request.topic_data[0].topic_id = id;
        let response = world.call(connection, version, &request);
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(
            (partition.error_code, partition.base_offset),
            (ErrorCode::NONE, next),
            "version {version}"
        );
        if version >= 13 {
            assert_eq!(response.responses[0].topic_id, id);
        }
        next += 3;
    }
    for version in 4..=18 {
        let mut request = fetch_request("t", &[(0, 4)], 0);
        request.topics[0].topic_id = id;
        let response = world.call(connection, version, &request);
        let partition = &response.responses[0].partitions[0];
        assert_eq!(
            (partition.error_code, partition.high_watermark),
            (ErrorCode::NONE, next),
            "version {version}"
        );
        assert_eq!(partition.last_stable_offset, next);
        let offsets = base_offsets(&records_of(&response, 0));
        assert_eq!(offsets, (1..11).map(|i| i * 3).collect::<Vec<i64>>(), "version {version}");
    }
}

#[test]
fn stored_batch_differs_only_in_offset_and_epoch() {
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
fn invalid_batches_are_refused_as_by_kafka() {
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
            "transactional without a transactional ID",
            Batch { attributes: 0x10, ..Batch::of(1) }.build(),
            ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    ];
    for (what, batch, error) in cases {
        assert_eq!(world.produce(connection, 0, batch), (error, -1), "{what}");
    }
    let response = world.call(connection, 12, &produce_request("t", 0, 2, good.clone()));
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::INVALID_REQUIRED_ACKS);
    let response = world.call(connection, 12, &produce_request("no", 0, 1, good.clone()));
    assert_eq!(
        response.responses[0].partition_responses[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    let zstd = Batch { attributes: 4, ..Batch::of(1) }.build();
    let response = world.call(connection, 6, &produce_request("t", 0, 1, zstd));
    assert_eq!(
        response.responses[0].partition_responses[0].error_code,
        ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
    );
    assert_eq!(world.produce(connection, 0, good), (ErrorCode::NONE, 0));
}

#[test]
fn duplicates_are_acknowledged_with_their_first_offset() {
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
    assert_eq!(
        (bumped.producer_id == id, bumped.producer_epoch),
        (false, 0),
        "only transactional IDs have epochs"
    );
    assert_eq!(world.produce(connection, 0, batch(1, 0)), (ErrorCode::NONE, 6));
    assert_eq!(world.produce(connection, 0, batch(0, 6)), (ErrorCode::INVALID_PRODUCER_EPOCH, -1));
}

#[test]
fn produce_with_acks_0_has_no_response_and_errors_disconnect() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.send(connection, 9, &produce_request("t", 0, 0, Batch::of(4).build()));
    assert!(world.outputs.is_empty());
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().high_watermark, 4);
    world.send(connection, 9, &produce_request("t", 1, 0, Batch::of(4).build()));
    assert!(world.is_closed(connection));
}

#[test]
fn logs_stay_within_their_limit_by_dropping_the_oldest_records() {
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
fn discarding_cluster_counts_records_and_stores_none() {
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
fn older_broker_can_be_emulated() {
    let mut world = World::with_topic();
    world.cluster.control().set_api_versions(None, ApiKey::Metadata, 0, 4);
    world.cluster.control().set_api_versions(Some(BrokerId(1)), ApiKey::DescribeCluster, 0, -1);
    let connection = world.open(1);
    let reported = world.call(connection, 3, &software()).api_keys;
    let metadata = reported.iter().find(|key| key.api_key == 3).unwrap();
    assert_eq!((metadata.min_version, metadata.max_version), (0, 4));
    assert!(reported.iter().all(|key| key.api_key != 60));
    assert_eq!(world.call(connection, 4, &MetadataRequest::default()).brokers.len(), 3);
    world.send(connection, 5, &MetadataRequest::default());
    assert!(world.is_closed(connection));
}

#[test]
fn old_clients_produce_and_fetch_message_sets() {
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
            let response = world.call(connection, produce_version, &request);
            let partition = &response.responses[0].partition_responses[0];
            assert_eq!((partition.error_code, partition.base_offset), (ErrorCode::NONE, base_offset));
        }
        let response = world.call(connection, fetch_version, &fetch_request("t", &[(0, 0)], 0));
        let fetched = records_of(&response, 0);
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
        let requested =
            list_offsets::request::Partition { timestamp: -1, max_num_offsets: 5, ..Default::default() };
        let topic = list_offsets::request::Topic { name: "t".to_owned(), partitions: vec![requested] };
        let response =
            world.call(connection, 0, &ListOffsetsRequest { topics: vec![topic], ..Default::default() });
        assert_eq!(response.topics[0].partitions[0].old_style_offsets, [4, 0]);
    }
}

#[test]
fn broker_without_api_versions_closes_the_connection() {
    let mut world = World::new(ClusterOptions::default().emulate(BrokerRelease::V0_9_0));
    let connection = world.open(1);
    world.send(connection, 0, &software());
    assert!(world.is_closed(connection));
    let connection = world.open(1);
    let all = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    assert_eq!(world.call(connection, 0, &all).brokers.len(), 3);
}

/// Returns the output of a run that covers everything, in bytes.
fn eventful_run(seed: u64, cut: usize) -> Vec<u8> {
    let options = ClusterOptions { seed: Some(seed), replication_lag: MS * 3, ..Default::default() };
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
fn same_seed_gives_the_same_bytes_for_any_split_of_the_input() {
    let first = eventful_run(7, usize::MAX);
    assert!(first.len() > 100_000);
    assert_eq!(first, eventful_run(7, usize::MAX));
    assert_eq!(first, eventful_run(7, 13));
    assert_ne!(first, eventful_run(8, usize::MAX), "topic ids come from the seed");
}

/// Adds an empty request in every served version.
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
fn connection_for_another_node_or_cluster_is_refused() {
    let mut world =
        World::new(ClusterOptions { cluster_id: Some("c".to_owned()), ..ClusterOptions::default() });
    let connection = world.open(2);
    let cases = [
        (Some("c"), 2, ErrorCode::NONE),
        (None, -1, ErrorCode::NONE),
        (None, 7, ErrorCode::NONE),
        (Some("c"), 3, ErrorCode::REBOOTSTRAP_REQUIRED),
        (Some("c"), -1, ErrorCode::REBOOTSTRAP_REQUIRED),
        (Some("d"), 2, ErrorCode::REBOOTSTRAP_REQUIRED),
        (Some(""), 2, ErrorCode::REBOOTSTRAP_REQUIRED),
    ];
    for (cluster_id, node_id, error) in cases {
        let cluster_id = cluster_id.map(str::to_owned);
        let request = ApiVersionsRequest { cluster_id: cluster_id.clone(), node_id, ..software() };
        let response = world.call(connection, 5, &request);
        assert_eq!(response.error_code, error, "{cluster_id:?} {node_id}");
        assert_eq!(response.api_keys.is_empty(), error.is_error());
    }
}

#[test]
fn connections_lead_to_mixed_clusters_in_turn() {
    let mut world =
        World::new(ClusterOptions { cluster_id: Some("c".to_owned()), ..ClusterOptions::default() });
    let before = world.open(1);
    world.cluster.control().mix_clusters(&["a", "b"]);
    let mixed = [world.open(1), world.open(1), world.open(1)];
    world.cluster.control().mix_clusters(&[]);
    let after = world.open(1);
    for (connection, id) in [(before, "c"), (mixed[0], "b"), (mixed[1], "a"), (mixed[2], "b"), (after, "c")] {
        let metadata = world.call(connection, 13, &MetadataRequest::default());
        assert_eq!(metadata.cluster_id.as_deref(), Some(id));
        for (stated, error) in [(id, ErrorCode::NONE), ("d", ErrorCode::REBOOTSTRAP_REQUIRED)] {
            let request =
                ApiVersionsRequest { cluster_id: Some(stated.to_owned()), node_id: 1, ..software() };
            assert_eq!(world.call(connection, 5, &request).error_code, error, "{stated}");
        }
    }
}
