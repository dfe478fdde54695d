//! Access rules: what a client needs for transactions. The responses were compared with those of Apache Kafka 4.3.1 with its
//! StandardAuthorizer, rule by rule.

use ottla_embedded_broker::{Acl, AclOperation, Authorizer, ResourceType};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{self, AddPartitionsToTxnRequest},
        describe_producers::{self, DescribeProducersRequest},
        describe_transactions::DescribeTransactionsRequest,
        list_transactions::ListTransactionsRequest,
        write_txn_markers::{self, WriteTxnMarkersRequest},
    },
};

use crate::{Client, ID, OK, Producer, offsets::commit_once};

const NO_ID: ErrorCode = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
const NO_TOPIC: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
const NO_GROUP: ErrorCode = ErrorCode::GROUP_AUTHORIZATION_FAILED;
const NO_CLUSTER: ErrorCode = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;

/// The responses to one request of each API.
#[derive(Debug, PartialEq, Eq)]
struct Responses {
    init: ErrorCode,
    add_partitions: ErrorCode,
    produce: ErrorCode,
    add_offsets: ErrorCode,
    commit_offsets: ErrorCode,
    end: ErrorCode,
    describe: ErrorCode,
    listed: usize,
}

/// Begins a transaction with all rights, then sends a request of each API with these rules.
fn responses(rules: &[Acl]) -> Responses {
    let mut client = Client::with(false, |options| options.authorizer = Some(everything()));
    let producer = client.init(ID);
    *client.world.cluster.control().authorizer().unwrap() = Authorizer::new(rules.iter().cloned());
    let init = client.try_init(ID, Some(producer)).error_code;
    let epoch = if init == OK { 1 } else { 0 };
    let producer = Producer { epoch, ..producer };
    let c = client.connection;
    let offsets = AddOffsetsToTxnRequest {
        transactional_id: ID.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        group_id: "readers".to_owned(),
    };
    let describe = DescribeTransactionsRequest { transactional_ids: vec![ID.to_owned()] };
    Responses {
        init,
        add_partitions: client.add(producer, &[0]),
        produce: client.produce_in(ID, 12, producer, 0, 0),
        add_offsets: client.world.call(c, 3, &offsets).error_code,
        commit_offsets: commit_once(&mut client, producer),
        describe: client.world.call(c, 0, &describe).transaction_states[0].error_code,
        listed: client.world.call(c, 0, &ListTransactionsRequest::default()).transaction_states.len(),
        end: client.try_end(producer, false).error_code,
    }
}

fn everything() -> Authorizer {
    Authorizer::new([
        allow(AclOperation::All, ResourceType::TransactionalId, ID),
        allow(AclOperation::All, ResourceType::Topic, "t"),
        allow(AclOperation::All, ResourceType::Group, "readers"),
        allow(AclOperation::All, ResourceType::Cluster, "kafka-cluster"),
    ])
}

fn allow(operation: AclOperation, resource_type: ResourceType, name: &str) -> Acl {
    Acl::allow("ANONYMOUS", operation, resource_type, name)
}

#[test]
fn transactional_id_needs_write_and_its_description_describe() {
    let nothing = Responses {
        init: NO_ID,
        add_partitions: NO_ID,
        produce: NO_TOPIC,
        add_offsets: NO_ID,
        commit_offsets: NO_ID,
        end: NO_ID,
        describe: NO_ID,
        listed: 0,
    };
    let without = Responses { produce: NO_ID, ..nothing };
    assert_eq!(responses(&[]), without);
    let described = Responses { describe: OK, listed: 1, ..without };
    let describe = allow(AclOperation::Describe, ResourceType::TransactionalId, ID);
    assert_eq!(responses(std::slice::from_ref(&describe)), described);
    let written = Responses {
        init: OK,
        add_partitions: NO_TOPIC,
        produce: NO_TOPIC,
        add_offsets: NO_GROUP,
        commit_offsets: NO_GROUP,
        end: ErrorCode::INVALID_TXN_STATE,
        ..described
    };
    let write = allow(AclOperation::Write, ResourceType::TransactionalId, ID);
    assert_eq!(responses(std::slice::from_ref(&write)), written);
    let produced = Responses { add_partitions: OK, produce: OK, end: OK, ..written };
    let topic = allow(AclOperation::Write, ResourceType::Topic, "t");
    assert_eq!(responses(&[write.clone(), topic.clone()]), produced);
    let grouped = Responses { add_offsets: OK, commit_offsets: NO_TOPIC, ..produced };
    let group = allow(AclOperation::Read, ResourceType::Group, "readers");
    assert_eq!(responses(&[write.clone(), topic.clone(), group.clone()]), grouped);
    let read = allow(AclOperation::Read, ResourceType::Topic, "t");
    assert_eq!(responses(&[write, topic, group, read]), Responses { commit_offsets: OK, ..grouped });
}

#[test]
fn requests_of_brokers_and_descriptions_have_their_own_rights() {
    let mut client = Client::with(true, |options| options.authorizer = Some(everything()));
    let producer = client.init(ID);
    let topic = add_partitions_to_txn::request::Topic { name: "t".to_owned(), partitions: vec![0] };
    let transaction = add_partitions_to_txn::request::Transaction {
        transactional_id: ID.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        verify_only: false,
        topics: vec![topic],
    };
    let add = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
    let topic = write_txn_markers::request::Topic { name: "t".to_owned(), partition_indexes: vec![0] };
    let marker = write_txn_markers::request::Marker {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        topics: vec![topic],
        ..Default::default()
    };
    let markers = WriteTxnMarkersRequest { markers: vec![marker] };
    let topic = describe_producers::request::Topic { name: "t".to_owned(), partition_indexes: vec![0] };
    let describe = DescribeProducersRequest { topics: vec![topic] };
    let mut with = |rules: &[Acl]| {
        *client.world.cluster.control().authorizer().unwrap() = Authorizer::new(rules.iter().cloned());
        let c = client.connection;
        (
            client.world.call(c, 5, &add).error_code,
            client.world.call(c, 1, &markers).markers[0].topics[0].partitions[0].error_code,
            client.world.call(c, 0, &describe).topics[0].partitions[0].error_code,
        )
    };
    assert_eq!(with(&[]), (NO_CLUSTER, NO_CLUSTER, NO_TOPIC));
    let action = allow(AclOperation::ClusterAction, ResourceType::Cluster, "kafka-cluster");
    assert_eq!(with(&[action]), (OK, OK, NO_TOPIC));
    let alter = allow(AclOperation::Alter, ResourceType::Cluster, "kafka-cluster");
    assert_eq!(with(&[alter]), (NO_CLUSTER, OK, NO_TOPIC));
    let read = allow(AclOperation::Read, ResourceType::Topic, "t");
    assert_eq!(with(&[read]), (NO_CLUSTER, NO_CLUSTER, OK));
}
