//! Clients whose cluster actor talks to brokers that a test plays.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    compress::{Compression, decompress},
    generated::{
        get_telemetry_subscriptions::{GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse},
        metadata::MetadataResponse,
        push_telemetry::{PushTelemetryRequest, PushTelemetryResponse},
    },
    primitive::{EncodeError, Reader},
};
use ottla_sorted::SortedMap;

use super::*;
use crate::{
    cluster::{
        ClusterCore, ClusterOutput, ClusterSettings,
        command::{Command, CommandQueue},
    },
    completion::completion,
    connection::{
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    contract::broker::BrokerKey,
    event::EventQueue,
    fetch::{settings::ConsumerSettings, shared::ConsumerShared},
    message::{ClusterRequest, ConnectionReport, ToBroker, ToCluster},
    stats::BrokerStatistics,
    telemetry::settings::WallClock,
    turns::Turns,
    wake::WakeHandle,
};

const INTERVAL: Duration = Duration::from_secs(10);
const INSTANCE: Uuid = Uuid([7; 16]);

fn settings() -> TelemetrySettings {
    TelemetrySettings {
        labels: vec![("client_rack", "r".to_owned())],
        scope: ("ottla".to_owned(), "1".to_owned()),
        request_timeout: Duration::from_secs(60),
        wall_clock: WallClock::new(Instant::as_nanos),
        application: Default::default(),
    }
}

/// Returns the requests that telemetry sends.
pub(super) fn sample_requests() -> Vec<RoutedRequest> {
    let mut telemetry = Telemetry::new(settings(), ClientKind::Producer, Rng::from_seed(1));
    let now = Instant::from_nanos(1_000_000_000);
    let mut requests = Vec::new();
    let mut take = |telemetry: &mut Telemetry| {
        telemetry.carry_out_steps();
        while let Some(need) = telemetry.poll_need() {
            if let Need::Request { request, .. } = need {
                requests.push(request);
            }
        }
    };
    telemetry.handle_broker(now);
    take(&mut telemetry);
    let subscription = Subscription::new(&asked_for(&["*"]), ClientKind::Producer, &[]);
    let _ = telemetry.exchange.handle_subscription(now, Ok(subscription));
    telemetry.instance_id = Some(INSTANCE);
    telemetry.exchange.handle_timeout(now + 2 * INTERVAL);
    telemetry.handle_snapshot(now + 2 * INTERVAL, &Statistics::default());
    take(&mut telemetry);
    requests
}

fn asked_for(metrics: &[&str]) -> GetTelemetrySubscriptionsResponse {
    GetTelemetrySubscriptionsResponse {
        client_instance_id: INSTANCE,
        subscription_id: 42,
        accepted_compression_types: vec![4, 3, 1, 2],
        push_interval_ms: i32::try_from(INTERVAL.as_millis()).unwrap(),
        telemetry_max_bytes: 1 << 20,
        delta_temporality: true,
        requested_metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

/// A consumer's cluster actor with a bootstrap server, which responds at once unless a test takes that over.
struct Script {
    now: Instant,
    core: ClusterCore,
    commands: Arc<CommandQueue>,
    events: Arc<EventQueue>,
    subscription: GetTelemetrySubscriptionsResponse,
    push_code: ErrorCode,
    /// Pushes get no response.
    is_silent: bool,
    /// The statistics that broker actors add.
    connects: i64,
    questions: Vec<(Instant, GetTelemetrySubscriptionsRequest)>,
    pushes: Vec<(Instant, PushTelemetryRequest)>,
    /// Requests of other APIs.
    others: SortedMap<&'static str, usize>,
    unanswered: Vec<(BrokerKey, ClusterRequest)>,
    first: Option<BrokerKey>,
    is_done: bool,
}

impl Script {
    fn new(telemetry: Option<TelemetrySettings>) -> Self {
        let (commands, reader) = CommandQueue::new(WakeHandle::noop());
        let events = Arc::new(EventQueue::default());
        let settings = ClusterSettings {
            bootstrap: vec![("seed".into(), 9092)],
            refresh_interval: None,
            rebootstrap_after: None,
            checks_cluster: false,
            telemetry,
            ..ClusterSettings::default()
        };
        let consumer = Arc::new(ConsumerShared::new(ConsumerSettings::default()));
        let reported = Arc::clone(&events);
        let core = ClusterCore::new(settings, None, Some(consumer), reader, reported, Rng::from_seed(2));
        let mut script = Self {
            now: Instant::from_nanos(1_000_000_000),
            core,
            commands,
            events,
            subscription: asked_for(&["org.apache.kafka.consumer.connection."]),
            push_code: ErrorCode::NONE,
            is_silent: false,
            connects: 0,
            questions: Vec::new(),
            pushes: Vec::new(),
            others: SortedMap::new(),
            unanswered: Vec::new(),
            first: None,
            is_done: false,
        };
        script.core.handle_timeout(script.now);
        script.settle();
        script
    }

    /// A client whose broker takes metrics.
    fn offered() -> Self {
        let mut script = Self::new(Some(settings()));
        script.report(ConnectionReport::OffersTelemetry);
        script
    }

    fn broker(&self) -> BrokerKey {
        self.first.expect("the client connects at its start")
    }

    fn report(&mut self, report: ConnectionReport) {
        self.core.handle_message(self.now, self.broker(), ToCluster::Connection(report));
        self.settle();
    }

    fn command(&mut self, command: Command) {
        self.commands.push(command);
        self.core.handle_wake(self.now);
        self.settle();
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = Turns::default();
        while let Some(next) = self.core.poll_timeout().filter(|next| *next <= until) {
            turns.take(next.max(self.now), 100);
            self.now = self.now.max(next);
            self.core.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    fn settle(&mut self) {
        let mut turns = Turns::default();
        loop {
            turns.take(self.now, 10_000);
            let Some(output) = self.core.poll_output() else {
                // A complete snapshot comes back as a command.
                if self.commands.is_empty() {
                    return;
                }
                self.core.handle_wake(self.now);
                continue;
            };
            match output {
                ClusterOutput::StartBroker { key, .. } => {
                    self.first.get_or_insert(key);
                    self.core.handle_message(self.now, key, ToCluster::Connection(ConnectionReport::Up));
                }
                ClusterOutput::ToBroker(key, ToBroker::Request(request)) => self.answer(key, request),
                ClusterOutput::ToBroker(_, ToBroker::Statistics(gather, _)) => gather.add(|statistics| {
                    let mut broker = BrokerStatistics { nodeid: 1, ..BrokerStatistics::default() };
                    broker.connects = self.connects;
                    statistics.brokers.push(broker);
                }),
                ClusterOutput::ToBroker(key, ToBroker::Close) => self.core.handle_broker_done(key),
                ClusterOutput::Done => self.is_done = true,
                ClusterOutput::ToBroker(..) => {}
            }
        }
    }

    fn answer(&mut self, key: BrokerKey, request: ClusterRequest) {
        let mut body = Vec::new();
        (request.encode)(*request.versions.end(), &mut body).unwrap();
        let mut reader = Reader::new(&body);
        match request.api {
            ApiKey::Metadata => {
                let response = MetadataResponse::default();
                self.respond(key, &request, |version, out| response.encode(version, out));
            }
            ApiKey::GetTelemetrySubscriptions => {
                let question = GetTelemetrySubscriptionsRequest::decode(&mut reader, 0).unwrap();
                self.questions.push((self.now, question));
                let response = self.subscription.clone();
                self.respond(key, &request, |version, out| response.encode(version, out));
            }
            ApiKey::PushTelemetry => {
                let push = PushTelemetryRequest::decode(&mut reader, 0).unwrap();
                self.pushes.push((self.now, push));
                if self.is_silent {
                    return self.unanswered.push((key, request));
                }
                let response = PushTelemetryResponse { error_code: self.push_code, ..Default::default() };
                self.respond(key, &request, |version, out| response.encode(version, out));
            }
            other => *self.others.entry(other.name()).or_default() += 1,
        }
    }

    fn respond(
        &mut self,
        key: BrokerKey,
        request: &ClusterRequest,
        encode: impl FnOnce(i16, &mut Vec<u8>) -> Result<(), EncodeError>,
    ) {
        let version = *request.versions.end();
        let mut bytes = Vec::new();
        encode(version, &mut bytes).unwrap();
        let in_flight = InFlight {
            correlation_id: 1,
            api: request.api,
            version,
            tag: RequestTag::Cluster(request.token),
            payload: Payload::Bytes(Vec::new()),
            expects_response: true,
            queued_at: self.now,
            written_at: self.now,
            timeout: request.timeout,
        };
        let frame = Frame { len: bytes.len(), bytes };
        let result = Ok(Response { request: in_flight, frame, body: 0 });
        self.core.handle_message(self.now, key, ToCluster::Response { token: request.token, result });
    }

    /// The connection breaks before the response to the last push.
    fn lose_push(&mut self) {
        let (key, request) = self.unanswered.pop().expect("a push");
        let error = Error::new(ErrorKind::Disconnected, "");
        let result = Err(error);
        self.core.handle_message(self.now, key, ToCluster::Response { token: request.token, result });
        self.settle();
    }

    /// The decompressed metrics of a push.
    fn metrics(&self, index: usize) -> Vec<u8> {
        let push = &self.pushes[index].1;
        let codec = Compression::from_id(push.compression_type.cast_unsigned()).unwrap();
        let mut plain = Vec::new();
        if !push.metrics.is_empty() {
            decompress(codec, &push.metrics, 1 << 20, &mut plain).unwrap();
        }
        plain
    }

    /// The value of `connection.creation.total` in a push.
    fn created(&self, index: usize) -> i64 {
        let metrics = self.metrics(index);
        let name = b"connection.creation.total";
        let at = metrics.windows(name.len()).position(|window| window == name).expect("it is pushed");
        // Tag 0x31 (as_int) follows the two times of the point.
        let rest = &metrics[at + name.len()..];
        let value = rest.iter().position(|byte| *byte == 0x31).expect("an integer");
        i64::from_le_bytes(rest[value + 1..value + 9].try_into().unwrap())
    }
}

#[test]
fn client_sends_nothing_and_has_no_timer_if_brokers_take_no_metrics() {
    let mut script = Script::new(Some(settings()));
    script.run_for(Duration::from_secs(1));
    assert_eq!(script.core.poll_timeout(), None);
    let mut without = Script::new(None);
    without.run_for(Duration::from_secs(1));
    for script in [&mut script, &mut without] {
        script.run_for(Duration::from_secs(86_400));
        assert!(script.questions.is_empty() && script.pushes.is_empty() && script.others.is_empty());
        script.command(Command::Close { timeout: INTERVAL });
        assert!(script.is_done, "closing waits for nothing");
    }
}

#[test]
fn client_without_telemetry_ignores_brokers_that_take_metrics() {
    let mut script = Script::new(None);
    script.report(ConnectionReport::OffersTelemetry);
    script.run_for(Duration::from_secs(86_400));
    assert!(script.questions.is_empty());
}

#[test]
fn metrics_are_pushed_at_the_interval_and_when_the_client_closes() {
    let mut script = Script::offered();
    assert_eq!(script.questions[0].1.client_instance_id, Uuid::ZERO);
    script.connects = 3;
    script.run_for(15 * INTERVAL / 10);
    script.connects = 5;
    script.run_for(3 * INTERVAL);
    script.connects = 6;
    assert!((4..=5).contains(&script.pushes.len()), "{}", script.pushes.len());
    let created: Vec<i64> = (0..script.pushes.len()).map(|index| script.created(index)).collect();
    assert_eq!((created[0], created.iter().sum::<i64>()), (3, 5));
    let before = script.pushes.len();
    script.command(Command::Close { timeout: INTERVAL });
    assert_eq!((script.pushes.len(), script.created(before)), (before + 1, 1));
    for (index, (_, push)) in script.pushes.iter().enumerate() {
        let shown = (push.client_instance_id, push.subscription_id, push.terminating);
        assert_eq!(shown, (INSTANCE, 42, index == before));
        assert_eq!(push.compression_type, 4);
    }
    assert!(script.is_done);
    assert_eq!(script.questions.len(), 1);
}

#[test]
fn closing_waits_for_the_last_push_until_its_deadline() {
    for (timeout, pushes, waits) in [(0, 1, 0), (300, 2, 300), (60_000, 2, 1_000)] {
        let mut script = Script::offered();
        script.run_for(2 * INTERVAL);
        script.pushes.truncate(1);
        script.is_silent = true;
        let began = script.now;
        script.command(Command::Close { timeout: Duration::from_millis(timeout) });
        assert_eq!(script.pushes.len(), pushes);
        if waits > 0 {
            assert!(!script.is_done);
            assert_eq!(script.core.poll_timeout(), Some(began + Duration::from_millis(waits)));
            script.run_for(Duration::from_millis(waits));
        }
        assert!(script.is_done);
    }
}

#[test]
fn increases_of_a_lost_push_are_not_sent_twice() {
    let mut script = Script::offered();
    (script.is_silent, script.connects) = (true, 4);
    script.run_for(2 * INTERVAL);
    assert_eq!((script.pushes.len(), script.created(0)), (1, 4));
    script.lose_push();
    (script.is_silent, script.connects) = (false, 7);
    script.run_for(INTERVAL);
    assert_eq!((script.pushes.len(), script.created(1)), (2, 3));
    // A refused push did not count.
    (script.push_code, script.connects) = (ErrorCode::THROTTLING_QUOTA_EXCEEDED, 9);
    script.run_for(INTERVAL);
    script.push_code = ErrorCode::NONE;
    script.run_for(INTERVAL);
    assert_eq!((script.created(2), script.created(3)), (2, 2));
}

#[test]
fn changed_subscription_is_pushed_within_one_exchange() {
    let mut script = Script::offered();
    script.run_for(2 * INTERVAL);
    script.push_code = ErrorCode::UNKNOWN_SUBSCRIPTION_ID;
    script.subscription.requested_metrics = vec!["org.apache.kafka.consumer.fetch.".to_owned()];
    script.subscription.subscription_id = 43;
    script.run_for(INTERVAL);
    assert_eq!(script.questions.len(), 2);
    assert_eq!(script.questions[1].1.client_instance_id, INSTANCE);
    script.push_code = ErrorCode::NONE;
    script.run_for(2 * INTERVAL);
    let last = script.pushes.len() - 1;
    assert_eq!(script.pushes[last].1.subscription_id, 43);
    let text = String::from_utf8_lossy(&script.metrics(last)).into_owned();
    assert!(text.contains("fetch.manager.fetch.total") && !text.contains("connection."), "{text}");
}

#[test]
fn push_is_empty_if_the_client_has_none_of_the_metrics() {
    let mut script = Script::new(Some(settings()));
    script.subscription.requested_metrics = vec!["com.example.".to_owned()];
    script.report(ConnectionReport::OffersTelemetry);
    script.run_for(2 * INTERVAL);
    let push = &script.pushes[0].1;
    assert_eq!((push.metrics.len(), push.compression_type), (0, 0));
}

#[test]
fn metrics_that_do_not_fit_are_left_out_and_counted() {
    let mut script = Script::new(Some(settings()));
    script.subscription.requested_metrics = vec!["*".to_owned()];
    script.subscription.telemetry_max_bytes = 600;
    script.report(ConnectionReport::OffersTelemetry);
    script.run_for(2 * INTERVAL);
    let size = script.metrics(0).len();
    assert!((100..=600).contains(&size), "{size}");
    let (done, waiting) = completion();
    script.command(Command::Statistics(Arc::new(crate::stats::Gather::for_caller(done))));
    let statistics = waiting.try_take().expect("all actors have added their part");
    assert!(statistics.telemetry_drops > 5, "{}", statistics.telemetry_drops);
}

#[test]
fn each_codec_of_the_broker_is_used() {
    for (types, expected) in
        [(vec![4, 1], 4), (vec![3], 3), (vec![1], 1), (vec![2], 2), (vec![], 0), (vec![9], 0)]
    {
        let mut script = Script::new(Some(settings()));
        script.subscription.accepted_compression_types = types;
        script.report(ConnectionReport::OffersTelemetry);
        script.run_for(2 * INTERVAL);
        assert_eq!(script.pushes[0].1.compression_type, expected);
        assert_eq!(script.created(0), 0);
    }
}

#[test]
fn refusal_for_good_is_reported_once_and_ends_the_wait_for_an_instance_id() {
    let mut script = Script::new(Some(settings()));
    let (done, waiting) = completion();
    script.command(Command::Telemetry(TelemetryCommand::InstanceId(done)));
    script.subscription.error_code = ErrorCode::INVALID_REQUEST;
    script.report(ConnectionReport::OffersTelemetry);
    script.run_for(Duration::from_secs(86_400));
    assert_eq!((script.questions.len(), waiting.try_take()), (1, None));
    let events: Vec<_> = std::iter::from_fn(|| script.events.pop()).collect();
    let [Event::Telemetry(TelemetryEvent::Stopped(error))] = &events[..] else { panic!("{events:?}") };
    let text = error.to_string();
    assert!(text.contains("GetTelemetrySubscriptions") && text.contains("INVALID_REQUEST"), "{text}");
    let (done, waiting) = completion();
    script.command(Command::Telemetry(TelemetryCommand::InstanceId(done)));
    assert!(waiting.try_take().is_none());
}

#[test]
fn instance_id_is_returned_as_soon_as_it_is_known() {
    let mut script = Script::new(Some(settings()));
    let (done, early) = completion();
    script.command(Command::Telemetry(TelemetryCommand::InstanceId(done)));
    assert_eq!(early.try_take(), None);
    script.report(ConnectionReport::OffersTelemetry);
    let (done, late) = completion();
    script.command(Command::Telemetry(TelemetryCommand::InstanceId(done)));
    assert_eq!((early.try_take(), late.try_take()), (Some(INSTANCE), Some(INSTANCE)));
}

#[test]
fn calls_that_wait_in_vain_for_an_instance_id_do_not_pile_up() {
    let mut telemetry = Telemetry::new(settings(), ClientKind::Producer, Rng::from_seed(1));
    for _ in 0..1_000 {
        let (done, waiting) = completion();
        telemetry.handle_command(Instant::ZERO, TelemetryCommand::InstanceId(done));
        drop(waiting);
    }
    assert_eq!(telemetry.waiting.len(), 1);
}

#[test]
fn lost_broker_ends_the_pushes_until_it_is_back() {
    let mut script = Script::offered();
    script.run_for(2 * INTERVAL);
    let pushes = script.pushes.len();
    script.report(ConnectionReport::Idle { reconnects: false });
    script.run_for(100 * INTERVAL);
    assert_eq!((script.pushes.len(), script.core.poll_timeout()), (pushes, None));
    script.report(ConnectionReport::Up);
    script.report(ConnectionReport::OffersTelemetry);
    script.run_for(INTERVAL / 10);
    assert_eq!((script.pushes.len(), script.questions.len()), (pushes + 1, 1));
}
