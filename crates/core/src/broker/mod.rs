//! One broker: its connection, its producing half, and its consuming or share half. Read [`crate::connection`] first, then [`Sender`]
//! and the consuming half in [`crate::fetch`].
//!
//! ```text
//!              messages of the cluster actor
//!                         │
//!   application ──► sender│   fetcher ──► application
//!                    └────┼─────┘
//!                     connection
//!                         │
//!                       socket
//! ```

#[cfg(all(test, not(ottla_loom)))]
mod every_version;
#[cfg(test)]
mod scripted;

use std::{collections::VecDeque, io::IoSlice, sync::Arc};

use core::net::SocketAddr;

use ottla_protocol::{error_code::ErrorCode, vocabulary::NodeId};

use crate::{
    config::ProxyUrl,
    connection::{
        Connection, ConnectionOutput, ConnectionSettings, Response,
        buffer::BufferPool,
        inflight::{InFlight, RequestTag},
        throttle::asked_for,
        versions::is_telemetry,
    },
    contract::half::HalfOutput,
    error::{Error, ErrorKind},
    fetch::{fetcher::Fetcher, shared::ConsumerShared},
    machine::{Instant, earliest},
    message::{ClusterRequest, ConnectionMessage, ConnectionReport, ToBroker, ToCluster},
    observer::Peer,
    produce::{
        message::{ProduceMessage, ProduceReport},
        sender::Sender,
        shared::ProducerShared,
    },
    rng::Rng,
    share::{
        fetcher::ShareFetcher,
        message::{ShareMessage, ShareReport},
        shared::ShareShared,
    },
    states::See,
    stats::{BrokerEntryKind, Gather, Purpose},
    wake::WakeHandle,
};

/// The actor of one connection to a broker.
#[derive(Debug)]
pub struct BrokerCore {
    connection: Connection,
    sender: Option<Sender>,
    fetcher: Option<Fetcher>,
    share: Option<ShareFetcher>,
    requests: VecDeque<(ClusterRequest, Instant)>,
    wakeups: i64,
    outputs: VecDeque<BrokerOutput>,
    closed: bool,
}

/// The shared objects that a broker actor is built from.
#[derive(Clone, Debug)]
pub struct BrokerParts {
    /// The connection's settings.
    pub connection: Arc<ConnectionSettings>,
    /// The producer's shared half, if the client produces.
    pub producer: Option<Arc<ProducerShared>>,
    /// The consumer's shared half, if the client consumes.
    pub consumer: Option<Arc<ConsumerShared>>,
    /// The share consumer's shared state, if the client is one.
    pub share: Option<Arc<ShareShared>>,
    /// The buffer pool for large responses.
    pub buffers: BufferPool,
}

/// A request of a broker actor to its driver.
#[derive(Debug)]
pub enum BrokerOutput {
    /// Resolve a host name; respond with [`BrokerCore::handle_resolved`].
    Resolve {
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Open a socket; respond with [`BrokerCore::handle_connected`] or [`BrokerCore::handle_closed`].
    Connect(SocketAddr),
    /// Close the socket.
    CloseSocket,
    /// A message for the cluster actor.
    ToCluster(ToCluster),
    /// The actor is finished and may be dropped.
    Done,
}

impl BrokerCore {
    /// Creates the actor of the broker at this address. `wake` makes the driver run it.
    pub fn new(
        parts: &BrokerParts,
        host: String,
        port: u16,
        node_id: Option<NodeId>,
        wake: WakeHandle,
        mut rng: Rng,
    ) -> Self {
        let sender =
            parts.producer.clone().map(|shared| Sender::new(shared, node_id, wake.clone(), rng.fork()));
        let fetcher = parts
            .consumer
            .clone()
            .map(|shared| Fetcher::new(shared, node_id, parts.buffers.clone(), wake.clone(), rng.fork()));
        let share = parts
            .share
            .clone()
            .map(|shared| ShareFetcher::new(shared, parts.buffers.clone(), wake, rng.fork()));
        let connection =
            Connection::new(Arc::clone(&parts.connection), host, port, node_id, parts.buffers.clone(), rng);
        Self {
            connection,
            sender,
            fetcher,
            share,
            requests: VecDeque::new(),
            wakeups: 0,
            outputs: VecDeque::new(),
            closed: false,
        }
    }

    /// Shows the states of the actor's machines.
    pub fn states(&self, see: &mut See<'_>) {
        self.connection.states(see);
        if let Some(share) = &self.share {
            share.states(see);
        }
    }

