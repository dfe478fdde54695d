//! Every record gets one true report in time.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use ottla::{
    ErrorKind,
    PersistenceStatus::{NotPersisted, Persisted, PossiblyPersisted},
    Producer, Purge, Record, SendError,
};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, Reports, TIMEOUT, config, eventually};

ottla_scenarios::run_on_all!(
    tracked_records_return_their_offsets,
    reports_of_a_partition_are_in_order_of_offsets,
    delivery_callback_may_send,
    waiting_in_a_delivery_callback_is_refused_at_once,
    purging_the_queue_reports_waiting_records,
    flush_that_times_out_can_be_repeated,
    close_sends_the_remaining_records,
    closed_producer_accepts_no_record,
    dropping_a_producer_does_not_hang,
    dropped_delivery_future_loses_no_record,
);

ottla_scenarios::run_on_embedded!(
    unsent_records_time_out_as_not_persisted,
    records_in_flight_time_out_as_possibly_persisted,
    purging_in_flight_reports_possibly_persisted,
    every_record_has_exactly_one_report,
    close_returns_at_its_deadline,
);

fn tracked_records_return_their_offsets(backend: &Backend) {
    let topic = backend.topic(2);
    let producer = backend.producer(&[("broker.linger.ms", "50")]);
    let handle = producer.topic(&topic);
    let deliveries: Vec<_> = (0..100i32)
        .map(|n| handle.send_tracked(Record::new().value(&n.to_string()).partition(n % 2)).unwrap())
        .collect();
    for (n, delivery) in (0i32..).zip(deliveries) {
        let written = delivery.wait(TIMEOUT).unwrap();
        assert_eq!(&*written.topic, topic);
        assert_eq!(written.partition, n % 2);
        assert_eq!(written.offset, Some(i64::from(n / 2)));
        assert_eq!(written.status, Persisted);
        assert_eq!(written.log_append_time, None);
    }
    let topic = backend.topic_with(1, &[("message.timestamp.type", "LogAppendTime")]);
    let written = producer.topic(&topic).send_tracked(Record::new().value("x").timestamp(1)).unwrap();
    let time = written.wait(TIMEOUT).unwrap().log_append_time.expect("the broker's time");
    assert_eq!(backend.records(&topic, 0)[0].timestamp, time);
}

