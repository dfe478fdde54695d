//! Messages from a queue: one, as many as fit into an array, or by a callback.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
};

use crate::{
    client::{
        callbacks::ConsumeCb, handle::Client, queue::Queue, topic_conf::TopicConf, yielding::take_yield,
    },
    consume::message::{error_message, rd_kafka_message_destroy},
    ffi::{
        argument::Ref,
        codes::{RespErr, code},
        error::{fail, set_last},
        export,
        time::PollTimeout,
        types::rd_kafka_message_t,
    },
};

export!(
    #[each(rk, ptr::null_mut())]
    fn rd_kafka_consumer_poll(rk: Ref<Client>, timeout_ms: c_int) -> *mut rd_kafka_message_t {
        let Some(client) = rk.get() else { return ptr::null_mut() };
        match client.group_queue() {
            Some(queue) => one(queue, client, timeout_ms),
            None => {
                let text = "polling for messages needs a consumer with a `group.id`";
                error_message(code::_UNKNOWN_GROUP, text, None, 0, 0)
            }
        }
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_poll_set_consumer(rk: Ref<Client>) -> RespErr {
        let Some(client) = rk.get() else { return code::_INVALID_ARG };
        match client.group_queue() {
            Some(queue) => {
                client.main().forward(Some(Arc::clone(queue)));
                code::NO_ERROR
            }
            None => code::_UNKNOWN_GROUP,
        }
    }
);

pub(super) fn one(queue: &Arc<Queue>, client: &Client, timeout_ms: c_int) -> *mut rd_kafka_message_t {
    queue.pop_message(client, &mut PollTimeout::new(timeout_ms)).unwrap_or_else(|| {
        set_last(code::_TIMED_OUT);
        ptr::null_mut()
    })
}

/// Fills the application's array.
///
/// # Safety
///
/// `into` has `size` elements, or is NULL.
pub(super) unsafe fn batch(
    queue: &Arc<Queue>,
    client: &Client,
    timeout_ms: c_int,
    into: *mut *mut rd_kafka_message_t,
    size: usize,
) -> isize {
    if into.is_null() {
        return fail(code::_INVALID_ARG) as isize;
    }
    // SAFETY: by the contract of this function.
    let into = unsafe { std::slice::from_raw_parts_mut(into, size) };
    queue.pop_messages(client, &mut PollTimeout::new(timeout_ms), into, true) as isize
}

/// Passes messages to a callback until there are none, or until the maximum `of` is reached.
pub(super) fn callback(
    queue: &Arc<Queue>,
    client: &Client,
    of: &TopicConf,
    timeout_ms: c_int,
    consume_cb: Option<ConsumeCb>,
    opaque: *mut c_void,
) -> c_int {
    let Some(consume_cb) = consume_cb else { return fail(code::_INVALID_ARG) };
    // The callback may destroy the client.
    let _held = client.weak().upgrade();
    let most =
        of.raw.get("consume.callback.max.messages").ok().and_then(|most| most.parse().ok()).unwrap_or(0);
    let mut timeout = PollTimeout::new(timeout_ms);
    let (mut count, mut there) = (0, 0);
    while let Some(message) = queue.pop_message(client, &mut timeout) {
        if count == 0 {
            // On a busy topic there are always further messages: the call returns those that were available with the
            // first one.
            there = 1 + queue.len();
            timeout = PollTimeout::new(0);
        }
        // SAFETY: the application's function gets a message that lives until it returns.
        unsafe {
            consume_cb(message, opaque);
            rd_kafka_message_destroy(message);
        }
        count += 1;
        if count == most || count == there || take_yield() || client.is_closing() {
            break;
        }
    }
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

export!(
    #[on(rkqu, ptr::null_mut())]
    fn rd_kafka_consume_queue(rkqu: Ref<Queue>, timeout_ms: c_int) -> *mut rd_kafka_message_t {
        let queue = rkqu.counted();
        match queue.and_then(|queue| Some((queue.client()?, queue))) {
            Some((client, queue)) => one(&queue, &client, timeout_ms),
            None => ptr::null_mut(),
        }
    }
);

export!(
    #[on(rkqu, -1)]
    fn rd_kafka_consume_batch_queue(
        rkqu: Ref<Queue>,
        timeout_ms: c_int,
        rkmessages: *mut *mut rd_kafka_message_t,
        rkmessages_size: usize,
    ) -> isize {
        // SAFETY: the header demands NULL or a queue, and an array of that size.
        unsafe {
            let queue = rkqu.counted();
            match queue.and_then(|queue| Some((queue.client()?, queue))) {
                Some((client, queue)) => batch(&queue, &client, timeout_ms, rkmessages, rkmessages_size),
                None => fail(code::_INVALID_ARG) as isize,
            }
        }
    }
);

export!(
    #[on(rkqu, -1)]
    fn rd_kafka_consume_callback_queue(
        rkqu: Ref<Queue>,
        timeout_ms: c_int,
        consume_cb: Option<ConsumeCb>,
        opaque: *mut c_void,
    ) -> c_int {
        let queue = rkqu.counted();
        match queue.and_then(|queue| Some((queue.client()?, queue))) {
            Some((client, queue)) => {
                callback(&queue, &client, client.default_topic_conf(), timeout_ms, consume_cb, opaque)
            }
            None => fail(code::_INVALID_ARG),
        }
    }
);
