//! The throttle time of a broker (KIP-219).
//!
//! Since KIP-219 a broker responds immediately, and neither reads from the connection nor responds on it until the
//! throttle time has passed; the client must not send any request meanwhile. Older brokers delayed the response
//! instead: a throttle time in an older version is already over.
//!
//! # Pitfalls
//!
//! - A throttle time holds for the connection and for any request that follows. Before KIP-219 the broker has already
//!   waited when it responds (`throttled_metadata_delays_produce_requests`).

use std::time::Duration;

use ottla_protocol::api::ApiKey;

/// The first version in which the client waits by itself, for the APIs whose responses begin with the throttle time.
/// Produce and ApiVersions end with it; their decoders return it.
const FIRST_VERSIONS: &[(ApiKey, i16)] = &[
    (ApiKey::Fetch, 8),
    (ApiKey::ListOffsets, 3),
    (ApiKey::Metadata, 6),
    (ApiKey::OffsetCommit, 4),
    (ApiKey::OffsetFetch, 4),
    (ApiKey::FindCoordinator, 2),
    (ApiKey::JoinGroup, 3),
    (ApiKey::Heartbeat, 2),
    (ApiKey::LeaveGroup, 2),
    (ApiKey::SyncGroup, 2),
    (ApiKey::DescribeGroups, 2),
    (ApiKey::ListGroups, 2),
    (ApiKey::CreateTopics, 3),
    (ApiKey::DeleteTopics, 2),
    (ApiKey::DeleteRecords, 1),
    (ApiKey::InitProducerId, 1),
    (ApiKey::AddPartitionsToTxn, 1),
    (ApiKey::AddOffsetsToTxn, 1),
    (ApiKey::EndTxn, 1),
    (ApiKey::TxnOffsetCommit, 1),
    (ApiKey::DescribeProducers, 0),
    (ApiKey::DescribeTransactions, 0),
    (ApiKey::ListTransactions, 0),
    (ApiKey::OffsetForLeaderEpoch, 2),
    (ApiKey::DescribeConfigs, 2),
    (ApiKey::AlterConfigs, 1),
    (ApiKey::CreatePartitions, 1),
    (ApiKey::DeleteGroups, 1),
    (ApiKey::IncrementalAlterConfigs, 0),
    (ApiKey::ConsumerGroupHeartbeat, 0),
    (ApiKey::ConsumerGroupDescribe, 0),
    (ApiKey::ShareGroupHeartbeat, 1),
    (ApiKey::ShareGroupDescribe, 1),
    (ApiKey::StreamsGroupHeartbeat, 0),
    (ApiKey::StreamsGroupDescribe, 0),
    (ApiKey::StreamsGroupTopologyDescriptionUpdate, 0),
    (ApiKey::DescribeShareGroupOffsets, 0),
    (ApiKey::AlterShareGroupOffsets, 0),
    (ApiKey::DeleteShareGroupOffsets, 0),
    (ApiKey::ShareFetch, 1),
    (ApiKey::ShareAcknowledge, 1),
    (ApiKey::DescribeCluster, 0),
    (ApiKey::DescribeTopicPartitions, 0),
    (ApiKey::GetTelemetrySubscriptions, 0),
    (ApiKey::PushTelemetry, 0),
    (ApiKey::DescribeAcls, 1),
    (ApiKey::CreateAcls, 1),
    (ApiKey::DeleteAcls, 1),
    (ApiKey::AlterReplicaLogDirs, 1),
    (ApiKey::DescribeLogDirs, 1),
    (ApiKey::ElectLeaders, 0),
    (ApiKey::AlterPartitionReassignments, 0),
    (ApiKey::ListPartitionReassignments, 0),
    (ApiKey::DescribeClientQuotas, 0),
    (ApiKey::AlterClientQuotas, 0),
    (ApiKey::DescribeUserScramCredentials, 0),
    (ApiKey::AlterUserScramCredentials, 0),
    (ApiKey::UpdateFeatures, 0),
    (ApiKey::UnregisterBroker, 0),
    (ApiKey::UnregisterController, 0),
    (ApiKey::ListConfigResources, 0),
    (ApiKey::AddRaftVoter, 0),
    (ApiKey::RemoveRaftVoter, 0),
];
/// The first version of Produce in which the client waits.
pub(crate) const FIRST_PRODUCE: i16 = 6;
/// The first version of ApiVersions in which the client waits.
pub(crate) const FIRST_API_VERSIONS: i16 = 2;

