//! Filters the batches of aborted transactions for `isolation.level=read_committed`.

use std::collections::VecDeque;

use ottla_protocol::generated::fetch::response::AbortedTransaction;
use ottla_sorted::SortedSet;

/// The aborted transactions of one fetched range, iterated in the order of offsets.
#[derive(Debug, Default)]
pub(crate) struct AbortedTransactions {
    /// Transactions that begin after the current offset, by first offset.
    ahead: VecDeque<AbortedTransaction>,
    /// The producers that are inside an aborted transaction.
    active: SortedSet<i64>,
}

impl AbortedTransactions {
    /// Creates the state from the list of a Fetch response.
    pub(crate) fn new(list: Option<&[AbortedTransaction]>) -> Self {
        let mut ahead: Vec<AbortedTransaction> = list.unwrap_or_default().to_vec();
        ahead.sort_unstable_by_key(|transaction| transaction.first_offset);
        Self { ahead: ahead.into(), active: SortedSet::new() }
    }

    /// Returns true if a transactional batch of this producer, whose last offset is `last_offset`, was aborted.
    pub(crate) fn covers(&mut self, producer_id: i64, last_offset: i64) -> bool {
        self.advance(last_offset);
        self.active.contains(&producer_id)
    }

    /// Handles the end of an aborted transaction.
    pub(crate) fn ended(&mut self, producer_id: i64, offset: i64) {
        self.advance(offset);
        self.active.remove(&producer_id);
    }

    fn advance(&mut self, offset: i64) {
        while let Some(transaction) = self.ahead.front()
            && transaction.first_offset <= offset
        {
            self.active.insert(transaction.producer_id);
            self.ahead.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aborted(producer_id: i64, first_offset: i64) -> AbortedTransaction {
        AbortedTransaction { producer_id, first_offset }
    }

    #[test]
    fn aborted_batches_are_skipped_up_to_the_abort_marker() {
        let mut transactions = AbortedTransactions::new(Some(&[aborted(1, 10), aborted(2, 5)]));
        assert!(!transactions.covers(1, 9));
        assert!(transactions.covers(2, 9));
        assert!(transactions.covers(1, 12));
        assert!(!transactions.covers(3, 12));
        transactions.ended(1, 13);
        assert!(!transactions.covers(1, 14), "its next transaction may be committed");
        assert!(transactions.covers(2, 14));
    }

    #[test]
    fn aborted_transaction_of_one_record_is_skipped() {
        let mut transactions = AbortedTransactions::new(Some(&[aborted(1, 10)]));
        assert!(transactions.covers(1, 10), "its first batch ends where it begins");
        transactions.ended(1, 11);
        assert!(!transactions.covers(1, 12));
    }

    #[test]
    fn a_producer_may_abort_twice_in_one_range() {
        let mut transactions = AbortedTransactions::new(Some(&[aborted(1, 0), aborted(1, 20)]));
        assert!(transactions.covers(1, 3));
        transactions.ended(1, 4);
        assert!(!transactions.covers(1, 10));
        assert!(transactions.covers(1, 25));
    }
}
