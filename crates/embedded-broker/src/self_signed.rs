//! Certificates for tests and first runs, made in process and kept nowhere.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::tls::{ClientAuthentication, TlsListener};

/// A certificate authority that exists in this process only.
#[derive(Debug)]
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    der: Vec<u8>,
    pem: String,
}

/// A certificate with its key.
#[derive(Clone)]
pub struct TestCertificate {
    /// The certificate in DER.
    pub der: Vec<u8>,
    /// The certificate as PEM.
    pub pem: String,
    /// The private key in DER (PKCS#8).
    pub key_der: Vec<u8>,
    /// The private key as PEM (PKCS#8).
    pub key_pem: String,
}

impl TestAuthority {
    /// Creates a CA with a new key.
    pub fn new(name: &str) -> Result<Self, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = params.self_signed(&key).map_err(|error| error.to_string())?;
        let (der, pem) = (certificate.der().to_vec(), certificate.pem());
        Ok(Self { issuer: Issuer::new(params, key), der, pem })
    }

    /// Returns the CA's certificate as PEM, which clients trust (`ssl.ca.location`, `ssl.ca.pem`).
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the CA's certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Issues a certificate with this common name for these hosts and addresses.
    pub fn issue(&self, name: &str, hosts: &[&str]) -> Result<TestCertificate, String> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).map_err(|error| error.to_string())?;
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(|error| error.to_string())?;
        Ok(TestCertificate {
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
            key_der: key.serialize_der(),
            key_pem: key.serialize_pem(),
        })
    }

    /// Creates a listener's TLS with a new certificate for these hosts. With `authenticates_clients` it requires
    /// certificates of this CA.
    pub fn listener(&self, hosts: &[&str], authenticates_clients: bool) -> Result<TlsListener, String> {
        let broker = self.issue("broker", hosts)?;
        let clients = match authenticates_clients {
            true => ClientAuthentication::Required(vec![self.der.clone()]),
            false => ClientAuthentication::None,
        };
        TlsListener::new(&[broker.der], &broker.key_der, &clients)
    }
}

/// Shows the certificate and not the key.
impl std::fmt::Debug for TestCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCertificate").field("pem", &self.pem).finish_non_exhaustive()
    }
}
