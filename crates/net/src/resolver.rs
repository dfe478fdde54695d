//! Host names to addresses, on a thread of its own because the system's resolver blocks.

use std::{
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
};

use parking_lot::Mutex;

use crate::{reactor::text_of, transport::Transport};

/// Resolves host names in order, off the I/O threads. The thread starts with the first name that is not an address.
#[derive(Debug, Default)]
pub struct Resolver {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

struct Job {
    host: String,
    port: u16,
    transport: Arc<dyn Transport>,
    answer: Box<dyn FnOnce(Result<Vec<SocketAddr>, String>) + Send>,
}

impl Resolver {
    /// True once the thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.jobs.lock().is_some()
    }

    /// Resolves a name and passes the addresses on, from the resolver's thread or at once.
    pub fn resolve(
        &self,
        host: String,
        port: u16,
        transport: Arc<dyn Transport>,
        answer: impl FnOnce(Result<Vec<SocketAddr>, String>) + Send + 'static,
    ) {
        if !transport.resolves_addresses()
            && let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse()
        {
            return answer(Ok(vec![SocketAddr::new(address, port)]));
        }
        let mut jobs = self.jobs.lock();
        let job = Job { host, port, transport, answer: Box::new(answer) };
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
            Err(error) => (job.answer)(Err(format!("can't start the resolver's thread: {error}"))),
        }
    }
}

fn run(jobs: &mpsc::Receiver<Job>) {
    while let Ok(Job { host, port, transport, answer }) = jobs.recv() {
        let resolve = || transport.resolve(&host, port).map_err(|error| error.to_string());
        // The thread is everybody's: it goes on whatever happens to one name.
        let result = catch_unwind(AssertUnwindSafe(resolve)).unwrap_or_else(|panic| Err(text_of(&*panic)));
        drop(transport);
        let answer = || answer(result.map_err(|error| format!("can't resolve {host}: {error}")));
        let _ = catch_unwind(AssertUnwindSafe(answer));
    }
}
