//! The settings of TLS.

use std::{fmt, sync::Arc};

use ottla_core::config::EffectiveConfig;

use super::{algorithms::Lists, verify::CertificateCallback};
use crate::credentials::secret::Secret;

/// The properties of TLS, as the configuration has them. [`super::TlsContext::new`] reads the files.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// `ssl.ca.location`.
    pub ca_location: Option<String>,
    /// `ssl.ca.pem`.
    pub ca_pem: Option<String>,
    /// `ssl.truststore.location` and its password.
    pub trust_store: Option<(String, Option<Secret>)>,
    /// `ssl.crl.location`.
    pub crl_location: Option<String>,
    /// `ssl.certificate.location`.
    pub certificate_location: Option<String>,
    /// `ssl.certificate.pem`.
    pub certificate_pem: Option<String>,
    /// `ssl.key.location`.
    pub key_location: Option<String>,
    /// `ssl.key.pem`.
    pub key_pem: Option<Secret>,
    /// `ssl.key.password`.
    pub key_password: Option<Secret>,
    /// `ssl.keystore.location`.
    pub key_store: Option<String>,
    /// `ssl.keystore.password`.
    pub key_store_password: Option<Secret>,
    /// Cipher suites, curves, signature algorithms, versions.
    pub(super) lists: Lists,
    /// `enable.ssl.certificate.verification`.
    pub verifies: bool,
    /// `ssl.endpoint.identification.algorithm` is `https`.
    pub checks_host: bool,
    /// `ssl.legacy.certificates`.
    pub legacy: bool,
    /// Certificates and keys that the application passed in calls instead of properties.
    pub passed: PassedCredentials,
}

/// Certificates, a key and a callback that the application passed in calls.
#[derive(Clone, Default)]
pub struct PassedCredentials {
    /// Trusted certificates, in DER.
    pub ca: Vec<Vec<u8>>,
    /// The client's certificate with its chain, in DER.
    pub certificate: Vec<Vec<u8>>,
    /// The client's private key, in DER.
    pub key: Option<Secret>,
    /// A check of brokers' certificates.
    pub callback: Option<Arc<dyn CertificateCallback>>,
}

impl TlsSettings {
    /// Reads the settings from the configuration; `None` if `security.protocol` has no TLS.
    pub fn new(config: &EffectiveConfig<'_>, passed: PassedCredentials) -> Option<Self> {
        if !config.text("security.protocol").ends_with("ssl") {
            return None;
        }
        let secret = |name| config.non_empty(name).map(|text| Secret::new(text.into_bytes()));
        Some(Self {
            ca_location: config.non_empty("ssl.ca.location"),
            ca_pem: config.non_empty("ssl.ca.pem"),
            trust_store: config
                .non_empty("ssl.truststore.location")
                .map(|location| (location, secret("ssl.truststore.password"))),
            crl_location: config.non_empty("ssl.crl.location"),
            certificate_location: config.non_empty("ssl.certificate.location"),
            certificate_pem: config.non_empty("ssl.certificate.pem"),
            key_location: config.non_empty("ssl.key.location"),
            key_pem: secret("ssl.key.pem"),
            key_password: secret("ssl.key.password"),
            key_store: config.non_empty("ssl.keystore.location"),
            key_store_password: secret("ssl.keystore.password"),
            lists: Lists {
                suites: config.non_empty("ssl.cipher.suites"),
                curves: config.non_empty("ssl.curves.list"),
                signatures: config.non_empty("ssl.sigalgs.list"),
                versions: config.non_empty("ssl.enabled.protocols"),
            },
            verifies: config.boolean("enable.ssl.certificate.verification"),
            checks_host: config.text("ssl.endpoint.identification.algorithm") == "https",
            legacy: config.boolean("ssl.legacy.certificates"),
            passed,
        })
    }
}

impl fmt::Debug for PassedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassedCredentials")
            .field("ca", &self.ca.len())
            .field("certificate", &self.certificate.len())
            .field("callback", &self.callback.is_some())
            .finish_non_exhaustive()
    }
}
