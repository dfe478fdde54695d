//! Deleting groups, and listing, altering and deleting the committed offsets of a group.

use std::{
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla::{GroupOffset, PartitionResults};
use ottla_core::error::Error;
use ottla_protocol::vocabulary::LeaderEpoch;
use ottla_sorted::SortedSet;

use super::{
    call::{Listed, Outcome, call, code_in_result, found, objects},
    groups::check_groups,
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
        argument::{Handles, Part, Place, Ref, Text},
        boundary::{Handle, Tag, c_text},
        codes::{RespErr, code},
        destroyers,
        error::ErrorObject,
        export, getters,
        list::List,
        or_null,
        types::OFFSET_INVALID,
    },
};

/// `RD_KAFKA_EVENT_DELETEGROUPS_RESULT`.
pub(super) const DELETED: c_int = 106;
/// `RD_KAFKA_EVENT_DELETECONSUMERGROUPOFFSETS_RESULT`.
pub(super) const OFFSETS_DELETED: c_int = 107;
/// `RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT`.
pub(super) const OFFSETS_LISTED: c_int = 1 << 15;
/// `RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT`.
pub(super) const OFFSETS_ALTERED: c_int = 1 << 16;

/// `rd_kafka_DeleteGroup_t`.
#[repr(C)]
#[derive(Debug)]
pub struct DeleteGroup {
    tag: Tag,
    group: String,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for DeleteGroup {
    const KIND: u32 = 0x6f74_4108;
}

/// `rd_kafka_ListConsumerGroupOffsets_t`, `rd_kafka_AlterConsumerGroupOffsets_t`, `rd_kafka_DeleteConsumerGroupOffsets_t`.
#[repr(C)]
#[derive(Debug)]
pub struct GroupOffsets {
    tag: Tag,
    group: String,
    /// The partitions with the application's values; `None` for NULL.
    offsets: Option<Vec<GroupOffset>>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for GroupOffsets {
    const KIND: u32 = 0x6f74_4109;
}

/// `rd_kafka_group_result_t`.
#[derive(Debug)]
pub struct GroupResult {
    group: CString,
    error: Option<ErrorObject>,
    partitions: Option<ShownList>,
}

/// The results for the groups of a call.
type GroupResults = Listed<GroupResult>;

impl GroupResult {
    fn of_group(group: &str, result: Result<(), Error>) -> Self {
        let error = result.err().map(|error| ErrorObject::new(code_in_result(&error), error.to_string()));
        Self { group: c_text(group), error, partitions: None }
    }

    /// Sorts partitions, independently of the request's order, as librdkafka does for listed or altered offsets.
    fn of_sorted_offsets(group: &str, offsets: impl Iterator<Item = (GroupOffset, RespErr)>) -> Self {
        let mut offsets: Vec<_> = offsets.collect();
        offsets.sort_by(|(one, _), (other, _)| {
            (&one.topic, one.partition).cmp(&(&other.topic, other.partition))
        });
        Self::of_offsets(group, offsets.into_iter())
    }

