//! SASL on a connection: after the API versions are known, and again before the session ends (KIP-368).
//!
//! A re-authentication follows the requests in flight on the same connection. Brokers handle the requests of a connection in
//! order, so the client sends as much as it can without waiting:
//!
//! ```text
//!   requests in flight, SaslHandshake + first message, ... wait ..., last message + further requests
//! ```
//!
//! A further request thus waits for one round trip with SCRAM and OAUTHBEARER, two with GSSAPI, and none with the other
//! mechanisms. The first authentication of a connection goes step by step, because the broker has to name its mechanisms.
//! A connection without a token waits for one before it connects.
//!
//! # Pitfalls
//!
//! - A proxy may expect one message at a time. After a connection that ended during a re-authentication, the client waits
//!   for each response (`broker_that_fails_during_a_re_authentication_gets_single_steps`).
//! - A broker closes the connection on any other request in the middle of a re-authentication
//!   (`requests_wait_while_a_connection_authenticates_again`). With OAUTHBEARER every message may be in the middle: to
//!   one that follows a refused token, Kafka responds with an error, which would fail records
//!   (`requests_wait_for_the_response_to_a_token`).
//! - The answer with the lifetime of a session takes its time: a session that is counted from its arrival ends too late
//!   (`session_is_counted_from_the_last_message`).
//! - Brokers do not respond to the last message of Kerberos if it has no Kafka header, as those before 1.0 and after
//!   SaslHandshake version 0; Kafka 0.9 has no SaslHandshake at all, and no other mechanism
//!   (`kerberos_of_kafka_0_9_begins_without_a_handshake`).
//! - A request in flight, such as JoinGroup, may delay the response to SaslHandshake by minutes
//!   (`authentication_has_time_for_the_requests_before_it`).

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse},
        sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse},
    },
    primitive::Reader,
};
use zeroize::Zeroize;

use super::{Connection, Response, State};
use crate::{
    config::sasl::Mechanism,
    connection::inflight::{InFlight, Payload, RequestTag},
    error::{Error, ErrorKind},
    machine::Instant,
    sasl::{SaslShared, Token, exchange::Exchange, scram::Progress},
    secret::Secret,
};

/// The largest message of a broker in an authentication.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The authentication of a connection.
#[derive(Debug, Default)]
pub(super) enum Authentication {
    /// It was not necessary, or has not begun.
    #[default]
    None,
    /// It is running. Until the client's last message, the connection sends no other request.
    Running(Box<Exchange>),
    /// The broker has accepted it.
    Done(Session),
}

/// What a broker has granted.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// When to authenticate again, and when the session ends.
    renewal: Option<(Instant, Instant)>,
    /// The token that was sent.
    token: Option<Arc<Token>>,
    /// The session can only be renewed with another token.
    needs_token: bool,
    /// A request was sent since the connection authenticated.
    pub(super) was_used: bool,
}

impl Authentication {
    pub(super) const fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Returns true if a message waits for the end of a throttle time.
    pub(super) fn is_holding(&self) -> bool {
        matches!(self, Self::Running(exchange) if exchange.is_holding())
    }

    /// Returns true if a further request would stand between the messages of the authentication.
    pub(super) fn is_blocking(&self) -> bool {
        matches!(self, Self::Running(exchange) if !exchange.is_last_sent())
    }

    /// Returns true if the messages of the running authentication have no Kafka header.
    pub(super) fn is_raw(&self) -> bool {
        matches!(self, Self::Running(exchange) if exchange.is_raw)
    }

    /// Returns when [`Connection::handle_authentication_timeout`] has something to do.
    pub(super) fn poll_timeout(
        &self,
        last_activity: Instant,
        throttled_until: Option<Instant>,
    ) -> Option<Instant> {
        match self {
            Self::Running(exchange) => exchange.is_deriving().then_some(last_activity),
            Self::Done(Session { renewal: Some((at, end)), needs_token, .. }) => {
                Some(if *needs_token { *end } else { throttled_until.map_or(*at, |until| until.max(*at)) })
            }
            Self::None | Self::Done(_) => None,
        }
    }
}

/// Returns true if a connection can authenticate now.
pub(super) fn is_prepared(sasl: Option<&Arc<SaslShared>>, now: Instant) -> bool {
    sasl.is_none_or(|sasl| match sasl.settings().mechanism {
        Mechanism::Gssapi => sasl.has_kerberos(),
        mechanism => !mechanism.needs_token() || sasl.valid_token(now).is_some(),
    })
}

/// Overwrites a request that contains a secret.
pub(super) fn erase(request: &mut InFlight) {
    if let (RequestTag::Sasl, Payload::Bytes(bytes)) = (request.tag, &mut request.payload) {
        bytes.zeroize();
    }
}

impl Connection {
    /// Handles changed credentials, or a new token.
    pub fn handle_credentials(&mut self, now: Instant) {
        match self.state {
            State::AwaitingToken if is_prepared(self.settings.sasl.as_ref(), now) => self.start(now),
            // The last attempt may have failed because of the old ones.
            State::BackingOff { .. } => self.state = State::BackingOff { until: now },
            _ => {}
        }
        if let Authentication::Done(session) = &mut self.authentication {
            session.needs_token = false;
        }
    }

