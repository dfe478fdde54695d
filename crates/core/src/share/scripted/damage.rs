//! Acquired ranges, gaps, and damaged responses.

use super::*;

/// Polls, and delivers this partition. Returns what the application gets, and what is acknowledged at once.
fn deliver(partition: Partition) -> (Vec<Arc<AcquiredRecords>>, Vec<Batch>) {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond_with(vec![partition]);
    let records = script.take();
    let acknowledged = script.next().map(|asked| match asked {
        Asked::Acknowledge(request) => in_acknowledge(&request),
        Asked::Fetch(request) => panic!("{request:?}"),
    });
    (records, acknowledged.unwrap_or_default())
}

#[test]
fn records_outside_acquired_ranges_are_dropped() {
    let (records, acknowledged) =
        deliver(acquired(0, [batch(0, 5), batch(5, 5)].concat(), &[(1, 2, 1), (4, 6, 3)]));
    assert_eq!(offsets(&records[0]), [(1, 1), (2, 1), (4, 3), (5, 3), (6, 3)]);
    assert_eq!(records[0].len(), 5);
    assert_eq!(acknowledged, []);
}

#[test]
fn gaps_are_acknowledged_at_once() {
    let (records, acknowledged) =
        deliver(acquired(0, [batch(2, 2), batch(6, 1)].concat(), &[(0, 4, 1), (6, 8, 1)]));
    assert_eq!(offsets(&records[0]), [(2, 1), (3, 1), (6, 1)]);
    assert_eq!(acknowledged, [(0, 1, vec![0]), (4, 4, vec![0]), (7, 8, vec![0])]);
}

#[test]
fn range_without_records_is_a_gap() {
    let (records, acknowledged) = deliver(acquired(0, Vec::new(), &[(0, i64::MAX - 1, 1)]));
    assert!(records.is_empty());
    assert_eq!(acknowledged, [(0, i64::MAX - 1, vec![0])]);
}

#[test]
fn damaged_batch_is_rejected_and_the_rest_is_delivered() {
    let mut damaged = batch(2, 2);
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let (records, acknowledged) =
        deliver(acquired(0, [batch(0, 2), damaged, batch(4, 2)].concat(), &[(0, 5, 1)]));
    assert_eq!(offsets(&records[0]), [(0, 1), (1, 1), (4, 1), (5, 1)]);
    assert_eq!(acknowledged, [(2, 3, vec![3])]);
    assert_eq!(records[0].damaged()[0].offsets, 2..=3);
    assert_eq!(records[0].damaged()[0].error.kind(), ErrorKind::BadBatch);
}

#[test]
fn records_that_a_batch_lacks_are_rejected() {
    let mut script = Script::new(ShareSettings { check_crcs: false, ..settings() });
    let mut damaged = batch(0, 3);
    let third = batch(0, 2).len();
    damaged[third] = 0x7e;
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond_with(vec![acquired(0, damaged, &[(0, 2, 1)])]);
    let records = script.take();
    assert_eq!(records[0].len(), 3);
    assert_eq!(offsets(&records[0]), [(0, 1), (1, 1)]);
    assert_eq!(records[0].open_count(), 2, "the third has a verdict");
    assert!(records[0].acknowledge(2, AcknowledgeType::Reject).is_ok(), "which is not sent yet");
}

#[test]
fn undecoded_records_are_released() {
    let mut cut = batch(2, 2);
    cut.truncate(cut.len() - 1);
    let (records, acknowledged) = deliver(acquired(0, [batch(0, 2), cut].concat(), &[(0, 3, 1)]));
    assert_eq!(offsets(&records[0]), [(0, 1), (1, 1)]);
    assert_eq!(acknowledged, [(2, 3, vec![2])]);
}

#[test]
fn invalid_ranges_end_the_connection() {
    for ranges in [
        vec![(3, 2, 1)],
        vec![(0, 2, 1), (2, 3, 1)],
        vec![(5, 6, 1), (0, 1, 1)],
        vec![(-1, 1, 1)],
        vec![(0, i64::MAX, 1)],
    ] {
        let mut script = Script::new(settings());
        script.adopt(0);
        script.poll();
        let _ = script.fetch();
        script.respond_with(vec![acquired(0, batch(0, 4), &ranges)]);
        assert!(script.take().is_empty());
        let is_misbehaved = |output| matches!(output, HalfOutput::Misbehaved(_));
        assert!(std::iter::from_fn(|| script.fetcher.poll_output()).any(is_misbehaved), "{ranges:?}");
    }
}

#[test]
fn partition_that_comes_twice_ends_the_connection() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    let partition = || acquired(0, batch(0, 1), &[(0, 0, 1)]);
    script.respond_with(vec![partition(), partition()]);
    assert!(script.take().is_empty());
    let is_misbehaved = |output| matches!(output, HalfOutput::Misbehaved(_));
    assert!(std::iter::from_fn(|| script.fetcher.poll_output()).any(is_misbehaved));
}

#[test]
fn unsupported_share_groups_are_fatal() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond(&ShareFetchResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        ..ShareFetchResponse::default()
    });
    let error = script.shared.fatal().expect("it is fatal");
    assert!(error.to_string().contains("share.version"), "{error}");
}

#[test]
fn denied_topic_is_an_event() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    let error_code = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
    script.respond_with(vec![Partition { error_code, ..Partition::default() }]);
    let Some(ShareEvent::Error(error)) = script.shared.take_event() else { panic!("an event") };
    assert_eq!(error.kind(), ErrorKind::Broker(error_code));
}

#[test]
fn error_that_another_fetch_cures_is_no_event() {
    for error_code in [
        ErrorCode::UNKNOWN_SERVER_ERROR,
        ErrorCode::UNKNOWN_MEMBER_ID,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
    ] {
        for is_of_partition in [true, false] {
            let mut script = Script::new(settings());
            script.adopt(0);
            script.poll();
            let _ = script.fetch();
            if is_of_partition {
                script.respond_with(vec![Partition { error_code, ..Partition::default() }]);
            } else {
                script.respond(&ShareFetchResponse { error_code, ..ShareFetchResponse::default() });
            }
            assert!(script.shared.take_event().is_none(), "{error_code}");
        }
    }
}
