//! Panics that unit tests inject.

use crate::ffi::types::rd_kafka_t;

/// The points where a test can inject a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectionPoint {
    /// The application calls a produce function.
    Produce,
    /// A callback serves a queue entry.
    Serve,
    /// The background thread checks for events.
    Background,
}

/// Does nothing outside of unit tests.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn reach(_: InjectionPoint, _: *const rd_kafka_t) {}

#[cfg(test)]
pub(crate) static ARMED: crate::ffi::lock::Mutex<Vec<(InjectionPoint, usize)>> =
    crate::ffi::lock::Mutex::new(Vec::new());

/// Called when a client reaches this point; panics if a test has armed it.
#[cfg(test)]
pub(crate) fn reach(point: InjectionPoint, client: *const rd_kafka_t) {
    let mut armed = ARMED.lock();
    let is_it = |armed: &(InjectionPoint, usize)| *armed == (point, client.addr());
    if let Some(found) = armed.iter().position(is_it) {
        armed.remove(found);
        drop(armed);
        panic!("injected at {point:?}");
    }
}
