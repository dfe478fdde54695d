//! The client's view of the cluster: its brokers, its topics and the leader of each partition.
//!
//! # Pitfalls
//!
//! - Without topic IDs, leader epochs that restart look stale. The client accepts them after ten responses in a row
//!   (`older_leader_is_accepted_when_reported_repeatedly`).
//! - Metadata from a broker that is behind must not undo a leader change: the leader epoch decides, not the order of
//!   arrival (`an_older_leader_epoch_does_not_replace_a_newer_one`).
//! - A leader that another broker names (KIP-951) is used only with a newer epoch and a known address
//!   (`leader_hint_needs_a_newer_epoch_and_a_reachable_leader`).
//! - A replaced topic ID never comes back: metadata with it comes from a broker with a stale cache
//!   (`stale_metadata_does_not_restore_the_old_topic_id`).

use crate::event::RecreatedTopic;
use std::sync::Arc;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::metadata::{MetadataResponse, response::Topic},
    uuid::Uuid,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};
use ottla_sorted::{Entry, SortedMap, SortedSet};

/// The cluster as the newest responses describe it.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// The node that takes administrative requests.
    pub controller_id: Option<NodeId>,
    /// The brokers by node ID.
    pub nodes: SortedMap<NodeId, Node>,
    /// The brokers that a leader hint named and that no metadata response has listed since.
    pub hinted_nodes: SortedSet<NodeId>,
    /// The requested topics that exist.
    pub topics: SortedMap<Arc<str>, TopicMetadata>,
}

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The host's name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The rack.
    pub rack: Option<String>,
}

/// A topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicMetadata {
    /// The topic ID; zero if the broker does not support topic IDs.
    pub id: Uuid,
    /// The previous IDs of topics of this name, newest last. A response with one of them is stale.
    pub former_ids: Vec<Uuid>,
    /// True if a broker rejected the ID since the newest response.
    pub doubted: bool,
    /// The number of responses in a row without a topic ID while the ID was doubted.
    pub responses_in_doubt: u8,
    /// True if the topic does not exist according to the newest response.
    pub gone: bool,
    /// The topic's error in the newest response; the other fields are from the last response without an error.
    pub error: ErrorCode,
    /// True for the cluster's own topics.
    pub is_internal: bool,
    /// The partitions, by index.
    pub partitions: Vec<PartitionMetadata>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The error if there is no leader.
    pub error: ErrorCode,
    /// The leader's node ID.
    pub leader: Option<NodeId>,
    /// The leader's epoch, if the broker reports epochs.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The nodes that hold the partition.
    pub replicas: Vec<NodeId>,
    /// The nodes that are in sync.
    pub in_sync: Vec<NodeId>,
    /// The number of responses in a row with an older epoch.
    pub older_responses: u8,
    /// True if the response with this epoch had no topic ID: the epoch may belong to a deleted topic.
    pub is_unnamed: bool,
}

impl Default for PartitionMetadata {
    fn default() -> Self {
        Self {
            error: ErrorCode::LEADER_NOT_AVAILABLE,
            leader: None,
            leader_epoch: None,
            replicas: Vec::new(),
            in_sync: Vec::new(),
            older_responses: 0,
            is_unnamed: false,
        }
    }
}

impl PartitionMetadata {
    /// Returns whether the known epoch is newer than the one on the wire. An epoch that the broker did not report is
    /// never older.
    fn is_newer_than(&self, epoch: i32) -> bool {
        LeaderEpoch::from_wire(epoch).is_some_and(|epoch| Some(epoch) < self.leader_epoch)
    }
}

/// A topic that can't be used according to a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicError {
    /// The topic.
    pub name: Arc<str>,
    /// The reason.
    pub code: ErrorCode,
}

/// The leader of a partition that another broker named in its response (KIP-951).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    /// The partition.
    pub partition: TopicPartition,
    /// The leader's node ID.
    pub leader: NodeId,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// The leader's address, if the response had it.
    pub node: Option<Node>,
    /// The reported address cannot be connected to.
    pub refused_address: Option<String>,
}

/// The result of applying a leader hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintVerdict {
    /// The partition has a new leader.
    Taken,
    /// It names no newer leader than is known, or is about something unknown.
    NothingNew,
    /// It names a node whose address is not known.
    Unreachable,
}

