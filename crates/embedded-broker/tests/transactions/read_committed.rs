//! Consumers of committed records: the last stable offset and the list of aborted transactions.

use std::time::Duration;

use ottla_embedded_broker::{BrokerId, BrokerRelease, CoordinatorKey, Tail};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        fetch::{FetchRequest, response::Partition},
        list_offsets::{self, ListOffsetsRequest},
    },
};

use crate::{
    Client, ID, MARKED,
    common::{Batch, base_offsets, fetch_request},
};

fn committed(partitions: &[(i32, i64)], max_wait_ms: i32) -> FetchRequest {
    FetchRequest { isolation_level: 1, ..fetch_request("t", partitions, max_wait_ms) }
}

fn fetch(client: &mut Client, version: i16, offset: i64) -> Partition {
    let response = client.world.call(client.connection, version, &committed(&[(0, offset)], 0));
    response.responses[0].partitions[0].clone()
}

fn aborted(partition: &Partition) -> Vec<(i64, i64)> {
    let aborted = partition.aborted_transactions.as_ref().expect("a list");
    aborted.iter().map(|aborted| (aborted.producer_id, aborted.first_offset)).collect()
}

fn offsets(partition: &Partition) -> Vec<i64> {
    base_offsets(partition.records.as_deref().unwrap_or_default())
}

#[test]
fn records_of_an_open_transaction_are_read_after_its_end() {
    for version in [4, 11, 12] {
        let mut client = Client::new(true);
        let producer = client.init(ID);
        client.world.produce(client.connection, 0, Batch::of(3).build());
        client.write(producer, &[0], 0);
        client.world.produce(client.connection, 0, Batch::of(1).build());
        let part = fetch(&mut client, version, 0);
        assert_eq!((part.high_watermark, part.last_stable_offset), (6, 3));
        assert_eq!((offsets(&part), aborted(&part)), (vec![0], vec![]));
        let all = client.world.fetch(client.connection, 0, 0);
        assert_eq!((offsets(&all), all.aborted_transactions), (vec![0, 3, 5], None));
        client.end(producer, false);
        client.world.pass(MARKED);
        let part = fetch(&mut client, version, 0);
        assert_eq!((part.high_watermark, part.last_stable_offset), (7, 7));
        assert_eq!((offsets(&part), aborted(&part)), (vec![0, 3, 5, 6], vec![(producer.id, 3)]));
    }
}

#[test]
fn aborted_transactions_are_listed_for_the_fetched_range() {
    let mut client = Client::new(true);
    let mut producer = client.init(ID);
    for end in [false, true, false] {
        client.write(producer, &[0], 0);
        producer = client.end(producer, end);
        client.world.pass(MARKED);
    }
    let id = producer.id;
    let at = |client: &mut Client, offset| aborted(&fetch(client, 12, offset));
    assert_eq!(at(&mut client, 0), [(id, 0), (id, 6)]);
    assert_eq!(at(&mut client, 2), [(id, 0), (id, 6)]);
    assert_eq!(at(&mut client, 3), [(id, 6)]);
    assert_eq!(at(&mut client, 8), [(id, 6)]);
    assert_eq!(at(&mut client, 9), []);
    let mut request = committed(&[(0, 0)], 0);
    request.max_bytes = 1;
    let response = client.world.call(client.connection, 12, &request);
    assert_eq!(aborted(&response.responses[0].partitions[0]), [(id, 0)]);
}

#[test]
fn waiting_fetch_ends_with_the_transaction() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    let reader = client.world.open(1);
    let id = client.world.send(reader, 12, &committed(&[(0, 0)], 10_000));
    client.write(producer, &[0], 0);
    client.world.pass(Duration::from_secs(1));
    assert!(client.world.respond::<FetchRequest>(reader, 12, id).is_none());
    client.end(producer, true);
    client.world.pass(MARKED);
    let response = client.world.respond::<FetchRequest>(reader, 12, id).expect("a response at the commit");
    assert_eq!(offsets(&response.responses[0].partitions[0]), [0, 2]);
}

#[test]
fn committed_end_and_timestamps_stop_at_open_transactions() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.world.produce(client.connection, 0, Batch::of(1).first_timestamp(500).build());
    client.write(producer, &[0], 0);
    let mut ask = |isolation_level, timestamp| {
        let partition = list_offsets::request::Partition { timestamp, ..Default::default() };
        let topic = list_offsets::request::Topic { name: "t".to_owned(), partitions: vec![partition] };
        let request = ListOffsetsRequest { isolation_level, topics: vec![topic], ..Default::default() };
        let response = client.world.call(client.connection, 7, &request);
        assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::NONE);
        response.topics[0].partitions[0].offset
    };
    assert_eq!([ask(0, -1), ask(1, -1)], [3, 1]);
    assert_eq!([ask(0, 1000), ask(1, 1000), ask(1, 500)], [1, -1, 0]);
    assert_eq!([ask(0, -3), ask(1, -3)], [2, -1]);
}

