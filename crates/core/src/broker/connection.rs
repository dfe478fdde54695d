//! One connection to one broker, from the host name to answers.
//!
//! It speaks frames, not records: it finds an address, connects, learns the broker's versions, pipelines requests,
//! matches answers to them, notices silence, and waits before it tries again.

use core::net::SocketAddr;
use std::{
    collections::{BTreeMap, VecDeque},
    io::IoSlice,
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse},
    header::{RequestHeader, ResponseHeader},
    primitive::Reader,
};

use super::{
    buffer::BufferPool,
    frame::{Frame, FrameError, FrameReader},
    inflight::{InFlight, InFlights, Overdue, Payload, RequestTag},
    throttle::FIRST_API_VERSIONS,
    versions::Versions,
};
use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    mutation::{Mutant, Mutation},
    observer::{Exchange, Observer, Peer},
    produce::request::ProduceFrame,
    rng::Rng,
    stats::{BrokerStatistics, Window},
};

/// What a connection needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// `client.id`.
    pub client_id: String,
    /// `client.software.name` as told to the broker.
    pub software_name: String,
    /// `client.software.version`.
    pub software_version: String,
    /// `receive.message.max.bytes`.
    pub max_response_bytes: usize,
    /// `socket.connection.setup.timeout.ms`.
    pub setup_timeout: Duration,
    /// `socket.timeout.ms`: how long a broker may take to answer, where the request does not say.
    pub request_timeout: Duration,
    /// `reconnect.backoff.ms`.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`.
    pub reconnect_backoff_max: Duration,
    /// `connections.max.idle.ms`; `None` keeps idle connections.
    pub max_idle: Option<Duration>,
    /// `broker.address.ttl`: how long a resolved address is believed.
    pub address_ttl: Duration,
    /// `api.version.request`.
    pub ask_versions: bool,
    /// `api.version.request.timeout.ms`.
    pub ask_versions_timeout: Duration,
    /// `broker.version.fallback`.
    pub fallback_release: String,
    /// `api.version.fallback.ms`: so long after a broker could not be asked it is taken for one of that release.
    pub fallback_for: Duration,
    /// Highest versions to use of some APIs, for tests and measurements.
    pub version_caps: Vec<(ApiKey, i16)>,
    /// Who sees what passes.
    pub observer: Option<Arc<dyn Observer>>,
    /// A deliberate mistake, for the simulator's tests.
    pub mutation: Mutation,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            client_id: "ottla".to_owned(),
            software_name: "ottla".to_owned(),
            software_version: env!("CARGO_PKG_VERSION").to_owned(),
            max_response_bytes: 100_000_000,
            setup_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            reconnect_backoff: Duration::from_millis(100),
            reconnect_backoff_max: Duration::from_secs(10),
            max_idle: None,
            address_ttl: Duration::from_secs(1),
            ask_versions: true,
            ask_versions_timeout: Duration::from_secs(10),
            fallback_release: "0.10.0".to_owned(),
            fallback_for: Duration::ZERO,
            version_caps: Vec::new(),
            observer: None,
            mutation: Mutation::NONE,
        }
    }
}

/// A connection.
///
/// ```text
///            want()                 resolved            connected           versions known
///   Idle ───────────► Resolving ──────────► Connecting ─────────► Asking ───────────────► Ready
///    ▲                    │ failed              │ failed,          │ closed, garbage         │ closed, silent,
///    │ nobody wants it    ▼                     ▼ next address     ▼                         ▼ garbage
///    └───────────────  BackingOff  ◄────────────┴──────────────────┴─────────────────────────┘
/// ```
#[derive(Debug)]
pub struct Connection {
    settings: Arc<ConnectionSettings>,
    host: String,
    port: u16,
    node_id: Option<i32>,
    /// The socket's number, for observers.
    socket: Option<i32>,
    state: State,
    wanted: bool,
    addresses: VecDeque<SocketAddr>,
    untried_addresses: usize,
    resolved_at: Option<Instant>,
    incoming: FrameReader,
    in_flight: InFlights,
    next_correlation_id: i32,
    versions: Versions,
    /// How often in a row the peer closed the connection instead of telling its versions.
    closed_while_asking: u32,
    /// Until then its versions are guessed.
    guess_until: Instant,
    /// The broker has told its versions before, so it can.
    has_told_versions: bool,
    answered: bool,
    /// The broker asked to be left alone until then (KIP-219).
    throttled_until: Option<Instant>,
    backoff: Backoff,
    last_activity: Instant,
    /// Something was asked on this connection, and not only for the versions.
    was_used: bool,
    outputs: VecDeque<ConnectionOutput>,
    counters: Box<ConnectionCounters>,
    rng: Rng,
}

