//! The first and last offset of partitions, and the offset at a timestamp.
//!
//! # Pitfalls
//!
//! - An application that takes many records at once may not call the library for minutes. The cluster actor's timer
//!   commits the offsets that are due (`autocommit.c`).

use std::{ffi::c_int, ptr};

use ottla_core::{
    error::{Error, ErrorKind},
    offsets::list_offsets::{ListedOffset, OffsetSpec},
};
use ottla_protocol::vocabulary::LeaderEpoch;
use ottla_sorted::SortedSet;

use super::{
    call::{Listed, Outcome, call, code_in_result, common_failure, found, require_leader},
    options::AdminOptions,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Part, Place, Ref},
        codes::code,
        export, getters,
        list::{self, List, rd_kafka_topic_partition_destroy, rd_kafka_topic_partition_set_leader_epoch},
        types::{OFFSET_END, OFFSET_INVALID, rd_kafka_topic_partition_t},
    },
};

/// `RD_KAFKA_EVENT_LISTOFFSETS_RESULT`.
pub(super) const LISTED: c_int = 1 << 22;

/// `rd_kafka_ListOffsetsResultInfo_t`.
#[derive(Debug)]
pub struct ListedInfo {
    partition: *mut rd_kafka_topic_partition_t,
    timestamp: i64,
}

// SAFETY: the info has the only pointer to it.
unsafe impl Send for ListedInfo {}
// SAFETY: the list is not changed through shared references.
unsafe impl Sync for ListedInfo {}

impl ListedInfo {
    fn new(topic: &str, partition: i32, result: &Result<ListedOffset, Error>) -> Self {
        let (offset, code) = match result {
            Ok(listed) => (listed.offset.unwrap_or(OFFSET_END), code::NO_ERROR),
            // Leaders are looked up in metadata: no broker was asked about a missing partition.
            Err(error) if error.kind() == ErrorKind::UnknownPartition => {
                (OFFSET_INVALID, code::_UNKNOWN_PARTITION)
            }
            Err(error) => (OFFSET_INVALID, code_in_result(error)),
        };
        let element = list::alone(topic, partition, offset, code);
        let (epoch, timestamp) =
            result.as_ref().map_or((None, None), |listed| (listed.leader_epoch, listed.timestamp));
        // SAFETY: the element was just created, or is NULL.
        unsafe { rd_kafka_topic_partition_set_leader_epoch(element, LeaderEpoch::to_wire(epoch)) };
        Self { partition: element, timestamp: timestamp.unwrap_or(-1) }
    }
}

impl Drop for ListedInfo {
    fn drop(&mut self) {
        // SAFETY: the info has the only pointer to it.
        unsafe { rd_kafka_topic_partition_destroy(self.partition) };
    }
}

type Question = (String, i32, OffsetSpec);

/// Returns the queries of a list: each element's offset is a `RD_KAFKA_OFFSET_SPEC_*` or a timestamp.
fn questions(list: &List) -> Result<Vec<Question>, Failure> {
    let mut seen = SortedSet::new();
    let question = |element: &rd_kafka_topic_partition_t| {
        let (name, partition) = (element.name().to_owned(), element.partition);
        if name.is_empty() || partition < 0 {
            return Err(Failure::misuse(format!("`{name}` [{partition}] is not a valid partition")));
        }
        if !seen.insert((name.clone(), partition)) {
            return Err(Failure::misuse(format!("{name} [{partition}] is named twice")));
        }
        let spec = match element.offset {
            -1 => OffsetSpec::Latest,
            -2 => OffsetSpec::Earliest,
            -3 => OffsetSpec::MaxTimestamp,
            timestamp if timestamp >= 0 => OffsetSpec::Timestamp(timestamp),
            other => {
                return Err(Failure::misuse(format!(
                    "{other} is neither a timestamp nor an RD_KAFKA_OFFSET_SPEC value"
                )));
            }
        };
        Ok((name, partition, spec))
    };
    list.elements().iter().map(question).collect()
}

fn outcome(asked: &[Question], results: Result<Vec<Result<ListedOffset, Error>>, Error>) -> Outcome {
    let results = results.map_err(|error| Failure::of(&error))?;
    if let Some(failure) = common_failure(results.iter().map(|result| result.as_ref().err())) {
        return Err(failure);
    }
    if !results.is_empty() {
        require_leader(&results)?;
    }
    let infos = asked.iter().zip(&results);
    let infos = infos.map(|((name, partition, _), result)| ListedInfo::new(name, *partition, result));
    found(Listed::new(infos))
}

export!(
    #[on(rk, ())]
    fn rd_kafka_ListOffsets(
        rk: Ref<Client>,
        topic_partitions: Part<List>,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, LISTED, |admin, options| {
            let list =
                List::passed(topic_partitions).ok_or_else(|| Failure::misuse("no list of partitions"))?;
            let asked = questions(list)?;
            let named: Vec<_> =
                asked.iter().map(|(name, partition, spec)| (name.as_str(), *partition, *spec)).collect();
            // An empty list has an empty result.
            let results = (!named.is_empty()).then(|| admin.list_offsets_with(&named, options));
            let results = results.transpose().map_err(|error| Failure::of(&error))?;
            Ok(async move {
                match results {
                    Some(results) => outcome(&asked, results.await),
                    None => outcome(&asked, Ok(Vec::new())),
                }
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ListOffsets_result_infos(result: Ref<Event>, cntp: Place<usize>) -> *const *const ListedInfo {
        Listed::show(result.get().and_then(Event::result::<Listed<ListedInfo>>), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ListOffsetsResultInfo_topic_partition(
        result_info: Part<ListedInfo>,
    ) -> *const rd_kafka_topic_partition_t {
        result_info.get().map_or(ptr::null(), |info| info.partition.cast_const())
    }
);

getters! {
    fn rd_kafka_ListOffsetsResultInfo_timestamp(result_info: Part<ListedInfo>) -> i64 { -1; result_info.timestamp }
}
