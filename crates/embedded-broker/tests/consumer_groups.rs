//! Consumer groups of the consumer protocol (KIP-848): joins, epochs, who gets what when, and what is refused. How
//! Apache Kafka 4.3.1 answers was looked at step by step; scenarios in `crates/scenarios` ask both.

mod common;

use std::time::Duration;

use common::World;
use ottla_embedded_broker::{ClusterOptions, ConnectionId};
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

/// What an answer says, where all went well: the epoch, and the partitions of `t` if it tells them.
type Told = (i32, Option<Vec<i32>>);

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

    fn told(&mut self, request: &ConsumerGroupHeartbeatRequest) -> Told {
        let answer = self.send(request);
        assert_eq!(answer.error_code, ErrorCode::NONE, "{:?}", answer.error_message);
        assert_eq!(answer.member_id.as_ref(), Some(&request.member_id));
        let topic = self.topic;
        let partitions = answer.assignment.map(|assignment| {
            let mut topics = assignment.topic_partitions.into_iter();
            let found = topics.find(|of| of.topic_id == topic);
            found.map(|of| of.partitions).unwrap_or_default()
        });
        (answer.member_epoch, partitions)
    }

    fn error(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ErrorCode {
        let answer = self.send(request);
        assert!(answer.error_code == ErrorCode::NONE || answer.error_message.is_some());
        answer.error_code
    }

    /// Joins, subscribed to `t`.
    fn join(&mut self, member_id: &str) -> Told {
        self.told(&join(member_id, &["t"]))
    }

    /// A heartbeat that says what the member owns.
    fn beat(&mut self, member_id: &str, epoch: i32, owned: &[i32]) -> Told {
        let request = self.beat_request(member_id, epoch, owned);
        self.told(&request)
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

    /// State, group epoch, assignment epoch.
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
        let answer = self.world.call(self.connection, 9, &request).groups.remove(0);
        answer.error_code.ok()?;
        Ok(answer.topics[0].partitions[0].committed_offset)
    }

    /// Members `a` and `b` in epoch 3, with two partitions each.
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
fn the_first_member_gets_everything_and_is_told_once() {
    let mut group = Group::new();
    let answer = group.send(&join("a", &["t"]));
    assert_eq!((answer.member_epoch, answer.heartbeat_interval_ms), (2, 5000));
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, None));
    assert_eq!(group.told(&short("a", 2)), (2, None));
    let whole = ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 3000,
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        ..group.beat_request("a", 2, &[0, 1, 2, 3])
    };
    assert_eq!(group.told(&whole), (2, Some(vec![0, 1, 2, 3])), "who says all is told all");
    assert_eq!(group.state(), named("Stable", 2, 2));
}

#[test]
fn in_version_0_the_broker_makes_the_members_id_and_there_are_no_regular_expressions() {
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
fn partitions_are_revoked_and_given_up_before_another_member_gets_them() {
    let mut group = Group::new();
    group.join("a");
    assert_eq!(group.join("b"), (3, Some(vec![])), "all partitions are still a's");
    assert_eq!(group.state(), named("Reconciling", 3, 3));
    assert_eq!(group.told(&short("b", 3)), (3, None));
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])), "a keeps its epoch until it has");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, None));
    assert_eq!(group.told(&short("a", 2)), (2, None), "who says nothing may still have them");
    assert_eq!(group.beat("a", 2, &[0, 1, 3]), (2, None), "one is not given up");
    let described = group.describe().members.remove(0);
    assert_eq!(described.assignment.topic_partitions[0].partitions, [0, 1, 2, 3], "until then it has them");
    assert_eq!(described.target_assignment.topic_partitions[0].partitions, [0, 1]);
    assert_eq!(group.told(&short("b", 3)), (3, None));
    assert_eq!(group.beat("a", 2, &[0, 1]), (3, None));
    assert_eq!(group.told(&short("b", 3)), (3, Some(vec![2, 3])));
    assert_eq!(group.state(), named("Stable", 3, 3));
}