/// What a connection counts, per request.
#[derive(Debug)]
struct ConnectionCounters {
    /// The state at the last look, and since when.
    state: &'static str,
    state_since: Instant,
    requests: BTreeMap<&'static str, i64>,
    sent: i64,
    sent_bytes: i64,
    sent_at: Option<Instant>,
    lost: i64,
    timeouts: i64,
    received: i64,
    received_bytes: i64,
    received_at: Option<Instant>,
    bad_answers: i64,
    unexpected_answers: i64,
    connects: i64,
    disconnects: i64,
    to_write: Window,
    round_trip: Window,
    throttle: Window,
}

impl Default for ConnectionCounters {
    fn default() -> Self {
        Self {
            state: "INIT",
            state_since: Instant::ZERO,
            requests: BTreeMap::new(),
            sent: 0,
            sent_bytes: 0,
            sent_at: None,
            lost: 0,
            timeouts: 0,
            received: 0,
            received_bytes: 0,
            received_at: None,
            bad_answers: 0,
            unexpected_answers: 0,
            connects: 0,
            disconnects: 0,
            to_write: Window::default(),
            round_trip: Window::default(),
            throttle: Window::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    BackingOff { until: Instant },
    Resolving { deadline: Instant },
    Connecting { deadline: Instant },
    Asking,
    Ready,
}

/// What a connection wants from its driver, or tells its owner.
#[derive(Debug)]
pub enum ConnectionOutput {
    /// Resolve a host name; answer with [`Connection::handle_resolved`].
    Resolve {
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Open a socket; answer with [`Connection::handle_connected`] or [`Connection::handle_closed`].
    Connect(SocketAddr),
    /// Close the socket, or stop opening it.
    Close,
    /// Requests can be sent.
    Up,
    /// The connection was closed, by either side, while nothing was under way.
    Idle {
        /// The peer closed it, and is connected to again: it may be gone.
        looks_again: bool,
    },
    /// The connection failed. Requests that were in flight come with it, and whether bytes of each may have left.
    Down {
        /// Why.
        error: Error,
        /// What was in flight.
        lost: Vec<(InFlight, bool)>,
    },
}

/// An answer to a request.
#[derive(Debug)]
pub struct Response {
    /// The request, with its bytes.
    pub request: InFlight,
    /// The frame that holds the answer.
    pub frame: Frame,
    /// Where the answer's body starts in the frame.
    pub body: usize,
}

impl Response {
    /// The answer's body, without its header.
    pub fn body(&self) -> &[u8] {
        &self.frame.bytes[self.body..self.frame.len]
    }
}

/// A broker that never told its versions and closed the connection so often in a row when it was asked is taken for one
/// of `broker.version.fallback`.
const GUESS_AFTER: u32 = 3;
/// Before each frame, its length.
const LENGTH_BYTES: usize = 4;
/// A connection that is closed after so long without a byte was idle, and did not fail.
const QUIET: Duration = Duration::from_secs(1);

impl Connection {
    /// An idle connection to a host.
    pub fn new(
        settings: Arc<ConnectionSettings>,
        host: String,
        port: u16,
        node_id: Option<i32>,
        buffers: BufferPool,
        rng: Rng,
    ) -> Self {
        Self {
            incoming: FrameReader::new(settings.max_response_bytes, buffers),
            backoff: Backoff::new(settings.reconnect_backoff, settings.reconnect_backoff_max),
            settings,
            host,
            port,
            node_id,
            socket: None,
            state: State::Idle,
            wanted: false,
            addresses: VecDeque::new(),
            untried_addresses: 0,
            resolved_at: None,
            in_flight: InFlights::default(),
            next_correlation_id: 1,
            versions: Versions::default(),
            closed_while_asking: 0,
            guess_until: Instant::ZERO,
            has_told_versions: false,
            answered: false,
            throttled_until: None,
            last_activity: Instant::ZERO,
            was_used: false,
            outputs: VecDeque::new(),
            counters: Box::default(),
            rng,
        }
    }

    /// `host:port`, with the node's id where it is known.
    pub fn name(&self) -> String {
        self.peer().to_string()
    }

    fn peer(&self) -> Peer<'_> {
        Peer { host: &self.host, port: self.port, node_id: self.node_id, socket: self.socket }
    }

    /// What the system calls the socket that is being opened.
    pub const fn set_socket(&mut self, socket: Option<i32>) {
        self.socket = socket;
    }

    /// True if requests can be sent.
    pub const fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// True if requests can be sent, and the broker did not ask to be left alone.
    pub const fn may_send(&self) -> bool {
        self.is_ready() && self.throttled_until.is_none()
    }

    /// The broker asks to be left alone for so long: nothing is sent on this connection before.
    pub fn hold_back(&mut self, now: Instant, time: Duration) {
        self.counters.throttle.record(time.as_millis() as u64);
        if self.is_ready() && !self.settings.mutation.is(Mutant::IgnoreThrottle) {
            let until = now + time;
            self.throttled_until = Some(self.throttled_until.map_or(until, |known| known.max(until)));
            self.in_flight.hold_back(until);
        }
    }

    /// True if it is waiting before its next attempt.
    pub const fn is_backing_off(&self) -> bool {
        matches!(self.state, State::BackingOff { .. })
    }

    /// The broker's versions, once ready.
    pub const fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Bytes that wait for the socket.
    pub const fn unsent_bytes(&self) -> usize {
        self.in_flight.unsent_bytes()
    }

    /// The requests in flight.
    pub fn in_flight_mut(&mut self) -> &mut InFlights {
        &mut self.in_flight
    }

    /// Somebody wants to send: connect unless connected, connecting or backing off.
    pub fn want(&mut self, now: Instant) {
        self.wanted = true;
        if self.state == State::Idle {
            self.start(now);
        }
    }

    /// The broker moved to another address.
    pub fn set_address(&mut self, now: Instant, host: &str, port: u16) {
        if self.host == host && self.port == port {
            return;
        }
        host.clone_into(&mut self.host);
        self.port = port;
        self.addresses.clear();
        self.resolved_at = None;
        match self.state {
            State::Idle => {}
            State::BackingOff { .. } => self.state = State::BackingOff { until: now },
            _ => self.fail(now, Error::new(ErrorKind::Disconnected, "the broker's address changed")),
        }
    }

    /// Forgets the host's addresses, and connects again if there is a connection.
    pub fn reconnect(&mut self, now: Instant) {
        self.addresses.clear();
        self.resolved_at = None;
        if matches!(self.state, State::Asking | State::Ready) {
            let detail = "starting again from the bootstrap servers";
            self.fail(now, Error::new(ErrorKind::Disconnected, detail));
        }
        self.want(now);
        if let State::BackingOff { .. } = self.state {
            self.state = State::BackingOff { until: now };
        }
    }

    /// Queues a request whose body `encode` appends. Only when [`Connection::is_ready`].
    pub fn send(
        &mut self,
        now: Instant,
        api: ApiKey,
        version: i16,
        tag: RequestTag,
        timeout: Duration,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), ottla_protocol::primitive::EncodeError>,
    ) -> Result<(), Error> {
        let correlation_id = self.next_correlation_id();
        let mut bytes = vec![0; 4];
        self.request_header(api, version, correlation_id, &mut bytes);
        encode(&mut bytes).map_err(|error| {
            Error::new(ErrorKind::Bug, format!("can't encode {} v{version}: {error}", api.name()))
        })?;
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.push(now, api, version, tag, Payload::Bytes(bytes), correlation_id, true, timeout);
        Ok(())
    }

    /// Queues a ProduceRequest that `build` makes from the frame's start: room for the length, and the header.
    pub fn send_produce<E>(
        &mut self,
        now: Instant,
        version: i16,
        expects_answer: bool,
        timeout: Duration,
        build: impl FnOnce(Vec<u8>) -> Result<Box<ProduceFrame>, E>,
    ) -> Result<(), E> {
        let correlation_id = self.next_correlation_id();
        let mut bytes = vec![0; 4];
        self.request_header(ApiKey::Produce, version, correlation_id, &mut bytes);
        let payload = Payload::Produce(build(bytes)?);
        let tag = RequestTag::Produce;
        self.push(now, ApiKey::Produce, version, tag, payload, correlation_id, expects_answer, timeout);
        Ok(())
    }

    /// Where the driver reads the next bytes to.
    pub fn read_space(&mut self) -> &mut [u8] {
        self.incoming.space()
    }

    /// The driver read `n` bytes into [`Connection::read_space`]; drain [`Connection::next_response`].
    pub fn handle_read(&mut self, now: Instant, n: usize) {
        self.last_activity = now;
        self.counters.received_bytes += n as i64;
        self.counters.received_at = Some(now);
        self.incoming.filled(n);
    }

    /// The next answer, if one is complete. An error has closed the connection.
    pub fn next_response(&mut self, now: Instant) -> Option<Response> {
        loop {
            if !matches!(self.state, State::Asking | State::Ready) {
                return None;
            }
            let frame = match self.incoming.next_frame() {
                Ok(frame) => frame?,
                Err(error) => {
                    let kind = match error {
                        FrameError::Http | FrameError::Tls => ErrorKind::NotKafka,
                        _ if !self.answered => ErrorKind::NotKafka,
                        _ => ErrorKind::BadResponse,
                    };
                    self.fail(now, Error::new(kind, error.to_string()));
                    return None;
                }
            };
            let matched = self.match_response(frame);
            if let Ok(response) = &matched {
                self.counters.received += 1;
                self.counters.round_trip.record_micros(now.saturating_since(response.request.queued_at));
                if let Some(observer) = &self.settings.observer {
                    let round_trip = now.saturating_since(response.request.written_at);
                    let size = LENGTH_BYTES + response.frame.len;
                    observer.response_received(&self.peer(), &exchange(&response.request, size), round_trip);
                }
            }
            match matched {
                Ok(response) if response.request.tag == RequestTag::Versions => {
                    self.handle_versions(now, &response);
                }
                Ok(response) => {
                    self.answered = true;
                    return Some(response);
                }
                Err(_) if self.settings.mutation.is(Mutant::IgnoreNonsense) => {}
                Err(error) => {
                    self.fail(now, error);
                    return None;
                }
            }
        }
    }

    /// Fills `slices` with the bytes to write next.
    pub fn unsent<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.in_flight.fill(slices)
    }

