//! `rd_kafka_AdminOptions_t`: the options of a call.

use std::{
    ffi::{c_int, c_void},
    ptr,
    time::Duration,
};

use ottla::GroupFilter;

use super::groups::{STATES, TYPES};
use crate::{
    client::handle::Client,
    ffi::{
        argument::{Buffer, Given, Numbers, Ref, RefMut},
        boundary::{Handle, Opaque, Tag},
        codes::{RespErr, code},
        error::ErrorObject,
        export,
    },
};

/// `rd_kafka_AdminOptions_t`.
#[repr(C)]
#[derive(Debug)]
pub struct AdminOptions {
    tag: Tag,
    /// The call that the options are for, 0 for any.
    for_api: c_int,
    request_timeout_ms: c_int,
    operation_timeout_ms: Option<c_int>,
    validate_only: bool,
    broker: Option<i32>,
    read_committed: bool,
    authorized_operations: bool,
    require_stable_offsets: bool,
    group_filter: GroupFilter,
    opaque: Opaque,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for AdminOptions {
    const KIND: u32 = 0x6f74_4101;
}

/// `RD_KAFKA_ADMIN_OP__CNT`.
const CALLS: c_int = 23;
/// The maximum timeout: an hour.
const LONGEST: c_int = 3_600_000;

/// The calls to which an option applies, by their number in `rd_kafka_admin_op_t`; an empty list means every call.
const ANY_CALL: &[c_int] = &[];
const WITH_OPERATION_TIMEOUT: &[c_int] = &[1, 2, 3, 6, 21, 22];
const WITH_VALIDATE_ONLY: &[c_int] = &[1, 3, 4, 16];
const WITH_ISOLATION_LEVEL: &[c_int] = &[21];
const WITH_AUTHORIZED_OPERATIONS: &[c_int] = &[13, 19, 20];
const WITH_STABLE_OFFSETS: &[c_int] = &[14];
const WITH_GROUP_FILTER: &[c_int] = &[12];

impl AdminOptions {
    pub(super) fn new(client: &Client, for_api: c_int) -> Self {
        let timeout = client.property("socket.timeout.ms").and_then(|ms| ms.parse().ok()).unwrap_or(60_000);
        let timeout = client.default_timeout(Duration::from_millis(timeout));
        Self {
            tag: Tag::of::<Self>(),
            for_api,
            request_timeout_ms: c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX),
            operation_timeout_ms: None,
            validate_only: false,
            broker: None,
            read_committed: false,
            authorized_operations: false,
            require_stable_offsets: false,
            group_filter: GroupFilter::default(),
            opaque: Opaque(ptr::null_mut()),
        }
    }

    pub(super) const fn opaque(&self) -> Opaque {
        self.opaque
    }

    pub(super) fn for_admin(&self) -> ottla::AdminOptions {
        let millis = |ms: c_int| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let mut options = ottla::AdminOptions::new(millis(self.request_timeout_ms));
        // -1 means the request timeout.
        options.operation_timeout = self.operation_timeout_ms.filter(|ms| *ms >= 0).map(millis);
        options.validate_only = self.validate_only;
        options.broker = self.broker;
        options.read_committed = self.read_committed;
        options.authorized_operations = self.authorized_operations;
        options.require_stable_offsets = self.require_stable_offsets;
        options
    }

    /// Returns the groups that ListConsumerGroups lists.
    pub(super) fn group_filter(&self) -> GroupFilter {
        self.group_filter.clone()
    }

    fn allows(&self, name: &str, calls: &[c_int]) -> Result<(), String> {
        if self.for_api == 0 || calls.is_empty() || calls.contains(&self.for_api) {
            Ok(())
        } else {
            Err(format!("{name} is not an option of this call"))
        }
    }
}

fn in_range(name: &str, value: c_int, lowest: c_int, highest: c_int) -> Result<(), String> {
    if (lowest..=highest).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} is {value}, but must be in {lowest} .. {highest}"))
    }
}

