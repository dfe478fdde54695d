//! The ceiling of a consumer's memory (`client.memory.max.bytes`): a Fetch is sent only if there is room for its response and
//! for what that decompresses to.
//!
//! ```text
//!  reserve ──► Fetch ──► response ──► decompress, at most the rest ──► settle: the records' own size stays charged
//! ```
//!
//! Everything is counted in the queue's bytes. What is reserved becomes the size of the queued records in one step, so that no
//! other broker actor asks for the difference meanwhile. Of the compressed batches of a response those are decompressed that fit;
//! the others are fetched again.
//!
//! # Pitfalls
//!
//! - All Fetches in flight together reserve at most half of the ceiling. If long polls of idle partitions took more, consuming all
//!   records would not make the room with which a fetcher is woken (`idle_long_polls_leave_room_for_the_others`).
//! - A broker returns a batch that is larger than what was asked for. The next Fetches reserve as much, or a batch above the ceiling
//!   would come from each broker at once (`batch_above_the_ceiling_comes_alone`).
//! - A fetcher whose response makes room for others would take it again before they are awake. It waits a moment
//!   (`long_poll_lets_a_waiting_fetcher_go_first`).

use super::queue::{FetchQueue, Item};
use crate::{sync::atomic::Ordering, wake::WakeHandle};

impl FetchQueue {
    /// Reserves room for a Fetch that would use at most this many bytes, of this many fetchers. Returns `None` if less is free;
    /// the fetcher is woken when records leave the queue. Call it only with a ceiling.
    pub(super) fn reserve(&self, wanted: usize, fetchers: usize, fetcher: &WakeHandle) -> Option<usize> {
        let ceiling = self.ceiling.as_ref()?;
        let share = ceiling.max / 2 / fetchers.max(1);
        let bytes = wanted.min(share).max(ceiling.least.load(Ordering::SeqCst));
        let mut is_registered = false;
        loop {
            // Adding 0, unlike loading, is ordered before the next removal of records, which sees that a fetcher waits.
            let used = self.queued_bytes.fetch_add(0, Ordering::SeqCst);
            if used > 0 && used + bytes > ceiling.max {
                if std::mem::replace(&mut is_registered, true) && !self.evict_paused() {
                    return None;
                }
                ceiling.wanted.store(bytes, Ordering::SeqCst);
                self.wait_for_room(fetcher);
                continue;
            }
            let (order, changed) = (Ordering::SeqCst, used + bytes);
            if self.queued_bytes.compare_exchange(used, changed, order, order).is_ok() {
                ceiling.reserved.fetch_add(bytes, Ordering::SeqCst);
                return Some(bytes);
            }
        }
    }

    /// Charges what a response took beyond what was reserved for it, with which the next ones are asked for. Returns the memory
    /// that is reserved then.
    pub(super) fn extend_reserved(&self, reserved: usize, taken: usize) -> usize {
        let Some(ceiling) = self.ceiling.as_ref().filter(|_| taken > reserved) else { return reserved };
        ceiling.least.fetch_max(taken, Ordering::SeqCst);
        ceiling.reserved.fetch_add(taken - reserved, Ordering::SeqCst);
        self.queued_bytes.fetch_add(taken - reserved, Ordering::SeqCst);
        taken
    }

    /// Appends the items of a response, whose records are charged instead of what was reserved. Returns true if other fetchers were
    /// woken that wait for room.
    pub(super) fn settle(&self, items: Vec<Item>, reserved: usize) -> bool {
        if let Some(ceiling) = &self.ceiling {
            ceiling.reserved.fetch_sub(reserved, Ordering::SeqCst);
        }
        (reserved > 0 || !items.is_empty()) && self.push_reserved(items, reserved)
    }

    /// Returns the memory that counts towards the ceiling, in bytes.
    pub fn memory(&self) -> usize {
        self.queued_bytes.load(Ordering::SeqCst)
    }
}
