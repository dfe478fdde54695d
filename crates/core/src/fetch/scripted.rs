//! The fetcher against a scripted broker: exact requests and hand-made responses.

mod ceiling;
mod damage;
mod evict;
mod paused;
mod sessions;

use std::{io::IoSlice, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    batch::{
        ChunkPool, HeaderRef, LegacyFormat, RecordBatchBuilder, RecordView, SealOptions, put_message_set,
    },
    compress::Compression,
    error_code::ErrorCode,
    generated::{
        api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
        fetch::{
            FetchRequest, FetchResponse,
            response::{AbortedTransaction, Partition, Response as TopicResponse},
        },
    },
    header::{RequestHeader, ResponseHeader},
    primitive::Reader,
    uuid::Uuid,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};

use super::message::{FetchMessage, FetchReport};
use super::{
    assignment::AssignmentVersion,
    deliver::{ConsumerEvent, Records},
    fetcher::Fetcher,
    partition::{PartitionConsumer, PartitionHandle, PrefetchLimits},
    settings::ConsumerSettings,
    shared::ConsumerShared,
};
use crate::{
    connection::{Connection, ConnectionSettings, buffer::BufferPool},
    contract::{broker::BrokerNews, half::HalfOutput},
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
    wake::{Wake, WakeHandle},
};

const T: Uuid = Uuid([7; 16]);

#[derive(Default)]
struct Wakes(std::sync::atomic::AtomicUsize);

