//! Calls about transactions, with scripted brokers.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        describe_producers::{DescribeProducersResponse, response as producers},
        describe_transactions::{DescribeTransactionsResponse, response as described},
        list_transactions::{ListTransactionsRequest, ListTransactionsResponse, response as listed},
        write_txn_markers::{WriteTxnMarkersRequest, WriteTxnMarkersResponse, response as written},
    },
    primitive::Reader,
    vocabulary::TopicPartition,
};

use super::{
    TransactionState,
    abort::{HangingTransaction, abort_transaction},
    describe::describe_transaction,
    list::{TransactionFilter, list_transactions},
    producers::describe_producers,
};
use crate::{
    admin::groups::scripted::{Script, TIMEOUT},
    contract::route::{CoordinatorKey, Route},
    error::ErrorKind,
};

fn listed(ids: &[&str]) -> ListTransactionsResponse {
    let state = |id: &&str| listed::TransactionState {
        transactional_id: (*id).to_owned(),
        producer_id: 7,
        transaction_state: "Ongoing".into(),
    };
    ListTransactionsResponse { transaction_states: ids.iter().map(state).collect(), ..Default::default() }
}

#[test]
fn transactions_of_all_brokers_are_listed_in_order() {
    let filter = TransactionFilter {
        states: vec![TransactionState::Ongoing],
        producer_ids: vec![7],
        running_longer_than: Some(Duration::from_secs(60)),
        id_pattern: Some("a|b".into()),
    };
    let (mut script, waiting) = Script::new(|done| list_transactions(filter, TIMEOUT, done));
    let sent = script.sent(2);
    let request = ListTransactionsRequest::decode(&mut Reader::new(&sent[0].body), 2).unwrap();
    assert_eq!((&*request.state_filters[0], request.producer_id_filters[0]), ("Ongoing", 7));
    assert_eq!(request.duration_filter, 60_000);
    assert_eq!(request.transactional_id_pattern.as_deref(), Some("a|b"));
    script.respond(&sent[0], 2, &listed(&["b"]));
    script.respond(&sent[1], 2, &listed(&["a"]));
    let listings = waiting.try_take().expect("both responded").expect("the call succeeds");
    let found: Vec<_> =
        listings.transactions.iter().map(|one| (&*one.transactional_id, one.coordinator)).collect();
    assert_eq!(found, [("a", 2), ("b", 1)]);
    assert_eq!(listings.transactions[0].state, TransactionState::Ongoing);
    assert_eq!(listings.failed, []);
}

#[test]
fn broker_that_does_not_know_a_state_is_reported() {
    let filter = TransactionFilter { states: vec![TransactionState::Dead], ..TransactionFilter::default() };
    let (mut script, waiting) = Script::new(|done| list_transactions(filter, TIMEOUT, done));
    for sent in script.sent(0) {
        let unknown = vec!["Dead".to_owned()];
        script.respond(
            &sent,
            0,
            &ListTransactionsResponse { unknown_state_filters: unknown, ..Default::default() },
        );
    }
    let listings = waiting.try_take().expect("both responded").expect("there is a partial result");
    assert_eq!(listings.failed.len(), 2);
    assert!(listings.failed[0].1.to_string().contains("Dead"), "{}", listings.failed[0].1);
}

fn described(error_code: ErrorCode) -> DescribeTransactionsResponse {
    let topic = described::Topic { topic: "t".into(), partitions: vec![0, 2] };
    let state = described::TransactionState {
        error_code,
        transactional_id: "id".into(),
        transaction_state: "PrepareAbort".into(),
        transaction_timeout_ms: 1500,
        transaction_start_time_ms: 99,
        producer_id: 7,
        producer_epoch: 3,
        topics: vec![topic],
    };
    DescribeTransactionsResponse { transaction_states: vec![state], ..Default::default() }
}

