//! Administrative calls: what is asked of the cluster as a whole.
//!
//! ```text
//!  AdminCall ──► AdminCalls ── request ──► controller or any broker ──► answer ──► per topic: done, or again later
//!                    └── offsets ──► one request per leader ──► merged
//! ```
//!
//! A call is an operation: it knows its request, judges the answer, and may want to be sent again where a topic's answer
//! says that the controller moved or that the broker was busy. [`topics`] has the operations on topics, [`describe`]
//! those that only look, [`configs`] those on configurations, [`records`] what only a partition's leader can do.

pub mod configs;
pub mod describe;
pub mod records;
pub mod topics;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{
    backoff::Backoff,
    broker::connection::Response,
    cluster::{
        Route, RoutedRequest,
        metadata::{Metadata, TopicError},
    },
    completion::Completion,
    error::{Error, ErrorKind},
    fetch::offsets::{
        OffsetAnswers, OffsetLookups, OffsetQuery, TOPIC_PATIENCE, topic_error, unknown_partition,
    },
    machine::{Instant, earliest},
    mail::EncodeBody,
    rng::Rng,
};

/// An administrative call.
#[derive(Debug)]
pub struct AdminCall(Call);

enum Call {
    Operation { operation: Box<dyn Operation>, timeout: Duration, how: How },
    ListOffsets(OffsetQuery, Completion<OffsetAnswers>),
}

/// What a call may say besides what it wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// The broker that is asked, in place of the one that the call would go to.
    pub broker: Option<i32>,
    /// How long the broker may take for what is wanted; without it, as long as the request.
    pub operation_timeout: Option<Duration>,
}

/// The calls under way.
#[derive(Debug)]
pub struct AdminCalls {
    calls: BTreeMap<u64, Running>,
    next_call: u64,
    offsets: OffsetLookups,
    request_timeout: Duration,
    retry_backoff: Duration,
    retry_backoff_max: Duration,
    outputs: VecDeque<AdminOutput>,
}

/// What the calls want from the cluster's owner.
#[derive(Debug)]
pub enum AdminOutput {
    /// Something needs newer metadata.
    RefreshMetadata,
    /// A broker refused what the metadata led to: newer ones are needed, after a back-off that all share.
    RefreshMetadataSoon,
    /// A request; its number comes back with the answer.
    Request(u64, Route, RoutedRequest),
}

struct Running {
    operation: Box<dyn Operation>,
    how: How,
    since: Instant,
    deadline: Instant,
    state: State,
    last_error: Option<Error>,
    backoff: Backoff,
    /// Answers that made no sense.
    bad_answers: u32,
}

/// So many answers of one call may make no sense before it fails: another broker may do better, and one that never does is
/// no reason to wait for the call's deadline.
const BAD_ANSWERS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due,
    /// To be asked once the partition's leader is known.
    AfterMetadata,
    Asked,
    Later(Instant),
}

/// One kind of call: what to send, and what to make of the answer.
pub(crate) trait Operation: Send {
    /// The API.
    fn api(&self) -> ApiKey;
    /// The versions of it that can say what is wanted.
    fn versions(&self) -> RangeInclusive<i16> {
        self.api().versions()
    }
    /// Who is asked.
    fn route(&self) -> Route;
    /// The partition whose leader is asked instead.
    fn partition(&self) -> Option<(&Arc<str>, i32)> {
        None
    }
    /// What is sent; the broker may take `timeout`.
    fn encode(&self, timeout: Duration) -> EncodeBody;
    /// An answer came, in this version.
    fn handle_answer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error>;
    /// Tells whoever waits. With an error, what has no answer of its own yet failed with it.
    fn finish(self: Box<Self>, error: Option<Error>);
}

/// What is to be done after an answer.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Everything has its answer.
    Done,
    /// Some of it is worth another try, because of this.
    Again(Error),
}

impl AdminCall {
    pub(crate) fn operation(operation: impl Operation + 'static, timeout: Duration) -> Self {
        Self(Call::Operation { operation: Box::new(operation), timeout, how: How::default() })
    }

    /// The same call, made this way. Questions about offsets go to the partitions' leaders in any case.
    #[must_use]
    pub fn done(mut self, wanted: How) -> Self {
        if let Call::Operation { how, .. } = &mut self.0 {
            *how = wanted;
        }
        self
    }

