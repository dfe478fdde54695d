//! The errors of TLS sessions in words: what failed, why, and what to change.

use ottla_core::error::{Error, ErrorKind};
use rustls::{AlertDescription, PeerMisbehaved};

use super::refusal::Refusal;

/// The kind of a failure, for programs that explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The peer sent something else than TLS.
    NotTls,
    /// The peer ended the connection during the handshake without a reason.
    Closed,
    /// The peer did not respond in time.
    Silent,
    /// The peers share no protocol version, cipher suite, curve or signature algorithm.
    NothingInCommon,
    /// A certificate of the broker's chain has expired.
    Expired,
    /// A certificate of the broker's chain is not valid yet.
    NotYetValid,
    /// The broker's certificate is for other hosts.
    WrongHost,
    /// The broker's certificate is issued by a CA that is not trusted.
    UnknownAuthority,
    /// The broker's certificate is revoked, or it can't be checked for revocation.
    Revoked,
    /// The broker's certificate breaks another rule.
    BadCertificate,
    /// The broker requires a client certificate and got none.
    ClientCertificateMissing,
    /// The broker refuses the client's certificate.
    ClientCertificateRefused,
    /// The client's certificate has expired, or is not valid yet, by the broker's clock.
    ClientCertificateExpired,
    /// Something else.
    Other,
}

/// Returns the kind of a failure.
pub fn problem(error: &rustls::Error, presented: bool) -> TlsProblem {
    use rustls::Error as E;
    match error {
        E::InvalidCertificate(rustls::CertificateError::Other(refused)) => {
            refused.0.downcast_ref::<Refusal>().map_or(TlsProblem::BadCertificate, Refusal::problem)
        }
        E::InvalidCertificate(_) => TlsProblem::BadCertificate,
        E::InvalidMessage(_) => TlsProblem::NotTls,
        E::PeerIncompatible(_) => TlsProblem::NothingInCommon,
        E::AlertReceived(alert) => problem_of_alert(*alert, presented),
        _ => TlsProblem::Other,
    }
}

fn problem_of_alert(alert: AlertDescription, presented: bool) -> TlsProblem {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired => TlsProblem::ClientCertificateMissing,
        // Java reports a missing certificate in this way.
        A::BadCertificate if !presented => TlsProblem::ClientCertificateMissing,
        A::CertificateExpired => TlsProblem::ClientCertificateExpired,
        A::BadCertificate
        | A::UnknownCA
        | A::CertificateUnknown
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::AccessDenied => TlsProblem::ClientCertificateRefused,
        // The signature of the client, or of the CA of its certificate.
        A::DecryptError if presented => TlsProblem::ClientCertificateRefused,
        A::HandshakeFailure | A::ProtocolVersion | A::InsufficientSecurity => TlsProblem::NothingInCommon,
        A::UnrecognisedName => TlsProblem::WrongHost,
        _ => TlsProblem::Other,
    }
}

/// Returns the error of a session that failed. `first` are the first bytes that were not processed, and `is_open` is true
/// after the handshake.
pub fn explain(error: &rustls::Error, first: Option<[u8; 5]>, is_open: bool) -> Error {
    Error::new(ErrorKind::Tls, text(error, first, is_open))
}

fn text(error: &rustls::Error, first: Option<[u8; 5]>, is_open: bool) -> String {
    use rustls::Error as E;
    match error {
        E::InvalidCertificate(rustls::CertificateError::Other(refused)) => refused.to_string(),
        E::AlertReceived(alert) => of_alert(*alert, is_open),
        E::InvalidMessage(_) if !is_open => not_tls(first),
        E::PeerIncompatible(why) => format!(
            "the broker offers no protocol version, cipher suite or curve that this client accepts ({why:?}); this client \
             accepts TLS 1.2 and 1.3 with ECDHE and AES-GCM or ChaCha20-Poly1305: check ssl.cipher.suites, \
             ssl.curves.list and ssl.sigalgs.list here, and ssl.enabled.protocols and ssl.cipher.suites of the broker"
        ),
        E::InvalidCertificate(why) => format!("the broker's certificate is refused: {why}"),
        E::PeerMisbehaved(PeerMisbehaved::TooManyRenegotiationRequests) => {
            "the broker asks for a renegotiation again and again, which this client refuses: enable TLS 1.3 on the broker, \
             which has none"
                .to_owned()
        }
        E::PeerMisbehaved(why) => format!(
            "the broker breaks a rule of TLS ({why:?}): a proxy in between may have a defect, or someone interferes"
        ),
        E::DecryptError => {
            "a record of the broker can't be decrypted: a defect or an attacker has changed it".to_owned()
        }
        other => format!("{other}"),
    }
}

/// The peer sent something else than TLS.
fn not_tls(first: Option<[u8; 5]>) -> String {
    let shown = match first {
        Some([b'H', b'T', b'T', b'P', _]) => "it responds in HTTP",
        Some([0, 0, ..]) => "it responds in Kafka's plaintext protocol",
        _ => "it does not respond in TLS",
    };
    format!("{shown}: the listener has no TLS; check the port, or set security.protocol=plaintext")
}

/// The peer refused the session.
fn of_alert(alert: AlertDescription, is_open: bool) -> String {
    use AlertDescription as A;
    let advice = match alert {
        A::CertificateRequired => WANTS_CERTIFICATE,
        // Java reports a missing certificate in this way.
        A::BadCertificate => {
            "the broker requires a client certificate and got none, or one that it can't use \
             (ssl.certificate.location and ssl.key.location, or ssl.keystore.location)"
        }
        A::UnknownCA | A::CertificateUnknown | A::UnsupportedCertificate => {
            "the broker does not trust the client's certificate: check that its CA is in the broker's ssl.truststore.location"
        }
        A::CertificateExpired => "the client's certificate has expired (ssl.certificate.location): renew it",
        A::CertificateRevoked => "the client's certificate is revoked (ssl.certificate.location)",
        A::HandshakeFailure if !is_open => {
            "the broker accepts no cipher suite or signature algorithm of this client: it may offer only RSA key exchange, \
             CBC or DHE suites, which this client does not have; or its certificate has an EC key with another curve than P-256, \
             P-384 and P-521; or it requires a client certificate"
        }
        A::ProtocolVersion => {
            "the broker accepts neither TLS 1.2 nor TLS 1.3, or not the one that ssl.enabled.protocols names"
        }
        A::UnrecognisedName => "the broker has no certificate for this host name (SNI)",
        A::DecryptError => {
            "the broker could not verify a signature: the CA of the client's certificate may be another one than the broker's \
             of the same name, or the client's key may not match its certificate"
        }
        _ => "the broker's log may say more",
    };
    format!("the broker ended the session with the alert {alert:?}: {advice}")
}

const WANTS_CERTIFICATE: &str = "the broker requires a client certificate: set ssl.certificate.location and \
                                 ssl.key.location, or ssl.keystore.location";
