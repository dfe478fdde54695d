//! A sender against responses of a script.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::produce::{
        ProduceResponse,
        response::{CurrentLeader, PartitionResponse, Response},
    },
    uuid::Uuid,
    vocabulary::NodeId,
};

use super::message::ProduceReport;
use super::{
    ack::Written,
    batch::ReadyBatch,
    partition::{Compress, Next, PartitionProducer},
    pending_reports::PendingReports,
    producer_id::ProducerIdentity,
    record::{Record, SendError},
    report::{Delivered, DeliveryBatch, DeliverySink, PersistenceStatus},
    request::{ProduceBatch, decode_response},
    sender::Sender,
    settings::ProducerSettings,
    shared::ProducerShared,
};
use crate::{
    contract::{broker::BrokerNews, half::HalfOutput},
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
    sync::Mutex,
    wake::WakeHandle,
};

const IDENTITY: ProducerIdentity = ProducerIdentity { id: 7, epoch: 0 };
const VERSION: i16 = 9;

#[derive(Default)]
struct Collected(Mutex<Vec<(i32, Option<Error>, PersistenceStatus)>>);

impl DeliverySink for Collected {
    fn deliver(&self, batch: DeliveryBatch) {
        self.0.lock().push((batch.partition(), batch.error().cloned(), batch.status()));
    }
}

/// A sender that leads partition 0 of the topic `t`.
struct Script {
    shared: Arc<ProducerShared>,
    reports: Arc<Collected>,
    sender: Sender,
    partition: Option<PartitionProducer>,
}

impl Script {
    fn new(settings: ProducerSettings) -> Self {
        let reports = Arc::new(Collected::default());
        let sink = Arc::clone(&reports) as Arc<dyn DeliverySink>;
        let shared = Arc::new(ProducerShared::new(settings, sink, Rng::from_seed(1)));
        let topic = shared.topic("t").0;
        let mut partition = None;
        topic.set_partitions(
            1,
            |accumulator| {
                partition = Some(PartitionProducer::new(Arc::clone(accumulator), Uuid::ZERO));
            },
            |_| (),
        );
        let sender =
            Sender::new(Arc::clone(&shared), NodeId::from_wire(1), WakeHandle::noop(), Rng::from_seed(2));
        Self { shared, reports, sender, partition }
    }

    /// Sends a record and returns the batch that leaves with it. The first one is taken before the sender has the
    /// partition.
    fn batch_in_flight(&mut self) -> ProduceBatch {
        self.send(1);
        self.next_in_flight(IDENTITY)
    }

    /// Sends this number of records.
    fn send(&mut self, records: usize) {
        let topic = self.shared.topic("t").0;
        for _ in 0..records {
            let record = Record::new().value("v").partition(0);
            self.shared.send(&topic, Instant::ZERO, 0, &record, None).unwrap();
        }
        if let Some(partition) = self.partition.take() {
            self.sender.adopt(partition);
        }
    }

    /// Returns the next batch to send, if the producer has this identity.
    fn next_in_flight(&mut self, identity: ProducerIdentity) -> ProduceBatch {
        let options = self.shared.topic_settings().seal_options();
        let partition = self.sender.partition_mut(0);
        let next = partition.next(true, &options, Compress::Here, true, Some(identity));
        let Next::Batch(batch) = next else { panic!("there is a batch: {next:?}") };
        partition.note_sent(&batch);
        ProduceBatch { slot: 0, topic_id: Uuid::ZERO, batch, reported: false }
    }

    /// Responds with these partitions, error codes and offsets.
    fn respond(&mut self, batches: Vec<ProduceBatch>, partitions: &[(i32, ErrorCode, i64)]) {
        let partition_responses = partitions
            .iter()
            .map(|(index, error_code, base_offset)| PartitionResponse {
                index: *index,
                error_code: *error_code,
                base_offset: *base_offset,
                ..PartitionResponse::default()
            })
            .collect();
        let topic = Response { name: "t".into(), partition_responses, ..Response::default() };
        let mut body = Vec::new();
        ProduceResponse { responses: vec![topic], ..ProduceResponse::default() }
            .encode(VERSION, &mut body)
            .unwrap();
        let response = decode_response(&body, VERSION).unwrap();
        let asked = batches.len();
        self.sender.handle_decoded(Instant::ZERO, &response, VERSION, asked, batches, "broker:9092/1");
    }

