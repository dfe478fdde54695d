//! The rules between properties, one function each.
//!
//! Two properties that contradict each other are an error only where the application set both; where one of them is a
//! default, the default gives way. Either way the message names both, in the application's words.

use std::time::Duration;

use super::error::{ConfigError, ConfigErrorKind};
use super::raw::{Profile, RawConfig};
use super::table::{Kind, Origin, Side, Status};

type Outcome<T = ()> = Result<T, ConfigError>;

/// How many requests may be in flight before brokers forget what they have seen of an idempotent producer.
pub(super) const MAX_IN_FLIGHT_IDEMPOTENT: i64 = 5;

/// Warns of properties that are deprecated, belong to the other kind of client, or have no effect.
pub(super) fn words(raw: &RawConfig, side: Side, warnings: &mut Vec<String>) {
    for (property, name) in raw.said() {
        let other = match side {
            Side::Producer if !property.is_for_producers() => Some(("consumer", "producer")),
            Side::Consumer if !property.is_for_consumers() => Some(("producer", "consumer")),
            _ => None,
        };
        if let Some((theirs, ours)) = other {
            warnings.push(format!("`{name}` belongs to a {theirs} and has no effect on a {ours}"));
            continue;
        }
        match property.status {
            Status::Accepted(reason)
                if property.origin != Origin::Java
                    && property.kind != Kind::Call
                    && raw.text(property.name) != property.default =>
            {
                warnings.push(format!("`{name}` has no effect: {reason}"));
            }
            _ if property.deprecated => warnings.push(format!("`{name}` is deprecated")),
            _ => {}
        }
    }
}

/// Mock brokers are started by the C library, which then asks for none here.
pub(super) fn no_mock_brokers(raw: &RawConfig) -> Outcome {
    let name = "test.mock.num.brokers";
    if raw.integer(name) == 0 {
        return Ok(());
    }
    let reason = "start an embedded cluster and give its address as `bootstrap.servers`";
    let value = raw.text(name).to_string();
    Err(ConfigError::new(raw.name(name), ConfigErrorKind::Refused { value, reason }))
}

/// The delays between attempts, shortest and longest: a longest that is shorter is a contradiction.
pub(super) fn backoff(raw: &RawConfig, first: &'static str, longest: &'static str) -> Outcome<(i64, i64)> {
    let (short, long) = (raw.integer(first), raw.integer(longest));
    if short <= long {
        return Ok((short, long));
    }
    match (raw.is_modified(first), raw.is_modified(longest)) {
        (true, true) => Err(conflict(raw, longest, first, |long_name, short_name| {
            format!("`{long_name}` ({long}) must not be less than `{short_name}` ({short})")
        })),
        (true, false) => Ok((short, short)),
        _ => Ok((long, long)),
    }
}

/// Whether the producer is idempotent. That needs `acks=all`, at most 5 requests in flight, retries, and that what comes first
/// goes first.
pub(super) fn idempotence(
    raw: &RawConfig,
    acks: i64,
    newest_first: bool,
    warnings: &mut Vec<String>,
) -> Outcome<bool> {
    if !raw.boolean("enable.idempotence") {
        return Ok(false);
    }
    let in_flight = raw.integer("max.in.flight");
    let broken = if acks != -1 {
        Some(("acks", format!("must be all, not {acks}")))
    } else if raw.is_modified("max.in.flight") && in_flight > MAX_IN_FLIGHT_IDEMPOTENT {
        Some(("max.in.flight", format!("must be at most {MAX_IN_FLIGHT_IDEMPOTENT}, not {in_flight}")))
    } else if raw.integer("retries") == 0 {
        Some(("retries", "must be at least 1, not 0".to_string()))
    } else if newest_first {
        Some(("queuing.strategy", "must be fifo, not lifo".to_string()))
    } else {
        None
    };
    let Some((other, demand)) = broken else { return Ok(true) };
    if raw.is_modified("enable.idempotence") || raw.profile() == Profile::Librdkafka {
        return Err(conflict(raw, other, "enable.idempotence", |other, idempotence| {
            format!("`{other}` {demand}, with `{idempotence}`")
        }));
    }
    warnings.push(format!("`enable.idempotence` is off: for it `{}` {demand}", raw.name(other)));
    Ok(false)
}

/// The linger in milliseconds: records must not time out while they are gathered.
pub(super) fn linger_within_message_timeout(
    raw: &RawConfig,
    linger_name: &'static str,
    linger_ms: f64,
    message_timeout_ms: i64,
) -> Outcome<f64> {
    if message_timeout_ms == 0 || linger_ms < message_timeout_ms as f64 {
        return Ok(linger_ms);
    }
    if !raw.is_modified(linger_name) {
        return Ok(message_timeout_ms as f64 / 2.0);
    }
    Err(conflict(raw, linger_name, "message.timeout.ms", |linger, timeout| {
        format!(
            "`{linger}` ({linger_ms}) must be less than `{timeout}` ({message_timeout_ms}): records would time out \
             while they are gathered"
        )
    }))
}

