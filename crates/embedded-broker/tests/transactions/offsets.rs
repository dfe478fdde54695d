//! Offsets of groups in transactions.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        delete_groups::DeleteGroupsRequest,
        list_groups::ListGroupsRequest,
        offset_fetch::{self, OffsetFetchRequest},
        txn_offset_commit::{self, TxnOffsetCommitRequest},
    },
    uuid::Uuid,
};

use crate::{Client, ID, MARKED, OK, Producer, common::commit_request};

const GROUP: &str = "readers";

/// The member that a request names: member ID, instance ID, generation.
type Member<'a> = (&'a str, Option<&'a str>, i32);
const NO_MEMBER: Member<'static> = ("", None, -1);

fn add_offsets(client: &mut Client, producer: Producer) -> ErrorCode {
    let request = AddOffsetsToTxnRequest {
        transactional_id: ID.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        group_id: GROUP.to_owned(),
    };
    client.world.call(client.connection, 4, &request).error_code
}

fn commit(
    client: &mut Client,
    version: i16,
    producer: Producer,
    offset: i64,
    member: Member<'_>,
) -> ErrorCode {
    let partition = txn_offset_commit::request::Partition {
        partition_index: 1,
        committed_offset: offset,
        committed_leader_epoch: -1,
        committed_metadata: None,
    };
    let name = "t".to_owned();
    let topic = txn_offset_commit::request::Topic { name, partitions: vec![partition], ..Default::default() };
    commit_topic(client, producer, version, topic, member)
}

/// Sends the request with one topic, and returns the error of its partition.
fn commit_topic(
    client: &mut Client,
    producer: Producer,
    version: i16,
    topic: txn_offset_commit::request::Topic,
    member: Member<'_>,
) -> ErrorCode {
    let topic_id = topic.topic_id;
    let request = TxnOffsetCommitRequest {
        transactional_id: ID.to_owned(),
        group_id: GROUP.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        generation_id_or_member_epoch: member.2,
        member_id: member.0.to_owned(),
        group_instance_id: member.1.map(str::to_owned),
        topics: vec![topic],
    };
    let response = client.world.call(client.connection, version, &request);
    assert_eq!(response.topics[0].topic_id, topic_id);
    response.topics[0].partitions[0].error_code
}

/// Commits an offset for a topic with this ID.
fn commit_by_id(client: &mut Client, producer: Producer, topic_id: Uuid, member: Member<'_>) -> ErrorCode {
    let partition = txn_offset_commit::request::Partition {
        partition_index: 1,
        committed_offset: 5,
        ..Default::default()
    };
    let topic =
        txn_offset_commit::request::Topic { topic_id, partitions: vec![partition], ..Default::default() };
    commit_topic(client, producer, 6, topic, member)
}

/// Commits some offset for a client that is not a member.
pub(crate) fn commit_once(client: &mut Client, producer: Producer) -> ErrorCode {
    commit(client, 3, producer, 1, NO_MEMBER)
}

fn commit_plainly(client: &mut Client, offset: i64) {
    let request = commit_request(GROUP, 1, offset, None);
    assert_eq!(client.world.call(client.connection, 8, &request).topics[0].partitions[0].error_code, OK);
}

/// Fetches the committed offset of partition 1, by name and as one of all.
fn committed(client: &mut Client, require_stable: bool) -> (ErrorCode, i64) {
    let topics =
        vec![offset_fetch::request::OffsetFetchTopic { name: "t".to_owned(), partition_indexes: vec![1] }];
    let mut request = OffsetFetchRequest {
        group_id: GROUP.to_owned(),
        topics: Some(topics),
        require_stable,
        ..Default::default()
    };
    let named = client.world.call(client.connection, 7, &request);
    let partition = named.topics[0].partitions[0].clone();
    request.topics = None;
    let all = client.world.call(client.connection, 7, &request);
    if let Some(topic) = all.topics.first() {
        assert_eq!(topic.partitions[0], partition);
    }
    (partition.error_code, partition.committed_offset)
}

