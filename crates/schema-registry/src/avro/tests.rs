//! Tests of schemas, values and resolution.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::Fault;

fn schema(text: &str) -> AvroSchema {
    AvroSchema::parse(text, &[]).unwrap()
}

fn encoded(schema: &AvroSchema, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    schema.encode_json(value, &mut out).unwrap();
    out
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: i64,
    item: String,
    price: f64,
    note: Option<String>,
    tags: Vec<String>,
    state: State,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum State {
    Open,
    Done,
}

const ORDER: &str = r#"{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"}, {"name": "item", "type": "string"}, {"name": "price", "type": "double"},
    {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["Open", "Done"]}}]}"#;

fn order() -> Order {
    Order {
        id: 7,
        item: "tea".to_owned(),
        price: 1.5,
        note: Some("hot".to_owned()),
        tags: vec!["a".to_owned()],
        state: State::Done,
    }
}

#[test]
fn type_and_json_have_the_same_bytes() {
    let schema = schema(ORDER);
    let mut bytes = Vec::new();
    schema.encode(&order(), &mut bytes).unwrap();
    let json = json!({"id": 7, "item": "tea", "price": 1.5, "note": {"string": "hot"}, "tags": ["a"], "state": "Done"});
    assert_eq!(encoded(&schema, &json), bytes);
    let reader = schema.reader(None);
    assert_eq!(reader.decode::<Order>(&bytes).unwrap(), order());
    assert_eq!(reader.decode_json(&bytes, JsonStyle::Tagged).unwrap(), json);
    assert_eq!(reader.decode_json(&bytes, JsonStyle::Plain).unwrap()["note"], "hot");
    assert_eq!(
        reader.decode_json_text(&bytes, JsonStyle::Plain).unwrap(),
        r#"{"id":7,"item":"tea","price":1.5,"note":"hot","tags":["a"],"state":"Done"}"#
    );
    assert_eq!(schema.name(), Some("shop.Order"));
}

#[test]
fn fields_of_a_type_may_have_another_order() {
    #[derive(Serialize)]
    struct Reversed {
        c: i32,
        b: &'static str,
        a: i32,
    }
    let schema = schema(
        r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"},
            {"name": "d", "type": "int", "default": 9}, {"name": "c", "type": "int"}]}"#,
    );
    let mut bytes = Vec::new();
    schema.encode(&Reversed { c: 3, b: "x", a: 1 }, &mut bytes).unwrap();
    assert_eq!(bytes, [2, 2, b'x', 18, 6]);
}

#[test]
fn value_that_does_not_fit_names_its_field() {
    let schema = schema(ORDER);
    let mut out = Vec::new();
    for (value, part) in [
        (json!({"id": "x"}), "id: \"x\" is not a long"),
        (json!({"id": 1, "item": "a", "price": 1, "tags": [1]}), "tags[0]: 1 is not a string"),
        (
            json!({"id": 1, "item": "a", "price": 1, "tags": [], "state": "New"}),
            "symbol of the enum shop.State",
        ),
        (json!({"id": 1, "item": "a"}), "price: the field is missing"),
        (json!(7), "7 is not the record shop.Order"),
    ] {
        let error = schema.encode_json(&value, &mut out).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.fault(), Fault::Application);
    }
    let error = schema.encode(&json!({"id": 1, "x": 2}), &mut out).unwrap_err().to_string();
    assert!(error.contains("x: shop.Order has no such field"), "{error}");
}

#[test]
fn unions_bytes_and_maps_have_avros_json() {
    let schema = schema(
        r#"{"type": "record", "name": "All", "fields": [
            {"name": "u", "type": ["null", "int", "long", "double", "string", "bytes", {"type": "map", "values": "int"}]},
            {"name": "f", "type": {"type": "fixed", "name": "Two", "size": 2}}]}"#,
    );
    for u in [
        json!(null),
        json!({"int": 1}),
        json!({"long": 5_000_000_000_i64}),
        json!({"double": 0.5}),
        json!({"double": "NaN"}),
        json!({"string": "a\"\\\n\u{1}ä"}),
        json!({"bytes": "\u{0}\u{ff}"}),
        json!({"map": {"k": 1}}),
    ] {
        let value = json!({"u": u, "f": "\u{1}\u{80}"});
        let bytes = encoded(&schema, &value);
        assert_eq!(schema.reader(None).decode_json(&bytes, JsonStyle::Tagged).unwrap(), value);
    }
    assert_eq!(
        encoded(&schema, &json!({"u": 1, "f": "ab"})),
        encoded(&schema, &json!({"u": {"int": 1}, "f": "ab"}))
    );
}

#[test]
fn enum_of_a_type_is_a_union() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Event {
        Created { id: i32 },
        Renamed(Renamed),
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Renamed {
        name: String,
    }
    let schema = schema(
        r#"["null", {"type": "record", "name": "a.Created", "fields": [{"name": "id", "type": "int"}]},
            {"type": "record", "name": "a.Renamed", "fields": [{"name": "name", "type": "string"}]}]"#,
    );
    for event in
        [Some(Event::Created { id: 3 }), Some(Event::Renamed(Renamed { name: "x".to_owned() })), None]
    {
        let mut bytes = Vec::new();
        schema.encode(&event, &mut bytes).unwrap();
        assert_eq!(schema.reader(None).decode::<Option<Event>>(&bytes).unwrap(), event);
    }
}

