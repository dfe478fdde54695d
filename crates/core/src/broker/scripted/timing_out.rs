//! The error of a message that timed out names the cause of the delay, and which broker reported it.

use ottla_protocol::error_code::ErrorCode;

use super::{Script, at, millis};
use crate::{
    error::{Error, ErrorKind},
    produce::{
        collector::Linger, partition::Waiting, report::PersistenceStatus, settings::ProducerSettings,
        topic_settings::TopicSettings,
    },
};

fn settings() -> ProducerSettings {
    ProducerSettings {
        linger: Linger::Broker(millis(5)),
        topic: TopicSettings { message_timeout: Some(millis(1000)), ..TopicSettings::default() },
        retry_backoff: millis(100),
        retry_backoff_max: millis(100),
        ..ProducerSettings::default()
    }
}

fn only_error(script: &Script, kind: ErrorKind) -> Error {
    let errors = script.errors();
    assert_eq!(errors.iter().map(Error::kind).collect::<Vec<_>>(), [kind]);
    assert!(errors[0].to_string().starts_with("t [0]: "), "{}", errors[0]);
    errors[0].clone()
}

#[track_caller]
fn assert_says(error: &Error, words: &str) {
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn last_error_of_the_broker_is_named() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    while script.errors().is_empty() && script.now < at(3000) {
        script.run_for(millis(10));
        for request in std::mem::take(&mut script.requests) {
            script.respond_to_produce(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
        }
    }
    let error = only_error(&script, ErrorKind::MessageTimedOutInQueue);
    assert_says(&error, "last cause: broker:9092/1: Produce: broker returned NOT_ENOUGH_REPLICAS");
    assert!(!error.to_string().contains("next attempt"), "{error}");
    assert_eq!(script.statuses(), [PersistenceStatus::NotPersisted]);
}

#[test]
fn unreachable_broker_is_named_with_the_reason() {
    let mut script = Script::new(1, settings());
    script.is_up = false;
    script.disconnect();
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(1300));
    let error = only_error(&script, ErrorKind::MessageTimedOutInQueue);
    assert_says(&error, "last cause: broker:9092/1: connection failed (connection refused)");
}

#[test]
fn a_broker_that_is_silent_is_named() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(1300));
    let error = only_error(&script, ErrorKind::MessageTimedOutInFlight);
    assert_says(&error, "broker:9092/1 did not respond yet");
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
}

#[test]
fn a_broker_that_asks_to_be_left_alone_is_named() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.respond_to_produce(&request, 5000, |_| ErrorCode::NONE);
    script.send(0, "y");
    script.run_until(at(1300));
    let error = only_error(&script, ErrorKind::MessageTimedOutInQueue);
    assert_says(&error, "broker:9092/1 throttles the client for longer");
}

#[test]
fn last_error_is_cleared_when_records_are_accepted() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.respond_to_produce(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.run_until(at(300));
    let request = script.request();
    script.accept(&request);
    script.send(0, "y");
    script.run_until(at(1500));
    let error = only_error(&script, ErrorKind::MessageTimedOutInFlight);
    assert!(!error.to_string().contains("NOT_ENOUGH_REPLICAS"), "{error}");
}

#[test]
fn recalled_batch_counts_as_possibly_written() {
    let mut script = Script::new(1, ProducerSettings { idempotence: true, ..settings() });
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(105));
    assert_eq!(script.request().values(), ["x"]);
    script.release(0);
    let mut partition = script.parked.remove(&0).expect("the partition is given back at once");
    let late = Error::new(ErrorKind::MessageTimedOutInQueue, "");
    partition.fail_waiting(&script.shared, Waiting::All, |_| late);
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
    only_error(&script, ErrorKind::MessageTimedOutInFlight);
}

#[test]
fn retry_that_is_late_leaves_younger_retries_waiting() {
    let back_off = millis(10_000);
    let mut script = Script::new(
        1,
        ProducerSettings { retry_backoff: back_off, retry_backoff_max: back_off, ..settings() },
    );
    // The first batch with a new producer ID is in flight alone.
    script.send(0, "first");
    script.run_until(at(50));
    let first = script.request();
    script.accept(&first);
    let reported = script.reported_messages();
    for (time, value) in [(100, "x"), (600, "y")] {
        script.run_until(at(time));
        script.send(0, value);
    }
    script.run_until(at(700));
    let requests = std::mem::take(&mut script.requests);
    assert_eq!(requests.len(), 2, "both are in flight");
    for request in requests {
        script.respond_to_produce(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    }
    script.run_until(at(1099));
    assert_eq!(script.reported_messages() - reported, 0);
    script.run_until(at(1500));
    assert_eq!(script.reported_messages() - reported, 1, "the older one only");
    script.run_until(at(1599));
    assert_eq!(script.reported_messages() - reported, 1, "the younger one has its whole time");
    script.run_until(at(2000));
    assert_eq!(script.reported_messages() - reported, 2);
}

#[test]
fn batch_in_flight_for_the_second_time_times_out() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.respond_to_produce(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.run_until(at(300));
    assert_eq!(script.request().values(), ["x"], "it is sent again");
    script.run_until(at(1500));
    let error = only_error(&script, ErrorKind::MessageTimedOutInFlight);
    assert_says(&error, "broker:9092/1 did not respond yet; before, ");
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
    assert!(script.is_connected, "the request itself has more time");
}