    /// The socket took `n` bytes; requests that expect no answer and are written are handed out.
    pub fn handle_written(&mut self, now: Instant, n: usize, over: &mut Vec<InFlight>) {
        self.last_activity = now;
        let (before, over_before) = (self.in_flight.written(), over.len());
        self.in_flight.advance(now, n, over);
        let counters = &mut *self.counters;
        counters.sent_bytes += n as i64;
        counters.sent_at = Some(now);
        let written = self.in_flight.iter().take(self.in_flight.written()).skip(before);
        for request in written.chain(&over[over_before..]) {
            counters.sent += 1;
            *counters.requests.entry(request.api.name()).or_default() += 1;
            counters.to_write.record_micros(now.saturating_since(request.queued_at));
        }
        if let Some(observer) = &self.settings.observer {
            let written = self.in_flight.iter().take(self.in_flight.written()).skip(before);
            for request in written.chain(&over[over_before..]) {
                observer.request_sent(&self.peer(), &exchange(request, request.payload.len()));
            }
        }
    }

    /// The addresses of the host, or why there are none.
    pub fn handle_resolved(&mut self, now: Instant, result: Result<Vec<SocketAddr>, String>) {
        let State::Resolving { .. } = self.state else { return };
        match result {
            Ok(addresses) if !addresses.is_empty() => {
                // Keep the rotation going where the list did not change, so that a dead first address is not retried first.
                if !(self.addresses.len() == addresses.len()
                    && addresses.iter().all(|address| self.addresses.contains(address)))
                {
                    self.addresses = addresses.into();
                }
                self.resolved_at = Some(now);
                self.untried_addresses = self.addresses.len();
                self.connect_next(now);
            }
            Ok(_) => self.fail(now, Error::new(ErrorKind::Resolve, format!("{} has no address", self.host))),
            Err(reason) => self.fail(now, Error::new(ErrorKind::Resolve, reason)),
        }
    }

