//! Modes: what may be done with subjects.

use serde_json::json;

use super::{Client, http::Method, path::Path};
use crate::{Mode, Result};

impl Client {
    /// Returns the mode of a subject, or of all subjects without their own.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn mode(&self, subject: Option<&str>) -> Result<Mode> {
        let path = mode_path(subject).flag("defaultToGlobal", subject.is_some());
        let answer = self.call(Method::Get, &path, None)?;
        self.text_of(&answer, "mode", Method::Get, &path)?.parse()
    }

    /// Sets the mode of a subject, or of all subjects without their own. `is_forced` permits IMPORT although there are schemas.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses.
    pub fn set_mode(&self, subject: Option<&str>, mode: Mode, is_forced: bool) -> Result<()> {
        let path = mode_path(subject).flag("force", is_forced);
        self.call(Method::Put, &path, Some(&json!({"mode": mode.name()}))).map(drop)
    }

    /// Removes the mode of a subject.
    ///
    /// # Errors
    ///
    /// The subject has no mode; the registry can't be reached or refuses.
    pub fn delete_mode(&self, subject: &str) -> Result<()> {
        self.call(Method::Delete, &mode_path(Some(subject)), None).map(drop)
    }
}

fn mode_path(subject: Option<&str>) -> Path {
    subject.map_or_else(|| Path::new("/mode"), |it| Path::new("/mode").part(it))
}
