//! The functions that convert an event to the result of its call.

use std::ptr;

use super::{acls, cluster, configs, elections, group_offsets, groups, offsets, records, topics, users};
use crate::{
    client::event::Event,
    ffi::{argument::Ref, export, or_null},
};

macro_rules! results {
    ($($name:ident: $kind:expr),* $(,)?) => {$(
        export!(
            #[local(ptr::null())]
            fn $name(event: Ref<Event>) -> *const Event {
                or_null(event.get().filter(|event| event.kind == $kind))
            }
        );
    )*};
}

results! {
    rd_kafka_event_CreateTopics_result: topics::CREATED,
    rd_kafka_event_DeleteTopics_result: topics::DELETED,
    rd_kafka_event_CreatePartitions_result: topics::EXTENDED,
    rd_kafka_event_ListOffsets_result: offsets::LISTED,
    rd_kafka_event_DescribeTopics_result: cluster::TOPICS,
    rd_kafka_event_DescribeCluster_result: cluster::CLUSTER,
    rd_kafka_event_DescribeConfigs_result: configs::DESCRIBED,
    rd_kafka_event_IncrementalAlterConfigs_result: configs::CHANGED,
    rd_kafka_event_AlterConfigs_result: configs::REPLACED,
    rd_kafka_event_DeleteRecords_result: records::DELETED,
    rd_kafka_event_ListConsumerGroups_result: groups::LISTED,
    rd_kafka_event_DescribeConsumerGroups_result: groups::DESCRIBED,
    rd_kafka_event_DeleteGroups_result: group_offsets::DELETED,
    rd_kafka_event_ListConsumerGroupOffsets_result: group_offsets::OFFSETS_LISTED,
    rd_kafka_event_AlterConsumerGroupOffsets_result: group_offsets::OFFSETS_ALTERED,
    rd_kafka_event_DeleteConsumerGroupOffsets_result: group_offsets::OFFSETS_DELETED,
    rd_kafka_event_CreateAcls_result: acls::CREATED,
    rd_kafka_event_DescribeAcls_result: acls::DESCRIBED,
    rd_kafka_event_DeleteAcls_result: acls::DELETED,
    rd_kafka_event_DescribeUserScramCredentials_result: users::DESCRIBED,
    rd_kafka_event_AlterUserScramCredentials_result: users::ALTERED,
    rd_kafka_event_ElectLeaders_result: elections::ELECTED,
}
