//! The rules of consumers.

use super::{Outcome, conflict, is_strict};
use crate::config::effective::EffectiveConfig;

/// Applies the rules of consumers.
pub(in crate::config) fn apply(config: &mut EffectiveConfig<'_>) -> Outcome {
    fetch_within_receive(config, Largest::Fits)?;
    if config.text("group.protocol") == "consumer" {
        return classic_only(config);
    }
    group_times(config)
}

/// Applies the rules of share consumers, whose session and heartbeats are settings of the brokers.
pub(in crate::config) fn apply_to_share_consumer(config: &mut EffectiveConfig<'_>) -> Outcome {
    fetch_within_receive(config, Largest::MayExceed)
}

/// Whether `fetch.max.bytes` has to be at least `message.max.bytes`. Brokers return the first batch of a fetch whatever
/// its size is; librdkafka checks this for consumers and not for share consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Largest {
    Fits,
    MayExceed,
}

/// Refuses properties of the classic protocol that were explicitly set for the consumer protocol, as librdkafka does: the
/// broker has them.
fn classic_only(config: &EffectiveConfig<'_>) -> Outcome {
    let of_broker = [
        ("session.timeout.ms", "`group.consumer.session.timeout.ms` on the broker"),
        ("heartbeat.interval.ms", "`group.consumer.heartbeat.interval.ms` on the broker"),
        ("partition.assignment.strategy", "`group.remote.assignor`"),
        ("group.protocol.type", "no other property: the protocol has one type"),
    ];
    for (name, instead) in of_broker {
        if config.is_modified(name) {
            return Err(conflict(config, name, "group.protocol", |name, protocol| {
                format!("`{name}` is not supported with `{protocol}=consumer`; remove it, and use {instead}")
            }));
        }
    }
    Ok(())
}

/// Adapts the largest Fetch and the largest response to each other: a response must have room for the requested bytes.
fn fetch_within_receive(config: &mut EffectiveConfig<'_>, largest: Largest) -> Outcome {
    /// The approximate size of a Fetch response without its records, in bytes.
    const OVERHEAD: i64 = 512;
    let receive = config.integer("receive.message.max.bytes");
    let message = config.integer("message.max.bytes");
    let mut fetch = config.integer("fetch.max.bytes");
    if !config.is_modified("fetch.max.bytes") {
        let queue = config.integer("queued.max.messages.kbytes") * 1024;
        fetch = fetch.min(queue).max(message);
        config.adapt("fetch.max.bytes", fetch);
    } else if largest == Largest::Fits && fetch < message && is_strict(config, "message.max.bytes") {
        return Err(conflict(config, "fetch.max.bytes", "message.max.bytes", |fetch_name, message_name| {
            format!(
                "`{fetch_name}` ({fetch}) must not be less than `{message_name}` ({message}): the largest message would not fit"
            )
        }));
    }
    if fetch + OVERHEAD <= receive {
        return Ok(());
    }
    match (is_strict(config, "fetch.max.bytes"), config.is_modified("receive.message.max.bytes")) {
        (true, true) => {
            return Err(conflict(
                config,
                "receive.message.max.bytes",
                "fetch.max.bytes",
                |receive_name, fetch_name| {
                    format!(
                        "`{receive_name}` ({receive}) must be at least {OVERHEAD} more than `{fetch_name}` ({fetch}): \
                         responses would be refused"
                    )
                },
            ));
        }
        (false, true) => config.adapt("fetch.max.bytes", (receive - OVERHEAD).max(1)),
        (_, false) => config.adapt("receive.message.max.bytes", fetch + OVERHEAD),
    }
    Ok(())
}

/// Checks that a group member can send a heartbeat within its session, and poll within its interval.
fn group_times(config: &mut EffectiveConfig<'_>) -> Outcome {
    let session = config.integer("session.timeout.ms");
    for (name, must_be_less) in [("heartbeat.interval.ms", true), ("max.poll.interval.ms", false)] {
        let time = config.integer(name);
        let fits = if must_be_less { time < session } else { time >= session };
        let both_are_set = config.is_modified(name) && config.is_modified("session.timeout.ms");
        if !fits && must_be_less && config.is_librdkafka() {
            if both_are_set {
                config.warn(format!("`{name}` ({time}) is not less than `session.timeout.ms` ({session})"));
            }
            continue;
        }
        if !fits && (both_are_set || config.is_librdkafka()) {
            return Err(conflict(config, name, "session.timeout.ms", |name, session_name| {
                let demand = if must_be_less { "must be less than" } else { "must not be less than" };
                format!("`{name}` ({time}) {demand} `{session_name}` ({session})")
            }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::{EffectiveConfig, Profile, RawConfig};

    #[test]
    fn session_timeout_does_not_bound_the_polls_of_a_share_consumer() {
        let mut raw = RawConfig::new(Profile::Librdkafka);
        raw.set("max.poll.interval.ms", "10000").expect("it is in range");
        assert!(EffectiveConfig::consumer(&raw).is_err());
        assert!(EffectiveConfig::share_consumer(&raw).is_ok());
    }

    #[test]
    fn properties_of_the_classic_protocol_are_refused_only_if_they_were_set() {
        let config = |properties: &[(&str, &str)]| {
            let mut raw = RawConfig::new(Profile::Rust);
            for (name, value) in properties {
                raw.set(name, value).expect("a valid value");
            }
            EffectiveConfig::consumer(&raw).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(config(&[("group.protocol", "consumer")]), Ok(()));
        for (name, value) in [
            ("session.timeout.ms", "45000"),
            ("heartbeat.interval.ms", "3000"),
            ("partition.assignment.strategy", "range"),
            ("group.protocol.type", "consumer"),
        ] {
            assert_eq!(config(&[(name, value)]), Ok(()), "the classic protocol has it");
            let error = config(&[("group.protocol", "consumer"), (name, value)]).expect_err("it is refused");
            assert!(error.contains(name) && error.contains("is not supported"), "{error}");
        }
        // The rule between these two concerns the classic protocol.
        assert_eq!(config(&[("group.protocol", "consumer"), ("max.poll.interval.ms", "1000")]), Ok(()));
    }
}
