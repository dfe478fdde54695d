//! The states of a transactional producer, which are librdkafka's.

/// The state of a transactional producer.
///
/// ```text
///   Init ─► WaitProducerId ─► ReadyNotAcked ─► Ready ─► InTransaction ─┬─► BeginCommit ─► Committing ─► CommitNotAcked ─► Ready
///                                                            │         └─► BeginAbort ──► Aborting ───► AbortNotAcked ──► Ready
///                                                            ▼                 ▲
///                    InTransaction, BeginCommit, Committing ─► AbortableError ─┘        any state ─► FatalError
/// ```
///
/// `BeginCommit` and `BeginAbort` wait for messages in flight. They go to the state that is not acknowledged directly if the
/// brokers know nothing of the transaction. A state that is not acknowledged ends when the application has seen the result:
/// a call that timed out is called again and reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionState {
    /// `init_transactions` was not called.
    #[default]
    Init,
    /// The producer ID is requested.
    WaitProducerId,
    /// The producer ID is known, and the application has not seen that.
    ReadyNotAcked,
    /// No transaction is open.
    Ready,
    /// A transaction is open.
    InTransaction,
    /// The commit has begun: messages in flight are awaited.
    BeginCommit,
    /// The coordinator was asked to commit. Until it responds, the outcome is open.
    Committing,
    /// The transaction is committed, and the application has not seen that.
    CommitNotAcked,
    /// The abort has begun: messages in flight are awaited.
    BeginAbort,
    /// The coordinator was asked to abort.
    Aborting,
    /// The transaction is aborted, and the application has not seen that.
    AbortNotAcked,
    /// The transaction can only be aborted.
    AbortableError,
    /// The producer can't be used any more.
    FatalError,
}

use TransactionState::{
    AbortNotAcked, AbortableError, Aborting, BeginAbort, BeginCommit, CommitNotAcked, Committing, FatalError,
    InTransaction, Init, Ready, ReadyNotAcked, WaitProducerId,
};

impl TransactionState {
    /// All states.
    pub const ALL: [Self; 13] = [
        Init,
        WaitProducerId,
        ReadyNotAcked,
        Ready,
        InTransaction,
        BeginCommit,
        Committing,
        CommitNotAcked,
        BeginAbort,
        Aborting,
        AbortNotAcked,
        AbortableError,
        FatalError,
    ];

    /// Returns the name in statistics and error texts, which is librdkafka's.
    pub const fn name(self) -> &'static str {
        match self {
            Init => "Init",
            WaitProducerId => "WaitPID",
            ReadyNotAcked => "ReadyNotAcked",
            Ready => "Ready",
            InTransaction => "InTransaction",
            BeginCommit => "BeginCommit",
            Committing => "CommittingTransaction",
            CommitNotAcked => "CommitNotAcked",
            BeginAbort => "BeginAbort",
            Aborting => "AbortingTransaction",
            AbortNotAcked => "AbortedNotAcked",
            AbortableError => "AbortableError",
            FatalError => "FatalError",
        }
    }

    /// Returns whether `next` may follow directly.
    pub const fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (FatalError, _) => false,
            (_, FatalError)
            | (Init, WaitProducerId)
            | (WaitProducerId, ReadyNotAcked)
            | (ReadyNotAcked | CommitNotAcked | AbortNotAcked, Ready)
            | (Ready, InTransaction)
            | (InTransaction, BeginCommit | BeginAbort | AbortableError)
            | (BeginCommit, Committing | CommitNotAcked | AbortableError)
            | (Committing, CommitNotAcked | AbortableError)
            | (AbortableError, BeginAbort)
            | (BeginAbort, Aborting | AbortNotAcked)
            | (Aborting, AbortNotAcked) => true,
            _ => false,
        }
    }

    /// Returns true if batches of the transaction may be sent.
    pub const fn may_send(self) -> bool {
        matches!(self, InTransaction | BeginCommit)
    }

    /// Returns true while the application must abort the transaction, or aborts it.
    pub(crate) const fn is_aborting(self) -> bool {
        matches!(self, AbortableError | BeginAbort | Aborting)
    }

    pub(crate) fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(FatalError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_are_those_of_the_table() {
        let table: &[(TransactionState, &[TransactionState])] = &[
            (Init, &[WaitProducerId]),
            (WaitProducerId, &[ReadyNotAcked]),
            (ReadyNotAcked, &[Ready]),
            (Ready, &[InTransaction]),
            (InTransaction, &[BeginCommit, BeginAbort, AbortableError]),
            (BeginCommit, &[Committing, CommitNotAcked, AbortableError]),
            (Committing, &[CommitNotAcked, AbortableError]),
            (CommitNotAcked, &[Ready]),
            (BeginAbort, &[Aborting, AbortNotAcked]),
            (Aborting, &[AbortNotAcked]),
            (AbortNotAcked, &[Ready]),
            (AbortableError, &[BeginAbort]),
            (FatalError, &[]),
        ];
        assert_eq!(table.len(), TransactionState::ALL.len());
        for (from, allowed) in table {
            for next in TransactionState::ALL {
                let expected = allowed.contains(&next) || next == FatalError && *from != FatalError;
                assert_eq!(from.may_become(next), expected, "{from:?} to {next:?}");
            }
        }
    }

    #[test]
    fn state_is_its_number() {
        for state in TransactionState::ALL {
            assert_eq!(TransactionState::from_number(state as u8), state);
        }
    }
}
