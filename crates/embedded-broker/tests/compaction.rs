//! `cleanup.policy=compact`.

mod common;

use std::time::Duration;

use common::{
    World, fetch_request, records_of,
    topics::{keyed, keyed_in, of_producer},
};
use ottla_embedded_broker::ClusterOptions;
use ottla_protocol::{
    batch::{Batch, Batches, Records},
    compress::Compression,
    error_code::ErrorCode,
    generated::fetch::{FetchRequest, FetchResponse},
};

const ORIGIN: i64 = 1_700_000_000_000;
const OK: ErrorCode = ErrorCode::NONE;

/// A topic whose batches are a segment each.
fn world(configs: &[(&str, &str)]) -> World {
    let mut world = World::new(ClusterOptions {
        brokers: 1,
        unix_time_origin_ms: ORIGIN,
        transaction_verification: false,
        ..Default::default()
    });
    let all = [&[("cleanup.policy", "compact"), ("segment.bytes", "14")], configs].concat();
    assert_eq!(world.create_configured(&all).0, OK);
    world
}

fn seen(records: &[(i64, &str, Option<&str>)]) -> Vec<common::topics::Seen> {
    let text = |text: &str| Some(text.to_owned());
    records.iter().map(|(offset, key, value)| (*offset, text(key), value.and_then(text))).collect()
}

#[test]
fn newest_record_of_each_key_stays_with_its_offset() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0")]);
    world.put(ORIGIN, &[("a", Some("1")), ("b", Some("1"))]);
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN, &[("c", Some("1"))]);
    assert_eq!(world.seen(), seen(&[(1, "b", Some("1")), (2, "a", Some("2")), (3, "c", Some("1"))]));
    assert_eq!(world.extents(), [(0, 1, 1), (2, 2, 1), (3, 3, 1)], "a batch keeps base and last offset");
    world.put(ORIGIN, &[("b", Some("2"))]);
    world.put(ORIGIN, &[("d", Some("1"))]);
    assert_eq!(world.extents(), [(2, 2, 1), (3, 3, 1), (4, 4, 1), (5, 5, 1)]);
    assert_eq!(world.start_and_end(), (0, 6), "the log start offset stays");
    let connection = world.open(1);
    let response = world.call::<FetchRequest>(connection, 12, &fetch_request("t", &[(0, 0)], 0));
    assert_eq!(response.responses[0].partitions[0].error_code, OK, "a gap is not an error");
    assert_eq!(common::base_offsets(&records_of(&response, 0)), [2, 3, 4, 5]);
}

#[test]
fn compressed_batches_stay_compressed() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0")]);
    let long = "1".repeat(300);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        world.produce_any(keyed_in(codec, ORIGIN, &[("a", Some(&long)), (codec.name(), Some(&long))]));
    }
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN, &[("b", Some("2"))]);
    let keys: Vec<_> = world.seen().into_iter().map(|(offset, key, _)| (offset, key.unwrap())).collect();
    let expected = [(1, "gzip"), (3, "snappy"), (5, "lz4"), (7, "zstd"), (8, "a"), (9, "b")];
    assert_eq!(keys, expected.map(|(offset, key)| (offset, key.to_owned())));
    let codecs: Vec<_> = world.cluster.control().batches("t", 0).iter().map(|bytes| bytes[22] & 7).collect();
    assert_eq!(codecs, [1, 2, 3, 4, 0, 0]);
}

#[test]
fn active_segment_is_never_compacted() {
    let mut world = world(&[("segment.bytes", "1048576"), ("segment.ms", "1000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN + 1000, &[("a", Some("2"))]);
    world.pass(Duration::from_secs(86_400));
    assert_eq!(world.seen().len(), 2, "time alone does not close a segment");
    world.put(ORIGIN + 1001, &[("a", Some("3"))]);
    assert_eq!(world.seen(), seen(&[(1, "a", Some("2")), (2, "a", Some("3"))]));
}

#[test]
fn closed_segments_are_compacted_above_the_dirty_ratio() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0.5")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN, &[("a", Some("3"))]);
    assert_eq!(world.seen().len(), 3, "one segment was compacted, one was not: the ratio is 0.5, not more");
    world.put(ORIGIN, &[("b", Some("1"))]);
    assert_eq!(world.seen(), seen(&[(2, "a", Some("3")), (3, "b", Some("1"))]));
}

#[test]
fn tombstone_stays_for_delete_retention_ms() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0"), ("delete.retention.ms", "1000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", None)]);
    world.put(ORIGIN, &[("b", Some("1"))]);
    assert_eq!(world.seen(), seen(&[(1, "a", None), (2, "b", Some("1"))]), "consumers must see it");
    world.pass(Duration::from_millis(999));
    world.put(ORIGIN, &[("c", Some("1"))]);
    assert_eq!(world.seen()[0], (1, Some("a".to_owned()), None), "1 ms too early");
    world.pass(Duration::from_millis(1));
    assert_eq!(world.seen().len(), 3, "its time is over, but nothing was compacted");
    world.put(ORIGIN, &[("d", Some("1"))]);
    assert_eq!(world.seen(), seen(&[(2, "b", Some("1")), (3, "c", Some("1")), (4, "d", Some("1"))]));
}

#[test]
fn tombstone_keeps_its_timestamp_beside_a_delete_horizon() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0"), ("delete.retention.ms", "1000")]);
    world.put(ORIGIN - 77, &[("a", None)]);
    world.put(ORIGIN, &[("b", Some("1"))]);
    let first = world.cluster.control().batches("t", 0).remove(0);
    let Some(Ok(Batch::V2(batch))) = Batches::new(&first).next() else { panic!("no batch") };
    assert_eq!(batch.header().base_timestamp, ORIGIN + 1000, "the delete horizon takes its place");
    let raw = batch.records(1000).unwrap();
    assert_eq!(Records::new(batch.header(), &raw).next().unwrap().unwrap().timestamp, ORIGIN - 77);
}

