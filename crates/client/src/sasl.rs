//! The credentials of SASL: user names, passwords and tokens that the application sets while a client runs.

use std::{
    fmt,
    sync::{Arc, Weak, mpsc},
    thread,
};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    config::{EffectiveConfig, sasl::Mechanism},
    error::{Error, ErrorKind, Result},
    lock::Mutex,
    sasl::{SaslSettings, SaslShared, refresh::RETRY},
    secret::Secret,
    wake::{Wake, WakeHandle},
};
use ottla_net::{Issuer, KerberosThread};

use crate::oidc::IssuedTokens;

/// A token for OAUTHBEARER.
#[derive(Clone, Debug)]
pub struct OauthToken {
    /// The text, as the identity provider gave it.
    pub value: Secret,
    /// The end of its life, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The name that it stands for.
    pub principal: String,
    /// Extensions for the broker (KIP-342).
    pub extensions: Vec<(String, String)>,
}

/// A function that gets a token of an identity provider. Error: the reason for its absence; after ten seconds it is
/// called again.
///
/// The client calls it on a thread of its own, at the start and when 80 % of a token's lifetime have passed. It may block.
pub type TokenProvider = dyn Fn() -> Result<OauthToken, String> + Send + Sync;

/// The SASL of a client.
#[derive(Clone, Debug)]
pub struct Sasl {
    shared: Arc<SaslShared>,
    commands: Arc<CommandQueue>,
}

/// Creates the client that gets tokens or keys, if the configuration has one and the application has no function for tokens.
pub(crate) fn issuer(
    shared: Option<&Arc<SaslShared>>,
    source: Option<&TokenSource>,
) -> Result<Option<Issuer>> {
    let Some(settings) = shared.map(|shared| shared.settings()) else { return Ok(None) };
    let is_replaced = settings.aws.is_none() && source.is_some();
    if is_replaced { Ok(None) } else { Issuer::of(settings) }
}

/// Creates the shared state of SASL, if the protocol has it.
pub(crate) fn shared(config: &EffectiveConfig<'_>) -> Result<Option<Arc<SaslShared>>> {
    let Some(settings) = SaslSettings::new(config) else { return Ok(None) };
    let key = ottla_net::sasl::random_key().map_err(|error| {
        Error::new(ErrorKind::State, format!("the system has no random numbers: {error}"))
    })?;
    Ok(Some(Arc::new(SaslShared::new(settings, key))))
}

impl Sasl {
    pub(crate) const fn new(shared: Arc<SaslShared>, commands: Arc<CommandQueue>) -> Self {
        Self { shared, commands }
    }

    /// Starts the thread of Kerberos, if it is the mechanism. Error: its library is missing.
    pub(crate) fn start_kerberos(&self) -> Result<()> {
        let Some(kerberos) = self.shared.settings().kerberos.clone() else { return Ok(()) };
        let commands = Arc::clone(&self.commands);
        let thread = KerberosThread::start(
            kerberos,
            Box::new(move || {
                commands.push(Command::SaslReply);
            }),
        )?;
        self.shared.set_kerberos(Box::new(thread));
        // Connections wait for it.
        self.commands.push(Command::Credentials);
        Ok(())
    }

    /// Starts to obtain tokens, if the configuration or the application says how. The application's function takes
    /// precedence over an identity provider.
    pub(crate) fn obtain_tokens(&self, provider: Option<TokenSource>, issuer: Option<Issuer>) -> Result<()> {
        let settings = self.shared.settings();
        if !settings.mechanism.needs_token() {
            return Ok(());
        }
        // The application has tokens for OAUTHBEARER only.
        let provider = provider.filter(|_| settings.mechanism == Mechanism::OauthBearer);
        let wake: Arc<dyn Wake> = match (provider, &settings.unsecured) {
            (Some(_), Some(_)) => {
                let detail = "enable.sasl.oauthbearer.unsecure.jwt and a token provider exclude each other";
                return Err(Error::new(ErrorKind::InvalidArgument, detail));
            }
            (None, Some(_)) => Arc::new(Unsecured(Arc::downgrade(&self.shared), Arc::clone(&self.commands))),
            (Some(TokenSource::Provider(provider)), None) => Arc::new(self.start_provider(provider)?),
            #[cfg(feature = "capi")]
            (Some(TokenSource::Notify(notify)), None) => Arc::new(Notifier(notify)),
            (None, None) => match issuer {
                Some(issuer) => Arc::new(IssuedTokens::new(issuer, &self.shared, &self.commands)),
                None => return Ok(()),
            },
        };
        if self.shared.set_refresh(WakeHandle::new(wake)) {
            // Not here: the caller may hold a lock, and the application may be notified.
            self.commands.push(Command::RequestToken);
        }
        Ok(())
    }

