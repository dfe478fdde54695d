//! One authentication on one connection.
//!
//! ```text
//!   Exchange::new ─► SaslHandshake ─► check_handshake ─► begin ─► first message ─► handle ─► next message ... ─► Done
//!                                                                                     └─ Derive ─► derive ─┘
//! ```
//!
//! A re-authentication may call `begin` before the response to SaslHandshake arrives.

use std::sync::Arc;

use ottla_protocol::error_code::ErrorCode;

use super::{
    aws,
    gssapi::{Negotiation, Reply},
    oauthbearer::OauthBearer,
    plain,
    scram::{Progress, Scram},
    shared::SaslShared,
    token::Token,
};
use crate::{
    config::sasl::mechanism::Mechanism,
    error::{Error, ErrorKind},
    machine::Instant,
    secret::Secret,
    shown::quoted,
};

/// The state of an authentication.
#[derive(Debug)]
pub struct Exchange {
    shared: Arc<SaslShared>,
    state: State,
    /// The token that was sent.
    token: Option<Arc<Token>>,
    /// A message that waits for the end of a throttle time.
    held: Option<Secret>,
    /// The broker's name.
    host: String,
    /// True if messages have no Kafka header (SaslHandshake version 0).
    pub is_raw: bool,
}

#[derive(Debug)]
enum State {
    /// The broker has not accepted the mechanism.
    Handshake,
    Plain,
    Scram(Box<Scram>),
    OauthBearer(OauthBearer),
    AwsMskIam,
    /// The Kerberos library makes the messages. After the last one, the broker's response has no meaning.
    Gssapi {
        negotiation: Box<dyn Negotiation>,
        is_last: bool,
    },
}

