//! The client's statistics match the events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla::{Admin, Consumer, Offset, Producer, Record};
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    statistics_of_a_producer_count_each_message_once,
    statistics_of_a_consumer_count_its_messages,
    statistics_count_messages_discarded_by_a_seek,
    statistics_are_reported_at_each_interval,
    auto_linger_delivers_everything_and_counts_its_reason,
    statistics_include_brokers_without_connections,
);

fn statistics_of_a_producer_count_each_message_once(backend: &Backend) {
    let topic = backend.topic(5);
    let (producer, reports) =
        backend.producer_with_reports(&[("broker.linger.ms", "20"), ("client.id", "c")]);
    let handle = producer.topic(&topic);
    for number in 0..1000 {
        handle.send(Record::new().value(b"0123456789").partition(number % 5).opaque(number as u64)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(1000);
    let statistics = producer.statistics().unwrap();
    assert_eq!((statistics.txmsgs, statistics.txmsg_bytes, statistics.msg_cnt), (1000, 10_000, 0));
    assert_eq!((statistics.kind, &*statistics.client_id), ("producer", "c"));
    let collector = statistics.collector();
    assert_eq!(collector.messages, 1000);
    let reasons = collector.sends_flush + collector.sends_linger + collector.sends_bytes;
    assert_eq!(reasons, collector.sends);
    assert_eq!(collector.messages_per_request.count() as i64, collector.sends);
    let requests: i64 = statistics.brokers.iter().filter_map(|broker| broker.requests.get("Produce")).sum();
    assert_eq!(requests, collector.sends);
    // Partition -1 stands for messages without a partition.
    let mut partitions = statistics.topics[&*topic].partitions.clone();
    partitions.remove(&-1);
    assert!(partitions.values().all(|partition| (partition.txmsgs, partition.acked_msgid) == (200, 200)));
    assert!(statistics.brokers.iter().any(|broker| broker.state == "UP" && broker.rtt.count() > 0));
    let json = statistics.to_json();
    assert!(json.contains("\"type\":\"producer\"") && json.contains("\"txmsgs\":1000"), "{json}");
    let leaders: Vec<_> = partitions.values().map(|partition| (partition.leader, partition.broker)).collect();
    assert!(leaders.iter().all(|(leader, broker)| *leader >= 0 && leader == broker), "{leaders:?}");
    assert!(partitions.values().all(|partition| !partition.unknown && partition.msgs_inflight == 0));
    let eos = statistics.eos.as_ref().expect("idempotence is the default");
    assert_eq!((eos.idemp_state, eos.epoch_cnt), ("Assigned", 1));
    std::thread::sleep(Duration::from_millis(20));
    let later = producer.statistics().unwrap().eos.expect("still");
    assert!(
        later.idemp_stateage >= eos.idemp_stateage + 20
            && later.idemp_stateage < statistics.age / 1000 + 10_000
    );
    producer.close(TIMEOUT).unwrap();
    assert!(producer.statistics().is_err());
}

fn statistics_include_brokers_without_connections(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    let record = Record::new().value("v").partition(0);
    producer.topic(&topic).send_tracked(record).unwrap().wait(TIMEOUT).unwrap();
    let statistics = producer.statistics().unwrap();
    let nodes: Vec<i64> =
        statistics.brokers.iter().map(|broker| broker.nodeid).filter(|id| *id >= 0).collect();
    let admin = Admin::new(&backend.config(&[])).unwrap();
    let mut expected: Vec<i64> =
        admin.describe_cluster(TIMEOUT).unwrap().brokers.iter().map(|broker| i64::from(broker.id)).collect();
    expected.sort_unstable();
    assert_eq!(sorted(nodes), expected, "each of them once");
    let mut idle = statistics.brokers.iter().filter(|broker| broker.nodeid >= 0 && broker.state == "INIT");
    assert!(idle.all(|broker| (broker.tx, broker.source) == (0, "learned")));
}

fn sorted(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_unstable();
    numbers
}

fn statistics_of_a_consumer_count_its_messages(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    for _ in 0..100 {
        producer.send(&topic, Record::new().value(b"x").partition(0)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let consumer = Consumer::new(&ottla_scenarios::config(&backend.bootstrap_servers(), &[])).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    let mut read = 0;
    while read < 100 {
        read += consumer.poll(TIMEOUT).unwrap().len();
    }
    let statistics = consumer.statistics().unwrap();
    let partition = &statistics.topics[&*topic].partitions[&0];
    assert_eq!((statistics.kind, statistics.rxmsgs, partition.rxmsgs), ("consumer", 100, 100));
    assert_eq!((partition.app_offset, partition.hi_offset), (100, 100));
    assert_eq!(partition.consumer_lag, -1, "nothing was committed");
    assert_eq!((partition.ls_offset, partition.lo_offset), (100, 0));
    assert_eq!(partition.fetch_state, "active");
    assert!(partition.leader >= 0 && partition.broker >= 0 && partition.desired && !partition.unknown);
    consumer.close(TIMEOUT).unwrap();
}

fn statistics_count_messages_discarded_by_a_seek(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    for _ in 0..100 {
        producer.send(&topic, Record::new().value(b"x").partition(0)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let consumer = Consumer::new(&ottla_scenarios::config(&backend.bootstrap_servers(), &[])).unwrap();
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    let fetched = || consumer.statistics().unwrap().topics[&*topic].partitions[&0].clone();
    assert!(eventually(|| fetched().fetchq_cnt == 100));
    consumer.seek(&topic, 0, Offset::At(90), TIMEOUT).unwrap();
    let mut read = 0;
    while read < 10 {
        read += consumer.poll(TIMEOUT).unwrap().len();
    }
    let counted = fetched();
    assert_eq!((counted.rx_ver_drops, counted.app_offset), (100, 100));
    assert!(counted.rxmsgs >= 110, "they were fetched twice: {}", counted.rxmsgs);
    consumer.close(TIMEOUT).unwrap();
}

fn statistics_are_reported_at_each_interval(backend: &Backend) {
    let reported = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reported);
    let config = ottla_scenarios::config(&backend.bootstrap_servers(), &[("statistics.interval.ms", "50")]);
    let producer = Producer::builder(&config)
        .on_statistics(move |statistics| {
            assert!(statistics.to_json().starts_with("{\"name\":\""));
            count.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    assert!(eventually(|| reported.load(Ordering::SeqCst) >= 3));
    producer.close(TIMEOUT).unwrap();
    let after = reported.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(reported.load(Ordering::SeqCst), after, "a closed client reports nothing more");
}

fn auto_linger_delivers_everything_and_counts_its_reason(backend: &Backend) {
    let topic = backend.topic(24);
    let (producer, reports) = backend.producer_with_reports(&[("broker.linger.ms", "auto")]);
    let handle = producer.topic(&topic);
    for number in 0..5000 {
        handle
            .send_blocking(
                Record::new().value(b"0123456789").partition(number % 24).opaque(number as u64),
                TIMEOUT,
            )
            .unwrap();
        if number % 500 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    assert!(eventually(|| producer.in_queue() == 0), "nothing waits for a flush");
    reports.assert_all_delivered(5000);
    let collector = producer.statistics().unwrap().collector();
    assert!(collector.sends_adaptive > 0 && collector.sends_linger == 0, "{collector:?}");
    assert!(collector.window >= 1);
    producer.close(TIMEOUT).unwrap();
}
