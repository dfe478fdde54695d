//! `ottla groups` and `ottla consume --group`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use ottla_embedded_broker::EmbeddedCluster;
use serde_json::Value;

mod support;

use support::{Folder, Output, Running, cluster, ottla, ottla_with_input};

/// A cluster with ten records in two partitions of topic `orders`, of which group `billing` has consumed four.
fn started() -> (EmbeddedCluster, String) {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("orders", 2, 1)).unwrap();
    for partition in ["0", "1"] {
        let arguments = ["produce", "-b", &servers, "-t", "orders", "-p", partition];
        assert_eq!(ottla_with_input(&arguments, b"1\n2\n3\n4\n5\n").code, 0);
    }
    let consumed = consume(&servers, &["-o", "beginning", "-c", "4"]);
    assert_eq!((consumed.code, consumed.out.lines().count()), (0, 4), "{}", consumed.err);
    (cluster, servers)
}

fn consume(servers: &str, more: &[&str]) -> Output {
    ottla(&[&["consume", "-b", servers, "-G", "billing", "-t", "orders", "-q"], more].concat())
}

fn groups(servers: &str, arguments: &[&str]) -> Output {
    ottla(&[&["groups", "-b", servers], arguments].concat())
}

fn json(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{}", output.err);
    serde_json::from_str(&output.out).unwrap()
}

/// The committed offsets of both partitions.
fn committed(servers: &str) -> [i64; 2] {
    let rows = json(&groups(servers, &["lag", "billing", "--json"]));
    [0, 1].map(|partition| {
        let row = rows.as_array().unwrap().iter().find(|row| row["partition"] == partition);
        row.map_or(-1, |row| row["current_offset"].as_i64().unwrap_or(-1))
    })
}

#[test]
fn group_continues_after_the_printed_messages() {
    let (_cluster, servers) = started();
    assert_eq!(committed(&servers).into_iter().filter(|offset| *offset > 0).sum::<i64>(), 4);
    let rest = consume(&servers, &["-o", "beginning", "-e"]);
    assert_eq!((rest.code, rest.out.lines().count()), (0, 6), "{}", rest.err);
    assert_eq!(committed(&servers), [5, 5]);
    let nothing = consume(&servers, &["-e"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""), "{}", nothing.err);
}

#[test]
fn group_is_listed_described_and_shown_with_its_lag() {
    let (_cluster, servers) = started();
    assert_eq!(consume(&servers, &["-e", "-o", "beginning"]).code, 0);
    assert_eq!(groups(&servers, &["list"]).out, "billing\n");
    assert_eq!(groups(&servers, &["list", "--state", "stable"]).out, "");
    let listed = json(&groups(&servers, &["list", "--json"]));
    let expected = serde_json::json!(
        [{"group": "billing", "type": "Classic", "protocol": "consumer", "state": "Empty"}]
    );
    assert_eq!(listed, expected);
    assert_eq!(groups(&servers, &["list", "--state", "strange"]).code, 2);

    let described = groups(&servers, &["describe", "billing"]);
    let lines: Vec<&str> = described.out.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[1]), ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]);
    let row = words(lines[2]);
    assert_eq!((row[0].as_str(), &row[3..]), ("billing", &["Empty".to_owned(), "0".to_owned()][..]));

    let lag = groups(&servers, &["lag", "--all"]);
    let rows: Vec<Vec<String>> = lag.out.lines().skip(2).map(words).collect();
    assert_eq!(rows[0], ["billing", "orders", "0", "5", "5", "0", "-", "-", "-"], "{}", lag.out);
    assert_eq!(rows.len(), 2);
    assert_eq!(lag.err, "group \"billing\" has no active members\n");
    assert_eq!(groups(&servers, &["lag", "strange"]).code, 1);
    let removal = groups(&servers, &["remove-members", "billing", "--all"]);
    assert_eq!((removal.code, &*removal.err), (0, "group \"billing\" has no active members\n"));
    assert_eq!(groups(&servers, &["remove-members", "billing"]).code, 2);
}

