//! Serializers that write with schemas of a registry, for `produce -s`.

use std::path::{Path, PathBuf};

use clap::Args;
use ottla_schema_registry::client::Client;
use ottla_schema_registry::serdes::{
    AvroSerializer, Framed, Framing, JsonSerializer, ProtobufSerializer, SerializerConfig,
};
use ottla_schema_registry::{Error, Reference, Schema, SchemaType, SubjectNameStrategy};
use ottla_sorted::SortedMap;
use serde_json::Value;

use super::part_format::{PartFormat, PartFormats};
use super::registry::Registered;
use super::{Encoded, Part};
use crate::client_options::ClientOptions;
use crate::commands::schema::{read_schema, reference};
use crate::failure::{Failure, Outcome};
use crate::registry_options::{RegistryOptions, failure};

/// Where the schemas are with which a command writes.
#[derive(Args, Debug)]
pub struct WriterOptions {
    #[command(flatten)]
    registry: RegistryOptions,

    /// With -s: the file with the schema of keys, which is registered if the subject does not have it [default: the latest
    /// version of the subject]
    #[arg(long, value_name = "FILE")]
    key_schema: Option<PathBuf>,

    /// With -s: the file with the schema of values, as --key-schema
    #[arg(long, value_name = "FILE")]
    value_schema: Option<PathBuf>,

    /// A reference of --key-schema and --value-schema: its name in the schema, and a version of a subject; can be repeated
    #[arg(long, value_name = "NAME=SUBJECT:VERSION", value_parser = reference)]
    reference: Vec<Reference>,
}

/// The serializers of keys and values.
pub struct Writers {
    key: Option<Writer>,
    value: Option<Writer>,
}

enum Writer {
    Avro(AvroSerializer),
    Protobuf(ProtobufSerializer),
    Json(JsonSerializer),
}

impl Writers {
    /// Returns the serializers that formats need, if they need any; `client` chooses the profile that may name the registry.
    ///
    /// # Errors
    ///
    /// A file or a property is wrong, no registry is named, or it lacks a reference.
    pub fn new(
        options: &WriterOptions,
        formats: &PartFormats,
        client: &ClientOptions,
    ) -> Outcome<Option<Writers>> {
        let parts = [
            (Part::Key, &formats.key, &options.key_schema),
            (Part::Value, &formats.value, &options.value_schema),
        ];
        for (part, format, file) in parts {
            if file.is_some() && !matches!(format, PartFormat::Registered(_)) {
                return Err(Failure::Usage(format!(
                    "--{part}-schema needs -s {part}=avro, protobuf or jsonschema; a schema without a registry is -s {part}=avro:FILE"
                )));
            }
        }
        if !formats.need_registry() {
            return Ok(None);
        }
        let (client, properties) = options.registry.client_and_serializer(client)?;
        let [key, value] = parts.map(|(part, format, file)| match format {
            PartFormat::Registered(format) => {
                Writer::new(&client, format, part, file.as_deref(), options, &properties).map(Some)
            }
            _ => Ok(None),
        });
        Ok(Some(Writers { key: key?, value: value? }))
    }

    /// Writes a value for a topic.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema; there is none; the registry can't be reached or refuses.
    pub fn write(&self, part: Part, topic: &str, value: &Value) -> Result<Encoded, String> {
        let writer = match part {
            Part::Key => &self.key,
            Part::Value => &self.value,
        };
        let Some(writer) = writer else {
            return Err("the format is not connected with a registry".to_owned());
        };
        let Framed { payload, header } = writer.write(topic, value).map_err(|error| match error {
            error if error.is_not_found() => {
                format!("{error}; --{part}-schema FILE names a schema and registers it")
            }
            error => error.to_string(),
        })?;
        Ok(Encoded { payload, id: header.map(|(_, id)| id) })
    }
}

impl Writer {
    fn new(
        client: &Client,
        format: &Registered,
        part: Part,
        file: Option<&Path>,
        options: &WriterOptions,
        properties: &SortedMap<String, String>,
    ) -> Outcome<Writer> {
        let schema = match file {
            Some(file) => Some(Schema {
                schema_type: format.schema_type,
                ..read_schema(file, None, options.reference.clone())?
            }),
            None => None,
        };
        let config = config(part, schema.is_some(), properties).map_err(failure)?;
        let (message, named) = (format.message.as_deref(), |error: Error| match file {
            Some(file) => Failure::Usage(format!("{}: {error}", file.display())),
            None => failure(error),
        });
        Ok(match format.schema_type {
            SchemaType::Avro => Writer::Avro(AvroSerializer::new(client, schema, config).map_err(named)?),
            SchemaType::Protobuf => {
                Writer::Protobuf(ProtobufSerializer::new(client, schema, message, config).map_err(named)?)
            }
            SchemaType::Json => Writer::Json(JsonSerializer::new(client, schema, config).map_err(named)?),
        })
    }

