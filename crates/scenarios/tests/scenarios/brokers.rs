//! Brokers that move, fall silent, throttle, or close what nobody uses.

use std::{
    io,
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use ottla::{Consumer, ConsumerEvent, ErrorCode, ErrorKind, Offset, Record};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, FakeServer, PATIENCE, config, eventually};

ottla_scenarios::run_on_embedded!(
    idle_connections_are_closed_by_somebody_and_nobody_hears_of_it,
    the_clients_own_idle_limit_is_nothing_to_tell,
    a_throttled_consumer_pauses_and_loses_nothing,
    a_throttle_time_in_an_old_version_is_over_when_it_is_told,
    a_cluster_that_moved_is_found_again_from_the_bootstrap_servers,
    without_recovery_the_known_brokers_are_all_there_is,
    a_broker_may_send_the_client_back_to_the_bootstrap_servers,
    brokers_that_are_silent_for_too_long_are_given_up_for_the_bootstrap_servers,
    a_broker_that_answers_at_once_with_nothing_is_not_asked_in_a_loop,
);

fn idle_connections_are_closed_by_somebody_and_nobody_hears_of_it(backend: &Backend) {
    let topic = backend.topic(3);
    let producer = backend.producer(&[]);
    let consumer = consumer(backend, &[]);
    consumer.assign(&all(&topic, Offset::Beginning)).unwrap();
    for round in 0..2u64 {
        let value = round.to_string();
        for n in 0..3 {
            let record = Record::new().partition(n).value(&value);
            producer.topic(&topic).send_tracked(record).unwrap().wait(PATIENCE).unwrap();
        }
        assert_eq!(read(&consumer, 3), vec![round; 3]);
        consumer.pause(&[(&topic, 0), (&topic, 1), (&topic, 2)]).unwrap();
        thread::sleep(Duration::from_millis(2000));
        backend.control(|control| control.close_connections(None));
        thread::sleep(Duration::from_millis(100));
        assert_eq!(producer.poll_event(), None, "round {round}");
        let records = consumer.poll(Duration::from_millis(100)).unwrap();
        assert_eq!(records.events(), [], "round {round}");
        consumer.resume(&[(&topic, 0), (&topic, 1), (&topic, 2)]).unwrap();
    }
}

fn the_clients_own_idle_limit_is_nothing_to_tell(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("connections.max.idle.ms", "100")]);
    let send = || producer.topic(&topic).send_tracked(Record::new().value("1")).unwrap().wait(PATIENCE);
    send().unwrap();
    assert!(eventually(|| backend.control(|control| control.connections(None).is_empty())));
    assert_eq!(producer.poll_event(), None);
    send().unwrap();
    assert_eq!(producer.poll_event(), None);
}

fn a_throttled_consumer_pauses_and_loses_nothing(backend: &Backend) {
    let (fetches, took) = throttled(backend);
    assert!(took >= Duration::from_millis(1500), "{took:?}");
    assert!(fetches <= 2, "{fetches} fetches while it was to pause");
}

