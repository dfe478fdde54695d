//! Administrative calls with invalid elements: each has an error in its place of the results, and the others are carried out.

use std::{collections::BTreeMap, time::Duration};

use ottla::{
    Admin, Config, ErrorKind, GroupOffset, LeaderEpoch, NewPartitions, NewTopic, OffsetSpec, Producer,
    Record, RecordsToDelete, Result, Secret, ShareConsumer, TopicPartition, Uuid,
    admin::{
        AclBinding, AclFilter, AclOperation, AclResourceType, ElectionType, ScramAlteration, ScramMechanism,
        scram_password,
    },
};
use ottla_embedded_broker::{Authorizer, ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(60);

/// Starts a cluster with the topic `t`, which has two partitions and three records in the first.
fn started() -> (EmbeddedCluster, Admin) {
    let mut authorizer = Authorizer::default();
    authorizer.allow_everyone_if_no_acl_found = true;
    let options = ClusterOptions { authorizer: Some(authorizer), ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).unwrap();
    cluster.control(|control| control.create_topic("t", 2, 1)).unwrap();
    let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    let producer = Producer::new(&config).unwrap();
    for _ in 0..3 {
        producer.deliver("t", Record::new().value("v").partition(0), SOON).unwrap();
    }
    producer.close(SOON).unwrap();
    let admin = Admin::new(&config).unwrap();
    (cluster, admin)
}

/// Checks the results of a call with one valid element among invalid ones: each of the latter has an error of its own.
fn check<T>(call: &str, valid: usize, results: Result<Vec<Result<T>>>) {
    let results = results.unwrap_or_else(|error| panic!("{call} is refused as a whole: {error}"));
    for (number, result) in results.iter().enumerate() {
        let kind = result.as_ref().err().map(ottla::Error::kind);
        let expected = (number != valid).then_some(ErrorKind::InvalidArgument);
        let error = result.as_ref().err();
        assert_eq!(kind, expected, "{call}: element {number} of {}: {error:?}", results.len());
    }
    assert!(results.len() > 1 && valid < results.len(), "{call}: {} results", results.len());
}

fn check_named<K, T>(call: &str, valid: usize, results: Result<Vec<(K, Result<T>)>>) {
    check(call, valid, results.map(|all| all.into_iter().map(|(_, result)| result).collect()));
}

#[test]
fn invalid_topic_does_not_refuse_the_others() {
    let (_cluster, admin) = started();
    let topics = [
        NewTopic::new("not a name", 1, 1),
        NewTopic::new("n", 1, 1),
        NewTopic::new("n", 2, 1),
        NewTopic::new("o", 0, 1),
        NewTopic::new("p", 1, -7),
    ];
    let created = admin.create_topics(&topics, SOON).unwrap();
    let names: Vec<_> = created.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["not a name", "n", "n", "o", "p"], "the order of the call");
    check_named("create_topics", 1, Ok(created));
    assert_eq!(admin.list_topics(SOON).unwrap(), ["n", "t"]);
    let partitions = [NewPartitions::new("n", 0), NewPartitions::new("", 3), NewPartitions::new("n", 3)];
    check_named("create_partitions", 2, admin.create_partitions(&partitions, SOON));
    let described = admin.metadata(Some(&["n", "not a name"]), SOON).unwrap().topics;
    let errors: Vec<_> =
        described.iter().map(|topic| (&*topic.name, topic.error.as_ref().map(ottla::Error::kind))).collect();
    assert_eq!(errors, [("n", None), ("not a name", Some(ErrorKind::InvalidArgument))]);
    assert_eq!(described[0].partitions.len(), 3);
    let id: Uuid = described[0].id.as_deref().unwrap().parse().unwrap();
    check_named("describe_topics_by_id", 1, admin.describe_topics_by_id(&[Uuid::ZERO, id, id], SOON));
    check_named("delete_topics", 0, admin.delete_topics(&["n", "n", ".", ""], SOON));
    assert_eq!(admin.list_topics(SOON).unwrap(), ["t"]);
    let id = admin.describe_topics(&["t"], SOON).unwrap()[0].id.as_deref().unwrap().parse().unwrap();
    check_named("delete_topics_by_id", 2, admin.delete_topics_by_id(&[Uuid::ZERO, Uuid::ZERO, id], SOON));
    assert!(admin.list_topics(SOON).unwrap().is_empty());
}

