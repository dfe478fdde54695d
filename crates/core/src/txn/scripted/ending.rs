//! How transactions begin and end.

use super::*;

#[test]
fn transaction_registers_its_partitions_before_they_are_sent() {
    let mut script = Script::open();
    assert!(!script.sends());
    script.respond_partitions(ErrorCode::NONE);
    assert!(script.sends());
    let commit = script.commit();
    assert_eq!(script.state(), TransactionState::Committing);
    let (request, version) = script.asked_end();
    assert_eq!((request.committed, request.producer_epoch, version), (true, 0, 4));
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(taken(commit), Ok(()));
    assert_eq!(script.state(), TransactionState::CommitNotAcked);
    script.acknowledge();
    assert_eq!((script.state(), script.identity()), (TransactionState::Ready, Some(FIRST)));
    script.begin();
    assert!(!script.sends(), "the next transaction registers them again");
}

#[test]
fn newer_protocol_sends_at_once_and_adopts_the_epoch_of_the_end() {
    let mut script = Script::newer();
    assert!(script.sends());
    assert!(script.requests.is_empty());
    let commit = script.commit();
    assert_eq!(script.asked_end().1, 5);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!(taken(commit), Ok(()));
    assert_eq!(script.identity(), Some(epoch(1)));
}

/// Commits a transaction of the newer protocol with a batch, and begins the next one.
fn commit_and_begin(script: &mut Script) {
    assert!(script.sends());
    let commit = script.commit();
    let raised = ProducerIdentity { epoch: script.asked_end().0.producer_epoch + 1, ..FIRST };
    script.respond_end(ErrorCode::NONE, Some(raised));
    assert_eq!(taken(commit), Ok(()));
    script.acknowledge();
    script.begin();
}

#[test]
fn newer_protocol_sends_when_the_last_markers_are_written() {
    let mut script = Script::newer();
    commit_and_begin(&mut script);
    script.send_offsets(Duration::from_secs(5));
    for (wait, state) in [(1, "PrepareCommit"), (1, "PrepareCommit"), (2, "CompleteCommit")] {
        assert!(script.requests.is_empty() && !script.sends(), "nothing is sent yet");
        assert_eq!(script.wait(), Duration::from_millis(wait));
        script.respond_state(ErrorCode::NONE, state);
    }
    assert!(script.sends());
    script.respond_offsets(ErrorCode::NONE);
    // The next one begins later.
    let commit = script.commit();
    script.respond_end(ErrorCode::NONE, Some(epoch(2)));
    assert_eq!(taken(commit), Ok(()));
    script.acknowledge();
    script.wait();
    script.respond_state(ErrorCode::NONE, "CompleteCommit");
    script.begin();
    assert!(script.sends());
}

/// Ends a transaction whose markers take this long. Returns the times in milliseconds at which the client asks about them.
fn questions(script: &mut Script, markers: Duration) -> Vec<u128> {
    commit_and_begin(script);
    let (mut passed, mut asked) = (Duration::ZERO, Vec::new());
    while !script.sends() {
        if script.requests.is_empty() {
            passed += script.wait();
        }
        asked.push(passed.as_millis());
        script.respond_state(
            ErrorCode::NONE,
            if passed < markers { "PrepareCommit" } else { "CompleteCommit" },
        );
    }
    asked
}

#[test]
fn client_asks_about_markers_when_they_are_probably_written() {
    let mut script = Script::newer();
    let slow = Duration::from_millis(5);
    let asked: Vec<_> = (0..4).map(|_| questions(&mut script, slow)).collect();
    assert_eq!(asked, [vec![1, 2, 4, 6], vec![3, 4, 6], vec![4, 5], vec![4, 5]]);
    let asked: Vec<_> = (0..5).map(|_| questions(&mut script, Duration::ZERO)).collect();
    assert_eq!(asked, [vec![4], vec![3], vec![2], vec![1], vec![0]]);
    assert_eq!(questions(&mut script, slow), [0, 1, 3, 5]);
    questions(&mut script, Duration::MAX);
    assert_eq!(questions(&mut script, slow)[0], 3, "one that takes very long is not what to expect");
}

