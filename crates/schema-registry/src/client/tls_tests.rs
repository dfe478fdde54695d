//! Tests of TLS: an authority of one's own, and a client's certificate.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};

use super::*;

/// An authority, and a certificate of it for 127.0.0.1.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { params, key, certificate }
    }

    fn leaf(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key)).unwrap();
        (certificate, key)
    }
}

/// A server that answers each request over TLS with an empty list, and wants a certificate of the authority.
fn server(authority: &Authority) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let (certificate, key) = authority.leaf();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from(certificate.der().to_vec())],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            let mut head = [0; 4096];
            if stream.read(&mut head).is_ok_and(|read| read > 0) {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]");
            }
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    url
}

fn ask(url: &str, tls: Tls) -> Result<Vec<String>> {
    let mut config = Config::new(url);
    config.tls = tls;
    config.retries = 0;
    Client::new(config)?.subjects("", Deleted::Without)
}

#[test]
fn own_authority_and_certificate_are_used() {
    let authority = Authority::new();
    let url = server(&authority);
    let (certificate, key) = authority.leaf();
    let tls = Tls {
        ca: Some(authority.certificate.pem()),
        certificate: Some(certificate.pem()),
        key: Some(key.serialize_pem().into()),
    };
    assert_eq!(ask(&url, tls.clone()).unwrap(), Vec::<String>::new());
    let error = ask(&url, Tls { certificate: None, key: None, ..tls.clone() }).unwrap_err().to_string();
    assert!(error.contains("no schema registry answered"), "{error}");
    let other = Tls { ca: Some(Authority::new().certificate.pem()), ..tls.clone() };
    let error = ask(&url, other).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("certificate"), "{error}");
    for broken in [
        Tls { ca: Some("not PEM".to_owned()), ..tls.clone() },
        Tls { key: None, ..tls.clone() },
        Tls { key: Some("not PEM".into()), ..tls },
    ] {
        assert!(matches!(ask(&url, broken).unwrap_err(), crate::Error::Config { .. }));
    }
}