impl Wake for Wakes {
    fn wake(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

struct Script {
    now: Instant,
    shared: Arc<ConsumerShared>,
    connection: Connection,
    fetcher: Fetcher,
    wakes: Arc<Wakes>,
    correlation_id: i32,
    version: i16,
}

impl Script {
    fn new(version: i16, settings: ConsumerSettings) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let shared = Arc::new(ConsumerShared::new(settings));
        let wakes = Arc::new(Wakes::default());
        let wake = WakeHandle::new(Arc::clone(&wakes) as Arc<dyn Wake>);
        let fetcher = Fetcher::new(
            Arc::clone(&shared),
            NodeId::from_wire(1),
            BufferPool::default(),
            wake,
            Rng::from_seed(1),
        );
        let settings = Arc::new(ConnectionSettings::default());
        let connection = Connection::new(
            settings,
            "b".into(),
            9092,
            NodeId::from_wire(1),
            BufferPool::default(),
            Rng::from_seed(2),
        );
        let mut script = Self { now, shared, connection, fetcher, wakes, correlation_id: 0, version };
        script.connect();
        script
    }

    fn connect(&mut self) {
        self.connection.want(self.now);
        self.connection.handle_resolved(self.now, Ok(vec!["127.0.0.1:9092".parse().unwrap()]));
        self.connection.handle_connected(self.now);
        let (header, _) = self.sent().expect("the versions are asked first");
        assert_eq!(header.api_key, ApiKey::ApiVersions as i16);
        let row = |api: ApiKey, max_version| ApiRow { api_key: api as i16, min_version: 0, max_version };
        let response = ApiVersionsResponse {
            api_keys: vec![row(ApiKey::Fetch, self.version), row(ApiKey::ApiVersions, header.api_version)],
            ..ApiVersionsResponse::default()
        };
        let mut body = Vec::new();
        response.encode(header.api_version, &mut body).unwrap();
        self.receive(ApiKey::ApiVersions, header.api_version, &body);
        assert!(self.connection.is_ready());
        self.fetcher.handle_connected(self.now);
    }

    /// Adds a partition of topic `t` that starts at an offset.
    fn adopt(&mut self, partition: i32, offset: i64) -> Arc<PartitionHandle> {
        let handle = Arc::new(PartitionHandle::new(TopicPartition::new("t", partition)));
        let mut consumer = PartitionConsumer::new(Arc::clone(&handle), AssignmentVersion::default(), offset);
        consumer.topic_id = T;
        consumer.leader_epoch = LeaderEpoch::from_wire(4);
        self.fetcher.handle_message(self.now, FetchMessage::Adopt(Box::new(consumer)));
        handle
    }

    /// Returns the next Fetch, if one is sent.
    fn fetch(&mut self) -> Option<FetchRequest> {
        self.fetcher.pump(self.now, &mut self.connection);
        let (header, body) = self.sent()?;
        assert_eq!(header.api_key, ApiKey::Fetch as i16);
        self.version = header.api_version;
        Some(FetchRequest::decode(&mut Reader::new(&body), header.api_version).unwrap())
    }

    fn sent(&mut self) -> Option<(RequestHeader, Vec<u8>)> {
        let mut bytes = Vec::new();
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = self.connection.unsent(&mut slices);
        slices[..filled].iter().for_each(|slice| bytes.extend_from_slice(slice));
        if bytes.is_empty() {
            return None;
        }
        self.connection.handle_written(self.now, bytes.len(), &mut Vec::new());
        let mut reader = Reader::new(&bytes[4..]);
        let header = RequestHeader::decode(&mut reader).unwrap();
        self.correlation_id = header.correlation_id;
        Some((header, bytes[4 + reader.position()..].to_vec()))
    }

    fn respond(&mut self, response: &FetchResponse) {
        let mut body = Vec::new();
        response.encode(self.version, &mut body).unwrap();
        self.receive(ApiKey::Fetch, self.version, &body);
    }

    fn receive(&mut self, api: ApiKey, version: i16, body: &[u8]) {
        let mut bytes = vec![0; 4];
        ResponseHeader { correlation_id: self.correlation_id }.encode(api, version, &mut bytes);
        bytes.extend_from_slice(body);
        let length = bytes.len() as u32 - 4;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let space = self.connection.read_space();
            let n = space.len().min(rest.len());
            space[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            self.connection.handle_read(self.now, n);
            while let Some(response) = self.connection.next_response(self.now) {
                self.fetcher.handle_response(self.now, response, "b:9092/1");
            }
        }
    }

    /// Takes the items that the application would get now.
    fn take(&self) -> Records {
        let mut records = Records::default();
        self.shared.queue.take(usize::MAX, &mut records);
        records
    }

    fn offsets(&self) -> Vec<i64> {
        self.take().iter().map(|message| message.offset()).collect()
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn later(&mut self, wait: Duration) {
        self.now += wait;
        self.connection.handle_timeout(self.now);
        self.fetcher.handle_timeout(self.now);
    }
}

/// Returns a batch of `count` records from offset `base` on, with values of `size` bytes.
fn batch(base: i64, count: usize, size: usize) -> Vec<u8> {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    for index in 0..count {
        builder.append(1000 + index as i64, None, Some(&vec![b'x'; size]), &[]);
    }
    let mut bytes = builder.seal(&SealOptions::default()).unwrap().to_vec();
    bytes[..8].copy_from_slice(&base.to_be_bytes());
    bytes
}

/// Sets attributes and producer ID of a batch, and updates its checksum.
fn mark(mut bytes: Vec<u8>, attributes: i16, producer_id: i64) -> Vec<u8> {
    bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
    bytes[43..51].copy_from_slice(&producer_id.to_be_bytes());
    // CRC-32C (Castagnoli), bit by bit.
    let crc = !bytes[21..].iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    });
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn abort_marker(offset: i64, producer_id: i64) -> Vec<u8> {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    builder.append(0, Some(&[0, 0, 0, 0]), Some(&[0, 0, 0, 0, 0, 0]), &[]);
    let mut bytes = builder.seal(&SealOptions::default()).unwrap().to_vec();
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    mark(bytes, 0x30, producer_id)
}

fn data(partition_index: i32, high_watermark: i64, records: Vec<u8>) -> Partition {
    Partition {
        partition_index,
        high_watermark,
        last_stable_offset: high_watermark,
        log_start_offset: 0,
        records: Some(records),
        ..Partition::default()
    }
}

fn failed(partition_index: i32, error_code: ErrorCode) -> Partition {
    Partition { partition_index, error_code, ..Partition::default() }
}

fn response(session_id: i32, partitions: Vec<Partition>) -> FetchResponse {
    let topic = TopicResponse { topic: "t".into(), topic_id: T, partitions };
    let responses = if topic.partitions.is_empty() { Vec::new() } else { vec![topic] };
    FetchResponse { session_id, responses, ..FetchResponse::default() }
}

/// Returns the `(partition, offset)` pairs that a request names.
fn named(request: &FetchRequest) -> Vec<(i32, i64)> {
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| (partition.partition, partition.fetch_offset)).collect()
}

