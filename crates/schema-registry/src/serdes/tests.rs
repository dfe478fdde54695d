//! Tests of serializers and deserializers with the embedded registry.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::{
    Fault, Part, Reference, Schema, SubjectNameStrategy,
    avro::JsonStyle,
    client::{Client, Config, Deleted},
    server::{EmbeddedRegistry, MemoryStorage},
};

fn start() -> (EmbeddedRegistry, Client) {
    let registry = EmbeddedRegistry::start("127.0.0.1:0", MemoryStorage::default()).unwrap();
    let client = Client::new(Config::new(&registry.url())).unwrap();
    (registry, client)
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: i64,
    note: Option<String>,
}

fn schema() -> Schema {
    Schema::avro(
        r#"{"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": null}]}"#,
    )
}

#[test]
fn avro_record_comes_back_with_few_requests() {
    let (registry, client) = start();
    let serializer = AvroSerializer::new(&client, Some(schema()), SerializerConfig::value()).unwrap();
    let deserializer = AvroDeserializer::new(&client, None).unwrap();
    let order = Order { id: 7, note: Some("a".to_owned()) };
    for _ in 0..10 {
        let framed = serializer.serialize("orders", &order).unwrap();
        assert_eq!(framed.payload, [0, 0, 0, 0, 1, 14, 2, 2, b'a']);
        assert_eq!(deserializer.deserialize::<Order>(None, &framed.payload).unwrap(), order);
    }
    assert_eq!(registry.requests(), 1);
    let value =
        deserializer.deserialize_json(None, &[0, 0, 0, 0, 1, 14, 2, 2, b'a'], JsonStyle::Tagged).unwrap();
    assert_eq!(value, json!({"id": 7, "note": {"string": "a"}}));
    assert_eq!(serializer.serialize_json("orders", &value).unwrap().payload, [0, 0, 0, 0, 1, 14, 2, 2, b'a']);
    assert_eq!(client.subjects("", Deleted::Without).unwrap(), ["orders-value"]);
}

#[test]
fn guid_in_a_header_names_the_schema() {
    let (_registry, client) = start();
    let config = SerializerConfig::key().with_framing(Framing::Header);
    let framed = AvroSerializer::new(&client, Some(schema()), config).unwrap();
    let framed = framed.serialize("orders", &Order { id: 7, note: None }).unwrap();
    let (name, header) = framed.header.clone().unwrap();
    assert_eq!(
        (name, header.len(), header[0], framed.payload.as_slice()),
        ("__key_schema_id", 17, 1, &[14, 0][..])
    );
    let deserializer = AvroDeserializer::new(&client, None).unwrap();
    let order: Order = deserializer.deserialize(Some(&header), &framed.payload).unwrap();
    assert_eq!(order.id, 7);
}

#[test]
fn nothing_is_registered_unless_it_may_be() {
    let (_registry, client) = start();
    let strict = SerializerConfig::value().without_registration();
    let serializer = AvroSerializer::new(&client, Some(schema()), strict.clone()).unwrap();
    let order = Order { id: 1, note: None };
    assert!(serializer.serialize("orders", &order).unwrap_err().is_not_found());
    client.register("orders-value", &schema(), false).unwrap();
    serializer.serialize("orders", &order).unwrap();
    let latest = SerializerConfig::value().with_latest_version();
    let latest = AvroSerializer::new(&client, None, latest).unwrap();
    assert_eq!(latest.serialize("orders", &order).unwrap().payload[..5], [0, 0, 0, 0, 1]);
    let by_id = AvroSerializer::new(&client, None, SerializerConfig::value().with_schema_id(1)).unwrap();
    by_id.serialize("anything", &order).unwrap();
    let contradiction =
        SerializerConfig { auto_register: true, ..SerializerConfig::value().with_schema_id(1) };
    assert_eq!(AvroSerializer::new(&client, None, contradiction).unwrap_err().fault(), Fault::Application);
    assert!(AvroSerializer::new(&client, None, strict).is_err());
}

#[test]
fn strategy_names_the_subject() {
    let (_registry, client) = start();
    for strategy in [SubjectNameStrategy::Record, SubjectNameStrategy::TopicRecord] {
        let config = SerializerConfig::value().with_strategy(strategy);
        let serializer = AvroSerializer::new(&client, Some(schema()), config).unwrap();
        serializer.serialize("orders", &Order { id: 1, note: None }).unwrap();
    }
    assert_eq!(client.subjects("", Deleted::Without).unwrap(), ["orders-shop.Order", "shop.Order"]);
}

#[test]
fn readers_schema_gives_the_form() {
    let (_registry, client) = start();
    let serializer = AvroSerializer::new(&client, Some(schema()), SerializerConfig::value()).unwrap();
    let framed = serializer.serialize("orders", &Order { id: 7, note: None }).unwrap();
    let reader = Schema::avro(
        r#"{"type": "record", "name": "Order", "fields": [{"name": "number", "aliases": ["id"], "type": "double"}]}"#,
    );
    let deserializer = AvroDeserializer::new(&client, Some(&reader)).unwrap();
    let value = deserializer.deserialize_json(None, &framed.payload, JsonStyle::Plain).unwrap();
    assert_eq!(value, json!({"number": 7.0}));
}

