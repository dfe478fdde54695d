//! Tokens without a signature, as Kafka's validator for development reads them.

use super::base64;

/// The claims of a token that matter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub subject: String,
    /// The end of the token in milliseconds since 1970.
    pub expires_ms: i64,
}

impl Claims {
    /// Reads the token of the client's first message; `None` if the message or the token is malformed, or signed.
    pub fn of_first_message(message: &[u8]) -> Option<Self> {
        let token = bearer(message)?;
        let mut parts = token.split('.');
        let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        if !signature.is_empty() || parts.next().is_some() {
            return None;
        }
        let json = |part| base64::decode(part).and_then(|bytes| String::from_utf8(bytes).ok());
        if member(&json(header)?, "alg")? != "\"none\"" {
            return None;
        }
        let claims = json(claims)?;
        let subject = member(&claims, "sub")?.strip_prefix('"')?.strip_suffix('"')?.to_owned();
        let seconds: f64 = member(&claims, "exp")?.parse().ok()?;
        (!subject.is_empty()).then_some(Self { subject, expires_ms: (seconds * 1000.0) as i64 })
    }
}

/// Returns the token of the client's first message.
pub(super) fn bearer(message: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(message).ok()?.strip_prefix("n,,\u{1}")?.strip_suffix("\u{1}\u{1}")?;
    text.split('\u{1}').find_map(|field| field.strip_prefix("auth=Bearer "))
}

/// Returns the text of an object's member, if it is a number or a string without escapes.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = object.split_once(&format!("\"{name}\""))?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.strip_prefix('"') {
        Some(text) => text.find(['"', '\\']).filter(|end| text.as_bytes()[*end] == b'"')? + 2,
        None => value.find([',', '}', ' '])?,
    };
    Some(&value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(header: &str, claims: &str, signature: &str) -> Option<Claims> {
        let (header, claims) = (base64::encode(header.as_bytes()), base64::encode(claims.as_bytes()));
        let message = format!("n,,\u{1}auth=Bearer {header}.{claims}.{signature}\u{1}traceId=1\u{1}\u{1}");
        Claims::of_first_message(message.as_bytes())
    }

    #[test]
    fn subject_and_end_are_read() {
        let read = claims(r#"{"alg":"none"}"#, r#"{"iat": 1.5, "sub": "alice", "exp" : 12.345}"#, "");
        assert_eq!(read, Some(Claims { subject: "alice".to_owned(), expires_ms: 12_345 }));
    }

    #[test]
    fn malformed_and_signed_tokens_are_refused() {
        let none = r#"{"alg":"none"}"#;
        let good = r#"{"sub":"alice","exp":1}"#;
        assert!(claims(none, good, "").is_some());
        for (header, body, signature) in [
            (r#"{"alg":"RS256"}"#, good, ""),
            (none, good, "x"),
            (none, r#"{"sub":"alice"}"#, ""),
            (none, r#"{"exp":1}"#, ""),
            (none, r#"{"sub":"","exp":1}"#, ""),
            (none, r#"{"sub":1,"exp":"a"}"#, ""),
            (none, "", ""),
            ("", good, ""),
        ] {
            assert_eq!(claims(header, body, signature), None, "{header} {body}");
        }
        for message in ["", "n,,", "n,,\u{1}auth=Bearer x\u{1}\u{1}", "n,,\u{1}\u{1}"] {
            assert_eq!(Claims::of_first_message(message.as_bytes()), None);
        }
    }
}
