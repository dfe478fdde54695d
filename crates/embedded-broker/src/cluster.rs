//! The cluster: brokers and connections. [`serving`] dispatches requests to `api/`.
//!
//! # Pitfalls
//!
//! - A driver on a busy machine is late and hands over a request before it calls `handle_timeout`. A heartbeat that arrives
//!   after the end of its session must not save the member, so what is due is done first
//!   (`late_timer_does_not_extend_a_session`).

mod serving;

use std::{collections::VecDeque, time::Duration};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode, time::Instant};
use ottla_sorted::SortedMap;

use crate::{
    administration::Administration,
    api::{
        fetch::FetchSessions, group_configs::GroupConfigs, produce::PendingAdmission,
        share_sessions::ShareSessions,
    },
    changes::Recorder,
    connection::{Connection, ConnectionId, Pending, Request, Waiter},
    control::Control,
    faults::Faults,
    frame::Frame,
    groups::Groups,
    identity::MixedClusters,
    options::{BrokerId, ClusterOptions},
    quotas::QuotaUsage,
    random::Random,
    scram_users::ScramChanges,
    share_groups::ShareGroups,
    telemetry::{ClientTelemetry, Clients, Telemetry},
    timers::Timers,
    topics::{TopicIndex, Topics},
    transactions::{Participant, Round, Transactions},
};

/// A Kafka cluster as a machine without I/O: bytes and time go in, bytes come out.
///
/// The driver calls `handle_bytes`, `handle_closed` and `handle_timeout`. After each call it takes all outputs from
/// `poll_output`, and the time of the next `handle_timeout` from `poll_timeout`.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) options: ClusterOptions,
    pub(crate) now: Instant,
    pub(crate) random: Random,
    pub(crate) cluster_id: String,
    pub(crate) mixed: MixedClusters,
    pub(crate) brokers: SortedMap<BrokerId, Broker>,
    pub(crate) controller: BrokerId,
    pub(crate) topics: Topics,
    pub(crate) groups: Groups,
    pub(crate) transactions: Transactions,
    pub(crate) share_groups: ShareGroups,
    pub(crate) group_configs: GroupConfigs,
    pub(crate) scram_changes: ScramChanges,
    pub(crate) administration: Administration,
    pub(crate) quota_usage: QuotaUsage,
    pub(crate) faults: Faults,
    pub(crate) timers: Timers<Timer>,
    pub(crate) next_producer_id: i64,
    /// A quorum of controllers elects leaders.
    pub(crate) has_quorum: bool,
    /// The epoch of the finalized features, which rises with each change.
    pub(crate) features_epoch: i64,
    /// Leaders that Metadata responses name instead of the current ones.
    pub(crate) stale_leaders: Option<StaleLeaders>,
    /// Warnings that were not taken.
    pub(crate) warnings: Vec<String>,
    /// The total size of all logs in bytes.
    pub(crate) stored_bytes: u64,
    pub(crate) request_log: Vec<RequestRecord>,
    pub(crate) is_recording: bool,
    /// The recorded traffic since the last call of `take_journal`, if recording is on.
    journal: Option<Vec<Traffic>>,
    /// The changes by clients, if a list of them was begun.
    pub(crate) recorder: Option<Recorder>,
    /// Errors that Metadata responses contain for a topic instead of its description.
    pub(crate) topic_errors: SortedMap<String, ErrorCode>,
    /// Coordinators set by tests, by key type (group 0, transactional ID 1) and key.
    pub(crate) coordinators: SortedMap<(i8, String), BrokerId>,
    /// The groups whose coordinator still loads them, each with the time at which it finishes.
    pub(crate) loading_groups: SortedMap<String, Instant>,
    pub(crate) telemetry: Telemetry,
    /// The client instances known to each broker.
    pub(crate) telemetry_clients: SortedMap<BrokerId, Clients>,
    connections: SortedMap<ConnectionId, Connection>,
    /// The total size of all inboxes in bytes.
    pub(crate) request_bytes: usize,
    ready: VecDeque<ConnectionId>,
    /// Requests that a fault delays beyond their connections, by number.
    late: SortedMap<u64, LateRequest>,
    /// Requests whose wait is over.
    pub(crate) satisfied: VecDeque<Waiter>,
    outputs: VecDeque<Output>,
    next_connection: u64,
    next_request: u64,
}

