//! Share groups of the cluster (KIP-932): their limits and times, which apply to all of them from the next request on,
//! and their target assignments.

use std::{
    collections::BTreeMap,
    ffi::{c_char, c_int},
    ptr,
    time::Duration,
};

use ottla_embedded_broker::{IsolationLevel, ShareGroupOptions, ShareOffsetReset};

use super::cluster::{MockCluster, with};
use crate::ffi::{
    argument::{Ref, Text},
    boundary::{malloc_text, text},
    codes::{RespErr, code},
    export,
    list::List,
};

/// Changes a setting of share groups; a negative value changes nothing.
fn change(cluster: Ref<MockCluster>, value: c_int, change: impl FnOnce(&mut ShareGroupOptions, u32)) {
    if let (Some(cluster), Ok(value)) = (cluster.get(), u32::try_from(value)) {
        cluster.control(|control| change(&mut control.options().share_groups, value));
    }
}

/// A time in milliseconds; 0 stands for the default.
fn time(millis: u32, default: Duration) -> Duration {
    if millis == 0 { default } else { Duration::from_millis(u64::from(millis)) }
}

/// A limit; 0 stands for none.
fn limit<T: TryFrom<u32>>(value: u32, none: T) -> T {
    if value == 0 { none } else { T::try_from(value).unwrap_or(none) }
}

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_session_timeout(mcluster: Ref<MockCluster>, session_timeout_ms: c_int) {
        change(mcluster, session_timeout_ms, |options, millis| {
            options.session_timeout = time(millis, ShareGroupOptions::default().session_timeout);
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_heartbeat_interval(
        mcluster: Ref<MockCluster>,
        heartbeat_interval_ms: c_int,
    ) {
        change(mcluster, heartbeat_interval_ms, |options, millis| {
            options.heartbeat_interval = time(millis, ShareGroupOptions::default().heartbeat_interval);
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_max_delivery_attempts(mcluster: Ref<MockCluster>, max_attempts: c_int) {
        change(mcluster, max_attempts, |options, count| {
            options.delivery_count_limit = limit(count, i16::MAX);
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_record_lock_duration(
        mcluster: Ref<MockCluster>,
        lock_duration_ms: c_int,
    ) {
        change(mcluster, lock_duration_ms, |options, millis| {
            options.record_lock_duration = time(millis, ShareGroupOptions::default().record_lock_duration);
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_isolation_level(mcluster: Ref<MockCluster>, level: c_int) {
        change(mcluster, level, |options, level| match level {
            0 => options.isolation_level = IsolationLevel::ReadUncommitted,
            1 => options.isolation_level = IsolationLevel::ReadCommitted,
            _ => {}
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_max_size(mcluster: Ref<MockCluster>, max_size: c_int) {
        change(mcluster, max_size, |options, count| options.max_size = limit(count, usize::MAX))
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_max_fetch_sessions(
        mcluster: Ref<MockCluster>,
        max_fetch_sessions: c_int,
    ) {
        change(mcluster, max_fetch_sessions, |options, count| {
            options.max_share_sessions = limit(count, usize::MAX);
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_max_record_locks(mcluster: Ref<MockCluster>, max_record_locks: c_int) {
        change(mcluster, max_record_locks, |options, count| {
            options.partition_max_record_locks = limit(count, i32::MAX);
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_set_auto_offset_reset(mcluster: Ref<MockCluster>, auto_offset_reset: c_int) {
        change(mcluster, auto_offset_reset, |options, reset| match reset {
            0 => options.auto_offset_reset = ShareOffsetReset::Latest,
            1 => options.auto_offset_reset = ShareOffsetReset::Earliest,
            _ => {}
        });
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_sharegroup_target_assignment(
        mcluster: Ref<MockCluster>,
        group_id: Text,
        member_ids: *mut *const c_char,
        assignments: *mut *mut List,
        member_cnt: usize,
    ) {
        // SAFETY: the header demands NULL or a cluster, a text or NULL, and this number of texts and lists or NULLs.
        unsafe {
            let (Some(cluster), Some(group)) = (mcluster.get(), group_id.get()) else { return };
            let is_missing = member_ids.is_null() || assignments.is_null();
            if member_cnt > 0 && is_missing || isize::try_from(member_cnt).is_err() {
                return;
            }
            let mut by_member: BTreeMap<String, Vec<(String, i32)>> = BTreeMap::new();
            for i in 0..member_cnt {
                let Some(member) = text(*member_ids.add(i)) else { return };
                let list = List::of(*assignments.add(i)).map(List::elements).unwrap_or_default();
                let partitions = by_member.entry(member.into_owned()).or_default();
                partitions.extend(list.iter().map(|element| (element.name().to_owned(), element.partition)));
            }
            let by_hand = (member_cnt > 0).then_some(&by_member);
            cluster.control(|control| control.assign_share_group(&group, by_hand));
        }
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_sharegroup_get_member_ids(
        mcluster: Ref<MockCluster>,
        group_id: Text,
        member_ids_out: *mut *mut *mut c_char,
        member_cnt_out: *mut usize,
    ) -> RespErr {
        // SAFETY: the header demands NULL or a cluster, a text or NULL, and writable addresses or NULL.
        unsafe {
            with(mcluster, |cluster| {
                let (Some(ids_out), Some(count_out)) = (member_ids_out.as_mut(), member_cnt_out.as_mut())
                else {
                    return code::_INVALID_ARG;
                };
                (*ids_out, *count_out) = (ptr::null_mut(), 0);
                let Some(group) = group_id.get() else { return code::_INVALID_ARG };
                let Some(ids) = cluster.control(|control| control.share_group_members(&group)) else {
                    return code::GROUP_ID_NOT_FOUND;
                };
                if ids.is_empty() {
                    return code::NO_ERROR;
                }
                let array = libc::calloc(ids.len(), size_of::<*mut c_char>()).cast::<*mut c_char>();
                if array.is_null() {
                    return code::_CRIT_SYS_RESOURCE;
                }
                for (i, id) in ids.iter().enumerate() {
                    array.add(i).write(malloc_text(id.as_bytes()));
                }
                (*ids_out, *count_out) = (array, ids.len());
                code::NO_ERROR
            })
        }
    }
);
