//! `max.poll.interval.ms`: whether the application still polls.
//!
//! ```text
//!   Off ── subscribe ──► Watching ── no poll for 50 %, 80 % ──► warnings ── no poll for 100 % ──► Expired
//!    ▲                      ▲                                                                       │
//!    └── unsubscribe        └────────────────────────── poll, subscribe ────────────────────────────┘
//! ```
//!
//! The watch wakes up when half of the interval of the last known poll has passed, and only then looks for later polls.
//! Heartbeats do so, too, so that an idle member does not wake up for it.
//!
//! # Pitfalls
//!
//! - An application that takes records of a batch one by one polls the queue once per batch. The positions of its
//!   partitions show that it still polls (`application_that_takes_single_records_counts_as_polling`).
//! - Records of an earlier poll are not a sign of life: after a suspension of the host they don't show that the application still
//!   polls (`records_of_a_known_poll_do_not_prolong_the_interval`).
//! - The position of a partition also changes when its first offset is found or when it is given up, which is not a poll
//!   (`changes_of_the_assignment_are_no_polls`).

use std::time::Duration;

use crate::{machine::Instant, states::See};

/// The watch over the application's polls.
#[derive(Debug, Default)]
pub(super) struct PollWatch {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// The consumer has no subscription.
    #[default]
    Off,
    Watching(Watching),
    /// The interval has passed; the member has left its group.
    Expired,
}

#[derive(Debug)]
struct Watching {
    /// The time of the last known poll.
    since: Instant,
    /// [`ConsumerShared::progress`](crate::fetch::shared::ConsumerShared::progress) at that time.
    progress: i64,
    /// When that was read.
    observed: Instant,
    /// The number of warnings since then, each after one of [`WARNINGS`].
    warnings: usize,
}

/// The parts of the interval after which the application is warned, in percent.
const WARNINGS: [u32; 2] = [50, 80];

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// A large part of the interval has passed since the last poll, which was this long ago.
    Soon(Duration),
    /// The interval has passed since the last poll.
    Exceeded,
}

impl PollWatch {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("polls", 0, &self.state);
    }

    /// Starts the watch, or restarts it: the application subscribed or polled.
    pub(super) const fn start(&mut self, now: Instant, progress: i64) {
        self.state = State::Watching(Watching { since: now, progress, observed: now, warnings: 0 });
    }

    /// Stops watching.
    pub(super) const fn stop(&mut self) {
        self.state = State::Off;
    }

    /// Returns true if the interval has passed and the application has not polled since.
    pub(super) const fn is_expired(&self) -> bool {
        matches!(self.state, State::Expired)
    }

    /// Returns when to call [`PollWatch::check`].
    pub(super) fn poll_timeout(&self, limit: Duration) -> Option<Instant> {
        match &self.state {
            State::Watching(watching) => Some(watching.due(limit)),
            _ => None,
        }
    }

    /// Returns true if [`PollWatch::check`] is due.
    pub(super) fn is_due(&self, now: Instant, limit: Duration) -> bool {
        self.poll_timeout(limit).is_some_and(|due| due <= now)
    }

    /// Notes what is known about polls. `last_poll` is the time of the last one, and `progress` a number that has grown if
    /// records were handed out.
    pub(super) fn observe(&mut self, now: Instant, last_poll: Instant, progress: i64) {
        let State::Watching(watching) = &mut self.state else { return };
        // A poll since the last observation explains why records were handed out.
        let takes_singly = progress > watching.progress && last_poll <= watching.observed;
        let since = if takes_singly { now } else { last_poll.min(now) };
        (watching.progress, watching.observed) = (progress, now);
        if since > watching.since {
            watching.since = since;
            watching.warnings = 0;
        }
    }

    /// Checks whether the application is late, after [`PollWatch::observe`].
    pub(super) fn check(&mut self, now: Instant, limit: Duration) -> Option<Overdue> {
        let State::Watching(watching) = &mut self.state else { return None };
        if watching.due(limit) > now {
            return None;
        }
        let late = now.saturating_since(watching.since);
        if late >= limit {
            self.state = State::Expired;
            return Some(Overdue::Exceeded);
        }
        // One warning is enough if the machine was stopped for a while.
        watching.warnings = WARNINGS.iter().filter(|percent| late >= limit * **percent / 100).count();
        Some(Overdue::Soon(late))
    }
}

