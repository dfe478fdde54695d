//! The cluster: brokers, connections, and how a request finds its way to `api/`.

use std::{collections::BTreeMap, collections::VecDeque, time::Duration};

use ottla_protocol::{
    api::ApiKey, error_code::ErrorCode, header::RequestHeader, primitive::Reader, time::Instant,
};

use crate::{
    api::{self, fetch::FetchSessions, group_configs::GroupConfigs, share_sessions::ShareSessions},
    connection::{Connection, ConnectionId, Pending, Request, Waiter},
    control::Control,
    faults::{Faults, Struck},
    frame::{Frame, FrameWriter},
    groups::Groups,
    inbox::{FrameBytes, Inbox},
    options::{BrokerId, ClusterOptions},
    random::Random,
    share_groups::ShareGroups,
    telemetry::{ClientTelemetry, Clients, Telemetry},
    timers::Timers,
    topics::{TopicIndex, Topics},
};

/// A Kafka cluster as a machine without I/O: bytes and time go in, bytes come out.
///
/// Whoever drives it calls `handle_bytes`, `handle_closed` and `handle_timeout`, and after each of them takes what there
/// is from `poll_output` and asks `poll_timeout` when to come back.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) options: ClusterOptions,
    pub(crate) now: Instant,
    pub(crate) random: Random,
    pub(crate) brokers: BTreeMap<BrokerId, Broker>,
    pub(crate) controller: BrokerId,
    pub(crate) topics: Topics,
    pub(crate) groups: Groups,
    pub(crate) share_groups: ShareGroups,
    pub(crate) group_configs: GroupConfigs,
    pub(crate) faults: Faults,
    pub(crate) timers: Timers<Timer>,
    pub(crate) next_producer_id: i64,
    /// What Metadata answers instead of the truth.
    pub(crate) stale_leaders: Option<StaleLeaders>,
    /// Bytes in all logs.
    pub(crate) stored_bytes: u64,
    pub(crate) request_log: Vec<RequestRecord>,
    pub(crate) is_recording: bool,
    /// What passed since somebody looked, if somebody does.
    journal: Option<Vec<Traffic>>,
    /// What Metadata says of a topic instead of describing it.
    pub(crate) topic_errors: BTreeMap<String, ErrorCode>,
    /// Coordinators that were chosen by hand: by kind of key (group 0, transactional id 1) and key.
    pub(crate) coordinators: BTreeMap<(i8, String), BrokerId>,
    pub(crate) telemetry: Telemetry,
    /// The client instances that came to each broker.
    pub(crate) telemetry_clients: BTreeMap<BrokerId, Clients>,
    connections: BTreeMap<ConnectionId, Connection>,
    ready: VecDeque<ConnectionId>,
    /// Requests that got what they waited for.
    pub(crate) satisfied: VecDeque<Waiter>,
    outputs: VecDeque<Output>,
    next_connection: u64,
    next_request: u64,
}

/// Leader and leader epoch of partitions.
pub(crate) type StaleLeaders = BTreeMap<(TopicIndex, i32), (Option<BrokerId>, i32)>;

/// One broker.
#[derive(Debug)]
pub(crate) struct Broker {
    pub host: String,
    pub port: u16,
    pub rack: Option<String>,
    pub alive: bool,
    /// Connections are refused, but the cluster goes on as if the broker were up.
    pub unreachable: bool,
    /// Clients are not told that it exists.
    pub unlisted: bool,
    pub latency: Duration,
    pub sessions: FetchSessions,
    pub share_sessions: ShareSessions,
    pub api_versions: BTreeMap<i16, (i16, i16)>,
    pub serves_telemetry: bool,
}

impl Broker {
    /// A broker that is up.
    pub fn new(options: &ClusterOptions, host: String, port: u16) -> Self {
        Self {
            host,
            port,
            rack: None,
            alive: true,
            unreachable: false,
            unlisted: false,
            latency: Duration::ZERO,
            sessions: FetchSessions::new(options.max_fetch_sessions),
            share_sessions: ShareSessions::default(),
            api_versions: options.api_versions.clone(),
            serves_telemetry: options.client_telemetry != ClientTelemetry::None,
        }
    }

    /// Metadata names it.
    pub fn is_listed(&self) -> bool {
        self.alive && !self.unlisted
    }
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to the client.
    Send {
        /// To which client.
        connection: ConnectionId,
        /// One answer.
        frame: Frame,
    },
    /// Close the connection after what was to be sent. The cluster has forgotten it.
    Close {
        /// Which one.
        connection: ConnectionId,
        /// Why, in words.
        reason: &'static str,
    },
    /// The broker takes no connections from now on.
    StopListening {
        /// Which one.
        broker: BrokerId,
    },
    /// The broker takes connections again.
    StartListening {
        /// Which one.
        broker: BrokerId,
    },
}

