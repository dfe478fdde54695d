//! `ottla transactions`, and sending in transactions.

use std::time::Duration;

use ottla::{Config, Producer, Record, Transaction};
use ottla_embedded_broker::EmbeddedCluster;
use serde_json::Value;

mod support;

use support::{Output, cluster, ottla, ottla_with_input};

const LONG: Duration = Duration::from_secs(30);

fn started() -> (EmbeddedCluster, String) {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("orders", 2, 1)).unwrap();
    (cluster, servers)
}

fn producer(servers: &str, id: &str) -> Producer {
    let config = Config::from_properties([("bootstrap.servers", servers), ("transactional.id", id)]).unwrap();
    let producer = Producer::new(&config).unwrap();
    producer.init_transactions(LONG).unwrap();
    producer
}

/// A transaction with one record in partition 1, which is written.
fn open(producer: &Producer) -> Transaction<'_> {
    let transaction = producer.begin().unwrap();
    producer.deliver("orders", Record::new().value("x").partition(1), LONG).unwrap();
    transaction
}

fn transactions(servers: &str, arguments: &[&str]) -> Output {
    ottla(&[&["transactions", "-b", servers], arguments].concat())
}

fn rows(output: &Output) -> Vec<Value> {
    assert_eq!(output.code, 0, "{}", output.err);
    serde_json::from_str(&output.out).unwrap()
}

/// Returns the values of partition 1, up to its end.
fn read(servers: &str, isolation: &str) -> Vec<String> {
    let isolation = format!("isolation.level={isolation}");
    let consumed = ottla(&[
        "consume",
        "-b",
        servers,
        "-X",
        &isolation,
        "-t",
        "orders",
        "-p",
        "1",
        "-o",
        "beginning",
        "-e",
        "-q",
    ]);
    assert_eq!(consumed.code, 0, "{}", consumed.err);
    consumed.out.lines().map(str::to_owned).collect()
}

#[test]
fn open_transaction_is_listed_and_described() {
    let (_cluster, servers) = started();
    let producer = producer(&servers, "billing");
    let transaction = open(&producer);
    let listed = rows(&transactions(&servers, &["list", "--state", "Ongoing", "--json"]));
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["transactional_id"], &listed[0]["state"]), (&"billing".into(), &"Ongoing".into()));
    let described = rows(&transactions(&servers, &["describe", "billing", "--json"]));
    assert_eq!(described[0]["partitions"], "orders-1");
    assert!(described[0]["duration_ms"].as_i64().is_some_and(|duration| duration < 60_000), "{described:?}");
    let table = transactions(&servers, &["producers", "--topic", "orders", "--partition", "1"]);
    assert!(table.out.contains("CurrentTransactionStartOffset"), "{}", table.out);
    let producers =
        rows(&transactions(&servers, &["producers", "--topic", "orders", "--partition", "1", "--json"]));
    assert_eq!(producers[0]["producer_id"], listed[0]["producer_id"]);
    assert_eq!(producers[0]["transaction_start"], 0);
    transaction.commit(LONG).unwrap();
}

