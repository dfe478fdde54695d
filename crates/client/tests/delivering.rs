//! The calls that wait for room in the queue and then for the delivery.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use ottla::{Config, DeliverFuture, ErrorKind, Producer, Purge, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(20);

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions::default()).expect("a local port is free")
}

/// A producer whose queue has room for one record, and that knows no broker yet.
fn tiny_producer() -> Producer {
    let mut config = Config::new();
    config.set("queue.buffering.max.messages", "1").unwrap();
    config.set("drop.timeout.ms", "0").unwrap();
    Producer::builder(&config).servers_later().build().unwrap()
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SECONDS;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn deliver_returns_the_partition_and_offset_of_the_record() {
    let cluster = cluster();
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    let producer = Producer::new(&config).unwrap();
    let topic = producer.topic("t");
    for offset in 0..3 {
        let written = topic.deliver(Record::new().value("v").partition(1), SECONDS).unwrap();
        assert_eq!((&*written.topic, written.partition, written.offset), ("t", 1, Some(offset)));
    }
    assert_eq!(producer.deliver("t", Record::new().partition(1), SECONDS).unwrap().offset, Some(3));
    let error = topic.deliver(Record::new().partition(99), SECONDS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownPartition, "{error}");
}

#[test]
fn expired_record_error_says_whether_it_was_sent() {
    let producer = tiny_producer();
    let topic = producer.topic("t");
    let short = Duration::from_millis(30);
    let queued = topic.deliver(Record::new().value("1"), short).unwrap_err();
    assert_eq!(queued.kind(), ErrorKind::TimedOut, "{queued}");
    let refused = topic.deliver(Record::new().value("2"), short).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::QueueFull, "{refused}");
    assert!(refused.to_string().contains("not sent") && queued.to_string().contains("may yet"));
    assert_eq!(producer.in_queue(), 1);
}

#[test]
fn deliver_async_waits_for_room_and_then_for_the_delivery() {
    let (producer, cluster) = (tiny_producer(), cluster());
    let topic = producer.topic("t");
    let mut first = topic.deliver_async(Record::new().value("1").partition(0));
    let mut second = topic.deliver_async(Record::new().value("2").partition(0));
    assert!(!first.is_queued() && poll(&mut first).is_pending() && first.is_queued());
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert!(pin!(&mut second).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(!second.is_queued());
    producer.add_bootstrap_servers(&cluster.bootstrap_servers()).unwrap();
    let resolve = |future: &mut DeliverFuture<'_>| {
        let mut result = None;
        eventually("a delivery", || match poll(future) {
            Poll::Ready(written) => {
                result = Some(written.unwrap().offset);
                true
            }
            Poll::Pending => false,
        });
        result.flatten()
    };
    assert_eq!(resolve(&mut first), Some(0));
    eventually("a wake-up when there is room", || wakes.0.load(Ordering::SeqCst) > 0);
    assert_eq!(resolve(&mut second), Some(1));
    let again = poll(&mut second);
    assert!(matches!(again, Poll::Ready(Err(error)) if error.kind() == ErrorKind::State));
}

#[test]
fn dropped_deliver_future_sends_the_record_wholly_or_not_at_all() {
    let (producer, cluster) = (tiny_producer(), cluster());
    let topic = producer.topic("t");
    let mut queued = topic.deliver_async(Record::new().value("queued").partition(0));
    assert!(poll(&mut queued).is_pending() && queued.is_queued());
    let mut waiting = topic.deliver_async(Record::new().value("waiting").partition(0));
    assert!(poll(&mut waiting).is_pending() && !waiting.is_queued());
    let unpolled = topic.deliver_async(Record::new().value("unpolled").partition(0));
    drop((queued, waiting, unpolled));
    assert_eq!(producer.in_queue(), 1);
    producer.add_bootstrap_servers(&cluster.bootstrap_servers()).unwrap();
    producer.flush(SECONDS).unwrap();
    let next = topic.deliver(Record::new().value("next").partition(0), SECONDS).unwrap();
    assert_eq!(next.offset, Some(1), "only the queued record was written");
}

#[test]
fn deliver_fails_at_once_in_a_delivery_callback() {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let held = Arc::new(Mutex::new(None::<Producer>));
    let (kept, producer_of_callback) = (Arc::clone(&errors), Arc::clone(&held));
    let producer = Producer::builder(&Config::new())
        .servers_later()
        .on_delivery(move |_| {
            let Some(producer) = producer_of_callback.lock().unwrap().clone() else { return };
            let error = producer.deliver("t", Record::new(), SECONDS).unwrap_err();
            kept.lock().unwrap().push(error.kind());
        })
        .build()
        .unwrap();
    *held.lock().unwrap() = Some(producer.clone());
    producer.send("t", Record::new()).unwrap();
    producer.purge(Purge::ALL);
    eventually("the callback", || *errors.lock().unwrap() == [ErrorKind::State]);
    held.lock().unwrap().take();
}
