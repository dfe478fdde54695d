//! The broker actors of a client, and the messages to them. [`search`] has the order in which the client tries servers
//! while disconnected.
//!
//! A node may have several connections, because a broker handles one request per connection at a time:
//!
//! | [`Lane`] | requests |
//! |---|---|
//! | `Data` | Produce and Fetch, and requests without a tight deadline |
//! | `Lookups` | requests to a node that is fetched from: a Fetch may wait for records for `fetch.wait.max.ms` |
//! | `Coordinator` | commits, heartbeats and lookups of committed offsets: neither a Fetch nor a Produce delays them |
//! | `Rebalance` | JoinGroup and SyncGroup, which may wait for minutes: heartbeats and commits go past them |
//!
//! # Pitfalls
//!
//! - A lookup of the coordinator must not wait behind a JoinGroup: the member's heartbeats need the coordinator, or its session
//!   ends before the rebalance does (`lookup_does_not_wait_behind_a_join`).
//! - Going back to the bootstrap servers keeps the requests in flight to the old brokers; only new requests that any
//!   broker can handle avoid them (`silent_brokers_cause_a_rebootstrap`).

mod identity;
mod search;

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::vocabulary::NodeId;
use ottla_sorted::{SortedMap, SortedSet};

use self::{identity::Identity, search::Search};
use super::ClusterOutput;
use crate::{
    contract::{
        broker::BrokerKey,
        metadata::Metadata,
        route::{Coordinator, Route},
    },
    message::{ConnectionMessage, ToBroker},
    rng::Rng,
    stats::{BrokerEntryKind, Gather, Purpose},
};

/// The brokers of a client.
#[derive(Debug)]
pub(crate) struct Brokers {
    /// `bootstrap.servers`, shuffled by this client.
    servers: Vec<(String, u16)>,
    entries: SortedMap<BrokerKey, BrokerEntry>,
    /// The connections to nodes.
    lanes: SortedMap<(NodeId, Lane), BrokerKey>,
    /// The nodes that the client fetches from.
    fetched_from: SortedSet<NodeId>,
    /// False if the client does not return to the bootstrap servers once nodes are known
    /// (`metadata.recovery.strategy`).
    recovers: bool,
    identity: Identity,
    next_key: u32,
    /// The servers that have a broker actor, by their index in the list.
    bootstrap: SortedMap<usize, BrokerKey>,
    /// The search for a broker while none is up.
    search: Option<Search>,
    all_down_reported: bool,
    /// The connections that failed since a broker was up last.
    failed_since_up: SortedSet<BrokerKey>,
    /// The broker that client metrics are sent to, as long as it is connected.
    telemetry_broker: Option<BrokerKey>,
    closing: bool,
    outputs: VecDeque<ClusterOutput>,
    pub(super) rng: Rng,
}

/// The purpose of a connection to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Data,
    Lookups,
    Coordinator,
    Rebalance,
}

#[derive(Debug)]
struct BrokerEntry {
    host: String,
    port: u16,
    link: Link,
    /// The broker takes client metrics, as far as its last connection has shown.
    offers_telemetry: bool,
    /// No longer chosen for requests that any broker can serve: the client went back to the bootstrap servers.
    given_up: bool,
}

/// The state of a connection, as far as the cluster actor knows it.
///
/// ```text
///   Down ──► Up ── closed by the broker while idle ──► Probing
///    ▲      │ ▲ │                                          │
///    └──────┘ │ └── lost, or can't be made ──► Failed ◄────┘
///      idle   └──────────────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Not connected, because nothing needs the connection.
    Down,
    /// Requests can be sent.
    Up,
    /// The broker closed an idle connection; connecting again shows whether it is alive.
    Probing,
    /// The connection, or the last attempt to make one, failed.
    Failed,
}

/// The consequences of a lost connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// True if requests could be sent there before, or until the broker closed the idle connection.
    pub(super) was_reachable: bool,
    /// The number of servers that failed, if this failure was the last of all; reported once.
    pub(super) all_down: Option<usize>,
}

