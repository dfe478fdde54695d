//! Checks of the names of topics and the numbers of partitions.

use ottla_core::error::{Error, ErrorKind, Result};

/// The longest name that Kafka allows.
const MAX_LENGTH: usize = 249;
/// Error texts show this many characters of a name.
const SHOWN: usize = 60;

/// Checks that Kafka allows a topic of this name.
pub(crate) fn check_topic_name(name: &str) -> Result<()> {
    let reason = if name.is_empty() {
        "a topic's name can't be empty".to_owned()
    } else if name.len() > MAX_LENGTH {
        format!("the topic's name has {} characters; at most {MAX_LENGTH} are allowed", name.len())
    } else if name == "." || name == ".." {
        "a topic can't be named . or ..".to_owned()
    } else if let Some(bad) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"._-".contains(*c)) {
        format!("the topic's name has {bad:?}; only letters, digits, '.', '_' and '-' are allowed")
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(SHOWN).collect();
    let error = Error::new(ErrorKind::InvalidArgument, reason);
    Err(if shown.is_empty() { error } else { error.with_topic(shown) })
}

/// Checks that a topic of this name could have a partition of this number.
pub(crate) fn check_partition(topic: &str, partition: i32) -> Result<()> {
    check_topic_name(topic)?;
    if partition >= 0 {
        return Ok(());
    }
    let error = Error::new(ErrorKind::InvalidArgument, "a partition's number must be at least 0");
    Err(error.with_partition(topic, partition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_name_is_accepted_when_kafka_allows_it() {
        assert!(check_topic_name("a.b_c-9").is_ok());
        assert!(check_topic_name(&"x".repeat(249)).is_ok());
        for bad in ["", ".", "..", "a b", "ä", &"x".repeat(300)] {
            assert_eq!(check_topic_name(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad}");
        }
        assert!(check_partition("t", 0).is_ok());
        assert_eq!(check_partition("t", -1).unwrap_err().context().partition, Some(-1));
    }
}
