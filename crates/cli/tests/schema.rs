//! `ottla broker --schema-registry` and `ottla schema`.

#[path = "support/registry.rs"]
mod registry;
mod support;

use registry::Registry;
use support::{Folder, call, ottla_with, ottla_with_input};

const ORDER: &str = r#"{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}"#;
const OTHER: &str = r#"{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}"#;

#[test]
fn schemas_are_administered() {
    let registry = Registry::start(&[]);
    let run = |arguments: &[&str], input: &str| {
        let output = registry.schema(arguments, input);
        assert_eq!(output.code, 0, "{}", output.err);
        output.out
    };
    assert_eq!(run(&["register", "orders-value", "-"], ORDER), "1\n");
    assert_eq!(run(&["get", "orders-value"], ""), format!("{ORDER}\n"));
    assert_eq!(run(&["get", "--id", "1"], ""), format!("{ORDER}\n"));
    assert!(run(&["get", "orders-value", "-J"], "").contains("\"version\":1"));
    assert_eq!(
        run(&["list", "-J"], ""),
        "[{\"id\":1,\"subject\":\"orders-value\",\"type\":\"AVRO\",\"version\":1}]\n"
    );
    assert_eq!(run(&["check", "orders-value", "-"], ORDER), "compatible\n");
    let output = registry.schema(&["check", "orders-value", "-"], OTHER);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("not compatible with orders-value: id: the writer's long"), "{}", output.err);
    assert_eq!(run(&["compatibility", "orders-value", "--set", "none"], ""), "NONE\n");
    assert_eq!(run(&["register", "orders-value", "-"], OTHER), "2\n");
    assert_eq!(
        run(&["versions", "orders-value", "-J"], ""),
        "[{\"id\":1,\"version\":1},{\"id\":2,\"version\":2}]\n"
    );
    assert_eq!(run(&["delete", "orders-value", "--version", "1"], ""), "orders-value: deleted 1\n");
    assert_eq!(run(&["delete", "orders-value"], ""), "orders-value: deleted 2\n");
    assert_eq!(run(&["list", "-J"], ""), "[]\n");
    assert_eq!(run(&["mode", "--set", "READONLY"], ""), "READONLY\n");
    let output = registry.schema(&["register", "orders-value", "-"], ORDER);
    assert!(output.err.contains("code 42205"), "{}", output.err);
}

#[test]
fn records_of_the_registry_are_in_its_topic() {
    let registry = Registry::start(&["--brokers", "2"]);
    assert_eq!(registry.schema(&["register", "orders-value", "-"], ORDER).code, 0);
    let servers = registry.property("bootstrap.servers");
    let consumed = ["consume", "-b", servers, "-t", "_schemas", "-o", "beginning", "-e", "-f", "%k %s\\n"];
    let output = call(env!("CARGO_BIN_EXE_ottla"), &consumed, b"");
    assert!(
        output.out.contains("\"keytype\":\"SCHEMA\"") && output.out.contains("\"id\":1"),
        "{}",
        output.out
    );
}

#[test]
fn registry_writes_to_brokers_with_tls_and_sasl() {
    let registry =
        Registry::start(&["--tls-self-signed", "--sasl", "scram-sha-256", "--sasl-user", "alice:secret"]);
    let output = registry.schema(&["register", "orders-value", "-"], ORDER);
    assert_eq!((output.code, output.out.as_str()), (0, "1\n"), "{}", output.err);
}

