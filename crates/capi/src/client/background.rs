//! The thread that delivers events of the background queue to the application. A client has it if the application set
//! `background_event_cb` or asked for the queue.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle, ThreadId},
    time::Instant,
};

use ottla_net::process::PerProcess;

use crate::{
    client::queue::Queue,
    ffi::{gate::Gate, lock::Mutex},
};

/// A client's background queue and the thread that serves it.
#[derive(Debug)]
pub(crate) struct Background {
    queue: Arc<Queue>,
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<(JoinHandle<()>, mpsc::Receiver<()>)>>,
    id: ThreadId,
    gate: Arc<Gate>,
}

/// The data of the thread.
pub(super) struct Served {
    pub(super) queue: Arc<Queue>,
    is_over: Arc<AtomicBool>,
    pub(super) gate: Arc<Gate>,
}

impl Served {
    /// Returns true once the client ends.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// Background threads of the process.
static THREADS: PerProcess<AtomicUsize> = PerProcess::new();

impl Background {
    /// Starts the thread, which runs `serve` until it returns.
    pub(super) fn start(queue: Arc<Queue>, serve: impl FnOnce(&Served) + Send + 'static) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let gate = Arc::<Gate>::default();
        let served =
            Served { queue: Arc::clone(&queue), is_over: Arc::clone(&is_over), gate: Arc::clone(&gate) };
        let (ends, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("ottla-background".into()).spawn(move || {
            THREADS.get().fetch_add(1, Ordering::Relaxed);
            serve(&served);
            THREADS.get().fetch_sub(1, Ordering::Relaxed);
            drop::<mpsc::Sender<()>>(ends);
        })?;
        let id = thread.thread().id();
        Ok(Self { queue, is_over, thread: Mutex::new(Some((thread, ended))), id, gate })
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Ends the thread and waits for it, unless this is the thread. The error names a function that did not return.
    pub(crate) fn stop(&self, until: Instant) -> Result<(), &'static str> {
        self.is_over.store(true, Ordering::Release);
        self.queue.clear();
        self.queue.return_poll();
        let thread = self.thread.lock().take();
        let Some((thread, ended)) = thread.filter(|_| thread::current().id() != self.id) else {
            return Ok(());
        };
        let left = until.saturating_duration_since(Instant::now());
        if ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
            // The thread is detached; the gate lets no further call of it through.
            return self.gate.shut(until);
        }
        // A join error means a panic inside the application's function, which ends the process anyway.
        let _ = thread.join();
        Ok(())
    }
}

/// Returns the number of background threads in the process.
pub(crate) fn thread_count() -> usize {
    THREADS.get().load(Ordering::Relaxed)
}
