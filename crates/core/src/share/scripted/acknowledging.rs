//! Sessions and acknowledgements.

use super::*;

#[test]
fn broker_is_asked_for_records_once_per_poll() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.assert_idle();
    script.poll();
    let request = script.fetch();
    assert_eq!((request.share_session_epoch, request.max_wait_ms, request.max_records), (0, 500, 500));
    assert_eq!((request.group_id.as_deref(), request.member_id.as_deref()), (Some("g"), Some("m")));
    script.respond_with(vec![acquired(0, batch(0, 2), &[(0, 1, 1)])]);
    script.assert_idle();
    assert_eq!(script.take().len(), 1);
    script.poll();
    assert_eq!(script.fetch().share_session_epoch, 1);
    script.respond_with(Vec::new());
    script.assert_idle();
    // A thread that waits in a poll asks until there are records.
    script.shared.begin_blocking(script.now);
    assert_eq!(script.fetch().share_session_epoch, 2);
    script.respond_with(Vec::new());
    assert_eq!(script.fetch().share_session_epoch, 3);
    script.shared.end_blocking(script.now);
}

#[test]
fn fetch_with_acknowledgements_does_not_wait() {
    let mut script = Script::new(settings());
    script.deliver(3);
    script.accept();
    script.poll();
    let request = script.fetch();
    assert_eq!((request.share_session_epoch, request.max_wait_ms), (1, 0));
    assert_eq!(in_fetch(&request), [(0, 2, vec![1])]);
    script.respond_with(vec![acquired(0, Vec::new(), &[])]);
    assert_eq!(script.outcomes(), [(0, vec![(0, 2)], None)]);
}

#[test]
fn verdicts_are_sent_as_ranges_without_a_poll() {
    let mut script = Script::new(settings());
    let records = script.deliver(6);
    for (offset, kind) in [
        (0, AcknowledgeType::Accept),
        (1, AcknowledgeType::Release),
        (2, AcknowledgeType::Reject),
        (4, AcknowledgeType::Accept),
        (5, AcknowledgeType::Accept),
    ] {
        records.acknowledge(offset, kind).expect("it is open");
    }
    // The last verdict before it is sent counts.
    records.acknowledge(1, AcknowledgeType::Accept).expect("it is not sent");
    script.held.commit(&script.shared);
    let request = script.acknowledge();
    assert_eq!((request.share_session_epoch, request.is_renew_ack), (1, false));
    assert_eq!(in_acknowledge(&request), [(0, 1, vec![1]), (2, 2, vec![3]), (4, 5, vec![1])]);
    assert!(records.acknowledge(0, AcknowledgeType::Release).is_err(), "it is sent");
    assert!(records.acknowledge(6, AcknowledgeType::Accept).is_err(), "it was not acquired");
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(script.outcomes(), [(0, vec![(0, 1), (2, 2), (4, 5)], None)]);
    assert!(records.has_open());
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(3, 3, vec![1])]);
}

#[test]
fn refused_acknowledgements_are_reported_once() {
    let mut script = Script::new(settings());
    script.deliver(2);
    script.accept();
    let _ = script.acknowledge();
    script.respond_acknowledged(ErrorCode::INVALID_RECORD_STATE);
    let refused = Some(ErrorKind::Broker(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(script.outcomes(), [(0, vec![(0, 1)], refused)]);
    script.accept();
    script.assert_idle();
    assert_eq!(script.outcomes(), []);
}

#[test]
fn response_without_the_partition_refuses_its_acknowledgements() {
    let mut script = Script::new(settings());
    script.deliver(1);
    script.accept();
    let _ = script.acknowledge();
    script.respond(&ShareAcknowledgeResponse::default());
    let refused = Some(ErrorKind::Broker(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], refused)]);
}

#[test]
fn acknowledgements_of_an_ended_session_are_reported_as_lost() {
    let mut script = Script::new(settings());
    script.deliver(2);
    script.poll();
    let _ = script.fetch();
    script.respond(&ShareFetchResponse {
        error_code: ErrorCode::SHARE_SESSION_NOT_FOUND,
        ..ShareFetchResponse::default()
    });
    script.accept();
    let lost = Some(ErrorKind::Broker(ErrorCode::SHARE_SESSION_NOT_FOUND));
    assert_eq!(script.outcomes(), [(0, vec![(0, 1)], lost)]);
    // The next session begins at once, and acknowledges nothing.
    script.poll();
    let request = script.fetch();
    assert_eq!((request.share_session_epoch, in_fetch(&request)), (0, Vec::new()));
}

