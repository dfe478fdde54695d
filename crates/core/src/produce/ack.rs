//! What a broker's answer means for a batch.

use ottla_protocol::{error_code::ErrorCode, generated::produce::ProduceResponseView};

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
        ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE if records > 1 => Verdict::Split,
        code if code.invalidates_metadata() => Verdict::RetryElsewhere,
        code if code.is_retriable() => Verdict::Retry,
        _ => Verdict::Fail,
    }
}

/// Whether a broker has more to do than it can: it throttles, or could not take a batch for now.
pub fn is_congested(answer: &ProduceResponseView<'_>) -> bool {
    let mut partitions = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
    answer.throttle_time_ms > 0
        || partitions.any(|partition| matches!(judge(partition.error_code, 1), Verdict::Retry))
}

/// Whether a broker that refused a batch with this code may have written it all the same. A leader that waits for its
/// followers has written; when it loses the leadership meanwhile it answers NOT_LEADER_OR_FOLLOWER. So only codes that
/// are found before writing tell for certain.
pub const fn may_have_been_written(code: ErrorCode) -> bool {
    !matches!(
        code,
        ErrorCode::CORRUPT_MESSAGE
            | ErrorCode::MESSAGE_TOO_LARGE
            | ErrorCode::RECORD_LIST_TOO_LARGE
            | ErrorCode::INVALID_TOPIC_EXCEPTION
            | ErrorCode::NOT_ENOUGH_REPLICAS
            | ErrorCode::INVALID_REQUIRED_ACKS
            | ErrorCode::INVALID_TIMESTAMP
            | ErrorCode::INVALID_RECORD
            | ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT
            | ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
            | ErrorCode::POLICY_VIOLATION
            | ErrorCode::TOPIC_AUTHORIZATION_FAILED
            | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
            | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            | ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
            | ErrorCode::UNKNOWN_PRODUCER_ID
            | ErrorCode::INVALID_PRODUCER_EPOCH
            | ErrorCode::PRODUCER_FENCED
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
        assert_eq!(
            judge(ErrorCode::RECORD_LIST_TOO_LARGE, 2),
            Verdict::Split,
            "larger than the topic's segments"
        );
        assert_eq!(judge(ErrorCode::RECORD_LIST_TOO_LARGE, 1), Verdict::Fail);
        assert_eq!(judge(ErrorCode::TOPIC_AUTHORIZATION_FAILED, 1), Verdict::Fail);
        assert_eq!(judge(ErrorCode(999), 1), Verdict::Fail, "an unknown code can't be retried for ever");
    }

    fn named(verdict: Verdict, records: u32) -> Vec<&'static str> {
        let codes = ErrorCode::all().filter(|code| judge(*code, records) == verdict);
        codes.map(ErrorCode::name).collect()
    }

    #[test]
    fn every_code_of_kafka_has_its_treatment() {
        assert_eq!(named(Verdict::Delivered, 2), ["NONE"]);
        assert_eq!(named(Verdict::Duplicate, 2), ["DUPLICATE_SEQUENCE_NUMBER"]);
        assert_eq!(named(Verdict::Split, 2), ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]);
        assert_eq!(
            named(Verdict::Resequence, 2),
            ["OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "UNKNOWN_PRODUCER_ID"]
        );
        let elsewhere = named(Verdict::RetryElsewhere, 2);
        for name in [
            "UNKNOWN_TOPIC_OR_PARTITION",
            "LEADER_NOT_AVAILABLE",
            "NOT_LEADER_OR_FOLLOWER",
            "REPLICA_NOT_AVAILABLE",
            "NETWORK_EXCEPTION",
            "KAFKA_STORAGE_ERROR",
            "FENCED_LEADER_EPOCH",
            "UNKNOWN_TOPIC_ID",
            "INCONSISTENT_TOPIC_ID",
        ] {
            assert!(elsewhere.contains(&name), "{name}");
        }
        let retry = named(Verdict::Retry, 2);
        for name in [
            "CORRUPT_MESSAGE",
            "REQUEST_TIMED_OUT",
            "NOT_ENOUGH_REPLICAS",
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "UNKNOWN_LEADER_EPOCH",
            "THROTTLING_QUOTA_EXCEEDED",
        ] {
            assert!(retry.contains(&name), "{name}");
        }
        let failed = named(Verdict::Fail, 2);
        for name in [
            "UNKNOWN_SERVER_ERROR",
            "INVALID_TOPIC_EXCEPTION",
            "INVALID_REQUIRED_ACKS",
            "TOPIC_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
            "INVALID_TIMESTAMP",
            "UNSUPPORTED_VERSION",
            "POLICY_VIOLATION",
            "INVALID_PRODUCER_ID_MAPPING",
            "PRODUCER_FENCED",
            "UNSUPPORTED_COMPRESSION_TYPE",
            "INVALID_RECORD",
        ] {
            assert!(failed.contains(&name), "{name}");
        }
        let retriable = ErrorCode::all().filter(|code| code.is_retriable()).count();
        assert_eq!(
            elsewhere.len() + retry.len(),
            retriable,
            "nothing else is tried again, and all of this is"
        );
    }

    #[test]
    fn only_what_is_found_before_writing_tells_that_nothing_was_written() {
        for code in ErrorCode::all().filter(|code| code.is_retriable()) {
            let certain = [ErrorCode::CORRUPT_MESSAGE, ErrorCode::NOT_ENOUGH_REPLICAS].contains(&code);
            assert_eq!(may_have_been_written(code), !certain, "{code}");
        }
        for code in [ErrorCode::UNKNOWN_SERVER_ERROR, ErrorCode(999)] {
            assert!(may_have_been_written(code), "{code}: nobody knows when it was found");
        }
        for code in [ErrorCode::INVALID_RECORD, ErrorCode::TOPIC_AUTHORIZATION_FAILED] {
            assert!(!may_have_been_written(code), "{code}");
        }
    }
}
