//! Groups of the consumer protocol (KIP-848): the target assignment, and the timeouts of members.

use std::{
    ffi::{c_char, c_int},
    ptr,
    time::Duration,
};

use ottla_embedded_broker::ClusterOptions;

use super::cluster::MockCluster;
use crate::ffi::{
    argument::{Argument, Given, Part, Ref, Text},
    boundary::{Handle, Tag, text},
    export,
    list::List,
};

/// Partitions for the members of a group.
#[repr(C)]
#[derive(Debug)]
pub struct TargetAssignment {
    tag: Tag,
    /// The id of each member, and its partitions.
    members: Vec<(String, Vec<(String, i32)>)>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for TargetAssignment {
    const KIND: u32 = 0x6f74_6d03;
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_mock_cgrp_consumer_target_assignment_new(
        member_ids: *mut *mut c_char,
        member_cnt: c_int,
        assignment: *mut *mut List,
    ) -> *mut TargetAssignment {
        let Ok(count) = usize::try_from(member_cnt) else { return ptr::null_mut() };
        if count > 0 && (member_ids.is_null() || assignment.is_null()) {
            return ptr::null_mut();
        }
        let members = (0..count).map(|at| {
            // SAFETY: the header demands arrays of this number of texts and lists, each of which may be NULL.
            let (member_id, list) =
                unsafe { (text(*member_ids.add(at)), Part::from_c((*assignment.add(at)).cast_const())) };
            if List::is_gone(list) {
                return None;
            }
            let elements = List::passed(list).map_or(&[][..], List::elements);
            let partitions = elements.iter().map(|element| (element.name().to_owned(), element.partition));
            Some((member_id?.into_owned(), partitions.collect()))
        });
        let Some(members) = members.collect() else { return ptr::null_mut() };
        Box::into_raw(Box::new(TargetAssignment { tag: Tag::of::<TargetAssignment>(), members }))
    }
);

export!(
    #[local(())]
    fn rd_kafka_mock_cgrp_consumer_target_assignment_destroy(target_assignment: Given<TargetAssignment>) {
        target_assignment.retire();
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_cgrp_consumer_target_assignment(
        mcluster: Ref<MockCluster>,
        group_id: Text,
        target_assignment: Ref<TargetAssignment>,
    ) {
        let (Some(cluster), Some(group)) = (mcluster.get(), group_id.get()) else {
            return;
        };
        let target = target_assignment.get();
        if target.is_none() && !target_assignment.is_null() {
            return;
        }
        let members = target.map(|target| {
            target.members.iter().map(|(member_id, partitions)| {
                let partitions = partitions.iter().map(|(topic, partition)| (topic.as_str(), *partition));
                (member_id.as_str(), partitions.collect())
            })
        });
        cluster.control(|control| control.set_target_assignment(&group, members));
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_set_group_consumer_session_timeout_ms(
        mcluster: Ref<MockCluster>,
        group_consumer_session_timeout_ms: c_int,
    ) {
        set_time(mcluster, group_consumer_session_timeout_ms, |options, time| {
            options.group_consumer_session_timeout = time;
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_set_group_consumer_heartbeat_interval_ms(
        mcluster: Ref<MockCluster>,
        group_consumer_heartbeat_interval_ms: c_int,
    ) {
        set_time(mcluster, group_consumer_heartbeat_interval_ms, |options, time| {
            options.group_consumer_heartbeat_interval = time;
        });
    }
);

/// Sets a time of at least 1 ms; shorter times, which no broker accepts, are ignored.
fn set_time(
    mcluster: Ref<MockCluster>,
    milliseconds: c_int,
    set: impl FnOnce(&mut ClusterOptions, Duration),
) {
    let Some(cluster) = mcluster.get() else { return };
    if let Some(time) = u64::try_from(milliseconds).ok().filter(|time| *time > 0) {
        cluster.control(|control| set(control.options(), Duration::from_millis(time)));
    }
}
