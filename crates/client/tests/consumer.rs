//! The consumer against the embedded broker over TCP.

use std::{
    future::{Future, poll_fn},
    net::{Ipv4Addr, SocketAddr},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
    time::{Duration, Instant},
};

use futures_core::Stream;
use ottla::{
    Config, Consumer, ConsumerEvent, Culprit, ErrorCode, ErrorKind, GroupOffset, Offset, OffsetSpec,
    Producer, Record,
};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster, Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use socket2::{Domain, Socket, Type};

const SECONDS: Duration = Duration::from_secs(10);

struct World {
    cluster: EmbeddedCluster,
    config: Config,
}

impl World {
    fn start(topic: &str, partitions: i32) -> Self {
        Self::with(topic, partitions, ClusterOptions::default())
    }

    fn with(topic: &str, partitions: i32, options: ClusterOptions) -> Self {
        let cluster = EmbeddedCluster::start(options).expect("a local port is free");
        cluster.control(|control| control.create_topic(topic, partitions, 3)).expect("the topic is new");
        let mut config = Config::new();
        config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
        Self { cluster, config }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.config.set(name, value).unwrap();
        self
    }

    /// Produces `count` records, numbered from `first`, round robin over the partitions.
    fn produce(&self, topic: &str, partitions: i32, first: u64, count: u64) {
        let mut config = Config::new();
        config.set("bootstrap.servers", &self.cluster.bootstrap_servers()).unwrap();
        let producer = Producer::new(&config).unwrap();
        let topic = producer.topic(topic);
        for number in first..first + count {
            let value = number.to_string();
            let partition = (number % partitions as u64) as i32;
            let record =
                Record::new().key("k").value(&value).partition(partition).timestamp(1000 + number as i64);
            topic.send_blocking(record, SECONDS).unwrap();
        }
        producer.flush(SECONDS).unwrap();
        producer.close(SECONDS).unwrap();
    }

    fn consumer(&self) -> Consumer {
        Consumer::new(&self.config).unwrap()
    }
}

/// Reads `count` records and returns the partition, offset and number of each, in the order of arrival.
fn read(consumer: &Consumer, count: usize) -> Vec<(i32, i64, u64)> {
    let mut seen = Vec::new();
    let deadline = Instant::now() + SECONDS;
    while seen.len() < count {
        assert!(Instant::now() < deadline, "only {} of {count} records came", seen.len());
        let records = consumer.poll(Duration::from_millis(200)).unwrap();
        for message in &records {
            let number = std::str::from_utf8(message.value().unwrap()).unwrap().parse().unwrap();
            assert_eq!(message.key(), Some(&b"k"[..]));
            seen.push((message.partition(), message.offset(), number));
        }
    }
    seen
}

fn nothing_comes(consumer: &Consumer, wait: Duration) {
    let deadline = Instant::now() + wait;
    while Instant::now() < deadline {
        let records = consumer.poll(Duration::from_millis(50)).unwrap();
        assert_eq!(records.iter().count(), 0, "{records:?}");
    }
}