/// A request that was received, for tests that count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// When.
    pub at: Instant,
    /// By which broker.
    pub broker: BrokerId,
    /// On which connection.
    pub connection: ConnectionId,
    /// What it was.
    pub api: ApiKey,
    /// In which version.
    pub version: i16,
    /// Its number on the client's side.
    pub correlation_id: i32,
}

/// A request that came, or an answer that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Which broker's.
    pub broker: BrokerId,
    /// On which connection.
    pub connection: ConnectionId,
    /// What it is.
    pub api: ApiKey,
    /// In which version.
    pub version: i16,
    /// It is the answer.
    pub is_answer: bool,
}

#[derive(Debug)]
pub(crate) enum Timer {
    /// A late answer is due.
    Deliver(ConnectionId),
    /// A request has waited as long as it may.
    Expire(Waiter),
    /// Followers have caught up.
    Replicate(TopicIndex, i32),
    /// A group has to look at its members.
    Group(String),
    /// A share group has to look at its members.
    ShareGroup(String),
    /// A share group has to look at its locks of a partition.
    ShareLocks(String, TopicIndex, i32),
}

impl Cluster {
    /// A cluster with all its brokers up and no topics.
    pub fn new(options: ClusterOptions) -> Self {
        let mut brokers = BTreeMap::new();
        for i in 0..options.brokers.max(1) {
            let port = match options.port {
                0 => 9092 + u16::try_from(i).unwrap_or(0),
                first => first.saturating_add(u16::try_from(i).unwrap_or(0)),
            };
            let rack = match options.racks.len() {
                0 => None,
                n => options.racks.get(usize::try_from(i).unwrap_or(0) % n).cloned(),
            };
            let broker = Broker { rack, ..Broker::new(&options, options.host.clone(), port) };
            brokers.insert(BrokerId(i + 1), broker);
        }
        Self {
            now: Instant::ZERO,
            random: Random::new(options.seed),
            brokers,
            controller: BrokerId(1),
            topics: Topics::default(),
            groups: Groups::default(),
            share_groups: ShareGroups::default(),
            group_configs: GroupConfigs::new(),
            faults: Faults::default(),
            timers: Timers::new(),
            next_producer_id: 1000,
            stale_leaders: None,
            stored_bytes: 0,
            request_log: Vec::new(),
            is_recording: false,
            journal: None,
            topic_errors: BTreeMap::new(),
            coordinators: BTreeMap::new(),
            telemetry: Telemetry::default(),
            telemetry_clients: BTreeMap::new(),
            connections: BTreeMap::new(),
            ready: VecDeque::new(),
            satisfied: VecDeque::new(),
            outputs: VecDeque::new(),
            next_connection: 1,
            next_request: 1,
            options,
        }
    }

    /// A client connects; `None` if the broker is down or doesn't exist.
    pub fn open(&mut self, now: Instant, broker: BrokerId) -> Option<ConnectionId> {
        self.advance(now);
        let state = self.brokers.get(&broker)?;
        if !state.alive || state.unreachable {
            return None;
        }
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(connection, Connection::new(broker));
        Some(connection)
    }

    /// The client sent bytes, cut in any way.
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

    /// Where the client's next bytes may be read to, followed by [`handle_read`](Self::handle_read); `None` while the
    /// connection has enough to do, or is gone.
    pub fn read_space(&mut self, connection: ConnectionId) -> Option<&mut [u8]> {
        let state = self.connections.get_mut(&connection)?;
        if state.is_busy() && state.inbox.has_frame() {
            return None;
        }
        Some(state.inbox.space())
    }

    /// The client sent `n` bytes, which are in [`read_space`](Self::read_space).
    pub fn handle_read(&mut self, now: Instant, connection: ConnectionId, n: usize) {
        self.advance(now);
        if let Some(state) = self.connections.get_mut(&connection) {
            state.inbox.filled(n);
            self.continue_with(connection);
            self.run();
        }
    }

