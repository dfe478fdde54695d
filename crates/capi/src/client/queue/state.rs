//! The state that the lock of a queue protects. Nothing here calls a client: a [`Next`] or a [`Notification`] says what to
//! call, and the queue calls it without its lock.

use std::{
    collections::VecDeque,
    ffi::c_int,
    sync::{Arc, Weak},
    thread::{self, ThreadId},
};

use ottla_core::fetch::deliver::{ConsumerEvent, PieceWalk, Records};

use super::Queue;
use crate::{
    client::{callbacks::NotifyCb, op::Op},
    consume::fetched::{Fetched, OpenSlab, Walk},
    ffi::{
        boundary::Opaque,
        lock::{Inert, Wait},
        types::rd_kafka_message_t,
    },
};

/// Entries, records and waiters of a queue.
#[derive(Default)]
pub(super) struct State {
    ops: VecDeque<Op>,
    forward: Option<Arc<Queue>>,
    /// Queues that are forwarded here.
    feeders: Vec<Weak<Queue>>,
    fetched: Fetched,
    /// The thread that reads from the consumer. It does so without the lock; the others wait, so that records keep their
    /// order.
    reader: Option<ThreadId>,
    notification: Notification,
    is_yielded: bool,
    /// The client ends, and no thread waits here any longer.
    is_over: bool,
    /// Threads that wait here.
    waiting: usize,
    /// The number of things that happened, for threads that wait for any of them.
    signals: u64,
}

/// How the application learns that something came: to be delivered without the lock.
#[must_use]
#[derive(Clone, Default)]
pub(super) struct Notification {
    pub(super) io: Option<(c_int, Arc<[u8]>)>,
    pub(super) callback: Option<(NotifyCb, Opaque)>,
}

/// The step that comes next for a thread that takes from a queue.
#[must_use]
pub(super) enum Next {
    /// Nothing: every place for a message is taken.
    Full,
    /// The entries are in the queue that this one is forwarded to.
    Forwarded,
    /// An entry to be served.
    Op(Op),
    /// Something that the consumer reported between the records.
    Event(ConsumerEvent),
    /// This thread is the reader now, until [`State::end_reading`]; the number of signals so far.
    Read(u64),
    /// Nothing, until there are more signals than this.
    Wait(u64),
    /// Nothing, and this thread must not wait: a function that it called as the reader came back here.
    Nothing,
}

/// Places for messages, and what else goes there.
pub(super) struct Places<'a> {
    pub(super) into: &'a mut [*mut rd_kafka_message_t],
    /// Messages that are entries are returned as those.
    pub(super) as_events: bool,
    /// The queue is the end of its forwards.
    pub(super) is_end: bool,
    /// The client has no consumer.
    pub(super) is_without_consumer: bool,
}

/// Places for messages that are there already.
pub(super) struct Ready<'a>(pub(super) &'a mut [*mut rd_kafka_message_t]);

/// What a reader got.
pub(super) enum Read {
    /// Records and events of the consumer.
    Taken(Records),
    /// The first messages of a walk, and the walk.
    Opened(OpenSlab, PieceWalk),
}

/// The queue that entries are forwarded to, passed by value.
pub(super) struct Forward(pub(super) Option<Arc<Queue>>);

/// A queue that is forwarded here, or no longer.
pub(super) enum Feeder {
    Added(Weak<Queue>),
    Removed(*const Queue),
}

/// How a wait for a signal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Signalled,
    TimedOut,
    /// The poll has to return without anything.
    Returned,
}

impl Inert for Op {}
impl Inert for Notification {}
impl Inert for Places<'_> {}
impl Inert for Ready<'_> {}
impl Inert for Read {}
impl Inert for Forward {}
impl Inert for Feeder {}

impl State {
    /// Appends an entry. The application is notified of the first one.
    pub(super) fn push(&mut self, op: Op) -> Notification {
        let was_empty = self.ops.is_empty();
        self.ops.push_back(op);
        self.signals += 1;
        if was_empty { self.notification.clone() } else { Notification::default() }
    }

    /// Appends an entry like [`Self::push`], unless the queue is forwarded: then it returns the entry.
    pub(super) fn push_here(&mut self, op: Op) -> Result<Notification, Op> {
        if self.forward.is_some() { Err(op) } else { Ok(self.push(op)) }
    }

    /// Returns the next entry, if there is one and the queue is not forwarded.
    pub(super) fn pop_here(&mut self, _: ()) -> Option<Op> {
        if self.forward.is_some() { None } else { self.ops.pop_front() }
    }

    /// Puts an entry back to the front.
    pub(super) fn push_front(&mut self, op: Op) {
        self.ops.push_front(op);
    }

    /// Counts something that is no entry; `is_return`: a poll has to return.
    pub(super) fn signal(&mut self, is_return: bool) -> Notification {
        self.is_yielded |= is_return;
        self.signals += 1;
        self.notification.clone()
    }

    /// Ends the wait of a thread, if one waits.
    pub(super) fn end_waiting(&mut self) {
        if self.waiting > 0 {
            self.is_yielded = true;
            self.signals += 1;
        }
    }

    /// True if a poll is to return without anything: it was asked to, or nothing can come any more.
    fn takes_return(&mut self) -> bool {
        std::mem::take(&mut self.is_yielded) || self.is_over
    }

    /// The next entry, or how the wait for it ended.
    pub(super) fn pop(&mut self, wait: Wait) -> Option<Option<Op>> {
        match self.ops.pop_front() {
            Some(op) => Some(Some(op)),
            None if self.takes_return() || wait == Wait::Over => Some(None),
            None => None,
        }
    }

    /// Returns the next message, if nothing has to be done for it. Most polls end here.
    #[inline]
    pub(super) fn next_ready(&mut self, _: ()) -> Option<*mut rd_kafka_message_t> {
        if self.forward.is_some() || !self.ops.is_empty() { None } else { self.fetched.next() }
    }

