//! Functions of the application that panic: each message has one report, and the error names the application.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use ottla::{Config, Culprit, Error, ErrorKind, Event, Producer, Record, partitioners::Partitioner};
use ottla_embedded_broker::{ApiKey, ClusterOptions, EmbeddedCluster, Fault, FaultAction};

const SOON: Duration = Duration::from_secs(60);

fn started(properties: &[(&str, &str)]) -> (EmbeddedCluster, Config) {
    let cluster =
        EmbeddedCluster::start(ClusterOptions { partitions: 2, ..ClusterOptions::default() }).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    for (name, value) in properties {
        config.set(name, value).unwrap();
    }
    (cluster, config)
}

/// Returns the panics that the client has reported; nothing else was wrong.
fn panics(producer: &Producer) -> Vec<Error> {
    let events = std::iter::from_fn(|| producer.poll_event());
    let errors = events.filter_map(|event| match event {
        Event::Error(error) if error.kind() == ErrorKind::CallbackPanicked => Some(error),
        Event::Fatal(error) => panic!("the client has ended: {error}"),
        _ => None,
    });
    errors.collect()
}

#[test]
fn record_has_one_report_when_the_partitioner_panics() {
    let (cluster, config) = started(&[]);
    let reports = Arc::<Mutex<Vec<(u64, Option<ErrorKind>)>>>::default();
    let (reported, panics_once) = (Arc::clone(&reports), AtomicBool::new(true));
    // The records wait for the topic: the partitioner runs on an I/O thread.
    cluster.control(|control| {
        control.inject(
            Fault::new(FaultAction::Delay(Duration::from_millis(300))).api(ApiKey::Metadata).times(2),
        );
    });
    let producer = Producer::builder(&config)
        .partitioner(Partitioner::Custom(Box::new(move |choice| {
            if choice.opaque == 1 && panics_once.swap(false, Ordering::SeqCst) {
                panic!("the partitioner's own");
            }
            1
        })))
        .on_delivery(move |batch| {
            let reports = batch.iter().map(|report| (report.opaque, report.error.map(Error::kind)));
            reported.lock().unwrap().extend(reports);
        })
        .build()
        .unwrap();
    for number in 0..3 {
        producer.send("t", Record::new().value("v").opaque(number)).unwrap();
    }
    producer.flush(SOON).unwrap();
    producer.deliver("t", Record::new().value("v").opaque(3), SOON).unwrap();
    // The callback may come after the result.
    producer.flush(SOON).unwrap();
    let mut reports = std::mem::take(&mut *reports.lock().unwrap());
    reports.sort_by_key(|(number, _)| *number);
    assert_eq!(reports, [(0, None), (1, Some(ErrorKind::CallbackPanicked)), (2, None), (3, None)]);
    assert_eq!(Error::new(ErrorKind::CallbackPanicked, "").culprit(), Culprit::Application);
    producer.close(SOON).unwrap();
}

#[test]
fn other_records_have_their_reports_when_one_report_panics() {
    let (_cluster, config) = started(&[]);
    let count = Arc::<AtomicUsize>::default();
    let reported = Arc::clone(&count);
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| {
            if reported.fetch_add(batch.len(), Ordering::SeqCst) == 0 {
                panic!("the report's own");
            }
        })
        .build()
        .unwrap();
    for number in 1..=3 {
        producer.send("t", Record::new().value("v").partition(0)).unwrap();
        producer.flush(SOON).unwrap();
        assert_eq!(count.load(Ordering::SeqCst), number);
    }
    let panics = panics(&producer);
    assert_eq!(panics.len(), 1, "{panics:?}");
    assert!(panics[0].to_string().contains("on_delivery: the report's own"), "{}", panics[0]);
    producer.close(SOON).unwrap();
}

#[test]
fn client_goes_on_when_the_receiver_of_statistics_panics() {
    let (_cluster, config) = started(&[("statistics.interval.ms", "10")]);
    let (sender, calls) = mpsc::channel();
    let sender = Mutex::new(sender);
    let producer = Producer::builder(&config)
        .on_statistics(move |_| {
            let _ = sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner).send(());
            panic!("the statistics' own");
        })
        .build()
        .unwrap();
    for _ in 0..3 {
        calls.recv_timeout(SOON).expect("it is called again");
    }
    assert!(panics(&producer).iter().all(|error| error.to_string().contains("on_statistics")));
    producer.deliver("t", Record::new().value("v"), SOON).unwrap();
    producer.close(SOON).unwrap();
}
