//! The world: clock, clients, links, brokers, and the order in which things happen.
//!
//! Everything that happens is an event with a time. Events of the same time happen in an order that the seed decides:
//! that is the threads' schedule.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::IoSlice,
    net::SocketAddr,
    time::Duration,
};

use ottla_core::{
    broker::BrokerOutput,
    cluster::{ClusterOutput, command::Command},
    machine::Instant,
    mail::{BrokerKey, ToBroker},
    produce::sender::Purge,
    rng::Rng,
};
use ottla_embedded_broker::{BrokerId, Cluster, ConnectionId, Output};

use crate::{
    checkers::{Broken, log::History, wire::Wire},
    client::{Client, Mail, Owner},
    network::{Link, NetworkKnobs, Stream, cut},
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
    /// What the network is like.
    pub network: NetworkKnobs,
    /// What happened.
    pub trace: Trace,
    /// How names are resolved.
    pub resolver: Resolver,
    /// Packets of a client to a broker vanish, or the other way round.
    pub one_way: BTreeSet<(usize, BrokerId, Direction)>,
    /// Clients whose host sleeps, and until when.
    suspended: BTreeMap<usize, Instant>,
    /// When all that waited for a client's host to wake up has happened: of two sleeps the second may end first, and what
    /// waits for the first one's end still does.
    awake_at: BTreeMap<usize, Instant>,
    /// What the clients' wall clocks are off, in milliseconds.
    pub wall_skew_ms: i64,
    /// A client's packets to a broker vanish, and the other way round.
    pub partitioned: BTreeSet<(usize, BrokerId)>,
    /// So many of 50 times a thread takes up to 3 ms to notice something, else up to 20 us.
    pub slow_threads: u64,
    /// Whoever is told to give a partition back is purged of everything at that moment, once in so many cases; 0 is never.
    pub purges_moves: u64,
    /// Clients that were purged for that, and when.
    pub purged: Vec<(usize, Instant)>,
    /// What is said on the links.
    pub wire: Wire,
    /// What others than producers did to logs.
    pub history: History,
    broken: Option<Broken>,
    links: BTreeMap<u64, Link>,
    by_owner: BTreeMap<(usize, BrokerKey), u64>,
    by_connection: BTreeMap<ConnectionId, u64>,
    next_link: u64,
    events: BTreeMap<(Instant, u64, u64), Event>,
    next_event: u64,
    cluster_timer: Option<Instant>,
    events_at_now: u64,
    most_events_at_once: u64,
}

#[derive(Debug)]
enum Event {
    Wake(usize, Owner),
    Mail(usize, Owner, Owner),
    Timer(usize, Owner),
    ClusterTimer,
    Resolved(usize, BrokerKey, Result<Vec<SocketAddr>, String>),
    Connecting(u64),
    ToBroker(u64),
    ToClient(u64),
    ClosedAtClient(u64),
    ClosedAtBroker(u64),
}

impl Event {
    /// The client to which it happens.
    fn client(&self, links: &BTreeMap<u64, Link>) -> Option<usize> {
        match self {
            Self::Wake(client, _)
            | Self::Mail(client, ..)
            | Self::Timer(client, _)
            | Self::Resolved(client, ..) => Some(*client),
            Self::ToClient(link) | Self::ClosedAtClient(link) | Self::Connecting(link) => {
                links.get(link).map(|link| link.client)
            }
            Self::ClusterTimer | Self::ToBroker(_) | Self::ClosedAtBroker(_) => None,
        }
    }
}

/// What a name server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// The address.
    Works,
    /// Nothing.
    Down,
    /// That there is no address.
    Empty,
    /// The address between two where nobody listens.
    Several,
    /// An address where nobody listens.
    Wrong,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to a broker.
    ToBroker,
    /// From a broker to a client.
    ToClient,
}

/// The last byte of the address at which brokers listen.
const BROKER_ADDRESS: u8 = 1;
/// The broker at an address where nobody listens.
const NOBODY: i32 = 0;

