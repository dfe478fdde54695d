//! Locks: renewals, delayed releases, events, records that are handed out alone, and strict limits.

use super::*;

const LATE: Instant = Instant::FAR_FUTURE;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the events so far: true for a lock that has ended, and the offsets.
fn lock_events(script: &Script) -> Vec<(bool, Vec<(i64, i64)>)> {
    let events = std::iter::from_fn(|| script.shared.take_event());
    let shown = |event| match event {
        ShareEvent::LockExpiring(locked) => (false, locked.offsets),
        ShareEvent::LockExpired(locked) => (true, locked.offsets),
        ShareEvent::Error(error) => panic!("{error}"),
    };
    events.map(shown).collect()
}

#[test]
fn application_learns_of_locks_before_and_after_their_end() {
    let mut script = Script::new(settings());
    let records = script.deliver(3);
    records.acknowledge(1, AcknowledgeType::Accept).expect("it is open");
    script.assert_idle();
    assert_eq!(lock_events(&script), []);
    let at = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(at, script.now + seconds(20));
    script.now = at;
    script.assert_idle();
    assert_eq!(lock_events(&script), [(false, vec![(0, 0), (2, 2)])]);
    script.assert_idle();
    assert_eq!(lock_events(&script), [], "each event comes once");
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the end");
    assert_eq!(script.now, records.lock_until());
    script.assert_idle();
    assert_eq!(lock_events(&script), [(true, vec![(0, 0), (2, 2)])]);
}

#[test]
fn locks_are_renewed_until_the_records_are_acknowledged() {
    let mut script = Script::new(ShareSettings { renews_locks: true, ..settings() });
    let records = script.deliver(2);
    for _ in 0..3 {
        script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
        let request = script.acknowledge();
        assert!(request.is_renew_ack);
        assert_eq!(in_acknowledge(&request), [(0, 1, vec![4])]);
        script.respond_acknowledged(ErrorCode::NONE);
        assert_eq!(records.lock_until_of(0), script.now + LOCK);
        script.assert_idle();
    }
    assert_eq!(script.outcomes(), [], "the application did not ask for the renewals");
    assert_eq!(records.open_count(), 2);
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 1, vec![1])]);
    script.respond_acknowledged(ErrorCode::NONE);
    script.now += seconds(100);
    script.assert_idle();
    assert_eq!(lock_events(&script), []);
}

#[test]
fn queued_records_are_not_renewed() {
    let mut script = Script::new(ShareSettings { renews_locks: true, ..settings() });
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond_with(vec![acquired(0, batch(0, 2), &[(0, 1, 1)])]);
    // Each check is later than the one before.
    for wait in [25, 10] {
        script.now += seconds(wait);
        script.assert_idle();
        let next = script.fetcher.poll_timeout(&script.connection);
        assert!(next.is_none_or(|next| next > script.now), "{next:?}");
    }
    assert!(script.take().is_empty(), "their lock has ended");
}

#[test]
fn old_broker_is_not_asked_to_renew() {
    let mut script = Script::with_version(ShareSettings { renews_locks: true, ..settings() }, 1);
    script.deliver(2);
    script.now += seconds(25);
    script.assert_idle();
    assert_eq!(lock_events(&script), [(false, vec![(0, 1)])]);
}

#[test]
fn held_record_is_released_when_its_delay_is_over() {
    let mut script = Script::new(settings());
    let records = script.deliver(3);
    script.shared.release_at(&records, 1, script.now + seconds(5)).expect("it is open");
    assert_eq!(records.open_until(LATE), [(0, 0), (2, 2)], "it needs no verdict");
    script.accept();
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![1]), (2, 2, vec![1])]);
    script.respond_acknowledged(ErrorCode::NONE);
    script.assert_idle();
    assert_eq!(script.fetcher.poll_timeout(&script.connection), Some(script.now + seconds(5)));
    script.now += seconds(5);
    assert_eq!(in_acknowledge(&script.acknowledge()), [(1, 1, vec![2])]);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(script.outcomes(), [(0, vec![(0, 0), (2, 2)], None), (0, vec![(1, 1)], None)]);
}

#[test]
fn held_record_is_renewed_until_its_delay_is_over() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(50)).expect("it is open");
    for _ in 0..2 {
        script.assert_idle();
        script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
        assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
        script.respond_acknowledged(ErrorCode::NONE);
    }
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the delay ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![2])]);
}

