//! The settings of client telemetry.

use std::time::Duration;

use super::application::ApplicationMetrics;
use crate::config::EffectiveConfig;
pub use crate::wall_clock::WallClock;

/// The settings of client telemetry.
#[derive(Clone, Debug)]
pub struct TelemetrySettings {
    /// The attributes of the client that brokers don't know: `client_rack`, `group_id` and so on.
    pub labels: Vec<(&'static str, String)>,
    /// `client.software.name` and `client.software.version`.
    pub scope: (String, String),
    /// `socket.timeout.ms`.
    pub request_timeout: Duration,
    /// The system's time.
    pub wall_clock: WallClock,
    /// The metrics of the application (KIP-1076).
    pub application: ApplicationMetrics,
}

/// The attributes by Java's names, with the property of each.
const LABELS: [(&str, &str); 4] = [
    ("client_rack", "client.rack"),
    ("group_id", "group.id"),
    ("group_instance_id", "group.instance.id"),
    ("transactional_id", "transactional.id"),
];

impl TelemetrySettings {
    /// Reads the settings from the configuration; `None` if `enable.metrics.push` is false.
    pub fn new(config: &EffectiveConfig<'_>, wall_clock: WallClock) -> Option<Self> {
        config.boolean("enable.metrics.push").then(|| Self {
            labels: LABELS
                .iter()
                .map(|(label, property)| (*label, config.text(property).to_owned()))
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            scope: (
                config.text("client.software.name").to_owned(),
                config.text("client.software.version").to_owned(),
            ),
            request_timeout: config.millis("socket.timeout.ms"),
            wall_clock,
            application: ApplicationMetrics::default(),
        })
    }
}
