//! Configurations of topics, brokers and groups.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr,
};

use ottla::Admin;
use ottla_core::{
    admin::configs::{ConfigChange, ConfigOperation, ConfigResults, ResourceKind},
    error::Error,
};

use super::{
    call::{Listed, Outcome, call, code_in_result, common_failure, error_text, found, objects},
    options::AdminOptions,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Handles, Part, Place, Ref, RefMut, Text},
        boundary::{Handle, Tag, c_text},
        codes::{RespErr, code},
        destroyers,
        error::ErrorObject,
        export,
        export::text_or_null,
        getters,
    },
};

/// `RD_KAFKA_EVENT_ALTERCONFIGS_RESULT`.
pub(super) const REPLACED: c_int = 103;
/// `RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT`.
pub(super) const DESCRIBED: c_int = 104;
/// `RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT`.
pub(super) const CHANGED: c_int = 1 << 17;

/// `RD_KAFKA_RESOURCE_GROUP`, which has another number in the protocol.
const GROUP: c_int = 3;
/// `RD_KAFKA_RESOURCE_BROKER`.
const BROKER: c_int = 4;
const RESOURCE_TYPES: [&CStr; 6] = [c"UNKNOWN", c"ANY", c"TOPIC", c"GROUP", c"BROKER", c"TRANSACTIONAL_ID"];
const SOURCES: [&CStr; 9] = [
    c"UNKNOWN_CONFIG",
    c"DYNAMIC_TOPIC_CONFIG",
    c"DYNAMIC_BROKER_CONFIG",
    c"DYNAMIC_DEFAULT_BROKER_CONFIG",
    c"STATIC_BROKER_CONFIG",
    c"DEFAULT_CONFIG",
    c"UNKNOWN_CONFIG",
    c"UNKNOWN_CONFIG",
    c"GROUP_CONFIG",
];

/// `rd_kafka_ConfigResource_t`: of the application, with the requested changes, or of a result, with the configuration.
#[repr(C)]
#[derive(Debug)]
pub struct ConfigResource {
    tag: Tag,
    kind: c_int,
    name: CString,
    changes: Vec<ConfigChange>,
    entries: Listed<ConfigEntry>,
    code: RespErr,
    error: CString,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for ConfigResource {
    const KIND: u32 = 0x6f74_4106;
}

/// `rd_kafka_ConfigEntry_t`.
#[derive(Debug)]
pub struct ConfigEntry {
    name: CString,
    value: Option<CString>,
    source: c_int,
    is_read_only: bool,
    is_default: bool,
    is_sensitive: bool,
    is_synonym: bool,
    synonyms: Listed<ConfigEntry>,
}

impl ConfigEntry {
    fn new(entry: &ottla_core::admin::configs::ConfigEntry) -> Self {
        let synonyms = entry.synonyms.iter().map(|synonym| Self {
            is_synonym: true,
            source: source(synonym.source),
            ..Self::plain(&synonym.name, synonym.value.as_deref())
        });
        Self {
            source: source(entry.source),
            is_read_only: entry.is_read_only,
            is_default: entry.is_default,
            is_sensitive: entry.is_sensitive,
            synonyms: Listed::new(synonyms),
            ..Self::plain(&entry.name, entry.value.as_deref())
        }
    }

    fn plain(name: &str, value: Option<&str>) -> Self {
        Self {
            name: c_text(name),
            value: value.map(c_text),
            source: 0,
            is_read_only: false,
            is_default: false,
            is_sensitive: false,
            is_synonym: false,
            synonyms: Listed::new([]),
        }
    }
}

/// Returns the interface's number of a source; sources without a number are unknown.
fn source(number: i8) -> c_int {
    match c_int::from(number) {
        known @ (1..=5 | 8) => known,
        _ => 0,
    }
}

impl ConfigResource {
    fn new(kind: c_int, name: &str) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            kind,
            name: c_text(name),
            changes: Vec::new(),
            entries: Listed::new([]),
            code: code::NO_ERROR,
            error: CString::default(),
        }
    }

    fn add(&mut self, name: &str, operation: ConfigOperation, value: Option<&str>) {
        let change = ConfigChange { name: name.to_owned(), operation, value: value.map(str::to_owned) };
        self.changes.push(change);
        let entry = |change: &ConfigChange| ConfigEntry::plain(&change.name, change.value.as_deref());
        self.entries = Listed::new(self.changes.iter().map(entry));
    }

    /// Returns the resource as the protocol names it.
    fn to_core(&self) -> ottla_core::admin::configs::ConfigResource {
        let kind = match self.kind {
            GROUP => ResourceKind::GROUP,
            kind => ResourceKind(i8::try_from(kind).unwrap_or(0)),
        };
        ottla_core::admin::configs::ConfigResource { kind, name: self.name.to_string_lossy().into_owned() }
    }

    fn of_result(
        resource: &ottla_core::admin::configs::ConfigResource,
        result: &Result<Vec<ottla_core::admin::configs::ConfigEntry>, Error>,
    ) -> Self {
        let kind = if resource.kind == ResourceKind::GROUP { GROUP } else { c_int::from(resource.kind.0) };
        let new = Self::new(kind, &resource.name);
        match result {
            Ok(entries) => Self { entries: Listed::new(entries.iter().map(ConfigEntry::new)), ..new },
            Err(error) => Self { code: code_in_result(error), error: error_text(Some(error)), ..new },
        }
    }
}

