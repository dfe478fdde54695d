//! `retention.ms`, `retention.bytes`, and warnings about configuration without effect.

mod common;

use std::time::Duration;

use common::{Batch, World, base_offsets, fetch_request, records_of};
use ottla_embedded_broker::ClusterOptions;
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        create_topics::{CreateTopicsRequest, request},
        fetch::FetchRequest,
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
    },
};

const ORIGIN: i64 = 1_700_000_000_000;

fn world(configs: &[(&str, &str)]) -> World {
    let mut world =
        World::new(ClusterOptions { brokers: 1, unix_time_origin_ms: ORIGIN, ..Default::default() });
    let connection = world.open(1);
    let configs = configs
        .iter()
        .map(|(name, value)| request::Config { name: (*name).into(), value: Some((*value).into()) });
    let topic = request::Topic {
        name: "t".into(),
        num_partitions: 1,
        replication_factor: 1,
        configs: configs.collect(),
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..Default::default() };
    let response = world.call(connection, 7, &request);
    assert_eq!(response.topics[0].error_code, ErrorCode::NONE);
    world
}

fn produce(world: &mut World, timestamp: i64) {
    let connection = world.open(1);
    let batch = Batch::of(2).value_size(1000).first_timestamp(timestamp).build();
    assert_eq!(world.produce(connection, 0, batch).0, ErrorCode::NONE);
}

fn start_and_end(world: &mut World) -> (i64, i64) {
    let state = world.cluster.control().partition("t", 0).unwrap();
    (state.log_start_offset, state.log_end_offset)
}

#[test]
fn records_are_deleted_when_older_than_retention_ms() {
    let mut world = world(&[("retention.ms", "1000")]);
    produce(&mut world, ORIGIN);
    world.pass(Duration::from_millis(500));
    produce(&mut world, ORIGIN + 500);
    world.pass(Duration::from_millis(501));
    assert_eq!(
        start_and_end(&mut world),
        (0, 4),
        "the newest record of a batch is what counts: 1 ms younger"
    );
    world.pass(Duration::from_millis(100));
    assert_eq!(start_and_end(&mut world), (2, 4));
    let connection = world.open(1);
    let response = world.call::<FetchRequest>(connection, 12, &fetch_request("t", &[(0, 0)], 0));
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    let response = world.call::<FetchRequest>(connection, 12, &fetch_request("t", &[(0, 2)], 0));
    assert_eq!(response.responses[0].partitions[0].log_start_offset, 2);
    assert_eq!(base_offsets(&records_of(&response, 0)), [2]);
    world.pass(Duration::from_secs(1));
    assert_eq!(start_and_end(&mut world), (4, 4), "the last batch leaves, too, and offsets go on");
    produce(&mut world, ORIGIN + 2000);
    world.pass(Duration::from_millis(100));
    assert_eq!(start_and_end(&mut world), (4, 6));
}

#[test]
fn newer_batch_keeps_older_ones_after_it() {
    let mut world = world(&[("retention.ms", "1000")]);
    produce(&mut world, ORIGIN + 60_000);
    produce(&mut world, ORIGIN);
    world.pass(Duration::from_secs(30));
    assert_eq!(start_and_end(&mut world), (0, 4));
    world.pass(Duration::from_secs(32));
    assert_eq!(start_and_end(&mut world), (4, 4));
}

#[test]
fn retention_bytes_are_kept_at_least() {
    let mut world = world(&[("retention.bytes", "5000"), ("retention.ms", "-1")]);
    for _ in 0..10 {
        produce(&mut world, 1000);
    }
    // A batch has about 2,080 bytes: two are less than 5,000, three are not.
    assert_eq!(start_and_end(&mut world), (14, 20));
}

#[test]
fn retention_follows_changes_of_the_configuration() {
    let mut world = world(&[]);
    produce(&mut world, 1000);
    world.pass(Duration::from_secs(3600));
    assert_eq!(start_and_end(&mut world), (0, 2), "only what the topic itself sets is enforced");
    let mut alter = |name: &str, value: &str| {
        let config = incremental_alter_configs::request::Config {
            name: name.into(),
            value: Some(value.into()),
            ..Default::default()
        };
        let resource = incremental_alter_configs::request::Resource {
            resource_type: 2,
            resource_name: "t".into(),
            configs: vec![config],
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
        let connection = world.open(1);
        let response = world.call(connection, 1, &request);
        assert_eq!(response.responses[0].error_code, ErrorCode::NONE);
        start_and_end(&mut world)
    };
    assert_eq!(alter("cleanup.policy", "compact"), (0, 2));
    assert_eq!(alter("retention.ms", "1000"), (0, 2), "a compacted topic has no retention");
    assert_eq!(alter("cleanup.policy", "compact,delete"), (2, 2));
    let warnings = world.cluster.control().take_warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("topic \"t\": cleanup.policy=compact"), "{warnings:?}");
}

#[test]
fn ineffective_configuration_causes_one_warning() {
    let mut world = world(&[
        ("cleanup.policy", "compact"),
        ("compression.type", "zstd"),
        ("max.message.bytes", "2000"),
        ("retention.ms", "1"),
        ("segment.bytes", "1073741824"),
    ]);
    let warnings = world.cluster.control().take_warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("cleanup.policy=compact, compression.type=zstd:"), "{warnings:?}");
    assert!(world.cluster.control().take_warnings().is_empty());
}
