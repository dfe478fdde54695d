//! Groups are listed, described, changed and deleted by an administrator.

use std::{future::Future, time::Duration};

use ottla::{
    Admin, AdminOptions, Consumer, ErrorCode, ErrorKind, GroupFilter, GroupOffset, GroupState, GroupType,
    MemberToRemove, TopicPartition,
};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, TIMEOUT, eventually, unused_topic_name};

ottla_scenarios::run_on_all!(
    offsets_of_a_group_are_altered_listed_and_deleted,
    live_group_is_described_and_protected,
    empty_group_is_deleted_with_its_offsets,
    static_member_is_removed,
    all_members_are_removed,
    strange_groups_and_bad_arguments_are_refused,
    many_groups_are_described_in_one_call,
);

ottla_scenarios::run_on_embedded!(
    calls_wait_until_the_coordinator_has_loaded,
    groups_of_the_other_brokers_are_listed_when_one_fails,
    thousand_groups_take_one_request_per_coordinator_and_api,
);

fn admin(backend: &Backend) -> Admin {
    Admin::new(&backend.config(&[])).expect("the configuration is right")
}

fn member(backend: &Backend, group: &str, instance: Option<&str>) -> Consumer {
    let mut properties = vec![
        ("group.id", group),
        ("auto.offset.reset", "earliest"),
        ("client.id", "member"),
        ("session.timeout.ms", "6000"),
    ];
    properties.extend(instance.map(|instance| ("group.instance.id", instance)));
    let consumer = Consumer::new(&backend.config(&properties)).expect("the configuration is right");
    consumer.subscribe(&[group]).expect("it can subscribe");
    let assigned = || {
        drop(consumer.poll(Duration::from_millis(20)));
        consumer.assignment().len() == 2
    };
    assert!(eventually(assigned), "the member gets both partitions");
    consumer
}

/// Returns the committed offsets of a group: partition and offset.
fn committed(admin: &Admin, group: &str, partitions: Option<&[(&str, i32)]>) -> Vec<(i32, Option<i64>)> {
    let options = AdminOptions::new(TIMEOUT).require_stable_offsets(true);
    let listed = admin.list_group_offsets(group, partitions, options).expect("the call succeeds");
    let offset = |(key, result): (TopicPartition, ottla::Result<Option<GroupOffset>>)| {
        (key.partition, result.expect("the partition has a result").map(|committed| committed.offset))
    };
    listed.into_iter().map(offset).collect()
}

fn code<T>(result: &ottla::Result<T>) -> Option<ErrorCode> {
    match result.as_ref().err()?.kind() {
        ErrorKind::Broker(code) => Some(code),
        other => panic!("{other:?} is not an error of a broker"),
    }
}

fn offsets_of_a_group_are_altered_listed_and_deleted(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(2));
    let mut offset = GroupOffset::new(&*topic, 0, 7);
    offset.metadata = "set by hand".into();
    let offsets = [offset.clone(), GroupOffset::new(&*topic, 1, 8), GroupOffset::new(&*topic, 9, 1)];
    let altered = admin.alter_group_offsets(&topic, &offsets, TIMEOUT).expect("the call succeeds");
    assert_eq!((&altered[0].1, &altered[1].1), (&Ok(()), &Ok(())));
    assert_eq!(code(&altered[2].1), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert_eq!(committed(&admin, &topic, None), [(0, Some(7)), (1, Some(8))]);
    assert_eq!(committed(&admin, &topic, Some(&[(&topic, 1), (&topic, 5)])), [(1, Some(8)), (5, None)]);
    let listed = admin.list_group_offsets(&topic, None, TIMEOUT).expect("the call succeeds");
    assert_eq!(listed[0].1.as_ref().unwrap().as_ref().unwrap().metadata, "set by hand");
    let deleted =
        admin.delete_group_offsets(&topic, &[(&topic, 0), (&topic, 1)], TIMEOUT).expect("it succeeds");
    assert!(deleted.iter().all(|(_, result)| result.is_ok()), "{deleted:?}");
    assert_eq!(committed(&admin, &topic, Some(&[(&topic, 0)])), [(0, None)]);
}

