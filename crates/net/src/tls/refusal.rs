//! The reasons for refusing a broker's certificate: which certificate, which rule, and what to do. With the number that
//! librdkafka's `ssl.certificate.verify_cb` gets, which is OpenSSL's.

use std::fmt;

use rustls::pki_types::{CertificateDer, ServerName};
use webpki::Error;

use super::{failure::TlsProblem, verify::Trusted};
use crate::credentials::{
    public_key::{self, KeyKind},
    x509::{self, Certificate, date},
};

/// The reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The problem in OpenSSL's numbering (`X509_V_ERR_...`).
    pub number: i32,
    /// The reason in words.
    pub text: String,
}

const UNSPECIFIED: i32 = 1;
const SIGNATURE_FAILURE: i32 = 7;
const NOT_YET_VALID: i32 = 9;
const EXPIRED: i32 = 10;
const SELF_SIGNED_LEAF: i32 = 18;
const SELF_SIGNED_IN_CHAIN: i32 = 19;
const NO_ISSUER: i32 = 20;
const CHAIN_TOO_LONG: i32 = 22;
const REVOKED: i32 = 23;
const INVALID_CA: i32 = 24;
const INVALID_PURPOSE: i32 = 26;
const NO_REVOCATION_LIST: i32 = 3;
const REVOCATION_LIST_EXPIRED: i32 = 12;
const WEAK_SIGNATURE: i32 = 68;
const HOST_MISMATCH: i32 = 62;
const KEY_TOO_SMALL: i32 = 66;
const CA_KEY_TOO_SMALL: i32 = 67;
const NO_CERT_SIGN: i32 = 32;

impl Refusal {
    /// Creates a refusal.
    pub const fn new(number: i32, text: String) -> Self {
        Self { number, text }
    }
}

