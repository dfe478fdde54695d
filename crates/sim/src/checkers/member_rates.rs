//! Counts how often a member sends requests: JoinGroup, heartbeats, FindCoordinator and Metadata.

use std::{collections::VecDeque, time::Duration};

use ottla_core::machine::Instant;
use ottla_protocol::api::ApiKey;

use super::group_messages::GroupRequest;

/// The window in which requests are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// JoinGroup requests in a window that may fail: the back-off between them grows.
const FAILED: usize = 20;
/// FindCoordinator requests in a window: the back-off between them grows from 100 ms to a second, and begins again with each
/// coordinator that responds before it moves on.
const LOOKUPS: usize = 40;
/// Metadata requests in a window. A member without a known leader and its coordinator may each begin a rebalance when topics change,
/// once a second, and metadata follow each of them.
const METADATA: usize = 30;

/// The requests of a member in the last ten seconds.
#[derive(Debug, Default)]
pub(super) struct MemberRates {
    joins: VecDeque<Instant>,
    heartbeats: VecDeque<Instant>,
    lookups: VecDeque<Instant>,
    metadata: VecDeque<Instant>,
    /// New generations, and new epochs or targets.
    changes: VecDeque<Instant>,
}

impl MemberRates {
    /// Counts a request of a member. Error: there are too many.
    pub(super) fn note(
        &mut self,
        now: Instant,
        request: &GroupRequest,
        interval: Duration,
    ) -> Result<(), String> {
        let changes = count(&mut self.changes, now, false);
        let (times, most) = match request {
            GroupRequest::Join(_) => (&mut self.joins, 2 * changes + FAILED),
            GroupRequest::Heartbeat(_) | GroupRequest::ConsumerHeartbeat(_) => {
                let beats = 2 * (WINDOW.as_millis() / interval.as_millis()) as usize;
                (&mut self.heartbeats, beats + 3 * changes)
            }
            _ => return Ok(()),
        };
        within(count(times, now, true), most, "of this kind")
    }

    /// Counts a request for the location of the coordinator or for metadata. Error: there are too many.
    pub(super) fn note_query(&mut self, now: Instant, api: ApiKey) -> Result<(), String> {
        let (times, most) = match api {
            ApiKey::FindCoordinator => (&mut self.lookups, LOOKUPS),
            ApiKey::Metadata => (&mut self.metadata, METADATA),
            _ => return Ok(()),
        };
        within(count(times, now, true), most, api.name())
    }

    /// Counts a new generation, epoch or target.
    pub(super) fn note_change(&mut self, now: Instant) {
        self.changes.push_back(now);
    }
}

/// Forgets times before the window, adds this one if it `is_new`, and returns their number.
fn count(times: &mut VecDeque<Instant>, now: Instant, is_new: bool) -> usize {
    while times.front().is_some_and(|at| *at + WINDOW < now) {
        times.pop_front();
    }
    times.extend(is_new.then_some(now));
    times.len()
}

fn within(count: usize, most: usize, kind: &str) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("{count} requests {kind} in {WINDOW:?}, where {most} are enough"))
}