/// A topic's own acks: a client that is idempotent is so for all of its topics.
pub(super) fn topic_acks(client: &RawConfig, own: &RawConfig, idempotence: bool, acks: i64) -> Outcome {
    if !idempotence || acks == -1 {
        return Ok(());
    }
    let (name, other) = (own.name("acks"), client.name("enable.idempotence"));
    let sentence = format!("a topic's own `{name}` must be all, not {acks}, with the client's `{other}`");
    Err(ConfigError::new(name, ConfigErrorKind::Conflict { other: other.to_string(), sentence }))
}

/// A topic's own order: a client that is idempotent is so for all of its topics.
pub(super) fn topic_order(
    client: &RawConfig,
    own: &RawConfig,
    idempotence: bool,
    newest_first: bool,
) -> Outcome {
    if !idempotence || !newest_first {
        return Ok(());
    }
    let (name, other) = (own.name("queuing.strategy"), client.name("enable.idempotence"));
    let sentence = format!("a topic's own `{name}` must be fifo, not lifo, with the client's `{other}`");
    Err(ConfigError::new(name, ConfigErrorKind::Conflict { other: other.to_string(), sentence }))
}

/// A topic's own linger: its records must not time out while they are gathered, and there must be somebody who gathers.
pub(super) fn topic_linger(
    client: &RawConfig,
    own: &RawConfig,
    linger_ms: f64,
    is_auto: bool,
    message_timeout: Option<Duration>,
) -> Outcome {
    let refuse = |other: &str, sentence: String| {
        let kind = ConfigErrorKind::Conflict { other: other.to_string(), sentence };
        Err(ConfigError::new("broker.linger.ms".to_string(), kind))
    };
    if is_auto {
        let sentence = format!(
            "a topic's own `broker.linger.ms` ({linger_ms}) contradicts the client's `broker.linger.ms=auto`, which \
             lingers for nobody"
        );
        return refuse("broker.linger.ms", sentence);
    }
    match message_timeout {
        Some(timeout) if linger_ms >= timeout.as_millis() as f64 => {
            let said = if own.is_modified("message.timeout.ms") { own } else { client };
            let name = said.name("message.timeout.ms");
            let sentence = format!(
                "a topic's own `broker.linger.ms` ({linger_ms}) must be less than `{name}` ({}): records would time \
                 out while they are gathered",
                timeout.as_millis()
            );
            refuse(name, sentence)
        }
        _ => Ok(()),
    }
}

/// The largest record: `max.request.size` caps it, as in the Java client.
pub(super) fn message_within_request(raw: &RawConfig, warnings: &mut Vec<String>) -> Outcome<i64> {
    let (message, request) = (raw.integer("message.max.bytes"), raw.integer("max.request.size"));
    if message <= request {
        return Ok(message);
    }
    match (raw.is_modified("message.max.bytes"), raw.is_modified("max.request.size")) {
        (true, true) => {
            Err(conflict(raw, "message.max.bytes", "max.request.size", |message_name, request_name| {
                format!(
                    "`{message_name}` ({message}) must not be more than `{request_name}` ({request}): such a record \
                 would not fit into any request"
                )
            }))
        }
        (true, false) => Ok(message),
        (false, _) => {
            warnings
                .push(format!("`message.max.bytes` is {request}, because `max.request.size` is no larger"));
            Ok(request)
        }
    }
}

/// A queue that can't hold one record of the largest size.
pub(super) fn message_within_queue(raw: &RawConfig, message: i64, warnings: &mut Vec<String>) -> Outcome {
    let queue = raw.integer("queue.buffering.max.kbytes") * 1024;
    if message <= queue {
        return Ok(());
    }
    if raw.is_modified("message.max.bytes") && raw.is_modified("queue.buffering.max.kbytes") {
        return Err(conflict(
            raw,
            "queue.buffering.max.kbytes",
            "message.max.bytes",
            |queue_name, message_name| {
                format!(
                    "`{queue_name}` ({queue} bytes) can't hold one record of `{message_name}` ({message} bytes)"
                )
            },
        ));
    }
    warnings.push(format!(
        "`{}` ({queue} bytes) is less than `message.max.bytes` ({message} bytes): larger records are refused",
        raw.name("queue.buffering.max.kbytes")
    ));
    Ok(())
}

