//! The cluster over TCP.

mod common;

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use common::{Batch, base_offsets, decode, fetch_request, frame, produce_request, records_of};
use ottla_embedded_broker::{ApiKey, BrokerId, ClusterOptions, EmbeddedCluster, Tail, Traffic};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{fetch::FetchRequest, metadata::MetadataRequest, produce::ProduceRequest},
    message::Request,
};
#[cfg(target_os = "linux")]
use socket2::{Domain, Socket, Type};

fn start(options: ClusterOptions) -> EmbeddedCluster {
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.create_topic("t", 3, 3)).unwrap();
    cluster
}

struct Client {
    stream: TcpStream,
    next: i32,
}

impl Client {
    fn connect(cluster: &EmbeddedCluster, broker: i32) -> Self {
        let (_, address) = cluster.addresses().iter().find(|(id, _)| *id == BrokerId(broker)).unwrap();
        Self::to(*address)
    }

    fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, next: 0 }
    }

    fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        self.next += 1;
        self.stream.write_all(&frame(self.next, version, request)).unwrap();
        self.next
    }

    fn receive<R: Request>(&mut self, version: i16, id: i32) -> R::Response {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; 4 + usize::try_from(i32::from_be_bytes(length)).unwrap()];
        bytes[..4].copy_from_slice(&length);
        self.stream.read_exact(&mut bytes[4..]).unwrap();
        decode::<R>(&bytes, version, id)
    }

    fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request);
        self.receive::<R>(version, id)
    }

    /// Returns true if the broker has closed the connection.
    fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn brokers_listen_at_the_advertised_addresses() {
    let cluster = start(ClusterOptions::default());
    let ports: Vec<i32> = cluster.addresses().iter().map(|(_, address)| i32::from(address.port())).collect();
    let servers: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    assert_eq!(cluster.bootstrap_servers(), servers.join(","));
    for broker in 1..=3 {
        let response = Client::connect(&cluster, broker)
            .call(13, &MetadataRequest { topics: None, ..Default::default() });
        assert_eq!(response.brokers.iter().map(|b| b.port).collect::<Vec<_>>(), ports);
    }
}

#[test]
fn batches_of_all_sizes_round_trip() {
    let cluster = start(ClusterOptions { message_max_bytes: 20 << 20, ..Default::default() });
    let mut client = Client::connect(&cluster, 1);
    let sizes = [1, 10, 2000, 5000, 60_000, 65_400, 70_000, 1_000_000, 12_000_000, 3];
    let mut sent = Vec::new();
    let ids: Vec<i32> = sizes
        .iter()
        .map(|size| {
            let batch = Batch::of(1).value_size(*size).build();
            sent.push(batch.clone());
            client.send(12, &produce_request("t", 0, -1, batch))
        })
        .collect();
    for (offset, id) in ids.into_iter().enumerate() {
        let response = client.receive::<ProduceRequest>(12, id);
        let partition = &response.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (ErrorCode::NONE, offset as i64));
    }
    for (offset, sent) in (0i64..).zip(&sent) {
        let mut request = fetch_request("t", &[(0, offset)], 0);
        request.max_bytes = 1;
        let records = records_of(&client.call(12, &request), 0);
        assert_eq!(records.len(), sent.len());
        assert!(records[16..] == sent[16..], "the records from offset {offset} are the same");
    }
    let mut request = fetch_request("t", &[(0, 0)], 0);
    (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) = (i32::MAX, i32::MAX);
    let all = records_of(&client.call(12, &request), 0);
    assert_eq!(base_offsets(&all), (0..10).collect::<Vec<i64>>());
}

#[test]
fn waiting_fetch_is_woken_at_once_by_another_connection() {
    let cluster = start(ClusterOptions::default());
    let (mut consumer, mut producer) = (Client::connect(&cluster, 1), Client::connect(&cluster, 1));
    let id = consumer.send(12, &fetch_request("t", &[(0, 0)], 10_000));
    std::thread::sleep(Duration::from_millis(50));
    let before = Instant::now();
    producer.call(12, &produce_request("t", 0, 1, Batch::of(1).build()));
    let response = consumer.receive::<FetchRequest>(12, id);
    assert_eq!(base_offsets(&records_of(&response, 0)), [0]);
    assert!(before.elapsed() < Duration::from_secs(5), "it didn't wait for its time to be up");

    let before = Instant::now();
    consumer.call(12, &fetch_request("t", &[(0, 1)], 200));
    assert!((150..5000).contains(&before.elapsed().as_millis()), "{:?}", before.elapsed());
}

