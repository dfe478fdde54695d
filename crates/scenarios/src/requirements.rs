//! What scenarios need of brokers of Apache Kafka, so that they also run on older versions: the API in the version that came with
//! the feature.

use std::{collections::BTreeMap, sync::OnceLock};

use ottla::Admin;
use ottla_protocol::api::ApiKey;

use crate::backend::{TIMEOUT, config};

/// The part of a test's name, the API with the version that it needs, and the feature.
const NEEDS: &[(&str, ApiKey, i16, &str)] = &[
    ("::share_groups::", ApiKey::ShareFetch, 1, "share groups, Kafka 4.1"),
    ("::share_administration::", ApiKey::ShareFetch, 1, "share groups, Kafka 4.1"),
    ("::streams_groups::", ApiKey::StreamsGroupHeartbeat, 0, "streams groups, Kafka 4.1"),
    ("::streams_members::", ApiKey::StreamsGroupHeartbeat, 0, "streams groups, Kafka 4.1"),
    (
        "::topology_is_described_by_the_nodes_that_a_member_sent",
        ApiKey::StreamsGroupTopologyDescriptionUpdate,
        0,
        "descriptions of topologies, Kafka 4.4",
    ),
    ("::consumer_groups::", ApiKey::ConsumerGroupHeartbeat, 1, "the consumer protocol, Kafka 4.0"),
    ("::consumer_protocol::", ApiKey::ConsumerGroupHeartbeat, 1, "the consumer protocol, Kafka 4.0"),
    ("::transactions::", ApiKey::EndTxn, 5, "the versions that these scenarios send, Kafka 4.0"),
    (
        "::late_transaction_is_aborted_before_its_application_notices",
        ApiKey::EndTxn,
        5,
        "errors that tell a late transaction from another producer, Kafka 4.0",
    ),
    ("::migration::", ApiKey::ConsumerGroupHeartbeat, 1, "the consumer protocol, Kafka 4.0"),
    ("::all_members_are_removed", ApiKey::ConsumerGroupHeartbeat, 1, "the consumer protocol, Kafka 4.0"),
    (
        "::many_groups_are_described_in_one_call",
        ApiKey::DescribeGroups,
        6,
        "errors about missing groups, Kafka 4.0",
    ),
    (
        "::strange_groups_and_bad_arguments_are_refused",
        ApiKey::DescribeGroups,
        6,
        "errors about missing groups, Kafka 4.0",
    ),
    (
        "::features_are_described_and_updates_are_checked",
        ApiKey::EndTxn,
        5,
        "transaction.version 2, Kafka 4.0",
    ),
    ("::wrong_reassignments_are_refused", ApiKey::AlterPartitionReassignments, 1, "KIP-860, Kafka 4.1"),
    (
        "::producer_continues_with_a_recreated_topic",
        ApiKey::Produce,
        13,
        "topic IDs in Produce, without which the new topic may take a batch for the old one, Kafka 4.1",
    ),
    (
        "::offset_that_was_made_for_the_old_topic_is_refused",
        ApiKey::OffsetCommit,
        10,
        "commits with topic IDs, Kafka 4.1",
    ),
    (
        "::scram_users_are_set_described_and_deleted",
        ApiKey::AlterUserScramCredentials,
        0,
        "SCRAM with KRaft, Kafka 3.5",
    ),
    (
        "::wrong_scram_alterations_are_refused_with_their_reason",
        ApiKey::AlterUserScramCredentials,
        0,
        "SCRAM with KRaft, Kafka 3.5",
    ),
    (
        "::tokens_need_an_authenticated_client",
        ApiKey::CreateDelegationToken,
        0,
        "tokens with KRaft, Kafka 3.6",
    ),
    (
        "::topics_are_described_by_name_and_by_id",
        ApiKey::DescribeTopicPartitions,
        0,
        "eligible leaders, Kafka 3.7",
    ),
    ("::live_group_is_described_and_protected", ApiKey::ListGroups, 5, "types of groups, Kafka 3.8"),
    ("::quorum_is_described", ApiKey::DescribeQuorum, 2, "nodes of the quorum, Kafka 3.9"),
];

/// Returns why a test can't run on these brokers, if they lack what it needs. All brokers of a process are the same.
pub(crate) fn missing(servers: &str, test: &str) -> Option<String> {
    static NEWEST: OnceLock<BTreeMap<i16, i16>> = OnceLock::new();
    let needs = NEEDS.iter().filter(|(part, ..)| test.contains(part));
    let mut needs = needs.peekable();
    needs.peek()?;
    let newest = NEWEST.get_or_init(|| newest(servers));
    let mut lacking =
        needs.filter(|(_, api, version, _)| newest.get(&(*api as i16)).is_none_or(|newest| newest < version));
    lacking
        .next()
        .map(|(_, api, version, feature)| format!("the brokers lack {} v{version}: {feature}", api.name()))
}

/// Returns the newest version of each API that a broker serves.
fn newest(servers: &str) -> BTreeMap<i16, i16> {
    let admin = Admin::new(&config(servers, &[])).expect("the configuration is right");
    let described = admin.describe_broker_apis(TIMEOUT).expect("a broker responds");
    let apis = described.into_iter().find_map(|(_, apis)| apis.ok()).expect("a broker responds");
    apis.iter().map(|api| (api.key, *api.versions.end())).collect()
}
