//! The cluster's owner in virtual time, against brokers that a test plays: what it asks is answered with metadata that can't
//! be true.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        list_offsets::{self, ListOffsetsRequest, ListOffsetsResponse},
        metadata::{
            MetadataRequest, MetadataResponse,
            response::{Broker, Partition, Topic},
        },
    },
    primitive::Reader,
    uuid::Uuid,
};

use super::{
    ClusterCore, ClusterOutput, ClusterSettings,
    command::{Command, CommandQueue},
    reminders::Reminder,
};
use crate::{
    admin::AdminCall,
    broker::{
        connection::Response,
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    completion::completion,
    config::TopicPatterns,
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    fetch::{
        offsets::{OffsetQuery, OffsetSpec},
        position::Offset,
        shared::{ConsumerSettings, ConsumerShared},
    },
    machine::Instant,
    mail::{BrokerKey, EncodeBody, ToBroker, ToCluster},
    produce::{
        partition::{PartitionProducer, Waiting},
        partitioner::Partitioner,
        record::{Record, SendError},
        report::{DeliveryBatch, DeliverySink},
        sender::Purge,
        shared::{ProducerSettings, ProducerShared},
    },
    rng::Rng,
    sync::Mutex,
    wake::WakeHandle,
};

const METADATA_VERSION: i16 = 12;
const LIST_OFFSETS_VERSION: i16 = 7;

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

/// The cluster's owner of a producer that wants to send to `t`, and a bootstrap server that answers at once.
struct Script {
    now: Instant,
    core: ClusterCore,
    events: Arc<EventQueue>,
    reports: Arc<Reports>,
    shared: Arc<ProducerShared>,
    consumer: Arc<ConsumerShared>,
    commands: Arc<CommandQueue>,
    answer: MetadataResponse,
    /// Where the owners connect to.
    addresses: BTreeMap<BrokerKey, (String, u16)>,
    metadata_requests: usize,
    /// What the last one was about; `None` for all topics.
    asked_about: Option<Vec<String>>,
    /// Questions about offsets, which nobody answers but with NOT_LEADER_OR_FOLLOWER.
    lookups: usize,
    /// What the brokers' owners were given.
    partitions: BTreeMap<(Arc<str>, i32), Box<PartitionProducer>>,
    /// Owners that were told another address.
    moved: Vec<(BrokerKey, String, u16)>,
    /// Whom nobody can connect to.
    dead: Option<BrokerKey>,
    /// Whom nobody can connect to since all brokers died, and who was to be connected to.
    tried_in_vain: Option<Vec<BrokerKey>>,
    /// Who was given a partition last.
    leader: Option<BrokerKey>,
    /// What brokers' owners give back stays on its way.
    holds_mail: bool,
    on_its_way: Vec<(BrokerKey, ToCluster)>,
}

impl Script {
    fn new(answer: MetadataResponse) -> Self {
        Self::with(ClusterSettings::default(), answer)
    }

    fn with(settings: ClusterSettings, answer: MetadataResponse) -> Self {
        let settings = ClusterSettings { bootstrap: vec![("seed".into(), 9092)], ..settings };
        let reports = Arc::new(Reports::default());
        let producing = ProducerSettings {
            idempotence: false,
            message_timeout: Some(Duration::from_secs(30)),
            ..ProducerSettings::default()
        };
        let sink = Arc::clone(&reports) as Arc<dyn DeliverySink>;
        let shared =
            Arc::new(ProducerShared::new(producing, Partitioner::default(), sink, Rng::from_seed(1)));
        let commands = Arc::new(CommandQueue::new(WakeHandle::noop()));
        let events = Arc::new(EventQueue::default());
        let (queue, told) = (Arc::clone(&commands), Arc::clone(&events));
        let consumer = Arc::new(ConsumerShared::new(ConsumerSettings::default()));
        let (producing, consuming) = (Some(Arc::clone(&shared)), Some(Arc::clone(&consumer)));
        let core = ClusterCore::new(settings, producing, consuming, queue, told, Rng::from_seed(2));
        let mut script = Self {
            now: at(1),
            core,
            events,
            reports,
            shared: Arc::clone(&shared),
            consumer,
            commands: Arc::clone(&commands),
            answer,
            addresses: BTreeMap::new(),
            metadata_requests: 0,
            asked_about: None,
            lookups: 0,
            partitions: BTreeMap::new(),
            moved: Vec::new(),
            dead: None,
            tried_in_vain: None,
            leader: None,
            holds_mail: false,
            on_its_way: Vec::new(),
        };
        let topic = shared.topic("t").0;
        shared.send(&topic, script.now, 0, &Record::new().value("x"), None).expect("there is room");
        commands.push(Command::Topic(topic));
        script.core.handle_wake(script.now);
        script.settle();
        script
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = 0;
        while let Some(next) = self.core.poll_timeout().filter(|next| *next <= until) {
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < 100, "it wants to run again and again without time passing");
            self.now = self.now.max(next);
            self.core.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    fn settle(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                ClusterOutput::StartBroker { key, host, port, .. } => {
                    self.addresses.insert(key, (host, port));
                    self.core.handle_mail(self.now, key, ToCluster::Up);
                }
                ClusterOutput::ToBroker(key, ToBroker::Request(request)) => {
                    let mut bytes = Vec::new();
                    let version = match request.api {
                        ApiKey::Metadata => {
                            self.metadata_requests += 1;
                            self.asked_about = asked_about(request.encode);
                            self.answer.encode(METADATA_VERSION, &mut bytes).expect("it can be encoded");
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
                        other => panic!("{}", other.name()),
                    };
                    let request_then = InFlight {
                        correlation_id: 1,
                        api: request.api,
                        version,
                        tag: RequestTag::Cluster(request.token),
                        payload: Payload::Bytes(Vec::new()),
                        expects_answer: true,
                        queued_at: self.now,
                        written_at: self.now,
                        timeout: request.timeout,
                    };
                    let frame = Frame { len: bytes.len(), bytes };
                    let result = Ok(Response { request: request_then, frame, body: 0 });
                    let answer = ToCluster::Answer { token: request.token, result };
                    self.core.handle_mail(self.now, key, answer);
                }
                ClusterOutput::ToBroker(key, ToBroker::AdoptProducer(partition)) => {
                    self.leader = Some(key);
                    let place = (Arc::clone(partition.topic()), partition.partition());
                    self.partitions.insert(place, partition);
                }
                ClusterOutput::ToBroker(key, ToBroker::ReleaseProducer { topic, partition }) => {
                    if let Some(partition) = self.partitions.remove(&(topic, partition)) {
                        let mail = ToCluster::ReleasedProducer(partition);
                        if self.holds_mail {
                            self.on_its_way.push((key, mail));
                        } else {
                            self.core.handle_mail(self.now, key, mail);
                        }
                    }
                }
                ClusterOutput::ToBroker(key, ToBroker::Purge(purge)) if Some(key) == self.leader => {
                    for partition in self.partitions.values_mut().filter(|_| purge.queue) {
                        let error = Error::new(ErrorKind::PurgedFromQueue, "");
                        partition.fail_waiting(&self.shared, Waiting::All, |_| error);
                        partition.purges += 1;
                    }
                }
                ClusterOutput::ToBroker(key, ToBroker::SetAddress { host, port }) => {
                    self.moved.push((key, host, port));
                }
                ClusterOutput::ToBroker(key, ToBroker::Connect) if Some(key) == self.dead => self.refuse(key),
                ClusterOutput::ToBroker(key, ToBroker::Connect) => match &mut self.tried_in_vain {
                    Some(tried) => tried.push(key),
                    None => self.core.handle_mail(self.now, key, ToCluster::Up),
                },
                ClusterOutput::ToBroker(..) | ClusterOutput::Done => {}
            }
        }
    }

    /// What the brokers' owners gave back arrives.
    fn arrive(&mut self) {
        for (key, mail) in std::mem::take(&mut self.on_its_way) {
            self.core.handle_mail(self.now, key, mail);
        }
        self.settle();
    }

    /// The application asks for something.
    fn command(&mut self, command: Command) {
        self.commands.push(command);
        self.core.handle_wake(self.now);
        self.settle();
    }

    /// The connection to the partition's leader; nobody can connect there any more.
    fn kill_leader(&mut self) -> BrokerKey {
        let of_leader = |(_, (host, _)): &(&BrokerKey, &(String, u16))| host == "two";
        let leader = *self.addresses.iter().find(of_leader).expect("it is sent to").0;
        self.dead = Some(leader);
        leader
    }

    /// An attempt to connect failed.
    fn refuse(&mut self, key: BrokerKey) {
        let refused = Error::new(ErrorKind::Connect, "connection refused");
        self.core.handle_mail(self.now, key, ToCluster::Down(refused));
        self.settle();
    }

    /// The partitions that brokers' owners have.
    fn placed(&self) -> Vec<i32> {
        self.partitions.keys().map(|(_, partition)| *partition).collect()
    }

    /// A broker says that metadata are out of date.
    fn refresh(&mut self) {
        let key = *self.addresses.keys().next().expect("a broker");
        self.core.handle_mail(self.now, key, ToCluster::RefreshMetadata(Arc::from("t")));
        self.run_for(Duration::from_secs(1));
    }

    /// The sentences of the error events so far.
    fn told(&self) -> Vec<String> {
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

/// The topics that a Metadata request names.
fn asked_about(encode: EncodeBody) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    encode(METADATA_VERSION, &mut bytes).expect("it can be encoded");
    let request = MetadataRequest::decode(&mut Reader::new(&bytes), METADATA_VERSION);
    let topics = request.expect("it can be decoded").topics;
    topics.map(|topics| topics.into_iter().filter_map(|topic| topic.name).collect())
}

/// The broker does not lead what it is asked about.
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

/// Nobody leads the partition as far as the client can know: it goes on asking, says once what is wrong, and lets the record
/// time out.
fn assert_waits(script: &mut Script, told: &str) {
    script.run_for(Duration::from_secs(20));
    let asked = script.metadata_requests;
    assert!((15..=40).contains(&asked), "{asked} in 20 s, with a back-off from 100 ms to 1 s");
    assert_eq!(
        script.told(),
        [format!("seed:9092: Metadata: the peer's answer breaks Kafka's protocol ({told})")]
    );
    assert!(
        script.addresses.values().all(|(host, port)| !host.is_empty() && *port > 0),
        "{:?}",
        script.addresses
    );
    script.run_for(Duration::from_secs(15));
    let errors = script.reports.0.lock();
    assert!(
        matches!(&errors[..], [error] if error.kind() == ErrorKind::MessageTimedOutInQueue
        && error.to_string().contains("the partition has no leader")),
        "{errors:?}"
    );
}

#[test]
fn a_leader_that_is_no_broker_is_told_once_and_waited_for() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092)], 99));
    assert_waits(&mut script, "it names node 99 as the leader of t [0], and lists no such node");
    assert_eq!(script.addresses.len(), 1);
}

