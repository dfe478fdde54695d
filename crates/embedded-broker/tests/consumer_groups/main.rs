//! Groups of the consumer protocol (KIP-848): joins, epochs, assignments and errors. The responses were compared with
//! Apache Kafka 4.3.1 step by step; scenarios in `crates/scenarios` run on both.

mod administration;
#[path = "../common/mod.rs"]
mod common;
mod migration;
mod subscriptions;

use std::time::Duration;

use common::World;
use ottla_embedded_broker::{Assignor, ClusterOptions, ConnectionId};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::{self, ConsumerGroupDescribeRequest},
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, request},
        delete_groups::DeleteGroupsRequest,
        describe_groups::DescribeGroupsRequest,
        join_group::{self, JoinGroupRequest},
        leave_group::{self, LeaveGroupRequest},
        list_groups::ListGroupsRequest,
        offset_commit::{self, OffsetCommitRequest},
        offset_fetch::{self, OffsetFetchRequest},
    },
    uuid::Uuid,
};

const GROUP: &str = "g";
const SECOND: Duration = Duration::from_secs(1);

/// One broker with topic `t` of four partitions, and a connection.
struct Group {
    world: World,
    connection: ConnectionId,
    topic: Uuid,
}

/// The content of a successful response: the epoch, and the assigned partitions of `t` if there are any.
type Reported = (i32, Option<Vec<i32>>);

impl Group {
    fn new() -> Self {
        Self::with(ClusterOptions::default())
    }

    fn with(options: ClusterOptions) -> Self {
        let mut world = World::new(ClusterOptions { brokers: 1, ..options });
        let topic = world.cluster.control().create_topic("t", 4, 1).unwrap();
        let connection = world.open(1);
        Self { world, connection, topic }
    }

    fn send(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        self.world.call(self.connection, 1, request)
    }

    fn reported(&mut self, request: &ConsumerGroupHeartbeatRequest) -> Reported {
        let response = self.send(request);
        assert_eq!(response.error_code, ErrorCode::NONE, "{:?}", response.error_message);
        assert_eq!(response.member_id.as_ref(), Some(&request.member_id));
        let topic = self.topic;
        let partitions = response.assignment.map(|assignment| {
            let mut topics = assignment.topic_partitions.into_iter();
            let found = topics.find(|of| of.topic_id == topic);
            found.map(|of| of.partitions).unwrap_or_default()
        });
        (response.member_epoch, partitions)
    }

    fn error(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ErrorCode {
        let response = self.send(request);
        assert!(response.error_code == ErrorCode::NONE || response.error_message.is_some());
        response.error_code
    }

    /// Joins with a subscription to `t`.
    fn join(&mut self, member_id: &str) -> Reported {
        self.reported(&join(member_id, &["t"]))
    }

    /// Sends a heartbeat with the member's owned partitions.
    fn beat(&mut self, member_id: &str, epoch: i32, owned: &[i32]) -> Reported {
        let request = self.beat_request(member_id, epoch, owned);
        self.reported(&request)
    }

    fn beat_request(&self, member_id: &str, epoch: i32, owned: &[i32]) -> ConsumerGroupHeartbeatRequest {
        let owned = request::TopicPartition { topic_id: self.topic, partitions: owned.to_vec() };
        let owned = if owned.partitions.is_empty() { Vec::new() } else { vec![owned] };
        ConsumerGroupHeartbeatRequest { topic_partitions: Some(owned), ..short(member_id, epoch) }
    }

    fn describe(&mut self) -> consumer_group_describe::response::Group {
        let request =
            ConsumerGroupDescribeRequest { group_ids: vec![GROUP.to_owned()], ..Default::default() };
        self.world.call(self.connection, 1, &request).groups.remove(0)
    }

    /// Returns state, group epoch and assignment epoch.
    fn state(&mut self) -> (String, i32, i32) {
        let group = self.describe();
        (group.group_state, group.group_epoch, group.assignment_epoch)
    }

    fn commit(&mut self, version: i16, (member_id, epoch): (&str, i32), partition: i32) -> ErrorCode {
        let partition = offset_commit::request::Partition {
            partition_index: partition,
            committed_offset: 5,
            ..Default::default()
        };
        let topic = offset_commit::request::Topic {
            name: "t".to_owned(),
            topic_id: self.topic,
            partitions: vec![partition],
        };
        let request = OffsetCommitRequest {
            group_id: GROUP.to_owned(),
            generation_id_or_member_epoch: epoch,
            member_id: member_id.to_owned(),
            topics: vec![topic],
            ..Default::default()
        };
        self.world.call(self.connection, version, &request).topics[0].partitions[0].error_code
    }

    fn committed(&mut self, member_id: Option<&str>, member_epoch: i32) -> Result<i64, ErrorCode> {
        let topic = offset_fetch::request::GroupTopic {
            name: "t".to_owned(),
            topic_id: self.topic,
            partition_indexes: vec![0],
        };
        let group = offset_fetch::request::Group {
            group_id: GROUP.to_owned(),
            member_id: member_id.map(str::to_owned),
            member_epoch,
            topics: Some(vec![topic]),
        };
        let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
        let response = self.world.call(self.connection, 9, &request).groups.remove(0);
        response.error_code.ok()?;
        Ok(response.topics[0].partitions[0].committed_offset)
    }

    /// Creates a group with members `a` and `b` in epoch 3, with two partitions each.
    fn of_two() -> Self {
        let mut group = Self::new();
        assert_eq!(group.join("a"), (2, Some(vec![0, 1, 2, 3])));
        assert_eq!(group.join("b"), (3, Some(vec![])));
        assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
        assert_eq!(group.beat("a", 2, &[0, 1]), (3, None));
        assert_eq!(group.beat("b", 3, &[]), (3, Some(vec![2, 3])));
        assert_eq!(group.state(), ("Stable".to_owned(), 3, 3));
        group
    }
}

fn short(member_id: &str, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: GROUP.to_owned(),
        member_id: member_id.to_owned(),
        member_epoch,
        ..Default::default()
    }
}

