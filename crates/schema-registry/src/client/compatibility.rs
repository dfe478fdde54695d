//! Compatibility levels, and checks of schemas against them.

use serde_json::{Value, json};

use super::{Client, Version, http::Method, path::Path};
use crate::{Compatibility, Error, Result, Schema};

/// The answer to a check of compatibility.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompatibilityReport {
    /// Whether the schema may be registered.
    pub is_compatible: bool,
    /// Why not.
    pub messages: Vec<String>,
}

impl Client {
    /// Returns the level of a subject, or the level of all subjects without their own.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn compatibility(&self, subject: Option<&str>) -> Result<Compatibility> {
        let path = config_path(subject).flag("defaultToGlobal", subject.is_some());
        let answer = self.call(Method::Get, &path, None)?;
        self.text_of(&answer, "compatibilityLevel", Method::Get, &path)?.parse()
    }

    /// Sets the level of a subject, or of all subjects without their own.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn set_compatibility(&self, subject: Option<&str>, level: Compatibility) -> Result<()> {
        let body = json!({"compatibility": level.name()});
        self.call(Method::Put, &config_path(subject), Some(&body)).map(drop)
    }

    /// Removes the level of a subject, for which the level of all subjects then counts.
    ///
    /// # Errors
    ///
    /// The subject has no level; the registry can't be reached or refuses.
    pub fn delete_compatibility(&self, subject: &str) -> Result<()> {
        self.call(Method::Delete, &config_path(Some(subject)), None).map(drop)
    }

    /// Checks a schema against a version of a subject, or against all that its level names.
    ///
    /// # Errors
    ///
    /// The schema is invalid, there is no such version; the registry can't be reached or refuses.
    pub fn check_compatibility(
        &self,
        subject: &str,
        version: Option<Version>,
        schema: &Schema,
    ) -> Result<CompatibilityReport> {
        let mut path = Path::new("/compatibility/subjects").part(subject).part("versions");
        if let Some(version) = version {
            path = path.part(version);
        }
        let path = path.flag("verbose", true);
        let answer = self.call(Method::Post, &path, Some(&schema.to_json()))?;
        let is_compatible = answer.get("is_compatible").and_then(Value::as_bool);
        let is_compatible = is_compatible
            .ok_or_else(|| -> Error { self.strange(Method::Post, &path, "\"is_compatible\" is missing") })?;
        let messages = answer.get("messages").and_then(Value::as_array);
        let messages =
            messages.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect();
        Ok(CompatibilityReport { is_compatible, messages })
    }
}

fn config_path(subject: Option<&str>) -> Path {
    subject.map_or_else(|| Path::new("/config"), |it| Path::new("/config").part(it))
}
