//! Calls about leaders, replicas, log directories, features and the quorum, against scripted brokers.

use std::collections::BTreeMap;

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_partition_reassignments::{
            AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, response as altered,
        },
        alter_replica_log_dirs::{
            AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, response as moved,
        },
        api_versions::{ApiVersionsResponse, response as versions},
        describe_log_dirs::{DescribeLogDirsResponse, response as dirs},
        describe_quorum::{DescribeQuorumResponse, response as quorum},
        elect_leaders::{ElectLeadersRequest, ElectLeadersResponse, response as elected},
        list_partition_reassignments::{ListPartitionReassignmentsResponse, response as listed},
        unregister_broker::UnregisterBrokerResponse,
        unregister_controller::UnregisterControllerResponse,
        update_features::{UpdateFeaturesRequest, UpdateFeaturesResponse, response as updated},
    },
    primitive::Reader,
    uuid::Uuid,
    vocabulary::TopicPartition,
};

use super::{
    elections::{Election, ElectionType, elect_leaders},
    features::{FeatureUpdate, FeatureUpgrade, describe_features, update_features},
    groups::scripted::{Script, TIMEOUT},
    log_dirs::{alter_log_dirs, describe_all_log_dirs},
    quorum::{describe_quorum, unregister_broker, unregister_controller},
    reassignments::{alter_reassignments, list_reassignments},
};
use crate::{contract::route::Route, error::ErrorKind};

fn keys(partitions: &[i32]) -> Vec<TopicPartition> {
    partitions.iter().map(|number| TopicPartition::new("t", *number)).collect()
}

fn elected(results: &[(i32, ErrorCode)]) -> ElectLeadersResponse {
    let result = |(partition_id, error_code): &(i32, ErrorCode)| elected::PartitionResult {
        partition_id: *partition_id,
        error_code: *error_code,
        error_message: None,
    };
    let partition_result = results.iter().map(result).collect();
    let topics = vec![elected::ReplicaElectionResult { topic: "t".into(), partition_result }];
    ElectLeadersResponse { replica_election_results: topics, ..Default::default() }
}

#[test]
fn election_has_a_result_for_each_partition_and_is_not_repeated() {
    let partitions = Some(keys(&[0, 2, 1]));
    let (mut script, waiting) =
        Script::new(|done| elect_leaders(ElectionType::Preferred, partitions, TIMEOUT, done));
    let sent = script.one(2);
    assert_eq!((&sent.route, *sent.versions.start()), (&Route::Controller, 0));
    let request = ElectLeadersRequest::decode(&mut Reader::new(&sent.body), 2).unwrap();
    assert_eq!(request.topic_partitions.unwrap()[0].partitions, [0, 2, 1]);
    let unavailable = ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE;
    script.respond(
        &sent,
        2,
        &elected(&[(2, ErrorCode::ELECTION_NOT_NEEDED), (1, unavailable), (0, ErrorCode::NONE)]),
    );
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results[0], (TopicPartition::new("t", 0), Ok(Election::Elected)));
    assert_eq!(results[1], (TopicPartition::new("t", 2), Ok(Election::NotNeeded)));
    assert_eq!(results[2].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(unavailable));
}

#[test]
fn election_follows_the_controller() {
    let (mut script, waiting) = Script::new(|done| elect_leaders(ElectionType::Unclean, None, TIMEOUT, done));
    let sent = script.one(1);
    assert_eq!(*sent.versions.start(), 1, "version 0 has no types of elections");
    let error_code = ErrorCode::NOT_CONTROLLER;
    script.respond(&sent, 1, &ElectLeadersResponse { error_code, ..Default::default() });
    let again = script.one(1);
    let request = ElectLeadersRequest::decode(&mut Reader::new(&again.body), 1).unwrap();
    assert_eq!((request.election_type, request.topic_partitions), (1, None));
    script.respond(&again, 1, &elected(&[]));
    assert_eq!(waiting.try_take().expect("it responded"), Ok(Vec::new()));
}

#[test]
fn reassignments_are_started_and_cancelled_by_partition() {
    let reassignments: BTreeMap<_, _> = keys(&[0, 1]).into_iter().zip([Some(vec![2, 1]), None]).collect();
    let (mut script, waiting) = Script::new(|done| alter_reassignments(reassignments, false, TIMEOUT, done));
    let sent = script.one(1);
    assert_eq!(*sent.versions.start(), 1, "version 0 can't refuse another replication factor");
    let request = AlterPartitionReassignmentsRequest::decode(&mut Reader::new(&sent.body), 1).unwrap();
    assert!(!request.allow_replication_factor_change);
    let replicas: Vec<_> = request.topics[0].partitions.iter().map(|one| one.replicas.clone()).collect();
    assert_eq!(replicas, [Some(vec![2, 1]), None]);
    let partition =
        |partition_index, error_code| altered::Partition { partition_index, error_code, error_message: None };
    let nothing = ErrorCode::NO_REASSIGNMENT_IN_PROGRESS;
    let partitions = vec![partition(0, ErrorCode::NONE), partition(1, nothing)];
    let responses = vec![altered::Response { name: "t".into(), partitions }];
    script.respond(&sent, 1, &AlterPartitionReassignmentsResponse { responses, ..Default::default() });
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results[0].1, Ok(()));
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(nothing));
}

