//! Coordinators that respond with nonsense, and random calls and responses.

use super::*;
use crate::event::Event;

/// Bytes that are not a response of any API.
fn respond_with_garbage(script: &mut Script, api: ApiKey) {
    script.respond(api, |_, out| out.extend_from_slice(&[0xff; 3]));
}

#[test]
fn response_that_can_not_be_decoded_is_asked_for_again() {
    let mut script = Script::new();
    let init = script.command(TransactionCommand::Init);
    respond_with_garbage(&mut script, ApiKey::InitProducerId);
    script.wait();
    script.respond_init(ErrorCode::NONE, FIRST);
    assert_eq!(taken(init), Ok(()));
    script.acknowledge();
    script.begin();
    assert!(!script.sends());
    respond_with_garbage(&mut script, ApiKey::AddPartitionsToTxn);
    script.wait();
    script.respond_partitions(ErrorCode::NONE);
    assert!(script.sends());
    let offsets = script.send_offsets(TIMEOUT);
    respond_with_garbage(&mut script, ApiKey::AddOffsetsToTxn);
    script.wait();
    script.respond_added(ErrorCode::NONE);
    respond_with_garbage(&mut script, ApiKey::TxnOffsetCommit);
    script.wait();
    script.respond_offsets(ErrorCode::NONE);
    assert_eq!(taken(offsets), Ok(()));
    let commit = script.commit();
    respond_with_garbage(&mut script, ApiKey::EndTxn);
    script.wait();
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(taken(commit), Ok(()));
    assert_eq!(script.asked_identity(), FIRST, "the outcome of the first requests is unknown");
}

#[test]
fn response_without_the_requested_partition_is_asked_for_again() {
    let mut script = Script::open();
    assert!(!script.sends());
    let empty = AddPartitionsToTxnResponse::default();
    script.respond(ApiKey::AddPartitionsToTxn, |version, out| empty.encode(version, out).unwrap());
    script.wait();
    script.respond_partitions(ErrorCode::NONE);
    assert!(script.sends());
    let offsets = script.send_offsets(TIMEOUT);
    script.respond_added(ErrorCode::NONE);
    let empty = TxnOffsetCommitResponse::default();
    script.respond(ApiKey::TxnOffsetCommit, |version, out| empty.encode(version, out).unwrap());
    script.wait();
    script.respond_offsets(ErrorCode::NONE);
    assert_eq!(taken(offsets), Ok(()));
}

#[test]
fn invalid_and_earlier_identities_are_not_adopted() {
    let mut script = Script::new();
    let mut init = script.command(TransactionCommand::Init);
    for wrong in [ProducerIdentity { id: -1, epoch: 3 }, ProducerIdentity { id: 7, epoch: -1 }] {
        script.respond_init(ErrorCode::NONE, wrong);
        assert!(is_waiting(&mut init) && script.identity().is_none(), "{wrong:?}");
        script.wait();
    }
    script.respond_init(ErrorCode::NONE, epoch(4));
    assert_eq!(taken(init), Ok(()));
    script.acknowledge();
    script.begin();
    script.register();
    script.producer.transactions.as_ref().unwrap().note_doubt();
    let mut abort = script.abort();
    script.respond_end(ErrorCode::NONE, None);
    for wrong in [epoch(4), epoch(3)] {
        script.respond_init(ErrorCode::NONE, wrong);
        assert!(is_waiting(&mut abort) && script.identity().is_none(), "{wrong:?}");
        script.wait();
        assert_eq!(script.asked_identity(), epoch(4));
    }
    script.respond_init(ErrorCode::NONE, ProducerIdentity { id: 8, epoch: 0 });
    assert_eq!(taken(abort), Ok(()));
    assert_eq!(script.identity(), Some(ProducerIdentity { id: 8, epoch: 0 }), "another ID may begin at 0");
}

#[test]
fn end_that_names_no_higher_epoch_is_followed_by_a_request_for_one() {
    for wrong in [None, Some(FIRST)] {
        let mut script = Script::newer();
        script.register();
        let commit = script.commit();
        script.respond_end(ErrorCode::NONE, wrong);
        assert_eq!(taken(commit), Ok(()), "the transaction is committed");
        assert_eq!((script.identity(), script.asked_identity()), (None, FIRST));
        script.respond_init(ErrorCode::NONE, epoch(1));
        script.acknowledge();
        script.begin();
        assert!(script.sends());
    }
}

