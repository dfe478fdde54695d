//! JSON Schema: values are validated by jsonschema.

mod compatibility;

use std::{collections::HashMap, sync::Arc};

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::Value;

use crate::{Error, Result, schema::check_size};

/// The address of a schema without `$id`.
const DEFAULT_BASE: &str = "json-schema:///";

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct JsonSchema {
    validator: Arc<Validator>,
    value: Arc<Value>,
}

impl JsonSchema {
    /// Compiles a schema. `references` are the names that `$ref` has, and the texts of their schemas. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// A text is too large, is not a schema, or refers to an unknown one.
    pub fn parse(text: &str, references: &[(String, String)]) -> Result<Self> {
        let value = parsed(text)?;
        if !value.is_object() && !value.is_boolean() {
            return Err(Error::schema("a JSON Schema is an object or a boolean"));
        }
        let mut others = HashMap::new();
        for (name, text) in references {
            others.insert(name.clone(), parsed(text)?);
        }
        refuse_pure_cycles(&value, &others)?;
        let validator = jsonschema::options()
            .with_retriever(Others(others))
            .build(&value)
            .map_err(|error| Error::schema(format!("it is not a JSON Schema: {error}")))?;
        Ok(Self { validator: Arc::new(validator), value: Arc::new(value) })
    }

    /// The title, which the strategies for subjects take for the record's name.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.value.get("title").and_then(Value::as_str)
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema.
    pub fn validate(&self, value: &Value) -> Result<()> {
        self.validator.validate(value).map_err(|error| {
            let path = error.instance_path().to_string();
            Error::Value {
                path: path.trim_start_matches('/').replace('/', "."),
                why: crate::error::shortened(&error.to_string()),
            }
        })
    }

    /// Says why this schema refuses values that the writer's schema accepts; nothing if it can't be said.
    #[must_use]
    pub fn incompatibilities(&self, writer: &JsonSchema) -> Vec<String> {
        compatibility::incompatibilities(&self.value, &writer.value)
    }
}

fn parsed(text: &str) -> Result<Value> {
    check_size(text)?;
    serde_json::from_str(text).map_err(|error| Error::schema(format!("it is not JSON: {error}")))
}

/// The largest number of schemas that refer to each other and nothing else.
const MAX_CHAIN: usize = 64;

/// Refuses schemas that only refer to each other, which no value ends.
fn refuse_pure_cycles(root: &Value, others: &HashMap<String, Value>) -> Result<()> {
    let mut left = vec![root];
    left.extend(others.values());
    let documents = left.clone();
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => left.extend(map.values()),
            Value::Array(list) => left.extend(list),
            _ => continue,
        }
        let (mut at, mut steps) = (value, 0);
        while let Some(target) = at.get("$ref").and_then(Value::as_str) {
            steps += 1;
            if steps > MAX_CHAIN {
                return Err(Error::schema(format!(
                    "its references are cyclic: {}",
                    crate::error::shortened(target)
                )));
            }
            let (document, pointer) = target.split_once('#').unwrap_or((target, ""));
            let next = if document.is_empty() {
                documents.iter().find_map(|it| it.pointer(pointer))
            } else {
                others.get(document).and_then(|it| it.pointer(pointer))
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    Ok(())
}

/// The schemas that may be referred to.
struct Others(HashMap<String, Value>);

impl Retrieve for Others {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let text = uri.as_str();
        let relative = text.strip_prefix(DEFAULT_BASE).unwrap_or(text);
        let ends = |name: &&String| text.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('/'));
        let found = self.0.get(text).or_else(|| self.0.get(relative));
        let found = found.or_else(|| self.0.keys().find(ends).and_then(|name| self.0.get(name)));
        found.cloned().ok_or_else(|| format!("no reference has the name {relative:?}").into())
    }
}

#[cfg(test)]
mod tests;