#[test]
fn offsets_take_effect_when_the_transaction_commits() {
    for is_new in [false, true] {
        let mut client = Client::new(is_new);
        let mut producer = client.init(ID);
        let version = if is_new { 5 } else { 3 };
        if !is_new {
            assert_eq!(commit(&mut client, 3, producer, 5, NO_MEMBER), ErrorCode::INVALID_TXN_STATE);
            assert_eq!(commit(&mut client, 4, producer, 5, NO_MEMBER), ErrorCode::TRANSACTION_ABORTABLE);
        }
        for (offset, end, before, after) in [(5, true, -1, 5), (10, false, 5, 5), (15, true, 5, 15)] {
            if !is_new {
                assert_eq!(add_offsets(&mut client, producer), OK);
            }
            assert_eq!(commit(&mut client, version, producer, offset, NO_MEMBER), OK);
            assert_eq!(committed(&mut client, false), (OK, before));
            assert_eq!(committed(&mut client, true), (ErrorCode::UNSTABLE_OFFSET_COMMIT, -1));
            producer = client.end(producer, end);
            assert_eq!(committed(&mut client, true).0, ErrorCode::UNSTABLE_OFFSET_COMMIT);
            client.world.pass(MARKED);
            assert_eq!(committed(&mut client, true), (OK, after));
        }
    }
}

#[test]
fn offsets_of_topics_by_id_take_effect_if_the_topic_exists() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    let id = client.world.cluster.control().topic_id("t").expect("it exists");
    for unknown in [Uuid::ZERO, Uuid([9; 16])] {
        assert_eq!(commit_by_id(&mut client, producer, unknown, NO_MEMBER), ErrorCode::UNKNOWN_TOPIC_ID);
    }
    let member = ("m", None, 3);
    assert_eq!(commit_by_id(&mut client, producer, id, member), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(commit(&mut client, 5, producer, 5, member), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(commit_by_id(&mut client, producer, id, NO_MEMBER), OK);
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(committed(&mut client, true), (OK, 5));
}

#[test]
fn later_commit_outside_of_the_transaction_stays() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    assert_eq!(commit(&mut client, 5, producer, 5, NO_MEMBER), OK);
    commit_plainly(&mut client, 9);
    let producer = client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(committed(&mut client, true), (OK, 9));
    assert_eq!(commit(&mut client, 5, producer, 7, NO_MEMBER), OK);
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(committed(&mut client, true), (OK, 7));
}

#[test]
fn group_without_offsets_does_not_appear_with_the_marker() {
    let mut client = Client::new(false);
    let producer = client.init(ID);
    assert_eq!(add_offsets(&mut client, producer), OK);
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(client.state(), "CompleteCommit");
    let listed = client.world.call(client.connection, 4, &ListGroupsRequest::default());
    assert!(listed.groups.is_empty(), "{:?}", listed.groups);
}

#[test]
fn deleted_group_loses_its_pending_offsets() {
    let mut client = Client::new(true);
    let producer = client.init(ID);
    assert_eq!(commit(&mut client, 5, producer, 5, NO_MEMBER), OK);
    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] };
    assert_eq!(client.world.call(client.connection, 2, &delete).results[0].error_code, OK);
    client.end(producer, true);
    client.world.pass(MARKED);
    assert_eq!(committed(&mut client, true), (OK, -1));
    assert!(client.world.call(client.connection, 4, &ListGroupsRequest::default()).groups.is_empty());
}

#[test]
fn offsets_of_fenced_producers_are_refused() {
    let mut client = Client::new(true);
    let first = client.init(ID);
    assert_eq!(commit(&mut client, 5, first, 5, NO_MEMBER), OK);
    client.end(first, false);
    client.world.pass(MARKED);
    assert_eq!(commit(&mut client, 5, first, 6, NO_MEMBER), ErrorCode::INVALID_PRODUCER_EPOCH);
    client.is_new = false;
    assert_eq!(add_offsets(&mut client, first), ErrorCode::PRODUCER_FENCED);
    let unknown = Producer { id: 1, epoch: 0 };
    assert_eq!(commit(&mut client, 5, unknown, 6, NO_MEMBER), ErrorCode::INVALID_PRODUCER_ID_MAPPING);
}
