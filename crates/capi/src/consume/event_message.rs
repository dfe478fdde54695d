//! The message of a fetch event: it is taken when the application reads it from the event, not when a poll returns the event.
//!
//! # Pitfalls
//!
//! - An application that destroys an event unread has not processed its message. If the poll advanced the position, the next
//!   commit would include the message (`found_later.c`).

use std::sync::Weak;

use crate::{
    client::{handle::Client, interceptors::kind},
    consume::{
        fetched::set_position,
        settle::{each_fetched, forget_starts, note_starts},
    },
    ffi::types::rd_kafka_message_t,
};

/// What remains to be done when the application reads the message of an event.
#[derive(Debug, Default)]
pub(crate) struct Taking {
    /// The client, if more than the position changes: it has interceptors, or the application has no message of the partition yet.
    client: Weak<Client>,
}

impl Taking {
    /// Prepares the message of an event: the application has not got it yet.
    pub(crate) fn later(client: &Client, message: *mut rd_kafka_message_t) -> Self {
        let mut is_first = false;
        each_fetched(&[message], |fetched| is_first = fetched.is_at_start());
        if is_first {
            forget_starts(client, &[message]);
        }
        let needs_client = is_first || client.interceptors().has(kind::CONSUME);
        Self { client: if needs_client { client.weak() } else { Weak::new() } }
    }

    /// Gives the message to the application: calls the interceptors and advances the position, unless the partition was sought or
    /// revoked meanwhile.
    pub(crate) fn take(self, message: *mut rd_kafka_message_t) {
        let client = self.client.upgrade();
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
}
