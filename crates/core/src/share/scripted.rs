//! The share half of a broker actor against a scripted broker: exact requests and hand-made responses.

mod acknowledging;
mod damage;
mod demand;
mod locks;
mod membership;
mod placement;

use std::{
    io::IoSlice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    batch::{ChunkPool, RecordBatchBuilder, SealOptions},
    error_code::ErrorCode,
    generated::{
        api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
        share_acknowledge::{self, ShareAcknowledgeRequest, ShareAcknowledgeResponse},
        share_fetch::{
            ShareFetchRequest, ShareFetchResponse,
            response::{AcquiredRecord, Partition, Response as TopicResponse},
        },
    },
    header::{RequestHeader, ResponseHeader},
    message::Message,
    primitive::Reader,
    uuid::Uuid,
    vocabulary::{NodeId, TopicPartition},
};

use super::{
    acknowledgement::AcknowledgeType,
    acquired::AcquiredRecords,
    fetcher::ShareFetcher,
    held::HeldRecords,
    message::{ShareMessage, ShareReport},
    settings::ShareSettings,
    shared::{AcknowledgeOutcome, Demand, FetchPermit, ShareEvent, ShareShared},
};
use crate::{
    connection::{Connection, ConnectionSettings, buffer::BufferPool},
    contract::{broker::BrokerNews, half::HalfOutput},
    error::{Error, ErrorKind},
    fetch::partition::PartitionHandle,
    machine::Instant,
    rng::Rng,
    wake::{Wake, WakeHandle},
};

const T: Uuid = Uuid([7; 16]);
const LOCK: Duration = Duration::from_secs(30);

fn node() -> NodeId {
    NodeId::from_wire(1).expect("a node")
}

/// An acknowledged range of a request: first, last, types.
type Batch = (i64, i64, Vec<i8>);
/// An outcome: partition, offsets and error.
type Outcome = (i32, Vec<(i64, i64)>, Option<ErrorKind>);

/// A request as the broker sees it.
#[derive(Debug)]
enum Asked {
    Fetch(ShareFetchRequest),
    Acknowledge(ShareAcknowledgeRequest),
}

/// Counts the notifications of the broker actor.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Script {
    now: Instant,
    shared: Arc<ShareShared>,
    held: HeldRecords,
    connection: Connection,
    fetcher: ShareFetcher,
    wakes: Arc<Wakes>,
    /// The request in flight: API, version, and correlation ID.
    asked: (ApiKey, i16, i32),
}

impl Script {
    fn new(settings: ShareSettings) -> Self {
        Self::with_version(settings, 2)
    }

