//! The functions of the interface that take a queue.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::{Arc, atomic::Ordering},
};

use super::{
    Queue, raw,
    state::{Notification, State},
};
use crate::{
    client::{callbacks::NotifyCb, contexts::Contexts, event::Event, handle::Client, yielding::ask_to_yield},
    ffi::{
        argument::Ref,
        boundary::{Opaque, handle},
        export,
    },
};

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_queue_new(rk: Ref<Client>) -> *const Queue {
        raw(rk.get().map(|client| {
            let queue = Queue::new();
            queue.set_client(client.object());
            client.adopt_queue(&queue);
            queue
        }))
    }
);

export!(
    #[on(queue, ())]
    fn rd_kafka_queue_destroy(queue: *const Queue) {
        // SAFETY: the header demands NULL or a queue; the caller gives up its reference.
        unsafe {
            let Some(given_up) = handle::<Queue>(queue) else { return };
            let one_less = |handles: usize| handles.checked_sub(1);
            let before = given_up.handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less);
            let Ok(before) = before else { return };
            let queue = Arc::from_raw(queue);
            if before == 1 && !queue.client().is_some_and(|client| client.serves(&queue)) {
                queue.end_waiting();
            }
        }
    }
);

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_queue_get_main(rk: Ref<Client>) -> *const Queue {
        raw(rk.get().map(|client| Arc::clone(client.main())))
    }
);

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_queue_get_consumer(rk: Ref<Client>) -> *const Queue {
        raw(rk.get().and_then(|client| client.group_queue().cloned()))
    }
);

export!(
    #[on(src, ())]
    fn rd_kafka_queue_forward(src: Ref<Queue>, dst: Ref<Queue>) {
        let Some(src) = src.counted() else { return };
        if let Some(client) = src.client() {
            let to = if dst.is_null() { "nowhere, and polled itself" } else { "another one" };
            client.debug(Contexts::QUEUE, c"FORWARD", || format!("A queue is forwarded to {to}"));
        }
        src.forward(dst.counted());
    }
);

export!(
    #[on(queue, 0)]
    fn rd_kafka_queue_length(queue: Ref<Queue>) -> usize {
        queue.counted().map_or(0, |queue| queue.len())
    }
);

export!(
    #[on(queue, ())]
    fn rd_kafka_queue_io_event_enable(queue: Ref<Queue>, fd: c_int, payload: *const c_void, size: usize) {
        // SAFETY: the header demands NULL or a queue, and bytes.
        unsafe {
            let Some(queue) = queue.counted() else { return };
            let bytes = crate::ffi::boundary::bytes(payload, size).unwrap_or_default();
            let io = (fd >= 0).then(|| (fd, bytes.into()));
            queue.end().state.with(Notification { io, callback: None }, State::set_notification);
        }
    }
);

export!(
    #[on(queue, ())]
    fn rd_kafka_queue_cb_event_enable(queue: Ref<Queue>, event_cb: Option<NotifyCb>, opaque: *mut c_void) {
        if let Some(queue) = queue.counted() {
            let callback = event_cb.map(|callback| (callback, Opaque(opaque)));
            queue.end().state.with(Notification { io: None, callback }, State::set_notification);
        }
    }
);

export!(
    #[on(queue, ())]
    fn rd_kafka_queue_yield(queue: Ref<Queue>) {
        if let Some(queue) = queue.counted() {
            queue.end().return_poll();
        }
    }
);

export!(
    #[on(queue, ptr::null_mut())]
    fn rd_kafka_queue_poll(queue: Ref<Queue>, timeout_ms: c_int) -> *mut Event {
        let Some(queue) = queue.counted() else { return ptr::null_mut() };
        let Some(client) = queue.client() else { return ptr::null_mut() };
        queue.pop_event(&client, timeout_ms).map_or(ptr::null_mut(), |event| Box::into_raw(Box::new(event)))
    }
);

export!(
    #[on(queue, 0)]
    fn rd_kafka_queue_poll_callback(queue: Ref<Queue>, timeout_ms: c_int) -> c_int {
        let Some(queue) = queue.counted() else { return 0 };
        queue.client().map_or(0, |client| queue.serve(&client, timeout_ms))
    }
);

export!(
    #[local(())]
    fn rd_kafka_yield(_rk: Ref<Client>) {
        ask_to_yield();
    }
);
