//! The end of broker actors and of the client.

use std::time::Duration;

use super::ClusterCore;
use crate::{contract::broker::BrokerKey, machine::Instant, produce::placement::ProducerPlacement};

/// The longest time that closing waits for the last push of client metrics.
const LAST_PUSH: Duration = Duration::from_secs(1);

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

    /// Begins to close. A client that pushes metrics pushes once more, for at most `timeout`, unless records wait for
    /// their delivery: they fail at once.
    pub(super) fn begin_close(&mut self, now: Instant, timeout: Duration) {
        let has_records = self.producer.as_ref().is_some_and(ProducerPlacement::has_records);
        let deadline = now + timeout.min(LAST_PUSH);
        let pushes = !has_records
            && self.telemetry.as_mut().is_some_and(|telemetry| telemetry.begin_close(now, deadline));
        if !pushes {
            self.close();
        }
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        self.parts_mut().for_each(|part| part.close());
        self.commands.close();
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
        self.commands.close();
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
