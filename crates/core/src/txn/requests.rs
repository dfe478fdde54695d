//! The requests of a transaction.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{
            AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, request::V3AndBelowTopic,
        },
        describe_transactions::DescribeTransactionsRequest,
        end_txn::EndTxnRequest,
        init_producer_id::InitProducerIdRequest,
        txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse, request},
    },
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::SortedMap;

use super::command::{ConsumerGroupMetadata, TransactionOffsets};
use crate::{contract::route::RoutedRequest, produce::producer_id::ProducerIdentity};

/// The versions of InitProducerId that carry the current identity (KIP-360).
const INIT_WITH_IDENTITY: RangeInclusive<i16> = 3..=5;
/// The versions of InitProducerId; later ones begin two-phase commits.
const INIT: RangeInclusive<i16> = 0..=5;
/// Later versions of AddPartitionsToTxn are for brokers.
const ADD_PARTITIONS: RangeInclusive<i16> = 0..=3;
const ADD_OFFSETS: RangeInclusive<i16> = 0..=4;
/// The versions of EndTxn that keep the epoch.
const END: RangeInclusive<i16> = 0..=4;
/// The version of EndTxn that raises the epoch (KIP-890).
const END_WITH_EPOCH: RangeInclusive<i16> = 5..=5;
const DESCRIBE: RangeInclusive<i16> = 0..=0;
/// The versions of TxnOffsetCommit that need AddOffsetsToTxn before.
const COMMIT_OFFSETS: RangeInclusive<i16> = 0..=4;
/// The version of TxnOffsetCommit that registers the group by itself (KIP-890).
const COMMIT_OFFSETS_IMPLICITLY: RangeInclusive<i16> = 5..=5;
/// The same if all topics have IDs (KIP-1319).
const COMMIT_OFFSETS_BY_ID: RangeInclusive<i16> = 5..=6;
/// The first version of TxnOffsetCommit with the IDs of topics.
const FIRST_WITH_IDS: i16 = 6;
/// The first version of TxnOffsetCommit with the identity of the member (KIP-447).
const FIRST_WITH_MEMBER: i16 = 3;

/// What all requests of a transaction state.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) id: Arc<str>,
    pub(super) timeout: Duration,
}

impl Terms {
    /// Requests the producer ID; with `known` a higher epoch of that identity, which ends an open transaction.
    pub(super) fn init(
        &self,
        transaction_timeout: Duration,
        known: Option<ProducerIdentity>,
    ) -> RoutedRequest {
        let id = self.id.to_string();
        let transaction_timeout_ms = i32::try_from(transaction_timeout.as_millis()).unwrap_or(i32::MAX);
        RoutedRequest {
            api: ApiKey::InitProducerId,
            versions: if known.is_some() { INIT_WITH_IDENTITY } else { INIT },
            timeout: self.timeout,
            encode: Box::new(move |version, out| {
                InitProducerIdRequest {
                    transactional_id: Some(id.clone()),
                    transaction_timeout_ms,
                    producer_id: known.map_or(-1, |known| known.id),
                    producer_epoch: known.map_or(-1, |known| known.epoch),
                    ..InitProducerIdRequest::default()
                }
                .encode(version, out)
            }),
        }
    }