impl Brokers {
    /// Creates the set without any broker actor.
    pub(super) fn new(mut servers: Vec<(String, u16)>, recovers: bool, mut rng: Rng) -> Self {
        rng.shuffle(&mut servers);
        Self {
            servers,
            entries: SortedMap::new(),
            lanes: SortedMap::new(),
            fetched_from: SortedSet::new(),
            recovers,
            identity: Identity::default(),
            next_key: 0,
            bootstrap: SortedMap::new(),
            search: None,
            all_down_reported: false,
            failed_since_up: SortedSet::new(),
            telemetry_broker: None,
            closing: false,
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// Returns true if there is no broker actor.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if there is no address to connect to.
    pub(super) fn has_no_server(&self) -> bool {
        self.servers.is_empty() && self.entries.is_empty()
    }

    /// Returns true if requests can be sent to some broker.
    pub(super) fn any_up(&self) -> bool {
        self.up().next().is_some()
    }

    /// Returns the broker actor for a request by this route. Requests to coordinators use [`Brokers::coordinator`].
    pub(super) fn target(&mut self, route: &Route, metadata: &Metadata) -> Option<BrokerKey> {
        let node = match route {
            Route::Any => {
                let (joining, up): (Vec<BrokerKey>, Vec<BrokerKey>) =
                    self.up().partition(|key| self.carries_joins(*key));
                if let ([only, ..], []) = (&joining[..], &up[..]) {
                    return self.past_join(*only, metadata).or(Some(*only));
                }
                let idle: Vec<BrokerKey> =
                    up.iter().copied().filter(|key| self.fetched_node(*key).is_none()).collect();
                let choice = if idle.is_empty() { &up } else { &idle };
                let pick = self.rng.below(choice.len() as u64) as usize;
                let key = choice.get(pick).copied()?;
                return self.fetched_node(key).and_then(|node| self.past_fetch(node, metadata)).or(Some(key));
            }
            Route::Telemetry => return self.telemetry_target(),
            Route::Controller => metadata.controller_id,
            Route::Node(node) => NodeId::from_wire(*node),
            Route::PastFetch(node) => return self.lane(*node, Lane::Lookups, metadata),
            Route::Coordinator(_) | Route::Rebalance(_) => return None,
        };
        let node = node.filter(|node| metadata.nodes.contains_key(node))?;
        let past_fetch =
            if self.fetched_from.contains(&node) { self.past_fetch(node, metadata) } else { None };
        past_fetch.or_else(|| self.of_node(node, metadata))
    }

    /// Returns the broker actor of the connection to a coordinator for a request by this route, and starts it if
    /// necessary.
    pub(super) fn coordinator(&mut self, coordinator: &Coordinator, route: &Route) -> BrokerKey {
        let lane = if matches!(route, Route::Rebalance(_)) { Lane::Rebalance } else { Lane::Coordinator };
        let lane = (coordinator.node, lane);
        if let Some(key) = self.lanes.get(&lane) {
            return *key;
        }
        let key = self.start(coordinator.host.clone(), coordinator.port, Some(coordinator.node));
        self.lanes.insert(lane, key);
        key
    }

    /// Handles the report that the broker of a connection takes client metrics.
    pub(super) fn set_offers_telemetry(&mut self, key: BrokerKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.offers_telemetry = true;
        }
    }

    /// Sends no more client metrics to the broker of the last request for them, until it is connected again.
    pub(super) fn refuse_telemetry(&mut self) {
        if let Some(entry) = self.telemetry_broker.take().and_then(|key| self.entries.get_mut(&key)) {
            entry.offers_telemetry = false;
        }
    }

    /// Returns the connection for client metrics: that of the last request if it is up, else any, preferably one on which
    /// no Fetch waits. A JoinGroup may wait for minutes.
    fn telemetry_target(&mut self) -> Option<BrokerKey> {
        let may_use = |key: &BrokerKey| {
            let offers = self.entries.get(key).is_some_and(|entry| entry.offers_telemetry);
            offers && !self.carries_joins(*key)
        };
        let candidates: Vec<BrokerKey> = self.up().filter(may_use).collect();
        if let Some(last) = self.telemetry_broker.filter(|last| candidates.contains(last)) {
            return Some(last);
        }
        let idle: Vec<BrokerKey> =
            candidates.iter().copied().filter(|key| self.fetched_node(*key).is_none()).collect();
        let choice = if idle.is_empty() { &candidates } else { &idle };
        let pick = if choice.len() > 1 { self.rng.below(choice.len() as u64) as usize } else { 0 };
        self.telemetry_broker = choice.get(pick).copied();
        self.telemetry_broker
    }

    /// Sets the nodes that the client fetches from: other requests would wait behind a Fetch there.
    pub(super) fn set_fetched_from(&mut self, nodes: SortedSet<NodeId>) {
        self.fetched_from = nodes;
    }

    /// Returns the node of this connection if the client fetches from it.
    fn fetched_node(&self, key: BrokerKey) -> Option<NodeId> {
        let is_own = |node: &NodeId| self.lanes.get(&(*node, Lane::Data)) == Some(&key);
        self.fetched_from.iter().copied().find(is_own)
    }

    /// Returns the connection beside a node's Fetch connection, unless it failed: then the request waits behind the
    /// Fetch.
    fn past_fetch(&mut self, node: NodeId, metadata: &Metadata) -> Option<BrokerKey> {
        let known = self.lanes.get(&(node, Lane::Lookups)).and_then(|key| self.entries.get(key));
        if known.is_some_and(|entry| entry.link == Link::Failed) {
            None
        } else {
            self.lane(node, Lane::Lookups, metadata)
        }
    }

    /// Returns true if the connection carries JoinGroup and SyncGroup: other requests would wait until the rebalance ends.
    fn carries_joins(&self, key: BrokerKey) -> bool {
        self.lanes.iter().any(|((_, lane), known)| *lane == Lane::Rebalance && *known == key)
    }

    /// Returns the connection for data to the node of this connection for joins, unless it failed: then the request waits
    /// behind the join.
    fn past_join(&mut self, key: BrokerKey, metadata: &Metadata) -> Option<BrokerKey> {
        let beside = self.node_id(key).and_then(|node| self.of_node(node, metadata))?;
        let has_failed = self.entries.get(&beside).is_none_or(|entry| entry.link == Link::Failed);
        (!has_failed).then_some(beside)
    }

    /// Returns the broker actor of a node, and starts it if necessary.
    pub(super) fn of_node(&mut self, node: NodeId, metadata: &Metadata) -> Option<BrokerKey> {
        self.lane(node, Lane::Data, metadata)
    }

    /// Returns the broker actor of a connection to a node, and starts it if necessary.
    fn lane(&mut self, node: NodeId, lane: Lane, metadata: &Metadata) -> Option<BrokerKey> {
        if let Some(key) = self.lanes.get(&(node, lane)) {
            return Some(*key);
        }
        let address = metadata.nodes.get(&node)?.clone();
        let key = self.start(address.host, address.port, Some(node));
        self.lanes.insert((node, lane), key);
        Some(key)
    }

    /// Returns the connection for Produce and Fetch to a node, if there is one.
    fn data_connection(&self, node: NodeId) -> Option<BrokerKey> {
        self.lanes.get(&(node, Lane::Data)).copied()
    }

    /// Returns true if the node has a broker actor. A node that was never sent anything has none.
    pub(super) fn has_actor(&self, node: NodeId) -> bool {
        self.lanes.contains_key(&(node, Lane::Data))
    }

    /// Returns the address of a broker actor, as `host:port`.
    pub(super) fn address(&self, key: BrokerKey) -> Option<String> {
        self.entries.get(&key).map(|entry| format!("{}:{}", entry.host, entry.port))
    }

    /// Returns the node of a broker actor, if known.
    pub(super) fn node_id(&self, key: BrokerKey) -> Option<NodeId> {
        self.lanes.iter().find(|(_, owner)| **owner == key).map(|((node, _), _)| *node)
    }

    /// Handles a connection that became ready.
    pub(super) fn handle_up(&mut self, from: BrokerKey) {
        if let Some(entry) = self.entries.get_mut(&from) {
            entry.link = Link::Up;
            entry.offers_telemetry = false;
        }
        self.end_search(from);
        self.failed_since_up.clear();
        self.all_down_reported = false;
    }

    /// A connection was closed while nothing needed it. It is probed if it `reconnects`.
    pub(super) fn handle_idle(&mut self, from: BrokerKey, reconnects: bool) {
        if let Some(entry) = self.entries.get_mut(&from) {
            entry.link = if reconnects { Link::Probing } else { Link::Down };
        }
    }

    /// Restarts from the bootstrap servers and resolves their names again. Requests in flight to the previous brokers
    /// continue until new metadata arrives.
    pub(super) fn start_again(&mut self) {
        let bootstrap: Vec<BrokerKey> = self.bootstrap.values().copied().collect();
        let is_checked = self.identity.is_known();
        for (key, entry) in &mut self.entries {
            let is_node = is_checked && self.lanes.values().any(|of_node| of_node == key);
            entry.given_up = is_node || !bootstrap.contains(key);
            if !entry.given_up && entry.link == Link::Up {
                entry.link = Link::Down;
            }
        }
        self.abandon_search(&bootstrap);
        for key in bootstrap {
            self.send(key, ToBroker::Connection(ConnectionMessage::Reconnect));
        }
        self.forget_cluster();
    }

    /// Handles a metadata response: brokers that are up may be queried again.
    pub(super) fn trust_all(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.given_up = false);
    }