/// The leader and leader epoch of partitions.
pub(crate) type StaleLeaders = SortedMap<(TopicIndex, i32), (Option<BrokerId>, i32)>;

/// One broker.
#[derive(Debug)]
pub(crate) struct Broker {
    pub host: String,
    /// The port of the first listener.
    pub port: u16,
    /// The ports of the further listeners.
    pub further_ports: Vec<u16>,
    pub rack: Option<String>,
    pub alive: bool,
    /// Connections are refused, but the cluster treats the broker as up.
    pub unreachable: bool,
    /// Metadata responses omit the broker.
    pub unlisted: bool,
    pub latency: Duration,
    /// Responds to Fetch at once and keeps no fetch sessions.
    pub is_hasty: bool,
    pub sessions: FetchSessions,
    pub share_sessions: ShareSessions,
    pub api_versions: SortedMap<i16, (i16, i16)>,
    pub serves_telemetry: bool,
    /// It is a controller and not a broker.
    pub is_controller: bool,
}

impl Broker {
    /// Creates a broker that is up.
    pub fn new(options: &ClusterOptions, host: String, port: u16) -> Self {
        Self {
            host,
            port,
            further_ports: Vec::new(),
            rack: None,
            alive: true,
            unreachable: false,
            unlisted: false,
            latency: Duration::ZERO,
            is_hasty: false,
            sessions: FetchSessions::new(options.max_fetch_sessions),
            share_sessions: ShareSessions::default(),
            api_versions: options.api_versions.clone().into_iter().collect(),
            serves_telemetry: options.client_telemetry != ClientTelemetry::None,
            is_controller: false,
        }
    }

    /// Metadata names it.
    pub fn is_listed(&self) -> bool {
        self.alive && !self.unlisted && !self.is_controller
    }
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Sends these bytes to the client.
    Send {
        /// The client's connection.
        connection: ConnectionId,
        /// The bytes of one response.
        frame: Frame,
    },
    /// Closes the connection after all earlier output was sent. The cluster has already dropped its state.
    Close {
        /// The connection to close.
        connection: ConnectionId,
        /// The reason, as text.
        reason: &'static str,
    },
    /// Stops accepting connections for the broker.
    StopListening {
        /// The broker that stops listening.
        broker: BrokerId,
    },
    /// Accepts connections for the broker again.
    StartListening {
        /// The broker that listens again.
        broker: BrokerId,
    },
}

/// A received request, for tests that count requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// The time of arrival.
    pub at: Instant,
    /// The broker that received the request.
    pub broker: BrokerId,
    /// The connection on which the request arrived.
    pub connection: ConnectionId,
    /// The API of the request.
    pub api: ApiKey,
    /// The version of the request.
    pub version: i16,
    /// The correlation ID that the client chose.
    pub correlation_id: i32,
}

/// A received request, or a sent response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The broker that received the request or sent the response.
    pub broker: BrokerId,
    /// The connection.
    pub connection: ConnectionId,
    /// The API.
    pub api: ApiKey,
    /// The version.
    pub version: i16,
    /// True for a response, false for a request.
    pub is_response: bool,
}

/// A request that a fault delays beyond its connection.
#[derive(Debug)]
struct LateRequest {
    request: Request,
    frame: Vec<u8>,
    /// The position in the frame at which the body begins.
    body_at: usize,
}

#[derive(Debug)]
pub(crate) enum Timer {
    /// A delayed response is due.
    Deliver(ConnectionId),
    /// The throttle time of a connection may have passed.
    Unthrottle(ConnectionId),
    /// A request is due that a fault has delayed beyond its connection.
    DeliverLate(u64),
    /// A waiting request has reached its maximum wait time.
    Expire(Waiter),
    /// The followers have caught up.
    Replicate(TopicIndex, i32),
    /// Records of a partition may have reached their retention time.
    Retention(TopicIndex, i32),
    /// Records of a partition may have reached a lag of compaction.
    Compaction(TopicIndex, i32),
    /// A group must check its members.
    Group(String),
    /// A participant of a transaction must get its marker; without participants the transaction is complete.
    Marker(Round, Option<Participant>),
    /// A transaction may have reached its timeout.
    TransactionTimeout(String),
    /// A reassignment of a partition's replicas is complete.
    Reassignment(TopicIndex, i32),
    /// A share group must check its members.
    ShareGroup(String),
    /// A share group must check its locks of a partition.
    ShareLocks(String, TopicIndex, i32),
}

