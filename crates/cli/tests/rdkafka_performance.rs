//! The flags, result lines and errors of `rdkafka_performance`, on an embedded cluster.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const PATTERN: &str = "_____________Test1:TwoBrokers:500kmsgs:100bytes";

/// Creates a link to `ottla` with this name.
fn program() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("performance-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let link = folder.join("rdkafka_performance");
    let _ = symlink(env!("CARGO_BIN_EXE_ottla"), &link);
    link
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn performance(arguments: &[&str]) -> Said {
    let output = Command::new(program()).args(arguments).stdin(Stdio::null()).output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::start(ClusterOptions { brokers: 1, partitions: 2, ..ClusterOptions::default() }).unwrap()
}

/// True if `text` matches `pattern`, in which `#` stands for a number.
fn is(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    let parts: Vec<&str> = pattern.split('#').collect();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
            if after.len() == rest.len() {
                return false;
            }
            rest = after;
        }
        let Some(after) = rest.strip_prefix(part) else { return false };
        rest = after;
    }
    rest.is_empty()
}

fn assert_is(text: &str, pattern: &str) {
    assert!(is(text, pattern), "expected: {pattern}\nfound: {text}");
}

#[test]
fn published_commands_run_unchanged_on_an_embedded_cluster() {
    for (flags, compression, warnings) in [
        (&["-S", "1", "-a", "2"][..], "no", 1),
        (&["-S", "1", "-a", "0", "-p", "1"], "no", 0),
        (&["-S", "1", "-a", "2", "-z", "snappy"], "snappy", 1),
        (&["-S", "1", "-a", "2", "-z", "gzip"], "gzip", 1),
    ] {
        let mut arguments = vec!["-P", "-t", "test2", "-s", "100", "-c", "5000", "-m", PATTERN];
        arguments.extend_from_slice(flags);
        let said = performance(&arguments);
        assert_eq!(said.code, Some(0), "{flags:?}: {} {}", said.out, said.err);
        assert_eq!(said.err.matches("-a 2").count(), warnings, "{}", said.err);
        let last = said.out.lines().last().unwrap();
        let pattern = format!(
            "% 5000 messages and 500000 bytes sent in #ms: # msgs/s and # Mb/s, 0 messages failed, {compression} compression"
        );
        assert_is(last, &pattern);
    }
}

#[test]
fn sent_messages_are_consumed_by_callback_and_in_batches() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let send =
        ["-P", "-b", &servers, "-t", "t", "-s", "20", "-c", "1000", "-p", "0", "-p", "1", "-D", "-k", "key"];
    let said = performance(&send);
    assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
    for how in [&[][..], &["-B", "100"], &["-H", "parse"], &["-M", "-q"]] {
        let mut arguments = vec!["-C", "-b", &servers, "-t", "t", "-p", "0", "-p", "1", "-c", "1000"];
        arguments.extend_from_slice(how);
        let said = performance(&arguments);
        assert_eq!(said.code, Some(0), "{how:?}: {} {}", said.out, said.err);
        assert_is(
            said.out.lines().last().unwrap(),
            "% 1000 messages (20000 bytes) consumed in #ms: # msgs/s (# MB/s)",
        );
    }
    let said = performance(&["-C", "-b", &servers, "-t", "t", "-p", "1", "-o", "-7", "-e"]);
    assert_is(
        said.out.lines().last().unwrap(),
        "% 7 messages (140 bytes) consumed in #ms: # msgs/s (# MB/s)",
    );
}

#[test]
fn group_consumes_once_and_continues_after_its_commit() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let sent = performance(&["-P", "-t", "shared", "-s", "100", "-c", "2000", "-b", &servers]);
    assert_eq!(sent.code, Some(0), "{}", sent.err);
    let consume = |count: &str| {
        performance(&[
            "-G",
            "g",
            "-t",
            "shared",
            "-c",
            count,
            "-b",
            &servers,
            "-X",
            "auto.offset.reset=earliest",
        ])
    };
    let first = consume("1500");
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert!(first.out.contains("1500 messages"), "{}", first.out);
    let more = performance(&["-P", "-t", "shared", "-s", "100", "-c", "1500", "-b", &servers]);
    assert_eq!(more.code, Some(0), "{}", more.err);
    let second = consume("1500");
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert!(second.out.contains("1500 messages"), "{}", second.out);
}

#[test]
fn payloads_are_the_pattern_after_a_number() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let flags = [
        "-P", "-b", &servers, "-t", "numbers", "-p", "0", "-s", "12", "-c", "3", "-m", "ab", "-F", "41", "-q",
    ];
    assert_eq!(performance(&flags).code, Some(0));
    let said = performance(&["-C", "-b", &servers, "-t", "numbers", "-c", "3", "-vv"]);
    let payloads: Vec<&str> = said.out.lines().filter(|line| line.starts_with('@')).collect();
    assert_eq!(payloads, ["@0: : 41: abababab", "@1: : 42: abababab", "@2: : 43: abababab"]);
}

#[test]
fn message_without_a_size_is_as_long_as_its_pattern() {
    let said = performance(&["-P", "-t", "short", "-c", "3", "-m", "pattern", "-q"]);
    assert_is(
        said.out.lines().last().unwrap(),
        "% 3 messages and 21 bytes sent in #ms: # msgs/s and # Mb/s, 0 messages failed, no compression",
    );
}

