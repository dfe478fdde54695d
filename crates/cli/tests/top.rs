//! `ottla top`: on a pseudo-terminal, and in a pipe.

#[cfg(unix)]
#[path = "support/pseudo_terminal.rs"]
mod pseudo_terminal;
mod support;

use support::{cluster, ottla, ottla_with_input};

/// Produces a message for each line.
fn produce(servers: &str, topic: &str, lines: &[u8]) {
    let produced = ottla_with_input(&["produce", "-b", servers, "-t", topic], lines);
    assert_eq!(produced.code, 0, "{}", produced.err);
}

#[test]
fn pipe_gets_one_table_without_escape_codes() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    produce(&servers, "orders", b"1\n2\n3\n");
    let read = ["consume", "-b", &servers, "-t", "orders", "-G", "billing", "-o", "beginning", "-c", "1"];
    assert_eq!(ottla(&read).code, 0);
    let top = ottla(&["top", "-b", &servers, "--interval", "0.2"]);
    assert_eq!(top.code, 0, "{}", top.err);
    assert!(!top.out.contains('\x1b') && !top.err.contains('\x1b'), "{:?}", top.out);
    let line = |start: &str| top.out.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(line("cluster ").contains(": 3 brokers, "), "{}", top.out);
    assert!(line("cluster ").contains(" 0 under-replicated, 0 leaderless, 0 records/s"), "{}", top.out);
    let words: Vec<&str> = line("orders ").split_whitespace().collect();
    assert_eq!((words[1], words[2]), ("4", "0"), "{}", top.out);
    let words: Vec<&str> = line("billing ").split_whitespace().collect();
    assert_eq!(words[3..5], ["2", "0"], "lag and trend: {}", top.out);
}

#[test]
fn snapshot_is_one_json_object() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    produce(&servers, "orders", b"1\n2\n3\n");
    let top = ottla(&["top", "-b", &servers, "--once", "--json", "--interval", "0.2"]);
    assert_eq!(top.code, 0, "{}", top.err);
    let value: serde_json::Value = serde_json::from_str(&top.out).unwrap();
    assert_eq!(value["under_replicated_partitions"], 0);
    assert_eq!(value["brokers"][0]["up"], true);
    let topics = value["topics"].as_array().unwrap();
    let orders = topics.iter().find(|topic| topic["topic"] == "orders").unwrap();
    assert_eq!(orders["records_per_second"], 0.0);
    assert!(orders["bytes"].as_i64().unwrap() > 0, "{orders}");
}

#[test]
fn wrong_interval_and_missing_brokers_are_errors() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    assert_eq!(ottla(&["top", "-b", &servers, "--interval", "0"]).code, 2);
    assert_eq!(ottla(&["top"]).code, 2);
    let unreachable = ottla(&["top", "-b", "127.0.0.1:1", "--timeout", "0.5"]);
    assert_eq!(unreachable.code, 1, "{}", unreachable.err);
    assert!(unreachable.err.contains("no broker responded"), "{}", unreachable.err);
}

