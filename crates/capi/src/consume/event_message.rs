//! The message of a fetch event: it is taken when the application reads it from the event, not when a poll returns the event.
//!
//! # Pitfalls
//!
//! - An application that destroys an event unread has not processed its message. If the poll advanced the position, the next
//!   commit would include the message (`events.c`).

use crate::{
    client::{event::Untaken, handle::Client, interceptors::kind},
    consume::{
        fetched::set_position,
        settle::{each_fetched, forget_starts, note_starts},
    },
    ffi::types::rd_kafka_message_t,
};

/// Prepares the message of an event: the application has not got it yet.
pub(crate) fn take_later(client: &Client, message: *mut rd_kafka_message_t) -> Untaken {
    let mut is_first = false;
    each_fetched(&[message], |fetched| is_first = fetched.is_at_start());
    if is_first {
        forget_starts(client, &[message]);
    }
    if is_first || client.interceptors().has(kind::CONSUME) {
        Untaken::MessageOf(client.object())
    } else {
        Untaken::Message
    }
}

/// Gives the message to the application: calls the interceptors and advances the position, unless the partition was sought or
/// revoked meanwhile.
pub(crate) fn take(untaken: &Untaken, message: *mut rd_kafka_message_t) {
    let client = match untaken {
        Untaken::Message => None,
        Untaken::MessageOf(client) => client.upgrade().and_then(|object| object.downcast::<Client>()),
    };
    if let Some(client) = &client {
        client.intercept_consumed(message);
    }
    each_fetched(&[message], |fetched| {
        if fetched.is_assigned() {
            set_position(fetched, message);
            if let Some(client) = &client {
                note_starts(client, &[message]);
            }
        }
    });
}
