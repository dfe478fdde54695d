//! `rd_kafka_event_t`: a queue entry that belongs to the application.

use std::{
    any::Any,
    ffi::{CStr, CString, c_int},
    ptr,
};

use crate::{
    client::{
        contexts::Contexts,
        op::{ErrorMessage, Op, event_type_of},
    },
    consume::message::Held,
    ffi::{
        boundary::{Handle, Opaque, Tag, c_text},
        codes::{RespErr, code},
        error::describe,
        object::WeakObject,
        types::{event_type, rd_kafka_message_t, rd_kafka_t},
    },
};

/// The result of an admin call. Its type depends on the call.
pub(crate) type ResultBody = Box<dyn Any + Send>;

/// Error: the reason why an admin call has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: RespErr,
    pub(crate) text: String,
}

/// What happens when the application reads the message of a fetch event.
#[derive(Debug)]
pub(crate) enum Untaken {
    /// The position advances.
    Message,
    /// This client's interceptors are called, too, or it notes that the application gets messages of the partition.
    MessageOf(WeakObject<rd_kafka_t>),
}

/// An event.
#[repr(C)]
#[derive(Debug)]
pub struct Event {
    tag: Tag,
    pub(crate) kind: c_int,
    pub(super) op: Option<Op>,
    pub(super) code: RespErr,
    pub(super) text: CString,
    pub(super) is_fatal: bool,
    /// What reading a fetch event's one message does; `None` once it was read.
    pub(super) untaken: Option<Untaken>,
    pub(super) log: Option<(c_int, Contexts, &'static CStr)>,
    /// The result of an admin call, and the pointer of its options.
    result: Option<ResultBody>,
    pub(super) opaque: Opaque,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Event {
    const KIND: u32 = 0x6f74_6501;
}

impl Event {
    /// Creates an event from an entry.
    pub(crate) fn of(op: Op) -> Self {
        let kind = event_type_of(&op);
        let mut event = Self {
            tag: Tag::of::<Self>(),
            kind,
            op: None,
            code: code::NO_ERROR,
            text: CString::default(),
            is_fatal: false,
            untaken: None,
            log: None,
            result: None,
            opaque: Opaque(ptr::null_mut()),
        };
        match &op {
            Op::Error { code, text, is_fatal } => {
                (event.code, event.text, event.is_fatal) = (*code, c_text(text), *is_fatal);
            }
            Op::Delivery(delivery) => {
                event.code = delivery.code();
                event.text = describe(event.code).to_owned();
            }
            Op::Committed(committed) => {
                event.opaque = committed.opaque;
                event.code = committed.code;
                event.text = describe(committed.code).to_owned();
            }
            Op::Rebalance(rebalance) => {
                event.code = rebalance.code;
                event.text = describe(rebalance.code).to_owned();
            }
            Op::Log { level, of, facility, text } => {
                (event.log, event.text) = (Some((*level, *of, *facility)), c_text(text))
            }
            Op::Message(message) => {
                // SAFETY: the entry owns the message.
                let message = unsafe { &*message.0 };
                if message.err.is_error() {
                    event.kind = event_type::ERROR;
                    event.code = message.err;
                    if !message.payload.is_null() {
                        // SAFETY: the payload of an error message is its text.
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

    /// Creates the event of a message that the application takes by reading it.
    pub(super) fn of_fetched(message: *mut rd_kafka_message_t, untaken: Untaken) -> Self {
        Self { untaken: Some(untaken), ..Self::of(Op::Message(ErrorMessage(message))) }
    }

    /// Replaces the code that stands for any fatal error by the reason, which events have.
    pub(super) fn explain_fatal(mut self, fatal: impl FnOnce() -> Option<(RespErr, String)>) -> Self {
        if matches!(self.op, Some(Op::Message(_)))
            && self.code == code::_FATAL
            && let Some((code, text)) = fatal()
        {
            (self.code, self.text, self.is_fatal) = (code, c_text(&text), true);
        }
        self
    }

    /// Returns an event that only has an error.
    pub(crate) fn of_error(code: RespErr, text: String) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            kind: event_type::ERROR,
            op: None,
            code,
            text: c_text(&text),
            is_fatal: false,
            untaken: None,
            log: None,
            result: None,
            opaque: Opaque(ptr::null_mut()),
        }
    }

    /// Returns the event at the end of an admin call.
    pub(crate) fn of_result(kind: c_int, opaque: Opaque, outcome: Result<ResultBody, Failure>) -> Self {
        let (result, code, text) = match outcome {
            Ok(result) => (Some(result), code::NO_ERROR, String::new()),
            Err(failure) => (None, failure.code, failure.text),
        };
        Self { kind, result, opaque, ..Self::of_error(code, text) }
    }

    /// Returns the result of an admin call, if it is a `T`.
    pub(crate) fn result<T: 'static>(&self) -> Option<&T> {
        self.result.as_ref()?.downcast_ref()
    }
}

/// Stores the arrays that events return to C.
const _: () = assert!(size_of::<Held>() >= size_of::<rd_kafka_message_t>());
