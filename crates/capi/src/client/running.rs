//! Starts the producer or consumer below a client's handle, and calls it for the handle's methods. `rd_kafka_new`
//! starts it, or an interceptor's first call before `rd_kafka_new` returns. A topic with a configuration of its own
//! shares the producer with all other topics.

use std::{
    ffi::{c_int, c_void},
    future::{Future, poll_fn},
    pin::pin,
    ptr,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Instant,
};

use ottla::{Admin, Config, Consumer, PassedCredentials, Producer, ShareConsumer};
use ottla_core::{
    config::{ConfigError, EffectiveConfig},
    contract::purge::Purge,
    error::{Error, ErrorKind},
    observer::Observer,
    produce::{
        order::{QueueOrder, QueuedRecord},
        partitioner::{PartitionChoice, Partitioner},
        report::DeliverySink,
    },
    stats::Statistics,
};

use crate::{
    client::{
        callbacks::{MsgOrderCmp, PartitionerCb},
        conf::below,
        contexts::Contexts,
        core::{ClientKind, Core, Producing},
        debug::{DebugObserver, Observers},
        handle::Client,
        intercept::AcknowledgementInterceptors,
        interceptor_observer::InterceptorObserver,
        interceptors::kind,
        op::wants,
        serve::EventWaker,
        topic::Topic,
        topic_conf::TopicConf,
    },
    consume::message::Held,
    ffi::{
        argument::Ref,
        boundary::Opaque,
        cancel::Uncancelled,
        codes::{RespErr, code},
        error::code_of,
        export,
        list::List,
        lock::assert_none_held,
        time::deadline,
        types::event_type,
    },
    group::rebalance::Sink,
    produce::{
        acknowledgements::Acknowledged,
        produced::{Kind, Produced},
        report::Reports,
    },
};

/// `RD_KAFKA_PURGE_F_NON_BLOCKING`.
const PURGE_NON_BLOCKING: c_int = 4;

/// Returns a builder with the functions of the application that all kinds of clients have.
macro_rules! hooked {
    ($client:expr, $builder:expr) => {{
        let mut builder = $builder.servers_later().credentials($client.credentials());
        if let Some(sink) = $client.statistics_sink() {
            builder = builder.on_statistics(sink);
        }
        if let Some(transport) = &$client.transport {
            builder = builder.transport(Arc::clone(transport) as _);
        }
        if let Some(notify) = $client.token_notification() {
            builder = builder.token_notification(notify);
        }
        if let Some(observer) = $client.observer() {
            builder = builder.observer(observer);
        }
        builder
    }};
}

impl Client {
    /// Returns the producer or consumer, which the first call starts.
    pub(super) fn core(&self) -> Result<&Core, Error> {
        if let Some(core) = self.core.get() {
            return Ok(core);
        }
        let (core, is_new) = self.start_core()?;
        if is_new {
            self.note_start(core);
        }
        Ok(core)
    }

    /// Returns the producer or consumer, and whether this call started it. One thread at a time starts it.
    fn start_core(&self) -> Result<(&Core, bool), Error> {
        let _starting = self.starting.lock();
        if let Some(core) = self.core.get() {
            return Ok((core, false));
        }
        let config = Config::from_raw(below(&self.raw.lock()));
        let core = match self.kind {
            ClientKind::Producer => {
                let (producer, reports) = self.start_producer(&config)?;
                Core::Producer(producer, reports)
            }
            ClientKind::Consumer => {
                let consumer = hooked!(self, Consumer::builder(&config)).build()?;
                consumer.group().set_sink(Arc::new(Sink(Weak::clone(&self.me))));
                Core::Consumer(consumer)
            }
            // Without a group there is nothing to consume: the functions of share consumers say so.
            ClientKind::ShareConsumer if config.get("group.id").is_none_or(|group| group.is_empty()) => {
                Core::Consumer(hooked!(self, Consumer::builder(&config)).build()?)
            }
            ClientKind::ShareConsumer => Core::Share(hooked!(self, ShareConsumer::builder(&config)).build()?),
        };
        // Wakers of its queues call functions of the application.
        match &core {
            Core::Producer(producer, _) => producer.handle(),
            Core::Consumer(consumer) => consumer.handle(),
            Core::Share(consumer) => consumer.handle(),
        }
        .calls_out();
        Ok((self.core.get_or_init(|| core), true))
    }

