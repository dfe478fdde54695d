//! Verification of a broker's certificate.
//!
//! webpki verifies; this file decides what follows, and says which certificate breaks which rule.
//!
//! # Pitfalls
//!
//! - With `ssl.legacy.certificates` only the bytes of a trusted certificate are accepted, with its time and its name, and
//!   the handshake still proves that the peer has its key (`legacy_mode_accepts_only_the_pinned_certificate`).
//! - webpki refuses certificates of version 1, so the signature of the handshake is checked with the public key alone
//!   (`legacy_mode_accepts_only_the_pinned_certificate`).

use std::{cell::RefCell, fmt, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{
        WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
        verify_tls13_signature_with_raw_key,
    },
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime},
};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationCheckDepth,
    RevocationOptionsBuilder, UnknownStatusPolicy, VerifiedPath,
};

use super::refusal::{self, Refusal};
use crate::credentials::x509::{Certificate, seconds};

/// Checks brokers' certificates.
#[derive(Clone)]
pub struct Verifier {
    /// The trusted certificates.
    pub trusted: Arc<Trusted>,
    /// The lists of revoked certificates.
    pub revoked: Arc<[CertRevocationList<'static>]>,
    /// The signature algorithms.
    pub algorithms: WebPkiSupportedAlgorithms,
    /// What is checked.
    pub policy: Policy,
    /// The application's check, and the broker that is passed to it.
    pub callback: Option<(Arc<dyn CertificateCallback>, Broker)>,
}

/// The broker whose certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broker {
    /// Host and port, as `host:port`.
    pub address: String,
    /// The node ID, if known; a bootstrap server has none at first.
    pub node_id: Option<i32>,
}

/// The trusted certificates.
#[derive(Default)]
pub struct Trusted {
    /// The names and keys of the trusted certificates.
    pub anchors: Vec<TrustAnchor<'static>>,
    /// The trusted certificates.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The place of the trusted certificates, for errors.
    pub origin: String,
}

/// What is checked of a broker's certificate.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The certificate is checked (`enable.ssl.certificate.verification`).
    pub certificate: bool,
    /// The host name is checked (`ssl.endpoint.identification.algorithm`).
    pub host: bool,
    /// A trusted certificate may be the broker's own (`ssl.legacy.certificates`).
    pub legacy: bool,
}

/// A check of the application. It runs on an I/O thread and must not block.
pub trait CertificateCallback: Send + Sync {
    /// Checks one certificate of a chain, from the root to the broker's. `error` is the number of the problem in OpenSSL's
    /// numbering, or 0; the callback may clear or set it. Error: the reason of a refusal.
    ///
    /// Without verification (`enable.ssl.certificate.verification=false`) the outcome has no effect.
    fn check(&self, certificate: CertificateInChain<'_>, error: &mut i32) -> Result<(), String>;
}

/// A certificate that the application checks.
#[derive(Clone, Copy, Debug)]
pub struct CertificateInChain<'a> {
    /// The broker's host and port, as `host:port`.
    pub broker: &'a str,
    /// The broker's node ID, if known; a bootstrap server has none at first.
    pub node_id: Option<i32>,
    /// The place in the chain: 0 is the broker's certificate, and the root has the highest number.
    pub depth: usize,
    /// The certificate, in DER.
    pub der: &'a [u8],
}

impl Verifier {
    fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Refusal> {
        if !self.policy.certificate && self.callback.is_none() {
            return Ok(());
        }
        let mut path = Vec::new();
        let mut outcome = if self.policy.legacy && self.trusted.certificates.iter().any(|it| **it == **leaf) {
            self.verify_pinned(leaf, host, now)
        } else {
            self.verify_chain(leaf, intermediates, host, now, &mut path)
        };
        if let Some((callback, broker)) = &self.callback {
            if path.is_empty() {
                path = std::iter::once(leaf).chain(intermediates).map(|it| it.to_vec()).collect();
            }
            outcome = ask(&**callback, &path, broker, outcome);
        }
        if self.policy.certificate { outcome } else { Ok(()) }
    }

