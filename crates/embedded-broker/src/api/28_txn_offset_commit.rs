//! TxnOffsetCommit (28), versions 0 to 5: adds offsets of a group to the transaction of a producer. They take effect when
//! the transaction commits.
//!
//! From version 3 on the request can name the group's member and generation (KIP-447). Version 5 also adds the group to
//! the transaction; before it, AddOffsetsToTxn does that.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse, response},
};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    groups::CommittedOffset,
    transactions::{Participant, ProducerKey},
};

impl Cluster {
    pub(crate) fn txn_offset_commit(
        &mut self,
        request: &mut Request,
        body: TxnOffsetCommitRequest,
    ) -> TxnOffsetCommitResponse {
        let checked = self
            .check_transaction_access(request, AclOperation::Write, &body.transactional_id)
            .and_then(|()| self.check_group(request, &body.group_id));
        let mut response =
            TxnOffsetCommitResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let mut accepted = Vec::new();
        for (i, topic) in body.topics.iter().enumerate() {
            let index = self.topics.by_name(&topic.name);
            let refused = self.topic_refusal(request, &topic.name);
            let mut partitions = Vec::new();
            for (j, partition) in topic.partitions.iter().enumerate() {
                let known = index.and_then(|t| self.topics.partition(t, partition.partition_index)).is_some();
                let metadata = partition.committed_metadata.as_ref();
                let error_code = match checked {
                    Err(error) => error,
                    Ok(()) if refused.is_some() => refused.unwrap_or_default(),
                    Ok(()) if !known => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    Ok(()) if metadata.is_some_and(|m| m.len() > 4096) => {
                        ErrorCode::OFFSET_METADATA_TOO_LARGE
                    }
                    Ok(()) => {
                        accepted.push((i, j));
                        ErrorCode::NONE
                    }
                };
                partitions
                    .push(response::Partition { partition_index: partition.partition_index, error_code });
            }
            response.topics.push(response::Topic { name: topic.name.clone(), partitions });
        }
        if accepted.is_empty() {
            return response;
        }
        match self.admit_offsets(request, &body) {
            Ok(()) => {
                for (i, j) in accepted {
                    let error = self.add_pending_offset(&body, i, j).err().unwrap_or_default();
                    response.topics[i].partitions[j].error_code = error;
                }
            }
            Err(error) => {
                for (i, j) in accepted {
                    response.topics[i].partitions[j].error_code = error;
                }
            }
        }
        response
    }

    /// Checks the transaction and the member of a commit.
    fn admit_offsets(&mut self, request: &Request, body: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
        let producer = ProducerKey { id: body.producer_id, epoch: body.producer_epoch };
        let found = self.groups.get(&body.group_id);
        let is_open =
            found.is_some_and(|group| group.pending.has_open_transaction(producer.id, producer.epoch));
        let adds = request.version >= 5;
        if !is_open && (adds || self.options.transaction_verification) {
            let participant = Participant::Group(body.group_id.clone());
            let admitted = self.admit_to_transaction(&body.transactional_id, producer, participant, adds);
            admitted.map_err(|error| match error {
                ErrorCode::PRODUCER_FENCED => ErrorCode::INVALID_PRODUCER_EPOCH,
                ErrorCode::TRANSACTION_ABORTABLE if request.version < 4 => ErrorCode::INVALID_TXN_STATE,
                error => error,
            })?;
        }
        if self.is_share_group(&body.group_id) {
            return Err(ErrorCode::GROUP_ID_NOT_FOUND);
        }
        if body.generation_id >= 0 && self.groups.get(&body.group_id).is_none() {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let is_relaxed = self.options.group_consumer_relaxed_commits;
        let group = self.groups.entry(&body.group_id);
        let instance = body.group_instance_id.as_deref();
        group.check_transactional_commit(&body.member_id, instance, body.generation_id)?;
        if !is_relaxed {
            let checked = group.check_commit_epoch(&body.member_id, body.generation_id);
            checked.map_err(|_| ErrorCode::ILLEGAL_GENERATION)?;
        }
        group.pending.check_epoch(producer.id, producer.epoch)
    }

    fn add_pending_offset(
        &mut self,
        body: &TxnOffsetCommitRequest,
        topic: usize,
        partition: usize,
    ) -> Result<(), ErrorCode> {
        let name = &body.topics[topic].name;
        let requested = &body.topics[topic].partitions[partition];
        let id = self.topics.by_name(name).and_then(|index| self.topics.get(index)).map(|topic| topic.id);
        let group = self.groups.entry(&body.group_id);
        if !body.member_id.is_empty() {
            let id = id.unwrap_or_default();
            let checked =
                group.check_commit_of(&body.member_id, body.generation_id, id, requested.partition_index);
            checked.map_err(|_| ErrorCode::ILLEGAL_GENERATION)?;
        }
        let committed = CommittedOffset {
            offset: requested.committed_offset,
            leader_epoch: requested.committed_leader_epoch,
            metadata: requested.committed_metadata.clone(),
            written: 0,
        };
        let key = (name.clone(), requested.partition_index);
        group.commit_in_transaction((body.producer_id, body.producer_epoch), key, committed);
        Ok(())
    }
}
