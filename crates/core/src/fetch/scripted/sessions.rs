//! Fetch sessions, and the rate of fetches in them.

use super::*;

#[test]
fn later_requests_name_only_changes() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 5);
    script.adopt(1, 7);
    let request = script.fetch().unwrap();
    assert_eq!((request.session_id, request.session_epoch), (0, 0));
    assert_eq!(named(&request), [(0, 5), (1, 7)]);
    assert_eq!(request.topics[0].topic_id, T);
    assert_eq!(request.topics[0].partitions[0].current_leader_epoch, 4);
    assert!(script.fetch().is_none(), "one fetch is in flight at a time");

    script.respond(&response(99, vec![data(0, 8, batch(5, 3, 10))]));
    assert_eq!(script.offsets(), [5, 6, 7]);
    let request = script.fetch().unwrap();
    assert_eq!((request.session_id, request.session_epoch), (99, 1));
    assert_eq!(named(&request), [(0, 8)]);

    script.respond(&response(99, vec![]));
    let request = script.fetch().unwrap();
    assert_eq!((request.session_epoch, named(&request)), (2, vec![]));
}

/// Takes the queue, and returns how many ends of partitions are in it.
fn ends(script: &Script) -> usize {
    let mut records = Records::default();
    script.shared.queue.take(usize::MAX, &mut records);
    records.events().iter().filter(|event| matches!(event, ConsumerEvent::EndOfPartition { .. })).count()
}

/// A broker leaves out partitions without news, also if the consumer has started one of them again.
#[test]
fn end_is_reported_again_after_a_seek_to_it() {
    let mut script = Script::new(18, ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() });
    script.adopt(0, 5);
    script.adopt(1, 5);
    script.fetch().unwrap();
    script.respond(&response(99, vec![data(0, 5, Vec::new()), data(1, 5, Vec::new())]));
    assert_eq!(ends(&script), 2);
    script.adopt(0, 5);
    assert_eq!(named(&script.fetch().unwrap()), [(0, 5)]);
    script.respond(&response(99, vec![]));
    assert_eq!(ends(&script), 1, "the partition started again");
    script.fetch().unwrap();
    script.respond(&response(99, vec![]));
    assert_eq!(ends(&script), 0, "it is reported once");
}

/// The response to that request is not used, and the next one leaves the partition out.
#[test]
fn end_is_reported_after_a_seek_during_a_request() {
    let mut script = Script::new(18, ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() });
    script.adopt(0, 3);
    script.adopt(1, 5);
    script.fetch().unwrap();
    script.adopt(0, 5);
    script.respond(&response(99, vec![data(0, 5, Vec::new()), data(1, 5, Vec::new())]));
    assert_eq!(ends(&script), 1, "of the other partition");
    script.fetch().unwrap();
    script.adopt(0, 5);
    script.respond(&response(99, vec![]));
    assert_eq!(ends(&script), 0, "the partition has started again");
    assert_eq!(named(&script.fetch().unwrap()), [(0, 5)]);
    script.respond(&response(99, vec![]));
    assert_eq!(ends(&script), 1);
}

/// The broker has reported the end before the consumer reads up to it.
#[test]
fn end_is_reported_after_a_seek_over_records() {
    let mut script = Script::new(18, ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() });
    script.adopt(0, 5);
    script.adopt(1, 5);
    script.fetch().unwrap();
    script.respond(&response(99, vec![data(0, 10, batch(5, 3, 10)), data(1, 9, Vec::new())]));
    assert_eq!(ends(&script), 0);
    script.adopt(0, 10);
    assert_eq!(named(&script.fetch().unwrap()), [(0, 10)]);
    script.respond(&response(99, vec![]));
    assert_eq!(ends(&script), 1);
}

#[test]
fn end_is_reported_again_after_pause_and_resume() {
    for is_asked_meanwhile in [false, true] {
        let settings = ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() };
        let mut script = Script::new(18, settings);
        let handle = [script.adopt(0, 5)];
        script.adopt(1, 5);
        script.fetch().unwrap();
        script.respond(&response(99, vec![data(0, 5, Vec::new()), data(1, 5, Vec::new())]));
        assert_eq!(ends(&script), 2);
        script.shared.queue.pause(&handle);
        let mut found = Vec::new();
        if is_asked_meanwhile {
            script.fetch().unwrap();
            script.respond(&response(99, vec![]));
            found = vec![data(0, 5, Vec::new())];
        }
        script.shared.queue.resume(&handle);
        script.fetch().unwrap();
        script.respond(&response(99, found));
        assert_eq!(ends(&script), 1, "of the partition that was paused");
        script.shared.queue.resume(&handle);
        script.fetch().unwrap();
        script.respond(&response(99, vec![]));
        assert_eq!(ends(&script), 0, "it was not paused");
    }
}

