//! Subject name strategies: the subject of a topic's schema.

use std::{fmt, sync::Arc};

use crate::{Error, Result};

/// Whether a schema is that of keys or of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl Part {
    /// The end of subjects of the topic strategy.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Part::Key => "-key",
            Part::Value => "-value",
        }
    }
}

/// Derives a subject from a topic, a part and the name of the record.
type Custom = dyn Fn(&str, Part, &str) -> String + Send + Sync;

/// How the subject is derived.
#[derive(Clone, Default)]
pub enum SubjectNameStrategy {
    /// `TOPIC-key` and `TOPIC-value`.
    #[default]
    Topic,
    /// The name of the record.
    Record,
    /// `TOPIC-RECORD`.
    TopicRecord,
    /// One's own, from the topic, the part, and the record's name, which is empty for a type without one.
    Custom(Arc<Custom>),
}

impl SubjectNameStrategy {
    /// Returns the subject.
    ///
    /// # Errors
    ///
    /// The strategy needs the record's name, and the schema has none.
    pub fn subject(&self, topic: &str, part: Part, record: Option<&str>) -> Result<String> {
        let named = || {
            record.ok_or_else(|| {
                Error::config(
                    "this subject name strategy needs a schema with a name: a record, message or title",
                )
            })
        };
        Ok(match self {
            SubjectNameStrategy::Topic => format!("{topic}{}", part.suffix()),
            SubjectNameStrategy::Record => named()?.to_owned(),
            SubjectNameStrategy::TopicRecord => format!("{topic}-{}", named()?),
            SubjectNameStrategy::Custom(derive) => derive(topic, part, record.unwrap_or_default()),
        })
    }
}

impl fmt::Debug for SubjectNameStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubjectNameStrategy::Topic => "Topic",
            SubjectNameStrategy::Record => "Record",
            SubjectNameStrategy::TopicRecord => "TopicRecord",
            SubjectNameStrategy::Custom(_) => "Custom",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_derives_its_subject() {
        let subject = |strategy: SubjectNameStrategy| strategy.subject("orders", Part::Key, Some("a.Order"));
        assert_eq!(subject(SubjectNameStrategy::Topic).unwrap(), "orders-key");
        assert_eq!(subject(SubjectNameStrategy::Record).unwrap(), "a.Order");
        assert_eq!(subject(SubjectNameStrategy::TopicRecord).unwrap(), "orders-a.Order");
        let own = SubjectNameStrategy::Custom(Arc::new(|topic, _, record| format!("{record}@{topic}")));
        assert_eq!(subject(own).unwrap(), "a.Order@orders");
        let error = SubjectNameStrategy::Record.subject("orders", Part::Value, None).unwrap_err();
        assert!(error.to_string().contains("needs a schema with a name"), "{error}");
    }
}
