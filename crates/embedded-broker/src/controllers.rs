//! Nodes that are controllers: clients describe and administer the cluster through them, and nothing else (KIP-919).

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{cluster::Cluster, control::Control, options::BrokerId};

/// The kinds of nodes, as DescribeCluster numbers them.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// The APIs that only brokers serve.
const OF_BROKERS: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::TxnOffsetCommit,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::DescribeLogDirs,
    ApiKey::DescribeDelegationToken,
    ApiKey::DeleteGroups,
    ApiKey::OffsetDelete,
    ApiKey::DescribeClientQuotas,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::DescribeProducers,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::GetTelemetrySubscriptions,
    ApiKey::PushTelemetry,
    ApiKey::ListConfigResources,
    ApiKey::DescribeTopicPartitions,
    ApiKey::StreamsGroupHeartbeat,
    ApiKey::StreamsGroupDescribe,
    ApiKey::StreamsGroupTopologyDescriptionUpdate,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
];

/// Returns true if controllers serve the API.
pub(crate) fn is_of_controllers(api: ApiKey) -> bool {
    !OF_BROKERS.contains(&api)
}

impl Cluster {
    /// Returns the error of a request to `node` for nodes of a kind. Otherwise returns whether controllers are requested.
    pub(crate) fn check_endpoint_type(&self, node: BrokerId, kind: i8) -> Result<bool, ErrorCode> {
        let is_controller = self.brokers.get(&node).is_some_and(|broker| broker.is_controller);
        match kind {
            BROKERS if !is_controller => Ok(false),
            CONTROLLERS if is_controller => Ok(true),
            BROKERS | CONTROLLERS => Err(ErrorCode::MISMATCHED_ENDPOINT_TYPE),
            _ => Err(ErrorCode::UNSUPPORTED_ENDPOINT_TYPE),
        }
    }
}

impl Control<'_> {
    /// Makes a node the active controller instead of a broker. Partitions that it leads have no leader for clients.
    pub fn set_controller_only(&mut self, node: BrokerId) {
        if let Some(broker) = self.cluster.brokers.get_mut(&node) {
            broker.is_controller = true;
            self.cluster.controller = node;
        }
    }
}
