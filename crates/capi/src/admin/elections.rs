//! Elections of partition leaders.

use std::{ffi::c_int, ptr};

use ottla::admin::{Election, ElectionType};
use ottla_core::error::{Error, ErrorKind};
use ottla_protocol::{error_code::ErrorCode, vocabulary::TopicPartition};

use super::{
    call::{Listed, call, code_in_result, found},
    options::AdminOptions,
    records::ShownList,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Given, Part, Place, Ref},
        boundary::{Handle, Tag},
        codes::code,
        error::ErrorObject,
        export, getters,
        list::{Element, List},
    },
};

/// `RD_KAFKA_EVENT_ELECTLEADERS_RESULT`.
pub(super) const ELECTED: c_int = 1 << 23;

/// `rd_kafka_ElectLeaders_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ElectLeaders {
    tag: Tag,
    election: c_int,
    /// `None` for all partitions.
    partitions: Option<Vec<(String, i32)>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for ElectLeaders {
    const KIND: u32 = 0x6f74_410d;
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_ElectLeaders_new(election_type: c_int, partitions: Part<List>) -> *mut ElectLeaders {
        if List::is_gone(partitions) {
            return ptr::null_mut();
        }
        let partitions = List::passed(partitions).map(|list| {
            list.elements().iter().map(|element| (element.name().to_owned(), element.partition)).collect()
        });
        let tag = Tag::of::<ElectLeaders>();
        Box::into_raw(Box::new(ElectLeaders { tag, election: election_type, partitions }))
    }
);

export!(
    #[local(())]
    fn rd_kafka_ElectLeaders_destroy(elect_leaders: Given<ElectLeaders>) {
        elect_leaders.retire();
    }
);

/// `rd_kafka_topic_partition_result_t`.
#[derive(Debug)]
pub struct PartitionResult {
    /// A list of one element.
    list: ShownList,
    error: ErrorObject,
}

// SAFETY: the list is not changed.
unsafe impl Sync for PartitionResult {}

impl PartitionResult {
    fn new(key: &TopicPartition, result: &Result<Election, Error>) -> Self {
        let error = match result {
            Ok(Election::Elected) => ErrorObject::new(code::NO_ERROR, "Success"),
            // Here this is an error, as the brokers report it.
            Ok(Election::NotNeeded) => {
                let error = Error::new(ErrorKind::Broker(ErrorCode::ELECTION_NOT_NEEDED), "");
                ErrorObject::new(code_in_result(&error), error.to_string())
            }
            Err(error) => ErrorObject::new(code_in_result(error), error.to_string()),
        };
        let list = ShownList(List::with_capacity(1));
        // SAFETY: the list was just created, or is NULL.
        if let Some(list) = unsafe { list.0.as_mut() } {
            let element = list.add(key.topic.as_bytes(), key.partition);
            // SAFETY: the element was just added, or is NULL.
            if let Some(element) = unsafe { element.as_mut() } {
                // A result has no offset, for which the interface has 0 here.
                (element.offset, element.err) = (0, error.code());
            }
        }
        Self { list, error }
    }

    fn element(&self) -> *const Element {
        // SAFETY: the list lives as long as the result, or is NULL.
        unsafe { self.list.0.as_ref() }.map_or(ptr::null(), |list| list.elements().as_ptr())
    }
}

getters! {
    fn rd_kafka_topic_partition_result_partition(partition_result: Part<PartitionResult>) -> *const Element {
        ptr::null(); partition_result.element()
    }
    fn rd_kafka_topic_partition_result_error(partition_result: Part<PartitionResult>) -> *const ErrorObject {
        ptr::null(); ptr::from_ref(&partition_result.error)
    }
}

export!(
    #[on(rk, ())]
    fn rd_kafka_ElectLeaders(
        rk: Ref<Client>,
        elect_leaders: Ref<ElectLeaders>,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, ELECTED, |admin, options| {
            let requested = elect_leaders.get().ok_or_else(|| Failure::misuse("there is no election"))?;
            let election = match requested.election {
                0 => ElectionType::Preferred,
                1 => ElectionType::Unclean,
                other => return Err(Failure::misuse(format!("Invalid election type {other}"))),
            };
            let partitions: Option<Vec<(&str, i32)>> = requested
                .partitions
                .as_ref()
                .map(|all| all.iter().map(|(topic, partition)| (topic.as_str(), *partition)).collect());
            if let Some(partitions) = &partitions {
                let mut sorted = partitions.clone();
                sorted.sort_unstable();
                sorted.dedup();
                if sorted.len() < partitions.len() {
                    return Err(Failure::misuse("Duplicate partitions specified"));
                }
            }
            let elected = admin.elect_leaders_async(election, partitions.as_deref(), *options);
            Ok(async move {
                let results = elected.await.map_err(|error| Failure::of(&error))?;
                found(Listed::new(results.iter().map(|(key, result)| PartitionResult::new(key, result))))
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ElectLeaders_result_partitions(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const PartitionResult {
        Listed::show(result.get().and_then(Event::result::<Listed<PartitionResult>>), cntp)
    }
);
