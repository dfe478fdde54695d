//! The destination of a producer's delivery reports.

use std::{iter, sync::Arc, time::Instant};

use ottla::Producer;
use ottla_core::{
    error::ErrorKind,
    produce::report::{DeliveryBatch, DeliverySink},
};

use crate::{
    client::{log::Log, op::Op, queue::Queue},
    ffi::{codes::code, error::code_of_delivery, lock::Mutex},
    produce::{
        acknowledgements::{Acknowledged, Acknowledgements},
        delivery::Delivery,
    },
};

/// Takes the reports of a producer, on an I/O thread.
pub(crate) struct Reports {
    destination: Arc<Destination>,
    /// True if the opaque number of each record is its [`Produced`](super::produced::Produced).
    has_messages: bool,
    /// The way to the destination, if there are on_acknowledgement interceptors.
    acknowledgements: Option<Acknowledgements>,
    /// The client's log, if it has a line for the outcome of a batch.
    log: Option<Arc<Log>>,
}

/// Where reports end.
pub(super) struct Destination {
    /// The queue, if the application wants reports.
    queue: Option<Arc<Queue>>,
    only_errors: bool,
    /// The producer's state, whose queue limits get back the space of served messages. Empty once the client has ended.
    producer: Mutex<Option<Producer>>,
}

impl Destination {
    /// Returns true until the client ends.
    pub(super) fn is_open(&self) -> bool {
        self.producer.lock().is_some()
    }

    /// Queues the reports of a batch for the application, or frees its messages if the application does not get them.
    pub(super) fn take(&self, delivery: Delivery, is_open: bool) {
        match &self.queue {
            Some(queue) if is_open && self.wants(&delivery) => queue.push(Op::Delivery(Box::new(delivery))),
            _ => drop(delivery),
        }
    }

    /// Like [`Self::take`], for the batches of a response in one step.
    fn take_all(&self, deliveries: impl Iterator<Item = Delivery>, is_open: bool) {
        match &self.queue {
            Some(queue) if is_open => {
                let wanted = deliveries.filter(|delivery| self.wants(delivery));
                queue.push_all(wanted.map(|delivery| Op::Delivery(Box::new(delivery))).collect());
            }
            _ => deliveries.for_each(drop),
        }
    }

    fn wants(&self, delivery: &Delivery) -> bool {
        !(self.only_errors && delivery.code() == code::NO_ERROR)
    }
}

impl Reports {
    pub(crate) fn new(
        queue: Option<Arc<Queue>>,
        only_errors: bool,
        has_messages: bool,
        interceptors: Option<Arc<dyn Acknowledged>>,
        log: Option<Arc<Log>>,
    ) -> Self {
        let destination = Arc::new(Destination { queue, only_errors, producer: Mutex::new(None) });
        let acknowledgements =
            interceptors.map(|interceptors| Acknowledgements::new(interceptors, Arc::clone(&destination)));
        Self { destination, has_messages, acknowledgements, log }
    }

    pub(crate) const fn has_messages(&self) -> bool {
        self.has_messages
    }

    pub(crate) fn set_producer(&self, producer: Option<Producer>) {
        let before = std::mem::replace(&mut *self.destination.producer.lock(), producer);
        // Dropping the last reference ends the producer, which must not happen under the lock.
        drop(before);
    }

    /// Waits until the on_acknowledgement interceptors of all reports so far have returned, unless one of them calls this.
    pub(crate) fn wait_for_interceptors(&self) {
        if let Some(acknowledgements) = &self.acknowledgements {
            acknowledgements.wait();
        }
    }

    /// Ends the calls of on_acknowledgement interceptors, after those of all reports so far. The error names a function that
    /// did not return.
    pub(crate) fn finish_interceptors(&self, until: Instant) -> Result<(), &'static str> {
        self.acknowledgements.as_ref().map_or(Ok(()), |acknowledgements| acknowledgements.finish(until))
    }
}

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        self.deliver_all(&mut iter::once(batch));
    }

    fn deliver_all(&self, batches: &mut dyn Iterator<Item = DeliveryBatch>) {
        let producer = self.destination.producer.lock().clone();
        let is_open = producer.is_some();
        let charged = if self.keeps_charge() { producer } else { None };
        let deliveries = batches.map(|batch| self.delivery(batch, is_open, charged.clone()));
        match &self.acknowledgements {
            Some(acknowledgements) => deliveries.for_each(|delivery| acknowledgements.take(delivery)),
            None => self.destination.take_all(deliveries, is_open),
        }
    }

    fn keeps_charge(&self) -> bool {
        self.destination.queue.is_some() || self.acknowledgements.is_some()
    }
}

impl Reports {
    fn delivery(&self, batch: DeliveryBatch, is_open: bool, charged: Option<Producer>) -> Delivery {
        if let Some(log) = &self.log {
            log.note_delivery(&batch);
        }
        let code = match batch.error() {
            // The end of the client purges messages, too.
            Some(error) if !is_open && is_purged(error.kind()) => code::_DESTROY,
            error => error.map_or(code::NO_ERROR, code_of_delivery),
        };
        Delivery::new(batch, charged, self.has_messages, code)
    }
}

const fn is_purged(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PurgedFromQueue | ErrorKind::PurgedInFlight)
}
