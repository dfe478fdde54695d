//! `ottla broker --record` and `--replay`, and topics that are compacted while clients read them.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

mod support;

use support::{Folder, Running, ottla, ottla_with_input};

/// Starts a broker; returns the address that it prints.
fn start(arguments: &[&str]) -> (Running, String) {
    let (running, [servers]) = Running::broker(arguments, ["bootstrap.servers="]);
    (running, servers)
}

/// Ends a broker as a test does, and waits until it has written everything.
fn stop(mut running: Running) {
    let status = Command::new("kill").args(["-TERM", &running.0.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert!(running.0.wait().unwrap().success());
}

fn succeed(arguments: &[&str], input: &str) -> String {
    let output = ottla_with_input(arguments, input.as_bytes());
    assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
    output.out
}

fn read(servers: &str, topic: &str) -> String {
    succeed(
        &["consume", "-b", servers, "-q", topic, "-o", "beginning", "-e", "-f", "%p %o %k %s %h %T\\n"],
        "",
    )
}

const RECORDS: &str = concat!(
    r#"{"topic": "orders", "partition": 1, "key": "a", "payload": "1", "ts": 5, "headers": ["h", "x"]}"#,
    "\n",
    r#"{"topic": "orders", "partition": 1, "key": "a", "payload": "ff00", "payload_encoding": "hex", "ts": 6}"#,
    "\n",
    r#"{"topic": "orders", "partition": 1, "key": "b", "payload": null, "ts": 7}"#,
    "\n",
);

#[test]
fn replayed_broker_begins_with_what_clients_did() {
    let folder = Folder::new("record");
    let file = folder.0.join("fixture.jsonl").display().to_string();
    let (running, servers) = start(&["--record", &file]);
    let create =
        ["topics", "create", "-b", &servers, "orders", "--partitions", "2", "--config", "flush.ms=7"];
    succeed(&create, "");
    succeed(&["topics", "create", "-b", &servers, "gone", "--partitions", "1"], "");
    succeed(&["produce", "-b", &servers, "-J"], RECORDS);
    let group = ["consume", "-b", &servers, "-q", "-G", "billing", "orders", "-o", "beginning", "-c", "2"];
    succeed(&group, "");
    succeed(&["topics", "delete", "-b", &servers, "gone"], "");
    let (records, offsets) =
        (read(&servers, "orders"), succeed(&["groups", "lag", "-b", &servers, "billing"], ""));
    stop(running);
    assert_eq!(records.lines().count(), 3, "{records}");
    let (_again, servers) = start(&["--replay", &file]);
    assert_eq!(read(&servers, "orders"), records);
    assert_eq!(succeed(&["groups", "lag", "-b", &servers, "billing"], ""), offsets);
    let configs = succeed(&["configs", "describe", "-b", &servers, "--topic", "orders"], "");
    assert!(configs.contains("flush.ms 7 "), "{configs}");
    assert!(!succeed(&["topics", "list", "-b", &servers], "").contains("gone"));
    let exists = ottla(&["broker", "--port", "0", "--record", &file]);
    assert!(exists.code == 2 && exists.err.contains("the file exists"), "{}", exists.err);
}

#[test]
fn seeded_records_follow_the_replayed_ones() {
    let folder = Folder::new("replay-and-seed");
    let fixture = folder.file(
        "fixture.jsonl",
        "{\"create\": \"orders\", \"partitions\": 1}\n{\"topic\": \"orders\", \"offset\": 3, \"payload\": \"old\", \"ts\": 5}\n",
    );
    let seed = folder.file("seed.jsonl", "{\"topic\": \"orders\", \"payload\": \"new\", \"ts\": 6}\n");
    let both = folder.0.join("both.jsonl").display().to_string();
    let (running, servers) = start(&["--replay", &fixture, "--seed-topics", &seed, "--record", &both]);
    let expected = "0 3  old  5\n0 4  new  6\n";
    assert_eq!(read(&servers, "orders"), expected);
    stop(running);
    let (_again, servers) = start(&["--replay", &both]);
    assert_eq!(read(&servers, "orders"), expected);
}

#[test]
fn killed_broker_leaves_whole_lines() {
    let folder = Folder::new("killed");
    let file = folder.0.join("fixture.jsonl").display().to_string();
    let (running, servers) = start(&["--record", &file]);
    succeed(&["topics", "create", "-b", &servers, "orders", "--partitions", "2"], "");
    let records = RECORDS.repeat(500);
    succeed(&["produce", "-b", &servers, "-J"], &records);
    let lines = || std::fs::read_to_string(&file).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while lines().is_empty() {
        assert!(Instant::now() < deadline, "nothing is written");
        thread::sleep(Duration::from_millis(10));
    }
    // Dropping it kills it.
    drop(running);
    assert!(lines().ends_with('\n'));
    let (_again, servers) = start(&["--replay", &file]);
    assert_eq!(read(&servers, "orders").lines().count(), lines().lines().count() - 1);
}

#[test]
fn damaged_fixture_is_refused_with_the_number_of_the_line() {
    let folder = Folder::new("damaged");
    let lines =
        "{\"create\": \"orders\", \"config\": {\"retention.ms\": \"soon\"}}\n{\"topic\": \"orders\", \"pay";
    let fixture = folder.file("cut.jsonl", lines);
    let refused = ottla(&["broker", "--port", "0", "--replay", &fixture]);
    assert!(refused.code == 2 && refused.err.contains("line 2: it is not JSON"), "{}", refused.err);
    let fixture = folder.file("wrong.jsonl", lines.split_once('\n').unwrap().0);
    let refused = ottla(&["broker", "--port", "0", "--replay", &fixture]);
    assert!(refused.code == 2 && refused.err.contains("line 1: Invalid value soon"), "{}", refused.err);
}

#[test]
fn consumer_skips_what_compaction_removed() {
    let (_running, servers) = start(&[]);
    let create = [
        &["topics", "create", "-b", &servers, "state", "--partitions", "1"][..],
        &["--config", "cleanup.policy=compact", "--config", "segment.bytes=14"],
        &["--config", "min.cleanable.dirty.ratio=0"],
    ]
    .concat();
    succeed(&create, "");
    for line in ["a=1", "b=1", "a=2", "c=1", "a=3", "d=1"] {
        succeed(&["produce", "-b", &servers, "-t", "state", "-K", "="], &format!("{line}\n"));
    }
    let format = ["-q", "state", "-o", "beginning", "-e", "-f", "%o %k %s\\n"];
    let read = [&["consume", "-b", &servers], &format[..]].concat();
    assert_eq!(succeed(&read, ""), "1 b 1\n3 c 1\n4 a 3\n5 d 1\n");
    let without_key = ottla_with_input(&["produce", "-b", &servers, "-t", "state"], b"x\n");
    assert!(without_key.code == 1 && without_key.err.contains("INVALID_RECORD"), "{}", without_key.err);
}
