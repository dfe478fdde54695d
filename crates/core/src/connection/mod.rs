//! One connection to one broker, from resolving the host name to receiving responses.
//!
//! It handles frames, not records: it resolves and connects, negotiates the API versions, pipelines requests, matches
//! responses to them, detects timeouts, and backs off before it reconnects.
//!
//! # Pitfalls
//!
//! - A broker that closes an idle connection may be healthy or down. The client reconnects once and reports an error
//!   only if that fails (`used_connection_closed_while_idle_reconnects_once_without_error`).
//! - A listener that requires SASL answers ApiVersions and closes the connection at the first request: only a response to a
//!   request ends the back-off (`listener_that_closes_after_api_versions_is_backed_off_from`).
//! - A throttle time may begin in the middle of an authentication: its later messages wait, too
//!   (`later_messages_of_an_authentication_wait_for_a_throttle_time`).
//! - A request that times out closes its connection, and fails the requests behind it, which did not time out.
//!   Observers see the difference
//!   (`observer_sees_a_lost_response_once_with_the_reason`).

mod authenticate;
pub mod buffer;
pub mod frame;
mod handshake;
pub mod inflight;
mod read;
mod settings;
mod state;
mod statistics;
pub(crate) mod throttle;
mod timeouts;
pub mod versions;
mod write;

use core::net::SocketAddr;
use std::{collections::VecDeque, sync::Arc, time::Duration};

pub use self::settings::ConnectionSettings;
use ottla_protocol::vocabulary::NodeId;

use self::{authenticate::Authentication, state::State, statistics::ConnectionCounters, write::exchange};
use crate::{
    backoff::Backoff,
    connection::{
        buffer::BufferPool,
        frame::{Frame, FrameReader},
        inflight::{InFlight, InFlights},
        versions::Versions,
    },
    error::Error,
    machine::Instant,
    observer::Peer,
    rng::Rng,
};

/// A connection.
///
/// ```text
///            want()                 resolved            connected           versions known
///   Idle ───────────► Resolving ──────────► Connecting ─────────► Asking ───────────────► Ready
///    ▲                    │ failed              │ failed,          │ closed, garbage         │ closed, silent,
///    │ nothing to send    ▼                     ▼ next address     ▼                         ▼ garbage
///    └───────────────  BackingOff  ◄────────────┴──────────────────┴─────────────────────────┘
/// ```
///
/// With SASL, `Authenticating` is between `Asking` and `Ready`, and a connection without a token waits in `AwaitingToken`
/// before it resolves. With TLS, `Securing` is between `Connecting` and `Asking`: the driver performs the handshake, and the connection
/// waits for its end until the deadline of the connection setup. With a proxy (`proxy.url`) the proxy's host is resolved and connected
/// to, and `Tunnelling` follows `Connecting`: the driver asks the proxy for a connection to the broker.
#[derive(Debug)]
pub struct Connection {
    settings: Arc<ConnectionSettings>,
    host: String,
    port: u16,
    node_id: Option<NodeId>,
    /// The ID of the only cluster that may be on the other end, once it and the node are known (KIP-1242).
    cluster_id: Option<Arc<str>>,
    /// The socket's file descriptor, for observers.
    socket: Option<i32>,
    state: State,
    authentication: Authentication,
    /// The last re-authentication failed, but not because of its credentials: the broker may expect one message at a time.
    reauthenticates_in_steps: bool,
    is_needed: bool,
    addresses: VecDeque<SocketAddr>,
    untried_addresses: usize,
    /// The number of times that all addresses were tried since the host was resolved.
    pass: usize,
    /// An address of this pass did not respond.
    is_address_silent: bool,
    resolved_at: Option<Instant>,
    incoming: FrameReader,
    in_flight: InFlights,
    next_correlation_id: i32,
    versions: Versions,
    /// The level of the feature `transaction.version` that the broker reports, and the epoch of the features.
    transaction_version: (i16, i64),
    /// The number of times in a row that the peer closed the connection instead of reporting its versions.
    closed_while_asking: u32,
    /// The broker's versions are guessed until then.
    guess_until: Instant,
    /// True if the broker has reported its versions before.
    has_versions: bool,
    has_response: bool,
    /// The broker has responded to a request behind ApiVersions on this connection.
    has_served: bool,
    /// The broker throttles the client until then (KIP-219).
    throttled_until: Option<Instant>,
    backoff: Backoff,
    /// The number of attempts to connect in a row that failed.
    failed_setups: u32,
    /// The number of requests in a row that timed out.
    timeouts_in_a_row: u32,
    /// When requests could first be sent on this connection.
    ready_at: Instant,
    last_activity: Instant,
    /// The last activity before the requests for client metrics that are in flight alone.
    active_before_telemetry: Option<Instant>,
    /// True if this connection sent a request other than ApiVersions.
    was_used: bool,
    outputs: VecDeque<ConnectionOutput>,
    counters: Box<ConnectionCounters>,
    rng: Rng,
}

