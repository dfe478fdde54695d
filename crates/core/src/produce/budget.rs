//! The queue's limits: how many messages and how many bytes wait for their delivery report.
//!
//! Both counts live in one atomic word, so charging a message costs one instruction on a shared cache line and is exact.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    task::Waker,
};

use parking_lot::Mutex;

/// Counts messages and bytes from `send` to the delivery report.
#[derive(Debug)]
pub struct Budget {
    /// Messages in the upper 24 bits, bytes in the lower 40.
    used: AtomicU64,
    max_messages: u64,
    max_bytes: u64,
    has_waiters: AtomicBool,
    waiters: Mutex<Vec<Waker>>,
}

const BYTES_BITS: u32 = 40;
const BYTES_MASK: u64 = (1 << BYTES_BITS) - 1;
const ONE_MESSAGE: u64 = 1 << BYTES_BITS;
const MOST_MESSAGES: u64 = (1 << 23) * 2 - 4096;
const MOST_BYTES: u64 = BYTES_MASK - (1 << 36);

impl Budget {
    /// A budget; 0 messages means no limit of its own (16 million).
    pub fn new(max_messages: u64, max_bytes: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            max_messages: if max_messages == 0 { MOST_MESSAGES } else { max_messages.min(MOST_MESSAGES) },
            max_bytes: max_bytes.min(MOST_BYTES),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::new(Vec::new()),
        }
    }

    /// Charges one message, or answers false and charges nothing. A message larger than the whole byte limit is let in
    /// when the queue is empty, so that it can't wait for ever.
    #[inline]
    pub fn try_charge(&self, bytes: usize) -> bool {
        let add = ONE_MESSAGE + bytes as u64;
        let before = self.used.fetch_add(add, Ordering::Relaxed);
        let (messages, used_bytes) = (before >> BYTES_BITS, before & BYTES_MASK);
        if messages < self.max_messages && (used_bytes + bytes as u64 <= self.max_bytes || messages == 0) {
            return true;
        }
        self.used.fetch_sub(add, Ordering::Relaxed);
        false
    }

    /// Gives back what was charged and wakes who waits for room or for the end.
    pub fn release(&self, messages: usize, bytes: u64) {
        if messages == 0 {
            return;
        }
        self.used.fetch_sub(((messages as u64) << BYTES_BITS) + bytes, Ordering::SeqCst);
        if self.has_waiters.load(Ordering::SeqCst) {
            let waiters = {
                let mut waiters = self.waiters.lock();
                self.has_waiters.store(false, Ordering::SeqCst);
                std::mem::take(&mut *waiters)
            };
            waiters.into_iter().for_each(Waker::wake);
        }
    }

    /// Asks to be woken by the next [`Budget::release`]. Look again after this call before sleeping.
    pub fn register(&self, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        if !waiters.iter().any(|known| known.will_wake(waker)) {
            waiters.push(waker.clone());
        }
        self.has_waiters.store(true, Ordering::SeqCst);
        // Orders this registration before the caller's next look at the counts.
        self.used.fetch_add(0, Ordering::SeqCst);
    }

    /// Messages that wait for their report.
    pub fn messages(&self) -> usize {
        (self.used.load(Ordering::SeqCst) >> BYTES_BITS) as usize
    }

    /// Bytes that wait for their report.
    pub fn bytes(&self) -> u64 {
        self.used.load(Ordering::SeqCst) & BYTES_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_are_exact_and_a_refused_message_costs_nothing() {
        let budget = Budget::new(3, 100);
        assert!(budget.try_charge(60));
        assert!(!budget.try_charge(41));
        assert!(budget.try_charge(40));
        assert!(budget.try_charge(0));
        assert!(!budget.try_charge(0), "three messages are the limit");
        assert_eq!((budget.messages(), budget.bytes()), (3, 100));
        budget.release(3, 100);
        assert_eq!((budget.messages(), budget.bytes()), (0, 0));
    }

    #[test]
    fn a_message_above_the_byte_limit_is_let_into_an_empty_queue() {
        let budget = Budget::new(10, 100);
        assert!(budget.try_charge(500));
        assert!(!budget.try_charge(1));
    }

    #[test]
    fn a_release_wakes_who_registered() {
        use std::{sync::Arc, task::Wake};
        #[derive(Default)]
        struct Flag(AtomicBool);
        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let budget = Budget::new(1, 100);
        let flag = Arc::new(Flag::default());
        assert!(budget.try_charge(1));
        budget.register(&Waker::from(Arc::clone(&flag)));
        budget.release(1, 1);
        assert!(flag.0.load(Ordering::SeqCst));
    }
}
