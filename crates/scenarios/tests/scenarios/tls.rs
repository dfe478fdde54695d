//! Connections with TLS to embedded brokers, and to servers that misbehave.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use ottla::{
    Admin, Config, Consumer, Error, ErrorKind, Event, Offset, Producer, Record, SystemTransport, Topic,
    Transport,
};
use ottla_embedded_broker::{
    Acl, AclOperation, Authorizer, ClientAuthentication, ClusterOptions, EmbeddedCluster, Listener,
    ListenerId, PrincipalMapping, ResourceType, SaslListener, SaslMechanism, ScramHash, TestAuthority,
    TlsListener,
};
use ottla_scenarios::TIMEOUT;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

const HOSTS: &[&str] = &["127.0.0.1", "localhost"];

fn cluster(authority: &TestAuthority, authenticates_clients: bool) -> EmbeddedCluster {
    let tls = authority.listener(HOSTS, authenticates_clients).unwrap();
    let options = ClusterOptions { tls: Some(tls), ..ClusterOptions::default() };
    EmbeddedCluster::start(options).unwrap()
}

fn config(servers: &str, authority: &TestAuthority) -> Config {
    Config::from_properties([
        ("bootstrap.servers", servers),
        ("security.protocol", "ssl"),
        ("ssl.ca.pem", authority.pem()),
        ("linger.ms", "1"),
    ])
    .unwrap()
}

fn authority() -> TestAuthority {
    TestAuthority::new("Test CA").unwrap()
}

/// Returns the first error of a client with this configuration.
fn first_error(config: &Config) -> Error {
    let mut config = config.clone();
    config.set("drop.timeout.ms", "0").unwrap();
    let producer = Producer::new(&config).unwrap();
    let _ = producer.send("t", Record::new().value("x"));
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        match producer.poll_event() {
            // On a busy machine the time may be over before the connection is made.
            Some(Event::Error(error)) if error.to_string().contains("no connection after") => {}
            Some(Event::Error(error)) => return error,
            _ => thread::sleep(Duration::from_millis(2)),
        }
    }
    panic!("no error within {TIMEOUT:?}");
}

fn assert_names(error: &Error, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text:?} does not contain {word:?}");
    }
}

#[test]
fn records_of_all_sizes_pass_through_tls() {
    let authority = authority();
    let cluster = cluster(&authority, false);
    let config = config(&cluster.bootstrap_servers(), &authority);
    let producer = Producer::new(&config).unwrap();
    let topic: Topic = producer.topic("sizes");
    let sizes: Vec<usize> = (0..3000)
        .map(|number| (number * 37) % 5000)
        .chain([16_383, 16_384, 16_385, 200_000, 900_000])
        .collect();
    for size in &sizes {
        let value = vec![*size as u8; *size];
        topic.send_blocking(Record::new().value(&value).partition(0), TIMEOUT).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("sizes", 0, Offset::Beginning)]).unwrap();
    let mut received = Vec::new();
    while received.len() < sizes.len() {
        for message in &consumer.poll(TIMEOUT).unwrap() {
            let value = message.value().unwrap_or_default();
            assert!(value.iter().all(|byte| *byte == value.len() as u8));
            received.push(value.len());
        }
    }
    assert_eq!(received, sizes);
    consumer.close(TIMEOUT).unwrap();
    producer.close(TIMEOUT).unwrap();
}

#[test]
fn client_certificate_becomes_the_principal() {
    let authority = authority();
    let cluster = cluster(&authority, true);
    let mut config = config(&cluster.bootstrap_servers(), &authority);
    let error = first_error(&config);
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    assert_names(&error, &["requires a client certificate", "ssl.certificate.location"]);
    let client = authority.issue("alice", &[]).unwrap();
    config.set("ssl.certificate.pem", &client.pem).unwrap();
    config.set("ssl.key.pem", &client.key_pem).unwrap();
    assert!(!format!("{config:?}").contains("PRIVATE KEY"));
    let producer = Producer::new(&config).unwrap();
    producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
    let principals = cluster.control(|control| {
        let connections = control.connections(None);
        connections.iter().filter_map(|one| control.principal(*one).map(str::to_owned)).collect::<Vec<_>>()
    });
    assert!(!principals.is_empty() && principals.iter().all(|name| name == "CN=alice"), "{principals:?}");
    producer.close(TIMEOUT).unwrap();
}

