//! Panics that unit tests inject.

use crate::ffi::types::rd_kafka_t;

/// Where a test can make the library panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectionPoint {
    /// A call of the application's that produces.
    Produce,
    /// An entry is served by its callback.
    Serve,
    /// The background thread looks for an event.
    Background,
}

/// A client has come to this point.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn reach(_: InjectionPoint, _: *const rd_kafka_t) {}

#[cfg(test)]
pub(crate) static ARMED: crate::ffi::lock::Mutex<Vec<(InjectionPoint, usize)>> =
    crate::ffi::lock::Mutex::new(Vec::new());

/// A client has come to this point, and panics if a test wants it to.
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