    /// Offsets of partitions, asked from their leaders.
    pub const fn list_offsets(query: OffsetQuery, done: Completion<OffsetAnswers>) -> Self {
        Self(Call::ListOffsets(query, done))
    }
}

impl AdminCalls {
    /// No calls yet.
    pub(crate) const fn new(
        request_timeout: Duration,
        retry_backoff: Duration,
        retry_backoff_max: Duration,
    ) -> Self {
        Self {
            calls: BTreeMap::new(),
            next_call: 0,
            offsets: OffsetLookups::new(0, request_timeout, retry_backoff),
            request_timeout,
            retry_backoff,
            retry_backoff_max,
            outputs: VecDeque::new(),
        }
    }

    /// Begins a call.
    pub(crate) fn start(&mut self, now: Instant, call: AdminCall) {
        match call.0 {
            Call::Operation { operation, timeout, how } => {
                let running = Running {
                    operation,
                    how,
                    since: now,
                    deadline: now + timeout,
                    state: State::Due,
                    last_error: None,
                    backoff: Backoff::new(self.retry_backoff, self.retry_backoff_max),
                    bad_answers: 0,
                };
                self.calls.insert(self.next_call, running);
                self.next_call += 1;
            }
            Call::ListOffsets(query, done) => self.offsets.start_query(now, &query, done),
        }
    }

    /// Sends what is due.
    pub(crate) fn advance(&mut self, now: Instant, metadata: &Metadata) {
        for (number, call) in &mut self.calls {
            if call.state != State::Due {
                continue;
            }
            let operation = &call.operation;
            let leader = operation.partition().map(|(topic, partition)| metadata.leader(topic, partition));
            if leader == Some(None) {
                call.state = State::AfterMetadata;
                self.outputs.push_back(AdminOutput::RefreshMetadata);
                continue;
            }
            call.state = State::Asked;
            let timeout = self.request_timeout.min(call.deadline - now);
            let request = RoutedRequest {
                api: operation.api(),
                versions: operation.versions(),
                timeout,
                encode: operation.encode(call.how.operation_timeout.unwrap_or(timeout)),
            };
            let leader = leader.flatten().map(|(leader, _)| leader);
            let route = leader.or(call.how.broker).map_or_else(|| operation.route(), Route::Node);
            if route == Route::Controller && !metadata.nodes.contains_key(&metadata.controller_id) {
                self.outputs.push_back(AdminOutput::RefreshMetadata);
            }
            self.outputs.push_back(AdminOutput::Request(number * 2, route, request));
        }
        self.offsets.advance(now, metadata);
        while let Some((number, leader, request)) = self.offsets.poll_request() {
            self.outputs.push_back(AdminOutput::Request(number * 2 + 1, Route::Node(leader), request));
        }
        if self.offsets.take_wants_metadata() {
            self.outputs.push_back(AdminOutput::RefreshMetadata);
        }
        if self.offsets.take_wants_metadata_soon() {
            self.outputs.push_back(AdminOutput::RefreshMetadataSoon);
        }
    }

    /// What the cluster's owner has to do next.
    pub(crate) fn poll_output(&mut self) -> Option<AdminOutput> {
        self.outputs.pop_front()
    }

    /// The topics whose leaders are needed.
    pub(crate) fn wanted_topics(&self, names: &mut BTreeSet<Arc<str>>) {
        self.offsets.wanted_topics(names);
        names.extend(self.calls.values().filter_map(|call| Some(Arc::clone(call.operation.partition()?.0))));
    }

