//! The output, errors and exit codes of the program, with an embedded cluster.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

mod administration;
mod support;

use support::{Folder, Running, call, cluster, ottla, ottla_with_input};

#[test]
fn wrong_options_exit_with_code_2_and_a_reason() {
    for (arguments, message) in [
        (&["prodce"][..], "similar subcommand"),
        (&["produce", "--topik", "t"], "similar argument exists: '--topic'"),
        (&["producer-perf-test", "--topic", "t", "--num-records", "5"], "--record-size"),
        (
            &[
                "producer-perf-test",
                "--topic",
                "t",
                "--num-records",
                "5",
                "--record-size",
                "1",
                "--payload-monotonic",
            ],
            "cannot be used with",
        ),
        (
            &["producer-perf-test", "--topic", "t", "--num-records", "0", "--record-size", "1"],
            "0 is not in 1..",
        ),
        (
            &[
                "producer-perf-test",
                "--topic",
                "t",
                "--num-records",
                "5",
                "--record-size",
                "1",
                "--throughput",
                "0",
            ],
            "more than 0, or -1",
        ),
        (
            &[
                "producer-perf-test",
                "--topic",
                "t",
                "--num-records",
                "5",
                "--record-size",
                "1",
                "--warmup-records",
                "5",
            ],
            "--warmup-records must be less than --num-records",
        ),
        (
            &[
                "producer-perf-test",
                "--topic",
                "t",
                "--num-records",
                "5",
                "--record-size",
                "1",
                "--transaction-duration-ms",
                "0",
            ],
            "--transaction-duration-ms",
        ),
        (
            &["producer-perf-test", "--topic", "t", "--num-records", "5", "--payload-file", "/no/such/file"],
            "/no/such/file: No such file",
        ),
        (&["produce", "-b", "localhost:9092"], "no topic is named"),
        (&["produce", "-t", "t"], "no broker is named"),
        (&["produce", "-t", "t", "-b", "x:99999"], "the port must be in 1 .. 65535"),
        (&["produce", "-t", "t", "-X", "lingr.ms=5"], "did you mean `linger.ms`?"),
        (&["produce", "-t", "t", "-X", "acks=most"], "`acks` is \"most\""),
        (&["produce", "-t", "t", "-X", "acks"], "write NAME=VALUE"),
        (&["produce", "-t", "t", "-F", "/no/such/file"], "/no/such/file"),
        (&["produce", "-t", "t", "-z", "brotli"], "must be one of: none, gzip, snappy, lz4, zstd"),
        (&["-X", "acks=all", "properties"], "no effect on `properties`"),
        (&["-X", "acks=most", "produce", "-t", "t", "-b", "x:1"], "`acks` is \"most\""),
        (&["metadata", "-b", "x:1", "--timeout", "soon"], "number of seconds"),
        (&["broker", "--brokers", "0"], "0 is not in 1..=300"),
        (&["broker", "--brokers", "3", "--port", "65535"], "3 brokers need as many ports"),
        (&["properties", "lingr.ms"], "did you mean `linger.ms`?"),
    ] {
        let output = ottla(arguments);
        assert_eq!(output.code, 2, "{arguments:?} gave {}{}", output.out, output.err);
        assert!(output.err.contains(message), "{arguments:?} gave {}", output.err);
        assert_eq!(output.out, "", "{arguments:?}");
    }
}

#[test]
fn help_of_every_command_has_examples_and_exit_codes() {
    let help = ottla(&["--help"]);
    assert_eq!(help.code, 0);
    for command in ["producer-perf-test", "produce", "broker"] {
        assert!(help.out.contains(command));
        let help = ottla(&[command, "--help"]);
        assert_eq!(help.code, 0);
        assert!(help.out.contains("Examples:"), "{}", help.out);
    }
}

#[test]
fn all_properties_are_listed_and_each_is_explained() {
    for arguments in [&["-X", "list"][..], &["properties"], &["produce", "-X", "list"]] {
        let output = ottla(arguments);
        assert_eq!(output.code, 0);
        assert!(output.out.lines().count() > 250);
        assert!(output.out.lines().any(|line| line.starts_with("queue.buffering.max.messages ")));
    }
    let output = ottla(&["properties", "acks", "compression.type"]);
    assert!(output.out.contains("acks (topic)") && output.out.contains("compression.type (producer)"));
}

