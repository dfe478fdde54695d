//! A sink of delivery reports that logs them.

use std::sync::Arc;

use ottla_core::produce::report::{DeliveryBatch, DeliverySink};

use super::Logger;

pub(super) struct LoggedSink {
    logger: Arc<Logger>,
    sink: Arc<dyn DeliverySink>,
}

impl LoggedSink {
    pub(super) fn new(logger: Arc<Logger>, sink: Arc<dyn DeliverySink>) -> Self {
        Self { logger, sink }
    }
}

impl DeliverySink for LoggedSink {
    fn deliver(&self, batch: DeliveryBatch) {
        self.logger.delivery(&batch);
        self.sink.deliver(batch);
    }

    fn keeps_charge(&self) -> bool {
        self.sink.keeps_charge()
    }
}
