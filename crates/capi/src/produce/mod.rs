//! Producing: `rd_kafka_produce` and its relatives.
//!
//! The record is encoded into its batch before the call returns, so the payload is copied once in any case. A message with a
//! report also takes memory in the arena for what the batch does not have. With F_COPY the report shows the payload and key
//! in the batch's memory, which lives as long as the reports; with F_FREE or without a flag it has the application's own pointer.
//!
//! # Pitfalls
//!
//! - A message counts against the C producer's queue until its report is *served*: an application that never polls gets
//!   QUEUE_FULL instead of unbounded memory (`produce.c`).

pub(crate) mod acknowledgements;
pub(crate) mod arena;
mod call_time;
pub(crate) mod delivery;
pub(crate) mod partitioners;
pub(crate) mod produced;
pub(crate) mod report;
pub(crate) mod texts;

use std::{
    ffi::{CStr, c_int, c_void},
    sync::Arc,
    time::{Duration, Instant},
};

use ottla_core::produce::record::{Record, SendError};

use crate::{
    client::{core::Producing, handle::Client, interceptors::kind, topic::Topic},
    consume::message::Held,
    ffi::{
        argument::Ref,
        boundary::{bytes, guarded_for, handle},
        codes::{RespErr, code},
        error::{ErrorObject, code_of_send, describe, fail, set_last},
        export,
        headers::{Header, Headers, header_of},
        injection::{InjectionPoint, reach},
        quarantine,
        types::{
            F_BLOCK, F_COPY, F_FREE, F_PARTITION, PARTITION_UA, rd_kafka_message_t, rd_kafka_vu_t, vtype,
        },
    },
    produce::{
        call_time::CallTime,
        produced::{Kind, Plain, Produced},
    },
};

/// A message of the application.
struct Message {
    partition: i32,
    flags: c_int,
    payload: *mut c_void,
    len: usize,
    key: *const c_void,
    key_len: usize,
    opaque: *mut c_void,
    /// The timestamp; now if it is 0 or less.
    timestamp: i64,
    /// The headers, which belong to the library once the message is accepted.
    headers: *mut Headers,
}

/// The number of messages that [`Topic::produce_run`] accepts under one lock.
const RUN: usize = 64;

impl Topic {
    /// Accepts a message. Error: the reason for the refusal; then nothing of the message is kept.
    ///
    /// # Safety
    ///
    /// Pointers and sizes describe memory of the application.
    #[inline]
    unsafe fn produce(&self, message: &Message) -> Result<(), RespErr> {
        let client = self.client();
        message.check().or_else(|code| client.check_may_produce().and(Err(code)))?;
        reach(InjectionPoint::Produce, client.as_c());
        if let Some((code, _)) = client.fatal() {
            return Err(if code == code::NO_ERROR { code::_STATE } else { code::_FATAL });
        }
        let producing = self.producing()?;
        let called_at = CallTime::now();
        // SAFETY: by the contract of this function.
        let produced = unsafe { self.keep(message, producing, called_at) }?;
        let interceptors = client.interceptors();
        let mut headers = message.headers;
        if interceptors.has(kind::SEND | kind::ACKNOWLEDGEMENT)
            && let Some(held) = produced.held()
        {
            if interceptors.has(kind::SEND) {
                client.intercept_message(kind::SEND, held.cast());
            }
            // SAFETY: no other thread has the message yet; an interceptor may have replaced its headers.
            headers = unsafe { (*held).header_list() };
        }
        // SAFETY: by the contract of this function.
        let mut record = unsafe { message.record(produced) };
        let mut result = Ok(());
        // SAFETY: NULL or a list that belongs to the caller until this call succeeds.
        if let Some(headers) = unsafe { headers.as_ref() } {
            for header in &headers.list {
                match header.name.to_str() {
                    Ok(name) => {
                        record = match header.value() {
                            Some(value) => record.header(name, value),
                            None => record.null_header(name),
                        }
                    }
                    Err(_) => result = Err(code::_INVALID_ARG),
                }
            }
        }
        if result.is_ok() {
            let (shared, topic) = producing.topic.core();
            let sent = if message.flags & F_BLOCK == 0 {
                shared.send(topic, called_at.now, called_at.wall_ms, &record, None)
            } else {
                blocking(&producing.topic, &record, client)
            };
            result = sent.map_err(|error| code_of_send(&error));
        }
        match result {
            Ok(()) => {
                if produced.is_none() {
                    self.forget(message);
                }
            }
            // SAFETY: the message was not accepted, and no other thread has it.
            Err(code) => unsafe {
                if let Some(held) = produced.held() {
                    (*held).message.err = code;
                    if interceptors.has(kind::ACKNOWLEDGEMENT) {
                        client.intercept_message(kind::ACKNOWLEDGEMENT, held.cast());
                    }
                }
                take_back(produced, message.headers);
            },
        }
        result
    }