#[test]
fn registry_that_is_not_there_is_named() {
    let output =
        support::ottla(&["schema", "--registry", "http://127.0.0.1:1", "list", "-P", "max.retries=0"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("no schema registry answered: http://127.0.0.1:1"), "{}", output.err);
    let output = support::ottla(&["schema", "--registry", "ftp://x", "list"]);
    assert_eq!(output.code, 2, "{}", output.err);
}

#[test]
fn consume_decodes_what_the_schema_of_the_registry_says() {
    let registry = Registry::start(&[]);
    let (brokers, url) = (registry.property("bootstrap.servers"), registry.property("schema.registry.url"));
    assert_eq!(registry.schema(&["register", "orders-value", "-"], ORDER).out, "1\n");
    // The zigzag varint of 7 behind the ID of the first schema, and a value that names none.
    let records = b"\x00\x00\x00\x00\x01\x0e\nplain\n";
    let produced = ottla_with_input(&["produce", "-b", brokers, "-t", "orders"], records);
    assert_eq!(produced.code, 0, "{}", produced.err);
    let consume = |options: &[&str]| {
        let mut all =
            vec!["consume", "-b", brokers, "-t", "orders", "-o", "beginning", "-e", "-q", "--registry", url];
        all.extend(options);
        let output = ottla_with_input(&all, b"");
        (output.out, output.err)
    };
    let (lines, _) = consume(&["-s", "value=avro", "-J"]);
    assert!(lines.contains(r#""payload":{"id":7}"#) && lines.contains("payload_error"), "{lines}");
    assert_eq!(consume(&["-s", "value=avro", "--filter", "value.id == 7"]).0, "{\"id\":7}\n");
    let (_, error) = consume(&["-s", "value=avro"]);
    assert!(error.contains("at offset 1: the value can't be decoded"), "{error}");
    let (lines, _) = consume(&["-s", "value=protobuf", "-J"]);
    assert!(lines.contains("is one of AVRO: use -s avro"), "{lines}");
}

#[test]
fn profile_names_the_registry_and_protects_it() {
    let (folder, registry) = (Folder::new("registry-profile"), Registry::start(&[]));
    let (brokers, url) = (registry.property("bootstrap.servers"), registry.property("schema.registry.url"));
    let file = folder.0.join("config.toml").display().to_string();
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        ottla_with(&[&[("OTTLA_CONFIG", file.as_str())], variables].concat(), arguments)
    };
    let succeeds = |variables: &[(&str, &str)], arguments: &[&str]| {
        let output = run(variables, arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
        output.out
    };
    let fails = |arguments: &[&str], error: &str| {
        let output = run(&[], arguments);
        assert!(output.code == 2 && output.err.contains(error), "{arguments:?}: {}", output.err);
    };
    fails(&["schema", "list"], "no schema registry is named");
    let schema = folder.file("order.avsc", ORDER);
    succeeds(&[], &["profile", "add", "dev", "-b", brokers, "--registry", url]);
    succeeds(&[], &["schema", "register", "orders-value", &schema]);
    succeeds(
        &[],
        &[
            "profile",
            "add",
            "other",
            "-b",
            "a:1",
            "-r",
            "http://127.0.0.1:1",
            "--registry-property",
            "max.retries=0",
            "--read-only",
        ],
    );
    assert!(succeeds(&[], &["schema", "list"]).contains("orders-value"));
    succeeds(&[], &["profile", "use", "other"]);
    for (variables, arguments) in [
        (&[][..], &["schema", "list", "--profile", "dev"][..]),
        (&[], &["--profile", "dev", "schema", "list"]),
        (&[("OTTLA_PROFILE", "dev"), ("SCHEMA_REGISTRY_URL", "http://127.0.0.1:1")], &["schema", "list"]),
        (&[("SCHEMA_REGISTRY_URL", url)], &["schema", "list"]),
        (&[], &["schema", "list", "--registry", url, "--profile", "other"]),
    ] {
        assert!(succeeds(variables, arguments).contains("orders-value"), "{variables:?} {arguments:?}");
    }
    let output = run(&[], &["schema", "list"]);
    assert!(output.err.contains("no schema registry answered: http://127.0.0.1:1"), "{}", output.err);
    fails(&["schema", "register", "x", &schema], "profile \"other\" is read-only");
    fails(&["schema", "mode", "--set", "READONLY"], "profile \"other\" is read-only");
    let elsewhere = [("SCHEMA_REGISTRY_URL", url)];
    assert_eq!(succeeds(&elsewhere, &["schema", "mode", "--set", "READWRITE"]), "READWRITE\n");
    fails(&["-b", "a:1", "schema", "list"], "have no effect on `schema`");
    // Another registry is not shown the password of a profile that was not named.
    let secret = ["--registry-secret-command", "basic.auth.user.info=exit 1"];
    succeeds(
        &[],
        &[&["profile", "add", "secret", "-b", brokers, "-r", "http://a:b@127.0.0.1:1"], &secret[..]].concat(),
    );
    succeeds(&[], &["profile", "use", "secret"]);
    assert!(run(&[], &["schema", "list"]).err.contains("the command of basic.auth.user.info failed"));
    assert!(succeeds(&[], &["schema", "list", "--registry", url]).contains("orders-value"));
    assert!(succeeds(&[], &["profile", "show", "secret"]).contains("registry = \"http://***@127.0.0.1:1\""));
    // `consume` takes the registry of the cluster's profile.
    assert_eq!(
        ottla_with_input(&["produce", "-b", brokers, "-t", "orders"], b"\x00\x00\x00\x00\x01\x0e\n").code,
        0
    );
    let consume =
        ["consume", "--profile", "dev", "-t", "orders", "-o", "beginning", "-e", "-q", "-s", "value=avro"];
    assert_eq!(succeeds(&[], &consume), "{\"id\":7}\n");
}
