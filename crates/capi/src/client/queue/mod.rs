//! `rd_kafka_queue_t`: entries for the application, and the wake-up of threads that wait for them.
//!
//! A queue has entries ([`Op`]) and, for a consumer, a route of fetched records: when it has no entries, it takes the
//! records of its route from the consumer. A forwarded queue is an alias for another one.
//!
//! [`state`] is the data that the lock protects, [`poll`] passes entries to the application, [`reader`] takes records
//! from the consumer, [`exports`] are the functions of the interface. The queue itself does not depend on the type of
//! its client.
//!
//! # Pitfalls
//!
//! - Serving an entry calls the application, which may need the lock again: everything that calls out runs without it
//!   (`crate::ffi::lock`) (`callouts.c`).

use std::{
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
    time::Instant,
};

use ottla_core::{fetch::queue::FetchQueue, waiters::Waiter};

use self::state::{Feeder, Forward, Notification, Popped, Since, State, Waited};
use crate::{
    client::op::Op,
    ffi::{
        boundary::{Handle, Tag},
        lock::{Condvar, Mutex, SealedMutex, assert_none_held},
        object::{Object, WeakObject},
        quarantine::{self, Counted, Quarantine},
        types::rd_kafka_t,
    },
    platform,
};

pub(crate) mod exports;
mod poll;
mod reader;
mod state;

/// A queue.
#[repr(C)]
pub struct Queue {
    tag: Tag,
    /// The number of the application's references, which limits how many it can give up.
    handles: AtomicUsize,
    /// The route of fetched records for this queue; 0 is the consumer's queue.
    route: u64,
    /// True for the queue of a consumer or of a partition, and from the time when one is forwarded here: polls of it are
    /// those that `max.poll.interval.ms` is about.
    is_for_messages: AtomicBool,
    client: OnceLock<WeakObject<rd_kafka_t>>,
    state: SealedMutex<State>,
    changed: Condvar,
    /// The registration for fetched records.
    records: Mutex<Waiter<FetchQueue>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Queue {
    const KIND: u32 = 0x6f74_7101;
}

static QUARANTINE: Quarantine = Quarantine::new();

// SAFETY: see `drop` and `with_route`.
unsafe impl Counted for Queue {
    fn quarantine() -> &'static Quarantine {
        &QUARANTINE
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tag.clear();
        quarantine::end(self);
    }
}

/// Wakes the threads that wait at a queue, which is where they wait if it is forwarded.
struct QueueWaker(Weak<Queue>);

impl Wake for QueueWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(queue) = self.0.upgrade() {
            queue.wake_polls();
        }
    }
}