    /// Accepts messages without headers for `rd_kafka_produce_batch`, many under one lock; each gets its own result.
    /// Returns the number of accepted messages.
    ///
    /// # Safety
    ///
    /// As for [`Topic::produce`].
    unsafe fn produce_run(
        &self,
        messages: &mut [rd_kafka_message_t],
        as_message: impl Fn(&rd_kafka_message_t) -> Message,
    ) -> c_int {
        let client = self.client();
        let producing = match (client.fatal(), self.producing()) {
            (None, Ok(producing)) => producing,
            (Some((code::NO_ERROR, _)), _) => return refuse(messages, code::_STATE),
            (Some(_), _) => return refuse(messages, code::_FATAL),
            (None, Err(code)) => return refuse(messages, code),
        };
        let called_at = CallTime::now();
        let (shared, topic) = producing.topic.core();
        let mut taken = 0;
        let mut records = Vec::with_capacity(messages.len().min(RUN));
        let mut run: Vec<(usize, Produced)> = Vec::with_capacity(messages.len().min(RUN));
        for messages in messages.chunks_mut(RUN) {
            for (index, each) in messages.iter_mut().enumerate() {
                let message = as_message(each);
                // SAFETY: by the contract of this function.
                let kept =
                    message.check().and_then(|()| unsafe { self.keep(&message, producing, called_at) });
                each.err = kept.err().unwrap_or_default();
                if let Ok(produced) = kept {
                    // SAFETY: by the contract of this function.
                    records.push(unsafe { message.record(produced) });
                    run.push((index, produced));
                }
            }
            let mut done = 0;
            while done < records.len() {
                let sent = shared.send_batch(topic, called_at.now, called_at.wall_ms, &records[done..]);
                let Err((accepted, error)) = sent else { break };
                let (index, produced) = run[done + accepted];
                messages[index].err = code_of_send(&error);
                // SAFETY: the message was not accepted, and no other thread has it.
                unsafe { take_back(produced, std::ptr::null_mut()) };
                done += accepted + 1;
            }
            for (index, produced) in run.drain(..) {
                if messages[index].err == code::NO_ERROR {
                    taken += 1;
                    if produced.is_none() {
                        self.forget(&as_message(&messages[index]));
                    }
                }
            }
            records.clear();
        }
        taken
    }

