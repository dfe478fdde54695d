//! `rd_kafka_conf_t` and `rd_kafka_topic_conf_t`: properties, callbacks and pointers of the application. The rows, ranges
//! and rules are `ottla_core::config`'s.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr,
};

use ottla::{
    ConfigError, ConfigValue, Profile, RawConfig,
    properties::{self, Kind, Scope},
};

use crate::{
    boundary::{Handle, Opaque, Tag, guarded_local, handle, malloc_text, put_text, text},
    client::Client,
    event::Event,
    graves::{self, HandleBox},
    interceptors::{ConfInterceptors, load_plugins},
    list::List,
    topic::Topic,
    transport::{CloseSocketCb, ConnectCb, OpenCb, ResolveCb, SocketCb},
    types::rd_kafka_message_t,
};

pub(crate) const CONF_UNKNOWN: c_int = -2;
pub(crate) const CONF_INVALID: c_int = -1;
pub(crate) const CONF_OK: c_int = 0;

pub(crate) type DrCb =
    unsafe extern "C" fn(*const Client, *mut c_void, usize, c_int, *mut c_void, *mut c_void);
pub(crate) type DrMsgCb = unsafe extern "C" fn(*const Client, *const rd_kafka_message_t, *mut c_void);
pub(crate) type ConsumeCb = unsafe extern "C" fn(*mut rd_kafka_message_t, *mut c_void);
pub(crate) type ListCb = unsafe extern "C" fn(*const Client, c_int, *mut List, *mut c_void);
pub(crate) type ErrorCb = unsafe extern "C" fn(*const Client, c_int, *const c_char, *mut c_void);
pub(crate) type ThrottleCb = unsafe extern "C" fn(*const Client, *const c_char, i32, c_int, *mut c_void);
pub(crate) type LogCb = unsafe extern "C" fn(*const Client, c_int, *const c_char, *const c_char);
pub(crate) type StatsCb = unsafe extern "C" fn(*const Client, *mut c_char, usize, *mut c_void) -> c_int;
pub(crate) type EventCb = unsafe extern "C" fn(*const Client, *mut Event, *mut c_void);
pub(crate) type PartitionerCb =
    unsafe extern "C" fn(*const Topic, *const c_void, usize, i32, *mut c_void, *mut c_void) -> i32;
pub(crate) type MsgOrderCmp =
    unsafe extern "C" fn(*const rd_kafka_message_t, *const rd_kafka_message_t) -> c_int;

/// `rd_kafka_conf_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Conf {
    tag: Tag,
    /// A client has it now: nothing can be changed any more.
    is_taken: bool,
    pub(crate) raw: RawConfig,
    pub(crate) callbacks: Callbacks,
    pub(crate) events: c_int,
    pub(crate) opaque: Opaque,
    pub(crate) topic: Option<HandleBox<TopicConf>>,
    pub(crate) interceptors: ConfInterceptors,
}

/// The application's functions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Callbacks {
    pub(crate) dr: Option<DrCb>,
    pub(crate) dr_msg: Option<DrMsgCb>,
    pub(crate) consume: Option<ConsumeCb>,
    pub(crate) rebalance: Option<ListCb>,
    pub(crate) offset_commit: Option<ListCb>,
    pub(crate) error: Option<ErrorCb>,
    pub(crate) throttle: Option<ThrottleCb>,
    pub(crate) log: Option<LogCb>,
    pub(crate) stats: Option<StatsCb>,
    pub(crate) background_event: Option<EventCb>,
    pub(crate) socket: Option<SocketCb>,
    pub(crate) connect: Option<ConnectCb>,
    pub(crate) closesocket: Option<CloseSocketCb>,
    pub(crate) open: Option<OpenCb>,
    pub(crate) resolve: Option<ResolveCb>,
}

