//! loom models of the state that threads share, run in every interleaving: `cargo xtask threads`.
//!
//! Each test is a small program of two or three threads over the production code. loom runs it repeatedly, each time
//! with another order of its lock and atomic operations. A lost wake-up leaves a thread asleep, which loom reports as a
//! deadlock. The patches in `crates/sim/mutants/loom` are deliberate mistakes that the models must detect (`cargo xtask
//! mutants --only loom`). `Detects` in a comment names such a mistake; `Caught` names a real bug that the model found.
//!
//! [`sending`]: the queue's capacity, the accumulators, closing. [`asking`]: commands and their results, delivery
//! futures. [`receiving`]: the queue of fetched records.

mod asking;
mod receiving;
mod sending;

use std::{
    sync::Arc,
    task::{self, Context, Poll, Waker},
};

use loom::sync::{Condvar, Mutex};

use crate::wake::{Wake, WakeHandle};

/// Runs a model in every order with at most `LOOM_MAX_PREEMPTIONS` preemptions; the default is two.
fn model(program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(program);
}

/// Puts a thread to sleep. A wake-up before the sleep is not lost.
#[derive(Default)]
struct Sleep {
    woken: Mutex<bool>,
    condition: Condvar,
}

impl Sleep {
    /// Creates a sleep without a pending wake-up.
    fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sleeps until a waker is called.
    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.condition.wait(woken).unwrap();
        }
        *woken = false;
    }

    fn wake_up(&self) {
        *self.woken.lock().unwrap() = true;
        self.condition.notify_one();
    }

    fn handle(self: &Arc<Self>) -> WakeHandle {
        WakeHandle::new(Arc::clone(self) as Arc<dyn Wake>)
    }

    /// Polls until the result is ready and sleeps between the polls.
    fn wait<T>(self: &Arc<Self>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let waker = Waker::from(Arc::clone(self));
        loop {
            if let Poll::Ready(response) = poll(&mut Context::from_waker(&waker)) {
                return response;
            }
            self.sleep();
        }
    }
}

impl Wake for Sleep {
    fn wake(&self) {
        self.wake_up();
    }
}

impl task::Wake for Sleep {
    fn wake(self: Arc<Self>) {
        self.wake_up();
    }
}