    /// New metadata came; true if some leader is unknown.
    pub(crate) fn handle_metadata(
        &mut self,
        now: Instant,
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> bool {
        let mut incomplete = self.offsets.handle_metadata(now, metadata, errors);
        let mut failed = Vec::new();
        for (number, call) in &mut self.calls {
            let Some((topic, partition)) = call.operation.partition() else { continue };
            if call.state != State::AfterMetadata {
                continue;
            }
            let count = metadata.topics.get(topic).map_or(0, |topic| topic.partitions.len());
            if metadata.leader(topic, partition).is_some() {
                call.state = State::Due;
            } else if let Some(error) = errors.iter().find(|error| error.name == *topic) {
                let is_unknown = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                let is_new = now - call.since < TOPIC_PATIENCE;
                if if is_unknown { is_new } else { error.code.is_retriable() } {
                    call.last_error = Some(topic_error(error));
                    incomplete = true;
                } else {
                    failed.push((*number, topic_error(error)));
                }
            } else if count > 0 && !(0..count).contains(&usize::try_from(partition).unwrap_or(usize::MAX)) {
                failed.push((*number, unknown_partition(topic, partition, count)));
            } else {
                incomplete = true;
            }
        }
        for (number, error) in failed {
            self.finish(number, Some(error));
        }
        incomplete
    }

    /// An answer to a request, or why there is none.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<Response, Error>,
        rng: &mut Rng,
    ) {
        if number % 2 == 1 {
            return self.offsets.handle_answer(now, number / 2, result);
        }
        let Some(call) = self.calls.get_mut(&(number / 2)) else { return };
        let api = call.operation.api().name();
        let verdict = result.and_then(|response| {
            call.operation
                .handle_answer(response.body(), response.request.version)
                .map_err(|e| e.with_api(api))
        });
        let error = match verdict {
            Ok(Verdict::Done) => return self.finish(number / 2, None),
            Ok(Verdict::Again(error)) => error,
            Err(error) => {
                let is_bad = error.kind() == ErrorKind::BadResponse;
                call.bad_answers += u32::from(is_bad);
                if !error.is_retriable() && (!is_bad || call.bad_answers >= BAD_ANSWERS) {
                    return self.finish(number / 2, Some(error));
                }
                error
            }
        };
        call.last_error = Some(error);
        call.state = State::Later(now + call.backoff.next(rng));
        self.outputs.push_back(AdminOutput::RefreshMetadata);
    }

    /// Fires what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.offsets.handle_timeout(now);
        let mut late = Vec::new();
        for (number, call) in &mut self.calls {
            if call.deadline <= now {
                late.push(*number);
            } else if matches!(call.state, State::Later(at) if at <= now) {
                call.state = State::Due;
            }
        }
        for number in late {
            let call = &mut self.calls.get_mut(&number);
            let last = call.as_mut().and_then(|call| call.last_error.take());
            let error = last.unwrap_or_else(|| Error::new(ErrorKind::TimedOut, "no broker answered in time"));
            self.finish(number, Some(error));
        }
    }

    /// When to call [`AdminCalls::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.values().fold(self.offsets.poll_timeout(), |deadline, call| {
            let later = match call.state {
                State::Later(at) => Some(at),
                _ => None,
            };
            earliest(deadline, earliest(later, Some(call.deadline)))
        })
    }

    /// The client closes: whoever waits is told.
    pub(crate) fn close(&mut self) {
        for (_, call) in std::mem::take(&mut self.calls) {
            call.operation.finish(Some(Error::new(ErrorKind::Closed, "")));
        }
        self.offsets.close();
    }

    fn finish(&mut self, number: u64, error: Option<Error>) {
        if let Some(call) = self.calls.remove(&number) {
            let api = call.operation.api().name();
            call.operation.finish(error.map(|error| error.with_api(api)));
        }
    }
}

/// The error of an answer that can't be decoded.
pub(crate) fn undecodable(error: &ottla_protocol::primitive::DecodeError) -> Error {
    Error::new(ErrorKind::BadResponse, error.to_string())
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operation { operation, .. } => operation.api().name(),
            Self::ListOffsets(..) => "ListOffsets",
        })
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.operation.api().name(), self.state)
    }
}

#[cfg(test)]
mod tests {
    use ottla_protocol::{
        generated::{
            create_topics::{CreateTopicsRequest, CreateTopicsResponse, response::Topic},
            delete_records::{DeleteRecordsResponse, response as deleted},
            list_offsets::{
                ListOffsetsRequest, ListOffsetsResponse,
                response::{Partition as ListedPartition, Topic as ListedTopic},
            },
        },
        primitive::Reader,
    };

