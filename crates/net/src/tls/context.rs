//! The state that all TLS connections of a client share.

use std::{fmt, sync::Arc};

use ottla_core::{
    error::{Error, ErrorKind},
    lock::Mutex,
    observer::Peer,
};
use rustls::{
    ClientConfig,
    client::{Resumption, UnbufferedClientConnection},
    pki_types::ServerName,
};

use super::{
    TlsSettings,
    identity::{Identity, Resolver},
    load,
    verify::{Broker, Policy, Verifier},
};
use crate::credentials::x509::Certificate;

/// The trusted certificates, the client's identity and the algorithms of a client's TLS connections.
pub struct TlsContext {
    settings: TlsSettings,
    current: Mutex<Loaded>,
}

/// What was read from files and properties.
#[derive(Clone)]
struct Loaded {
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    identity: Option<Arc<Identity>>,
    notes: Vec<String>,
}

/// The sessions that can be resumed; one per broker.
const RESUMABLE: usize = 64;

impl TlsContext {
    /// Reads the files that the settings name. Error: what is wrong with which property.
    pub fn new(settings: TlsSettings) -> Result<Self, Error> {
        let loaded = load_all(&settings)?;
        Ok(Self { settings, current: Mutex::new(loaded) })
    }

    /// Returns warnings for the application's log, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.current.lock().notes.clone()
    }

    /// Reads the files again. New connections use what they contain now; existing connections stay. Error: what is wrong
    /// with which property; then nothing changes.
    pub fn reload(&self) -> Result<(), Error> {
        let loaded = load_all(&self.settings)?;
        *self.current.lock() = loaded;
        Ok(())
    }

    /// Returns the files and folders that were read.
    pub(crate) fn files(&self) -> Vec<std::path::PathBuf> {
        load::files(&self.settings)
    }

    /// Returns the client's certificate.
    pub fn client_certificate(&self) -> Option<Certificate> {
        self.current.lock().identity.as_ref().map(|identity| identity.certificate.clone())
    }

    /// Returns the certificates that brokers are checked against, and their origin in words.
    pub fn trusted(&self) -> (Vec<Certificate>, String) {
        let verifier = Arc::clone(&self.current.lock().verifier);
        let parsed = verifier.trusted.certificates.iter().filter_map(|der| Certificate::parse(der).ok());
        (parsed.collect(), verifier.trusted.origin.clone())
    }

    /// Returns the configuration of a session, the check of certificates in it, and the client's identity.
    pub(super) fn parts_for(&self, broker: Broker) -> (ClientConfig, Arc<Verifier>, Option<Arc<Identity>>) {
        let Loaded { config, verifier, identity, .. } = self.current.lock().clone();
        let callback = verifier.callback.clone().map(|(callback, _)| (callback, broker));
        ((*config).clone(), Arc::new(Verifier { callback, ..(*verifier).clone() }), identity)
    }

    /// Returns the client's certificate in words, and the end of its validity in seconds since 1970.
    pub(crate) fn certificate(&self) -> Option<(String, i64)> {
        let identity = self.current.lock().identity.clone()?;
        Some((identity.certificate.describe(), identity.certificate.not_after))
    }

    /// Starts a session with the broker of an actor.
    pub(crate) fn session(&self, peer: Peer<'_>) -> Result<UnbufferedClientConnection, Error> {
        let name = ServerName::try_from(peer.host.to_owned()).map_err(|_| {
            let shown: String = peer.host.chars().take(300).collect();
            Error::new(
                ErrorKind::Tls,
                format!("\"{shown}\" is neither a host name nor an address that TLS can check"),
            )
        })?;
        let broker = Broker { address: format!("{}:{}", peer.host, peer.port), node_id: peer.node_id };
        UnbufferedClientConnection::new(self.config_for(broker), name)
            .map_err(|error| Error::new(ErrorKind::Tls, format!("can't start a session: {error}")))
    }

    /// Returns the configuration of a session with a broker; the application's check of certificates gets its name.
    pub(super) fn config_for(&self, broker: Broker) -> Arc<ClientConfig> {
        let Loaded { mut config, verifier, .. } = self.current.lock().clone();
        if let Some((callback, _)) = &verifier.callback {
            let callback = Some((Arc::clone(callback), broker));
            let verifier = Verifier { callback, ..(*verifier).clone() };
            Arc::make_mut(&mut config).dangerous().set_certificate_verifier(Arc::new(verifier));
        }
        config
    }
}

fn load_all(settings: &TlsSettings) -> Result<Loaded, Error> {
    let wrong = |why: String| Error::new(ErrorKind::InvalidArgument, why);
    let mut notes = Vec::new();
    let provider = Arc::new(settings.lists.provider().map_err(wrong)?);
    let versions = settings.lists.versions(&mut notes).map_err(wrong)?;
    let identity = load::identity(settings, &provider)?.map(Arc::new);
    let policy =
        Policy { certificate: settings.verifies, host: settings.checks_host, legacy: settings.legacy };
    if !policy.certificate {
        notes.push(
            "enable.ssl.certificate.verification=false: brokers' certificates are NOT verified, so that anyone on the \
             network can read and change all data, passwords included; set ssl.ca.location instead"
                .to_owned(),
        );
    }
    let verifier = Arc::new(Verifier {
        trusted: Arc::new(load::trusted(settings, &mut notes)?),
        revoked: load::revoked(settings)?.into(),
        algorithms: provider.signature_verification_algorithms,
        policy,
        callback: settings.passed.callback.clone().map(|callback| (callback, Broker::default())),
    });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|_| wrong("ssl.cipher.suites and ssl.enabled.protocols leave no cipher suite".to_owned()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as _);
    let mut config = match &identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(Resolver(Arc::clone(identity)))),
        None => builder.with_no_client_auth(),
    };
    // A resumed session shows no certificate, and the application checks those of each connection.
    config.resumption = match &verifier.callback {
        None => Resumption::in_memory_sessions(RESUMABLE),
        Some(_) => Resumption::disabled(),
    };
    Ok(Loaded { config: Arc::new(config), verifier, identity, notes })
}

impl fmt::Debug for TlsContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsContext").field("settings", &self.settings).finish_non_exhaustive()
    }
}
