//! The inbox of an I/O thread. A wake-up is only written if the thread sleeps.
//!
//! ```text
//!   Running ──► Sleeping ──(epoll_wait)──► Running
//!      │            │
//!      └─ post ─► Notified  (Sleeping → Notified writes the eventfd; Running → Notified costs nothing)
//! ```
//!
//! A waiting thread that reads the inbox while the I/O thread sleeps (`lead`) makes Notified Sleeping again.

use std::{fmt, io, sync::Arc};

use core::net::SocketAddr;
use ottla_core::{
    broker::BrokerParts,
    cluster::ClusterCore,
    contract::broker::BrokerKey,
    message::{ToBroker, ToCluster},
    rng::Rng,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    wake::{Wake, WakeHandle},
};

use ottla_protocol::vocabulary::NodeId;

use crate::{
    driver::Ready,
    runtime::{ClientId, ClientRoute},
};

/// The inbox of one I/O thread.
pub struct Mailbox {
    messages: Mutex<Vec<Message>>,
    state: AtomicU8,
    waker: WakeHandle,
}

/// A message to an I/O thread.
pub enum Message {
    /// Run a client's cluster actor.
    AddCluster(Box<ClusterCore>, Arc<ClientRoute>),
    /// Run a broker actor.
    AddBroker {
        /// Its client.
        route: Arc<ClientRoute>,
        /// The broker's key within the client.
        key: BrokerKey,
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
        /// The node's ID, if it is known.
        node_id: Option<NodeId>,
        /// Its random number generator.
        rng: Rng,
        /// The settings and shared state of the client's broker actors.
        parts: Arc<BrokerParts>,
    },
    /// A message to a cluster actor.
    ToCluster(ClientId, BrokerKey, ToCluster),
    /// A message to a broker actor.
    ToBroker(ClientId, BrokerKey, ToBroker),
    /// A broker actor has ended.
    BrokerDone(ClientId, BrokerKey),
    /// Let an actor check its queues.
    Wake(Actor, Arc<AtomicBool>),
    /// A host's addresses, or the resolver's error.
    Resolved(ClientId, BrokerKey, Result<Vec<SocketAddr>, String>),
    /// The kernel's event for a socket, from a thread that could not handle it.
    Ready(Ready),
    /// A client is broken: drop all of it that runs on this thread.
    Abandon(Arc<ClientRoute>),
    /// No clients are left.
    Stop,
}

/// Identifies an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A client's cluster actor.
    Cluster(ClientId),
    /// One of the client's broker actors.
    Broker(ClientId, BrokerKey),
}

const RUNNING: u8 = 0;
const SLEEPING: u8 = 1;
const NOTIFIED: u8 = 2;

impl Mailbox {
    /// Creates an empty inbox whose sleeping thread is woken by `waker`.
    pub fn new(waker: WakeHandle) -> Self {
        Self { messages: Mutex::new(Vec::new()), state: AtomicU8::new(RUNNING), waker }
    }

    /// Adds a message, and wakes the thread if it sleeps.
    pub fn post(&self, message: Message) {
        self.messages.lock().push(message);
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING {
            self.waker.wake();
        }
    }

    /// Takes all messages.
    pub fn take(&self, into: &mut Vec<Message>) {
        into.append(&mut self.messages.lock());
    }

    /// Puts messages back that this thread may not handle, before those that have come since.
    pub fn put_back(&self, messages: &mut Vec<Message>) {
        let mut queued = self.messages.lock();
        messages.append(&mut queued);
        std::mem::swap(messages, &mut queued);
    }

    /// Takes over what earlier wake-ups announced, for a thread that reads the inbox in the place of the I/O thread: it sees
    /// earlier messages, and later ones wake again. Returns whether the inbox is empty.
    pub fn claim(&self) -> bool {
        // If the I/O thread runs, the next message writes a wake-up that is not needed, which does no harm.
        let _ = self.state.compare_exchange(NOTIFIED, SLEEPING, Ordering::SeqCst, Ordering::SeqCst);
        self.messages.lock().is_empty()
    }

    /// Sleeps by calling `wait` with `true`; if messages arrived meanwhile, calls it with `false`, which forbids it to
    /// block.
    pub fn sleep(&self, wait: impl FnOnce(bool) -> io::Result<()>) -> io::Result<()> {
        // Exchanges instead of stores, at the same price: they order all changes of the state.
        self.state.swap(SLEEPING, Ordering::SeqCst);
        let may_block = self.messages.lock().is_empty();
        let result = wait(may_block);
        self.state.swap(RUNNING, Ordering::SeqCst);
        result
    }
}

