//! Idle calls of a producer.

use std::{sync::Arc, time::Duration};

use crate::{
    Producer, Record,
    idle::{abort, config, waiting},
};

#[test]
fn idle_calls_of_a_producer_leave_no_waker_behind() {
    let config = config(&[("queue.buffering.max.messages", "1"), ("drop.timeout.ms", "0")]);
    let producer = Producer::new(&config).unwrap();
    let topic = producer.topic("t");
    let delivery = topic.send_tracked(Record::new().value("v")).unwrap();
    let tracker = Arc::clone(&delivery.tracker);
    for _ in 0..100 {
        assert!(producer.flush(Duration::ZERO).is_err());
        assert!(producer.partition_count("t", Duration::ZERO).is_err());
        assert!(topic.send_blocking(Record::new().value("v"), Duration::ZERO).is_err());
        assert!(topic.deliver(Record::new().value("v"), Duration::ZERO).is_err());
        abort(producer.flush_async());
        abort(topic.send_async(Record::new().value("v")));
        abort(topic.deliver_async(Record::new().value("v")));
    }
    abort(delivery);
    let left = [waiting(&*topic.inner.shared.budget), waiting(&*topic.topic), waiting(&*tracker)];
    assert_eq!(left, [0; 3]);
}