#[test]
fn reassignments_in_progress_are_listed() {
    let (mut script, waiting) = Script::new(|done| list_reassignments(None, TIMEOUT, done));
    let sent = script.one(0);
    let partition = listed::Partition {
        partition_index: 3,
        replicas: vec![1, 2, 3],
        adding_replicas: vec![3],
        removing_replicas: vec![1],
    };
    let topics = vec![listed::Topic { name: "t".into(), partitions: vec![partition] }];
    script.respond(&sent, 0, &ListPartitionReassignmentsResponse { topics, ..Default::default() });
    let found = waiting.try_take().expect("it responded").expect("the call succeeds");
    let ongoing = &found[&TopicPartition::new("t", 3)];
    assert_eq!((&*ongoing.adding, &*ongoing.removing), (&[3][..], &[1][..]));
}

fn log_dirs(path: &str) -> DescribeLogDirsResponse {
    let partition = dirs::Partition { partition_index: 1, partition_size: 100, ..Default::default() };
    let topic = dirs::Topic { name: "t".into(), partitions: vec![partition] };
    let dir = dirs::DescribeLogDirsResult {
        log_dir: path.into(),
        topics: vec![topic],
        total_bytes: 1000,
        usable_bytes: -1,
        ..Default::default()
    };
    DescribeLogDirsResponse { results: vec![dir], ..Default::default() }
}

#[test]
fn log_dirs_of_all_brokers_are_described_with_the_error_of_one() {
    let (mut script, waiting) = Script::new(|done| describe_all_log_dirs(None, TIMEOUT, done));
    let sent = script.sent(4);
    assert_eq!(sent.len(), 2);
    script.respond(&sent[1], 4, &log_dirs("/d2"));
    let refused = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    script.respond(&sent[0], 4, &DescribeLogDirsResponse { error_code: refused, ..Default::default() });
    let results = waiting.try_take().expect("both responded").expect("there is a partial result");
    assert_eq!(results.iter().map(|(broker, _)| *broker).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(refused));
    let dir = &results[1].1.as_ref().unwrap()[0];
    assert_eq!((&*dir.path, dir.total_bytes, dir.usable_bytes), ("/d2", Some(1000), None));
    assert_eq!(dir.replicas[&TopicPartition::new("t", 1)].size, 100);
}

#[test]
fn replicas_are_moved_by_their_broker() {
    let paths: BTreeMap<_, _> = keys(&[0, 1]).into_iter().map(|key| (key, "/d".to_owned())).collect();
    let (mut script, waiting) = Script::new(|done| alter_log_dirs(2, paths, TIMEOUT, done));
    let sent = script.one(2);
    assert_eq!(sent.route, Route::Node(2));
    let request = AlterReplicaLogDirsRequest::decode(&mut Reader::new(&sent.body), 2).unwrap();
    assert_eq!((&*request.dirs[0].path, &*request.dirs[0].topics[0].partitions), ("/d", &[0, 1][..]));
    let partition = |partition_index, error_code| moved::Partition { partition_index, error_code };
    let partitions = vec![partition(0, ErrorCode::NONE), partition(1, ErrorCode::LOG_DIR_NOT_FOUND)];
    let results = vec![moved::AlterReplicaLogDirsResult { topic_name: "t".into(), partitions }];
    script.respond(&sent, 2, &AlterReplicaLogDirsResponse { results, ..Default::default() });
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    let error = results[1].1.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::LOG_DIR_NOT_FOUND));
}

#[test]
fn features_are_described_as_supported_and_finalized() {
    let (mut script, waiting) = Script::new(|done| describe_features(TIMEOUT, done));
    let sent = script.one(3);
    let supported =
        versions::SupportedFeature { name: "metadata.version".into(), min_version: 7, max_version: 29 };
    let finalized = versions::FinalizedFeature {
        name: "metadata.version".into(),
        max_version_level: 25,
        min_version_level: 25,
    };
    let response = ApiVersionsResponse {
        supported_features: vec![supported],
        finalized_features: vec![finalized],
        finalized_features_epoch: 9,
        ..Default::default()
    };
    script.respond(&sent, 3, &response);
    let features = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(features.supported["metadata.version"], (7, 29));
    assert_eq!((features.finalized["metadata.version"], features.epoch), ((25, 25), Some(9)));
}