fn join(member_id: &str, topics: &[&str]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 3000,
        subscribed_topic_names: Some(topics.iter().map(|topic| (*topic).to_owned()).collect()),
        topic_partitions: Some(Vec::new()),
        ..short(member_id, 0)
    }
}

fn with_instance(request: ConsumerGroupHeartbeatRequest, instance_id: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest { instance_id: Some(instance_id.to_owned()), ..request }
}

fn named(name: &str, epoch: i32, aepoch: i32) -> (String, i32, i32) {
    (name.to_owned(), epoch, aepoch)
}

#[test]
fn first_member_gets_all_partitions_in_one_response() {
    let mut group = Group::new();
    let response = group.send(&join("a", &["t"]));
    assert_eq!((response.member_epoch, response.heartbeat_interval_ms), (2, 5000));
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, None));
    assert_eq!(group.reported(&short("a", 2)), (2, None));
    let whole = ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 3000,
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        ..group.beat_request("a", 2, &[0, 1, 2, 3])
    };
    assert_eq!(group.reported(&whole), (2, Some(vec![0, 1, 2, 3])), "a full report gets a full assignment");
    assert_eq!(group.state(), named("Stable", 2, 2));
}

#[test]
fn version_0_generates_the_member_id_and_lacks_regular_expressions() {
    let mut group = Group::new();
    let first = group.world.call(group.connection, 0, &join("", &["t"]));
    let second = group.world.call(group.connection, 0, &join("", &["t"]));
    assert_eq!((first.error_code, second.error_code), (ErrorCode::NONE, ErrorCode::NONE));
    let (first, second) = (first.member_id.unwrap(), second.member_id.unwrap());
    assert!(Uuid::parse(&first).is_some() && first != second);
    assert_eq!(group.beat(&first, 2, &[0, 1, 2, 3]).0, 2);
    let nobody = group.world.call(group.connection, 0, &short("", 2));
    assert_eq!(nobody.error_code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn partitions_are_assigned_only_after_their_revocation() {
    let mut group = Group::new();
    group.join("a");
    assert_eq!(group.join("b"), (3, Some(vec![])), "all partitions are still a's");
    assert_eq!(group.state(), named("Reconciling", 3, 3));
    assert_eq!(group.reported(&short("b", 3)), (3, None));
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])), "a keeps its epoch until it has");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, None));
    assert_eq!(group.reported(&short("a", 2)), (2, None), "a member that reports nothing may still own them");
    assert_eq!(group.beat("a", 2, &[0, 1, 3]), (2, None), "one is not revoked");
    let described = group.describe().members.remove(0);
    assert_eq!(described.assignment.topic_partitions[0].partitions, [0, 1, 2, 3], "until then it has them");
    assert_eq!(described.target_assignment.topic_partitions[0].partitions, [0, 1]);
    assert_eq!(group.reported(&short("b", 3)), (3, None));
    assert_eq!(group.beat("a", 2, &[0, 1]), (3, None));
    assert_eq!(group.reported(&short("b", 3)), (3, Some(vec![2, 3])));
    assert_eq!(group.state(), named("Stable", 3, 3));
}

