//! `-s` of `ottla produce` and `ottla consume`: what one writes, the other reads.

#![cfg(feature = "schemas")]

#[path = "support/registry.rs"]
mod registry;
mod support;

use registry::Registry;
use support::{Folder, Output, cluster, ottla_with_input};

/// A cluster and the options that name it and its registry, if it has one.
struct Tool {
    servers: String,
    registry: Option<String>,
}

impl Tool {
    fn of(registry: &Registry) -> Tool {
        let property = |name| registry.property(name).to_owned();
        Tool { servers: property("bootstrap.servers"), registry: Some(property("schema.registry.url")) }
    }

    fn run(&self, command: &str, arguments: &[&str], input: &str) -> Output {
        let mut all = vec![command, "-b", &self.servers];
        if let Some(url) = &self.registry {
            all.extend(["--schema-registry", url]);
        }
        all.extend(arguments);
        ottla_with_input(&all, input.as_bytes())
    }

    fn produce(&self, topic: &str, arguments: &[&str], input: &str) {
        let output = self.run("produce", &[&["-t", topic, "-p", "0"], arguments].concat(), input);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
    }

    /// Produces what is wrong; returns the error.
    fn refused(&self, topic: &str, arguments: &[&str], input: &str) -> String {
        let output = self.run("produce", &[&["-t", topic], arguments].concat(), input);
        assert_eq!(output.code, 1, "{arguments:?}: {}", output.err);
        output.err
    }

    fn consume(&self, topic: &str, arguments: &[&str]) -> String {
        let all = [&["-t", topic, "-o", "beginning", "-e", "-q"], arguments].concat();
        let output = self.run("consume", &all, "");
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.err);
        output.out
    }

    /// Copies a topic by `consume -J -s`, a pipe and `produce -J -s`, and compares keys, values and headers.
    fn round_trip(&self, topic: &str, serde: &str) {
        let lines = self.consume(topic, &["-J", "-s", serde]);
        assert!(lines.contains("payload") && !lines.contains("_error"), "{serde}: {lines}");
        let copy = format!("{topic}-copy");
        self.produce(&copy, &["-J", "-s", serde], &lines);
        let bytes = ["-f", "%o %{time} %{key:hex} %{value:hex} %h\\n"];
        assert_eq!(self.consume(&copy, &bytes), self.consume(topic, &bytes), "{serde}");
        assert_eq!(self.consume(&copy, &["-J", "-s", serde]).replace(&copy, topic), lines, "{serde}");
    }
}

const ORDER: &str = r#"{"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"},
    {"name": "note", "type": ["null", "string"], "default": null}, {"name": "sum", "type": "double", "default": 0.0}]}"#;
const ORDER_PROTO: &str =
    "syntax = \"proto3\"; package shop; message Other {} message Order { int64 id = 1; string note = 2; }";
const ORDER_JSON: &str =
    r#"{"title": "shop.Order", "type": "object", "properties": {"id": {"type": "integer"}}}"#;

#[test]
fn all_formats_of_the_registry_are_copied_through_a_pipe() {
    let (folder, registry) = (Folder::new("serde-copy"), Registry::start(&[]));
    let tool = Tool::of(&registry);
    for (topic, serde, file, text, values) in [
        (
            "avro",
            "avro",
            "order.avsc",
            ORDER,
            "{\"id\": 7, \"note\": \"a\", \"sum\": 0.30000000000000004}\n{\"id\": -8}\n",
        ),
        ("protobuf", "protobuf#Order", "order.proto", ORDER_PROTO, "{\"id\": \"7\", \"note\": \"ä\"}\n{}\n"),
        ("json", "jsonschema", "order.json", ORDER_JSON, "{\"id\": 7, \"more\": [1.5, null]}\n{}\n"),
    ] {
        let file = folder.file(file, text);
        let serde = format!("key=string,value={serde}");
        tool.produce(topic, &["-s", &serde, "--value-schema", &file, "-k", "k", "-H", "source=test"], values);
        // The copy has another subject, with the same schema.
        let subject = format!("{topic}-copy-value");
        assert_eq!(registry.schema(&["register", &subject, &file], "").code, 0);
        tool.round_trip(topic, &serde);
    }
    assert_eq!(
        tool.consume("avro", &["-c", "1", "-f", "%{value:hex}\n"]),
        "00000000010e020261343333333333d33f\n"
    );
    assert_eq!(
        tool.consume("protobuf", &["-f", "%{value:hex}\n"]),
        "0000000002020208071202c3a4\n00000000020202\n"
    );
    let subjects = registry.schema(&["list", "-J"], "").out;
    assert!(subjects.contains("\"avro-value\"") && !subjects.contains("-key\""), "{subjects}");
}