#[test]
fn a_member_gets_what_is_free_now_and_the_rest_when_it_is() {
    let mut group = Group::of_two();
    assert_eq!(group.join("c"), (4, Some(vec![])));
    let target =
        group.describe().members.iter().find(|m| m.member_id == "c").unwrap().target_assignment.clone();
    let wanted = target.topic_partitions[0].partitions.clone();
    let (giver, kept) = if wanted[0] < 2 { ("a", [0, 1]) } else { ("b", [2, 3]) };
    let kept: Vec<i32> = kept.into_iter().filter(|partition| !wanted.contains(partition)).collect();
    assert_eq!(wanted.len(), 1, "four partitions of three members");
    for (member, owned) in [("a", [0, 1]), ("b", [2, 3])] {
        let told = group.beat(member, 3, &owned);
        assert_eq!(told, if member == giver { (3, Some(kept.clone())) } else { (4, None) });
    }
    assert_eq!(group.beat(giver, 3, &kept), (4, None));
    assert_eq!(group.told(&short("c", 4)), (4, Some(wanted)));
}

#[test]
fn a_target_that_changes_while_a_member_revokes_is_reached_in_a_further_step() {
    let mut group = Group::new();
    group.join("a");
    group.join("b");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    assert_eq!(group.error(&short("b", -1)), ErrorCode::NONE);
    assert_eq!(group.told(&short("a", 2)), (2, None), "first it has to give up what it was told to");
    assert_eq!(group.beat("a", 2, &[0, 1]), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.state(), named("Stable", 4, 4));
}

