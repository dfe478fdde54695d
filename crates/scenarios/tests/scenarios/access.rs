//! Access control lists, SCRAM users and elections of leaders.
//!
//! Apache Kafka needs an authorizer for access control lists: `cargo xtask kafka start 3 --set
//! authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer --set super.users=User:ANONYMOUS`.

use ottla::{
    Admin, ErrorCode, ErrorKind, NewTopic, Secret,
    admin::{
        AclBinding, AclFilter, AclOperation, AclResourceType, Election, ElectionType, PatternType,
        ScramAlteration, ScramMechanism, scram_password,
    },
};
use ottla_embedded_broker::{Authorizer, BrokerId, SaslListener, SaslMechanism, Tail};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_scenarios::{Backend, TIMEOUT, eventually, unused_topic_name};

ottla_scenarios::run_on_all!(
    rules_are_created_described_and_deleted,
    scram_users_are_set_described_and_deleted,
    wrong_scram_alterations_are_refused_with_their_reason,
    elections_have_a_result_for_each_partition,
);

ottla_scenarios::run_on_embedded!(
    preferred_leader_is_elected_after_its_broker_is_back,
    users_of_the_admin_api_can_authenticate,
);

fn admin(backend: &Backend) -> Admin {
    Admin::new(&backend.config(&[])).expect("the client's configuration is right")
}

fn broker_error(error: &ottla::Error) -> Option<ErrorCode> {
    match error.kind() {
        ErrorKind::Broker(code) => Some(code),
        _ => None,
    }
}

/// The principal of clients that do not authenticate.
const SUPER_USER: &str = "User:ANONYMOUS";

fn rules_are_created_described_and_deleted(backend: &Backend) {
    let admin = admin(backend);
    let all = AclFilter::default();
    match admin.describe_acls(&all, TIMEOUT) {
        Err(error) if broker_error(&error) == Some(ErrorCode::SECURITY_DISABLED) => {
            // Neither the embedded brokers nor Kafka have an authorizer by default.
            let embedded = Backend::embedded_with(|options| {
                options.authorizer = Some(Authorizer::default().super_user(SUPER_USER));
            });
            rules(&self::admin(&embedded));
        }
        described => {
            described.unwrap();
            rules(&admin);
        }
    }
}

fn rules(admin: &Admin) {
    let name = unused_topic_name();
    let literal = AclBinding::allow("User:bob", AclOperation::Read, AclResourceType::Topic, &name);
    let prefixed = AclBinding::deny("User:eve", AclOperation::All, AclResourceType::Group, &name)
        .prefixed()
        .with_host("10.0.0.1");
    let nameless = AclBinding::allow("bob", AclOperation::Read, AclResourceType::Topic, &name);
    let of_cluster = AclBinding::allow("User:bob", AclOperation::Alter, AclResourceType::Cluster, "other");
    let user = AclBinding::allow("User:bob", AclOperation::CreateTokens, AclResourceType::User, &name);
    let rules = [literal.clone(), prefixed.clone(), nameless, of_cluster, user.clone()];
    let created = admin.create_acls(&rules, TIMEOUT).unwrap();
    let codes: Vec<_> = created.iter().map(|result| result.as_ref().err().and_then(broker_error)).collect();
    let invalid = Some(ErrorCode::INVALID_REQUEST);
    assert_eq!(codes, [None, None, invalid, invalid, None], "{created:?}");
    let parsed = created[2].as_ref().unwrap_err().to_string();
    assert!(parsed.contains("Could not parse principal from `bob`"), "{parsed}");
    assert_eq!(admin.create_acls(&rules[..1], TIMEOUT).unwrap(), [Ok(())], "an existing rule is a success");
    let by_name = AclFilter { name: Some(name.clone()), ..AclFilter::default() };
    let mut found = Vec::new();
    let complete = eventually(|| {
        found = admin.describe_acls(&by_name, TIMEOUT).unwrap();
        found.len() == 3
    });
    found.sort();
    let mut expected = vec![literal.clone(), prefixed.clone(), user.clone()];
    expected.sort();
    assert!(complete && found == expected, "{found:?}");
    let matching = AclFilter {
        resource_type: AclResourceType::Group,
        pattern: PatternType::Match,
        name: Some(format!("{name}-suffix")),
        ..AclFilter::default()
    };
    assert_eq!(admin.describe_acls(&matching, TIMEOUT).unwrap(), std::slice::from_ref(&prefixed));
    let deleted =
        admin.delete_acls(&[AclFilter::from(&prefixed), by_name.clone(), by_name], TIMEOUT).unwrap();
    let deleted: Vec<Vec<_>> = deleted
        .into_iter()
        .map(|filter| {
            let mut rules: Vec<_> = filter.unwrap().into_iter().collect();
            rules.sort_by(|(one, _), (other, _)| one.cmp(other));
            rules
        })
        .collect();
    assert_eq!(deleted[0], [(prefixed, None)]);
    // Kafka lists a rule under each filter that matches it; what an earlier filter deleted is among them or not.
    assert!(deleted[1].contains(&(literal, None)) && deleted[1].contains(&(user, None)), "{deleted:?}");
}

