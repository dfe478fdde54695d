//! Functions of the application that do not return: calls end in time, and the memory of the blocked thread is freed once the
//! function returns. In a process of its own, because all clients of a process share the I/O threads.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, ErrorKind, Producer, Record, SystemTransport, Transport};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(20);

/// A function that does not return until it is released.
#[derive(Debug, Default)]
struct Stuck {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_inside: bool,
    is_released: bool,
}

impl Stuck {
    fn stay(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_inside = true;
        self.changed.notify_all();
        while !state.is_released {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn wait_until_inside(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.is_inside {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn release(&self) {
        self.state.lock().unwrap().is_released = true;
        self.changed.notify_all();
    }
}

/// A transport that blocks in `connect`, or in `resolve`.
#[derive(Debug, Default)]
struct StuckTransport {
    connects: Stuck,
    resolves: Option<Stuck>,
}

impl Transport for StuckTransport {
    fn connect(&self, socket: &TcpStream, address: SocketAddr, broker: &str) -> io::Result<()> {
        self.connects.stay();
        SystemTransport.connect(socket, address, broker)
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolves.as_ref().inspect(|stuck| stuck.stay());
        SystemTransport.resolve(host, port)
    }

    fn resolves_addresses(&self) -> bool {
        self.resolves.is_some()
    }
}

fn config(cluster: &EmbeddedCluster) -> Config {
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config
}

fn stuck_producer(cluster: &EmbeddedCluster, transport: &Arc<StuckTransport>) -> Producer {
    let transport = Arc::clone(transport) as Arc<dyn Transport>;
    let mut config = config(cluster);
    // Its record would be delivered in the background, by the thread that is blocked.
    config.set("drop.timeout.ms", "0").unwrap();
    let producer = Producer::builder(&config).transport(transport).build().unwrap();
    producer.send("stuck", Record::new().value("v")).unwrap();
    producer
}

/// Waits until the blocked thread has freed its transport.
fn wait_until_let_go(transport: &Arc<StuckTransport>) {
    let start = Instant::now();
    while Arc::strong_count(transport) > 1 {
        assert!(start.elapsed() < SOON, "the thread keeps the transport");
        thread::sleep(Duration::from_millis(5));
    }
}

fn works(cluster: &EmbeddedCluster) {
    let producer = Producer::new(&config(cluster)).unwrap();
    producer.send("works", Record::new().value("v")).unwrap();
    producer.flush(SOON).unwrap();
    producer.close(SOON).unwrap();
}

/// One test, because a blocked thread delays the clients of other tests.
#[test]
fn calls_end_in_time_when_a_callback_does_not_return() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();

    // `close` returns an error in time, and new clients work.
    let transport = Arc::<StuckTransport>::default();
    let producer = stuck_producer(&cluster, &transport);
    transport.connects.wait_until_inside();
    let start = Instant::now();
    let error = producer.close(Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    works(&cluster);
    let start = Instant::now();
    drop(producer);
    assert!(start.elapsed() < Duration::from_secs(5), "the second wait is short: {:?}", start.elapsed());
    transport.connects.release();
    wait_until_let_go(&transport);

    // Dropping the last client without closing it ends in time, too.
    let transport = Arc::<StuckTransport>::default();
    let producer = stuck_producer(&cluster, &transport);
    transport.connects.wait_until_inside();
    let start = Instant::now();
    drop(producer);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    works(&cluster);
    transport.connects.release();
    wait_until_let_go(&transport);

    // A blocked resolver delays neither `close` nor the other clients, which share its thread.
    let keeper = Producer::new(&config(&cluster)).unwrap();
    let transport = StuckTransport { resolves: Some(Stuck::default()), ..StuckTransport::default() };
    transport.connects.release();
    let transport = Arc::new(transport);
    let producer = stuck_producer(&cluster, &transport);
    let resolves = transport.resolves.as_ref().unwrap();
    resolves.wait_until_inside();
    let mut by_name = config(&cluster);
    by_name.set("bootstrap.servers", &cluster.bootstrap_servers().replace("127.0.0.1", "localhost")).unwrap();
    by_name.set("broker.address.family", "v4").unwrap();
    let waits = Producer::new(&by_name).unwrap();
    waits.send("waits", Record::new().value("v")).unwrap();
    let start = Instant::now();
    let _ = producer.close(Duration::ZERO);
    drop(producer);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    waits.flush(SOON).unwrap();
    resolves.release();
    wait_until_let_go(&transport);
    drop((keeper, waits));
}
