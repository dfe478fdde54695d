//! At most one JoinGroup is in flight.

use super::*;

/// A member that left because of missing polls while its JoinGroup waited at the coordinator, and polls again; and the
/// term of that JoinGroup.
fn expired_while_joining() -> (Script, Term) {
    let mut script = Script::stable();
    script.beat_after_interval(ErrorCode::REBALANCE_IN_PROGRESS);
    script.revoked();
    let (term, _) = script.take_join();
    script.member.handle_poll_exceeded(script.now);
    script.settle();
    script.take("LeaveGroup");
    script.member.handle_polled(script.now);
    script.settle();
    (script, term)
}

#[test]
fn join_waits_for_the_response_to_an_earlier_one() {
    let (mut script, term) = expired_while_joining();
    script.pass(Duration::from_secs(4));
    assert_eq!(script.sent(), [""; 0], "the coordinator could count two members");
    let refused = JoinGroupResponse { error_code: ErrorCode::UNKNOWN_MEMBER_ID, ..Default::default() };
    script.member.handle_join(script.now, term, Ok(refused));
    script.settle();
    assert_eq!(script.take_join().1.member_id, "");
}

#[test]
fn lost_response_to_an_earlier_join_ends_the_wait() {
    let (mut script, term) = expired_while_joining();
    script.member.handle_join(script.now, term, disconnected());
    script.settle();
    assert_eq!(script.sent(), ["JoinGroup"]);
}

#[test]
fn silent_coordinator_delays_the_next_join_for_a_short_time() {
    let (mut script, term) = expired_while_joining();
    script.pass(Duration::from_secs(5));
    assert_eq!(script.sent(), ["JoinGroup"]);
    // The late response to the first one changes nothing.
    script.member.handle_join(script.now, term, Ok(joined("m", 2, "other", &[])));
    script.settle();
    assert_eq!(script.sent(), ["JoinGroup"]);
    script.refuse_join(ErrorCode::REBALANCE_IN_PROGRESS);
    script.pass(Duration::from_secs(1));
    assert_eq!(script.sent(), ["JoinGroup"], "only an abandoned one is waited for");
}

#[test]
fn cooperative_member_that_was_unknown_at_its_join_loses_its_partitions() {
    let mut script =
        Script::with(GroupSettings { assignors: vec![Assignor::CooperativeSticky.into()], ..defaults() });
    script.join(cooperative("m", 1));
    script.sync(Ok(assignment(&[0])));
    script.take_steps();
    script.pass(Duration::from_secs(3));
    let (heartbeat, _) = script.take("Heartbeat");
    script.member.rejoin(script.now, "partitions were given up for other members");
    script.settle();
    let (join, _) = script.take_join();
    let unknown = HeartbeatResponse { error_code: ErrorCode::UNKNOWN_MEMBER_ID, ..Default::default() };
    script.member.handle_heartbeat(script.now, heartbeat, Ok((script.beat_at, unknown)));
    script.settle();
    assert_eq!(script.take_steps(), ["lost"]);
    script.revoked();
    assert_eq!(script.sent(), [""; 0], "the first JoinGroup has no response yet");
    script.member.handle_join(script.now, join, cooperative("m", 2));
    script.settle();
    assert_eq!(script.take_join().1.member_id, "m", "it is admitted under this ID");
}

#[test]
fn static_member_that_missed_a_generation_loses_its_partitions() {
    let mut script = Script::with(GroupSettings {
        assignors: vec![Assignor::CooperativeSticky.into()],
        instance_id: Some("i".into()),
        ..defaults()
    });
    script.join(cooperative("m", 1));
    script.sync(Ok(assignment(&[0])));
    script.take_steps();
    script.member.rejoin(script.now, "the group is rebalancing");
    script.settle();
    let (join, _) = script.take_join();
    script.beat_after_interval(ErrorCode::ILLEGAL_GENERATION);
    assert!(script.take_steps().is_empty(), "the response to JoinGroup may arrive soon");
    script.beat_after_interval(ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(script.take_steps(), ["lost"]);
    script.revoked();
    script.member.handle_join(script.now, join, cooperative("m", 3));
    script.settle();
    assert_eq!(script.take_join().1.member_id, "m", "it is still a member");
}

fn cooperative(id: &str, generation: i32) -> Result<JoinGroupResponse, Error> {
    let protocol_name = Some("cooperative-sticky".into());
    Ok(JoinGroupResponse { protocol_name, ..joined(id, generation, "other", &[]) })
}

fn defaults() -> GroupSettings {
    GroupSettings::with_defaults("g")
}