    fn with_version(settings: ShareSettings, version: i16) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let shared = Arc::new(ShareShared::new(settings));
        let buffers = BufferPool::default();
        let wakes = Arc::new(Wakes::default());
        let wake = WakeHandle::new(Arc::clone(&wakes) as Arc<dyn Wake>);
        let fetcher = ShareFetcher::new(Arc::clone(&shared), buffers.clone(), wake, Rng::from_seed(1));
        let settings = Arc::new(ConnectionSettings::default());
        let rng = Rng::from_seed(2);
        let connection = Connection::new(settings, "b".into(), 9092, Some(node()), buffers, rng);
        let asked = (ApiKey::ApiVersions, 0, 0);
        let held = HeldRecords::default();
        let mut script = Self { now, shared, held, connection, fetcher, wakes, asked };
        script.connect(version);
        script
    }

    fn connect(&mut self, version: i16) {
        self.connection.want(self.now);
        self.connection.handle_resolved(self.now, Ok(vec!["127.0.0.1:9092".parse().expect("an address")]));
        self.connection.handle_connected(self.now);
        let _ = self.sent().expect("the versions are asked first");
        let row =
            |api: ApiKey, min_version, max_version| ApiRow { api_key: api as i16, min_version, max_version };
        let response = ApiVersionsResponse {
            api_keys: vec![
                row(ApiKey::ShareFetch, 1, version),
                row(ApiKey::ShareAcknowledge, 1, version),
                row(ApiKey::ApiVersions, 0, self.asked.1),
            ],
            ..ApiVersionsResponse::default()
        };
        self.respond(&response);
        assert!(self.connection.is_ready());
    }

    fn adopt(&mut self, partition: i32) {
        let handle = Arc::new(PartitionHandle::new(TopicPartition::new("t", partition)));
        let member = Arc::from("m");
        self.fetcher.handle_message(ShareMessage::Adopt { node: node(), member, handle, topic_id: T });
    }

    /// The application polls.
    fn poll(&mut self) {
        self.shared.note_poll(self.now);
    }

    /// Returns the next request, if one is sent.
    fn next(&mut self) -> Option<Asked> {
        self.fetcher.pump(self.now, &mut self.connection);
        self.fetcher.give_up_ending();
        let body = self.sent()?;
        let (api, version, _) = self.asked;
        let mut reader = Reader::new(&body);
        Some(match api {
            ApiKey::ShareFetch => {
                Asked::Fetch(ShareFetchRequest::decode(&mut reader, version).expect("it is valid"))
            }
            ApiKey::ShareAcknowledge => Asked::Acknowledge(
                ShareAcknowledgeRequest::decode(&mut reader, version).expect("it is valid"),
            ),
            other => panic!("{} is sent", other.name()),
        })
    }

    fn fetch(&mut self) -> ShareFetchRequest {
        match self.next() {
            Some(Asked::Fetch(request)) => request,
            other => panic!("{other:?} instead of a ShareFetch"),
        }
    }

    fn acknowledge(&mut self) -> ShareAcknowledgeRequest {
        match self.next() {
            Some(Asked::Acknowledge(request)) => request,
            other => panic!("{other:?} instead of a ShareAcknowledge"),
        }
    }

    fn assert_idle(&mut self) {
        let next = self.next();
        assert!(next.is_none(), "{next:?}");
    }

    fn sent(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = self.connection.unsent(&mut slices);
        slices[..filled].iter().for_each(|slice| bytes.extend_from_slice(slice));
        if bytes.is_empty() {
            return None;
        }
        self.connection.handle_written(self.now, bytes.len(), &mut Vec::new());
        let mut reader = Reader::new(&bytes[4..]);
        let header = RequestHeader::decode(&mut reader).expect("a header");
        let apis = [ApiKey::ApiVersions, ApiKey::ShareFetch, ApiKey::ShareAcknowledge];
        let api = apis.into_iter().find(|api| *api as i16 == header.api_key).expect("a known API");
        self.asked = (api, header.api_version, header.correlation_id);
        Some(bytes[4 + reader.position()..].to_vec())
    }

    /// Responds to the request in flight.
    fn respond(&mut self, response: &impl Message) {
        let (api, version, correlation_id) = self.asked;
        let mut bytes = vec![0; 4];
        ResponseHeader { correlation_id }.encode(api, version, &mut bytes);
        response.encode(version, &mut bytes).expect("it has a version");
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

    /// Responds to a ShareFetch with these partitions.
    fn respond_with(&mut self, partitions: Vec<Partition>) {
        let responses = vec![TopicResponse { topic_id: T, partitions }];
        self.respond(&ShareFetchResponse {
            acquisition_lock_timeout_ms: LOCK.as_millis() as i32,
            responses,
            ..ShareFetchResponse::default()
        });
    }

    /// Adopts partition 0, and delivers `count` records from offset 0 on.
    fn deliver(&mut self, count: usize) -> Arc<AcquiredRecords> {
        self.adopt(0);
        self.poll();
        let _ = self.fetch();
        self.respond_with(vec![acquired(0, batch(0, count), &[(0, count as i64 - 1, 1)])]);
        self.take().pop().expect("records of one partition")
    }

    /// Responds to a ShareAcknowledge with this error for partition 0.
    fn respond_acknowledged(&mut self, error_code: ErrorCode) {
        let partition =
            share_acknowledge::response::Partition { partition_index: 0, error_code, ..Default::default() };
        let topic = share_acknowledge::response::Response { topic_id: T, partitions: vec![partition] };
        self.respond(&ShareAcknowledgeResponse {
            acquisition_lock_timeout_ms: LOCK.as_millis() as i32,
            responses: vec![topic],
            ..ShareAcknowledgeResponse::default()
        });
    }

    /// Takes the records that the application would get now.
    fn take(&mut self) -> Vec<Arc<AcquiredRecords>> {
        let mut records = Vec::new();
        self.shared.take(self.now, usize::MAX, &mut records);
        self.held.add(&records);
        records
    }

    /// Accepts all records that the application has, and sends that.
    fn accept(&self) {
        self.held.accept_open();
        self.held.commit(&self.shared);
    }

    /// Returns the outcomes so far: partition, offsets and error.
    fn outcomes(&self) -> Vec<Outcome> {
        let shown = |outcome: AcknowledgeOutcome| {
            (outcome.partition.partition, outcome.offsets, outcome.result.err().map(|error| error.kind()))
        };
        self.shared.take_outcomes().into_iter().map(shown).collect()
    }

    /// Returns the number of notifications of the broker actor since the last call.
    fn wakes(&self) -> usize {
        self.wakes.0.swap(0, Ordering::Relaxed)
    }

    fn reports(&mut self) -> Vec<ShareReport> {
        let outputs = std::iter::from_fn(|| self.fetcher.poll_output());
        let reports = outputs.filter_map(|output| match output {
            HalfOutput::Report(report) => Some(report),
            _ => None,
        });
        reports.collect()
    }
}