    fn verify_chain(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        now: UnixTime,
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), Refusal> {
        let refuse = |error| refusal::of_chain(&error, leaf, intermediates, &self.trusted, host);
        let end_entity = EndEntityCert::try_from(leaf).map_err(refuse)?;
        let lists: Vec<_> = self.revoked.iter().collect();
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|builder| {
            builder
                .with_depth(RevocationCheckDepth::EndEntity)
                .with_status_policy(UnknownStatusPolicy::Deny)
                .with_expiration_policy(ExpirationPolicy::Enforce)
                .build()
        });
        let without_right = RefCell::new(None);
        let may_issue = |path: &VerifiedPath<'_>| {
            // webpki does not check keyUsage. An error lets it try other paths.
            let issuers =
                path.intermediate_certificates().filter_map(|it| Certificate::parse(&it.der()).ok());
            match issuers.into_iter().find(|issuer| issuer.must_not_issue) {
                Some(issuer) => {
                    *without_right.borrow_mut() = Some(refusal::of_issuer(&issuer));
                    Err(webpki::Error::EndEntityUsedAsCa)
                }
                None => Ok(()),
            }
        };
        let verified = end_entity
            .verify_for_usage(
                self.algorithms.all,
                &self.trusted.anchors,
                intermediates,
                now,
                KeyUsage::server_auth(),
                revocation,
                Some(&may_issue),
            )
            .map_err(|error| without_right.take().unwrap_or_else(|| refuse(error)))?;
        path.push(leaf.to_vec());
        path.extend(verified.intermediate_certificates().map(|certificate| certificate.der().to_vec()));
        let key = webpki::spki_for_anchor(verified.anchor());
        let is_anchor =
            |der: &&CertificateDer<'_>| Certificate::parse(der).is_ok_and(|it| *it.public_key == *key);
        path.extend(self.trusted.certificates.iter().find(is_anchor).map(|der| der.to_vec()));
        if self.policy.host {
            end_entity.verify_is_valid_for_subject_name(host).map_err(refuse)?;
        }
        Ok(())
    }

    /// Verifies a certificate whose bytes are those of a trusted one.
    fn verify_pinned(
        &self,
        leaf: &CertificateDer<'_>,
        host: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Refusal> {
        let certificate = Certificate::parse(leaf).map_err(|why| Refusal::new(1, why.to_owned()))?;
        refusal::check_time(&certificate, seconds(std::time::Duration::from_secs(now.as_secs())))?;
        if !self.policy.host {
            return Ok(());
        }
        let by_names = EndEntityCert::try_from(leaf).map(|it| it.verify_is_valid_for_subject_name(host));
        let holds = match by_names {
            Ok(result) if certificate.has_names => result.is_ok(),
            _ => {
                certificate.common_name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&host.to_str()))
            }
        };
        if holds { Ok(()) } else { Err(refusal::of_host(leaf, host, &[])) }
    }
}

/// Lets the application check each certificate, from the root to the broker's. `error` of a chain belongs to the broker's
/// certificate, which is the last.
fn ask(
    callback: &dyn CertificateCallback,
    path: &[Vec<u8>],
    Broker { address, node_id }: &Broker,
    mut outcome: Result<(), Refusal>,
) -> Result<(), Refusal> {
    for (depth, der) in path.iter().enumerate().rev() {
        let mut number = match &outcome {
            Err(refusal) if depth == 0 => refusal.number,
            _ => 0,
        };
        let certificate = CertificateInChain { broker: address, node_id: *node_id, depth, der };
        callback.check(certificate, &mut number).map_err(|why| {
            let text = format!(
                "the application's callback refused the certificate {} at depth {depth}: {why}",
                crate::credentials::x509::describe(der)
            );
            Refusal::new(1, text)
        })?;
        if number == 0 && depth == 0 {
            outcome = Ok(());
        } else if number != 0 && outcome.is_ok() {
            outcome =
                Err(Refusal::new(number, format!("the application's callback reported the error {number}")));
        }
    }
    outcome
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.verify(leaf, intermediates, host, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(refusal) => Err(refused(refusal)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if EndEntityCert::try_from(leaf).is_ok() {
            return verify_tls12_signature(message, leaf, signed, &self.algorithms)
                .map_err(|error| explained(error, leaf));
        }
        let key = public_key(leaf)?;
        let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
        let key = webpki::RawPublicKeyEntity::try_from(&key).map_err(|_| bad())?;
        let mapping =
            self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme).ok_or_else(bad)?;
        let holds = |algorithm: &&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            key.verify_signature(*algorithm, message, signed.signature()).is_ok()
        };
        if mapping.1.iter().any(holds) { Ok(HandshakeSignatureValid::assertion()) } else { Err(bad()) }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if EndEntityCert::try_from(leaf).is_ok() {
            return verify_tls13_signature(message, leaf, signed, &self.algorithms)
                .map_err(|error| explained(error, leaf));
        }
        verify_tls13_signature_with_raw_key(message, &public_key(leaf)?, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns the error of a handshake's signature with the rule that the certificate's key breaks.
fn explained(error: Error, leaf: &CertificateDer<'_>) -> Error {
    match error {
        Error::InvalidCertificate(_) => refused(refusal::of_handshake(leaf)),
        other => other,
    }
}

fn refused(refusal: Refusal) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(refusal))))
}

fn public_key(leaf: &CertificateDer<'_>) -> Result<SubjectPublicKeyInfoDer<'static>, Error> {
    let bad = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
    Certificate::parse(leaf).map(|it| it.public_key.into()).map_err(bad)
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("trusted", &self.trusted.certificates.len())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
