//! The APIs that the brokers serve: one file per API, numbered by API key.

use bytes::BytesMut;
use ottla_protocol::{
    api::ApiKey,
    generated,
    message::{self, Message},
    primitive::{DecodeError, Reader},
};

use crate::{
    cluster::{Broker, Cluster},
    connection::Request,
    controllers::is_of_controllers,
    inbox::FrameBytes,
    options::BrokerId,
};

#[path = "29_describe_acls.rs"]
mod acls;
#[path = "25_add_offsets_to_txn.rs"]
pub(crate) mod add_offsets_to_txn;
#[path = "24_add_partitions_to_txn.rs"]
pub(crate) mod add_partitions_to_txn;
#[path = "33_alter_configs.rs"]
pub(crate) mod alter_configs;
#[path = "91_alter_share_group_offsets.rs"]
pub(crate) mod alter_share_group_offsets;
#[path = "18_api_versions.rs"]
pub(crate) mod api_versions;
pub(crate) mod broker_limits;
pub(crate) mod client_metrics;
pub(crate) mod config_effects;
pub(crate) mod configs;
#[path = "69_consumer_group_describe.rs"]
pub(crate) mod consumer_group_describe;
#[path = "68_consumer_group_heartbeat.rs"]
pub(crate) mod consumer_group_heartbeat;
#[path = "37_create_partitions.rs"]
pub(crate) mod create_partitions;
#[path = "19_create_topics.rs"]
pub(crate) mod create_topics;
#[path = "38_create_delegation_token.rs"]
mod delegation_tokens;
#[path = "42_delete_groups.rs"]
pub(crate) mod delete_groups;
#[path = "21_delete_records.rs"]
pub(crate) mod delete_records;
#[path = "92_delete_share_group_offsets.rs"]
pub(crate) mod delete_share_group_offsets;
#[path = "20_delete_topics.rs"]
pub(crate) mod delete_topics;
#[path = "60_describe_cluster.rs"]
pub(crate) mod describe_cluster;
#[path = "32_describe_configs.rs"]
pub(crate) mod describe_configs;
#[path = "15_describe_groups.rs"]
pub(crate) mod describe_groups;
#[path = "61_describe_producers.rs"]
pub(crate) mod describe_producers;
#[path = "90_describe_share_group_offsets.rs"]
pub(crate) mod describe_share_group_offsets;
#[path = "75_describe_topic_partitions.rs"]
pub(crate) mod describe_topic_partitions;
#[path = "65_describe_transactions.rs"]
pub(crate) mod describe_transactions;
#[path = "43_elect_leaders.rs"]
mod elections;
#[path = "26_end_txn.rs"]
pub(crate) mod end_txn;
#[path = "01_fetch.rs"]
pub(crate) mod fetch;
pub(crate) mod fetch_sessions;
mod fields;
#[path = "10_find_coordinator.rs"]
pub(crate) mod find_coordinator;
#[path = "71_get_telemetry_subscriptions.rs"]
pub(crate) mod get_telemetry_subscriptions;
pub(crate) mod group_configs;
#[path = "12_heartbeat.rs"]
pub(crate) mod heartbeat;
#[path = "44_incremental_alter_configs.rs"]
pub(crate) mod incremental_alter_configs;
#[path = "22_init_producer_id.rs"]
pub(crate) mod init_producer_id;
#[path = "11_join_group.rs"]
pub(crate) mod join_group;
#[path = "13_leave_group.rs"]
pub(crate) mod leave_group;
#[path = "74_list_config_resources.rs"]
pub(crate) mod list_config_resources;
#[path = "16_list_groups.rs"]
pub(crate) mod list_groups;
#[path = "02_list_offsets.rs"]
pub(crate) mod list_offsets;
#[path = "66_list_transactions.rs"]
pub(crate) mod list_transactions;
#[path = "35_describe_log_dirs.rs"]
mod log_dirs;
#[path = "03_metadata.rs"]
pub(crate) mod metadata;
#[path = "08_offset_commit.rs"]
pub(crate) mod offset_commit;
#[path = "47_offset_delete.rs"]
pub(crate) mod offset_delete;
#[path = "09_offset_fetch.rs"]
pub(crate) mod offset_fetch;
#[path = "23_offset_for_leader_epoch.rs"]
pub(crate) mod offset_for_leader_epoch;
#[path = "00_produce.rs"]
pub(crate) mod produce;
#[path = "72_push_telemetry.rs"]
pub(crate) mod push_telemetry;
#[path = "55_describe_quorum.rs"]
mod quorum;
#[path = "48_describe_client_quotas.rs"]
mod quotas;
#[path = "45_alter_partition_reassignments.rs"]
mod reassignments;
#[path = "36_sasl_authenticate.rs"]
pub(crate) mod sasl_authenticate;
#[path = "17_sasl_handshake.rs"]
pub(crate) mod sasl_handshake;
#[path = "50_describe_user_scram_credentials.rs"]
mod scram_credentials;
#[path = "79_share_acknowledge.rs"]
pub(crate) mod share_acknowledge;
#[path = "78_share_fetch.rs"]
pub(crate) mod share_fetch;
#[path = "77_share_group_describe.rs"]
pub(crate) mod share_group_describe;
#[path = "76_share_group_heartbeat.rs"]
pub(crate) mod share_group_heartbeat;
pub(crate) mod share_sessions;
#[path = "89_streams_group_describe.rs"]
pub(crate) mod streams_group_describe;
#[path = "88_streams_group_heartbeat.rs"]
pub(crate) mod streams_group_heartbeat;
#[path = "93_streams_group_topology_description_update.rs"]
mod streams_group_topology_description_update;
#[path = "14_sync_group.rs"]
pub(crate) mod sync_group;
#[path = "28_txn_offset_commit.rs"]
pub(crate) mod txn_offset_commit;
#[path = "27_write_txn_markers.rs"]
pub(crate) mod write_txn_markers;

