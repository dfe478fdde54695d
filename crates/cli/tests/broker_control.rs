//! `ottla broker --seed-topics` and `ottla broker fault`.

mod support;

use support::{Folder, Running, ottla, ottla_with_input};

/// Starts brokers; returns the first two lines that they print without the names.
fn start(arguments: &[&str], folder: &Folder) -> (Running, String, String) {
    let seed = folder.0.join("seed.jsonl").display().to_string();
    let arguments = [&["--control-port", "0", "--seed-topics", &seed], arguments].concat();
    let (running, [servers, control]) = Running::broker(&arguments, ["bootstrap.servers=", "control="]);
    (running, servers, control)
}

const SEED: &str = "{\"create\": \"empty\", \"partitions\": 5, \"config\": {\"retention.ms\": \"60000\"}}\n\n\
                    {\"topic\": \"orders\", \"partition\": 2, \"key\": \"k\", \"payload\": \"v\", \"ts\": 5, \"headers\": [\"h\", \"x\"]}\n";

#[test]
fn seeded_topics_and_records_are_there_at_the_start() {
    let folder = Folder::new("seed");
    folder.file("seed.jsonl", SEED);
    let (_running, servers, _) = start(&[], &folder);
    let read =
        ["consume", "-b", &servers, "-q", "orders", "-o", "beginning", "-e", "-f", "%p %k %s %h %T\\n"];
    assert_eq!(ottla(&read).out, "2 k v h=x 5\n");
    let described = ottla(&["topics", "describe", "-b", &servers, "empty"]);
    assert!(described.out.contains("PartitionCount: 5"), "{}", described.out);
    let wrong = folder.file("wrong.jsonl", "{\"create\": \"a\"}\n{\"payload\": \"x\"}\n");
    let refused = ottla(&["broker", "--port", "0", "--seed-topics", &wrong]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("line 2: it names no topic"), "{}", refused.err);
}

#[test]
fn faults_begin_and_end_while_the_brokers_run() {
    let folder = Folder::new("faults");
    folder.file("seed.jsonl", SEED);
    let (_running, servers, control) = start(&["--brokers", "3"], &folder);
    let fault =
        |arguments: &[&str]| ottla(&[&["broker", "fault", "--control", &control], arguments].concat());
    let produce = || ottla_with_input(&["produce", "-b", &servers, "-t", "empty"], b"x\n");
    assert_eq!(produce().code, 0);
    let refused = fault(&["error", "TOPIC_AUTHORIZATION_FAILED", "--api", "Produce", "-t", "empty"]);
    assert_eq!((refused.code, refused.out.as_str()), (0, "done\n"), "{}", refused.err);
    let failed = produce();
    assert!(failed.code == 1 && failed.err.contains("TOPIC_AUTHORIZATION_FAILED"), "{}", failed.err);
    assert_eq!(fault(&["clear"]).code, 0);
    assert_eq!(produce().code, 0);
    let leader = || ottla(&["topics", "describe", "-b", &servers, "empty", "-J"]).out;
    let before = leader();
    assert_eq!(fault(&["move-leader", "-t", "empty", "-p", "0"]).code, 0);
    assert_ne!(leader(), before);
    assert_eq!(fault(&["kill-broker", "3"]).code, 0);
    assert_eq!(ottla(&["check", "under-replicated", "-b", &servers]).code, 3);
    assert_eq!(fault(&["restart-broker", "3"]).code, 0);
    for (arguments, error) in [
        (&["error", "NO_SUCH"][..], "is not an error of Kafka"),
        (&["error"], "needs a value"),
        (&["delay", "soon"], "is not a time"),
        (&["close", "--api", "Fetsch"], "is not an API of Kafka"),
        (&["kill-broker", "9"], "broker 9 does not exist"),
        (&["move-leader", "-t", "empty"], "needs --partition"),
        (&["explode"], "possible values"),
    ] {
        let output = fault(arguments);
        assert!(output.code == 2 && output.err.contains(error), "{arguments:?}: {}", output.err);
    }
    let nobody = ottla(&["broker", "fault", "--control", "127.0.0.1:1", "clear"]);
    assert!(nobody.code == 1 && nobody.err.contains("can't be reached"), "{}", nobody.err);
}
