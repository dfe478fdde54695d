//! The state that the lock of a queue protects. Nothing here calls a client: functions return a [`Next`] or a
//! [`Notification`], and the queue makes the calls without its lock.

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
    /// The thread that reads from the consumer. It reads without the lock; other threads wait, so that records keep
    /// their order.
    reader: Option<ThreadId>,
    notification: Notification,
    /// True if a return was requested while no poll waited: the next one returns without a result.
    is_yielded: bool,
    /// How often the waiting polls were requested to return: every one of them does, and no later one.
    returns: u64,
    /// How often this queue, or one that is forwarded here, was forwarded elsewhere.
    forwards: u64,
    /// True once the client ends; no thread waits here afterwards.
    is_over: bool,
    /// Polls that wait here.
    waiting: usize,
    /// The number of signals, for threads that wait for any of them.
    signals: u64,
}

/// A notification of the application, to be delivered without the lock.
#[must_use]
#[derive(Clone, Default)]
pub(super) struct Notification {
    pub(super) io: Option<(c_int, Arc<[u8]>)>,
    pub(super) callback: Option<(NotifyCb, Opaque)>,
}

/// The next step of a thread that takes from a queue.
#[must_use]
pub(super) enum Next {
    /// None: all slots for messages are filled.
    Full,
    /// The entries are in the queue that this one is forwarded to.
    Forwarded,
    /// Serve an entry.
    Op(Op),
    /// Handle an event that the consumer reported between the records.
    Event(ConsumerEvent),
    /// Read: this thread is the reader now, until [`State::end_reading`]; the number of signals so far.
    Read(u64),
    /// Wait until there are more signals than this.
    Wait(u64),
    /// Return without a result: this thread is the reader already, and was called back by a function that it called.
    Nothing,
}

/// Slots for messages, and properties of the call that provides them.
pub(super) struct Places<'a> {
    pub(super) into: &'a mut [*mut rd_kafka_message_t],
    /// True if a call collects messages until all slots are filled: it advances positions at its end.
    pub(super) is_batch: bool,
    /// True if messages that are queue entries are returned as entries.
    pub(super) as_events: bool,
    /// True if the queue is not forwarded.
    pub(super) is_end: bool,
    /// True if the client has no consumer.
    pub(super) is_without_consumer: bool,
}

/// The slots that are filled already.
pub(super) struct Ready<'a>(pub(super) &'a mut [*mut rd_kafka_message_t]);

/// The result of a reader.
pub(super) enum Read {
    /// Records and events of the consumer.
    Taken(Records),
    /// The first messages of a walk, and the walk.
    Opened(OpenSlab, PieceWalk),
}

/// The queue that entries are forwarded to, passed by value.
pub(super) struct Forward(pub(super) Option<Arc<Queue>>);

/// A queue that starts or stops being forwarded here.
pub(super) enum Feeder {
    Added(Weak<Queue>),
    Removed(*const Queue),
}

/// The state of a queue when a poll began, or began to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    returns: u64,
    forwards: u64,
}

/// The end of a wait for an entry.
#[derive(Debug)]
pub(super) enum Popped {
    Op(Op),
    /// The time has passed, or the poll has to return without a result.
    Nothing,
    /// Entries may go to another queue now.
    Forwarded,
}

/// How a wait for a signal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// There is a new entry or another reason to look again, also at where the queue is forwarded to.
    Signalled,
    TimedOut,
    /// The poll has to return without a result.
    Returned,
}

impl Inert for Op {}
impl Inert for Vec<Op> {}
impl Inert for Notification {}
impl Inert for Places<'_> {}
impl Inert for Ready<'_> {}
impl Inert for Read {}
impl Inert for Forward {}
impl Inert for Feeder {}
impl Inert for Since {}
impl Inert for (u64, Since) {}

impl State {
    /// Appends an entry. The application is notified of the first one.
    pub(super) fn push(&mut self, op: Op) -> Notification {
        let was_empty = self.ops.is_empty();
        self.ops.push_back(op);
        self.announce(was_empty)
    }

    /// Appends entries. The application is notified of the first one.
    pub(super) fn push_all(&mut self, ops: Vec<Op>) -> Notification {
        let was_empty = self.ops.is_empty();
        self.ops.extend(ops);
        self.announce(was_empty)
    }

    /// Counts a signal for new entries. The application is notified of the first one.
    fn announce(&mut self, was_empty: bool) -> Notification {
        self.signals += 1;
        if was_empty { self.notification.clone() } else { Notification::default() }
    }

    /// Appends entries like [`Self::push_all`]; if the queue is forwarded, returns them instead.
    pub(super) fn push_all_here(&mut self, ops: Vec<Op>) -> Result<Notification, Vec<Op>> {
        if self.forward.is_some() { Err(ops) } else { Ok(self.push_all(ops)) }
    }

    /// Appends an entry like [`Self::push`]; if the queue is forwarded, returns the entry instead.
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

    /// Counts a signal without an entry. With `is_return`, the waiting polls have to return, or else the next one.
    pub(super) fn signal(&mut self, is_return: bool) -> Notification {
        if is_return && !self.end_waiting() {
            self.is_yielded = true;
        }
        self.signals += 1;
        self.notification.clone()
    }

