//! SASL of the brokers' listeners: the accepted users, and the state of a connection's authentication.
//!
//! [`SaslListener`] has the mechanisms and the users. A connection begins with a handshake that names a mechanism, whose
//! [`Server`] handles the messages of the client until it knows the client's principal. `scram`, `unsecured`
//! and `jwks` have the messages and tokens of their mechanisms.
//!
//! # Pitfalls
//!
//! - The client's last SCRAM message must repeat the nonce of the exchange, or an old proof could be sent again
//!   (`proof_for_another_nonce_is_refused`).

mod base64;
mod jwks;
mod keys;
mod scram;
mod unsecured;

use std::{fmt, sync::Arc, time::Duration};

use ottla_protocol::time::Instant;
use ottla_sorted::SortedMap;

use self::{
    jwks::Jwks,
    keys::is_equal,
    scram::ScramServer,
    unsecured::{Claims, bearer},
};
pub(crate) use keys::Keys;
pub use keys::ScramHash;

/// Kafka's response to a token that it does not accept.
const INVALID_TOKEN: &str = "{\"status\":\"invalid_token\"}";

/// A SASL mechanism of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    /// User name and password.
    Plain,
    /// SCRAM-SHA-256 or SCRAM-SHA-512.
    Scram(ScramHash),
    /// Tokens without signatures: every name that a client claims is believed.
    OauthBearerUnsecured,
    /// Tokens of an identity provider, with signatures: [`SaslListener::jwks`] has its keys.
    OauthBearer,
}

impl SaslMechanism {
    /// All mechanisms that need no keys.
    pub const ALL: [Self; 4] = [
        Self::Plain,
        Self::Scram(ScramHash::Sha256),
        Self::Scram(ScramHash::Sha512),
        Self::OauthBearerUnsecured,
    ];

    /// Returns the name that clients use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(ScramHash::Sha256) => "SCRAM-SHA-256",
            Self::Scram(ScramHash::Sha512) => "SCRAM-SHA-512",
            Self::OauthBearerUnsecured | Self::OauthBearer => "OAUTHBEARER",
        }
    }
}

/// The mechanisms and users of all listeners of a cluster (`sasl.enabled.mechanisms`).
#[derive(Clone, Default)]
pub struct SaslListener {
    mechanisms: Vec<SaslMechanism>,
    users: SortedMap<String, User>,
    /// The delegation tokens by ID.
    tokens: SortedMap<String, User>,
    max_session: Option<Duration>,
    grace: Duration,
    /// The keys of the identity provider, shared with the connections.
    jwks: Arc<Jwks>,
}

/// A user, or a delegation token.
#[derive(Clone)]
struct User {
    principal: String,
    /// The password of PLAIN; `None` for users that only have SCRAM credentials.
    password: Option<String>,
    keys: SortedMap<ScramHash, Keys>,
}

impl User {
    fn new(principal: &str, password: &str, iterations: u32) -> Self {
        // A salt per user; in a cluster for tests it may be known.
        let salt = |hash: ScramHash| format!("{}{principal}", hash.size()).into_bytes();
        let keys = |hash: ScramHash| (hash, Keys::new(hash, password.as_bytes(), salt(hash), iterations));
        Self {
            principal: principal.to_owned(),
            password: Some(password.to_owned()),
            keys: [ScramHash::Sha256, ScramHash::Sha512].map(keys).into(),
        }
    }
}

impl SaslListener {
    /// Creates a listener with these mechanisms and without users.
    pub fn new(mechanisms: &[SaslMechanism]) -> Self {
        Self { mechanisms: mechanisms.to_vec(), ..Self::default() }
    }

    /// Adds a user of PLAIN and SCRAM (with 4096 iterations), or replaces the password.
    #[must_use]
    pub fn user(self, name: &str, password: &str) -> Self {
        self.user_with_iterations(name, password, 4096)
    }

    /// Adds a user with this number of SCRAM iterations.
    #[must_use]
    pub fn user_with_iterations(mut self, name: &str, password: &str, iterations: u32) -> Self {
        self.users.insert(name.to_owned(), User::new(name, password, iterations));
        self
    }

    /// Adds a delegation token of a user: its ID and its HMAC as clients send them as name and password of SCRAM.
    #[must_use]
    pub fn delegation_token(mut self, id: &str, hmac: &str, owner: &str) -> Self {
        let token = User { principal: owner.to_owned(), ..User::new(id, hmac, 4096) };
        self.tokens.insert(id.to_owned(), token);
        self
    }

    /// Sets the public keys of the identity provider whose tokens [`SaslMechanism::OauthBearer`] accepts: a JSON Web
    /// Key Set with RSA keys (RS256) and EC keys with P-256 (ES256). Without keys no token is accepted. Error: the
    /// reason why the set is invalid.
    pub fn jwks(mut self, key_set: &str) -> Result<Self, String> {
        let Jwks { issuer, audience, .. } = &*self.jwks;
        let (issuer, audience) = (issuer.clone(), audience.clone());
        self.jwks = Arc::new(Jwks { issuer, audience, ..Jwks::parse(key_set)? });
        Ok(self)
    }