    fn outputs(&mut self) -> Vec<HalfOutput<ProduceReport>> {
        std::iter::from_fn(|| self.sender.poll_output()).collect()
    }

    fn statuses(&self) -> Vec<PersistenceStatus> {
        self.reports.0.lock().iter().map(|(_, _, status)| *status).collect()
    }
}

fn settings() -> ProducerSettings {
    ProducerSettings { retry_backoff: Duration::from_millis(1), ..ProducerSettings::default() }
}

#[test]
fn response_for_unrequested_partition_ends_the_connection() {
    let mut script = Script::new(settings());
    let batch = script.batch_in_flight();
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 0), (5, ErrorCode::NONE, 0)]);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted]);
    let outputs = script.outputs();
    let [HalfOutput::Misbehaved(error)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(error.kind(), ErrorKind::BadResponse);
    assert!(error.to_string().contains("1 partitions that were not in the request"), "{error}");
}

#[test]
fn leader_hint_is_used_only_with_a_leadership_error() {
    for (code, is_taken) in [
        (ErrorCode::NOT_LEADER_OR_FOLLOWER, true),
        (ErrorCode::FENCED_LEADER_EPOCH, true),
        (ErrorCode::NONE, false),
        (ErrorCode::KAFKA_STORAGE_ERROR, false),
    ] {
        let mut script = Script::new(settings());
        let batch = script.batch_in_flight();
        let partition = PartitionResponse {
            error_code: code,
            current_leader: CurrentLeader { leader_id: 2, leader_epoch: 9 },
            ..PartitionResponse::default()
        };
        let topic =
            Response { name: "t".into(), partition_responses: vec![partition], ..Response::default() };
        let mut body = Vec::new();
        ProduceResponse { responses: vec![topic], ..ProduceResponse::default() }
            .encode(10, &mut body)
            .unwrap();
        let response = decode_response(&body, 10).unwrap();
        script.sender.handle_decoded(Instant::ZERO, &response, 10, 1, vec![batch], "broker:9092/1");
        let hints = script
            .outputs()
            .into_iter()
            .filter(|output| matches!(output, HalfOutput::News(BrokerNews::LeaderHint(_))));
        assert_eq!(hints.count(), usize::from(is_taken), "{code}");
    }
}

#[test]
fn topic_with_a_message_in_flight_stays_in_the_metadata_refresh() {
    let mut script = Script::new(settings());
    let topic = script.shared.topic("t").0;
    let batch = script.batch_in_flight();
    topic.check_idle(Instant::FAR_FUTURE, true);
    assert!(!topic.is_idle());
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 0)]);
    topic.check_idle(Instant::FAR_FUTURE, false);
    assert!(!topic.is_idle(), "something of its metadata is missing");
    topic.check_idle(Instant::FAR_FUTURE, true);
    assert!(topic.is_idle());
    let batch = script.batch_in_flight();
    assert!(script.outputs().is_empty());
    script.respond(vec![batch], &[(0, ErrorCode::LEADER_NOT_AVAILABLE, -1)]);
    let ends =
        |output: &HalfOutput<ProduceReport>| matches!(output, HalfOutput::Report(ProduceReport::EndIdle));
    assert_eq!((script.outputs().iter().filter(|output| ends(output)).count(), topic.is_idle()), (1, false));
}

#[test]
fn partition_in_response_twice_is_reported_once() {
    let mut script = Script::new(settings());
    let batch = script.batch_in_flight();
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 0), (0, ErrorCode::INVALID_RECORD, -1)]);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted]);
    assert!(matches!(&script.outputs()[..], [HalfOutput::Misbehaved(_)]));
    assert_eq!(script.shared.queued_messages(), 0);
}

#[test]
fn partition_missing_in_response_is_retried_and_closes_connection() {
    let mut script = Script::new(settings());
    let batch = script.batch_in_flight();
    script.respond(vec![batch], &[]);
    assert_eq!(script.statuses(), []);
    assert!(matches!(&script.outputs()[..], [HalfOutput::Misbehaved(_)]));
    assert_eq!(script.sender.partition_mut(0).oldest_retry(), Some(0));
    assert_eq!(script.shared.queued_messages(), 1);
}

