//! The object behind `rd_kafka_t`, and the methods that the other parts of a client call.
//!
//! The application's handle is a counted reference; topics and queues hold further ones, so that they outlive
//! `rd_kafka_destroy`. There is one producer, also for topics with configurations of their own.

use std::{
    ffi::{CStr, CString, c_int},
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use ottla_core::config::RawConfig;
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    client::{
        certificates::CertificateCheck,
        conf::Conf,
        contexts::Contexts,
        core::{ClientKind, Core},
        interceptors::{Gates, Interceptors, kind},
        log::Log,
        op::{ErrorMessage, Op},
        queue::Queue,
        queue_thread::QueueThread,
        topic::Topic,
        topic_conf::TopicConf,
        transport::{AppTransport, Opener},
    },
    consume::{message::error_message, offset_file::OffsetFiles, offsets::Offsets},
    ffi::{
        boundary::{Blamed, Handle, Tag, handle, is_inherited},
        codes::{RespErr, code},
        error::describe,
        lock::Mutex,
        object::WeakObject,
        quarantine::{self, Counted, HandleBox, Quarantine},
        time::timeout,
        types::{OFFSET_INVALID, rd_kafka_t},
    },
    group::state::Membership,
    mock::cluster::MockCluster,
    produce::arena,
};

/// A client.
#[repr(C)]
pub struct Client {
    pub(super) tag: Tag,
    pub(super) kind: ClientKind,
    pub(super) name: CString,
    pub(super) conf: HandleBox<Conf>,
    pub(super) default_topic_conf: TopicConf,
    pub(super) raw: Mutex<RawConfig>,
    pub(super) me: Weak<Self>,
    pub(super) main: Arc<Queue>,
    pub(super) consumer_queue: Option<Arc<Queue>>,
    /// The queue for token requests, if they do not go to the main queue.
    pub(super) sasl_queue: Option<Arc<Queue>>,
    pub(super) core: OnceLock<Core>,
    pub(super) starting: Mutex<()>,
    pub(super) topics: Mutex<SortedMap<String, Arc<Topic>>>,
    /// The queues of single partitions.
    pub(super) partition_queues: Mutex<SortedMap<(String, i32), Arc<Queue>>>,
    /// The queues that the application created.
    pub(super) other_queues: Mutex<Vec<Weak<Queue>>>,
    /// True once the application has given the handle up, which answers until all threads of the client have ended.
    pub(super) is_given_up: AtomicBool,
    pub(super) is_closing: AtomicBool,
    pub(super) membership: Membership,
    /// The ids of brokers in the responses to the application's metadata requests.
    pub(super) learned_brokers: Mutex<Option<(Instant, SortedSet<i32>)>>,
    /// The error that ended the client. Code and text appear at once: who sees the text also gets it from produce.
    pub(super) fatal: OnceLock<(RespErr, String)>,
    pub(super) offsets: Offsets,
    /// How often the older calls began to consume each partition.
    pub(super) simple_count: AtomicI64,
    pub(super) offset_files: OffsetFiles,
    pub(super) interceptors: Interceptors,
    pub(super) log: Arc<Log>,
    /// The application's functions for sockets, if there are any.
    pub(super) transport: Option<Arc<AppTransport>>,
    pub(super) certificate_check: Option<Arc<CertificateCheck>>,
    /// The gates of the interceptors of connections and threads; `None` if there are no such interceptors. Set once the
    /// on_new interceptors were called.
    pub(super) observer_gates: OnceLock<Option<Arc<Gates>>>,
    pub(super) background: OnceLock<QueueThread>,
    pub(super) starting_background: Mutex<()>,
    /// The cluster of `test.mock.num.brokers`.
    pub(super) mock: Mutex<Option<Box<MockCluster>>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Client {
    const KIND: u32 = 0x6f74_6b01;
}

static QUARANTINE: Quarantine = Quarantine::new();

// SAFETY: see `drop` and `start`.
unsafe impl Counted for Client {
    fn quarantine() -> &'static Quarantine {
        &QUARANTINE
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tag.clear();
        quarantine::end(self);
        arena::trim();
    }
}

/// The partition of an error that belongs to no partition.
const PARTITION_OF_CLIENT: i32 = 0;

/// The maximum length of a topic's name in bytes. The limit of brokers is 249; they report longer names themselves.
const LONGEST_TOPIC_NAME: usize = 512;

impl Client {
    /// Returns the client behind a handle.
    ///
    /// # Safety
    ///
    /// NULL or a client of this library.
    #[inline]
    pub(crate) unsafe fn of<'a>(rk: *const Self) -> Option<&'a Self> {
        // SAFETY: by the contract of this function.
        unsafe { handle(rk) }
    }

