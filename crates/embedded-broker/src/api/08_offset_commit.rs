//! OffsetCommit (8), versions 2 to 10; topics by id from version 10 on. Members commit in their generation; who is no member
//! may commit (generation -1) while the group is empty.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::offset_commit::{OffsetCommitRequest, OffsetCommitResponse, response},
};

use crate::{cluster::Cluster, connection::Request, groups::CommittedOffset};

impl Cluster {
    pub(crate) fn offset_commit(
        &mut self,
        request: &mut Request,
        body: OffsetCommitRequest,
    ) -> OffsetCommitResponse {
        let now = self.now;
        let checked = self.check_group(request, &body.group_id).and_then(|()| {
            let instance = body.group_instance_id.as_deref();
            let generation = body.generation_id_or_member_epoch;
            self.groups.entry(&body.group_id).check_commit(now, &body.member_id, instance, generation)
        });
        let mut answer =
            OffsetCommitResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let (found, unknown) = if request.version >= 10 {
                (self.topics.by_id(topic.topic_id), ErrorCode::UNKNOWN_TOPIC_ID)
            } else {
                (self.topics.by_name(&topic.name), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            };
            let name = found.and_then(|index| self.topics.get(index)).map(|topic| topic.name.clone());
            let mut partitions = Vec::new();
            for partition in topic.partitions {
                let known =
                    found.and_then(|index| self.topics.partition(index, partition.partition_index)).is_some();
                let error_code = match (checked, &name) {
                    (Err(error), _) => error,
                    (Ok(()), None) => unknown,
                    (Ok(()), Some(_)) if !known => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    (Ok(()), Some(_))
                        if partition.committed_metadata.as_ref().is_some_and(|m| m.len() > 4096) =>
                    {
                        ErrorCode::OFFSET_METADATA_TOO_LARGE
                    }
                    (Ok(()), Some(name)) => {
                        let committed = CommittedOffset {
                            offset: partition.committed_offset,
                            leader_epoch: partition.committed_leader_epoch,
                            metadata: partition.committed_metadata,
                        };
                        let key = (name.clone(), partition.partition_index);
                        self.groups.entry(&body.group_id).offsets.insert(key, committed);
                        ErrorCode::NONE
                    }
                };
                partitions
                    .push(response::Partition { partition_index: partition.partition_index, error_code });
            }
            answer.topics.push(response::Topic { name: topic.name, topic_id: topic.topic_id, partitions });
        }
        self.settle_group(&body.group_id, Default::default());
        answer
    }
}
