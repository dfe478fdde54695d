//! The list in which a broker's owner finds out which of its partitions have something to send.

use std::sync::Arc;

use crate::{
    machine::Instant,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    wake::WakeHandle,
};

/// Partitions that became ready, for one broker. Entries are hints: the broker looks at the whole partition.
#[derive(Debug)]
pub struct ReadyList {
    state: Mutex<State>,
    /// Above zero while somebody flushes: nothing lingers then.
    flushing: Arc<AtomicUsize>,
    /// Some topic has a linger of its own: any record may be due before what the owner sleeps for.
    lingers_differ: Arc<AtomicBool>,
    /// Rough bytes that wait, counted only if there is a limit.
    bytes: AtomicU64,
    max_bytes: u64,
    wake: WakeHandle,
}

#[derive(Debug, Default)]
struct State {
    ready: Vec<Ready>,
    /// The broker will look by itself at the end of the linger: a further partition need not wake it.
    armed: bool,
    /// So many partitions make the broker send at once.
    max_partitions: usize,
    collected: usize,
}

/// A partition that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The partition's place at its broker.
    pub slot: usize,
    /// When the oldest record came.
    pub since: Instant,
    /// True if a batch is full, so that there is nothing to wait for.
    pub full: bool,
}

impl ReadyList {
    /// An empty list whose owner is woken by `wake`. `flushing` counts the flushes under way; `lingers_differ` where a topic
    /// has a linger of its own; the limits are `broker.batch.max.partitions` and `broker.batch.max.bytes`.
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

    /// A partition has something to send. True if the owner would sleep too long otherwise: then the caller calls
    /// [`Self::wake`] when it holds no lock any more that the owner will want.
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

    /// Counts bytes that were appended. True if they passed the limit: then the owner is to be woken as by [`Self::push`].
    #[inline]
    #[must_use]
    pub fn add_bytes(&self, bytes: usize) -> bool {
        if self.max_bytes == u64::MAX {
            return false;
        }
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        before < self.max_bytes && before + bytes as u64 >= self.max_bytes
    }

    /// Wakes the owner.
    pub fn wake(&self) {
        self.wake.wake();
    }

    /// Bytes were taken out.
    pub fn subtract_bytes(&self, bytes: u64) {
        if self.max_bytes != u64::MAX {
            let subtract = |now: u64| Some(now.saturating_sub(bytes));
            let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        }
    }

    /// True if so many bytes wait that the broker should send.
    pub fn has_enough_bytes(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max_bytes
    }

    /// Moves the hints to `into`.
    pub fn drain(&self, into: &mut Vec<Ready>) {
        self.state.lock().ready.drain(..).for_each(|ready| into.push(ready));
    }

    /// Tells what the owner holds before it sleeps; answers false if hints came meanwhile.
    pub fn settle(&self, collected: usize, armed: bool) -> bool {
        let mut state = self.state.lock();
        if !state.ready.is_empty() {
            return false;
        }
        state.collected = collected;
        state.armed = armed;
        true
    }

    /// True while somebody flushes.
    pub fn is_flushing(&self) -> bool {
        self.flushing.load(Ordering::SeqCst) > 0
    }
}