#[test]
fn fetch_response_from_before_a_seek_is_discarded() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    script.fetch().unwrap();
    let (topic, partition) = (Arc::from("t"), 0);
    script.fetcher.handle_message(script.now, FetchMessage::Release(TopicPartition { topic, partition }));
    assert!(matches!(
        script.fetcher.poll_output(),
        Some(HalfOutput::Report(FetchReport::Released(partition))) if partition.offset == 0
    ));
    script.adopt(0, 50);
    script.respond(&response(5, vec![data(0, 100, batch(0, 10, 1))]));
    assert!(script.take().is_empty());
    let request = script.fetch().unwrap();
    assert_eq!(named(&request), [(0, 50)]);
    assert!(
        request.forgotten_topics_data.is_empty(),
        "a partition that is requested again must not be forgotten"
    );
    script.respond(&response(5, vec![data(0, 100, batch(45, 10, 1))]));
    assert_eq!(script.offsets(), [50, 51, 52, 53, 54], "records before the offset are left out");
}

#[test]
fn records_of_an_older_version_vanish_at_hand_over() {
    let mut script = Script::new(18, ConsumerSettings::default());
    let handle = script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 3, batch(0, 3, 1))]));
    script.shared.queue.outdate(&handle, None);
    assert!(script.take().is_empty());
    assert!(script.fetch().is_none(), "a partition that restarts is not fetched");
}

#[test]
fn partition_end_is_not_reported_after_a_seek() {
    let mut script = Script::new(18, ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() });
    let handle = script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(99, vec![data(0, 2, batch(0, 2, 10))]));
    let mut cursor = super::deliver::RecordCursor::default();
    cursor.push(script.take());
    assert!(matches!(cursor.next(&script.shared.queue), Some(super::deliver::Next::Message(_))));
    script.shared.queue.outdate(&handle, Some(0));
    assert!(cursor.next(&script.shared.queue).is_none(), "neither a record nor the end of the old place");
}

#[test]
fn refused_partition_is_fetched_again_while_others_are_in_flight() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    script.adopt(1, 0);
    script.fetch().unwrap();
    let refused = failed(0, ErrorCode::UNKNOWN_SERVER_ERROR);
    script.respond(&response(99, vec![refused, data(1, 1, batch(0, 1, 1))]));
    let request = script.fetch().unwrap();
    assert_eq!(request.forgotten_topics_data[0].partitions, [0], "it waits for its back-off");
    // No wake-up happens while this fetch is in flight.
    script.now += Duration::from_secs(10);
    script.respond(&response(99, vec![]));
    assert_eq!(named(&script.fetch().unwrap()), [(0, 0)]);
}

#[test]
fn paused_records_are_kept_and_come_first_after_resume() {
    let mut script = Script::new(18, ConsumerSettings::default());
    let handle = script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 9, batch(0, 3, 1))]));
    script.fetch().unwrap();
    script.shared.queue.pause(&[Arc::clone(&handle)]);
    script.respond(&response(5, vec![data(0, 9, batch(3, 2, 1))]));
    assert!(script.take().is_empty());
    assert_eq!(handle.position(), None);
    script.shared.queue.resume(&[Arc::clone(&handle)]);
    assert_eq!(script.offsets(), [0, 1, 2, 3, 4]);
    assert_eq!(handle.position(), Some(5));
}

#[test]
fn fetching_pauses_at_the_limit_and_resumes_at_half() {
    let prefetch = PrefetchLimits { messages: 10, bytes: 1 << 20 };
    let mut script = Script::new(18, ConsumerSettings { prefetch, ..ConsumerSettings::default() });
    script.adopt(0, 0);
    script.adopt(1, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 99, batch(0, 6, 1))]));
    script.fetch().expect("6 of 10 are queued");
    script.respond(&response(5, vec![data(0, 99, batch(6, 6, 1))]));
    assert!(script.fetch().is_none(), "12 of 10 are queued");
    let before = script.wakes();
    let mut records = Records::default();
    script.shared.queue.take(1, &mut records);
    assert_eq!(records.len(), 6);
    assert_eq!(script.wakes(), before, "6 are left, more than half");
    script.take();
    assert!(script.wakes() > before);
    assert_eq!(named(&script.fetch().unwrap()), [(0, 12)]);
}

#[test]
fn the_clients_bytes_limit_all_partitions_together() {
    let prefetch = PrefetchLimits { messages: 100_000, bytes: 10_000 };
    let mut script = Script::new(18, ConsumerSettings { prefetch, ..ConsumerSettings::default() });
    script.adopt(0, 0);
    script.adopt(1, 0);
    assert_eq!(script.fetch().unwrap().max_bytes, 10_000);
    script.respond(&response(5, vec![data(0, 99, batch(0, 6, 1000)), data(1, 99, batch(0, 6, 1000))]));
    assert!(script.fetch().is_none());
    let before = script.wakes();
    assert_eq!(script.take().len(), 12);
    assert!(script.wakes() > before);
    assert!(script.fetch().is_some());
}

