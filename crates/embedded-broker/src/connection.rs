//! One client's connection to one broker.

use std::{collections::VecDeque, net::SocketAddr};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode, header::ResponseHeader, time::Instant};

use crate::{
    api::{fetch::PendingFetch, produce::PendingProduce, share_fetch::PendingShareFetch},
    faults::Struck,
    frame::{Frame, FrameWriter},
    inbox::Inbox,
    options::BrokerId,
};

/// Names a connection. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A connection's state. Requests are handled one after the other, as a broker does: while one waits for its answer, the
/// following ones stay in the inbox.
#[derive(Debug)]
pub(crate) struct Connection {
    pub broker: BrokerId,
    pub inbox: Inbox,
    pub pending: Option<Pending>,
    /// Answers that are late on purpose.
    pub outbox: VecDeque<(Instant, Frame)>,
    /// The connection is closed once the outbox is empty.
    pub closing: bool,
    /// Nothing is answered any more.
    pub mute: bool,
    /// Bytes of answers that the driver hasn't taken yet.
    pub untaken: usize,
    /// The driver can't get rid of what it has taken.
    pub held: bool,
    /// In the list of connections that may go on.
    pub ready: bool,
    /// The client's name and version, as its ApiVersions request said.
    pub software: Option<(String, String)>,
    /// Where the client is, if the driver said.
    pub peer: Option<SocketAddr>,
}

/// A request whose answer has to wait.
#[derive(Debug)]
pub(crate) enum Pending {
    Fetch(PendingFetch),
    Produce(PendingProduce),
    ShareFetch(PendingShareFetch),
    /// For the group that the member is in to finish its rebalance.
    Group(Request),
}

/// A connection that waits for something, and the request that does. A waiter whose request is over means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub connection: ConnectionId,
    pub request: u64,
}

/// Everything about a request but its body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub number: u64,
    pub connection: ConnectionId,
    pub broker: BrokerId,
    pub api: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: Option<String>,
    /// What is to go wrong.
    pub struck: Struck,
}

/// A client that asks faster than it takes answers has to wait from here on.
const UNTAKEN_LIMIT: usize = 16 << 20;
/// So many late answers are prepared at most.
const OUTBOX_LIMIT: usize = 1000;

impl Connection {
    pub fn new(broker: BrokerId) -> Self {
        Self {
            broker,
            inbox: Inbox::new(),
            pending: None,
            outbox: VecDeque::new(),
            closing: false,
            mute: false,
            untaken: 0,
            held: false,
            ready: false,
            software: None,
            peer: None,
        }
    }

    /// No further request is handled now.
    pub fn is_busy(&self) -> bool {
        self.pending.is_some()
            || self.closing
            || self.mute
            || self.held
            || self.untaken > UNTAKEN_LIMIT
            || self.outbox.len() >= OUTBOX_LIMIT
    }
}

impl Pending {
    pub fn request(&self) -> &Request {
        match self {
            Self::Fetch(pending) => &pending.request,
            Self::Produce(pending) => &pending.request,
            Self::ShareFetch(pending) => &pending.request,
            Self::Group(request) => request,
        }
    }
}

impl Request {
    /// An answer with its header written.
    pub fn answer(&self) -> FrameWriter {
        let mut writer = FrameWriter::new();
        let header = ResponseHeader {
            correlation_id: self.correlation_id.wrapping_add(self.struck.correlation_shift),
        };
        header.encode(self.api, self.version, &mut writer.buffer);
        writer
    }

    /// The error that a fault demands, or none.
    pub fn injected_error(&self) -> ErrorCode {
        self.struck.error.unwrap_or(ErrorCode::NONE)
    }

    pub fn throttle_ms(&self) -> i32 {
        i32::try_from(self.struck.throttle.as_millis()).unwrap_or(i32::MAX)
    }

    pub fn waiter(&self) -> Waiter {
        Waiter { connection: self.connection, request: self.number }
    }
}