    /// Registers partitions with the coordinator.
    pub(super) fn add_partitions<'a>(
        &self,
        identity: ProducerIdentity,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) -> RoutedRequest {
        let mut topics: SortedMap<Arc<str>, Vec<i32>> = SortedMap::new();
        for partition in partitions {
            topics.entry(Arc::clone(&partition.topic)).or_default().push(partition.partition);
        }
        let id = self.id.to_string();
        RoutedRequest {
            api: ApiKey::AddPartitionsToTxn,
            versions: ADD_PARTITIONS,
            timeout: self.timeout,
            encode: Box::new(move |version, out| {
                let topics = topics.iter().map(|(name, partitions)| V3AndBelowTopic {
                    name: name.to_string(),
                    partitions: partitions.clone(),
                });
                AddPartitionsToTxnRequest {
                    v3_and_below_transactional_id: id.clone(),
                    v3_and_below_producer_id: identity.id,
                    v3_and_below_producer_epoch: identity.epoch,
                    v3_and_below_topics: topics.collect(),
                    ..AddPartitionsToTxnRequest::default()
                }
                .encode(version, out)
            }),
        }
    }

    /// Registers the offsets of a group with the coordinator.
    pub(super) fn add_offsets(&self, identity: ProducerIdentity, group: &str) -> RoutedRequest {
        let (id, group_id) = (self.id.to_string(), group.to_owned());
        RoutedRequest {
            api: ApiKey::AddOffsetsToTxn,
            versions: ADD_OFFSETS,
            timeout: self.timeout,
            encode: Box::new(move |version, out| {
                AddOffsetsToTxnRequest {
                    transactional_id: id.clone(),
                    producer_id: identity.id,
                    producer_epoch: identity.epoch,
                    group_id: group_id.clone(),
                }
                .encode(version, out)
            }),
        }
    }

    /// Sends offsets to the coordinator of the group.
    pub(super) fn commit_offsets(
        &self,
        identity: ProducerIdentity,
        is_implicit: bool,
        sent: &TransactionOffsets,
    ) -> RoutedRequest {
        let id = self.id.to_string();
        let mut topics: SortedMap<Arc<str>, Vec<request::Partition>> = SortedMap::new();
        for offset in &sent.offsets {
            topics.entry(Arc::clone(&offset.topic)).or_default().push(request::Partition {
                partition_index: offset.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: LeaderEpoch::to_wire(offset.leader_epoch),
                committed_metadata: Some(offset.metadata.clone()),
            });
        }
        let ConsumerGroupMetadata { group_id, generation, member_id, instance_id, topic_ids: _ } =
            sent.group.clone();
        let topic_ids = sent.topic_ids();
        let versions = match is_implicit {
            true if topics.keys().all(|topic| topic_ids.contains_key(topic)) => COMMIT_OFFSETS_BY_ID,
            true => COMMIT_OFFSETS_IMPLICITLY,
            false => COMMIT_OFFSETS,
        };
        RoutedRequest {
            api: ApiKey::TxnOffsetCommit,
            versions,
            timeout: self.timeout,
            encode: Box::new(move |version, out| {
                let by_id = version >= FIRST_WITH_IDS;
                let topics = topics.iter().map(|(name, partitions)| request::Topic {
                    name: if by_id { String::new() } else { name.to_string() },
                    topic_id: topic_ids.get(name).copied().filter(|_| by_id).unwrap_or_default(),
                    partitions: partitions.clone(),
                });
                let mut request = TxnOffsetCommitRequest {
                    transactional_id: id.clone(),
                    group_id: group_id.clone(),
                    producer_id: identity.id,
                    producer_epoch: identity.epoch,
                    topics: topics.collect(),
                    ..TxnOffsetCommitRequest::default()
                };
                if version >= FIRST_WITH_MEMBER {
                    request.generation_id_or_member_epoch =
                        generation.map_or(-1, |generation| generation.get());
                    request.member_id.clone_from(&member_id);
                    request.group_instance_id.clone_from(&instance_id);
                }
                request.encode(version, out)
            }),
        }
    }

    /// Asks for the state of the transaction.
    pub(super) fn describe(&self) -> RoutedRequest {
        let id = self.id.to_string();
        RoutedRequest {
            api: ApiKey::DescribeTransactions,
            versions: DESCRIBE,
            timeout: self.timeout,
            encode: Box::new(move |version, out| {
                DescribeTransactionsRequest { transactional_ids: vec![id.clone()] }.encode(version, out)
            }),
        }
    }

    /// Ends the transaction.
    pub(super) fn end(&self, identity: ProducerIdentity, commit: bool, raises_epoch: bool) -> RoutedRequest {
        let id = self.id.to_string();
        RoutedRequest {
            api: ApiKey::EndTxn,
            versions: if raises_epoch { END_WITH_EPOCH } else { END },
            timeout: self.timeout,
            encode: Box::new(move |version, out| {
                EndTxnRequest {
                    transactional_id: id.clone(),
                    producer_id: identity.id,
                    producer_epoch: identity.epoch,
                    committed: commit,
                }
                .encode(version, out)
            }),
        }
    }
}

/// Returns the result of each partition.
pub(super) fn added_partitions(response: &AddPartitionsToTxnResponse) -> SortedMap<(&str, i32), ErrorCode> {
    let topics = response.results_by_topic_v3_and_below.iter();
    let results = topics.flat_map(|topic| {
        let partitions = topic.results_by_partition.iter();
        partitions.map(|result| ((&*topic.name, result.partition_index), result.partition_error_code))
    });
    results.collect()
}

/// Returns the result of each partition. Topics that the response names by an ID that is not among `ids` are left out.
pub(super) fn committed_offsets<'a>(
    response: &'a TxnOffsetCommitResponse,
    ids: &'a SortedMap<Arc<str>, Uuid>,
) -> SortedMap<(&'a str, i32), ErrorCode> {
    let name_of = |id: Uuid| ids.iter().find(|(_, known)| **known == id).map(|(name, _)| &**name);
    let results = response.topics.iter().flat_map(|topic| {
        let name = if topic.topic_id.is_zero() { Some(&*topic.name) } else { name_of(topic.topic_id) };
        let partitions = topic.partitions.iter();
        partitions.filter_map(move |result| Some(((name?, result.partition_index), result.error_code)))
    });
    results.collect()
}

