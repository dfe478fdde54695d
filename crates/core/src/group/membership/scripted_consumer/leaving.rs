//! Members that leave, for a while or for good.

use super::*;

#[test]
fn leaving_member_reports_whether_it_may_return() {
    use GroupMembershipOperation::{Default, LeaveGroup, RemainInGroup};
    for (is_static, operation, expected) in [
        (false, Default, -1),
        (false, LeaveGroup, -1),
        (true, Default, -2),
        (true, LeaveGroup, -1),
        (true, RemainInGroup, -2),
    ] {
        let script = if is_static { Script::of_static_member() } else { Script::new() };
        let mut script = script.joined();
        script.owned.clear();
        script.member.leave(script.now, operation);
        script.settle();
        let (term, request) = script.take_heartbeat();
        assert_eq!(request.member_epoch, expected);
        assert_eq!(script.epoch(), None, "it commits nothing any more");
        script.member.handle_heartbeat(script.now, term, Ok((script.now, accepted(expected, None))));
        script.settle();
        assert_eq!(script.take_steps(), ["left"]);
    }
}

#[test]
fn dynamic_member_that_stays_sends_nothing() {
    let mut script = Script::new().joined();
    script.owned.clear();
    script.member.leave(script.now, GroupMembershipOperation::RemainInGroup);
    script.settle();
    assert!(script.requests.is_empty());
    assert_eq!((script.epoch(), script.take_steps()), (None, vec!["left".to_owned()]));
}

#[test]
fn member_leaves_in_time_without_a_coordinator() {
    let mut script = Script::stable();
    script.member.leave(script.now, GroupMembershipOperation::LeaveGroup);
    script.pass(Duration::from_secs(5));
    assert_eq!(script.take_steps(), ["left"]);
    let mut script = Script::stable();
    script.member.leave(script.now, GroupMembershipOperation::LeaveGroup);
    script.settle();
    script.fail(ErrorKind::Disconnected);
    assert_eq!(script.take_steps(), ["left"]);
}

#[test]
fn late_heartbeat_response_does_not_revive_a_member_that_left() {
    let mut script = Script::stable();
    script.pass(INTERVAL);
    let (term, _) = script.take_heartbeat();
    script.member.leave(script.now, GroupMembershipOperation::LeaveGroup);
    script.settle();
    script.member.handle_heartbeat(script.now, term, Ok((script.now, accepted(9, Some(&[(1, &[5])])))));
    script.settle();
    assert_eq!(script.epoch(), None);
    assert!(script.take_steps().is_empty());
    script.answer(accepted(-1, None));
    assert_eq!(script.take_steps(), ["left"]);
    script.member.subscribe(script.now, names(&["t"]), None);
    script.settle();
    assert_eq!(script.take_heartbeat().1.member_epoch, 0, "it may join again");
}
