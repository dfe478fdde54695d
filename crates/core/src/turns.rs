//! For tests: a machine that acts again and again while no time passes fails its test, which would run for ever otherwise.

use crate::machine::Instant;

/// Counts how often a machine acts at one moment.
#[derive(Debug, Default)]
pub struct Turns {
    moment: Option<Instant>,
    count: u32,
}

impl Turns {
    /// # Panics
    ///
    /// The machine acts for the `limit`th time at this moment.
    #[track_caller]
    pub fn take(&mut self, now: Instant, limit: u32) {
        self.count = if self.moment == Some(now) { self.count + 1 } else { 0 };
        self.moment = Some(now);
        assert!(self.count < limit, "it wants to run again and again without time passing");
    }
}
