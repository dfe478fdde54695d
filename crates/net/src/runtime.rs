//! The I/O threads of a process, shared by all of its clients, and how a client is started on them.
//!
//! # Pitfalls
//!
//! - Joining a thread waits for everything that the thread calls, application callbacks included. The last client waits
//!   for the I/O threads with a deadline and leaves a stuck one behind
//!   (`calls_end_in_time_when_a_callback_does_not_return`).

use std::{
    any::Any,
    cell::Cell,
    fmt, io,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ottla_core::{
    broker::BrokerParts,
    callback::{CallbackPanic, panic_text},
    cluster::{
        ClusterCore, ClusterSettings,
        command::{Command, CommandQueue},
    },
    completion::{Completion, Waiting, completion},
    config::{AddressFamily, EffectiveConfig},
    contract::broker::BrokerKey,
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    lock::Mutex,
    rng::Rng,
    wake::WakeHandle,
};

use crate::{
    caller::{self, InCaller},
    driver::{CallingOut, Driver, Drivers},
    mailbox::{Actor, ActorWaker, Mailbox, Message},
    process::{Generation, PerProcess, watch_forks},
    resolver::Resolver,
    tls::TlsContext,
    transport::Transport,
    workers::WorkerPool,
};

/// Identifies a client within the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u64);

/// The I/O threads. They start with the first client and end with the last.
pub struct Runtime {
    drivers: Vec<Arc<Driver>>,
    threads: Mutex<Vec<IoThread>>,
    /// True after a client did not end in time because a function of the application blocks one of the threads.
    is_given_up: AtomicBool,
    pub(crate) resolver: Resolver,
    /// Always there until the runtime is dropped.
    workers: Option<WorkerPool>,
    next_client: AtomicU64,
    generation: Generation,
}

/// A thread, and a channel that closes when the thread has ended.
struct IoThread {
    handle: JoinHandle<()>,
    ended: mpsc::Receiver<()>,
}

/// The time for a last push of client metrics when a client is dropped.
const LAST_PUSH: Duration = Duration::from_secs(1);
/// The time that the last client waits for the I/O threads to end.
const ENDING: Duration = Duration::from_secs(10);
/// The same, after some threads were abandoned: the others end quickly.
const ENDING_WITHOUT_SOME: Duration = Duration::from_millis(200);

/// The I/O threads on which a client's actors run.
pub struct ClientRoute {
    /// The client.
    pub client: ClientId,
    pub(crate) runtime: Weak<Runtime>,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    pub(crate) parts: Arc<BrokerParts>,
    pub(crate) sockets: SocketSettings,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) tls: Option<Arc<TlsContext>>,
    done: Mutex<Option<Completion<()>>>,
    events: Arc<EventQueue>,
    _calling_out: Arc<CallingOut>,
    /// The panic that ended the client, if one did.
    broken: OnceLock<Error>,
    /// The number of cleanups of a broken client that are still to come: two per I/O thread.
    clearings_left: AtomicUsize,
}

/// Options of sockets.
#[derive(Clone, Debug)]
pub struct SocketSettings {
    /// `broker.address.family`.
    pub family: AddressFamily,
    /// `socket.nagle.disable`.
    pub no_delay: bool,
    /// `socket.keepalive.enable`.
    pub keepalive: bool,
    /// `socket.send.buffer.bytes`.
    pub send_buffer_bytes: Option<usize>,
    /// `socket.receive.buffer.bytes`.
    pub receive_buffer_bytes: Option<usize>,
}

impl Default for SocketSettings {
    fn default() -> Self {
        Self {
            family: AddressFamily::Any,
            no_delay: true,
            keepalive: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}

impl SocketSettings {
    /// Reads the settings from the configuration.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        Self {
            family: AddressFamily::new(config),
            no_delay: config.boolean("socket.nagle.disable"),
            keepalive: config.boolean("socket.keepalive.enable"),
            send_buffer_bytes: config.positive("socket.send.buffer.bytes"),
            receive_buffer_bytes: config.positive("socket.receive.buffer.bytes"),
        }
    }
}

