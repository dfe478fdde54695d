//! Share groups (KIP-932): members, sessions, and acknowledgements.

mod administration;
#[path = "../common/mod.rs"]
mod common;
mod locks;
mod members;
mod sessions;

use std::{collections::BTreeMap, time::Duration};

use common::{Batch, World, base_offsets, produce_request};
use ottla_embedded_broker::{
    ApiKey, BrokerId, ClusterOptions, ConnectionId, Fault, FaultAction, IsolationLevel, ShareGroupOptions,
    ShareOffsetReset, Tail,
};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_share_group_offsets::{self, AlterShareGroupOffsetsRequest},
        consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        delete_groups::DeleteGroupsRequest,
        delete_share_group_offsets::{self, DeleteShareGroupOffsetsRequest},
        describe_configs::{self, DescribeConfigsRequest},
        describe_groups::DescribeGroupsRequest,
        describe_share_group_offsets::{self, DescribeShareGroupOffsetsRequest},
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        join_group::{self, JoinGroupRequest},
        list_groups::ListGroupsRequest,
        offset_commit::{self, OffsetCommitRequest},
        share_acknowledge::{self, ShareAcknowledgeRequest, ShareAcknowledgeResponse},
        share_fetch::{self, ShareFetchRequest, ShareFetchResponse},
        share_group_describe::{ShareGroupDescribeRequest, response::Group as DescribedGroup},
        share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse},
    },
    uuid::Uuid,
};

const GROUP: &str = "g";
const MS: Duration = Duration::from_millis(1);
const GAP: i8 = 0;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const RENEW: i8 = 4;

/// Creates one broker with topic `t` of two partitions. Groups begin with the first record, and locks last a second.
fn world(change: impl FnOnce(&mut ShareGroupOptions)) -> World {
    let mut share_groups = ShareGroupOptions {
        auto_offset_reset: ShareOffsetReset::Earliest,
        record_lock_duration: 1000 * MS,
        session_timeout: 1000 * MS,
        ..ShareGroupOptions::default()
    };
    change(&mut share_groups);
    let mut world = World::new(ClusterOptions { brokers: 1, share_groups, ..ClusterOptions::default() });
    world.cluster.control().create_topic("t", 2, 1).unwrap();
    world
}

/// Produces a record to partition 0, which `broker` leads.
fn produce_at(world: &mut World, broker: i32) {
    let connection = world.open(broker);
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()).0, ErrorCode::NONE);
}

fn produce(world: &mut World, partition: i32, records: i32) {
    let connection = world.open(1);
    let (error, _) = world.produce(connection, partition, Batch::of(records).build());
    assert_eq!(error, ErrorCode::NONE);
}

fn topic_id(world: &mut World) -> Uuid {
    world.cluster.control().topic_id("t").unwrap()
}

fn heartbeat_request(member: &str, member_epoch: i32, topics: Option<&[&str]>) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: GROUP.to_owned(),
        member_id: member.to_owned(),
        member_epoch,
        rack_id: None,
        subscribed_topic_names: topics.map(|topics| topics.iter().map(|&topic| topic.to_owned()).collect()),
    }
}

fn heartbeat(
    world: &mut World,
    member: &str,
    member_epoch: i32,
    topics: Option<&[&str]>,
) -> ShareGroupHeartbeatResponse {
    let connection = world.open(1);
    world.call(connection, 1, &heartbeat_request(member, member_epoch, topics))
}

/// Returns the partitions of `t` in a heartbeat response, if it contains an assignment.
fn assigned(response: &ShareGroupHeartbeatResponse) -> Option<Vec<i32>> {
    let assignment = response.assignment.as_ref()?;
    Some(assignment.topic_partitions.iter().flat_map(|topic| topic.partitions.clone()).collect())
}

fn describe(world: &mut World) -> DescribedGroup {
    let connection = world.open(1);
    let request =
        ShareGroupDescribeRequest { group_ids: vec![GROUP.to_owned()], include_authorized_operations: true };
    world.call(connection, 1, &request).groups.remove(0)
}

/// A member's share session with broker 1.
struct Session {
    connection: ConnectionId,
    member: String,
    topic_id: Uuid,
    epoch: i32,
    max_records: i32,
    is_strict: bool,
}

/// The result of a ShareFetch for a partition: error, acquired (first, last, delivery count), base offsets of batches.
#[derive(Debug, PartialEq, Eq)]
struct Fetched {
    error: ErrorCode,
    acquired: Vec<(i64, i64, i16)>,
    batches: Vec<i64>,
}

