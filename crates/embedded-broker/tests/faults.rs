//! Injected faults, lagging followers, and brokers that are down.

mod common;

use std::time::Duration;

use common::{Batch, World, fetch_request, metadata_leader, produce_request, software};
use ottla_embedded_broker::{BrokerId, ClusterOptions, Fault, FaultAction, Output, Tail};
use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        api_versions::ApiVersionsRequest,
        metadata::{self, MetadataRequest},
        produce::ProduceRequest,
    },
};

const MS: Duration = Duration::from_millis(1);

#[test]
fn lost_response_keeps_the_records_and_closed_connection_does_not() {
    let mut world = World::with_topic();
    let inject = |world: &mut World, action| {
        world.cluster.control().inject(Fault::new(action).api(ApiKey::Produce).times(1));
    };
    inject(&mut world, FaultAction::LoseResponse);
    let connection = world.open(1);
    world.send(connection, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    assert!(world.is_closed(connection));
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().log_end_offset, 1);

    inject(&mut world, FaultAction::CloseConnection);
    let connection = world.open(1);
    world.send(connection, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    assert!(world.is_closed(connection));
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().log_end_offset, 1);

    let connection = world.open(1);
    assert_eq!(
        world.produce(connection, 0, Batch::of(1).build()),
        (ErrorCode::NONE, 1),
        "the faults are over"
    );
}

#[test]
fn injected_errors_hit_their_api_topic_and_partition_only() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().move_leader("t", 1, Some(BrokerId(1)));
    let error = FaultAction::Error(ErrorCode::NOT_ENOUGH_REPLICAS);
    world.cluster.control().inject(Fault::new(error).api(ApiKey::Produce).topic("t").partition(1).times(1));
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()), (ErrorCode::NONE, 0));
    assert_eq!(world.produce(connection, 1, Batch::of(1).build()), (ErrorCode::NOT_ENOUGH_REPLICAS, -1));
    assert_eq!(world.produce(connection, 1, Batch::of(1).build()), (ErrorCode::NONE, 0));
    let error = FaultAction::Error(ErrorCode::UNKNOWN_SERVER_ERROR);
    world.cluster.control().inject(Fault::new(error).api(ApiKey::Fetch).times(2));
    let response = world.call(connection, 12, &fetch_request("t", &[(0, 0)], 500));
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    let response = world.call(connection, 6, &fetch_request("t", &[(0, 0)], 500));
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(world.fetch(connection, 0, 0).error_code, ErrorCode::NONE);
}

#[test]
fn delayed_responses_keep_their_order() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    let delay = FaultAction::Delay(MS * 100);
    world.cluster.control().inject(Fault::new(delay).api(ApiKey::Metadata).times(1));
    world.cluster.control().set_latency(BrokerId(1), MS * 10);
    let first = world.send(connection, 13, &MetadataRequest::default());
    let second = world.send(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    assert_eq!(
        world.cluster.control().partition("t", 0).unwrap().log_end_offset,
        1,
        "only the response is late"
    );
    world.pass(MS * 99);
    assert!(world.outputs.is_empty());
    world.pass(MS);
    assert!(world.respond::<MetadataRequest>(connection, 13, first).is_some());
    assert!(world.respond::<ProduceRequest>(connection, 12, second).is_some());
    let third = world.send(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    world.pass(MS * 10);
    assert!(world.respond::<ProduceRequest>(connection, 12, third).is_some());
}

#[test]
fn response_without_delay_does_not_overtake_an_earlier_one() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().set_latency(BrokerId(1), MS * 10);
    let first = world.send(connection, 13, &MetadataRequest::default());
    world.cluster.control().set_latency(BrokerId(1), Duration::ZERO);
    // The next request comes before the timer is handled.
    world.now += MS * 10;
    let second = world.send(connection, 13, &MetadataRequest::default());
    world.pass(MS);
    assert!(world.respond::<MetadataRequest>(connection, 13, first).is_some());
    assert!(world.respond::<MetadataRequest>(connection, 13, second).is_some());
}

