//! The brokers that there is an owner for, the mail to them, and whom to try while nobody is connected.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{ClusterOutput, Route, metadata::Metadata};
use crate::{
    mail::{BrokerKey, ToBroker},
    rng::Rng,
};

/// The brokers of a client.
#[derive(Debug)]
pub(crate) struct Brokers {
    /// `bootstrap.servers`, in an order of this client's own.
    servers: Vec<(String, u16)>,
    entries: BTreeMap<BrokerKey, BrokerEntry>,
    by_node: BTreeMap<i32, BrokerKey>,
    /// Second connections to nodes that are fetched from, for what must not wait behind a fetch.
    lookups: BTreeMap<i32, BrokerKey>,
    /// The nodes that are fetched from.
    fetched_from: BTreeSet<i32>,
    /// False if the bootstrap servers are not gone back to once nodes are known (`metadata.recovery.strategy`).
    recovers: bool,
    next_key: u32,
    /// The servers that have an owner, by their place in the list.
    bootstrap: BTreeMap<usize, BrokerKey>,
    /// The candidate that is being connected to because nobody is up.
    candidate: Option<usize>,
    all_down_told: bool,
    failures_since_up: usize,
    closing: bool,
    outputs: VecDeque<ClusterOutput>,
    pub(super) rng: Rng,
}

#[derive(Debug)]
struct BrokerEntry {
    host: String,
    port: u16,
    up: bool,
    /// The last attempt to connect failed, or the connection did.
    failed: bool,
    /// It closed the connection while nothing was under way, and is connected to again to see whether it is there.
    looked_at: bool,
    /// Not asked by chance any more: it belongs to what was given up for the bootstrap servers.
    given_up: bool,
}

/// What the loss of a connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Requests could be sent there before.
    pub(super) was_up: bool,
    /// It closed an idle connection, and can't be connected to any more.
    pub(super) was_idle: bool,
    /// So many servers failed, and with this one all did; said once.
    pub(super) all_down: Option<usize>,
}

