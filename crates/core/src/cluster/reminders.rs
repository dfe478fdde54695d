//! Timers for calls of the application. The cluster actor, which has a timer anyway, completes each at its time.

use ottla_sorted::SortedMap;

use crate::{completion::Completion, machine::Instant};

/// A timer for a call of the application. It has a time and not a duration: the actor that takes it may have read the clock before
/// the call began, and would end it too early.
#[derive(Debug)]
pub struct Reminder {
    /// When it fires.
    pub at: Instant,
    /// Completed at that time; dropped if the client ends before.
    pub done: Completion<()>,
}

/// The timers of a client.
#[derive(Debug, Default)]
pub(super) struct Reminders {
    waiting: SortedMap<(Instant, u64), Completion<()>>,
    next_number: u64,
    /// From this number of timers on, those without a waiter are removed.
    most: usize,
}

/// The number of timers up to which those without a waiter may stay.
const FEW: usize = 64;

impl Reminders {
    /// Adds a timer.
    pub(super) fn add(&mut self, reminder: Reminder) {
        self.waiting.insert((reminder.at, self.next_number), reminder.done);
        self.next_number += 1;
        // Calls that end before their time leave their timers behind.
        if self.waiting.len() > self.most.max(FEW) {
            self.waiting.retain(|_, done| done.is_awaited());
            self.most = self.waiting.len() * 2;
        }
    }

    /// Completes the timers that are due, in the order of their times.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            first.remove().complete(());
        }
    }

    /// Returns when to call [`Reminders::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Drops all timers when the client ends.
    pub(super) fn close(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::{Waiting, completion};

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn remind(reminders: &mut Reminders, after: u64) -> Waiting<()> {
        let (done, waiting) = completion();
        reminders.add(Reminder { at: at(100 + after), done });
        waiting
    }

    #[test]
    fn timers_that_nobody_awaits_are_removed() {
        let mut reminders = Reminders::default();
        let awaited: Vec<_> = (0..50).map(|_| remind(&mut reminders, 1000)).collect();
        (0..10_000).for_each(|_| drop(remind(&mut reminders, 1000)));
        assert!(reminders.waiting.len() <= 150, "{}", reminders.waiting.len());
        reminders.handle_timeout(at(1100));
        assert!(awaited.iter().all(|waiting| waiting.try_take().is_some()));
    }

    #[test]
    fn each_is_reminded_at_its_time_and_once() {
        let mut reminders = Reminders::default();
        let (later, sooner) = (remind(&mut reminders, 20), remind(&mut reminders, 10));
        let (same, unheard) = (remind(&mut reminders, 10), remind(&mut reminders, 30));
        assert_eq!(reminders.poll_timeout(), Some(at(110)));
        reminders.handle_timeout(at(109));
        assert_eq!(sooner.try_take(), None);
        reminders.handle_timeout(at(110));
        assert_eq!((sooner.try_take(), same.try_take(), later.try_take()), (Some(()), Some(()), None));
        assert_eq!(reminders.poll_timeout(), Some(at(120)));
        reminders.handle_timeout(at(125));
        assert_eq!((sooner.try_take(), later.try_take()), (None, Some(())));
        reminders.close();
        reminders.handle_timeout(at(500));
        assert_eq!((reminders.poll_timeout(), unheard.try_take()), (None, None));
    }
}