    /// Returns the topic of this name, which is created if the client has none. The configuration applies only to a new
    /// topic.
    pub(crate) fn topic(&self, name: &str, conf: Option<TopicConf>) -> Result<Arc<Topic>, RespErr> {
        if let Some(topic) = self.topic_if_any(name) {
            return Ok(topic);
        }
        if name.len() > LONGEST_TOPIC_NAME || self.is_closing() {
            return Err(code::_INVALID_ARG);
        }
        let me = self.me.upgrade().ok_or(code::_DESTROY)?;
        let new = Topic::new(me, name, conf);
        let topic = Arc::clone(self.topics.lock().entry(name.to_owned()).or_insert_with(|| Arc::clone(&new)));
        if Arc::ptr_eq(&topic, &new) {
            self.debug(Contexts::TOPIC, c"TOPIC", || format!("New local topic: {name}"));
        }
        Ok(topic)
    }

    /// Returns the configuration of topics without their own.
    pub(crate) const fn default_topic_conf(&self) -> &TopicConf {
        &self.default_topic_conf
    }

    /// Returns the topic of this name, if the client has it.
    pub(crate) fn topic_if_any(&self, name: &str) -> Option<Arc<Topic>> {
        self.topics.lock().get(name).cloned()
    }

    /// Returns all topics of the client.
    pub(crate) fn topic_names(&self) -> Vec<String> {
        self.topics.lock().keys().cloned().collect()
    }

    pub(crate) const fn simple_count(&self) -> &AtomicI64 {
        &self.simple_count
    }