#[test]
fn old_broker_gets_a_held_record_back_before_its_lock_ends() {
    let mut script = Script::with_version(settings(), 1);
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(50)).expect("it is open");
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert!(script.now < records.lock_until());
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![2])]);
}

#[test]
fn verdict_replaces_a_delay() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(5)).expect("it is open");
    records.acknowledge(0, AcknowledgeType::Accept).expect("it is not sent");
    script.held.commit(&script.shared);
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![1])]);
    script.respond_acknowledged(ErrorCode::NONE);
    script.now += seconds(10);
    script.assert_idle();
}

#[test]
fn delayed_release_fails_with_its_session() {
    let mut script = Script::new(settings());
    let records = script.deliver(2);
    script.shared.release_at(&records, 0, script.now + seconds(5)).expect("it is open");
    script.fetcher.handle_disconnected();
    let lost = Some(ErrorKind::Broker(ErrorCode::SHARE_SESSION_NOT_FOUND));
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], lost)]);
    script.shared.release_at(&records, 1, script.now + seconds(5)).expect("it is open");
    assert_eq!(script.outcomes(), [(0, vec![(1, 1)], lost)]);
}

#[test]
fn delayed_release_fails_with_its_renewal() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(50)).expect("it is open");
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    script.respond_acknowledged(ErrorCode::INVALID_RECORD_STATE);
    let lost = Some(ErrorKind::Broker(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], lost)]);
    script.assert_idle();
}

#[test]
fn delayed_release_fails_with_a_renewal_in_flight() {
    let mut script = Script::new(ShareSettings { renews_locks: true, ..settings() });
    let records = script.deliver(1);
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    script.shared.release_at(&records, 0, script.now + seconds(5)).expect("it is open");
    script.respond_acknowledged(ErrorCode::INVALID_RECORD_STATE);
    let lost = Some(ErrorKind::Broker(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], lost)]);
    script.now += seconds(100);
    script.assert_idle();
}

#[test]
fn records_are_accepted_while_their_locks_are_renewed() {
    let mut script = Script::new(ShareSettings { renews_locks: true, ..settings() });
    let records = script.deliver(2);
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 1, vec![4])]);
    assert_eq!((records.has_open(), records.open_count()), (true, 2));
    script.accept();
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 1, vec![1])]);
}

/// It would not be delivered again, although the application asked for that.
#[test]
fn held_record_is_not_accepted_while_its_lock_is_renewed() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(25)).expect("it is open");
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    assert_eq!((records.has_open(), records.open_count(), records.open_until(LATE)), (false, 0, vec![]));
    script.accept();
    script.respond_acknowledged(ErrorCode::NONE);
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the delay ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![2])]);
}

#[test]
fn delay_that_is_asked_for_during_a_renewal_counts_after_it() {
    let mut script = Script::new(ShareSettings { renews_locks: true, ..settings() });
    let records = script.deliver(1);
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    script.shared.release_at(&records, 0, script.now + seconds(5)).expect("it is open");
    script.accept();
    script.assert_idle();
    script.respond_acknowledged(ErrorCode::NONE);
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the delay ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![2])]);
}

#[test]
fn renewal_by_the_application_replaces_a_delay() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(5)).expect("it is open");
    records.acknowledge(0, AcknowledgeType::Renew).expect("it is not sent");
    script.held.commit(&script.shared);
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(records.open_count(), 1, "it needs a verdict again");
    script.now += seconds(10);
    script.assert_idle();
}

#[test]
fn delayed_release_fails_once_when_its_session_ends_during_a_renewal() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(50)).expect("it is open");
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    script.fetcher.handle_lost(script.now, &Error::new(ErrorKind::Disconnected, "gone"));
    script.fetcher.handle_disconnected();
    let outcomes = script.outcomes();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert!(outcomes[0].2.is_some() && outcomes[0].1 == [(0, 0)], "{outcomes:?}");
}

#[test]
fn refused_delay_changes_nothing() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.accept();
    let _ = script.acknowledge();
    for offset in [0, 7] {
        assert!(script.shared.release_at(&records, offset, script.now + seconds(5)).is_err(), "{offset}");
    }
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], None)]);
    script.now += seconds(10);
    script.assert_idle();
    script.fetcher.handle_disconnected();
    assert_eq!(script.outcomes(), []);
}

