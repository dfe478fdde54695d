//! Quotas: throttle times, muted connections, and who shares a quota.

mod common;

use std::time::Duration;

use common::{Batch, World, fetch_request, produce_request};
use ottla_embedded_broker::{ClusterOptions, ConnectionId};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_client_quotas::{AlterClientQuotasRequest, request},
        create_partitions::{self, CreatePartitionsRequest},
        create_topics::{self, CreateTopicsRequest, CreateTopicsResponse},
        delete_topics::DeleteTopicsRequest,
        fetch::{FetchRequest, FetchResponse},
        list_groups::ListGroupsRequest,
        produce::{ProduceRequest, ProduceResponse},
    },
};

const OK: ErrorCode = ErrorCode::NONE;
const EXCEEDED: ErrorCode = ErrorCode::THROTTLING_QUOTA_EXCEEDED;

fn world() -> World {
    let mut world = World::new(ClusterOptions { brokers: 1, ..Default::default() });
    world.cluster.control().create_topic("t", 1, 1).unwrap();
    world
}

/// Sets a quota of an entity, in which `None` is the default.
fn set(world: &mut World, entity: &[(&str, Option<&str>)], key: &str, value: f64) {
    let entity = entity.iter().map(|(kind, name)| request::Entity {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
    });
    let op = request::Op { key: key.to_owned(), value, remove: value == 0.0 };
    let entry = request::Entry { entity: entity.collect(), ops: vec![op] };
    let connection = world.open(1);
    let request = AlterClientQuotasRequest { entries: vec![entry], validate_only: false };
    let response = world.call(connection, 1, &request);
    assert_eq!(response.entries[0].error_code, OK, "{:?}", response.entries[0].error_message);
}

/// The client ID of all requests of these tests.
const CLIENT: (&str, Option<&str>) = ("client-id", Some("test"));

/// Produces a batch with a value of this size; returns the throttle time.
fn produce(world: &mut World, connection: ConnectionId, bytes: usize) -> i32 {
    let batch = Batch::of(1).value_size(bytes).build();
    let response: ProduceResponse = world.call(connection, 12, &produce_request("t", 0, -1, batch));
    assert_eq!(response.responses[0].partition_responses[0].error_code, OK);
    response.throttle_time_ms
}

#[test]
fn producer_is_slowed_down_to_its_rate() {
    let mut world = world();
    set(&mut world, &[CLIENT], "producer_byte_rate", 10_000.0);
    let connection = world.open(1);
    let (start, mut sent) = (world.now, 0);
    while world.now.saturating_since(start) < Duration::from_secs(300) {
        let throttle = produce(&mut world, connection, 9_850);
        sent += 10_000;
        world.pass(Duration::from_millis(u64::try_from(throttle).unwrap()));
    }
    let rate = f64::from(sent) / world.now.saturating_since(start).as_secs_f64();
    // Ten seconds' worth may be sent at once in the beginning.
    assert!((9_500.0..10_700.0).contains(&rate), "{rate} bytes per second");
}

#[test]
fn throttled_connection_is_muted_and_others_are_not() {
    let mut world = world();
    set(&mut world, &[CLIENT], "producer_byte_rate", 1000.0);
    let connection = world.open(1);
    let throttle = produce(&mut world, connection, 12_000);
    assert!((2000..2300).contains(&throttle), "12 s worth: {throttle} ms");
    let id = world.send(connection, 4, &ListGroupsRequest::default());
    assert!(world.respond::<ListGroupsRequest>(connection, 4, id).is_none());
    let other = world.open(1);
    world.call(other, 4, &ListGroupsRequest::default());
    world.pass(Duration::from_millis(u64::try_from(throttle).unwrap() - 1));
    assert!(world.respond::<ListGroupsRequest>(connection, 4, id).is_none());
    world.pass(Duration::from_millis(1));
    let response = world.respond::<ListGroupsRequest>(connection, 4, id).expect("the time is over");
    assert_eq!(response.throttle_time_ms, 0);
}

#[test]
fn unacknowledged_producer_is_muted_too() {
    let mut world = world();
    set(&mut world, &[CLIENT], "producer_byte_rate", 1000.0);
    let connection = world.open(1);
    let batch = Batch::of(1).value_size(20_000).build();
    world.send::<ProduceRequest>(connection, 12, &produce_request("t", 0, 0, batch));
    let id = world.send(connection, 4, &ListGroupsRequest::default());
    world.pass(Duration::from_secs(9));
    assert!(world.respond::<ListGroupsRequest>(connection, 4, id).is_none());
    world.pass(Duration::from_secs(2));
    assert!(world.respond::<ListGroupsRequest>(connection, 4, id).is_some());
}

