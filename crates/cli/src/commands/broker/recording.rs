//! `ottla broker --record`: what clients change, as lines of JSON that `--replay` reads.
//!
//! Records have the fields of `ottla consume -J`, and topics those of `--seed-topics`. The file gets whole lines only: they are written
//! at once, and what a failed write leaves of them is cut off.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use ottla_embedded_broker::{Change, ChangedRecord, ConfiguredResource};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::records::{RecordParts, write_plain_json};

/// A file that gets the changes.
#[derive(Debug)]
pub struct Recording {
    file: File,
    name: String,
    /// The size of the lines that were written, in bytes.
    written: u64,
}

impl Recording {
    /// Creates the file.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`]: it exists already or can't be created.
    pub fn create(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(|error| {
            Failure::Usage(match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    format!("--record {name}: the file exists; delete it or name another one")
                }
                _ => format!("--record {name} can't be created: {error}"),
            })
        })?;
        Ok(Self { file, name, written: 0 })
    }

    /// Writes a line for each change, and one for each record.
    ///
    /// # Errors
    ///
    /// That of the file, which then ends with the last whole line before.
    pub fn write(&mut self, changes: &[Change]) -> Outcome {
        let mut lines = Vec::new();
        for change in changes {
            put(change, &mut lines)?;
        }
        if let Err(error) = self.file.write_all(&lines) {
            let _ = self.file.set_len(self.written);
            return Err(Failure::Failed(format!("--record {}: {error}", self.name)));
        }
        self.written += lines.len() as u64;
        Ok(())
    }
}

/// Appends the lines of a change.
fn put(change: &Change, lines: &mut Vec<u8>) -> Outcome {
    let line = match change {
        Change::RecordsAppended { topic, partition, records } => {
            return records.iter().try_for_each(|record| put_record(topic, *partition, record, lines));
        }
        Change::TopicCreated { topic, partitions, configs } => {
            json!({"create": topic, "partitions": partitions, "config": object(configs)})
        }
        Change::TopicDeleted { topic } => json!({"delete": topic}),
        Change::PartitionsAdded { topic, partitions } => {
            json!({"add_partitions": topic, "partitions": partitions})
        }
        Change::ConfigsChanged { resource, name, configs } => configured(*resource, name, configs),
        Change::RecordsDeleted { topic, partition, before } => {
            json!({"delete_records": topic, "partition": partition, "before": before})
        }
        Change::OffsetCommitted { group, topic, partition, offset, metadata } => json!({
            "commit": group, "topic": topic, "partition": partition, "offset": offset, "metadata": metadata,
        }),
        Change::OffsetDeleted { group, topic, partition } => {
            json!({"delete_offset": group, "topic": topic, "partition": partition})
        }
        Change::GroupDeleted { group } => json!({"delete_group": group}),
    };
    writeln!(lines, "{line}")?;
    Ok(())
}

fn configured(resource: ConfiguredResource, name: &str, configs: &[(String, String)]) -> serde_json::Value {
    let mut line = serde_json::Map::new();
    line.insert(key_of(resource).to_owned(), json!(name));
    line.insert("config".to_owned(), object(configs));
    line.into()
}

fn object(configs: &[(String, String)]) -> serde_json::Value {
    let entries = configs.iter().map(|(name, value)| (name.clone(), json!(value)));
    entries.collect::<serde_json::Map<_, _>>().into()
}

/// The field that names a resource whose configuration is replaced.
pub const fn key_of(resource: ConfiguredResource) -> &'static str {
    match resource {
        ConfiguredResource::Topic => "configure",
        ConfiguredResource::Broker => "configure_broker",
        ConfiguredResource::Group => "configure_group",
        ConfiguredResource::ClientMetrics => "configure_client_metrics",
    }
}

fn put_record(topic: &str, partition: i32, record: &ChangedRecord, lines: &mut Vec<u8>) -> Outcome {
    let headers = record.headers.iter();
    let headers: Vec<_> = headers.map(|(name, value)| (name.as_slice(), value.as_deref())).collect();
    let parts = RecordParts {
        topic,
        partition,
        offset: record.offset,
        timestamp: record.timestamp,
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: &headers,
    };
    Ok(write_plain_json(parts, lines)?)
}
