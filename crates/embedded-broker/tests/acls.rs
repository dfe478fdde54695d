//! Access rules at the APIs: each API with a client that may do nothing, everything, or one operation.

mod common;

use common::{Batch, World, fetch_request, produce_request};
use ottla_embedded_broker::{
    Acl, AclOperation, Authorizer, ClusterOptions, ConnectionId, PatternType, Permission, ResourceType,
};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_configs, alter_user_scram_credentials, consumer_group_describe, consumer_group_heartbeat,
        create_acls, create_partitions, create_topics, delete_acls, delete_groups, delete_records,
        delete_topics, describe_acls, describe_cluster, describe_configs, describe_groups,
        describe_user_scram_credentials, elect_leaders, find_coordinator, heartbeat,
        incremental_alter_configs, init_producer_id, join_group, leave_group, list_groups, list_offsets,
        list_partition_reassignments, metadata, offset_commit, offset_delete, offset_fetch,
        offset_for_leader_epoch, share_group_describe, share_group_heartbeat, sync_group,
    },
};

const USER: &str = "User:alice";

/// A cluster of one broker with the topic `t`, and a connection of alice.
fn world(authorizer: Authorizer) -> (World, ConnectionId) {
    let options = ClusterOptions { brokers: 1, authorizer: Some(authorizer), ..ClusterOptions::default() };
    let mut world = World::new(options);
    world.cluster.control().create_topic("t", 1, 1).unwrap();
    let connection = world.open(1);
    world.cluster.set_principal(connection, "alice".to_owned());
    (world, connection)
}

fn allow(operation: AclOperation, resource_type: ResourceType, name: &str) -> Acl {
    Acl::allow("alice", operation, resource_type, name)
}

