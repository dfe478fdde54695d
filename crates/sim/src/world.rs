//! The world: clock, clients, links, brokers, and the order of events.
//!
//! Every event has a time. The seed decides the order of events of the same time, which is the threads' schedule.

mod actors;
mod damage;
mod links;

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use ottla_core::{
    contract::broker::BrokerKey, machine::Instant, produce::compression::CompressionJob, rng::Rng,
};
use ottla_embedded_broker::{BrokerId, Cluster, ConnectionId, Output};
use ottla_sorted::{SortedMap, SortedSet};

pub use self::damage::Damage;
use crate::{
    checkers::{Broken, log::History, wire::Wire},
    client::{Actor, Client},
    coverage,
    network::{Link, NetworkKnobs},
    trace::Trace,
};

/// The world.
#[derive(Debug)]
pub struct World {
    /// The time.
    pub now: Instant,
    /// What decides.
    pub rng: Rng,
    /// The brokers.
    pub cluster: Cluster,
    /// The clients.
    pub clients: Vec<Client>,
    /// The properties of the network.
    pub network: NetworkKnobs,
    /// What happened.
    pub trace: Trace,
    /// How names are resolved.
    pub resolver: Resolver,
    /// The first two brokers have each other's addresses.
    is_swapped: bool,
    /// Packets that vanish in one direction between a client and a broker.
    pub one_way: SortedSet<(usize, BrokerId, Direction)>,
    /// Clients whose host sleeps, and the time until which it does.
    suspended: SortedMap<usize, Instant>,
    /// The time at which all events that waited for a client's host to wake up have happened. If two sleeps overlap,
    /// the second may end first, and events that wait for the end of the first still happen later.
    awake_at: SortedMap<usize, Instant>,
    /// The offset of the clients' wall clocks in milliseconds.
    pub wall_skew_ms: i64,
    /// Clients and brokers between which packets vanish in both directions.
    pub partitioned: SortedSet<(usize, BrokerId)>,
    /// In this number of 50 cases a thread takes up to 3 ms to handle a notification, else up to 20 us.
    pub slow_threads: u64,
    /// A producer is purged in one of this number of cases when its broker actor has to return a partition; 0 is never.
    pub purges_moves: u64,
    /// Clients that were purged for that reason, and when.
    pub purged: Vec<(usize, Instant)>,
    /// The time for the last push of a client that is closed.
    pub closing_timeout: Duration,
    /// The traffic on the links.
    pub wire: Wire,
    /// Changes of logs by anything but producers.
    pub history: History,
    /// Damage that waits for bytes that it can strike.
    damage: Vec<Damage>,
    /// Workers never return the jobs that they take, which are kept here.
    pub keeps_jobs: bool,
    kept_jobs: Vec<CompressionJob>,
    broken: Option<Broken>,
    links: SortedMap<u64, Link>,
    /// The connections of other clients than ours, with the responses that they did not take yet.
    foreign: SortedMap<ConnectionId, VecDeque<Vec<u8>>>,
    by_actor: SortedMap<(usize, BrokerKey), u64>,
    by_connection: SortedMap<ConnectionId, u64>,
    next_link: u64,
    events: SortedMap<(Instant, u64, u64), Event>,
    next_event: u64,
    cluster_timer: Option<Instant>,
    events_at_now: u64,
    most_events_at_once: u64,
}

#[derive(Debug)]
enum Event {
    Wake(usize, Actor),
    Message(usize, Actor, Actor),
    Timer(usize, Actor),
    Compressed(usize, CompressionJob),
    ClusterTimer,
    Resolved(usize, BrokerKey, Result<Vec<SocketAddr>, String>),
    Connecting(u64),
    ToBroker(u64),
    ToClient(u64),
    ClosedAtClient(u64),
    ClosedAtBroker(u64),
}

impl Event {
    /// Returns the client of the event.
    fn client(&self, links: &SortedMap<u64, Link>) -> Option<usize> {
        match self {
            Self::Wake(client, _)
            | Self::Message(client, ..)
            | Self::Timer(client, _)
            | Self::Compressed(client, _)
            | Self::Resolved(client, ..) => Some(*client),
            Self::ToClient(link) | Self::ClosedAtClient(link) | Self::Connecting(link) => {
                links.get(link).map(|link| link.client)
            }
            Self::ClusterTimer | Self::ToBroker(_) | Self::ClosedAtBroker(_) => None,
        }
    }
}

