//! The values of configurations as C programs read them: the getters and the dumps.

use std::{
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla_core::config::{
    Entry as ConfigValue, Profile, RawConfig, table as properties,
    table::{Kind, Origin, Property, Scope},
};

use crate::{
    client::{
        callbacks::LogTo,
        conf::Conf,
        logging::rd_kafka_log_print,
        property::{CONF_INVALID, CONF_OK, CONF_UNKNOWN},
        topic_conf::{TopicConf, code_without_topic_conf},
    },
    ffi::{
        argument::{Buffer, PartMut, Place, Ref, Text},
        boundary::malloc_text,
        cancel::Uncancelled,
        export,
    },
};

/// Returns a property of a client's configuration; `None` where librdkafka has no value.
fn of_conf(conf: &Conf, name: &str) -> Option<String> {
    let pointers = pointers_of_conf(conf)
        .into_iter()
        .chain(conf.topic.iter().flat_map(|topic| pointers_of_topic_conf(topic)));
    pointer(pointers, name).or_else(|| match properties::find(Scope::Global, name)?.scope {
        Scope::Global => of_raw(&conf.raw, name),
        Scope::Topic => of_raw(&conf.topic.as_ref()?.raw, name),
    })
}

/// Returns a property of a topic's configuration; `None` where librdkafka has no value.
fn of_topic_conf(conf: &TopicConf, name: &str) -> Option<String> {
    pointer(pointers_of_topic_conf(conf), name).or_else(|| {
        let is_of_topics = properties::find(Scope::Topic, name)?.scope == Scope::Topic;
        if is_of_topics { of_raw(&conf.raw, name) } else { None }
    })
}

/// Dumps a client's configuration as `rd_kafka_conf_dump` returns it.
fn dump_of_conf(conf: &Conf, cntp: Place<'_, usize>) -> *mut *const c_char {
    dump(&conf.raw, Scope::Global, pointers_of_conf(conf), cntp)
}

/// Dumps a topic's configuration as `rd_kafka_topic_conf_dump` returns it.
fn dump_of_topic_conf(conf: &TopicConf, cntp: Place<'_, usize>) -> *mut *const c_char {
    dump(&conf.raw, Scope::Topic, pointers_of_topic_conf(conf), cntp)
}

/// A callback or a pointer of the application: its name, and its address as `%p` prints it.
type Pointer = (&'static str, Option<String>);

/// Returns the callbacks and pointers of a client's configuration.
fn pointers_of_conf(conf: &Conf) -> Vec<Pointer> {
    let callbacks = &conf.callbacks;
    let log = match callbacks.log {
        LogTo::StandardError => Some(format!("{:p}", rd_kafka_log_print as *const ())),
        LogTo::Application(callback) => Some(format!("{callback:p}")),
        LogTo::Nowhere => None,
    };
    let opaque = (!conf.opaque.0.is_null()).then(|| format!("{:p}", conf.opaque.0));
    let topic = conf.topic.as_ref().map(|topic| format!("{:p}", topic.as_ptr()));
    let mut pointers = vec![("log_cb", log), ("opaque", opaque), ("default_topic_conf", topic)];
    macro_rules! add {
        ($($field:ident $name:literal,)*) => {
            $(pointers.push(($name, callbacks.$field.map(|callback| format!("{callback:p}"))));)*
        };
    }
    add! {
        dr "dr_cb",
        dr_msg "dr_msg_cb",
        consume "consume_cb",
        rebalance "rebalance_cb",
        offset_commit "offset_commit_cb",
        error "error_cb",
        throttle "throttle_cb",
        stats "stats_cb",
        background_event "background_event_cb",
        socket "socket_cb",
        connect "connect_cb",
        closesocket "closesocket_cb",
        open "open_cb",
        resolve "resolve_cb",
        certificate "ssl.certificate.verify_cb",
        token_refresh "oauthbearer_token_refresh_cb",
    }
    pointers
}

/// Returns the callbacks and pointers of a topic's configuration.
fn pointers_of_topic_conf(conf: &TopicConf) -> Vec<Pointer> {
    vec![
        ("partitioner_cb", conf.partitioner.map(|callback| format!("{callback:p}"))),
        ("msg_order_cmp", conf.msg_order_cmp.map(|callback| format!("{callback:p}"))),
        ("opaque", (!conf.opaque.0.is_null()).then(|| format!("{:p}", conf.opaque.0))),
    ]
}

fn pointer(pointers: impl IntoIterator<Item = Pointer>, name: &str) -> Option<String> {
    pointers.into_iter().find(|(known, address)| *known == name && address.is_some())?.1
}

/// Returns a value as C programs read it; `None` where librdkafka has no value.
///
/// Of several words with the same meaning the first one is returned, because C programs compare it.
fn text_of(property: &'static Property, value: &str, is_modified: bool) -> Option<String> {
    let property = property.canonical();
    match value {
        _ if property.kind == Kind::Call => None,
        // Only this text property has an empty default.
        "" if property.kind == Kind::Text && !is_modified && property.name != "client.rack" => None,
        "earliest" | "beginning" if property.name == "auto.offset.reset" => Some("smallest".to_owned()),
        "latest" | "end" if property.name == "auto.offset.reset" => Some("largest".to_owned()),
        value => Some(value.to_owned()),
    }
}

/// Returns a property that has a value as text.
fn of_raw(raw: &RawConfig, name: &str) -> Option<String> {
    let value = raw.get(name).ok()?;
    let property = properties::find(raw.scope(), name)?;
    text_of(property, value, raw.is_modified(name))
}

/// Writes a value to the application's buffer, which has `size` bytes, and the value's length to `size`.
fn give(value: Option<String>, dest: Buffer<'_>, size: PartMut<'_, usize>) -> c_int {
    let Some(value) = value else { return CONF_UNKNOWN };
    let Some(size) = size.get() else { return CONF_INVALID };
    dest.put(*size, &value);
    *size = value.len() + 1;
    CONF_OK
}

/// Dumps the properties of one scope that have a value, those of the other scope that were set, and pointers.
fn dump(raw: &RawConfig, scope: Scope, pointers: Vec<Pointer>, cntp: Place<'_, usize>) -> *mut *const c_char {
    let value = |entry: &ConfigValue| {
        let property = properties::find(entry.scope, entry.property)?;
        text_of(property, &entry.value, entry.is_modified)
    };
    // Programs do not expect what only the Java clients have.
    let is_java = |entry: &ConfigValue| {
        properties::find(entry.scope, entry.property).is_some_and(|property| property.origin == Origin::Java)
    };
    let is_shown = |entry: &ConfigValue| entry.is_modified || (entry.scope == scope && !is_java(entry));
    let texts = raw.iter().filter(is_shown).filter_map(|entry| Some((entry.property, value(&entry)?)));
    let pointers = pointers.into_iter().filter_map(|(name, address)| Some((name, address?)));
    let entries: Vec<_> = texts.chain(pointers).collect();
    // SAFETY: the array is large enough for two texts per entry.
    unsafe {
        let array = libc::calloc(entries.len() * 2 + 1, size_of::<*const c_char>()).cast::<*const c_char>();
        if array.is_null() {
            return array;
        }
        for (index, (name, value)) in entries.iter().enumerate() {
            *array.add(index * 2) = malloc_text(name.as_bytes());
            *array.add(index * 2 + 1) = malloc_text(value.as_bytes());
        }
        cntp.put(entries.len() * 2);
        array
    }
}

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_conf_get(conf: Ref<Conf>, name: Text, dest: Buffer, dest_size: PartMut<usize>) -> c_int {
        let (Some(conf), Some(name)) = (conf.get(), name.get()) else { return CONF_INVALID };
        give(of_conf(conf, &name), dest, dest_size)
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_conf_dump(conf: Ref<Conf>, cntp: Place<usize>) -> *mut *const c_char {
        conf.get().map_or(ptr::null_mut(), |conf| dump_of_conf(conf, cntp))
    }
);

export!(
    #[local(())]
    fn rd_kafka_conf_dump_free(arr: *mut *const c_char, cnt: usize) {
        if arr.is_null() {
            return;
        }
        // SAFETY: the header demands an array of a dump with this number of texts.
        unsafe {
            for at in 0..cnt {
                libc::free((*arr.add(at)).cast_mut().cast());
            }
            libc::free(arr.cast());
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_conf_properties_show(fp: *mut libc::FILE) {
        let _uncancelled = Uncancelled::begin();
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
            let range = if property.kind == Kind::Call {
                String::new()
            } else {
                property.range_for(Profile::Librdkafka)
            };
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
        // SAFETY: the caller passes an open file, and the text ends with a zero byte.
        unsafe { libc::fputs(page.as_ptr(), fp) };
    }
);

export!(
    #[local(CONF_INVALID)]
    fn rd_kafka_topic_conf_get(
        conf: Ref<TopicConf>,
        name: Text,
        dest: Buffer,
        dest_size: PartMut<usize>,
    ) -> c_int {
        let Some(name) = name.get() else { return CONF_INVALID };
        let Some(conf) = conf.get() else { return code_without_topic_conf(&name) };
        give(of_topic_conf(conf, &name), dest, dest_size)
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_conf_dump(conf: Ref<TopicConf>, cntp: Place<usize>) -> *mut *const c_char {
        conf.get().map_or(ptr::null_mut(), |conf| dump_of_topic_conf(conf, cntp))
    }
);