#[test]
fn offset_that_goes_backwards_warns_and_records_are_reported_once() {
    let mut script = Script::new(settings());
    for offset in [10, 11] {
        let batch = script.batch_in_flight();
        script.respond(vec![batch], &[(0, ErrorCode::NONE, offset)]);
    }
    assert!(script.outputs().is_empty());
    let batch = script.batch_in_flight();
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 3)]);
    let outputs = script.outputs();
    let [HalfOutput::News(BrokerNews::Warning(error))] = &outputs[..] else { panic!("{outputs:?}") };
    assert!(error.to_string().contains("offset 3 where 12"), "{error}");
    assert!(error.to_string().contains("t [0]"), "{error}");
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted; 3]);
}

/// A broker responds to a repeated batch, which it has written before a later one, with the offset of that time.
#[test]
fn offset_of_a_repeated_batch_may_go_backwards() {
    let mut script = Script::new(settings());
    let later = script.batch_in_flight();
    script.respond(vec![later], &[(0, ErrorCode::NONE, 11)]);
    let mut batch = script.batch_in_flight();
    batch.batch.written = Written::Possibly;
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 10)]);
    assert!(script.outputs().is_empty());
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted; 2]);
}

#[test]
fn a_sequence_that_the_broker_never_saw_is_not_written_twice() {
    let mut script = Script::new(settings());
    let mut batch = script.batch_in_flight();
    batch.batch.written = Written::Possibly;
    script.respond(vec![batch], &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
    // The next batch waits for an identity with a higher epoch.
    let topic = script.shared.topic("t").0;
    script.shared.send(&topic, Instant::ZERO, 0, &Record::new().value("v").partition(0), None).unwrap();
    let options = script.shared.topic_settings().seal_options();
    let next = script.sender.partition_mut(0).next(true, &options, Compress::Here, true, Some(IDENTITY));
    assert!(matches!(next, Next::NeedsIdentity(Some(IDENTITY))), "{next:?}");
}

/// Another attempt would be refused, too: the coordinator has ended the transaction, or another producer took over.
#[test]
fn epoch_error_in_a_transaction_fails_the_batch_among_others_in_flight() {
    let mut script = Script::new(ProducerSettings { transactional_id: Some("x".into()), ..settings() });
    let transactions = script.shared.transactions.clone().expect("it is transactional");
    transactions.begin(true, false);
    script.shared.begin_transaction();
    let confirmed = script.batch_in_flight();
    script.respond(vec![confirmed], &[(0, ErrorCode::NONE, 0)]);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted]);
    let (first, second) = (script.batch_in_flight(), script.batch_in_flight());
    for batch in [first, second] {
        script.respond(vec![batch], &[(0, ErrorCode::INVALID_PRODUCER_EPOCH, -1)]);
        let (_, error, status) = script.reports.0.lock().pop().expect("it is reported at once");
        let kind = error.map(|error| error.kind());
        assert_eq!(kind, Some(ErrorKind::Broker(ErrorCode::INVALID_PRODUCER_EPOCH)));
        assert_eq!(status, PersistenceStatus::NotPersisted);
        assert!(transactions.take_failure().is_some_and(|failure| !failure.is_fatal()));
    }
    assert_eq!(script.sender.partition_mut(0).oldest_retry(), None);
}

#[test]
fn a_gap_ends_the_producer_where_it_is_forbidden() {
    let mut script = Script::new(ProducerSettings { gapless: true, ..settings() });
    let batch = script.batch_in_flight();
    script.respond(vec![batch], &[(0, ErrorCode::INVALID_RECORD, -1)]);
    let outputs = script.outputs();
    let [HalfOutput::Report(ProduceReport::Fatal(error))] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(error.kind(), ErrorKind::Gapless);
    assert!(error.to_string().contains("INVALID_RECORD"), "it names its cause: {error}");
    let topic = script.shared.topic("t").0;
    let refused = script.shared.send(&topic, Instant::ZERO, 0, &Record::new().partition(0), None);
    assert_eq!(refused, Err(SendError::Fatal(error.clone())));
    assert_eq!(script.statuses(), [PersistenceStatus::NotPersisted]);
}

