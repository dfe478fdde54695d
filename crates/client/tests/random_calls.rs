//! Random calls from fixed seeds, with futures that are dropped at any point and a close at any point. Whatever the order: each
//! accepted record has one report, offsets ascend between seeks, every call ends, and no call begins anything after the close.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ottla::{Admin, Config, Consumer, ErrorKind, GroupOffset, Offset, OffsetSpec, Producer, Purge, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

/// The bound of everything that waits; only a failure takes so long.
const BOUND: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);
const SEEDS: u64 = 40;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    fn partition(&mut self) -> i32 {
        i32::try_from(self.below(2)).unwrap()
    }
}

/// A future that was polled some times, and may be dropped before its end.
type Waiting = Pin<Box<dyn Future<Output = ()>>>;

/// Polls a future up to two times; returns it if it is kept.
fn begin(random: &mut Random, future: impl Future + 'static) -> Option<Waiting> {
    let mut future: Waiting = Box::pin(async move {
        future.await;
    });
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..random.below(3) {
        if future.as_mut().poll(&mut context) == Poll::Ready(()) {
            return None;
        }
    }
    (random.below(2) == 0).then_some(future)
}

/// Runs a world per seed, each of which has to end.
fn each_seed(world: fn(&Config, u64)) {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    cluster.control(|control| control.create_topic("t", 2, 1)).unwrap();
    let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    let (done, ended) = mpsc::channel();
    let worlds = thread::spawn(move || {
        for seed in 0..SEEDS {
            world(&config, seed);
            done.send(seed).unwrap();
        }
    });
    for seed in 0..SEEDS {
        match ended.recv_timeout(BOUND) {
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the world of seed {seed} hangs"),
            // Its panic says more.
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Ok(ended) => assert_eq!(ended, seed),
        }
    }
    worlds.join().unwrap();
}

#[test]
fn producer_reports_each_record_once_in_any_order_of_calls() {
    each_seed(produce);
}

fn produce(config: &Config, seed: u64) {
    let mut random = Random(seed);
    let (sender, reports) = mpsc::channel();
    let producer = Producer::builder(config)
        .on_delivery(move |batch| {
            for report in batch.iter().filter(|report| report.opaque > 0) {
                let _ = sender.send(report.opaque);
            }
        })
        .build()
        .unwrap();
    let (mut accepted, mut waiting) = (Vec::new(), Vec::new());
    let calls = random.below(40);
    for number in 1..=calls {
        let record = Record::new().value("v").partition(random.partition());
        match random.below(9) {
            0 => waiting.extend(begin(&mut random, producer.flush_async())),
            1 => {
                let _ = producer.flush(SHORT);
            }
            2 => producer.purge(Purge::ALL),
            3 => producer.pause(&[("t", random.partition())]),
            4 => producer.resume(&[("t", 0), ("t", 1)]),
            5 if random.below(2) == 0 => drop(producer.deliver_async("t", record)),
            _ => {
                if producer.send("t", record.opaque(number)).is_ok() {
                    accepted.push(number);
                }
            }
        }
    }
    producer.resume(&[("t", 0), ("t", 1)]);
    match random.below(3) {
        0 => drop(producer),
        1 => {
            let _ = producer.close(SHORT);
            assert!(
                producer.send("t", Record::new().value("v")).is_err(),
                "seed {seed}: sent after the close"
            );
        }
        _ => {
            producer.close(BOUND).unwrap();
            assert!(
                producer.send("t", Record::new().value("v")).is_err(),
                "seed {seed}: sent after the close"
            );
        }
    }
    drop(waiting);
    let mut reported: Vec<u64> =
        accepted.iter().map(|_| reports.recv_timeout(BOUND).expect("a report is missing")).collect();
    reported.sort_unstable();
    assert_eq!(reported, accepted, "seed {seed}");
    // The last client is gone, so that the channel closes.
    assert!(reports.try_recv().is_err(), "seed {seed}: a record has two reports");
}

#[test]
fn consumer_reads_in_order_and_ends_in_any_order_of_calls() {
    each_seed(consume);
}

fn consume(config: &Config, seed: u64) {
    let mut random = Random(seed);
    let producer = Producer::new(config).unwrap();
    for partition in [0, 1] {
        producer.send("t", Record::new().value("v").partition(partition)).unwrap();
    }
    producer.close(BOUND).unwrap();
    let mut config = config.clone();
    config.set("group.id", &format!("g{seed}")).unwrap();
    config.set("auto.offset.reset", "earliest").unwrap();
    let consumer = Consumer::new(&config).unwrap();
    let (mut last, mut waiting) = (HashMap::new(), Vec::new());
    let calls = random.below(30);
    for _ in 0..calls {
        let partition = random.partition();
        match random.below(12) {
            0 => {
                last.clear();
                consumer.assign(&[("t", 0, Offset::Beginning), ("t", 1, Offset::Beginning)]).unwrap();
            }
            1 => {
                last.remove(&partition);
                let _ = consumer.incremental_assign(&[("t", partition, Offset::Beginning)]);
            }
            2 => {
                last.remove(&partition);
                let _ = consumer.incremental_unassign(&[("t", partition)]);
            }
            3 => {
                last.remove(&partition);
                waiting.extend(begin(&mut random, consumer.seek_async("t", partition, Offset::Beginning)));
            }
            4 => {
                let _ = consumer.pause(&[("t", partition)]);
            }
            5 => {
                let _ = consumer.resume(&[("t", partition)]);
            }
            6 => {
                let offset = GroupOffset::new("t", partition, 1);
                waiting.extend(begin(&mut random, consumer.commit_async(&[offset], BOUND)));
            }
            7 => waiting.extend(begin(&mut random, consumer.committed_async(&[("t", partition)], BOUND))),
            _ => {
                if let Ok(Some(message)) = consumer.next(SHORT) {
                    let earlier = last.insert(message.partition(), message.offset());
                    assert!(
                        earlier.is_none_or(|earlier| earlier < message.offset()),
                        "seed {seed}: {earlier:?}"
                    );
                }
            }
        }
    }
    consumer.close(BOUND).unwrap();
    drop(waiting);
    assert!(consumer.is_closed());
    // Records that were fetched before the close may still be read, and nothing after them.
    let ending = (0..100).find_map(|_| consumer.next(BOUND).err());
    assert_eq!(ending.map(|error| error.kind()), Some(ErrorKind::Closed), "seed {seed}");
    assert_eq!(
        consumer.assign(&[("t", 0, Offset::End)]).unwrap_err().kind(),
        ErrorKind::Closed,
        "seed {seed}"
    );
}

#[test]
fn admin_calls_may_be_dropped_at_any_point() {
    each_seed(administer);
}

fn administer(config: &Config, seed: u64) {
    let mut random = Random(seed);
    let admin = Admin::new(config).unwrap();
    let mut waiting = Vec::new();
    let calls = random.below(12);
    for _ in 0..calls {
        let partition = random.partition();
        match random.below(3) {
            0 => {
                let call = admin.list_offsets_async(&[("t", partition, OffsetSpec::Latest)], BOUND);
                waiting.extend(begin(&mut random, call));
            }
            1 => waiting.extend(begin(&mut random, admin.list_topics_async(BOUND))),
            _ => assert!(admin.list_topics(BOUND).unwrap().contains(&"t".to_owned())),
        }
    }
    drop(admin);
    drop(waiting);
}
