//! The messages that the checker of the traffic decodes, as far as it looks into them.

use ottla_protocol::{
    api::ApiKey,
    generated::{
        api_versions, describe_groups, describe_transactions, fetch, find_coordinator, leave_group,
        list_offsets, metadata, offset_commit, offset_fetch, offset_for_leader_epoch, produce,
        sasl_authenticate, sasl_handshake, share_acknowledge, share_fetch, share_group_heartbeat,
        streams_group_heartbeat, streams_group_topology_description_update,
    },
    primitive::{DecodeError, Reader},
};

use super::{
    group_messages::{GroupRequest, GroupResponse},
    share_sessions::ShareRequest,
    telemetry::{TelemetryRequest, TelemetryResponse},
    transaction_messages::{TransactionRequest, TransactionResponse},
};

/// A client's request, as far as it is checked.
#[derive(Debug)]
pub(super) enum Request {
    Produce(produce::ProduceRequest),
    Fetch(fetch::FetchRequest),
    Epochs(offset_for_leader_epoch::OffsetForLeaderEpochRequest),
    ApiVersions(api_versions::ApiVersionsRequest),
    Group(Box<GroupRequest>),
    Transaction(Box<TransactionRequest>),
    Telemetry(TelemetryRequest),
    Share(ShareRequest),
    Other,
}

/// A response, as far as it is checked.
#[derive(Debug)]
pub(super) enum Response {
    ApiVersions(api_versions::ApiVersionsResponse),
    Produce(produce::ProduceResponse),
    Fetch(fetch::FetchResponse),
    Metadata(metadata::MetadataResponse),
    Epochs(offset_for_leader_epoch::OffsetForLeaderEpochResponse),
    Group(Box<GroupResponse>),
    Transaction(Box<TransactionResponse>),
    Telemetry(Box<TelemetryResponse>),
    Other,
}

/// Decodes messages that are not checked further.
macro_rules! decode {
    ($given:ident, $version:ident, $reader:ident: $($api:ident $module:ident $message:ident),* $(,)?) => {
        match $given {
            $(ApiKey::$api => $module::$message::decode($reader, $version).map(|_| Self::Other),)*
            _ => Ok(Self::Other),
        }
    };
}

impl Request {
    pub(super) fn decode(api: ApiKey, version: i16, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if let Some(transaction) = TransactionRequest::decode(api, version, reader) {
            return transaction.map(Self::Transaction);
        }
        if let Some(telemetry) = TelemetryRequest::decode(api, version, reader) {
            return telemetry.map(Self::Telemetry);
        }
        if let Some(share) = ShareRequest::decode(api, version, reader) {
            return share.map(Self::Share);
        }
        match api {
            ApiKey::Produce => produce::ProduceRequest::decode(reader, version).map(Self::Produce),
            ApiKey::Fetch => fetch::FetchRequest::decode(reader, version).map(Self::Fetch),
            ApiKey::ApiVersions => {
                api_versions::ApiVersionsRequest::decode(reader, version).map(Self::ApiVersions)
            }
            ApiKey::OffsetForLeaderEpoch => {
                offset_for_leader_epoch::OffsetForLeaderEpochRequest::decode(reader, version)
                    .map(Self::Epochs)
            }
            api => match GroupRequest::decode(api, version, reader) {
                Some(request) => request.map(Self::Group),
                None => decode!(api, version, reader:
                    ListOffsets list_offsets ListOffsetsRequest,
                    Metadata metadata MetadataRequest,
                    FindCoordinator find_coordinator FindCoordinatorRequest,
                    DescribeGroups describe_groups DescribeGroupsRequest,
                    DescribeTransactions describe_transactions DescribeTransactionsRequest,
                    SaslHandshake sasl_handshake SaslHandshakeRequest,
                    SaslAuthenticate sasl_authenticate SaslAuthenticateRequest,
                    StreamsGroupHeartbeat streams_group_heartbeat StreamsGroupHeartbeatRequest,
                    StreamsGroupTopologyDescriptionUpdate
                        streams_group_topology_description_update
                        StreamsGroupTopologyDescriptionUpdateRequest,
                ),
            },
        }
    }

