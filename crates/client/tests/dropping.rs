//! Dropping clients: threads end, and queued records are delivered or reported.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, ErrorKind, NextCall, Producer, Record};
use ottla_embedded_broker::{ApiKey, ClusterOptions, EmbeddedCluster, Fault, FaultAction};

#[test]
fn producer_can_be_dropped_at_any_time_of_its_start() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let servers = cluster.bootstrap_servers();
    let (done, dropped) = mpsc::channel();
    thread::spawn(move || {
        let mut config = Config::new();
        config.set("bootstrap.servers", &servers).unwrap();
        for round in 0..300u64 {
            let producer = Producer::new(&config).unwrap();
            producer.send(&format!("topic-{}", round % 10), Record::new().value("v")).unwrap();
            thread::sleep(Duration::from_micros(round * 37 % 3000));
            drop(producer);
            done.send(round).unwrap();
        }
    });
    for round in 0..300 {
        assert_eq!(
            dropped.recv_timeout(Duration::from_secs(20)),
            Ok(round),
            "the producer of round {round} hangs"
        );
    }
}

#[test]
fn refused_record_can_be_resent_and_drop_reports_queued_ones() {
    let mut config = ottla::Config::new();
    config.set("bootstrap.servers", "127.0.0.1:1").unwrap();
    config.set("queue.buffering.max.messages", "1").unwrap();
    config.set("drop.timeout.ms", "0").unwrap();
    let (sender, reports) = std::sync::mpsc::channel();
    let producer = ottla::Producer::builder(&config)
        .on_delivery(move |batch| {
            for report in batch.iter() {
                let _ = sender.send((report.opaque, report.error.map(|error| error.kind())));
            }
        })
        .build()
        .unwrap();
    let topic = producer.topic("t");
    topic.send(ottla::Record::new().value("first").opaque(1)).unwrap();
    let record = ottla::Record::new().value("second").header("h", "v").opaque(2);
    let refused = topic.try_send(record).unwrap_err();
    assert_eq!(refused.error, ottla::SendError::QueueFull);
    producer.purge(ottla::Purge::ALL);
    let wait = std::time::Duration::from_secs(60);
    assert_eq!(reports.recv_timeout(wait), Ok((1, Some(ottla::ErrorKind::PurgedFromQueue))));
    producer.flush(wait).unwrap();
    topic.try_send(refused.record).unwrap();
    drop((topic, producer));
    assert_eq!(reports.recv_timeout(wait), Ok((2, Some(ottla::ErrorKind::Closed))));
}

/// Starts a producer whose broker does not exist, with one record in the queue.
fn producer_with_a_record_that_cannot_be_sent(timeout_ms: &str) -> (Producer, mpsc::Receiver<ErrorKind>) {
    let mut config = Config::new();
    config.set("bootstrap.servers", "127.0.0.1:1").unwrap();
    config.set("drop.timeout.ms", timeout_ms).unwrap();
    let (sender, reports) = mpsc::channel();
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| {
            for error in batch.iter().filter_map(|report| report.error) {
                let _ = sender.send(error.kind());
            }
        })
        .build()
        .unwrap();
    producer.send("t", Record::new().value("v")).unwrap();
    (producer, reports)
}

#[test]
fn drop_delivers_queued_records() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("linger.ms", "60000").unwrap();
    config.set("drop.timeout.ms", "60000").unwrap();
    let (sender, reports) = mpsc::channel();
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| {
            for report in batch.iter() {
                let _ = sender.send(report.error.map(|error| error.kind()));
            }
        })
        .build()
        .unwrap();
    let topic = producer.topic("dropped");
    for _ in 0..100 {
        topic.send(Record::new().value("v")).unwrap();
    }
    drop(producer);
    assert!(reports.try_recv().is_err(), "the topic keeps the producer");
    drop(topic);
    // The channel ends with the producer.
    assert_eq!(reports.iter().collect::<Vec<_>>(), vec![None; 100]);
}

