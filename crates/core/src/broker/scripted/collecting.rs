//! The guarantees of the collector, one scenario for each event that may interfere:
//!
//! | what | scenario |
//! |---|---|
//! | flush, close | `flush_sends_collected_records_at_once`, `closing_reports_collected_records_and_sends_nothing` |
//! | partitions reached | `enough_partitions_send_all_that_is_collected` |
//! | bytes reached | `enough_bytes_send_all_that_is_collected` |
//! | linger, late messages | `no_message_waits_longer_than_the_linger_and_a_late_one_goes_along` |
//! | oldest first | `a_request_that_can_not_take_all_takes_the_oldest` |
//! | in flight at send time | `batches_beyond_max_in_flight_stay_collected_and_leave_together` |
//! | throttled | `a_throttled_broker_is_left_alone_and_then_gets_all_in_one_request` |
//! | disconnected | `batches_of_a_disconnected_broker_leave_in_one_request_on_reconnect` |
//! | draining | `draining_partition_delays_no_other_and_leaves_once_drained` |
//! | moved | `a_partition_that_moves_while_collected_keeps_its_place_and_its_time` |
//! | retries | `retry_keeps_its_back_off_and_precedes_new_records`, `a_flush_does_not_shorten_a_back_off` |
//! | purge | `a_purge_leaves_nothing_to_send` |
//! | one slow partition | `a_partition_that_is_refused_again_and_again_does_not_slow_the_others` |
//! | reports | `written_batches_of_a_response_are_reported_in_one_step` |
//!
//! `transactions` has the scenarios of transactional producers.

use std::sync::atomic::Ordering;

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use super::{Request, Script, at, millis};
use crate::{
    contract::purge::Purge,
    error::ErrorKind,
    message::ToBroker,
    produce::{
        collector::Linger, message::ProduceMessage, report::PersistenceStatus, settings::ProducerSettings,
    },
};

fn settings(linger_ms: u64) -> ProducerSettings {
    ProducerSettings {
        linger: Linger::Broker(millis(linger_ms)),
        retry_backoff: millis(100),
        retry_backoff_max: millis(100),
        ..ProducerSettings::default()
    }
}

#[test]
fn flush_sends_collected_records_at_once() {
    let mut script = Script::new(3, settings(10_000));
    (0..3).for_each(|partition| script.send(partition, "x"));
    script.run_for(millis(50));
    script.assert_silent();
    script.shared.flushing.fetch_add(1, Ordering::SeqCst);
    script.messages(ToBroker::Produce(ProduceMessage::Flush));
    assert_eq!(script.request().partitions(), [0, 1, 2]);
    script.send(1, "y");
    // The partition's first batch is not acknowledged yet, and nothing else waits for the flush.
    script.assert_silent();
    assert_eq!(script.collector().sends_flush, 1);
}

#[test]
fn closing_reports_collected_records_and_sends_nothing() {
    let mut script = Script::new(2, settings(10_000));
    (0..2).for_each(|partition| script.send(partition, "x"));
    script.messages(ToBroker::Close);
    script.assert_silent();
    assert_eq!(script.statuses(), [PersistenceStatus::NotPersisted; 2]);
    assert_eq!(script.shared.queued_messages(), 0);
}

#[test]
fn enough_partitions_send_all_that_is_collected() {
    let mut script = Script::new(4, ProducerSettings { max_partitions: Some(3), ..settings(10_000) });
    (0..2).for_each(|partition| script.send(partition, "x"));
    script.assert_silent();
    script.send(1, "more of the same partition");
    script.assert_silent();
    script.send(3, "x");
    assert_eq!(script.request().partitions(), [0, 1, 3]);
    assert_eq!(script.collector().sends_partitions, 1);
}

#[test]
fn enough_bytes_send_all_that_is_collected() {
    let mut script = Script::new(4, ProducerSettings { max_bytes: Some(3000), ..settings(10_000) });
    let value = "x".repeat(1000);
    (0..2).for_each(|partition| script.send(partition, &value));
    script.assert_silent();
    script.send(2, &value);
    assert_eq!(script.request().partitions(), [0, 1, 2]);
    assert_eq!(script.collector().sends_bytes, 1);
    script.send(3, &value);
    script.assert_silent();
}

