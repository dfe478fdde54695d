//! Quotas, reassignments, log directories, features, the quorum, and delegation tokens.

use std::{collections::BTreeMap, time::Duration};

use ottla::{
    Admin, AdminOptions, ErrorCode, ErrorKind, GroupFilter, NewTopic,
    admin::{
        FeatureUpdate, FeatureUpgrade, NewDelegationToken, Principal, QuotaChanges, QuotaEntity, QuotaFilter,
        QuotaMatch, Uuid, Voter, VoterListener,
    },
};
use ottla_embedded_broker::{BrokerId, SaslListener, SaslMechanism, Tail};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_scenarios::{Backend, TIMEOUT, eventually, unused_topic_name};

ottla_scenarios::run_on_all!(
    quotas_are_set_described_and_removed,
    wrong_quotas_are_refused,
    replicas_are_reassigned,
    wrong_reassignments_are_refused,
    log_dirs_of_all_brokers_are_described,
    wrong_log_dirs_are_refused,
    apis_of_all_brokers_are_described,
    features_are_described_and_updates_are_checked,
    quorum_is_described,
    unknown_brokers_and_voters_are_refused,
    tokens_need_an_authenticated_client,
);

ottla_scenarios::run_on_embedded!(
    reassignment_in_progress_is_listed_and_cancelled,
    replica_moves_to_another_log_dir,
    broker_that_is_down_is_unregistered,
    changes_of_voters_are_an_unsupported_version,
    token_authenticates_until_it_expires,
    controllers_serve_administration_without_brokers,
    broker_among_the_controllers_fails_the_calls,
);

fn admin(backend: &Backend) -> Admin {
    Admin::new(&backend.config(&[])).expect("the client's configuration is right")
}

fn code(error: &ottla::Error) -> Option<ErrorCode> {
    match error.kind() {
        ErrorKind::Broker(code) => Some(code),
        _ => None,
    }
}

fn is_invalid<T: std::fmt::Debug>(result: ottla::Result<T>) {
    let error = result.expect_err("the arguments are wrong");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

/// The element is refused, and not the call.
fn is_refused<K, T: std::fmt::Debug>(results: ottla::Result<Vec<(K, ottla::Result<T>)>>) {
    let (_, result) = results.expect("the call succeeds").pop().expect("each element has a result");
    is_invalid(result);
}

fn entity(names: &[(&str, Option<&str>)]) -> QuotaEntity {
    names.iter().map(|(kind, name)| ((*kind).to_owned(), name.map(str::to_owned))).collect()
}

fn quota(key: &str, value: Option<f64>) -> QuotaChanges {
    [(key.to_owned(), value)].into()
}

fn quotas_are_set_described_and_removed(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    let of_client = entity(&[("user", Some(&name)), ("client-id", None)]);
    let of_user = entity(&[("user", Some(&name))]);
    let set = [
        (of_client.clone(), quota("consumer_byte_rate", Some(1024.0))),
        (of_user.clone(), quota("request_percentage", Some(12.5))),
    ];
    let set: BTreeMap<_, _> = set.into();
    let results = admin.alter_client_quotas(&set, AdminOptions::new(TIMEOUT).validate_only(true)).unwrap();
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    let results = admin.alter_client_quotas(&set, TIMEOUT).unwrap();
    assert_eq!(results, [(of_client.clone(), Ok(())), (of_user.clone(), Ok(()))]);
    let filter = QuotaFilter::default().matching("user", QuotaMatch::Name(name.clone()));
    let mut found = Vec::new();
    let complete = eventually(|| {
        found = admin.describe_client_quotas(&filter, TIMEOUT).unwrap();
        found.len() == 2
    });
    assert!(complete && found[1].1["request_percentage"].to_bits() == 12.5_f64.to_bits(), "{found:?}");
    assert_eq!(found[0].0, of_client);
    // Another broker may learn of the quotas later.
    let strict = filter.strict();
    let only_of_user = eventually(|| {
        let described = admin.describe_client_quotas(&strict, TIMEOUT).unwrap();
        described.into_iter().map(|(entity, _)| entity).eq([of_user.clone()])
    });
    assert!(only_of_user);
    let remove: BTreeMap<_, _> =
        [(of_client, quota("consumer_byte_rate", None)), (of_user, quota("request_percentage", None))].into();
    let results = admin.alter_client_quotas(&remove, TIMEOUT).unwrap();
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    let filter = QuotaFilter::default().matching("user", QuotaMatch::Name(name));
    assert!(eventually(|| admin.describe_client_quotas(&filter, TIMEOUT).unwrap().is_empty()));
}

fn wrong_quotas_are_refused(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    let user = || entity(&[("user", Some(&name))]);
    let refused = |entity: QuotaEntity, changes: QuotaChanges| {
        let results = admin.alter_client_quotas(&[(entity, changes)].into(), TIMEOUT).unwrap();
        let error = results[0].1.clone().unwrap_err();
        assert_eq!(code(&error), Some(ErrorCode::INVALID_REQUEST), "{error}");
    };
    refused(user(), quota("no_such_quota", Some(1.0)));
    refused(user(), quota("connection_creation_rate", Some(1.0)));
    refused(user(), quota("consumer_byte_rate", Some(1.5)));
    refused(entity(&[("planet", Some("mars"))]), quota("consumer_byte_rate", Some(1.0)));
    is_invalid(admin.alter_client_quotas(&BTreeMap::new(), TIMEOUT));
    is_refused(admin.alter_client_quotas(&[(user(), QuotaChanges::new())].into(), TIMEOUT));
    is_refused(admin.alter_client_quotas(&[(user(), quota("x", Some(f64::NAN)))].into(), TIMEOUT));
    is_refused(admin.alter_client_quotas(&[(entity(&[]), quota("x", Some(1.0)))].into(), TIMEOUT));
    is_refused(
        admin.alter_client_quotas(&[(entity(&[("user", Some(""))]), quota("x", None))].into(), TIMEOUT),
    );
    let both = QuotaFilter::default().matching("ip", QuotaMatch::Any).matching("user", QuotaMatch::Any);
    let error = admin.describe_client_quotas(&both, TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::INVALID_REQUEST), "{error}");
}