#[test]
fn closing_releases_held_records() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(5)).expect("it is open");
    script.held.release_delayed();
    script.held.commit(&script.shared);
    script.fetcher.handle_message(ShareMessage::End(node()));
    let request = script.acknowledge();
    assert_eq!((request.share_session_epoch, in_acknowledge(&request)), (-1, vec![(0, 0, vec![2])]));
}

#[test]
fn closing_releases_a_held_record_whose_renewal_is_in_flight() {
    let mut script = Script::new(settings());
    let records = script.deliver(1);
    script.shared.release_at(&records, 0, script.now + seconds(50)).expect("it is open");
    script.assert_idle();
    script.now = script.fetcher.poll_timeout(&script.connection).expect("the lock ends");
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![4])]);
    script.held.release_delayed();
    script.held.commit(&script.shared);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(in_acknowledge(&script.acknowledge()), [(0, 0, vec![2])]);
    script.respond_acknowledged(ErrorCode::NONE);
    assert_eq!(script.outcomes(), [(0, vec![(0, 0)], None)]);
}

#[test]
fn record_before_its_last_delivery_is_handed_out_alone() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond_with(vec![acquired(0, batch(0, 6), &[(0, 1, 1), (2, 3, 4), (4, 4, 2), (5, 5, 5)])]);
    let first = script.take();
    assert_eq!(offsets(&first[0]), [(0, 1), (1, 1), (4, 2)]);
    for (offset, count) in [(2, 4), (3, 4), (5, 5)] {
        script.accept();
        assert!(script.take().is_empty(), "the last acknowledgements have no outcome");
        assert!(matches!(script.next(), Some(Asked::Acknowledge(_))));
        script.respond_acknowledged(ErrorCode::NONE);
        let alone = script.take();
        assert_eq!(alone.len(), 1);
        assert_eq!(offsets(&alone[0]), [(offset, count)]);
    }
}

#[test]
fn record_that_comes_alone_stops_fetching_while_it_is_queued() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond_with(vec![acquired(0, batch(0, 2), &[(0, 1, 4)])]);
    for _ in 0..2 {
        script.poll();
        script.assert_idle();
        assert_eq!(script.take().len(), 1);
    }
    script.poll();
    let _ = script.fetch();
}

#[test]
fn strict_limit_bounds_a_poll() {
    let mut script = Script::new(ShareSettings { is_strict: true, max_poll_records: 10, ..settings() });
    script.adopt(0);
    script.adopt(1);
    script.poll();
    let request = script.fetch();
    assert_eq!((request.share_acquire_mode, request.max_records), (1, 10));
    script.respond_with(vec![acquired(0, batch(0, 6), &[(0, 5, 1)]), acquired(1, batch(0, 6), &[(0, 5, 1)])]);
    for _ in 0..2 {
        let mut records = Vec::new();
        script.shared.take(script.now, 10, &mut records);
        assert_eq!(records.iter().map(|records| records.len()).collect::<Vec<_>>(), [6]);
    }
}

#[test]
fn fetch_is_short_while_the_application_has_records() {
    let mut script = Script::new(settings());
    script.deliver(2);
    script.poll();
    assert_eq!(script.fetch().max_wait_ms, 0, "the application may commit at any time");
    script.respond_with(Vec::new());
    script.shared.begin_blocking(script.now);
    assert_eq!(script.fetch().max_wait_ms, 100, "one of its threads waits in a poll");
    script.shared.end_blocking(script.now);
    script.respond_with(Vec::new());
    script.accept();
    let _ = script.acknowledge();
    script.respond_acknowledged(ErrorCode::NONE);
    script.poll();
    assert_eq!(script.fetch().max_wait_ms, 500);
}

#[test]
fn records_in_the_queue_end_the_fetches_of_a_waiting_poll() {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    script.shared.begin_blocking(script.now);
    let _ = script.fetch();
    script.respond_with(vec![acquired(0, batch(0, 1), &[(0, 0, 1)])]);
    script.assert_idle();
    script.shared.end_blocking(script.now);
    script.take();
    script.accept();
    let _ = script.acknowledge();
}
