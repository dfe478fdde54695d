//! The sender of a transactional producer: which batches it may send, under which epoch, and what their failures mean.

use std::sync::Arc;

use ottla_protocol::{error_code::ErrorCode, vocabulary::TopicPartition};

use super::*;
use crate::{
    contract::purge::Purge,
    error::ErrorKind,
    produce::{
        collector::Linger,
        record::SendError,
        transaction::{error::TransactionError, shared::TransactionShared, state::TransactionState},
    },
};

fn settings(linger_ms: u64) -> ProducerSettings {
    ProducerSettings {
        transactional_id: Some("x".into()),
        linger: Linger::Broker(millis(linger_ms)),
        retry_backoff: millis(100),
        retry_backoff_max: millis(100),
        ..ProducerSettings::default()
    }
}

/// A transactional sender with an open transaction.
fn open(partitions: i32, linger_ms: u64) -> (Script, Arc<TransactionShared>) {
    let script = Script::new(partitions, settings(linger_ms));
    let transactions = script.shared.transactions.clone().expect("it is transactional");
    begin(&script);
    (script, transactions)
}

fn begin(script: &Script) {
    let transactions = script.shared.transactions.as_ref().expect("it is transactional");
    transactions.begin(false, false);
    script.shared.begin_transaction();
}

/// Admits partitions as the cluster actor does.
fn admit(script: &mut Script, partitions: &[i32]) {
    let transactions = script.shared.transactions.clone().expect("it is transactional");
    for partition in partitions {
        transactions.register(TopicPartition::new(TOPIC, *partition));
    }
    transactions.note_permission();
    script.messages(ToBroker::Produce(ProduceMessage::Flush));
}

fn has_news(script: &mut Script) -> bool {
    let messages = std::mem::take(&mut script.messages);
    messages.iter().any(|message| matches!(message, ToCluster::Produce(ProduceReport::Transaction)))
}

#[test]
fn only_partitions_of_the_transaction_are_sent() {
    let (mut script, transactions) = open(3, 0);
    (0..3).for_each(|partition| script.send(partition, "x"));
    script.assert_silent();
    assert!(has_news(&mut script), "the cluster actor registers them");
    admit(&mut script, &[0, 2]);
    let request = script.request();
    assert_eq!((request.partitions(), request.version), (vec![0, 2], 8));
    assert_eq!(request.transactional_id.as_deref(), Some("x"));
    assert!(request.is_transactional);
    script.accept(&request);
    assert!(transactions.take_failure().is_none() && !transactions.needs_renewal());
    admit(&mut script, &[1]);
    assert_eq!(script.request().partitions(), [1]);
}

#[test]
fn commit_flushes_collected_records() {
    let (mut script, transactions) = open(2, 10_000);
    (0..2).for_each(|partition| script.send(partition, "x"));
    admit(&mut script, &[0, 1]);
    script.assert_silent();
    transactions.set_state(TransactionState::BeginCommit);
    script.shared.end_transaction();
    script.shared.start_flush();
    script.messages(ToBroker::Produce(ProduceMessage::Flush));
    assert_eq!(script.request().partitions(), [0, 1]);
    let topic = script.shared.topic(TOPIC).0;
    let refused = script.shared.send(&topic, script.now, 0, &Record::new().value("late"), None);
    assert!(matches!(refused, Err(SendError::State(_))));
}

#[test]
fn failed_batch_ends_the_transaction_and_its_epoch() {
    let rows = [
        (ErrorCode::INVALID_PRODUCER_EPOCH, false),
        (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, false),
        (ErrorCode::UNKNOWN_PRODUCER_ID, false),
        (ErrorCode::INVALID_TXN_STATE, false),
        (ErrorCode::TRANSACTION_ABORTABLE, false),
        (ErrorCode::TOPIC_AUTHORIZATION_FAILED, false),
        (ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, false),
        (ErrorCode::MESSAGE_TOO_LARGE, false),
        (ErrorCode::INVALID_PRODUCER_ID_MAPPING, false),
        (ErrorCode::PRODUCER_FENCED, true),
    ];
    for (code, is_fatal) in rows {
        let (mut script, transactions) = open(1, 0);
        admit(&mut script, &[0]);
        script.send(0, "x");
        let request = script.request();
        script.respond_to_produce(&request, 0, |_| code);
        script.assert_silent();
        assert!(has_news(&mut script));
        let failure = transactions.take_failure().expect("the transaction failed");
        let expected = if is_fatal { ErrorKind::Fenced } else { ErrorKind::Broker(code) };
        assert_eq!((failure.is_fatal(), failure.kind()), (is_fatal, expected), "{code}");
        assert!(transactions.needs_renewal(), "a sequence number is missing");
        assert_eq!(script.errors()[0].kind(), ErrorKind::Broker(code));
    }
}

#[test]
fn batch_of_two_records_that_is_too_large_is_not_split() {
    let (mut script, transactions) = open(1, 20);
    admit(&mut script, &[0]);
    script.send(0, "one");
    script.send(0, "two");
    script.run_for(millis(30));
    let request = script.request();
    script.respond_to_produce(&request, 0, |_| ErrorCode::MESSAGE_TOO_LARGE);
    script.run_for(millis(500));
    script.assert_silent();
    assert!(matches!(transactions.take_failure(), Some(TransactionError::Abort(_))));
}

