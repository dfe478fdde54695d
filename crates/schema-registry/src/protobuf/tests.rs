//! Tests of files, messages and changes.

use serde_json::json;

use super::*;
use crate::Fault;

const FILE: &str = r#"syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "customer.proto";

message Other { int32 a = 1; }
message Order {
  map<string, int32> counts = 1;
  message Line { string item = 1; }
  repeated Line lines = 2;
  google.protobuf.Timestamp at = 3;
  shop.Customer customer = 4;
  oneof kind { string name = 5; int64 number = 6; }
}"#;

const CUSTOMER: &str = "syntax = \"proto3\"; package shop; message Customer { string name = 1; }";

fn parse(text: &str) -> ProtobufSchema {
    ProtobufSchema::parse(text, &[("customer.proto".to_owned(), CUSTOMER.to_owned())]).unwrap()
}

#[test]
fn json_becomes_a_message_and_comes_back() {
    let schema = parse(FILE);
    let order = schema.message(Some("Order")).unwrap();
    let value = json!({"counts": {"a": 1}, "lines": [{"item": "tea"}], "at": "2026-01-02T03:04:05Z",
        "customer": {"name": "Ada"}, "number": "7"});
    let bytes = ProtobufSchema::encode_json(&order, &value).unwrap();
    assert_eq!(ProtobufSchema::decode_json(&order, &bytes).unwrap(), value);
    let error = ProtobufSchema::encode_json(&order, &json!({"lines": 3})).unwrap_err();
    assert_eq!(error.fault(), Fault::Application);
    assert!(ProtobufSchema::encode_json(&order, &json!({"unknown": 3})).is_err());
    assert_eq!(ProtobufSchema::decode_json(&order, &[0xff, 0xff]).unwrap_err().fault(), Fault::Record);
}

#[test]
fn indexes_name_nested_messages() {
    let schema = parse(FILE);
    for (name, indexes) in [("Other", vec![0]), ("shop.Order", vec![1]), ("Order.Line", vec![1, 1])] {
        let message = schema.message(Some(name)).unwrap();
        assert_eq!(ProtobufSchema::indexes(&message), MessageIndexes(indexes.clone()), "{name}");
        assert_eq!(schema.message_at(&MessageIndexes(indexes)).unwrap(), message);
    }
    assert_eq!(schema.message_at(&MessageIndexes(vec![9])).unwrap_err().fault(), Fault::Record);
    let error = schema.message(Some("Missing")).unwrap_err().to_string();
    assert!(error.contains("it has shop.Other, shop.Order"), "{error}");
}

#[test]
fn descriptor_in_base64_is_a_file() {
    let text = parse(FILE).to_base64();
    assert_eq!(parse(&text).message(Some("Order")).unwrap().fields().count(), 6);
}

#[test]
fn broken_files_are_refused() {
    let deep = format!("syntax = \"proto3\";{}{}", "message A {".repeat(20_000), "}".repeat(20_000));
    let large = format!("// {}", "x".repeat(10 << 20));
    let missing = "syntax = \"proto3\"; import \"missing.proto\";";
    let cyclic = "syntax = \"proto3\"; import \"schema.of.this.record.proto\";";
    for text in ["<html>", "message {", &deep, &large, missing, cyclic] {
        let error = ProtobufSchema::parse(text, &[]).unwrap_err();
        assert_eq!(error.fault(), Fault::Application);
        assert!(error.to_string().len() < 600, "{error}");
    }
    let imports = |name: &str| format!("syntax = \"proto3\"; import \"{name}\";");
    let files = [("a".to_owned(), imports("b")), ("b".to_owned(), imports("a"))];
    assert!(ProtobufSchema::parse(&imports("a"), &files).is_err());
}

#[test]
fn changes_are_judged() {
    let before =
        "syntax = \"proto3\"; package p; message M { int32 a = 1; string b = 2; oneof o { int32 c = 3; } }";
    let judge = |after: &str| {
        let after = format!("syntax = \"proto3\"; package p; {after}");
        let (after, before) = (ProtobufSchema::parse(&after, &[]), ProtobufSchema::parse(before, &[]));
        after.unwrap().incompatibilities(&before.unwrap())
    };
    let none = Vec::<String>::new();
    assert_eq!(judge("message M { int64 a = 1; bytes b = 2; oneof o { int32 c = 3; } double d = 4; }"), none);
    assert_eq!(judge("message M { oneof o { int32 c = 3; } }"), none);
    assert_eq!(judge("message N { }"), ["the message p.M is gone"]);
    assert_eq!(judge("message M { string a = 1; oneof o { int32 c = 3; } }").len(), 1);
    assert_eq!(judge("message M { int32 a = 1; }"), ["the field p.M.c of a oneof is gone"]);
}
