//! Batches that are compressed by threads of their own, beside the I/O threads.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use ottla::{ErrorKind, PersistenceStatus, Purge, Record, Topic};
use ottla_scenarios::{Backend, Report, TIMEOUT, eventually, not_checked};

ottla_scenarios::run_on_all!(large_compressed_batches_keep_their_records_and_order);

ottla_scenarios::run_on_embedded!(
    compression_of_one_client_does_not_hold_up_another,
    batches_that_are_being_compressed_are_purged,
    producer_that_is_dropped_while_it_compresses_leaves_nothing_behind,
);

/// Returns a text of 1,000 bytes that is compressed to about a third, and differs by number.
fn text(number: usize) -> String {
    let mut text = format!("{number} ");
    let mut state = number as u64 + 1;
    while text.len() < 1_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(["alpha ", "beta ", "gamma ", "delta ", "epsilon "][(state >> 33) as usize % 5]);
        if state >> 60 == 0 {
            text.push_str(&state.to_string());
        }
    }
    text.truncate(1_000);
    text
}

fn large_compressed_batches_keep_their_records_and_order(backend: &Backend) {
    for codec in ["gzip", "snappy", "lz4", "zstd"] {
        let topic = backend.topic(3);
        let properties = [("compression.type", codec), ("batch.size", "300000"), ("linger.ms", "20")];
        let producer = backend.producer(&properties);
        for number in 0..6_000 {
            let value = text(number);
            let record = Record::new().value(&value).partition(number as i32 % 3);
            producer.send(&topic, record).expect("there is room");
        }
        producer.flush(TIMEOUT).expect("all are written");
        for partition in 0..3 {
            let expected: Vec<String> = (partition..6_000).step_by(3).map(text).collect();
            assert!(backend.values(&topic, partition as i32) == expected, "{codec} [{partition}]");
            let batches = backend.batches(&topic, partition as i32);
            assert!(batches.iter().any(|batch| batch.records.len() > 100), "{codec}: large batches");
        }
    }
}

/// Sends until told to stop.
fn flood(topic: &Topic, is_over: &AtomicBool) {
    let values: Vec<String> = (0..200).map(text).collect();
    for value in values.iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        topic.send_blocking(Record::new().value(value), TIMEOUT).expect("there is room in time");
    }
}

fn compression_of_one_client_does_not_hold_up_another(backend: &Backend) {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        let what = "that compression does not hold up other clients";
        not_checked(what, "one processor compresses and sends");
        return;
    }
    let topic = backend.topic(3);
    let busy = backend.producer(&[("compression.type", "gzip"), ("compression.level", "9")]);
    let quick = backend.producer(&[("linger.ms", "0")]);
    let is_over = AtomicBool::new(false);
    let mut times: Vec<Duration> = thread::scope(|scope| {
        scope.spawn(|| flood(&busy.topic(&topic), &is_over));
        let times = (0..30).map(|_| {
            thread::sleep(Duration::from_millis(20));
            let began = Instant::now();
            let sent = quick.topic(&topic).send_tracked(Record::new().value("x"));
            sent.expect("there is room").wait(TIMEOUT).expect("it is written");
            began.elapsed()
        });
        let times = times.collect();
        is_over.store(true, Ordering::Relaxed);
        times
    });
    busy.purge(Purge::ALL);
    times.sort();
    // An I/O thread that compresses takes a second for the batches of a request.
    assert!(times[15] < Duration::from_millis(500), "{times:?}");
}

fn batches_that_are_being_compressed_are_purged(backend: &Backend) {
    const RECORDS: usize = 8_000;
    let topic = backend.topic(3);
    let properties = [("compression.type", "gzip"), ("compression.level", "9"), ("linger.ms", "1")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    producer.partition_count(&topic, TIMEOUT).expect("the topic is there");
    for number in 0..RECORDS {
        let value = text(number);
        let record = Record::new().value(&value).partition(number as i32 % 3).opaque(number as u64);
        producer.send(&topic, record).expect("there is room");
    }
    producer.purge(Purge::ALL);
    producer.flush(TIMEOUT).expect("every record has a report");
    reports.assert_one_each(RECORDS as u64);
    let reports = reports.all();
    let purged = |kind: ErrorKind| {
        let is_it = move |report: &&Report| report.error.as_ref().is_some_and(|error| error.kind() == kind);
        reports.iter().filter(is_it)
    };
    assert!(purged(ErrorKind::PurgedFromQueue).count() > 0, "some records had not left");
    let unsent =
        purged(ErrorKind::PurgedFromQueue).all(|report| report.status == PersistenceStatus::NotPersisted);
    assert!(unsent, "what was purged from the queue was not sent");
    let written = (0..3).map(|partition| backend.records(&topic, partition).len()).sum::<usize>();
    let delivered = reports.iter().filter(|report| report.error.is_none()).count();
    let doubtful = purged(ErrorKind::PurgedInFlight).count();
    assert!((delivered..=delivered + doubtful).contains(&written), "{delivered}, {doubtful}: {written}");
    producer.send(&topic, Record::new().value("after").partition(0)).expect("there is room");
    producer.flush(TIMEOUT).expect("it is written");
}

fn producer_that_is_dropped_while_it_compresses_leaves_nothing_behind(backend: &Backend) {
    let topic = backend.topic(3);
    let properties = [("compression.type", "gzip"), ("compression.level", "9"), ("drop.timeout.ms", "0")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    producer.partition_count(&topic, TIMEOUT).expect("the topic is there");
    for number in 0..8_000 {
        let value = text(number);
        producer.send(&topic, Record::new().value(&value).opaque(number as u64)).expect("there is room");
    }
    let began = Instant::now();
    drop(producer);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(eventually(|| reports.len() >= 8_000), "{} reports", reports.len());
    reports.assert_one_each(8_000);
}
