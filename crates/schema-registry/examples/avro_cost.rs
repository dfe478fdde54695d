//! The cost of an Avro record of ten fields: encoded from a type, from JSON, through the serializer, and decoded.
//!
//! `cargo run --release -p ottla-schema-registry --features server --example avro_cost`

use std::{hint::black_box, time::Instant};

use ottla_schema_registry::{
    Schema,
    avro::{AvroSchema, JsonStyle},
    client::{Client, Config},
    serdes::{AvroDeserializer, AvroSerializer, SerializerConfig},
    server::{EmbeddedRegistry, MemoryStorage},
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: i64,
    customer: String,
    item: String,
    quantity: i32,
    price: f64,
    discount: Option<f64>,
    note: Option<String>,
    is_express: bool,
    created: i64,
    state: State,
}

#[derive(Serialize, Deserialize)]
enum State {
    Open,
    Done,
}

const SCHEMA: &str = r#"{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "customer", "type": "string"}, {"name": "item", "type": "string"},
    {"name": "quantity", "type": "int"}, {"name": "price", "type": "double"},
    {"name": "discount", "type": ["null", "double"]}, {"name": "note", "type": ["null", "string"]},
    {"name": "is_express", "type": "boolean"}, {"name": "created", "type": "long"},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["Open", "Done"]}}]}"#;

const RECORDS: u32 = 200_000;

/// The CPU time of this thread in nanoseconds, on Linux; elsewhere the time since the start.
fn cpu_time(start: Instant) -> u128 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let cpu = statistics.split(' ').next().and_then(|it| it.parse().ok());
    cpu.unwrap_or_else(|| start.elapsed().as_nanos())
}

/// Prints the least CPU time of seven runs.
fn measure(what: &str, mut act: impl FnMut()) {
    let run = |_| {
        let start = Instant::now();
        let before = cpu_time(start);
        (0..RECORDS).for_each(|_| act());
        (cpu_time(start) - before) / u128::from(RECORDS)
    };
    let least = (0..7).map(run).min().unwrap_or_default();
    println!("{what:<28} {least:>6} ns");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let order = Order {
        id: 123_456_789,
        customer: "customer-42".to_owned(),
        item: "a box of black tea".to_owned(),
        quantity: 3,
        price: 12.5,
        discount: None,
        note: Some("leave it at the door".to_owned()),
        is_express: true,
        created: 1_767_312_000_000,
        state: if RECORDS > 1 { State::Open } else { State::Done },
    };
    let schema = AvroSchema::parse(SCHEMA, &[])?;
    let mut out = Vec::with_capacity(1024);
    schema.encode(&order, &mut out)?;
    let bytes = out.clone();
    println!("{} bytes", bytes.len());
    measure("encode, from a type", || {
        out.clear();
        let _ = black_box(schema.encode(black_box(&order), &mut out));
    });
    let json = schema.reader(None).decode_json(&bytes, JsonStyle::Tagged)?;
    measure("encode, from JSON", || {
        out.clear();
        let _ = black_box(schema.encode_json(black_box(&json), &mut out));
    });
    let registry = EmbeddedRegistry::start("127.0.0.1:0", MemoryStorage::default())?;
    let client = Client::new(Config::new(&registry.url()))?;
    let serializer = AvroSerializer::new(&client, Some(Schema::avro(SCHEMA)), SerializerConfig::value())?;
    let framed = serializer.serialize("orders", &order)?;
    measure("serializer, from a type", || drop(black_box(serializer.serialize("orders", black_box(&order)))));
    let reader = schema.reader(None);
    measure("decode, into a type", || drop(black_box(reader.decode::<Order>(black_box(&bytes)))));
    measure("decode, into JSON's text", || {
        drop(black_box(reader.decode_json_text(black_box(&bytes), JsonStyle::Plain)));
    });
    let deserializer = AvroDeserializer::new(&client, None)?;
    measure("deserializer, into a type", || {
        drop(black_box(deserializer.deserialize::<Order>(None, black_box(&framed.payload))));
    });
    Ok(())
}