#[test]
fn markers_that_take_too_long_do_not_hold_up_the_client() {
    let mut script = Script::newer();
    commit_and_begin(&mut script);
    let mut waited = Duration::ZERO;
    while !script.sends() {
        waited += script.wait();
        script.respond_state(ErrorCode::NONE, "PrepareCommit");
    }
    assert_eq!(waited, Duration::from_millis(134));
}

#[test]
fn coordinator_that_does_not_describe_transactions_is_not_asked_again() {
    for code in [ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode::NOT_COORDINATOR] {
        let mut script = Script::newer();
        commit_and_begin(&mut script);
        script.wait();
        script.respond_state(code, "");
        commit_and_begin(&mut script);
        assert_eq!(script.sends(), code == ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "{code:?}");
    }
    let mut script = Script::newer();
    commit_and_begin(&mut script);
    script.wait();
    script.lose(ApiKey::DescribeTransactions);
    assert!(script.sends(), "a lost response holds nothing up");
}

#[test]
fn aborted_transaction_that_waits_for_markers_sends_nothing() {
    let mut script = Script::newer();
    commit_and_begin(&mut script);
    assert_eq!(taken(script.abort()), Ok(()));
    script.acknowledge();
    script.begin();
    script.wait();
    script.respond_state(ErrorCode::NONE, "CompleteCommit");
    assert!(script.sends());
}

#[test]
fn commit_continues_when_the_last_message_is_reported() {
    let mut script = Script::newer();
    let producer = Arc::clone(&script.producer);
    assert!(producer.budget.try_charge(10));
    assert!(script.sends());
    let mut commit = script.commit();
    assert!(script.requests.is_empty() && is_waiting(&mut commit), "a message is in flight");
    producer.budget.release(1, 10);
    script.advance();
    assert!(script.asked_end().0.committed, "no thread of the application had to wake up");
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!((taken(commit), script.state()), (Ok(()), TransactionState::CommitNotAcked));
}

/// The thread of a sender has checked the state before the abort, and counts its batch afterwards.
#[test]
fn batch_that_leaves_while_an_abort_begins_is_aborted_at_the_coordinator() {
    let mut script = Script::newer();
    let producer = Arc::clone(&script.producer);
    assert!(producer.budget.try_charge(10));
    let mut abort = script.abort();
    assert!(script.requests.is_empty() && is_waiting(&mut abort), "a message is in flight");
    producer.transactions.as_ref().expect("it is transactional").note_batch();
    producer.budget.release(1, 10);
    script.advance();
    assert!(!script.asked_end().0.committed, "the batch has registered its partition");
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!((taken(abort), script.identity()), (Ok(()), Some(epoch(1))));
}

#[test]
fn newer_protocol_needs_the_feature_and_the_versions_of_all_brokers() {
    let features = |transaction_version, epoch, has_versions| TransactionFeatures {
        transaction_version,
        epoch,
        has_versions,
    };
    let rows: &[(&[TransactionFeatures], bool)] = &[
        (&[], false),
        (&[features(2, 1, true)], true),
        (&[features(1, 1, true)], false),
        (&[features(2, 1, false)], false),
        (&[features(2, 1, true), features(2, 1, false)], false),
        (&[features(2, 1, true), features(1, 2, true)], false),
        (&[features(1, 1, true), features(2, 2, true)], true),
    ];
    for (index, (brokers, expected)) in rows.iter().enumerate() {
        let mut script = Script::ready();
        for (key, features) in brokers.iter().enumerate() {
            script.part.handle_features(BrokerKey(key as u32), *features);
        }
        script.begin();
        assert_eq!(script.sends(), *expected, "row {index}");
    }
}

#[test]
fn downgrade_takes_effect_with_the_next_transaction() {
    let mut script = Script::newer();
    script.part.handle_features(BrokerKey(1), TransactionFeatures::default());
    assert!(script.sends(), "the transaction keeps its protocol");
    script.commit();
    assert_eq!(script.asked_end().1, 5);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    script.acknowledge();
    script.begin();
    // The raised epoch may be that of another instance, which has used it with the older protocol.
    assert_eq!((script.identity(), script.asked_identity()), (None, FIRST));
    assert!(!script.sends());
    script.respond_init(ErrorCode::NONE, epoch(1));
    assert!(!script.sends());
    script.respond_partitions(ErrorCode::NONE);
    assert!(script.sends());
}