    /// Returns the arena's copy of a message; none if it will have no report.
    ///
    /// # Safety
    ///
    /// As for [`Topic::produce`].
    #[inline(always)]
    unsafe fn keep(
        &self,
        message: &Message,
        producing: &Producing,
        called_at: CallTime,
    ) -> Result<Produced, RespErr> {
        if !producing.has_messages {
            return Ok(Produced::NONE);
        }
        // SAFETY: by the contract of this function.
        let (payload, key) = unsafe { message.bytes() };
        if payload.map_or(0, <[u8]>::len) + key.map_or(0, <[u8]>::len) > producing.max_bytes {
            return Err(code::MSG_SIZE_TOO_LARGE);
        }
        // SAFETY: by the contract of this function. The list belongs to the message from here on, or until it is refused.
        if !message.headers.is_null() && unsafe { !Headers::give_to_message(message.headers) } {
            return Err(code::_INVALID_ARG);
        }
        let is_plain = message.headers.is_null()
            && (payload.is_none() || message.flags & F_COPY != 0)
            && !self.client().interceptors().has(kind::SEND | kind::ACKNOWLEDGEMENT);
        if is_plain {
            return Ok(Produced::plain(Plain::keep(self.as_c(), message.opaque, called_at.micros())));
        }
        let timestamp = if message.timestamp > 0 { message.timestamp } else { called_at.wall_ms };
        // SAFETY: by the contract of this function.
        Ok(Produced::whole(unsafe { self.hold(message, timestamp, called_at, payload, key) }))
    }

    /// Returns the arena's copy of a message that is not plain.
    ///
    /// # Safety
    ///
    /// As for [`Topic::produce`].
    #[inline(never)]
    unsafe fn hold(
        &self,
        message: &Message,
        timestamp: i64,
        called_at: CallTime,
        payload: Option<&[u8]>,
        key: Option<&[u8]>,
    ) -> *mut Held {
        let copied = if message.flags & F_COPY != 0 { payload } else { None };
        let (copied_len, key_len) = (copied.map_or(0, <[u8]>::len), key.map_or(0, <[u8]>::len));
        let (memory, chunk) = arena::take(size_of::<Held>() + copied_len + key_len);
        let held = memory.cast::<Held>();
        let mut new = Held::produced(self.as_c(), message.partition, message.opaque, chunk);
        new.timestamp = timestamp;
        new.set_latency(called_at.micros());
        new.replace_header_list(message.headers);
        new.message.len = message.len;
        new.message.key_len = key_len;
        // SAFETY: the memory is large enough for the message, followed by the copies of the payload and the key.
        unsafe {
            let mut free = memory.add(size_of::<Held>());
            match copied {
                Some(bytes) => {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), free, bytes.len());
                    new.message.payload = free.cast();
                    free = free.add(bytes.len());
                }
                None => {
                    new.message.payload = message.payload;
                    new.frees_payload = message.gives_payload();
                }
            }
            if let Some(key) = key {
                std::ptr::copy_nonoverlapping(key.as_ptr(), free, key.len());
                new.message.key = free.cast();
            }
            held.write(new);
        }
        held
    }

    /// Frees the memory that belongs to a message without a report and that the application passed to the library.
    #[inline]
    fn forget(&self, message: &Message) {
        if message.gives_payload() {
            // SAFETY: with F_FREE the payload, which comes from `malloc`, belongs to the library; it is encoded by now.
            unsafe { libc::free(message.payload) };
        }
        if !message.headers.is_null() {
            // SAFETY: the message was accepted, so the list belongs to the library.
            unsafe { quarantine::retire(message.headers) };
        }
    }
}

