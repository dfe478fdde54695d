//! The consequences of each error of a broker.

use super::*;

/// The consequence of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Retry,
    Lookup,
    Abort,
    AbortAndRenew,
    Fatal,
    Fenced,
}
use Then::{Abort, AbortAndRenew, Fatal, Fenced, Lookup, Retry};

/// Responds to a request in an open transaction, and judges the consequence.
fn consequence(script: &mut Script, api: ApiKey, respond: impl FnOnce(&mut Script) -> bool) -> Then {
    let lost = respond(script);
    match script.state() {
        TransactionState::FatalError => {
            let fenced = script.stopped.as_ref().expect("the producer stops").kind() == ErrorKind::Fenced;
            assert!(taken(script.command(TransactionCommand::Abort)).unwrap_err().is_fatal());
            if fenced { Fenced } else { Fatal }
        }
        TransactionState::AbortableError => {
            let refused = taken(script.command(TransactionCommand::Commit)).unwrap_err();
            assert!(refused.requires_abort(), "{refused}");
            let renews = script.producer.transactions.as_ref().unwrap().needs_renewal();
            if renews { AbortAndRenew } else { Abort }
        }
        _ => {
            script.wait();
            assert_eq!(script.requests.last().map(|(request, _)| request.api), Some(api));
            if lost { Lookup } else { Retry }
        }
    }
}

#[test]
fn add_partitions_errors_have_their_consequences() {
    let rows = [
        (14, Retry),
        (51, Retry),
        (3, Retry),
        (7, Retry),
        (15, Lookup),
        (16, Lookup),
        (29, Abort),
        (55, Abort),
        (120, Abort),
        (-1, Abort),
        (999, Abort),
        (49, AbortAndRenew),
        (59, AbortAndRenew),
        (48, Fatal),
        (53, Fatal),
        (31, Fatal),
        (47, Fenced),
        (90, Fenced),
    ];
    for (code, expected) in rows {
        let mut script = Script::open();
        script.sends();
        let found = consequence(&mut script, ApiKey::AddPartitionsToTxn, |script| {
            script.respond_partitions(ErrorCode(code))
        });
        assert_eq!(found, expected, "{code}");
    }
}

#[test]
fn add_offsets_errors_have_their_consequences() {
    let rows = [
        (14, Retry),
        (51, Retry),
        (15, Lookup),
        (16, Lookup),
        (30, Abort),
        (120, Abort),
        (49, AbortAndRenew),
        (43, Fatal),
        (48, Fatal),
        (53, Fatal),
        (47, Fenced),
        (90, Fenced),
    ];
    for (code, expected) in rows {
        let mut script = Script::open();
        let call = script.send_offsets(TIMEOUT);
        let found =
            consequence(&mut script, ApiKey::AddOffsetsToTxn, |script| script.respond_added(ErrorCode(code)));
        assert_eq!(found, expected, "{code}");
        if matches!(expected, Abort | AbortAndRenew) {
            assert!(taken(call).unwrap_err().requires_abort(), "{code}");
        }
    }
}

#[test]
fn offset_commit_errors_have_their_consequences() {
    let rows = [
        (14, Retry),
        (51, Retry),
        (3, Retry),
        (15, Lookup),
        (16, Lookup),
        (22, Abort),
        (25, Abort),
        (82, Abort),
        (29, Abort),
        (30, Abort),
        (120, Abort),
        (49, AbortAndRenew),
        (43, Fatal),
        (48, Fatal),
        (53, Fatal),
        (47, Fenced),
        (90, Fenced),
    ];
    for (code, expected) in rows {
        let mut script = Script::open();
        script.send_offsets(TIMEOUT);
        script.respond_added(ErrorCode::NONE);
        let found = consequence(&mut script, ApiKey::TxnOffsetCommit, |script| {
            script.respond_offsets(ErrorCode(code))
        });
        assert_eq!(found, expected, "{code}");
    }
}

#[test]
fn commit_errors_have_their_consequences() {
    let rows = [
        (14, Retry),
        (51, Retry),
        (7, Retry),
        (-1, Retry),
        (15, Lookup),
        (16, Lookup),
        (120, Abort),
        (49, AbortAndRenew),
        (59, AbortAndRenew),
        (48, Fatal),
        (53, Fatal),
        (31, Fatal),
        (47, Fenced),
        (90, Fenced),
    ];
    for (code, expected) in rows {
        let mut script = Script::open();
        script.register();
        script.commit();
        let found =
            consequence(&mut script, ApiKey::EndTxn, |script| script.respond_end(ErrorCode(code), None));
        assert_eq!(found, expected, "{code}");
    }
}

#[test]
fn refused_abort_is_completed_by_a_new_epoch() {
    for code in [49, 59, 120, 999] {
        let mut script = Script::open();
        script.register();
        let abort = script.abort();
        script.respond_end(ErrorCode(code), None);
        assert_eq!(script.state(), TransactionState::Aborting);
        script.respond_init(ErrorCode::NONE, epoch(1));
        assert_eq!(taken(abort), Ok(()), "{code}");
    }
    for (code, fenced) in [(47, true), (90, true), (48, false), (53, false)] {
        let mut script = Script::open();
        script.register();
        let abort = script.abort();
        script.respond_end(ErrorCode(code), None);
        let failed = taken(abort).unwrap_err();
        assert_eq!((failed.is_fatal(), failed.kind() == ErrorKind::Fenced), (true, fenced), "{code}");
    }
}