impl Cluster {
    /// Creates a cluster with all its brokers up and no topics.
    pub fn new(options: ClusterOptions) -> Self {
        let mut brokers = SortedMap::new();
        for i in 0..options.brokers.max(1) {
            let port = match options.port {
                0 => 9092 + u16::try_from(i).unwrap_or(0),
                first => first.saturating_add(u16::try_from(i).unwrap_or(0)),
            };
            let rack = match options.racks.len() {
                0 => None,
                n => options.racks.get(usize::try_from(i).unwrap_or(0) % n).cloned(),
            };
            let further_ports = options.further_ports(u16::try_from(i).unwrap_or(0));
            let broker = Broker { rack, further_ports, ..Broker::new(&options, options.host.clone(), port) };
            brokers.insert(BrokerId(i + 1), broker);
        }
        let seed = options.seed.unwrap_or(1);
        // Uses a separate random sequence: setting the cluster ID must not change the topic IDs.
        let cluster_id = options.cluster_id.clone().unwrap_or_else(|| Random::new(!seed).cluster_id());
        let random = Random::new(seed);
        Self {
            now: Instant::ZERO,
            random,
            cluster_id,
            mixed: MixedClusters::default(),
            brokers,
            controller: BrokerId(1),
            topics: Topics::default(),
            groups: Groups::default(),
            transactions: Transactions::default(),
            share_groups: ShareGroups::default(),
            group_configs: GroupConfigs::new(),
            scram_changes: ScramChanges::new(),
            administration: Administration::default(),
            quota_usage: QuotaUsage::default(),
            faults: Faults::default(),
            timers: Timers::new(),
            next_producer_id: 1000,
            has_quorum: true,
            features_epoch: 1,
            stale_leaders: None,
            warnings: Vec::new(),
            stored_bytes: 0,
            request_log: Vec::new(),
            is_recording: false,
            journal: None,
            recorder: None,
            topic_errors: SortedMap::new(),
            coordinators: SortedMap::new(),
            loading_groups: SortedMap::new(),
            telemetry: Telemetry::default(),
            telemetry_clients: SortedMap::new(),
            connections: SortedMap::new(),
            request_bytes: 0,
            ready: VecDeque::new(),
            late: SortedMap::new(),
            satisfied: VecDeque::new(),
            outputs: VecDeque::new(),
            next_connection: 1,
            next_request: 1,
            options,
        }
    }

    /// Opens a connection to the first listener; returns `None` if the broker is down or doesn't exist.
    pub fn open(&mut self, now: Instant, broker: BrokerId) -> Option<ConnectionId> {
        self.advance(now);
        let state = self.brokers.get(&broker)?;
        if !state.alive || state.unreachable {
            return None;
        }
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(connection, self.mixed.connect(broker));
        Some(connection)
    }