impl Watching {
    fn due(&self, limit: Duration) -> Instant {
        self.since + WARNINGS.get(self.warnings).map_or(limit, |percent| limit * *percent / 100)
    }
}

#[cfg(test)]
mod tests {
    use ottla_protocol::vocabulary::TopicPartition;

    use super::*;
    use crate::fetch::partition::PartitionHandle;

    const LIMIT: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn missing_polls_are_reported_before_and_at_the_end_of_the_interval() {
        let mut watch = PollWatch::default();
        watch.start(at(100), 0);
        assert_eq!(watch.poll_timeout(LIMIT), Some(at(105)));
        watch.observe(at(105), at(0), 0);
        assert_eq!(watch.check(at(105), LIMIT), Some(Overdue::Soon(Duration::from_secs(5))));
        assert_eq!(watch.check(at(106), LIMIT), None, "it warns once");
        assert_eq!(watch.poll_timeout(LIMIT), Some(at(108)));
        watch.observe(at(108), at(0), 0);
        assert_eq!(watch.check(at(108), LIMIT), Some(Overdue::Soon(Duration::from_secs(8))));
        assert_eq!(watch.check(at(109), LIMIT), None, "it warns once");
        assert_eq!(watch.poll_timeout(LIMIT), Some(at(110)));
        assert_eq!(watch.check(at(110), LIMIT), Some(Overdue::Exceeded));
        assert!(watch.is_expired());
        assert_eq!(watch.check(at(200), LIMIT), None, "it is reported once");
        watch.start(at(300), 0);
        assert!(!watch.is_expired());
    }

    #[test]
    fn poll_restarts_the_interval() {
        let mut watch = PollWatch::default();
        watch.start(at(100), 0);
        assert_eq!(watch.check(at(105), LIMIT), Some(Overdue::Soon(Duration::from_secs(5))));
        watch.observe(at(108), at(107), 0);
        assert_eq!(watch.check(at(108), LIMIT), None);
        assert_eq!(watch.poll_timeout(LIMIT), Some(at(112)));
        watch.observe(at(112), at(107), 0);
        assert_eq!(
            watch.check(at(112), LIMIT),
            Some(Overdue::Soon(Duration::from_secs(5))),
            "it warns again"
        );
    }

    #[test]
    fn changes_of_the_assignment_are_no_polls() {
        let partition = PartitionHandle::new(TopicPartition::new("t", 0));
        partition.bump_version(None);
        assert_eq!(partition.distance(), 0);
        partition.start_at(100);
        assert_eq!(partition.distance(), 0, "its first offset was found");
        partition.set_position(103, -1);
        assert_eq!(partition.distance(), 3);

        let mut watch = PollWatch::default();
        watch.start(at(100), 3);
        watch.observe(at(104), at(0), 0);
        assert_eq!(watch.poll_timeout(LIMIT), Some(at(105)), "the partition was given up");
        watch.observe(at(104), at(0), 1);
        assert_eq!(watch.poll_timeout(LIMIT), Some(at(109)), "another one is read");
    }

    #[test]
    fn records_of_a_known_poll_do_not_prolong_the_interval() {
        let mut watch = PollWatch::default();
        watch.start(at(100), 0);
        watch.observe(at(113), at(104), 5);
        assert_eq!(watch.check(at(113), LIMIT), Some(Overdue::Soon(Duration::from_secs(9))));
        watch.observe(at(114), at(104), 5);
        assert_eq!(watch.check(at(114), LIMIT), Some(Overdue::Exceeded));
    }

    #[test]
    fn application_that_takes_single_records_counts_as_polling() {
        let mut watch = PollWatch::default();
        watch.start(at(100), 7);
        watch.observe(at(108), at(100), 8);
        assert_eq!(watch.check(at(108), LIMIT), None);
        watch.observe(at(116), at(100), 8);
        assert_eq!(watch.check(at(116), LIMIT), Some(Overdue::Soon(Duration::from_secs(8))));
    }

    #[test]
    fn late_check_warns_once_or_reports_the_end() {
        for (now, expected) in [(109, Overdue::Soon(Duration::from_secs(9))), (110, Overdue::Exceeded)] {
            let mut watch = PollWatch::default();
            watch.start(at(100), 0);
            assert_eq!(watch.check(at(now), LIMIT), Some(expected));
            assert_eq!(watch.check(at(now), LIMIT), None);
        }
    }
}
