//! The machines of one I/O thread: messages, sockets, timers, in that order. `driver` says which thread runs
//! them, and when it sleeps.
//!
//! # Pitfalls
//!
//! - I/O threads serve all clients of the process. A panic in a step of an actor ends that client, fails its messages
//!   and leaves the others alone (`panic_at_any_step_of_a_running_client_ends_it_alone`).

use std::{
    any::Any,
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use mio::{Registry, Token};
use ottla_core::{
    broker::{BrokerCore, BrokerOutput},
    cluster::{ClusterCore, ClusterOutput},
    contract::broker::BrokerKey,
    error::ErrorKind,
    machine::Instant,
    wake::WakeHandle,
};
use slab::Slab;

use crate::{
    driver::Ready,
    injection::{InjectionPoint, reach},
    link::Link,
    mailbox::{Actor, ActorWaker, Mailbox, Message},
    runtime::{ClientId, ClientRoute},
    socket::Turn,
};

/// The token of the thread's waker.
pub const WAKE_TOKEN: Token = Token(usize::MAX);
/// The token of an actor that is not added yet.
const UNKNOWN_TOKEN: Token = Token(usize::MAX - 1);
/// The bits of a token that are the actor's slot; above them is a number of the socket.
const SLOT_BITS: u32 = usize::BITS / 2 + usize::BITS / 8;

/// The actors of one I/O thread.
pub struct Reactor {
    registry: Registry,
    mailbox: Arc<Mailbox>,
    slots: Slab<Slot>,
    by_actor: HashMap<Actor, usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Messages to actors on this thread.
    local: VecDeque<Message>,
    /// Slots whose outputs and sockets need processing.
    dirty: Vec<usize>,
    /// Slots whose sockets have more to read than one pass may.
    unfinished: Vec<usize>,
    /// The number of actors per observed client on this thread.
    observed: HashMap<ClientId, usize>,
    stopping: bool,
}

struct Slot {
    machine: Machine,
    route: Arc<ClientRoute>,
    deadline: Option<Instant>,
    dirty: bool,
}

enum Machine {
    Cluster(Box<ClusterCore>),
    Broker(Box<Broker>),
}

struct Broker {
    key: BrokerKey,
    core: BrokerCore,
    socket: Option<Link>,
    /// What the kernel calls the socket.
    token: Token,
    done: bool,
}

impl Reactor {
    /// Creates a reactor without actors.
    pub fn new(registry: Registry, mailbox: Arc<Mailbox>) -> Self {
        Self {
            registry,
            mailbox,
            slots: Slab::new(),
            by_actor: HashMap::new(),
            timers: BTreeSet::new(),
            local: VecDeque::new(),
            dirty: Vec::new(),
            unfinished: Vec::new(),
            observed: HashMap::new(),
            stopping: false,
        }
    }

    /// Handles messages, due timers and sockets with more to read, until only the kernel or another thread can bring news.
    pub fn turn(&mut self, now: Instant, messages: &mut Vec<Message>) {
        for message in messages.drain(..) {
            self.deliver(now, message);
        }
        self.fire_timers(now);
        for slot in std::mem::take(&mut self.unfinished) {
            if self.slots.contains(slot) {
                self.mark(slot);
            }
        }
        self.settle(now);
    }

    /// Drops the actors of a thread that ends.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.by_actor.clear();
        self.timers.clear();
        (self.dirty, self.unfinished) = (Vec::new(), Vec::new());
    }

    /// Returns true once the runtime stops and nothing is left.
    pub fn is_over(&self) -> bool {
        self.stopping && self.slots.is_empty()
    }

    /// Returns true if sockets have more to read than one turn may, or the runtime stops: there is more to do at once.
    pub const fn is_unfinished(&self) -> bool {
        self.stopping || !self.unfinished.is_empty()
    }

    /// Returns the time of the first timer.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn deliver(&mut self, now: Instant, message: Message) {
        match message {
            Message::AddCluster(core, route) => {
                let actor = Actor::Cluster(route.client);
                self.add(actor, Machine::Cluster(core), route);
            }
            Message::AddBroker { route, key, host, port, node_id, rng, parts } => {
                if route.broken().is_some() {
                    return;
                }
                let actor = Actor::Broker(route.client, key);
                let wake = WakeHandle::new(Arc::new(ActorWaker::new(Arc::clone(&self.mailbox), actor)));
                let make = || {
                    reach(&route, InjectionPoint::BrokerStart);
                    BrokerCore::new(&parts, host, port, node_id, wake, rng)
                };
                match catch_unwind(AssertUnwindSafe(make)) {
                    Ok(core) => {
                        let broker = Broker { key, core, socket: None, token: UNKNOWN_TOKEN, done: false };
                        self.add(actor, Machine::Broker(Box::new(broker)), route);
                    }
                    Err(panic) => break_down(&route, &*panic),
                }
            }
            Message::ToCluster(client, from, message) => {
                let point = InjectionPoint::of_cluster_message(&message);
                self.with_cluster(client, point, |core| core.handle_message(now, from, message));
            }
            Message::ToBroker(client, key, message) => {
                let point = InjectionPoint::of_broker_message(&message);
                self.with_broker(client, key, point, |broker| broker.core.handle_message(now, message));
            }
            Message::BrokerDone(client, key) => {
                self.with_cluster(client, InjectionPoint::ClusterMessage, |core| {
                    core.handle_broker_done(key)
                });
            }
            Message::Wake(actor, pending) => {
                ActorWaker::open(&pending);
                match actor {
                    Actor::Cluster(client) => {
                        self.with_cluster(client, InjectionPoint::ClusterWake, |core| core.handle_wake(now));
                    }
                    Actor::Broker(client, key) => {
                        self.with_broker(client, key, InjectionPoint::BrokerWake, |broker| {
                            broker.core.handle_wake(now)
                        });
                    }
                }
            }
            Message::Resolved(client, key, result) => {
                let resolved = |broker: &mut Broker| broker.core.handle_resolved(now, result);
                self.with_broker(client, key, InjectionPoint::BrokerMessage, resolved);
            }
            Message::Ready(ready) => self.handle_ready(now, ready),
            Message::Abandon(route) => self.abandon(&route),
            Message::Stop => self.stopping = true,
        }
    }

    fn add(&mut self, actor: Actor, machine: Machine, route: Arc<ClientRoute>) {
        if let Some(observer) = &route.parts.connection.observer {
            let actors = self.observed.entry(route.client).or_default();
            *actors += 1;
            if *actors == 1 {
                let notify = || observer.thread_starts(std::thread::current().name().unwrap_or_default());
                if let Err(panic) = catch_unwind(AssertUnwindSafe(notify)) {
                    // The message that this posts drops the actor again.
                    break_down(&route, &*panic);
                }
            }
        }
        let slot = self.slots.insert(Slot { machine, route, deadline: None, dirty: false });
        if let Machine::Broker(broker) = &mut self.slots[slot].machine {
            broker.token = new_token(slot);
        }
        self.by_actor.insert(actor, slot);
        self.mark(slot);
    }

    /// Counts down when an actor of the client leaves this thread.
    fn leave(&mut self, route: &ClientRoute) {
        let Some(observer) = &route.parts.connection.observer else { return };
        let Some(actors) = self.observed.get_mut(&route.client) else { return };
        *actors -= 1;
        if *actors == 0 {
            self.observed.remove(&route.client);
            // The observer belongs to the application and may panic. The client ends regardless.
            let notify = || observer.thread_ends(std::thread::current().name().unwrap_or_default());
            let _ = catch_unwind(AssertUnwindSafe(notify));
        }
    }

    fn with_cluster(&mut self, client: ClientId, point: InjectionPoint, act: impl FnOnce(&mut ClusterCore)) {
        let Some(slot) = self.by_actor.get(&Actor::Cluster(client)).copied() else { return };
        self.step(slot, point, |machine, _| {
            if let Machine::Cluster(core) = machine {
                act(core);
            }
        });
    }

    fn with_broker(
        &mut self,
        client: ClientId,
        key: BrokerKey,
        point: InjectionPoint,
        act: impl FnOnce(&mut Broker),
    ) {
        let Some(slot) = self.by_actor.get(&Actor::Broker(client, key)).copied() else { return };
        self.step(slot, point, |machine, _| {
            if let Machine::Broker(broker) = machine {
                act(broker);
            }
        });
    }

    /// Runs one step of an actor. A panic breaks its client, and no other.
    fn step(&mut self, slot: usize, point: InjectionPoint, act: impl FnOnce(&mut Machine, &Registry)) {
        let Some(Slot { machine, route, .. }) = self.slots.get_mut(slot) else { return };
        let registry = &self.registry;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            reach(route, point);
            act(machine, registry);
        }));
        match outcome {
            Ok(()) => self.mark(slot),
            Err(panic) => self.break_down(slot, &*panic),
        }
    }

    /// Handles a panic of an actor: drops it at once; the client's other actors follow on their own threads.
    #[cold]
    fn break_down(&mut self, slot: usize, panic: &(dyn Any + Send)) {
        let route = Arc::clone(&self.slots[slot].route);
        break_down(&route, panic);
        self.drop_broken(slot);
    }

    /// Drops everything of a broken client that runs on this thread.
    fn abandon(&mut self, route: &Arc<ClientRoute>) {
        let is_its = |(slot, entry): (usize, &Slot)| (entry.route.client == route.client).then_some(slot);
        let slots: Vec<usize> = self.slots.iter().filter_map(is_its).collect();
        slots.into_iter().for_each(|slot| self.drop_broken(slot));
        // Delivery reports and wakers belong to the application and may panic.
        if catch_unwind(AssertUnwindSafe(|| route.abandoned())).is_err() {
            route.finish();
        }
    }

    /// Fails the remaining records and requests of a broken client's actor as far as possible, and drops it.
    fn drop_broken(&mut self, slot: usize) {
        let Slot { machine, route, deadline, .. } = self.slots.remove(slot);
        self.by_actor.retain(|_, known| *known != slot);
        self.dirty.retain(|known| *known != slot);
        self.unfinished.retain(|known| *known != slot);
        if let Some(deadline) = deadline {
            self.timers.remove(&(deadline, slot));
        }
        let (registry, left) = (&self.registry, Arc::clone(&route));
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let mut machine = machine;
            if let Machine::Broker(broker) = &mut machine {
                broker.close_socket(registry);
            }
            reach(&route, InjectionPoint::Abandon);
            match (&mut machine, route.broken()) {
                (Machine::Cluster(core), _) => core.abandon(),
                (Machine::Broker(broker), Some(error)) => broker.core.abandon(error),
                (Machine::Broker(_), None) => {}
            }
        }));
        self.leave(&left);
    }

    fn mark(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.slots[slot].dirty, true) {
            self.dirty.push(slot);
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some((at, slot)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.remove(&(at, slot));
            self.slots[slot].deadline = None;
            self.step(slot, InjectionPoint::Timer, |machine, _| match machine {
                Machine::Cluster(core) => core.handle_timeout(now),
                Machine::Broker(broker) => broker.core.handle_timeout(now),
            });
        }
    }

    /// Handles the kernel's event for a socket.
    pub fn handle_ready(&mut self, now: Instant, ready: Ready) {
        let slot = slot_of(ready.token);
        // The event may be of an earlier socket, or of an actor that had the slot before.
        let is_current = match self.slots.get(slot).map(|slot| &slot.machine) {
            Some(Machine::Broker(broker)) => broker.token == ready.token,
            Some(Machine::Cluster(_)) | None => false,
        };
        if !is_current {
            return;
        }
        self.step(slot, InjectionPoint::Socket, |machine, registry| {
            let Machine::Broker(broker) = machine else { return };
            if let Some(socket) = &mut broker.socket {
                socket.note(ready.readable, ready.writable, ready.ending);
            }
            broker.read(now, registry);
        });
    }

    /// Carries out the actors' outputs until there are none.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(slot) = self.dirty.pop() {
                self.settle_slot(now, slot);
            }
            let Some(message) = self.local.pop_front() else { return };
            self.deliver(now, message);
        }
    }

    fn settle_slot(&mut self, now: Instant, slot: usize) {
        let Some(entry) = self.slots.get_mut(slot) else { return };
        entry.dirty = false;
        let route = Arc::clone(&entry.route);
        let mut posted = Vec::new();
        let (registry, unfinished) = (&self.registry, &mut self.unfinished);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            reach(&route, InjectionPoint::Output);
            let mut over = false;
            match &mut entry.machine {
                Machine::Cluster(core) => {
                    while let Some(output) = core.poll_output() {
                        over |= matches!(output, ClusterOutput::Done);
                        posted.extend(cluster_letter(output, &route));
                    }
                }
                Machine::Broker(broker) => {
                    broker.settle(now, &route, registry, &mut posted);
                    over = broker.done;
                    if broker.socket.as_ref().is_some_and(Link::has_news) {
                        unfinished.push(slot);
                    }
                }
            }
            let deadline = match &entry.machine {
                _ if over => None,
                Machine::Cluster(core) => core.poll_timeout(),
                Machine::Broker(broker) => broker.core.poll_timeout(),
            };
            (over, deadline)
        }));
        let (over, deadline) = match outcome {
            Ok(both) => both,
            Err(panic) => return self.break_down(slot, &*panic),
        };
        if entry.deadline != deadline {
            if let Some(old) = std::mem::replace(&mut entry.deadline, deadline) {
                self.timers.remove(&(old, slot));
            }
            if let Some(new) = deadline {
                self.timers.insert((new, slot));
            }
        }
        if over {
            let entry = self.slots.remove(slot);
            self.by_actor.retain(|_, known| *known != slot);
            self.leave(&entry.route);
            if matches!(entry.machine, Machine::Cluster(_)) {
                entry.route.finish();
            }
        }
        for (mailbox, message) in posted {
            if Arc::ptr_eq(&mailbox, &self.mailbox) {
                self.local.push_back(message);
            } else {
                mailbox.post(message);
            }
        }
    }
}

