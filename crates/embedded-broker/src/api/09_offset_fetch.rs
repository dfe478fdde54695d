//! OffsetFetch (9), versions 1 to 10; several groups at once from version 8 on, topics by id from version 10 on.
//! Who says which member of a group of the consumer protocol it is (from version 9 on) must be it, in its epoch.

use std::collections::BTreeMap;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse, response},
    uuid::Uuid,
};

use crate::{cluster::Cluster, connection::Request, groups::CommittedOffset};

/// A topic as it was asked for, and the partitions.
type Wanted = (Option<String>, Uuid, Vec<i32>);
/// A topic as it was asked for, and what was committed of the partitions.
type Found = (String, Uuid, Vec<(i32, CommittedOffset, ErrorCode)>);

impl Cluster {
    pub(crate) fn offset_fetch(
        &mut self,
        request: &mut Request,
        body: OffsetFetchRequest,
    ) -> OffsetFetchResponse {
        let mut answer =
            OffsetFetchResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if request.version < 8 {
            let wanted = body.topics.map(|topics| {
                let topics = topics.into_iter();
                topics.map(|topic| (Some(topic.name), Uuid::ZERO, topic.partition_indexes)).collect()
            });
            let found = self.fetch_offsets(request, &body.group_id, (None, -1), wanted);
            let (error, found) =
                found.map_or_else(|error| (error, Vec::new()), |found| (ErrorCode::NONE, found));
            answer.error_code = error;
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
                answer.topics.push(response::OffsetFetchTopic { name, partitions });
            }
            return answer;
        }
        for group in body.groups {
            let wanted = group.topics.map(|topics| {
                let topics = topics.into_iter();
                let name = |name| if request.version >= 10 { None } else { Some(name) };
                topics.map(|topic| (name(topic.name), topic.topic_id, topic.partition_indexes)).collect()
            });
            let mut answered = response::Group { group_id: group.group_id, ..Default::default() };
            let asker = (group.member_id.as_deref(), group.member_epoch);
            match self.fetch_offsets(request, &answered.group_id, asker, wanted) {
                Err(error) => answered.error_code = error,
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
                        answered.topics.push(response::GroupTopic { name, topic_id, partitions });
                    }
                }
            }
            answer.groups.push(answered);
        }
        answer
    }

    fn fetch_offsets(
        &mut self,
        request: &mut Request,
        group: &str,
        (member_id, member_epoch): (Option<&str>, i32),
        wanted: Option<Vec<Wanted>>,
    ) -> Result<Vec<Found>, ErrorCode> {
        self.check_group(request, group)?;
        if let Some(group) = self.groups.get(group) {
            group.check_offset_fetch(member_id, member_epoch)?;
        }
        let nothing = BTreeMap::new();
        let offsets = self.groups.get(group).map_or(&nothing, |group| &group.offsets);
        let id_of = |name: &str| {
            let topic = self.topics.by_name(name).and_then(|index| self.topics.get(index));
            topic.map_or(Uuid::ZERO, |topic| topic.id)
        };
        let Some(wanted) = wanted else {
            let mut found: Vec<Found> = Vec::new();
            for ((name, partition), committed) in offsets {
                if found.last().is_none_or(|(last, ..)| last != name) {
                    found.push((name.clone(), id_of(name), Vec::new()));
                }
                if let Some((_, _, partitions)) = found.last_mut() {
                    partitions.push((*partition, committed.clone(), ErrorCode::NONE));
                }
            }
            return Ok(found);
        };
        let topics = wanted.into_iter().map(|(name, id, partitions)| {
            let by_id = name.is_none();
            let known = name.or_else(|| {
                let topic = self.topics.by_id(id).and_then(|index| self.topics.get(index));
                topic.map(|topic| topic.name.clone())
            });
            let unknown = by_id && known.is_none();
            let name = known.unwrap_or_default();
            let error = if unknown { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::NONE };
            let partitions = partitions.into_iter().map(|partition| {
                let committed = offsets.get(&(name.clone(), partition)).cloned();
                let none = CommittedOffset { offset: -1, leader_epoch: -1, metadata: Some(String::new()) };
                (partition, committed.unwrap_or(none), error)
            });
            let partitions = partitions.collect();
            (name, id, partitions)
        });
        Ok(topics.collect())
    }
}
