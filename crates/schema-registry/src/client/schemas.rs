//! Schemas: by ID, by GUID, and by subject.

use std::{fmt, str::FromStr, sync::Arc};

use serde_json::Value;

use super::{Client, Question, http::Method, path::Path};
use crate::{
    Error, Result, Schema,
    wire::{Guid, SchemaId},
};

/// A version of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// The version with this number.
    Number(i32),
    /// The latest version.
    Latest,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Number(number) => write!(f, "{number}"),
            Version::Latest => f.write_str("latest"),
        }
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == "latest" => Ok(Version::Latest),
            Ok(number @ 1..) => Ok(Version::Number(number)),
            _ => Err(Error::config(format!("{text:?} is not a version; write a number from 1, or latest"))),
        }
    }
}

/// A schema as it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The subject; empty if the registry did not say it.
    pub subject: String,
    /// The version; `None` if the registry did not say it.
    pub version: Option<i32>,
    /// The ID.
    pub id: u32,
    /// The ID that is the same in all registries, if the registry has such.
    pub guid: Option<Guid>,
    /// The schema.
    pub schema: Arc<Schema>,
}

impl Registered {
    /// Reads an answer. `asked` is the schema that was in the request, for answers without one.
    pub(super) fn from_json(answer: &Value, asked: Option<&Schema>) -> Option<Self> {
        let schema = match (answer.get("schema"), asked) {
            (Some(_), _) => Schema::from_json(answer).ok()?,
            (None, asked) => asked?.clone(),
        };
        let id = u32::try_from(answer.get("id")?.as_u64()?).ok().filter(|id| i32::try_from(*id).is_ok())?;
        let number = answer.get("version").and_then(Value::as_i64);
        Some(Self {
            subject: answer.get("subject").and_then(Value::as_str).unwrap_or_default().to_owned(),
            version: number.and_then(|it| it.try_into().ok()),
            id,
            guid: answer.get("guid").and_then(Value::as_str).and_then(|it| it.parse().ok()),
            schema: Arc::new(schema),
        })
    }
}

impl Client {
    /// Returns the schema with an ID. It is remembered.
    ///
    /// # Errors
    ///
    /// There is no such schema; the registry can't be reached or refuses.
    pub fn schema_by_id(&self, id: u32) -> Result<Arc<Schema>> {
        self.inner.by_id.get(&id, None, || {
            let path = Path::new("/schemas/ids").part(id);
            let answer = self.call(Method::Get, &path, None)?;
            if answer.get("id").and_then(Value::as_u64).is_some_and(|it| it != u64::from(id)) {
                return Err(self.strange(Method::Get, &path, "it is the schema of another ID"));
            }
            self.schema_of(&answer, &path)
        })
    }

    /// Returns the schema with a GUID. It is remembered.
    ///
    /// # Errors
    ///
    /// As [`Client::schema_by_id`].
    pub fn schema_by_guid(&self, guid: Guid) -> Result<Arc<Schema>> {
        self.inner.by_guid.get(&guid, None, || {
            let path = Path::new("/schemas/guids").part(guid);
            let answer = self.call(Method::Get, &path, None)?;
            let other = answer.get("guid").and_then(Value::as_str).and_then(|it| it.parse().ok());
            if other.is_some_and(|it: Guid| it != guid) {
                return Err(self.strange(Method::Get, &path, "it is the schema of another GUID"));
            }
            self.schema_of(&answer, &path)
        })
    }

    /// Returns the schema that a record names.
    ///
    /// # Errors
    ///
    /// As [`Client::schema_by_id`].
    pub fn schema(&self, id: SchemaId) -> Result<Arc<Schema>> {
        match id {
            SchemaId::Id(id) => self.schema_by_id(id),
            SchemaId::Guid(guid) => self.schema_by_guid(guid),
        }
    }

    /// Returns the subjects and versions that have the schema with this ID.
    ///
    /// # Errors
    ///
    /// As [`Client::schema_by_id`].
    pub fn versions_with_id(&self, id: u32) -> Result<Vec<(String, i32)>> {
        let path = Path::new("/schemas/ids").part(id).part("versions");
        let answer = self.call(Method::Get, &path, None)?;
        let pair = |it: &Value| {
            let version = it.get("version")?.as_i64()?.try_into().ok()?;
            Some((it.get("subject")?.as_str()?.to_owned(), version))
        };
        let pairs = answer.as_array().and_then(|list| list.iter().map(pair).collect());
        pairs.ok_or_else(|| self.strange(Method::Get, &path, "a list of versions was expected"))
    }

    /// Registers a schema, or finds it if the subject has it. The answer is remembered.
    ///
    /// # Errors
    ///
    /// The schema is invalid or not compatible with those before; the registry can't be reached or refuses.
    pub fn register(&self, subject: &str, schema: &Schema, normalizes: bool) -> Result<Registered> {
        let found = self.ask_about(subject, schema, Question { registers: true, normalizes })?;
        self.inner.latest.forget(|it| it == subject);
        Ok(found)
    }

    /// Finds a schema in a subject. The answer is remembered.
    ///
    /// # Errors
    ///
    /// The subject does not have the schema; the registry can't be reached or refuses.
    pub fn lookup(&self, subject: &str, schema: &Schema, normalizes: bool) -> Result<Registered> {
        self.ask_about(subject, schema, Question { registers: false, normalizes })
    }

    fn ask_about(&self, subject: &str, schema: &Schema, question: Question) -> Result<Registered> {
        crate::schema::check_size(&schema.text)?;
        self.inner.registered.get(&(subject.to_owned(), schema.clone(), question), None, || {
            let mut path = Path::new("/subjects").part(subject);
            if question.registers {
                path = path.part("versions");
            }
            path = path.flag("normalize", question.normalizes);
            let answer = self.call(Method::Post, &path, Some(&schema.to_json()))?;
            let found = Registered::from_json(&answer, Some(schema))
                .ok_or_else(|| self.strange(Method::Post, &path, "the ID of the schema is missing"))?;
            let known = self.inner.by_id.get(&found.id, None, || Ok(Arc::clone(&found.schema)))?;
            if known.schema_type != schema.schema_type {
                let why = format!("the ID {} is that of another schema, in {}", found.id, known.schema_type);
                return Err(self.strange(Method::Post, &path, &why));
            }
            Ok(found)
        })
    }

    fn schema_of(&self, answer: &Value, path: &Path) -> Result<Arc<Schema>> {
        Schema::from_json(answer)
            .map(Arc::new)
            .map_err(|error| self.strange(Method::Get, path, &format!("it has no usable schema ({error})")))
    }
}
