//! `ottla consume` with failing and ending partitions, and errors of topics, files and output.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

mod support;

use support::{Folder, Running, cluster, ottla, ottla_with_input};

#[test]
fn consume_fails_when_its_topic_is_recreated_if_asked_to() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 2, 1)).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args([
            "consume",
            "-b",
            &servers,
            "-t",
            "demo",
            "-o",
            "beginning",
            "-X",
            "topic.metadata.refresh.interval.ms=1000",
            "-X",
            "topic.recreate.policy=error",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut err = BufReader::new(running.0.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.starts_with("% end of demo ["), "{line}");
    assert_eq!(ottla(&["topics", "-b", &servers, "delete", "demo"]).code, 0);
    assert_eq!(ottla(&["topics", "-b", &servers, "create", "demo", "--partitions", "2"]).code, 0);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.lines().last().unwrap().starts_with("ottla: demo"), "{rest}");
}

#[test]
fn consume_refuses_partitions_that_do_not_exist() {
    let cluster = cluster();
    cluster.control(|control| control.create_topic("demo", 2, 1)).unwrap();
    let output = ottla(&["consume", "-b", &cluster.bootstrap_servers(), "-t", "demo", "-p", "1", "-p", "7"]);
    assert_eq!(output.code, 1);
    assert_eq!(output.err, "ottla: -p 7: topic \"demo\" has 2 partitions, numbered from 0\n");
}

#[test]
fn consume_with_a_count_prints_no_unreached_end() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let produced = ottla_with_input(&["produce", "-b", &servers, "-t", "demo"], b"one\ntwo\nthree\n");
    assert_eq!(produced.code, 0, "{}", produced.err);
    let consume = |more: &[&str]| {
        ottla(&[&["consume", "-b", &servers, "-t", "demo", "-o", "beginning"], more].concat())
    };
    let some = consume(&["-c", "2"]);
    assert_eq!((some.code, some.out.as_str(), some.err.as_str()), (0, "one\ntwo\n", ""));
    let all = consume(&["-e"]);
    assert_eq!((all.code, all.err.as_str()), (0, "% end of demo [0] at offset 3\n"));
}

#[test]
fn topic_that_does_not_exist_is_reported_within_the_timeout() {
    let cluster =
        EmbeddedCluster::start(ClusterOptions { auto_create_topics: false, ..ClusterOptions::default() });
    let servers = cluster.as_ref().unwrap().bootstrap_servers();
    let output = ottla(&["consume", "-b", &servers, "-t", "missing"]);
    assert_eq!(output.code, 1);
    assert!(output.err.starts_with("ottla: topic \"missing\" does not exist"), "{}", output.err);
    let perf = ["producer-perf-test", "--topic", "missing", "--num-records", "1", "--record-size", "1"];
    for command in [&["produce", "-t", "missing"][..], &perf] {
        let output = ottla_with_input(&[&["-b", &servers, "--timeout", "1"], command].concat(), b"hello\n");
        assert_eq!(output.code, 1, "{}", output.err);
        assert!(output.err.contains("ottla topics create missing"), "{}", output.err);
    }
}

#[test]
fn file_that_is_too_large_is_reported_with_its_size() {
    let (folder, cluster) = (Folder::new("large"), cluster());
    let file = folder.file("large", &"x".repeat(3_000_000));
    let output = ottla(&["produce", "-b", &cluster.bootstrap_servers(), "-t", "demo", &file]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("has 3000000 bytes, more than message.max.bytes=1000000"), "{}", output.err);
}

#[test]
fn unwritable_output_is_an_error_and_a_closed_pipe_is_not() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    for command in [
        &["metadata", "-b", &servers][..],
        &["offsets", "-b", &servers],
        &["topics", "list", "-b", &servers],
        &["properties"],
        &["broker", "--port", "0", "--brokers", "1"],
        &[
            "producer-perf-test",
            "--topic",
            "demo",
            "--num-records",
            "1",
            "--record-size",
            "1",
            "-b",
            &servers,
        ],
        &["consumer-perf-test", "--topic", "demo", "--num-records", "1", "--timeout", "5000", "-b", &servers],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(command, writer.into());
        assert_eq!((closed.0, closed.1.as_str()), (Some(0), ""), "{command:?}");
        if let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") {
            let (code, err) = run(command, full.into());
            assert_eq!(code, Some(1), "{command:?}");
            assert!(err.contains("standard output can't be written"), "{command:?}: {err}");
        }
    }
}

/// The exit code and standard error of a command with this standard output.
fn run(command: &[&str], stdout: Stdio) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(command)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn consume_at_the_end_says_that_it_waits_there() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 2, 1)).unwrap();
    let start = |more: &[&str]| {
        let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
            .args([&["consume", "-b", &servers, "-t", "demo"], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        support::Running(child.unwrap())
    };
    let mut running = start(&[]);
    let mut err = BufReader::new(running.0.stderr.take().unwrap());
    let mut lines = [String::new(), String::new(), String::new()];
    lines.iter_mut().for_each(|line| assert_ne!(err.read_line(line).unwrap(), 0));
    assert_eq!(lines[2], "% at the end; -o beginning reads from the start\n", "{lines:?}");
    let exits = ottla(&["consume", "-b", &servers, "-t", "demo", "-e"]);
    assert_eq!((exits.code, exits.err.contains("at the end;")), (0, false), "{}", exits.err);
}

#[test]
fn properties_of_groups_without_effect_are_named() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let produced = support::ottla_with_input(&["produce", "-b", &servers, "-t", "demo", "-p", "0"], b"one\n");
    assert_eq!(produced.code, 0, "{}", produced.err);
    let properties = ["-X", "group.id=billing", "-X", "auto.offset.reset=earliest"];
    let consume = [&["consume", "-b", &servers, "-t", "demo", "-e"][..], &properties].concat();
    let output = ottla(&[&consume[..], &["-o", "beginning"]].concat());
    assert_eq!((output.code, output.out.as_str()), (0, "one\n"), "{}", output.err);
    for warning in ["warning: group.id has no effect without -G", "warning: auto.offset.reset has no effect"]
    {
        assert!(output.err.contains(warning), "{}", output.err);
    }
    let groups = ottla(&["groups", "-b", &servers, "list"]);
    assert!(!groups.out.contains("billing"), "nothing was committed: {}", groups.out);
    let output = ottla(&[&consume[..], &["-o", "17"]].concat());
    assert!(
        !output.err.contains("auto.offset.reset has no effect"),
        "an offset may be out of range: {}",
        output.err
    );
    let output = ottla(&[&consume[..], &["-G", "billing"]].concat());
    assert_eq!((output.code, output.out.as_str()), (0, "one\n"), "{}", output.err);
    assert!(!output.err.contains("no effect"), "{}", output.err);
}
