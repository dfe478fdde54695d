//! The TCP front end: one thread with an event loop for all brokers of a cluster.
//!
//! # Pitfalls
//!
//! - While a broker is down nothing listens at its port, and the system may give the port to any connection that goes out: the
//!   broker could not come back. A socket that is bound but does not listen keeps the port
//!   (`port_of_a_broker_that_is_down_stays_its_own`).

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::BuildHasher,
    io,
    net::{SocketAddr, ToSocketAddrs},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mio::{Interest, Poll, Waker, net::TcpListener};
use ottla_protocol::time::Instant;
use ottla_sorted::SortedMap;
use socket2::Socket;

use crate::{
    cluster::{Cluster, Traffic},
    control::Control,
    event_loop::{BrokerListener, EventLoop, WAKER, listener_token},
    listeners::ListenerId,
    options::{BrokerId, ClusterOptions},
};

/// A cluster that listens on local TCP ports until it is dropped.
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
    /// The addresses for `bootstrap.servers`, by listener.
    bootstrap_servers: Vec<String>,
    host: String,
    advertised_host: String,
    origin: std::time::Instant,
    /// Sockets that keep the brokers' ports.
    reserved: Mutex<Vec<Socket>>,
    thread: Option<JoinHandle<()>>,
    /// The process ID of the thread's process.
    process: u32,
}

/// A callback for each request and response, with the client's address. It runs on the cluster's thread and blocks it.
pub type Watcher = dyn Fn(&Traffic, Option<SocketAddr>) + Send + Sync;

pub(crate) struct Shared {
    pub cluster: Mutex<Cluster>,
    pub watcher: OnceLock<Box<Watcher>>,
    /// The number of threads that wait for the lock: the event loop lets them go first.
    pub waiting: AtomicUsize,
    pub stop: AtomicBool,
    pub waker: Waker,
    /// Listeners of new brokers, for the event loop to take.
    pub added: Mutex<Vec<(BrokerListener, TcpListener, SocketAddr)>>,
}