/// Sends a request of each API. Returns the first error code of each response, in which the resource is named.
#[allow(clippy::too_many_lines)]
fn every_api(world: &mut World, c: ConnectionId) -> Vec<(&'static str, ErrorCode)> {
    let mut codes = Vec::new();
    let t = || "t".to_owned();
    let g = || "g".to_owned();
    let produced = world.call(c, 12, &produce_request("t", 0, -1, Batch::of(1).build()));
    codes.push(("Produce", produced.responses[0].partition_responses[0].error_code));
    let fetched = world.call(c, 12, &fetch_request("t", &[(0, 0)], 0));
    codes.push(("Fetch", fetched.responses[0].partitions[0].error_code));
    let partition = list_offsets::request::Partition { timestamp: -1, ..Default::default() };
    let topic = list_offsets::request::Topic { name: t(), partitions: vec![partition] };
    let request = list_offsets::ListOffsetsRequest { topics: vec![topic], ..Default::default() };
    codes.push(("ListOffsets", world.call(c, 7, &request).topics[0].partitions[0].error_code));
    let partition = offset_for_leader_epoch::request::Partition::default();
    let topic = offset_for_leader_epoch::request::Topic { topic: t(), partitions: vec![partition] };
    let request =
        offset_for_leader_epoch::OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() };
    codes.push(("OffsetForLeaderEpoch", world.call(c, 4, &request).topics[0].partitions[0].error_code));
    let topic = metadata::request::Topic { name: Some(t()), ..Default::default() };
    let request = metadata::MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
    codes.push(("Metadata", world.call(c, 12, &request).topics[0].error_code));
    let partition = offset_commit::request::Partition::default();
    let topic =
        offset_commit::request::Topic { name: t(), partitions: vec![partition], ..Default::default() };
    let request = offset_commit::OffsetCommitRequest {
        group_id: g(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    codes.push(("OffsetCommit", world.call(c, 8, &request).topics[0].partitions[0].error_code));
    let request = offset_fetch::OffsetFetchRequest { group_id: g(), topics: None, ..Default::default() };
    codes.push(("OffsetFetch", world.call(c, 7, &request).error_code));
    let request =
        find_coordinator::FindCoordinatorRequest { coordinator_keys: vec![g()], ..Default::default() };
    codes.push(("FindCoordinator", world.call(c, 6, &request).coordinators[0].error_code));
    let request = heartbeat::HeartbeatRequest { group_id: g(), ..Default::default() };
    codes.push(("Heartbeat", world.call(c, 4, &request).error_code));
    let request = leave_group::LeaveGroupRequest { group_id: g(), ..Default::default() };
    codes.push(("LeaveGroup", world.call(c, 4, &request).error_code));
    let request = sync_group::SyncGroupRequest { group_id: g(), ..Default::default() };
    codes.push(("SyncGroup", world.call(c, 5, &request).error_code));
    let request = join_group::JoinGroupRequest { group_id: g(), ..Default::default() };
    codes.push(("JoinGroup", world.call(c, 9, &request).error_code));
    let request = consumer_group_heartbeat::ConsumerGroupHeartbeatRequest {
        group_id: g(),
        member_epoch: 7,
        ..Default::default()
    };
    codes.push(("ConsumerGroupHeartbeat", world.call(c, 1, &request).error_code));
    let request = describe_groups::DescribeGroupsRequest { groups: vec![g()], ..Default::default() };
    codes.push(("DescribeGroups", world.call(c, 5, &request).groups[0].error_code));
    let request =
        consumer_group_describe::ConsumerGroupDescribeRequest { group_ids: vec![g()], ..Default::default() };
    codes.push(("ConsumerGroupDescribe", world.call(c, 1, &request).groups[0].error_code));
    let request = delete_groups::DeleteGroupsRequest { groups_names: vec!["h".to_owned()] };
    codes.push(("DeleteGroups", world.call(c, 2, &request).results[0].error_code));
    let request = offset_delete::OffsetDeleteRequest { group_id: g(), topics: Vec::new() };
    codes.push(("OffsetDelete", world.call(c, 0, &request).error_code));
    let request = init_producer_id::InitProducerIdRequest { transactional_id: None, ..Default::default() };
    codes.push(("InitProducerId", world.call(c, 5, &request).error_code));
    let topic = create_topics::request::Topic {
        name: "new".to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = create_topics::CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    codes.push(("CreateTopics", world.call(c, 7, &request).topics[0].error_code));
    let topic = create_partitions::request::Topic { name: t(), count: 2, ..Default::default() };
    let request = create_partitions::CreatePartitionsRequest {
        topics: vec![topic],
        validate_only: true,
        ..Default::default()
    };
    codes.push(("CreatePartitions", world.call(c, 3, &request).results[0].error_code));
    let partition = delete_records::request::Partition { partition_index: 0, offset: 0 };
    let topic = delete_records::request::Topic { name: t(), partitions: vec![partition] };
    let request = delete_records::DeleteRecordsRequest { topics: vec![topic], ..Default::default() };
    codes.push(("DeleteRecords", world.call(c, 2, &request).topics[0].partitions[0].error_code));
    codes.extend(configs_and_acls(world, c));
    let request = list_partition_reassignments::ListPartitionReassignmentsRequest::default();
    codes.push(("ListPartitionReassignments", world.call(c, 0, &request).error_code));
    let request = delete_topics::DeleteTopicsRequest { topic_names: vec![t()], ..Default::default() };
    codes.push(("DeleteTopics", world.call(c, 5, &request).responses[0].error_code));
    codes
}

fn configs_and_acls(world: &mut World, c: ConnectionId) -> Vec<(&'static str, ErrorCode)> {
    let mut codes = Vec::new();
    let resource = describe_configs::request::Resource {
        resource_type: 2,
        resource_name: "t".to_owned(),
        ..Default::default()
    };
    let request =
        describe_configs::DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    codes.push(("DescribeConfigs", world.call(c, 4, &request).results[0].error_code));
    let resource = alter_configs::request::Resource {
        resource_type: 2,
        resource_name: "t".to_owned(),
        ..Default::default()
    };
    let request = alter_configs::AlterConfigsRequest { resources: vec![resource], validate_only: true };
    codes.push(("AlterConfigs", world.call(c, 2, &request).responses[0].error_code));
    let resource = incremental_alter_configs::request::Resource {
        resource_type: 2,
        resource_name: "t".to_owned(),
        ..Default::default()
    };
    let request = incremental_alter_configs::IncrementalAlterConfigsRequest {
        resources: vec![resource],
        validate_only: true,
    };
    codes.push(("IncrementalAlterConfigs", world.call(c, 1, &request).responses[0].error_code));
    let request = describe_user_scram_credentials::DescribeUserScramCredentialsRequest::default();
    codes.push(("DescribeUserScramCredentials", world.call(c, 0, &request).error_code));
    let codes_of_users = alter_users(world, c, &[], &[("alice", 4096)]);
    codes.push(("AlterUserScramCredentials", codes_of_users[0].1));
    let request = elect_leaders::ElectLeadersRequest::default();
    codes.push(("ElectLeaders", world.call(c, 2, &request).error_code));
    codes.push(("DescribeAcls", world.call(c, 3, &describe_all()).error_code));
    let request = create_acls::CreateAclsRequest { creations: vec![creation("u", 3)] };
    codes.push(("CreateAcls", world.call(c, 3, &request).results[0].error_code));
    let request = delete_acls::DeleteAclsRequest { filters: vec![filter("u")] };
    codes.push(("DeleteAcls", world.call(c, 3, &request).filter_results[0].error_code));
    codes
}

fn describe_all() -> describe_acls::DescribeAclsRequest {
    describe_acls::DescribeAclsRequest {
        resource_type_filter: 1,
        resource_name_filter: None,
        pattern_type_filter: 1,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    }
}

fn creation(topic: &str, pattern: i8) -> create_acls::request::Creation {
    create_acls::request::Creation {
        resource_type: 2,
        resource_name: topic.to_owned(),
        resource_pattern_type: pattern,
        principal: "User:bob".to_owned(),
        host: "*".to_owned(),
        operation: 3,
        permission_type: 3,
    }
}

fn filter(topic: &str) -> delete_acls::request::Filter {
    delete_acls::request::Filter {
        resource_type_filter: 2,
        resource_name_filter: Some(topic.to_owned()),
        pattern_type_filter: 1,
        principal_filter: None,
        host_filter: None,
        operation: 1,
        permission_type: 1,
    }
}

/// The error of a client that may do nothing.
fn refusal(api: &str) -> ErrorCode {
    match api {
        "OffsetCommit"
        | "OffsetFetch"
        | "FindCoordinator"
        | "Heartbeat"
        | "LeaveGroup"
        | "SyncGroup"
        | "JoinGroup"
        | "ConsumerGroupHeartbeat"
        | "DescribeGroups"
        | "ConsumerGroupDescribe"
        | "DeleteGroups"
        | "OffsetDelete" => ErrorCode::GROUP_AUTHORIZATION_FAILED,
        "InitProducerId"
        | "DescribeAcls"
        | "CreateAcls"
        | "DeleteAcls"
        | "ListPartitionReassignments"
        | "DescribeUserScramCredentials"
        | "AlterUserScramCredentials"
        | "ElectLeaders" => ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
        _ => ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    }
}

#[test]
fn client_without_rights_gets_the_error_of_each_api() {
    let (mut world, connection) = world(Authorizer::default());
    for (api, code) in every_api(&mut world, connection) {
        assert_eq!(code, refusal(api), "{api}");
    }
}

/// Returns the APIs that a client with these rules may use.
fn permitted(rules: &[Acl]) -> Vec<&'static str> {
    let (mut world, connection) = world(Authorizer::new(rules.iter().cloned()));
    let codes = every_api(&mut world, connection);
    codes.into_iter().filter(|(api, code)| *code != refusal(api)).map(|(api, _)| api).collect()
}

#[test]
fn each_operation_on_a_topic_permits_its_apis() {
    use AclOperation as O;
    let described = ["ListOffsets", "OffsetForLeaderEpoch", "Metadata"];
    for (operation, apis) in [
        (O::Describe, &described[..]),
        (O::Read, &["Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Metadata"]),
        (O::Write, &["Produce", "ListOffsets", "OffsetForLeaderEpoch", "Metadata", "InitProducerId"]),
        (O::Delete, &["ListOffsets", "OffsetForLeaderEpoch", "Metadata", "DeleteRecords", "DeleteTopics"]),
        (O::Alter, &["ListOffsets", "OffsetForLeaderEpoch", "Metadata", "CreatePartitions"]),
        (O::DescribeConfigs, &["DescribeConfigs"]),
        (O::AlterConfigs, &["DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs"]),
        (O::Create, &[]),
    ] {
        assert_eq!(permitted(&[allow(operation, ResourceType::Topic, "t")]), apis, "{operation:?}");
    }
    assert_eq!(permitted(&[allow(O::Create, ResourceType::Topic, "new")]), ["CreateTopics"]);
}

#[test]
fn each_operation_on_a_group_or_the_cluster_permits_its_apis() {
    use AclOperation as O;
    let on_group = |operation| permitted(&[allow(operation, ResourceType::Group, "*")]);
    let described = ["OffsetFetch", "FindCoordinator", "DescribeGroups", "ConsumerGroupDescribe"];
    assert_eq!(on_group(O::Describe), described);
    let deleted = [
        "OffsetFetch",
        "FindCoordinator",
        "DescribeGroups",
        "ConsumerGroupDescribe",
        "DeleteGroups",
        "OffsetDelete",
    ];
    assert_eq!(on_group(O::Delete), deleted);
    let read = [
        "OffsetCommit",
        "OffsetFetch",
        "FindCoordinator",
        "Heartbeat",
        "LeaveGroup",
        "SyncGroup",
        "JoinGroup",
        "ConsumerGroupHeartbeat",
        "DescribeGroups",
        "ConsumerGroupDescribe",
    ];
    assert_eq!(on_group(O::Read), read);
    let on_cluster = |operation| permitted(&[allow(operation, ResourceType::Cluster, "kafka-cluster")]);
    assert_eq!(on_cluster(O::Create), ["CreateTopics"]);
    let described = ["DescribeUserScramCredentials", "DescribeAcls", "ListPartitionReassignments"];
    assert_eq!(on_cluster(O::Describe), described);
    let altered = [
        "DescribeUserScramCredentials",
        "AlterUserScramCredentials",
        "ElectLeaders",
        "DescribeAcls",
        "CreateAcls",
        "DeleteAcls",
        "ListPartitionReassignments",
    ];
    assert_eq!(on_cluster(O::Alter), altered);
    assert_eq!(on_cluster(O::IdempotentWrite), ["InitProducerId"]);
}

#[test]
fn client_with_all_rights_is_refused_nothing() {
    let rules = [
        allow(AclOperation::All, ResourceType::Topic, "*"),
        allow(AclOperation::All, ResourceType::Group, "*"),
        allow(AclOperation::All, ResourceType::Cluster, "kafka-cluster"),
    ];
    assert_eq!(permitted(&rules).len(), 32);
    let (mut world, connection) = world(Authorizer::default().super_user(USER));
    for (api, code) in every_api(&mut world, connection) {
        assert_ne!(code, refusal(api), "{api} of a super user");
    }
}

#[test]
fn commits_need_the_topic_as_well_as_the_group() {
    let (mut world, connection) =
        world(Authorizer::new([allow(AclOperation::Read, ResourceType::Group, "g")]));
    let codes = every_api(&mut world, connection);
    let commit = codes.iter().find(|(api, _)| *api == "OffsetCommit").unwrap();
    assert_eq!(commit.1, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
}

#[test]
fn lists_have_only_what_the_client_may_describe() {
    let (mut world, connection) = world(Authorizer::new([
        allow(AclOperation::Describe, ResourceType::Topic, "a"),
        allow(AclOperation::Describe, ResourceType::Topic, "p").prefixed(),
        allow(AclOperation::Read, ResourceType::Group, "*"),
    ]));
    for name in ["a", "pq", "secret"] {
        world.cluster.control().create_topic(name, 1, 1).unwrap();
    }
    let request = metadata::MetadataRequest { topics: None, ..Default::default() };
    let topics = world.call(connection, 12, &request).topics;
    let names: Vec<_> = topics.iter().filter_map(|topic| topic.name.as_deref()).collect();
    assert_eq!(names, ["a", "pq"]);
    let id = world.cluster.control().topic_id("secret").unwrap();
    let topic = metadata::request::Topic { topic_id: id, name: None };
    let request = metadata::MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
    assert_eq!(world.call(connection, 12, &request).topics[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    every_api(&mut world, connection);
    let listed = |world: &mut World| {
        world.call(connection, 5, &list_groups::ListGroupsRequest::default()).groups.len()
    };
    let all = listed(&mut world);
    let acl = allow(AclOperation::Read, ResourceType::Group, "*");
    assert!(world.cluster.control().authorizer().unwrap().remove(&acl));
    assert_eq!((all > 0, listed(&mut world)), (true, 0));
}

#[test]
fn metadata_creates_a_topic_only_with_the_right_to_create() {
    let describe = allow(AclOperation::Describe, ResourceType::Topic, "*");
    let create = allow(AclOperation::Create, ResourceType::Topic, "new");
    for (rules, expected) in [
        (vec![], ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        (vec![describe.clone()], ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        (vec![describe, create], ErrorCode::NONE),
    ] {
        let (mut world, connection) = world(Authorizer::new(rules));
        let topic = metadata::request::Topic { name: Some("new".to_owned()), ..Default::default() };
        let request = metadata::MetadataRequest {
            topics: Some(vec![topic]),
            allow_auto_topic_creation: true,
            ..Default::default()
        };
        assert_eq!(world.call(connection, 12, &request).topics[0].error_code, expected);
    }
}

#[test]
fn permitted_operations_are_reported() {
    let (mut world, connection) = world(Authorizer::new([
        allow(AclOperation::Read, ResourceType::Topic, "t"),
        allow(AclOperation::Describe, ResourceType::Group, "g"),
        allow(AclOperation::Create, ResourceType::Cluster, "kafka-cluster"),
    ]));
    let topic = metadata::request::Topic { name: Some("t".to_owned()), ..Default::default() };
    let request = metadata::MetadataRequest {
        topics: Some(vec![topic]),
        include_topic_authorized_operations: true,
        ..Default::default()
    };
    let topic = &world.call(connection, 12, &request).topics[0];
    assert_eq!(topic.topic_authorized_operations, 1 << 3 | 1 << 8);
    let request = describe_groups::DescribeGroupsRequest {
        groups: vec!["g".to_owned()],
        include_authorized_operations: true,
    };
    assert_eq!(world.call(connection, 5, &request).groups[0].authorized_operations, 1 << 8);
    let request = describe_cluster::DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        endpoint_type: 1,
        ..Default::default()
    };
    assert_eq!(world.call(connection, 2, &request).cluster_authorized_operations, 1 << 5);
}

#[test]
fn permitted_operations_on_share_groups_are_reported() {
    let (mut world, connection) = world(Authorizer::new([
        allow(AclOperation::Read, ResourceType::Group, "s"),
        allow(AclOperation::Read, ResourceType::Topic, "t"),
    ]));
    let join = share_group_heartbeat::ShareGroupHeartbeatRequest {
        group_id: "s".to_owned(),
        member_id: "AAAAAAAAAAAAAAAAAAAAAQ".to_owned(),
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        ..Default::default()
    };
    assert_eq!(world.call(connection, 1, &join).error_code, ErrorCode::NONE);
    let request = share_group_describe::ShareGroupDescribeRequest {
        group_ids: vec!["s".to_owned()],
        include_authorized_operations: true,
    };
    let described = world.call(connection, 1, &request).groups.remove(0);
    assert_eq!((described.error_code, described.authorized_operations), (ErrorCode::NONE, 1 << 3 | 1 << 8));
}

#[test]
fn rules_are_created_described_and_deleted() {
    let (mut world, connection) = world(Authorizer::default().super_user(USER));
    let creations = vec![creation("orders", 3), creation("or", 4), creation("", 3)];
    let created = world.call(connection, 3, &create_acls::CreateAclsRequest { creations }).results;
    let codes: Vec<_> = created.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, ErrorCode::INVALID_REQUEST]);
    let described = world.call(connection, 3, &describe_all()).resources;
    let names: Vec<_> =
        described.iter().map(|resource| (resource.resource_name.as_str(), resource.pattern_type)).collect();
    assert_eq!(names, [("or", 4), ("orders", 3)]);
    assert_eq!(described[1].acls[0].principal, "User:bob");
    let filters = vec![filter("orders"), filter("none")];
    let deleted = world.call(connection, 3, &delete_acls::DeleteAclsRequest { filters }).filter_results;
    assert_eq!((deleted[0].matching_acls.len(), deleted[1].matching_acls.len()), (1, 0));
    let left: Vec<_> = world.cluster.control().authorizer().unwrap().acls().cloned().collect();
    assert_eq!(
        (left.len(), left[0].pattern, left[0].permission),
        (1, PatternType::Prefixed, Permission::Allow)
    );
}

#[test]
fn cluster_without_an_authorizer_has_no_rules() {
    let mut world = World::with_topic();
    let connection = world.open(1);
    assert_eq!(world.call(connection, 3, &describe_all()).error_code, ErrorCode::SECURITY_DISABLED);
    let request = create_acls::CreateAclsRequest { creations: vec![creation("t", 3)] };
    assert_eq!(world.call(connection, 3, &request).results[0].error_code, ErrorCode::SECURITY_DISABLED);
}

/// Deletes and sets credentials of SCRAM-SHA-256. Returns the result of each user.
fn alter_users(
    world: &mut World,
    c: ConnectionId,
    deleted: &[&str],
    set: &[(&str, i32)],
) -> Vec<(String, ErrorCode)> {
    use alter_user_scram_credentials::{AlterUserScramCredentialsRequest, request};
    let deletion = |user: &&str| request::Deletion { name: (*user).to_owned(), mechanism: 1 };
    let upsertion = |(user, iterations): &(&str, i32)| request::Upsertion {
        name: (*user).to_owned(),
        mechanism: 1,
        iterations: *iterations,
        salt: vec![1],
        salted_password: vec![2; 32],
    };
    let request = AlterUserScramCredentialsRequest {
        deletions: deleted.iter().map(deletion).collect(),
        upsertions: set.iter().map(upsertion).collect(),
    };
    let results = world.call(c, 0, &request).results.into_iter();
    results.map(|result| (result.user, result.error_code)).collect()
}

#[test]
fn scram_users_have_results_of_their_own() {
    let (mut world, c) = world(Authorizer::default().super_user(USER));
    let altered = alter_users(&mut world, c, &["b", "d"], &[("a", 4096), ("b", 4096), ("c", 100)]);
    let codes: Vec<_> = altered.iter().map(|(user, code)| (user.as_str(), *code)).collect();
    let expected = [
        ("a", ErrorCode::NONE),
        ("b", ErrorCode::DUPLICATE_RESOURCE),
        ("c", ErrorCode::UNACCEPTABLE_CREDENTIAL),
        ("d", ErrorCode::RESOURCE_NOT_FOUND),
    ];
    assert_eq!(codes, expected);
    let user = |name: &str| describe_user_scram_credentials::request::User { name: name.to_owned() };
    let request = describe_user_scram_credentials::DescribeUserScramCredentialsRequest {
        users: Some(vec![user("a"), user("b"), user("e"), user("e")]),
    };
    let described = world.call(c, 0, &request).results;
    let codes: Vec<_> = described.iter().map(|one| (one.user.as_str(), one.error_code)).collect();
    let expected =
        [("a", ErrorCode::NONE), ("b", ErrorCode::RESOURCE_NOT_FOUND), ("e", ErrorCode::DUPLICATE_RESOURCE)];
    assert_eq!(codes, expected);
    assert_eq!(described[0].credential_infos[0].iterations, 4096);
    assert_eq!(alter_users(&mut world, c, &["a"], &[]), [("a".to_owned(), ErrorCode::NONE)]);
}