type Acknowledged<'a> = (i32, &'a [(i64, i64, &'a [i8])]);

impl Session {
    fn new(world: &mut World, member: &str) -> Self {
        let (connection, topic_id) = (world.open(1), topic_id(world));
        let member = member.to_owned();
        Self { connection, member, topic_id, epoch: 0, max_records: 500, is_strict: false }
    }

    fn request(
        &mut self,
        partitions: &[i32],
        max_wait_ms: i32,
        acknowledged: &[Acknowledged<'_>],
    ) -> ShareFetchRequest {
        let mut topic = share_fetch::request::Topic { topic_id: self.topic_id, ..Default::default() };
        for &partition_index in partitions {
            topic.partitions.push(share_fetch::request::Partition { partition_index, ..Default::default() });
        }
        for (partition_index, batches) in acknowledged {
            let batches =
                batches.iter().map(|(first, last, types)| share_fetch::request::AcknowledgementBatch {
                    first_offset: *first,
                    last_offset: *last,
                    acknowledge_types: types.to_vec(),
                });
            topic.partitions.push(share_fetch::request::Partition {
                partition_index: *partition_index,
                acknowledgement_batches: batches.collect(),
            });
        }
        let epoch = self.epoch;
        self.epoch = epoch.wrapping_add(1);
        ShareFetchRequest {
            group_id: Some(GROUP.to_owned()),
            member_id: Some(self.member.clone()),
            share_session_epoch: epoch,
            max_wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: self.max_records,
            batch_size: 500,
            share_acquire_mode: i8::from(self.is_strict),
            is_renew_ack: false,
            topics: if topic.partitions.is_empty() { Vec::new() } else { vec![topic] },
            forgotten_topics_data: Vec::new(),
        }
    }

    fn call(&mut self, world: &mut World, request: &ShareFetchRequest) -> ShareFetchResponse {
        world.call(self.connection, 2, request)
    }

    /// Fetches from partition 0, which is in the session from its start.
    fn fetch(&mut self, world: &mut World) -> Fetched {
        let partitions: &[i32] = if self.epoch == 0 { &[0] } else { &[] };
        let request = self.request(partitions, 0, &[]);
        let response = self.call(world, &request);
        assert_eq!(response.error_code, ErrorCode::NONE);
        fetched(&response, 0)
    }

    fn acquired(&mut self, world: &mut World) -> Vec<(i64, i64, i16)> {
        self.fetch(world).acquired
    }

    /// Acknowledges records of partition 0.
    fn acknowledge(&mut self, world: &mut World, batches: &[(i64, i64, &[i8])]) -> ErrorCode {
        let epoch = self.epoch;
        self.epoch += 1;
        let response = self.acknowledge_in(world, epoch, false, batches);
        assert_eq!(response.error_code, ErrorCode::NONE);
        response.responses[0].partitions[0].error_code
    }

    fn acknowledge_in(
        &mut self,
        world: &mut World,
        epoch: i32,
        is_renew_ack: bool,
        batches: &[(i64, i64, &[i8])],
    ) -> ShareAcknowledgeResponse {
        let batches =
            batches.iter().map(|(first, last, types)| share_acknowledge::request::AcknowledgementBatch {
                first_offset: *first,
                last_offset: *last,
                acknowledge_types: types.to_vec(),
            });
        let partitions = vec![share_acknowledge::request::Partition {
            partition_index: 0,
            acknowledgement_batches: batches.collect(),
        }];
        let request = ShareAcknowledgeRequest {
            group_id: Some(GROUP.to_owned()),
            member_id: Some(self.member.clone()),
            share_session_epoch: epoch,
            is_renew_ack,
            topics: vec![share_acknowledge::request::Topic { topic_id: self.topic_id, partitions }],
        };
        world.call(self.connection, 2, &request)
    }
}

fn fetched(response: &ShareFetchResponse, partition: i32) -> Fetched {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let Some(found) = partitions.into_iter().find(|p| p.partition_index == partition) else {
        return Fetched { error: ErrorCode::NONE, acquired: Vec::new(), batches: Vec::new() };
    };
    let acquired = found.acquired_records.iter().map(|r| (r.first_offset, r.last_offset, r.delivery_count));
    Fetched { error: found.error_code, acquired: acquired.collect(), batches: base_offsets(&found.records) }
}

/// Returns the group's start offset and lag in partition 0.
fn start_offset(world: &mut World) -> (i64, i64) {
    let connection = world.open(1);
    let group = describe_share_group_offsets::request::Group {
        group_id: GROUP.to_owned(),
        topics: Some(vec![describe_share_group_offsets::request::Topic {
            topic_name: "t".to_owned(),
            partitions: vec![0],
        }]),
    };
    let response = world.call(connection, 1, &DescribeShareGroupOffsetsRequest { groups: vec![group] });
    let partition = &response.groups[0].topics[0].partitions[0];
    assert_eq!((response.groups[0].error_code, partition.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    (partition.start_offset, partition.lag)
}
