//! Slots for programs that run at the same time: who waits for one gets it in the order of the steps.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// A number of slots.
#[derive(Debug)]
pub struct Slots {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The step and the ticket of each thread that waits.
    waiting: BTreeSet<(usize, u64)>,
    tickets: u64,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub struct Slot<'a>(&'a Slots);

impl Slots {
    pub fn new(count: usize) -> Self {
        let state = State { free: count.max(1), waiting: BTreeSet::new(), tickets: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits for a slot. Earlier steps come first, and in a step who came first.
    pub fn take(&self, step: usize) -> Slot<'_> {
        let mut state = self.lock();
        state.tickets += 1;
        let ticket = (step, state.tickets);
        state.waiting.insert(ticket);
        while state.free == 0 || state.waiting.first() != Some(&ticket) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&ticket);
        state.free -= 1;
        drop(state);
        // Another slot may be free for the next one.
        self.changed.notify_all();
        Slot(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn earlier_step_gets_the_next_slot() {
        let slots = Slots::new(1);
        let (order, taken) = mpsc::channel();
        thread::scope(|scope| {
            let first = slots.take(5);
            for (count, step) in [(1, 7), (2, 2)] {
                let (order, slots) = (order.clone(), &slots);
                scope.spawn(move || {
                    let _slot = slots.take(step);
                    order.send(step).unwrap();
                });
                while slots.lock().waiting.len() < count {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(taken.try_iter().collect::<Vec<_>>(), [2, 7]);
    }

    #[test]
    fn as_many_as_there_are_slots_have_one() {
        let slots = Slots::new(2);
        let (one, two) = (slots.take(0), slots.take(9));
        assert_eq!(slots.lock().free, 0);
        drop((one, two));
        assert_eq!(slots.lock().free, 2);
    }
}
