//! Creating and deleting topics, and adding partitions to them.
//!
//! # Pitfalls
//!
//! - Apache Kafka returns authorized operations for the name of a topic that does not exist. librdkafka does not return
//!   them to its callers (`describe.c`).

use std::{
    borrow::Cow,
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla_core::{admin::topics::TopicResults, error::Error};

use super::{
    call::{Listed, Outcome, call, code_in_result, common_failure, error_text, found, objects},
    options::AdminOptions,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Buffer, Handles, Numbers, Part, Place, Ref, RefMut, Text},
        boundary::{Handle, Tag, c_text},
        codes::{RespErr, code},
        destroyers, export, getters,
    },
};

/// `RD_KAFKA_EVENT_CREATETOPICS_RESULT`.
pub(super) const CREATED: c_int = 100;
/// `RD_KAFKA_EVENT_DELETETOPICS_RESULT`.
pub(super) const DELETED: c_int = 101;
/// `RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT`.
pub(super) const EXTENDED: c_int = 102;

/// The maximum number of partitions and brokers that can be named.
const MOST_PARTITIONS: c_int = 100_000;
const MOST_BROKERS: usize = 10_000;

/// `rd_kafka_NewTopic_t`.
#[repr(C)]
#[derive(Debug)]
pub struct NewTopic {
    tag: Tag,
    topic: ottla_core::admin::topics::NewTopic,
}

/// `rd_kafka_DeleteTopic_t`.
#[repr(C)]
#[derive(Debug)]
pub struct DeleteTopic {
    tag: Tag,
    name: String,
}

