//! The partitions that heartbeats report.

use super::*;

#[test]
fn partitions_count_as_owned_while_the_application_takes_them_over() {
    let mut script = Script::new();
    script.is_slow = true;
    script.answer(accepted(1, Some(&[(1, &[0, 1])])));
    assert_eq!(script.take_steps(), ["assign [t [0], t [1]]"]);
    script.pass(INTERVAL);
    // The target shrinks before the application has answered, and the coordinator moves.
    let request = script.answer(accepted(1, Some(&[(1, &[0])])));
    assert_eq!(reported(&request), Some([(id(1), vec![0, 1])].into()));
    script.pass(INTERVAL);
    script.answer(refused(ErrorCode::NOT_COORDINATOR));
    let (term, request) = script.take_heartbeat();
    assert!(is_full(&request));
    assert_eq!(reported(&request), Some([(id(1), vec![0, 1])].into()), "the coordinator would give t 1 away");

    let response = accepted(1, Some(&[(1, &[0])]));
    script.member.handle_heartbeat(script.now, term, Ok((script.now, response)));
    (script.is_slow, script.is_busy) = (false, false);
    script.settle();
    assert_eq!(script.take_steps(), ["assign [t [0]]"]);
    let (_, request) = script.take_heartbeat();
    assert_eq!(reported(&request), Some([(id(1), vec![0])].into()));
}

#[test]
fn withdrawal_of_a_partition_that_was_not_taken_over_is_acknowledged() {
    for is_busy in [false, true] {
        let mut script = Script::stable();
        script.pass(INTERVAL);
        script.is_busy = true;
        script.answer(accepted(2, Some(&[(1, &[0, 1, 2])])));
        script.pass(INTERVAL);
        script.is_busy = is_busy;
        let request = script.answer(accepted(2, Some(&[(1, &[0, 1])])));
        assert_eq!(reported(&request), None);
        let request = script.answer(accepted(3, None));
        assert_eq!(reported(&request), Some([(id(1), vec![0, 1])].into()), "at once, and once");
        script.is_busy = false;
        script.settle();
        assert!(script.take_steps().is_empty());
        assert!(script.requests.is_empty());
        script.pass(INTERVAL);
        assert_eq!(reported(&script.answer(accepted(3, None))), None);
    }
}

#[test]
fn given_up_partitions_are_reported_before_others_are_taken_over() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    script.is_slow = true;
    script.answer(accepted(1, Some(&[(1, &[0, 2])])));
    assert_eq!(script.take_steps(), ["assign [t [0], t [2]]"]);
    // The application has given t 1 up, and is asked to take t 2 over.
    script.owned = keys(&[("t", 0)]);
    script.member.handle_given_up(&script.owned);
    script.settle();
    assert_eq!(reported(&script.answer(accepted(2, None))), Some([(id(1), vec![0, 2])].into()), "at once");
    for _ in 0..100 {
        script.pass(INTERVAL);
        assert_eq!(reported(&script.answer(accepted(2, None))), None);
    }
    assert!(script.take_steps().is_empty(), "the coordinator does not wait for t 1 any more");
}
