//! The size of a Fetch, and the time at which the next one is sent.

use std::time::Duration;

use super::Fetcher;
use crate::machine::Instant;

/// The minimum target size of a response, in bytes: this amount stays in a core's cache until it is checked and read.
pub(super) const RESPONSE_BYTES: usize = 1 << 20;
/// A full response that takes longer is too small for the latency of the connection.
const SLOW_RESPONSE: Duration = Duration::from_millis(20);
/// A full response that takes no longer may be smaller.
const QUICK_RESPONSE: Duration = Duration::from_millis(5);
/// The number of early responses without news, less those that took the whole wait time, after which the fetcher backs
/// off.
const EARLY_RESPONSES: u32 = 10;
/// The minimum back-off after early responses, also if `fetch.error.backoff.ms` is 0.
const SHORTEST_BACKOFF: Duration = Duration::from_millis(10);

impl Fetcher {
    /// Adapts the target size of responses to their latency. A slow full response makes the next ones larger: only one
    /// Fetch is in flight at a time, so its latency bounds the throughput. Quick responses stay small.
    pub(super) fn adapt(&mut self, bytes: usize, took: Duration) {
        if bytes < self.response_bytes / 4 * 3 {
            return;
        }
        if took > SLOW_RESPONSE {
            let most = usize::try_from(self.shared.settings.fetch_max_bytes).unwrap_or(0).max(RESPONSE_BYTES);
            self.response_bytes = (self.response_bytes * 2).min(most);
        } else if took < QUICK_RESPONSE {
            self.response_bytes = (self.response_bytes / 2).max(RESPONSE_BYTES);
        }
    }

    /// Backs off from a broker that does not wait for records: its Fetch responses come well before `fetch.wait.max.ms`
    /// and move no position. A broker that does wait responds early only if it has something to return. Without a fetch
    /// session a response names every partition, so its length does not show whether it has news.
    ///
    /// A response may also take long because of the connection. Therefore only one that takes nearly the whole wait time
    /// counts as a wait, and each of these makes up for one early response
    /// (`slow_connection_does_not_look_like_a_broker_that_waits`).
    pub(super) fn pace(&mut self, now: Instant, has_news: bool, took: Duration) {
        let wait = self.shared.settings.fetch_wait_max;
        if has_news {
            self.early_responses = 0;
            return;
        }
        if took >= wait / 10 * 9 {
            self.early_responses = self.early_responses.saturating_sub(1);
            return;
        }
        self.early_responses = (self.early_responses + 1).min(EARLY_RESPONSES + 1);
        if self.early_responses > EARLY_RESPONSES {
            let backoff = self.shared.settings.fetch_error_backoff.max(SHORTEST_BACKOFF);
            self.back_off(now + wait.min(backoff));
        }
    }

    /// Delays the next Fetch because the queue is full (`fetch.queue.backoff.ms`). Without the property it is sent as soon as
    /// there is room.
    pub(super) fn delay_while_full(&mut self, now: Instant) {
        if let Some(delay) = self.shared.settings.queue_backoff {
            self.back_off(now + delay);
        }
    }

    pub(super) fn back_off(&mut self, until: Instant) {
        self.backoff_until = Some(self.backoff_until.map_or(until, |known| known.max(until)));
    }
}
