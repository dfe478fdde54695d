//! Deleting the oldest records of partitions.

use std::{collections::BTreeSet, ffi::c_int, ptr};

use ottla::Error;

use super::{
    AdminOptions, Answer, Failure, Outcome, call, code_in_result, common_failure, destroy, each, objects,
};
use crate::{
    boundary::{Handle, Tag, guarded_local, handle},
    client::Client,
    codes::code,
    event::Event,
    list::{List, rd_kafka_topic_partition_list_destroy},
    queue::Queue,
    types::OFFSET_INVALID,
};

/// `RD_KAFKA_EVENT_DELETERECORDS_RESULT`.
pub(super) const DELETED: c_int = 105;

/// `rd_kafka_DeleteRecords_t`.
#[repr(C)]
#[derive(Debug)]
pub struct DeleteRecords {
    tag: Tag,
    partitions: Vec<(String, i32, i64)>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for DeleteRecords {
    const KIND: u32 = 0x6f74_4107;
}

/// A list that an event shows.
#[derive(Debug)]
pub(crate) struct ShownList(*mut List);

// SAFETY: the event has the only pointer.
unsafe impl Send for ShownList {}

impl Drop for ShownList {
    fn drop(&mut self) {
        // SAFETY: the event has the only pointer.
        unsafe { rd_kafka_topic_partition_list_destroy(self.0) };
    }
}

fn outcome(asked: &[(String, i32, i64)], answers: Result<Vec<Result<i64, Error>>, Error>) -> Outcome {
    let answers = answers.map_err(|error| Failure::of(&error))?;
    if let Some(failure) = common_failure(answers.iter().map(|answer| answer.as_ref().err())) {
        return Err(failure);
    }
    let list = ShownList(List::with_capacity(answers.len()));
    // SAFETY: the list was just made, or is NULL.
    if let Some(list) = unsafe { list.0.as_mut() } {
        for ((topic, partition, _), answer) in asked.iter().zip(&answers) {
            let element = list.add(topic.as_bytes(), *partition);
            // SAFETY: the element was just added, or is NULL.
            if let Some(element) = unsafe { element.as_mut() } {
                (element.offset, element.err) = match answer {
                    Ok(low) => (*low, code::NO_ERROR),
                    Err(error) => (OFFSET_INVALID, code_in_result(error)),
                };
            }
        }
    }
    Ok(Answer::Records(list))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DeleteRecords_new(before_offsets: *const List) -> *mut DeleteRecords {
    guarded_local(ptr::null_mut(), || {
        // SAFETY: NULL or a list, says the caller.
        let Some(list) = (unsafe { List::of(before_offsets) }) else { return ptr::null_mut() };
        let partitions = list.elements().iter();
        let partitions = partitions
            .map(|element| (element.name().to_owned(), element.partition, element.offset))
            .collect();
        Box::into_raw(Box::new(DeleteRecords { tag: Tag::of::<DeleteRecords>(), partitions }))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DeleteRecords_destroy(del_records: *mut DeleteRecords) {
    // SAFETY: NULL or records to delete, says the caller, who gives them up.
    unsafe { destroy(del_records) };
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DeleteRecords_destroy_array(
    del_records: *const *mut DeleteRecords,
    count: usize,
) {
    // SAFETY: NULL or an array of that size, says the caller.
    unsafe { each(del_records, count, |records| rd_kafka_DeleteRecords_destroy(records)) };
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DeleteRecords(
    rk: *const Client,
    del_records: *const *const DeleteRecords,
    del_record_cnt: usize,
    options: *const AdminOptions,
    rkqu: *const Queue,
) {
    // SAFETY: as the caller says.
    unsafe {
        call(rk, options, rkqu, DELETED, |admin, options| {
            let records = objects(del_records, del_record_cnt, "lists of records to delete")?;
            let [records] = &records[..] else {
                return Err(Failure::misuse("one list of records to delete is taken in a call"));
            };
            let partitions = records.partitions.clone();
            let named: BTreeSet<_> =
                partitions.iter().map(|(topic, partition, _)| (topic, partition)).collect();
            if partitions.is_empty() || named.len() < partitions.len() {
                return Err(Failure::misuse("there is at least one partition, and none is named twice"));
            }
            let wanted: Vec<_> = partitions
                .iter()
                .map(|(topic, partition, before)| (topic.as_str(), *partition, *before))
                .collect();
            let asked = admin.delete_records_with(&wanted, options);
            let asked = asked.map_err(|error| Failure::of(&error))?;
            Ok(async move { outcome(&partitions, asked.await) })
        });
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_DeleteRecords_result_offsets(result: *const Event) -> *const List {
    // SAFETY: NULL or an event, says the caller.
    match unsafe { handle(result) }.and_then(Event::answer) {
        Some(Answer::Records(list)) => list.0.cast_const(),
        _ => ptr::null(),
    }
}