fn topic_on(admin: &Admin, brokers: &[i32]) -> String {
    let topic = unused_topic_name();
    let created = admin.create_topics(&[NewTopic::new(&topic, -1, -1).assign(0, brokers)], TIMEOUT).unwrap();
    created[0].1.clone().unwrap();
    topic
}

fn replicas(admin: &Admin, topic: &str) -> Vec<i32> {
    let described = admin.describe_topics(&[topic], TIMEOUT).unwrap();
    described[0].partitions.first().map(|partition| partition.replicas.clone()).unwrap_or_default()
}

fn replicas_are_reassigned(backend: &Backend) {
    let admin = admin(backend);
    let topic = topic_on(&admin, &[1, 2]);
    let key = TopicPartition::new(&*topic, 0);
    let results = admin.alter_reassignments(&[(key.clone(), Some(vec![3, 2]))].into(), TIMEOUT).unwrap();
    assert_eq!(results, [(key.clone(), Ok(()))]);
    let is_done = || {
        let ongoing = admin.list_reassignments(Some(&[(&topic, 0)]), TIMEOUT).unwrap();
        ongoing.is_empty() && replicas(&admin, &topic) == [3, 2]
    };
    assert!(eventually(is_done), "{:?}", replicas(&admin, &topic));
    let results = admin.alter_reassignments(&[(key, None)].into(), TIMEOUT).unwrap();
    assert_eq!(code(results[0].1.as_ref().unwrap_err()), Some(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS));
}

