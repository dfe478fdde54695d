//! Tokens of OAUTHBEARER.

use std::time::Duration;

use crate::{
    config::sasl::{
        aws::AwsKeys,
        extensions::{check_extensions, is_value},
    },
    machine::Instant,
    secret::Secret,
};

/// The largest token. Brokers refuse messages above `sasl.server.max.receive.size`, which is 512 KiB by default.
pub const MAX_TOKEN_BYTES: usize = 500_000;
/// Longer lifetimes are cut to this one.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A token of an identity provider, with its lifetime on this machine's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    value: Secret,
    expires_at: Instant,
    principal: String,
    extensions: Vec<(String, String)>,
    /// The keys, with AWS_MSK_IAM; then there is no text.
    keys: Option<AwsKeys>,
    /// When it was created, and the milliseconds since 1970 then.
    created: (Instant, i64),
}

impl Token {
    /// Creates a token. `expires_ms` and `unix_ms`, the current time, are milliseconds since 1970. Error: what is wrong
    /// with the token, without its text.
    pub fn new(
        now: Instant,
        unix_ms: i64,
        value: Secret,
        expires_ms: i64,
        principal: &str,
        extensions: Vec<(String, String)>,
    ) -> Result<Self, String> {
        if value.is_empty() || !value.expose().iter().copied().all(is_value) {
            return Err("the token is empty, or has characters other than printable ASCII".to_owned());
        }
        let extension_bytes: usize = extensions.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
        if value.len() + extension_bytes > MAX_TOKEN_BYTES {
            return Err(format!(
                "the token has {} bytes with its extensions; the limit is {MAX_TOKEN_BYTES}, because brokers refuse \
                 more (sasl.server.max.receive.size)",
                value.len() + extension_bytes
            ));
        }
        if expires_ms <= unix_ms {
            return Err(format!("Must supply an unexpired token: now={unix_ms}ms, exp={expires_ms}ms"));
        }
        check_extensions(&extensions)?;
        Ok(Self {
            value,
            expires_at: now + lifetime(unix_ms, expires_ms),
            principal: principal.to_owned(),
            extensions,
            keys: None,
            created: (now, unix_ms),
        })
    }

    /// Creates the token of AWS_MSK_IAM: keys with their lifetime.
    pub fn of_keys(now: Instant, unix_ms: i64, keys: AwsKeys, expires_ms: i64) -> Self {
        Self {
            value: Secret::default(),
            expires_at: now + lifetime(unix_ms, expires_ms),
            principal: keys.access_key.clone(),
            extensions: Vec::new(),
            keys: Some(keys),
            created: (now, unix_ms),
        }
    }

    /// Returns the keys, with AWS_MSK_IAM.
    pub const fn keys(&self) -> Option<&AwsKeys> {
        self.keys.as_ref()
    }

    /// Returns the seconds since 1970, by the clock that the token was created with.
    pub fn unix_seconds(&self, now: Instant) -> i64 {
        let (then, unix_ms) = self.created;
        unix_ms.saturating_add(now.saturating_since(then).as_millis() as i64) / 1000
    }

    /// Returns the end of its lifetime.
    pub const fn expires_at(&self) -> Instant {
        self.expires_at
    }

    /// Returns the name that it stands for, for logs.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// Returns the text.
    pub const fn value(&self) -> &Secret {
        &self.value
    }

    /// Returns the extensions that are sent along (KIP-342).
    pub fn extensions(&self) -> &[(String, String)] {
        &self.extensions
    }
}

fn lifetime(unix_ms: i64, expires_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(expires_ms.saturating_sub(unix_ms)).unwrap_or(0)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(5_000_000_000);

    fn token(value: &str, expires_ms: i64, extensions: &[(&str, &str)]) -> Result<Token, String> {
        let extensions = extensions.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Token::new(NOW, 1_000_000, value.into(), expires_ms, "alice", extensions.collect())
    }

    #[test]
    fn lifetime_is_counted_from_now() {
        let token = token("abc.def.", 1_060_000, &[("traceId", "1 2"), ("b", "")]).unwrap();
        assert_eq!(token.expires_at(), NOW + Duration::from_secs(60));
        let forever = Token::new(NOW, 0, "x".into(), i64::MAX, "", Vec::new()).unwrap();
        assert_eq!(forever.expires_at(), NOW + LONGEST);
        assert!(Token::new(NOW, i64::MAX, "x".into(), i64::MIN, "", Vec::new()).is_err());
    }

    #[test]
    fn unusable_tokens_are_refused_without_quoting_them() {
        let large = "x".repeat(10_000_000);
        for (value, expires, extensions, part) in [
            ("", 2_000_000, &[][..], "empty"),
            ("se\u{1}cret", 2_000_000, &[], "printable"),
            (&large, 2_000_000, &[], "10000000 bytes"),
            ("secret", 1_000_000, &[], "unexpired token: now=1000000ms, exp=1000000ms"),
            ("secret", 999_999, &[], "unexpired"),
            ("secret", -1, &[], "unexpired"),
            ("secret", 2_000_000, &[("auth", "x")], "auth"),
            ("secret", 2_000_000, &[("a1", "x")], "A-Z"),
            ("secret", 2_000_000, &[("", "x")], "A-Z"),
            ("secret", 2_000_000, &[("a", "\u{1}")], "printable"),
            ("secret", 2_000_000, &[("a", "x"), ("a", "y")], "twice"),
        ] {
            let error = token(value, expires, extensions).unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{error}");
        }
    }
}
