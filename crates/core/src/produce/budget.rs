//! The queue's limits: the number of messages and bytes without a delivery report.
//!
//! Both counts share one atomic word, so charging a message changes one shared cache line and is exact. Even that is
//! expensive for a message of 100 bytes, so while the queue is far from full, a partition with an open batch leases
//! room for many messages at once. The unused part is returned when the batch is taken, or when the queue is full.
//! Queued messages are the charged ones without the leases.
//!
//! With a ceiling of the client's memory (`client.memory.max.bytes`) the same word also bounds the memory of the batches, which is
//! estimated from both counts: the encoded records, what is kept per message, unused parts of chunks, and the compressed form
//! of the batches while there is a topic with compression. Appending a message costs nothing more for it.
//!
//! # Pitfalls
//!
//! - A message above the queue's byte limit is accepted by an empty queue; otherwise it could never be sent
//!   (`a_message_above_the_byte_limit_is_let_into_an_empty_queue`).
//! - A partition leases room for many messages, so the queue's charge exceeds what is queued. A full queue takes leases
//!   back before it refuses a message (`lease_is_taken_while_room_is_ample_and_returns_unused_room`).
//! - A rejected reservation must not charge its room even temporarily: a sender that checks at that time sleeps, and no
//!   wake-up follows (`a_refused_attempt_hides_no_room_from_a_blocked_sender`).

use std::{sync::Arc, task::Waker};

use ottla_protocol::batch::{ChunkPool, SMALL_CHUNK_BYTES};

use crate::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    waiters::{WaitPlace, Waiter, Waiters},
};

/// Room that is charged and not used yet. It belongs to the partition with the open batch.
#[derive(Debug, Default)]
pub struct Lease {
    /// True if [`Budget`] counts this lease.
    is_out: bool,
    messages: u64,
    bytes: u64,
}

/// The queue has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// Counts messages and bytes from `send` to the delivery report.
#[derive(Debug)]
pub struct Budget {
    /// Messages in the upper 24 bits, bytes in the lower 40.
    used: AtomicU64,
    max_messages: u64,
    max_bytes: u64,
    /// The most memory that the queue may take, in bytes; [`u64::MAX`] without a ceiling.
    max_memory: u64,
    /// True if batches of some topic are compressed, so that both forms are in memory for a while.
    compresses: AtomicBool,
    /// The number of active leases.
    leases: AtomicUsize,
    has_waiters: AtomicBool,
    waiters: Mutex<Waiters>,
}

const BYTES_BITS: u32 = 40;
const BYTES_MASK: u64 = (1 << BYTES_BITS) - 1;
const ONE_MESSAGE: u64 = 1 << BYTES_BITS;
const MOST_MESSAGES: u64 = (1 << 23) * 2 - 4096;
const MOST_BYTES: u64 = BYTES_MASK - (1 << 36);
/// The fewest and the most messages that a lease has room for.
const LEASED_MESSAGES: (u64, u64) = (16, 128);
/// The memory that a message takes besides its payload, in bytes: the lengths and deltas in the batch, and what its report needs.
const MESSAGE_MEMORY: u64 = 64;

impl Lease {
    /// Returns the number of messages that the lease still has room for.
    pub const fn messages(&self) -> usize {
        self.messages as usize
    }