fn updates() -> BTreeMap<String, FeatureUpdate> {
    let update = FeatureUpdate::new(1, FeatureUpgrade::SafeDowngrade);
    [("a".to_owned(), update), ("b".to_owned(), update)].into()
}

#[test]
fn feature_updates_have_results_of_their_own_in_old_versions() {
    let (mut script, waiting) = Script::new(|done| update_features(updates(), false, TIMEOUT, done));
    let sent = script.one(0);
    let request = UpdateFeaturesRequest::decode(&mut Reader::new(&sent.body), 0).unwrap();
    assert!(request.feature_updates.iter().all(|update| update.allow_downgrade));
    let result = |feature: &str, error_code| updated::UpdateFeaturesResult {
        feature: feature.into(),
        error_code,
        error_message: None,
    };
    let failed = ErrorCode::FEATURE_UPDATE_FAILED;
    let results = vec![result("b", failed), result("a", ErrorCode::NONE)];
    script.respond(&sent, 0, &UpdateFeaturesResponse { results, ..Default::default() });
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results[0], ("a".to_owned(), Ok(())));
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(failed));
}

#[test]
fn feature_updates_succeed_together_in_new_versions() {
    let (mut script, waiting) = Script::new(|done| update_features(updates(), true, TIMEOUT, done));
    let sent = script.one(2);
    assert_eq!(*sent.versions.start(), 1, "version 0 can't validate");
    let request = UpdateFeaturesRequest::decode(&mut Reader::new(&sent.body), 2).unwrap();
    assert!(request.validate_only && request.feature_updates.iter().all(|update| update.upgrade_type == 2));
    script.respond(&sent, 2, &UpdateFeaturesResponse::default());
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!(results, [("a".to_owned(), Ok(())), ("b".to_owned(), Ok(()))]);
}

#[test]
fn quorum_is_described_once_it_has_a_leader() {
    let (mut script, waiting) = Script::new(|done| describe_quorum(TIMEOUT, done));
    let described = |error_code| {
        let voter = quorum::CurrentVoter {
            replica_id: 1,
            replica_directory_id: Uuid([1; 16]),
            log_end_offset: 99,
            last_fetch_timestamp: -1,
            last_caught_up_timestamp: 7,
        };
        let partition = quorum::Partition {
            error_code,
            leader_id: 1,
            high_watermark: 100,
            current_voters: vec![voter],
            ..Default::default()
        };
        let topic = quorum::Topic { topic_name: "__cluster_metadata".into(), partitions: vec![partition] };
        DescribeQuorumResponse { topics: vec![topic], ..Default::default() }
    };
    let sent = script.one(2);
    script.respond(&sent, 2, &described(ErrorCode::LEADER_NOT_AVAILABLE));
    let again = script.one(2);
    script.respond(&again, 2, &described(ErrorCode::NONE));
    let quorum = waiting.try_take().expect("it responded").expect("the call succeeds");
    assert_eq!((quorum.leader, quorum.high_watermark), (Some(1), 100));
    let voter = quorum.voters[0];
    assert_eq!(
        (voter.directory_id, voter.last_fetch, voter.last_caught_up),
        (Some(Uuid([1; 16])), None, Some(7))
    );
}

#[test]
fn controller_that_is_gone_after_a_lost_response_was_unregistered() {
    let (mut script, waiting) = Script::new(|done| unregister_controller(3, TIMEOUT, done));
    let error_code = ErrorCode::CONTROLLER_ID_NOT_REGISTERED;
    let gone = UnregisterControllerResponse { error_code, ..Default::default() };
    let sent = script.one(0);
    script.fail(&sent, ErrorKind::Disconnected);
    let again = script.one(0);
    script.respond(&again, 0, &gone);
    assert_eq!(waiting.try_take().expect("it responded"), Ok(()));
    let (mut script, waiting) = Script::new(|done| unregister_controller(3, TIMEOUT, done));
    let sent = script.one(0);
    script.respond(&sent, 0, &gone);
    assert!(waiting.try_take().expect("it responded").is_err(), "the first response is an error");
}

#[test]
fn broker_that_is_gone_after_a_lost_response_was_unregistered() {
    let (mut script, waiting) = Script::new(|done| unregister_broker(3, TIMEOUT, done));
    let gone =
        UnregisterBrokerResponse { error_code: ErrorCode::BROKER_ID_NOT_REGISTERED, ..Default::default() };
    let sent = script.one(0);
    script.fail(&sent, ErrorKind::Disconnected);
    let again = script.one(0);
    script.respond(&again, 0, &gone);
    assert_eq!(waiting.try_take().expect("it responded"), Ok(()));
    let (mut script, waiting) = Script::new(|done| unregister_broker(3, TIMEOUT, done));
    let sent = script.one(0);
    script.respond(&sent, 0, &gone);
    assert!(waiting.try_take().expect("it responded").is_err(), "the first response is an error");
}
