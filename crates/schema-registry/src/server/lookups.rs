//! What is asked about subjects, versions and schemas.

use serde_json::{Value, json};

use super::{
    compiled::is_same,
    records::Change,
    refusal::Refusal,
    registry::{Entry, Registry, context},
};
use crate::{Reference, Schema, SchemaType, wire::Guid};

impl Registry {
    /// Finds a schema in a subject.
    pub fn find(&self, subject: &str, schema: &Schema, with_deleted: bool) -> Option<(i32, Entry)> {
        let entries = self.subjects.get(subject)?.iter().rev();
        let mut wanted = entries.filter(|(_, entry)| with_deleted || !entry.is_deleted);
        wanted
            .find(|(_, entry)| is_same(&entry.schema, schema))
            .map(|(version, entry)| (*version, entry.clone()))
    }

    /// The versions of a subject.
    pub fn versions(&self, subject: &str, deleted: Option<bool>) -> Result<Vec<i32>, Refusal> {
        let entries = self.subjects.get(subject).into_iter().flatten();
        let found = entries.filter(|(_, it)| deleted.is_none_or(|deleted| it.is_deleted == deleted));
        let found: Vec<i32> = found.map(|(version, _)| *version).collect();
        if found.is_empty() { Err(Refusal::no_subject(subject)) } else { Ok(found) }
    }

    /// A version of a subject by its number, `latest` or -1.
    pub fn version(&self, subject: &str, text: &str, with_deleted: bool) -> Result<(i32, Entry), Refusal> {
        let number = match text {
            "latest" | "-1" => None,
            text => match text.parse() {
                Ok(number @ 1..) => Some(number),
                _ => {
                    return Err(Refusal::new(
                        42202,
                        format!(
                            "The specified version '{text}' is not a valid version id. Allowed values are between \
                             [1, 2^31-1] and the string \"latest\""
                        ),
                    ));
                }
            },
        };
        let entries = self.subjects.get(subject).ok_or_else(|| Refusal::no_subject(subject))?;
        let visible = |entry: &&Entry| with_deleted || !entry.is_deleted;
        if !entries.values().any(|it| visible(&it)) {
            return Err(Refusal::no_subject(subject));
        }
        let found = match number {
            Some(number) => entries.get_key_value(&number),
            None => entries.iter().rev().find(|(_, entry)| visible(entry)),
        };
        let found = found.filter(|(_, entry)| visible(entry));
        found.map(|(version, entry)| (*version, entry.clone())).ok_or_else(|| Refusal::no_version(text))
    }

    /// The answer about a version.
    pub fn shown(&self, subject: &str, version: i32, entry: &Entry) -> Value {
        let mut answer = self.schema_shown(&entry.schema);
        answer["subject"] = json!(subject);
        answer["version"] = json!(version);
        answer["id"] = json!(entry.id);
        answer
    }

    /// The answer about a schema.
    pub fn schema_shown(&self, schema: &Schema) -> Value {
        let mut answer = schema.to_json();
        answer["guid"] = json!(guid(schema).to_string());
        answer
    }

    /// Replaces the text by a descriptor, if `format=serialized` is asked for.
    pub fn with_format(
        &self,
        mut answer: Value,
        schema: &Schema,
        format: Option<&str>,
    ) -> Result<Value, Refusal> {
        if format == Some("serialized") && schema.schema_type == SchemaType::Protobuf {
            answer["schema"] = json!(self.compiled(schema)?.serialized());
        }
        Ok(answer)
    }

