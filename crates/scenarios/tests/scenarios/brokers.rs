//! Brokers that move, stop responding, throttle, or close idle connections.

use std::{
    io,
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use ottla::{Consumer, ConsumerEvent, ErrorCode, ErrorKind, Event, Offset, Record};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, FakeServer, TIMEOUT, config, eventually};

ottla_scenarios::run_on_embedded!(
    closed_connections_are_reported_and_opened_again,
    own_idle_limit_causes_no_event,
    throttled_consumer_pauses_and_loses_no_record,
    throttle_time_of_an_old_version_has_already_passed,
    moved_cluster_is_found_through_bootstrap_servers,
    without_rebootstrap_only_known_brokers_are_used,
    broker_can_request_a_rebootstrap,
    silent_brokers_cause_a_rebootstrap,
    empty_immediate_responses_cause_no_busy_loop,
);

fn closed_connections_are_reported_and_opened_again(backend: &Backend) {
    let topic = backend.topic(3);
    let producer = backend.producer(&[]);
    let consumer = consumer(backend, &[]);
    consumer.assign(&all(&topic, Offset::Beginning)).unwrap();
    for round in 0..2u64 {
        let value = round.to_string();
        for n in 0..3 {
            let record = Record::new().partition(n).value(&value);
            producer.topic(&topic).send_tracked(record).unwrap().wait(TIMEOUT).unwrap();
        }
        assert_eq!(read(&consumer, 3), vec![round; 3]);
        backend.control(|control| control.close_connections(None));
        // The same failure is reported once per 30 s.
        let is_reported = || match producer.poll_event() {
            Some(Event::Error(error)) => error.kind() == ErrorKind::Disconnected,
            _ => false,
        };
        assert!(round > 0 || eventually(is_reported));
    }
}

fn own_idle_limit_causes_no_event(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("connections.max.idle.ms", "100")]);
    let send = || producer.topic(&topic).send_tracked(Record::new().value("1")).unwrap().wait(TIMEOUT);
    send().unwrap();
    assert!(eventually(|| backend.control(|control| control.connections(None).is_empty())));
    assert_eq!(producer.poll_event(), None);
    send().unwrap();
    assert_eq!(producer.poll_event(), None);
}

fn throttled_consumer_pauses_and_loses_no_record(backend: &Backend) {
    let (fetches, took) = throttled(backend, Duration::from_secs(2));
    assert!(took >= Duration::from_millis(1500), "{took:?}");
    assert!(fetches <= 2, "{fetches} fetches while it was to pause");
}

fn throttle_time_of_an_old_version_has_already_passed(backend: &Backend) {
    backend.control(|control| control.set_api_versions(None, ApiKey::Fetch, 4, 7));
    let throttle = Duration::from_secs(20);
    let (_, took) = throttled(backend, throttle);
    assert!(took < throttle / 2, "{took:?}");
}

/// Returns the number of fetches that the leader got within a throttle time, and the latency of a new record.
fn throttled(backend: &Backend, throttle: Duration) -> (usize, Duration) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    let send = |n: &str| producer.topic(&topic).send_tracked(Record::new().value(n)).unwrap().wait(TIMEOUT);
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    send("0").unwrap();
    assert_eq!(read(&consumer, 1), [0]);
    // The fetch that is in flight now passes.
    thread::sleep(Duration::from_millis(100));
    backend.control(|control| {
        control.inject(Fault::new(FaultAction::Throttle(throttle)).api(ApiKey::Fetch).times(1));
    });
    send("1").unwrap();
    assert_eq!(read(&consumer, 1), [1]);
    send("2").unwrap();
    assert_eq!(read(&consumer, 1), [2], "the response to this fetch reports the throttle time");
    backend.control(|control| {
        control.record_requests();
        control.take_requests();
    });
    let began = Instant::now();
    send("3").unwrap();
    assert_eq!(read(&consumer, 1), [3]);
    let took = began.elapsed();
    let requests = backend.control(|control| control.take_requests());
    (requests.iter().filter(|request| request.api == ApiKey::Fetch).count(), took)
}

