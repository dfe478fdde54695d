//! `rd_kafka_queue_t`: what waits for the application, and who is woken when something comes.
//!
//! A queue has entries of its own ([`Op`]) and, if it belongs to a consumer, is a way out for fetched records: it asks the
//! consumer for what goes its route when it has nothing else ([`Fetched`]). A forwarded queue is only a name for another one.

use std::{
    cell::Cell,
    collections::VecDeque,
    ffi::{c_int, c_void},
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Wake, Waker},
    time::Instant,
};

use ottla::Consumer;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::{
    boundary::{Blamed, Handle, Opaque, Tag, guarded_for, guarded_local, handle},
    client::Client,
    codes::code,
    debug::Contexts,
    event::Event,
    fetched::Fetched,
    graves::{self, Counted, Graves},
    interceptors::kind,
    op::{ErrorMessage, Op},
    time::{Patience, deadline, past},
    types::rd_kafka_message_t,
};

/// A queue.
#[repr(C)]
pub struct Queue {
    tag: Tag,
    /// References that the application has: it can't give up more than it got.
    handles: AtomicUsize,
    /// The route of fetched records that come here; 0 is the consumer's queue.
    route: u64,
    client: OnceLock<Weak<Client>>,
    state: Mutex<State>,
    ready: Condvar,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Queue {
    const KIND: u32 = 0x6f74_7101;
}

static GRAVES: Graves = Graves::new();

// SAFETY: see `drop` and `with_route`.
unsafe impl Counted for Queue {
    fn graves() -> &'static Graves {
        &GRAVES
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tag.clear();
        graves::end(self);
    }
}

type NotifyCb = unsafe extern "C" fn(*const Client, *mut c_void);

#[derive(Default)]
struct State {
    ops: VecDeque<Op>,
    forward: Option<Arc<Queue>>,
    /// Queues that are forwarded here.
    feeders: Vec<Weak<Queue>>,
    fetched: Fetched,
    io: Option<(c_int, Vec<u8>)>,
    notify: Option<(NotifyCb, Opaque)>,
    is_yielded: bool,
    /// The client goes: nobody waits here any more.
    is_over: bool,
    /// Threads that wait here.
    waiting: usize,
    /// Counts what happened, for who waits for anything at all.
    signals: u64,
}

thread_local! {
    static YIELD: Cell<bool> = const { Cell::new(false) };
}

/// True if the callback that just returned asked its poll to return.
pub(crate) fn take_yield() -> bool {
    YIELD.replace(false)
}

/// Wakes who waits at a queue.
struct QueueWaker(Weak<Queue>);

impl Wake for QueueWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(queue) = self.0.upgrade() {
            queue.signal();
        }
    }
}