/// `rd_kafka_topic_conf_t`.
#[repr(C)]
#[derive(Debug)]
pub struct TopicConf {
    tag: Tag,
    pub(crate) raw: RawConfig,
    pub(crate) opaque: Opaque,
    pub(crate) partitioner: Option<PartitionerCb>,
    pub(crate) msg_order_cmp: Option<MsgOrderCmp>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Conf {
    const KIND: u32 = 0x6f74_6301;
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for TopicConf {
    const KIND: u32 = 0x6f74_6302;
}

impl Conf {
    fn new() -> Self {
        Self {
            tag: Tag::of::<Self>(),
            is_taken: false,
            raw: RawConfig::new(Profile::Librdkafka),
            callbacks: Callbacks::default(),
            events: 0,
            opaque: Opaque(ptr::null_mut()),
            topic: None,
            interceptors: ConfInterceptors::default(),
        }
    }

    /// What a client keeps: nothing can be changed in it.
    pub(crate) fn copy_of(conf: &Self) -> Self {
        Self { is_taken: true, interceptors: conf.interceptors.clone(), ..conf.duplicate() }
    }

    fn duplicate(&self) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            is_taken: false,
            raw: self.raw.clone(),
            callbacks: self.callbacks,
            events: self.events,
            opaque: self.opaque,
            topic: self.topic.as_ref().map(|topic| HandleBox::new(topic.duplicate())),
            interceptors: ConfInterceptors::default(),
        }
    }

    /// What was said, the default topic's configuration included.
    pub(crate) fn merged(&self) -> RawConfig {
        let mut raw = self.raw.clone();
        if let Some(topic) = &self.topic {
            topic.add_to(&mut raw);
        }
        raw
    }

    /// Deprecated properties that were said and that what runs [`below`] is not told of.
    pub(crate) fn deprecated_here(&self) -> impl Iterator<Item = &'static str> {
        let raws = [Some(&self.raw), self.topic.as_deref().map(|topic| &topic.raw)];
        DEPRECATED.into_iter().filter(move |name| raws.into_iter().flatten().any(|raw| raw.is_modified(name)))
    }

    /// For a call that changes it.
    ///
    /// # Safety
    ///
    /// `conf` is NULL or a configuration.
    pub(crate) unsafe fn changeable<'a>(conf: *mut Self) -> Option<&'a mut Self> {
        // SAFETY: as the caller says; a configuration is used by one thread at a time.
        unsafe { handle(conf.cast_const()) }.filter(|conf| !conf.is_taken)?;
        // SAFETY: it was just checked.
        unsafe { conf.as_mut() }
    }
}

impl TopicConf {
    pub(crate) fn new() -> Self {
        Self {
            tag: Tag::of::<Self>(),
            raw: RawConfig::topic(Profile::Librdkafka),
            opaque: Opaque(ptr::null_mut()),
            partitioner: None,
            msg_order_cmp: None,
        }
    }

    pub(crate) fn duplicate(&self) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            raw: self.raw.clone(),
            opaque: self.opaque,
            partitioner: self.partitioner,
            msg_order_cmp: self.msg_order_cmp,
        }
    }

    /// What `said` and the default topic's configuration say together.
    pub(crate) fn of_client(said: RawConfig, default: Option<&Self>) -> Self {
        let mut conf = default.map_or_else(Self::new, Self::duplicate);
        let default = std::mem::replace(&mut conf.raw, said);
        for entry in default.iter().filter(|entry| entry.is_modified) {
            // What one of the two takes, the other does.
            let _ = conf.raw.set(entry.property, &entry.value);
        }
        conf
    }

    /// Adds what was said of the topic to a client's configuration.
    pub(crate) fn add_to(&self, raw: &mut RawConfig) {
        let entries = self.raw.iter().filter(|entry| entry.is_modified && entry.value != "inherit");
        for entry in entries.filter(|entry| !OLD_CONSUMER.contains(&entry.property)) {
            // What one topic takes, the other does, or it keeps what it has.
            let _ = raw.set(entry.property, &entry.value);
        }
    }
}