    fn of_offsets(group: &str, offsets: impl ExactSizeIterator<Item = (GroupOffset, RespErr)>) -> Self {
        let list = ShownList(List::with_capacity(offsets.len()));
        // SAFETY: the list was just created, or is NULL.
        if let Some(list) = unsafe { list.0.as_mut() } {
            for (offset, err) in offsets {
                let element = list.add(offset.topic.as_bytes(), offset.partition);
                // SAFETY: the element was just added, or is NULL.
                if let Some(element) = unsafe { element.as_mut() } {
                    (element.offset, element.err) = (offset.offset, err);
                    element.set_leader_epoch(LeaderEpoch::to_wire(offset.leader_epoch));
                    element.set_metadata(offset.metadata.as_bytes());
                }
            }
        }
        Self { group: c_text(group), error: None, partitions: Some(list) }
    }
}

fn code_of_result<T>(result: &Result<T, Error>) -> RespErr {
    result.as_ref().err().map_or(code::NO_ERROR, code_in_result)
}

getters! {
    fn rd_kafka_group_result_error(result: Part<GroupResult>) -> *const ErrorObject {
        ptr::null(); or_null(result.error.as_ref())
    }
    fn rd_kafka_group_result_name(result: Part<GroupResult>) -> *const c_char { ptr::null(); result.group.as_ptr() }
    fn rd_kafka_group_result_partitions(result: Part<GroupResult>) -> *const List {
        ptr::null(); result.partitions.as_ref().map_or(ptr::null(), |list| list.0.cast_const())
    }
}

/// Declares the functions that return the groups of a result.
macro_rules! result_groups {
    ($($name:ident),*) => {$(
        export!(
            #[local(ptr::null())]
            fn $name(result: Ref<Event>, cntp: Place<usize>) -> *const *const GroupResult {
                Listed::show(result.get().and_then(Event::result::<GroupResults>), cntp)
            }
        );
    )*};
}

result_groups!(
    rd_kafka_DeleteGroups_result_groups,
    rd_kafka_ListConsumerGroupOffsets_result_groups,
    rd_kafka_AlterConsumerGroupOffsets_result_groups,
    rd_kafka_DeleteConsumerGroupOffsets_result_groups
);

// ---- groups

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_DeleteGroup_new(group: Text) -> *mut DeleteGroup {
        group.get().map_or(ptr::null_mut(), |group| {
            let group = group.into_owned();
            Box::into_raw(Box::new(DeleteGroup { tag: Tag::of::<DeleteGroup>(), group }))
        })
    }
);

destroyers! {
    rd_kafka_DeleteGroup_destroy(del_group), rd_kafka_DeleteGroup_destroy_array(del_groups): DeleteGroup;
}

export!(
    #[on(rk, ())]
    fn rd_kafka_DeleteGroups(
        rk: Ref<Client>,
        del_groups: Handles<DeleteGroup>,
        del_group_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DELETED, |admin, options| {
            let groups = objects(del_groups, del_group_cnt, "groups to delete")?;
            check_groups(groups.iter().map(|group| &group.group))?;
            let names: Vec<&str> = groups.iter().map(|group| &*group.group).collect();
            let deleted = admin.delete_groups_async(&names, *options);
            Ok(async move {
                let deleted = deleted.await.map_err(|error| Failure::of(&error))?;
                found(Listed::new(
                    deleted.into_iter().map(|(group, result)| GroupResult::of_group(&group, result)),
                ))
            })
        });
    }
);

// ---- offsets

/// Creates the object that a call about offsets takes.
fn new_offsets(group: Text, partitions: Part<List>) -> *mut GroupOffsets {
    let Some(group) = group.get() else { return ptr::null_mut() };
    if List::is_gone(partitions) {
        return ptr::null_mut();
    }
    let offsets = List::passed(partitions)
        .map(|list| list.elements().iter().map(|element| element.group_offset()).collect());
    let group = group.into_owned();
    Box::into_raw(Box::new(GroupOffsets { tag: Tag::of::<GroupOffsets>(), group, offsets }))
}

/// Declares the functions that create and destroy the object that a call about offsets takes.
macro_rules! offset_objects {
    ($($new:ident, $destroy:ident, $destroy_array:ident;)*) => {$(
        export!(
            #[local(ptr::null_mut())]
            fn $new(group: Text, partitions: Part<List>) -> *mut GroupOffsets {
                new_offsets(group, partitions)
            }
        );

        destroyers! { $destroy(offsets), $destroy_array(offsets): GroupOffsets; }
    )*};
}

offset_objects! {
    rd_kafka_ListConsumerGroupOffsets_new,
    rd_kafka_ListConsumerGroupOffsets_destroy,
    rd_kafka_ListConsumerGroupOffsets_destroy_array;
    rd_kafka_AlterConsumerGroupOffsets_new,
    rd_kafka_AlterConsumerGroupOffsets_destroy,
    rd_kafka_AlterConsumerGroupOffsets_destroy_array;
    rd_kafka_DeleteConsumerGroupOffsets_new,
    rd_kafka_DeleteConsumerGroupOffsets_destroy,
    rd_kafka_DeleteConsumerGroupOffsets_destroy_array;
}