#[test]
fn invalid_partition_does_not_refuse_the_others() {
    let (_cluster, admin) = started();
    let questions =
        [("t", -1, OffsetSpec::Latest), ("t", 0, OffsetSpec::Timestamp(-5)), ("t", 0, OffsetSpec::Latest)];
    check("list_offsets", 2, admin.list_offsets(&questions, SOON));
    let epoch = LeaderEpoch::from_wire(0).unwrap();
    let epochs = [("t", 0, epoch), ("t", 0, epoch), ("a/b", 0, epoch)];
    check("list_epoch_ends", 0, admin.list_epoch_ends(&epochs, SOON));
    let records = [
        ("t", 0, RecordsToDelete::Before(-2)),
        ("t", -1, RecordsToDelete::All),
        ("t", 1, RecordsToDelete::All),
        ("t", 1, RecordsToDelete::All),
    ];
    check("delete_records", 2, admin.delete_records(&records, SOON));
    let partitions = [("", 0), ("t", 0), ("t", 0), ("t", -1)];
    check("describe_producers", 1, admin.describe_producers(&partitions, SOON));
    check_named("elect_leaders", 1, admin.elect_leaders(ElectionType::Preferred, Some(&partitions), SOON));
    let replicas = |ids: &[i32]| Some(ids.to_vec());
    let reassignments = BTreeMap::from([
        (TopicPartition::new("a/b", 0), replicas(&[1])),
        (TopicPartition::new("t", 0), replicas(&[1])),
        (TopicPartition::new("t", 1), replicas(&[1, 1])),
    ]);
    check_named("alter_reassignments", 1, admin.alter_reassignments(&reassignments, SOON));
    let ongoing = admin.list_reassignments(Some(&[("a/b", 0), ("t", 0)]), SOON).unwrap();
    assert!(ongoing.is_empty());
    let leader = admin.describe_topics(&["t"], SOON).unwrap()[0].partitions[1].leader.unwrap();
    let filter = [("a/b", 0), ("t", 0)];
    let dirs = admin.describe_log_dirs(Some(&[-1, leader, leader]), Some(&filter), SOON).unwrap();
    let path = dirs[1].1.as_ref().unwrap()[0].path.clone();
    check_named("describe_log_dirs", 1, Ok(dirs));
    let paths = BTreeMap::from([
        (TopicPartition::new("t", 0), "relative".to_owned()),
        (TopicPartition::new("t", 1), path),
    ]);
    check_named("alter_replica_log_dirs", 1, admin.alter_replica_log_dirs(leader, &paths, SOON));
}

#[test]
fn invalid_group_or_offset_does_not_refuse_the_others() {
    let (_cluster, admin) = started();
    let offsets = [
        GroupOffset::new("t", 0, -1),
        GroupOffset::new("t", 1, 0),
        GroupOffset::new("t", 1, 1),
        GroupOffset::new("a/b", 0, 0),
    ];
    check_named("alter_group_offsets", 1, admin.alter_group_offsets("g", &offsets, SOON));
    let partitions = [("t", 1), ("t", -1), ("", 0), ("t", 1)];
    check_named("list_group_offsets", 0, admin.list_group_offsets("g", Some(&partitions), SOON));
    check_named("delete_group_offsets", 0, admin.delete_group_offsets("g", &partitions, SOON));
    check_named("describe_groups", 1, admin.describe_groups(&["", "g", "g"], SOON));
    check_named("delete_groups", 1, admin.delete_groups(&["", "g", "g"], SOON));
    let ids = ["", "id", "id"];
    check_named("fence_producers", 1, admin.fence_producers(&ids, SOON));
    check_named("describe_transactions", 1, admin.describe_transactions(&ids, SOON));
}

