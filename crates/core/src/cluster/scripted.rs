//! The cluster actor in virtual time, against brokers that the test plays and that return invalid or changing metadata.

mod leaders;
mod misrouting;
mod routing;
mod searching;
mod starting;
mod topics;

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        find_coordinator::FindCoordinatorResponse,
        list_offsets::{self, ListOffsetsRequest, ListOffsetsResponse},
        metadata::{
            MetadataRequest, MetadataResponse,
            response::{Broker, Partition, Topic},
        },
    },
    primitive::Reader,
    uuid::Uuid,
    vocabulary::TopicPartition,
};
use ottla_sorted::SortedMap;

use super::{
    ClusterCore, ClusterOutput, ClusterSettings,
    command::{Command, CommandQueue},
    reminders::Reminder,
};
use crate::{
    admin::AdminCall,
    completion::completion,
    config::TopicPatterns,
    connection::{
        Response,
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    contract::{
        broker::{BrokerKey, BrokerNews},
        purge::Purge,
        route::EncodeBody,
    },
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    fetch::{position::Offset, settings::ConsumerSettings, shared::ConsumerShared},
    machine::Instant,
    message::{ConnectionMessage, ConnectionReport, ToBroker, ToCluster},
    offsets::list_offsets::{OffsetQuery, OffsetSpec},
    produce::{
        message::{ProduceMessage, ProduceReport},
        partition::{Compress, Next, PartitionProducer, Waiting},
        record::{Record, SendError},
        report::{Delivered, DeliveryBatch, DeliverySink, PersistenceStatus},
        settings::ProducerSettings,
        shared::ProducerShared,
        topic_settings::TopicSettings,
    },
    rng::Rng,
    sync::Mutex,
    turns::Turns,
    wake::WakeHandle,
};

const METADATA_VERSION: i16 = 12;
const LIST_OFFSETS_VERSION: i16 = 7;
const FIND_COORDINATOR_VERSION: i16 = 3;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

#[derive(Default)]
struct Reports(Mutex<Vec<Error>>);

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        self.0.lock().extend(batch.error().cloned());
    }
}

/// The cluster actor of a producer that sends to `t`, and a bootstrap server that responds immediately.
struct Script {
    now: Instant,
    core: ClusterCore,
    events: Arc<EventQueue>,
    reports: Arc<Reports>,
    shared: Arc<ProducerShared>,
    consumer: Arc<ConsumerShared>,
    commands: Arc<CommandQueue>,
    response: MetadataResponse,
    /// The addresses of the broker actors.
    addresses: SortedMap<BrokerKey, (String, u16)>,
    metadata_requests: usize,
    /// The topics of the last request; `None` for all topics.
    asked_about: Option<Vec<String>>,
    /// The number of ListOffsets requests; the script responds NOT_LEADER_OR_FOLLOWER to each.
    lookups: usize,
    /// The partitions that the broker actors have.
    partitions: SortedMap<TopicPartition, Box<PartitionProducer>>,
    /// The broker actors that got another address.
    moved: Vec<(BrokerKey, String, u16)>,
    /// The clusters that the connections are bound to.
    clusters: SortedMap<BrokerKey, Arc<str>>,
    /// The broker that refuses connections.
    dead: Option<BrokerKey>,
    /// The brokers that the client tried after all of them went down; `None` before that.
    tried_in_vain: Option<Vec<BrokerKey>>,
    /// The brokers that the client stopped connecting to.
    stopped: Vec<BrokerKey>,
    /// The broker actor that got a partition last.
    leader: Option<BrokerKey>,
    /// Partitions that broker actors return stay in transit.
    holds_messages: bool,
    on_its_way: Vec<(BrokerKey, ToCluster)>,
    /// Requests that get no response, with the host that they went to.
    without_response: Vec<(ApiKey, String)>,
    /// New broker actors are not connected at once.
    starts_down: bool,
}

impl Script {
    fn new(response: MetadataResponse) -> Self {
        Self::with(ClusterSettings::default(), response)
    }

    fn with(settings: ClusterSettings, response: MetadataResponse) -> Self {
        let mut script = Self::fresh(settings, response);
        script.use_topic("t");
        script
    }

    /// Sends the first record to a topic.
    fn use_topic(&mut self, name: &str) {
        let topic = self.shared.topic(name).0;
        self.shared.send(&topic, self.now, 0, &Record::new().value("x"), None).expect("there is room");
        self.command(Command::Topic(topic));
    }

