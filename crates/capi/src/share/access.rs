//! One thread at a time uses a share consumer. Calls from a second one fail instead of waiting.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::ffi::{
    codes::{RespErr, code},
    error::ErrorObject,
};

/// The thread that uses a share consumer.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// The thread's number; 0 without one.
    thread: AtomicUsize,
    /// How many calls of the thread are in each other: callbacks may call functions.
    depth: AtomicUsize,
    /// The thread is in the acknowledgement callback.
    is_in_callback: AtomicBool,
}

/// The reason that a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The handle is NULL, of another kind, or destroyed.
    NoHandle,
    /// Another thread uses the consumer.
    OtherThread { this: usize, other: usize },
    /// The acknowledgement callback makes the call.
    InCallback,
    /// The consumer is closed, or is being closed.
    Closed,
    /// The configuration has no `group.id`.
    NoGroup,
}

/// Lets a call succeed without an effect on a consumer that has no group, and so nothing to acknowledge.
pub(super) fn unless_no_group<T: Default>(result: Result<T, Refusal>) -> Result<T, Refusal> {
    match result {
        Err(Refusal::NoGroup) => Ok(T::default()),
        other => other,
    }
}

/// The consumer is the calling thread's as long as it has this.
pub(super) struct Turn<'a>(&'a Access);

/// The number of the calling thread, unique among those that run.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

impl Access {
    /// Begins a call.
    pub(super) fn enter(&self) -> Result<Turn<'_>, Refusal> {
        let this = this_thread();
        match self.thread.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {}
            Err(other) if other != this => return Err(Refusal::OtherThread { this, other }),
            Err(_) if self.is_in_callback.load(Ordering::Relaxed) => return Err(Refusal::InCallback),
            Err(_) => {}
        }
        self.depth.fetch_add(1, Ordering::Relaxed);
        Ok(Turn(self))
    }

    /// Runs the acknowledgement callback, whose calls are refused.
    pub(super) fn in_callback(&self, call: impl FnOnce()) {
        // Another thread may run it, which serves the queue of a consumer that is being closed.
        let turn = self.enter();
        let was_in_callback = self.is_in_callback.swap(true, Ordering::Relaxed);
        call();
        self.is_in_callback.store(was_in_callback, Ordering::Relaxed);
        drop(turn);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.0.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.thread.store(0, Ordering::Release);
        }
    }
}

impl Refusal {
    pub(super) const fn code(self) -> RespErr {
        match self {
            Self::OtherThread { .. } => code::_CONFLICT,
            Self::NoHandle | Self::InCallback | Self::Closed => code::_STATE,
            Self::NoGroup => code::_UNKNOWN_GROUP,
        }
    }

    pub(super) fn error(self) -> ErrorObject {
        let text = match self {
            Self::NoHandle => "Share consumer handle is NULL or destroyed".to_owned(),
            Self::OtherThread { this, other } => format!(
                "Share consumer is not safe for multi-threaded access: this is thread {this}, and thread {other} is in a call"
            ),
            Self::InCallback => {
                "Share consumer methods can't be called from the acknowledgement commit callback".to_owned()
            }
            Self::Closed => "Share consumer is closed".to_owned(),
            Self::NoGroup => "Share consumer has no group; set `group.id`".to_owned(),
        };
        ErrorObject::new(self.code(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_thread_and_the_callback_are_refused() {
        let access = Access::default();
        let turn = access.enter().map_err(Refusal::code);
        assert!(turn.is_ok() && access.enter().is_ok(), "calls may be in each other");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| access.enter().map(drop).map_err(Refusal::code));
            assert_eq!(other.join().unwrap(), Err(code::_CONFLICT));
        });
        access.in_callback(|| assert_eq!(access.enter().map(drop), Err(Refusal::InCallback)));
        drop(turn);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| access.enter().map(drop).map_err(Refusal::code));
            assert_eq!(other.join().unwrap(), Ok(()));
        });
    }
}