impl Queue {
    /// A queue; the route is its own.
    pub(crate) fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self::with_route(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// A queue for what goes a route.
    pub(crate) fn with_route(route: u64) -> Arc<Self> {
        graves::begin(Arc::new(Self {
            tag: Tag::of::<Self>(),
            handles: AtomicUsize::new(0),
            route,
            client: OnceLock::new(),
            state: Mutex::default(),
            ready: Condvar::new(),
        }))
    }

    pub(crate) fn set_client(&self, client: Weak<Client>) {
        let _ = self.client.set(client);
    }

    pub(crate) const fn route(&self) -> u64 {
        self.route
    }

    pub(crate) fn client(&self) -> Option<Arc<Client>> {
        self.client.get()?.upgrade()
    }

    /// The queue behind a handle.
    ///
    /// # Safety
    ///
    /// NULL or a queue of this library.
    pub(crate) unsafe fn of(queue: *const Self) -> Option<Arc<Self>> {
        // SAFETY: as the caller says.
        unsafe { graves::counted(queue) }
    }

    /// Where things really are: this queue or the one it is forwarded to in the end.
    fn end(self: &Arc<Self>) -> Arc<Self> {
        let mut queue = Arc::clone(self);
        // A circle of forwards has no end: nobody follows it for ever.
        for _ in 0..16 {
            let next = queue.state.lock().forward.clone();
            match next {
                Some(next) => queue = next,
                None => break,
            }
        }
        queue
    }

    /// Appends an entry.
    pub(crate) fn push(self: &Arc<Self>, op: Op) {
        let queue = self.end();
        let notify = {
            let mut state = queue.state.lock();
            let was_empty = state.ops.is_empty();
            state.ops.push_back(op);
            state.signals += 1;
            queue.ready.notify_all();
            if was_empty { state.notification() } else { None }
        };
        queue.notify(notify);
    }

    /// Puts an entry back to the front.
    fn push_front(&self, op: Op) {
        self.state.lock().ops.push_front(op);
    }

    /// Something happened that is no entry.
    pub(crate) fn signal(&self) {
        let notify = {
            let mut state = self.state.lock();
            state.signals += 1;
            self.ready.notify_all();
            state.notification()
        };
        self.notify(notify);
    }

    /// Makes the poll that waits, or else the next one, return without anything.
    pub(crate) fn return_poll(&self) {
        self.state.lock().is_yielded = true;
        self.signal();
    }

    fn notify(&self, notification: Option<(NotifyCb, Opaque)>) {
        if let (Some((callback, opaque)), Some(client)) = (notification, self.client()) {
            // SAFETY: the application's function with the pointer that it gave.
            unsafe { callback(Arc::as_ptr(&client), opaque.0) };
        }
    }

    /// A waker that signals the queue.
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(QueueWaker(Arc::downgrade(self))))
    }

    /// The next entry that is no record, waiting until `until`.
    pub(crate) fn pop(self: &Arc<Self>, until: Option<Instant>) -> Option<Op> {
        let queue = self.end();
        let mut state = queue.state.lock();
        loop {
            if let Some(op) = state.ops.pop_front() {
                return Some(op);
            }
            if state.takes_return() || !queue.wait(&mut state, until) {
                return None;
            }
        }
    }

    /// Waits for a signal; false if the time is over before.
    fn wait(&self, state: &mut MutexGuard<'_, State>, until: Option<Instant>) -> bool {
        state.waiting += 1;
        let is_signalled = match until {
            None => {
                self.ready.wait(state);
                true
            }
            Some(until) => !self.ready.wait_until(state, until).timed_out(),
        };
        state.waiting -= 1;
        is_signalled
    }

    /// Nobody has the queue any more but who waits at it: that wait is over.
    fn end_waiting(&self) {
        let mut state = self.state.lock();
        if state.waiting > 0 {
            state.is_yielded = true;
            self.ready.notify_all();
        }
    }

    /// Waits until something happens that was not known at `seen`; answers what is known then.
    pub(crate) fn wait_signal(self: &Arc<Self>, seen: u64, until: Option<Instant>) -> u64 {
        let queue = self.end();
        let mut state = queue.state.lock();
        if state.signals == seen {
            queue.wait(&mut state, until);
        }
        state.signals
    }

    pub(crate) fn signals(self: &Arc<Self>) -> u64 {
        self.end().state.lock().signals
    }

    /// Serves entries by callbacks: waits for the first one, and takes those that are there then.
    pub(crate) fn serve(self: &Arc<Self>, client: &Client, timeout_ms: c_int) -> c_int {
        let mut served = 0;
        let mut until = if timeout_ms == 0 { Some(past()) } else { deadline(timeout_ms) };
        while let Some(op) = self.pop(until) {
            until = Some(past());
            served += 1;
            if let Some(rest) = client.serve(op) {
                self.end().push_front(rest);
                break;
            }
            if take_yield() || client.is_closing() {
                break;
            }
        }
        served
    }

    /// The next record or error of a partition as a message, for as long as there is patience. Other entries are served on the
    /// way.
    pub(crate) fn pop_message(
        self: &Arc<Self>,
        client: &Client,
        patience: &mut Patience,
    ) -> Option<*mut rd_kafka_message_t> {
        let mut one = [ptr::null_mut()];
        (self.pop_messages(client, patience, &mut one, false) == 1).then_some(one[0])
    }

    /// Up to as many messages as `into` has places, for as long as there is patience; with `all` until they are all there.
    pub(crate) fn pop_messages(
        self: &Arc<Self>,
        client: &Client,
        patience: &mut Patience,
        into: &mut [*mut rd_kafka_message_t],
        all: bool,
    ) -> usize {
        if !client.interceptors().has(kind::CONSUME) {
            return self.take_messages(client, patience, into, all);
        }
        // A callback may destroy the client.
        let held = client.weak().upgrade();
        let count = self.take_messages(client, patience, into, all);
        into[..count].iter().for_each(|message| client.intercept_message(kind::CONSUME, *message));
        drop(held);
        count
    }

    fn take_messages(
        self: &Arc<Self>,
        client: &Client,
        patience: &mut Patience,
        into: &mut [*mut rd_kafka_message_t],
        all: bool,
    ) -> usize {
        let consumer = client.consumer();
        let mut count = 0;
        // A callback may destroy the client.
        let mut held = None;
        let (mut queue, mut end) = (self, None);
        let mut state = queue.state.lock();
        if state.forward.is_some() {
            drop(state);
            queue = end.insert(self.end());
            state = queue.state.lock();
        }
        while count < into.len() {
            if let Some(op) = state.ops.pop_front() {
                match op {
                    Op::Message(message) => {
                        into[count] = message.take();
                        count += 1;
                    }
                    op => {
                        drop(state);
                        // A callback's time counts.
                        patience.until();
                        if held.is_none() {
                            held = client.weak().upgrade();
                        }
                        if let Some(rest) = client.serve(op) {
                            queue.push_front(rest);
                            return count;
                        }
                        if take_yield() || client.is_closing() {
                            return count;
                        }
                        state = queue.state.lock();
                    }
                }
                continue;
            }
            let Some(consumer) = consumer else { break };
            if let Some(message) = state.fetched.next(consumer, client) {
                into[count] = message;
                count += 1;
                continue;
            }
            if let Some(op) = state.fetched.next_event(client) {
                state.ops.extend(op);
                continue;
            }
            if queue.pull(&mut state, consumer) {
                continue;
            }
            if count > 0 && !all || state.takes_return() {
                break;
            }
            if held.is_none() {
                // Another thread may destroy the client, who waits does not.
                held = client.weak().upgrade();
            }
            if !queue.wait(&mut state, patience.until()) {
                break;
            }
        }
        count
    }

    /// Takes what came for this queue from the consumer; false if there is nothing, and the queue will be signalled.
    fn pull(self: &Arc<Self>, state: &mut State, consumer: &Consumer) -> bool {
        let mut routes = vec![self.route];
        collect_routes(&state.feeders, &mut routes, 0);
        for route in &routes {
            let records = consumer.take(*route, 1);
            if !records.is_empty() || records.piece_count() > 0 {
                state.fetched.add(records);
                return true;
            }
        }
        let waker = self.waker();
        // What came between the two looks is found by the second.
        !routes.iter().all(|route| consumer.register(*route, &waker)) && !consumer.is_closed()
    }

    /// How many entries wait.
    pub(crate) fn len(self: &Arc<Self>) -> usize {
        let queue = self.end();
        let state = queue.state.lock();
        let ops: usize =
            state.ops.iter().map(|op| if let Op::Delivery(batch) = op { batch.len() } else { 1 }).sum();
        ops + state.fetched.len()
    }

    /// How many entries wait, without reports: their messages are counted elsewhere.
    pub(crate) fn len_without_reports(&self) -> usize {
        self.state.lock().ops.iter().filter(|op| !matches!(op, Op::Delivery(_))).count()
    }

    /// Drops everything, because the client goes. Who waits here waits no longer.
    pub(crate) fn clear(&self) {
        let (ops, fetched) = {
            let mut state = self.state.lock();
            state.is_over = true;
            state.signals += 1;
            self.ready.notify_all();
            state.forward = None;
            (std::mem::take(&mut state.ops), std::mem::take(&mut state.fetched))
        };
        drop((ops, fetched));
    }

    /// Sends what comes here on to another queue, or no longer.
    pub(crate) fn forward(self: &Arc<Self>, to: Option<Arc<Self>>) {
        if to.as_ref().is_some_and(|to| Arc::ptr_eq(&to.end(), self)) {
            // A circle would swallow everything.
            return;
        }
        let (moved, old) = {
            let mut state = self.state.lock();
            let old = std::mem::replace(&mut state.forward, to.clone());
            (if to.is_some() { std::mem::take(&mut state.ops) } else { VecDeque::new() }, old)
        };
        if let Some(old) = old {
            old.state.lock().feeders.retain(|feeder| !std::ptr::eq(feeder.as_ptr(), Arc::as_ptr(self)));
        }
        if let Some(to) = to {
            to.state.lock().feeders.push(Arc::downgrade(self));
            for op in moved {
                to.push(op);
            }
            to.end().signal();
        }
    }

    /// The next entry as an event.
    pub(crate) fn pop_event(self: &Arc<Self>, client: &Client, timeout_ms: c_int) -> Option<Event> {
        let until = if timeout_ms == 0 { Some(past()) } else { deadline(timeout_ms) };
        if client.consumer().is_none() {
            return self.pop(until).map(|op| Event::of(op, client));
        }
        let queue = self.end();
        loop {
            let mut state = queue.state.lock();
            if let Some(op) = state.ops.pop_front() {
                return Some(Event::of(op, client));
            }
            drop(state);
            let mut one = [ptr::null_mut()];
            // An entry that is no record is left for the next round.
            if self.pop_record(client, until, &mut one) {
                if client.interceptors().has(kind::CONSUME) {
                    client.intercept_message(kind::CONSUME, one[0]);
                }
                return Some(Event::of(Op::Message(ErrorMessage(one[0])), client));
            }
            state = queue.state.lock();
            if state.ops.is_empty() {
                return None;
            }
        }
    }

    /// A record, or false if there is an entry of another kind or nothing.
    fn pop_record(
        self: &Arc<Self>,
        client: &Client,
        until: Option<Instant>,
        one: &mut [*mut rd_kafka_message_t; 1],
    ) -> bool {
        let queue = self.end();
        let Some(consumer) = client.consumer() else { return false };
        let mut state = queue.state.lock();
        loop {
            if !state.ops.is_empty() {
                return false;
            }
            if let Some(message) = state.fetched.next(consumer, client) {
                one[0] = message;
                return true;
            }
            if let Some(op) = state.fetched.next_event(client) {
                state.ops.extend(op);
                continue;
            }
            if !queue.pull(&mut state, consumer) && (state.takes_return() || !queue.wait(&mut state, until)) {
                return false;
            }
        }
    }
}

