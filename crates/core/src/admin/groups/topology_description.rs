//! The description of a topology's nodes, for people and tools (KIP-1331). The coordinator passes it to a plug-in that stores it,
//! and takes nothing from it for the assignment of tasks.

use ottla_protocol::generated::{
    streams_group_describe::response as described, streams_group_topology_description_update::request,
};
use ottla_sorted::SortedSet;

use crate::error::{Error, ErrorKind};

/// The nodes of a topology, and how records pass from one to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyDescription {
    /// The parts whose tasks are assigned independently.
    pub subtopologies: Vec<SubtopologyDescription>,
    /// The stores of which each process of the application has a whole copy.
    pub global_stores: Vec<GlobalStore>,
}

/// The nodes of a part of a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubtopologyDescription {
    /// The ID of the subtopology.
    pub id: String,
    /// Its nodes; their names are unique in it.
    pub nodes: Vec<TopologyNode>,
}

/// A node of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyNode {
    /// The name.
    pub name: String,
    /// What the node does.
    pub kind: TopologyNodeKind,
    /// The names of the nodes that get its records. A sink has none.
    pub successors: Vec<String>,
}

/// What a node of a topology does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyNodeKind {
    /// It reads these topics.
    Source {
        /// The names of the topics; empty if a pattern selects them.
        topics: Vec<String>,
    },
    /// It processes records with these stores.
    Processor {
        /// The names of the stores; empty if the processor has no state.
        stores: Vec<String>,
    },
    /// It writes to a topic.
    Sink {
        /// The name of the topic; `None` if each record decides.
        topic: Option<String>,
    },
}

/// A store of which each process has a whole copy, with the nodes that fill it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalStore {
    /// The node that reads the store's topic; of kind [`TopologyNodeKind::Source`].
    pub source: TopologyNode,
    /// The node that writes to the store; of kind [`TopologyNodeKind::Processor`].
    pub processor: TopologyNode,
}

/// The stored description of a streams group's topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredDescription {
    /// It was not requested, or the brokers are older than Kafka 4.4.
    #[default]
    NotRequested,
    /// There is none: the brokers have no plug-in that stores it, or no member has sent it.
    NotStored,
    /// The coordinator could not read it, or returned one that is not valid.
    Unreadable,
    /// The description.
    Available(TopologyDescription),
}

impl TopologyDescription {
    /// Checks what the coordinator or its plug-in would refuse.
    ///
    /// # Errors
    ///
    /// A name is empty or occurs twice in a subtopology, a successor does not exist there, a sink has successors, or the nodes
    /// of a global store are not a source and a processor.
    pub fn check(&self) -> Result<(), Error> {
        let mut ids = SortedSet::new();
        for part in &self.subtopologies {
            if part.id.is_empty() || !ids.insert(part.id.as_str()) {
                let what =
                    format!("subtopology ID \"{}\" of the description is empty or not unique", part.id);
                return Err(invalid(what));
            }
            let nodes: Vec<&TopologyNode> = part.nodes.iter().collect();
            let in_part = |what| invalid(format!("the description of subtopology \"{}\" {what}", part.id));
            check_nodes(&nodes).map_err(in_part)?;
        }
        for GlobalStore { source, processor } in &self.global_stores {
            let in_store =
                |what| invalid(format!("the description of the global store of \"{}\" {what}", source.name));
            let kinds = (&source.kind, &processor.kind);
            if !matches!(kinds, (TopologyNodeKind::Source { .. }, TopologyNodeKind::Processor { .. })) {
                return Err(in_store("has nodes other than a source and a processor".to_owned()));
            }
            check_nodes(&[source, processor]).map_err(in_store)?;
        }
        Ok(())
    }

    pub(crate) fn to_request(&self) -> request::TopologyDescription {
        let subtopologies = self.subtopologies.iter().map(|part| request::Subtopology {
            subtopology_id: part.id.clone(),
            nodes: part.nodes.iter().map(TopologyNode::to_node).collect(),
        });
        let stores = self.global_stores.iter().map(|store| request::GlobalStore {
            source: store.source.to_source(),
            processor: store.processor.to_processor(),
        });
        request::TopologyDescription {
            subtopologies: subtopologies.collect(),
            global_stores: stores.collect(),
        }
    }

    /// `None`: a node is of an unknown type.
    fn of_response(description: described::TopologyDescription) -> Option<Self> {
        let part = |part: described::TopologyDescriptionSubtopology| {
            let nodes = part.nodes.into_iter().map(TopologyNode::of_node).collect::<Option<_>>()?;
            Some(SubtopologyDescription { id: part.subtopology_id, nodes })
        };
        let store = |store: described::GlobalStore| {
            let source = TopologyNode::of_source(store.source)?;
            Some(GlobalStore { source, processor: TopologyNode::of_processor(store.processor)? })
        };
        Some(Self {
            subtopologies: description.subtopologies.into_iter().map(part).collect::<Option<_>>()?,
            global_stores: description.global_stores.into_iter().map(store).collect::<Option<_>>()?,
        })
    }
}

impl StoredDescription {
    /// Returns what a description of the group says.
    pub(super) fn of_response(status: i8, description: Option<described::TopologyDescription>) -> Self {
        const NOT_REQUESTED: i8 = 0;
        const NOT_STORED: i8 = 1;
        const AVAILABLE: i8 = 3;
        match status {
            NOT_REQUESTED => Self::NotRequested,
            NOT_STORED => Self::NotStored,
            AVAILABLE => description
                .and_then(TopologyDescription::of_response)
                .map_or(Self::Unreadable, Self::Available),
            _ => Self::Unreadable,
        }
    }
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, detail)
}