    /// The socket is connected.
    pub fn handle_connected(&mut self, now: Instant) {
        let State::Connecting { .. } = self.state else { return };
        self.last_activity = now;
        self.untried_addresses = 0;
        self.answered = false;
        self.incoming.reset();
        let has_given_up = self.closed_while_asking >= GUESS_AFTER;
        if has_given_up {
            self.closed_while_asking = 0;
            self.guess_until = now + self.settings.fallback_for;
        }
        if !self.settings.ask_versions || has_given_up || now < self.guess_until {
            self.versions = Versions::of_release(&self.settings.fallback_release);
            self.become_ready();
            return;
        }
        self.state = State::Asking;
        self.ask_versions(now, *ApiKey::ApiVersions.versions().end());
    }

    /// The socket was closed, or could not be opened.
    pub fn handle_closed(&mut self, now: Instant, reason: &str) {
        match self.state {
            State::Connecting { .. } if self.untried_addresses > 0 => {
                self.outputs.push_back(ConnectionOutput::Close);
                self.connect_next(now);
            }
            State::Connecting { .. } => self.fail(now, Error::new(ErrorKind::Connect, reason)),
            State::Asking => {
                // A broker before 0.10 closes the connection on a request that it does not know; so may any network.
                if !self.has_told_versions {
                    self.closed_while_asking += 1;
                }
                let detail = format!(
                    "{reason}, while asking for the broker's API versions; a broker before 0.10 does that, \
                     and so does a listener that wants TLS"
                );
                self.fail(now, Error::new(ErrorKind::Disconnected, detail));
            }
            // Brokers and load balancers close what nobody uses. Who closes at once is another matter.
            State::Ready if self.in_flight.is_empty() && now - self.last_activity >= QUIET => {
                // Or they are gone, and nobody would hear of it before they are needed. Once is enough: who closes again what
                // was not used is alive.
                let looks_again = self.was_used;
                self.become_idle(looks_again);
                if looks_again {
                    self.want(now);
                }
            }
            State::Ready => self.fail(now, Error::new(ErrorKind::Disconnected, reason)),
            State::Idle | State::BackingOff { .. } | State::Resolving { .. } => {}
        }
    }