#[test]
fn batch_is_sent_again_soon_while_markers_are_written() {
    let (mut script, transactions) = open(1, 0);
    admit(&mut script, &[0]);
    script.send(0, "x");
    let request = script.request();
    script.respond_to_produce(&request, 0, |_| ErrorCode::CONCURRENT_TRANSACTIONS);
    let refused_at = script.now;
    script.run_for(millis(50));
    let mut again = script.request();
    assert_eq!(again.written_at, refused_at + millis(2));
    // Every further time it waits twice as long.
    for wait in [4, 8, 16] {
        script.respond_to_produce(&again, 0, |_| ErrorCode::CONCURRENT_TRANSACTIONS);
        let refused_at = script.now;
        script.run_for(millis(50));
        again = script.request();
        assert_eq!(again.written_at, refused_at + millis(wait));
    }
    script.accept(&again);
    assert!(transactions.take_failure().is_none());
}

#[test]
fn lost_batch_of_a_transaction_makes_the_next_one_use_another_epoch() {
    let (mut script, transactions) = open(1, 0);
    admit(&mut script, &[0]);
    script.send(0, "x");
    script.request();
    assert!(!transactions.needs_renewal());
    script.disconnect();
    assert!(transactions.needs_renewal());
    let again = script.request_after_back_off();
    script.accept(&again);
    assert!(transactions.take_failure().is_none(), "the batch was delivered");
}

#[test]
fn message_that_times_out_ends_the_transaction() {
    let (mut script, transactions) = open(1, 0);
    script.send(0, "x");
    script.run_for(Duration::from_secs(400));
    script.assert_silent();
    let failure = transactions.take_failure().expect("the transaction failed");
    assert_eq!((failure.requires_abort(), failure.kind()), (true, ErrorKind::MessageTimedOutInQueue));
}

#[test]
fn batch_that_comes_back_during_an_abort_is_purged() {
    let (mut script, transactions) = open(2, 0);
    admit(&mut script, &[0, 1]);
    script.send(0, "x");
    let request = script.request();
    script.send(0, "behind");
    transactions.set_state(TransactionState::BeginAbort);
    script.shared.end_transaction();
    script.messages(ToBroker::Produce(ProduceMessage::Purge(Purge::QUEUE)));
    assert_eq!(script.reported_messages(), 1);
    script.respond_to_produce(&request, 0, |_| ErrorCode::CONCURRENT_TRANSACTIONS);
    assert_eq!((script.reported_messages(), script.shared.queued_messages()), (2, 0));
    assert!(script.errors().iter().all(|error| error.kind() == ErrorKind::PurgedFromQueue));
    script.run_for(millis(500));
    script.assert_silent();
}

#[test]
fn sequences_continue_under_one_epoch_and_restart_under_the_next() {
    let (mut script, transactions) = open(1, 0);
    let mut numbers = Vec::new();
    for epoch in [0, 0, 1, 1, 3] {
        script.shared.identity.set(ProducerIdentity { id: 7, epoch });
        admit(&mut script, &[0]);
        script.send(0, "x");
        let request = script.request();
        numbers.extend(request.numbers.clone());
        script.accept(&request);
        transactions.set_state(TransactionState::Ready);
        script.shared.end_transaction();
        begin(&script);
    }
    assert_eq!(numbers, [(0, 0), (0, 1), (1, 0), (1, 1), (3, 0)]);
}

#[test]
fn records_wait_for_a_new_epoch_and_for_batches_of_the_old_one() {
    let (mut script, transactions) = open(1, 0);
    admit(&mut script, &[0]);
    script.send(0, "old");
    let request = script.request();
    script.messages(ToBroker::Produce(ProduceMessage::Purge(Purge::IN_FLIGHT)));
    assert!(transactions.needs_renewal(), "the batch may still be written");
    script.shared.identity.clear();
    begin(&script);
    admit(&mut script, &[0]);
    script.send(0, "new");
    script.assert_silent();
    script.shared.identity.set(ProducerIdentity { id: 7, epoch: 1 });
    script.messages(ToBroker::Produce(ProduceMessage::Flush));
    script.assert_silent();
    script.accept(&request);
    let next = script.request();
    assert_eq!((next.values(), next.numbers.clone()), (vec!["new"], vec![(1, 0)]));
}

/// The transaction of the batch has been aborted: its response says nothing about the next one.
#[test]
fn late_refusal_of_a_reported_batch_concerns_no_transaction() {
    let (mut script, transactions) = open(1, 0);
    admit(&mut script, &[0]);
    script.send(0, "old");
    let request = script.request();
    script.messages(ToBroker::Produce(ProduceMessage::Purge(Purge::IN_FLIGHT)));
    transactions.take_failure();
    script.shared.identity.set(ProducerIdentity { id: 7, epoch: 1 });
    begin(&script);
    admit(&mut script, &[0]);
    script.respond_to_produce(&request, 0, |_| ErrorCode::INVALID_PRODUCER_EPOCH);
    assert!(transactions.take_failure().is_none());
    script.send(0, "new");
    assert_eq!(script.request().numbers, [(1, 0)]);
}
