//! Prevents calls of the application's functions from outliving the client. I/O threads make these calls, and once
//! `rd_kafka_destroy()` has returned, the memory behind their opaque pointers may be freed.
//!
//! # Pitfalls
//!
//! - A socket callback may run on an I/O thread while the client is destroyed, and its opaque pointer is freed right
//!   after. Destroying waits for the call (`destroying_waits_for_calls_in_progress_and_refuses_further_ones`).

use std::{
    thread::{self, ThreadId},
    time::Instant,
};

use crate::ffi::lock::{Condvar, Mutex, assert_none_held};

/// Lets calls of application functions through until it is shut.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    left: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Calls are let through.
    #[default]
    Open,
    /// Only threads that are inside already may enter again.
    Shut,
    /// A call that was inside when the gate was shut did not return in time; no further call is let through.
    GivenUp,
}

#[derive(Debug, Default)]
struct GateState {
    phase: Phase,
    /// The threads that are inside, each with the name of its function. A thread is listed once per nested call.
    inside: Vec<(ThreadId, &'static str)>,
}

/// A pass: the thread is inside until it drops the pass.
pub(crate) struct Pass<'a>(&'a Gate);

impl Gate {
    /// Lets a call of the named function in. Returns `None` once the gate is shut; a thread that is inside already may
    /// still enter, unless the gate gave up waiting for it.
    pub(crate) fn enter(&self, function: &'static str) -> Option<Pass<'_>> {
        assert_none_held(function);
        let (me, mut state) = (thread::current().id(), self.state.lock());
        let is_refused = match state.phase {
            Phase::Open => false,
            Phase::Shut => state.inside.iter().all(|(thread, _)| *thread != me),
            Phase::GivenUp => true,
        };
        if is_refused {
            return None;
        }
        state.inside.push((me, function));
        Some(Pass(self))
    }

    /// Refuses further calls, and waits until those of other threads have returned. The error names a function that had
    /// not returned by then; its thread may not enter again.
    pub(crate) fn shut(&self, until: Instant) -> Result<(), &'static str> {
        let (me, mut state) = (thread::current().id(), self.state.lock());
        if state.phase == Phase::Open {
            state.phase = Phase::Shut;
        }
        loop {
            let Some((_, function)) = state.inside.iter().find(|(thread, _)| *thread != me).copied() else {
                return Ok(());
            };
            if Instant::now() >= until {
                state.phase = Phase::GivenUp;
                return Err(function);
            }
            self.left.wait_until(&mut state, until);
        }
    }

    /// Waits while another thread is inside, at most until the deadline. The gate remains open.
    pub(crate) fn is_occupied_by_others(&self, until: Instant) -> bool {
        let (me, mut state) = (thread::current().id(), self.state.lock());
        while state.inside.iter().any(|(thread, _)| *thread != me) {
            if Instant::now() >= until {
                return true;
            }
            self.left.wait_until(&mut state, until);
        }
        false
    }

    /// Returns true until the gate is shut.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().phase == Phase::Open
    }

    /// Returns true if the client ended without waiting for the calls inside.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state.lock().phase == Phase::GivenUp
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let (me, mut state) = (thread::current().id(), self.0.state.lock());
        if let Some(at) = state.inside.iter().rposition(|(thread, _)| *thread == me) {
            state.inside.remove(at);
        }
        drop(state);
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, time::Duration};

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn destroying_waits_for_calls_in_progress_and_refuses_further_ones() {
        let (gate, inside, go) = (Gate::default(), Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let pass = gate.enter("outer");
                assert!(pass.is_some());
                inside.wait();
                go.wait();
                // An application function may run inside another one of the same thread.
                assert!(gate.enter("inner").is_some());
            });
            inside.wait();
            let shutting = scope.spawn(|| gate.shut(soon()));
            while gate.state.lock().phase == Phase::Open {
                thread::yield_now();
            }
            assert!(!shutting.is_finished());
            assert!(gate.enter("other").is_none());
            go.wait();
            assert_eq!(shutting.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn call_that_does_not_return_is_named_and_refused_later() {
        let (gate, inside, go) = (Gate::default(), Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            let stuck = scope.spawn(|| {
                let _pass = gate.enter("stuck_cb");
                inside.wait();
                go.wait();
                (gate.is_given_up(), gate.enter("stuck_cb").is_some())
            });
            inside.wait();
            assert_eq!(gate.shut(Instant::now() + Duration::from_millis(20)), Err("stuck_cb"));
            go.wait();
            assert_eq!(stuck.join().unwrap(), (true, false));
        });
    }

    #[test]
    fn short_call_of_another_thread_does_not_count_as_stuck() {
        let (gate, inside, go) = (Gate::default(), Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _pass = gate.enter("log_cb");
                inside.wait();
                go.wait();
            });
            inside.wait();
            assert!(gate.is_occupied_by_others(Instant::now()));
            let waiting = scope.spawn(|| gate.is_occupied_by_others(soon()));
            go.wait();
            assert!(!waiting.join().unwrap());
        });
        assert!(gate.enter("log_cb").is_some());
    }

    #[test]
    fn call_that_destroys_its_own_client_does_not_wait_for_itself() {
        let gate = Gate::default();
        let _pass = gate.enter("outer");
        assert_eq!(gate.shut(soon()), Ok(()));
        assert!(gate.enter("inner").is_some());
    }
}