#[test]
fn responses_can_be_corrupted() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    world.cluster.control().inject(Fault::new(FaultAction::ShiftCorrelationId(5)).times(1));
    let id = world.send(connection, 4, &software());
    assert!(world.respond::<ApiVersionsRequest>(connection, 4, id + 5).is_some());

    world.cluster.control().inject(Fault::new(FaultAction::Throttle(MS * 250)).times(1));
    assert_eq!(world.call(connection, 4, &software()).throttle_time_ms, 250);
    world.pass(MS * 250);

    world
        .cluster
        .control()
        .inject(Fault::new(FaultAction::ReplaceResponse(b"HTTP/1.1 400".to_vec())).times(1));
    world.send(connection, 4, &software());
    let Some(Output::Send { frame, .. }) = world.outputs.pop_front() else { panic!("no response") };
    assert_eq!(frame.to_vec(), b"HTTP/1.1 400");

    world.cluster.control().inject(Fault::new(FaultAction::NeverRespond).times(1));
    let silent = world.open(1);
    world.send(silent, 4, &software());
    world.send(silent, 4, &software());
    world.pass(Duration::from_secs(100));
    assert!(world.outputs.is_empty());

    world.cluster.control().inject(Fault::new(FaultAction::TruncateResponse(7)).times(1));
    world.send(connection, 4, &software());
    world.pass(Duration::ZERO);
    let Some(Output::Send { frame, .. }) = world.outputs.pop_front() else { panic!("no response") };
    assert_eq!(frame.len(), 7);
    assert!(world.is_closed(connection));
}

#[test]
fn throttled_connection_is_muted_for_the_throttle_time() {
    let mut world = World::with_topic();
    let (throttled, other) = (world.open(1), world.open(1));
    world.cluster.control().inject(Fault::new(FaultAction::Throttle(MS * 250)).times(1));
    assert_eq!(world.call(throttled, 4, &software()).throttle_time_ms, 250);
    let id = world.send(throttled, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    let next = world.send(throttled, 4, &software());
    assert_eq!(world.call(other, 4, &software()).throttle_time_ms, 0, "a connection of its own");
    world.pass(MS * 249);
    assert!(world.outputs.is_empty(), "requests wait for the end of the throttle time");
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().log_end_offset, 0, "and are not handled");
    world.pass(MS);
    assert!(world.respond::<ProduceRequest>(throttled, 12, id).is_some());
    assert!(world.respond::<ApiVersionsRequest>(throttled, 4, next).is_some());
}

fn lagging() -> World {
    let options = ClusterOptions { replication_lag: MS * 20, ..Default::default() };
    let mut world = World::new(options);
    world.cluster.control().create_topic("t", 3, 3).unwrap();
    world
}

#[test]
fn lagging_followers_delay_acks_all_and_consumers() {
    let mut world = lagging();
    let (producer, consumer) = (world.open(1), world.open(1));
    let id = world.send(producer, 12, &produce_request("t", 0, -1, Batch::of(3).build()));
    assert_eq!(world.fetch(consumer, 0, 0).high_watermark, 0);
    world.pass(MS * 19);
    assert!(world.respond::<ProduceRequest>(producer, 12, id).is_none());
    world.pass(MS);
    let response = world.respond::<ProduceRequest>(producer, 12, id).unwrap();
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    assert_eq!(world.fetch(consumer, 0, 0).high_watermark, 3);

    let mut request = produce_request("t", 0, -1, Batch::of(3).build());
    request.timeout_ms = 5;
    let id = world.send(producer, 12, &request);
    world.pass(MS * 5);
    let response = world.respond::<ProduceRequest>(producer, 12, id).unwrap();
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::REQUEST_TIMED_OUT);
}

#[test]
fn killed_broker_loses_only_unreplicated_records() {
    let mut world = lagging();
    let connection = world.open(1);
    let batch = |sequence| Batch::of(1).producer(9, 0, sequence).build();
    world.call(connection, 12, &produce_request("t", 0, 1, batch(0)));
    world.pass(MS * 20);
    world.call(connection, 12, &produce_request("t", 0, 1, batch(1)));
    let waiting = world.send(connection, 12, &produce_request("t", 0, -1, batch(2)));
    world.cluster.control().kill_broker(BrokerId(1), Tail::Lost);
    world.drain();
    assert!(world.is_closed(connection));
    assert!(world.respond::<ProduceRequest>(connection, 12, waiting).is_none());
    assert!(world.cluster.open(world.now, BrokerId(1)).is_none());
    let state = world.cluster.control().partition("t", 0).unwrap();
    assert_eq!((state.leader, state.leader_epoch, state.log_end_offset), (Some(BrokerId(2)), 1, 1));
    assert_eq!(state.in_sync, [BrokerId(2), BrokerId(3)]);
    let connection = world.open(2);
    let response = world.call(connection, 12, &produce_request("t", 0, 1, batch(1)));
    let partition = &response.responses[0].partition_responses[0];
    assert_eq!(
        (partition.error_code, partition.base_offset),
        (ErrorCode::NONE, 1),
        "the sequence is known as lost"
    );

    world.cluster.control().restart_broker(BrokerId(1));
    let state = world.cluster.control().partition("t", 0).unwrap();
    assert_eq!((state.leader, state.in_sync.len()), (Some(BrokerId(2)), 3));
    world.cluster.control().elect_preferred_leaders();
    assert_eq!(world.cluster.control().partition("t", 0).unwrap().leader, Some(BrokerId(1)));
}