/// The served versions, as Apache Kafka 4.4.0 advertises them.
pub(crate) const SERVED: &[(ApiKey, i16, i16)] = &[
    (ApiKey::Produce, 0, 13),
    (ApiKey::Fetch, 4, 18),
    (ApiKey::ListOffsets, 1, 11),
    (ApiKey::Metadata, 0, 13),
    (ApiKey::OffsetCommit, 2, 10),
    (ApiKey::OffsetFetch, 1, 10),
    (ApiKey::FindCoordinator, 0, 6),
    (ApiKey::JoinGroup, 0, 9),
    (ApiKey::Heartbeat, 0, 4),
    (ApiKey::LeaveGroup, 0, 5),
    (ApiKey::SyncGroup, 0, 5),
    (ApiKey::DescribeGroups, 0, 6),
    (ApiKey::ListGroups, 0, 5),
    (ApiKey::SaslHandshake, 0, 1),
    (ApiKey::ApiVersions, 0, 5),
    (ApiKey::CreateTopics, 2, 7),
    (ApiKey::DeleteTopics, 1, 6),
    (ApiKey::DeleteRecords, 0, 2),
    (ApiKey::InitProducerId, 0, 5),
    (ApiKey::OffsetForLeaderEpoch, 2, 4),
    (ApiKey::AddPartitionsToTxn, 0, 5),
    (ApiKey::AddOffsetsToTxn, 0, 4),
    (ApiKey::EndTxn, 0, 5),
    (ApiKey::WriteTxnMarkers, 1, 2),
    (ApiKey::TxnOffsetCommit, 0, 6),
    (ApiKey::DescribeAcls, 1, 3),
    (ApiKey::CreateAcls, 1, 3),
    (ApiKey::DeleteAcls, 1, 3),
    (ApiKey::DescribeConfigs, 1, 4),
    (ApiKey::AlterConfigs, 0, 2),
    (ApiKey::AlterReplicaLogDirs, 1, 2),
    (ApiKey::DescribeLogDirs, 1, 5),
    (ApiKey::SaslAuthenticate, 0, 2),
    (ApiKey::CreatePartitions, 0, 3),
    (ApiKey::CreateDelegationToken, 1, 3),
    (ApiKey::RenewDelegationToken, 1, 2),
    (ApiKey::ExpireDelegationToken, 1, 2),
    (ApiKey::DescribeDelegationToken, 1, 3),
    (ApiKey::DeleteGroups, 0, 3),
    (ApiKey::ElectLeaders, 0, 2),
    (ApiKey::IncrementalAlterConfigs, 0, 1),
    (ApiKey::AlterPartitionReassignments, 0, 1),
    (ApiKey::ListPartitionReassignments, 0, 0),
    (ApiKey::OffsetDelete, 0, 0),
    (ApiKey::DescribeClientQuotas, 0, 1),
    (ApiKey::AlterClientQuotas, 0, 1),
    (ApiKey::DescribeUserScramCredentials, 0, 0),
    (ApiKey::AlterUserScramCredentials, 0, 0),
    (ApiKey::DescribeQuorum, 0, 2),
    (ApiKey::UpdateFeatures, 0, 2),
    (ApiKey::DescribeCluster, 0, 2),
    (ApiKey::DescribeProducers, 0, 0),
    (ApiKey::UnregisterBroker, 0, 0),
    (ApiKey::DescribeTransactions, 0, 0),
    (ApiKey::ListTransactions, 0, 2),
    (ApiKey::ConsumerGroupHeartbeat, 0, 1),
    (ApiKey::ConsumerGroupDescribe, 0, 1),
    (ApiKey::GetTelemetrySubscriptions, 0, 0),
    (ApiKey::PushTelemetry, 0, 0),
    (ApiKey::ListConfigResources, 0, 1),
    (ApiKey::DescribeTopicPartitions, 0, 0),
    (ApiKey::ShareGroupHeartbeat, 1, 1),
    (ApiKey::ShareGroupDescribe, 1, 1),
    (ApiKey::ShareFetch, 1, 2),
    (ApiKey::ShareAcknowledge, 1, 2),
    (ApiKey::StreamsGroupHeartbeat, 0, 1),
    (ApiKey::StreamsGroupDescribe, 0, 1),
    (ApiKey::DescribeShareGroupOffsets, 0, 1),
    (ApiKey::AlterShareGroupOffsets, 0, 0),
    (ApiKey::DeleteShareGroupOffsets, 0, 0),
    (ApiKey::StreamsGroupTopologyDescriptionUpdate, 0, 0),
    (ApiKey::UnregisterController, 0, 0),
];

