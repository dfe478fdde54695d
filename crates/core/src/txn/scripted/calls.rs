//! Every call in every state.

use super::*;

use TransactionState::{
    AbortNotAcked, AbortableError, Aborting, BeginAbort, BeginCommit, CommitNotAcked, Committing, FatalError,
    InTransaction, Init, Ready, ReadyNotAcked, WaitProducerId,
};

/// Returns a producer in this state.
fn in_state(state: TransactionState) -> Script {
    let mut script = match state {
        Init | WaitProducerId | ReadyNotAcked => Script::new(),
        Ready => Script::ready(),
        _ => Script::open(),
    };
    let fail = |script: &mut Script, error| {
        script.producer.transactions.as_ref().expect("it is transactional").note_failure(error);
        script.advance();
    };
    match state {
        Init | Ready | InTransaction => {}
        WaitProducerId => drop(script.command(TransactionCommand::Init)),
        ReadyNotAcked => {
            drop(script.command(TransactionCommand::Init));
            script.respond_init(ErrorCode::NONE, FIRST);
        }
        BeginCommit | BeginAbort => {
            assert!(script.producer.budget.try_charge(1), "a message waits for its report");
            drop(if state == BeginCommit { script.commit() } else { script.abort() });
        }
        Committing | CommitNotAcked => {
            script.register();
            drop(script.commit());
        }
        Aborting | AbortNotAcked => {
            script.register();
            drop(script.abort());
        }
        AbortableError => {
            fail(&mut script, TransactionError::Abort(Error::new(ErrorKind::MessageTimedOutInQueue, "")));
        }
        FatalError => fail(&mut script, TransactionError::Fatal(Error::new(ErrorKind::Fenced, ""))),
    }
    if matches!(state, CommitNotAcked | AbortNotAcked) {
        script.respond_end(ErrorCode::NONE, None);
    }
    script.requests.clear();
    assert_eq!(script.state(), state);
    script
}

/// Makes a call. Returns the text of its error, or `allowed` if it succeeds or waits.
fn call(script: &mut Script, number: usize) -> String {
    let waiting = match number {
        0 => script.command(TransactionCommand::Init),
        1 => script.command(TransactionCommand::Begin),
        2 => script.send_offsets(TIMEOUT),
        3 => script.command(TransactionCommand::Commit),
        _ => script.command(TransactionCommand::Abort),
    };
    match waiting.try_take() {
        None | Some(Ok(())) => "allowed".to_owned(),
        Some(Err(error)) => error.to_string(),
    }
}

#[test]
fn each_call_is_refused_in_a_wrong_state_with_the_next_step() {
    const NAMES: [&str; 5] = [
        "init_transactions",
        "begin_transaction",
        "send_offsets_to_transaction",
        "commit_transaction",
        "abort_transaction",
    ];
    let (ok, init, again) = ("allowed", "call init_transactions first", "call init_transactions again first");
    let (begin, open) = ("call begin_transaction first", "a transaction is open; commit or abort it first");
    let (commit, abort) = ("call commit_transaction again first", "call abort_transaction again first");
    let (failed, fatal) = ("abort the transaction, then begin another one", "close this producer");
    let ready = "the producer is ready; call begin_transaction";
    // The states, and the outcome of each call.
    let table: [(TransactionState, [&str; 5]); 13] = [
        (Init, [ok, init, init, init, init]),
        (WaitProducerId, [ok, again, again, again, again]),
        (ReadyNotAcked, [ok, again, again, again, again]),
        (Ready, [ready, ok, begin, begin, begin]),
        (InTransaction, [open, open, ok, ok, ok]),
        (BeginCommit, [commit, commit, commit, ok, commit]),
        (Committing, [commit, commit, commit, ok, commit]),
        (CommitNotAcked, [commit, commit, commit, ok, commit]),
        (BeginAbort, [abort, abort, abort, abort, ok]),
        (Aborting, [abort, abort, abort, abort, ok]),
        (AbortNotAcked, [abort, abort, abort, abort, ok]),
        (AbortableError, [failed, failed, failed, failed, ok]),
        (FatalError, [fatal; 5]),
    ];
    for (state, expected) in table {
        for (number, expected) in expected.into_iter().enumerate() {
            let mut script = in_state(state);
            let found = call(&mut script, number);
            let at = format!("{} in {}: {found}", NAMES[number], state.name());
            assert!(found.contains(expected), "{at}");
            let is_state_error = expected != ok && !matches!(state, AbortableError | FatalError);
            let start = format!("{} in state {}: ", NAMES[number], state.name());
            assert!(!is_state_error || found.contains(&start), "{at}");
            let is_same = expected == ok || script.state() == state;
            assert!(is_same && (expected == ok || script.requests.is_empty()), "{at} has an effect");
        }
    }
}

#[test]
fn begin_that_timed_out_continues_whether_it_has_begun_or_not() {
    for state in TransactionState::ALL {
        let mut script = in_state(state);
        let result = taken(script.command(TransactionCommand::ContinueBegin));
        let expected = if state == Ready { InTransaction } else { state };
        assert_eq!(script.state(), expected);
        match (state, result) {
            (Ready | InTransaction, result) => assert_eq!(result, Ok(())),
            (AbortableError, Err(error)) => assert!(error.requires_abort(), "{error}"),
            (FatalError, Err(error)) => assert!(error.is_fatal(), "{error}"),
            (_, result) => assert!(result.is_err_and(|error| error.kind() == ErrorKind::State), "{state:?}"),
        }
    }
}
