//! Offsets that the application stores, to be committed later.

use std::ptr;

use ottla::Consumer;
use ottla_core::fetch::{deliver::FetchedRecords, partition::StoredOffset};
use ottla_protocol::vocabulary::LeaderEpoch;

use crate::{
    client::{handle::Client, topic::Topic},
    consume::{consumer::consumer_of, message::Held},
    ffi::{
        argument::{Part, PartMut, Ref},
        boundary::is_inherited,
        codes::{RespErr, code},
        error::ErrorObject,
        export,
        list::List,
        types::rd_kafka_message_t,
    },
};

/// Stores an offset of a partition that is being read. If `of` is given, the offset is about these records.
fn store(
    client: &Client,
    consumer: &Consumer,
    topic: &str,
    partition: i32,
    position: (i64, i32, String),
    of: Option<&FetchedRecords>,
) -> RespErr {
    if partition < 0 {
        return code::_UNKNOWN_PARTITION;
    }
    if !consumer.assignment().iter().any(|key| *key.topic == *topic && key.partition == partition) {
        // A thread that is not done with the messages yet may store their offsets after the end, without an effect.
        if client.offsets().is_known_to_older(topic, partition) {
            return code::NO_ERROR;
        }
        let is_known = client.topic_if_any(topic).is_some() || client.offsets().knows_topic(topic);
        return if is_known { code::_STATE } else { code::_UNKNOWN_PARTITION };
    }
    let (offset, leader_epoch, metadata) = position.clone();
    let stored = StoredOffset { offset, leader_epoch: LeaderEpoch::from_wire(leader_epoch), metadata };
    let Ok(topic_id) = consumer.core().store_offset(topic, partition, stored, of) else {
        return code::_STATE;
    };
    client.offsets().store(topic, partition, position, topic_id);
    client.remind_of_commits(consumer);
    code::NO_ERROR
}

export!(
    #[on(rkt, code::_FATAL)]
    fn rd_kafka_offset_store(rkt: Ref<Topic>, partition: i32, offset: i64) -> RespErr {
        let Some(topic) = rkt.get() else { return code::_INVALID_ARG };
        let client = topic.client();
        let Some(consumer) = client.consumer() else { return code::_UNKNOWN_PARTITION };
        store(client, consumer, topic.name(), partition, (offset.saturating_add(1), -1, String::new()), None)
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_offsets_store(rk: Ref<Client>, offsets: PartMut<List>) -> RespErr {
        let ((client, consumer), list) = match (consumer_of(rk), List::passed_mut(offsets)) {
            (Ok(both), Some(list)) if !both.0.offsets().stores_by_position() => (both, list),
            (Err(code::_ALL_BROKERS_DOWN), _) => return code::_ALL_BROKERS_DOWN,
            _ => return code::_INVALID_ARG,
        };
        let mut stored = 0;
        let mut last = code::NO_ERROR;
        for element in list.elements_mut() {
            let position = (element.offset, element.leader_epoch(), element.metadata_text());
            element.err = store(client, consumer, element.name(), element.partition, position, None);
            match element.err {
                code::NO_ERROR => stored += 1,
                code => last = code,
            }
        }
        if stored == 0 { last } else { code::NO_ERROR }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_offset_store_message(message: Part<rd_kafka_message_t>) -> *mut ErrorObject {
        let (epoch, of) = match Held::passed(message) {
            Some(held) => (held.leader_epoch, held.fetched()),
            None => (-1, None),
        };
        let Some(message) = message.get().filter(|message| message.err == code::NO_ERROR) else {
            let text = "an error message has no offset to store";
            return ErrorObject::from_result(Err(ErrorObject::new(code::_INVALID_ARG, text)));
        };
        let Some(topic) = Topic::of_message(message) else {
            return ErrorObject::from_result(Err(ErrorObject::new(
                code::_INVALID_ARG,
                "the message has no topic",
            )));
        };
        // SAFETY: the handle is a topic.
        if unsafe { is_inherited(std::ptr::from_ref(topic)) } {
            let text =
                "the message is of a client of the parent process; a forked child needs a client of its own";
            return ErrorObject::from_result(Err(ErrorObject::new(code::_FATAL, text)));
        }
        let client = topic.client();
        let Some(consumer) = client.consumer() else {
            // The partitions of a share consumer are not assigned as those of other consumers are.
            return ErrorObject::from_result(Err(ErrorObject::new(
                if client.is_share_consumer() { code::_STATE } else { code::_INVALID_ARG },
                "this is not a consumer",
            )));
        };
        let position = (message.offset + 1, epoch, String::new());
        let result = store(client, consumer, topic.name(), message.partition, position, of);
        ErrorObject::from_result(match result {
            code::NO_ERROR => Ok(()),
            code => {
                let (topic, partition) = (topic.name(), message.partition);
                let text = format!(
                    "{topic} [{partition}] is not assigned, or the topic was recreated since the message was consumed"
                );
                Err(ErrorObject::new(code, text))
            }
        })
    }
);
