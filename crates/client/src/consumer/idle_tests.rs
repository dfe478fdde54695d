//! Idle calls of a consumer.

use std::time::Duration;

use crate::{
    Consumer, Offset, RebalanceListener,
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
