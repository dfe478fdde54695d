//! SIGINT and SIGTERM: the first one ends a command with its summary, the second one ends it at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

mod support;

use support::cluster;

/// A generous timeout: the waits end much earlier unless the machine is overloaded.
const DEADLINE: Duration = Duration::from_secs(60);

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits for a condition.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn records(cluster: &EmbeddedCluster, topic: &str) -> i64 {
    cluster.control(|control| control.partition(topic, 0).map_or(0, |partition| partition.high_watermark))
}

/// Waits for a process; returns its exit code, standard output and standard error.
fn finish(mut child: Child) -> (Option<i32>, String, String) {
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    let mut text = String::new();
    err.read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    (status.code(), out.join().unwrap(), text)
}

#[test]
fn interrupted_produce_delivers_the_lines_read() {
    let cluster = cluster();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let before = records(&cluster, "demo");
        let mut child = start(&["produce", "-b", &cluster.bootstrap_servers(), "-t", "demo"]);
        // The input stays open, and its last line is half a message.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"one\ntwo\nthr").unwrap();
        wait_until("messages arrive", || records(&cluster, "demo") == before + 2);
        signal(&child, name);
        let (exit, _, err) = finish(child);
        assert_eq!(exit, Some(code), "{err}");
        assert!(err.ends_with("2 messages delivered\n"), "{err}");
        assert_eq!(records(&cluster, "demo"), before + 2);
        drop(input);
    }
}

#[test]
fn second_signal_ends_a_flush_that_waits_for_a_dead_broker() {
    let cluster = cluster();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let mut child = start(&["produce", "-b", &cluster.bootstrap_servers(), "-t", "demo"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    wait_until("the message arrives", || records(&cluster, "demo") == 1);
    drop(cluster);
    input.write_all(b"two\n").unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut read_until = |part: &str| {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(err.read_line(&mut line).unwrap(), 0, "no line with {part}");
        }
    };
    // The program prints the loss of the connection, after which the broker is certainly gone; the message was read
    // long before.
    read_until("retrying");
    thread::sleep(Duration::from_millis(500));
    signal(&child, "-INT");
    read_until("waiting for the delivery of 1 messages");
    signal(&child, "-INT");
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(2));
}

#[test]
fn producer_test_prints_its_summary_when_interrupted() {
    let cluster = cluster();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let servers = cluster.bootstrap_servers();
    let child = start(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "100000000",
        "--record-size",
        "10",
        "--throughput",
        "1000",
        "-b",
        &servers,
    ]);
    wait_until("records arrive", || records(&cluster, "demo") > 10);
    signal(&child, "-INT");
    let (code, out, err) = finish(child);
    assert_eq!(code, Some(130), "{err}");
    let summary = format!("{} records sent, ", records(&cluster, "demo"));
    assert!(out.lines().last().is_some_and(|line| line.starts_with(&summary)), "{summary}: {out}");
}

#[test]
fn interrupted_consumers_print_their_messages_and_end() {
    let cluster = cluster();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let servers = cluster.bootstrap_servers();
    let produced = support::ottla_with_input(&["produce", "-b", &servers, "-t", "demo"], b"one\ntwo\n");
    assert_eq!(produced.code, 0, "{}", produced.err);

    let mut child = start(&["consume", "-b", &servers, "-t", "demo", "-o", "beginning"]);
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert_eq!(line, "% end of demo [0] at offset 2\n");
    signal(&child, "-INT");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "one\ntwo\n");
    assert_eq!(child.wait().unwrap().code(), Some(130));

    let mut child = start(&[
        "consumer-perf-test",
        "-b",
        &servers,
        "--topic",
        "demo",
        "--num-records",
        "1000",
        "--timeout",
        "600000",
        "--show-detailed-stats",
        "--reporting-interval",
        "10",
        "--print-metrics",
    ]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(", 2, ") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0);
    }
    signal(&child, "-TERM");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(rest.contains("records-consumed-total:{client-id=perf-consumer-client} : 2.000"), "{rest}");
}

#[test]
fn first_signal_ends_a_wait_and_says_what_was_not_delivered() {
    // Bootstrapping works, and the leader can't be reached.
    let advertised_host = Some("no-such-host.invalid".to_owned());
    let options = ClusterOptions { brokers: 1, advertised_host, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let servers = cluster.bootstrap_servers().replace("no-such-host.invalid", "127.0.0.1");
    let produce = ["produce", "-b", &servers, "-t", "demo"];
    let perf =
        ["producer-perf-test", "-b", &servers, "--topic", "demo", "--num-records", "1", "--record-size", "1"];
    for (command, name, code, last) in [
        (&produce[..], "-TERM", 143, "1 message was not delivered"),
        (&perf, "-INT", 130, "1 message was not delivered"),
        (&[&produce[..], &["--transactional"]].concat(), "-TERM", 143, ""),
        (&["consume", "-b", &servers, "-t", "demo", "-e"], "-TERM", 143, ""),
        (&["consume", "-b", &servers, "-t", "demo", "-G", "g"], "-TERM", 143, ""),
        (&["consume", "-b", &servers, "-t", "demo", "--share-group", "g"], "-INT", 130, ""),
    ] {
        let mut child = start(command);
        child.stdin.take().unwrap().write_all(b"one\n").unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("can't resolve no-such-host.invalid") {
            line.clear();
            assert_ne!(err.read_line(&mut line).unwrap(), 0, "{command:?}");
        }
        let signalled = Instant::now();
        signal(&child, name);
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{command:?}: {rest}");
        assert!(signalled.elapsed() < DEADLINE, "{command:?}");
        assert!(rest.lines().any(|line| line.contains(last)) || last.is_empty(), "{command:?}: {rest}");
    }
}
