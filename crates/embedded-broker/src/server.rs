//! The TCP front: one thread with an event loop for all brokers of a cluster.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    io::{self, IoSlice, Read, Write},
    net::{SocketAddr, ToSocketAddrs},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{Buf, Bytes};
use mio::{
    Events, Interest, Poll, Token, Waker,
    net::{TcpListener, TcpStream},
};
use ottla_protocol::time::Instant;

use crate::{
    cluster::{Cluster, Output, Traffic},
    connection::ConnectionId,
    control::Control,
    options::{BrokerId, ClusterOptions},
};

/// A cluster that listens on TCP ports of this machine, until it is dropped.
///
/// ```
/// use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
///
/// let cluster = EmbeddedCluster::start(ClusterOptions::default())?;
/// cluster.control(|control| control.create_topic("demo", 6, 3)).unwrap();
/// println!("bootstrap.servers={}", cluster.bootstrap_servers());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct EmbeddedCluster {
    shared: Arc<Shared>,
    addresses: Vec<(BrokerId, SocketAddr)>,
    bootstrap_servers: String,
    host: String,
    origin: std::time::Instant,
    thread: Option<JoinHandle<()>>,
}

/// Sees what passes between clients and brokers, and from where; on the cluster's thread, which waits for it.
pub type Watcher = dyn Fn(&Traffic, Option<SocketAddr>) + Send + Sync;

struct Shared {
    cluster: Mutex<Cluster>,
    watcher: OnceLock<Box<Watcher>>,
    /// Threads that want the cluster: the event loop lets them go first.
    waiting: AtomicUsize,
    stop: AtomicBool,
    waker: Waker,
    /// Listeners of new brokers, on their way to the event loop.
    added: Mutex<Vec<(BrokerId, TcpListener, SocketAddr)>>,
}

impl EmbeddedCluster {
    /// Starts the brokers; when this returns, clients can connect.
    pub fn start(mut options: ClusterOptions) -> io::Result<Self> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        options.unix_time_origin_ms = i64::try_from(since_1970.as_millis()).unwrap_or(0);
        let (host, first_port) = (options.host.clone(), options.port);
        let mut cluster = Cluster::new(options);
        let poll = Poll::new()?;
        let mut listeners = BTreeMap::new();
        let mut addresses = Vec::new();
        let brokers: Vec<BrokerId> = cluster.endpoints().map(|(id, _, _)| id).collect();
        for (i, broker) in (0u16..).zip(brokers) {
            let port = match first_port {
                0 => 0,
                first => first.checked_add(i).ok_or_else(|| no_port(first))?,
            };
            let mut listener = listen(&host, port)?;
            let address = listener.local_addr()?;
            poll.registry().register(&mut listener, listener_token(broker), Interest::READABLE)?;
            cluster.set_endpoint(broker, &host, address.port());
            listeners.insert(broker, listener);
            addresses.push((broker, address));
        }
        let shared = Arc::new(Shared {
            cluster: Mutex::new(cluster),
            watcher: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            waker: Waker::new(poll.registry(), WAKER)?,
            added: Mutex::default(),
        });
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let servers: Vec<String> =
            addresses.iter().map(|(_, a)| format!("{bracketed}:{}", a.port())).collect();
        let origin = std::time::Instant::now();
        let event_loop = EventLoop {
            shared: Arc::clone(&shared),
            poll,
            origin,
            listeners,
            addresses: addresses.iter().copied().collect(),
            unbound: Vec::new(),
            sockets: BTreeMap::new(),
            readable: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("ottla-embedded-broker".to_owned())
            .spawn(move || event_loop.run())?;
        let bootstrap_servers = servers.join(",");
        Ok(Self { shared, addresses, bootstrap_servers, host, origin, thread: Some(thread) })
    }

    /// Adds a broker on a port of its own, as [`Control::add_broker`] does. False if its id is taken or negative.
    pub fn add_broker(&self, broker: BrokerId) -> io::Result<bool> {
        let listener = listen(&self.host, 0)?;
        let address = listener.local_addr()?;
        let mut added = self.shared.added.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = self.control(|control| control.add_broker(broker, &self.host, address.port()));
        if is_new {
            added.push((broker, listener, address));
            drop(added);
            let _ = self.shared.waker.wake();
        }
        Ok(is_new)
    }

    /// Lets somebody see what passes from now on. There can be one; another one is given back.
    pub fn watch(&self, watcher: Box<Watcher>) -> Result<(), Box<Watcher>> {
        self.shared.watcher.set(watcher)?;
        self.shared.lock().keep_journal();
        Ok(())
    }

