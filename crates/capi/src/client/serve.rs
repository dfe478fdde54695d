//! Serves the entries of a client's queues by the application's callbacks.

use std::{
    ffi::{CString, c_int},
    ptr,
    sync::{Arc, Weak, atomic::Ordering},
    task::{Wake, Waker},
};

use ottla_core::{
    error::ErrorKind,
    event::{CredentialsEvent, Event as ClientEvent, EventQueue, RecreatedTopic, TelemetryEvent},
    waiters::Waiter,
};

use crate::{
    client::{
        callbacks::ConsumeCb,
        contexts::Contexts,
        core::Core,
        handle::Client,
        op::{ErrorMessage, Op, wants},
        yielding::take_yield,
    },
    consume::message::rd_kafka_message_destroy,
    ffi::{
        argument::Ref,
        boundary::{c_text, malloc_text},
        codes::{RespErr, code},
        error::code_of,
        export,
        injection::{InjectionPoint, reach},
        lock::{Mutex, assert_none_held},
        time::PollTimeout,
        types::event_type,
    },
    produce::delivery::Served,
};

impl Client {
    /// Calls the callback for an entry. Returns an entry that was not served completely.
    pub(crate) fn serve(&self, op: Op) -> Option<Op> {
        assert_none_held("a callback");
        reach(InjectionPoint::Serve, self.as_c());
        let callbacks = &self.conf.callbacks;
        match op {
            Op::Delivery(mut delivery) => {
                let to =
                    Served { client: self.as_c(), opaque: self.conf.opaque, is_closing: &self.is_closing };
                let is_done = match (callbacks.dr_msg, callbacks.dr) {
                    (Some(callback), _) => delivery.serve_message_callback(&to, callback),
                    (None, Some(callback)) => delivery.serve_callback(&to, callback),
                    (None, None) => true,
                };
                return (!is_done).then_some(Op::Delivery(delivery));
            }
            Op::Error { code, text, .. } => match callbacks.error {
                Some(callback) => {
                    let text = c_text(&text);
                    // SAFETY: the application's function gets a text that lives until it returns.
                    unsafe { callback(self.as_c(), code, text.as_ptr(), self.conf.opaque.0) };
                }
                None => self.log(3, c"ERROR", &text),
            },
            Op::Log { level, facility, text, .. } => self.logging().write(level, facility, &text),
            Op::Stats(json) => self.serve_stats(json),
            Op::TokenRefresh(config) => {
                if let Some(callback) = callbacks.token_refresh {
                    let text = if config.is_empty() { ptr::null() } else { config.as_ptr() };
                    // SAFETY: the application's function gets a text that lives until it returns.
                    unsafe { callback(self.as_c(), text, self.conf.opaque.0) };
                }
            }
            Op::Committed(committed) => self.serve_committed(&committed),
            Op::Rebalance(rebalance) => self.serve_rebalance(&rebalance),
            Op::Throttle(throttle) => {
                if let Some(callback) = callbacks.throttle {
                    let node = throttle.node_id.unwrap_or(-1);
                    let name = c_text(&format!("{}/{}", throttle.broker, BrokerName(throttle.node_id)));
                    let millis = c_int::try_from(throttle.millis).unwrap_or(c_int::MAX);
                    // SAFETY: the application's function gets a text that lives until it returns.
                    unsafe { callback(self.as_c(), name.as_ptr(), node, millis, self.conf.opaque.0) };
                }
            }
            Op::Call(call) => (call.0)(),
            // An error that a poll of the consumer would return.
            Op::Message(message) => self.serve_error_message(&message),
            Op::Event(_) => {}
        }
        None
    }

    /// Passes an error of a partition or a group to the error callback.
    fn serve_error_message(&self, message: &ErrorMessage) {
        // SAFETY: the entry owns the message, whose payload is the text of an error.
        let message = unsafe { &*message.0 };
        if let Some(callback) = self.conf.callbacks.error
            && message.err.is_error()
            && message.err != code::_PARTITION_EOF
        {
            // SAFETY: the application's function gets a text that lives until it returns.
            unsafe { callback(self.as_c(), message.err, message.payload.cast(), self.conf.opaque.0) };
        }
    }

    /// Serves the main queue. Messages, which arrive there if the consumer's queue is forwarded to it, go to the
    /// consume callback.
    fn serve_messages(&self, callback: ConsumeCb, timeout_ms: c_int) -> c_int {
        let mut served = self.main.serve(self, 0);
        let mut timeout = PollTimeout::new(if served > 0 { 0 } else { timeout_ms });
        while !self.is_closing()
            && let Some(message) = self.main.pop_message(self, &mut timeout)
        {
            // SAFETY: the application's function gets a message that lives until it returns.
            unsafe {
                callback(message, self.conf.opaque.0);
                rd_kafka_message_destroy(message);
            }
            served += 1;
            if take_yield() {
                break;
            }
            timeout = PollTimeout::new(0);
        }
        served
    }

    /// Passes statistics to the application, which may keep the text and free it later.
    fn serve_stats(&self, json: CString) {
        let Some(callback) = self.conf.callbacks.stats else { return };
        let text = malloc_text(json.as_bytes());
        if text.is_null() {
            return;
        }
        // SAFETY: the application's function gets a text of `malloc` that ends with a zero byte.
        unsafe {
            if callback(self.as_c(), text, json.as_bytes().len(), self.conf.opaque.0) == 0 {
                libc::free(text.cast());
            }
        }
    }

