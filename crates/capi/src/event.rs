//! `rd_kafka_event_t`: an entry of a queue in the application's hands.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
};

use crate::{
    admin::{self, Answer, Failure},
    boundary::{Handle, Opaque, Tag, c_text, guarded_local, handle, put_text},
    client::Client,
    codes::code,
    debug::Contexts,
    graves,
    list::{self, List},
    message::Held,
    op::{Op, event_type_of, topic_of},
    types::{event_type, rd_kafka_message_t, rd_kafka_topic_partition_t},
};

/// An event.
#[repr(C)]
#[derive(Debug)]
pub struct Event {
    tag: Tag,
    pub(crate) kind: c_int,
    op: Option<Op>,
    code: c_int,
    text: CString,
    is_fatal: bool,
    /// The one message of a fetch event was shown.
    is_shown: bool,
    log: Option<(c_int, Contexts, &'static CStr)>,
    /// What an administrative call found out, and the pointer that it was given.
    answer: Option<Answer>,
    opaque: Opaque,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Event {
    const KIND: u32 = 0x6f74_6501;
}

impl Event {
    /// An entry as an event.
    pub(crate) fn of(op: Op, _: &Client) -> Self {
        let kind = event_type_of(&op);
        let mut event = Self {
            tag: Tag::of::<Self>(),
            kind,
            op: None,
            code: 0,
            text: CString::default(),
            is_fatal: false,
            is_shown: false,
            log: None,
            answer: None,
            opaque: Opaque(ptr::null_mut()),
        };
        match &op {
            Op::Error { code, text, is_fatal } => {
                (event.code, event.text, event.is_fatal) = (*code, c_text(text), *is_fatal);
            }
            Op::Committed(committed) => {
                event.opaque = committed.opaque;
                event.code = committed.code;
                event.text = crate::error::describe(committed.code).to_owned();
            }
            Op::Log { level, of, facility, text } => {
                (event.log, event.text) = (Some((*level, *of, *facility)), c_text(text))
            }
            Op::Message(message) => {
                // SAFETY: the entry has the message.
                let message = unsafe { &*message.0 };
                if message.err != 0 {
                    event.kind = event_type::ERROR;
                    event.code = message.err;
                    if !message.payload.is_null() {
                        // SAFETY: an error's payload is its text.
                        event.text = unsafe { CStr::from_ptr(message.payload.cast()) }.to_owned();
                    }
                }
            }
            _ => {}
        }
        if let Op::Event(event) = op {
            return *event;
        }
        event.op = Some(op);
        event
    }

    /// An event that only tells of an error.
    pub(crate) fn of_error(code: c_int, text: String) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            kind: event_type::ERROR,
            op: None,
            code,
            text: c_text(&text),
            is_fatal: false,
            is_shown: false,
            log: None,
            answer: None,
            opaque: Opaque(ptr::null_mut()),
        }
    }

    /// The end of an administrative call.
    pub(crate) fn of_answer(kind: c_int, opaque: Opaque, outcome: Result<Answer, Failure>) -> Self {
        let (answer, code, text) = match outcome {
            Ok(answer) => (Some(answer), code::NO_ERROR, String::new()),
            Err(failure) => (None, failure.code, failure.text),
        };
        Self { kind, answer, opaque, ..Self::of_error(code, text) }
    }

    /// What an administrative call found out.
    pub(crate) const fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    fn next(&mut self) -> *const rd_kafka_message_t {
        match &mut self.op {
            Some(Op::Delivery(delivery)) => delivery.next(),
            Some(Op::Message(message)) if self.kind == event_type::FETCH && !self.is_shown => {
                self.is_shown = true;
                message.0
            }
            _ => ptr::null(),
        }
    }
}