    /// Accepts only tokens of this issuer (`sasl.oauthbearer.expected.issuer`).
    #[must_use]
    pub fn expected_issuer(mut self, issuer: &str) -> Self {
        Arc::make_mut(&mut self.jwks).issuer = Some(issuer.to_owned());
        self
    }

    /// Accepts only tokens for this audience (`sasl.oauthbearer.expected.audience`).
    #[must_use]
    pub fn expected_audience(mut self, audience: &str) -> Self {
        Arc::make_mut(&mut self.jwks).audience = Some(audience.to_owned());
        self
    }

    /// Limits sessions: clients must authenticate again within this time (`connections.max.reauth.ms`).
    #[must_use]
    pub fn max_session(mut self, time: Duration) -> Self {
        self.max_session = Some(time);
        self
    }

    /// Takes requests for this time after the end of a session, unlike Kafka: a test with short sessions then passes on
    /// a machine that delays the client.
    #[must_use]
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Adds a user at run time, or replaces the password. Connections of the user stay.
    pub fn set_user(&mut self, name: &str, password: &str) {
        self.users.insert(name.to_owned(), User::new(name, password, 4096));
    }

    /// Removes a user. Its connections stay.
    pub fn remove_user(&mut self, name: &str) {
        self.users.remove(name);
    }

    /// Adds a delegation token.
    pub(crate) fn add_token(&mut self, id: &str, hmac: &[u8], owner: &str) {
        let token = User { principal: owner.to_owned(), ..User::new(id, &base64::encode(hmac), 4096) };
        self.tokens.insert(id.to_owned(), token);
    }

    /// Replaces the keys of a user, or removes them.
    pub(crate) fn set_keys(&mut self, name: &str, hash: ScramHash, keys: Option<&Keys>) {
        let new = || User { principal: name.to_owned(), password: None, keys: SortedMap::new() };
        let user = self.users.entry(name.to_owned()).or_insert_with(new);
        match keys {
            Some(keys) => drop(user.keys.insert(hash, keys.clone())),
            None => drop(user.keys.remove(&hash)),
        }
    }

    /// Returns the credentials of the listener's SCRAM mechanisms: user, hash and iterations.
    pub(crate) fn credentials(&self) -> impl Iterator<Item = (&str, ScramHash, u32)> {
        self.users.iter().flat_map(|(name, user)| {
            let keys =
                user.keys.iter().filter(|(hash, _)| self.mechanisms.contains(&SaslMechanism::Scram(**hash)));
            keys.map(move |(hash, keys)| (name.as_str(), *hash, keys.iterations))
        })
    }

    /// Returns the names of the mechanisms.
    pub(crate) fn names(&self) -> Vec<String> {
        self.mechanisms.iter().map(|mechanism| mechanism.name().to_owned()).collect()
    }

    /// Starts the authentication with the mechanism of this name, if there is one. `nonce` is for SCRAM.
    pub(crate) fn server(&self, name: &str, nonce: String) -> Option<Server> {
        let mechanism = self.mechanisms.iter().find(|mechanism| mechanism.name() == name)?;
        Some(match mechanism {
            SaslMechanism::Plain => Server::Plain,
            SaslMechanism::Scram(hash) => Server::Scram(Box::new(ScramServer::new(*hash, nonce))),
            SaslMechanism::OauthBearerUnsecured => Server::Token { is_signed: false, is_refused: false },
            SaslMechanism::OauthBearer => Server::Token { is_signed: true, is_refused: false },
        })
    }

    fn plain(&self, message: &[u8]) -> Result<Accepted, String> {
        let text = std::str::from_utf8(message).unwrap_or_default();
        let parts: Vec<&str> = text.split('\0').collect();
        let [authorization, user, password] = parts[..] else {
            return Err("Invalid SASL/PLAIN response: expected 3 tokens".to_owned());
        };
        let known = self.users.get(user);
        let known = known.and_then(|known| known.password.as_ref());
        let is_right = known.is_some_and(|known| is_equal(known.as_bytes(), password.as_bytes()));
        if !is_right || user.is_empty() {
            return Err("Authentication failed: Invalid username or password".to_owned());
        }
        if !authorization.is_empty() && authorization != user {
            return Err(
                "Authentication failed: Client requested an authorization id that is different from \
                        username"
                    .to_owned(),
            );
        }
        Ok(Accepted { principal: user.to_owned(), expires_ms: None })
    }

    fn token(&self, message: &[u8], is_signed: bool, unix_ms: i64) -> Option<Accepted> {
        if is_signed {
            return self.jwks.check(bearer(message)?, unix_ms);
        }
        let Claims { subject: principal, expires_ms } = Claims::of_first_message(message)?;
        (expires_ms > unix_ms).then_some(Accepted { principal, expires_ms: Some(expires_ms) })
    }

