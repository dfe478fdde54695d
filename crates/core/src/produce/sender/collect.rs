//! Collecting: determines the partitions that have something to send, and the time of their next request.

use super::Sender;
use crate::{connection::Connection, machine::Instant, produce::message::ProduceReport};

/// A connection with more unsent bytes than this gets no further ProduceRequest; the waiting records form larger
/// batches meanwhile.
const ENOUGH_UNSENT_BYTES: usize = 2 << 20;

impl Sender {
    pub(super) fn take_notifications(&mut self) {
        let mut notifications = std::mem::take(&mut self.notifications);
        self.ready.drain(&mut notifications);
        for notification in notifications.drain(..) {
            let Some(entry) = self.slots.get(notification.slot).filter(|entry| entry.may_collect()) else {
                continue;
            };
            if entry.topic.end_idle() {
                self.outputs.push_back(ProduceReport::EndIdle.into());
            }
            self.collector.add_of_topic(
                notification.slot,
                notification.since,
                notification.full,
                entry.topic.linger(),
            );
        }
        self.notifications = notifications;
        self.take_compressed();
    }

    /// Returns true if the connection takes a further ProduceRequest.
    pub(super) fn may_add_request(&self, connection: &Connection) -> bool {
        let settings = &self.shared.settings;
        connection.may_send()
            && self.requests_in_flight < settings.max_in_flight
            && connection.unsent_bytes() < ENOUGH_UNSENT_BYTES
            && settings.max_unsent_requests.is_none_or(|most| connection.unsent_requests() < most)
    }

    pub(super) fn send_due(&mut self, now: Instant, connection: &mut Connection) {
        while self.may_add_request(connection) {
            let enough_bytes = self.ready.has_enough_bytes();
            let in_flight = self.requests_in_flight;
            let reason = self.collector.due(now, self.shared.is_flushing(), enough_bytes, in_flight);
            let Some(reason) = reason else {
                return;
            };
            if !self.send_one(now, connection, reason) {
                return;
            }
        }
    }

    /// Adds a partition to the collector if it has something to send and may send.
    pub(super) fn collect(&mut self, slot: usize) {
        let Some(entry) = self.slots.get(slot).filter(|entry| entry.may_collect()) else { return };
        if let Some((since, urgent)) = entry.partition.waiting() {
            self.collector.add_of_topic(slot, since, urgent, entry.topic.linger());
        }
    }
}