#[test]
fn end_that_waited_for_resume_is_reported_once() {
    let mut script = Script::new(18, ConsumerSettings { partition_eof: true, ..ConsumerSettings::default() });
    let handle = [script.adopt(0, 5)];
    script.fetch().unwrap();
    script.shared.queue.pause(&handle);
    script.respond(&response(99, vec![data(0, 5, Vec::new())]));
    assert_eq!(ends(&script), 0);
    script.shared.queue.resume(&handle);
    assert_eq!(ends(&script), 1);
    script.fetch().unwrap();
    script.respond(&response(99, vec![]));
    assert_eq!(ends(&script), 0);
}

/// Returns how many fetches are sent within a second to a broker that responds with `respond` after 100 microseconds.
fn fetches_within_a_second(
    script: &mut Script,
    mut respond: impl FnMut(&FetchRequest) -> FetchResponse,
) -> u32 {
    let end = script.now + Duration::from_secs(1);
    let mut fetches = 0;
    while script.now < end {
        if let Some(request) = script.fetch() {
            fetches += 1;
            script.later(Duration::from_micros(100));
            let response = respond(&request);
            script.respond(&response);
        } else {
            script.later(Duration::from_millis(1));
        }
    }
    fetches
}

#[test]
fn fetcher_backs_off_when_early_responses_bring_no_records() {
    let empty = || response(0, vec![data(0, 5, Vec::new()), data(1, 5, Vec::new())]);
    let stale = || response(0, vec![data(0, 5, batch(0, 3, 10)), data(1, 5, Vec::new())]);
    let unasked = || response(0, vec![data(7, 5, Vec::new())]);
    for version in [6, 12, 18] {
        for backoff in [Duration::ZERO, Duration::from_millis(500)] {
            for respond in [&empty as &dyn Fn() -> FetchResponse, &stale, &unasked, &|| response(0, vec![])] {
                let settings =
                    ConsumerSettings { fetch_error_backoff: backoff, ..ConsumerSettings::default() };
                let mut script = Script::new(version, settings);
                script.adopt(0, 5);
                script.adopt(1, 5);
                let fetches = fetches_within_a_second(&mut script, |_| respond());
                let limit = if backoff.is_zero() { 110 } else { 13 };
                assert!((3..=limit).contains(&fetches), "version {version}: {fetches} fetches");
            }
        }
    }
}

/// A round trip of more than half of the wait time once looked like a broker that had waited.
#[test]
fn slow_connection_does_not_look_like_a_broker_that_waits() {
    let wait = Duration::from_millis(10);
    for every in [1, 2, 11] {
        let settings = ConsumerSettings { fetch_wait_max: wait, ..ConsumerSettings::default() };
        let mut script = Script::new(18, settings);
        script.adopt(0, 5);
        let end = script.now + Duration::from_secs(1);
        let mut fetches = 0;
        while script.now < end {
            if script.fetch().is_none() {
                script.later(Duration::from_millis(1));
                continue;
            }
            fetches += 1;
            script.later(Duration::from_millis(if fetches % every == 0 { 6 } else { 1 }));
            script.respond(&response(0, vec![]));
        }
        assert!((50..=110).contains(&fetches), "{fetches} fetches, every {every} of them slow");
    }
}

/// A broker that waits, and responds early now and then, is not backed off from for long.
#[test]
fn broker_that_waits_most_of_the_time_is_not_backed_off_from() {
    let settings =
        ConsumerSettings { fetch_error_backoff: Duration::from_secs(60), ..ConsumerSettings::default() };
    let mut script = Script::new(18, settings);
    script.adopt(0, 5);
    for number in 0..100 {
        assert!(script.fetch().is_some(), "fetch {number} follows at once");
        script.later(if number % 2 == 0 { Duration::from_millis(1) } else { Duration::from_millis(501) });
        script.respond(&response(0, vec![]));
    }
}

#[test]
fn fetcher_does_not_back_off_when_early_responses_bring_records() {
    let mut script =
        Script::new(18, ConsumerSettings { fetch_min_bytes: 1000, ..ConsumerSettings::default() });
    script.adopt(0, 0);
    script.adopt(1, 0);
    let mut taken = 0;
    let shared = Arc::clone(&script.shared);
    let fetches = fetches_within_a_second(&mut script, |request| {
        let mut records = Records::default();
        shared.queue.take(usize::MAX, &mut records);
        taken += records.iter().count();
        let next = named(request).iter().find(|(partition, _)| *partition == 0).map_or(0, |(_, next)| *next);
        response(0, vec![data(0, next + 1, batch(next, 1, 10)), data(1, 0, Vec::new())])
    });
    assert!(fetches > 9_000, "{fetches} fetches");
    assert!(taken as u32 >= fetches - 1, "{taken} records in {fetches} fetches");
}