/// The result of name resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// The address.
    Works,
    /// Nothing.
    Down,
    /// No address.
    Empty,
    /// The right address between two without a listener.
    Several,
    /// An address without a listener.
    Wrong,
    /// It never returns.
    Silent,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to a broker.
    ToBroker,
    /// From a broker to a client.
    ToClient,
}

/// The first broker's port; the others follow.
pub const FIRST_PORT: u16 = 9092;

impl World {
    /// Creates a world without clients.
    pub fn new(cluster: Cluster, network: NetworkKnobs, rng: Rng, keep_trace: bool) -> Self {
        Self {
            // Zero means "never" in some settings.
            now: Instant::from_nanos(1_000_000_000),
            rng,
            cluster,
            clients: Vec::new(),
            network,
            trace: Trace::new(keep_trace),
            resolver: Resolver::Works,
            is_swapped: false,
            one_way: SortedSet::new(),
            suspended: SortedMap::new(),
            awake_at: SortedMap::new(),
            wall_skew_ms: 0,
            partitioned: SortedSet::new(),
            slow_threads: 1,
            purges_moves: 0,
            purged: Vec::new(),
            closing_timeout: Duration::ZERO,
            wire: Wire::default(),
            history: History::default(),
            damage: Vec::new(),
            keeps_jobs: false,
            kept_jobs: Vec::new(),
            broken: None,
            links: SortedMap::new(),
            foreign: SortedMap::new(),
            by_actor: SortedMap::new(),
            by_connection: SortedMap::new(),
            next_link: 0,
            events: SortedMap::new(),
            next_event: 0,
            cluster_timer: None,
            events_at_now: 0,
            most_events_at_once: 0,
        }
    }

    /// Returns the maximum number of events at one instant.
    pub const fn most_events_at_once(&self) -> u64 {
        self.most_events_at_once
    }

