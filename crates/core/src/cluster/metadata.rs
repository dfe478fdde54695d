//! What is known of the cluster: its brokers, its topics and who leads which partition.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::metadata::{MetadataResponse, response::Topic},
    uuid::Uuid,
};

/// The cluster as the newest answers describe it.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// The node that takes administrative requests; -1 if unknown.
    pub controller_id: i32,
    /// The brokers by node id.
    pub nodes: BTreeMap<i32, Node>,
    /// Those of the brokers that a hint named, and no metadata since.
    pub hinted_nodes: BTreeSet<i32>,
    /// The topics that were asked about and exist.
    pub topics: BTreeMap<Arc<str>, TopicMetadata>,
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
    /// The topic's id; zero if the broker does not know ids.
    pub id: Uuid,
    /// Ids that topics of this name had before, newest last. An answer with one of them is out of date.
    pub former_ids: Vec<Uuid>,
    /// A broker did not know the id since the newest answer.
    pub doubted: bool,
    /// How many answers in a row told no id, and the id was doubted before each.
    pub answers_in_doubt: u8,
    /// The newest answer says that there is no such topic.
    pub gone: bool,
    /// True for the cluster's own topics.
    pub is_internal: bool,
    /// The partitions, by index.
    pub partitions: Vec<PartitionMetadata>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Why there is no leader.
    pub error: ErrorCode,
    /// The leader's node id; -1 if there is none.
    pub leader: i32,
    /// Counts the leader changes; -1 if the broker does not tell.
    pub leader_epoch: i32,
    /// The nodes that hold the partition.
    pub replicas: Vec<i32>,
    /// The nodes that are in sync.
    pub in_sync: Vec<i32>,
    /// How many answers in a row told an older epoch.
    pub older_answers: u8,
    /// Who told the epoch did not tell the topic's id: it may be of a topic that is no more.
    pub is_unnamed: bool,
}

impl Default for PartitionMetadata {
    fn default() -> Self {
        Self {
            error: ErrorCode::LEADER_NOT_AVAILABLE,
            leader: -1,
            leader_epoch: -1,
            replicas: Vec::new(),
            in_sync: Vec::new(),
            older_answers: 0,
            is_unnamed: false,
        }
    }
}

/// A topic that an answer says can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicError {
    /// The topic.
    pub name: Arc<str>,
    /// Why.
    pub code: ErrorCode,
}

/// What a broker that does not lead a partition says of who does (KIP-951).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The leader's node id.
    pub leader: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// Where the leader listens, if the broker told.
    pub node: Option<Node>,
    /// What the broker told is no address that can be connected to.
    pub refused_address: Option<String>,
}

/// What became of a hint.
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
    /// What an answer says of a partition's leader; `endpoints` are the nodes that it names, each with id, host, port and
    /// rack. `None` if it says nothing.
    pub fn new<'a>(
        topic: &Arc<str>,
        partition: i32,
        (leader, leader_epoch): (i32, i32),
        mut endpoints: impl Iterator<Item = (i32, &'a str, i32, Option<&'a str>)>,
    ) -> Option<Self> {
        if leader < 0 || leader_epoch < 0 {
            return None;
        }
        let named = endpoints.find(|(id, ..)| *id == leader);
        let node = named.and_then(|(_, host, port, rack)| Node::new(host, port, rack));
        let refused_address = match (&node, named) {
            (None, Some((_, host, port, _))) => Some(format!("{host}:{port}")),
            _ => None,
        };
        let topic = Arc::clone(topic);
        Some(Self { topic, partition, leader, leader_epoch, node, refused_address })
    }
}

/// What an answer changed besides leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The topics that it says can't be used.
    pub errors: Vec<TopicError>,
    /// The topics that were deleted and made anew.
    pub recreated: Vec<RecreatedTopic>,
    /// It describes a topic that there was before the one that is known: whoever answered is behind.
    pub outdated: bool,
    /// What in it can't be, in words.
    pub contradiction: Option<String>,
}

