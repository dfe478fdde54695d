//! Clients whose brokers are reached through a proxy alone: their names exist for the proxy only.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use ottla::{Config, Consumer, Observer, Offset, Peer, Producer, Record};
use ottla_embedded_broker::{
    ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism, ScramHash, TestAuthority,
};

const SOON: Duration = Duration::from_secs(60);
/// A name that no resolver knows.
const HOST: &str = "kafka.invalid";
const PASSWORD: &str = "p@ss:word/1";

/// Serves each connection on a thread of its own. The thread of the listener ends with the process.
fn serve(act: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let act = Arc::new(act);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let act = Arc::clone(&act);
            thread::spawn(move || act(stream));
        }
    });
    address
}

/// The targets that clients have named to a proxy.
type Named = Arc<Mutex<Vec<String>>>;

/// Connects to the port on this machine, whatever the host is, and copies in both directions.
fn copy(client: TcpStream, port: u16) {
    let broker = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let one_way = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        })
    };
    one_way(client.try_clone().unwrap(), broker.try_clone().unwrap());
    one_way(broker, client);
}

fn socks(mut client: TcpStream, named: &Named) -> io::Result<()> {
    let mut greeting = [0; 4];
    client.read_exact(&mut greeting)?;
    assert_eq!(greeting, [5, 2, 0, 2], "with a user name, both methods are offered");
    client.write_all(&[5, 2])?;
    let mut credentials = vec![0; 2 + 5 + 1 + PASSWORD.len()];
    client.read_exact(&mut credentials)?;
    assert_eq!(credentials, [b"\x01\x05alice\x0b", PASSWORD.as_bytes()].concat());
    client.write_all(&[1, 0])?;
    let mut head = [0; 5];
    client.read_exact(&mut head)?;
    assert_eq!(head[..4], [5, 1, 0, 3], "a name");
    let mut rest = vec![0; usize::from(head[4]) + 2];
    client.read_exact(&mut rest)?;
    let (host, port) = rest.split_at(rest.len() - 2);
    named.lock().unwrap().push(String::from_utf8_lossy(host).into_owned());
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 9])?;
    copy(client, u16::from_be_bytes([port[0], port[1]]));
    Ok(())
}

fn connect(mut client: TcpStream, named: &Named) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    assert!(request.contains("Proxy-Authorization: Basic YWxpY2U6cEBzczp3b3JkLzE="), "{request}");
    let target = request.split(' ').nth(1).unwrap();
    let (host, port) = target.rsplit_once(':').unwrap();
    named.lock().unwrap().push(host.to_owned());
    client.write_all(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")?;
    copy(client, port.parse().unwrap());
    Ok(())
}

/// Returns the properties of a client of the cluster behind a proxy.
fn config(cluster: &EmbeddedCluster, scheme: &str, proxy: SocketAddr) -> Config {
    let servers = cluster.bootstrap_servers();
    let (_, port) = servers.split(',').next().unwrap().rsplit_once(':').unwrap();
    let mut config = Config::new();
    config.set("bootstrap.servers", &format!("{HOST}:{port}")).unwrap();
    config.set("proxy.url", &format!("{scheme}://alice:p%40ss%3Aword%2F1@{proxy}")).unwrap();
    config
}

fn round_trip(config: &Config) {
    let producer = Producer::new(config).unwrap();
    let sent = producer.deliver("t", Record::new().value("through").partition(0), SOON).unwrap();
    assert_eq!(sent.offset, Some(0));
    producer.close(SOON).unwrap();
    let consumer = Consumer::new(config).unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let message = consumer.next(SOON).unwrap().expect("the record");
    assert_eq!(message.value(), Some(&b"through"[..]));
    consumer.close(SOON).unwrap();
}

#[test]
fn socks5_proxy_resolves_the_names_of_all_brokers() {
    let cluster = EmbeddedCluster::start(ClusterOptions {
        advertised_host: Some(HOST.to_owned()),
        ..ClusterOptions::default()
    })
    .unwrap();
    let named = Named::default();
    let theirs = Arc::clone(&named);
    let proxy = serve(move |client| drop(socks(client, &theirs)));
    round_trip(&config(&cluster, "socks5h", proxy));
    let named = named.lock().unwrap();
    assert!(named.len() >= 2 && named.iter().all(|host| host == HOST), "{named:?}");
}

