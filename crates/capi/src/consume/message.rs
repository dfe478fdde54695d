//! The object behind every `rd_kafka_message_t` that the library returns, and the functions that read it.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ottla_core::{
    fetch::deliver::{FetchedRecords, MessageRef, PieceWalk},
    share::walk::AcquiredWalk,
};

use crate::{
    consume::owner::{Home, Owner},
    ffi::{
        argument::{Part, PartMut, Place},
        codes::{RespErr, code},
        error::describe,
        export,
        headers::{Header, Headers, rd_kafka_headers_copy},
        object::Object,
        types::{OFFSET_INVALID, rd_kafka_message_t, rd_kafka_topic_t},
    },
    produce::{arena::Chunk, produced::Plain, texts},
};

/// A message with the values of its accessors. C sees only the first field.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) message: rd_kafka_message_t,
    pub(crate) timestamp: i64,
    home: Home,
    /// The headers: the application's list for a produced message. For a consumed one they are a list from the first
    /// access on, before that the encoded headers.
    headers: *mut (),
    detail: Detail,
    /// Consumed: the leader epoch, -1 if unknown. Produced: the number of its error text ([`texts`]).
    pub(crate) leader_epoch: i32,
    /// The broker that acknowledged the message or sent it; -1 if unknown.
    pub(crate) broker_id: i32,
    pub(crate) timestamp_kind: u8,
    pub(crate) status: u8,
    /// A produced message whose latency is known.
    pub(crate) is_reported: bool,
    /// The payload is freed with the message.
    pub(crate) frees_payload: bool,
}

/// The size matters: every consumed and every reported message is written once.
const _: () = assert!(size_of::<Held>() == size_of::<rd_kafka_message_t>() + 48);

/// The state that only produced or only consumed messages have.
#[derive(Clone, Copy, Debug)]
enum Detail {
    /// Produced: the time of the call in microseconds, and after the report the time since the call; -1 for a message
    /// that was never sent.
    Latency(Micros),
    /// Consumed: `headers` points to `count` headers in `bytes` bytes of the slab's memory. If the count is zero,
    /// `headers` is a list.
    EncodedHeaders { bytes: u32, count: u32 },
}

#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Micros(i64);

/// Returns an error as a message.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Lonely {
    held: Held,
    text: Vec<u8>,
    #[allow(dead_code, reason = "it keeps the topic")]
    topic: Option<Object<rd_kafka_topic_t>>,
}

/// Consumed messages of one partition, counted together: the slab is freed when the last message is destroyed.
#[derive(Debug)]
pub(crate) struct Slab {
    /// The number of messages that the application has or may still get, plus one while the queue returns them.
    users: AtomicUsize,
    /// The first message. Messages are only accessed through this pointer: C may write to them.
    first: *mut Held,
    messages: Vec<Held>,
    /// How often each was delivered; empty except for those of a share consumer.
    delivery_counts: Box<[i16]>,
    /// The memory that keys and values are in.
    fetched: Arc<FetchedRecords>,
    /// The topic to which the messages point.
    #[allow(dead_code, reason = "it is kept alive")]
    topic: Object<rd_kafka_topic_t>,
}

const TIMESTAMP_CREATE_TIME: u8 = 1;
const TIMESTAMP_LOG_APPEND_TIME: u8 = 2;
/// Messages per slab: a number that fits into the cache from decoding to the application.
const SLAB: usize = 128;

/// Returns the pointer and the size of a message's part; NULL if the message does not have it.
#[inline]
fn part(bytes: Option<&[u8]>) -> (*mut c_void, usize) {
    bytes.map_or((ptr::null_mut(), 0), |bytes| (bytes.as_ptr().cast_mut().cast(), bytes.len()))
}

impl Held {
    /// A message to be produced, without its payload and key.
    #[inline]
    pub(crate) fn produced(
        topic: *const rd_kafka_topic_t,
        partition: i32,
        opaque: *mut c_void,
        home: *mut Chunk,
    ) -> Self {
        Self {
            message: rd_kafka_message_t {
                err: code::NO_ERROR,
                rkt: topic,
                partition,
                payload: ptr::null_mut(),
                len: 0,
                key: ptr::null_mut(),
                key_len: 0,
                offset: OFFSET_INVALID,
                private: opaque,
            },
            timestamp: -1,
            home: Home::of(Owner::Arena(home)),
            headers: ptr::null_mut(),
            detail: Detail::Latency(Micros(-1)),
            leader_epoch: -1,
            broker_id: -1,
            timestamp_kind: TIMESTAMP_CREATE_TIME,
            status: 0,
            is_reported: false,
            frees_payload: false,
        }
    }