type Results = Result<ConfigResults, Error>;

fn outcome(results: Results) -> Outcome {
    let results = results.map_err(|error| Failure::of(&error))?;
    match common_failure(results.iter().map(|(_, result)| result.as_ref().err())) {
        Some(failure) => Err(failure),
        None => {
            let result = |(resource, result): &(_, _)| ConfigResource::of_result(resource, result);
            found(Listed::new(results.iter().map(result)))
        }
    }
}

/// Returns the application's resources. Each may be named once, and at most one of them may be a broker.
fn resources(configs: Handles<'_, ConfigResource>, count: usize) -> Result<Vec<&ConfigResource>, Failure> {
    let resources = objects(configs, count, "configurations")?;
    if resources.iter().filter(|resource| resource.kind == BROKER).count() > 1 {
        let text = "each broker responds for itself only; name one broker in a call";
        return Err(Failure::new(code::_CONFLICT, text));
    }
    let mut seen = ottla_sorted::SortedSet::new();
    for ConfigResource { kind, name, .. } in resources.iter().copied() {
        if !seen.insert((kind, name)) {
            return Err(Failure::misuse(format!("{name:?} is named twice")));
        }
        if *kind == BROKER && !name.to_str().is_ok_and(|name| name.parse::<i32>().is_ok()) {
            return Err(Failure::misuse(format!("broker {name:?}: a broker is named by its numeric ID")));
        }
    }
    Ok(resources)
}

fn changes(resources: &[&ConfigResource]) -> ottla_core::admin::configs::ConfigChanges {
    resources.iter().map(|resource| (resource.to_core(), resource.changes.clone())).collect()
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_ConfigResource_new(restype: c_int, resname: Text) -> *mut ConfigResource {
        match resname.get() {
            Some(name) if !name.is_empty() && (0..6).contains(&restype) => {
                Box::into_raw(Box::new(ConfigResource::new(restype, &name)))
            }
            _ => ptr::null_mut(),
        }
    }
);

destroyers! {
    rd_kafka_ConfigResource_destroy(config), rd_kafka_ConfigResource_destroy_array(config): ConfigResource;
}

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_ConfigResource_set_config(
        config: RefMut<ConfigResource>,
        name: Text,
        value: Text,
    ) -> RespErr {
        match (config.get(), name.get(), value.get()) {
            (Some(config), Some(name), Some(value)) if !name.is_empty() => {
                config.add(&name, ConfigOperation::Set, Some(&value));
                code::NO_ERROR
            }
            _ => code::_INVALID_ARG,
        }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_ConfigResource_add_incremental_config(
        config: RefMut<ConfigResource>,
        name: Text,
        op_type: c_int,
        value: Text,
    ) -> *mut ErrorObject {
        let refuse = |reason: &str| ErrorObject::new(code::_INVALID_ARG, reason).into_raw();
        let Some(config) = config.get() else { return refuse("this is not a resource") };
        let Some(name) = name.get().filter(|name| !name.is_empty()) else {
            return refuse("a property has a name");
        };
        let operation = match op_type {
            0 => ConfigOperation::Set,
            1 => ConfigOperation::Delete,
            2 => ConfigOperation::Append,
            3 => ConfigOperation::Subtract,
            _ => return refuse("there is no such operation"),
        };
        let value = value.get();
        if value.is_none() && operation != ConfigOperation::Delete {
            return refuse("a value is required for every operation except delete");
        }
        config.add(&name, operation, value.as_deref());
        ptr::null_mut()
    }
);

