//! Queue entries for the application.

use std::{
    ffi::{CStr, CString, c_int},
    fmt, ptr,
};

use ottla_core::event::Throttle;

use crate::{
    client::{contexts::Contexts, event::Event},
    consume::{message::rd_kafka_message_destroy, offsets::Committed},
    ffi::{
        codes::RespErr,
        types::{event_type, rd_kafka_message_t},
    },
    group::state::Rebalance,
    produce::delivery::Delivery,
};

/// An entry of a queue.
#[derive(Debug)]
pub(crate) enum Op {
    /// The delivery reports of a batch.
    Delivery(Box<Delivery>),
    /// An error that belongs to no call.
    Error { code: RespErr, text: String, is_fatal: bool },
    /// A log line.
    Log { level: c_int, of: Contexts, facility: &'static CStr, text: String },
    /// Statistics, as JSON.
    Stats(CString),
    /// A request for a token, with `sasl.oauthbearer.config`.
    TokenRefresh(CString),
    /// The outcome of a commit.
    Committed(Box<Committed>),
    /// A rebalance, to which the application has to respond.
    Rebalance(Box<Rebalance>),
    /// A broker throttles requests, or no longer does.
    Throttle(Throttle),
    /// An entry that only events can represent.
    Event(Box<Event>),
    /// An error of a partition, as a message.
    Message(ErrorMessage),
    /// A call of the application's function, with all that it needs.
    Call(Call),
}

impl Op {
    /// True for the outcome of a commit that a closed consumer refused: only polls for messages and the background thread
    /// pass it to the application's function.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Committed(committed) if committed.is_refused)
    }
}

/// A function to run on the thread that serves a queue.
pub(crate) struct Call(pub(crate) Box<dyn FnOnce() + Send>);

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Call")
    }
}

/// Returns the event type of an entry.
pub(crate) const fn event_type_of(op: &Op) -> c_int {
    match op {
        Op::Delivery(_) => event_type::DR,
        Op::Error { .. } => event_type::ERROR,
        Op::Log { .. } => event_type::LOG,
        Op::Stats(_) => event_type::STATS,
        Op::TokenRefresh(_) => event_type::OAUTHBEARER_TOKEN_REFRESH,
        Op::Committed(_) => event_type::OFFSET_COMMIT,
        Op::Rebalance(_) => event_type::REBALANCE,
        // They come by callbacks only.
        Op::Throttle(_) | Op::Call(_) => 0,
        Op::Event(event) => event.kind,
        Op::Message(_) => event_type::FETCH,
    }
}

/// Returns true if an error or a log line goes to the application as an event.
pub(crate) const fn wants(events: c_int, kind: c_int) -> bool {
    events & kind != 0
}

/// An error message. It is destroyed unless the application takes it.
#[derive(Debug)]
pub(crate) struct ErrorMessage(pub(crate) *mut rd_kafka_message_t);

// SAFETY: the struct owns the message; there is no other pointer to it.
unsafe impl Send for ErrorMessage {}

impl Drop for ErrorMessage {
    fn drop(&mut self) {
        // SAFETY: the application did not take the message.
        unsafe { rd_kafka_message_destroy(self.0) };
    }
}

impl ErrorMessage {
    pub(crate) fn take(mut self) -> *mut rd_kafka_message_t {
        std::mem::replace(&mut self.0, ptr::null_mut())
    }
}
