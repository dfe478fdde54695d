//! The rules of producers.

use super::{Outcome, conflict, linger};
use crate::config::{effective::EffectiveConfig, error::ConfigError};

/// The number of requests in flight up to which brokers detect duplicates of an idempotent producer.
const MAX_IN_FLIGHT_IDEMPOTENT: i64 = 5;

/// The difference between `transaction.timeout.ms` and the default of `socket.timeout.ms`, in milliseconds.
const SOCKET_MARGIN: i64 = 100;

/// Applies the rules of producers.
pub(in crate::config) fn apply(config: &mut EffectiveConfig<'_>) -> Outcome {
    // Unlike another client's, a producer's requests for metadata create topics by default.
    if !config.is_modified("allow.auto.create.topics") {
        config.adapt("allow.auto.create.topics", true);
    }
    transactions(config)?;
    idempotence(config)?;
    linger::apply(config)?;
    collector_limits(config);
    message_within_request(config)?;
    message_within_queue(config)?;
    batch_within_message(config);
    Ok(())
}

/// Checks what transactions demand of other properties, and adapts defaults: a message can't outlive its transaction, and a
/// request that gets no response leaves time for another attempt.
pub(super) fn transactions(config: &mut EffectiveConfig<'_>) -> Outcome {
    if config.text("transactional.id").is_empty() {
        return Ok(());
    }
    if !config.boolean("enable.idempotence") && config.is_modified("enable.idempotence") {
        let sentence = |id: &str, idempotence: &str| format!("`{id}` needs `{idempotence}`");
        return Err(conflict(config, "transactional.id", "enable.idempotence", sentence));
    }
    config.adapt("enable.idempotence", true);
    let timeout = config.integer("transaction.timeout.ms");
    let message = config.integer("message.timeout.ms");
    if !config.is_modified("message.timeout.ms") {
        config.adapt("message.timeout.ms", timeout);
    } else if message > timeout {
        if config.is_librdkafka() || config.differs_from_client("message.timeout.ms") {
            return Err(above_transaction(config, "message.timeout.ms", message, timeout, 0));
        }
        // Java's producer accepts it.
        let name = config.name("message.timeout.ms");
        config.warn(format!(
            "`{name}` ({message}) becomes {timeout}: a message can't outlive its transaction (`transaction.timeout.ms`)"
        ));
        config.adapt("message.timeout.ms", timeout);
    }
    let socket = config.integer("socket.timeout.ms");
    if !config.is_modified("socket.timeout.ms") {
        config.adapt("socket.timeout.ms", (timeout - SOCKET_MARGIN).max(900));
    } else if socket > timeout + SOCKET_MARGIN {
        return Err(above_transaction(config, "socket.timeout.ms", socket, timeout, SOCKET_MARGIN));
    }
    Ok(())
}

/// The error of a timeout that is longer than a transaction may be.
fn above_transaction(
    config: &EffectiveConfig<'_>,
    name: &'static str,
    value: i64,
    timeout: i64,
    margin: i64,
) -> ConfigError {
    let most = timeout + margin;
    conflict(config, name, "transaction.timeout.ms", |name, transaction| {
        format!("`{name}` ({value}) must be at most {most}, because `{transaction}` is {timeout}")
    })
}

/// Checks what idempotence demands of other properties, and what demands idempotence.
fn idempotence(config: &mut EffectiveConfig<'_>) -> Outcome {
    let is_idempotent = is_idempotent(config)?;
    if config.boolean("enable.gapless.guarantee") && !is_idempotent {
        return Err(conflict(
            config,
            "enable.gapless.guarantee",
            "enable.idempotence",
            |gapless, idempotence| format!("`{gapless}` needs `{idempotence}`"),
        ));
    }
    if is_idempotent {
        let in_flight = config.integer("max.in.flight");
        config.adapt("max.in.flight", in_flight.min(MAX_IN_FLIGHT_IDEMPOTENT));
    } else {
        config.adapt("enable.idempotence", false);
    }
    Ok(())
}