#[test]
fn young_segments_wait_for_min_compaction_lag() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0"), ("min.compaction.lag.ms", "5000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN + 1000, &[("a", Some("2"))]);
    world.put(ORIGIN + 1000, &[("b", Some("1"))]);
    world.pass(Duration::from_millis(5999));
    assert_eq!(world.seen().len(), 3);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.seen(), seen(&[(1, "a", Some("2")), (2, "b", Some("1"))]), "no append was needed");
}

#[test]
fn old_segments_are_compacted_after_max_compaction_lag() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "1"), ("max.compaction.lag.ms", "5000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN, &[("b", Some("1"))]);
    world.pass(Duration::from_millis(5000));
    assert_eq!(world.seen().len(), 3, "a ratio of 1 is never exceeded");
    world.pass(Duration::from_millis(1));
    assert_eq!(world.seen(), seen(&[(1, "a", Some("2")), (2, "b", Some("1"))]));
}

#[test]
fn max_compaction_lag_closes_segments_too() {
    let mut world = world(&[("segment.bytes", "1048576"), ("max.compaction.lag.ms", "5000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN + 5001, &[("b", Some("1"))]);
    assert_eq!(world.seen(), seen(&[(1, "a", Some("2")), (2, "b", Some("1"))]));
}

#[test]
fn last_batch_of_a_producer_stays_without_records() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0")]);
    let of_7 = |sequence, value| of_producer(keyed(ORIGIN, &[("a", Some(value))]), 7, 0, sequence, false);
    world.produce_any(of_7(0, "1"));
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN, &[("b", Some("1"))]);
    assert_eq!(world.extents(), [(0, 0, 0), (1, 1, 1), (2, 2, 1)]);
    assert_eq!(world.seen(), seen(&[(1, "a", Some("2")), (2, "b", Some("1"))]));
    let again = world.produce_any(of_7(0, "1"));
    assert_eq!(again.responses[0].partition_responses[0].base_offset, 0, "it is still known as a duplicate");
    world.produce_any(of_7(1, "3"));
    world.put(ORIGIN, &[("c", Some("1"))]);
    assert_eq!(
        world.extents(),
        [(2, 2, 1), (3, 3, 1), (4, 4, 1)],
        "another batch is the producer's last now"
    );
}

fn put_in_transaction(world: &mut World, sequence: i32, key: &str, value: &str) {
    world.put_in_transaction(ORIGIN, sequence, &[(key, Some(value))]);
}

/// Fetches committed records; returns the number of aborted transactions and the base offsets.
fn read_committed(world: &mut World) -> (usize, Vec<i64>) {
    let request = FetchRequest { isolation_level: 1, ..fetch_request("t", &[(0, 0)], 0) };
    let connection = world.open(1);
    let response: FetchResponse = world.call(connection, 12, &request);
    let partition = &response.responses[0].partitions[0];
    let aborted = partition.aborted_transactions.as_ref().map_or(0, Vec::len);
    (aborted, common::base_offsets(&records_of(&response, 0)))
}

#[test]
fn open_transaction_holds_compaction_back() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    put_in_transaction(&mut world, 0, "a", "2");
    world.put(ORIGIN, &[("a", Some("3"))]);
    world.put(ORIGIN, &[("b", Some("1"))]);
    assert_eq!(world.seen().len(), 4, "nothing from the last stable offset on is compacted");
    world.end_transaction(true);
    assert_eq!(world.seen(), seen(&[(2, "a", Some("3")), (3, "b", Some("1"))]));
}

#[test]
fn aborted_records_go_at_once_and_do_not_replace_others() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0"), ("delete.retention.ms", "1000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    put_in_transaction(&mut world, 0, "a", "2");
    world.end_transaction(false);
    world.put(ORIGIN, &[("b", Some("1"))]);
    assert_eq!(world.seen(), seen(&[(0, "a", Some("1")), (3, "b", Some("1"))]));
    assert_eq!(
        world.extents(),
        [(0, 0, 1), (1, 1, 0), (2, 2, 1), (3, 3, 1)],
        "the producer's last batch stays"
    );
    assert_eq!(read_committed(&mut world), (1, vec![0, 1, 2, 3]));
}

