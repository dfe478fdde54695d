//! The transactions as their applications know them, and the label of each record: the transaction it belongs to.

use ottla_core::machine::Instant;

/// A partition: the index of its topic, and its number.
pub(super) type Place = (u32, i32);

/// The transactions of all producers, in the order of their beginnings.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) transactions: Vec<Transaction>,
}

/// A transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The producer's index.
    pub(super) producer: usize,
    pub(super) begun: Instant,
    pub(super) records: Vec<Sent>,
    /// A commit was requested.
    pub(super) is_asked: bool,
    pub(super) outcome: Outcome,
}

/// An accepted record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The record's number within its producer.
    pub(super) number: u64,
    pub(super) place: Place,
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The application has not seen a result, or has died meanwhile.
    Open,
    /// The commit succeeded.
    Committed,
    /// The abort succeeded, or the commit failed with an error that requires an abort.
    NotCommitted,
}

impl Transaction {
    /// Returns true if readers must see the transaction.
    pub(super) fn must_be_visible(&self) -> bool {
        self.outcome == Outcome::Committed
    }

    /// Returns true if readers may see the transaction: a commit was requested and has not failed.
    pub(super) fn may_be_visible(&self) -> bool {
        self.is_asked && self.outcome != Outcome::NotCommitted
    }

    /// Returns the name of the anomaly if a reader sees the transaction, and why.
    pub(super) fn anomaly(&self) -> &'static str {
        match self.outcome {
            Outcome::NotCommitted => "G1a (aborted read): the transaction was aborted",
            _ => "precommitted read: no commit was requested",
        }
    }
}

/// The contents of a record: everything that checkers need to judge it wherever they see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    /// The producer's index.
    pub(super) producer: u32,
    /// The record's number within its producer.
    pub(super) number: u64,
    pub(super) place: Place,
    /// The index of the transaction.
    pub(super) transaction: u32,
    /// The record of the input of which this is a copy: partition and offset.
    pub(super) source: Option<(i32, i64)>,
}

impl Label {
    /// Returns a record's value. Its first 16 bytes are those of [`Producer::send`](crate::workload::Producer::send), which
    /// the checker of the traffic reads.
    pub(super) fn to_value(self, size: usize) -> Vec<u8> {
        let (partition, offset) = self.source.unwrap_or((-1, -1));
        let (topic, number) = self.place;
        let mut value = Vec::with_capacity(32 + size);
        value.extend_from_slice(&self.producer.to_be_bytes());
        value.extend_from_slice(&self.number.to_be_bytes());
        value.extend_from_slice(&(topic as u16).to_be_bytes());
        value.extend_from_slice(&(number as u16).to_be_bytes());
        value.extend_from_slice(&self.transaction.to_be_bytes());
        value.extend_from_slice(&partition.to_be_bytes());
        value.extend_from_slice(&offset.to_be_bytes());
        value.resize(32 + size, b'x');
        value
    }

    /// Reads a record's value.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (head, rest) = value.split_at_checked(12)?;
        let topic = u16::from_be_bytes(*rest.first_chunk()?);
        let partition = u16::from_be_bytes(*rest.get(2..)?.first_chunk()?);
        let source = i32::from_be_bytes(*rest.get(8..)?.first_chunk()?);
        let offset = i64::from_be_bytes(*rest.get(12..)?.first_chunk()?);
        Some(Self {
            producer: u32::from_be_bytes(*head.first_chunk()?),
            number: u64::from_be_bytes(*head.get(4..)?.first_chunk()?),
            place: (topic.into(), partition.into()),
            transaction: u32::from_be_bytes(*rest.get(4..)?.first_chunk()?),
            source: (source >= 0).then_some((source, offset)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_is_read_as_it_was_written() {
        let label = Label { producer: 3, number: 1 << 40, place: (1, 2), transaction: 70_000, source: None };
        for label in [label, Label { source: Some((4, 5)), ..label }] {
            let value = label.to_value(7);
            assert_eq!((Label::parse(&value), value.len()), (Some(label), 39));
            assert_eq!(Label::parse(&value[..31]), None);
            assert_eq!(crate::workload::parse_value(&value), Some((3, 1 << 40)));
            assert_eq!(crate::workload::parse_destination(&value), Some((1, 2)));
        }
    }
}