    /// Returns how long a session lasts from now on as clients are told, and until when requests are taken.
    pub(crate) fn session(&self, now: Instant, unix_ms: i64, accepted: &Accepted) -> Option<(i64, Instant)> {
        let of_token = accepted.expires_ms.map(|expires_ms| expires_ms.saturating_sub(unix_ms).max(1));
        let limit = self.max_session.map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let millis = of_token.into_iter().chain(limit).min()?.min(i64::from(i32::MAX));
        Some((millis, now + Duration::from_millis(millis.unsigned_abs()) + self.grace))
    }
}

/// Shows no password.
impl fmt::Debug for SaslListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslListener")
            .field("mechanisms", &self.mechanisms)
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

/// The state of a connection's authentication.
#[derive(Debug, Default)]
pub(crate) enum SaslState {
    /// The client has to begin.
    #[default]
    None,
    /// The mechanism is chosen.
    Running { server: Server, is_raw: bool, before: Option<String> },
    /// The client has proved this name, until then.
    Done { principal: String, until: Option<Instant> },
}

/// The broker's side of a mechanism.
#[derive(Debug)]
pub(crate) enum Server {
    Plain,
    Scram(Box<ScramServer>),
    Token { is_signed: bool, is_refused: bool },
}

/// The response of a broker to a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The next message.
    Next(Vec<u8>),
    /// The last message, and the name that the client has proved.
    Accepted(Vec<u8>, Accepted),
}

/// What a client has proved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub principal: String,
    /// The end of its token, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
}

impl Server {
    /// Handles a message of the client. Error: the text of the refusal.
    pub fn handle(
        &mut self,
        listener: &SaslListener,
        message: &[u8],
        unix_ms: i64,
    ) -> Result<Answer, String> {
        match self {
            Self::Plain => listener.plain(message).map(|accepted| Answer::Accepted(Vec::new(), accepted)),
            Self::Scram(server) => {
                let hash = server.hash;
                let find = |name: &str, is_token: bool| {
                    let users = if is_token { &listener.tokens } else { &listener.users };
                    users
                        .get(name)
                        .and_then(|user| Some((user.principal.clone(), user.keys.get(&hash)?.clone())))
                };
                server.handle(message, find).map_err(|()| {
                    format!(
                        "Authentication failed during authentication due to invalid credentials with SASL mechanism {}",
                        SaslMechanism::Scram(hash).name()
                    )
                })
            }
            Self::Token { is_refused: true, .. } => Err(INVALID_TOKEN.to_owned()),
            Self::Token { is_signed, is_refused } => match listener.token(message, *is_signed, unix_ms) {
                Some(accepted) => Ok(Answer::Accepted(Vec::new(), accepted)),
                None => {
                    *is_refused = true;
                    Ok(Answer::Next(INVALID_TOKEN.into()))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> SaslListener {
        SaslListener::new(&SaslMechanism::ALL).user("alice", "secret")
    }

    #[test]
    fn plain_accepts_the_right_password_of_the_user_itself() {
        let listener = listener();
        let mut server = listener.server("PLAIN", String::new()).unwrap();
        let mut principal = |message: &str| match server.handle(&listener, message.as_bytes(), 0) {
            Ok(Answer::Accepted(_, accepted)) => Some(accepted.principal),
            _ => None,
        };
        assert_eq!(principal("\0alice\0secret").as_deref(), Some("alice"));
        assert_eq!(principal("alice\0alice\0secret").as_deref(), Some("alice"));
        for message in [
            "\0alice\0wrong",
            "\0bob\0secret",
            "bob\0alice\0secret",
            "\0alice",
            "",
            "\0\0",
            "\0alice\0secret\0x",
        ] {
            assert_eq!(principal(message), None, "{message:?}");
        }
    }

    #[test]
    fn sessions_end_with_the_limit_or_the_token() {
        let accepted = |expires_ms| Accepted { principal: String::new(), expires_ms };
        let (now, limited) = (Instant::ZERO, listener().max_session(Duration::from_secs(10)));
        assert_eq!(listener().session(now, 0, &accepted(None)), None);
        assert_eq!(listener().session(now, 1000, &accepted(Some(4000))).unwrap().0, 3000);
        assert_eq!(limited.session(now, 1000, &accepted(Some(4000))).unwrap().0, 3000);
        assert_eq!(limited.session(now, 1000, &accepted(Some(90_000))).unwrap().0, 10_000);
        assert_eq!(limited.session(now, 0, &accepted(None)).unwrap().1, now + Duration::from_secs(10));
        let lenient = limited.grace(Duration::from_secs(5)).session(now, 0, &accepted(None));
        assert_eq!(lenient, Some((10_000, now + Duration::from_secs(15))));
    }

    #[test]
    fn unknown_mechanisms_have_no_server_and_debug_shows_no_password() {
        assert!(listener().server("GSSAPI", String::new()).is_none());
        assert!(SaslListener::new(&[SaslMechanism::Plain]).server("OAUTHBEARER", String::new()).is_none());
        assert!(!format!("{:?}", listener()).contains("secret"));
    }
}
