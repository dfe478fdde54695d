//! The rules of topics with properties of their own: an idempotent client is idempotent for all of its topics, and a
//! topic's linger fits its message timeout.

use super::{Outcome, java, linger, producer};
use crate::config::{
    effective::EffectiveConfig,
    error::{ConfigError, ConfigErrorKind},
};

/// Applies the rules of topics.
pub(in crate::config) fn apply(config: &mut EffectiveConfig<'_>) -> Outcome {
    let mut of_client = EffectiveConfig::unchecked(config.client_raw());
    producer::transactions(&mut of_client)?;
    producer::transactions(config)?;
    if producer::is_idempotent(&mut of_client)? {
        let acks = config.integer("acks");
        if acks != -1 {
            return Err(against_idempotence(config, "acks", &format!("must be all, not {acks}")));
        }
        if config.text("queuing.strategy") == "lifo" {
            return Err(against_idempotence(config, "queuing.strategy", "must be fifo, not lifo"));
        }
    }
    java::partitioner(config);
    // The client has warned.
    linger::raise_message_timeout(&mut of_client);
    linger::raise_message_timeout(config);
    topic_linger(config, &of_client)
}

/// The error of a topic's own property that contradicts the client's idempotence.
fn against_idempotence(config: &EffectiveConfig<'_>, property: &'static str, demand: &str) -> ConfigError {
    let (name, other) = (config.name(property), config.name("enable.idempotence"));
    let sentence = format!("a topic's own `{name}` {demand}, with the client's `{other}`");
    ConfigError::new(name, ConfigErrorKind::Conflict { other: other.to_string(), sentence })
}

/// Checks a topic's own linger, and shortens a default linger to fit the topic's message timeout.
fn topic_linger(config: &mut EffectiveConfig<'_>, of_client: &EffectiveConfig<'_>) -> Outcome {
    let shortened = linger::within_message_timeout(config)?;
    if config.differs_from_client("broker.linger.ms") {
        return own_linger(config);
    }
    if shortened != linger::within_message_timeout(of_client)? {
        let linger_ms = shortened.unwrap_or_else(|| config.client_raw().float("broker.linger.ms"));
        config.adapt("broker.linger.ms", linger_ms);
    }
    Ok(())
}

/// Checks a topic's own linger: it must be shorter than the message timeout, and contradicts `broker.linger.ms=auto`.
fn own_linger(config: &EffectiveConfig<'_>) -> Outcome {
    let name = "broker.linger.ms";
    let linger_ms = config.float(name);
    let refuse = |other: &str, sentence: String| {
        Err(ConfigError::new(name, ConfigErrorKind::Conflict { other: other.to_string(), sentence }))
    };
    if linger::is_auto(config) {
        let sentence = format!(
            "a topic's own `{name}` ({linger_ms}) contradicts the client's `broker.linger.ms=auto`, which \
             has no fixed linger time"
        );
        return refuse(name, sentence);
    }
    let timeout_ms = config.integer("message.timeout.ms");
    if timeout_ms <= 0 || linger_ms < timeout_ms as f64 {
        return Ok(());
    }
    let other = config.name("message.timeout.ms");
    let sentence = format!(
        "a topic's own `{name}` ({linger_ms}) must be less than `{other}` ({timeout_ms}): records would time \
         out while they are gathered"
    );
    refuse(other, sentence)
}
