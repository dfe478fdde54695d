//! Commits of members of the consumer protocol.

use super::*;

/// A member of the consumer protocol that holds t 0 since an epoch, if at all.
fn consumer_member(epoch: i32, since: Option<i32>) -> Committer {
    let number = |epoch| Generation::from_wire(epoch).expect("it is valid");
    let held = since.map(|since| (TopicPartition::new("t", 0), number(since)));
    Committer::Member(MemberIdentity {
        member_id: "m".into(),
        generation: number(epoch),
        instance_id: None,
        held: Held::Consumer(Arc::new(held.into_iter().collect())),
    })
}

/// Sends the commit that is due, and returns its epoch, its lowest version and its number.
pub(super) fn sent_commit(offsets: &mut CommittedOffsets, now: Instant) -> Option<(i32, i16, u64)> {
    let (number, request) = offsets.poll_request(now)?;
    let mut bytes = Vec::new();
    (request.encode)(9, &mut bytes).expect("it can be encoded");
    let decoded = OffsetCommitRequest::decode(&mut Reader::new(&bytes), 9).expect("it can be decoded");
    Some((decoded.generation_id_or_member_epoch, *request.versions.start(), number))
}

pub(super) fn refuse_commit(offsets: &mut CommittedOffsets, number: u64, code: ErrorCode) {
    use ottla_protocol::generated::offset_commit::{
        OffsetCommitResponse,
        response::{Partition, Topic},
    };

    let partitions = vec![Partition { partition_index: 0, error_code: code }];
    let topics = vec![Topic { name: "t".into(), partitions, ..Topic::default() }];
    let response = OffsetCommitResponse { topics, ..Default::default() };
    let response = as_response(START, ApiKey::OffsetCommit, 9, &response);
    offsets.handle_response(START, number, Ok(response));
}

#[test]
fn commit_in_a_stale_epoch_is_repeated_in_the_newer_one() {
    let mut offsets = committed_offsets(consumer_member(3, Some(2)));
    let waiting = commit(&mut offsets);
    let (epoch, first_version, number) = sent_commit(&mut offsets, START).expect("a commit");
    assert_eq!((epoch, first_version), (3, 9));
    refuse_commit(&mut offsets, number, ErrorCode::STALE_MEMBER_EPOCH);
    assert!(offsets.take_must_check_membership() && !offsets.take_must_check_membership());
    assert!(sent_commit(&mut offsets, START).is_none(), "it waits for the newer epoch");
    offsets.commit_as(consumer_member(4, Some(2)));
    let (epoch, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    assert_eq!(epoch, 4);
    refuse_commit(&mut offsets, number, ErrorCode::NONE);
    assert_eq!(waiting.try_take(), Some(Ok(vec![Ok(())])));
}

#[test]
fn commits_that_are_refused_again_and_again_wait_longer_each_time() {
    let mut offsets = committed_offsets(member(1, None));
    let waiting = commit(&mut offsets);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
        refuse_commit(&mut offsets, number, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        let until = offsets.poll_timeout().expect("it is repeated");
        waits.push((until - START).as_millis());
        offsets.handle_timeout(until);
    }
    assert_eq!(waits, [100, 200, 400, 800, 1000]);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::NONE);
    assert!(waiting.try_take().expect("it ended").is_ok());
    drop(commit(&mut offsets));
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    assert_eq!(offsets.poll_timeout(), Some(START + Duration::from_millis(100)), "from the start");
}

#[test]
fn stale_commit_is_not_repeated_for_a_revoked_partition() {
    for since in [None, Some(4)] {
        let mut offsets = committed_offsets(consumer_member(3, Some(2)));
        let waiting = commit(&mut offsets);
        let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
        refuse_commit(&mut offsets, number, ErrorCode::STALE_MEMBER_EPOCH);
        offsets.commit_as(consumer_member(4, since));
        assert!(sent_commit(&mut offsets, START).is_none());
        let error = waiting.try_take().expect("it ended").expect_err("it failed");
        assert_eq!(error.kind(), ErrorKind::State, "held since {since:?}");
    }
}

#[test]
fn commit_in_a_stale_epoch_fails_with_the_refusal_at_its_deadline() {
    let mut offsets = committed_offsets(consumer_member(3, Some(2)));
    let waiting = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::STALE_MEMBER_EPOCH);
    offsets.handle_timeout(START + Duration::from_secs(30));
    let error = waiting.try_take().expect("it ended").expect_err("it failed");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::STALE_MEMBER_EPOCH));
}

#[test]
fn repeated_commit_is_not_stuck_when_the_coordinator_moves_afterwards() {
    let mut offsets = committed_offsets(consumer_member(3, Some(2)));
    let _waiting = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::STALE_MEMBER_EPOCH);
    offsets.commit_as(consumer_member(4, Some(2)));
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::NOT_COORDINATOR);
    let later = START + Duration::from_secs(1);
    offsets.handle_timeout(later);
    assert_eq!(sent_commit(&mut offsets, later).map(|(epoch, ..)| epoch), Some(4));
}

