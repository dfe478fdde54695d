//! The list of what clients change, and its repetition in another cluster.

mod common;

use common::{Batch, World, commit_request, fetch_request, records_of};
use ottla_embedded_broker::{Change, ChangedRecord, ClusterOptions, ConfiguredResource};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        delete_groups::DeleteGroupsRequest,
        delete_records::{self, DeleteRecordsRequest},
        fetch::FetchRequest,
    },
};

const OK: ErrorCode = ErrorCode::NONE;
const ORIGIN: i64 = 1_700_000_000_000;

fn empty() -> World {
    let options = ClusterOptions { brokers: 1, transaction_verification: false, ..ClusterOptions::default() };
    let mut world = World::new(options);
    world.cluster.control().record_changes();
    world
}

fn commit(world: &mut World, group: &str, offset: i64) {
    let request = commit_request(group, 0, offset, Some("m"));
    let connection = world.open(1);
    let response = world.call(connection, 8, &request);
    assert_eq!(response.topics[0].partitions[0].error_code, OK);
}

fn transaction(world: &mut World, sequence: i32, value: &str, is_committed: bool) {
    world.put_in_transaction(ORIGIN, sequence, &[("k", Some(value))]);
    world.end_transaction(is_committed);
}

/// Repeats changes in an empty cluster.
fn restored(changes: &[Change]) -> World {
    let mut world = empty();
    for change in changes {
        world.cluster.control().restore(change).unwrap();
    }
    world
}

#[test]
fn repeated_changes_make_the_same_topics_and_records() {
    let mut world = empty();
    assert_eq!(world.create_configured(&[("retention.bytes", "1000000")]).0, OK);
    world.put(ORIGIN, &[("a", Some("1")), ("b", None)]);
    assert_eq!(world.alter("max.message.bytes", "5000"), OK);
    world.put(5, &[("", Some(""))]);
    let changes = world.cluster.control().take_changes();
    let kinds: Vec<_> =
        changes.iter().map(|change| matches!(change, Change::RecordsAppended { .. })).collect();
    assert_eq!(kinds, [false, true, false, true]);
    assert!(matches!(
        &changes[2],
        Change::ConfigsChanged { resource: ConfiguredResource::Topic, configs, .. } if configs.len() == 2
    ));
    assert!(world.cluster.control().take_changes().is_empty());
    let mut again = restored(&changes);
    assert_eq!(again.seen(), world.seen());
    assert_eq!(again.cluster.control().take_changes(), changes, "a repetition is recorded, too");
}

#[test]
fn transactions_are_recorded_when_they_commit_and_leave_gaps() {
    let mut world = empty();
    assert_eq!(world.create_configured(&[]).0, OK);
    transaction(&mut world, 0, "aborted", false);
    transaction(&mut world, 1, "committed", true);
    world.put(ORIGIN, &[("k", Some("plain"))]);
    let mut again = restored(&world.cluster.control().take_changes());
    let values: Vec<_> =
        again.seen().into_iter().map(|(offset, _, value)| (offset, value.unwrap())).collect();
    assert_eq!(values, [(2, "committed".to_owned()), (4, "plain".to_owned())]);
    assert_eq!(again.start_and_end(), (0, 5));
    let connection = again.open(1);
    let response = again.call::<FetchRequest>(connection, 12, &fetch_request("t", &[(0, 0)], 0));
    assert_eq!(common::base_offsets(&records_of(&response, 0)), [2, 4]);
}

#[test]
fn commits_and_deletions_are_recorded() {
    let mut world = empty();
    assert_eq!(world.create_configured(&[]).0, OK);
    let connection = world.open(1);
    assert_eq!(world.produce(connection, 0, Batch::of(5).build()).0, OK);
    commit(&mut world, "g", 3);
    commit(&mut world, "gone", 4);
    let request = DeleteGroupsRequest { groups_names: vec!["gone".to_owned()] };
    assert_eq!(world.call(connection, 2, &request).results[0].error_code, OK);
    let partition = delete_records::request::Partition { partition_index: 0, offset: 2 };
    let topic = delete_records::request::Topic { name: "t".to_owned(), partitions: vec![partition] };
    world.call(connection, 2, &DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1000 });
    let changes = world.cluster.control().take_changes();
    let commits = changes.iter().filter(|change| matches!(change, Change::OffsetCommitted { .. }));
    assert_eq!(commits.count(), 2);
    assert!(changes.contains(&Change::GroupDeleted { group: "gone".to_owned() }));
    let mut again = restored(&changes);
    assert_eq!(again.start_and_end(), (2, 5));
    assert_eq!(again.cluster.control().committed_offset("g", "t", 0), Some(3));
    assert_eq!(again.cluster.control().committed_offset("gone", "t", 0), None);
}

#[test]
fn wrong_changes_are_refused() {
    let mut world = empty();
    assert_eq!(world.create_configured(&[]).0, OK);
    let append = |topic: &str, partition, offset| Change::RecordsAppended {
        topic: topic.to_owned(),
        partition,
        records: vec![ChangedRecord { offset, timestamp: 1, ..Default::default() }],
    };
    let mut restore = |change: &Change| world.cluster.control().restore(change);
    assert_eq!(restore(&append("t", 0, 10)), Ok(()));
    assert!(restore(&append("t", 0, 10)).unwrap_err().contains("offset 10 of topic \"t\" [0] is taken"));
    assert!(restore(&append("t", 1, 0)).unwrap_err().contains("has no partition 1"));
    assert!(restore(&append("u", 0, 0)).unwrap_err().contains("\"u\" does not exist"));
    let created = Change::TopicCreated {
        topic: "u".to_owned(),
        partitions: 1,
        configs: [("retention.ms".to_owned(), "soon".to_owned())].into(),
    };
    assert!(restore(&created).unwrap_err().contains("INVALID_CONFIG"));
}

#[test]
fn append_times_stay_what_they_were() {
    let mut world = empty();
    assert_eq!(world.create_configured(&[("message.timestamp.type", "LogAppendTime")]).0, OK);
    world.put(5, &[("a", Some("1"))]);
    world.pass(std::time::Duration::from_secs(1));
    world.put(5, &[("b", Some("1"))]);
    let changes = world.cluster.control().take_changes();
    let times = |changes: &[Change]| {
        let records = changes.iter().filter_map(|change| match change {
            Change::RecordsAppended { records, .. } => Some(records.iter().map(|record| record.timestamp)),
            _ => None,
        });
        records.flatten().collect::<Vec<_>>()
    };
    assert_eq!(times(&changes), [ORIGIN, ORIGIN + 1000]);
    let mut again = restored(&changes);
    assert_eq!(times(&again.cluster.control().take_changes()), [ORIGIN, ORIGIN + 1000]);
    let header = ottla_protocol::batch::BatchHeader::parse(&again.cluster.control().batches("t", 0)[1]);
    assert!(header.unwrap().is_log_append_time());
}