/// The settings and shared state from which a client is started.
#[derive(Debug)]
pub struct ClientParts {
    /// The cluster actor's settings.
    pub cluster: ClusterSettings,
    /// The settings of the broker actors, with the shared halves of producer and consumer.
    pub broker: BrokerParts,
    /// Options of sockets.
    pub sockets: SocketSettings,
    /// Creates the sockets.
    pub transport: Arc<dyn Transport>,
    /// Certificates and algorithms, if the connections use TLS.
    pub tls: Option<Arc<TlsContext>>,
    /// The queue for errors that belong to no call.
    pub events: Arc<EventQueue>,
    /// The seed of all random numbers of the client.
    pub seed: u64,
    /// `io.on.waiting.threads`.
    pub leads: bool,
    /// Whether the client's machines call functions of the application, besides wakers.
    pub calls_out: bool,
}

/// A running client.
#[derive(Debug)]
pub struct ClientHandle {
    commands: Arc<CommandQueue>,
    done: Mutex<Option<Waiting<()>>>,
    /// The I/O threads, if threads that wait may do their work.
    leading: Option<Arc<Drivers>>,
    calling_out: Arc<CallingOut>,
    // Keeps the threads running.
    runtime: Arc<Runtime>,
}

static RUNTIME: PerProcess<Mutex<Weak<Runtime>>> = PerProcess::new();

impl Runtime {
    /// Returns the process's runtime, and starts it if needed.
    pub fn get() -> io::Result<Arc<Self>> {
        watch_forks();
        let mut current = RUNTIME.get().lock();
        if let Some(runtime) = current.upgrade() {
            return Ok(runtime);
        }
        let runtime = Arc::new(Self::start(default_threads(), default_workers())?);
        *current = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// Returns the number of I/O threads.
    pub fn threads(&self) -> usize {
        self.drivers.len()
    }

    /// Returns the number of threads that all clients of this process share, with those of the resolver and of the
    /// codecs; zero without clients.
    pub fn running_threads() -> usize {
        let runtime = RUNTIME.get().lock().upgrade();
        runtime.map_or(0, |runtime| {
            let codecs = runtime.workers.as_ref().map_or(0, WorkerPool::running);
            runtime.threads() + usize::from(runtime.resolver.is_running()) + codecs
        })
    }

    /// Starts a client on the threads.
    pub fn start_client(self: &Arc<Self>, parts: ClientParts) -> ClientHandle {
        let client = ClientId(self.next_client.fetch_add(1, Ordering::Relaxed));
        let (done, waiting) = completion();
        let mut drivers = self.drivers.clone();
        let count = drivers.len();
        let workers = self.workers.as_ref().and_then(WorkerPool::workers);
        if let (Some(producer), Some(workers)) = (&parts.broker.producer, workers) {
            producer.set_workers(workers);
        }
        drivers.rotate_left(client.0 as usize % count);
        let mailboxes: Vec<_> = drivers.iter().map(|driver| Arc::clone(driver.mailbox())).collect();
        let drivers = Arc::new(Drivers::new(drivers));
        let ClientParts { cluster, broker, sockets, transport, tls, events, seed, leads, calls_out } = parts;
        let calling_out = Arc::new(CallingOut::new(Arc::clone(&drivers)));
        if calls_out {
            calling_out.begin();
        }
        let home = Arc::clone(&mailboxes[0]);
        let wake = WakeHandle::new(Arc::new(ActorWaker::new(Arc::clone(&home), Actor::Cluster(client))));
        let (commands, reader) = CommandQueue::new(wake);
        let route = Arc::new(ClientRoute {
            client,
            runtime: Arc::downgrade(self),
            mailboxes,
            parts: Arc::new(broker),
            sockets,
            transport,
            tls,
            done: Mutex::new(Some(done)),
            events: Arc::clone(&events),
            _calling_out: Arc::clone(&calling_out),
            broken: OnceLock::new(),
            clearings_left: AtomicUsize::new(2 * count),
        });
        let core = ClusterCore::new(
            cluster,
            route.parts.producer.clone(),
            route.parts.consumer.clone(),
            reader,
            events,
            Rng::from_seed(seed),
        );
        home.post(Message::AddCluster(Box::new(core), route));
        let leading = leads.then_some(drivers);
        let done = Mutex::new(Some(waiting));
        ClientHandle { commands, done, leading, calling_out, runtime: Arc::clone(self) }
    }

    /// Stops using a runtime with a blocked thread: no further client is started on it.
    fn give_up(self: &Arc<Self>) {
        self.is_given_up.store(true, Ordering::Relaxed);
        let mut current = RUNTIME.get().lock();
        if std::ptr::eq(current.as_ptr(), Arc::as_ptr(self)) {
            *current = Weak::new();
        }
    }

    fn start(threads: usize, workers: usize) -> io::Result<Self> {
        let mut drivers = Vec::new();
        let mut handles = Vec::new();
        let first = Drivers::reserve(threads);
        for index in 0..threads {
            let (driver, poll) = Driver::new(first + index as u64)?;
            drivers.push(Arc::clone(&driver));
            let (ends, ended) = mpsc::channel::<()>();
            let handle = thread::Builder::new().name(format!("ottla-io-{index}")).spawn(move || {
                IS_IO_THREAD.set(true);
                driver.run(poll);
                drop(ends);
            })?;
            handles.push(IoThread { handle, ended });
        }
        Ok(Self {
            drivers,
            threads: Mutex::new(handles),
            is_given_up: AtomicBool::new(false),
            resolver: Resolver::default(),
            workers: Some(WorkerPool::new(workers)),
            next_client: AtomicU64::new(0),
            generation: Generation::current(),
        })
    }
}

thread_local! {
    static IS_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on an I/O thread, which must not wait for what I/O threads do.
pub fn is_io_thread() -> bool {
    // The thread-local does not exist any more while the thread exits; then the thread does no I/O.
    IS_IO_THREAD.try_with(Cell::get).unwrap_or(false)
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            // The threads belong to the parent, and so does their waker. Their locks may stay locked here.
            std::mem::forget(self.workers.take());
            return;
        }
        for driver in &self.drivers {
            driver.mailbox().post(Message::Stop);
        }
        let timeout = if *self.is_given_up.get_mut() { ENDING_WITHOUT_SOME } else { ENDING };
        let until = Instant::now() + timeout;
        for IoThread { handle, ended } in self.threads.get_mut().drain(..) {
            // A callback may drop the last client, on the very thread that would be joined.
            if handle.thread().id() == thread::current().id() {
                continue;
            }
            // A thread that is blocked in a function of the application is abandoned. It owns everything that it uses,
            // and ends when the function returns.
            let left = until.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Disconnected) {
                // A thread that panicked has already reported it.
                let _ = handle.join();
            }
        }
    }
}

