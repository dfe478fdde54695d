//! How long a broker wants to be left alone (KIP-219).
//!
//! Since that KIP a broker answers at once, and neither reads nor answers what comes on the connection before the time is over;
//! the client is to send nothing meanwhile, whatever it is. A broker before it answered late instead: what an older version
//! says is over when it is told.

use std::time::Duration;

use ottla_protocol::api::ApiKey;

/// From which version on the client waits by itself, of the APIs whose answers begin with the time. Produce and ApiVersions end
/// with it; who decodes those says so.
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
    (ApiKey::OffsetForLeaderEpoch, 2),
    (ApiKey::DescribeConfigs, 2),
    (ApiKey::AlterConfigs, 1),
    (ApiKey::CreatePartitions, 1),
    (ApiKey::DeleteGroups, 1),
    (ApiKey::IncrementalAlterConfigs, 0),
    (ApiKey::DescribeCluster, 0),
    (ApiKey::DescribeTopicPartitions, 0),
];
/// The same for Produce.
pub(crate) const FIRST_PRODUCE: i16 = 6;
/// The same for ApiVersions.
pub(super) const FIRST_API_VERSIONS: i16 = 2;

/// How long the broker wants to be left alone, as an answer's body begins with it.
pub(super) fn asked_for(api: ApiKey, version: i16, body: &[u8]) -> Option<Duration> {
    let (_, first) = FIRST_VERSIONS.iter().find(|(known, _)| *known == api)?;
    let millis = i32::from_be_bytes(*body.first_chunk().filter(|_| version >= *first)?);
    u64::try_from(millis).ok().filter(|millis| *millis > 0).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use ottla_protocol::generated::*;

    use super::*;

    #[test]
    fn the_time_is_what_each_of_these_answers_begins_with() {
        let mut checked = 0;
        macro_rules! check {
            ($($api:ident $type:path,)*) => {$(
                let first = FIRST_VERSIONS.iter().find(|(api, _)| *api == ApiKey::$api).expect("a row").1;
                for version in first..=*ApiKey::$api.versions().end() {
                    let mut body = Vec::new();
                    let mut answer = <$type>::default();
                    answer.throttle_time_ms = 1234;
                    answer.encode(version, &mut body).expect("it can be encoded");
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
            OffsetForLeaderEpoch offset_for_leader_epoch::OffsetForLeaderEpochResponse,
            DescribeConfigs describe_configs::DescribeConfigsResponse,
            AlterConfigs alter_configs::AlterConfigsResponse,
            CreatePartitions create_partitions::CreatePartitionsResponse,
            DeleteGroups delete_groups::DeleteGroupsResponse,
            IncrementalAlterConfigs incremental_alter_configs::IncrementalAlterConfigsResponse,
            DescribeCluster describe_cluster::DescribeClusterResponse,
            DescribeTopicPartitions describe_topic_partitions::DescribeTopicPartitionsResponse,
        }
        assert_eq!(checked, FIRST_VERSIONS.len());
    }

    #[test]
    fn an_old_version_a_negative_time_and_a_body_that_is_cut_off_ask_for_nothing() {
        let body = 500i32.to_be_bytes();
        assert_eq!(asked_for(ApiKey::Metadata, 5, &body), None);
        assert_eq!(asked_for(ApiKey::Metadata, 6, &body), Some(Duration::from_millis(500)));
        assert_eq!(asked_for(ApiKey::Metadata, 6, &body[..3]), None);
        assert_eq!(asked_for(ApiKey::Metadata, 6, &(-1i32).to_be_bytes()), None);
        assert_eq!(asked_for(ApiKey::Produce, 9, &body), None);
    }
}
