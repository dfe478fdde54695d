//! `rd_kafka_topic_t`: a topic of a client. There is one object per name; the application's handles are references to it.
//!
//! # Pitfalls
//!
//! - An application may destroy a topic or queue more often than it created it. The client holds its own reference, so
//!   the application's references are counted separately (`table.c`).
//! - A topic configuration in C is complete: an empty one has `acks=all` even if the client has `acks=0`. In Rust, only
//!   explicitly set properties differ from the producer's
//!   (`topics_with_own_configuration_share_their_clients_connections`).

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla_core::config::OffsetReset;

use crate::{
    client::{core::Producing, handle::Client, topic_conf::TopicConf},
    ffi::{
        argument::Ref,
        boundary::{Handle, Tag, handle, text},
        codes::{RespErr, code},
        error::set_last,
        export,
        lock::Mutex,
        object::Object,
        quarantine::{self, Counted, Quarantine},
        types::{rd_kafka_message_t, rd_kafka_topic_t},
    },
};

/// A topic of a client.
#[repr(C)]
#[derive(Debug)]
pub struct Topic {
    tag: Tag,
    /// The number of the application's references, which limits how many it can give up.
    handles: AtomicUsize,
    client: Arc<Client>,
    name: CString,
    conf: TopicConf,
    /// True if the configuration was passed for this topic; false if it is the one of all topics of the client.
    has_own_conf: bool,
    /// The link to the producer, once something was produced.
    producing: OnceLock<Producing>,
    starting: Mutex<()>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Topic {
    const KIND: u32 = 0x6f74_7401;
}

static QUARANTINE: Quarantine = Quarantine::new();

// SAFETY: see `drop` and `new`.
unsafe impl Counted for Topic {
    fn quarantine() -> &'static Quarantine {
        &QUARANTINE
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        self.tag.clear();
        quarantine::end(self);
    }
}

impl Topic {
    pub(crate) fn new(client: Arc<Client>, name: &str, own: Option<TopicConf>) -> Arc<Self> {
        let (tag, name) = (Tag::of::<Self>(), CString::new(name).unwrap_or_default());
        let has_own_conf = own.is_some();
        let conf = own.unwrap_or_else(|| client.default_topic_conf().duplicate());
        let (handles, producing, starting) = (AtomicUsize::new(0), OnceLock::new(), Mutex::new(()));
        quarantine::begin(Arc::new(Self {
            tag,
            handles,
            client,
            name,
            conf,
            has_own_conf,
            producing,
            starting,
        }))
    }

    #[inline]
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the topic of a message; `None` for an error that has none.
    pub(crate) fn of_message(message: &rd_kafka_message_t) -> Option<&Self> {
        // SAFETY: a message of this library keeps its topic, and only `as_c` and `object` set the address.
        unsafe { message.rkt.cast::<Self>().as_ref() }
    }

    /// Returns the address that messages and functions of the application get.
    #[inline]
    pub(crate) const fn as_c(&self) -> *const rd_kafka_topic_t {
        ptr::from_ref(self).cast()
    }

    /// Returns the topic as an object that messages keep.
    pub(crate) fn object(self: Arc<Self>) -> Object<rd_kafka_topic_t> {
        Object::new(self)
    }

    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// Returns the topic's configuration, or that of all topics of the client.
    pub(crate) const fn conf(&self) -> &TopicConf {
        &self.conf
    }

    /// Returns true if a configuration was passed for this topic, which replaces the client's topic properties
    /// completely.
    pub(crate) const fn has_own_conf(&self) -> bool {
        self.has_own_conf
    }

    /// Returns the link to the producer.
    #[inline]
    pub(crate) fn producing(&self) -> Result<&Producing, RespErr> {
        match self.producing.get() {
            Some(producing) => Ok(producing),
            None => self.start_producing(),
        }
    }

    /// Returns the value of a property for this topic.
    pub(crate) fn property(&self, name: &str) -> &str {
        self.conf.raw.get(name).unwrap_or_default()
    }

