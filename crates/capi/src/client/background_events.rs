//! The work of the background thread: it calls `background_event_cb`, or without one the callbacks that `rd_kafka_poll`
//! would call. The thread starts with the client if the application set `background_event_cb`, otherwise when the
//! application first asks for the queue.

use std::{
    ffi::c_int,
    io, ptr,
    sync::{Arc, Weak},
};

use crate::{
    client::{
        callbacks::EventCb,
        handle::Client,
        interceptors::THREAD_BACKGROUND,
        op::Op,
        queue::{Queue, raw},
        queue_thread::{QueueThread, Served},
        yielding::take_yield,
    },
    ffi::{
        argument::Ref,
        boundary::guarded_for,
        export,
        injection::{InjectionPoint, reach},
        time::deadline,
    },
};

/// The longest sleep between two checks; closing wakes the thread earlier.
const NAP_MS: c_int = 60_000;
/// The thread ends after this number of panics; the client has a fatal error since the first one.
const MOST_PANICS: usize = 3;

/// Starts the background thread of a client.
fn start(client: &Client, callback: Option<EventCb>) -> io::Result<QueueThread> {
    let queue = Queue::new();
    queue.set_client(client.object());
    let client = client.weak();
    QueueThread::start("ottla-background", queue, move |served| {
        let notify = |starts| {
            let Some(_pass) = served.gate.enter("on_thread_start or on_thread_exit") else { return };
            if let Some(client) = client.upgrade() {
                client.intercept_thread(starts, THREAD_BACKGROUND, c"background", &served.gate);
            }
        };
        notify(true);
        serve(&client, served, callback);
        notify(false);
    })
}

fn serve(client: &Weak<Client>, served: &Served, callback: Option<EventCb>) {
    let mut panics = 0;
    while !served.is_over() && panics < MOST_PANICS {
        let Some(client) = client.upgrade() else { return };
        let is_well = guarded_for(Arc::as_ptr(&client), false, || {
            reach(InjectionPoint::Background, client.as_c());
            let Some(callback) = callback else {
                serve_callbacks(&client, served);
                return true;
            };
            if let Some(mut event) = served.queue.pop_event(&client, NAP_MS)
                && let Some(_pass) = served.gate.enter("background_event_cb")
            {
                // A token request goes to the token callback, if there is one: the Python client's AdminClient sets
                // both callbacks, and crashes on an event that it does not expect.
                if client.conf().callbacks.token_refresh.is_some()
                    && let Some(request) = event.op.take_if(|op| matches!(op, Op::TokenRefresh(_)))
                {
                    client.serve(request);
                    return true;
                }
                let event = Box::into_raw(Box::new(event));
                // SAFETY: the application's function; it takes ownership of the event.
                unsafe { callback(client.as_c(), event, client.conf().opaque.0) };
            }
            true
        });
        panics += usize::from(!is_well);
    }
}

/// Waits for an entry, and calls the callback for it.
fn serve_callbacks(client: &Client, served: &Served) {
    if let Some(op) = served.queue.pop(deadline(NAP_MS))
        && let Some(_pass) = served.gate.enter("a callback of the background queue")
    {
        let mut op = Some(op);
        // A callback that calls `rd_kafka_yield` interrupts a batch of reports; this thread serves the rest at once.
        while let Some(rest) = op {
            op = client.serve(rest);
            let _ = take_yield();
        }
    }
}

impl Client {
    /// Returns the background queue, and starts its thread at the first use.
    pub(super) fn start_background(&self) -> io::Result<&QueueThread> {
        if let Some(background) = self.background.get() {
            return Ok(background);
        }
        let _starting = self.starting_background.lock();
        if self.is_closing() {
            return Err(io::Error::other("the client is being destroyed"));
        }
        if let Some(background) = self.background.get() {
            return Ok(background);
        }
        let background = start(self, self.conf().callbacks.background_event)?;
        Ok(self.background.get_or_init(|| background))
    }
}

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_queue_get_background(rk: Ref<Client>) -> *const Queue {
        let Some(client) = rk.get() else { return ptr::null() };
        match client.start_background() {
            Ok(background) => raw(Some(Arc::clone(background.queue()))),
            Err(error) => {
                client.log(3, c"BACKGROUND", &format!("can't start the background thread: {error}"));
                ptr::null()
            }
        }
    }
);
