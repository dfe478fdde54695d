//! The requests of transactional producers and the responses to them, decoded, with their lines for the trace.

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse},
        add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse},
        end_txn::{EndTxnRequest, EndTxnResponse},
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse},
    },
    primitive::{DecodeError, Reader},
};

/// A producer ID and its epoch.
pub type Identity = (i64, i16);

/// A request of a transactional producer.
#[derive(Debug)]
pub enum TransactionRequest {
    /// InitProducerId.
    Init(InitProducerIdRequest),
    /// AddPartitionsToTxn.
    AddPartitions(AddPartitionsToTxnRequest),
    /// AddOffsetsToTxn.
    AddOffsets(AddOffsetsToTxnRequest),
    /// TxnOffsetCommit.
    CommitOffsets(TxnOffsetCommitRequest),
    /// EndTxn.
    End(EndTxnRequest),
}

/// A response to a transactional producer.
#[derive(Debug)]
pub enum TransactionResponse {
    /// InitProducerId.
    Init(InitProducerIdResponse),
    /// AddPartitionsToTxn.
    AddPartitions(AddPartitionsToTxnResponse),
    /// AddOffsetsToTxn.
    AddOffsets(AddOffsetsToTxnResponse),
    /// TxnOffsetCommit.
    CommitOffsets(TxnOffsetCommitResponse),
    /// EndTxn.
    End(EndTxnResponse),
}

impl TransactionRequest {
    /// Decodes the request of one of these APIs.
    pub fn decode(
        api: ApiKey,
        version: i16,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Box<Self>, DecodeError>> {
        let request = match api {
            ApiKey::InitProducerId => InitProducerIdRequest::decode(reader, version).map(Self::Init),
            ApiKey::AddPartitionsToTxn => {
                AddPartitionsToTxnRequest::decode(reader, version).map(Self::AddPartitions)
            }
            ApiKey::AddOffsetsToTxn => AddOffsetsToTxnRequest::decode(reader, version).map(Self::AddOffsets),
            ApiKey::TxnOffsetCommit => {
                TxnOffsetCommitRequest::decode(reader, version).map(Self::CommitOffsets)
            }
            ApiKey::EndTxn => EndTxnRequest::decode(reader, version).map(Self::End),
            _ => return None,
        };
        Some(request.map(Box::new))
    }

    /// Returns the producer ID and epoch of a request within a transaction.
    pub fn identity(&self) -> Option<Identity> {
        match self {
            Self::Init(_) => None,
            Self::AddPartitions(it) => Some((it.v3_and_below_producer_id, it.v3_and_below_producer_epoch)),
            Self::AddOffsets(it) => Some((it.producer_id, it.producer_epoch)),
            Self::CommitOffsets(it) => Some((it.producer_id, it.producer_epoch)),
            Self::End(it) => Some((it.producer_id, it.producer_epoch)),
        }
    }

    /// Returns the partitions of AddPartitionsToTxn.
    pub fn partitions(&self) -> Vec<(String, i32)> {
        let Self::AddPartitions(request) = self else { return Vec::new() };
        let topics = request.v3_and_below_topics.iter();
        topics.flat_map(|topic| topic.partitions.iter().map(|it| (topic.name.clone(), *it))).collect()
    }

    /// Returns the line for the trace.
    pub fn details(&self) -> String {
        match self {
            Self::Init(it) => {
                format!(" of {:?}: {} {}", it.transactional_id, it.producer_id, it.producer_epoch)
            }
            Self::AddPartitions(_) => format!(" of {:?}: {:?}", self.identity(), self.partitions()),
            Self::AddOffsets(_) => format!(" of {:?}", self.identity()),
            Self::CommitOffsets(it) => {
                let offsets = it.topics.iter().flat_map(|topic| &topic.partitions);
                let offsets: Vec<_> = offsets.map(|it| (it.partition_index, it.committed_offset)).collect();
                let (member, generation) = (&it.member_id, it.generation_id_or_member_epoch);
                format!(" of {:?} as {member} in {generation}: {offsets:?}", self.identity())
            }
            Self::End(it) => format!(" of {:?}, commits: {}", self.identity(), it.committed),
        }
    }
}

impl TransactionResponse {
    /// Decodes the response of one of these APIs.
    pub fn decode(
        api: ApiKey,
        version: i16,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Box<Self>, DecodeError>> {
        let response = match api {
            ApiKey::InitProducerId => InitProducerIdResponse::decode(reader, version).map(Self::Init),
            ApiKey::AddPartitionsToTxn => {
                AddPartitionsToTxnResponse::decode(reader, version).map(Self::AddPartitions)
            }
            ApiKey::AddOffsetsToTxn => AddOffsetsToTxnResponse::decode(reader, version).map(Self::AddOffsets),
            ApiKey::TxnOffsetCommit => {
                TxnOffsetCommitResponse::decode(reader, version).map(Self::CommitOffsets)
            }
            ApiKey::EndTxn => EndTxnResponse::decode(reader, version).map(Self::End),
            _ => return None,
        };
        Some(response.map(Box::new))
    }

    /// Returns all error codes.
    pub fn codes(&self) -> Vec<ErrorCode> {
        match self {
            Self::Init(it) => vec![it.error_code],
            Self::AddPartitions(it) => {
                let topics = it.results_by_topic_v3_and_below.iter();
                let partitions = topics.flat_map(|topic| &topic.results_by_partition);
                partitions.map(|it| it.partition_error_code).collect()
            }
            Self::AddOffsets(it) => vec![it.error_code],
            Self::CommitOffsets(it) => {
                let partitions = it.topics.iter().flat_map(|topic| &topic.partitions);
                partitions.map(|it| it.error_code).collect()
            }
            Self::End(it) => vec![it.error_code],
        }
    }

    /// Returns true if nothing failed.
    pub fn is_success(&self) -> bool {
        self.codes().iter().all(|code| *code == ErrorCode::NONE)
    }

    /// Returns the line for the trace.
    pub fn details(&self) -> String {
        let codes: Vec<_> = self.codes().iter().map(|code| code.name()).collect();
        match self {
            Self::Init(it) => format!("{codes:?} {} {}", it.producer_id, it.producer_epoch),
            Self::End(it) => format!("{codes:?} {} {}", it.producer_id, it.producer_epoch),
            _ => format!("{codes:?}"),
        }
    }
}