/// Wakes one actor. Further wake-ups before the actor runs cost one atomic exchange.
pub struct ActorWaker {
    mailbox: Arc<Mailbox>,
    actor: Actor,
    pending: Arc<AtomicBool>,
}

impl ActorWaker {
    /// Creates a waker for an actor on the mailbox's thread.
    pub fn new(mailbox: Arc<Mailbox>, actor: Actor) -> Self {
        Self { mailbox, actor, pending: Arc::default() }
    }

    /// Re-arms the wake-up before the actor checks its queues: the actor sees earlier changes, and later ones wake it
    /// again.
    pub fn open(pending: &AtomicBool) {
        // An exchange instead of a store, so that it is ordered after the last waker's changes.
        pending.swap(false, Ordering::SeqCst);
    }
}

impl Wake for ActorWaker {
    fn wake(&self) {
        if !self.pending.swap(true, Ordering::SeqCst) {
            self.mailbox.post(Message::Wake(self.actor, Arc::clone(&self.pending)));
        }
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mailbox({} messages)", self.messages.lock().len())
    }
}

impl fmt::Debug for ActorWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorWaker({:?})", self.actor)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddCluster(..) => "AddCluster",
            Self::AddBroker { .. } => "AddBroker",
            Self::ToCluster(..) => "ToCluster",
            Self::ToBroker(..) => "ToBroker",
            Self::BrokerDone(..) => "BrokerDone",
            Self::Wake(..) => "Wake",
            Self::Resolved(..) => "Resolved",
            Self::Ready(..) => "Ready",
            Self::Abandon(..) => "Abandon",
            Self::Stop => "Stop",
        })
    }
}

#[cfg(all(test, ottla_loom))]
mod models {
    //! Models of an I/O thread that sleeps, and of threads that post to it; see the models of `ottla-core`.

    use loom::{sync::atomic::AtomicUsize, thread::spawn as start};
    use ottla_core::wake::Wake;

    use super::*;
    use crate::eventfd::{Eventfd, model};

    fn mailbox() -> (Arc<Mailbox>, Arc<Eventfd>) {
        let eventfd = Arc::<Eventfd>::default();
        (Arc::new(Mailbox::new(WakeHandle::new(Arc::clone(&eventfd) as Arc<dyn Wake>))), eventfd)
    }

    /// Runs the reactor's loop until `done` returns true.
    fn run(mailbox: &Mailbox, eventfd: &Eventfd, mut done: impl FnMut(Message) -> bool) {
        let mut messages = Vec::new();
        loop {
            mailbox.take(&mut messages);
            if messages.drain(..).any(&mut done) {
                return;
            }
            mailbox
                .sleep(|may_block| {
                    eventfd.wait(may_block);
                    Ok(())
                })
                .unwrap();
        }
    }

    /// Catches a `sleep` that checks the inbox before it announces its sleep, or not at all, and a `post` that checks
    /// for a sleeping thread before it adds the message.
    #[test]
    fn message_to_a_thread_that_falls_asleep_is_read() {
        model(|| {
            let (mailbox, eventfd) = mailbox();
            let senders = [0, 1].map(|_| {
                let mailbox = Arc::clone(&mailbox);
                start(move || mailbox.post(Message::Stop))
            });
            let mut came = 0;
            run(&mailbox, &eventfd, |_| {
                came += 1;
                came == 2
            });
            senders.into_iter().for_each(|sender| sender.join().unwrap());
        });
    }

    /// Catches an actor that checks its queues before it re-arms the wake-up.
    #[test]
    fn actor_sees_changes_from_before_its_wakeup() {
        model(|| {
            let (mailbox, eventfd) = mailbox();
            let actor = Actor::Cluster(ClientId::default());
            let waker = Arc::new(ActorWaker::new(Arc::clone(&mailbox), actor));
            let work = Arc::new(AtomicUsize::new(0));
            let workers = [0, 1].map(|_| {
                let (waker, work) = (Arc::clone(&waker), Arc::clone(&work));
                start(move || {
                    work.fetch_add(1, Ordering::Relaxed);
                    waker.wake();
                })
            });
            run(&mailbox, &eventfd, |message| {
                let Message::Wake(_, pending) = message else { return false };
                ActorWaker::open(&pending);
                work.load(Ordering::Relaxed) == 2
            });
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }
}
