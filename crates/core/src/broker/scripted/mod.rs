//! A broker actor in virtual time, against a broker that the test plays: the test decodes the written requests and
//! decides what to respond and when.

mod authenticating;
mod collecting;
mod compressing;
mod connecting;
mod misbehaving;
mod misrouting;
mod reauthenticating;
mod telemetry;
mod throttling;
mod timing_out;
mod topics;
mod transactions;

use std::{
    io::IoSlice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    batch::{Batch, Batches, Records},
    compress::Compression,
    error_code::ErrorCode,
    generated::{
        api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
        produce::{
            ProduceRequest, ProduceResponse,
            response::{PartitionResponse, Response as TopicResponse},
        },
    },
    header::{RequestHeader, ResponseHeader},
    primitive::Reader,
    uuid::Uuid,
    vocabulary::{NodeId, TopicPartition},
};
use ottla_sorted::SortedMap;

use super::{BrokerCore, BrokerOutput, BrokerParts};
use crate::{
    connection::{ConnectionSettings, buffer::BufferPool},
    error::Error,
    machine::Instant,
    message::{ConnectionMessage, ConnectionReport, ToBroker, ToCluster},
    produce::{
        message::{ProduceMessage, ProduceReport},
        partition::PartitionProducer,
        producer_id::ProducerIdentity,
        record::Record,
        report::{DeliveryBatch, DeliverySink, PersistenceStatus},
        settings::ProducerSettings,
        shared::ProducerShared,
        topic_settings::TopicSettings,
    },
    rng::Rng,
    stats::{CollectorStatistics, Purpose},
    sync::Mutex,
    turns::Turns,
    wake::{Wake, WakeHandle},
};

const TOPIC: &str = "t";
/// The highest versions of the broker that the test plays.
const VERSIONS: [(ApiKey, i16); 4] =
    [(ApiKey::Produce, 8), (ApiKey::ListOffsets, 5), (ApiKey::Metadata, 8), (ApiKey::ApiVersions, 2)];

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A request as it was written to the socket.
struct Request {
    written_at: Instant,
    api: ApiKey,
    version: i16,
    correlation_id: i32,
    /// The values of a Produce request by partition, in the order of the request.
    batches: Vec<(i32, Vec<String>)>,
    /// The topics of these batches, and their codecs.
    topics: Vec<(String, Compression)>,
    acks: i16,
    timeout_ms: i32,
    transactional_id: Option<String>,
    /// True if all batches belong to a transaction.
    is_transactional: bool,
    /// The epoch and the first sequence number of each batch.
    numbers: Vec<(i16, i32)>,
}

impl Request {
    fn partitions(&self) -> Vec<i32> {
        self.batches.iter().map(|(partition, _)| *partition).collect()
    }

    fn values(&self) -> Vec<&str> {
        self.batches.iter().flat_map(|(_, values)| values).map(String::as_str).collect()
    }

    fn values_of(&self, partition: i32) -> Vec<&str> {
        let ours = self.batches.iter().filter(|(index, _)| *index == partition);
        ours.flat_map(|(_, values)| values).map(String::as_str).collect()
    }
}

/// The reports, the lengths of those that show their records, and the number of reports in each step.
#[derive(Default)]
struct Reports(Mutex<Vec<Report>>, Mutex<Vec<usize>>, Mutex<Vec<usize>>);

