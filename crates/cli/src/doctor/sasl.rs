//! The authentication with SASL, and what its failures mean.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ottla_core::{
    config::sasl::Mechanism,
    sasl::{SaslSettings, SaslShared, Token, exchange::Exchange, scram::Progress},
    shown::quoted,
};
use ottla_net::{Issuer, Secret, clock};
use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse},
        sasl_handshake::SaslHandshakeRequest,
    },
};

use super::{
    connection::{Broken, Connection},
    diagnosis::{Finding, Problem, Stepped},
    steps::Doctor,
};

/// Returns the mechanism and the user in words.
pub fn described(sasl: &SaslShared) -> String {
    let mechanism = sasl.settings().mechanism;
    match user(sasl) {
        Some(name) => format!("{mechanism} as \"{name}\""),
        None => mechanism.to_string(),
    }
}

/// Returns the user's name, unless it may be the ID of a token.
pub fn user(sasl: &SaslShared) -> Option<String> {
    let credentials = sasl.credentials();
    let is_name = !credentials.is_delegation_token && !credentials.username.is_empty();
    is_name.then(|| quoted(&credentials.username))
}

/// Authenticates, as the first request after ApiVersions.
pub fn authenticate(
    doctor: &Doctor,
    connection: &mut Connection,
    sasl: &Arc<SaslShared>,
    host: &str,
) -> Stepped<()> {
    let mechanism = sasl.settings().mechanism;
    if mechanism.needs_token() {
        sasl.set_token(obtain_token(sasl.settings())?);
    }
    connection.set_deadline(doctor.deadline());
    let has_messages = connection.versions.pick_any(ApiKey::SaslAuthenticate).is_some();
    let version = connection.versions.pick(ApiKey::SaslHandshake, 0..=i16::from(has_messages));
    let version = version.ok_or_else(|| no_sasl(doctor))?;
    let request = SaslHandshakeRequest { mechanism: mechanism.name().to_owned() };
    let answer = connection.call_in(version, &request).map_err(|broken| doctor.explain(broken))?;
    let offered: Vec<_> = answer.mechanisms.iter().take(50).map(|name| quoted(name)).collect();
    let mut exchange = Exchange::new(Arc::clone(sasl), host, version == 0);
    let accepted = exchange.check_handshake(answer.error_code, &answer.mechanisms, false);
    let mut message = match accepted.and_then(|()| exchange.begin(clock::now())) {
        Ok(Progress::Send(first)) => first,
        Ok(Progress::Derive | Progress::Done) => next_message(doctor, &mut exchange)?,
        Err(_) if answer.error_code == ErrorCode::UNSUPPORTED_SASL_MECHANISM => {
            let text = format!("the broker does not offer {mechanism}; it offers {}", offered.join(", "));
            return Err(Finding::failed(Problem::WrongMechanism, text)
                .advise(format!("set sasl.mechanisms to one of {}", offered.join(", ")))
                .advise(format!("or add {mechanism} to the broker's sasl.enabled.mechanisms")));
        }
        Err(_) if answer.error_code == ErrorCode::ILLEGAL_SASL_STATE => return Err(no_sasl(doctor)),
        Err(error) => return Err(failed(&error)),
    };
    let lifetime_ms = loop {
        if exchange.ends_without_response() {
            connection.send_raw(message.expose()).map_err(|broken| doctor.explain(broken))?;
            break 0;
        }
        let answer = send(connection, &exchange, &message).map_err(|broken| match broken {
            // Brokers before 1.0 close the connection instead of responding.
            Broken::Closed(_) if exchange.is_raw => {
                wrong_credentials(mechanism, "the broker closed the connection: it refuses the credentials")
            }
            other => doctor.explain(other),
        })?;
        if answer.error_code.is_error() {
            let refusal = exchange.refused(answer.error_code, answer.error_message.as_deref());
            return Err(wrong_credentials(mechanism, &refusal.context().detail));
        }
        match exchange.handle(&answer.auth_bytes).map_err(|error| failed(&error))? {
            Progress::Send(next) => message = next,
            Progress::Derive => message = next_message(doctor, &mut exchange)?,
            Progress::Done => break answer.session_lifetime_ms,
        }
    };
    let mut finding = Finding::passed(format!("authenticated with {}", described(sasl)))
        .note(format!("the broker offers {}", offered.join(", ")))
        .with("mechanism", mechanism.name())
        .with("offered", offered);
    if let Some(lifetime) = u64::try_from(lifetime_ms).ok().filter(|millis| *millis > 0) {
        let shown = Duration::from_millis(lifetime);
        finding =
            finding.note(format!("the session ends after {shown:?}; clients authenticate again before"));
    }
    Ok(((), finding.with("session_lifetime_ms", lifetime_ms)))
}