fn a_throttle_time_in_an_old_version_is_over_when_it_is_told(backend: &Backend) {
    backend.control(|control| control.set_api_versions(None, ApiKey::Fetch, 4, 7));
    let (_, took) = throttled(backend);
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

/// How many fetches the leader got within a throttle time of 2 s, and how long a new record took.
fn throttled(backend: &Backend) -> (usize, Duration) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    let send = |n: &str| producer.topic(&topic).send_tracked(Record::new().value(n)).unwrap().wait(PATIENCE);
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    send("0").unwrap();
    assert_eq!(read(&consumer, 1), [0]);
    // The fetch that is under way now is let through.
    thread::sleep(Duration::from_millis(100));
    backend.control(|control| {
        let throttle = FaultAction::Throttle(Duration::from_millis(2000));
        control.inject(Fault::new(throttle).api(ApiKey::Fetch).times(1));
    });
    send("1").unwrap();
    assert_eq!(read(&consumer, 1), [1]);
    send("2").unwrap();
    assert_eq!(read(&consumer, 1), [2], "the answer to this fetch tells the throttle time");
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

fn a_cluster_that_moved_is_found_again_from_the_bootstrap_servers(backend: &Backend) {
    let (proxy, target) = proxy(backend);
    let topic = backend.topic(1);
    write(&backend.bootstrap_servers(), &topic, 0..5);
    let properties = [("topic.recreate.policy", "reset"), ("auto.offset.reset", "earliest")];
    let consumer = Consumer::new(&config(&proxy.address(), &properties)).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
    // The cluster is gone with all that was known of it; another one is behind the bootstrap address.
    (1..=3).for_each(|id| {
        backend.control(|control| control.kill_broker(BrokerId(id), ottla_embedded_broker::Tail::Kept))
    });
    let elsewhere = Backend::embedded_with(|options| options.seed = 99);
    elsewhere.control(|control| control.create_topic(&topic, 1, 3)).unwrap();
    write(&elsewhere.bootstrap_servers(), &topic, 10..15);
    *target.lock().unwrap() = elsewhere.bootstrap_servers();
    assert_eq!(read(&consumer, 5), [10, 11, 12, 13, 14]);
}

fn without_recovery_the_known_brokers_are_all_there_is(backend: &Backend) {
    let (proxy, target) = proxy(backend);
    let topic = backend.topic(1);
    write(&backend.bootstrap_servers(), &topic, 0..5);
    let properties = [("metadata.recovery.strategy", "none")];
    let consumer = Consumer::new(&config(&proxy.address(), &properties)).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), [0, 1, 2, 3, 4]);
    let elsewhere = Backend::embedded_with(|options| options.seed = 99);
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

fn a_broker_may_send_the_client_back_to_the_bootstrap_servers(backend: &Backend) {
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
    let mut told = None;
    assert!(eventually(|| {
        let records = consumer.poll(Duration::from_millis(100)).unwrap();
        told = told.take().or(records.events().iter().find_map(|event| match event {
            ConsumerEvent::Error(error) => Some(error.kind()),
            _ => None,
        }));
        proxy.accepted() > before
    }));
    assert_eq!(told, Some(ErrorKind::Broker(ErrorCode::REBOOTSTRAP_REQUIRED)));
    write(&backend.bootstrap_servers(), &topic, 5..10);
    assert_eq!(read(&consumer, 5), [5, 6, 7, 8, 9]);
}

fn brokers_that_are_silent_for_too_long_are_given_up_for_the_bootstrap_servers(backend: &Backend) {
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
    let elsewhere = Backend::embedded_with(|options| options.seed = 99);
    elsewhere.control(|control| control.create_topic(&topic, 1, 3)).unwrap();
    write(&elsewhere.bootstrap_servers(), &topic, 10..15);
    *target.lock().unwrap() = elsewhere.bootstrap_servers();
    // Connections stay and nobody answers: without the trigger that would last for socket.timeout.ms.
    backend.control(|control| control.inject(Fault::new(FaultAction::NeverAnswer)));
    let began = Instant::now();
    assert_eq!(read(&consumer, 5), [10, 11, 12, 13, 14]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

fn a_broker_that_answers_at_once_with_nothing_is_not_asked_in_a_loop(backend: &Backend) {
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
        FaultAction::ReplaceAnswer(vec![0, 0, 0, 4, 0, 0, 0, 0]),
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

/// A server that passes everything on to the first of the brokers that it is told.
fn proxy(backend: &Backend) -> (FakeServer, Arc<Mutex<String>>) {
    let target = Arc::new(Mutex::new(backend.bootstrap_servers()));
    let told = Arc::clone(&target);
    let server = FakeServer::start(move |client| {
        let address = told.lock().unwrap().split(',').next().unwrap().to_owned();
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
    producer.close(PATIENCE).unwrap();
}

/// Polls until so many records are there.
fn read(consumer: &Consumer, count: usize) -> Vec<u64> {
    let mut got = Vec::new();
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < PATIENCE, "of {count} records only {got:?} came");
        let records = consumer.poll(Duration::from_millis(500)).unwrap();
        let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse::<u64>().unwrap();
        got.extend(records.iter().map(|message| number(message.value().unwrap())));
    }
    got
}