#[test]
fn a_leader_without_a_host_is_told_once_and_waited_for() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "", 9092)], 2));
    assert_waits(&mut script, "it lists node 2 at `:9092`, which is no address");
}

#[test]
fn a_leader_at_port_0_or_beyond_all_ports_is_told_once_and_waited_for() {
    for port in [0, -1, 65_536, i32::MAX] {
        let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", port)], 2));
        assert_waits(&mut script, &format!("it lists node 2 at `two:{port}`, which is no address"));
    }
}

#[test]
fn when_the_metadata_are_right_again_the_partition_is_led_and_new_nonsense_is_told_again() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092)], 99));
    script.run_for(Duration::from_secs(2));
    assert_eq!(script.told().len(), 1);
    script.answer = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2);
    script.run_for(Duration::from_secs(2));
    assert!(script.addresses.values().any(|(host, port)| (&**host, *port) == ("two", 9092)));
    let asked = script.metadata_requests;
    script.run_for(Duration::from_secs(20));
    assert_eq!(script.metadata_requests, asked, "nothing is missing any more");
    assert!(script.told().is_empty() && script.reports.0.lock().is_empty());
}

#[test]
fn metadata_with_an_older_epoch_do_not_take_a_partition_from_its_leader() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2));
    assert_eq!(script.core.metadata().leader("t", 0), Some((2, 3)));
    let mut older = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 1);
    older.topics[0].partitions[0].leader_epoch = 2;
    script.answer = older;
    script.run_for(Duration::from_secs(301));
    assert_eq!(script.metadata_requests, 2, "the refresh of every 300 s");
    assert_eq!(script.core.metadata().leader("t", 0), Some((2, 3)));
}

