//! What comes to a client's queues, and the application's functions that it is handed to.

use std::{
    ffi::{CString, c_int},
    sync::{Arc, Weak, atomic::Ordering},
    task::{Wake, Waker},
};

use ottla::{Event as ClientEvent, RecreatedTopic};

use super::{Client, Core};
use crate::{
    boundary::{Place, c_text, guarded_for, malloc_text, reach},
    codes::code,
    conf::ConsumeCb,
    error::code_of,
    message::rd_kafka_message_destroy,
    op::{Op, wants},
    queue::take_yield,
    time::Patience,
    types::event_type,
};

impl Client {
    /// Calls the callback that an entry is for. An entry that was not served to its end is answered.
    pub(crate) fn serve(&self, op: Op) -> Option<Op> {
        reach(Place::Serve, self);
        let callbacks = &self.conf.callbacks;
        match op {
            Op::Delivery(mut delivery) => {
                let is_done = match (callbacks.dr_msg, callbacks.dr) {
                    (Some(callback), _) => delivery.serve_message_callback(self, callback),
                    (None, Some(callback)) => delivery.serve_callback(self, callback),
                    (None, None) => true,
                };
                return (!is_done).then_some(Op::Delivery(delivery));
            }
            Op::Error { code, text, is_fatal } => match callbacks.error {
                Some(callback) => {
                    let text = c_text(&text);
                    // SAFETY: the application's function with a text that lives until it returns.
                    unsafe { callback(self, code, text.as_ptr(), self.conf.opaque.0) };
                }
                None => self.log(if is_fatal { 0 } else { 3 }, c"ERROR", &text),
            },
            Op::Log { level, facility, text, .. } => self.write_log(level, facility, &text),
            Op::Stats(json) => self.serve_stats(json),
            Op::Committed(committed) => self.serve_committed(&committed),
            Op::Throttle(throttle) => {
                if let Some(callback) = callbacks.throttle {
                    let node = throttle.node_id.unwrap_or(-1);
                    let name = c_text(&format!("{}/{}", throttle.broker, BrokerName(throttle.node_id)));
                    let millis = c_int::try_from(throttle.millis).unwrap_or(c_int::MAX);
                    // SAFETY: the application's function with a text that lives until it returns.
                    unsafe { callback(self, name.as_ptr(), node, millis, self.conf.opaque.0) };
                }
            }
            Op::Event(_) | Op::Message(_) => {}
        }
        None
    }

    /// Serves the main queue, and hands the messages that come to it, because it is forwarded to the consumer's, to the
    /// callback.
    fn serve_messages(&self, callback: ConsumeCb, timeout_ms: c_int) -> c_int {
        let mut served = self.main.serve(self, 0);
        let mut patience = Patience::new(if served > 0 { 0 } else { timeout_ms });
        while !self.is_closing()
            && let Some(message) = self.main.pop_message(self, &mut patience)
        {
            // SAFETY: the application's function, with a message that lives until it returns.
            unsafe {
                callback(message, self.conf.opaque.0);
                rd_kafka_message_destroy(message);
            }
            served += 1;
            if take_yield() {
                break;
            }
            patience = Patience::new(0);
        }
        served
    }

    /// Hands statistics to the application, which may keep the text and free it later.
    fn serve_stats(&self, json: CString) {
        let Some(callback) = self.conf.callbacks.stats else { return };
        let text = malloc_text(json.as_bytes());
        if text.is_null() {
            return;
        }
        // SAFETY: the application's function, with a text of `malloc` that ends with a zero byte.
        unsafe {
            if callback(self, text, json.as_bytes().len(), self.conf.opaque.0) == 0 {
                libc::free(text.cast());
            }
        }
    }