    /// Returns the report of a plain message, without its outcome.
    ///
    /// # Safety
    ///
    /// The message, its payload and its key live as long as its report.
    #[inline]
    pub(crate) unsafe fn of_plain(
        plain: *mut Plain,
        payload: Option<&[u8]>,
        key: Option<&[u8]>,
        timestamp: i64,
    ) -> Self {
        // SAFETY: by the contract of this function.
        let plain = unsafe { &*plain };
        Self::made(plain.topic, [part(payload), part(key)], plain.opaque, timestamp, plain.called_at)
    }

    /// Returns a temporary message for functions that read it, valid as long as its payload and key.
    pub(crate) fn of_record(
        topic: *const rd_kafka_topic_t,
        payload: Option<&[u8]>,
        key: Option<&[u8]>,
        opaque: *mut c_void,
    ) -> Self {
        Self::made(topic, [part(payload), part(key)], opaque, -1, -1)
    }

    /// Returns a produced message that belongs to the caller.
    #[inline(always)]
    fn made(
        topic: *const rd_kafka_topic_t,
        [(payload, len), (key, key_len)]: [(*mut c_void, usize); 2],
        opaque: *mut c_void,
        timestamp: i64,
        called_at: i64,
    ) -> Self {
        Self {
            message: rd_kafka_message_t {
                err: code::NO_ERROR,
                rkt: topic,
                partition: -1,
                payload,
                len,
                key,
                key_len,
                offset: OFFSET_INVALID,
                private: opaque,
            },
            timestamp,
            home: Home::GONE,
            headers: ptr::null_mut(),
            detail: Detail::Latency(Micros(called_at)),
            leader_epoch: -1,
            broker_id: -1,
            timestamp_kind: TIMESTAMP_CREATE_TIME,
            status: 0,
            is_reported: false,
            frees_payload: false,
        }
    }