#[test]
fn keys_of_p521_authenticate_client_and_broker() {
    const CA: &str = include_str!("../../../net/src/tls/tests/kinds/p-521-ca.pem");
    const BROKER: &str = include_str!("../../../net/src/tls/tests/kinds/p-521-broker.pem");
    const CLIENT: &str = include_str!("../../../net/src/tls/tests/kinds/p-521-client.pem");
    // Signed by no CA.
    const STRANGER: &str = include_str!("../../../net/src/tls/tests/kinds/client-p-521.pem");
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
    let key = PrivateKeyDer::from_pem_slice(BROKER.as_bytes()).unwrap();
    let clients = ClientAuthentication::Required(vec![certificate(CA)]);
    let tls = TlsListener::new(&[certificate(BROKER)], key.secret_der(), &clients).unwrap();
    let options = ClusterOptions { tls: Some(tls), ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    let config = |client: &str, version| {
        Config::from_properties([
            ("bootstrap.servers", &*cluster.bootstrap_servers()),
            ("security.protocol", "ssl"),
            ("ssl.ca.pem", CA),
            ("ssl.certificate.pem", client),
            ("ssl.key.pem", client),
            ("ssl.enabled.protocols", version),
        ])
        .unwrap()
    };
    for version in ["TLSv1.2", "TLSv1.3"] {
        let producer = Producer::new(&config(CLIENT, version)).unwrap();
        producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
        let principals = cluster.control(|control| {
            let connections = control.connections(None);
            connections
                .iter()
                .filter_map(|one| control.principal(*one).map(str::to_owned))
                .collect::<Vec<_>>()
        });
        assert!(principals.iter().any(|name| name == "CN=client"), "{principals:?}");
        producer.close(TIMEOUT).unwrap();
        let error = first_error(&config(STRANGER, version));
        assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
        assert_names(&error, &["requires a client certificate"]);
    }
}

#[test]
fn rules_map_the_subject_of_a_client_certificate_to_the_principal() {
    let authority = authority();
    let mapping = PrincipalMapping::parse("RULE:^CN=([A-Z]+)$/$1/L").unwrap();
    let options = ClusterOptions {
        tls: Some(authority.listener(HOSTS, true).unwrap().principal_mapping(mapping)),
        authorizer: Some(Authorizer::new([
            Acl::allow("alice", AclOperation::Write, ResourceType::Topic, "t"),
            Acl::allow("alice", AclOperation::Describe, ResourceType::Topic, "t"),
        ])),
        ..ClusterOptions::default()
    };
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
    // No rule matches the last one: the broker closes its connections.
    for (name, is_permitted) in [("ALICE", true), ("BOB", false), ("alice", false)] {
        let mut config = config(&cluster.bootstrap_servers(), &authority);
        let client = authority.issue(name, &[]).unwrap();
        config.set("ssl.certificate.pem", &client.pem).unwrap();
        config.set("ssl.key.pem", &client.key_pem).unwrap();
        config.set("enable.idempotence", "false").unwrap();
        config.set("message.timeout.ms", if is_permitted { "30000" } else { "2000" }).unwrap();
        let producer = Producer::new(&config).unwrap();
        let sent = producer.deliver("t", Record::new().value("x").partition(0), TIMEOUT);
        assert_eq!(sent.is_ok(), is_permitted, "{name}: {sent:?}");
        producer.close(TIMEOUT).unwrap();
    }
}

#[test]
fn access_rules_apply_to_the_subject_of_a_client_certificate() {
    let authority = authority();
    let rule = |operation| Acl::allow("CN=alice", operation, ResourceType::Topic, "t");
    let rules = [rule(AclOperation::Write), rule(AclOperation::Describe)];
    let options = ClusterOptions {
        tls: Some(authority.listener(HOSTS, true).unwrap()),
        authorizer: Some(Authorizer::new(rules)),
        ..ClusterOptions::default()
    };
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
    for (name, is_permitted) in [("alice", true), ("bob", false), ("CN=alice", false)] {
        let mut config = config(&cluster.bootstrap_servers(), &authority);
        let client = authority.issue(name, &[]).unwrap();
        config.set("ssl.certificate.pem", &client.pem).unwrap();
        config.set("ssl.key.pem", &client.key_pem).unwrap();
        config.set("enable.idempotence", "false").unwrap();
        let producer = Producer::new(&config).unwrap();
        let sent = producer.deliver("t", Record::new().value("x").partition(0), TIMEOUT);
        assert_eq!(sent.is_ok(), is_permitted, "{name}: {sent:?}");
        producer.close(TIMEOUT).unwrap();
    }
}

#[test]
fn unknown_authority_is_named() {
    let (authority, other) = (authority(), TestAuthority::new("Other CA").unwrap());
    let cluster = cluster(&authority, false);
    let error = first_error(&config(&cluster.bootstrap_servers(), &other));
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    assert_names(&error, &["CN=Test CA", "not trusted", "ssl.ca.pem", "127.0.0.1:"]);
}

#[test]
fn verification_can_be_disabled() {
    let (authority, other) = (authority(), TestAuthority::new("Other CA").unwrap());
    let cluster = cluster(&authority, false);
    let mut config = config(&cluster.bootstrap_servers(), &other);
    config.set("enable.ssl.certificate.verification", "false").unwrap();
    let admin = Admin::new(&config).unwrap();
    assert!(admin.warnings()[0].contains("are NOT verified"), "{:?}", admin.warnings());
    assert_eq!(admin.describe_cluster(TIMEOUT).unwrap().brokers.len(), 3);
}

#[test]
fn plaintext_client_of_a_tls_listener_gets_a_hint() {
    let authority = authority();
    let cluster = cluster(&authority, false);
    let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    assert_names(&first_error(&config), &["security.protocol=ssl"]);
}

#[test]
fn tls_client_of_a_plaintext_listener_gets_a_hint() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let error = first_error(&config(&cluster.bootstrap_servers(), &authority()));
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    assert_names(&error, &["plaintext listener", "security.protocol"]);
}