    use super::{
        topics::{NewTopic, TopicResults, create_topics},
        *,
    };
    use crate::{
        broker::{
            frame::Frame,
            inflight::{InFlight, Payload, RequestTag},
        },
        cluster::metadata::{Node, PartitionMetadata, TopicMetadata},
        completion::{Waiting, completion},
        fetch::offsets::OffsetSpec,
    };

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn calls() -> AdminCalls {
        AdminCalls::new(Duration::from_secs(60), Duration::from_millis(100), Duration::from_secs(1))
    }

    /// Two brokers; topic `t` has partition 0 at broker 1 and partitions 1 and 2 at broker 2.
    fn metadata() -> Metadata {
        let node = |host: &str| Node { host: host.into(), port: 9092, rack: None };
        let partition =
            |leader| PartitionMetadata { leader, leader_epoch: 3, ..PartitionMetadata::default() };
        let topic = TopicMetadata { partitions: [1, 2, 2].map(partition).into(), ..TopicMetadata::default() };
        Metadata {
            controller_id: 1,
            nodes: [(1, node("a")), (2, node("b"))].into(),
            topics: [(Arc::from("t"), topic)].into(),
            ..Metadata::default()
        }
    }

    fn response(api: ApiKey, version: i16, body: Vec<u8>) -> Result<Response, Error> {
        let request = InFlight {
            correlation_id: 1,
            api,
            version,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_answer: true,
            queued_at: START,
            written_at: START,
            timeout: Duration::from_secs(60),
        };
        Ok(Response { request, frame: Frame { len: body.len(), bytes: body }, body: 0 })
    }

    /// The requests that are to be sent now, encoded in `version`.
    fn requests(calls: &mut AdminCalls, now: Instant, version: i16) -> Vec<(u64, Route, Vec<u8>)> {
        calls.advance(now, &metadata());
        let mut requests = Vec::new();
        while let Some(output) = calls.poll_output() {
            if let AdminOutput::Request(number, route, request) = output {
                let mut bytes = Vec::new();
                (request.encode)(version, &mut bytes).unwrap();
                requests.push((number, route, bytes));
            }
        }
        requests
    }

    fn answer(calls: &mut AdminCalls, now: Instant, number: u64, result: Result<Response, Error>) {
        calls.handle_answer(now, number, result, &mut Rng::from_seed(1));
    }

