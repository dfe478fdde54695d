//! The thread that hands events of the background queue to the application. A client has it only if the application
//! set `background_event_cb`.

use std::{
    ffi::c_int,
    io, ptr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle, ThreadId},
};

use parking_lot::Mutex;

use crate::{
    boundary::{Place, guarded_for, reach},
    client::Client,
    conf::EventCb,
    interceptors::THREAD_BACKGROUND,
    queue::{Queue, raw},
};

/// A client's background queue and the thread that serves it.
#[derive(Debug)]
pub(crate) struct Background {
    queue: Arc<Queue>,
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    id: ThreadId,
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
        let (served, over) = (Arc::clone(&queue), Arc::clone(&is_over));
        let thread = thread::Builder::new().name("ottla-background".into()).spawn(move || {
            THREADS.fetch_add(1, Ordering::Relaxed);
            let tell = |starts| {
                if let Some(client) = client.upgrade() {
                    client.intercept_thread(starts, THREAD_BACKGROUND, c"background");
                }
            };
            tell(true);
            serve(&client, &served, &over, callback);
            tell(false);
            THREADS.fetch_sub(1, Ordering::Relaxed);
        })?;
        let id = thread.thread().id();
        Ok(Self { queue, is_over, thread: Mutex::new(Some(thread)), id })
    }

    pub(crate) const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Ends the thread and waits for it, unless this is it.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        self.queue.clear();
        self.queue.return_poll();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|_| thread::current().id() != self.id) {
            // It can only have panicked inside the application's function, which ends the process anyway.
            let _ = thread.join();
        }
    }
}

/// How many background threads the process has.
pub(crate) fn thread_count() -> usize {
    THREADS.load(Ordering::Relaxed)
}

fn serve(client: &Weak<Client>, queue: &Arc<Queue>, is_over: &AtomicBool, callback: EventCb) {
    let mut panics = 0;
    // After so many there is nothing to be hoped for, and the application knows.
    while !is_over.load(Ordering::Acquire) && panics < 3 {
        let Some(client) = client.upgrade() else { return };
        let is_well = guarded_for(Arc::as_ptr(&client), false, || {
            reach(Place::Background, &client);
            if let Some(event) = queue.pop_event(&client, NAP_MS) {
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