impl Message {
    /// Checks the message on its own.
    #[inline]
    fn check(&self) -> Result<(), RespErr> {
        if self.partition < PARTITION_UA {
            return Err(code::_UNKNOWN_PARTITION);
        }
        if self.payload.is_null() && self.len > 0 || self.key.is_null() && self.key_len > 0 {
            return Err(code::_INVALID_ARG);
        }
        if self.len.checked_add(self.key_len).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(code::MSG_SIZE_TOO_LARGE);
        }
        Ok(())
    }

    /// True if the payload belongs to the library. A copied one stays the application's, whatever F_FREE says.
    #[inline]
    fn gives_payload(&self) -> bool {
        self.flags & (F_COPY | F_FREE) == F_FREE
    }

    /// Returns payload and key.
    ///
    /// # Safety
    ///
    /// Pointers and sizes describe memory of the application that lives as long as `'a`.
    #[inline]
    unsafe fn bytes<'a>(&self) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        // SAFETY: by the contract of this function.
        unsafe { (bytes(self.payload, self.len), bytes(self.key, self.key_len)) }
    }

    /// Returns the message as a record without headers. Its opaque number is the arena's message, or else the
    /// application's pointer, which only a partitioner reads.
    ///
    /// # Safety
    ///
    /// As for [`Message::bytes`].
    #[inline]
    unsafe fn record<'a>(&self, produced: Produced) -> Record<'a> {
        // SAFETY: by the contract of this function.
        let (payload, key) = unsafe { self.bytes() };
        let partition = (self.partition >= 0).then_some(self.partition);
        let timestamp = (self.timestamp > 0).then_some(self.timestamp);
        let number = if produced.is_none() { self.opaque as u64 } else { produced.number() };
        let is_kept = matches!(produced.kind(), Kind::Plain(_));
        Record::of(partition, timestamp, key, payload, number).kept_for_its_report(is_kept)
    }
}

/// Frees a message that was not accepted. Payload and headers stay the application's, except headers that an
/// interceptor added.
///
/// # Safety
///
/// No other thread has the message.
#[cold]
unsafe fn take_back(produced: Produced, headers: *mut Headers) {
    // SAFETY: by the contract of this function.
    unsafe {
        if let Some(held) = produced.held() {
            if std::ptr::eq((*held).header_list(), headers) {
                Headers::give_back(headers);
                (*held).replace_header_list(std::ptr::null_mut());
            }
            (*held).frees_payload = false;
        }
        produced.dispose();
    }
}

/// None of the messages was accepted.
fn refuse(messages: &mut [rd_kafka_message_t], code: RespErr) -> c_int {
    messages.iter_mut().for_each(|message| message.err = code);
    0
}

/// Waits until the queue has room or the client ends, at most for `max.block.ms` if that is set.
#[cold]
fn blocking(topic: &ottla::Topic, record: &Record<'_>, client: &Client) -> Result<(), SendError> {
    const CHECK_INTERVAL: Duration = Duration::from_secs(1);
    let limit = topic.core().0.settings.max_block.unwrap_or(Duration::MAX);
    let began = Instant::now();
    loop {
        let left = limit.saturating_sub(began.elapsed());
        match topic.send_blocking(record.clone(), left.min(CHECK_INTERVAL)) {
            Err(SendError::QueueFull) if !client.is_closing() && left > CHECK_INTERVAL => {}
            result => return result,
        }
    }
}

export!(
    #[each(rkt, -1)]
    fn rd_kafka_produce(
        rkt: Ref<Topic>,
        partition: i32,
        msgflags: c_int,
        payload: *mut c_void,
        len: usize,
        key: *const c_void,
        keylen: usize,
        msg_opaque: *mut c_void,
    ) -> c_int {
        // SAFETY: the header demands NULL or a topic.
        let Some(topic) = rkt.get() else { return fail(code::_INVALID_ARG) };
        let message = Message {
            partition,
            flags: msgflags,
            payload,
            len,
            key,
            key_len: keylen,
            opaque: msg_opaque,
            timestamp: 0,
            headers: std::ptr::null_mut(),
        };
        // SAFETY: the pointers are by the contract of this function.
        match unsafe { Topic::produce(topic, &message) } {
            Ok(()) => 0,
            Err(code) => fail(code),
        }
    }
);

