//! The records that a queue took from its consumer, which are converted to messages in slabs shortly before they are
//! returned, and the events after them. They are protected by the queue's lock, so nothing here calls out: the queue's
//! reader opens walks without the lock.

use std::collections::VecDeque;

use ottla_core::fetch::deliver::{ConsumerEvent, FetchedRecords, PieceWalk, Records};

use crate::{
    consume::message::{Slab, rd_kafka_message_leader_epoch},
    ffi::{
        object::Object,
        types::{rd_kafka_message_t, rd_kafka_topic_t},
    },
};

/// Sets the position behind a message that the application gets.
pub(super) fn set_position(fetched: &FetchedRecords, message: *mut rd_kafka_message_t) {
    // SAFETY: the message was handed out by the caller, which nobody else has yet.
    unsafe { fetched.set_position((*message).offset + 1, rd_kafka_message_leader_epoch(message)) };
}

/// Records that were taken from the consumer and not yet returned to the application.
#[derive(Default)]
pub(crate) struct Fetched {
    walks: VecDeque<PieceWalk>,
    /// Events that are only logged, before the records that follow them.
    news: VecDeque<ConsumerEvent>,
    /// Events that follow the records.
    events: VecDeque<ConsumerEvent>,
    current: Option<OpenSlab>,
}

/// The next task of a queue's reader, before more records can be returned.
#[must_use]
pub(crate) enum Walk {
    /// Close a slab whose messages were all returned, or are no longer needed; with the rest of its walk.
    Leave(OpenSlab, Option<PieceWalk>),
    /// Return the records of a paused partition to the consumer.
    SetAside(PieceWalk),
    /// Drop records that are out of date.
    Stale(PieceWalk),
    /// Convert the next messages.
    Open(PieceWalk),
}

impl Fetched {
    /// Adds records and events of the consumer.
    pub(crate) fn add(&mut self, records: Records) {
        let (walks, events) = records.into_walks();
        self.walks.extend(walks);
        let (events, news): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| {
            matches!(event, ConsumerEvent::EndOfPartition { .. } | ConsumerEvent::Error(_))
        });
        self.events.extend(events);
        self.news.extend(news);
    }

    /// Returns the next message of the open slab, if it is not out of date.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<*mut rd_kafka_message_t> {
        let current = self.current.as_mut()?;
        // SAFETY: the queue holds a use of the slab.
        let slab = unsafe { &*current.slab };
        let fetched = slab.fetched();
        if current.next == slab.len() || !fetched.is_current() || fetched.is_paused() {
            return None;
        }
        // SAFETY: each index is returned once.
        let message = unsafe { Slab::hand_out(current.slab, current.next) };
        current.next += 1;
        set_position(fetched, message);
        Some(message)
    }

    /// Fills `into` with the next messages of the open slab, and returns their number. With `ends_call`, the position
    /// advances behind the last message if `into` is full; a call that collects further messages advances it at its end
    /// ([`settle`](super::settle::settle)).
    #[inline]
    pub(crate) fn fill(&mut self, into: &mut [*mut rd_kafka_message_t], ends_call: bool) -> usize {
        let Some(current) = self.current.as_mut() else { return 0 };
        // SAFETY: the queue holds a use of the slab.
        let slab = unsafe { &*current.slab };
        let fetched = slab.fetched();
        let count = into.len().min(slab.len() - current.next);
        if count == 0 || !fetched.is_current() || fetched.is_paused() {
            return 0;
        }
        for message in &mut into[..count] {
            // SAFETY: each index is returned once.
            *message = unsafe { Slab::hand_out(current.slab, current.next) };
            current.next += 1;
        }
        if ends_call && count == into.len() {
            set_position(fetched, into[count - 1]);
        }
        count
    }

    /// Returns the next event. Events for the log come at once, others after the records.
    pub(crate) fn next_event(&mut self) -> Option<ConsumerEvent> {
        let is_behind = self.current.is_none() && self.walks.is_empty();
        self.news.pop_front().or_else(|| if is_behind { self.events.pop_front() } else { None })
    }

    /// Returns true if there is an event for the application.
    pub(crate) fn has_events(&self) -> bool {
        !self.news.is_empty() || !self.events.is_empty()
    }

    /// Returns the number of records that were taken and not returned, according to the headers of their batches.
    pub(crate) fn len(&self) -> usize {
        let made = self.current.as_ref().map_or(0, OpenSlab::left);
        made + self.walks.iter().map(PieceWalk::left).sum::<usize>()
    }

    /// Returns the task that comes before the next message.
    pub(crate) fn next_walk(&mut self) -> Option<Walk> {
        if let Some(current) = self.current.take() {
            // If messages are left in the slab, its walk goes with it.
            let walk = if current.left() > 0 { self.walks.pop_front() } else { None };
            return Some(Walk::Leave(current, walk));
        }
        let walk = self.walks.pop_front()?;
        let fetched = walk.fetched();
        Some(if !fetched.is_current() {
            Walk::Stale(walk)
        } else if fetched.is_paused() {
            Walk::SetAside(walk)
        } else {
            Walk::Open(walk)
        })
    }

    /// Opens a slab, whose messages are returned next, followed by the rest of its walk.
    pub(crate) fn open(&mut self, slab: OpenSlab, rest: PieceWalk) {
        self.current = Some(slab);
        self.walks.push_front(rest);
    }
}

/// The slab whose messages are being returned.
pub(crate) struct OpenSlab {
    slab: *const Slab,
    next: usize,
    /// The position of the slab's first message.
    before: PieceWalk,
}

// SAFETY: the slab is reference-counted, and only the owner of this struct returns its messages.
unsafe impl Send for OpenSlab {}

impl OpenSlab {
    /// Returns a slab of the next messages of a walk; `None` if there are no more.
    pub(crate) fn of(walk: &mut PieceWalk, topic: Object<rd_kafka_topic_t>) -> Option<Self> {
        let before = walk.clone();
        let open = Self { slab: Slab::new(walk, topic), next: 0, before };
        (open.left() > 0).then_some(open)
    }

    /// Returns the number of messages that were not returned.
    fn left(&self) -> usize {
        // SAFETY: this struct holds a use of the slab.
        unsafe { &*self.slab }.len() - self.next
    }

    /// Returns the remaining records of a paused partition; `None` if they are out of date.
    pub(crate) fn rest(&self) -> Option<PieceWalk> {
        // SAFETY: as above.
        if self.left() == 0 || !unsafe { &*self.slab }.fetched().is_current() {
            return None;
        }
        let mut rest = self.before.clone();
        rest.run(self.next, |_| ());
        Some(rest)
    }
}

impl Drop for OpenSlab {
    fn drop(&mut self) {
        // SAFETY: the queue's own use was counted when the slab was created, and one for each message.
        unsafe { Slab::release(self.slab, 1 + self.left()) };
    }
}