#[test]
fn client_that_does_not_read_is_served_within_bounds() {
    let cluster = start(ClusterOptions::default());
    let mut client = Client::connect(&cluster, 1);
    for _ in 0..10 {
        client.call(12, &produce_request("t", 0, 1, Batch::of(1).value_size(1_000_000).build()));
    }
    let mut request = fetch_request("t", &[(0, 0)], 0);
    (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) = (i32::MAX, i32::MAX);
    cluster.control(|control| control.record_requests());
    let ids: Vec<i32> = (0..100).map(|_| client.send(12, &request)).collect();
    let mut served = 0;
    let mut count = || {
        served += cluster.control(|control| control.take_requests()).len();
        served > 0
    };
    assert!(within_seconds(20, &mut count));
    std::thread::sleep(Duration::from_millis(300));
    count();
    assert!((1..20).contains(&served), "{served} responses of 10 MB were prepared without a reader");
    for id in ids {
        assert_eq!(base_offsets(&records_of(&client.receive::<FetchRequest>(12, id), 0)).len(), 10);
    }
}

#[test]
fn killed_broker_refuses_connections_until_it_restarts_on_its_port() {
    let cluster = start(ClusterOptions::default());
    let mut client = Client::connect(&cluster, 2);
    client.call(13, &MetadataRequest::default());
    let address = cluster.addresses()[1].1;
    cluster.control(|control| control.kill_broker(BrokerId(2), Tail::Kept));
    assert!(client.is_closed());
    let refused =
        || TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    assert!(within_seconds(20, refused));
    cluster.control(|control| control.restart_broker(BrokerId(2)));
    assert!(within_seconds(20, || TcpStream::connect(address).is_ok()));
    let response = Client::to(address).call(13, &MetadataRequest::default());
    assert_eq!(response.brokers.len(), 3);
}

/// A socket without `SO_REUSEADDR` gets no port that another one is bound to, as an outgoing connection doesn't.
#[test]
#[cfg(target_os = "linux")]
fn port_of_a_broker_that_is_down_stays_its_own() {
    let cluster = start(ClusterOptions::default());
    assert!(cluster.add_broker(BrokerId(9)).unwrap());
    let response = Client::connect(&cluster, 1).call(9, &MetadataRequest::default());
    let added = response.brokers.iter().find(|broker| broker.node_id == 9).unwrap();
    let added = (Ipv4Addr::LOCALHOST, u16::try_from(added.port).unwrap()).into();
    for (broker, address) in [(2, cluster.addresses()[1].1), (9, added)] {
        cluster.control(|control| control.kill_broker(BrokerId(broker), Tail::Kept));
        let refused =
            || TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
        assert!(within_seconds(20, refused));
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        assert_eq!(other.bind(&address.into()).unwrap_err().kind(), ErrorKind::AddrInUse);
        cluster.control(|control| control.restart_broker(BrokerId(broker)));
        assert!(within_seconds(20, || TcpStream::connect(address).is_ok()));
    }
}

#[test]
fn invalid_frame_closes_only_its_connection() {
    let cluster = start(ClusterOptions::default());
    let mut good = Client::connect(&cluster, 1);
    let hostile: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 0],
        &[0, 0, 0, 3, 0, 0, 0],
    ];
    for bytes in hostile {
        let mut client = Client::connect(&cluster, 1);
        client.stream.write_all(bytes).unwrap();
        assert!(client.is_closed(), "after {bytes:?}");
    }
    // Half a frame waits for the rest.
    let mut half = Client::connect(&cluster, 1);
    half.stream.write_all(&frame(1, 13, &MetadataRequest::default())[..9]).unwrap();
    assert_eq!(good.call(13, &MetadataRequest::default()).brokers.len(), 3);
    half.stream.write_all(&frame(1, 13, &MetadataRequest::default())[9..]).unwrap();
    assert_eq!(half.receive::<MetadataRequest>(13, 1).brokers.len(), 3);
}

