//! A broker that violates the protocol or contradicts itself: the client detects and names it, writes and reports no
//! record twice, and retries no faster than the backoff.
//!
//! | what the broker does | test |
//! |---|---|
//! | a wrong correlation id | `wrong_correlation_id_ends_the_connection_and_the_batch_is_resent` |
//! | the same response twice | `duplicate_response_closes_the_connection_and_is_reported_once`, `duplicate_response_is_not_used_for_the_next_request` |
//! | sequences that were never sent | `a_first_batch_that_is_called_a_duplicate_is_not_reported_as_written`, `a_batch_that_was_sent_before_may_be_a_duplicate`, `endless_sequence_errors_retry_no_faster_than_the_backoff` |
//! | offsets that go backwards | [`offset_that_goes_backwards_warns_and_records_are_reported_once`](crate::produce) |
//! | older epochs | [`an_older_leader_epoch_does_not_replace_a_newer_one`](crate::contract::metadata) |
//! | a leader that does not exist, hosts that are empty, port 0 | those of the scripted cluster, in [`crate::cluster`] |
//! | a new leader with a newer epoch, again and again | `batch_bouncing_between_leaders_is_sent_no_faster_than_the_backoff` |
//! | garbage, again and again | `endless_garbage_is_retried_no_faster_than_the_backoff`, `unreadable_response_is_not_repeated_without_idempotence` |
//! | a response without a partition of the request | `partition_without_response_is_not_repeated_without_idempotence` |

use ottla_protocol::error_code::ErrorCode;

use super::{Request, Script, at, millis};
use crate::{
    contract::broker::BrokerNews,
    error::ErrorKind,
    message::ToCluster,
    produce::{
        collector::Linger, report::PersistenceStatus, settings::ProducerSettings,
        topic_settings::TopicSettings,
    },
};

fn settings() -> ProducerSettings {
    ProducerSettings {
        linger: Linger::Broker(millis(5)),
        topic: TopicSettings { message_timeout: None, ..TopicSettings::default() },
        retry_backoff: millis(100),
        retry_backoff_max: millis(100),
        ..ProducerSettings::default()
    }
}

fn script() -> Script {
    let mut script = Script::new(2, settings());
    script.run_until(at(100));
    script
}

fn sent(script: &mut Script, partition: i32, value: &str) -> Request {
    script.send(partition, value);
    script.run_for(millis(5));
    script.request()
}

#[test]
fn wrong_correlation_id_ends_the_connection_and_the_batch_is_resent() {
    for difference in [1, -1, i32::MAX] {
        let mut script = script();
        let mut request = sent(&mut script, 0, "x");
        request.correlation_id = request.correlation_id.wrapping_add(difference);
        script.accept(&request);
        let error = script.down();
        assert_eq!(error.kind(), ErrorKind::BadResponse);
        assert!(
            error.to_string().contains("broker:9092/1: Produce: ")
                && error.to_string().contains("correlation id")
        );
        assert!(script.statuses().is_empty(), "its responses do not count");
        let lost_at = script.now;
        script.run_for(millis(500));
        let again = script.request();
        assert!(again.written_at >= lost_at + millis(80), "after the back-off");
        script.accept(&again);
        assert_eq!((again.values(), script.statuses()), (vec!["x"], vec![PersistenceStatus::Persisted]));
    }
}

#[test]
fn duplicate_response_closes_the_connection_and_is_reported_once() {
    let mut script = script();
    let request = sent(&mut script, 0, "x");
    script.accept(&request);
    script.accept(&request);
    let error = script.down();
    assert!(error.to_string().contains("a response that matches no request"), "{error}");
    script.run_for(millis(1000));
    script.assert_silent();
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted]);
}

#[test]
fn duplicate_response_is_not_used_for_the_next_request() {
    let mut script = script();
    let first = sent(&mut script, 0, "first");
    let second = sent(&mut script, 1, "second");
    script.accept(&first);
    script.accept(&first);
    assert!(script.down().to_string().contains("correlation id"));
    assert_eq!(script.reported_messages(), 1, "of the second one nothing was said");
    script.run_for(millis(500));
    let again = script.request();
    assert_eq!(again.values(), second.values());
    script.accept(&again);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted; 2]);
}

