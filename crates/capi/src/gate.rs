//! Keeps calls of the application's functions from outliving the client. I/O threads call them, and once
//! `rd_kafka_destroy()` has returned, the memory behind their opaque pointers may be gone.

use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex};

/// Lets calls to the application through until it is shut.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_shut: bool,
    /// Threads that are inside; one may be twice.
    inside: Vec<ThreadId>,
}

/// A thread is inside as long as it has this.
pub(crate) struct Pass<'a>(&'a Gate);

impl Gate {
    /// `None` once it is shut; a thread that is inside already is let in nevertheless.
    pub(crate) fn enter(&self) -> Option<Pass<'_>> {
        let (me, mut state) = (thread::current().id(), self.state.lock());
        if state.is_shut && !state.inside.contains(&me) {
            return None;
        }
        state.inside.push(me);
        Some(Pass(self))
    }

    /// Lets nobody in any more, and waits until all others have left.
    pub(crate) fn shut(&self) {
        let (me, mut state) = (thread::current().id(), self.state.lock());
        state.is_shut = true;
        while state.inside.iter().any(|thread| *thread != me) {
            self.left.wait(&mut state);
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let (me, mut state) = (thread::current().id(), self.0.state.lock());
        if let Some(at) = state.inside.iter().rposition(|thread| *thread == me) {
            state.inside.remove(at);
        }
        drop(state);
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn destroying_waits_for_a_call_under_way_and_lets_no_further_one_through() {
        let (gate, inside, go) = (Gate::default(), Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let pass = gate.enter();
                assert!(pass.is_some());
                inside.wait();
                go.wait();
                // A function may be called from within another one of the same thread.
                assert!(gate.enter().is_some());
            });
            inside.wait();
            let shutting = scope.spawn(|| gate.shut());
            while !gate.state.lock().is_shut {
                thread::yield_now();
            }
            assert!(!shutting.is_finished());
            assert!(gate.enter().is_none());
            go.wait();
        });
    }

    #[test]
    fn a_call_that_destroys_its_own_client_does_not_wait_for_itself() {
        let gate = Gate::default();
        let _pass = gate.enter();
        gate.shut();
        assert!(gate.enter().is_some());
    }
}
