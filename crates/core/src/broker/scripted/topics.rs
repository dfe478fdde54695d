//! Topics with their own settings share the broker's connection; requests are split only where these settings require
//! it.

use std::sync::Arc;

use ottla_protocol::{compress::Compression, error_code::ErrorCode};

use super::{Request, Script, at, millis};
use crate::{
    contract::purge::Purge,
    error::ErrorKind,
    produce::{
        acks::Acks, collector::Linger, message::ProduceMessage, order::QueueOrder, report::PersistenceStatus,
        settings::ProducerSettings, topic_settings::TopicSettings,
    },
};

fn settings() -> ProducerSettings {
    ProducerSettings { linger: Linger::Broker(millis(20)), idempotence: false, ..ProducerSettings::default() }
}

fn no_acks(settings: &mut TopicSettings) {
    settings.acks = Acks::None;
}

/// Returns `acks`, the timeout and the topics of each request.
fn reported(requests: &[Request]) -> Vec<(i16, i32, Vec<&str>)> {
    requests.iter().map(|request| (request.acks, request.timeout_ms, request.values())).collect()
}

fn requests(script: &mut Script) -> Vec<Request> {
    std::mem::take(&mut script.requests)
}

#[test]
fn topics_of_different_acks_or_request_timeouts_are_never_in_one_request() {
    let mut script = Script::new(2, settings());
    script.add_topic("none", no_acks);
    script.add_topic("hasty", |settings| settings.acks_timeout = millis(1500));
    script.add_topic("also-none", no_acks);
    script.run_until(at(100));
    for (topic, partition) in [("t", 0), ("none", 0), ("hasty", 0), ("t", 1), ("also-none", 0)] {
        script.send_to(topic, partition, &format!("{topic}{partition}"));
    }
    script.run_until(at(120));
    let requests = requests(&mut script);
    let expected = [
        (-1, 30_000, vec!["t0", "t1"]),
        (0, 30_000, vec!["also-none0", "none0"]),
        (-1, 1500, vec!["hasty0"]),
    ];
    let mut actual = reported(&requests);
    actual.iter_mut().for_each(|(_, _, values)| values.sort_unstable());
    assert_eq!(actual, expected, "oldest first, and each takes along what goes with it");
    assert!(requests.iter().all(|request| request.written_at == at(120)), "none waits for another one");
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted; 2], "without acks the request ends");
    for request in requests.iter().filter(|request| request.acks != 0) {
        script.accept(request);
    }
    assert_eq!(script.statuses()[2..], [PersistenceStatus::Persisted; 3]);
    assert_eq!((script.shared.queued_messages(), script.connects), (0, 1));
}

#[test]
fn leftovers_of_a_request_leave_for_its_reason_even_after_a_response() {
    for linger in [Linger::Broker(millis(10_000)), Linger::Partition(millis(10_000))] {
        let settings = ProducerSettings { linger, max_partitions: Some(3), max_in_flight: 1, ..settings() };
        let mut script = Script::new(2, settings);
        script.add_topic("leader", |settings| settings.acks = Acks::Leader);
        script.run_until(at(100));
        script.send(0, "a");
        script.send_to("leader", 0, "b");
        script.assert_silent();
        script.run_until(at(101));
        script.send(1, "c");
        let first = script.request();
        assert_eq!((first.acks, first.values()), (-1, vec!["a", "c"]), "{linger:?}");
        script.run_until(at(150));
        script.accept(&first);
        let second = script.request();
        assert_eq!((second.acks, second.values(), second.written_at), (1, vec!["b"], at(150)), "{linger:?}");
        assert_eq!(script.collector().sends_partitions, 2);
        script.accept(&second);
        script.send(0, "alone again");
        script.assert_silent();
    }
}

