//! OffsetCommit (8), versions 2 to 10; topics by ID from version 10 on. Members commit in their generation or epoch. A
//! client that is not a member (generation -1) may commit while the group is empty.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::offset_commit::{OffsetCommitRequest, OffsetCommitResponse, response},
    uuid::Uuid,
};

use crate::{cluster::Cluster, connection::Request, groups::CommittedOffset};

impl Cluster {
    pub(crate) fn offset_commit(
        &mut self,
        request: &mut Request,
        body: OffsetCommitRequest,
    ) -> OffsetCommitResponse {
        let (now, epoch) = (self.now, body.generation_id_or_member_epoch);
        let permitted = self.check_group(request, &body.group_id);
        let checked = permitted.and_then(|()| {
            if self.is_share_group(&body.group_id) {
                return Err(ErrorCode::GROUP_ID_NOT_FOUND);
            }
            let instance = body.group_instance_id.as_deref();
            if epoch >= 0 && self.groups.get(&body.group_id).is_none() {
                let is_old = request.version < 9;
                return Err(if is_old {
                    ErrorCode::ILLEGAL_GENERATION
                } else {
                    ErrorCode::GROUP_ID_NOT_FOUND
                });
            }
            let is_relaxed = self.options.group_consumer_relaxed_commits;
            let group = self.groups.entry(&body.group_id);
            group.check_commit(now, request.version, &body.member_id, instance, epoch)?;
            if is_relaxed { Ok(()) } else { group.check_commit_epoch(&body.member_id, epoch) }
        });
        let mut response =
            OffsetCommitResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let (found, unknown) = if request.version >= 10 {
                (self.topics.by_id(topic.topic_id), ErrorCode::UNKNOWN_TOPIC_ID)
            } else {
                (self.topics.by_name(&topic.name), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            };
            let named = found.and_then(|index| self.topics.get(index));
            let (name, id) =
                (named.map(|topic| topic.name.clone()), named.map_or(Uuid::ZERO, |topic| topic.id));
            let refused = match &name {
                Some(name) => self.topic_refusal(request, name),
                None if request.version < 10 => self.topic_refusal(request, &topic.name),
                None => None,
            };
            let mut partitions = Vec::new();
            for partition in topic.partitions {
                let known =
                    found.and_then(|index| self.topics.partition(index, partition.partition_index)).is_some();
                let checked = checked.and_then(|()| {
                    let group = self.groups.entry(&body.group_id);
                    group.check_commit_of(&body.member_id, epoch, id, partition.partition_index)
                });
                // The coordinator only learns of topics that exist and that the client may read.
                let error_code = match (checked, &name) {
                    (Err(error), _) if permitted.is_err() => error,
                    _ if refused.is_some() => refused.unwrap_or_default(),
                    (_, None) => unknown,
                    (_, Some(_)) if !known => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    (Err(error), Some(_)) => error,
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
                            written: 0,
                        };
                        let key = (name.clone(), partition.partition_index);
                        self.commit_offset(&body.group_id, key, committed);
                        ErrorCode::NONE
                    }
                };
                partitions
                    .push(response::Partition { partition_index: partition.partition_index, error_code });
            }
            response.topics.push(response::Topic { name: topic.name, topic_id: topic.topic_id, partitions });
        }
        self.settle_group(&body.group_id, Default::default());
        response
    }
}
