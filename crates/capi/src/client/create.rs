//! `rd_kafka_new`: a client from its configuration.

use std::{
    ffi::{c_char, c_int},
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use ottla_core::{
    config::{EffectiveConfig, RawConfig, is_secret},
    group::GroupSettings,
};
use ottla_net::process::watch_forks;

use crate::{
    client::{
        certificates::CertificateCheck,
        conf::{Conf, rd_kafka_conf_new},
        contexts::Contexts,
        core::ClientKind,
        destroy::{DESTROY_TIMEOUT, LIVE},
        handle::Client,
        interceptors::{Gates, Interceptors, kind},
        log::Log,
        queue::Queue,
        sasl,
        topic_conf::TopicConf,
        transport::AppTransport,
    },
    consume::{offset_file::OffsetFiles, offsets::Offsets},
    ffi::{
        boundary::{Tag, c_text, put_text},
        cancel::Uncancelled,
        codes::{VERSION, code},
        error::set_last,
        export,
        lock::Mutex,
        object::WeakObject,
        quarantine::{self, HandleBox},
    },
    group::state::Membership,
    mock::cluster::MockCluster,
    platform,
};

static NUMBER: AtomicUsize = AtomicUsize::new(1);

/// Default values of properties that depend on the kind of client.
pub(crate) type Defaults = &'static [(&'static str, &'static str)];

fn set_defaults(raw: &mut RawConfig, defaults: Defaults) {
    for (name, value) in defaults {
        if !raw.is_modified(name) {
            // The values are within the ranges of the properties.
            let _ = raw.set(name, value);
        }
    }
}

impl Client {
    fn start(kind: ClientKind, conf: &Conf, defaults: Defaults) -> Result<Arc<Self>, String> {
        let mut raw = conf.merged();
        set_defaults(&mut raw, defaults);
        let mut mock = MockCluster::of_conf(&mut raw)?;
        let word = if kind == ClientKind::Producer { "producer" } else { "consumer" };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}#{word}-{number}", raw.get("client.id").unwrap_or("rdkafka"));
        let offsets =
            Offsets::new(kind == ClientKind::Consumer, |name| raw.get(name).ok().map(str::to_owned));
        let is = |name, value| raw.get(name) == Ok(value);
        let membership = Membership::new(is("enable.auto.commit", "true"), is("group.protocol", "consumer"));
        let transport = AppTransport::of(conf, raw.get("broker.address.family").ok()).map(Arc::new);
        let client = Arc::new_cyclic(|me: &Weak<Self>| {
            let object = WeakObject::new(Weak::clone(me));
            let queue = || {
                let queue = Queue::new();
                queue.set_client(object.clone());
                queue
            };
            let main = queue();
            let consumer_queue = offsets.has_group().then(|| Queue::with_route(0));
            if let Some(queue) = &consumer_queue {
                queue.set_client(object.clone());
                queue.set_for_messages();
            }
            let has_sasl_queue = conf.has_sasl_queue && sasl::uses_tokens(&raw);
            let log = Arc::new(Log::new(object.clone(), &name, &raw, conf.callbacks.log, queue));
            if let Some(mock) = &mut mock {
                mock.set_owner(me.as_ptr().cast(), Arc::clone(&log));
            }
            Self {
                tag: Tag::of::<Self>(),
                kind,
                name: c_text(&name),
                conf: HandleBox::new(Conf::copy_of(conf)),
                default_topic_conf: TopicConf::of_client(raw.of_topics(), conf.topic.as_deref()),
                raw: Mutex::new(raw),
                me: Weak::clone(me),
                main,
                sasl_queue: has_sasl_queue.then(queue),
                consumer_queue,
                core: OnceLock::new(),
                starting: Mutex::new(()),
                topics: Mutex::default(),
                partition_queues: Mutex::default(),
                other_queues: Mutex::default(),
                is_given_up: AtomicBool::new(false),
                is_closing: AtomicBool::new(false),
                membership,
                learned_brokers: Mutex::new(None),
                fatal: OnceLock::new(),
                offsets,
                simple_count: AtomicI64::new(0),
                offset_files: OffsetFiles::default(),
                interceptors: Interceptors::default(),
                log,
                transport,
                certificate_check: CertificateCheck::of(conf, me).map(Arc::new),
                observer_gates: OnceLock::new(),
                background: OnceLock::new(),
                starting_background: Mutex::new(()),
                mock: Mutex::new(mock),
            }
        });
        let client = quarantine::begin(client);
        let begun = client.check().and_then(|()| client.check_tokens()).and_then(|()| {
            client.intercept_new();
            client.begin().inspect_err(|_| {
                let _ = client.intercept_end(Instant::now() + DESTROY_TIMEOUT);
            })
        });
        if let Err(error) = begun {
            // A client that could not be made does not count, so that names follow each other.
            let _ = NUMBER.compare_exchange(number + 1, number, Ordering::Relaxed, Ordering::Relaxed);
            return Err(error);
        }
        Ok(client)
    }

    /// Creates a client, which the application has to destroy. Properties that are not set get these values.
    pub(crate) fn create(kind: ClientKind, conf: &Conf, defaults: Defaults) -> Result<Arc<Self>, String> {
        platform::stay_loaded();
        watch_forks();
        let client = Self::start(kind, conf, defaults)?;
        LIVE.get().fetch_add(1, Ordering::SeqCst);
        Ok(client)
    }

    /// Starts what runs: interceptors are there.
    fn begin(&self) -> Result<(), String> {
        let is_watched = self.interceptors.has(kind::OBSERVED);
        let _ = self.observer_gates.set(is_watched.then(Arc::<Gates>::default));
        let is_set = |name| self.raw.lock().get(name).is_ok_and(|servers| !servers.is_empty());
        let has_servers = is_set("bootstrap.servers") || is_set("bootstrap.controllers");
        self.note_configuration();
        self.interceptors.note(&self.log);
        let mock = self.mock.lock().as_deref().map(MockCluster::owner_is_there);
        if let Some(servers) = mock {
            let line = format!("Mock cluster enabled: `bootstrap.servers` is replaced by {servers}");
            self.log(5, c"MOCK", &line);
        }
        self.core().map_err(|error| error.to_string())?;
        if !has_servers {
            let line =
                "No `bootstrap.servers` configured: client will not be able to connect to Kafka cluster";
            self.log(5, c"CONFWARN", line);
        }
        if self.conf.callbacks.background_event.is_some() {
            self.start_background().map_err(|error| format!("can't start the background thread: {error}"))?;
        }
        Ok(())
    }

    /// Logs the configuration.
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
            let value = if is_secret(entry.property) { "[redacted]" } else { &entry.value };
            self.debug(Contexts::CONF, c"CONF", || format!("  {} = {value}", entry.property));
        }
    }

    /// Checks that the properties fit together, even if no broker is configured yet.
    fn check(&self) -> Result<(), String> {
        let raw = self.raw.lock().clone();
        if self.is_producer() {
            return EffectiveConfig::producer(&raw).map(drop).map_err(|error| error.to_string());
        }
        if self.kind == ClientKind::ShareConsumer {
            return EffectiveConfig::share_consumer(&raw).map(drop).map_err(|error| error.to_string());
        }
        let config = EffectiveConfig::consumer(&raw).map_err(|error| error.to_string())?;
        if !self.offsets.has_group() {
            return Ok(());
        }
        // A configuration that can't join a group is refused here, not at the call that subscribes.
        let group = GroupSettings::new(&config).map_err(|error| error.to_string())?;
        let cooperative = group.assignors.iter().filter(|assignor| assignor.is_cooperative()).count();
        if cooperative > 0 && cooperative < group.assignors.len() {
            return Err("`partition.assignment.strategy` mixes eager and cooperative assignors; all assignors of a member \
                        must use the same protocol"
                .to_owned());
        }
        Ok(())
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_new(kind: c_int, conf: *mut Conf, errstr: *mut c_char, errstr_size: usize) -> *const Client {
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the header demands a configuration or NULL, and a buffer of that size.
        unsafe {
            let failed = |text: &str| {
                put_text(errstr, errstr_size, text);
                set_last(code::_INVALID_ARG);
                ptr::null()
            };
            if !(0..=1).contains(&kind) {
                return failed("the type must be RD_KAFKA_PRODUCER or RD_KAFKA_CONSUMER");
            }
            let own;
            let given = if conf.is_null() {
                own = HandleBox::from_raw(rd_kafka_conf_new());
                own.as_deref()
            } else {
                Conf::changeable(conf).map(|conf| &*conf)
            };
            let Some(given) = given else {
                return failed("the configuration is destroyed or in use by a client");
            };
            let kind = if kind == 1 { ClientKind::Consumer } else { ClientKind::Producer };
            match Client::create(kind, given, &[]) {
                Ok(client) => {
                    quarantine::retire(conf);
                    set_last(code::NO_ERROR);
                    Arc::into_raw(client)
                }
                Err(error) => failed(&error),
            }
        }
    }
);