/// Starts a server that sends these bytes to each client and then waits, and returns the first error of a TLS client.
fn error_of_server(bytes: Vec<u8>) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(&bytes);
            // Until the client closes the connection.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let mut config = config(&address, &authority());
    config.set("socket.connection.setup.timeout.ms", "2000").unwrap();
    first_error(&config)
}

#[test]
fn servers_that_do_not_speak_tls_are_errors() {
    let endless_handshake = {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            // A handshake message of 16 MB in records of 16 KiB.
            bytes.extend_from_slice(&[0x16, 3, 3, 0x40, 0, 2, 0xff, 0xff, 0xff]);
            bytes.resize(bytes.len() + 0x4000 - 4, 0);
        }
        bytes
    };
    for (case, bytes, words) in [
        ("silence", Vec::new(), &["no TLS handshake after 2000 ms"][..]),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), &["HTTP", "no TLS"]),
        ("Kafka", vec![0, 0, 0, 4, 0, 0, 0, 1], &["plaintext protocol"]),
        (
            "junk",
            (0..100_000u32).map(|number| (number * 7 % 251) as u8 | 0x80).collect(),
            &["does not respond in TLS"],
        ),
        ("half a record", vec![0x16, 3, 3, 0x10, 0, 2], &["no TLS handshake"]),
        ("alert", vec![0x15, 3, 3, 0, 2, 2, 40], &["HandshakeFailure", "cipher suite"]),
        ("TLS 1.0 only", vec![0x15, 3, 1, 0, 2, 2, 70], &["ProtocolVersion", "neither TLS 1.2 nor TLS 1.3"]),
        ("endless handshake", endless_handshake, &["TLS failed"]),
    ] {
        let error = error_of_server(bytes);
        assert_eq!(error.kind(), ErrorKind::Tls, "{case}: {error}");
        for word in words {
            assert!(error.to_string().contains(word), "{case}: {error} does not contain {word:?}");
        }
    }
}

