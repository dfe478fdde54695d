//! When the requests of a connection may have been made: the first ones may have waited while it was established.

use ottla_core::machine::Instant;
use ottla_sorted::SortedMap;

/// The connections of a client that carry requests of its group.
#[derive(Debug, Default)]
pub(super) struct Openings {
    /// The times at which connections were opened that have not carried a request of the group yet.
    unused: SortedMap<u64, Instant>,
    /// The connection that carried its first requests last, when it was opened, and when it carried them.
    begun: Option<(u64, Instant, Instant)>,
}

impl Openings {
    pub(super) fn open(&mut self, now: Instant, link: u64) {
        self.unused.insert(link, now);
    }

    pub(super) fn close(&mut self, link: u64) {
        self.unused.remove(&link);
    }

    /// Returns the earliest time at which a request may have been made that is sent now.
    pub(super) fn made(&mut self, now: Instant, link: u64) -> Instant {
        if let Some(opened) = self.unused.remove(&link) {
            self.begun = Some((link, opened, now));
        }
        match self.begun {
            Some((begun, opened, carried)) if begun == link && carried == now => opened,
            _ => now,
        }
    }
}
