//! Errors of the calls that send records.

use std::fmt;

use ottla_core::{
    error::Error,
    produce::record::{Record, SendError},
};

/// Error: [`Topic::try_send`](crate::Topic::try_send) refused a record. It returns the record.
#[derive(Clone, Debug)]
pub struct TrySendError<'a> {
    /// The record, to be sent again when there is room.
    pub record: Record<'a>,
    /// The reason. [`SendError::QueueFull`] is temporary.
    pub error: SendError,
}

impl fmt::Display for TrySendError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for TrySendError<'_> {}

impl From<TrySendError<'_>> for SendError {
    fn from(refused: TrySendError<'_>) -> Self {
        refused.error
    }
}

impl From<TrySendError<'_>> for Error {
    fn from(refused: TrySendError<'_>) -> Self {
        refused.error.into()
    }
}

/// Error: [`Topic::send_batch`](crate::Topic::send_batch) did not accept all records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendBatchError {
    /// The number of records that were accepted: the first ones.
    pub taken: usize,
    /// The reason why the next record was refused. The records after it were not looked at.
    pub error: SendError,
}

impl fmt::Display for SendBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (the {} records before it were accepted)", self.error, self.taken)
    }
}

/// The text contains that of the reason, which is therefore no source.
impl std::error::Error for SendBatchError {}

impl From<SendBatchError> for Error {
    fn from(refused: SendBatchError) -> Self {
        refused.error.into()
    }
}
