//! Tokens without a signature, for tests: `enable.sasl.oauthbearer.unsecure.jwt` and the fields of
//! `sasl.oauthbearer.config`.

use super::{
    base64::{self, Alphabet},
    token::{Token, check_extensions},
};
use crate::{machine::Instant, secret::Secret};

/// The fields of `sasl.oauthbearer.config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsecuredToken {
    principal_claim: String,
    principal: String,
    scope_claim: String,
    scopes: Vec<String>,
    life_seconds: u32,
    extensions: Vec<(String, String)>,
}

impl UnsecuredToken {
    /// Returns the fields of a token with this principal, and defaults.
    pub(super) fn of(principal: String) -> Self {
        Self {
            principal_claim: "sub".to_owned(),
            principal,
            scope_claim: "scope".to_owned(),
            scopes: Vec::new(),
            life_seconds: 3600,
            extensions: Vec::new(),
        }
    }

    /// Parses the property: `name=value` fields, separated by spaces. Error: what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut fields = Self::of(String::new());
        if text.contains('"') {
            return Err("sasl.oauthbearer.config must not contain the character \"".to_owned());
        }
        let mut seen = Vec::new();
        for field in text.split(' ').filter(|field| !field.is_empty()) {
            let unknown =
                || format!("Unrecognized sasl.oauthbearer.config beginning at: {}", super::quoted(field));
            let (name, value) = field.split_once('=').ok_or_else(unknown)?;
            if seen.contains(&name) {
                return Err(format!("Invalid sasl.oauthbearer.config: multiple '{name}=' entries"));
            }
            seen.push(name);
            if value.is_empty() && !name.starts_with("extension_") {
                return Err(format!("Invalid sasl.oauthbearer.config: empty '{name}='"));
            }
            match name {
                "principalClaimName" => fields.principal_claim = value.to_owned(),
                "principal" => fields.principal = value.to_owned(),
                "scopeClaimName" => fields.scope_claim = value.to_owned(),
                "scope" => fields.set_scopes(value),
                "lifeSeconds" => {
                    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
                    fields.life_seconds = seconds.ok_or_else(|| {
                        format!("Invalid sasl.oauthbearer.config: value for 'lifeSeconds={}' is no number above 0",
                            super::quoted(value))
                    })?;
                }
                _ => {
                    let name = name.strip_prefix("extension_").ok_or_else(unknown)?;
                    fields.extensions.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        if fields.principal.is_empty() {
            return Err("Invalid sasl.oauthbearer.config: no principal=<value>".to_owned());
        }
        check_extensions(&fields.extensions)?;
        Ok(fields)
    }

    fn set_scopes(&mut self, list: &str) {
        for scope in list.split(',').filter(|scope| !scope.is_empty()) {
            if !self.scopes.iter().any(|known| known == scope) {
                self.scopes.push(scope.to_owned());
            }
        }
    }

    /// Returns a new token. `unix_ms` is the current time in milliseconds since 1970.
    pub fn token(&self, now: Instant, unix_ms: i64) -> Result<Token, String> {
        let expires_ms = unix_ms.saturating_add(i64::from(self.life_seconds) * 1000);
        let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms.rem_euclid(1000));
        let mut claims = format!(
            "{{{}:{},\"iat\":{},\"exp\":{}",
            json(&self.principal_claim),
            json(&self.principal),
            seconds(unix_ms),
            seconds(expires_ms)
        );
        if !self.scopes.is_empty() {
            let scopes: Vec<_> = self.scopes.iter().map(|scope| json(scope)).collect();
            claims.push_str(&format!(",{}:[{}]", json(&self.scope_claim), scopes.join(",")));
        }
        claims.push('}');
        let header = base64::encode(Alphabet::Url, b"{\"alg\":\"none\"}");
        let claims = base64::encode(Alphabet::Url, claims.as_bytes());
        let value = Secret::concat(&[header.as_bytes(), b".", claims.as_bytes(), b"."]);
        Token::new(now, unix_ms, value, expires_ms, &self.principal, self.extensions.clone())
    }
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
        let token = UnsecuredToken::parse(config).unwrap().token(Instant::ZERO, 1_234_005).unwrap();
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
        let token = fields.token(Instant::ZERO, 0).unwrap();
        assert_eq!(token.extensions().len(), 2);
    }

    #[test]
    fn malformed_configurations_are_refused() {
        for (config, part) in [
            ("", "no principal"),
            ("scope=a", "no principal"),
            ("principal=", "empty"),
            ("principal=a principal=b", "multiple"),
            ("principal=a\"", "\""),
            ("principal=a blah", "Unrecognized sasl.oauthbearer.config beginning at: blah"),
            ("principal=a foo=bar", "beginning at: foo=bar"),
            ("principal=a lifeSeconds=0", "lifeSeconds"),
            ("principal=a lifeSeconds=-1", "lifeSeconds"),
            ("principal=a lifeSeconds=x", "lifeSeconds"),
            ("principal=a extension_auth=x", "auth"),
            ("principal=a extension_=x", "A-Z"),
        ] {
            let error = UnsecuredToken::parse(config).unwrap_err();
            assert!(error.contains(part), "{config}: {error}");
        }
    }
}
