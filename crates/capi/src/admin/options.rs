//! `rd_kafka_AdminOptions_t`: how a call is made.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
    time::Duration,
};

use super::destroy;
use crate::{
    boundary::{Handle, Opaque, Tag, guarded, handle, put_text},
    client::Client,
    codes::code,
    error::ErrorObject,
};

/// `rd_kafka_AdminOptions_t`.
#[repr(C)]
#[derive(Debug)]
pub struct AdminOptions {
    tag: Tag,
    /// The call that it is for, 0 for any.
    for_api: c_int,
    request_timeout_ms: c_int,
    operation_timeout_ms: Option<c_int>,
    validate_only: bool,
    broker: Option<i32>,
    read_committed: bool,
    authorized_operations: bool,
    opaque: Opaque,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for AdminOptions {
    const KIND: u32 = 0x6f74_4101;
}

/// `RD_KAFKA_ADMIN_OP__CNT`.
const CALLS: c_int = 23;
/// The longest timeout that can be said: an hour.
const LONGEST: c_int = 3_600_000;

/// Calls that an option is for, by their number in `rd_kafka_admin_op_t`.
const WITH_OPERATION_TIMEOUT: &[c_int] = &[1, 2, 3, 6, 22];
const WITH_VALIDATE_ONLY: &[c_int] = &[1, 3, 4, 16];
const WITH_ISOLATION_LEVEL: &[c_int] = &[21];
const WITH_AUTHORIZED_OPERATIONS: &[c_int] = &[13, 19, 20];

impl AdminOptions {
    pub(super) fn new(client: &Client, for_api: c_int) -> Self {
        let timeout = client.property("socket.timeout.ms").and_then(|ms| ms.parse().ok());
        Self {
            tag: Tag::of::<Self>(),
            for_api,
            request_timeout_ms: timeout.unwrap_or(60_000),
            operation_timeout_ms: None,
            validate_only: false,
            broker: None,
            read_committed: false,
            authorized_operations: false,
            opaque: Opaque(ptr::null_mut()),
        }
    }

    pub(super) const fn opaque(&self) -> Opaque {
        self.opaque
    }

    pub(super) fn for_admin(&self) -> ottla::AdminOptions {
        let millis = |ms: c_int| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let mut options = ottla::AdminOptions::new(millis(self.request_timeout_ms));
        // -1 leaves it to the request's timeout.
        options.operation_timeout = self.operation_timeout_ms.filter(|ms| *ms >= 0).map(millis);
        options.validate_only = self.validate_only;
        options.broker = self.broker;
        options.read_committed = self.read_committed;
        options.authorized_operations = self.authorized_operations;
        options
    }

    fn allows(&self, name: &str, calls: &[c_int]) -> Result<(), String> {
        if self.for_api == 0 || calls.contains(&self.for_api) {
            Ok(())
        } else {
            Err(format!("{name} is no option of this call"))
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

/// Changes options, or writes why they can't be changed.
///
/// # Safety
///
/// Options or NULL, and a buffer of that size or NULL.
unsafe fn change(
    options: *mut AdminOptions,
    errstr: *mut c_char,
    size: usize,
    change: impl FnOnce(&mut AdminOptions) -> Result<(), String>,
) -> c_int {
    guarded(code::_FATAL, || {
        // SAFETY: as the caller says; options are used by one thread at a time.
        unsafe {
            if handle(options.cast_const()).is_none() {
                put_text(errstr, size, "these are no options");
                return code::_INVALID_ARG;
            }
            match change(&mut *options) {
                Ok(()) => code::NO_ERROR,
                Err(text) => {
                    put_text(errstr, size, &text);
                    code::_INVALID_ARG
                }
            }
        }
    })
}

/// The same for functions that answer an error object.
///
/// # Safety
///
/// Options or NULL.
unsafe fn change_or_error(
    options: *mut AdminOptions,
    act: impl FnOnce(&mut AdminOptions) -> Result<(), String>,
) -> *mut ErrorObject {
    let mut reason = String::from("these are no options");
    let keep = |options: &mut AdminOptions| act(options).inspect_err(|text| reason.clone_from(text));
    // SAFETY: as the caller says.
    match unsafe { change(options, ptr::null_mut(), 0, keep) } {
        code::NO_ERROR => ptr::null_mut(),
        error => ErrorObject::new(error, reason).into_raw(),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_new(rk: *const Client, for_api: c_int) -> *mut AdminOptions {
    guarded(ptr::null_mut(), || {
        // SAFETY: NULL or a client, says the caller.
        match unsafe { Client::of(rk) } {
            Some(client) if (0..CALLS).contains(&for_api) => {
                Box::into_raw(Box::new(AdminOptions::new(client, for_api)))
            }
            _ => ptr::null_mut(),
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_destroy(options: *mut AdminOptions) {
    // SAFETY: NULL or options, says the caller, who gives them up.
    unsafe { destroy(options) };
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_request_timeout(
    options: *mut AdminOptions,
    timeout_ms: c_int,
    errstr: *mut c_char,
    errstr_size: usize,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, errstr, errstr_size, |options| {
            in_range("request_timeout", timeout_ms, 0, LONGEST)?;
            options.request_timeout_ms = timeout_ms;
            Ok(())
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_operation_timeout(
    options: *mut AdminOptions,
    timeout_ms: c_int,
    errstr: *mut c_char,
    errstr_size: usize,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, errstr, errstr_size, |options| {
            options.allows("operation_timeout", WITH_OPERATION_TIMEOUT)?;
            in_range("operation_timeout", timeout_ms, -1, LONGEST)?;
            options.operation_timeout_ms = Some(timeout_ms);
            Ok(())
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_validate_only(
    options: *mut AdminOptions,
    true_or_false: c_int,
    errstr: *mut c_char,
    errstr_size: usize,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, errstr, errstr_size, |options| {
            options.allows("validate_only", WITH_VALIDATE_ONLY)?;
            in_range("validate_only", true_or_false, 0, 1)?;
            options.validate_only = true_or_false == 1;
            Ok(())
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_broker(
    options: *mut AdminOptions,
    broker_id: i32,
    errstr: *mut c_char,
    errstr_size: usize,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        change(options, errstr, errstr_size, |options| {
            in_range("broker", broker_id, 0, c_int::MAX)?;
            options.broker = Some(broker_id);
            Ok(())
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_include_authorized_operations(
    options: *mut AdminOptions,
    true_or_false: c_int,
) -> *mut ErrorObject {
    // SAFETY: as the caller says.
    unsafe {
        change_or_error(options, |options| {
            options.allows("include_authorized_operations", WITH_AUTHORIZED_OPERATIONS)?;
            in_range("include_authorized_operations", true_or_false, 0, 1)?;
            options.authorized_operations = true_or_false == 1;
            Ok(())
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_isolation_level(
    options: *mut AdminOptions,
    value: c_int,
) -> *mut ErrorObject {
    // SAFETY: as the caller says.
    unsafe {
        change_or_error(options, |options| {
            options.allows("isolation_level", WITH_ISOLATION_LEVEL)?;
            in_range("isolation_level", value, 0, 1)?;
            options.read_committed = value == 1;
            Ok(())
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_AdminOptions_set_opaque(
    options: *mut AdminOptions,
    ev_opaque: *mut c_void,
) {
    // SAFETY: as the caller says.
    unsafe {
        change(options, ptr::null_mut(), 0, |options| {
            options.opaque = Opaque(ev_opaque);
            Ok(())
        });
    }
}