impl Queue {
    /// Creates a queue with a new route.
    pub(crate) fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self::with_route(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates a queue for the fetched records of a route.
    pub(crate) fn with_route(route: u64) -> Arc<Self> {
        quarantine::begin(Arc::new(Self {
            tag: Tag::of::<Self>(),
            handles: AtomicUsize::new(0),
            route,
            is_for_messages: AtomicBool::new(false),
            client: OnceLock::new(),
            state: SealedMutex::default(),
            changed: Condvar::default(),
            records: Mutex::default(),
        }))
    }

    /// Sets the client of the queue.
    pub(crate) fn set_client(&self, client: WeakObject<rd_kafka_t>) {
        let _ = self.client.set(client);
    }

    /// Returns the client as C functions get it, kept until the reference is dropped.
    fn owner(&self) -> Option<Object<rd_kafka_t>> {
        self.client.get()?.upgrade()
    }

    /// Notes that this is the queue of a consumer or of a partition.
    pub(crate) fn set_for_messages(&self) {
        self.is_for_messages.store(true, Ordering::Release);
    }

    fn is_for_messages(&self) -> bool {
        self.is_for_messages.load(Ordering::Acquire)
    }

    pub(crate) const fn route(&self) -> u64 {
        self.route
    }

    /// Returns the queue behind a handle.
    ///
    /// # Safety
    ///
    /// NULL or a queue of this library.
    pub(crate) unsafe fn of(queue: *const Self) -> Option<Arc<Self>> {
        // SAFETY: by the contract of this function.
        unsafe { quarantine::counted(queue) }
    }

    /// Returns the queue in which entries end up: this one, or the last one of its forwards.
    pub(crate) fn end(self: &Arc<Self>) -> Arc<Self> {
        let mut queue = Arc::clone(self);
        // Forwards may form a circle, so the number of steps is limited.
        for _ in 0..16 {
            match queue.state.with((), State::forward) {
                Some(next) => queue = next,
                None => break,
            }
        }
        queue
    }

    /// Appends an entry.
    pub(crate) fn push(self: &Arc<Self>, op: Op) {
        match self.state.with(op, State::push_here) {
            Ok(notification) => self.announce(notification),
            Err(op) => {
                let queue = self.end();
                queue.announce(queue.state.with(op, State::push));
            }
        }
    }

    /// Appends entries, and wakes the threads that wait for them once.
    pub(crate) fn push_all(self: &Arc<Self>, ops: Vec<Op>) {
        if ops.is_empty() {
            return;
        }
        match self.state.with(ops, State::push_all_here) {
            Ok(notification) => self.announce(notification),
            Err(ops) => {
                let queue = self.end();
                queue.announce(queue.state.with(ops, State::push_all));
            }
        }
    }

    /// Wakes the threads that wait here, and notifies the application.
    fn announce(&self, notification: Notification) {
        self.changed.notify_all();
        self.notify(notification);
    }

    /// Puts an entry back to the front.
    fn push_front(&self, op: Op) {
        self.state.with(op, State::push_front);
    }

    /// Wakes the threads that wait here and notifies the application, without adding an entry.
    pub(crate) fn signal(&self) {
        self.announce(self.state.with(false, State::signal));
    }

    /// Makes all waiting polls, or else the next one, return without a result.
    pub(crate) fn return_poll(&self) {
        self.announce(self.state.with(true, State::signal));
    }

    /// Writes to the application's descriptor, and calls its function.
    fn notify(&self, notification: Notification) {
        assert_none_held("a notification of the application");
        if let Some((descriptor, payload)) = notification.io {
            // A full pipe needs no further byte: it is readable.
            platform::write_once(descriptor, &payload);
        }
        if let (Some((callback, opaque)), Some(client)) = (notification.callback, self.owner()) {
            // SAFETY: the application's function gets the pointer that the application set.
            unsafe { callback(client.as_c(), opaque.0) };
        }
    }

    /// Returns a waker that signals the queue.
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(QueueWaker(Arc::downgrade(self))))
    }

    /// Returns the next entry that is not a record; waits until `until`.
    pub(crate) fn pop(self: &Arc<Self>, until: Option<Instant>) -> Option<Op> {
        if let Some(op) = self.state.with((), State::pop_here) {
            return Some(op);
        }
        let began = self.state.with((), State::since);
        loop {
            let queue = self.end();
            let popped = queue.waiting(|since| queue.state.wait(&queue.changed, until, since, State::pop));
            match popped {
                Some(Popped::Op(op)) => return Some(op),
                Some(Popped::Forwarded) if !self.state.with(began, State::is_returned) => {}
                Some(Popped::Forwarded | Popped::Nothing) | None => return None,
            }
        }
    }

    /// Returns the next entry that is here now. It takes no request to return away from the polls.
    pub(crate) fn pop_now(&self) -> Option<Op> {
        self.state.with((), State::pop_now)
    }

    /// Waits for a signal after `seen`.
    fn wait(&self, seen: u64, until: Option<Instant>) -> Waited {
        let waited = self.waiting(|since| {
            self.state.wait(&self.changed, until, (seen, since), |state, seen, wait| state.waited(seen, wait))
        });
        waited.unwrap_or(Waited::TimedOut)
    }

    /// Registers this thread as a waiting poll for the duration of a call.
    fn waiting<T>(&self, wait: impl FnOnce(Since) -> T) -> T {
        let since = self.state.with((), State::begin_waiting);
        let waited = wait(since);
        self.state.with((), State::stop_waiting);
        waited
    }

    /// Makes the polls that have begun to wait here, or for entries of this queue elsewhere, return without a result.
    pub(crate) fn end_waiting(&self) {
        self.state.with((), |state, ()| state.end_waiting());
        self.changed.notify_all();
    }

    /// Makes the polls that wait here look again where the entries go.
    fn note_forward(&self) {
        self.state.with((), State::note_forward);
        self.changed.notify_all();
    }

    /// Waits until the number of signals of this queue, which is not forwarded, is not `seen`.
    pub(crate) fn wait_signal(&self, seen: u64, until: Option<Instant>) {
        self.state.wait(&self.changed, until, seen, |state, seen, wait| state.signals_after(seen, wait));
    }

    /// Returns the number of signals of this queue, which is not forwarded.
    pub(crate) fn signals(&self) -> u64 {
        self.state.with((), State::signals)
    }

    /// Returns the number of entries.
    pub(crate) fn len(self: &Arc<Self>) -> usize {
        self.end().state.with((), State::len)
    }

    /// Returns the number of entries without reports, whose messages are counted elsewhere.
    pub(crate) fn len_without_reports(&self) -> usize {
        self.state.with((), State::len_without_reports)
    }

    /// Drops all entries when the client ends. No thread waits here afterwards.
    pub(crate) fn clear(&self) {
        let dropped = self.state.with((), State::clear);
        self.changed.notify_all();
        assert_none_held("the end of what a queue had");
        drop(dropped);
    }

    /// Sets or removes the queue to which this one is forwarded.
    pub(crate) fn forward(self: &Arc<Self>, to: Option<Arc<Self>>) {
        if to.as_ref().is_some_and(|to| Arc::ptr_eq(&to.end(), self)) {
            // A circle of forwards would swallow all entries.
            return;
        }
        let (moved, old) = self.state.with(Forward(to.clone()), State::set_forward);
        if let Some(old) = old {
            old.state.with(Feeder::Removed(Arc::as_ptr(self)), State::set_feeder);
            old.end().note_forward();
        }
        if let Some(to) = to {
            to.state.with(Feeder::Added(Arc::downgrade(self)), State::set_feeder);
            for op in moved {
                to.push(op);
            }
            self.note_forward();
            let end = to.end();
            if self.is_for_messages() {
                [to, Arc::clone(&end)].iter().for_each(|queue| queue.set_for_messages());
            }
            end.signal();
        }
    }
}

/// Returns a queue as a handle, or NULL.
pub(crate) fn raw(queue: Option<Arc<Queue>>) -> *const Queue {
    queue.map_or(ptr::null(), |queue| {
        queue.handles.fetch_add(1, Ordering::Relaxed);
        Arc::into_raw(queue)
    })
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({})", self.route)
    }
}
