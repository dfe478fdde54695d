//! A full queue is reported, without other effects.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, ErrorKind, Producer, Record, SendError, TransactionError};
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    exactly_queue_buffering_max_messages_are_accepted,
    delivery_reports_free_queue_room,
    blocking_send_waits_for_room,
    blocking_send_fails_at_its_deadline,
    future_of_a_send_is_woken_by_room,
    calls_without_a_timeout_end_after_max_block_ms,
    twenty_threads_share_a_queue_of_ten_records,
    exactly_queue_buffering_max_kbytes_are_accepted,
);

const NEVER: (&str, &str) = ("broker.linger.ms", "60000");

fn exactly_queue_buffering_max_messages_are_accepted(backend: &Backend) {
    let topic = backend.topic(2);
    let (producer, reports) =
        backend.producer_with_reports(&[NEVER, ("queue.buffering.max.messages", "100")]);
    let handle = producer.topic(&topic);
    for n in 0..100 {
        assert_eq!(producer.in_queue(), n as usize);
        handle.send(Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    for _ in 0..5 {
        assert_eq!(handle.send(Record::new().value("too many")), Err(SendError::QueueFull));
    }
    assert_eq!(producer.in_queue(), 100);
    let error = ottla::Error::from(handle.send_tracked(Record::new()).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    assert_eq!(error.culprit(), ottla::Culprit::Application);
    assert!(error.to_string().contains("queue.buffering.max.messages"), "{error}");
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(100);
    assert_eq!(producer.in_queue(), 0);
    backend.assert_complete_and_in_order(&topic, 2, 100);
}

fn exactly_queue_buffering_max_kbytes_are_accepted(backend: &Backend) {
    // With this number of partitions no batch gets full; a full batch would be sent and make room.
    let topic = backend.topic(4);
    let producer = backend.producer(&[NEVER, ("queue.buffering.max.kbytes", "1000")]);
    let handle = producer.topic(&topic);
    let value = vec![b'x'; 1024];
    let fill = |most: i32| {
        (0..most).take_while(|n| handle.send(Record::new().value(&value).partition(n % 4)).is_ok()).count()
    };
    // Keys, values and headers count, but not the overhead that the client adds.
    assert_eq!(fill(2000), 1000);
    assert_eq!(handle.send(Record::new().value("x")), Err(SendError::QueueFull));
    producer.flush(TIMEOUT).unwrap();
    handle.send(Record::new().key(&value[..512]).value(&value[..500]).header("a", &value[..11])).unwrap();
    assert_eq!(fill(2000), 999);
    assert_eq!(handle.send(Record::new().value("x")), Err(SendError::QueueFull));
    producer.flush(TIMEOUT).unwrap();
    assert_eq!((0..4).map(|partition| backend.records(&topic, partition).len()).sum::<usize>(), 2000);
}

fn delivery_reports_free_queue_room(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) =
        backend.producer_with_reports(&[("linger.ms", "0"), ("queue.buffering.max.messages", "10")]);
    let handle = producer.topic(&topic);
    let mut refused = 0;
    for n in 0..500u64 {
        let value = n.to_string();
        let record = || Record::new().value(&value).opaque(n);
        assert!(
            eventually(|| match handle.send(record()) {
                Ok(()) => true,
                Err(error) => {
                    assert_eq!(error, SendError::QueueFull);
                    refused += 1;
                    false
                }
            }),
            "room for {n}"
        );
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(500);
    assert!(refused > 0, "a queue of ten was full at times");
    backend.assert_complete_and_in_order(&topic, 1, 500);
}

fn blocking_send_waits_for_room(backend: &Backend) {
    let topic = backend.topic(2);
    let (producer, reports) =
        backend.producer_with_reports(&[("linger.ms", "0"), ("queue.buffering.max.messages", "3")]);
    let handle = producer.topic(&topic);
    for n in 0..300 {
        handle.send_blocking(Record::new().value(&n.to_string()).opaque(n), TIMEOUT).unwrap();
        assert!(producer.in_queue() <= 3);
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(300);
    backend.assert_complete_and_in_order(&topic, 2, 300);
}

fn blocking_send_fails_at_its_deadline(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[NEVER, ("queue.buffering.max.messages", "1")]);
    let handle = producer.topic(&topic);
    handle.send(Record::new().value("0")).unwrap();
    let began = Instant::now();
    let sent = handle.send_blocking(Record::new().value("1"), Duration::from_millis(200));
    assert_eq!(sent, Err(SendError::QueueFull));
    assert!((200..20_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 0), ["0"]);
}

fn future_of_a_send_is_woken_by_room(backend: &Backend) {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let topic = backend.topic(1);
    let producer = backend.producer(&[NEVER, ("queue.buffering.max.messages", "1")]);
    let handle = producer.topic(&topic);
    handle.send(Record::new().value("0")).unwrap();
    let wakes = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut send = pin!(handle.send_async(Record::new().value("1")));
    assert_eq!(send.as_mut().poll(&mut context), Poll::Pending);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0, "nothing made room");
    producer.flush(TIMEOUT).unwrap();
    assert!(eventually(|| wakes.0.load(Ordering::SeqCst) > 0));
    assert_eq!(send.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 0), ["0", "1"]);
}

fn calls_without_a_timeout_end_after_max_block_ms(backend: &Backend) {
    const LIMIT: Duration = Duration::from_millis(300);
    let topic = backend.topic(1);
    let properties = [NEVER, ("queue.buffering.max.messages", "1"), ("max.block.ms", "300")];
    let producer = backend.producer(&properties);
    let handle = producer.topic(&topic);
    let began = Instant::now();
    block_on(handle.send_async(Record::new().value("0"))).unwrap();
    assert_eq!(block_on(handle.send_async(Record::new().value("1"))), Err(SendError::QueueFull));
    assert!((LIMIT..TIMEOUT).contains(&began.elapsed()), "{:?}", began.elapsed());
    let began = Instant::now();
    let error = block_on(handle.deliver_async(Record::new().value("2"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    assert!((LIMIT..TIMEOUT).contains(&began.elapsed()), "{:?}", began.elapsed());
    // A timeout of the call takes precedence.
    let began = Instant::now();
    let error = handle.deliver(Record::new().value("3"), LIMIT * 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    assert!(began.elapsed() >= LIMIT * 3, "{:?}", began.elapsed());
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 0), ["0"]);

    let mut alone = Config::new();
    for (name, value) in
        [("bootstrap.servers", "127.0.0.1:1"), ("transactional.id", "alone"), ("max.block.ms", "300")]
    {
        alone.set(name, value).unwrap();
    }
    let began = Instant::now();
    let error = block_on(Producer::new(&alone).unwrap().init_transactions_async()).unwrap_err();
    assert!(
        matches!(&error, TransactionError::Retriable(error) if error.kind() == ErrorKind::TimedOut),
        "{error}"
    );
    assert!((LIMIT..TIMEOUT).contains(&began.elapsed()), "{:?}", began.elapsed());
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
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

fn twenty_threads_share_a_queue_of_ten_records(backend: &Backend) {
    let topic = backend.topic(4);
    let (producer, reports) =
        backend.producer_with_reports(&[("broker.linger.ms", "1"), ("queue.buffering.max.messages", "10")]);
    thread::scope(|scope| {
        for sender in 0..20u64 {
            let handle = producer.topic(&topic);
            scope.spawn(move || {
                for n in 0..50 {
                    let opaque = sender * 50 + n;
                    let value = opaque.to_string();
                    let record = Record::new().value(&value).opaque(opaque);
                    handle.send_blocking(record, TIMEOUT).unwrap();
                }
            });
        }
    });
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(1000);
}