/// Returns a batch of `count` records from offset `base` on.
fn batch(base: i64, count: usize) -> Vec<u8> {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    for index in 0..count {
        builder.append(1000 + index as i64, None, Some(format!("{}", base + index as i64).as_bytes()), &[]);
    }
    let mut bytes = builder.seal(&SealOptions::default()).expect("a batch").to_vec();
    bytes[..8].copy_from_slice(&base.to_be_bytes());
    bytes
}

/// Returns a partition of a response with records, and acquired ranges: first, last, delivery count.
fn acquired(partition_index: i32, records: Vec<u8>, ranges: &[(i64, i64, i16)]) -> Partition {
    let range = |(first_offset, last_offset, delivery_count): &(i64, i64, i16)| AcquiredRecord {
        first_offset: *first_offset,
        last_offset: *last_offset,
        delivery_count: *delivery_count,
    };
    let acquired_records = ranges.iter().map(range).collect();
    Partition { partition_index, records, acquired_records, ..Partition::default() }
}

/// Returns the acknowledged ranges of partition 0: first, last, types.
fn in_fetch(request: &ShareFetchRequest) -> Vec<Batch> {
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let batches = partitions.flat_map(|partition| &partition.acknowledgement_batches);
    batches.map(|batch| (batch.first_offset, batch.last_offset, batch.acknowledge_types.clone())).collect()
}

/// As `in_fetch`.
fn in_acknowledge(request: &ShareAcknowledgeRequest) -> Vec<Batch> {
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let batches = partitions.flat_map(|partition| &partition.acknowledgement_batches);
    batches.map(|batch| (batch.first_offset, batch.last_offset, batch.acknowledge_types.clone())).collect()
}

fn offsets(records: &Arc<AcquiredRecords>) -> Vec<(i64, i16)> {
    let mut offsets = Vec::new();
    records.for_each(|message, delivery_count| offsets.push((message.offset(), delivery_count)));
    offsets
}

fn settings() -> ShareSettings {
    ShareSettings::with_defaults("g")
}
