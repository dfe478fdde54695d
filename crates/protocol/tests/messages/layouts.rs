//! Checks the versions that the crate `kafka-protocol` lacks against Kafka's own message classes.
//!
//! `layouts.txt` has a line for each of them, taken from the message definitions of Apache Kafka 4.4.0, and the classes of 3.9.1
//! for versions that 4.x dropped: API key, kind and version, then the fields in the order of the wire, with `<>` around
//! tagged fields where the version is flexible.

use std::collections::BTreeMap;

use kafka_protocol::messages::ApiKey as TheirApiKey;

use crate::{
    frames::schemas,
    schema::{Base, Field, Schema, Versions},
};

#[test]
fn versions_that_kafka_protocol_lacks_are_laid_out_as_in_kafka() {
    let lines: Vec<(&str, &str)> =
        include_str!("layouts.txt").lines().filter_map(|line| line.split_once(": ")).collect();
    let mut kafkas: BTreeMap<&str, &str> = lines.into_iter().collect();
    let mut missing = Vec::new();
    for schema in schemas() {
        let key = schema.api_key.unwrap_or_default();
        let theirs = TheirApiKey::try_from(key).ok().map(|api| api.valid_versions());
        for message in &schema.messages {
            for version in schema.versions.low..=schema.versions.high {
                let name = format!("{key} {} {version}", message.kind);
                match kafkas.remove(name.as_str()) {
                    Some(layout) => {
                        assert_eq!(struct_layout(&message.fields, &schema, version), layout, "{name}")
                    }
                    None if theirs.is_some_and(|range| range.min <= version && version <= range.max) => {}
                    None => missing.push(name),
                }
            }
        }
    }
    assert!(missing.is_empty(), "neither crate nor layout: {missing:?}");
    assert!(kafkas.is_empty(), "layouts of no message: {kafkas:?}");
}

fn struct_layout(fields: &[Field], schema: &Schema, version: i16) -> String {
    let has = |versions: Versions| versions.low <= version && version <= versions.high;
    let mut here: Vec<&Field> = fields.iter().filter(|field| has(field.versions)).collect();
    here.sort_by_key(|field| field.tag);
    let (untagged, tagged): (Vec<&Field>, Vec<&Field>) = here.iter().partition(|field| field.tag.is_none());
    let mut parts: Vec<String> = untagged
        .iter()
        .map(|field| format!("{}:{}", field.name, type_layout(field, schema, version)))
        .collect();
    if schema.flexible_from.is_some_and(|from| version >= from) {
        let tagged: Vec<String> = tagged
            .iter()
            .map(|field| {
                let tag = field.tag.unwrap_or_default();
                format!("{tag}={}:{}", field.name, type_layout(field, schema, version))
            })
            .collect();
        parts.push(format!("<{}>", tagged.join(" ")));
    }
    parts.join(" ")
}

fn type_layout(field: &Field, schema: &Schema, version: i16) -> String {
    let array = if field.is_array { "[]" } else { "" };
    let may_be_null =
        field.nullable.is_some_and(|versions| versions.low <= version && version <= versions.high);
    match &field.base {
        // Kafka's schemas do not define whether a struct may be null.
        Base::Struct(fields) => {
            let null = if may_be_null && field.is_array { "?" } else { "" };
            format!("{array}{{{}}}{null}", struct_layout(fields, schema, version))
        }
        Base::Primitive(primitive) => {
            let null = if may_be_null { "?" } else { "" };
            format!("{array}{}{null}", format!("{primitive:?}").to_lowercase())
        }
    }
}