#[test]
fn tls_and_sasl_are_end_to_end_through_an_http_proxy() {
    let authority = TestAuthority::new("CA").unwrap();
    let cluster = EmbeddedCluster::start(ClusterOptions {
        advertised_host: Some(HOST.to_owned()),
        tls: Some(authority.listener(&[HOST], false).unwrap()),
        sasl: Some(
            SaslListener::new(&[SaslMechanism::Scram(ScramHash::Sha256)]).user("alice", "correct-horse"),
        ),
        ..ClusterOptions::default()
    })
    .unwrap();
    let named = Named::default();
    let theirs = Arc::clone(&named);
    let proxy = serve(move |client| drop(connect(client, &theirs)));
    let mut config = config(&cluster, "http", proxy);
    for (name, value) in [
        ("security.protocol", "sasl_ssl"),
        ("ssl.ca.pem", authority.pem()),
        ("sasl.mechanisms", "SCRAM-SHA-256"),
        ("sasl.username", "alice"),
        ("sasl.password", "correct-horse"),
    ] {
        config.set(name, value).unwrap();
    }
    round_trip(&config);
    assert!(named.lock().unwrap().iter().all(|host| host == HOST));
}

/// Passes on why connections end.
#[derive(Debug)]
struct Ends(Mutex<mpsc::Sender<String>>);

impl Observer for Ends {
    fn connection_ended(&self, _: &Peer<'_>, cause: &dyn fmt::Display) {
        let _ = self.0.lock().unwrap().send(cause.to_string());
    }
}

/// Returns why the first connection through this proxy ends.
fn end_through(scheme: &str, act: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let proxy = serve(act);
    let (sender, ends) = mpsc::channel();
    let mut config = Config::new();
    config.set("bootstrap.servers", "kafka.invalid:9092").unwrap();
    config.set("proxy.url", &format!("{scheme}://{proxy}")).unwrap();
    config.set("socket.connection.setup.timeout.ms", "1000").unwrap();
    let producer = Producer::builder(&config).observer(Arc::new(Ends(Mutex::new(sender)))).build().unwrap();
    producer.topic("t");
    let end = ends.recv_timeout(SOON).expect("the connection ends");
    producer.close(Duration::ZERO).unwrap();
    assert!(end.contains(&format!("proxy {proxy}")), "{end}");
    end
}

/// Reads what the client sends first, and answers.
fn answering(bytes: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync + 'static {
    move |mut client| {
        let _ = client.read(&mut [0; 1024]);
        let _ = client.write_all(bytes);
    }
}

#[test]
fn proxies_that_misbehave_are_named_within_the_setup_time() {
    let html: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>log in</html>";
    let silent = |mut client: TcpStream| drop(client.read_to_end(&mut Vec::new()));
    for (scheme, end, words) in [
        ("http", end_through("http", answering(html)), "sent more than its answer"),
        ("http", end_through("http", answering(b"<html>")), "not an answer of an HTTP proxy"),
        ("http", end_through("http", answering(b"")), "ended the connection instead of connecting"),
        ("socks5", end_through("socks5", answering(b"")), "ended the connection instead of connecting"),
        ("socks5", end_through("socks5", answering(b"\x05\xff")), "demands a user name and a password"),
        ("socks5", end_through("socks5", answering(b"\x05\x00\x05\x05")), "connection refused (reply 5)"),
        ("http", end_through("http", silent), "no connection to the broker after 1000 ms"),
        ("socks5", end_through("socks5", silent), "no connection to the broker after 1000 ms"),
    ] {
        assert!(end.contains("no connection through the proxy") && end.contains(words), "{scheme}: {end}");
    }
    let end = end_through("http", answering(b"HTTP/1.1 200 OK\r\n\r\n"));
    assert!(end.contains("connection lost") && end.contains("is between"), "{end}");
}

#[test]
fn invalid_proxy_url_is_refused_without_its_password() {
    let mut config = Config::new();
    config.set("bootstrap.servers", "kafka.invalid:9092").unwrap();
    config.set("proxy.url", "ftp://alice:hunter2@proxy:21").unwrap();
    let error = Producer::new(&config).expect_err("ftp is not a proxy protocol").to_string();
    assert!(error.contains("`proxy.url`") && error.contains("socks5://"), "{error}");
    assert!(!error.contains("hunter2") && !format!("{config:?}").contains("hunter2"), "{error}");
}
