//! The sending half of a broker actor: the partitions that it leads, its collector, and its batches in flight.
//!
//! # Pitfalls
//!
//! - A batch that may have been written is doubtful under one sequence number only. With a new identity the doubt is
//!   gone, and the batch must not pass the first batch of that identity
//!   (`batch_doubtful_under_old_identity_does_not_pass_the_first_of_a_new_one`).
//! - A request lists partitions oldest first, and Kafka responds in an order of its own. The lookup of a result is
//!   constant time (`response_may_list_partitions_in_another_order_than_the_request`).
//! - A new leader gets at once what the former one refused (KIP-951), but only twice in a row: two brokers that name
//!   each other would make the client send as fast as the network allows
//!   (`batch_bouncing_between_leaders_is_sent_no_faster_than_the_backoff`).
//! - DUPLICATE_SEQUENCE_NUMBER means success only for a batch that was sent before
//!   (`a_first_batch_that_is_called_a_duplicate_is_not_reported_as_written`).
//! - A leader that loses leadership while it waits for followers responds NOT_LEADER_OR_FOLLOWER after writing. That
//!   error does not mean "not written" (`leader_that_loses_leadership_may_have_written_the_batch`).
//! - A broker accepts any first sequence number of a producer that it doesn't know. Until the first batch of a
//!   partition is acknowledged only one is in flight (`second_batch_does_not_overtake_a_failed_first`).
//! - A batch that may have been written is never sent under another sequence number, even if the broker reports
//!   OUT_OF_ORDER_SEQUENCE_NUMBER (`older_connection_may_deliver_an_out_of_order_batch`).
//! - A broker responds to a Produce when its slowest partition is done, and to one request after the other. A partition
//!   whose leader changed recalls its batches instead of waiting
//!   (`partition_moves_to_its_new_leader_before_the_old_one_responds`).
//! - An offset that goes backwards is not always an error of the broker: an unclean election truncates the log. It is
//!   reported as a warning (`offset_that_goes_backwards_warns_and_records_are_reported_once`).

mod acknowledge;
mod build;
mod collect;
mod compress;
mod expire;
mod finish;
mod purge;
mod retry;
mod slots;
mod statistics;
mod transaction;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::vocabulary::{NodeId, TopicPartition};
use ottla_sorted::SortedSet;

use self::{
    compress::Round,
    retry::Refusal,
    slots::{Slot, Slots},
    statistics::SenderCounters,
};
use crate::{
    backoff::Backoff,
    connection::Connection,
    contract::half::HalfOutput,
    error::Error,
    machine::{Instant, earliest},
    produce::{
        batch::ReadyBatch,
        collector::Collector,
        message::ProduceReport,
        partition::PartitionProducer,
        producer_id::ProducerIdentity,
        ready::{Ready, ReadyList},
        report::{Delivered, PersistenceStatus},
        shared::ProducerShared,
        topic_settings::{expiry_interval, shorter},
    },
    rng::Rng,
    wake::WakeHandle,
};

/// The sending half of one broker.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<ProducerShared>,
    /// The broker's ID.
    broker_id: Option<NodeId>,
    ready: Arc<ReadyList>,
    slots: Slots,
    collector: Collector,
    notifications: Vec<Ready>,
    retries: SortedSet<(Instant, usize)>,
    /// The last rejection. The batches of one response are retried together, or a thousand backoffs would cause a
    /// thousand requests.
    last_refusal: Option<Refusal>,
    /// Slots that wait for the producer's identity.
    without_identity: Vec<usize>,
    /// Slots that the open transaction does not admit yet, and the version of its permissions at the last check.
    not_admitted: SortedSet<usize>,
    permissions_seen: u64,
    /// The identity at the last check.
    identity_seen: Option<ProducerIdentity>,
    requests_in_flight: usize,
    /// The batches of the current response that the broker has written. They are reported together at its end.
    written: Vec<(ReadyBatch, Delivered, PersistenceStatus)>,
    round: Round,
    /// The reason why there is no connection.
    unreachable: Option<Error>,
    next_expiry: Instant,
    /// The shortest `message.timeout.ms` of the producer and of all topics that this sender had.
    shortest_timeout: Option<Duration>,
    /// True if the last response throttled the client.
    was_throttled: bool,
    counters: Box<SenderCounters>,
    outputs: VecDeque<HalfOutput<ProduceReport>>,
    rng: Rng,
}