impl Exchange {
    /// Starts an authentication at the broker with this name.
    pub fn new(shared: Arc<SaslShared>, host: &str, is_raw: bool) -> Self {
        Self { shared, state: State::Handshake, token: None, held: None, host: host.to_owned(), is_raw }
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> Mechanism {
        self.shared.settings().mechanism
    }

    /// Returns the token that was sent, with OAUTHBEARER.
    pub fn token(&self) -> Option<&Arc<Token>> {
        self.token.as_ref()
    }

    /// Keeps a message until the broker no longer throttles the client.
    pub fn hold(&mut self, message: Secret) {
        self.held = Some(message);
    }

    /// Returns true if a message waits for the end of a throttle time.
    pub const fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the message that waited.
    pub fn take_held(&mut self) -> Option<Secret> {
        self.held.take()
    }

    /// Returns true while work is left that needs no message of the broker.
    pub fn is_deriving(&self) -> bool {
        matches!(&self.state, State::Scram(scram) if scram.is_deriving())
    }

    /// Creates an error about this authentication.
    pub fn error(&self, detail: impl AsRef<str>) -> Error {
        let detail = format!("SASL {}: {}", self.mechanism(), detail.as_ref());
        Error::new(ErrorKind::Authentication, detail)
    }

    /// Returns true once [`Exchange::begin`] was called.
    pub const fn has_begun(&self) -> bool {
        !matches!(self.state, State::Handshake)
    }

    /// Returns true if the client has sent its last message, and no response to it asks for another one.
    ///
    /// False with OAUTHBEARER: the broker wants one more message before it refuses a token.
    pub const fn is_last_sent(&self) -> bool {
        match &self.state {
            _ if self.held.is_some() => false,
            State::Plain | State::AwsMskIam => true,
            State::Scram(scram) => scram.has_proved(),
            State::Gssapi { is_last, .. } => *is_last,
            State::Handshake | State::OauthBearer(_) => false,
        }
    }

    /// Returns true if the broker does not respond to the message that was made last.
    pub const fn ends_without_response(&self) -> bool {
        self.is_raw && matches!(self.state, State::Gssapi { is_last: true, .. })
    }

    /// Checks the response to SaslHandshake. `is_again` is true in a re-authentication.
    pub fn check_handshake(&self, code: ErrorCode, offered: &[String], is_again: bool) -> Result<(), Error> {
        let offered = offered.iter().take(50).map(|name| quoted(name)).collect::<Vec<_>>().join(",");
        let detail = match code {
            ErrorCode::NONE => return Ok(()),
            ErrorCode::UNSUPPORTED_SASL_MECHANISM => format!(
                "the broker does not support the mechanism; broker's supported mechanisms: {offered}; set \
                 sasl.mechanisms to one of these"
            ),
            // Kafka allows one re-authentication per second.
            ErrorCode::ILLEGAL_SASL_STATE if is_again => {
                "the broker does not allow another authentication on this connection now; check \
                 connections.max.reauth.ms and the lifetime of tokens, which should be longer than 2 s"
                    .to_owned()
            }
            ErrorCode::ILLEGAL_SASL_STATE if offered.is_empty() => {
                "the listener does not use SASL; set security.protocol to plaintext or ssl, or use the port of a SASL \
                 listener"
                    .to_owned()
            }
            code => format!("mechanism handshake failed: {}: {}", code.name(), code.description()),
        };
        Err(self.error(detail))
    }

    /// Begins with the mechanism. Returns the first message.
    pub fn begin(&mut self, now: Instant) -> Result<Progress, Error> {
        let credentials = self.shared.credentials();
        let first = match self.mechanism() {
            Mechanism::Plain => {
                self.state = State::Plain;
                plain::message(&credentials).map_err(|why| self.error(why))
            }
            Mechanism::Scram(hash) => {
                let max_iterations = self.shared.settings().max_iterations;
                let (scram, first) = Scram::new(hash, credentials, max_iterations, self.shared.nonce());
                self.state = State::Scram(Box::new(scram));
                Ok(first)
            }
            Mechanism::OauthBearer => {
                let token =
                    self.shared.valid_token(now).ok_or_else(|| self.error("the token has expired"))?;
                let first = OauthBearer::first(&token);
                self.token = Some(token);
                self.state = State::OauthBearer(OauthBearer::default());
                Ok(first)
            }
            Mechanism::AwsMskIam => {
                let token = self.shared.valid_token(now).filter(|token| token.keys().is_some());
                let token = token.ok_or_else(|| self.error("the keys have expired"))?;
                let signed = token.keys().map(|keys| aws::message(keys, &self.host, token.unix_seconds(now)));
                self.token = Some(Arc::clone(&token));
                self.state = State::AwsMskIam;
                signed.unwrap_or_else(|| Ok(Secret::default())).map_err(|why| self.error(why))
            }
            Mechanism::Gssapi => {
                let negotiation = self.shared.negotiate(&self.host);
                let mut negotiation =
                    negotiation.ok_or_else(|| self.error("the client has no Kerberos library"))?;
                negotiation.pass(b"");
                self.state = State::Gssapi { negotiation, is_last: false };
                return Ok(Progress::Derive);
            }
        };
        first.map(Progress::Send)
    }

    /// Handles a message of the broker.
    pub fn handle(&mut self, message: &[u8]) -> Result<Progress, Error> {
        let progress = match &mut self.state {
            State::Handshake => Err("the broker sent a message before the handshake".to_owned()),
            // The content of the broker's message has no meaning.
            State::Plain | State::AwsMskIam => Ok(Progress::Done),
            State::Scram(scram) => scram.handle(message, self.shared.salted().as_deref()),
            State::OauthBearer(machine) => machine.handle(message),
            State::Gssapi { is_last: true, .. } => Ok(Progress::Done),
            State::Gssapi { negotiation, .. } => {
                negotiation.pass(message);
                Ok(Progress::Derive)
            }
        };
        progress.map_err(|why| self.error(why))
    }

    /// Handles the error code of a SaslAuthenticate response, which ends the authentication.
    pub fn refused(&self, code: ErrorCode, text: Option<&str>) -> Error {
        let text = text.map(quoted).filter(|text| !text.is_empty());
        let mut detail = text.unwrap_or_else(|| format!("{}: {}", code.name(), code.description()));
        if let State::OauthBearer(machine) = &self.state
            && let Some(refusal) = machine.refusal()
        {
            detail = format!("{detail}; {refusal}");
        }
        self.error(detail)
    }

    /// Takes the next message of Kerberos, if it is complete.
    pub fn take_reply(&mut self) -> Option<Result<Secret, Error>> {
        let State::Gssapi { negotiation, is_last } = &mut self.state else { return None };
        let reply = negotiation.take()?.map(|reply| match reply {
            Reply::Message(message) => message,
            Reply::Last(message) => {
                *is_last = true;
                message
            }
        });
        Some(reply.map_err(|why| self.error(why)))
    }

    /// Works for some milliseconds. Returns the next message when it is complete.
    pub fn derive(&mut self) -> Option<Secret> {
        let State::Scram(scram) = &mut self.state else { return None };
        let (message, salted) = scram.derive()?;
        self.shared.keep_salted(salted);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{config::sasl::aws::AwsKeys, sasl::settings::SaslSettings};

    const HOST: &str = "b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com";

    fn exchange(mechanism: &str) -> Exchange {
        let mechanism = Mechanism::parse(mechanism).unwrap();
        let settings = SaslSettings { mechanism, ..SaslSettings::default() };
        Exchange::new(Arc::new(SaslShared::new(settings, "key".into())), HOST, false)
    }

    #[test]
    fn refused_mechanism_lists_the_offered_ones() {
        let exchange = exchange("SCRAM-SHA-256");
        let offered = ["PLAIN".to_owned(), "EVIL\u{7}".to_owned()];
        let code = ErrorCode::UNSUPPORTED_SASL_MECHANISM;
        let error = exchange.check_handshake(code, &offered, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication);
        assert!(error.to_string().contains("supported mechanisms: PLAIN,EVIL ;"), "{error}");
        let code = ErrorCode::ILLEGAL_SASL_STATE;
        let error = exchange.check_handshake(code, &[], false).unwrap_err();
        assert!(error.to_string().contains("does not use SASL"), "{error}");
        let error = exchange.check_handshake(code, &[], true).unwrap_err();
        assert!(error.to_string().contains("another authentication on this connection"), "{error}");
    }

    #[test]
    fn missing_token_and_early_messages_are_errors() {
        let mut exchange = exchange("OAUTHBEARER");
        assert!(exchange.handle(b"").is_err());
        let error = exchange.begin(Instant::ZERO).unwrap_err();
        assert!(error.to_string().contains("expired"), "{error}");
    }

    #[test]
    fn aws_message_is_signed_for_the_broker_at_the_time_of_the_handshake() {
        let mut exchange = exchange("AWS_MSK_IAM");
        let error = exchange.begin(Instant::ZERO).unwrap_err();
        assert!(error.to_string().contains("AWS_MSK_IAM: the keys have expired"), "{error}");
        let keys = AwsKeys {
            access_key: "A".to_owned(),
            secret_key: "hunter2".into(),
            session_token: None,
            region: None,
        };
        let token = Token::of_keys(Instant::ZERO, 1_700_000_000_000, keys, 1_700_000_900_000);
        assert!(!format!("{token:?}").contains("hunter2"));
        exchange.shared.set_token(token);
        let later = Instant::ZERO + Duration::from_secs(61);
        let Ok(Progress::Send(message)) = exchange.begin(later) else { panic!() };
        let text = String::from_utf8(message.expose().to_vec()).unwrap();
        assert!(text.contains("\"x-amz-date\":\"20231114T221421Z\"") && text.contains(HOST), "{text}");
        let accepted = exchange.handle(b"{\"version\":\"2020_10_22\",\"request-id\":\"1\"}");
        assert!(matches!(accepted, Ok(Progress::Done)));
        let expired = Instant::ZERO + Duration::from_secs(900);
        assert!(exchange.begin(expired).is_err());
    }

    #[test]
    fn refusal_has_the_text_of_the_broker() {
        let refused =
            |text| exchange("PLAIN").refused(ErrorCode::SASL_AUTHENTICATION_FAILED, text).to_string();
        assert!(
            refused(Some("Invalid username or password")).contains("PLAIN: Invalid username or password")
        );
        assert!(refused(None).contains("SASL_AUTHENTICATION_FAILED"));
        assert!(refused(Some(&"x".repeat(10_000))).len() < 700);
    }
}
