//! The part against coordinators that the test plays, in virtual time.

mod calls;
mod ending;
mod errors;
mod nonsense;

use std::{pin::Pin, sync::Arc, task::Poll, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnResponse,
        add_partitions_to_txn::{AddPartitionsToTxnResponse, response},
        describe_transactions::{self, DescribeTransactionsResponse},
        end_txn::{EndTxnRequest, EndTxnResponse},
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        txn_offset_commit::{self, TxnOffsetCommitResponse},
    },
    primitive::Reader,
    vocabulary::TopicPartition,
};

use super::{
    Transactions,
    command::{ConsumerGroupMetadata, TransactionCommand, TransactionOffsets},
};
use crate::{
    completion::{Completion, Waiting, completion},
    connection::{
        Response,
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    contract::{
        broker::{BrokerKey, TransactionFeatures},
        metadata::Metadata,
        part::{Need, Needs, Part, RequestOwner, TransactionRequest},
        route::RoutedRequest,
    },
    error::{Error, ErrorKind},
    event::Event,
    machine::Instant,
    offsets::committed::GroupOffset,
    produce::{
        producer_id::ProducerIdentity,
        report::NoReports,
        settings::ProducerSettings,
        shared::ProducerShared,
        transaction::{
            error::{TransactionError, TransactionResult},
            state::TransactionState,
        },
    },
    rng::Rng,
};

const TIMEOUT: Duration = Duration::from_secs(60);
const FIRST: ProducerIdentity = ProducerIdentity { id: 7, epoch: 0 };

/// The part of a producer with `transactional.id=x`.
struct Script {
    now: Instant,
    part: Transactions,
    producer: Arc<ProducerShared>,
    events: Vec<Event>,
    requests: Vec<(RoutedRequest, TransactionRequest)>,
    /// The error that stopped the producer.
    stopped: Option<Error>,
}

impl Script {
    fn new() -> Self {
        let settings = ProducerSettings {
            transactional_id: Some("x".into()),
            transaction_timeout: TIMEOUT,
            ..ProducerSettings::default()
        };
        let producer = Arc::new(ProducerShared::new(settings, Arc::new(NoReports), Rng::from_seed(1)));
        let part = Transactions::new(Some(&producer), Duration::from_secs(30), &mut Rng::from_seed(2));
        let now = Instant::from_nanos(1_000_000_000);
        let part = part.expect("the producer is transactional");
        Self { now, part, producer, events: Vec::new(), requests: Vec::new(), stopped: None }
    }

    /// A producer with an ID and no transaction.
    fn ready() -> Self {
        let mut script = Self::new();
        let init = script.command(TransactionCommand::Init);
        script.respond_init(ErrorCode::NONE, FIRST);
        assert_eq!(taken(init), Ok(()));
        script.acknowledge();
        script
    }

    /// A producer with an open transaction.
    fn open() -> Self {
        let mut script = Self::ready();
        script.begin();
        script
    }

    /// A producer whose cluster has the newer protocol.
    fn newer() -> Self {
        let mut script = Self::ready();
        let features = TransactionFeatures { transaction_version: 2, epoch: 5, has_versions: true };
        script.part.handle_features(BrokerKey(1), features);
        script.begin();
        script
    }

    fn begin(&mut self) {
        let begun = self.command(TransactionCommand::Begin);
        assert_eq!(taken(begun), Ok(()));
    }

    fn acknowledge(&mut self) {
        self.part.handle_command(self.now, TransactionCommand::Acknowledge);
        self.advance();
    }

    fn command(
        &mut self,
        command: impl FnOnce(Completion<TransactionResult>) -> TransactionCommand,
    ) -> Waiting<TransactionResult> {
        let (done, waiting) = completion();
        self.part.handle_command(self.now, command(done));
        self.advance();
        waiting
    }

    fn send_offsets(&mut self, timeout: Duration) -> Waiting<TransactionResult> {
        let group = ConsumerGroupMetadata { group_id: "g".into(), ..Default::default() };
        let offsets = TransactionOffsets { offsets: vec![GroupOffset::new("in", 0, 5)], group, timeout };
        self.command(|done| TransactionCommand::SendOffsets(offsets, done))
    }

    /// Commits without messages in the queue.
    fn commit(&mut self) -> Waiting<TransactionResult> {
        self.command(TransactionCommand::Commit)
    }

    fn abort(&mut self) -> Waiting<TransactionResult> {
        self.command(TransactionCommand::Abort)
    }

    fn advance(&mut self) {
        self.part.advance(self.now, &Metadata::default());
        while let Some(need) = self.part.poll_need() {
            match need {
                Need::Request { request, owner: RequestOwner::Transaction(owner), .. } => {
                    self.requests.push((request, owner));
                }
                Need::Event(event) => self.events.push(event),
                Need::StopProducer(error) => self.stopped = Some(error),
                _ => {}
            }
        }
    }

    /// Lets time pass up to the next timeout of the part.
    fn wait(&mut self) -> Duration {
        let next = self.part.poll_timeout().expect("something is due").max(self.now);
        let waited = next - self.now;
        self.now = next;
        self.part.handle_timeout(self.now, None);
        self.advance();
        waited
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.part.handle_timeout(self.now, None);
        self.advance();
    }

    /// A sender checks whether partition 0 may be sent.
    fn sends(&mut self) -> bool {
        let shared = self.producer.transactions.clone().expect("it is transactional");
        let admitted = shared.admits(&mut 0, || TopicPartition::new("t", 0));
        if admitted {
            shared.note_batch();
        }
        self.advance();
        admitted
    }

    /// Registers partition 0, or sends to it with the newer protocol.
    fn register(&mut self) {
        if !self.sends() {
            self.respond_partitions(ErrorCode::NONE);
            assert!(self.sends());
        }
    }

    /// Takes the only request, which is of this API.
    fn request(&mut self, api: ApiKey) -> (RoutedRequest, TransactionRequest) {
        let sent: Vec<_> = self.requests.iter().map(|(request, _)| request.api.name()).collect();
        assert_eq!(sent, [api.name()]);
        self.requests.pop().expect("a request")
    }

    fn respond(&mut self, api: ApiKey, encode: impl Fn(i16, &mut Vec<u8>)) -> bool {
        let (request, owner) = self.request(api);
        let version = *request.versions.end();
        let mut bytes = Vec::new();
        encode(version, &mut bytes);
        let in_flight = InFlight {
            correlation_id: 1,
            api,
            version,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_response: true,
            queued_at: self.now,
            written_at: self.now,
            timeout: request.timeout,
        };
        let frame = Frame { len: bytes.len(), bytes };
        let lost =
            self.part.handle_response(self.now, owner, Ok(Response { request: in_flight, frame, body: 0 }));
        self.advance();
        lost
    }

    /// The only request, which is of this API, gets no response.
    fn lose(&mut self, api: ApiKey) {
        let (_, owner) = self.request(api);
        self.part.handle_response(self.now, owner, Err(Error::new(ErrorKind::Disconnected, "")));
        self.advance();
    }

    fn respond_init(&mut self, error_code: ErrorCode, identity: ProducerIdentity) -> bool {
        let (producer_id, producer_epoch) = (identity.id, identity.epoch);
        let response =
            InitProducerIdResponse { error_code, producer_id, producer_epoch, ..Default::default() };
        self.respond(ApiKey::InitProducerId, |version, out| response.encode(version, out).unwrap())
    }

    fn respond_partitions(&mut self, partition_error_code: ErrorCode) -> bool {
        let partition =
            response::ResultsByTopicV3AndBelowResultsByPartition { partition_index: 0, partition_error_code };
        let topic =
            response::ResultsByTopicV3AndBelow { name: "t".into(), results_by_partition: vec![partition] };
        let response =
            AddPartitionsToTxnResponse { results_by_topic_v3_and_below: vec![topic], ..Default::default() };
        self.respond(ApiKey::AddPartitionsToTxn, |version, out| response.encode(version, out).unwrap())
    }

    fn respond_added(&mut self, error_code: ErrorCode) -> bool {
        let response = AddOffsetsToTxnResponse { error_code, ..Default::default() };
        self.respond(ApiKey::AddOffsetsToTxn, |version, out| response.encode(version, out).unwrap())
    }

    fn respond_offsets(&mut self, error_code: ErrorCode) -> bool {
        use txn_offset_commit::response::{Partition, Topic};
        let partition = Partition { partition_index: 0, error_code };
        let topic = Topic { name: "in".into(), partitions: vec![partition], ..Topic::default() };
        let response = TxnOffsetCommitResponse { topics: vec![topic], ..Default::default() };
        self.respond(ApiKey::TxnOffsetCommit, |version, out| response.encode(version, out).unwrap())
    }

    fn respond_end(&mut self, error_code: ErrorCode, raised: Option<ProducerIdentity>) -> bool {
        let (producer_id, producer_epoch) = raised.map_or((-1, -1), |raised| (raised.id, raised.epoch));
        let response = EndTxnResponse { error_code, producer_id, producer_epoch, ..Default::default() };
        self.respond(ApiKey::EndTxn, |version, out| response.encode(version, out).unwrap())
    }

    /// Returns the identity that the waiting InitProducerId request states.
    fn respond_state(&mut self, error_code: ErrorCode, state: &str) {
        let state = describe_transactions::response::TransactionState {
            error_code,
            transactional_id: "x".to_owned(),
            transaction_state: state.to_owned(),
            ..Default::default()
        };
        let response = DescribeTransactionsResponse { transaction_states: vec![state], ..Default::default() };
        self.respond(ApiKey::DescribeTransactions, |version, out| response.encode(version, out).unwrap());
    }

    fn asked_identity(&self) -> ProducerIdentity {
        let (request, _) = self.requests.last().expect("a request");
        assert_eq!(request.api, ApiKey::InitProducerId);
        let version = *request.versions.end();
        let mut bytes = Vec::new();
        (request.encode)(version, &mut bytes).unwrap();
        let request = InitProducerIdRequest::decode(&mut Reader::new(&bytes), version).unwrap();
        ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch }
    }

    /// Returns the waiting EndTxn request and its versions.
    fn asked_end(&self) -> (EndTxnRequest, i16) {
        let (request, _) = self.requests.last().expect("a request");
        assert_eq!(request.api, ApiKey::EndTxn);
        let version = *request.versions.end();
        let mut bytes = Vec::new();
        (request.encode)(version, &mut bytes).unwrap();
        (EndTxnRequest::decode(&mut Reader::new(&bytes), version).unwrap(), version)
    }

    fn state(&self) -> TransactionState {
        assert_eq!(
            self.part.state,
            self.producer.transactions.as_ref().expect("it is transactional").state()
        );
        self.part.state
    }

    fn identity(&self) -> Option<ProducerIdentity> {
        self.producer.identity.get()
    }
}

fn epoch(epoch: i16) -> ProducerIdentity {
    ProducerIdentity { epoch, ..FIRST }
}

/// Returns the result of a call that has ended.
fn taken(waiting: Waiting<TransactionResult>) -> TransactionResult {
    waiting.try_take().expect("the call is over")
}

fn is_waiting(waiting: &mut Waiting<TransactionResult>) -> bool {
    use std::{
        future::Future,
        task::{Context, Waker},
    };
    matches!(Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}