#[test]
fn lost_connection_fails_sent_and_waiting_requests() {
    let mut script = Script::new(settings());
    let records = script.deliver(2);
    records.acknowledge(0, AcknowledgeType::Accept).expect("it is open");
    script.held.commit(&script.shared);
    let _ = script.acknowledge();
    script.accept();
    let error = Error::new(ErrorKind::Disconnected, "gone");
    script.fetcher.handle_lost(script.now, &error);
    script.fetcher.handle_disconnected();
    let lost = Some(ErrorKind::Broker(ErrorCode::SHARE_SESSION_NOT_FOUND));
    assert_eq!(
        script.outcomes(),
        [(0, vec![(0, 0)], Some(ErrorKind::Disconnected)), (0, vec![(1, 1)], lost)]
    );
}

#[test]
fn full_broker_is_asked_again_after_a_backoff() {
    let mut script = Script::new(settings());
    script.adopt(0);
    let mut waits = Vec::new();
    for _ in 0..3 {
        script.poll();
        let _ = script.fetch();
        script.respond(&ShareFetchResponse {
            error_code: ErrorCode::SHARE_SESSION_LIMIT_REACHED,
            ..ShareFetchResponse::default()
        });
        script.poll();
        script.assert_idle();
        let at = script.fetcher.poll_timeout(&script.connection).expect("a backoff");
        waits.push(at - script.now);
        script.now = at;
    }
    assert!(waits[2] > waits[0], "{waits:?}");
}

#[test]
fn records_from_before_a_leader_move_are_not_acknowledged() {
    let mut script = Script::new(settings());
    script.deliver(2);
    script.fetcher.handle_message(ShareMessage::LeaderMoved(TopicPartition::new("t", 0)));
    script.adopt(0);
    script.accept();
    script.assert_idle();
    let moved = Some(ErrorKind::Broker(ErrorCode::NOT_LEADER_OR_FOLLOWER));
    assert_eq!(script.outcomes(), [(0, vec![(0, 1)], moved)]);
}

#[test]
fn acknowledgement_of_an_earlier_delivery_is_not_sent() {
    let mut script = Script::new(settings());
    let earlier = script.deliver(2);
    script.poll();
    let _ = script.fetch();
    earlier.acknowledge(0, AcknowledgeType::Accept).expect("it is open");
    script.held.commit(&script.shared);
    script.respond_with(vec![acquired(0, batch(0, 2), &[(0, 0, 2)])]);
    let lost = Some(ErrorKind::Broker(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], lost)]);
    assert_eq!(script.take().iter().flat_map(offsets).collect::<Vec<_>>(), [(0, 2)]);
    // Offset 0 is acquired by the later delivery, and offset 1 by the earlier one.
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![1]), (1, 1, vec![1])]);
}

#[test]
fn queued_records_end_with_their_session_or_leader() {
    let mut script = Script::new(settings());
    for number in 0..2 {
        script.adopt(0);
        script.poll();
        let _ = script.fetch();
        script.respond_with(vec![acquired(0, batch(0, 2), &[(0, 1, 1)])]);
        match number {
            0 => script.fetcher.handle_message(ShareMessage::LeaderMoved(TopicPartition::new("t", 0))),
            _ => script.fetcher.handle_disconnected(),
        }
        assert_eq!(script.take().len(), 0, "case {number}");
    }
}

#[test]
fn refused_partition_is_forgotten_and_fetched_later() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.adopt(1);
    script.poll();
    let _ = script.fetch();
    let refused = Partition {
        partition_index: 0,
        error_code: ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ..Partition::default()
    };
    script.respond_with(vec![refused, acquired(1, batch(0, 1), &[(0, 0, 1)])]);
    let is_stale =
        |output| matches!(output, HalfOutput::News(BrokerNews::StaleMetadata(topic)) if &*topic == "t");
    assert!(std::iter::from_fn(|| script.fetcher.poll_output()).any(is_stale));
    script.poll();
    script.take();
    script.poll();
    let request = script.fetch();
    assert_eq!(request.forgotten_topics_data[0].partitions, [0]);
    script.respond_with(Vec::new());
    script.now = script.fetcher.poll_timeout(&script.connection).expect("a wait");
    script.poll();
    assert_eq!(script.fetch().topics[0].partitions[0].partition_index, 0);
}

