//! The requests of group members and the responses to them, decoded, with their lines for the trace.

use ottla_protocol::{
    api::ApiKey,
    generated::{
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
        heartbeat::{HeartbeatRequest, HeartbeatResponse},
        join_group::{JoinGroupRequest, JoinGroupResponse},
        leave_group::LeaveGroupRequest,
        offset_commit::OffsetCommitRequest,
        offset_fetch::OffsetFetchRequest,
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    primitive::{DecodeError, Reader},
};

/// A request of a member.
#[derive(Debug)]
pub enum GroupRequest {
    /// JoinGroup.
    Join(JoinGroupRequest),
    /// SyncGroup.
    Sync(SyncGroupRequest),
    /// Heartbeat.
    Heartbeat(HeartbeatRequest),
    /// ConsumerGroupHeartbeat.
    ConsumerHeartbeat(ConsumerGroupHeartbeatRequest),
    /// LeaveGroup.
    Leave(LeaveGroupRequest),
    /// OffsetCommit.
    Commit(OffsetCommitRequest),
    /// OffsetFetch.
    Fetch(OffsetFetchRequest),
}

/// A response to a member.
#[derive(Debug)]
pub enum GroupResponse {
    /// JoinGroup.
    Join(JoinGroupResponse),
    /// SyncGroup.
    Sync(SyncGroupResponse),
    /// Heartbeat.
    Heartbeat(HeartbeatResponse),
    /// ConsumerGroupHeartbeat.
    ConsumerHeartbeat(ConsumerGroupHeartbeatResponse),
}

impl GroupRequest {
    /// Decodes the request of one of these APIs.
    pub fn decode(
        api: ApiKey,
        version: i16,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Box<Self>, DecodeError>> {
        let request = match api {
            ApiKey::JoinGroup => JoinGroupRequest::decode(reader, version).map(Self::Join),
            ApiKey::SyncGroup => SyncGroupRequest::decode(reader, version).map(Self::Sync),
            ApiKey::Heartbeat => HeartbeatRequest::decode(reader, version).map(Self::Heartbeat),
            ApiKey::ConsumerGroupHeartbeat => {
                ConsumerGroupHeartbeatRequest::decode(reader, version).map(Self::ConsumerHeartbeat)
            }
            ApiKey::LeaveGroup => LeaveGroupRequest::decode(reader, version).map(Self::Leave),
            ApiKey::OffsetCommit => OffsetCommitRequest::decode(reader, version).map(Self::Commit),
            ApiKey::OffsetFetch => OffsetFetchRequest::decode(reader, version).map(Self::Fetch),
            _ => return None,
        };
        Some(request.map(Box::new))
    }

    /// Returns the line for the trace.
    pub fn details(&self) -> String {
        match self {
            Self::Join(request) => format!(" as {:?}: {:?}", request.member_id, request.reason),
            Self::Sync(request) => {
                let (id, generation) = (&request.member_id, request.generation_id);
                format!(" of {id} in {generation}, {} assignments", request.assignments.len())
            }
            Self::Heartbeat(request) => format!(" of {} in {}", request.member_id, request.generation_id),
            Self::ConsumerHeartbeat(request) => {
                let (id, epoch) = (&request.member_id, request.member_epoch);
                format!(" of {id} in {epoch}, owns {:?}", request.topic_partitions)
            }
            Self::Leave(request) => format!(" of {:?}", request.members),
            Self::Commit(request) => {
                let (id, generation) = (&request.member_id, request.generation_id_or_member_epoch);
                let topics = request.topics.iter().flat_map(|topic| {
                    let offsets = topic.partitions.iter();
                    offsets.map(|it| (&*topic.name, it.partition_index, it.committed_offset))
                });
                format!(" of {id} in {generation}: {:?}", topics.collect::<Vec<_>>())
            }
            Self::Fetch(_) => String::new(),
        }
    }
}

impl GroupRequest {
    /// Returns the member ID; empty if the request has none.
    pub fn member_id(&self) -> &str {
        match self {
            Self::Join(request) => &request.member_id,
            Self::Sync(request) => &request.member_id,
            Self::Heartbeat(request) => &request.member_id,
            Self::ConsumerHeartbeat(request) => &request.member_id,
            Self::Commit(request) => &request.member_id,
            Self::Leave(_) | Self::Fetch(_) => "",
        }
    }
}

impl GroupResponse {
    /// Decodes the response of one of these APIs.
    pub fn decode(
        api: ApiKey,
        version: i16,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Box<Self>, DecodeError>> {
        let response = match api {
            ApiKey::JoinGroup => JoinGroupResponse::decode(reader, version).map(Self::Join),
            ApiKey::SyncGroup => SyncGroupResponse::decode(reader, version).map(Self::Sync),
            ApiKey::Heartbeat => HeartbeatResponse::decode(reader, version).map(Self::Heartbeat),
            ApiKey::ConsumerGroupHeartbeat => {
                ConsumerGroupHeartbeatResponse::decode(reader, version).map(Self::ConsumerHeartbeat)
            }
            _ => return None,
        };
        Some(response.map(Box::new))
    }

    /// Returns the line for the trace.
    pub fn details(&self) -> String {
        match self {
            Self::Join(response) => format!(
                "{}: {} in {}, led by {}",
                response.error_code.name(),
                response.member_id,
                response.generation_id,
                response.leader
            ),
            Self::Sync(response) => response.error_code.name().to_string(),
            Self::Heartbeat(response) => response.error_code.name().to_string(),
            Self::ConsumerHeartbeat(response) => {
                let (code, epoch) = (response.error_code.name(), response.member_epoch);
                format!("{code}: epoch {epoch}, {:?}", response.assignment)
            }
        }
    }
}