/// The caps of the collector beside what they can do.
pub(super) fn collector_caps(raw: &RawConfig, is_auto: bool, warnings: &mut Vec<String>) {
    let bytes = raw.integer("broker.batch.max.bytes");
    if (1..raw.integer("batch.size").min(1000)).contains(&bytes) {
        warnings.push(format!(
            "`broker.batch.max.bytes` ({bytes}) is less than most records, whatever `batch.size` is: each is sent on \
             its own"
        ));
    }
    let queue = raw.integer("queue.buffering.max.kbytes") * 1024;
    if bytes > queue {
        warnings.push(format!(
            "`broker.batch.max.bytes` ({bytes}) is never reached, because `{}` ({queue} bytes) is less",
            raw.name("queue.buffering.max.kbytes")
        ));
    }
    for cap in ["broker.batch.max.partitions", "broker.batch.max.bytes"] {
        if is_auto && raw.integer(cap) > 0 {
            warnings.push(format!("`{}` stays a hard limit beside `broker.linger.ms=auto`", raw.name(cap)));
        }
    }
}

/// A batch never grows beyond the largest message set.
pub(super) fn batch_within_message(raw: &RawConfig, message: i64, warnings: &mut Vec<String>) -> i64 {
    let batch = raw.integer("batch.size");
    if batch > message && raw.is_modified("batch.size") {
        warnings.push(format!("`batch.size` is {message}, because `message.max.bytes` is no larger"));
    }
    batch.min(message)
}

/// The largest Fetch and the largest answer: an answer must have room for what was asked for.
pub(super) fn fetch_within_receive(raw: &RawConfig) -> Outcome<(i64, i64)> {
    /// What an answer holds beside the records, about.
    const OVERHEAD: i64 = 512;
    let receive = raw.integer("receive.message.max.bytes");
    let fetch = if raw.is_modified("fetch.max.bytes") {
        raw.integer("fetch.max.bytes")
    } else {
        let queue = raw.integer("queued.max.messages.kbytes") * 1024;
        raw.integer("fetch.max.bytes").min(queue).max(raw.integer("message.max.bytes"))
    };
    if fetch + OVERHEAD <= receive {
        return Ok((fetch, receive));
    }
    match (raw.is_modified("fetch.max.bytes"), raw.is_modified("receive.message.max.bytes")) {
        (true, true) => {
            Err(conflict(raw, "receive.message.max.bytes", "fetch.max.bytes", |receive_name, fetch_name| {
                format!(
                    "`{receive_name}` ({receive}) must be at least {OVERHEAD} more than `{fetch_name}` ({fetch}): \
                     answers would be refused"
                )
            }))
        }
        (false, true) => Ok(((receive - OVERHEAD).max(1), receive)),
        (_, false) => Ok((fetch, fetch + OVERHEAD)),
    }
}

/// A group member must be able to send a heartbeat within its session, and to poll within its interval.
pub(super) fn group_times(raw: &RawConfig) -> Outcome {
    let session = raw.integer("session.timeout.ms");
    for (name, must_be_less) in [("heartbeat.interval.ms", true), ("max.poll.interval.ms", false)] {
        let time = raw.integer(name);
        let fits = if must_be_less { time < session } else { time >= session };
        if !fits && raw.is_modified(name) && raw.is_modified("session.timeout.ms") {
            return Err(conflict(raw, name, "session.timeout.ms", |name, session_name| {
                let demand = if must_be_less { "must be less than" } else { "must not be less than" };
                format!("`{name}` ({time}) {demand} `{session_name}` ({session})")
            }));
        }
    }
    Ok(())
}

/// How often topics are asked for again, and when they are forgotten.
pub(super) fn metadata_times(raw: &RawConfig) -> (i64, i64) {
    let (refresh, age) =
        (raw.integer("topic.metadata.refresh.interval.ms"), raw.integer("metadata.max.age.ms"));
    if raw.is_modified("metadata.max.age.ms") {
        // In the Java client this is the refresh interval: nothing in use may get older than that here either.
        (
            if refresh > 0 && !raw.is_modified("topic.metadata.refresh.interval.ms") {
                refresh.min(age)
            } else {
                refresh
            },
            age,
        )
    } else if refresh > 0 {
        (refresh, refresh * 3)
    } else {
        (refresh, age)
    }
}

pub(super) fn conflict(
    raw: &RawConfig,
    property: &'static str,
    other: &'static str,
    sentence: impl Fn(&str, &str) -> String,
) -> ConfigError {
    let (property, other) = (raw.name(property), raw.name(other));
    let kind = ConfigErrorKind::Conflict { other: other.to_string(), sentence: sentence(property, other) };
    ConfigError::new(property, kind)
}
