//! The meaning of a broker's response for a batch.

use ottla_protocol::{error_code::ErrorCode, generated::produce::ProduceResponseView};

/// The next step for a batch after its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The batch is in the log.
    Delivered,
    /// The batch was written before: the offset may be unknown.
    Duplicate,
    /// Try again after the backoff.
    Retry,
    /// Look up the partition's leader and try again there.
    RetryElsewhere,
    /// The broker expects another sequence number.
    Resequence,
    /// The batch is too large for the broker: try again in two halves.
    Split,
    /// The batch can't be written.
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
        // Kafka's table calls the code permanent; librdkafka looks for the partition's leader again.
        ErrorCode::BROKER_NOT_AVAILABLE => Verdict::RetryElsewhere,
        code if code.invalidates_metadata() => Verdict::RetryElsewhere,
        code if code.is_retriable() => Verdict::Retry,
        _ => Verdict::Fail,
    }
}

/// Returns whether another attempt after this code counts against `retries`. An attempt that found stale metadata does not:
/// the partition's leader has not had the batch yet, so a producer with `retries=0` looks for that leader too. These are
/// librdkafka's codes, and UNKNOWN_TOPIC_ID, which takes the place of UNKNOWN_TOPIC_OR_PARTITION from Produce 13 on.
pub fn counts_as_retry(code: ErrorCode) -> bool {
    !matches!(
        code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::BROKER_NOT_AVAILABLE
            | ErrorCode::REPLICA_NOT_AVAILABLE
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
    )
}

/// Returns whether a broker is overloaded: it throttles, or could not accept a batch now.
pub fn is_congested(response: &ProduceResponseView<'_>) -> bool {
    let mut partitions = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    response.throttle_time_ms > 0
        || partitions.any(|partition| matches!(judge(partition.error_code, 1), Verdict::Retry))
}

/// The doubt whether a batch is in the log, according to its attempts. The variants are ordered by doubt: a batch has the
/// highest of all its attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Written {
    /// No attempt can have written it.
    #[default]
    No,
    /// A broker refused it with a code that does not exclude it. It keeps its sequence number, which makes another attempt
    /// safe; a report says that it was not written, as librdkafka's does.
    Doubtful,
    /// An attempt got no response, or a response that is given after writing too.
    Possibly,
}

/// Returns whether a broker that refused a batch with this code may have written it. A leader that waits for its followers
/// has written; if it loses the leadership or the topic meanwhile, it returns NOT_LEADER_OR_FOLLOWER or
/// UNKNOWN_TOPIC_OR_PARTITION. Only codes that are found before writing exclude it.
pub fn written_after(code: ErrorCode) -> Written {
    match code {
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
        | ErrorCode::PRODUCER_FENCED => Written::No,
        ErrorCode::REQUEST_TIMED_OUT
        | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
        | ErrorCode::NOT_LEADER_OR_FOLLOWER
        | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        | ErrorCode::DUPLICATE_SEQUENCE_NUMBER
        | ErrorCode::UNKNOWN_SERVER_ERROR => Written::Possibly,
        code if ErrorCode::all().any(|known| known == code) => Written::Doubtful,
        _ => Written::Possibly,
    }
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
        assert_eq!(judge(ErrorCode(999), 1), Verdict::Fail, "an unknown code can't be retried without end");
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
            "BROKER_NOT_AVAILABLE",
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
            retriable + 1,
            "all of Kafka's retriable codes are tried again, and BROKER_NOT_AVAILABLE"
        );
    }

    #[test]
    fn codes_of_stale_metadata_do_not_count_as_retries() {
        let free: Vec<i16> =
            ErrorCode::all().filter(|code| !counts_as_retry(*code)).map(|code| code.0).collect();
        assert_eq!(free, [3, 5, 6, 8, 9, 15, 16, ErrorCode::UNKNOWN_TOPIC_ID.0]);
    }

    fn written(written: Written) -> Vec<&'static str> {
        let codes = ErrorCode::all().filter(|code| code.is_error() && written_after(*code) == written);
        codes.map(ErrorCode::name).collect()
    }

    #[test]
    fn codes_that_are_returned_after_writing_leave_a_batch_possibly_written() {
        assert_eq!(
            written(Written::Possibly),
            [
                "UNKNOWN_SERVER_ERROR",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "NOT_LEADER_OR_FOLLOWER",
                "REQUEST_TIMED_OUT",
                "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
                "DUPLICATE_SEQUENCE_NUMBER",
            ]
        );
        assert_eq!(written_after(ErrorCode(999)), Written::Possibly, "the time of its discovery is unknown");
    }

    #[test]
    fn retriable_codes_leave_a_batch_in_doubt_unless_refused_before_writing() {
        for code in ErrorCode::all().filter(|code| code.is_retriable()) {
            let certain = [ErrorCode::CORRUPT_MESSAGE, ErrorCode::NOT_ENOUGH_REPLICAS].contains(&code);
            assert_eq!(written_after(code) == Written::No, certain, "{code}");
        }
        for code in [ErrorCode::INVALID_RECORD, ErrorCode::TOPIC_AUTHORIZATION_FAILED] {
            assert_eq!(written_after(code), Written::No, "{code}");
        }
    }
}