    /// A consumed message. `place` is its own address, or NULL if it has no offset to commit.
    #[inline]
    fn consumed(
        message: &MessageRef<'_>,
        topic: *const rd_kafka_topic_t,
        home: Home,
        place: *mut Self,
    ) -> Self {
        let field = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len()),
            None => (ptr::null_mut(), 0),
        };
        let ((payload, len), (key, key_len)) = (field(message.value()), field(message.key()));
        let headers = message.headers();
        let timestamp = message.timestamp();
        Self {
            message: rd_kafka_message_t {
                err: code::NO_ERROR,
                rkt: topic,
                partition: message.partition(),
                payload,
                len,
                key,
                key_len,
                offset: message.offset(),
                private: place.cast(),
            },
            timestamp,
            home,
            headers: if headers.len() == 0 {
                ptr::null_mut()
            } else {
                headers.bytes().as_ptr().cast_mut().cast()
            },
            detail: Detail::EncodedHeaders {
                bytes: headers.bytes().len() as u32,
                count: headers.len() as u32,
            },
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

    /// Returns the message behind a pointer of C, with its private part.
    ///
    /// # Safety
    ///
    /// `message` is NULL or was returned by this library and not destroyed.
    pub(crate) unsafe fn of<'a>(message: *const rd_kafka_message_t) -> Option<&'a mut Self> {
        // SAFETY: every message that the library returns is the first field of a `Held`.
        unsafe { message.cast_mut().cast::<Self>().as_mut() }
    }

    /// Returns the message that C passed; `None` for NULL.
    #[inline]
    pub(crate) fn passed(message: Part<'_, rd_kafka_message_t>) -> Option<&mut Self> {
        // SAFETY: the argument is NULL or a message of this library, and one thread uses a message at a time.
        unsafe { Self::of(message.as_ptr()) }
    }

    /// Returns the message that C passed, if it is one that the library returned from a consumer; `None` also for a copy, or
    /// one that the application wrote itself, which has no private part.
    pub(crate) fn original(message: Part<'_, rd_kafka_message_t>) -> Option<&Self> {
        let is_original = message.get().is_some_and(|shown| ptr::eq(shown.private, message.as_ptr().cast()));
        // SAFETY: only a message of the library contains its own address; one thread uses a message at a time.
        if is_original { unsafe { Self::of(message.as_ptr()) }.map(|held| &*held) } else { None }
    }

    /// Returns the message that C passed to be changed; `None` for NULL.
    pub(crate) fn passed_mut(message: PartMut<'_, rd_kafka_message_t>) -> Option<&mut Self> {
        // SAFETY: as for `passed`.
        unsafe { Self::of(message.as_ptr()) }
    }

    /// Frees what the message owns, but not its own memory.
    #[inline]
    pub(crate) fn release_parts(&mut self) {
        if !self.headers.is_null() {
            // SAFETY: NULL, or a list that belongs to the message.
            unsafe { Headers::drop_with_message(self.replace_header_list(ptr::null_mut())) };
        }
        if self.frees_payload {
            self.frees_payload = false;
            // SAFETY: the application gave the payload to the library with F_FREE.
            unsafe { libc::free(self.message.payload) };
        }
    }

    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        self.home.owner()
    }

    /// Returns the records that a consumed message is one of; `None` for other messages.
    pub(crate) fn fetched(&self) -> Option<&FetchedRecords> {
        match self.owner() {
            // SAFETY: a message keeps its slab.
            Owner::Slab(slab) => Some(unsafe { &*slab }.fetched()),
            Owner::Arena(_) | Owner::Alone(_) | Owner::Gone => None,
        }
    }

    /// Returns the microseconds from the call to the report, or the time of the call before it; -1 for messages that
    /// were not produced.
    pub(crate) fn latency(&self) -> i64 {
        match self.detail {
            Detail::Latency(Micros(latency)) => latency,
            Detail::EncodedHeaders { .. } => -1,
        }
    }

    pub(crate) fn set_latency(&mut self, micros: i64) {
        self.detail = Detail::Latency(Micros(micros));
    }

    /// Returns the headers if they are a list already, otherwise NULL.
    #[inline]
    pub(crate) fn header_list(&self) -> *mut Headers {
        if self.encoded_headers().is_some() { ptr::null_mut() } else { self.headers.cast() }
    }

    /// Replaces the list. Returns the old list, which the caller owns.
    #[inline]
    pub(crate) fn replace_header_list(&mut self, headers: *mut Headers) -> *mut Headers {
        let old = self.header_list();
        if let Detail::EncodedHeaders { count, .. } = &mut self.detail {
            *count = 0;
        }
        self.headers = headers.cast();
        old
    }

    /// Returns the bytes and the number of the headers that are not a list yet.
    #[inline]
    const fn encoded_headers(&self) -> Option<(usize, u32)> {
        match self.detail {
            Detail::EncodedHeaders { bytes, count } if count > 0 => Some((bytes as usize, count)),
            _ => None,
        }
    }

    /// Creates a list of the headers that are not a list yet.
    fn decoded_headers(&self) -> Option<*mut Headers> {
        let (len, count) = self.encoded_headers()?;
        // SAFETY: the bytes are in the slab's buffer, which lives as long as its messages.
        let bytes = unsafe { std::slice::from_raw_parts(self.headers.cast::<u8>(), len) };
        let list = ottla_protocol::batch::Headers::new(bytes, count)
            .map(|header| Header::new(header.key, header.value))
            .collect();
        Some(Headers::new(list).into_raw())
    }

    /// Detaches the list of the headers; NULL if there are none. A consumed message keeps its headers, from which a
    /// further list is created, because they are in the fetched data.
    fn detach_headers(&mut self) -> *mut Headers {
        if let Some(list) = self.decoded_headers() {
            return list;
        }
        let list = self.replace_header_list(ptr::null_mut());
        // SAFETY: NULL, or a list that belonged to the message.
        unsafe {
            if Headers::give_back(list) && matches!(self.detail, Detail::EncodedHeaders { .. }) {
                let copy = rd_kafka_headers_copy(list);
                Headers::give_to_message(copy);
                self.replace_header_list(copy);
            }
        }
        list
    }

    /// Returns the headers, which become a list.
    fn make_header_list(&mut self) -> *mut Headers {
        if let Some(list) = self.decoded_headers() {
            self.replace_header_list(list);
            // SAFETY: the list was just created.
            unsafe { Headers::give_to_message(list) };
        }
        self.header_list()
    }
}

impl Slab {
    /// Creates a slab of the next messages of a walk, possibly without any.
    pub(crate) fn new(walk: &mut PieceWalk, topic: Object<rd_kafka_topic_t>) -> *const Self {
        let fetched = Arc::clone(walk.fetched());
        Self::filled(fetched, topic, |messages, rkt, home| {
            walk.run(SLAB, |message| {
                let place = messages.as_mut_ptr().wrapping_add(messages.len());
                messages.push(Held::consumed(message, rkt, home, place));
            });
            Box::default()
        })
    }

