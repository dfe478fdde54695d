//! `ottla check`: exit codes and metrics.

mod support;

use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, Tail};
use support::{cluster, ottla, ottla_with_input};

#[test]
fn lag_beyond_the_limit_exits_with_code_3() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    assert_eq!(ottla_with_input(&["produce", "-b", &servers, "-t", "demo"], b"1\n2\n3\n").code, 0);
    let read = ["consume", "-b", &servers, "-t", "demo", "-G", "slow", "-o", "beginning", "-c", "1"];
    assert_eq!(ottla(&read).code, 0);
    let check = |more: &[&str]| ottla(&[&["check", "lag", "-b", &servers], more].concat());
    let well = check(&["slow", "--max", "2"]);
    assert_eq!(well.code, 0, "{}", well.err);
    assert_eq!(well.out, "ok group slow, topic demo: ottla_group_lag_messages 2\n");
    let behind = check(&["--all", "--max", "1"]);
    assert_eq!(
        (behind.code, behind.err.as_str()),
        (3, "ottla: check lag: 1 limit is exceeded\n"),
        "{}",
        behind.out
    );
    assert!(behind.out.starts_with("FAILED group slow"), "{}", behind.out);
    let metrics = check(&["slow", "--max", "1", "--prometheus"]);
    assert_eq!(metrics.code, 3);
    assert!(metrics.out.contains("ottla_check_ok{check=\"lag\"} 0\n"), "{}", metrics.out);
    assert!(
        metrics.out.contains("\nottla_group_lag_messages{group=\"slow\",topic=\"demo\"} 2\n"),
        "{}",
        metrics.out
    );
    let json = check(&["slow", "--max", "1", "-J"]);
    assert!(json.out.contains("\"ok\":false"), "{}", json.out);
    let unknown = check(&["nobody", "--max", "1"]);
    assert_eq!(unknown.code, 1, "{}{}", unknown.out, unknown.err);
    assert_eq!(check(&["slow"]).code, 2, "--max is required");
}

#[test]
fn lost_replicas_exit_with_code_3() {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 3, ..ClusterOptions::default() }).unwrap();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 3, 3)).unwrap();
    let check = || ottla(&["check", "under-replicated", "-b", &servers]);
    let well = check();
    assert_eq!(well.code, 0, "{}{}", well.out, well.err);
    cluster.control(|control| control.kill_broker(BrokerId(3), Tail::Kept));
    let lost = check();
    assert_eq!(lost.code, 3, "{}{}", lost.out, lost.err);
    assert!(lost.out.contains("FAILED: ottla_under_replicated_partitions 3 is more than 0"), "{}", lost.out);
}

#[test]
fn messages_pass_through_every_partition() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("health", 3, 1)).unwrap();
    let check =
        |more: &[&str]| ottla(&[&["check", "end-to-end", "-b", &servers, "-t", "health"], more].concat());
    let well = check(&["--max", "1h", "--prometheus"]);
    assert_eq!(well.code, 0, "{}{}", well.out, well.err);
    assert!(well.out.contains("\nottla_end_to_end_seconds{topic=\"health\"} 0."), "{}", well.out);
    let offsets = ottla(&["offsets", "-b", &servers, "-t", "health"]);
    assert_eq!(offsets.out, "health:0:1\nhealth:1:1\nhealth:2:1\n");
    assert_eq!(check(&["--max", "soon"]).code, 2);
    let unreachable =
        ottla(&["check", "end-to-end", "-b", "127.0.0.1:1", "-t", "health", "--timeout", "0.5"]);
    assert_eq!(unreachable.code, 1, "{}", unreachable.err);
}
