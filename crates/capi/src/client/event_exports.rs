//! The functions of the interface that take an event.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

use crate::{
    admin::names,
    client::{event::Event, op::Op, topic::Topic},
    consume::event_message::take,
    ffi::{
        argument::{Buffer, Ref, RefMut},
        boundary::is_inherited,
        codes::{RespErr, code},
        error::describe,
        export,
        list::{self, List},
        quarantine,
        types::{event_type, rd_kafka_message_t, rd_kafka_topic_partition_t},
    },
};

export!(
    #[local(0)]
    fn rd_kafka_event_type(event: Ref<Event>) -> c_int {
        event.get().map_or(0, |event| event.kind)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_event_name(event: Ref<Event>) -> *const c_char {
        let name = match event.get().map_or(0, |event| event.kind) {
            0 => c"(NONE)",
            event_type::DR => c"DeliveryReport",
            event_type::FETCH => c"Fetch",
            event_type::LOG => c"Log",
            event_type::ERROR => c"Error",
            event_type::STATS => c"Stats",
            event_type::OAUTHBEARER_TOKEN_REFRESH => c"SaslOAuthBearerTokenRefresh",
            event_type::REBALANCE => c"Rebalance",
            event_type::OFFSET_COMMIT => c"OffsetCommit",
            kind => names::of_result(kind).unwrap_or(c"?unknown?"),
        };
        name.as_ptr()
    }
);

export!(
    #[local(())]
    fn rd_kafka_event_destroy(event: *mut Event) {
        // SAFETY: the header demands NULL or an event, whose ownership passes to this call. Its contents belong to the
        // client, so an event that a forked child inherited is not freed.
        unsafe {
            if !is_inherited(event) {
                quarantine::retire(event);
            }
        }
    }
);

/// Returns the next message of an event, which the application takes.
fn next_message(event: &mut Event) -> *const rd_kafka_message_t {
    match &mut event.op {
        Some(Op::Delivery(delivery)) => delivery.next(),
        Some(Op::Message(message)) if event.kind == event_type::FETCH => {
            let Some(untaken) = event.untaken.take() else { return ptr::null() };
            take(&untaken, message.0);
            message.0
        }
        _ => ptr::null(),
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_event_message_next(event: RefMut<Event>) -> *const rd_kafka_message_t {
        event.get().map_or(ptr::null(), next_message)
    }
);

export!(
    #[local(0)]
    fn rd_kafka_event_message_array(
        event: RefMut<Event>,
        messages: *mut *const rd_kafka_message_t,
        size: usize,
    ) -> usize {
        let Some(event) = event.get() else { return 0 };
        if messages.is_null() {
            return 0;
        }
        let mut count = 0;
        while count < size {
            let message = next_message(event);
            if message.is_null() {
                break;
            }
            // SAFETY: `count` is less than the array's size.
            unsafe { *messages.add(count) = message };
            count += 1;
        }
        count
    }
);

export!(
    #[local(0)]
    fn rd_kafka_event_message_count(event: Ref<Event>) -> usize {
        match event.get().and_then(|event| event.op.as_ref()) {
            Some(Op::Delivery(delivery)) => delivery.len_not_shown(),
            Some(Op::Message(_)) => 1,
            _ => 0,
        }
    }
);

export!(
    #[local(code::NO_ERROR)]
    fn rd_kafka_event_error(event: Ref<Event>) -> RespErr {
        event.get().map_or(code::NO_ERROR, |event| event.code)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_event_error_string(event: Ref<Event>) -> *const c_char {
        let text = match event.get() {
            Some(event) if event.code.is_error() && !event.text.is_empty() => &event.text,
            // Programs print the text without checking the code.
            event => describe(event.map_or(code::NO_ERROR, |event| event.code)),
        };
        text.as_ptr()
    }
);

export!(
    #[local(0)]
    fn rd_kafka_event_error_is_fatal(event: Ref<Event>) -> c_int {
        event.get().map_or(0, |event| event.is_fatal.into())
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_event_opaque(event: Ref<Event>) -> *mut c_void {
        event.get().map_or(ptr::null_mut(), |event| event.opaque.0)
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_event_log(
        event: Ref<Event>,
        fac: *mut *const c_char,
        text: *mut *const c_char,
        level: *mut c_int,
    ) -> c_int {
        // SAFETY: the header demands NULL or an event, and writable addresses or NULL.
        unsafe {
            let Some(event) = event.get() else { return -1 };
            let Some((is, _, facility)) = event.log else { return -1 };
            if !fac.is_null() {
                *fac = facility.as_ptr();
            }
            if !text.is_null() {
                *text = event.text.as_ptr();
            }
            if !level.is_null() {
                *level = is;
            }
            0
        }
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_event_stats(event: Ref<Event>) -> *const c_char {
        match event.get().and_then(|event| event.op.as_ref()) {
            Some(Op::Stats(json)) => json.as_ptr(),
            _ => ptr::null(),
        }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_event_topic_partition_list(event: Ref<Event>) -> *mut List {
        match event.get().and_then(|event| event.op.as_ref()) {
            Some(Op::Committed(committed)) => committed.list.as_ptr(),
            Some(Op::Rebalance(rebalance)) => rebalance.list.as_ptr(),
            _ => ptr::null_mut(),
        }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_event_topic_partition(event: Ref<Event>) -> *mut rd_kafka_topic_partition_t {
        // SAFETY: the header demands NULL or an event.
        match event.get().and_then(|event| event.op.as_ref()) {
            Some(Op::Message(message)) => {
                // SAFETY: the event owns the message.
                let message = unsafe { &*message.0 };
                Topic::of_message(message).map_or(ptr::null_mut(), |topic| {
                    list::alone(topic.name(), message.partition, message.offset, message.err)
                })
            }
            _ => ptr::null_mut(),
        }
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_event_debug_contexts(event: Ref<Event>, dst: Buffer, dstsize: usize) -> c_int {
        match event.get().and_then(|event| event.log) {
            Some((_, contexts, _)) => {
                dst.put(dstsize, &contexts.names());
                0
            }
            None => -1,
        }
    }
);