fn wrong_reassignments_are_refused(backend: &Backend) {
    let admin = admin(backend);
    let topic = topic_on(&admin, &[1, 2]);
    let start = |topic: &str, partition, replicas: &[i32], options: AdminOptions| {
        let key = TopicPartition::new(topic, partition);
        let results = admin.alter_reassignments(&[(key, Some(replicas.to_vec()))].into(), options).unwrap();
        results[0].1.as_ref().err().and_then(code)
    };
    let options = AdminOptions::new(TIMEOUT);
    assert_eq!(start(&topic, 0, &[1, 99], options), Some(ErrorCode::INVALID_REPLICA_ASSIGNMENT));
    assert_eq!(start(&topic, 7, &[1, 2], options), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert_eq!(start(&unused_topic_name(), 0, &[1], options), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    let same = options.same_replication_factor(true);
    assert_eq!(start(&topic, 0, &[1, 2, 3], same), Some(ErrorCode::INVALID_REPLICATION_FACTOR));
    let key = TopicPartition::new(&*topic, 0);
    for wrong in [&[][..], &[1, 1], &[-1]] {
        is_refused(admin.alter_reassignments(&[(key.clone(), Some(wrong.to_vec()))].into(), TIMEOUT));
    }
    is_invalid(admin.alter_reassignments(&BTreeMap::new(), TIMEOUT));
    is_invalid(admin.list_reassignments(Some(&[]), TIMEOUT));
    let none = admin.list_reassignments(Some(&[("a/b", 0), ("t", -1)]), TIMEOUT).unwrap();
    assert!(none.is_empty(), "partitions that can't exist");
}

fn reassignment_in_progress_is_listed_and_cancelled(_: &Backend) {
    let duration = std::time::Duration::from_secs(600);
    let backend = Backend::embedded_with(|options| options.reassignment_duration = duration);
    let admin = admin(&backend);
    let topic = topic_on(&admin, &[1, 2]);
    let key = TopicPartition::new(&*topic, 0);
    let results = admin.alter_reassignments(&[(key.clone(), Some(vec![3, 2]))].into(), TIMEOUT).unwrap();
    assert_eq!(results[0].1, Ok(()));
    let ongoing = admin.list_reassignments(None, TIMEOUT).unwrap();
    assert_eq!((&*ongoing[&key].adding, &*ongoing[&key].removing), (&[3][..], &[1][..]));
    assert_eq!(replicas(&admin, &topic), [3, 2, 1]);
    assert_eq!(admin.alter_reassignments(&[(key, None)].into(), TIMEOUT).unwrap()[0].1, Ok(()));
    assert_eq!(replicas(&admin, &topic), [1, 2]);
    assert!(admin.list_reassignments(None, TIMEOUT).unwrap().is_empty());
}

fn log_dirs_of_all_brokers_are_described(backend: &Backend) {
    let admin = admin(backend);
    let topic = topic_on(&admin, &[2, 3]);
    let key = TopicPartition::new(&*topic, 0);
    let dirs = admin.describe_log_dirs(None, None, TIMEOUT).unwrap();
    assert_eq!(dirs.iter().map(|(broker, _)| *broker).collect::<Vec<_>>(), [1, 2, 3]);
    let has_replica = || {
        let dirs = admin.describe_log_dirs(Some(&[3, 1]), Some(&[(&topic, 0)]), TIMEOUT).unwrap();
        assert_eq!((dirs[0].0, dirs[1].0), (3, 1));
        let dirs: Vec<_> = dirs.into_iter().map(|(_, dirs)| dirs.unwrap()).collect();
        assert!(dirs[0][0].path.starts_with('/') && dirs[0][0].total_bytes.is_some(), "{dirs:?}");
        let replicas: Vec<bool> =
            dirs.iter().map(|dirs| dirs.iter().any(|dir| dir.replicas.contains_key(&key))).collect();
        replicas == [true, false]
    };
    assert!(eventually(has_replica));
    is_invalid(admin.describe_log_dirs(Some(&[]), None, TIMEOUT));
    is_refused(admin.describe_log_dirs(Some(&[1, 1]), None, TIMEOUT));
    is_refused(admin.describe_log_dirs(Some(&[1, -1]), None, TIMEOUT));
}

fn wrong_log_dirs_are_refused(backend: &Backend) {
    let admin = admin(backend);
    let topic = topic_on(&admin, &[2]);
    let key = TopicPartition::new(&*topic, 0);
    let to = |path: &str| BTreeMap::from([(key.clone(), path.to_owned())]);
    let results = admin.alter_replica_log_dirs(2, &to("/no/such/dir"), TIMEOUT).unwrap();
    assert_eq!(code(results[0].1.as_ref().unwrap_err()), Some(ErrorCode::LOG_DIR_NOT_FOUND));
    is_refused(admin.alter_replica_log_dirs(2, &to("relative"), TIMEOUT));
    is_invalid(admin.alter_replica_log_dirs(-2, &to("/x"), TIMEOUT));
    is_invalid(admin.alter_replica_log_dirs(2, &BTreeMap::new(), TIMEOUT));
}

fn replica_moves_to_another_log_dir(_: &Backend) {
    let backend = Backend::embedded_with(|options| options.log_dirs = 2);
    let admin = admin(&backend);
    let topic = topic_on(&admin, &[2]);
    let key = TopicPartition::new(&*topic, 0);
    let dirs = || {
        let described = admin.describe_log_dirs(Some(&[2]), None, TIMEOUT).unwrap().remove(0).1.unwrap();
        let place = described.iter().position(|dir| dir.replicas.contains_key(&key));
        (place, described.into_iter().map(|dir| dir.path).collect::<Vec<_>>())
    };
    let (before, paths) = dirs();
    assert_eq!((before, paths.len()), (Some(0), 2));
    let moved = admin.alter_replica_log_dirs(2, &[(key.clone(), paths[1].clone())].into(), TIMEOUT).unwrap();
    assert_eq!((moved[0].1.clone(), dirs().0), (Ok(()), Some(1)));
}

fn apis_of_all_brokers_are_described(backend: &Backend) {
    let described = admin(backend).describe_broker_apis(TIMEOUT).unwrap();
    assert_eq!(described.iter().map(|(broker, _)| *broker).collect::<Vec<_>>(), [1, 2, 3]);
    for (_, apis) in described {
        let apis = apis.unwrap();
        let metadata = apis.iter().find(|api| api.name == Some("Metadata")).expect("every broker has it");
        assert_eq!((metadata.key, metadata.usable), (3, Some(*metadata.versions.end())));
        assert!(apis.is_sorted_by_key(|api| api.key));
    }
}

fn features_are_described_and_updates_are_checked(backend: &Backend) {
    let admin = admin(backend);
    let features = admin.describe_features(TIMEOUT).unwrap();
    assert!(features.supported.contains_key("transaction.version"), "{features:?}");
    assert!(features.epoch.is_some());
    let level = features.finalized.get("transaction.version").map_or(0, |(_, level)| *level);
    let update = |feature: &str, version, upgrade| {
        let updates = [(feature.to_owned(), FeatureUpdate::new(version, upgrade))].into();
        let options = AdminOptions::new(TIMEOUT).validate_only(true);
        match admin.update_features(&updates, options) {
            Ok(results) => results[0].1.as_ref().err().and_then(code),
            Err(error) => code(&error),
        }
    };
    assert_eq!(level, 2, "{features:?}");
    let upgrade_only = FeatureUpgrade::UpgradeOnly;
    let invalid = Some(ErrorCode::INVALID_UPDATE_VERSION);
    assert_eq!(update("transaction.version", level, upgrade_only), None);
    assert_eq!(update("transaction.version", 1, upgrade_only), invalid);
    assert_eq!(update("transaction.version", 1, FeatureUpgrade::SafeDowngrade), None);
    assert_eq!(update("transaction.version", 99, upgrade_only), invalid);
    assert_eq!(update("no.such.feature", 1, upgrade_only), invalid);
    assert_eq!(admin.describe_features(TIMEOUT).unwrap().finalized, features.finalized);
    is_invalid(admin.update_features(&BTreeMap::new(), TIMEOUT));
}

fn quorum_is_described(backend: &Backend) {
    let quorum = admin(backend).describe_quorum(TIMEOUT).unwrap();
    let leader = quorum.leader.expect("there is a leader");
    let voter = quorum.voters.iter().find(|voter| voter.id == leader).expect("the leader votes");
    assert!(voter.log_end_offset >= quorum.high_watermark, "{quorum:?}");
    assert!(!quorum.nodes.is_empty() && !quorum.nodes[0].listeners[0].host.is_empty(), "{quorum:?}");
}

fn unknown_brokers_and_voters_are_refused(backend: &Backend) {
    let admin = admin(backend);
    let error = admin.unregister_broker(99, TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::BROKER_ID_NOT_REGISTERED), "{error}");
    is_invalid(admin.unregister_broker(-1, TIMEOUT));
    is_invalid(admin.unregister_controller(-1, TIMEOUT));
    let error = admin.unregister_controller(99, TIMEOUT).unwrap_err();
    // Apache Kafka before 4.4 can't.
    let is_refused = code(&error) == Some(ErrorCode::CONTROLLER_ID_NOT_REGISTERED)
        || error.kind() == ErrorKind::UnsupportedVersion;
    assert!(is_refused, "{error}");
    let voter = Voter { id: 99, directory_id: Uuid([7; 16]) };
    // Kafka with static voters, and embedded brokers, can't change them.
    let error = admin.remove_raft_voter(None, voter, TIMEOUT).unwrap_err();
    let is_unsupported = matches!(error.kind(), ErrorKind::UnsupportedVersion)
        || matches!(code(&error), Some(ErrorCode::UNSUPPORTED_VERSION | ErrorCode::VOTER_NOT_FOUND));
    assert!(is_unsupported, "{error}");
    is_invalid(admin.add_raft_voter(None, voter, &[], TIMEOUT));
    let listener = [VoterListener::new("CONTROLLER", "localhost", 9093)];
    is_invalid(admin.add_raft_voter(None, Voter { id: -1, ..voter }, &listener, TIMEOUT));
    is_invalid(admin.add_raft_voter(None, Voter { directory_id: Uuid::ZERO, ..voter }, &listener, TIMEOUT));
}

fn changes_of_voters_are_an_unsupported_version(backend: &Backend) {
    let admin = admin(backend);
    let voter = Voter { id: 1, directory_id: Uuid([7; 16]) };
    let listener = [VoterListener::new("CONTROLLER", "localhost", 9093)];
    let added = admin.add_raft_voter(None, voter, &listener, TIMEOUT);
    let removed = admin.remove_raft_voter(None, voter, TIMEOUT);
    for (result, api) in [(added, "AddRaftVoter"), (removed, "RemoveRaftVoter")] {
        let error = result.expect_err("the voters of embedded brokers are fixed");
        assert_eq!(error.kind(), ErrorKind::UnsupportedVersion, "{error}");
        assert!(error.to_string().contains(api), "{error}");
    }
}

fn broker_that_is_down_is_unregistered(backend: &Backend) {
    let admin = admin(backend);
    backend.control(|control| control.kill_broker(BrokerId(3), Tail::Kept));
    admin.unregister_broker(3, TIMEOUT).unwrap();
    let error = admin.unregister_broker(3, TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::BROKER_ID_NOT_REGISTERED), "{error}");
}