    /// Returns the receiver of statistics, if the application requests them.
    pub(super) fn statistics_sink(
        &self,
    ) -> Option<impl Fn(ottla_core::stats::Statistics) + Send + Sync + 'static> {
        let is_requested = self.conf.callbacks.stats.is_some() || wants(self.conf.events, event_type::STATS);
        let me = Weak::clone(&self.me);
        is_requested.then_some(move |mut statistics: ottla_core::stats::Statistics| {
            if let Some(client) = me.upgrade().filter(|client| !client.is_closing()) {
                // The name is that of rd_kafka_name().
                statistics.name = client.name.to_string_lossy().into_owned();
                client.add_stored_offsets(&mut statistics);
                statistics.simple_cnt = client.simple_count.load(Ordering::Relaxed);
                client.main.push(Op::Stats(c_text(&statistics.to_json())));
            }
        })
    }

    /// Fills in the offsets that the application stored.
    fn add_stored_offsets(&self, statistics: &mut ottla_core::stats::Statistics) {
        let Some(consumer) = self.consumer() else { return };
        for (topic, of_topic) in &mut statistics.topics {
            for (number, partition) in &mut of_topic.partitions {
                if let Some((offset, leader_epoch, _)) = self.offsets().stored(consumer, topic, *number) {
                    partition.set_stored(offset, leader_epoch);
                }
            }
        }
    }

    /// Logs that a topic was deleted and recreated.
    pub(crate) fn report_recreated(&self, topic: &RecreatedTopic) {
        let RecreatedTopic { name, old_id, new_id } = topic;
        self.log(
            4,
            c"RECREATED",
            &format!("{name}: the topic was deleted and recreated (id {old_id}, now {new_id})"),
        );
    }

    /// Returns true if the application takes errors, by a callback or as events; otherwise they are logged.
    pub(crate) fn reports_errors(&self) -> bool {
        self.conf.callbacks.error.is_some() || wants(self.conf.events, event_type::ERROR)
    }

    /// Reports an error that belongs to no call.
    pub(crate) fn error(&self, code: RespErr, text: String) {
        if self.reports_errors() {
            self.main.push(Op::Error { code, text, is_fatal: false });
        } else {
            self.log(3, c"ERROR", &text);
        }
    }
}

/// Moves the client's events to its main queue as they arrive.
pub(super) struct EventWaker {
    client: Weak<Client>,
    waiter: Mutex<Waiter<EventQueue>>,
}

impl EventWaker {
    pub(super) fn listen(client: Weak<Client>) {
        Arc::new(Self { client, waiter: Mutex::default() }).wake_by_ref();
    }
}

impl Wake for EventWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(client) = self.client.upgrade() else { return };
        let waker = Waker::from(Arc::clone(self));
        loop {
            let event = match client.core.get() {
                Some(Core::Producer(producer, _)) => producer.poll_event(),
                Some(Core::Consumer(consumer)) => consumer.events().pop(),
                Some(Core::Share(consumer)) => consumer.events().pop(),
                None => None,
            };
            match event {
                // Programs match on this text for a missing token.
                Some(ClientEvent::Error(error))
                    if error.kind() == ErrorKind::Authentication && error.context().peer.is_none() =>
                {
                    client.error(code_of(&error), error.context().detail.clone());
                }
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
                Some(ClientEvent::TopicRecreated(topic)) => client.report_recreated(&topic),
                Some(ClientEvent::ClusterChanged(change)) => {
                    client.log(4, c"CLUSTERID", &change.to_string());
                }
                Some(ClientEvent::Telemetry(TelemetryEvent::Identified(id))) => {
                    client.debug(Contexts::TELEMETRY, c"GETSUBSCRIPTIONS", || {
                        format!("Client instance id is {id}")
                    });
                }
                Some(ClientEvent::Telemetry(news)) => client.log(4, c"TELEMETRY", &news.to_string()),
                Some(ClientEvent::Credentials(news)) => {
                    let level = if news == CredentialsEvent::Reloaded { 6 } else { 4 };
                    client.log(level, c"SSL", &news.to_string());
                }
                Some(_) => {}
                None => {
                    // An event between the last check and this registration would stay until the next one, so check
                    // once more.
                    let events = match client.core.get() {
                        Some(Core::Producer(producer, _)) => Some(producer.events()),
                        Some(Core::Consumer(consumer)) => Some(consumer.events()),
                        Some(Core::Share(consumer)) => Some(consumer.events()),
                        None => None,
                    };
                    let register = |events: &Arc<EventQueue>| {
                        let mut waiter = self.waiter.lock();
                        events.register(&mut waiter, &waker)
                    };
                    let is_empty = events.is_none_or(register);
                    if is_empty {
                        return;
                    }
                }
            }
        }
    }
}

/// Returns a broker's id from its name; bootstrap servers have none.
struct BrokerName(Option<i32>);

impl std::fmt::Display for BrokerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(node) => write!(f, "{node}"),
            None => f.write_str("bootstrap"),
        }
    }
}

export!(
    #[on(rk, 0)]
    fn rd_kafka_poll(rk: Ref<Client>, timeout_ms: c_int) -> c_int {
        rk.get().map_or(0, |client| {
            // A callback may destroy the client.
            let held = client.me.upgrade();
            let served = match client.conf.callbacks.consume {
                Some(callback) if !client.is_producer() => client.serve_messages(callback, timeout_ms),
                _ => client.main.serve(client, timeout_ms),
            };
            drop(held);
            served
        })
    }
);