    /// Writes the records that wait in a partition, as its broker actor.
    fn write_all(&mut self, name: &str, partition: i32) {
        let place = TopicPartition::new(name, partition);
        let producer = self.partitions.get_mut(&place).expect("a broker actor has it");
        let options = self.shared.topic_settings().seal_options();
        while let Next::Batch(batch) = producer.next(true, &options, Compress::Here, false, None) {
            let status = PersistenceStatus::Persisted;
            let delivered = Ok(Delivered { base_offset: Some(0), log_append_time: None });
            self.shared.report(batch.into_report(producer.topic(), partition, delivered, status));
        }
    }

    /// Creates a client that has sent no request yet.
    fn fresh(settings: ClusterSettings, response: MetadataResponse) -> Self {
        Self::fresh_with(producer_settings(), settings, response)
    }

    fn fresh_with(
        producing: ProducerSettings,
        settings: ClusterSettings,
        response: MetadataResponse,
    ) -> Self {
        let settings = ClusterSettings { bootstrap: vec![("seed".into(), 9092)], ..settings };
        let reports = Arc::new(Reports::default());
        let sink = Arc::clone(&reports) as Arc<dyn DeliverySink>;
        let shared = Arc::new(ProducerShared::new(producing, sink, Rng::from_seed(1)));
        let (commands, reader) = CommandQueue::new(WakeHandle::noop());
        let events = Arc::new(EventQueue::default());
        let reported = Arc::clone(&events);
        let consuming = ConsumerSettings { group_id: Some("g".into()), ..ConsumerSettings::default() };
        let consumer = Arc::new(ConsumerShared::new(consuming));
        let (producing, consuming) = (Some(Arc::clone(&shared)), Some(Arc::clone(&consumer)));
        let core = ClusterCore::new(settings, producing, consuming, reader, reported, Rng::from_seed(2));
        Self {
            now: at(1),
            core,
            events,
            reports,
            shared: Arc::clone(&shared),
            consumer,
            commands,
            response,
            addresses: SortedMap::new(),
            metadata_requests: 0,
            asked_about: None,
            lookups: 0,
            partitions: SortedMap::new(),
            moved: Vec::new(),
            clusters: SortedMap::new(),
            dead: None,
            tried_in_vain: None,
            stopped: Vec::new(),
            leader: None,
            holds_messages: false,
            on_its_way: Vec::new(),
            without_response: Vec::new(),
            starts_down: false,
        }
    }

