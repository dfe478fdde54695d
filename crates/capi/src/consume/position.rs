//! Pausing and resuming partitions, and the position of each.
//!
//! # Pitfalls
//!
//! - A seek to a logical offset needs a leader to find the offset out. Waiting for it would block the application for as
//!   long as there is no leader, with a timeout of -1 for ever (`seeking.c`).

use std::{ffi::c_int, ptr};

use ottla::Consumer;
use ottla_core::fetch::{KnownEpochs, position::Offset};

use crate::{
    client::{handle::Client, topic::Topic},
    consume::{
        consumer::consumer_of,
        offset_spec::{epochs, offset_spec},
    },
    ffi::{
        argument::{PartMut, Ref},
        codes::{RespErr, code},
        error::{ErrorObject, code_of},
        export,
        list::List,
        types::{OFFSET_INVALID, OFFSET_STORED},
    },
};

/// Pauses or resumes partitions, and sets the error of each element.
fn pause_or_resume(rk: Ref<Client>, partitions: PartMut<List>, pause: bool) -> RespErr {
    let (Some(client), Some(list)) = (rk.get(), List::passed_mut(partitions)) else {
        return code::_INVALID_ARG;
    };
    let consumer = client.consumer();
    let (facility, what) = if pause { (c"PAUSE", "Pausing") } else { (c"RESUME", "Resuming") };
    client.logging().note_partitions(facility, what, list.elements());
    if client.is_producer() {
        client.hold_back(list, pause);
        return code::NO_ERROR;
    }
    for element in list.elements_mut() {
        let pair = [(element.name(), element.partition)];
        let result = match consumer {
            Some(consumer) if pause => consumer.pause(&pair),
            Some(consumer) => consumer.resume(&pair),
            None => {
                element.err = code::_ALL_BROKERS_DOWN;
                continue;
            }
        };
        element.err = if result.is_ok() { code::NO_ERROR } else { code::_UNKNOWN_PARTITION };
    }
    code::NO_ERROR
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_pause_partitions(rk: Ref<Client>, partitions: PartMut<List>) -> RespErr {
        pause_or_resume(rk, partitions, true)
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_resume_partitions(rk: Ref<Client>, partitions: PartMut<List>) -> RespErr {
        pause_or_resume(rk, partitions, false)
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_position(rk: Ref<Client>, partitions: PartMut<List>) -> RespErr {
        let (Some(client), Some(list)) = (rk.get(), List::passed_mut(partitions)) else {
            return code::_INVALID_ARG;
        };
        let consumer = client.consumer();
        for element in list.elements_mut() {
            let (topic, partition) = (element.name(), element.partition);
            let position =
                consumer.and_then(|consumer| client.offsets().position(consumer, topic, partition));
            let (offset, leader_epoch) = position.unwrap_or((OFFSET_INVALID, -1));
            (element.err, element.offset) = (code::NO_ERROR, offset);
            element.set_leader_epoch(leader_epoch);
        }
        code::NO_ERROR
    }
);

export!(
    #[on(rkt, code::_FATAL)]
    fn rd_kafka_seek(rkt: Ref<Topic>, partition: i32, offset: i64, timeout_ms: c_int) -> RespErr {
        let Some(topic) = rkt.get() else { return code::_INVALID_ARG };
        let Some(consumer) = topic.client().consumer() else { return code::_STATE };
        match seek(topic.client(), consumer, (topic.name(), partition), offset, &KnownEpochs::new()) {
            // A call that does not wait does not learn that the partition is not consumed, or what is wrong with the offset.
            code::_STATE if timeout_ms == 0 => code::NO_ERROR,
            code::_INVALID_ARG if timeout_ms == 0 && offset == OFFSET_STORED => code::NO_ERROR,
            code => code,
        }
    }
);

fn seek(
    client: &Client,
    consumer: &Consumer,
    (topic, partition): (&str, i32),
    offset: i64,
    epochs: &KnownEpochs,
) -> RespErr {
    // That the partition is not consumed comes before what is wrong with the offset.
    let invalid = || {
        let assigned = consumer.assignment();
        let is_assigned = assigned.iter().any(|key| *key.topic == *topic && key.partition == partition);
        if is_assigned { code::_INVALID_ARG } else { code::_STATE }
    };
    // The committed offset is where an assignment begins, not a position to seek to.
    if offset == OFFSET_STORED {
        return invalid();
    }
    // Other special offsets are for the broker to understand: -3 is that of the record with the largest timestamp.
    let from = offset_spec(offset).unwrap_or(Offset::Timestamp(offset));
    // From here on, nothing of the old position reaches the application: there is nothing to wait for. The offset of a
    // logical position is found out later, because no leader may be known at the moment.
    match consumer.seek_and_forget(topic, partition, from, epochs) {
        Ok(()) => {
            client.offsets().forget(topic, partition);
            client.offsets().forget_position(topic, partition);
            code::NO_ERROR
        }
        Err(error) => match code_of(&error) {
            code::_INVALID_ARG => invalid(),
            code => code,
        },
    }
}

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_seek_partitions(
        rk: Ref<Client>,
        partitions: PartMut<List>,
        timeout_ms: c_int,
    ) -> *mut ErrorObject {
        ErrorObject::from_result(match (consumer_of(rk), List::passed_mut(partitions)) {
            (Err(code::_UNKNOWN_GROUP), _) => {
                Err(ErrorObject::new(code::_INVALID_ARG, "this is not a consumer"))
            }
            (Err(code), _) => Err(ErrorObject::new(code, "this is not a client that runs")),
            (_, None) => Err(ErrorObject::new(code::_INVALID_ARG, "no partitions were given")),
            (Ok(_), Some(list)) if list.elements().is_empty() => {
                Err(ErrorObject::new(code::_INVALID_ARG, "the list of partitions is empty"))
            }
            (Ok((client, consumer)), Some(list)) => {
                client.logging().note_partitions(c"SEEK", "Seeking", list.elements());
                let epochs = epochs(list.elements());
                for element in list.elements_mut() {
                    let partition = (element.name(), element.partition);
                    let result = seek(client, consumer, partition, element.offset, &epochs);
                    // A call that does not wait has no results yet.
                    element.err = if timeout_ms == 0 { code::_IN_PROGRESS } else { result };
                }
                Ok(())
            }
        })
    }
);