#[test]
fn slow_handshake_ends_at_its_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(&listener.local_addr().unwrap().to_string(), &authority());
    config.set("socket.connection.setup.timeout.ms", "2000").unwrap();
    let (opened, ended) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let began = Instant::now();
            // A record of the largest size, of which a byte comes every 20 ms: each one counts as activity.
            let _ = stream.write_all(&[0x16, 3, 3, 0x40, 0, 2]);
            while stream.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
            let _ = opened.send(began.elapsed());
        }
    });
    let error = first_error(&config);
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    assert_names(&error, &["no TLS handshake after 2000 ms"]);
    let lasted = ended.recv_timeout(TIMEOUT).unwrap();
    assert!(lasted < TIMEOUT / 3, "the connection was open for {lasted:?}");
}

#[test]
fn connection_without_a_farewell_is_lost_and_not_an_error_of_tls() {
    let authority = authority();
    let cluster = cluster(&authority, false);
    let (id, target) = cluster.addresses()[0];
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = proxy.local_addr().unwrap().port();
    cluster.control(|control| control.set_endpoint(id, "127.0.0.1", port));
    thread::spawn(move || {
        for client in proxy.incoming().flatten() {
            let broker = TcpStream::connect(target).unwrap();
            let ends = [client.try_clone().unwrap(), broker.try_clone().unwrap()];
            let (mut source, mut forth) = (client.try_clone().unwrap(), broker.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut source, &mut forth));
            let (mut broker, mut back) = (broker, client);
            thread::spawn(move || std::io::copy(&mut broker, &mut back));
            thread::sleep(Duration::from_millis(700));
            // TCP ends without the alert close_notify, as when a broker is killed.
            ends.iter().for_each(|end| drop(end.shutdown(std::net::Shutdown::Both)));
        }
    });
    let producer = Producer::new(&config(&format!("127.0.0.1:{port}"), &authority)).unwrap();
    let until = Instant::now() + TIMEOUT;
    let lost = loop {
        producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
        if let Some(Event::Error(error)) = producer.poll_event() {
            break error;
        }
        assert!(Instant::now() < until);
    };
    assert_eq!(lost.kind(), ErrorKind::Disconnected, "{lost}");
    producer.close(TIMEOUT).unwrap();
}

/// Resolves every name to this machine, and keeps the names.
#[derive(Debug, Default)]
struct Everywhere(Mutex<Vec<String>>);

impl Transport for Everywhere {
    fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        SystemTransport.open(address)
    }

    fn connect(&self, socket: &TcpStream, address: SocketAddr, broker: &str) -> io::Result<()> {
        SystemTransport.connect(socket, address, broker)
    }

    fn close(&self, socket: TcpStream) {
        SystemTransport.close(socket);
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.0.lock().unwrap().push(host.to_owned());
        Ok(vec![([127, 0, 0, 1], port).into()])
    }
}

#[test]
fn advertised_name_with_a_trailing_dot_has_the_certificate_of_its_host() {
    let authority = authority();
    let cluster = cluster(&authority, false);
    let resolved = Arc::new(Everywhere::default());
    for &(id, address) in cluster.addresses() {
        // Kubernetes and some proxies advertise such names.
        cluster.control(|control| control.set_endpoint(id, "localhost.", address.port()));
    }
    let config = config(&cluster.bootstrap_servers(), &authority);
    let producer = Producer::builder(&config).transport(Arc::clone(&resolved) as _).build().unwrap();
    producer.deliver("t", Record::new().value("x"), TIMEOUT).unwrap();
    assert!(resolved.0.lock().unwrap().iter().any(|name| name == "localhost."), "{resolved:?}");
    producer.close(TIMEOUT).unwrap();
}