/// -x ends the program abruptly, to test the fate of its messages.
#[test]
fn hard_exit_happens_after_the_requested_deliveries() {
    let said = performance(&["-P", "-t", "hard", "-c", "30", "-x", "20"]);
    assert_eq!(said.out.lines().last(), Some("% Hard exit after 20 messages, as requested"));
    assert_eq!(said.code, Some(0));
}

#[test]
fn latency_is_measured_by_both_sides_and_written_to_a_file() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let file = program().with_file_name("latencies");
    let send = ["-P", "-b", &servers, "-t", "slow", "-p", "0", "-c", "200", "-r", "10000", "-l", "-u"];
    let said = performance(&[&send[..], &["-A", file.to_str().unwrap()]].concat());
    assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
    assert!(said.out.contains("|    elapsed |       msgs |"), "{}", said.out);
    let lines = fs::read_to_string(file).unwrap();
    assert_eq!(lines.lines().filter(|line| line.parse::<u64>().is_ok()).count(), 200);
    assert!(said.out.contains("% Latency of 200 messages: avg "), "{}", said.out);
    let said = performance(&["-C", "-b", &servers, "-t", "slow", "-l", "-e"]);
    assert!(said.out.contains("% Latency of 200 messages: avg "), "{}", said.out);
}

#[test]
fn statistics_go_to_a_command() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let file = program().with_file_name("statistics");
    let command = format!("cat > {}", file.display());
    let said = performance(&[
        "-P", "-b", &servers, "-t", "s", "-p", "0", "-c", "300", "-r", "1000", "-T", "50", "-Y", &command,
    ]);
    assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
    assert!(fs::read_to_string(file).unwrap().starts_with('{'));
}

#[test]
fn properties_come_from_flags_and_files_and_are_listed() {
    let file = program().with_file_name("properties");
    fs::write(&file, "# a comment\n\n linger.ms = 77\nacks=1\n").unwrap();
    let from_file = format!("file={}", file.display());
    let said = performance(&["-X", &from_file, "-X", "client.id=me", "-X", "dump"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for expected in ["queue.buffering.max.ms = 77", "client.id = me"] {
        assert!(said.out.lines().any(|line| line == expected), "{expected}: {}", said.out);
    }
    assert!(performance(&["-X", "list"]).out.contains("queue.buffering.max.messages"));
    fs::write(&file, "linger.ms=1\nnonsense.ms=1\n").unwrap();
    let said = performance(&["-X", &from_file, "-X", "dump"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("nonsense.ms") && said.err.contains("properties:2"), "{}", said.err);
}

#[test]
fn wrong_flags_exit_with_code_1_and_a_reason() {
    for (arguments, expected) in [
        (&["-P"][..], "Usage: "),
        (&["-t", "x"], "Usage: "),
        (&["-Q"], "% -Q: unknown flag"),
        (&["-P", "-t"], "% -t: the value is missing"),
        (&["-P", "-t", "x", "-s", "-1"], "% -s -1: expected a number from 0 to 1000000000"),
        (&["-P", "-t", "x", "-p", "99999999999"], "% -p 99999999999: expected a number"),
        (&["-P", "-t", "x", "-c", "5k"], "% -c 5k: expected a number"),
        (&["-P", "-t", "x", "-a", "-2"], "% -a -2: expected a number from -1 to 1000"),
        (&["-P", "-t", "x", "-z", "rar"], "compression"),
        (&["-P", "-t", "x", "-X", "linger.mss=1"], "did you mean `linger.ms`?"),
        (&["-P", "-t", "x", "-X", "linger.ms"], "% expected -X property=value instead of: linger.ms"),
        (&["-P", "-t", "x", "-X", "file=/nowhere"], "% /nowhere: "),
        (&["-P", "-t", "x", "-A", "/tmp/x"], "% -A: requires -l"),
        (&["-P", "-t", "x", "-l", "-N"], "% -l: latency is measured with delivery reports"),
        (&["-C", "-t", "x", "-o", "middle"], "% -o middle: expected a number"),
        (&["-C", "-t", "x", "-S", "group"], "% -S: it is a mode of its own"),
        (&["-P", "-t", "x", "more"], "% unexpected argument: more"),
    ] {
        let said = performance(arguments);
        assert_eq!(said.code, Some(1), "{arguments:?}: {} {}", said.out, said.err);
        assert!(said.err.contains(expected), "{arguments:?}: expected {expected}, found {}", said.err);
    }
}

#[test]
fn missing_partition_is_an_error_instead_of_a_wait() {
    let cluster = cluster();
    let servers = cluster.bootstrap_servers();
    let said = performance(&["-C", "-b", &servers, "-t", "few", "-p", "9"]);
    assert_eq!(said.code, Some(1), "{} {}", said.out, said.err);
    assert!(said.out.contains("% Consume error: few [9]"), "{}", said.out);
    let said = performance(&["-P", "-b", &servers, "-t", "few", "-p", "9", "-c", "1"]);
    assert_eq!(said.code, Some(1), "{} {}", said.out, said.err);
}

#[test]
fn rdkafka_performance_is_also_a_subcommand() {
    let output = Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["rdkafka_performance", "-P", "-t", "x", "-c", "10", "-x", "5"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("% Sending 10 messages of size 100 bytes\n"));
}
