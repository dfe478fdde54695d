//! Which thread runs an I/O thread's machines, and when it sleeps.
//!
//! ```text
//!   I/O thread        lock ─ machines ─ unlock ─ epoll_wait ─ lock ─ ...
//!   waiting thread    epoll_wait ─ try lock ─ machines ─ unlock ─ is the result there?
//!   sending thread    queues a record ─ try lock ─ machines ─ unlock ─ waits
//! ```
//!
//! Threads of clients with `io.on.waiting.threads` run machines for the time of one turn, and only if no other thread does;
//! otherwise they leave the work to the I/O thread. That one is always there: timers, and with them heartbeats, are its own.
//!
//! # Pitfalls
//!
//! - Machines call functions of the application: delivery callbacks, assignors, transports. While there is such a client on an I/O
//!   thread, no other thread runs the machines (`client_with_callbacks_keeps_waiting_threads_out`).
//! - A thread that has taken an event from the kernel has to handle it or to pass it on: it is reported once
//!   (`message_is_read_by_the_leader_or_by_the_io_thread`).

use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mio::{Events, Poll, Registry, Token, Waker, event::Event};
use ottla_core::{
    lock::Mutex,
    machine::Instant,
    wake::{Wake, WakeHandle},
};

use crate::{
    caller::{self, Call},
    cancel::Uncancelled,
    clock,
    lead::{Lead, Sleeper},
    mailbox::{Mailbox, Message},
    platform,
    process::Generation,
    reactor::{Reactor, WAKE_TOKEN},
};

/// The kernel's news of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The socket's token.
    pub token: Token,
    /// There are bytes to read.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The peer closed its side, or the connection failed.
    pub ending: bool,
}

/// One I/O thread: its machines, and what threads need to run them.
pub struct Driver {
    /// Unique in the process.
    number: u64,
    mailbox: Arc<Mailbox>,
    lead: Arc<Lead>,
    reactor: Mutex<Reactor>,
    /// The same kernel object as the I/O thread polls.
    registry: Registry,
    /// The number of clients whose machines call functions of the application.
    calling_out: AtomicUsize,
    /// Calls that a thread of the application left to the I/O thread.
    calls: Mutex<Vec<Call>>,
    /// Another thread has run the machines since the I/O thread slept last.
    has_led: AtomicBool,
    /// The time, in nanoseconds, until which the I/O thread sleeps.
    sleeps_until: AtomicU64,
}

/// The I/O threads of a process, in an order of the client's.
#[derive(Debug)]
pub struct Drivers {
    list: Vec<Arc<Driver>>,
    generation: Generation,
}

/// The presence of a client whose machines call functions of the application.
#[derive(Debug)]
pub struct CallingOut {
    drivers: Arc<Drivers>,
    is_counted: AtomicBool,
}

/// The most turns in a row on a thread of the application.
const TURNS: usize = 8;
/// The longest sleep of an I/O thread whose machines other threads run.
const LOOKING_AGAIN: Duration = Duration::from_secs(1);
/// Shorter waits are not worth a poll, whose time-out counts milliseconds.
const SHORTEST_POLL: Duration = Duration::from_millis(1);

impl Ready {
    fn new(event: &Event) -> Self {
        Self {
            token: event.token(),
            readable: event.is_readable(),
            writable: event.is_writable() || event.is_write_closed(),
            ending: event.is_read_closed() || event.is_error(),
        }
    }
}

/// The result of an attempt to run the machines on a thread of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing is left to do.
    Complete,
    /// The I/O thread has been woken to go on.
    Left,
    /// Another thread runs the machines, or only the I/O thread may.
    Refused,
}

/// Wakes a thread out of its poll.
struct Eventfd(Waker);

impl Wake for Eventfd {
    fn wake(&self) {
        let _uncancelled = Uncancelled::begin();
        // The write fails only if the counter is full, and then the thread wakes anyway.
        let _ = self.0.wake();
    }
}

/// Wakes the I/O thread, unless this thread is about to do its work.
struct UnlessOwed {
    number: u64,
    lead: Arc<Lead>,
}

impl Wake for UnlessOwed {
    fn wake(&self) {
        if !caller::owes(self.number) {
            self.lead.wake_io_thread();
        }
    }
}

/// Wakes the I/O thread if a thread of the application ends by a panic in the middle of its work.
struct WakeIfUnwinding<'a>(&'a Lead);

