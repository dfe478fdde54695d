//! Events that a consumer reports between its records: entries for the application, or log lines.

use ottla_core::{config::OffsetReset, fetch::deliver::ConsumerEvent};

use crate::{
    client::{
        handle::Client,
        op::{ErrorMessage, Op},
        topic::Topic,
    },
    consume::message::{Held, error_message},
    ffi::{codes::code, error::code_of, types::OFFSET_INVALID},
};

impl Client {
    /// Returns the queue entry for a consumer event; `None` if the event was logged, or is an error of the whole
    /// client. Calls out.
    pub(crate) fn op_of(&self, event: ConsumerEvent) -> Option<Op> {
        match event {
            ConsumerEvent::EndOfPartition { topic, partition, offset, leader_epoch, broker_id } => {
                let text = format!("{topic} [{partition}] is at its end, offset {offset}");
                let topic = self.topic(&topic, None).ok().map(Topic::object);
                let message = error_message(code::_PARTITION_EOF, &text, topic, partition, offset);
                // SAFETY: the message was just created.
                unsafe { Held::of(message) }.into_iter().for_each(|held| {
                    held.leader_epoch = leader_epoch.unwrap_or(-1);
                    held.broker_id = broker_id.unwrap_or(-1);
                });
                Some(Op::Message(ErrorMessage(message)))
            }
            ConsumerEvent::Error(error) => {
                let (code, text) = (code_of(&error), error.to_string());
                let context = error.context();
                let (Some(topic), Some(partition)) = (&context.topic, context.partition) else {
                    self.error(code, text);
                    return None;
                };
                let position = self.consumer().and_then(|consumer| consumer.position(topic, partition));
                let topic = self.topic(topic, None).ok().map(Topic::object);
                let offset = position.unwrap_or(OFFSET_INVALID);
                let message = error_message(code, &text, topic, partition, offset);
                Some(Op::Message(ErrorMessage(message)))
            }
            ConsumerEvent::OffsetReset { topic, partition, offset, to } => {
                let to = if to == OffsetReset::Beginning { "BEGINNING" } else { "END" };
                let line =
                    format!("{topic} [{partition}]: offset reset to {to}: offset {offset} is out of range");
                self.log(4, c"OFFSET", &line);
                None
            }
            event @ ConsumerEvent::LogTruncated { .. } => {
                self.log(4, c"TRUNCATED", &event.to_string());
                None
            }
            ConsumerEvent::TopicRecreated(topic) => {
                self.report_recreated(&topic);
                None
            }
            _ => None,
        }
    }
}
