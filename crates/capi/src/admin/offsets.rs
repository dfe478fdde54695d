//! The first offset of partitions, the last, or that of a time.

use std::{collections::BTreeSet, ffi::c_int, ptr};

use ottla::{Error, ListedOffset, OffsetSpec};

use super::{AdminOptions, Answer, Failure, Listed, Outcome, call, code_in_result, common_failure};
use crate::{
    boundary::handle,
    client::Client,
    codes::code,
    event::Event,
    list::{self, List, rd_kafka_topic_partition_destroy, rd_kafka_topic_partition_set_leader_epoch},
    queue::Queue,
    types::{OFFSET_INVALID, rd_kafka_topic_partition_t},
};

/// `RD_KAFKA_EVENT_LISTOFFSETS_RESULT`.
pub(super) const LISTED: c_int = 1 << 22;

/// `rd_kafka_ListOffsetsResultInfo_t`.
#[derive(Debug)]
pub struct ListedInfo {
    partition: *mut rd_kafka_topic_partition_t,
    timestamp: i64,
}

// SAFETY: the info has the only pointer.
unsafe impl Send for ListedInfo {}
// SAFETY: nothing is changed behind it.
unsafe impl Sync for ListedInfo {}

impl ListedInfo {
    fn new(topic: &str, partition: i32, answer: &Result<ListedOffset, Error>) -> Self {
        let (offset, code) = match answer {
            Ok(listed) => (listed.offset, code::NO_ERROR),
            Err(error) => (OFFSET_INVALID, code_in_result(error)),
        };
        let element = list::alone(topic, partition, offset, code);
        let (epoch, timestamp) =
            answer.as_ref().map_or((-1, -1), |listed| (listed.leader_epoch, listed.timestamp));
        // SAFETY: the element was just made, or is NULL.
        unsafe { rd_kafka_topic_partition_set_leader_epoch(element, epoch) };
        Self { partition: element, timestamp }
    }
}

impl Drop for ListedInfo {
    fn drop(&mut self) {
        // SAFETY: the info has the only pointer.
        unsafe { rd_kafka_topic_partition_destroy(self.partition) };
    }
}

type Question = (String, i32, OffsetSpec);

/// What a list asks: each element's offset is a `RD_KAFKA_OFFSET_SPEC_*` or a timestamp.
fn questions(list: &List) -> Result<Vec<Question>, Failure> {
    if list.elements().is_empty() {
        return Err(Failure::misuse("no partitions: at least one is needed"));
    }
    let mut seen = BTreeSet::new();
    let question = |element: &rd_kafka_topic_partition_t| {
        let (name, partition) = (element.name().to_owned(), element.partition);
        if name.is_empty() || partition < 0 {
            return Err(Failure::misuse(format!("`{name}` [{partition}] is no partition")));
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
                    "{other} is neither a timestamp nor an offset to ask for"
                )));
            }
        };
        Ok((name, partition, spec))
    };
    list.elements().iter().map(question).collect()
}

fn outcome(asked: &[Question], answers: Result<Vec<Result<ListedOffset, Error>>, Error>) -> Outcome {
    let answers = answers.map_err(|error| Failure::of(&error))?;
    if let Some(failure) = common_failure(answers.iter().map(|answer| answer.as_ref().err())) {
        return Err(failure);
    }
    let infos = asked.iter().zip(&answers);
    let infos = infos.map(|((name, partition, _), answer)| ListedInfo::new(name, *partition, answer));
    Ok(Answer::Offsets(Listed::new(infos)))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_ListOffsets(
    rk: *const Client,
    topic_partitions: *const List,
    options: *const AdminOptions,
    rkqu: *const Queue,
) {
    // SAFETY: as the caller says.
    unsafe {
        call(rk, options, rkqu, LISTED, |admin, options| {
            let list = List::of(topic_partitions).ok_or_else(|| Failure::misuse("no list of partitions"))?;
            let asked = questions(list)?;
            let named: Vec<_> =
                asked.iter().map(|(name, partition, spec)| (name.as_str(), *partition, *spec)).collect();
            let answers = admin.list_offsets_with(&named, options);
            let answers = answers.map_err(|error| Failure::of(&error))?;
            Ok(async move { outcome(&asked, answers.await) })
        });
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_ListOffsets_result_infos(
    result: *const Event,
    cntp: *mut usize,
) -> *const *const ListedInfo {
    // SAFETY: NULL or an event, and a writable place or NULL, says the caller.
    unsafe {
        let infos = match handle(result).and_then(Event::answer) {
            Some(Answer::Offsets(infos)) => Some(infos),
            _ => None,
        };
        Listed::show(infos, cntp)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_ListOffsetsResultInfo_topic_partition(
    result_info: *const ListedInfo,
) -> *const rd_kafka_topic_partition_t {
    // SAFETY: NULL or an info, says the caller.
    unsafe { result_info.as_ref() }.map_or(ptr::null(), |info| info.partition.cast_const())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_ListOffsetsResultInfo_timestamp(result_info: *const ListedInfo) -> i64 {
    // SAFETY: NULL or an info, says the caller.
    unsafe { result_info.as_ref() }.map_or(-1, |info| info.timestamp)
}
