//! Tests of validation, references and changes.

use serde_json::json;

use super::*;
use crate::Fault;

#[test]
fn value_is_validated_with_a_reference() {
    let text = r#"{"title": "Order", "type": "object", "properties": {"customer": {"$ref": "customer.json"}}, "required": ["customer"]}"#;
    let customer = (
        "customer.json".to_owned(),
        r#"{"type": "object", "properties": {"age": {"type": "integer"}}}"#.to_owned(),
    );
    let schema = JsonSchema::parse(text, &[customer]).unwrap();
    assert_eq!(schema.title(), Some("Order"));
    schema.validate(&json!({"customer": {"age": 3}})).unwrap();
    let error = schema.validate(&json!({"customer": {"age": "x"}})).unwrap_err();
    assert_eq!(error.fault(), Fault::Application);
    assert!(error.to_string().contains("customer.age: \"x\" is not of type \"integer\""), "{error}");
    let error = JsonSchema::parse(text, &[]).unwrap_err().to_string();
    assert!(error.contains("customer.json"), "{error}");
}

#[test]
fn broken_deep_and_cyclic_schemas_are_refused() {
    let deep = format!("{}{}", r#"{"items":"#.repeat(5000), "}".repeat(5000));
    let large = format!("\"{}\"", "x".repeat(10 << 20));
    let cyclic = r##"{"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}, "$ref": "#/definitions/a"}"##;
    for text in ["", "<html>", "7", r#"{"type": "nothing"}"#, &deep, &large, cyclic, r##"{"$ref": "#"}"##] {
        let error = JsonSchema::parse(text, &[]).unwrap_err();
        assert_eq!(error.fault(), Fault::Application);
        assert!(error.to_string().len() < 600, "{error}");
    }
}

#[test]
fn recursive_schema_validates() {
    let list =
        r##"{"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false}"##;
    let schema = JsonSchema::parse(list, &[]).unwrap();
    schema.validate(&json!({"next": {"next": {}}})).unwrap();
    assert!(schema.validate(&json!({"next": {"other": 1}})).is_err());
}

#[test]
fn changes_are_judged() {
    let judge = |before: Value, after: Value| {
        let schema = |it: Value| JsonSchema::parse(&it.to_string(), &[]).unwrap();
        schema(after).incompatibilities(&schema(before)).len()
    };
    let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let text = json!({"type": "string"});
    assert_eq!(judge(closed(json!({"a": text})), closed(json!({"a": text, "b": text}))), 0);
    assert_eq!(judge(closed(json!({"a": text, "b": text})), closed(json!({"a": text}))), 1);
    assert_eq!(judge(json!({"type": "integer"}), json!({"type": "number"})), 0);
    assert_eq!(judge(json!({"type": "number"}), json!({"type": "integer"})), 1);
    assert_eq!(judge(json!({"enum": [1, 2]}), json!({"enum": [1]})), 1);
    assert_eq!(judge(json!({"maximum": 5}), json!({"maximum": 4})), 1);
    let required = |list: Value| json!({"type": "object", "properties": {"a": text}, "required": list});
    assert_eq!(judge(required(json!([])), required(json!(["a"]))), 1);
    assert_eq!(judge(required(json!(["a"])), required(json!([]))), 0);
}