    /// Where the client of a connection is: some of Kafka's rules look at it.
    pub fn set_peer(&mut self, connection: ConnectionId, peer: std::net::SocketAddr) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.peer = Some(peer);
        }
    }

    /// The client closed the connection, or it broke.
    pub fn handle_closed(&mut self, now: Instant, connection: ConnectionId) {
        self.advance(now);
        let gone = self.connections.remove(&connection);
        if gone.is_some_and(|gone| self.end_share_sessions_of(gone.broker, connection)) {
            self.run();
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some(timer) = self.timers.take_due(self.now) {
            match timer {
                Timer::Deliver(connection) => self.deliver(connection),
                Timer::Expire(waiter) => self.expire(waiter),
                Timer::Replicate(topic, partition) => self.replicate(topic, partition),
                Timer::Group(group) => self.group_timeout(&group),
                Timer::ShareGroup(group) => self.share_group_timeout(&group),
                Timer::ShareLocks(group, topic, partition) => {
                    self.share_locks_timeout(&group, topic, partition)
                }
            }
        }
        self.run();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next_due()
    }

    /// What is to be done next.
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

    /// Says that answers pile up on their way to the client, or no longer do. While they do, the connection's requests
    /// are left lying.
    pub fn hold(&mut self, connection: ConnectionId, held: bool) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.held = held;
            if !held {
                self.continue_with(connection);
            }
        }
    }

    /// Makes things happen that clients can't ask for.
    pub fn control(&mut self) -> Control<'_> {
        Control::new(self)
    }

    /// From now on it is written down what passes.
    pub(crate) fn keep_journal(&mut self) {
        self.journal.get_or_insert_default();
    }

    /// What passed since the last call.
    pub(crate) fn take_journal(&mut self) -> Vec<Traffic> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note_traffic(&mut self, request: &Request, is_answer: bool) {
        if let Some(journal) = &mut self.journal {
            let Request { broker, connection, api, version, .. } = *request;
            journal.push(Traffic { broker, connection, api, version, is_answer });
        }
    }

    /// The brokers that are up take connections here.
    pub fn endpoints(&self) -> impl Iterator<Item = (BrokerId, &str, u16)> {
        self.brokers.iter().map(|(id, broker)| (*id, broker.host.as_str(), broker.port))
    }

    /// Where clients are told to find a broker.
    pub fn set_endpoint(&mut self, broker: BrokerId, host: &str, port: u16) {
        if let Some(broker) = self.brokers.get_mut(&broker) {
            host.clone_into(&mut broker.host);
            broker.port = port;
        }
    }

    /// Takes the time forward; it doesn't go back.
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

    pub(crate) fn connection_mut(&mut self, connection: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&connection)
    }

    pub(crate) fn connections_of(&self, broker: Option<BrokerId>) -> Vec<ConnectionId> {
        let of = |c: &Connection| broker.is_none_or(|broker| c.broker == broker);
        self.connections.iter().filter(|(_, c)| of(c)).map(|(id, _)| *id).collect()
    }

    /// Closes at once; answers that are late are never sent.
    pub(crate) fn close(&mut self, connection: ConnectionId, reason: &'static str) {
        if let Some(closed) = self.connections.remove(&connection) {
            self.emit(Output::Close { connection, reason });
            self.end_share_sessions_of(closed.broker, connection);
        }
    }

    /// Lets a request wait. Its answer is sent with [`answer`](Self::answer).
    pub(crate) fn wait(&mut self, pending: Pending) {
        if let Some(connection) = self.connections.get_mut(&pending.request().connection) {
            connection.pending = Some(pending);
        }
    }

    /// The request that `waiter` stands for, if it still waits.
    pub(crate) fn pending_mut(&mut self, waiter: Waiter) -> Option<&mut Pending> {
        let pending = self.connections.get_mut(&waiter.connection)?.pending.as_mut()?;
        (pending.request().number == waiter.request).then_some(pending)
    }

    /// Ends the wait of the request that `waiter` stands for, and hands it over to be answered.
    pub(crate) fn take_pending(&mut self, waiter: Waiter) -> Option<Pending> {
        self.pending_mut(waiter)?;
        let pending = self.connections.get_mut(&waiter.connection)?.pending.take();
        self.continue_with(waiter.connection);
        pending
    }

    /// Answers a request, in whatever way the faults that struck it demand.
    pub(crate) fn answer(&mut self, request: &Request, answer: FrameWriter) {
        self.continue_with(request.connection);
        if request.struck.lose_answer {
            self.close(request.connection, "a fault lost the answer");
            return;
        }
        let Some(broker) = self.brokers.get(&request.broker) else { return };
        let delay = broker.latency.max(request.struck.delay);
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&request.connection) else { return };
        if request.struck.never_answer {
            connection.mute = true;
            return;
        }
        self.note_traffic(request, true);
        let Some(connection) = self.connections.get_mut(&request.connection) else { return };
        let mut frame = answer.finish();
        if let Some(bytes) = &request.struck.replace {
            frame = Frame::from_raw(bytes.clone());
        }
        if let Some(len) = request.struck.truncate {
            frame = frame.truncated(len);
            connection.closing = true;
        }
        let due = connection.outbox.back().map_or(now, |(due, _)| *due).max(now + delay);
        if due <= now && connection.outbox.is_empty() && !connection.closing {
            connection.untaken += frame.len();
            self.outputs.push_back(Output::Send { connection: request.connection, frame });
            return;
        }
        connection.outbox.push_back((due, frame));
        self.timers.set(due, Timer::Deliver(request.connection));
    }

    /// Makes sure that the connection's next requests are looked at.
    pub(crate) fn continue_with(&mut self, connection: ConnectionId) {
        if let Some(state) = self.connections.get_mut(&connection)
            && !state.ready
        {
            state.ready = true;
            self.ready.push_back(connection);
        }
    }

    /// Handles the requests of connections that may go on.
    pub(crate) fn run(&mut self) {
        loop {
            let Some(id) = self.ready.pop_front() else {
                if self.finish_satisfied() {
                    continue;
                }
                return;
            };
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            connection.ready = false;
            let mut inbox = std::mem::replace(&mut connection.inbox, Inbox::new());
            self.handle_frames(id, &mut inbox);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.inbox = inbox;
            }
        }
    }

    fn handle_frames(&mut self, id: ConnectionId, inbox: &mut Inbox) {
        while self.connections.get(&id).is_some_and(|connection| !connection.is_busy()) {
            match inbox.next_frame(self.options.max_request_bytes) {
                Ok(None) => return,
                Err(_) => {
                    self.close(id, "the client sent a frame of a negative or too large length");
                    return;
                }
                Ok(Some(frame)) => match self.handle_frame(id, frame) {
                    Ok(None) => {}
                    Ok(Some(unused)) => inbox.recycle(unused),
                    Err(reason) => {
                        self.close(id, reason);
                        return;
                    }
                },
            }
        }
    }

    /// Handles one request. An owned buffer that nothing was kept of comes back.
    fn handle_frame(
        &mut self,
        id: ConnectionId,
        frame: FrameBytes<'_>,
    ) -> Result<Option<bytes::BytesMut>, &'static str> {
        let Some(broker) = self.connections.get(&id).map(|connection| connection.broker) else {
            return Ok(None);
        };
        let bytes = frame.as_slice();
        let Some(fixed) = bytes.first_chunk::<8>() else {
            return Err("the client sent half a request header");
        };
        let key = i16::from_be_bytes([fixed[0], fixed[1]]);
        let version = i16::from_be_bytes([fixed[2], fixed[3]]);
        let correlation_id = i32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        let Some(api) = ApiKey::from_i16(key) else {
            return Err("the client sent a request of an unknown API");
        };
        let mut request = Request {
            number: self.next_request,
            connection: id,
            broker,
            api,
            version,
            correlation_id,
            client_id: None,
            struck: Struck::default(),
        };
        self.next_request += 1;
        self.note_traffic(&request, false);
        if self.is_recording {
            self.request_log.push(RequestRecord {
                at: self.now,
                broker,
                connection: id,
                api,
                version,
                correlation_id,
            });
        }
        let served = api::served_versions(&self.brokers[&broker], key);
        let is_served = served.is_some_and(|(min, max)| (min..=max).contains(&version));
        let can_be_told = api == ApiKey::ApiVersions && served.is_some();
        if !is_served && !can_be_told {
            return Err("the client sent a request of an API or version that is not served");
        }
        self.faults.strike_request(api, broker, &mut request.struck);
        if request.struck.close {
            return Err("a fault closed the connection");
        }
        if !is_served {
            self.unsupported_api_versions(&request);
            return Ok(frame.into_unused());
        }
        let mut reader = Reader::new(bytes);
        let Ok(header) = RequestHeader::decode(&mut reader) else {
            return Err("the client sent a request header that can't be decoded");
        };
        request.client_id = header.client_id;
        let at = reader.position();
        self.dispatch(request, frame, at).map_err(|_| "the client sent a request that can't be decoded")
    }

    /// Sends the late answers that are due.
    fn deliver(&mut self, id: ConnectionId) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while connection.outbox.front().is_some_and(|(due, _)| *due <= now) {
            let (_, frame) = connection.outbox.pop_front().expect("it was just looked at");
            connection.untaken += frame.len();
            self.outputs.push_back(Output::Send { connection: id, frame });
        }
        if connection.closing && connection.outbox.is_empty() {
            self.close(id, "a fault closed the connection");
        } else {
            self.continue_with(id);
        }
    }

    fn expire(&mut self, waiter: Waiter) {
        match self.take_pending(waiter) {
            Some(Pending::Fetch(pending)) => self.finish_fetch(pending),
            Some(Pending::Produce(pending)) => self.finish_produce(pending),
            Some(Pending::ShareFetch(pending)) => self.finish_share_fetch(pending),
            Some(Pending::Group(_)) | None => {}
        }
    }
}
