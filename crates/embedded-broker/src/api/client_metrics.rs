//! Client metrics subscriptions, as `kafka-client-metrics.sh` creates them: configuration of a resource type of their
//! own. Each subscription selects clients, metrics and a push interval.

use std::time::Duration;

use ottla_protocol::{error_code::ErrorCode, pattern::Pattern};
use ottla_sorted::SortedMap;

use super::configs::{ConfigEntry, ConfigSource, ConfigType};
use crate::{
    changes::ConfiguredResource, cluster::Cluster, provisioning::Refusal, telemetry::ClientMetadata,
};

/// The resource type of client metrics subscriptions.
pub(crate) const CLIENT_METRICS: i8 = 16;

/// A subscription.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscription {
    /// The explicitly set entries.
    configs: SortedMap<String, String>,
    /// Prefixes of metric names, or `*`.
    pub metrics: Vec<String>,
    /// `interval.ms`, if explicitly set.
    pub interval: Option<Duration>,
    /// The client properties that must match, with the pattern that each must match as a whole.
    patterns: Vec<(String, Pattern)>,
}

const ROWS: [(&str, &str, ConfigType); 3] = [
    ("interval.ms", "300000", ConfigType::Int),
    ("match", "", ConfigType::List),
    ("metrics", "", ConfigType::List),
];

/// The client properties by which a subscription selects clients.
const SELECTORS: [&str; 6] = [
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

impl Subscription {
    /// Creates a subscription from these entries. Error: the invalid entry.
    fn new(configs: SortedMap<String, String>) -> Result<Self, Refusal> {
        let mut subscription = Self::default();
        for (name, value) in &configs {
            match name.as_str() {
                "metrics" => subscription.metrics = entries(value).map(str::to_owned).collect(),
                "interval.ms" => subscription.interval = Some(interval(value)?),
                "match" => subscription.patterns = entries(value).map(pattern).collect::<Result<_, _>>()?,
                _ => {
                    let message = format!("Unknown client metrics configuration: {name}");
                    return Err((ErrorCode::INVALID_REQUEST, message));
                }
            }
        }
        subscription.configs = configs;
        Ok(subscription)
    }

    /// Returns true if the subscription selects this client.
    pub fn matches(&self, client: &ClientMetadata) -> bool {
        self.patterns.iter().all(|(selector, pattern)| {
            let value = match selector.as_str() {
                "client_instance_id" => Some(client.instance_id.to_string()),
                "client_id" => client.client_id.clone(),
                "client_software_name" => client.software.as_ref().map(|(name, _)| name.clone()),
                "client_software_version" => client.software.as_ref().map(|(_, version)| version.clone()),
                "client_source_address" => client.address.map(|address| address.ip().to_string()),
                _ => client.address.map(|address| address.port().to_string()),
            };
            value.is_some_and(|value| pattern.is_match(&value))
        })
    }
}

impl Cluster {
    /// Returns all entries of a subscription, which needn't exist.
    pub(crate) fn client_metrics_configs(&self, name: &str) -> Result<Vec<ConfigEntry>, Refusal> {
        if name.is_empty() {
            let message = "Client metrics subscription name must not be empty".to_owned();
            return Err((ErrorCode::INVALID_REQUEST, message));
        }
        let set = self.telemetry.subscription(name);
        let entries = ROWS.into_iter().map(|(name, default, config_type)| {
            let value = set.and_then(|set| set.configs.get(name));
            ConfigEntry {
                name,
                value: value.cloned().unwrap_or_else(|| default.to_owned()),
                source: if value.is_some() { ConfigSource::ClientMetrics } else { ConfigSource::Default },
                config_type,
                read_only: false,
                synonym: None,
                default: default.to_owned(),
            }
        });
        Ok(entries.collect())
    }

    /// Returns the explicitly set entries of a subscription.
    pub(crate) fn client_metrics_config_map(&self, name: &str) -> SortedMap<String, String> {
        self.telemetry.subscription(name).map(|set| set.configs.clone()).unwrap_or_default()
    }

    /// Replaces a subscription's configuration, or only validates it. An empty configuration deletes the subscription.
    pub(crate) fn set_client_metrics_configs(
        &mut self,
        name: &str,
        configs: SortedMap<String, String>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        if name.is_empty() {
            return Err((ErrorCode::INVALID_REQUEST, "Subscription name can't be empty".to_owned()));
        }
        let is_any = !configs.is_empty();
        let subscription = Subscription::new(configs.clone())?;
        if !validate_only {
            self.note_configs(ConfiguredResource::ClientMetrics, name, &configs);
            self.telemetry.set_subscription(name, is_any.then_some(subscription));
        }
        Ok(())
    }
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn interval(value: &str) -> Result<Duration, Refusal> {
    let Ok(millis) = value.trim().parse::<i32>() else {
        let message =
            format!("Invalid value {value} for configuration interval.ms: Not a number of type INT");
        return Err((ErrorCode::INVALID_CONFIG, message));
    };
    match u64::try_from(millis) {
        Ok(millis @ 100..=3_600_000) => Ok(Duration::from_millis(millis)),
        _ => {
            let message = format!(
                "Invalid value {millis} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
            );
            Err((ErrorCode::INVALID_REQUEST, message))
        }
    }
}

fn pattern(text: &str) -> Result<(String, Pattern), Refusal> {
    let illegal = || (ErrorCode::INVALID_CONFIG, format!("Illegal client matching pattern: {text}"));
    let (selector, pattern) = text.split_once('=').ok_or_else(illegal)?;
    let selector = selector.trim();
    if !SELECTORS.contains(&selector) {
        return Err(illegal());
    }
    Ok((selector.to_owned(), Pattern::whole(pattern.trim()).map_err(|_| illegal())?))
}
