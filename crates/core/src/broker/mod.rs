//! One broker: its connection, what is sent to it and what is fetched from it. Read [`connection`] first, then
//! [`Sender`] and the receiving half in [`crate::fetch`].
//!
//! ```text
//!              mail of the cluster's owner
//!                         │
//!   application ──► sender│   fetcher ──► application
//!                    └────┼─────┘
//!                     connection
//!                         │
//!                       socket
//! ```

pub mod buffer;
pub mod connection;
pub mod frame;
pub mod inflight;
#[cfg(test)]
mod scripted;
pub(crate) mod throttle;
pub mod versions;

use std::{collections::VecDeque, io::IoSlice, sync::Arc};

use core::net::SocketAddr;

use self::{
    buffer::BufferPool,
    connection::{Connection, ConnectionOutput, ConnectionSettings, Response},
    inflight::{InFlight, RequestTag},
};
use crate::{
    error::{Error, ErrorKind},
    fetch::fetcher::{Fetcher, FetcherOutput},
    fetch::shared::ConsumerShared,
    machine::{Instant, earliest},
    mail::{ClusterRequest, ToBroker, ToCluster},
    produce::{
        sender::{Sender, SenderOutput},
        shared::ProducerShared,
    },
    rng::Rng,
    stats::Gather,
    wake::WakeHandle,
};

/// The owner of one broker.
#[derive(Debug)]
pub struct BrokerCore {
    connection: Connection,
    sender: Option<Sender>,
    fetcher: Option<Fetcher>,
    requests: VecDeque<(ClusterRequest, Instant)>,
    wakeups: i64,
    outputs: VecDeque<BrokerOutput>,
    closed: bool,
}

/// What a broker's owner is made of.
#[derive(Clone, Debug)]
pub struct BrokerParts {
    /// The connection's settings.
    pub connection: Arc<ConnectionSettings>,
    /// The producer's shared half, if the client produces.
    pub producer: Option<Arc<ProducerShared>>,
    /// The consumer's shared half, if the client consumes.
    pub consumer: Option<Arc<ConsumerShared>>,
    /// Large responses' memory.
    pub buffers: BufferPool,
}

/// What a broker's owner wants from its driver.
#[derive(Debug)]
pub enum BrokerOutput {
    /// Resolve a host name; answer with [`BrokerCore::handle_resolved`].
    Resolve {
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Open a socket; answer with [`BrokerCore::handle_connected`] or [`BrokerCore::handle_closed`].
    Connect(SocketAddr),
    /// Close the socket.
    CloseSocket,
    /// Mail for the cluster's owner.
    ToCluster(ToCluster),
    /// The owner is done and may be dropped.
    Done,
}

impl BrokerCore {
    /// The owner of the broker at this address. `wake` makes the driver run it.
    pub fn new(
        parts: &BrokerParts,
        host: String,
        port: u16,
        node_id: Option<i32>,
        wake: WakeHandle,
        mut rng: Rng,
    ) -> Self {
        let sender =
            parts.producer.clone().map(|shared| Sender::new(shared, node_id, wake.clone(), rng.fork()));
        let fetcher = parts
            .consumer
            .clone()
            .map(|shared| Fetcher::new(shared, node_id, parts.buffers.clone(), wake, rng.fork()));
        let connection =
            Connection::new(Arc::clone(&parts.connection), host, port, node_id, parts.buffers.clone(), rng);
        Self {
            connection,
            sender,
            fetcher,
            requests: VecDeque::new(),
            wakeups: 0,
            outputs: VecDeque::new(),
            closed: false,
        }
    }

    /// `host:port/node`, as errors and logs call the broker.
    pub fn name(&self) -> String {
        self.connection.name()
    }

    /// What the system calls the socket that is being opened, for observers.
    pub const fn set_socket(&mut self, socket: Option<i32>) {
        self.connection.set_socket(socket);
    }

