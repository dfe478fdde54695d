//! What a topic's configuration asks of produced batches: keys, timestamps, codec.

mod common;

use common::{
    Batch, World, produce_request,
    topics::{keyed, keyed_in, of_producer},
};
use ottla_embedded_broker::{BrokerId, ClusterOptions, Tail};
use ottla_protocol::{
    batch::BatchHeader,
    compress::Compression,
    error_code::ErrorCode,
    generated::produce::{ProduceRequest, ProduceResponse, response::PartitionResponse},
};

const ORIGIN: i64 = 1_700_000_000_000;
const OK: ErrorCode = ErrorCode::NONE;

fn world(configs: &[(&str, &str)]) -> World {
    let mut world =
        World::new(ClusterOptions { brokers: 1, unix_time_origin_ms: ORIGIN, ..Default::default() });
    assert_eq!(world.create_configured(configs).0, OK);
    world
}

fn produce(world: &mut World, batch: Vec<u8>) -> PartitionResponse {
    world.produce_any(batch).responses.remove(0).partition_responses.remove(0)
}

fn refused_records(response: &PartitionResponse) -> Vec<(i32, String)> {
    let errors = response.record_errors.iter();
    errors.map(|error| (error.batch_index, error.batch_index_error_message.clone().unwrap())).collect()
}

#[test]
fn compacted_topic_refuses_records_without_a_key() {
    let mut world = world(&[("cleanup.policy", "compact")]);
    let response = produce(&mut world, Batch::of(2).build());
    assert_eq!((response.error_code, response.base_offset), (ErrorCode::INVALID_RECORD, -1));
    let message = "Compacted topic cannot accept message without key in topic partition t-0";
    let one = format!("RecordError(batchIndex=0, message='{message}')");
    let text = response.error_message.as_deref().unwrap();
    assert!(text.contains("due to 2 record errors in total") && text.contains(&one), "{text}");
    assert_eq!(refused_records(&response), [(0, message.to_owned()), (1, message.to_owned())]);
    assert_eq!(
        produce(&mut world, keyed(ORIGIN, &[("", Some("v"))])).error_code,
        OK,
        "an empty key is a key"
    );
}

#[test]
fn timestamps_must_be_within_the_bounds() {
    let mut world =
        world(&[("message.timestamp.before.max.ms", "1000"), ("message.timestamp.after.max.ms", "500")]);
    for (timestamp, error) in [
        (ORIGIN - 1000, OK),
        (ORIGIN - 1001, ErrorCode::INVALID_TIMESTAMP),
        (ORIGIN + 500, OK),
        (ORIGIN + 501, ErrorCode::INVALID_TIMESTAMP),
        (-1, OK),
    ] {
        let response = produce(&mut world, keyed(timestamp, &[("a", Some("1"))]));
        assert_eq!(response.error_code, error, "{timestamp}");
    }
    let response = produce(&mut world, Batch::of(3).first_timestamp(ORIGIN + 499).build());
    let expected = format!(
        "Timestamp {} of message with offset 2 is out of range. The timestamp should be within [{}, {}]",
        ORIGIN + 501,
        ORIGIN - 1000,
        ORIGIN + 500
    );
    assert_eq!(refused_records(&response), [(2, expected)], "only the last of three is too late");
    assert_eq!(
        response.error_message.as_deref(),
        Some("One or more records have been rejected due to invalid timestamp")
    );
}

#[test]
fn append_time_makes_timestamps_of_producers_irrelevant() {
    let mut world =
        world(&[("message.timestamp.type", "LogAppendTime"), ("message.timestamp.before.max.ms", "1000")]);
    let response = produce(&mut world, keyed(5, &[("a", Some("1"))]));
    assert_eq!((response.error_code, response.log_append_time_ms), (OK, ORIGIN));
}

#[test]
fn default_bounds_of_timestamps_are_not_enforced() {
    let mut world = world(&[]);
    assert_eq!(produce(&mut world, keyed(ORIGIN * 2, &[("a", Some("1"))])).error_code, OK);
}

