//! A client in the simulator: the real actors, with queues in place of the driver's threads.

use ottla_protocol::vocabulary::NodeId;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ottla_core::{
    broker::{BrokerCore, BrokerParts},
    cluster::{ClusterCore, ClusterSettings, command::CommandQueue},
    contract::broker::BrokerKey,
    event::EventQueue,
    machine::Instant,
    message::{ToBroker, ToCluster},
    produce::compression::CompressionJob,
    rng::Rng,
    wake::{Wake, WakeHandle},
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::workers::Jobs;

/// The key of a client's actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The cluster's.
    Cluster,
    /// A broker's.
    Broker(BrokerKey),
}

/// A client with its actors.
#[derive(Debug)]
pub struct Client {
    /// The cluster's actor.
    pub cluster: ClusterCore,
    /// The brokers' actors.
    pub brokers: SortedMap<BrokerKey, BrokerCore>,
    /// Messages in transit, in order per sender and receiver.
    pub messages: SortedMap<(Actor, Actor), VecDeque<Message>>,
    /// The parts that broker actors are created from.
    pub parts: BrokerParts,
    /// Errors and other events.
    pub events: Arc<EventQueue>,
    /// Commands to the cluster actor.
    pub commands: Arc<CommandQueue>,
    /// The client was asked to close.
    pub closing: bool,
    /// No actor of the client is left.
    pub closed: bool,
    woken: Woken,
    /// The new jobs of its workers, if it has some.
    jobs: Option<Jobs>,
    /// The deadline of each actor for which a timer event is queued.
    pub timers: SortedMap<Actor, Instant>,
}

/// A letter.
#[derive(Debug)]
pub enum Message {
    /// A message to a broker actor.
    ToBroker(ToBroker),
    /// A message to the cluster actor.
    ToCluster(ToCluster),
    /// A broker actor has ended.
    BrokerDone,
}

/// The actors that were woken and have not run since.
#[derive(Clone, Default)]
pub struct Woken(Arc<Mutex<SortedSet<Actor>>>);

impl Client {
    /// Creates a client; the parts carry the shared halves of producer and consumer.
    pub fn new(settings: ClusterSettings, parts: BrokerParts, mut rng: Rng) -> Self {
        let woken = Woken::default();
        let (commands, reader) = CommandQueue::new(woken.handle(Actor::Cluster));
        let events = Arc::new(EventQueue::default());
        let cluster = ClusterCore::new(
            settings,
            parts.producer.clone(),
            parts.consumer.clone(),
            reader,
            Arc::clone(&events),
            rng.fork(),
        );
        Self {
            cluster,
            brokers: SortedMap::new(),
            messages: SortedMap::new(),
            parts,
            events,
            commands,
            closing: false,
            closed: false,
            woken,
            jobs: None,
            timers: SortedMap::new(),
        }
    }

    /// Lets workers compress the batches of the client's producer.
    pub fn hire_workers(&mut self) {
        if let Some(producer) = &self.parts.producer {
            let jobs = Jobs::default();
            producer.set_workers(Arc::new(jobs.clone()));
            self.jobs = Some(jobs);
        }
    }

    /// Takes the jobs for its workers.
    pub fn take_jobs(&self) -> Vec<CompressionJob> {
        self.jobs.as_ref().map(Jobs::take).unwrap_or_default()
    }

    /// Starts a broker actor.
    pub fn start_broker(
        &mut self,
        key: BrokerKey,
        host: String,
        port: u16,
        node_id: Option<NodeId>,
        rng: Rng,
    ) {
        let wake = self.woken.handle(Actor::Broker(key));
        self.brokers.insert(key, BrokerCore::new(&self.parts, host, port, node_id, wake, rng));
    }

    /// Takes the actors that were woken.
    pub fn take_woken(&self) -> SortedSet<Actor> {
        std::mem::take(&mut *self.woken.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if an actor was woken.
    pub fn is_woken(&self) -> bool {
        !self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Woken {
    fn handle(&self, actor: Actor) -> WakeHandle {
        WakeHandle::new(Arc::new(Waker { woken: self.clone(), actor }))
    }
}

struct Waker {
    woken: Woken,
    actor: Actor,
}

impl Wake for Waker {
    fn wake(&self) {
        self.woken.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.actor);
    }
}

impl fmt::Debug for Woken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Woken")
    }
}
