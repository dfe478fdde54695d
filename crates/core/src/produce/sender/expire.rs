//! Expiring: records that waited longer than `message.timeout.ms` are reported as failed.

use super::Sender;
use crate::{
    connection::Connection,
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        partition::{PartitionProducer, Waiting},
        topic_settings::expiry_interval,
    },
};

impl Sender {
    /// Reports the records whose `message.timeout.ms` has passed.
    pub(super) fn expire(&mut self, now: Instant, connection: &mut Connection) {
        self.take_notifications();
        for slot in 0..self.slots.len() {
            let (unreachable, waits) = (self.unreachable.as_ref(), self.without_identity.contains(&slot));
            let Some(entry) = self.slots.get_mut(slot) else { continue };
            let Some(timeout) = entry.topic.settings().message_timeout else { continue };
            if entry.next_expiry > now {
                continue;
            }
            entry.next_expiry = now + expiry_interval(timeout);
            let Some(limit) = entry.topic.settings().timed_out_before(now) else { continue };
            let error = |partition: &PartitionProducer| {
                let detail = why_not_sent(partition, unreachable, waits, connection);
                Error::new(ErrorKind::MessageTimedOutInQueue, detail)
            };
            let unsent_bytes = entry.partition.fail_waiting(&self.shared, Waiting::Since(limit), error);
            self.forget_waiting(slot, unsent_bytes);
        }
        self.report_in_flight(connection, ErrorKind::MessageTimedOutInFlight, |topic, batch| {
            topic.settings().timed_out_before(now).is_some_and(|limit| batch.since < limit)
        });
    }

    /// Fails the waiting records of a partition.
    pub(super) fn fail_waiting(&mut self, slot: usize, which: Waiting, error: &Error) {
        let Some(entry) = self.slots.get_mut(slot) else { return };
        let unsent_bytes = entry.partition.fail_waiting(&self.shared, which, |_| error.clone());
        self.forget_waiting(slot, unsent_bytes);
    }

    /// Subtracts bytes of a partition that no longer wait, if any.
    pub(super) fn forget_waiting(&mut self, slot: usize, unsent_bytes: Option<u64>) {
        if let Some(unsent_bytes) = unsent_bytes {
            self.ready.subtract_bytes(unsent_bytes);
            self.collector.remove(slot);
            self.leave_round(slot);
        }
    }
}

/// Returns why a partition's records were not sent, as far as it is known.
fn why_not_sent(
    partition: &PartitionProducer,
    unreachable: Option<&Error>,
    waits_for_identity: bool,
    connection: &Connection,
) -> String {
    let peer = connection.name();
    match (unreachable, partition.refusal()) {
        (Some(error), _) if !connection.is_ready() => error.as_cause(),
        (_, Some(error)) => error.as_cause(),
        _ if !connection.is_ready() => format!("there is no connection to {peer} yet"),
        _ if waits_for_identity => {
            "the cluster gave no producer id yet, which enable.idempotence needs".to_owned()
        }
        _ if !connection.may_send() => format!("{peer} throttles the client for longer"),
        _ => format!("{peer} did not respond to earlier requests"),
    }
}