export!(
    #[on(rkt, 0)]
    fn rd_kafka_produce_batch(
        rkt: Ref<Topic>,
        partition: i32,
        msgflags: c_int,
        rkmessages: *mut rd_kafka_message_t,
        message_cnt: c_int,
    ) -> c_int {
        // SAFETY: the header demands NULL or a topic.
        let topic = rkt.get();
        let count = usize::try_from(message_cnt).unwrap_or(0);
        let (Some(topic), false) = (topic, rkmessages.is_null()) else {
            set_last(code::_INVALID_ARG);
            return 0;
        };
        // SAFETY: the header demands an array with this number of messages that no other thread uses.
        let messages = unsafe { std::slice::from_raw_parts_mut(rkmessages, count) };
        let as_message = |each: &rd_kafka_message_t| Message {
            partition: if msgflags & F_PARTITION != 0 { each.partition } else { partition },
            flags: msgflags,
            payload: each.payload,
            len: each.len,
            key: each.key,
            key_len: each.key_len,
            opaque: each.private,
            timestamp: 0,
            headers: std::ptr::null_mut(),
        };
        // No lock is held between two runs, because callbacks may call the library.
        let is_watched = topic.client().interceptors().has(kind::SEND | kind::ACKNOWLEDGEMENT)
            || topic.producing().is_ok_and(|producing| producing.asks_partitioner);
        if msgflags & F_BLOCK == 0 && !is_watched {
            // SAFETY: the pointers are by the contract of this function.
            return unsafe { Topic::produce_run(topic, messages, as_message) };
        }
        let mut taken = 0;
        for each in messages {
            // SAFETY: the pointers are by the contract of this function.
            each.err = unsafe { Topic::produce(topic, &as_message(each)) }.err().unwrap_or_default();
            taken += c_int::from(each.err == code::NO_ERROR);
        }
        taken
    }
);

/// The function whose arguments describe a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    /// `rd_kafka_producev`.
    OfArguments,
    /// `rd_kafka_produceva`.
    OfArray,
}

/// Accepts a message that is described by an array of arguments.
///
/// # Safety
///
/// The arguments are as the interface demands.
unsafe fn produce_arguments(
    rk: *const Client,
    arguments: &[rd_kafka_vu_t],
    function: Function,
) -> Result<(), (RespErr, String)> {
    // SAFETY: the header demands NULL or a client.
    let client = unsafe { Client::of(rk) }
        .ok_or_else(|| (code::_INVALID_ARG, "the client's handle is NULL or destroyed".to_owned()))?;
    // SAFETY: by the contract of this function.
    unsafe { produce_described(client, arguments, function) }.map_err(|(code, text)| {
        // That the client takes no message at all comes before what is wrong with one.
        match client.check_may_produce() {
            Err(first) if first != code => (first, describe(first).to_string_lossy().into_owned()),
            _ => (code, text),
        }
    })
}