/// Returns the versions of an API that a broker advertises, if it serves it at all.
pub(crate) fn advertised_versions(broker: &Broker, key: i16) -> Option<(i16, i16)> {
    let (api, min, max) = *SERVED.iter().find(|(api, _, _)| *api as i16 == key)?;
    if !broker.serves_telemetry && matches!(api, ApiKey::GetTelemetrySubscriptions | ApiKey::PushTelemetry) {
        return None;
    }
    if broker.is_controller && !is_of_controllers(api) {
        return None;
    }
    let (min, max) = broker.api_versions.get(&key).copied().unwrap_or((min, max));
    (min <= max).then_some((min, max))
}

/// Returns the versions of an API that a broker serves.
pub(crate) fn served_versions(broker: &Broker, key: i16) -> Option<(i16, i16)> {
    let (min, max) = advertised_versions(broker, key)?;
    // Kafka 4 advertises old versions for compatibility with old librdkafka releases, but doesn't serve them.
    let is_modern = key == ApiKey::Produce as i16 && !broker.api_versions.contains_key(&key);
    Some((if is_modern { 3 } else { min }, max))
}

impl Cluster {
    /// Dispatches a request to its API. Returns an owned buffer of which no part is retained.
    pub(crate) fn dispatch(
        &mut self,
        request: Request,
        frame: FrameBytes<'_>,
        at: usize,
    ) -> Result<Option<BytesMut>, DecodeError> {
        if request.api == ApiKey::Produce {
            return self.produce(request, frame, at);
        }
        let body = &mut Reader::new(&frame.as_slice()[at..]);
        match request.api {
            ApiKey::Fetch => {
                let body = generated::fetch::FetchRequest::decode(body, request.version)?;
                self.fetch(request, body);
            }
            ApiKey::ListOffsets => self.respond(request, body, Self::list_offsets)?,
            ApiKey::Metadata => self.respond(request, body, Self::metadata)?,
            ApiKey::OffsetCommit => self.respond(request, body, Self::offset_commit)?,
            ApiKey::OffsetFetch => self.respond(request, body, Self::offset_fetch)?,
            ApiKey::JoinGroup => {
                let body = generated::join_group::JoinGroupRequest::decode(body, request.version)?;
                self.join_group(request, body);
            }
            ApiKey::Heartbeat => self.respond(request, body, Self::heartbeat)?,
            ApiKey::LeaveGroup => self.respond(request, body, Self::leave_group)?,
            ApiKey::SyncGroup => {
                let body = generated::sync_group::SyncGroupRequest::decode(body, request.version)?;
                self.sync_group(request, body);
            }
            ApiKey::DescribeGroups => self.respond(request, body, Self::describe_groups)?,
            ApiKey::ListGroups => self.respond(request, body, Self::list_groups)?,
            ApiKey::DeleteGroups => self.respond(request, body, Self::delete_groups)?,
            ApiKey::OffsetDelete => self.respond(request, body, Self::offset_delete)?,
            ApiKey::FindCoordinator => self.respond(request, body, Self::find_coordinator)?,
            ApiKey::SaslHandshake => self.respond(request, body, Self::sasl_handshake)?,
            ApiKey::SaslAuthenticate => self.respond(request, body, Self::sasl_authenticate)?,
            ApiKey::ApiVersions => self.respond(request, body, Self::api_versions)?,
            ApiKey::CreateTopics => self.respond(request, body, Self::create_topics)?,
            ApiKey::DeleteTopics => self.respond(request, body, Self::delete_topics)?,
            ApiKey::DeleteRecords => self.respond(request, body, Self::delete_records)?,
            ApiKey::OffsetForLeaderEpoch => self.respond(request, body, Self::offset_for_leader_epoch)?,
            ApiKey::DescribeAcls => self.respond(request, body, Self::describe_acls)?,
            ApiKey::CreateAcls => self.respond(request, body, Self::create_acls)?,
            ApiKey::DeleteAcls => self.respond(request, body, Self::delete_acls)?,
            ApiKey::DescribeConfigs => self.respond(request, body, Self::describe_configs)?,
            ApiKey::AlterConfigs => self.respond(request, body, Self::alter_configs_api)?,
            ApiKey::CreatePartitions => self.respond(request, body, Self::create_partitions_api)?,
            ApiKey::IncrementalAlterConfigs => {
                self.respond(request, body, Self::incremental_alter_configs)?
            }
            ApiKey::DescribeCluster => self.respond(request, body, Self::describe_cluster)?,
            ApiKey::ConsumerGroupHeartbeat => self.respond(request, body, Self::consumer_group_heartbeat)?,
            ApiKey::ConsumerGroupDescribe => self.respond(request, body, Self::consumer_group_describe)?,
            ApiKey::GetTelemetrySubscriptions => {
                self.respond(request, body, Self::get_telemetry_subscriptions)?
            }
            ApiKey::ListConfigResources => self.respond(request, body, Self::list_config_resources)?,
            ApiKey::PushTelemetry => self.respond(request, body, Self::push_telemetry)?,
            ApiKey::DescribeTopicPartitions => {
                self.respond(request, body, Self::describe_topic_partitions)?
            }
            ApiKey::ShareGroupHeartbeat => self.respond(request, body, Self::share_group_heartbeat)?,
            ApiKey::ShareGroupDescribe => self.respond(request, body, Self::share_group_describe)?,
            ApiKey::StreamsGroupHeartbeat => self.respond(request, body, Self::streams_group_heartbeat)?,
            ApiKey::StreamsGroupDescribe => self.respond(request, body, Self::streams_group_describe)?,
            ApiKey::StreamsGroupTopologyDescriptionUpdate => {
                self.respond(request, body, Self::streams_group_topology_description_update)?
            }
            ApiKey::ShareFetch => {
                let body = generated::share_fetch::ShareFetchRequest::decode(body, request.version)?;
                self.share_fetch(request, body);
            }
            ApiKey::ShareAcknowledge => self.respond(request, body, Self::share_acknowledge)?,
            ApiKey::DescribeShareGroupOffsets => {
                self.respond(request, body, Self::describe_share_group_offsets)?
            }
            ApiKey::AlterShareGroupOffsets => self.respond(request, body, Self::alter_share_group_offsets)?,
            ApiKey::DeleteShareGroupOffsets => {
                self.respond(request, body, Self::delete_share_group_offsets)?
            }
            _ => self.dispatch_of_transactions(request, body)?,
        }
        Ok(frame.into_unused())
    }

