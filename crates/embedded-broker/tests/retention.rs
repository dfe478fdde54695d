//! `retention.ms`, `retention.bytes`, and warnings about configuration without effect.

mod common;

use std::time::Duration;

use common::{Batch, World, base_offsets, fetch_request, records_of};
use ottla_embedded_broker::ClusterOptions;
use ottla_protocol::{error_code::ErrorCode, generated::fetch::FetchRequest};

const ORIGIN: i64 = 1_700_000_000_000;

/// A topic with these configurations, whose batches are a segment each.
fn world(configs: &[(&str, &str)]) -> World {
    with(&[&[("segment.bytes", "14")], configs].concat())
}

fn with(configs: &[(&str, &str)]) -> World {
    let mut world =
        World::new(ClusterOptions { brokers: 1, unix_time_origin_ms: ORIGIN, ..Default::default() });
    assert_eq!(world.create_configured(configs).0, ErrorCode::NONE);
    world
}

fn produce(world: &mut World, timestamp: i64) {
    let connection = world.open(1);
    let batch = Batch::of(2).value_size(1000).first_timestamp(timestamp).build();
    assert_eq!(world.produce(connection, 0, batch).0, ErrorCode::NONE);
}

#[test]
fn records_are_deleted_when_older_than_retention_ms() {
    let mut world = world(&[("retention.ms", "1000")]);
    produce(&mut world, ORIGIN);
    world.pass(Duration::from_millis(500));
    produce(&mut world, ORIGIN + 500);
    world.pass(Duration::from_millis(501));
    assert_eq!(world.start_and_end(), (0, 4), "the newest record of a batch is what counts: 1 ms younger");
    world.pass(Duration::from_millis(100));
    assert_eq!(world.start_and_end(), (2, 4));
    let connection = world.open(1);
    let response = world.call::<FetchRequest>(connection, 12, &fetch_request("t", &[(0, 0)], 0));
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    let response = world.call::<FetchRequest>(connection, 12, &fetch_request("t", &[(0, 2)], 0));
    assert_eq!(response.responses[0].partitions[0].log_start_offset, 2);
    assert_eq!(base_offsets(&records_of(&response, 0)), [2]);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.start_and_end(), (4, 4), "the last batch leaves, too, and offsets go on");
    produce(&mut world, ORIGIN + 2000);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.start_and_end(), (4, 6));
}

#[test]
fn newer_batch_keeps_older_ones_after_it() {
    let mut world = world(&[("retention.ms", "1000")]);
    produce(&mut world, ORIGIN + 60_000);
    produce(&mut world, ORIGIN);
    world.pass(Duration::from_secs(30));
    assert_eq!(world.start_and_end(), (0, 4));
    world.pass(Duration::from_secs(32));
    assert_eq!(world.start_and_end(), (4, 4));
}

#[test]
fn retention_bytes_are_kept_at_least() {
    let mut world = world(&[("retention.bytes", "5000"), ("retention.ms", "-1")]);
    for _ in 0..10 {
        produce(&mut world, 1000);
    }
    // A batch has about 2,080 bytes: two are less than 5,000, three are not.
    assert_eq!(world.start_and_end(), (14, 20));
}

#[test]
fn retention_follows_changes_of_the_configuration() {
    let mut world = world(&[]);
    produce(&mut world, 1000);
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.start_and_end(), (0, 2), "only what the topic itself sets is enforced");
    let mut alter = |name: &str, value: &str| {
        assert_eq!(world.alter(name, value), ErrorCode::NONE);
        world.start_and_end()
    };
    assert_eq!(alter("cleanup.policy", "compact"), (0, 2));
    assert_eq!(alter("retention.ms", "1000"), (0, 2), "a compacted topic has no retention");
    assert_eq!(alter("cleanup.policy", "compact,delete"), (2, 2));
    assert!(world.cluster.control().take_warnings().is_empty());
}

#[test]
fn records_of_one_segment_are_deleted_together() {
    let mut world = with(&[("retention.ms", "1000")]);
    produce(&mut world, ORIGIN);
    produce(&mut world, ORIGIN + 500);
    world.pass(Duration::from_millis(1400));
    assert_eq!(world.start_and_end(), (0, 4), "the newest record of the segment is 1 s old");
    world.pass(Duration::from_millis(200));
    assert_eq!(world.start_and_end(), (4, 4));
}

#[test]
fn segments_end_where_records_are_young_enough() {
    let mut world = with(&[("segment.ms", "1000"), ("retention.ms", "5000")]);
    for timestamp in [0, 1000, 1001, 2001, 9000] {
        produce(&mut world, ORIGIN + timestamp);
    }
    world.pass(Duration::from_millis(6100));
    assert_eq!(world.start_and_end(), (4, 10), "the first two batches are one segment");
    world.pass(Duration::from_millis(1100));
    assert_eq!(world.start_and_end(), (8, 10));
}

#[test]
fn ineffective_configuration_causes_one_warning() {
    let mut world = with(&[
        ("cleanup.policy", "compact"),
        ("compression.type", "zstd"),
        ("flush.ms", "1"),
        ("preallocate", "true"),
        ("segment.index.bytes", "10485760"),
    ]);
    let warnings = world.cluster.control().take_warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("\"t\": flush.ms=1, preallocate=true:"), "{warnings:?}");
    assert!(world.cluster.control().take_warnings().is_empty());
}