#[test]
fn dropped_cluster_closes_connections_and_frees_its_ports() {
    let cluster = start(ClusterOptions::default());
    let mut client = Client::connect(&cluster, 1);
    client.call(13, &MetadataRequest::default());
    let address = cluster.addresses()[0].1;
    drop(cluster);
    assert!(client.is_closed());
    assert!(TcpStream::connect(address).is_err());
    drop(client);
    let again =
        EmbeddedCluster::start(ClusterOptions { brokers: 1, port: address.port(), ..Default::default() });
    assert_eq!(again.unwrap().addresses()[0].1, address);
}

#[test]
fn port_in_use_is_named() {
    let cluster = start(ClusterOptions::default());
    let port = cluster.addresses()[0].1.port();
    let error =
        EmbeddedCluster::start(ClusterOptions { brokers: 1, port, ..Default::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

#[test]
fn many_threads_can_control_a_busy_cluster() {
    let cluster = start(ClusterOptions::default());
    std::thread::scope(|scope| {
        for broker in 1..=3 {
            let cluster = &cluster;
            scope.spawn(move || {
                let mut client = Client::connect(cluster, broker);
                for _ in 0..300 {
                    let request = produce_request("t", broker - 1, 1, Batch::of(1).build());
                    let response = client.call(12, &request);
                    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
                }
            });
            scope.spawn(move || {
                for i in 0..100 {
                    cluster
                        .control(|control| control.create_topic(&format!("t-{broker}-{i}"), 1, 1))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(cluster.control(|control| control.topics().len()), 301);
    for partition in 0..3 {
        let state = cluster.control(|control| control.partition("t", partition)).unwrap();
        assert_eq!(state.log_end_offset, 300);
    }
}

fn within_seconds(seconds: u64, mut check: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        if check() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn added_broker_listens_at_its_advertised_address() {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 1, ..Default::default() }).unwrap();
    assert!(cluster.add_broker(BrokerId(0)).unwrap());
    assert!(!cluster.add_broker(BrokerId(0)).unwrap());
    let response = Client::connect(&cluster, 1).call(9, &MetadataRequest::default());
    assert_eq!(response.brokers.len(), 2);
    let added = response.brokers.iter().find(|broker| broker.node_id == 0).unwrap();
    let port = u16::try_from(added.port).unwrap();
    let response = Client::to((Ipv4Addr::LOCALHOST, port).into()).call(9, &MetadataRequest::default());
    assert_eq!(response.brokers.len(), 2);
    assert!(cluster.control(|control| control.remove_broker(BrokerId(0))));
    let response = Client::connect(&cluster, 1).call(9, &MetadataRequest::default());
    assert_eq!(response.brokers.len(), 1);
}

#[test]
fn watcher_sees_requests_and_responses_and_may_use_the_cluster() {
    let cluster = std::sync::Arc::new(start(ClusterOptions::default()));
    let (seen, reported) = std::sync::mpsc::channel();
    let asked = std::sync::Arc::downgrade(&cluster);
    let watcher = move |traffic: &Traffic, peer: Option<SocketAddr>| {
        let topics = asked.upgrade().map(|cluster| cluster.control(|control| control.topics().len()));
        let _ = seen.send((traffic.broker, traffic.api, traffic.version, traffic.is_response, peer, topics));
    };
    assert!(cluster.watch(Box::new(watcher)).is_ok());
    assert!(cluster.watch(Box::new(|_, _| ())).is_err(), "there is one already");
    let mut client = Client::connect(&cluster, 2);
    let address = client.stream.local_addr().unwrap();
    client.call(12, &MetadataRequest::default());
    for is_response in [false, true] {
        let line = reported.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(line, (BrokerId(2), ApiKey::Metadata, 12, is_response, Some(address), Some(1)));
    }
}

#[test]
fn ids_differ_at_each_start_unless_the_seed_is_set() {
    let ids = |options: ClusterOptions| {
        let cluster = start(options);
        let response = Client::connect(&cluster, 1).call(13, &MetadataRequest::default());
        let topic_id = cluster.control(|control| control.topic_id("t")).unwrap();
        (response.cluster_id.unwrap(), topic_id)
    };
    let (first, second) = (ids(ClusterOptions::default()), ids(ClusterOptions::default()));
    assert_ne!(first.0, second.0);
    assert_ne!(first.1, second.1);
    let fixed = || ids(ClusterOptions { seed: Some(7), ..Default::default() });
    assert_eq!(fixed(), fixed());
    let named = ClusterOptions { seed: Some(7), cluster_id: Some("mine".into()), ..Default::default() };
    assert_eq!(ids(named), ("mine".into(), fixed().1));
}
