//! What stands behind every `rd_kafka_message_t` that the library hands out, and the functions that read it.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ottla::{FetchedRecords, MessageRef};

use crate::{
    arena::{self, Chunk},
    boundary::guarded_local,
    codes::code,
    error::describe,
    headers::{Header, Headers},
    topic::Topic,
    types::rd_kafka_message_t,
};

/// A message with what its accessors tell. C sees the first field only.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) message: rd_kafka_message_t,
    pub(crate) timestamp: i64,
    pub(crate) home: Home,
    /// The headers as a list: the application's of a produced message, made when first asked for of a consumed one.
    pub(crate) headers: *mut Headers,
    /// The headers as they were fetched, in the slab's memory.
    encoded_headers: *const u8,
    encoded_headers_len: u32,
    header_count: u32,
    /// Of a produced message: microseconds, the time of the call and later what passed until the report.
    pub(crate) latency: i64,
    /// Of a consumed message; -1 if unknown.
    pub(crate) leader_epoch: i32,
    /// Who answered for it or sent it; -1 if unknown.
    pub(crate) broker_id: i32,
    pub(crate) timestamp_kind: u8,
    pub(crate) status: u8,
    /// A produced message whose latency is known.
    pub(crate) is_reported: bool,
    /// The payload is to be freed with the message.
    pub(crate) frees_payload: bool,
}

/// Where a message's memory belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    /// To a chunk of the arena.
    Arena(*mut Chunk),
    /// To a slab of consumed messages.
    Slab(*const Slab),
    /// To itself: an error, with its text and its topic.
    Alone(*mut Lonely),
    /// To others: the message was given back.
    Gone,
}

/// An error as a message.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Lonely {
    held: Held,
    text: Vec<u8>,
    topic: Option<Arc<Topic>>,
}

/// Consumed messages of one partition, counted together: the slab is free when each was given back.
#[derive(Debug)]
pub(crate) struct Slab {
    /// Messages that somebody has or may get yet, and one while the queue hands them out.
    users: AtomicUsize,
    /// The first of the messages. They are only reached through this pointer: C may write to them.
    first: *mut Held,
    messages: Vec<Held>,
    /// The memory that keys and values are in.
    fetched: Arc<FetchedRecords>,
    /// What the messages point to.
    #[allow(dead_code, reason = "it is kept alive")]
    topic: Arc<Topic>,
}

const TIMESTAMP_CREATE_TIME: u8 = 1;
const TIMESTAMP_LOG_APPEND_TIME: u8 = 2;
/// Messages per slab: few enough to stay in the cache from decoding to the application.
pub(crate) const SLAB: usize = 128;

impl Held {
    /// A message to be produced, without its payload and key.
    #[inline]
    pub(crate) fn produced(topic: &Topic, partition: i32, opaque: *mut c_void, home: *mut Chunk) -> Self {
        Self {
            message: rd_kafka_message_t {
                err: 0,
                rkt: topic,
                partition,
                payload: ptr::null_mut(),
                len: 0,
                key: ptr::null_mut(),
                key_len: 0,
                offset: crate::types::OFFSET_INVALID,
                private: opaque,
            },
            timestamp: -1,
            home: Home::Arena(home),
            headers: ptr::null_mut(),
            encoded_headers: ptr::null(),
            encoded_headers_len: 0,
            header_count: 0,
            latency: -1,
            leader_epoch: -1,
            broker_id: -1,
            timestamp_kind: TIMESTAMP_CREATE_TIME,
            status: 0,
            is_reported: false,
            frees_payload: false,
        }
    }

