//! Commands without a responsive broker: their output, timeout and exit code.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism};

mod support;

use support::{ReservedPort, Running, cluster, ottla, ottla_with_input};

/// A generous timeout: the waits end much earlier unless the machine is overloaded.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn every_command_names_the_cause_when_no_broker_responds() {
    let closed = ReservedPort::new();
    let servers = closed.servers();
    let perf = ["--topic", "t", "--num-records", "5", "--record-size", "5", "--timeout", "1"];
    for command in [
        &["produce", "-t", "t", "--timeout", "1"][..],
        &["consume", "-t", "t", "--timeout", "1"],
        &["metadata", "--timeout", "1"],
        &["topics", "list", "--timeout", "1"],
        &["offsets", "--timeout", "1"],
        &[&["producer-perf-test"], &perf[..]].concat(),
        &["consumer-perf-test", "--topic", "t", "--num-records", "5", "--timeout", "1000"],
    ] {
        let start = Instant::now();
        let output = ottla_with_input(&[&["-b", &servers], command].concat(), b"hello\n");
        assert!(start.elapsed() < DEADLINE, "{command:?}");
        assert_eq!((output.code, output.out.as_str()), (1, ""), "{command:?}: {}", output.err);
        let lines: Vec<_> = output.err.lines().collect();
        assert_eq!(lines[0], format!("% connection refused by {servers}; retrying"), "{command:?}");
        let last = format!(
            "no broker responded within 1 s (--timeout); last error: connection refused by {servers}"
        );
        assert!(lines.last().unwrap().contains(&last), "{command:?}: {}", output.err);
    }
}

#[test]
fn failed_connection_is_printed_long_before_the_timeout() {
    let closed = ReservedPort::new();
    let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["metadata", "-b", &closed.servers(), "--timeout", "3600"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let start = Instant::now();
    let mut first = [0; 21];
    running.0.stderr.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"% connection refused ");
    assert!(start.elapsed() < DEADLINE);
}

#[test]
fn unresolvable_name_is_named() {
    let output = ottla(&["metadata", "-b", "no-such-host.invalid:9092", "--timeout", "1"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("can't resolve no-such-host.invalid"), "{}", output.err);
    assert!(output.err.contains("no broker responded within 1 s"), "{}", output.err);
}

#[test]
fn failed_tls_leads_to_the_doctor_and_not_to_the_address() {
    let brokers = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let servers = brokers.bootstrap_servers();
    let output = ottla(&["metadata", "-b", &servers, "-X", "security.protocol=ssl", "--timeout", "1"]);
    assert_eq!(output.code, 1);
    let last = output.err.lines().last().unwrap();
    assert!(last.contains("TLS failed") && last.contains("`ottla doctor`"), "{last}");
    assert!(!last.contains("the broker is running"), "{last}");
}

#[test]
fn client_without_sasl_is_told_of_the_listener() {
    let sasl = SaslListener::new(&[SaslMechanism::Plain]).user("alice", "secret");
    let options = ClusterOptions { brokers: 1, sasl: Some(sasl), ..ClusterOptions::default() };
    let brokers = EmbeddedCluster::start(options).unwrap();
    let output = ottla(&["metadata", "-b", &brokers.bootstrap_servers(), "--timeout", "1"]);
    assert_eq!(output.code, 1);
    let last = output.err.lines().last().unwrap();
    assert!(last.contains("requires SASL") && last.contains("security.protocol"), "{last}");
    assert!(last.contains("`ottla doctor`"), "{last}");
}

#[test]
fn silent_server_is_distinguished_from_a_closed_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = listener.local_addr().unwrap().to_string();
    thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    let output = ottla(&["metadata", "-b", &servers, "--timeout", "2"]);
    assert_eq!(output.code, 1);
    let cause = format!("{servers} accepts connections but does not respond");
    assert!(output.err.starts_with(&format!("% {cause}")), "{}", output.err);
    assert!(output.err.contains(&format!("last error: {cause}")), "{}", output.err);
}