#[test]
fn member_gets_free_partitions_first_and_the_rest_later() {
    let mut group = Group::of_two();
    assert_eq!(group.join("c"), (4, Some(vec![])));
    let target =
        group.describe().members.iter().find(|m| m.member_id == "c").unwrap().target_assignment.clone();
    let requested = target.topic_partitions[0].partitions.clone();
    let (giver, kept) = if requested[0] < 2 { ("a", [0, 1]) } else { ("b", [2, 3]) };
    let kept: Vec<i32> = kept.into_iter().filter(|partition| !requested.contains(partition)).collect();
    assert_eq!(requested.len(), 1, "four partitions of three members");
    for (member, owned) in [("a", [0, 1]), ("b", [2, 3])] {
        let reported = group.beat(member, 3, &owned);
        assert_eq!(reported, if member == giver { (3, Some(kept.clone())) } else { (4, None) });
    }
    assert_eq!(group.beat(giver, 3, &kept), (4, None));
    assert_eq!(group.reported(&short("c", 4)), (4, Some(requested)));
}

#[test]
fn target_change_during_revocation_takes_a_further_step() {
    let mut group = Group::new();
    group.join("a");
    group.join("b");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    assert_eq!(group.error(&short("b", -1)), ErrorCode::NONE);
    assert_eq!(group.reported(&short("a", 2)), (2, None), "it must revoke first");
    assert_eq!(group.beat("a", 2, &[0, 1]), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.state(), named("Stable", 4, 4));
}