/// The event behind a handle, for a call that changes it.
///
/// # Safety
///
/// NULL or an object of this library that nobody else uses now.
unsafe fn changeable<'a>(event: *mut Event) -> Option<&'a mut Event> {
    // SAFETY: as the caller says.
    unsafe {
        handle(event.cast_const())?;
        event.as_mut()
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_type(event: *const Event) -> c_int {
    // SAFETY: NULL or an event, says the caller.
    unsafe { handle(event) }.map_or(0, |event| event.kind)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_name(event: *const Event) -> *const c_char {
    // SAFETY: NULL or an event, says the caller.
    let name = match unsafe { rd_kafka_event_type(event) } {
        0 => c"(NONE)",
        event_type::DR => c"DeliveryReport",
        event_type::FETCH => c"Fetch",
        event_type::LOG => c"Log",
        event_type::ERROR => c"Error",
        event_type::STATS => c"Stats",
        event_type::REBALANCE => c"Rebalance",
        event_type::OFFSET_COMMIT => c"OffsetCommit",
        kind => admin::event_name(kind).unwrap_or(c"?unknown?"),
    };
    name.as_ptr()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_destroy(event: *mut Event) {
    guarded_local((), || {
        // SAFETY: NULL or an event, says the caller, who gives it up.
        unsafe { graves::bury(event) };
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_message_next(event: *mut Event) -> *const rd_kafka_message_t {
    guarded_local(ptr::null(), || {
        // SAFETY: NULL or an event that nobody else uses now, says the caller.
        unsafe { changeable(event) }.map_or(ptr::null(), Event::next)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_message_array(
    event: *mut Event,
    messages: *mut *const rd_kafka_message_t,
    size: usize,
) -> usize {
    guarded_local(0, || {
        // SAFETY: NULL or an event that nobody else uses now, and an array of that size, says the caller.
        let Some(event) = (unsafe { changeable(event) }) else { return 0 };
        if messages.is_null() {
            return 0;
        }
        let mut count = 0;
        while count < size {
            let message = event.next();
            if message.is_null() {
                break;
            }
            // SAFETY: `count` is less than the array's size.
            unsafe { *messages.add(count) = message };
            count += 1;
        }
        count
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_message_count(event: *const Event) -> usize {
    // SAFETY: NULL or an event, says the caller.
    match unsafe { handle(event) }.and_then(|event| event.op.as_ref()) {
        Some(Op::Delivery(delivery)) => delivery.len(),
        Some(Op::Message(_)) => 1,
        _ => 0,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_error(event: *const Event) -> c_int {
    // SAFETY: NULL or an event, says the caller.
    unsafe { handle(event) }.map_or(code::NO_ERROR, |event| event.code)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_error_string(event: *const Event) -> *const c_char {
    // SAFETY: NULL or an event, says the caller.
    match unsafe { handle(event) } {
        Some(event) if event.code != 0 => event.text.as_ptr(),
        _ => ptr::null(),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_error_is_fatal(event: *const Event) -> c_int {
    // SAFETY: NULL or an event, says the caller.
    unsafe { handle(event) }.map_or(0, |event| event.is_fatal.into())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_opaque(event: *const Event) -> *mut c_void {
    // SAFETY: NULL or an event, says the caller.
    unsafe { handle(event) }.map_or(ptr::null_mut(), |event| event.opaque.0)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_log(
    event: *const Event,
    fac: *mut *const c_char,
    text: *mut *const c_char,
    level: *mut c_int,
) -> c_int {
    // SAFETY: NULL or an event, and writable places or NULL, says the caller.
    unsafe {
        let Some(event) = handle(event) else { return -1 };
        let Some((is, _, facility)) = event.log else { return -1 };
        if !fac.is_null() {
            *fac = facility.as_ptr();
        }
        if !text.is_null() {
            *text = event.text.as_ptr();
        }
        if !level.is_null() {
            *level = is;
        }
        0
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_stats(event: *const Event) -> *const c_char {
    // SAFETY: NULL or an event, says the caller.
    match unsafe { handle(event) }.and_then(|event| event.op.as_ref()) {
        Some(Op::Stats(json)) => json.as_ptr(),
        _ => ptr::null(),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_topic_partition_list(event: *const Event) -> *mut List {
    // SAFETY: NULL or an event, says the caller.
    match unsafe { handle(event) }.and_then(|event| event.op.as_ref()) {
        Some(Op::Committed(committed)) => committed.list.as_ptr(),
        _ => ptr::null_mut(),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_topic_partition(
    event: *const Event,
) -> *mut rd_kafka_topic_partition_t {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or an event, says the caller.
        match unsafe { handle(event) }.and_then(|event| event.op.as_ref()) {
            Some(Op::Message(message)) => {
                // SAFETY: the event has the message.
                let message = unsafe { &*message.0 };
                topic_of(message).map_or(ptr::null_mut(), |topic| {
                    list::alone(topic.name(), message.partition, message.offset, message.err)
                })
            }
            _ => ptr::null_mut(),
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_event_debug_contexts(
    event: *const Event,
    dst: *mut c_char,
    dstsize: usize,
) -> c_int {
    // SAFETY: NULL or an event, and a buffer of that size, says the caller.
    unsafe {
        match handle(event).and_then(|event| event.log) {
            Some((_, contexts, _)) => {
                put_text(dst, dstsize, &contexts.names());
                0
            }
            None => -1,
        }
    }
}

/// Keeps the layout of what events show in one place.
const _: () = assert!(size_of::<Held>() >= size_of::<rd_kafka_message_t>());