#[cfg(unix)]
mod on_a_terminal {
    use super::*;
    use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, Tail};

    use crate::pseudo_terminal::PseudoTerminal;

    fn top(servers: &str, size: (u16, u16), variables: &[(&str, &str)]) -> PseudoTerminal {
        PseudoTerminal::start(size, variables, &["top", "-b", servers, "--interval", "0.2"])
    }

    fn has(lines: &[String], text: &str) -> bool {
        lines.iter().any(|line| line.contains(text))
    }

    #[test]
    fn keys_walk_through_the_views_and_q_restores_the_terminal() {
        let cluster = cluster();
        let servers = cluster.bootstrap_servers();
        produce(&servers, "orders", b"hello-1\nhello-2\n\x1b[2Jhello-3\n");
        let read = ["consume", "-b", &servers, "-t", "orders", "-G", "billing", "-o", "beginning", "-c", "1"];
        assert_eq!(ottla(&read).code, 0);
        let mut terminal = top(&servers, (80, 24), &[]);
        terminal.wait_until("topics", |lines| has(lines, "orders  ") && has(lines, "0 rec/s"));
        assert!(!terminal.is_in_line_mode());
        assert!(terminal.lines().iter().all(|line| line.chars().count() <= 80));
        terminal.press("4");
        terminal.wait_until("groups", |lines| lines.iter().any(|line| line.starts_with("billing ")));
        terminal.press("/nobody\r");
        terminal.wait_until("filter", |lines| has(lines, "no row matches"));
        terminal.press("1/orders\rm");
        terminal.wait_until("messages", |lines| has(lines, "·[2Jhello-3") && has(lines, "hello-1"));
        terminal.press("?");
        terminal.wait_until("help", |lines| has(lines, "the last messages"));
        terminal.press("xq");
        assert_eq!(terminal.finish().code(), Some(0));
        terminal.wait_until("restored", |_| terminal.is_restored());
    }

    #[test]
    fn signal_and_ctrl_c_restore_the_terminal() {
        let cluster = cluster();
        let servers = cluster.bootstrap_servers();
        let mut terminal = top(&servers, (80, 24), &[]);
        terminal.wait_until("start", |lines| has(lines, "no topics"));
        terminal.signal("-TERM");
        assert_eq!(terminal.finish().code(), Some(143));
        terminal.wait_until("restored", |_| terminal.is_restored());
        let mut terminal = top(&servers, (80, 24), &[]);
        terminal.wait_until("start", |lines| has(lines, "no topics"));
        terminal.press("\x03");
        assert_eq!(terminal.finish().code(), Some(0));
        terminal.wait_until("restored", |_| terminal.is_restored());
    }

    #[test]
    fn lost_broker_is_named_until_it_is_back() {
        let options = ClusterOptions { brokers: 2, ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).unwrap();
        let servers = cluster.bootstrap_servers();
        cluster.control(|control| control.create_topic("orders", 2, 2)).unwrap();
        let mut terminal = top(&servers, (80, 24), &[]);
        terminal.wait_until("start", |lines| has(lines, "2 brokers") && has(lines, "orders "));
        cluster.control(|control| control.kill_broker(BrokerId(2), Tail::Kept));
        terminal
            .wait_until("lost", |lines| has(lines, "1 broker, 1 down") && has(lines, "2 under-replicated"));
        cluster.control(|control| control.kill_broker(BrokerId(1), Tail::Kept));
        terminal.wait_until("all lost", |lines| lines.last().is_some_and(|line| line.contains("retrying")));
        cluster.control(|control| control.restart_broker(BrokerId(1)));
        cluster.control(|control| control.restart_broker(BrokerId(2)));
        terminal.wait_until("back", |lines| {
            has(lines, "2 brokers") && !has(lines, "down") && !has(lines, "retrying")
        });
        terminal.press("q");
        assert_eq!(terminal.finish().code(), Some(0));
    }

    #[test]
    fn narrow_window_and_no_color_work() {
        let cluster = cluster();
        let servers = cluster.bootstrap_servers();
        produce(&servers, "orders", b"1\n");
        let mut terminal = top(&servers, (20, 8), &[("NO_COLOR", "1")]);
        terminal.wait_until("rows", |lines| has(lines, "orders"));
        terminal.press("1234pm?q");
        assert_eq!(terminal.finish().code(), Some(0));
        let written = terminal.written();
        assert!(!written.contains("\x1b[38;5"), "{written:?}");
    }

    #[test]
    fn dumb_terminal_gets_one_table() {
        let cluster = cluster();
        let servers = cluster.bootstrap_servers();
        produce(&servers, "orders", b"1\n");
        let mut terminal = top(&servers, (80, 24), &[("TERM", "dumb")]);
        assert_eq!(terminal.finish().code(), Some(0));
        terminal.wait_until("table", |lines| has(lines, "orders ") && has(lines, "one snapshot"));
        assert!(!terminal.written().contains('\x1b'), "{:?}", terminal.written());
    }
}
