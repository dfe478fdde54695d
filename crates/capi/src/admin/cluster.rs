//! Descriptions of the cluster and of topics.

use std::{
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla_core::{
    admin::describe::{AuthorizedOperations, BrokerDescription, ClusterDescription, PartitionDescription},
    error::Error,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    call::{Listed, Outcome, call, code_in_result, found, show},
    options::AdminOptions,
};
use crate::{
    admin::uuid::Uuid,
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Given, Part, Place, Ref},
        boundary::{Handle, Tag, c_text, text},
        error::ErrorObject,
        export, getters, or_null, text_or_null,
    },
};

/// `RD_KAFKA_EVENT_DESCRIBETOPICS_RESULT`.
pub(super) const TOPICS: c_int = 1 << 20;
/// `RD_KAFKA_EVENT_DESCRIBECLUSTER_RESULT`.
pub(super) const CLUSTER: c_int = 1 << 21;

/// `rd_kafka_Node_t`.
#[derive(Debug)]
pub struct Node {
    id: i32,
    host: CString,
    port: u16,
    rack: Option<CString>,
}

impl Node {
    pub(super) fn new(broker: &BrokerDescription) -> Self {
        Self {
            id: broker.id,
            host: c_text(&broker.host),
            port: u16::try_from(broker.port).unwrap_or(0),
            rack: broker.rack.as_deref().map(c_text),
        }
    }
}

/// Brokers, including those that only partitions name, and the index of each.
#[derive(Debug)]
struct Nodes {
    by_id: SortedMap<i32, *const Node>,
    list: Listed<Node>,
}

impl Nodes {
    fn new(cluster: &ClusterDescription) -> Self {
        let mut known: SortedMap<i32, Node> =
            cluster.brokers.iter().map(|broker| (broker.id, Node::new(broker))).collect();
        for partition in cluster.topics.iter().flat_map(|topic| &topic.partitions) {
            for id in partition.leader.iter().chain(&partition.replicas).chain(&partition.in_sync_replicas) {
                known.entry(*id).or_insert_with(|| Node {
                    id: *id,
                    host: CString::default(),
                    port: 0,
                    rack: None,
                });
            }
        }
        let list = Listed::new(known.into_values());
        let by_id = list._items.iter().map(|node| (node.id, ptr::from_ref(node))).collect();
        Self { by_id, list }
    }

    fn get(&self, id: i32) -> *const Node {
        self.by_id.get(&id).copied().unwrap_or(ptr::null())
    }

    fn all(&self, ids: &[i32]) -> Vec<*const Node> {
        ids.iter().map(|id| self.get(*id)).filter(|node| !node.is_null()).collect()
    }
}

/// The result of DescribeCluster.
#[derive(Debug)]
pub(crate) struct ClusterResult {
    nodes: Nodes,
    controller: *const Node,
    cluster_id: CString,
    operations: Vec<c_int>,
}

/// The result of DescribeTopics.
#[derive(Debug)]
pub(crate) struct TopicsResult {
    topics: Listed<TopicDescription>,
    _nodes: Nodes,
}

// SAFETY: the pointers lead to objects that the results own.
unsafe impl Send for ClusterResult {}
// SAFETY: as above.
unsafe impl Send for TopicsResult {}

/// `rd_kafka_TopicDescription_t`.
#[derive(Debug)]
pub struct TopicDescription {
    name: CString,
    id: Uuid,
    is_internal: bool,
    error: Option<ErrorObject>,
    partitions: Listed<TopicPartitionInfo>,
    operations: Vec<c_int>,
}

/// `rd_kafka_TopicPartitionInfo_t`.
#[derive(Debug)]
pub struct TopicPartitionInfo {
    partition: i32,
    leader: *const Node,
    replicas: Vec<*const Node>,
    in_sync: Vec<*const Node>,
}