/// Fetches everything; returns the throttle time, and the number of bytes.
fn fetch(world: &mut World, connection: ConnectionId) -> (i32, usize) {
    let response: FetchResponse = world.call(connection, 12, &fetch_request("t", &[(0, 0)], 0));
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let records = partitions.map(|partition| partition.records.as_ref().map_or(0, Vec::len));
    (response.throttle_time_ms, records.sum())
}

#[test]
fn consumer_gets_an_empty_response_instead_of_too_many_records() {
    let mut world = world();
    let connection = world.open(1);
    for _ in 0..10 {
        produce(&mut world, connection, 1000);
    }
    set(&mut world, &[CLIENT], "consumer_byte_rate", 1000.0);
    let (throttle, first) = fetch(&mut world, connection);
    assert_eq!(throttle, 0);
    assert!((9_000..=10_000).contains(&first), "at most ten seconds' worth in one response: {first}");
    let (throttle, none) = fetch(&mut world, connection);
    assert_eq!(none, 0);
    assert!((7_000..10_000).contains(&throttle), "{throttle}");
    world.pass(Duration::from_secs(12));
    assert_eq!(fetch(&mut world, connection), (0, first), "refused bytes do not count");
}

#[test]
fn throttled_fetch_keeps_its_session() {
    let mut world = world();
    let connection = world.open(1);
    let full = FetchRequest { session_epoch: 0, ..fetch_request("t", &[(0, 0)], 0) };
    let session_id = world.call::<FetchRequest>(connection, 12, &full).session_id;
    assert_ne!(session_id, 0);
    for _ in 0..9 {
        produce(&mut world, connection, 1000);
    }
    set(&mut world, &[CLIENT], "consumer_byte_rate", 1000.0);
    let next = |session_epoch| FetchRequest {
        session_id,
        session_epoch,
        topics: Vec::new(),
        ..fetch_request("t", &[], 0)
    };
    let response = world.call::<FetchRequest>(connection, 12, &next(1));
    assert_eq!((response.throttle_time_ms, response.responses.len()), (0, 1));
    let response = world.call::<FetchRequest>(connection, 12, &next(2));
    assert!(response.throttle_time_ms > 0 && response.responses.is_empty());
    assert_eq!((response.error_code, response.session_id), (OK, session_id));
    world.pass(Duration::from_secs(12));
    let response = world.call::<FetchRequest>(connection, 12, &next(3));
    assert_eq!((response.error_code, response.responses.len()), (OK, 1));
    // A full request that is throttled begins no session.
    world.call::<FetchRequest>(connection, 12, &next(4));
    world.pass(Duration::from_millis(9_000));
    let other = world.open(1);
    let response = world.call::<FetchRequest>(other, 12, &full);
    assert!(response.throttle_time_ms > 0 && response.session_id == 0, "{response:?}");
}

#[test]
fn batch_of_more_than_ten_seconds_worth_is_never_fetched() {
    let mut world = world();
    let connection = world.open(1);
    produce(&mut world, connection, 11_000);
    set(&mut world, &[CLIENT], "consumer_byte_rate", 1000.0);
    for _ in 0..5 {
        let (throttle, bytes) = fetch(&mut world, connection);
        assert!(throttle > 1000 && bytes == 0, "{throttle} ms, {bytes} bytes");
        world.pass(Duration::from_secs(60));
    }
}

#[test]
fn requests_take_their_share_of_a_thread() {
    let mut world = world();
    set(&mut world, &[CLIENT], "request_percentage", 0.1);
    let connection = world.open(1);
    let (start, mut requests) = (world.now, 0);
    while world.now.saturating_since(start) < Duration::from_secs(100) {
        let response = world.call(connection, 4, &ListGroupsRequest::default());
        requests += 1;
        assert!(response.throttle_time_ms <= 1000, "at most one window");
        world.pass(Duration::from_millis(u64::try_from(response.throttle_time_ms).unwrap()));
    }
    let rate = f64::from(requests) / world.now.saturating_since(start).as_secs_f64();
    assert!((9.0..12.0).contains(&rate), "100 us of 1 s are 0.01 %: {rate} requests per second");
}