impl Sender {
    /// Creates a sender without partitions; `wake` makes the broker actor run.
    pub fn new(shared: Arc<ProducerShared>, broker_id: Option<NodeId>, wake: WakeHandle, rng: Rng) -> Self {
        let settings = &shared.settings;
        Self {
            ready: Arc::new(ReadyList::new(
                wake,
                Arc::clone(&shared.flushing),
                Arc::clone(&shared.lingers_differ),
                settings.max_partitions,
                settings.max_bytes,
            )),
            collector: Collector::new(settings.linger, settings.max_partitions, settings.max_in_flight),
            shortest_timeout: settings.topic.message_timeout,
            shared,
            broker_id,
            slots: Slots::default(),
            notifications: Vec::new(),
            retries: SortedSet::new(),
            last_refusal: None,
            without_identity: Vec::new(),
            not_admitted: SortedSet::new(),
            permissions_seen: 0,
            identity_seen: None,
            requests_in_flight: 0,
            written: Vec::new(),
            round: Round::default(),
            unreachable: None,
            next_expiry: Instant::ZERO,
            was_throttled: false,
            counters: Box::default(),
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// Sets the broker's node ID.
    pub const fn set_broker_id(&mut self, id: NodeId) {
        self.broker_id = Some(id);
    }

    /// Adds a partition that the broker leads.
    pub fn adopt(&mut self, partition: PartitionProducer) {
        let settings = &self.shared.settings;
        let backoff = Backoff::new(settings.retry_backoff, settings.retry_backoff_max);
        let topic = self.shared.topic(partition.topic()).0;
        let shortest = shorter(self.shortest_timeout, topic.settings().message_timeout);
        if shortest != self.shortest_timeout {
            self.shortest_timeout = shortest;
            self.next_expiry = Instant::ZERO;
        }
        let (accumulator, retry_at) = (Arc::clone(partition.accumulator()), partition.retry_at);
        let slot = self.slots.insert(Slot::new(topic, partition, backoff));
        accumulator.attach(&self.ready, slot);
        self.join_round(slot);
        self.retries.extend(retry_at.map(|at| (at, slot)));
        self.collect(slot);
    }

    /// Removes a partition that the broker no longer leads, as soon as nothing of it is in flight.
    pub fn release(&mut self, partition: &TopicPartition, connection: &mut Connection) {
        if let Some(slot) = self.leave(partition) {
            self.recall(slot, connection);
            self.let_go(slot);
        }
    }

    /// Returns a paused partition as soon as its batches in flight have a response.
    pub fn pause(&mut self, partition: &TopicPartition) {
        if let Some(slot) = self.leave(partition) {
            self.let_go(slot);
        }
    }

    /// Stops taking records of a partition.
    fn leave(&mut self, partition: &TopicPartition) -> Option<usize> {
        let slot = self.slots.start_leaving(partition)?;
        if let Some(entry) = self.slots.get(slot) {
            entry.partition.accumulator().detach();
        }
        self.collector.remove(slot);
        self.leave_round(slot);
        Some(slot)
    }

    /// Returns true if there is something to send, so that a connection is needed.
    pub fn wants_connection(&self) -> bool {
        !self.collector.is_empty()
            || !self.retries.is_empty()
            || !self.without_identity.is_empty()
            || !self.not_admitted.is_empty()
            || !self.round.is_empty()
    }

    /// Checks the notifications, then sends the due records that may leave.
    pub fn pump(&mut self, now: Instant, connection: &mut Connection) {
        self.check_permissions();
        self.pump_records(now, connection);
        self.report_transaction();
    }

    fn pump_records(&mut self, now: Instant, connection: &mut Connection) {
        if !self.without_identity.is_empty() && self.shared.identity.get() != self.identity_seen {
            self.identity_seen = self.shared.identity.get();
            for slot in std::mem::take(&mut self.without_identity) {
                self.collect(slot);
            }
        }
        self.take_notifications();
        loop {
            self.send_due(now, connection);
            if self.ready.settle(self.collector.len(), !self.collector.is_empty()) {
                return;
            }
            self.take_notifications();
        }
    }

    /// Handles a connection that became ready.
    pub fn handle_up(&mut self) {
        self.unreachable = None;
    }

    /// Handles a connection that failed or could not be established.
    pub fn handle_down(&mut self, error: &Error) {
        self.unreachable = Some(error.clone());
    }

    /// Handles what is due: retries, and messages that timed out.
    pub fn handle_timeout(&mut self, now: Instant, connection: &mut Connection) {
        while let Some((at, slot)) = self.retries.first().copied()
            && at <= now
        {
            self.retries.remove(&(at, slot));
            if let Some(entry) = self.slots.get_mut(slot) {
                entry.partition.retry_at = None;
            }
            self.collect(slot);
        }
        if let Some(shortest) = self.shortest_timeout
            && self.next_expiry <= now
        {
            self.next_expiry = now + expiry_interval(shortest);
            if now.earlier_by(shortest) > Instant::ZERO {
                self.expire(now, connection);
            }
        }
    }

    /// Returns when to call [`Sender::handle_timeout`] or [`Sender::pump`].
    pub fn poll_timeout(&self, connection: &Connection) -> Option<Instant> {
        let retry = self.retries.first().map(|(at, _)| *at);
        let may_add = self.may_add_request(connection);
        let linger = may_add.then(|| self.collector.deadline(self.requests_in_flight)).flatten();
        let expiry = (self.requests_in_flight > 0 || self.wants_connection())
            .then_some(self.shortest_timeout)
            .flatten()
            .map(|_| self.next_expiry);
        earliest(earliest(retry, linger), expiry)
    }

    /// Returns the next output for the broker actor.
    pub fn poll_output(&mut self) -> Option<HalfOutput<ProduceReport>> {
        self.outputs.pop_front()
    }

    /// Takes all partitions, because the broker actor ends.
    pub fn take_partitions(&mut self) -> Vec<PartitionProducer> {
        self.round = Round::default();
        self.slots.take_all()
    }

    #[cfg(test)]
    pub(super) fn partition_mut(&mut self, slot: usize) -> &mut PartitionProducer {
        &mut self.slots.get_mut(slot).expect("a partition").partition
    }
}
