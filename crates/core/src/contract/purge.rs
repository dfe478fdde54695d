//! The scope of a purge.

/// The messages that a purge removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// Records that wait in the queue.
    pub queue: bool,
    /// Records in flight. The broker may have written them.
    pub in_flight: bool,
}

impl Purge {
    /// Records that wait in the queue.
    pub const QUEUE: Self = Self { queue: true, in_flight: false };
    /// Records in flight.
    pub const IN_FLIGHT: Self = Self { queue: false, in_flight: true };
    /// All records.
    pub const ALL: Self = Self { queue: true, in_flight: true };
}