#[test]
fn a_first_batch_that_is_called_a_duplicate_is_not_reported_as_written() {
    let mut script = script();
    let request = sent(&mut script, 0, "x");
    script.respond_to_produce(&request, 0, |_| ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
    let error = &script.errors()[0];
    assert!(
        error.to_string().contains("t [0]") && error.to_string().contains("sent for the first time"),
        "{error}"
    );
    assert!(
        script
            .messages
            .iter()
            .any(|messages| matches!(messages, ToCluster::News(BrokerNews::Warning(odd)) if odd.kind() == ErrorKind::BadResponse))
    );
    // The next batch has sequence numbers that the broker cannot have seen.
    let next = sent(&mut script, 0, "y");
    script.accept(&next);
    assert_eq!(script.shared.identity.get().map(|identity| identity.epoch), Some(1));
    assert_eq!(script.statuses()[1], PersistenceStatus::Persisted);
}

#[test]
fn a_batch_that_was_sent_before_may_be_a_duplicate() {
    let mut script = script();
    sent(&mut script, 0, "x");
    script.disconnect();
    script.run_for(millis(500));
    let again = script.request();
    script.respond_to_produce(&again, 0, |_| ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted]);
    assert!(script.errors().is_empty());
}

#[test]
fn endless_sequence_errors_retry_no_faster_than_the_backoff() {
    for code in [
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode::UNKNOWN_PRODUCER_ID,
        ErrorCode::INVALID_PRODUCER_EPOCH,
    ] {
        let mut script = script();
        script.send(0, "x");
        let mut requests = 0;
        while script.now < at(10_100) {
            script.run_for(millis(5));
            for request in std::mem::take(&mut script.requests) {
                requests += 1;
                script.respond_to_produce(&request, 0, |_| code);
            }
        }
        assert!((50..=125).contains(&requests), "{code:?}: {requests} in 10 s, with a back-off of 100 ms");
        assert!(script.statuses().is_empty(), "its time is not over");
    }
}

#[test]
fn batch_bouncing_between_leaders_is_sent_no_faster_than_the_backoff() {
    let mut script = script();
    script.send(0, "x");
    let mut sent_at = Vec::new();
    while script.now < at(10_100) {
        script.run_for(millis(1));
        for request in std::mem::take(&mut script.requests) {
            sent_at.push(script.now);
            script.respond_to_produce(&request, 0, |_| ErrorCode::NOT_LEADER_OR_FOLLOWER);
            // Each leader names the other one, with a newer epoch every time. This broker plays both.
            script.release(0);
            script.adopt_all();
        }
    }
    assert!((50..=125).contains(&sent_at.len()), "{} in 10 s, with a back-off of 100 ms", sent_at.len());
    assert!(sent_at[1] - sent_at[0] < millis(10), "to the first new leader it goes at once");
    let last = script.request_after_back_off();
    script.accept(&last);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted]);
}

#[test]
fn endless_garbage_is_retried_no_faster_than_the_backoff() {
    let mut script = script();
    script.send(0, "x");
    let (mut requests, connects) = (0, script.connects);
    while script.now < at(10_100) {
        script.run_for(millis(5));
        for request in std::mem::take(&mut script.requests) {
            requests += 1;
            script.respond(&request, |_, out| out.extend([0xff; 40]));
        }
    }
    let connects = script.connects - connects;
    assert!(
        (20..=125).contains(&connects) && (20..=125).contains(&requests),
        "{connects} connections, {requests} requests"
    );
    assert!(script.statuses().is_empty());
    let error = script.down();
    assert_eq!(error.kind(), ErrorKind::BadResponse);
}

fn without_idempotence() -> Script {
    let mut script = Script::new(2, ProducerSettings { idempotence: false, ..settings() });
    script.run_until(at(100));
    script
}

#[test]
fn unreadable_response_is_not_repeated_without_idempotence() {
    let mut script = without_idempotence();
    let request = sent(&mut script, 0, "x");
    script.respond(&request, |_, out| out.extend([0xff; 40]));
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted]);
    assert_eq!(script.errors()[0].kind(), ErrorKind::BadResponse);
    script.run_for(millis(10_000));
    script.assert_silent();
    assert_eq!((script.reported_messages(), script.shared.queued_messages()), (1, 0));
    let next = sent(&mut script, 0, "y");
    script.accept(&next);
    assert_eq!(next.values(), ["y"]);
}

#[test]
fn partition_without_response_is_not_repeated_without_idempotence() {
    let mut script = without_idempotence();
    script.send(0, "x");
    script.send(1, "y");
    script.run_for(millis(5));
    let mut request = script.request();
    assert_eq!(request.partitions().len(), 2);
    request.batches.retain(|(partition, _)| *partition == 0);
    request.topics.truncate(1);
    script.accept(&request);
    script.run_for(millis(10_000));
    script.assert_silent();
    let mut statuses = script.statuses();
    statuses.sort_by_key(|status| *status == PersistenceStatus::PossiblyPersisted);
    assert_eq!(statuses, [PersistenceStatus::Persisted, PersistenceStatus::PossiblyPersisted]);
}