/// Responds to a request with an error code, or with an outcome that says nothing if there is none.
fn respond_any(script: &mut Script, index: usize, code: Option<ErrorCode>, next: &mut i16) {
    let (request, owner) = script.requests.remove(index);
    let others = std::mem::replace(&mut script.requests, vec![(request, owner)]);
    let api = script.requests[0].0.api;
    let Some(code) = code else {
        script.lose(api);
        return script.requests.splice(0..0, others).for_each(drop);
    };
    *next += i16::from(code == ErrorCode::NONE);
    let identity = epoch(*next);
    match api {
        ApiKey::InitProducerId => script.respond_init(code, identity),
        ApiKey::AddPartitionsToTxn => script.respond_partitions(code),
        ApiKey::AddOffsetsToTxn => script.respond_added(code),
        ApiKey::TxnOffsetCommit => script.respond_offsets(code),
        ApiKey::EndTxn => script.respond_end(code, Some(identity)),
        _ => {
            script.respond_state(code, if *next % 2 == 0 { "PrepareCommit" } else { "CompleteCommit" });
            false
        }
    };
    script.requests.splice(0..0, others).for_each(drop);
}

/// Responds to everything with success, and lets time pass, until nothing is left to do.
fn settle(script: &mut Script, next: &mut i16) {
    for _ in 0..200 {
        while !script.requests.is_empty() {
            respond_any(script, 0, Some(ErrorCode::NONE), next);
        }
        match script.part.poll_timeout() {
            Some(_) => drop(script.wait()),
            None => return,
        }
    }
}

/// Makes a random call, and returns it if it waits.
fn call(script: &mut Script, rng: &mut Rng) -> Option<Waiting<TransactionResult>> {
    let mut waiting = match rng.below(8) {
        0 => script.command(TransactionCommand::Init),
        1 => script.command(TransactionCommand::Begin),
        2 => script.send_offsets(Duration::from_millis(rng.below(2_000))),
        3 | 4 => script.commit(),
        5 | 6 => script.abort(),
        _ => {
            script.acknowledge();
            return None;
        }
    };
    is_waiting(&mut waiting).then_some(waiting)
}

#[test]
fn random_calls_and_responses_leave_no_call_without_a_result() {
    let codes: Vec<ErrorCode> = ErrorCode::all().chain([ErrorCode(999)]).collect();
    let (mut committed, mut fatal) = (0, 0);
    for seed in 0..3_000 {
        let (mut rng, mut next) = (Rng::from_seed(seed), 0);
        let mut script = if rng.chance(1, 2) { Script::open() } else { Script::newer() };
        let shared = script.producer.transactions.clone().expect("it is transactional");
        let mut calls: Vec<Waiting<TransactionResult>> = Vec::new();
        for _ in 0..rng.below(60) {
            match rng.below(8) {
                0 | 1 => calls.extend(call(&mut script, &mut rng)),
                2 | 3 if !script.requests.is_empty() => {
                    let index = rng.below(script.requests.len() as u64) as usize;
                    let code = match rng.below(4) {
                        0 => None,
                        1 => Some(codes[rng.below(codes.len() as u64) as usize]),
                        _ => Some(ErrorCode::NONE),
                    };
                    respond_any(&mut script, index, code, &mut next);
                }
                4 => drop(script.sends()),
                5 => script.pass(Duration::from_millis(rng.below(3_000))),
                6 if rng.chance(1, 4) => shared.note_doubt(),
                _ => script.advance(),
            }
        }
        settle(&mut script, &mut next);
        for mut call in calls {
            assert!(!is_waiting(&mut call), "seed {seed}: a call waits in {}", script.state().name());
        }
        if script.state() == TransactionState::FatalError {
            fatal += 1;
            assert!(script.stopped.is_some(), "seed {seed}");
            continue;
        }
        finish_and_commit(&mut script, &mut next, seed);
        committed += 1;
    }
    assert!(committed > 500 && fatal > 20, "{committed} committed, {fatal} are fatal");
}

/// Ends what is open, and commits another transaction.
fn finish_and_commit(script: &mut Script, next: &mut i16, seed: u64) {
    use TransactionState::{BeginCommit, CommitNotAcked, Committing};
    let at = |script: &Script| format!("seed {seed} in {}", script.state().name());
    let ended = match script.state() {
        TransactionState::Init | TransactionState::WaitProducerId | TransactionState::ReadyNotAcked => {
            Some(script.command(TransactionCommand::Init))
        }
        TransactionState::Ready => None,
        BeginCommit | Committing | CommitNotAcked => Some(script.commit()),
        _ => Some(script.abort()),
    };
    settle(script, next);
    assert!(ended.is_none_or(|ended| ended.try_take() == Some(Ok(()))), "{}", at(script));
    script.acknowledge();
    script.begin();
    if !script.sends() {
        settle_until_sent(script, next, &at(script));
    }
    let commit = script.commit();
    settle(script, next);
    assert_eq!(commit.try_take(), Some(Ok(())), "{}", at(script));
    assert!(!script.events.iter().any(|event| matches!(event, Event::Fatal(_))));
}

fn settle_until_sent(script: &mut Script, next: &mut i16, at: &str) {
    for _ in 0..100 {
        if script.sends() {
            return;
        }
        if script.requests.is_empty() {
            script.wait();
        } else {
            respond_any(script, 0, Some(ErrorCode::NONE), next);
        }
    }
    panic!("{at}: a new transaction sends nothing");
}
