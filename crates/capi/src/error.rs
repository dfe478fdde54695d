//! Error codes in words, `rd_kafka_error_t`, and the error of the last call.

use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char, c_int},
    sync::OnceLock,
};

use ottla::{ErrorCode, ErrorKind, SendError};

use crate::{
    boundary::{Handle, Tag, guarded_local, handle, put_text, text},
    client::Client,
    codes::{CODES, code},
    graves,
};

/// `rd_kafka_error_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ErrorObject {
    tag: Tag,
    code: c_int,
    text: CString,
    is_fatal: bool,
    is_retriable: bool,
    requires_abort: bool,
}

/// `struct rd_kafka_err_desc`.
#[repr(C)]
#[derive(Debug)]
pub struct ErrDesc {
    code: c_int,
    name: *const c_char,
    desc: *const c_char,
}

// SAFETY: the pointers lead to texts that live as long as the process and are never written to.
unsafe impl Send for ErrDesc {}
// SAFETY: as above.
unsafe impl Sync for ErrDesc {}

struct Texts {
    first: c_int,
    rows: Vec<ErrDesc>,
}

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(0) };
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for ErrorObject {
    const KIND: u32 = 0x6f74_4501;
}

impl ErrorObject {
    pub(crate) fn new(code: c_int, text: impl Into<Vec<u8>>) -> Self {
        let mut text = text.into();
        text.retain(|byte| *byte != 0);
        Self {
            tag: Tag::of::<Self>(),
            code,
            text: CString::new(text).unwrap_or_default(),
            is_fatal: code == code::_FATAL,
            is_retriable: false,
            requires_abort: false,
        }
    }

    /// As a pointer that C has to destroy.
    pub(crate) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    /// NULL for success, else an object.
    pub(crate) fn answer(result: Result<(), Self>) -> *mut Self {
        result.map_or_else(Self::into_raw, |()| std::ptr::null_mut())
    }
}

impl From<&ottla::Error> for ErrorObject {
    fn from(error: &ottla::Error) -> Self {
        Self { is_retriable: error.is_retriable(), ..Self::new(code_of(error), error.to_string()) }
    }
}

/// Sets the error of this thread's last call, and `errno` with it; answers -1.
#[cold]
pub(crate) fn fail(code: c_int) -> c_int {
    set_last(code);
    -1
}

/// Sets the error of this thread's last call, and `errno` with it.
pub(crate) fn set_last(code: c_int) {
    LAST.set(code);
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = errno_of(code) };
}

/// The code of the interface for one of our errors.
pub(crate) fn code_of(error: &ottla::Error) -> c_int {
    code_of_kind(error.kind())
}

pub(crate) fn code_of_kind(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::Broker(code) => c_int::from(code.0),
        ErrorKind::Resolve => code::_RESOLVE,
        ErrorKind::Connect | ErrorKind::Disconnected => code::_TRANSPORT,
        ErrorKind::RequestTimedOut | ErrorKind::TimedOut => code::_TIMED_OUT,
        ErrorKind::AllBrokersDown => code::_ALL_BROKERS_DOWN,
        ErrorKind::NotKafka => code::_TRANSPORT,
        ErrorKind::BadResponse | ErrorKind::BadBatch => code::_BAD_MSG,
        ErrorKind::UnsupportedVersion => code::_UNSUPPORTED_FEATURE,
        ErrorKind::MessageTimedOutInQueue | ErrorKind::MessageTimedOutInFlight => code::_MSG_TIMED_OUT,
        ErrorKind::PurgedFromQueue => code::_PURGE_QUEUE,
        ErrorKind::PurgedInFlight => code::_PURGE_INFLIGHT,
        ErrorKind::QueueFull => code::_QUEUE_FULL,
        ErrorKind::MessageTooLarge => code::MSG_SIZE_TOO_LARGE,
        ErrorKind::UnknownTopic => code::_UNKNOWN_TOPIC,
        ErrorKind::UnknownPartition => code::_UNKNOWN_PARTITION,
        ErrorKind::InvalidArgument => code::_INVALID_ARG,
        ErrorKind::State => code::_STATE,
        ErrorKind::Closed => code::_DESTROY,
        ErrorKind::OffsetReset => code::_AUTO_OFFSET_RESET,
        _ => code::_FAIL,
    }
}