    /// Returns the certificates, the key and the callback that the application set in calls.
    fn credentials(&self) -> PassedCredentials {
        let callback = self.certificate_check.clone().map(|check| check as _);
        PassedCredentials { callback, ..self.conf.credentials.clone() }
    }

    /// Connects the client's events to its queues, and logs warnings about the configuration.
    fn note_start(&self, core: &Core) {
        EventWaker::listen(Weak::clone(&self.me));
        for warning in match core {
            Core::Producer(producer, _) => producer.warnings(),
            Core::Consumer(consumer) => consumer.warnings(),
            Core::Share(consumer) => consumer.warnings(),
        } {
            self.log(4, c"CONFWARN", warning);
        }
        if self.conf.has_lost_topic_properties {
            let line = "rd_kafka_conf_set_default_topic_conf replaced topic properties that were set in the client's \
                        configuration; set topic properties there only, or in the topic configuration only";
            self.log(4, c"CONFWARN", line);
        }
        for name in self.conf.deprecated_here() {
            self.log(4, c"CONFWARN", &format!("`{name}` is deprecated"));
        }
    }

    /// Returns the observer of the connections for interceptors and the debug log.
    fn observer(&self) -> Option<Arc<dyn Observer>> {
        let of_interceptors = self.observer_gates().map(|gates| {
            Arc::new(InterceptorObserver::new(self.weak(), Arc::clone(gates))) as Arc<dyn Observer>
        });
        let wants = self.log.wants(DebugObserver::CONTEXTS.or(Contexts::GENERIC));
        let of_debug =
            wants.then(|| Arc::new(DebugObserver::new(Arc::clone(&self.log))) as Arc<dyn Observer>);
        match (of_interceptors, of_debug) {
            (Some(of_interceptors), Some(of_debug)) => {
                Some(Arc::new(Observers(vec![of_interceptors, of_debug])))
            }
            (one, other) => one.or(other),
        }
    }

    fn start_producer(&self, config: &Config) -> Result<(Producer, Arc<Reports>), Error> {
        let partitioner =
            self.conf.topic.as_ref().and_then(|topic| topic.partitioner.map(|cb| (cb, topic.opaque)));
        let callbacks = &self.conf.callbacks;
        let wants_reports =
            callbacks.dr.is_some() || callbacks.dr_msg.is_some() || wants(self.conf.events, event_type::DR);
        let only_errors = config.raw().get("delivery.report.only.error").is_ok_and(|value| value == "true");
        let queue = wants_reports.then(|| Arc::clone(&self.main));
        let intercepted = self.interceptors.has(kind::SEND | kind::ACKNOWLEDGEMENT);
        let is_ordered = self.conf.topic.as_ref().is_some_and(|topic| topic.msg_order_cmp.is_some());
        let has_messages = wants_reports || partitioner.is_some() || is_ordered || intercepted;
        let interceptors = self
            .interceptors
            .has(kind::ACKNOWLEDGEMENT)
            .then(|| Arc::new(AcknowledgementInterceptors(self.weak())) as Arc<dyn Acknowledged>);
        let log = self.logging().wants(Contexts::MSG).then(|| Arc::clone(self.logging()));
        let is_noted = log.is_some();
        let reports = Arc::new(Reports::new(queue, only_errors, has_messages, interceptors, log));
        let sink: Arc<dyn DeliverySink> = Arc::clone(&reports) as _;
        let mut builder = hooked!(self, Producer::builder(config));
        if let Some((callback, opaque)) = partitioner {
            builder = builder.partitioner(application_partitioner(callback, opaque, None));
        }
        if has_messages || is_noted {
            builder = builder.sink(sink);
        }
        let producer = builder.build()?;
        reports.set_producer(Some(producer.clone()));
        Ok((producer, reports))
    }