/// Returns the only object of a call, whose partitions are distinct.
fn only(array: Handles<'_, GroupOffsets>, count: usize) -> Result<&GroupOffsets, Failure> {
    let objects = objects(array, count, "groups with offsets")?;
    let [one] = &objects[..] else {
        return Err(Failure::misuse("a call takes exactly one group with offsets"));
    };
    check_groups([&one.group].into_iter())?;
    if let Some(offsets) = &one.offsets {
        let distinct: SortedSet<_> = offsets.iter().map(|one| (&one.topic, one.partition)).collect();
        if distinct.is_empty() {
            return Err(Failure::misuse("the list of partitions is empty"));
        }
        if distinct.len() < offsets.len() {
            return Err(Failure::misuse("a partition is listed twice"));
        }
    }
    Ok(one)
}

/// Returns the partitions of an object whose list must not be NULL.
fn listed(object: &GroupOffsets) -> Result<&[GroupOffset], Failure> {
    object.offsets.as_deref().ok_or_else(|| Failure::misuse("there is no list of partitions"))
}

export!(
    #[on(rk, ())]
    fn rd_kafka_ListConsumerGroupOffsets(
        rk: Ref<Client>,
        list_grpoffsets: Handles<GroupOffsets>,
        list_grpoffsets_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, OFFSETS_LISTED, |admin, options| {
            let object = only(list_grpoffsets, list_grpoffsets_cnt)?;
            let partitions: Option<Vec<(&str, i32)>> = object
                .offsets
                .as_ref()
                .map(|offsets| offsets.iter().map(|one| (&*one.topic, one.partition)).collect());
            let found = admin.list_group_offsets_async(&object.group, partitions.as_deref(), *options);
            let group = object.group.clone();
            Ok(async move { shown_offsets(&group, found.await) })
        });
    }
);

fn shown_offsets(group: &str, results: Result<PartitionResults<Option<GroupOffset>>, Error>) -> Outcome {
    let results = results.map_err(|error| Failure::of(&error))?;
    let offsets = results.into_iter().map(|(key, result)| {
        let err = code_of_result(&result);
        let none = || GroupOffset::new(&*key.topic, key.partition, OFFSET_INVALID);
        (result.ok().flatten().unwrap_or_else(none), err)
    });
    found(Listed::new([GroupResult::of_sorted_offsets(group, offsets)]))
}

export!(
    #[on(rk, ())]
    fn rd_kafka_AlterConsumerGroupOffsets(
        rk: Ref<Client>,
        alter_grpoffsets: Handles<GroupOffsets>,
        alter_grpoffsets_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, OFFSETS_ALTERED, |admin, options| {
            let object = only(alter_grpoffsets, alter_grpoffsets_cnt)?;
            let offsets = listed(object)?.to_vec();
            if offsets.iter().any(|one| one.offset < 0) {
                return Err(Failure::misuse("an offset to commit is at least 0"));
            }
            let altered = admin.alter_group_offsets_once(&object.group, &offsets, *options);
            let group = object.group.clone();
            Ok(async move {
                let results = altered.await.map_err(|error| Failure::of(&error))?;
                let codes = results.iter().map(|(_, result)| code_of_result(result));
                let shown = offsets.into_iter().zip(codes.collect::<Vec<_>>());
                found(Listed::new([GroupResult::of_sorted_offsets(&group, shown)]))
            })
        });
    }
);

export!(
    #[on(rk, ())]
    fn rd_kafka_DeleteConsumerGroupOffsets(
        rk: Ref<Client>,
        del_grpoffsets: Handles<GroupOffsets>,
        del_grpoffsets_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, OFFSETS_DELETED, |admin, options| {
            let object = only(del_grpoffsets, del_grpoffsets_cnt)?;
            let partitions: Vec<(&str, i32)> =
                listed(object)?.iter().map(|one| (&*one.topic, one.partition)).collect();
            let deleted = admin.delete_group_offsets_async(&object.group, &partitions, *options);
            let group = object.group.clone();
            Ok(async move {
                let results = deleted.await.map_err(|error| Failure::of(&error))?;
                let shown = results.iter().map(|(key, result)| {
                    let offset = GroupOffset::new(&*key.topic, key.partition, OFFSET_INVALID);
                    (offset, code_of_result(result))
                });
                found(Listed::new([GroupResult::of_offsets(&group, shown)]))
            })
        });
    }
);