impl Broker {
    /// Reads from the socket.
    fn read(&mut self, now: Instant, registry: &Registry) {
        let Some(socket) = &mut self.socket else { return };
        match socket.finish_connecting(now, &mut self.core) {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.close_socket(registry);
                return self.core.handle_closed(now, &error.to_string());
            }
        }
        let turn = socket.read(now, &mut self.core);
        self.handle_turn(now, turn, registry);
    }

    /// Closes the socket if the connection has ended.
    fn handle_turn(&mut self, now: Instant, turn: Turn, registry: &Registry) {
        match turn {
            Turn::Waiting | Turn::More => {}
            Turn::Closed(reason) => {
                self.close_socket(registry);
                self.core.handle_closed(now, &reason);
            }
            Turn::Failed(error) => {
                self.close_socket(registry);
                self.core.handle_failed(now, error);
            }
        }
    }

    fn close_socket(&mut self, registry: &Registry) {
        if let Some(socket) = self.socket.take() {
            socket.close(registry);
        }
    }

    /// Carries out the outputs and writes to the socket, until neither produces more.
    fn settle(
        &mut self,
        now: Instant,
        route: &Arc<ClientRoute>,
        registry: &Registry,
        posted: &mut Vec<(Arc<Mailbox>, Message)>,
    ) {
        loop {
            if self.socket.as_ref().is_some_and(Link::has_news) {
                self.read(now, registry);
            }
            let Some(output) = self.core.poll_output() else {
                let Some(socket) = &mut self.socket else { return };
                let turn = socket.write(now, &mut self.core);
                self.handle_turn(now, turn, registry);
                match self.core.poll_output() {
                    Some(output) => self.carry_out(now, output, route, registry, posted),
                    None => return,
                }
                continue;
            };
            self.carry_out(now, output, route, registry, posted);
        }
    }

    fn carry_out(
        &mut self,
        now: Instant,
        output: BrokerOutput,
        route: &Arc<ClientRoute>,
        registry: &Registry,
        posted: &mut Vec<(Arc<Mailbox>, Message)>,
    ) {
        match output {
            BrokerOutput::Resolve { host, port } => {
                if let Some(runtime) = route.runtime.upgrade() {
                    runtime.resolver.resolve(route, self.key, host, port);
                }
            }
            BrokerOutput::Connect(address) => {
                self.token = new_token(slot_of(self.token));
                let (settings, transport) = (&route.sockets, &route.transport);
                let tls = route.tls.as_deref();
                match Link::connect(address, &self.core, tls, settings, transport, registry, self.token) {
                    Ok(socket) => {
                        self.core.set_socket(socket.number());
                        self.socket = Some(socket);
                    }
                    Err(error) if error.kind() == ErrorKind::Connect => {
                        self.core.handle_closed(now, &error.context().detail);
                    }
                    Err(error) => self.core.handle_failed(now, error),
                }
            }
            BrokerOutput::CloseSocket => {
                if let Some(socket) = &mut self.socket {
                    socket.shut_down();
                }
                self.close_socket(registry);
            }
            BrokerOutput::ToCluster(message) => {
                posted.push((Arc::clone(route.home()), Message::ToCluster(route.client, self.key, message)));
            }
            BrokerOutput::Done => {
                self.done = true;
                posted.push((Arc::clone(route.home()), Message::BrokerDone(route.client, self.key)));
            }
        }
    }
}

