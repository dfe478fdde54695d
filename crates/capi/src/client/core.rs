//! What runs below a client's handle: a producer or a consumer of `ottla`, started when there are brokers to start from, and
//! the producers of topics that have a configuration of their own.

use std::{
    ffi::c_int,
    ptr,
    sync::{Arc, Weak},
    task::Context,
    time::Instant,
};

use ottla::{
    Admin, Config, Consumer, DeliverySink, Error, ErrorKind, PartitionChoice, Partitioner, Producer, Purge,
};

use super::{Client, serve::EventWaker};
use crate::{
    boundary::{Opaque, guarded_for},
    codes::code,
    conf::{PartitionerCb, below},
    error::code_of,
    interceptors::kind,
    message::Held,
    op::wants,
    report::Reports,
    time::deadline,
    topic::Topic,
    types::event_type,
};

pub(super) enum Core {
    Producer(Producer, Arc<Reports>),
    Consumer(Consumer),
}

/// The way of a topic's messages to their producer.
#[derive(Debug)]
pub(crate) struct Producing {
    pub(crate) topic: ottla::Topic,
    /// Each message has a `Held`.
    pub(crate) has_messages: bool,
    /// A message with more bytes than this is refused anyway: nothing is copied before.
    pub(crate) max_bytes: usize,
    /// The application chooses the partitions, in a function that may call the library.
    pub(crate) asks_partitioner: bool,
}

/// `RD_KAFKA_PURGE_F_NON_BLOCKING`.
const PURGE_NON_BLOCKING: c_int = 4;

impl Client {
    /// What runs, started when there are brokers to start from.
    pub(super) fn core(&self) -> Result<&Core, Error> {
        if let Some(core) = self.core.get() {
            return Ok(core);
        }
        let _starting = self.starting.lock();
        if let Some(core) = self.core.get() {
            return Ok(core);
        }
        let config = Config::from_raw(below(&self.raw.lock()));
        let core = if self.is_consumer {
            let mut builder = Consumer::builder(&config);
            if let Some(sink) = self.statistics_sink() {
                builder = builder.on_statistics(sink);
            }
            if let Some(transport) = &self.transport {
                builder = builder.transport(Arc::clone(transport) as _);
            }
            if let Some(witness) = self.witness() {
                builder = builder.observer(Arc::clone(witness) as _);
            }
            Core::Consumer(builder.build()?)
        } else {
            let partitioner =
                self.conf.topic.as_ref().and_then(|topic| topic.partitioner.map(|cb| (cb, topic.opaque)));
            let (producer, reports) =
                self.start_producer(&config, partitioner.is_some(), |mut builder| {
                    if let Some(sink) = self.statistics_sink() {
                        builder = builder.on_statistics(sink);
                    }
                    match partitioner {
                        Some((callback, opaque)) => {
                            builder.partitioner(application_partitioner(callback, opaque))
                        }
                        None => builder,
                    }
                })?;
            Core::Producer(producer, reports)
        };
        let core = self.core.get_or_init(|| core);
        EventWaker(Weak::clone(&self.me)).listen();
        for warning in match core {
            Core::Producer(producer, _) => producer.warnings(),
            Core::Consumer(consumer) => consumer.warnings(),
        } {
            self.log(4, c"CONFWARN", warning);
        }
        for name in self.conf.deprecated_here() {
            self.log(4, c"CONFWARN", &format!("`{name}` is deprecated"));
        }
        Ok(core)
    }

    fn start_producer<'a>(
        &self,
        config: &'a Config,
        has_partitioner: bool,
        with: impl FnOnce(ottla::ProducerBuilder<'a>) -> ottla::ProducerBuilder<'a>,
    ) -> Result<(Producer, Arc<Reports>), Error> {
        let callbacks = &self.conf.callbacks;
        let wants_reports =
            callbacks.dr.is_some() || callbacks.dr_msg.is_some() || wants(self.conf.events, event_type::DR);
        let only_errors = config.raw().get("delivery.report.only.error").is_ok_and(|value| value == "true");
        let queue = wants_reports.then(|| Arc::clone(&self.main));
        let intercepted = self.interceptors.has(kind::SEND | kind::ACKNOWLEDGEMENT);
        let has_messages = wants_reports || has_partitioner || intercepted;
        let witness = self.interceptors.has(kind::ACKNOWLEDGEMENT).then(|| Weak::clone(&self.me));
        let reports = Arc::new(Reports::new(queue, only_errors, has_messages, witness));
        let sink: Arc<dyn DeliverySink> = Arc::clone(&reports) as _;
        let mut builder = with(Producer::builder(config));
        if has_messages {
            builder = builder.sink(sink);
        }
        if let Some(transport) = &self.transport {
            builder = builder.transport(Arc::clone(transport) as _);
        }
        if let Some(witness) = self.witness() {
            builder = builder.observer(Arc::clone(witness) as _);
        }
        let producer = builder.build()?;
        reports.set_producer(Some(producer.clone()));
        self.producers.lock().push((producer.clone(), Arc::clone(&reports)));
        Ok((producer, reports))
    }

