//! Producers that are replaced, that time out, or whose epochs are used up.

use std::time::Duration;

use ottla_embedded_broker::{BrokerId, CoordinatorKey};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{end_txn::EndTxnRequest, init_producer_id::InitProducerIdRequest},
};

use crate::{CONCURRENT, Client, ID, MARKED, OK, Producer, marker};

#[test]
fn second_producer_aborts_the_transaction_of_the_first() {
    for is_new in [false, true] {
        let mut client =
            Client::with(is_new, |options| options.transaction_version = if is_new { 2 } else { 1 });
        let first = client.init(ID);
        client.write(first, &[0], 0);
        assert_eq!(client.try_init(ID, None).error_code, CONCURRENT);
        assert_eq!(client.try_init(ID, None).error_code, CONCURRENT);
        client.world.pass(MARKED);
        assert_eq!(client.log(0), [Err(2), marker(false)]);
        let second = client.init(ID);
        assert_eq!(second.id, first.id);
        assert!(second.epoch > first.epoch);
        assert_eq!(client.try_end(first, true).error_code, ErrorCode::PRODUCER_FENCED);
        assert_eq!(client.produce(first, 0, 2), ErrorCode::INVALID_PRODUCER_EPOCH);
        assert_eq!(client.add(first, &[1]), ErrorCode::PRODUCER_FENCED);
        assert_eq!(second.epoch, 2);
        assert_eq!(client.try_init(ID, Some(first)).error_code, ErrorCode::PRODUCER_FENCED);
        client.write(second, &[0], 0);
        client.end(second, true);
    }
}

#[test]
fn old_versions_report_a_fenced_producer_as_an_invalid_epoch() {
    let mut client = Client::new(false);
    let first = client.init(ID);
    client.init(ID);
    let end = EndTxnRequest {
        transactional_id: ID.to_owned(),
        producer_id: first.id,
        producer_epoch: first.epoch,
        committed: true,
    };
    let errors = [0, 1, 2].map(|version| client.world.call(client.connection, version, &end).error_code);
    let (invalid, fenced) = (ErrorCode::INVALID_PRODUCER_EPOCH, ErrorCode::PRODUCER_FENCED);
    assert_eq!(errors, [invalid, invalid, fenced]);
    let init = InitProducerIdRequest {
        transactional_id: Some(ID.to_owned()),
        transaction_timeout_ms: 1000,
        producer_id: first.id,
        producer_epoch: first.epoch,
        ..Default::default()
    };
    let errors = [3, 4].map(|version| client.world.call(client.connection, version, &init).error_code);
    assert_eq!(errors, [invalid, fenced]);
}