    /// The owner found that the peer breaks the protocol.
    pub fn handle_misbehaviour(&mut self, now: Instant, error: Error) {
        if matches!(self.state, State::Asking | State::Ready) {
            self.fail(now, error);
        }
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.throttled_until.is_some_and(|until| until <= now) {
            self.throttled_until = None;
        }
        match self.state {
            State::BackingOff { until } if until <= now => {
                if self.wanted {
                    self.start(now);
                } else {
                    self.state = State::Idle;
                }
            }
            State::Resolving { deadline } if deadline <= now => {
                self.fail(now, Error::new(ErrorKind::Resolve, "the resolver did not answer in time"));
            }
            State::Connecting { deadline } if deadline <= now => {
                self.outputs.push_back(ConnectionOutput::Close);
                if self.untried_addresses > 0 {
                    self.connect_next(now);
                } else {
                    let detail =
                        format!("no connection after {} ms", self.settings.setup_timeout.as_millis());
                    self.fail(now, Error::new(ErrorKind::Connect, detail));
                }
            }
            State::Asking | State::Ready => {
                if let Some(Overdue { api, since, unsent }) = self.in_flight.overdue(now)
                    && !self.settings.mutation.is(Mutant::NeverTimeOut)
                {
                    let waited = (now - since).as_millis();
                    let detail = if unsent {
                        format!("the request could not be written: the peer took no byte for {waited} ms")
                    } else {
                        format!("no answer for {waited} ms")
                    };
                    self.fail(now, Error::new(ErrorKind::RequestTimedOut, detail).with_api(api.name()));
                } else if let Some(idle_at) = self.idle_at()
                    && idle_at <= now
                {
                    self.counters.disconnects += 1;
                    self.become_idle(false);
                }
            }
            _ => {}
        }
    }

