//! What a queue holds for the application.

use std::{
    ffi::{CStr, CString, c_int},
    ptr,
};

use ottla::Throttle;

use crate::{
    debug::Contexts,
    event::Event,
    message::rd_kafka_message_destroy,
    offsets::Committed,
    report::Delivery,
    topic::Topic,
    types::{event_type, rd_kafka_message_t},
};

/// An entry of a queue.
#[derive(Debug)]
pub(crate) enum Op {
    /// Reports of a batch.
    Delivery(Box<Delivery>),
    /// An error that belongs to no call.
    Error { code: c_int, text: String, is_fatal: bool },
    /// A log line.
    Log { level: c_int, of: Contexts, facility: &'static CStr, text: String },
    /// Statistics, as JSON.
    Stats(CString),
    /// The outcome of a commit.
    Committed(Box<Committed>),
    /// A broker asked to hold back, or no longer does.
    Throttle(Throttle),
    /// Something that only events can tell.
    Event(Box<Event>),
    /// An error of a partition, as a message.
    Message(ErrorMessage),
}

/// What an op is as an event.
pub(crate) const fn event_type_of(op: &Op) -> c_int {
    match op {
        Op::Delivery(_) => event_type::DR,
        Op::Error { .. } => event_type::ERROR,
        Op::Log { .. } => event_type::LOG,
        Op::Stats(_) => event_type::STATS,
        Op::Committed(_) => event_type::OFFSET_COMMIT,
        // It comes by its callback only.
        Op::Throttle(_) => 0,
        Op::Event(event) => event.kind,
        Op::Message(_) => event_type::FETCH,
    }
}

/// True if an error or a log line goes to the application as an event.
pub(crate) const fn wants(events: c_int, kind: c_int) -> bool {
    events & kind != 0
}

/// A message that is an error; destroyed if nobody takes it.
#[derive(Debug)]
pub(crate) struct ErrorMessage(pub(crate) *mut rd_kafka_message_t);

// SAFETY: whoever has it has the only pointer.
unsafe impl Send for ErrorMessage {}

impl Drop for ErrorMessage {
    fn drop(&mut self) {
        // SAFETY: nobody took the message.
        unsafe { rd_kafka_message_destroy(self.0) };
    }
}

impl ErrorMessage {
    pub(crate) fn take(mut self) -> *mut rd_kafka_message_t {
        std::mem::replace(&mut self.0, ptr::null_mut())
    }
}

/// The topic and partition of a message, for events.
pub(crate) fn topic_of(message: &rd_kafka_message_t) -> Option<&Topic> {
    // SAFETY: messages in events have a topic that lives as long as they do, or none.
    unsafe { message.rkt.as_ref() }
}