    /// Handles a connection that was lost or could not be established.
    pub(super) fn handle_down(&mut self, from: BrokerKey, metadata: &Metadata) -> Option<Loss> {
        let entry = self.entries.get_mut(&from)?;
        let before = std::mem::replace(&mut entry.link, Link::Failed);
        self.failed_since_up.insert(from);
        let failed = self.failed_candidates(metadata).filter(|_| before != Link::Up && !self.any_up());
        let all_down = failed.filter(|_| !std::mem::replace(&mut self.all_down_reported, true));
        Some(Loss { was_reachable: matches!(before, Link::Up | Link::Probing), all_down })
    }

    /// Handles a broker actor that the driver dropped.
    pub(super) fn handle_done(&mut self, key: BrokerKey) {
        self.entries.remove(&key);
        self.failed_since_up.remove(&key);
        self.lanes.retain(|_, known| *known != key);
        self.bootstrap.retain(|_, known| *known != key);
    }

    /// Sends changed addresses to the broker actors, and assigns the actor of a bootstrap server to its node instead of
    /// connecting twice. `from` sent the metadata response.
    pub(super) fn adopt_nodes(&mut self, from: BrokerKey, metadata: &Metadata) {
        if let Some(entry) = self.entries.get(&from)
            && !self.lanes.values().any(|key| *key == from)
        {
            let node = metadata.nodes.iter().find(|(id, node)| {
                node.host == entry.host && node.port == entry.port && !self.has_actor(**id)
            });
            if let Some((id, _)) = node {
                let id = *id;
                self.lanes.insert((id, Lane::Data), from);
                self.send(from, ToBroker::Connection(ConnectionMessage::SetNode(id)));
                self.expect_cluster(from);
            }
        }
        let mut moved = Vec::new();
        for ((id, _), key) in &self.lanes {
            if let (Some(node), Some(entry)) = (metadata.nodes.get(id), self.entries.get_mut(key))
                && (node.host != entry.host || node.port != entry.port)
            {
                entry.host.clone_from(&node.host);
                entry.port = node.port;
                moved.push((*key, node.host.clone(), node.port));
            }
        }
        for (key, host, port) in moved {
            self.send(key, ToBroker::Connection(ConnectionMessage::SetAddress { host, port }));
        }
    }