    /// Returns `host:port/node`, as errors and logs name the broker.
    pub fn name(&self) -> String {
        self.connection.name()
    }

    /// Sets the file descriptor of the socket that is being opened, for observers.
    pub const fn set_socket(&mut self, socket: Option<i32>) {
        self.connection.set_socket(socket);
    }

    /// Handles a message from the cluster actor.
    pub fn handle_message(&mut self, now: Instant, message: ToBroker) {
        if self.closed {
            return self.bounce(message);
        }
        match message {
            ToBroker::Produce(message) => self.handle_produce_message(message),
            ToBroker::Fetch(message) => {
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.handle_message(now, message);
                }
            }
            ToBroker::Share(message) => {
                if let Some(share) = &mut self.share {
                    share.handle_message(message);
                }
            }
            ToBroker::Request(request) => {
                if is_telemetry(request.api) && !self.connection.is_ready() {
                    let error = Error::new(ErrorKind::Disconnected, "client metrics open no connection");
                    self.respond(request.token, Err(error.with_peer(self.connection.name())));
                } else {
                    let deadline = now + request.timeout;
                    self.requests.push_back((request, deadline));
                }
            }
            ToBroker::Connection(message) => self.handle_connection_message(now, message),
            ToBroker::Statistics(gather, kind) => return self.add_statistics(now, &gather, kind),
            ToBroker::Close => return self.close(now),
        }
        self.advance(now);
    }

    fn handle_produce_message(&mut self, message: ProduceMessage) {
        let Some(sender) = &mut self.sender else {
            // Only a producer's cluster actor has partitions to hand over.
            return self.bounce(ToBroker::Produce(message));
        };
        match message {
            ProduceMessage::Adopt(partition) => sender.adopt(*partition),
            ProduceMessage::Release(partition) => {
                sender.release(&partition, &mut self.connection);
            }
            ProduceMessage::Pause(partition) => sender.pause(&partition),
            // `advance` sends the records that are due.
            ProduceMessage::Flush => {}
            ProduceMessage::Purge(purge) => sender.purge(purge, &mut self.connection),
        }
    }