/// Returns the producer epoch, the first sequence number and the number of records of a batch.
fn numbers(batch: &ProduceBatch) -> (i16, i32, u32) {
    let bytes = batch.batch.sealed.to_vec();
    let epoch = i16::from_be_bytes(*bytes[51..].first_chunk().unwrap());
    let sequence = i32::from_be_bytes(*bytes[53..].first_chunk().unwrap());
    (epoch, sequence, batch.batch.sealed.record_count())
}

#[test]
fn parts_of_a_batch_split_twice_keep_their_order_when_one_returns() {
    let mut script = Script::new(settings());
    let renewed = |epoch| ProducerIdentity { epoch, ..IDENTITY };
    script.send(5);
    let whole = script.next_in_flight(IDENTITY);
    script.respond(vec![whole], &[(0, ErrorCode::MESSAGE_TOO_LARGE, -1)]);
    let half = script.next_in_flight(renewed(1));
    assert_eq!(numbers(&half), (1, 0, 2));
    script.respond(vec![half], &[(0, ErrorCode::MESSAGE_TOO_LARGE, -1)]);
    let first = script.next_in_flight(renewed(2));
    assert_eq!(numbers(&first), (2, 0, 1));
    script.respond(vec![first], &[(0, ErrorCode::NONE, 0)]);
    for _ in 0..2 {
        let second = script.next_in_flight(renewed(2));
        assert_eq!(numbers(&second), (2, 1, 1), "the second record goes before the third");
        script.respond(vec![second], &[(0, ErrorCode::NOT_LEADER_OR_FOLLOWER, -1)]);
    }
    let second = script.next_in_flight(renewed(2));
    script.respond(vec![second], &[(0, ErrorCode::NONE, 1)]);
    assert_eq!(numbers(&script.next_in_flight(renewed(2))), (2, 2, 3));
}

#[test]
fn possibly_written_batch_is_not_split() {
    let mut script = Script::new(settings());
    let confirmed = script.batch_in_flight();
    script.respond(vec![confirmed], &[(0, ErrorCode::NONE, 0)]);
    script.send(2);
    let batch = script.next_in_flight(IDENTITY);
    script.respond(vec![batch], &[(0, ErrorCode::REQUEST_TIMED_OUT, -1)]);
    let again = script.next_in_flight(IDENTITY);
    assert_eq!(numbers(&again), (0, 1, 2));
    script.respond(vec![again], &[(0, ErrorCode::MESSAGE_TOO_LARGE, -1)]);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted, PersistenceStatus::PossiblyPersisted]);
    assert_eq!(script.shared.queued_messages(), 0);
}

#[test]
fn split_batch_is_renumbered_even_if_a_later_batch_is_acknowledged() {
    let mut script = Script::new(settings());
    let confirmed = script.batch_in_flight();
    script.respond(vec![confirmed], &[(0, ErrorCode::NONE, 0)]);
    script.send(2);
    let large = script.next_in_flight(IDENTITY);
    let later = script.batch_in_flight();
    script.respond(vec![large], &[(0, ErrorCode::MESSAGE_TOO_LARGE, -1)]);
    script.respond(vec![later], &[(0, ErrorCode::NONE, 1)]);
    let renewed = ProducerIdentity { epoch: 1, ..IDENTITY };
    assert_eq!(numbers(&script.next_in_flight(renewed)), (1, 0, 1));
}