    /// How long the cluster has been running: the clock of its [`RequestRecord`](crate::RequestRecord)s.
    pub fn uptime(&self) -> Duration {
        self.origin.elapsed()
    }

    /// All brokers, as clients want it in `bootstrap.servers`.
    pub fn bootstrap_servers(&self) -> String {
        self.bootstrap_servers.clone()
    }

    /// Where each broker listens.
    pub fn addresses(&self) -> &[(BrokerId, SocketAddr)] {
        &self.addresses
    }

    /// Makes things happen that clients can't ask for.
    pub fn control<R>(&self, act: impl FnOnce(&mut Control<'_>) -> R) -> R {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        let mut cluster = self.shared.lock();
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
        let result = act(&mut cluster.control());
        drop(cluster);
        // Without the waker there is no event loop any more, and nothing to be done.
        let _ = self.shared.waker.wake();
        result
    }
}

impl Drop for EmbeddedCluster {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _ = self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct EventLoop {
    shared: Arc<Shared>,
    poll: Poll,
    origin: std::time::Instant,
    listeners: BTreeMap<BrokerId, TcpListener>,
    addresses: BTreeMap<BrokerId, SocketAddr>,
    /// Brokers that are up again but whose port isn't free yet.
    unbound: Vec<BrokerId>,
    sockets: BTreeMap<ConnectionId, Socket>,
    /// Connections that may have bytes to be read.
    readable: Vec<ConnectionId>,
}

struct Socket {
    stream: TcpStream,
    out: VecDeque<Bytes>,
    out_bytes: usize,
    readable: bool,
    /// The cluster was told to wait.
    held: bool,
    /// To be closed once everything is written.
    closing: bool,
    broken: bool,
}

const WAKER: Token = Token(0);
/// Tokens from here on are connections, those below are listeners.
const FIRST_CONNECTION: usize = 1 << 32;
/// While so much has not been taken by the client, it isn't asked what else it wants.
const OUT_LIMIT: usize = 16 << 20;
/// How often one connection is read before the others get their turn.
const READS_PER_TURN: usize = 8;
/// How soon a port that isn't free is tried again.
const BIND_AGAIN: Duration = Duration::from_millis(20);

impl EventLoop {
    fn run(mut self) {
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
            again = self.can_read_more(&mut cluster);
            let traffic = cluster.take_journal();
            drop(cluster);
            self.tell(&traffic);
        }
    }

    fn tell(&self, traffic: &[Traffic]) {
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
        let due = self.shared.lock().poll_timeout().map(|due| due.saturating_since(self.now()));
        match due {
            due if self.unbound.is_empty() => due,
            due => Some(due.map_or(BIND_AGAIN, |due| due.min(BIND_AGAIN))),
        }
    }

