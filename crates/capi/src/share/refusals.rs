//! Properties and functions of consumers that share consumers do not have: setting them is an error.

use crate::{
    client::{conf::Conf, op::wants},
    ffi::types::event_type,
};

/// The reason that a property is refused.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// Share groups have nothing of the kind.
    NotApplicable,
    /// The value is a setting of the group at the brokers.
    OfTheBroker,
    /// The consumer protocol has nothing of the kind either.
    OfClassicGroups,
    /// The value can't be changed.
    Fixed(&'static str),
    /// A later version may have it.
    NotYet,
}

/// The properties that must not be set, in the order in which they are checked.
const REFUSED: &[(&str, Why)] = &[
    ("enable.auto.commit", Why::NotApplicable),
    ("group.protocol", Why::NotApplicable),
    ("socket.max.fails", Why::Fixed("1")),
    ("session.timeout.ms", Why::OfTheBroker),
    ("partition.assignment.strategy", Why::NotApplicable),
    ("group.protocol.type", Why::OfClassicGroups),
    ("heartbeat.interval.ms", Why::OfTheBroker),
    ("group.instance.id", Why::NotApplicable),
    ("isolation.level", Why::NotApplicable),
    ("group.remote.assignor", Why::NotApplicable),
    ("queued.min.messages", Why::NotApplicable),
    ("queued.max.messages.kbytes", Why::NotApplicable),
    ("fetch.queue.backoff.ms", Why::NotApplicable),
    ("fetch.error.backoff.ms", Why::NotApplicable),
    ("enable.partition.eof", Why::NotApplicable),
    ("message.copy.max.bytes", Why::NotApplicable),
    ("topic.blacklist", Why::NotApplicable),
    ("allow.auto.create.topics", Why::NotYet),
    ("auto.offset.reset", Why::NotApplicable),
    ("consume.callback.max.messages", Why::NotApplicable),
];

/// Returns the reason that a share consumer can't have this configuration, if there is one.
pub(super) fn refusal(conf: &Conf) -> Option<String> {
    let callbacks = &conf.callbacks;
    let not_applicable = |name: &str| format!("`{name}` is not applicable for share consumer");
    if callbacks.rebalance.is_some() {
        return Some(not_applicable("rebalance_cb"));
    }
    if wants(conf.events, event_type::REBALANCE) {
        return Some(not_applicable("RD_KAFKA_EVENT_REBALANCE"));
    }
    if callbacks.offset_commit.is_some() {
        return Some(not_applicable("offset_commit_cb"));
    }
    if callbacks.consume.is_some() {
        return Some(not_applicable("consume_cb"));
    }
    let (name, why) = REFUSED.iter().find(|(name, _)| is_set(conf, name))?;
    Some(match why {
        Why::NotApplicable => not_applicable(name),
        Why::OfTheBroker => format!(
            "`{name}` is not supported for `group.protocol=consumer` or share consumer. It is defined broker side"
        ),
        Why::OfClassicGroups => {
            format!("`{name}` is not supported for `group.protocol=consumer` or share consumer")
        }
        Why::Fixed(value) => {
            format!("`{name}` must be {value} for share consumer; changing it is not allowed")
        }
        Why::NotYet => format!("{name} is currently not supported for share consumer"),
    })
}

/// Returns true for a property of the client or of its topics that was set.
fn is_set(conf: &Conf, name: &str) -> bool {
    conf.raw.is_modified(name) || conf.topic.as_ref().is_some_and(|topic| topic.raw.is_modified(name))
}
