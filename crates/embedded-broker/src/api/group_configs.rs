//! Configuration of single groups, which overrides the brokers' settings. A group needn't exist to be configured.
//! Kafka's limits for the values do not apply here, so that tests can use short times.

use std::time::Duration;

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use super::configs::{ConfigEntry, ConfigSource, ConfigType};
use crate::{
    changes::ConfiguredResource,
    cluster::Cluster,
    options::{IsolationLevel, ShareGroupOptions, ShareOffsetReset},
    provisioning::Refusal,
    topics::check_name,
};

use ConfigType::{Boolean, Int, String as Text};

/// The configuration of all configured groups.
pub(crate) type GroupConfigs = SortedMap<String, SortedMap<String, String>>;

/// The resource type of groups.
pub(crate) const GROUP: i8 = 32;

impl Cluster {
    /// Returns all entries of a group.
    pub(crate) fn group_configs_of(&self, group: &str) -> Result<Vec<ConfigEntry>, Refusal> {
        if group.is_empty() {
            return Err((ErrorCode::INVALID_REQUEST, "Default group resources are not allowed.".to_owned()));
        }
        let set = self.group_configs.get(group);
        let entries = rows(&self.options.share_groups).into_iter().map(|(name, default, config_type)| {
            let value = set.and_then(|set| set.get(name));
            ConfigEntry {
                name,
                value: value.cloned().unwrap_or_else(|| default.clone()),
                source: if value.is_some() { ConfigSource::Group } else { ConfigSource::Default },
                config_type,
                read_only: false,
                synonym: None,
                default,
            }
        });
        Ok(entries.collect())
    }

    /// Replaces a group's configuration, or only validates it.
    pub(crate) fn set_group_configs(
        &mut self,
        group: &str,
        configs: SortedMap<String, String>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        if group.is_empty() {
            return Err((ErrorCode::INVALID_REQUEST, "Default group resources are not allowed.".to_owned()));
        }
        let mut checked = self.options.share_groups.clone();
        for (name, value) in &configs {
            apply(&mut checked, name, value)?;
        }
        if validate_only {
            return Ok(());
        }
        self.note_configs(ConfiguredResource::Group, group, &configs);
        if configs.is_empty() {
            self.group_configs.remove(group);
        } else {
            self.group_configs.insert(group.to_owned(), configs);
        }
        Ok(())
    }

    /// Returns the settings that apply to a share group.
    pub(crate) fn share_settings(&self, group: &str) -> ShareGroupOptions {
        let mut settings = self.options.share_groups.clone();
        for (name, value) in self.group_configs.get(group).into_iter().flatten() {
            // The values were validated when they were set.
            let _ = apply(&mut settings, name, value);
        }
        settings
    }
}

