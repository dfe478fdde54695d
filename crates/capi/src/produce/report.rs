//! The destination of a producer's delivery reports.

use std::sync::Arc;

use ottla::Producer;
use ottla_core::produce::report::{DeliveryBatch, DeliverySink};

use crate::{
    client::{log::Log, op::Op, queue::Queue},
    ffi::{codes::code, error::code_of_delivery, lock::Mutex, types::rd_kafka_message_t},
    produce::delivery::Delivery,
};

/// Takes the reports of a producer, on an I/O thread.
pub(crate) struct Reports {
    /// The destination, if the application wants reports.
    queue: Option<Arc<Queue>>,
    only_errors: bool,
    /// True if the opaque number of each record is its [`Produced`](super::produced::Produced).
    has_messages: bool,
    /// The producer's state, whose queue limits get back the space of served messages. Empty once the client has ended.
    producer: Mutex<Option<Producer>>,
    /// Passes a message to the on_acknowledgement interceptors, if there are any.
    acknowledge: Option<Acknowledge>,
    /// The client's log, if it has a line for the outcome of a batch.
    log: Option<Arc<Log>>,
}

/// Passes a message to interceptors.
pub(crate) type Acknowledge = Box<dyn Fn(*mut rd_kafka_message_t) + Send + Sync>;

impl Reports {
    pub(crate) fn new(
        queue: Option<Arc<Queue>>,
        only_errors: bool,
        has_messages: bool,
        acknowledge: Option<Acknowledge>,
        log: Option<Arc<Log>>,
    ) -> Self {
        Self { queue, only_errors, has_messages, producer: Mutex::new(None), acknowledge, log }
    }

    pub(crate) const fn has_messages(&self) -> bool {
        self.has_messages
    }

    pub(crate) fn set_producer(&self, producer: Option<Producer>) {
        let before = std::mem::replace(&mut *self.producer.lock(), producer);
        // Dropping the last reference ends the producer, which must not happen under the lock.
        drop(before);
    }
}

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        if let Some(log) = &self.log {
            log.note_delivery(&batch);
        }
        let producer = self.producer.lock().clone();
        let is_requested = producer.is_some() && !(self.only_errors && batch.error().is_none());
        let code = batch.error().map_or(code::NO_ERROR, code_of_delivery);
        let charged = if self.keeps_charge() { producer } else { None };
        let delivery = Delivery::new(batch, charged, self.has_messages, code);
        if let Some(acknowledge) = &self.acknowledge {
            delivery.acknowledge(acknowledge);
        }
        match &self.queue {
            Some(queue) if is_requested => queue.push(Op::Delivery(Box::new(delivery))),
            _ => drop(delivery),
        }
    }

    fn keeps_charge(&self) -> bool {
        self.queue.is_some()
    }
}