/// Returns whether the next record needs a higher epoch.
fn wants_a_higher_epoch(script: &mut Script) -> bool {
    script.send(1);
    let options = script.shared.topic_settings().seal_options();
    match script.sender.partition_mut(0).next(true, &options, Compress::Here, true, Some(IDENTITY)) {
        Next::NeedsIdentity(Some(IDENTITY)) => true,
        Next::Batch(batch) => {
            assert_eq!(batch.order, 2, "the one that was reported is not sent again");
            false
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn batch_reported_in_flight_is_not_resent_and_leaves_a_gap_if_unwritten() {
    for (code, leaves_a_gap) in [
        (ErrorCode::NONE, false),
        (ErrorCode::NOT_LEADER_OR_FOLLOWER, true),
        (ErrorCode::NOT_ENOUGH_REPLICAS, true),
        (ErrorCode::MESSAGE_TOO_LARGE, true),
        (ErrorCode::INVALID_RECORD, true),
        (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, true),
    ] {
        let mut script = Script::new(settings());
        let confirmed = script.batch_in_flight();
        script.respond(vec![confirmed], &[(0, ErrorCode::NONE, 0)]);
        script.send(2);
        let mut batch = script.next_in_flight(IDENTITY);
        // A purge or a timeout has reported the batch.
        batch.reported = true;
        script.respond(vec![batch], &[(0, code, 1)]);
        assert_eq!(script.statuses(), [PersistenceStatus::Persisted], "{code}: not reported again");
        assert_eq!(wants_a_higher_epoch(&mut script), leaves_a_gap, "{code}");
    }
}

#[test]
fn batch_without_retries_left_fails_and_the_rest_takes_a_higher_epoch() {
    for (code, status) in [
        (ErrorCode::NOT_ENOUGH_REPLICAS, PersistenceStatus::NotPersisted),
        (ErrorCode::REQUEST_TIMED_OUT, PersistenceStatus::PossiblyPersisted),
    ] {
        let mut script = Script::new(ProducerSettings { max_retries: 2, ..settings() });
        for _ in 0..3 {
            assert!(script.statuses().is_empty(), "{code}");
            if script.partition.is_some() {
                script.send(1);
            }
            let batch = script.next_in_flight(IDENTITY);
            assert_eq!(numbers(&batch), (0, 0, 1), "under the same number");
            script.respond(vec![batch], &[(0, code, -1)]);
        }
        assert_eq!(script.statuses(), [status], "{code}");
        assert!(wants_a_higher_epoch(&mut script), "{code}");
    }
}

#[test]
fn batch_is_sent_to_the_new_leader_when_no_retries_are_allowed() {
    for (code, is_retried) in [
        (ErrorCode::NOT_LEADER_OR_FOLLOWER, true),
        (ErrorCode::LEADER_NOT_AVAILABLE, true),
        (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, true),
        (ErrorCode::KAFKA_STORAGE_ERROR, false),
        (ErrorCode::REQUEST_TIMED_OUT, false),
    ] {
        let mut script = Script::new(ProducerSettings { max_retries: 0, ..settings() });
        let first = script.batch_in_flight();
        script.respond(vec![first], &[(0, code, -1)]);
        assert_eq!(script.statuses().is_empty(), is_retried, "{code}");
        if is_retried {
            let again = script.next_in_flight(IDENTITY);
            assert_eq!(numbers(&again), (0, 0, 1), "{code}: under the same number");
            script.respond(vec![again], &[(0, ErrorCode::NONE, 0)]);
            assert_eq!(script.statuses(), [PersistenceStatus::Persisted], "{code}");
        }
    }
}

#[test]
fn sequence_numbers_begin_again_at_zero_in_the_middle_of_a_batch() {
    let mut script = Script::new(settings());
    let confirmed = script.batch_in_flight();
    script.respond(vec![confirmed], &[(0, ErrorCode::NONE, 0)]);
    script.sender.partition_mut(0).set_next_sequence(i32::MAX - 1);
    for (records, first) in [(3, i32::MAX - 1), (1, 1), (1, 2)] {
        script.send(records);
        let batch = script.next_in_flight(IDENTITY);
        assert_eq!(numbers(&batch), (0, first, records as u32));
        script.respond(vec![batch], &[(0, ErrorCode::NONE, 1)]);
    }
}

#[test]
fn lost_sequence_is_fatal_with_gapless_guarantee() {
    let mut script = Script::new(ProducerSettings { gapless: true, ..settings() });
    let mut batch = script.batch_in_flight();
    batch.batch.written = Written::Possibly;
    script.respond(vec![batch], &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
    let outputs = script.outputs();
    let [HalfOutput::Report(ProduceReport::Fatal(error))] = &outputs[..] else { panic!("{outputs:?}") };
    assert!(error.to_string().contains("OUT_OF_ORDER_SEQUENCE_NUMBER"), "it names its cause: {error}");
}

#[test]
fn batch_doubtful_under_old_identity_does_not_pass_the_first_of_a_new_one() {
    let mut script = Script::new(settings());
    let confirmed = script.batch_in_flight();
    script.respond(vec![confirmed], &[(0, ErrorCode::NONE, 0)]);
    let (first, mut second) = (script.batch_in_flight().batch, script.batch_in_flight().batch);
    second.written = Written::Possibly;
    let options = script.shared.topic_settings().seal_options();
    let renewed = ProducerIdentity { epoch: 1, ..IDENTITY };
    let partition = script.sender.partition_mut(0);
    partition.forget_in_flight();
    partition.put_back(second);
    partition.note_gap(first.order);
    partition.put_back(first);
    let Next::Batch(first) = partition.next(true, &options, Compress::Here, true, Some(renewed)) else {
        panic!("it goes under the new identity, with number 0")
    };
    // It has timed out, and it is unknown whether it was written.
    partition.note_gap(first.order);
    let next = partition.next(true, &options, Compress::Here, true, Some(renewed));
    assert!(matches!(next, Next::NeedsIdentity(Some(identity)) if identity == renewed));
}

#[test]
fn topic_recreated_at_a_broker_without_ids_drops_its_old_id() {
    let mut script = Script::new(settings());
    let batch = script.batch_in_flight();
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 0)]);
    let partition = script.sender.partition_mut(0);
    assert!(!partition.set_topic_id(Uuid([1; 16])), "it was not known before");
    assert!(partition.set_topic_id(Uuid::ZERO), "recreated, and the new ID is unknown");
    assert_eq!(partition.topic_id, Uuid::ZERO);
    assert!(!partition.set_topic_id(Uuid([2; 16])), "now it is");
}

#[test]
fn sequences_of_a_recreated_topic_start_from_zero() {
    let mut script = Script::new(settings());
    for offset in [0, 1] {
        let batch = script.batch_in_flight();
        script.respond(vec![batch], &[(0, ErrorCode::NONE, offset)]);
    }
    let partition = script.sender.partition_mut(0);
    assert!(!partition.set_topic_id(Uuid([1; 16])), "it was not known before");
    assert!(partition.set_topic_id(Uuid([2; 16])));
    let batch = script.batch_in_flight();
    let bytes = batch.batch.sealed.to_vec();
    let sequence = i32::from_be_bytes(*bytes[53..].first_chunk().unwrap());
    assert_eq!(sequence, 0);
    script.respond(vec![batch], &[(0, ErrorCode::NONE, 0)]);
    assert!(script.outputs().is_empty(), "its offsets start again, too");
}

/// A sink of an application whose callback panics at the second report.
#[derive(Default)]
struct PanicsAtSecond(Mutex<usize>);

impl DeliverySink for PanicsAtSecond {
    fn deliver(&self, _: DeliveryBatch) {
        let reports = {
            let mut reports = self.0.lock();
            *reports += 1;
            *reports
        };
        assert!(reports < 2, "a callback panics");
    }
}

#[test]
fn panic_of_a_callback_keeps_the_reports_of_later_batches() {
    let sink = Arc::<PanicsAtSecond>::default();
    let shared = ProducerShared::new(settings(), sink, Rng::from_seed(1));
    let topic = shared.topic("t").0;
    let mut accumulator = None;
    topic.set_partitions(1, |new| accumulator = Some(Arc::clone(new)), |_| ());
    let accumulator = accumulator.expect("a partition");
    let batches: Vec<ReadyBatch> = (0..3)
        .map(|order| {
            shared.send(&topic, Instant::ZERO, 0, &Record::new().value("v").partition(0), None).unwrap();
            let open = accumulator.take(true).0.expect("a batch");
            ReadyBatch::seal(open, order, &shared.topic_settings().seal_options(), &accumulator).unwrap()
        })
        .collect();
    let delivered = Delivered { base_offset: Some(0), log_append_time: None };
    let reports = batches
        .into_iter()
        .filter_map(|batch| batch.into_written_report(delivered, PersistenceStatus::Persisted));
    let report = std::panic::AssertUnwindSafe(|| shared.report_all(reports));
    std::panic::catch_unwind(report).expect_err("it panics");
    assert_eq!(shared.queued_messages(), 1, "the room of two records is released");
    let lost = accumulator.take_lost();
    assert_eq!(
        lost.iter().map(PendingReports::status_when_lost).collect::<Vec<_>>(),
        [PersistenceStatus::NotPersisted]
    );
}
