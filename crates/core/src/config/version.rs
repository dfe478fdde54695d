//! Versions of Kafka brokers, as in `broker.version.fallback`.

use std::fmt;

/// The version of a broker, major, minor and patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KafkaVersion(pub u16, pub u16, pub u16);

impl KafkaVersion {
    /// The oldest version that `broker.version.fallback` permits.
    pub const OLDEST: Self = Self(0, 8, 0);

    /// Parses a version such as `0.10.0`, `0.8.2.1` or `3.9`.
    pub fn parse(text: &str) -> Option<KafkaVersion> {
        let mut numbers = text.trim().split('.').map(|number| {
            number.parse::<u16>().ok().filter(|_| number.bytes().all(|digit| digit.is_ascii_digit()))
        });
        let major = numbers.next()??;
        let minor = numbers.next().unwrap_or(Some(0))?;
        let patch = numbers.next().unwrap_or(Some(0))?;
        numbers.next().unwrap_or(Some(0))?;
        numbers.next().is_none().then_some(KafkaVersion(major, minor, patch))
    }
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_as_kafka_writes_them() {
        assert_eq!(KafkaVersion::parse("0.8.2.1"), Some(KafkaVersion(0, 8, 2)));
        assert_eq!(KafkaVersion::parse("3.9"), Some(KafkaVersion(3, 9, 0)));
        assert!(KafkaVersion(0, 10, 0) > KafkaVersion::parse("0.9.0").unwrap());
        for text in ["", "0.", "x", "1.2.3.4.5", "0.8.+1", "99999.0"] {
            assert_eq!(KafkaVersion::parse(text), None, "{text}");
        }
    }
}
