//! The end of a call that collected messages for some time: what became out of date meanwhile does not reach the application.
//!
//! # Pitfalls
//!
//! - A call that fills an array may collect messages for seconds, and meanwhile partitions are revoked, sought or paused.
//!   If it advanced positions at once, a commit at the revocation would include messages that the call then drops
//!   (`batches.c`).

use ottla::Consumer;
use ottla_core::{cluster::command::Command, fetch::deliver::FetchedRecords};

use crate::{
    client::handle::Client,
    consume::{
        fetched::set_position,
        message::{Held, Slab, rd_kafka_message_destroy},
        owner::Owner,
    },
    ffi::types::rd_kafka_message_t,
};

/// Ends a call that collected messages for some time: advances the positions behind them, and drops the messages of
/// partitions that were revoked, sought or paused meanwhile. Returns the number of messages that are left, in the order
/// in which they were collected. A paused partition goes back to its first dropped message.
pub(crate) fn settle(
    client: &Client,
    consumer: &Consumer,
    messages: &mut [*mut rd_kafka_message_t],
) -> usize {
    let (mut at, mut kept) = (0, 0);
    while at < messages.len() {
        let slab = slab_of(messages[at]);
        let run = messages[at..].iter().take_while(|message| slab_of(**message) == slab).count();
        if keeps(client, consumer, slab, messages[at], messages[at + run - 1]) {
            messages.copy_within(at..at + run, kept);
            kept += run;
        } else {
            // SAFETY: the messages are this call's.
            messages[at..at + run].iter().for_each(|message| unsafe { rd_kafka_message_destroy(*message) });
        }
        at += run;
    }
    kept
}

/// Forgets the positions from which partitions started while the application has none of their messages: an interceptor that
/// commits then commits nothing.
pub(crate) fn forget_starts(client: &Client, messages: &[*mut rd_kafka_message_t]) {
    each_fetched(messages, |fetched| {
        if fetched.is_at_start() {
            client.offsets().forget_start(fetched.topic(), fetched.partition());
        }
    });
}

/// Notes that the application gets messages of partitions.
pub(crate) fn note_starts(client: &Client, messages: &[*mut rd_kafka_message_t]) {
    let Some(consumer) = client.consumer() else { return };
    each_fetched(messages, |fetched| client.note_consumed(consumer, fetched.topic(), fetched.partition()));
}

/// Calls `then` with the records that the messages belong to.
pub(super) fn each_fetched(messages: &[*mut rd_kafka_message_t], mut then: impl FnMut(&FetchedRecords)) {
    let mut last = None;
    for slab in messages.iter().filter_map(|message| slab_of(*message)) {
        if last.replace(slab) != Some(slab) {
            // SAFETY: the slab lives as long as its messages, which are the caller's.
            then(unsafe { &*slab }.fetched());
        }
    }
}

/// Ends a call for messages of one slab, the first and the last of which are given: returns true if the application gets
/// them.
fn keeps(
    client: &Client,
    consumer: &Consumer,
    slab: Option<*const Slab>,
    first: *mut rd_kafka_message_t,
    last: *mut rd_kafka_message_t,
) -> bool {
    // SAFETY: the slab lives as long as its messages, which are the caller's.
    let (Some(slab), first) = (slab.map(|slab| unsafe { &*slab }), unsafe { &*first }) else { return true };
    let fetched = slab.fetched();
    // What was handed out before a damaged record is the application's, and the position stands behind it.
    if fetched.is_assigned() && !fetched.is_paused() {
        set_position(fetched, last);
        return true;
    }
    // Of several slabs, the first one outdates the others, and what is queued behind them.
    if let Some(command) = consumer.core().rewind(fetched, first.offset) {
        consumer.handle().command(Command::Fetch(command));
        // The application may have got no message yet.
        if fetched.is_at_start() {
            client.offsets().forget_start(fetched.topic(), fetched.partition());
        }
    }
    false
}

/// Returns the slab that a message is in; `None` for errors.
fn slab_of(message: *mut rd_kafka_message_t) -> Option<*const Slab> {
    // SAFETY: the message was returned by this library, and the caller has it.
    match unsafe { Held::of(message) }?.owner() {
        Owner::Slab(slab) => Some(slab),
        _ => None,
    }
}