    /// Mail from the cluster's owner.
    pub fn handle_mail(&mut self, now: Instant, mail: ToBroker) {
        if self.closed {
            return self.bounce(mail);
        }
        match mail {
            ToBroker::AdoptProducer(partition) => match &mut self.sender {
                Some(sender) => sender.adopt(*partition),
                None => {
                    self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::ReleasedProducer(partition)))
                }
            },
            ToBroker::ReleaseProducer { topic, partition } => {
                if let Some(sender) = &mut self.sender {
                    sender.release(&topic, partition, &mut self.connection);
                }
            }
            ToBroker::PauseProducer { topic, partition } => {
                if let Some(sender) = &mut self.sender {
                    sender.pause(&topic, partition);
                }
            }
            ToBroker::Request(request) => {
                let deadline = now + request.timeout;
                self.requests.push_back((request, deadline));
            }
            ToBroker::Fetch(mail) => {
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.handle_mail(now, mail);
                }
            }
            ToBroker::SetNode(id) => {
                self.connection.set_node_id(id);
                if let Some(sender) = &mut self.sender {
                    sender.set_broker_id(id);
                }
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.set_broker_id(id);
                }
            }
            ToBroker::SetAddress { host, port } => self.connection.set_address(now, &host, port),
            ToBroker::Connect => self.connection.want(now),
            ToBroker::Reconnect => self.connection.reconnect(now),
            ToBroker::Look => {}
            ToBroker::Statistics(gather) => return self.add_statistics(now, &gather),
            ToBroker::Purge(purge) => {
                if let Some(sender) = &mut self.sender {
                    sender.purge(purge, &mut self.connection);
                }
            }
            ToBroker::Close => return self.close(now),
        }
        self.advance(now);
    }

    /// Somebody woke this owner.
    pub fn handle_wake(&mut self, now: Instant) {
        self.wakeups += 1;
        self.advance(now);
    }

    /// The addresses of a host that was to be resolved, or why there are none.
    pub fn handle_resolved(&mut self, now: Instant, result: Result<Vec<SocketAddr>, String>) {
        self.connection.handle_resolved(now, result);
        self.advance(now);
    }

    /// The socket is connected.
    pub fn handle_connected(&mut self, now: Instant) {
        self.connection.handle_connected(now);
        self.advance(now);
    }

    /// The socket was closed, or could not be opened.
    pub fn handle_closed(&mut self, now: Instant, reason: &str) {
        self.connection.handle_closed(now, reason);
        self.advance(now);
    }

    /// Where the driver reads the next bytes to.
    pub fn read_space(&mut self) -> &mut [u8] {
        self.connection.read_space()
    }

    /// The driver read `n` bytes into [`BrokerCore::read_space`].
    pub fn handle_read(&mut self, now: Instant, n: usize) {
        self.connection.handle_read(now, n);
        while let Some(response) = self.connection.next_response(now) {
            self.handle_response(now, response);
        }
        self.advance(now);
    }

    /// Fills `slices` with the bytes to write next; answers how many.
    pub fn unsent<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.connection.unsent(slices)
    }

    /// How many bytes are ready to be written.
    pub const fn unsent_bytes(&self) -> usize {
        self.connection.unsent_bytes()
    }

    /// The socket took `n` bytes.
    pub fn handle_written(&mut self, now: Instant, n: usize) {
        let mut over = Vec::new();
        self.connection.handle_written(now, n, &mut over);
        if let Some(sender) = &mut self.sender {
            over.into_iter().for_each(|request| sender.handle_written(request));
        }
        self.advance(now);
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        // What was in flight is older than what waits, and comes back before that times out.
        self.drain_parts(now);
        if let Some(sender) = &mut self.sender {
            sender.handle_timeout(now, &mut self.connection);
        }
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.handle_timeout(now);
        }
        if self.requests.iter().any(|(_, deadline)| *deadline <= now) {
            let (late, waiting): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut self.requests).into_iter().partition(|(_, deadline)| *deadline <= now);
            self.requests = waiting;
            for (request, _) in late {
                let detail = if self.connection.is_ready() {
                    "not sent: the broker asked to be left alone for longer"
                } else {
                    "not sent: there is no connection"
                };
                let error = Error::new(ErrorKind::TimedOut, detail).with_peer(self.connection.name());
                self.answer(request.token, Err(error.with_api(request.api.name())));
            }
        }
        self.advance(now);
    }

    /// When to call [`BrokerCore::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut deadline = self.connection.poll_timeout();
        if let Some(sender) = &self.sender {
            deadline = earliest(deadline, sender.poll_timeout(&self.connection));
        }
        if let Some(fetcher) = &self.fetcher {
            deadline = earliest(deadline, fetcher.poll_timeout(&self.connection));
        }
        earliest(deadline, self.requests.iter().map(|(_, deadline)| *deadline).min())
    }

    /// What the driver has to do next.
    pub fn poll_output(&mut self) -> Option<BrokerOutput> {
        self.outputs.pop_front()
    }

    /// Sends what can be sent and passes on what the parts say.
    fn advance(&mut self, now: Instant) {
        loop {
            self.drain_parts(now);
            if self.closed {
                return;
            }
            let wanted = !self.requests.is_empty()
                || self.sender.as_ref().is_some_and(Sender::wants_connection)
                || self.fetcher.as_ref().is_some_and(Fetcher::wants_connection);
            if wanted {
                self.connection.want(now);
            }
            if self.connection.may_send() {
                self.send_requests(now);
                if let Some(fetcher) = &mut self.fetcher {
                    fetcher.pump(now, &mut self.connection);
                }
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

    /// Passes on what connection, sender and fetcher say; true if that may have made new work.
    fn drain_parts(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(output) = self.connection.poll_output() {
            match output {
                ConnectionOutput::Resolve { host, port } => {
                    self.outputs.push_back(BrokerOutput::Resolve { host, port });
                }
                ConnectionOutput::Connect(address) => self.outputs.push_back(BrokerOutput::Connect(address)),
                ConnectionOutput::Close => self.outputs.push_back(BrokerOutput::CloseSocket),
                ConnectionOutput::Up => {
                    changed = true;
                    if let Some(sender) = &mut self.sender {
                        sender.handle_up();
                    }
                    if let Some(fetcher) = &mut self.fetcher {
                        fetcher.handle_connected(now);
                    }
                    self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Up));
                }
                ConnectionOutput::Idle { looks_again } => {
                    changed = true;
                    self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Idle { looks_again }));
                }
                ConnectionOutput::Down { error, lost } => {
                    changed = true;
                    if let Some(sender) = &mut self.sender {
                        sender.handle_down(&error);
                    }
                    self.handle_lost(now, lost, &error);
                    self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Down(error)));
                }
            }
        }
        if let Some(sender) = &mut self.sender {
            while let Some(output) = sender.poll_output() {
                match output {
                    SenderOutput::Released(partition) => {
                        self.outputs
                            .push_back(BrokerOutput::ToCluster(ToCluster::ReleasedProducer(partition)));
                    }
                    SenderOutput::RefreshMetadata(topic) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::RefreshMetadata(topic)));
                    }
                    SenderOutput::UnknownTopicId(topic, id) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::UnknownTopicId(topic, id)));
                    }
                    SenderOutput::LeaderHint(hint) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::LeaderHint(hint)));
                    }
                    SenderOutput::RenewIdentity(identity) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::RenewIdentity(identity)));
                    }
                    SenderOutput::HoldBack(time) => self.connection.hold_back(now, time),
                    SenderOutput::Fatal(error) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::FatalProducer(error)));
                    }
                    SenderOutput::Throttled(millis) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Throttled(millis)));
                    }
                    SenderOutput::Odd(error) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Odd(error)));
                    }
                    SenderOutput::Misbehaved(error) => {
                        changed = true;
                        self.connection.handle_misbehaviour(now, error);
                    }
                }
            }
        }
        if let Some(fetcher) = &mut self.fetcher {
            while let Some(output) = fetcher.poll_output() {
                match output {
                    FetcherOutput::ToCluster(reply) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Fetch(reply)));
                    }
                    FetcherOutput::LeaderHint(hint) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::LeaderHint(hint)));
                    }
                    FetcherOutput::RefreshMetadata(topic) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::RefreshMetadata(topic)));
                    }
                    FetcherOutput::UnknownTopicId(topic, id) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::UnknownTopicId(topic, id)));
                    }
                    FetcherOutput::Throttled(millis) => {
                        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Throttled(millis)));
                    }
                    FetcherOutput::Misbehaved(error) => {
                        changed = true;
                        self.connection.handle_misbehaviour(now, error);
                    }
                }
            }
        }
        changed
    }

    fn add_statistics(&mut self, now: Instant, gather: &Gather) {
        let mut broker = self.connection.statistics(now, gather.reset);
        broker.wakeups = self.wakeups;
        let node = self.connection.node_id();
        gather.add(|statistics| {
            if let Some(sender) = &mut self.sender {
                sender.add_statistics(statistics, &mut broker, node, gather.reset);
            }
            if let Some(fetcher) = &self.fetcher {
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
                self.answer(token, Err(error));
                continue;
            };
            let tag = RequestTag::Cluster(token);
            if let Err(error) =
                self.connection.send(now, api, version, tag, timeout, |out| encode(version, out))
            {
                self.answer(token, Err(error));
            }
        }
    }

    fn handle_response(&mut self, now: Instant, response: Response) {
        let request = &response.request;
        if let Some(time) = throttle::asked_for(request.api, request.version, response.body()) {
            self.connection.hold_back(now, time);
        }
        match response.request.tag {
            RequestTag::Versions => {}
            RequestTag::Cluster(token) => self.answer(token, Ok(response)),
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
        }
    }

    fn handle_lost(&mut self, now: Instant, lost: Vec<(InFlight, bool)>, error: &Error) {
        for (request, sent) in lost {
            match request.tag {
                RequestTag::Versions => {}
                RequestTag::Cluster(token) => {
                    self.answer(token, Err(error.clone().with_api(request.api.name())));
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
            }
        }
        // Whoever waits for this broker should ask another one instead of waiting for the reconnection.
        for (request, _) in std::mem::take(&mut self.requests) {
            self.answer(request.token, Err(error.clone().with_api(request.api.name())));
        }
    }

    /// Why an API can't be used: it is the broker's word only if the broker gave it.
    fn no_version(&self) -> Error {
        let error = if self.connection.versions().is_guessed() {
            Error::new(ErrorKind::Disconnected, "the broker did not tell which versions it speaks")
        } else {
            Error::new(ErrorKind::UnsupportedVersion, "")
        };
        error.with_peer(self.connection.name())
    }

    fn answer(&mut self, token: u64, result: Result<Response, Error>) {
        self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::Answer { token, result }));
    }

    fn close(&mut self, now: Instant) {
        if let Some(sender) = &mut self.sender {
            sender.close(&mut self.connection, ErrorKind::Closed);
        }
        let lost = self.connection.shut_down(now);
        let error = Error::new(ErrorKind::Closed, "").with_peer(self.connection.name());
        self.handle_lost(now, lost, &error);
        if let Some(sender) = &mut self.sender {
            sender.close(&mut self.connection, ErrorKind::Closed);
        }
        self.drain_parts(now);
        self.connection.note_state(now);
        if let Some(sender) = &mut self.sender {
            for partition in sender.take_partitions() {
                partition.accumulator().clear_owner();
                let mail = ToCluster::ReleasedProducer(Box::new(partition));
                self.outputs.push_back(BrokerOutput::ToCluster(mail));
            }
        }
        self.closed = true;
        self.outputs.push_back(BrokerOutput::Done);
    }

    /// A part of the client panicked: fails everything that is left with `error`. The owner is of no use afterwards.
    pub fn abandon(&mut self, error: &Error) {
        self.closed = true;
        if let Some(sender) = &mut self.sender {
            sender.abandon(&mut self.connection, error);
        }
    }

    /// Mail that came after the end goes back.
    fn bounce(&mut self, mail: ToBroker) {
        match mail {
            ToBroker::AdoptProducer(partition) => {
                self.outputs.push_back(BrokerOutput::ToCluster(ToCluster::ReleasedProducer(partition)));
            }
            ToBroker::Request(request) => {
                self.answer(request.token, Err(Error::new(ErrorKind::Closed, "")));
            }
            _ => {}
        }
    }
}
