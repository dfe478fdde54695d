//! The older calls, which name a topic and a partition. They need no `group.id`.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    client::{
        callbacks::ConsumeCb,
        op::{ErrorMessage, Op},
        queue::Queue,
        topic::Topic,
    },
    consume::{
        message::error_message,
        offset_spec::offset_spec,
        poll::{batch, callback, one},
    },
    ffi::{
        argument::Ref,
        codes::code,
        error::{code_of, fail, set_last},
        export,
        types::{OFFSET_INVALID, OFFSET_STORED, rd_kafka_message_t},
    },
};

/// The time limit for the last commit of a consumer that is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts fetching a partition for the older calls.
fn start(rkt: Ref<'_, Topic>, partition: i32, offset: i64, to: Option<Arc<Queue>>) -> c_int {
    let (Some(topic), Some(from)) = (rkt.get(), offset_spec(offset)) else { return fail(code::_INVALID_ARG) };
    if partition < 0 {
        return fail(code::_UNKNOWN_PARTITION);
    }
    // Without an offset an assignment begins at the committed one; here it has to be named.
    if offset == OFFSET_INVALID {
        return fail(code::_INVALID_ARG);
    }
    let client = topic.client();
    // A poll of another client's queue returns messages of that client only.
    let is_its = |queue: &Arc<Queue>| queue.client().is_some_and(|owner| Arc::ptr_eq(&owner, client));
    if !to.as_ref().is_none_or(is_its) {
        return fail(code::_INVALID_ARG);
    }
    let Some(consumer) = client.consumer() else { return fail(code::_INVALID_ARG) };
    if consumer.assignment().iter().any(|key| *key.topic == *topic.name() && key.partition == partition) {
        return fail(code::_CONFLICT);
    }
    // When the topic was created, the client may not have had any brokers.
    topic.set_auto_offset_reset();
    let from = match client.start_offset_file(topic, partition, from) {
        None => {
            // An application that names an offset keeps its offsets elsewhere: nothing is committed for it.
            let interval = topic.auto_commit_interval().filter(|_| offset == OFFSET_STORED);
            client.offsets().begin_older(topic.name(), partition, interval);
            from
        }
        Some(Ok(from)) => from,
        Some(Err(text)) => {
            // Nothing is fetched, as after any other error of the partition that `auto.offset.reset` can't resolve.
            let (queue, _) = client.partition_queue(consumer, topic.name(), partition);
            queue.forward(to);
            let counted = client.topic(topic.name(), None).ok().map(Topic::object);
            let error = error_message(code::_AUTO_OFFSET_RESET, &text, counted, partition, OFFSET_INVALID);
            queue.push(Op::Message(ErrorMessage(error)));
            return 0;
        }
    };
    if let Err(error) = consumer.incremental_assign(&[(topic.name(), partition, from)]) {
        client.stop_offset_file(topic.name(), partition);
        client.offsets().end_older(topic.name(), partition);
        return fail(code_of(&error));
    }
    client.simple_count().fetch_add(1, Ordering::Relaxed);
    let (queue, _) = client.partition_queue(consumer, topic.name(), partition);
    queue.forward(to);
    0
}

export!(
    #[on(rkt, -1)]
    fn rd_kafka_consume_start(rkt: Ref<Topic>, partition: i32, offset: i64) -> c_int {
        start(rkt, partition, offset, None)
    }
);

export!(
    #[on(rkt, -1)]
    fn rd_kafka_consume_start_queue(rkt: Ref<Topic>, partition: i32, offset: i64, rkqu: Ref<Queue>) -> c_int {
        match rkqu.counted() {
            Some(queue) => start(rkt, partition, offset, Some(queue)),
            None => fail(code::_INVALID_ARG),
        }
    }
);

export!(
    #[on(rkt, -1)]
    fn rd_kafka_consume_stop(rkt: Ref<Topic>, partition: i32) -> c_int {
        let Some(topic) = rkt.get() else { return fail(code::_INVALID_ARG) };
        let client = topic.client();
        // A partition that was never started: no other is there in a producer.
        let Some(consumer) = client.consumer() else { return fail(code::_UNKNOWN_PARTITION) };
        client.stop_older(consumer, topic.name(), partition, CLOSE_TIMEOUT);
        client.stop_offset_file(topic.name(), partition);
        let result = consumer.incremental_unassign(&[(topic.name(), partition)]);
        client.offsets().forget(topic.name(), partition);
        client.offsets().forget_position(topic.name(), partition);
        let queue = client.partition_queues().lock().remove(&(topic.name().to_owned(), partition));
        if let Some(queue) = queue {
            queue.forward(None);
            queue.clear();
        }
        match result {
            Ok(()) => 0,
            Err(_) => fail(code::_UNKNOWN_PARTITION),
        }
    }
);

/// Returns the queue from which the older calls consume a partition.
fn started(rkt: Ref<'_, Topic>, partition: i32) -> Option<(&Topic, Arc<Queue>)> {
    let topic = rkt.get()?;
    let queues = topic.client().partition_queues().lock();
    let queue = queues.get(&(topic.name().to_owned(), partition)).cloned();
    drop(queues);
    if queue.is_none() {
        set_last(code::_UNKNOWN_PARTITION);
    }
    Some((topic, queue?))
}

export!(
    #[on(rkt, ptr::null_mut())]
    fn rd_kafka_consume(rkt: Ref<Topic>, partition: i32, timeout_ms: c_int) -> *mut rd_kafka_message_t {
        match started(rkt, partition) {
            Some((topic, queue)) => one(&queue, topic.client(), timeout_ms),
            None => ptr::null_mut(),
        }
    }
);

export!(
    #[on(rkt, -1)]
    fn rd_kafka_consume_batch(
        rkt: Ref<Topic>,
        partition: i32,
        timeout_ms: c_int,
        rkmessages: *mut *mut rd_kafka_message_t,
        rkmessages_size: usize,
    ) -> isize {
        let Some((topic, queue)) = started(rkt, partition) else { return -1 };
        // SAFETY: the header demands an array of that size.
        unsafe { batch(&queue, topic.client(), timeout_ms, rkmessages, rkmessages_size) }
    }
);

export!(
    #[on(rkt, -1)]
    fn rd_kafka_consume_callback(
        rkt: Ref<Topic>,
        partition: i32,
        timeout_ms: c_int,
        consume_cb: Option<ConsumeCb>,
        opaque: *mut c_void,
    ) -> c_int {
        match started(rkt, partition) {
            Some((topic, queue)) => {
                callback(&queue, topic.client(), topic.conf(), timeout_ms, consume_cb, opaque)
            }
            None => -1,
        }
    }
);
