//! Faults: lost responses, late requests, coordinators that die, and injected errors.

use std::time::Duration;

use ottla_embedded_broker::{ApiKey, BrokerId, CoordinatorKey, Fault, FaultAction, Tail};
use ottla_protocol::{
    batch::ControlRecord,
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnRequest, end_txn::EndTxnRequest,
        find_coordinator::FindCoordinatorRequest,
    },
};

use crate::{
    Client, ID, MARKED, OK, Producer,
    common::{Batch, produce_request},
    marker,
};

fn end_request(producer: Producer, committed: bool) -> EndTxnRequest {
    EndTxnRequest {
        transactional_id: ID.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        committed,
    }
}

/// Injects a fault into the next request of an API.
fn inject(client: &mut Client, api: ApiKey, action: FaultAction) {
    client.world.cluster.control().inject(Fault::new(action).api(api).times(1));
}

fn reconnect(client: &mut Client) {
    assert!(client.world.is_closed(client.connection));
    client.connection = client.world.open(1);
}

#[test]
fn lost_response_leaves_the_end_decided() {
    let mut client = Client::new(true);
    let first = client.init(ID);
    client.write(first, &[0], 0);
    inject(&mut client, ApiKey::EndTxn, FaultAction::LoseResponse);
    client.world.send(client.connection, 5, &end_request(first, true));
    reconnect(&mut client);
    assert_eq!(client.state(), "PrepareCommit");
    client.world.pass(MARKED);
    assert_eq!(client.end(first, true), Producer { epoch: 1, ..first });
    assert_eq!(client.log(0), [Err(2), marker(true)]);
}

/// KAFKA-17754: under the old protocol the epoch of the next transaction is the same.
#[test]
fn late_records_join_the_next_transaction_of_old_producers_only() {
    for is_new in [false, true] {
        let mut client = Client::new(is_new);
        let first = client.init(ID);
        if !is_new {
            assert_eq!(client.add(first, &[0]), OK);
        }
        inject(&mut client, ApiKey::Produce, FaultAction::DeliverLate(Duration::from_secs(1)));
        let mut batch = Batch::of(5).producer(first.id, first.epoch, 0);
        batch.attributes = 0x10;
        let mut request = produce_request("t", 0, -1, batch.build());
        request.transactional_id = Some(ID.to_owned());
        client.world.send(client.connection, if is_new { 12 } else { 11 }, &request);
        reconnect(&mut client);
        assert_eq!(client.log(0), []);
        let second = client.end(first, false);
        client.world.pass(MARKED);
        client.write(second, &[1], 0);
        if !is_new {
            assert_eq!(client.add(second, &[0]), OK);
        }
        client.world.pass(Duration::from_secs(1));
        client.end(second, true);
        client.world.pass(MARKED);
        if is_new {
            assert_eq!(client.log(0), []);
        } else {
            // The marker of the first transaction, then its records in the second one.
            assert_eq!(client.log(0), [marker(false), Err(5), marker(true)]);
        }
    }
}

#[test]
fn late_end_of_a_transaction_ends_the_next_one_of_old_producers_only() {
    for is_new in [false, true] {
        let mut client = Client::new(is_new);
        let first = client.init(ID);
        client.write(first, &[0], 0);
        inject(&mut client, ApiKey::EndTxn, FaultAction::DeliverLate(Duration::from_secs(1)));
        client.world.send(client.connection, if is_new { 5 } else { 4 }, &end_request(first, false));
        reconnect(&mut client);
        assert_eq!(client.state(), "Ongoing");
        let second = client.end(first, false);
        client.world.pass(MARKED);
        client.write(second, &[0], if is_new { 0 } else { 2 });
        client.world.pass(Duration::from_secs(1) + MARKED);
        assert_eq!(client.state(), if is_new { "Ongoing" } else { "CompleteAbort" });
    }
}

#[test]
fn next_broker_takes_over_the_end_from_a_dead_coordinator() {
    let mut client = Client::with(true, |options| options.brokers = 3);
    let mut control = client.world.cluster.control();
    control.set_coordinator(CoordinatorKey::Transaction(ID), BrokerId(1));
    control.delay_markers("t", 0, Some(Duration::from_secs(1)));
    control.move_leader("t", 0, Some(BrokerId(1)));
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    client.end(producer, true);
    client.world.cluster.control().kill_broker(BrokerId(1), Tail::Kept);
    client.world.pass(Duration::from_secs(2));
    assert_eq!(client.state(), "PrepareCommit", "a dead broker is still the coordinator");
    let mut control = client.world.cluster.control();
    control.set_coordinator(CoordinatorKey::Transaction(ID), BrokerId(3));
    control.move_leader("t", 0, Some(BrokerId(2)));
    client.world.pass(Duration::from_secs(2));
    assert_eq!(client.state(), "CompleteCommit");
    let written = ControlRecord::EndTransaction { committed: true, coordinator_epoch: 1 };
    assert_eq!(client.log(0), [Err(2), Ok(written)]);
}

#[test]
fn surviving_brokers_coordinate_the_ids_of_a_dead_one() {
    let mut client = Client::with(true, |options| options.brokers = 3);
    let lookup =
        FindCoordinatorRequest { key_type: 1, coordinator_keys: vec![ID.to_owned()], ..Default::default() };
    let find = |client: &mut Client| client.world.call(client.connection, 4, &lookup).coordinators[0].node_id;
    let first = find(&mut client);
    client.connection = client.world.open(first);
    client.world.cluster.control().move_leader("t", 0, Some(BrokerId(first)));
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    client.end(producer, true);
    client.world.cluster.control().kill_broker(BrokerId(first), Tail::Kept);
    let other = if first == 1 { 2 } else { 1 };
    client.connection = client.world.open(other);
    let second = find(&mut client);
    assert!(second != first);
    client.world.cluster.control().move_leader("t", 0, Some(BrokerId(second)));
    client.world.pass(MARKED);
    client.connection = client.world.open(second);
    assert_eq!(client.end(producer, true), Producer { epoch: 1, ..producer });
    assert_eq!(client.state(), "CompleteCommit");
}

#[test]
fn every_api_of_transactions_takes_injected_errors() {
    let mut client = Client::new(false);
    let producer = client.init(ID);
    let error = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let fail = |client: &mut Client, api| inject(client, api, FaultAction::Error(error));
    fail(&mut client, ApiKey::InitProducerId);
    assert_eq!(client.try_init(ID, None).error_code, error);
    fail(&mut client, ApiKey::AddPartitionsToTxn);
    assert_eq!(client.add_of(ID, producer, &[("t", &[0, 1])]), [error; 2]);
    fail(&mut client, ApiKey::AddOffsetsToTxn);
    let offsets = AddOffsetsToTxnRequest {
        transactional_id: ID.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        group_id: "g".to_owned(),
    };
    assert_eq!(client.world.call(client.connection, 3, &offsets).error_code, error);
    assert_eq!(client.state(), "Empty", "no request had an effect");
    assert_eq!(client.add(producer, &[0]), OK);
    fail(&mut client, ApiKey::EndTxn);
    assert_eq!(client.try_end(producer, true).error_code, error);
    assert_eq!(client.state(), "Ongoing");
    fail(&mut client, ApiKey::TxnOffsetCommit);
    assert_eq!(crate::offsets::commit_once(&mut client, producer), error);
}