/// Accepts a message of a client.
///
/// # Safety
///
/// The arguments are as the interface demands.
unsafe fn produce_described(
    client: &Client,
    arguments: &[rd_kafka_vu_t],
    function: Function,
) -> Result<(), (RespErr, String)> {
    let invalid = |what: &str| (code::_INVALID_ARG, what.to_owned());
    let mut topic: Option<Arc<Topic>> = None;
    let mut single: Option<Vec<Header>> = None;
    let mut has_conflict = false;
    let mut message = Message {
        partition: PARTITION_UA,
        flags: 0,
        payload: std::ptr::null_mut(),
        len: 0,
        key: std::ptr::null(),
        key_len: 0,
        opaque: std::ptr::null_mut(),
        timestamp: 0,
        headers: std::ptr::null_mut(),
    };
    for argument in arguments {
        // SAFETY: the type says which field of the union is valid, and the caller passes valid pointers.
        unsafe {
            let u = &argument.u;
            match argument.vtype {
                vtype::TOPIC => {
                    if u.cstr.is_null() {
                        return Err(invalid("the topic is NULL"));
                    }
                    let name = CStr::from_ptr(u.cstr);
                    let name = name.to_str().map_err(|_| invalid("the topic's name is not UTF-8"))?;
                    topic = Some(client.topic(name, None).map_err(|code| (code, "bad topic".to_owned()))?);
                }
                vtype::RKT => {
                    let rkt = quarantine::counted(u.rkt.cast::<Topic>())
                        .ok_or_else(|| invalid("the topic is not a topic"))?;
                    if !std::ptr::eq(Arc::as_ptr(rkt.client()), client) {
                        return Err(invalid("the topic is another client's"));
                    }
                    topic = Some(rkt);
                }
                vtype::PARTITION => message.partition = u.i32,
                vtype::VALUE => (message.payload, message.len) = (u.mem.ptr, u.mem.size),
                vtype::KEY => (message.key, message.key_len) = (u.mem.ptr.cast_const(), u.mem.size),
                vtype::OPAQUE => message.opaque = u.ptr,
                vtype::MSGFLAGS => message.flags = u.i,
                vtype::TIMESTAMP => message.timestamp = u.i64,
                vtype::HEADER => {
                    has_conflict |= !message.headers.is_null();
                    let header = header_of(u.header.name, -1, u.header.value, u.header.size)
                        .ok_or_else(|| invalid("a header has no name"))?;
                    single.get_or_insert_default().push(header);
                }
                vtype::HEADERS => {
                    has_conflict |= single.is_some() || !message.headers.is_null();
                    if !u.headers.is_null() && handle(u.headers.cast_const()).is_none() {
                        return Err(invalid("the headers are destroyed, or belong to another message"));
                    }
                    message.headers = u.headers;
                }
                vtype::END => break,
                other => return Err(invalid(&format!("unknown argument type {other}"))),
            }
        }
    }
    // Which of two mistakes is reported differs between the functions.
    if has_conflict && (topic.is_some() || function == Function::OfArray) {
        return Err((code::_CONFLICT, "pass single headers or a list of headers, not both".to_owned()));
    }
    let topic = topic.ok_or_else(|| invalid("a message needs a topic"))?;
    let own = single.map(|list| Headers::new(list).into_raw());
    if let Some(own) = own {
        message.headers = own;
    }
    // SAFETY: the pointers are by the contract of this function.
    unsafe { topic.produce(&message) }.map_err(|code| {
        if let Some(own) = own {
            // SAFETY: the message was not accepted, so the list still belongs to this function.
            unsafe { quarantine::retire(own) };
        }
        (code, describe(code).to_string_lossy().into_owned())
    })
}

export!(
    #[each(rk, std::ptr::null_mut())]
    fn rd_kafka_produceva(rk: *const Client, vus: *const rd_kafka_vu_t, cnt: usize) -> *mut ErrorObject {
        let arguments = if vus.is_null() {
            &[]
        } else {
            // SAFETY: the header requires that `vus` points to `cnt` arguments.
            unsafe { std::slice::from_raw_parts(vus, cnt) }
        };
        // SAFETY: by the contract of this function.
        ErrorObject::from_result(unsafe { produce_arguments(rk, arguments, Function::OfArray) }.map_err(
            |(code, text)| {
                // SAFETY: the header demands NULL or a client.
                let client = unsafe { Client::of(rk) };
                match client.and_then(Client::fatal) {
                    // The object contains the cause, and its flag replaces the code `_FATAL`.
                    Some((cause, _)) if code == code::_FATAL => ErrorObject::fatal(cause, text),
                    _ => ErrorObject::new(code, text),
                }
            },
        ))
    }
);

/// Called by the C half of `rd_kafka_producev`.
pub(crate) unsafe extern "C" fn ottla_producev(
    rk: *const Client,
    vus: *const rd_kafka_vu_t,
    cnt: usize,
) -> RespErr {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: the C half passes an array with this number of arguments.
        let arguments = unsafe { std::slice::from_raw_parts(vus, cnt) };
        // SAFETY: by the contract of this function.
        match unsafe { produce_arguments(rk, arguments, Function::OfArguments) } {
            Ok(()) => code::NO_ERROR,
            Err((code, _)) => {
                set_last(code);
                code
            }
        }
    })
}