/// What only the older consumer's calls look at, which they do themselves. Some of these names mean something else in a
/// client's configuration.
const OLD_CONSUMER: [&str; 6] = [
    "auto.commit.enable",
    "auto.commit.interval.ms",
    "consume.callback.max.messages",
    "offset.store.method",
    "offset.store.path",
    "offset.store.sync.interval.ms",
];

/// Those of [`OLD_CONSUMER`] that the original calls deprecated.
const DEPRECATED: [&str; 4] =
    ["auto.commit.enable", "offset.store.method", "offset.store.path", "offset.store.sync.interval.ms"];

/// The configuration for what runs below: it would warn of properties that it does not know to have an effect here.
pub(crate) fn below(raw: &RawConfig) -> RawConfig {
    let mut raw = raw.clone();
    for name in OLD_CONSUMER {
        let _ = raw.unset(name);
    }
    raw
}

fn set(raw: &mut RawConfig, name: &str, value: Option<&str>) -> Result<(), ConfigError> {
    match value {
        Some(value) => raw.set(name, value),
        None => raw.unset(name),
    }
}

/// Tells the outcome of setting a property.
///
/// # Safety
///
/// `errstr` has `size` bytes or is NULL.
unsafe fn told(outcome: Result<(), ConfigError>, errstr: *mut c_char, size: usize) -> c_int {
    match outcome {
        Ok(()) => CONF_OK,
        Err(error) => {
            // SAFETY: as the caller says.
            unsafe { put_text(errstr, size, &error.to_string()) };
            if error.is_unknown_property() { CONF_UNKNOWN } else { CONF_INVALID }
        }
    }
}

/// Writes a value to the application's buffer, or only its size.
///
/// # Safety
///
/// `size` is writable; `dest` is NULL or has as many bytes as `size` says.
unsafe fn give(value: Option<String>, dest: *mut c_char, size: *mut usize) -> c_int {
    let Some(value) = value else { return CONF_UNKNOWN };
    if size.is_null() {
        return CONF_INVALID;
    }
    // SAFETY: as the caller says.
    unsafe {
        put_text(dest, if dest.is_null() { 0 } else { *size }, &value);
        *size = value.len() + 1;
    }
    CONF_OK
}

