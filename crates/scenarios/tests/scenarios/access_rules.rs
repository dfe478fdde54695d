//! Access rules: the same requests with the same rules to embedded brokers and to Apache Kafka's StandardAuthorizer. Both have
//! to respond as `access_rules.txt` says, which was recorded with Apache Kafka 4.3.1.
//!
//! `OTTLA_SECURED_BOOTSTRAP` names a broker of Apache Kafka with PLAIN, the super user `admin` and the user `bob`, both with the
//! password `secret`; `tests/kafka/sasl.sh` has one. `OTTLA_RECORD` names a file to which the responses are written instead.

mod requests;

use std::env;

use ottla_embedded_broker::{Authorizer, ClusterOptions, EmbeddedCluster, SaslListener, SaslMechanism};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        create_acls::{CreateAclsRequest, request::Creation},
        create_topics::{CreateTopicsRequest, request::Topic},
        delete_acls::{DeleteAclsRequest, request::Filter},
        describe_acls::DescribeAclsRequest,
    },
};
use ottla_scenarios::{eventually, raw::RawClient};

use requests::Names;

const EXPECTED: &str = include_str!("access_rules.txt");
const PASSWORD: &str = "secret";

/// The numbers of operations, resource types and so on in the protocol.
mod code {
    pub const ANY: i8 = 1;
    pub const LITERAL: i8 = 3;
    pub const PREFIXED: i8 = 4;
    pub const DENY: i8 = 2;
    pub const ALLOW: i8 = 3;
    pub const TOPIC: i8 = 2;
    pub const GROUP: i8 = 3;
    pub const CLUSTER: i8 = 4;
    pub const TRANSACTIONAL_ID: i8 = 5;
}

const OPERATIONS: [(&str, i8); 12] = [
    ("All", 2),
    ("Read", 3),
    ("Write", 4),
    ("Create", 5),
    ("Delete", 6),
    ("Alter", 7),
    ("Describe", 8),
    ("ClusterAction", 9),
    ("DescribeConfigs", 10),
    ("AlterConfigs", 11),
    ("IdempotentWrite", 12),
    ("TwoPhaseCommit", 15),
];

/// The rules of each case, separated by commas: an operation and a resource; `-` denies, `prefix` is about a prefix of the
/// name, `every` about all names.
const CASES: &[&str] = &[
    "",
    "Describe topic",
    "Read topic",
    "Write topic",
    "Delete topic",
    "Alter topic",
    "DescribeConfigs topic",
    "AlterConfigs topic",
    "Create topic",
    "Create new",
    "All topic",
    "Describe group",
    "Read group",
    "Delete group",
    "Alter group",
    "DescribeConfigs group",
    "AlterConfigs group",
    "All group",
    "Create cluster",
    "Describe cluster",
    "Alter cluster",
    "DescribeConfigs cluster",
    "AlterConfigs cluster",
    "IdempotentWrite cluster",
    "ClusterAction cluster",
    "All cluster",
    "Describe transaction",
    "Write transaction",
    "Write transaction, Write topic",
    "Write transaction, Read group",
    "Write transaction, Read group, Read topic",
    "All transaction",
    "Read group, Describe topic",
    "Read group, Read topic",
    "Read every topic",
    "Write prefix topic",
    "All every topic, -Read topic",
    "All topic, -Describe topic",
    "-Write topic, Write every topic",
    "All topic, All group, All cluster, All transaction",
];

/// Returns a rule for bob.
fn rule(text: &str, names: &Names) -> Creation {
    let (permission_type, text) = match text.strip_prefix('-') {
        Some(rest) => (code::DENY, rest),
        None => (code::ALLOW, text),
    };
    let words: Vec<&str> = text.split(' ').collect();
    let operation = OPERATIONS.iter().find(|(name, _)| *name == words[0]).expect("an operation").1;
    let kind = words[words.len() - 1];
    let (resource_type, name) = match kind {
        "topic" => (code::TOPIC, &*names.topic),
        "new" => (code::TOPIC, &*names.new_topic),
        "group" => (code::GROUP, &*names.group),
        "cluster" => (code::CLUSTER, "kafka-cluster"),
        "transaction" => (code::TRANSACTIONAL_ID, &*names.transactional_id),
        other => panic!("{other}?"),
    };
    let (resource_pattern_type, name) = match words[1] {
        "every" => (code::LITERAL, "*"),
        "prefix" => (code::PREFIXED, &name[..name.len() - 1]),
        _ => (code::LITERAL, name),
    };
    Creation {
        resource_type,
        resource_name: name.to_owned(),
        resource_pattern_type,
        principal: "User:bob".to_owned(),
        host: "*".to_owned(),
        operation,
        permission_type,
    }
}