impl Drop for WakeIfUnwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.wake_io_thread();
        }
    }
}

impl Driver {
    /// Creates an I/O thread's data, and what it polls.
    pub fn new(number: u64) -> io::Result<(Arc<Self>, Poll)> {
        let poll = Poll::new()?;
        let waker = WakeHandle::new(Arc::new(Eventfd(Waker::new(poll.registry(), WAKE_TOKEN)?)));
        let lead = Arc::new(Lead::new(waker));
        let of_mailbox = WakeHandle::new(Arc::new(UnlessOwed { number, lead: Arc::clone(&lead) }));
        let mailbox = Arc::new(Mailbox::new(of_mailbox));
        let reactor = Reactor::new(poll.registry().try_clone()?, Arc::clone(&mailbox));
        let driver = Self {
            number,
            mailbox,
            lead,
            reactor: Mutex::new(reactor),
            registry: poll.registry().try_clone()?,
            calling_out: AtomicUsize::new(0),
            calls: Mutex::default(),
            has_led: AtomicBool::new(false),
            sleeps_until: AtomicU64::new(u64::MAX),
        };
        Ok((Arc::new(driver), poll))
    }

    /// Returns the number of the I/O thread.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the inbox.
    pub const fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    /// The I/O thread: runs until the runtime stops and nothing is left.
    pub fn run(&self, mut poll: Poll) {
        /// Ends what waits for the machines, also if they panic.
        struct Ending<'a>(&'a Driver);
        impl Drop for Ending<'_> {
            fn drop(&mut self) {
                self.0.reactor.lock().clear();
            }
        }
        caller::begin_io_thread(self.number);
        let _ending = Ending(self);
        let mut events = Events::with_capacity(256);
        let mut messages = Vec::new();
        loop {
            self.lead.begin_turn();
            self.make_calls();
            let mut reactor = self.reactor.lock();
            let now = clock::now();
            for event in events.iter().filter(|event| event.token() != WAKE_TOKEN) {
                reactor.handle_ready(now, Ready::new(event));
            }
            events.clear();
            self.mailbox.take(&mut messages);
            reactor.turn(now, &mut messages);
            if reactor.is_over() {
                return;
            }
            let timeout = self.timeout(&reactor);
            drop(reactor);
            let slept = self.mailbox.sleep(|may_block| match may_block {
                true if self.lead.stand_by(timeout) => Ok(()),
                true => poll.poll(&mut events, timeout),
                false => poll.poll(&mut events, Some(Duration::ZERO)),
            });
            match slept {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
                // epoll_wait fails only for an invalid descriptor, after which the thread can't continue.
                Err(_) => return,
            }
            self.lead.pass_on();
        }
    }

    /// Returns the time for which the I/O thread may sleep, and notes until when that is.
    fn timeout(&self, reactor: &Reactor) -> Option<Duration> {
        if reactor.is_unfinished() {
            return Some(Duration::ZERO);
        }
        let mut first = reactor.next_timer();
        if self.has_led.swap(false, Ordering::Relaxed) {
            // Otherwise each request of a leader, with its timeout, would have an earlier timer than this sleep.
            let soon = clock::now() + LOOKING_AGAIN;
            first = Some(first.map_or(soon, |first| first.min(soon)));
        }
        self.sleeps_until.store(first.map_or(u64::MAX, Instant::as_nanos), Ordering::Relaxed);
        first.map(|at| at.saturating_since(clock::now()))
    }

    /// Runs the machines on this thread, a thread of the application, or wakes the I/O thread.
    pub fn run_here(&self) {
        let _uncancelled = Uncancelled::begin();
        if self.try_turn(&[]) == Turn::Refused {
            self.lead.wake_io_thread();
        }
    }

    /// Polls in the place of the I/O thread, until there is an event, the thread is woken, or `timeout` has passed, and handles the
    /// events. Returns false if another thread leads or runs the machines, or this one must not.
    pub fn wait(&self, sleeper: &Sleeper, timeout: Duration) -> bool {
        if timeout < SHORTEST_POLL || self.calling_out.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let _uncancelled = Uncancelled::begin();
        let mut ready = Vec::new();
        let poll = || platform::poll(&self.registry, timeout, &mut ready);
        let Some((polled, leading)) = sleeper.sleep(&self.lead, poll) else { return false };
        let woken = ready.len();
        ready.retain(|ready: &Ready| ready.token != WAKE_TOKEN);
        let turn = if woken > 0 { self.try_turn(&ready) } else { Turn::Complete };
        if turn == Turn::Refused {
            for ready in ready {
                self.mailbox.post(Message::Ready(ready));
            }
            // The wake-up of an earlier message may have been among the events.
            self.lead.wake_io_thread();
        }
        drop(leading);
        // This thread would get the wake-up of the I/O thread itself if it polled again.
        turn == Turn::Complete && polled.unwrap_or(true)
    }

    /// Runs the machines on this thread, if no other thread does and none of them calls functions of the application. The I/O
    /// thread is woken for what is left.
    fn try_turn(&self, ready: &[Ready]) -> Turn {
        let Some(mut reactor) = self.reactor.try_lock() else { return Turn::Refused };
        if self.calling_out.load(Ordering::SeqCst) > 0 {
            return Turn::Refused;
        }
        self.has_led.store(true, Ordering::Relaxed);
        let _unwinding = WakeIfUnwinding(&self.lead);
        let mut is_left = false;
        let calls = caller::leading(self, || {
            let now = clock::now();
            for ready in ready {
                reactor.handle_ready(now, *ready);
            }
            is_left = self.turns(&mut reactor);
        });
        drop(reactor);
        if !calls.is_empty() {
            self.calls.lock().extend(calls);
        }
        // The I/O thread may get this wake-up late, if another thread leads: it has to go on with what is left, too.
        if is_left || !self.calls.lock().is_empty() {
            self.lead.wake_io_thread();
            return Turn::Left;
        }
        Turn::Complete
    }

    /// Makes the calls that threads of the application left to the I/O thread. A panic ends none of the others.
    fn make_calls(&self) {
        let calls = std::mem::take(&mut *self.calls.lock());
        for call in calls {
            let _ = catch_unwind(AssertUnwindSafe(call));
        }
    }

    /// Returns true if the I/O thread has to go on.
    fn turns(&self, reactor: &mut Reactor) -> bool {
        let mut messages = Vec::new();
        for _ in 0..TURNS {
            self.mailbox.claim();
            self.mailbox.take(&mut messages);
            // A client that is added now was counted before.
            if self.calling_out.load(Ordering::SeqCst) > 0 {
                self.mailbox.put_back(&mut messages);
                return true;
            }
            reactor.turn(clock::now(), &mut messages);
            if self.mailbox.claim() && !reactor.is_unfinished() {
                let first = reactor.next_timer().map_or(u64::MAX, Instant::as_nanos);
                return first < self.sleeps_until.load(Ordering::Relaxed);
            }
        }
        true
    }
}

