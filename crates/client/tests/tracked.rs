//! Messages that are processed out of order: what wakes a consumer at its limit, and messages that fail.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use ottla::{Config, Consumer, ErrorKind, Offset, Producer, Record, TrackedMessages};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(60);
const FOREVER: Duration = Duration::from_secs(1_000_000);

/// A consumer of the topic `t`, whose two partitions have five records each.
fn consumer() -> (EmbeddedCluster, Consumer) {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    cluster.control(|control| control.create_topic("t", 2, 1)).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    let producer = Producer::new(&config).unwrap();
    for number in 0..10 {
        producer.deliver("t", Record::new().value("v").partition(number % 2), SOON).unwrap();
    }
    producer.close(SOON).unwrap();
    config.set("group.id", "g").unwrap().set("enable.auto.offset.store", "false").unwrap();
    (cluster, Consumer::new(&config).unwrap())
}

/// Tells that a future is woken.
struct Woken(mpsc::Sender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

/// Waits for the next message, which the limit stops until `act` changes that. Returns its partition, or the error.
fn next_after(messages: &TrackedMessages, act: impl FnOnce()) -> Result<i32, ErrorKind> {
    let (sender, woken) = mpsc::channel();
    let waker = Waker::from(Arc::new(Woken(sender)));
    let mut next = pin!(messages.next_async());
    let mut poll = || next.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending(), "it is at its limit");
    act();
    loop {
        woken.recv_timeout(SOON).expect("it is woken");
        if let Poll::Ready(next) = poll() {
            return next.map(|message| message.partition()).map_err(|error| error.kind());
        }
    }
}

#[test]
fn close_wakes_a_consumer_at_its_limit() {
    let (_cluster, consumer) = consumer();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let messages = consumer.track_messages(2).unwrap();
    let _held = [messages.next(FOREVER).unwrap(), messages.next(FOREVER).unwrap()];
    let next = next_after(&messages, || consumer.close(SOON).unwrap());
    assert_eq!(next, Err(ErrorKind::Closed));
}

#[test]
fn partition_that_is_given_up_wakes_a_consumer_at_its_limit() {
    let (_cluster, consumer) = consumer();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let messages = consumer.track_messages(2).unwrap();
    let _held = [messages.next(FOREVER).unwrap(), messages.next(FOREVER).unwrap()];
    let next = next_after(&messages, || {
        consumer.incremental_assign(&[("t", 1, Offset::Beginning)]).unwrap();
        consumer.incremental_unassign(&[("t", 0)]).unwrap();
    });
    assert_eq!(next, Ok(1));
    consumer.close(SOON).unwrap();
}

#[test]
fn failed_message_comes_again_and_none_before_it_is_lost() {
    let (_cluster, consumer) = consumer();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let messages = consumer.track_messages(3).unwrap();
    let mut taken = (0..3).map(|_| messages.next(FOREVER).unwrap().unwrap());
    let (first, second, third) = (taken.next().unwrap(), taken.next().unwrap(), taken.next().unwrap());
    first.finish();
    // The failure of the third takes the partition back to the second, which is not finished either.
    drop(third);
    assert_eq!(messages.in_progress(), 0);
    second.finish();
    for offset in 1..5 {
        let message = messages.next(FOREVER).unwrap().unwrap();
        assert_eq!(message.offset(), offset);
        message.finish();
    }
    // More failures than the limit do not stop the consumer.
    consumer.seek("t", 0, Offset::At(0), SOON).unwrap();
    for _ in 0..10 {
        let failed = messages.next(FOREVER).unwrap().unwrap();
        assert_eq!(failed.offset(), 0);
    }
    consumer.close(SOON).unwrap();
}