/// Returns a token for the next socket of the actor in a slot. The threads that poll may yet have an event of an earlier one.
fn new_token(slot: usize) -> Token {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    Token((number << SLOT_BITS | slot) & (usize::MAX >> 1))
}

/// Returns the slot of the actor with a token.
const fn slot_of(token: Token) -> usize {
    token.0 & ((1 << SLOT_BITS) - 1)
}

/// Breaks a client after a panic in one of its actors: notifies all threads that run a part of it.
#[cold]
pub(crate) fn break_down(route: &Arc<ClientRoute>, panic: &(dyn Any + Send)) {
    // The event waker belongs to the application and may panic.
    let _ = catch_unwind(AssertUnwindSafe(|| route.break_down(panic)));
}

fn cluster_letter(output: ClusterOutput, route: &Arc<ClientRoute>) -> Option<(Arc<Mailbox>, Message)> {
    match output {
        ClusterOutput::StartBroker { key, host, port, node_id, rng } => {
            let parts = Arc::clone(&route.parts);
            let message =
                Message::AddBroker { route: Arc::clone(route), key, host, port, node_id, rng, parts };
            Some((Arc::clone(route.mailbox_of(key)), message))
        }
        ClusterOutput::ToBroker(key, message) => {
            Some((Arc::clone(route.mailbox_of(key)), Message::ToBroker(route.client, key, message)))
        }
        ClusterOutput::Done => None,
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reactor({} actors)", self.slots.len())
    }
}
