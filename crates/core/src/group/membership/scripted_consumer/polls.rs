//! Members whose application does not poll.

use super::*;

#[test]
fn member_without_polls_leaves_after_giving_up_and_joins_at_the_next() {
    for (is_static, expected) in [(false, -1), (true, -2)] {
        let script = if is_static { Script::of_static_member() } else { Script::new() };
        let mut script = script.joined();
        script.member.handle_poll_exceeded(script.now);
        script.settle();
        assert_eq!(script.take_steps(), ["lost"]);
        let (term, request) = script.take_heartbeat();
        assert_eq!(request.member_epoch, expected);
        script.pass(INTERVAL * 3);
        assert!(script.requests.is_empty(), "it waits for the application");
        script.member.handle_polled(script.now);
        script.settle();
        // The response to the heartbeat that left is late.
        script.member.handle_heartbeat(script.now, term, Ok((script.now, accepted(expected, None))));
        script.answer(accepted(7, Some(&[(1, &[0])])));
        assert_eq!(script.take_steps(), ["assign [t [0]]"]);
        assert_eq!(script.epoch(), Some(7));
    }
}

/// A member in epoch 1 whose application did not poll, and has not answered that its partitions are lost.
fn expired_with_an_open_loss(is_static: bool) -> Script {
    let script = if is_static { Script::of_static_member() } else { Script::new() };
    let mut script = script.joined();
    script.is_slow = true;
    script.member.handle_poll_exceeded(script.now);
    script.settle();
    assert_eq!(script.take_steps(), ["lost"]);
    script.pass(INTERVAL * 3);
    assert!(script.requests.is_empty(), "the application may still process its records");
    script
}

#[test]
fn member_that_polls_before_it_answers_its_loss_leaves_and_joins() {
    for (is_static, expected) in [(false, -1), (true, -2)] {
        let mut script = expired_with_an_open_loss(is_static);
        script.member.handle_polled(script.now);
        script.settle();
        script.pass(INTERVAL);
        assert!(script.requests.is_empty(), "its partitions are not given up");
        assert_eq!(script.epoch(), None);
        script.member.handle_revoked(script.now);
        script.settle();
        let (term, request) = script.take_heartbeat();
        assert_eq!(request.member_epoch, expected);
        assert_eq!(script.requests.len(), 1, "it does not wait for the response");
        script.member.handle_heartbeat(script.now, term, Ok((script.now, accepted(expected, None))));
        script.is_slow = false;
        let request = script.answer(accepted(7, Some(&[(1, &[0])])));
        assert_eq!((request.member_epoch, is_full(&request)), (0, true));
        assert_eq!(script.epoch(), Some(7));
    }
}

#[test]
fn member_that_stops_polling_again_before_it_answers_does_not_join() {
    let mut script = expired_with_an_open_loss(false);
    script.member.handle_polled(script.now);
    script.member.handle_poll_exceeded(script.now);
    script.settle();
    assert!(script.take_steps().is_empty(), "the partitions are being given up already");
    script.member.handle_revoked(script.now);
    script.settle();
    assert_eq!(script.answer(accepted(-1, None)).member_epoch, -1);
    script.pass(INTERVAL);
    assert!(script.requests.is_empty(), "it waits for the application");
    script.member.handle_polled(script.now);
    script.settle();
    assert_eq!(script.take_heartbeat().1.member_epoch, 0);
}

#[test]
fn partitions_are_lost_when_the_coordinator_stops_waiting_for_them() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.is_slow = true;
    let withdrawn_at = script.now;
    script.answer(accepted(1, Some(&[(1, &[0])])));
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
    script.owned = keys(&[("t", 0), ("t", 1)]);
    // The application polls, but does not give t 1 up, and the coordinator loads.
    let ends = withdrawn_at + Duration::from_secs(300);
    while script.now + INTERVAL < ends {
        script.pass(INTERVAL);
        script.fail(ErrorKind::Disconnected);
    }
    assert!(script.take_steps().is_empty());
    script.pass(INTERVAL);
    assert_eq!(script.take_steps(), ["lost"]);
    assert_eq!(script.epoch(), None);
}

#[test]
fn partitions_that_were_given_up_in_time_are_not_lost() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.answer(accepted(1, Some(&[(1, &[0])])));
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
    script.answer(accepted(2, None));
    for _ in 0..100 {
        script.pass(INTERVAL);
        script.answer(accepted(2, None));
    }
    assert!(script.take_steps().is_empty());
}
