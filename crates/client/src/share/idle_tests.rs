//! Idle calls of a share consumer.

use std::time::Duration;

use crate::{
    ShareConsumer,
    idle::{abort, config, waiting},
};

#[test]
fn idle_calls_of_a_share_consumer_leave_no_waker_behind() {
    let consumer = ShareConsumer::new(&config(&[("group.id", "g")])).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    for _ in 0..100 {
        let _ = consumer.poll(Duration::ZERO);
        abort(consumer.poll_async());
    }
    assert_eq!(waiting(&*consumer.inner.shared), 0);
}
