//! Metadata (3), versions 0 to 13: brokers, controller and topics. Requests can name topics by ID from version 10 on. A
//! topic that doesn't exist is created if both client and cluster allow it (`auto_create_topics`).
//!
//! # Pitfalls
//!
//! - A Metadata request by topic ID may carry an empty name, as the Java client sends for regular expressions
//!   (`metadata_finds_topics_by_name_or_id_and_may_create_them`).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::metadata::{MetadataRequest, MetadataResponse, response},
    uuid::Uuid,
};
use ottla_sorted::SortedMap;

use crate::{
    acls::{AclOperation, CLUSTER_NAME, ResourceType},
    cluster::Cluster,
    connection::Request,
    topics::{Partition, TopicIndex, check_name},
};

/// The operations that every client may perform on a topic: there are no access rules.
pub(crate) const TOPIC_OPERATIONS: i32 = 3576;
/// The operations that every client may perform on the cluster.
pub(crate) const CLUSTER_OPERATIONS: i32 = 8096;

impl Cluster {
    pub(crate) fn metadata(&mut self, request: &mut Request, body: MetadataRequest) -> MetadataResponse {
        let mut response = MetadataResponse {
            throttle_time_ms: request.throttle_ms(),
            cluster_id: Some(self.cluster_id(request.connection).to_owned()),
            controller_id: self.controller.0,
            ..Default::default()
        };
        if request.version >= 13 && request.struck.error == Some(ErrorCode::REBOOTSTRAP_REQUIRED) {
            // KIP-1102: this is the only error of the whole response; all others belong to a topic.
            response.error_code = ErrorCode::REBOOTSTRAP_REQUIRED;
            return response;
        }
        for (id, broker) in self.brokers.iter().filter(|(_, broker)| broker.is_listed()) {
            let Some(port) = self.port_for(request.connection, *id) else { continue };
            response.brokers.push(response::Broker {
                node_id: id.0,
                host: broker.host.clone(),
                port,
                rack: broker.rack.clone(),
            });
        }
        if body.include_cluster_authorized_operations && (8..=10).contains(&request.version) {
            response.cluster_authorized_operations = self.permitted_operations(
                request.connection,
                CLUSTER_OPERATIONS,
                ResourceType::Cluster,
                CLUSTER_NAME,
            );
        }
        let may_create =
            self.options.auto_create_topics && (request.version < 4 || body.allow_auto_topic_creation);
        let with_operations = body.include_topic_authorized_operations && request.version >= 8;
        match body.topics {
            Some(topics) if !(topics.is_empty() && request.version == 0) => {
                for topic in topics {
                    // A request by ID may contain an empty name as well; Kafka's Java client sends one.
                    let name = topic.name.filter(|_| topic.topic_id.is_zero());
                    let found = match &name {
                        Some(name) => self.find_for_metadata(request, name, may_create),
                        None => self.find_by_id_for_metadata(request, topic.topic_id),
                    };
                    response.topics.push(self.describe_topic(request, name, topic.topic_id, found));
                }
            }
            _ => {
                let all: Vec<_> =
                    self.topics.in_order().map(|(index, topic)| (index, topic.name.clone())).collect();
                for (index, name) in all {
                    // Kafka leaves out the topics that the client may not describe, unless it names them.
                    if self.topic_refusal(request, &name).is_some() {
                        continue;
                    }
                    response.topics.push(self.describe_topic(request, Some(name), Uuid::ZERO, Ok(index)));
                }
            }
        }
        if with_operations {
            // The operations depend on the name only, so they are also reported for a topic that doesn't exist.
            for topic in response.topics.iter_mut().filter(|topic| topic.name.is_some()) {
                let name = topic.name.as_deref().unwrap_or_default();
                topic.topic_authorized_operations = self.permitted_operations(
                    request.connection,
                    TOPIC_OPERATIONS,
                    ResourceType::Topic,
                    name,
                );
            }
        }
        response
    }

