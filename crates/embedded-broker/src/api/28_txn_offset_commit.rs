//! TxnOffsetCommit (28), versions 0 to 6: adds offsets of a group to the transaction of a producer. They take effect when
//! the transaction commits.
//!
//! From version 3 on the request can name the group's member and generation (KIP-447). Version 5 also adds the group to
//! the transaction; before it, AddOffsetsToTxn does that. Version 6 names topics by ID, and distinguishes an old epoch of a member
//! from an old generation (KIP-1319).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse, request, response},
};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    groups::CommittedOffset,
    transactions::{Participant, ProducerKey},
};

/// The first version with topics by ID.
const FIRST_WITH_TOPIC_IDS: i16 = 6;

/// Returns the error of a member in an old epoch: versions before 6 have none of their own.
const fn old_epoch(version: i16) -> ErrorCode {
    if version >= FIRST_WITH_TOPIC_IDS {
        ErrorCode::STALE_MEMBER_EPOCH
    } else {
        ErrorCode::ILLEGAL_GENERATION
    }
}

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
        let by_id = request.version >= FIRST_WITH_TOPIC_IDS;
        let mut accepted = Vec::new();
        for (i, topic) in body.topics.iter().enumerate() {
            let (index, unknown) = if by_id {
                (self.topics.by_id(topic.topic_id), ErrorCode::UNKNOWN_TOPIC_ID)
            } else {
                (self.topics.by_name(&topic.name), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            };
            let found = index.and_then(|index| self.topics.get(index)).map(|topic| topic.name.clone());
            let refused = match found.as_ref().or((!by_id).then_some(&topic.name)) {
                Some(name) => self.topic_refusal(request, name),
                None => None,
            };
            let mut partitions = Vec::new();
            for (j, partition) in topic.partitions.iter().enumerate() {
                let known = index.and_then(|t| self.topics.partition(t, partition.partition_index)).is_some();
                let metadata = partition.committed_metadata.as_ref();
                let error_code = match checked {
                    Err(error) => error,
                    Ok(()) if refused.is_some() => refused.unwrap_or_default(),
                    Ok(()) if index.is_none() => unknown,
                    Ok(()) if !known => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    Ok(()) if metadata.is_some_and(|m| m.len() > 4096) => {
                        ErrorCode::OFFSET_METADATA_TOO_LARGE
                    }
                    Ok(()) => {
                        accepted.push((i, j, found.clone().unwrap_or_default()));
                        ErrorCode::NONE
                    }
                };
                partitions
                    .push(response::Partition { partition_index: partition.partition_index, error_code });
            }
            response.topics.push(response::Topic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions,
            });
        }
        if accepted.is_empty() {
            return response;
        }
        match self.admit_offsets(request, &body) {
            Ok(()) => {
                for (i, j, name) in accepted {
                    let requested = &body.topics[i].partitions[j];
                    let added = self.add_pending_offset(request.version, &body, name, requested);
                    let error = added.err().unwrap_or_default();
                    response.topics[i].partitions[j].error_code = error;
                }
            }
            Err(error) => {
                for (i, j, _) in accepted {
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
        let epoch = body.generation_id_or_member_epoch;
        if self.is_share_group(&body.group_id) {
            return Err(ErrorCode::GROUP_ID_NOT_FOUND);
        }
        if epoch >= 0 && self.groups.get(&body.group_id).is_none() {
            let is_old = request.version < FIRST_WITH_TOPIC_IDS;
            return Err(if is_old { ErrorCode::ILLEGAL_GENERATION } else { ErrorCode::GROUP_ID_NOT_FOUND });
        }
        let is_relaxed = self.options.group_consumer_relaxed_commits;
        let group = self.groups.entry(&body.group_id);
        let instance = body.group_instance_id.as_deref();
        let checked = group.check_transactional_commit(&body.member_id, instance, epoch);
        checked.map_err(|error| match error {
            ErrorCode::STALE_MEMBER_EPOCH => old_epoch(request.version),
            error => error,
        })?;
        if !is_relaxed {
            let checked = group.check_commit_epoch(&body.member_id, epoch);
            checked.map_err(|_| old_epoch(request.version))?;
        }
        group.pending.check_epoch(producer.id, producer.epoch)
    }

    fn add_pending_offset(
        &mut self,
        version: i16,
        body: &TxnOffsetCommitRequest,
        topic: String,
        requested: &request::Partition,
    ) -> Result<(), ErrorCode> {
        let id = self.topics.by_name(&topic).and_then(|index| self.topics.get(index)).map(|topic| topic.id);
        let group = self.groups.entry(&body.group_id);
        if !body.member_id.is_empty() {
            let id = id.unwrap_or_default();
            let epoch = body.generation_id_or_member_epoch;
            let checked = group.check_commit_of(&body.member_id, epoch, id, requested.partition_index);
            checked.map_err(|_| old_epoch(version))?;
        }
        let committed = CommittedOffset {
            offset: requested.committed_offset,
            leader_epoch: requested.committed_leader_epoch,
            metadata: requested.committed_metadata.clone(),
            written: 0,
        };
        let key = (topic, requested.partition_index);
        group.commit_in_transaction((body.producer_id, body.producer_epoch), key, committed);
        Ok(())
    }
}
