//! Interceptors of producers and consumers: what they see and change, and what happens if they fail.

use std::{
    pin::pin,
    sync::{Arc, Condvar, Mutex},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use ottla::{
    CommitResult, Config, Consumer, ConsumerInterceptor, DeliveryBatch, ErrorKind, Event, GroupOffset,
    Message, Offset, OutgoingRecord, Producer, ProducerInterceptor, Record, TraceContext, TracePropagation,
};
use ottla_embedded_broker::{ApiKey, ClusterOptions, EmbeddedCluster, ErrorCode, Fault, FaultAction};

const SOON: Duration = Duration::from_secs(60);
const SENT: usize = 8;

fn started(properties: &[(&str, &str)]) -> (EmbeddedCluster, Config) {
    let cluster =
        EmbeddedCluster::start(ClusterOptions { partitions: 1, ..ClusterOptions::default() }).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    for (name, value) in properties {
        config.set(name, value).unwrap();
    }
    (cluster, config)
}

/// Notes what it sees.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: String) {
        self.0.lock().unwrap().push(note);
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|note| note.starts_with(what)).count()
    }

    /// Waits until there are this many notes.
    fn wait(&self, what: &str, count: usize) {
        let began = std::time::Instant::now();
        while self.count(what) < count {
            assert!(began.elapsed() < SOON, "{:?}", self.0.lock().unwrap());
            thread::yield_now();
        }
    }
}

impl ProducerInterceptor for Notes {
    fn on_send(&self, record: &mut OutgoingRecord<'_, '_>) {
        let value = String::from_utf8_lossy(record.value().unwrap_or_default()).into_owned();
        record.set_value(Some(format!("{value}!").into_bytes()));
        self.add(format!("send {} {value}", record.topic()));
    }

    fn on_acknowledgement(&self, batch: &DeliveryBatch) {
        for report in batch.iter() {
            self.add(format!("acknowledged {:?}", report.error.map(ottla::Error::kind)));
        }
    }
}

impl ConsumerInterceptor for Notes {
    fn on_consume(&self, message: &Message) {
        self.add(format!("consume {}", String::from_utf8_lossy(message.value().unwrap_or_default())));
    }

    fn on_commit(&self, offsets: &[GroupOffset], outcome: &CommitResult) {
        self.add(format!("commit {} {}", offsets[0].offset, outcome.is_ok()));
    }
}

/// Sends a record by each call.
fn send_by_each_call(producer: &Producer) {
    let topic = producer.topic("t");
    let record = |value: &'static str| Record::new().value(value);
    topic.send(record("0")).unwrap();
    topic.try_send(record("1")).unwrap();
    topic.send_batch(&[record("2"), record("3")]).unwrap();
    topic.send_blocking(record("4"), SOON).unwrap();
    let delivery = topic.send_tracked(record("5")).unwrap();
    topic.deliver(record("6"), SOON).unwrap();
    delivery.wait(SOON).unwrap();
    let sent = pin!(topic.send_async(record("7"))).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(sent, Poll::Ready(Ok(()))), "there is room in the queue");
    producer.flush(SOON).unwrap();
}

#[test]
fn interceptors_see_records_deliveries_and_commits() {
    let (_cluster, config) = started(&[("group.id", "g"), ("auto.offset.reset", "earliest")]);
    let context = TraceContext::new(7, 9, 1).unwrap().with_state("vendor=x");
    let (of_producer, of_consumer, current) = (Notes::default(), Notes::default(), context.clone());
    let producer = Producer::builder(&config)
        .interceptor(of_producer.clone())
        .interceptor(TracePropagation::new(move || Some(current.clone())))
        .build()
        .unwrap();
    send_by_each_call(&producer);
    of_producer.wait("acknowledged None", SENT);
    assert_eq!(of_producer.count("send t "), SENT);
    let consumer = Consumer::builder(&config).interceptor(of_consumer.clone()).build().unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let message = consumer.next(SOON).unwrap().expect("a record");
    assert_eq!(message.value(), Some(&b"0!"[..]));
    assert_eq!(TraceContext::of(&message), Some(context));
    let mut polled = 1;
    while polled < SENT {
        polled += consumer.poll(SOON).unwrap().iter().count();
    }
    assert_eq!(of_consumer.count("consume "), SENT);
    consumer.commit_message(&message, SOON).unwrap();
    of_consumer.wait("commit 1 true", 1);
    // Nothing waits for the outcome.
    drop(consumer.commit_async(&[GroupOffset::new("t", 0, 5)], SOON));
    of_consumer.wait("commit 5 true", 1);
    assert_eq!(consumer.interceptor_counts().panics, 0);
    assert_eq!(producer.interceptor_counts().calls as usize, 2 * SENT + of_acknowledgements(&producer, SENT));
}

/// Returns the number of calls for deliveries: at most one per record and interceptor.
fn of_acknowledgements(producer: &Producer, records: usize) -> usize {
    let calls = producer.interceptor_counts().calls as usize - 2 * records;
    assert!((2..=2 * records).contains(&calls), "{calls}");
    calls
}

