//! Configurations, start offsets, and what administrators do with share groups.

use super::*;

#[test]
fn share_group_starts_at_its_configured_offset_and_continues() {
    let mut world = world(|options| options.auto_offset_reset = ShareOffsetReset::Latest);
    produce(&mut world, 0, 5);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), []);
    assert_eq!(start_offset(&mut world), (5, 0));
    produce(&mut world, 0, 2);
    assert_eq!(a.acquired(&mut world), [(5, 6, 1)]);
    // Another group begins again, this one doesn't.
    world.cluster.control().options().share_groups.auto_offset_reset = ShareOffsetReset::Earliest;
    let other = ShareFetchRequest {
        group_id: Some("other".to_owned()),
        share_session_epoch: 0,
        ..a.request(&[0], 0, &[])
    };
    assert_eq!(fetched(&a.call(&mut world, &other), 0).acquired, [(0, 6, 1)]);
    assert_eq!(start_offset(&mut world), (5, 2));
}

fn configure(world: &mut World, group: &str, name: &str, value: Option<&str>) -> ErrorCode {
    let connection = world.open(1);
    let config = incremental_alter_configs::request::Config {
        name: name.to_owned(),
        config_operation: i8::from(value.is_none()),
        value: value.map(str::to_owned),
    };
    let resource = incremental_alter_configs::request::Resource {
        resource_type: 32,
        resource_name: group.to_owned(),
        configs: vec![config],
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    world.call(connection, 1, &request).responses[0].error_code
}

/// Returns the group's configuration values with their sources.
fn configuration(world: &mut World, name: &str) -> (String, i8) {
    let connection = world.open(1);
    let resource = describe_configs::request::Resource {
        resource_type: 32,
        resource_name: GROUP.to_owned(),
        configuration_keys: Some(vec![name.to_owned()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let config = world.call(connection, 4, &request).results[0].configs[0].clone();
    (config.value.unwrap(), config.config_source)
}

#[test]
fn group_configuration_overrides_that_of_the_brokers() {
    let mut world = world(|options| options.auto_offset_reset = ShareOffsetReset::Latest);
    let name = "share.auto.offset.reset";
    assert_eq!(configuration(&mut world, name), ("latest".to_owned(), 5));
    assert_eq!(configure(&mut world, GROUP, name, Some("earliest")), ErrorCode::NONE);
    assert_eq!(configuration(&mut world, name), ("earliest".to_owned(), 8));
    produce(&mut world, 0, 2);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 1, 1)]);
    let (epoch, renew) = (a.epoch, [(0, 0, &[RENEW][..])]);
    assert_eq!(
        configure(&mut world, GROUP, "share.renew.acknowledge.enable", Some("false")),
        ErrorCode::NONE
    );
    let renewed = a.acknowledge_in(&mut world, epoch, true, &renew);
    assert_eq!(renewed.responses[0].partitions[0].error_code, ErrorCode::INVALID_REQUEST);
    assert_eq!(configure(&mut world, GROUP, "share.renew.acknowledge.enable", None), ErrorCode::NONE);
    let renewed = a.acknowledge_in(&mut world, epoch + 1, true, &renew);
    assert_eq!(renewed.responses[0].partitions[0].error_code, ErrorCode::NONE);

    for (group, name, value, error) in [
        ("", name, "latest", ErrorCode::INVALID_REQUEST),
        (GROUP, name, "middle", ErrorCode::INVALID_CONFIG),
        (GROUP, name, "by_duration:soon", ErrorCode::INVALID_CONFIG),
        (GROUP, "share.isolation.level", "read", ErrorCode::INVALID_CONFIG),
        (GROUP, "share.record.lock.duration.ms", "0", ErrorCode::INVALID_CONFIG),
        (GROUP, "share.delivery.count.limit", "99999", ErrorCode::INVALID_CONFIG),
        (GROUP, "share.session.timeout.ms", "-5", ErrorCode::INVALID_CONFIG),
        (GROUP, "share.nothing", "1", ErrorCode::INVALID_CONFIG),
    ] {
        assert_eq!(configure(&mut world, group, name, Some(value)), error, "{name} {value}");
    }
    for (name, value) in [
        ("share.isolation.level", "read_committed"),
        ("share.record.lock.duration.ms", "100"),
        ("share.delivery.count.limit", "3"),
        ("share.partition.max.record.locks", "7"),
        ("share.session.timeout.ms", "9"),
        ("share.heartbeat.interval.ms", "4"),
    ] {
        assert_eq!(configure(&mut world, GROUP, name, Some(value)), ErrorCode::NONE);
        assert_eq!(configuration(&mut world, name), (value.to_owned(), 8));
    }
    assert_eq!(heartbeat(&mut world, "a", 0, Some(&["t"])).heartbeat_interval_ms, 4);
}

#[test]
fn share_group_may_start_by_duration() {
    let mut world = world(|_| ());
    assert_eq!(
        configure(&mut world, GROUP, "share.auto.offset.reset", Some("by_duration:PT1H")),
        ErrorCode::NONE
    );
    let connection = world.open(1);
    let now = 1_700_000_000_000;
    for (records, age) in [(2, 3_700_000), (3, 3_590_000), (1, 0)] {
        let batch = Batch::of(records).first_timestamp(now - age);
        assert_eq!(world.produce(connection, 0, batch.build()).0, ErrorCode::NONE);
    }
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(2, 5, 1)]);
}