impl Brokers {
    /// No broker has an owner yet.
    pub(super) fn new(mut servers: Vec<(String, u16)>, recovers: bool, mut rng: Rng) -> Self {
        rng.shuffle(&mut servers);
        Self {
            servers,
            entries: BTreeMap::new(),
            by_node: BTreeMap::new(),
            lookups: BTreeMap::new(),
            fetched_from: BTreeSet::new(),
            recovers,
            next_key: 0,
            bootstrap: BTreeMap::new(),
            candidate: None,
            all_down_told: false,
            failures_since_up: 0,
            closing: false,
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// True if no broker has an owner.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if requests can be sent to some broker.
    pub(super) fn any_up(&self) -> bool {
        self.up().next().is_some()
    }

    /// The owner that a request by this route goes to now.
    pub(super) fn target(&mut self, route: Route, metadata: &Metadata) -> Option<BrokerKey> {
        let node = match route {
            Route::Any => {
                let up: Vec<BrokerKey> = self.up().collect();
                let idle: Vec<BrokerKey> =
                    up.iter().copied().filter(|key| self.fetched_node(*key).is_none()).collect();
                let choice = if idle.is_empty() { &up } else { &idle };
                let pick = self.rng.below(choice.len() as u64) as usize;
                let key = choice.get(pick).copied()?;
                return self.fetched_node(key).and_then(|node| self.past_fetch(node, metadata)).or(Some(key));
            }
            Route::Controller => metadata.controller_id,
            Route::Node(node) => node,
            Route::SecondToNode(node) => return self.second_to(node, metadata),
        };
        if !metadata.nodes.contains_key(&node) {
            return None;
        }
        let past_fetch =
            if self.fetched_from.contains(&node) { self.past_fetch(node, metadata) } else { None };
        past_fetch.or_else(|| self.of_node(node, metadata))
    }

    /// The nodes that are fetched from: what is asked of them would wait behind a fetch.
    pub(super) fn set_fetched_from(&mut self, nodes: BTreeSet<i32>) {
        self.fetched_from = nodes;
    }

    /// The node that this is the connection to, if it is fetched from.
    fn fetched_node(&self, key: BrokerKey) -> Option<i32> {
        self.fetched_from.iter().copied().find(|node| self.by_node.get(node) == Some(&key))
    }

    /// The second connection to a node, unless it failed: then waiting behind a fetch is better.
    fn past_fetch(&mut self, node: i32, metadata: &Metadata) -> Option<BrokerKey> {
        let known = self.lookups.get(&node).and_then(|key| self.entries.get(key));
        if known.is_some_and(|entry| entry.failed) { None } else { self.second_to(node, metadata) }
    }

    /// The owner of a node's connection, started if there is none yet.
    pub(super) fn of_node(&mut self, node: i32, metadata: &Metadata) -> Option<BrokerKey> {
        if let Some(key) = self.by_node.get(&node) {
            return Some(*key);
        }
        let address = metadata.nodes.get(&node)?.clone();
        let key = self.start(address.host, address.port, Some(node));
        self.by_node.insert(node, key);
        Some(key)
    }

    /// A node that nobody had anything to say to yet has no owner.
    pub(super) fn has_owner(&self, node: i32) -> bool {
        self.by_node.contains_key(&node)
    }

    /// Where an owner connects to, as `host:port`.
    pub(super) fn address(&self, key: BrokerKey) -> Option<String> {
        self.entries.get(&key).map(|entry| format!("{}:{}", entry.host, entry.port))
    }

    /// The node that an owner talks to, as far as that is known.
    pub(super) fn node_id(&self, key: BrokerKey) -> Option<i32> {
        let mut known = self.by_node.iter().chain(&self.lookups);
        known.find(|(_, owner)| **owner == key).map(|(node, _)| *node)
    }

    /// Requests can be sent there.
    pub(super) fn handle_up(&mut self, from: BrokerKey) {
        if let Some(entry) = self.entries.get_mut(&from) {
            entry.up = true;
            entry.failed = false;
            entry.looked_at = false;
        }
        self.candidate = None;
        self.failures_since_up = 0;
        self.all_down_told = false;
    }

    /// A connection that nobody needed was closed, and is made again if it `looks_again`.
    pub(super) fn handle_idle(&mut self, from: BrokerKey, looks_again: bool) {
        if let Some(entry) = self.entries.get_mut(&from) {
            entry.up = false;
            entry.looked_at = looks_again;
        }
    }

    /// Starts again from the bootstrap servers, their names resolved anew. What is under way with the brokers of before goes
    /// on until metadata tell where it belongs.
    pub(super) fn start_again(&mut self) {
        let bootstrap: Vec<BrokerKey> = self.bootstrap.values().copied().collect();
        for (key, entry) in &mut self.entries {
            entry.given_up = !bootstrap.contains(key);
            entry.up &= entry.given_up;
        }
        for key in bootstrap {
            self.mail(key, ToBroker::Reconnect);
        }
        self.candidate = None;
    }

    /// Metadata came: whoever is up may be asked again.
    pub(super) fn trust_all(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.given_up = false);
    }

    /// A connection is lost or could not be made.
    pub(super) fn handle_down(&mut self, from: BrokerKey, metadata: &Metadata) -> Option<Loss> {
        let entry = self.entries.get_mut(&from)?;
        let was_up = std::mem::replace(&mut entry.up, false);
        let was_idle = std::mem::replace(&mut entry.looked_at, false);
        entry.failed = true;
        self.failures_since_up += 1;
        let all_down = !was_up
            && self.failures_since_up >= self.candidates(metadata)
            && !self.any_up()
            && !std::mem::replace(&mut self.all_down_told, true);
        Some(Loss { was_up, was_idle, all_down: all_down.then_some(self.failures_since_up) })
    }

    /// The driver dropped an owner.
    pub(super) fn handle_done(&mut self, key: BrokerKey) {
        self.entries.remove(&key);
        self.by_node.retain(|_, known| *known != key);
        self.lookups.retain(|_, known| *known != key);
        self.bootstrap.retain(|_, known| *known != key);
    }

    /// Nobody is up: connect to one candidate after the other, known nodes first, then the bootstrap servers.
    pub(super) fn find(&mut self, metadata: &Metadata) {
        if self.candidate.is_none() && !self.any_up() && self.candidates(metadata) > 0 {
            let first = self.rng.below(metadata.nodes.len() as u64) as usize;
            self.try_candidate(first, metadata);
        }
    }

    /// The candidate failed: connect to the next one, if somebody is `wanted` still. Otherwise nobody is a candidate any more,
    /// or the next who asks would wait for one that is not being connected to.
    pub(super) fn find_another(&mut self, metadata: &Metadata, wanted: bool) {
        if let Some(index) = self.candidate.take()
            && wanted
            && !self.any_up()
        {
            self.try_candidate(index + 1, metadata);
        }
    }

    /// More servers to start from. If nobody is up and somebody is looked for, they are tried at once.
    pub(super) fn add_servers(&mut self, servers: Vec<(String, u16)>, metadata: &Metadata) {
        let first = self.servers.len();
        for server in servers {
            if !self.servers.contains(&server) {
                self.servers.push(server);
            }
        }
        let index = metadata.nodes.len() + first;
        if self.candidate.is_some() && !self.any_up() && index < self.candidates(metadata) {
            self.try_candidate(index, metadata);
        }
    }

    /// Tells owners the addresses that changed, and makes the bootstrap server that is a known node that node's owner
    /// instead of connecting to it twice. `from` answered with the metadata.
    pub(super) fn adopt_nodes(&mut self, from: BrokerKey, metadata: &Metadata) {
        if let Some(entry) = self.entries.get(&from)
            && !self.by_node.values().chain(self.lookups.values()).any(|key| *key == from)
        {
            let node = metadata.nodes.iter().find(|(id, node)| {
                node.host == entry.host && node.port == entry.port && !self.by_node.contains_key(id)
            });
            if let Some((id, _)) = node {
                let id = *id;
                self.by_node.insert(id, from);
                self.mail(from, ToBroker::SetNode(id));
            }
        }
        let mut moved = Vec::new();
        for (id, key) in self.by_node.iter().chain(&self.lookups) {
            if let (Some(node), Some(entry)) = (metadata.nodes.get(id), self.entries.get_mut(key))
                && (node.host != entry.host || node.port != entry.port)
            {
                entry.host.clone_from(&node.host);
                entry.port = node.port;
                moved.push((*key, node.host.clone(), node.port));
            }
        }
        for (key, host, port) in moved {
            self.mail(key, ToBroker::SetAddress { host, port });
        }
    }

    /// Mail for one owner.
    pub(super) fn mail(&mut self, key: BrokerKey, mail: ToBroker) {
        self.outputs.push_back(ClusterOutput::ToBroker(key, mail));
    }

    /// Mail for every owner.
    pub(super) fn mail_all(&mut self, mail: impl Fn() -> ToBroker) {
        for key in self.entries.keys() {
            self.outputs.push_back(ClusterOutput::ToBroker(*key, mail()));
        }
    }

    /// The client closes: every owner is told to end, those of the past and those of the future.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.mail_all(|| ToBroker::Close);
    }

