//! `rd_kafka_t`: a producer or a consumer.
//!
//! [`core`] has what runs below the handle and how messages get there; [`serve`] calls the application's functions.
//!
//! The application's handle is a counted reference; topics and queues have others, so that they outlive
//! `rd_kafka_destroy`. There is one producer, also for topics with configurations of their own.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int},
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ottla::{Observer, Purge, RawConfig};
use parking_lot::Mutex;

use crate::{
    arena,
    background::Background,
    boundary::{
        Blamed, Handle, Tag, c_text, guarded_for, guarded_local, handle, is_forked, put_text, text,
        watch_forks,
    },
    codes::code,
    conf::{Conf, TopicConf},
    debug::{Chronicle, Contexts, Observers},
    error::set_last,
    graves::{self, Counted, Graves, HandleBox},
    interceptors::{Interceptors, Witness, kind},
    log::{Log, is_own_thread},
    misc::VERSION,
    mock::MockCluster,
    offset_file::OffsetFiles,
    offsets::Offsets,
    op::Op,
    queue::Queue,
    time::deadline,
    topic::Topic,
    transport::{AppTransport, Opener},
};

pub(crate) mod core;
pub(crate) mod serve;

use self::core::Core;
pub(crate) use self::core::Producing;

/// A client.
#[repr(C)]
pub struct Client {
    tag: Tag,
    is_consumer: bool,
    name: CString,
    conf: HandleBox<Conf>,
    default_topic_conf: TopicConf,
    raw: Mutex<RawConfig>,
    me: Weak<Self>,
    main: Arc<Queue>,
    consumer_queue: Option<Arc<Queue>>,
    core: OnceLock<Core>,
    starting: Mutex<()>,
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
    /// How often the older calls began to consume a partition.
    simple_count: AtomicI64,
    offset_files: OffsetFiles,
    interceptors: Interceptors,
    log: Log,
    /// The application's functions for sockets, if there are any.
    transport: Option<Arc<AppTransport>>,
    /// Sees what passes on the connections, if there are interceptors for that; known when on_new interceptors were called.
    witness: OnceLock<Option<Arc<Witness>>>,
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
        arena::trim();
    }
}