fn tokens_need_an_authenticated_client(backend: &Backend) {
    let admin = admin(backend);
    let error = admin.create_delegation_token(&NewDelegationToken::default(), TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED), "{error}");
    let error = admin.describe_delegation_tokens(None, TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED), "{error}");
    is_invalid(admin.renew_delegation_token(&ottla::Secret::from(""), None, TIMEOUT));
    let nameless = Principal { kind: "User".into(), name: String::new() };
    is_invalid(admin.describe_delegation_tokens(Some(&[nameless]), TIMEOUT));
}

fn token_authenticates_until_it_expires(_: &Backend) {
    let listener = SaslListener::new(&SaslMechanism::ALL).user("alice", "alice-secret");
    let backend = Backend::embedded_with(|options| options.sasl = Some(listener));
    let client = |user: &str, password: &str, is_token: &str| {
        let properties = [
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "SCRAM-SHA-256"),
            (
                "sasl.jaas.config",
                &*format!(
                    "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"{user}\" password=\"{password}\" tokenauth=\"{is_token}\";"
                ),
            ),
        ];
        Admin::new(&backend.config(&properties)).unwrap()
    };
    let admin = client("alice", "alice-secret", "false");
    let mut new = NewDelegationToken::default();
    new.renewers = vec![Principal::user("bob")];
    let token = admin.create_delegation_token(&new, TIMEOUT).unwrap();
    assert_eq!(token.owner.to_string(), "User:alice");
    let described = admin.describe_delegation_tokens(None, TIMEOUT).unwrap();
    assert_eq!((&described[0].token_id, &described[0].renewers), (&token.token_id, &new.renewers));
    assert!(admin.describe_delegation_tokens(Some(&[Principal::user("eve")]), TIMEOUT).unwrap().is_empty());
    let expires = admin.renew_delegation_token(&token.hmac, None, TIMEOUT).unwrap();
    assert!(expires >= token.expires && expires <= token.expires_at_the_latest);
    let password = token.password();
    let password = std::str::from_utf8(password.expose()).unwrap();
    client(&token.token_id, password, "true").list_topics(TIMEOUT).unwrap();
    admin.expire_delegation_token(&token.hmac, None, TIMEOUT).unwrap();
    let short = std::time::Duration::from_secs(1);
    client(&token.token_id, password, "true").list_topics(short).unwrap_err();
    let error = admin.expire_delegation_token(&token.hmac, None, TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::DELEGATION_TOKEN_NOT_FOUND), "{error}");
    new.owner = Some(Principal::user("bob"));
    let token = admin.create_delegation_token(&new, TIMEOUT).unwrap();
    assert_eq!((token.owner, token.requester), (Principal::user("bob"), Some(Principal::user("alice"))));
}