impl LeaderHint {
    /// Returns the leader of a partition that a response names; `endpoints` are the nodes in the response, each with ID,
    /// host, port and rack. None if the response names no leader with an epoch.
    pub fn new<'a>(
        topic: &Arc<str>,
        partition: i32,
        (leader, leader_epoch): (i32, i32),
        mut endpoints: impl Iterator<Item = (i32, &'a str, i32, Option<&'a str>)>,
    ) -> Option<Self> {
        let (leader, leader_epoch) = (NodeId::from_wire(leader)?, LeaderEpoch::from_wire(leader_epoch)?);
        let named = endpoints.find(|(id, ..)| *id == leader.get());
        let node = named.and_then(|(_, host, port, rack)| Node::new(host, port, rack));
        let refused_address = match (&node, named) {
            (None, Some((_, host, port, _))) => Some(format!("{host}:{port}")),
            _ => None,
        };
        let partition = TopicPartition::new(Arc::clone(topic), partition);
        Some(Self { partition, leader, leader_epoch, node, refused_address })
    }
}

/// The changes of a metadata response besides leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The topics that can't be used.
    pub errors: Vec<TopicError>,
    /// The topics that were recreated.
    pub recreated: Vec<RecreatedTopic>,
    /// True if the response describes an earlier topic of the same name, so that its sender has stale metadata.
    pub outdated: bool,
    /// The description of a contradiction in the response.
    pub contradiction: Option<String>,
}

/// Relates a topic in a response to the known topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    Same,
    /// A previous topic of the same name.
    Former,
    Recreated,
}

/// The maximum number of remembered IDs of deleted topics per name.
const FORMER_IDS: usize = 8;

/// The number of responses in a row after which an older epoch, or a missing topic ID while the known ID is rejected,
/// is accepted. Without topic IDs nothing else shows that a topic was recreated between two refreshes. A broker with a
/// stale cache does no harm: the leader that it names reports the current one.
const CREDIBLE_RESPONSES: u8 = 10;

/// The number of these responses if they name epoch 0, the first one of a topic: it was most likely recreated.
const CREDIBLE_FIRST_EPOCHS: u8 = 3;

impl TopicMetadata {
    fn identify(&mut self, response: &Topic) -> Identity {
        let in_doubt = std::mem::take(&mut self.doubted) && response.topic_id.is_zero();
        self.responses_in_doubt = if in_doubt { self.responses_in_doubt + 1 } else { 0 };
        if self.responses_in_doubt >= CREDIBLE_RESPONSES {
            self.responses_in_doubt = 0;
            return Identity::Recreated;
        }
        if response.topic_id.is_zero() || self.id.is_zero() {
            // Without two IDs to compare, a topic that disappeared and whose epochs restarted must be another one.
            let starts_again = response.partitions.len() < self.partitions.len()
                || response.partitions.iter().any(|partition| {
                    let index = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
                    self.partitions
                        .get(index)
                        .is_some_and(|known| known.is_newer_than(partition.leader_epoch))
                });
            return if self.gone && starts_again { Identity::Recreated } else { Identity::Same };
        }
        match response.topic_id {
            id if id == self.id => Identity::Same,
            id if self.former_ids.contains(&id) => Identity::Former,
            _ => Identity::Recreated,
        }
    }
}

impl Node {
    /// A node at an address that can be connected to.
    pub fn new(host: &str, port: i32, rack: Option<&str>) -> Option<Self> {
        let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
        let rack = rack.map(str::to_owned);
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port, rack })
    }
}

impl Metadata {
    /// Handles a broker that does not know a topic ID: its metadata is stale, or the topic was recreated.
    pub fn doubt_id(&mut self, topic: &str, id: Uuid) {
        if let Some(known) = self.topics.get_mut(topic).filter(|known| known.id == id && !id.is_zero()) {
            known.doubted = true;
        }
    }

    /// Applies a leader hint if it names a newer leader at a known address.
    pub fn apply_hint(&mut self, hint: &LeaderHint) -> HintVerdict {
        let index = usize::try_from(hint.partition.partition).unwrap_or(usize::MAX);
        let known =
            self.topics.get_mut(&hint.partition.topic).and_then(|topic| topic.partitions.get_mut(index));
        let Some(known) = known.filter(|known| Some(hint.leader_epoch) > known.leader_epoch) else {
            return HintVerdict::NothingNew;
        };
        if let Entry::Vacant(entry) = self.nodes.entry(hint.leader) {
            let Some(node) = &hint.node else { return HintVerdict::Unreachable };
            entry.insert(node.clone());
        }
        // The next metadata response may be older than the hint and not list the leader.
        self.hinted_nodes.insert(hint.leader);
        known.leader = Some(hint.leader);
        known.leader_epoch = Some(hint.leader_epoch);
        known.error = ErrorCode::NONE;
        HintVerdict::Taken
    }