#[test]
fn records_end_the_back_off_of_early_responses() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    fetches_within_a_second(&mut script, |_| response(0, vec![data(0, 0, Vec::new())]));
    while script.fetch().is_none() {
        script.later(Duration::from_millis(1));
    }
    script.respond(&response(0, vec![data(0, 1, batch(0, 1, 10))]));
    assert_eq!(script.offsets(), [0]);
    assert!(script.fetch().is_some(), "the next fetch follows at once");
}

#[test]
fn a_paused_partition_is_forgotten_and_named_again_when_it_resumes() {
    let mut script = Script::new(18, ConsumerSettings::default());
    let handle = script.adopt(0, 0);
    script.adopt(1, 0);
    script.fetch().unwrap();
    script.respond(&response(9, vec![]));
    script.shared.queue.pause(&[Arc::clone(&handle)]);
    let request = script.fetch().unwrap();
    assert_eq!(named(&request), []);
    assert_eq!(request.forgotten_topics_data[0].partitions, [0]);
    script.respond(&response(9, vec![]));
    let before = script.wakes();
    script.shared.queue.resume(&[handle]);
    assert!(script.wakes() > before, "the fetcher is woken");
    let request = script.fetch().unwrap();
    assert_eq!(named(&request), [(0, 0)]);
    assert!(request.forgotten_topics_data.is_empty());
}

#[test]
fn a_lost_session_starts_afresh_at_once() {
    let mut script = Script::new(12, ConsumerSettings::default());
    script.adopt(0, 0);
    assert_eq!(script.fetch().unwrap().topics[0].topic, "t", "version 12 names topics by name");
    script.respond(&response(5, vec![data(0, 1, batch(0, 1, 1))]));
    script.fetch().unwrap();
    let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
    script.respond(&FetchResponse { error_code, ..FetchResponse::default() });
    let request = script.fetch().expect("without a back-off");
    assert_eq!((request.session_id, request.session_epoch, named(&request)), (0, 0, vec![(0, 1)]));
}

#[test]
fn a_new_connection_has_a_new_session() {
    let mut script = Script::new(18, ConsumerSettings::default());
    script.adopt(0, 0);
    script.fetch().unwrap();
    script.respond(&response(5, vec![data(0, 1, batch(0, 1, 1))]));
    script.fetch().unwrap();
    script.connection.handle_closed(script.now, "gone");
    script.fetcher.handle_lost(script.now, &Error::new(ErrorKind::Disconnected, ""));
    assert!(script.fetch().is_none());
    script.later(Duration::from_secs(20));
    script.connect();
    let request = script.fetch().unwrap();
    assert_eq!((request.session_id, named(&request)), (0, vec![(0, 1)]));
}

#[test]
fn topic_added_during_a_fetch_keeps_its_response() {
    for version in [4, 12, 18] {
        let mut script = Script::new(version, ConsumerSettings::default());
        script.adopt(0, 0);
        script.adopt(1, 0);
        script.fetch().unwrap();
        let mut other = PartitionConsumer::new(
            Arc::new(PartitionHandle::new(TopicPartition::new("u", 0))),
            AssignmentVersion::default(),
            0,
        );
        other.topic_id = Uuid([8; 16]);
        script.fetcher.handle_message(script.now, FetchMessage::Adopt(Box::new(other)));
        let session_id = if version < 7 { 0 } else { 5 };
        let response = response(
            session_id,
            vec![data(0, 3, batch(0, 3, 1)), failed(1, ErrorCode::NOT_LEADER_OR_FOLLOWER)],
        );
        script.respond(&response);
        assert_eq!(script.offsets(), [0, 1, 2], "version {version}: read once");
        assert!(matches!(script.fetcher.poll_output(), Some(HalfOutput::News(BrokerNews::StaleMetadata(_)))));
        assert!(
            matches!(
                script.fetcher.poll_output(),
                Some(HalfOutput::Report(FetchReport::NotLeader(partition))) if partition.handle.partition() == 1
            ),
            "version {version}: not asked for again at once"
        );
        let asked: Vec<_> =
            script.fetch().unwrap().topics.iter().flat_map(|t| t.partitions.clone()).collect();
        assert_eq!(asked.len(), 2, "version {version}: {asked:?}");
    }
}