    /// Replaces a client that has not run yet by one with other servers.
    fn replace_servers(&mut self, bootstrap: Vec<(String, u16)>) {
        let settings = ClusterSettings { bootstrap, ..ClusterSettings::default() };
        let (producing, consuming) = (Some(Arc::clone(&self.shared)), Some(Arc::clone(&self.consumer)));
        let (commands, reader) = CommandQueue::new(WakeHandle::noop());
        let events = Arc::clone(&self.events);
        self.core = ClusterCore::new(settings, producing, consuming, reader, events, Rng::from_seed(2));
        self.commands = commands;
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
        while let Some(output) = self.core.poll_output() {
            turns.take(self.now, 10_000);
            match output {
                ClusterOutput::StartBroker { key, host, port, .. } => {
                    self.addresses.insert(key, (host, port));
                    if !self.starts_down {
                        self.core.handle_message(self.now, key, ToCluster::Connection(ConnectionReport::Up));
                    }
                }
                ClusterOutput::ToBroker(key, ToBroker::Request(request)) if !is_simulated(request.api) => {
                    self.without_response.push((request.api, self.addresses[&key].0.clone()));
                }
                ClusterOutput::ToBroker(key, ToBroker::Request(request)) => {
                    let mut bytes = Vec::new();
                    let version = match request.api {
                        ApiKey::Metadata => {
                            self.metadata_requests += 1;
                            self.asked_about = asked_about(request.encode);
                            self.response.encode(METADATA_VERSION, &mut bytes).expect("it can be encoded");
                            METADATA_VERSION
                        }
                        ApiKey::ListOffsets => {
                            self.lookups += 1;
                            let mut asked = Vec::new();
                            (request.encode)(LIST_OFFSETS_VERSION, &mut asked).expect("it can be encoded");
                            let asked =
                                ListOffsetsRequest::decode(&mut Reader::new(&asked), LIST_OFFSETS_VERSION);
                            let refusal = refusal(&asked.expect("it can be decoded"));
                            refusal.encode(LIST_OFFSETS_VERSION, &mut bytes).expect("it can be encoded");
                            LIST_OFFSETS_VERSION
                        }
                        ApiKey::FindCoordinator => {
                            let found = FindCoordinatorResponse {
                                node_id: 2,
                                host: "two".into(),
                                port: 9092,
                                ..Default::default()
                            };
                            found.encode(FIND_COORDINATOR_VERSION, &mut bytes).expect("it can be encoded");
                            FIND_COORDINATOR_VERSION
                        }
                        other => panic!("{}", other.name()),
                    };
                    let request_then = InFlight {
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
                    let result = Ok(Response { request: request_then, frame, body: 0 });
                    let response = ToCluster::Response { token: request.token, result };
                    self.core.handle_message(self.now, key, response);
                }
                ClusterOutput::ToBroker(key, ToBroker::Produce(ProduceMessage::Adopt(partition))) => {
                    self.leader = Some(key);
                    let place = partition.topic_partition();
                    self.partitions.insert(place, partition);
                }
                ClusterOutput::ToBroker(key, ToBroker::Produce(ProduceMessage::Release(partition))) => {
                    if let Some(partition) = self.partitions.remove(&partition) {
                        let messages = ToCluster::Produce(ProduceReport::Released(partition));
                        if self.holds_messages {
                            self.on_its_way.push((key, messages));
                        } else {
                            self.core.handle_message(self.now, key, messages);
                        }
                    }
                }
                ClusterOutput::ToBroker(key, ToBroker::Produce(ProduceMessage::Purge(purge)))
                    if Some(key) == self.leader =>
                {
                    for partition in self.partitions.values_mut().filter(|_| purge.queue) {
                        let error = Error::new(ErrorKind::PurgedFromQueue, "");
                        partition.fail_waiting(&self.shared, Waiting::All, |_| error);
                        partition.purges += 1;
                    }
                }
                ClusterOutput::ToBroker(
                    key,
                    ToBroker::Connection(ConnectionMessage::SetAddress { host, port }),
                ) => {
                    self.moved.push((key, host, port));
                }
                ClusterOutput::ToBroker(key, ToBroker::Connection(ConnectionMessage::SetCluster(id))) => {
                    self.clusters.insert(key, id);
                }
                ClusterOutput::ToBroker(key, ToBroker::Connection(ConnectionMessage::Connect))
                    if Some(key) == self.dead =>
                {
                    self.refuse(key)
                }
                ClusterOutput::ToBroker(key, ToBroker::Connection(ConnectionMessage::Connect)) => {
                    match &mut self.tried_in_vain {
                        Some(tried) => tried.push(key),
                        None => self.core.handle_message(
                            self.now,
                            key,
                            ToCluster::Connection(ConnectionReport::Up),
                        ),
                    }
                }
                ClusterOutput::ToBroker(key, ToBroker::Connection(ConnectionMessage::StopConnecting)) => {
                    self.stopped.push(key);
                }
                ClusterOutput::ToBroker(..) | ClusterOutput::Done => {}
            }
        }
    }

    /// Delivers the partitions that the broker actors returned.
    fn arrive(&mut self) {
        for (key, messages) in std::mem::take(&mut self.on_its_way) {
            self.core.handle_message(self.now, key, messages);
        }
        self.settle();
    }

    /// Queues a command as the application.
    fn command(&mut self, command: Command) {
        self.commands.push(command);
        self.core.handle_wake(self.now);
        self.settle();
    }

    /// Breaks the connection to the partition's leader, refuses new ones, and returns its key.
    fn kill_leader(&mut self) -> BrokerKey {
        let of_leader = |(_, (host, _)): &(&BrokerKey, &(String, u16))| host == "two";
        let leader = *self.addresses.iter().find(of_leader).expect("it is sent to").0;
        self.dead = Some(leader);
        leader
    }

    /// Fails an attempt to connect.
    fn refuse(&mut self, key: BrokerKey) {
        let (host, port) = &self.addresses[&key];
        let refused =
            Error::new(ErrorKind::Connect, "connection refused").with_peer(format!("{host}:{port}"));
        self.core.handle_message(self.now, key, ToCluster::Connection(ConnectionReport::Down(refused)));
        self.settle();
    }

    /// Returns the partitions that the broker actors have.
    fn placed(&self) -> Vec<i32> {
        self.partitions.keys().map(|partition| partition.partition).collect()
    }

    /// Reports stale metadata as a broker.
    fn refresh(&mut self) {
        let key = *self.addresses.keys().next().expect("a broker");
        self.core.handle_message(self.now, key, ToCluster::News(BrokerNews::StaleMetadata(Arc::from("t"))));
        self.run_for(Duration::from_secs(1));
    }

    /// Returns the texts of the error events so far.
    fn reported(&self) -> Vec<String> {
        let events = std::iter::from_fn(|| self.events.pop());
        let errors = events.filter_map(|event| match event {
            Event::Error(error) => Some(error),
            _ => None,
        });
        errors
            .inspect(|error| assert_eq!(error.kind(), ErrorKind::BadResponse))
            .map(|error| error.to_string())
            .collect()
    }
}

fn producer_settings() -> ProducerSettings {
    ProducerSettings {
        idempotence: false,
        topic: TopicSettings { message_timeout: Some(Duration::from_secs(30)), ..TopicSettings::default() },
        ..ProducerSettings::default()
    }
}

/// Returns true if the brokers of the script respond to this API.
fn is_simulated(api: ApiKey) -> bool {
    matches!(api, ApiKey::Metadata | ApiKey::ListOffsets | ApiKey::FindCoordinator)
}

/// The topics that a Metadata request names.
fn asked_about(encode: EncodeBody) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    encode(METADATA_VERSION, &mut bytes).expect("it can be encoded");
    let request = MetadataRequest::decode(&mut Reader::new(&bytes), METADATA_VERSION);
    let topics = request.expect("it can be decoded").topics;
    topics.map(|topics| topics.into_iter().filter_map(|topic| topic.name).collect())
}