    fn find_for_metadata(
        &mut self,
        request: &Request,
        name: &str,
        may_create: bool,
    ) -> Result<TopicIndex, ErrorCode> {
        if let Some(error) = self.topic_refusal(request, name) {
            return Err(error);
        }
        if let Some(index) = self.topics.by_name(name) {
            return Ok(index);
        }
        if check_name(name).is_err() {
            return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
        }
        if !may_create {
            return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let (connection, create) = (request.connection, AclOperation::Create);
        if !self.permits_on_cluster(connection, create)
            && !self.permits(connection, create, ResourceType::Topic, name)
        {
            return Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
        }
        self.create_topic(name, -1, -1, SortedMap::new(), false).map_err(|(error, _)| error)
    }

    /// Finds a topic by ID. Kafka does not reveal the existence of a topic that the client may not describe.
    fn find_by_id_for_metadata(&self, request: &Request, id: Uuid) -> Result<TopicIndex, ErrorCode> {
        let index = self.topics.by_id(id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
        let name = self.topics.get(index).map(|topic| topic.name.as_str());
        match name.and_then(|name| self.topic_refusal(request, name)) {
            Some(_) => Err(ErrorCode::UNKNOWN_TOPIC_ID),
            None => Ok(index),
        }
    }

    fn describe_topic(
        &mut self,
        request: &mut Request,
        name: Option<String>,
        topic_id: Uuid,
        found: Result<TopicIndex, ErrorCode>,
    ) -> response::Topic {
        let injected = self.injected_error(request, name.as_deref().unwrap_or_default(), -1);
        let found_name = || self.topics.get(*found.as_ref().ok()?).map(|topic| topic.name.as_str());
        let set = name.as_deref().or_else(found_name).and_then(|name| self.topic_errors.get(name).copied());
        let found = injected.or(set).map_or(found, Err);
        let topic = found.and_then(|index| {
            let topic = self.topics.get(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
            Ok((index, topic))
        });
        match topic {
            Ok((index, topic)) => {
                let mut described = response::Topic {
                    name: Some(topic.name.clone()),
                    topic_id: topic.id,
                    partitions: topic.partitions.iter().map(|p| self.describe_partition(index, p)).collect(),
                    ..Default::default()
                };
                self.override_leaders(index, &mut described.partitions);
                described
            }
            Err(error_code) => {
                let name = if request.version < 12 { Some(name.unwrap_or_default()) } else { name };
                response::Topic { error_code, name, topic_id, ..Default::default() }
            }
        }
    }

    fn describe_partition(&self, topic: TopicIndex, partition: &Partition) -> response::Partition {
        let (leader, leader_epoch) = self.reported_leader(topic, partition);
        let alive = |id: &crate::options::BrokerId| self.brokers.get(id).is_some_and(|broker| broker.alive);
        response::Partition {
            error_code: if leader.is_some() { ErrorCode::NONE } else { ErrorCode::LEADER_NOT_AVAILABLE },
            partition_index: partition.index,
            leader_id: leader.map_or(-1, |leader| leader.0),
            leader_epoch,
            replica_nodes: partition.replicas.iter().map(|id| id.0).collect(),
            isr_nodes: partition.in_sync.iter().map(|id| id.0).collect(),
            offline_replicas: partition.replicas.iter().filter(|id| !alive(id)).map(|id| id.0).collect(),
        }
    }

    /// Replaces the leaders with those that a test prepared for this response.
    fn override_leaders(&mut self, topic: TopicIndex, responses: &mut [response::Partition]) {
        let Some(topic) = self.topics.get_mut(topic) else { return };
        for (partition, response) in topic.partitions.iter_mut().zip(responses) {
            if let Some((leader, epoch)) = partition.reported_leaders.pop_front() {
                (response.leader_id, response.leader_epoch) = (leader, epoch);
                response.error_code =
                    if leader < 0 { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE };
            }
        }
    }

    /// Returns the leader that clients see in metadata.
    pub(crate) fn reported_leader(
        &self,
        topic: TopicIndex,
        partition: &Partition,
    ) -> (Option<crate::options::BrokerId>, i32) {
        let stale = self.stale_leaders.as_ref().and_then(|leaders| leaders.get(&(topic, partition.index)));
        stale.copied().unwrap_or((partition.leader, partition.leader_epoch))
    }
}
