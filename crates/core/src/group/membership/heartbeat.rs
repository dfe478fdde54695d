//! The contents of a consumer protocol heartbeat, and its schedule.

use std::{sync::Arc, time::Duration};

use ottla_protocol::generated::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use ottla_sorted::SortedSet;

use super::{
    heartbeat_rules::DEFAULT_INTERVAL,
    target::{PartitionsById, encode},
};
use crate::{group::settings::GroupSettings, machine::Instant};

/// The waits between the first heartbeats of a member that joined and has no partitions yet, in twentieths of the interval;
/// together they are one interval.
const FIRST_WAITS: [u32; 5] = [1, 2, 4, 6, 7];
/// The epoch of a member that joins.
pub(super) const JOINS: i32 = 0;

/// The topics that the member subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) names: SortedSet<Arc<str>>,
    pub(super) pattern: Option<String>,
}

/// The fields of a heartbeat that are sent when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) subscription: Subscription,
    pub(super) held: PartitionsById,
}

#[derive(Debug)]
pub(super) struct Heartbeat {
    pub(super) interval: Duration,
    /// The time of the next heartbeat; `None` while none is needed.
    pub(super) next: Option<Instant>,
    /// No heartbeat is sent before this time, not even to report a change.
    pub(super) not_before: Instant,
    pub(super) in_flight: Option<Contents>,
    /// The last time at which a heartbeat was brought forward in this epoch.
    pub(super) checked: Option<Instant>,
    /// The fields that the coordinator acknowledged; `None` if it may have missed some.
    pub(super) acknowledged: Option<Contents>,
    /// True if the contents may have changed since the last heartbeat was sent.
    pub(super) must_report: bool,
    /// True if the coordinator waits until the member reports its partitions, even if they are the ones of the last report:
    /// it has withdrawn some that the member had not taken over yet.
    pub(super) is_awaited: bool,
    /// The number of waits of [`FIRST_WAITS`] that have passed.
    first_waits: usize,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            interval: DEFAULT_INTERVAL,
            next: None,
            not_before: Instant::ZERO,
            in_flight: None,
            checked: None,
            acknowledged: None,
            must_report: false,
            is_awaited: false,
            first_waits: 0,
        }
    }
}

impl Heartbeat {
    /// Schedules the next heartbeat after the one that was sent at `sent`. The partitions of a new member become free at
    /// any time during the first interval, when other members give them up: the coordinator can't notify it.
    pub(super) fn schedule(&mut self, sent: Instant, has_partitions: bool) {
        let wait = FIRST_WAITS.get(self.first_waits).filter(|_| !has_partitions);
        self.first_waits = wait.map_or(FIRST_WAITS.len(), |_| self.first_waits + 1);
        self.next = Some(sent + wait.map_or(self.interval, |twentieths| self.interval * *twentieths / 20));
    }
}

impl Contents {
    /// Sets the fields of a heartbeat that differ from the acknowledged ones, or all of them. A full heartbeat also has
    /// the member's settings. The partitions are always reported if the coordinator waits for them.
    pub(super) fn fill(
        &self,
        request: &mut ConsumerGroupHeartbeatRequest,
        acknowledged: Option<&Self>,
        is_awaited: bool,
        settings: &GroupSettings,
    ) {
        let Subscription { names, pattern } = &self.subscription;
        if acknowledged.is_none() {
            let timeout = settings.max_poll_interval.as_millis();
            request.rebalance_timeout_ms = i32::try_from(timeout).unwrap_or(i32::MAX);
            request.server_assignor.clone_from(&settings.remote_assignor);
        }
        if request.member_epoch == JOINS {
            request.rack_id = settings.rack.as_ref().map(ToString::to_string);
        }
        if acknowledged.is_none_or(|known| known.subscription.names != *names) {
            request.subscribed_topic_names = Some(names.iter().map(ToString::to_string).collect());
        }
        match acknowledged {
            None => request.subscribed_topic_regex.clone_from(pattern),
            Some(known) if known.subscription.pattern != *pattern => {
                request.subscribed_topic_regex = Some(pattern.clone().unwrap_or_default());
            }
            Some(_) => {}
        }
        if is_awaited || acknowledged.is_none_or(|known| known.held != self.held) {
            request.topic_partitions = Some(encode(&self.held));
        }
    }
}
