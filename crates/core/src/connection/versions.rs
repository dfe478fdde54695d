//! Chooses the version of each API to use with a broker.

use std::ops::RangeInclusive;

use ottla_protocol::api::ApiKey;

use crate::config::KafkaVersion;

/// The version ranges that a broker supports, from its ApiVersions response or from a table for brokers without that
/// API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    ranges: Vec<(i16, i16, i16)>,
    /// True if the versions are assumed from the kind of broker and not reported by it.
    guessed: bool,
}

impl Versions {
    /// Creates the ranges from `(api key, lowest, highest)` rows.
    pub fn new(rows: impl IntoIterator<Item = (i16, i16, i16)>) -> Self {
        let mut ranges: Vec<_> = rows.into_iter().filter(|(_, low, high)| low <= high && *low >= 0).collect();
        ranges.sort_unstable();
        ranges.dedup_by_key(|row| row.0);
        Self { ranges, guessed: false }
    }

    /// Returns the versions that a broker of this release supports, for `broker.version.fallback`.
    pub fn of_release(release: KafkaVersion) -> Self {
        let row = FALLBACKS.iter().rev().find(|row| row.0 <= release).unwrap_or(&FALLBACKS[0]);
        Self { guessed: true, ..Self::new(row.1.iter().copied()) }
    }

    /// Returns true if the versions are assumed and not reported by the broker.
    pub const fn is_guessed(&self) -> bool {
        self.guessed
    }

    /// Returns the highest version within `usable` that both sides support.
    pub fn pick(&self, api: ApiKey, usable: RangeInclusive<i16>) -> Option<i16> {
        let index = self.ranges.binary_search_by_key(&(api as i16), |row| row.0).ok()?;
        let (_, low, high) = self.ranges[index];
        let version = high.min(*usable.end());
        (version >= low && version >= *usable.start()).then_some(version)
    }

    /// Returns the highest version that both the broker and this library support.
    pub fn pick_any(&self, api: ApiKey) -> Option<i16> {
        self.pick(api, api.versions())
    }

    /// Returns true if the broker takes client metrics.
    pub(crate) fn offers_telemetry(&self) -> bool {
        let has = |api| self.pick_any(api).is_some();
        has(ApiKey::GetTelemetrySubscriptions) && has(ApiKey::PushTelemetry)
    }

    /// Lowers the highest version of an API, so that newer features are not used.
    pub fn cap(&mut self, api: ApiKey, highest: i16) {
        if let Ok(index) = self.ranges.binary_search_by_key(&(api as i16), |row| row.0) {
            self.ranges[index].2 = self.ranges[index].2.min(highest);
        }
    }
}

/// Returns true for the APIs of client telemetry, whose requests neither open a connection nor keep one open.
pub(crate) const fn is_telemetry(api: ApiKey) -> bool {
    matches!(api, ApiKey::GetTelemetrySubscriptions | ApiKey::PushTelemetry)
}

/// The APIs whose requests this client sends. A test encodes each in every version that can be chosen.
#[cfg(any(debug_assertions, test))]
pub(crate) const SENT: &[ApiKey] = &[
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
    ApiKey::SaslHandshake,
    ApiKey::ApiVersions,
    ApiKey::SaslAuthenticate,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::CreatePartitions,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::DeleteGroups,
    ApiKey::OffsetDelete,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::TxnOffsetCommit,
    ApiKey::WriteTxnMarkers,
    ApiKey::DescribeProducers,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::ShareGroupDescribe,
    ApiKey::StreamsGroupHeartbeat,
    ApiKey::StreamsGroupDescribe,
    ApiKey::StreamsGroupTopologyDescriptionUpdate,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
    ApiKey::GetTelemetrySubscriptions,
    ApiKey::PushTelemetry,
    ApiKey::DescribeAcls,
    ApiKey::CreateAcls,
    ApiKey::DeleteAcls,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::DescribeLogDirs,
    ApiKey::CreateDelegationToken,
    ApiKey::RenewDelegationToken,
    ApiKey::ExpireDelegationToken,
    ApiKey::DescribeDelegationToken,
    ApiKey::ElectLeaders,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
    ApiKey::DescribeClientQuotas,
    ApiKey::AlterClientQuotas,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::AlterUserScramCredentials,
    ApiKey::DescribeCluster,
    ApiKey::DescribeTopicPartitions,
    ApiKey::DescribeQuorum,
    ApiKey::UpdateFeatures,
    ApiKey::UnregisterBroker,
    ApiKey::UnregisterController,
    ApiKey::ListConfigResources,
    ApiKey::AddRaftVoter,
    ApiKey::RemoveRaftVoter,
];

/// Checks the rows of an ApiVersions response. Error: why the rows are invalid.
pub fn check(rows: impl IntoIterator<Item = (i16, i16, i16)>) -> Result<(), String> {
    let mut is_empty = true;
    for (api, low, high) in rows {
        if low < 0 || low > high {
            return Err(format!(
                "the broker offers versions {low} to {high} of API {api}, which is not a range"
            ));
        }
        is_empty = false;
    }
    if is_empty { Err("the broker offers no API at all".to_owned()) } else { Ok(()) }
}

type Row = (i16, i16, i16);

/// Brokers before 0.10 do not know ApiVersions.
const FALLBACKS: &[(KafkaVersion, &[Row])] = &[
    (KafkaVersion(0, 8, 0), &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)]),
    (KafkaVersion(0, 8, 1), &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (8, 0, 1), (9, 0, 0)]),
    (KafkaVersion(0, 8, 2), &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (8, 0, 1), (9, 0, 1), (10, 0, 0)]),
    (
        KafkaVersion(0, 9, 0),
        &[
            (0, 0, 1),
            (1, 0, 1),
            (2, 0, 0),
            (3, 0, 0),
            (8, 0, 2),
            (9, 0, 1),
            (10, 0, 0),
            (11, 0, 0),
            (12, 0, 0),
            (13, 0, 0),
            (14, 0, 0),
            (15, 0, 0),
            (16, 0, 0),
        ],
    ),
    (
        KafkaVersion(0, 10, 0),
        &[
            (0, 0, 2),
            (1, 0, 2),
            (2, 0, 0),
            (3, 0, 1),
            (8, 0, 2),
            (9, 0, 1),
            (10, 0, 0),
            (11, 0, 0),
            (12, 0, 0),
            (13, 0, 0),
            (14, 0, 0),
            (15, 0, 0),
            (16, 0, 0),
            (17, 0, 0),
            (18, 0, 0),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_picked() {
        let versions = Versions::new([(0, 3, 9), (3, 0, 12)]);
        assert_eq!(versions.pick(ApiKey::Produce, 3..=13), Some(9));
        assert_eq!(versions.pick(ApiKey::Produce, 0..=2), None);
        assert_eq!(versions.pick(ApiKey::Metadata, 0..=5), Some(5));
        assert_eq!(versions.pick(ApiKey::Fetch, 4..=18), None);
    }

    #[test]
    fn a_release_falls_back_to_the_newest_row_that_is_not_newer() {
        let pick = |release, api: ApiKey| Versions::of_release(release).pick(api, api.versions());
        assert_eq!(pick(KafkaVersion(0, 9, 0), ApiKey::Produce), Some(1));
        assert_eq!(pick(KafkaVersion(0, 10, 2), ApiKey::Produce), Some(2));
        assert_eq!(pick(KafkaVersion(0, 8, 2), ApiKey::FindCoordinator), Some(0));
        assert_eq!(pick(KafkaVersion(0, 0, 0), ApiKey::Metadata), Some(0));
    }
}
