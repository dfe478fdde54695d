//! The commands of `ottla help`, one after the other on an embedded cluster.

#![cfg(feature = "schemas")]

mod support;

use std::path::Path;
use std::process::Command;

use ottla_schema_registry::server::{EmbeddedRegistry, MemoryStorage};
use support::{Folder, cluster, ottla, ottla_with_input};

/// What the recipes expect: topics with messages, and a group.
fn prepare(servers: &str, folder: &Folder) {
    for (topic, partitions) in
        [("orders", "3"), ("payments", "1"), ("numbers", "1"), ("orders-restored", "3")]
    {
        let created = ottla(&["topics", "create", "-b", servers, topic, "--partitions", partitions]);
        assert_eq!(created.code, 0, "{}", created.err);
    }
    let produce = |more: &[&str], input: &[u8]| {
        let produced = ottla_with_input(&[&["produce", "-b", servers], more].concat(), input);
        assert_eq!(produced.code, 0, "{}", produced.err);
    };
    produce(&["-t", "orders", "-K", ":"], b"customer-1:{\"total\": 150}\ncustomer-2:{\"total\": 50}\n");
    produce(&["-t", "payments"], b"paid\n");
    produce(&["-t", "numbers"], b"\0\0\0\x07\n");
    folder.file("lines.txt", "{\"total\": 1}\n{\"total\": 2}\n");
    let avro = r#"{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "int"}]}"#;
    folder.file("order.avsc", avro);
    folder.file("order.proto", "syntax = \"proto3\"; message Order { int32 total = 1; }");
    let read = ["consume", "-b", servers, "-q", "-G", "billing", "-t", "orders", "-o", "beginning", "-e"];
    assert_eq!(ottla(&read).code, 0);
}

#[cfg(unix)]
#[test]
fn every_recipe_runs_on_an_embedded_cluster() {
    let (folder, cluster) = (Folder::new("recipes"), cluster());
    let servers = cluster.bootstrap_servers();
    prepare(&servers, &folder);
    let registry = EmbeddedRegistry::start("127.0.0.1:0", MemoryStorage::default()).unwrap();
    let listed = ottla(&["help", "-J"]);
    let recipes: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let recipes = recipes.as_array().unwrap();
    assert!(recipes.len() >= 30, "{}", recipes.len());
    for recipe in recipes {
        let task = recipe["task"].as_str().unwrap();
        for command in recipe["commands"].as_array().unwrap() {
            let command = command.as_str().unwrap();
            // A cluster that runs until it is stopped is what the other recipes use.
            if command.starts_with("ottla broker") {
                continue;
            }
            let (code, text) = run(&located(command, &servers, &registry.url()), &folder);
            assert_eq!(code, Some(0), "{task}: {command}\n{text}");
        }
    }
}

/// Names the cluster and the registry of the test.
fn located(command: &str, servers: &str, registry: &str) -> String {
    command.replace("localhost:9092", servers).replace("http://localhost:8081", registry)
}

/// Runs a line in a shell whose `ottla` is the binary.
fn run(line: &str, folder: &Folder) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_ottla"));
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(&folder.0)
        .env("PATH", path)
        .env("OTTLA_CONFIG", folder.0.join("config.toml"))
        .env_remove("OTTLA_BOOTSTRAP")
        .env_remove("OTTLA_PROFILE")
        .env_remove("SCHEMA_REGISTRY_URL")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn help_finds_tasks_and_commands() {
    let all = ottla(&["help"]);
    assert_eq!(all.code, 0);
    assert!(all.out.contains("Read the last messages\n  ottla consume "), "{}", all.out);
    let copy = ottla(&["help", "copy", "topic"]);
    assert!(copy.out.contains("ottla copy -b localhost:9092 orders"), "{}", copy.out);
    assert!(!copy.out.contains("List topics"), "{}", copy.out);
    let command = ottla(&["help", "topics", "create"]);
    assert!(command.code == 0 && command.out.contains("--replication-factor"), "{}", command.out);
    let nothing = ottla(&["help", "xyzzy"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.err.contains("no task or command"), "{}", nothing.err);
}
