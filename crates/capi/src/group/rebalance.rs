//! Notifications of the group: rebalances to which the application responds, outcomes of commits, errors.

use std::{sync::Weak, time::Duration};

use ottla::{Consumer, ErrorCode};
use ottla_core::{
    error::{Error, ErrorKind},
    group::shared::{Answers, GroupSink, RebalanceEvent, RebalanceKind},
    offsets::committed::{CommitResult, GroupOffset},
};

use super::{
    assign::{Change, change_assignment},
    state::Rebalance,
};
use crate::{
    client::{
        handle::Client,
        op::{ErrorMessage, Op, wants},
        topic::Topic,
    },
    consume::message::error_message,
    ffi::{
        codes::{RespErr, code},
        error::{code_of, describe},
        list::Listed,
        types::{OFFSET_INVALID, event_type},
    },
};

/// The partition in the errors of a group, which are about none.
const NO_PARTITION: i32 = 0;

/// Receives the notifications of a client's group.
pub(crate) struct Sink(pub(crate) Weak<Client>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl GroupSink for Sink {
    fn answers(&self) -> Answers {
        let is_asked = self.0.upgrade().is_some_and(|client| {
            let conf = client.conf();
            !client.is_closing()
                && (conf.callbacks.rebalance.is_some() || wants(conf.events, event_type::REBALANCE))
        });
        if is_asked { Answers::Application } else { Answers::Library }
    }

    fn rebalance(&self, event: RebalanceEvent) {
        let Some(client) = self.0.upgrade() else { return };
        let mut list = Listed::default();
        for key in &event.partitions {
            list.add(&key.topic, key.partition, OFFSET_INVALID, code::NO_ERROR);
        }
        let code = match event.kind {
            RebalanceKind::Assign => code::_ASSIGN_PARTITIONS,
            RebalanceKind::Revoke | RebalanceKind::Lost => code::_REVOKE_PARTITIONS,
        };
        if let Some(queue) = client.consumer_queue() {
            queue.push(Op::Rebalance(Box::new(Rebalance { code, list })));
        }
    }

    fn committed(&self, offsets: &[GroupOffset], outcome: &CommitResult) {
        if let Some(client) = self.0.upgrade()
            && let Some(consumer) = client.consumer()
        {
            client.report_automatic_commit(consumer, offsets, outcome);
        }
    }

    fn error(&self, error: Error) {
        let Some(client) = self.0.upgrade() else { return };
        let code = group_code_of(&error);
        let text = match (&error.context().topic, error.kind()) {
            (Some(topic), ErrorKind::Broker(_)) => {
                format!("Subscribed topic not available: {topic}: {}", describe(code).to_string_lossy())
            }
            _ => error.to_string(),
        };
        if error.kind() == ErrorKind::MaxPollExceeded {
            client.log(4, c"MAXPOLL", &text);
        }
        if client.membership().is_of_consumer_protocol
            && error.kind() == MISSING
            && error.context().topic.is_some()
        {
            // Programs for the original expect no error in this protocol.
            return client.log(4, c"TOPIC", &text);
        }
        let topic = error.context().topic.as_deref().and_then(|topic| client.topic(topic, None).ok());
        let message = error_message(code, &text, topic.map(Topic::object), NO_PARTITION, OFFSET_INVALID);
        if let Some(queue) = client.consumer_queue() {
            queue.push(Op::Message(ErrorMessage(message)));
        }
    }

    fn poll_overdue(&self, since: Duration, limit: Duration) {
        let Some(client) = self.0.upgrade() else { return };
        let line = format!(
            "The application has not polled for {} ms; after {} ms (max.poll.interval.ms) the consumer leaves its group",
            since.as_millis(),
            limit.as_millis()
        );
        client.log(4, c"MAXPOLL", &line);
    }
}

/// The error of a subscribed topic that does not exist.
const MISSING: ErrorKind = ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);

/// Returns the code for an error of the group. Unusable topics have one of two codes, as in librdkafka.
fn group_code_of(error: &Error) -> RespErr {
    match (code_of(error), &error.context().topic) {
        (code::TOPIC_AUTHORIZATION_FAILED, Some(_)) => code::TOPIC_AUTHORIZATION_FAILED,
        (_, Some(_)) if matches!(error.kind(), ErrorKind::Broker(_)) => code::UNKNOWN_TOPIC_OR_PART,
        (code, _) => code,
    }
}

impl Client {
    /// Calls the application's rebalance callback. Without a callback, which happens if the application enabled
    /// rebalance events but calls a function that serves callbacks, the partitions are unassigned.
    pub(crate) fn serve_rebalance(&self, rebalance: &Rebalance) {
        if let Some(callback) = self.conf().callbacks.rebalance {
            self.membership().begin_asking(rebalance);
            self.membership().set_answering(true);
            // SAFETY: the application's function gets a list that lives until it returns.
            unsafe { callback(self.as_c(), rebalance.code, rebalance.list.as_ptr(), self.conf().opaque.0) };
            self.membership().set_answering(false);
            self.answer_for_close(false);
        } else if let Some(consumer) = self.consumer() {
            let _ = change_assignment(self, consumer, Change::Nothing);
        }
    }

    /// Notes that the application takes a rebalance as an event.
    pub(crate) fn note_rebalance_event(&self, rebalance: &Rebalance) {
        self.membership().begin_asking(rebalance);
        self.answer_for_close(false);
    }

    /// Responds to a rebalance in the place of an application that closes its consumer instead.
    pub(super) fn answer_for_close(&self, is_closing_thread: bool) {
        if self.membership().counts_as_answered(is_closing_thread)
            && let Some(consumer) = self.consumer()
        {
            let _ = change_assignment(self, consumer, Change::Nothing);
        }
    }

    /// Counts the application as polling for `max.poll.interval.ms` until the returned value is dropped.
    pub(crate) fn begin_poll(&self) -> Option<impl Drop> {
        self.consumer().map(Consumer::begin_group_poll)
    }
}