/// Returns whether the producer is idempotent. That requires `acks=all`, at most 5 requests in flight, retries, and
/// first-in first-out order.
pub(super) fn is_idempotent(config: &mut EffectiveConfig<'_>) -> Outcome<bool> {
    if !config.boolean("enable.idempotence") {
        return Ok(false);
    }
    let (acks, in_flight) = (config.integer("acks"), config.integer("max.in.flight"));
    let broken = if acks != -1 {
        Some(("acks", format!("must be all, not {acks}")))
    } else if config.is_modified("max.in.flight") && in_flight > MAX_IN_FLIGHT_IDEMPOTENT {
        Some(("max.in.flight", format!("must be at most {MAX_IN_FLIGHT_IDEMPOTENT}, not {in_flight}")))
    } else if config.integer("retries") == 0 {
        Some(("retries", "must be at least 1, not 0".to_string()))
    } else if config.text("queuing.strategy") == "lifo" {
        Some(("queuing.strategy", "must be fifo, not lifo".to_string()))
    } else {
        None
    };
    let Some((other, demand)) = broken else { return Ok(true) };
    let is_required = config.is_modified("enable.idempotence") || !config.text("transactional.id").is_empty();
    if is_required || config.is_librdkafka() {
        return Err(conflict(config, other, "enable.idempotence", |other, idempotence| {
            format!("`{other}` {demand}, with `{idempotence}`")
        }));
    }
    config.warn(format!("`enable.idempotence` is off: for it `{}` {demand}", config.name(other)));
    Ok(false)
}

/// Warns about limits of the collector that have no effect, or another effect than expected.
fn collector_limits(config: &mut EffectiveConfig<'_>) {
    let bytes = config.integer("broker.batch.max.bytes");
    if (1..config.integer("batch.size").min(1000)).contains(&bytes) {
        config.warn(format!(
            "`broker.batch.max.bytes` ({bytes}) is less than most records, whatever `batch.size` is: each is sent on \
             its own"
        ));
    }
    let queue = config.integer("queue.buffering.max.kbytes") * 1024;
    if bytes > queue {
        config.warn(format!(
            "`broker.batch.max.bytes` ({bytes}) is never reached, because `{}` ({queue} bytes) is less",
            config.name("queue.buffering.max.kbytes")
        ));
    }
    for limit in ["broker.batch.max.partitions", "broker.batch.max.bytes"] {
        if linger::is_auto(config) && config.integer(limit) > 0 {
            let name = config.name(limit);
            config.warn(format!("`{name}` stays a hard limit beside `broker.linger.ms=auto`"));
        }
    }
}

/// Adapts the largest record and the largest request to each other: `max.request.size` limits the record, as in the
/// Java client.
fn message_within_request(config: &mut EffectiveConfig<'_>) -> Outcome {
    let (message, request) = (config.integer("message.max.bytes"), config.integer("max.request.size"));
    if message <= request {
        return Ok(());
    }
    match (config.is_modified("message.max.bytes"), config.is_modified("max.request.size")) {
        (true, true) => {
            return Err(conflict(
                config,
                "message.max.bytes",
                "max.request.size",
                |message_name, request_name| {
                    format!(
                        "`{message_name}` ({message}) must not be more than `{request_name}` ({request}): such records \
                 would not fit into any request"
                    )
                },
            ));
        }
        (true, false) => config.adapt("max.request.size", message),
        (false, _) => {
            config.warn(format!("`message.max.bytes` is {request}, because `max.request.size` is no larger"));
            config.adapt("message.max.bytes", request);
        }
    }
    Ok(())
}

/// Checks that the queue can hold one record of the largest size.
fn message_within_queue(config: &mut EffectiveConfig<'_>) -> Outcome {
    let message = config.integer("message.max.bytes");
    let queue = config.integer("queue.buffering.max.kbytes") * 1024;
    if message <= queue {
        return Ok(());
    }
    if !config.is_librdkafka()
        && config.is_modified("message.max.bytes")
        && config.is_modified("queue.buffering.max.kbytes")
    {
        return Err(conflict(
            config,
            "queue.buffering.max.kbytes",
            "message.max.bytes",
            |queue_name, message_name| {
                format!(
                    "`{queue_name}` ({queue} bytes) can't hold one record of `{message_name}` ({message} bytes)"
                )
            },
        ));
    }
    config.warn(format!(
        "`{}` ({queue} bytes) is less than `message.max.bytes` ({message} bytes): larger records are refused",
        config.name("queue.buffering.max.kbytes")
    ));
    Ok(())
}

/// Limits a batch to the largest record.
fn batch_within_message(config: &mut EffectiveConfig<'_>) {
    let (batch, message) = (config.integer("batch.size"), config.integer("message.max.bytes"));
    if batch <= message {
        return;
    }
    if config.is_modified("batch.size") {
        config.warn(format!("`batch.size` is {message}, because `message.max.bytes` is no larger"));
    }
    config.adapt("batch.size", message);
}