/// Returns the number of rules for bob.
fn count(admin: &mut RawClient) -> usize {
    let request = DescribeAclsRequest {
        resource_type_filter: code::ANY,
        resource_name_filter: None,
        pattern_type_filter: code::ANY,
        principal_filter: Some("User:bob".to_owned()),
        host_filter: None,
        operation: code::ANY,
        permission_type: code::ANY,
    };
    let response = admin.call(3, &request);
    assert_eq!(response.error_code, ErrorCode::NONE);
    response.resources.iter().map(|resource| resource.acls.len()).sum()
}

/// Creates a topic, and waits until it has a leader.
fn create_topic(admin: &mut RawClient, name: &str) {
    let topic =
        Topic { name: name.to_owned(), num_partitions: 1, replication_factor: 1, ..Default::default() };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
    assert_eq!(admin.call(7, &request).topics[0].error_code, ErrorCode::NONE);
    assert!(eventually(|| {
        let topics = admin.metadata(&[name]).topics;
        topics[0].partitions.iter().any(|partition| partition.leader_id >= 0)
    }));
}

/// Returns the responses of a case, a line per kind of response.
fn case(admin: &mut RawClient, bob: &mut RawClient, rules: &str, names: &Names) -> String {
    let rules: Vec<&str> = rules.split(", ").filter(|rule| !rule.is_empty()).collect();
    create_topic(admin, &names.topic);
    let names = &Names { topic_id: admin.topic_id(&names.topic), ..names.clone() };
    let creations: Vec<_> = rules.iter().map(|text| rule(text, names)).collect();
    for result in admin.call(3, &CreateAclsRequest { creations }).results {
        assert_eq!(result.error_code, ErrorCode::NONE, "{:?}", result.error_message);
    }
    assert!(eventually(|| count(admin) == rules.len()));
    let mut text = format!("{}\n", if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") });
    let responses = requests::each(bob, names);
    let kinds: [(&str, &dyn Fn(ErrorCode) -> bool); 5] = [
        ("permitted", &|code| !requests::is_refusal(code)),
        ("topic", &|code| code == ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        ("group", &|code| code == ErrorCode::GROUP_AUTHORIZATION_FAILED),
        ("cluster", &|code| code == ErrorCode::CLUSTER_AUTHORIZATION_FAILED),
        ("transactional ID", &|code| code == ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ];
    for (kind, is_it) in kinds {
        let apis: Vec<_> = responses.iter().filter(|(_, code)| is_it(*code)).map(|(api, _)| *api).collect();
        text += &format!("  {kind}: {}\n", apis.join(" "));
    }
    let filter = Filter {
        resource_type_filter: code::ANY,
        resource_name_filter: None,
        pattern_type_filter: code::ANY,
        principal_filter: Some("User:bob".to_owned()),
        host_filter: None,
        operation: code::ANY,
        permission_type: code::ANY,
    };
    admin.call(3, &DeleteAclsRequest { filters: vec![filter] });
    assert!(eventually(|| count(admin) == 0));
    text
}

/// Runs all cases with these brokers.
fn responses(servers: &str) -> String {
    let client = |user| RawClient::connect(servers).authenticate(user, PASSWORD);
    let (mut admin, mut bob) = (client("admin"), client("bob"));
    let run = std::process::id();
    // A coordinator that is still starting does not check topics.
    assert!(eventually(|| requests::coordinators_work(&mut admin)));
    let cases = CASES.iter().enumerate().map(|(number, rules)| {
        let names = Names {
            topic: format!("rules-{run}-{number}-topic"),
            topic_id: Default::default(),
            new_topic: format!("rules-{run}-{number}-new"),
            group: format!("rules-{run}-{number}-group"),
            transactional_id: format!("rules-{run}-{number}-id"),
        };
        case(&mut admin, &mut bob, rules, &names)
    });
    cases.collect()
}

/// Compares responses line by line.
fn compare(found: &str) {
    if let Ok(file) = env::var("OTTLA_RECORD") {
        std::fs::write(file, found).expect("the file can be written");
        return;
    }
    let mut case = "";
    for (line, expected) in found.lines().zip(EXPECTED.lines()) {
        if !expected.starts_with(' ') {
            case = expected;
        }
        assert_eq!(line, expected, "with {case}");
    }
    assert_eq!(found.lines().count(), EXPECTED.lines().count());
}

/// Runs on embedded brokers, or on the ones of Apache Kafka that `OTTLA_SECURED_BOOTSTRAP` names.
#[test]
fn brokers_permit_what_kafka_permits() {
    if let Ok(servers) = env::var("OTTLA_SECURED_BOOTSTRAP") {
        return compare(&responses(&servers));
    }
    let sasl = SaslListener::new(&[SaslMechanism::Plain]).user("admin", PASSWORD).user("bob", PASSWORD);
    let options = ClusterOptions {
        brokers: 1,
        sasl: Some(sasl),
        authorizer: Some(Authorizer::default().super_user("User:admin")),
        ..ClusterOptions::default()
    };
    let cluster = EmbeddedCluster::start(options).expect("brokers");
    compare(&responses(&cluster.bootstrap_servers()));
}