    fn handle_connection_message(&mut self, now: Instant, message: ConnectionMessage) {
        match message {
            ConnectionMessage::SetNode(id) => {
                self.connection.set_node_id(id);
                if let Some(sender) = &mut self.sender {
                    sender.set_broker_id(id);
                }
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.set_broker_id(id);
                }
            }
            ConnectionMessage::SetAddress { host, port } => self.connection.set_address(now, &host, port),
            ConnectionMessage::SetCluster(id) => self.connection.set_cluster_id(now, id),
            ConnectionMessage::Connect => self.connection.want(now),
            ConnectionMessage::StopConnecting if self.needs_connection() => {}
            ConnectionMessage::StopConnecting => self.connection.stop_connecting(now),
            ConnectionMessage::Credentials => self.connection.handle_credentials(now),
            ConnectionMessage::SaslReply => self.connection.handle_sasl_reply(now),
            ConnectionMessage::Reconnect => self.connection.reconnect(now),
        }
    }

    /// Handles a wake-up by shared state.
    pub fn handle_wake(&mut self, now: Instant) {
        self.wakeups += 1;
        self.advance(now);
    }

    /// Handles the addresses of a resolved host, or the error.
    pub fn handle_resolved(&mut self, now: Instant, result: Result<Vec<SocketAddr>, String>) {
        self.connection.handle_resolved(now, result);
        self.advance(now);
    }

    /// Returns the other end of the connection.
    pub fn peer(&self) -> Peer<'_> {
        self.connection.peer()
    }

    /// Returns the proxy through which the broker is reached.
    pub fn proxy(&self) -> Option<&Arc<ProxyUrl>> {
        self.connection.proxy()
    }

    /// Handles the established TCP connection to the proxy, which the driver asks for a connection to the broker.
    pub fn handle_tunnelling(&mut self, now: Instant) {
        self.connection.handle_tunnelling(now);
        self.advance(now);
    }

    /// Handles the established TCP connection on which the driver begins a TLS handshake.
    pub fn handle_securing(&mut self, now: Instant) {
        self.connection.handle_securing(now);
        self.advance(now);
    }

    /// Handles a connection that the driver gives up for this reason.
    pub fn handle_failed(&mut self, now: Instant, error: Error) {
        self.connection.handle_failed(now, error);
        self.advance(now);
    }

    /// Handles the established connection: TCP, and TLS if the driver uses it.
    pub fn handle_connected(&mut self, now: Instant) {
        self.connection.handle_connected(now);
        self.advance(now);
    }

    /// Handles a socket that was closed or could not be opened.
    pub fn handle_closed(&mut self, now: Instant, reason: &str) {
        self.connection.handle_closed(now, reason);
        self.advance(now);
    }

    /// Returns the buffer that the driver reads the next bytes into.
    pub fn read_space(&mut self) -> &mut [u8] {
        self.connection.read_space()
    }

    /// Handles `n` bytes that the driver read into [`BrokerCore::read_space`].
    pub fn handle_read(&mut self, now: Instant, n: usize) {
        self.connection.handle_read(now, n);
        while let Some(response) = self.connection.next_response(now) {
            self.handle_response(now, response);
        }
        self.advance(now);
    }

    /// Fills `slices` with the bytes to write next and returns the number of slices filled.
    pub fn unsent<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.connection.unsent(slices)
    }

    /// Returns the number of bytes that are ready to be written.
    pub const fn unsent_bytes(&self) -> usize {
        self.connection.unsent_bytes()
    }

    /// Accepts that the socket took `n` bytes.
    pub fn handle_written(&mut self, now: Instant, n: usize) {
        let mut over = Vec::new();
        self.connection.handle_written(now, n, &mut over);
        if let Some(sender) = &mut self.sender {
            over.into_iter().for_each(|request| sender.handle_written(request));
        }
        self.advance(now);
    }

    /// Handles the timeouts that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        // Batches in flight are older than waiting ones, and return before those time out.
        self.drain_parts(now);
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(now, &mut self.connection);
        }
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.handle_timeout(now);
        }
        if let Some(share) = &mut self.share {
            share.handle_timeout(now);
        }
        if self.requests.iter().any(|(_, deadline)| *deadline <= now) {
            let (late, waiting): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut self.requests).into_iter().partition(|(_, deadline)| *deadline <= now);
            self.requests = waiting;
            for (request, _) in late {
                let detail = if self.connection.is_ready() {
                    "not sent: the broker throttles the client for longer"
                } else {
                    "not sent: there is no connection"
                };
                let error = Error::new(ErrorKind::TimedOut, detail).with_peer(self.connection.name());
                self.respond(request.token, Err(error.with_api(request.api.name())));
            }
        }
        self.advance(now);
    }

    /// Returns when to call [`BrokerCore::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut deadline = self.connection.poll_timeout();
        if let Some(sender) = &self.sender {
            deadline = earliest(deadline, sender.poll_timeout(&self.connection));
        }
        if let Some(fetcher) = &self.fetcher {
            deadline = earliest(deadline, fetcher.poll_timeout(&self.connection));
        }
        if let Some(share) = &self.share {
            deadline = earliest(deadline, share.poll_timeout(&self.connection));
        }
        earliest(deadline, self.requests.iter().map(|(_, deadline)| *deadline).min())
    }

    /// Returns the next action for the driver.
    pub fn poll_output(&mut self) -> Option<BrokerOutput> {
        self.outputs.pop_front()
    }

    /// Sends what can be sent and carries out the outputs of the parts.
    fn advance(&mut self, now: Instant) {
        loop {
            self.drain_parts(now);
            if self.closed {
                return;
            }
            if self.needs_connection() {
                self.connection.want(now);
            }
            if self.connection.may_send() {
                self.send_requests(now);
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.pump(now, &mut self.connection);
                }
                if let Some(share) = &mut self.share {
                    share.pump(now, &mut self.connection);
                }
            }
            if let Some(share) = &mut self.share {
                share.give_up_ending();
            }
            if let Some(sender) = &mut self.sender {
                sender.pump(now, &mut self.connection);
                if sender.wants_connection() {
                    self.connection.want(now);
                }
            }
            if !self.drain_parts(now) {
                self.connection.note_state(now);
                return;
            }
        }
    }

    fn needs_connection(&self) -> bool {
        !self.requests.is_empty()
            || self.sender.as_ref().is_some_and(Sender::wants_connection)
            || self.fetcher.as_ref().is_some_and(Fetcher::wants_connection)
            || self.share.as_ref().is_some_and(ShareFetcher::wants_connection)
    }

    /// Carries out the outputs of connection, sender and fetcher. Returns true if that may have created new work.
    fn drain_parts(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(output) = self.connection.poll_output() {
            changed |= self.handle_connection_output(now, output);
        }
        while let Some(output) = self.sender.as_mut().and_then(Sender::poll_output) {
            changed |= self.handle_half_output(now, output);
        }
        while let Some(output) = self.fetcher.as_mut().and_then(Fetcher::poll_output) {
            changed |= self.handle_half_output(now, output);
        }
        while let Some(output) = self.share.as_mut().and_then(ShareFetcher::poll_output) {
            changed |= self.handle_half_output(now, output);
        }
        changed
    }

    fn handle_connection_output(&mut self, now: Instant, output: ConnectionOutput) -> bool {
        match output {
            ConnectionOutput::Resolve { host, port } => {
                self.outputs.push_back(BrokerOutput::Resolve { host, port });
                return false;
            }
            ConnectionOutput::Connect(address) => {
                self.outputs.push_back(BrokerOutput::Connect(address));
                return false;
            }
            ConnectionOutput::Close => {
                self.outputs.push_back(BrokerOutput::CloseSocket);
                return false;
            }
            ConnectionOutput::Up => {
                if let Some(sender) = &mut self.sender {
                    sender.handle_up();
                }
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.handle_connected(now);
                }
                if self.sender.as_ref().is_some_and(Sender::is_transactional) {
                    let features = self.connection.transaction_features();
                    self.report(ToCluster::Connection(ConnectionReport::Features(features)));
                }
                self.report(ToCluster::Connection(ConnectionReport::Up));
                if self.connection.versions().offers_telemetry() {
                    self.report(ToCluster::Connection(ConnectionReport::OffersTelemetry));
                }
            }
            ConnectionOutput::Idle { looks_again } => {
                self.report(ToCluster::Connection(ConnectionReport::Idle { reconnects: looks_again }));
            }
            ConnectionOutput::TimedOut { error, request } => {
                self.fail_requests(now, vec![(request, true)], &error);
            }
            ConnectionOutput::Down { error, lost } => {
                if let Some(sender) = &mut self.sender {
                    sender.handle_down(&error);
                }
                self.handle_lost(now, lost, &of_requests(&error));
                if let Some(share) = &mut self.share {
                    share.handle_disconnected();
                }
                self.report(ToCluster::Connection(ConnectionReport::Down(error)));
            }
        }
        true
    }

    fn handle_half_output<R>(&mut self, now: Instant, output: HalfOutput<R>) -> bool
    where
        ToCluster: From<R>,
    {
        match output {
            HalfOutput::Report(report) => self.report(report.into()),
            HalfOutput::News(news) => self.report(ToCluster::News(news)),
            HalfOutput::Throttle(time) => self.connection.throttle(now, time),
            HalfOutput::Misbehaved(error) => {
                self.connection.handle_misbehaviour(now, error);
                return true;
            }
        }
        false
    }

    fn report(&mut self, message: ToCluster) {
        self.outputs.push_back(BrokerOutput::ToCluster(message));
    }

    fn add_statistics(&mut self, now: Instant, gather: &Gather, kind: BrokerEntryKind) {
        let mut broker = self.connection.statistics(now, gather.purpose);
        broker.wakeups = self.wakeups;
        if kind == BrokerEntryKind::GroupCoordinator {
            match self.sender {
                Some(_) => broker.name_transaction_coordinator(),
                None => broker.name_group_coordinator(),
            }
        }
        let node = self.connection.node_id();
        gather.add(|statistics| {
            if let Some(sender) = &mut self.sender {
                sender.add_statistics(statistics, &mut broker, node, gather.purpose);
            }
            if let Some(fetcher) = &self.fetcher
                && gather.purpose != Purpose::Push
            {
                fetcher.add_statistics(statistics, &mut broker, node);
            }
            statistics.brokers.push(broker);
        });
    }

    fn send_requests(&mut self, now: Instant) {
        while let Some((request, _)) = self.requests.pop_front() {
            let ClusterRequest { token, api, versions, timeout, encode } = request;
            let Some(version) = self.connection.versions().pick(api, versions) else {
                let error = self.no_version().with_api(api.name());
                self.respond(token, Err(error));
                self.connection.ask_versions_again(now);
                continue;
            };
            let tag = RequestTag::Cluster(token);
            if let Err(error) =
                self.connection.send(now, api, version, tag, timeout, |out| encode(version, out))
            {
                self.respond(token, Err(error));
            }
        }
    }

    fn handle_response(&mut self, now: Instant, response: Response) {
        let request = &response.request;
        if let Some(time) = asked_for(request.api, request.version, response.body()) {
            self.connection.throttle(now, time);
        }
        match response.request.tag {
            RequestTag::Versions | RequestTag::Sasl | RequestTag::GivenUp => {}
            RequestTag::Cluster(token) => self.respond(token, Ok(response)),
            RequestTag::Produce => {
                if let Some(sender) = &mut self.sender {
                    sender.handle_response(now, response, &self.connection.name());
                }
            }
            RequestTag::Fetch => {
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.handle_response(now, response, &self.connection.name());
                }
            }
            RequestTag::Share => {
                if let Some(share) = &mut self.share {
                    share.handle_response(now, response, &self.connection.name());
                }
            }
        }
    }

    fn handle_lost(&mut self, now: Instant, lost: Vec<(InFlight, bool)>, error: &Error) {
        self.fail_requests(now, lost, error);
        // Requests that wait for this broker go to another one instead of waiting for the reconnection.
        for (request, _) in std::mem::take(&mut self.requests) {
            self.respond(request.token, Err(error.clone().with_api(request.api.name())));
        }
    }

    /// Reports requests that get no response, each with whether any of its bytes may have been sent.
    fn fail_requests(&mut self, now: Instant, lost: Vec<(InFlight, bool)>, error: &Error) {
        for (request, sent) in lost {
            match request.tag {
                RequestTag::Versions | RequestTag::Sasl | RequestTag::GivenUp => {}
                RequestTag::Cluster(token) => {
                    self.respond(token, Err(error.clone().with_api(request.api.name())));
                }
                RequestTag::Produce => {
                    if let Some(sender) = &mut self.sender {
                        sender.handle_lost(now, request, sent, error);
                    }
                }
                RequestTag::Fetch => {
                    if let Some(fetcher) = &mut self.fetcher {
                        fetcher.handle_lost(now, error);
                    }
                }
                RequestTag::Share => {
                    if let Some(share) = &mut self.share {
                        share.handle_lost(now, error);
                    }
                }
            }
        }
    }

    /// Returns the error for an API that can't be used. It blames the broker only if the broker reported its versions.
    fn no_version(&self) -> Error {
        let error = if self.connection.versions().is_guessed() {
            Error::new(ErrorKind::Disconnected, "the broker did not report its API versions")
        } else {
            Error::new(ErrorKind::UnsupportedVersion, "")
        };
        error.with_peer(self.connection.name())
    }

    fn respond(&mut self, token: u64, result: Result<Response, Error>) {
        self.report(ToCluster::Response { token, result });
    }

    fn close(&mut self, now: Instant) {
        if let Some(sender) = &mut self.sender {
            sender.close(&mut self.connection, ErrorKind::Closed);
        }
        let lost = self.connection.shut_down(now);
        let error = Error::new(ErrorKind::Closed, "").with_peer(self.connection.name());
        self.handle_lost(now, lost, &error);
        if let Some(share) = &mut self.share {
            share.close();
        }
        if let Some(sender) = &mut self.sender {
            sender.close(&mut self.connection, ErrorKind::Closed);
        }
        self.drain_parts(now);
        self.connection.note_state(now);
        if let Some(sender) = &mut self.sender {
            for partition in sender.take_partitions() {
                partition.accumulator().detach();
                let report = ProduceReport::Released(Box::new(partition));
                self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Produce(report)));
            }
        }
        self.closed = true;
        self.outputs.push_back(BrokerOutput::Done);
    }

    /// Fails everything that is pending with `error` after a part of the client panicked. The actor can't be used
    /// afterwards.
    pub fn abandon(&mut self, error: &Error) {
        self.closed = true;
        if let Some(sender) = &mut self.sender {
            sender.abandon(&mut self.connection, error);
        }
    }

    /// Returns the contents of a message that must not be lost, because this broker actor can't use it.
    fn bounce(&mut self, message: ToBroker) {
        match message {
            ToBroker::Produce(ProduceMessage::Adopt(partition)) => {
                self.report(ToCluster::Produce(ProduceReport::Released(partition)));
            }
            ToBroker::Request(request) => {
                self.respond(request.token, Err(Error::new(ErrorKind::Closed, "")));
            }
            ToBroker::Share(ShareMessage::Adopt { node, .. } | ShareMessage::End(node)) => {
                self.report(ToCluster::Share(ShareReport::Gone(node)));
            }
            _ => {}
        }
    }
}

/// Returns the error of the requests that a lost connection takes with it. A broker that refuses the connection because it is not
/// the expected node (KIP-1242) does not refuse the requests: they are repeated elsewhere.
fn of_requests(error: &Error) -> Error {
    match error.kind() {
        ErrorKind::Broker(ErrorCode::REBOOTSTRAP_REQUIRED) => {
            error.clone().with_kind(ErrorKind::Disconnected)
        }
        _ => error.clone(),
    }
}