#[test]
fn no_message_waits_longer_than_the_linger_and_a_late_one_goes_along() {
    let mut script = Script::new(5, settings(20));
    script.run_until(at(100));
    script.send(0, "100");
    script.run_until(at(113));
    script.send(1, "113");
    script.run_until(at(119));
    script.send(2, "119");
    script.run_until(at(121));
    let request = script.request();
    assert_eq!((request.written_at, request.values()), (at(120), vec!["100", "113", "119"]));
    // The next window starts with its own first message, not where the last one ended.
    script.run_until(at(130));
    script.send(3, "130");
    script.run_until(at(200));
    assert_eq!(script.request().written_at, at(150));
    let wait = script.collector().wait;
    assert!(wait.max() <= 20_000, "{} us", wait.max());
}

#[test]
fn a_request_that_can_not_take_all_takes_the_oldest() {
    let mut script = Script::new(4, ProducerSettings { max_request_bytes: 2500, ..settings(20) });
    let value = |partition: i32| format!("{partition}{}", "x".repeat(1000));
    for (millis, partition) in [(100, 2), (101, 0), (102, 3), (103, 1)] {
        script.run_until(at(millis));
        script.send(partition, &value(partition));
    }
    script.run_until(at(120));
    let requests: Vec<_> = std::mem::take(&mut script.requests).iter().map(Request::partitions).collect();
    assert_eq!(requests, [[2, 0], [3, 1]], "the two oldest, then the others");
}

#[test]
fn batches_beyond_max_in_flight_stay_collected_and_leave_together() {
    let mut script = Script::new(5, ProducerSettings { max_in_flight: 1, ..settings(20) });
    script.run_until(at(100));
    script.send(0, "a");
    script.run_until(at(120));
    let first = script.request();
    for (millis, partition) in [(130, 3), (135, 1), (190, 2)] {
        script.run_until(at(millis));
        script.send(partition, "b");
    }
    script.run_until(at(195));
    script.assert_silent();
    script.accept(&first);
    let second = script.request();
    assert_eq!((second.written_at, second.partitions()), (at(195), vec![3, 1, 2]), "nobody lingers again");
    script.accept(&second);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted; 4]);
}

#[test]
fn a_throttled_broker_is_left_alone_and_then_gets_all_in_one_request() {
    let mut script = Script::new(4, ProducerSettings { max_partitions: Some(2), ..settings(20) });
    script.run_until(at(100));
    script.send(0, "a");
    script.run_until(at(120));
    let first = script.request();
    script.respond_to_produce(&first, 500, |_| ErrorCode::NONE);
    for (millis, partition) in [(130, 3), (135, 1), (200, 2)] {
        script.run_until(at(millis));
        script.send(partition, "b");
    }
    script.shared.flushing.fetch_add(1, Ordering::SeqCst);
    script.messages(ToBroker::Produce(ProduceMessage::Flush));
    script.run_until(at(619));
    script.assert_silent();
    script.run_until(at(620));
    assert_eq!(script.request().partitions(), [3, 1, 2]);
}

#[test]
fn batches_of_a_disconnected_broker_leave_in_one_request_on_reconnect() {
    let mut script = Script::new(3, settings(20));
    script.is_up = false;
    script.disconnect();
    for (millis, partition) in [(100, 2), (105, 0), (300, 1)] {
        script.run_until(at(millis));
        script.send(partition, "x");
    }
    script.run_until(at(2000));
    script.assert_silent();
    script.is_up = true;
    script.run_until(at(13_000));
    let request = script.request();
    assert_eq!(request.partitions(), [2, 0, 1]);
    script.accept(&request);
    assert_eq!(script.reported_messages(), 3);
}