    fn start_provider(&self, provider: Arc<TokenProvider>) -> Result<ProviderThread> {
        let (asks, asked) = mpsc::channel();
        let (shared, commands) = (Arc::downgrade(&self.shared), Arc::clone(&self.commands));
        let run = move || {
            // Ends when the client is gone, which drops the sender.
            while asked.recv().is_ok() {
                let token = provider();
                let Some(shared) = shared.upgrade() else { return };
                let sasl = Self { shared, commands: Arc::clone(&commands) };
                let result = token.and_then(|token| sasl.try_set_token(token));
                if let Err(reason) = result {
                    sasl.commands.push(Command::TokenFailed { reason, retry_in: RETRY });
                }
            }
        };
        thread::Builder::new().name("ottla-token".to_owned()).spawn(run).map_err(|error| {
            Error::new(ErrorKind::State, format!("can't start the thread that gets tokens: {error}"))
        })?;
        Ok(ProviderThread(Mutex::new(asks)))
    }

    /// Replaces user name and password of PLAIN and SCRAM. New connections and re-authentications use them.
    pub fn set_credentials(&self, username: &str, password: Secret) {
        self.shared.set_credentials(username, password);
        self.commands.push(Command::Credentials);
    }

    /// Sets the token. Error: OAUTHBEARER is not in use, or what is wrong with the token.
    pub fn set_token(&self, token: OauthToken) -> Result<()> {
        self.require_tokens()?;
        self.try_set_token(token).map_err(|why| Error::new(ErrorKind::InvalidArgument, why))
    }

    /// Reports that no token could be obtained. The client uses the last one until its end, and asks again in ten seconds.
    /// Error: OAUTHBEARER is not in use, or there is no reason.
    #[cfg(feature = "capi")]
    pub fn set_token_failure(&self, reason: &str) -> Result<()> {
        self.require_tokens()?;
        if reason.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, "the reason of the failure is missing"));
        }
        self.commands.push(Command::TokenFailed { reason: reason.to_owned(), retry_in: RETRY });
        Ok(())
    }

    /// Returns true if the mechanism is OAUTHBEARER.
    pub fn uses_tokens(&self) -> bool {
        self.shared.settings().mechanism == Mechanism::OauthBearer
    }

    fn require_tokens(&self) -> Result<()> {
        if self.uses_tokens() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::State, "SASL/OAUTHBEARER is not the configured authentication mechanism"))
    }

    fn try_set_token(&self, token: OauthToken) -> Result<(), String> {
        let OauthToken { value, expires_ms, principal, extensions } = token;
        self.shared.set_token(ottla_net::sasl::token(value, expires_ms, &principal, extensions)?);
        self.commands.push(Command::Credentials);
        Ok(())
    }
}

/// Where tokens come from.
#[derive(Clone)]
pub enum TokenSource {
    /// A function that returns them, called on a thread of its own.
    Provider(Arc<TokenProvider>),
    /// A function that is called on an I/O thread when a token is needed; the application then sets one.
    #[cfg(feature = "capi")]
    Notify(Arc<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}

/// Makes unsecured tokens, on the I/O thread that needs them: it takes microseconds.
struct Unsecured(Weak<SaslShared>, Arc<CommandQueue>);

impl Wake for Unsecured {
    fn wake(&self) {
        let Self(shared, commands) = self;
        let Some(shared) = shared.upgrade() else { return };
        let Some(fields) = &shared.settings().unsecured else { return };
        let command = match ottla_net::sasl::unsecured_token(fields) {
            Ok(token) => {
                shared.set_token(token);
                Command::Credentials
            }
            Err(reason) => Command::TokenFailed { reason, retry_in: RETRY },
        };
        commands.push(command);
    }
}

#[cfg(feature = "capi")]
struct Notifier(Arc<dyn Fn() + Send + Sync>);

#[cfg(feature = "capi")]
impl Wake for Notifier {
    fn wake(&self) {
        (self.0)();
    }
}

struct ProviderThread(Mutex<mpsc::Sender<()>>);

impl Wake for ProviderThread {
    fn wake(&self) {
        // Without the thread the client is ending.
        let _ = self.0.lock().send(());
    }
}