fn live_group_is_described_and_protected(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(2));
    let consumer = member(backend, &topic, None);
    let listed = || {
        let groups = admin.list_groups(&GroupFilter::default(), TIMEOUT).expect("the call succeeds").groups;
        groups.into_iter().find(|group| group.group_id == topic)
    };
    let group = listed().expect("the group is listed");
    assert_eq!((group.state, group.group_type), (GroupState::Stable, GroupType::Classic));
    assert!(group.is_of_consumers());
    let empty = GroupFilter { states: vec![GroupState::Empty], types: Vec::new() };
    let empty = admin.list_groups(&empty, TIMEOUT).expect("the call succeeds").groups;
    assert!(empty.iter().all(|group| group.group_id != topic));

    let options = AdminOptions::new(TIMEOUT).authorized_operations(true);
    let mut described = admin.describe_groups(&[&topic], options).expect("the call succeeds");
    let group = described.remove(0).1.expect("the group is described");
    assert_eq!(
        (group.state, group.group_type, &*group.assignor),
        (GroupState::Stable, GroupType::Classic, "range")
    );
    assert!(group.coordinator.is_some() && group.authorized_operations.is_some());
    let member = &group.members[0];
    assert_eq!((&*member.client_id, &member.instance_id), ("member", &None));
    assert_eq!(member.assignment, [(&*topic, 0), (&*topic, 1)].map(TopicPartition::from));
    assert_eq!(member.topics.join(","), topic);

    let deleted = admin.delete_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    assert_eq!(code(&deleted[0].1), Some(ErrorCode::NON_EMPTY_GROUP));
    let offsets = [GroupOffset::new(&*topic, 0, 7)];
    let altered = admin.alter_group_offsets(&topic, &offsets, TIMEOUT).expect("the call succeeds");
    assert_eq!(code(&altered[0].1), Some(ErrorCode::UNKNOWN_MEMBER_ID));
    let deleted = admin.delete_group_offsets(&topic, &[(&topic, 0)], TIMEOUT).expect("the call succeeds");
    assert_eq!(code(&deleted[0].1), Some(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC));
    consumer.close(TIMEOUT).expect("it closes");
}

fn empty_group_is_deleted_with_its_offsets(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(1));
    let offsets = [GroupOffset::new(&*topic, 0, 7)];
    admin.alter_group_offsets(&topic, &offsets, TIMEOUT).expect("the call succeeds");
    let missing = unused_topic_name();
    let deleted = admin.delete_groups(&[&topic, &missing], TIMEOUT).expect("the call succeeds");
    assert_eq!(deleted[0], (topic.clone(), Ok(())));
    assert_eq!(code(&deleted[1].1), Some(ErrorCode::GROUP_ID_NOT_FOUND));
    let listed = admin.list_groups(&GroupFilter::default(), TIMEOUT).expect("the call succeeds");
    assert!(listed.groups.iter().all(|group| group.group_id != topic));
    assert_eq!(committed(&admin, &topic, Some(&[(&topic, 0)])), [(0, None)]);
}

fn static_member_is_removed(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(2));
    // A static member that closes stays in the group until its session ends.
    member(backend, &topic, Some("i")).close(TIMEOUT).expect("it closes");
    let members = [MemberToRemove::Instance("i".into()), MemberToRemove::Instance("strange".into())];
    let removed = admin.remove_members(&topic, &members, Some("a test"), TIMEOUT).expect("it succeeds");
    assert_eq!(removed[0], Ok(()));
    assert_eq!(code(&removed[1]), Some(ErrorCode::UNKNOWN_MEMBER_ID));
    let described = admin.describe_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    assert_eq!(described[0].1.as_ref().expect("it is described").state, GroupState::Empty);
}

fn all_members_are_removed(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(2));
    member(backend, &topic, Some("i")).close(TIMEOUT).expect("it closes");
    let removed = admin.remove_all_members(&topic, Some("a test"), TIMEOUT).expect("it succeeds");
    assert_eq!(removed, [(MemberToRemove::Instance("i".into()), Ok(()))]);
    assert_eq!(admin.remove_all_members(&topic, None, TIMEOUT), Ok(Vec::new()));
    let missing = admin.remove_all_members(&unused_topic_name(), None, TIMEOUT);
    assert_eq!(code(&missing), Some(ErrorCode::GROUP_ID_NOT_FOUND));
}

fn strange_groups_and_bad_arguments_are_refused(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(1));
    let described = admin.describe_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    assert_eq!(code(&described[0].1), Some(ErrorCode::GROUP_ID_NOT_FOUND));
    let deleted = admin.delete_group_offsets(&topic, &[(&topic, 0)], TIMEOUT);
    assert_eq!(code(&deleted), Some(ErrorCode::GROUP_ID_NOT_FOUND));
    let refused = [
        admin.describe_groups(&[], TIMEOUT).err(),
        admin.describe_groups(&["g", "g"], TIMEOUT).expect("the call succeeds").remove(1).1.err(),
        admin.delete_groups(&[""], TIMEOUT).expect("the call succeeds").remove(0).1.err(),
        admin.list_group_offsets(&topic, Some(&[]), TIMEOUT).err(),
        admin.list_group_offsets(&"g".repeat(40_000), None, TIMEOUT).err(),
        admin
            .alter_group_offsets(&topic, &[GroupOffset::new(&*topic, 0, -1)], TIMEOUT)
            .expect("the call succeeds")
            .remove(0)
            .1
            .err(),
        admin.remove_members(&topic, &[], None, TIMEOUT).err(),
    ];
    for (number, error) in refused.into_iter().enumerate() {
        let kind = error.map(|error| error.kind());
        assert_eq!(kind, Some(ErrorKind::InvalidArgument), "call {number}");
    }
}

