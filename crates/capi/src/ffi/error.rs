//! The texts of error codes, `rd_kafka_error_t`, and the error of the last call.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    sync::{Mutex, OnceLock, PoisonError},
};

use ottla_core::{error::ErrorKind, produce::record::SendError};
use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use crate::ffi::{
    argument::{Given, Ref},
    boundary::{Handle, Tag, guarded_local},
    codes::{CODES, RespErr, code},
    export, getters,
    last_error::last,
};

pub(crate) use super::last_error::{fail, set_last};

/// `rd_kafka_error_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ErrorObject {
    tag: Tag,
    code: RespErr,
    text: CString,
    is_fatal: bool,
    is_retriable: bool,
    requires_abort: bool,
}

/// `struct rd_kafka_err_desc`.
#[repr(C)]
#[derive(Debug)]
pub struct ErrDesc {
    code: RespErr,
    name: *const c_char,
    desc: *const c_char,
}

impl ErrDesc {
    /// Returns the row for a number that is not an error code.
    const EMPTY: Self = Self { code: code::NO_ERROR, name: std::ptr::null(), desc: std::ptr::null() };
}

// SAFETY: the pointers lead to texts that live as long as the process and are never changed.
unsafe impl Send for ErrDesc {}
// SAFETY: as above.
unsafe impl Sync for ErrDesc {}

struct Texts {
    first: i32,
    rows: Vec<ErrDesc>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for ErrorObject {
    const KIND: u32 = 0x6f74_4501;
}

impl ErrorObject {
    pub(crate) fn new(code: RespErr, text: impl Into<Vec<u8>>) -> Self {
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

    /// Returns an error that ended the client, with the code of its cause.
    pub(crate) fn fatal(cause: RespErr, text: impl Into<Vec<u8>>) -> Self {
        Self { is_fatal: true, ..Self::new(cause, text) }
    }

    /// Sets whether the same call may succeed later, and whether the transaction must be aborted.
    pub(crate) fn classed(self, is_retriable: bool, requires_abort: bool) -> Self {
        Self { is_retriable, requires_abort, ..self }
    }

    /// Returns the object as a pointer that C has to destroy.
    pub(crate) fn into_raw(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    pub(crate) const fn code(&self) -> RespErr {
        self.code
    }

    /// Returns NULL for success, otherwise an error object.
    pub(crate) fn from_result(result: Result<(), Self>) -> *mut Self {
        result.map_or_else(Self::into_raw, |()| std::ptr::null_mut())
    }
}

impl From<&ottla_core::error::Error> for ErrorObject {
    fn from(error: &ottla_core::error::Error) -> Self {
        Self { is_retriable: error.is_retriable(), ..Self::new(code_of(error), error.to_string()) }
    }
}

impl From<ErrorCode> for RespErr {
    fn from(code: ErrorCode) -> Self {
        Self(code.0.into())
    }
}

/// Returns the code of the interface for an error of the core.
pub(crate) fn code_of(error: &ottla_core::error::Error) -> RespErr {
    code_of_kind(error.kind())
}

pub(crate) fn code_of_kind(kind: ErrorKind) -> RespErr {
    match kind {
        ErrorKind::Broker(code) => code.into(),
        ErrorKind::Resolve => code::_RESOLVE,
        ErrorKind::Connect | ErrorKind::Proxy | ErrorKind::Disconnected => code::_TRANSPORT,
        ErrorKind::Tls => code::_SSL,
        ErrorKind::Authentication => code::_AUTHENTICATION,
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
        ErrorKind::InvalidDifferentRecord => code::_INVALID_DIFFERENT_RECORD,
        ErrorKind::UnknownPartition => code::_UNKNOWN_PARTITION,
        ErrorKind::InvalidArgument => code::_INVALID_ARG,
        ErrorKind::State => code::_STATE,
        ErrorKind::Fenced => code::_FENCED,
        ErrorKind::Inconsistent => code::_INCONSISTENT,
        ErrorKind::Conflict => code::_CONFLICT,
        ErrorKind::PreviousInProgress => code::_PREV_IN_PROGRESS,
        ErrorKind::NotConfigured => code::_NOT_CONFIGURED,
        ErrorKind::Closed => code::_DESTROY,
        // The position is lost, for the reason in the text.
        ErrorKind::OffsetReset | ErrorKind::LogTruncated => code::_AUTO_OFFSET_RESET,
        ErrorKind::MaxPollExceeded => code::_MAX_POLL_EXCEEDED,
        _ => code::_FAIL,
    }
}

/// Returns the code of the interface for a message that was not delivered. If no broker knows its topic, that is the
/// broker's code.
pub(crate) fn code_of_delivery(error: &ottla_core::error::Error) -> RespErr {
    match error.kind() {
        ErrorKind::UnknownTopic => code::UNKNOWN_TOPIC_OR_PART,
        kind => code_of_kind(kind),
    }
}

/// Returns the code of the interface for a message that was not accepted.
#[cold]
pub(crate) fn code_of_send(error: &SendError) -> RespErr {
    match error {
        SendError::QueueFull => code::_QUEUE_FULL,
        SendError::MessageTooLarge { .. } => code::MSG_SIZE_TOO_LARGE,
        SendError::UnknownPartition { .. } => code::_UNKNOWN_PARTITION,
        SendError::Topic(error) => match error.kind() {
            ErrorKind::InvalidArgument => code::_INVALID_ARG,
            // A topic name that brokers refuse counts as an unknown topic.
            ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::INVALID_TOPIC_EXCEPTION) => {
                code::_UNKNOWN_TOPIC
            }
            _ => code_of(error),
        },
        SendError::Closed => code::_DESTROY,
        SendError::State(_) => code::_STATE,
        SendError::Fatal(_) => code::_FATAL,
        _ => code::_FAIL,
    }
}

fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let first = CODES.iter().map(|(code, _, _)| code.0).min().unwrap_or(0);
        let last = CODES.iter().map(|(code, _, _)| code.0).max().unwrap_or(0);
        let mut rows: Vec<ErrDesc> = (first..=last).map(|_| ErrDesc::EMPTY).collect();
        for (code, name, description) in CODES {
            let desc = match *description {
                "" if !code.is_of_broker() => std::ptr::null(),
                "" => kept(&format!("Broker: {}", ErrorCode(code.0 as i16).description())),
                description => kept(description),
            };
            rows[(code.0 - first) as usize] = ErrDesc { code: *code, name: kept(name), desc };
        }
        Texts { first, rows }
    })
}

