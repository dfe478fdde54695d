//! The rules of `linger.ms` and `broker.linger.ms`.

use super::{Outcome, conflict};
use crate::config::effective::EffectiveConfig;

/// Returns whether `broker.linger.ms=auto` decides when records are sent.
pub(super) fn is_auto(config: &EffectiveConfig<'_>) -> bool {
    !is_per_partition(config) && config.client_raw().text(BROKER) == "auto"
}

/// Warns if `linger.ms` is set, and checks the client's linger against the message timeout.
pub(super) fn apply(config: &mut EffectiveConfig<'_>) -> Outcome {
    let name = config.name(PARTITION);
    if config.is_modified(PARTITION) && config.is_modified(BROKER) {
        config.warn(format!("`{name}` has no effect, because `broker.linger.ms` is set too"));
    } else if config.is_modified(PARTITION) && !config.is_librdkafka() {
        // Programs written for librdkafka set no other property.
        config.warn(format!(
            "`{name}` is deprecated: it is a timer for every partition; `broker.linger.ms` gathers over \
             all partitions of a broker and sends fewer requests"
        ));
    }
    if let Some(raised) = raise_message_timeout(config) {
        config.warn(format!(
            "`message.timeout.ms` becomes {raised}, the time in which records are gathered and `request.timeout.ms`, as in Java"
        ));
    }
    if let Some(shortened) = within_message_timeout(config)? {
        config.adapt(BROKER, shortened);
    }
    Ok(())
}

/// Raises a default `message.timeout.ms` to `linger.ms` and `request.timeout.ms` if it is less, as Java's producer does
/// (`KafkaProducer.configureDeliveryTimeout` in kafka-clients 4.4.0, which refuses a timeout that the application set lower);
/// librdkafka refuses a linger above the timeout. A message of a transaction can't outlive it. Returns the new value in
/// milliseconds if it was raised.
pub(super) fn raise_message_timeout(config: &mut EffectiveConfig<'_>) -> Option<i64> {
    let is_fixed = config.is_librdkafka() || config.is_modified("message.timeout.ms");
    if is_fixed || is_auto(config) || !config.text("transactional.id").is_empty() {
        return None;
    }
    let linger_ms = config.client_raw().float(if is_per_partition(config) { PARTITION } else { BROKER });
    let least = linger_ms.ceil() as i64 + config.integer("request.timeout.ms");
    if config.integer("message.timeout.ms") >= least {
        return None;
    }
    config.adapt("message.timeout.ms", least);
    Some(least)
}

/// Checks that the client's linger is less than `message.timeout.ms`. Returns a default linger in milliseconds if it was
/// shortened to fit. Error: the application set a longer linger.
pub(super) fn within_message_timeout(config: &EffectiveConfig<'_>) -> Outcome<Option<f64>> {
    if is_auto(config) {
        return Ok(None);
    }
    let name = if is_per_partition(config) { PARTITION } else { BROKER };
    let client = config.client_raw();
    let (linger_ms, timeout_ms) = (client.float(name), config.integer("message.timeout.ms"));
    if timeout_ms <= 0 || linger_ms < timeout_ms as f64 {
        return Ok(None);
    }
    if !client.is_modified(name) {
        return Ok(Some(timeout_ms as f64 / 2.0));
    }
    Err(conflict(config, name, "message.timeout.ms", |linger, timeout| {
        format!(
            "`{linger}` ({linger_ms}) must be less than `{timeout}` ({timeout_ms}): records would time out \
             while they are gathered"
        )
    }))
}

fn is_per_partition(config: &EffectiveConfig<'_>) -> bool {
    let client = config.client_raw();
    client.is_modified(PARTITION) && !client.is_modified(BROKER)
}

const PARTITION: &str = "linger.ms";
const BROKER: &str = "broker.linger.ms";
