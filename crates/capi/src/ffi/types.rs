//! The structures that C programs see, field by field as in the header. `abi/layout.txt` has their sizes and offsets.
#![allow(non_camel_case_types, reason = "the interface's own names")]

use std::ffi::{c_char, c_int, c_void};

use crate::ffi::{codes::RespErr, headers::Headers};

/// `rd_kafka_t` as functions of the application receive it: the address of a client.
#[repr(C)]
#[derive(Debug)]
pub struct rd_kafka_t {
    _hidden: [u8; 0],
}

/// `rd_kafka_topic_t` as functions of the application receive it: the address of a topic.
#[repr(C)]
#[derive(Debug)]
pub struct rd_kafka_topic_t {
    _hidden: [u8; 0],
}

/// `rd_kafka_message_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rd_kafka_message_t {
    /// The error code, or zero.
    pub err: RespErr,
    /// The topic.
    pub rkt: *const rd_kafka_topic_t,
    /// The partition.
    pub partition: i32,
    /// The value.
    pub payload: *mut c_void,
    /// The size of the value.
    pub len: usize,
    /// The key.
    pub key: *mut c_void,
    /// The size of the key.
    pub key_len: usize,
    /// The offset.
    pub offset: i64,
    /// The application's pointer, for produced messages.
    pub private: *mut c_void,
}

/// `rd_kafka_topic_partition_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rd_kafka_topic_partition_t {
    /// The topic, from `malloc`.
    pub topic: *mut c_char,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The metadata that is committed with the offset, from `malloc`.
    pub metadata: *mut c_void,
    /// The size of the metadata.
    pub metadata_size: usize,
    /// The application's pointer.
    pub opaque: *mut c_void,
    /// The error of this partition.
    pub err: RespErr,
    /// The library's pointer: a boxed `list::Private`.
    pub private: *mut c_void,
}

/// `rd_kafka_topic_partition_list_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rd_kafka_topic_partition_list_t {
    /// The number of elements.
    pub cnt: c_int,
    /// The capacity.
    pub size: c_int,
    /// The elements, from `malloc`.
    pub elems: *mut rd_kafka_topic_partition_t,
}

/// `rd_kafka_vu_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rd_kafka_vu_t {
    /// The kind of the argument, `RD_KAFKA_VTYPE_*`.
    pub vtype: c_int,
    /// The argument.
    pub u: Argument,
}

/// The union in [`rd_kafka_vu_t`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union Argument {
    /// The topic's name.
    pub cstr: *const c_char,
    /// The topic's handle.
    pub rkt: *const rd_kafka_topic_t,
    /// Flags.
    pub i: c_int,
    /// The partition.
    pub i32: i32,
    /// The timestamp.
    pub i64: i64,
    /// Key or value.
    pub mem: Memory,
    /// A header.
    pub header: HeaderArgument,
    /// Headers.
    pub headers: *mut Headers,
    /// The application's pointer.
    pub ptr: *mut c_void,
    /// Padding for further kinds of arguments.
    pub pad: [u8; 64],
}

/// Bytes of the application.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The address.
    pub ptr: *mut c_void,
    /// The number of bytes.
    pub size: usize,
}

/// A header as an argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeaderArgument {
    /// The name.
    pub name: *const c_char,
    /// The value.
    pub value: *const c_void,
    /// The size of the value; -1 if it ends with a zero byte.
    pub size: isize,
}

impl std::fmt::Debug for rd_kafka_vu_t {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rd_kafka_vu_t({})", self.vtype)
    }
}

impl std::fmt::Debug for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Argument")
    }
}

/// `RD_KAFKA_PARTITION_UA`.
pub const PARTITION_UA: i32 = -1;
/// `RD_KAFKA_OFFSET_BEGINNING`.
pub const OFFSET_BEGINNING: i64 = -2;
/// `RD_KAFKA_OFFSET_END`.
pub const OFFSET_END: i64 = -1;
/// `RD_KAFKA_OFFSET_STORED`.
pub const OFFSET_STORED: i64 = -1000;
/// `RD_KAFKA_OFFSET_INVALID`.
pub const OFFSET_INVALID: i64 = -1001;
/// `RD_KAFKA_OFFSET_TAIL_BASE`.
pub const OFFSET_TAIL_BASE: i64 = -2000;

/// `RD_KAFKA_MSG_F_FREE`.
pub const F_FREE: c_int = 1;
/// `RD_KAFKA_MSG_F_COPY`.
pub const F_COPY: c_int = 2;
/// `RD_KAFKA_MSG_F_BLOCK`.
pub const F_BLOCK: c_int = 4;
/// `RD_KAFKA_MSG_F_PARTITION`.
pub const F_PARTITION: c_int = 8;

/// The kinds of arguments of `rd_kafka_producev`.
pub mod vtype {
    /// The end of the arguments.
    pub const END: i32 = 0;
    /// The name of the topic.
    pub const TOPIC: i32 = 1;
    /// A topic handle.
    pub const RKT: i32 = 2;
    /// The partition.
    pub const PARTITION: i32 = 3;
    /// The payload.
    pub const VALUE: i32 = 4;
    /// The key.
    pub const KEY: i32 = 5;
    /// The application's pointer.
    pub const OPAQUE: i32 = 6;
    /// `RD_KAFKA_MSG_F_*`.
    pub const MSGFLAGS: i32 = 7;
    /// Milliseconds since 1970.
    pub const TIMESTAMP: i32 = 8;
    /// One header.
    pub const HEADER: i32 = 9;
    /// A list of headers.
    pub const HEADERS: i32 = 10;
}

/// `RD_KAFKA_EVENT_*`.
pub mod event_type {
    /// Delivery reports.
    pub const DR: i32 = 1;
    /// Consumed messages.
    pub const FETCH: i32 = 2;
    /// Log lines.
    pub const LOG: i32 = 4;
    /// Errors.
    pub const ERROR: i32 = 8;
    /// Rebalances.
    pub const REBALANCE: i32 = 16;
    /// Outcomes of commits.
    pub const OFFSET_COMMIT: i32 = 32;
    /// Statistics.
    pub const STATS: i32 = 64;
    /// Requests for a token.
    pub const OAUTHBEARER_TOKEN_REFRESH: i32 = 256;
}
