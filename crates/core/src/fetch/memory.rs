//! What a consumer with a ceiling counts besides its queue; [`ceiling`](super::ceiling) says how it is used.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// The limit, and what is reserved of it.
#[derive(Debug)]
pub(super) struct Ceiling {
    pub(super) max: usize,
    /// What a Fetch needs at least: more than one byte once a response was larger than what was reserved.
    pub(super) least: AtomicUsize,
    /// What is reserved for Fetches in flight; part of the queue's bytes.
    pub(super) reserved: AtomicUsize,
    /// What the last fetcher without room asked for.
    pub(super) wanted: AtomicUsize,
}

impl Ceiling {
    /// Creates a ceiling of this many bytes.
    pub(super) fn new(max: usize) -> Self {
        Self { max, least: AtomicUsize::new(1), reserved: AtomicUsize::new(0), wanted: AtomicUsize::new(0) }
    }

    /// Returns what is reserved for Fetches in flight.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::SeqCst)
    }

    /// Returns true if fetchers without room ask again while this much is used.
    pub(super) fn has_room_again(&self, used: usize) -> bool {
        used == 0 || used + self.wanted.load(Ordering::SeqCst) <= self.max
    }
}