#[test]
fn invalid_element_about_share_groups_does_not_refuse_the_others() {
    let (cluster, admin) = started();
    let servers = cluster.bootstrap_servers();
    let config = Config::from_properties([("bootstrap.servers", &*servers), ("group.id", "s")]).unwrap();
    let member = ShareConsumer::new(&config).unwrap();
    member.subscribe(&["t"]).unwrap();
    while admin.describe_share_groups(&["s"], SOON).unwrap()[0].1.is_err() {
        drop(member.poll(Duration::from_millis(20)).unwrap());
    }
    member.close(SOON).unwrap();
    let offset = |topic: &str, partition, offset: i64| (TopicPartition::new(topic, partition), offset);
    let offsets = [offset("t", 0, -1), offset("t", 1, 0), offset("t", 1, 1), offset("a/b", 0, 0)];
    check_named("alter_share_group_offsets", 1, admin.alter_share_group_offsets("s", &offsets, SOON));
    let partitions = [("t", 1), ("t", -1), ("", 0), ("t", 1)];
    check_named("list_share_group_offsets", 0, admin.list_share_group_offsets("s", Some(&partitions), SOON));
    check_named("describe_share_groups", 1, admin.describe_share_groups(&["", "s", "s"], SOON));
    let topics = ["a/b", "t", "t"];
    check_named("delete_share_group_offsets", 1, admin.delete_share_group_offsets("s", &topics, SOON));
    let described = admin.describe_streams_groups(&["", "s", "s"], SOON).unwrap();
    let kinds = described.iter().map(|(_, result)| result.as_ref().err().map(ottla::Error::kind));
    let invalid: Vec<bool> = kinds.map(|kind| kind == Some(ErrorKind::InvalidArgument)).collect();
    assert_eq!(invalid, [true, false, true], "it is a share group");
}

#[test]
fn invalid_rule_user_or_quota_does_not_refuse_the_others() {
    let (_cluster, admin) = started();
    let rule = |name: &str| AclBinding::allow("User:a", AclOperation::Read, AclResourceType::Topic, name);
    let vague = AclBinding::allow("User:a", AclOperation::Any, AclResourceType::Topic, "t");
    check("create_acls", 1, admin.create_acls(&[vague, rule("t"), rule("")], SOON));
    let unknown = AclFilter { operation: AclOperation::Unknown, ..AclFilter::default() };
    let nameless = AclFilter { name: Some(String::new()), ..AclFilter::default() };
    check("delete_acls", 2, admin.delete_acls(&[unknown, nameless, AclFilter::default()], SOON));
    let change = scram_password("u", ScramMechanism::Sha256, 4096, &Secret::from("secret")).unwrap();
    let delete = |user: &str, mechanism| ScramAlteration::Delete { user: user.to_owned(), mechanism };
    let changes = [
        delete("v", ScramMechanism::Unknown),
        change,
        delete("u", ScramMechanism::Sha256),
        delete("", ScramMechanism::Sha256),
    ];
    check_named("alter_scram_users", 1, admin.alter_scram_users(&changes, SOON));
    check_named("describe_scram_users", 1, admin.describe_scram_users(Some(&["", "u", "u"]), SOON));
    let user = |name: &str| BTreeMap::from([("user".to_owned(), Some(name.to_owned()))]);
    let quota = |value| BTreeMap::from([("consumer_byte_rate".to_owned(), Some(value))]);
    let quotas = BTreeMap::from([
        (BTreeMap::new(), quota(1.0)),
        (user(""), quota(1.0)),
        (user("b"), quota(1.0)),
        (user("c"), quota(f64::NAN)),
        (user("d"), BTreeMap::new()),
    ]);
    check_named("alter_client_quotas", 2, admin.alter_client_quotas(&quotas, SOON));
}