#[test]
fn interceptors_see_automatic_commits_and_failed_records() {
    let properties =
        [("group.id", "g"), ("auto.offset.reset", "earliest"), ("auto.commit.interval.ms", "50")];
    let (cluster, config) = started(&properties);
    let (of_producer, of_consumer) = (Notes::default(), Notes::default());
    let producer = Producer::builder(&config).interceptor(of_producer.clone()).build().unwrap();
    producer.deliver("t", Record::new().value("0"), SOON).unwrap();
    let consumer = Consumer::builder(&config).interceptor(of_consumer.clone()).build().unwrap();
    consumer.subscribe(&["t"]).unwrap();
    assert!(consumer.next(SOON).unwrap().is_some());
    of_consumer.wait("commit 1 true", 1);
    let refused = FaultAction::Error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    cluster.control(|control| control.inject(Fault::new(refused).api(ApiKey::Produce)));
    producer.deliver("t", Record::new().value("1"), SOON).unwrap_err();
    of_producer.wait("acknowledged Some(", 1);
}

/// Fails in each function.
struct Failing;

impl ProducerInterceptor for Failing {
    fn on_send(&self, record: &mut OutgoingRecord<'_, '_>) {
        record.set_value(None);
        record.remove_headers("kept");
        panic!("in on_send");
    }

    fn on_acknowledgement(&self, _: &DeliveryBatch) {
        panic!("in on_acknowledgement");
    }
}

impl ConsumerInterceptor for Failing {
    fn on_consume(&self, _: &Message) {
        panic!("in on_consume");
    }

    fn on_commit(&self, _: &[GroupOffset], _: &CommitResult) {
        panic!("in on_commit");
    }
}

#[test]
fn interceptor_that_panics_loses_no_record() {
    let (_cluster, config) = started(&[("group.id", "g")]);
    let (notes, reported) = (Notes::default(), Notes::default());
    let reports = reported.clone();
    let producer = Producer::builder(&config)
        .interceptor(Failing)
        .interceptor(notes.clone())
        .on_delivery(move |batch| batch.iter().for_each(|report| reports.add(format!("{:?}", report.error))))
        .build()
        .unwrap();
    producer.send("t", Record::new().value("v").header("kept", "1")).unwrap();
    producer.flush(SOON).unwrap();
    reported.wait("None", 1);
    assert_eq!((notes.count("send t v"), notes.count("acknowledged None")), (1, 1));
    assert_eq!(producer.interceptor_counts().panics, 2);
    let panics = std::iter::from_fn(|| producer.poll_event());
    let is_panic =
        |event: &Event| matches!(event, Event::Error(error) if error.kind() == ErrorKind::CallbackPanicked);
    assert_eq!(panics.filter(is_panic).count(), 2);
    let consumer = Consumer::builder(&config).interceptor(Failing).build().unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let message = consumer.next(SOON).unwrap().expect("a record");
    assert_eq!(message.value(), Some(&b"v!"[..]));
    assert_eq!(message.headers().count(), 1);
    consumer.commit_message(&message, SOON).unwrap();
    assert_eq!(consumer.interceptor_counts().panics, 2);
}

/// Blocks in its calls until the gate opens: whether it is open, and whether a call has come.
#[derive(Clone, Default)]
struct Blocking(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Blocking {
    fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    /// Waits until a call blocks.
    fn wait(&self) {
        let state = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(state, |(_, has_come)| !*has_come).unwrap());
    }

    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.1 = true;
        self.0.1.notify_all();
        drop(self.0.1.wait_while(state, |(is_open, _)| !*is_open).unwrap());
    }
}

impl ProducerInterceptor for Blocking {
    fn on_acknowledgement(&self, _: &DeliveryBatch) {
        self.pass();
    }
}

impl ConsumerInterceptor for Blocking {
    fn on_commit(&self, _: &[GroupOffset], _: &CommitResult) {
        self.pass();
    }
}

#[test]
fn interceptor_that_blocks_bounds_the_calls_and_loses_nothing() {
    const BRIEF: Duration = Duration::from_millis(50);
    let (_cluster, config) = started(&[("group.id", "g")]);
    let (gate, reported) = (Blocking::default(), Notes::default());
    let reports = reported.clone();
    let producer = Producer::builder(&config)
        .interceptor(gate.clone())
        .on_delivery(move |batch| batch.iter().for_each(|report| reports.add(format!("{:?}", report.error))))
        .build()
        .unwrap();
    producer.send("t", Record::new().value("v")).unwrap();
    gate.wait();
    let late = producer.flush(BRIEF).expect_err("the delivery is not reported yet");
    assert_eq!((late.kind(), reported.count("")), (ErrorKind::TimedOut, 0));
    gate.open();
    producer.flush(SOON).unwrap();
    reported.wait("None", 1);
    assert_eq!(producer.interceptor_counts().slow, 1);

    let gate = Blocking::default();
    let consumer = Consumer::builder(&config).interceptor(gate.clone()).build().unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let message = consumer.next(SOON).unwrap().expect("a record");
    let late = consumer.commit_message(&message, BRIEF).expect_err("the commit has no outcome yet");
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    gate.open();
    consumer.commit_message(&message, SOON).unwrap();
    let committed = consumer.committed(&[("t", 0)], SOON).unwrap();
    assert_eq!(committed[0].as_ref().unwrap().as_ref().map(|offset| offset.offset), Some(1));
}