#[test]
fn a_leader_that_cannot_be_reached_is_asked_about_until_another_one_is_elected() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    let leader = script.kill_leader();
    // The cluster takes its time to notice. Each attempt to connect fails, with the longest back-off in between.
    let down = |script: &mut Script| {
        script.refuse(leader);
        script.run_for(Duration::from_secs(10));
    };
    down(&mut script);
    assert_eq!(script.core.metadata().leader("t", 0), Some((2, 3)));
    script.answer = metadata(&brokers, 1);
    script.answer.topics[0].partitions[0].leader_epoch = 4;
    down(&mut script);
    assert_eq!(script.core.metadata().leader("t", 0), Some((1, 4)));
    assert!(script.metadata_requests <= 5, "{} requests in 20 s", script.metadata_requests);
}

#[test]
fn a_leader_that_is_gone_when_somebody_writes_after_a_long_silence_is_asked_about_too() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    let leader = script.kill_leader();
    script.answer = metadata(&brokers, 1);
    script.answer.topics[0].partitions[0].leader_epoch = 4;
    // Nobody used the connections, and all were closed.
    let all: Vec<BrokerKey> = script.addresses.keys().copied().collect();
    all.into_iter()
        .for_each(|key| script.core.handle_mail(script.now, key, ToCluster::Idle { looks_again: false }));
    script.refuse(leader);
    script.run_for(Duration::from_secs(1));
    assert_eq!(script.core.metadata().leader("t", 0), Some((1, 4)));
}