    /// Applies a metadata response. Only a leader of the same or a newer epoch replaces a partition's leader, and an
    /// earlier topic never replaces a later one.
    pub fn apply(&mut self, response: &MetadataResponse) -> Applied {
        if response.cluster_id.is_some() {
            self.cluster_id.clone_from(&response.cluster_id);
        }
        self.controller_id = NodeId::from_wire(response.controller_id);
        let nodes: SortedMap<NodeId, Node> = response
            .brokers
            .iter()
            .filter_map(|broker| {
                let id = NodeId::from_wire(broker.node_id)?;
                Some((id, Node::new(&broker.host, broker.port, broker.rack.as_deref())?))
            })
            .collect();
        let old_nodes = if nodes.is_empty() { None } else { Some(std::mem::replace(&mut self.nodes, nodes)) };
        let mut applied = Applied { contradiction: contradiction(response), ..Applied::default() };
        for topic in &response.topics {
            let Some(name) = topic.name.as_deref() else { continue };
            let name: Arc<str> = Arc::from(name);
            if topic.error_code != ErrorCode::NONE {
                if let Some(known) = self.topics.get_mut(&name) {
                    known.error = topic.error_code;
                    known.gone |= topic.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                }
                applied.errors.push(TopicError { name, code: topic.error_code });
                continue;
            }
            let known = self.topics.entry(Arc::clone(&name)).or_default();
            match known.identify(topic) {
                Identity::Same => {}
                Identity::Former => {
                    applied.outdated = true;
                    continue;
                }
                Identity::Recreated => {
                    let old_id = std::mem::replace(&mut known.id, topic.topic_id);
                    if !old_id.is_zero() {
                        if known.former_ids.len() == FORMER_IDS {
                            known.former_ids.remove(0);
                        }
                        known.former_ids.push(old_id);
                    }
                    known.partitions.clear();
                    let new_id = topic.topic_id;
                    applied.recreated.push(RecreatedTopic { name: Arc::clone(&name), old_id, new_id });
                }
            }
            let is_unnamed = topic.topic_id.is_zero();
            if !is_unnamed {
                known.id = topic.topic_id;
            }
            known.gone = false;
            known.error = ErrorCode::NONE;
            known.is_internal = topic.is_internal;
            // Indexes are checked against the number of partitions, so a broker can't make this vector longer than its
            // response. Topics don't shrink: a response with fewer partitions is older than one with more.
            let count = topic.partitions.len().max(known.partitions.len());
            known.partitions.resize(count, PartitionMetadata::default());
            for partition in &topic.partitions {
                let index = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
                let Some(known) = known.partitions.get_mut(index) else { continue };
                let is_older = known.is_newer_than(partition.leader_epoch);
                if is_older {
                    known.older_responses = known.older_responses.saturating_add(1);
                }
                let may_be_another = is_unnamed || known.is_unnamed;
                let credible =
                    if partition.leader_epoch == 0 { CREDIBLE_FIRST_EPOCHS } else { CREDIBLE_RESPONSES };
                if !is_older || may_be_another && known.older_responses >= credible {
                    *known = PartitionMetadata {
                        error: partition.error_code,
                        leader: NodeId::from_wire(partition.leader_id),
                        leader_epoch: LeaderEpoch::from_wire(partition.leader_epoch),
                        replicas: nodes_of(&partition.replica_nodes),
                        in_sync: nodes_of(&partition.isr_nodes),
                        older_responses: 0,
                        is_unnamed,
                    };
                }
            }
        }
        if let Some(old_nodes) = old_nodes {
            self.keep_hinted_nodes(old_nodes);
        }
        applied
    }

    /// Keeps nodes that only hints named while they lead a partition: the broker that responded may not know them yet.
    fn keep_hinted_nodes(&mut self, mut old_nodes: SortedMap<NodeId, Node>) {
        for id in std::mem::take(&mut self.hinted_nodes) {
            let leads =
                self.topics.values().flat_map(|topic| &topic.partitions).any(|p| p.leader == Some(id));
            if leads
                && !self.nodes.contains_key(&id)
                && let Some(node) = old_nodes.remove(&id)
            {
                self.nodes.insert(id, node);
                self.hinted_nodes.insert(id);
            }
        }
    }

