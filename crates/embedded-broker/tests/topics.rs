//! Metadata, topics and their configuration, deleted records, coordinators.

mod common;

use std::time::Duration;

use common::{Batch, World, fetch_request, metadata_leader, produce_request};
use ottla_embedded_broker::{BrokerId, ClusterOptions, Tail};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        create_partitions::{self, CreatePartitionsRequest},
        create_topics::{self, CreateTopicsRequest},
        delete_records::{self, DeleteRecordsRequest},
        delete_topics::{self, DeleteTopicsRequest},
        describe_configs::{self, DescribeConfigsRequest},
        describe_topic_partitions::{self, DescribeTopicPartitionsRequest},
        elect_leaders::{self, ElectLeadersRequest},
        find_coordinator::FindCoordinatorRequest,
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        metadata::{self, MetadataRequest},
        offset_for_leader_epoch::{self, OffsetForLeaderEpochRequest},
        update_features::{self, UpdateFeaturesRequest},
    },
    uuid::Uuid,
};

const MS: Duration = Duration::from_millis(1);

#[test]
fn metadata_finds_topics_by_name_or_id_and_may_create_them() {
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
        let response = world.call(
            connection,
            12,
            &MetadataRequest { topics, allow_auto_topic_creation, ..Default::default() },
        );
        (response.topics[0].error_code, response.topics[0].partitions.len())
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

#[test]
fn frozen_metadata_keeps_naming_the_old_leader() {
    let mut world = World::with_topic();
    world.cluster.control().freeze_metadata();
    world.cluster.control().move_leader("t", 0, Some(BrokerId(3)));
    assert_eq!(metadata_leader(&mut world, 0), (1, 0, ErrorCode::NONE));
    world.cluster.control().thaw_metadata();
    assert_eq!(metadata_leader(&mut world, 0), (3, 1, ErrorCode::NONE));
}

#[test]
fn replica_lists_of_different_lengths_are_refused() {
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
        let response = world.call(connection, 7, &request);
        (response.topics[0].error_code, response.topics[0].error_message.clone().unwrap_or_default())
    };
    assert_eq!(create("equal", &[&[1, 2], &[2, 3]]).0, ErrorCode::NONE);
    let (code, message) = create("unequal", &[&[1, 2], &[3]]);
    assert_eq!(code, ErrorCode::INVALID_REPLICA_ASSIGNMENT);
    assert!(message.contains("partition 1 with 1 replica(s)"), "{message}");
}