fn moved_cluster_is_found_through_bootstrap_servers(backend: &Backend) {
    let (proxy, target) = proxy(backend);
    let topic = backend.topic(1);
    write(&backend.bootstrap_servers(), &topic, 0..5);
    let properties = [("topic.recreate.policy", "reset"), ("auto.offset.reset", "earliest")];
    let consumer = Consumer::new(&config(&proxy.address(), &properties)).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
    // The cluster has stopped with all of its brokers; another one is at the bootstrap address.
    (1..=3).for_each(|id| {
        backend.control(|control| control.kill_broker(BrokerId(id), ottla_embedded_broker::Tail::Kept))
    });
    let elsewhere = Backend::embedded_with(|options| options.seed = Some(99));
    elsewhere.control(|control| control.create_topic(&topic, 1, 3)).unwrap();
    write(&elsewhere.bootstrap_servers(), &topic, 10..15);
    *target.lock().unwrap() = elsewhere.bootstrap_servers();
    assert_eq!(read(&consumer, 5), [10, 11, 12, 13, 14]);
}

fn without_rebootstrap_only_known_brokers_are_used(backend: &Backend) {
    let (proxy, target) = proxy(backend);
    let topic = backend.topic(1);
    write(&backend.bootstrap_servers(), &topic, 0..5);
    let properties = [("metadata.recovery.strategy", "none")];
    let consumer = Consumer::new(&config(&proxy.address(), &properties)).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
    let elsewhere = Backend::embedded_with(|options| options.seed = Some(99));
    *target.lock().unwrap() = elsewhere.bootstrap_servers();
    (1..=3).for_each(|id| {
        backend.control(|control| control.kill_broker(BrokerId(id), ottla_embedded_broker::Tail::Kept))
    });
    thread::sleep(Duration::from_millis(1500));
    let before = proxy.accepted();
    thread::sleep(Duration::from_millis(1500));
    assert!(proxy.accepted() <= before + 1, "only the connection that was there is tried again");
    (1..=3).for_each(|id| backend.control(|control| control.restart_broker(BrokerId(id))));
    write(&backend.bootstrap_servers(), &topic, 5..10);
    assert_eq!(read(&consumer, 5), [5, 6, 7, 8, 9]);
}

fn broker_can_request_a_rebootstrap(backend: &Backend) {
    let (proxy, _target) = proxy(backend);
    let topic = backend.topic(1);
    write(&backend.bootstrap_servers(), &topic, 0..5);
    let properties = [("topic.metadata.refresh.interval.ms", "200")];
    let consumer = Consumer::new(&config(&proxy.address(), &properties)).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
    let before = proxy.accepted();
    backend.control(|control| {
        let error = FaultAction::Error(ErrorCode::REBOOTSTRAP_REQUIRED);
        control.inject(Fault::new(error).api(ApiKey::Metadata).times(1));
    });
    let mut reported = None;
    assert!(eventually(|| {
        let records = consumer.poll(Duration::from_millis(100)).unwrap();
        reported = reported.take().or(records.events().iter().find_map(|event| match event {
            ConsumerEvent::Error(error) => Some(error.kind()),
            _ => None,
        }));
        proxy.accepted() > before
    }));
    assert_eq!(reported, Some(ErrorKind::Broker(ErrorCode::REBOOTSTRAP_REQUIRED)));
    write(&backend.bootstrap_servers(), &topic, 5..10);
    assert_eq!(read(&consumer, 5), [5, 6, 7, 8, 9]);
}