#[test]
fn producer_test_without_servers_starts_and_verifies_a_cluster() {
    let output = ottla(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "50000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    let line = output.out.lines().next().unwrap();
    assert!(line.starts_with("50000 records sent, ") && line.ends_with(" ms 99.9th."), "{line}");
    assert!(
        output.out.contains("verified: 50000 records read back from 6 partitions, each once and in order"),
        "{}",
        output.out
    );
}

#[test]
fn producer_test_prints_kafkas_lines() {
    let cluster = cluster();
    let output = ottla(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "3000",
        "--record-size",
        "100",
        "--throughput",
        "2000",
        "--reporting-interval",
        "500",
        "--warmup-records",
        "1500",
        "--print-metrics",
        "--bootstrap-server",
        &cluster.bootstrap_servers(),
        "--command-property",
        "acks=1",
        "linger.ms=0",
        "--producer-props",
        "client.id=me",
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    let lines: Vec<_> = output.out.lines().collect();
    assert_eq!(
        lines[0],
        "Warmup first 1500 records. Steady state results will print after the complete test summary."
    );
    assert!(lines[1].contains(" records sent, ") && lines[1].ends_with(" ms max latency."), "{}", output.out);
    assert!(lines.contains(&"In steady state."), "{}", output.out);
    assert!(lines.iter().any(|line| line.starts_with("3000 records sent, ")), "{}", output.out);
    assert!(lines.iter().any(|line| line.starts_with("1500 steady state records sent, ")), "{}", output.out);
    assert!(output.out.contains("producer-metrics:record-send-total:{client-id=me}"), "{}", output.out);
    assert!(output.err.contains("`linger.ms` is deprecated"), "{}", output.err);
}

#[test]
fn producer_test_runs_under_the_name_of_kafkas_tool() {
    let folder = Folder::new("name");
    let tool = folder.0.join("kafka-producer-perf-test");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ottla"), &tool).unwrap();
    let arguments = ["--topic", "demo", "--num-records", "10", "--payload-monotonic", "--throughput", "-1"];
    let output = call(tool.to_str().unwrap(), &arguments, b"");
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.starts_with("10 records sent, "), "{}", output.out);
    let wrong = call(tool.to_str().unwrap(), &["--topic", "demo"], b"");
    assert_eq!(wrong.code, 2);
}

#[test]
fn payloads_and_properties_are_read_from_files() {
    let (folder, cluster) = (Folder::new("payloads"), cluster());
    let payloads = folder.file("payloads", "one,two,three");
    let config = folder.file(
        "producer.properties",
        &format!("bootstrap.servers={}\nacks=all\n", cluster.bootstrap_servers()),
    );
    let output = ottla(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "100",
        "--payload-file",
        &payloads,
        "--payload-delimiter",
        ",",
        "--throughput",
        "-1",
        "--producer.config",
        &config,
    ]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(
        output.out.starts_with("Reading payloads from: ")
            && output.out.contains("Number of records read: 3\n")
    );
    let config = folder.file("wrong.properties", "acks=all\n\nbatch.sise=5\n");
    let output = ottla(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "1",
        "--record-size",
        "1",
        "--command-config",
        &config,
    ]);
    assert_eq!(output.code, 2);
    assert!(
        output
            .err
            .contains("wrong.properties:3: there is no property `batch.sise`; did you mean `batch.size`?")
    );
}

#[test]
fn rejected_records_exit_with_code_1() {
    let cluster = cluster();
    let output = ottla(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "10",
        "--record-size",
        "2000000",
        "-b",
        &cluster.bootstrap_servers(),
    ]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("message.max.bytes"), "{}", output.err);
}

#[test]
fn produce_reads_messages_from_standard_input() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let output = ottla_with_input(
        &["produce", "-b", &servers, "-t", "demo", "-p", "2", "-K", ":", "-H", "from=test", "-v"],
        b"k1:v1\nk2:v2\nno key\n",
    );
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{}", output.err);
    assert!(output.err.contains("3 messages delivered"), "{}", output.err);
    let offset =
        cluster.control(|control| control.partition("demo", 2).map(|partition| partition.high_watermark));
    assert_eq!(offset, Some(3));
}

#[test]
fn debug_lines_go_to_standard_error() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let produce = ["produce", "-b", &servers, "-t", "debugged", "-X", "debug=broker,eos"];
    let output = ottla_with_input(&produce, b"one\n");
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{}", output.err);
    for text in [" broker: ", "connection state UP", " eos: ", "InitProducerId"] {
        assert!(output.err.contains(text), "{text}: {}", output.err);
    }
    let output = ottla_with_input(&produce[..5], b"two\n");
    assert_eq!(output.err, "", "no property, no line");
}