/// The code of the interface for a message that was not taken.
#[cold]
pub(crate) fn code_of_send(error: &SendError) -> c_int {
    match error {
        SendError::QueueFull => code::_QUEUE_FULL,
        SendError::MessageTooLarge { .. } => code::MSG_SIZE_TOO_LARGE,
        SendError::UnknownPartition { .. } => code::_UNKNOWN_PARTITION,
        SendError::Topic(error) => match error.kind() {
            ErrorKind::InvalidArgument => code::_INVALID_ARG,
            ErrorKind::Broker(ErrorCode(3)) => code::_UNKNOWN_TOPIC,
            _ => code_of(error),
        },
        SendError::Closed => code::_DESTROY,
        SendError::Fatal(_) => code::_FATAL,
        _ => code::_FAIL,
    }
}

/// The `errno` that the interface documents for a code.
fn errno_of(code: c_int) -> c_int {
    match code {
        code::NO_ERROR => 0,
        code::_QUEUE_FULL => libc::ENOBUFS,
        code::MSG_SIZE_TOO_LARGE => libc::EMSGSIZE,
        code::_UNKNOWN_PARTITION => libc::ESRCH,
        code::_UNKNOWN_TOPIC => libc::ENOENT,
        code::_TIMED_OUT | code::_MSG_TIMED_OUT => libc::ETIMEDOUT,
        code::_FATAL => libc::ECANCELED,
        code::_CONFLICT => libc::EBUSY,
        code::_STATE => libc::ENOEXEC,
        code::_PREV_IN_PROGRESS => libc::EEXIST,
        code::_NOT_IMPLEMENTED => libc::ENOSYS,
        _ => libc::EINVAL,
    }
}

fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let first = CODES.iter().map(|(code, _, _)| *code).min().unwrap_or(0);
        let last = CODES.iter().map(|(code, _, _)| *code).max().unwrap_or(0);
        let mut rows: Vec<ErrDesc> = (first..=last)
            .map(|code| ErrDesc { code, name: std::ptr::null(), desc: std::ptr::null() })
            .collect();
        for (code, name, meaning) in CODES {
            let meaning = match *meaning {
                "" => format!("Broker: {}", ErrorCode(*code as i16).description()),
                meaning if *code < -1 => format!("Local: {meaning}"),
                meaning => meaning.to_owned(),
            };
            // These live as long as the library: it is asked for them until the end.
            let keep = |text: &str| CString::new(text).unwrap_or_default().into_raw().cast_const();
            rows[(code - first) as usize] = ErrDesc { code: *code, name: keep(name), desc: keep(&meaning) };
        }
        Texts { first, rows }
    })
}

fn row(code: c_int) -> Option<&'static ErrDesc> {
    let texts = texts();
    let place = usize::try_from(i64::from(code) - i64::from(texts.first)).ok()?;
    texts.rows.get(place).filter(|row| !row.name.is_null())
}

