//! Idle calls of a consumer.

use std::{
    task::{Context, Waker},
    time::Duration,
};

use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

use super::tracked::TrackedWaits;
use crate::{
    Config, Consumer, Offset, Producer, RebalanceListener, Record,
    idle::{abort, config, waiting},
};

struct Listener;

impl RebalanceListener for Listener {}

#[test]
fn idle_calls_of_a_consumer_leave_no_waker_behind() {
    let config = config(&[("group.id", "g"), ("enable.auto.offset.store", "false")]);
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning), ("t", 1, Offset::Beginning)]).unwrap();
    let (tracked, rebalances) = (consumer.track_messages(1).unwrap(), consumer.rebalances());
    let mut stream = consumer.partition_stream("t", 1).unwrap();
    consumer.set_rebalance_listener(Listener);
    for _ in 0..100 {
        let _ = consumer.poll(Duration::ZERO);
        let _ = consumer.next(Duration::ZERO);
        let _ = tracked.next(Duration::ZERO);
        let _ = stream.next(Duration::ZERO);
        assert!(rebalances.next(Duration::ZERO).is_none());
        assert!(rebalances.next_event(Duration::ZERO).is_none());
        abort(consumer.poll_async());
        abort(consumer.next_async());
        abort(tracked.next_async());
        abort(rebalances.next_async());
    }
    drop(stream);
    let inner = &consumer.inner;
    let left =
        [waiting(&*inner.shared.queue), waiting(&*inner.events), waiting(&**inner.subscription.questions())];
    assert_eq!(left, [0; 3]);
}

#[test]
fn wait_at_the_limit_of_tracked_messages_does_not_count_as_polling() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    let forever = Duration::from_secs(1_000_000);
    Producer::new(&config).unwrap().deliver("t", Record::new().value("v").partition(0), forever).unwrap();
    config.set("enable.auto.offset.store", "false").unwrap();
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let messages = consumer.track_messages(1).unwrap();
    let held = messages.next(forever).unwrap().unwrap();
    let mut waits = TrackedWaits::default();
    let mut counts_as_polling = || {
        let polled = messages.inner.poll(&mut Context::from_waker(Waker::noop()), &mut waits);
        assert!(polled.is_pending(), "there is no second record");
        waits.records.blocked.is_some()
    };
    assert!(!counts_as_polling(), "it waits for the application");
    held.finish();
    assert!(counts_as_polling(), "it waits for records");
}