    /// A slab of the next messages that a share consumer acquired; `None` at the end. It may have none.
    pub(crate) fn acquired(walk: &mut AcquiredWalk, topic: Object<rd_kafka_topic_t>) -> Option<*const Self> {
        let fetched = Arc::clone(walk.records().fetched());
        let mut has_more = true;
        let slab = Self::filled(fetched, topic, |messages, rkt, home| {
            let mut counts = Vec::with_capacity(SLAB);
            has_more = walk.run(SLAB, |message, delivery_count| {
                messages.push(Held::consumed(message, rkt, home, ptr::null_mut()));
                counts.push(delivery_count);
            });
            counts.into_boxed_slice()
        });
        if has_more {
            return Some(slab);
        }
        // SAFETY: the use of its maker was counted, and there are no messages.
        unsafe { Self::release(slab, 1) };
        None
    }

    /// A slab with the messages that `fill` adds; it returns their delivery counts, if they have some.
    fn filled(
        fetched: Arc<FetchedRecords>,
        topic: Object<rd_kafka_topic_t>,
        fill: impl FnOnce(&mut Vec<Held>, *const rd_kafka_topic_t, Home) -> Box<[i16]>,
    ) -> *const Self {
        let mut slab = Box::<Self>::new_uninit();
        let home = Home::of(Owner::Slab(slab.as_ptr()));
        let mut messages = Vec::with_capacity(SLAB);
        let delivery_counts = fill(&mut messages, topic.as_c(), home);
        let (users, first) = (AtomicUsize::new(1 + messages.len()), messages.as_mut_ptr());
        slab.write(Self { users, first, messages, delivery_counts, fetched, topic });
        // SAFETY: it was just written.
        Box::into_raw(unsafe { slab.assume_init() })
    }

    /// Returns how often one of its messages was delivered to its share group; 0 without one.
    ///
    /// # Safety
    ///
    /// The slab is there, and has the message.
    unsafe fn delivery_count(slab: *const Self, held: &Held) -> i16 {
        // SAFETY: by the contract of this function.
        let (first, counts) = unsafe { ((*slab).first.cast_const(), &(*slab).delivery_counts) };
        let place = (ptr::from_ref(held).addr() - first.addr()) / size_of::<Held>();
        counts.get(place).copied().unwrap_or(0)
    }

