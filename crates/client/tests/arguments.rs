//! Arguments that no broker accepts, and the texts of their errors.

use std::{error::Error as _, time::Duration};

use ottla::{
    Admin, Config, Consumer, ErrorKind, GroupOffset, Offset, Producer, Record, SendBatchError, SendError,
    ShareConsumer, TransactionError,
};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(60);

fn started() -> (EmbeddedCluster, Config) {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    config.set("group.id", "g").unwrap();
    (cluster, config)
}

#[test]
fn negative_offset_is_not_committed() {
    let (_cluster, config) = started();
    let consumer = Consumer::new(&config).unwrap();
    let error = consumer.commit(&[GroupOffset::new("t", 0, -5)], SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("t [0]") && error.to_string().contains("-5"), "{error}");
    let committed = consumer.committed(&[("t", 0)], SOON).unwrap();
    assert!(committed.iter().all(|result| !format!("{result:?}").contains("-5")), "{committed:?}");
}

#[test]
fn record_with_a_negative_timestamp_is_refused_by_every_call() {
    let (_cluster, config) = started();
    let producer = Producer::new(&config).unwrap();
    let topic = producer.topic("t");
    let bad = || Record::new().value("v").timestamp(-2);
    let error = SendError::InvalidTimestamp(-2);
    assert_eq!(topic.send(bad()), Err(error.clone()));
    assert_eq!(topic.send_blocking(bad(), SOON), Err(error.clone()));
    assert_eq!(topic.send_tracked(bad()).map(drop), Err(error.clone()));
    assert_eq!(topic.deliver(bad(), SOON).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let records = [Record::new().value("v").timestamp(0), bad(), Record::new().value("v")];
    let refused = topic.send_batch(&records).unwrap_err();
    assert_eq!(refused, SendBatchError { taken: 1, error });
    producer.flush(SOON).unwrap();
    assert!(refused.source().is_none(), "its text contains the reason");
}

#[test]
fn invalid_name_does_not_fail_the_description_of_other_topics() {
    let (_cluster, config) = started();
    let admin = Admin::new(&config).unwrap();
    let topics = admin.describe_topics(&["t", "not a name", ""], SOON).unwrap();
    let kinds: Vec<_> =
        topics.iter().map(|topic| (&*topic.name, topic.error.as_ref().map(ottla::Error::kind))).collect();
    let invalid = Some(ErrorKind::InvalidArgument);
    assert_eq!(kinds, [("", invalid), ("not a name", invalid), ("t", None)]);
    let text = topics[0].error.as_ref().unwrap().to_string();
    assert!(text.starts_with("invalid argument"), "{text}");
}

#[test]
fn empty_topic_name_gives_errors_that_begin_with_a_word() {
    let (_cluster, config) = started();
    let errors = [
        Producer::new(&config).unwrap().topic("").deliver(Record::new().value("v"), SOON).unwrap_err(),
        Consumer::new(&config).unwrap().assign(&[("", 0, Offset::Beginning)]).unwrap_err(),
        Consumer::new(&config).unwrap().subscribe(&[""]).unwrap_err(),
        ShareConsumer::new(&config).unwrap().subscribe(&[""]).unwrap_err(),
        Admin::new(&config).unwrap().delete_topics(&[""], SOON).unwrap().remove(0).1.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let text = error.to_string();
        assert!(text.starts_with(|first: char| first.is_ascii_lowercase()), "{text:?}");
    }
}

#[test]
fn error_whose_text_contains_another_has_no_source() {
    let error = TransactionError::Fatal(ottla::Error::from(SendError::Closed));
    assert!(error.to_string().contains("the client is closed") && error.source().is_none());
}

#[test]
fn wrong_durations_are_refused_and_huge_ones_mean_the_beginning() {
    let (_cluster, mut config) = started();
    let most = format!("P{}D", u64::MAX);
    for text in ["-PT1H", "PT-1H", "P", "PT1", "1H", "", "P1M", &most] {
        let error = config.set("auto.offset.reset", &format!("by_duration:{text}")).expect_err(text);
        assert!(error.to_string().contains("auto.offset.reset"), "{error}");
    }
    config.set("auto.offset.reset", "by_duration:P99999999D").unwrap();
    Producer::new(&config).unwrap().deliver("t", Record::new().value("v").partition(0), SOON).unwrap();
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("t", 0, Offset::Committed)]).unwrap();
    let message = consumer.next(SOON).unwrap().expect("the first record");
    assert_eq!(message.offset(), 0);
}
