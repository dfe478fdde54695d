//! Decides when a broker sends: gathers the broker's ready partitions so that one request carries many of them.
//!
//! With `broker.linger.ms` the clock starts when collecting starts, with the oldest record; when it expires, all
//! collected partitions are due. With `linger.ms` each partition has its own clock. A partition with a full batch is
//! due immediately. With `broker.linger.ms=auto` the broker's own pace decides ([`adaptive`](super::adaptive)). All due
//! partitions leave together, oldest first. A topic with its own linger uses that one.
//!
//! # Pitfalls
//!
//! - The linger of a broker starts with its oldest record. A later record travels with it and does not extend it
//!   (`a_late_arrival_does_not_extend_the_window_and_goes_with_it`).
//! - A notification about records that were purged meanwhile must not make the next records leave early
//!   (`a_purge_leaves_nothing_to_send`).
//! - Partitions that a request can't carry because their `acks` differ are due for the same reason as the others.
//!   Evaluated again with fewer partitions, the limit is not reached and they would wait for the linger
//!   (`leftovers_of_a_request_leave_for_its_reason_even_after_a_response`).
//! - Timers of the operating system round up to milliseconds, so a request leaves up to 1 ms after its linger
//!   (`no_message_waits_longer_than_the_linger_and_a_late_one_goes_along`).

use std::time::Duration;

use super::{adaptive::Adaptive, due_queue::DueQueue};
use crate::{
    machine::{Instant, earliest},
    stats::SendReason,
};

/// The rule for how long records wait for further ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linger {
    /// `broker.linger.ms`: one clock per broker.
    Broker(Duration),
    /// `linger.ms`: one clock per partition.
    Partition(Duration),
    /// `broker.linger.ms=auto`: the broker's responses set the pace.
    Auto,
}

/// A broker's partitions that have something to send.
#[derive(Debug)]
pub struct Collector {
    linger: Linger,
    adaptive: Adaptive,
    max_partitions: usize,
    /// The partitions by the end of their linger.
    open: DueQueue,
    full: DueQueue,
    /// The position in the queues, by slot.
    members: Vec<Option<Member>>,
    /// All partitions whose linger ends at or before this time are due.
    due_until: Option<Instant>,
    /// True if some topic lingers longer than the broker.
    has_longer: bool,
    /// Due partitions whose terms differ from those of the current request.
    aside: Vec<(usize, Member)>,
    /// The reason for the last request, if partitions with other terms are due for the same reason.
    rest: Option<SendReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    since: Instant,
    due: Instant,
    full: bool,
}

impl Collector {
    /// Creates the collector of a broker that may have this number of requests in flight.
    pub fn new(linger: Linger, max_partitions: Option<usize>, max_in_flight: usize) -> Self {
        Self {
            linger,
            adaptive: Adaptive::new(max_in_flight),
            max_partitions: max_partitions.unwrap_or(usize::MAX),
            open: DueQueue::default(),
            full: DueQueue::default(),
            members: Vec::new(),
            due_until: None,
            has_longer: false,
            aside: Vec::new(),
            rest: None,
        }
    }

    /// Adds a partition that has something to send since then. Replaces its entry, but never makes it younger.
    pub fn add(&mut self, slot: usize, since: Instant, full: bool) {
        self.add_of_topic(slot, since, full, None);
    }

    /// Like [`Collector::add`], for a partition whose topic has its own linger.
    pub fn add_of_topic(&mut self, slot: usize, since: Instant, full: bool, own: Option<Duration>) {
        if self.members.len() <= slot {
            self.members.resize(slot + 1, None);
        }
        let due = match self.linger {
            Linger::Broker(linger) | Linger::Partition(linger) => {
                self.has_longer |= own.is_some_and(|own| own > linger);
                since + own.unwrap_or(linger)
            }
            Linger::Auto => since,
        };
        let mut member = Member { since, due, full };
        if let Some(known) = self.members[slot] {
            member.since = member.since.min(known.since);
            member.due = member.due.min(known.due);
            member.full |= known.full;
            self.remove(slot);
        }
        self.members[slot] = Some(member);
        self.queue_of(member).insert(member.due, slot);
    }

    /// Removes a partition that has nothing to send or left.
    pub fn remove(&mut self, slot: usize) {
        if let Some(member) = self.members.get_mut(slot).and_then(Option::take) {
            self.queue_of(member).remove(member.due, slot);
        }
        if self.is_empty() && self.aside.is_empty() {
            self.due_until = None;
        }
    }

    /// Sets a partition aside that can't join the current request. It stays due.
    pub fn set_aside(&mut self, slot: usize) {
        if let Some(member) = self.members.get_mut(slot).and_then(Option::take) {
            self.queue_of(member).remove(member.due, slot);
            self.aside.push((slot, member));
        }
    }

    /// Returns the partitions set aside when the request is built: they are next, for the same reason.
    pub fn take_back(&mut self, reason: SendReason) {
        self.rest = (!self.aside.is_empty()).then_some(reason);
        let mut aside = std::mem::take(&mut self.aside);
        for (slot, member) in aside.drain(..) {
            self.members[slot] = Some(member);
            self.queue_of(member).insert(member.due, slot);
        }
        self.aside = aside;
    }