/// What a code means.
pub(crate) fn describe(code: c_int) -> &'static CStr {
    match row(code) {
        // SAFETY: a row that has a name has a description, both live for ever.
        Some(row) => unsafe { CStr::from_ptr(row.desc) },
        None => c"Unknown error code",
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_err2str(err: c_int) -> *const c_char {
    guarded_local(c"".as_ptr(), || describe(err).as_ptr())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_err2name(err: c_int) -> *const c_char {
    guarded_local(c"".as_ptr(), || row(err).map_or(c"ERR_UNKNOWN".as_ptr(), |row| row.name))
}

/// See the header.
///
/// # Safety
///
/// Both pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_get_err_descs(errdescs: *mut *const ErrDesc, cntp: *mut usize) {
    let texts = texts();
    if errdescs.is_null() || cntp.is_null() {
        return;
    }
    // SAFETY: neither is NULL, and the caller says that they are writable.
    unsafe {
        *errdescs = texts.rows.as_ptr();
        *cntp = texts.rows.len();
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_last_error() -> c_int {
    LAST.get()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_errno() -> c_int {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_errno2err(errnox: c_int) -> c_int {
    match errnox {
        0 => code::NO_ERROR,
        libc::EINVAL => code::_INVALID_ARG,
        libc::EBUSY => code::_CONFLICT,
        libc::ENOENT => code::_UNKNOWN_TOPIC,
        libc::ESRCH => code::_UNKNOWN_PARTITION,
        libc::ETIMEDOUT => code::_TIMED_OUT,
        libc::EMSGSIZE => code::MSG_SIZE_TOO_LARGE,
        libc::ENOBUFS => code::_QUEUE_FULL,
        libc::ECANCELED => code::_FATAL,
        _ => code::_FAIL,
    }
}

/// See the header.
///
/// # Safety
///
/// `rk` is a client or NULL, `errstr` has `errstr_size` bytes or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_fatal_error(rk: *const Client, errstr: *mut c_char, size: usize) -> c_int {
    // SAFETY: as the caller says.
    guarded_local(code::_INVALID_ARG, || match unsafe { Client::of(rk) } {
        None => code::_INVALID_ARG,
        Some(client) => match client.fatal() {
            None => code::NO_ERROR,
            Some((code, reason)) => {
                // SAFETY: as the caller says.
                unsafe { put_text(errstr, size, &reason) };
                code
            }
        },
    })
}

/// See the header.
///
/// # Safety
///
/// `rk` is a client or NULL, `reason` a text or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_test_fatal_error(
    rk: *const Client,
    err: c_int,
    reason: *const c_char,
) -> c_int {
    // SAFETY: as the caller says.
    guarded_local(code::_INVALID_ARG, || match unsafe { (Client::of(rk), text(reason)) } {
        (Some(client), reason) => {
            let reason = reason.unwrap_or_default();
            if client.set_fatal(err, &format!("test_fatal_error: {reason}")) {
                code::NO_ERROR
            } else {
                code::_PREV_IN_PROGRESS
            }
        }
        _ => code::_INVALID_ARG,
    })
}

/// Called by the C half of `rd_kafka_error_new`.
///
/// # Safety
///
/// `reason` is a text or NULL.
pub(crate) unsafe extern "C" fn ottla_error_new(err: c_int, reason: *const c_char) -> *mut ErrorObject {
    guarded_local(std::ptr::null_mut(), || {
        let text = if reason.is_null() {
            describe(err)
        } else {
            // SAFETY: as the caller says.
            unsafe { CStr::from_ptr(reason) }
        };
        ErrorObject::new(err, text.to_bytes()).into_raw()
    })
}

/// Reads a field of an error object; NULL is success.
///
/// # Safety
///
/// `error` is NULL or an error object.
unsafe fn read<R>(error: *const ErrorObject, null: R, read: impl FnOnce(&ErrorObject) -> R) -> R {
    // SAFETY: as the caller says.
    unsafe { handle(error) }.map_or(null, read)
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_code(error: *const ErrorObject) -> c_int {
    // SAFETY: as the caller says.
    unsafe { read(error, 0, |error| error.code) }
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_name(error: *const ErrorObject) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { read(error, rd_kafka_err2name(0), |error| rd_kafka_err2name(error.code)) }
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_string(error: *const ErrorObject) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { read(error, c"".as_ptr(), |error| error.text.as_ptr()) }
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_is_fatal(error: *const ErrorObject) -> c_int {
    // SAFETY: as the caller says.
    unsafe { read(error, 0, |error| error.is_fatal.into()) }
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_is_retriable(error: *const ErrorObject) -> c_int {
    // SAFETY: as the caller says.
    unsafe { read(error, 0, |error| error.is_retriable.into()) }
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_txn_requires_abort(error: *const ErrorObject) -> c_int {
    // SAFETY: as the caller says.
    unsafe { read(error, 0, |error| error.requires_abort.into()) }
}

/// See the header.
///
/// # Safety
///
/// `error` is NULL or an error object that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_error_destroy(error: *mut ErrorObject) {
    // SAFETY: NULL or an error object, which the caller gives up.
    guarded_local((), || unsafe { graves::bury(error) });
}
