//! The event loop: one thread for all brokers of a cluster.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use mio::{Events, Interest, Poll, Token, net::TcpListener};
use ottla_protocol::time::Instant;
use ottla_sorted::SortedMap;

use crate::{
    cluster::{Cluster, Output, Traffic},
    connection::ConnectionId,
    listeners::ListenerId,
    options::BrokerId,
    server::Shared,
    socket::{EDGES_FOLLOW, Socket},
};

/// One listener of one broker.
pub(crate) type BrokerListener = (BrokerId, ListenerId);

pub(crate) struct EventLoop {
    pub shared: Arc<Shared>,
    pub poll: Poll,
    pub origin: std::time::Instant,
    pub listeners: SortedMap<BrokerListener, TcpListener>,
    pub addresses: SortedMap<BrokerListener, SocketAddr>,
    /// Listeners of brokers that are up again but whose port isn't free.
    pub unbound: Vec<BrokerListener>,
    pub sockets: SortedMap<ConnectionId, Socket>,
    /// Connections that may have bytes to read.
    pub readable: Vec<ConnectionId>,
    /// The total size of all unwritten responses in bytes.
    pub out_bytes: usize,
    /// Listeners whose next connection could not be accepted because descriptors or memory ran out. The system does not
    /// report the same connection twice.
    pub unaccepted: Vec<BrokerListener>,
    /// The time of the next check for idle connections.
    pub sweep_at: Instant,
}

pub(crate) const WAKER: Token = Token(0);
/// Tokens from here on are connections; lower tokens are listeners.
const FIRST_CONNECTION: usize = 1 << 48;
/// The number of bits of a listener's token that stand for its broker.
const BROKER_BITS: u32 = 32;
/// A connection with more unwritten response bytes than this gets no further requests handled.
const OUT_LIMIT: usize = 16 << 20;
/// The number of times that one connection is read before the others are read.
const READS_PER_TURN: usize = 8;
/// The delay before the next attempt to bind a port that isn't free, or to accept a connection.
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// The number of checks for idle connections per idle timeout.
const SWEEPS: u32 = 8;

impl EventLoop {
    pub fn run(mut self) {
        let mut events = Events::with_capacity(256);
        let mut again = false;
        loop {
            while self.shared.waiting.load(Ordering::SeqCst) > 0 {
                std::thread::yield_now();
            }
            let timeout = if again { Some(Duration::ZERO) } else { self.timeout() };
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != io::ErrorKind::Interrupted
            {
                return;
            }
            if self.shared.stop.load(Ordering::SeqCst) {
                return;
            }
            self.take_added();
            let shared = Arc::clone(&self.shared);
            let mut cluster = shared.lock();
            for event in &events {
                self.note(event, &mut cluster);
            }
            self.read(&mut cluster);
            let now = self.now();
            if cluster.poll_timeout().is_some_and(|due| due <= now) {
                cluster.handle_timeout(now);
            }
            self.drain(&mut cluster);
            self.bind_again();
            self.accept_again(&mut cluster);
            self.close_idle(&mut cluster);
            again = self.can_read_more(&cluster);
            let traffic = cluster.take_journal();
            drop(cluster);
            self.report_traffic(&traffic);
        }
    }

