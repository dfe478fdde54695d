//! The access rules at the APIs: the operation that a request needs on a resource, and the error of a refusal.
//!
//! [`crate::acls`] decides. Without an authorizer every request is permitted, as in Kafka.

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{
    acls::{AclOperation, Authorizer, CLUSTER_NAME, ResourceType},
    cluster::Cluster,
    connection::{ConnectionId, Request},
    control::Control,
};

impl Control<'_> {
    /// Returns the access rules, to change them; `None` if the cluster has no authorizer.
    pub fn authorizer(&mut self) -> Option<&mut Authorizer> {
        self.cluster.options.authorizer.as_mut()
    }
}

/// The operation that the request of an API needs on each of its topics.
const fn topic_operation(api: ApiKey) -> Option<AclOperation> {
    Some(match api {
        ApiKey::Produce | ApiKey::AddPartitionsToTxn => AclOperation::Write,
        ApiKey::Fetch
        | ApiKey::ShareFetch
        | ApiKey::ShareAcknowledge
        | ApiKey::OffsetCommit
        | ApiKey::TxnOffsetCommit
        | ApiKey::DescribeProducers
        | ApiKey::OffsetDelete
        | ApiKey::AlterShareGroupOffsets
        | ApiKey::DeleteShareGroupOffsets => AclOperation::Read,
        ApiKey::ListOffsets
        | ApiKey::OffsetForLeaderEpoch
        | ApiKey::Metadata
        | ApiKey::DescribeTopicPartitions
        | ApiKey::OffsetFetch
        | ApiKey::ConsumerGroupHeartbeat
        | ApiKey::ShareGroupHeartbeat
        | ApiKey::StreamsGroupHeartbeat
        | ApiKey::DescribeShareGroupOffsets => AclOperation::Describe,
        ApiKey::DeleteRecords | ApiKey::DeleteTopics => AclOperation::Delete,
        ApiKey::CreatePartitions => AclOperation::Alter,
        ApiKey::CreateTopics => AclOperation::Create,
        _ => return None,
    })
}

/// The operation that the request of an API needs on its group.
const fn group_operation(api: ApiKey) -> AclOperation {
    match api {
        ApiKey::DescribeGroups
        | ApiKey::OffsetFetch
        | ApiKey::ConsumerGroupDescribe
        | ApiKey::ShareGroupDescribe
        | ApiKey::StreamsGroupDescribe
        | ApiKey::DescribeShareGroupOffsets
        | ApiKey::FindCoordinator
        | ApiKey::ListGroups => AclOperation::Describe,
        ApiKey::DeleteGroups | ApiKey::OffsetDelete | ApiKey::DeleteShareGroupOffsets => AclOperation::Delete,
        _ => AclOperation::Read,
    }
}

impl Cluster {
    /// Returns true if the client of a connection may do something with a resource.
    pub(crate) fn permits(
        &self,
        connection: ConnectionId,
        operation: AclOperation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        self.options.authorizer.as_ref().is_none_or(|authorizer| {
            let (principal, host) = self.subject(connection);
            authorizer.permits(&principal, &host, operation, resource_type, name)
        })
    }

    /// Returns true if the client may do something with the cluster.
    pub(crate) fn permits_on_cluster(&self, connection: ConnectionId, operation: AclOperation) -> bool {
        self.permits(connection, operation, ResourceType::Cluster, CLUSTER_NAME)
    }

    /// Returns the principal and the address of a connection's client.
    fn subject(&self, connection: ConnectionId) -> (String, String) {
        let name = self.principal(connection).unwrap_or("ANONYMOUS");
        let host = self.peer(connection).map_or_else(|| "127.0.0.1".to_owned(), |peer| peer.ip().to_string());
        (format!("User:{name}"), host)
    }

    /// Returns the error of one topic's part of a request: the one that a fault injects, or a refusal.
    pub(crate) fn topic_error(
        &mut self,
        request: &mut Request,
        topic: &str,
        partition: i32,
    ) -> Option<ErrorCode> {
        self.injected_error(request, topic, partition).or_else(|| self.topic_refusal(request, topic))
    }