/// Makes the next message from the password, or waits until the Kerberos library has made it.
fn next_message(doctor: &Doctor, exchange: &mut Exchange) -> Result<Secret, Finding> {
    let deadline = doctor.deadline();
    loop {
        if let Some(next) = exchange.derive() {
            return Ok(next);
        }
        match exchange.take_reply() {
            Some(Ok(next)) => return Ok(next),
            Some(Err(error)) => {
                return Err(failed(&error)
                    .advise("`klist` lists the tickets of this user, and `kinit` gets one")
                    .advise("without kinit: set sasl.kerberos.keytab and sasl.kerberos.principal")
                    .advise("compare the clocks with `date -u`: Kerberos permits five minutes"));
            }
            None if Instant::now() > deadline => {
                let text = "the Kerberos library did not respond in time";
                return Err(failed(&exchange.error(text))
                    .advise("check that the servers in krb5.conf are reachable from this machine"));
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn send(
    connection: &mut Connection,
    exchange: &Exchange,
    message: &Secret,
) -> Result<SaslAuthenticateResponse, Broken> {
    if exchange.is_raw {
        let auth_bytes = connection.exchange_raw(message.expose())?;
        return Ok(SaslAuthenticateResponse { auth_bytes, ..Default::default() });
    }
    connection.call(&SaslAuthenticateRequest { auth_bytes: message.expose().to_vec() })
}

/// Returns the token that the configuration describes, or the keys of AWS.
fn obtain_token(settings: &SaslSettings) -> Result<Token, Finding> {
    let no_token = |why: String| Finding::failed(Problem::NoToken, why);
    if let Some(fields) = &settings.unsecured {
        return ottla_net::sasl::unsecured_token(fields)
            .map_err(|why| no_token(why).advise("correct sasl.oauthbearer.config"));
    }
    let issuer = Issuer::of(settings)
        .map_err(|error| Finding::failed(Problem::BadConfiguration, error.context().detail.clone()))?;
    let issuer = issuer.ok_or_else(|| {
        no_token("the configuration names no source of tokens for OAUTHBEARER".to_owned())
            .advise("the application gets tokens from its identity provider by a callback, which the doctor does not have")
            .advise("the library gets them itself with sasl.oauthbearer.method=oidc")
            .advise("for a test with a broker that accepts them: enable.sasl.oauthbearer.unsecure.jwt=true")
    })?;
    issuer.token().map_err(|failure| {
        no_token(failure.reason).advise(match issuer {
            Issuer::Oidc(_) => "check the sasl.oauthbearer properties with the identity provider",
            Issuer::Aws(_) => "give the process keys as AWS's tools find them, or set sasl.aws.access.key.id",
        })
    })
}

fn no_sasl(doctor: &Doctor) -> Finding {
    let text = format!("the listener has no SASL, and security.protocol={} has", doctor.protocol);
    let without = if doctor.tls.is_some() { "ssl" } else { "plaintext" };
    Finding::failed(Problem::NoSaslListener, text)
        .advise(format!("set security.protocol={without}"))
        .advise("or use the port of a listener with SASL")
}

fn failed(error: &ottla::Error) -> Finding {
    Finding::failed(Problem::AuthenticationFailed, error.context().detail.clone())
        .advise("the broker's log at this time says more")
}

fn wrong_credentials(mechanism: Mechanism, text: &str) -> Finding {
    let finding = Finding::failed(Problem::WrongCredentials, text);
    match mechanism {
        Mechanism::Plain => finding
            .advise("check sasl.username and sasl.password; white space at their ends counts")
            .advise("the broker's users are in the PlainLoginModule of its sasl.jaas.config: user_NAME=\"PASSWORD\""),
        Mechanism::Scram(_) => finding
            .advise("check sasl.username and sasl.password; white space at their ends counts")
            .advise(format!(
                "let an administrator set the password for this mechanism: ottla users set-password NAME --mechanism {mechanism}"
            ))
            .advise("a delegation token needs sasl.delegation.token=true"),
        Mechanism::AwsMskIam => finding
            .advise("the role of these keys needs kafka-cluster:Connect on the cluster")
            .advise("a signature is refused before and after its time: compare the clocks with `date -u`"),
        Mechanism::Gssapi => finding
            .advise("the broker's key table may be older than its principal: compare `klist -k` with `kvno` on the broker")
            .advise("the broker's log says why it refuses the ticket"),
        _ => finding
            .advise("check issuer, audience and signature of the token with the identity provider; the broker's log says more")
            .advise("a token is refused before and after its time: compare the clocks with `date -u`"),
    }
}