#[test]
fn brokers_that_all_die_while_nobody_needs_them_are_told_and_that_all_are_down() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    while script.events.pop().is_some() {}
    script.tried_in_vain = Some(Vec::new());
    // They closed the connections, and can't be connected to any more.
    let all: Vec<BrokerKey> = script.addresses.keys().copied().collect();
    for key in all {
        script.core.handle_mail(script.now, key, ToCluster::Idle { looks_again: true });
        script.refuse(key);
    }
    for _ in 0..5 {
        script.run_for(Duration::from_secs(1));
        for key in script.tried_in_vain.replace(Vec::new()).expect("all are dead") {
            script.refuse(key);
        }
    }
    let (mut errors, mut all_down) = (0, 0);
    while let Some(event) = script.events.pop() {
        match event {
            Event::Error(_) => errors += 1,
            Event::AllBrokersDown(_) => all_down += 1,
            event => panic!("{event:?}"),
        }
    }
    assert!(errors >= 2, "{errors}");
    assert_eq!(all_down, 1);
}

#[test]
fn who_wants_to_be_reminded_is_though_nothing_else_happens_and_nobody_is_behind_the_end() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092)], 1));
    let remind = |script: &mut Script, after: u64| {
        let (done, waiting) = completion();
        script.commands.push(Command::Remind(Reminder { after: Duration::from_millis(after), done }));
        script.core.handle_wake(script.now);
        waiting
    };
    let (soon, never) = (remind(&mut script, 700), remind(&mut script, 5000));
    script.run_for(Duration::from_millis(699));
    assert_eq!(soon.try_take(), None);
    script.run_for(Duration::from_millis(1));
    assert_eq!((soon.try_take(), never.try_take()), (Some(()), None));
    script.commands.push(Command::Close);
    script.core.handle_wake(script.now);
    script.run_for(Duration::from_secs(10));
    let mut never = std::pin::pin!(never);
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(never.as_mut().poll(&mut context), Poll::Ready(None), "it is not waited for in vain");
}

#[test]
fn a_broker_whose_address_changed_is_told_its_new_one_once() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2));
    let leader = script.kill_leader();
    script.answer = metadata(&[(1, "seed", 9092), (2, "elsewhere", 9093)], 2);
    script.refresh();
    script.refresh();
    assert_eq!(script.moved, [(leader, "elsewhere".to_owned(), 9093)]);
}

/// Metadata of a topic with this id and so many partitions, all led by node 1.
fn topic_of(id: u8, partitions: i32) -> MetadataResponse {
    let mut answer = metadata(&[(1, "seed", 9092)], 1);
    let topic = &mut answer.topics[0];
    topic.topic_id = Uuid([id; 16]);
    topic.partitions = (0..partitions)
        .map(|partition_index| Partition { partition_index, leader_id: 1, ..Partition::default() })
        .collect();
    answer
}

