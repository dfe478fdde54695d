//! `rd_kafka_messages_t`: the messages of a poll, which belong to the list.

use std::{ptr, sync::Arc};

use ottla_core::share::{acquired::AcquiredRecords, walk::AcquiredWalk};

use crate::{
    client::{handle::Client, interceptors::kind, topic::Topic},
    consume::message::{Slab, error_message, rd_kafka_message_destroy},
    ffi::{
        argument::{Given, Ref},
        boundary::{Handle, Tag},
        error::code_of,
        export,
        types::rd_kafka_message_t,
    },
};

/// `rd_kafka_messages_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Messages {
    tag: Tag,
    messages: Vec<*mut rd_kafka_message_t>,
    /// The slabs of the messages: their memory stays as long as the list, also if the application destroys a message.
    slabs: Vec<*const Slab>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for Messages {
    const KIND: u32 = 0x6f74_6d04;
}

impl Messages {
    /// Creates the messages of acquired records. It calls interceptors.
    pub(super) fn new(client: &Client, acquired: Vec<Arc<AcquiredRecords>>) -> Self {
        let count = acquired.iter().map(|records| records.len() + records.damaged().len()).sum();
        let mut new = Self { tag: Tag::of::<Self>(), messages: Vec::with_capacity(count), slabs: Vec::new() };
        acquired.into_iter().for_each(|records| new.add(client, records));
        if client.interceptors().has(kind::CONSUME) {
            new.messages.iter().for_each(|message| client.intercept_consumed(*message));
        }
        new
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn add(&mut self, client: &Client, records: Arc<AcquiredRecords>) {
        let partition = records.partition().clone();
        // Only a client that ends has no topic any more.
        let Ok(topic) = client.topic(&partition.topic, None) else { return };
        let topic = Topic::object(topic);
        for damaged in records.damaged() {
            let (code, text) = (code_of(&damaged.error), damaged.error.to_string());
            let offset = *damaged.offsets.start();
            let topic = Some(topic.clone());
            self.messages.push(error_message(code, &text, topic, partition.partition, offset));
        }
        let mut walk = AcquiredWalk::new(records);
        while let Some(slab) = Slab::acquired(&mut walk, topic.clone()) {
            // SAFETY: the slab has a use, which is the list's; each place is handed out once.
            unsafe {
                let places = 0..(*slab).len();
                self.messages.extend(places.map(|place| Slab::hand_out(slab, place)));
            }
            self.slabs.push(slab);
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // SAFETY: messages that the application destroyed say so, and their slabs are still there.
        unsafe {
            self.messages.iter().for_each(|message| rd_kafka_message_destroy(*message));
            self.slabs.iter().for_each(|slab| Slab::release(*slab, 1));
        }
    }
}

export!(
    #[local(0)]
    fn rd_kafka_messages_count(messages: Ref<Messages>) -> usize {
        messages.get().map_or(0, |messages| messages.messages.len())
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_messages_get(messages: Ref<Messages>, index: usize) -> *mut rd_kafka_message_t {
        let message = messages.get().and_then(|messages| messages.messages.get(index));
        message.copied().unwrap_or(ptr::null_mut())
    }
);

export!(
    #[local(())]
    fn rd_kafka_messages_destroy(messages: Given<Messages>) {
        messages.retire();
    }
);