#[test]
fn topics_are_created_described_extended_and_deleted() {
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
    let response = world.call(connection, 7, &request);
    let reported: Vec<_> =
        response.topics.iter().map(|t| (t.error_code, t.num_partitions, t.replication_factor)).collect();
    assert_eq!(
        reported,
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
    let response = world.call(connection, 3, &request);
    let errors: Vec<_> = response.results.iter().map(|r| r.error_code).collect();
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
        let response = world.call(connection, 0, &request);
        for topic in &response.topics {
            seen.extend(topic.partitions.iter().map(|p| (topic.name.clone().unwrap(), p.partition_index)));
        }
        let Some(next) = response.next_cursor else { break };
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
    let response = world.call(
        connection,
        6,
        &DeleteTopicsRequest { topics: vec![by_id, by_name], ..Default::default() },
    );
    let reported: Vec<_> =
        response.responses.iter().map(|r| (r.name.clone().unwrap(), r.error_code)).collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(reported, [("a".to_owned(), ErrorCode::NONE), ("no".to_owned(), unknown)]);
    assert_eq!(world.cluster.control().topics(), ["b", "t"]);
}

#[test]
fn limits_of_brokers_are_stored() {
    const RATE: &str = "leader.replication.throttled.rate";
    let mut world = World::with_topic();
    let connection = world.open(1);
    let alter = |world: &mut World, broker: &str, (name, value): (&str, Option<&str>), validate_only| {
        let config = incremental_alter_configs::request::Config {
            name: name.to_owned(),
            config_operation: i8::from(value.is_none()),
            value: value.map(str::to_owned),
        };
        let resource = incremental_alter_configs::request::Resource {
            resource_type: 4,
            resource_name: broker.to_owned(),
            configs: vec![config],
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
        world.call(connection, 1, &request).responses[0].error_code
    };
    let rate = |world: &mut World| {
        let resource = describe_configs::request::Resource {
            resource_type: 4,
            resource_name: "1".to_owned(),
            configuration_keys: Some(vec![RATE.to_owned()]),
        };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let config = world.call(connection, 4, &request).results.remove(0).configs.remove(0);
        (config.value.unwrap_or_default(), config.config_source)
    };
    let unlimited = (i64::MAX.to_string(), 5);
    assert_eq!(alter(&mut world, "1", (RATE, Some("7")), true), ErrorCode::NONE);
    assert_eq!(rate(&mut world), unlimited);
    assert_eq!(alter(&mut world, "1", (RATE, Some("7")), false), ErrorCode::NONE);
    assert_eq!(rate(&mut world), ("7".to_owned(), 2));
    assert_eq!(alter(&mut world, "1", (RATE, Some("-1")), false), ErrorCode::INVALID_CONFIG);
    assert_eq!(alter(&mut world, "1", ("num.partitions", Some("1")), false), ErrorCode::INVALID_REQUEST);
    assert_eq!(alter(&mut world, "9", (RATE, Some("7")), false), ErrorCode::INVALID_REQUEST);
    assert_eq!(alter(&mut world, "1", (RATE, None), false), ErrorCode::NONE);
    assert_eq!(rate(&mut world), unlimited);
}

#[test]
fn topic_configuration_is_described_changed_and_applied() {
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
    let response = world.call(connection, 4, &request);
    let reported: Vec<_> =
        response.results[0].configs.iter().map(|c| (c.value.clone().unwrap(), c.config_source)).collect();
    assert_eq!(reported, [("delete".to_owned(), 5), ("200".to_owned(), 1)]);

    assert_eq!(
        world.produce(connection, 0, Batch::of(1).value_size(300).build()),
        (ErrorCode::MESSAGE_TOO_LARGE, -1)
    );
    world.pass(MS * 7);
    let response = world.call(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    let append_time = response.responses[0].partition_responses[0].log_append_time_ms;
    assert_eq!(append_time, ClusterOptions::default().unix_time_origin_ms + 7);
    let stored = world.fetch(connection, 0, 0).records.unwrap();
    assert_eq!(stored[35..43], append_time.to_be_bytes());
    let crc = crc32c::crc32c(&stored[21..]);
    assert_eq!(stored[17..21], crc.to_be_bytes(), "the checksum covers the changed timestamp");
}

#[test]
fn epoch_ends_at_the_start_offset_of_the_next_leader() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.produce(connection, 0, Batch::of(5).build());
    for _ in 0..3 {
        world.cluster.control().move_leader("t", 0, Some(BrokerId(1)));
    }
    world.produce(connection, 0, Batch::of(5).build());
    let end_of = |world: &mut World, leader_epoch| {
        let requested =
            offset_for_leader_epoch::request::Partition { partition: 0, leader_epoch, ..Default::default() };
        let topic =
            offset_for_leader_epoch::request::Topic { topic: "t".to_owned(), partitions: vec![requested] };
        let response = world.call(
            connection,
            4,
            &OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() },
        );
        let found = &response.topics[0].partitions[0];
        (found.leader_epoch, found.end_offset)
    };
    assert_eq!(end_of(&mut world, 0), (0, 5));
    assert_eq!(end_of(&mut world, 2), (0, 5));
    assert_eq!(end_of(&mut world, 3), (3, 10));
    assert_eq!(end_of(&mut world, 4), (-1, -1));

    world.cluster.control().truncate_log("t", 0, 5);
    let mut request = fetch_request("t", &[(0, 10)], 0);
    request.topics[0].partitions[0].last_fetched_epoch = 3;
    let response = world.call(connection, 12, &request);
    let diverging = &response.responses[0].partitions[0].diverging_epoch;
    assert_eq!((diverging.epoch, diverging.end_offset), (0, 5));
}

#[test]
fn records_are_deleted_up_to_the_high_watermark() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.produce(connection, 0, Batch::of(5).build());
    let delete = |world: &mut World, offset| {
        let requested = delete_records::request::Partition { partition_index: 0, offset };
        let topic = delete_records::request::Topic { name: "t".to_owned(), partitions: vec![requested] };
        let response =
            world.call(connection, 2, &DeleteRecordsRequest { topics: vec![topic], ..Default::default() });
        (response.topics[0].partitions[0].error_code, response.topics[0].partitions[0].low_watermark)
    };
    assert_eq!(delete(&mut world, 3), (ErrorCode::NONE, 3));
    assert_eq!(delete(&mut world, 6), (ErrorCode::OFFSET_OUT_OF_RANGE, -1));
    assert_eq!(delete(&mut world, -1), (ErrorCode::NONE, 5));
}