impl EmbeddedCluster {
    /// Starts the brokers. Clients can connect when this returns.
    pub fn start(mut options: ClusterOptions) -> io::Result<Self> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        options.unix_time_origin_ms = i64::try_from(since_1970.as_millis()).unwrap_or(0);
        options.seed.get_or_insert_with(random_seed);
        let (host, advertised_host) = (options.host.clone(), options.advertised_host().to_owned());
        let all_listeners = options.all_listeners();
        let mut cluster = Cluster::new(options);
        let poll = Poll::new()?;
        let mut listeners = SortedMap::new();
        let (mut addresses, mut servers) = (SortedMap::new(), vec![Vec::new(); all_listeners.len()]);
        let mut reserved = Vec::new();
        let brokers: Vec<BrokerId> = cluster.endpoints().map(|(id, _, _)| id).collect();
        for (i, broker) in (0u16..).zip(brokers) {
            cluster.set_endpoint(broker, &advertised_host, 0);
            for (id, options) in &all_listeners {
                let port = match options.port {
                    0 => 0,
                    first => first.checked_add(i).ok_or_else(|| no_port(first))?,
                };
                let mut listener = listen(&host, port, &mut reserved)?;
                let address = listener.local_addr()?;
                let key = (broker, *id);
                poll.registry().register(&mut listener, listener_token(key), Interest::READABLE)?;
                let port = match options.advertised_port {
                    Some(first) => first.checked_add(i).ok_or_else(|| no_port(first))?,
                    None => address.port(),
                };
                cluster.set_listener_port(broker, *id, port);
                servers[id.0].push(endpoint(&advertised_host, port));
                listeners.insert(key, listener);
                addresses.insert(key, address);
            }
        }
        let shared = Arc::new(Shared {
            cluster: Mutex::new(cluster),
            watcher: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            waker: Waker::new(poll.registry(), WAKER)?,
            added: Mutex::default(),
        });
        let origin = std::time::Instant::now();
        let event_loop = EventLoop {
            shared: Arc::clone(&shared),
            poll,
            origin,
            listeners,
            addresses: addresses.clone(),
            unbound: Vec::new(),
            sockets: SortedMap::new(),
            readable: Vec::new(),
            out_bytes: 0,
            unaccepted: Vec::new(),
            sweep_at: Instant::ZERO,
        };
        let thread = std::thread::Builder::new()
            .name("ottla-embedded-broker".to_owned())
            .spawn(move || event_loop.run())?;
        let bootstrap_servers = servers.iter().map(|servers| servers.join(",")).collect();
        let of_first = addresses.into_iter().filter(|((_, listener), _)| listener.0 == 0);
        Ok(Self {
            shared,
            addresses: of_first.map(|((broker, _), address)| (broker, address)).collect(),
            bootstrap_servers,
            host,
            advertised_host,
            origin,
            reserved: Mutex::new(reserved),
            thread: Some(thread),
            process: std::process::id(),
        })
    }

    /// Adds a broker on ports of its own, as [`Control::add_broker`] does. Returns false if its ID is in use or negative.
    pub fn add_broker(&self, broker: BrokerId) -> io::Result<bool> {
        let (mut listeners, mut reserved) = (Vec::new(), Vec::new());
        for number in 0..self.bootstrap_servers.len() {
            let listener = listen(&self.host, 0, &mut reserved)?;
            let address = listener.local_addr()?;
            listeners.push(((broker, ListenerId(number)), listener, address));
        }
        let ports: Vec<u16> = listeners.iter().map(|(_, _, address)| address.port()).collect();
        let (first, further) = ports.split_first().unwrap_or((&0, &[]));
        let mut added = self.shared.added.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = self.control(|control| {
            let is_new = control.add_broker(broker, &self.advertised_host, *first);
            if is_new {
                control.set_further_ports(broker, further);
            }
            is_new
        });
        if is_new {
            added.append(&mut listeners);
            drop(added);
            self.reserved.lock().unwrap_or_else(PoisonError::into_inner).append(&mut reserved);
            let _ = self.shared.waker.wake();
        }
        Ok(is_new)
    }

    /// Sets the watcher of all further traffic. There can be only one; a second one is returned as the error.
    pub fn watch(&self, watcher: Box<Watcher>) -> Result<(), Box<Watcher>> {
        self.shared.watcher.set(watcher)?;
        self.shared.lock().keep_journal();
        Ok(())
    }

    /// Returns how long the cluster has been running: the clock of its [`RequestRecord`](crate::RequestRecord)s.
    pub fn uptime(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Returns the addresses of all brokers for `bootstrap.servers`, at the first listener.
    pub fn bootstrap_servers(&self) -> String {
        self.bootstrap_servers.first().cloned().unwrap_or_default()
    }

    /// Returns the addresses of all brokers for `bootstrap.servers` at a listener; `None` if there is no such listener.
    pub fn bootstrap_servers_of(&self, listener: ListenerId) -> Option<String> {
        self.bootstrap_servers.get(listener.0).cloned()
    }

    /// Returns the address of each broker's first listener.
    pub fn addresses(&self) -> &[(BrokerId, SocketAddr)] {
        &self.addresses
    }

    /// Controls the cluster: causes events that clients can't.
    pub fn control<R>(&self, act: impl FnOnce(&mut Control<'_>) -> R) -> R {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        let mut cluster = self.shared.lock();
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
        let result = act(&mut cluster.control());
        drop(cluster);
        // Without the waker the event loop has ended, and there is nothing to do.
        let _ = self.shared.waker.wake();
        result
    }
}

impl Drop for EmbeddedCluster {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // A forked child has a copy of the handle but not the thread, and it shares the waker with the parent.
            return;
        }
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
    pub fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats host and port for `bootstrap.servers`.
fn endpoint(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Returns a random number from the operating system.
fn random_seed() -> u64 {
    RandomState::new().hash_one((std::process::id(), SystemTime::now()))
}

/// Listens at the first address that is free, and adds the socket that keeps its port to `reserved`.
fn listen(host: &str, port: u16, reserved: &mut Vec<Socket>) -> io::Result<TcpListener> {
    let mut last = no_address(host);
    for address in (host, port).to_socket_addrs()? {
        if let Some((socket, reserved_address)) = reserve(address)
            && let Ok(listener) = TcpListener::bind(reserved_address)
        {
            reserved.push(socket);
            return Ok(listener);
        }
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = io::Error::new(error.kind(), format!("can't listen on {address}: {error}")),
        }
    }
    Err(last)
}

/// Binds a socket that does not listen, if a listener can be bound to the same port besides, as on Linux.
fn reserve(address: SocketAddr) -> Option<(Socket, SocketAddr)> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let socket = Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None).ok()?;
    socket.set_reuse_address(true).ok()?;
    socket.bind(&address.into()).ok()?;
    let address = socket.local_addr().ok()?.as_socket()?;
    Some((socket, address))
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
