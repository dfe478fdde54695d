//! Calls about share groups.

use ottla::{
    Admin, ConfigChange, ConfigResource, ErrorCode, ErrorKind, GroupState, ShareOffset, TopicPartition,
};
use ottla_scenarios::{Backend, TIMEOUT, eventually, not_checked, unused_topic_name};

use crate::share_groups::{commit, consumer, number, poll, topic_with_numbers};

ottla_scenarios::run_on_all!(
    share_group_is_described_reset_and_deleted,
    dead_letter_topic_of_a_share_group_is_set_and_described,
);

/// Returns where the group starts in the topic's partitions.
fn offsets(admin: &Admin, group: &str) -> Vec<(i32, ShareOffset)> {
    let listed = admin.list_share_group_offsets(group, None, TIMEOUT).expect("the call succeeds");
    let mut offsets: Vec<_> = listed
        .into_iter()
        .map(|(key, offset)| (key.partition, offset.expect("the partition exists")))
        .collect();
    offsets.sort_by_key(|(partition, _)| *partition);
    offsets
}

fn lags(admin: &Admin, group: &str) -> Vec<Option<i64>> {
    offsets(admin, group).into_iter().map(|(_, offset)| offset.lag).collect()
}

fn set_start(admin: &Admin, group: &str, partition: i32, offset: i64) -> Result<(), ErrorKind> {
    let change = [(TopicPartition::new(group, partition), offset)];
    let changed = admin.alter_share_group_offsets(group, &change, TIMEOUT).map_err(|error| error.kind())?;
    changed.into_iter().try_for_each(|(_, result)| result.map_err(|error| error.kind()))
}

fn share_group_is_described_reset_and_deleted(backend: &Backend) {
    let topic = topic_with_numbers(backend, 2, 20);
    let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
    let describe = || {
        let described = admin.describe_share_groups(&[&topic], TIMEOUT).expect("the call succeeds");
        described.into_iter().next().expect("there is one").1
    };
    let member = consumer(backend, &topic);
    poll(&member, 20).into_iter().for_each(|record| record.accept().expect("it is open"));
    commit(&member);
    let group = describe().expect("the group exists");
    assert_eq!((group.state, group.members.len()), (GroupState::Stable, 1));
    let described = &group.members[0];
    assert_eq!((&*described.client_id, &*described.topics), ("share", &[topic.clone()][..]));
    assert_eq!(described.assignment.iter().map(|key| key.partition).collect::<Vec<_>>(), [0, 1]);
    let both = admin.describe_share_groups(&["missing", &topic], TIMEOUT).expect("the call succeeds");
    let missing = both[0].1.as_ref().map_err(|error| error.kind()).err();
    assert_eq!(missing, Some(ErrorKind::Broker(ErrorCode::GROUP_ID_NOT_FOUND)));
    assert_eq!(both[1].1.as_ref().map(|group| group.state), Ok(GroupState::Stable));
    assert_eq!(set_start(&admin, &topic, 0, 0), Err(ErrorKind::Broker(ErrorCode::NON_EMPTY_GROUP)));
    // Brokers write the state of a partition some time after the acknowledgements, and Apache Kafka its start even later.
    assert!(eventually(|| lags(&admin, &topic) == [Some(0), Some(0)]), "{:?}", offsets(&admin, &topic));
    member.close(TIMEOUT).expect("it closes");
    assert!(eventually(|| describe().expect("the group exists").state == GroupState::Empty));

    set_start(&admin, &topic, 1, 7).expect("the group is empty");
    assert_eq!(offsets(&admin, &topic)[1].1.start_offset, Some(7));
    let again = consumer(backend, &topic);
    let records = poll(&again, 3);
    assert_eq!(records.iter().map(number).collect::<Vec<_>>(), [15, 17, 19]);
    records.into_iter().for_each(|record| record.accept().expect("it is open"));
    again.close(TIMEOUT).expect("it closes");
    assert!(eventually(|| describe().expect("the group exists").state == GroupState::Empty));

    let deleted = admin.delete_share_group_offsets(&topic, &[&topic], TIMEOUT).expect("the call succeeds");
    deleted.into_iter().for_each(|(_, result)| result.expect("the topic had a state"));
    assert_eq!(offsets(&admin, &topic), []);
    let deleted = admin.delete_groups(&[&topic], TIMEOUT).expect("the call succeeds");
    deleted.into_iter().for_each(|(_, result)| result.expect("the group is empty"));
    let error = describe().expect_err("the group is gone");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::GROUP_ID_NOT_FOUND), "{error}");
}

/// Kafka knows dead letter topics of share groups from version 4.4 on (KIP-1191).
fn dead_letter_topic_of_a_share_group_is_set_and_described(backend: &Backend) {
    let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
    let (topic_name, copies) =
        ("errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable");
    let group = unused_topic_name();
    let dead_letters = format!("dlq.{group}");
    let resource = ConfigResource::group(&group);
    let set = |name: &str, value: &str| {
        let changes = vec![(resource.clone(), vec![ConfigChange::set(name, value)])];
        let results = admin.incremental_alter_configs(&changes, TIMEOUT).expect("the call succeeds");
        results.into_iter().next().expect("there is one").1
    };
    match set(topic_name, &dead_letters) {
        Ok(()) => {}
        Err(error) if error.to_string().contains("Unknown") => {
            return not_checked("dead letter topics of share groups", "the broker is older than Kafka 4.4");
        }
        Err(error) => panic!("{error}"),
    }
    set(copies, "true").expect("it is known");
    let value = |name: &str| {
        let described =
            admin.describe_configs(std::slice::from_ref(&resource), TIMEOUT).expect("the call succeeds");
        let entries = described.into_iter().next().expect("there is one").1.expect("it has a configuration");
        entries.into_iter().find(|entry| entry.name == name).and_then(|entry| entry.value)
    };
    assert!(eventually(|| value(copies).as_deref() == Some("true")));
    assert_eq!(value(topic_name), Some(dead_letters));
    let error = set(topic_name, "__internal").expect_err("internal topics take no dead letters");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::INVALID_CONFIG), "{error}");
}
