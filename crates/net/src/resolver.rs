//! Host names to addresses, on a thread of its own because the system's resolver blocks.

use std::{
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
};

use parking_lot::Mutex;

use ottla_core::{config::AddressFamily, mail::BrokerKey};

use crate::{
    injection::{Place, reach},
    mailbox::Letter,
    reactor::break_down,
    runtime::ClientRoute,
};

/// Resolves host names in order, off the I/O threads. The thread starts with the first name that is not an address.
#[derive(Debug, Default)]
pub struct Resolver {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

/// A broker's owner wants to know where its host is.
struct Job {
    route: Arc<ClientRoute>,
    key: BrokerKey,
    host: String,
    port: u16,
}

impl Resolver {
    /// True once the thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.jobs.lock().is_some()
    }

    /// Resolves a name and mails the addresses to the broker's owner, from the resolver's thread or at once.
    pub fn resolve(&self, route: &Arc<ClientRoute>, key: BrokerKey, host: String, port: u16) {
        let job = Job { route: Arc::clone(route), key, host, port };
        if !route.transport.resolves_addresses()
            && let Ok(address) = job.host.trim_start_matches('[').trim_end_matches(']').parse()
        {
            let permitted = job.permitted(vec![SocketAddr::new(address, port)]);
            return job.answer(permitted);
        }
        let mut jobs = self.jobs.lock();
        let job = match &*jobs {
            Some(jobs) => match jobs.send(job) {
                Ok(()) => return,
                Err(mpsc::SendError(job)) => job,
            },
            None => job,
        };
        let (sender, receiver) = mpsc::channel();
        match thread::Builder::new().name("ottla-resolver".to_owned()).spawn(move || run(&receiver)) {
            Ok(_) => {
                // The thread is new and holds the receiver: the send can't fail.
                let _ = sender.send(job);
                *jobs = Some(sender);
            }
            Err(error) => job.answer(Err(format!("can't start the resolver's thread: {error}"))),
        }
    }
}

impl Job {
    fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        reach(&self.route, Place::Resolve);
        let Self { route, host, port, .. } = self;
        let found = route.transport.resolve(host, *port);
        self.permitted(found.map_err(|error| format!("can't resolve {host}: {error}"))?)
    }

    /// Those of a host's addresses that `broker.address.family` lets through.
    fn permitted(&self, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
        let family = self.route.sockets.family;
        addresses.retain(|address| match family {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        });
        let wanted = match family {
            AddressFamily::V4 => "IPv4",
            AddressFamily::V6 => "IPv6",
            AddressFamily::Any => return Ok(addresses),
        };
        if addresses.is_empty() {
            return Err(format!("{} has no {wanted} address (broker.address.family)", self.host));
        }
        Ok(addresses)
    }

    fn answer(self, result: Result<Vec<SocketAddr>, String>) {
        let Self { route, key, .. } = self;
        route.mailbox_of(key).post(Letter::Resolved(route.client, key, result));
    }
}

fn run(jobs: &mpsc::Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        // The thread is everybody's: it goes on whatever happens to one name.
        match catch_unwind(AssertUnwindSafe(|| job.resolve())) {
            Ok(result) => job.answer(result),
            Err(panic) => break_down(&job.route, &*panic),
        }
    }
}