    /// Returns the bytes that the lease still has room for.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Budget {
    /// Creates a budget; 0 messages means the largest supported number (16 million).
    pub fn new(max_messages: u64, max_bytes: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            max_messages: if max_messages == 0 { MOST_MESSAGES } else { max_messages.min(MOST_MESSAGES) },
            max_bytes: max_bytes.min(MOST_BYTES),
            max_memory: u64::MAX,
            compresses: AtomicBool::new(false),
            leases: AtomicUsize::new(0),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::default(),
        }
    }

    /// Sets a ceiling of the memory that queued messages take, in bytes.
    #[must_use]
    pub fn with_ceiling(mut self, max_memory: Option<usize>) -> Self {
        self.max_memory = max_memory.map_or(u64::MAX, |bytes| bytes as u64);
        self
    }

    /// Counts the compressed form of batches from now on.
    pub fn count_compression(&self) {
        self.compresses.store(true, Ordering::Relaxed);
    }

    /// Returns the ceiling of the memory that queued messages take, in bytes.
    pub fn ceiling(&self) -> Option<u64> {
        (self.max_memory != u64::MAX).then_some(self.max_memory)
    }

    /// Returns the memory that counts towards the ceiling, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory_of(self.messages() as u64, self.bytes())
    }

    /// Returns true if this many messages and bytes are within the limits of bytes and of memory.
    #[inline]
    fn has_bytes(&self, messages: u64, bytes: u64) -> bool {
        bytes <= self.max_bytes && self.memory_of(messages, bytes) <= self.max_memory
    }

    /// Returns the estimated memory of messages with these bytes of payload. A third of a chunk may be unused.
    fn memory_of(&self, messages: u64, bytes: u64) -> u64 {
        let encoded = bytes + messages * MESSAGE_MEMORY;
        (encoded + encoded / 2) * self.forms()
    }

    /// Returns false if the chunks of memory in use leave no room for another batch. They are more than what is charged if many
    /// batches have few records. An empty queue has room.
    #[inline]
    pub fn admits_batch(&self, pool: &ChunkPool) -> bool {
        self.max_memory == u64::MAX || self.has_chunks_for_batch(pool)
    }

    #[cold]
    fn has_chunks_for_batch(&self, pool: &ChunkPool) -> bool {
        let chunks = (pool.in_use_bytes() + SMALL_CHUNK_BYTES) as u64;
        chunks * self.forms() <= self.max_memory || self.messages() == 0
    }

    /// Returns in how many forms a batch is in memory at the same time.
    fn forms(&self) -> u64 {
        if self.compresses.load(Ordering::Relaxed) { 2 } else { 1 }
    }

    /// Charges one message; returns false and charges nothing if there is no room. An empty queue accepts a message
    /// above the byte limit, because it would otherwise wait without end.
    #[inline]
    pub fn try_charge(&self, bytes: usize) -> bool {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let (messages, used_bytes) = (used >> BYTES_BITS, used & BYTES_MASK);
            let fits = self.has_bytes(messages + 1, used_bytes + bytes as u64) || messages == 0;
            if messages >= self.max_messages || !fits {
                return false;
            }
            // A charge is never undone: a thread that checks in between would wait although there is room.
            let charged = used + ONE_MESSAGE + bytes as u64;
            match self.used.compare_exchange_weak(used, charged, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => used = changed,
            }
        }
    }

    /// Takes the room of one message from a lease, which is extended if it is too small. While the queue is far from
    /// full, the lease gets room for about half as many messages as are `expected` in the batch.
    #[inline]
    pub fn try_charge_lease(&self, lease: &mut Lease, bytes: usize, expected: usize) -> Result<(), NoRoom> {
        if lease.messages == 0 || lease.bytes < bytes as u64 {
            return self.extend(lease, bytes, expected);
        }
        lease.messages -= 1;
        lease.bytes -= bytes as u64;
        Ok(())
    }

    #[cold]
    fn extend(&self, lease: &mut Lease, bytes: usize, expected: usize) -> Result<(), NoRoom> {
        let rest = std::mem::take(lease);
        self.release(rest.messages as usize, rest.bytes);
        let messages = (expected as u64 / 2).clamp(LEASED_MESSAGES.0, LEASED_MESSAGES.1);
        let all_bytes = messages * bytes as u64;
        let used = self.used.load(Ordering::Relaxed);
        let (new_messages, new_bytes) = ((used >> BYTES_BITS) + messages, (used & BYTES_MASK) + all_bytes);
        if new_messages <= most(self.max_messages)
            && new_bytes <= most(self.max_bytes)
            && self.memory_of(new_messages, new_bytes) <= most(self.max_memory)
        {
            if !rest.is_out {
                self.leases.fetch_add(1, Ordering::SeqCst);
            }
            self.used.fetch_add(messages * ONE_MESSAGE + all_bytes, Ordering::Relaxed);
            *lease = Lease { is_out: true, messages: messages - 1, bytes: all_bytes - bytes as u64 };
            return Ok(());
        }
        if rest.is_out {
            self.leases.fetch_sub(1, Ordering::SeqCst);
        }
        if self.try_charge(bytes) { Ok(()) } else { Err(NoRoom) }
    }

    /// Returns the unused room of a lease.
    #[inline]
    pub fn give_back(&self, lease: &mut Lease) {
        if lease.is_out {
            let rest = std::mem::take(lease);
            self.leases.fetch_sub(1, Ordering::SeqCst);
            self.release(rest.messages as usize, rest.bytes);
        }
    }

    /// Returns true if some partition has unused leased room.
    pub fn has_leases(&self) -> bool {
        self.leases.load(Ordering::SeqCst) > 0
    }

    /// Returns charged room, and wakes threads that wait for room or for a flush.
    pub fn release(&self, messages: usize, bytes: u64) {
        if messages == 0 && bytes == 0 {
            return;
        }
        self.used.fetch_sub(((messages as u64) << BYTES_BITS) + bytes, Ordering::SeqCst);
        self.wake_waiters();
    }

    /// Wakes the threads that wait for room or for a flush.
    pub fn wake_waiters(&self) {
        if self.has_waiters.load(Ordering::SeqCst) {
            let waiters = {
                let mut waiters = self.waiters.lock();
                self.has_waiters.store(false, Ordering::SeqCst);
                std::mem::take(&mut *waiters)
            };
            waiters.into_iter().for_each(Waker::wake);
        }
    }

    /// Registers to be woken by the next [`Budget::release`]. Check again after this call before sleeping.
    pub fn register(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) {
        let number = waiter.number_at(self);
        let old = {
            let mut waiters = self.waiters.lock();
            let old = waiters.register(number, waker);
            self.has_waiters.store(true, Ordering::SeqCst);
            old
        };
        drop(old);
        // Orders this registration before the caller's next check of the counts.
        self.used.fetch_add(0, Ordering::SeqCst);
    }

    /// Returns the number of messages without a report, including leased room.
    pub fn messages(&self) -> usize {
        (self.used.load(Ordering::SeqCst) >> BYTES_BITS) as usize
    }

    /// Returns the number of bytes without a report, including leased room.
    pub fn bytes(&self) -> u64 {
        self.used.load(Ordering::SeqCst) & BYTES_MASK
    }
}