    /// Removes all nodes and leader epochs, because the next response may come from another cluster.
    pub fn forget_nodes(&mut self) {
        self.nodes.clear();
        self.hinted_nodes.clear();
        self.controller_id = None;
        for partition in self.topics.values_mut().flat_map(|topic| &mut topic.partitions) {
            *partition = PartitionMetadata::default();
        }
    }

    /// Returns the leader of a partition with its epoch, if the leader and its address are known.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(NodeId, Option<LeaderEpoch>)> {
        let partition = self.topics.get(topic)?.partitions.get(usize::try_from(partition).ok()?)?;
        let leader = partition.leader.filter(|leader| self.nodes.contains_key(leader))?;
        Some((leader, partition.leader_epoch))
    }
}

#[cfg(test)]
impl Metadata {
    /// Returns the leader and its epoch as numbers on the wire.
    pub(crate) fn leader_numbers(&self, topic: &str, partition: i32) -> Option<(i32, i32)> {
        self.leader(topic, partition).map(|(node, epoch)| (node.get(), LeaderEpoch::to_wire(epoch)))
    }
}

/// Returns the nodes in a list on the wire.
fn nodes_of(list: &[i32]) -> Vec<NodeId> {
    list.iter().copied().filter_map(NodeId::from_wire).collect()
}

/// Returns a contradiction in a response, if there is one: a node with an invalid address, or a leader that it does not list.
fn contradiction(response: &MetadataResponse) -> Option<String> {
    let mut brokers = response.brokers.iter();
    if let Some(broker) = brokers.find(|broker| Node::new(&broker.host, broker.port, None).is_none()) {
        return Some(format!(
            "it lists node {} at `{}:{}`, which is not an address",
            broker.node_id, broker.host, broker.port
        ));
    }
    let listed: SortedSet<i32> = response.brokers.iter().map(|broker| broker.node_id).collect();
    let partitions = response
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(move |partition| (topic, partition)));
    let mut strangers = partitions.filter(|(_, partition)| {
        partition.error_code == ErrorCode::NONE
            && partition.leader_id >= 0
            && !listed.contains(&partition.leader_id)
    });
    let (topic, partition) = strangers.next()?;
    let others = strangers.count();
    let others = if others > 0 { format!(" and of {others} other partitions") } else { String::new() };
    let (topic, index) = (topic.name.as_deref().unwrap_or_default(), partition.partition_index);
    Some(format!(
        "it names node {} as the leader of {topic} [{index}]{others}, and lists no such node",
        partition.leader_id
    ))
}

#[cfg(test)]
mod tests {
    use ottla_protocol::generated::metadata::response::{Broker, Partition};

    use super::*;

    fn response(leader_id: i32, leader_epoch: i32) -> MetadataResponse {
        MetadataResponse {
            brokers: vec![
                Broker { node_id: 1, host: "a".into(), port: 9092, ..Broker::default() },
                Broker { node_id: 2, host: "b".into(), port: 9092, ..Broker::default() },
                Broker { node_id: 3, host: String::new(), port: 9092, ..Broker::default() },
                Broker { node_id: 4, host: "d".into(), port: 0, ..Broker::default() },
            ],
            topics: vec![Topic {
                name: Some("t".into()),
                partitions: vec![Partition { leader_id, leader_epoch, ..Partition::default() }],
                ..Topic::default()
            }],
            ..MetadataResponse::default()
        }
    }