    /// Sends the next message of Kerberos, if its library has made it.
    pub fn handle_sasl_reply(&mut self, now: Instant) {
        let Authentication::Running(exchange) = &mut self.authentication else { return };
        match exchange.take_reply() {
            Some(Ok(message)) => self.send_message(now, message),
            Some(Err(error)) => self.fail(now, error),
            None => {}
        }
    }

    /// Begins an authentication, if SASL is in use.
    pub(super) fn authenticate(&mut self, now: Instant) {
        let Some(sasl) = &self.settings.sasl else { return self.become_ready(now) };
        let is_again = matches!(self.authentication, Authentication::Done(_));
        let has_messages = self.versions.pick_any(ApiKey::SaslAuthenticate).is_some();
        let highest = i16::from(has_messages);
        let Some(version) = self.versions.pick(ApiKey::SaslHandshake, 0..=highest) else {
            if self.versions.is_guessed() && sasl.settings().mechanism == Mechanism::Gssapi {
                let exchange = Exchange::new(Arc::clone(sasl), &self.host, true);
                self.authentication = Authentication::Running(Box::new(exchange));
                return self.begin_exchange(now).unwrap_or_else(|error| self.fail(now, error));
            }
            let detail = "the broker does not support SaslHandshake, which brokers from 0.10 on do; check \
                          security.protocol, and broker.version.fallback if it is set";
            return self.fail(now, Error::new(ErrorKind::Authentication, detail));
        };
        let is_raw = version == 0;
        let exchange = Exchange::new(Arc::clone(sasl), &self.host, is_raw);
        let request = SaslHandshakeRequest { mechanism: exchange.mechanism().name().to_owned() };
        self.authentication = Authentication::Running(Box::new(exchange));
        let timeout = self.authentication_timeout(now);
        let encode = |out: &mut Vec<u8>| request.encode(version, out);
        let mut sent = self.send(now, ApiKey::SaslHandshake, version, RequestTag::Sasl, timeout, encode);
        // The broker has accepted the mechanism before.
        if sent.is_ok() && is_again && !is_raw && !self.reauthenticates_in_steps {
            sent = self.begin_exchange(now);
        }
        if let Err(error) = sent {
            self.fail(now, error);
        }
    }

    /// Sends the first message of the mechanism, if it is there.
    fn begin_exchange(&mut self, now: Instant) -> Result<(), Error> {
        let Authentication::Running(exchange) = &mut self.authentication else { return Ok(()) };
        if let Progress::Send(first) = exchange.begin(now)? {
            self.send_message(now, first);
        }
        Ok(())
    }

    /// Returns the timeout of a request of an authentication, which the broker handles after those in flight.
    fn authentication_timeout(&self, now: Instant) -> Duration {
        self.settings.setup_timeout + self.in_flight.longest_wait(now)
    }

    /// Continues a running authentication, or begins it again because the session ends soon.
    pub(super) fn handle_authentication_timeout(&mut self, now: Instant) {
        match &mut self.authentication {
            Authentication::Running(exchange) if exchange.is_holding() => {
                if self.throttled_until.is_none()
                    && let Some(message) = exchange.take_held()
                {
                    self.send_message(now, message);
                }
            }
            Authentication::Running(exchange) => {
                if exchange.is_deriving()
                    && let Some(message) = exchange.derive()
                {
                    self.send_message(now, message);
                }
            }
            Authentication::Done(session) => {
                let Some((at, end)) = session.renewal else { return };
                if session.needs_token && end <= now {
                    // A broker would close the connection on the next request, without a response.
                    let mechanism =
                        self.settings.sasl.as_ref().map_or("", |sasl| sasl.settings().mechanism.name());
                    let detail = format!(
                        "SASL {mechanism}: the session has ended with its token, and there is no newer one"
                    );
                    return self.fail(now, Error::new(ErrorKind::Authentication, detail));
                }
                if at > now || session.needs_token || self.throttled_until.is_some() {
                    return;
                }
                let token = self.settings.sasl.as_ref().and_then(|sasl| sasl.valid_token(now));
                let is_same = match (&session.token, &token) {
                    (Some(sent), Some(token)) => Arc::ptr_eq(sent, token) && token.expires_at() <= end,
                    (Some(_), None) => true,
                    (None, _) => false,
                };
                if is_same {
                    // The same token would buy only the rest of its own life. A new one has been requested.
                    session.needs_token = true;
                } else if self.settings.max_idle.is_some() && !session.was_used {
                    self.become_idle(false, &"the session ended unused");
                } else {
                    self.authenticate(now);
                }
            }
            // The broker throttled the client before it authenticated.
            Authentication::None if self.state == State::Authenticating && self.throttled_until.is_none() => {
                self.authenticate(now);
            }
            Authentication::None => {}
        }
    }