/// Returns the throttle time at the beginning of a response's body.
pub(crate) fn asked_for(api: ApiKey, version: i16, body: &[u8]) -> Option<Duration> {
    let (_, first) = FIRST_VERSIONS.iter().find(|(known, _)| *known == api)?;
    let millis = i32::from_be_bytes(*body.first_chunk().filter(|_| version >= *first)?);
    u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use ottla_protocol::generated::*;

    use super::*;

    #[test]
    fn throttle_time_comes_first_in_these_responses() {
        let mut checked = 0;
        macro_rules! check {
            ($($api:ident $type:path,)*) => {$(
                let first = FIRST_VERSIONS.iter().find(|(api, _)| *api == ApiKey::$api).expect("a row").1;
                for version in first..=*ApiKey::$api.versions().end() {
                    let mut body = Vec::new();
                    let mut response = <$type>::default();
                    response.throttle_time_ms = 1234;
                    response.encode(version, &mut body).expect("it can be encoded");
                    let asked = asked_for(ApiKey::$api, version, &body);
                    assert_eq!(asked, Some(Duration::from_millis(1234)), "{} v{version}", ApiKey::$api.name());
                }
                checked += 1;
            )*};
        }
        check! {
            Fetch fetch::FetchResponse,
            ListOffsets list_offsets::ListOffsetsResponse,
            Metadata metadata::MetadataResponse,
            OffsetCommit offset_commit::OffsetCommitResponse,
            OffsetFetch offset_fetch::OffsetFetchResponse,
            FindCoordinator find_coordinator::FindCoordinatorResponse,
            JoinGroup join_group::JoinGroupResponse,
            Heartbeat heartbeat::HeartbeatResponse,
            LeaveGroup leave_group::LeaveGroupResponse,
            SyncGroup sync_group::SyncGroupResponse,
            DescribeGroups describe_groups::DescribeGroupsResponse,
            ListGroups list_groups::ListGroupsResponse,
            CreateTopics create_topics::CreateTopicsResponse,
            DeleteTopics delete_topics::DeleteTopicsResponse,
            DeleteRecords delete_records::DeleteRecordsResponse,
            InitProducerId init_producer_id::InitProducerIdResponse,
            AddPartitionsToTxn add_partitions_to_txn::AddPartitionsToTxnResponse,
            AddOffsetsToTxn add_offsets_to_txn::AddOffsetsToTxnResponse,
            EndTxn end_txn::EndTxnResponse,
            TxnOffsetCommit txn_offset_commit::TxnOffsetCommitResponse,
            DescribeProducers describe_producers::DescribeProducersResponse,
            DescribeTransactions describe_transactions::DescribeTransactionsResponse,
            ListTransactions list_transactions::ListTransactionsResponse,
            OffsetForLeaderEpoch offset_for_leader_epoch::OffsetForLeaderEpochResponse,
            DescribeConfigs describe_configs::DescribeConfigsResponse,
            AlterConfigs alter_configs::AlterConfigsResponse,
            CreatePartitions create_partitions::CreatePartitionsResponse,
            DeleteGroups delete_groups::DeleteGroupsResponse,
            IncrementalAlterConfigs incremental_alter_configs::IncrementalAlterConfigsResponse,
            ConsumerGroupHeartbeat consumer_group_heartbeat::ConsumerGroupHeartbeatResponse,
            ConsumerGroupDescribe consumer_group_describe::ConsumerGroupDescribeResponse,
            ShareGroupHeartbeat share_group_heartbeat::ShareGroupHeartbeatResponse,
            ShareGroupDescribe share_group_describe::ShareGroupDescribeResponse,
            StreamsGroupHeartbeat streams_group_heartbeat::StreamsGroupHeartbeatResponse,
            StreamsGroupDescribe streams_group_describe::StreamsGroupDescribeResponse,
            StreamsGroupTopologyDescriptionUpdate
                streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateResponse,
            DescribeShareGroupOffsets describe_share_group_offsets::DescribeShareGroupOffsetsResponse,
            AlterShareGroupOffsets alter_share_group_offsets::AlterShareGroupOffsetsResponse,
            DeleteShareGroupOffsets delete_share_group_offsets::DeleteShareGroupOffsetsResponse,
            ShareFetch share_fetch::ShareFetchResponse,
            ShareAcknowledge share_acknowledge::ShareAcknowledgeResponse,
            DescribeCluster describe_cluster::DescribeClusterResponse,
            DescribeTopicPartitions describe_topic_partitions::DescribeTopicPartitionsResponse,
            GetTelemetrySubscriptions get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse,
            PushTelemetry push_telemetry::PushTelemetryResponse,
            DescribeAcls describe_acls::DescribeAclsResponse,
            CreateAcls create_acls::CreateAclsResponse,
            DeleteAcls delete_acls::DeleteAclsResponse,
            AlterReplicaLogDirs alter_replica_log_dirs::AlterReplicaLogDirsResponse,
            DescribeLogDirs describe_log_dirs::DescribeLogDirsResponse,
            ElectLeaders elect_leaders::ElectLeadersResponse,
            AlterPartitionReassignments alter_partition_reassignments::AlterPartitionReassignmentsResponse,
            ListPartitionReassignments list_partition_reassignments::ListPartitionReassignmentsResponse,
            DescribeClientQuotas describe_client_quotas::DescribeClientQuotasResponse,
            AlterClientQuotas alter_client_quotas::AlterClientQuotasResponse,
            DescribeUserScramCredentials describe_user_scram_credentials::DescribeUserScramCredentialsResponse,
            AlterUserScramCredentials alter_user_scram_credentials::AlterUserScramCredentialsResponse,
            UpdateFeatures update_features::UpdateFeaturesResponse,
            UnregisterBroker unregister_broker::UnregisterBrokerResponse,
            UnregisterController unregister_controller::UnregisterControllerResponse,
            ListConfigResources list_config_resources::ListConfigResourcesResponse,
            AddRaftVoter add_raft_voter::AddRaftVoterResponse,
            RemoveRaftVoter remove_raft_voter::RemoveRaftVoterResponse,
        }
        assert_eq!(checked, FIRST_VERSIONS.len());
    }

    #[test]
    fn every_api_that_is_sent_has_a_row_or_a_reason_to_have_none() {
        // The throttle time ends Produce, ApiVersions and responses about delegation tokens, follows the error in OffsetDelete,
        // and is missing in the others.
        let without = [
            ApiKey::Produce,
            ApiKey::ApiVersions,
            ApiKey::OffsetDelete,
            ApiKey::SaslHandshake,
            ApiKey::SaslAuthenticate,
            ApiKey::WriteTxnMarkers,
            ApiKey::CreateDelegationToken,
            ApiKey::RenewDelegationToken,
            ApiKey::ExpireDelegationToken,
            ApiKey::DescribeDelegationToken,
            ApiKey::DescribeQuorum,
        ];
        for api in crate::connection::versions::SENT {
            let has_row = FIRST_VERSIONS.iter().any(|(known, _)| known == api);
            assert_ne!(has_row, without.contains(api), "{}", api.name());
        }
    }

    #[test]
    fn old_version_negative_time_and_short_body_do_not_throttle() {
        let body = 500i32.to_be_bytes();
        assert_eq!(asked_for(ApiKey::Metadata, 5, &body), None);
        assert_eq!(asked_for(ApiKey::Metadata, 6, &body), Some(Duration::from_millis(500)));
        assert_eq!(asked_for(ApiKey::Metadata, 6, &body[..3]), None);
        assert_eq!(asked_for(ApiKey::Metadata, 6, &(-1i32).to_be_bytes()), None);
        assert_eq!(asked_for(ApiKey::Produce, 9, &body), None);
    }
}