#[test]
fn damaged_records_close_the_connection_and_the_client_recovers() {
    let authority = authority();
    let cluster = cluster(&authority, false);
    let target = cluster.addresses()[0].1;
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = proxy.local_addr().unwrap().port();
    cluster.control(|control| control.set_endpoint(cluster.addresses()[0].0, "127.0.0.1", port));
    thread::spawn(move || {
        // Changes one byte of what the broker sends: of the first connections in the handshake, later behind it.
        for (number, client) in proxy.incoming().flatten().enumerate() {
            let Ok(mut broker) = TcpStream::connect(target) else { return };
            let (mut back, mut forth) = (client.try_clone().unwrap(), broker.try_clone().unwrap());
            let mut source = client;
            thread::spawn(move || std::io::copy(&mut source, &mut forth));
            thread::spawn(move || {
                let (mut bytes, mut total) = ([0; 4096], 0);
                while let Ok(n @ 1..) = broker.read(&mut bytes) {
                    let damaged = number * 150;
                    if number < 12 && (total..total + n).contains(&damaged) {
                        bytes[damaged - total] ^= 0x55;
                    }
                    total += n;
                    if back.write_all(&bytes[..n]).is_err() {
                        break;
                    }
                }
                let _ = back.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    let mut config = config(&format!("127.0.0.1:{port}"), &authority);
    config.set("reconnect.backoff.max.ms", "100").unwrap();
    config.set("socket.connection.setup.timeout.ms", "2000").unwrap();
    config.set("socket.timeout.ms", "2000").unwrap();
    let producer = Producer::new(&config).unwrap();
    for number in 0..50 {
        producer.deliver("t", Record::new().value(&number.to_string()).partition(0), TIMEOUT).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

#[test]
fn clients_of_different_listeners_share_records_and_a_group() {
    let authority = authority();
    let tls = || Some(authority.listener(HOSTS, false).unwrap());
    let sasl = SaslListener::new(&[SaslMechanism::Scram(ScramHash::Sha256)]).user("alice", "secret");
    let listeners = vec![
        Listener { tls: tls(), ..Listener::default() },
        Listener { tls: tls(), sasl: Some(sasl), ..Listener::default() },
    ];
    let cluster = EmbeddedCluster::start(ClusterOptions { listeners, ..ClusterOptions::default() }).unwrap();
    let servers = |number| cluster.bootstrap_servers_of(ListenerId(number)).unwrap();
    let plain = Config::from_properties([("bootstrap.servers", &*servers(0)), ("linger.ms", "1")]).unwrap();
    let ssl = config(&servers(1), &authority);
    let mut sasl_ssl = config(&servers(2), &authority);
    let properties = [
        ("security.protocol", "sasl_ssl"),
        ("sasl.mechanisms", "SCRAM-SHA-256"),
        ("sasl.username", "alice"),
        ("sasl.password", "secret"),
    ];
    for (name, value) in properties {
        sasl_ssl.set(name, value).unwrap();
    }
    let configs = [plain, ssl, sasl_ssl];
    for config in &configs {
        let producer = Producer::new(config).unwrap();
        for partition in 0..4 {
            producer.deliver("t", Record::new().value("x").partition(partition), TIMEOUT).unwrap();
        }
        producer.close(TIMEOUT).unwrap();
    }
    // The members commit at the group's coordinator, each through its own listener.
    for mut config in configs {
        config.set("group.id", "g").unwrap();
        config.set("enable.auto.commit", "false").unwrap();
        config.set("auto.offset.reset", "earliest").unwrap();
        let consumer = Consumer::new(&config).unwrap();
        consumer.subscribe(&["t"]).unwrap();
        let until = Instant::now() + TIMEOUT;
        let mut count = 0;
        while count < 12 {
            count += consumer.poll(TIMEOUT).unwrap().iter().count();
            assert!(Instant::now() < until, "{count} records");
        }
        let committed: Vec<_> = (0..4).map(|partition| ottla::GroupOffset::new("t", partition, 0)).collect();
        consumer.commit(&committed, TIMEOUT).unwrap();
        consumer.close(TIMEOUT).unwrap();
    }
}