fn silent_brokers_cause_a_rebootstrap(backend: &Backend) {
    let (proxy, target) = proxy(backend);
    let topic = backend.topic(1);
    write(&backend.bootstrap_servers(), &topic, 0..5);
    let properties = [
        ("topic.recreate.policy", "reset"),
        ("auto.offset.reset", "earliest"),
        ("topic.metadata.refresh.interval.ms", "200"),
        ("metadata.recovery.rebootstrap.trigger.ms", "500"),
    ];
    let consumer = Consumer::new(&config(&proxy.address(), &properties)).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
    let elsewhere = Backend::embedded_with(|options| options.seed = Some(99));
    elsewhere.control(|control| control.create_topic(&topic, 1, 3)).unwrap();
    write(&elsewhere.bootstrap_servers(), &topic, 10..15);
    *target.lock().unwrap() = elsewhere.bootstrap_servers();
    // Connections stay open without responses: without the trigger that would last for socket.timeout.ms.
    backend.control(|control| control.inject(Fault::new(FaultAction::NeverRespond)));
    let began = Instant::now();
    assert_eq!(read(&consumer, 5), [10, 11, 12, 13, 14]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

fn empty_immediate_responses_cause_no_busy_loop(backend: &Backend) {
    let topic = backend.topic(1);
    let consumer = consumer(backend, &[("fetch.error.backoff.ms", "100")]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    for action in [
        FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        FaultAction::Error(ErrorCode::UNKNOWN_LEADER_EPOCH),
        FaultAction::Error(ErrorCode::OFFSET_OUT_OF_RANGE),
        FaultAction::Error(ErrorCode::UNKNOWN_TOPIC_ID),
        FaultAction::Error(ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
        FaultAction::ShiftCorrelationId(1),
        FaultAction::ReplaceResponse(vec![0, 0, 0, 4, 0, 0, 0, 0]),
        FaultAction::CloseConnection,
    ] {
        backend.control(|control| {
            control.clear_faults();
            control.inject(Fault::new(action.clone()).api(ApiKey::Fetch).topic(&topic));
            control.inject(Fault::new(action.clone()).api(ApiKey::Fetch));
            control.record_requests();
            control.take_requests();
        });
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            consumer.poll(Duration::from_millis(50)).unwrap();
        }
        let requests = backend.control(|control| control.take_requests());
        assert!(requests.len() <= 80, "{action:?}: {} requests in a second", requests.len());
    }
    backend.control(|control| control.clear_faults());
    write(&backend.bootstrap_servers(), &topic, 0..5);
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
}

/// Starts a server that forwards everything to the first of the brokers that it is given.
fn proxy(backend: &Backend) -> (FakeServer, Arc<Mutex<String>>) {
    let target = Arc::new(Mutex::new(backend.bootstrap_servers()));
    let reported = Arc::clone(&target);
    let server = FakeServer::start(move |client| {
        let address = reported.lock().unwrap().split(',').next().unwrap().to_owned();
        let Ok(broker) = TcpStream::connect(address) else { return };
        let (from, to) = (client.try_clone().unwrap(), broker.try_clone().unwrap());
        let upwards = thread::spawn(move || pass_on(from, to));
        pass_on(broker, client);
        upwards.join().unwrap();
    });
    (server, target)
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn consumer(backend: &Backend, properties: &[(&str, &str)]) -> Consumer {
    Consumer::new(&backend.config(properties)).expect("the consumer's configuration is right")
}

fn all(topic: &str, from: Offset) -> Vec<(&str, i32, Offset)> {
    (0..3).map(|partition| (topic, partition, from)).collect()
}

/// Writes numbers to partition 0.
fn write(servers: &str, topic: &str, numbers: std::ops::Range<u64>) {
    let producer = ottla::Producer::new(&config(servers, &[])).unwrap();
    for n in numbers {
        producer.send(topic, Record::new().partition(0).value(&n.to_string())).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

/// Polls until this number of records has arrived.
fn read(consumer: &Consumer, count: usize) -> Vec<u64> {
    let mut got = Vec::new();
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < TIMEOUT, "of {count} records only {got:?} came");
        let records = consumer.poll(Duration::from_millis(500)).unwrap();
        let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
        got.extend(records.iter().map(|message| number(message.value().unwrap())));
    }
    got
}
