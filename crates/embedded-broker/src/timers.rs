//! Timers and their deadlines.

use ottla_protocol::time::Instant;
use ottla_sorted::SortedMap;

/// Timers in the order of their deadlines; timers with the same deadline in the order in which they were set.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    entries: SortedMap<TimerKey, T>,
    next: u64,
}

/// The key by which a timer is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerKey(Instant, u64);

impl<T> Timers<T> {
    pub fn new() -> Self {
        Self { entries: SortedMap::new(), next: 0 }
    }

    pub fn set(&mut self, at: Instant, timer: T) -> TimerKey {
        let key = TimerKey(at, self.next);
        self.next += 1;
        self.entries.insert(key, timer);
        key
    }

    pub fn cancel(&mut self, key: TimerKey) {
        self.entries.remove(&key);
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.entries.keys().next().map(|key| key.0)
    }

    pub fn take_due(&mut self, now: Instant) -> Option<T> {
        let entry = self.entries.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_of_time_then_of_creation() {
        let mut timers = Timers::new();
        let at = Instant::from_nanos;
        timers.set(at(5), 'c');
        timers.set(at(1), 'a');
        let cancelled = timers.set(at(3), 'x');
        timers.set(at(1), 'b');
        timers.cancel(cancelled);
        assert_eq!(timers.next_due(), Some(at(1)));
        assert_eq!(timers.take_due(at(0)), None);
        let mut fired = String::new();
        while let Some(timer) = timers.take_due(at(5)) {
            fired.push(timer);
        }
        assert_eq!(fired, "abc");
        assert_eq!(timers.next_due(), None);
    }
}
