//! OffsetFetch (9), versions 1 to 10; several groups at once from version 8 on, topics by ID from version 10 on. A
//! request that names a member of a consumer-protocol group (from version 9 on) is checked against that member and its
//! epoch. With `require_stable` (from version 7 on), a partition with an offset in an open transaction gets
//! UNSTABLE_OFFSET_COMMIT.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse, response},
    uuid::Uuid,
};
use ottla_sorted::SortedMap;

use crate::{cluster::Cluster, connection::Request, groups::CommittedOffset};

/// A requested topic with its partitions.
type RequestedTopic = (Option<String>, Uuid, Vec<i32>);
/// A requested topic with the committed offsets of its partitions.
type Found = (String, Uuid, Vec<(i32, CommittedOffset, ErrorCode)>);

impl Cluster {
    pub(crate) fn offset_fetch(
        &mut self,
        request: &mut Request,
        body: OffsetFetchRequest,
    ) -> OffsetFetchResponse {
        let mut response =
            OffsetFetchResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if request.version < 8 {
            let requested = body.topics.map(|topics| {
                let topics = topics.into_iter();
                topics.map(|topic| (Some(topic.name), Uuid::ZERO, topic.partition_indexes)).collect()
            });
            let found =
                self.fetch_offsets(request, &body.group_id, (None, -1), requested, body.require_stable);
            let (error, found) =
                found.map_or_else(|error| (error, Vec::new()), |found| (ErrorCode::NONE, found));
            response.error_code = error;
            for (name, _, partitions) in found {
                let partitions = partitions.into_iter().map(|(partition_index, committed, error_code)| {
                    response::OffsetFetchTopicPartition {
                        partition_index,
                        committed_offset: committed.offset,
                        committed_leader_epoch: committed.leader_epoch,
                        metadata: committed.metadata,
                        error_code,
                    }
                });
                let partitions = partitions.collect();
                response.topics.push(response::OffsetFetchTopic { name, partitions });
            }
            return response;
        }
        for group in body.groups {
            let requested = group.topics.map(|topics| {
                let topics = topics.into_iter();
                let name = |name| if request.version >= 10 { None } else { Some(name) };
                topics.map(|topic| (name(topic.name), topic.topic_id, topic.partition_indexes)).collect()
            });
            let mut fetched = response::Group { group_id: group.group_id, ..Default::default() };
            let member = (group.member_id.as_deref(), group.member_epoch);
            match self.fetch_offsets(request, &fetched.group_id, member, requested, body.require_stable) {
                Err(error) => fetched.error_code = error,
                Ok(found) => {
                    for (name, topic_id, partitions) in found {
                        let partitions =
                            partitions.into_iter().map(|(partition_index, committed, error_code)| {
                                response::GroupTopicPartition {
                                    partition_index,
                                    committed_offset: committed.offset,
                                    committed_leader_epoch: committed.leader_epoch,
                                    metadata: committed.metadata,
                                    error_code,
                                }
                            });
                        let partitions = partitions.collect();
                        fetched.topics.push(response::GroupTopic { name, topic_id, partitions });
                    }
                }
            }
            response.groups.push(fetched);
        }
        response
    }

    fn fetch_offsets(
        &mut self,
        request: &mut Request,
        group: &str,
        (member_id, member_epoch): (Option<&str>, i32),
        requested: Option<Vec<RequestedTopic>>,
        require_stable: bool,
    ) -> Result<Vec<Found>, ErrorCode> {
        self.check_group(request, group)?;
        if let Some(group) = self.groups.get(group) {
            group.check_offset_fetch(member_id, member_epoch)?;
        }
        let nothing = SortedMap::new();
        let found = self.groups.get(group);
        let offsets = found.map_or(&nothing, |group| &group.offsets);
        let is_unstable =
            |key: &(String, i32)| require_stable && found.is_some_and(|group| group.pending.contains(key));
        let id_of = |name: &str| {
            let topic = self.topics.by_name(name).and_then(|index| self.topics.get(index));
            topic.map_or(Uuid::ZERO, |topic| topic.id)
        };
        let Some(requested) = requested else {
            let mut found: Vec<Found> = Vec::new();
            for (key, committed) in offsets {
                let (name, partition) = key;
                // Kafka leaves out the topics that the client may not describe.
                if self.topic_refusal(request, name).is_some() {
                    continue;
                }
                if found.last().is_none_or(|(last, ..)| last != name) {
                    found.push((name.clone(), id_of(name), Vec::new()));
                }
                if let Some((_, _, partitions)) = found.last_mut() {
                    partitions.push(if is_unstable(key) {
                        (*partition, no_offset(), ErrorCode::UNSTABLE_OFFSET_COMMIT)
                    } else {
                        (*partition, committed.clone(), ErrorCode::NONE)
                    });
                }
            }
            return Ok(found);
        };
        let topics = requested.into_iter().map(|(name, id, partitions)| {
            let by_id = name.is_none();
            let known = name.or_else(|| {
                let topic = self.topics.by_id(id).and_then(|index| self.topics.get(index));
                topic.map(|topic| topic.name.clone())
            });
            let unknown = by_id && known.is_none();
            let name = known.unwrap_or_default();
            let refused = if unknown { None } else { self.topic_refusal(request, &name) };
            let error =
                if unknown { ErrorCode::UNKNOWN_TOPIC_ID } else { refused.unwrap_or(ErrorCode::NONE) };
            let partitions = partitions.into_iter().map(|partition| {
                let key = (name.clone(), partition);
                if error == ErrorCode::NONE && is_unstable(&key) {
                    return (partition, no_offset(), ErrorCode::UNSTABLE_OFFSET_COMMIT);
                }
                let committed = offsets.get(&key).filter(|_| refused.is_none()).cloned();
                (partition, committed.unwrap_or_else(no_offset), error)
            });
            let partitions = partitions.collect();
            (name, id, partitions)
        });
        Ok(topics.collect())
    }
}

/// The response for a partition without a committed offset.
fn no_offset() -> CommittedOffset {
    CommittedOffset { offset: -1, leader_epoch: -1, metadata: Some(String::new()), written: 0 }
}