/// A topic that was deleted and made anew under its old name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecreatedTopic {
    /// The topic's name.
    pub name: Arc<str>,
    /// The id of the topic that was deleted; zero if the brokers have no ids.
    pub old_id: Uuid,
    /// The id of the new topic; zero if the brokers have no ids.
    pub new_id: Uuid,
}

/// Whether a topic in an answer is the one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    Same,
    /// One that there was before.
    Former,
    Recreated,
}

/// So many ids of deleted topics are remembered per name.
const FORMER_IDS: usize = 8;

/// So many answers in a row that tell an older epoch are believed, or that tell no id for one that brokers don't know any
/// more: without ids nothing else shows that a topic was made anew before anybody noticed that it was gone. A broker that is behind for so long does no harm either: whom it names says
/// who leads now.
const CREDIBLE_ANSWERS: u8 = 10;

impl TopicMetadata {
    fn identify(&mut self, answer: &Topic) -> Identity {
        let in_doubt = std::mem::take(&mut self.doubted) && answer.topic_id.is_zero();
        self.answers_in_doubt = if in_doubt { self.answers_in_doubt + 1 } else { 0 };
        if self.answers_in_doubt >= CREDIBLE_ANSWERS {
            self.answers_in_doubt = 0;
            return Identity::Recreated;
        }
        if answer.topic_id.is_zero() || self.id.is_zero() {
            // Without two ids to compare only a topic that was gone in between and whose epochs start again must be another one.
            let starts_again = answer.partitions.len() < self.partitions.len()
                || answer.partitions.iter().any(|partition| {
                    let index = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
                    let known = self.partitions.get(index).map_or(-1, |known| known.leader_epoch);
                    (0..known).contains(&partition.leader_epoch)
                });
            return if self.gone && starts_again { Identity::Recreated } else { Identity::Same };
        }
        match answer.topic_id {
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
    /// A broker does not know a topic by its id: either it is behind, or the topic was made anew.
    pub fn doubt_id(&mut self, topic: &str, id: Uuid) {
        if let Some(known) = self.topics.get_mut(topic).filter(|known| known.id == id && !id.is_zero()) {
            known.doubted = true;
        }
    }

    /// Takes in a hint if it names a newer leader than is known, at an address that is known.
    pub fn apply_hint(&mut self, hint: &LeaderHint) -> HintVerdict {
        let index = usize::try_from(hint.partition).unwrap_or(usize::MAX);
        let known = self.topics.get_mut(&hint.topic).and_then(|topic| topic.partitions.get_mut(index));
        let Some(known) = known.filter(|known| hint.leader >= 0 && hint.leader_epoch > known.leader_epoch)
        else {
            return HintVerdict::NothingNew;
        };
        if let Entry::Vacant(entry) = self.nodes.entry(hint.leader) {
            let Some(node) = &hint.node else { return HintVerdict::Unreachable };
            entry.insert(node.clone());
        }
        // The next metadata may be from before it, and not list the leader.
        self.hinted_nodes.insert(hint.leader);
        known.leader = hint.leader;
        known.leader_epoch = hint.leader_epoch;
        known.error = ErrorCode::NONE;
        HintVerdict::Taken
    }

    /// Takes in an answer. A partition's leader is only replaced by one of the same or a newer epoch, and a topic never by
    /// one that was there before it.
    pub fn apply(&mut self, answer: &MetadataResponse) -> Applied {
        if answer.cluster_id.is_some() {
            self.cluster_id.clone_from(&answer.cluster_id);
        }
        self.controller_id = answer.controller_id;
        let nodes: BTreeMap<i32, Node> = answer
            .brokers
            .iter()
            .filter(|broker| broker.node_id >= 0)
            .filter_map(|broker| {
                Some((broker.node_id, Node::new(&broker.host, broker.port, broker.rack.as_deref())?))
            })
            .collect();
        let old_nodes = if nodes.is_empty() { None } else { Some(std::mem::replace(&mut self.nodes, nodes)) };
        let mut applied = Applied { contradiction: contradiction(answer), ..Applied::default() };
        for topic in &answer.topics {
            let Some(name) = topic.name.as_deref() else { continue };
            let name: Arc<str> = Arc::from(name);
            if topic.error_code != ErrorCode::NONE {
                if let Some(known) = self.topics.get_mut(&name) {
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
            known.is_internal = topic.is_internal;
            // Indexes are checked against their number: a broker can't make this vector longer than its answer. Topics
            // don't shrink: an answer with fewer partitions is older than one with more.
            let count = topic.partitions.len().max(known.partitions.len());
            known.partitions.resize(count, PartitionMetadata::default());
            for partition in &topic.partitions {
                let index = usize::try_from(partition.partition_index).unwrap_or(usize::MAX);
                let Some(known) = known.partitions.get_mut(index) else { continue };
                let is_older = (0..known.leader_epoch).contains(&partition.leader_epoch);
                if is_older {
                    known.older_answers = known.older_answers.saturating_add(1);
                }
                let may_be_another = is_unnamed || known.is_unnamed;
                if !is_older || may_be_another && known.older_answers >= CREDIBLE_ANSWERS {
                    *known = PartitionMetadata {
                        error: partition.error_code,
                        leader: partition.leader_id,
                        leader_epoch: partition.leader_epoch,
                        replicas: partition.replica_nodes.clone(),
                        in_sync: partition.isr_nodes.clone(),
                        older_answers: 0,
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

    /// Keeps nodes that hints named, and no metadata since, and that lead something: whoever answered may not know them yet.
    fn keep_hinted_nodes(&mut self, mut old_nodes: BTreeMap<i32, Node>) {
        for id in std::mem::take(&mut self.hinted_nodes) {
            let leads = self.topics.values().flat_map(|topic| &topic.partitions).any(|p| p.leader == id);
            if leads
                && !self.nodes.contains_key(&id)
                && let Some(node) = old_nodes.remove(&id)
            {
                self.nodes.insert(id, node);
                self.hinted_nodes.insert(id);
            }
        }
    }

    /// Forgets all nodes, and which leader epochs there were: it may be another cluster that answers next.
    pub fn forget_nodes(&mut self) {
        self.nodes.clear();
        self.hinted_nodes.clear();
        self.controller_id = -1;
        for partition in self.topics.values_mut().flat_map(|topic| &mut topic.partitions) {
            *partition = PartitionMetadata::default();
        }
    }

    /// Who leads a partition, if that is known and the leader's address too.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(i32, i32)> {
        let partition = self.topics.get(topic)?.partitions.get(usize::try_from(partition).ok()?)?;
        self.nodes.contains_key(&partition.leader).then_some((partition.leader, partition.leader_epoch))
    }
}

/// What in an answer can't be: nodes whose address is none, leaders that it does not list.
fn contradiction(answer: &MetadataResponse) -> Option<String> {
    let mut brokers = answer.brokers.iter();
    if let Some(broker) = brokers.find(|broker| Node::new(&broker.host, broker.port, None).is_none()) {
        return Some(format!(
            "it lists node {} at `{}:{}`, which is no address",
            broker.node_id, broker.host, broker.port
        ));
    }
    let listed: BTreeSet<i32> = answer.brokers.iter().map(|broker| broker.node_id).collect();
    let partitions = answer
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

    fn answer(leader_id: i32, leader_epoch: i32) -> MetadataResponse {
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
        metadata.apply(&answer(1, 5));
        metadata.apply(&answer(2, 4));
        assert_eq!(metadata.leader("t", 0), Some((1, 5)));
        metadata.apply(&answer(2, 6));
        assert_eq!(metadata.leader("t", 0), Some((2, 6)));
    }

    #[test]
    fn a_hint_is_taken_only_if_its_epoch_is_newer_and_its_leader_can_be_reached() {
        let mut metadata = Metadata::default();
        metadata.apply(&answer(1, 5));
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
        assert_eq!(metadata.leader("t", 0), Some((9, 6)));
        metadata.apply(&answer(1, 5));
        assert_eq!(metadata.leader("t", 0), Some((9, 6)), "older metadata does not take it back");
        metadata.apply(&answer(2, 7));
        assert_eq!(metadata.leader("t", 0), Some((2, 7)));
        assert!(!metadata.nodes.contains_key(&9), "and a node that leads nothing is forgotten");
        assert_eq!(LeaderHint::new(&Arc::from("t"), 0, (-1, -1), std::iter::empty()), None);
    }

    #[test]
    fn a_leader_from_a_hint_is_kept_by_metadata_that_do_not_list_it_any_more_or_yet() {
        let mut metadata = Metadata::default();
        metadata.apply(&answer(1, 5));
        let hint = LeaderHint::new(&Arc::from("t"), 0, (2, 6), std::iter::empty()).unwrap();
        assert_eq!(metadata.apply_hint(&hint), HintVerdict::Taken, "node 2 is known already");
        let mut staler = answer(1, 5);
        staler.brokers.retain(|broker| broker.node_id == 1);
        metadata.apply(&staler);
        assert_eq!(metadata.leader("t", 0), Some((2, 6)), "what is staler takes neither leader nor address");
        staler.topics[0].partitions[0].leader_epoch = 7;
        metadata.apply(&staler);
        assert_eq!(metadata.leader("t", 0), Some((1, 7)));
        assert!(!metadata.nodes.contains_key(&2), "now nothing speaks for it");
    }

    #[test]
    fn metadata_without_epochs_name_the_leader_and_hints_go_on_from_there() {
        let mut metadata = Metadata::default();
        metadata.apply(&answer(1, 5));
        metadata.apply(&answer(2, -1));
        assert_eq!(metadata.leader("t", 0), Some((2, -1)), "from a broker that knows no epochs");
        let hint = LeaderHint::new(&Arc::from("t"), 0, (1, 6), std::iter::empty()).unwrap();
        assert_eq!(metadata.apply_hint(&hint), HintVerdict::Taken);
        assert_eq!(metadata.leader("t", 0), Some((1, 6)));
    }

    #[test]
    fn brokers_without_a_usable_address_are_no_leaders() {
        let mut metadata = Metadata::default();
        metadata.apply(&answer(3, 1));
        assert_eq!(metadata.nodes.keys().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(metadata.leader("t", 0), None);
    }

    fn topic_answer(id: u8, leader_epoch: i32, partitions: usize) -> MetadataResponse {
        let mut answer = answer(1, leader_epoch);
        // Without those that have no address.
        answer.brokers.truncate(2);
        answer.topics[0].topic_id = Uuid([id; 16]);
        let partition = answer.topics[0].partitions[0].clone();
        answer.topics[0].partitions = (0..partitions)
            .map(|index| Partition { partition_index: index as i32, ..partition.clone() })
            .collect();
        answer
    }

    #[test]
    fn a_topic_with_another_id_is_another_topic_and_the_old_one_does_not_come_back() {
        let mut metadata = Metadata::default();
        assert_eq!(metadata.apply(&topic_answer(1, 7, 3)), Applied::default());
        let applied = metadata.apply(&topic_answer(2, 0, 1));
        let (old_id, new_id) = (Uuid([1; 16]), Uuid([2; 16]));
        assert_eq!(applied.recreated, [RecreatedTopic { name: Arc::from("t"), old_id, new_id }]);
        assert_eq!(metadata.leader("t", 0), Some((1, 0)), "its epochs start again");
        assert_eq!(metadata.topics["t"].partitions.len(), 1);
        let applied = metadata.apply(&topic_answer(1, 9, 3));
        assert!(applied.outdated && applied.recreated.is_empty(), "from a broker that is behind");
        assert_eq!((metadata.topics["t"].id, metadata.leader("t", 0)), (new_id, Some((1, 0))));
    }

    #[test]
    fn an_answer_without_ids_does_not_make_a_topic_another_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(1, 7, 3));
        assert_eq!(metadata.apply(&topic_answer(0, 7, 3)), Applied::default());
        assert_eq!(metadata.topics["t"].id, Uuid([1; 16]));
    }

    #[test]
    fn without_ids_a_topic_that_was_gone_and_starts_again_is_another_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(0, 7, 3));
        assert!(metadata.apply(&topic_answer(0, 2, 3)).recreated.is_empty(), "older, that is all");
        let gone = Topic {
            name: Some("t".into()),
            error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ..Topic::default()
        };
        metadata.apply(&MetadataResponse { topics: vec![gone], ..MetadataResponse::default() });
        assert_eq!(metadata.apply(&topic_answer(0, 0, 3)).recreated.len(), 1);
        assert_eq!(metadata.leader("t", 0), Some((1, 0)));
    }

    #[test]
    fn an_older_leader_that_is_told_again_and_again_is_believed_in_the_end() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(0, 7, 3));
        for _ in 1..CREDIBLE_ANSWERS {
            metadata.apply(&topic_answer(0, 1, 3));
        }
        assert_eq!(metadata.leader("t", 0), Some((1, 7)), "from a broker that is behind");
        metadata.apply(&topic_answer(0, 1, 3));
        assert_eq!(metadata.leader("t", 0), Some((1, 1)));
    }

    #[test]
    fn an_id_that_brokers_do_not_know_is_given_up_if_nobody_tells_another_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(1, 0, 3));
        let id = metadata.topics["t"].id;
        let answers_in_doubt = |metadata: &mut Metadata, count: u8| {
            let mut recreated = Vec::new();
            for _ in 0..count {
                metadata.doubt_id("t", id);
                recreated.extend(metadata.apply(&topic_answer(0, 0, 3)).recreated);
            }
            recreated
        };
        assert_eq!(answers_in_doubt(&mut metadata, CREDIBLE_ANSWERS - 1), []);
        metadata.apply(&topic_answer(0, 0, 3));
        assert_eq!(
            answers_in_doubt(&mut metadata, CREDIBLE_ANSWERS - 1),
            [],
            "a broker was behind for a while"
        );
        metadata.doubt_id("t", id);
        metadata.apply(&topic_answer(1, 0, 3));
        assert_eq!(answers_in_doubt(&mut metadata, CREDIBLE_ANSWERS - 1), [], "a broker told it again");
        let name = Arc::from("t");
        let recreated = RecreatedTopic { name, old_id: id, new_id: Uuid::ZERO };
        assert_eq!(
            answers_in_doubt(&mut metadata, 1),
            [recreated],
            "it was made anew, and nobody tells its id"
        );
        assert_eq!((metadata.topics["t"].id, metadata.leader("t", 0)), (Uuid::ZERO, Some((1, 0))));
    }

    #[test]
    fn an_epoch_that_was_told_without_an_id_does_not_outlive_the_first_answers_with_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(0, 7, 3));
        for _ in 1..CREDIBLE_ANSWERS {
            metadata.apply(&topic_answer(1, 0, 3));
        }
        assert_eq!(metadata.leader("t", 0), Some((1, 7)), "from a broker that is behind");
        metadata.apply(&topic_answer(1, 0, 3));
        assert_eq!(metadata.leader("t", 0), Some((1, 0)), "the topic was made anew, and nobody saw it gone");
    }

    #[test]
    fn an_older_leader_of_the_same_topic_by_its_id_is_never_believed() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(1, 7, 3));
        for _ in 0..3 * CREDIBLE_ANSWERS {
            metadata.apply(&topic_answer(1, 6, 3));
        }
        assert_eq!(metadata.leader("t", 0), Some((1, 7)), "whoever answers is behind for long");
    }

    #[test]
    fn a_topic_whose_first_id_comes_with_older_epochs_after_it_was_gone_is_another_one() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(0, 7, 3));
        let gone = Topic {
            name: Some("t".into()),
            error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ..Topic::default()
        };
        metadata.apply(&MetadataResponse { topics: vec![gone], ..MetadataResponse::default() });
        assert_eq!(metadata.apply(&topic_answer(1, 0, 3)).recreated.len(), 1);
        assert_eq!(metadata.leader("t", 0), Some((1, 0)));
    }

    #[test]
    fn an_answer_with_fewer_partitions_is_older_and_takes_none_away() {
        let mut metadata = Metadata::default();
        metadata.apply(&topic_answer(1, 0, 3));
        metadata.apply(&topic_answer(1, 0, 2));
        assert_eq!(metadata.leader("t", 2), Some((1, 0)));
    }
}
