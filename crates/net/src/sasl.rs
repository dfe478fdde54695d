//! The parts of SASL that need the system: random numbers and the wall clock.

use std::io;

use ottla_core::{
    config::sasl::{aws::AwsKeys, unsecured::UnsecuredToken},
    sasl::Token,
    secret::Secret,
};

use crate::clock;

/// Returns 32 random bytes of the operating system. Nonces are derived from them.
pub fn random_key() -> io::Result<Secret> {
    let mut bytes = vec![0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Secret::new(bytes))
}

/// Creates a token that lives until this time, in milliseconds since 1970. Error: what is wrong with it.
pub fn token(
    value: Secret,
    expires_ms: i64,
    principal: &str,
    extensions: Vec<(String, String)>,
) -> Result<Token, String> {
    let (now, unix_ms) = clock::now_and_wall_ms();
    Token::new(now, unix_ms, value, expires_ms, principal, extensions)
}

/// Creates the token of AWS_MSK_IAM: keys that live until this time. Keys without an end are searched again in an hour.
pub fn token_of_keys(keys: AwsKeys, expires_ms: Option<i64>) -> Token {
    const HOUR_MS: i64 = 3_600_000;
    let (now, unix_ms) = clock::now_and_wall_ms();
    Token::of_keys(now, unix_ms, keys, expires_ms.unwrap_or_else(|| unix_ms.saturating_add(HOUR_MS)))
}

/// Creates an unsecured token of now.
pub fn unsecured_token(fields: &UnsecuredToken) -> Result<Token, String> {
    let (now, unix_ms) = clock::now_and_wall_ms();
    ottla_core::sasl::unsecured::token(fields, now, unix_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ() {
        assert_ne!(random_key().unwrap(), random_key().unwrap());
    }
}
