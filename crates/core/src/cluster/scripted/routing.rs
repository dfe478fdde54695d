//! Every request that must reach a specific broker, from a client that has sent no request yet.

use ottla_protocol::{api::ApiKey, vocabulary::NodeId};

use super::*;
use crate::{
    admin::{
        How,
        configs::{
            ConfigChange, ConfigOperation, ConfigResource, ResourceKind, change_configs, describe_configs,
            replace_configs,
        },
        describe::{WhichTopics, describe, describe_operations},
        records::delete_records,
        topics::{NewPartitions, NewTopic, create_partitions, create_topics, delete_topics},
    },
    contract::route::{Coordinator, CoordinatorKey, Route},
    fetch::FetchCommand,
    offsets::committed::{GroupCall, GroupCallKind, GroupOffset},
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Node 1 is the bootstrap server; node 2 is the controller and leads the partition.
fn cluster() -> MetadataResponse {
    let mut response = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2);
    response.controller_id = 2;
    response
}

fn fresh() -> Script {
    Script::fresh(ClusterSettings::default(), cluster())
}

/// A call and the API that it uses.
type Case = (ApiKey, AdminCall);

fn broker(id: i32) -> ConfigResource {
    ConfigResource { kind: ResourceKind::BROKER, name: id.to_string() }
}

fn change() -> ConfigChange {
    ConfigChange { name: "a".into(), operation: ConfigOperation::Set, value: Some("b".into()) }
}

/// The results of these calls are not used.
fn done<T>() -> crate::completion::Completion<T> {
    completion().0
}

/// Calls that go to one broker by themselves: the controller, a leader, or the broker that is described.
fn calls_to_one_broker() -> Vec<Case> {
    let changes = vec![(broker(2), vec![change()])];
    let partitions = NewPartitions { topic: "t".into(), count: 9, assignments: Vec::new() };
    let offsets = OffsetQuery {
        questions: vec![(("t", 0).into(), OffsetSpec::Latest)],
        timeout: TIMEOUT,
        read_committed: false,
        refusals: None,
    };
    vec![
        (ApiKey::CreateTopics, create_topics(vec![NewTopic::new("a", 1, 1)], false, TIMEOUT, done())),
        (ApiKey::DeleteTopics, delete_topics(vec!["a".into()], TIMEOUT, done())),
        (ApiKey::CreatePartitions, create_partitions(vec![partitions], false, TIMEOUT, done())),
        (ApiKey::DescribeConfigs, describe_configs(vec![broker(2)], TIMEOUT, done())),
        (ApiKey::IncrementalAlterConfigs, change_configs(changes.clone(), false, TIMEOUT, done())),
        (ApiKey::AlterConfigs, replace_configs(changes, false, TIMEOUT, done())),
        (ApiKey::DeleteRecords, delete_records(vec![(("t", 0).into(), 1)], TIMEOUT, done())),
        (ApiKey::ListOffsets, AdminCall::list_offsets(offsets, done())),
    ]
}

/// Calls that may go to any broker, or to the one that the application names.
fn calls_to_any_broker() -> Vec<Case> {
    let topic = ConfigResource { kind: ResourceKind::TOPIC, name: "t".into() };
    let changes = vec![(topic.clone(), vec![change()])];
    vec![
        (ApiKey::DescribeConfigs, describe_configs(vec![topic], TIMEOUT, done())),
        (ApiKey::IncrementalAlterConfigs, change_configs(changes.clone(), false, TIMEOUT, done())),
        (ApiKey::AlterConfigs, replace_configs(changes, false, TIMEOUT, done())),
        (ApiKey::Metadata, describe(WhichTopics::All, TIMEOUT, done())),
        (ApiKey::Metadata, describe_operations(WhichTopics::None, true, TIMEOUT, done())),
    ]
}

/// Returns the hosts that got a request of this API within a second.
fn hosts(script: &mut Script, api: ApiKey) -> Vec<String> {
    script.run_for(Duration::from_secs(1));
    let sent = script.without_response.iter().filter(|(sent, _)| *sent == api);
    sent.map(|(_, host)| host.clone()).collect()
}

#[test]
fn fresh_client_sends_every_admin_call_to_the_broker_that_must_get_it() {
    for (api, call) in calls_to_one_broker() {
        let mut script = fresh();
        script.command(Command::Admin(call));
        if api == ApiKey::ListOffsets {
            assert_eq!(script.lookups, 1);
            continue;
        }
        assert_eq!(hosts(&mut script, api), ["two"], "{}", api.name());
        assert_eq!(script.metadata_requests, 1, "{}: metadata were asked for once", api.name());
    }
}

