//! The deliveries of a producer: how many messages were delivered, how many failed and why.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// Returns "1 message", "2 messages".
pub fn messages(count: u64) -> String {
    format!("{count} message{}", if count == 1 { "" } else { "s" })
}

/// The results of deliveries.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// The number of messages that were delivered.
    pub delivered: AtomicU64,
    failures: Mutex<Option<(u64, String)>>,
}

impl Deliveries {
    /// Counts messages that failed.
    pub fn fail(&self, count: u64, error: &ottla::Error) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get_or_insert_with(|| (0, error.to_string())).0 += count;
    }

    /// Returns the number of messages that failed, with the first error.
    pub fn failed(&self) -> Option<String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, first) = failures.as_ref()?;
        let verb = if *count == 1 { "was" } else { "were" };
        Some(format!("{} {verb} not delivered; first error: {first}", messages(*count)))
    }
}