/// Changes options. Error: the reason why they can't be changed.
fn change(
    options: RefMut<AdminOptions>,
    change: impl FnOnce(&mut AdminOptions) -> Result<(), String>,
) -> Result<(), String> {
    change(options.get().ok_or("these are not options")?)
}

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_AdminOptions_new(rk: Ref<Client>, for_api: c_int) -> *mut AdminOptions {
        match rk.get() {
            Some(client) if (0..CALLS).contains(&for_api) => {
                Box::into_raw(Box::new(AdminOptions::new(client, for_api)))
            }
            _ => ptr::null_mut(),
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_AdminOptions_destroy(options: Given<AdminOptions>) {
        options.retire();
    }
);

/// Declares functions that set a number. The error is a code and a text, or an error object.
macro_rules! setters {
    ($(
        fn $name:ident($value:ident) -> $kind:ident {
            $option:literal of $calls:expr, $lowest:literal ..= $highest:expr;
            |$options:ident| $set:expr
        }
    )*) => {$(
        setters! { $kind, $name, $value, |options| change(options, |$options| {
            $options.allows($option, $calls)?;
            in_range($option, $value, $lowest, $highest)?;
            $set;
            Ok(())
        }) }
    )*};
    (Text, $name:ident, $value:ident, |$options:ident| $change:expr) => {
        export!(
            #[local(code::_FATAL)]
            fn $name(
                $options: RefMut<AdminOptions>,
                $value: c_int,
                errstr: Buffer,
                errstr_size: usize,
            ) -> RespErr {
                $change.map_or_else(
                    |text| {
                        errstr.put(errstr_size, &text);
                        code::_INVALID_ARG
                    },
                    |()| code::NO_ERROR,
                )
            }
        );
    };
    (Object, $name:ident, $value:ident, |$options:ident| $change:expr) => {
        export!(
            #[local(ptr::null_mut())]
            fn $name($options: RefMut<AdminOptions>, $value: c_int) -> *mut ErrorObject {
                error_object($change)
            }
        );
    };
}

fn error_object(result: Result<(), String>) -> *mut ErrorObject {
    ErrorObject::from_result(result.map_err(|text| ErrorObject::new(code::_INVALID_ARG, text)))
}

setters! {
    fn rd_kafka_AdminOptions_set_request_timeout(timeout_ms) -> Text {
        "request_timeout" of ANY_CALL, 0..=LONGEST;
        |options| options.request_timeout_ms = timeout_ms
    }
    fn rd_kafka_AdminOptions_set_operation_timeout(timeout_ms) -> Text {
        "operation_timeout" of WITH_OPERATION_TIMEOUT, -1..=LONGEST;
        |options| options.operation_timeout_ms = Some(timeout_ms)
    }
    fn rd_kafka_AdminOptions_set_validate_only(true_or_false) -> Text {
        "validate_only" of WITH_VALIDATE_ONLY, 0..=1;
        |options| options.validate_only = true_or_false == 1
    }
    fn rd_kafka_AdminOptions_set_broker(broker_id) -> Text {
        "broker" of ANY_CALL, 0..=c_int::MAX;
        |options| options.broker = Some(broker_id)
    }
    fn rd_kafka_AdminOptions_set_include_authorized_operations(true_or_false) -> Object {
        "include_authorized_operations" of WITH_AUTHORIZED_OPERATIONS, 0..=1;
        |options| options.authorized_operations = true_or_false == 1
    }
    fn rd_kafka_AdminOptions_set_isolation_level(value) -> Object {
        "isolation_level" of WITH_ISOLATION_LEVEL, 0..=1;
        |options| options.read_committed = value == 1
    }
    fn rd_kafka_AdminOptions_set_require_stable_offsets(true_or_false) -> Object {
        "require_stable_offsets" of WITH_STABLE_OFFSETS, 0..=1;
        |options| options.require_stable_offsets = true_or_false == 1
    }
}

/// Returns the values of an array of numbers. Each number is the index of its value in the rows, and may occur once.
fn values<T: Copy + PartialEq>(
    array: Numbers,
    count: usize,
    rows: &[(T, &std::ffi::CStr)],
    what: &str,
) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    let numbers = array.get(count).filter(|numbers| numbers.len() <= rows.len());
    let too_many = || format!("{count} {what}s, but only {} exist, or the array is NULL", rows.len());
    for &number in numbers.ok_or_else(too_many)? {
        let row = usize::try_from(number).ok().and_then(|number| rows.get(number));
        let (value, _) = row.ok_or_else(|| format!("{number} is no {what}"))?;
        if values.contains(value) {
            return Err(format!("the {what} {number} is listed twice"));
        }
        values.push(*value);
    }
    Ok(values)
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_AdminOptions_set_match_consumer_group_states(
        options: RefMut<AdminOptions>,
        consumer_group_states: Numbers,
        consumer_group_states_cnt: usize,
    ) -> *mut ErrorObject {
        error_object(change(options, |options| {
            options.allows("match_consumer_group_states", WITH_GROUP_FILTER)?;
            options.group_filter.states =
                values(consumer_group_states, consumer_group_states_cnt, &STATES, "group state")?;
            Ok(())
        }))
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_AdminOptions_set_match_consumer_group_types(
        options: RefMut<AdminOptions>,
        consumer_group_types: Numbers,
        consumer_group_types_cnt: usize,
    ) -> *mut ErrorObject {
        error_object(change(options, |options| {
            options.allows("match_consumer_group_types", WITH_GROUP_FILTER)?;
            let types = values(consumer_group_types, consumer_group_types_cnt, &TYPES, "group type")?;
            if types.contains(&TYPES[0].0) {
                return Err("groups can't be listed by the type UNKNOWN".to_owned());
            }
            options.group_filter.types = types;
            Ok(())
        }))
    }
);

export!(
    #[local(())]
    fn rd_kafka_AdminOptions_set_opaque(options: RefMut<AdminOptions>, ev_opaque: *mut c_void) {
        if let Some(options) = options.get() {
            options.opaque = Opaque(ev_opaque);
        }
    }
);
