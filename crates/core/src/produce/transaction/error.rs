//! The errors of transactions, and the meaning of a broker's error code for each request.

use std::fmt;

use ottla_protocol::error_code::ErrorCode;

use crate::error::{Error, ErrorKind, NextCall};

/// The error of a transactional call. The variant says what to do; the [`Error`] says what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionError {
    /// Call the same function again. It continues where it stopped.
    Retriable(Error),
    /// The transaction can't be committed: abort it. The producer can then begin another one.
    Abort(Error),
    /// The producer can't be used any more: close it.
    Fatal(Error),
    /// The call does not fit the state or the arguments, and had no effect.
    Refused(Error),
}

/// The result of a transactional call.
pub type TransactionResult<T = ()> = Result<T, TransactionError>;

impl TransactionError {
    /// Returns what happened.
    pub const fn error(&self) -> &Error {
        match self {
            Self::Retriable(error) | Self::Abort(error) | Self::Fatal(error) | Self::Refused(error) => error,
        }
    }

    /// Returns the kind of error.
    pub const fn kind(&self) -> ErrorKind {
        self.error().kind()
    }

    /// Returns the call that helps; `None` if the arguments or the order of the calls are wrong.
    pub fn next_call(&self) -> Option<NextCall> {
        self.error().context().next_call.or(match self {
            Self::Retriable(_) => Some(NextCall::Again),
            Self::Abort(_) => Some(NextCall::AbortTransaction),
            Self::Fatal(_) => Some(NextCall::Close),
            Self::Refused(_) => None,
        })
    }

    /// Names the call that helps, where that is not the one that the variant stands for.
    #[must_use]
    pub fn with_next_call(self, call: NextCall) -> Self {
        match self {
            Self::Retriable(error) => Self::Retriable(error.with_next_call(call)),
            Self::Abort(error) => Self::Abort(error.with_next_call(call)),
            other => other,
        }
    }

    /// Returns true if the call may be called again.
    pub const fn is_retriable(&self) -> bool {
        matches!(self, Self::Retriable(_))
    }

    /// Returns true if the transaction must be aborted.
    pub const fn requires_abort(&self) -> bool {
        matches!(self, Self::Abort(_))
    }

    /// Returns true if the producer can't be used any more.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal(_))
    }

    /// Creates the error of a call that does not fit the state.
    pub(crate) fn state(detail: impl Into<String>) -> Self {
        Self::Refused(Error::new(ErrorKind::State, detail))
    }

    /// Creates the error of a producer that was closed.
    pub(crate) fn closed() -> Self {
        Self::Refused(Error::new(ErrorKind::Closed, ""))
    }
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)?;
        f.write_str(match self.next_call() {
            Some(NextCall::Again) => "; call the same function again",
            Some(NextCall::ResumeTransaction) => "; Producer::resume_transaction continues it",
            Some(NextCall::AbortTransaction) => "; abort the transaction, then begin another one",
            Some(NextCall::BeginTransaction) => "; it was aborted, and another one can begin",
            Some(NextCall::Close) => "; close this producer",
            None => "",
        })
    }
}

/// The text contains that of the [`Error`], which is therefore no source.
impl std::error::Error for TransactionError {}

impl From<TransactionError> for Error {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Retriable(error)
            | TransactionError::Abort(error)
            | TransactionError::Fatal(error)
            | TransactionError::Refused(error) => error,
        }
    }
}

/// The requests of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Init,
    AddPartitions,
    AddOffsets,
    CommitOffsets,
    End,
}

/// What an error code demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Success,
    /// Try again after the back-off.
    Retry,
    /// Try again soon: the markers of the previous transaction are still being written.
    RetrySoon,
    /// Find the coordinator, then try again.
    FindCoordinator,
    /// The transaction must be aborted.
    Abort,
    /// The transaction must be aborted, and the producer needs another epoch.
    AbortAndRenew,
    /// Another producer took over.
    Fenced,
    /// The producer can't be used any more.
    Fatal,
}