/// Returns each request in each of its forms, with all fields set.
#[cfg(all(test, not(ottla_loom)))]
pub(crate) fn sample_requests() -> Vec<RoutedRequest> {
    use ottla_protocol::vocabulary::Generation;

    use crate::offsets::committed::GroupOffset;

    let terms = Terms { id: "x".into(), timeout: Duration::from_secs(1) };
    let identity = ProducerIdentity { id: 7, epoch: 3 };
    let group = ConsumerGroupMetadata {
        group_id: "g".into(),
        generation: Generation::from_wire(4),
        member_id: "m".into(),
        instance_id: Some("i".into()),
        ..ConsumerGroupMetadata::default()
    };
    let offset = GroupOffset {
        leader_epoch: LeaderEpoch::from_wire(2),
        metadata: "meta".into(),
        ..GroupOffset::new("t", 1, 5)
    };
    let offsets = TransactionOffsets { offsets: vec![offset], group, timeout: Duration::from_secs(1) };
    let topic_ids = Arc::new(SortedMap::from([("t".into(), Uuid([7; 16]))]));
    let group = ConsumerGroupMetadata { topic_ids, ..offsets.group.clone() };
    let by_id = TransactionOffsets { group, ..offsets.clone() };
    let partitions = [TopicPartition::new("t", 0), TopicPartition::new("t", 1), TopicPartition::new("u", 0)];
    vec![
        terms.init(Duration::from_secs(60), None),
        terms.init(Duration::from_secs(60), Some(identity)),
        terms.add_partitions(identity, &partitions),
        terms.add_offsets(identity, "g"),
        terms.commit_offsets(identity, false, &offsets),
        terms.commit_offsets(identity, true, &offsets),
        terms.commit_offsets(identity, true, &by_id),
        terms.end(identity, true, false),
        terms.end(identity, false, true),
        terms.describe(),
    ]
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use ottla_protocol::{generated::txn_offset_commit::response, primitive::Reader};

    use super::*;
    use crate::offsets::committed::GroupOffset;

    const ID: Uuid = Uuid([7; 16]);

    fn sent(topics: &[&str]) -> TransactionOffsets {
        let topic_ids = Arc::new(SortedMap::from([("t".into(), ID)]));
        let group = ConsumerGroupMetadata { group_id: "g".into(), topic_ids, ..Default::default() };
        let offsets = topics.iter().map(|topic| GroupOffset::new(*topic, 1, 5)).collect();
        TransactionOffsets { offsets, group, timeout: Duration::from_secs(1) }
    }

    #[test]
    fn topics_are_named_by_id_if_all_ids_are_known() {
        let terms = Terms { id: "x".into(), timeout: Duration::from_secs(1) };
        let identity = ProducerIdentity { id: 7, epoch: 3 };
        assert_eq!(terms.commit_offsets(identity, true, &sent(&["t"])).versions, 5..=6);
        assert_eq!(
            terms.commit_offsets(identity, true, &sent(&["t", "u"])).versions,
            5..=5,
            "one is unknown"
        );
        assert_eq!(terms.commit_offsets(identity, false, &sent(&["t"])).versions, 0..=4);
        for (version, name, id) in [(5, "t", Uuid::ZERO), (6, "", ID)] {
            let mut bytes = Vec::new();
            let request = terms.commit_offsets(identity, true, &sent(&["t"]));
            (request.encode)(version, &mut bytes).expect("it can be encoded");
            let request = TxnOffsetCommitRequest::decode(&mut Reader::new(&bytes), version).expect("valid");
            assert_eq!((&*request.topics[0].name, request.topics[0].topic_id), (name, id));
        }
    }

    #[test]
    fn offsets_of_records_are_named_by_the_id_of_their_topic() {
        const OF_RECORDS: Uuid = Uuid([6; 16]);
        let terms = Terms { id: "x".into(), timeout: Duration::from_secs(1) };
        // The topic was recreated between the poll and the moment when the consumer's metadata were taken.
        let mut sent = sent(&["t", "u"]);
        sent.offsets.iter_mut().for_each(|offset| offset.topic_id = Some(OF_RECORDS));
        let request = terms.commit_offsets(ProducerIdentity { id: 7, epoch: 3 }, true, &sent);
        assert_eq!(request.versions, 5..=6);
        let mut bytes = Vec::new();
        (request.encode)(6, &mut bytes).expect("it can be encoded");
        let request = TxnOffsetCommitRequest::decode(&mut Reader::new(&bytes), 6).expect("valid");
        assert!(request.topics.iter().all(|topic| topic.topic_id == OF_RECORDS), "{request:?}");
    }

    #[test]
    fn results_are_found_by_id_and_by_name() {
        let partitions = vec![response::Partition { partition_index: 1, error_code: ErrorCode::NONE }];
        let topic = |name: &str, topic_id| {
            let topic = response::Topic { name: name.into(), topic_id, partitions: partitions.clone() };
            TxnOffsetCommitResponse { topics: vec![topic], ..Default::default() }
        };
        let ids = sent(&[]).group.topic_ids;
        for response in [topic("t", Uuid::ZERO), topic("", ID)] {
            assert_eq!(committed_offsets(&response, &ids), [(("t", 1), ErrorCode::NONE)].into());
        }
        assert!(committed_offsets(&topic("", Uuid([8; 16])), &ids).is_empty(), "another topic");
    }
}
