//! The I/O threads of a process, shared by all of its clients, and how a client is started on them.

use std::{
    fmt, io,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use mio::{Poll, Token, Waker};
use ottla_core::{
    broker::BrokerParts,
    cluster::{ClusterCore, ClusterSettings, command::Command, command::CommandQueue},
    completion::{Completion, Waiting, completion},
    config::AddressFamily,
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    mail::BrokerKey,
    rng::Rng,
    wake::{Wake, WakeHandle},
};
use parking_lot::Mutex;

use crate::{
    mailbox::{Letter, Mailbox, Owner, OwnerWaker},
    reactor::{Reactor, WAKE_TOKEN},
    resolver::Resolver,
    transport::Transport,
};

/// Names a client within the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u64);

/// The I/O threads. They start with the first client and end with the last.
pub struct Runtime {
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Mutex<Vec<IoThread>>,
    /// A client did not end in time: one of the threads is in a function of an application's that does not return.
    is_given_up: AtomicBool,
    pub(crate) resolver: Resolver,
    next_client: AtomicU64,
}

/// A thread, and a channel that closes when it has ended.
struct IoThread {
    handle: JoinHandle<()>,
    ended: mpsc::Receiver<()>,
}

/// How long the last client waits for the I/O threads to end.
const ENDING: Duration = Duration::from_secs(10);
/// The same after some of them were given up: the others need no longer.
const ENDING_WITHOUT_SOME: Duration = Duration::from_millis(200);

/// Where a client's owners run.
pub struct ClientRoute {
    /// The client.
    pub client: ClientId,
    pub(crate) runtime: Weak<Runtime>,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    pub(crate) parts: Arc<BrokerParts>,
    pub(crate) sockets: SocketSettings,
    pub(crate) transport: Arc<dyn Transport>,
    done: Mutex<Option<Completion<()>>>,
    commands: Arc<CommandQueue>,
    events: Arc<EventQueue>,
    /// The panic that ended the client, if one did.
    broken: OnceLock<Error>,
    /// How many times I/O threads have yet to clear away what they have of a broken client: twice each.
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

/// What a client is made of.
#[derive(Debug)]
pub struct ClientParts {
    /// The cluster owner's settings.
    pub cluster: ClusterSettings,
    /// What the brokers' owners are made of, with the shared halves of producer and consumer.
    pub broker: BrokerParts,
    /// Options of sockets.
    pub sockets: SocketSettings,
    /// Who makes them.
    pub transport: Arc<dyn Transport>,
    /// Where errors that belong to no call go.
    pub events: Arc<EventQueue>,
    /// The seed of everything random in the client.
    pub seed: u64,
}

/// A running client.
#[derive(Debug)]
pub struct ClientHandle {
    commands: Arc<CommandQueue>,
    done: Mutex<Option<Waiting<()>>>,
    // Keeps the threads running.
    runtime: Arc<Runtime>,
}

static RUNTIME: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());

impl Runtime {
    /// The process's runtime, started if there is none.
    pub fn get() -> io::Result<Arc<Self>> {
        let mut current = RUNTIME.lock();
        if let Some(runtime) = current.upgrade() {
            return Ok(runtime);
        }
        let runtime = Arc::new(Self::start(default_threads())?);
        *current = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// How many I/O threads there are.
    pub fn threads(&self) -> usize {
        self.mailboxes.len()
    }

    /// How many threads run in this process for all clients, the resolver's included; none without clients.
    pub fn running_threads() -> usize {
        let runtime = RUNTIME.lock().upgrade();
        runtime.map_or(0, |runtime| runtime.threads() + usize::from(runtime.resolver.is_running()))
    }

    /// Starts a client on the threads.
    pub fn start_client(self: &Arc<Self>, parts: ClientParts) -> ClientHandle {
        let client = ClientId(self.next_client.fetch_add(1, Ordering::Relaxed));
        let (done, waiting) = completion();
        let mut mailboxes = self.mailboxes.clone();
        let count = mailboxes.len();
        mailboxes.rotate_left(client.0 as usize % count);
        let ClientParts { cluster, broker, sockets, transport, events, seed } = parts;
        let home = Arc::clone(&mailboxes[0]);
        let wake = WakeHandle::new(Arc::new(OwnerWaker::new(Arc::clone(&home), Owner::Cluster(client))));
        let commands = Arc::new(CommandQueue::new(wake));
        let route = Arc::new(ClientRoute {
            client,
            runtime: Arc::downgrade(self),
            mailboxes,
            parts: Arc::new(broker),
            sockets,
            transport,
            done: Mutex::new(Some(done)),
            commands: Arc::clone(&commands),
            events: Arc::clone(&events),
            broken: OnceLock::new(),
            clearings_left: AtomicUsize::new(2 * count),
        });
        let core = ClusterCore::new(
            cluster,
            route.parts.producer.clone(),
            route.parts.consumer.clone(),
            Arc::clone(&commands),
            events,
            Rng::from_seed(seed),
        );
        home.post(Letter::AddCluster(Box::new(core), route));
        ClientHandle { commands, done: Mutex::new(Some(waiting)), runtime: Arc::clone(self) }
    }

    /// A thread does not come back. No further client is started on it, as far as anybody can know that.
    fn give_up(self: &Arc<Self>) {
        self.is_given_up.store(true, Ordering::Relaxed);
        let mut current = RUNTIME.lock();
        if std::ptr::eq(current.as_ptr(), Arc::as_ptr(self)) {
            *current = Weak::new();
        }
    }

    fn start(threads: usize) -> io::Result<Self> {
        let mut mailboxes = Vec::new();
        let mut handles = Vec::new();
        for index in 0..threads {
            let poll = Poll::new()?;
            let waker = Eventfd(Waker::new(poll.registry(), WAKE_TOKEN)?);
            let mailbox = Arc::new(Mailbox::new(WakeHandle::new(Arc::new(waker))));
            mailboxes.push(Arc::clone(&mailbox));
            let reactor = Reactor::new(poll, mailbox);
            let (ends, ended) = mpsc::channel::<()>();
            let handle = thread::Builder::new().name(format!("ottla-io-{index}")).spawn(move || {
                reactor.run();
                drop(ends);
            })?;
            handles.push(IoThread { handle, ended });
        }
        Ok(Self {
            mailboxes,
            threads: Mutex::new(handles),
            is_given_up: AtomicBool::new(false),
            resolver: Resolver::default(),
            next_client: AtomicU64::new(0),
        })
    }
}

/// Wakes a thread out of its poll.
struct Eventfd(Waker);

impl Wake for Eventfd {
    fn wake(&self) {
        // It can only fail to be written when its counter is full, that is when the thread is woken anyway.
        let _ = self.0.wake();
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for mailbox in &self.mailboxes {
            mailbox.post(Letter::Stop);
        }
        let patience = if *self.is_given_up.get_mut() { ENDING_WITHOUT_SOME } else { ENDING };
        let until = Instant::now() + patience;
        for IoThread { handle, ended } in self.threads.get_mut().drain(..) {
            // The last client may be dropped by a callback, on the very thread that would be joined.
            if handle.thread().id() == thread::current().id() {
                continue;
            }
            // A thread that does not return from a function of the application's is left to itself: all that it uses, it
            // holds. It ends when it comes back.
            let left = until.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Disconnected) {
                // A thread that panicked has said so already.
                let _ = handle.join();
            }
        }
    }
}

impl ClientRoute {
    /// Where a broker's owner runs.
    pub(crate) fn mailbox_of(&self, key: BrokerKey) -> &Arc<Mailbox> {
        &self.mailboxes[key.0 as usize % self.mailboxes.len()]
    }

    /// Where the cluster's owner runs.
    pub(crate) fn home(&self) -> &Arc<Mailbox> {
        &self.mailboxes[0]
    }

    /// The error of a broken client.
    pub(crate) fn broken(&self) -> Option<&Error> {
        self.broken.get()
    }

    /// A part of the client panicked: nothing is taken any more, the application is told, and all I/O threads drop what
    /// they have of the client. Other clients go on.
    pub(crate) fn break_down(self: &Arc<Self>, text: &str) {
        let detail = format!("a part of the client panicked, please report it: {text}");
        if self.broken.set(Error::new(ErrorKind::Bug, detail)).is_err() {
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
            mailbox.post(Letter::Abandon(Arc::clone(self)));
        }
    }

    /// A thread has dropped what it had of the broken client. The last one fails what is left.
    ///
    /// All do it twice. When each has done it once no owner is left who could send mail; when each has done it again, all
    /// mail that was on its way was dropped too, with the batches that it had.
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
        self.commands.abandon();
        self.finish();
    }

    /// The client is over.
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
    /// Asks something of the cluster's owner.
    pub fn command(&self, command: Command) {
        self.commands.push(command);
    }

    /// Where commands go, to be kept by parts of the client.
    pub fn commands(&self) -> &Arc<CommandQueue> {
        &self.commands
    }

    /// True from the first call of [`ClientHandle::close`] on: commands are not read any more.
    pub fn is_closing(&self) -> bool {
        self.done.lock().is_none()
    }

    /// Begins to close. The answer resolves when nothing of the client runs any more; only the first caller gets it.
    pub fn close(&self) -> Option<Waiting<()>> {
        let waiting = self.done.lock().take();
        if waiting.is_some() {
            self.commands.push(Command::Close);
        }
        waiting
    }

    /// How many threads the process's clients share.
    pub fn threads(&self) -> usize {
        self.runtime.threads()
    }

    /// The client did not end in time, because an I/O thread does not come back from a function of the application's. New
    /// clients get new threads; those that are there stay with theirs.
    pub fn give_up(&self) {
        self.runtime.give_up();
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// Half of the processors, so that the application keeps the others, and at most four: a thread moves gigabytes per
/// second.
fn default_threads() -> usize {
    (thread::available_parallelism().map_or(1, usize::from) / 2).clamp(1, 4)
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime({} threads)", self.mailboxes.len())
    }
}

impl fmt::Debug for ClientRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientRoute({:?})", self.client)
    }
}

/// The token of a broker's socket.
pub(crate) const fn token(slot: usize) -> Token {
    Token(slot)
}