    /// Handles events until `until`, until none are left, or until a guarantee is broken.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Broken> {
        for client in 0..self.clients.len() {
            self.collect_wakes(client);
        }
        loop {
            if let Some(broken) = self.broken.take() {
                return Err(broken);
            }
            let Some((&(at, ..), _)) = self.events.first_key_value() else {
                self.now = until;
                return Ok(());
            };
            if at > until {
                self.now = until;
                self.events_at_now = 0;
                return Ok(());
            }
            if at > self.now {
                self.now = at;
                self.events_at_now = 0;
            }
            self.events_at_now += 1;
            self.most_events_at_once = self.most_events_at_once.max(self.events_at_now);
            if self.events_at_now > 200_000 {
                return Err(Broken::new("busy", "events without end while time does not advance"));
            }
            if let Some((_, event)) = self.events.pop_first() {
                // Only the client of an event can be woken by it.
                let client = match &event {
                    Event::ToBroker(link) => self.links.get(link).map(|link| link.client),
                    event => event.client(&self.links),
                };
                self.happen(event);
                client.into_iter().for_each(|client| self.collect_wakes(client));
            }
        }
    }

    /// Carries out the cluster's outputs after a change from outside.
    pub fn settle_cluster(&mut self) {
        while let Some(output) = self.cluster.poll_output() {
            match output {
                Output::Send { connection, frame } => self.send_to_client(connection, frame.to_vec()),
                Output::Close { connection, .. } => {
                    if let Some(link) = self.by_connection.remove(&connection) {
                        if let Some(link) = self.links.get_mut(&link) {
                            link.broker_closed = true;
                        }
                        let delay = self.some_latency();
                        self.schedule(self.now + delay, Event::ClosedAtClient(link));
                    }
                }
                Output::StopListening { broker } => {
                    self.trace.note(self.now, format_args!("broker {} stops listening", broker.0));
                }
                Output::StartListening { broker } => {
                    self.trace.note(self.now, format_args!("broker {} listens", broker.0));
                }
            }
        }
        if let Some(at) = self.cluster.poll_timeout()
            && self.cluster_timer.is_none_or(|known| at < known)
        {
            self.cluster_timer = Some(at);
            self.schedule(at.max(self.now), Event::ClusterTimer);
        }
    }

    /// Suspends a client's host.
    pub fn suspend(&mut self, client: usize, until: Instant) {
        self.suspended.insert(client, until);
        if until < Instant::FAR_FUTURE {
            let time = until - self.now;
            self.tell(format_args!("client {client} sleeps for {time:?}"));
        }
        let awake_at = self.awake_at.entry(client).or_insert(until);
        *awake_at = until.max(*awake_at);
    }

    /// Adds a line for a reader of the trace, which is not part of its hash.
    pub fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        if self.trace.keeps() {
            self.trace.tell(self.now, what);
        }
    }

    /// Drops all packets between a client and a broker; whoever calls ends that at `until`.
    pub fn cut_off(&mut self, client: usize, broker: BrokerId, until: Instant) {
        let time = until - self.now;
        self.tell(format_args!("client {client} can't reach broker {} for {time:?}", broker.0));
        self.partitioned.insert((client, broker));
    }

    /// Tells the ID of a topic to a reader of the trace.
    pub fn tell_topic(&mut self, name: &str) {
        if self.trace.keeps()
            && let Some(id) = self.cluster.control().topic_id(name)
        {
            self.tell(format_args!("topic {name} has the ID {id}"));
        }
    }

    /// Ends a client's process: it does nothing any more, and its connections break.
    pub fn kill(&mut self, client: usize) {
        self.trace.note(self.now, format_args!("client {client} is killed"));
        self.suspend(client, Instant::FAR_FUTURE);
        self.reset_links_of(client);
    }

    /// Returns the latest time at which a client's host had woken up from all sleeps, if it slept.
    pub fn awake_at(&self, client: usize) -> Option<Instant> {
        self.awake_at.get(&client).copied()
    }

    fn happen(&mut self, event: Event) {
        // Events of a sleeping host wait until it wakes up.
        if let Some(until) = event.client(&self.links).and_then(|client| self.suspended.get(&client).copied())
            && until > self.now
        {
            return self.schedule(until, event);
        }
        match event {
            Event::Wake(client, actor) => {
                self.trace.note(self.now, format_args!("{client} wakes {actor:?}"));
                let now = self.now;
                coverage::note_event("a wake-up");
                match actor {
                    Actor::Cluster => self.clients[client].cluster.handle_wake(now),
                    Actor::Broker(key) => {
                        if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                            core.handle_wake(now);
                        }
                    }
                }
                self.settle(client, actor);
            }
            Event::Message(client, from, to) => self.deliver_message(client, from, to),
            Event::Timer(client, actor) => self.fire_timer(client, actor),
            Event::Compressed(client, job) => self.end_job(client, job),
            Event::ClusterTimer => {
                if self.cluster_timer.is_some_and(|at| at <= self.now) {
                    self.cluster_timer = None;
                    self.cluster.handle_timeout(self.now);
                }
                self.settle_cluster();
            }
            Event::Resolved(client, key, result) => {
                coverage::note_event(if result.is_ok() { "an address" } else { "no address" });
                if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                    core.handle_resolved(self.now, result);
                }
                self.settle(client, Actor::Broker(key));
            }
            Event::Connecting(link) => self.accept(link),
            Event::ToBroker(link) => self.arrive_at_broker(link),
            Event::ToClient(link) => self.arrive_at_client(link),
            Event::ClosedAtClient(link) => self.close_at_client(link),
            Event::ClosedAtBroker(link) => self.close_at_broker(link),
        }
    }

    fn note_broken(&mut self, checked: Result<(), Broken>) {
        if let Err(broken) = checked {
            self.broken.get_or_insert(broken);
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        // The tie-break is random, so that events of the same time happen in any order.
        let tie = self.rng.next_u64();
        self.next_event += 1;
        self.events.insert((at, tie, self.next_event), event);
    }

    fn some_latency(&mut self) -> Duration {
        let jitter = self.network.jitter.as_nanos() as u64;
        self.network.latency + Duration::from_nanos(self.rng.below(jitter + 1))
    }
}
