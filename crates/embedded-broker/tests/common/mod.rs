//! Shared code of the test binaries: a client of the machine, and record batches.
#![allow(dead_code, missing_docs, clippy::missing_panics_doc)]

pub mod topics;

use std::{collections::VecDeque, time::Duration};

use ottla_embedded_broker::{BrokerId, Cluster, ClusterOptions, ConnectionId, Output};
use ottla_protocol::{
    compress::{Compression, compress},
    error_code::ErrorCode,
    generated::{
        api_versions::ApiVersionsRequest,
        fetch::{self, FetchRequest, FetchResponse},
        metadata::MetadataRequest,
        offset_commit::{self, OffsetCommitRequest},
        produce::{self, ProduceRequest},
    },
    header::{RequestHeader, ResponseHeader},
    message::{Message, Request},
    primitive::Reader,
    time::Instant,
};

/// A cluster with its time and its output.
#[derive(Debug)]
pub struct World {
    pub cluster: Cluster,
    pub now: Instant,
    pub outputs: VecDeque<Output>,
    correlation_id: i32,
}

impl World {
    pub fn new(options: ClusterOptions) -> Self {
        Self {
            cluster: Cluster::new(options),
            now: Instant::ZERO,
            outputs: VecDeque::new(),
            correlation_id: 0,
        }
    }

    /// Creates a cluster of three brokers with topic `t` of three partitions, which brokers 1, 2 and 3 lead.
    pub fn with_topic() -> Self {
        let mut world = Self::new(ClusterOptions::default());
        world.cluster.control().create_topic("t", 3, 3).unwrap();
        world
    }

    pub fn open(&mut self, broker: i32) -> ConnectionId {
        self.cluster.open(self.now, BrokerId(broker)).expect("the broker is up")
    }

    /// Sends a request without waiting; returns its correlation ID.
    pub fn send<R: Request>(&mut self, connection: ConnectionId, version: i16, request: &R) -> i32 {
        self.correlation_id += 1;
        let frame = frame(self.correlation_id, version, request);
        self.cluster.handle_bytes(self.now, connection, &frame);
        self.drain();
        self.correlation_id
    }

    /// Sends a request and takes its response, which must be available at once.
    pub fn call<R: Request>(&mut self, connection: ConnectionId, version: i16, request: &R) -> R::Response {
        let id = self.send(connection, version, request);
        self.respond::<R>(connection, version, id).expect("a response at once")
    }

    /// Returns the response to a request, if there is one.
    pub fn respond<R: Request>(
        &mut self,
        connection: ConnectionId,
        version: i16,
        id: i32,
    ) -> Option<R::Response> {
        let at = self
            .outputs
            .iter()
            .position(|o| matches!(o, Output::Send { connection: c, .. } if *c == connection))?;
        let Some(Output::Send { frame, .. }) = self.outputs.remove(at) else { return None };
        let bytes = frame.to_vec();
        Some(decode::<R>(&bytes, version, id))
    }

    pub fn is_closed(&self, connection: ConnectionId) -> bool {
        self.outputs.iter().any(|o| matches!(o, Output::Close { connection: c, .. } if *c == connection))
    }

    /// Advances the time, handling all timeouts on the way.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.cluster.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.cluster.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// Advances the time without handling timeouts, like a driver that is late.
    pub fn pass_without_timeouts(&mut self, time: Duration) {
        self.now += time;
    }

    pub fn drain(&mut self) {
        while let Some(output) = self.cluster.poll_output() {
            self.outputs.push_back(output);
        }
    }

    /// Produces a batch and returns the error and the base offset.
    pub fn produce(
        &mut self,
        connection: ConnectionId,
        partition: i32,
        records: Vec<u8>,
    ) -> (ErrorCode, i64) {
        let response = self.call(connection, 12, &produce_request("t", partition, -1, records));
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// Fetches from one partition without a session, without waiting.
    pub fn fetch(
        &mut self,
        connection: ConnectionId,
        partition: i32,
        offset: i64,
    ) -> fetch::response::Partition {
        let response = self.call(connection, 12, &fetch_request("t", &[(partition, offset)], 0));
        response.responses[0].partitions[0].clone()
    }
}

pub fn frame<R: Request>(correlation_id: i32, version: i16, request: &R) -> Vec<u8> {
    let mut out = vec![0; 4];
    let header = RequestHeader {
        api_key: R::API_KEY.as_i16(),
        api_version: version,
        correlation_id,
        client_id: Some("test".to_owned()),
    };
    header.encode(&mut out).unwrap();
    request.encode(version, &mut out).unwrap();
    let length = i32::try_from(out.len() - 4).unwrap();
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// Decodes one whole frame, to its last byte.
pub fn decode<R: Request>(frame: &[u8], version: i16, correlation_id: i32) -> R::Response {
    assert_eq!(frame[..4], i32::try_from(frame.len() - 4).unwrap().to_be_bytes());
    let mut reader = Reader::new(&frame[4..]);
    let header = ResponseHeader::decode(&mut reader, R::API_KEY, version).unwrap();
    assert_eq!(header.correlation_id, correlation_id);
    let response = R::Response::decode(&mut reader, version).unwrap();
    reader.finish().unwrap();
    response
}

pub fn produce_request(topic: &str, partition: i32, acks: i16, records: Vec<u8>) -> ProduceRequest {
    let partition_data = vec![produce::request::PartitionData { index: partition, records: Some(records) }];
    let topic = produce::request::TopicData { name: topic.to_owned(), partition_data, ..Default::default() };
    ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() }
}

/// Returns the request that commits an offset of topic `t` without a member.
pub fn commit_request(
    group: &str,
    partition: i32,
    offset: i64,
    metadata: Option<&str>,
) -> OffsetCommitRequest {
    let partition = offset_commit::request::Partition {
        partition_index: partition,
        committed_offset: offset,
        committed_metadata: metadata.map(str::to_owned),
        ..Default::default()
    };
    let topic = offset_commit::request::Topic {
        name: "t".to_owned(),
        partitions: vec![partition],
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    }
}

pub fn fetch_request(topic: &str, partitions: &[(i32, i64)], max_wait_ms: i32) -> FetchRequest {
    let partitions = partitions.iter().map(|(partition, fetch_offset)| fetch::request::Partition {
        partition: *partition,
        fetch_offset: *fetch_offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    });
    let topic = fetch::request::Topic {
        topic: topic.to_owned(),
        partitions: partitions.collect(),
        ..Default::default()
    };
    FetchRequest { max_wait_ms, min_bytes: 1, max_bytes: 10 << 20, topics: vec![topic], ..Default::default() }
}

pub fn records_of(response: &FetchResponse, partition: i32) -> Vec<u8> {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let partition = partitions.into_iter().find(|p| p.partition_index == partition);
    partition.and_then(|p| p.records.clone()).unwrap_or_default()
}

/// A record batch as a producer builds it.
#[derive(Clone, Debug)]
pub struct Batch {
    pub records: i32,
    pub value_size: usize,
    pub first_timestamp: i64,
    pub producer: (i64, i16, i32),
    pub attributes: u16,
}

impl Batch {
    /// Creates a batch with this number of records, whose timestamps rise by 1.
    pub fn of(records: i32) -> Self {
        Self { records, value_size: 10, first_timestamp: 1000, producer: (-1, -1, -1), attributes: 0 }
    }