/// A report: the partition, the error, the persistence status, and the number of messages.
type Report = (i32, Option<Error>, PersistenceStatus, usize);

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        self.0.lock().push((batch.partition(), batch.error().cloned(), batch.status(), batch.len()));
        self.1.lock().extend(batch.records().map(|_| batch.len()));
    }

    fn deliver_all(&self, batches: &mut dyn Iterator<Item = DeliveryBatch>) {
        let number = batches.map(|batch| self.deliver(batch)).count();
        self.2.lock().push(number);
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The broker actor and its environment.
struct Script {
    now: Instant,
    shared: Arc<ProducerShared>,
    reports: Arc<Reports>,
    core: BrokerCore,
    woken: Arc<Flag>,
    /// True if the broker can be reached.
    is_up: bool,
    /// True if responses list the partitions in another order than the request.
    responds_backwards: bool,
    is_connected: bool,
    written: Vec<u8>,
    /// The written bytes that the test has not read yet.
    requests: Vec<Request>,
    /// The partitions that no broker actor has.
    parked: SortedMap<i32, PartitionProducer>,
    messages: Vec<ToCluster>,
    next_offset: i64,
    connects: usize,
    /// True if the socket accepts bytes.
    takes_bytes: bool,
    /// The hosts that were looked up.
    hosts: Vec<String>,
}

impl Script {
    /// Creates a connected broker actor that leads partitions `0..partitions` of the topic `t`.
    fn new(partitions: i32, settings: ProducerSettings) -> Self {
        let mut script = Self::unconnected(partitions, settings);
        script.messages(ToBroker::Connection(ConnectionMessage::Connect));
        script.adopt_all();
        assert!(script.is_connected && script.requests.is_empty());
        script
    }

    fn unconnected(partitions: i32, settings: ProducerSettings) -> Self {
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports) as Arc<dyn DeliverySink>;
        let shared = Arc::new(ProducerShared::new(settings, sink, Rng::from_seed(1)));
        shared.identity.set(ProducerIdentity { id: 7, epoch: 0 });
        let mut parked = SortedMap::new();
        shared.topic(TOPIC).0.set_partitions(
            partitions,
            |accumulator| {
                let producer = PartitionProducer::new(Arc::clone(accumulator), Uuid::ZERO);
                parked.insert(accumulator.partition(), producer);
            },
            |_| (),
        );
        let woken = Arc::new(Flag::default());
        let parts = BrokerParts {
            connection: Arc::new(ConnectionSettings::default()),
            producer: Some(Arc::clone(&shared)),
            consumer: None,
            share: None,
            buffers: BufferPool::default(),
        };
        let wake = WakeHandle::new(Arc::clone(&woken) as Arc<dyn Wake>);
        let core =
            BrokerCore::new(&parts, "broker".into(), 9092, NodeId::from_wire(1), wake, Rng::from_seed(2));
        Self {
            now: at(1),
            shared,
            reports,
            core,
            woken,
            is_up: true,
            responds_backwards: false,
            is_connected: false,
            written: Vec::new(),
            requests: Vec::new(),
            parked,
            messages: Vec::new(),
            next_offset: 0,
            connects: 0,
            takes_bytes: true,
            hosts: Vec::new(),
        }
    }

    fn adopt_all(&mut self) {
        for producer in std::mem::take(&mut self.parked).into_values() {
            self.messages(ToBroker::Produce(ProduceMessage::Adopt(Box::new(producer))));
        }
    }

    fn messages(&mut self, messages: ToBroker) {
        self.core.handle_message(self.now, messages);
        self.settle();
    }

    fn release(&mut self, partition: i32) {
        self.messages(ToBroker::Produce(ProduceMessage::Release(TopicPartition::new(TOPIC, partition))));
    }

    /// Sends a record as the application.
    fn send(&mut self, partition: i32, value: &str) {
        self.send_to(TOPIC, partition, value);
    }

    /// Makes the broker actor lead partition 0 of another topic, which has its own settings.
    fn add_topic(&mut self, name: &str, change: impl FnOnce(&mut TopicSettings)) {
        let mut settings = self.shared.topic_settings().clone();
        change(&mut settings);
        let topic = self.shared.topic_with(name, &settings).0;
        let mut producer = None;
        topic.set_partitions(
            1,
            |accumulator| {
                producer = Some(PartitionProducer::new(Arc::clone(accumulator), Uuid::ZERO));
            },
            |_| (),
        );
        self.messages(ToBroker::Produce(ProduceMessage::Adopt(Box::new(producer.expect("a new partition")))));
    }

    fn send_to(&mut self, topic: &str, partition: i32, value: &str) {
        let topic = self.shared.topic(topic).0;
        let record = Record::new().value(value).partition(partition);
        self.shared.send(&topic, self.now, 0, &record, None).expect("there is room");
        self.settle();
    }

    /// Lets time pass, as the driver would.
    fn run_until(&mut self, until: Instant) {
        let mut turns = Turns::default();
        while let Some(next) = self.core.poll_timeout().filter(|next| *next <= until) {
            turns.take(next.max(self.now), 100);
            self.now = self.now.max(next);
            self.core.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Returns the only request that was written since the last call.
    fn request(&mut self) -> Request {
        let mut requests = std::mem::take(&mut self.requests);
        assert_eq!(requests.len(), 1, "there is one request");
        requests.remove(0)
    }

    fn request_after_back_off(&mut self) -> Request {
        self.run_for(millis(200));
        self.request()
    }

    fn assert_silent(&self) {
        let written: Vec<_> = self.requests.iter().map(|r| (r.api, r.batches.clone())).collect();
        assert!(written.is_empty(), "nothing is written, but {written:?}");
    }

    /// Responds to a Produce request without an error.
    fn accept(&mut self, request: &Request) {
        self.respond_to_produce(request, 0, |_| ErrorCode::NONE);
    }

    /// Responds to a Produce request with a throttle time and an error code for each partition.
    fn respond_to_produce(
        &mut self,
        request: &Request,
        throttle_ms: i32,
        code_of: impl Fn(i32) -> ErrorCode,
    ) {
        let mut responses: Vec<TopicResponse> = Vec::new();
        for ((index, values), (topic, _)) in request.batches.iter().zip(&request.topics) {
            let error_code = code_of(*index);
            let base_offset = if error_code == ErrorCode::NONE { self.next_offset } else { -1 };
            self.next_offset += values.len() as i64;
            if responses.last().is_none_or(|last| last.name != *topic) {
                responses.push(TopicResponse { name: topic.clone(), ..Default::default() });
            }
            let last = responses.last_mut().expect("a topic");
            last.partition_responses.push(PartitionResponse {
                index: *index,
                error_code,
                base_offset,
                ..Default::default()
            });
        }
        if self.responds_backwards {
            responses.iter_mut().for_each(|topic| topic.partition_responses.reverse());
        }
        let response = ProduceResponse { responses, throttle_time_ms: throttle_ms, ..Default::default() };
        self.respond(request, |version, out| response.encode(version, out).expect("it can be encoded"));
    }

    /// Responds to any request with a body.
    fn respond(&mut self, request: &Request, encode: impl FnOnce(i16, &mut Vec<u8>)) {
        let mut frame = vec![0; 4];
        ResponseHeader { correlation_id: request.correlation_id }.encode(
            request.api,
            request.version,
            &mut frame,
        );
        encode(request.version, &mut frame);
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.read(&frame);
        self.settle();
    }

    fn disconnect(&mut self) {
        self.is_connected = false;
        self.written.clear();
        self.core.handle_closed(self.now, "connection reset");
        self.settle();
    }

    /// Returns why the connection was dropped.
    fn down(&mut self) -> Error {
        let messages = std::mem::take(&mut self.messages);
        let error = messages.into_iter().find_map(|messages| match messages {
            ToCluster::Connection(ConnectionReport::Down(error)) => Some(error),
            _ => None,
        });
        error.expect("the connection was dropped")
    }

    fn statuses(&self) -> Vec<PersistenceStatus> {
        self.reports.0.lock().iter().map(|(_, _, status, _)| *status).collect()
    }

    fn reported_messages(&self) -> usize {
        self.reports.0.lock().iter().map(|(_, _, _, messages)| messages).sum()
    }

    fn errors(&self) -> Vec<Error> {
        self.reports.0.lock().iter().filter_map(|(_, error, _, _)| error.clone()).collect()
    }

    fn collector(&mut self) -> CollectorStatistics {
        let mut statistics = crate::stats::Statistics::default();
        let mut broker = self.core.connection.statistics(self.now, Purpose::Query);
        if let Some(sender) = &mut self.core.sender {
            sender.add_statistics(&mut statistics, &mut broker, NodeId::from_wire(1), Purpose::Query);
        }
        broker.collector
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.core.read_space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            self.core.handle_read(self.now, n);
        }
    }

    /// Carries out the outputs of the actor until there are none.
    fn settle(&mut self) {
        let mut turns = Turns::default();
        loop {
            turns.take(self.now, 10_000);
            let mut quiet = !self.woken.0.swap(false, Ordering::SeqCst);
            if !quiet {
                self.core.handle_wake(self.now);
            }
            while let Some(output) = self.core.poll_output() {
                turns.take(self.now, 10_000);
                quiet = false;
                self.handle_output(output);
            }
            if !self.write() && quiet {
                return;
            }
        }
    }

    fn handle_output(&mut self, output: BrokerOutput) {
        match output {
            BrokerOutput::Resolve { host, port } => {
                self.hosts.push(format!("{host}:{port}"));
                let address = "127.0.0.1:9092".parse().expect("an address");
                self.core.handle_resolved(self.now, Ok(vec![address]));
            }
            BrokerOutput::Connect(_) if self.is_up => {
                self.connects += 1;
                self.is_connected = true;
                self.core.handle_connected(self.now);
            }
            BrokerOutput::Connect(_) => self.core.handle_closed(self.now, "connection refused"),
            BrokerOutput::CloseSocket => {
                self.is_connected = false;
                self.written.clear();
            }
            BrokerOutput::ToCluster(ToCluster::Produce(ProduceReport::Released(producer))) => {
                self.parked.insert(producer.partition(), *producer);
            }
            BrokerOutput::ToCluster(ToCluster::Produce(ProduceReport::RenewIdentity(used))) => {
                if self.shared.identity.get() == Some(used) {
                    self.shared.identity.set(ProducerIdentity { epoch: used.epoch + 1, ..used });
                }
                self.core.handle_message(self.now, ToBroker::Produce(ProduceMessage::Flush));
            }
            BrokerOutput::ToCluster(messages) => self.messages.push(messages),
            BrokerOutput::Done => {}
        }
    }

    /// Takes the bytes to write; returns true if there were any.
    fn write(&mut self) -> bool {
        if !self.is_connected || !self.takes_bytes {
            return false;
        }
        let mut slices = [IoSlice::new(&[]); 64];
        let filled = self.core.unsent(&mut slices);
        let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
        if bytes.is_empty() {
            return false;
        }
        self.written.extend(&bytes);
        self.core.handle_written(self.now, bytes.len());
        while let Some(length) = self.written.first_chunk::<4>() {
            let end = 4 + u32::from_be_bytes(*length) as usize;
            if self.written.len() < end {
                break;
            }
            let frame: Vec<u8> = self.written.drain(..end).collect();
            let request = self.decode(&frame[4..]);
            if request.api == ApiKey::ApiVersions {
                self.report_versions(&request);
            } else {
                self.requests.push(request);
            }
        }
        true
    }

    fn decode(&self, frame: &[u8]) -> Request {
        let mut reader = Reader::new(frame);
        let header = RequestHeader::decode(&mut reader).expect("a header");
        let api = ApiKey::from_i16(header.api_key).expect("a known API");
        let (mut batches, mut topics, mut acks, mut timeout_ms) = (Vec::new(), Vec::new(), 0, 0);
        let (mut transactional_id, mut is_transactional, mut numbers) = (None, true, Vec::new());
        if api == ApiKey::Produce {
            let request = ProduceRequest::decode(&mut reader, header.api_version).expect("a request");
            (acks, timeout_ms) = (request.acks, request.timeout_ms);
            transactional_id = request.transactional_id;
            let parts = request.topic_data.into_iter().flat_map(|topic| {
                let name = topic.name;
                topic.partition_data.into_iter().map(move |part| (name.clone(), part))
            });
            for (topic, part) in parts {
                let mut codec = Compression::None;
                let records = part.records.unwrap_or_default();
                let mut values = Vec::new();
                for batch in Batches::new(&records) {
                    let Batch::V2(batch) = batch.expect("a batch") else { panic!("a message set") };
                    is_transactional &= batch.header().is_transactional();
                    numbers.push((batch.header().producer_epoch, batch.header().base_sequence));
                    codec = batch.header().compression().expect("a known codec");
                    let bytes = batch.records(1 << 20).expect("records");
                    for record in Records::new(batch.header(), &bytes) {
                        let value = record.expect("a record").value.unwrap_or_default();
                        values.push(String::from_utf8_lossy(value).into_owned());
                    }
                }
                batches.push((part.index, values));
                topics.push((topic, codec));
            }
        }
        Request {
            written_at: self.now,
            api,
            version: header.api_version,
            correlation_id: header.correlation_id,
            batches,
            topics,
            acks,
            timeout_ms,
            transactional_id,
            is_transactional,
            numbers,
        }
    }

    fn report_versions(&mut self, request: &Request) {
        // The broker supports version 2 at most and responds to a higher one in version 0.
        let (error_code, version) = match request.version {
            0..=2 => (ErrorCode::NONE, request.version),
            _ => (ErrorCode::UNSUPPORTED_VERSION, 0),
        };
        let api_keys = VERSIONS
            .iter()
            .map(|(api, max_version)| ApiRow {
                api_key: *api as i16,
                min_version: 0,
                max_version: *max_version,
            })
            .collect();
        let response = ApiVersionsResponse { error_code, api_keys, ..Default::default() };
        let mut frame = vec![0; 4];
        frame.extend(request.correlation_id.to_be_bytes());
        response.encode(version, &mut frame).expect("it can be encoded");
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.read(&frame);
    }
}
