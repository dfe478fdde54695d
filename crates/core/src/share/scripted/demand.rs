//! When a broker is asked for records, and notified.

use super::*;

/// A leader whose two records wait in the queue.
fn queued() -> Script {
    let mut script = Script::new(settings());
    script.adopt(0);
    script.poll();
    let _ = script.fetch();
    script.respond_with(vec![acquired(0, batch(0, 2), &[(0, 1, 1)])]);
    script
}

#[test]
fn leader_with_queued_records_is_not_fetched_from() {
    let mut script = queued();
    script.poll();
    script.assert_idle();
    assert_eq!(script.take().len(), 1);
    script.poll();
    let _ = script.fetch();
}

#[test]
fn leader_is_asked_by_the_poll_after_the_one_that_took_its_records() {
    let mut script = queued();
    script.poll();
    assert_eq!(script.take().len(), 1);
    script.assert_idle();
    script.held.accept_open();
    assert!(script.held.commit_with_poll(&script.shared));
    script.poll();
    assert!(script.take().is_empty());
    assert_eq!(in_fetch(&script.fetch()), [(0, 1, vec![1])], "with the acknowledgements");
}

#[test]
fn leader_is_fetched_from_while_records_of_another_are_queued() {
    let script = queued();
    let other = script.shared.begin_session(&WakeHandle::noop());
    let (mut demand, wake) = (Demand::default(), WakeHandle::noop());
    assert!(matches!(script.shared.permit(&mut demand, Some(other), &wake), FetchPermit::Bytes(_)));
}

#[test]
fn poll_wakes_after_it_has_taken_records() {
    let mut script = Script::new(settings());
    let _ = script.deliver(2);
    script.assert_idle();
    script.wakes();
    script.held.accept_open();
    assert!(script.held.commit_with_poll(&script.shared));
    script.poll();
    assert_eq!(script.wakes(), 0, "the poll has not taken records");
    assert!(script.take().is_empty());
    assert!(script.wakes() > 0);
    assert_eq!(in_fetch(&script.fetch()), [(0, 1, vec![1])], "one request has both");
    script.respond_with(Vec::new());
    assert!(script.take().is_empty());
    script.assert_idle();
    assert_eq!(script.wakes(), 0, "no poll has begun");
}