    /// Returns the interval of automatic commits for the partitions that the older calls consume; `None` if automatic
    /// commits are disabled.
    pub(crate) fn auto_commit_interval(&self) -> Option<Duration> {
        let millis = self.property("auto.commit.interval.ms").parse().unwrap_or(0);
        (self.property("auto.commit.enable") == "true" && millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Passes the topic's own `auto.offset.reset` to the consumer, if the topic has a configuration of its own.
    pub(crate) fn set_auto_offset_reset(&self) {
        if self.has_own_conf
            && let Some(consumer) = self.client.consumer()
        {
            let reset = OffsetReset::of(self.property("auto.offset.reset"));
            consumer.set_auto_offset_reset(self.name(), reset);
        }
    }

    #[cold]
    fn start_producing(&self) -> Result<&Producing, RespErr> {
        self.client.ensure_started()?;
        let _starting = self.starting.lock();
        match self.producing.get() {
            Some(producing) => Ok(producing),
            None => {
                let producing = self.client.producing(self)?;
                Ok(self.producing.get_or_init(|| producing))
            }
        }
    }

    /// Adds a reference for the application.
    fn into_raw(self: Arc<Self>) -> *const Self {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Arc::into_raw(self)
    }
}

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_topic_new(rk: Ref<Client>, topic: *const c_char, conf: *mut TopicConf) -> *const Topic {
        // SAFETY: the header demands a client, a text and a configuration or NULL.
        let (client, name, given) = unsafe { (rk.get(), text(topic), handle(conf.cast_const())) };
        let (Some(client), Some(name)) = (client, name) else {
            set_last(code::_INVALID_ARG);
            return ptr::null();
        };
        let is_new = client.topic_if_any(&name).is_none();
        if let (true, Some(Err(error))) = (is_new, given.map(|conf| client.check_topic_conf(conf))) {
            let line = format!("the configuration of topic \"{name}\" contradicts the client's: {error}");
            client.log(3, c"TOPICCONF", &line);
            // SAFETY: a configuration that no topic uses: it is freed even if the call fails.
            unsafe { quarantine::retire(conf) };
            set_last(code::_INVALID_ARG);
            return ptr::null();
        }
        match client.topic(&name, given.map(TopicConf::duplicate)) {
            Ok(topic) => {
                // SAFETY: NULL or a configuration, which belongs to the topic from now on.
                unsafe { quarantine::retire(conf) };
                topic.set_auto_offset_reset();
                // The metadata request for the topic may create it. Without servers there is no broker to send it to.
                if client.is_producer() {
                    let _ = topic.producing();
                } else if let (true, Some(consumer)) = (is_new, client.consumer()) {
                    consumer.request_topic(topic.name());
                }
                topic.into_raw()
            }
            Err(code) => {
                set_last(code);
                ptr::null()
            }
        }
    }
);

export!(
    #[on(rkt, ())]
    fn rd_kafka_topic_destroy(rkt: *const Topic) {
        // SAFETY: the header demands NULL or a handle; the caller gives up its reference.
        unsafe {
            let Some(topic) = handle::<Topic>(rkt) else { return };
            let one_less = |handles: usize| handles.checked_sub(1);
            if topic.handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less).is_ok() {
                drop(Arc::from_raw(rkt));
            }
        }
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_topic_name(rkt: Ref<Topic>) -> *const c_char {
        rkt.get().map_or(ptr::null(), |topic: &Topic| topic.name.as_ptr())
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_opaque(rkt: Ref<Topic>) -> *mut c_void {
        rkt.get().map_or(ptr::null_mut(), |topic: &Topic| topic.conf.opaque.0)
    }
);

export!(
    #[on(rkt, 0)]
    fn rd_kafka_topic_partition_available(rkt: Ref<Topic>, partition: i32) -> c_int {
        let topic = rkt.get();
        let producing = topic.and_then(|topic| topic.producing().ok());
        c_int::from(producing.is_some_and(|producing| producing.topic.has_leader(partition)))
    }
);