    /// The IDs of the schemas that use a version.
    pub fn referenced_by(&self, subject: &str, version: i32) -> Vec<i32> {
        let uses = |it: &Reference| it.subject == subject && it.version == version;
        let entries = self.subjects.values().flat_map(|entries| entries.values());
        let users = entries.filter(|entry| !entry.is_deleted && entry.schema.references.iter().any(uses));
        let mut ids: Vec<i32> = users.map(|entry| entry.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Deletes a subject: softly, or for good if it is deleted already.
    pub fn delete_subject(&mut self, subject: &str, is_permanent: bool) -> Result<Vec<i32>, Refusal> {
        self.check_writable(subject)?;
        let entries = self.subjects.get(subject).ok_or_else(|| Refusal::no_subject(subject))?;
        let (all, is_deleted): (Vec<i32>, bool) =
            (entries.keys().copied().collect(), entries.values().all(|it| it.is_deleted));
        let live: Vec<i32> = entries.iter().filter(|(_, it)| !it.is_deleted).map(|(it, _)| *it).collect();
        match (is_permanent, is_deleted) {
            (true, false) => Err(Refusal::new(
                40405,
                format!("Subject '{subject}' was not deleted first before being permanently deleted"),
            )),
            (false, true) => Err(Refusal::new(
                40404,
                format!("Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"),
            )),
            (true, true) => {
                for version in &all {
                    self.change(Change::Version {
                        subject: subject.to_owned(),
                        version: *version,
                        entry: None,
                    })?;
                }
                Ok(all)
            }
            (false, false) => {
                for version in &live {
                    self.check_unreferenced(subject, *version)?;
                }
                let version = all.last().copied().unwrap_or_default();
                self.change(Change::SubjectDeleted { subject: subject.to_owned(), version })?;
                Ok(live)
            }
        }
    }

    /// Deletes a version: softly, or for good if it is deleted already.
    pub fn delete_version(&mut self, subject: &str, text: &str, is_permanent: bool) -> Result<i32, Refusal> {
        self.check_writable(subject)?;
        let (version, mut entry) = self.version(subject, text, text != "latest")?;
        let at = subject.to_owned();
        match (is_permanent, entry.is_deleted) {
            (true, false) => Err(Refusal::new(
                40407,
                format!(
                    "Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
                ),
            )),
            (false, true) => Err(Refusal::new(
                40406,
                format!(
                    "Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
                ),
            )),
            (true, true) => {
                self.change(Change::Version { subject: at, version, entry: None })?;
                Ok(version)
            }
            (false, false) => {
                self.check_unreferenced(subject, version)?;
                entry.is_deleted = true;
                self.change(Change::Version { subject: at, version, entry: Some(entry) })?;
                Ok(version)
            }
        }
    }

    fn check_unreferenced(&self, subject: &str, version: i32) -> Result<(), Refusal> {
        match self.referenced_by(subject, version).is_empty() {
            true => Ok(()),
            false => Err(Refusal::new(
                42206,
                format!(
                    "One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}."
                ),
            )),
        }
    }

    /// The subjects and versions with an ID.
    pub fn versions_with_id(
        &self,
        of: &str,
        id: i32,
        with_deleted: bool,
    ) -> Result<Vec<(String, i32)>, Refusal> {
        if !self.ids.contains_key(&(of.to_owned(), id)) {
            return Err(Refusal::no_schema());
        }
        let all = self.subjects.iter().filter(|(name, _)| context(name) == of);
        let all = all
            .flat_map(|(name, entries)| entries.iter().map(move |(version, entry)| (name, version, entry)));
        let found = all.filter(|(.., entry)| entry.id == id && (with_deleted || !entry.is_deleted));
        Ok(found.map(|(name, version, _)| (name.clone(), *version)).collect())
    }

    /// The contexts.
    pub fn contexts(&self) -> Vec<String> {
        let mut found: Vec<String> = self.subjects.keys().map(|it| context(it).to_owned()).collect();
        found.push(super::registry::DEFAULT_CONTEXT.to_owned());
        found.sort();
        found.dedup();
        found
    }
}

/// The GUID of a schema, from its content: FNV-1a with 128 bits, marked as a UUID of version 8.
pub fn guid(schema: &Schema) -> Guid {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in schema.to_json().to_string().bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    }
    let mut bytes = hash.to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Guid(bytes)
}