#[test]
fn recursive_type_and_reference_are_compiled() {
    let node =
        r#"{"type": "record", "name": "a.Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}"#;
    let list = r#"{"type": "record", "name": "a.List", "fields": [{"name": "head", "type": "a.Node"}]}"#;
    let list = AvroSchema::parse(list, &[node.to_owned()]).unwrap();
    let value = json!({"head": {"next": {"a.Node": {"next": null}}}});
    let bytes = encoded(&list, &value);
    assert_eq!(bytes, [2, 0]);
    assert_eq!(list.reader(None).decode_json(&bytes, JsonStyle::Tagged).unwrap(), value);
    let error = AvroSchema::parse(r#"{"type": "array", "items": "a.Missing"}"#, &[]).unwrap_err();
    assert_eq!(error.fault(), Fault::Application);
}

#[test]
fn readers_schema_resolves() {
    let writer = schema(
        r#"{"type": "record", "name": "a.R", "fields": [{"name": "a", "type": "int"}, {"name": "gone", "type":
            {"type": "array", "items": "string"}}, {"name": "old", "type": "string"},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}}, {"name": "n", "type": "int"}]}"#,
    );
    let reader = schema(
        r#"{"type": "record", "name": "b.R", "fields": [
            {"name": "added", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
            {"name": "a", "type": "double"}, {"name": "new", "aliases": ["old"], "type": "bytes"},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "Other"], "default": "Other"}},
            {"name": "n", "type": ["null", "long"]}]}"#,
    );
    assert_eq!(reader.incompatibilities(&writer), Vec::<String>::new());
    let bytes = encoded(&writer, &json!({"a": 3, "gone": ["x", "y"], "old": "z", "e": "B", "n": 5}));
    let value = writer.reader(Some(&reader)).decode_json(&bytes, JsonStyle::Tagged).unwrap();
    assert_eq!(value, json!({"added": {"k": 1}, "a": 3.0, "new": "z", "e": "Other", "n": {"long": 5}}));
    assert!(!writer.incompatibilities(&reader).is_empty());
}

#[test]
fn mismatch_is_named() {
    let (int, text) = (schema(r#""int""#), schema(r#""string""#));
    assert_eq!(text.incompatibilities(&int), ["the writer's int is not the reader's string"]);
    let error = int.reader(Some(&text)).decode::<String>(&[2]).unwrap_err().to_string();
    assert!(error.contains("the writer's int is not the reader's string"), "{error}");
    let union = schema(r#"["int", "string"]"#);
    assert!(!int.incompatibilities(&union).is_empty());
    assert_eq!(union.reader(Some(&int)).decode::<i32>(&[0, 4]).unwrap(), 2);
    assert!(union.reader(Some(&int)).decode::<i32>(&[2, 2, b'x']).is_err());
}

#[test]
fn broken_bytes_give_errors_of_the_record() {
    let schema = schema(ORDER);
    let mut bytes = Vec::new();
    schema.encode(&order(), &mut bytes).unwrap();
    let reader = schema.reader(None);
    for end in 0..bytes.len() {
        let error = reader.decode::<Order>(&bytes[..end]).unwrap_err();
        assert_eq!(error.fault(), Fault::Record, "{error}");
        assert!(reader.decode_json(&bytes[..end], JsonStyle::Tagged).is_err());
    }
    bytes.push(0);
    let error = reader.decode::<Order>(&bytes).unwrap_err().to_string();
    assert!(error.contains("1 bytes follow the value"), "{error}");
}

#[test]
fn endless_arrays_and_deep_values_are_refused() {
    let nulls = schema(r#"{"type": "array", "items": "null"}"#);
    let mut bytes = Vec::new();
    bytes::write_long(&mut bytes, i64::MAX);
    let error = nulls.reader(None).decode::<Vec<()>>(&bytes).unwrap_err().to_string();
    assert!(error.contains("more than the record's bytes"), "{error}");
    let deep = schema(r#"{"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}"#);
    let error = deep.reader(None).decode_json(&[2; 100_000], JsonStyle::Plain).unwrap_err().to_string();
    assert!(error.contains("nested more than"), "{error}");
    let mut huge = Vec::new();
    bytes::write_long(&mut huge, 1 << 40);
    assert!(schema(r#""bytes""#).reader(None).decode_json(&huge, JsonStyle::Plain).is_err());
}

#[test]
fn broken_large_and_deep_schemas_are_refused() {
    let deep = format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(5000), "}".repeat(5000));
    let large = format!("\"{}\"", "x".repeat(10 << 20));
    for text in ["", "{", "<html>", r#"{"type": "record"}"#, &deep, &large] {
        let error = AvroSchema::parse(text, &[]).unwrap_err();
        assert_eq!(error.fault(), Fault::Application);
        assert!(error.to_string().len() < 600, "{error}");
    }
}
