//! `ottla copy`: within a cluster and between two, interrupted and resumed.

mod support;

use std::process::{Command, Stdio};

use ottla_embedded_broker::EmbeddedCluster;
use support::{Output, Running, cluster, ottla, ottla_with_input};

fn filled() -> (EmbeddedCluster, String) {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("orders", 3, 1)).unwrap();
    produce(&servers, "orders", 0..30);
    (cluster, servers)
}

fn produce(servers: &str, topic: &str, numbers: std::ops::Range<u32>) {
    let lines: String = numbers.map(|number| format!("k{number}:{number}\n")).collect();
    let produced =
        ottla_with_input(&["produce", "-b", servers, "-t", topic, "-K", ":", "-H", "h=1"], lines.as_bytes());
    assert_eq!(produced.code, 0, "{}", produced.err);
}

fn copy(servers: &str, more: &[&str]) -> Output {
    ottla(&[&["copy", "-b", servers], more].concat())
}

/// Returns the messages of a topic without its name and offsets, sorted.
fn content(servers: &str, topic: &str) -> Vec<String> {
    let format = ["-f", "%p %k %s %h %T\\n"];
    let output = ottla(
        &[&["consume", "-b", servers, "-q", "-t", topic, "-o", "beginning", "-e"], &format[..]].concat(),
    );
    assert_eq!(output.code, 0, "{}", output.err);
    let mut lines: Vec<String> = output.out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn copy_continues_without_doubling_in_one_cluster() {
    let (_cluster, servers) = filled();
    let to_copy = ["orders", "--to-topic", "{topic}.copy"];
    let first = copy(&servers, &to_copy);
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out.starts_with("copied 30 messages"), "{}", first.out);
    assert!(first.err.contains("created topic \"orders.copy\" with 3 partitions"), "{}", first.err);
    assert_eq!(content(&servers, "orders.copy"), content(&servers, "orders"));
    let again = copy(&servers, &to_copy);
    assert!(again.out.starts_with("copied 0 messages"), "{}", again.out);
    produce(&servers, "orders", 30..40);
    let more = copy(&servers, &to_copy);
    assert!(more.out.starts_with("copied 10 messages"), "{}", more.out);
    assert_eq!(content(&servers, "orders.copy"), content(&servers, "orders"));
}

#[test]
fn copy_between_clusters_keeps_names_and_filters() {
    let (_source, from) = filled();
    let target = cluster();
    let to = target.bootstrap_servers();
    let plan = copy(&from, &["^ord", "--to", &to, "--dry-run"]);
    assert_eq!((plan.code, plan.out.lines().count()), (0, 3), "{}", plan.err);
    assert!(plan.out.contains("would copy orders [0] to orders from the beginning"), "{}", plan.out);
    let copied = copy(&from, &["^ord", "--to", &to, "--filter", "int(value) >= 10", "-q"]);
    assert_eq!((copied.code, copied.out.as_str()), (0, ""), "{}", copied.err);
    let kept = content(&from, "orders").into_iter().filter(|line| line.split(' ').nth(2).unwrap().len() == 2);
    assert_eq!(content(&to, "orders"), kept.collect::<Vec<_>>());
    // The messages that the filter left out are part of the progress.
    assert!(copy(&from, &["orders", "--to", &to]).out.starts_with("copied 0 messages"));
}

