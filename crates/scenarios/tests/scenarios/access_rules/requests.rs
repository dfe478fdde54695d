//! One request of each API, which changes as little as possible if it is permitted.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{self, AddPartitionsToTxnRequest},
        alter_configs::{self, AlterConfigsRequest},
        alter_share_group_offsets::{self, AlterShareGroupOffsetsRequest},
        consumer_group_describe::ConsumerGroupDescribeRequest,
        consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        create_acls::{CreateAclsRequest, request::Creation},
        create_partitions::{self, CreatePartitionsRequest},
        create_topics::{self, CreateTopicsRequest},
        delete_acls::{DeleteAclsRequest, request::Filter},
        delete_groups::DeleteGroupsRequest,
        delete_records::{self, DeleteRecordsRequest},
        delete_share_group_offsets::{self, DeleteShareGroupOffsetsRequest},
        delete_topics::DeleteTopicsRequest,
        describe_acls::DescribeAclsRequest,
        describe_configs::{self, DescribeConfigsRequest},
        describe_groups::DescribeGroupsRequest,
        describe_producers::{self, DescribeProducersRequest},
        describe_share_group_offsets::{self, DescribeShareGroupOffsetsRequest},
        describe_topic_partitions::{self, DescribeTopicPartitionsRequest},
        describe_transactions::DescribeTransactionsRequest,
        end_txn::EndTxnRequest,
        fetch::{self, FetchRequest},
        find_coordinator::FindCoordinatorRequest,
        heartbeat::HeartbeatRequest,
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        init_producer_id::InitProducerIdRequest,
        join_group::JoinGroupRequest,
        leave_group::LeaveGroupRequest,
        list_offsets::{self, ListOffsetsRequest},
        list_partition_reassignments::ListPartitionReassignmentsRequest,
        metadata::{self, MetadataRequest},
        offset_commit::{self, OffsetCommitRequest},
        offset_delete::{self, OffsetDeleteRequest},
        offset_fetch::{self, OffsetFetchRequest},
        offset_for_leader_epoch::{self, OffsetForLeaderEpochRequest},
        produce::{self, ProduceRequest},
        share_acknowledge::{self, ShareAcknowledgeRequest},
        share_fetch::{self, ShareFetchRequest},
        share_group_describe::ShareGroupDescribeRequest,
        share_group_heartbeat::ShareGroupHeartbeatRequest,
        sync_group::SyncGroupRequest,
        txn_offset_commit::{self, TxnOffsetCommitRequest},
        write_txn_markers::{self, WriteTxnMarkersRequest},
    },
    uuid::Uuid,
};
use ottla_scenarios::raw::RawClient;

/// The resources of a case.
#[derive(Clone, Debug)]
pub struct Names {
    pub topic: String,
    pub topic_id: Uuid,
    /// A topic that does not exist.
    pub new_topic: String,
    pub group: String,
    pub transactional_id: String,
}