#[test]
fn consumer_returns_every_record_once_and_in_order() {
    let world = World::start("t", 4);
    world.produce("t", 4, 0, 100_000);
    let consumer = world.consumer();
    let all: Vec<(&str, i32, Offset)> = (0..4).map(|p| ("t", p, Offset::Beginning)).collect();
    consumer.assign(&all).unwrap();
    let seen = read(&consumer, 100_000);
    for partition in 0..4 {
        let of_partition: Vec<(i64, u64)> = seen
            .iter()
            .filter(|(p, ..)| *p == partition)
            .map(|(_, offset, number)| (*offset, *number))
            .collect();
        let expected: Vec<(i64, u64)> = (0..25_000).map(|n| (n as i64, n * 4 + partition as u64)).collect();
        assert!(of_partition == expected, "partition {partition}");
        assert_eq!(consumer.position("t", partition), Some(25_000));
    }
    world.produce("t", 4, 100_000, 4);
    assert_eq!(read(&consumer, 4).len(), 4, "later records arrive, too");
    consumer.close(SECONDS).unwrap();
    assert_eq!(consumer.poll(SECONDS).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn consumer_starts_at_the_assigned_offset() {
    let world = World::start("t", 1).set("auto.offset.reset", "earliest").set("group.id", "g");
    world.produce("t", 1, 0, 1000);
    let consumer = world.consumer();
    for (from, expected) in [
        (Offset::Beginning, 0),
        (Offset::At(137), 137),
        (Offset::Timestamp(1500), 500),
        (Offset::Tail(10), 990),
        (Offset::Tail(5000), 0),
        (Offset::Committed, 0),
    ] {
        consumer.assign(&[("t", 0, from)]).unwrap();
        assert_eq!(read(&consumer, 1)[0].1, expected, "{from:?}");
    }
    consumer.assign(&[("t", 0, Offset::End)]).unwrap();
    while consumer.position("t", 0).is_none() {
        nothing_comes(&consumer, Duration::from_millis(20));
    }
    assert_eq!(consumer.position("t", 0), Some(1000));
    world.produce("t", 1, 1000, 1);
    assert_eq!(read(&consumer, 1), [(0, 1000, 1000)]);
}

#[test]
fn assign_fails_when_a_committed_offset_has_no_group() {
    let world = World::start("t", 1);
    let consumer = world.consumer();
    let error = consumer.assign(&[("t", 0, Offset::Committed)]).unwrap_err();
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
    assert!(error.to_string().contains("set group.id"), "{error}");
    assert_eq!(consumer.assignment(), []);
}

#[test]
fn committed_offsets_are_used_when_the_coordinator_refuses_at_first() {
    let world = World::start("t", 2).set("group.id", "readers");
    world.produce("t", 2, 0, 100);
    let refused = FaultAction::Error(ErrorCode::NOT_COORDINATOR);
    world.cluster.control(|control| control.inject(Fault::new(refused).api(ApiKey::OffsetCommit).times(1)));
    let consumer = world.consumer();
    let offset = |partition, offset| GroupOffset {
        metadata: "so far".to_owned(),
        ..GroupOffset::new("t", partition, offset)
    };
    let results = consumer.commit(&[offset(0, 7), offset(9, 1)], SECONDS).unwrap();
    assert_eq!(results[0], Ok(()));
    assert_eq!(
        results[1].as_ref().unwrap_err().kind(),
        ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    );
    let committed = consumer.committed(&[("t", 0), ("t", 1)], SECONDS).unwrap();
    assert_eq!(committed, [Ok(Some(offset(0, 7))), Ok(None)]);
    consumer.assign(&[("t", 0, Offset::Committed)]).unwrap();
    assert_eq!(consumer.next(SECONDS).unwrap().unwrap().offset(), 7);
    let nobodys = World::start("t", 1);
    let error = nobodys.consumer().commit(&[offset(0, 1)], SECONDS).unwrap_err();
    assert!(error.to_string().contains("group.id"), "{error}");
}

#[test]
fn retried_commit_does_not_overtake_a_later_one() {
    let world = World::start("t", 1).set("group.id", "readers");
    let refused = FaultAction::Error(ErrorCode::NOT_COORDINATOR);
    world.cluster.control(|control| control.inject(Fault::new(refused).api(ApiKey::OffsetCommit).times(1)));
    let consumer = world.consumer();
    let commit = |offset| consumer.commit_async(&[GroupOffset::new("t", 0, offset)], SECONDS);
    let (first, second) = (commit(5), commit(9));
    assert_eq!(block_on(second).unwrap(), [Ok(())]);
    assert_eq!(block_on(first).unwrap(), [Ok(())]);
    let committed = consumer.committed(&[("t", 0)], SECONDS).unwrap();
    assert_eq!(committed[0].as_ref().unwrap().as_ref().unwrap().offset, 9);
}

#[test]
fn offsets_asked_for_before_a_commit_do_not_show_it() {
    let world = World::start("t", 1).set("group.id", "readers");
    let consumer = world.consumer();
    let commit = |offset| consumer.commit_async(&[GroupOffset::new("t", 0, offset)], SECONDS);
    assert_eq!(block_on(commit(5)).unwrap(), [Ok(())]);
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS] {
        let refused = Fault::new(FaultAction::Error(code)).api(ApiKey::OffsetFetch).times(1);
        world.cluster.control(|control| control.inject(refused));
        let before = consumer.committed_async(&[("t", 0)], SECONDS);
        let later = commit(9);
        assert_eq!(block_on(later).unwrap(), [Ok(())]);
        let committed = block_on(before).unwrap();
        assert_eq!(committed[0].as_ref().unwrap().as_ref().unwrap().offset, 5, "{code}");
        assert_eq!(block_on(commit(5)).unwrap(), [Ok(())]);
    }
}

#[test]
fn stream_returns_records_until_the_consumer_is_closed() {
    let world = World::start("t", 1);
    world.produce("t", 1, 0, 1000);
    let consumer = world.consumer();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let mut stream = consumer.stream();
    let mut next = || block_on(poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
    for offset in 0..1000 {
        assert_eq!(next().unwrap().unwrap().offset(), offset);
    }
    world.produce("t", 1, 1000, 1);
    assert_eq!(next().unwrap().unwrap().offset(), 1000);
    let closing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        consumer.close(SECONDS)
    });
    assert!(next().is_none());
    closing.join().unwrap().unwrap();
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn seek_drops_the_records_that_were_fetched_before() {
    let world = World::start("t", 1);
    world.produce("t", 1, 0, 50_000);
    let consumer = world.consumer();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    read(&consumer, 1);
    for target in [40_000, 3, 49_999, 20_000] {
        assert_eq!(consumer.seek("t", 0, Offset::At(target), SECONDS).unwrap(), target);
        assert_eq!(consumer.position("t", 0), Some(target));
        let message = consumer.next(SECONDS).unwrap().expect("a record arrives");
        assert_eq!(message.offset(), target);
        assert_eq!(message.value(), Some(target.to_string().as_bytes()));
        assert_eq!(consumer.position("t", 0), Some(target + 1));
    }
    assert_eq!(consumer.seek("t", 0, Offset::Timestamp(1777), SECONDS).unwrap(), 777);
    assert_eq!(read(&consumer, 1)[0].1, 777);
    let error = consumer.seek("t", 1, Offset::At(0), SECONDS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State, "{error}");
}

#[test]
fn paused_partition_keeps_fetched_records_and_continues_without_a_gap() {
    let world = World::start("t", 2);
    world.produce("t", 2, 0, 20_000);
    let consumer = world.consumer();
    consumer.assign(&[("t", 0, Offset::Beginning), ("t", 1, Offset::Beginning)]).unwrap();
    let mut seen = Vec::new();
    for _ in 0..100 {
        let message = consumer.next(SECONDS).unwrap().expect("a record comes");
        seen.push((message.partition(), message.offset()));
    }
    consumer.pause(&[("t", 0)]).unwrap();
    let rest: Vec<(i32, i64)> = (0..10_000 - seen.iter().filter(|(p, _)| *p == 1).count())
        .map(|_| consumer.next(SECONDS).unwrap().expect("the other partition continues"))
        .map(|message| (message.partition(), message.offset()))
        .collect();
    assert!(rest.iter().all(|(partition, _)| *partition == 1));
    seen.extend(rest);
    nothing_comes(&consumer, Duration::from_millis(100));
    consumer.resume(&[("t", 0)]).unwrap();
    while seen.len() < 20_000 {
        for message in &consumer.poll(SECONDS).unwrap() {
            seen.push((message.partition(), message.offset()));
        }
    }
    for partition in 0..2 {
        let offsets: Vec<i64> =
            seen.iter().filter(|(p, _)| *p == partition).map(|(_, offset)| *offset).collect();
        assert!(offsets == (0..10_000).collect::<Vec<_>>(), "partition {partition}");
    }
}

#[test]
fn end_of_partition_is_reported_each_time_it_is_reached() {
    let world = World::start("t", 1).set("enable.partition.eof", "true");
    world.produce("t", 1, 0, 10);
    let consumer = world.consumer();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let mut ends = Vec::new();
    let mut records = 0;
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut produced = false;
    while ends.len() < 2 && Instant::now() < deadline {
        let batch = consumer.poll(Duration::from_millis(50)).unwrap();
        records += batch.iter().count();
        for event in batch.events() {
            if let ConsumerEvent::EndOfPartition { offset, .. } = event {
                ends.push(*offset);
            }
        }
        if ends == [10] && !std::mem::replace(&mut produced, true) {
            world.produce("t", 1, 10, 5);
        }
    }
    assert_eq!((records, ends), (15, vec![10, 15]));
}

#[test]
fn watermarks_and_timestamp_lookups_come_from_the_leaders() {
    let world = World::start("t", 3);
    world.produce("t", 3, 0, 300);
    let consumer = world.consumer();
    assert_eq!(consumer.watermarks("t", 1, SECONDS).unwrap(), (0, 100));
    let questions =
        [("t", 0, OffsetSpec::Timestamp(1030)), ("t", 2, OffsetSpec::Latest), ("t", 9, OffsetSpec::Earliest)];
    let results = consumer.list_offsets(&questions, SECONDS).unwrap();
    assert_eq!(results[0].as_ref().unwrap().offset, Some(10));
    assert_eq!(results[1].as_ref().unwrap().offset, Some(100));
    assert_eq!(results[2].as_ref().unwrap_err().kind(), ErrorKind::UnknownPartition);
}

#[test]
fn offset_out_of_range_is_reset_or_reported() {
    let world = World::start("t", 1).set("auto.offset.reset", "earliest");
    world.produce("t", 1, 0, 10);
    let consumer = world.consumer();
    consumer.assign(&[("t", 0, Offset::At(5000))]).unwrap();
    assert_eq!(read(&consumer, 1)[0].1, 0);
    let world = world.set("auto.offset.reset", "error");
    let consumer = world.consumer();
    consumer.assign(&[("t", 0, Offset::At(5000))]).unwrap();
    let error = consumer.next(SECONDS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OffsetReset, "{error}");
    assert!(error.to_string().contains("t [0]") && error.to_string().contains("5000"), "{error}");
}

#[test]
fn assign_fails_at_once_when_invalid_and_later_when_topic_is_unknown() {
    let world = World::start("t", 1);
    let consumer = world.consumer();
    let long = "x".repeat(300);
    for topic in ["", &long, "a b"] {
        let error = consumer.assign(&[(topic, 0, Offset::Beginning)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert!(consumer.assign(&[("t", -1, Offset::Beginning)]).is_err());
    assert!(consumer.assign(&[("t", 0, Offset::At(-5))]).is_err());
    assert!(consumer.pause(&[("t", 0)]).is_err());
    consumer.assign(&[("nowhere", 0, Offset::At(0))]).unwrap();
    let error = consumer.next(SECONDS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTopic, "{error}");
    consumer.assign(&[("t", 7, Offset::At(0))]).unwrap();
    let error = consumer.next(SECONDS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownPartition, "{error}");
}

#[test]
fn missing_topic_is_created_only_if_the_consumer_allows_it() {
    let world = World::start("t", 1);
    let consumer = world.consumer();
    consumer.assign(&[("missing", 0, Offset::Beginning)]).unwrap();
    assert_eq!(consumer.next(SECONDS).unwrap_err().kind(), ErrorKind::UnknownTopic);
    let exists = || world.cluster.control(|control| control.partition("missing", 0).is_some());
    assert!(!exists());
    let mut config = world.config.clone();
    config.set("allow.auto.create.topics", "true").unwrap();
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("missing", 0, Offset::Beginning)]).unwrap();
    let until = Instant::now() + SECONDS;
    while !exists() {
        assert!(Instant::now() < until, "no topic");
        let _ = consumer.poll(Duration::from_millis(10));
    }
    world.produce("missing", 1, 0, 1);
    assert_eq!(read(&consumer, 1).len(), 1);
}

#[test]
fn consumer_continues_while_leaders_move_and_connections_break() {
    let world = World::start("t", 3);
    world.produce("t", 3, 0, 30_000);
    let consumer = world.consumer();
    let all: Vec<(&str, i32, Offset)> = (0..3).map(|p| ("t", p, Offset::Beginning)).collect();
    consumer.assign(&all).unwrap();
    let mut seen: Vec<(i32, i64)> = Vec::new();
    let mut turn = 0;
    while seen.len() < 30_000 {
        let message = consumer.next(SECONDS).unwrap_or(None);
        let Some(message) = message else { panic!("only {} records came", seen.len()) };
        seen.push((message.partition(), message.offset()));
        turn += 1;
        if turn % 5000 == 0 {
            world.cluster.control(|control| control.rotate_leaders());
            consumer
                .seek("t", 0, Offset::At(seen.iter().filter(|(p, _)| *p == 0).count() as i64), SECONDS)
                .unwrap();
        }
    }
    for partition in 0..3 {
        let offsets: Vec<i64> =
            seen.iter().filter(|(p, _)| *p == partition).map(|(_, offset)| *offset).collect();
        assert!(offsets == (0..10_000).collect::<Vec<_>>(), "partition {partition}");
    }
}

#[test]
fn consumer_in_a_rack_reads_from_the_replica_there() {
    let options = ClusterOptions {
        racks: vec!["r1".to_owned(), "r2".to_owned(), "r3".to_owned()],
        rack_aware_fetch: true,
        ..ClusterOptions::default()
    };
    let world = World::with("t", 3, options).set("client.rack", "r2");
    world.produce("t", 3, 0, 9000);
    let consumer = world.consumer();
    let all: Vec<(&str, i32, Offset)> = (0..3).map(|p| ("t", p, Offset::Beginning)).collect();
    consumer.assign(&all).unwrap();
    assert_eq!(read(&consumer, 9000).len(), 9000);
    world.produce("t", 3, 9000, 3);
    assert_eq!(read(&consumer, 3).len(), 3);
}

/// Returns a port, and a socket that keeps it: it does not listen, so that a cluster still can.
fn reserved_port() -> (u16, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap().port(), socket)
}

#[test]
fn consumer_starts_over_when_the_cluster_is_restarted_empty() {
    let (port, _reserved) = reserved_port();
    let options = || ClusterOptions { brokers: 1, port, ..ClusterOptions::default() };
    let start = || {
        let cluster = EmbeddedCluster::start(options()).unwrap();
        cluster.control(|control| control.create_topic("restart", 1, 1)).unwrap();
        cluster
    };
    let mut config = Config::new();
    config.set("bootstrap.servers", &format!("127.0.0.1:{port}")).unwrap();
    config.set("auto.offset.reset", "earliest").unwrap();
    config.set("topic.recreate.policy", "reset").unwrap();
    let mut world = World { cluster: start(), config };
    world.produce("restart", 1, 0, 5);
    let consumer = world.consumer();
    consumer.assign(&[("restart", 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5).len(), 5);

    drop(std::mem::replace(&mut world.cluster, EmbeddedCluster::start(ClusterOptions::default()).unwrap()));
    world.cluster = start();
    world.produce("restart", 1, 100, 8);
    let expected: Vec<_> = (0..8).map(|offset| (0, offset, 100 + offset as u64)).collect();
    assert_eq!(read(&consumer, 8), expected, "no record of the new cluster is skipped");
    consumer.close(SECONDS).unwrap();
}