#[test]
fn http_server_is_recognised() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    let output = ottla(&["metadata", "-b", &servers, "--timeout", "2"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("HTTP"), "{}", output.err);
    assert!(output.err.contains("no broker responded within 2 s"), "{}", output.err);
}

#[test]
fn broker_that_starts_within_the_timeout_is_used() {
    let reserved = ReservedPort::new();
    let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["produce", "-b", &reserved.servers(), "-t", "demo", "-v", "--timeout", "60"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    running.0.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let mut errors = BufReader::new(running.0.stderr.take().unwrap());
    let mut printed = String::new();
    errors.read_line(&mut printed).unwrap();
    assert!(printed.starts_with("% connection refused by "), "{printed}");

    let port = reserved.port();
    let cluster = EmbeddedCluster::start(ClusterOptions { port, brokers: 1, ..ClusterOptions::default() });
    assert!(cluster.is_ok());
    errors.read_to_string(&mut printed).unwrap();
    assert!(running.0.wait().unwrap().success(), "{printed}");
    assert!(printed.ends_with("1 message delivered\n"), "{printed}");
}

#[test]
fn client_options_work_before_the_command() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let before = ["-b", &servers, "-X", "client.id=me", "-X", "message.max.bytes=2000"];
    let output = ottla_with_input(
        &[&before[..], &["produce", "-t", "demo", "-p", "0", "-X", "acks=1"]].concat(),
        &[b'x'; 3000],
    );
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(output.err.contains("message.max.bytes=2000"), "{}", output.err);
    let output = ottla(&[&before[..], &["topics", "create", "other"]].concat());
    assert_eq!((output.code, output.out.as_str()), (0, "created topic other\n"), "{}", output.err);
    let after = ottla(&["topics", "describe", "other", "-b", &servers]);
    assert_eq!(after.code, 0, "{}", after.err);
}

/// A cluster whose brokers advertise a host that does not exist: bootstrapping works, and nothing else does.
fn unreachable_leaders() -> EmbeddedCluster {
    let advertised_host = Some("no-such-host.invalid".to_owned());
    let options = ClusterOptions { brokers: 1, advertised_host, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    cluster
}

fn bootstrap(cluster: &EmbeddedCluster) -> String {
    cluster.bootstrap_servers().replace("no-such-host.invalid", "127.0.0.1")
}

#[test]
fn every_wait_without_progress_ends_after_the_timeout() {
    let cluster = unreachable_leaders();
    let servers = bootstrap(&cluster);
    for (command, last) in [
        (&["produce", "-t", "demo"][..], "1 message was not delivered: nothing happened for 1 s (--timeout)"),
        (&["produce", "-t", "demo", "--transactional"], "can't start transactions"),
        (&["consume", "-t", "demo", "-e"], "the end of demo [0] was not reached: nothing happened for 1 s"),
        (&["consume", "-t", "demo", "-o", "e@1"], "the end of demo [0] was not reached"),
        (&["consume", "-t", "demo", "-e", "-G", "g"], "the group has assigned no partition to this member"),
        (&["groups", "describe", "g"], "g"),
    ] {
        let start = Instant::now();
        let output = ottla_with_input(&[&["-b", &servers, "--timeout", "1"], command].concat(), b"hello\n");
        assert!(start.elapsed() < DEADLINE, "{command:?}");
        assert_eq!(output.code, 1, "{command:?}: {}", output.err);
        assert!(output.err.lines().last().unwrap().contains(last), "{command:?}: {}", output.err);
    }
}

#[test]
fn timeout_in_seconds_is_refused_where_it_is_in_milliseconds() {
    let command = ["consumer-perf-test", "-b", "127.0.0.1:1", "--topic", "t", "--num-records", "5"];
    let output = ottla(&[&["--timeout", "1"], &command[..]].concat());
    assert_eq!(output.code, 2, "{}", output.err);
    assert!(output.err.contains("consumer-perf-test --timeout MS"), "{}", output.err);
}
