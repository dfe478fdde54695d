//! The contents of OffsetFetch responses of all versions.

use ottla_protocol::{
    error_code::ErrorCode, generated::offset_fetch::OffsetFetchResponse, vocabulary::LeaderEpoch,
};
use ottla_sorted::SortedMap;

use super::topic_ids::RequestIds;

/// The response for one partition: error code, offset (negative without a committed one), leader epoch.
pub(crate) type Reported = (ErrorCode, i64, Option<LeaderEpoch>);

/// Returns the offsets of a response by topic and partition.
pub(crate) fn offsets_in<'a>(
    response: &'a OffsetFetchResponse,
    ids: &'a RequestIds,
) -> SortedMap<(&'a str, i32), Reported> {
    let old = response.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let leader_epoch = LeaderEpoch::from_wire(partition.committed_leader_epoch);
            let reported = (partition.error_code, partition.committed_offset, leader_epoch);
            ((&*topic.name, partition.partition_index), reported)
        })
    });
    let new = response.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let leader_epoch = LeaderEpoch::from_wire(partition.committed_leader_epoch);
            let reported = (partition.error_code, partition.committed_offset, leader_epoch);
            ((ids.name(topic.topic_id, &topic.name), partition.partition_index), reported)
        })
    });
    old.chain(new).collect()
}

/// Returns the metadata strings of a response by topic and partition.
pub(crate) fn metadata_in<'a>(
    response: &'a OffsetFetchResponse,
    ids: &'a RequestIds,
) -> SortedMap<(&'a str, i32), &'a str> {
    let old = response.topics.iter().flat_map(|topic| {
        let reported = topic.partitions.iter().map(|reported| (reported.partition_index, &reported.metadata));
        reported.map(|(partition, metadata)| ((&*topic.name, partition), metadata))
    });
    let new = response.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| {
        let reported = topic.partitions.iter().map(|reported| (reported.partition_index, &reported.metadata));
        reported.map(|(partition, metadata)| ((ids.name(topic.topic_id, &topic.name), partition), metadata))
    });
    old.chain(new).filter_map(|(key, metadata)| Some((key, metadata.as_deref()?))).collect()
}