    /// Dispatches a request of the APIs for producer IDs and transactions.
    fn dispatch_of_transactions(
        &mut self,
        request: Request,
        body: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        match request.api {
            ApiKey::InitProducerId => self.respond(request, body, Self::init_producer_id),
            ApiKey::AddPartitionsToTxn => self.respond(request, body, Self::add_partitions_to_txn),
            ApiKey::AddOffsetsToTxn => self.respond(request, body, Self::add_offsets_to_txn),
            ApiKey::EndTxn => self.respond(request, body, Self::end_txn),
            ApiKey::WriteTxnMarkers => self.respond(request, body, Self::write_txn_markers),
            ApiKey::TxnOffsetCommit => self.respond(request, body, Self::txn_offset_commit),
            ApiKey::DescribeProducers => self.respond(request, body, Self::describe_producers),
            ApiKey::DescribeTransactions => self.respond(request, body, Self::describe_transactions),
            ApiKey::ListTransactions => self.respond(request, body, Self::list_transactions),
            _ => self.dispatch_of_administration(request, body),
        }
    }

    /// Dispatches a request of the APIs that administer users, quotas, replicas and the cluster as a whole.
    fn dispatch_of_administration(
        &mut self,
        request: Request,
        body: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        match request.api {
            ApiKey::AlterReplicaLogDirs => self.respond(request, body, Self::alter_replica_log_dirs),
            ApiKey::DescribeLogDirs => self.respond(request, body, Self::describe_log_dirs),
            ApiKey::CreateDelegationToken => self.respond(request, body, Self::create_delegation_token),
            ApiKey::RenewDelegationToken => self.respond(request, body, Self::renew_delegation_token),
            ApiKey::ExpireDelegationToken => self.respond(request, body, Self::expire_delegation_token),
            ApiKey::DescribeDelegationToken => self.respond(request, body, Self::describe_delegation_token),
            ApiKey::ElectLeaders => self.respond(request, body, Self::elect_leaders),
            ApiKey::AlterPartitionReassignments => {
                self.respond(request, body, Self::alter_partition_reassignments)
            }
            ApiKey::ListPartitionReassignments => {
                self.respond(request, body, Self::list_partition_reassignments)
            }
            ApiKey::DescribeClientQuotas => self.respond(request, body, Self::describe_client_quotas),
            ApiKey::AlterClientQuotas => self.respond(request, body, Self::alter_client_quotas),
            ApiKey::DescribeQuorum => self.respond(request, body, Self::describe_quorum),
            ApiKey::UpdateFeatures => self.respond(request, body, Self::update_features),
            ApiKey::UnregisterBroker => self.respond(request, body, Self::unregister_broker),
            ApiKey::UnregisterController => self.respond(request, body, Self::unregister_controller),
            ApiKey::DescribeUserScramCredentials => {
                self.respond(request, body, Self::describe_user_scram_credentials)
            }
            ApiKey::AlterUserScramCredentials => {
                self.respond(request, body, Self::alter_user_scram_credentials)
            }
            _ => {
                self.close(request.connection, "the client sent a request of an API that is not served");
                Ok(())
            }
        }
    }