impl ClientRoute {
    /// Returns the inbox of the thread that runs a broker actor.
    pub(crate) fn mailbox_of(&self, key: BrokerKey) -> &Arc<Mailbox> {
        &self.mailboxes[key.0 as usize % self.mailboxes.len()]
    }

    /// Returns the inbox of the thread that runs the cluster actor.
    pub(crate) fn home(&self) -> &Arc<Mailbox> {
        &self.mailboxes[0]
    }

    /// Returns the error of a broken client.
    pub(crate) fn broken(&self) -> Option<&Error> {
        self.broken.get()
    }

    /// Breaks the client after a panic: further calls fail, the application gets the error, and all I/O threads drop
    /// their part of the client. Other clients continue.
    pub(crate) fn break_down(self: &Arc<Self>, panic: &(dyn Any + Send)) {
        let error = match panic.downcast_ref::<CallbackPanic>() {
            Some(CallbackPanic(error)) => error.clone(),
            None => {
                let text = panic_text(panic);
                let detail = format!("a part of the client panicked, please report it: {text}");
                Error::new(ErrorKind::Bug, detail)
            }
        };
        if self.broken.set(error).is_err() {
            return;
        }
        let Some(error) = self.broken.get() else { return };
        if let Some(producer) = &self.parts.producer {
            producer.close(Some(error.clone()));
        }
        self.post_abandon();
        self.events.push(Event::Fatal(error.clone()));
    }

    fn post_abandon(self: &Arc<Self>) {
        for mailbox in &self.mailboxes {
            mailbox.post(Message::Abandon(Arc::clone(self)));
        }
    }

