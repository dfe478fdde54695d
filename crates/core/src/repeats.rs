//! The rate limit of errors that repeat: a broker that gives the same wrong response to each request, or that refuses each
//! connection, is reported once per interval, with a count.

use std::time::Duration;

use crate::{error::Error, machine::Instant};

/// The time in which a repeated warning is counted and not reported.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// The time in which a repeated failure of a connection is counted and not reported.
const FAILURE_INTERVAL: Duration = Duration::from_secs(30);
/// The number of different errors that are remembered; beyond it the oldest is forgotten, with its count.
const LIMIT: usize = 64;

/// Errors that were reported lately.
#[derive(Debug)]
pub(crate) struct Repeats {
    interval: Duration,
    is_same: fn(&Error, &Error) -> bool,
    recent: Vec<Recent>,
}

#[derive(Debug)]
struct Recent {
    error: Error,
    reported_at: Instant,
    suppressed: u32,
}

impl Repeats {
    /// Limits warnings about a broker's responses.
    pub const fn of_warnings() -> Self {
        Self { interval: WARNING_INTERVAL, is_same: is_same_warning, recent: Vec::new() }
    }

    /// Limits failures of connections.
    pub const fn of_failures() -> Self {
        Self { interval: FAILURE_INTERVAL, is_same: is_same_failure, recent: Vec::new() }
    }

    /// Returns the error if it is to be reported now. It says how often it was suppressed since its last report.
    pub fn admit(&mut self, now: Instant, error: Error) -> Option<Error> {
        let Some(index) = self.recent.iter().position(|recent| (self.is_same)(&recent.error, &error)) else {
            if self.recent.len() == LIMIT {
                self.recent.remove(0);
            }
            self.recent.push(Recent { error: error.clone(), reported_at: now, suppressed: 0 });
            return Some(error);
        };
        let recent = &mut self.recent[index];
        let elapsed = Duration::from_nanos(now.as_nanos().saturating_sub(recent.reported_at.as_nanos()));
        if elapsed < self.interval {
            recent.suppressed = recent.suppressed.saturating_add(1);
            return None;
        }
        // Kept in the order of their reports, so that the oldest is the first one.
        let Recent { suppressed, .. } = self.recent.remove(index);
        self.recent.push(Recent { error: error.clone(), reported_at: now, suppressed: 0 });
        Some(if suppressed == 0 { error } else { with_count(error, suppressed, elapsed) })
    }
}

/// Compares all but the detail, which may have offsets that change each time.
fn is_same_warning(one: &Error, other: &Error) -> bool {
    let (a, b) = (one.context(), other.context());
    one.kind() == other.kind()
        && a.api == b.api
        && a.partition == b.partition
        && a.topic == b.topic
        && a.peer == b.peer
}

/// Compares the causes. The time of the next attempt grows with each failure.
fn is_same_failure(one: &Error, other: &Error) -> bool {
    one.clone().without_next_attempt() == other.clone().without_next_attempt()
}

fn with_count(error: Error, suppressed: u32, elapsed: Duration) -> Error {
    let count = match suppressed {
        1 => format!("repeated once in {} s", elapsed.as_secs()),
        _ => format!("repeated {suppressed} times in {} s", elapsed.as_secs()),
    };
    let detail = match error.context().detail.as_str() {
        "" => count,
        detail => format!("{detail}; {count}"),
    };
    error.with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn warning(partition: i32, offset: i64) -> Error {
        Error::new(ErrorKind::BadResponse, format!("offset {offset}"))
            .with_partition("t", partition)
            .with_peer("a:9092/1")
    }

    #[test]
    fn repeated_warning_is_counted_and_reported_after_the_interval() {
        let mut repeats = Repeats::of_warnings();
        let start = Instant::ZERO;
        assert_eq!(repeats.admit(start, warning(0, 0)), Some(warning(0, 0)));
        for offset in 1..=41 {
            assert_eq!(repeats.admit(start + Duration::from_millis(100), warning(0, offset)), None);
        }
        let reported = repeats.admit(start + WARNING_INTERVAL, warning(0, 42)).unwrap();
        assert_eq!(reported.context().detail, "offset 42; repeated 41 times in 10 s");
        assert_eq!(repeats.admit(start + WARNING_INTERVAL, warning(0, 43)), None);
    }

    #[test]
    fn different_warnings_are_not_limited_by_each_other() {
        let mut repeats = Repeats::of_warnings();
        for error in [
            warning(0, 0),
            warning(1, 0),
            warning(0, 0).with_peer("b:9092/2"),
            warning(0, 0).with_api("Produce"),
            warning(0, 0).with_topic("u"),
            Error::new(ErrorKind::BadBatch, "").with_partition("t", 0).with_peer("a:9092/1"),
        ] {
            assert_eq!(repeats.admit(Instant::ZERO, error.clone()), Some(error));
        }
    }

    #[test]
    fn rare_warning_has_no_count() {
        let mut repeats = Repeats::of_warnings();
        for step in 0..3 {
            let now = Instant::ZERO + WARNING_INTERVAL * step;
            assert_eq!(repeats.admit(now, warning(0, 0)), Some(warning(0, 0)));
        }
    }

    #[test]
    fn failures_with_other_causes_are_reported_each() {
        let mut repeats = Repeats::of_failures();
        let refused = |next: u64| {
            let error = Error::new(ErrorKind::Connect, "refused").with_peer("a:9092/1");
            error.with_next_attempt(Duration::from_millis(next))
        };
        let unreachable = refused(100).with_detail("unreachable");
        assert_eq!(repeats.admit(Instant::ZERO, refused(100)), Some(refused(100)));
        assert_eq!(repeats.admit(Instant::ZERO, refused(200)), None, "only its next attempt is new");
        assert_eq!(repeats.admit(Instant::ZERO, unreachable.clone()), Some(unreachable));
        let reported = repeats.admit(Instant::ZERO + FAILURE_INTERVAL, refused(400)).unwrap();
        assert_eq!(reported.context().detail, "refused; repeated once in 30 s");
    }

    #[test]
    fn memory_of_warnings_is_bounded() {
        let mut repeats = Repeats::of_warnings();
        for partition in 0..1000 {
            assert!(repeats.admit(Instant::ZERO, warning(partition, 0)).is_some());
        }
        assert_eq!(repeats.recent.len(), LIMIT);
    }
}