#[test]
fn wrong_value_is_named_by_line_and_field_and_ends_the_input() {
    let (folder, registry) = (Folder::new("serde-wrong"), Registry::start(&[]));
    let tool = Tool::of(&registry);
    let file = folder.file("order.avsc", ORDER);
    let lines = folder.file("lines.txt", "{\"id\": 1}\n{\"id\": \"x\"}\n{\"id\": 3}\n");
    let serde = ["-s", "value=avro", "--value-schema", &file];
    let error = tool.refused("orders", &[&serde[..], &["-l", &lines]].concat(), "");
    let wanted = format!(
        "message 2 ({lines}, line 2): the value: the value does not fit its schema: id: \"x\" is not a long"
    );
    assert!(error.contains(&wanted), "{error}");
    assert_eq!(tool.consume("orders", &["-s", "value=avro"]), "{\"id\":1,\"note\":null,\"sum\":0.0}\n");
    for (input, wanted) in [
        ("{\"id\": 1", "message 1 (line 1): the value: it is not JSON: EOF"),
        (
            "{\"id\": 1}\n{}\n",
            "message 2 (line 2): the value: the value does not fit its schema: id: the field is missing",
        ),
        ("{\"id\": 1, \"di\": 2}\n", "di: shop.Order has no such field"),
        ("text\n", "a text needs quotes"),
    ] {
        let error = tool.refused("orders", &serde, input);
        assert!(error.contains(wanted), "{input}: {error}");
    }
    let error = tool.refused("orders", &["-J", "-s", "value=avro"], "\n{\"payload\": {\"id\": true}}\n");
    assert!(
        error.contains("message 1 (line 2): the value") && error.contains("id: true is not a long"),
        "{error}"
    );
    let error = tool.refused("orders", &["-s", "value=protobuf"], "{}\n");
    assert!(error.contains("it is one of AVRO, and PROTOBUF is expected"), "{error}");
    let error = tool.refused("none", &["-s", "value=avro"], "{}\n");
    assert!(error.contains("none-value") && error.contains("--value-schema FILE names a schema"), "{error}");
    let json = folder.file("order.json", ORDER_JSON);
    let error = tool.refused("j", &["-s", "value=jsonschema", "--value-schema", &json], "{\"id\": \"x\"}\n");
    assert!(error.contains("id: \"x\" is not of type \"integer\""), "{error}");
    let proto = folder.file("order.proto", ORDER_PROTO);
    let error = tool.refused("p", &["-s", "value=protobuf#Order", "--value-schema", &proto], "{\"di\": 1}\n");
    assert!(error.contains("line 1") && error.contains("'di'"), "{error}");
}