impl WaitPlace for Budget {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.waiters.lock())
    }
}

/// Returns the part of a limit that leases may use; the rest is charged message by message.
const fn most(limit: u64) -> u64 {
    limit / 8 * 7
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
    fn lease_is_taken_while_room_is_ample_and_returns_unused_room() {
        let budget = Budget::new(160, 1_000_000);
        let mut lease = Lease::default();
        assert_eq!(budget.try_charge_lease(&mut lease, 10, 256), Ok(()));
        assert_eq!((budget.messages(), lease.messages(), lease.bytes()), (128, 127, 1270));
        for _ in 0..127 {
            assert_eq!(budget.try_charge_lease(&mut lease, 10, 256), Ok(()));
        }
        assert_eq!((budget.messages(), budget.bytes()), (128, 1280), "the lease was used up");
        assert_eq!(budget.try_charge_lease(&mut lease, 10, 256), Ok(()));
        assert_eq!((budget.messages(), lease.messages()), (129, 0), "too much would be leased");
        assert!(!budget.has_leases());
        budget.release(129, 1290);
        assert_eq!(budget.try_charge_lease(&mut lease, 10, 256), Ok(()));
        assert_eq!(
            budget.try_charge_lease(&mut lease, 1300, 256),
            Ok(()),
            "a larger message than the lease has bytes for"
        );
        assert!(budget.has_leases());
        budget.give_back(&mut lease);
        assert!(!budget.has_leases());
        assert_eq!((budget.messages(), budget.bytes()), (2, 1310));
    }

    #[test]
    fn without_room_a_lease_charges_nothing() {
        let budget = Budget::new(2, 1000);
        let mut lease = Lease::default();
        assert_eq!(budget.try_charge_lease(&mut lease, 1, 256), Ok(()));
        assert_eq!(budget.try_charge_lease(&mut lease, 1, 256), Ok(()));
        assert_eq!(budget.try_charge_lease(&mut lease, 1, 256), Err(NoRoom));
        assert_eq!((budget.messages(), budget.bytes(), budget.has_leases()), (2, 2, false));
    }

    #[test]
    fn a_message_above_the_byte_limit_is_let_into_an_empty_queue() {
        let budget = Budget::new(10, 100);
        assert!(budget.try_charge(500));
        assert!(!budget.try_charge(1));
    }

    #[test]
    fn ceiling_counts_what_messages_take_besides_their_payload() {
        let budget = Budget::new(0, 1 << 30).with_ceiling(Some(16_400));
        let accepted = |budget: &Budget| (0..1000).take_while(|_| budget.try_charge(100)).count();
        assert_eq!((accepted(&budget), budget.memory()), (66, 66 * 164 * 3 / 2));
        budget.release(66, 6600);
        budget.count_compression();
        assert_eq!((accepted(&budget), budget.memory()), (33, 33 * 164 * 3), "both forms of a batch");
        budget.release(33, 3300);
        assert!(budget.try_charge(1_000_000), "an empty queue takes a message above the ceiling");
        assert!(!budget.try_charge(0));
    }

    #[test]
    fn ceiling_is_not_exceeded_by_leases() {
        let budget = Budget::new(0, 1 << 30).with_ceiling(Some(100_000));
        let mut leases: Vec<Lease> = (0..50).map(|_| Lease::default()).collect();
        for number in 0..5000 {
            let _ = budget.try_charge_lease(&mut leases[number % 50], 100, 256);
            assert!(budget.memory() <= 100_000, "{}", budget.memory());
        }
        assert!(budget.memory() > 99_000);
    }

    #[test]
    fn release_wakes_registered_waiter() {
        use std::task::Wake;
        #[derive(Default)]
        struct Flag(AtomicBool);
        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let budget = Arc::new(Budget::new(1, 100));
        let mut waiter = Waiter::default();
        let flag = Arc::new(Flag::default());
        assert!(budget.try_charge(1));
        budget.register(&mut waiter, &Waker::from(Arc::clone(&flag)));
        budget.release(1, 1);
        assert!(flag.0.load(Ordering::SeqCst));
    }
}