fn calls_wait_until_the_coordinator_has_loaded(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(1));
    let loading = FaultAction::Error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    let apis = [
        ApiKey::OffsetCommit,
        ApiKey::OffsetFetch,
        ApiKey::ConsumerGroupDescribe,
        ApiKey::DescribeGroups,
        ApiKey::ListGroups,
        ApiKey::OffsetDelete,
        ApiKey::DeleteGroups,
    ];
    for api in apis {
        backend.control(|control| control.inject(Fault::new(loading.clone()).api(api).times(2)));
    }
    let altered = admin.alter_group_offsets(&topic, &[GroupOffset::new(&*topic, 0, 7)], TIMEOUT).unwrap();
    assert_eq!(altered[0].1, Ok(()));
    assert_eq!(committed(&admin, &topic, None), [(0, Some(7))]);
    let described = admin.describe_groups(&[&topic], TIMEOUT).unwrap();
    assert_eq!(described[0].1.as_ref().expect("it is described").state, GroupState::Empty);
    let listed = admin.list_groups(&GroupFilter::default(), TIMEOUT).unwrap();
    assert_eq!((listed.groups.len(), listed.failed), (1, vec![]));
    let deleted = admin.delete_group_offsets(&topic, &[(&topic, 0)], TIMEOUT).unwrap();
    assert_eq!(deleted[0].1, Ok(()));
    assert_eq!(admin.delete_groups(&[&topic], TIMEOUT).unwrap()[0].1, Ok(()));
}

fn groups_of_the_other_brokers_are_listed_when_one_fails(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(1));
    let groups: Vec<String> = (0..20).map(|number| format!("{topic}-{number}")).collect();
    for group in &groups {
        admin.alter_group_offsets(group, &[GroupOffset::new(&*topic, 0, 7)], TIMEOUT).unwrap();
    }
    let all = admin.list_groups(&GroupFilter::default(), TIMEOUT).unwrap();
    assert_eq!((all.groups.len(), all.failed.len()), (20, 0));
    let refused = FaultAction::Error(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
    backend.control(|control| control.inject(Fault::new(refused).api(ApiKey::ListGroups).times(1)));
    let listed = admin.list_groups(&GroupFilter::default(), TIMEOUT).unwrap();
    assert_eq!(listed.failed.len(), 1);
    assert_eq!(code::<()>(&Err(listed.failed[0].1.clone())), Some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED));
    assert!((1..20).contains(&listed.groups.len()), "{} groups", listed.groups.len());
}

/// Creates groups without members, each with a committed offset.
fn create_groups(admin: &Admin, topic: &str, count: usize) -> Vec<String> {
    let prefix = unused_topic_name();
    let names: Vec<String> = (0..count).map(|number| format!("{prefix}-{number:04}")).collect();
    let offsets = [GroupOffset::new(topic, 0, 1)];
    let calls: Vec<_> =
        names.iter().map(|name| admin.alter_group_offsets_async(name, &offsets, TIMEOUT)).collect();
    for call in calls {
        let mut result = None;
        let mut call = Box::pin(call);
        let polled = || {
            let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
            if let std::task::Poll::Ready(done) = call.as_mut().poll(context) {
                result = Some(done);
            }
            result.is_some()
        };
        assert!(eventually(polled));
        assert!(
            result.expect("it is done").expect("the call succeeds").iter().all(|(_, result)| result.is_ok())
        );
    }
    names
}

fn many_groups_are_described_in_one_call(backend: &Backend) {
    let admin = admin(backend);
    let mut names = create_groups(&admin, &backend.topic(1), 20);
    names.insert(7, unused_topic_name());
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    let described = admin.describe_groups(&named, TIMEOUT).expect("the call succeeds");
    assert_eq!(described.iter().map(|(name, _)| name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    for (number, (name, result)) in described.iter().enumerate() {
        if number == 7 {
            assert_eq!(code(result), Some(ErrorCode::GROUP_ID_NOT_FOUND), "{result:?}");
            continue;
        }
        let group = result.as_ref().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((&group.group_id, group.state, group.members.len()), (name, GroupState::Empty, 0));
        assert!(group.coordinator.as_ref().is_some_and(|broker| broker.port > 0), "{group:?}");
    }
}

fn thousand_groups_take_one_request_per_coordinator_and_api(backend: &Backend) {
    const GROUPS: usize = 1000;
    let admin = admin(backend);
    let names = create_groups(&admin, &backend.topic(1), GROUPS);
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    backend.control(|control| control.record_requests());
    let described = admin.describe_groups(&named, TIMEOUT).expect("the call succeeds");
    let requests = backend.control(|control| control.take_requests());
    assert!(described.len() == GROUPS && described.iter().all(|(_, result)| result.is_ok()));
    let count = |api| requests.iter().filter(|request| request.api == api).count();
    assert_eq!(count(ApiKey::FindCoordinator), 1);
    assert_eq!((count(ApiKey::ConsumerGroupDescribe), count(ApiKey::DescribeGroups)), (3, 3));
}
