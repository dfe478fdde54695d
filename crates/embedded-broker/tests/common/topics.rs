//! Topics with a configuration, and records with keys.

use bytes::BytesMut;
use ottla_protocol::{
    batch::{Batch as AnyBatch, Batches, ChunkPool, RecordBatchBuilder, Records, SealOptions, layout},
    compress::Compression,
    error_code::ErrorCode,
    generated::{
        create_topics::{CreateTopicsRequest, request},
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        produce::ProduceResponse,
        write_txn_markers::{self, WriteTxnMarkersRequest},
    },
};

use super::{World, produce_request};

/// The producer of [`World::put_in_transaction`].
const PRODUCER: i64 = 7;

/// A record as a test sees it: offset, key, value.
pub type Seen = (i64, Option<String>, Option<String>);

/// A stored batch: base offset, last offset, number of records.
pub type Extent = (i64, i64, i32);

impl World {
    /// Creates topic `t` with one partition on broker 1; returns the error and its text.
    pub fn create_configured(&mut self, configs: &[(&str, &str)]) -> (ErrorCode, Option<String>) {
        let connection = self.open(1);
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
        let response = self.call(connection, 7, &request);
        (response.topics[0].error_code, response.topics[0].error_message.clone())
    }

    /// Sets a configuration of topic `t`.
    pub fn alter(&mut self, name: &str, value: &str) -> ErrorCode {
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
        let connection = self.open(1);
        self.call(connection, 1, &request).responses[0].error_code
    }

    /// Produces a batch to partition 0 of topic `t`.
    pub fn produce_any(&mut self, records: Vec<u8>) -> ProduceResponse {
        let connection = self.open(1);
        self.call(connection, 12, &produce_request("t", 0, -1, records))
    }

    /// Produces a batch with these keys and values; returns its base offset.
    pub fn put(&mut self, timestamp: i64, records: &[(&str, Option<&str>)]) -> i64 {
        let response = self.produce_any(keyed(timestamp, records));
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, ErrorCode::NONE, "{:?}", partition.error_message);
        partition.base_offset
    }

    /// Produces a batch of a transaction to topic `t`.
    pub fn put_in_transaction(&mut self, timestamp: i64, sequence: i32, records: &[(&str, Option<&str>)]) {
        let batch = of_producer(keyed(timestamp, records), PRODUCER, 0, sequence, true);
        let mut request = produce_request("t", 0, -1, batch);
        request.transactional_id = Some("x".to_owned());
        let connection = self.open(1);
        let response = self.call(connection, 11, &request);
        assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    }

    /// Writes the marker that commits or aborts the transaction in topic `t`.
    pub fn end_transaction(&mut self, is_committed: bool) {
        let topic = write_txn_markers::request::Topic { name: "t".to_owned(), partition_indexes: vec![0] };
        let marker = write_txn_markers::request::Marker {
            producer_id: PRODUCER,
            producer_epoch: 0,
            transaction_result: is_committed,
            topics: vec![topic],
            ..Default::default()
        };
        let connection = self.open(1);
        let response = self.call(connection, 1, &WriteTxnMarkersRequest { markers: vec![marker] });
        assert_eq!(response.markers[0].topics[0].partitions[0].error_code, ErrorCode::NONE);
    }

    /// Returns the records that a consumer of topic `t` finds, markers left out.
    pub fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for bytes in self.cluster.control().batches("t", 0) {
            let Some(Ok(AnyBatch::V2(batch))) = Batches::new(&bytes).next() else { panic!("no batch") };
            batch.verify_crc().unwrap();
            let raw = batch.records(1 << 20).unwrap();
            let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let records = Records::new(batch.header(), &raw).map(Result::unwrap);
            if !batch.header().is_control() {
                seen.extend(records.map(|record| (record.offset, text(record.key), text(record.value))));
            }
        }
        seen
    }

    /// Returns the offsets of the stored batches of topic `t`, and their numbers of records.
    pub fn extents(&mut self) -> Vec<Extent> {
        let batches = self.cluster.control().batches("t", 0);
        let headers = batches.iter().map(|bytes| ottla_protocol::batch::BatchHeader::parse(bytes).unwrap());
        headers.map(|header| (header.base_offset, header.last_offset(), header.record_count)).collect()
    }

    /// Returns the log start offset and the log end offset of topic `t`.
    pub fn start_and_end(&mut self) -> (i64, i64) {
        let state = self.cluster.control().partition("t", 0).unwrap();
        (state.log_start_offset, state.log_end_offset)
    }
}

/// Returns a batch with these keys and values.
pub fn keyed(timestamp: i64, records: &[(&str, Option<&str>)]) -> Vec<u8> {
    keyed_in(Compression::None, timestamp, records)
}

/// Returns a compressed batch with these keys and values.
pub fn keyed_in(codec: Compression, timestamp: i64, records: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    for (key, value) in records {
        builder.append(timestamp, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
    }
    builder.seal(&SealOptions { compression: codec, ..Default::default() }).unwrap().to_vec()
}

/// Makes a batch one of an idempotent producer, or of a transaction.
pub fn of_producer(batch: Vec<u8>, id: i64, epoch: i16, sequence: i32, is_transactional: bool) -> Vec<u8> {
    let mut batch = BytesMut::from(&batch[..]);
    if is_transactional {
        let attributes = i16::from_be_bytes([batch[layout::ATTRIBUTES], batch[layout::ATTRIBUTES + 1]]);
        let attributes = attributes | layout::TRANSACTIONAL;
        batch[layout::ATTRIBUTES..][..2].copy_from_slice(&attributes.to_be_bytes());
    }
    batch[layout::PRODUCER_ID..][..8].copy_from_slice(&id.to_be_bytes());
    batch[layout::PRODUCER_EPOCH..][..2].copy_from_slice(&epoch.to_be_bytes());
    batch[layout::BASE_SEQUENCE..][..4].copy_from_slice(&sequence.to_be_bytes());
    let crc = crc32c::crc32c(&batch[layout::ATTRIBUTES..]);
    batch[layout::CRC..][..4].copy_from_slice(&crc.to_be_bytes());
    batch.to_vec()
}
