//! Values over a period: minimum, maximum, mean, deviation and percentiles, in a few kilobytes for any number of
//! values. A window also keeps a [`Summary`] since the last push of client metrics, whose period is another one.

use std::time::Duration;

use super::purpose::Purpose;

/// A histogram whose buckets are 1/32 of their value wide. Empty buckets take no memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    buckets: Vec<u32>,
    count: u64,
    out_of_range: u64,
    min: u64,
    max: u64,
    sum: u64,
    sum_of_squares: f64,
    since_push: Summary,
}

/// The number, the sum and the maximum of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The highest value.
    pub max: u64,
}

impl Summary {
    /// Adds the values of another summary.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns the mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// The number of buckets per power of two.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// The smallest value that is counted as out of range; in microseconds it is 19 hours.
const LIMIT: u64 = 1 << 36;

impl Window {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a duration in microseconds.
    pub fn record_micros(&mut self, duration: Duration) {
        self.record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a value that occurred several times.
    pub fn record_many(&mut self, value: u64, times: u32) {
        if value >= LIMIT {
            self.out_of_range += u64::from(times);
            return;
        }
        if times == 0 {
            return;
        }
        let bucket = bucket(value);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] = self.buckets[bucket].saturating_add(times);
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += u64::from(times);
        self.sum = self.sum.saturating_add(value.saturating_mul(u64::from(times)));
        self.sum_of_squares += (value as f64).powi(2) * f64::from(times);
        self.since_push.add(Summary {
            count: u64::from(times),
            sum: value.saturating_mul(u64::from(times)),
            max: value,
        });
    }

    /// Adds the counts of another window.
    pub fn add(&mut self, other: &Self) {
        if other.count > 0 {
            self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        }
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.out_of_range += other.out_of_range;
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares += other.sum_of_squares;
        self.since_push.add(other.since_push);
    }

    /// Returns the counts. The window restarts if the purpose is the periodic event. For a push, the result has only the
    /// summary since the last push, which restarts.
    pub fn snapshot(&mut self, purpose: Purpose) -> Self {
        match purpose {
            Purpose::Query => self.clone(),
            Purpose::Periodic => {
                let since_push = self.since_push;
                std::mem::replace(self, Self { since_push, ..Self::default() })
            }
            Purpose::Push => Self { since_push: std::mem::take(&mut self.since_push), ..Self::default() },
        }
    }

    /// Returns the summary of the values since the last push of client metrics.
    pub const fn since_push(&self) -> Summary {
        self.since_push
    }

    /// Returns the summary of the values in the window.
    pub const fn summary(&self) -> Summary {
        Summary { count: self.count, sum: self.sum, max: self.max }
    }

    /// Returns the number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the minimum; 0 without values.
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// Returns the maximum; 0 without values.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the sum of all values.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns the standard deviation.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        (self.sum_of_squares / self.count as f64 - self.mean().powi(2)).max(0.0).sqrt()
    }

    /// Returns the value that `percent` of all values do not exceed, to within 1/32 of it.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = ((percent / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return highest_of(index).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Returns the number of values that were too large for the histogram.
    pub const fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// Returns the memory of the histogram in bytes.
    pub const fn memory(&self) -> usize {
        self.buckets.capacity() * size_of::<u32>()
    }
}

fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let power = value.ilog2() - STEP_BITS;
    ((u64::from(power) + 1) * STEPS + (value >> power) - STEPS) as usize
}

fn highest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let power = bucket / STEPS - 1;
    ((bucket % STEPS + STEPS + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_into_a_bucket_that_ends_at_most_a_32nd_above_it() {
        for value in (0..5000).chain([65_535, 65_536, 1_000_000, LIMIT - 1]) {
            let highest = highest_of(bucket(value));
            assert!(highest >= value && highest - value <= value / 32, "{value} {highest}");
        }
        for index in 1..1000 {
            assert_eq!(bucket(highest_of(index - 1) + 1), index);
        }
    }

    #[test]
    fn percentiles_mean_and_deviation_are_those_of_the_values() {
        let mut window = Window::default();
        (1..=1000).for_each(|value| window.record(value));
        assert_eq!((window.min(), window.max(), window.sum(), window.count()), (1, 1000, 500_500, 1000));
        assert!((500..=516).contains(&window.percentile(50.0)), "{}", window.percentile(50.0));
        assert!((990..=1000).contains(&window.percentile(99.0)), "{}", window.percentile(99.0));
        assert_eq!(window.percentile(99.99), 1000);
        assert!((window.deviation() - 288.67).abs() < 0.1, "{}", window.deviation());
    }

    #[test]
    fn two_windows_added_are_one_over_both() {
        let (mut low, mut high, mut both) = (Window::default(), Window::default(), Window::default());
        for value in 0..100 {
            low.record(value);
            high.record(value + 10_000);
            both.record(value);
            both.record(value + 10_000);
        }
        low.add(&high);
        assert_eq!(low, both);
    }

    #[test]
    fn pushes_and_periodic_events_restart_their_own_counts() {
        let mut window = Window::default();
        window.record_many(10, 3);
        assert_eq!(window.snapshot(Purpose::Query), window);
        assert_eq!(window.snapshot(Purpose::Periodic).count(), 3);
        window.record(40);
        assert_eq!((window.count(), window.since_push()), (1, Summary { count: 4, sum: 70, max: 40 }));
        let pushed = window.snapshot(Purpose::Push);
        assert_eq!((pushed.since_push().mean(), pushed.memory()), (Some(17.5), 0));
        assert_eq!((window.count(), window.since_push().mean()), (1, None));
    }

    #[test]
    fn values_beyond_the_range_are_counted_apart_and_take_no_memory() {
        let mut window = Window::default();
        window.record(u64::MAX);
        assert_eq!((window.out_of_range(), window.count(), window.memory()), (1, 0, 0));
        assert_eq!((window.percentile(50.0), window.mean() as u64), (0, 0));
    }
}
