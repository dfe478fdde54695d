//! Exit codes of commands whose standard error is closed or full.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Command, Stdio};

use ottla_embedded_broker::EmbeddedCluster;

mod support;

use support::{ReservedPort, cluster};

/// Returns the exit code of a command with this standard error.
fn code(command: &[&str], stderr: Stdio) -> Option<i32> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap();
    // A command that refuses its options does not read its input.
    let _ = child.stdin.take().unwrap().write_all(b"one\n");
    child.wait().unwrap().code()
}

/// Checks the exit code with a closed pipe and with a full device.
fn check(command: &[&str], expected: i32) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(code(command, writer.into()), Some(expected), "{command:?} with a closed pipe");
    if let Ok(full) = OpenOptions::new().write(true).open("/dev/full") {
        assert_eq!(code(command, full.into()), Some(expected), "{command:?} with a full device");
    }
}

fn topic(cluster: &EmbeddedCluster) -> String {
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    cluster.bootstrap_servers()
}

#[test]
fn exit_code_stays_when_standard_error_can_not_be_written() {
    let cluster = cluster();
    let servers = topic(&cluster);
    let closed = ReservedPort::new();
    let nowhere = closed.servers();
    let perf = ["--topic", "demo", "--num-records", "1"];
    let produced = [&["producer-perf-test", "-b", &servers, "--record-size", "1"], &perf[..]].concat();
    let consumed = [&["consumer-perf-test", "-b", &servers, "--timeout", "5000"], &perf[..]].concat();
    for (command, expected) in [
        (&["metadata"][..], 2),
        (&["metadata", "-b", &servers, "-X", "no.such.property=1"], 2),
        (&["metadata", "-b", &nowhere, "--timeout", "1"], 1),
        (&["metadata", "-b", &servers, "-X", "debug=all"], 0),
        (&["produce", "-b", &servers, "-t", "demo", "-v", "--metrics-port", "0"], 0),
        (&["consume", "-b", &servers, "-t", "demo", "-o", "beginning", "-e"], 0),
        (&["topics", "-b", &servers, "describe", "nowhere"], 1),
        (&["groups", "-b", &servers, "describe", "nobody"], 1),
        (&["no-such-command"], 2),
        (&produced, 0),
        (&consumed, 0),
    ] {
        check(command, expected);
    }
}