#[test]
fn partitions_of_a_leaving_member_go_to_the_others() {
    let mut group = Group::of_two();
    let left = group.send(&short("b", -1));
    assert_eq!((left.error_code, left.member_epoch), (ErrorCode::NONE, -1));
    assert_eq!(group.state(), named("Assigning", 4, 3), "the next heartbeat computes");
    assert_eq!(group.reported(&short("a", 3)), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.error(&short("b", -1)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.error(&short("b", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.error(&short("a", -1)), ErrorCode::NONE);
    assert_eq!(group.state(), named("Empty", 5, 4));
    assert_eq!(group.join("a"), (6, Some(vec![0, 1, 2, 3])), "epochs go on");
}

#[test]
fn wrong_member_epochs_are_fenced_except_after_a_lost_response() {
    let mut group = Group::of_two();
    let error = |group: &mut Group, epoch, owned: &[i32]| {
        let request = group.beat_request("a", epoch, owned);
        group.error(&request)
    };
    assert_eq!(error(&mut group, 4, &[0, 1]), ErrorCode::FENCED_MEMBER_EPOCH, "from the future");
    assert_eq!(error(&mut group, i32::MAX, &[]), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(error(&mut group, 1, &[]), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(error(&mut group, 2, &[0, 1, 2]), ErrorCode::FENCED_MEMBER_EPOCH, "2 is b's now");
    assert_eq!(group.error(&short("a", 2)), ErrorCode::FENCED_MEMBER_EPOCH, "it may own anything");
    assert_eq!(group.beat("a", 2, &[0, 1]), (3, None), "the response with epoch 3 was lost");
    assert_eq!(group.join("a"), (3, Some(vec![0, 1])), "a fenced member rejoins and has lost nothing");
    assert_eq!(group.error(&short("c", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.state(), named("Stable", 3, 3));
}

#[test]
fn member_expires_by_the_session_timeout_of_its_last_heartbeat() {
    let mut group = Group::of_two();
    group.world.pass(SECOND * 44);
    assert_eq!(group.reported(&short("a", 3)), (3, None));
    group.world.pass(SECOND);
    assert_eq!(group.state(), named("Assigning", 4, 3), "b has left");
    group.world.cluster.control().options().group_consumer_session_timeout = SECOND * 2;
    group.world.cluster.control().options().group_consumer_heartbeat_interval = SECOND / 2;
    let response = group.send(&short("a", 3));
    assert_eq!((response.member_epoch, response.heartbeat_interval_ms), (4, 500));
    group.world.pass(SECOND * 2);
    assert_eq!(group.state(), named("Empty", 5, 4));
    assert_eq!(group.error(&short("a", 4)), ErrorCode::UNKNOWN_MEMBER_ID);
    group.world.pass(SECOND * 60);
    assert_eq!(group.world.cluster.poll_timeout(), None, "no timer is left behind");
}

#[test]
fn late_timer_does_not_extend_a_members_session() {
    let mut group = Group::of_two();
    group.world.pass_without_timeouts(SECOND * 44);
    assert_eq!(group.reported(&short("a", 3)), (3, None));
    group.world.pass_without_timeouts(SECOND * 2);
    assert_eq!(group.error(&short("b", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.reported(&short("a", 3)), (4, Some(vec![0, 1, 2, 3])));
}

#[test]
fn late_timer_does_not_extend_a_revocation() {
    let mut group = Group::new();
    group.join("a");
    group.join("b");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    group.world.pass_without_timeouts(SECOND * 4);
    assert_eq!(group.error(&short("a", 2)), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn member_that_does_not_revoke_in_time_is_removed() {
    let mut group = Group::new();
    group.join("a");
    group.join("b");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    group.world.pass(SECOND * 2);
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, None), "heartbeats don't help");
    group.world.pass(SECOND);
    assert_eq!(group.error(&short("a", 2)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.reported(&short("b", 3)), (4, Some(vec![0, 1, 2, 3])));
    group.world.pass(SECOND * 40);
    assert_eq!(group.reported(&short("b", 4)), (4, None), "b never had to revoke");
}

#[test]
fn returning_static_member_gets_its_partitions_back() {
    let mut group = Group::new();
    assert_eq!(group.reported(&with_instance(join("a1", &["t"]), "i")), (2, Some(vec![0, 1, 2, 3])));
    let taken = with_instance(join("a2", &["t"]), "i");
    assert_eq!(group.error(&taken), ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.error(&with_instance(join("a1", &["t"]), "i")), ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.error(&with_instance(short("a2", 2), "i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.error(&with_instance(short("a1", 2), "j")), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.error(&with_instance(short("a2", -2), "i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.join("b"), (3, Some(vec![])));
    assert_eq!(group.beat("a1", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    assert_eq!(group.beat("a1", 2, &[0, 1]).0, 3);
    assert_eq!(group.reported(&short("b", 3)).1, Some(vec![2, 3]));

    assert_eq!(group.send(&with_instance(short("a1", -2), "i")).member_epoch, -2);
    assert_eq!(group.state().1, 3, "no partition has to move");
    assert_eq!(group.error(&with_instance(short("a1", 3), "i")), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.reported(&short("b", 3)), (3, None));
    assert_eq!(group.reported(&taken), (3, Some(vec![0, 1])));
    assert_eq!(group.error(&with_instance(short("a1", 3), "i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.state(), named("Stable", 3, 3));

    assert_eq!(group.send(&with_instance(short("a2", -2), "i")).error_code, ErrorCode::NONE);
    group.world.pass(SECOND * 30);
    group.reported(&short("b", 3));
    group.world.pass(SECOND * 15);
    assert_eq!(group.reported(&short("b", 3)), (4, Some(vec![0, 1, 2, 3])), "it stayed away for too long");
    assert_eq!(group.reported(&with_instance(join("a3", &["t"]), "i")).0, 5);
    assert_eq!(group.send(&with_instance(short("a3", -1), "i")).member_epoch, -1);
    assert_eq!(group.describe().members.len(), 1, "a member that leaves permanently is removed");
}

#[test]
fn revoked_partitions_are_free_when_a_static_member_pauses() {
    let mut group = Group::new();
    group.reported(&with_instance(join("a", &["t"]), "i"));
    group.join("b");
    group.beat("a", 2, &[0, 1, 2, 3]);
    group.send(&with_instance(short("a", -2), "i"));
    assert_eq!(group.reported(&short("b", 3)), (3, Some(vec![2, 3])));
    group.world.pass(SECOND * 5);
    assert_eq!(group.describe().members.len(), 2, "nothing is left to be revoked in time");
}

#[test]
fn options_name_the_assignor_of_members_without_one() {
    for (assignor, name) in [(Assignor::Uniform, "uniform"), (Assignor::Range, "range")] {
        let mut group =
            Group::with(ClusterOptions { group_consumer_assignor: assignor, ..Default::default() });
        group.join("a");
        assert_eq!(group.describe().assignor_name, name);
    }
}

#[test]
fn group_size_is_limited() {
    let mut group = Group::with(ClusterOptions { group_consumer_max_size: 1, ..Default::default() });
    group.reported(&with_instance(join("a", &["t"]), "i"));
    assert_eq!(group.error(&join("b", &["t"])), ErrorCode::GROUP_MAX_SIZE_REACHED);
    group.send(&with_instance(short("a", -2), "i"));
    assert_eq!(group.reported(&with_instance(join("c", &["t"]), "i")).0, 2, "it replaces a");
}

#[test]
fn invalid_heartbeats_are_refused_and_change_nothing() {
    let mut group = Group::new();
    let base = || join("a", &["t"]);
    let refused = [
        ConsumerGroupHeartbeatRequest { group_id: String::new(), ..base() },
        ConsumerGroupHeartbeatRequest { member_id: String::new(), ..base() },
        ConsumerGroupHeartbeatRequest { instance_id: Some(String::new()), ..base() },
        ConsumerGroupHeartbeatRequest { rack_id: Some(String::new()), ..base() },
        ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..base() },
        ConsumerGroupHeartbeatRequest { topic_partitions: None, ..base() },
        ConsumerGroupHeartbeatRequest { subscribed_topic_names: None, ..base() },
        group.beat_request("a", 0, &[0]),
        short("a", -2),
        short("a", -3),
        short("a", i32::MIN),
    ];
    for request in refused {
        assert_eq!(group.error(&request), ErrorCode::INVALID_REQUEST, "{request:?}");
    }
    for epoch in [-1, 1, i32::MAX] {
        assert_eq!(group.error(&short("a", epoch)), ErrorCode::GROUP_ID_NOT_FOUND, "epoch {epoch}");
    }
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let odd = ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: i32::MIN, ..base() };
    assert_eq!(group.reported(&odd), (2, Some(vec![0, 1, 2, 3])), "as in Kafka, only -1 means unknown");
    let strange = request::TopicPartition { topic_id: Uuid([9; 16]), partitions: vec![-7, i32::MAX] };
    let owns = ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![strange]), ..short("a", 2) };
    assert_eq!(group.reported(&owns), (2, None), "its reported partitions affect only those to revoke");
}

#[test]
fn only_the_coordinator_serves_a_group_of_the_consumer_protocol() {
    let mut world = World::with_topic();
    let mut served = 0;
    for broker in 1..=3 {
        let connection = world.open(broker);
        let response = world.call(connection, 1, &join("a", &["t"]));
        match response.error_code {
            ErrorCode::NONE => served += 1,
            error => assert_eq!(error, ErrorCode::NOT_COORDINATOR),
        }
    }
    assert_eq!(served, 1);
}

#[test]
fn no_partition_ever_has_two_members() {
    let mut random = 7u64;
    let mut upto = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let mut group = Group::new();
    /// A member's epoch, its owned partitions and its last assignment. It revokes other partitions some time later.
    type Member = (i32, Vec<i32>, Vec<i32>);
    let mut members: Vec<Option<Member>> = vec![None; 5];
    let mut seen_stable = 0;
    for _ in 0..3000 {
        let at = upto(5) as usize;
        let id = format!("m{at}");
        match members[at].take() {
            None if upto(3) == 0 => {
                let (epoch, reported) = group.join(&id);
                let reported = reported.unwrap();
                members[at] = Some((epoch, reported.clone(), reported));
            }
            None => {}
            Some(_) if upto(40) == 0 => assert_eq!(group.error(&short(&id, -1)), ErrorCode::NONE),
            Some((epoch, mut owned, mut requested)) => {
                if upto(2) == 0 {
                    owned.clone_from(&requested);
                }
                let request = group.beat_request(&id, epoch, &owned);
                let response_is_lost = upto(10) == 0;
                let (epoch_now, reported) = group.reported(&request);
                if response_is_lost {
                    // It asks again without a state change; a lost assignment is received by joining again.
                    let (epoch, reported) = group.join(&id);
                    let reported = reported.unwrap();
                    owned.retain(|partition| reported.contains(partition));
                    members[at] = Some((epoch, owned, reported));
                } else {
                    if let Some(reported) = reported {
                        // It takes new partitions at once and revokes old ones later.
                        owned.extend(
                            reported.iter().filter(|p| !owned.contains(p)).copied().collect::<Vec<_>>(),
                        );
                        requested = reported;
                    }
                    members[at] = Some((epoch_now, owned, requested));
                }
            }
        }
        let mut owners: Vec<i32> = members.iter().flatten().flat_map(|(_, owned, _)| owned.clone()).collect();
        let count = owners.len();
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(owners.len(), count, "{members:?}");
        seen_stable += usize::from(group.state().0 == "Stable" && owners.len() == 4);
    }
    assert!(seen_stable > 100, "the group gets somewhere: {seen_stable}");
}