    #[test]
    fn an_older_leader_epoch_does_not_replace_a_newer_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&response(1, 5));
        metadata.apply(&response(2, 4));
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 5)));
        metadata.apply(&response(2, 6));
        assert_eq!(metadata.leader_numbers("t", 0), Some((2, 6)));
    }

    #[test]
    fn leader_hint_needs_a_newer_epoch_and_a_reachable_leader() {
        let mut metadata = Metadata::default();
        metadata.apply(&response(1, 5));
        let mut hint = |leader, leader_epoch, endpoint: Option<(&'static str, i32)>| {
            let endpoints = endpoint.into_iter().map(|(host, port)| (leader, host, port, None));
            let hint = LeaderHint::new(&Arc::from("t"), 0, (leader, leader_epoch), endpoints).unwrap();
            (metadata.apply_hint(&hint), hint.refused_address)
        };
        assert_eq!(hint(2, 5, None), (HintVerdict::NothingNew, None));
        assert_eq!(hint(9, 6, None), (HintVerdict::Unreachable, None));
        assert_eq!(hint(9, 6, Some(("", 9092))), (HintVerdict::Unreachable, Some(":9092".into())));
        assert_eq!(hint(9, 6, Some(("x", 0))), (HintVerdict::Unreachable, Some("x:0".into())));
        assert_eq!(hint(9, 6, Some(("x", 9092))), (HintVerdict::Taken, None));
        assert_eq!(metadata.leader_numbers("t", 0), Some((9, 6)));
        metadata.apply(&response(1, 5));
        assert_eq!(metadata.leader_numbers("t", 0), Some((9, 6)), "older metadata does not take it back");
        metadata.apply(&response(2, 7));
        assert_eq!(metadata.leader_numbers("t", 0), Some((2, 7)));
        assert!(
            !metadata.nodes.contains_key(&NodeId::from_wire(9).unwrap()),
            "and a node that leads nothing is forgotten"
        );
        assert_eq!(LeaderHint::new(&Arc::from("t"), 0, (-1, -1), std::iter::empty()), None);
    }

    #[test]
    fn hinted_leader_survives_metadata_that_does_not_list_it() {
        let mut metadata = Metadata::default();
        metadata.apply(&response(1, 5));
        let hint = LeaderHint::new(&Arc::from("t"), 0, (2, 6), std::iter::empty()).unwrap();
        assert_eq!(metadata.apply_hint(&hint), HintVerdict::Taken, "node 2 is known already");
        let mut staler = response(1, 5);
        staler.brokers.retain(|broker| broker.node_id == 1);
        metadata.apply(&staler);
        assert_eq!(
            metadata.leader_numbers("t", 0),
            Some((2, 6)),
            "what is staler takes neither leader nor address"
        );
        staler.topics[0].partitions[0].leader_epoch = 7;
        metadata.apply(&staler);
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 7)));
        assert!(!metadata.nodes.contains_key(&NodeId::from_wire(2).unwrap()), "now nothing speaks for it");
    }

    #[test]
    fn metadata_without_epochs_name_the_leader_and_hints_go_on_from_there() {
        let mut metadata = Metadata::default();
        metadata.apply(&response(1, 5));
        metadata.apply(&response(2, -1));
        assert_eq!(metadata.leader_numbers("t", 0), Some((2, -1)), "from a broker that knows no epochs");
        let hint = LeaderHint::new(&Arc::from("t"), 0, (1, 6), std::iter::empty()).unwrap();
        assert_eq!(metadata.apply_hint(&hint), HintVerdict::Taken);
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 6)));
    }

    #[test]
    fn brokers_without_a_usable_address_are_no_leaders() {
        let mut metadata = Metadata::default();
        metadata.apply(&response(3, 1));
        assert_eq!(metadata.nodes.keys().map(|node| node.get()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(metadata.leader("t", 0), None);
    }

    fn topic_response(id: u8, leader_epoch: i32, partitions: usize) -> MetadataResponse {
        let mut response = response(1, leader_epoch);
        // The nodes without a valid address are left out.
        response.brokers.truncate(2);
        response.topics[0].topic_id = Uuid([id; 16]);
        let partition = response.topics[0].partitions[0].clone();
        response.topics[0].partitions = (0..partitions)
            .map(|index| Partition { partition_index: index as i32, ..partition.clone() })
            .collect();
        response
    }

    #[test]
    fn stale_metadata_does_not_restore_the_old_topic_id() {
        let mut metadata = Metadata::default();
        assert_eq!(metadata.apply(&topic_response(1, 7, 3)), Applied::default());
        let applied = metadata.apply(&topic_response(2, 0, 1));
        let (old_id, new_id) = (Uuid([1; 16]), Uuid([2; 16]));
        assert_eq!(applied.recreated, [RecreatedTopic { name: Arc::from("t"), old_id, new_id }]);
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 0)), "its epochs start again");
        assert_eq!(metadata.topics["t"].partitions.len(), 1);
        let applied = metadata.apply(&topic_response(1, 9, 3));
        assert!(applied.outdated && applied.recreated.is_empty(), "from a broker that is behind");
        assert_eq!((metadata.topics["t"].id, metadata.leader_numbers("t", 0)), (new_id, Some((1, 0))));
    }

    #[test]
    fn response_without_topic_ids_does_not_recreate_a_topic() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(1, 7, 3));
        assert_eq!(metadata.apply(&topic_response(0, 7, 3)), Applied::default());
        assert_eq!(metadata.topics["t"].id, Uuid([1; 16]));
    }

    #[test]
    fn topic_that_returns_without_an_id_counts_as_recreated() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(0, 7, 3));
        assert!(metadata.apply(&topic_response(0, 2, 3)).recreated.is_empty(), "older, that is all");
        let gone = Topic {
            name: Some("t".into()),
            error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ..Topic::default()
        };
        metadata.apply(&MetadataResponse { topics: vec![gone], ..MetadataResponse::default() });
        assert_eq!(metadata.apply(&topic_response(0, 0, 3)).recreated.len(), 1);
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 0)));
    }

    #[test]
    fn older_leader_is_accepted_when_reported_repeatedly() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(0, 7, 3));
        for _ in 1..CREDIBLE_RESPONSES {
            metadata.apply(&topic_response(0, 1, 3));
        }
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 7)), "from a broker that is behind");
        metadata.apply(&topic_response(0, 1, 3));
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 1)));
    }

    #[test]
    fn first_epoch_of_a_recreated_topic_is_accepted_soon() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(0, 7, 3));
        for _ in 1..CREDIBLE_FIRST_EPOCHS {
            metadata.apply(&topic_response(0, 0, 3));
        }
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 7)), "from a broker that is behind");
        metadata.apply(&topic_response(0, 0, 3));
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 0)));
    }

    #[test]
    fn unknown_topic_id_is_dropped_without_a_replacement() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(1, 0, 3));
        let id = metadata.topics["t"].id;
        let responses_in_doubt = |metadata: &mut Metadata, count: u8| {
            let mut recreated = Vec::new();
            for _ in 0..count {
                metadata.doubt_id("t", id);
                recreated.extend(metadata.apply(&topic_response(0, 0, 3)).recreated);
            }
            recreated
        };
        assert_eq!(responses_in_doubt(&mut metadata, CREDIBLE_RESPONSES - 1), []);
        metadata.apply(&topic_response(0, 0, 3));
        assert_eq!(
            responses_in_doubt(&mut metadata, CREDIBLE_RESPONSES - 1),
            [],
            "a broker was behind for a while"
        );
        metadata.doubt_id("t", id);
        metadata.apply(&topic_response(1, 0, 3));
        assert_eq!(
            responses_in_doubt(&mut metadata, CREDIBLE_RESPONSES - 1),
            [],
            "a broker reported it again"
        );
        let name = Arc::from("t");
        let recreated = RecreatedTopic { name, old_id: id, new_id: Uuid::ZERO };
        assert_eq!(
            responses_in_doubt(&mut metadata, 1),
            [recreated],
            "the topic was recreated, and its new ID is unknown"
        );
        assert_eq!((metadata.topics["t"].id, metadata.leader_numbers("t", 0)), (Uuid::ZERO, Some((1, 0))));
    }

    #[test]
    fn epoch_without_topic_id_ends_with_the_first_responses_with_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(0, 7, 3));
        for _ in 1..CREDIBLE_RESPONSES {
            metadata.apply(&topic_response(1, 1, 3));
        }
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 7)), "from a broker that is behind");
        metadata.apply(&topic_response(1, 1, 3));
        assert_eq!(
            metadata.leader_numbers("t", 0),
            Some((1, 1)),
            "the topic was recreated between two responses"
        );
    }

    #[test]
    fn an_older_leader_of_the_same_topic_by_its_id_is_never_believed() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(1, 7, 3));
        for _ in 0..3 * CREDIBLE_RESPONSES {
            metadata.apply(&topic_response(1, 6, 3));
        }
        assert_eq!(
            metadata.leader_numbers("t", 0),
            Some((1, 7)),
            "the responding broker lags behind for a long time"
        );
    }

    #[test]
    fn topic_is_recreated_if_its_first_id_comes_with_older_epochs() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(0, 7, 3));
        let gone = Topic {
            name: Some("t".into()),
            error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ..Topic::default()
        };
        metadata.apply(&MetadataResponse { topics: vec![gone], ..MetadataResponse::default() });
        assert_eq!(metadata.apply(&topic_response(1, 0, 3)).recreated.len(), 1);
        assert_eq!(metadata.leader_numbers("t", 0), Some((1, 0)));
    }

    #[test]
    fn response_with_fewer_partitions_is_older_and_removes_none() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_response(1, 0, 3));
        metadata.apply(&topic_response(1, 0, 2));
        assert_eq!(metadata.leader_numbers("t", 2), Some((1, 0)));
    }
}
