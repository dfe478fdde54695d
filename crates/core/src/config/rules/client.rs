//! The rules of every kind of client.

use super::{Outcome, conflict, java, security};
use crate::config::{
    KafkaVersion, ProxyUrl,
    effective::EffectiveConfig,
    error::{ConfigError, ConfigErrorKind},
    java::classes,
    servers::ServerAddress,
    table::{Kind, Property, Side, Status},
};

/// Applies the rules of every kind of client.
pub(in crate::config) fn apply(config: &mut EffectiveConfig<'_>, side: Side) -> Outcome {
    without_effect(config, side);
    no_mock_brokers(config)?;
    java::apply(config, side)?;
    security::apply(config)?;
    controllers(config, side)?;
    bootstrap_servers(config)?;
    proxy(config)?;
    fallback_version(config)?;
    metadata_times(config);
    backoff(config, "reconnect.backoff.ms", "reconnect.backoff.max.ms")?;
    backoff(config, "retry.backoff.ms", "retry.backoff.max.ms")
}

/// Warns about properties that are deprecated, belong to the other kind of client, or have no effect.
fn without_effect(config: &mut EffectiveConfig<'_>, side: Side) {
    let raw = config.client_raw();
    for (property, name) in raw.modified() {
        let other = match side {
            Side::Producer if !property.is_for_producers() => Some(("consumer", "producer")),
            Side::Consumer if !property.is_for_consumers() => Some(("producer", "consumer")),
            _ => None,
        };
        if let Some((theirs, ours)) = other {
            // The Java clients have it for all requests, and `rules/java.rs` does the same.
            if property.name == "request.timeout.ms" && !config.is_librdkafka() {
                continue;
            }
            config.warn(format!("`{name}` belongs to a {theirs} and has no effect on a {ours}"));
            continue;
        }
        match property.status {
            Status::Accepted(reason)
                if property.kind != Kind::Call
                    && raw.text(property.name) != property.default
                    && !classes::is_needless(property, raw.text(property.name))
                    && is_of_protocol(config, property) =>
            {
                config.warn(format!("`{name}` has no effect: {reason}"));
            }
            _ if property.deprecated => config.warn(format!("`{name}` is deprecated")),
            _ => {}
        }
    }
}

/// Returns false for a property of TLS or SASL that `security.protocol` does not have: the rules of security name it.
fn is_of_protocol(config: &EffectiveConfig<'_>, property: &Property) -> bool {
    let protocol = config.text("security.protocol");
    match property.name {
        name if name.contains("sasl") => protocol.starts_with("sasl_"),
        name if name.starts_with("ssl") => protocol.ends_with("ssl"),
        _ => true,
    }
}

/// Refuses `test.mock.num.brokers`: the C library starts mock brokers itself and does not pass the property on.
fn no_mock_brokers(config: &EffectiveConfig<'_>) -> Outcome {
    let name = "test.mock.num.brokers";
    if config.integer(name) == 0 {
        return Ok(());
    }
    let reason = "start an embedded cluster and give its address as `bootstrap.servers`";
    let value = config.text(name).to_string();
    Err(ConfigError::new(config.name(name), ConfigErrorKind::Refused { value, reason }))
}

/// Refuses controllers beside brokers, and for clients that controllers do not serve. In C each client has the administrative
/// calls.
fn controllers(config: &EffectiveConfig<'_>, side: Side) -> Outcome {
    let name = "bootstrap.controllers";
    if !config.has_controllers() {
        return Ok(());
    }
    if !config.text("bootstrap.servers").is_empty() {
        return Err(conflict(config, name, "bootstrap.servers", |controllers, servers| {
            format!("a client connects to the nodes of `{controllers}` or of `{servers}`; set one of them")
        }));
    }
    if config.is_librdkafka() || matches!(side, Side::Both) {
        return Ok(());
    }
    let reason = "controllers serve administrative calls only; set `bootstrap.servers`";
    let value = config.text(name).to_owned();
    Err(ConfigError::new(config.name(name), ConfigErrorKind::Refused { value, reason }))
}

/// Checks the list of servers. The C library skips invalid entries.
fn bootstrap_servers(config: &mut EffectiveConfig<'_>) -> Outcome {
    let (name, list) = config.server_list();
    let name = config.name(name);
    if config.is_librdkafka() {
        for sentence in config.unusable_servers() {
            config.warn(format!("`{name}`: entry skipped: {sentence}"));
        }
        return Ok(());
    }
    ServerAddress::parse_list(list)
        .map(drop)
        .map_err(|sentence| ConfigError::new(name, ConfigErrorKind::BadServer { sentence }))
}

/// Checks `proxy.url`. The error does not have the value, which may contain a password.
fn proxy(config: &mut EffectiveConfig<'_>) -> Outcome {
    let name = "proxy.url";
    let Some(url) = config.non_empty(name) else { return Ok(()) };
    if let Err(expected) = ProxyUrl::parse(&url) {
        let value = "***".to_owned();
        return Err(ConfigError::new(config.name(name), ConfigErrorKind::Malformed { value, expected }));
    }
    if config.text("client.dns.lookup") == "resolve_canonical_bootstrap_servers_only" {
        config.warn(
            "`client.dns.lookup` has no effect: the proxy of `proxy.url` resolves the brokers' names"
                .to_owned(),
        );
    }
    Ok(())
}

/// Checks that `broker.version.fallback` is a version of Kafka, and not too old a one.
fn fallback_version(config: &EffectiveConfig<'_>) -> Outcome {
    let name = "broker.version.fallback";
    let text = config.text(name);
    if KafkaVersion::parse(text).is_some_and(|version| version >= KafkaVersion::OLDEST) {
        return Ok(());
    }
    let value = text.chars().take(100).collect();
    let expected = "the version of a broker from 0.8.0 on, as in 0.9.0".to_string();
    Err(ConfigError::new(name, ConfigErrorKind::Malformed { value, expected }))
}

/// Adapts the refresh interval of topic metadata and the age at which topics are forgotten to each other.
fn metadata_times(config: &mut EffectiveConfig<'_>) {
    let (interval_name, age_name) = ("topic.metadata.refresh.interval.ms", "metadata.max.age.ms");
    let (interval, age) = (config.integer(interval_name), config.integer(age_name));
    if interval <= 0 {
        return;
    }
    if !config.is_modified(age_name) {
        config.adapt(age_name, interval * 3);
    } else if !config.is_modified(interval_name) {
        // In the Java client the age is the refresh interval: metadata in use must not get older than that here either.
        config.adapt(interval_name, interval.min(age));
    }
}

/// Checks the minimum and the maximum delay between attempts; a maximum below the minimum is a contradiction.
fn backoff(config: &mut EffectiveConfig<'_>, first: &'static str, longest: &'static str) -> Outcome {
    let (short, long) = (config.integer(first), config.integer(longest));
    if short <= long {
        return Ok(());
    }
    if config.is_librdkafka() && first == "retry.backoff.ms" {
        config.warn(format!(
            "`{}` ({short}) is greater than `{}` ({long}): every delay is {long} ms",
            config.name(first),
            config.name(longest)
        ));
        config.adapt(first, long);
        return Ok(());
    }
    match (config.is_modified(first), config.is_modified(longest)) {
        (true, true) => {
            return Err(conflict(config, longest, first, |long_name, short_name| {
                format!("`{long_name}` ({long}) must not be less than `{short_name}` ({short})")
            }));
        }
        (true, false) => config.adapt(longest, short),
        _ => config.adapt(first, long),
    }
    Ok(())
}
