//! Keys of P-521, which ring lacks: of a CA, a broker and a client.

use rustls::{
    SignatureAlgorithm, SignatureScheme, SupportedProtocolVersion,
    sign::{Signer, SigningKey as Key},
    version::{TLS12, TLS13},
};

use super::*;
use crate::credentials;

const CA: &str = include_str!("kinds/p-521-ca.pem");
const BROKER: &str = include_str!("kinds/p-521-broker.pem");
const CLIENT: &str = include_str!("kinds/p-521-client.pem");
/// A client of no CA.
const STRANGER: &str = include_str!("kinds/client-p-521.pem");
/// A key with P-256.
const P256: &str = include_str!("kinds/broker.key");

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    let ders = credentials::certificates(pem.as_bytes()).unwrap();
    ders.into_iter().map(CertificateDer::from).collect()
}

fn key(pem: &str) -> Arc<dyn Key> {
    let der = credentials::private_key(pem.as_bytes(), None).unwrap();
    let der = PrivateKeyDer::try_from(der.expose().to_vec()).unwrap();
    default_provider().key_provider.load_private_key(der).unwrap()
}

/// A broker with this key, which requires certificates of the CA.
fn broker(
    version: &'static SupportedProtocolVersion,
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn Key>,
) -> ServerConfig {
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificates(CA).remove(0)).unwrap();
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key))))
}

fn settings(client: &str) -> TlsSettings {
    TlsSettings {
        ca_pem: Some(CA.to_owned()),
        certificate_pem: Some(client.to_owned()),
        key_pem: Some(Secret::from(client)),
        ..trusting(&[])
    }
}

/// Signs as another key does, and changes the signature.
#[derive(Clone, Debug)]
struct Altered(Arc<dyn Key>, fn(&mut Vec<u8>));

impl Key for Altered {
    fn choose_scheme(&self, _: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(self.clone()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for Altered {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let own = [SignatureScheme::ECDSA_NISTP521_SHA512, SignatureScheme::ECDSA_NISTP256_SHA256];
        let mut signature = self.0.choose_scheme(&own).unwrap().sign(message)?;
        (self.1)(&mut signature);
        Ok(signature)
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP521_SHA512
    }
}

#[test]
fn authority_broker_and_client_may_have_keys_of_p521() {
    for version in [&TLS12, &TLS13] {
        let server = || broker(version, certificates(BROKER), key(BROKER));
        let shaken = shake(settings(CLIENT), server(), HOST).unwrap();
        assert_eq!(shaken.protocol_version(), Some(version.version));
        assert_eq!(shaken.peer_certificates(), Some(&certificates(CLIENT)[..]));
        let error = shake(settings(STRANGER), server(), HOST).map(drop).unwrap_err();
        assert!(error.contains("requires a client certificate"), "{error}");
    }
}

#[test]
fn broker_with_a_wrong_signature_of_p521_is_refused() {
    let unchanged: fn(&mut Vec<u8>) = |_| {};
    for version in [&TLS12, &TLS13] {
        shake(
            settings(CLIENT),
            broker(version, certificates(BROKER), Arc::new(Altered(key(BROKER), unchanged))),
            HOST,
        )
        .map(drop)
        .unwrap();
        for (case, signer) in [
            ("altered", Altered(key(BROKER), |signature| *signature.last_mut().unwrap() ^= 1)),
            ("empty", Altered(key(BROKER), Vec::clear)),
            ("of another key", Altered(key(CLIENT), unchanged)),
            ("of another curve", Altered(key(P256), unchanged)),
        ] {
            let server = broker(version, certificates(BROKER), Arc::new(signer));
            let error = shake(settings(CLIENT), server, HOST).map(drop).unwrap_err();
            assert!(error.contains("CN=broker"), "{case}: {error}");
            assert!(error.contains("does not belong to its certificate"), "{case}: {error}");
        }
        // The certificate's key has P-256, and the one that signs has P-521.
        let chain = certificates(include_str!("kinds/p-521.pem"));
        let trusted = TlsSettings { ca_pem: Some(super::pem("CERTIFICATE", &chain[1])), ..settings(CLIENT) };
        let server = broker(version, chain, Arc::new(Altered(key(BROKER), unchanged)));
        let error = shake(trusted, server, HOST).map(drop).unwrap_err();
        assert!(error.contains("does not belong to its certificate"), "{error}");
    }
}

#[test]
fn certificate_with_an_altered_signature_of_p521_is_refused() {
    let mut der = certificates(BROKER)[0].to_vec();
    *der.last_mut().unwrap() ^= 1;
    for version in [&TLS12, &TLS13] {
        let server = broker(version, vec![CertificateDer::from(der.clone())], key(BROKER));
        let error = shake(settings(CLIENT), server, HOST).map(drop).unwrap_err();
        assert!(error.contains("CN=broker") && error.contains("signature"), "{error}");
    }
}

#[test]
fn client_whose_key_of_p521_is_another_one_is_an_error() {
    let settings = TlsSettings { key_pem: Some(Secret::from(BROKER)), ..settings(CLIENT) };
    let error = TlsContext::new(settings).map(drop).unwrap_err().to_string();
    assert!(error.contains("does not belong to the certificate"), "{error}");
}