#[test]
fn a_topic_that_is_made_anew_with_fewer_partitions_gets_nothing_for_those_that_are_gone() {
    let mut script = Script::new(topic_of(1, 4));
    assert_eq!(script.placed(), [0, 1, 2, 3]);
    let topic = script.shared.topic("t").0;
    let send = |script: &Script, record: &Record<'_>| script.shared.send(&topic, script.now, 0, record, None);
    let to_the_last = Record::new().partition(3).value("x");
    send(&script, &to_the_last).unwrap();
    // The one from before went somewhere; what is looked at is what comes from now on.
    script.answer = topic_of(2, 2);
    script.refresh();
    assert_eq!(script.placed(), [0, 1]);
    let error = script.reports.0.lock().pop().expect("the last partition's record is reported");
    assert_eq!(error.kind(), ErrorKind::TopicRecreated);
    assert!(error.to_string().contains("t [3]") && error.to_string().contains("2 partitions"), "{error}");
    assert_eq!(send(&script, &to_the_last), Err(SendError::UnknownPartition { partition: 3, count: 2 }));
    let queued = |partition| topic.slot(partition).expect("it was there").queued().0;
    for n in 0..100u32 {
        let key = n.to_be_bytes();
        send(&script, &Record::new().key(&key).value("keyed")).unwrap();
        send(&script, &Record::new().value("x")).unwrap();
    }
    assert_eq!((queued(2), queued(3)), (0, 0));
    let asked = script.metadata_requests;
    script.run_for(Duration::from_secs(20));
    assert_eq!(script.metadata_requests, asked, "nothing is missing");
    // More are added later, under the same topic.
    script.answer = topic_of(2, 4);
    script.refresh();
    assert_eq!(script.placed(), [0, 1, 2, 3]);
    send(&script, &to_the_last).unwrap();
    assert_eq!(queued(3), 1);
}

#[test]
fn a_purge_reaches_a_partition_that_is_on_its_way_from_one_leader_to_the_next() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    script.holds_mail = true;
    script.answer = metadata(&brokers, 1);
    script.answer.topics[0].partitions[0].leader_epoch = 4;
    script.refresh();
    assert_eq!((script.placed(), script.on_its_way.len()), (Vec::new(), 1));
    script.command(Command::Purge(Purge::QUEUE));
    assert_eq!(script.reports.0.lock().len(), 0, "nobody can get at it yet");
    script.arrive();
    let kinds: Vec<_> = script.reports.0.lock().drain(..).map(|error| error.kind()).collect();
    assert_eq!((kinds, script.shared.queued_messages()), (vec![ErrorKind::PurgedFromQueue], 0));
    assert_eq!(script.placed(), [0]);

    // What a broker's owner has purged is not purged again when it is given back.
    script.command(Command::Purge(Purge::QUEUE));
    let topic = script.shared.topic("t").0;
    script.shared.send(&topic, script.now, 0, &Record::new().partition(0).value("y"), None).unwrap();
    script.answer = metadata(&brokers, 2);
    script.answer.topics[0].partitions[0].leader_epoch = 5;
    script.refresh();
    script.arrive();
    assert_eq!((script.placed(), script.shared.queued_messages()), (vec![0], 1));
}

#[test]
fn partitions_that_are_added_are_sent_to_from_then_on_and_those_before_keep_what_they_have() {
    let mut script = Script::new(topic_of(1, 2));
    let topic = script.shared.topic("t").0;
    let send = |script: &Script, record: &Record<'_>| script.shared.send(&topic, script.now, 0, record, None);
    let queued = |partition| topic.slot(partition).map_or(0, |accumulator| accumulator.queued().0);
    assert_eq!(
        send(&script, &Record::new().partition(5).value("x")),
        Err(SendError::UnknownPartition { partition: 5, count: 2 })
    );
    (0..50u32).for_each(|n| send(&script, &Record::new().key(&n.to_be_bytes()).value("x")).unwrap());
    let before = [queued(0), queued(1)];
    script.answer = topic_of(1, 6);
    script.refresh();
    assert_eq!(script.placed(), [0, 1, 2, 3, 4, 5]);
    assert_eq!([queued(0), queued(1)], before, "what a key's records wait in is not torn apart");
    send(&script, &Record::new().partition(5).value("x")).unwrap();
    (0..200u32).for_each(|n| send(&script, &Record::new().key(&n.to_be_bytes()).value("x")).unwrap());
    (0..6).for_each(|partition| assert!(queued(partition) > 0, "partition {partition}"));
    let of_one_key = |n: u32| {
        let counts: Vec<_> = (0..6).map(queued).collect();
        (0..5).for_each(|_| send(&script, &Record::new().key(&n.to_be_bytes()).value("x")).unwrap());
        (0..6).filter(|partition| queued(*partition) > counts[*partition as usize]).count()
    };
    (0..20).for_each(|n| assert_eq!(of_one_key(n), 1, "a key's records go one way"));
}

