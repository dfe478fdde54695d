//! How threads reach an I/O thread: an inbox, and a wake-up only if the thread sleeps.
//!
//! ```text
//!   Running ──► Sleeping ──(epoll_wait)──► Running
//!      │            │
//!      └─ post ─► Notified  (Sleeping → Notified writes the eventfd; Running → Notified costs nothing)
//! ```

use std::{fmt, io, sync::Arc};

use core::net::SocketAddr;
use ottla_core::{
    broker::BrokerParts,
    cluster::ClusterCore,
    mail::{BrokerKey, ToBroker, ToCluster},
    rng::Rng,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    wake::{Wake, WakeHandle},
};

use crate::runtime::{ClientId, ClientRoute};

/// The inbox of one I/O thread.
pub struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    state: AtomicU8,
    waker: WakeHandle,
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
    /// A client is broken: drop what this thread has of it.
    Abandon(Arc<ClientRoute>),
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
    /// An empty inbox whose thread is woken by `waker` out of the sleep that it is in.
    pub fn new(waker: WakeHandle) -> Self {
        Self { letters: Mutex::new(Vec::new()), state: AtomicU8::new(RUNNING), waker }
    }

    /// Leaves a letter and wakes the thread if it sleeps.
    pub fn post(&self, letter: Letter) {
        self.letters.lock().push(letter);
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING {
            self.waker.wake();
        }
    }

    /// Takes all letters.
    pub fn take(&self, into: &mut Vec<Letter>) {
        into.append(&mut self.letters.lock());
    }

    /// Sleeps in `wait` unless letters came meanwhile, in which case `wait` is told not to block.
    pub fn sleep(&self, wait: impl FnOnce(bool) -> io::Result<()>) -> io::Result<()> {
        // Exchanges where a store would do, at the same price: all changes of the state are one chain then.
        self.state.swap(SLEEPING, Ordering::SeqCst);
        let may_block = self.letters.lock().is_empty();
        let result = wait(may_block);
        self.state.swap(RUNNING, Ordering::SeqCst);
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

    /// Before the owner looks: what is done from now on wakes it again, and what was done before is seen by it.
    pub fn open(pending: &AtomicBool) {
        // An exchange and no store, so that it comes behind what the last waker did.
        pending.swap(false, Ordering::SeqCst);
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
            Self::Abandon(..) => "Abandon",
            Self::Stop => "Stop",
        })
    }
}

#[cfg(all(test, ottla_loom))]
mod models {
    //! An I/O thread that sleeps, and threads that want something of it: see the models of `ottla-core`.

    use loom::{
        sync::{Condvar, Mutex, atomic::AtomicUsize},
        thread::spawn as start,
    };

    use super::*;

    /// What the eventfd does: it stays readable until somebody waits for it.
    #[derive(Default)]
    struct Eventfd {
        readable: Mutex<bool>,
        condition: Condvar,
    }

    impl Wake for Eventfd {
        fn wake(&self) {
            *self.readable.lock().unwrap() = true;
            self.condition.notify_one();
        }
    }

    impl Eventfd {
        fn wait(&self, may_block: bool) {
            let mut readable = self.readable.lock().unwrap();
            while may_block && !*readable {
                readable = self.condition.wait(readable).unwrap();
            }
            *readable = false;
        }
    }

    fn model(program: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
        builder.check(program);
    }

    fn mailbox() -> (Arc<Mailbox>, Arc<Eventfd>) {
        let eventfd = Arc::<Eventfd>::default();
        (Arc::new(Mailbox::new(WakeHandle::new(Arc::clone(&eventfd) as Arc<dyn Wake>))), eventfd)
    }

    /// The reactor's loop, until `done` says so.
    fn run(mailbox: &Mailbox, eventfd: &Eventfd, mut done: impl FnMut(Letter) -> bool) {
        let mut letters = Vec::new();
        loop {
            mailbox.take(&mut letters);
            if letters.drain(..).any(&mut done) {
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

    /// There for: a `sleep` that looks for letters before it says that it sleeps, or not at all; a `post` that looks whether
    /// the thread sleeps before the letter is in the box.
    #[test]
    fn a_letter_to_a_thread_that_falls_asleep_is_read() {
        model(|| {
            let (mailbox, eventfd) = mailbox();
            let senders = [0, 1].map(|_| {
                let mailbox = Arc::clone(&mailbox);
                start(move || mailbox.post(Letter::Stop))
            });
            let mut came = 0;
            run(&mailbox, &eventfd, |_| {
                came += 1;
                came == 2
            });
            senders.into_iter().for_each(|sender| sender.join().unwrap());
        });
    }

    /// There for: an owner that looks first and is open to wake-ups afterwards.
    #[test]
    fn what_is_done_before_waking_an_owner_is_seen_by_it() {
        model(|| {
            let (mailbox, eventfd) = mailbox();
            let owner = Owner::Cluster(ClientId::default());
            let waker = Arc::new(OwnerWaker::new(Arc::clone(&mailbox), owner));
            let work = Arc::new(AtomicUsize::new(0));
            let workers = [0, 1].map(|_| {
                let (waker, work) = (Arc::clone(&waker), Arc::clone(&work));
                start(move || {
                    work.fetch_add(1, Ordering::Relaxed);
                    waker.wake();
                })
            });
            run(&mailbox, &eventfd, |letter| {
                let Letter::Wake(_, pending) = letter else { return false };
                OwnerWaker::open(&pending);
                work.load(Ordering::Relaxed) == 2
            });
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }
}