    /// The last owner is gone.
    pub(super) fn done(&mut self) {
        self.outputs.push_back(ClusterOutput::Done);
    }

    /// What the driver has to do next.
    pub(super) fn poll_output(&mut self) -> Option<ClusterOutput> {
        self.outputs.pop_front()
    }

    fn up(&self) -> impl Iterator<Item = BrokerKey> {
        self.entries.iter().filter(|(_, entry)| entry.up && !entry.given_up).map(|(key, _)| *key)
    }

    fn candidates(&self, metadata: &Metadata) -> usize {
        let nodes = metadata.nodes.len();
        if nodes > 0 && !self.recovers { nodes } else { nodes + self.servers.len() }
    }

    fn try_candidate(&mut self, index: usize, metadata: &Metadata) {
        if self.closing {
            return;
        }
        let index = index % self.candidates(metadata).max(1);
        self.candidate = Some(index);
        let nodes = metadata.nodes.len();
        let key = if index < nodes {
            let node = metadata.nodes.keys().nth(index).copied();
            node.and_then(|node| self.of_node(node, metadata))
        } else {
            let place = index - nodes;
            match (self.bootstrap.get(&place), self.servers.get(place).cloned()) {
                (Some(key), _) => Some(*key),
                (None, Some((host, port))) => {
                    let key = self.start(host, port, None);
                    self.bootstrap.insert(place, key);
                    Some(key)
                }
                (None, None) => None,
            }
        };
        if let Some(key) = key {
            self.mail(key, ToBroker::Connect);
        }
    }

    /// The owner of the second connection to a node, started if there is none yet.
    fn second_to(&mut self, node: i32, metadata: &Metadata) -> Option<BrokerKey> {
        let address = metadata.nodes.get(&node)?.clone();
        if let Some(key) = self.lookups.get(&node) {
            return Some(*key);
        }
        let key = self.start(address.host, address.port, Some(node));
        self.lookups.insert(node, key);
        Some(key)
    }

    fn start(&mut self, host: String, port: u16, node_id: Option<i32>) -> BrokerKey {
        let key = BrokerKey(self.next_key);
        self.next_key += 1;
        self.entries.insert(
            key,
            BrokerEntry {
                host: host.clone(),
                port,
                up: false,
                failed: false,
                looked_at: false,
                given_up: false,
            },
        );
        let rng = self.rng.fork();
        self.outputs.push_back(ClusterOutput::StartBroker { key, host, port, node_id, rng });
        if self.closing {
            // It came too late for the letter that ended the others.
            self.mail(key, ToBroker::Close);
        }
        key
    }
}