    /// Starts the producer or consumer, which may call the application.
    pub(crate) fn ensure_started(&self) -> Result<(), RespErr> {
        let failed = |error: Error| {
            if error.kind() == ErrorKind::InvalidArgument { code::_INVALID_ARG } else { code_of(&error) }
        };
        self.core().map(drop).map_err(failed)
    }

    /// Returns the link from a topic to the producer of a client that has started. One thread at a time creates it for
    /// a topic.
    pub(crate) fn producing(&self, topic: &Topic) -> Result<Producing, RespErr> {
        let Some(Core::Producer(producer, reports)) = self.core.get() else {
            return Err(code::_INVALID_ARG);
        };
        let max_bytes = self.raw.lock().get("message.max.bytes").ok().and_then(|size| size.parse().ok());
        let has_messages = reports.has_messages();
        let conf = topic.conf();
        let mut builder = producer.topic_builder(topic.name()).any_name();
        if topic.has_own_conf() {
            builder = builder.config(conf.raw.clone());
            if let Some(callback) = conf.partitioner {
                // Records without messages carry the application's pointers themselves.
                let by_name = if has_messages { None } else { self.topic_if_any(topic.name()) };
                let asked = by_name.map(|topic| Arc::downgrade(&topic));
                builder = builder.partitioner(application_partitioner(callback, conf.opaque, asked));
            }
        }
        if let Some(compare) = conf.msg_order_cmp {
            builder = builder.order(application_order(compare, has_messages, topic));
        }
        Ok(Producing {
            topic: builder.build().map_err(|_| code::_INVALID_ARG)?,
            has_messages,
            max_bytes: max_bytes.unwrap_or(usize::MAX),
            asks_partitioner: conf.partitioner.is_some(),
        })
    }

    /// Returns the reason why a new topic of this client can't have this configuration; `None` if it can.
    pub(crate) fn check_topic_conf(&self, conf: &TopicConf) -> Result<(), ConfigError> {
        if !self.is_producer() {
            return Ok(());
        }
        EffectiveConfig::topic(&self.raw.lock().without_topics(), &conf.raw).map(drop)
    }

    /// Returns the counters; `None` if the I/O threads do not respond.
    pub(crate) fn statistics(&self) -> Option<Statistics> {
        match self.core().ok()? {
            Core::Producer(producer, _) => producer.statistics().ok(),
            Core::Consumer(consumer) => consumer.statistics().ok(),
            Core::Share(consumer) => consumer.statistics().ok(),
        }
    }

    /// Pauses or resumes producing to partitions. When it returns, no more messages of paused partitions are collected
    /// for brokers.
    pub(crate) fn hold_back(&self, list: &mut List, pause: bool) {
        let producer = match self.core() {
            Ok(Core::Producer(producer, _)) => Some(producer),
            _ => None,
        };
        for element in list.elements_mut() {
            element.err = if element.partition < 0 {
                code::_UNKNOWN_PARTITION
            } else if producer.is_none() {
                code::_ALL_BROKERS_DOWN
            } else {
                code::NO_ERROR
            };
        }
        let Some(producer) = producer else { return };
        let elements = list.elements().iter().filter(|element| element.err == code::NO_ERROR);
        let partitions: Vec<_> = elements.map(|element| (element.name(), element.partition)).collect();
        if pause {
            producer.pause(&partitions);
            // An actor that responds to this query has processed the pause before.
            drop(producer.statistics());
        } else {
            producer.resume(&partitions);
        }
    }

    /// Returns the consumer, if the client is one that has started.
    #[inline]
    pub(crate) fn consumer(&self) -> Option<&Consumer> {
        match self.core.get() {
            Some(Core::Consumer(consumer)) => Some(consumer),
            None if self.kind == ClientKind::Consumer => self.start_consumer(),
            _ => None,
        }
    }

    #[cold]
    fn start_consumer(&self) -> Option<&Consumer> {
        match self.core() {
            Ok(Core::Consumer(consumer)) => Some(consumer),
            _ => None,
        }
    }

