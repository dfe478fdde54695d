//! The records that a share consumer acquired, and the handle to acknowledge each with.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use ottla_core::{
    error::{Error, ErrorKind, Result},
    fetch::deliver::Message,
    share::{acknowledgement::AcknowledgeType, acquired::AcquiredRecords, shared::ShareShared},
};
use ottla_net::clock;

/// The records that one poll returned. Dropping them releases those that are not acknowledged.
#[derive(Debug, Default)]
pub struct ShareRecords {
    records: Vec<ShareRecord>,
}

/// A record that is acquired for this member, and the handle to acknowledge it with. It derefs to the [`Message`].
///
/// # Drop
///
/// Dropping it without an acknowledgement releases the record: it is delivered again, to any member of the group. Only the
/// delivery count limit of the group bounds how often.
pub struct ShareRecord {
    message: Message,
    shared: Arc<ShareShared>,
    acquired: Arc<AcquiredRecords>,
    delivery_count: i16,
    is_acknowledged: bool,
}

impl ShareRecords {
    pub(super) fn new(shared: &Arc<ShareShared>, acquired: &[Arc<AcquiredRecords>]) -> Self {
        let mut records = Vec::with_capacity(acquired.iter().map(|acquired| acquired.len()).sum());
        for acquired in acquired {
            acquired.for_each(|message, delivery_count| {
                records.push(ShareRecord {
                    message: message.to_message(),
                    shared: Arc::clone(shared),
                    acquired: Arc::clone(acquired),
                    delivery_count,
                    is_acknowledged: false,
                });
            });
        }
        Self { records }
    }

    /// Returns the number of records.
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if there are no records.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Iterates over the records.
    pub fn iter(&self) -> std::slice::Iter<'_, ShareRecord> {
        self.records.iter()
    }

    /// Accepts all records.
    pub fn accept_all(mut self) {
        let mut last: Option<Arc<AcquiredRecords>> = None;
        for record in &mut self.records {
            // A poll returns all records that came together, and nothing else has their handles.
            if last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &record.acquired)) {
                record.acquired.acknowledge_open(AcknowledgeType::Accept);
                last = Some(Arc::clone(&record.acquired));
            }
            record.is_acknowledged = true;
        }
    }
}

impl IntoIterator for ShareRecords {
    type Item = ShareRecord;
    type IntoIter = std::vec::IntoIter<ShareRecord>;

    fn into_iter(self) -> Self::IntoIter {
        self.records.into_iter()
    }
}

impl<'a> IntoIterator for &'a ShareRecords {
    type Item = &'a ShareRecord;
    type IntoIter = std::slice::Iter<'a, ShareRecord>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl ShareRecord {
    /// Returns the number of deliveries of the record, including this one: 1 for the first.
    pub const fn delivery_count(&self) -> i16 {
        self.delivery_count
    }

    /// Returns the time until the broker's lock on the record runs out, as far as the client knows it.
    pub fn lock_remaining(&self) -> Duration {
        self.acquired.lock_until_of(self.message.offset()).saturating_since(clock::now())
    }

    /// Accepts the record: it is processed. Errors: it has an acknowledgement already, the consumer is closed, or the
    /// broker's lock on the record has run out.
    pub fn accept(self) -> Result<()> {
        self.acknowledge(AcknowledgeType::Accept)
    }

    /// Releases the record: it is delivered again, to any member.
    pub fn release(self) -> Result<()> {
        self.acknowledge(AcknowledgeType::Release)
    }

    /// Releases the record after this time: it is delivered again then, to any member. Until then the consumer holds the
    /// record, and renews its lock if the delay is longer, which needs Kafka 4.2; other brokers get it back before its lock
    /// ends. Closing the consumer releases it.
    pub fn release_after(mut self, delay: Duration) -> Result<()> {
        self.is_acknowledged = true;
        self.shared.release_at(&self.acquired, self.message.offset(), clock::now() + delay)
    }

    /// Rejects the record: it can't be processed, and is not delivered again.
    pub fn reject(self) -> Result<()> {
        self.acknowledge(AcknowledgeType::Reject)
    }

    /// Renews the broker's lock on the record, with the next poll or commit (KIP-1222). The record still has to be
    /// acknowledged. It needs Kafka 4.2, and a group that permits renewals (`share.renew.acknowledge.enable`); the outcome is
    /// that of an acknowledgement.
    pub fn renew(&self) -> Result<()> {
        self.check_lock()?;
        self.acquired.acknowledge(self.message.offset(), AcknowledgeType::Renew)
    }

    /// Error: the record can't be acknowledged any more.
    fn check_lock(&self) -> Result<()> {
        if self.shared.is_closed() {
            return Err(Error::new(ErrorKind::Closed, ""));
        }
        if self.lock_remaining().is_zero() {
            let detail = "the broker's lock on the record has run out, so that another member may get the record; process it \
                          faster, renew the lock, or raise share.record.lock.duration.ms";
            let error = Error::new(ErrorKind::State, detail);
            return Err(error.with_partition(self.message.topic(), self.message.partition()));
        }
        Ok(())
    }

    fn acknowledge(mut self, kind: AcknowledgeType) -> Result<()> {
        self.is_acknowledged = true;
        self.check_lock()?;
        self.acquired.acknowledge(self.message.offset(), kind)
    }
}

impl Deref for ShareRecord {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl Drop for ShareRecord {
    fn drop(&mut self) {
        if !self.is_acknowledged {
            let _ = self.acquired.acknowledge(self.message.offset(), AcknowledgeType::Release);
        }
    }
}

impl fmt::Debug for ShareRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareRecord")
            .field("message", &self.message)
            .field("delivery_count", &self.delivery_count)
            .finish_non_exhaustive()
    }
}
