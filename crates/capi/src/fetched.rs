//! What a queue took from its consumer: records, which become messages in slabs as they are handed out, and the events that
//! come behind them.

use std::{collections::VecDeque, sync::Arc};

use ottla::{Consumer, ConsumerEvent, OffsetReset, PieceWalk, Records};

use crate::{
    client::Client,
    codes::code,
    error::code_of,
    message::{Slab, error_message},
    op::{ErrorMessage, Op},
    types::{OFFSET_INVALID, rd_kafka_message_t},
};

/// Records that were taken from the consumer, on their way to the application.
#[derive(Default)]
pub(crate) struct Fetched {
    walks: VecDeque<PieceWalk>,
    /// What is only logged, before the records that follow it.
    news: VecDeque<ConsumerEvent>,
    /// What comes behind the records.
    events: VecDeque<ConsumerEvent>,
    current: Option<Current>,
}

impl Fetched {
    /// Adds what the consumer had.
    pub(crate) fn add(&mut self, records: Records) {
        let (walks, events) = records.into_walks();
        self.walks.extend(walks);
        let (events, news): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| {
            matches!(event, ConsumerEvent::EndOfPartition { .. } | ConsumerEvent::Error(_))
        });
        self.events.extend(events);
        self.news.extend(news);
    }

    /// The next record, if one was taken that the application still wants.
    #[inline]
    pub(crate) fn next(&mut self, consumer: &Consumer, client: &Client) -> Option<*mut rd_kafka_message_t> {
        loop {
            if let Some(current) = &mut self.current {
                // SAFETY: the queue has a use of the slab.
                let slab = unsafe { &*current.slab };
                let fetched = slab.fetched();
                if current.next < slab.len() && fetched.is_current() && !fetched.is_paused() {
                    // SAFETY: each place is handed out once.
                    let message = unsafe { Slab::hand_out(current.slab, current.next) };
                    current.next += 1;
                    // SAFETY: it was just handed out.
                    fetched.set_position(unsafe { (*message).offset } + 1);
                    return Some(message);
                }
                self.leave(consumer);
            }
            if !self.next_slab(consumer, client) {
                return None;
            }
        }
    }

    /// The next event, as what it is for the application: asked when there are no records.
    pub(crate) fn next_event(&mut self, client: &Client) -> Option<Option<Op>> {
        self.news.pop_front().or_else(|| self.events.pop_front()).map(|event| op_of(event, client))
    }

    /// Messages that were made already, and batches that wait.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the queue has a use of the slab.
        let slab = self.current.as_ref().map_or(0, |current| unsafe { &*current.slab }.len() - current.next);
        slab + self.walks.len()
    }

    /// Is done with a slab: at its end, or because its partition is not wanted any more or paused.
    #[cold]
    fn leave(&mut self, consumer: &Consumer) {
        let Some(current) = self.current.take() else { return };
        // SAFETY: the queue has a use of the slab.
        let slab = unsafe { &*current.slab };
        if current.next == slab.len() {
            return;
        }
        self.walks.pop_front();
        if slab.fetched().is_current() {
            // Paused: what was not handed out goes back.
            let mut rest = current.before.clone();
            rest.run(current.next, |_| ());
            consumer.set_aside(rest);
        }
    }

    #[inline(never)]
    fn next_slab(&mut self, consumer: &Consumer, client: &Client) -> bool {
        for event in self.news.drain(..) {
            op_of(event, client);
        }
        while let Some(walk) = self.walks.front_mut() {
            let fetched = Arc::clone(walk.fetched());
            if !fetched.is_current() {
                self.walks.pop_front();
                continue;
            }
            if fetched.is_paused() {
                if let Some(walk) = self.walks.pop_front() {
                    consumer.set_aside(walk);
                }
                continue;
            }
            let before = walk.clone();
            let Ok(topic) = client.topic(fetched.topic(), None) else {
                self.walks.pop_front();
                continue;
            };
            let slab = Slab::new(walk, &topic);
            let current = Current { slab, next: 0, before };
            // SAFETY: the slab is there as long as it is the current one.
            if unsafe { (*slab).len() } > 0 {
                client.note_consumed(consumer, fetched.topic(), fetched.partition());
                self.current = Some(current);
                return true;
            }
            fetched.set_position(fetched.next_offset());
            self.walks.pop_front();
        }
        false
    }
}

/// The slab that is being handed out.
struct Current {
    slab: *const Slab,
    next: usize,
    /// The place of the slab's first message.
    before: PieceWalk,
}

// SAFETY: the slab is shared by a count, and only the owner of this struct hands its messages out.
unsafe impl Send for Current {}

impl Drop for Current {
    fn drop(&mut self) {
        // SAFETY: the queue's own use was counted when the slab was made, and one for each message.
        unsafe { Slab::release(self.slab, 1 + (*self.slab).len() - self.next) };
    }
}

/// What a consumer's event is for the application.
fn op_of(event: ConsumerEvent, client: &Client) -> Option<Op> {
    match event {
        ConsumerEvent::EndOfPartition { topic, partition, offset } => {
            let text = format!("{topic} [{partition}] is at its end, offset {offset}");
            let topic = client.topic(&topic, None).ok();
            let message = error_message(code::_PARTITION_EOF, &text, topic, partition, offset);
            Some(Op::Message(ErrorMessage(message)))
        }
        ConsumerEvent::Error(error) => {
            let (code, text) = (code_of(&error), error.to_string());
            let context = error.context();
            let (Some(topic), Some(partition)) = (&context.topic, context.partition) else {
                client.error(code, text);
                return None;
            };
            let position = client.consumer().and_then(|consumer| consumer.position(topic, partition));
            let topic = client.topic(topic, None).ok();
            let offset = position.unwrap_or(OFFSET_INVALID);
            let message = error_message(code, &text, topic, partition, offset);
            Some(Op::Message(ErrorMessage(message)))
        }
        ConsumerEvent::OffsetReset { topic, partition, offset, to } => {
            let to = if to == OffsetReset::Beginning { "BEGINNING" } else { "END" };
            let line =
                format!("{topic} [{partition}]: offset reset to {to}: offset {offset} is out of range");
            client.log(4, c"OFFSET", &line);
            None
        }
        event @ ConsumerEvent::LogTruncated { .. } => {
            client.log(4, c"TRUNCATED", &event.to_string());
            None
        }
        ConsumerEvent::TopicRecreated(topic) => {
            client.tell_recreated(&topic);
            None
        }
        _ => None,
    }
}