    fn created(results: &[(&str, ErrorCode)]) -> Result<Response, Error> {
        let topic = |(name, error_code): &(&str, ErrorCode)| Topic {
            name: (*name).to_owned(),
            error_code: *error_code,
            ..Topic::default()
        };
        let topics = results.iter().map(topic).collect();
        let mut body = Vec::new();
        CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }.encode(5, &mut body).unwrap();
        response(ApiKey::CreateTopics, 5, body)
    }

    fn create(calls: &mut AdminCalls, names: &[&str], timeout: Duration) -> Waiting<TopicResults> {
        let (done, waiting) = completion();
        let topics = names.iter().map(|name| NewTopic::new(*name, 1, 1)).collect();
        calls.start(START, create_topics(topics, false, timeout, done));
        waiting
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_asked_for_again_a_few_times_with_growing_pauses() {
        let mut calls = calls();
        let waiting = create(&mut calls, &["a"], Duration::from_secs(10));
        let mut now = START;
        let mut pauses = Vec::new();
        for attempt in 1..=BAD_ANSWERS {
            let sent = requests(&mut calls, now, 5);
            assert_eq!(sent.len(), 1, "attempt {attempt}");
            answer(&mut calls, now, sent[0].0, response(ApiKey::CreateTopics, 5, vec![1, 2, 3]));
            if attempt < BAD_ANSWERS {
                let next = calls.poll_timeout().unwrap();
                pauses.push((next - now).as_millis());
                now = next;
                calls.handle_timeout(now);
            }
        }
        assert!(pauses.is_sorted() && pauses[0] >= 80 && pauses[2] >= 2 * pauses[0], "{pauses:?}");
        let results = waiting.try_take().unwrap();
        assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::BadResponse);
    }

    #[test]
    fn what_the_controller_did_not_do_is_asked_of_the_next_one() {
        let mut calls = calls();
        let waiting = create(&mut calls, &["a", "b"], Duration::from_secs(10));
        let sent = requests(&mut calls, START, 5);
        assert_eq!(sent[0].1, Route::Controller);
        answer(
            &mut calls,
            START,
            sent[0].0,
            created(&[("a", ErrorCode::NONE), ("b", ErrorCode::NOT_CONTROLLER)]),
        );
        assert!(matches!(calls.poll_output(), Some(AdminOutput::RefreshMetadata)));
        assert!(requests(&mut calls, START, 5).is_empty(), "not without a back-off");
        let later = calls.poll_timeout().unwrap();
        calls.handle_timeout(later);
        let sent = requests(&mut calls, later, 5);
        let again = CreateTopicsRequest::decode(&mut Reader::new(&sent[0].2), 5).unwrap();
        assert_eq!(again.topics.iter().map(|topic| &*topic.name).collect::<Vec<_>>(), ["b"]);
        answer(&mut calls, later, sent[0].0, created(&[("b", ErrorCode::INVALID_PARTITIONS)]));
        let results = waiting.try_take().unwrap();
        assert_eq!(results[0], ("a".to_owned(), Ok(())));
        assert_eq!(
            results[1].1.as_ref().unwrap_err().kind(),
            ErrorKind::Broker(ErrorCode::INVALID_PARTITIONS)
        );
    }

    #[test]
    fn a_call_ends_at_its_deadline_with_what_went_wrong_last() {
        let mut calls = calls();
        let waiting = create(&mut calls, &["a"], Duration::from_secs(1));
        let sent = requests(&mut calls, START, 5);
        answer(&mut calls, START, sent[0].0, Err(Error::new(ErrorKind::Disconnected, "gone")));
        calls.handle_timeout(START + Duration::from_secs(1));
        let results = waiting.try_take().unwrap();
        assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::Disconnected);
        assert_eq!(calls.poll_timeout(), None);
    }

    #[test]
    fn closing_answers_whoever_waits() {
        let mut calls = calls();
        let waiting = create(&mut calls, &["a"], Duration::from_secs(1));
        calls.close();
        assert_eq!(waiting.try_take().unwrap()[0].1.as_ref().unwrap_err().kind(), ErrorKind::Closed);
    }

    #[test]
    fn a_call_can_be_made_to_a_broker_of_ones_own_choice_with_a_time_of_its_own() {
        let mut calls = calls();
        let (done, waiting) = completion();
        let how = How { broker: Some(2), operation_timeout: Some(Duration::from_secs(3)) };
        let topics = vec![NewTopic::new("a", 1, 1)];
        calls.start(START, create_topics(topics, true, Duration::from_secs(9), done).done(how));
        let sent = requests(&mut calls, START, 5);
        assert_eq!(sent[0].1, Route::Node(2));
        let asked = CreateTopicsRequest::decode(&mut Reader::new(&sent[0].2), 5).unwrap();
        assert_eq!((asked.timeout_ms, asked.validate_only), (3000, true));
        drop(waiting);
    }

    fn deleted(error_code: ErrorCode, low_watermark: i64) -> Result<Response, Error> {
        let partitions = vec![deleted::Partition { partition_index: 1, low_watermark, error_code }];
        let topics = vec![deleted::Topic { name: "t".into(), partitions }];
        let mut body = Vec::new();
        DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }.encode(2, &mut body).unwrap();
        response(ApiKey::DeleteRecords, 2, body)
    }

    #[test]
    fn records_are_deleted_at_the_partitions_leader_also_after_it_moved() {
        let mut calls = calls();
        let (done, waiting) = completion();
        calls.start(START, records::delete_records(Arc::from("t"), 1, 7, Duration::from_secs(9), done));
        let sent = requests(&mut calls, START, 2);
        assert_eq!(sent[0].1, Route::Node(2));
        answer(&mut calls, START, sent[0].0, deleted(ErrorCode::NOT_LEADER_OR_FOLLOWER, -1));
        let later = START + Duration::from_secs(1);
        calls.handle_timeout(later);
        let sent = requests(&mut calls, later, 2);
        assert_eq!(sent.len(), 1);
        answer(&mut calls, later, sent[0].0, deleted(ErrorCode::NONE, 7));
        assert_eq!(waiting.try_take().unwrap().unwrap(), 7);
    }

    #[test]
    fn records_of_a_partition_that_does_not_exist_are_not_asked_for_until_the_deadline() {
        let mut calls = calls();
        let (done, waiting) = completion();
        calls.start(START, records::delete_records(Arc::from("t"), 3, 7, Duration::from_secs(9), done));
        assert!(requests(&mut calls, START, 2).is_empty());
        assert!(!calls.handle_metadata(START, &metadata(), &[]));
        assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::UnknownPartition);
    }

    #[test]
    fn offsets_that_are_asked_with_different_isolation_go_into_different_requests() {
        let mut calls = calls();
        let mut waiting = Vec::new();
        for read_committed in [false, true] {
            let (done, answers) = completion();
            let questions = vec![(Arc::from("t"), 0, OffsetSpec::Latest)];
            let query = OffsetQuery { questions, timeout: Duration::from_secs(5), read_committed };
            calls.start(START, AdminCall::list_offsets(query, done));
            waiting.push(answers);
        }
        let sent = requests(&mut calls, START, 7);
        let isolation = sent.iter().map(|(_, _, bytes)| {
            ListOffsetsRequest::decode(&mut Reader::new(bytes), 7).unwrap().isolation_level
        });
        assert_eq!(isolation.collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn offsets_take_one_request_per_leader_and_question_and_come_back_in_order() {
        let mut calls = calls();
        let (done, waiting) = completion();
        let question = |partition, spec| (Arc::from("t"), partition, spec);
        let query = OffsetQuery {
            questions: vec![
                question(2, OffsetSpec::Latest),
                question(0, OffsetSpec::Latest),
                question(1, OffsetSpec::Latest),
                question(2, OffsetSpec::Earliest),
                question(7, OffsetSpec::Latest),
            ],
            timeout: Duration::from_secs(5),
            read_committed: false,
        };
        calls.start(START, AdminCall::list_offsets(query, done));
        let sent = requests(&mut calls, START, 7);
        assert_eq!(
            sent.iter().map(|(_, route, _)| *route).collect::<Vec<_>>(),
            [Route::Node(1), Route::Node(2), Route::Node(2)]
        );
        for (number, _, bytes) in sent {
            let asked = ListOffsetsRequest::decode(&mut Reader::new(&bytes), 7).unwrap();
            let partitions = asked.topics[0].partitions.iter().map(|wanted| ListedPartition {
                partition_index: wanted.partition_index,
                offset: if wanted.timestamp == -1 { 100 + i64::from(wanted.partition_index) } else { 5 },
                ..ListedPartition::default()
            });
            let topics = vec![ListedTopic { name: "t".into(), partitions: partitions.collect() }];
            let mut body = Vec::new();
            ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }.encode(7, &mut body).unwrap();
            answer(&mut calls, START, number, response(ApiKey::ListOffsets, 7, body));
        }
        let answers = waiting.try_take().unwrap();
        let offsets: Vec<i64> =
            answers.iter().take(4).map(|answer| answer.as_ref().unwrap().offset).collect();
        assert_eq!(offsets, [102, 100, 101, 5]);
        assert_eq!(answers[4].as_ref().unwrap_err().kind(), ErrorKind::UnknownPartition);
    }

    #[test]
    fn offsets_are_asked_again_where_the_leader_moved() {
        let mut calls = calls();
        let (done, waiting) = completion();
        let query = OffsetQuery {
            questions: vec![(Arc::from("t"), 0, OffsetSpec::Latest)],
            timeout: Duration::from_secs(5),
            read_committed: false,
        };
        calls.start(START, AdminCall::list_offsets(query, done));
        let mut now = START;
        for error_code in [ErrorCode::NOT_LEADER_OR_FOLLOWER, ErrorCode::NONE] {
            let sent = requests(&mut calls, now, 7);
            let listed = ListedPartition { error_code, offset: 9, ..ListedPartition::default() };
            let topics = vec![ListedTopic { name: "t".into(), partitions: vec![listed] }];
            let mut body = Vec::new();
            ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }.encode(7, &mut body).unwrap();
            answer(&mut calls, now, sent[0].0, response(ApiKey::ListOffsets, 7, body));
            now += Duration::from_millis(100);
            calls.handle_timeout(now);
            calls.handle_metadata(now, &metadata(), &[]);
        }
        assert_eq!(waiting.try_take().unwrap()[0].as_ref().unwrap().offset, 9);
    }
}
