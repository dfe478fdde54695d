//! A panic at any step of an I/O thread ends its client, and no other.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Consumer, ErrorKind, Event, Offset, PersistenceStatus, Producer, Record, SendError};
use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, Fault, FaultAction};
use ottla_net::injection::{InjectionPoint, is_armed, panic_at};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

const SOON: Duration = Duration::from_secs(20);

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions { brokers: 2, partitions: 4, ..ClusterOptions::default() }).unwrap()
}

fn config(cluster: &EmbeddedCluster, client_id: &str) -> Config {
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("client.id", client_id).unwrap();
    config.set("linger.ms", "5").unwrap();
    config
}

fn counting(config: &Config) -> (Producer, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (good, bad) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (delivered, failed) = (Arc::clone(&good), Arc::clone(&bad));
    let producer = Producer::builder(config)
        .on_delivery(move |batch| {
            let counter = if batch.error().is_none() { &delivered } else { &failed };
            counter.fetch_add(batch.len(), Ordering::SeqCst);
        })
        .build()
        .unwrap();
    (producer, good, bad)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn fatal_of(producer: &Producer) -> ottla::Error {
    let mut found = None;
    until("a fatal event comes", || {
        while let Some(event) = producer.poll_event() {
            if let Event::Fatal(error) = event {
                assert!(found.replace(error).is_none(), "one fatal event");
            }
        }
        found.is_some()
    });
    found.unwrap()
}

/// Sends until the panic, and returns the number of messages that were queued.
fn send_until_broken(producer: &Producer, client_id: &str, place: InjectionPoint) -> usize {
    let (mut taken, mut rounds) = (0, 0);
    until("the panic comes", || {
        // A new topic makes the cluster actor request its metadata.
        rounds += 1;
        producer.topic(&format!("asked-for-{rounds}"));
        for partition in 0..4 {
            match producer.send("panics", Record::new().value(b"value").partition(partition)) {
                Ok(()) => taken += 1,
                Err(SendError::Fatal(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        !is_armed(client_id, place)
    });
    taken
}

fn check(place: InjectionPoint, warm: bool, also: Option<InjectionPoint>) {
    let cluster = cluster();
    let (healthy, delivered, _) = counting(&config(&cluster, "healthy"));
    let client_id = format!("broken-{place:?}-{warm}-{}", also.is_some());
    let mut taken = 0;
    if !warm {
        panic_at(&client_id, place);
    }
    if let Some(also) = also {
        panic_at(&client_id, also);
    }
    let (producer, good, bad) = counting(&config(&cluster, &client_id));
    if warm {
        for partition in 0..4 {
            producer.send("panics", Record::new().value(b"first").partition(partition)).unwrap();
            taken += 1;
        }
        producer.flush(SOON).unwrap();
        panic_at(&client_id, place);
    }
    taken += send_until_broken(&producer, &client_id, place);

    let error = fatal_of(&producer);
    assert_eq!(error.kind(), ErrorKind::Bug);
    assert!(error.to_string().contains(&format!("injected at {place:?}")), "{error}");
    // Each message is reported: as failed, or as delivered before the panic.
    producer.flush(SOON).unwrap();
    assert_eq!(producer.in_queue(), 0);
    assert_eq!(good.load(Ordering::SeqCst) + bad.load(Ordering::SeqCst), taken, "{place:?} {warm} {also:?}");
    match producer.send("panics", Record::new().value(b"late")) {
        Err(SendError::Fatal(error)) => assert!(error.to_string().contains("injected"), "{error}"),
        other => panic!("{other:?}"),
    }
    // Further calls fail at once.
    let start = Instant::now();
    let asked = producer.admin().describe_cluster(SOON);
    assert!(asked.is_err() && start.elapsed() < SOON / 2, "{asked:?}");

    for partition in 0..4 {
        healthy.send("panics", Record::new().value(b"value").partition(partition)).unwrap();
    }
    healthy.flush(SOON).unwrap();
    assert_eq!(delivered.load(Ordering::SeqCst), 4, "the other client continues");
    let start = Instant::now();
    let _ = producer.close(Duration::from_millis(500));
    assert!(start.elapsed() < SOON / 2, "closing ends");
}

#[test]
fn panic_at_any_step_of_the_start_ends_its_client_alone() {
    for place in InjectionPoint::ALL {
        check(place, false, None);
    }
}

#[test]
fn panic_at_any_step_of_a_running_client_ends_it_alone() {
    for place in InjectionPoint::ALL.into_iter().filter(|place| *place != InjectionPoint::BrokerStart) {
        check(place, true, None);
    }
}

#[test]
fn second_panic_during_cleanup_ends_its_client_alone() {
    for place in [InjectionPoint::ClusterMessage, InjectionPoint::Socket, InjectionPoint::Output] {
        check(place, true, Some(InjectionPoint::Abandon));
    }
}

/// Runs a producer whose only message is refused until its partition moves to the other broker, where it panics.
fn check_moving(place: InjectionPoint) {
    let cluster = cluster();
    cluster.control(|control| {
        control.create_topic("moves", 1, 2).unwrap();
        assert!(control.move_leader("moves", 0, Some(BrokerId(1))));
        let refuse = FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        control.inject(Fault::new(refuse).api(ApiKey::Produce));
        control.record_requests();
    });
    let client_id = format!("moving-{place:?}");
    let (producer, good, bad) = counting(&config(&cluster, &client_id));
    producer.send("moves", Record::new().value(b"waits for a retry").partition(0)).unwrap();
    until("the message was refused", || {
        cluster.control(|control| control.requests().iter().any(|request| request.api == ApiKey::Produce))
    });
    panic_at(&client_id, place);
    assert!(cluster.control(|control| control.move_leader("moves", 0, Some(BrokerId(2)))));
    until("the panic comes", || !is_armed(&client_id, place));

    let error = fatal_of(&producer);
    assert!(error.to_string().contains(&format!("injected at {place:?}")), "{error}");
    producer.flush(SOON).unwrap();
    assert_eq!((good.load(Ordering::SeqCst), bad.load(Ordering::SeqCst), producer.in_queue()), (0, 1, 0));
}

#[test]
fn waiting_retries_are_reported_when_a_panic_hits_a_partition_given_back() {
    check_moving(InjectionPoint::Released);
}

#[test]
fn waiting_retries_are_reported_when_a_panic_hits_an_adopted_partition() {
    check_moving(InjectionPoint::Adopted);
}

#[test]
fn messages_in_flight_are_possibly_written_when_cleanup_panics() {
    let cluster = cluster();
    cluster.control(|control| {
        control.inject(Fault::new(FaultAction::NeverRespond).api(ApiKey::Produce));
        control.record_requests();
    });
    let client_id = "in-flight";
    let statuses = Arc::<Mutex<Vec<PersistenceStatus>>>::default();
    let reported = Arc::clone(&statuses);
    let producer = Producer::builder(&config(&cluster, client_id))
        .on_delivery(move |batch| reported.lock().unwrap().extend(batch.iter().map(|report| report.status)))
        .build()
        .unwrap();
    producer.send("stays", Record::new().value(b"in flight").partition(0)).unwrap();
    until("the message is in flight", || {
        cluster.control(|control| control.requests().iter().any(|request| request.api == ApiKey::Produce))
    });
    panic_at(client_id, InjectionPoint::Abandon);
    panic_at(client_id, InjectionPoint::BrokerWake);
    until("the panics come", || {
        let _ = producer.send("stays", Record::new().value(b"wakes").partition(0));
        [InjectionPoint::BrokerWake, InjectionPoint::Abandon].iter().all(|place| !is_armed(client_id, *place))
    });
    producer.flush(SOON).unwrap();
    assert_eq!(producer.in_queue(), 0);
    assert_eq!(statuses.lock().unwrap()[0], PersistenceStatus::PossiblyPersisted);
}

#[test]
fn panic_while_a_host_is_resolved_ends_its_client_alone() {
    let cluster = cluster();
    let by_name = cluster.bootstrap_servers().replace("127.0.0.1", "localhost");
    let named = |client_id: &str| {
        let mut config = config(&cluster, client_id);
        config.set("bootstrap.servers", &by_name).unwrap();
        config.set("broker.address.family", "v4").unwrap();
        counting(&config)
    };
    let client_id = "resolves";
    panic_at(client_id, InjectionPoint::Resolve);
    let (producer, good, bad) = named(client_id);
    let sent = producer.send("names", Record::new().value(b"waits for the topic"));
    let error = fatal_of(&producer);
    assert!(error.to_string().contains("injected at Resolve"), "{error}");
    producer.flush(SOON).unwrap();
    let reported = good.load(Ordering::SeqCst) + bad.load(Ordering::SeqCst);
    assert_eq!((reported, producer.in_queue()), (usize::from(sent.is_ok()), 0));
    producer.close(SOON).unwrap();

    let (healthy, delivered, _) = named("resolves-too");
    healthy.send("names", Record::new().value(b"value")).unwrap();
    healthy.flush(SOON).unwrap();
    assert_eq!(delivered.load(Ordering::SeqCst), 1, "the resolver still serves other clients");
}

#[test]
fn consumer_calls_end_when_it_panics_and_other_clients_continue() {
    let cluster = cluster();
    let producer = Producer::new(&config(&cluster, "writer")).unwrap();
    for place in [InjectionPoint::BrokerMessage, InjectionPoint::Socket, InjectionPoint::ClusterWake] {
        let client_id = format!("reader-{place:?}");
        let broken = Consumer::new(&config(&cluster, &client_id)).unwrap();
        let healthy = Consumer::new(&config(&cluster, "healthy-reader")).unwrap();
        for consumer in [&broken, &healthy] {
            consumer.assign(&[("read", 0, Offset::End)]).unwrap();
        }
        let mut received = 0;
        let mut receive = |sends: bool| {
            if sends {
                producer.send("read", Record::new().value(b"value").partition(0)).unwrap();
            }
            received += healthy.poll(Duration::from_millis(20)).map_or(0, |records| records.len());
            received
        };
        panic_at(&client_id, place);
        if place == InjectionPoint::ClusterWake {
            broken.assign(&[("read", 1, Offset::End)]).unwrap();
        }
        until("the panic comes", || {
            receive(true);
            !is_armed(&client_id, place)
        });
        let before = receive(false);
        until("the other one goes on", || receive(true) > before + 5);
        until("nothing comes any more", || {
            let start = Instant::now();
            let _ = broken.poll(Duration::from_secs(60));
            start.elapsed() < SOON
        });
        let start = Instant::now();
        broken.close(SOON).unwrap();
        assert!(start.elapsed() < SOON / 2);
        healthy.close(SOON).unwrap();
    }
}
