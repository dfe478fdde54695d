//! The eventfd of an I/O thread in loom models.

use loom::sync::{Condvar, Mutex};
use ottla_core::wake::Wake;

/// It stays readable until the next wait. Of several threads that wait, one sees a change.
#[derive(Default)]
pub struct Eventfd {
    readable: Mutex<bool>,
    condition: Condvar,
}

impl Wake for Eventfd {
    fn wake(&self) {
        *self.readable.lock().unwrap() = true;
        self.condition.notify_one();
    }
}

impl Eventfd {
    /// Returns whether it was readable.
    pub fn wait(&self, may_block: bool) -> bool {
        let mut readable = self.readable.lock().unwrap();
        while may_block && !*readable {
            readable = self.condition.wait(readable).unwrap();
        }
        std::mem::take(&mut *readable)
    }
}

/// Runs a program in the orders with few preemptions.
pub fn model(program: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(program);
}
