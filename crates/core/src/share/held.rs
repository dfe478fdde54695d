//! The records that the application has, and commits of its verdicts on them.

use std::sync::Arc;

use ottla_protocol::vocabulary::TopicPartition;

use super::{
    acknowledgement::AcknowledgeType,
    acquired::AcquiredRecords,
    shared::{Reply, ShareShared, Waking},
    ticket::CommitTicket,
};
use crate::{
    completion::Waiting,
    error::{Error, ErrorKind},
    lock::Mutex,
};

/// The records that the application has, as far as their acknowledgements are not sent.
#[derive(Debug, Default)]
pub struct HeldRecords(Mutex<Vec<Arc<AcquiredRecords>>>);

impl HeldRecords {
    /// Adds records that were handed to the application.
    pub fn add(&self, records: &[Arc<AcquiredRecords>]) {
        self.0.lock().extend(records.iter().cloned());
    }

    /// Accepts all records without a verdict.
    pub fn accept_open(&self) {
        for records in self.0.lock().iter() {
            records.acknowledge_open(AcknowledgeType::Accept);
        }
    }

    /// Sets this verdict on all records without one, and releases those that were to be released later.
    pub fn acknowledge_open(&self, kind: AcknowledgeType) {
        for records in self.0.lock().iter() {
            records.acknowledge_open(kind);
            records.release_delayed();
        }
    }

    /// Releases all records now that were to be released later.
    pub fn release_delayed(&self) {
        self.0.lock().iter().for_each(|records| records.release_delayed());
    }

    /// Returns true if some record has no verdict.
    pub fn has_open(&self) -> bool {
        self.0.lock().iter().any(|records| records.has_open())
    }

    /// Returns the number of records without a verdict.
    pub fn open_count(&self) -> usize {
        self.0.lock().iter().map(|records| records.open_count()).sum()
    }

    /// Sets the verdict on a record. Error: the application does not have it.
    pub fn acknowledge(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        kind: AcknowledgeType,
    ) -> Result<(), Error> {
        let held = self.0.lock();
        let is_of = |key: &TopicPartition| key.partition == partition && &*key.topic == topic;
        let of_partition = held.iter().filter(|records| is_of(records.partition()));
        let Some(records) = of_partition.rev().find(|records| records.delivery_count(offset).is_some())
        else {
            let detail = format!("the record with offset {offset} is not among those of the last polls");
            let error = Error::new(ErrorKind::State, detail);
            return Err(error.with_partition(topic, partition));
        };
        records.acknowledge(offset, kind)
    }

    /// Sends the verdicts so far; the outcomes go to [`ShareShared::take_outcomes`]. Returns whether there are any.
    pub fn commit(&self, shared: &ShareShared) -> bool {
        self.submit(shared, &Reply::Queue, Waking::Now)
    }

    /// Does the same at the beginning of a poll: [`ShareShared::take`] must follow, which notifies the broker actors. A broker
    /// then gets the verdicts in the request that fetches.
    pub fn commit_with_poll(&self, shared: &ShareShared) -> bool {
        self.submit(shared, &Reply::Queue, Waking::WithPoll)
    }

    /// Sends the verdicts so far. Returns the ticket and its end; `None` if there are no verdicts.
    pub fn commit_with_outcome(&self, shared: &ShareShared) -> Option<(Arc<CommitTicket>, Waiting<()>)> {
        self.commit_with(shared, Reply::Ticket)
    }

    /// Sends the verdicts so far, as [`HeldRecords::commit_with_outcome`]; the outcomes also go to
    /// [`ShareShared::take_outcomes`].
    pub fn commit_with_both(&self, shared: &ShareShared) -> Option<(Arc<CommitTicket>, Waiting<()>)> {
        self.commit_with(shared, Reply::Both)
    }

    fn commit_with(
        &self,
        shared: &ShareShared,
        reply: impl FnOnce(Arc<CommitTicket>) -> Reply,
    ) -> Option<(Arc<CommitTicket>, Waiting<()>)> {
        let (ticket, waiting) = CommitTicket::new();
        let ticket = Arc::new(ticket);
        let has_any = self.submit(shared, &reply(Arc::clone(&ticket)), Waking::Now);
        ticket.seal();
        has_any.then_some((ticket, waiting))
    }

    fn submit(&self, shared: &ShareShared, reply: &Reply, waking: Waking) -> bool {
        let held = self.0.lock().clone();
        let mut has_any = false;
        for records in &held {
            has_any |= shared.submit(records, reply, waking);
        }
        self.0.lock().retain(|records| !records.is_settled());
        has_any
    }
}
