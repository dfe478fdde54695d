//! Decides when a broker sends: gathers the broker's ready partitions so that one request carries many of them.
//!
//! With `broker.linger.ms` the clock starts when collecting starts, that is with the oldest record; when it expires, all
//! collected partitions are due. With `linger.ms` each partition has its own clock. A partition with a full batch is due
//! at once. With `broker.linger.ms=auto` the broker's own pace decides ([`adaptive`](super::adaptive)). Whatever is due goes out
//! together, oldest first.

use std::{collections::BTreeSet, time::Duration};

use super::adaptive::Adaptive;
use crate::machine::{Instant, earliest};

/// How long records wait for company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linger {
    /// `broker.linger.ms`: one clock per broker.
    Broker(Duration),
    /// `linger.ms`: one clock per partition.
    Partition(Duration),
    /// `broker.linger.ms=auto`: no clock but the broker's answers.
    Auto,
}

/// Why the collector sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendReason {
    /// Somebody flushes or closes.
    Flush,
    /// `broker.batch.max.partitions` is reached.
    Partitions,
    /// `broker.batch.max.bytes` is reached, or a batch is full.
    Bytes,
    /// The linger is over.
    Linger,
    /// The broker's pace allows it.
    Adaptive,
}

/// A broker's partitions that have something to send.
#[derive(Debug)]
pub struct Collector {
    linger: Linger,
    adaptive: Adaptive,
    max_partitions: usize,
    open: BTreeSet<(Instant, usize)>,
    full: BTreeSet<(Instant, usize)>,
    /// By slot: where it is in the sets.
    members: Vec<Option<Member>>,
    /// Everything that came up to here is due.
    due_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    since: Instant,
    full: bool,
}

impl Collector {
    /// An empty collector of a broker that may have so many requests in flight.
    pub fn new(linger: Linger, max_partitions: Option<usize>, max_in_flight: usize) -> Self {
        Self {
            linger,
            adaptive: Adaptive::new(max_in_flight),
            max_partitions: max_partitions.unwrap_or(usize::MAX),
            open: BTreeSet::new(),
            full: BTreeSet::new(),
            members: Vec::new(),
            due_until: None,
        }
    }

    /// A partition has something to send since then; what was known of it is replaced, but never made younger.
    pub fn add(&mut self, slot: usize, since: Instant, full: bool) {
        if self.members.len() <= slot {
            self.members.resize(slot + 1, None);
        }
        let mut member = Member { since, full };
        if let Some(known) = self.members[slot] {
            member.since = member.since.min(known.since);
            member.full |= known.full;
            self.remove(slot);
        }
        self.members[slot] = Some(member);
        self.set_of(member).insert((member.since, slot));
    }

    /// The partition has nothing to send, or left.
    pub fn remove(&mut self, slot: usize) {
        if let Some(member) = self.members.get_mut(slot).and_then(Option::take) {
            self.set_of(member).remove(&(member.since, slot));
        }
        if self.is_empty() {
            self.due_until = None;
        }
    }

    /// How many partitions wait.
    pub fn len(&self) -> usize {
        self.open.len() + self.full.len()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.full.is_empty()
    }

    /// Why something should be sent now, if it should, while so many requests are in flight.
    pub fn due(
        &mut self,
        now: Instant,
        flushing: bool,
        enough_bytes: bool,
        in_flight: usize,
    ) -> Option<SendReason> {
        let reason = self.reason(now, flushing, enough_bytes, in_flight)?;
        match (reason, self.linger) {
            (SendReason::Bytes, _) if !enough_bytes => {}
            (SendReason::Linger, Linger::Partition(linger)) => {
                self.due_until = Some(now.earlier_by(linger));
            }
            _ => {
                // What came after the owner looked at the clock goes along: it was counted, and would wait for a linger of its own.
                let newest = self.open.last().map_or(now, |(since, _)| now.max(*since));
                self.due_until = Some(self.due_until.map_or(newest, |until| until.max(newest)));
            }
        }
        Some(reason)
    }

    /// The oldest partition that is due, and whether its open batch is due too. Call after [`Collector::due`].
    pub fn peek_due(&self) -> Option<(usize, bool)> {
        let is_due = |since: Instant| self.due_until.is_some_and(|until| since <= until);
        let open = self.open.first().filter(|(since, _)| is_due(*since));
        match (self.full.first(), open) {
            (Some(full), Some(open)) if open < full => Some((open.1, true)),
            (Some(full), _) => Some((full.1, is_due(full.0))),
            (None, Some(open)) => Some((open.1, true)),
            (None, None) => None,
        }
    }

    /// When the collector has to be asked again, if nothing happens before. While so many requests are in flight, that may be
    /// when one is answered and not before.
    pub fn deadline(&self, in_flight: usize) -> Option<Instant> {
        let oldest = self.open.first().map(|(since, _)| *since);
        let linger = match self.linger {
            Linger::Broker(linger) | Linger::Partition(linger) => oldest.map(|since| since + linger),
            Linger::Auto => oldest.and_then(|since| Some(since.max(self.adaptive.send_at(in_flight)?))),
        };
        earliest(self.full.first().map(|(since, _)| *since), linger)
    }

    /// The broker's own pace, which [`Linger::Auto`] follows.
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

    fn set_of(&mut self, member: Member) -> &mut BTreeSet<(Instant, usize)> {
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

    /// Takes everything that is due, as the sender does.
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
    fn what_came_while_the_owner_looked_at_the_clock_goes_along() {
        let mut collector = Collector::new(Linger::Broker(Duration::from_secs(60)), Some(2), 5);
        collector.add(0, at(10), false);
        collector.add(1, at(12), false);
        assert_eq!(collector.due(at(11), false, false, 0), Some(SendReason::Partitions));
        assert_eq!(send(&mut collector), [0, 1]);
    }

    #[test]
    fn what_could_not_go_stays_due_and_oldest() {
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
    fn at_the_brokers_own_pace_a_record_leaves_at_once_and_the_ones_behind_it_together() {
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
