//! `rd_kafka_topic_t`: a topic of a client. There is one object per name; the application's handles are references to it.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla::OffsetReset;
use parking_lot::Mutex;

use crate::{
    boundary::{Handle, Tag, guarded_for, guarded_local, handle, text},
    client::{Client, Producing},
    codes::code,
    conf::TopicConf,
    error::set_last,
    graves::{self, Counted, Graves},
};

/// A topic of a client.
#[repr(C)]
#[derive(Debug)]
pub struct Topic {
    tag: Tag,
    /// References that the application has: it can't give up more than it got.
    handles: AtomicUsize,
    client: Arc<Client>,
    name: CString,
    conf: TopicConf,
    /// It was given to the topic. Otherwise it is that of all topics of the client.
    has_own_conf: bool,
    /// The way to the producer, once something was produced.
    producing: OnceLock<Producing>,
    starting: Mutex<()>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Topic {
    const KIND: u32 = 0x6f74_7401;
}

static GRAVES: Graves = Graves::new();

// SAFETY: see `drop` and `new`.
unsafe impl Counted for Topic {
    fn graves() -> &'static Graves {
        &GRAVES
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        self.tag.clear();
        graves::end(self);
    }
}

impl Topic {
    pub(crate) fn new(client: Arc<Client>, name: &str, own: Option<TopicConf>) -> Arc<Self> {
        let (tag, name) = (Tag::of::<Self>(), CString::new(name).unwrap_or_default());
        let has_own_conf = own.is_some();
        let conf = own.unwrap_or_else(|| client.default_topic_conf().duplicate());
        let (handles, producing, starting) = (AtomicUsize::new(0), OnceLock::new(), Mutex::new(()));
        graves::begin(Arc::new(Self { tag, handles, client, name, conf, has_own_conf, producing, starting }))
    }

    #[inline]
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// What was said of it, or else of all topics of the client.
    pub(crate) const fn conf(&self) -> &TopicConf {
        &self.conf
    }

    /// Its configuration was given to it and says everything, whatever the client's says of topics.
    pub(crate) const fn has_own_conf(&self) -> bool {
        self.has_own_conf
    }

    /// The way to the producer.
    #[inline]
    pub(crate) fn producing(&self) -> Result<&Producing, c_int> {
        match self.producing.get() {
            Some(producing) => Ok(producing),
            None => self.start_producing(),
        }
    }

    /// What holds for the topic.
    pub(crate) fn property(&self, name: &str) -> &str {
        self.conf.raw.get(name).unwrap_or_default()
    }

    /// How often the offsets of its partitions are committed when the older calls read them, if that is done by itself.
    pub(crate) fn auto_commit_interval(&self) -> Option<Duration> {
        let millis = self.property("auto.commit.interval.ms").parse().unwrap_or(0);
        (self.property("auto.commit.enable") == "true" && millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Tells the consumer where this topic goes on when its offset isn't there, if it has a configuration of its own.
    pub(crate) fn set_auto_offset_reset(&self) {
        if self.has_own_conf
            && let Some(consumer) = self.client.consumer()
        {
            let reset = OffsetReset::of(self.property("auto.offset.reset"));
            consumer.set_auto_offset_reset(self.name(), reset);
        }
    }

    #[cold]
    fn start_producing(&self) -> Result<&Producing, c_int> {
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

    /// A reference for the application.
    fn into_raw(self: Arc<Self>) -> *const Self {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Arc::into_raw(self)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_new(
    rk: *const Client,
    topic: *const c_char,
    conf: *mut TopicConf,
) -> *const Topic {
    guarded_for(rk, ptr::null(), || {
        // SAFETY: a client, a text and a configuration or NULL, says the caller.
        let (client, name, given) = unsafe { (Client::of(rk), text(topic), handle(conf.cast_const())) };
        let (Some(client), Some(name)) = (client, name) else {
            set_last(code::_INVALID_ARG);
            return ptr::null();
        };
        let is_new = client.topic_if_any(&name).is_none();
        if let (true, Some(Err(error))) = (is_new, given.map(|conf| client.check_topic_conf(conf))) {
            let line = format!("the configuration of topic \"{name}\" contradicts the client's: {error}");
            client.log(3, c"TOPICCONF", &line);
            // SAFETY: a configuration, which no topic has: it is freed all the same.
            unsafe { graves::bury(conf) };
            set_last(code::_INVALID_ARG);
            return ptr::null();
        }
        match client.topic(&name, given.map(TopicConf::duplicate)) {
            Ok(topic) => {
                // SAFETY: NULL or a configuration, which belongs to the topic from now on.
                unsafe { graves::bury(conf) };
                topic.set_auto_offset_reset();
                topic.into_raw()
            }
            Err(code) => {
                set_last(code);
                ptr::null()
            }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_destroy(rkt: *const Topic) {
    guarded_local((), || {
        // SAFETY: NULL or a handle, says the caller, who gives its reference up.
        unsafe {
            let Some(topic) = handle::<Topic>(rkt) else { return };
            let one_less = |handles: usize| handles.checked_sub(1);
            if topic.handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less).is_ok() {
                drop(Arc::from_raw(rkt));
            }
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_name(rkt: *const Topic) -> *const c_char {
    // SAFETY: NULL or a topic, says the caller.
    unsafe { handle(rkt) }.map_or(ptr::null(), |topic: &Topic| topic.name.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_opaque(rkt: *const Topic) -> *mut c_void {
    // SAFETY: NULL or a topic, says the caller.
    unsafe { handle(rkt) }.map_or(ptr::null_mut(), |topic: &Topic| topic.conf.opaque.0)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_partition_available(rkt: *const Topic, partition: i32) -> c_int {
    guarded_for(rkt, 0, || {
        // SAFETY: NULL or a topic, says the caller.
        let topic = unsafe { handle::<Topic>(rkt) };
        let producing = topic.and_then(|topic| topic.producing().ok());
        c_int::from(producing.is_some_and(|producing| producing.topic.has_leader(partition)))
    })
}
