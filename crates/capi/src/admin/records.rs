//! Deleting the oldest records of partitions.

use std::{ffi::c_int, ptr};

use ottla_core::error::{Error, ErrorKind};
use ottla_sorted::SortedSet;

use super::{
    call::{Outcome, call, code_in_result, common_failure, found, objects, require_leader},
    options::AdminOptions,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Handles, Part, Ref},
        boundary::{Handle, Tag},
        codes::code,
        destroyers, export,
        list::{List, rd_kafka_topic_partition_list_destroy},
        types::OFFSET_END,
    },
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

/// A list that belongs to an event.
#[derive(Debug)]
pub struct ShownList(pub(super) *mut List);

// SAFETY: the event has the only pointer to the list.
unsafe impl Send for ShownList {}

impl Drop for ShownList {
    fn drop(&mut self) {
        // SAFETY: the event has the only pointer to the list.
        unsafe { rd_kafka_topic_partition_list_destroy(self.0) };
    }
}

fn outcome(asked: &[(String, i32, i64)], results: Result<Vec<Result<i64, Error>>, Error>) -> Outcome {
    let results = results.map_err(|error| Failure::of(&error))?;
    if let Some(failure) = common_failure(results.iter().map(|result| result.as_ref().err())) {
        return Err(failure);
    }
    require_leader(&results)?;
    let list = ShownList(List::with_capacity(results.len()));
    // SAFETY: the list was just created, or is NULL.
    if let Some(list) = unsafe { list.0.as_mut() } {
        for ((topic, partition, before), result) in asked.iter().zip(&results) {
            let element = list.add(topic.as_bytes(), *partition);
            // SAFETY: the element was just added, or is NULL.
            if let Some(element) = unsafe { element.as_mut() } {
                (element.offset, element.err) = match result {
                    Ok(low) => (*low, code::NO_ERROR),
                    // Leaders are looked up in metadata: no broker was asked, and the requested offset stays.
                    Err(error) if error.kind() == ErrorKind::UnknownPartition => {
                        (*before, code::_UNKNOWN_PARTITION)
                    }
                    Err(error) if error.kind() == ErrorKind::UnknownTopic => (*before, code_in_result(error)),
                    // A broker that refuses a partition returns -1 for its low watermark.
                    Err(error) => (OFFSET_END, code_in_result(error)),
                };
            }
        }
    }
    found(list)
}

/// Adds the results of partitions with negative numbers, for which no broker was asked.
fn with_missing(asked: &[(String, i32, i64)], results: Vec<Result<i64, Error>>) -> Vec<Result<i64, Error>> {
    let mut results = results.into_iter();
    let missing = || Err(Error::new(ErrorKind::UnknownPartition, "partitions have no negative numbers"));
    let result_of = |(_, partition, _): &(String, i32, i64)| match *partition >= 0 {
        true => results.next().unwrap_or_else(missing),
        false => missing(),
    };
    asked.iter().map(result_of).collect()
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_DeleteRecords_new(before_offsets: Part<List>) -> *mut DeleteRecords {
        let Some(list) = List::passed(before_offsets) else { return ptr::null_mut() };
        let partitions = list.elements().iter();
        let partitions = partitions
            .map(|element| (element.name().to_owned(), element.partition, element.offset))
            .collect();
        Box::into_raw(Box::new(DeleteRecords { tag: Tag::of::<DeleteRecords>(), partitions }))
    }
);

destroyers! {
    rd_kafka_DeleteRecords_destroy(del_records), rd_kafka_DeleteRecords_destroy_array(del_records): DeleteRecords;
}

export!(
    #[on(rk, ())]
    fn rd_kafka_DeleteRecords(
        rk: Ref<Client>,
        del_records: Handles<DeleteRecords>,
        del_record_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DELETED, |admin, options| {
            let records = objects(del_records, del_record_cnt, "lists of records to delete")?;
            let [records] = &records[..] else {
                return Err(Failure::misuse("a call takes exactly one list of records to delete"));
            };
            let partitions = records.partitions.clone();
            let named: SortedSet<_> =
                partitions.iter().map(|(topic, partition, _)| (topic, partition)).collect();
            if partitions.is_empty() || named.len() < partitions.len() {
                return Err(Failure::misuse("the list is empty or names a partition twice"));
            }
            // One partition that can't exist does not refuse the call for the others.
            let requested: Vec<_> = partitions
                .iter()
                .filter(|(_, partition, _)| *partition >= 0)
                .map(|(topic, partition, before)| (topic.as_str(), *partition, *before))
                .collect();
            let asked = match requested.is_empty() {
                true => None,
                false => {
                    let asked = admin.delete_records_with(&requested, options);
                    Some(asked.map_err(|error| Failure::of(&error))?)
                }
            };
            Ok(async move {
                let results = match asked {
                    Some(asked) => asked.await,
                    None => Ok(Vec::new()),
                };
                outcome(&partitions, results.map(|results| with_missing(&partitions, results)))
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DeleteRecords_result_offsets(result: Ref<Event>) -> *const List {
        let list = result.get().and_then(Event::result::<ShownList>);
        list.map_or(ptr::null(), |list| list.0.cast_const())
    }
);