/// An action that a connection needs from its driver, or a report to its broker actor.
#[derive(Debug)]
pub enum ConnectionOutput {
    /// Resolve a host name; respond with [`Connection::handle_resolved`].
    Resolve {
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Open a socket; respond with [`Connection::handle_connected`] or [`Connection::handle_closed`].
    Connect(SocketAddr),
    /// Close the socket, or stop opening it.
    Close,
    /// Requests can be sent.
    Up,
    /// A request has timed out, and the connection goes on (`socket.max.fails`).
    TimedOut {
        /// The reason.
        error: Error,
        /// The request.
        request: InFlight,
    },
    /// The connection was closed, by either side, while nothing was in flight.
    Idle {
        /// True if the peer closed it and the connection reconnects, in case the broker is down.
        looks_again: bool,
    },
    /// The connection failed.
    Down {
        /// The reason.
        error: Error,
        /// The requests that were in flight, each with whether any of its bytes may have been sent.
        lost: Vec<(InFlight, bool)>,
    },
}

/// The response to a request.
#[derive(Debug)]
pub struct Response {
    /// The request, with its bytes.
    pub request: InFlight,
    /// The frame that holds the response.
    pub frame: Frame,
    /// The position in the frame at which the response's body starts.
    pub body: usize,
}

impl Response {
    /// Returns the response's body, without its header.
    pub fn body(&self) -> &[u8] {
        &self.frame.bytes[self.body..self.frame.len]
    }
}

impl Connection {
    /// Creates an idle connection to a host.
    pub fn new(
        settings: Arc<ConnectionSettings>,
        host: String,
        port: u16,
        node_id: Option<NodeId>,
        buffers: BufferPool,
        rng: Rng,
    ) -> Self {
        Self {
            incoming: FrameReader::new(settings.max_response_bytes, buffers),
            backoff: settings.backoff(),
            settings,
            host,
            port,
            node_id,
            cluster_id: None,
            socket: None,
            state: State::Idle,
            authentication: Authentication::None,
            reauthenticates_in_steps: false,
            is_needed: false,
            addresses: VecDeque::new(),
            untried_addresses: 0,
            pass: 0,
            is_address_silent: false,
            resolved_at: None,
            in_flight: InFlights::default(),
            next_correlation_id: 1,
            versions: Versions::default(),
            transaction_version: (0, -1),
            closed_while_asking: 0,
            guess_until: Instant::ZERO,
            has_versions: false,
            has_response: false,
            has_served: false,
            throttled_until: None,
            failed_setups: 0,
            timeouts_in_a_row: 0,
            ready_at: Instant::ZERO,
            last_activity: Instant::ZERO,
            active_before_telemetry: None,
            was_used: false,
            outputs: VecDeque::new(),
            counters: Box::default(),
            rng,
        }
    }

    /// Returns `host:port`, with the node ID if it is known.
    pub fn name(&self) -> String {
        self.peer().to_string()
    }

    /// Returns the other end, as observers see it.
    pub fn peer(&self) -> Peer<'_> {
        Peer {
            host: &self.host,
            port: self.port,
            node_id: self.node_id.map(NodeId::get),
            socket: self.socket,
        }
    }

    /// Sets the file descriptor of the socket that is being opened.
    pub const fn set_socket(&mut self, socket: Option<i32>) {
        self.socket = socket;
    }

    /// Returns true if the handshake is complete.
    pub const fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Returns true if requests can be sent: the broker does not throttle the client, and the connection is not in the
    /// middle of a re-authentication.
    pub fn may_send(&self) -> bool {
        self.is_ready() && self.throttled_until.is_none() && !self.authentication.is_blocking()
    }

    /// Stops sending on this connection for `time`, because the broker throttles the client.
    pub fn throttle(&mut self, now: Instant, time: Duration) {
        self.counters.throttle.record(time.as_millis() as u64);
        if matches!(self.state, State::Authenticating | State::Ready) {
            let until = now + time;
            self.throttled_until = Some(self.throttled_until.map_or(until, |known| known.max(until)));
            self.in_flight.throttle(until);
        }
    }

    /// Returns true if the connection waits before its next attempt.
    pub const fn is_backing_off(&self) -> bool {
        matches!(self.state, State::BackingOff { .. })
    }

    /// Returns the broker's API versions, once ready.
    pub const fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Returns the number of bytes that wait for the socket.
    pub const fn unsent_bytes(&self) -> usize {
        self.in_flight.unsent_bytes()
    }

    /// Returns the number of requests that are not completely written.
    pub fn unsent_requests(&self) -> usize {
        self.in_flight.len() - self.in_flight.written()
    }

    /// Returns the requests in flight.
    pub fn in_flight_mut(&mut self) -> &mut InFlights {
        &mut self.in_flight
    }

    /// Returns the next action for the driver or the broker actor.
    pub fn poll_output(&mut self) -> Option<ConnectionOutput> {
        self.outputs.pop_front()
    }

    /// Sets the broker's node ID.
    pub const fn set_node_id(&mut self, id: NodeId) {
        self.node_id = Some(id);
    }

    /// Returns the broker's node ID, if known.
    pub const fn node_id(&self) -> Option<NodeId> {
        self.node_id
    }
}
