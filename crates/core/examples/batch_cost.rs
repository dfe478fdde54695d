//! What a batch costs a producer: 100 partitions get twelve records of 100 bytes each in turn, one request carries their batches, a
//! scripted broker accepts it, and the reports are read as the C library reads them. One thread, virtual time, no socket.
//!
//! `cargo xtask instructions --only batch` runs it under callgrind, which counts instructions only inside of one of these functions.
//! Allocations are counted everywhere: the script makes none per batch.
//!
//! ```text
//!   application_half ──► io_half_* ──► (script) ──► io_half_* ──► reports_half
//! ```
//!
//! The arguments are the numbers of batches and of records in each: `batch_cost 20000 12`.

use std::{
    collections::VecDeque,
    env, error,
    io::IoSlice,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ottla_core::{
    broker::{BrokerCore, BrokerOutput, BrokerParts},
    connection::{ConnectionSettings, buffer::BufferPool},
    machine::Instant,
    message::{ConnectionMessage, ToBroker},
    produce::{
        message::ProduceMessage,
        partition::PartitionProducer,
        record::Record,
        report::{DeliveryBatch, DeliverySink},
        settings::ProducerSettings,
        shared::ProducerShared,
        topic::ProducerTopic,
    },
    rng::Rng,
    wake::WakeHandle,
};
use ottla_protocol::{
    api::ApiKey,
    batch::RecordPosition,
    generated::{
        api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
        produce::{
            ProduceResponse,
            response::{PartitionResponse, Response as TopicResponse},
        },
    },
    header::{RequestHeader, ResponseHeader},
    primitive::Reader,
    uuid::Uuid,
    vocabulary::NodeId,
};

type Result<T> = std::result::Result<T, Box<dyn error::Error>>;

const PARTITIONS: u64 = 100;
const TOPIC: &str = "t";
/// A round is longer than the linger.
const ROUND: Duration = Duration::from_millis(10);
/// The most bytes of a request that the script reads.
const LONGEST_HEADER: usize = 64;
const VERSIONS: [(ApiKey, i16); 2] = [(ApiKey::Produce, 12), (ApiKey::ApiVersions, 4)];

/// A queue of reports, each of which counts against the queue's limits until it is read.
#[derive(Default)]
struct Reports(Mutex<VecDeque<DeliveryBatch>>);

impl Reports {
    fn pop(&self) -> Option<DeliveryBatch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(batch);
    }

    fn keeps_charge(&self) -> bool {
        true
    }
}

/// A producer and its only broker.
struct Script {
    now: Instant,
    shared: Arc<ProducerShared>,
    topic: Arc<ProducerTopic>,
    reports: Arc<Reports>,
    core: BrokerCore,
    /// The first bytes of the request that the script has not read yet.
    written: Vec<u8>,
    /// The response to a request with a batch for each partition.
    accepted: ProduceResponse,
}

fn main() -> Result<()> {
    let mut numbers = env::args().skip(1).map(|number| number.parse::<u64>());
    let batches = numbers.next().unwrap_or(Ok(20_000))?;
    let records = numbers.next().unwrap_or(Ok(12))?;
    let mut script = Script::connected()?;
    let value = [b'x'; 100];
    let mut reported = 0;
    for _ in 0..batches / PARTITIONS {
        application_half(&script.shared, &script.topic, script.now, records, &value)?;
        script.now += ROUND;
        io_half_due(&mut script.core, script.now);
        script.exchange()?;
        reported += reports_half(&script.shared, &script.reports);
    }
    let sent = batches / PARTITIONS * PARTITIONS * records;
    if (reported, script.shared.queued_messages()) != (sent, 0) {
        return Err(format!("{reported} of {sent} records were reported").into());
    }
    println!("{reported} records");
    Ok(())
}

/// Sends records to all partitions in turn.
#[inline(never)]
fn application_half(
    shared: &ProducerShared,
    topic: &ProducerTopic,
    now: Instant,
    records: u64,
    value: &[u8],
) -> Result<()> {
    for number in 0..records * PARTITIONS {
        let partition = (number % PARTITIONS) as i32;
        let record = Record::of(Some(partition), Some(1), None, Some(value), number + 1);
        shared.send(topic, now, 0, &record.kept_for_its_report(true), None)?;
    }
    Ok(())
}

/// Takes the batches that are due.
#[inline(never)]
fn io_half_due(core: &mut BrokerCore, now: Instant) {
    core.handle_timeout(now);
}

/// Collects slices of the request for the socket. Returns their number of bytes.
#[inline(never)]
fn io_half_unsent(core: &BrokerCore) -> usize {
    let mut slices = [IoSlice::new(&[]); 64];
    let filled = core.unsent(&mut slices);
    slices[..filled].iter().map(|slice| slice.len()).sum()
}

/// The socket has taken the bytes.
#[inline(never)]
fn io_half_written(core: &mut BrokerCore, now: Instant, bytes: usize) {
    core.handle_written(now, bytes);
}

/// Handles the bytes of a response.
#[inline(never)]
fn io_half_read(core: &mut BrokerCore, now: Instant, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let space = core.read_space();
        let n = space.len().min(bytes.len());
        space[..n].copy_from_slice(&bytes[..n]);
        bytes = &bytes[n..];
        core.handle_read(now, n);
    }
}