    fn write(&self, topic: &str, value: &Value) -> Result<Framed, Error> {
        match self {
            Writer::Avro(serializer) => serializer.serialize_json(topic, value),
            Writer::Protobuf(serializer) => serializer.serialize_json(topic, value),
            Writer::Json(serializer) => serializer.serialize(topic, value),
        }
    }
}

/// Returns the configuration that Confluent's properties describe; those with `key.` or `value.` before them count for that part
/// only.
fn config(
    part: Part,
    has_schema: bool,
    properties: &SortedMap<String, String>,
) -> Result<SerializerConfig, Error> {
    let property = |names: &[&str]| {
        let of_part = names.iter().find_map(|name| properties.get(&format!("{part}.{name}")));
        of_part.or_else(|| names.iter().find_map(|name| properties.get(*name))).map(String::as_str)
    };
    let wrong = |name: &str, value: &str, wanted: &str| Error::Config {
        why: format!("{name}: {value:?} is not {wanted}"),
    };
    let flag = |names: &[&str]| match property(names) {
        None => Ok(None),
        Some(value) => value.parse::<bool>().map(Some).map_err(|_| wrong(names[0], value, "true or false")),
    };
    let mut config = match part {
        Part::Key => SerializerConfig::key(),
        Part::Value => SerializerConfig::value(),
    };
    config.use_schema_id = match property(&["use.schema.id", "schema.id"]) {
        Some(id) => Some(id.parse().map_err(|_| wrong("use.schema.id", id, "the ID of a schema"))?),
        None => None,
    };
    let is_named = config.use_schema_id.is_some();
    config.use_latest_version = flag(&["use.latest.version"])?.unwrap_or(!has_schema && !is_named);
    let registers = has_schema && !is_named && !config.use_latest_version;
    config.auto_register = flag(&["auto.register.schemas", "auto.register"])?.unwrap_or(registers);
    config.normalize = flag(&["normalize.schemas"])?.unwrap_or(false);
    if let Some(value) = property(&["subject.name.strategy"]) {
        config.strategy = match value.rsplit('.').next().unwrap_or_default() {
            "TopicNameStrategy" | "topic" => SubjectNameStrategy::Topic,
            "RecordNameStrategy" | "record" => SubjectNameStrategy::Record,
            "TopicRecordNameStrategy" | "topic-record" => SubjectNameStrategy::TopicRecord,
            _ => {
                let names = "TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy";
                return Err(wrong("subject.name.strategy", value, names));
            }
        };
    }
    if let Some(value) = property(&["schema.id.serializer"]) {
        config.framing = match value.rsplit('.').next().unwrap_or_default() {
            "PrefixSchemaIdSerializer" | "prefix" => Framing::Prefix,
            "HeaderSchemaIdSerializer" | "header" => Framing::Header,
            _ => {
                let names = "PrefixSchemaIdSerializer or HeaderSchemaIdSerializer";
                return Err(wrong("schema.id.serializer", value, names));
            }
        };
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(part: Part, has_schema: bool, properties: &[(&str, &str)]) -> Result<SerializerConfig, Error> {
        let pairs = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        config(part, has_schema, &pairs.collect())
    }

    #[test]
    fn own_schema_is_registered_and_others_are_the_latest() {
        let shown = |config: SerializerConfig| (config.auto_register, config.use_latest_version);
        assert_eq!(shown(of(Part::Value, true, &[]).unwrap()), (true, false));
        assert_eq!(shown(of(Part::Value, false, &[]).unwrap()), (false, true));
        let by_id = of(Part::Key, true, &[("key.use.schema.id", "7"), ("value.use.schema.id", "8")]).unwrap();
        assert_eq!((by_id.use_schema_id, shown(by_id)), (Some(7), (false, false)));
        let latest = of(Part::Value, true, &[("use.latest.version", "true")]).unwrap();
        assert_eq!(shown(latest), (false, true));
        assert_eq!(
            shown(of(Part::Value, true, &[("auto.register.schemas", "false")]).unwrap()),
            (false, false)
        );
    }

    #[test]
    fn classes_of_java_name_strategy_and_framing() {
        let java = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy";
        let config = of(Part::Key, true, &[("key.subject.name.strategy", java)]).unwrap();
        assert!(matches!(config.strategy, SubjectNameStrategy::TopicRecord));
        let config = of(Part::Value, true, &[("schema.id.serializer", "header")]).unwrap();
        assert_eq!(config.framing, Framing::Header);
        for (name, value) in [
            ("auto.register.schemas", "yes"),
            ("use.schema.id", "x"),
            ("subject.name.strategy", "x"),
            ("schema.id.serializer", "x"),
        ] {
            let error = of(Part::Value, true, &[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(&format!("{name}: {value:?} is not")), "{error}");
        }
    }
}