    pub(crate) const fn len(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn fetched(&self) -> &Arc<FetchedRecords> {
        &self.fetched
    }

    /// Returns a message to the application, which destroys it by [`Slab::release`]. Its use was counted when the slab
    /// was created.
    ///
    /// # Safety
    ///
    /// The slab is alive, and the message was not returned before.
    #[inline]
    pub(crate) unsafe fn hand_out(slab: *const Self, index: usize) -> *mut rd_kafka_message_t {
        // SAFETY: by the contract of this function; a message that was handed out has one owner.
        unsafe {
            debug_assert!(index < (*slab).len());
            (*slab).first.add(index).cast()
        }
    }

    /// Gives up a number of uses.
    ///
    /// # Safety
    ///
    /// The uses were counted.
    #[inline]
    pub(crate) unsafe fn release(slab: *const Self, uses: usize) {
        // SAFETY: the slab lives as long as it has uses.
        if unsafe { &*slab }.users.fetch_sub(uses, Ordering::AcqRel) == uses {
            // SAFETY: that was the last use, and slabs come from `into_raw`.
            drop(unsafe { Box::from_raw(slab.cast_mut()) });
        }
    }
}

/// Returns an error as a message that has to be destroyed.
pub(crate) fn error_message(
    code: RespErr,
    text: &str,
    topic: Option<Object<rd_kafka_topic_t>>,
    partition: i32,
    offset: i64,
) -> *mut rd_kafka_message_t {
    let mut text = text.as_bytes().to_vec();
    text.push(0);
    let held = Held {
        message: rd_kafka_message_t {
            err: code,
            rkt: topic.as_ref().map_or(ptr::null(), Object::as_c),
            partition,
            payload: text.as_mut_ptr().cast(),
            len: text.len() - 1,
            key: ptr::null_mut(),
            key_len: 0,
            offset,
            private: ptr::null_mut(),
        },
        timestamp: -1,
        home: Home::GONE,
        headers: ptr::null_mut(),
        detail: Detail::Latency(Micros(-1)),
        leader_epoch: -1,
        broker_id: -1,
        timestamp_kind: 0,
        status: 0,
        is_reported: false,
        frees_payload: false,
    };
    let lonely = Box::into_raw(Box::new(Lonely { held, text, topic }));
    // SAFETY: the message was just created, and there is no other pointer to it. The pointer to itself distinguishes it
    // from a message of the application.
    unsafe {
        (*lonely).held.home = Home::of(Owner::Alone(lonely));
        (*lonely).held.message.private = lonely.cast();
    }
    lonely.cast()
}

export!(
    #[local(())]
    fn rd_kafka_message_destroy(message: PartMut<rd_kafka_message_t>) {
        let Some(held) = Held::passed_mut(message) else { return };
        match held.owner() {
            // The message of a report belongs to the report.
            Owner::Arena(_) | Owner::Gone => {}
            Owner::Slab(slab) => {
                held.home = Home::GONE;
                held.release_parts();
                // SAFETY: this message's use was counted when it was returned.
                unsafe { Slab::release(slab, 1) };
            }
            // SAFETY: an error message has no other owner.
            Owner::Alone(lonely) => drop(unsafe { Box::from_raw(lonely) }),
        }
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_message_errstr(message: Part<rd_kafka_message_t>) -> *const c_char {
        let Some(message) = message.get() else { return ptr::null() };
        if !message.err.is_error() {
            return ptr::null();
        }
        // Only an error message of the library points to itself, and has its text as its payload. The message may be
        // the application's own.
        if std::ptr::eq(message.private.cast(), message) {
            message.payload.cast()
        } else {
            describe(message.err).as_ptr()
        }
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_message_produce_errstr(message: Part<rd_kafka_message_t>) -> *const c_char {
        match Held::passed(message) {
            Some(held) if held.message.err.is_error() => texts::text(held.leader_epoch),
            _ => ptr::null(),
        }
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_message_timestamp(message: Part<rd_kafka_message_t>, kind: Place<c_int>) -> i64 {
        let (timestamp, is) = match Held::passed(message) {
            Some(held) if held.message.err == code::NO_ERROR => {
                (held.timestamp, c_int::from(held.timestamp_kind))
            }
            _ => (-1, 0),
        };
        kind.put(if timestamp < 0 { 0 } else { is });
        timestamp
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_message_latency(message: Part<rd_kafka_message_t>) -> i64 {
        Held::passed(message).map_or(-1, |held| held.latency())
    }
);

export!(
    #[local(0)]
    fn rd_kafka_message_status(message: Part<rd_kafka_message_t>) -> c_int {
        Held::passed(message).map_or(0, |held| held.status.into())
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_message_headers(
        message: Part<rd_kafka_message_t>,
        headers: PartMut<*mut Headers>,
    ) -> RespErr {
        let Some(headers) = headers.get() else { return code::_INVALID_ARG };
        *headers = Held::passed(message).map_or(ptr::null_mut(), Held::make_header_list);
        if headers.is_null() { code::_NOENT } else { code::NO_ERROR }
    }
);

export!(
    #[local(code::_FAIL)]
    fn rd_kafka_message_detach_headers(
        message: PartMut<rd_kafka_message_t>,
        headers: PartMut<*mut Headers>,
    ) -> RespErr {
        let Some(headers) = headers.get() else { return code::_INVALID_ARG };
        *headers = Held::passed_mut(message).map_or(ptr::null_mut(), Held::detach_headers);
        if headers.is_null() { code::_NOENT } else { code::NO_ERROR }
    }
);

export!(
    #[local(())]
    fn rd_kafka_message_set_headers(message: PartMut<rd_kafka_message_t>, headers: *mut Headers) {
        if let Some(held) = Held::passed_mut(message) {
            if !headers.is_null() && std::ptr::eq(held.header_list(), headers) {
                return;
            }
            // SAFETY: NULL or a list. A list of another message and a destroyed list are refused.
            if !headers.is_null() && unsafe { !Headers::give_to_message(headers) } {
                return;
            }
            let old = held.replace_header_list(headers);
            // SAFETY: the old list belonged to the message.
            unsafe { Headers::drop_with_message(old) };
        }
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_message_leader_epoch(message: Part<rd_kafka_message_t>) -> i32 {
        Held::passed(message).map_or(-1, |held| held.leader_epoch.max(-1))
    }
);

export!(
    #[local(0)]
    fn rd_kafka_message_delivery_count(message: Part<rd_kafka_message_t>) -> i16 {
        let Some(held) = Held::passed(message) else { return 0 };
        match held.owner() {
            // SAFETY: a message keeps its slab.
            Owner::Slab(slab) => unsafe { Slab::delivery_count(slab, held) },
            Owner::Arena(_) | Owner::Alone(_) | Owner::Gone => 0,
        }
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_message_broker_id(message: Part<rd_kafka_message_t>) -> i32 {
        Held::passed(message).map_or(-1, |held| held.broker_id)
    }
);
