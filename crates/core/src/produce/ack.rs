//! What a broker's answer means for a batch.

use ottla_protocol::error_code::ErrorCode;

/// What to do with a batch that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the log.
    Delivered,
    /// It was written before: the offset may be unknown.
    Duplicate,
    /// Try again after the back-off.
    Retry,
    /// Ask who leads the partition, and try again there.
    RetryElsewhere,
    /// The broker expects another sequence number.
    Resequence,
    /// It is too large for the broker: try again in two halves.
    Split,
    /// It can't be written.
    Fail,
}

/// Judges an error code; `records` is the batch's number of records.
pub fn judge(code: ErrorCode, records: u32) -> Verdict {
    match code {
        ErrorCode::NONE => Verdict::Delivered,
        ErrorCode::DUPLICATE_SEQUENCE_NUMBER => Verdict::Duplicate,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
        | ErrorCode::UNKNOWN_PRODUCER_ID
        | ErrorCode::INVALID_PRODUCER_EPOCH => Verdict::Resequence,
        ErrorCode::MESSAGE_TOO_LARGE if records > 1 => Verdict::Split,
        code if code.invalidates_metadata() => Verdict::RetryElsewhere,
        code if code.is_retriable() => Verdict::Retry,
        _ => Verdict::Fail,
    }
}

/// Whether a batch that was refused with this code may have been written all the same.
pub const fn may_have_been_written(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | ErrorCode::UNKNOWN_SERVER_ERROR
            | ErrorCode::KAFKA_STORAGE_ERROR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leadership_errors_go_elsewhere_and_permanent_ones_fail() {
        assert_eq!(judge(ErrorCode::NONE, 1), Verdict::Delivered);
        assert_eq!(judge(ErrorCode::NOT_LEADER_OR_FOLLOWER, 1), Verdict::RetryElsewhere);
        assert_eq!(judge(ErrorCode::NOT_ENOUGH_REPLICAS, 1), Verdict::Retry);
        assert_eq!(judge(ErrorCode::MESSAGE_TOO_LARGE, 2), Verdict::Split);
        assert_eq!(judge(ErrorCode::MESSAGE_TOO_LARGE, 1), Verdict::Fail);
        assert_eq!(judge(ErrorCode::TOPIC_AUTHORIZATION_FAILED, 1), Verdict::Fail);
        assert_eq!(judge(ErrorCode(999), 1), Verdict::Fail, "an unknown code can't be retried for ever");
    }
}