impl Refusal {
    /// Returns the kind of the reason.
    pub const fn problem(&self) -> TlsProblem {
        match self.number {
            EXPIRED => TlsProblem::Expired,
            NOT_YET_VALID => TlsProblem::NotYetValid,
            HOST_MISMATCH => TlsProblem::WrongHost,
            SELF_SIGNED_LEAF | SELF_SIGNED_IN_CHAIN | NO_ISSUER => TlsProblem::UnknownAuthority,
            REVOKED | NO_REVOCATION_LIST | REVOCATION_LIST_EXPIRED => TlsProblem::Revoked,
            _ => TlsProblem::BadCertificate,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

/// Checks the validity of a certificate at a time, in seconds since 1970.
pub fn check_time(certificate: &Certificate, now: i64) -> Result<(), Refusal> {
    if now > certificate.not_after {
        return Err(expired(&certificate.describe(), certificate.not_after, now));
    }
    if now < certificate.not_before {
        return Err(not_yet_valid(&certificate.describe(), certificate.not_before, now));
    }
    Ok(())
}

fn expired(shown: &str, not_after: i64, now: i64) -> Refusal {
    let text = format!(
        "the certificate {shown} expired at {}, and the time of this machine is {}: renew the certificate, or correct the \
         clock",
        date(not_after),
        date(now)
    );
    Refusal::new(EXPIRED, text)
}

fn not_yet_valid(shown: &str, not_before: i64, now: i64) -> Refusal {
    let text = format!(
        "the certificate {shown} is not valid before {}, and the time of this machine is {}: check both clocks",
        date(not_before),
        date(now)
    );
    Refusal::new(NOT_YET_VALID, text)
}

/// Returns the refusal of a certificate that is for other hosts.
pub fn of_host(leaf: &CertificateDer<'_>, host: &ServerName<'_>, names: &[String]) -> Refusal {
    let parsed = Certificate::parse(leaf).ok();
    let names = match (&parsed, names) {
        (Some(it), []) if !it.has_names => format!(
            "no names, because it has no subjectAltName, and the common name \"{}\" does not count",
            x509::printable(it.common_name.as_deref().unwrap_or_default().as_bytes())
        ),
        (_, []) => "other names".to_owned(),
        (_, names) => names.iter().take(20).map(|name| shown_name(name)).collect::<Vec<_>>().join(", "),
    };
    let text = format!(
        "the broker's certificate {} is for {names}, and not for \"{}\": connect by a name of the certificate, or create one \
         with subjectAltName for this host (keytool -ext san=dns:..., openssl -addext subjectAltName=DNS:...), or set \
         ssl.endpoint.identification.algorithm=none",
        x509::describe(leaf),
        host.to_str()
    );
    Refusal::new(HOST_MISMATCH, text)
}

/// Returns a name without the type that webpki writes around it, as in `DnsName("kafka")`, and without control characters.
fn shown_name(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    x509::printable(inner.trim_matches('"').as_bytes())
}

/// Returns the refusal of a chain.
pub fn of_chain(
    error: &Error,
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    trusted: &Trusted,
    host: &ServerName<'_>,
) -> Refusal {
    let shown = x509::describe(leaf);
    let refuse = |number, why: &str| Refusal::new(number, format!("the broker's certificate {shown} {why}"));
    let is_old = *error == Error::UnsupportedCertVersion
        || *error == Error::BadDer && Certificate::parse(leaf).is_ok_and(|it| it.version < 3);
    match error {
        Error::CertExpired { time, not_after } => {
            let (not_after, now) = (not_after.as_secs() as i64, time.as_secs() as i64);
            expired(&which(leaf, intermediates, trusted, |it| it.not_after == not_after), not_after, now)
        }
        Error::CertNotValidYet { time, not_before } => {
            let (not_before, now) = (not_before.as_secs() as i64, time.as_secs() as i64);
            not_yet_valid(
                &which(leaf, intermediates, trusted, |it| it.not_before == not_before),
                not_before,
                now,
            )
        }
        Error::InvalidCertValidity => {
            let shown = which(leaf, intermediates, trusted, |it| it.not_after < it.not_before);
            let text = format!(
                "the certificate {shown} ends before it begins: create one that ends later (openssl -days)"
            );
            Refusal::new(EXPIRED, text)
        }
        Error::CertNotValidForName(context) => of_host(leaf, host, &context.presented),
        Error::UnknownIssuer => unknown_issuer(leaf, intermediates, trusted),
        Error::CertRevoked => refuse(REVOKED, "is revoked (ssl.crl.location): the broker needs a new one"),
        Error::UnknownRevocationStatus => refuse(
            NO_REVOCATION_LIST,
            "can't be checked for revocation: ssl.crl.location has no list of its issuer",
        ),
        Error::CrlExpired { next_update, .. } => Refusal::new(
            REVOCATION_LIST_EXPIRED,
            format!(
                "the list of revoked certificates has expired at {}: renew the file of ssl.crl.location",
                date(next_update.as_secs() as i64)
            ),
        ),
        Error::CaUsedAsEndEntity => refuse(
            INVALID_CA,
            "is a CA certificate (CA:TRUE), which a broker must not use as its own: create one with CA:FALSE; or trust \
             exactly this certificate with ssl.legacy.certificates=true and ssl.ca.location",
        ),
        Error::EndEntityUsedAsCa => refuse(
            INVALID_CA,
            "is issued by a certificate that is not a CA (CA:FALSE): correct the chain of the broker",
        ),
        _ if is_old => refuse(
            UNSPECIFIED,
            "has version 1, which has no host names: create one of version 3 with subjectAltName (openssl x509 -req needs \
             -extfile); or trust exactly this certificate with ssl.legacy.certificates=true and ssl.ca.location",
        ),
        Error::RequiredEkuNotFoundContext(_) => refuse(
            INVALID_PURPOSE,
            "is not for servers (extendedKeyUsage): create one with serverAuth, or without extendedKeyUsage",
        ),
        Error::InvalidSignatureForPublicKey
        | Error::SignatureAlgorithmMismatch
        | Error::UnsupportedSignatureAlgorithmContext(_)
        | Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => {
            of_signature(leaf, intermediates, trusted)
        }
        Error::MaximumPathDepthExceeded
        | Error::MaximumPathBuildCallsExceeded
        | Error::MaximumSignatureChecksExceeded
        | Error::MaximumNameConstraintComparisonsExceeded => {
            refuse(CHAIN_TOO_LONG, "comes with too many certificates")
        }
        Error::NameConstraintViolation => {
            refuse(UNSPECIFIED, "has a name that its CA must not certify (name constraints)")
        }
        Error::PathLenConstraintViolated => {
            refuse(CHAIN_TOO_LONG, "has more intermediate certificates than its CA permits (path length)")
        }
        other => {
            refuse(UNSPECIFIED, &format!("can't be used: {other:?}").chars().take(300).collect::<String>())
        }
    }
}

/// Returns the refusal of a chain with a signature that can't be verified: with a weak hash, by a key that can't be used, or by
/// another key.
fn of_signature(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    trusted: &Trusted,
) -> Refusal {
    let parsed = |der: &CertificateDer<'_>| Certificate::parse(der).ok();
    let sent: Vec<_> = std::iter::once(leaf).chain(intermediates).filter_map(parsed).collect();
    let of_roots = trusted.certificates.iter().filter_map(parsed);
    let all: Vec<_> = sent.iter().cloned().chain(of_roots).collect();
    let broken = sent.iter().filter(|it| !it.is_self_issued()).find_map(|it| {
        if let Some(hash) = public_key::weak_hash(&it.signature_algorithm) {
            let text = format!(
                "the certificate {} is signed with {hash}, which is not secure: create it with SHA-256",
                it.describe()
            );
            return Some(Refusal::new(WEAK_SIGNATURE, text));
        }
        let issuer = all.iter().find(|other| other.subject_der == it.issuer_der)?;
        let rule = broken_rule(issuer)?;
        let text = format!("the key that issued the certificate {} {rule}", it.describe());
        Some(Refusal::new(CA_KEY_TOO_SMALL, text))
    });
    broken.unwrap_or_else(|| {
        let text = format!(
            "the broker's certificate {} has a signature that does not match the key of its issuer: a trusted CA may have been \
             created again under the same name",
            x509::describe(leaf)
        );
        Refusal::new(SIGNATURE_FAILURE, text)
    })
}

/// Returns the rule that the key of a certificate breaks.
fn broken_rule(certificate: &Certificate) -> Option<String> {
    KeyKind::parse(&certificate.public_key).ok()?.broken_rule()
}

/// Returns the refusal of a broker that could not prove that it has the key of its certificate.
pub fn of_handshake(leaf: &CertificateDer<'_>) -> Refusal {
    let rule = Certificate::parse(leaf).ok().and_then(|it| broken_rule(&it));
    let shown = x509::describe(leaf);
    match rule {
        Some(rule) => {
            Refusal::new(KEY_TOO_SMALL, format!("the key of the broker's certificate {shown} {rule}"))
        }
        None => Refusal::new(
            SIGNATURE_FAILURE,
            format!(
                "the broker's signature of the handshake does not belong to its certificate {shown}: the broker may have the key \
                 of another certificate, or someone interferes"
            ),
        ),
    }
}

/// Returns the refusal of a chain with an intermediate certificate that must not issue others.
pub fn of_issuer(issuer: &Certificate) -> Refusal {
    let text = format!(
        "the certificate {} must not issue others, because its keyUsage lacks keyCertSign: create it with keyCertSign",
        issuer.describe()
    );
    Refusal::new(NO_CERT_SIGN, text)
}

/// Describes the certificate of the chain that has a property.
fn which(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    trusted: &Trusted,
    is_it: impl Fn(&Certificate) -> bool,
) -> String {
    let chain = std::iter::once(leaf).chain(intermediates).chain(&trusted.certificates);
    let found = chain.filter_map(|der| Certificate::parse(der).ok()).find(is_it);
    found.map_or_else(|| x509::describe(leaf), |it| it.describe())
}

fn unknown_issuer(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    trusted: &Trusted,
) -> Refusal {
    let mut sent = [leaf].into_iter().chain(intermediates).filter_map(|der| Certificate::parse(der).ok());
    let is_self_signed = Certificate::parse(leaf).is_ok_and(|it| it.is_self_issued());
    let has_root = sent.clone().any(|it| it.is_self_issued());
    let (number, why) = if is_self_signed {
        (SELF_SIGNED_LEAF, "is self-signed and not trusted".to_owned())
    } else if has_root {
        (SELF_SIGNED_IN_CHAIN, "comes with a root certificate that is not trusted".to_owned())
    } else {
        let issuer = sent.next_back().map_or_else(String::new, |it| format!(" by \"{}\"", it.issuer));
        (NO_ISSUER, format!("is issued{issuer}, which is not trusted"))
    };
    let (count, origin) = (trusted.certificates.len(), &trusted.origin);
    let text = format!(
        "the broker's certificate {} {why}: add the CA's certificate to ssl.ca.location or ssl.ca.pem (trusted certificates: \
         {count}, of {origin}), and let the broker send its intermediate certificates",
        x509::describe(leaf)
    );
    Refusal::new(number, text)
}
