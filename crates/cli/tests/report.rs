//! `--report` of the performance tests, and `ottla report`.

mod support;

use serde_json::Value;
use support::{Folder, cluster, ottla};

fn runs(files: &[&str]) -> Vec<Value> {
    let shown = ottla(&[&["report", "--json"], files].concat());
    assert_eq!(shown.code, 0, "{}", shown.err);
    let value: Value = serde_json::from_str(&shown.out).unwrap();
    value["runs"].as_array().unwrap().clone()
}

fn measure(servers: &str, more: &[&str]) -> support::Output {
    let arguments = [
        "producer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "20000",
        "--record-size",
        "100",
        "--bootstrap-server",
        servers,
    ];
    ottla(&[&arguments, more].concat())
}

#[test]
fn report_has_all_records_of_the_test() {
    let (folder, cluster) = (Folder::new("report"), cluster());
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 2, 1)).unwrap();
    let (first, second, third) = (folder.0.join("a.html"), folder.0.join("b.html"), folder.0.join("c.html"));
    let [first, second, third] = [&first, &second, &third].map(|path| path.to_str().unwrap());
    let secret =
        ["--report", first, "--report-name", "first", "--command-property", "acks=1", "sasl.password=hush"];
    let produced = measure(&servers, &secret);
    assert_eq!(produced.code, 0, "{}", produced.err);
    let written = std::fs::read_to_string(first).unwrap();
    assert!(written.starts_with("<!DOCTYPE html>") && !written.contains("hush"));
    let run = &runs(&[first])[0];
    assert_eq!((&run["name"], &run["totals"]["records"]), (&"first".into(), &20_000.into()));
    assert_eq!(run["totals"]["bytes"], 2_000_000);
    let counted: u64 =
        run["histogram"].as_array().unwrap().iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
    assert_eq!(counted, 20_000);
    assert!(run["settings"].as_array().unwrap().contains(&serde_json::json!(["acks", "1"])), "{run}");
    assert!(run["totals"]["requests"].as_u64().unwrap() > 0 && run["points"]["seconds"][0].is_number());

    let consumed = ottla(&[
        "consumer-perf-test",
        "--topic",
        "demo",
        "--num-records",
        "20000",
        "--bootstrap-server",
        &servers,
        "--report",
        second,
        "--report-compare",
        first,
    ]);
    assert_eq!(consumed.code, 0, "{}", consumed.err);
    let both = runs(&[second]);
    assert_eq!((both.len(), &both[0]["name"]), (2, &"first".into()));
    assert_eq!(both[1]["totals"]["records"], 20_000);
    assert_eq!(both[1]["tool"], "consumer-perf-test");

    let table = ottla(&["report", first, second, "--output", third]);
    assert_eq!(table.code, 0, "{}", table.err);
    assert!(table.out.lines().any(|line| line.starts_with("records  ")), "{}", table.out);
    assert_eq!(runs(&[third]).len(), 3);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 3, "no temporary file is left");
}

#[test]
fn unusable_report_is_refused_before_the_test() {
    let (folder, cluster) = (Folder::new("refused"), cluster());
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let other = folder.file("other.html", "<html></html>");
    let there = folder.0.join("r.html");
    let there = there.to_str().unwrap();
    for (more, error) in [
        (&["--report", "/nonexistent/r.html"][..], "can't be written"),
        (&["--report", folder.0.to_str().unwrap()], "is a folder"),
        (&["--report", there, "--report-compare", &other], "it is not a report of ottla"),
        (&["--report", there, "--report-compare", "/nonexistent"], "can't be read"),
        (&["--report-compare", &other], "--report <FILE>"),
    ] {
        let refused = measure(&servers, more);
        assert_eq!(refused.code, 2, "{more:?}: {}", refused.err);
        assert!(refused.err.contains(error), "{more:?}: {}", refused.err);
    }
    let produced = cluster.control(|control| control.partition("demo", 0)).unwrap().high_watermark;
    assert_eq!(produced, 0);
    assert!(!folder.0.join("r.html").exists());
    assert_eq!(ottla(&["report", &other]).code, 2);
    assert_eq!(ottla(&["report"]).code, 2);
}

#[cfg(unix)]
#[test]
fn interrupted_test_has_a_report_of_what_was_sent() {
    let (folder, cluster) = (Folder::new("interrupted"), cluster());
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let report = folder.0.join("r.html").display().to_string();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ottla"))
        .args(["producer-perf-test", "--topic", "demo", "--num-records", "100000000", "--record-size", "10"])
        .args(["--throughput", "1000", "--bootstrap-server", &servers, "--report", &report])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let sent = || cluster.control(|control| control.partition("demo", 0)).unwrap().high_watermark;
    let read = ["consume", "-b", &servers, "-q", "-t", "demo", "-o", "beginning", "-c", "10"];
    assert_eq!(ottla(&read).code, 0);
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(runs(&[&report])[0]["totals"]["records"], sent());
}

#[cfg(unix)]
#[test]
fn full_disk_leaves_the_old_report() {
    let (folder, cluster) = (Folder::new("full"), cluster());
    let servers = cluster.bootstrap_servers();
    cluster.control(|control| control.create_topic("demo", 1, 1)).unwrap();
    let report = folder.file("r.html", "old");
    // A limit of the size of files fails as a full disk does.
    let program = env!("CARGO_BIN_EXE_ottla");
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec {program} producer-perf-test --topic demo --num-records 10 --record-size 10 \
         --bootstrap-server {servers} --report {report}"
    );
    let refused = support::call("sh", &["-c", &script], b"");
    assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("can't be written"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "old");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}
