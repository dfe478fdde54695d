//! Bytes of Confluent's Python serializers, which `tests/schemas/compare.sh` records: ours are the same, and read them.

use std::{env, fs, io::Write as _};

use ottla_schema_registry::{
    Reference, Schema,
    avro::JsonStyle,
    client::{Client, Config},
    serdes::{
        AvroDeserializer, AvroSerializer, Framed, Framing, JsonDeserializer, JsonSerializer,
        ProtobufDeserializer, ProtobufSerializer, SerializerConfig,
    },
    server::{EmbeddedRegistry, MemoryStorage},
};
use serde_json::{Value, json};

/// A row of the table.
struct Row(Value);

impl Row {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn must(&self, key: &str) -> &str {
        self.text(key).unwrap_or_else(|| panic!("{key} is missing in {}", self.0))
    }

    fn bytes(&self) -> Vec<u8> {
        hex(self.must("bytes"))
    }

    fn config(&self) -> SerializerConfig {
        let config = match self.text("part") {
            Some("key") => SerializerConfig::key(),
            _ => SerializerConfig::value(),
        };
        if self.0.get("header").is_some() { config.with_framing(Framing::Header) } else { config }
    }
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn unhex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares values, for which 1 and 1.0 are the same. A float has fewer digits in ours: as many as make it unique.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let single = |it: &serde_json::Number| it.as_f64().unwrap() as f32;
            a == b || single(a) == single(b)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn rows() -> Vec<Row> {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/confluent.json");
    let table: Vec<Value> = serde_json::from_str(&fs::read_to_string(table).unwrap()).unwrap();
    table.into_iter().map(Row).collect()
}

/// Serializes the value of a row.
fn serialized(client: &Client, row: &Row) -> Framed {
    let (topic, value, text) = (row.must("topic"), &row.0["value"], row.must("schema"));
    match row.must("format") {
        "AVRO" => {
            let serializer = AvroSerializer::new(client, Some(Schema::avro(text)), row.config()).unwrap();
            serializer.serialize_json(topic, value).unwrap()
        }
        "PROTOBUF" => {
            let mut schema = Schema::protobuf(text);
            for reference in row.0["references"].as_array().unwrap() {
                let (name, text) = (reference[0].as_str().unwrap(), reference[1].as_str().unwrap());
                let version = client.register(name, &Schema::protobuf(text), false).unwrap().version.unwrap();
                schema = schema.with_reference(Reference::new(name, name, version));
            }
            let message = row.text("message");
            let serializer = ProtobufSerializer::new(client, Some(schema), message, row.config()).unwrap();
            serializer.serialize_json(topic, value).unwrap()
        }
        _ => {
            let serializer = JsonSerializer::new(client, Some(Schema::json(text)), row.config()).unwrap();
            serializer.serialize(topic, value).unwrap()
        }
    }
}

/// Reads Confluent's bytes, framed as ours.
fn deserialized(client: &Client, row: &Row, framed: &Framed) -> Value {
    let header = framed.header.as_ref().map(|(_, value)| value.as_slice());
    let payload = match header {
        Some(_) => row.bytes(),
        None => [&framed.payload[..5], &row.bytes()].concat(),
    };
    match row.must("format") {
        "AVRO" => {
            let deserializer = AvroDeserializer::new(client, None).unwrap();
            deserializer.deserialize_json(header, &payload, JsonStyle::Tagged).unwrap()
        }
        "PROTOBUF" => ProtobufDeserializer::new(client).deserialize_json(header, &payload).unwrap(),
        _ => JsonDeserializer::new(client).deserialize(header, &payload).unwrap(),
    }
}

#[test]
fn bytes_are_those_of_confluents_serializers() {
    let registry = EmbeddedRegistry::start("127.0.0.1:0", MemoryStorage::default()).unwrap();
    let client = Client::new(Config::new(&registry.url())).unwrap();
    let rows = rows();
    for row in &rows {
        client.set_compatibility(None, ottla_schema_registry::Compatibility::None).unwrap();
        let framed = serialized(&client, row);
        let start = if framed.header.is_some() { 0 } else { 5 };
        assert_eq!(unhex(&framed.payload[start..]), row.must("bytes"), "{}", row.0);
        if let Some((name, value)) = &framed.header {
            assert_eq!((*name, value[0], value.len()), (row.0["header"][0].as_str().unwrap(), 1, 17));
        }
        let read = deserialized(&client, row, &framed);
        // JSON has several texts for a duration in Protobuf, and unset fields have their defaults.
        if row.must("format") != "PROTOBUF" {
            assert!(is_same(&read, &row.0["value"]), "{read} instead of {}", row.0["value"]);
        }
        let mut again = Row(row.0.clone());
        again.0["value"] = read;
        assert_eq!(serialized(&client, &again).payload, framed.payload, "{}", again.0["value"]);
        if let Some(spaced) = row.text("spaced") {
            let payload = [&framed.payload[..5], &hex(spaced)].concat();
            let read: Value = JsonDeserializer::new(&client).deserialize(None, &payload).unwrap();
            assert_eq!(read, row.0["value"]);
        }
    }
    assert!(rows.len() > 250, "{} rows", rows.len());
}

#[test]
fn schemas_resolve_as_in_confluents_deserializer() {
    let registry = EmbeddedRegistry::start("127.0.0.1:0", MemoryStorage::default()).unwrap();
    let client = Client::new(Config::new(&registry.url())).unwrap();
    let mut count = 0;
    for row in rows().iter().filter(|row| row.text("reader").is_some()) {
        let framed = serialized(&client, row);
        let reader = Schema::avro(row.must("reader"));
        let deserializer = AvroDeserializer::new(&client, Some(&reader)).unwrap();
        let read = deserializer.deserialize_json(None, &framed.payload, JsonStyle::Tagged).unwrap();
        assert!(is_same(&read, &row.0["read"]), "{read} instead of {}", row.0["read"]);
        count += 1;
    }
    assert!(count > 8, "{count} pairs");
}

/// Writes the records of the table for Confluent's deserializers, if `compare.sh` asks for them.
#[test]
fn records_are_written_for_confluents_deserializers() {
    let (Ok(url), Ok(path)) = (env::var("OTTLA_TEST_SCHEMA_REGISTRY"), env::var("OTTLA_TEST_SCHEMA_RECORDS"))
    else {
        return;
    };
    let client = Client::new(Config::new(&url)).unwrap();
    let mut file = fs::File::create(path).unwrap();
    for row in rows().iter().filter(|row| row.0.get("header").is_none()) {
        let framed = serialized(&client, row);
        let mut line = row.0.clone();
        line["record"] = json!(unhex(&framed.payload));
        writeln!(file, "{line}").unwrap();
    }
}
