//! Resolves host names to addresses, on a thread of its own because the system's resolver blocks.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use ottla_core::{
    config::AddressFamily,
    contract::broker::BrokerKey,
    lock::{Condvar, Mutex},
};

use crate::{
    injection::{InjectionPoint, reach},
    mailbox::Message,
    reactor::break_down,
    runtime::{ClientId, ClientRoute},
};

/// Resolves host names in order, off the I/O threads. The thread starts with the first name that is not an address.
#[derive(Debug, Default)]
pub struct Resolver {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The client whose name is being resolved.
    current: Option<ClientId>,
    has_thread: bool,
    /// The number of abandoned threads. Each thread remembers the number at its start, and ends when it has changed.
    turn: u64,
    is_over: bool,
}

/// A broker actor's request for a host's addresses.
#[derive(Debug)]
struct Job {
    route: Arc<ClientRoute>,
    key: BrokerKey,
    host: String,
    port: u16,
}

impl Resolver {
    /// Returns true while the thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.shared.state.lock().has_thread
    }

    /// Resolves a name and sends the addresses to the broker actor, from the resolver's thread or at once.
    pub fn resolve(&self, route: &Arc<ClientRoute>, key: BrokerKey, host: String, port: u16) {
        let job = Job { route: Arc::clone(route), key, host, port };
        if !route.transport.resolves_addresses()
            && let Ok(address) = job.host.trim_start_matches('[').trim_end_matches(']').parse()
        {
            let permitted = job.permitted(vec![SocketAddr::new(address, port)]);
            return job.respond(permitted);
        }
        let failed = {
            let mut state = self.shared.state.lock();
            state.jobs.push_back(job);
            self.see_to(&mut state)
        };
        failed.into_iter().for_each(|(job, why)| job.respond(Err(why)));
    }

    /// Drops the requests of a client that ended. If the thread is busy with one of its names, which may take long, the
    /// thread is abandoned and a new one serves the other clients.
    pub fn leave(&self, client: ClientId) {
        let (gone, failed) = {
            let mut state = self.shared.state.lock();
            let (gone, jobs): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut state.jobs).into_iter().partition(|job| job.route.client == client);
            state.jobs = jobs;
            if state.current == Some(client) {
                state.current = None;
                state.turn += 1;
                state.has_thread = false;
            }
            (gone, self.see_to(&mut state))
        };
        drop(gone);
        failed.into_iter().for_each(|(job, why)| job.respond(Err(why)));
    }

    /// Starts a thread if there are jobs and none runs. Returns the jobs that failed because no thread could start.
    fn see_to(&self, state: &mut State) -> Vec<(Job, String)> {
        if state.jobs.is_empty() || state.has_thread {
            self.shared.changed.notify_all();
            return Vec::new();
        }
        let (shared, turn) = (Arc::clone(&self.shared), state.turn);
        match thread::Builder::new().name("ottla-resolver".to_owned()).spawn(move || run(&shared, turn)) {
            Ok(_) => {
                state.has_thread = true;
                Vec::new()
            }
            Err(error) => {
                let why = format!("can't start the resolver's thread: {error}");
                state.jobs.drain(..).map(|job| (job, why.clone())).collect()
            }
        }
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Job {
    fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        reach(&self.route, InjectionPoint::Resolve);
        let Self { route, host, port, .. } = self;
        let found = route.transport.resolve(host, *port);
        self.permitted(found.map_err(|error| format!("can't resolve {host}: {error}"))?)
    }

    /// Returns the addresses of the family that `broker.address.family` permits.
    fn permitted(&self, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
        let family = self.route.sockets.family;
        addresses.retain(|address| match family {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        });
        let requested = match family {
            AddressFamily::V4 => "IPv4",
            AddressFamily::V6 => "IPv6",
            AddressFamily::Any => return Ok(addresses),
        };
        if addresses.is_empty() {
            return Err(format!("{} has no {requested} address (broker.address.family)", self.host));
        }
        Ok(addresses)
    }

    fn respond(self, result: Result<Vec<SocketAddr>, String>) {
        let Self { route, key, .. } = self;
        route.mailbox_of(key).post(Message::Resolved(route.client, key, result));
    }
}

fn run(shared: &Shared, turn: u64) {
    let mut state = shared.state.lock();
    while state.turn == turn && !state.is_over {
        let Some(job) = state.jobs.pop_front() else {
            shared.changed.wait(&mut state);
            continue;
        };
        state.current = Some(job.route.client);
        drop(state);
        // All clients share the thread: it must survive a panic for one name.
        match catch_unwind(AssertUnwindSafe(|| job.resolve())) {
            Ok(result) => job.respond(result),
            Err(panic) => break_down(&job.route, &*panic),
        }
        state = shared.state.lock();
        if state.turn == turn {
            state.current = None;
        }
    }
}
