//! Topics and partitions of the cluster.

use std::ffi::{c_char, c_int};

use ottla_embedded_broker::{BrokerId, Control, ErrorCode};

use super::{MockCluster, with};
use crate::{
    boundary::{guarded, text},
    codes::code,
};

/// True if there is this partition; a topic that does not exist is created as one that a client asks for.
pub(super) fn ensure(control: &mut Control<'_>, topic: &str, partition: i32) -> bool {
    if control.topic_id(topic).is_none() {
        let _ = control.create_topic(topic, -1, -1);
    }
    control.partition(topic, partition).is_some()
}

/// Runs a call on a partition, whose topic is created if need be.
unsafe fn with_partition(
    cluster: *const MockCluster,
    topic: *const c_char,
    partition: i32,
    act: impl FnOnce(&mut Control<'_>, &str) -> c_int,
) -> c_int {
    // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
    unsafe {
        with(cluster, |cluster| {
            let Some(topic) = text(topic) else { return code::_INVALID_ARG };
            cluster.control(|control| {
                if ensure(control, &topic, partition) {
                    act(control, &topic)
                } else {
                    code::UNKNOWN_TOPIC_OR_PART
                }
            })
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_topic_set_error(
    mcluster: *const MockCluster,
    topic: *const c_char,
    err: c_int,
) {
    guarded((), || {
        // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
        let (Some(cluster), Some(topic)) = (unsafe { (MockCluster::of(mcluster), text(topic)) }) else {
            return;
        };
        let Ok(err) = i16::try_from(err) else { return };
        cluster.control(|control| control.set_topic_error(&topic, (err != 0).then_some(ErrorCode(err))));
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_topic_create(
    mcluster: *const MockCluster,
    topic: *const c_char,
    partition_cnt: c_int,
    replication_factor: c_int,
) -> c_int {
    // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            let Some(topic) = text(topic) else { return code::_INVALID_ARG };
            let Ok(factor) = i16::try_from(replication_factor) else {
                return c_int::from(ErrorCode::INVALID_REPLICATION_FACTOR.0);
            };
            match cluster.control(|control| control.create_topic(&topic, partition_cnt, factor)) {
                Ok(_) => {
                    cluster.note(|| {
                        format!(
                            "Created topic \"{topic}\" with {partition_cnt} partition(s) and replication-factor \
                             {replication_factor}"
                        )
                    });
                    code::NO_ERROR
                }
                Err(error) => c_int::from(error.0),
            }
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_topic_delete(
    mcluster: *const MockCluster,
    topic: *const c_char,
) -> c_int {
    // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
    unsafe {
        with(mcluster, |cluster| match text(topic) {
            None => code::_INVALID_ARG,
            Some(topic) if cluster.control(|control| control.delete_topic(&topic)) => code::NO_ERROR,
            Some(_) => code::UNKNOWN_TOPIC_OR_PART,
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_partition_delete_records(
    mcluster: *const MockCluster,
    topic: *const c_char,
    partition: i32,
    before_offset: i64,
) -> c_int {
    // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            let Some(topic) = text(topic) else { return code::_INVALID_ARG };
            cluster.control(|control| {
                let Some(state) = control.partition(&topic, partition) else {
                    return code::UNKNOWN_TOPIC_OR_PART;
                };
                if !(0..=state.high_watermark).contains(&before_offset) {
                    return c_int::from(ErrorCode::OFFSET_OUT_OF_RANGE.0);
                }
                control.delete_records(&topic, partition, before_offset);
                code::NO_ERROR
            })
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_partition_set_leader(
    mcluster: *const MockCluster,
    topic: *const c_char,
    partition: i32,
    broker_id: i32,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        with_partition(mcluster, topic, partition, |control, topic| {
            let leader = (broker_id != -1).then_some(BrokerId(broker_id));
            if leader.is_some_and(|leader| !control.brokers().contains(&leader)) {
                return code::BROKER_NOT_AVAILABLE;
            }
            control.move_leader(topic, partition, leader);
            code::NO_ERROR
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_partition_set_follower(
    mcluster: *const MockCluster,
    topic: *const c_char,
    partition: i32,
    broker_id: i32,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        with_partition(mcluster, topic, partition, |control, topic| {
            let replica = (broker_id >= 0).then_some(BrokerId(broker_id));
            control.set_preferred_replica(topic, partition, replica);
            code::NO_ERROR
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_partition_set_follower_wmarks(
    mcluster: *const MockCluster,
    topic: *const c_char,
    partition: i32,
    lo: i64,
    hi: i64,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        with_partition(mcluster, topic, partition, |control, topic| {
            if lo < -1 || hi < -1 {
                return code::_INVALID_ARG;
            }
            let given = |offset: i64| (offset >= 0).then_some(offset);
            control.set_preferred_replica_watermarks(topic, partition, given(lo), given(hi));
            code::NO_ERROR
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_partition_push_leader_response(
    mcluster: *const MockCluster,
    topic: *const c_char,
    partition: c_int,
    leader_id: i32,
    leader_epoch: i32,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        with_partition(mcluster, topic, partition, |control, topic| {
            control.push_told_leader(topic, partition, leader_id, leader_epoch);
            code::NO_ERROR
        })
    }
}