    pub fn value_size(self, value_size: usize) -> Self {
        Self { value_size, ..self }
    }

    pub fn first_timestamp(self, first_timestamp: i64) -> Self {
        Self { first_timestamp, ..self }
    }

    pub fn producer(self, id: i64, epoch: i16, sequence: i32) -> Self {
        Self { producer: (id, epoch, sequence), ..self }
    }

    pub fn build(self) -> Vec<u8> {
        let mut body = Vec::new();
        for i in 0..self.records {
            let mut record = vec![0];
            varint(&mut record, i64::from(i));
            varint(&mut record, i64::from(i));
            varint(&mut record, -1);
            varint(&mut record, self.value_size as i64);
            record.extend(std::iter::repeat_n(b'v', self.value_size));
            varint(&mut record, 0);
            varint(&mut body, record.len() as i64);
            body.extend_from_slice(&record);
        }
        let mut checked = Vec::new();
        checked.extend_from_slice(&self.attributes.to_be_bytes());
        checked.extend_from_slice(&(self.records - 1).to_be_bytes());
        checked.extend_from_slice(&self.first_timestamp.to_be_bytes());
        checked.extend_from_slice(&(self.first_timestamp + i64::from(self.records) - 1).to_be_bytes());
        checked.extend_from_slice(&self.producer.0.to_be_bytes());
        checked.extend_from_slice(&self.producer.1.to_be_bytes());
        checked.extend_from_slice(&self.producer.2.to_be_bytes());
        checked.extend_from_slice(&self.records.to_be_bytes());
        checked.extend_from_slice(&body);
        let mut batch = Vec::new();
        batch.extend_from_slice(&0i64.to_be_bytes());
        batch.extend_from_slice(&i32::try_from(checked.len() + 9).unwrap().to_be_bytes());
        batch.extend_from_slice(&(-1i32).to_be_bytes());
        batch.push(2);
        let crc = crc32c::crc32c(&checked);
        batch.extend_from_slice(&crc.to_be_bytes());
        batch.extend_from_slice(&checked);
        batch
    }
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Returns the base offsets of the batches in fetched records.
pub fn base_offsets(mut records: &[u8]) -> Vec<i64> {
    let mut offsets = Vec::new();
    while records.len() >= 12 {
        offsets.push(i64::from_be_bytes(records[..8].try_into().unwrap()));
        let size = usize::try_from(i32::from_be_bytes(records[8..12].try_into().unwrap())).unwrap() + 12;
        records = records.get(size..).unwrap_or_default();
    }
    offsets
}

/// Compresses a batch's records.
pub fn gzip(records: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(Compression::Gzip, None, std::iter::once(records), &mut out).unwrap();
    out
}

/// Updates length, codec and checksum of a batch whose bytes were changed.
pub fn seal(batch: &mut [u8], codec: u16) {
    let length = i32::try_from(batch.len() - 12).unwrap();
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[21..23].copy_from_slice(&codec.to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

pub fn software() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "ottla".to_owned(),
        client_software_version: "1.0".to_owned(),
        ..ApiVersionsRequest::default()
    }
}

pub fn metadata_leader(world: &mut World, partition: usize) -> (i32, i32, ErrorCode) {
    let broker = (1..=3).find(|id| world.cluster.control().is_alive(BrokerId(*id))).unwrap();
    let connection = world.open(broker);
    let response = world.call(connection, 13, &MetadataRequest { topics: None, ..Default::default() });
    let partition = &response.topics[0].partitions[partition];
    (partition.leader_id, partition.leader_epoch, partition.error_code)
}
