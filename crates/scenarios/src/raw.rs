//! A minimal blocking client that reads the brokers' logs.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use ottla_protocol::{
    batch::{Batch, BatchHeader, Batches, Records},
    compress::Compression,
    error_code::ErrorCode,
    generated::{
        fetch::{FetchRequest, request as fetch_request},
        metadata::{MetadataRequest, MetadataResponse, request as metadata_request},
        sasl_authenticate::SaslAuthenticateRequest,
        sasl_handshake::SaslHandshakeRequest,
    },
    header::{RequestHeader, ResponseHeader},
    message::{Message, Request},
    primitive::Reader,
    uuid::Uuid,
};

use crate::backend::eventually;

/// A connection to a broker.
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    correlation_id: i32,
}

/// A batch in a broker's log.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedBatch {
    /// Its header.
    pub header: BatchHeader,
    /// Its codec.
    pub compression: Compression,
    /// Its records.
    pub records: Vec<LoggedRecord>,
}

/// A record in a broker's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRecord {
    /// The offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// The headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl LoggedRecord {
    /// Returns the value as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }
}

impl RawClient {
    /// Connects to the first of `servers` that responds.
    pub fn connect(servers: &str) -> Self {
        let stream = servers.split(',').find_map(|server| TcpStream::connect(server).ok());
        let stream = stream.unwrap_or_else(|| panic!("no broker of {servers} can be reached"));
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, correlation_id: 0 }
    }

    /// Authenticates with PLAIN.
    pub fn authenticate(mut self, user: &str, password: &str) -> Self {
        let request = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
        assert_eq!(self.call(1, &request).error_code, ErrorCode::NONE);
        let request = SaslAuthenticateRequest { auth_bytes: format!("\0{user}\0{password}").into_bytes() };
        let response = self.call(2, &request);
        assert_eq!(response.error_code, ErrorCode::NONE, "{:?}", response.error_message);
        self
    }

    /// Connects to the broker that creates topics.
    pub fn controller(mut self) -> Self {
        let cluster = self.metadata(&[]);
        let broker = cluster.brokers.iter().find(|broker| broker.node_id == cluster.controller_id);
        broker.map_or(self, |broker| Self::connect(&format!("{}:{}", broker.host, broker.port)))
    }

    /// Returns the broker's metadata of these topics without creating them.
    pub fn metadata(&mut self, topics: &[&str]) -> MetadataResponse {
        let topics = topics
            .iter()
            .map(|name| metadata_request::Topic { name: Some((*name).to_owned()), ..Default::default() });
        let request = MetadataRequest {
            topics: Some(topics.collect()),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        self.call(9, &request)
    }

    /// Returns the ID of an existing topic.
    pub fn topic_id(&mut self, topic: &str) -> Uuid {
        let topics = vec![metadata_request::Topic { name: Some(topic.to_owned()), ..Default::default() }];
        let request =
            MetadataRequest { topics: Some(topics), allow_auto_topic_creation: false, ..Default::default() };
        self.call(12, &request).topics[0].topic_id
    }

    /// Sends a request and waits for its response.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.correlation_id += 1;
        let header = RequestHeader {
            api_key: R::API_KEY as i16,
            api_version: version,
            correlation_id: self.correlation_id,
            client_id: Some("ottla-scenarios".to_owned()),
        };
        let mut frame = vec![0; 4];
        header.encode(&mut frame).expect("a header");
        request.encode(version, &mut frame).expect("a request");
        let length = u32::try_from(frame.len() - 4).expect("a length").to_be_bytes();
        frame[..4].copy_from_slice(&length);
        self.stream.write_all(&frame).expect("the request can be sent");
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("a response");
        let mut response = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut response).expect("the whole response");
        let mut reader = Reader::new(&response);
        let header = ResponseHeader::decode(&mut reader, R::API_KEY, version).expect("a response header");
        assert_eq!(header.correlation_id, self.correlation_id);
        <R::Response as Message>::decode(&mut reader, version).expect("a response")
    }
}

/// Connects to each broker of the cluster.
pub fn brokers(servers: &str) -> Vec<RawClient> {
    let brokers = RawClient::connect(servers).metadata(&[]).brokers;
    brokers.iter().map(|broker| RawClient::connect(&format!("{}:{}", broker.host, broker.port))).collect()
}

/// Returns the addresses of a topic's partition leaders; partitions without a leader are omitted.
pub fn leaders(servers: &str, topic: &str) -> BTreeMap<i32, String> {
    let metadata = RawClient::connect(servers).metadata(&[topic]);
    let address = |id: i32| {
        let broker = metadata.brokers.iter().find(|broker| broker.node_id == id)?;
        Some(format!("{}:{}", broker.host, broker.port))
    };
    let partitions = metadata.topics.iter().flat_map(|topic| &topic.partitions);
    let led = partitions.filter(|partition| partition.error_code == ErrorCode::NONE);
    led.filter_map(|partition| Some((partition.partition_index, address(partition.leader_id)?))).collect()
}

/// Returns all batches of a partition up to its high watermark; checks checksums and that offsets have no gaps.
pub fn read_log(servers: &str, topic: &str, partition: i32) -> Vec<LoggedBatch> {
    let mut read = Err(ErrorCode::NONE);
    // A leader may not know that it is one, or may no longer be one.
    let done = eventually(|| {
        if let Some(leader) = leaders(servers, topic).remove(&partition) {
            read = read_from(&leader, topic, partition);
        }
        read.is_ok()
    });
    assert!(done, "{topic} [{partition}] can be read: {read:?}");
    read.unwrap_or_default()
}

fn read_from(leader: &str, topic: &str, partition: i32) -> Result<Vec<LoggedBatch>, ErrorCode> {
    let mut client = RawClient::connect(leader);
    let mut batches: Vec<LoggedBatch> = Vec::new();
    let mut next = 0;
    loop {
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: 50 << 20,
            session_epoch: -1,
            topics: vec![fetch_request::Topic {
                topic: topic.to_owned(),
                partitions: vec![fetch_request::Partition {
                    partition,
                    current_leader_epoch: -1,
                    fetch_offset: next,
                    partition_max_bytes: 50 << 20,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = client.call(11, &request);
        let part = &response.responses[0].partitions[0];
        part.error_code.ok()?;
        for batch in Batches::new(part.records.as_deref().unwrap_or_default()) {
            let batch = logged(batch.expect("a batch"));
            assert_eq!(batch.header.base_offset, next, "offsets of {topic} [{partition}] have no gaps");
            next = batch.header.last_offset() + 1;
            batches.push(batch);
        }
        if next >= part.high_watermark {
            return Ok(batches);
        }
    }
}

fn logged(batch: Batch<'_>) -> LoggedBatch {
    let Batch::V2(batch) = batch else { panic!("producers write batches of format 2") };
    batch.verify_crc().expect("the checksum is right");
    let header = *batch.header();
    let bytes = batch.records(256 << 20).expect("records can be uncompressed");
    let records = Records::new(&header, &bytes).map(|record| {
        let record = record.expect("a record");
        LoggedRecord {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record
                .headers()
                .map(|header| {
                    (String::from_utf8_lossy(header.key).into_owned(), header.value.map(<[u8]>::to_vec))
                })
                .collect(),
        }
    });
    let records: Vec<LoggedRecord> = records.collect();
    assert_eq!(records.len(), header.record_count as usize, "a batch has as many records as it says");
    LoggedBatch { header, compression: header.compression().expect("a codec"), records }
}