    /// The share consumer, if this is one that has started.
    pub(crate) fn share_consumer(&self) -> Option<&ShareConsumer> {
        match self.core.get() {
            Some(Core::Share(consumer)) => Some(consumer),
            _ => None,
        }
    }

    /// An admin client on the client's own connections.
    pub(crate) fn admin(&self) -> Result<Admin, RespErr> {
        match self.core() {
            Ok(Core::Producer(producer, _)) => Ok(producer.admin()),
            Ok(Core::Consumer(consumer)) => Ok(consumer.admin()),
            Ok(Core::Share(consumer)) => Ok(consumer.admin()),
            Err(error) => Err(code_of(&error)),
        }
    }

    /// Returns the producer, if the client is one that has started and not ended.
    pub(crate) fn producer(&self) -> Option<&Producer> {
        match self.core.get() {
            Some(Core::Producer(producer, _)) if !self.is_closing() => Some(producer),
            _ => None,
        }
    }

    /// Returns the number of messages without a report that the application has seen, and of other entries in queues.
    fn out_queue_len(&self) -> usize {
        self.producer().map_or(0, Producer::in_queue)
    }

    /// Waits until the on_acknowledgement interceptors of all reports so far have returned.
    fn wait_for_acknowledgements(&self) {
        if let Some(Core::Producer(_, reports)) = self.core.get() {
            reports.wait_for_interceptors();
        }
    }

    fn flush(&self, timeout_ms: c_int) -> RespErr {
        let mut flush = self.producer().map(|producer| Box::pin(producer.flush_async()));
        let flushed = poll_fn(|context| {
            flush.take_if(|flush| Future::poll(flush.as_mut(), context).is_ready());
            if flush.is_none() && self.out_queue_len() == 0 { Poll::Ready(()) } else { Poll::Pending }
        });
        match self.wait_serving(flushed, deadline(timeout_ms.max(-1))) {
            Some(()) => code::NO_ERROR,
            None => code::_TIMED_OUT,
        }
    }

    /// Waits for a future, and meanwhile serves delivery reports unless they are events. The future is polled again
    /// after each. Returns `None` after the timeout.
    pub(crate) fn wait_serving<T>(
        &self,
        future: impl Future<Output = T>,
        until: Option<Instant>,
    ) -> Option<T> {
        self.wait_while(future, until, !wants(self.conf.events, event_type::DR))
    }

    /// Waits for a future, and serves the main queue by callbacks meanwhile. Returns `None` after the timeout.
    pub(crate) fn wait_with_callbacks<T>(
        &self,
        future: impl Future<Output = T>,
        until: Option<Instant>,
    ) -> Option<T> {
        self.wait_while(future, until, true)
    }

    /// Waits for a future, and calls no callback meanwhile. Returns `None` after the timeout.
    pub(crate) fn wait_quietly<T>(
        &self,
        future: impl Future<Output = T>,
        until: Option<Instant>,
    ) -> Option<T> {
        self.wait_while(future, until, false)
    }

    fn wait_while<T>(
        &self,
        future: impl Future<Output = T>,
        until: Option<Instant>,
        serves: bool,
    ) -> Option<T> {
        // A callback may destroy the client.
        let _held = self.me.upgrade();
        let mut future = pin!(future);
        let waker = self.main.waker();
        loop {
            let queue = self.main.end();
            let seen = queue.signals();
            if serves {
                self.main.serve(self, 0);
            }
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(output);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
            queue.wait_signal(seen, until);
        }
    }
}

