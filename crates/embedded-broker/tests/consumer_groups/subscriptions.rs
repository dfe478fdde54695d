//! Subscriptions and assignors.

use super::*;

#[test]
fn members_see_new_grown_and_deleted_topics() {
    let mut group = Group::new();
    let both = join("a", &["t", "later"]);
    assert_eq!(group.reported(&both), (2, Some(vec![0, 1, 2, 3])));
    group.world.cluster.control().create_topic("other", 2, 1).unwrap();
    assert_eq!(group.reported(&short("a", 2)), (2, None), "no member subscribes to that");
    let later = group.world.cluster.control().create_topic("later", 2, 1).unwrap();
    let response = group.send(&short("a", 2));
    let reported = response.assignment.unwrap().topic_partitions;
    assert_eq!(response.member_epoch, 3);
    assert_eq!(reported.iter().find(|topic| topic.topic_id == later).unwrap().partitions, [0, 1]);
    group.world.cluster.control().create_partitions("t", 6).unwrap();
    assert_eq!(group.reported(&short("a", 3)), (4, Some(vec![0, 1, 2, 3, 4, 5])));
    group.world.cluster.control().delete_topic("later");
    let response = group.send(&short("a", 4));
    assert_eq!((response.member_epoch, response.assignment.unwrap().topic_partitions.len()), (4, 1));
    assert_eq!(
        group.beat("a", 4, &[0, 1, 2, 3, 4, 5]),
        (5, None),
        "it no longer owns partitions of that topic"
    );
    group.world.cluster.control().recreate_topic("t", 1, 1).unwrap();
    let response = group.send(&group_beat_all(&group, 5));
    let reported = response.assignment.unwrap().topic_partitions;
    assert!(reported.is_empty(), "the old topic's partitions first: {reported:?}");
    let response = group.send(&ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(Vec::new()),
        ..short("a", response.member_epoch)
    });
    let reported = response.assignment.unwrap().topic_partitions;
    assert!(reported.len() == 1 && reported[0].partitions == [0] && reported[0].topic_id != group.topic);
}

fn group_beat_all(group: &Group, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    group.beat_request("a", epoch, &[0, 1, 2, 3, 4, 5])
}

#[test]
fn a_subscription_may_change_and_may_be_empty() {
    let mut group = Group::new();
    assert_eq!(group.reported(&join("a", &[])), (1, Some(vec![])));
    assert_eq!(group.state(), named("Stable", 1, 1));
    let subscribe = |epoch, topics: &[&str]| ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(topics.iter().map(|topic| (*topic).to_owned()).collect()),
        ..short("a", epoch)
    };
    assert_eq!(group.reported(&subscribe(1, &["t"])), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.reported(&subscribe(2, &["t", "t"])), (2, None), "that is the same");
    assert_eq!(group.reported(&subscribe(2, &["nowhere"])), (2, Some(vec![])));
    assert_eq!(group.beat("a", 2, &[]), (3, None));
}

#[test]
fn regular_expression_matches_whole_names_and_later_topics() {
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
    let response = group.send(&joins);
    let reported = response.assignment.unwrap().topic_partitions;
    assert_eq!((response.member_epoch, reported.len(), reported[0].topic_id), (2, 1, group.topic));
    let id = group.world.cluster.control().create_topic("x17", 1, 1).unwrap();
    let reported = group.send(&short("a", 2)).assignment.unwrap().topic_partitions;
    assert!(reported.iter().any(|topic| topic.topic_id == id));
    let member = group.describe().members.remove(0);
    assert_eq!(member.subscribed_topic_regex.as_deref(), Some("t|x[0-9]+"));
    let large = "(ab){1,200}".repeat(2000);
    for wrong in ["a(", "a)(b", "[", "*", "((x{1000}){1000}){1000}", &large] {
        assert_eq!(group.error(&by_regex(3, wrong)), ErrorCode::INVALID_REGULAR_EXPRESSION, "{wrong}");
    }
    assert_eq!(
        group.error(&by_regex(9, "a(")),
        ErrorCode::FENCED_MEMBER_EPOCH,
        "the member is checked first"
    );
    assert_eq!(group.reported(&short("a", 3)), (3, None), "refused requests change nothing");
    let nothing = by_regex(3, "");
    assert_eq!(group.reported(&nothing), (3, Some(vec![])), "no longer subscribed to one");
    assert_eq!(group.describe().members[0].subscribed_topic_regex.as_deref(), Some(""));
}

#[test]
fn assignor_with_the_most_votes_is_used() {
    let mut group = Group::new();
    let wants = |member: &str, assignor: &str| ConsumerGroupHeartbeatRequest {
        server_assignor: Some(assignor.to_owned()),
        ..join(member, &["t"])
    };
    assert_eq!(group.error(&wants("a", "sticky")), ErrorCode::UNSUPPORTED_ASSIGNOR);
    assert_eq!(
        group.describe().error_code,
        ErrorCode::GROUP_ID_NOT_FOUND,
        "a refused request creates no group"
    );
    group.join("b");
    assert_eq!(group.describe().assignor_name, "uniform");
    let leaves = |assignor: &str| ConsumerGroupHeartbeatRequest {
        server_assignor: Some(assignor.to_owned()),
        ..short("b", -1)
    };
    assert_eq!(group.error(&leaves("")), ErrorCode::UNSUPPORTED_ASSIGNOR, "also for a member that leaves");
    group.reported(&wants("a", "range"));
    let described = group.describe();
    assert_eq!(described.assignor_name, "range");
    let target = |at: usize| described.members[at].target_assignment.topic_partitions[0].partitions.clone();
    assert_eq!((target(0), target(1)), (vec![0, 1], vec![2, 3]), "range goes by the members' ids");
}

#[test]
fn manual_assignment_replaces_the_assignor() {
    let mut group = Group::of_two();
    let all: Vec<(&str, i32)> = (0..4).map(|partition| ("t", partition)).collect();
    group
        .world
        .cluster
        .control()
        .set_target_assignment(GROUP, Some([("b", all), ("nobody", vec![("t", 0)])]));
    assert_eq!(group.state(), named("Assigning", 4, 3));
    assert_eq!(group.reported(&short("b", 3)), (4, None), "a still has 0 and 1");
    assert_eq!(group.beat("a", 3, &[0, 1]), (3, Some(vec![])));
    assert_eq!(group.beat("a", 3, &[]), (4, None));
    assert_eq!(group.reported(&short("b", 4)), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(group.join("c"), (5, Some(vec![])), "an unnamed member gets nothing");
    assert_eq!(group.reported(&short("b", 4)), (5, None));

    let odd = [("a", vec![("t", 9), ("t", -1), ("nowhere", 0), ("later", 1)])];
    group.world.cluster.control().set_target_assignment(GROUP, Some(odd));
    assert_eq!(group.beat("b", 5, &[0, 1, 2, 3]).1, Some(vec![]));
    assert_eq!(group.reported(&short("a", 4)), (6, None), "there are no such partitions");
    group.world.cluster.control().create_topic("later", 2, 1).unwrap();
    let reported = group.send(&short("a", 6));
    assert_eq!(reported.assignment.unwrap().topic_partitions[0].partitions, [1], "now there is one");

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
fn manual_assignment_may_precede_the_group() {
    let mut group = Group::new();
    group.world.cluster.control().set_target_assignment(GROUP, Some([("b", vec![("t", 3)])]));
    assert_eq!(group.join("a"), (2, Some(vec![])));
    assert_eq!(group.join("b"), (3, Some(vec![3])));
}
