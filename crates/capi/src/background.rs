//! The thread that hands events of the background queue to the application. A client has it only if the application
//! set `background_event_cb`.

use std::{
    ffi::c_int,
    io, ptr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle, ThreadId},
    time::Instant,
};

use parking_lot::Mutex;

use crate::{
    boundary::{Place, guarded_for, reach},
    client::Client,
    conf::EventCb,
    gate::Gate,
    interceptors::THREAD_BACKGROUND,
    queue::{Queue, raw},
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

/// How long the thread sleeps when nothing comes; closing wakes it.
const NAP_MS: c_int = 60_000;

/// Background threads of the process.
static THREADS: AtomicUsize = AtomicUsize::new(0);

impl Background {
    /// Starts the thread.
    pub(crate) fn start(client: Weak<Client>, callback: EventCb) -> io::Result<Self> {
        let queue = Queue::new();
        queue.set_client(Weak::clone(&client));
        let is_over = Arc::new(AtomicBool::new(false));
        let gate = Arc::<Gate>::default();
        let (served, over, passed) = (Arc::clone(&queue), Arc::clone(&is_over), Arc::clone(&gate));
        let (ends, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("ottla-background".into()).spawn(move || {
            THREADS.fetch_add(1, Ordering::Relaxed);
            let tell = |starts| {
                let Some(_pass) = passed.enter("on_thread_start or on_thread_exit") else { return };
                if let Some(client) = client.upgrade() {
                    client.intercept_thread(starts, THREAD_BACKGROUND, c"background", &passed);
                }
            };
            tell(true);
            serve(&client, &served, &over, &passed, callback);
            tell(false);
            THREADS.fetch_sub(1, Ordering::Relaxed);
            drop::<mpsc::Sender<()>>(ends);
        })?;
        let id = thread.thread().id();
        Ok(Self { queue, is_over, thread: Mutex::new(Some((thread, ended))), id, gate })
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Ends the thread and waits for it, unless this is it. The error names a function that did not return.
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
            // The thread goes its own way; whatever it is in, it calls nothing more.
            return self.gate.shut(until);
        }
        // It can only have panicked inside the application's function, which ends the process anyway.
        let _ = thread.join();
        Ok(())
    }
}

/// How many background threads the process has.
pub(crate) fn thread_count() -> usize {
    THREADS.load(Ordering::Relaxed)
}

fn serve(client: &Weak<Client>, queue: &Arc<Queue>, is_over: &AtomicBool, gate: &Gate, callback: EventCb) {
    let mut panics = 0;
    // After so many there is nothing to be hoped for, and the application knows.
    while !is_over.load(Ordering::Acquire) && panics < 3 {
        let Some(client) = client.upgrade() else { return };
        let is_well = guarded_for(Arc::as_ptr(&client), false, || {
            reach(Place::Background, &client);
            if let Some(event) = queue.pop_event(&client, NAP_MS)
                && let Some(_pass) = gate.enter("background_event_cb")
            {
                let event = Box::into_raw(Box::new(event));
                // SAFETY: the application's function; the event is its own from now on.
                unsafe { callback(Arc::as_ptr(&client), event, client.conf().opaque.0) };
            }
            true
        });
        panics += usize::from(!is_well);
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_queue_get_background(rk: *const Client) -> *const Queue {
    guarded_for(rk, ptr::null(), || {
        // SAFETY: NULL or a client, says the caller.
        let client = unsafe { Client::of(rk) };
        raw(client.and_then(Client::background).map(|background| Arc::clone(background.queue())))
    })
}