#[test]
fn protobuf_message_has_its_indexes_and_references() {
    let (_registry, client) = start();
    let common = Schema::protobuf("syntax = \"proto3\"; package c; message Name { string text = 1; }");
    client.register("common.proto", &common, false).unwrap();
    let schema = Schema::protobuf(
        "syntax = \"proto3\"; package p; import \"common.proto\"; message A {} message B { message C { c.Name name = 1; } }",
    );
    let schema = schema.with_reference(Reference::new("common.proto", "common.proto", 1));
    let serializer =
        ProtobufSerializer::new(&client, Some(schema), Some("B.C"), SerializerConfig::value()).unwrap();
    let value = json!({"name": {"text": "x"}});
    let framed = serializer.serialize_json("t", &value).unwrap();
    assert_eq!(framed.payload, [0, 0, 0, 0, 2, 4, 2, 0, 10, 3, 10, 1, b'x']);
    let deserializer = ProtobufDeserializer::new(&client);
    assert_eq!(deserializer.deserialize_json(None, &framed.payload).unwrap(), value);
    for broken in [&framed.payload[..5], &framed.payload[..6], &[0, 0, 0, 0, 2, 2, 18]] {
        let error = deserializer.deserialize_json(None, broken).unwrap_err();
        assert_eq!(error.fault(), Fault::Record, "{error}");
    }
}

#[test]
fn json_value_is_checked_in_both_directions() {
    let (_registry, client) = start();
    let schema =
        Schema::json(r#"{"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}"#);
    let serializer = JsonSerializer::new(&client, Some(schema), SerializerConfig::value()).unwrap();
    let framed = serializer.serialize("orders", &json!({"id": 1})).unwrap();
    assert_eq!(framed.payload, b"\0\0\0\0\x01{\"id\":1}");
    assert!(serializer.serialize("orders", &json!({"id": "x"})).is_err());
    let deserializer = JsonDeserializer::new(&client);
    assert_eq!(
        deserializer.deserialize::<serde_json::Value>(None, &framed.payload).unwrap(),
        json!({"id": 1})
    );
    let wrong = b"\0\0\0\0\x01{\"id\":\"x\"}";
    assert!(deserializer.deserialize::<serde_json::Value>(None, wrong).is_err());
    let deserializer = deserializer.without_validation();
    deserializer.deserialize::<serde_json::Value>(None, wrong).unwrap();
    let error = deserializer.deserialize::<serde_json::Value>(None, b"\0\0\0\0\x01{").unwrap_err();
    assert_eq!(error.fault(), Fault::Record);
}

#[test]
fn record_of_any_format_becomes_json() {
    let (_registry, client) = start();
    let dynamic = DynamicDeserializer::new(&client, JsonStyle::Plain).unwrap();
    let order = json!({"id": 7, "note": "a"});
    let avro = AvroSerializer::new(&client, Some(schema()), SerializerConfig::value()).unwrap();
    let proto = Schema::protobuf("syntax = \"proto3\"; message M { int32 id = 1; string note = 2; }");
    let proto = ProtobufSerializer::new(&client, Some(proto), None, SerializerConfig::key()).unwrap();
    let json = JsonSerializer::new(&client, Some(Schema::json("true")), SerializerConfig::value()).unwrap();
    for framed in [
        avro.serialize_json("a", &order).unwrap(),
        proto.serialize_json("b", &order).unwrap(),
        json.serialize("c", &order).unwrap(),
    ] {
        assert_eq!(dynamic.deserialize(None, &framed.payload).unwrap(), order);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(
                &dynamic.deserialize_text(None, &framed.payload).unwrap()
            )
            .unwrap(),
            order
        );
    }
    client
        .register("b-value", &Schema::protobuf("syntax = \"proto3\"; message M { int32 id = 1; }"), false)
        .unwrap();
    let latest = SerializerConfig::value().with_latest_version();
    let serializer = DynamicSerializer::new(&client, None, latest).unwrap();
    for topic in ["a", "b", "c"] {
        let value = json!({"id": 5});
        let framed = serializer
            .serialize_json(topic, &if topic == "a" { order.clone() } else { value.clone() })
            .unwrap();
        let read = dynamic.deserialize(None, &framed.payload).unwrap();
        assert_eq!(read["id"], if topic == "a" { 7 } else { 5 });
    }
    let error = serializer.serialize_json("missing", &order).unwrap_err().to_string();
    assert!(error.contains("topic \"missing\" has no schema"), "{error}");
    let (id, found) = dynamic.schema(None, &[0, 0, 0, 0, 1]).unwrap();
    assert_eq!((id.to_string().as_str(), found.schema_type), ("1", crate::SchemaType::Avro));
    let deserializer = AvroDeserializer::new(&client, None).unwrap();
    let error = deserializer.deserialize::<Order>(None, &[0, 0, 0, 0, 2, 0]).unwrap_err().to_string();
    assert!(error.contains("it is one of PROTOBUF, and AVRO is expected"), "{error}");
    assert_eq!(SerializerConfig::key().part, Part::Key);
}