#[test]
fn slow_full_responses_make_the_next_ones_larger() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    let mut asked = Vec::new();
    for (base, millis) in [(0, 100), (1, 100), (2, 1), (3, 10)] {
        let max_bytes = script.fetch().unwrap().max_bytes;
        asked.push(max_bytes >> 20);
        script.later(Duration::from_millis(millis));
        script.respond(&response(5, vec![data(0, 9, batch(base, 1, max_bytes as usize))]));
        script.take();
    }
    asked.push(script.fetch().unwrap().max_bytes >> 20);
    assert_eq!(asked, [1, 2, 4, 2, 2]);
}

#[test]
fn a_leader_that_is_none_gives_the_partition_back_with_its_offset() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 3, batch(0, 3, 1))]));
    script.fetch().unwrap();
    script.respond(&response(5, vec![failed(0, ErrorCode::NOT_LEADER_OR_FOLLOWER)]));
    assert!(
        matches!(script.fetcher.poll_output(), Some(HalfOutput::News(BrokerNews::StaleMetadata(topic))) if &*topic == "t")
    );
    assert!(matches!(
        script.fetcher.poll_output(),
        Some(HalfOutput::Report(FetchReport::NotLeader(partition))) if partition.offset == 3
    ));
    assert!(!script.fetcher.wants_connection());
    script.adopt(0, 3);
    script.fetch().unwrap();
    script.respond(&response(5, vec![failed(0, ErrorCode::OFFSET_OUT_OF_RANGE)]));
    assert!(matches!(script.fetcher.poll_output(), Some(HalfOutput::Report(FetchReport::OutOfRange(_)))));
}

#[test]
fn unknown_leader_epoch_returns_the_partition_for_a_new_epoch() {
    let mut script = Script::new(12, ConsumerSettings::default());
    script.adopt(0, 7);
    script.fetch().unwrap();
    script.respond(&response(5, vec![failed(0, ErrorCode::UNKNOWN_LEADER_EPOCH)]));
    assert!(matches!(script.fetcher.poll_output(), Some(HalfOutput::News(BrokerNews::StaleMetadata(_)))));
    assert!(matches!(
        script.fetcher.poll_output(),
        Some(HalfOutput::Report(FetchReport::UnknownEpoch(partition))) if partition.offset == 7
    ));
    assert!(!script.fetcher.wants_connection(), "nothing is asked under that epoch again");
}

#[test]
fn fetch_error_is_reported_once_and_retried_after_backoff() {
    // A log that is damaged on the broker gives a retriable error, although retries do not repair it.
    for code in [ErrorCode::TOPIC_AUTHORIZATION_FAILED, ErrorCode::CORRUPT_MESSAGE] {
        let mut script = Script::new(18, ConsumerSettings::default());
        script.adopt(0, 0);
        for round in 0..3 {
            script.fetch().unwrap();
            script.respond(&response(5, vec![failed(0, code)]));
            assert_eq!(script.take().events().len(), usize::from(round == 0), "{code}");
            assert!(script.fetch().is_none());
            script.later(Duration::from_millis(700));
        }
    }
}

#[test]
fn compressed_batches_of_a_fetch_share_one_buffer_of_the_pool() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    let mut bytes = Vec::new();
    for base in 0..10i64 {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        builder.append(1000, None, Some(&[b'v'; 20_000]), &[]);
        let options = SealOptions { compression: Compression::Lz4, ..SealOptions::default() };
        let start = bytes.len();
        bytes.extend(builder.seal(&options).unwrap().to_vec());
        bytes[start..start + 8].copy_from_slice(&base.to_be_bytes());
    }
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 10, bytes)]));
    let records = script.take();
    let values: Vec<_> = records.iter().map(|m| m.value().unwrap().as_ptr() as usize).collect();
    assert_eq!(values.len(), 10);
    assert!(values.windows(2).all(|pair| (20_000..20_100).contains(&(pair[1] - pair[0]))), "{values:?}");
}