/// `rd_kafka_NewPartitions_t`.
#[repr(C)]
#[derive(Debug)]
pub struct NewPartitions {
    tag: Tag,
    partitions: ottla_core::admin::topics::NewPartitions,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for NewTopic {
    const KIND: u32 = 0x6f74_4102;
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for DeleteTopic {
    const KIND: u32 = 0x6f74_4103;
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for NewPartitions {
    const KIND: u32 = 0x6f74_4104;
}

/// `rd_kafka_topic_result_t`.
#[derive(Debug)]
pub struct TopicResult {
    name: CString,
    code: RespErr,
    error: CString,
}

impl TopicResult {
    fn new(name: &str, error: Option<&Error>) -> Self {
        let code = error.map_or(code::NO_ERROR, code_in_result);
        Self { name: c_text(name), code, error: error_text(error) }
    }
}

fn outcome(results: Result<TopicResults, Error>) -> Outcome {
    let results = results.map_err(|error| Failure::of(&error))?;
    match common_failure(results.iter().map(|(_, result)| result.as_ref().err())) {
        Some(failure) => Err(failure),
        None => {
            let result =
                |(name, result): &(String, Result<(), Error>)| TopicResult::new(name, result.as_ref().err());
            found(Listed::new(results.iter().map(result)))
        }
    }
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_NewTopic_new(
        topic: Text,
        num_partitions: c_int,
        replication_factor: c_int,
        errstr: Buffer,
        errstr_size: usize,
    ) -> *mut NewTopic {
        let refuse = |reason: &str| {
            errstr.put(errstr_size, reason);
            ptr::null_mut()
        };
        let Some(name) = topic.get() else { return refuse("a topic has a name") };
        if !(-1..=MOST_PARTITIONS).contains(&num_partitions) {
            return refuse("num_partitions must be in 1 .. 100000, or -1 for the broker's default");
        }
        let factor = i16::try_from(replication_factor).unwrap_or(i16::MIN);
        if !(-1..=MOST_BROKERS as i16).contains(&factor) {
            return refuse("replication_factor must be in 1 .. 10000, or -1 for the broker's default");
        }
        let topic = ottla_core::admin::topics::NewTopic::new(name, num_partitions, factor);
        Box::into_raw(Box::new(NewTopic { tag: Tag::of::<NewTopic>(), topic }))
    }
);

destroyers! {
    rd_kafka_NewTopic_destroy(new_topic), rd_kafka_NewTopic_destroy_array(new_topics): NewTopic;
}

/// Returns the brokers of a partition, of which the first is the preferred leader.
fn brokers(ids: Numbers<'_>, count: usize) -> Result<Vec<i32>, String> {
    if count > MOST_BROKERS {
        return Err(format!("{count} replicas; at most {MOST_BROKERS} can be named"));
    }
    match ids.get(count) {
        Some(ids) if !ids.is_empty() => Ok(ids.to_vec()),
        _ => Err("a partition has at least one replica".to_owned()),
    }
}

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_NewTopic_set_replica_assignment(
        new_topic: RefMut<NewTopic>,
        partition: i32,
        broker_ids: Numbers,
        broker_id_cnt: usize,
        errstr: Buffer,
        errstr_size: usize,
    ) -> RespErr {
        let refuse = |reason: &str| {
            errstr.put(errstr_size, reason);
            code::_INVALID_ARG
        };
        let Some(NewTopic { topic, .. }) = new_topic.get() else { return refuse("this is not a new topic") };
        if topic.replication_factor != -1 {
            return refuse("set the replication factor to -1 to assign replicas");
        }
        let next = i32::try_from(topic.assignments.len()).unwrap_or(i32::MAX);
        if partition != next || topic.partitions >= 0 && partition >= topic.partitions {
            return refuse(&format!(
                "assign replicas in the order of the partitions: {next} is next, not {partition}"
            ));
        }
        match brokers(broker_ids, broker_id_cnt) {
            Err(reason) => refuse(&reason),
            Ok(brokers) => {
                topic.assignments.insert(partition, brokers);
                code::NO_ERROR
            }
        }
    }
);

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_NewTopic_set_config(new_topic: RefMut<NewTopic>, name: Text, value: Text) -> RespErr {
        match (new_topic.get(), name.get()) {
            // The broker's response says what is wrong with a property without a value.
            (Some(new_topic), Some(name)) => {
                let value = value.get().map(Cow::into_owned);
                new_topic.topic.configs.push((name.into_owned(), value));
                code::NO_ERROR
            }
            _ => code::_INVALID_ARG,
        }
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_CreateTopics(
        rk: Ref<Client>,
        new_topics: Handles<NewTopic>,
        new_topic_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, CREATED, |admin, options| {
            let topics = objects(new_topics, new_topic_cnt, "topics to create")?;
            for NewTopic { topic, .. } in &topics {
                let (assigned, requested) = (topic.assignments.len(), usize::try_from(topic.partitions));
                if assigned > 0 && requested.is_ok_and(|requested| requested != assigned) {
                    return Err(Failure::misuse(format!(
                        "{}: replicas of {assigned} partitions are assigned, but the topic gets {} partitions",
                        topic.name, topic.partitions
                    )));
                }
            }
            let topics: Vec<_> = topics.iter().map(|topic| topic.topic.clone()).collect();
            let asked = admin.create_topics_with(&topics, options);
            let asked = asked.map_err(|error| Failure::of(&error))?;
            Ok(async move { outcome(asked.await) })
        });
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_DeleteTopic_new(topic: Text) -> *mut DeleteTopic {
        topic.get().map_or(ptr::null_mut(), |name| {
            let name = name.into_owned();
            Box::into_raw(Box::new(DeleteTopic { tag: Tag::of::<DeleteTopic>(), name }))
        })
    }
);

destroyers! {
    rd_kafka_DeleteTopic_destroy(del_topic), rd_kafka_DeleteTopic_destroy_array(del_topics): DeleteTopic;
}

export!(
    #[on(rk, ())]
    fn rd_kafka_DeleteTopics(
        rk: Ref<Client>,
        del_topics: Handles<DeleteTopic>,
        del_topic_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DELETED, |admin, options| {
            let topics = objects(del_topics, del_topic_cnt, "topics to delete")?;
            let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
            let asked = admin.delete_topics_with(&names, options);
            let asked = asked.map_err(|error| Failure::of(&error))?;
            Ok(async move { outcome(asked.await) })
        });
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_NewPartitions_new(
        topic: Text,
        new_total_cnt: usize,
        errstr: Buffer,
        errstr_size: usize,
    ) -> *mut NewPartitions {
        let count = c_int::try_from(new_total_cnt).unwrap_or(c_int::MAX);
        match topic.get() {
            Some(name) if !name.is_empty() && (1..=MOST_PARTITIONS).contains(&count) => {
                let partitions = ottla_core::admin::topics::NewPartitions::new(name, count);
                Box::into_raw(Box::new(NewPartitions { tag: Tag::of::<NewPartitions>(), partitions }))
            }
            _ => {
                errstr.put(errstr_size, "pass a topic name and 1 .. 100000 partitions");
                ptr::null_mut()
            }
        }
    }
);

destroyers! {
    rd_kafka_NewPartitions_destroy(new_parts), rd_kafka_NewPartitions_destroy_array(new_parts): NewPartitions;
}

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_NewPartitions_set_replica_assignment(
        new_parts: RefMut<NewPartitions>,
        new_partition_idx: i32,
        broker_ids: Numbers,
        broker_id_cnt: usize,
        errstr: Buffer,
        errstr_size: usize,
    ) -> RespErr {
        let refuse = |reason: &str| {
            errstr.put(errstr_size, reason);
            code::_INVALID_ARG
        };
        let Some(NewPartitions { partitions, .. }) = new_parts.get() else {
            return refuse("these are not new partitions");
        };
        let next = i32::try_from(partitions.assignments.len()).unwrap_or(i32::MAX);
        if new_partition_idx != next || next >= partitions.count {
            return refuse(&format!(
                "replicas are assigned to one new partition after the other: {next} comes next, not \
                 {new_partition_idx}"
            ));
        }
        match brokers(broker_ids, broker_id_cnt) {
            Err(reason) => refuse(&reason),
            Ok(brokers) => {
                partitions.assignments.push(brokers);
                code::NO_ERROR
            }
        }
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_CreatePartitions(
        rk: Ref<Client>,
        new_parts: Handles<NewPartitions>,
        new_parts_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, EXTENDED, |admin, options| {
            let topics = objects(new_parts, new_parts_cnt, "topics that get more partitions")?;
            let topics: Vec<_> = topics.iter().map(|topic| topic.partitions.clone()).collect();
            let asked = admin.create_partitions_with(&topics, options);
            let asked = asked.map_err(|error| Failure::of(&error))?;
            Ok(async move { outcome(asked.await) })
        });
    }
);

/// Returns the topics of a result.
fn topics_of(event: Ref<Event>, kind: c_int, cntp: Place<usize>) -> *const *const TopicResult {
    let event = event.get().filter(|event| event.kind == kind);
    Listed::show(event.and_then(Event::result::<Listed<TopicResult>>), cntp)
}

/// Declares the functions that return the topics of a result.
macro_rules! result_topics {
    ($($name:ident: $kind:expr;)*) => {$(
        export!(
            #[local(ptr::null())]
            fn $name(result: Ref<Event>, cntp: Place<usize>) -> *const *const TopicResult {
                topics_of(result, $kind, cntp)
            }
        );
    )*};
}

result_topics! {
    rd_kafka_CreateTopics_result_topics: CREATED;
    rd_kafka_DeleteTopics_result_topics: DELETED;
    rd_kafka_CreatePartitions_result_topics: EXTENDED;
}

getters! {
    fn rd_kafka_topic_result_error(topicres: Part<TopicResult>) -> RespErr { code::_INVALID_ARG; topicres.code }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_topic_result_error_string(topicres: Part<TopicResult>) -> *const c_char {
        match topicres.get() {
            Some(result) if result.code != code::NO_ERROR => result.error.as_ptr(),
            _ => ptr::null(),
        }
    }
);

getters! {
    fn rd_kafka_topic_result_name(topicres: Part<TopicResult>) -> *const c_char {
        ptr::null(); topicres.name.as_ptr()
    }
}
