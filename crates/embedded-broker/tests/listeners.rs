//! Brokers with several listeners: each client gets the endpoints of its own.

#![allow(missing_docs)]

mod common;

use ottla_embedded_broker::{
    BrokerId, ClusterOptions, ConnectionId, EmbeddedCluster, Listener, ListenerId, SaslListener,
    SaslMechanism,
};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        describe_cluster::DescribeClusterRequest,
        describe_configs::{self, DescribeConfigsRequest},
        find_coordinator::FindCoordinatorRequest,
        metadata::MetadataRequest,
        sasl_authenticate::SaslAuthenticateRequest,
        sasl_handshake::SaslHandshakeRequest,
    },
};

use common::{Batch, World, produce_request};

const SECOND: ListenerId = ListenerId(1);

/// Two brokers with a plaintext listener and one with SASL.
fn options() -> ClusterOptions {
    let sasl = SaslListener::new(&[SaslMechanism::Plain]).user("alice", "secret");
    let second = Listener { port: 19_092, sasl: Some(sasl), ..Listener::default() };
    ClusterOptions { brokers: 2, port: 9092, listeners: vec![second], ..ClusterOptions::default() }
}

fn open_second(world: &mut World, broker: i32) -> ConnectionId {
    world.cluster.open_on(world.now, BrokerId(broker), SECOND).expect("the broker is up")
}

fn authenticated(world: &mut World) -> ConnectionId {
    let connection = open_second(world, 1);
    let handshake = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
    assert_eq!(world.call(connection, 1, &handshake).error_code, ErrorCode::NONE);
    let message = SaslAuthenticateRequest { auth_bytes: b"\0alice\0secret".to_vec() };
    assert_eq!(world.call(connection, 2, &message).error_code, ErrorCode::NONE);
    connection
}

/// Returns the ports that a client learns: from Metadata, DescribeCluster, and FindCoordinator in two versions.
fn ports(world: &mut World, connection: ConnectionId) -> (Vec<i32>, Vec<i32>, [i32; 2]) {
    let metadata = world.call(connection, 12, &MetadataRequest::default());
    let described =
        world.call(connection, 1, &DescribeClusterRequest { endpoint_type: 1, ..Default::default() });
    let request = FindCoordinatorRequest { coordinator_keys: vec!["g".to_owned()], ..Default::default() };
    let found = world.call(connection, 4, &request).coordinators.remove(0);
    let first =
        world.call(connection, 2, &FindCoordinatorRequest { key: "g".to_owned(), ..Default::default() });
    (
        metadata.brokers.iter().map(|broker| broker.port).collect(),
        described.brokers.iter().map(|broker| broker.port).collect(),
        [found.port, first.port],
    )
}

#[test]
fn client_gets_the_ports_of_the_listener_that_it_is_connected_to() {
    let mut world = World::new(options());
    world.cluster.control().set_coordinator(ottla_embedded_broker::CoordinatorKey::Group("g"), BrokerId(2));
    let plain = world.open(1);
    assert_eq!(ports(&mut world, plain), (vec![9092, 9093], vec![9092, 9093], [9093; 2]));
    let sasl = authenticated(&mut world);
    assert_eq!(ports(&mut world, sasl), (vec![19_092, 19_093], vec![19_092, 19_093], [19_093; 2]));
}

#[test]
fn produce_names_the_new_leader_at_the_same_listener() {
    let mut world = World::new(options());
    world.cluster.control().create_topic("t", 1, 2).unwrap();
    let leader = world.cluster.control().partition("t", 0).and_then(|state| state.leader).expect("a leader");
    world.cluster.control().set_coordinator(ottla_embedded_broker::CoordinatorKey::Group("g"), leader);
    let sasl = authenticated(&mut world);
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    let response = world.call(sasl, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(response.node_endpoints.iter().map(|node| node.port).collect::<Vec<_>>(), [19_093]);
}

#[test]
fn only_the_listener_with_sasl_asks_clients_to_authenticate() {
    let mut world = World::new(options());
    let plain = world.open(1);
    let refused = world.call(plain, 1, &SaslHandshakeRequest { mechanism: "PLAIN".to_owned() });
    assert_eq!(refused.error_code, ErrorCode::ILLEGAL_SASL_STATE);
    assert_eq!(world.call(plain, 12, &MetadataRequest::default()).brokers.len(), 2);
    let sasl = open_second(&mut world, 1);
    world.send(sasl, 12, &MetadataRequest::default());
    assert!(world.is_closed(sasl));
}

#[test]
fn broker_without_a_listener_is_unknown_to_its_clients() {
    let mut world = World::new(options());
    assert!(world.cluster.control().add_broker(BrokerId(3), "127.0.0.1", 9094));
    let plain = world.open(1);
    assert_eq!(ports(&mut world, plain).0, [9092, 9093, 9094]);
    let sasl = authenticated(&mut world);
    assert_eq!(ports(&mut world, sasl).0, [19_092, 19_093]);
    world.cluster.control().set_coordinator(ottla_embedded_broker::CoordinatorKey::Group("g"), BrokerId(3));
    let request = FindCoordinatorRequest { coordinator_keys: vec!["g".to_owned()], ..Default::default() };
    let found = world.call(sasl, 4, &request).coordinators.remove(0);
    assert_eq!(found.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert!(world.cluster.open_on(world.now, BrokerId(3), SECOND).is_none());
}

#[test]
fn broker_describes_all_its_listeners() {
    let mut world = World::new(options());
    let connection = world.open(2);
    let resource = describe_configs::request::Resource {
        resource_type: 4,
        resource_name: "2".to_owned(),
        configuration_keys: Some(vec!["listeners".to_owned()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let mut result = world.call(connection, 4, &request).results.remove(0);
    let value = result.configs.remove(0).value.expect("a value");
    assert_eq!(value, "PLAINTEXT://127.0.0.1:9093,SASL_PLAINTEXT://127.0.0.1:19093");
}

#[test]
fn all_listeners_accept_connections_again_after_a_restart() {
    let options = ClusterOptions {
        listeners: vec![Listener::default(), Listener::default()],
        ..ClusterOptions::default()
    };
    let cluster = EmbeddedCluster::start(options).unwrap();
    assert!(cluster.add_broker(BrokerId(9)).unwrap());
    let servers: Vec<String> =
        (0..3).map(|number| cluster.bootstrap_servers_of(ListenerId(number)).expect("a listener")).collect();
    assert_eq!(cluster.bootstrap_servers_of(ListenerId(3)), None);
    assert_eq!(servers[0], cluster.bootstrap_servers());
    let all: std::collections::BTreeSet<&str> =
        servers.iter().flat_map(|servers| servers.split(',')).collect();
    assert_eq!(all.len(), 9, "{all:?}");
    let connects = |server: &str| std::net::TcpStream::connect(server).is_ok();
    let of_first: Vec<&str> = servers.iter().filter_map(|servers| servers.split(',').next()).collect();
    cluster.control(|control| control.kill_broker(BrokerId(1), ottla_embedded_broker::Tail::Kept));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while of_first.iter().any(|server| connects(server)) {
        assert!(std::time::Instant::now() < until, "a dead broker listens");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    cluster.control(|control| control.restart_broker(BrokerId(1)));
    while !of_first.iter().all(|server| connects(server)) {
        assert!(std::time::Instant::now() < until, "a broker that is up does not listen");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