#[test]
fn coordinators_are_found_singly_and_in_batches() {
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
fn elections_that_are_not_needed_are_left_out_of_the_whole_cluster() {
    let mut world = World::with_topic();
    world.cluster.control().move_leader("t", 1, Some(BrokerId(3)));
    let connection = world.open(1);
    let mut elect = |version, topic_partitions| {
        let request = ElectLeadersRequest { topic_partitions, ..Default::default() };
        let response = world.call(connection, version, &request);
        let topics = response.replica_election_results.into_iter();
        let results = topics.flat_map(|topic| topic.partition_result);
        results.map(|one| (one.partition_id, one.error_code)).collect::<Vec<_>>()
    };
    let partitions = elect_leaders::request::TopicPartition { topic: "t".into(), partitions: vec![0, 7] };
    let codes = [(0, ErrorCode::ELECTION_NOT_NEEDED), (7, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)];
    assert_eq!(elect(0, Some(vec![partitions])), codes);
    assert_eq!(elect(2, None), [(1, ErrorCode::NONE)]);
    assert_eq!(elect(2, None), []);
}

#[test]
fn feature_updates_succeed_together_or_not_at_all() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let mut update = |version, changes: &[(&str, i16, i8)]| {
        let update =
            |(feature, level, upgrade_type): &(&str, i16, i8)| update_features::request::FeatureUpdate {
                feature: (*feature).to_owned(),
                max_version_level: *level,
                upgrade_type: if version == 0 { 1 } else { *upgrade_type },
                allow_downgrade: version == 0 && *upgrade_type > 1,
            };
        let feature_updates = changes.iter().map(update).collect();
        let request = UpdateFeaturesRequest { feature_updates, ..Default::default() };
        let response = world.call(connection, version, &request);
        let results = response.results.iter().map(|one| one.error_code).collect::<Vec<_>>();
        (response.error_code, results, world.cluster.control().options().transaction_version)
    };
    let invalid = ErrorCode::INVALID_UPDATE_VERSION;
    let (down, unknown) = (("transaction.version", 1, 2), ("no.such.feature", 1, 1));
    assert_eq!(update(1, &[down, unknown]), (ErrorCode::NONE, vec![ErrorCode::NONE, invalid], 2));
    assert_eq!(update(2, &[down, unknown]), (invalid, vec![], 2));
    assert_eq!(update(2, &[("transaction.version", 1, 1)]), (invalid, vec![], 2));
    assert_eq!(update(2, &[down]), (ErrorCode::NONE, vec![], 1));
    assert_eq!(update(0, &[("transaction.version", 0, 2)]), (ErrorCode::NONE, vec![ErrorCode::NONE], 0));
}
