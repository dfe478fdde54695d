//! The error of a message that timed out says what kept it from being written, and who said so.

use ottla_protocol::error_code::ErrorCode;

use super::{Script, at, millis};
use crate::{
    error::{Error, ErrorKind},
    produce::{collector::Linger, report::PersistenceStatus, shared::ProducerSettings},
};

fn settings() -> ProducerSettings {
    ProducerSettings {
        linger: Linger::Broker(millis(5)),
        message_timeout: Some(millis(1000)),
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
fn what_the_broker_said_last_is_named() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    while script.errors().is_empty() && script.now < at(3000) {
        script.run_for(millis(10));
        for request in std::mem::take(&mut script.requests) {
            script.answer(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
        }
    }
    let error = only_error(&script, ErrorKind::MessageTimedOutInQueue);
    assert_says(&error, "last cause: broker:9092/1: Produce: broker answered NOT_ENOUGH_REPLICAS");
    assert!(!error.to_string().contains("next attempt"), "{error}");
    assert_eq!(script.statuses(), [PersistenceStatus::NotPersisted]);
}

#[test]
fn who_could_not_be_connected_to_is_named_with_the_reason() {
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
    assert_says(&error, "broker:9092/1 did not answer yet");
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
}

#[test]
fn a_broker_that_asks_to_be_left_alone_is_named() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.answer(&request, 5000, |_| ErrorCode::NONE);
    script.send(0, "y");
    script.run_until(at(1300));
    let error = only_error(&script, ErrorKind::MessageTimedOutInQueue);
    assert_says(&error, "broker:9092/1 asked to be left alone for longer");
}

#[test]
fn what_a_broker_said_before_it_took_records_again_is_forgotten() {
    let mut script = Script::new(1, settings());
    script.run_until(at(100));
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.answer(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.run_until(at(300));
    let request = script.request();
    script.accept(&request);
    script.send(0, "y");
    script.run_until(at(1500));
    let error = only_error(&script, ErrorKind::MessageTimedOutInFlight);
    assert!(!error.to_string().contains("NOT_ENOUGH_REPLICAS"), "{error}");
}