    /// Counts a thread's cleanup of the broken client. The last one fails the remaining records and requests.
    ///
    /// Each thread cleans up twice. After the first round no actor is left that could send a message; after the second
    /// round all messages in flight have been dropped, with their batches.
    pub(crate) fn abandoned(self: &Arc<Self>) {
        let left = self.clearings_left.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == self.mailboxes.len() {
            return self.post_abandon();
        }
        if left > 0 {
            return;
        }
        if let (Some(producer), Some(error)) = (&self.parts.producer, self.broken.get()) {
            producer.abandon(error);
        }
        if let Some(consumer) = &self.parts.consumer {
            consumer.queue.close();
        }
        self.finish();
    }

    /// Marks the client as ended.
    pub(crate) fn finish(&self) {
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.resolver.leave(self.client);
        }
        if let Some(done) = self.done.lock().take() {
            done.complete(());
        }
    }
}

impl ClientHandle {
    /// Sends a command to the cluster actor. Returns false if the client is closed, and in a forked child, which has no I/O
    /// threads: the command is dropped, which ends the wait for its result.
    pub fn command(&self, command: Command) -> bool {
        self.is_of_this_process() && self.commands.push(command)
    }

    /// Returns false in a forked child of the process that started the client.
    pub fn is_of_this_process(&self) -> bool {
        self.runtime.generation.is_current()
    }

    /// Returns the command queue, for parts of the client that keep it.
    pub fn commands(&self) -> &Arc<CommandQueue> {
        &self.commands
    }

    /// Returns true after the first call of [`ClientHandle::close`], and in a forked child: commands are not read any
    /// more.
    pub fn is_closing(&self) -> bool {
        !self.is_of_this_process() || self.done.lock().is_none()
    }

    /// Begins to close. A last push of client metrics may take `timeout`, but not longer than a second. The returned future
    /// resolves when no part of the client runs any more; only the first caller gets it.
    pub fn close(&self, timeout: Duration) -> Option<Waiting<()>> {
        if !self.is_of_this_process() {
            return None;
        }
        let waiting = self.done.lock().take();
        if waiting.is_some() {
            self.commands.push(Command::Close { timeout });
        }
        waiting
    }

    /// Returns the number of threads that the process's clients share.
    pub fn threads(&self) -> usize {
        self.runtime.threads()
    }

    /// Begins a call of the application that may give the I/O threads work, which this thread then does itself; `None` if the
    /// client's threads don't, or not now. With `waits` the call is known to wait at its end; otherwise the thread's habits count.
    #[inline]
    pub fn in_caller(&self, waits: bool) -> Option<InCaller<'_>> {
        let drivers = self.leading.as_deref()?;
        let expects_wait = waits || caller::notes_send();
        let may_work = self.is_of_this_process() && caller::running().is_none();
        (expects_wait && may_work).then(|| InCaller::begin(drivers))
    }

    /// Returns the I/O threads, if threads that wait may do their work.
    pub fn leading(&self) -> Option<&Drivers> {
        self.leading.as_deref()
    }

    /// The same, for a wait that may outlast the client.
    pub fn leading_later(&self) -> Option<Arc<Drivers>> {
        self.leading.clone()
    }

    /// From now on the client's machines call functions of the application, and only I/O threads run them.
    pub fn calls_out(&self) {
        self.calling_out.begin();
    }

    /// Abandons the runtime's threads after a close that timed out because a function of the application blocks an I/O
    /// thread. New clients get new threads; existing clients stay on theirs.
    pub fn give_up(&self) {
        self.runtime.give_up();
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        drop(self.close(LAST_PUSH));
    }
}

/// Returns half the number of processors, to leave the others to the application, and at most four: a thread moves
/// gigabytes per second.
fn default_threads() -> usize {
    (thread::available_parallelism().map_or(1, usize::from) / 2).clamp(1, 4)
}

/// Returns the largest number of threads that compress: one per processor, at most four, and none if there is a single
/// processor. They run only while I/O threads and application wait for them.
fn default_workers() -> usize {
    match thread::available_parallelism().map_or(1, usize::from) {
        1 => 0,
        processors => processors.min(4),
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime({} threads)", self.drivers.len())
    }
}

impl fmt::Debug for ClientRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientRoute({:?})", self.client)
    }
}
