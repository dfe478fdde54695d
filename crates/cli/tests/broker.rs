//! `ottla broker` as a server: signals, advertised addresses, few descriptors.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

mod support;

use support::{ReservedPort, not_checked};

const DEADLINE: Duration = Duration::from_secs(60);

/// A running broker, which ends with the test.
struct Broker {
    child: Child,
    servers: String,
}

impl Broker {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
        command.arg("broker").args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let servers = line.trim().strip_prefix("bootstrap.servers=").expect("the first line").to_owned();
        Self { child, servers }
    }

    /// Starts a broker, and returns it with what it prints up to a line that begins like this.
    fn start_until(arguments: &[&str], last: &str) -> (Self, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ottla"));
        command.arg("broker").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut out, mut text) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        while !text.lines().last().is_some_and(|line| line.starts_with(last)) {
            assert!(out.read_line(&mut text).unwrap() > 0, "no {last} in {text}");
        }
        (Self { child, servers: String::new() }, text)
    }

    /// Sends a signal and returns the exit code and standard error.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), err)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ottla(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ottla")).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn broker_ends_with_success_on_sigterm_and_sigint() {
    for signal in ["-TERM", "-INT"] {
        let broker = Broker::start(&["--port", "0"]);
        assert!(TcpStream::connect(&broker.servers).is_ok());
        let (code, err) = broker.end(signal);
        assert_eq!(code, Some(0), "{err}");
        assert!(err.ends_with("brokers stopped\n"), "{err}");
    }
}

#[test]
fn broker_ends_on_sigterm_when_its_process_id_is_1() {
    let unshare = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|status| status.success()) {
        let what = "test broker_ends_on_sigterm_when_its_process_id_is_1";
        not_checked(what, "this system does not let tests create process ID namespaces");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(unshare).arg(env!("CARGO_BIN_EXE_ottla")).args(["broker", "--port", "0"]);
    let mut broker = Broker::spawn(command);
    // The broker is the only child of `unshare`.
    let parent = broker.child.id();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    assert!(Command::new("kill").args(["-TERM", children.trim()]).status().unwrap().success());
    let (mut err, (ended, end)) = (broker.child.stderr.take().unwrap(), mpsc::channel());
    thread::spawn(move || ended.send(err.read_to_end(&mut Vec::new())));
    end.recv_timeout(DEADLINE).expect("the broker ends on SIGTERM").unwrap();
    assert_eq!(broker.child.wait().unwrap().code(), Some(0));
}

#[test]
fn broker_advertises_what_clients_can_connect_to() {
    let reserved = ReservedPort::new();
    let port = reserved.port().to_string();
    let broker = Broker::start(&["--host", "0.0.0.0", "--port", &port]);
    assert_eq!(broker.servers, format!("127.0.0.1:{port}"));
    let (code, out, err) = ottla(&["metadata", "-b", &broker.servers]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(&format!("127.0.0.1:{port}")) && !out.contains("0.0.0.0"), "{out}");
    let (_, err) = broker.end("-TERM");
    assert!(err.contains("warning: the brokers advertise 127.0.0.1"), "{err}");

    let reserved = ReservedPort::new();
    let port = reserved.port().to_string();
    let advertised = ["--advertised-host", "kafka.example", "--advertised-port", "9555"];
    let broker =
        Broker::start(&[&["--host", "0.0.0.0", "--port", &port, "--brokers", "1"][..], &advertised].concat());
    assert_eq!(broker.servers, "kafka.example:9555");
    let (_, out, err) = ottla(&["metadata", "-b", &format!("127.0.0.1:{port}")]);
    assert!(out.contains("kafka.example:9555"), "{out}{err}");
    assert!(!broker.end("-TERM").1.contains("only clients on this machine"));
}

#[test]
fn advertised_host_that_can_not_be_resolved_is_named() {
    let host = "no-such-host.invalid";
    let mut broker = Broker::start(&["--port", "0", "--brokers", "1", "--advertised-host", host]);
    let mut err = BufReader::new(broker.child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("warning: ") {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "no warning");
    }
    assert!(line.contains("--advertised-host no-such-host.invalid: this machine can't resolve"), "{line}");
}

#[test]
fn users_without_a_rule_may_do_nothing_unless_that_is_chosen() {
    let create =
        |broker: &Broker| ottla(&["topics", "-b", &broker.servers, "create", "orders", "--timeout", "20"]);
    let guarded = Broker::start(&["--port", "0", "--brokers", "1", "--super-user", "admin"]);
    let (code, _, err) = create(&guarded);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.to_lowercase().contains("authoriz"), "{err}");
    let open = ["--super-user", "admin", "--allow-everyone-if-no-acl-found"];
    let open = Broker::start(&[&["--port", "0", "--brokers", "1"][..], &open].concat());
    assert_eq!(create(&open).0, Some(0));
    let (code, _, err) = ottla(&["broker", "--allow-everyone-if-no-acl-found"]);
    assert_eq!(code, Some(2), "{err}");
}