/// `rd_kafka_TopicCollection_t`.
#[repr(C)]
#[derive(Debug)]
pub struct TopicCollection {
    tag: Tag,
    names: Vec<String>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for TopicCollection {
    const KIND: u32 = 0x6f74_4105;
}

fn flat<T>(result: Result<Result<T, Error>, Error>) -> Result<T, Failure> {
    result.and_then(|result| result).map_err(|error| Failure::of(&error))
}

/// Operations as `rd_kafka_AclOperation_t`, of which there are 13. Brokers return none of the first three.
pub(super) fn operations(operations: Option<AuthorizedOperations>) -> Vec<c_int> {
    let named = operations.into_iter().flat_map(AuthorizedOperations::iter);
    named.filter(|operation| (3..13).contains(operation)).map(c_int::from).collect()
}

/// Returns operations to C; NULL without any.
pub(super) fn show_operations(operations: Option<&Vec<c_int>>, cntp: Place<usize>) -> *const c_int {
    show(operations.map_or(&[], Vec::as_slice), cntp)
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeCluster_result_authorized_operations(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const c_int {
        show_operations(cluster_of(result).map(|cluster| &cluster.operations), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_TopicDescription_authorized_operations(
        topic: Part<TopicDescription>,
        cntp: Place<usize>,
    ) -> *const c_int {
        show_operations(topic.get().map(|topic| &topic.operations), cntp)
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_DescribeCluster(rk: Ref<Client>, options: Ref<AdminOptions>, rkqu: Ref<Queue>) {
        call(rk, options, rkqu, CLUSTER, |admin, options| {
            let asked = admin.metadata_with(Some(&[]), options);
            Ok(async move {
                let cluster = flat(asked.await)?;
                let nodes = Nodes::new(&cluster);
                let controller = cluster.controller_id.map_or(ptr::null(), |id| nodes.get(id));
                let cluster_id = c_text(cluster.cluster_id.as_deref().unwrap_or(""));
                let operations = operations(cluster.authorized_operations);
                found(ClusterResult { nodes, controller, cluster_id, operations })
            })
        });
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_DescribeTopics(
        rk: Ref<Client>,
        topics: Ref<TopicCollection>,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, TOPICS, |admin, options| {
            let names = topics.get().map_or_else(Vec::new, |topics| topics.names.clone());
            if names.iter().any(String::is_empty) {
                return Err(Failure::misuse("the list of topics to describe has a topic without a name"));
            }
            if names.iter().collect::<SortedSet<_>>().len() < names.len() {
                return Err(Failure::misuse("a topic is named twice"));
            }
            let named: Vec<&str> = names.iter().map(String::as_str).collect();
            let asked = admin.metadata_with(Some(&named), options);
            Ok(async move { described(&names, flat(asked.await)?) })
        });
    }
);

fn described(names: &[String], cluster: ClusterDescription) -> Outcome {
    let nodes = Nodes::new(&cluster);
    let mut topics: SortedMap<&str, &ottla_core::admin::describe::TopicDescription> =
        cluster.topics.iter().map(|topic| (topic.name.as_str(), topic)).collect();
    let info = |partition: &PartitionDescription| TopicPartitionInfo {
        partition: partition.id,
        leader: partition.leader.map_or(ptr::null(), |id| nodes.get(id)),
        replicas: nodes.all(&partition.replicas),
        in_sync: nodes.all(&partition.in_sync_replicas),
    };
    let described =
        names.iter().filter_map(|name| topics.remove(name.as_str())).map(|topic| TopicDescription {
            name: c_text(&topic.name),
            id: topic.id.as_deref().and_then(Uuid::parse).unwrap_or_else(|| Uuid::new(0, 0)).lent(),
            is_internal: topic.is_internal,
            error: topic
                .error
                .as_ref()
                .map(|error| ErrorObject::new(code_in_result(error), error.to_string())),
            partitions: Listed::new(topic.partitions.iter().map(info)),
            // Brokers return authorized operations for missing topics, too.
            operations: operations(topic.authorized_operations.filter(|_| topic.error.is_none())),
        });
    let topics = Listed::new(described.collect::<Vec<_>>());
    found(TopicsResult { topics, _nodes: nodes })
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_TopicCollection_of_topic_names(
        topics: *const *const c_char,
        topics_cnt: usize,
    ) -> *mut TopicCollection {
        if topics.is_null() && topics_cnt > 0 || topics_cnt > c_int::MAX as usize {
            return ptr::null_mut();
        }
        // SAFETY: the header demands an array of that size of texts or NULL.
        let names =
            (0..topics_cnt).map(|at| unsafe { text(*topics.add(at)) }.unwrap_or_default().into_owned());
        let names = names.collect();
        Box::into_raw(Box::new(TopicCollection { tag: Tag::of::<TopicCollection>(), names }))
    }
);

export!(
    #[local(())]
    fn rd_kafka_TopicCollection_destroy(topics: Given<TopicCollection>) {
        topics.retire();
    }
);

/// Returns the cluster of an event.
fn cluster_of<'a>(event: Ref<'a, Event>) -> Option<&'a ClusterResult> {
    event.get().and_then(Event::result)
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeCluster_result_nodes(result: Ref<Event>, cntp: Place<usize>) -> *const *const Node {
        Listed::show(cluster_of(result).map(|cluster| &cluster.nodes.list), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeCluster_result_controller(result: Ref<Event>) -> *const Node {
        cluster_of(result).map_or(ptr::null(), |cluster| cluster.controller)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeCluster_result_cluster_id(result: Ref<Event>) -> *const c_char {
        cluster_of(result).map_or(ptr::null(), |cluster| cluster.cluster_id.as_ptr())
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeTopics_result_topics(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const TopicDescription {
        let described = result.get().and_then(Event::result::<TopicsResult>);
        Listed::show(described.map(|described| &described.topics), cntp)
    }
);

getters! {
    fn rd_kafka_TopicDescription_name(topic: Part<TopicDescription>) -> *const c_char {
        ptr::null(); topic.name.as_ptr()
    }
    fn rd_kafka_TopicDescription_topic_id(topic: Part<TopicDescription>) -> *const Uuid {
        ptr::null(); ptr::from_ref(&topic.id)
    }
    fn rd_kafka_TopicDescription_is_internal(topic: Part<TopicDescription>) -> c_int { 0; topic.is_internal.into() }
    fn rd_kafka_TopicDescription_error(topic: Part<TopicDescription>) -> *const ErrorObject {
        ptr::null(); or_null(topic.error.as_ref())
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_TopicDescription_partitions(
        topic: Part<TopicDescription>,
        cntp: Place<usize>,
    ) -> *const *const TopicPartitionInfo {
        Listed::show(topic.get().map(|topic| &topic.partitions), cntp)
    }
);

getters! {
    fn rd_kafka_TopicPartitionInfo_partition(info: Part<TopicPartitionInfo>) -> c_int { -1; info.partition }
    fn rd_kafka_TopicPartitionInfo_leader(info: Part<TopicPartitionInfo>) -> *const Node { ptr::null(); info.leader }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_TopicPartitionInfo_isr(
        info: Part<TopicPartitionInfo>,
        cntp: Place<usize>,
    ) -> *const *const Node {
        show(info.get().map_or(&[], |info| &info.in_sync), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_TopicPartitionInfo_replicas(
        info: Part<TopicPartitionInfo>,
        cntp: Place<usize>,
    ) -> *const *const Node {
        show(info.get().map_or(&[], |info| &info.replicas), cntp)
    }
);

getters! {
    fn rd_kafka_Node_id(node: Part<Node>) -> c_int { -1; node.id }
    fn rd_kafka_Node_host(node: Part<Node>) -> *const c_char { ptr::null(); node.host.as_ptr() }
    fn rd_kafka_Node_port(node: Part<Node>) -> u16 { 0; node.port }
    fn rd_kafka_Node_rack(node: Part<Node>) -> *const c_char { ptr::null(); text_or_null(node.rack.as_ref()) }
}