fn scram_users_are_set_described_and_deleted(backend: &Backend) {
    let admin = admin(backend);
    let (user, nobody) = (unused_topic_name(), unused_topic_name());
    let password = Secret::from("correct horse");
    let set = |mechanism, iterations| scram_password(&user, mechanism, iterations, &password).unwrap();
    for change in [set(ScramMechanism::Sha256, 4096), set(ScramMechanism::Sha512, 8192)] {
        assert_eq!(admin.alter_scram_users(&[change], TIMEOUT).unwrap(), [(user.clone(), Ok(()))]);
    }
    let described = || admin.describe_scram_users(Some(&[&nobody, &user]), TIMEOUT).unwrap();
    // Each call may ask another broker, which learns later.
    let mut users = Vec::new();
    assert!(eventually(|| {
        users = described();
        users[1].1.as_ref().is_ok_and(|found| found.len() == 2)
    }));
    assert_eq!((&users[0].0, &users[1].0), (&nobody, &user));
    assert_eq!(broker_error(users[0].1.as_ref().unwrap_err()), Some(ErrorCode::RESOURCE_NOT_FOUND));
    let mut credentials: Vec<_> =
        users[1].1.as_ref().unwrap().iter().map(|one| (one.mechanism, one.iterations)).collect();
    credentials.sort();
    assert_eq!(credentials, [(ScramMechanism::Sha256, 4096), (ScramMechanism::Sha512, 8192)]);
    let all = || admin.describe_scram_users(None, TIMEOUT).unwrap();
    assert!(eventually(|| all().iter().any(|(name, _)| *name == user)));
    let delete = |mechanism| ScramAlteration::Delete { user: user.clone(), mechanism };
    for change in [delete(ScramMechanism::Sha256), delete(ScramMechanism::Sha512)] {
        assert_eq!(admin.alter_scram_users(&[change], TIMEOUT).unwrap(), [(user.clone(), Ok(()))]);
    }
    assert!(eventually(|| described()[1].1.is_err()));
}

fn wrong_scram_alterations_are_refused_with_their_reason(backend: &Backend) {
    let admin = admin(backend);
    let user = unused_topic_name();
    let password = Secret::from("secret");
    let refused = |alteration: ScramAlteration| {
        let results = admin.alter_scram_users(&[alteration], TIMEOUT).unwrap();
        let error = results[0].1.clone().unwrap_err();
        (broker_error(&error), error.to_string())
    };
    for (iterations, reason) in [(4095, "Too few iterations"), (16_385, "Too many iterations")] {
        let few = scram_password(&user, ScramMechanism::Sha256, iterations, &password).unwrap();
        let (code, text) = refused(few);
        assert!(code == Some(ErrorCode::UNACCEPTABLE_CREDENTIAL) && text.contains(reason), "{text}");
    }
    let (code, text) =
        refused(ScramAlteration::Delete { user: user.clone(), mechanism: ScramMechanism::Sha256 });
    assert_eq!(code, Some(ErrorCode::RESOURCE_NOT_FOUND), "{text}");
    let invalid = |result: ottla::Result<_>| {
        let error: ottla::Error = result.expect_err("the arguments are wrong");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    };
    invalid(scram_password("", ScramMechanism::Sha256, 4096, &password).map(drop));
    invalid(scram_password(&user, ScramMechanism::Unknown, 4096, &password).map(drop));
    invalid(scram_password(&user, ScramMechanism::Sha256, i32::MAX, &password).map(drop));
    invalid(scram_password(&user, ScramMechanism::Sha256, 4096, &Secret::from("")).map(drop));
    invalid(admin.alter_scram_users(&[], TIMEOUT).map(drop));
    let twice = [
        ScramAlteration::Delete { user: user.clone(), mechanism: ScramMechanism::Sha256 },
        scram_password(&user, ScramMechanism::Sha512, 4096, &password).unwrap(),
    ];
    invalid(admin.alter_scram_users(&twice, TIMEOUT).unwrap().remove(1).1);
    invalid(admin.describe_scram_users(Some(&["a", "a"]), TIMEOUT).unwrap().remove(1).1.map(drop));
}