#[test]
fn drop_does_not_wait_for_a_record_that_cannot_be_sent() {
    let (producer, reports) = producer_with_a_record_that_cannot_be_sent("900000");
    let (done, dropped) = mpsc::channel();
    thread::spawn(move || {
        drop(producer);
        done.send(()).unwrap();
    });
    assert_eq!(dropped.recv_timeout(Duration::from_secs(60)), Ok(()));
    assert!(reports.try_recv().is_err(), "the delivery goes on");
}

#[test]
fn dropped_producer_reports_what_its_timeout_has_left() {
    let (producer, reports) = producer_with_a_record_that_cannot_be_sent("300");
    let start = Instant::now();
    drop(producer);
    assert_eq!(reports.recv_timeout(Duration::from_secs(60)), Ok(ErrorKind::Closed));
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
}

#[test]
fn dropped_transaction_is_aborted_without_waiting_and_begin_helps() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    config.set("transactional.id", "x").unwrap();
    config.set("drop.timeout.ms", "900000").unwrap().set("max.block.ms", "50").unwrap();
    // After this time an end without a response is repeated.
    config.set("socket.timeout.ms", "500").unwrap();
    const SOON: Duration = Duration::from_secs(60);
    let producer = Producer::new(&config).unwrap();
    producer.init_transactions(SOON).unwrap();
    let open = |producer: &Producer| {
        let transaction = producer.begin().unwrap();
        transaction.topic("t").deliver(Record::new().value("v"), SOON).unwrap();
        drop(transaction);
    };
    open(&producer);
    open(&producer);
    // The second one's end is not in flight any more when the coordinator becomes silent.
    producer.begin().unwrap().commit(SOON).unwrap();
    cluster.control(|control| control.inject(Fault::new(FaultAction::NeverRespond).api(ApiKey::EndTxn)));
    let (done, dropped) = mpsc::channel();
    let elsewhere = producer.clone();
    thread::spawn(move || {
        open(&elsewhere);
        done.send(()).unwrap();
    });
    dropped.recv_timeout(SOON).expect("the drop does not wait");
    let error = block_on(async { producer.begin_async().await.map(drop) }).unwrap_err();
    assert_eq!(error.next_call(), Some(NextCall::ResumeTransaction), "{error}");
    assert!(!error.to_string().contains("abort_transaction"), "{error}");
    cluster.control(|control| control.clear_faults());
    producer.resume_transaction(SOON).unwrap();
    producer.begin().unwrap().commit(SOON).unwrap();
    block_on(producer.close_async(SOON)).unwrap();
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn drop_does_not_wait_during_a_panic() {
    let (producer, reports) = producer_with_a_record_that_cannot_be_sent("900000");
    let panicked = thread::spawn(move || {
        let _producer = producer;
        panic!("the application's own");
    });
    assert_eq!(reports.recv_timeout(Duration::from_secs(60)), Ok(ErrorKind::Closed));
    assert!(panicked.join().is_err());
}

#[test]
fn drop_does_not_wait_in_a_callback() {
    let mut config = Config::new();
    config.set("bootstrap.servers", "127.0.0.1:1").unwrap();
    config.set("drop.timeout.ms", "900000").unwrap();
    let kept: Arc<Mutex<Option<Producer>>> = Arc::default();
    let (sender, dropped) = mpsc::channel();
    // The callback must drop the last handle, so it waits until this thread has dropped its own.
    let (is_alone, alone) = mpsc::channel::<()>();
    let alone = Mutex::new(alone);
    let in_callback = Arc::clone(&kept);
    let producer = Producer::builder(&config)
        .on_delivery(move |_| {
            let _ = alone.lock().unwrap().recv();
            drop(in_callback.lock().unwrap().take());
            let _ = sender.send(());
        })
        .build()
        .unwrap();
    producer.send("t", Record::new().value("purged")).unwrap();
    let handle = producer.clone();
    *kept.lock().unwrap() = Some(producer);
    handle.purge(ottla::Purge::ALL);
    handle.send("t", Record::new().value("left")).unwrap();
    drop(handle);
    is_alone.send(()).unwrap();
    assert_eq!(dropped.recv_timeout(Duration::from_secs(60)), Ok(()));
}
