//! Commits that a classic member made while its group rebalanced.

use super::{
    epochs::{refuse_commit, sent_commit},
    *,
};
use crate::group::departure::GroupMembershipOperation;

/// A cooperative member that holds t 0 since a generation, if at all.
fn cooperative(generation: i32, since: Option<i32>, is_settled: bool) -> Committer {
    let number = |generation| Generation::from_wire(generation).expect("it is valid");
    let since = since.map(|since| (TopicPartition::new("t", 0), number(since)));
    Committer::Member(MemberIdentity {
        member_id: "m".into(),
        generation: number(generation),
        instance_id: None,
        held: Held::Cooperative { since: Arc::new(since.into_iter().collect()), is_settled },
    })
}

/// Returns the error of each partition of a commit, or of the commit itself.
fn error_of(waiting: &Waiting<CommitResult>) -> Option<Error> {
    match waiting.try_take()? {
        Ok(results) => results.into_iter().find_map(Result::err),
        Err(error) => Some(error),
    }
}

#[test]
fn cooperative_commit_is_repeated_in_the_generation_that_follows() {
    for sent_while_joining in [false, true] {
        let mut offsets = committed_offsets(cooperative(3, Some(2), !sent_while_joining));
        let waiting = commit(&mut offsets);
        let (generation, first_version, number) = sent_commit(&mut offsets, START).expect("a commit");
        assert_eq!((generation, first_version), (3, 2), "any version, unlike the consumer protocol");
        offsets.commit_as(cooperative(4, Some(2), false));
        refuse_commit(&mut offsets, number, ErrorCode::ILLEGAL_GENERATION);
        assert!(sent_commit(&mut offsets, START).is_none(), "the member has no assignment");
        offsets.commit_as(cooperative(4, Some(2), true));
        let (generation, _, number) = sent_commit(&mut offsets, START).expect("a commit");
        assert_eq!(generation, 4);
        refuse_commit(&mut offsets, number, ErrorCode::NONE);
        assert_eq!(waiting.try_take(), Some(Ok(vec![Ok(())])));
    }
}