    /// Handles bytes from the client, which may be split anywhere.
    pub fn handle_bytes(&mut self, now: Instant, connection: ConnectionId, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(state) = self.connections.get_mut(&connection) else { return };
            let space = state.inbox.space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            self.handle_read(now, connection, n);
        }
    }

    /// Returns the buffer for the client's next bytes, which [`handle_read`](Self::handle_read) then handles. Returns
    /// `None` while the connection is busy, or if it is closed.
    pub fn read_space(&mut self, connection: ConnectionId) -> Option<&mut [u8]> {
        if !self.can_read(connection) {
            return None;
        }
        let state = self.connections.get_mut(&connection)?;
        state.inbox.space();
        count(&mut self.request_bytes, state);
        self.bound_requests();
        Some(self.connections.get_mut(&connection)?.inbox.space())
    }

    /// Returns true if [`read_space`](Self::read_space) returns a buffer.
    pub fn can_read(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|state| !state.is_busy() || !state.inbox.is_full())
    }

    /// Handles `n` bytes from the client that were read into [`read_space`](Self::read_space).
    pub fn handle_read(&mut self, now: Instant, connection: ConnectionId, n: usize) {
        self.advance(now);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.inbox.filled(n);
        // The driver is late: what was due before the request arrived happens before it.
        if self.timers.next_due().is_some_and(|due| due < self.now) {
            self.fire_timers();
        }
        self.continue_with(connection);
        self.run();
    }

    /// Handles the end of the client's input; the driver may have bytes left to read. A request that waits for other
    /// clients or for time to pass stops waiting: otherwise the bytes behind it, and the end of the connection, could
    /// not be read.
    pub fn handle_end(&mut self, now: Instant, connection: ConnectionId) {
        self.advance(now);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        if state.mute || matches!(state.pending, Some(Pending::Group(_))) {
            self.close(connection, "the client closed the connection");
        } else {
            self.end_wait(connection);
        }
        self.run();
    }

    /// Closes connections while unhandled requests exceed the memory limit, beginning with the connection whose request
    /// has been incomplete for the longest time.
    fn bound_requests(&mut self) {
        let limit = self.options.queued_max_request_bytes;
        if self.request_bytes <= limit {
            return;
        }
        for state in self.connections.values_mut() {
            state.inbox.release_unused();
            count(&mut self.request_bytes, state);
        }
        let unfinished =
            self.connections.iter().filter_map(|(id, state)| Some((state.unfinished_since?, *id)));
        let mut unfinished: Vec<_> = unfinished.collect();
        unfinished.sort_unstable();
        for (_, id) in unfinished {
            // Frees a little more, so that the next byte doesn't exceed the limit again.
            if self.request_bytes <= limit - limit / 8 {
                return;
            }
            self.close(id, "unfinished requests take too much memory");
        }
    }

    /// Ends the wait of a disconnected client's request, as if its maximum wait time had passed.
    fn end_wait(&mut self, connection: ConnectionId) {
        let Some(state) = self.connections.get(&connection).filter(|state| state.ended) else { return };
        if let Some(Pending::Fetch(_) | Pending::ShareFetch(_)) = &state.pending
            && let Some(pending) = &state.pending
        {
            self.timers.set(self.now, Timer::Expire(pending.request().waiter()));
        }
    }

    /// Forgets a connection.
    fn remove_connection(&mut self, connection: ConnectionId) -> Option<Connection> {
        let mut gone = self.connections.remove(&connection)?;
        self.request_bytes -= gone.counted;
        if let Some(Pending::Admission(pending)) = gone.pending.take() {
            // The leader appends the records although no client waits for its response.
            let PendingAdmission { request, frame, body_at, .. } = pending;
            let (number, due) = (request.number, self.now + self.options.transaction_retry_interval);
            self.late.insert(number, LateRequest { request, frame, body_at });
            self.timers.set(due, Timer::DeliverLate(number));
        }
        Some(gone)
    }

    /// Sets the client's address of a connection, which some of Kafka's rules depend on.
    pub fn set_peer(&mut self, connection: ConnectionId, peer: std::net::SocketAddr) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.peer = Some(peer);
        }
    }

    /// Returns the client's address of a connection, if the driver has set it.
    pub(crate) fn peer(&self, connection: ConnectionId) -> Option<std::net::SocketAddr> {
        self.connections.get(&connection)?.peer
    }

    pub(crate) fn principal(&self, connection: ConnectionId) -> Option<&str> {
        self.connections.get(&connection)?.principal.as_deref()
    }

    /// Sets the name that the client of a connection has proved.
    pub fn set_principal(&mut self, connection: ConnectionId, principal: String) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.principal = Some(principal);
        }
    }

    /// Handles a connection that the client closed or that broke.
    pub fn handle_closed(&mut self, now: Instant, connection: ConnectionId) {
        self.advance(now);
        let gone = self.remove_connection(connection);
        if gone.is_some_and(|gone| self.end_share_sessions_of(gone.broker, connection)) {
            self.run();
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.fire_timers();
        self.run();
    }

    /// Does what is due. The requests that can continue are queued.
    fn fire_timers(&mut self) {
        while let Some(timer) = self.timers.take_due(self.now) {
            match timer {
                Timer::Deliver(connection) => self.deliver(connection),
                Timer::Unthrottle(connection) => self.unthrottle(connection),
                Timer::Expire(waiter) => self.expire(waiter),
                Timer::DeliverLate(request) => self.deliver_late(request),
                Timer::Replicate(topic, partition) => self.replicate(topic, partition),
                Timer::Retention(topic, partition) => self.retention_timeout(topic, partition),
                Timer::Compaction(topic, partition) => self.compaction_timeout(topic, partition),
                Timer::Group(group) => self.group_timeout(&group),
                Timer::Marker(round, participant) => self.marker_timeout(round, participant),
                Timer::TransactionTimeout(id) => self.transaction_timeout(&id),
                Timer::Reassignment(topic, partition) => self.finish_reassignment(topic, partition),
                Timer::ShareGroup(group) => self.share_group_timeout(&group),
                Timer::ShareLocks(group, topic, partition) => {
                    self.share_locks_timeout(&group, topic, partition)
                }
            }
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next_due()
    }

    /// Returns the next action for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty() && !self.ready.is_empty() {
            self.run();
        }
        let output = self.outputs.pop_front()?;
        if let Output::Send { connection, frame } = &output
            && let Some(state) = self.connections.get_mut(connection)
        {
            let was_busy = state.is_busy();
            state.untaken = state.untaken.saturating_sub(frame.len());
            if was_busy && !state.is_busy() {
                self.continue_with(*connection);
            }
        }
        Some(output)
    }

    /// Pauses or resumes the connection's requests, because the client reads its responses too slowly or has caught up.
    pub fn hold(&mut self, connection: ConnectionId, held: bool) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.held = held;
            if !held {
                self.continue_with(connection);
            }
        }
    }

    /// Returns the controls by which tests cause events that clients can't.
    pub fn control(&mut self) -> Control<'_> {
        Control::new(self)
    }

    /// Starts to record the traffic.
    pub(crate) fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    /// Takes the traffic since the last call.
    pub(crate) fn take_journal(&mut self) -> Vec<Traffic> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note_traffic(&mut self, request: &Request, is_response: bool) {
        if let Some(journal) = &mut self.journal {
            let Request { broker, connection, api, version, .. } = *request;
            journal.push(Traffic { broker, connection, api, version, is_response });
        }
    }

    /// Returns the endpoints of the first listener on which the brokers that are up accept connections.
    pub fn endpoints(&self) -> impl Iterator<Item = (BrokerId, &str, u16)> {
        self.brokers.iter().map(|(id, broker)| (*id, broker.host.as_str(), broker.port))
    }

    /// Sets the endpoint of the first listener that clients receive for a broker.
    pub fn set_endpoint(&mut self, broker: BrokerId, host: &str, port: u16) {
        if let Some(broker) = self.brokers.get_mut(&broker) {
            host.clone_into(&mut broker.host);
            broker.port = port;
        }
    }

    /// Advances the time; earlier times are ignored.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> i64 {
        self.options.unix_time_origin_ms.saturating_add_unsigned(self.now.as_millis())
    }

    pub(crate) fn emit(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(crate) fn connection(&self, connection: ConnectionId) -> Option<&Connection> {
        self.connections.get(&connection)
    }

    pub(crate) fn connection_mut(&mut self, connection: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&connection)
    }

    pub(crate) fn connections_of(&self, broker: Option<BrokerId>) -> Vec<ConnectionId> {
        let of = |c: &Connection| broker.is_none_or(|broker| c.broker == broker);
        self.connections.iter().filter(|(_, c)| of(c)).map(|(id, _)| *id).collect()
    }

    /// Closes a connection at once, without its delayed responses.
    pub(crate) fn close(&mut self, connection: ConnectionId, reason: &'static str) {
        if let Some(closed) = self.remove_connection(connection) {
            self.emit(Output::Close { connection, reason });
            self.end_share_sessions_of(closed.broker, connection);
        }
    }
}

/// Updates the total of all inboxes with a connection's inbox.
fn count(total: &mut usize, connection: &mut Connection) {
    let held = connection.inbox.held();
    *total = *total - connection.counted + held;
    connection.counted = held;
}