#[test]
fn draining_partition_delays_no_other_and_leaves_once_drained() {
    let mut script = Script::new(3, settings(20));
    script.run_until(at(100));
    script.send(0, "first");
    script.run_until(at(120));
    let first = script.request();
    // Until the first batch is acknowledged a second one may not follow; that makes the partition the oldest for long.
    script.send(0, "second");
    script.run_until(at(150));
    script.send(1, "other");
    script.send(2, "other");
    script.run_until(at(180));
    let others = script.request();
    assert_eq!((others.written_at, others.partitions()), (at(170), vec![1, 2]));
    script.accept(&first);
    let second = script.request();
    assert_eq!((second.written_at, second.values()), (at(180), vec!["second"]), "it waited for long enough");
}

#[test]
fn a_partition_that_moves_while_collected_keeps_its_place_and_its_time() {
    let mut script = Script::new(3, settings(20));
    script.run_until(at(100));
    script.send(1, "moves");
    script.run_until(at(105));
    script.send(2, "stays");
    script.release(1);
    assert!(script.parked.contains_key(&1), "nothing is in flight, so it leaves at once");
    script.run_until(at(110));
    script.send(1, "while it is nobody's");
    script.run_until(at(115));
    // The same broker plays its next leader.
    script.adopt_all();
    script.run_until(at(124));
    let request = script.request();
    assert_eq!(request.written_at, at(120), "20 ms after the record came, wherever it was meanwhile");
    assert_eq!(request.values_of(1), ["moves", "while it is nobody's"]);
    assert_eq!(request.values_of(2), ["stays"]);
}

#[test]
fn a_partition_that_left_takes_nothing_of_the_window_along() {
    let mut script = Script::new(3, ProducerSettings { max_partitions: Some(3), ..settings(20) });
    script.run_until(at(100));
    script.send(0, "leaves");
    script.run_until(at(110));
    script.send(1, "stays");
    script.release(0);
    script.run_until(at(119));
    script.send(2, "stays");
    script.run_until(at(129));
    script.assert_silent();
    script.run_until(at(130));
    assert_eq!(script.request().partitions(), [1, 2]);
}

