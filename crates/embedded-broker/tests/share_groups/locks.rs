//! Acquired records: locks, acknowledgements and limits.

use ottla_embedded_broker::CoordinatorKey;
use ottla_protocol::generated::{end_txn::EndTxnRequest, init_producer_id::InitProducerIdRequest};

use super::*;

#[test]
fn records_stay_with_one_member_until_it_acknowledges() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 3);
    produce(&mut world, 0, 4);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    let got = a.fetch(&mut world);
    assert_eq!(got, Fetched { error: ErrorCode::NONE, acquired: vec![(0, 6, 1)], batches: vec![0, 3] });
    assert_eq!(b.acquired(&mut world), [], "all of it is a's");
    assert_eq!(start_offset(&mut world), (0, 7));

    // Record 1 is released, 2 is rejected, 3 is a gap; 6 stays.
    let types = [ACCEPT, RELEASE, REJECT, GAP, ACCEPT, RELEASE];
    assert_eq!(a.acknowledge(&mut world, &[(0, 5, &types)]), ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (1, 3), "what lies before the first record that isn't done is");
    let again = b.fetch(&mut world);
    assert_eq!((again.acquired, again.batches), (vec![(1, 1, 2), (5, 5, 2)], vec![0, 3]));
    assert_eq!(b.acknowledge(&mut world, &[(1, 1, &[ACCEPT]), (5, 5, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (6, 1));
    assert_eq!(a.acknowledge(&mut world, &[(6, 6, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (7, 0));
    assert_eq!(a.acknowledge(&mut world, &[(0, 6, &[ACCEPT])]), ErrorCode::NONE, "that was over anyhow");
}

#[test]
fn expired_lock_releases_records_up_to_the_delivery_limit() {
    let mut world = world(|options| options.delivery_count_limit = 2);
    produce(&mut world, 0, 3);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    world.pass(999 * MS);
    assert_eq!(b.acquired(&mut world), []);
    // `b` waits, and gets them when the locks of `a` expire.
    let request = b.request(&[], 5000, &[]);
    let id = world.send(b.connection, 2, &request);
    assert!(world.outputs.is_empty());
    world.pass(1 * MS);
    let response = world.respond::<ShareFetchRequest>(b.connection, 2, id).unwrap();
    assert_eq!(fetched(&response, 0).acquired, [(0, 2, 2)]);
    assert_eq!(response.acquisition_lock_timeout_ms, 1000);
    assert_eq!(
        a.acknowledge(&mut world, &[(0, 2, &[ACCEPT])]),
        ErrorCode::INVALID_RECORD_STATE,
        "they are b's"
    );
    assert_eq!(b.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(
        b.acknowledge(&mut world, &[(1, 1, &[RELEASE])]),
        ErrorCode::NONE,
        "for the second and last time"
    );
    assert_eq!(start_offset(&mut world), (2, 1));
    world.pass(1000 * MS);
    assert_eq!(start_offset(&mut world), (3, 0));
    assert_eq!(a.acquired(&mut world), [], "there was no third time");
}

#[test]
fn late_timer_does_not_extend_a_lock() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 3);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    world.pass_without_timeouts(999 * MS);
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::NONE);
    world.pass_without_timeouts(2 * MS);
    assert_eq!(a.acknowledge(&mut world, &[(1, 2, &[ACCEPT])]), ErrorCode::INVALID_RECORD_STATE);
    assert_eq!(a.acquired(&mut world), [(1, 2, 2)]);
}

#[test]
fn renewed_lock_lasts_from_its_renewal() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 2);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    a.acquired(&mut world);
    world.pass(600 * MS);
    let secret = a.acknowledge_in(&mut world, 1, false, &[(0, 0, &[RENEW])]);
    assert_eq!(
        secret.responses[0].partitions[0].error_code,
        ErrorCode::INVALID_REQUEST,
        "the request has to say it"
    );
    let renewed = a.acknowledge_in(&mut world, 2, true, &[(0, 0, &[RENEW])]);
    assert_eq!(renewed.responses[0].partitions[0].error_code, ErrorCode::NONE);
    assert_eq!(renewed.acquisition_lock_timeout_ms, 1000);
    world.pass(600 * MS);
    assert_eq!(b.acquired(&mut world), [(1, 1, 2)]);
    a.epoch = 3;
    let mut by_fetch = a.request(&[], 0, &[(0, &[(0, 0, &[RENEW])])]);
    by_fetch.is_renew_ack = true;
    let refused = a.call(&mut world, &by_fetch);
    assert_eq!(refused.error_code, ErrorCode::INVALID_REQUEST, "it must not fetch at the same time");
    (by_fetch.max_bytes, by_fetch.min_bytes, by_fetch.max_records) = (0, 0, 0);
    let response = a.call(&mut world, &by_fetch);
    assert_eq!((response.error_code, fetched(&response, 0).acquired), (ErrorCode::NONE, vec![]));
    assert_eq!(response.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);
    world.pass(600 * MS);
    assert_eq!(b.acquired(&mut world), []);
}

#[test]
fn acknowledgements_are_atomic_and_need_acquired_records() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 4);
    produce(&mut world, 0, 4);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    a.max_records = 4;
    assert_eq!(a.acquired(&mut world), [(0, 3, 1)]);
    assert_eq!(b.acquired(&mut world), [(4, 7, 1)]);
    for (batches, error) in [
        (&[(0, 0, &[ACCEPT][..]), (3, 4, &[ACCEPT])][..], ErrorCode::INVALID_RECORD_STATE),
        (&[(0, 8, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, i64::MAX, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(1, 0, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(i64::MAX, i64::MIN, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(i64::MIN, i64::MAX, &[ACCEPT, ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 2, &[ACCEPT]), (1, 3, &[RELEASE])], ErrorCode::INVALID_REQUEST),
        (&[(0, 2, &[ACCEPT]), (2, 3, &[RELEASE])], ErrorCode::INVALID_RECORD_STATE),
        (&[(2, 3, &[ACCEPT]), (0, 1, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[ACCEPT, ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 1, &[ACCEPT, ACCEPT, ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[5])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[-1])], ErrorCode::INVALID_REQUEST),
    ] {
        assert_eq!(a.acknowledge(&mut world, batches), error, "{batches:?}");
        assert_eq!(start_offset(&mut world), (0, 8), "{batches:?} was not done in part");
    }
    assert_eq!(a.acknowledge(&mut world, &[(0, 1, &[ACCEPT]), (2, 2, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(
        a.acknowledge(&mut world, &[(2, 2, &[ACCEPT])]),
        ErrorCode::INVALID_RECORD_STATE,
        "it was released"
    );
    assert_eq!(b.acquired(&mut world), [(2, 2, 2)]);
}

#[test]
fn acknowledgements_in_a_fetch_free_room_for_its_records() {
    let mut world = world(|options| options.partition_max_record_locks = 3);
    for _ in 0..5 {
        produce(&mut world, 0, 1);
    }
    let mut a = Session::new(&mut world, "a");
    let request = a.request(&[0], 0, &[]);
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(0, 2, 1)], "no more locks than allowed");
    assert_eq!(a.acquired(&mut world), []);
    let request = a.request(&[], 0, &[(0, &[(0, 1, &[ACCEPT]), (2, 2, &[RELEASE])])]);
    let response = a.call(&mut world, &request);
    assert_eq!(fetched(&response, 0).acquired, [(2, 2, 2), (3, 4, 1)]);
    assert_eq!(response.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);

    let request =
        a.request(&[], 0, &[(0, &[(0, 9, &[ACCEPT])]), (1, &[(0, 0, &[ACCEPT])]), (7, &[(0, 0, &[ACCEPT])])]);
    let partitions = a.call(&mut world, &request).responses.remove(0).partitions;
    let errors: Vec<_> = partitions.iter().map(|p| (p.partition_index, p.acknowledge_error_code)).collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(errors, [(0, ErrorCode::INVALID_REQUEST), (1, unknown), (7, unknown)]);
    let first = ShareFetchRequest { share_session_epoch: 0, ..request };
    assert_eq!(
        a.call(&mut world, &first).error_code,
        ErrorCode::INVALID_REQUEST,
        "nothing can be acknowledged yet"
    );
}

#[test]
fn last_batch_may_exceed_the_lock_limit() {
    let mut world = world(|options| options.partition_max_record_locks = 3);
    for records in [2, 8, 1] {
        produce(&mut world, 0, records);
    }
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 9, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(0, 6, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [], "three are still in flight");
    assert_eq!(a.acknowledge(&mut world, &[(7, 7, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(10, 10, 1)]);
}

#[test]
fn lock_limit_divides_batches_only_with_a_strict_limit() {
    let mut world = world(|options| options.partition_max_record_locks = 3);
    produce(&mut world, 0, 8);
    let mut a = Session::new(&mut world, "a");
    a.is_strict = true;
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(1, 2, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [], "the first one is still in flight");
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(3, 5, 1)]);
}

#[test]
fn released_part_of_a_divided_batch_is_acquired_again() {
    let mut world = world(|options| options.partition_max_record_locks = 3);
    produce(&mut world, 0, 8);
    let mut a = Session::new(&mut world, "a");
    a.is_strict = true;
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(0, 2, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(0, 2, 2)], "the window is full, but its records are available");
    assert_eq!(a.acquired(&mut world), []);
}

#[test]
fn whole_batches_may_exceed_max_records_unless_the_limit_is_strict() {
    let mut world = world(|_| ());
    for _ in 0..2 {
        produce(&mut world, 0, 10);
    }
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    (a.max_records, b.max_records, b.is_strict) = (3, 3, true);
    assert_eq!(a.acquired(&mut world), [(0, 9, 1)]);
    let strict = b.fetch(&mut world);
    assert_eq!((strict.acquired, strict.batches), (vec![(10, 12, 1)], vec![10]));
    assert_eq!(b.acquired(&mut world), [(13, 15, 1)], "acquiring continues within the batch");
    b.max_records = 0;
    assert_eq!(b.acquired(&mut world), []);
    b.max_records = i32::MAX;
    assert_eq!(b.acquired(&mut world), [(16, 19, 1)]);
}

#[test]
fn small_batches_are_returned_as_one_range_up_to_batch_size() {
    let mut world = world(|_| ());
    for _ in 0..5 {
        produce(&mut world, 0, 2);
    }
    let mut a = Session::new(&mut world, "a");
    let request = ShareFetchRequest { batch_size: 4, ..a.request(&[0], 0, &[]) };
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(0, 3, 1), (4, 7, 1), (8, 9, 1)]);
    let mut b = Session::new(&mut world, "b");
    produce(&mut world, 0, 2);
    let request = ShareFetchRequest { batch_size: i32::MIN, ..b.request(&[0], 0, &[]) };
    assert_eq!(fetched(&b.call(&mut world, &request), 0).acquired, [(10, 11, 1)]);
}

#[test]
fn records_of_a_compressed_batch_are_acknowledged_one_by_one() {
    let mut world = world(|_| ());
    let connection = world.open(1);
    let plain = Batch::of(6).value_size(1000).build();
    let mut body = Vec::new();
    let mut compressed = plain[..61].to_vec();
    body.extend_from_slice(&common::gzip(&plain[61..]));
    compressed.extend_from_slice(&body);
    common::seal(&mut compressed, 1);
    assert!(compressed.len() < 1000);
    assert_eq!(world.produce(connection, 0, compressed.clone()), (ErrorCode::NONE, 0));
    assert_eq!(world.produce(connection, 0, compressed.clone()), (ErrorCode::NONE, 6));
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    assert_eq!(a.acquired(&mut world), [(0, 11, 1)]);
    let types = [ACCEPT, RELEASE, ACCEPT, ACCEPT, RELEASE, RELEASE];
    assert_eq!(a.acknowledge(&mut world, &[(2, 7, &types), (9, 9, &[RELEASE])]), ErrorCode::NONE);
    let request = b.request(&[0], 0, &[]);
    let response = b.call(&mut world, &request);
    assert_eq!(fetched(&response, 0).acquired, [(3, 3, 2), (6, 7, 2), (9, 9, 2)]);
    assert_eq!(
        response.responses[0].partitions[0].records.len(),
        2 * compressed.len(),
        "both batches, as they are"
    );
}

#[test]
fn deleted_records_are_archived() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 5);
    produce(&mut world, 0, 5);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    a.max_records = 1;
    assert_eq!(a.acquired(&mut world), [(0, 4, 1)]);
    world.cluster.control().delete_records("t", 0, 7);
    assert_eq!(b.acquired(&mut world), [(7, 9, 1)]);
    assert_eq!(start_offset(&mut world), (7, 3));
    assert_eq!(a.acknowledge(&mut world, &[(0, 4, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), []);
    // Records after a truncation are new.
    world.cluster.control().truncate_log("t", 0, 0);
    produce(&mut world, 0, 2);
    let end = world.cluster.control().partition("t", 0).unwrap().log_end_offset;
    assert_eq!(a.acquired(&mut world), [(end - 2, end - 1, 1)]);
}

#[test]
fn records_of_transactions_are_delivered_by_isolation_level() {
    let mut world = world(|options| options.isolation_level = IsolationLevel::ReadCommitted);
    produce(&mut world, 0, 2);
    let connection = world.open(1);
    let init = InitProducerIdRequest {
        transactional_id: Some("id".to_owned()),
        transaction_timeout_ms: 1000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let coordinator = CoordinatorKey::Transaction("id");
    world.cluster.control().set_coordinator(coordinator, BrokerId(1));
    let producer_id = world.call(connection, 4, &init).producer_id;
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 1, 1)]);
    let mut epoch = 0;
    for committed in [false, true] {
        let mut batch = Batch::of(2).producer(producer_id, epoch, 0);
        batch.attributes = 0x10;
        let mut request = produce_request("t", 0, -1, batch.build());
        request.transactional_id = Some("id".to_owned());
        let response = world.call(connection, 12, &request);
        assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
        assert_eq!(a.acquired(&mut world), [], "an open transaction");
        let transactional_id = "id".to_owned();
        let end = EndTxnRequest { transactional_id, producer_id, producer_epoch: epoch, committed };
        epoch = world.call(connection, 5, &end).producer_epoch;
        world.pass(std::time::Duration::from_millis(100));
        let expected = if committed { vec![(5, 6, 1)] } else { vec![] };
        assert_eq!(a.acquired(&mut world), expected);
    }
    world.cluster.control().options().share_groups.isolation_level = IsolationLevel::ReadUncommitted;
    assert_eq!(a.acquired(&mut world), [], "skipped records stay skipped");
}

#[test]
fn batch_that_claims_billions_of_records_takes_little_memory() {
    let mut world = world(|options| options.partition_max_record_locks = i32::MAX);
    let mut claims = Batch::of(1).build();
    claims[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
    claims[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    common::seal(&mut claims, 0);
    let connection = world.open(1);
    let response = world.call(connection, 12, &produce_request("t", 0, -1, claims));
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    let mut a = Session::new(&mut world, "a");
    let last = i64::from(i32::MAX) - 1;
    assert_eq!(a.acquired(&mut world), [(0, last, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(5, last - 5, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(5, last - 5, 2)]);
}