fn reports_of_a_partition_are_in_order_of_offsets(backend: &Backend) {
    let topic = backend.topic(3);
    let (producer, reports) =
        backend.producer_with_reports(&[("batch.num.messages", "7"), ("broker.linger.ms", "1")]);
    for n in 0..3000 {
        producer
            .send(&topic, Record::new().value(&n.to_string()).opaque(n).partition((n % 3) as i32))
            .unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(3000);
    for partition in 0..3 {
        let of_partition: Vec<_> = reports.all().into_iter().filter(|r| r.partition == partition).collect();
        for (offset, report) in (0i64..).zip(&of_partition) {
            assert_eq!(report.offset, Some(offset));
            assert_eq!(report.opaque, offset as u64 * 3 + partition as u64);
        }
    }
    let batches = backend.batches(&topic, 0);
    assert!(batches.iter().all(|batch| batch.records.len() <= 7), "batch.num.messages is kept");
}

fn delivery_callback_may_send(backend: &Backend) {
    let topic = backend.topic(1);
    let itself: Arc<OnceLock<Producer>> = Arc::default();
    let (reports, sender, name) = (Reports::default(), Arc::clone(&itself), topic.clone());
    let collect = reports.clone();
    let producer = Producer::builder(&backend.config(&[("linger.ms", "0")]))
        .on_delivery(move |batch| {
            collect.add(batch);
            for report in batch.iter().filter(|report| report.opaque < 50) {
                let next = report.opaque + 1;
                let producer = sender.get().expect("it is set before the first send");
                producer.send(&name, Record::new().value(&next.to_string()).opaque(next)).unwrap();
            }
        })
        .build()
        .unwrap();
    itself.set(producer.clone()).unwrap();
    producer.send(&topic, Record::new().value("0").opaque(0)).unwrap();
    assert!(eventually(|| reports.len() == 51));
    reports.assert_all_delivered(51);
    backend.assert_complete_and_in_order(&topic, 1, 51);
    producer.close(TIMEOUT).unwrap();
}

fn waiting_in_a_delivery_callback_is_refused_at_once(backend: &Backend) {
    let topic = backend.topic(1);
    let itself: Arc<OnceLock<Producer>> = Arc::default();
    let refused: Arc<Mutex<Vec<String>>> = Arc::default();
    let (sender, name, seen) = (Arc::clone(&itself), topic.clone(), Arc::clone(&refused));
    let config = backend.config(&[("queue.buffering.max.messages", "1"), ("linger.ms", "0")]);
    let producer = Producer::builder(&config)
        .on_delivery(move |_| {
            let producer = sender.get().expect("it is set before the first send");
            // The record that is being reported still occupies the queue.
            let error = producer.topic(&name).send_blocking(Record::new(), TIMEOUT).unwrap_err();
            assert!(matches!(error, SendError::WouldDeadlock(_)), "{error:?}");
            let mut seen = seen.lock().unwrap();
            seen.push(error.to_string());
            seen.push(producer.flush(TIMEOUT).unwrap_err().to_string());
            seen.push(producer.close(TIMEOUT).unwrap_err().to_string());
        })
        .build()
        .unwrap();
    itself.set(producer.clone()).unwrap();
    producer.send(&topic, Record::new().value("0")).unwrap();
    assert!(eventually(|| refused.lock().unwrap().len() == 3));
    for (said, call) in refused.lock().unwrap().iter().zip(["send_blocking", "flush", "close"]) {
        assert!(said.contains(call) && said.contains("delivery callback"), "{said}");
    }
    producer.flush(TIMEOUT).unwrap();
    producer.topic(&topic).send_blocking(Record::new().value("1"), TIMEOUT).unwrap();
    assert!(eventually(|| backend.values(&topic, 0) == ["0", "1"]));
}

fn purging_the_queue_reports_waiting_records(backend: &Backend) {
    let topic = backend.topic(2);
    let (producer, reports) = backend.producer_with_reports(&[("broker.linger.ms", "60000")]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    for n in 0..20 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    let tracked = producer.topic(&topic).send_tracked(Record::new().opaque(20)).unwrap();
    producer.purge(Purge::QUEUE);
    assert_eq!(tracked.wait(TIMEOUT).unwrap_err().kind(), ErrorKind::PurgedFromQueue);
    assert!(eventually(|| producer.in_queue() == 0));
    assert!(eventually(|| reports.len() >= 20));
    for report in reports.all() {
        let error = report.error.expect("purged");
        assert_eq!((error.kind(), report.status), (ErrorKind::PurgedFromQueue, NotPersisted));
        assert!(error.to_string().contains(&topic), "{error}");
    }
    // No record is left.
    producer.send(&topic, Record::new().value("after").partition(0)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 0), ["after"]);
    assert_eq!(backend.values(&topic, 1), [""; 0]);
}

fn flush_that_times_out_can_be_repeated(backend: &Backend) {
    let nobody = config("127.0.0.1:1", &[]);
    let producer = Producer::new(&nobody).unwrap();
    producer.send("t", Record::new().value("x")).unwrap();
    let began = Instant::now();
    let error = producer.flush(Duration::from_millis(200)).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains('1'), "it says how many are left: {error}");
    assert_eq!(producer.in_queue(), 1, "the record is still there");
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    producer.send(&topic, Record::new().value("0")).unwrap();
    let _ = producer.flush(Duration::ZERO);
    producer.flush(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 0), ["0"]);
}

fn close_sends_the_remaining_records(backend: &Backend) {
    let topic = backend.topic(3);
    let (producer, reports) = backend.producer_with_reports(&[("broker.linger.ms", "60000")]);
    for n in 0..500 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
    reports.assert_all_delivered(500);
    backend.assert_complete_and_in_order(&topic, 3, 500);
}

fn closed_producer_accepts_no_record(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    let handle = producer.topic(&topic);
    handle.send(Record::new().value("0")).unwrap();
    producer.close(TIMEOUT).unwrap();
    assert_eq!(handle.send(Record::new().value("1")), Err(SendError::Closed));
    assert_eq!(handle.send_tracked(Record::new()).unwrap_err(), SendError::Closed);
    assert_eq!(handle.send_blocking(Record::new(), TIMEOUT), Err(SendError::Closed));
    assert_eq!(producer.send("another", Record::new()), Err(SendError::Closed));
    producer.flush(TIMEOUT).unwrap();
    producer.purge(Purge::ALL);
    producer.close(TIMEOUT).unwrap();
    assert_eq!(backend.values(&topic, 0), ["0"]);
}

fn dropping_a_producer_does_not_hang(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("broker.linger.ms", "60000")]);
    producer.send(&topic, Record::new().value("0")).unwrap();
    let delivery = producer.topic(&topic).send_tracked(Record::new().value("1")).unwrap();
    drop(producer);
    // Delivered or failed, the report comes soon.
    if let Err(error) = delivery.wait(TIMEOUT) {
        assert_ne!(error.kind(), ErrorKind::TimedOut, "{error}");
    }
}

fn dropped_delivery_future_loses_no_record(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    for n in 0..10 {
        drop(producer.topic(&topic).send_tracked(Record::new().value(&n.to_string())).unwrap());
    }
    producer.close(TIMEOUT).unwrap();
    backend.assert_complete_and_in_order(&topic, 1, 10);
}