    /// Responds to a request that never waits.
    fn respond<R: message::Request>(
        &mut self,
        mut request: Request,
        body: &mut Reader<'_>,
        serve: impl FnOnce(&mut Self, &mut Request, R) -> R::Response,
    ) -> Result<(), DecodeError> {
        let body = R::decode(body, request.version)?;
        let response = serve(self, &mut request, body);
        self.respond_with(&request, &response);
        Ok(())
    }

    /// Sends a message as the response to a request.
    pub(crate) fn respond_with(&mut self, request: &Request, response: &impl Message) {
        let mut writer = request.start_response();
        match response.encode(request.version, &mut writer.buffer) {
            Ok(()) => self.send_response(request, writer),
            Err(_) => self.close(request.connection, "the response can't be encoded"),
        }
    }

    /// Returns the error that a fault injects for one topic's or partition's part of a request.
    pub(crate) fn injected_error(
        &mut self,
        request: &mut Request,
        topic: &str,
        partition: i32,
    ) -> Option<ottla_protocol::error_code::ErrorCode> {
        if request.struck.error.is_some() || self.faults.is_empty() {
            return request.struck.error;
        }
        self.faults.strike_partition(request.api, request.broker, topic, partition, &mut request.struck);
        request.struck.error.take()
    }

    /// Checks that the group ID is valid and that this broker is the group's coordinator.
    pub(crate) fn check_group(
        &mut self,
        request: &mut Request,
        group: &str,
    ) -> Result<(), ottla_protocol::error_code::ErrorCode> {
        use ottla_protocol::error_code::ErrorCode;
        if let Some(error) = self.injected_error(request, group, -1) {
            return Err(error);
        }
        self.check_group_access(request, group)?;
        if group.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        if self.coordinator_of(0, group) != Some(request.broker) {
            return Err(ErrorCode::NOT_COORDINATOR);
        }
        if self.loading_groups.get(group).is_some_and(|until| *until > self.now) {
            return Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        }
        Ok(())
    }

    /// Returns the coordinator of a group (0) or a transactional ID (1): the one that a test has set, else one of the
    /// brokers that are up, always the same.
    pub(crate) fn coordinator_of(&self, key_type: i8, key: &str) -> Option<BrokerId> {
        if !self.coordinators.is_empty()
            && let Some(chosen) = self.coordinators.get(&(key_type, key.to_owned()))
        {
            return Some(*chosen);
        }
        let alive = self.alive_brokers();
        let hash = key.bytes().fold(0usize, |hash, b| hash.wrapping_mul(31).wrapping_add(usize::from(b)));
        alive.get(hash % alive.len().max(1)).copied()
    }
}
