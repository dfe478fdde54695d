//! How threads reach an I/O thread: an inbox, and a wake-up only if the thread sleeps.
//!
//! ```text
//!   Running ──► Sleeping ──(epoll_wait)──► Running
//!      │            │
//!      └─ post ─► Notified  (Sleeping → Notified writes the eventfd; Running → Notified costs nothing)
//! ```

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use core::net::SocketAddr;
use mio::Waker;
use ottla_core::{
    broker::BrokerParts,
    cluster::ClusterCore,
    mail::{BrokerKey, ToBroker, ToCluster},
    rng::Rng,
    wake::Wake,
};
use parking_lot::Mutex;

use crate::runtime::{ClientId, ClientRoute};

/// The inbox of one I/O thread.
pub struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    state: AtomicU8,
    waker: Waker,
}

/// What an I/O thread is told.
pub enum Letter {
    /// Run a client's cluster owner.
    AddCluster(Box<ClusterCore>, Arc<ClientRoute>),
    /// Run a broker's owner.
    AddBroker {
        /// Its client.
        route: Arc<ClientRoute>,
        /// Its name within the client.
        key: BrokerKey,
        /// The host's name or address.
        host: String,
        /// The port.
        port: u16,
        /// The node's id, where it is known.
        node_id: Option<i32>,
        /// Its random numbers.
        rng: Rng,
        /// What it is made of.
        parts: Arc<BrokerParts>,
    },
    /// Mail for a cluster's owner.
    ToCluster(ClientId, BrokerKey, ToCluster),
    /// Mail for a broker's owner.
    ToBroker(ClientId, BrokerKey, ToBroker),
    /// A broker's owner is gone.
    BrokerDone(ClientId, BrokerKey),
    /// Let an owner look.
    Wake(Owner, Arc<AtomicBool>),
    /// A host's addresses, or why there are none.
    Resolved(ClientId, BrokerKey, Result<Vec<SocketAddr>, String>),
    /// No clients are left.
    Stop,
}

/// Names an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A client's cluster owner.
    Cluster(ClientId),
    /// One of its brokers' owners.
    Broker(ClientId, BrokerKey),
}

const RUNNING: u8 = 0;
const SLEEPING: u8 = 1;
const NOTIFIED: u8 = 2;

impl Mailbox {
    /// An empty inbox whose thread is woken by `waker`.
    pub const fn new(waker: Waker) -> Self {
        Self { letters: Mutex::new(Vec::new()), state: AtomicU8::new(RUNNING), waker }
    }

    /// Leaves a letter and wakes the thread if it sleeps.
    pub fn post(&self, letter: Letter) {
        self.letters.lock().push(letter);
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING {
            // The eventfd can only fail to be written when its counter is full, that is when the thread is woken anyway.
            let _ = self.waker.wake();
        }
    }

    /// Takes all letters.
    pub fn take(&self, into: &mut Vec<Letter>) {
        into.append(&mut self.letters.lock());
    }

    /// Sleeps in `wait` unless letters came meanwhile, in which case `wait` is told not to block.
    pub fn sleep(&self, wait: impl FnOnce(bool) -> io::Result<()>) -> io::Result<()> {
        self.state.store(SLEEPING, Ordering::SeqCst);
        let may_block = self.letters.lock().is_empty();
        let result = wait(may_block);
        self.state.store(RUNNING, Ordering::SeqCst);
        result
    }
}

/// Wakes one owner; further wake-ups before it looked cost one atomic exchange.
pub struct OwnerWaker {
    mailbox: Arc<Mailbox>,
    owner: Owner,
    pending: Arc<AtomicBool>,
}

impl OwnerWaker {
    /// A waker for an owner that runs on the mailbox's thread.
    pub fn new(mailbox: Arc<Mailbox>, owner: Owner) -> Self {
        Self { mailbox, owner, pending: Arc::default() }
    }
}

impl Wake for OwnerWaker {
    fn wake(&self) {
        if !self.pending.swap(true, Ordering::SeqCst) {
            self.mailbox.post(Letter::Wake(self.owner, Arc::clone(&self.pending)));
        }
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mailbox({} letters)", self.letters.lock().len())
    }
}

impl fmt::Debug for OwnerWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerWaker({:?})", self.owner)
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddCluster(..) => "AddCluster",
            Self::AddBroker { .. } => "AddBroker",
            Self::ToCluster(..) => "ToCluster",
            Self::ToBroker(..) => "ToBroker",
            Self::BrokerDone(..) => "BrokerDone",
            Self::Wake(..) => "Wake",
            Self::Resolved(..) => "Resolved",
            Self::Stop => "Stop",
        })
    }
}
