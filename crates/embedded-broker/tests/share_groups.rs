//! Share groups (KIP-932): members, sessions, and what becomes of records.

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{Batch, World, base_offsets, produce_request};
use ottla_embedded_broker::{
    ApiKey, BrokerId, ClusterOptions, ConnectionId, Fault, FaultAction, IsolationLevel, ShareGroupOptions,
    ShareOffsetReset, Tail,
};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_share_group_offsets::{self, AlterShareGroupOffsetsRequest},
        consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
        delete_groups::DeleteGroupsRequest,
        delete_share_group_offsets::{self, DeleteShareGroupOffsetsRequest},
        describe_configs::{self, DescribeConfigsRequest},
        describe_groups::DescribeGroupsRequest,
        describe_share_group_offsets::{self, DescribeShareGroupOffsetsRequest},
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest},
        join_group::{self, JoinGroupRequest},
        list_groups::ListGroupsRequest,
        offset_commit::{self, OffsetCommitRequest},
        share_acknowledge::{self, ShareAcknowledgeRequest, ShareAcknowledgeResponse},
        share_fetch::{self, ShareFetchRequest, ShareFetchResponse},
        share_group_describe::{ShareGroupDescribeRequest, response::Group as DescribedGroup},
        share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse},
    },
    uuid::Uuid,
};

const GROUP: &str = "g";
const MS: Duration = Duration::from_millis(1);
const GAP: i8 = 0;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const RENEW: i8 = 4;

/// One broker, topic `t` of two partitions; groups begin with the first record, locks hold for a second.
fn world(change: impl FnOnce(&mut ShareGroupOptions)) -> World {
    let mut share_groups = ShareGroupOptions {
        auto_offset_reset: ShareOffsetReset::Earliest,
        record_lock_duration: 1000 * MS,
        session_timeout: 1000 * MS,
        ..ShareGroupOptions::default()
    };
    change(&mut share_groups);
    let mut world = World::new(ClusterOptions { brokers: 1, share_groups, ..ClusterOptions::default() });
    world.cluster.control().create_topic("t", 2, 1).unwrap();
    world
}

/// Produces a record to partition 0, which `broker` leads.
fn produce_at(world: &mut World, broker: i32) {
    let connection = world.open(broker);
    assert_eq!(world.produce(connection, 0, Batch::of(1).build()).0, ErrorCode::NONE);
}

fn produce(world: &mut World, partition: i32, records: i32) {
    let connection = world.open(1);
    let (error, _) = world.produce(connection, partition, Batch::of(records).build());
    assert_eq!(error, ErrorCode::NONE);
}

fn topic_id(world: &mut World) -> Uuid {
    world.cluster.control().topic_id("t").unwrap()
}

fn heartbeat_request(member: &str, member_epoch: i32, topics: Option<&[&str]>) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: GROUP.to_owned(),
        member_id: member.to_owned(),
        member_epoch,
        rack_id: None,
        subscribed_topic_names: topics.map(|topics| topics.iter().map(|&topic| topic.to_owned()).collect()),
    }
}

fn heartbeat(
    world: &mut World,
    member: &str,
    member_epoch: i32,
    topics: Option<&[&str]>,
) -> ShareGroupHeartbeatResponse {
    let connection = world.open(1);
    world.call(connection, 1, &heartbeat_request(member, member_epoch, topics))
}

/// The partitions of `t` that a heartbeat's answer assigns, if it says anything of that.
fn assigned(answer: &ShareGroupHeartbeatResponse) -> Option<Vec<i32>> {
    let assignment = answer.assignment.as_ref()?;
    Some(assignment.topic_partitions.iter().flat_map(|topic| topic.partitions.clone()).collect())
}

fn describe(world: &mut World) -> DescribedGroup {
    let connection = world.open(1);
    let request =
        ShareGroupDescribeRequest { group_ids: vec![GROUP.to_owned()], include_authorized_operations: true };
    world.call(connection, 1, &request).groups.remove(0)
}

/// A member's share session with broker 1.
struct Session {
    connection: ConnectionId,
    member: String,
    topic_id: Uuid,
    epoch: i32,
    max_records: i32,
    is_strict: bool,
}

/// What a ShareFetch brought from a partition: error, acquired (first, last, delivery count), base offsets of batches.
#[derive(Debug, PartialEq, Eq)]
struct Fetched {
    error: ErrorCode,
    acquired: Vec<(i64, i64, i16)>,
    batches: Vec<i64>,
}