/// Makes the third node a controller, and returns its address and those of the brokers.
fn split(backend: &Backend) -> (String, String) {
    backend.control(|control| control.set_controller_only(BrokerId(3)));
    let servers = backend.bootstrap_servers();
    let (brokers, controller) = servers.rsplit_once(',').expect("there are three");
    (controller.to_owned(), brokers.to_owned())
}

fn of_controllers(servers: &str) -> Admin {
    let config = ottla::Config::from_properties([("bootstrap.controllers", servers)]).expect("it is right");
    Admin::new(&config).expect("the client's configuration is right")
}

fn controllers_serve_administration_without_brokers(backend: &Backend) {
    let (controller, _) = split(backend);
    let admin = of_controllers(&controller);
    let cluster = admin.describe_cluster(TIMEOUT).unwrap();
    assert_eq!(cluster.brokers.iter().map(|node| node.id).collect::<Vec<_>>(), [3]);
    assert_eq!(cluster.controller_id, Some(3));
    let name = unused_topic_name();
    let created = admin.create_topics(&[NewTopic::new(&name, 1, 1)], TIMEOUT).unwrap();
    assert!(created.iter().all(|(_, result)| result.is_ok()), "{created:?}");
    assert_eq!(admin.describe_quorum(TIMEOUT).unwrap().leader, Some(3));
    admin.describe_features(TIMEOUT).unwrap();
    for refused in [
        admin.describe_topics(&[&name], TIMEOUT).map(drop),
        admin.describe_client_quotas(&QuotaFilter::default(), TIMEOUT).map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnsupportedVersion, "only brokers serve it");
    }
    for properties in [
        vec![("bootstrap.controllers", "a:1"), ("bootstrap.servers", "b:1")],
        vec![("bootstrap.controllers", "a:b:c")],
    ] {
        let config = ottla::Config::from_properties(properties).expect("each is right");
        let error = Admin::new(&config).expect_err("it contradicts itself or is wrong");
        assert!(error.to_string().contains("bootstrap.controllers"), "{error}");
    }
    let config = ottla::Config::from_properties([("bootstrap.controllers", "a:1")]).expect("it is right");
    let error = ottla::Producer::new(&config).expect_err("controllers take no records");
    assert!(error.to_string().contains("bootstrap.controllers"), "{error}");
}

fn broker_among_the_controllers_fails_the_calls(backend: &Backend) {
    let (controller, brokers) = split(backend);
    let error = of_controllers(&brokers).describe_cluster(TIMEOUT).unwrap_err();
    assert_eq!(code(&error), Some(ErrorCode::MISMATCHED_ENDPOINT_TYPE), "{error}");
    assert!(error.to_string().contains("bootstrap.servers"), "{error}");
    let config = ottla::Config::from_properties([("bootstrap.servers", &*controller)]).expect("it is right");
    let error = Admin::new(&config)
        .unwrap()
        .list_groups(&GroupFilter::default(), Duration::from_secs(3))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "it describes no brokers: {error}");
}
