//! Which part of a log may be compacted, and whether it is time.

use std::time::Duration;

use super::Compaction;
use crate::log::PartitionLog;

/// The part of a log that may be compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    /// The end of the part: the base offset of the first segment that must stay as it is.
    pub end: i64,
    /// It is time to compact it.
    pub is_due: bool,
    /// The time after which a lag has passed, and the log has to be looked at again.
    pub next_check: Option<Duration>,
}

impl Choice {
    /// Looks at a log. Segments from the one with the last stable offset on stay as they are, and so does the active one.
    pub fn new(log: &PartitionLog, last_stable_offset: i64, compaction: Compaction, unix_ms: i64) -> Self {
        let first_dirty = log.first_dirty_offset();
        let (mut clean_bytes, mut dirty_bytes) = (0, 0);
        let mut choice = Self { end: first_dirty, is_due: false, next_check: None };
        if log.is_uncompactable() {
            return choice;
        }
        let newest_allowed = unix_ms.saturating_sub(compaction.min_lag_ms);
        let mut oldest_dirty = None;
        let mut waits = Vec::new();
        let closed = log.segments().closed().count();
        for (segment, end) in log.segments().with_ends(log.end_offset()).take(closed) {
            if end <= first_dirty {
                clean_bytes += segment.bytes;
                continue;
            }
            if end > last_stable_offset {
                break;
            }
            if compaction.min_lag_ms > 0 && segment.newest_ms() > newest_allowed {
                waits.push(segment.newest_ms().saturating_add(compaction.min_lag_ms));
                break;
            }
            dirty_bytes += segment.bytes;
            oldest_dirty = oldest_dirty.or(Some(segment.first_ms()));
            choice.end = end;
        }
        if dirty_bytes == 0 {
            choice.end = first_dirty;
        } else {
            let ratio = dirty_bytes as f64 / (clean_bytes + dirty_bytes) as f64;
            let oldest_allowed = unix_ms.saturating_sub(compaction.max_lag_ms);
            let is_late = oldest_dirty.is_some_and(|oldest| oldest < oldest_allowed);
            choice.is_due = ratio > compaction.min_dirty_ratio || is_late;
            if let Some(oldest) = oldest_dirty.filter(|_| compaction.max_lag_ms < i64::MAX) {
                waits.push(oldest.saturating_add(compaction.max_lag_ms).saturating_add(1));
            }
        }
        let next = waits.into_iter().filter(|at| *at > unix_ms).min();
        choice.next_check = next.and_then(|at| u64::try_from(at - unix_ms).ok()).map(Duration::from_millis);
        choice
    }
}
