//! Where the delivery reports of a producer go.

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
    /// Where to, if the application wants them.
    queue: Option<Arc<Queue>>,
    only_errors: bool,
    /// Each record's number is its [`Produced`](super::produced::Produced).
    has_messages: bool,
    /// To give back what the messages count for in the queue's limits. Empty once the client is gone.
    producer: Mutex<Option<Producer>>,
    /// Shows a message to the interceptors that look at what was acknowledged, if there are any.
    acknowledge: Option<Acknowledge>,
    /// The client's log, if it has a line for the end of a batch.
    log: Option<Arc<Log>>,
}

/// Shows a message to interceptors.
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
        // The last one of a producer ends it, which must not happen under the lock.
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