fn elections_have_a_result_for_each_partition(backend: &Backend) {
    let admin = admin(backend);
    let topic = backend.topic(2);
    let missing = unused_topic_name();
    let partitions = [(topic.as_str(), 1), (topic.as_str(), 9), (missing.as_str(), 0)];
    let results = admin.elect_leaders(ElectionType::Preferred, Some(&partitions), TIMEOUT).unwrap();
    assert_eq!(results[0], (TopicPartition::new(&*topic, 1), Ok(Election::NotNeeded)));
    for (key, result) in &results[1..] {
        let error = result.as_ref().unwrap_err();
        assert_eq!(broker_error(error), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "{key:?}: {error}");
    }
    let results = admin.elect_leaders(ElectionType::Unclean, Some(&partitions[..1]), TIMEOUT).unwrap();
    assert_eq!(results[0].1, Ok(Election::NotNeeded));
    let of_all = admin.elect_leaders(ElectionType::Preferred, None, TIMEOUT).unwrap();
    assert!(of_all.iter().all(|(key, _)| *key.topic != *topic), "{of_all:?}");
    let error = admin.elect_leaders(ElectionType::Preferred, Some(&[]), TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let partitions = [(topic.as_str(), 0), (topic.as_str(), 0), ("a/b", 0), (topic.as_str(), -1)];
    let results = admin.elect_leaders(ElectionType::Preferred, Some(&partitions), TIMEOUT).unwrap();
    assert_eq!(results[0].1, Ok(Election::NotNeeded));
    for (key, result) in &results[1..] {
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key:?}: {error}");
    }
}

fn preferred_leader_is_elected_after_its_broker_is_back(backend: &Backend) {
    let admin = admin(backend);
    let topic = unused_topic_name();
    let new = NewTopic::new(&topic, -1, -1).assign(0, &[2, 3]);
    admin.create_topics(&[new], TIMEOUT).unwrap()[0].1.clone().unwrap();
    let elect = |election| {
        let results = admin.elect_leaders(election, Some(&[(&topic, 0)]), TIMEOUT).unwrap();
        results[0].1.clone()
    };
    backend.control(|control| control.kill_broker(BrokerId(2), Tail::Kept));
    let error = elect(ElectionType::Preferred).unwrap_err();
    assert_eq!(broker_error(&error), Some(ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE), "{error}");
    backend.control(|control| control.restart_broker(BrokerId(2)));
    assert_eq!(elect(ElectionType::Preferred), Ok(Election::Elected));
    assert_eq!(elect(ElectionType::Preferred), Ok(Election::NotNeeded));
    let leader = backend.control(|control| control.partition(&topic, 0).and_then(|state| state.leader));
    assert_eq!(leader, Some(BrokerId(2)));
    for broker in [BrokerId(2), BrokerId(3)] {
        backend.control(|control| control.kill_broker(broker, Tail::Kept));
    }
    let error = elect(ElectionType::Unclean).unwrap_err();
    assert_eq!(broker_error(&error), Some(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE), "{error}");
}

fn users_of_the_admin_api_can_authenticate(_: &Backend) {
    let listener = SaslListener::new(&SaslMechanism::ALL).user("admin", "admin-secret");
    let backend = Backend::embedded_with(|options| options.sasl = Some(listener));
    let client = |user: &str, password: &str| {
        let properties = [
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "SCRAM-SHA-256"),
            ("sasl.username", user),
            ("sasl.password", password),
        ];
        Admin::new(&backend.config(&properties)).unwrap()
    };
    let admin = client("admin", "admin-secret");
    let password = Secret::from("new-secret");
    let change = scram_password("alice", ScramMechanism::Sha256, 4096, &password).unwrap();
    admin.alter_scram_users(&[change], TIMEOUT).unwrap()[0].1.clone().unwrap();
    client("alice", "new-secret").list_topics(TIMEOUT).unwrap();
    let short = std::time::Duration::from_secs(1);
    client("alice", "wrong-secret").list_topics(short).unwrap_err();
    let delete = ScramAlteration::Delete { user: "alice".into(), mechanism: ScramMechanism::Sha256 };
    admin.alter_scram_users(&[delete], TIMEOUT).unwrap()[0].1.clone().unwrap();
    client("alice", "new-secret").list_topics(short).unwrap_err();
}