#[test]
fn interrupted_copy_continues_where_its_last_transaction_ended() {
    use ottla_embedded_broker::{ApiKey, ErrorCode, Fault, FaultAction};
    let (cluster, servers) = filled();
    let to_copy = ["orders", "--to-topic", "copy"];
    assert_eq!(copy(&servers, &[&to_copy[..], &["--until", "5"]].concat()).code, 0);
    let before = content(&servers, "copy");
    assert_eq!(before.len(), 15);
    let refusal = Fault::new(FaultAction::Error(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    cluster.control(|control| control.inject(refusal.api(ApiKey::Produce).times(100)));
    let failed = copy(&servers, &to_copy);
    assert_eq!(failed.code, 1, "{}", failed.out);
    assert!(failed.err.contains("the same command continues the copy"), "{}", failed.err);
    assert_eq!(content(&servers, "copy"), before, "the transaction was aborted");
    cluster.control(|control| control.clear_faults());
    let resumed = copy(&servers, &to_copy);
    assert!(resumed.out.starts_with("copied 15 messages"), "{}{}", resumed.out, resumed.err);
    assert_eq!(content(&servers, "copy"), content(&servers, "orders"));
}

/// A copy that was killed leaves a transaction with progress behind: until the next copy aborts it, its offsets are not stable.
#[test]
fn open_transaction_of_an_earlier_copy_is_aborted_first() {
    let (_cluster, servers) = filled();
    let to_copy = ["orders", "--to-topic", "copy"];
    assert_eq!(copy(&servers, &[&to_copy[..], &["--until", "5"]].concat()).code, 0);
    let mut config = ottla::Config::new();
    for (name, value) in [("bootstrap.servers", &*servers), ("transactional.id", "ottla-copy-ottla-copy")] {
        config.set(name, value).unwrap();
    }
    let timeout = std::time::Duration::from_secs(60);
    let killed = ottla::Producer::new(&config).unwrap();
    let found = killed.admin().list_group_offsets("ottla-copy", None, timeout).unwrap();
    let mut offsets: Vec<_> = found.into_iter().filter_map(|(_, found)| found.unwrap()).collect();
    assert_eq!(offsets.len(), 3);
    offsets.iter_mut().for_each(|one| one.offset += 1);
    killed.init_transactions(timeout).unwrap();
    let transaction = killed.begin().unwrap();
    let group = ottla::ConsumerGroupMetadata {
        group_id: "ottla-copy".into(),
        generation: None,
        member_id: String::new(),
        instance_id: None,
        topic_ids: Default::default(),
    };
    transaction.send_offsets_of(group, &offsets, timeout).unwrap();
    let resumed = copy(&servers, &to_copy);
    assert!(resumed.out.starts_with("copied 15 messages"), "{}{}", resumed.out, resumed.err);
    assert_eq!(content(&servers, "copy"), content(&servers, "orders"));
    assert!(transaction.commit(timeout).is_err(), "the earlier copy is fenced");
}

#[test]
fn copy_aborts_its_transaction_if_the_progress_is_refused() {
    use ottla_embedded_broker::{ApiKey, ErrorCode, Fault, FaultAction};
    let (cluster, servers) = filled();
    let refusal = Fault::new(FaultAction::Error(ErrorCode::GROUP_AUTHORIZATION_FAILED));
    cluster.control(|control| control.inject(refusal.api(ApiKey::TxnOffsetCommit).times(1)));
    let failed = copy(&servers, &["orders", "--to-topic", "copy"]);
    assert_eq!(failed.code, 1, "{}", failed.out);
    assert!(failed.err.contains("the progress was not added to the transaction"), "{}", failed.err);
    let listed = ottla(&["transactions", "list", "-b", &servers]);
    assert!(listed.out.contains("CompleteAbort"), "{}{}", listed.out, listed.err);
}

/// Starts a copy that goes on at the end, and waits until the target has the first 30 messages.
fn follow(servers: &str) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["copy", "-b", servers, "orders", "--to-topic", "copy", "--follow"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(child.unwrap());
    assert_eq!(
        ottla(&["topics", "create", "-b", servers, "copy", "--partitions", "3", "--if-not-exists"]).code,
        0
    );
    let read = ["consume", "-b", servers, "-q", "-t", "copy", "-o", "beginning", "-c", "30"];
    assert_eq!(ottla(&read).code, 0);
    running
}

#[test]
fn killed_copy_continues_without_doubling() {
    let (_cluster, servers) = filled();
    let mut running = follow(&servers);
    // The copy may be in the middle of a transaction with some of these.
    produce(&servers, "orders", 30..3000);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    let resumed = copy(&servers, &["orders", "--to-topic", "copy"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(content(&servers, "copy"), content(&servers, "orders"));
}

#[cfg(unix)]
#[test]
fn interrupted_copy_commits_what_it_has_sent() {
    let (_cluster, servers) = filled();
    let mut running = follow(&servers);
    let killed = Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    assert!(copy(&servers, &["orders", "--to-topic", "copy"]).out.starts_with("copied 0 messages"));
    assert_eq!(content(&servers, "copy"), content(&servers, "orders"));
}

#[test]
fn ambiguous_copies_are_refused() {
    let (_cluster, servers) = filled();
    for topic in ["small", "other"] {
        assert_eq!(ottla(&["topics", "create", "-b", &servers, topic, "--partitions", "1"]).code, 0);
    }
    for (arguments, code, error) in [
        (&["orders"][..], 2, "would be copied to itself"),
        (&["orders", "other", "--to-topic", "x"], 2, "would both be copied to \"x\""),
        (&["orders", "--rename", "x"], 2, "\"=\" is missing"),
        (&["orders", "--to-topic", "small"], 1, "has 1 of the 3 partitions of its source"),
        (&["orders", "--to-topic", "new", "--no-create"], 1, "does not exist in the target cluster"),
        (&["nothing", "--to-topic", "new"], 1, "topic \"nothing\" does not exist"),
        (&["orders", "--to-topic", "new", "--filter", "value."], 2, "--filter"),
        (&["orders", "--to-topic", "new", "--rate", "0.05"], 2, "at least 0.1 messages per second"),
        (&[], 2, "no topic is named"),
    ] {
        let refused = copy(&servers, arguments);
        assert_eq!(refused.code, code, "{arguments:?}: {}", refused.err);
        assert!(refused.err.contains(error), "{arguments:?}: {}", refused.err);
    }
    assert_eq!(copy(&servers, &["orders", "--to-topic", "x"]).code, 0);
    let other = copy(&servers, &["other", "--to-topic", "x"]);
    assert_eq!(other.code, 2, "{}", other.err);
    assert!(other.err.contains("the progress of another copy"), "{}", other.err);
}
