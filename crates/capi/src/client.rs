//! `rd_kafka_t`: a producer or a consumer.
//!
//! The application's handle is a counted reference; topics and queues have others, so that they outlive
//! `rd_kafka_destroy`. A topic whose configuration is not the client's gets a producer of its own, which shares
//! everything but the connections.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int},
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
    time::{Duration, Instant},
};

use ottla::{
    Admin, Config, Consumer, DeliverySink, Error, ErrorKind, Event as ClientEvent, PartitionChoice,
    Partitioner, Producer, Purge, RawConfig,
};
use parking_lot::Mutex;

use crate::{
    background::Background,
    boundary::{
        Blamed, Handle, Opaque, Place, Tag, guarded_for, guarded_local, handle, is_forked, malloc_text,
        put_text, reach, text, watch_forks,
    },
    codes::code,
    conf::{Conf, ConsumeCb, TopicConf, below},
    error::{code_of, set_last},
    graves::{self, Counted, Graves, HandleBox},
    interceptors::{Interceptors, Witness, kind},
    log::Log,
    message::{Held, rd_kafka_message_destroy},
    mock::MockCluster,
    offset_file::OffsetFiles,
    offsets::Offsets,
    queue::{self, Op, Patience, Queue, c_text, wants},
    report::Reports,
    topic::Topic,
    transport::{AppTransport, Opener},
    types::event_type,
};

/// A client.
#[repr(C)]
pub struct Client {
    tag: Tag,
    is_consumer: bool,
    name: CString,
    conf: HandleBox<Conf>,
    raw: Mutex<RawConfig>,
    me: Weak<Self>,
    main: Arc<Queue>,
    consumer_queue: Option<Arc<Queue>>,
    core: OnceLock<Core>,
    starting: Mutex<()>,
    producers: Mutex<Vec<(Producer, Arc<Reports>)>>,
    topics: Mutex<BTreeMap<String, Arc<Topic>>>,
    /// Queues of single partitions.
    partition_queues: Mutex<BTreeMap<(String, i32), Arc<Queue>>>,
    /// Queues that the application made.
    other_queues: Mutex<Vec<Weak<Queue>>>,
    is_closing: AtomicBool,
    is_closed: AtomicBool,
    has_fatal: AtomicBool,
    fatal: Mutex<Option<(c_int, String)>>,
    offsets: Offsets,
    offset_files: OffsetFiles,
    interceptors: Interceptors,
    log: Log,
    /// The application's functions for sockets, if there are any.
    transport: Option<Arc<AppTransport>>,
    /// Sees what passes on the connections, if there are interceptors for that.
    witness: OnceLock<Arc<Witness>>,
    background: OnceLock<Background>,
    /// The cluster of `test.mock.num.brokers`.
    mock: Mutex<Option<Box<MockCluster>>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Client {
    const KIND: u32 = 0x6f74_6b01;
}

static GRAVES: Graves = Graves::new();

// SAFETY: see `drop` and `start`.
unsafe impl Counted for Client {
    fn graves() -> &'static Graves {
        &GRAVES
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tag.clear();
        graves::end(self);
    }
}

enum Core {
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

static LIVE: AtomicUsize = AtomicUsize::new(0);
static NUMBER: AtomicUsize = AtomicUsize::new(1);

impl Client {
    /// The client behind a handle.
    ///
    /// # Safety
    ///
    /// NULL or a client of this library.
    #[inline]
    pub(crate) unsafe fn of<'a>(rk: *const Self) -> Option<&'a Self> {
        // SAFETY: as the caller says.
        unsafe { handle(rk) }
    }