/// Builds a ListOffsets response of a broker that does not lead the partitions.
fn refusal(asked: &ListOffsetsRequest) -> ListOffsetsResponse {
    use list_offsets::response::{Partition, Topic};
    let topics = asked.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| Partition {
            partition_index: partition.partition_index,
            error_code: ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ..Partition::default()
        });
        Topic { name: topic.name.clone(), partitions: partitions.collect() }
    });
    ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }
}

fn metadata(brokers: &[(i32, &str, i32)], leader_id: i32) -> MetadataResponse {
    let brokers = brokers.iter().map(|(node_id, host, port)| Broker {
        node_id: *node_id,
        host: (*host).into(),
        port: *port,
        ..Broker::default()
    });
    let partition = Partition { leader_id, leader_epoch: 3, ..Partition::default() };
    let topic = Topic { name: Some("t".into()), partitions: vec![partition], ..Topic::default() };
    MetadataResponse { brokers: brokers.collect(), topics: vec![topic], ..MetadataResponse::default() }
}

#[test]
fn reminder_fires_although_nothing_else_happens() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092)], 1));
    let remind = |script: &mut Script, after: u64| {
        let (done, waiting) = completion();
        let at = script.now + Duration::from_millis(after);
        script.commands.push(Command::Remind(Reminder { at, done }));
        script.core.handle_wake(script.now);
        waiting
    };
    let (soon, never) = (remind(&mut script, 700), remind(&mut script, 5000));
    script.run_for(Duration::from_millis(699));
    assert_eq!(soon.try_take(), None);
    script.run_for(Duration::from_millis(1));
    assert_eq!((soon.try_take(), never.try_take()), (Some(()), None));
    script.commands.push(Command::Close { timeout: Duration::ZERO });
    script.core.handle_wake(script.now);
    script.run_for(Duration::from_secs(10));
    let mut never = std::pin::pin!(never);
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(never.as_mut().poll(&mut context), Poll::Ready(None), "the request does not wait");
}

/// Metadata of a topic with this ID and number of partitions, all led by node 1.
fn topic_of(id: u8, partitions: i32) -> MetadataResponse {
    let mut response = metadata(&[(1, "seed", 9092)], 1);
    let topic = &mut response.topics[0];
    topic.topic_id = Uuid([id; 16]);
    topic.partitions = (0..partitions)
        .map(|partition_index| Partition { partition_index, leader_id: 1, ..Partition::default() })
        .collect();
    response
}

#[test]
fn purge_reaches_a_partition_in_transit_between_leaders() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    script.holds_messages = true;
    script.response = metadata(&brokers, 1);
    script.response.topics[0].partitions[0].leader_epoch = 4;
    script.refresh();
    assert_eq!((script.placed(), script.on_its_way.len()), (Vec::new(), 1));
    script.command(Command::Purge(Purge::QUEUE));
    assert_eq!(script.reports.0.lock().len(), 0, "no broker actor has it yet");
    script.arrive();
    let kinds: Vec<_> = script.reports.0.lock().drain(..).map(|error| error.kind()).collect();
    assert_eq!((kinds, script.shared.queued_messages()), (vec![ErrorKind::PurgedFromQueue], 0));
    assert_eq!(script.placed(), [0]);

    // Records that a broker actor purged are not purged again when it returns the partition.
    script.command(Command::Purge(Purge::QUEUE));
    let topic = script.shared.topic("t").0;
    script.shared.send(&topic, script.now, 0, &Record::new().partition(0).value("y"), None).unwrap();
    script.response = metadata(&brokers, 2);
    script.response.topics[0].partitions[0].leader_epoch = 5;
    script.refresh();
    script.arrive();
    assert_eq!((script.placed(), script.shared.queued_messages()), (vec![0], 1));
}