fn collect_routes(feeders: &[Weak<Queue>], routes: &mut Vec<u64>, depth: usize) {
    for feeder in feeders.iter().filter_map(Weak::upgrade) {
        routes.push(feeder.route);
        if depth < 16 {
            collect_routes(&feeder.state.lock().feeders, routes, depth + 1);
        }
    }
}

impl State {
    /// True if a poll is to return without anything: it was asked to, or nothing can come any more.
    fn takes_return(&mut self) -> bool {
        std::mem::take(&mut self.is_yielded) || self.is_over
    }

    /// Writes to the application's descriptor; answers the callback that is to be called without the lock.
    fn notification(&self) -> Option<(NotifyCb, Opaque)> {
        if let Some((descriptor, payload)) = &self.io {
            // SAFETY: the payload has so many bytes. A full pipe is fine: it is readable then.
            unsafe { libc::write(*descriptor, payload.as_ptr().cast(), payload.len()) };
        }
        self.notify
    }
}

impl Blamed for *const Queue {
    fn blame(self, text: &str) {
        // SAFETY: as for a client.
        if let Some(client) = unsafe { Queue::of(self) }.and_then(|queue| queue.client()) {
            client.set_fatal(code::_FAIL, text);
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({})", self.route)
    }
}

/// A queue as a handle, or NULL.
pub(crate) fn raw(queue: Option<Arc<Queue>>) -> *const Queue {
    queue.map_or(ptr::null(), |queue| {
        queue.handles.fetch_add(1, Ordering::Relaxed);
        Arc::into_raw(queue)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_new(rk: *const Client) -> *const Queue {
    guarded_for(rk, ptr::null(), || {
        // SAFETY: NULL or a client, says the caller.
        raw(unsafe { Client::of(rk) }.map(|client| {
            let queue = Queue::new();
            queue.set_client(client.weak());
            client.adopt_queue(&queue);
            queue
        }))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_destroy(queue: *const Queue) {
    guarded_local((), || {
        // SAFETY: NULL or a queue, says the caller, who gives its reference up.
        unsafe {
            let Some(given_up) = handle::<Queue>(queue) else { return };
            let one_less = |handles: usize| handles.checked_sub(1);
            let before = given_up.handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less);
            let Ok(before) = before else { return };
            let queue = Arc::from_raw(queue);
            if before == 1 && !queue.client().is_some_and(|client| client.serves(&queue)) {
                queue.end_waiting();
            }
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_get_main(rk: *const Client) -> *const Queue {
    // SAFETY: NULL or a client, says the caller.
    guarded_for(rk, ptr::null(), || raw(unsafe { Client::of(rk) }.map(|client| Arc::clone(client.main()))))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_get_consumer(rk: *const Client) -> *const Queue {
    guarded_for(rk, ptr::null(), || {
        // SAFETY: NULL or a client, says the caller.
        raw(unsafe { Client::of(rk) }.and_then(|client| client.consumer_queue().cloned()))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_forward(src: *const Queue, dst: *const Queue) {
    guarded_for(src, (), || {
        // SAFETY: NULL or queues, says the caller.
        unsafe {
            if let Some(src) = Queue::of(src) {
                if let Some(client) = src.client() {
                    let to = if dst.is_null() { "nowhere, and polled itself" } else { "another one" };
                    client.debug(Contexts::QUEUE, c"FORWARD", || format!("A queue is forwarded to {to}"));
                }
                src.forward(Queue::of(dst));
            }
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_length(queue: *const Queue) -> usize {
    // SAFETY: NULL or a queue, says the caller.
    guarded_for(queue, 0, || unsafe { Queue::of(queue) }.map_or(0, |queue| queue.len()))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_io_event_enable(
    queue: *const Queue,
    fd: c_int,
    payload: *const c_void,
    size: usize,
) {
    guarded_for(queue, (), || {
        // SAFETY: NULL or a queue, and bytes, says the caller.
        unsafe {
            let Some(queue) = Queue::of(queue) else { return };
            let bytes = crate::boundary::bytes(payload, size).unwrap_or_default().to_vec();
            queue.end().state.lock().io = (fd >= 0).then_some((fd, bytes));
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_cb_event_enable(
    queue: *const Queue,
    event_cb: Option<NotifyCb>,
    opaque: *mut c_void,
) {
    guarded_for(queue, (), || {
        // SAFETY: NULL or a queue, says the caller.
        if let Some(queue) = unsafe { Queue::of(queue) } {
            queue.end().state.lock().notify = event_cb.map(|callback| (callback, Opaque(opaque)));
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_yield(queue: *const Queue) {
    guarded_for(queue, (), || {
        // SAFETY: NULL or a queue, says the caller.
        if let Some(queue) = unsafe { Queue::of(queue) } {
            queue.end().return_poll();
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_yield(_: *const Client) {
    YIELD.set(true);
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_poll(queue: *const Queue, timeout_ms: c_int) -> *mut Event {
    guarded_for(queue, ptr::null_mut(), || {
        // SAFETY: NULL or a queue, says the caller.
        let Some(queue) = (unsafe { Queue::of(queue) }) else { return ptr::null_mut() };
        let Some(client) = queue.client() else { return ptr::null_mut() };
        queue.pop_event(&client, timeout_ms).map_or(ptr::null_mut(), |event| Box::into_raw(Box::new(event)))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_poll_callback(queue: *const Queue, timeout_ms: c_int) -> c_int {
    guarded_for(queue, 0, || {
        // SAFETY: NULL or a queue, says the caller.
        let Some(queue) = (unsafe { Queue::of(queue) }) else { return 0 };
        queue.client().map_or(0, |client| queue.serve(&client, timeout_ms))
    })
}
