//! A client in the simulator: the owners as they are, and where the driver's threads would be, queues.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ottla_core::{
    broker::{BrokerCore, BrokerParts},
    cluster::{ClusterCore, ClusterSettings, command::CommandQueue},
    event::EventQueue,
    machine::Instant,
    mail::{BrokerKey, ToBroker, ToCluster},
    rng::Rng,
    wake::{Wake, WakeHandle},
};

/// Names an owner of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The cluster's.
    Cluster,
    /// A broker's.
    Broker(BrokerKey),
}

/// A client with its owners.
#[derive(Debug)]
pub struct Client {
    /// The cluster's owner.
    pub cluster: ClusterCore,
    /// The brokers' owners.
    pub brokers: BTreeMap<BrokerKey, BrokerCore>,
    /// Mail under way, in order per sender and receiver.
    pub mail: BTreeMap<(Owner, Owner), VecDeque<Mail>>,
    /// What brokers' owners are made of.
    pub parts: BrokerParts,
    /// Errors and the like.
    pub events: Arc<EventQueue>,
    /// Commands to the cluster's owner.
    pub commands: Arc<CommandQueue>,
    /// It was told to close.
    pub closing: bool,
    /// Nothing of it runs any more.
    pub closed: bool,
    woken: Woken,
    /// The deadline of each owner for which a timer event is queued.
    pub timers: BTreeMap<Owner, Instant>,
}

/// A letter.
#[derive(Debug)]
pub enum Mail {
    /// To a broker's owner.
    ToBroker(ToBroker),
    /// To the cluster's owner.
    ToCluster(ToCluster),
    /// A broker's owner is gone.
    BrokerDone,
}

/// The owners that were woken and have not run yet.
#[derive(Clone, Default)]
pub struct Woken(Arc<Mutex<BTreeSet<Owner>>>);

impl Client {
    /// A client; the parts carry the shared halves of producer and consumer.
    pub fn new(settings: ClusterSettings, parts: BrokerParts, mut rng: Rng) -> Self {
        let woken = Woken::default();
        let commands = Arc::new(CommandQueue::new(woken.handle(Owner::Cluster)));
        let events = Arc::new(EventQueue::default());
        let cluster = ClusterCore::new(
            settings,
            parts.producer.clone(),
            parts.consumer.clone(),
            Arc::clone(&commands),
            Arc::clone(&events),
            rng.fork(),
        );
        Self {
            cluster,
            brokers: BTreeMap::new(),
            mail: BTreeMap::new(),
            parts,
            events,
            commands,
            closing: false,
            closed: false,
            woken,
            timers: BTreeMap::new(),
        }
    }

    /// Starts a broker's owner.
    pub fn start_broker(&mut self, key: BrokerKey, host: String, port: u16, node_id: Option<i32>, rng: Rng) {
        let wake = self.woken.handle(Owner::Broker(key));
        self.brokers.insert(key, BrokerCore::new(&self.parts, host, port, node_id, wake, rng));
    }

    /// The owners that were woken.
    pub fn take_woken(&self) -> BTreeSet<Owner> {
        std::mem::take(&mut *self.woken.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if some owner was woken.
    pub fn is_woken(&self) -> bool {
        !self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Woken {
    fn handle(&self, owner: Owner) -> WakeHandle {
        WakeHandle::new(Arc::new(Waker { woken: self.clone(), owner }))
    }
}

struct Waker {
    woken: Woken,
    owner: Owner,
}

impl Wake for Waker {
    fn wake(&self) {
        self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.owner);
    }
}

impl fmt::Debug for Woken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Woken")
    }
}
