//! The records that a queue took from its consumer, which become messages in slabs as they are handed out, and the events
//! after them. The lock of the queue protects it, so nothing here calls out: walks are opened by the queue's reader,
//! without the lock.

use std::collections::VecDeque;

use ottla_core::fetch::deliver::{ConsumerEvent, PieceWalk, Records};

use crate::{
    consume::message::{Slab, rd_kafka_message_leader_epoch},
    ffi::{
        object::Object,
        types::{rd_kafka_message_t, rd_kafka_topic_t},
    },
};

/// Records that were taken from the consumer and not handed to the application yet.
#[derive(Default)]
pub(crate) struct Fetched {
    walks: VecDeque<PieceWalk>,
    /// Events that are only logged, before the records that follow them.
    news: VecDeque<ConsumerEvent>,
    /// Events that come behind the records.
    events: VecDeque<ConsumerEvent>,
    current: Option<OpenSlab>,
}

/// The next task of a queue's reader, before more records can be handed out.
#[must_use]
pub(crate) enum Walk {
    /// The messages of a slab were all handed out, or are not wanted any more.
    Leave(OpenSlab, Option<PieceWalk>),
    /// The partition is paused: its records go back to the consumer.
    SetAside(PieceWalk),
    /// The records are out of date.
    Stale(PieceWalk),
    /// The next messages.
    Open(PieceWalk),
}

impl Fetched {
    /// Adds what the consumer had.
    pub(crate) fn add(&mut self, records: Records) {
        let (walks, events) = records.into_walks();
        self.walks.extend(walks);
        let (events, news): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| {
            matches!(event, ConsumerEvent::EndOfPartition { .. } | ConsumerEvent::Error(_))
        });
        self.events.extend(events);
        self.news.extend(news);
    }

    /// Returns the next message of the open slab, if the application still wants it.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<*mut rd_kafka_message_t> {
        let current = self.current.as_mut()?;
        // SAFETY: the queue has a use of the slab.
        let slab = unsafe { &*current.slab };
        let fetched = slab.fetched();
        if current.next == slab.len() || !fetched.is_current() || fetched.is_paused() {
            return None;
        }
        // SAFETY: each index is handed out once.
        let message = unsafe { Slab::hand_out(current.slab, current.next) };
        current.next += 1;
        // SAFETY: it was just handed out.
        unsafe { fetched.set_position((*message).offset + 1, rd_kafka_message_leader_epoch(message)) };
        Some(message)
    }

    /// Fills `into` with the next messages of the open slab, and returns their number. The position moves once, behind the
    /// last message.
    #[inline]
    pub(crate) fn fill(&mut self, into: &mut [*mut rd_kafka_message_t]) -> usize {
        let Some(current) = self.current.as_mut() else { return 0 };
        // SAFETY: the queue has a use of the slab.
        let slab = unsafe { &*current.slab };
        let fetched = slab.fetched();
        let count = into.len().min(slab.len() - current.next);
        if count == 0 || !fetched.is_current() || fetched.is_paused() {
            return 0;
        }
        for message in &mut into[..count] {
            // SAFETY: each index is handed out once.
            *message = unsafe { Slab::hand_out(current.slab, current.next) };
            current.next += 1;
        }
        let last = into[count - 1];
        // SAFETY: it was just handed out.
        unsafe { fetched.set_position((*last).offset + 1, rd_kafka_message_leader_epoch(last)) };
        count
    }

    /// The next event: a line for the log at once, others behind the records.
    pub(crate) fn next_event(&mut self) -> Option<ConsumerEvent> {
        let is_behind = self.current.is_none() && self.walks.is_empty();
        self.news.pop_front().or_else(|| if is_behind { self.events.pop_front() } else { None })
    }

    /// Whether there is an event to be handed out.
    pub(crate) fn has_events(&self) -> bool {
        !self.news.is_empty() || !self.events.is_empty()
    }

    /// How many records were taken and not handed out, according to the headers of their batches.
    pub(crate) fn len(&self) -> usize {
        let made = self.current.as_ref().map_or(0, OpenSlab::left);
        made + self.walks.iter().map(PieceWalk::left).sum::<usize>()
    }

    /// What comes before the next message.
    pub(crate) fn next_walk(&mut self) -> Option<Walk> {
        if let Some(current) = self.current.take() {
            // Where something is left in the slab, its walk goes with it.
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

    /// Hands out a slab from now on, and after it the rest of its walk.
    pub(crate) fn open(&mut self, slab: OpenSlab, rest: PieceWalk) {
        self.current = Some(slab);
        self.walks.push_front(rest);
    }
}

/// The slab that is being handed out.
pub(crate) struct OpenSlab {
    slab: *const Slab,
    next: usize,
    /// The position of the slab's first message.
    before: PieceWalk,
}

// SAFETY: the slab is shared by a count, and only the owner of this struct hands its messages out.
unsafe impl Send for OpenSlab {}

impl OpenSlab {
    /// A slab of the next messages of a walk; `None` if there are no more.
    pub(crate) fn of(walk: &mut PieceWalk, topic: Object<rd_kafka_topic_t>) -> Option<Self> {
        let before = walk.clone();
        let open = Self { slab: Slab::new(walk, topic), next: 0, before };
        (open.left() > 0).then_some(open)
    }

    /// Messages that were not handed out.
    fn left(&self) -> usize {
        // SAFETY: there is a use of the slab.
        unsafe { &*self.slab }.len() - self.next
    }

    /// The records that were not handed out of a partition that is paused; `None` if they are out of date.
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
        // SAFETY: the queue's own use was counted when the slab was made, and one for each message.
        unsafe { Slab::release(self.slab, 1 + self.left()) };
    }
}
