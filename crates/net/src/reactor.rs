//! The loop of an I/O thread: letters, sockets, timers, in that order, then sleep.

use std::{
    any::Any,
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use mio::{Events, Poll, Registry, Token};
use ottla_core::{
    broker::{BrokerCore, BrokerOutput},
    cluster::{ClusterCore, ClusterOutput},
    machine::Instant,
    mail::BrokerKey,
    wake::WakeHandle,
};
use slab::Slab;

use crate::{
    clock,
    injection::{Place, reach},
    mailbox::{Letter, Mailbox, Owner, OwnerWaker},
    runtime::{ClientId, ClientRoute, token},
    socket::{Socket, Turn},
};

/// The token of the thread's waker.
pub const WAKE_TOKEN: Token = Token(usize::MAX);

/// One I/O thread.
pub struct Reactor {
    poll: Poll,
    mailbox: Arc<Mailbox>,
    slots: Slab<Slot>,
    by_owner: HashMap<Owner, usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Letters to owners on this very thread.
    local: VecDeque<Letter>,
    /// Slots whose outputs and sockets are to be looked at.
    dirty: Vec<usize>,
    /// Slots whose sockets have more to read than their turn allowed.
    unfinished: Vec<usize>,
    /// How many owners observed clients have here.
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
    socket: Option<Socket>,
    done: bool,
}

impl Reactor {
    /// A reactor without owners.
    pub fn new(poll: Poll, mailbox: Arc<Mailbox>) -> Self {
        Self {
            poll,
            mailbox,
            slots: Slab::new(),
            by_owner: HashMap::new(),
            timers: BTreeSet::new(),
            local: VecDeque::new(),
            dirty: Vec::new(),
            unfinished: Vec::new(),
            observed: HashMap::new(),
            stopping: false,
        }
    }

    /// Runs until the runtime stops and nothing is left.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(256);
        let mut letters = Vec::new();
        loop {
            let now = clock::now();
            self.mailbox.take(&mut letters);
            for letter in letters.drain(..) {
                self.deliver(now, letter);
            }
            self.fire_timers(now);
            for slot in std::mem::take(&mut self.unfinished) {
                if self.slots.contains(slot) {
                    self.mark(slot);
                }
            }
            self.settle(now);
            if self.stopping && self.slots.is_empty() {
                return;
            }
            let timeout = self.timeout();
            let poll = &mut self.poll;
            let slept = self.mailbox.sleep(|may_block| {
                poll.poll(&mut events, if may_block { timeout } else { Some(Duration::ZERO) })
            });
            match slept {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                // epoll_wait fails for no other reason than a broken descriptor: nothing can go on without it.
                Err(_) => return,
            }
            let now = clock::now();
            for event in &events {
                if event.token() == WAKE_TOKEN {
                    continue;
                }
                let ending = event.is_read_closed() || event.is_error();
                let writable = event.is_writable() || event.is_write_closed();
                self.handle_socket(now, event.token().0, event.is_readable(), writable, ending);
            }
        }
    }

    fn deliver(&mut self, now: Instant, letter: Letter) {
        match letter {
            Letter::AddCluster(core, route) => {
                let owner = Owner::Cluster(route.client);
                self.add(owner, Machine::Cluster(core), route);
            }
            Letter::AddBroker { route, key, host, port, node_id, rng, parts } => {
                if route.broken().is_some() {
                    return;
                }
                let owner = Owner::Broker(route.client, key);
                let wake = WakeHandle::new(Arc::new(OwnerWaker::new(Arc::clone(&self.mailbox), owner)));
                let make = || {
                    reach(&route, Place::BrokerStart);
                    BrokerCore::new(&parts, host, port, node_id, wake, rng)
                };
                match catch_unwind(AssertUnwindSafe(make)) {
                    Ok(core) => {
                        let broker = Broker { key, core, socket: None, done: false };
                        self.add(owner, Machine::Broker(Box::new(broker)), route);
                    }
                    Err(panic) => break_down(&route, &*panic),
                }
            }
            Letter::ToCluster(client, from, mail) => {
                let place = Place::of_cluster_mail(&mail);
                self.with_cluster(client, place, |core| core.handle_mail(now, from, mail));
            }
            Letter::ToBroker(client, key, mail) => {
                let place = Place::of_broker_mail(&mail);
                self.with_broker(client, key, place, |broker| broker.core.handle_mail(now, mail));
            }
            Letter::BrokerDone(client, key) => {
                self.with_cluster(client, Place::ClusterMail, |core| core.handle_broker_done(key));
            }
            Letter::Wake(owner, pending) => {
                OwnerWaker::open(&pending);
                match owner {
                    Owner::Cluster(client) => {
                        self.with_cluster(client, Place::ClusterWake, |core| core.handle_wake(now));
                    }
                    Owner::Broker(client, key) => {
                        self.with_broker(client, key, Place::BrokerWake, |broker| {
                            broker.core.handle_wake(now)
                        });
                    }
                }
            }
            Letter::Resolved(client, key, result) => {
                let resolved = |broker: &mut Broker| broker.core.handle_resolved(now, result);
                self.with_broker(client, key, Place::BrokerMail, resolved);
            }
            Letter::Abandon(route) => self.abandon(&route),
            Letter::Stop => self.stopping = true,
        }
    }

    fn add(&mut self, owner: Owner, machine: Machine, route: Arc<ClientRoute>) {
        if let Some(observer) = &route.parts.connection.observer {
            let owners = self.observed.entry(route.client).or_default();
            *owners += 1;
            if *owners == 1 {
                let told = || observer.thread_starts(std::thread::current().name().unwrap_or_default());
                if let Err(panic) = catch_unwind(AssertUnwindSafe(told)) {
                    // The letter that this makes drops the owner again.
                    break_down(&route, &*panic);
                }
            }
        }
        let slot = self.slots.insert(Slot { machine, route, deadline: None, dirty: false });
        self.by_owner.insert(owner, slot);
        self.mark(slot);
    }

    /// An owner of the client's is gone from this thread.
    fn leave(&mut self, route: &ClientRoute) {
        let Some(observer) = &route.parts.connection.observer else { return };
        let Some(owners) = self.observed.get_mut(&route.client) else { return };
        *owners -= 1;
        if *owners == 0 {
            self.observed.remove(&route.client);
            // It is the application's, and may panic. The client goes anyway.
            let told = || observer.thread_ends(std::thread::current().name().unwrap_or_default());
            let _ = catch_unwind(AssertUnwindSafe(told));
        }
    }

    fn with_cluster(&mut self, client: ClientId, place: Place, act: impl FnOnce(&mut ClusterCore)) {
        let Some(slot) = self.by_owner.get(&Owner::Cluster(client)).copied() else { return };
        self.step(slot, place, |machine, _| {
            if let Machine::Cluster(core) = machine {
                act(core);
            }
        });
    }

    fn with_broker(&mut self, client: ClientId, key: BrokerKey, place: Place, act: impl FnOnce(&mut Broker)) {
        let Some(slot) = self.by_owner.get(&Owner::Broker(client, key)).copied() else { return };
        self.step(slot, place, |machine, _| {
            if let Machine::Broker(broker) = machine {
                act(broker);
            }
        });
    }

    /// One step of an owner. If it panics its client is broken, and only that.
    fn step(&mut self, slot: usize, place: Place, act: impl FnOnce(&mut Machine, &Registry)) {
        let Some(Slot { machine, route, .. }) = self.slots.get_mut(slot) else { return };
        let registry = self.poll.registry();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            reach(route, place);
            act(machine, registry);
        }));
        match outcome {
            Ok(()) => self.mark(slot),
            Err(panic) => self.break_down(slot, &*panic),
        }
    }

    /// An owner panicked. It is dropped at once, the client's others when their threads come to it.
    #[cold]
    fn break_down(&mut self, slot: usize, panic: &(dyn Any + Send)) {
        let route = Arc::clone(&self.slots[slot].route);
        break_down(&route, panic);
        self.drop_broken(slot);
    }

    /// Drops what this thread has of a broken client.
    fn abandon(&mut self, route: &Arc<ClientRoute>) {
        let is_its = |(slot, entry): (usize, &Slot)| (entry.route.client == route.client).then_some(slot);
        let slots: Vec<usize> = self.slots.iter().filter_map(is_its).collect();
        slots.into_iter().for_each(|slot| self.drop_broken(slot));
        // Reports and wakers are the application's: it may panic in them.
        if catch_unwind(AssertUnwindSafe(|| route.abandoned())).is_err() {
            route.finish();
        }
    }

    /// Fails what an owner of a broken client has, as far as it still can, and drops it.
    fn drop_broken(&mut self, slot: usize) {
        let Slot { machine, route, deadline, .. } = self.slots.remove(slot);
        self.by_owner.retain(|_, known| *known != slot);
        self.dirty.retain(|known| *known != slot);
        self.unfinished.retain(|known| *known != slot);
        if let Some(deadline) = deadline {
            self.timers.remove(&(deadline, slot));
        }
        let (registry, left) = (self.poll.registry(), Arc::clone(&route));
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let mut machine = machine;
            if let Machine::Broker(broker) = &mut machine {
                broker.close_socket(registry);
            }
            reach(&route, Place::Abandon);
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
            self.step(slot, Place::Timer, |machine, _| match machine {
                Machine::Cluster(core) => core.handle_timeout(now),
                Machine::Broker(broker) => broker.core.handle_timeout(now),
            });
        }
    }

    fn handle_socket(&mut self, now: Instant, slot: usize, readable: bool, writable: bool, ending: bool) {
        self.step(slot, Place::Socket, |machine, registry| {
            let Machine::Broker(broker) = machine else { return };
            if let Some(socket) = &mut broker.socket {
                socket.note(readable, writable, ending);
            }
            broker.read(now, registry);
        });
    }

    /// Carries out what the owners want until nobody wants anything.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(slot) = self.dirty.pop() {
                self.settle_slot(now, slot);
            }
            let Some(letter) = self.local.pop_front() else { return };
            self.deliver(now, letter);
        }
    }

    fn settle_slot(&mut self, now: Instant, slot: usize) {
        let Some(entry) = self.slots.get_mut(slot) else { return };
        entry.dirty = false;
        let route = Arc::clone(&entry.route);
        let mut posted = Vec::new();
        let (poll, unfinished) = (&self.poll, &mut self.unfinished);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            reach(&route, Place::Output);
            let mut over = false;
            match &mut entry.machine {
                Machine::Cluster(core) => {
                    while let Some(output) = core.poll_output() {
                        over |= matches!(output, ClusterOutput::Done);
                        posted.extend(cluster_letter(output, &route));
                    }
                }
                Machine::Broker(broker) => {
                    broker.settle(now, slot, &route, poll, &mut posted);
                    over = broker.done;
                    if broker.socket.as_ref().is_some_and(Socket::has_news) {
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
            self.by_owner.retain(|_, known| *known != slot);
            self.leave(&entry.route);
            if matches!(entry.machine, Machine::Cluster(_)) {
                entry.route.finish();
            }
        }
        for (mailbox, letter) in posted {
            if Arc::ptr_eq(&mailbox, &self.mailbox) {
                self.local.push_back(letter);
            } else {
                mailbox.post(letter);
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.unfinished.is_empty() {
            return Some(Duration::ZERO);
        }
        self.timers.first().map(|(at, _)| at.saturating_since(clock::now()))
    }
}

impl Broker {
    /// Reads what the socket has.
    fn read(&mut self, now: Instant, registry: &Registry) {
        let Some(socket) = &mut self.socket else { return };
        if !socket.is_connected() {
            match socket.finish_connecting() {
                None => return,
                Some(Ok(())) => self.core.handle_connected(now),
                Some(Err(error)) => {
                    self.close_socket(registry);
                    return self.core.handle_closed(now, &error.to_string());
                }
            }
        }
        if let Turn::Closed(reason) = socket.read(now, &mut self.core) {
            self.close_socket(registry);
            self.core.handle_closed(now, &reason);
        }
    }

    fn close_socket(&mut self, registry: &Registry) {
        if let Some(socket) = self.socket.take() {
            socket.close(registry);
        }
    }

    /// Carries out the outputs and writes what is waiting, until neither makes more.
    fn settle(
        &mut self,
        now: Instant,
        slot: usize,
        route: &Arc<ClientRoute>,
        poll: &Poll,
        posted: &mut Vec<(Arc<Mailbox>, Letter)>,
    ) {
        loop {
            if self.socket.as_ref().is_some_and(Socket::has_news) {
                self.read(now, poll.registry());
            }
            let Some(output) = self.core.poll_output() else {
                let Some(socket) = &mut self.socket else { return };
                match socket.write(now, &mut self.core) {
                    Turn::Closed(reason) => {
                        self.close_socket(poll.registry());
                        self.core.handle_closed(now, &reason);
                    }
                    Turn::Waiting | Turn::More => {}
                }
                match self.core.poll_output() {
                    Some(output) => self.carry_out(now, slot, output, route, poll, posted),
                    None => return,
                }
                continue;
            };
            self.carry_out(now, slot, output, route, poll, posted);
        }
    }

    fn carry_out(
        &mut self,
        now: Instant,
        slot: usize,
        output: BrokerOutput,
        route: &Arc<ClientRoute>,
        poll: &Poll,
        posted: &mut Vec<(Arc<Mailbox>, Letter)>,
    ) {
        match output {
            BrokerOutput::Resolve { host, port } => {
                if let Some(runtime) = route.runtime.upgrade() {
                    runtime.resolver.resolve(route, self.key, host, port);
                }
            }
            BrokerOutput::Connect(address) => {
                let name = self.core.name();
                let (settings, transport) = (&route.sockets, &route.transport);
                let registry = poll.registry();
                match Socket::connect(address, &name, settings, transport, registry, token(slot)) {
                    Ok(socket) => {
                        self.core.set_socket(socket.number());
                        self.socket = Some(socket);
                    }
                    Err(error) => self.core.handle_closed(now, &error.to_string()),
                }
            }
            BrokerOutput::CloseSocket => {
                if let Some(socket) = &self.socket {
                    socket.shut_down();
                }
                self.close_socket(poll.registry());
            }
            BrokerOutput::ToCluster(mail) => {
                posted.push((Arc::clone(route.home()), Letter::ToCluster(route.client, self.key, mail)));
            }
            BrokerOutput::Done => {
                self.done = true;
                posted.push((Arc::clone(route.home()), Letter::BrokerDone(route.client, self.key)));
            }
        }
    }
}

/// A part of a client panicked: everybody who has a part of it is told.
#[cold]
pub(crate) fn break_down(route: &Arc<ClientRoute>, panic: &(dyn Any + Send)) {
    let text = text_of(panic);
    // Who waits for events is the application's: it may panic when it is woken.
    let _ = catch_unwind(AssertUnwindSafe(|| route.break_down(&text)));
}

/// What a panic said.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn cluster_letter(output: ClusterOutput, route: &Arc<ClientRoute>) -> Option<(Arc<Mailbox>, Letter)> {
    match output {
        ClusterOutput::StartBroker { key, host, port, node_id, rng } => {
            let parts = Arc::clone(&route.parts);
            let letter = Letter::AddBroker { route: Arc::clone(route), key, host, port, node_id, rng, parts };
            Some((Arc::clone(route.mailbox_of(key)), letter))
        }
        ClusterOutput::ToBroker(key, mail) => {
            Some((Arc::clone(route.mailbox_of(key)), Letter::ToBroker(route.client, key, mail)))
        }
        ClusterOutput::Done => None,
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reactor({} owners)", self.slots.len())
    }
}