    #[inline]
    fn consumed(message: &MessageRef<'_>, topic: &Topic) -> Self {
        let field = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len()),
            None => (ptr::null_mut(), 0),
        };
        let ((payload, len), (key, key_len)) = (field(message.value()), field(message.key()));
        let headers = message.headers();
        let timestamp = message.timestamp();
        Self {
            message: rd_kafka_message_t {
                err: 0,
                rkt: topic,
                partition: message.partition(),
                payload,
                len,
                key,
                key_len,
                offset: message.offset(),
                private: ptr::null_mut(),
            },
            timestamp,
            home: Home::Slab(ptr::null()),
            headers: ptr::null_mut(),
            encoded_headers: headers.bytes().as_ptr(),
            encoded_headers_len: headers.bytes().len() as u32,
            header_count: headers.len() as u32,
            latency: -1,
            leader_epoch: message.leader_epoch(),
            broker_id: message.broker_id().unwrap_or(-1),
            timestamp_kind: match timestamp {
                ..0 => 0,
                _ if message.is_log_append_time() => TIMESTAMP_LOG_APPEND_TIME,
                _ => TIMESTAMP_CREATE_TIME,
            },
            status: 2,
            is_reported: false,
            frees_payload: false,
        }
    }

    /// The message that C points to, with what stands behind it.
    ///
    /// # Safety
    ///
    /// `message` is NULL or was handed out by this library and not given back.
    pub(crate) unsafe fn of<'a>(message: *const rd_kafka_message_t) -> Option<&'a mut Self> {
        // SAFETY: every message handed out is the first field of a `Held`.
        unsafe { message.cast_mut().cast::<Self>().as_mut() }
    }

    /// Frees what the message owns, but not its own memory.
    pub(crate) fn release_parts(&mut self) {
        let headers = std::mem::replace(&mut self.headers, ptr::null_mut());
        if !headers.is_null() {
            // SAFETY: the list belongs to the message.
            unsafe { Headers::drop_with_message(headers) };
        }
        if self.frees_payload {
            self.frees_payload = false;
            // SAFETY: the application gave the payload to the library with F_FREE.
            unsafe { libc::free(self.message.payload) };
        }
    }

    /// The headers as a list.
    fn header_list(&mut self) -> *mut Headers {
        if self.headers.is_null() && self.header_count > 0 {
            // SAFETY: the bytes are in the slab's buffer, which lives as long as its messages.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.encoded_headers, self.encoded_headers_len as usize)
            };
            let list = ottla::Headers::new(bytes, self.header_count)
                .map(|header| Header::new(header.key, header.value))
                .collect();
            self.headers = Headers::new(list).into_raw();
            // SAFETY: it was just made.
            unsafe { Headers::give_to_message(self.headers) };
        }
        self.headers
    }
}

