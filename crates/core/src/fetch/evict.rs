//! Drops queued records of paused partitions if the records of others could not be fetched otherwise.
//!
//! Records that were fetched before their partition was paused stay queued, so that a short pause costs nothing. They also count
//! towards the limits of the consumer's memory. An application that pauses partitions which fill them, and waits for the others,
//! would wait for ever. So a fetcher without room drops such records, if the application has nothing else to take; the partitions
//! fetch them again once they are resumed.
//!
//! ```text
//!  fetcher without room ──┐                        ┌─► room: the fetchers that wait for it are woken
//!                         ├─► nothing else queued? ┤
//!  application takes ─────┘                        └─► paused partitions restart at their first record
//! ```
//!
//! # Pitfalls
//!
//! - Either side may come last: the fetcher while the application already waits for records, or the application, which sets paused
//!   records aside, while the fetcher already waits for room. Both look
//!   (`waiting_fetcher_has_room_once_paused_records_are_set_aside`).
//! - Errors and other events of a paused partition are not fetched again. They stay
//!   (`events_of_a_paused_partition_outlive_its_records`).

use super::{
    deliver::ConsumerEvent,
    queue::{FetchQueue, Item, Wakes},
};
use crate::sync::atomic::Ordering;

impl FetchQueue {
    /// Makes room for fetchers that wait for it, if the application can take nothing. Returns true if it did.
    pub(super) fn evict_paused(&self) -> bool {
        let mut wakes = Wakes::default();
        {
            let mut state = self.state.lock();
            let state = &mut *state;
            if state.items.iter().any(Item::can_be_taken) {
                return false;
            }
            for queue in [&mut state.aside, &mut state.items] {
                for item in queue.iter() {
                    item.restart_if_paused();
                }
                for mut item in std::mem::take(queue) {
                    item.follow_restart();
                    if item.is_stale() {
                        self.drop_item(item, &mut wakes);
                    } else {
                        queue.push_back(item);
                    }
                }
            }
        }
        self.wake(wakes)
    }

    /// Like [`FetchQueue::evict_paused`], after the application took records: only if a fetcher waits for room.
    pub(super) fn evict_if_starved(&self) {
        if self.starved.load(Ordering::SeqCst) {
            self.evict_paused();
        }
    }
}

impl Item {
    /// Returns true for records that the application gets with its next call.
    fn can_be_taken(&self) -> bool {
        matches!(self, Self::Records(_)) && !self.is_paused() && !self.is_stale()
    }

    /// Lets a partition that the application paused fetch these records again, and what was fetched after them.
    fn restart_if_paused(&self) {
        if let Self::Records(records) = self
            && records.handle.is_paused_by_application()
            && records.is_current()
            && let Some(offset) = records.first_offset()
        {
            records.handle.restart_at(offset);
        }
    }

    /// Keeps an event that would not come again.
    fn follow_restart(&mut self) {
        if let Self::Note { handle, version, event } = self
            && !matches!(event, ConsumerEvent::EndOfPartition { .. })
            && version.is_same_assignment(handle.version())
            && handle.is_paused_by_application()
        {
            *version = handle.version();
        }
    }
}