/// The properties of one scope that have a value, and what was said besides: what is dumped can be set again.
fn dump(raw: &RawConfig, scope: Scope, cntp: *mut usize) -> *mut *const c_char {
    let is_shown = |entry: &ConfigValue| entry.is_modified || entry.scope == scope && !entry.value.is_empty();
    let entries: Vec<_> = raw.iter().filter(is_shown).collect();
    // SAFETY: the array has room for two texts per entry.
    unsafe {
        let array = libc::calloc(entries.len() * 2 + 1, size_of::<*const c_char>()).cast::<*const c_char>();
        if array.is_null() {
            return array;
        }
        for (place, entry) in entries.iter().enumerate() {
            *array.add(place * 2) = malloc_text(entry.property.as_bytes());
            *array.add(place * 2 + 1) = malloc_text(entry.value.as_bytes());
        }
        if !cntp.is_null() {
            *cntp = entries.len() * 2;
        }
        array
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_conf_new() -> *mut Conf {
    guarded_local(ptr::null_mut(), || Box::into_raw(Box::new(Conf::new())))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_destroy(conf: *mut Conf) {
    guarded_local((), || {
        // SAFETY: NULL or a configuration, says the caller, who gives it up.
        if let Some(changeable) = unsafe { Conf::changeable(conf) } {
            changeable.interceptors.destroy();
            // SAFETY: as above.
            unsafe { graves::bury(conf) };
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_dup(conf: *const Conf) -> *mut Conf {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a configuration, says the caller.
        unsafe { handle(conf) }
            .map_or(ptr::null_mut(), |conf: &Conf| intercepted_copy(conf, conf.duplicate(), &mut []))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_dup_filter(
    conf: *const Conf,
    filter_cnt: usize,
    filter: *const *const c_char,
) -> *mut Conf {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a configuration, says the caller.
        let Some(conf) = (unsafe { handle(conf) }) else { return ptr::null_mut() };
        let mut copy = Conf::duplicate(conf);
        let count = if filter.is_null() { 0 } else { filter_cnt };
        // SAFETY: the array has so many texts, says the caller.
        let mut raw_filters: Vec<_> = (0..count).map(|place| unsafe { *filter.add(place) }).collect();
        // SAFETY: as above.
        let filters: Vec<_> = (0..count).filter_map(|place| unsafe { text(*filter.add(place)) }).collect();
        for entry in conf.raw.iter() {
            if filters.iter().any(|filter| entry.property.starts_with(&**filter)) {
                let _ = copy.raw.unset(entry.property);
            }
        }
        intercepted_copy(conf, copy, &mut raw_filters)
    })
}

/// A copy as C gets it: the interceptors of the original and the plug-ins have seen it.
fn intercepted_copy(conf: &Conf, copy: Conf, filters: &mut [*const c_char]) -> *mut Conf {
    let plugins = copy.raw.get("plugin.library.paths").unwrap_or_default().to_owned();
    let copy = Box::into_raw(Box::new(copy));
    conf.interceptors.dup(copy, conf, filters);
    // They were loaded for the original, and what fails now failed then.
    let _ = load_plugins(copy, &plugins);
    copy
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_set(
    conf: *mut Conf,
    name: *const c_char,
    value: *const c_char,
    errstr: *mut c_char,
    errstr_size: usize,
) -> c_int {
    guarded_local(CONF_INVALID, || {
        // SAFETY: a configuration, texts, and a buffer of that size, or NULL, says the caller.
        unsafe {
            let (Some(changeable), Some(known)) = (Conf::changeable(conf), text(name)) else {
                put_text(
                    errstr,
                    errstr_size,
                    "no configuration, or one that a client has already, or no name",
                );
                return CONF_INVALID;
            };
            let interceptors = changeable.interceptors.clone();
            if let Some(told) = interceptors.set(conf, name, value, errstr, errstr_size) {
                return told;
            }
            if &*known == "plugin.library.paths"
                && let Err(why) = load_plugins(conf, &text(value).unwrap_or_default())
            {
                put_text(errstr, errstr_size, &why);
                return CONF_INVALID;
            }
            let (Some(conf), name) = (Conf::changeable(conf), known) else { return CONF_INVALID };
            let outcome = set(&mut conf.raw, &name, text(value).as_deref());
            if outcome.is_ok() && &*name == "enabled_events" {
                conf.events = conf.raw.get(&name).ok().and_then(|bits| bits.parse().ok()).unwrap_or(0);
            }
            told(outcome, errstr, errstr_size)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_get(
    conf: *const Conf,
    name: *const c_char,
    dest: *mut c_char,
    dest_size: *mut usize,
) -> c_int {
    guarded_local(CONF_INVALID, || {
        // SAFETY: a configuration, a text, and a buffer of that size, or NULL, says the caller.
        unsafe {
            let (Some(conf), Some(name)) = (handle(conf), text(name)) else { return CONF_INVALID };
            give(Conf::merged(conf).get(&name).ok().map(str::to_owned), dest, dest_size)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_dump(conf: *const Conf, cntp: *mut usize) -> *mut *const c_char {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a configuration, says the caller.
        unsafe { handle(conf) }
            .map_or(ptr::null_mut(), |conf: &Conf| dump(&conf.merged(), Scope::Global, cntp))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_dump_free(arr: *mut *const c_char, cnt: usize) {
    if arr.is_null() {
        return;
    }
    // SAFETY: an array of a dump with so many texts, says the caller.
    unsafe {
        for place in 0..cnt {
            libc::free((*arr.add(place)).cast_mut().cast());
        }
        libc::free(arr.cast());
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_properties_show(fp: *mut libc::FILE) {
    guarded_local((), || {
        if fp.is_null() {
            return;
        }
        let mut page =
            format!("{:40} | C/P | {:32} | {:>16} | Description\n", "Property", "Range", "Default");
        for property in properties::properties() {
            let side = match property.side {
                properties::Side::Both => "*",
                properties::Side::Consumer => "C",
                properties::Side::Producer => "P",
            };
            let range = if property.kind == Kind::Call { String::new() } else { property.range() };
            let doc = match property.alias {
                Some(alias) => format!("Another name of {}.", alias.of),
                None => property.doc.to_owned(),
            };
            let scope = if property.scope == Scope::Topic { " (topic)" } else { "" };
            page.push_str(&format!(
                "{:40} |  {side}  | {range:32} | {:>16} | {doc}{scope}\n",
                property.name, property.default
            ));
        }
        let page = CString::new(page).unwrap_or_default();
        // SAFETY: an open file, says the caller, and a text.
        unsafe { libc::fputs(page.as_ptr(), fp) };
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_set_opaque(conf: *mut Conf, opaque: *mut c_void) {
    // SAFETY: NULL or a configuration, says the caller.
    if let Some(conf) = unsafe { Conf::changeable(conf) } {
        conf.opaque = Opaque(opaque);
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_set_events(conf: *mut Conf, events: c_int) {
    // SAFETY: NULL or a configuration, says the caller.
    if let Some(conf) = unsafe { Conf::changeable(conf) } {
        conf.events = events;
        // The property shows the same; a set of bits that is no positive number can't be said there.
        let _ = conf.raw.set("enabled_events", &events.max(0).to_string());
    }
}

macro_rules! callback {
    ($($name:ident, $field:ident: $kind:ty;)*) => {$(
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(conf: *mut Conf, callback: Option<$kind>) {
            // SAFETY: NULL or a configuration, says the caller.
            if let Some(conf) = unsafe { Conf::changeable(conf) } {
                conf.callbacks.$field = callback;
            }
        }
    )*};
}

callback! {
    rd_kafka_conf_set_dr_cb, dr: DrCb;
    rd_kafka_conf_set_dr_msg_cb, dr_msg: DrMsgCb;
    rd_kafka_conf_set_consume_cb, consume: ConsumeCb;
    rd_kafka_conf_set_rebalance_cb, rebalance: ListCb;
    rd_kafka_conf_set_offset_commit_cb, offset_commit: ListCb;
    rd_kafka_conf_set_error_cb, error: ErrorCb;
    rd_kafka_conf_set_throttle_cb, throttle: ThrottleCb;
    rd_kafka_conf_set_log_cb, log: LogCb;
    rd_kafka_conf_set_stats_cb, stats: StatsCb;
    rd_kafka_conf_set_background_event_cb, background_event: EventCb;
    rd_kafka_conf_set_socket_cb, socket: SocketCb;
    rd_kafka_conf_set_connect_cb, connect: ConnectCb;
    rd_kafka_conf_set_closesocket_cb, closesocket: CloseSocketCb;
    rd_kafka_conf_set_open_cb, open: OpenCb;
    rd_kafka_conf_set_resolve_cb, resolve: ResolveCb;
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_set_default_topic_conf(conf: *mut Conf, topic_conf: *mut TopicConf) {
    guarded_local((), || {
        // SAFETY: NULL or configurations, says the caller, who gives the topic's up.
        unsafe {
            let Some(conf) = Conf::changeable(conf) else { return };
            if conf.topic.as_ref().is_some_and(|own| own.as_ptr() == topic_conf) {
                return;
            }
            if let Some(topic) = HandleBox::from_raw(topic_conf) {
                conf.topic = Some(topic);
            }
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_conf_get_default_topic_conf(conf: *mut Conf) -> *mut TopicConf {
    // SAFETY: NULL or a configuration, says the caller.
    let topic = unsafe { Conf::changeable(conf) }.and_then(|conf| conf.topic.as_mut());
    topic.map_or(ptr::null_mut(), |topic| topic.as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_topic_conf_new() -> *mut TopicConf {
    guarded_local(ptr::null_mut(), || Box::into_raw(Box::new(TopicConf::new())))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_dup(conf: *const TopicConf) -> *mut TopicConf {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a configuration, says the caller.
        unsafe { handle(conf) }
            .map_or(ptr::null_mut(), |conf: &TopicConf| Box::into_raw(Box::new(conf.duplicate())))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_default_topic_conf_dup(rk: *const Client) -> *mut TopicConf {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a client, says the caller.
        unsafe { Client::of(rk) }.map_or(ptr::null_mut(), |client| {
            Box::into_raw(Box::new(client.default_topic_conf().duplicate()))
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_destroy(conf: *mut TopicConf) {
    // SAFETY: NULL or a configuration, says the caller, who gives it up.
    guarded_local((), || unsafe { graves::bury(conf) });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_set(
    conf: *mut TopicConf,
    name: *const c_char,
    value: *const c_char,
    errstr: *mut c_char,
    errstr_size: usize,
) -> c_int {
    guarded_local(CONF_INVALID, || {
        // SAFETY: a configuration, texts, and a buffer of that size, or NULL, says the caller.
        unsafe {
            let (Some(_), Some(name)) = (handle(conf.cast_const()), text(name)) else {
                put_text(errstr, errstr_size, "no topic configuration, or no name");
                return CONF_INVALID;
            };
            // A property of the client is none of a topic.
            let known =
                properties::find(Scope::Topic, &name).is_none_or(|property| property.scope == Scope::Topic);
            if !known {
                put_text(errstr, errstr_size, &format!("`{name}` is no property of a topic"));
                return CONF_UNKNOWN;
            }
            told(set(&mut (*conf).raw, &name, text(value).as_deref()), errstr, errstr_size)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_get(
    conf: *const TopicConf,
    name: *const c_char,
    dest: *mut c_char,
    dest_size: *mut usize,
) -> c_int {
    guarded_local(CONF_INVALID, || {
        // SAFETY: a configuration, a text, and a buffer of that size, or NULL, says the caller.
        unsafe {
            let (Some(conf), Some(name)) = (handle::<TopicConf>(conf), text(name)) else {
                return CONF_INVALID;
            };
            give(conf.raw.get(&name).ok().map(str::to_owned), dest, dest_size)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_dump(
    conf: *const TopicConf,
    cntp: *mut usize,
) -> *mut *const c_char {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a configuration, says the caller.
        unsafe { handle(conf) }
            .map_or(ptr::null_mut(), |conf: &TopicConf| dump(&conf.raw, Scope::Topic, cntp))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_set_opaque(conf: *mut TopicConf, opaque: *mut c_void) {
    // SAFETY: NULL or a configuration, says the caller.
    unsafe {
        if handle(conf.cast_const()).is_some() {
            (*conf).opaque = Opaque(opaque);
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_set_partitioner_cb(
    conf: *mut TopicConf,
    partitioner: Option<PartitionerCb>,
) {
    // SAFETY: NULL or a configuration, says the caller.
    unsafe {
        if handle(conf.cast_const()).is_some() {
            (*conf).partitioner = partitioner;
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_topic_conf_set_msg_order_cmp(
    conf: *mut TopicConf,
    msg_order_cmp: Option<MsgOrderCmp>,
) {
    // SAFETY: NULL or a configuration, says the caller.
    unsafe {
        if handle(conf.cast_const()).is_some() {
            (*conf).msg_order_cmp = msg_order_cmp;
        }
    }
}