getters! {
    fn rd_kafka_ConfigResource_type(config: Ref<ConfigResource>) -> c_int { 0; config.kind }
    fn rd_kafka_ConfigResource_name(config: Ref<ConfigResource>) -> *const c_char {
        ptr::null(); config.name.as_ptr()
    }
    fn rd_kafka_ConfigResource_error(config: Ref<ConfigResource>) -> RespErr { code::_INVALID_ARG; config.code }
    fn rd_kafka_ConfigResource_error_string(config: Ref<ConfigResource>) -> *const c_char {
        ptr::null(); if config.code.is_error() { config.error.as_ptr() } else { ptr::null() }
    }
}

getters! {
    fn rd_kafka_ConfigEntry_name(entry: Part<ConfigEntry>) -> *const c_char { ptr::null(); entry.name.as_ptr() }
    fn rd_kafka_ConfigEntry_value(entry: Part<ConfigEntry>) -> *const c_char {
        ptr::null(); text_or_null(entry.value.as_ref())
    }
    fn rd_kafka_ConfigEntry_source(entry: Part<ConfigEntry>) -> c_int { 0; entry.source }
    fn rd_kafka_ConfigEntry_is_read_only(entry: Part<ConfigEntry>) -> c_int { 0; entry.is_read_only.into() }
    fn rd_kafka_ConfigEntry_is_default(entry: Part<ConfigEntry>) -> c_int { 0; entry.is_default.into() }
    fn rd_kafka_ConfigEntry_is_sensitive(entry: Part<ConfigEntry>) -> c_int { 0; entry.is_sensitive.into() }
    fn rd_kafka_ConfigEntry_is_synonym(entry: Part<ConfigEntry>) -> c_int { 0; entry.is_synonym.into() }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_ConfigResource_configs(
        config: Ref<ConfigResource>,
        cntp: Place<usize>,
    ) -> *const *const ConfigEntry {
        Listed::show(config.get().map(|config| &config.entries), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ConfigEntry_synonyms(
        entry: Part<ConfigEntry>,
        cntp: Place<usize>,
    ) -> *const *const ConfigEntry {
        Listed::show(entry.get().map(|entry| &entry.synonyms), cntp)
    }
);

fn name_of(names: &[&'static CStr], number: c_int) -> *const c_char {
    let name = usize::try_from(number).ok().and_then(|number| names.get(number));
    name.map_or(c"UNSUPPORTED".as_ptr(), |name| name.as_ptr())
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_ConfigSource_name(confsource: c_int) -> *const c_char {
        name_of(&SOURCES, confsource)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ResourceType_name(restype: c_int) -> *const c_char {
        name_of(&RESOURCE_TYPES, restype)
    }
);

fn describe(
    admin: &Admin,
    resources: &[&ConfigResource],
    options: &ottla::AdminOptions,
) -> Result<impl Future<Output = Results> + Send + use<>, Failure> {
    let requested: Vec<_> = resources.iter().map(|resource| resource.to_core()).collect();
    Ok(admin.describe_configs_with(&requested, options))
}

fn change(
    admin: &Admin,
    resources: &[&ConfigResource],
    options: &ottla::AdminOptions,
) -> Result<impl Future<Output = Results> + Send + use<>, Failure> {
    Ok(admin.change_configs_with(&changes(resources), options))
}

fn replace(
    admin: &Admin,
    resources: &[&ConfigResource],
    options: &ottla::AdminOptions,
) -> Result<impl Future<Output = Results> + Send + use<>, Failure> {
    Ok(admin.replace_configs_with(&changes(resources), options))
}

macro_rules! calls {
    ($($name:ident, $result:ident: $kind:ident, $ask:ident;)*) => {$(
        export!(
            #[on(rk, ())]
            fn $name(
                rk: Ref<Client>,
                configs: Handles<ConfigResource>,
                config_cnt: usize,
                options: Ref<AdminOptions>,
                rkqu: Ref<Queue>,
            ) {
                call(rk, options, rkqu, $kind, |admin, options| {
                    let asked = $ask(admin, &resources(configs, config_cnt)?, options)?;
                    Ok(async move { outcome(asked.await) })
                });
            }
        );

        export!(
            #[local(ptr::null())]
            fn $result(result: Ref<Event>, cntp: Place<usize>) -> *const *const ConfigResource {
                let event = result.get().filter(|event| event.kind == $kind);
                Listed::show(event.and_then(Event::result::<Listed<ConfigResource>>), cntp)
            }
        );
    )*};
}

calls! {
    rd_kafka_DescribeConfigs, rd_kafka_DescribeConfigs_result_resources: DESCRIBED, describe;
    rd_kafka_IncrementalAlterConfigs, rd_kafka_IncrementalAlterConfigs_result_resources: CHANGED, change;
    rd_kafka_AlterConfigs, rd_kafka_AlterConfigs_result_resources: REPLACED, replace;
}
