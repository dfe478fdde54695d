//! `ottla consume`: starts and ends, several topics, filters, decoders, formats.

mod support;

use ottla_embedded_broker::EmbeddedCluster;
use support::{Output, cluster, ottla, ottla_with_input};

/// Starts a cluster with a topic `demo` of two partitions: the values 0 to 9, the even ones in partition 0, at one second each.
fn numbered() -> (EmbeddedCluster, String) {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 2, 1)).unwrap();
    for number in 0..10 {
        let (partition, time) =
            ((number % 2).to_string(), (1_700_000_000_000_i64 + number * 1000).to_string());
        produce(&servers, &["-t", "demo", "-p", &partition, "--timestamp", &time], &format!("{number}"));
    }
    (cluster, servers)
}

fn produce(servers: &str, more: &[&str], input: &str) {
    let produced = ottla_with_input(&[&["produce", "-b", servers], more].concat(), input.as_bytes());
    assert_eq!(produced.code, 0, "{}", produced.err);
}

fn consume(servers: &str, more: &[&str]) -> Output {
    ottla(&[&["consume", "-b", servers, "-q"], more].concat())
}

/// Returns the lines, sorted.
fn lines(output: &Output) -> Vec<&str> {
    assert_eq!(output.code, 0, "{}", output.err);
    let mut lines: Vec<&str> = output.out.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn consume_stops_before_offsets_times_and_the_end() {
    let (_cluster, servers) = numbered();
    for (range, expected) in [
        (&["-o", "beginning", "--until", "2"][..], "0 1 2 3"),
        (&["-o", "1", "--until", "-2"], "2 3 4 5"),
        (&["-o", "-1", "--until", "end"], "8 9"),
        (&["-o", "s@1700000003000", "--until", "e@1700000006000"], "3 4 5"),
        (&["-o", "2023-11-14T22:13:25Z", "--until", "2023-11-14T22:13:27.000"], "5 6"),
        (&["-o", "@1700000008000", "--until", "now"], "8 9"),
        (&["-o", "-1h", "--until", "end"], ""),
        (&["-o", "beginning", "-e", "-p", "0-1"], "0 1 2 3 4 5 6 7 8 9"),
        (&["-o", "3", "-e", "-p", "1"], "7 9"),
    ] {
        let output = consume(&servers, &[&["-t", "demo"], range].concat());
        assert_eq!(lines(&output).join(" "), expected, "{range:?}");
    }
}

#[test]
fn last_messages_are_those_of_all_partitions_in_order() {
    let (_cluster, servers) = numbered();
    let output = consume(&servers, &["demo", "--last", "3"]);
    assert_eq!((output.code, output.out.as_str()), (0, "7\n8\n9\n"), "{}", output.err);
    let output =
        consume(&servers, &["demo", "--last", "100", "--filter", "partition == 1", "--csv=offset,value"]);
    assert_eq!(output.out, "offset,value\n0,1\n1,3\n2,5\n3,7\n4,9\n", "{}", output.err);
}

#[test]
fn several_topics_and_patterns_need_no_group() {
    let (_cluster, servers) = numbered();
    for topic in ["pay-a", "pay-b"] {
        produce(&servers, &["-t", topic, "-p", "0"], topic);
    }
    let all = ["-o", "beginning", "-e", "-f", "%t:%s\\n"];
    let output = consume(&servers, &[&["-t", "^pay-", "demo", "-p", "0", "-o", "4"], &all[2..]].concat());
    assert_eq!(output.code, 0, "{}", output.err);
    let output = consume(&servers, &[&["-t", "^pay-"], &all[..]].concat());
    assert_eq!(lines(&output), ["pay-a:pay-a", "pay-b:pay-b"]);
    let output = consume(&servers, &[&["-t", "pay-a", "-t", "pay-b"], &all[..]].concat());
    assert_eq!(lines(&output), ["pay-a:pay-a", "pay-b:pay-b"]);
    let output = consume(&servers, &[&["-t", "^no-such"], &all[..]].concat());
    assert_eq!(output.code, 1);
    assert!(output.err.contains("no topic matches ^no-such"), "{}", output.err);
    let output = consume(&servers, &[&["-t", "^("], &all[..]].concat());
    assert_eq!(output.code, 2, "{}", output.err);
}

#[test]
fn filter_chooses_messages_and_counts_those_that_fail() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let orders = "{\"id\": 1, \"total\": 50}\n{\"id\": 2, \"total\": 150.5}\nno json\n{\"id\": 3}\n";
    produce(&servers, &["-t", "orders", "-p", "0", "-H", "source=shop"], orders);
    let filtered = |filter: &str, more: &[&str]| {
        consume(&servers, &[&["-t", "orders", "-o", "beginning", "-e", "--filter", filter], more].concat())
    };
    let output = filtered("value.total > 100", &["-f", "%o\\n"]);
    assert_eq!((output.code, output.out.as_str()), (0, "1\n"), "{}", output.err);
    assert_eq!(output.err.lines().count(), 1, "{}", output.err);
    assert!(output.err.contains("--filter failed for 2 of 4 messages"), "{}", output.err);
    assert!(output.err.contains("orders [0] at offset 2"), "{}", output.err);
    let output = filtered("headers['source'] == 'shop' && offset >= 1", &["-c", "2", "-f", "%o\\n"]);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("1\n2\n", ""));
    for (filter, error) in [("value.", "--filter value."), ("vlaue.total > 1", "\"vlaue\" does not exist")] {
        let output = filtered(filter, &[]);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{filter}");
        assert!(output.err.contains(error), "{}", output.err);
    }
}

#[test]
fn filter_applies_to_groups_and_share_groups() {
    let (_cluster, servers) = numbered();
    let shared = ["-t", "demo", "-o", "beginning", "--filter", "int(value) >= 8"];
    let output = consume(&servers, &[&shared[..], &["-G", "g", "-e"]].concat());
    assert_eq!(lines(&output), ["8", "9"]);
    let lag = ottla(&["groups", "-b", &servers, "lag", "g", "--json"]);
    assert_eq!(
        lag.out.matches("\"lag\":0").count(),
        2,
        "messages that were left out are committed: {}",
        lag.out
    );
    let output = consume(&servers, &[&shared[..], &["--share-group", "s", "-c", "2"]].concat());
    assert_eq!(lines(&output), ["8", "9"]);
}

#[test]
fn decoders_print_numbers_and_json() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    produce(&servers, &["-t", "packed", "-p", "0", "-k", "k"], "\0\0\0\u{7}{\"a\": 1}\n");
    let read =
        |more: &[&str]| consume(&servers, &[&["-t", "packed", "-o", "beginning", "-e"], more].concat());
    assert_eq!(read(&["-s", "value=i s"]).out, "7 {\"a\": 1}\n");
    let json = read(&["-s", "value=is", "-J"]);
    assert!(json.out.contains("\"payload\":[7,\"{\\\"a\\\": 1}\"]"), "{}", json.out);
    assert_eq!(read(&["-f", "%{value:hex} %{key:base64}\\n"]).out, "000000077b2261223a20317d aw==\n");
    assert_eq!(read(&["-s", "value=I", "--filter", "value == 7", "-f", "%k\\n"]).out, "k\n");
    let wrong = read(&["-s", "value=json"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (1, ""));
    assert!(wrong.err.contains("packed [0] at offset 0: the value can't be decoded"), "{}", wrong.err);
    let wrong = read(&["-s", "value=json", "-J"]);
    assert!(
        wrong.code == 0 && wrong.out.contains("\"payload\":null,\"payload_error\":\"it is not JSON"),
        "{}",
        wrong.out
    );
}