#[test]
fn broker_runs_until_it_is_stopped() {
    let child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["broker", "--brokers", "2", "--port", "0", "--topic", "demo:3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let servers = line.trim().strip_prefix("bootstrap.servers=").unwrap().to_string();
    assert_eq!(servers.split(',').count(), 2);
    let output = ottla_with_input(&["produce", "-b", &servers, "-t", "demo", "-p", "2"], b"hello\n");
    assert_eq!(output.code, 0, "{}", output.err);
}

#[test]
fn consume_prints_messages_as_they_were_produced() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let produced = ottla_with_input(
        &[
            "produce",
            "-b",
            &servers,
            "-t",
            "demo",
            "-p",
            "0",
            "-K",
            ":",
            "-H",
            "from=test",
            "-H",
            "null",
            "--timestamp",
            "1700000000000",
            "-Z",
        ],
        b"k1:v1\nk2:\n:v3\n",
    );
    assert_eq!(produced.code, 0, "{}", produced.err);
    let consume = |more: &[&str]| {
        let mut arguments = vec!["consume", "-b", &servers, "-t", "demo", "-e", "-q", "-o", "beginning"];
        arguments.extend(more);
        let output = ottla(&arguments);
        assert_eq!((output.code, output.err.as_str()), (0, ""));
        output.out
    };
    assert_eq!(consume(&[]), "v1\n\nv3\n");
    assert_eq!(consume(&["-K", "=", "-Z", "-D", ";"]), "k1=v1;k2=NULL;NULL=v3;");
    assert_eq!(
        consume(&["-f", "%t[%p]@%o %T %k(%K)=%s(%S) %h\\n", "-c", "2"]),
        "demo[0]@0 1700000000000 k1(2)=v1(2) from=test,null=NULL\ndemo[0]@1 1700000000000 k2(2)=(-1) from=test,null=NULL\n"
    );
    assert_eq!(
        consume(&["-J", "-p", "0", "-o", "-1"]),
        "{\"headers\":[\"from\",\"test\",\"null\",null],\"key\":null,\"offset\":2,\"partition\":0,\"payload\":\"v3\",\
         \"topic\":\"demo\",\"ts\":1700000000000}\n"
    );
    assert_eq!(consume(&["-o", "1"]), "\nv3\n");
    assert_eq!(consume(&["-o", "end"]), "");
    assert_eq!(consume(&["-o", "s@1700000000001"]), "");
    assert_eq!(consume(&["-o", "s@1600000000000", "-o", "e@1700000000000"]), "");
}

#[test]
fn produce_sends_files_whole_or_by_line() {
    let (folder, cluster) = (Folder::new("files"), cluster());
    let servers = cluster.bootstrap_servers();
    let (first, second) = (folder.file("first", "a\nb\n"), folder.file("second", "c"));
    assert_eq!(ottla(&["produce", "-b", &servers, "-t", "demo", "-p", "1", &first, &second]).code, 0);
    assert_eq!(ottla(&["produce", "-b", &servers, "-t", "demo", "-p", "1", "-l", "-c", "1", &first]).code, 0);
    let output =
        ottla(&["consume", "-b", &servers, "-t", "demo", "-p", "1", "-o", "0", "-e", "-q", "-D", "|"]);
    assert_eq!(output.out, "a\nb\n|c|a|");
}