    fn start(is_consumer: bool, conf: &Conf) -> Result<Arc<Self>, String> {
        let mut raw = conf.merged();
        let mut mock = MockCluster::of_conf(&mut raw)?;
        let kind = if is_consumer { "consumer" } else { "producer" };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}#{kind}-{number}", raw.get("client.id").unwrap_or("rdkafka"));
        let log_level = raw.get("log_level").ok().and_then(|level| level.parse().ok()).unwrap_or(6);
        let offsets = Offsets::new(|name| raw.get(name).ok().map(str::to_owned));
        let has_log_queue = raw.get("log.queue").is_ok_and(|value| value == "true");
        let transport = AppTransport::of(conf, raw.get("broker.address.family").ok()).map(Arc::new);
        let client = Arc::new_cyclic(|me: &Weak<Self>| {
            let queue = || {
                let queue = Queue::new();
                queue.set_client(Weak::clone(me));
                queue
            };
            let main = queue();
            if let Some(mock) = &mut mock {
                mock.set_owner(me.as_ptr());
            }
            let consumer_queue = is_consumer.then(|| Queue::with_route(0));
            if let Some(queue) = &consumer_queue {
                queue.set_client(Weak::clone(me));
            }
            Self {
                tag: Tag::of::<Self>(),
                is_consumer,
                name: c_text(&name),
                conf: HandleBox::new(Conf::copy_of(conf)),
                raw: Mutex::new(raw),
                me: Weak::clone(me),
                main,
                consumer_queue,
                core: OnceLock::new(),
                starting: Mutex::new(()),
                producers: Mutex::default(),
                topics: Mutex::default(),
                partition_queues: Mutex::default(),
                other_queues: Mutex::default(),
                is_closing: AtomicBool::new(false),
                is_closed: AtomicBool::new(false),
                has_fatal: AtomicBool::new(false),
                fatal: Mutex::new(None),
                offsets,
                offset_files: OffsetFiles::default(),
                interceptors: Interceptors::default(),
                log: Log::new(log_level, conf.callbacks.log, has_log_queue.then(queue)),
                transport,
                witness: OnceLock::new(),
                background: OnceLock::new(),
                mock: Mutex::new(mock),
            }
        });
        let client = graves::begin(client);
        client.check()?;
        client.intercept_new();
        if client.interceptors.has(kind::WITNESSED) {
            let _ = client.witness.set(Arc::new(Witness::new(client.weak())));
        }
        let has_servers = client.raw.lock().get("bootstrap.servers").is_ok_and(|servers| !servers.is_empty());
        if has_servers {
            client.core().map_err(|error| error.to_string())?;
        }
        if let Some(callback) = conf.callbacks.background_event {
            let background = Background::start(client.weak(), callback)
                .map_err(|error| format!("can't start the background thread: {error}"))?;
            let _ = client.background.set(background);
        }
        Ok(client)
    }

    /// Whether the configuration holds together, also where there is no broker to start with yet.
    fn check(&self) -> Result<(), String> {
        let raw = self.raw.lock().clone();
        ottla::check_config(&raw, self.is_consumer).map_err(|error| error.to_string())
    }