impl Slab {
    /// A slab of messages that `fill` shows.
    pub(crate) fn new(
        fetched: &Arc<FetchedRecords>,
        topic: &Arc<Topic>,
        fill: impl FnOnce(&mut dyn FnMut(&MessageRef<'_>)),
    ) -> *const Self {
        let mut messages = Vec::with_capacity(SLAB);
        fill(&mut |message| messages.push(Held::consumed(message, topic)));
        let slab = Box::into_raw(Box::new(Self {
            users: AtomicUsize::new(1 + messages.len()),
            first: messages.as_mut_ptr(),
            messages,
            fetched: Arc::clone(fetched),
            topic: Arc::clone(topic),
        }));
        // SAFETY: nobody else has the slab yet, and so many messages are there.
        unsafe {
            for place in 0..(*slab).len() {
                (*(*slab).first.add(place)).home = Home::Slab(slab);
            }
        }
        slab
    }

    pub(crate) const fn len(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn fetched(&self) -> &Arc<FetchedRecords> {
        &self.fetched
    }

    /// Hands out a message, which has to be given back by [`Slab::release`]. It was counted when the slab was made.
    ///
    /// # Safety
    ///
    /// The slab is there, and the message was not handed out before.
    #[inline]
    pub(crate) unsafe fn hand_out(slab: *const Self, place: usize) -> *mut rd_kafka_message_t {
        // SAFETY: as the caller says; a message handed out is nobody else's.
        unsafe {
            debug_assert!(place < (*slab).len());
            (*slab).first.add(place).cast()
        }
    }

    /// Gives back so many uses.
    ///
    /// # Safety
    ///
    /// The uses were counted.
    #[inline]
    pub(crate) unsafe fn release(slab: *const Self, uses: usize) {
        // SAFETY: the slab is there as long as somebody uses it.
        if unsafe { &*slab }.users.fetch_sub(uses, Ordering::AcqRel) == uses {
            // SAFETY: that was the last one, and slabs come from `into_raw`.
            drop(unsafe { Box::from_raw(slab.cast_mut()) });
        }
    }
}

/// An error as a message that has to be destroyed.
pub(crate) fn error_message(
    code: c_int,
    text: &str,
    topic: Option<Arc<Topic>>,
    partition: i32,
    offset: i64,
) -> *mut rd_kafka_message_t {
    let mut text = text.as_bytes().to_vec();
    text.push(0);
    let held = Held {
        message: rd_kafka_message_t {
            err: code,
            rkt: topic.as_ref().map_or(ptr::null(), Arc::as_ptr),
            partition,
            payload: text.as_mut_ptr().cast(),
            len: text.len() - 1,
            key: ptr::null_mut(),
            key_len: 0,
            offset,
            private: ptr::null_mut(),
        },
        timestamp: -1,
        home: Home::Alone(ptr::null_mut()),
        headers: ptr::null_mut(),
        encoded_headers: ptr::null(),
        encoded_headers_len: 0,
        header_count: 0,
        latency: -1,
        leader_epoch: -1,
        broker_id: -1,
        timestamp_kind: 0,
        status: 0,
        is_reported: false,
        frees_payload: false,
    };
    let lonely = Box::into_raw(Box::new(Lonely { held, text, topic }));
    // SAFETY: it was just made, and is nobody else's. The pointer to itself tells it from a message of the application.
    unsafe {
        (*lonely).held.home = Home::Alone(lonely);
        (*lonely).held.message.private = lonely.cast();
    }
    lonely.cast()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_destroy(message: *mut rd_kafka_message_t) {
    guarded_local((), || {
        // SAFETY: NULL or a message of this library, which the caller gives back.
        let Some(held) = (unsafe { Held::of(message) }) else { return };
        match held.home {
            // A report's message belongs to the report.
            Home::Arena(_) | Home::Gone => {}
            Home::Slab(slab) => {
                held.home = Home::Gone;
                held.release_parts();
                // SAFETY: this message's use was counted when it was handed out.
                unsafe { Slab::release(slab, 1) };
            }
            // SAFETY: an error belongs to itself alone.
            Home::Alone(lonely) => drop(unsafe { Box::from_raw(lonely) }),
        }
    });
}

/// Gives the memory of a produced message back.
///
/// # Safety
///
/// Nobody uses the message any more.
pub(crate) unsafe fn dispose(held: *mut Held) {
    // SAFETY: as the caller says.
    unsafe {
        (*held).release_parts();
        if let Home::Arena(chunk) = (*held).home {
            arena::give_back(chunk, 1);
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_errstr(message: *const rd_kafka_message_t) -> *const c_char {
    // SAFETY: NULL or a message, says the caller.
    let Some(message) = (unsafe { message.as_ref() }) else { return ptr::null() };
    if message.err == 0 {
        return ptr::null();
    }
    // Only an error of ours points to itself, and has its text as its payload. The message may be the application's own.
    if std::ptr::eq(message.private.cast(), message) {
        message.payload.cast()
    } else {
        describe(message.err).as_ptr()
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_produce_errstr(
    message: *const rd_kafka_message_t,
) -> *const c_char {
    // SAFETY: NULL or a message, says the caller.
    match unsafe { message.as_ref() } {
        Some(message) if message.err != 0 => describe(message.err).as_ptr(),
        _ => ptr::null(),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_timestamp(
    message: *const rd_kafka_message_t,
    kind: *mut c_int,
) -> i64 {
    // SAFETY: NULL or a message of this library and a writable place, says the caller.
    unsafe {
        let (timestamp, is) =
            Held::of(message).map_or((-1, 0), |held| (held.timestamp, c_int::from(held.timestamp_kind)));
        if !kind.is_null() {
            *kind = if timestamp < 0 { 0 } else { is };
        }
        timestamp
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_latency(message: *const rd_kafka_message_t) -> i64 {
    // SAFETY: NULL or a message of this library, says the caller.
    unsafe { Held::of(message) }.map_or(-1, |held| held.latency)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_status(message: *const rd_kafka_message_t) -> c_int {
    // SAFETY: NULL or a message of this library, says the caller.
    unsafe { Held::of(message) }.map_or(0, |held| held.status.into())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_headers(
    message: *const rd_kafka_message_t,
    headers: *mut *mut Headers,
) -> c_int {
    guarded_local(code::_FAIL, || {
        // SAFETY: NULL or a message of this library that one thread uses at a time, and a writable place.
        unsafe {
            if headers.is_null() {
                return code::_INVALID_ARG;
            }
            *headers = Held::of(message).map_or(ptr::null_mut(), Held::header_list);
            if (*headers).is_null() { code::_NOENT } else { code::NO_ERROR }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_detach_headers(
    message: *mut rd_kafka_message_t,
    headers: *mut *mut Headers,
) -> c_int {
    guarded_local(code::_FAIL, || {
        // SAFETY: as for `rd_kafka_message_headers`.
        unsafe {
            let result = rd_kafka_message_headers(message, headers);
            if result == code::NO_ERROR
                && let Some(held) = Held::of(message)
            {
                Headers::give_back(held.headers);
                held.headers = ptr::null_mut();
                held.header_count = 0;
            }
            result
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_set_headers(
    message: *mut rd_kafka_message_t,
    headers: *mut Headers,
) {
    guarded_local((), || {
        // SAFETY: a message of this library that one thread uses at a time, and a list that now belongs to it.
        if let Some(held) = unsafe { Held::of(message) } {
            if std::ptr::eq(held.headers, headers) {
                return;
            }
            // SAFETY: as above. Another message's list, or one that is gone, is not taken.
            if !headers.is_null() && unsafe { !Headers::give_to_message(headers) } {
                return;
            }
            let old = std::mem::replace(&mut held.headers, headers);
            held.header_count = 0;
            // SAFETY: the old list belonged to the message.
            unsafe { Headers::drop_with_message(old) };
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_leader_epoch(message: *const rd_kafka_message_t) -> i32 {
    // SAFETY: NULL or a message of this library, says the caller.
    guarded_local(-1, || unsafe { Held::of(message) }.map_or(-1, |held| held.leader_epoch))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_message_broker_id(message: *const rd_kafka_message_t) -> i32 {
    // SAFETY: NULL or a message of this library, says the caller.
    guarded_local(-1, || unsafe { Held::of(message) }.map_or(-1, |held| held.broker_id))
}
