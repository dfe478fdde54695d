//! The list in which a broker actor finds its partitions that have something to send.

use std::sync::Arc;

use crate::{
    machine::Instant,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    wake::WakeHandle,
};

/// Partitions of one broker that became ready. Entries are notifications: the actor checks the whole partition.
#[derive(Debug)]
pub struct ReadyList {
    state: Mutex<State>,
    /// Above zero while the application flushes: no record lingers then.
    flushing: Arc<AtomicUsize>,
    /// True if some topic has its own linger: a record may be due before the time until which the actor sleeps.
    lingers_differ: Arc<AtomicBool>,
    /// The approximate number of waiting bytes, counted only if there is a limit.
    bytes: AtomicU64,
    max_bytes: u64,
    wake: WakeHandle,
}

#[derive(Debug, Default)]
struct State {
    ready: Vec<Ready>,
    /// The slots of partitions whose batch was compressed by a worker.
    compressed: Vec<usize>,
    /// True if the actor has set a timer for the linger: a further partition need not wake it.
    armed: bool,
    /// The number of partitions that makes the broker actor send at once.
    max_partitions: usize,
    collected: usize,
}

/// A partition that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The partition's slot at its sender.
    pub slot: usize,
    /// When the oldest record was appended.
    pub since: Instant,
    /// True if a batch is full, so that there is nothing to wait for.
    pub full: bool,
}

impl ReadyList {
    /// Creates an empty list whose actor `wake` wakes. `flushing` counts the active flushes; `lingers_differ` is set if
    /// a topic has its own linger; the limits are `broker.batch.max.partitions` and `broker.batch.max.bytes`.
    pub fn new(
        wake: WakeHandle,
        flushing: Arc<AtomicUsize>,
        lingers_differ: Arc<AtomicBool>,
        max_partitions: Option<usize>,
        max_bytes: Option<u64>,
    ) -> Self {
        let max_partitions = max_partitions.unwrap_or(usize::MAX);
        Self {
            state: Mutex::new(State { max_partitions, ..State::default() }),
            flushing,
            lingers_differ,
            bytes: AtomicU64::new(0),
            max_bytes: max_bytes.unwrap_or(u64::MAX),
            wake,
        }
    }

    /// Adds a partition that has something to send. Returns true if the actor would sleep too long: the caller then
    /// calls [`Self::wake`] after it released every lock that the actor needs.
    #[must_use]
    pub fn push(&self, ready: Ready) -> bool {
        let is_news = {
            let mut state = self.state.lock();
            state.ready.push(ready);
            let enough = state.collected + state.ready.len() >= state.max_partitions;
            !std::mem::replace(&mut state.armed, true) || ready.full || enough
        };
        is_news || self.flushing.load(Ordering::Relaxed) > 0 || self.lingers_differ.load(Ordering::Relaxed)
    }

    /// Adds a partition whose batch was compressed by a worker. The caller wakes the actor as after [`Self::push`].
    pub fn push_compressed(&self, slot: usize) {
        self.state.lock().compressed.push(slot);
    }

    /// Takes the partitions whose batches were compressed.
    pub fn take_compressed(&self) -> Vec<usize> {
        std::mem::take(&mut self.state.lock().compressed)
    }

    /// Counts appended bytes. Returns true if they exceed the limit: the caller then wakes the actor as after
    /// [`Self::push`].
    #[inline]
    #[must_use]
    pub fn add_bytes(&self, bytes: usize) -> bool {
        if self.max_bytes == u64::MAX {
            return false;
        }
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        before < self.max_bytes && before + bytes as u64 >= self.max_bytes
    }

    /// Wakes the broker actor.
    pub fn wake(&self) {
        self.wake.wake();
    }

    /// Subtracts bytes that were taken.
    pub fn subtract_bytes(&self, bytes: u64) {
        if self.max_bytes != u64::MAX {
            let subtract = |now: u64| Some(now.saturating_sub(bytes));
            let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        }
    }

    /// Returns true if enough bytes wait that the broker actor should send.
    pub fn has_enough_bytes(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max_bytes
    }

    /// Moves the notifications to `into`.
    pub fn drain(&self, into: &mut Vec<Ready>) {
        self.state.lock().ready.drain(..).for_each(|ready| into.push(ready));
    }

    /// Reports what the broker actor holds before it sleeps; returns false if notifications arrived meanwhile.
    pub fn settle(&self, collected: usize, armed: bool) -> bool {
        let mut state = self.state.lock();
        if !(state.ready.is_empty() && state.compressed.is_empty()) {
            return false;
        }
        state.collected = collected;
        state.armed = armed;
        true
    }

    /// Returns true while the application flushes.
    pub fn is_flushing(&self) -> bool {
        self.flushing.load(Ordering::SeqCst) > 0
    }
}