#[test]
fn last_epoch_is_renewed_before_the_next_transaction() {
    let mut script = Script::newer();
    assert!(script.sends());
    let commit = script.commit();
    script.respond_end(ErrorCode::NONE, Some(epoch(i16::MAX)));
    assert_eq!(taken(commit), Ok(()));
    assert_eq!((script.identity(), script.asked_identity()), (None, epoch(i16::MAX)));
}

#[test]
fn late_offsets_do_not_decide_for_an_abort() {
    let mut script = Script::newer();
    assert!(script.sends());
    let offsets = script.send_offsets(Duration::from_secs(5));
    let abort = script.abort();
    assert!(taken(offsets).is_err_and(|error| !error.is_fatal()));
    script.respond_offsets(ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(script.state(), TransactionState::Aborting);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!((taken(abort), script.identity()), (Ok(()), Some(epoch(1))));
}

/// A producer that begins its first transaction after an upgrade of the cluster.
fn upgraded() -> Script {
    let mut script = Script::open();
    script.register();
    script.commit();
    script.respond_end(ErrorCode::NONE, None);
    script.acknowledge();
    let features = TransactionFeatures { transaction_version: 2, epoch: 5, has_versions: true };
    script.part.handle_features(BrokerKey(1), features);
    script.begin();
    script
}

#[test]
fn first_transaction_after_an_upgrade_gets_a_higher_epoch() {
    let mut script = upgraded();
    assert_eq!((script.identity(), script.asked_identity()), (None, FIRST));
    script.respond_init(ErrorCode::NONE, epoch(1));
    assert!(script.sends());
    script.commit();
    script.respond_end(ErrorCode::NONE, Some(epoch(2)));
    script.acknowledge();
    script.begin();
    assert!(script.requests.is_empty(), "the end has raised the epoch");
}

/// Without it, no message of a later transaction would be sent.
#[test]
fn renewal_survives_the_failure_of_its_transaction() {
    let mut script = upgraded();
    let failure = TransactionError::Abort(Error::new(ErrorKind::MessageTimedOutInQueue, ""));
    script.producer.transactions.as_ref().unwrap().note_failure(failure);
    script.advance();
    assert_eq!(script.state(), TransactionState::AbortableError);
    assert_eq!(taken(script.abort()), Ok(()));
    script.acknowledge();
    script.begin();
    assert_eq!(script.asked_identity(), FIRST);
    script.respond_init(ErrorCode::NONE, epoch(1));
    assert_eq!(script.identity(), Some(epoch(1)));
    assert!(script.sends());
}

#[test]
fn refused_newer_protocol_is_not_tried_again() {
    let mut script = Script::newer();
    let call = script.send_offsets(TIMEOUT);
    script.respond_offsets(ErrorCode::UNSUPPORTED_VERSION);
    assert!(taken(call).unwrap_err().requires_abort());
    script.abort();
    assert_eq!(script.asked_end().1, 5);
    script.respond_end(ErrorCode::UNSUPPORTED_VERSION, None);
    script.wait();
    assert_eq!(
        script.asked_end().1,
        4,
        "InitProducerId would abort the transaction, and fence its own producer"
    );
    script.respond_end(ErrorCode::NONE, None);
    script.respond_init(ErrorCode::NONE, epoch(1));
    script.acknowledge();
    script.begin();
    assert!(!script.sends(), "the cluster was downgraded");
}

#[test]
fn unregistered_transaction_ends_without_a_request() {
    for ends in [Script::commit, Script::abort] {
        let mut script = Script::open();
        assert_eq!(taken(ends(&mut script)), Ok(()));
        assert!(script.requests.is_empty());
        script.acknowledge();
        assert_eq!(script.state(), TransactionState::Ready);
    }
    let mut script = Script::open();
    script.sends();
    script.lose(ApiKey::AddPartitionsToTxn);
    script.abort();
    assert!(!script.asked_end().0.committed, "the coordinator may have registered the partition");
    // The request has not arrived: InitProducerId makes sure that it never counts.
    script.respond_end(ErrorCode::INVALID_TXN_STATE, None);
    assert_eq!(script.asked_identity(), FIRST);
    script.respond_init(ErrorCode::NONE, epoch(1));
    assert_eq!(script.state(), TransactionState::AbortNotAcked);
}

#[test]
fn lost_request_raises_the_epoch_before_the_next_transaction() {
    let mut script = Script::open();
    script.sends();
    script.lose(ApiKey::AddPartitionsToTxn);
    script.wait();
    script.respond_partitions(ErrorCode::NONE);
    let commit = script.commit();
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(taken(commit), Ok(()), "the commit does not wait for the epoch");
    assert_eq!((script.identity(), script.asked_identity()), (None, FIRST));
    script.acknowledge();
    script.begin();
    let (init, owner) = script.request(ApiKey::InitProducerId);
    assert!(!script.sends());
    assert!(script.requests.is_empty(), "nothing is registered under the old epoch");
    script.requests.push((init, owner));
    script.respond_init(ErrorCode::NONE, epoch(1));
    assert_eq!(script.identity(), Some(epoch(1)));
    script.respond_partitions(ErrorCode::NONE);
    assert!(script.sends());
}

#[test]
fn batch_of_unknown_outcome_raises_the_epoch_too() {
    let mut script = Script::open();
    script.register();
    script.producer.transactions.as_ref().unwrap().note_doubt();
    script.commit();
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(script.asked_identity(), FIRST);
}

#[test]
fn lost_commit_is_sent_again_until_its_outcome_is_known() {
    let mut script = Script::open();
    script.register();
    let mut commit = script.commit();
    for _ in 0..3 {
        script.lose(ApiKey::EndTxn);
        script.wait();
    }
    script.pass(TIMEOUT * 2);
    assert!(is_waiting(&mut commit));
    assert_eq!(script.state(), TransactionState::Committing, "whatever the time, it is not abortable");
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(taken(commit), Ok(()));
    assert_eq!(script.asked_identity(), FIRST, "the lost EndTxn may still arrive");
}

#[test]
fn commit_that_timed_out_continues_when_it_is_called_again() {
    let mut script = Script::open();
    script.register();
    drop(script.commit());
    let mut again = script.command(TransactionCommand::Commit);
    assert!(is_waiting(&mut again));
    drop(again);
    script.respond_end(ErrorCode::NONE, None);
    assert!(script.requests.is_empty(), "EndTxn was sent once");
    let third = script.command(TransactionCommand::Commit);
    assert_eq!(taken(third), Ok(()));
    let refused = taken(script.command(TransactionCommand::Begin)).unwrap_err();
    assert!(refused.to_string().contains("CommitNotAcked: call commit_transaction again"), "{refused}");
    script.acknowledge();
    script.begin();
}

#[test]
fn init_continues_until_the_previous_transaction_has_ended() {
    let mut script = Script::new();
    let mut init = script.command(TransactionCommand::Init);
    let mut waits = Vec::new();
    for _ in 0..12 {
        script.respond_init(ErrorCode::CONCURRENT_TRANSACTIONS, FIRST);
        waits.push(script.wait().as_millis());
    }
    assert!(waits[0] <= 3 && waits[3] >= 12 && waits[11] >= 800, "{waits:?}");
    assert!(waits[..9].iter().sum::<u128>() > 800, "ten requests in the first second: {waits:?}");
    assert!(is_waiting(&mut init));
    script.respond_init(ErrorCode::NONE, FIRST);
    assert_eq!(taken(init), Ok(()));
    assert_eq!(script.state(), TransactionState::ReadyNotAcked);
    let again = script.command(TransactionCommand::Init);
    assert_eq!(taken(again), Ok(()), "a call that timed out reports the result");
    script.acknowledge();
    let refused = taken(script.command(TransactionCommand::Init)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::State);
}

#[test]
fn commit_is_refused_if_a_message_failed() {
    let mut script = Script::open();
    script.register();
    let transactions = script.producer.transactions.clone().unwrap();
    transactions.note_report(8, None, true);
    transactions.note_report(2, Some(&Error::new(ErrorKind::PurgedFromQueue, "")), false);
    let failed = taken(script.commit()).unwrap_err();
    assert_eq!((failed.kind(), failed.requires_abort()), (ErrorKind::Inconsistent, true));
    assert!(failed.to_string().contains("2 of the transaction's 10 messages"), "{failed}");
    assert_eq!(script.state(), TransactionState::AbortableError);
    assert!(!script.sends(), "nothing is sent any more");
    let abort = script.abort();
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(taken(abort), Ok(()));
}

#[test]
fn transaction_warns_and_then_fails_before_the_coordinator_aborts_it() {
    let mut script = Script::open();
    script.pass(TIMEOUT * 2);
    assert_eq!(script.state(), TransactionState::InTransaction, "nothing is registered yet");
    script.register();
    assert_eq!(script.wait(), TIMEOUT * 4 / 5);
    let Some(Event::TransactionOverdue(overdue)) = script.events.pop() else { panic!("a warning") };
    assert_eq!((overdue.since, overdue.limit), (TIMEOUT * 4 / 5, TIMEOUT));
    assert_eq!(script.state(), TransactionState::InTransaction);
    script.wait();
    assert_eq!(script.state(), TransactionState::AbortableError);
    let failed = taken(script.command(TransactionCommand::Commit)).unwrap_err();
    assert_eq!((failed.kind(), failed.requires_abort()), (ErrorKind::TimedOut, true));
    script.abort();
    assert!(!script.asked_end().0.committed);
    // The coordinator was faster: it raised the epoch.
    script.respond_end(ErrorCode::INVALID_PRODUCER_EPOCH, None);
    assert_eq!(script.asked_identity(), FIRST);
    script.respond_init(ErrorCode::NONE, epoch(2));
    assert_eq!(script.state(), TransactionState::AbortNotAcked);
    script.acknowledge();
    script.begin();
}

/// A transaction of the newer protocol whose timeout has passed, and that has sent a batch.
fn late() -> Script {
    let mut script = Script::newer();
    script.register();
    script.wait();
    script.wait();
    assert_eq!(script.state(), TransactionState::AbortableError);
    script
}

#[test]
fn late_transaction_of_the_newer_protocol_is_aborted_before_its_timeout() {
    let mut script = late();
    assert!(!script.asked_end().0.committed);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!(script.state(), TransactionState::AbortableError, "the application must still abort");
    script.wait();
    script.respond_state(ErrorCode::NONE, "CompleteAbort");
    assert_eq!(script.part.poll_timeout(), None);
    script.pass(TIMEOUT * 2);
    assert_eq!(taken(script.abort()), Ok(()));
    assert!(script.requests.is_empty(), "nothing is left to abort");
    script.acknowledge();
    script.begin();
    script.register();
    script.commit();
    assert_eq!(script.asked_end().0.producer_epoch, 1);
}

#[test]
fn abort_waits_for_an_early_one() {
    let mut script = late();
    let aborted = script.abort();
    assert_eq!(script.requests.len(), 1);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!(taken(aborted), Ok(()));
    assert_eq!(script.state(), TransactionState::AbortNotAcked);
}

#[test]
fn refused_early_abort_is_decided_by_the_applications_abort() {
    let mut script = late();
    script.respond_end(ErrorCode::INVALID_TXN_STATE, None);
    assert_eq!(script.state(), TransactionState::AbortableError);
    script.abort();
    assert!(!script.asked_end().0.committed);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!(script.state(), TransactionState::AbortNotAcked);
}

#[test]
fn failed_transaction_is_aborted_before_its_timeout_too() {
    let mut script = Script::newer();
    script.register();
    let detail = Error::new(ErrorKind::MessageTooLarge, "");
    script.producer.transactions.as_ref().unwrap().note_failure(TransactionError::Abort(detail));
    script.advance();
    assert_eq!(script.state(), TransactionState::AbortableError);
    assert!(script.requests.is_empty());
    script.wait();
    assert!(!script.asked_end().0.committed);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!(taken(script.abort()), Ok(()));
}

#[test]
fn end_waits_for_requests_in_flight() {
    let mut script = Script::open();
    script.register();
    script.send_offsets(Duration::from_secs(1));
    script.respond_added(ErrorCode::NONE);
    let (request, owner) = script.request(ApiKey::TxnOffsetCommit);
    script.pass(Duration::from_secs(2));
    script.commit();
    assert!(script.requests.is_empty(), "the offsets could arrive after the end");
    script.requests.push((request, owner));
    script.respond_offsets(ErrorCode::NONE);
    assert!(script.asked_end().0.committed);
}

#[test]
fn renewal_starts_over_when_the_producer_id_has_expired() {
    let mut script = Script::open();
    script.register();
    script.producer.transactions.as_ref().unwrap().note_doubt();
    script.abort();
    script.respond_end(ErrorCode::NONE, None);
    assert_eq!(script.asked_identity(), FIRST);
    script.respond_init(ErrorCode::INVALID_PRODUCER_ID_MAPPING, FIRST);
    script.wait();
    assert_eq!(script.asked_identity(), ProducerIdentity { id: -1, epoch: -1 });
}

/// The coordinator may have committed it.
#[test]
fn failed_batch_does_not_decide_for_a_commit_that_was_sent() {
    let mut script = Script::newer();
    assert!(script.sends());
    let commit = script.commit();
    assert_eq!(script.state(), TransactionState::Committing);
    let refused = Error::broker(ErrorCode::INVALID_PRODUCER_EPOCH, None);
    script.producer.transactions.as_ref().unwrap().note_failure(TransactionError::Abort(refused));
    script.advance();
    assert_eq!(script.state(), TransactionState::Committing);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!(taken(commit), Ok(()));
}

/// A coordinator refuses a producer without an epoch left in this way, however often it asks.
#[test]
fn renewal_fails_when_the_producer_id_is_used_up() {
    let mut script = Script::open();
    script.register();
    script.producer.transactions.as_ref().unwrap().note_doubt();
    let abort = script.abort();
    script.respond_end(ErrorCode::NONE, None);
    for _ in 0..4 {
        script.respond_init(ErrorCode::UNKNOWN_SERVER_ERROR, FIRST);
        script.wait();
        assert_eq!(script.state(), TransactionState::Aborting);
    }
    script.respond_init(ErrorCode::UNKNOWN_SERVER_ERROR, FIRST);
    assert_eq!(script.state(), TransactionState::FatalError);
    let error = taken(abort).unwrap_err();
    assert!(error.is_fatal() && error.to_string().contains("create a new producer"), "{error}");
}

#[test]
fn commit_after_the_coordinators_timeout_requires_an_abort() {
    // The epoch shows that the response is about this transaction: nothing was committed.
    let mut script = Script::newer();
    script.register();
    let commit = script.commit();
    script.lose(ApiKey::EndTxn);
    script.wait();
    script.respond_end(ErrorCode::INVALID_TXN_STATE, None);
    let refused = taken(commit).unwrap_err();
    assert!(refused.requires_abort() && refused.to_string().contains("did not commit"), "{refused}");
    let abort = script.abort();
    assert!(!script.asked_end().0.committed);
    script.respond_end(ErrorCode::NONE, Some(epoch(1)));
    assert_eq!((taken(abort), script.identity()), (Ok(()), Some(epoch(1))));
}

#[test]
fn abort_after_a_downgrade_may_find_nothing_to_abort() {
    let mut script = Script::newer();
    script.register();
    let abort = script.abort();
    script.respond_end(ErrorCode::UNSUPPORTED_VERSION, None);
    script.wait();
    script.respond_end(ErrorCode::INVALID_TXN_STATE, None);
    script.respond_init(ErrorCode::NONE, epoch(1));
    assert_eq!((taken(abort), script.identity()), (Ok(()), Some(epoch(1))));
}