/// Every share group configuration of Kafka 4.3 that has an effect here, and those of dead letter topics (KIP-1191): name, default, type.
fn rows(options: &ShareGroupOptions) -> [(&'static str, String, ConfigType); 10] {
    let reset = match options.auto_offset_reset {
        ShareOffsetReset::Earliest => "earliest".to_owned(),
        ShareOffsetReset::Latest => "latest".to_owned(),
        ShareOffsetReset::ByDuration(back) => format!("by_duration:PT{}S", back.as_secs_f64()),
    };
    let isolation = match options.isolation_level {
        IsolationLevel::ReadUncommitted => "read_uncommitted",
        IsolationLevel::ReadCommitted => "read_committed",
    };
    let millis = |duration: Duration| duration.as_millis().to_string();
    [
        ("errors.deadletterqueue.copy.record.enable", options.dead_letter_copies.to_string(), Boolean),
        ("errors.deadletterqueue.topic.name", options.dead_letter_topic.clone(), Text),
        ("share.auto.offset.reset", reset, Text),
        ("share.delivery.count.limit", options.delivery_count_limit.to_string(), Int),
        ("share.heartbeat.interval.ms", millis(options.heartbeat_interval), Int),
        ("share.isolation.level", isolation.to_owned(), Text),
        ("share.partition.max.record.locks", options.partition_max_record_locks.to_string(), Int),
        ("share.record.lock.duration.ms", millis(options.record_lock_duration), Int),
        ("share.renew.acknowledge.enable", options.renew_acknowledge_enable.to_string(), Boolean),
        ("share.session.timeout.ms", millis(options.session_timeout), Int),
    ]
}

/// Applies the value of an entry.
fn apply(options: &mut ShareGroupOptions, name: &str, value: &str) -> Result<(), Refusal> {
    let invalid = || (ErrorCode::INVALID_CONFIG, format!("Invalid value {value} for configuration {name}"));
    let number = || value.parse::<i32>().ok().filter(|number| *number > 0).ok_or_else(invalid);
    let millis = || number().map(|number| Duration::from_millis(u64::from(number.unsigned_abs())));
    match name {
        "errors.deadletterqueue.copy.record.enable" => {
            options.dead_letter_copies = value.parse().map_err(|_| invalid())?;
        }
        "errors.deadletterqueue.topic.name" => {
            let is_topic = value.is_empty() || check_name(value).is_ok() && !value.starts_with("__");
            options.dead_letter_topic = Some(value.to_owned()).filter(|_| is_topic).ok_or_else(invalid)?;
        }
        "share.auto.offset.reset" => {
            options.auto_offset_reset = match value.strip_prefix("by_duration:") {
                Some(duration) => ShareOffsetReset::ByDuration(iso_duration(duration).ok_or_else(invalid)?),
                None if value == "earliest" => ShareOffsetReset::Earliest,
                None if value == "latest" => ShareOffsetReset::Latest,
                None => return Err(invalid()),
            };
        }
        "share.delivery.count.limit" => {
            options.delivery_count_limit = i16::try_from(number()?).map_err(|_| invalid())?;
        }
        "share.heartbeat.interval.ms" => options.heartbeat_interval = millis()?,
        "share.isolation.level" => {
            options.isolation_level = match value {
                "read_uncommitted" => IsolationLevel::ReadUncommitted,
                "read_committed" => IsolationLevel::ReadCommitted,
                _ => return Err(invalid()),
            };
        }
        "share.partition.max.record.locks" => options.partition_max_record_locks = number()?,
        "share.record.lock.duration.ms" => options.record_lock_duration = millis()?,
        "share.renew.acknowledge.enable" => {
            options.renew_acknowledge_enable = value.parse().map_err(|_| invalid())?;
        }
        "share.session.timeout.ms" => options.session_timeout = millis()?,
        _ => return Err((ErrorCode::INVALID_CONFIG, format!("Unknown group config name: {name}"))),
    }
    Ok(())
}

/// Formats a duration as ISO 8601: `PnDTnHnMn.nS`.
fn iso_duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('P')?;
    let (days, times) = text.split_once('T').unwrap_or((text, ""));
    let mut seconds = 0.0;
    let mut parts = 0;
    for (mut rest, units) in
        [(days, &[('D', 86_400.0)][..]), (times, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])]
    {
        for (unit, size) in units {
            if let Some((number, after)) = rest.split_once(*unit) {
                let is_number = number.bytes().all(|b| b.is_ascii_digit() || b == b'.' && *unit == 'S');
                seconds += number.parse::<f64>().ok().filter(|_| is_number)? * size;
                rest = after;
                parts += 1;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| parts > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_iso_8601() {
        for (text, millis) in [
            ("PT1H", 3_600_000),
            ("P1DT2H3M4.5S", 93_784_500),
            ("P2D", 172_800_000),
            ("PT0S", 0),
            ("PT0.25S", 250),
        ] {
            assert_eq!(iso_duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "P", "PT", "1H", "PT1", "PT1H1", "P1H", "PT-1S", "PTS", "PT1S1M", "PT1.5H", "PT1e9S"]
        {
            assert_eq!(iso_duration(text), None, "{text}");
        }
        let endless = format!("P{}D", "9".repeat(40));
        assert_eq!(iso_duration(&endless), None);
    }
}