#[test]
fn brokers_compress_with_the_codec_of_the_topic() {
    let value = "1".repeat(500);
    for (codec, name) in Compression::ALL.into_iter().zip(["uncompressed", "gzip", "snappy", "lz4", "zstd"]) {
        let mut world = world(&[("compression.type", name)]);
        for of_producer_codec in Compression::ALL {
            let batch = keyed_in(of_producer_codec, ORIGIN, &[("a", Some(&value)), ("b", None)]);
            assert_eq!(produce(&mut world, batch).error_code, OK);
        }
        let batches = world.cluster.control().batches("t", 0);
        let headers = batches.iter().map(|batch| BatchHeader::parse(batch).unwrap());
        assert!(headers.into_iter().all(|header| header.compression() == Ok(codec)), "{name}");
        let seen = world.seen();
        assert_eq!(seen.len(), 10, "{name}");
        assert_eq!(seen[9], (9, Some("b".to_owned()), None));
        assert_eq!(world.extents().last(), Some(&(8, 9, 2)));
    }
}

#[test]
fn batch_that_was_compressed_anew_keeps_its_sequence() {
    let mut world = world(&[("compression.type", "gzip")]);
    let batch = of_producer(keyed(ORIGIN, &[("a", Some("1")), ("b", Some("2"))]), 7, 3, 40, false);
    assert_eq!(produce(&mut world, batch.clone()).base_offset, 0);
    let header = BatchHeader::parse(&world.cluster.control().batches("t", 0)[0]).unwrap();
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (7, 3, 40));
    assert_eq!(produce(&mut world, batch).base_offset, 0, "a repetition is a duplicate");
    assert_eq!(world.start_and_end(), (0, 2));
}

#[test]
fn max_message_bytes_count_after_the_brokers_compression() {
    let value: String = (0..2000u32).map(|i| char::from(b'a' + (i.wrapping_mul(i) % 23) as u8)).collect();
    let mut world = world(&[("compression.type", "uncompressed"), ("max.message.bytes", "1000")]);
    let batch = keyed_in(Compression::Zstd, ORIGIN, &[("a", Some(&"1".repeat(3000)))]);
    assert!(batch.len() < 1000);
    assert_eq!(produce(&mut world, batch).error_code, ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(
        produce(&mut world, keyed(ORIGIN, &[("a", Some(&value))])).error_code,
        ErrorCode::MESSAGE_TOO_LARGE
    );
}

#[test]
fn level_of_compression_has_an_effect_and_is_checked() {
    let value: String = (0..20_000u32).map(|i| char::from(b'a' + (i / 7 * 31 % 26) as u8)).collect();
    let size = |level: &str| {
        let mut world = world(&[("compression.type", "gzip"), ("compression.gzip.level", level)]);
        assert_eq!(produce(&mut world, keyed(ORIGIN, &[("a", Some(&value))])).error_code, OK);
        world.cluster.control().batches("t", 0)[0].len()
    };
    assert!(size("9") < size("1"), "{} and {}", size("9"), size("1"));
    let mut world = World::new(ClusterOptions { brokers: 1, ..Default::default() });
    assert_eq!(world.create_configured(&[("compression.gzip.level", "10")]).0, ErrorCode::INVALID_CONFIG);
}

#[test]
fn too_few_replicas_fail_before_and_after_the_append() {
    let lag = std::time::Duration::from_secs(1);
    let mut world = World::new(ClusterOptions { brokers: 3, replication_lag: lag, ..Default::default() });
    world.cluster.control().create_topic("t", 1, 3).unwrap();
    assert_eq!(world.alter("min.insync.replicas", "3"), OK);
    let connection = world.open(1);
    let request = produce_request("t", 0, -1, Batch::of(1).build());
    let id = world.send(connection, 12, &request);
    world.cluster.control().kill_broker(BrokerId(3), Tail::Kept);
    world.drain();
    world.pass(lag);
    let response = world.respond::<ProduceRequest>(connection, 12, id).expect("the followers have it");
    let error = |response: &ProduceResponse| response.responses[0].partition_responses[0].error_code;
    assert_eq!(error(&response), ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    assert_eq!(error(&world.call(connection, 12, &request)), ErrorCode::NOT_ENOUGH_REPLICAS);
    assert_eq!(world.start_and_end(), (0, 1));
}