#[test]
fn unknown_id_state_and_start_are_refused_with_a_hint() {
    let (_cluster, servers) = started();
    let output = transactions(&servers, &["describe", "nobody"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("no producer has used this transactional ID"), "{}", output.err);
    let output = transactions(&servers, &["list", "--state", "Asleep"]);
    assert_eq!(output.code, 2);
    assert!(output.err.contains("PrepareAbort"), "{}", output.err);
    let output =
        transactions(&servers, &["abort", "--topic", "orders", "--partition", "1", "--start-offset", "5"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("no open transaction that starts at offset 5"), "{}", output.err);
}

#[test]
fn open_transaction_is_terminated_and_its_producer_fenced() {
    let (_cluster, servers) = started();
    let producer = producer(&servers, "billing");
    let transaction = open(&producer);
    let dry = transactions(&servers, &["terminate", "billing", "--dry-run"]);
    assert!(dry.out.starts_with("would fence producer ") && dry.out.contains("Ongoing"), "{}", dry.out);
    let terminated = transactions(&servers, &["terminate", "billing", "nobody"]);
    assert!(terminated.out.starts_with("fenced the producer of \"billing\""), "{}", terminated.out);
    assert_eq!((terminated.code, terminated.err.lines().count()), (1, 1), "{}", terminated.err);
    assert!(
        terminated.err.contains("\"nobody\"") && terminated.err.contains("no producer has used"),
        "{}",
        terminated.err
    );
    let listed = rows(&transactions(&servers, &["list", "--json"]));
    assert_eq!(listed.len(), 1, "an ID that is unknown is not created: {listed:?}");
    let error = transaction.commit(LONG).expect_err("it was aborted");
    assert!(error.is_fatal(), "{error}");
    assert_eq!(read(&servers, "read_committed"), Vec::<String>::new());
}

#[test]
fn hanging_transaction_is_found_and_aborted() {
    let (cluster, servers) = started();
    let producer = producer(&servers, "billing");
    let transaction = open(&producer);
    let find = ["find-hanging", "--topic", "orders", "--max-transaction-timeout", "0", "--json"];
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(rows(&transactions(&servers, &find)), Vec::<Value>::new(), "its coordinator knows it");
    assert!(cluster.control(|control| control.forget_transaction("billing")));
    let hanging = rows(&transactions(&servers, &find));
    assert_eq!((&hanging[0]["partition"], &hanging[0]["start_offset"]), (&1.into(), &0.into()));
    let abort = ["abort", "--topic", "orders", "--partition", "1", "--start-offset", "0"];
    let dry = transactions(&servers, &[&abort[..], &["--dry-run"]].concat());
    assert!(dry.out.starts_with("would abort the transaction of producer"), "{}", dry.out);
    assert_eq!(rows(&transactions(&servers, &find)).len(), 1, "nothing is aborted yet");
    let aborted = transactions(&servers, &abort);
    assert_eq!(aborted.code, 0, "{}", aborted.err);
    assert_eq!(rows(&transactions(&servers, &find)), Vec::<Value>::new());
    assert_eq!(read(&servers, "read_committed"), Vec::<String>::new());
    // Its coordinator does not know the ID any more, so the producer obtains a new one.
    transaction.abort(LONG).unwrap();
    open(&producer).commit(LONG).unwrap();
    assert_eq!(read(&servers, "read_committed"), ["x"]);
}

#[test]
fn messages_of_one_input_become_visible_together() {
    let (_cluster, servers) = started();
    let arguments = ["produce", "-b", &servers, "-t", "orders", "-p", "1", "--transactional"];
    let sent = ottla_with_input(&arguments, b"1\n2\n");
    assert_eq!(sent.code, 0, "{}", sent.err);
    assert_eq!(read(&servers, "read_committed"), ["1", "2"]);
    let limited = [&arguments[..], &["-X", "message.max.bytes=1000"]].concat();
    let input = [&b"3\n"[..], &[b'x'; 2000], b"\n"].concat();
    assert_eq!(ottla_with_input(&limited, &input).code, 1, "a message is too large");
    assert_eq!(read(&servers, "read_committed"), ["1", "2"], "the first message was aborted, too");
}

#[test]
fn perf_test_commits_after_each_duration() {
    let (cluster, servers) = started();
    let output = ottla(&[
        "producer-perf-test",
        "-b",
        &servers,
        "--topic",
        "orders",
        "--num-records",
        "2000",
        "--record-size",
        "10",
        "--throughput",
        "400",
        "--transactional-id",
        "perf",
        "--transaction-duration-ms",
        "200",
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("2000 records sent"), "{}", output.out);
    let transaction = cluster.control(|control| control.transaction("perf")).unwrap();
    // Each transaction raises the epoch; the last one is committed.
    assert!(transaction.epoch >= 3, "{transaction:?}");
}
