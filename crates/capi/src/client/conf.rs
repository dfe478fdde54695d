//! `rd_kafka_conf_t`: properties, callbacks and pointers of the application. The properties, ranges and rules are
//! defined in `ottla_core::config`.

use std::{
    borrow::Cow,
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
};

use ottla_core::config::{
    Profile, RawConfig, table as properties,
    table::{Kind, Scope},
};

use ottla::PassedCredentials;

use crate::{
    client::{
        callbacks::{
            Callbacks, CloseSocketCb, ConnectCb, ConsumeCb, DrCb, DrMsgCb, ErrorCb, EventCb, ListCb, LogCb,
            OpenCb, ResolveCb, SocketCb, StatsCb, ThrottleCb, TokenCb,
        },
        plugins::{ConfInterceptors, load_plugins},
        property::{CONF_INVALID, CONF_OK, report, set},
        topic_conf::{OLD_CONSUMER, TopicConf},
    },
    ffi::{
        argument::{Buffer, Given, Ref, RefMut, Text},
        boundary::{Handle, Opaque, Tag, c_text, handle, text},
        cancel::Uncancelled,
        export,
        quarantine::{self, HandleBox},
    },
};

/// `rd_kafka_conf_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Conf {
    tag: Tag,
    /// True once a client uses it: nothing can be changed any more.
    is_taken: bool,
    pub(crate) raw: RawConfig,
    pub(crate) callbacks: Callbacks,
    pub(crate) events: c_int,
    pub(crate) opaque: Opaque,
    /// Certificates and the key that were set by `rd_kafka_conf_set_ssl_cert`.
    pub(crate) credentials: PassedCredentials,
    /// True if token requests go to a queue of their own.
    pub(crate) has_sasl_queue: bool,
    /// The default topic configuration: the topic properties that were set, or the application's object.
    pub(crate) topic: Option<HandleBox<TopicConf>>,
    /// True if the application's object replaced topic properties that were set, which are lost.
    pub(crate) has_lost_topic_properties: bool,
    pub(crate) interceptors: ConfInterceptors,
    /// The properties that plug-ins accepted, as they were set: the plug-ins of a copy get them again.
    taken: Vec<(CString, Option<CString>)>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Conf {
    const KIND: u32 = 0x6f74_6301;
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
            credentials: PassedCredentials::default(),
            has_sasl_queue: false,
            topic: None,
            has_lost_topic_properties: false,
            interceptors: ConfInterceptors::default(),
            taken: Vec::new(),
        }
    }

    /// Returns the copy that a client keeps. It can't be changed.
    pub(crate) fn copy_of(conf: &Self) -> Self {
        Self {
            is_taken: true,
            interceptors: conf.interceptors.clone(),
            taken: conf.taken.clone(),
            ..conf.duplicate()
        }
    }

    fn duplicate(&self) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            is_taken: false,
            raw: self.raw.clone(),
            callbacks: self.callbacks,
            events: self.events,
            opaque: self.opaque,
            credentials: self.credentials.clone(),
            has_sasl_queue: self.has_sasl_queue,
            topic: self.topic.as_ref().map(|topic| HandleBox::new(topic.duplicate())),
            has_lost_topic_properties: self.has_lost_topic_properties,
            interceptors: ConfInterceptors::default(),
            taken: Vec::new(),
        }
    }

    /// Returns all properties, including those of the default topic configuration.
    pub(crate) fn merged(&self) -> RawConfig {
        let mut raw = self.raw.clone();
        if let Some(topic) = &self.topic {
            topic.add_to(&mut raw);
        }
        raw
    }

    /// Returns the deprecated properties that were explicitly set and that are missing in the configuration [`below`],
    /// so that the core does not warn of them.
    pub(crate) fn deprecated_here(&self) -> impl Iterator<Item = &'static str> {
        let raws = [Some(&self.raw), self.topic.as_deref().map(|topic| &topic.raw)];
        DEPRECATED.into_iter().filter(move |name| raws.into_iter().flatten().any(|raw| raw.is_modified(name)))
    }

    /// Returns the configuration that C passed to be changed, unless it is NULL, destroyed, or in use by a client.
    pub(crate) fn passed_mut(conf: RefMut<'_, Self>) -> Option<&mut Self> {
        conf.get().filter(|conf| !conf.is_taken)
    }

    /// As [`Conf::passed_mut`], for calls that need the address, too, because interceptors get it.
    ///
    /// # Safety
    ///
    /// `conf` is NULL or a configuration.
    pub(crate) unsafe fn changeable<'a>(conf: *mut Self) -> Option<&'a mut Self> {
        // SAFETY: by the contract of this function; a configuration is used by one thread at a time.
        unsafe { handle(conf.cast_const()) }.filter(|conf| !conf.is_taken)?;
        // SAFETY: the pointer was just checked.
        unsafe { conf.as_mut() }
    }
}

