//! Tokens without a signature, for tests: `enable.sasl.oauthbearer.unsecure.jwt`.

use super::token::Token;
use crate::{
    base64::{self, Alphabet},
    config::sasl::unsecured::UnsecuredToken,
    machine::Instant,
    secret::Secret,
};

/// Returns a new token with these fields. `unix_ms` is the current time in milliseconds since 1970.
pub fn token(fields: &UnsecuredToken, now: Instant, unix_ms: i64) -> Result<Token, String> {
    let expires_ms = unix_ms.saturating_add(i64::from(fields.life_seconds) * 1000);
    let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms.rem_euclid(1000));
    let mut claims = format!(
        "{{{}:{},\"iat\":{},\"exp\":{}",
        json(&fields.principal_claim),
        json(&fields.principal),
        seconds(unix_ms),
        seconds(expires_ms)
    );
    if !fields.scopes.is_empty() {
        let scopes: Vec<_> = fields.scopes.iter().map(|scope| json(scope)).collect();
        claims.push_str(&format!(",{}:[{}]", json(&fields.scope_claim), scopes.join(",")));
    }
    claims.push('}');
    let header = base64::encode(Alphabet::Url, b"{\"alg\":\"none\"}");
    let claims = base64::encode(Alphabet::Url, claims.as_bytes());
    let value = Secret::concat(&[header.as_bytes(), b".", claims.as_bytes(), b"."]);
    Token::new(now, unix_ms, value, expires_ms, &fields.principal, fields.extensions.clone())
}

/// Returns text as a string of JSON.
pub(super) fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(config: &str) -> String {
        let token = token(&UnsecuredToken::parse(config).unwrap(), Instant::ZERO, 1_234_005).unwrap();
        let text = String::from_utf8(token.value().expose().to_vec()).unwrap();
        let parts: Vec<_> = text.split('.').collect();
        assert_eq!((parts[0], parts[2]), ("eyJhbGciOiJub25lIn0", ""));
        String::from_utf8(base64::decode(Alphabet::Url, parts[1]).unwrap()).unwrap()
    }

    #[test]
    fn token_has_the_configured_claims() {
        assert_eq!(claims("principal=alice"), r#"{"sub":"alice","iat":1234.005,"exp":4834.005}"#);
        assert_eq!(
            claims(
                "principalClaimName=azp principal=fu\\bar  scopeClaimName=roles scope=a,,b,a lifeSeconds=60"
            ),
            r#"{"azp":"fu\\bar","iat":1234.005,"exp":1294.005,"roles":["a","b"]}"#
        );
        let fields = UnsecuredToken::parse("principal=a extension_traceId=1 extension_b=").unwrap();
        let token = token(&fields, Instant::ZERO, 0).unwrap();
        assert_eq!(token.extensions().len(), 2);
    }
}
