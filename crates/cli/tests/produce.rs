//! `ottla produce`: JSON, fields, templates, generated messages.

mod support;

use ottla_embedded_broker::EmbeddedCluster;
use support::{Folder, Output, cluster, ottla, ottla_with_input};

fn started(topics: &[(&str, i32)]) -> (EmbeddedCluster, String) {
    let cluster = cluster();
    for (topic, partitions) in topics {
        cluster.control(|control| control.create_topic(topic, *partitions, 1)).unwrap();
    }
    let servers = cluster.bootstrap_servers();
    (cluster, servers)
}

fn produce(servers: &str, more: &[&str], input: &str) -> Output {
    ottla_with_input(&[&["produce", "-b", servers], more].concat(), input.as_bytes())
}

fn read(servers: &str, topic: &str, more: &[&str]) -> String {
    let output =
        ottla(&[&["consume", "-b", servers, "-q", "-t", topic, "-o", "beginning", "-e"], more].concat());
    assert_eq!(output.code, 0, "{}", output.err);
    output.out
}

#[test]
fn json_of_consume_is_produced_as_the_same_messages() {
    let (_cluster, servers) = started(&[("a", 2)]);
    let (_other, others) = started(&[("a", 2)]);
    let keyed = produce(
        &servers,
        &["-t", "a", "-p", "1", "-K", ":", "-H", "h=x", "-H", "n", "--timestamp", "5"],
        "k:v\n:\nk2:\u{e9}\n",
    );
    assert_eq!(keyed.code, 0, "{}", keyed.err);
    let folder = Folder::new("json");
    let binary = folder.0.join("binary");
    std::fs::write(&binary, b"\xff\x00\n").unwrap();
    assert_eq!(produce(&servers, &["-t", "a", "-p", "0", &binary.display().to_string()], "").code, 0);
    assert_eq!(produce(&servers, &["-t", "a", "-p", "0", "-Z"], "\n").code, 0, "a null");
    let written = read(&servers, "a", &["-J"]);
    let copied = produce(&others, &["-J"], &written);
    assert_eq!(copied.code, 0, "{}", copied.err);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&read(&others, "a", &["-J"])), sorted(&written));
    let wrong = produce(&others, &["-J"], "{\"topic\": \"a\", \"payload\": \"x\"}\n{\"topic\": 3}\n");
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("message 2 (line 2): topic is not a string"), "{}", wrong.err);
    let wrong = produce(&others, &["-J"], "{\"payload\": \"x\"}\n");
    assert!(wrong.code == 1 && wrong.err.contains("it names no topic, and -t is missing"), "{}", wrong.err);
}

#[test]
fn fields_and_templates_fill_keys_headers_partitions_and_times() {
    let (_cluster, servers) = started(&[("orders", 3)]);
    let csv = produce(
        &servers,
        &["-t", "orders", "--fields", "partition,key,header:source,timestamp,value", "-K", ","],
        "2,k,shop,1700000000000,a,b\n",
    );
    assert_eq!(csv.code, 0, "{}", csv.err);
    let format = ["-f", "%p %k %h %T %s\\n"];
    assert_eq!(read(&servers, "orders", &format), "2 k source=shop 1700000000000 a,b\n");
    let template = [
        "-t",
        "orders",
        "-k",
        "{{value.id}}",
        "-p",
        "{{value.part}}",
        "-H",
        "n={{number}}",
        "--timestamp",
        "{{value.at}}",
    ];
    let filled = produce(&servers, &template, "{\"id\": 7, \"part\": 1, \"at\": \"2023-11-14T22:13:20Z\"}\n");
    assert_eq!(filled.code, 0, "{}", filled.err);
    let text = read(&servers, "orders", &[&["-p", "1"], &format[..]].concat());
    assert!(text.starts_with("1 7 n=0 1700000000000 {"), "{text}");
    let missing = produce(&servers, &template, "{\"id\": 7}\n");
    assert!(
        missing.code == 1 && missing.err.contains("message 1 (line 1): {{value.part}}"),
        "{}",
        missing.err
    );
    for (arguments, error) in [
        (&["-k", "{{nmber}}"][..], "{{nmber}} is unknown"),
        (&["-p", "x"], "not a partition"),
        (&["--timestamp", "soon"], "--timestamp"),
        (&["--fields", "key"], "the field value is missing"),
        (&["--generate", "{{value}}", "-c", "1"], "not there yet"),
        (&["--generate", "x"], "--count"),
    ] {
        let refused = produce(&servers, &[&["-t", "orders"], arguments].concat(), "");
        assert_eq!(refused.code, 2, "{arguments:?}");
        assert!(refused.err.contains(error), "{arguments:?}: {}", refused.err);
    }
}

#[test]
fn generated_messages_follow_their_template() {
    let (_cluster, servers) = started(&[("demo", 1)]);
    let made = [
        "-t",
        "demo",
        "--generate",
        "{\"id\": {{number}}, \"c\": \"{{choice a b}}\"}",
        "-k",
        "k{{number}}",
        "-c",
        "100",
    ];
    assert_eq!(produce(&servers, &made, "").code, 0);
    let lines = read(&servers, "demo", &["-K", "="]);
    assert_eq!(lines.lines().count(), 100);
    assert!(lines.starts_with("k0={\"id\": 0, \"c\": \"") && lines.contains("k99={\"id\": 99"), "{lines}");
    let again = produce(&servers, &[&made[..], &["--rate", "1000000"]].concat(), "");
    assert_eq!(again.code, 0, "{}", again.err);
    let all = read(&servers, "demo", &[]);
    let (first, second): (Vec<_>, Vec<_>) =
        (all.lines().take(100).collect(), all.lines().skip(100).collect());
    assert_eq!(first, second, "the same seed");
}