#[test]
fn position_passes_aborted_transactions_and_markers() {
    let mut script = Script::new(18, ConsumerSettings::default());
    let handle = script.adopt(0, 0);
    let mut bytes = mark(batch(0, 2, 5), 0x10, 1);
    bytes.extend(mark(batch(2, 2, 5), 0x10, 2));
    bytes.extend(abort_marker(4, 1));
    bytes.extend(mark(batch(5, 1, 5), 0x10, 1));
    script.fetch().unwrap();
    let aborted = AbortedTransaction { producer_id: 1, first_offset: 0 };
    let partition = Partition { aborted_transactions: Some(vec![aborted]), ..data(0, 6, bytes) };
    script.respond(&response(5, vec![partition]));
    assert_eq!(script.offsets(), [2, 3, 5]);
    assert_eq!(handle.position(), Some(6));
    assert_eq!(named(&script.fetch().unwrap()), [(0, 6)]);
}

/// Sets the leader epoch of a batch, which its checksum does not cover.
fn in_epoch(mut bytes: Vec<u8>, epoch: i32) -> Vec<u8> {
    bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
    bytes
}

/// The epoch of the last batch shows whether the log was truncated before the position.
#[test]
fn position_has_the_epoch_of_the_last_batch() {
    let old = RecordView::without_headers(4, 500, None, Some(b"v"));
    let mut message_set = Vec::new();
    put_message_set(LegacyFormat::V1, Compression::None, None, [old].into_iter(), &mut message_set).unwrap();
    for (rest, next, epoch) in [(in_epoch(batch(2, 2, 1), 3), 4, Some(3)), (message_set, 5, None)] {
        let mut script = Script::new(18, ConsumerSettings::default());
        let handle = script.adopt(0, 0);
        script.fetch().unwrap();
        let mut bytes = in_epoch(batch(0, 2, 1), 2);
        bytes.extend(rest);
        script.respond(&response(5, vec![data(0, 9, bytes)]));
        script.take();
        assert_eq!((handle.position(), handle.position_epoch()), (Some(next), epoch));
        script.fetcher.handle_message(script.now, FetchMessage::Release(handle.key().clone()));
        let released = script.fetcher.poll_output();
        let Some(HalfOutput::Report(FetchReport::Released(consumer))) = released else {
            panic!("{released:?}")
        };
        assert_eq!((consumer.offset, consumer.position_epoch.map(LeaderEpoch::get)), (next, epoch));
    }
}

#[test]
fn aborted_batch_is_passed_without_decompression() {
    const LZ4: i16 = 3;
    for (aborted, offsets) in [(true, vec![2, 3]), (false, vec![])] {
        let mut script = Script::new(18, ConsumerSettings::default());
        script.adopt(0, 0);
        // It states lz4 and contains something else.
        let mut bytes = mark(batch(0, 2, 5), 0x10 | LZ4, 1);
        bytes.extend(mark(batch(2, 2, 5), 0x10, 2));
        script.fetch().unwrap();
        let list = aborted.then(|| vec![AbortedTransaction { producer_id: 1, first_offset: 0 }]);
        script.respond(&response(5, vec![Partition { aborted_transactions: list, ..data(0, 4, bytes) }]));
        assert_eq!(script.offsets(), offsets, "aborted: {aborted}");
    }
}

#[test]
fn partial_batch_waits_and_raises_the_limit_of_an_old_broker() {
    let mut script =
        Script::new(2, ConsumerSettings { partition_fetch_max_bytes: 100, ..ConsumerSettings::default() });
    script.adopt(0, 0);
    let request = script.fetch().unwrap();
    assert_eq!(request.topics[0].partitions[0].partition_max_bytes, 100);
    let whole = batch(0, 3, 100);
    script.respond(&response(0, vec![data(0, 3, whole[..100].to_vec())]));
    assert!(script.take().is_empty());
    assert_eq!(script.fetch().unwrap().topics[0].partitions[0].partition_max_bytes, 200);
    script.respond(&response(0, vec![data(0, 3, whole)]));
    assert_eq!(script.offsets(), [0, 1, 2]);
    assert_eq!(script.fetch().unwrap().topics[0].partitions[0].partition_max_bytes, 100);
}