    /// Ends the wait of every poll that waits here. Returns false if none waits.
    pub(super) fn end_waiting(&mut self) -> bool {
        self.returns += 1;
        self.signals += 1;
        self.waiting > 0
    }

    /// Makes the polls that wait here look again where the entries go.
    pub(super) fn note_forward(&mut self, _: ()) {
        self.forwards += 1;
        self.signals += 1;
    }

    /// Returns true if a poll that has waited since then has to return without a result: another thread requested it,
    /// or no further entries can arrive.
    fn takes_return(&mut self, since: Since) -> bool {
        self.returns != since.returns || std::mem::take(&mut self.is_yielded) || self.is_over
    }

    /// Returns the next entry, or how the wait for it ended.
    pub(super) fn pop(&mut self, since: Since, wait: Wait) -> Option<Popped> {
        match self.ops.pop_front() {
            Some(op) => Some(Popped::Op(op)),
            None if self.takes_return(since) || wait == Wait::Over => Some(Popped::Nothing),
            None => (self.forwards != since.forwards).then_some(Popped::Forwarded),
        }
    }

    /// Returns the next entry, if there is one. A request to return stays for the polls.
    pub(super) fn pop_now(&mut self, _: ()) -> Option<Op> {
        self.ops.pop_front()
    }

    /// Returns the next message, if it needs no further work. Most polls end here.
    #[inline]
    pub(super) fn next_ready(&mut self, _: ()) -> Option<*mut rd_kafka_message_t> {
        if self.forward.is_some() || !self.ops.is_empty() { None } else { self.fetched.next() }
    }

    /// Fills the slots with messages that need no further work, and returns their number. Most polls end here.
    #[inline]
    pub(super) fn take_ready(&mut self, places: Ready<'_>) -> usize {
        if self.forward.is_some() || !self.ops.is_empty() {
            return 0;
        }
        self.fetched.fill(places.0, true)
    }

    /// Fills the slots with messages; returns their number and the next step.
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
                None => match self.fetched.fill(&mut places.into[count..], !places.is_batch) {
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

    /// Returns the reader's next task with the records that were taken.
    pub(super) fn next_walk(&mut self, _: ()) -> Option<Walk> {
        self.fetched.next_walk()
    }

    /// Stores the result of a reader. Returns what is no longer needed, to be dropped without the lock.
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

    /// Ends the reading of this thread. With `found`, wakes the threads that waited meanwhile.
    pub(super) fn end_reading(&mut self, found: bool) {
        self.reader = None;
        self.signals += u64::from(found);
    }

    /// Returns true if there are entries that did not come from the consumer, or that came before it was asked.
    pub(super) fn has_events(&mut self, _: ()) -> bool {
        self.fetched.has_events()
    }

    /// Returns what happened before a poll.
    pub(super) fn since(&mut self, _: ()) -> Since {
        Since { returns: self.returns, forwards: self.forwards }
    }

    /// Returns true if the polls that had begun by then were requested to return.
    pub(super) fn is_returned(&mut self, since: Since) -> bool {
        self.returns != since.returns
    }

    pub(super) fn begin_waiting(&mut self, _: ()) -> Since {
        self.waiting += 1;
        self.since(())
    }

    pub(super) fn stop_waiting(&mut self, _: ()) {
        self.waiting -= 1;
    }

    /// Returns how the wait for more signals than `seen` ended; `None` while it continues.
    pub(super) fn waited(&mut self, (seen, since): (u64, Since), wait: Wait) -> Option<Waited> {
        if self.takes_return(since) {
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

    /// Returns the number of signals, once it is not `seen`.
    pub(super) fn signals_after(&mut self, seen: u64, wait: Wait) -> Option<u64> {
        (self.signals != seen || wait == Wait::Over).then_some(self.signals)
    }

    /// Returns the number of entries.
    pub(super) fn len(&mut self, _: ()) -> usize {
        let of_op = |op: &Op| if let Op::Delivery(batch) = op { batch.len() } else { 1 };
        self.ops.iter().map(of_op).sum::<usize>() + self.fetched.len()
    }

    /// Returns the number of entries without reports.
    pub(super) fn len_without_reports(&mut self, _: ()) -> usize {
        self.ops.iter().filter(|op| !matches!(op, Op::Delivery(_))).count()
    }

    /// Ends the queue. Returns its contents, to be dropped without the lock.
    #[must_use]
    pub(super) fn clear(&mut self, _: ()) -> (VecDeque<Op>, Fetched, Option<Arc<Queue>>) {
        self.is_over = true;
        self.signals += 1;
        (std::mem::take(&mut self.ops), std::mem::take(&mut self.fetched), self.forward.take())
    }

    pub(super) fn forward(&mut self, _: ()) -> Option<Arc<Queue>> {
        self.forward.clone()
    }

    /// Sets the target of forwarded entries. Returns the entries to be moved there, and the previous target.
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

    /// Returns the queues that are forwarded here.
    pub(super) fn feeders(&mut self, _: ()) -> Vec<Weak<Queue>> {
        self.feeders.clone()
    }

    /// Sets the application's descriptor or function, or neither; each replaces the other.
    pub(super) fn set_notification(&mut self, notification: Notification) {
        self.notification = notification;
    }
}