#[test]
fn serializer_properties_choose_subject_schema_and_framing() {
    let (folder, registry) = (Folder::new("serde-properties"), Registry::start(&[]));
    let tool = Tool::of(&registry);
    let file = folder.file("order.avsc", ORDER);
    let with = |more: &[&str]| -> Vec<String> {
        let all = [&["-s", "value=avro", "--value-schema", &file], more].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let subjects = || registry.schema(&["list", "-J"], "").out;
    let produce = |topic: &str, options: &[&str]| {
        let all = with(options);
        tool.produce(topic, &all.iter().map(String::as_str).collect::<Vec<_>>(), "{\"id\": 7}\n");
    };
    let error = tool.refused(
        "a",
        &["-s", "value=avro", "--value-schema", &file, "-P", "auto.register.schemas=false"],
        "{\"id\": 7}\n",
    );
    assert!(error.contains("code 404"), "{error}");
    assert_eq!(subjects(), "[]\n");
    produce(
        "a",
        &["-P", "value.subject.name.strategy=io.confluent.kafka.serializers.subject.RecordNameStrategy"],
    );
    produce("b", &["-P", "subject.name.strategy=topic-record"]);
    assert!(
        subjects().contains("\"shop.Order\"") && subjects().contains("\"b-shop.Order\""),
        "{}",
        subjects()
    );
    tool.produce("c", &["-s", "value=avro", "-P", "value.use.schema.id=1"], "{\"id\": 7}\n");
    produce("d", &["-P", "schema.id.serializer=header"]);
    let lines = tool.consume("d", &["-J", "-s", "value=avro"]);
    assert!(lines.contains("__value_schema_id") && lines.contains("\"id\":7"), "{lines}");
    assert_eq!(tool.consume("d", &["-f", "%{value:hex}\\n"]), "0e000000000000000000\n");
    // The ID before the data replaces that of the header.
    produce("e", &[]);
    tool.produce("e", &["-J", "-s", "value=avro"], &lines);
    assert!(!tool.consume("e", &["-J"]).contains("__value_schema_id"));
    assert_eq!(tool.consume("e", &["-s", "value=avro"]).lines().count(), 2);
    for (arguments, error) in [
        (
            &["-s", "value=avro", "-P", "use.schema.id=x"][..],
            "use.schema.id: \"x\" is not the ID of a schema",
        ),
        (&["-s", "value=avro", "-P", "subject.name.strategi=x"], "unknown property"),
        (&["--value-schema", "x.avsc"], "--value-schema needs -s value=avro"),
        (&["-s", "value=avro", "--value-schema", "/no/such.avsc"], "/no/such.avsc"),
        (&["-s", "value=avro#Order"], "avro has no messages"),
    ] {
        let output = tool.run("produce", &[&["-t", "a"], arguments].concat(), "");
        assert!(output.code != 0 && output.err.contains(error), "{arguments:?}: {}", output.err);
    }
    let output = tool.run("consume", &["-t", "a", "-e", "-P", "use.schema.id=1", "-s", "avro"], "");
    assert!(
        output.code == 2 && output.err.contains("-P use.schema.id has an effect on `produce -s` only"),
        "{}",
        output.err
    );
}

#[test]
fn references_generated_values_and_keys_have_schemas() {
    let (folder, registry) = (Folder::new("serde-more"), Registry::start(&[]));
    let tool = Tool::of(&registry);
    let money = folder.file(
        "money.avsc",
        r#"{"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "int"}]}"#,
    );
    assert_eq!(registry.schema(&["register", "money", &money], "").out, "1\n");
    let order = folder.file(
        "order.avsc",
        r#"{"type": "record", "name": "shop.Order", "fields": [{"name": "sum", "type": "shop.Money"}, {"name": "at", "type": "string"}]}"#,
    );
    let key = folder.file("key.avsc", r#""string""#);
    let template = "{\"sum\": {\"cents\": {{number}}}, \"at\": \"{{choice here}}\"}";
    let options =
        ["-s", "avro", "--key-schema", &key, "--value-schema", &order, "--reference", "shop.Money=money:1"];
    let generated = ["--generate", template, "-c", "2", "-k", "\"k{{number}}\"", "-H", "n={{number}}"];
    tool.produce("orders", &[&options[..], &generated].concat(), "");
    assert_eq!(
        tool.consume("orders", &["-s", "avro", "-f", "%k %s %h\\n"]),
        "\"k0\" {\"sum\":{\"cents\":0},\"at\":\"here\"} n=0\n\"k1\" {\"sum\":{\"cents\":1},\"at\":\"here\"} n=1\n"
    );
    // Templates see the JSON, and nulls stay null.
    let from_value = ["-s", "key=avro,value=avro", "-k", "\"{{value.at}}\"", "-Z"];
    tool.produce("orders", &from_value, "{\"sum\": {\"cents\": 5}, \"at\": \"there\"}\n");
    assert!(
        tool.consume("orders", &["-s", "avro", "-K", "="])
            .ends_with("\"there\"={\"sum\":{\"cents\":5},\"at\":\"there\"}\n")
    );
    tool.produce("orders", &["-s", "key=string,value=avro", "-k", "gone", "-Z"], "\n");
    let last = tool.consume("orders", &["-J", "-s", "value=avro"]);
    assert!(
        last.lines().last().unwrap().contains("\"key\":\"gone\"") && last.contains("\"payload\":null"),
        "{last}"
    );
}

#[test]
fn schemas_in_files_need_no_registry() {
    let (folder, cluster) = (Folder::new("serde-local"), cluster());
    let tool = Tool { servers: cluster.bootstrap_servers(), registry: None };
    let avro = folder.file("order.avsc", ORDER);
    let money = folder.file("money.avsc", r#"{"type": "fixed", "name": "shop.Money", "size": 1}"#);
    let sum = folder.file("sum.avsc", r#"{"type": "array", "items": "shop.Money"}"#);
    let json = folder.file("order.json", ORDER_JSON);
    folder.file("part.proto", ORDER_PROTO);
    let proto = folder.file(
        "whole.proto",
        "syntax = \"proto3\"; import \"part.proto\"; message A {} message B { shop.Order order = 1; }",
    );
    let inside = folder.0.display().to_string();
    for (topic, serde, include, input, hex) in [
        (
            "a",
            format!("value=avro:{avro}"),
            &inside,
            "{\"id\": 7, \"note\": \"a\", \"sum\": 0.1}\n",
            "0e0202619a9999999999b93f",
        ),
        ("b", format!("key=string,value=avro:{sum}"), &money, "[\"a\", \"ÿ\"]\n", "0461ff00"),
        ("c", format!("value=jsonschema:{json}"), &inside, "{\"id\": 7}\n", "7b226964223a377d"),
        ("d", format!("value=protobuf:{proto}#B"), &inside, "{\"order\": {\"id\": \"7\"}}\n", "0a020807"),
    ] {
        let options = ["-s", &serde, "-I", include];
        tool.produce(topic, &options, input);
        assert_eq!(tool.consume(topic, &["-f", "%{value:hex}\\n"]).trim(), hex, "{serde}");
        let lines = tool.consume(topic, &[&["-J"], &options[..]].concat());
        tool.produce(topic, &[&["-J"], &options[..]].concat(), &lines);
        assert_eq!(tool.consume(topic, &["-f", "%{value:hex}\\n"]), format!("{hex}\n{hex}\n"), "{serde}");
        let error = tool.refused(topic, &options, "{\"id\": \"x\", \"order\": 1}\n");
        assert!(error.contains("line 1") && error.contains("does not fit its schema"), "{serde}: {error}");
    }
    let filtered =
        ["-s", &format!("value=protobuf:{proto}#B"), "-I", &inside, "--filter", "value.order.id == '7'"];
    assert_eq!(tool.consume("d", &filtered).lines().count(), 2);
    // Bytes that the schema does not describe.
    let broken = tool.consume("a", &["-J", "-s", &format!("value=protobuf:{proto}#B"), "-I", &inside]);
    assert_eq!(broken.matches("payload_error").count(), 2, "{broken}");
    for (serde, error) in [
        ("value=avro:/no/such.avsc".to_owned(), "/no/such.avsc can't be read"),
        (format!("value=protobuf:{proto}#C"), "it has no message C; it has A, B"),
        (format!("value=protobuf:{avro}"), "not a descriptor set"),
        (format!("value=avro:{json}"), "the schema can't be used"),
    ] {
        for command in ["produce", "consume"] {
            let output = tool.run(command, &["-t", "a", "-s", &serde], "");
            assert!(output.code == 2 && output.err.contains(error), "{command} {serde}: {}", output.err);
        }
    }
}

#[test]
fn union_branches_survive_a_copy_with_their_names() {
    let (folder, cluster) = (Folder::new("serde-union"), cluster());
    let tool = Tool { servers: cluster.bootstrap_servers(), registry: None };
    let union = folder.file("union.avsc", r#"{"type": "array", "items": ["null", "string", "bytes"]}"#);
    let serde = format!("value=avro-json:{union}");
    tool.produce("u", &["-s", &serde], "[{\"bytes\": \"a\"}, {\"string\": \"b\"}, null]\n");
    assert_eq!(tool.consume("u", &["-s", &serde]), "[{\"bytes\":\"a\"},{\"string\":\"b\"},null]\n");
    assert_eq!(tool.consume("u", &["-s", &format!("value=avro:{union}")]), "[\"a\",\"b\",null]\n");
    tool.round_trip("u", &serde);
}

#[test]
fn json_and_numbers_are_copied_through_a_pipe() {
    let cluster = cluster();
    let tool = Tool { servers: cluster.bootstrap_servers(), registry: None };
    tool.produce("json", &["-s", "key=>i,value=json", "--key=-5"], "{\"a\":[1,\"x\"]}\n\"text\"\n");
    tool.round_trip("json", "key=>i,value=json");
    assert!(
        tool.refused("json", &["-s", "value=json"], "{\n").contains("line 1): the value: it is not JSON")
    );
    tool.produce("numbers", &["-s", "value=b >H s"], "-1 258 the rest\n");
    assert_eq!(tool.consume("numbers", &["-f", "%{value:hex}\\n"]), "ff01027468652072657374\n");
    tool.round_trip("numbers", "value=b >H s");
    let error = tool.refused("numbers", &["-s", "value=b >H s"], "1 65536 x\n");
    assert!(error.contains("65536 is not an integer from 0 to 65535"), "{error}");
}
