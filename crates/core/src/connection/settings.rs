//! The settings of a connection.

use std::{sync::Arc, time::Duration};

use ottla_protocol::api::ApiKey;

use crate::{
    backoff::Backoff,
    config::{EffectiveConfig, KafkaVersion, ProxyUrl},
    observer::Observer,
    sasl::SaslShared,
};

/// The least value of `reconnect.backoff.max.ms` that has an effect: a server that is down is not tried hundreds of times
/// per second.
const LEAST_BACKOFF_MAX: Duration = Duration::from_millis(100);

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// `client.id`.
    pub client_id: String,
    /// `client.software.name`, as sent to the broker.
    pub software_name: String,
    /// `client.software.version`.
    pub software_version: String,
    /// `receive.message.max.bytes`.
    pub max_response_bytes: usize,
    /// `socket.connection.setup.timeout.ms`.
    pub setup_timeout: Duration,
    /// `socket.connection.setup.timeout.max.ms`: the longest of these timeouts, which doubles with each failure in a row
    /// (KIP-601).
    pub setup_timeout_max: Duration,
    /// `proxy.url`: the proxy through which the broker is reached.
    pub proxy: Option<Arc<ProxyUrl>>,
    /// `socket.max.fails`: the number of requests in a row that may time out before the connection is closed; 0 means no limit.
    pub max_timeouts: u32,
    /// `socket.timeout.ms`: the default time that a broker has to respond.
    pub request_timeout: Duration,
    /// `reconnect.backoff.ms`.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`.
    pub reconnect_backoff_max: Duration,
    /// `connections.max.idle.ms`; `None` keeps idle connections.
    pub max_idle: Option<Duration>,
    /// `broker.address.ttl`: the time for which a resolved address is cached.
    pub address_ttl: Duration,
    /// `api.version.request`.
    pub ask_versions: bool,
    /// `api.version.request.timeout.ms`.
    pub ask_versions_timeout: Duration,
    /// `broker.version.fallback`.
    pub fallback_release: KafkaVersion,
    /// `api.version.fallback.ms`: the time for which `broker.version.fallback` is assumed after ApiVersions failed.
    pub fallback_for: Duration,
    /// Highest versions to use of some APIs, for tests and measurements.
    pub version_caps: Vec<(ApiKey, i16)>,
    /// The observer of the connection's traffic.
    pub observer: Option<Arc<dyn Observer>>,
    /// The mechanism and the credentials of SASL, if it is in use.
    pub sasl: Option<Arc<SaslShared>>,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            client_id: "ottla".to_owned(),
            software_name: "ottla".to_owned(),
            software_version: env!("CARGO_PKG_VERSION").to_owned(),
            max_response_bytes: 100_000_000,
            setup_timeout: Duration::from_secs(30),
            setup_timeout_max: Duration::from_secs(30),
            proxy: None,
            max_timeouts: 1,
            request_timeout: Duration::from_secs(60),
            reconnect_backoff: Duration::from_millis(100),
            reconnect_backoff_max: Duration::from_secs(10),
            max_idle: None,
            address_ttl: Duration::from_secs(1),
            ask_versions: true,
            ask_versions_timeout: Duration::from_secs(10),
            fallback_release: KafkaVersion(0, 10, 0),
            fallback_for: Duration::ZERO,
            version_caps: Vec::new(),
            observer: None,
            sasl: None,
        }
    }
}

impl ConnectionSettings {
    /// Reads the settings from the configuration, without an observer and without SASL.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        let fallback = KafkaVersion::parse(config.text("broker.version.fallback"));
        Self {
            client_id: config.text("client.id").to_owned(),
            software_name: software(config.text("client.software.name"), "ottla"),
            software_version: software(config.text("client.software.version"), env!("CARGO_PKG_VERSION")),
            max_response_bytes: config.size("receive.message.max.bytes"),
            setup_timeout: config.millis("socket.connection.setup.timeout.ms"),
            // It is Java's property: without it, all attempts have the same time.
            setup_timeout_max: if config.is_modified("socket.connection.setup.timeout.max.ms") {
                config.millis("socket.connection.setup.timeout.max.ms")
            } else {
                config.millis("socket.connection.setup.timeout.ms")
            },
            proxy: ProxyUrl::parse(config.text("proxy.url")).ok().map(Arc::new),
            max_timeouts: u32::try_from(config.integer("socket.max.fails")).unwrap_or(1),
            request_timeout: config.millis("socket.timeout.ms"),
            reconnect_backoff: config.millis("reconnect.backoff.ms"),
            reconnect_backoff_max: config.millis("reconnect.backoff.max.ms"),
            max_idle: config.positive_millis("connections.max.idle.ms"),
            address_ttl: config.millis("broker.address.ttl"),
            ask_versions: config.boolean("api.version.request"),
            ask_versions_timeout: config.millis("api.version.request.timeout.ms"),
            fallback_release: fallback.unwrap_or(KafkaVersion::OLDEST),
            fallback_for: config.millis("api.version.fallback.ms"),
            version_caps: Vec::new(),
            observer: None,
            sasl: None,
        }
    }

    /// Creates the back-off of a connection. With `reconnect.backoff.max.ms=0` it still grows, to `LEAST_BACKOFF_MAX`.
    pub(super) fn backoff(&self) -> Backoff {
        Backoff::new(self.reconnect_backoff, self.reconnect_backoff_max.max(LEAST_BACKOFF_MAX))
    }
}

/// Converts a software name or version to a form that brokers accept: KIP-511 allows letters, digits, `.` and `-`, with
/// a letter or a digit at both ends. Brokers close the connection if the name has another form or is empty.
fn software(text: &str, default: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let text: String = text.chars().map(|letter| if allowed(letter) { letter } else { '-' }).collect();
    match text.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()) {
        "" => default.to_string(),
        text => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_are_as_brokers_accept_them() {
        for (name, expected) in [
            ("a b/c", "a-b-c"),
            ("-1.0 ü", "1.0"),
            ("librdkafka", "librdkafka"),
            (".x_y.", "x-y"),
            ("ü", "ottla"),
        ] {
            assert_eq!(software(name, "ottla"), expected);
        }
    }
}