#[test]
fn refusal_after_a_lost_commit_is_fatal_because_the_outcome_is_unknown() {
    let mut script = Script::open();
    script.register();
    let commit = script.commit();
    script.lose(ApiKey::EndTxn);
    script.wait();
    script.respond_end(ErrorCode::TRANSACTION_ABORTABLE, None);
    let failed = taken(commit).unwrap_err();
    assert!(failed.is_fatal() && failed.to_string().contains("unknown whether"), "{failed}");
}

#[test]
fn init_errors_are_fatal_or_repeated() {
    for code in [31, 50, 53, 47, 90] {
        let mut script = Script::new();
        let init = script.command(TransactionCommand::Init);
        script.respond_init(ErrorCode(code), FIRST);
        assert!(taken(init).unwrap_err().is_fatal(), "{code}");
        assert!(script.stopped.is_some());
    }
    for code in [14, 15, 16, 51, -1, 999] {
        let mut script = Script::new();
        script.command(TransactionCommand::Init);
        script.respond_init(ErrorCode(code), FIRST);
        script.wait();
        script.respond_init(ErrorCode::NONE, FIRST);
        assert_eq!(script.state(), TransactionState::ReadyNotAcked, "{code}");
    }
}

#[test]
fn first_error_is_kept_until_the_abort() {
    let mut script = Script::open();
    script.sends();
    script.respond_partitions(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    let transactions = script.producer.transactions.clone().unwrap();
    transactions.note_failure(TransactionError::Abort(Error::new(ErrorKind::MessageTimedOutInQueue, "")));
    script.advance();
    let refused = taken(script.command(TransactionCommand::Commit)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    assert_eq!(taken(script.abort()), Ok(()));
    script.acknowledge();
    script.begin();
    assert!(script.stopped.is_none());
}

#[test]
fn fenced_batch_is_fatal_and_one_of_an_old_epoch_is_not() {
    let mut script = Script::open();
    script.register();
    let transactions = script.producer.transactions.clone().unwrap();
    transactions
        .note_failure(TransactionError::Abort(Error::broker(ErrorCode::INVALID_PRODUCER_EPOCH, None)));
    transactions.note_doubt();
    script.advance();
    assert_eq!(script.state(), TransactionState::AbortableError);
    script.abort();
    script.respond_end(ErrorCode::NONE, None);
    script.respond_init(ErrorCode::NONE, epoch(4));
    script.acknowledge();
    script.begin();
    let fenced = Error::new(ErrorKind::Fenced, "");
    transactions.note_failure(TransactionError::Fatal(fenced));
    script.advance();
    assert_eq!(script.state(), TransactionState::FatalError);
    assert_eq!(script.stopped.map(|error| error.kind()), Some(ErrorKind::Fenced));
}

#[test]
fn offsets_that_time_out_may_be_sent_again() {
    let mut script = Script::open();
    let first = script.send_offsets(Duration::from_secs(5));
    script.lose(ApiKey::AddOffsetsToTxn);
    script.pass(Duration::from_secs(5));
    let failed = taken(first).unwrap_err();
    assert!(failed.is_retriable() && failed.to_string().contains("attempts failed"), "{failed}");
    script.requests.clear();
    let mut script = Script::open();
    let first = script.send_offsets(Duration::from_secs(5));
    script.respond_added(ErrorCode::NOT_COORDINATOR);
    script.pass(Duration::from_millis(1));
    let second = script.send_offsets(Duration::from_secs(9));
    script.wait();
    script.respond_added(ErrorCode::NONE);
    script.respond_offsets(ErrorCode::NONE);
    assert_eq!(taken(first), Ok(()));
    script.respond_added(ErrorCode::NONE);
    script.respond_offsets(ErrorCode::NONE);
    assert_eq!(taken(second), Ok(()));
}

#[test]
fn newer_protocol_sends_offsets_to_the_group_only() {
    let mut script = Script::newer();
    let call = script.send_offsets(TIMEOUT);
    let (request, _) = script.requests.last().expect("a request");
    assert_eq!(request.versions, 5..=5);
    script.respond_offsets(ErrorCode::NONE);
    assert_eq!(taken(call), Ok(()));
    script.commit();
    assert!(script.asked_end().0.committed);
}

#[test]
fn calls_with_short_timeouts_share_one_back_off() {
    let mut script = Script::open();
    let mut requests = 0;
    let mut waited = Duration::ZERO;
    while waited < Duration::from_secs(1) {
        let call = script.send_offsets(Duration::from_millis(20));
        for _ in 0..10 {
            if script.requests.iter().any(|(request, _)| request.api == ApiKey::AddOffsetsToTxn) {
                script.respond_added(ErrorCode::CONCURRENT_TRANSACTIONS);
                requests += 1;
            }
            script.pass(Duration::from_millis(2));
            waited += Duration::from_millis(2);
        }
        assert_eq!(taken(call).unwrap_err().kind(), ErrorKind::TimedOut);
    }
    assert!((6..=12).contains(&requests), "{requests} requests in a second");
}