#[test]
fn transaction_is_described_by_its_coordinator() {
    let (mut script, waiting) = Script::new(|done| describe_transaction("id", TIMEOUT, done));
    let request = script.one(0);
    assert_eq!(request.route, Route::Coordinator(CoordinatorKey::transaction("id")));
    script.respond(&request, 0, &described(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
    let again = script.one(0);
    script.respond(&again, 0, &described(ErrorCode::NONE));
    let found = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!((found.state, found.start), (TransactionState::PrepareAbort, Some(99)));
    assert_eq!((found.producer_id, found.producer_epoch), (7, 3));
    assert_eq!(found.timeout, Duration::from_millis(1500));
    assert_eq!(found.partitions, [TopicPartition::new("t", 0), TopicPartition::new("t", 2)]);
}

#[test]
fn unknown_transactional_id_fails_at_once() {
    let (mut script, waiting) = Script::new(|done| describe_transaction("id", TIMEOUT, done));
    let request = script.one(0);
    script.respond(&request, 0, &described(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND));
    let error = waiting.try_take().expect("it responded").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND));
}

#[test]
fn leader_describes_the_producers_of_its_partition() {
    let (mut script, waiting) = Script::new(|done| describe_producers(vec![("t", 0).into()], TIMEOUT, done));
    let request = script.one(0);
    assert_eq!(request.route, Route::Node(2));
    let producer = producers::ActiveProducer {
        producer_id: 7,
        producer_epoch: 3,
        last_sequence: -1,
        last_timestamp: 99,
        coordinator_epoch: -1,
        current_txn_start_offset: 5,
    };
    let partition = producers::Partition { active_producers: vec![producer], ..Default::default() };
    let topics = vec![producers::Topic { name: "t".into(), partitions: vec![partition] }];
    script.respond(&request, 0, &DescribeProducersResponse { topics, ..Default::default() });
    let found = waiting.try_take().expect("it responded").remove(0).expect("it succeeds");
    assert_eq!((found[0].producer_id, found[0].producer_epoch), (7, 3));
    assert_eq!((found[0].last_sequence, found[0].coordinator_epoch), (None, None));
    assert_eq!((found[0].last_timestamp, found[0].transaction_start), (Some(99), Some(5)));
}

fn written(error_code: ErrorCode) -> WriteTxnMarkersResponse {
    let partitions = vec![written::Partition { partition_index: 0, error_code }];
    let topics = vec![written::Topic { name: "t".into(), partitions }];
    WriteTxnMarkersResponse { markers: vec![written::Marker { producer_id: 7, topics }] }
}

fn hanging() -> HangingTransaction {
    let topic = "t".into();
    HangingTransaction { topic, partition: 0, producer_id: 7, producer_epoch: 3, coordinator_epoch: Some(4) }
}

#[test]
fn abort_marker_goes_to_the_partitions_leader_until_it_is_written() {
    let (mut script, waiting) = Script::new(|done| abort_transaction(hanging(), TIMEOUT, done));
    let request = script.one(1);
    assert_eq!(request.route, Route::Node(2));
    let asked = WriteTxnMarkersRequest::decode(&mut Reader::new(&request.body), 1).unwrap();
    assert_eq!((asked.markers[0].transaction_result, asked.markers[0].coordinator_epoch), (false, 4));
    script.respond(&request, 1, &written(ErrorCode::NOT_LEADER_OR_FOLLOWER));
    let again = script.one(1);
    script.respond(&again, 1, &written(ErrorCode::NONE));
    assert_eq!(waiting.try_take().expect("it responded"), Ok(()));
}

#[test]
fn refused_abort_marker_is_an_error_that_names_the_partition() {
    let (mut script, waiting) = Script::new(|done| abort_transaction(hanging(), TIMEOUT, done));
    let request = script.one(1);
    script.respond(&request, 1, &written(ErrorCode::INVALID_PRODUCER_EPOCH));
    let error = waiting.try_take().expect("it responded").unwrap_err();
    assert!(error.to_string().contains("describe its producers again"), "{error}");
}
