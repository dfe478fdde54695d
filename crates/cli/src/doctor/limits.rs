//! The time of an examination: 5 s for each wait, or one deadline for everything if `--timeout` is set.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The time for each wait without `--timeout`.
const STEP: Duration = Duration::from_secs(5);
/// A wait that begins after the deadline still sees what has arrived.
const MINIMUM: Duration = Duration::from_millis(1);

/// How long the next wait may last.
#[derive(Debug)]
pub struct Limits {
    /// The end of the examination, with `--timeout`.
    end: Option<Instant>,
    /// The end of the present part.
    part: Cell<Option<Instant>>,
}

impl Limits {
    /// Begins an examination that lasts for `timeout`, if it is set.
    pub fn new(timeout: Option<Duration>) -> Self {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        Self { end, part: Cell::new(end) }
    }

    /// Begins one of `parts` parts that share the rest of the time.
    pub fn share(&self, parts: usize) {
        let share = |end: Instant| {
            let now = Instant::now();
            now + end.saturating_duration_since(now) / u32::try_from(parts.max(1)).unwrap_or(u32::MAX)
        };
        self.part.set(self.end.map(share));
    }

    /// Returns the time for the next wait. With a deadline that is half of the rest: a peer that does not respond is asked in
    /// other ways afterwards.
    pub fn wait(&self) -> Duration {
        let rest = |end: Instant| end.saturating_duration_since(Instant::now()) / 2;
        self.part.get().map_or(STEP, rest).max(MINIMUM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_all_parts_end_at_one_deadline() {
        assert_eq!(Limits::new(None).wait(), STEP);
        let limits = Limits::new(Some(Duration::from_secs(3600)));
        assert!(limits.wait() <= Duration::from_secs(1800));
        limits.share(4);
        assert!(limits.wait() <= Duration::from_secs(450));
        limits.share(1);
        assert!(limits.wait() > Duration::from_secs(450));
        let over = Limits::new(Some(Duration::ZERO));
        over.share(0);
        assert_eq!(over.wait(), MINIMUM);
    }
}
