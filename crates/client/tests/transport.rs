//! A transport of the application: its sockets and its resolver.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ottla::{Config, Event, Producer, Record, SystemTransport, Transport};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(20);

/// Counts calls, and passes them to the system or fails.
#[derive(Debug, Default)]
struct Counting {
    opened: AtomicUsize,
    connected: AtomicUsize,
    closed: AtomicUsize,
    resolved: AtomicUsize,
    /// For each socket, whether it is for IPv4.
    families: Mutex<Vec<bool>>,
    /// Whether `connect` succeeds without connecting.
    forgets_to_connect: bool,
    /// Whether sockets stay blocking.
    makes_blocking: bool,
    /// The error of `resolve`.
    refusal: Option<&'static str>,
}

impl Transport for Counting {
    fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.families.lock().unwrap().push(address.is_ipv4());
        SystemTransport.open(address)
    }

    fn connect(&self, socket: &TcpStream, address: SocketAddr, broker: &str) -> io::Result<()> {
        self.connected.fetch_add(1, Ordering::SeqCst);
        let hosts = ["somewhere.example:", "both.example:", "127.0.0.1:"];
        assert!(hosts.iter().any(|host| broker.starts_with(host)), "{broker}");
        if self.makes_blocking {
            socket.set_nonblocking(false)?;
        }
        if self.forgets_to_connect { Ok(()) } else { SystemTransport.connect(socket, address, broker) }
    }

    fn close(&self, socket: TcpStream) {
        self.closed.fetch_add(1, Ordering::SeqCst);
        SystemTransport.close(socket);
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolved.fetch_add(1, Ordering::SeqCst);
        match self.refusal {
            Some(text) => Err(io::Error::other(text)),
            None if host == "both.example" => {
                Ok(vec![([0, 0, 0, 0, 0, 0, 0, 1], port).into(), ([127, 0, 0, 1], port).into()])
            }
            None if host == "somewhere.example" => Ok(vec![([127, 0, 0, 1], port).into()]),
            None => SystemTransport.resolve(host, port),
        }
    }

    fn resolves_addresses(&self) -> bool {
        true
    }
}

fn producer(transport: &Arc<Counting>, host: &str, cluster: &EmbeddedCluster) -> Producer {
    let servers = cluster.bootstrap_servers();
    let (_, port) = servers.rsplit_once(':').unwrap();
    let mut config = Config::new();
    config.set("bootstrap.servers", &format!("{host}:{port}")).unwrap();
    Producer::builder(&config).transport(Arc::clone(transport) as _).build().unwrap()
}

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions { brokers: 1, ..ClusterOptions::default() }).unwrap()
}

/// Returns the text of the error when no broker is reachable.
fn complaint(producer: &Producer) -> String {
    producer.topic("t");
    let until = Instant::now() + SOON;
    while Instant::now() < until {
        if let Some(Event::AllBrokersDown(error) | Event::Error(error)) = producer.poll_event() {
            return error.to_string();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no event");
}

#[test]
fn transport_opens_and_closes_every_socket_and_resolves_every_host() {
    let (cluster, transport) =
        (cluster(), Arc::new(Counting { makes_blocking: true, ..Counting::default() }));
    let producer = producer(&transport, "somewhere.example", &cluster);
    let sent = producer.topic("t").send_tracked(Record::new().value("v")).unwrap().wait(SOON).unwrap();
    assert_eq!(sent.offset, Some(0));
    producer.close(SOON).unwrap();
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    // The bootstrap server, and the broker of its metadata.
    assert_eq!((count(&transport.opened), count(&transport.connected)), (2, 2));
    assert_eq!((count(&transport.closed), count(&transport.resolved)), (2, 2));
}

#[test]
fn client_connects_only_to_addresses_of_the_configured_family() {
    let (cluster, transport) = (cluster(), Arc::new(Counting::default()));
    let with = |host: &str, family: &str| {
        let servers = cluster.bootstrap_servers();
        let (_, port) = servers.rsplit_once(':').unwrap();
        let mut config = Config::new();
        config.set("bootstrap.servers", &format!("{host}:{port}")).unwrap();
        config.set("broker.address.family", family).unwrap();
        Producer::builder(&config).transport(Arc::clone(&transport) as _).build().unwrap()
    };
    for host in ["both.example", "127.0.0.1"] {
        let said = complaint(&with(host, "v6"));
        let expected = if host == "127.0.0.1" { "no IPv6 address (broker.address.family)" } else { "[::1]" };
        assert!(said.contains(expected) || said.contains("refused"), "{said}");
    }
    assert!(transport.families.lock().unwrap().iter().all(|is_v4| !is_v4));
    let producer = with("both.example", "v4");
    producer.topic("t").send_tracked(Record::new().value("v")).unwrap().wait(SOON).unwrap();
    let said = complaint(&with("[::1]", "v4"));
    assert!(said.contains("no IPv4 address (broker.address.family)"), "{said}");
}

#[test]
fn socket_is_closed_at_once_when_the_transport_does_not_connect_it() {
    let (cluster, transport) =
        (cluster(), Arc::new(Counting { forgets_to_connect: true, ..Counting::default() }));
    let producer = producer(&transport, "127.0.0.1", &cluster);
    let said = complaint(&producer);
    assert!(said.contains("the transport did not connect the socket"), "{said}");
    producer.close(Duration::ZERO).unwrap();
    assert_eq!(transport.opened.load(Ordering::SeqCst), transport.closed.load(Ordering::SeqCst));
}

#[test]
fn error_has_the_text_of_the_applications_resolver() {
    let (cluster, transport) =
        (cluster(), Arc::new(Counting { refusal: Some("not today"), ..Counting::default() }));
    let producer = producer(&transport, "127.0.0.1", &cluster);
    let said = complaint(&producer);
    assert!(said.contains("can't resolve 127.0.0.1: not today"), "{said}");
    producer.close(Duration::ZERO).unwrap();
}