#[test]
fn consume_ends_quietly_when_its_reader_closes_the_output() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let lines = "a message that fills pipes\n".repeat(20_000);
    assert_eq!(ottla_with_input(&["produce", "-b", &servers, "-t", "demo"], lines.as_bytes()).code, 0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["consume", "-b", &servers, "-t", "demo", "-o", "beginning", "-e", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "a message that fills pipes\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn topics_are_created_listed_described_and_deleted() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let topics = |arguments: &[&str]| ottla(&[&["topics", "-b", &servers], arguments].concat());
    let created = topics(&["create", "one", "two", "--partitions", "2", "--replication-factor", "3"]);
    assert_eq!(
        (created.code, created.out.as_str()),
        (0, "created topic one\ncreated topic two\n"),
        "{}",
        created.err
    );
    let again = topics(&["create", "one"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("one"), "{}", again.err);
    assert_eq!(topics(&["list"]).out, "one\ntwo\n");
    let described = topics(&["describe", "one"]).out;
    assert!(
        described.starts_with("Topic: one\tTopicId: ")
            && described.contains("PartitionCount: 2\tReplicationFactor: 3")
    );
    assert_eq!(described.lines().count(), 3, "{described}");
    assert_eq!(topics(&["delete", "one"]).out, "deleted topic one\n");
    assert_eq!(topics(&["list"]).out, "two\n");
    let missing = topics(&["describe", "one"]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("one"), "{}", missing.err);
}

#[test]
fn topics_are_described_and_deleted_by_id() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let topics = |arguments: &[&str]| ottla(&[&["topics", "-b", &servers], arguments].concat());
    cluster.control(|control| control.create_topic("one", 2, 3)).unwrap();
    let by_name = topics(&["describe", "one"]).out;
    let id = by_name.split("TopicId: ").nth(1).unwrap().split('\t').next().unwrap();
    let by_id = topics(&["describe", "--topic-id", id]);
    // Only the description by name has eligible leaders.
    assert_eq!(
        (by_id.out.lines().next(), by_id.out.lines().count()),
        (by_name.lines().next(), 3),
        "{}",
        by_id.err
    );
    let dry = topics(&["delete", "--topic-id", id, "--dry-run"]);
    assert_eq!(dry.out, format!("would be deleted: topic {id}\n"), "{}", dry.err);
    assert_eq!(topics(&["delete", "--topic-id", id]).out, format!("deleted topic {id}\n"));
    assert_eq!(topics(&["list"]).out, "");
    for action in ["describe", "delete"] {
        let missing = topics(&[action, "--topic-id", id]);
        assert_eq!(missing.code, 1);
        assert!(missing.err.contains(id) && missing.err.contains("UNKNOWN_TOPIC_ID"), "{}", missing.err);
    }
    assert_eq!(topics(&["delete", "--topic-id", id, "--if-exists"]).code, 0);
    let wrong = topics(&["describe", "--topic-id", "one"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("not a topic ID"), "{}", wrong.err);
    assert_eq!(topics(&["delete"]).code, 2);
}

#[test]
fn metadata_is_printed_as_text_and_json() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 2, 3)).unwrap();
    let people = ottla(&["metadata", "-b", &servers]);
    assert_eq!(people.code, 0, "{}", people.err);
    assert!(
        people.out.contains(" 3 brokers:\n") && people.out.contains("  topic \"demo\" with 2 partitions:\n")
    );
    let programs = ottla(&["metadata", "-b", &servers, "-t", "demo", "-J"]);
    let json: serde_json::Value = serde_json::from_str(&programs.out).unwrap();
    assert_eq!(json["brokers"].as_array().unwrap().len(), 3);
    assert_eq!(json["topics"][0]["partitions"][1]["replicas"].as_array().unwrap().len(), 3);
    assert_eq!(ottla(&["metadata", "-b", &servers, "-t", "missing"]).code, 1);
}

#[test]
fn offsets_have_the_format_of_kafkas_tool() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 2, 3)).unwrap();
    let produced = ottla_with_input(
        &["produce", "-b", &servers, "-t", "demo", "-p", "1", "--timestamp", "1700000000000"],
        b"a\nb\n",
    );
    assert_eq!(produced.code, 0, "{}", produced.err);
    let offsets = |time: &str| ottla(&["offsets", "-b", &servers, "-t", "demo", "--time", time]).out;
    assert_eq!(offsets("latest"), "demo:0:0\ndemo:1:2\n");
    assert_eq!(offsets("-2"), "demo:0:0\ndemo:1:0\n");
    assert_eq!(offsets("1600000000000"), "demo:0:\ndemo:1:0\n");
}

#[test]
fn consumer_test_prints_kafkas_lines() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let produced = ottla(&[
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "5000",
        "--record-size",
        "100",
        "-b",
        &servers,
    ]);
    assert_eq!(produced.code, 0, "{}", produced.err);
    let consume = |more: &[&str]| {
        ottla(
            &[&["consumer-perf-test", "--bootstrap-server", &servers, "--num-records", "5000"], more]
                .concat(),
        )
    };
    let output = consume(&["--topic", "demo", "--print-metrics"]);
    assert_eq!(output.code, 0, "{}", output.err);
    let lines: Vec<_> = output.out.lines().collect();
    assert_eq!(
        lines[0],
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
         fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    );
    let fields: Vec<_> = lines[1].split(", ").collect();
    assert_eq!((fields.len(), fields[2], fields[4]), (10, "0.4768", "5000"), "{}", lines[1]);
    assert!(output.out.contains("records-consumed-total:{client-id=perf-consumer-client} : 5000.000"));
    let included = consume(&["--include", "de.o", "--hide-header", "--date-format", "HH:mm"]);
    assert_eq!(included.out.lines().count(), 1, "{}", included.out);
    let too_few = consume(&["--topic", "demo", "--from-latest", "--timeout", "3000", "--hide-header"]);
    assert!(
        too_few.out.starts_with(
            "WARNING: Exiting before consuming the expected number of records: timeout (3000 ms)"
        )
    );
    assert_eq!(ottla(&["consumer-perf-test", "-b", &servers, "--topic", "demo"]).code, 2);
    assert_eq!(consume(&["--topic", "demo", "--date-format", "QQ"]).code, 2);
}
