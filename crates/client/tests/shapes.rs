//! Properties of the public types that the compiler checks.

use std::fmt::Debug;

use ottla::{
    Admin, AdminFuture, AdminOptions, ClusterDescription, Config, ConfigError, Consumer, ConsumerEvent,
    DeliverFuture, Delivery, DeliveryBatch, Error, Event, Message, MessageStream, NewTopic, Producer, Record,
    RecordMetadata, Records, SendBatchError, SendError, Statistics, Topic, TrySendError,
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn debug<T: Debug>() {}
fn error<T: std::error::Error>() {}
fn clone<T: Clone>() {}
fn movable<T: Unpin + 'static>() {}

macro_rules! all {
    ($check:ident: $($type:ty),* $(,)?) => { $($check::<$type>();)* };
}

#[test]
fn clients_and_their_values_may_be_shared_between_threads() {
    all!(send: Admin, Config, Consumer, Delivery, DeliverFuture<'_>, Message, MessageStream, Producer, Records, Topic);
    all!(sync: Admin, Config, Consumer, Delivery, DeliverFuture<'_>, Message, MessageStream, Producer, Records, Topic);
    all!(send: AdminFuture<()>, AdminOptions, ClusterDescription, DeliveryBatch, Event, ConsumerEvent, Statistics);
    all!(sync: AdminOptions, ClusterDescription, DeliveryBatch, Event, ConsumerEvent, Record<'_>, RecordMetadata);
    all!(clone: Admin, Config, Consumer, Message, MessageStream, NewTopic, Producer, Record<'_>, Topic);
    all!(movable: AdminFuture<()>, Delivery, DeliverFuture<'static>, MessageStream);
}

#[test]
fn errors_are_standard_errors_that_threads_may_share() {
    all!(error: Error, SendError, SendBatchError, TrySendError<'_>, ConfigError);
    all!(send: Error, SendError, SendBatchError, TrySendError<'_>, ConfigError);
    all!(sync: Error, SendError, SendBatchError, TrySendError<'_>, ConfigError);
}

#[test]
fn futures_of_calls_may_move_to_other_threads() {
    fn check<T: Send + 'static>(_: impl FnOnce(&Producer, &Consumer) -> T) {}
    check(|producer, _| producer.flush_async());
    check(|_, consumer| consumer.poll_async());
    check(|_, consumer| consumer.next_async());
    check(|_, consumer| consumer.commit_async(&[], std::time::Duration::ZERO));
    check(|_, consumer| consumer.committed_async(&[("t", 0)], std::time::Duration::ZERO));
    check(|_, consumer| consumer.seek_async("t", 0, ottla::Offset::Beginning));
    check(|_, consumer| consumer.list_offsets_async(&[], std::time::Duration::ZERO));
}

#[test]
fn debug_of_clients_shows_names_and_states() {
    all!(debug: Admin, AdminFuture<()>, DeliverFuture<'_>, Delivery, Records, Statistics);
    let mut config = Config::new();
    config.set("client.id", "shapes").unwrap();
    let producer = Producer::builder(&config).servers_later().build().unwrap();
    let shown = format!("{producer:?}");
    assert!(shown.contains("shapes#producer-") && shown.contains("in_queue: 0"), "{shown}");
    let topic = format!("{:?}", producer.topic("t"));
    assert!(topic.contains("\"t\"") && topic.contains("partitions: None"), "{topic}");
    let delivery = format!("{:?}", producer.topic("t").deliver_async(Record::new()));
    assert!(delivery.contains("waiting for room"), "{delivery}");
    let consumer = Consumer::builder(&config).servers_later().build().unwrap();
    consumer.assign(&[("t", 3, ottla::Offset::End)]).unwrap();
    let shown = format!("{consumer:?}");
    assert!(shown.contains("shapes#consumer-") && shown.contains("t [3]"), "{shown}");
    let builder = format!("{:?}", Producer::builder(&config));
    assert!(builder.contains("shapes") && builder.contains("on_delivery: false"), "{builder}");
}