#[test]
fn broker_refuses_to_advertise_all_addresses() {
    for host in ["0.0.0.0", "::", ""] {
        let (code, _, err) = ottla(&["broker", "--port", "0", "--advertised-host", host]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("--advertised-host: no client can connect"), "{err}");
    }
}

#[test]
fn ids_are_the_same_at_each_start_when_the_seed_is_set() {
    let cluster_id = |arguments: &[&str]| {
        let broker = Broker::start(arguments);
        let (_, out, _) = ottla(&["metadata", "-b", &broker.servers, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        json["clusterid"].as_str().unwrap().to_owned()
    };
    assert_ne!(cluster_id(&["--port", "0"]), cluster_id(&["--port", "0"]));
    assert_eq!(cluster_id(&["--port", "0", "--seed", "7"]), cluster_id(&["--port", "0", "--seed", "7"]));
    assert_eq!(cluster_id(&["--port", "0", "--cluster-id", "mine"]), "mine");
}

#[test]
fn broker_serves_again_when_descriptors_are_free_again() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" broker --port 0", env!("CARGO_BIN_EXE_ottla")]);
    let broker = Broker::spawn(command);
    let idle: Vec<_> = (0..60).map(|_| TcpStream::connect(&broker.servers).unwrap()).collect();
    thread::sleep(Duration::from_millis(300));
    drop(idle);
    let (code, out, err) = ottla(&["metadata", "-b", &broker.servers]);
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn self_signed_broker_prints_the_clients_settings() {
    let folder = support::Folder::new("self-signed");
    let arguments = ["--port", "0", "--tls-self-signed", "--tls-client-auth"];
    let (broker, text) = Broker::start_until(&arguments, "ssl.key.location=");
    let properties = folder.file("client.properties", &text);
    let (code, out, err) = ottla(&["metadata", "-F", &properties]);
    assert_eq!((code, out.contains("broker 1 at ")), (Some(0), true), "{out}{err}");

    let without = text.lines().filter(|line| !line.contains(".key.") && !line.contains(".certificate."));
    let without = folder.file("without.properties", &without.collect::<Vec<_>>().join("\n"));
    let (code, _, err) = ottla(&["metadata", "-F", &without, "--timeout", "5"]);
    assert!(code == Some(1) && err.contains("set ssl.certificate.location"), "{err}");

    let ca = text.lines().find_map(|line| line.strip_prefix("ssl.ca.location=")).unwrap();
    assert!(std::path::Path::new(ca).exists());
    let (code, err) = broker.end("-TERM");
    assert_eq!(code, Some(0), "{err}");
    assert!(!std::path::Path::new(ca).exists(), "the files end with the broker");
}

#[test]
fn broker_with_several_listeners_prints_properties_for_each() {
    let folder = support::Folder::new("listeners");
    let listeners = ["--port", "0", "--brokers", "2", "--listener", "plaintext", "--listener", "ssl"];
    let sasl = ["--listener", "sasl_ssl:0", "--sasl", "plain", "--sasl-user", "alice:secret"];
    let (broker, text) = Broker::start_until(&[&listeners[..], &sasl].concat(), "sasl.password=secret");
    let listeners: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(listeners.len(), 3, "{text}");
    for (properties, protocol) in listeners.iter().zip(["plaintext", "ssl", "sasl_ssl"]) {
        assert!(properties.contains(&format!("security.protocol={protocol}")), "{text}");
        let file = folder.file(&format!("{protocol}.properties"), properties);
        let (code, out, err) = ottla(&["metadata", "-F", &file]);
        assert_eq!(code, Some(0), "{protocol}: {out}{err}");
        let servers = properties.lines().find_map(|line| line.strip_prefix("bootstrap.servers=")).unwrap();
        for server in servers.split(',') {
            assert!(out.contains(server), "{protocol}: {server} is missing in {out}");
        }
    }
    broker.end("-TERM");
}

#[test]
fn listeners_that_do_not_fit_are_refused() {
    for (arguments, expected) in [
        (&["--listener", "tls"][..], "unknown protocol `tls`"),
        (&["--listener", "ssl:x"], "`x` is not a port"),
        (&["--listener", "sasl_ssl"], "add --sasl MECHANISM"),
        (&["--sasl", "oauthbearer"], "--sasl-jwks"),
        (&["--sasl", "oauthbearer", "--sasl-jwks", "/no/such/file"], "/no/such/file"),
        (&["--sasl", "oauthbearer", "--sasl-jwks", "Cargo.toml"], "is not JSON"),
        (&["--listener", "ssl", "--sasl", "plain", "--sasl-user", "a:b"], "no --listener uses SASL"),
        (
            &["--listener", "plaintext", "--listener", "ssl:9093", "--brokers", "3"],
            "from 9092 and from 9093 on overlap",
        ),
        (&["--listener", "plaintext", "--tls-client-auth"], "no listener uses TLS"),
    ] {
        let (code, _, err) = ottla(&[&["broker"], arguments].concat());
        assert!(code == Some(2) && err.contains(expected), "{arguments:?}: {code:?} {err}");
    }
}