    /// Fills the places with messages that nothing has to be done for, and returns their number. Most polls end here.
    #[inline]
    pub(super) fn take_ready(&mut self, places: Ready<'_>) -> usize {
        if self.forward.is_some() || !self.ops.is_empty() {
            return 0;
        }
        self.fetched.fill(places.0)
    }

    /// Fills the places with messages; returns how many there are and what comes next.
    #[inline]
    pub(super) fn take(&mut self, places: Places<'_>) -> (usize, Next) {
        if !places.is_end && self.forward.is_some() {
            return (0, Next::Forwarded);
        }
        let mut count = 0;
        while count < places.into.len() {
            count += match self.ops.pop_front() {
                Some(Op::Message(message)) if !places.as_events => {
                    places.into[count] = message.take();
                    1
                }
                Some(op) => return (count, Next::Op(op)),
                None => match self.fetched.fill(&mut places.into[count..]) {
                    0 if places.is_without_consumer => return (count, Next::Wait(self.signals)),
                    0 => return (count, self.after_messages()),
                    filled => filled,
                },
            };
        }
        (count, Next::Full)
    }

    fn after_messages(&mut self) -> Next {
        match self.reader {
            Some(reader) if reader == thread::current().id() => return Next::Nothing,
            Some(_) => return Next::Wait(self.signals),
            None => {}
        }
        if let Some(event) = self.fetched.next_event() {
            return Next::Event(event);
        }
        self.reader = Some(thread::current().id());
        Next::Read(self.signals)
    }

    /// The next thing that the reader has to do with what was taken.
    pub(super) fn next_walk(&mut self, _: ()) -> Option<Walk> {
        self.fetched.next_walk()
    }

    /// Keeps what the reader got. Returns what is not wanted any more, to be dropped without the lock.
    #[must_use]
    pub(super) fn keep(&mut self, read: Read) -> Option<Read> {
        if self.is_over {
            return Some(read);
        }
        match read {
            Read::Taken(records) => self.fetched.add(records),
            Read::Opened(slab, rest) => self.fetched.open(slab, rest),
        }
        None
    }

    /// The thread reads no more. With `found` there is something for the threads that waited meanwhile.
    pub(super) fn end_reading(&mut self, found: bool) {
        self.reader = None;
        self.signals += u64::from(found);
    }

    /// Whether there is something that came without the consumer, or before it was asked.
    pub(super) fn has_events(&mut self, _: ()) -> bool {
        self.fetched.has_events()
    }

    pub(super) fn begin_waiting(&mut self, _: ()) {
        self.waiting += 1;
    }

    pub(super) fn stop_waiting(&mut self, _: ()) {
        self.waiting -= 1;
    }

    /// Whether more happened than `seen`, or the wait is over for another reason.
    pub(super) fn waited(&mut self, seen: u64, wait: Wait) -> Option<Waited> {
        if self.takes_return() {
            Some(Waited::Returned)
        } else if self.signals != seen {
            Some(Waited::Signalled)
        } else {
            (wait == Wait::Over).then_some(Waited::TimedOut)
        }
    }

    pub(super) fn signals(&mut self, _: ()) -> u64 {
        self.signals
    }

    /// The number of signals, once it is not `seen` any more.
    pub(super) fn signals_after(&mut self, seen: u64, wait: Wait) -> Option<u64> {
        (self.signals != seen || wait == Wait::Over).then_some(self.signals)
    }

    /// How many entries wait.
    pub(super) fn len(&mut self, _: ()) -> usize {
        let of_op = |op: &Op| if let Op::Delivery(batch) = op { batch.len() } else { 1 };
        self.ops.iter().map(of_op).sum::<usize>() + self.fetched.len()
    }

    /// How many entries wait, without reports.
    pub(super) fn len_without_reports(&mut self, _: ()) -> usize {
        self.ops.iter().filter(|op| !matches!(op, Op::Delivery(_))).count()
    }

    /// Ends the queue. Returns what it had, to be dropped without the lock.
    #[must_use]
    pub(super) fn clear(&mut self, _: ()) -> (VecDeque<Op>, Fetched, Option<Arc<Queue>>) {
        self.is_over = true;
        self.signals += 1;
        (std::mem::take(&mut self.ops), std::mem::take(&mut self.fetched), self.forward.take())
    }

    pub(super) fn forward(&mut self, _: ()) -> Option<Arc<Queue>> {
        self.forward.clone()
    }

    /// Sets where entries go. Returns the entries to be moved there, and where they went before.
    #[must_use]
    pub(super) fn set_forward(&mut self, to: Forward) -> (VecDeque<Op>, Option<Arc<Queue>>) {
        let moved = if to.0.is_some() { std::mem::take(&mut self.ops) } else { VecDeque::new() };
        (moved, std::mem::replace(&mut self.forward, to.0))
    }

    pub(super) fn set_feeder(&mut self, feeder: Feeder) {
        match feeder {
            Feeder::Added(feeder) => self.feeders.push(feeder),
            Feeder::Removed(feeder) => self.feeders.retain(|known| !std::ptr::eq(known.as_ptr(), feeder)),
        }
    }

    /// The queues that are forwarded here.
    pub(super) fn feeders(&mut self, _: ()) -> Vec<Weak<Queue>> {
        self.feeders.clone()
    }

    /// Sets the application's descriptor, and leaves its function.
    pub(super) fn set_io(&mut self, notification: Notification) {
        self.notification.io = notification.io;
    }

    /// Sets the application's function, and leaves its descriptor.
    pub(super) fn set_callback(&mut self, notification: Notification) {
        self.notification.callback = notification.callback;
    }
}
