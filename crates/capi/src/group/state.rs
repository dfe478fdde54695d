//! The client's part of the membership, and a rebalance as a queue entry.

use std::{
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    thread::{self, ThreadId},
};

use ottla::Consumer;

use crate::ffi::{
    codes::{RespErr, code},
    list::Listed,
    lock::Mutex,
};

/// The state that the C interface adds to the core's state of a membership.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// `enable.auto.commit`.
    pub(super) auto_commit: bool,
    /// True with `group.protocol=consumer`.
    pub(super) is_of_consumer_protocol: bool,
    /// The application's subscription: topics or patterns, and the partition numbers of its list.
    pub(super) subscription: Mutex<Vec<(String, i32)>>,
    /// True from a subscription until the application assigns partitions without one.
    pub(super) is_used: AtomicBool,
    /// A [`Phase`].
    phase: AtomicU8,
    /// The thread that calls the rebalance callback.
    answering: Mutex<Option<ThreadId>>,
    /// The rebalance that the application got and has not responded to.
    asked: Mutex<Option<Asked>>,
}

/// A rebalance that the application got.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The thread that got it.
    thread: ThreadId,
    is_assignment: bool,
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
    pub(crate) fn new(auto_commit: bool, is_of_consumer_protocol: bool) -> Self {
        Self { auto_commit, is_of_consumer_protocol, ..Self::default() }
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

    /// Notes that this thread is in the rebalance callback, or no longer is.
    pub(super) fn set_answering(&self, is_answering: bool) {
        *self.answering.lock() = is_answering.then(|| thread::current().id());
    }

    /// Notes that this thread got a rebalance, to which the application has to respond.
    pub(super) fn begin_asking(&self, rebalance: &Rebalance) {
        let is_assignment = rebalance.code == code::_ASSIGN_PARTITIONS;
        *self.asked.lock() = Some(Asked { thread: thread::current().id(), is_assignment });
    }

    /// Notes that the application has responded.
    pub(super) fn end_asking(&self) {
        *self.asked.lock() = None;
    }

    /// Returns true if the consumer closes and no response of the application has to be awaited: new partitions are not
    /// needed any more, and this thread, if it is the one that closes, does not respond. Revocations are awaited, because
    /// the application may commit before it responds.
    pub(super) fn counts_as_answered(&self, is_closing_thread: bool) -> bool {
        let me = thread::current().id();
        let answering = *self.answering.lock();
        let asked = *self.asked.lock();
        let is_mine = answering == Some(me) || asked.is_some_and(|asked| asked.thread == me);
        self.phase() != Phase::Open
            && (is_closing_thread && is_mine
                || answering.is_none() && asked.is_some_and(|asked| asked.is_assignment))
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