#[test]
fn marker_outlives_the_records_of_its_transaction() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0"), ("delete.retention.ms", "1000")]);
    put_in_transaction(&mut world, 0, "a", "1");
    world.end_transaction(false);
    put_in_transaction(&mut world, 1, "a", "2");
    world.end_transaction(true);
    world.put(ORIGIN, &[("b", Some("1"))]);
    // Offset 0 is no longer the last of the producer, so that its batch is gone. Its marker was seen after it.
    let has_marker = |world: &mut World| world.extents().iter().any(|(base, _, _)| *base == 1);
    assert!(has_marker(&mut world));
    world.put(ORIGIN, &[("c", Some("1"))]);
    world.pass(Duration::from_secs(1));
    assert!(has_marker(&mut world), "the first compaction without its records sets its delete horizon");
    world.put(ORIGIN, &[("d", Some("1"))]);
    world.put(ORIGIN, &[("e", Some("1"))]);
    assert!(!has_marker(&mut world));
    let (aborted, bases) = read_committed(&mut world);
    assert_eq!((aborted, bases[0]), (0, 2), "without its marker, the aborted transaction would have no end");
}

#[test]
fn tests_can_compact_at_once() {
    let mut world = world(&[("segment.bytes", "1048576"), ("min.compaction.lag.ms", "1000000")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", None)]);
    assert!(world.cluster.control().compact("t", 0));
    assert_eq!(world.seen(), seen(&[(1, "a", None)]));
    world.pass(Duration::from_secs(86_400));
    world.open(1);
    assert!(world.cluster.control().compact("t", 0));
    assert_eq!(
        (world.seen(), world.extents()),
        (Vec::new(), vec![(1, 1, 0)]),
        "the last batch keeps the end"
    );
    assert_eq!(world.put(ORIGIN, &[("a", Some("2"))]), 2);
    assert!(!world.cluster.control().compact("u", 0));
}

#[test]
fn log_with_a_damaged_batch_is_not_compacted() {
    let mut world = world(&[("min.cleanable.dirty.ratio", "0.9")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", Some("2"))]);
    assert!(world.cluster.control().damage_batch("t", 0, 1, |bytes| bytes[61..].fill(0xff)));
    assert_eq!(world.alter("min.cleanable.dirty.ratio", "0"), OK);
    world.put(ORIGIN, &[("b", Some("1"))]);
    world.put(ORIGIN, &[("b", Some("2"))]);
    assert_eq!(world.extents().len(), 4);
}

#[test]
fn compacted_topic_with_delete_loses_old_segments_too() {
    let mut world = world(&[
        ("cleanup.policy", "compact,delete"),
        ("min.cleanable.dirty.ratio", "0"),
        ("retention.ms", "5000"),
    ]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN + 3000, &[("b", Some("1"))]);
    world.put(ORIGIN + 3000, &[("b", Some("2"))]);
    world.pass(Duration::from_millis(5001));
    assert_eq!(world.start_and_end(), (1, 3));
    assert_eq!(world.seen(), seen(&[(1, "b", Some("1")), (2, "b", Some("2"))]), "the last segment is active");
    world.pass(Duration::from_secs(4));
    assert_eq!(world.start_and_end(), (3, 3));
}

#[test]
fn topic_that_becomes_compacted_is_compacted_from_its_start() {
    let mut world = world(&[("cleanup.policy", "delete")]);
    world.put(ORIGIN, &[("a", Some("1"))]);
    world.put(ORIGIN, &[("a", Some("2"))]);
    world.put(ORIGIN, &[("a", Some("3"))]);
    assert_eq!(world.seen().len(), 3);
    assert_eq!(world.alter("cleanup.policy", "compact"), OK);
    assert_eq!(world.seen(), seen(&[(1, "a", Some("2")), (2, "a", Some("3"))]));
}

#[test]
fn impossible_settings_of_compaction_are_refused() {
    for (configs, text) in [
        (
            &[("min.cleanable.dirty.ratio", "1.5")][..],
            "min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (&[("segment.ms", "0")], "Value must be at least 1"),
        (&[("compression.gzip.level", "10")], "Value must be between 1 and 9 or equal to -1"),
        (&[("compression.zstd.level", "23")], "Value must be no more than 22"),
        (&[("segment.bytes", "13")], "Value must be at least 14"),
        (
            &[("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4")],
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
        ),
    ] {
        let mut world = World::new(ClusterOptions { brokers: 1, ..Default::default() });
        let (error, message) = world.create_configured(configs);
        assert_eq!(error, ErrorCode::INVALID_CONFIG, "{configs:?}");
        assert!(message.as_deref().unwrap().contains(text), "{message:?}");
    }
}