    /// What runs, started when there are brokers to start from.
    fn core(&self) -> Result<&Core, Error> {
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
            if let Some(witness) = self.witness.get() {
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
        if let Some(witness) = self.witness.get() {
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

    /// The topic of this name, made if there is none; a configuration counts for a new one only.
    pub(crate) fn topic(&self, name: &str, conf: Option<TopicConf>) -> Result<Arc<Topic>, c_int> {
        let mut topics = self.topics.lock();
        if let Some(topic) = topics.get(name) {
            return Ok(Arc::clone(topic));
        }
        if name.is_empty() || name.len() > 249 || self.is_closing() {
            return Err(code::_INVALID_ARG);
        }
        let me = self.me.upgrade().ok_or(code::_DESTROY)?;
        let topic = Topic::new(me, name, conf.unwrap_or_else(TopicConf::new));
        topics.insert(name.to_owned(), Arc::clone(&topic));
        Ok(topic)
    }

    /// The topics that were used.
    pub(crate) fn topic_names(&self) -> Vec<String> {
        self.topics.lock().keys().cloned().collect()
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

    pub(crate) fn background(&self) -> Option<&Background> {
        self.background.get()
    }

    pub(crate) const fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    pub(crate) fn opener(&self) -> Opener {
        Opener::of(&self.conf)
    }

    pub(crate) const fn offset_files(&self) -> &OffsetFiles {
        &self.offset_files
    }

    pub(crate) const fn interceptors(&self) -> &Interceptors {
        &self.interceptors
    }

    pub(crate) const fn logging(&self) -> &Log {
        &self.log
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    pub(crate) fn conf(&self) -> &Conf {
        &self.conf
    }

    /// The cluster that the client started for itself, or NULL.
    pub(crate) fn mock(&self) -> *const MockCluster {
        self.mock.lock().as_deref().map_or(ptr::null(), ptr::from_ref)
    }

    pub(crate) const fn main(&self) -> &Arc<Queue> {
        &self.main
    }

    pub(crate) const fn consumer_queue(&self) -> Option<&Arc<Queue>> {
        self.consumer_queue.as_ref()
    }

    pub(crate) const fn partition_queues(&self) -> &Mutex<BTreeMap<(String, i32), Arc<Queue>>> {
        &self.partition_queues
    }

    /// A queue that the application made ends with the client.
    pub(crate) fn adopt_queue(&self, queue: &Arc<Queue>) {
        let mut queues = self.other_queues.lock();
        if queues.len() == queues.capacity() {
            queues.retain(|known| known.strong_count() > 0);
        }
        queues.push(Arc::downgrade(queue));
    }

    /// True for a queue that the client itself hands out of: who waits there does not wait for the handle's sake.
    pub(crate) fn serves(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(queue, &self.main)
            || self.consumer_queue.as_ref().is_some_and(|own| Arc::ptr_eq(own, queue))
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    /// A property's value.
    pub(crate) fn property(&self, name: &str) -> Option<String> {
        self.raw.lock().get(name).ok().map(str::to_owned)
    }

    pub(crate) const fn is_producer(&self) -> bool {
        !self.is_consumer
    }

    /// The consumer was closed by the application.
    pub(crate) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn fatal_if_any(&self) -> Option<(c_int, String)> {
        if self.has_fatal.load(Ordering::Acquire) { self.fatal() } else { None }
    }

    pub(crate) fn fatal(&self) -> Option<(c_int, String)> {
        self.fatal.lock().clone()
    }

    /// The client can't go on; false if that was known already.
    pub(crate) fn set_fatal(&self, code: c_int, reason: &str) -> bool {
        let mut fatal = self.fatal.lock();
        if fatal.is_some() {
            return false;
        }
        *fatal = Some((code, reason.to_owned()));
        drop(fatal);
        self.has_fatal.store(true, Ordering::Release);
        self.main.push(Op::Error { code: code::_FATAL, text: reason.to_owned(), is_fatal: true });
        true
    }

    /// Tells of an error that belongs to no call.
    pub(crate) fn error(&self, code: c_int, text: String) {
        if self.conf.callbacks.error.is_some() || wants(self.conf.events, event_type::ERROR) {
            self.main.push(Op::Error { code, text, is_fatal: false });
        } else {
            self.log(3, c"ERROR", &text);
        }
    }

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
                None => self.write_log(if is_fatal { 0 } else { 3 }, c"ERROR", &text),
            },
            Op::Log { level, facility, text } => self.write_log(level, facility, &text),
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
            if queue::take_yield() {
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
    fn statistics_sink(&self) -> Option<impl Fn(ottla::Statistics) + Send + Sync + 'static> {
        let is_wanted = self.conf.callbacks.stats.is_some() || wants(self.conf.events, event_type::STATS);
        let me = Weak::clone(&self.me);
        is_wanted.then_some(move |mut statistics: ottla::Statistics| {
            if let Some(client) = me.upgrade().filter(|client| !client.is_closing()) {
                // What the client is called here counts producers of topics, too.
                statistics.name = client.name.to_string_lossy().into_owned();
                client.main.push(Op::Stats(c_text(&statistics.to_json())));
            }
        })
    }

    fn producers(&self) -> Vec<Producer> {
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
        let until = queue::deadline(timeout_ms.max(-1));
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

    /// Ends everything that runs.
    fn close(&self) {
        if let Some(witness) = self.witness.get() {
            witness.shut_traffic();
        }
        self.intercept_destroy();
        self.is_closing.store(true, Ordering::Release);
        let producers = std::mem::take(&mut *self.producers.lock());
        for (producer, reports) in &producers {
            // From now on reports free their messages, and nobody is told.
            reports.set_producer(None);
            producer.purge(Purge::ALL);
            let _ = producer.close(Duration::ZERO);
        }
        self.stop_offset_files();
        if let Some(Core::Consumer(consumer)) = self.core.get() {
            let _ = consumer.close(Duration::from_secs(10));
        }
        if let Some(transport) = &self.transport {
            transport.shut();
        }
        if let Some(witness) = self.witness.get() {
            witness.shut_threads();
        }
        if let Some(background) = self.background.get() {
            background.stop();
        }
        if let Some(queue) = self.log.queue() {
            queue.clear();
        }
        self.main.clear();
        if let Some(queue) = &self.consumer_queue {
            queue.clear();
        }
        let queues = std::mem::take(&mut *self.partition_queues.lock());
        queues.values().for_each(|queue| queue.clear());
        let queues = std::mem::take(&mut *self.other_queues.lock());
        queues.iter().filter_map(Weak::upgrade).for_each(|queue| queue.clear());
        let topics = std::mem::take(&mut *self.topics.lock());
        drop(topics);
        self.conf.interceptors.destroy();
        let mock = self.mock.lock().take();
        drop(mock);
    }
}

impl Blamed for *const Client {
    fn blame(self, text: &str) {
        // SAFETY: the call that panicked got the handle from the application.
        if let Some(client) = unsafe { Client::of(self) } {
            client.set_fatal(code::_FAIL, text);
        }
    }
}

impl Blamed for *const Topic {
    fn blame(self, text: &str) {
        // SAFETY: as for a client.
        if let Some(topic) = unsafe { handle::<Topic>(self) } {
            topic.client().set_fatal(code::_FAIL, text);
        }
    }
}

impl Blamed for *const Queue {
    fn blame(self, text: &str) {
        // SAFETY: as for a client.
        if let Some(client) = unsafe { Queue::of(self) }.and_then(|queue| queue.client()) {
            client.set_fatal(code::_FAIL, text);
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

/// The application's partitioner as one of ours.
fn application_partitioner(callback: crate::conf::PartitionerCb, opaque: Opaque) -> Partitioner {
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

/// Moves the client's events to its main queue as they come.
struct EventWaker(Weak<Client>);

impl EventWaker {
    fn listen(self) {
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
                Some(ClientEvent::Error(error)) => client.error(code_of(&error), error.to_string()),
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

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.name)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_new(
    kind: c_int,
    conf: *mut Conf,
    errstr: *mut c_char,
    errstr_size: usize,
) -> *const Client {
    guarded_local(ptr::null(), || {
        watch_forks();
        // SAFETY: a configuration or NULL, and a buffer of that size, says the caller.
        unsafe {
            let failed = |text: &str| {
                put_text(errstr, errstr_size, text);
                set_last(code::_INVALID_ARG);
                ptr::null()
            };
            if !(0..=1).contains(&kind) {
                return failed("a client is a producer or a consumer");
            }
            if is_forked() {
                return failed("the library does not work in a forked child; start it there with exec");
            }
            let own;
            let given = if conf.is_null() {
                own = HandleBox::from_raw(crate::conf::rd_kafka_conf_new());
                own.as_deref()
            } else {
                Conf::changeable(conf).map(|conf| &*conf)
            };
            let Some(given) = given else {
                return failed("this is no configuration, or one that a client has already");
            };
            match Client::start(kind == 1, given) {
                Ok(client) => {
                    graves::bury(conf);
                    LIVE.fetch_add(1, Ordering::SeqCst);
                    Arc::into_raw(client)
                }
                Err(error) => failed(&error),
            }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_destroy(rk: *const Client) {
    // SAFETY: as the caller says.
    unsafe { rd_kafka_destroy_flags(rk, 0) };
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_destroy_flags(rk: *const Client, _flags: c_int) {
    guarded_for(rk, (), || {
        // SAFETY: NULL or a client, says the caller, who gives its reference up.
        unsafe {
            if !Tag::take(rk) {
                return;
            }
            let client = Arc::from_raw(rk);
            client.close();
            drop(client);
        }
        LIVE.fetch_sub(1, Ordering::SeqCst);
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_wait_destroyed(timeout_ms: c_int) -> c_int {
    guarded_local(-1, || {
        let until = queue::deadline(timeout_ms);
        while LIVE.load(Ordering::SeqCst) > 0 {
            if until.is_some_and(|until| Instant::now() >= until) {
                set_last(code::_TIMED_OUT);
                return -1;
            }
            // Who destroys does so in a call of its own, which returns soon.
            std::thread::sleep(Duration::from_millis(1));
        }
        0
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_name(rk: *const Client) -> *const c_char {
    // SAFETY: NULL or a client, says the caller.
    unsafe { Client::of(rk) }.map_or(ptr::null(), |client| client.name.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_type(rk: *const Client) -> c_int {
    // SAFETY: NULL or a client, says the caller.
    unsafe { Client::of(rk) }.map_or(0, |client| client.is_consumer.into())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_opaque(rk: *const Client) -> *mut std::ffi::c_void {
    // SAFETY: NULL or a client, says the caller.
    unsafe { Client::of(rk) }.map_or(ptr::null_mut(), |client| client.conf.opaque.0)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf(rk: *const Client) -> *const Conf {
    // SAFETY: NULL or a client, says the caller.
    unsafe { Client::of(rk) }.map_or(ptr::null(), |client| client.conf.as_ptr().cast_const())
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

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_brokers_add(rk: *const Client, brokerlist: *const c_char) -> c_int {
    guarded_for(rk, 0, || {
        // SAFETY: NULL or a client, and a text, says the caller.
        let (Some(client), Some(list)) = (unsafe { (Client::of(rk), text(brokerlist)) }) else { return 0 };
        let mut raw = client.raw.lock();
        let known = raw.get("bootstrap.servers").unwrap_or("").to_owned();
        let mut servers: Vec<&str> = known.split(',').filter(|server| !server.is_empty()).collect();
        let mut count = 0;
        for server in list.split(',').map(str::trim).filter(|server| !server.is_empty()) {
            servers.push(server);
            match raw.set("bootstrap.servers", &servers.join(",")) {
                Ok(()) => count += 1,
                Err(_) => {
                    servers.pop();
                }
            }
        }
        drop(raw);
        if count > 0 {
            // A client that runs already knows its cluster; one that does not starts now.
            let _ = client.core();
        }
        count
    })
}