    /// When [`Connection::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle => None,
            State::BackingOff { until } => Some(until),
            State::Resolving { deadline } | State::Connecting { deadline } => Some(deadline),
            State::Asking | State::Ready if self.settings.mutation.is(Mutant::NeverTimeOut) => self.idle_at(),
            State::Asking | State::Ready => {
                let idle_or_sending = earliest(self.idle_at(), self.throttled_until);
                earliest(self.in_flight.earliest_deadline(), idle_or_sending)
            }
        }
    }

    /// What the driver or the owner has to do next.
    pub fn poll_output(&mut self) -> Option<ConnectionOutput> {
        self.outputs.pop_front()
    }

    /// Closes for good; what is in flight is handed out.
    pub fn shut_down(&mut self, now: Instant) -> Vec<(InFlight, bool)> {
        if !matches!(self.state, State::Idle | State::BackingOff { .. }) {
            self.outputs.push_back(ConnectionOutput::Close);
        }
        self.state = State::Idle;
        self.wanted = false;
        self.lose(now, ErrorKind::Closed)
    }

    /// Remembers since when the connection is in its state; called after anything happened.
    pub fn note_state(&mut self, now: Instant) {
        let state = match self.state {
            State::Idle if self.counters.connects == 0 => "INIT",
            State::Idle | State::BackingOff { .. } => "DOWN",
            State::Resolving { .. } | State::Connecting { .. } => "CONNECT",
            State::Asking => "APIVERSION_QUERY",
            State::Ready => "UP",
        };
        if self.counters.state != state
            && let Some(observer) = &self.settings.observer
        {
            observer.state_changed(&self.peer(), state);
        }
        if self.counters.state != state || self.counters.state_since == Instant::ZERO {
            self.counters.state = state;
            self.counters.state_since = now;
        }
    }

    /// What is known of the connection; with `reset` its windows start anew.
    pub fn statistics(&mut self, now: Instant, reset: bool) -> BrokerStatistics {
        let age = |since: Instant| i64::try_from(now.saturating_since(since).as_micros()).unwrap_or(i64::MAX);
        let written = self.in_flight.written();
        let messages = |requests: &mut dyn Iterator<Item = &InFlight>| {
            requests.map(|r| r.payload.messages() as i64).sum()
        };
        let name = self.name();
        let counters = &mut *self.counters;
        BrokerStatistics {
            nodeid: self.node_id.map_or(-1, i64::from),
            nodename: format!("{}:{}", self.host, self.port),
            source: if self.node_id.is_some() { "learned" } else { "configured" },
            state: counters.state,
            stateage: age(counters.state_since),
            outbuf_cnt: (self.in_flight.iter().count() - written) as i64,
            outbuf_msg_cnt: messages(&mut self.in_flight.iter().skip(written)),
            waitresp_cnt: written as i64,
            waitresp_msg_cnt: messages(&mut self.in_flight.iter().take(written)),
            tx: counters.sent,
            tx_bytes: counters.sent_bytes,
            tx_errors: counters.lost,
            tx_idle: counters.sent_at.map_or(-1, age),
            request_timeouts: counters.timeouts,
            rx: counters.received,
            rx_bytes: counters.received_bytes,
            rx_errors: counters.bad_answers,
            rx_correlation_id_errors: counters.unexpected_answers,
            rx_idle: counters.received_at.map_or(-1, age),
            requests: counters.requests.clone(),
            connects: counters.connects,
            disconnects: counters.disconnects,
            outbuf_latency: counters.to_write.snapshot(reset),
            rtt: counters.round_trip.snapshot(reset),
            throttle: counters.throttle.snapshot(reset),
            name,
            ..BrokerStatistics::default()
        }
    }

    /// The broker's id became known.
    pub const fn set_node_id(&mut self, id: i32) {
        self.node_id = Some(id);
    }

    /// The broker's id, where it is known.
    pub const fn node_id(&self) -> Option<i32> {
        self.node_id
    }

    fn start(&mut self, now: Instant) {
        self.was_used = false;
        let fresh = self.resolved_at.is_some_and(|at| now - at < self.settings.address_ttl);
        if fresh && !self.addresses.is_empty() {
            self.untried_addresses = self.addresses.len();
            self.connect_next(now);
        } else {
            self.state = State::Resolving { deadline: now + self.settings.setup_timeout };
            self.outputs.push_back(ConnectionOutput::Resolve { host: self.host.clone(), port: self.port });
        }
    }

    fn connect_next(&mut self, now: Instant) {
        let address = self.addresses[0];
        self.addresses.rotate_left(1);
        self.untried_addresses -= 1;
        self.state = State::Connecting { deadline: now + self.settings.setup_timeout };
        self.counters.connects += 1;
        self.outputs.push_back(ConnectionOutput::Connect(address));
    }

    fn ask_versions(&mut self, now: Instant, version: i16) {
        let request = ApiVersionsRequest {
            client_software_name: self.settings.software_name.clone(),
            client_software_version: self.settings.software_version.clone(),
        };
        let timeout = self.settings.ask_versions_timeout;
        if let Err(error) =
            self.send(now, ApiKey::ApiVersions, version, RequestTag::Versions, timeout, |out| {
                request.encode(version, out)
            })
        {
            self.fail(now, error);
        }
    }

    fn handle_versions(&mut self, now: Instant, response: &Response) {
        let mut reader = Reader::new(response.body());
        let asked = response.request.version;
        // A broker that does not know the version that was asked in answers in version 0.
        let code = response.body().first_chunk::<2>().map(|bytes| ErrorCode(i16::from_be_bytes(*bytes)));
        let version = if code == Some(ErrorCode::UNSUPPORTED_VERSION) { 0 } else { asked };
        let answer = match ApiVersionsResponse::decode(&mut reader, version) {
            Ok(answer) => answer,
            Err(error) => {
                let detail = format!("the answer to ApiVersions can't be decoded: {error}");
                return self.fail(now, Error::new(ErrorKind::NotKafka, detail).with_api("ApiVersions"));
            }
        };
        self.answered = true;
        if answer.error_code == ErrorCode::UNSUPPORTED_VERSION && asked > 0 {
            let offered = answer.api_keys.iter().find(|row| row.api_key == ApiKey::ApiVersions as i16);
            let version = offered.map_or(0, |row| row.max_version.clamp(0, asked - 1));
            return self.ask_versions(now, version);
        }
        if answer.error_code != ErrorCode::NONE {
            return self.fail(now, Error::broker(answer.error_code, None).with_api("ApiVersions"));
        }
        self.has_told_versions = true;
        self.closed_while_asking = 0;
        self.versions =
            Versions::new(answer.api_keys.iter().map(|row| (row.api_key, row.min_version, row.max_version)));
        self.become_ready();
        if let Ok(millis) = u64::try_from(answer.throttle_time_ms)
            && version >= FIRST_API_VERSIONS
            && millis > 0
        {
            self.hold_back(now, Duration::from_millis(millis));
        }
    }

    fn become_ready(&mut self) {
        if self.settings.mutation.is(Mutant::UnsupportedVersion) && !self.versions.is_guessed() {
            self.versions = Versions::new([
                (ApiKey::Produce as i16, 3, 13),
                (ApiKey::Fetch as i16, 4, 18),
                (ApiKey::ListOffsets as i16, 1, 11),
                (ApiKey::Metadata as i16, 0, 13),
                (ApiKey::InitProducerId as i16, 0, 5),
            ]);
        }
        for (api, highest) in &self.settings.version_caps {
            self.versions.cap(*api, *highest);
        }
        self.state = State::Ready;
        self.throttled_until = None;
        self.backoff.reset();
        self.outputs.push_back(ConnectionOutput::Up);
    }

    fn match_response(&mut self, frame: Frame) -> Result<Response, Error> {
        let bytes = &frame.bytes[..frame.len];
        let kind = if self.answered { ErrorKind::BadResponse } else { ErrorKind::NotKafka };
        let Some(expected) = self.in_flight.front() else {
            self.counters.unexpected_answers += 1;
            return Err(Error::new(kind, "an answer to nothing that was asked"));
        };
        let mut reader = Reader::new(bytes);
        let header = ResponseHeader::decode(&mut reader, expected.api, expected.version)
            .map_err(|error| Error::new(kind, format!("the response header can't be decoded: {error}")))?;
        if header.correlation_id != expected.correlation_id {
            let detail = format!(
                "correlation id {} where {} was expected",
                header.correlation_id, expected.correlation_id
            );
            return Err(Error::new(kind, detail).with_api(expected.api.name()));
        }
        let body = reader.position();
        let Some(request) = self.in_flight.pop_written() else {
            return Err(Error::new(kind, "an answer to a request that was not sent yet"));
        };
        Ok(Response { request, frame, body })
    }

    fn fail(&mut self, now: Instant, error: Error) {
        let was_connected = matches!(self.state, State::Asking | State::Ready);
        if !matches!(self.state, State::Idle | State::BackingOff { .. } | State::Resolving { .. }) {
            self.outputs.push_back(ConnectionOutput::Close);
        }
        let mut wait = self.backoff.next(&mut self.rng);
        if self.settings.mutation.is(Mutant::ReconnectWithoutBackoff) {
            wait = Duration::ZERO;
        }
        if self.settings.mutation.is(Mutant::OwnRandomness) {
            wait += Duration::from_micros(self.settings.mutation.unforeseen() % 1000);
        }
        self.state = State::BackingOff { until: now + wait };
        self.wanted = false;
        self.incoming.reset();
        let lost = self.lose(now, error.kind());
        self.counters.disconnects += i64::from(was_connected);
        self.counters.lost += lost.len() as i64;
        match error.kind() {
            ErrorKind::RequestTimedOut => self.counters.timeouts += 1,
            ErrorKind::BadResponse | ErrorKind::NotKafka => self.counters.bad_answers += 1,
            _ => {}
        }
        let error = error.with_peer(self.name()).with_next_attempt(wait);
        self.outputs.push_back(ConnectionOutput::Down { error, lost });
    }

    /// Takes all that is in flight, and tells whose answers won't come.
    fn lose(&mut self, now: Instant, why: ErrorKind) -> Vec<(InFlight, bool)> {
        if let Some(observer) = &self.settings.observer {
            let written = self.in_flight.iter().take(self.in_flight.written());
            for request in written.filter(|request| request.expects_answer) {
                let why = match why {
                    // It only had the connection in common with the request that took too long.
                    ErrorKind::RequestTimedOut if !request.is_overdue(now) => ErrorKind::Disconnected,
                    why => why,
                };
                observer.response_lost(&self.peer(), &exchange(request, request.payload.len()), why);
            }
        }
        self.in_flight.drain()
    }

    fn become_idle(&mut self, looks_again: bool) {
        self.state = State::Idle;
        self.wanted = false;
        self.incoming.reset();
        self.outputs.push_back(ConnectionOutput::Close);
        self.outputs.push_back(ConnectionOutput::Idle { looks_again });
    }

    fn idle_at(&self) -> Option<Instant> {
        let max_idle = self.settings.max_idle?;
        self.in_flight.is_empty().then(|| self.last_activity + max_idle)
    }

    fn next_correlation_id(&mut self) -> i32 {
        let id = self.next_correlation_id;
        if self.settings.mutation.is(Mutant::RepeatCorrelationId) && id % 10 == 9 {
            self.next_correlation_id -= 1;
        }
        self.next_correlation_id = self.next_correlation_id.checked_add(1).unwrap_or(1);
        id
    }

    fn request_header(&self, api: ApiKey, version: i16, correlation_id: i32, out: &mut Vec<u8>) {
        let mut header = RequestHeader {
            api_key: api as i16,
            api_version: version,
            correlation_id,
            client_id: Some(self.settings.client_id.clone()),
        };
        // Only a client id beyond 32,767 bytes can't be encoded; brokers do well without one.
        if header.encode(out).is_err() {
            header.client_id = None;
            let _ = header.encode(out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one struct, from two callers")]
    fn push(
        &mut self,
        now: Instant,
        api: ApiKey,
        version: i16,
        tag: RequestTag,
        payload: Payload,
        correlation_id: i32,
        expects_answer: bool,
        timeout: Duration,
    ) {
        self.was_used |= api != ApiKey::ApiVersions;
        self.in_flight.push(InFlight {
            correlation_id,
            api,
            version,
            tag,
            payload,
            expects_answer,
            queued_at: now,
            written_at: now,
            timeout,
        });
    }
}

const fn exchange(request: &InFlight, size: usize) -> Exchange {
    Exchange { api: request.api, version: request.version, correlation_id: request.correlation_id, size }
}
