//! `rd_kafka_topic_conf_t`: the properties of a topic and the application's functions for it.
//!
//! # Pitfalls
//!
//! - Some topic properties of the older consumer have the same name as client properties with another meaning
//!   (`auto.commit.interval.ms`, `offset.store.method`). A default topic configuration must not be merged into the
//!   client's (`details.c`).

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use ottla_core::config::{Profile, RawConfig, table as properties, table::Scope};

use crate::{
    client::{
        callbacks::{MsgOrderCmp, PartitionerCb},
        property::{CONF_INVALID, CONF_UNKNOWN, report, set},
    },
    ffi::{
        argument::{Buffer, Given, Ref, RefMut, Text},
        boundary::{Handle, Opaque, Tag},
        export,
    },
};

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
unsafe impl Handle for TopicConf {
    const KIND: u32 = 0x6f74_6302;
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

    /// Returns the explicitly set properties `set`, overridden by those of the default topic configuration.
    pub(crate) fn of_client(set: RawConfig, default: Option<&Self>) -> Self {
        let mut conf = default.map_or_else(Self::new, Self::duplicate);
        let default = std::mem::replace(&mut conf.raw, set);
        for entry in default.iter().filter(|entry| entry.is_modified) {
            // Both accept the same values.
            let _ = conf.raw.set(entry.property, &entry.value);
        }
        conf
    }

    /// Adds the explicitly set topic properties to a client's configuration.
    pub(crate) fn add_to(&self, raw: &mut RawConfig) {
        let entries = self.raw.iter().filter(|entry| entry.is_modified && entry.value != "inherit");
        for entry in entries.filter(|entry| !OLD_CONSUMER.contains(&entry.property)) {
            // Both accept the same values; otherwise the topic keeps its own.
            let _ = raw.set(entry.property, &entry.value);
        }
    }
}

/// Properties that only the older consumer's calls read. Some of these names have another meaning in a client's
/// configuration.
pub(crate) const OLD_CONSUMER: [&str; 6] = [
    "auto.commit.enable",
    "auto.commit.interval.ms",
    "consume.callback.max.messages",
    "offset.store.method",
    "offset.store.path",
    "offset.store.sync.interval.ms",
];

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_conf_new() -> *mut TopicConf {
        Box::into_raw(Box::new(TopicConf::new()))
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_conf_dup(conf: Ref<TopicConf>) -> *mut TopicConf {
        conf.get().map_or(ptr::null_mut(), |conf: &TopicConf| Box::into_raw(Box::new(conf.duplicate())))
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_conf_destroy(conf: Given<TopicConf>) {
        conf.retire();
    }
);

/// Returns the code of a call about a property of a topic without its configuration. Like librdkafka, it looks at the name first.
pub(crate) fn code_without_topic_conf(name: &str) -> c_int {
    if properties::find(Scope::Topic, name).is_none() { CONF_UNKNOWN } else { CONF_INVALID }
}

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_topic_conf_set(
        conf: RefMut<TopicConf>,
        name: Text,
        value: Text,
        errstr: Buffer,
        errstr_size: usize,
    ) -> c_int {
        let (conf, Some(name)) = (conf.get(), name.get()) else {
            errstr.put(errstr_size, "the name is invalid");
            return CONF_INVALID;
        };
        let Some(conf) = conf else {
            errstr.put(errstr_size, "the topic configuration is invalid");
            return code_without_topic_conf(&name);
        };
        // Client properties do not apply to a topic.
        let known =
            properties::find(Scope::Topic, &name).is_none_or(|property| property.scope == Scope::Topic);
        if !known {
            errstr.put(errstr_size, &format!("`{name}` is not a property of a topic"));
            return CONF_UNKNOWN;
        }
        report(set(&mut conf.raw, &name, value.get().as_deref()), errstr, errstr_size)
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_conf_set_opaque(conf: RefMut<TopicConf>, opaque: *mut c_void) {
        if let Some(conf) = conf.get() {
            conf.opaque = Opaque(opaque);
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_conf_set_partitioner_cb(conf: RefMut<TopicConf>, partitioner: Option<PartitionerCb>) {
        if let Some(conf) = conf.get() {
            conf.partitioner = partitioner;
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_conf_set_msg_order_cmp(conf: RefMut<TopicConf>, msg_order_cmp: Option<MsgOrderCmp>) {
        if let Some(conf) = conf.get() {
            conf.msg_order_cmp = msg_order_cmp;
        }
    }
);