/// The first broker's port; the others follow.
pub const FIRST_PORT: u16 = 9092;

impl World {
    /// A world without clients.
    pub fn new(cluster: Cluster, network: NetworkKnobs, rng: Rng, keep_trace: bool) -> Self {
        Self {
            // Zero stands for "never" here and there.
            now: Instant::from_nanos(1_000_000_000),
            rng,
            cluster,
            clients: Vec::new(),
            network,
            trace: Trace::new(keep_trace),
            resolver: Resolver::Works,
            one_way: BTreeSet::new(),
            suspended: BTreeMap::new(),
            awake_at: BTreeMap::new(),
            wall_skew_ms: 0,
            partitioned: BTreeSet::new(),
            slow_threads: 1,
            purges_moves: 0,
            purged: Vec::new(),
            wire: Wire::default(),
            history: History::default(),
            broken: None,
            links: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            by_connection: BTreeMap::new(),
            next_link: 0,
            events: BTreeMap::new(),
            next_event: 0,
            cluster_timer: None,
            events_at_now: 0,
            most_events_at_once: 0,
        }
    }

    /// The most events that happened without time moving.
    pub const fn most_events_at_once(&self) -> u64 {
        self.most_events_at_once
    }

    /// Lets things happen until `until`, or until nothing is left to happen, or a promise is broken.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Broken> {
        loop {
            if let Some(broken) = self.broken.take() {
                return Err(broken);
            }
            self.collect_wakes();
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
                return Err(Broken::new("busy", "events without end while time stands still"));
            }
            if let Some((_, event)) = self.events.pop_first() {
                self.happen(event);
            }
        }
    }

    /// Something outside changed the cluster: carry out what it wants.
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

    /// Breaks a random connection, seen by both ends at different times.
    pub fn reset_a_link(&mut self) {
        let open: Vec<u64> = self.links.keys().copied().collect();
        let Some(link) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
        self.trace.note(self.now, format_args!("link {link} is reset"));
        let (a, b) = (self.some_latency(), self.some_latency());
        self.schedule(self.now + a, Event::ClosedAtClient(link));
        self.schedule(self.now + b, Event::ClosedAtBroker(link));
    }

    /// Lets nothing through on a random connection for a while, in one direction or both.
    pub fn stall_a_link(&mut self, duration: Duration) {
        let open: Vec<u64> = self.links.keys().copied().collect();
        let Some(id) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
        let until = self.now + duration;
        let which = self.rng.below(3);
        if let Some(link) = self.links.get_mut(&id) {
            self.trace.note(self.now, format_args!("link {id} is stalled ({which}) for {duration:?}"));
            if which != 0 {
                link.to_broker.stall(until);
            }
            if which != 1 {
                link.to_client.stall(until);
            }
        }
    }

    /// A client's connections bring it nothing any more, and break after a while: brokers do what comes in until then, and
    /// the client is not told.
    pub fn lose_answers_to(&mut self, client: usize, after: Duration) {
        self.trace
            .note(self.now, format_args!("client {client} gets no answers, and is cut off in {after:?}"));
        let at = self.now + after;
        let own: Vec<u64> =
            self.links.iter().filter(|(_, link)| link.client == client).map(|(id, _)| *id).collect();
        for id in own {
            if let Some(link) = self.links.get_mut(&id) {
                link.to_client.stall(at + Duration::from_secs(1));
            }
            self.schedule(at, Event::ClosedAtClient(id));
            self.schedule(at, Event::ClosedAtBroker(id));
        }
    }

    /// A broker forgets a random connection, and the client is not told.
    pub fn half_open_a_link(&mut self) {
        let open: Vec<u64> = self.links.keys().copied().collect();
        let Some(link) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
        self.trace.note(self.now, format_args!("link {link} is half open"));
        self.schedule(self.now, Event::ClosedAtBroker(link));
    }

    /// A client's host sleeps.
    pub fn suspend(&mut self, client: usize, until: Instant) {
        self.suspended.insert(client, until);
        let awake_at = self.awake_at.entry(client).or_insert(until);
        *awake_at = until.max(*awake_at);
    }

    /// When a client's host had woken up for good, if it slept; the latest time so far.
    pub fn awake_at(&self, client: usize) -> Option<Instant> {
        self.awake_at.get(&client).copied()
    }

    fn is_cut(&self, client: usize, broker: BrokerId, direction: Direction) -> bool {
        self.partitioned.contains(&(client, broker)) || self.one_way.contains(&(client, broker, direction))
    }

    /// The links that are open, for checks at the end.
    pub fn open_links(&self) -> usize {
        self.links.len()
    }

    fn happen(&mut self, event: Event) {
        // What happens to a host that sleeps waits for it to wake up.
        if let Some(until) = event.client(&self.links).and_then(|client| self.suspended.get(&client).copied())
            && until > self.now
        {
            return self.schedule(until, event);
        }
        match event {
            Event::Wake(client, owner) => {
                self.trace.note(self.now, format_args!("{client} wakes {owner:?}"));
                let now = self.now;
                match owner {
                    Owner::Cluster => self.clients[client].cluster.handle_wake(now),
                    Owner::Broker(key) => {
                        if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                            core.handle_wake(now);
                        }
                    }
                }
                self.settle(client, owner);
            }
            Event::Mail(client, from, to) => self.deliver_mail(client, from, to),
            Event::Timer(client, owner) => self.fire_timer(client, owner),
            Event::ClusterTimer => {
                if self.cluster_timer.is_some_and(|at| at <= self.now) {
                    self.cluster_timer = None;
                    self.cluster.handle_timeout(self.now);
                }
                self.settle_cluster();
            }
            Event::Resolved(client, key, result) => {
                if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                    core.handle_resolved(self.now, result);
                }
                self.settle(client, Owner::Broker(key));
            }
            Event::Connecting(link) => self.accept(link),
            Event::ToBroker(link) => self.arrive_at_broker(link),
            Event::ToClient(link) => self.arrive_at_client(link),
            Event::ClosedAtClient(link) => self.close_at_client(link),
            Event::ClosedAtBroker(link) => self.close_at_broker(link),
        }
    }

    fn collect_wakes(&mut self) {
        for client in 0..self.clients.len() {
            if self.clients[client].is_woken() {
                for owner in self.clients[client].take_woken() {
                    let at = self.now + self.thread_delay();
                    self.schedule(at, Event::Wake(client, owner));
                }
            }
        }
    }

    fn deliver_mail(&mut self, client: usize, from: Owner, to: Owner) {
        let now = self.now;
        let state = &mut self.clients[client];
        let Some(mail) = state.mail.get_mut(&(from, to)).and_then(|queue| queue.pop_front()) else { return };
        match (mail, from, to) {
            (Mail::ToBroker(mail), _, Owner::Broker(key)) => {
                self.trace.note(now, format_args!("{client} to {key:?}: {}", name_of(&mail)));
                if matches!(mail, ToBroker::ReleaseProducer { .. })
                    && self.purges_moves > 0
                    && self.rng.chance(1, self.purges_moves)
                {
                    self.trace.note(now, format_args!("{client} is purged in this moment"));
                    state.commands.push(Command::Purge(Purge::ALL));
                    self.purged.push((client, now));
                }
                if let Some(core) = state.brokers.get_mut(&key) {
                    core.handle_mail(now, mail);
                }
            }
            (Mail::ToCluster(mail), Owner::Broker(key), Owner::Cluster) => {
                self.trace.note(now, format_args!("{client} from {key:?}: {}", name_of(&mail)));
                state.cluster.handle_mail(now, key, mail);
            }
            (Mail::BrokerDone, Owner::Broker(key), Owner::Cluster) => state.cluster.handle_broker_done(key),
            _ => {}
        }
        self.settle(client, to);
    }

    fn fire_timer(&mut self, client: usize, owner: Owner) {
        let state = &mut self.clients[client];
        let due = state.timers.get(&owner).is_some_and(|at| *at <= self.now);
        if !due {
            return;
        }
        state.timers.remove(&owner);
        match owner {
            Owner::Cluster => state.cluster.handle_timeout(self.now),
            Owner::Broker(key) => {
                if let Some(core) = state.brokers.get_mut(&key) {
                    core.handle_timeout(self.now);
                }
            }
        }
        self.settle(client, owner);
    }

    /// Carries out what an owner wants.
    fn settle(&mut self, client: usize, owner: Owner) {
        match owner {
            Owner::Cluster => {
                while let Some(output) = self.clients[client].cluster.poll_output() {
                    match output {
                        ClusterOutput::StartBroker { key, host, port, node_id, rng } => {
                            self.clients[client].start_broker(key, host, port, node_id, rng);
                            self.settle(client, Owner::Broker(key));
                        }
                        ClusterOutput::ToBroker(key, mail) => {
                            self.post(client, Owner::Cluster, Owner::Broker(key), Mail::ToBroker(mail));
                        }
                        ClusterOutput::Done => {
                            self.clients[client].closed = true;
                            self.trace.note(self.now, format_args!("{client} is closed"));
                        }
                    }
                }
            }
            Owner::Broker(key) => {
                self.settle_broker(client, key);
            }
        }
        self.set_timer(client, owner);
    }

    fn settle_broker(&mut self, client: usize, key: BrokerKey) {
        loop {
            let Some(core) = self.clients[client].brokers.get_mut(&key) else { return };
            let Some(output) = core.poll_output() else {
                if self.write(client, key) {
                    continue;
                }
                return;
            };
            match output {
                BrokerOutput::Resolve { host, port } => {
                    let address = |last| SocketAddr::from(([10, 0, 0, last], port));
                    let result = match self.resolver {
                        Resolver::Works => Ok(vec![address(BROKER_ADDRESS)]),
                        Resolver::Down => Err("the resolver is down".to_owned()),
                        Resolver::Empty => Ok(Vec::new()),
                        Resolver::Several => Ok(vec![address(66), address(BROKER_ADDRESS), address(77)]),
                        Resolver::Wrong => Ok(vec![address(66)]),
                    };
                    self.trace.note(self.now, format_args!("{client} resolves {host}"));
                    let at = self.now + self.some_latency();
                    self.schedule(at, Event::Resolved(client, key, result));
                }
                BrokerOutput::Connect(address) => {
                    let number = if address == SocketAddr::from(([10, 0, 0, BROKER_ADDRESS], address.port()))
                    {
                        i32::from(address.port().wrapping_sub(FIRST_PORT)) + 1
                    } else {
                        NOBODY
                    };
                    let broker = BrokerId(number);
                    let id = self.next_link;
                    self.next_link += 1;
                    self.links.insert(
                        id,
                        Link {
                            client,
                            key,
                            broker,
                            connection: None,
                            to_broker: Stream::default(),
                            to_client: Stream::default(),
                            client_closed: false,
                            broker_closed: false,
                        },
                    );
                    self.by_owner.insert((client, key), id);
                    let checked = self.wire.open(self.now, id, client);
                    self.note_broken(checked);
                    self.trace.note(self.now, format_args!("{client} connects to {} by link {id}", broker.0));
                    let at = self.now + self.some_latency() * 2;
                    self.schedule(at, Event::Connecting(id));
                }
                BrokerOutput::CloseSocket => {
                    if let Some(id) = self.by_owner.remove(&(client, key))
                        && let Some(link) = self.links.get_mut(&id)
                    {
                        link.client_closed = true;
                        let at = self.now + self.some_latency();
                        self.schedule(at, Event::ClosedAtBroker(id));
                    }
                }
                BrokerOutput::ToCluster(mail) => {
                    self.post(client, Owner::Broker(key), Owner::Cluster, Mail::ToCluster(mail));
                }
                BrokerOutput::Done => {
                    self.post(client, Owner::Broker(key), Owner::Cluster, Mail::BrokerDone);
                }
            }
        }
    }

    /// Takes bytes from an owner to its link; false if there are none or no room.
    fn write(&mut self, client: usize, key: BrokerKey) -> bool {
        let Some(id) = self.by_owner.get(&(client, key)).copied() else { return false };
        let Some(link) = self.links.get_mut(&id) else { return false };
        if link.connection.is_none() || link.client_closed {
            return false;
        }
        let Some(core) = self.clients[client].brokers.get_mut(&key) else { return false };
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = core.unsent(&mut slices);
        let available: usize = slices[..filled].iter().map(|slice| slice.len()).sum();
        let count = cut(available.min(link.to_broker.room(&self.network)), &self.network, &mut self.rng);
        if count == 0 {
            return false;
        }
        let bytes: Vec<u8> =
            slices[..filled].iter().flat_map(|slice| slice.iter().copied()).take(count).collect();
        core.handle_written(self.now, count);
        let (now, trace) = (self.now, &mut self.trace);
        let checked = self.wire.wrote(now, id, &bytes, |line| trace.note(now, format_args!("{line}")));
        if let Err(broken) = checked {
            self.broken.get_or_insert(broken);
        }
        let arrival = link.to_broker.send(self.now, bytes, &self.network, &mut self.rng);
        self.schedule(arrival, Event::ToBroker(id));
        true
    }

    fn accept(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let (client, key, broker) = (link.client, link.key, link.broker);
        if link.client_closed {
            self.links.remove(&id);
            return;
        }
        if self.is_cut(client, broker, Direction::ToBroker)
            || self.is_cut(client, broker, Direction::ToClient)
        {
            // Nobody answers: the client's own timeout ends it. Look again in case the network heals first.
            let at = self.now + Duration::from_millis(500);
            return self.schedule(at, Event::Connecting(id));
        }
        match self.cluster.open(self.now, broker) {
            Some(connection) => {
                self.by_connection.insert(connection, id);
                if let Some(link) = self.links.get_mut(&id) {
                    link.connection = Some(connection);
                }
                if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                    core.handle_connected(self.now);
                }
            }
            None => {
                self.links.remove(&id);
                self.by_owner.remove(&(client, key));
                if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                    core.handle_closed(self.now, "connection refused");
                }
            }
        }
        self.settle(client, Owner::Broker(key));
    }

    fn arrive_at_broker(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let (client, key, broker) = (link.client, link.key, link.broker);
        if self.is_cut(client, broker, Direction::ToBroker) {
            let at = self.now + Duration::from_millis(100);
            let Some(link) = self.links.get_mut(&id) else { return };
            link.to_broker.stall(at);
            return self.schedule(at, Event::ToBroker(id));
        }
        while let Some(bytes) = self.links.get_mut(&id).and_then(|link| link.to_broker.receive(self.now)) {
            let Some(connection) = self.links.get(&id).and_then(|link| link.connection) else { return };
            if self.by_connection.contains_key(&connection) {
                self.trace.note(self.now, format_args!("link {id}: {} bytes to the broker", bytes.len()));
                self.cluster.handle_bytes(self.now, connection, &bytes);
                self.settle_cluster();
            }
        }
        // There is room again.
        self.settle(client, Owner::Broker(key));
    }

    fn send_to_client(&mut self, connection: ConnectionId, mut bytes: Vec<u8>) {
        let Some(id) = self.by_connection.get(&connection).copied() else { return };
        while !bytes.is_empty() {
            let count = cut(bytes.len(), &self.network, &mut self.rng);
            let rest = bytes.split_off(count);
            let Some(link) = self.links.get_mut(&id) else { return };
            let arrival = link.to_client.send(self.now, bytes, &self.network, &mut self.rng);
            self.schedule(arrival, Event::ToClient(id));
            bytes = rest;
        }
    }

    fn arrive_at_client(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else { return };
        let (client, key, broker) = (link.client, link.key, link.broker);
        if self.is_cut(client, broker, Direction::ToClient) {
            let at = self.now + Duration::from_millis(100);
            return self.schedule(at, Event::ToClient(id));
        }
        while let Some(bytes) = self.links.get_mut(&id).and_then(|link| link.to_client.receive(self.now)) {
            let is_current = self.by_owner.get(&(client, key)) == Some(&id);
            if !is_current {
                continue;
            }
            self.trace.note(self.now, format_args!("link {id}: {} bytes to the client", bytes.len()));
            let (now, trace) = (self.now, &mut self.trace);
            let unsent = self.clients[client].brokers.get(&key).map_or(0, |core| core.unsent_bytes());
            let checked =
                self.wire.reads(now, id, &bytes, unsent, |line| trace.note(now, format_args!("{line}")));
            self.note_broken(checked);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                if self.by_owner.get(&(client, key)) != Some(&id) {
                    break;
                }
                let Some(core) = self.clients[client].brokers.get_mut(&key) else { return };
                let space = core.read_space();
                let count = space.len().min(rest.len());
                space[..count].copy_from_slice(&rest[..count]);
                core.handle_read(self.now, count);
                rest = &rest[count..];
                self.settle(client, Owner::Broker(key));
            }
        }
    }

    fn close_at_client(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let (client, key) = (link.client, link.key);
        let was_open = !std::mem::replace(&mut link.client_closed, true);
        self.forget_if_over(id);
        if was_open && self.by_owner.get(&(client, key)) == Some(&id) {
            self.by_owner.remove(&(client, key));
            if let Some(core) = self.clients[client].brokers.get_mut(&key) {
                core.handle_closed(self.now, "connection reset");
            }
            self.settle(client, Owner::Broker(key));
        }
    }

    fn close_at_broker(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.broker_closed = true;
        if let Some(connection) = link.connection
            && self.by_connection.remove(&connection).is_some()
        {
            self.cluster.handle_closed(self.now, connection);
            self.settle_cluster();
        }
        self.forget_if_over(id);
    }

    fn forget_if_over(&mut self, id: u64) {
        if self.links.get(&id).is_some_and(|link| link.client_closed && link.broker_closed) {
            self.links.remove(&id);
            self.wire.close(id);
        }
    }

    fn note_broken(&mut self, checked: Result<(), Broken>) {
        if let Err(broken) = checked {
            self.broken.get_or_insert(broken);
        }
    }

    fn set_timer(&mut self, client: usize, owner: Owner) {
        let state = &self.clients[client];
        let deadline = match owner {
            Owner::Cluster => state.cluster.poll_timeout(),
            Owner::Broker(key) => state.brokers.get(&key).and_then(|core| core.poll_timeout()),
        };
        let Some(at) = deadline.filter(|at| *at < Instant::FAR_FUTURE) else {
            self.clients[client].timers.remove(&owner);
            return;
        };
        let at = at.max(self.now);
        if self.clients[client].timers.get(&owner) != Some(&at) {
            self.clients[client].timers.insert(owner, at);
            self.schedule(at, Event::Timer(client, owner));
        }
    }

    fn post(&mut self, client: usize, from: Owner, to: Owner, mail: Mail) {
        self.clients[client].mail.entry((from, to)).or_default().push_back(mail);
        let at = self.now + self.thread_delay();
        self.schedule(at, Event::Mail(client, from, to));
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

    /// How long a thread takes to notice.
    fn thread_delay(&mut self) -> Duration {
        Duration::from_nanos(if self.rng.chance(self.slow_threads, 50) {
            self.rng.below(3_000_000)
        } else {
            self.rng.below(20_000)
        })
    }
}

/// The variant's name, for the trace.
fn name_of(mail: &impl std::fmt::Debug) -> String {
    let text = format!("{mail:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}