#[test]
fn fresh_client_sends_every_admin_call_to_the_broker_that_is_set() {
    let to_leaders = [ApiKey::DeleteRecords, ApiKey::ListOffsets];
    let calls = calls_to_one_broker().into_iter().chain(calls_to_any_broker());
    for (api, call) in calls.filter(|(api, _)| !to_leaders.contains(api)) {
        let mut script = fresh();
        let how = How { broker: Some(2), ..How::default() };
        script.command(Command::Admin(call.done(how)));
        if api == ApiKey::Metadata {
            assert_eq!(script.metadata_requests, 2, "the client's own request, and the call's");
            continue;
        }
        assert_eq!(hosts(&mut script, api), ["two"], "{}", api.name());
    }
}

#[test]
fn fresh_client_needs_no_metadata_for_a_call_that_any_broker_takes() {
    for (api, call) in calls_to_any_broker() {
        let mut script = fresh();
        script.command(Command::Admin(call));
        if api == ApiKey::Metadata {
            assert_eq!(script.metadata_requests, 2, "the client's first request, and the call's");
            continue;
        }
        // It goes out with the client's first metadata request, before the response names any other node.
        assert_eq!(hosts(&mut script, api), ["seed"], "{}", api.name());
        assert_eq!(script.metadata_requests, 1, "{}", api.name());
    }
}

#[test]
fn fresh_client_sends_group_calls_to_the_coordinator() {
    let offset = GroupOffset::new("t", 0, 1);
    let calls = [
        (ApiKey::OffsetCommit, GroupCallKind::Commit(vec![offset], done())),
        (ApiKey::OffsetFetch, GroupCallKind::Committed(vec![TopicPartition::new("t", 0)], done())),
    ];
    for (api, kind) in calls {
        let mut script = fresh();
        script.command(Command::Fetch(FetchCommand::Group(GroupCall { timeout: TIMEOUT, kind })));
        assert_eq!(hosts(&mut script, api), ["two"], "{}", api.name());
    }
}

#[test]
fn broker_that_joins_later_gets_the_call_that_waits_for_it() {
    let mut script = fresh();
    script.response = metadata(&[(1, "seed", 9092)], 1);
    let (done, waiting) = completion();
    script.command(Command::Admin(describe_configs(vec![broker(2)], TIMEOUT, done)));
    assert!(hosts(&mut script, ApiKey::DescribeConfigs).is_empty());
    let asked = script.metadata_requests;
    assert!((2..=12).contains(&asked), "{asked} metadata requests in 1 s, with a back-off of 100 ms");
    script.response = cluster();
    script.run_for(Duration::from_secs(2));
    assert_eq!(hosts(&mut script, ApiKey::DescribeConfigs), ["two"]);
    drop(waiting);
}

#[test]
fn call_for_a_broker_that_does_not_exist_ends_with_its_node_id() {
    let mut script = fresh();
    let (done, waiting) = completion();
    script.command(Command::Admin(describe_configs(vec![broker(9)], TIMEOUT, done)));
    script.run_for(TIMEOUT + Duration::from_secs(1));
    let results = waiting.try_take().expect("the call ends in time");
    let error = results[0].1.as_ref().expect_err("there is no such broker").to_string();
    assert!(error.contains("node ID 9"), "{error}");
}

#[test]
fn lookup_does_not_wait_behind_a_join() {
    let mut script = Script::new(cluster());
    let core = &mut script.core;
    let coordinator =
        Coordinator { node: NodeId::from_wire(2).expect("a node"), host: "two".to_owned(), port: 9092 };
    let joining = core.brokers.coordinator(&coordinator, &Route::Rebalance(CoordinatorKey::group("g")));
    script.settle();
    let core = &mut script.core;
    for _ in 0..20 {
        let target = core.brokers.target(&Route::Any, &core.metadata);
        assert!(target.is_some_and(|key| key != joining), "{target:?} is not the connection of the join");
    }
    let others: Vec<BrokerKey> = script.addresses.keys().copied().filter(|key| *key != joining).collect();
    for key in &others {
        core.brokers.handle_idle(*key, false);
    }
    let target = core.brokers.target(&Route::Any, &core.metadata);
    assert!(target.is_some_and(|key| others.contains(&key)), "{target:?} is the connection beside it");
    for key in &others {
        core.brokers.handle_down(*key, &core.metadata);
    }
    let target = core.brokers.target(&Route::Any, &core.metadata);
    assert_eq!(target, Some(joining), "no other connection works");
}
