//! Addresses that lead to another node, or to a node of another cluster (KIP-1242).

use ottla_protocol::vocabulary::NodeId;

use super::*;
use crate::contract::route::{Coordinator, Route};

const NODES: &[(i32, &str, i32)] = &[(1, "one", 9092), (2, "two", 9092)];

/// A client whose topic is led by node 1, in a cluster with this ID.
fn in_cluster(id: Option<&str>, settings: ClusterSettings) -> Script {
    let mut response = metadata(NODES, 1);
    response.cluster_id = id.map(str::to_owned);
    let mut script = Script::with(settings, response);
    script.run_for(Duration::from_secs(1));
    script
}

fn misrouted() -> Error {
    Error::broker(ErrorCode::REBOOTSTRAP_REQUIRED, None).with_api("ApiVersions")
}

fn actor(script: &Script, host: &str) -> BrokerKey {
    let mut found = script.addresses.iter().filter(|(_, (known, _))| known == host);
    *found.next().expect("there is one").0
}

fn go_down(script: &mut Script, key: BrokerKey) {
    script.core.handle_message(script.now, key, ToCluster::Connection(ConnectionReport::Down(misrouted())));
    script.settle();
}

#[test]
fn connections_to_nodes_are_bound_to_the_cluster() {
    let script = in_cluster(Some("c"), ClusterSettings::default());
    let one = actor(&script, "one");
    assert_eq!(script.clusters.get(&one), Some(&"c".into()));
    let seed = actor(&script, "seed");
    assert_eq!(script.clusters.get(&seed), None, "the metadata does not have its address");
}

#[test]
fn connections_are_bound_to_no_cluster_without_an_id_or_the_check() {
    for id in [None, Some("")] {
        assert!(in_cluster(id, ClusterSettings::default()).clusters.is_empty(), "{id:?}");
    }
    let settings = ClusterSettings { checks_cluster: false, ..ClusterSettings::default() };
    assert!(in_cluster(Some("c"), settings).clusters.is_empty());
}

#[test]
fn misrouted_connection_starts_again_from_the_bootstrap_servers() {
    let mut script = in_cluster(Some("c"), ClusterSettings::default());
    let (asked, one) = (script.metadata_requests, actor(&script, "one"));
    script.response = metadata(&[(1, "moved", 9092)], 1);
    script.response.cluster_id = Some("c".to_owned());
    go_down(&mut script, one);
    script.run_for(Duration::from_secs(2));
    assert!(script.metadata_requests > asked, "the metadata is asked for again");
    assert_eq!(script.moved, [(one, "moved".to_owned(), 9092)], "the node has another address");
    let reported: Vec<Event> = std::iter::from_fn(|| script.events.pop()).collect();
    assert!(reported.contains(&Event::Error(misrouted())), "{reported:?}");
}

#[test]
fn second_refusal_before_new_metadata_does_not_start_again() {
    let mut script = in_cluster(Some("c"), ClusterSettings::default());
    script.starts_down = true;
    let one = actor(&script, "one");
    go_down(&mut script, one);
    let reported = std::iter::from_fn(|| script.events.pop());
    assert_eq!(reported.filter(|event| *event == Event::Error(misrouted())).count(), 1);
    let known = script.addresses.len();
    go_down(&mut script, one);
    assert_eq!(script.addresses.len(), known, "no further actor for the bootstrap server");
}

#[test]
fn node_of_a_bootstrap_server_stays_bound_to_its_cluster() {
    let mut response = metadata(&[(1, "seed", 9092)], 1);
    response.cluster_id = Some("c".to_owned());
    let mut script = Script::with(ClusterSettings::default(), response);
    script.run_for(Duration::from_secs(1));
    let node = actor(&script, "seed");
    assert_eq!((script.addresses.len(), script.leader), (1, Some(node)), "one connection for both");
    assert_eq!(script.clusters.get(&node), Some(&"c".into()));
    script.starts_down = true;
    go_down(&mut script, node);
    script.run_for(Duration::from_secs(2));
    let servers = script.addresses.iter().filter(|(_, (host, _))| host == "seed").count();
    assert_eq!(servers, 2, "the bootstrap server has a connection of its own");
    assert_eq!(script.clusters.get(&node), Some(&"c".into()), "its batches are for this cluster only");
}

#[test]
fn strategy_none_neither_states_ids_nor_starts_again() {
    let settings =
        ClusterSettings { rebootstrap_after: None, checks_cluster: false, ..ClusterSettings::default() };
    let mut script = in_cluster(Some("c"), settings);
    let (one, known) = (actor(&script, "one"), script.addresses.len());
    script.starts_down = true;
    go_down(&mut script, one);
    assert_eq!((script.clusters.len(), script.addresses.len()), (0, known));
    assert_eq!(script.core.metadata.nodes.len(), NODES.len(), "the known nodes stay");
}

#[test]
fn other_cluster_binds_the_connections_once_it_is_reported() {
    let mut script = in_cluster(Some("c"), ClusterSettings::default());
    let one = actor(&script, "one");
    script.response.cluster_id = Some("d".to_owned());
    script.refresh();
    assert_eq!(script.clusters.get(&one), Some(&"d".into()));
}

#[test]
fn coordinator_found_before_new_metadata_is_bound_to_the_known_cluster() {
    let mut script = in_cluster(Some("c"), ClusterSettings::default());
    let one = actor(&script, "one");
    script.starts_down = true;
    go_down(&mut script, one);
    let coordinator =
        Coordinator { node: NodeId::from_wire(7).expect("a node"), host: "seven".into(), port: 9092 };
    script.core.brokers.coordinator(&coordinator, &Route::Any);
    script.settle();
    let seven = actor(&script, "seven");
    assert_eq!(script.clusters.get(&seven), Some(&"c".into()));
    let known = script.addresses.len();
    go_down(&mut script, seven);
    assert_eq!(script.addresses.len(), known, "the client is on its way already");
}
