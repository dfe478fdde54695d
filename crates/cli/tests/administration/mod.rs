//! The administrative commands: access rules, users, quotas, configurations, replicas, features, the quorum and tokens.

use ottla_embedded_broker::{
    ApiKey, Authorizer, BrokerId, ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism, Tail,
};
use serde_json::{Value, json};

use super::support::{Folder, Output, ottla, ottla_with_input};

struct Started {
    _cluster: EmbeddedCluster,
    servers: String,
}

impl Started {
    fn new(options: ClusterOptions) -> Self {
        let cluster = EmbeddedCluster::start(options).unwrap();
        cluster.control(|control| control.create_topic("orders", 2, 2)).unwrap();
        Self { servers: cluster.bootstrap_servers(), _cluster: cluster }
    }

    /// Runs a command; the name comes first.
    fn run(&self, arguments: &[&str]) -> Output {
        ottla(&[&arguments[..1], &["-b", &self.servers], &arguments[1..]].concat())
    }

    /// Returns the lines of a command that succeeds.
    fn lines(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.run(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
        output.out.lines().map(str::to_owned).collect()
    }

    /// Returns the rows of a command that succeeds.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.lines(&[arguments, &["--json"]].concat()).concat();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the errors of a command that fails with this exit code.
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, code, "{arguments:?}: {} {}", output.out, output.err);
        output.err
    }
}

fn default() -> Started {
    Started::new(ClusterOptions::default())
}

#[test]
fn missing_authorizer_is_reported_once() {
    let cluster = default();
    let add = ["acls", "add", "--allow-principal", "User:alice", "--producer", "--topic", "orders"];
    let remove = ["acls", "remove", "--topic", "orders", "--topic", "others"];
    for command in [&add[..], &remove] {
        let output = cluster.run(command);
        assert_eq!((output.code, output.out.as_str()), (1, ""), "{command:?}: {}", output.err);
        assert_eq!(output.err.lines().count(), 1, "{command:?}: {}", output.err);
        assert!(output.err.contains("authorizer.class.name"), "{command:?}: {}", output.err);
    }
}

