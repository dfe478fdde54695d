//! The places where threads meet, tried in every order in which threads can pass through them: `cargo xtask threads`.
//!
//! Each test is a small program of two or three threads over the real code, which loom runs again and again, each time
//! with another order of its locks and atomics. A wake-up that gets lost leaves a thread asleep for ever, which loom
//! reports as a deadlock. Comments say which breaks of the code a model is there for, and `Caught` where it was seen to
//! fail on one.
//!
//! [`sending`]: the queue's room, the accumulators, closing. [`asking`]: commands, their answers, delivery futures.
//! [`receiving`]: the queue of fetched records.

mod asking;
mod receiving;
mod sending;

use std::{
    sync::Arc,
    task::{self, Context, Poll, Waker},
};

use loom::sync::{Condvar, Mutex};

use crate::wake::{Wake, WakeHandle};

/// Runs a model: every order with at most so many preemptions, as `LOOM_MAX_PREEMPTIONS` says, or two.
fn model(program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(program);
}

/// A thread's sleep: a wake-up before it counts.
#[derive(Default)]
struct Sleep {
    woken: Mutex<bool>,
    condition: Condvar,
}

impl Sleep {
    /// Somebody who can be woken.
    fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sleeps until somebody wakes it.
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

    /// Polls until it is ready, sleeping in between.
    fn wait<T>(self: &Arc<Self>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let waker = Waker::from(Arc::clone(self));
        loop {
            if let Poll::Ready(answer) = poll(&mut Context::from_waker(&waker)) {
                return answer;
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
