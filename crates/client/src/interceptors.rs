//! Functions of the application that see every record, delivery and commit of a client (KIP-42).
//!
//! # Pitfalls
//!
//! - An interceptor that panics must not lose a record: the record goes on as it was before that interceptor
//!   (`interceptor_that_panics_loses_no_record`).

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ottla_core::{
    callback::guarded,
    event::{Event, EventQueue},
    fetch::deliver::{Message, Records},
    offsets::committed::{CommitResult, GroupOffset},
    produce::{
        outgoing::{OutgoingRecord, PreparedRecord},
        record::Record,
        report::{DeliveryBatch, DeliverySink},
    },
};

use crate::wait::in_callback;

/// Sees the records of a producer before they are queued, and their deliveries. See [`ProducerBuilder::interceptor`].
///
/// Both functions must not block: the first delays the thread that sends, the second all deliveries.
///
/// [`ProducerBuilder::interceptor`]: crate::ProducerBuilder::interceptor
pub trait ProducerInterceptor: Send + Sync {
    /// Is called once for each record, on the thread that sends, before the partition is chosen. It may change the record. A
    /// record that is refused afterwards has no delivery.
    fn on_send(&self, _record: &mut OutgoingRecord<'_, '_>) {}

    /// Is called for each batch of records that were delivered or have failed, on an I/O thread, before the producer's other
    /// reports.
    fn on_acknowledgement(&self, _batch: &DeliveryBatch) {}
}

/// Sees the records of a consumer as the application gets them, and its commits. See [`ConsumerBuilder::interceptor`].
///
/// [`ConsumerBuilder::interceptor`]: crate::ConsumerBuilder::interceptor
pub trait ConsumerInterceptor: Send + Sync {
    /// Is called for each record, on the thread of the call that returns it, before it returns.
    fn on_consume(&self, _message: &Message) {}

    /// Is called for each commit that has an outcome, also for automatic ones, on an I/O thread; not for offsets that a
    /// transaction commits.
    fn on_commit(&self, _offsets: &[GroupOffset], _outcome: &CommitResult) {}
}

/// What happened in the interceptors of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterceptorCounts {
    /// The calls of all interceptors.
    pub calls: u64,
    /// The calls that panicked. Each is also an event, [`ErrorKind::CallbackPanicked`](crate::ErrorKind::CallbackPanicked).
    pub panics: u64,
    /// The calls that took more than 10 ms.
    pub slow: u64,
}

/// A call that takes longer delays the client's other work noticeably.
const SLOW: Duration = Duration::from_millis(10);

/// The interceptors of a client, in the order of their calls.
pub(crate) struct Chain<T: ?Sized> {
    interceptors: Vec<Arc<T>>,
    events: Arc<EventQueue>,
    calls: AtomicU64,
    panics: AtomicU64,
    slow: AtomicU64,
}

impl<T: ?Sized> Chain<T> {
    pub(crate) fn new(interceptors: Vec<Arc<T>>, events: Arc<EventQueue>) -> Self {
        let (calls, panics, slow) = Default::default();
        Self { interceptors, events, calls, panics, slow }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.interceptors.is_empty()
    }

    pub(crate) fn counts(&self) -> InterceptorCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        InterceptorCounts { calls: count(&self.calls), panics: count(&self.panics), slow: count(&self.slow) }
    }

    /// Calls one interceptor. Returns false if it panicked.
    fn call(&self, function: &str, call: impl FnOnce()) -> bool {
        let began = Instant::now();
        let result = guarded(function, call);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if began.elapsed() > SLOW {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
        let Err(panicked) = result else { return true };
        self.panics.fetch_add(1, Ordering::Relaxed);
        self.events.push(Event::Error(panicked));
        false
    }
}

impl<T: ?Sized> fmt::Debug for Chain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("interceptors", &self.interceptors.len())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Chain<dyn ProducerInterceptor> {
    /// Passes a record through all interceptors.
    pub(crate) fn on_send<'a>(&self, topic: &str, record: Record<'a>) -> PreparedRecord<'a> {
        let mut record = PreparedRecord::new(record);
        for interceptor in &self.interceptors {
            let before = record.clone();
            let sees = || interceptor.on_send(&mut OutgoingRecord::new(topic, &mut record));
            if !self.call("on_send", sees) {
                record = before;
            }
        }
        record
    }
}

/// Passes reports to the interceptors first.
pub(crate) struct Intercepted {
    pub(crate) chain: Arc<Chain<dyn ProducerInterceptor>>,
    pub(crate) sink: Arc<dyn DeliverySink>,
}

impl DeliverySink for Intercepted {
    fn deliver(&self, batch: DeliveryBatch) {
        for interceptor in &self.chain.interceptors {
            self.chain.call("on_acknowledgement", || in_callback(|| interceptor.on_acknowledgement(&batch)));
        }
        self.sink.deliver(batch);
    }

    fn keeps_charge(&self) -> bool {
        self.sink.keeps_charge()
    }
}

impl Chain<dyn ConsumerInterceptor> {
    /// Shows a record to all interceptors.
    pub(crate) fn on_consume(&self, message: &Message) {
        for interceptor in &self.interceptors {
            self.call("on_consume", || interceptor.on_consume(message));
        }
    }

    /// Shows records to all interceptors.
    pub(crate) fn on_consume_all(&self, records: &Records) {
        if !self.is_empty() {
            records.iter().for_each(|message| self.on_consume(&message.to_message()));
        }
    }

    /// Shows the outcome of a commit to all interceptors.
    pub(crate) fn on_commit(&self, offsets: &[GroupOffset], outcome: &CommitResult) {
        for interceptor in &self.interceptors {
            self.call("on_commit", || in_callback(|| interceptor.on_commit(offsets, outcome)));
        }
    }
}