    fn report_traffic(&self, traffic: &[Traffic]) {
        let Some(watcher) = self.shared.watcher.get() else { return };
        for one in traffic {
            let socket = self.sockets.get(&one.connection);
            watcher(one, socket.and_then(|socket| socket.stream.peer_addr().ok()));
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn timeout(&self) -> Option<Duration> {
        let now = self.now();
        let due = self.shared.lock().poll_timeout();
        let sweep = (!self.sockets.is_empty()).then_some(self.sweep_at);
        let wait = due.into_iter().chain(sweep).min().map(|due| due.saturating_since(now));
        if self.unbound.is_empty() && self.unaccepted.is_empty() {
            return wait;
        }
        Some(wait.map_or(TRY_AGAIN, |wait| wait.min(TRY_AGAIN)))
    }

    fn note(&mut self, event: &mio::event::Event, cluster: &mut Cluster) {
        let token = event.token();
        if token == WAKER {
            return;
        }
        if token.0 < FIRST_CONNECTION {
            self.accept(listener_of(token), cluster);
            return;
        }
        let id = ConnectionId((token.0 - FIRST_CONNECTION) as u64);
        let now = self.now();
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.ended |= event.is_read_closed() || event.is_error();
        if (event.is_readable() || event.is_read_closed() || event.is_error()) && !socket.readable {
            socket.readable = true;
            self.readable.push(id);
        }
        if event.is_writable() && !socket.is_flushed() {
            self.out_bytes -= socket.flush(now);
            if socket.held && socket.out_bytes <= OUT_LIMIT / 2 {
                socket.held = false;
                cluster.hold(id, false);
            }
            self.close_if_done(id, cluster);
        }
    }

    /// Listens for brokers that were added.
    fn take_added(&mut self) {
        let added = std::mem::take(&mut *self.shared.added.lock().unwrap_or_else(PoisonError::into_inner));
        for (key, mut listener, address) in added {
            self.addresses.insert(key, address);
            self.listeners.remove(&key);
            if self.poll.registry().register(&mut listener, listener_token(key), Interest::READABLE).is_ok() {
                self.listeners.insert(key, listener);
            } else {
                self.unbound.push(key);
            }
        }
    }

    fn accept(&mut self, key: BrokerListener, cluster: &mut Cluster) {
        loop {
            let Some(listener) = self.listeners.get(&key) else { return };
            let (mut stream, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if of_one_connection(&error) => continue,
                Err(_) => return self.unaccepted.push(key),
            };
            let now = self.now();
            let Some(id) = cluster.open_on(now, key.0, key.1) else { continue };
            cluster.set_peer(id, peer);
            let token = Token(FIRST_CONNECTION + usize::try_from(id.0).unwrap_or(0));
            let _ = stream.set_nodelay(true);
            #[cfg(target_vendor = "apple")]
            if socket2::SockRef::from(&stream).set_nosigpipe(true).is_err() {
                cluster.handle_closed(self.now(), id);
                continue;
            }
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut stream, token, interest).is_err() {
                cluster.handle_closed(now, id);
                continue;
            }
            if self.sockets.is_empty() {
                self.sweep_at = now + cluster.options.connections_max_idle / SWEEPS;
            }
            let tls = match cluster.options.tls_of(key.1) {
                None => None,
                Some(tls) => match tls.session() {
                    Some(session) => Some(session),
                    None => {
                        cluster.handle_closed(now, id);
                        continue;
                    }
                },
            };
            self.sockets.insert(id, Socket::new(now, stream, tls));
        }
    }

    fn accept_again(&mut self, cluster: &mut Cluster) {
        for key in std::mem::take(&mut self.unaccepted) {
            self.accept(key, cluster);
        }
    }

    /// Closes connections that have been idle for too long: their clients may have vanished without closing them.
    fn close_idle(&mut self, cluster: &mut Cluster) {
        let now = self.now();
        if now < self.sweep_at || self.sockets.is_empty() {
            return;
        }
        let max_idle = cluster.options.connections_max_idle;
        self.sweep_at = now + (max_idle / SWEEPS).max(TRY_AGAIN);
        let idle =
            self.sockets.iter().filter(|(_, socket)| now.saturating_since(socket.active_at) > max_idle);
        let idle: Vec<_> = idle.map(|(id, _)| *id).collect();
        for id in idle {
            self.remove(id, cluster);
        }
    }

    /// Closes connections while unread responses exceed the memory limit.
    fn bound_responses(&mut self, cluster: &mut Cluster) {
        let limit = cluster.options.queued_max_response_bytes;
        if self.out_bytes <= limit {
            return;
        }
        let untaken = self.sockets.iter().filter(|(_, socket)| !socket.out.is_empty());
        let mut untaken: Vec<_> = untaken.map(|(id, socket)| (socket.taken_at, *id)).collect();
        untaken.sort_unstable();
        for (_, id) in untaken {
            // Frees a little more, so that the next response doesn't exceed the limit again.
            if self.out_bytes <= limit - limit / 8 {
                return;
            }
            self.remove(id, cluster);
        }
    }

    /// Closes a connection.
    fn remove(&mut self, id: ConnectionId, cluster: &mut Cluster) {
        if let Some(socket) = self.sockets.remove(&id) {
            self.out_bytes -= socket.out_bytes;
        }
        cluster.handle_closed(self.now(), id);
    }

    fn read(&mut self, cluster: &mut Cluster) {
        let mut turn = std::mem::take(&mut self.readable);
        turn.retain(|id| {
            let more = self.read_one(*id, cluster);
            self.drain(cluster);
            more && self.sockets.contains_key(id)
        });
        turn.append(&mut self.readable);
        self.readable = turn;
    }

    /// Reads one connection; returns true if there may be more to read.
    fn read_one(&mut self, id: ConnectionId, cluster: &mut Cluster) -> bool {
        for _ in 0..READS_PER_TURN {
            let now = self.now();
            let Some(socket) = self.sockets.get_mut(&id) else { return false };
            if socket.closing || socket.broken {
                return false;
            }
            let Some(space) = cluster.read_space(id) else {
                if socket.ended {
                    cluster.handle_end(now, id);
                }
                return true;
            };
            let room = space.len();
            let is_encrypted = socket.tls.is_some();
            match socket.read(space) {
                Ok(0) => {
                    self.remove(id, cluster);
                    return false;
                }
                Ok(n) => {
                    socket.active_at = now;
                    match socket.tls.as_mut().and_then(|tls| tls.take_principal()) {
                        None => {}
                        Some(Ok(principal)) => cluster.set_principal(id, principal),
                        Some(Err(_)) => {
                            self.remove(id, cluster);
                            return false;
                        }
                    }
                    cluster.handle_read(now, id, n);
                    // The end of the stream may follow, which was reported together with these bytes and will not be
                    // reported again.
                    if n < room && !socket.ended && !is_encrypted && EDGES_FOLLOW {
                        socket.readable = false;
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.readable = false;
                    return false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.remove(id, cluster);
                    return false;
                }
            }
        }
        true
    }

    fn can_read_more(&self, cluster: &Cluster) -> bool {
        self.readable.iter().any(|id| cluster.can_read(*id))
    }

    /// Carries out the cluster's outputs.
    fn drain(&mut self, cluster: &mut Cluster) {
        while let Some(output) = cluster.poll_output() {
            match output {
                Output::Send { connection, frame } => {
                    let now = self.now();
                    let Some(socket) = self.sockets.get_mut(&connection) else { continue };
                    if socket.out.is_empty() {
                        socket.taken_at = now;
                    }
                    socket.out_bytes += frame.len();
                    self.out_bytes += frame.len();
                    socket.out.extend(frame.into_chunks());
                    self.out_bytes -= socket.flush(now);
                    if socket.out_bytes > OUT_LIMIT && !socket.held {
                        socket.held = true;
                        cluster.hold(connection, true);
                    }
                    self.close_if_done(connection, cluster);
                    self.bound_responses(cluster);
                }
                Output::Close { connection, .. } => {
                    let now = self.now();
                    if let Some(socket) = self.sockets.get_mut(&connection) {
                        socket.closing = true;
                        self.out_bytes -= socket.flush(now);
                        self.close_if_done(connection, cluster);
                    }
                }
                Output::StopListening { broker } => {
                    self.listeners.retain(|(of, _), _| *of != broker);
                    self.unbound.retain(|(of, _)| *of != broker);
                }
                Output::StartListening { broker } => {
                    self.unbound.extend(self.addresses.keys().filter(|(of, _)| *of == broker));
                    self.bind_again();
                }
            }
        }
    }

    fn close_if_done(&mut self, id: ConnectionId, cluster: &mut Cluster) {
        let Some(socket) = self.sockets.get(&id) else { return };
        if socket.broken || socket.closing && socket.is_flushed() {
            self.remove(id, cluster);
        }
    }

    fn bind_again(&mut self) {
        let keys = std::mem::take(&mut self.unbound);
        for key in keys {
            if !self.bind(key) {
                self.unbound.push(key);
            }
        }
    }

    fn bind(&mut self, key: BrokerListener) -> bool {
        let Some(address) = self.addresses.get(&key) else { return true };
        let Ok(mut listener) = TcpListener::bind(*address) else { return false };
        if self.poll.registry().register(&mut listener, listener_token(key), Interest::READABLE).is_err() {
            return false;
        }
        self.listeners.insert(key, listener);
        true
    }
}

/// Token 0 is the waker's; a broker may have ID 0, too.
pub(crate) fn listener_token((broker, listener): BrokerListener) -> Token {
    Token(usize::try_from(broker.0).map_or(0, |id| (listener.0 << BROKER_BITS) + id + 1))
}

fn listener_of(token: Token) -> BrokerListener {
    let broker = (token.0 & ((1 << BROKER_BITS) - 1)).wrapping_sub(1);
    (BrokerId(i32::try_from(broker).unwrap_or(-1)), ListenerId(token.0 >> BROKER_BITS))
}

/// Returns true if the error concerns one closed connection only, so that the next one can be accepted.
fn of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
