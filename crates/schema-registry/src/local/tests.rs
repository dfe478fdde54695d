//! Tests of schemas in files.

use std::fs;

use serde_json::json;

use super::*;
use crate::Fault;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ottla-local-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("common")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a value and reads it again.
fn round(schema: &LocalSchema, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    schema.encode_json(value, &mut bytes).unwrap();
    let text = schema.decode_json_text(&bytes, JsonStyle::Plain).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *value);
    bytes
}

#[test]
fn avro_file_uses_the_types_of_others() {
    let folder = Folder::new("avro");
    let common = folder.file("money.avsc", r#"{"type": "fixed", "name": "shop.Money", "size": 2}"#);
    let order = folder.file(
        "order.avsc",
        r#"{"type": "record", "name": "shop.Order", "fields": [{"name": "sum", "type": "shop.Money"}]}"#,
    );
    let schema = LocalSchema::open(SchemaType::Avro, &order, &[common], None).unwrap();
    assert_eq!(round(&schema, &json!({"sum": "\u{1}\u{ff}"})), [1, 255]);
    let error = LocalSchema::open(SchemaType::Avro, &order, &[], None).unwrap_err();
    assert_eq!(error.fault(), Fault::Application, "{error}");
    let missing = LocalSchema::open(SchemaType::Avro, &folder.0.join("none.avsc"), &[], None).unwrap_err();
    assert!(missing.to_string().contains("none.avsc can't be read"), "{missing}");
}

#[test]
fn proto_file_imports_from_folders_and_sets_have_all() {
    let folder = Folder::new("proto");
    folder.file("common/name.proto", "syntax = \"proto3\"; package c; message Name { string text = 1; }");
    let text = "syntax = \"proto3\"; package p; import \"name.proto\"; import \"google/protobuf/timestamp.proto\"; \
                message A {} message B { c.Name name = 1; }";
    let order = folder.file("order.proto", text);
    let include = [folder.0.join("common")];
    let schema = LocalSchema::open(SchemaType::Protobuf, &order, &include, Some("p.B")).unwrap();
    let value = json!({"name": {"text": "x"}});
    assert_eq!(round(&schema, &value), [10, 3, 10, 1, b'x']);
    let missing = LocalSchema::open(SchemaType::Protobuf, &order, &[], None).unwrap_err().to_string();
    assert!(missing.contains("name.proto"), "{missing}");
    let other = LocalSchema::open(SchemaType::Protobuf, &order, &include, Some("C")).unwrap_err().to_string();
    assert!(other.contains("it has no message C; it has p.A, p.B"), "{other}");
    // As protoc --include_imports --descriptor_set_out writes it.
    let LocalSchema::Protobuf(message) = schema else { unreachable!() };
    let set = folder.file("order.desc", message.parent_pool().encode_to_vec());
    let schema = LocalSchema::open(SchemaType::Protobuf, &set, &[], Some("B")).unwrap();
    assert_eq!(round(&schema, &value), [10, 3, 10, 1, b'x']);
    let broken = folder.file("broken.desc", b"\xff\xff");
    let error = LocalSchema::open(SchemaType::Protobuf, &broken, &[], None).unwrap_err().to_string();
    assert!(error.contains("not a descriptor set"), "{error}");
}

#[test]
fn imports_do_not_leave_their_folders() {
    let folder = Folder::new("outside");
    folder.file("secret.proto", "syntax = \"proto3\"; message S {}");
    let text = "syntax = \"proto3\"; import \"../secret.proto\"; message A {}";
    let path = folder.file("common/a.proto", text);
    // protox refuses the first name before our resolver does.
    LocalSchema::open(SchemaType::Protobuf, &path, std::slice::from_ref(&folder.0), None).unwrap_err();
    let secret = folder.0.join("secret.proto");
    let text = format!("syntax = \"proto3\"; import \"{}\"; message A {{}}", secret.display());
    let path = folder.file("common/b.proto", text);
    LocalSchema::open(SchemaType::Protobuf, &path, &[], None).unwrap_err();
}

#[test]
fn json_schema_refers_to_files_beside_it() {
    let folder = Folder::new("json");
    folder.file("common/id.json", r#"{"type": "integer"}"#);
    folder.file("item.json", r#"{"type": "object", "properties": {"id": {"$ref": "id.json"}}}"#);
    let order = folder.file("order.json", r#"{"type": "array", "items": {"$ref": "item.json"}}"#);
    let schema = LocalSchema::open(SchemaType::Json, &order, &[folder.0.join("common")], None).unwrap();
    assert_eq!(round(&schema, &json!([{"id": 1}])), br#"[{"id":1}]"#);
    let mut out = Vec::new();
    let error = schema.encode_json(&json!([{"id": "x"}]), &mut out).unwrap_err();
    assert!(error.to_string().contains("0.id: \"x\" is not of type \"integer\""), "{error}");
    assert!(schema.decode_json_text(br#"[{"id":"x"}]"#, JsonStyle::Plain).is_err());
    let missing = LocalSchema::open(SchemaType::Json, &order, &[], None).unwrap_err().to_string();
    assert!(missing.contains("id.json"), "{missing}");
}