#[test]
fn records_of_an_unassigned_partition_are_still_acknowledged() {
    let mut script = Script::new(settings());
    script.deliver(2);
    script.fetcher.handle_message(ShareMessage::Forget(TopicPartition::new("t", 0)));
    script.poll();
    script.assert_idle();
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 1, vec![1])]);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(script.outcomes(), [(0, vec![(0, 1)], None)]);
}

#[test]
fn renewal_keeps_the_record_and_extends_its_lock() {
    let mut script = Script::new(settings());
    let records = script.deliver(2);
    assert_eq!(records.lock_until(), script.now + LOCK);
    script.now += Duration::from_secs(20);
    records.acknowledge(0, AcknowledgeType::Renew).expect("it is open");
    script.held.commit(&script.shared);
    let request = script.acknowledge();
    assert!(request.is_renew_ack);
    assert_eq!(in_acknowledge(&request), [(0, 0, vec![4])]);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(records.lock_until_of(0), script.now + LOCK);
    assert!(records.lock_until_of(1) < script.now + LOCK, "it was not renewed");
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 1, vec![1])]);
}

#[test]
fn refused_renewal_ends_the_record() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    records.acknowledge(0, AcknowledgeType::Renew).expect("it is open");
    script.held.commit(&script.shared);
    let _ = script.acknowledge();
    script.respond_acknowledged(ErrorCode::INVALID_RECORD_STATE);
    assert!(!records.has_open());
    assert!(records.acknowledge(0, AcknowledgeType::Accept).is_err());
}

#[test]
fn old_broker_renews_nothing() {
    let mut script = Script::with_version(settings(), 1);
    let records = script.deliver(1);
    records.acknowledge(0, AcknowledgeType::Renew).expect("it is open");
    script.held.commit(&script.shared);
    script.assert_idle();
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], Some(ErrorKind::UnsupportedVersion))]);
    // The session goes on, and the record is acquired as before.
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![1])]);
}

#[test]
fn session_ends_with_the_last_acknowledgements() {
    let mut script = Script::new(settings());
    script.deliver(2);
    script.accept();
    script.fetcher.handle_message(ShareMessage::End(node()));
    let request = script.acknowledge();
    assert_eq!((request.share_session_epoch, in_acknowledge(&request)), (-1, vec![(0, 1, vec![1])]));
    assert_eq!(script.reports(), []);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(script.outcomes(), [(0, vec![(0, 1)], None)]);
    assert_eq!(script.reports(), [ShareReport::Ended(node())]);
    script.poll();
    script.assert_idle();
}

#[test]
fn end_without_a_session_is_reported_at_once() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.fetcher.handle_message(ShareMessage::End(node()));
    script.assert_idle();
    assert_eq!(script.reports(), [ShareReport::Ended(node())]);
}

#[test]
fn queued_bytes_limit_fetching() {
    let half = batch(0, 100).len() as i32;
    for (count, is_full) in [(100, false), (300, true)] {
        let mut script = Script::new(ShareSettings { fetch_max_bytes: 2 * half, ..settings() });
        script.adopt(0);
        script.poll();
        assert_eq!(script.fetch().max_bytes, 2 * half);
        script.respond_with(vec![acquired(0, batch(0, count), &[(0, count as i64 - 1, 1)])]);
        // All leaders share the budget.
        let other = Some(script.shared.begin_session(&WakeHandle::noop()));
        match script.shared.permit(&mut Demand::default(), other, &WakeHandle::noop()) {
            FetchPermit::Denied => assert!(is_full),
            FetchPermit::Bytes(bytes) => assert!(!is_full && (bytes as i32) < 2 * half),
        }
        script.poll();
        assert_eq!(script.take().len(), 1);
        script.poll();
        assert_eq!(script.fetch().max_bytes, 2 * half);
    }
}