    /// Returns the line for the trace.
    pub(super) fn details(&self) -> String {
        match self {
            Self::Fetch(fetch) => {
                let asked = fetch.topics.iter().flat_map(|topic| &topic.partitions);
                let asked: Vec<_> = asked.map(|p| (p.partition, p.fetch_offset)).collect();
                let forgotten: Vec<_> =
                    fetch.forgotten_topics_data.iter().flat_map(|t| &t.partitions).collect();
                let (id, epoch) = (fetch.session_id, fetch.session_epoch);
                format!(", session {id} epoch {epoch}, from {asked:?}, forget {forgotten:?}")
            }
            Self::Produce(request) => {
                let partitions = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
                format!(" to {:?}", partitions.map(|p| p.index).collect::<Vec<_>>())
            }
            Self::ApiVersions(request) => match &request.cluster_id {
                Some(id) => format!(" for node {} of {id}", request.node_id),
                None => String::new(),
            },
            Self::Epochs(request) => format!(" about {:?}", request.topics),
            Self::Group(request) => request.details(),
            Self::Transaction(request) => request.details(),
            Self::Telemetry(request) => request.details(),
            Self::Share(request) => request.details(),
            Self::Other => String::new(),
        }
    }
}

/// The first versions in which the client throttles itself (KIP-219); before, the broker delayed the response.
const FIRST_THROTTLED_BY_CLIENT: [(ApiKey, i16); 10] = [
    (ApiKey::GetTelemetrySubscriptions, 0),
    (ApiKey::PushTelemetry, 0),
    (ApiKey::Produce, 6),
    (ApiKey::Fetch, 8),
    (ApiKey::ListOffsets, 3),
    (ApiKey::Metadata, 6),
    (ApiKey::FindCoordinator, 2),
    (ApiKey::ApiVersions, 2),
    (ApiKey::InitProducerId, 1),
    (ApiKey::OffsetForLeaderEpoch, 2),
];

impl Response {
    /// Returns the throttle time of the response in milliseconds.
    pub(super) fn throttle_ms(&self, api: ApiKey, version: i16, body: &[u8]) -> i32 {
        let reported =
            FIRST_THROTTLED_BY_CLIENT.iter().any(|(known, first)| *known == api && version >= *first);
        match self {
            _ if !reported => 0,
            Self::Produce(response) => response.throttle_time_ms,
            Self::ApiVersions(response) => response.throttle_time_ms,
            // All other responses begin with it.
            _ => body.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes)),
        }
    }

    pub(super) fn decode(api: ApiKey, version: i16, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if let Some(transaction) = TransactionResponse::decode(api, version, reader) {
            return transaction.map(Self::Transaction);
        }
        if let Some(telemetry) = TelemetryResponse::decode(api, version, reader) {
            return telemetry.map(|response| Self::Telemetry(Box::new(response)));
        }
        match api {
            ApiKey::ApiVersions => {
                api_versions::ApiVersionsResponse::decode(reader, version).map(Self::ApiVersions)
            }
            ApiKey::Produce => produce::ProduceResponse::decode(reader, version).map(Self::Produce),
            ApiKey::Fetch => fetch::FetchResponse::decode(reader, version).map(Self::Fetch),
            ApiKey::Metadata => metadata::MetadataResponse::decode(reader, version).map(Self::Metadata),
            ApiKey::OffsetForLeaderEpoch => {
                offset_for_leader_epoch::OffsetForLeaderEpochResponse::decode(reader, version)
                    .map(Self::Epochs)
            }
            api => match GroupResponse::decode(api, version, reader) {
                Some(response) => response.map(Self::Group),
                None => decode!(api, version, reader:
                    ListOffsets list_offsets ListOffsetsResponse,
                    FindCoordinator find_coordinator FindCoordinatorResponse,
                    DescribeGroups describe_groups DescribeGroupsResponse,
                    DescribeTransactions describe_transactions DescribeTransactionsResponse,
                    SaslHandshake sasl_handshake SaslHandshakeResponse,
                    SaslAuthenticate sasl_authenticate SaslAuthenticateResponse,
                    OffsetCommit offset_commit OffsetCommitResponse,
                    OffsetFetch offset_fetch OffsetFetchResponse,
                    LeaveGroup leave_group LeaveGroupResponse,
                    StreamsGroupHeartbeat streams_group_heartbeat StreamsGroupHeartbeatResponse,
                    StreamsGroupTopologyDescriptionUpdate
                        streams_group_topology_description_update
                        StreamsGroupTopologyDescriptionUpdateResponse,
                    ShareGroupHeartbeat share_group_heartbeat ShareGroupHeartbeatResponse,
                    ShareFetch share_fetch ShareFetchResponse,
                    ShareAcknowledge share_acknowledge ShareAcknowledgeResponse,
                ),
            },
        }
    }
}