    /// Returns true for a consumer with a `group.id`, once the on_new interceptors were called: until then it has no group.
    pub(crate) fn has_group(&self) -> bool {
        self.offsets.has_group() && self.observer_gates.get().is_some()
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

    /// Returns the gates of interceptors of connections and threads, if there are such interceptors.
    pub(super) fn observer_gates(&self) -> Option<&Arc<Gates>> {
        self.observer_gates.get()?.as_ref()
    }

    /// Returns true if an interceptor of this kind would still be called: some kinds have no effect after
    /// `rd_kafka_new`.
    pub(crate) fn heeds(&self, kind: u32) -> bool {
        let has_started = self.core.get().is_some();
        match kind {
            kind::SEND => match self.core.get() {
                Some(Core::Producer(_, reports)) => reports.has_messages(),
                _ => true,
            },
            kind::ACKNOWLEDGEMENT => !has_started || self.interceptors.has(kind),
            kind if kind & kind::OBSERVED != 0 => self.observer_gates.get().is_none_or(Option::is_some),
            _ => true,
        }
    }

    pub(crate) const fn logging(&self) -> &Arc<Log> {
        &self.log
    }

    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the name for the application, which a client has once the on_new interceptors were called.
    pub(crate) fn public_name(&self) -> &CStr {
        if self.observer_gates.get().is_some() { &self.name } else { c"" }
    }

    pub(crate) fn conf(&self) -> &Conf {
        &self.conf
    }

    /// Returns the cluster that the client started for itself, or NULL.
    pub(crate) fn mock(&self) -> *const MockCluster {
        self.mock.lock().as_deref().map_or(ptr::null(), ptr::from_ref)
    }

    pub(crate) const fn main(&self) -> &Arc<Queue> {
        &self.main
    }

    pub(crate) const fn consumer_queue(&self) -> Option<&Arc<Queue>> {
        self.consumer_queue.as_ref()
    }

    /// Returns the consumer's queue for calls of the application.
    pub(crate) fn group_queue(&self) -> Option<&Arc<Queue>> {
        self.consumer_queue.as_ref().filter(|_| self.has_group())
    }

    pub(crate) const fn partition_queues(&self) -> &Mutex<SortedMap<(String, i32), Arc<Queue>>> {
        &self.partition_queues
    }

    /// Registers a queue that the application created: it ends with the client.
    pub(crate) fn adopt_queue(&self, queue: &Arc<Queue>) {
        let mut queues = self.other_queues.lock();
        if queues.len() == queues.capacity() {
            queues.retain(|known| known.strong_count() > 0);
        }
        queues.push(Arc::downgrade(queue));
    }

    /// Returns true for a queue that belongs to the client: its polls wait independently of the application's handle.
    pub(crate) fn serves(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(queue, &self.main)
            || self.sasl_queue.as_ref().is_some_and(|own| Arc::ptr_eq(own, queue))
            || self.consumer_queue.as_ref().is_some_and(|own| Arc::ptr_eq(own, queue))
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    /// Returns the client as its queues refer to it.
    pub(crate) fn object(&self) -> WeakObject<rd_kafka_t> {
        WeakObject::new(self.weak())
    }

    /// Returns the address that functions of the application get.
    #[inline]
    pub(crate) const fn as_c(&self) -> *const rd_kafka_t {
        ptr::from_ref(self).cast()
    }

    /// Returns a property's value.
    pub(crate) fn property(&self, name: &str) -> Option<String> {
        self.raw.lock().get(name).ok().map(str::to_owned)
    }

    /// Returns the timeout of a call that has none: `default.api.timeout.ms` if it is set, or else `otherwise`.
    pub(crate) fn default_timeout(&self, otherwise: Duration) -> Duration {
        const NAME: &str = "default.api.timeout.ms";
        let raw = self.raw.lock();
        let millis = raw.get(NAME).ok().filter(|_| raw.is_modified(NAME)).and_then(|ms| ms.parse().ok());
        millis.map_or(otherwise, Duration::from_millis)
    }

    /// Returns the timeout of a call that queries brokers; -1 is the default of such calls, or else the longest one.
    pub(crate) fn query_timeout(&self, timeout_ms: c_int) -> Duration {
        let given = timeout(timeout_ms);
        if timeout_ms < 0 { self.default_timeout(given) } else { given }
    }

    pub(crate) const fn is_producer(&self) -> bool {
        matches!(self.kind, ClientKind::Producer)
    }

    /// Returns true for the client below a share consumer, which has no interceptors.
    pub(crate) const fn is_share_consumer(&self) -> bool {
        matches!(self.kind, ClientKind::ShareConsumer)
    }

    pub(crate) const fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn fatal(&self) -> Option<(RespErr, String)> {
        self.fatal.get().cloned()
    }

    /// Notes that the client can't go on, without telling the application; false if that was known already.
    pub(crate) fn note_fatal(&self, code: RespErr, reason: &str) -> bool {
        self.fatal.set((code, reason.to_owned())).is_ok()
    }

    /// The client can't go on; false if that was known already. The application of a consumer with a group gets the error
    /// from its poll, others from their error callback or as an event.
    pub(crate) fn set_fatal(&self, code: RespErr, reason: &str) -> bool {
        if !self.note_fatal(code, reason) {
            return false;
        }
        let text = format!("Fatal error: {}: {reason}", describe(code).to_string_lossy());
        // An application that gets errors by a callback or an event may not log them.
        if self.reports_errors() {
            self.log(0, c"FATAL", &text);
        }
        match &self.consumer_queue {
            Some(queue) => {
                let message = error_message(code::_FATAL, &text, None, PARTITION_OF_CLIENT, OFFSET_INVALID);
                queue.push(Op::Message(ErrorMessage(message)));
            }
            None => self.main.push(Op::Error { code: code::_FATAL, text, is_fatal: true }),
        }
        true
    }

    /// Stores the brokers of a response to the application; brokers that it lacks have left the cluster.
    pub(crate) fn learn_brokers(&self, ids: impl Iterator<Item = i32>) {
        *self.learned_brokers.lock() = Some((Instant::now(), ids.collect()));
    }

    /// Returns true if a response to the application named the cluster's brokers.
    pub(crate) fn has_learned_brokers(&self) -> bool {
        self.learned_brokers.lock().is_some()
    }

    /// Returns the brokers of the last metadata response, be it the application's or the client's own.
    pub(crate) fn learned_brokers(&self) -> SortedSet<i32> {
        // The age of the client's own is that at a later time, so that the application's counts if both are as old.
        let asked = Instant::now();
        let own = self.statistics().and_then(|statistics| statistics.nodes);
        let given = self.learned_brokers.lock().clone();
        let Some((nodes, age)) = own else { return given.map(|(_, ids)| ids).unwrap_or_default() };
        let age = Duration::from_micros(age.unsigned_abs());
        match given {
            Some((at, ids)) if asked.saturating_duration_since(at) <= age => ids,
            _ => nodes.into_iter().map(|node| node.get()).collect(),
        }
    }
}

impl Blamed for *const Client {
    fn is_inherited(self) -> bool {
        // SAFETY: NULL or a handle, as the header demands.
        unsafe { is_inherited(self) }
    }

    fn blame(self, text: &str) {
        // SAFETY: the handle is the one that the application passed to the call that panicked.
        if let Some(client) = unsafe { Client::of(self) } {
            client.set_fatal(code::_FAIL, text);
        }
    }
}

impl Blamed for *const Topic {
    fn is_inherited(self) -> bool {
        // SAFETY: NULL or a handle, as the header demands.
        unsafe { is_inherited(self) }
    }

    fn blame(self, text: &str) {
        // SAFETY: as for a client.
        if let Some(topic) = unsafe { handle::<Topic>(self) } {
            topic.client().set_fatal(code::_FAIL, text);
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.name)
    }
}