    /// Returns the error of a topic on which the client may not do what the request does.
    pub(crate) fn topic_refusal(&self, request: &Request, topic: &str) -> Option<ErrorCode> {
        let operation = topic_operation(request.api)?;
        let permits = |operation| self.permits(request.connection, operation, ResourceType::Topic, topic);
        let on_cluster = |operation| self.permits_on_cluster(request.connection, operation);
        let is_permitted = match request.api {
            // A right on the cluster is one on every topic.
            ApiKey::CreateTopics => permits(operation) || on_cluster(operation),
            ApiKey::DeleteTopics => {
                permits(operation) && permits(AclOperation::Describe) || on_cluster(operation)
            }
            ApiKey::OffsetForLeaderEpoch => permits(operation) || on_cluster(AclOperation::ClusterAction),
            _ => permits(operation),
        };
        (!is_permitted).then_some(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
    }

    /// Error: the client may not do what the request does with the group.
    pub(crate) fn check_group_access(&self, request: &Request, group: &str) -> Result<(), ErrorCode> {
        match self.permits(request.connection, group_operation(request.api), ResourceType::Group, group) {
            true => Ok(()),
            false => Err(ErrorCode::GROUP_AUTHORIZATION_FAILED),
        }
    }

    /// Error: the client may not do something with the cluster.
    pub(crate) fn check_cluster_access(
        &self,
        request: &Request,
        operation: AclOperation,
    ) -> Result<(), ErrorCode> {
        match self.permits_on_cluster(request.connection, operation) {
            true => Ok(()),
            false => Err(ErrorCode::CLUSTER_AUTHORIZATION_FAILED),
        }
    }

    /// Error: a fault, or the client may not do something with the cluster.
    pub(crate) fn check_cluster_request(
        &self,
        request: &Request,
        operation: AclOperation,
    ) -> Result<(), ErrorCode> {
        match request.injected_error() {
            ErrorCode::NONE => self.check_cluster_access(request, operation),
            injected => Err(injected),
        }
    }

    /// Error: the client may not write idempotently.
    pub(crate) fn check_idempotent_write(&self, request: &Request) -> Result<(), ErrorCode> {
        let Some(authorizer) = &self.options.authorizer else { return Ok(()) };
        let (principal, host) = self.subject(request.connection);
        if authorizer.permits_any(&principal, &host, AclOperation::Write, ResourceType::Topic) {
            return Ok(());
        }
        self.check_cluster_access(request, AclOperation::IdempotentWrite)
    }

    /// Error: the client may not read or change the configuration of a resource; `resource_type` is that of the request.
    pub(crate) fn check_config_access(
        &self,
        request: &Request,
        resource_type: i8,
        name: &str,
    ) -> Result<(), (ErrorCode, String)> {
        let operation = match request.api {
            ApiKey::DescribeConfigs => AclOperation::DescribeConfigs,
            _ => AclOperation::AlterConfigs,
        };
        let on = |resource_type, name: &str| self.permits(request.connection, operation, resource_type, name);
        let (is_permitted, error) = match resource_type {
            2 => (on(ResourceType::Topic, name), ErrorCode::TOPIC_AUTHORIZATION_FAILED),
            32 => (on(ResourceType::Group, name), ErrorCode::GROUP_AUTHORIZATION_FAILED),
            _ => (on(ResourceType::Cluster, CLUSTER_NAME), ErrorCode::CLUSTER_AUTHORIZATION_FAILED),
        };
        if is_permitted { Ok(()) } else { Err((error, error.description().to_owned())) }
    }

    /// Returns the operations of a set that the client may perform on a resource, as bits.
    pub(crate) fn permitted_operations(
        &self,
        connection: ConnectionId,
        set: i32,
        resource_type: ResourceType,
        name: &str,
    ) -> i32 {
        if self.options.authorizer.is_none() {
            return set;
        }
        let permitted = AclOperation::EACH.iter().filter(|operation| {
            set >> (**operation as i32) & 1 == 1 && self.permits(connection, **operation, resource_type, name)
        });
        permitted.fold(0, |bits, operation| bits | 1 << (*operation as i32))
    }
}