type Acknowledged<'a> = (i32, &'a [(i64, i64, &'a [i8])]);

impl Session {
    fn new(world: &mut World, member: &str) -> Self {
        let (connection, topic_id) = (world.open(1), topic_id(world));
        let member = member.to_owned();
        Self { connection, member, topic_id, epoch: 0, max_records: 500, is_strict: false }
    }

    fn request(
        &mut self,
        partitions: &[i32],
        max_wait_ms: i32,
        acknowledged: &[Acknowledged<'_>],
    ) -> ShareFetchRequest {
        let mut topic = share_fetch::request::Topic { topic_id: self.topic_id, ..Default::default() };
        for &partition_index in partitions {
            topic.partitions.push(share_fetch::request::Partition { partition_index, ..Default::default() });
        }
        for (partition_index, batches) in acknowledged {
            let batches =
                batches.iter().map(|(first, last, types)| share_fetch::request::AcknowledgementBatch {
                    first_offset: *first,
                    last_offset: *last,
                    acknowledge_types: types.to_vec(),
                });
            topic.partitions.push(share_fetch::request::Partition {
                partition_index: *partition_index,
                acknowledgement_batches: batches.collect(),
            });
        }
        let epoch = self.epoch;
        self.epoch = epoch.wrapping_add(1);
        ShareFetchRequest {
            group_id: Some(GROUP.to_owned()),
            member_id: Some(self.member.clone()),
            share_session_epoch: epoch,
            max_wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: self.max_records,
            batch_size: 500,
            share_acquire_mode: i8::from(self.is_strict),
            is_renew_ack: false,
            topics: if topic.partitions.is_empty() { Vec::new() } else { vec![topic] },
            forgotten_topics_data: Vec::new(),
        }
    }

    fn call(&mut self, world: &mut World, request: &ShareFetchRequest) -> ShareFetchResponse {
        world.call(self.connection, 2, request)
    }

    /// Fetches from partition 0, which the session has from its start.
    fn fetch(&mut self, world: &mut World) -> Fetched {
        let partitions: &[i32] = if self.epoch == 0 { &[0] } else { &[] };
        let request = self.request(partitions, 0, &[]);
        let answer = self.call(world, &request);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        fetched(&answer, 0)
    }

    fn acquired(&mut self, world: &mut World) -> Vec<(i64, i64, i16)> {
        self.fetch(world).acquired
    }

    /// Acknowledges records of partition 0.
    fn acknowledge(&mut self, world: &mut World, batches: &[(i64, i64, &[i8])]) -> ErrorCode {
        let epoch = self.epoch;
        self.epoch += 1;
        let answer = self.acknowledge_in(world, epoch, false, batches);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        answer.responses[0].partitions[0].error_code
    }

    fn acknowledge_in(
        &mut self,
        world: &mut World,
        epoch: i32,
        is_renew_ack: bool,
        batches: &[(i64, i64, &[i8])],
    ) -> ShareAcknowledgeResponse {
        let batches =
            batches.iter().map(|(first, last, types)| share_acknowledge::request::AcknowledgementBatch {
                first_offset: *first,
                last_offset: *last,
                acknowledge_types: types.to_vec(),
            });
        let partitions = vec![share_acknowledge::request::Partition {
            partition_index: 0,
            acknowledgement_batches: batches.collect(),
        }];
        let request = ShareAcknowledgeRequest {
            group_id: Some(GROUP.to_owned()),
            member_id: Some(self.member.clone()),
            share_session_epoch: epoch,
            is_renew_ack,
            topics: vec![share_acknowledge::request::Topic { topic_id: self.topic_id, partitions }],
        };
        world.call(self.connection, 2, &request)
    }
}

fn fetched(answer: &ShareFetchResponse, partition: i32) -> Fetched {
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let Some(found) = partitions.into_iter().find(|p| p.partition_index == partition) else {
        return Fetched { error: ErrorCode::NONE, acquired: Vec::new(), batches: Vec::new() };
    };
    let acquired = found.acquired_records.iter().map(|r| (r.first_offset, r.last_offset, r.delivery_count));
    Fetched { error: found.error_code, acquired: acquired.collect(), batches: base_offsets(&found.records) }
}

/// Where the group is in partition 0, and how far behind.
fn start_offset(world: &mut World) -> (i64, i64) {
    let connection = world.open(1);
    let group = describe_share_group_offsets::request::Group {
        group_id: GROUP.to_owned(),
        topics: Some(vec![describe_share_group_offsets::request::Topic {
            topic_name: "t".to_owned(),
            partitions: vec![0],
        }]),
    };
    let answer = world.call(connection, 1, &DescribeShareGroupOffsetsRequest { groups: vec![group] });
    let partition = &answer.groups[0].topics[0].partitions[0];
    assert_eq!((answer.groups[0].error_code, partition.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    (partition.start_offset, partition.lag)
}

#[test]
fn members_share_the_partitions_and_each_has_one_even_if_there_are_more_members() {
    let mut world = world(|_| ());
    let first = heartbeat(&mut world, "a", 0, Some(&["t"]));
    assert_eq!(
        (first.error_code, first.member_epoch, first.heartbeat_interval_ms),
        (ErrorCode::NONE, 1, 5000)
    );
    assert_eq!(first.member_id.as_deref(), Some("a"));
    assert_eq!(assigned(&first), Some(vec![0, 1]));
    assert_eq!(assigned(&heartbeat(&mut world, "a", 1, None)), None, "there is no news");

    let second = heartbeat(&mut world, "b", 0, Some(&["t"]));
    assert_eq!((second.member_epoch, assigned(&second).unwrap().len()), (2, 1));
    let news = heartbeat(&mut world, "a", 1, None);
    assert_eq!((news.member_epoch, assigned(&news).unwrap().len()), (2, 1));
    assert_ne!(assigned(&news), assigned(&second));

    let third = heartbeat(&mut world, "c", 0, Some(&["t"]));
    assert!(!assigned(&third).unwrap().is_empty());
    let group = describe(&mut world);
    assert_eq!((group.group_state.as_str(), group.assignor_name.as_str()), ("Stable", "simple"));
    assert_eq!((group.group_epoch, group.assignment_epoch, group.members.len()), (3, 3, 3));
    assert_eq!(group.members[2].assignment.topic_partitions[0].topic_name, "t");
    assert_ne!(group.authorized_operations, i32::MIN);

    assert_eq!(heartbeat(&mut world, "a", -1, None).member_epoch, -1);
    assert_eq!(heartbeat(&mut world, "b", -1, None).member_epoch, -1);
    let alone = heartbeat(&mut world, "c", third.member_epoch, None);
    assert_eq!(assigned(&alone), Some(vec![0, 1]));
    world.cluster.control().create_partitions("t", 3).unwrap();
    let more = heartbeat(&mut world, "c", alone.member_epoch, None);
    assert_eq!(assigned(&more), Some(vec![0, 1, 2]));
    assert_eq!(heartbeat(&mut world, "c", -1, None).error_code, ErrorCode::NONE);
    assert_eq!(describe(&mut world).group_state, "Empty");
}

#[test]
fn a_member_is_known_by_its_id_and_epoch() {
    let mut world = world(|options| options.max_size = 1);
    let refused = |world: &mut World, request: &ShareGroupHeartbeatRequest| {
        let connection = world.open(1);
        let answer = world.call(connection, 1, request);
        assert!(answer.error_message.is_some());
        answer.error_code
    };
    let t = Some(&["t"][..]);
    let beat = heartbeat_request;
    assert_eq!(refused(&mut world, &beat("", 0, t)), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", -2, t)), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", 0, None)), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", 0, Some(&[]))), ErrorCode::INVALID_REQUEST);
    let rack = ShareGroupHeartbeatRequest { rack_id: Some(String::new()), ..beat("a", 0, t) };
    assert_eq!(refused(&mut world, &rack), ErrorCode::INVALID_REQUEST);
    let nobody = ShareGroupHeartbeatRequest { group_id: String::new(), ..beat("a", 0, t) };
    assert_eq!(refused(&mut world, &nobody), ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(&mut world, &beat("a", 1, None)), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(refused(&mut world, &beat("a", -1, None)), ErrorCode::GROUP_ID_NOT_FOUND);

    assert_eq!(heartbeat(&mut world, "a", 0, t).member_epoch, 1);
    assert_eq!(refused(&mut world, &beat("b", 0, t)), ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(refused(&mut world, &beat("b", 1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(refused(&mut world, &beat("b", -1, None)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(refused(&mut world, &beat("a", 7, None)), ErrorCode::FENCED_MEMBER_EPOCH);
    let again = heartbeat(&mut world, "a", 1, Some(&["t", "other"]));
    assert_eq!((again.member_epoch, again.error_code), (2, ErrorCode::NONE));
    let lost = heartbeat(&mut world, "a", 1, None);
    assert_eq!((lost.member_epoch, lost.error_code), (2, ErrorCode::NONE), "it may not have got that answer");
    let rejoined = heartbeat(&mut world, "a", 0, t);
    assert_eq!((rejoined.member_epoch, assigned(&rejoined)), (3, Some(vec![0, 1])));
    assert_eq!(refused(&mut world, &beat("a", 1, None)), ErrorCode::FENCED_MEMBER_EPOCH);
}

#[test]
fn a_silent_member_is_removed_after_the_session_timeout() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    heartbeat(&mut world, "b", 0, Some(&["t"]));
    let mut epoch = 1;
    for _ in 0..4 {
        world.pass(400 * MS);
        let answer = heartbeat(&mut world, "a", epoch, None);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        epoch = answer.member_epoch;
    }
    assert_eq!(epoch, 3, "the group changed when b was gone");
    assert_eq!(heartbeat(&mut world, "b", 2, None).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(describe(&mut world).members.len(), 1);
    world.pass(1000 * MS);
    assert_eq!(describe(&mut world).group_state, "Empty");
}

#[test]
fn partitions_can_be_assigned_by_hand_in_place_of_the_assignor() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    heartbeat(&mut world, "b", 0, Some(&["t"]));
    let mut control = world.cluster.control();
    assert_eq!(control.share_group_members(GROUP), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(control.share_group_members("other"), None);
    let both = vec![("t".to_owned(), 0), ("t".to_owned(), 1), ("t".to_owned(), 9), ("none".to_owned(), 0)];
    let shared = BTreeMap::from([("a".to_owned(), both), ("b".to_owned(), vec![("t".to_owned(), 0)])]);
    assert!(control.assign_share_group(GROUP, Some(&shared)));
    assert!(!control.assign_share_group("other", Some(&shared)));
    let a = heartbeat(&mut world, "a", 1, Some(&["t"]));
    assert_eq!(assigned(&a), Some(vec![0, 1]), "what does not exist is left out");
    assert_eq!(assigned(&heartbeat(&mut world, "b", 2, None)), Some(vec![0]));
    assert_eq!(assigned(&heartbeat(&mut world, "c", 0, Some(&["t"]))), Some(vec![]), "it was not named");

    world.cluster.control().assign_share_group(GROUP, None);
    let epoch = describe(&mut world).members[2].member_epoch;
    assert_eq!(assigned(&heartbeat(&mut world, "c", epoch, None)).unwrap().len(), 1, "three share two");
}

#[test]
fn records_go_to_one_member_until_it_says_what_becomes_of_them() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 3);
    produce(&mut world, 0, 4);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    let got = a.fetch(&mut world);
    assert_eq!(got, Fetched { error: ErrorCode::NONE, acquired: vec![(0, 6, 1)], batches: vec![0, 3] });
    assert_eq!(b.acquired(&mut world), [], "all of it is a's");
    assert_eq!(start_offset(&mut world), (0, 7));

    // 1 is released, 2 is rejected, 3 has a gap; 6 stays.
    let types = [ACCEPT, RELEASE, REJECT, GAP, ACCEPT, RELEASE];
    assert_eq!(a.acknowledge(&mut world, &[(0, 5, &types)]), ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (1, 3), "what lies before the first record that isn't done is");
    let again = b.fetch(&mut world);
    assert_eq!((again.acquired, again.batches), (vec![(1, 1, 2), (5, 5, 2)], vec![0, 3]));
    assert_eq!(b.acknowledge(&mut world, &[(1, 1, &[ACCEPT]), (5, 5, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (6, 1));
    assert_eq!(a.acknowledge(&mut world, &[(6, 6, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (7, 0));
    assert_eq!(a.acknowledge(&mut world, &[(0, 6, &[ACCEPT])]), ErrorCode::NONE, "that was over anyhow");
}

#[test]
fn a_lock_that_expires_gives_records_to_others_until_they_were_delivered_too_often() {
    let mut world = world(|options| options.delivery_count_limit = 2);
    produce(&mut world, 0, 3);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    world.pass(999 * MS);
    assert_eq!(b.acquired(&mut world), []);
    // b waits, and gets them when a's time is over.
    let request = b.request(&[], 5000, &[]);
    let id = world.send(b.connection, 2, &request);
    assert!(world.outputs.is_empty());
    world.pass(1 * MS);
    let answer = world.answer::<ShareFetchRequest>(b.connection, 2, id).unwrap();
    assert_eq!(fetched(&answer, 0).acquired, [(0, 2, 2)]);
    assert_eq!(answer.acquisition_lock_timeout_ms, 1000);
    assert_eq!(
        a.acknowledge(&mut world, &[(0, 2, &[ACCEPT])]),
        ErrorCode::INVALID_RECORD_STATE,
        "they are b's"
    );
    assert_eq!(b.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(
        b.acknowledge(&mut world, &[(1, 1, &[RELEASE])]),
        ErrorCode::NONE,
        "for the second and last time"
    );
    assert_eq!(start_offset(&mut world), (2, 1));
    world.pass(1000 * MS);
    assert_eq!(start_offset(&mut world), (3, 0));
    assert_eq!(a.acquired(&mut world), [], "there was no third time");
}

#[test]
fn a_lock_that_is_renewed_holds_from_then_on() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 2);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    a.acquired(&mut world);
    world.pass(600 * MS);
    let secret = a.acknowledge_in(&mut world, 1, false, &[(0, 0, &[RENEW])]);
    assert_eq!(
        secret.responses[0].partitions[0].error_code,
        ErrorCode::INVALID_REQUEST,
        "the request has to say it"
    );
    let renewed = a.acknowledge_in(&mut world, 2, true, &[(0, 0, &[RENEW])]);
    assert_eq!(renewed.responses[0].partitions[0].error_code, ErrorCode::NONE);
    assert_eq!(renewed.acquisition_lock_timeout_ms, 1000);
    world.pass(600 * MS);
    assert_eq!(b.acquired(&mut world), [(1, 1, 2)]);
    a.epoch = 3;
    let mut by_fetch = a.request(&[], 0, &[(0, &[(0, 0, &[RENEW])])]);
    by_fetch.is_renew_ack = true;
    let refused = a.call(&mut world, &by_fetch);
    assert_eq!(refused.error_code, ErrorCode::INVALID_REQUEST, "it must not fetch at the same time");
    (by_fetch.max_bytes, by_fetch.min_bytes, by_fetch.max_records) = (0, 0, 0);
    let answer = a.call(&mut world, &by_fetch);
    assert_eq!((answer.error_code, fetched(&answer, 0).acquired), (ErrorCode::NONE, vec![]));
    assert_eq!(answer.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);
    world.pass(600 * MS);
    assert_eq!(b.acquired(&mut world), []);
}

#[test]
fn acknowledgements_are_done_all_or_none_and_only_of_records_that_the_member_has() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 4);
    produce(&mut world, 0, 4);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    a.max_records = 4;
    assert_eq!(a.acquired(&mut world), [(0, 3, 1)]);
    assert_eq!(b.acquired(&mut world), [(4, 7, 1)]);
    for (batches, error) in [
        (&[(0, 0, &[ACCEPT][..]), (3, 4, &[ACCEPT])][..], ErrorCode::INVALID_RECORD_STATE),
        (&[(0, 8, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, i64::MAX, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(1, 0, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(i64::MAX, i64::MIN, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(i64::MIN, i64::MAX, &[ACCEPT, ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 2, &[ACCEPT]), (1, 3, &[RELEASE])], ErrorCode::INVALID_REQUEST),
        (&[(0, 2, &[ACCEPT]), (2, 3, &[RELEASE])], ErrorCode::INVALID_RECORD_STATE),
        (&[(2, 3, &[ACCEPT]), (0, 1, &[ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[ACCEPT, ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 1, &[ACCEPT, ACCEPT, ACCEPT])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[5])], ErrorCode::INVALID_REQUEST),
        (&[(0, 3, &[-1])], ErrorCode::INVALID_REQUEST),
    ] {
        assert_eq!(a.acknowledge(&mut world, batches), error, "{batches:?}");
        assert_eq!(start_offset(&mut world), (0, 8), "{batches:?} was not done in part");
    }
    assert_eq!(a.acknowledge(&mut world, &[(0, 1, &[ACCEPT]), (2, 2, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(
        a.acknowledge(&mut world, &[(2, 2, &[ACCEPT])]),
        ErrorCode::INVALID_RECORD_STATE,
        "it was released"
    );
    assert_eq!(b.acquired(&mut world), [(2, 2, 2)]);
}

#[test]
fn acknowledgements_go_with_a_fetch_and_make_room_for_what_it_brings() {
    let mut world = world(|options| options.partition_max_record_locks = 3);
    for _ in 0..5 {
        produce(&mut world, 0, 1);
    }
    let mut a = Session::new(&mut world, "a");
    let request = a.request(&[0], 0, &[]);
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(0, 2, 1)], "no more locks than allowed");
    assert_eq!(a.acquired(&mut world), []);
    let request = a.request(&[], 0, &[(0, &[(0, 1, &[ACCEPT]), (2, 2, &[RELEASE])])]);
    let answer = a.call(&mut world, &request);
    assert_eq!(fetched(&answer, 0).acquired, [(2, 2, 2), (3, 4, 1)]);
    assert_eq!(answer.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);

    let request =
        a.request(&[], 0, &[(0, &[(0, 9, &[ACCEPT])]), (1, &[(0, 0, &[ACCEPT])]), (7, &[(0, 0, &[ACCEPT])])]);
    let partitions = a.call(&mut world, &request).responses.remove(0).partitions;
    let errors: Vec<_> = partitions.iter().map(|p| (p.partition_index, p.acknowledge_error_code)).collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(errors, [(0, ErrorCode::INVALID_REQUEST), (1, unknown), (7, unknown)]);
    let first = ShareFetchRequest { share_session_epoch: 0, ..request };
    assert_eq!(
        a.call(&mut world, &first).error_code,
        ErrorCode::INVALID_REQUEST,
        "nothing can be acknowledged yet"
    );
}

#[test]
fn locks_are_limited_also_within_a_batch() {
    let mut world = world(|options| options.partition_max_record_locks = 3);
    produce(&mut world, 0, 8);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(1, 2, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [], "the first one is still under way");
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(3, 5, 1)]);
}

#[test]
fn whole_batches_are_acquired_beyond_the_most_records_unless_the_limit_is_strict() {
    let mut world = world(|_| ());
    for _ in 0..2 {
        produce(&mut world, 0, 10);
    }
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    (a.max_records, b.max_records, b.is_strict) = (3, 3, true);
    assert_eq!(a.acquired(&mut world), [(0, 9, 1)]);
    let strict = b.fetch(&mut world);
    assert_eq!((strict.acquired, strict.batches), (vec![(10, 12, 1)], vec![10]));
    assert_eq!(b.acquired(&mut world), [(13, 15, 1)], "it goes on within the batch");
    b.max_records = 0;
    assert_eq!(b.acquired(&mut world), []);
    b.max_records = i32::MAX;
    assert_eq!(b.acquired(&mut world), [(16, 19, 1)]);
}

#[test]
fn small_batches_are_told_as_one_range_up_to_the_batch_size() {
    let mut world = world(|_| ());
    for _ in 0..5 {
        produce(&mut world, 0, 2);
    }
    let mut a = Session::new(&mut world, "a");
    let request = ShareFetchRequest { batch_size: 4, ..a.request(&[0], 0, &[]) };
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(0, 3, 1), (4, 7, 1), (8, 9, 1)]);
    let mut b = Session::new(&mut world, "b");
    produce(&mut world, 0, 2);
    let request = ShareFetchRequest { batch_size: i32::MIN, ..b.request(&[0], 0, &[]) };
    assert_eq!(fetched(&b.call(&mut world, &request), 0).acquired, [(10, 11, 1)]);
}

#[test]
fn records_of_a_compressed_batch_are_acknowledged_one_by_one() {
    let mut world = world(|_| ());
    let connection = world.open(1);
    let plain = Batch::of(6).value_size(1000).build();
    let mut body = Vec::new();
    let mut compressed = plain[..61].to_vec();
    body.extend_from_slice(&common::gzip(&plain[61..]));
    compressed.extend_from_slice(&body);
    common::seal(&mut compressed, 1);
    assert!(compressed.len() < 1000);
    assert_eq!(world.produce(connection, 0, compressed.clone()), (ErrorCode::NONE, 0));
    assert_eq!(world.produce(connection, 0, compressed.clone()), (ErrorCode::NONE, 6));
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    assert_eq!(a.acquired(&mut world), [(0, 11, 1)]);
    let types = [ACCEPT, RELEASE, ACCEPT, ACCEPT, RELEASE, RELEASE];
    assert_eq!(a.acknowledge(&mut world, &[(2, 7, &types), (9, 9, &[RELEASE])]), ErrorCode::NONE);
    let request = b.request(&[0], 0, &[]);
    let answer = b.call(&mut world, &request);
    assert_eq!(fetched(&answer, 0).acquired, [(3, 3, 2), (6, 7, 2), (9, 9, 2)]);
    assert_eq!(
        answer.responses[0].partitions[0].records.len(),
        2 * compressed.len(),
        "both batches, as they are"
    );
}

#[test]
fn a_fetch_waits_for_records_and_comes_back_empty_when_there_are_none() {
    let mut world = world(|_| ());
    let mut a = Session::new(&mut world, "a");
    let request = a.request(&[0, 1], 500, &[]);
    let id = world.send(a.connection, 2, &request);
    world.pass(499 * MS);
    assert!(world.outputs.is_empty());
    world.pass(1 * MS);
    let answer = world.answer::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    assert_eq!(answer.error_code, ErrorCode::NONE);
    assert_eq!(answer.responses[0].partitions.len(), 2, "the first answer tells of all partitions");

    let request = a.request(&[], 500, &[]);
    let id = world.send(a.connection, 2, &request);
    produce(&mut world, 1, 2);
    let answer = world.answer::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    assert_eq!(answer.responses[0].partitions.len(), 1, "later ones of what there is");
    assert_eq!(fetched(&answer, 1).acquired, [(0, 1, 1)]);

    let request = ShareFetchRequest { min_bytes: 300, ..a.request(&[], 500, &[]) };
    let id = world.send(a.connection, 2, &request);
    produce(&mut world, 0, 2);
    assert!(world.outputs.is_empty(), "that was not enough");
    produce(&mut world, 0, 9);
    let answer = world.answer::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    assert_eq!(fetched(&answer, 0).acquired, [(0, 10, 1)]);
}

#[test]
fn bytes_are_limited_but_for_the_first_batch() {
    let mut world = world(|_| ());
    for _ in 0..3 {
        let connection = world.open(1);
        world.produce(connection, 0, Batch::of(1).value_size(1000).build());
    }
    let mut a = Session::new(&mut world, "a");
    let request = ShareFetchRequest { max_bytes: 1, ..a.request(&[0], 0, &[]) };
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(0, 0, 1)]);
    let request = ShareFetchRequest { max_bytes: -5, ..a.request(&[], 0, &[]) };
    assert_eq!(fetched(&a.call(&mut world, &request), 0).acquired, [(1, 1, 1)]);
}

#[test]
fn a_session_goes_on_only_in_its_next_epoch_and_gives_back_what_it_had_when_it_ends() {
    let mut world = world(|options| options.max_share_sessions = 2);
    produce(&mut world, 0, 2);
    let mut a = Session::new(&mut world, "a");
    let in_epoch = |a: &mut Session, world: &mut World, epoch: i32| {
        a.epoch = epoch;
        let request = a.request(&[0], 0, &[]);
        a.call(world, &request).error_code
    };
    assert_eq!(in_epoch(&mut a, &mut world, 1), ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(in_epoch(&mut a, &mut world, -1), ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(in_epoch(&mut a, &mut world, 0), ErrorCode::NONE);
    for wrong in [2, 7, -2, i32::MAX, i32::MIN] {
        assert_eq!(in_epoch(&mut a, &mut world, wrong), ErrorCode::INVALID_SHARE_SESSION_EPOCH);
        let answer = a.acknowledge_in(&mut world, wrong, false, &[(0, 1, &[ACCEPT])]);
        assert_eq!(answer.error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    }
    let opens = a.acknowledge_in(&mut world, 0, false, &[(0, 1, &[ACCEPT])]);
    assert_eq!(opens.error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH, "only a fetch opens a session");
    assert_eq!(in_epoch(&mut a, &mut world, 1), ErrorCode::NONE);

    let (mut b, mut c) = (Session::new(&mut world, "b"), Session::new(&mut world, "c"));
    assert_eq!(b.acquired(&mut world), []);
    assert_eq!(in_epoch(&mut c, &mut world, 0), ErrorCode::SHARE_SESSION_LIMIT_REACHED);
    assert_eq!(in_epoch(&mut a, &mut world, 0), ErrorCode::NONE, "it replaces its own");
    let closed = a.acknowledge_in(&mut world, -1, false, &[(0, 0, &[ACCEPT])]);
    assert_eq!(
        (closed.error_code, closed.responses[0].partitions[0].error_code),
        (ErrorCode::NONE, ErrorCode::NONE)
    );
    assert_eq!(b.acquired(&mut world), [(1, 1, 2)], "what a had not acknowledged");
    assert_eq!(in_epoch(&mut a, &mut world, 1), ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(in_epoch(&mut c, &mut world, 0), ErrorCode::NONE);
    // A connection that breaks ends its session as well.
    world.cluster.handle_closed(world.now, b.connection);
    assert_eq!(c.acquired(&mut world), [(1, 1, 3)]);
    let closing =
        ShareFetchRequest { share_session_epoch: -1, ..c.request(&[], 0, &[(0, &[(1, 1, &[ACCEPT])])]) };
    let closed = c.call(&mut world, &closing);
    assert_eq!(closed.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);
    assert_eq!(start_offset(&mut world), (2, 0));
    assert_eq!(in_epoch(&mut c, &mut world, 2), ErrorCode::SHARE_SESSION_NOT_FOUND);
}

#[test]
fn who_asks_must_say_which_group_and_member_it_is() {
    let mut world = world(|_| ());
    let mut a = Session::new(&mut world, "a");
    let long = "m".repeat(37);
    for (group, member) in [
        (None, Some("a")),
        (Some(""), Some("a")),
        (Some("g"), None),
        (Some("g"), Some("")),
        (Some("g"), Some(&long[..])),
    ] {
        let request = ShareFetchRequest {
            group_id: group.map(str::to_owned),
            member_id: member.map(str::to_owned),
            share_session_epoch: 0,
            ..a.request(&[0], 0, &[])
        };
        assert_eq!(a.call(&mut world, &request).error_code, ErrorCode::INVALID_REQUEST);
    }
    a.epoch = 0;
    let request = ShareFetchRequest { share_acquire_mode: 2, ..a.request(&[0], 0, &[]) };
    assert_eq!(a.call(&mut world, &request).error_code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn partitions_can_be_added_to_a_session_and_forgotten() {
    let mut world = world(|_| ());
    produce(&mut world, 1, 1);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), []);
    let request = a.request(&[1], 0, &[]);
    assert_eq!(fetched(&a.call(&mut world, &request), 1).acquired, [(0, 0, 1)]);
    let mut request = a.request(&[], 0, &[]);
    request.forgotten_topics_data =
        vec![share_fetch::request::ForgottenTopicsData { topic_id: a.topic_id, partitions: vec![0, 1, 9] }];
    a.call(&mut world, &request);
    produce(&mut world, 1, 1);
    let request = a.request(&[], 100, &[]);
    let answer = a.call(&mut world, &request);
    assert!(answer.responses.is_empty(), "a session without partitions has nothing to wait for");
}

#[test]
fn a_group_begins_where_its_configuration_says_and_goes_on_from_there() {
    let mut world = world(|options| options.auto_offset_reset = ShareOffsetReset::Latest);
    produce(&mut world, 0, 5);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), []);
    assert_eq!(start_offset(&mut world), (5, 0));
    produce(&mut world, 0, 2);
    assert_eq!(a.acquired(&mut world), [(5, 6, 1)]);
    // Another group begins anew, this one doesn't.
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

/// What holds for the group, and from where.
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
fn a_groups_own_configuration_goes_before_that_of_the_brokers() {
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
fn a_group_may_begin_with_records_that_are_not_older_than_so_long() {
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
fn records_that_are_deleted_are_done_with() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 5);
    produce(&mut world, 0, 5);
    let (mut a, mut b) = (Session::new(&mut world, "a"), Session::new(&mut world, "b"));
    a.max_records = 1;
    assert_eq!(a.acquired(&mut world), [(0, 4, 1)]);
    world.cluster.control().delete_records("t", 0, 7);
    assert_eq!(b.acquired(&mut world), [(7, 9, 1)]);
    assert_eq!(start_offset(&mut world), (7, 3));
    assert_eq!(a.acknowledge(&mut world, &[(0, 4, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), []);
    // What comes after a log was cut off is new.
    world.cluster.control().truncate_log("t", 0, 0);
    produce(&mut world, 0, 2);
    let end = world.cluster.control().partition("t", 0).unwrap().log_end_offset;
    assert_eq!(a.acquired(&mut world), [(end - 2, end - 1, 1)]);
}

#[test]
fn uncommitted_records_are_delivered_only_if_the_group_reads_them() {
    let mut world = world(|options| options.isolation_level = IsolationLevel::ReadCommitted);
    produce(&mut world, 0, 2);
    let connection = world.open(1);
    let mut transactional = Batch::of(2).producer(1, 0, 0);
    transactional.attributes = 0x10;
    assert_eq!(world.produce(connection, 0, transactional.build()), (ErrorCode::NONE, 2));
    produce(&mut world, 0, 1);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 1, 1)], "up to the transaction");
    world.cluster.control().options().share_groups.isolation_level = IsolationLevel::ReadUncommitted;
    assert_eq!(a.acquired(&mut world), [(2, 4, 1)]);
}

#[test]
fn another_leader_is_named_and_has_no_locks() {
    let share_groups =
        ShareGroupOptions { auto_offset_reset: ShareOffsetReset::Earliest, ..ShareGroupOptions::default() };
    let mut world = World::new(ClusterOptions { share_groups, ..ClusterOptions::default() });
    world.cluster.control().create_topic("t", 1, 3).unwrap();
    produce(&mut world, 0, 3);
    let mut a = Session::new(&mut world, "a");
    assert_eq!(a.acquired(&mut world), [(0, 2, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT]), (1, 1, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(1, 1, 2)]);
    // A fetch that waits hears of it at once.
    let request = a.request(&[], 5000, &[]);
    let id = world.send(a.connection, 2, &request);
    world.cluster.control().move_leader("t", 0, Some(BrokerId(2)));
    world.drain();
    let answer = world.answer::<ShareFetchRequest>(a.connection, 2, id).unwrap();
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((partition.current_leader.leader_id, partition.current_leader.leader_epoch), (2, 1));
    assert_eq!(answer.node_endpoints.len(), 1);
    assert_eq!((answer.node_endpoints[0].node_id, answer.node_endpoints[0].port), (2, 9093));

    let (epoch, late) = (a.epoch, &[(1, 1, &[ACCEPT][..])]);
    let answer = a.acknowledge_in(&mut world, epoch, false, late);
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((partition.current_leader.leader_id, answer.node_endpoints[0].node_id), (2, 2));

    let mut b = Session::new(&mut world, "a");
    b.connection = world.open(2);
    assert_eq!(b.acquired(&mut world), [(1, 1, 2), (2, 2, 1)], "what was not written down did not happen");
    assert_eq!(b.acknowledge(&mut world, &[(1, 2, &[ACCEPT])]), ErrorCode::NONE);
    produce_at(&mut world, 2);
    assert_eq!(b.acquired(&mut world), [(3, 3, 1)]);
    world.cluster.control().kill_broker(BrokerId(2), Tail::Kept);
    let leader = world.cluster.control().partition("t", 0).unwrap().leader.unwrap();
    let mut c = Session::new(&mut world, "c");
    c.connection = world.open(leader.0);
    assert_eq!(c.acquired(&mut world), [(3, 3, 1)]);
}

#[test]
fn topics_that_are_gone_and_faults_are_told_per_partition() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 1);
    let mut a = Session::new(&mut world, "a");
    let fault = Fault::new(FaultAction::Error(ErrorCode::KAFKA_STORAGE_ERROR)).api(ApiKey::ShareFetch);
    world.cluster.control().inject(fault.topic("t").partition(0).times(1));
    assert_eq!(a.fetch(&mut world).error, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(a.fetch(&mut world).acquired, [(0, 0, 1)]);
    let request = a.request(&[7], 1000, &[]);
    let answer = a.call(&mut world, &request);
    assert_eq!(fetched(&answer, 7).error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    world.cluster.control().delete_topic("t");
    let got = a.fetch(&mut world);
    assert_eq!(got.error, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]), ErrorCode::UNKNOWN_TOPIC_ID);
    world.cluster.control().create_topic("t", 1, 1).unwrap();
    produce(&mut world, 0, 1);
    let mut b = Session::new(&mut world, "a");
    assert_eq!(b.acquired(&mut world), [(0, 0, 1)], "another topic of that name is another one");
}

#[test]
fn errors_can_be_injected_into_every_request_as_a_whole() {
    let mut world = world(|_| ());
    produce(&mut world, 0, 1);
    for api in [ApiKey::ShareGroupHeartbeat, ApiKey::ShareFetch, ApiKey::ShareAcknowledge] {
        let fault = Fault::new(FaultAction::Error(ErrorCode::NOT_COORDINATOR)).api(api).times(1);
        world.cluster.control().inject(fault);
    }
    let failed = heartbeat(&mut world, "a", 0, Some(&["t"]));
    assert_eq!((failed.error_code, failed.member_epoch), (ErrorCode::NOT_COORDINATOR, 0));
    assert_eq!(heartbeat(&mut world, "a", 0, Some(&["t"])).member_epoch, 1);
    let mut a = Session::new(&mut world, "a");
    let request = a.request(&[0], 0, &[]);
    assert_eq!(a.call(&mut world, &request).error_code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(
        fetched(&a.call(&mut world, &request), 0).acquired,
        [(0, 0, 1)],
        "no session was opened before"
    );
    let refused = a.acknowledge_in(&mut world, 1, false, &[(0, 0, &[ACCEPT])]);
    assert_eq!((refused.error_code, refused.responses.len()), (ErrorCode::NOT_COORDINATOR, 0));
    assert_eq!(
        a.acknowledge(&mut world, &[(0, 0, &[ACCEPT])]),
        ErrorCode::NONE,
        "and it is in the same epoch still"
    );
}

#[test]
fn a_name_is_one_groups_only() {
    let mut world = world(|_| ());
    heartbeat(&mut world, "a", 0, Some(&["t"]));
    let connection = world.open(1);
    let protocol = join_group::request::Protocol { name: "range".to_owned(), metadata: Vec::new() };
    let join = JoinGroupRequest {
        group_id: GROUP.to_owned(),
        session_timeout_ms: 1000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        ..Default::default()
    };
    assert_eq!(world.call(connection, 5, &join).error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let beat = ConsumerGroupHeartbeatRequest {
        group_id: GROUP.to_owned(),
        member_id: "a".to_owned(),
        rebalance_timeout_ms: 1000,
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    assert_eq!(world.call(connection, 1, &beat).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let partitions = vec![offset_commit::request::Partition { partition_index: 0, ..Default::default() }];
    let topics =
        vec![offset_commit::request::Topic { name: "t".to_owned(), partitions, ..Default::default() }];
    let commit = OffsetCommitRequest {
        group_id: GROUP.to_owned(),
        generation_id_or_member_epoch: -1,
        topics,
        ..Default::default()
    };
    let answer = world.call(connection, 8, &commit);
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let other = OffsetCommitRequest { group_id: "classic".to_owned(), ..commit };
    assert_eq!(world.call(connection, 8, &other).topics[0].partitions[0].error_code, ErrorCode::NONE);
    let join = ShareGroupHeartbeatRequest {
        group_id: "classic".to_owned(),
        ..heartbeat_request("a", 0, Some(&["t"]))
    };
    assert_eq!(world.call(connection, 1, &join).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let mut session = Session::new(&mut world, "a");
    let fetch = ShareFetchRequest { group_id: Some(join.group_id), ..session.request(&[0], 0, &[]) };
    assert_eq!(session.call(&mut world, &fetch).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let groups = vec![GROUP.to_owned()];
    let described = world.call(connection, 6, &DescribeGroupsRequest { groups, ..Default::default() });
    assert_eq!(described.groups[0].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let group_ids = vec!["classic".to_owned(), "none".to_owned()];
    let request = ShareGroupDescribeRequest { group_ids, include_authorized_operations: false };
    for group in world.call(connection, 1, &request).groups {
        assert_eq!(group.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    }
}

#[test]
fn share_groups_are_listed_and_deleted_when_they_are_empty() {
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
    assert_eq!(a.acquired(&mut world), [(0, 4, 1)], "it begins anew");
}

#[test]
fn a_batch_that_claims_billions_of_records_takes_no_more_memory_than_another() {
    let mut world = world(|options| options.partition_max_record_locks = i32::MAX);
    let mut claims = Batch::of(1).build();
    claims[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
    claims[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    common::seal(&mut claims, 0);
    let connection = world.open(1);
    let answer = world.call(connection, 12, &produce_request("t", 0, -1, claims));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::NONE);
    let mut a = Session::new(&mut world, "a");
    let last = i64::from(i32::MAX) - 1;
    assert_eq!(a.acquired(&mut world), [(0, last, 1)]);
    assert_eq!(a.acknowledge(&mut world, &[(5, last - 5, &[RELEASE])]), ErrorCode::NONE);
    assert_eq!(a.acquired(&mut world), [(5, last - 5, 2)]);
}