#[test]
fn commit_of_a_revoked_partition_does_not_fail_the_others() {
    let holding = |epoch, held: &[(i32, i32)]| {
        let number = |epoch| Generation::from_wire(epoch).expect("it is valid");
        let held =
            held.iter().map(|(partition, since)| (TopicPartition::new("t", *partition), number(*since)));
        Committer::Member(MemberIdentity {
            member_id: "m".into(),
            generation: number(epoch),
            instance_id: None,
            held: Held::Consumer(Arc::new(held.collect())),
        })
    };
    // The coordinator knows of the revocation before it reports the next epoch.
    for epoch in [3, 4] {
        let mut offsets = committed_offsets(holding(3, &[(0, 2), (1, 3)]));
        let (done, waiting) = completion();
        let list = vec![GroupOffset::new("t", 0, 5), GroupOffset::new("t", 1, 6)];
        let kind = GroupCallKind::Commit(list, done);
        offsets.call(START, GroupCall { timeout: Duration::from_secs(30), kind });
        offsets.commit_as(holding(epoch, &[(0, 2)]));
        let (number, request) = offsets.poll_request(START).expect("t 0 is committed");
        let mut bytes = Vec::new();
        (request.encode)(9, &mut bytes).expect("it can be encoded");
        let sent = OffsetCommitRequest::decode(&mut Reader::new(&bytes), 9).expect("it can be decoded");
        assert_eq!((sent.topics.len(), sent.topics[0].partitions.len()), (1, 1));
        assert_eq!(sent.generation_id_or_member_epoch, epoch);
        refuse_commit(&mut offsets, number, ErrorCode::NONE);
        let results = waiting.try_take().expect("it ended").expect("one of the two was committed");
        assert_eq!(results[0], Ok(()));
        let error = results[1].as_ref().expect_err("it was given up");
        assert_eq!((error.kind(), error.context().partition), (ErrorKind::State, Some(1)));
        assert!(error.to_string().contains("rebalanced"), "{error}");
    }
}

/// Returns the responses' error codes and errors after which an abandoned commit ends.
fn ends_of_a_given_up_commit() -> [Option<ErrorCode>; 4] {
    [Some(ErrorCode::NONE), Some(ErrorCode::NOT_COORDINATOR), Some(ErrorCode::STALE_MEMBER_EPOCH), None]
}

#[test]
fn late_commit_fails_at_its_deadline_and_keeps_its_connection() {
    for end in ends_of_a_given_up_commit() {
        let mut offsets = committed_offsets(consumer_member(3, Some(2)));
        let (first, second) = (commit(&mut offsets), commit_within(&mut offsets, Duration::from_secs(60)));
        let sent_at = START + Duration::from_millis(29_800);
        let (number, request) = offsets.poll_request(sent_at).expect("a commit");
        assert_eq!(
            request.timeout,
            Duration::from_secs(1),
            "the remaining 200 ms would close the connection"
        );
        let deadline = START + Duration::from_secs(30);
        assert_eq!(offsets.poll_timeout(), Some(deadline));
        offsets.handle_timeout(deadline);
        let error = first.try_take().expect("it ended").expect_err("it failed");
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(offsets.poll_request(deadline).is_none(), "the first may be carried out after the second");
        let late = deadline + Duration::from_millis(500);
        match end {
            Some(code) => refuse_commit(&mut offsets, number, code),
            None => {
                let lost = Err(Error::new(ErrorKind::Disconnected, ""));
                assert!(!offsets.handle_response(late, number, lost));
                assert!(offsets.poll_request(late).is_none(), "the coordinator is backed off from");
                offsets.handle_timeout(late + Duration::from_millis(100));
            }
        }
        assert!(offsets.poll_committed().is_none() && !offsets.take_must_check_membership());
        let (_, request) = offsets.poll_request(late).expect("the second commit");
        assert_eq!(request.timeout, Duration::from_millis(29_500));
        assert!(second.try_take().is_none());
    }
}

#[test]
fn wait_for_commits_includes_an_abandoned_commit() {
    let mut offsets = committed_offsets(consumer_member(3, Some(2)));
    let _given_up = commit_within(&mut offsets, Duration::from_millis(200));
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    let (done, waiting) = completion();
    let kind = GroupCallKind::Commit(Vec::new(), done);
    offsets.call(START, GroupCall { timeout: Duration::from_secs(60), kind });
    offsets.handle_timeout(START + Duration::from_millis(200));
    assert!(waiting.try_take().is_none(), "the coordinator may still carry the commit out");
    refuse_commit(&mut offsets, number, ErrorCode::NONE);
    assert_eq!(waiting.try_take(), Some(Ok(Vec::new())));
}