#[test]
fn a_member_that_leaves_gives_all_it_had_to_the_others() {
    let mut group = Group::of_two();
    let left = group.send(&short("b", -1));
    assert_eq!((left.error_code, left.member_epoch), (ErrorCode::NONE, -1));
    assert_eq!(group.state(), named("Assigning", 4, 3), "the next heartbeat computes");
    assert_eq!(group.told(&short("a", 3)), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.error(&short("b", -1)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.error(&short("b", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.error(&short("a", -1)), ErrorCode::NONE);
    assert_eq!(group.state(), named("Empty", 5, 4));
    assert_eq!(group.join("a"), (6, Some(vec![0, 1, 2, 3])), "epochs go on");
}

#[test]
fn epochs_that_are_not_the_members_own_are_fenced_but_for_a_lost_answer() {
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
    assert_eq!(group.beat("a", 2, &[0, 1]), (3, None), "the answer that said 3 was lost");
    assert_eq!(group.join("a"), (3, Some(vec![0, 1])), "who was fenced joins again and has lost nothing");
    assert_eq!(group.error(&short("c", 3)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.state(), named("Stable", 3, 3));
}

#[test]
fn a_silent_member_is_removed_after_the_session_timeout_that_holds_when_it_was_last_heard_of() {
    let mut group = Group::of_two();
    group.world.pass(SECOND * 44);
    assert_eq!(group.told(&short("a", 3)), (3, None));
    group.world.pass(SECOND);
    assert_eq!(group.state(), named("Assigning", 4, 3), "b is gone");
    group.world.cluster.control().options().group_consumer_session_timeout = SECOND * 2;
    group.world.cluster.control().options().group_consumer_heartbeat_interval = SECOND / 2;
    let answer = group.send(&short("a", 3));
    assert_eq!((answer.member_epoch, answer.heartbeat_interval_ms), (4, 500));
    group.world.pass(SECOND * 2);
    assert_eq!(group.state(), named("Empty", 5, 4));
    assert_eq!(group.error(&short("a", 4)), ErrorCode::UNKNOWN_MEMBER_ID);
    group.world.pass(SECOND * 60);
    assert_eq!(group.world.cluster.poll_timeout(), None, "no timer is left behind");
}

#[test]
fn who_does_not_revoke_within_its_rebalance_timeout_is_removed() {
    let mut group = Group::new();
    group.join("a");
    group.join("b");
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    group.world.pass(SECOND * 2);
    assert_eq!(group.beat("a", 2, &[0, 1, 2, 3]), (2, None), "heartbeats don't help");
    group.world.pass(SECOND);
    assert_eq!(group.error(&short("a", 2)), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.told(&short("b", 3)), (4, Some(vec![0, 1, 2, 3])));
    group.world.pass(SECOND * 40);
    assert_eq!(group.told(&short("b", 4)), (4, None), "b never had to revoke");
}

#[test]
fn a_static_member_that_leaves_for_a_while_finds_its_partitions_again() {
    let mut group = Group::new();
    assert_eq!(group.told(&with_instance(join("a1", &["t"]), "i")), (2, Some(vec![0, 1, 2, 3])));
    let taken = with_instance(join("a2", &["t"]), "i");
    assert_eq!(group.error(&taken), ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.error(&with_instance(join("a1", &["t"]), "i")), ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(group.error(&with_instance(short("a2", 2), "i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.error(&with_instance(short("a1", 2), "j")), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.error(&with_instance(short("a2", -2), "i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.join("b"), (3, Some(vec![])));
    assert_eq!(group.beat("a1", 2, &[0, 1, 2, 3]), (2, Some(vec![0, 1])));
    assert_eq!(group.beat("a1", 2, &[0, 1]).0, 3);
    assert_eq!(group.told(&short("b", 3)).1, Some(vec![2, 3]));

    assert_eq!(group.send(&with_instance(short("a1", -2), "i")).member_epoch, -2);
    assert_eq!(group.state().1, 3, "nobody has to move");
    assert_eq!(group.error(&with_instance(short("a1", 3), "i")), ErrorCode::FENCED_MEMBER_EPOCH);
    assert_eq!(group.told(&short("b", 3)), (3, None));
    assert_eq!(group.told(&taken), (3, Some(vec![0, 1])));
    assert_eq!(group.error(&with_instance(short("a1", 3), "i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(group.state(), named("Stable", 3, 3));

    assert_eq!(group.send(&with_instance(short("a2", -2), "i")).error_code, ErrorCode::NONE);
    group.world.pass(SECOND * 30);
    group.told(&short("b", 3));
    group.world.pass(SECOND * 15);
    assert_eq!(group.told(&short("b", 3)), (4, Some(vec![0, 1, 2, 3])), "it stayed away for too long");
    assert_eq!(group.told(&with_instance(join("a3", &["t"]), "i")).0, 5);
    assert_eq!(group.send(&with_instance(short("a3", -1), "i")).member_epoch, -1);
    assert_eq!(group.describe().members.len(), 1, "who leaves for good is gone");
}

#[test]
fn what_a_static_member_was_to_give_up_is_free_when_it_leaves_for_a_while() {
    let mut group = Group::new();
    group.told(&with_instance(join("a", &["t"]), "i"));
    group.join("b");
    group.beat("a", 2, &[0, 1, 2, 3]);
    group.send(&with_instance(short("a", -2), "i"));
    assert_eq!(group.told(&short("b", 3)), (3, Some(vec![2, 3])));
    group.world.pass(SECOND * 5);
    assert_eq!(group.describe().members.len(), 2, "nothing is left to be revoked in time");
}

#[test]
fn members_see_topics_come_grow_and_go() {
    let mut group = Group::new();
    let both = join("a", &["t", "later"]);
    assert_eq!(group.told(&both), (2, Some(vec![0, 1, 2, 3])));
    group.world.cluster.control().create_topic("other", 2, 1).unwrap();
    assert_eq!(group.told(&short("a", 2)), (2, None), "nobody subscribed to that");
    let later = group.world.cluster.control().create_topic("later", 2, 1).unwrap();
    let answer = group.send(&short("a", 2));
    let told = answer.assignment.unwrap().topic_partitions;
    assert_eq!(answer.member_epoch, 3);
    assert_eq!(told.iter().find(|topic| topic.topic_id == later).unwrap().partitions, [0, 1]);
    group.world.cluster.control().create_partitions("t", 6).unwrap();
    assert_eq!(group.told(&short("a", 3)), (4, Some(vec![0, 1, 2, 3, 4, 5])));
    group.world.cluster.control().delete_topic("later");
    let answer = group.send(&short("a", 4));
    assert_eq!((answer.member_epoch, answer.assignment.unwrap().topic_partitions.len()), (4, 1));
    assert_eq!(group.beat("a", 4, &[0, 1, 2, 3, 4, 5]), (5, None), "it owns nothing of that topic any more");
    group.world.cluster.control().recreate_topic("t", 1, 1).unwrap();
    let answer = group.send(&group_beat_all(&group, 5));
    let told = answer.assignment.unwrap().topic_partitions;
    assert!(told.is_empty(), "the old topic's partitions first: {told:?}");
    let answer = group.send(&ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(Vec::new()),
        ..short("a", answer.member_epoch)
    });
    let told = answer.assignment.unwrap().topic_partitions;
    assert!(told.len() == 1 && told[0].partitions == [0] && told[0].topic_id != group.topic);
}

fn group_beat_all(group: &Group, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    group.beat_request("a", epoch, &[0, 1, 2, 3, 4, 5])
}

#[test]
fn a_subscription_may_change_and_may_be_empty() {
    let mut group = Group::new();
    assert_eq!(group.told(&join("a", &[])), (1, Some(vec![])));
    assert_eq!(group.state(), named("Stable", 1, 1));
    let subscribe = |epoch, topics: &[&str]| ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(topics.iter().map(|topic| (*topic).to_owned()).collect()),
        ..short("a", epoch)
    };
    assert_eq!(group.told(&subscribe(1, &["t"])), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.told(&subscribe(2, &["t", "t"])), (2, None), "that is the same");
    assert_eq!(group.told(&subscribe(2, &["nowhere"])), (2, Some(vec![])));
    assert_eq!(group.beat("a", 2, &[]), (3, None));
}

#[test]
fn a_regular_expression_has_to_match_whole_names_also_of_topics_that_come_later() {
    let mut group = Group::new();
    let by_regex = |epoch: i32, regex: &str| ConsumerGroupHeartbeatRequest {
        subscribed_topic_regex: Some(regex.to_owned()),
        ..short("a", epoch)
    };
    let joins = ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 3000,
        topic_partitions: Some(Vec::new()),
        ..by_regex(0, "t|x[0-9]+")
    };
    group.world.cluster.control().create_topic("tt", 1, 1).unwrap();
    let answer = group.send(&joins);
    let told = answer.assignment.unwrap().topic_partitions;
    assert_eq!((answer.member_epoch, told.len(), told[0].topic_id), (2, 1, group.topic));
    let id = group.world.cluster.control().create_topic("x17", 1, 1).unwrap();
    let told = group.send(&short("a", 2)).assignment.unwrap().topic_partitions;
    assert!(told.iter().any(|topic| topic.topic_id == id));
    let member = group.describe().members.remove(0);
    assert_eq!(member.subscribed_topic_regex.as_deref(), Some("t|x[0-9]+"));
    for wrong in ["a(", "a)(b", "[", "*", "((x{1000}){1000}){1000}"] {
        assert_eq!(group.error(&by_regex(3, wrong)), ErrorCode::INVALID_REGULAR_EXPRESSION, "{wrong}");
    }
    assert_eq!(group.error(&by_regex(9, "a(")), ErrorCode::FENCED_MEMBER_EPOCH, "first of all: who is it");
    assert_eq!(group.told(&short("a", 3)), (3, None), "what was refused changed nothing");
    let nothing = by_regex(3, "");
    assert_eq!(group.told(&nothing), (3, Some(vec![])), "no longer subscribed to one");
    assert_eq!(group.describe().members[0].subscribed_topic_regex.as_deref(), Some(""));
}

#[test]
fn the_assignor_that_most_members_want_assigns() {
    let mut group = Group::new();
    let wants = |member: &str, assignor: &str| ConsumerGroupHeartbeatRequest {
        server_assignor: Some(assignor.to_owned()),
        ..join(member, &["t"])
    };
    assert_eq!(group.error(&wants("a", "sticky")), ErrorCode::UNSUPPORTED_ASSIGNOR);
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND, "who is refused makes no group");
    group.join("b");
    assert_eq!(group.describe().assignor_name, "uniform");
    let leaves = |assignor: &str| ConsumerGroupHeartbeatRequest {
        server_assignor: Some(assignor.to_owned()),
        ..short("b", -1)
    };
    assert_eq!(group.error(&leaves("")), ErrorCode::UNSUPPORTED_ASSIGNOR, "also of who leaves");
    group.told(&wants("a", "range"));
    let described = group.describe();
    assert_eq!(described.assignor_name, "range");
    let target = |at: usize| described.members[at].target_assignment.topic_partitions[0].partitions.clone();
    assert_eq!((target(0), target(1)), (vec![0, 1], vec![2, 3]), "range goes by the members' ids");
}

#[test]
fn a_group_takes_so_many_members_and_no_more() {
    let mut group = Group::with(ClusterOptions { group_consumer_max_size: 1, ..Default::default() });
    group.told(&with_instance(join("a", &["t"]), "i"));
    assert_eq!(group.error(&join("b", &["t"])), ErrorCode::GROUP_MAX_SIZE_REACHED);
    group.send(&with_instance(short("a", -2), "i"));
    assert_eq!(group.told(&with_instance(join("c", &["t"]), "i")).0, 2, "it takes a's place");
}

#[test]
fn heartbeats_that_make_no_sense_are_refused_and_change_nothing() {
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
    assert_eq!(group.told(&odd), (2, Some(vec![0, 1, 2, 3])), "as in Kafka only -1 is none");
    let strange = request::TopicPartition { topic_id: Uuid([9; 16]), partitions: vec![-7, i32::MAX] };
    let owns = ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![strange]), ..short("a", 2) };
    assert_eq!(
        group.told(&owns),
        (2, None),
        "what it says that it owns concerns only what it has to give up"
    );
}

#[test]
fn only_the_coordinator_serves_a_group_of_the_consumer_protocol() {
    let mut world = World::with_topic();
    let mut served = 0;
    for broker in 1..=3 {
        let connection = world.open(broker);
        let answer = world.call(connection, 1, &join("a", &["t"]));
        match answer.error_code {
            ErrorCode::NONE => served += 1,
            error => assert_eq!(error, ErrorCode::NOT_COORDINATOR),
        }
    }
    assert_eq!(served, 1);
}

#[test]
fn offsets_are_committed_in_the_members_epoch_or_in_an_older_one_in_which_it_got_the_partition() {
    let mut group = Group::of_two();
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::NONE);
    assert_eq!(group.commit(10, ("a", 3), 1), ErrorCode::NONE);
    assert_eq!(group.commit(9, ("a", 2), 0), ErrorCode::NONE, "it has had 0 since epoch 2 (KIP-1251)");
    assert_eq!(group.commit(9, ("a", 2), 2), ErrorCode::STALE_MEMBER_EPOCH, "2 is b's");
    assert_eq!(group.commit(9, ("b", 2), 2), ErrorCode::STALE_MEMBER_EPOCH, "it was a's then");
    assert_eq!(group.commit(9, ("a", 1), 0), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(group.commit(9, ("a", 4), 0), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(group.commit(9, ("z", 3), 0), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.commit(9, ("", -1), 0), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(group.commit(8, ("a", 3), 0), ErrorCode::UNSUPPORTED_VERSION);

    assert_eq!(group.committed(Some("a"), 3), Ok(5));
    assert_eq!(group.committed(None, -1), Ok(5), "who doesn't say who it is may look");
    assert_eq!(group.committed(Some("a"), 2), Err(ErrorCode::STALE_MEMBER_EPOCH));
    assert_eq!(group.committed(Some("a"), 4), Err(ErrorCode::STALE_MEMBER_EPOCH));
    assert_eq!(group.committed(Some("z"), 3), Err(ErrorCode::UNKNOWN_MEMBER_ID));
    assert_eq!(group.committed(Some(""), -1), Err(ErrorCode::UNKNOWN_MEMBER_ID));

    group.send(&short("a", -1));
    group.send(&short("b", -1));
    assert_eq!(group.commit(9, ("", -1), 0), ErrorCode::NONE, "the group is empty");
}

#[test]
fn who_is_in_an_epoch_of_a_group_that_is_not_there_cannot_commit() {
    let mut group = Group::new();
    assert_eq!(group.commit(9, ("a", 3), 0), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(group.commit(8, ("a", 3), 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(group.committed(Some("a"), 3), Ok(-1));
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND);
}

#[test]
fn a_group_is_described_and_listed_by_its_type_and_deleted_when_empty() {
    let mut group = Group::of_two();
    let described = group.describe();
    let member = &described.members[0];
    assert_eq!((member.member_id.as_str(), member.member_epoch, member.member_type), ("a", 3, 1));
    assert_eq!(
        (member.client_id.as_str(), member.subscribed_topic_names.as_slice()),
        ("test", &["t".to_owned()][..])
    );
    assert_eq!(member.assignment.topic_partitions[0].topic_name, "t");
    assert_eq!(member.assignment.topic_partitions, member.target_assignment.topic_partitions);
    let (connection, groups) = (group.connection, vec![GROUP.to_owned()]);
    let old = DescribeGroupsRequest { groups, ..Default::default() };
    let told = |group: &mut Group, version| {
        let told = group.world.call(connection, version, &old).groups.remove(0);
        (told.error_code, told.group_state)
    };
    assert_eq!(told(&mut group, 6), (ErrorCode::GROUP_ID_NOT_FOUND, "Dead".to_owned()));
    assert_eq!(told(&mut group, 5), (ErrorCode::NONE, "Dead".to_owned()));

    let list = |group: &mut Group, states: &[&str], types: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let request = ListGroupsRequest { states_filter: words(states), types_filter: words(types) };
        let listed = group.world.call(connection, 5, &request).groups;
        listed.into_iter().map(|of| (of.group_type, of.protocol_type, of.group_state)).collect::<Vec<_>>()
    };
    let expected = ("consumer".to_owned(), "consumer".to_owned(), "Stable".to_owned());
    assert_eq!(list(&mut group, &[], &["Consumer"]), std::slice::from_ref(&expected));
    assert_eq!(list(&mut group, &["stable"], &[]), [expected]);
    assert!(list(&mut group, &["Empty"], &[]).is_empty() && list(&mut group, &[], &["classic"]).is_empty());

    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] };
    let deleted = |group: &mut Group| group.world.call(connection, 2, &delete).results[0].error_code;
    assert_eq!(deleted(&mut group), ErrorCode::NON_EMPTY_GROUP);
    group.send(&short("a", -1));
    group.send(&short("b", -1));
    assert_eq!(deleted(&mut group), ErrorCode::NONE);
    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND);
}

fn classic_join(member_id: &str) -> JoinGroupRequest {
    let protocol = join_group::request::Protocol { name: "range".to_owned(), metadata: Vec::new() };
    JoinGroupRequest {
        group_id: GROUP.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        ..Default::default()
    }
}

fn leave_group(member_id: &str) -> LeaveGroupRequest {
    let member = leave_group::request::Member { member_id: member_id.to_owned(), ..Default::default() };
    LeaveGroupRequest { group_id: GROUP.to_owned(), members: vec![member], ..Default::default() }
}

/// Kafka would let a live group migrate (KIP-848); here it has to be empty.
#[test]
fn an_empty_group_gives_way_to_one_of_the_other_protocol_and_keeps_what_was_committed() {
    let mut group = Group::new();
    let connection = group.connection;
    group.join("a");
    group.commit(9, ("a", 2), 0);
    let refused = group.world.call(connection, 3, &classic_join(""));
    assert_eq!(refused.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    group.send(&short("a", -1));
    let joined = group.world.call(connection, 3, &classic_join(""));
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
    assert_eq!(group.committed(None, -1), Ok(5));

    assert_eq!(group.describe().error_code, ErrorCode::GROUP_ID_NOT_FOUND, "it is a classic one now");
    for request in [join("a", &["t"]), short("a", 2), short("a", -1)] {
        assert_eq!(group.error(&request), ErrorCode::GROUP_ID_NOT_FOUND);
    }
    group.world.call(connection, 5, &leave_group(&joined.member_id));
    assert_eq!(group.join("a"), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.committed(Some("a"), 2), Ok(5));
}

#[test]
fn an_administrator_removes_members_by_leave_group() {
    let mut group = Group::of_two();
    let leave = |group: &mut Group, member: &str, instance: Option<&str>| {
        let mut request = leave_group(member);
        request.members[0].group_instance_id = instance.map(str::to_owned);
        group.world.call(group.connection, 5, &request).members[0].error_code
    };
    assert_eq!(leave(&mut group, "z", None), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(leave(&mut group, "", Some("i")), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(leave(&mut group, "b", None), ErrorCode::NONE);
    assert_eq!(group.told(&short("a", 3)), (4, Some(vec![0, 1, 2, 3])));
    group.told(&with_instance(join("c", &["t"]), "i"));
    assert_eq!(leave(&mut group, "a", Some("i")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(leave(&mut group, "", Some("i")), ErrorCode::NONE);
    assert_eq!(group.describe().members.len(), 1);
}

#[test]
fn partitions_that_are_given_by_hand_replace_what_the_assignor_says() {
    let mut group = Group::of_two();
    let all: Vec<(&str, i32)> = (0..4).map(|partition| ("t", partition)).collect();
    group
        .world
        .cluster
        .control()
        .set_target_assignment(GROUP, Some([("b", all), ("nobody", vec![("t", 0)])]));
    assert_eq!(group.state(), named("Assigning", 4, 3));
    assert_eq!(group.told(&short("b", 3)), (4, None), "a still has 0 and 1");
    assert_eq!(group.beat("a", 3, &[0, 1]), (3, Some(vec![])));
    assert_eq!(group.beat("a", 3, &[]), (4, None));
    assert_eq!(group.told(&short("b", 4)), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.join("c"), (5, Some(vec![])), "who is not named gets nothing");
    assert_eq!(group.told(&short("b", 4)), (5, None));

    let odd = [("a", vec![("t", 9), ("t", -1), ("nowhere", 0), ("later", 1)])];
    group.world.cluster.control().set_target_assignment(GROUP, Some(odd));
    assert_eq!(group.beat("b", 5, &[0, 1, 2, 3]).1, Some(vec![]));
    assert_eq!(group.told(&short("a", 4)), (6, None), "there are no such partitions");
    group.world.cluster.control().create_topic("later", 2, 1).unwrap();
    let told = group.send(&short("a", 6));
    assert_eq!(told.assignment.unwrap().topic_partitions[0].partitions, [1], "now there is one");

    let nothing = None::<[(&str, Vec<(&str, i32)>); 0]>;
    group.world.cluster.control().set_target_assignment(GROUP, nothing);
    group.beat("b", 5, &[]);
    let shares: Vec<usize> = group
        .describe()
        .members
        .iter()
        .map(|member| member.target_assignment.topic_partitions.iter().map(|of| of.partitions.len()).sum())
        .collect();
    assert_eq!(shares.iter().sum::<usize>(), 4, "the assignor decides again");
}

#[test]
fn what_is_given_by_hand_may_be_there_before_the_group() {
    let mut group = Group::new();
    group.world.cluster.control().set_target_assignment(GROUP, Some([("b", vec![("t", 3)])]));
    assert_eq!(group.join("a"), (2, Some(vec![])));
    assert_eq!(group.join("b"), (3, Some(vec![3])));
}

#[test]
fn whatever_members_do_no_partition_has_two_owners() {
    let mut random = 7u64;
    let mut upto = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let mut group = Group::new();
    /// A member's epoch, what it owns, and what it was told last: what isn't in that it gives up only some time later.
    type Member = (i32, Vec<i32>, Vec<i32>);
    let mut members: Vec<Option<Member>> = vec![None; 5];
    let mut seen_stable = 0;
    for _ in 0..3000 {
        let at = upto(5) as usize;
        let id = format!("m{at}");
        match members[at].take() {
            None if upto(3) == 0 => {
                let (epoch, told) = group.join(&id);
                let told = told.unwrap();
                members[at] = Some((epoch, told.clone(), told));
            }
            None => {}
            Some(_) if upto(40) == 0 => assert_eq!(group.error(&short(&id, -1)), ErrorCode::NONE),
            Some((epoch, mut owned, mut wanted)) => {
                if upto(2) == 0 {
                    owned.clone_from(&wanted);
                }
                let request = group.beat_request(&id, epoch, &owned);
                let answer_is_lost = upto(10) == 0;
                let (epoch_now, told) = group.told(&request);
                if answer_is_lost {
                    // It asks again as if nothing had happened; what it was told meanwhile is told by joining anew.
                    let (epoch, told) = group.join(&id);
                    let told = told.unwrap();
                    owned.retain(|partition| told.contains(partition));
                    members[at] = Some((epoch, owned, told));
                } else {
                    if let Some(told) = told {
                        // New ones are taken at once, old ones are given up later.
                        owned.extend(told.iter().filter(|p| !owned.contains(p)).copied().collect::<Vec<_>>());
                        wanted = told;
                    }
                    members[at] = Some((epoch_now, owned, wanted));
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
