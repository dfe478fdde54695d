//! The client's part of the membership, and a rebalance as a queue entry.

use std::{
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    thread::{self, ThreadId},
};

use ottla::Consumer;

use crate::ffi::{codes::RespErr, list::Listed, lock::Mutex};

/// The state that the C interface adds to the core's state of a membership.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// `enable.auto.commit`.
    pub(super) auto_commit: bool,
    /// The application's subscription: topics or patterns, and the partition numbers of its list.
    pub(super) subscription: Mutex<Vec<(String, i32)>>,
    /// True from a subscription until the application assigns partitions without one.
    pub(super) is_used: AtomicBool,
    /// A [`Phase`].
    phase: AtomicU8,
    /// The thread that calls the rebalance callback.
    answering: Mutex<Option<ThreadId>>,
}

/// A rebalance to which the application has to respond.
#[derive(Debug)]
pub(crate) struct Rebalance {
    pub(crate) code: RespErr,
    pub(crate) list: Listed,
}

/// The progress of closing the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open = 0,
    Closing = 1,
    Closed = 2,
}

impl Membership {
    /// Creates the state of a consumer without a subscription.
    pub(crate) fn new(auto_commit: bool) -> Self {
        Self { auto_commit, ..Self::default() }
    }

    /// Returns true if the assign functions apply to the group: the consumer subscribes to topics, or has not left yet.
    pub(crate) fn is_active(&self, consumer: &Consumer) -> bool {
        !self.subscription.lock().is_empty()
            || self.is_used.load(Ordering::Acquire) && consumer.group().view().protocol.is_some()
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Open,
            1 => Phase::Closing,
            _ => Phase::Closed,
        }
    }

    /// Returns true if this thread is in the rebalance callback.
    pub(super) fn is_answering(&self) -> bool {
        *self.answering.lock() == Some(thread::current().id())
    }

    pub(super) fn set_answering(&self, is_answering: bool) {
        *self.answering.lock() = is_answering.then(|| thread::current().id());
    }

    /// Starts closing. Error: the current phase, unless the consumer was open.
    pub(super) fn begin_close(&self) -> Result<(), Phase> {
        let (open, closing) = (Phase::Open as u8, Phase::Closing as u8);
        let changed = self.phase.compare_exchange(open, closing, Ordering::AcqRel, Ordering::Acquire);
        changed.map(drop).map_err(|_| self.phase())
    }

    pub(super) fn end_close(&self) {
        self.phase.store(Phase::Closed as u8, Ordering::Release);
    }
}