/// The properties of [`OLD_CONSUMER`] that librdkafka marks as deprecated.
const DEPRECATED: [&str; 4] =
    ["auto.commit.enable", "offset.store.method", "offset.store.path", "offset.store.sync.interval.ms"];

/// Returns the configuration for the core, without the properties that only this crate applies: the core would warn
/// that they have no effect. A client's configuration has the client's property where a topic has one of the same name.
pub(crate) fn below(raw: &RawConfig) -> RawConfig {
    let mut raw = raw.clone();
    for name in OLD_CONSUMER.into_iter().filter(|name| *name != "auto.commit.interval.ms") {
        let _ = raw.unset(name);
    }
    raw
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_conf_new() -> *mut Conf {
        Box::into_raw(Box::new(Conf::new()))
    }
);

export!(
    #[local(())]
    fn rd_kafka_conf_destroy(conf: *mut Conf) {
        // SAFETY: the header demands NULL or a configuration, whose ownership passes to this call.
        if let Some(changeable) = unsafe { Conf::changeable(conf) } {
            changeable.interceptors.destroy();
            // SAFETY: as above.
            unsafe { quarantine::retire(conf) };
        }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_conf_dup(conf: Ref<Conf>) -> *mut Conf {
        conf.get().map_or(ptr::null_mut(), |conf| intercepted_copy(conf, conf.duplicate(), &mut []))
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_conf_dup_filter(
        conf: Ref<Conf>,
        filter_cnt: usize,
        filter: *const *const c_char,
    ) -> *mut Conf {
        let Some(conf) = conf.get() else { return ptr::null_mut() };
        let mut copy = Conf::duplicate(conf);
        let count = if filter.is_null() { 0 } else { filter_cnt };
        // SAFETY: the header demands that the array has this number of texts.
        let mut raw_filters: Vec<_> = (0..count).map(|at| unsafe { *filter.add(at) }).collect();
        // SAFETY: as above.
        let filters: Vec<_> = (0..count).filter_map(|at| unsafe { text(*filter.add(at)) }).collect();
        for entry in conf.raw.iter() {
            if filters.iter().any(|filter| entry.property.starts_with(&**filter)) {
                let _ = copy.raw.unset(entry.property);
            }
        }
        intercepted_copy(conf, copy, &mut raw_filters)
    }
);

/// Returns a copy for the application. Interceptors have seen every property, and the plug-ins of the copy get the
/// properties that the plug-ins of the original accepted.
fn intercepted_copy(conf: &Conf, copy: Conf, filters: &mut [*const c_char]) -> *mut Conf {
    let entries: Vec<_> = copy.raw.iter().collect();
    let copy = Box::into_raw(Box::new(copy));
    conf.interceptors.dup(copy, conf, filters);
    for entry in &entries {
        if entry.property == "plugin.library.paths" {
            // The plug-ins are loaded already; a failure would repeat an error that the application got for the
            // original.
            let _ = load_plugins(copy, &entry.value);
            // SAFETY: texts, as the application passed them.
            let filters: Vec<_> = filters.iter().filter_map(|filter| unsafe { text(*filter) }).collect();
            replay_taken(conf, copy, &filters);
        }
        if !entry.is_modified {
            continue;
        }
        let (name, value) = (c_text(entry.property), c_text(&entry.value));
        // SAFETY: a configuration that is not shared yet, texts, and no buffer.
        unsafe {
            let asked = Asked { conf: copy, value: value.as_ptr(), errstr: ptr::null_mut(), size: 0 };
            if asked.interceptors(&name).is_some()
                && let Some(copy) = Conf::changeable(copy)
            {
                let _ = copy.raw.unset(entry.property);
            }
        }
    }
    copy
}

/// Sets the properties in a copy that interceptors of the original accepted and that do not start with a filter.
fn replay_taken(conf: &Conf, copy: *mut Conf, filters: &[Cow<'_, str>]) {
    let is_filtered =
        |name: &CStr| filters.iter().any(|filter| name.to_bytes().starts_with(filter.as_bytes()));
    for (name, value) in conf.taken.iter().filter(|(name, _)| !is_filtered(name)) {
        let value = value.as_ref().map_or(ptr::null(), |value| value.as_ptr());
        // The plug-in accepted the property before; without a plug-in that was filtered out, its properties are
        // unknown. SAFETY: a configuration that is not shared yet, texts, and no buffer.
        unsafe { rd_kafka_conf_set(copy, name.as_ptr(), value, ptr::null_mut(), 0) };
    }
}

/// A property that is being set, as passed to interceptors.
struct Asked {
    conf: *mut Conf,
    value: *const c_char,
    errstr: *mut c_char,
    size: usize,
}

impl Asked {
    /// Passes the property to the interceptors; returns `None` if none of them accepts it.
    ///
    /// # Safety
    ///
    /// The pointers are a configuration, a text or NULL, and a buffer of that size or NULL.
    unsafe fn interceptors(&self, name: &CStr) -> Option<c_int> {
        // SAFETY: by the contract of this function.
        unsafe {
            let interceptors = Conf::changeable(self.conf)?.interceptors.clone();
            interceptors.set(self.conf, name.as_ptr(), self.value, self.errstr, self.size)
        }
    }

    /// Passes a property of the client to the interceptors as librdkafka does: with the name that the application used,
    /// with the name for which that is an alias, and once more when the value is known to be valid, which for a list of
    /// words happens once per word.
    ///
    /// # Safety
    ///
    /// As for [`Asked::interceptors`].
    unsafe fn all(&self, name: &CStr, known: &str) -> Option<c_int> {
        // SAFETY: by the contract of this function.
        unsafe {
            let changeable = Conf::changeable(self.conf)?;
            if changeable.interceptors.is_empty() {
                return None;
            }
            if let Some(code) = self.interceptors(name) {
                return Some(code);
            }
            let property = properties::find(Scope::Global, known)?;
            if property.scope == Scope::Topic {
                return None;
            }
            let canonical = property.canonical();
            let name = c_text(canonical.name);
            if canonical.name != property.name
                && let Some(code) = self.interceptors(&name)
            {
                return Some(code);
            }
            let value = text(self.value);
            let is_valid =
                set(&mut Conf::changeable(self.conf)?.raw.clone(), known, value.as_deref()).is_ok();
            let words = match canonical.kind {
                _ if !is_valid => 0,
                Kind::Flags(_) => value.map_or(0, |value| value.split(',').count()),
                _ => 1,
            };
            (0..words).find_map(|_| self.interceptors(&name))
        }
    }
}

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_conf_set(
        conf: *mut Conf,
        name: Text,
        value: Text,
        errstr: Buffer,
        errstr_size: usize,
    ) -> c_int {
        let _uncancelled = Uncancelled::begin();
        // Interceptors get the configuration's address and may change it.
        // SAFETY: the header demands a configuration or NULL.
        unsafe {
            let (Some(_), Some(known), Some(name)) = (Conf::changeable(conf), name.get(), name.c_str())
            else {
                errstr.put(
                    errstr_size,
                    "the configuration is invalid or in use by a client, or the name is NULL",
                );
                return CONF_INVALID;
            };
            let asked = Asked { conf, value: value.as_ptr(), errstr: errstr.as_ptr(), size: errstr_size };
            if let Some(code) = asked.all(name, &known) {
                if let (CONF_OK, Some(changeable)) = (code, Conf::changeable(conf)) {
                    changeable.taken.push((name.to_owned(), value.c_str().map(CStr::to_owned)));
                }
                return code;
            }
            if &*known == "plugin.library.paths"
                && let Err(why) = load_plugins(conf, &value.get().unwrap_or_default())
            {
                errstr.put(errstr_size, &why);
                return CONF_INVALID;
            }
            let (Some(conf), name) = (Conf::changeable(conf), known) else { return CONF_INVALID };
            let property = properties::find(Scope::Global, &name);
            // Whatever is not a property of clients is taken for one of topics, and leaves a configuration of topics behind.
            let raw = if property.is_none_or(|property| property.scope == Scope::Topic) {
                &mut conf.topic.get_or_insert_with(|| HandleBox::new(TopicConf::new())).raw
            } else {
                &mut conf.raw
            };
            let outcome = set(raw, &name, value.get().as_deref());
            if outcome.is_ok() && &*name == "enabled_events" {
                conf.events = conf.raw.get(&name).ok().and_then(|bits| bits.parse().ok()).unwrap_or(0);
            }
            report(outcome, errstr, errstr_size)
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_conf_set_opaque(conf: RefMut<Conf>, opaque: *mut c_void) {
        if let Some(conf) = Conf::passed_mut(conf) {
            conf.opaque = Opaque(opaque);
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_conf_set_events(conf: RefMut<Conf>, events: c_int) {
        if let Some(conf) = Conf::passed_mut(conf) {
            conf.events = events;
            // The flags also determine the property's value; a set of bits that is not a positive number has none.
            let _ = conf.raw.set("enabled_events", &events.max(0).to_string());
        }
    }
);

macro_rules! callback {
    ($($name:ident, $field:ident: $kind:ty;)*) => {$(
        export!(
            #[local(())]
            fn $name(conf: RefMut<Conf>, callback: Option<$kind>) {
                if let Some(conf) = Conf::passed_mut(conf) {
                    conf.callbacks.$field = callback.into();
                }
            }
        );
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
    rd_kafka_conf_set_oauthbearer_token_refresh_cb, token_refresh: TokenCb;
}

export!(
    #[local(())]
    fn rd_kafka_conf_set_default_topic_conf(conf: RefMut<Conf>, topic_conf: Given<TopicConf>) {
        let Some(conf) = Conf::passed_mut(conf) else { return };
        if conf.topic.as_ref().is_some_and(|own| topic_conf.is(own.as_ptr())) {
            return;
        }
        if let Some(topic) = topic_conf.take() {
            let is_modified = |topic: &HandleBox<TopicConf>| topic.raw.iter().any(|entry| entry.is_modified);
            conf.has_lost_topic_properties |= conf.topic.as_ref().is_some_and(is_modified);
            conf.topic = Some(topic);
        }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_conf_get_default_topic_conf(conf: RefMut<Conf>) -> *mut TopicConf {
        let topic = Conf::passed_mut(conf).and_then(|conf| conf.topic.as_mut());
        topic.map_or(ptr::null_mut(), |topic| topic.as_ptr())
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The properties of [`OLD_CONSUMER`] that a client has, too, and that do something there.
    #[test]
    fn client_keeps_its_property_when_a_topic_has_one_of_the_same_name() {
        let is_of_client = |name: &&str| {
            properties::find(Scope::Global, name).is_some_and(|property| property.scope == Scope::Global)
        };
        let shared: Vec<_> = OLD_CONSUMER.into_iter().filter(is_of_client).collect();
        assert_eq!(shared, ["auto.commit.interval.ms", "offset.store.method"]);
        let mut raw = RawConfig::new(Profile::Librdkafka);
        raw.set("auto.commit.interval.ms", "70").unwrap();
        raw.set("offset.store.method", "none").unwrap();
        assert_eq!(below(&raw).get("auto.commit.interval.ms"), Ok("70"));
        // It has no effect on a client, and is reported here.
        assert!(
            !below(&raw).is_modified("offset.store.method") && DEPRECATED.contains(&"offset.store.method")
        );
    }
}