#[test]
fn share_groups_are_listed_and_deleted_when_empty() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    let connection = world.open(1);
    let list = |world: &mut World, states: &[&str], types: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let request = ListGroupsRequest { states_filter: owned(states), types_filter: owned(types) };
        let groups = world.call(connection, 5, &request).groups.into_iter();
        groups.map(|g| (g.group_id, g.group_state, g.group_type, g.protocol_type)).collect::<Vec<_>>()
    };
    let text = str::to_owned;
    let listed = [(text("g"), text("Stable"), text("share"), text("share"))];
    assert_eq!(list(&mut world, &[], &["share"]), listed);
    assert_eq!(list(&mut world, &["stable"], &[]), listed);
    assert_eq!(list(&mut world, &["empty"], &[]), []);
    assert_eq!(list(&mut world, &[], &["classic", "consumer"]), []);
    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] };
    assert_eq!(world.call(connection, 2, &delete).results[0].error_code, ErrorCode::NON_EMPTY_GROUP);
    heartbeat(&mut world, "a", -1, None);
    assert_eq!(world.call(connection, 2, &delete).results[0].error_code, ErrorCode::NONE);
    assert_eq!(world.call(connection, 2, &delete).results[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(list(&mut world, &[], &[]), []);
}

#[test]
fn offsets_of_a_group_without_members_can_be_changed_and_deleted() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 5);
    let connection = world.open(1);
    let partitions = [(0, 3), (1, -1), (9, 0)].map(|(partition_index, start_offset)| {
        alter_share_group_offsets::request::Partition { partition_index, start_offset }
    });
    let topics = vec![alter_share_group_offsets::request::Topic {
        topic_name: "t".to_owned(),
        partitions: partitions.to_vec(),
    }];
    let alter = AlterShareGroupOffsetsRequest { group_id: GROUP.to_owned(), topics };
    assert_eq!(world.call(connection, 0, &alter).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    let everything =
        describe_share_group_offsets::request::Group { group_id: GROUP.to_owned(), topics: None };
    let describe = DescribeShareGroupOffsetsRequest { groups: vec![everything] };
    let offsets: Vec<_> = world.call(connection, 1, &describe).groups[0].topics[0]
        .partitions
        .iter()
        .map(|partition| (partition.partition_index, partition.start_offset, partition.lag))
        .collect();
    assert_eq!(offsets, [(0, -1, -1), (1, -1, -1)], "nothing was fetched");
    assert_eq!(world.call(connection, 0, &alter).error_code, ErrorCode::NON_EMPTY_GROUP);
    heartbeat(&mut world, "a", -1, None);
    let errors: Vec<_> =
        world.call(connection, 0, &alter).responses[0].partitions.iter().map(|p| p.error_code).collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(errors, [ErrorCode::NONE, ErrorCode::INVALID_REQUEST, unknown]);
    assert_eq!(start_offset(&mut world), (3, 2));
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(3, 4, 1)]);
    let topics = ["t", "none"]
        .map(|topic_name| delete_share_group_offsets::request::Topic { topic_name: topic_name.to_owned() });
    let delete = DeleteShareGroupOffsetsRequest { group_id: GROUP.to_owned(), topics: topics.to_vec() };
    let errors: Vec<_> = world.call(connection, 0, &delete).responses.iter().map(|r| r.error_code).collect();
    assert_eq!(errors, [ErrorCode::NONE, unknown]);
    assert_eq!(start_offset(&mut world), (-1, -1));
    assert_eq!(a.acquired(&mut world), [(0, 4, 1)], "it starts over");
}
