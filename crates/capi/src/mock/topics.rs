//! Topics and partitions of the cluster.

use std::ffi::c_int;

use ottla_embedded_broker::{BrokerId, Control, ErrorCode};

use super::cluster::{MockCluster, with};
use crate::ffi::{
    argument::{Ref, Text},
    codes::{RespErr, code},
    export,
};

/// The number of partitions up to which a call creates a topic that has its partition.
const MOST_PARTITIONS: i32 = 1000;

/// Returns true if the partition exists; a missing topic is created with the partitions up to this one.
pub(super) fn ensure(control: &mut Control<'_>, topic: &str, partition: i32) -> bool {
    if control.topic_id(topic).is_none() {
        let count = if (0..MOST_PARTITIONS).contains(&partition) { partition + 1 } else { -1 };
        let _ = control.create_topic(topic, count, -1);
    }
    control.partition(topic, partition).is_some()
}

/// Runs a call on a partition, whose topic is created if necessary.
fn with_partition(
    cluster: Ref<MockCluster>,
    topic: Text,
    partition: i32,
    act: impl FnOnce(&mut Control<'_>, &str) -> RespErr,
) -> RespErr {
    with(cluster, |cluster| {
        let Some(topic) = topic.get() else { return code::_INVALID_ARG };
        cluster.control(|control| {
            if ensure(control, &topic, partition) {
                act(control, &topic)
            } else {
                code::UNKNOWN_TOPIC_OR_PART
            }
        })
    })
}

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_topic_set_error(mcluster: Ref<MockCluster>, topic: Text, err: RespErr) {
        let (Some(cluster), Some(topic)) = (mcluster.get(), topic.get()) else {
            return;
        };
        let Ok(err) = i16::try_from(err.0) else { return };
        cluster.control(|control| control.set_topic_error(&topic, (err != 0).then_some(ErrorCode(err))));
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_topic_create(
        mcluster: Ref<MockCluster>,
        topic: Text,
        partition_cnt: c_int,
        replication_factor: c_int,
    ) -> RespErr {
        with(mcluster, |cluster| {
            let Some(topic) = topic.get() else { return code::_INVALID_ARG };
            let Ok(factor) = i16::try_from(replication_factor) else {
                return code::INVALID_REPLICATION_FACTOR;
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
                Err(error) => error.into(),
            }
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_topic_delete(mcluster: Ref<MockCluster>, topic: Text) -> RespErr {
        with(mcluster, |cluster| match topic.get() {
            None => code::_INVALID_ARG,
            Some(topic) if cluster.control(|control| control.delete_topic(&topic)) => code::NO_ERROR,
            Some(_) => code::UNKNOWN_TOPIC_OR_PART,
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_partition_delete_records(
        mcluster: Ref<MockCluster>,
        topic: Text,
        partition: i32,
        before_offset: i64,
    ) -> RespErr {
        with(mcluster, |cluster| {
            let Some(topic) = topic.get() else { return code::_INVALID_ARG };
            cluster.control(|control| {
                let Some(state) = control.partition(&topic, partition) else {
                    return code::UNKNOWN_TOPIC_OR_PART;
                };
                if !(0..=state.high_watermark).contains(&before_offset) {
                    return code::OFFSET_OUT_OF_RANGE;
                }
                control.delete_records(&topic, partition, before_offset);
                code::NO_ERROR
            })
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_partition_set_leader(
        mcluster: Ref<MockCluster>,
        topic: Text,
        partition: i32,
        broker_id: i32,
    ) -> RespErr {
        with_partition(mcluster, topic, partition, |control, topic| {
            let leader = (broker_id != -1).then_some(BrokerId(broker_id));
            if leader.is_some_and(|leader| !control.brokers().contains(&leader)) {
                return code::BROKER_NOT_AVAILABLE;
            }
            control.move_leader(topic, partition, leader);
            code::NO_ERROR
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_partition_set_follower(
        mcluster: Ref<MockCluster>,
        topic: Text,
        partition: i32,
        broker_id: i32,
    ) -> RespErr {
        with_partition(mcluster, topic, partition, |control, topic| {
            let replica = (broker_id >= 0).then_some(BrokerId(broker_id));
            control.set_preferred_replica(topic, partition, replica);
            code::NO_ERROR
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_partition_set_follower_wmarks(
        mcluster: Ref<MockCluster>,
        topic: Text,
        partition: i32,
        lo: i64,
        hi: i64,
    ) -> RespErr {
        with_partition(mcluster, topic, partition, |control, topic| {
            if lo < -1 || hi < -1 {
                return code::_INVALID_ARG;
            }
            let given = |offset: i64| (offset >= 0).then_some(offset);
            control.set_preferred_replica_watermarks(topic, partition, given(lo), given(hi));
            code::NO_ERROR
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_partition_push_leader_response(
        mcluster: Ref<MockCluster>,
        topic: Text,
        partition: c_int,
        leader_id: i32,
        leader_epoch: i32,
    ) -> RespErr {
        with_partition(mcluster, topic, partition, |control, topic| {
            control.push_reported_leader(topic, partition, leader_id, leader_epoch);
            code::NO_ERROR
        })
    }
);
