//! The thread that passes the messages of a producer to its on_acknowledgement interceptors, in the order of their reports
//! and before these are delivered. It starts with the first report; a producer without such interceptors has none.
//!
//! ```text
//!   I/O thread ── deliver ──► queue ──► thread: on_acknowledgement ──► destination: the main queue, or the end of the messages
//! ```
//!
//! An interceptor may wait, or call any function: the I/O threads, which all clients share, go on meanwhile.
//!
//! # Pitfalls
//!
//! - A message counts until its interceptors have returned, even if it has no report: otherwise `rd_kafka_flush` would return
//!   before them (`acknowledged.c`).
//! - An interceptor that destroys its client runs on the thread that the end of the client waits for. Neither the
//!   interceptors of the same message nor those of later ones are called afterwards (`acknowledged.c`).

use std::{
    io,
    sync::{
        Arc, OnceLock,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use crate::{
    client::{
        op::{Call, Op},
        queue::Queue,
        queue_thread::{QueueThread, Served},
    },
    ffi::{gate::Gate, types::rd_kafka_message_t},
    produce::{delivery::Delivery, report::Destination},
};

/// How often a thread that waits for interceptors checks whether the client ends.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The interceptors of a client, as this thread calls them.
pub(crate) trait Acknowledged: Send + Sync {
    /// Passes a message to the on_acknowledgement interceptors, unless the gate is shut.
    fn acknowledged(&self, message: *mut rd_kafka_message_t, gate: &Gate);

    /// Tells the interceptors of threads that this one starts or ends.
    fn thread_changed(&self, starts: bool, gate: &Gate);

    /// Logs that the thread can't be started: the I/O threads call the interceptors.
    fn is_without_thread(&self, error: &io::Error);
}

/// The messages on their way to the interceptors.
pub(super) struct Acknowledgements {
    interceptors: Arc<dyn Acknowledged>,
    destination: Arc<Destination>,
    queue: Arc<Queue>,
    /// `None` if it could not be started.
    thread: OnceLock<Option<QueueThread>>,
}

impl Acknowledgements {
    pub(super) fn new(interceptors: Arc<dyn Acknowledged>, destination: Arc<Destination>) -> Self {
        Self { interceptors, destination, queue: Queue::new(), thread: OnceLock::new() }
    }

    /// Passes the messages of a batch to the interceptors, and then its reports to their destination.
    pub(super) fn take(&self, delivery: Delivery) {
        match self.thread.get_or_init(|| self.start()) {
            Some(_) => self.queue.push(Op::Delivery(Box::new(delivery))),
            None => pass(&*self.interceptors, &self.destination, &Gate::default(), delivery),
        }
    }

    fn start(&self) -> Option<QueueThread> {
        let (interceptors, destination) = (Arc::clone(&self.interceptors), Arc::clone(&self.destination));
        let serve = move |served: &Served| {
            interceptors.thread_changed(true, &served.gate);
            serve(&*interceptors, &destination, served);
            interceptors.thread_changed(false, &served.gate);
        };
        QueueThread::start("ottla-acks", Arc::clone(&self.queue), serve)
            .inspect_err(|error| self.interceptors.is_without_thread(error))
            .ok()
    }

    /// Waits until the interceptors of all reports so far have returned, unless this is their thread.
    pub(super) fn wait(&self) {
        let Some(Some(thread)) = self.thread.get() else { return };
        if thread.is_current() {
            return;
        }
        let (runs, has_run) = mpsc::channel::<()>();
        self.queue.push(Op::Call(Call(Box::new(move || drop(runs)))));
        while has_run.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) && !thread.is_over() {}
    }

    /// Ends the thread after the interceptors of all reports, and waits for it unless this is the thread. No interceptor is
    /// called afterwards. The error names a function that did not return.
    pub(super) fn finish(&self, until: Instant) -> Result<(), &'static str> {
        match self.thread.get() {
            Some(Some(thread)) => thread.finish(until),
            _ => Ok(()),
        }
    }
}

fn serve(interceptors: &dyn Acknowledged, destination: &Destination, served: &Served) {
    while let Some(op) = served.next() {
        match op {
            Op::Delivery(delivery) => pass(interceptors, destination, &served.gate, *delivery),
            Op::Call(call) => (call.0)(),
            _ => {}
        }
    }
}

fn pass(interceptors: &dyn Acknowledged, destination: &Destination, gate: &Gate, delivery: Delivery) {
    delivery.acknowledge(&|message| interceptors.acknowledged(message, gate));
    destination.take(delivery, destination.is_open());
}
