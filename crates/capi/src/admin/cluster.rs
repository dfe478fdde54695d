//! The cluster and its topics, described.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla::{AuthorizedOperations, BrokerDescription, ClusterDescription, Error, PartitionDescription};

use super::{AdminOptions, Answer, Failure, Listed, Outcome, call, code_in_result, destroy, show};
use crate::{
    boundary::{Handle, Tag, c_text, guarded_local, handle, text},
    client::Client,
    error::ErrorObject,
    event::Event,
    queue::Queue,
    uuid::Uuid,
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
    fn new(broker: &BrokerDescription) -> Self {
        Self {
            id: broker.id,
            host: c_text(&broker.host),
            port: u16::try_from(broker.port).unwrap_or(0),
            rack: broker.rack.as_deref().map(c_text),
        }
    }
}

/// Brokers, those among them that only partitions name, and where each is.
#[derive(Debug)]
struct Nodes {
    by_id: BTreeMap<i32, *const Node>,
    list: Listed<Node>,
}

impl Nodes {
    fn new(cluster: &ClusterDescription) -> Self {
        let mut known: BTreeMap<i32, Node> =
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

/// What DescribeCluster shows.
#[derive(Debug)]
pub(crate) struct ClusterResult {
    nodes: Nodes,
    controller: *const Node,
    cluster_id: CString,
    operations: Vec<c_int>,
}

/// What DescribeTopics shows.
#[derive(Debug)]
pub(crate) struct TopicsResult {
    topics: Listed<TopicDescription>,
    _nodes: Nodes,
}

// SAFETY: the pointers lead to what the results own.
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

fn flat<T>(answer: Result<Result<T, Error>, Error>) -> Result<T, Failure> {
    answer.and_then(|answer| answer).map_err(|error| Failure::of(&error))
}

/// As `rd_kafka_AclOperation_t`, of which there are 13. The first three are no operations that a broker names.
fn operations(operations: Option<AuthorizedOperations>) -> Vec<c_int> {
    let named = operations.into_iter().flat_map(AuthorizedOperations::iter);
    named.filter(|operation| (3..13).contains(operation)).map(c_int::from).collect()
}

/// Shows operations; NULL if there are none.
///
/// # Safety
///
/// `cntp` is NULL or writable.
unsafe fn show_operations(operations: Option<&Vec<c_int>>, cntp: *mut usize) -> *const c_int {
    let operations = operations.map_or(&[][..], Vec::as_slice);
    if !cntp.is_null() {
        // SAFETY: as the caller says.
        unsafe { *cntp = operations.len() };
    }
    if operations.is_empty() { ptr::null() } else { operations.as_ptr() }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeCluster_result_authorized_operations(
    result: *const Event,
    cntp: *mut usize,
) -> *const c_int {
    // SAFETY: NULL or an event, and a writable place or NULL, says the caller.
    unsafe { show_operations(cluster_of(result).map(|cluster| &cluster.operations), cntp) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicDescription_authorized_operations(
    topic: *const TopicDescription,
    cntp: *mut usize,
) -> *const c_int {
    // SAFETY: NULL or a description, and a writable place or NULL, says the caller.
    unsafe { show_operations(topic.as_ref().map(|topic| &topic.operations), cntp) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeCluster(
    rk: *const Client,
    options: *const AdminOptions,
    rkqu: *const Queue,
) {
    // SAFETY: as the caller says.
    unsafe {
        call(rk, options, rkqu, CLUSTER, |admin, options| {
            let asked = admin.metadata_with(Some(&[]), options);
            Ok(async move {
                let cluster = flat(asked.await)?;
                let nodes = Nodes::new(&cluster);
                let controller = cluster.controller_id.map_or(ptr::null(), |id| nodes.get(id));
                let cluster_id = c_text(cluster.cluster_id.as_deref().unwrap_or(""));
                let operations = operations(cluster.authorized_operations);
                Ok(Answer::Cluster(ClusterResult { nodes, controller, cluster_id, operations }))
            })
        });
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeTopics(
    rk: *const Client,
    topics: *const TopicCollection,
    options: *const AdminOptions,
    rkqu: *const Queue,
) {
    // SAFETY: as the caller says.
    unsafe {
        call(rk, options, rkqu, TOPICS, |admin, options| {
            let names = handle(topics).map_or_else(Vec::new, |topics| topics.names.clone());
            if names.is_empty() || names.iter().any(String::is_empty) {
                return Err(Failure::misuse("topics to describe have names, and there is at least one"));
            }
            if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
                return Err(Failure::misuse("a topic is named twice"));
            }
            let named: Vec<&str> = names.iter().map(String::as_str).collect();
            let asked = admin.metadata_with(Some(&named), options);
            Ok(async move { described(&names, flat(asked.await)?) })
        });
    }
}

fn described(names: &[String], cluster: ClusterDescription) -> Outcome {
    let nodes = Nodes::new(&cluster);
    let mut topics: BTreeMap<&str, &ottla::TopicDescription> =
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
            // Brokers also say what may be done with a name that no topic has.
            operations: operations(topic.authorized_operations.filter(|_| topic.error.is_none())),
        });
    let topics = Listed::new(described.collect::<Vec<_>>());
    Ok(Answer::Descriptions(TopicsResult { topics, _nodes: nodes }))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicCollection_of_topic_names(
    topics: *const *const c_char,
    topics_cnt: usize,
) -> *mut TopicCollection {
    guarded_local(ptr::null_mut(), || {
        if topics.is_null() && topics_cnt > 0 || topics_cnt > c_int::MAX as usize {
            return ptr::null_mut();
        }
        // SAFETY: an array of that size of texts or NULL, says the caller.
        let names =
            (0..topics_cnt).map(|at| unsafe { text(*topics.add(at)) }.unwrap_or_default().into_owned());
        let names = names.collect();
        Box::into_raw(Box::new(TopicCollection { tag: Tag::of::<TopicCollection>(), names }))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicCollection_destroy(topics: *mut TopicCollection) {
    // SAFETY: NULL or a collection, says the caller, who gives it up.
    unsafe { destroy(topics) };
}

/// What an event shows of a cluster.
///
/// # Safety
///
/// NULL or an event.
unsafe fn cluster_of<'a>(event: *const Event) -> Option<&'a ClusterResult> {
    // SAFETY: as the caller says.
    match unsafe { handle(event) }.and_then(Event::answer) {
        Some(Answer::Cluster(cluster)) => Some(cluster),
        _ => None,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeCluster_result_nodes(
    result: *const Event,
    cntp: *mut usize,
) -> *const *const Node {
    // SAFETY: NULL or an event, and a writable place or NULL, says the caller.
    unsafe { Listed::show(cluster_of(result).map(|cluster| &cluster.nodes.list), cntp) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeCluster_result_controller(result: *const Event) -> *const Node {
    // SAFETY: NULL or an event, says the caller.
    unsafe { cluster_of(result) }.map_or(ptr::null(), |cluster| cluster.controller)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeCluster_result_cluster_id(result: *const Event) -> *const c_char {
    // SAFETY: NULL or an event, says the caller.
    unsafe { cluster_of(result) }.map_or(ptr::null(), |cluster| cluster.cluster_id.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DescribeTopics_result_topics(
    result: *const Event,
    cntp: *mut usize,
) -> *const *const TopicDescription {
    // SAFETY: NULL or an event, and a writable place or NULL, says the caller.
    unsafe {
        let topics = match handle(result).and_then(Event::answer) {
            Some(Answer::Descriptions(described)) => Some(&described.topics),
            _ => None,
        };
        Listed::show(topics, cntp)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicDescription_name(topic: *const TopicDescription) -> *const c_char {
    // SAFETY: NULL or a description, says the caller.
    unsafe { topic.as_ref() }.map_or(ptr::null(), |topic| topic.name.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicDescription_topic_id(topic: *const TopicDescription) -> *const Uuid {
    // SAFETY: NULL or a description, says the caller.
    unsafe { topic.as_ref() }.map_or(ptr::null(), |topic| ptr::from_ref(&topic.id))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicDescription_is_internal(topic: *const TopicDescription) -> c_int {
    // SAFETY: NULL or a description, says the caller.
    unsafe { topic.as_ref() }.map_or(0, |topic| topic.is_internal.into())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicDescription_error(
    topic: *const TopicDescription,
) -> *const ErrorObject {
    // SAFETY: NULL or a description, says the caller.
    let error = unsafe { topic.as_ref() }.and_then(|topic| topic.error.as_ref());
    error.map_or(ptr::null(), ptr::from_ref)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicDescription_partitions(
    topic: *const TopicDescription,
    cntp: *mut usize,
) -> *const *const TopicPartitionInfo {
    // SAFETY: NULL or a description, and a writable place or NULL, says the caller.
    unsafe { Listed::show(topic.as_ref().map(|topic| &topic.partitions), cntp) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicPartitionInfo_partition(info: *const TopicPartitionInfo) -> c_int {
    // SAFETY: NULL or an info, says the caller.
    unsafe { info.as_ref() }.map_or(-1, |info| info.partition)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicPartitionInfo_leader(info: *const TopicPartitionInfo) -> *const Node {
    // SAFETY: NULL or an info, says the caller.
    unsafe { info.as_ref() }.map_or(ptr::null(), |info| info.leader)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicPartitionInfo_isr(
    info: *const TopicPartitionInfo,
    cntp: *mut usize,
) -> *const *const Node {
    // SAFETY: NULL or an info, and a writable place or NULL, says the caller.
    unsafe { show(info.as_ref().map_or(&[], |info| &info.in_sync), cntp) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_TopicPartitionInfo_replicas(
    info: *const TopicPartitionInfo,
    cntp: *mut usize,
) -> *const *const Node {
    // SAFETY: NULL or an info, and a writable place or NULL, says the caller.
    unsafe { show(info.as_ref().map_or(&[], |info| &info.replicas), cntp) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_Node_id(node: *const Node) -> c_int {
    // SAFETY: NULL or a node, says the caller.
    unsafe { node.as_ref() }.map_or(-1, |node| node.id)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_Node_host(node: *const Node) -> *const c_char {
    // SAFETY: NULL or a node, says the caller.
    unsafe { node.as_ref() }.map_or(ptr::null(), |node| node.host.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_Node_port(node: *const Node) -> u16 {
    // SAFETY: NULL or a node, says the caller.
    unsafe { node.as_ref() }.map_or(0, |node| node.port)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_Node_rack(node: *const Node) -> *const c_char {
    // SAFETY: NULL or a node, says the caller.
    let rack = unsafe { node.as_ref() }.and_then(|node| node.rack.as_ref());
    rack.map_or(ptr::null(), |rack| rack.as_ptr())
}