#[test]
fn deleted_records_of_an_open_transaction_free_no_later_ones() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    client.world.produce(client.connection, 0, Batch::of(2).build());
    client.world.cluster.control().delete_records("t", 0, 2);
    assert_eq!(client.offsets(0), (4, 2));
    client.end(producer, false);
    client.world.pass(MARKED);
    assert_eq!(client.offsets(0), (5, 5));
    assert_eq!(aborted(&fetch(&mut client, 12, 2)), [(producer.id, 0)]);
    client.world.cluster.control().delete_records("t", 0, 5);
    assert_eq!(aborted(&fetch(&mut client, 12, 5)), []);
}

#[test]
fn last_stable_offset_waits_for_followers_of_the_marker() {
    let mut client = Client::with(true, |options| {
        options.brokers = 3;
        options.replication_lag = Duration::from_millis(300);
    });
    client.world.cluster.control().create_topic("u", 1, 3).unwrap();
    client.world.cluster.control().move_leader("u", 0, Some(BrokerId(1)));
    client.world.cluster.control().set_coordinator(CoordinatorKey::Transaction(ID), BrokerId(1));
    let producer = client.init(ID);
    client.world.pass(Duration::from_secs(1));
    let mut batch = Batch::of(2).producer(producer.id, producer.epoch, 0);
    batch.attributes = 0x10;
    let mut request = crate::common::produce_request("u", 0, 1, batch.build());
    request.transactional_id = Some(ID.to_owned());
    client.world.call(client.connection, 12, &request);
    client.world.pass(Duration::from_secs(1));
    client.end(producer, true);
    client.world.pass(Duration::from_millis(200));
    let state = client.world.cluster.control().partition("u", 0).unwrap();
    assert_eq!((state.log_end_offset, state.high_watermark, state.last_stable_offset), (3, 2, 0));
    assert_eq!(client.state(), "PrepareCommit");
    client.world.pass(Duration::from_millis(200));
    let state = client.world.cluster.control().partition("u", 0).unwrap();
    assert_eq!((state.high_watermark, state.last_stable_offset), (3, 3));
    assert_eq!(client.state(), "CompleteCommit");
}

/// The leader that wrote the marker is lost before its followers have it, and the next leader's records take its place.
#[test]
fn lost_marker_is_written_again_after_other_records() {
    let mut client = Client::with(true, |options| {
        options.brokers = 3;
        options.replication_lag = Duration::from_millis(10);
    });
    let mut control = client.world.cluster.control();
    control.create_topic("u", 1, 3).unwrap();
    control.move_leader("u", 0, Some(BrokerId(2)));
    control.set_coordinator(CoordinatorKey::Transaction(ID), BrokerId(1));
    let producer = client.init(ID);
    client.world.pass(Duration::from_secs(1));
    client.world.cluster.control().move_leader("u", 0, Some(BrokerId(1)));
    let mut batch = Batch::of(2).producer(producer.id, producer.epoch, 0);
    batch.attributes = 0x10;
    let mut request = crate::common::produce_request("u", 0, 1, batch.build());
    request.transactional_id = Some(ID.to_owned());
    client.world.call(client.connection, 12, &request);
    client.world.pass(Duration::from_secs(1));
    client.world.cluster.control().move_leader("u", 0, Some(BrokerId(2)));
    client.end(producer, true);
    while client.world.cluster.control().partition("u", 0).unwrap().log_end_offset < 3 {
        client.world.pass(Duration::from_millis(1));
    }
    client.world.cluster.control().kill_broker(BrokerId(2), Tail::Lost);
    client.world.cluster.control().move_leader("u", 0, Some(BrokerId(1)));
    let other = crate::common::produce_request("u", 0, 1, Batch::of(1).build());
    client.world.call(client.connection, 12, &other);
    client.world.pass(Duration::from_secs(1));
    let state = client.world.cluster.control().partition("u", 0).unwrap();
    assert_eq!((state.log_end_offset, state.last_stable_offset), (4, 4));
    assert_eq!(client.state(), "CompleteCommit");
}

#[test]
fn message_sets_contain_no_markers() {
    let mut client =
        Client::with(false, |options| *options = options.clone().emulate(BrokerRelease::V0_11_0));
    let producer = client.init_in(0, ID);
    let mut batch = Batch::of(2).producer(producer.id, producer.epoch, 0);
    batch.attributes = 0x10;
    let mut request = crate::common::produce_request("t", 0, -1, batch.build());
    request.transactional_id = Some(ID.to_owned());
    assert_eq!(client.add_in(0, ID, producer, &[("t", &[0])]), [ErrorCode::NONE]);
    client.world.call(client.connection, 3, &request);
    assert_eq!(client.end_in(0, producer, true).error_code, ErrorCode::NONE);
    client.world.pass(MARKED);
    let [old, new] = [2, 4].map(|version| {
        let response = client.world.call(client.connection, version, &fetch_request("t", &[(0, 0)], 0));
        offsets(&response.responses[0].partitions[0])
    });
    assert_eq!((old, new), (vec![0, 1], vec![0, 2]));
}

#[test]
fn truncation_reopens_a_transaction_without_its_marker() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    client.write(producer, &[0], 0);
    let next = client.end(producer, false);
    client.world.pass(MARKED);
    client.world.cluster.control().truncate_log("t", 0, 2);
    assert_eq!(client.offsets(0), (2, 0));
    assert_eq!(aborted(&fetch(&mut client, 12, 0)), []);
    assert_eq!(next.epoch, 1);
}
