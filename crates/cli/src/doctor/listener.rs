//! The protocol that a port speaks, if it is not the protocol of the client.

use std::net::SocketAddr;

use ottla_net::{TlsContext, TlsProblem, TlsSettings};
use ottla_protocol::{error_code::ErrorCode, generated::sasl_handshake::SaslHandshakeRequest};

use super::{
    connection::{Broken, Connection, Link, Spoken},
    diagnosis::{Finding, Problem},
    steps::Doctor,
};

/// Returns true if the port answers a TLS handshake. Certificates are not checked: nothing is sent there.
pub fn has_tls(doctor: &Doctor, server: (&str, u16), address: SocketAddr) -> bool {
    probe_tls(doctor, server, address).is_some()
}

/// Performs a handshake without a check. `None` if the port has no TLS; otherwise the session, unless it failed.
fn probe_tls(doctor: &Doctor, server: (&str, u16), address: SocketAddr) -> Option<Option<Link>> {
    let context = TlsContext::new(TlsSettings::default()).ok()?;
    let stream = doctor.dial_again(address)?;
    match context.probe(server.0, server.1, doctor.timed(stream)) {
        Ok(probe) => Some(Some(Link::Tls(Box::new(probe)))),
        Err(failure) => match failure.problem {
            TlsProblem::NotTls | TlsProblem::Closed | TlsProblem::Silent => None,
            _ => Some(None),
        },
    }
}

/// Returns true if the port answers a request of HTTP. Some servers close the connection after what is not HTTP, or wait for more
/// of it.
pub fn speaks_http(doctor: &Doctor, address: SocketAddr) -> bool {
    doctor.dial_again(address).is_some_and(|stream| Link::Plain(doctor.timed(stream)).answers_http())
}

/// Explains that the listener has TLS and the client has not.
pub fn speaks_tls(doctor: &Doctor, server: (&str, u16), address: SocketAddr) -> Finding {
    let link = probe_tls(doctor, server, address).flatten();
    let mechanisms = match link.map(|link| mechanisms(doctor, link, address)) {
        Some(Err(http @ Broken::NotKafka(Spoken::Http))) => return doctor.explain(http),
        Some(Err(Broken::Closed(_) | Broken::Silent | Broken::NotKafka(_)))
            if probe_tls(doctor, server, address).flatten().is_some_and(|mut link| link.answers_http()) =>
        {
            return doctor.explain(Broken::NotKafka(Spoken::Http));
        }
        answer => answer.and_then(Result::ok),
    };
    let text = format!("the listener has TLS, and security.protocol={} has not", doctor.protocol);
    let finding = Finding::failed(Problem::TlsListener, text);
    let offers = mechanisms.as_ref().is_some_and(|names| !names.is_empty());
    let finding = match (offers, doctor.sasl.is_some()) {
        (true, _) => {
            let names = mechanisms.unwrap_or_default().join(", ");
            finding
                .advise("set security.protocol=sasl_ssl")
                .note(format!("the listener offers SASL with {names}"))
        }
        (false, true) => finding.advise("set security.protocol=sasl_ssl, or ssl if the listener has no SASL"),
        (false, false) => finding.advise("set security.protocol=ssl"),
    };
    finding
        .advise("set ssl.ca.location to the certificate of the brokers' CA, unless the system trusts it")
        .advise("or use the port of a listener without TLS")
}

/// Explains that the listener has no TLS, if that is so.
pub fn speaks_plaintext(doctor: &Doctor, address: SocketAddr) -> Option<Finding> {
    let stream = doctor.dial_again(address)?;
    let mechanisms = mechanisms(doctor, Link::Plain(doctor.timed(stream)), address).ok()?;
    let text = format!("the listener has no TLS, and security.protocol={} has", doctor.protocol);
    let finding = Finding::failed(Problem::PlaintextListener, text);
    let finding = match mechanisms.as_slice() {
        [] => finding.advise("set security.protocol=plaintext"),
        names => finding
            .note(format!("the listener offers SASL with {}", names.join(", ")))
            .advise("set security.protocol=sasl_plaintext"),
    };
    Some(finding.advise(
        "or use the port of a listener with TLS: without it, anyone on the network can read the data",
    ))
}

/// Explains that the listener requires SASL and the client has none, if that is so.
pub fn requires_sasl(doctor: &Doctor, server: (&str, u16), address: SocketAddr) -> Option<Finding> {
    let stream = doctor.dial_again(address)?;
    let stream = doctor.timed(stream);
    let link = match &doctor.tls {
        Some(context) => Link::Tls(Box::new(context.probe(server.0, server.1, stream).ok()?)),
        None => Link::Plain(stream),
    };
    let names = mechanisms(doctor, link, address).ok().filter(|names| !names.is_empty())?.join(", ");
    let with_sasl = if doctor.tls.is_some() { "sasl_ssl" } else { "sasl_plaintext" };
    let text = format!("the listener requires SASL, and security.protocol={} has none", doctor.protocol);
    Some(Finding::failed(Problem::SaslListener, text).note(format!("the listener offers {names}")).advise(
        format!("set security.protocol={with_sasl}, sasl.mechanisms to one of {names}, and the credentials"),
    ))
}

/// Asks a listener for its SASL mechanisms: none if it has no SASL. Error: it does not speak Kafka's protocol.
fn mechanisms(doctor: &Doctor, link: Link, address: SocketAddr) -> Result<Vec<String>, Broken> {
    let mut connection = Connection::greet(link, address, &doctor.client_id)?;
    let request = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
    Ok(match connection.call_in(1, &request) {
        Ok(answer) if answer.error_code == ErrorCode::ILLEGAL_SASL_STATE => Vec::new(),
        Ok(answer) => answer.mechanisms.iter().take(50).map(|name| ottla_core::shown::quoted(name)).collect(),
        // It has spoken before.
        Err(_) => Vec::new(),
    })
}