/// Checks nodes that may be each other's successors. Error: what is wrong with them.
fn check_nodes(nodes: &[&TopologyNode]) -> Result<(), String> {
    let mut names = SortedSet::new();
    if let Some(node) = nodes.iter().find(|node| node.name.is_empty() || !names.insert(node.name.as_str())) {
        return Err(format!("has a node \"{}\" whose name is empty or not unique", node.name));
    }
    for node in nodes {
        if matches!(node.kind, TopologyNodeKind::Sink { .. }) && !node.successors.is_empty() {
            return Err(format!("has a sink \"{}\" with successors", node.name));
        }
        if let Some(missing) = node.successors.iter().find(|next| !names.contains(next.as_str())) {
            return Err(format!("has no node \"{missing}\", which follows \"{}\"", node.name));
        }
    }
    Ok(())
}

const SOURCE: i8 = 1;
const PROCESSOR: i8 = 2;
const SINK: i8 = 3;

/// Converts nodes to and from the structs of messages, which have the same fields.
macro_rules! conversions {
    ($($to:ident: $request:ident, $of:ident: $response:ident;)*) => {
        impl TopologyNode {
            $(
                fn $to(&self) -> request::$request {
                    let (node_type, source_topics, stores, sink_topic) = self.kind.to_wire();
                    request::$request {
                        name: self.name.clone(),
                        node_type,
                        source_topics,
                        sink_topic,
                        stores,
                        successors: self.successors.clone(),
                    }
                }

                /// `None`: the type is unknown.
                fn $of(node: described::$response) -> Option<Self> {
                    let kind = match node.node_type {
                        SOURCE => TopologyNodeKind::Source { topics: node.source_topics },
                        PROCESSOR => TopologyNodeKind::Processor { stores: node.stores },
                        SINK => TopologyNodeKind::Sink { topic: node.sink_topic },
                        _ => return None,
                    };
                    Some(Self { name: node.name, kind, successors: node.successors })
                }
            )*
        }
    };
}

conversions! {
    to_node: Node, of_node: Node;
    to_source: Source, of_source: Source;
    to_processor: Processor, of_processor: Processor;
}

impl TopologyNodeKind {
    /// Returns the type, the source topics, the stores and the sink's topic.
    fn to_wire(&self) -> (i8, Vec<String>, Vec<String>, Option<String>) {
        match self {
            Self::Source { topics } => (SOURCE, topics.clone(), Vec::new(), None),
            Self::Processor { stores } => (PROCESSOR, Vec::new(), stores.clone(), None),
            Self::Sink { topic } => (SINK, Vec::new(), Vec::new(), topic.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, kind: TopologyNodeKind, successors: &[&str]) -> TopologyNode {
        let successors = successors.iter().map(|name| (*name).to_owned()).collect();
        TopologyNode { name: name.to_owned(), kind, successors }
    }

    fn source(name: &str, successors: &[&str]) -> TopologyNode {
        node(name, TopologyNodeKind::Source { topics: vec!["t".to_owned()] }, successors)
    }

    fn of_nodes(nodes: Vec<TopologyNode>) -> TopologyDescription {
        let part = SubtopologyDescription { id: "0".to_owned(), nodes };
        TopologyDescription { subtopologies: vec![part], global_stores: Vec::new() }
    }

    #[test]
    fn wrong_descriptions_are_refused_with_their_reason() {
        let sink = |successors| node("sink", TopologyNodeKind::Sink { topic: None }, successors);
        let twice = TopologyDescription {
            subtopologies: vec![SubtopologyDescription { id: "a".to_owned(), nodes: Vec::new() }; 2],
            global_stores: Vec::new(),
        };
        let store = GlobalStore { source: source("s", &[]), processor: source("p", &[]) };
        let stores = TopologyDescription { subtopologies: Vec::new(), global_stores: vec![store] };
        let wrong = [
            (twice, "\"a\" of the description is empty or not unique"),
            (of_nodes(vec![source("", &[])]), "\"\" whose name"),
            (of_nodes(vec![source("s", &[]), source("s", &[])]), "\"s\" whose name is empty or not unique"),
            (of_nodes(vec![source("s", &["x"])]), "no node \"x\", which follows \"s\""),
            (of_nodes(vec![source("s", &["sink"]), sink(&["s"])]), "a sink \"sink\" with successors"),
            (stores, "global store of \"s\" has nodes other than"),
        ];
        for (description, text) in wrong {
            let error = description.check().expect_err(text);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(text), "{error}");
        }
        of_nodes(vec![source("s", &["sink"]), sink(&[])]).check().expect("it is right");
    }

    #[test]
    fn stored_description_of_an_unknown_kind_is_unreadable() {
        let of_type = |node_type| {
            let node = described::Node { name: "n".to_owned(), node_type, ..Default::default() };
            let part = described::TopologyDescriptionSubtopology {
                subtopology_id: "0".to_owned(),
                nodes: vec![node],
            };
            described::TopologyDescription { subtopologies: vec![part], global_stores: Vec::new() }
        };
        let stored = StoredDescription::of_response(3, Some(of_type(SINK)));
        let sink = node("n", TopologyNodeKind::Sink { topic: None }, &[]);
        assert_eq!(stored, StoredDescription::Available(of_nodes(vec![sink])));
        for (status, description) in [(3, Some(of_type(4))), (3, None), (2, None), (9, Some(of_type(SINK)))] {
            assert_eq!(StoredDescription::of_response(status, description), StoredDescription::Unreadable);
        }
        assert_eq!(StoredDescription::of_response(1, None), StoredDescription::NotStored);
        assert_eq!(StoredDescription::of_response(0, None), StoredDescription::NotRequested);
    }
}