#[test]
fn compressed_batches_and_old_message_sets_come_out_as_records() {
    for codec in Compression::ALL {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        for index in 0..100 {
            builder.append(1000 + index, Some(b"k"), Some(b"value"), &[HeaderRef { key: b"h", value: None }]);
        }
        let options = SealOptions { compression: codec, ..SealOptions::default() };
        let mut script = Script::new(18, ConsumerSettings::default());
        script.adopt(0, 40);
        script.fetch().unwrap();
        script.respond(&response(5, vec![data(0, 100, builder.seal(&options).unwrap().to_vec())]));
        let records = script.take();
        let first = records.iter().next().unwrap().to_message();
        assert_eq!((records.iter().count(), first.offset(), first.timestamp()), (60, 40, 1040), "{codec}");
        assert_eq!((first.key(), first.value()), (Some(&b"k"[..]), Some(&b"value"[..])));
        assert_eq!(first.headers().map(|header| header.key.to_vec()).collect::<Vec<_>>(), [b"h"]);
    }
    for (version, format) in [(1, LegacyFormat::V0), (2, LegacyFormat::V1)] {
        for codec in [Compression::None, Compression::Gzip] {
            let record = |offset| RecordView::without_headers(offset, 500 + offset, None, Some(b"v"));
            let mut set = Vec::new();
            put_message_set(format, codec, None, [3, 4, 9].map(record).into_iter(), &mut set).unwrap();
            let mut script = Script::new(version, ConsumerSettings::default());
            let handle = script.adopt(0, 4);
            script.fetch().unwrap();
            script.respond(&response(0, vec![data(0, 10, set)]));
            let records = script.take();
            let seen: Vec<_> = records.iter().map(|m| (m.offset(), m.timestamp(), m.value())).collect();
            let time = |offset: i64| if version == 1 { -1 } else { 500 + offset };
            assert_eq!(
                seen,
                [(4, time(4), Some(&b"v"[..])), (9, time(9), Some(&b"v"[..]))],
                "{format:?} {codec}"
            );
            assert_eq!(handle.position(), Some(10));
        }
    }
}

#[test]
fn old_messages_keep_the_type_of_their_timestamps() {
    for codec in [Compression::None, Compression::Gzip] {
        let record = |offset| RecordView::without_headers(offset, 500 + offset, None, Some(b"v"));
        let mut set = Vec::new();
        put_message_set(LegacyFormat::V1, codec, None, [3, 4].map(record).into_iter(), &mut set).unwrap();
        let mut last = Vec::new();
        put_message_set(LegacyFormat::V1, codec, None, [record(5)].into_iter(), &mut last).unwrap();
        // The attributes of the first message, or of the wrapper of both.
        set[17] |= 8;
        let settings = ConsumerSettings { check_crcs: false, ..ConsumerSettings::default() };
        let mut script = Script::new(2, settings);
        script.adopt(0, 3);
        script.fetch().unwrap();
        script.respond(&response(0, vec![data(0, 6, [set, last].concat())]));
        let seen: Vec<_> = script
            .take()
            .iter()
            .map(|message| (message.offset(), message.timestamp(), message.is_log_append_time()))
            .collect();
        let second = if codec == Compression::None { (4, 504, false) } else { (4, seen[0].1, true) };
        assert_eq!(seen, [(3, seen[0].1, true), second, (5, 505, false)], "{codec}");
    }
}

#[test]
fn partition_end_is_reported_in_order_and_once() {
    let mut script = Script::new(18, ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() });
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 2, batch(0, 2, 1))]));
    let records = script.take();
    let end = ConsumerEvent::EndOfPartition {
        topic: Arc::from("t"),
        partition: 0,
        offset: 2,
        leader_epoch: Some(4),
        broker_id: Some(1),
    };
    assert_eq!((records.len(), records.events()), (2, &[end][..]));
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 2, vec![])]));
    assert!(script.take().is_empty());
}

#[test]
fn full_queue_delays_the_next_fetch_if_that_is_set() {
    for (queue_backoff, waits) in [(None, false), (Some(Duration::from_millis(300)), true)] {
        let settings = ConsumerSettings {
            queue_backoff,
            prefetch: PrefetchLimits { messages: 2, bytes: 1 << 20 },
            ..ConsumerSettings::default()
        };
        let mut script = Script::new(18, settings);
        script.adopt(0, 0);
        script.fetch().expect("the queue is empty");
        script.respond(&response(5, vec![data(0, 100, batch(0, 5, 10))]));
        assert!(script.fetch().is_none(), "the queue is full");
        assert_eq!(script.offsets(), [0, 1, 2, 3, 4]);
        assert_eq!(script.fetch().is_none(), waits);
        if waits {
            script.later(Duration::from_millis(300));
            script.fetch().expect("the delay is over");
        }
    }
}