#[test]
fn records_time_out_by_their_own_topics_time() {
    let settings = ProducerSettings {
        topic: TopicSettings { message_timeout: Some(millis(2000)), ..TopicSettings::default() },
        ..settings()
    };
    let mut script = Script::new(1, settings);
    script.run_until(at(50));
    script.add_topic("hasty", |settings| settings.message_timeout = Some(millis(300)));
    script.add_topic("patient", |settings| settings.message_timeout = None);
    script.is_up = false;
    script.disconnect();
    script.run_until(at(100));
    for topic in ["t", "hasty", "patient"] {
        script.send_to(topic, 0, topic);
    }
    script.run_until(at(399));
    assert_eq!(script.errors(), []);
    script.run_until(at(430));
    let topics = |script: &Script| -> Vec<String> {
        let errors = script.errors();
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::MessageTimedOutInQueue));
        errors
            .iter()
            .map(|error| error.to_string().split(' ').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(topics(&script), ["hasty"]);
    script.run_until(at(2099));
    assert_eq!(topics(&script), ["hasty"]);
    script.run_until(at(2300));
    assert_eq!(topics(&script), ["hasty", "t"]);
    script.run_until(at(3_600_000));
    assert_eq!(topics(&script), ["hasty", "t"], "the last one has all the time");
    script.is_up = true;
    script.run_for(millis(20_000));
    let request = requests(&mut script).remove(0);
    assert_eq!(request.values(), ["patient"]);
}

#[test]
fn records_in_flight_time_out_by_their_own_topics_time() {
    let settings = ProducerSettings {
        topic: TopicSettings { message_timeout: None, ..TopicSettings::default() },
        ..settings()
    };
    let mut script = Script::new(1, settings);
    script.add_topic("hasty", |settings| settings.message_timeout = Some(millis(300)));
    script.run_until(at(100));
    script.send(0, "x");
    script.send_to("hasty", 0, "y");
    script.run_until(at(121));
    let request = script.request();
    assert_eq!(request.batches.len(), 2, "a message timeout keeps no partition out of a request");
    script.run_until(at(399));
    assert_eq!(script.errors(), []);
    script.run_until(at(430));
    let errors = script.errors();
    assert_eq!(
        errors.iter().map(crate::error::Error::kind).collect::<Vec<_>>(),
        [ErrorKind::MessageTimedOutInFlight]
    );
    assert!(errors[0].to_string().starts_with("hasty [0]"), "{}", errors[0]);
    script.accept(&request);
    assert_eq!(script.statuses(), [PersistenceStatus::PossiblyPersisted, PersistenceStatus::Persisted]);
}

#[test]
fn topic_compression_applies_to_split_batches_too() {
    let mut script = Script::new(1, settings());
    for (name, compression) in [("gzip", Compression::Gzip), ("zstd", Compression::Zstd)] {
        script.add_topic(name, |settings| {
            settings.compression = compression;
            settings.batch.sums_early = false;
        });
    }
    let value = "v".repeat(500);
    script.run_until(at(100));
    for topic in ["t", "gzip", "zstd"] {
        script.send_to(topic, 0, &value);
        script.send_to(topic, 0, &value);
    }
    script.run_until(at(120));
    let request = script.request();
    let codecs = |request: &Request| {
        let mut topics = request.topics.clone();
        topics.sort_by(|one, other| one.0.cmp(&other.0));
        topics
    };
    let expected = [
        ("gzip".to_owned(), Compression::Gzip),
        ("t".to_owned(), Compression::None),
        ("zstd".to_owned(), Compression::Zstd),
    ];
    assert_eq!(codecs(&request), expected);
    script.respond_to_produce(&request, 0, |_| ErrorCode::MESSAGE_TOO_LARGE);
    script.run_for(millis(500));
    let halves = script.request();
    assert_eq!(codecs(&halves), expected);
    assert_eq!(halves.values().len(), 3, "one record of each");
}

