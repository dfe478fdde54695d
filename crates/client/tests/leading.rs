//! Threads that wait do the I/O threads' work (`io.on.waiting.threads`). In a process of its own, because the clients of a process share
//! the I/O threads.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use ottla::{Admin, Config, Consumer, ErrorKind, NewTopic, Offset, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The tests count which threads do what, and one has a client that prevents it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions { partitions: 1, ..ClusterOptions::default() }).unwrap()
}

fn config(cluster: &EmbeddedCluster) -> Config {
    of_servers(&cluster.bootstrap_servers())
}

/// A configuration with these servers; nothing listens on port 1.
fn of_servers(servers: &str) -> Config {
    let mut config = Config::new();
    config.set("bootstrap.servers", servers).unwrap();
    config.set("linger.ms", "0").unwrap();
    config.set("io.on.waiting.threads", "true").unwrap();
    config
}

/// Sends one record after the other in each of the ways, and returns the offsets.
fn send_each_way(producer: &Producer, rounds: usize) -> Vec<i64> {
    let topic = producer.topic("led");
    let mut offsets = Vec::new();
    for _ in 0..rounds {
        let record = || Record::new().value("v");
        offsets.push(topic.deliver(record(), TIMEOUT).unwrap().offset.unwrap());
        let delivery = topic.send_tracked(record()).unwrap();
        offsets.push(delivery.wait(TIMEOUT).unwrap().offset.unwrap());
        topic.send(record()).unwrap();
        producer.flush(TIMEOUT).unwrap();
    }
    offsets
}

#[test]
fn threads_that_wait_at_the_same_time_all_get_their_results() {
    let _alone = alone();
    let cluster = cluster();
    let producer = Producer::new(&config(&cluster)).unwrap();
    let offsets: Vec<i64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| send_each_way(&producer, 50))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let different: BTreeSet<i64> = offsets.iter().copied().collect();
    assert_eq!((offsets.len(), different.len()), (600, 600));
    producer.close(TIMEOUT).unwrap();
}

#[test]
fn consumer_at_the_end_of_the_log_gets_each_record() {
    let _alone = alone();
    let cluster = cluster();
    let config = config(&cluster);
    let producer = Producer::new(&config).unwrap();
    let topic = producer.topic("read");
    topic.deliver(Record::new().value("first"), TIMEOUT).unwrap();
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("read", 0, Offset::Beginning)]).unwrap();
    assert_eq!(consumer.next(TIMEOUT).unwrap().unwrap().offset(), 0);
    for offset in 1..100 {
        topic.send(Record::new().value("v")).unwrap();
        assert_eq!(consumer.next(TIMEOUT).unwrap().unwrap().offset(), offset);
    }
    consumer.close(TIMEOUT).unwrap();
}

#[test]
fn administrative_calls_of_several_clients_end() {
    let _alone = alone();
    let cluster = cluster();
    thread::scope(|scope| {
        for client in 0..3 {
            let admin = Admin::new(&config(&cluster)).unwrap();
            scope.spawn(move || {
                for topic in 0..20 {
                    let topic = NewTopic::new(format!("of-{client}-{topic}"), 1, 1);
                    admin.create_topics(&[topic], TIMEOUT).unwrap();
                }
            });
        }
    });
}

#[test]
fn wait_in_the_lead_ends_after_its_timeout() {
    let _alone = alone();
    let config = of_servers("127.0.0.1:1");
    let producer = Producer::new(&config).unwrap();
    let (start, limit) = (Instant::now(), Duration::from_millis(150));
    let error = producer.deliver("unsent", Record::new().value("v"), limit).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= limit);
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("unsent", 0, Offset::Beginning)]).unwrap();
    assert!(consumer.next(limit).unwrap().is_none());
    producer.purge(ottla::Purge::ALL);
}

#[test]
fn close_by_another_thread_ends_a_wait_in_the_lead() {
    let _alone = alone();
    let config = of_servers("127.0.0.1:1");
    let producer = Producer::new(&config).unwrap();
    let delivery = producer.topic("unsent").send_tracked(Record::new().value("v")).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| delivery.wait(TIMEOUT));
        let _ = producer.close(Duration::from_millis(50));
        assert!(waiting.join().unwrap().is_err());
    });
}

#[test]
fn client_with_callbacks_keeps_waiting_threads_out() {
    let _alone = alone();
    let cluster = cluster();
    let config = config(&cluster);
    let waiting = Producer::new(&config).unwrap();
    send_each_way(&waiting, 5);
    let threads = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&threads);
    let reported = Producer::builder(&config)
        .on_delivery(move |_| {
            seen.lock().unwrap().insert(thread::current().name().unwrap_or_default().to_owned());
        })
        .build()
        .unwrap();
    for _ in 0..100 {
        reported.send("led", Record::new().value("reported")).unwrap();
        send_each_way(&waiting, 1);
    }
    reported.flush(TIMEOUT).unwrap();
    let threads = threads.lock().unwrap();
    assert!(!threads.is_empty());
    assert!(threads.iter().all(|name| name.starts_with("ottla-io-")), "{threads:?}");
}