#[test]
fn acls_are_added_listed_and_removed() {
    let authorizer = Some(Authorizer::default().super_user("User:ANONYMOUS"));
    let cluster = Started::new(ClusterOptions { authorizer, ..ClusterOptions::default() });
    let producer = ["acls", "add", "--allow-principal", "User:alice", "--producer", "--topic", "orders"];
    let previewed = cluster.rows(&[&producer[..], &["--dry-run"]].concat());
    assert_eq!((previewed.len(), &previewed[0]["status"]), (3, &json!("would be added")));
    assert!(cluster.rows(&["acls", "list"]).is_empty());
    cluster.lines(&producer);
    let deny =
        ["acls", "add", "--deny-principal", "User:eve", "--group", "b", "--prefixed", "--host", "10.0.0.1"];
    cluster.lines(&deny);
    let rows = cluster.rows(&["acls", "list", "--topic", "orders"]);
    let operations: Vec<_> = rows.iter().map(|row| row["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["WRITE", "CREATE", "DESCRIBE"]);
    let rows = cluster.rows(&["acls", "list", "--group", "billing", "--pattern", "match"]);
    assert_eq!((&rows[0]["host"], &rows[0]["permission"]), (&json!("10.0.0.1"), &json!("DENY")));
    assert!(cluster.fails(2, &["acls", "remove"]).contains("--all"));
    assert!(cluster.fails(2, &["acls", "add", "--allow-principal", "User:a"]).contains("--topic"));
    assert!(cluster.fails(2, &["acls", "list", "--operation", "fly"]).contains("CREATE"));
    let nameless = ["acls", "add", "--allow-principal", "alice", "--topic", "orders"];
    assert!(cluster.fails(1, &nameless).contains("Could not parse principal"));
    let remove = ["acls", "remove", "--principal", "User:alice"];
    assert_eq!(cluster.rows(&[&remove[..], &["--dry-run"]].concat()).len(), 3);
    assert_eq!(cluster.rows(&remove)[0]["status"], "removed");
    assert_eq!(cluster.rows(&["acls", "list"]).len(), 1);
    assert!(default().fails(1, &["acls", "list"]).contains("SECURITY_DISABLED"));
}

#[test]
fn users_get_passwords_from_standard_input_or_a_file() {
    let cluster = default();
    let folder = Folder::new("users");
    let file = folder.file("password", "secret\n");
    let b = ["users", "-b", &cluster.servers, "set-password", "alice"];
    let set = |more: &[&str], input: &[u8]| ottla_with_input(&[&b[..], more].concat(), input);
    assert_eq!(set(&[], b"secret\n").out, "changed user alice\n");
    assert_eq!(
        set(&["--mechanism", "scram-sha-256", "--iterations", "4096", "--password-file", &file], b"").code,
        0
    );
    assert_eq!(set(&[], b"").code, 2, "there is no password");
    let few = set(&["--iterations", "100"], b"secret");
    assert!(few.code == 1 && few.err.contains("Too few iterations"), "{}", few.err);
    let rows = cluster.rows(&["users", "list", "alice"]);
    let found: Vec<_> = rows.iter().map(|row| (&row["mechanism"], &row["iterations"])).collect();
    assert_eq!(found, [(&json!("SCRAM-SHA-256"), &json!(4096)), (&json!("SCRAM-SHA-512"), &json!(8192))]);
    let delete = ["users", "delete", "alice", "--mechanism", "SCRAM-SHA-256"];
    let previewed = cluster.lines(&[&delete[..], &["--dry-run"]].concat());
    assert_eq!(previewed, ["would be deleted: credential of user alice (SCRAM-SHA-256)"]);
    cluster.lines(&delete);
    assert!(cluster.fails(1, &delete).contains("no credentials of this mechanism"));
    assert!(cluster.fails(1, &["users", "list", "bob"]).contains("bob"));
}

#[test]
fn quotas_are_set_listed_and_removed() {
    let cluster = default();
    let set = ["quotas", "set", "--user", "alice", "--default-client-id", "producer_byte_rate=1024"];
    let previewed = cluster.lines(&[&set[..], &["--dry-run"]].concat());
    assert_eq!(previewed, ["would have set quotas of clients client-id=<default> user=alice"]);
    assert!(cluster.rows(&["quotas", "list"]).is_empty());
    cluster.lines(&set);
    let rows = cluster.rows(&["quotas", "list", "--user", "alice"]);
    assert_eq!(
        rows,
        [
            json!({"clients": "client-id=<default> user=alice", "quota": "producer_byte_rate", "value": 1024.0})
        ]
    );
    assert!(cluster.rows(&["quotas", "list", "--user", "alice", "--strict"]).is_empty());
    assert!(cluster.fails(2, &["quotas", "set", "x=1"]).contains("--user"));
    assert!(cluster.fails(2, &["quotas", "set", "--user", "a", "x=many"]).contains("number"));
    assert!(cluster.fails(1, &["quotas", "set", "--user", "a", "x=1"]).contains("x"));
    cluster.lines(&["quotas", "remove", "--user", "alice", "--default-client-id"]);
    assert!(cluster.rows(&["quotas", "list"]).is_empty());
}

#[test]
fn configurations_are_described_set_and_deleted() {
    let cluster = default();
    let set = ["configs", "set", "--topic", "orders", "retention.ms=1000"];
    let previewed = cluster.lines(&[&set[..], &["--dry-run"]].concat());
    assert_eq!(previewed, ["would be changed: configuration of topic orders"]);
    cluster.lines(&set);
    cluster.lines(&["configs", "set", "--topic", "orders", "--append", "cleanup.policy=compact"]);
    let rows = cluster.rows(&["configs", "describe", "--topic", "orders", "--broker", "1", "--broker", "2"]);
    let found: Vec<_> = rows.iter().map(|row| (&row["resource"], &row["name"], &row["value"])).collect();
    let of_topic = json!("topic orders");
    let expected =
        [("cleanup.policy", "delete,compact"), ("retention.ms", "1000")].map(|(n, v)| (json!(n), json!(v)));
    assert_eq!(found, expected.iter().map(|(name, value)| (&of_topic, name, value)).collect::<Vec<_>>());
    let all = cluster
        .rows(&["configs", "describe", "--all", "--topic", "orders", "--broker", "1", "--broker", "2"]);
    for resource in ["topic orders", "broker 1", "broker 2"] {
        assert!(all.iter().any(|row| row["resource"] == resource), "{resource}");
    }
    cluster.lines(&["configs", "delete", "--topic", "orders", "retention.ms"]);
    assert_eq!(cluster.rows(&["configs", "describe", "--topic", "orders"]).len(), 1);
    let listed = cluster.rows(&["configs", "list", "--kind", "topic"]);
    assert_eq!(listed, [json!({"kind": "topic", "name": "orders"})]);
    assert!(cluster.fails(2, &["configs", "describe"]).contains("--topic"));
    assert!(cluster.fails(1, &["configs", "set", "--topic", "orders", "no.such=1"]).contains("no.such"));
}

#[test]
fn replicas_are_reassigned_by_a_plan() {
    let cluster = default();
    let folder = Folder::new("plan");
    let plan = cluster.lines(&["reassign", "generate", "orders", "--brokers", "2,3"]).concat();
    let file = folder.file("plan.json", &plan);
    let previewed = cluster.rows(&["reassign", "execute", &file, "--dry-run"]);
    assert_eq!((&previewed[0]["replicas"], &previewed[0]["new_replicas"]), (&json!("1,2"), &json!("2,3")));
    let executed = cluster.run(&["reassign", "execute", &file, "--wait"]);
    assert!(executed.code == 0 && executed.err.contains("2 of 2 partitions reassigned"), "{}", executed.err);
    assert!(executed.err.contains("\"replicas\":[1,2]"), "the plan that undoes it: {}", executed.err);
    let verified = cluster.rows(&["reassign", "verify", &file]);
    assert!(verified.iter().all(|row| row["status"] == "complete"), "{verified:?}");
    assert!(cluster.rows(&["reassign", "list"]).is_empty());
    assert!(cluster.fails(2, &["reassign", "execute", "no-such-file"]).contains("no-such-file"));
    let alone = ["reassign", "generate", "orders", "--brokers", "1"];
    assert!(cluster.fails(2, &alone).contains("2 replicas"));
}

#[test]
fn minimal_plans_change_the_replicas_and_remove_a_broker() {
    let cluster = default();
    let folder = Folder::new("minimal");
    let plan = cluster.lines(&["reassign", "plan", "orders", "--replication-factor", "3"]).concat();
    let file = folder.file("more.json", &plan);
    assert_eq!(cluster.run(&["reassign", "execute", &file, "--wait"]).code, 0);
    let described = cluster.lines(&["topics", "describe", "orders"]).concat();
    assert_eq!(described.matches("ReplicationFactor: 3").count(), 1, "{described}");
    let plan =
        cluster.lines(&["reassign", "plan", "--remove-broker", "3", "--replication-factor", "2"]).concat();
    let file = folder.file("fewer.json", &plan);
    assert_eq!(cluster.run(&["reassign", "execute", &file, "--wait"]).code, 0);
    let all = cluster.rows(&["topics", "describe", "orders"]);
    let replicas =
        all[0]["partitions"].as_array().unwrap().iter().flat_map(|one| one["replicas"].as_array().unwrap());
    assert!(replicas.into_iter().all(|broker| *broker != 3), "{all:?}");
    assert!(
        cluster.fails(2, &["reassign", "plan", "--replication-factor", "9"]).contains("needs 9 replicas")
    );
}

#[test]
fn plan_says_how_many_bytes_each_broker_receives() {
    let cluster = default();
    let input = ["x".repeat(10_000), "y".repeat(10_000)].join("\n");
    let produce = ["produce", "-b", &cluster.servers, "-t", "orders", "-p", "0", "-z", "none"];
    assert_eq!(ottla_with_input(&produce, input.as_bytes()).code, 0);
    let before = cluster.rows(&["topics", "describe", "orders"])[0]["partitions"][0]["replicas"].clone();
    let absent = (1..=3).find(|id| !before.as_array().unwrap().contains(&json!(id))).unwrap();
    let planned = cluster.run(&["reassign", "plan", "orders:0", "--replication-factor", "3"]);
    assert_eq!(planned.code, 0, "{}", planned.err);
    let bytes = cluster.rows(&["log-dirs", "describe", "--replicas", "--broker", &before[0].to_string()]);
    let of = |row: &&Value| row["topic"] == "orders" && row["partition"] == 0;
    let bytes = bytes.iter().find(of).unwrap()["size"].as_i64().unwrap();
    assert!(bytes > 20_000, "{bytes}");
    let size = format!("{:.1}KiB", bytes as f64 / 1024.0);
    let wanted = format!("% 1 replica, {size} moved\n%   to broker {absent}: 1 replica, {size}\n");
    assert!(planned.err.contains(&wanted), "{}", planned.err);
    let folder = Folder::new("sizes");
    let file = folder.file("plan.json", &planned.out);
    let preview = cluster.rows(&["reassign", "execute", &file, "--dry-run"]);
    assert_eq!(preview[0]["moved_bytes"], json!(bytes));
    // Another order of the same replicas moves nothing.
    let turned =
        json!({"partitions": [{"topic": "orders", "partition": 0, "replicas": [before[1], before[0]]}]});
    let turned = folder.file("turned.json", &turned.to_string());
    assert_eq!(cluster.rows(&["reassign", "execute", &turned, "--dry-run"])[0]["moved_bytes"], json!(0));
}

#[test]
fn plan_by_size_moves_bytes_and_not_numbers() {
    let cluster = default();
    let folder = Folder::new("by-size");
    // Three partitions on one broker, of which one is as large as the two others.
    let create = ["topics", "create", "sized", "--partitions", "3", "--replication-factor", "1"];
    assert_eq!(cluster.run(&create).code, 0);
    let all = [0, 1, 2].map(|id| json!({"topic": "sized", "partition": id, "replicas": [1]}));
    let plan = folder.file("first.json", &json!({"partitions": all}).to_string());
    assert_eq!(cluster.run(&["reassign", "execute", &plan, "--wait"]).code, 0);
    for (partition, size) in [("0", 50_000), ("1", 100_000), ("2", 50_000)] {
        let produce = ["produce", "-b", &cluster.servers, "-t", "sized", "-p", partition, "-z", "none"];
        assert_eq!(ottla_with_input(&produce, "x".repeat(size).as_bytes()).code, 0);
    }
    let planned = cluster.run(&["reassign", "plan", "sized", "--balance-size"]);
    assert_eq!(planned.code, 0, "{}", planned.err);
    let found: Value = serde_json::from_str(&planned.out).unwrap();
    let moved: Vec<_> = found["partitions"].as_array().unwrap().iter().map(|one| &one["partition"]).collect();
    assert_eq!(moved.len(), 2, "{found}");
    assert!(moved.contains(&&json!(1)) && planned.err.contains("% 2 replicas, "), "{found} {}", planned.err);
    let file = folder.file("plan.json", &planned.out);
    assert_eq!(cluster.run(&["reassign", "execute", &file, "--wait"]).code, 0);
    let again = cluster.run(&["reassign", "plan", "sized", "--balance-size"]);
    assert!(again.err.contains("% nothing has to move"), "{} {}", again.out, again.err);
    assert_eq!(cluster.run(&["reassign", "plan", "--balance", "--balance-size"]).code, 2);
}

#[test]
fn plan_with_directories_moves_replicas_to_them() {
    let cluster = Started::new(ClusterOptions { log_dirs: 2, ..ClusterOptions::default() });
    let folder = Folder::new("directories");
    let dirs = cluster.rows(&["log-dirs", "describe", "--broker", "3"]);
    let path = dirs[1]["log_dir"].as_str().unwrap();
    let plan = |path: &str| json!({"partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1], "log_dirs": [path, "any"]}]});
    let file = folder.file("plan.json", &plan(path).to_string());
    let executed = cluster.lines(&["reassign", "execute", &file]);
    let moved = format!("started reassignment of orders [0] to {path} of broker 3");
    assert_eq!(executed, ["started reassignment of orders [0]".to_owned(), moved]);
    assert_eq!(cluster.rows(&["reassign", "verify", &file])[0]["status"], "complete");
    let rows = cluster.rows(&["log-dirs", "describe", "--broker", "3", "--replicas"]);
    assert!(rows.iter().any(|row| row["log_dir"] == path && row["partition"] == 0), "{rows:?}");
    let other = folder.file("other.json", &plan(dirs[0]["log_dir"].as_str().unwrap()).to_string());
    assert!(cluster.fails(1, &["reassign", "verify", &other]).contains(&format!("is in {path} of broker 3")));
    let nowhere = folder.file("nowhere.json", &plan("/nowhere").to_string());
    assert!(cluster.fails(1, &["reassign", "execute", &nowhere]).contains("LOG_DIR_NOT_FOUND"));
}

#[test]
fn reassignments_beside_others_need_an_option() {
    let reassignment_duration = std::time::Duration::from_secs(600);
    let cluster = Started::new(ClusterOptions { reassignment_duration, ..ClusterOptions::default() });
    let folder = Folder::new("additional");
    let plan = |partition: i32| {
        json!({"partitions": [{"topic": "orders", "partition": partition, "replicas": [3, 1]}]}).to_string()
    };
    let (first, second) = (folder.file("first.json", &plan(0)), folder.file("second.json", &plan(1)));
    cluster.lines(&["reassign", "execute", &first]);
    for arguments in [&["reassign", "execute", &second][..], &["reassign", "execute", &second, "--dry-run"]] {
        assert!(cluster.fails(1, arguments).contains("use --additional"));
    }
    assert_eq!(cluster.rows(&["reassign", "list"]).len(), 1);
    cluster.lines(&["reassign", "execute", &second, "--additional"]);
    assert_eq!(cluster.rows(&["reassign", "list"]).len(), 2);
}

#[test]
fn limits_of_reassignments_are_set_and_removed() {
    let reassignment_duration = std::time::Duration::from_secs(600);
    let cluster = Started::new(ClusterOptions { reassignment_duration, ..ClusterOptions::default() });
    let folder = Folder::new("limits");
    let plan = r#"{"partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1]}]}"#;
    let file = folder.file("plan.json", plan);
    let value = |resource: [&str; 2], name: &str| {
        let rows = cluster.rows(&["configs", "describe", resource[0], resource[1], "--all"]);
        rows.iter().find(|row| row["name"] == name).map(|row| row["value"].clone())
    };
    let rate = || value(["--broker", "2"], "leader.replication.throttled.rate");
    let unlimited = rate();
    let execute = ["reassign", "execute", &file, "--throttle", "1000"];
    assert!(cluster.run(&[&execute[..], &["--dry-run"]].concat()).err.contains("would be limited"));
    assert_eq!(rate(), unlimited);
    assert_eq!(cluster.run(&execute).code, 0);
    assert_eq!(rate(), Some(json!("1000")));
    let followers = || value(["--topic", "orders"], "follower.replication.throttled.replicas");
    assert_eq!(followers(), Some(json!("0:3")));
    assert_eq!(cluster.rows(&["reassign", "verify", &file])[0]["status"], "in progress");
    assert_eq!(rate(), Some(json!("1000")), "the reassignment is in progress");

    cluster.lines(&["reassign", "cancel", "orders", "--preserve-throttles"]);
    let preserved = cluster.fails(1, &["reassign", "verify", &file, "--preserve-throttles"]);
    assert!(!preserved.contains("limits removed"), "{preserved}");
    let removed = cluster.fails(1, &["reassign", "verify", &file]);
    assert!(removed.contains("limits removed: topic orders, broker 1, broker 2, broker 3"), "{removed}");
    assert_eq!((rate(), followers()), (unlimited, Some(json!(""))));
    assert!(!cluster.fails(1, &["reassign", "verify", &file]).contains("limits removed"));
}

#[test]
fn topics_are_described_with_their_eligible_leaders() {
    let cluster = default();
    let topics = cluster.rows(&["topics", "describe", "orders"]);
    let partition = &topics[0]["partitions"][0];
    assert_eq!(partition["eligible_leader_replicas"], json!([]));
    assert_eq!(partition["last_known_eligible_leader_replicas"], json!([]));
    let lines = cluster.lines(&["topics", "describe"]);
    assert!(lines[1].ends_with("Replicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: "), "{lines:?}");
    cluster._cluster.control(|control| {
        control.set_api_versions(None, ApiKey::DescribeTopicPartitions, 1, 0);
    });
    let lines = cluster.lines(&["topics", "describe", "orders"]);
    assert!(lines[1].ends_with("Elr: N/A\tLastKnownElr: N/A"), "older brokers: {lines:?}");
}

#[test]
fn records_are_deleted_before_offsets() {
    let cluster = default();
    for partition in ["0", "1"] {
        let produce = ["produce", "-b", &cluster.servers, "-t", "orders", "-p", partition];
        assert_eq!(ottla_with_input(&produce, b"1\n2\n3\n").code, 0);
    }
    let delete = ["topics", "delete-records", "orders:0=2", "orders:1=end"];
    let previewed = cluster.rows(&[&delete[..], &["--dry-run"]].concat());
    let expected = json!(
        {"topic": "orders", "partition": 0, "first_offset": 0, "end_offset": 3, "low_watermark": 2}
    );
    assert_eq!((previewed.len(), &previewed[0]), (2, &expected));
    let deleted = cluster.rows(&delete);
    let low = deleted.iter().map(|row| row["low_watermark"].as_i64().unwrap()).collect::<Vec<_>>();
    assert_eq!(low, [2, 3]);
    assert_eq!(
        cluster.lines(&["offsets", "-t", "orders", "--time", "earliest"]),
        ["orders:0:2", "orders:1:3"]
    );

    let folder = Folder::new("records");
    let text = r#"{"partitions": [{"topic": "orders", "partition": 0, "offset": -1}], "version": 1}"#;
    let file = folder.file("offsets.json", text);
    let deleted = cluster.rows(&["topics", "delete-records", "--from-file", &file]);
    assert_eq!(deleted, [json!({"topic": "orders", "partition": 0, "low_watermark": 3})]);
    let beyond = ["topics", "delete-records", "orders:0=9"];
    assert!(cluster.fails(1, &beyond).contains("OFFSET_OUT_OF_RANGE"));
    assert!(cluster.fails(1, &[&beyond[..], &["--dry-run"]].concat()).contains("ends at 3"));
    assert!(cluster.fails(2, &["topics", "delete-records", "orders:0"]).contains("\"=\" is missing"));
}

#[test]
fn reassignments_in_progress_are_waited_for_and_cancelled() {
    let reassignment_duration = std::time::Duration::from_secs(600);
    let cluster = Started::new(ClusterOptions { reassignment_duration, ..ClusterOptions::default() });
    let folder = Folder::new("cancel");
    let plan = r#"{"partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1]}]}"#;
    let file = folder.file("plan.json", plan);
    let wait = ["reassign", "execute", &file, "--wait", "--wait-timeout", "0.6"];
    assert!(cluster.fails(1, &wait).contains("1 reassignments are not complete"));
    let rows = cluster.rows(&["reassign", "list"]);
    assert_eq!((&rows[0]["adding"], &rows[0]["removing"]), (&json!("3"), &json!("2")));
    assert_eq!(cluster.rows(&["reassign", "verify", &file])[0]["status"], "in progress");
    let previewed = cluster.lines(&["reassign", "cancel", "--all", "--dry-run"]);
    assert_eq!(previewed, ["would be cancelled: reassignment of orders [0]"]);
    cluster.lines(&["reassign", "cancel", "orders"]);
    assert!(cluster.rows(&["reassign", "list"]).is_empty());
    assert!(cluster.fails(1, &["reassign", "verify", &file]).contains("has replicas 1,2"));
}

#[test]
fn leaders_are_elected() {
    let cluster = default();
    let control = |tail| {
        cluster._cluster.control(|control| control.kill_broker(BrokerId(1), tail));
        cluster._cluster.control(|control| control.restart_broker(BrokerId(1)));
    };
    control(Tail::Kept);
    let previewed = cluster.lines(&["elect-leaders", "--all", "--dry-run"]);
    assert_eq!(previewed, ["would be elected: leader of orders [0]"]);
    let rows = cluster.rows(&["elect-leaders", "orders"]);
    let statuses: Vec<_> = rows.iter().map(|row| row["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["elected", "not needed"]);
    assert!(cluster.rows(&["elect-leaders", "--all"]).is_empty());
    assert!(cluster.fails(1, &["elect-leaders", "orders:9"]).contains("orders [9]"));
    assert_eq!(cluster.run(&["elect-leaders"]).code, 2);
}

#[test]
fn log_dirs_are_described_and_replicas_are_moved() {
    let cluster = Started::new(ClusterOptions { log_dirs: 2, ..ClusterOptions::default() });
    let dirs = cluster.rows(&["log-dirs", "describe"]);
    assert_eq!((dirs.len(), &dirs[0]["replicas"]), (6, &json!(1)));
    let path = dirs[1]["log_dir"].as_str().unwrap();
    let to = ["log-dirs", "move", "--broker", "1", "--to", path, "orders"];
    let previewed = cluster.lines(&[&to[..], &["--dry-run"]].concat());
    assert_eq!(previewed, ["would be moved: replica orders [0]"]);
    cluster.lines(&to);
    let rows = cluster.rows(&["log-dirs", "describe", "--broker", "1", "--replicas"]);
    assert_eq!((&rows[0]["log_dir"], &rows[0]["partition"]), (&json!(path), &json!(0)));
    let nowhere = ["log-dirs", "move", "--broker", "1", "--to", "/nowhere", "orders"];
    assert!(cluster.fails(1, &nowhere).contains(path));
}

#[test]
fn apis_of_brokers_are_listed() {
    let cluster = Started::new(ClusterOptions::default());
    let rows = cluster.rows(&["features", "apis", "--broker", "2"]);
    let row = rows.iter().find(|row| row["api"] == "Produce").expect("brokers serve it");
    assert_eq!((&row["broker"], &row["key"], &row["usable"]), (&json!(2), &json!(0), &row["max_version"]));
    assert!(cluster.rows(&["features", "apis"]).len() > rows.len(), "of all brokers");
    assert!(
        cluster.fails(1, &["features", "apis", "--broker", "7"]).contains("broker 7 is not in the cluster")
    );
}

#[test]
fn features_are_listed_and_changed() {
    let cluster = default();
    let level = || cluster.rows(&["features", "list"])[0]["finalized"].clone();
    assert_eq!(level(), 2);
    cluster.lines(&["features", "downgrade", "transaction.version=1", "--dry-run"]);
    assert_eq!(level(), 2);
    assert!(cluster.fails(1, &["features", "upgrade", "transaction.version=1"]).contains("downgrade"));
    cluster.lines(&["features", "downgrade", "transaction.version=1"]);
    assert_eq!(level(), 1);
    assert_eq!(cluster.run(&["features", "upgrade", "transaction.version=-1"]).code, 2);
}

#[test]
fn quorum_is_described_and_brokers_are_unregistered() {
    let cluster = default();
    let status = cluster.rows(&["quorum", "status"]);
    assert_eq!((&status[0]["leader"], &status[0]["observers"]), (&json!(1), &json!("2,3")));
    let rows = cluster.rows(&["quorum", "replication"]);
    assert_eq!((rows.len(), &rows[0]["status"]), (3, &json!("Leader")));
    assert!(cluster.fails(1, &["quorum", "unregister-broker", "3"]).contains("is up"));
    cluster._cluster.control(|control| control.kill_broker(BrokerId(3), Tail::Kept));
    let states = cluster.rows(&["quorum", "brokers"]);
    let states: Vec<_> = states.iter().map(|row| (row["broker"].clone(), row["state"].clone())).collect();
    assert_eq!(states, [(json!(1), json!("up")), (json!(2), json!("up")), (json!(3), json!("fenced"))]);
    let previewed = cluster.lines(&["quorum", "unregister-broker", "3", "--dry-run"]);
    assert!(previewed[0].contains("it is fenced"), "{previewed:?}");
    cluster.lines(&["quorum", "unregister-broker", "3"]);
    assert!(cluster.fails(1, &["quorum", "unregister-broker", "3"]).contains("not currently registered"));
    let remove = ["quorum", "remove-controller", "1", "--directory-id", "8vKJ3sBpT1yMnOeVgZbE0w"];
    assert!(cluster.lines(&[&remove[..], &["--dry-run"]].concat())[0].contains("it votes now"));
    assert!(cluster.fails(1, &remove).contains("RemoveRaftVoter"), "the embedded broker can't do it");
    assert_eq!(cluster.run(&["quorum", "remove-controller", "1", "--directory-id", "x"]).code, 2);
}

#[test]
fn controller_is_administered_without_brokers() {
    let cluster = default();
    cluster._cluster.control(|control| control.set_controller_only(BrokerId(3)));
    let (brokers, controller) = cluster.servers.rsplit_once(',').unwrap();
    let status = ottla(&["quorum", "--bootstrap-controller", controller, "status", "--json"]);
    assert_eq!(status.code, 0, "{}", status.err);
    let rows: Vec<Value> = serde_json::from_str(&status.out).unwrap();
    assert_eq!(rows[0]["leader"], json!(3));
    let wrong = ottla(&["quorum", "--bootstrap-controller", brokers, "status"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("set `bootstrap.servers`"), "{}", wrong.err);
    let both = ottla(&["quorum", "-b", brokers, "--bootstrap-controller", controller, "status"]);
    assert_eq!(both.code, 2, "{}", both.err);
}

#[test]
fn tokens_are_created_renewed_and_expired() {
    let listener = SaslListener::new(&SaslMechanism::ALL).user("alice", "alice-secret");
    let cluster = Started::new(ClusterOptions { sasl: Some(listener), ..ClusterOptions::default() });
    let folder = Folder::new("tokens");
    let properties = "security.protocol=sasl_plaintext\nsasl.mechanism=PLAIN\nsasl.username=alice\nsasl.password=alice-secret\n";
    let file = folder.file("alice.properties", properties);
    let tokens = |arguments: &[&str], input: &[u8]| {
        let fixed = ["delegation-tokens", "-b", &cluster.servers, "-F", &file];
        let output = ottla_with_input(&[&fixed[..], arguments, &["--json"]].concat(), input);
        assert_eq!(output.code, 0, "{}", output.err);
        serde_json::from_str::<Vec<Value>>(&output.out).unwrap()
    };
    let created = tokens(&["create", "--renewer", "User:bob", "--show-hmac"], b"");
    let hmac = created[0]["hmac"].as_str().unwrap().as_bytes();
    assert_eq!((&created[0]["owner"], &created[0]["renewers"]), (&json!("User:alice"), &json!("User:bob")));
    let listed = tokens(&["list"], b"");
    assert!(listed[0]["hmac"].is_null() && listed[0]["token_id"] == created[0]["token_id"], "{listed:?}");
    assert!(tokens(&["renew", "--hours", "1"], hmac)[0]["expiry_timestamp"].is_i64());
    let previewed = tokens(&["expire", "--dry-run"], hmac);
    assert_eq!(previewed[0]["item"], created[0]["token_id"]);
    tokens(&["expire"], hmac);
    assert!(tokens(&["list"], b"").is_empty());
}

/// Returns what fish shows for the last word of a line.
fn completed(words: &[&str]) -> Vec<String> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ottla"));
    let output = command.env("OTTLA_COMPLETE", "fish").arg("--").arg("ottla").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn shells_complete_commands_topics_and_groups() {
    let cluster = default();
    let consumed = ["consume", "-b", &cluster.servers, "-G", "billing", "-t", "orders", "-q", "-e"];
    assert_eq!(ottla(&consumed).code, 0);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(cluster_free(&["completion", shell]).contains("OTTLA_COMPLETE"), "{shell}");
    }
    assert_eq!(completed(&["elect"]), ["elect-leaders"]);
    assert_eq!(completed(&["topics", "-b", &cluster.servers, "describe", "or"]), ["orders"]);
    assert_eq!(completed(&["groups", "-b", &cluster.servers, "describe", "b"]), ["billing"]);
    let nobody = completed(&["topics", "-b", "127.0.0.1:1", "describe", "or"]);
    assert!(!nobody.contains(&"orders".to_owned()), "{nobody:?}");
}

fn cluster_free(arguments: &[&str]) -> String {
    let output = ottla(arguments);
    assert_eq!(output.code, 0, "{}", output.err);
    output.out
}