#[test]
fn cooperative_commit_waits_for_the_assignment() {
    let mut offsets = committed_offsets(cooperative(4, Some(2), false));
    let waiting = commit(&mut offsets);
    let (generation, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    assert_eq!(generation, 4);
    refuse_commit(&mut offsets, number, ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(sent_commit(&mut offsets, START).is_none());
    assert_eq!(waiting.try_take(), None);
    offsets.commit_as(cooperative(4, Some(2), true));
    let (generation, ..) =
        sent_commit(&mut offsets, START).expect("the same generation, with its assignment");
    assert_eq!(generation, 4);
}

#[test]
fn assignment_that_arrives_before_the_refusal_does_not_end_the_commit() {
    let mut offsets = committed_offsets(cooperative(4, Some(2), false));
    let _waiting = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    offsets.commit_as(cooperative(4, Some(2), true));
    refuse_commit(&mut offsets, number, ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(sent_commit(&mut offsets, START).is_some());
}

#[test]
fn queued_cooperative_commit_is_sent_in_the_generation_that_follows() {
    let mut offsets = committed_offsets(cooperative(3, Some(3), true));
    let _first = commit(&mut offsets);
    let second = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("the first one");
    offsets.commit_as(cooperative(4, Some(3), true));
    refuse_commit(&mut offsets, number, ErrorCode::NONE);
    let (generation, _, number) = sent_commit(&mut offsets, START).expect("the second one");
    assert_eq!(generation, 4);
    refuse_commit(&mut offsets, number, ErrorCode::NONE);
    assert_eq!(second.try_take(), Some(Ok(vec![Ok(())])));
}

#[test]
fn cooperative_commit_is_not_repeated_for_a_revoked_partition() {
    // The partition moved to another member, or came back from it.
    for since in [None, Some(4)] {
        let mut offsets = committed_offsets(cooperative(3, Some(2), true));
        let waiting = commit(&mut offsets);
        let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
        offsets.commit_as(cooperative(3, Some(2), false));
        refuse_commit(&mut offsets, number, ErrorCode::ILLEGAL_GENERATION);
        offsets.commit_as(cooperative(4, since, true));
        assert!(sent_commit(&mut offsets, START).is_none());
        let error = error_of(&waiting).expect("it failed");
        assert_eq!(error.kind(), ErrorKind::State, "held since {since:?}");
        assert_eq!(error.context().refusal, Some(ErrorCode::ILLEGAL_GENERATION));
    }
}

#[test]
fn refusal_in_a_settled_generation_ends_the_commit() {
    for code in [ErrorCode::ILLEGAL_GENERATION, ErrorCode::REBALANCE_IN_PROGRESS] {
        let mut offsets = committed_offsets(cooperative(3, Some(2), true));
        let waiting = commit(&mut offsets);
        let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
        refuse_commit(&mut offsets, number, code);
        assert_eq!(error_of(&waiting).map(|error| error.kind()), Some(ErrorKind::Broker(code)));
    }
}

#[test]
fn eager_commit_ends_with_its_generation() {
    let mut offsets = committed_offsets(member(3, None));
    let waiting = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    offsets.commit_as(member(4, None));
    refuse_commit(&mut offsets, number, ErrorCode::ILLEGAL_GENERATION);
    let kind = error_of(&waiting).map(|error| error.kind());
    assert_eq!(kind, Some(ErrorKind::Broker(ErrorCode::ILLEGAL_GENERATION)));
}

#[test]
fn waiting_commit_ends_when_its_partition_is_revoked() {
    let mut offsets = committed_offsets(cooperative(4, Some(2), false));
    let waiting = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::REBALANCE_IN_PROGRESS);
    offsets.commit_as(cooperative(4, None, false));
    assert!(sent_commit(&mut offsets, START).is_none());
    let kind = error_of(&waiting).map(|error| error.kind());
    assert_eq!(kind, Some(ErrorKind::Broker(ErrorCode::REBALANCE_IN_PROGRESS)));
}

#[test]
fn waiting_commit_does_not_delay_a_member_that_leaves() {
    for generation in [3, 4] {
        let mut offsets = committed_offsets(cooperative(3, Some(2), false));
        let waiting = commit(&mut offsets);
        let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
        refuse_commit(&mut offsets, number, ErrorCode::REBALANCE_IN_PROGRESS);
        assert!(sent_commit(&mut offsets, START).is_none());
        offsets.commit_as(member(generation, None));
        if let Some((_, _, number)) = sent_commit(&mut offsets, START) {
            assert_eq!(generation, 3, "only in its own generation");
            refuse_commit(&mut offsets, number, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        assert!(error_of(&waiting).is_some());
    }
}

#[test]
fn waiting_commit_fails_with_the_refusal_at_its_deadline() {
    let mut offsets = committed_offsets(cooperative(4, Some(2), false));
    let waiting = commit(&mut offsets);
    let (_, _, number) = sent_commit(&mut offsets, START).expect("a commit");
    refuse_commit(&mut offsets, number, ErrorCode::REBALANCE_IN_PROGRESS);
    offsets.handle_timeout(START + Duration::from_secs(30));
    let kind = error_of(&waiting).map(|error| error.kind());
    assert_eq!(kind, Some(ErrorKind::Broker(ErrorCode::REBALANCE_IN_PROGRESS)));
}

/// Returns the generation, since when t 0 and t 1 are held, and whether the member is settled.
fn held(script: &Script) -> (i32, Vec<(i32, i32)>, bool) {
    let Committer::Member(member) = &script.committer else { panic!("{:?}", script.committer) };
    let Held::Cooperative { since, is_settled } = &member.held else { panic!("{:?}", member.held) };
    let since = since.iter().map(|(key, since)| (key.partition, since.get())).collect();
    (member.generation.get(), since, *is_settled)
}

#[test]
fn cooperative_member_holds_its_partitions_across_generations() {
    let mut script = Script::cooperative();
    script.consume(1, 5);
    assert_eq!(held(&script), (1, vec![(0, 1), (1, 1)], true));
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(held(&script), (1, vec![(0, 1), (1, 1)], false), "JoinGroup is in flight");
    script.join("other", &[]);
    assert_eq!(held(&script), (2, vec![(0, 1), (1, 1)], false), "SyncGroup is in flight");
    script.sync(&[("t", 0), ("t", 2)]);
    assert_eq!(held(&script), (2, vec![(0, 1)], true), "t 1 is given up");
    let (_, done) = script.commits.pop().expect("the commit of t 1");
    done.complete(Ok(vec![Ok(())]));
    script.settle();
    assert_eq!(held(&script), (2, vec![(0, 1), (2, 2)], false), "it joins again");
}

#[test]
fn lost_membership_revokes_all_partitions_of_a_cooperative_member() {
    let mut script = Script::cooperative();
    script.beat(ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(script.committer, Committer::Outside);
    script.join("other", &[]);
    script.sync(&[("t", 0)]);
    let (generation, since, is_settled) = held(&script);
    assert_eq!((since, is_settled), (vec![(0, generation)], true));
}

/// A cooperative member that consumed t 0, and closes while its JoinGroup request is in flight.
fn leaving_while_it_joins() -> Script {
    let mut script = Script::cooperative();
    script.beat(ErrorCode::REBALANCE_IN_PROGRESS);
    script.consume(0, 7);
    let (done, _waiting) = completion();
    script.group.handle_command(script.now, GroupCommand::Close(GroupMembershipOperation::Default, done));
    script.settle();
    assert_eq!(held(&script), (1, vec![(0, 1), (1, 1)], false));
    assert_eq!(script.take_fetch(), ["stop [t [0], t [1]]"]);
    script
}

#[test]
fn member_that_leaves_holds_its_partitions_until_it_has_committed() {
    let mut script = leaving_while_it_joins();
    script.join("other", &[]);
    assert_eq!(held(&script), (2, vec![(0, 1), (1, 1)], false), "SyncGroup is in flight");
    script.sync(&[("t", 0), ("t", 2)]);
    assert_eq!(held(&script), (2, vec![(0, 1)], true), "t 1 is another member's");
    let (offsets, done) = script.commits.pop().expect("a commit");
    assert_eq!((offsets[0].partition, offsets[0].offset), (0, 7));
    done.complete(Ok(vec![Ok(())]));
    script.settle();
    assert_eq!(script.sent(), ["LeaveGroup"]);
    let fetch = script.take_fetch();
    assert!(!fetch.iter().any(|command| command.starts_with("start")), "{fetch:?}");
}

#[test]
fn member_that_leaves_waits_no_longer_than_its_commit_may_take() {
    let mut script = leaving_while_it_joins();
    script.pass(Duration::from_secs(6));
    assert!(script.sent().contains(&"LeaveGroup"), "{:?}", script.sent());
}
