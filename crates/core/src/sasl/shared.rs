//! The state that all connections of a client share for SASL: the credentials, which the application may change at run time.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    gssapi::{Kerberos, Negotiation},
    settings::SaslSettings,
    token::Token,
};
use crate::{
    base64::{self, Alphabet},
    hash::Hash,
    lock::Mutex,
    machine::Instant,
    secret::Secret,
    wake::WakeHandle,
};

/// User name and password of PLAIN and SCRAM.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `sasl.username`.
    pub username: String,
    /// `sasl.password`.
    pub password: Secret,
    /// True if these are the ID and the HMAC of a delegation token (KIP-48).
    pub is_delegation_token: bool,
}

impl Credentials {
    /// Creates the credentials of a user.
    pub fn new(username: &str, password: Secret) -> Self {
        Self { username: username.to_owned(), password, is_delegation_token: false }
    }
}

/// Shows nothing: the user name may be the ID of a token.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// The result of a SCRAM derivation. The connections of a client share it, because it costs milliseconds.
#[derive(Debug)]
pub struct SaltedPassword {
    pub(super) credentials: Arc<Credentials>,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
    pub(super) key: Secret,
}

impl SaltedPassword {
    /// Returns true if it was derived from the same values.
    pub(super) fn is_of(&self, credentials: &Arc<Credentials>, salt: &[u8], iterations: u32) -> bool {
        Arc::ptr_eq(&self.credentials, credentials) && self.salt == salt && self.iterations == iterations
    }
}

/// The shared state. Its locks are held for the time of a copy.
pub struct SaslShared {
    settings: SaslSettings,
    state: Mutex<State>,
    nonce_key: Secret,
    nonces: AtomicU64,
    refresh: OnceLock<WakeHandle>,
    kerberos: OnceLock<Box<dyn Kerberos>>,
    /// True once the cluster actor has asked for a token.
    is_wanted: AtomicBool,
}

struct State {
    credentials: Arc<Credentials>,
    salted: Option<Arc<SaltedPassword>>,
    token: Option<Arc<Token>>,
}

impl SaslShared {
    /// Creates the state. `nonce_key` has at least 32 random bytes of the operating system.
    pub fn new(settings: SaslSettings, nonce_key: Secret) -> Self {
        let credentials = Arc::new(settings.credentials.clone());
        Self {
            settings,
            state: Mutex::new(State { credentials, salted: None, token: None }),
            nonce_key,
            nonces: AtomicU64::new(0),
            refresh: OnceLock::new(),
            kerberos: OnceLock::new(),
            is_wanted: AtomicBool::new(false),
        }
    }

    /// Returns the settings.
    pub const fn settings(&self) -> &SaslSettings {
        &self.settings
    }

    /// Sets what the cluster actor wakes when it needs a token. Later calls have no effect. Returns true if it has needed one
    /// before; then [`Command::RequestToken`](crate::cluster::command::Command::RequestToken) makes it wake again.
    #[must_use]
    pub fn set_refresh(&self, wake: WakeHandle) -> bool {
        let _ = self.refresh.set(wake);
        self.is_wanted.load(Ordering::SeqCst)
    }

    /// Sets what speaks Kerberos. Later calls have no effect.
    pub fn set_kerberos(&self, kerberos: Box<dyn Kerberos>) {
        let _ = self.kerberos.set(kerberos);
    }

    /// Returns true once Kerberos was set.
    pub(crate) fn has_kerberos(&self) -> bool {
        self.kerberos.get().is_some()
    }

    /// Starts an authentication with Kerberos at the broker with this name; `None` before Kerberos was set.
    pub(super) fn negotiate(&self, host: &str) -> Option<Box<dyn Negotiation>> {
        self.kerberos.get().map(|kerberos| kerberos.start(host))
    }

    /// Asks the application for a token.
    pub(crate) fn request_token(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
        if let Some(wake) = self.refresh.get() {
            wake.wake();
        }
    }

    /// Replaces user name and password. Existing connections stay; new ones, and re-authentications, use the new ones.
    pub fn set_credentials(&self, username: &str, password: Secret) {
        let is_delegation_token = self.settings.credentials.is_delegation_token;
        let credentials = Credentials { is_delegation_token, ..Credentials::new(username, password) };
        let mut state = self.state.lock();
        state.credentials = Arc::new(credentials);
        state.salted = None;
    }

    /// Returns user name and password.
    pub fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.state.lock().credentials)
    }

    /// Replaces the token.
    pub fn set_token(&self, token: Token) {
        self.state.lock().token = Some(Arc::new(token));
    }

    /// Returns the token.
    pub fn token(&self) -> Option<Arc<Token>> {
        self.state.lock().token.clone()
    }

    /// Returns the token unless it has expired.
    pub fn valid_token(&self, now: Instant) -> Option<Arc<Token>> {
        self.token().filter(|token| token.expires_at() > now)
    }

    /// Returns the last derived salted password.
    pub(super) fn salted(&self) -> Option<Arc<SaltedPassword>> {
        self.state.lock().salted.clone()
    }

    /// Keeps a derived salted password, unless the credentials have changed.
    pub(super) fn keep_salted(&self, salted: SaltedPassword) {
        let mut state = self.state.lock();
        if Arc::ptr_eq(&state.credentials, &salted.credentials) {
            state.salted = Some(Arc::new(salted));
        }
    }

    /// Returns a nonce that was not used before and can't be predicted: 32 letters, digits, `+` and `/`.
    pub(super) fn nonce(&self) -> String {
        let number = self.nonces.fetch_add(1, Ordering::Relaxed);
        let digest = Hash::Sha256.hmac(self.nonce_key.expose(), &number.to_be_bytes());
        base64::encode(Alphabet::Standard, &digest.expose()[..24])
    }
}

impl fmt::Debug for SaslShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslShared").field("mechanism", &self.settings.mechanism).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla_sorted::SortedSet;

    fn shared(key: &str) -> SaslShared {
        SaslShared::new(SaslSettings::default(), key.into())
    }

    #[test]
    fn nonces_never_repeat_and_depend_on_the_key() {
        let (one, other) = (shared("a"), shared("b"));
        let nonces: SortedSet<_> = (0..100).flat_map(|_| [one.nonce(), other.nonce()]).collect();
        assert_eq!(nonces.len(), 200);
        assert!(nonces.iter().all(|nonce| nonce.len() == 32 && !nonce.contains(',')));
    }

    #[test]
    fn debug_shows_no_secret() {
        let shared = shared("key");
        shared.set_credentials("alice", "hunter2".into());
        let token = Token::new(Instant::ZERO, 0, "hunter2".into(), 1, "", Vec::new()).unwrap();
        shared.set_token(token);
        let shown =
            format!("{shared:?} {:?} {:?} {:?}", shared.credentials(), shared.token(), shared.settings());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
