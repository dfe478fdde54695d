//! The TLS handshake: the chain that the broker shows, and what its failures mean.

use std::{
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use ottla_net::{
    ClientCertificate, Shown, TlsContext, TlsFailure, TlsProblem,
    credentials::x509::{Certificate, date},
};
use serde_json::{Value, json};

use super::{
    connection::{Broken, Link, Spoken, Timed},
    diagnosis::{Finding, Problem, Stepped},
    listener,
    steps::Doctor,
};

const DAY: i64 = 86_400;
/// A certificate that becomes valid within this time, or has become invalid this short a time ago, is taken as a sign of
/// a wrong clock: a new one is rarely installed before its time.
const SKEW: i64 = 2 * DAY;
/// The days before the end of a certificate at which a note says so.
const SOON: i64 = 30 * DAY;

/// Checks the client's own certificate before it is needed. Error: it is not valid now.
pub fn check_own_certificate(context: &TlsContext, finding: Finding) -> Result<Finding, Finding> {
    let (trusted, origin) = context.trusted();
    let mut finding = finding
        .note(format!("trusted certificates: {}, of {origin}", trusted.len()))
        .with("trusted_certificates", trusted.len());
    for warning in context.warnings() {
        finding = finding.note(format!("warning: {warning}"));
    }
    let Some(own) = context.client_certificate() else { return Ok(finding) };
    let now = now();
    finding = finding.with("client_certificate", as_json(&own));
    if now > own.not_after {
        let text = format!("the client's certificate {} expired; it is {}", own.describe(), date(now));
        return Err(Finding::failed(Problem::ClientCertificateExpired, text)
            .advise("renew the certificate of ssl.certificate.location or ssl.keystore.location")
            .advise("if the certificate is right, correct this machine's clock"));
    }
    if now < own.not_before {
        let text = format!(
            "the client's certificate {} is not valid before {}, and it is {}",
            own.describe(),
            date(own.not_before),
            date(now)
        );
        return Err(clock_advice(Finding::failed(Problem::ClockSkew, text)));
    }
    let days = (own.not_after - now) / DAY;
    Ok(match own.not_after - now < SOON {
        true => finding
            .note(format!("warning: the client's certificate {} expires in {days} days", own.describe())),
        false => finding.note(format!("client certificate {}", own.describe())),
    })
}

/// Performs the handshake.
pub fn shake(
    doctor: &Doctor,
    context: &TlsContext,
    server: (&str, u16),
    address: SocketAddr,
    stream: Timed,
) -> Stepped<Link> {
    match context.probe(server.0, server.1, stream) {
        Ok(probe) => {
            let shown = probe.shown();
            let summary = [shown.version.map(str::to_owned), shown.suite.clone()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>();
            let mut finding = show_chain(Finding::passed(summary.join(", ")), &shown);
            finding = match &shown.client {
                ClientCertificate::NotRequested => finding,
                ClientCertificate::Presented => {
                    finding.note("the broker asked for the client's certificate and got it")
                }
                ClientCertificate::Missing(accepted) => finding.note(format!(
                    "the broker asked for a client certificate and got none{}",
                    accepted_issuers(accepted)
                )),
            };
            Ok((Link::Tls(Box::new(probe)), finding))
        }
        Err(failure) => {
            let may_be_plaintext =
                matches!(failure.problem, TlsProblem::NotTls | TlsProblem::Closed | TlsProblem::Silent);
            if may_be_plaintext && let Some(finding) = listener::speaks_plaintext(doctor, address) {
                return Err(finding);
            }
            if may_be_plaintext && listener::speaks_http(doctor, address) {
                return Err(doctor.explain(Broken::NotKafka(Spoken::Http)));
            }
            Err(explain(doctor, *failure))
        }
    }
}

/// Explains a handshake, or a session, that failed.
pub fn explain(doctor: &Doctor, failure: TlsFailure) -> Finding {
    let TlsFailure { problem, error, shown } = failure;
    let text = error.context().detail.clone();
    let now = now();
    let failed = |problem| show_chain(Finding::failed(problem, text.clone()), &shown);
    match problem {
        TlsProblem::NotTls | TlsProblem::Closed => failed(Problem::TlsFailed)
            .advise("check host and port, and security.protocol; the broker's log may say more"),
        TlsProblem::Silent => failed(Problem::Silent).advise("check that the port has TLS; --timeout gives more time"),
        TlsProblem::NothingInCommon => failed(Problem::NothingInCommon)
            .advise("remove ssl.cipher.suites, ssl.curves.list, ssl.sigalgs.list and ssl.enabled.protocols here")
            .advise("on the broker: ssl.enabled.protocols=TLSv1.2,TLSv1.3, and no ssl.cipher.suites"),
        TlsProblem::NotYetValid if is_skew(&shown, now) => clock_advice(failed(Problem::ClockSkew)),
        TlsProblem::NotYetValid => failed(Problem::CertificateNotYetValid)
            .advise("let the broker use its former certificate until then, or issue one that is valid now")
            .advise("compare the clocks: `date -u` here and on the broker"),
        TlsProblem::Expired if all_expired(doctor, &shown, now) => clock_advice(failed(Problem::ClockSkew)),
        TlsProblem::Expired => failed(Problem::CertificateExpired)
            .advise("renew the certificate in the broker's ssl.keystore.location; brokers read a replaced key store after `ottla configs set --broker ID` with that property")
            .advise("if the certificate is right, correct this machine's clock: `date -u`"),
        TlsProblem::WrongHost => wrong_host(failed(Problem::WrongHost), &shown),
        TlsProblem::UnknownAuthority => unknown_authority(failed(Problem::UnknownAuthority), &shown),
        TlsProblem::Revoked => failed(Problem::CertificateRevoked)
            .advise("issue a new certificate for the broker's ssl.keystore.location; the key of a revoked one may be known to others")
            .advise("if the certificate is right, check that the file of ssl.crl.location is a list of its issuer and not too old"),
        TlsProblem::BadCertificate => failed(Problem::BadCertificate)
            .advise("issue a new certificate for the broker: X.509 version 3, SHA-256, RSA with 2048 bits or ECDSA with P-256"),
        TlsProblem::ClientCertificateMissing => {
            let missing = failed(Problem::ClientCertificateMissing);
            match &shown.client {
                ClientCertificate::Missing(accepted) => missing.note(format!(
                    "the broker asked for a client certificate{}",
                    accepted_issuers(accepted)
                )),
                _ => missing,
            }
            .advise("set ssl.certificate.location and ssl.key.location, or ssl.keystore.location and ssl.keystore.password")
        }
        TlsProblem::ClientCertificateExpired => {
            let own_is_valid = doctor.tls.as_ref().and_then(TlsContext::client_certificate).is_some_and(|own| {
                (own.not_before..=own.not_after).contains(&now)
            });
            match own_is_valid {
                true => clock_advice(failed(Problem::ClockSkew))
                    .note("by this machine's clock the client's certificate is valid, by the broker's it is not"),
                false => failed(Problem::ClientCertificateExpired).advise("renew the client's certificate"),
            }
        }
        TlsProblem::ClientCertificateRefused => failed(Problem::ClientCertificateRefused)
            .advise("add the CA of the client's certificate to the broker's ssl.truststore.location")
            .advise("present the intermediate certificates, too: append them to ssl.certificate.location"),
        _ => failed(Problem::TlsFailed)
            .advise("the broker's log may say more; a proxy between client and broker may be the cause"),
    }
}

/// Adds the certificates that the broker has shown.
fn show_chain(mut finding: Finding, shown: &Shown) -> Finding {
    for (depth, certificate) in shown.chain.iter().enumerate() {
        let names = match certificate.names.as_slice() {
            [] if depth == 0 => ", no names".to_owned(),
            [] => String::new(),
            names => format!(", for {}", names.join(" ")),
        };
        let Certificate { subject, issuer, not_before, not_after, .. } = certificate;
        finding = finding.note(format!(
            "certificate {depth}: {subject} (issued by {issuer}), valid {} to {}{names}",
            &date(*not_before)[..10],
            &date(*not_after)[..10]
        ));
    }
    let chain: Vec<Value> = shown.chain.iter().map(as_json).collect();
    finding.with("version", shown.version).with("suite", shown.suite.clone()).with("chain", chain)
}

fn as_json(certificate: &Certificate) -> Value {
    json!({
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "not_before": date(certificate.not_before),
        "not_after": date(certificate.not_after),
        "names": certificate.names,
    })
}

fn accepted_issuers(accepted: &[String]) -> String {
    match accepted {
        [] => String::new(),
        accepted => format!("; it accepts those issued by {}", accepted.join(" or ")),
    }
}

fn wrong_host(finding: Finding, shown: &Shown) -> Finding {
    let names = shown.chain.first().map_or(&[][..], |leaf| &leaf.names);
    let finding = match names {
        [] => finding,
        names => finding.advise(format!("connect by a name of the certificate: {}", names.join(", "))),
    };
    finding
        .advise("or issue a certificate with this host: keytool -ext san=dns:HOST, openssl -addext subjectAltName=DNS:HOST")
        .advise("brokers that are named in metadata need a certificate for advertised.listeners")
}

fn unknown_authority(finding: Finding, shown: &Shown) -> Finding {
    let issuer = shown.chain.last().map_or("its CA", |last| &last.issuer);
    finding
        .advise(format!("set ssl.ca.location to a file with the certificate of \"{issuer}\""))
        .advise("do not take that certificate from the connection: ask the administrator of the brokers")
}

fn clock_advice(finding: Finding) -> Finding {
    finding
        .advise(format!("compare the clocks: here it is {}; run `date -u` on the broker", date(now())))
        .advise("let NTP set the clock: timedatectl set-ntp true, or check chronyc tracking")
}

/// Returns true if a certificate becomes valid so soon that a wrong clock is the likely reason.
fn is_skew(shown: &Shown, now: i64) -> bool {
    let waits = shown.chain.iter().map(|certificate| certificate.not_before - now);
    waits.max().is_some_and(|longest| longest > 0 && longest <= SKEW)
}

/// Returns true if the trusted certificates have expired, too: that happens to a clock that is years ahead.
fn all_expired(doctor: &Doctor, shown: &Shown, now: i64) -> bool {
    let Some(context) = &doctor.tls else { return false };
    let (trusted, _) = context.trusted();
    !trusted.is_empty() && trusted.iter().chain(&shown.chain).all(|certificate| certificate.not_after < now)
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64)
}