    /// Handles the response to a request of an authentication.
    pub(super) fn handle_authentication(&mut self, now: Instant, mut response: Response) {
        erase(&mut response.request);
        if let Err(error) = self.continue_authentication(now, &response) {
            self.fail(now, error.with_api(response.request.api.name()));
        }
    }

    fn continue_authentication(&mut self, now: Instant, response: &Response) -> Result<(), Error> {
        let Authentication::Running(exchange) = &mut self.authentication else {
            return Err(Error::new(ErrorKind::Bug, "a response of SASL outside of an authentication"));
        };
        let version = response.request.version;
        let reader = &mut Reader::new(response.body());
        let bad = |error: ottla_protocol::primitive::DecodeError| {
            Error::new(ErrorKind::BadResponse, format!("the response can't be decoded: {error}"))
        };
        if response.body().len() > MAX_MESSAGE_BYTES {
            return Err(exchange.error(format!("the broker's message has {} bytes", response.body().len())));
        }
        if response.request.api == ApiKey::SaslHandshake {
            let answer = SaslHandshakeResponse::decode(reader, version).map_err(bad)?;
            let is_again = self.state == State::Ready;
            exchange.check_handshake(answer.error_code, &answer.mechanisms, is_again)?;
            return if exchange.has_begun() { Ok(()) } else { self.begin_exchange(now) };
        }
        let answer = if exchange.is_raw {
            SaslAuthenticateResponse { auth_bytes: response.body().to_vec(), ..Default::default() }
        } else {
            SaslAuthenticateResponse::decode(reader, version).map_err(bad)?
        };
        if answer.error_code != ErrorCode::NONE {
            let error = exchange.refused(answer.error_code, answer.error_message.as_deref());
            if answer.error_code == ErrorCode::SASL_AUTHENTICATION_FAILED {
                // The credentials are the cause, and not a broker that wants single steps.
                self.authentication = Authentication::None;
            }
            return Err(error);
        }
        match exchange.handle(&answer.auth_bytes)? {
            Progress::Send(message) => self.send_message(now, message),
            // `handle_authentication_timeout` derives.
            Progress::Derive => {}
            Progress::Done => {
                self.finish_authentication(now, response.request.written_at, answer.session_lifetime_ms);
            }
        }
        Ok(())
    }

    /// Sends a message of an authentication, or keeps it while the broker throttles the client: a response to another request
    /// may have begun a throttle time since the authentication began.
    fn send_message(&mut self, now: Instant, message: Secret) {
        let timeout = self.authentication_timeout(now);
        let Authentication::Running(exchange) = &mut self.authentication else { return };
        if self.throttled_until.is_some() {
            return exchange.hold(message);
        }
        if exchange.is_raw {
            let length = (message.len() as u32).to_be_bytes();
            let mut bytes = Vec::with_capacity(4 + message.len());
            bytes.extend_from_slice(&length);
            bytes.extend_from_slice(message.expose());
            let has_response = !exchange.ends_without_response();
            let (id, payload) = (self.next_correlation_id(), Payload::Bytes(bytes));
            let tag = RequestTag::Sasl;
            self.push(now, ApiKey::SaslAuthenticate, 0, tag, payload, id, has_response, timeout);
            if !has_response {
                self.finish_authentication(now, now, 0);
            }
            return;
        }
        let version = self.versions.pick_any(ApiKey::SaslAuthenticate).unwrap_or(0);
        let mut request = SaslAuthenticateRequest { auth_bytes: message.expose().to_vec() };
        let encode = |out: &mut Vec<u8>| {
            // A buffer that grows would leave copies behind.
            out.reserve_exact(message.len() + 16);
            request.encode(version, out)
        };
        let sent = self.send(now, ApiKey::SaslAuthenticate, version, RequestTag::Sasl, timeout, encode);
        request.auth_bytes.zeroize();
        if let Err(error) = sent {
            self.fail(now, error);
        }
    }

    /// `sent_at` is when the last message was written.
    fn finish_authentication(&mut self, now: Instant, sent_at: Instant, lifetime_ms: i64) {
        let Authentication::Running(exchange) = std::mem::take(&mut self.authentication) else { return };
        let lifetime = u64::try_from(lifetime_ms).ok().filter(|millis| *millis > 0);
        let renewal = lifetime.map(|millis| {
            let lifetime = Duration::from_millis(millis.min(u64::from(u32::MAX) * 1000));
            // At a random time, so that the connections of many clients do not do it together.
            let percent = 85 + self.rng.below(11) as u32;
            // Kafka refuses a second re-authentication within a second.
            let earliest = now + (lifetime / 2).min(Duration::from_secs(1));
            (earliest.max(sent_at + lifetime * percent / 100), now + lifetime)
        });
        let token = exchange.token().cloned();
        // Requests may have followed the last message.
        let was_used = !self.in_flight.is_empty();
        let session = Session { renewal, token, was_used, ..Session::default() };
        self.authentication = Authentication::Done(session);
        if self.state == State::Authenticating {
            self.become_ready(now);
        }
    }
}
