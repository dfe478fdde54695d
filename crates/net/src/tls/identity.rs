//! The client's certificate and key.

use std::{fmt, sync::Arc};

use rustls::{
    SignatureScheme,
    client::ResolvesClientCert,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};

use crate::credentials::{self, Store, secret::Secret, x509::Certificate};

/// The client's certificate with its chain and key.
pub struct Identity {
    key: Arc<CertifiedKey>,
    /// The DER encodings of the issuers' names in the chain.
    issuers: Vec<Vec<u8>>,
    /// The certificate.
    pub certificate: Certificate,
}

impl Identity {
    /// Combines certificates and a key. Error: they do not match, or can't be used.
    pub fn new(certificates: Vec<Vec<u8>>, key: &Secret, provider: &CryptoProvider) -> Result<Self, String> {
        let der = PrivateKeyDer::try_from(key.expose().to_vec())
            .map_err(|_| "the key is neither PKCS#8 nor PKCS#1 nor SEC1".to_owned())?;
        let signer = provider.key_provider.load_private_key(der).map_err(|_| UNUSABLE.to_owned())?;
        let certificates = match signer.public_key() {
            Some(public) => credentials::chain(certificates, |it| *it.public_key == *public),
            None => certificates,
        };
        let leaf = certificates.first().ok_or("there is no certificate")?;
        let certificate =
            Certificate::parse(leaf).map_err(|why| format!("the certificate can't be read: {why}"))?;
        let issuers = certificates
            .iter()
            .filter_map(|der| Certificate::parse(der).ok().map(|it| it.issuer_der))
            .collect();
        let chain: Vec<_> = certificates.iter().map(|der| CertificateDer::from(der.clone())).collect();
        let certified = CertifiedKey::new(chain, signer);
        // The chain starts with the certificate of the key if there is one.
        if certified.key.public_key().is_some_and(|public| *public != *certificate.public_key) {
            return Err(format!(
                "the private key does not belong to the certificate {}: the files are of different identities, or one of \
                 them was renewed without the other",
                certificate.describe()
            ));
        }
        if certificate.version < 3 {
            return Err(format!(
                "the certificate {} has version {}, which TLS libraries refuse: create one of version 3",
                certificate.describe(),
                certificate.version
            ));
        }
        Ok(Self { key: Arc::new(certified), issuers, certificate })
    }

    /// Combines the content of a key store.
    pub fn of_store(store: Store, provider: &CryptoProvider) -> Result<Self, String> {
        let key = store.key.ok_or("the store has no private key")?;
        if store.certificates.is_empty() {
            return Err("the store has no certificate".to_owned());
        }
        Self::new(store.certificates, &key, provider)
    }
}

/// The reason why a key can't be used.
const UNUSABLE: &str = "the key can't be used: RSA keys need 2048 to 8192 bits, EC keys the curve P-256, P-384 or P-521; \
                        Ed25519 is possible, DSA is not";

/// Presents the client's certificate to brokers that accept one of its issuers.
#[derive(Debug)]
pub struct Resolver(pub Arc<Identity>);

impl ResolvesClientCert for Resolver {
    fn resolve(&self, accepted: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // A broker that would refuse the certificate may accept a client without one.
        let is_accepted = |issuer: &Vec<u8>| accepted.iter().any(|name| *name == &issuer[..]);
        let presents = accepted.is_empty() || self.0.issuers.iter().any(is_accepted);
        presents.then(|| Arc::clone(&self.0.key))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate.subject).finish_non_exhaustive()
    }
}
