//! The end of broker actors and of the client.

use super::ClusterCore;
use crate::message::BrokerKey;

impl ClusterCore {
    /// Handles a finished broker actor that the driver dropped.
    pub fn handle_broker_done(&mut self, key: BrokerKey) {
        if let Some(transactions) = &mut self.transactions {
            transactions.forget_broker(key);
        }
        self.brokers.handle_done(key);
        if self.closing && self.brokers.is_empty() {
            self.end();
        }
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        self.parts_mut().for_each(|part| part.close());
        self.reminders.close();
        self.requests.close();
        if self.brokers.is_empty() {
            self.end();
        }
        self.brokers.close();
    }

    /// Ends all calls to the cluster actor, and fails what no broker actor has, after a part of the client panicked.
    /// The cluster actor can't be used afterwards.
    pub fn abandon(&mut self) {
        self.closing = true;
        self.requests.close();
        self.parts_mut().for_each(|part| part.close());
        if let Some(producer) = &mut self.producer {
            producer.abandon();
        }
        self.reminders.close();
    }

    /// Ends the actor after the last broker actor is gone and all partitions came back.
    fn end(&mut self) {
        if let Some(producer) = &mut self.producer {
            producer.end();
        }
        self.brokers.done();
    }
}