#[test]
fn rejected_query_is_retried_after_one_backoff_each() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2));
    let (metadata_requests, (done, waiting)) = (script.metadata_requests, completion());
    let timeout = Duration::from_secs(2);
    let questions = vec![(("t", 0).into(), OffsetSpec::Latest)];
    let query = OffsetQuery { questions, timeout, read_committed: false, refusals: None };
    script.commands.push(Command::Admin(AdminCall::list_offsets(query, done)));
    script.core.handle_wake(script.now);
    script.settle();
    script.run_for(Duration::from_secs(1));
    let metadata_requests = script.metadata_requests - metadata_requests;
    assert!((5..=15).contains(&metadata_requests), "{metadata_requests} in 1 s, with a back-off of 100 ms");
    assert_eq!(script.lookups, metadata_requests + 1, "one question for each, and the first");
    script.run_for(Duration::from_secs(2));
    let responses = waiting.try_take().expect("it ends in time");
    assert!(responses[0].as_ref().is_err_and(|error| error.to_string().contains("NOT_LEADER_OR_FOLLOWER")));
}

#[test]
fn partitions_without_offsets_share_one_lookup() {
    const PARTITIONS: i32 = 36;
    let mut response = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2);
    let partition = response.topics[0].partitions[0].clone();
    response.topics[0].partitions =
        (0..PARTITIONS).map(|partition_index| Partition { partition_index, ..partition.clone() }).collect();
    let mut script = Script::new(response);
    for partition in 0..PARTITIONS {
        let start =
            script.consumer.incremental_assign(&[(TopicPartition::new("t", partition), Offset::Beginning)]);
        script.commands.push(Command::Fetch(start));
        script.core.handle_wake(script.now);
        script.settle();
        script.run_for(Duration::from_millis(3));
    }
    script.run_for(Duration::from_secs(1));
    let (metadata_requests, lookups) = (script.metadata_requests, script.lookups);
    script.run_for(Duration::from_secs(10));
    let metadata_requests = script.metadata_requests - metadata_requests;
    let lookups = script.lookups - lookups;
    assert!(
        (50..=150).contains(&metadata_requests),
        "{metadata_requests} in 10 s, with a back-off of 100 ms"
    );
    assert_eq!(lookups, metadata_requests, "one question to the leader for each");
}

#[test]
fn warning_of_every_batch_is_reported_once_per_interval_with_a_count() {
    let mut script = Script::new(MetadataResponse::default());
    script.run_for(Duration::from_secs(1));
    let key = *script.addresses.keys().next().expect("a broker");
    let _ = script.reported();
    for offset in 0..101 {
        let warning = Error::new(ErrorKind::BadResponse, format!("offset {offset}")).with_partition("t", 0);
        script.core.handle_message(script.now, key, ToCluster::News(BrokerNews::Warning(warning)));
        script.now += Duration::from_millis(100);
    }
    let reported = script.reported();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported[0].ends_with("(offset 0)"), "{reported:?}");
    assert!(reported[1].ends_with("(offset 100; repeated 99 times in 10 s)"), "{reported:?}");
}

#[test]
fn statistics_that_follow_a_purge_reach_brokers_behind_it() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    let (done, _waiting) = crate::completion::completion();
    script.commands.push(Command::Purge(Purge::QUEUE));
    script.commands.push(Command::Statistics(Arc::new(crate::stats::Gather::for_caller(done))));
    script.core.handle_wake(script.now);
    let names: Vec<&str> = std::iter::from_fn(|| script.core.poll_output())
        .filter_map(|output| match output {
            ClusterOutput::ToBroker(_, ToBroker::Produce(ProduceMessage::Purge(_))) => Some("purge"),
            ClusterOutput::ToBroker(_, ToBroker::Statistics(..)) => Some("statistics"),
            _ => None,
        })
        .collect();
    let first_statistics = names.iter().position(|name| *name == "statistics").expect("brokers are asked");
    assert!(names[..first_statistics].contains(&"purge"), "{names:?}");
    assert!(!names[first_statistics..].contains(&"purge"), "{names:?}");
}
