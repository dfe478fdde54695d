//! What the registry answers when it refuses.

use serde_json::{Value, json};

/// A refusal: its code begins with the HTTP status.
#[derive(Debug)]
pub struct Refusal {
    pub code: u32,
    pub message: String,
}

impl Refusal {
    pub fn new(code: u32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn status(&self) -> u16 {
        let status = if self.code > 999 { self.code / 100 } else { self.code };
        u16::try_from(status).unwrap_or(500)
    }

    pub fn to_json(&self) -> Value {
        json!({"error_code": self.code, "message": self.message})
    }

    pub fn no_subject(subject: &str) -> Self {
        Self::new(40401, format!("Subject '{subject}' not found."))
    }

    pub fn no_version(version: impl std::fmt::Display) -> Self {
        Self::new(40402, format!("Version {version} not found."))
    }

    pub fn no_schema() -> Self {
        Self::new(40403, "Schema not found")
    }

    pub fn invalid_schema(why: impl std::fmt::Display) -> Self {
        Self::new(42201, format!("Invalid schema: {why}"))
    }

    pub fn storage(why: impl std::fmt::Display) -> Self {
        Self::new(50001, format!("Error in the backend data store: {why}"))
    }
}
