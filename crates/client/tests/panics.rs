//! A panic inside ends its client and no other, on whatever step of an I/O thread it comes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Consumer, ErrorKind, Event, Offset, Producer, Record, SendError};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
use ottla_net::injection::{Place, is_armed, panic_at};

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

/// Sends until the panic has come, and answers how many messages were taken.
fn send_until_broken(producer: &Producer, client_id: &str, place: Place) -> usize {
    let (mut taken, mut rounds) = (0, 0);
    until("the panic comes", || {
        // A topic that is new makes the cluster's owner ask about it.
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

fn check(place: Place, warm: bool, also: Option<Place>) {
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
    if also.is_none() {
        // Each message has its report, as one that failed or one that was delivered before.
        producer.flush(SOON).unwrap();
        assert_eq!(producer.in_queue(), 0);
        assert_eq!(good.load(Ordering::SeqCst) + bad.load(Ordering::SeqCst), taken, "{place:?} {warm}");
    }
    match producer.send("panics", Record::new().value(b"late")) {
        Err(SendError::Fatal(error)) => assert!(error.to_string().contains("injected"), "{error}"),
        other => panic!("{other:?}"),
    }
    // Who asks something of it is told that nobody answers, and does not wait.
    let start = Instant::now();
    let asked = producer.admin().describe_cluster(SOON);
    assert!(asked.is_err() && start.elapsed() < SOON / 2, "{asked:?}");

    for partition in 0..4 {
        healthy.send("panics", Record::new().value(b"value").partition(partition)).unwrap();
    }
    healthy.flush(SOON).unwrap();
    assert_eq!(delivered.load(Ordering::SeqCst), 4, "the other client goes on");
    let start = Instant::now();
    let _ = producer.close(Duration::from_millis(500));
    assert!(start.elapsed() < SOON / 2, "closing ends");
}

#[test]
fn a_panic_at_any_step_from_the_start_ends_its_client_and_no_other() {
    for place in Place::ALL {
        check(place, false, None);
    }
}

#[test]
fn a_panic_at_any_step_of_a_client_that_was_at_work_ends_its_client_and_no_other() {
    for place in Place::ALL.into_iter().filter(|place| *place != Place::BrokerStart) {
        check(place, true, None);
    }
}

#[test]
fn a_second_panic_while_the_first_is_cleared_away_changes_nothing_for_others() {
    for place in [Place::ClusterMail, Place::Socket, Place::Output] {
        check(place, true, Some(Place::Abandon));
    }
}

#[test]
fn a_consumer_that_panics_waits_for_nothing_and_another_one_goes_on() {
    let cluster = cluster();
    let producer = Producer::new(&config(&cluster, "writer")).unwrap();
    for place in [Place::BrokerMail, Place::Socket, Place::ClusterWake] {
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
        if place == Place::ClusterWake {
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