    /// Where statistics go, if the application wants them.
    pub(super) fn statistics_sink(&self) -> Option<impl Fn(ottla::Statistics) + Send + Sync + 'static> {
        let is_wanted = self.conf.callbacks.stats.is_some() || wants(self.conf.events, event_type::STATS);
        let me = Weak::clone(&self.me);
        is_wanted.then_some(move |mut statistics: ottla::Statistics| {
            if let Some(client) = me.upgrade().filter(|client| !client.is_closing()) {
                // The name is the one that rd_kafka_name() tells.
                statistics.name = client.name.to_string_lossy().into_owned();
                statistics.simple_cnt = client.simple_count.load(Ordering::Relaxed);
                client.main.push(Op::Stats(c_text(&statistics.to_json())));
            }
        })
    }

    /// Tells that a topic is not the one that it was.
    pub(crate) fn tell_recreated(&self, topic: &RecreatedTopic) {
        let RecreatedTopic { name, old_id, new_id } = topic;
        self.log(
            4,
            c"RECREATED",
            &format!("{name}: the topic was deleted and made anew (id {old_id}, now {new_id})"),
        );
    }

    /// Whether the application wants to be told of errors; otherwise they are logged.
    pub(crate) fn tells_errors(&self) -> bool {
        self.conf.callbacks.error.is_some() || wants(self.conf.events, event_type::ERROR)
    }

    /// Tells of an error that belongs to no call.
    pub(crate) fn error(&self, code: c_int, text: String) {
        if self.tells_errors() {
            self.main.push(Op::Error { code, text, is_fatal: false });
        } else {
            self.log(3, c"ERROR", &text);
        }
    }
}

/// Moves the client's events to its main queue as they come.
pub(super) struct EventWaker(pub(super) Weak<Client>);

impl EventWaker {
    pub(super) fn listen(self) {
        Arc::new(self).wake_by_ref();
    }
}

impl Wake for EventWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(client) = self.0.upgrade() else { return };
        let waker = Waker::from(Arc::clone(self));
        loop {
            let event = match client.core.get() {
                Some(Core::Producer(producer, _)) => producer.poll_event(),
                Some(Core::Consumer(consumer)) => consumer.poll_client_event(),
                None => None,
            };
            match event {
                Some(ClientEvent::Error(error)) => client.failed(&error),
                Some(ClientEvent::AllBrokersDown(error)) => {
                    client.error(code::_ALL_BROKERS_DOWN, error.to_string())
                }
                Some(ClientEvent::Fatal(error)) => {
                    client.set_fatal(code_of(&error), &error.to_string());
                }
                Some(ClientEvent::Throttled(throttle)) => {
                    if client.conf.callbacks.throttle.is_some() {
                        client.main.push(Op::Throttle(throttle));
                    }
                }
                Some(ClientEvent::TopicRecreated(topic)) => client.tell_recreated(&topic),
                Some(_) => {}
                None => {
                    // What came between the last look and this registration is seen by the next event; so look once more.
                    let is_empty = match client.core.get() {
                        Some(Core::Producer(producer, _)) => producer.register_events(&waker),
                        Some(Core::Consumer(consumer)) => consumer.register_events(&waker),
                        None => true,
                    };
                    if is_empty {
                        return;
                    }
                }
            }
        }
    }
}

/// A broker's id in its name; bootstrap servers have none.
struct BrokerName(Option<i32>);

impl std::fmt::Display for BrokerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(node) => write!(f, "{node}"),
            None => f.write_str("bootstrap"),
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_poll(rk: *const Client, timeout_ms: c_int) -> c_int {
    guarded_for(rk, 0, || {
        // SAFETY: NULL or a client, says the caller.
        unsafe { Client::of(rk) }.map_or(0, |client| {
            // A callback may destroy the client.
            let held = client.me.upgrade();
            let served = match client.conf.callbacks.consume {
                Some(callback) if client.is_consumer => client.serve_messages(callback, timeout_ms),
                _ => client.main.serve(client, timeout_ms),
            };
            drop(held);
            served
        })
    })
}