    fn note(&mut self, event: &mio::event::Event, cluster: &mut Cluster) {
        let token = event.token();
        if token == WAKER {
            return;
        }
        if token.0 < FIRST_CONNECTION {
            self.accept(broker_of(token), cluster);
            return;
        }
        let id = ConnectionId((token.0 - FIRST_CONNECTION) as u64);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if (event.is_readable() || event.is_read_closed() || event.is_error()) && !socket.readable {
            socket.readable = true;
            self.readable.push(id);
        }
        if event.is_writable() && !socket.out.is_empty() {
            socket.flush();
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
        for (broker, mut listener, address) in added {
            self.addresses.insert(broker, address);
            self.listeners.remove(&broker);
            if self
                .poll
                .registry()
                .register(&mut listener, listener_token(broker), Interest::READABLE)
                .is_ok()
            {
                self.listeners.insert(broker, listener);
            } else {
                self.unbound.push(broker);
            }
        }
    }

    fn accept(&mut self, broker: BrokerId, cluster: &mut Cluster) {
        let Some(listener) = self.listeners.get(&broker) else { return };
        // Any error ends this round: the ones that matter (no descriptors left) pass only with time.
        while let Ok((mut stream, peer)) = listener.accept() {
            let Some(id) = cluster.open(self.now(), broker) else { continue };
            cluster.set_peer(id, peer);
            let token = Token(FIRST_CONNECTION + usize::try_from(id.0).unwrap_or(0));
            let _ = stream.set_nodelay(true);
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut stream, token, interest).is_err() {
                cluster.handle_closed(self.now(), id);
                continue;
            }
            let socket = Socket {
                stream,
                out: VecDeque::new(),
                out_bytes: 0,
                readable: false,
                held: false,
                closing: false,
                broken: false,
            };
            self.sockets.insert(id, socket);
        }
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

    /// True if there may be more to read.
    fn read_one(&mut self, id: ConnectionId, cluster: &mut Cluster) -> bool {
        for _ in 0..READS_PER_TURN {
            let now = self.now();
            let Some(socket) = self.sockets.get_mut(&id) else { return false };
            if socket.closing || socket.broken {
                return false;
            }
            let Some(space) = cluster.read_space(id) else { return true };
            let room = space.len();
            match socket.stream.read(space) {
                Ok(0) => {
                    self.sockets.remove(&id);
                    cluster.handle_closed(now, id);
                    return false;
                }
                Ok(n) => {
                    cluster.handle_read(now, id, n);
                    if n < room {
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
                    self.sockets.remove(&id);
                    cluster.handle_closed(now, id);
                    return false;
                }
            }
        }
        true
    }

    fn can_read_more(&self, cluster: &mut Cluster) -> bool {
        self.readable.iter().any(|id| cluster.read_space(*id).is_some())
    }

    /// Does what the cluster wants done.
    fn drain(&mut self, cluster: &mut Cluster) {
        while let Some(output) = cluster.poll_output() {
            match output {
                Output::Send { connection, frame } => {
                    let Some(socket) = self.sockets.get_mut(&connection) else { continue };
                    socket.out_bytes += frame.len();
                    socket.out.extend(frame.into_chunks());
                    socket.flush();
                    if socket.out_bytes > OUT_LIMIT && !socket.held {
                        socket.held = true;
                        cluster.hold(connection, true);
                    }
                    self.close_if_done(connection, cluster);
                }
                Output::Close { connection, .. } => {
                    if let Some(socket) = self.sockets.get_mut(&connection) {
                        socket.closing = true;
                        self.close_if_done(connection, cluster);
                    }
                }
                Output::StopListening { broker } => {
                    self.listeners.remove(&broker);
                    self.unbound.retain(|unbound| *unbound != broker);
                }
                Output::StartListening { broker } => {
                    self.unbound.push(broker);
                    self.bind_again();
                }
            }
        }
    }

    fn close_if_done(&mut self, id: ConnectionId, cluster: &mut Cluster) {
        let Some(socket) = self.sockets.get(&id) else { return };
        if socket.broken || socket.closing && socket.out.is_empty() {
            self.sockets.remove(&id);
            cluster.handle_closed(self.now(), id);
        }
    }

    fn bind_again(&mut self) {
        let brokers = std::mem::take(&mut self.unbound);
        for broker in brokers {
            if !self.bind(broker) {
                self.unbound.push(broker);
            }
        }
    }

    fn bind(&mut self, broker: BrokerId) -> bool {
        let Some(address) = self.addresses.get(&broker) else { return true };
        let Ok(mut listener) = TcpListener::bind(*address) else { return false };
        if self.poll.registry().register(&mut listener, listener_token(broker), Interest::READABLE).is_err() {
            return false;
        }
        self.listeners.insert(broker, listener);
        true
    }
}

impl Socket {
    /// Writes as much as the system takes.
    fn flush(&mut self) {
        while !self.out.is_empty() && !self.broken {
            let mut slices = [IoSlice::new(&[]); 64];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.out) {
                *slice = IoSlice::new(chunk);
                count += 1;
            }
            match self.stream.write_vectored(&slices[..count]) {
                Ok(0) => self.broken = true,
                Ok(n) => self.written(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
        }
    }

    fn written(&mut self, mut n: usize) {
        self.out_bytes -= n;
        while let Some(front) = self.out.front_mut() {
            if front.len() > n {
                front.advance(n);
                return;
            }
            n -= front.len();
            self.out.pop_front();
        }
    }
}

/// 0 is the waker's, and a broker may have that id, too.
fn listener_token(broker: BrokerId) -> Token {
    Token(usize::try_from(broker.0).map_or(0, |id| id + 1))
}

fn broker_of(token: Token) -> BrokerId {
    BrokerId(i32::try_from(token.0.wrapping_sub(1)).unwrap_or(-1))
}

fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut last = no_address(host);
    for address in (host, port).to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = io::Error::new(error.kind(), format!("can't listen on {address}: {error}")),
        }
    }
    Err(last)
}

fn no_address(host: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AddrNotAvailable, format!("{host} has no address to listen on"))
}

fn no_port(first: u16) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("there are not enough ports from {first} on for all brokers"),
    )
}