fn unsent_records_time_out_as_not_persisted(backend: &Backend) {
    drop(backend.topic(1));
    let (producer, reports) = Reports::of(&config("127.0.0.1:1", &[("message.timeout.ms", "300")]));
    let began = Instant::now();
    for n in 0..50 {
        producer.send("anywhere", Record::new().value("x").opaque(n)).unwrap();
    }
    let tracked = producer.topic("anywhere").send_tracked(Record::new().opaque(50)).unwrap();
    let error = tracked.wait(TIMEOUT).unwrap_err();
    let took = began.elapsed();
    assert!((290..10_000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(error.kind(), ErrorKind::MessageTimedOutInQueue);
    assert!(error.to_string().contains("message.timeout.ms"), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1/bootstrap: connection failed"), "{error}");
    assert!(eventually(|| producer.in_queue() == 0 && reports.len() >= 50));
    assert!(reports.all().iter().all(|report| report.status == NotPersisted));
    producer.flush(TIMEOUT).unwrap();
}

fn records_in_flight_time_out_as_possibly_persisted(backend: &Backend) {
    let topic = backend.topic(1);
    let properties = [("message.timeout.ms", "500"), ("enable.idempotence", "false")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    backend.control(|control| control.inject(Fault::new(FaultAction::NeverRespond).api(ApiKey::Produce)));
    for n in 0..10 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(10);
    for report in reports.all() {
        let error = report.error.expect("timed out");
        assert_eq!((error.kind(), report.status), (ErrorKind::MessageTimedOutInFlight, PossiblyPersisted));
        assert!(error.to_string().contains(&topic), "{error}");
        assert!(
            error.to_string().contains("127.0.0.1:") && error.to_string().contains("did not respond yet"),
            "{error}"
        );
    }
}

fn purging_in_flight_reports_possibly_persisted(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&[("broker.linger.ms", "0")]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    backend.control(|control| {
        control.inject(Fault::new(FaultAction::NeverRespond).api(ApiKey::Produce).times(1));
        control.record_requests();
    });
    producer.send(&topic, Record::new().value("0").opaque(0)).unwrap();
    let is_sent = || {
        backend
            .control(|control| control.take_requests())
            .iter()
            .any(|request| request.api == ApiKey::Produce)
    };
    assert!(eventually(is_sent));
    producer.purge(Purge::QUEUE);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(producer.in_queue(), 1, "it isn't in the queue");
    producer.purge(Purge::IN_FLIGHT);
    assert!(eventually(|| reports.len() == 1));
    let report = &reports.all()[0];
    assert_eq!(report.error.as_ref().unwrap().kind(), ErrorKind::PurgedInFlight);
    assert_eq!(report.status, PossiblyPersisted);
    assert_eq!(producer.in_queue(), 0);
}

fn every_record_has_exactly_one_report(backend: &Backend) {
    let topic = backend.topic(6);
    let properties = [("message.timeout.ms", "1500"), ("broker.linger.ms", "2"), ("retry.backoff.ms", "20")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    let handle = producer.topic(&topic);
    let mut sent = 0;
    for round in 0..12 {
        for _ in 0..100 {
            handle
                .send(Record::new().value(&sent.to_string()).opaque(sent).partition((sent % 6) as i32))
                .unwrap();
            sent += 1;
        }
        match round % 4 {
            0 => backend.control(|control| control.close_connections(None)),
            1 => backend.control(|control| {
                control.inject(Fault::new(FaultAction::NeverRespond).api(ApiKey::Produce).times(1));
            }),
            2 => producer.purge(Purge::ALL),
            _ => backend.control(|control| control.rotate_leaders()),
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(sent);
    let logged: Vec<Vec<String>> = (0..6).map(|partition| backend.values(&topic, partition)).collect();
    for report in reports.all() {
        let value = report.opaque.to_string();
        let times = logged[(report.opaque % 6) as usize].iter().filter(|logged| **logged == value).count();
        match report.status {
            Persisted => assert_eq!(times, 1, "{report:?}"),
            NotPersisted => assert_eq!(times, 0, "{report:?}"),
            PossiblyPersisted => assert!(times <= 1, "{report:?}"),
        }
    }
}

fn close_returns_at_its_deadline(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&[]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    backend.control(|control| control.inject(Fault::new(FaultAction::NeverRespond)));
    for n in 0..10 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    let began = Instant::now();
    let error = producer.close(Duration::from_millis(300)).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(eventually(|| reports.len() == 10), "all are reported");
    reports.assert_one_each(10);
    assert!(reports.all().iter().all(|report| report.status != Persisted));
    assert_eq!(producer.in_queue(), 0);
}