    /// The way of a topic's messages.
    pub(crate) fn producing(&self, topic: &Topic) -> Result<Producing, c_int> {
        let failed = |error: Error| {
            if error.kind() == ErrorKind::InvalidArgument { code::_INVALID_ARG } else { code_of(&error) }
        };
        let (producer, reports) = match self.core().map_err(failed)? {
            Core::Consumer(_) => return Err(code::_INVALID_ARG),
            Core::Producer(producer, reports) => (producer.clone(), Arc::clone(reports)),
        };
        let max_bytes = self.raw.lock().get("message.max.bytes").ok().and_then(|size| size.parse().ok());
        let conf = topic.conf();
        let (producer, reports) = if conf.says_something() {
            let mut raw = self.raw.lock().clone();
            conf.add_to(&mut raw);
            let config = Config::from_raw(raw);
            let partitioner = conf.partitioner;
            let built = self.start_producer(&config, partitioner.is_some(), |builder| match partitioner {
                Some(callback) => builder.partitioner(application_partitioner(callback, conf.opaque)),
                None => builder,
            });
            built.map_err(failed)?
        } else {
            (producer, reports)
        };
        Ok(Producing {
            topic: producer.topic(topic.name()),
            has_messages: reports.has_messages(),
            max_bytes: max_bytes.unwrap_or(usize::MAX),
            asks_partitioner: conf.partitioner.is_some()
                || self.conf.topic.as_ref().is_some_and(|topic| topic.partitioner.is_some()),
        })
    }

    /// The consumer, if this is one that has started.
    #[inline]
    pub(crate) fn consumer(&self) -> Option<&Consumer> {
        match self.core.get() {
            Some(Core::Consumer(consumer)) => Some(consumer),
            None if self.is_consumer => self.start_consumer(),
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

    /// An admin client on the client's own connections.
    pub(crate) fn admin(&self) -> Result<Admin, c_int> {
        match self.core() {
            Ok(Core::Producer(producer, _)) => Ok(producer.admin()),
            Ok(Core::Consumer(consumer)) => Ok(consumer.admin()),
            Err(error) => Err(code_of(&error)),
        }
    }

    pub(super) fn producers(&self) -> Vec<Producer> {
        self.producers.lock().iter().map(|(producer, _)| producer.clone()).collect()
    }

    /// Messages that have no report yet or whose report was not seen, and other entries that wait.
    fn out_queue_len(&self) -> usize {
        self.producers().iter().map(Producer::in_queue).sum()
    }

    fn flush(&self, timeout_ms: c_int) -> c_int {
        // A callback may destroy the client.
        let _held = self.me.upgrade();
        let producers = self.producers();
        let mut flushes: Vec<_> = producers.iter().map(|producer| Box::pin(producer.flush_async())).collect();
        let by_events = wants(self.conf.events, event_type::DR);
        let until = deadline(timeout_ms.max(-1));
        let waker = self.main.waker();
        loop {
            let seen = self.main.signals();
            if !by_events {
                self.main.serve(self, 0);
            }
            let mut context = Context::from_waker(&waker);
            flushes.retain_mut(|flush| Future::poll(flush.as_mut(), &mut context).is_pending());
            if flushes.is_empty() && self.out_queue_len() == 0 {
                return code::NO_ERROR;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return code::_TIMED_OUT;
            }
            self.main.wait_signal(seen, until);
        }
    }
}

/// The application's partitioner as one of ours.
fn application_partitioner(callback: PartitionerCb, opaque: Opaque) -> Partitioner {
    Partitioner::Custom(Box::new(move |choice: &PartitionChoice<'_>| {
        let opaque = opaque;
        // SAFETY: the number is the address of the message's `Held`, which lives until its report.
        let (topic, msg_opaque) = match unsafe { (choice.opaque as *const Held).as_ref() } {
            Some(held) => (held.message.rkt, held.message.private),
            None => (ptr::null(), ptr::null_mut()),
        };
        let key = choice.key.unwrap_or_default();
        let at = if choice.key.is_some() { key.as_ptr().cast() } else { ptr::null() };
        // SAFETY: the application's function, with a key that lives until it returns.
        unsafe { callback(topic, at, key.len(), choice.partition_count, opaque.0, msg_opaque) }
    }))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_flush(rk: *const Client, timeout_ms: c_int) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, says the caller.
        match unsafe { Client::of(rk) } {
            Some(client) if !client.is_consumer => client.flush(timeout_ms),
            Some(_) => code::_NOT_IMPLEMENTED,
            None => code::_INVALID_ARG,
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_purge(rk: *const Client, flags: c_int) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, says the caller.
        let Some(client) = (unsafe { Client::of(rk) }) else { return code::_INVALID_ARG };
        if client.is_consumer {
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
        let producers = client.producers();
        producers.iter().for_each(|producer| producer.purge(what));
        if flags & PURGE_NON_BLOCKING == 0 {
            // Who answers a question that came behind the purge has purged.
            producers.iter().for_each(|producer| drop(producer.statistics()));
        }
        code::NO_ERROR
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_outq_len(rk: *const Client) -> c_int {
    guarded_for(rk, 0, || {
        // SAFETY: NULL or a client, says the caller.
        let Some(client) = (unsafe { Client::of(rk) }) else { return 0 };
        c_int::try_from(client.out_queue_len() + client.main.len_without_reports()).unwrap_or(c_int::MAX)
    })
}