    /// Sends a message to one broker actor.
    pub(super) fn send(&mut self, key: BrokerKey, message: ToBroker) {
        self.outputs.push_back(ClusterOutput::ToBroker(key, message));
    }

    /// Sends a message to all broker actors.
    pub(super) fn send_all(&mut self, message: impl Fn() -> ToBroker) {
        for key in self.entries.keys() {
            self.outputs.push_back(ClusterOutput::ToBroker(*key, message()));
        }
    }

    /// Has every broker actor add its part of a statistics snapshot. Client metrics are about nodes, whichever role a
    /// connection serves.
    pub(super) fn gather_statistics(&mut self, gather: &Arc<Gather>) {
        for key in self.entries.keys() {
            let to_coordinator = |((_, lane), of): (&(NodeId, Lane), &BrokerKey)| {
                of == key && matches!(lane, Lane::Coordinator | Lane::Rebalance)
            };
            let kind = if gather.purpose != Purpose::Push && self.lanes.iter().any(to_coordinator) {
                BrokerEntryKind::GroupCoordinator
            } else {
                BrokerEntryKind::Node
            };
            let message = ToBroker::Statistics(Arc::clone(gather), kind);
            self.outputs.push_back(ClusterOutput::ToBroker(*key, message));
        }
    }

    /// Closes the client: all broker actors end, including those that start later.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.send_all(|| ToBroker::Close);
    }

    /// Reports to the driver that the last broker actor ended.
    pub(super) fn done(&mut self) {
        self.outputs.push_back(ClusterOutput::Done);
    }

    /// Returns the next action for the driver.
    pub(super) fn poll_output(&mut self) -> Option<ClusterOutput> {
        self.outputs.pop_front()
    }

    fn up(&self) -> impl Iterator<Item = BrokerKey> {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.link == Link::Up && !entry.given_up)
            .map(|(key, _)| *key)
    }

    fn start(&mut self, host: String, port: u16, node_id: Option<NodeId>) -> BrokerKey {
        let key = BrokerKey(self.next_key);
        self.next_key += 1;
        let entry = BrokerEntry {
            host: host.clone(),
            port,
            link: Link::Down,
            offers_telemetry: false,
            given_up: false,
        };
        self.entries.insert(key, entry);
        let rng = self.rng.fork();
        self.outputs.push_back(ClusterOutput::StartBroker { key, host, port, node_id, rng });
        if node_id.is_some() {
            self.expect_cluster(key);
        }
        if self.closing {
            // This broker actor started after the message that closed the others.
            self.send(key, ToBroker::Close);
        }
        key
    }
}