/// The application's partitioner as one of the core. For records without messages, the opaque number is the
/// application's pointer, and all are records of `topic`.
fn application_partitioner(
    callback: PartitionerCb,
    opaque: Opaque,
    topic: Option<Weak<Topic>>,
) -> Partitioner {
    Partitioner::Custom(Box::new(move |choice: &PartitionChoice<'_>| {
        let opaque = opaque;
        let counted = topic.as_ref().map(Weak::upgrade);
        let (topic, msg_opaque) = match &counted {
            Some(topic) => {
                (topic.as_ref().map_or(ptr::null(), |topic| topic.as_c()), choice.opaque as *mut c_void)
            }
            // SAFETY: the number is the address of the message, which lives until its report.
            None => unsafe { Produced::of_number(choice.opaque).topic_and_opaque() },
        };
        let key = choice.key.unwrap_or_default();
        let at = if choice.key.is_some() { key.as_ptr().cast() } else { ptr::null() };
        let _uncancelled = Uncancelled::begin();
        assert_none_held("the partitioner");
        // SAFETY: the application's function gets a key that lives until it returns.
        unsafe { callback(topic, at, key.len(), choice.partition_count, opaque.0, msg_opaque) }
    }))
}

/// The application's message order as one of the core. For records without messages, temporary messages are passed.
fn application_order(compare: MsgOrderCmp, has_messages: bool, topic: &Topic) -> QueueOrder {
    let (client, name) = (topic.client().weak(), topic.name().to_owned());
    QueueOrder::By(Box::new(move |one: &QueuedRecord<'_>, other: &QueuedRecord<'_>| {
        let topic = if has_messages { None } else { client.upgrade() };
        let topic = topic.and_then(|client| client.topic_if_any(&name));
        let [one, other] = [one, other].map(|record| {
            let kind = if has_messages { Produced::of_number(record.opaque).kind() } else { Kind::None };
            let mut held = match kind {
                // SAFETY: the message lives until its report.
                Kind::Plain(plain) => unsafe {
                    Held::of_plain(plain, record.value, record.key, record.timestamp)
                },
                Kind::Whole(held) => {
                    // SAFETY: as above, and no other thread has it.
                    unsafe { (*held).message.partition = record.partition };
                    return (Some(held.cast_const()), None);
                }
                Kind::None => {
                    let rkt = topic.as_ref().map_or(ptr::null(), |topic| topic.as_c());
                    Held::of_record(rkt, record.value, record.key, record.opaque as *mut c_void)
                }
            };
            held.message.partition = record.partition;
            (None, Some(held))
        });
        let address_of = |(kept, shown): &(Option<*const Held>, Option<Held>)| {
            kept.or(shown.as_ref().map(ptr::from_ref)).map_or(ptr::null(), <*const Held>::cast)
        };
        assert_none_held("msg_order_cmp");
        // SAFETY: the application's function gets messages that live until it returns.
        unsafe { compare(address_of(&one), address_of(&other)) }.cmp(&0)
    }))
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_flush(rk: Ref<Client>, timeout_ms: c_int) -> RespErr {
        match rk.get() {
            Some(client) if client.is_producer() => client.flush(timeout_ms),
            Some(_) => code::_NOT_IMPLEMENTED,
            None => code::_INVALID_ARG,
        }
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_purge(rk: Ref<Client>, flags: c_int) -> RespErr {
        let Some(client) = rk.get() else { return code::_INVALID_ARG };
        if !client.is_producer() {
            return code::_NOT_IMPLEMENTED;
        }
        if flags & !7 != 0 {
            return code::_INVALID_ARG;
        }
        let what = match flags & 3 {
            0 => return code::NO_ERROR,
            1 => Purge::QUEUE,
            2 => Purge::IN_FLIGHT,
            _ => Purge::ALL,
        };
        let Some(producer) = client.producer() else { return code::NO_ERROR };
        client.debug(Contexts::QUEUE, c"PURGE", || {
            format!("Purging {what:?} of {} message(s)", producer.in_queue())
        });
        producer.purge(what);
        if flags & PURGE_NON_BLOCKING == 0 {
            // An actor that responds to this query has processed the purge before.
            let _ = producer.statistics();
            client.wait_for_acknowledgements();
        }
        code::NO_ERROR
    }
);

export!(
    #[on(rk, 0)]
    fn rd_kafka_outq_len(rk: Ref<Client>) -> c_int {
        let Some(client) = rk.get() else { return 0 };
        c_int::try_from(client.out_queue_len() + client.main.len_without_reports()).unwrap_or(c_int::MAX)
    }
);
