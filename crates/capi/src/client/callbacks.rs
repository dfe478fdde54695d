//! The types of the application's functions that a configuration holds.

use std::ffi::{c_char, c_int, c_void};

use crate::{
    client::event::Event,
    ffi::{
        codes::RespErr,
        list::List,
        types::{rd_kafka_message_t, rd_kafka_t, rd_kafka_topic_t},
    },
    platform::{mode_t, net},
};

pub(crate) type DrCb =
    unsafe extern "C" fn(*const rd_kafka_t, *mut c_void, usize, RespErr, *mut c_void, *mut c_void);
pub(crate) type DrMsgCb = unsafe extern "C" fn(*const rd_kafka_t, *const rd_kafka_message_t, *mut c_void);
pub(crate) type ConsumeCb = unsafe extern "C" fn(*mut rd_kafka_message_t, *mut c_void);
pub(crate) type ListCb = unsafe extern "C" fn(*const rd_kafka_t, RespErr, *mut List, *mut c_void);
pub(crate) type ErrorCb = unsafe extern "C" fn(*const rd_kafka_t, RespErr, *const c_char, *mut c_void);
pub(crate) type ThrottleCb = unsafe extern "C" fn(*const rd_kafka_t, *const c_char, i32, c_int, *mut c_void);
pub(crate) type LogCb = unsafe extern "C" fn(*const rd_kafka_t, c_int, *const c_char, *const c_char);
pub(crate) type StatsCb = unsafe extern "C" fn(*const rd_kafka_t, *mut c_char, usize, *mut c_void) -> c_int;
pub(crate) type TokenCb = unsafe extern "C" fn(*const rd_kafka_t, *const c_char, *mut c_void);
pub(crate) type EventCb = unsafe extern "C" fn(*const rd_kafka_t, *mut Event, *mut c_void);
pub(crate) type PartitionerCb =
    unsafe extern "C" fn(*const rd_kafka_topic_t, *const c_void, usize, i32, *mut c_void, *mut c_void) -> i32;
pub(crate) type MsgOrderCmp =
    unsafe extern "C" fn(*const rd_kafka_message_t, *const rd_kafka_message_t) -> c_int;
pub(crate) type NotifyCb = unsafe extern "C" fn(*const rd_kafka_t, *mut c_void);
pub(crate) type SocketCb = unsafe extern "C-unwind" fn(c_int, c_int, c_int, *mut c_void) -> c_int;
pub(crate) type ConnectCb =
    unsafe extern "C-unwind" fn(c_int, *const net::sockaddr, c_int, *const c_char, *mut c_void) -> c_int;
pub(crate) type CloseSocketCb = unsafe extern "C-unwind" fn(c_int, *mut c_void) -> c_int;
pub(crate) type OpenCb = unsafe extern "C-unwind" fn(*const c_char, c_int, mode_t, *mut c_void) -> c_int;
pub(crate) type CertificateCb = unsafe extern "C-unwind" fn(
    *const rd_kafka_t,
    *const c_char,
    i32,
    *mut c_int,
    c_int,
    *const c_char,
    usize,
    *mut c_char,
    usize,
    *mut c_void,
) -> c_int;
pub(crate) type ResolveCb = unsafe extern "C-unwind" fn(
    *const c_char,
    *const c_char,
    *const net::addrinfo,
    *mut *mut net::addrinfo,
    *mut c_void,
) -> c_int;

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
    pub(crate) log: LogTo,
    pub(crate) stats: Option<StatsCb>,
    pub(crate) background_event: Option<EventCb>,
    pub(crate) socket: Option<SocketCb>,
    pub(crate) connect: Option<ConnectCb>,
    pub(crate) closesocket: Option<CloseSocketCb>,
    pub(crate) open: Option<OpenCb>,
    pub(crate) resolve: Option<ResolveCb>,
    pub(crate) certificate: Option<CertificateCb>,
    pub(crate) token_refresh: Option<TokenCb>,
}

/// The destination of a client's log lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum LogTo {
    /// The application set nothing: lines are printed, as by `rd_kafka_log_print`.
    #[default]
    StandardError,
    /// The application's callback receives the lines.
    Application(LogCb),
    /// The application set NULL as its callback.
    Nowhere,
}

impl From<Option<LogCb>> for LogTo {
    fn from(callback: Option<LogCb>) -> Self {
        callback.map_or(Self::Nowhere, Self::Application)
    }
}