#[test]
fn producer_bumps_its_own_epoch_and_may_repeat_that() {
    let mut client = Client::new(false);
    let first = client.init(ID);
    let bumped = client.try_init(ID, Some(first));
    assert_eq!((bumped.error_code, bumped.producer_epoch), (OK, 1));
    let repeated = client.try_init(ID, Some(first));
    assert_eq!((repeated.error_code, repeated.producer_epoch), (OK, 1));
    client.init(ID);
    assert_eq!(client.try_init(ID, Some(first)).error_code, ErrorCode::PRODUCER_FENCED);
    let half = client.try_init(ID, Some(Producer { id: first.id, epoch: -1 }));
    assert_eq!(half.error_code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn invalid_timeouts_and_unknown_ids_are_refused() {
    let mut client = Client::new(true);
    for timeout in [-1, 0, 900_001] {
        let request = InitProducerIdRequest {
            transactional_id: Some(ID.to_owned()),
            transaction_timeout_ms: timeout,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let response = client.world.call(client.connection, 5, &request);
        assert_eq!(response.error_code, ErrorCode::INVALID_TRANSACTION_TIMEOUT);
    }
    let stranger = Producer { id: 77, epoch: 0 };
    let unmapped = ErrorCode::INVALID_PRODUCER_ID_MAPPING;
    assert_eq!(client.add(stranger, &[0]), unmapped);
    assert_eq!(client.produce(stranger, 0, 0), unmapped);
    assert_eq!(client.try_end(stranger, true).error_code, unmapped);
    client.init(ID);
    assert_eq!(client.add(stranger, &[0]), unmapped);
    assert_eq!(client.try_end(stranger, true).error_code, unmapped);
    client.world.cluster.control().expire_transactional_id(ID);
    assert_eq!(client.try_end(Producer { id: 1000, epoch: 0 }, true).error_code, unmapped);
}

#[test]
fn transaction_aborts_at_the_first_check_after_its_timeout() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.world.pass(Duration::from_secs(5));
    client.write(producer, &[0], 0);
    client.world.pass(Duration::from_secs(64));
    assert_eq!(client.state(), "Ongoing");
    client.world.pass(Duration::from_secs(2));
    assert_eq!(client.state(), "CompleteAbort");
    assert_eq!(client.log(0), [Err(2), marker(false)]);
    assert_eq!(client.produce(producer, 0, 2), ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(client.try_end(producer, true).error_code, ErrorCode::INVALID_TXN_STATE);
    assert_eq!(client.end(producer, false), Producer { epoch: 1, ..producer }, "it knows of the abort now");
}

#[test]
fn late_timer_does_not_extend_a_transaction() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    client.world.pass_without_timeouts(Duration::from_secs(75));
    assert_eq!(client.try_end(producer, true).error_code, CONCURRENT, "it is being aborted");
    client.world.pass(MARKED);
    assert_eq!(client.log(0), [Err(2), marker(false)]);
}

#[test]
fn timeout_of_an_ended_transaction_does_not_abort_the_next() {
    let mut client = Client::new(true);
    let first = client.init(ID);
    client.write(first, &[0], 0);
    client.world.pass(Duration::from_secs(30));
    let second = client.end(first, true);
    client.world.pass(MARKED);
    client.write(second, &[0], 0);
    client.world.pass(Duration::from_secs(50));
    assert_eq!(client.state(), "Ongoing");
    client.world.pass(Duration::from_secs(50));
    assert_eq!(client.state(), "CompleteAbort");
}

#[test]
fn exhausted_epochs_lead_to_a_new_producer_id() {
    let mut client = Client::new(true);
    let first = client.init(ID);
    assert!(client.world.cluster.control().set_producer_epoch(ID, i16::MAX - 1));
    let last = Producer { epoch: i16::MAX - 1, ..first };
    client.write(last, &[0], 0);
    let next = client.end(last, true);
    assert_eq!((next.epoch, next.id != first.id), (0, true));
    client.world.pass(MARKED);
    assert_eq!(client.end(last, true), next, "a repeated EndTxn of the old producer ID");
    client.write(next, &[0], 0);
    client.end(next, true);

    let mut old = Client::new(false);
    let first = old.init(ID);
    old.world.cluster.control().set_producer_epoch(ID, i16::MAX - 1);
    let next = old.init(ID);
    assert_eq!((next.epoch, next.id != first.id), (0, true));
}

#[test]
fn new_coordinator_writes_the_markers_again() {
    let mut client = Client::with(true, |options| options.brokers = 3);
    client.world.cluster.control().set_coordinator(CoordinatorKey::Transaction(ID), BrokerId(1));
    client.world.cluster.control().move_leader("t", 0, Some(BrokerId(1)));
    client.world.cluster.control().move_leader("t", 1, Some(BrokerId(1)));
    client.world.cluster.control().delay_markers("t", 1, Some(Duration::from_secs(5)));
    let producer = client.init(ID);
    client.write(producer, &[0, 1], 0);
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(client.log(0), [Err(2), marker(true)]);
    let mut control = client.world.cluster.control();
    control.delay_markers("t", 1, None);
    control.set_coordinator(CoordinatorKey::Transaction(ID), BrokerId(2));
    control.load_transactions(ID, Duration::from_secs(1));
    assert_eq!(client.try_end(producer, true).error_code, ErrorCode::NOT_COORDINATOR);
    client.connection = client.world.open(2);
    assert_eq!(client.try_end(producer, true).error_code, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert_eq!(client.state(), "PrepareCommit");
    client.world.pass(Duration::from_secs(2));
    assert_eq!(client.state(), "CompleteCommit");
    let again =
        Ok(ottla_protocol::batch::ControlRecord::EndTransaction { committed: true, coordinator_epoch: 1 });
    assert_eq!(client.log(0), [Err(2), marker(true), again]);
    assert_eq!(client.end(producer, true).epoch, 1);
    client.world.pass(Duration::from_secs(10));
    assert_eq!(client.log(1).len(), 2);
}

#[test]
fn markers_wait_for_a_leader() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    client.world.cluster.control().move_leader("t", 0, None);
    client.end(producer, true);
    client.world.pass(Duration::from_secs(100));
    assert_eq!((client.state(), client.offsets(0)), ("PrepareCommit", (2, 0)));
    client.world.cluster.control().move_leader("t", 0, Some(BrokerId(1)));
    client.world.pass(MARKED);
    assert_eq!((client.state(), client.offsets(0)), ("CompleteCommit", (3, 3)));
}

#[test]
fn deleted_topic_does_not_hold_up_the_end() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    client.world.cluster.control().delete_topic("t");
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(client.state(), "CompleteCommit");
}
