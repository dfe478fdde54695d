//! The records of the topic `_schemas`, in the form that Confluent's registry has.

use serde_json::{Value, json};

use super::registry::Entry;
use crate::{Compatibility, Mode, Schema};

/// A change of the registry's state.
#[derive(Debug)]
pub enum Change {
    Version {
        subject: String,
        version: i32,
        entry: Option<Entry>,
    },
    /// All versions up to this one are deleted softly.
    SubjectDeleted {
        subject: String,
        version: i32,
    },
    Level {
        subject: Option<String>,
        level: Option<Compatibility>,
    },
    Mode {
        subject: Option<String>,
        mode: Option<Mode>,
    },
}

impl Change {
    /// The key and the value of the record.
    pub fn to_record(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let (key, value) = match self {
            Change::Version { subject, version, entry } => (
                json!({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}),
                entry.as_ref().map(|entry| {
                    let mut value = entry.schema.to_json();
                    value["subject"] = json!(subject);
                    value["version"] = json!(version);
                    value["id"] = json!(entry.id);
                    value["deleted"] = json!(entry.is_deleted);
                    value
                }),
            ),
            Change::SubjectDeleted { subject, version } => (
                json!({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}),
                Some(json!({"subject": subject, "version": version})),
            ),
            Change::Level { subject, level } => (
                json!({"keytype": "CONFIG", "subject": subject, "magic": 0}),
                level.map(|it| json!({"subject": subject, "compatibilityLevel": it.name()})),
            ),
            Change::Mode { subject, mode } => (
                json!({"keytype": "MODE", "subject": subject, "magic": 0}),
                mode.map(|it| json!({"subject": subject, "mode": it.name()})),
            ),
        };
        (key.to_string().into_bytes(), value.map(|it| it.to_string().into_bytes()))
    }

    /// Reads a record. `None` for those that mean nothing here.
    pub fn from_record(key: &[u8], value: Option<&[u8]>) -> Result<Option<Self>, String> {
        let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map_err(|error| error.to_string());
        let (key, value) = (parsed(key)?, value.map(parsed).transpose()?);
        let subject = key.get("subject").and_then(Value::as_str).map(str::to_owned);
        let number = |of: &Value, name: &str| {
            let number = of.get(name).and_then(Value::as_i64).and_then(|it| i32::try_from(it).ok());
            number.ok_or_else(|| format!("{name} is missing in {of}"))
        };
        let text = |name: &str| value.as_ref().and_then(|it| it.get(name)).and_then(Value::as_str);
        let named = || subject.clone().ok_or_else(|| format!("the subject is missing in {key}"));
        Ok(Some(match key.get("keytype").and_then(Value::as_str) {
            Some("SCHEMA") => {
                let entry = match &value {
                    Some(value) => Some(Entry {
                        id: number(value, "id")?,
                        schema: Schema::from_json(value).map_err(|error| error.to_string())?,
                        is_deleted: value.get("deleted").and_then(Value::as_bool).unwrap_or_default(),
                    }),
                    None => None,
                };
                Change::Version { subject: named()?, version: number(&key, "version")?, entry }
            }
            Some("DELETE_SUBJECT") => match &value {
                Some(value) => {
                    Change::SubjectDeleted { subject: named()?, version: number(value, "version")? }
                }
                None => return Ok(None),
            },
            Some("CONFIG") => {
                Change::Level { subject, level: text("compatibilityLevel").and_then(|it| it.parse().ok()) }
            }
            Some("MODE") => Change::Mode { subject, mode: text("mode").and_then(|it| it.parse().ok()) },
            _ => return Ok(None),
        }))
    }
}
