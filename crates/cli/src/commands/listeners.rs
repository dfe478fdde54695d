//! The listeners of `ottla broker`.

use super::broker::BrokerOptions;
use crate::failure::{Failure, Outcome};

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Neither TLS nor SASL.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without TLS.
    SaslPlaintext,
    /// TLS and SASL.
    SaslSsl,
}

impl SecurityProtocol {
    const ALL: [Self; 4] = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];

    /// Returns the value of `security.protocol`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Ssl => "ssl",
            Self::SaslPlaintext => "sasl_plaintext",
            Self::SaslSsl => "sasl_ssl",
        }
    }

    /// Returns true if connections are encrypted.
    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }

    /// Returns true if clients have to authenticate.
    pub const fn has_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }
}

/// A value of `--listener`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerOption {
    /// The protocol.
    pub protocol: SecurityProtocol,
    /// The port of the first broker, if it is given.
    pub port: Option<u16>,
}

impl ListenerOption {
    /// Parses `PROTOCOL[:PORT]`. Error: why it is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
        let protocol = SecurityProtocol::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name));
        let protocol = protocol.ok_or_else(|| {
            format!("unknown protocol `{name}`; use plaintext, ssl, sasl_plaintext or sasl_ssl")
        })?;
        let port =
            port.map(|port| port.parse().map_err(|_| format!("`{port}` is not a port"))).transpose()?;
        Ok(Self { protocol, port })
    }
}

/// Returns the listeners of each broker. Without `--listener` there is one.
pub fn listeners(options: &BrokerOptions, has_sasl: bool) -> Outcome<Vec<ListenerOption>> {
    let mut listeners = options.listener.clone();
    if listeners.is_empty() {
        let protocol = match (options.tls_self_signed, has_sasl) {
            (false, false) => SecurityProtocol::Plaintext,
            (true, false) => SecurityProtocol::Ssl,
            (false, true) => SecurityProtocol::SaslPlaintext,
            (true, true) => SecurityProtocol::SaslSsl,
        };
        listeners.push(ListenerOption { protocol, port: None });
    }
    if let Some(first) = listeners.first_mut() {
        first.port.get_or_insert(options.port);
    }
    let uses_sasl = listeners.iter().any(|listener| listener.protocol.has_sasl());
    if uses_sasl != has_sasl {
        let what = if uses_sasl {
            "--listener: SASL needs mechanisms; add --sasl MECHANISM"
        } else {
            "--sasl: no --listener uses SASL; add --listener sasl_ssl or --listener sasl_plaintext"
        };
        return Err(Failure::Usage(what.to_owned()));
    }
    let ports = listeners.iter().filter_map(|listener| listener.port).filter(|port| *port != 0);
    let mut ports: Vec<i32> = ports.map(i32::from).collect();
    ports.sort_unstable();
    if let Some(last) = ports.last().filter(|last| **last + options.brokers - 1 > 65_535) {
        return Err(Failure::Usage(format!(
            "port {last}: {} brokers need as many ports, and the last port is 65535; choose a lower one",
            options.brokers
        )));
    }
    if let Some(pair) = ports.windows(2).find(|pair| pair[0] + options.brokers > pair[1]) {
        return Err(Failure::Usage(format!(
            "--listener: {} brokers need as many ports for each listener, and those from {} and from {} on overlap",
            options.brokers, pair[0], pair[1]
        )));
    }
    Ok(listeners)
}