#[test]
fn retry_keeps_its_back_off_and_precedes_new_records() {
    let mut script = Script::new(2, ProducerSettings { idempotence: false, ..settings(20) });
    script.run_until(at(100));
    script.send(0, "old");
    script.run_until(at(120));
    let first = script.request();
    script.respond_to_produce(&first, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.send(0, "new");
    script.run_until(at(199));
    script.assert_silent();
    script.run_until(at(400));
    let requests = std::mem::take(&mut script.requests);
    let values: Vec<_> = requests.iter().map(Request::values).collect();
    assert_eq!(values, [["old"], ["new"]], "in two requests: a partition is in one only once");
    let retried_at = requests[0].written_at;
    assert!(retried_at >= at(200) && retried_at <= at(240), "{retried_at:?}");
    assert_eq!(requests[1].written_at, retried_at, "what is new lingered for long enough");
}

#[test]
fn a_flush_does_not_shorten_a_back_off() {
    let mut script = Script::new(2, settings(20));
    script.run_until(at(100));
    script.send(0, "refused");
    script.run_until(at(120));
    let first = script.request();
    script.respond_to_produce(&first, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.shared.flushing.fetch_add(1, Ordering::SeqCst);
    script.messages(ToBroker::Produce(ProduceMessage::Flush));
    script.send(1, "new");
    assert_eq!(script.request().values(), ["new"], "others are flushed meanwhile");
    script.run_until(at(199));
    script.assert_silent();
    script.run_until(at(241));
    assert_eq!(script.request().values(), ["refused"]);
}

#[test]
fn a_purge_leaves_nothing_to_send() {
    let mut script = Script::new(3, settings(20));
    script.run_until(at(100));
    (0..3).for_each(|partition| script.send(partition, "x"));
    script.messages(ToBroker::Produce(ProduceMessage::Purge(Purge::QUEUE)));
    assert!(script.errors().iter().all(|error| error.kind() == ErrorKind::PurgedFromQueue));
    assert_eq!(script.reported_messages(), 3);
    script.run_until(at(115));
    script.send(1, "after");
    script.run_until(at(134));
    script.assert_silent();
    script.run_until(at(200));
    let request = script.request();
    assert_eq!((request.written_at, request.values()), (at(135), vec!["after"]));
}

#[test]
fn a_partition_that_is_refused_again_and_again_does_not_slow_the_others() {
    const PARTITIONS: i32 = 100;
    let mut script = Script::new(PARTITIONS, settings(20));
    let mut delivered = 0;
    for round in 0..50u64 {
        let began = at(1000 + round * 40);
        script.run_until(began);
        (0..PARTITIONS).for_each(|partition| script.send(partition, "x"));
        script.run_until(began + millis(20));
        let requests = std::mem::take(&mut script.requests);
        let ours = |request: &&Request| request.partitions().len() > 1;
        let all = requests.iter().find(ours).expect("a request with the others");
        assert_eq!(all.written_at, began + millis(20), "round {round}");
        assert!(
            (0..PARTITIONS)
                .filter(|partition| *partition != 7)
                .eq(all.partitions().into_iter().filter(|p| *p != 7))
        );
        delivered += PARTITIONS as usize - 1;
        for request in &requests {
            assert_eq!(request.api, ApiKey::Produce);
            script.respond_to_produce(request, 0, |partition| match partition {
                7 => ErrorCode::NOT_ENOUGH_REPLICAS,
                _ => ErrorCode::NONE,
            });
        }
        assert_eq!(script.reported_messages(), delivered, "round {round}");
    }
}

#[test]
fn batches_refused_together_are_retried_in_one_request() {
    let mut script = Script::new(100, ProducerSettings { retry_backoff: millis(100), ..settings(20) });
    script.run_until(at(1000));
    (0..100).for_each(|partition| script.send(partition, "x"));
    script.run_until(at(1020));
    let request = script.request();
    script.respond_to_produce(&request, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.run_until(at(1099));
    script.assert_silent();
    script.run_until(at(1141));
    let again = script.request();
    assert_eq!(again.partitions().len(), 100);
    script.accept(&again);
    assert_eq!(script.reported_messages(), 100);
    script.run_until(at(2000));
    script.assert_silent();
}

#[test]
fn response_may_list_partitions_in_another_order_than_the_request() {
    let mut script = Script::new(4, settings(20));
    script.responds_backwards = true;
    (0..4).for_each(|partition| script.send(partition, "x"));
    script.run_until(at(2000));
    let request = script.request();
    script.respond_to_produce(&request, 0, |partition| match partition {
        2 => ErrorCode::INVALID_RECORD,
        _ => ErrorCode::NONE,
    });
    let reports = script.reports.0.lock();
    let failed: Vec<i32> =
        reports.iter().filter(|(_, error, ..)| error.is_some()).map(|(partition, ..)| *partition).collect();
    assert_eq!((reports.len(), failed), (4, vec![2]));
}

#[test]
fn shorter_topic_linger_wakes_a_sleeping_broker_actor() {
    let mut script = Script::new(3, settings(500));
    script.run_until(at(100));
    script.send(0, "by the broker's linger");
    script.run_until(at(110));
    let topic = script.shared.topic(super::TOPIC).0;
    script.shared.set_topic_linger(&topic, millis(5));
    script.send(1, "by the topic's");
    script.run_until(at(200));
    let request = script.request();
    assert_eq!((request.written_at, request.partitions()), (at(115), vec![1, 0]));
}

#[test]
fn written_batches_of_a_response_are_reported_in_one_step() {
    let mut script = Script::new(4, settings(5));
    (0..4).for_each(|partition| script.send(partition, "x"));
    script.run_for(millis(5));
    let request = script.request();
    let code_of = |partition| if partition == 1 { ErrorCode::INVALID_RECORD } else { ErrorCode::NONE };
    script.respond_to_produce(&request, 0, code_of);
    assert_eq!(*script.reports.2.lock(), [1, 3], "what failed is reported on its own");
    let partitions: Vec<_> = script.reports.0.lock().iter().map(|(partition, ..)| *partition).collect();
    assert_eq!(partitions, [1, 0, 2, 3]);
    assert_eq!(script.shared.queued_messages(), 0);
}