impl Drivers {
    /// Numbers as many I/O threads in succession. Returns the first number.
    pub fn reserve(count: usize) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// The I/O threads of this process.
    pub fn new(list: Vec<Arc<Driver>>) -> Self {
        Self { list, generation: Generation::current() }
    }

    /// Returns the smallest number.
    pub fn first_number(&self) -> u64 {
        self.list.iter().map(|driver| driver.number).min().unwrap_or_default()
    }

    /// Returns how many there are.
    pub const fn count(&self) -> u64 {
        self.list.len() as u64
    }

    /// Returns the I/O threads.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Driver>> {
        self.list.iter()
    }

    /// Polls on this thread as `Driver::wait` does, in the place of the I/O thread that woke it last. Never in a forked child.
    pub fn wait(&self, sleeper: &Sleeper, last: Option<u64>, timeout: Duration) -> bool {
        if !self.generation.is_current() || caller::running().is_some() {
            return false;
        }
        let driver =
            self.list.iter().find(|driver| Some(driver.number) == last).or_else(|| self.list.first());
        driver.is_some_and(|driver| driver.wait(sleeper, timeout))
    }
}

impl CallingOut {
    /// A client that does not call out yet.
    pub const fn new(drivers: Arc<Drivers>) -> Self {
        Self { drivers, is_counted: AtomicBool::new(false) }
    }

    /// From now on the client's machines call functions of the application: only I/O threads run them.
    pub fn begin(&self) {
        if !self.is_counted.swap(true, Ordering::SeqCst) {
            for driver in self.drivers.iter() {
                driver.calling_out.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

impl Drop for CallingOut {
    fn drop(&mut self) {
        if *self.is_counted.get_mut() {
            for driver in self.drivers.iter() {
                driver.calling_out.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({})", self.number)
    }
}