#[test]
fn an_applications_question_that_a_broker_refuses_is_asked_again_after_one_back_off_each() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2));
    let (metadata_requests, (done, waiting)) = (script.metadata_requests, completion());
    let timeout = Duration::from_secs(2);
    let questions = vec![(Arc::from("t"), 0, OffsetSpec::Latest)];
    let query = OffsetQuery { questions, timeout, read_committed: false };
    script.commands.push(Command::Admin(AdminCall::list_offsets(query, done)));
    script.core.handle_wake(script.now);
    script.settle();
    script.run_for(Duration::from_secs(1));
    let metadata_requests = script.metadata_requests - metadata_requests;
    assert!((5..=15).contains(&metadata_requests), "{metadata_requests} in 1 s, with a back-off of 100 ms");
    assert_eq!(script.lookups, metadata_requests + 1, "one question for each, and the first");
    script.run_for(Duration::from_secs(2));
    let answers = waiting.try_take().expect("it ends in time");
    assert!(answers[0].as_ref().is_err_and(|error| error.to_string().contains("NOT_LEADER_OR_FOLLOWER")));
}

#[test]
fn partitions_whose_offsets_nobody_tells_ask_together_however_many_they_are() {
    const PARTITIONS: i32 = 36;
    let mut answer = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2);
    let partition = answer.topics[0].partitions[0].clone();
    answer.topics[0].partitions =
        (0..PARTITIONS).map(|partition_index| Partition { partition_index, ..partition.clone() }).collect();
    let mut script = Script::new(answer);
    for partition in 0..PARTITIONS {
        let start = script.consumer.incremental_assign(&[(Arc::from("t"), partition, Offset::Beginning)]);
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

/// `t` and so many others, all led by node 1.
fn topics(others: &[&str]) -> MetadataResponse {
    let mut answer = metadata(&[(1, "seed", 9092)], 1);
    let t = answer.topics[0].clone();
    answer.topics.extend(others.iter().map(|name| Topic { name: Some((*name).into()), ..t.clone() }));
    answer
}

#[test]
fn the_timer_asks_for_the_topics_in_use_or_if_it_is_said_so_for_all_and_keeps_those_in_use() {
    for refresh_all_topics in [false, true] {
        let interval = Duration::from_secs(10);
        let settings =
            ClusterSettings { refresh_all_topics, refresh_interval: Some(interval), ..Default::default() };
        let mut script = Script::with(settings, topics(&["u", "v"]));
        assert_eq!(
            script.asked_about,
            Some(vec!["t".to_owned()]),
            "a topic that is new is asked for by name"
        );
        script.run_for(interval * 2);
        assert!(script.metadata_requests >= 3, "{} requests", script.metadata_requests);
        let by_timer = if refresh_all_topics { None } else { Some(vec!["t".to_owned()]) };
        assert_eq!(script.asked_about, by_timer);
        script.refresh();
        assert_eq!(script.asked_about, Some(vec!["t".to_owned()]), "and so is what is out of date");
        if refresh_all_topics {
            assert!(script.core.metadata.topics.keys().all(|name| ["t", "u", "v"].contains(&&**name)));
            script.run_for(interval * 2);
            assert_eq!(script.asked_about, None);
        }
        assert_eq!(script.placed(), [0]);
        assert_eq!(script.told(), Vec::<String>::new());
    }
}

#[test]
fn a_topic_in_use_that_all_topics_of_the_cluster_do_not_include_is_gone() {
    let settings = ClusterSettings {
        refresh_all_topics: true,
        refresh_interval: Some(Duration::from_secs(10)),
        ..Default::default()
    };
    let mut script = Script::with(settings, topics(&[]));
    script.answer = topics(&["u"]);
    script.answer.topics.remove(0);
    assert!(!script.core.metadata.topics["t"].gone);
    script.run_for(Duration::from_secs(10));
    assert!(script.core.metadata.topics["t"].gone);
    assert!(!script.core.metadata.topics.contains_key("u"), "nobody uses it");
}

#[test]
fn what_brokers_say_of_a_topic_on_the_black_list_is_passed_over() {
    let hidden_topics = TopicPatterns::parse("^nothing$,^t").unwrap();
    let settings = ClusterSettings { hidden_topics, ..Default::default() };
    let mut script = Script::with(settings, topics(&[]));
    script.run_for(Duration::from_secs(40));
    assert!(script.placed().is_empty() && script.core.metadata.topics.is_empty());
    let errors = script.reports.0.lock();
    assert!(
        matches!(&errors[..], [error] if error.kind() == ErrorKind::MessageTimedOutInQueue),
        "{errors:?}"
    );
}
