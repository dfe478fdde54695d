//! The limits of the bandwidth that replication takes, which are a broker's only properties that can be changed. They are stored
//! and not enforced: replicas of the embedded broker take no bandwidth.

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use super::configs::{ConfigEntry, ConfigSource, ConfigType};
use crate::{changes::ConfiguredResource, cluster::Cluster, options::BrokerId, provisioning::Refusal};

/// The changed properties of brokers.
pub(crate) type BrokerLimits = SortedMap<BrokerId, SortedMap<String, String>>;

const NAMES: [&str; 3] = [
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
];

impl Cluster {
    /// Returns the broker of a resource.
    pub(crate) fn broker_of_resource(&self, name: &str) -> Result<BrokerId, Refusal> {
        match name.parse().map(BrokerId) {
            Ok(id) if self.brokers.contains_key(&id) => Ok(id),
            _ => Err((ErrorCode::INVALID_REQUEST, format!("There is no broker {name}."))),
        }
    }

    /// Returns the limits of a broker.
    pub(crate) fn broker_limits(&self, id: BrokerId) -> impl Iterator<Item = ConfigEntry> {
        let set = self.administration.broker_limits.get(&id);
        NAMES.into_iter().map(move |name| {
            let (value, default) = (set.and_then(|set| set.get(name)), i64::MAX.to_string());
            ConfigEntry {
                name,
                value: value.unwrap_or(&default).clone(),
                source: if value.is_some() { ConfigSource::DynamicBroker } else { ConfigSource::Default },
                config_type: ConfigType::Long,
                read_only: false,
                synonym: None,
                default,
            }
        })
    }

    /// Replaces the limits of a broker, or only validates them.
    pub(crate) fn set_broker_limits(
        &mut self,
        id: BrokerId,
        limits: SortedMap<String, String>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        for (name, value) in &limits {
            if !NAMES.contains(&name.as_str()) {
                return Err((ErrorCode::INVALID_REQUEST, format!("{name} of a broker can't be changed.")));
            }
            if !value.parse::<i64>().is_ok_and(|rate| rate >= 0) {
                let message = format!("Invalid value {value} for configuration {name}");
                return Err((ErrorCode::INVALID_CONFIG, message));
            }
        }
        if !validate_only {
            self.note_configs(ConfiguredResource::Broker, &id.to_string(), &limits);
            self.administration.broker_limits.insert(id, limits);
        }
        Ok(())
    }
}
