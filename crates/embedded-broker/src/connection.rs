//! One client's connection to one broker.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode, header::ResponseHeader, time::Instant};

use crate::{
    api::{
        fetch::PendingFetch,
        produce::{PendingAdmission, PendingProduce},
        share_fetch::PendingShareFetch,
    },
    faults::Struck,
    frame::{Frame, FrameWriter},
    inbox::Inbox,
    listeners::ListenerId,
    options::BrokerId,
    sasl::SaslState,
};

/// A connection ID. IDs are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The state of a connection. The broker handles one request at a time: while one waits, the following ones stay in the
/// inbox.
#[derive(Debug)]
pub(crate) struct Connection {
    pub broker: BrokerId,
    /// The ID of the cluster on the other end, if the addresses lead to several.
    pub cluster: Option<String>,
    /// The broker's listener that the client is connected to.
    pub listener: ListenerId,
    pub inbox: Inbox,
    pub pending: Option<Pending>,
    /// Responses that a fault delays.
    pub outbox: VecDeque<(Instant, Frame)>,
    /// The connection closes once the outbox is empty.
    pub closing: bool,
    /// The connection sends no more responses.
    pub mute: bool,
    /// The end of the throttle time of the last throttled response: until then no request is handled (KIP-219).
    pub throttled_until: Option<Instant>,
    /// Bytes of responses that the driver hasn't taken.
    pub untaken: usize,
    /// The driver can't write the responses that it has taken.
    pub held: bool,
    /// The client has closed its sending side.
    pub ended: bool,
    /// The size of the inbox's buffers, as included in the cluster's total.
    pub counted: usize,
    /// The time at which the first unhandled frame in the inbox began.
    pub unfinished_since: Option<Instant>,
    /// The connection is in the queue of connections to handle.
    pub ready: bool,
    /// The client's software name and version from its ApiVersions request.
    pub software: Option<(String, String)>,
    /// The client's address, if the driver has set it.
    pub peer: Option<SocketAddr>,
    /// The name that the client has proved, in a TLS handshake or by SASL.
    pub principal: Option<String>,
    /// The state of its authentication.
    pub sasl: SaslState,
    /// The connection closes after the response that is being made.
    pub ends_after_response: bool,
}

/// A request whose response has to wait.
#[derive(Debug)]
pub(crate) enum Pending {
    Fetch(PendingFetch),
    Produce(PendingProduce),
    ShareFetch(PendingShareFetch),
    /// The coordinator must write the markers of the last transaction first.
    Admission(PendingAdmission),
    /// The rebalance of the member's group must finish first.
    Group(Request),
}

/// A waiting request on a connection. A waiter whose request is finished is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub connection: ConnectionId,
    pub request: u64,
}

/// A request without its body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub number: u64,
    pub connection: ConnectionId,
    pub broker: BrokerId,
    pub api: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: Option<String>,
    /// The faults injected into the request.
    pub struck: Struck,
    /// The time that a quota makes the client wait.
    pub quota_throttle: Duration,
}

/// A client with more untaken response bytes than this must take them before its next request is handled.
const UNTAKEN_LIMIT: usize = 16 << 20;
/// The maximum number of delayed responses.
const OUTBOX_LIMIT: usize = 1000;

/// The first versions whose responses are sent before the throttle time; brokers that know only older ones wait and then
/// respond (KIP-219). The other APIs have no such versions that matter.
const FIRST_BEFORE_THROTTLE_TIME: [(ApiKey, i16); 14] = [
    (ApiKey::Produce, 6),
    (ApiKey::Fetch, 8),
    (ApiKey::ListOffsets, 3),
    (ApiKey::Metadata, 6),
    (ApiKey::OffsetCommit, 4),
    (ApiKey::OffsetFetch, 4),
    (ApiKey::FindCoordinator, 2),
    (ApiKey::JoinGroup, 3),
    (ApiKey::Heartbeat, 2),
    (ApiKey::LeaveGroup, 2),
    (ApiKey::SyncGroup, 2),
    (ApiKey::ApiVersions, 2),
    (ApiKey::InitProducerId, 1),
    (ApiKey::OffsetForLeaderEpoch, 2),
];

impl Connection {
    pub fn new(broker: BrokerId) -> Self {
        Self {
            broker,
            cluster: None,
            listener: ListenerId(0),
            inbox: Inbox::new(),
            pending: None,
            outbox: VecDeque::new(),
            closing: false,
            mute: false,
            throttled_until: None,
            untaken: 0,
            held: false,
            ended: false,
            counted: 0,
            unfinished_since: None,
            ready: false,
            software: None,
            peer: None,
            principal: None,
            sasl: SaslState::None,
            ends_after_response: false,
        }
    }

    /// Returns true if no further request can be handled now.
    pub fn is_busy(&self) -> bool {
        self.pending.is_some()
            || self.closing
            || self.mute
            || self.held
            || self.throttled_until.is_some()
            || self.untaken > UNTAKEN_LIMIT
            || self.outbox.len() >= OUTBOX_LIMIT
    }
}

impl Pending {
    pub fn request(&self) -> &Request {
        match self {
            Self::Fetch(pending) => &pending.request,
            Self::Produce(pending) => &pending.request,
            Self::Admission(pending) => &pending.request,
            Self::ShareFetch(pending) => &pending.request,
            Self::Group(request) => request,
        }
    }
}

impl Request {
    /// Starts a response with its header.
    pub fn start_response(&self) -> FrameWriter {
        let mut writer = FrameWriter::new();
        let header = ResponseHeader {
            correlation_id: self.correlation_id.wrapping_add(self.struck.correlation_shift),
        };
        header.encode(self.api, self.version, &mut writer.buffer);
        writer
    }

    /// Returns the error that a fault injects, or none.
    pub fn injected_error(&self) -> ErrorCode {
        self.struck.error.unwrap_or(ErrorCode::NONE)
    }

    pub fn throttle_ms(&self) -> i32 {
        let throttle = self.struck.throttle.max(self.quota_throttle);
        i32::try_from(throttle.as_millis()).unwrap_or(i32::MAX)
    }

    /// Returns how long no request of the connection is handled after the response.
    pub fn mute_time(&self) -> Duration {
        let first = FIRST_BEFORE_THROTTLE_TIME.iter().find(|(api, _)| *api == self.api);
        let is_over = first.is_some_and(|(_, first)| self.version < *first);
        let struck = if is_over { Duration::ZERO } else { self.struck.throttle };
        struck.max(self.quota_throttle)
    }

    pub fn waiter(&self) -> Waiter {
        Waiter { connection: self.connection, request: self.number }
    }
}
