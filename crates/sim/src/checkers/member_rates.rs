//! Counts how often a member sends JoinGroup and heartbeats.

use std::{collections::VecDeque, time::Duration};

use ottla_core::machine::Instant;

use super::group_messages::GroupRequest;

/// The window in which requests are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// JoinGroup requests in a window that may fail: the back-off between them grows.
const FAILED: usize = 20;

/// The requests of a member in the last ten seconds.
#[derive(Debug, Default)]
pub(super) struct MemberRates {
    joins: VecDeque<Instant>,
    heartbeats: VecDeque<Instant>,
    /// New generations, and new epochs or targets.
    changes: VecDeque<Instant>,
}

impl MemberRates {
    /// Counts a request. Error: there are too many.
    pub(super) fn note(
        &mut self,
        now: Instant,
        request: &GroupRequest,
        interval: Duration,
    ) -> Result<(), String> {
        let is_join = matches!(request, GroupRequest::Join(_));
        match request {
            GroupRequest::Join(_) => self.joins.push_back(now),
            GroupRequest::Heartbeat(_) | GroupRequest::ConsumerHeartbeat(_) => self.heartbeats.push_back(now),
            _ => return Ok(()),
        }
        for times in [&mut self.joins, &mut self.heartbeats, &mut self.changes] {
            while times.front().is_some_and(|at| *at + WINDOW < now) {
                times.pop_front();
            }
        }
        let changes = self.changes.len();
        let beats = 2 * (WINDOW.as_millis() / interval.as_millis()) as usize;
        let (count, most) = match is_join {
            true => (self.joins.len(), 2 * changes + FAILED),
            false => (self.heartbeats.len(), beats + 3 * changes),
        };
        if count > most {
            return Err(format!("{count} requests of this kind in {WINDOW:?}, where {most} are enough"));
        }
        Ok(())
    }

    /// Counts a new generation, epoch or target.
    pub(super) fn note_change(&mut self, now: Instant) {
        self.changes.push_back(now);
    }
}