/// Returns what an error code demands.
pub(crate) fn react(kind: RequestKind, code: ErrorCode) -> Reaction {
    use RequestKind::{AddOffsets, AddPartitions, CommitOffsets, End, Init};
    match (code, kind) {
        (ErrorCode::NONE, _) => Reaction::Success,
        (ErrorCode::CONCURRENT_TRANSACTIONS, _) => Reaction::RetrySoon,
        (ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE, _) => Reaction::FindCoordinator,
        (ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH, _) => Reaction::Fenced,
        (ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED | ErrorCode::CLUSTER_AUTHORIZATION_FAILED, _)
        | (ErrorCode::INVALID_TRANSACTION_TIMEOUT, Init)
        | (ErrorCode::INVALID_TXN_STATE, AddPartitions | AddOffsets | CommitOffsets | End)
        | (ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT, AddOffsets | CommitOffsets) => Reaction::Fatal,
        // Any other refusal of InitProducerId may be temporary, and nothing depends on it yet.
        (_, Init) => Reaction::Retry,
        // The producer ID has expired. librdkafka treats the second code of TxnOffsetCommit as fatal.
        (ErrorCode::UNKNOWN_PRODUCER_ID | ErrorCode::INVALID_PRODUCER_ID_MAPPING, _) => {
            Reaction::AbortAndRenew
        }
        // The coordinator may have ended the transaction and failed afterwards.
        (ErrorCode::UNKNOWN_SERVER_ERROR, End) => Reaction::Retry,
        (code, _) if code.is_retriable() => Reaction::Retry,
        _ => Reaction::Abort,
    }
}

/// Returns whether a refusal of a batch means that another producer took over. The coordinator's timeout also raises the
/// epoch, but then the code is INVALID_PRODUCER_EPOCH, and the producer can go on after an abort (KIP-588).
pub(crate) fn is_fenced(code: ErrorCode) -> bool {
    code == ErrorCode::PRODUCER_FENCED
}

/// Returns the error of a producer that another one replaced.
pub(crate) fn fenced(error: Error) -> Error {
    let cause = error.to_string();
    let detail = if error.kind() == ErrorKind::Broker(ErrorCode::INVALID_PRODUCER_EPOCH) {
        format!(
            "either another producer uses the same transactional.id, or the coordinator ended the transaction after \
             transaction.timeout.ms; {cause}"
        )
    } else {
        format!("another producer uses the same transactional.id; {cause}")
    };
    Error::new(ErrorKind::Fenced, detail)
}

#[cfg(test)]
mod tests {
    use super::{RequestKind::*, *};

    fn named(kind: RequestKind, reaction: Reaction) -> Vec<i16> {
        ErrorCode::all().filter(|code| react(kind, *code) == reaction).map(|code| code.0).collect()
    }

    #[test]
    fn each_request_has_its_fatal_codes() {
        assert_eq!(named(Init, Reaction::Fatal), [31, 50, 53]);
        assert_eq!(named(AddPartitions, Reaction::Fatal), [31, 48, 53]);
        assert_eq!(named(AddOffsets, Reaction::Fatal), [31, 43, 48, 53]);
        assert_eq!(named(CommitOffsets, Reaction::Fatal), [31, 43, 48, 53]);
        assert_eq!(named(End, Reaction::Fatal), [31, 48, 53]);
    }

    #[test]
    fn each_request_reacts_alike_to_fencing_expiry_and_coordinators() {
        for kind in [AddPartitions, AddOffsets, CommitOffsets, End] {
            assert_eq!(named(kind, Reaction::Fenced), [47, 90], "{kind:?}");
            assert_eq!(named(kind, Reaction::AbortAndRenew), [49, 59], "{kind:?}");
            assert_eq!(named(kind, Reaction::FindCoordinator), [15, 16], "{kind:?}");
            assert_eq!(named(kind, Reaction::RetrySoon), [51], "{kind:?}");
            let aborts = named(kind, Reaction::Abort);
            for code in [22, 25, 29, 30, 55, 82, 120] {
                assert!(aborts.contains(&code), "{kind:?} {code}");
            }
            let retries = named(kind, Reaction::Retry);
            for code in [3, 7, 14] {
                assert!(retries.contains(&code), "{kind:?} {code}");
            }
        }
        assert_eq!(named(Init, Reaction::Fenced), [47, 90]);
        assert!(named(Init, Reaction::Abort).is_empty(), "there is no transaction");
        assert_eq!(react(End, ErrorCode(999)), Reaction::Abort, "an unknown code is not retried without end");
    }
}