#[test]
fn most_specific_quota_counts() {
    let user = |name| ("user", name);
    let client = |name| ("client-id", name);
    let anonymous = Some("ANONYMOUS");
    let all: [&[(&str, Option<&str>)]; 8] = [
        &[client(None)],
        &[client(Some("test"))],
        &[user(None)],
        &[user(None), client(None)],
        &[user(None), client(Some("test"))],
        &[user(anonymous)],
        &[user(anonymous), client(None)],
        &[user(anonymous), client(Some("test"))],
    ];
    let mut world = world();
    for (place, entity) in all.into_iter().enumerate() {
        // Each one replaces those before it, which are far too small.
        for weaker in &all[..place] {
            set(&mut world, weaker, "producer_byte_rate", 1.0);
        }
        set(&mut world, entity, "producer_byte_rate", 1_000_000.0);
        let connection = world.open(1);
        assert_eq!(produce(&mut world, connection, 1000), 0, "{entity:?}");
        set(&mut world, entity, "producer_byte_rate", 1.0);
        let connection = world.open(1);
        assert!(produce(&mut world, connection, 1000) > 0, "{entity:?}");
    }
    set(&mut world, &[user(Some("somebody else"))], "producer_byte_rate", 1_000_000.0);
    let connection = world.open(1);
    assert!(produce(&mut world, connection, 1000) > 0);
}

#[test]
fn removed_quota_ends_the_throttling() {
    let mut world = world();
    set(&mut world, &[CLIENT], "producer_byte_rate", 10.0);
    let connection = world.open(1);
    assert!(produce(&mut world, connection, 1000) > 0);
    set(&mut world, &[CLIENT], "producer_byte_rate", 0.0);
    let connection = world.open(1);
    assert_eq!(produce(&mut world, connection, 1000), 0);
}

fn create(world: &mut World, version: i16, name: &str, partitions: i32) -> CreateTopicsResponse {
    let topic = create_topics::request::Topic {
        name: name.to_owned(),
        num_partitions: partitions,
        replication_factor: 1,
        ..Default::default()
    };
    let connection = world.open(1);
    world.call(connection, version, &CreateTopicsRequest { topics: vec![topic], ..Default::default() })
}

#[test]
fn changes_of_topics_beyond_the_mutation_rate_are_refused() {
    let mut world = world();
    set(&mut world, &[CLIENT], "controller_mutation_rate", 2.0);
    let response = create(&mut world, 7, "a", 22);
    assert_eq!((response.topics[0].error_code, response.throttle_time_ms), (OK, 0), "11 seconds' worth");
    let response = create(&mut world, 7, "b", 6);
    assert_eq!((response.topics[0].error_code, response.throttle_time_ms), (OK, 0), "a debt is permitted");
    let response = create(&mut world, 7, "c", 1);
    assert_eq!((response.topics[0].error_code, response.throttle_time_ms), (EXCEEDED, 3000));
    let connection = world.open(1);
    let names = vec!["b".to_owned()];
    let request = DeleteTopicsRequest { topic_names: names, ..Default::default() };
    let response = world.call(connection, 5, &request);
    assert_eq!((response.responses[0].error_code, response.throttle_time_ms), (EXCEEDED, 3000));
    let topic = create_partitions::request::Topic { name: "t".to_owned(), count: 2, ..Default::default() };
    let connection = world.open(1);
    let request = CreatePartitionsRequest { topics: vec![topic], ..Default::default() };
    let response = world.call(connection, 3, &request);
    assert_eq!((response.results[0].error_code, response.throttle_time_ms), (EXCEEDED, 3000));
    let response = create(&mut world, 7, "a", 1);
    assert_eq!(response.topics[0].error_code, ErrorCode::TOPIC_ALREADY_EXISTS, "nothing would be created");
    world.pass(Duration::from_secs(3));
    assert_eq!(create(&mut world, 7, "c", 1).topics[0].error_code, OK);
}

#[test]
fn old_clients_wait_after_changes_instead_of_being_refused() {
    let mut world = world();
    set(&mut world, &[CLIENT], "controller_mutation_rate", 2.0);
    assert_eq!(create(&mut world, 5, "a", 26).throttle_time_ms, 2000);
    let response = create(&mut world, 5, "b", 2);
    assert_eq!((response.topics[0].error_code, response.throttle_time_ms), (OK, 3000));
}