/// `RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE`.
const NO_CONSUMER_CLOSE: c_int = 8;
/// How long the end of a client waits for a last commit.
const LAST_COMMIT_TIMEOUT: Duration = Duration::from_secs(3);

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
        let offsets = Offsets::new(|name| raw.get(name).ok().map(str::to_owned));
        let transport = AppTransport::of(conf, raw.get("broker.address.family").ok()).map(Arc::new);
        let client = Arc::new_cyclic(|me: &Weak<Self>| {
            let queue = || {
                let queue = Queue::new();
                queue.set_client(Weak::clone(me));
                queue
            };
            let main = queue();
            if let Some(mock) = &mut mock {
                mock.set_owner(me);
            }
            let consumer_queue = is_consumer.then(|| Queue::with_route(0));
            if let Some(queue) = &consumer_queue {
                queue.set_client(Weak::clone(me));
            }
            let log = Log::new(&raw, conf.callbacks.log, queue);
            Self {
                tag: Tag::of::<Self>(),
                is_consumer,
                name: c_text(&name),
                conf: HandleBox::new(Conf::copy_of(conf)),
                default_topic_conf: TopicConf::of_client(raw.of_topics(), conf.topic.as_deref()),
                raw: Mutex::new(raw),
                me: Weak::clone(me),
                main,
                consumer_queue,
                core: OnceLock::new(),
                starting: Mutex::new(()),
                topics: Mutex::default(),
                partition_queues: Mutex::default(),
                other_queues: Mutex::default(),
                is_closing: AtomicBool::new(false),
                is_closed: AtomicBool::new(false),
                has_fatal: AtomicBool::new(false),
                fatal: Mutex::new(None),
                offsets,
                simple_count: AtomicI64::new(0),
                offset_files: OffsetFiles::default(),
                interceptors: Interceptors::default(),
                log,
                transport,
                witness: OnceLock::new(),
                background: OnceLock::new(),
                mock: Mutex::new(mock),
            }
        });
        let client = graves::begin(client);
        client.check()?;
        client.intercept_new();
        if let Err(error) = client.begin() {
            let _ = client.intercept_end(Instant::now() + PATIENCE);
            return Err(error);
        }
        Ok(client)
    }

    /// Starts what runs: interceptors are there.
    fn begin(&self) -> Result<(), String> {
        let is_watched = self.interceptors.has(kind::WITNESSED);
        let _ = self.witness.set(is_watched.then(|| Arc::new(Witness::new(self.weak()))));
        let has_servers = self.raw.lock().get("bootstrap.servers").is_ok_and(|servers| !servers.is_empty());
        self.note_configuration();
        self.interceptors.note(self);
        let mock = self.mock.lock().as_deref().map(MockCluster::owner_is_there);
        if let Some(servers) = mock {
            self.debug(Contexts::MOCK, c"MOCK", || {
                format!("Mock cluster enabled: `bootstrap.servers` is replaced by {servers}")
            });
        }
        if has_servers {
            self.core().map_err(|error| error.to_string())?;
        } else {
            let line =
                "No `bootstrap.servers` configured: client will not be able to connect to Kafka cluster";
            self.log(5, c"CONFWARN", line);
        }
        if let Some(callback) = self.conf.callbacks.background_event {
            let background = Background::start(self.weak(), callback)
                .map_err(|error| format!("can't start the background thread: {error}"))?;
            let _ = self.background.set(background);
        }
        Ok(())
    }

    /// Writes down what it was configured to be.
    fn note_configuration(&self) {
        self.debug(Contexts::ALL, c"INIT", || {
            let contexts = self.log.contexts().names();
            let (version, name) = (VERSION.to_string_lossy(), self.name.to_string_lossy());
            format!("librdkafka v{version} {name} initialized (debug {contexts})")
        });
        let plugins = self.raw.lock().get("plugin.library.paths").unwrap_or_default().to_owned();
        for path in plugins.split(';').map(str::trim).filter(|path| !path.is_empty()) {
            self.debug(Contexts::PLUGIN, c"PLUGLOAD", || format!("Plug-in \"{path}\" is loaded"));
        }
        let entries: Vec<_> = self.raw.lock().iter().filter(|entry| entry.is_modified).collect();
        for entry in entries {
            let is_secret = entry.property.contains("password") || entry.property.contains("secret");
            let value = if is_secret { "[redacted]" } else { &entry.value };
            self.debug(Contexts::CONF, c"CONF", || format!("  {} = {value}", entry.property));
        }
    }

    /// Interceptors learn that the client goes, and nothing after that.
    fn intercept_end(&self, until: Instant) -> Result<(), &'static str> {
        let shut = self.witness().map_or(Ok(()), |witness| witness.shut_traffic(until));
        self.intercept_destroy();
        shut
    }

    /// Whether the configuration holds together, also where there is no broker to start with yet.
    fn check(&self) -> Result<(), String> {
        let raw = self.raw.lock().clone();
        ottla::check_config(&raw, self.is_consumer).map_err(|error| error.to_string())
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
        self.debug(Contexts::TOPIC, c"TOPIC", || format!("New local topic: {name}"));
        let topic = Topic::new(me, name, conf);
        topics.insert(name.to_owned(), Arc::clone(&topic));
        Ok(topic)
    }

    /// What holds for topics without a configuration of their own.
    pub(crate) const fn default_topic_conf(&self) -> &TopicConf {
        &self.default_topic_conf
    }

    /// The topic of this name, if there is one.
    pub(crate) fn topic_if_any(&self, name: &str) -> Option<Arc<Topic>> {
        self.topics.lock().get(name).cloned()
    }

    /// The topics that were used.
    pub(crate) fn topic_names(&self) -> Vec<String> {
        self.topics.lock().keys().cloned().collect()
    }

    pub(crate) fn background(&self) -> Option<&Background> {
        self.background.get()
    }

    pub(crate) const fn simple_count(&self) -> &AtomicI64 {
        &self.simple_count
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

    fn witness(&self) -> Option<&Arc<Witness>> {
        self.witness.get()?.as_ref()
    }

    /// Who sees what passes on the connections: interceptors, and the log.
    fn observer(&self) -> Option<Arc<dyn Observer>> {
        let witness = self.witness().map(|witness| Arc::clone(witness) as Arc<dyn Observer>);
        let wants = self.log.wants(Chronicle::CONTEXTS.or(Contexts::GENERIC));
        let chronicle = wants.then(|| Arc::new(Chronicle::new(self.weak())) as Arc<dyn Observer>);
        match (witness, chronicle) {
            (Some(witness), Some(chronicle)) => Some(Arc::new(Observers(vec![witness, chronicle]))),
            (one, other) => one.or(other),
        }
    }

    /// True if an interceptor of this kind would be called from now on: after `rd_kafka_new` it is too late for some.
    pub(crate) fn heeds(&self, kind: u32) -> bool {
        let has_started = self.core.get().is_some();
        match kind {
            kind::SEND => match self.core.get() {
                Some(Core::Producer(_, reports)) => reports.has_messages(),
                _ => true,
            },
            kind::ACKNOWLEDGEMENT => !has_started || self.interceptors.has(kind),
            kind if kind & kind::WITNESSED != 0 => self.witness.get().is_none_or(Option::is_some),
            _ => true,
        }
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

    /// What is left to do for a consumer that the application has not closed, as `rd_kafka_consumer_close` does it.
    fn close_consumer(&self) {
        // An I/O thread, in the application's function, can't wait for what it has to do itself.
        if let Some(Core::Consumer(consumer)) = self.core.get()
            && !is_own_thread()
        {
            self.commit_before_leaving(consumer, LAST_COMMIT_TIMEOUT);
        }
    }

    /// Ends everything that runs, and does not wait for ever for functions of the application's that do.
    fn close(&self) {
        self.debug(Contexts::ALL, c"DESTROY", || "Terminating instance".to_owned());
        let until = Instant::now() + PATIENCE;
        let left = || until.saturating_duration_since(Instant::now());
        let mut stuck = Vec::new();
        stuck.extend(self.intercept_end(until).err());
        self.is_closing.store(true, Ordering::Release);
        let mut has_ended = true;
        if let Some(Core::Producer(producer, reports)) = self.core.get() {
            // From now on reports free their messages, and nobody is told.
            reports.set_producer(None);
            producer.purge(Purge::ALL);
            if producer.end(left()).is_err() {
                has_ended = false;
                producer.give_up();
            }
        }
        self.stop_offset_files();
        if let Some(Core::Consumer(consumer)) = self.core.get()
            && consumer.close(left()).is_err()
        {
            has_ended = false;
            consumer.give_up();
        }
        stuck.extend(self.transport.as_ref().and_then(|transport| transport.shut(until).err()));
        stuck.extend(self.witness().and_then(|witness| witness.shut_threads(until).err()));
        stuck.extend(self.background.get().and_then(|background| background.stop(until).err()));
        if !has_ended || !stuck.is_empty() {
            self.say_stuck(stuck);
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
        let _ = self.log.shut(until);
    }

    /// A line names who was not waited for to the end.
    fn say_stuck(&self, mut stuck: Vec<&'static str>) {
        let is_logging = self.log.is_called_elsewhere();
        if is_logging {
            stuck.push("log_cb");
        }
        let who =
            if stuck.is_empty() { "a function on an I/O thread".to_owned() } else { stuck.join(" and ") };
        let line = format!(
            "{who} did not return within {} s: rd_kafka_destroy() waits no longer. What the thread uses stays in memory \
             until it returns, and other clients on it stand still",
            PATIENCE.as_secs()
        );
        // A log callback that does not return is not called once more.
        if is_logging {
            self.print_log(4, c"DESTROY", &line);
        } else {
            self.write_log(4, c"DESTROY", &line);
        }
    }
}

/// How long destroying waits, all in all, for functions of the application's that other threads are in.
const PATIENCE: Duration = Duration::from_secs(10);

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
pub unsafe extern "C" fn rd_kafka_destroy_flags(rk: *const Client, flags: c_int) {
    guarded_for(rk, (), || {
        // SAFETY: NULL or a client, says the caller, who gives its reference up.
        unsafe {
            if !Tag::take(rk) {
                return;
            }
            let client = Arc::from_raw(rk);
            if flags & NO_CONSUMER_CLOSE == 0 {
                client.close_consumer();
            }
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
        let until = deadline(timeout_ms);
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
            // One that does not run yet starts now.
            let list = servers.join(",");
            let _ = match client.core() {
                Ok(Core::Producer(producer, _)) => producer.add_bootstrap_servers(&list),
                Ok(Core::Consumer(consumer)) => consumer.add_bootstrap_servers(&list),
                Err(_) => Ok(()),
            };
        }
        count
    })
}