/// Moves a text to memory that is never freed: applications keep pointers to descriptions.
fn kept(text: &str) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// Returns the row of an error code. `_BEGIN` and `_END` have no description and are not errors.
fn row(code: RespErr) -> Option<&'static ErrDesc> {
    let texts = texts();
    let index = usize::try_from(i64::from(code.0) - i64::from(texts.first)).ok()?;
    texts.rows.get(index).filter(|row| !row.desc.is_null())
}

/// Returns name and description of a code without a row, generated from the number.
fn unknown(code: RespErr) -> (&'static CStr, &'static CStr) {
    /// Generated texts are kept for at most 65,536 codes, which is what brokers can send; a program that asks for more
    /// of them must not fill the memory.
    const MOST: usize = 1 << 16;
    static UNKNOWN: Mutex<SortedMap<RespErr, (&'static CStr, &'static CStr)>> = Mutex::new(SortedMap::new());
    let mut unknown = UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if unknown.len() >= MOST && !unknown.contains_key(&code) {
        return (c"ERR_?", c"Err-?");
    }
    *unknown.entry(code).or_insert_with(|| {
        // SAFETY: `kept` returns NUL-terminated texts that are never freed.
        unsafe {
            (CStr::from_ptr(kept(&format!("ERR_{code}?"))), CStr::from_ptr(kept(&format!("Err-{code}?"))))
        }
    })
}

/// Returns the description of a code.
pub(crate) fn describe(code: RespErr) -> &'static CStr {
    match row(code) {
        // SAFETY: `row` returns only rows with a description, and it is never freed.
        Some(row) => unsafe { CStr::from_ptr(row.desc) },
        None => unknown(code).1,
    }
}

export!(
    #[local(c"".as_ptr())]
    fn rd_kafka_err2str(err: RespErr) -> *const c_char {
        describe(err).as_ptr()
    }
);

fn name(err: RespErr) -> *const c_char {
    row(err).map_or_else(|| unknown(err).0.as_ptr(), |row| row.name)
}

export!(
    #[local(c"".as_ptr())]
    fn rd_kafka_err2name(err: RespErr) -> *const c_char {
        name(err)
    }
);

export!(
    #[local(())]
    fn rd_kafka_get_err_descs(errdescs: *mut *const ErrDesc, cntp: *mut usize) {
        let texts = texts();
        if errdescs.is_null() || cntp.is_null() {
            return;
        }
        // SAFETY: neither is NULL, and the header demands writable addresses.
        unsafe {
            *errdescs = texts.rows.as_ptr();
            *cntp = texts.rows.len();
        }
    }
);

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_last_error() -> RespErr {
        last()
    }
);

export!(
    #[local(0)]
    fn rd_kafka_errno() -> c_int {
        // SAFETY: `errno`'s address is valid in this thread.
        unsafe { *crate::platform::errno() }
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_errno2err(errnox: c_int) -> RespErr {
        match errnox {
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
);

/// Creates an error object; called by the C half of `rd_kafka_error_new`.
///
/// # Safety
///
/// `reason` is a text or NULL.
pub(crate) unsafe extern "C" fn ottla_error_new(err: RespErr, reason: *const c_char) -> *mut ErrorObject {
    guarded_local(std::ptr::null_mut(), || {
        let text = if reason.is_null() {
            describe(err)
        } else {
            // SAFETY: by the contract of this function.
            unsafe { CStr::from_ptr(reason) }
        };
        ErrorObject::new(err, text.to_bytes()).into_raw()
    })
}

getters! {
    fn rd_kafka_error_code(error: Ref<ErrorObject>) -> RespErr { code::NO_ERROR; error.code }
    fn rd_kafka_error_name(error: Ref<ErrorObject>) -> *const c_char { c"".as_ptr(); name(error.code) }
    fn rd_kafka_error_string(error: Ref<ErrorObject>) -> *const c_char { c"".as_ptr(); error.text.as_ptr() }
    fn rd_kafka_error_is_fatal(error: Ref<ErrorObject>) -> c_int { 0; error.is_fatal.into() }
    fn rd_kafka_error_is_retriable(error: Ref<ErrorObject>) -> c_int { 0; error.is_retriable.into() }
    fn rd_kafka_error_txn_requires_abort(error: Ref<ErrorObject>) -> c_int { 0; error.requires_abort.into() }
}

export!(
    #[local(())]
    fn rd_kafka_error_destroy(error: Given<ErrorObject>) {
        error.retire();
    }
);
