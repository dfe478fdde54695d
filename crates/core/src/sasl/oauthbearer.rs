//! OAUTHBEARER (RFC 7628, KIP-255): a token of an identity provider.

use super::{scram::Progress, token::Token};
use crate::{secret::Secret, shown::quoted};

/// The client's side of one authentication, after the first message.
#[derive(Debug, Default)]
pub struct OauthBearer {
    /// The broker's refusal. It follows it with an error after the client's acknowledgement.
    refusal: Option<String>,
}

impl OauthBearer {
    /// Returns the first message.
    pub fn first(token: &Token) -> Secret {
        let mut parts: Vec<&[u8]> = vec![b"n,,\x01auth=Bearer ", token.value().expose(), b"\x01"];
        for (key, value) in token.extensions() {
            parts.extend([key.as_bytes(), b"=", value.as_bytes(), b"\x01"]);
        }
        parts.push(b"\x01");
        Secret::concat(&parts)
    }

    /// Handles a message of the broker: none accepts the token, JSON refuses it.
    pub fn handle(&mut self, message: &[u8]) -> Result<Progress, String> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        if message.is_empty() {
            return Ok(Progress::Done);
        }
        self.refusal = Some(format!(
            "the broker refused the token: {}",
            quoted(&String::from_utf8_lossy(&message[..message.len().min(2000)]))
        ));
        Ok(Progress::Send(Secret::new(vec![1])))
    }

    /// Returns the broker's refusal, if it has refused the token.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Instant;

    #[test]
    fn first_message_has_token_and_extensions() {
        let extensions = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2 3".to_owned())];
        let token = Token::new(Instant::ZERO, 0, "x.y.z".into(), 1, "", extensions).unwrap();
        let expected = b"n,,\x01auth=Bearer x.y.z\x01a=1\x01b=2 3\x01\x01";
        assert_eq!(OauthBearer::first(&token).expose(), expected);
    }

    #[test]
    fn refusal_is_acknowledged_and_then_the_error() {
        let mut machine = OauthBearer::default();
        match machine.handle(b"{\"status\":\"invalid_token\"}\x07") {
            Ok(Progress::Send(sent)) => assert_eq!(sent.expose(), [1]),
            other => panic!("{other:?}"),
        }
        let error = machine.handle(b"").unwrap_err();
        assert!(error.contains("{\"status\":\"invalid_token\"} ") && !error.contains('\u{7}'), "{error}");
        assert!(matches!(OauthBearer::default().handle(b""), Ok(Progress::Done)));
    }
}
