//! Calls of the application's functions on I/O threads.

use std::sync::Arc;

use ottla_core::{
    callback::guarded,
    event::{Event, EventQueue},
};

/// Calls functions of the application, and reports their panics as events: the client goes on.
#[derive(Clone, Debug)]
pub(crate) struct Guard(pub(crate) Arc<EventQueue>);

impl Guard {
    /// Calls a function.
    pub(crate) fn call(&self, function: &str, call: impl FnOnce()) {
        if let Err(panicked) = guarded(function, call) {
            self.0.push(Event::Error(panicked));
        }
    }
}