/// The name of a request, and the error of its response.
pub type Response = (&'static str, ErrorCode);

/// A batch of Java's producer.
const BATCH: &[u8] = include_bytes!("../../../../../tests/golden/batches/java-v2-none.bin");
const MEMBER: &str = "AAAAAAAAAAAAAAAAAAAAAQ";

/// Returns true if the client lacks a right.
pub fn is_refusal(code: ErrorCode) -> bool {
    [
        ErrorCode::TOPIC_AUTHORIZATION_FAILED,
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ]
    .contains(&code)
}

/// Returns true once the coordinators of groups and transactions work.
pub fn coordinators_work(client: &mut RawClient) -> bool {
    let find = |key_type| FindCoordinatorRequest {
        coordinator_keys: vec!["rules".to_owned()],
        key_type,
        ..Default::default()
    };
    let request =
        OffsetFetchRequest { group_id: "rules".to_owned(), topics: Some(Vec::new()), ..Default::default() };
    let found = [0, 1].map(|key_type| client.call(6, &find(key_type)).coordinators[0].error_code);
    found == [ErrorCode::NONE; 2] && client.call(7, &request).error_code == ErrorCode::NONE
}

/// Sends a request of each API.
pub fn each(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let mut responses = records(client, names);
    responses.extend(configurations(client, names));
    responses.extend(members(client, names));
    responses.extend(groups(client, names));
    responses.extend(share_groups(client, names));
    responses.extend(transactions(client, names));
    responses.extend(rules(client));
    responses.extend(topics(client, names));
    responses
}

/// Returns the error of a response, or that of its part if the response has none.
fn either(code: ErrorCode, part: Option<ErrorCode>) -> ErrorCode {
    if code == ErrorCode::NONE { part.unwrap_or(code) } else { code }
}

fn records(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let name = || names.topic.clone();
    let partition = produce::request::PartitionData { index: 0, records: Some(BATCH.to_vec()) };
    let topic =
        produce::request::TopicData { name: name(), partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { acks: 1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let produced = client.call(12, &request).responses[0].partition_responses[0].error_code;
    let partition = fetch::request::Partition {
        current_leader_epoch: -1,
        partition_max_bytes: 1000,
        ..Default::default()
    };
    let topic = fetch::request::Topic { topic: name(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_bytes: 1000,
        session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let fetched = client.call(12, &request);
    let partition =
        list_offsets::request::Partition { timestamp: -1, current_leader_epoch: -1, ..Default::default() };
    let topic = list_offsets::request::Topic { name: name(), partitions: vec![partition] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    let listed = client.call(7, &request).topics[0].partitions[0].error_code;
    let partition =
        offset_for_leader_epoch::request::Partition { current_leader_epoch: -1, ..Default::default() };
    let topic = offset_for_leader_epoch::request::Topic { topic: name(), partitions: vec![partition] };
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
    let epoch = client.call(4, &request).topics[0].partitions[0].error_code;
    let topic = delete_records::request::Topic {
        name: name(),
        partitions: vec![delete_records::request::Partition { partition_index: 0, offset: 0 }],
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000 };
    let deleted = client.call(2, &request).topics[0].partitions[0].error_code;
    let topic = describe_producers::request::Topic { name: name(), partition_indexes: vec![0] };
    let described = client.call(0, &DescribeProducersRequest { topics: vec![topic] });
    vec![
        ("Produce", produced),
        ("Fetch", either(fetched.error_code, Some(fetched.responses[0].partitions[0].error_code))),
        ("ListOffsets", listed),
        ("OffsetForLeaderEpoch", epoch),
        ("DeleteRecords", deleted),
        ("DescribeProducers", described.topics[0].partitions[0].error_code),
    ]
}

fn configurations(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let mut responses = Vec::new();
    for (resource_type, name, apis) in [
        (2, &*names.topic, ["DescribeConfigs:topic", "AlterConfigs:topic", "IncrementalAlterConfigs:topic"]),
        (32, &names.group, ["DescribeConfigs:group", "AlterConfigs:group", "IncrementalAlterConfigs:group"]),
        (4, "1", ["DescribeConfigs:broker", "AlterConfigs:broker", "IncrementalAlterConfigs:broker"]),
    ] {
        let resource_name = name.to_owned();
        let resource =
            describe_configs::request::Resource { resource_type, resource_name, ..Default::default() };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        responses.push((apis[0], client.call(4, &request).results[0].error_code));
        let resource_name = name.to_owned();
        let resource =
            alter_configs::request::Resource { resource_type, resource_name, ..Default::default() };
        let request = AlterConfigsRequest { resources: vec![resource], validate_only: true };
        responses.push((apis[1], client.call(2, &request).responses[0].error_code));
        let resource_name = name.to_owned();
        let resource = incremental_alter_configs::request::Resource {
            resource_type,
            resource_name,
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: true };
        responses.push((apis[2], client.call(1, &request).responses[0].error_code));
    }
    responses
}

fn members(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let group_id = || names.group.clone();
    let subscribed_topic_names = || Some(vec![names.topic.clone()]);
    let member_id = MEMBER.to_owned();
    let heartbeat = HeartbeatRequest { group_id: group_id(), ..Default::default() };
    let leave = LeaveGroupRequest { group_id: group_id(), ..Default::default() };
    let sync = SyncGroupRequest {
        group_id: group_id(),
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        ..Default::default()
    };
    let join = JoinGroupRequest { group_id: group_id(), ..Default::default() };
    let consumer = ConsumerGroupHeartbeatRequest {
        group_id: group_id(),
        member_id: member_id.clone(),
        member_epoch: 7,
        subscribed_topic_names: subscribed_topic_names(),
        ..Default::default()
    };
    let share = ShareGroupHeartbeatRequest {
        group_id: group_id(),
        member_id,
        member_epoch: 7,
        subscribed_topic_names: subscribed_topic_names(),
        ..Default::default()
    };
    let topics = vec![offset_commit::request::Topic {
        name: names.topic.clone(),
        partitions: vec![offset_commit::request::Partition::default()],
        ..Default::default()
    }];
    let commit = OffsetCommitRequest {
        group_id: group_id(),
        generation_id_or_member_epoch: 7,
        topics,
        ..Default::default()
    };
    vec![
        ("Heartbeat", client.call(4, &heartbeat).error_code),
        ("LeaveGroup", client.call(4, &leave).error_code),
        ("SyncGroup", client.call(5, &sync).error_code),
        ("JoinGroup", client.call(9, &join).error_code),
        ("ConsumerGroupHeartbeat", client.call(1, &consumer).error_code),
        ("ShareGroupHeartbeat", client.call(1, &share).error_code),
        ("OffsetCommit", client.call(8, &commit).topics[0].partitions[0].error_code),
    ]
}

fn groups(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let group = || names.group.clone();
    let topic = || names.topic.clone();
    let topics = vec![offset_fetch::request::OffsetFetchTopic { name: topic(), partition_indexes: vec![0] }];
    let request = OffsetFetchRequest { group_id: group(), topics: Some(topics), ..Default::default() };
    let fetched = client.call(7, &request);
    let part = fetched.topics.first().map(|topic| topic.partitions[0].error_code);
    let find = |key: &str, key_type| FindCoordinatorRequest {
        coordinator_keys: vec![key.to_owned()],
        key_type,
        ..Default::default()
    };
    let group_coordinator = client.call(6, &find(&names.group, 0)).coordinators[0].error_code;
    let id_coordinator = client.call(6, &find(&names.transactional_id, 1)).coordinators[0].error_code;
    let request = DescribeGroupsRequest { groups: vec![group()], ..Default::default() };
    let described = client.call(5, &request).groups[0].error_code;
    let request = ConsumerGroupDescribeRequest { group_ids: vec![group()], ..Default::default() };
    let consumer = client.call(1, &request).groups[0].error_code;
    let partitions = vec![offset_delete::request::Partition { partition_index: 0 }];
    let topics = vec![offset_delete::request::Topic { name: topic(), partitions }];
    let offsets = client.call(0, &OffsetDeleteRequest { group_id: group(), topics });
    let of_topic = offsets.topics.first().map(|topic| topic.partitions[0].error_code);
    let request = DeleteGroupsRequest { groups_names: vec![group()] };
    let deleted = client.call(2, &request).results[0].error_code;
    vec![
        ("OffsetFetch", either(fetched.error_code, part)),
        ("FindCoordinator:group", group_coordinator),
        ("FindCoordinator:transaction", id_coordinator),
        ("DescribeGroups", described),
        ("ConsumerGroupDescribe", consumer),
        ("OffsetDelete", either(offsets.error_code, of_topic)),
        ("DeleteGroups", deleted),
    ]
}

fn share_groups(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let group = || names.group.clone();
    let (group_id, member_id) = (Some(group()), Some(MEMBER.to_owned()));
    let topic_name = || names.topic.clone();
    let topic_id = names.topic_id;
    let partitions = vec![share_fetch::request::Partition::default()];
    let request = ShareFetchRequest {
        group_id: group_id.clone(),
        member_id: member_id.clone(),
        max_bytes: 1000,
        max_records: 1,
        batch_size: 1,
        topics: vec![share_fetch::request::Topic { topic_id, partitions }],
        ..Default::default()
    };
    let fetched = client.call(1, &request);
    let of_fetch = fetched.responses.first().map(|topic| topic.partitions[0].error_code);
    let batch = share_acknowledge::request::AcknowledgementBatch {
        first_offset: 0,
        last_offset: 0,
        acknowledge_types: vec![1],
    };
    let partition =
        share_acknowledge::request::Partition { partition_index: 0, acknowledgement_batches: vec![batch] };
    let request = ShareAcknowledgeRequest {
        group_id,
        member_id,
        share_session_epoch: 1,
        topics: vec![share_acknowledge::request::Topic { topic_id, partitions: vec![partition] }],
        ..Default::default()
    };
    let acknowledged = client.call(1, &request);
    let of_acknowledge = acknowledged.responses.first().map(|topic| topic.partitions[0].error_code);
    let request = ShareGroupDescribeRequest { group_ids: vec![group()], ..Default::default() };
    let described = client.call(1, &request).groups[0].error_code;
    let topics = Some(vec![describe_share_group_offsets::request::Topic {
        topic_name: topic_name(),
        partitions: vec![0],
    }]);
    let group_request = describe_share_group_offsets::request::Group { group_id: group(), topics };
    let offsets = client.call(0, &DescribeShareGroupOffsetsRequest { groups: vec![group_request] });
    let offsets = &offsets.groups[0];
    let of_offsets = offsets.topics.first().map(|topic| topic.partitions[0].error_code);
    let partitions = vec![alter_share_group_offsets::request::Partition::default()];
    let topics = vec![alter_share_group_offsets::request::Topic { topic_name: topic_name(), partitions }];
    let altered = client.call(0, &AlterShareGroupOffsetsRequest { group_id: group(), topics });
    let of_alter = altered.responses.first().map(|topic| topic.partitions[0].error_code);
    let topics = vec![delete_share_group_offsets::request::Topic { topic_name: topic_name() }];
    let deleted = client.call(0, &DeleteShareGroupOffsetsRequest { group_id: group(), topics });
    let of_delete = deleted.responses.first().map(|topic| topic.error_code);
    vec![
        ("ShareFetch", either(fetched.error_code, of_fetch)),
        ("ShareAcknowledge", either(acknowledged.error_code, of_acknowledge)),
        ("ShareGroupDescribe", described),
        ("DescribeShareGroupOffsets", either(offsets.error_code, of_offsets)),
        ("AlterShareGroupOffsets", either(altered.error_code, of_alter)),
        ("DeleteShareGroupOffsets", either(deleted.error_code, of_delete)),
    ]
}

/// The producer ID is one that no broker has given.
fn transactions(client: &mut RawClient, names: &Names) -> Vec<Response> {
    const PRODUCER: i64 = 4_000_000_000;
    let id = || names.transactional_id.clone();
    let request = InitProducerIdRequest { transaction_timeout_ms: 1000, ..Default::default() };
    let request = InitProducerIdRequest { producer_id: -1, producer_epoch: -1, ..request };
    let idempotent = client.call(4, &request).error_code;
    let request = InitProducerIdRequest {
        transactional_id: Some(id()),
        producer_id: PRODUCER,
        producer_epoch: 1,
        ..request
    };
    let transactional = client.call(4, &request).error_code;
    let topic =
        add_partitions_to_txn::request::V3AndBelowTopic { name: names.topic.clone(), partitions: vec![0] };
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: id(),
        v3_and_below_producer_id: PRODUCER,
        v3_and_below_topics: vec![topic],
        ..Default::default()
    };
    let added = client.call(3, &request).results_by_topic_v3_and_below[0].results_by_partition[0]
        .partition_error_code;
    let request = AddOffsetsToTxnRequest {
        transactional_id: id(),
        producer_id: PRODUCER,
        producer_epoch: 0,
        group_id: names.group.clone(),
    };
    let offsets = client.call(3, &request).error_code;
    let topic = txn_offset_commit::request::Topic {
        name: names.topic.clone(),
        partitions: vec![txn_offset_commit::request::Partition::default()],
        ..Default::default()
    };
    let request = TxnOffsetCommitRequest {
        transactional_id: id(),
        group_id: names.group.clone(),
        producer_id: PRODUCER,
        generation_id_or_member_epoch: 7,
        topics: vec![topic],
        ..Default::default()
    };
    let committed = client.call(3, &request).topics[0].partitions[0].error_code;
    let request = EndTxnRequest { transactional_id: id(), producer_id: PRODUCER, ..Default::default() };
    let ended = client.call(3, &request).error_code;
    let request = DescribeTransactionsRequest { transactional_ids: vec![id()] };
    let described = client.call(0, &request).transaction_states[0].error_code;
    let topics =
        vec![write_txn_markers::request::Topic { name: names.topic.clone(), partition_indexes: vec![0] }];
    let marker = write_txn_markers::request::Marker { producer_id: PRODUCER, topics, ..Default::default() };
    let marked = client.call(1, &WriteTxnMarkersRequest { markers: vec![marker] });
    vec![
        ("InitProducerId", idempotent),
        ("InitProducerId:transaction", transactional),
        ("AddPartitionsToTxn", added),
        ("AddOffsetsToTxn", offsets),
        ("TxnOffsetCommit", committed),
        ("EndTxn", ended),
        ("DescribeTransactions", described),
        ("WriteTxnMarkers", marked.markers[0].topics[0].partitions[0].error_code),
    ]
}

fn rules(client: &mut RawClient) -> Vec<Response> {
    let creation = Creation {
        resource_type: 2,
        resource_name: "nobody's".to_owned(),
        resource_pattern_type: 3,
        principal: "User:nobody".to_owned(),
        host: "*".to_owned(),
        operation: 3,
        permission_type: 3,
    };
    let filter = Filter {
        resource_type_filter: 2,
        resource_name_filter: Some("nobody's".to_owned()),
        pattern_type_filter: 3,
        principal_filter: Some("User:nobody".to_owned()),
        host_filter: None,
        operation: 1,
        permission_type: 1,
    };
    let describe = DescribeAclsRequest {
        resource_type_filter: 2,
        resource_name_filter: Some("nobody's".to_owned()),
        pattern_type_filter: 3,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    };
    let reassignments = ListPartitionReassignmentsRequest { timeout_ms: 10_000, ..Default::default() };
    vec![
        ("DescribeAcls", client.call(3, &describe).error_code),
        (
            "CreateAcls",
            client.call(3, &CreateAclsRequest { creations: vec![creation] }).results[0].error_code,
        ),
        (
            "DeleteAcls",
            client.call(3, &DeleteAclsRequest { filters: vec![filter] }).filter_results[0].error_code,
        ),
        ("ListPartitionReassignments", client.call(0, &reassignments).error_code),
    ]
}

/// The last request deletes the topic.
fn topics(client: &mut RawClient, names: &Names) -> Vec<Response> {
    let topic = metadata::request::Topic { name: Some(names.topic.clone()), ..Default::default() };
    let request =
        MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: false, ..Default::default() };
    let metadata = client.call(12, &request).topics[0].error_code;
    let request = DescribeTopicPartitionsRequest {
        topics: vec![describe_topic_partitions::request::Topic { name: names.topic.clone() }],
        response_partition_limit: 10,
        cursor: None,
    };
    let described = client.call(0, &request).topics[0].error_code;
    let topic = create_topics::request::Topic {
        name: names.new_topic.clone(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, validate_only: true };
    let created = client.call(7, &request).topics[0].error_code;
    let topic =
        create_partitions::request::Topic { name: names.topic.clone(), count: 2, ..Default::default() };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 10_000, validate_only: true };
    let extended = client.call(3, &request).results[0].error_code;
    let request = DeleteTopicsRequest {
        topic_names: vec![names.topic.clone()],
        timeout_ms: 10_000,
        ..Default::default()
    };
    let deleted = client.call(5, &request).responses[0].error_code;
    vec![
        ("Metadata", metadata),
        ("DescribeTopicPartitions", described),
        ("CreateTopics", created),
        ("CreatePartitions", extended),
        ("DeleteTopics", deleted),
    ]
}