#[test]
fn member_is_shown_with_its_partitions_and_leaves_on_sigint() {
    let (_cluster, servers) = started();
    let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["consume", "-b", &servers, "-G", "billing", "-t", "orders", "-o", "beginning", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.by_ref().take(6).filter(Result::is_ok).count(), 6);
    let members = json(&groups(&servers, &["members", "billing", "--json"]));
    assert_eq!(members[0]["assignment"], "orders:0,1");
    assert_eq!(members[0]["partitions"], 2);
    let refused = groups(&servers, &["delete", "billing"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("NON_EMPTY_GROUP"), "{}", refused.err);
    let removal = json(&groups(&servers, &["remove-members", "billing", "--all", "--dry-run", "--json"]));
    assert_eq!(
        (&removal[0]["consumer_id"], &removal[0]["status"]),
        (&members[0]["consumer_id"], &"would be removed".into())
    );
    for more in [&["--dry-run"][..], &[]] {
        let removal = [&["remove-members", "billing", "--instance", "strange"], more].concat();
        let refused = groups(&servers, &removal);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains("instance \"strange\""), "{}", refused.err);
    }
    let refused =
        groups(&servers, &["reset-offsets", "billing", "--topic", "orders", "--to-earliest", "--execute"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("Stable with 1 members"), "{}", refused.err);

    let interrupted = Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    assert_eq!(committed(&servers), [5, 5], "what was printed is committed");
    assert_eq!(groups(&servers, &["members", "billing"]).err, "group \"billing\" has no active members\n");
}

#[test]
fn offsets_are_reset_only_with_execute() {
    let (_cluster, servers) = started();
    assert_eq!(consume(&servers, &["-e", "-o", "beginning"]).code, 0);
    let reset = |arguments: &[&str]| groups(&servers, &[&["reset-offsets", "billing"], arguments].concat());
    let shown = reset(&["--topic", "orders", "--to-earliest"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let words: Vec<&str> = shown.out.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(words, ["billing", "orders", "0", "0"]);
    assert!(shown.err.contains("--execute"), "{}", shown.err);
    assert_eq!(committed(&servers), [5, 5], "nothing was changed");

    let steps: &[(&[&str], [i64; 2])] = &[
        (&["--topic", "orders:1", "--to-earliest"], [5, 0]),
        (&["--all-topics", "--shift-by", "2"], [5, 2]),
        (&["--topic", "orders", "--shift-by", "-1"], [4, 1]),
        (&["--topic", "orders", "--to-offset", "3"], [3, 3]),
        (&["--topic", "orders:0", "--to-offset", "99"], [5, 3]),
        (&["--all-topics", "--to-datetime", "2024-01-01T00:00:00.000"], [0, 0]),
        (&["--all-topics", "--to-datetime", "2099-01-01T00:00:00.000"], [5, 5]),
        (&["--all-topics", "--by-duration", "P1D"], [0, 0]),
        (&["--all-topics", "--to-current"], [0, 0]),
        (&["--all-topics", "--to-latest"], [5, 5]),
    ];
    for (arguments, expected) in steps {
        let done = reset(&[arguments, &["--execute"][..]].concat());
        assert_eq!((done.code, committed(&servers)), (0, *expected), "{arguments:?}: {}", done.err);
    }
    let folder = Folder::new("offsets");
    let exported = reset(&["--topic", "orders", "--to-earliest", "--export"]);
    assert_eq!(exported.out, "\"orders\",0,0\n\"orders\",1,0\n");
    let file = folder.file("offsets.csv", "orders,0,1\norders,1,2\n");
    assert_eq!(reset(&["--from-file", &file, "--execute"]).code, 0);
    assert_eq!(committed(&servers), [1, 2]);
    let wrong = folder.file("wrong.csv", "orders,0\n");
    for (arguments, code) in [
        (&["--topic", "orders"][..], 2),
        (&["--to-earliest"], 2),
        (&["--topic", "orders", "--to-earliest", "--to-latest"], 2),
        (&["--topic", "orders", "--to-datetime", "yesterday"], 2),
        (&["--from-file", &wrong], 2),
        (&["--topic", "orders:7", "--to-earliest"], 1),
        (&["--topic", "strange:0", "--to-earliest"], 1),
    ] {
        assert_eq!(reset(arguments).code, code, "{arguments:?}");
    }
}

#[test]
fn offsets_and_groups_are_deleted_unless_it_is_a_dry_run() {
    let (_cluster, servers) = started();
    assert_eq!(consume(&servers, &["-e", "-o", "beginning"]).code, 0);
    let shown = groups(&servers, &["delete-offsets", "billing", "--topic", "orders", "--dry-run"]);
    assert_eq!(shown.out.matches("would be deleted").count(), 2, "{}", shown.out);
    assert_eq!(committed(&servers), [5, 5]);
    let deleted = groups(&servers, &["delete-offsets", "billing", "--topic", "orders"]);
    assert_eq!((deleted.code, deleted.out.matches("Successful").count()), (0, 2), "{}", deleted.err);
    assert_eq!(committed(&servers), [-1, -1]);
    assert_eq!(groups(&servers, &["delete-offsets", "billing", "--topic", "strange"]).code, 1);

    let shown = groups(&servers, &["delete", "billing", "--dry-run"]);
    assert!(shown.out.contains("would be deleted"), "{}", shown.out);
    assert_eq!(groups(&servers, &["list"]).out, "billing\n");
    let deleted = groups(&servers, &["delete", "billing", "strange"]);
    assert_eq!((deleted.code, deleted.out.as_str()), (1, "deleted group billing\n"));
    assert!(deleted.err.contains("group \"strange\""), "{}", deleted.err);
    assert_eq!(groups(&servers, &["list"]).out, "");
}

fn share_groups(servers: &str, arguments: &[&str]) -> Output {
    ottla(&[&["share-groups", "-b", servers], arguments].concat())
}

#[test]
fn share_group_is_consumed_described_reset_and_deleted() {
    let (_cluster, servers) = started();
    let consumed = || {
        let member = ["consume", "-b", &servers, "--share-group", "jobs", "-t", "orders", "-o", "beginning"];
        let consumed = ottla(&[&member[..], &["-q", "-c", "10"]].concat());
        (consumed.code, consumed.out.lines().count())
    };
    let started_at = || {
        let rows = json(&share_groups(&servers, &["describe", "--offsets", "jobs", "--json"]));
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| (row["start_offset"].as_i64().unwrap(), row["lag"].as_i64().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(consumed(), (0, 10));
    assert_eq!(started_at(), [(5, 0), (5, 0)]);
    assert_eq!(share_groups(&servers, &["list"]).out, "jobs\n");
    let described = json(&share_groups(&servers, &["describe", "jobs", "--json"]));
    assert_eq!((&described[0]["state"], &described[0]["members"]), (&"Empty".into(), &0.into()));

    let reset = ["reset-offsets", "jobs", "--topic", "orders:1", "--to-offset", "3"];
    assert_eq!(share_groups(&servers, &reset).code, 0);
    assert_eq!(started_at(), [(5, 0), (5, 0)], "it was only shown");
    assert_eq!(share_groups(&servers, &[&reset[..], &["--execute"]].concat()).code, 0);
    assert_eq!(started_at(), [(5, 0), (3, 2)]);
    assert_eq!(
        share_groups(&servers, &["reset-offsets", "jobs", "--topic", "orders:7", "--to-latest"]).code,
        1
    );

    let deleted = share_groups(&servers, &["delete-offsets", "jobs", "--topic", "orders", "--dry-run"]);
    assert!(deleted.out.contains("would be deleted"), "{}", deleted.out);
    assert_eq!(share_groups(&servers, &["delete-offsets", "jobs", "--topic", "orders"]).code, 0);
    assert_eq!(started_at(), []);
    assert!(share_groups(&servers, &["delete", "--all", "--dry-run"]).out.contains("would be deleted"));
    // A group of consumers is not deleted by this command.
    let deleted = share_groups(&servers, &["delete", "jobs", "billing"]);
    assert_eq!((deleted.code, deleted.out.as_str()), (1, "deleted share group jobs\n"), "{}", deleted.err);
    assert_eq!(groups(&servers, &["list"]).out, "billing\n");
}

#[test]
fn missing_streams_groups_are_named() {
    let (_cluster, servers) = started();
    let streams_groups =
        |arguments: &[&str]| ottla(&[&["streams-groups", "-b", &servers], arguments].concat());
    let listed = streams_groups(&["list"]);
    assert_eq!((listed.code, &*listed.out), (0, ""), "{}", listed.err);
    assert_eq!(streams_groups(&["describe", "--all", "--members"]).code, 0);
    for arguments in
        [&["describe", "wordcount"][..], &["describe", "--topology", "wordcount"], &["delete", "wordcount"]]
    {
        let refused = streams_groups(arguments);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains("group \"wordcount\""), "{}", refused.err);
    }
}

#[test]
fn group_consumes_the_topics_that_match_a_pattern() {
    let (cluster, servers) = started();
    for topic in ["payments-eu", "payments-us", "refunds"] {
        cluster.control(|control| control.create_topic(topic, 1, 1)).unwrap();
        let arguments = ["produce", "-b", &servers, "-t", topic];
        assert_eq!(ottla_with_input(&arguments, topic.as_bytes()).code, 0);
    }
    let consumed = ottla(&[
        "consume",
        "-b",
        &servers,
        "-G",
        "payments",
        "-t",
        "^payments-",
        "-o",
        "beginning",
        "-q",
        "-c",
        "2",
    ]);
    let mut lines: Vec<&str> = consumed.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((consumed.code, lines), (0, vec!["payments-eu", "payments-us"]), "{}", consumed.err);
    let wrong = ottla(&["consume", "-b", &servers, "-G", "payments", "-t", "^(", "-o", "beginning"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
}

#[test]
fn consume_refuses_options_that_groups_lack() {
    let (_cluster, servers) = started();
    let consume = |arguments: &[&str]| ottla(&[&["consume", "-b", &servers], arguments].concat()).code;
    assert_eq!(consume(&["-G", "g", "-t", "orders", "-p", "0"]), 2);
    assert_eq!(consume(&["-G", "g", "-t", "orders", "-o", "5"]), 2);
    assert_eq!(consume(&["-G", "g", "-t", "orders", "--until", "end"]), 2);
    assert_eq!(consume(&["-G", "g"]), 2);
}