/// Reads the reports with their records, and returns their number.
#[inline(never)]
fn reports_half(shared: &ProducerShared, reports: &Reports) -> u64 {
    let mut reported = 0;
    while let Some(batch) = reports.pop() {
        let (mut position, mut joined) = (RecordPosition::default(), Vec::new());
        for report in batch.iter() {
            let record = batch.records().and_then(|records| records.next(&mut position, &mut joined));
            let is_whole = record.is_some_and(|record| record.value.is_some_and(|value| value.len() == 100));
            reported += u64::from(report.error.is_none() && report.opaque > 0 && is_whole);
        }
        shared.budget.release(batch.len(), batch.charged_bytes());
    }
    reported
}

impl Script {
    fn connected() -> Result<Self> {
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports) as Arc<dyn DeliverySink>;
        let settings = ProducerSettings { idempotence: false, ..ProducerSettings::default() };
        let shared = Arc::new(ProducerShared::new(settings, sink, Rng::from_seed(1)));
        let topic = shared.topic(TOPIC).0;
        let mut producers = Vec::new();
        topic.set_partitions(
            PARTITIONS as i32,
            |accumulator| producers.push(PartitionProducer::new(Arc::clone(accumulator), Uuid::ZERO)),
            |_| (),
        );
        let parts = BrokerParts {
            connection: Arc::new(ConnectionSettings::default()),
            producer: Some(Arc::clone(&shared)),
            consumer: None,
            share: None,
            buffers: BufferPool::default(),
        };
        let (wake, id) = (WakeHandle::noop(), NodeId::from_wire(1));
        let core = BrokerCore::new(&parts, "broker".into(), 9092, id, wake, Rng::from_seed(2));
        let now = Instant::from_nanos(1_000_000);
        let (written, accepted) = (Vec::new(), accepted());
        let mut script = Self { now, shared, topic, reports, core, written, accepted };
        script.core.handle_message(now, ToBroker::Connection(ConnectionMessage::Connect));
        script.exchange()?;
        for producer in producers {
            script.core.handle_message(now, ToBroker::Produce(ProduceMessage::Adopt(Box::new(producer))));
        }
        Ok(script)
    }

    /// Plays the driver and the broker until nothing is left to do.
    fn exchange(&mut self) -> Result<()> {
        loop {
            while let Some(output) = self.core.poll_output() {
                match output {
                    BrokerOutput::Resolve { .. } => {
                        self.core.handle_resolved(self.now, Ok(vec!["127.0.0.1:9092".parse()?]));
                    }
                    BrokerOutput::Connect(_) => self.core.handle_connected(self.now),
                    BrokerOutput::CloseSocket | BrokerOutput::ToCluster(_) | BrokerOutput::Done => {}
                }
            }
            let bytes = io_half_unsent(&self.core);
            if bytes == 0 {
                return Ok(());
            }
            self.copy_unsent();
            io_half_written(&mut self.core, self.now, bytes);
            if self.core.unsent_bytes() == 0 {
                let response = self.response()?;
                io_half_read(&mut self.core, self.now, &response);
            }
        }
    }

    /// Keeps the beginning of a request, with its header.
    fn copy_unsent(&mut self) {
        if self.written.is_empty() {
            let mut slices = [IoSlice::new(&[]); 1];
            self.core.unsent(&mut slices);
            self.written.extend_from_slice(&slices[0][..slices[0].len().min(LONGEST_HEADER)]);
        }
    }

    /// Reads the request, and returns the response of a broker that accepts everything.
    fn response(&mut self) -> Result<Vec<u8>> {
        let written = mem::take(&mut self.written);
        let mut reader = Reader::new(written.get(4..).ok_or("a request has a length")?);
        let header = RequestHeader::decode(&mut reader)?;
        let (version, id) = (header.api_version, header.correlation_id);
        let api = ApiKey::from_i16(header.api_key).ok_or("an unknown API")?;
        let mut frame = vec![0; 4];
        ResponseHeader { correlation_id: id }.encode(api, version, &mut frame);
        if api == ApiKey::Produce {
            let partitions =
                self.accepted.responses.iter_mut().flat_map(|topic| &mut topic.partition_responses);
            partitions.for_each(|partition| partition.base_offset += 1000);
            self.accepted.encode(version, &mut frame)?;
        } else {
            let row = |(api, max_version): (ApiKey, i16)| ApiRow {
                api_key: api as i16,
                max_version,
                ..ApiRow::default()
            };
            let api_keys = VERSIONS.into_iter().map(row).collect();
            ApiVersionsResponse { api_keys, ..Default::default() }.encode(version, &mut frame)?;
        }
        let length = u32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        Ok(frame)
    }
}

/// The response of a broker that has written a batch for each partition.
fn accepted() -> ProduceResponse {
    let written = |index| PartitionResponse { index, ..PartitionResponse::default() };
    let partition_responses = (0..PARTITIONS as i32).map(written).collect();
    let topic = TopicResponse { name: TOPIC.to_owned(), partition_responses, ..TopicResponse::default() };
    ProduceResponse { responses: vec![topic], ..ProduceResponse::default() }
}