    /// Returns the number of waiting partitions.
    pub fn len(&self) -> usize {
        self.open.len() + self.full.len()
    }

    /// Returns true if no partition waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.full.is_empty()
    }

    /// Returns the reason to send now, if there is one, with this number of requests in flight.
    pub fn due(
        &mut self,
        now: Instant,
        flushing: bool,
        enough_bytes: bool,
        in_flight: usize,
    ) -> Option<SendReason> {
        if let Some(reason) = self.rest.take().filter(|_| self.peek_due().is_some()) {
            return Some(reason);
        }
        let reason = self.reason(now, flushing, enough_bytes, in_flight)?;
        match (reason, self.linger) {
            (SendReason::Bytes, _) if !enough_bytes => {}
            (SendReason::Linger, Linger::Partition(_)) => self.due_until = Some(now),
            // A topic with a longer linger does not join each request of the others.
            (SendReason::Linger, Linger::Broker(linger)) if self.has_longer => {
                self.due_until = Some(now + linger);
            }
            _ => {
                // Records that arrived after the actor read the clock are included: they were counted, and would start
                // a new linger.
                let newest = self.open.last().map_or(now, |(due, _)| now.max(due));
                self.due_until = Some(self.due_until.map_or(newest, |until| until.max(newest)));
            }
        }
        Some(reason)
    }

    /// Returns the oldest due partition, and whether its open batch is due too. Call after [`Collector::due`].
    pub fn peek_due(&self) -> Option<(usize, bool)> {
        let is_due = |due: Instant| self.due_until.is_some_and(|until| due <= until);
        let open = self.open.first().filter(|(due, _)| is_due(*due));
        match (self.full.first(), open) {
            (Some(full), Some(open)) if open < full => Some((open.1, true)),
            (Some(full), _) => Some((full.1, is_due(full.0))),
            (None, Some(open)) => Some((open.1, true)),
            (None, None) => None,
        }
    }

    /// Returns when to check the collector again if nothing happens before. With this number of requests in flight, the
    /// next response may have to arrive first; then there is no time.
    pub fn deadline(&self, in_flight: usize) -> Option<Instant> {
        let first = self.open.first().map(|(due, _)| due);
        let linger = match self.linger {
            Linger::Broker(_) | Linger::Partition(_) => first,
            Linger::Auto => first.and_then(|since| Some(since.max(self.adaptive.send_at(in_flight)?))),
        };
        let full = self.full.first().and_then(|(_, slot)| Some(self.members[slot]?.since));
        earliest(full, linger)
    }

    /// Returns the broker's own pace, which [`Linger::Auto`] follows.
    pub const fn pace(&mut self) -> &mut Adaptive {
        &mut self.adaptive
    }

    fn reason(
        &self,
        now: Instant,
        flushing: bool,
        enough_bytes: bool,
        in_flight: usize,
    ) -> Option<SendReason> {
        if self.is_empty() {
            None
        } else if flushing {
            Some(SendReason::Flush)
        } else if self.len() >= self.max_partitions {
            Some(SendReason::Partitions)
        } else if enough_bytes || !self.full.is_empty() {
            Some(SendReason::Bytes)
        } else {
            let is_due =
                self.deadline(in_flight).is_some_and(|deadline| deadline <= now) || self.peek_due().is_some();
            is_due.then_some(if self.linger == Linger::Auto {
                SendReason::Adaptive
            } else {
                SendReason::Linger
            })
        }
    }

    fn queue_of(&mut self, member: Member) -> &mut DueQueue {
        if member.full { &mut self.full } else { &mut self.open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn broker_linger(millis: u64) -> Collector {
        Collector::new(Linger::Broker(Duration::from_millis(millis)), None, 5)
    }

    /// Takes all due partitions, as the sender does.
    fn send(collector: &mut Collector) -> Vec<usize> {
        let mut sent = Vec::new();
        while let Some((slot, _)) = collector.peek_due() {
            collector.remove(slot);
            sent.push(slot);
        }
        sent
    }

    #[test]
    fn a_late_arrival_does_not_extend_the_window_and_goes_with_it() {
        let mut collector = broker_linger(5);
        collector.add(0, at(10), false);
        collector.add(1, at(14), false);
        assert_eq!(collector.deadline(0), Some(at(15)));
        assert_eq!(collector.due(at(14), false, false, 0), None);
        assert_eq!(collector.due(at(15), false, false, 0), Some(SendReason::Linger));
        assert_eq!(send(&mut collector), [0, 1]);
        assert_eq!(collector.deadline(0), None);
    }

    #[test]
    fn with_linger_ms_only_the_partitions_whose_own_clock_expired_go() {
        let mut collector = Collector::new(Linger::Partition(Duration::from_millis(5)), None, 5);
        collector.add(0, at(10), false);
        collector.add(1, at(11), false);
        collector.add(2, at(14), false);
        assert_eq!(collector.due(at(16), false, false, 0), Some(SendReason::Linger));
        assert_eq!(send(&mut collector), [0, 1]);
        assert_eq!(collector.deadline(0), Some(at(19)));
    }

    #[test]
    fn a_full_batch_goes_at_once_and_alone() {
        let mut collector = broker_linger(5);
        collector.add(0, at(10), false);
        collector.add(1, at(11), true);
        assert_eq!(collector.due(at(11), false, false, 0), Some(SendReason::Bytes));
        assert_eq!(collector.peek_due(), Some((1, false)));
        collector.remove(1);
        assert_eq!(collector.peek_due(), None);
    }

    #[test]
    fn flush_and_the_partition_limit_do_not_wait_for_the_linger() {
        let mut collector = Collector::new(Linger::Broker(Duration::from_secs(1)), Some(2), 5);
        collector.add(0, at(1), false);
        assert_eq!(collector.due(at(1), false, false, 0), None);
        assert_eq!(collector.due(at(1), true, false, 0), Some(SendReason::Flush));
        collector.add(1, at(1), false);
        assert_eq!(collector.due(at(1), false, false, 0), Some(SendReason::Partitions));
        assert_eq!(send(&mut collector), [0, 1]);
    }

    #[test]
    fn records_that_arrive_during_a_clock_reading_are_sent_along() {
        let mut collector = Collector::new(Linger::Broker(Duration::from_secs(60)), Some(2), 5);
        collector.add(0, at(10), false);
        collector.add(1, at(12), false);
        assert_eq!(collector.due(at(11), false, false, 0), Some(SendReason::Partitions));
        assert_eq!(send(&mut collector), [0, 1]);
    }

    #[test]
    fn shorter_linger_takes_other_topics_along_and_longer_linger_stays() {
        let own = |millis| Some(Duration::from_millis(millis));
        let mut collector = broker_linger(20);
        collector.add_of_topic(0, at(10), false, own(500));
        collector.add(1, at(11), false);
        collector.add_of_topic(2, at(12), false, own(5));
        assert_eq!(collector.deadline(0), Some(at(17)));
        assert_eq!(collector.due(at(17), false, false, 0), Some(SendReason::Linger));
        assert_eq!(send(&mut collector), [2, 1], "the one that is in a hurry, and who came before it");
        assert_eq!((collector.due(at(100), false, false, 0), collector.deadline(0)), (None, Some(at(510))));
        collector.add(1, at(480), false);
        assert_eq!(collector.due(at(500), false, false, 0), Some(SendReason::Linger));
        assert_eq!(send(&mut collector), [1, 0], "it would be due soon, so it goes along");
        collector.add_of_topic(0, at(600), false, own(500));
        assert_eq!(collector.due(at(600), true, false, 0), Some(SendReason::Flush));
        assert_eq!(send(&mut collector), [0]);
    }

    #[test]
    fn partition_set_aside_is_due_for_the_reason_of_the_request_before() {
        let mut collector = Collector::new(Linger::Partition(Duration::from_secs(1)), Some(3), 5);
        (0..3).for_each(|slot| collector.add(slot, at(slot as u64), false));
        let reason = collector.due(at(3), false, false, 0);
        assert_eq!(reason, Some(SendReason::Partitions));
        collector.remove(0);
        collector.set_aside(1);
        collector.remove(2);
        assert!(collector.is_empty(), "the others are gone, and this one does not count in the meantime");
        collector.take_back(SendReason::Partitions);
        collector.add(3, at(4), false);
        assert_eq!(collector.len(), 2);
        assert_eq!(collector.due(at(4), false, false, 1), Some(SendReason::Partitions));
        assert_eq!(send(&mut collector), [1]);
        assert_eq!((collector.due(at(5), false, false, 0), collector.deadline(0)), (None, Some(at(1004))));
    }

    #[test]
    fn unsent_partition_stays_due_and_oldest() {
        let mut collector = broker_linger(5);
        collector.add(0, at(10), false);
        collector.add(1, at(12), false);
        collector.due(at(15), false, false, 0);
        collector.remove(0);
        collector.add(2, at(16), false);
        assert_eq!(collector.due(at(16), false, false, 0), Some(SendReason::Linger));
        assert_eq!(collector.peek_due(), Some((1, true)));
    }

    #[test]
    fn auto_linger_sends_first_record_at_once_and_the_next_together() {
        let mut collector = Collector::new(Linger::Auto, None, 2);
        collector.add(0, at(10), false);
        assert_eq!(collector.deadline(0), Some(at(10)));
        for in_flight in 0..2 {
            assert_eq!(collector.due(at(10), false, false, in_flight), Some(SendReason::Adaptive));
            assert_eq!(send(&mut collector).len(), 1);
            collector.pace().sent(at(10));
            collector.add(1, at(10), false);
        }
        collector.add(2, at(10), false);
        assert_eq!((collector.due(at(11), false, false, 2), collector.deadline(2)), (None, None));
        let half = Duration::from_micros(500);
        assert_eq!(collector.deadline(1), Some(at(10) + half), "half a millisecond behind the last one");
        assert_eq!(collector.due(at(11), false, false, 1), Some(SendReason::Adaptive));
        assert_eq!(send(&mut collector), [1, 2]);
    }
}
