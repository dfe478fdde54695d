//! The last values of a measure.

use std::collections::VecDeque;
use std::time::Duration;

/// The number of values that are kept: more than a sparkline shows.
const CAPACITY: usize = 120;

/// The last values of a measure, the newest at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(VecDeque<f64>);

impl History {
    /// Adds a value, and drops the oldest one if there are too many.
    pub fn push(&mut self, value: f64) {
        if self.0.len() == CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// Returns the newest value.
    pub fn last(&self) -> Option<f64> {
        self.0.back().copied()
    }

    /// Returns the newest `count` values, the newest at the end.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().skip(self.0.len().saturating_sub(count)).copied()
    }
}

/// A counter that only grows, such as the end of a partition, and the rate at which it grew last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counter {
    value: Option<(Duration, i64)>,
    rate: Option<f64>,
}

impl Counter {
    /// Takes the value at a time. A counter that went back, as that of a recreated topic, has no rate until the next value.
    pub fn set(&mut self, at: Duration, value: i64) {
        self.rate = self.value.and_then(|(before, last)| {
            let seconds = at.checked_sub(before).filter(|gone| !gone.is_zero())?.as_secs_f64();
            let grown = value.checked_sub(last).filter(|grown| *grown >= 0)?;
            Some(grown as f64 / seconds)
        });
        self.value = Some((at, value));
    }

    /// Returns the value.
    pub fn value(&self) -> Option<i64> {
        self.value.map(|(_, value)| value)
    }

    /// Returns the time of the value.
    pub fn at(&self) -> Option<Duration> {
        self.value.map(|(at, _)| at)
    }

    /// Returns the growth per second between the last two values.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_keeps_the_newest_values() {
        let mut history = History::default();
        assert_eq!(history.last(), None);
        (0..500).for_each(|value| history.push(f64::from(value)));
        assert_eq!(history.last(), Some(499.0));
        assert_eq!(history.newest(3).collect::<Vec<_>>(), [497.0, 498.0, 499.0]);
        assert_eq!(history.newest(1000).count(), CAPACITY);
    }

    #[test]
    fn counter_that_goes_back_has_no_rate() {
        let (mut counter, second) = (Counter::default(), Duration::from_secs(1));
        counter.set(second, 100);
        assert_eq!(counter.rate(), None, "a rate needs two values");
        counter.set(second * 3, 140);
        assert_eq!(counter.rate(), Some(20.0));
        counter.set(second * 4, 5);
        assert_eq!((counter.rate(), counter.value()), (None, Some(5)));
        counter.set(second * 5, 6);
        assert_eq!(counter.rate(), Some(1.0));
        counter.set(second * 5, 7);
        assert_eq!(counter.rate(), None, "no time has passed");
        counter.set(second * 6, i64::MIN);
        counter.set(second * 7, i64::MAX);
        assert_eq!(counter.rate(), None, "the difference is too large for the type");
    }
}