#[test]
fn a_purge_reports_the_records_of_all_topics_in_the_queue_and_in_flight() {
    let mut script = Script::new(1, ProducerSettings { max_in_flight: 1, ..settings() });
    script.add_topic("leader", |settings| settings.acks = Acks::Leader);
    script.run_until(at(100));
    script.send(0, "in flight");
    script.send_to("leader", 0, "behind it");
    script.run_until(at(121));
    assert_eq!(script.request().values(), ["in flight"]);
    assert_eq!(script.shared.queued_messages(), 2);
    script.messages(crate::message::ToBroker::Produce(ProduceMessage::Purge(Purge::ALL)));
    let kinds: Vec<_> = script.errors().iter().map(crate::error::Error::kind).collect();
    assert_eq!(kinds, [ErrorKind::PurgedFromQueue, ErrorKind::PurgedInFlight]);
    assert_eq!(script.shared.queued_messages(), 0);
}

fn by_value(settings: &mut TopicSettings) {
    settings.order = Some(Arc::new(QueueOrder::By(Box::new(|one, other| one.value.cmp(&other.value)))));
    settings.batch.max_records = 3;
}

#[test]
fn waiting_records_follow_the_topic_order_and_in_flight_ones_stay() {
    let newest = |settings: &mut TopicSettings| {
        by_value(settings);
        settings.order = Some(Arc::new(QueueOrder::NewestFirst));
    };
    for (idempotence, change, expected) in [
        (false, by_value as fn(&mut TopicSettings), ["a m z", "1 2 5", "0 7 9"]),
        (true, by_value, ["a m z", "1 2 5", "0 7 9"]),
        (false, newest, ["a z m", "7 1 9", "0 2 5"]),
    ] {
        let mut script = Script::new(1, ProducerSettings { max_in_flight: 1, idempotence, ..settings() });
        script.add_topic("ordered", change);
        script.run_until(at(100));
        for value in ["m", "z", "a"] {
            script.send_to("ordered", 0, value);
        }
        script.run_until(at(121));
        let first = script.request();
        assert_eq!(first.values().join(" "), expected[0]);
        for value in ["5", "2", "9", "1", "7"] {
            script.send_to("ordered", 0, value);
        }
        script.run_until(at(150));
        // A refused batch goes again as it was, before what came since.
        script.respond_to_produce(&first, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
        let again = script.request_after_back_off();
        assert_eq!(again.values(), first.values());
        script.accept(&again);
        let second = script.request();
        assert_eq!(second.values().join(" "), expected[1]);
        script.send_to("ordered", 0, "0");
        script.accept(&second);
        let third = script.request();
        assert_eq!(third.values().join(" "), expected[2]);
        script.accept(&third);
        assert_eq!(script.reported_messages(), 9);
        assert_eq!((script.shared.queued_messages(), script.shared.queued_bytes()), (0, 0));
    }
}

#[test]
fn records_of_an_ordered_topic_time_out_and_are_purged_each_once() {
    let mut script = Script::new(1, ProducerSettings { max_in_flight: 1, ..settings() });
    script.add_topic("sorted", |settings| {
        by_value(settings);
        settings.message_timeout = Some(millis(1000));
        settings.batch.max_age_nanos = 50_000_000;
    });
    script.run_until(at(100));
    for value in ["d", "b", "f", "a", "e", "c"] {
        script.send_to("sorted", 0, value);
    }
    script.run_until(at(600));
    assert_eq!(script.request().values(), ["a", "b", "d"], "what came until it was full");
    script.send_to("sorted", 0, "0");
    script.run_until(at(1300));
    let kinds: Vec<_> = script.errors().iter().map(crate::error::Error::kind).collect();
    assert!(kinds.contains(&ErrorKind::MessageTimedOutInFlight), "{kinds:?}");
    assert!(kinds.contains(&ErrorKind::MessageTimedOutInQueue), "{kinds:?}");
    assert_eq!(script.reported_messages(), 6);
    script.messages(crate::message::ToBroker::Produce(ProduceMessage::Purge(Purge::ALL)));
    assert_eq!(script.reported_messages(), 7);
    assert_eq!((script.shared.queued_messages(), script.shared.queued_bytes()), (0, 0));
}