#[test]
fn partition_without_live_replicas_has_no_leader() {
    let mut world = World::new(ClusterOptions::default());
    world.cluster.control().create_topic("t", 3, 1).unwrap();
    let connection = world.open(2);
    world.produce(connection, 1, Batch::of(2).build());
    world.cluster.control().kill_broker(BrokerId(2), Tail::Lost);
    assert_eq!(metadata_leader(&mut world, 1), (-1, 1, ErrorCode::LEADER_NOT_AVAILABLE));
    world.cluster.control().restart_broker(BrokerId(2));
    assert_eq!(metadata_leader(&mut world, 1), (2, 2, ErrorCode::NONE));
    assert_eq!(world.cluster.control().partition("t", 1).unwrap().log_end_offset, 2);
}

#[test]
fn too_few_in_sync_replicas_refuse_only_acks_all() {
    let mut world = World::new(ClusterOptions { min_insync_replicas: 2, ..Default::default() });
    world.cluster.control().create_topic("t", 1, 2).unwrap();
    world.cluster.control().kill_broker(BrokerId(2), Tail::Kept);
    let connection = world.open(1);
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()), (ErrorCode::NOT_ENOUGH_REPLICAS, -1));
    let response = world.call(connection, 12, &produce_request("t", 0, 1, Batch::of(1).build()));
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
}

#[test]
fn partitions_move_when_brokers_are_removed_or_added() {
    let mut world = World::with_topic();
    world.cluster.control().create_topic("spread", 6, 2).unwrap();
    let removed = BrokerId(2);
    assert!(world.cluster.control().remove_broker(removed));
    assert!(!world.cluster.control().remove_broker(removed));
    let mut control = world.cluster.control();
    for partition in 0..6 {
        let state = control.partition("spread", partition).unwrap();
        assert_eq!((state.replicas.len(), state.in_sync.len()), (2, 2), "{state:?}");
        assert!(!state.replicas.contains(&removed) && state.leader.is_some_and(|leader| leader != removed));
    }
    assert!(control.add_broker(BrokerId(0), "localhost", 9999));
    assert!(!control.add_broker(BrokerId(0), "localhost", 9999) && !control.add_broker(BrokerId(-1), "a", 1));
    let led = (0..6).filter(|p| control.partition("spread", *p).unwrap().leader == Some(BrokerId(0)));
    assert_eq!(led.count(), 2);
}

#[test]
fn unlisted_or_unreachable_broker_keeps_its_partitions() {
    let mut world = World::with_topic();
    world.cluster.control().create_topic("kept", 3, 1).unwrap();
    let led = world.cluster.control().partition("kept", 1).unwrap().leader.unwrap();
    let other = world.cluster.control().brokers().into_iter().find(|id| *id != led).unwrap();
    world.cluster.control().set_reachable(led, false);
    assert_eq!(world.cluster.open(world.now, led), None);
    let connection = world.open(other.0);
    let brokers = |response: &metadata::MetadataResponse| {
        response.brokers.iter().map(|b| b.node_id).collect::<Vec<_>>()
    };
    let response = world.call(connection, 9, &MetadataRequest::default());
    assert!(brokers(&response).contains(&led.0));
    world.cluster.control().set_reachable(led, true);
    assert!(world.cluster.open(world.now, led).is_some());
    world.cluster.control().set_listed(led, false);
    let response = world.call(connection, 9, &MetadataRequest::default());
    assert!(!brokers(&response).contains(&led.0));
    assert_eq!(world.cluster.control().partition("kept", 1).unwrap().leader, Some(led));
}
