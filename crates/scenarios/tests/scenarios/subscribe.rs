//! Consumers that subscribe to topics share them with the other members of their group.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    time::{Duration, Instant},
};

use ottla::{
    Admin, Consumer, ErrorKind, GroupMembershipOperation, NewPartitions, NewTopic, Offset, RebalanceKind,
    Record,
};
use ottla_scenarios::{Backend, TIMEOUT, eventually, unused_topic_name};

/// Makes tests of scenarios with both group protocols.
macro_rules! with_both_protocols {
    ($($scenario:ident),* $(,)?) => {
        mod classic {
            $(fn $scenario(backend: &ottla_scenarios::Backend) {
                super::$scenario(&super::Setup { backend, protocol: "classic" });
            })*
            ottla_scenarios::run_on_all!($($scenario),*);
        }
        mod consumer_protocol {
            $(fn $scenario(backend: &ottla_scenarios::Backend) {
                super::$scenario(&super::Setup { backend, protocol: "consumer" });
            })*
            ottla_scenarios::run_on_all!($($scenario),*);
        }
    };
}

/// Brokers, and the protocol of the groups.
struct Setup<'a> {
    backend: &'a Backend,
    protocol: &'static str,
}

impl Deref for Setup<'_> {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        self.backend
    }
}

impl Setup<'_> {
    fn is_classic(&self) -> bool {
        self.protocol == "classic"
    }
}

with_both_protocols!(
    subscriber_reads_everything_and_its_successor_only_what_follows,
    members_share_the_partitions_and_inherit_those_of_a_leaver,
    cooperative_members_keep_what_does_not_move,
    every_assignor_assigns_every_partition_once,
    partitions_that_are_added_are_assigned,
    topic_that_is_created_later_is_consumed,
    static_member_that_restarts_gets_its_partitions_back,
    static_member_that_leaves_for_good_gives_its_partitions_up,
    enforced_rebalance_assigns_anew,
    one_of_two_consumers_with_the_same_instance_id_fails,
    changed_subscription_changes_the_assignment,
    pattern_matches_topics_that_exist_and_that_are_created_later,
    subscription_and_assignment_by_hand_exclude_each_other,
    application_decides_when_a_rebalance_takes_effect,
    dropped_consumer_leaves_its_group,
);

/// A consumer in the group `group` that starts at the beginning.
fn consumer(setup: &Setup<'_>, group: &str, properties: &[(&str, &str)]) -> Consumer {
    let mut all = vec![
        ("group.id", group),
        ("group.protocol", setup.protocol),
        ("auto.offset.reset", "earliest"),
        ("topic.metadata.refresh.interval.ms", "500"),
    ];
    if setup.is_classic() {
        all.extend([("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "200")]);
    }
    all.extend(properties);
    Consumer::new(&setup.config(&all)).expect("the consumer's configuration is right")
}

fn write(setup: &Setup<'_>, topic: &str, partitions: i32, numbers: std::ops::Range<u32>) {
    let producer = setup.producer(&[]);
    let handle = producer.topic(topic);
    for number in numbers {
        let value = number.to_string();
        let record = Record::new().value(&value).partition(number as i32 % partitions);
        handle.send(record).expect("there is room");
    }
    producer.flush(TIMEOUT).expect("everything is sent");
}

/// Polls consumers in turn until they have read this many different numbers. Returns how often each number came.
fn read(consumers: &[&Consumer], count: usize) -> BTreeMap<u32, u32> {
    let mut seen = BTreeMap::new();
    let began = Instant::now();
    while seen.len() < count {
        assert!(began.elapsed() < TIMEOUT * 2, "{} of {count} numbers came", seen.len());
        for consumer in consumers {
            let records = consumer.poll(Duration::from_millis(20)).expect("the consumer is open");
            for message in &records {
                let value = std::str::from_utf8(message.value().expect("a value")).expect("text");
                *seen.entry(value.parse().expect("a number")).or_default() += 1;
            }
        }
    }
    seen
}

fn assigned(consumer: &Consumer) -> BTreeSet<(String, i32)> {
    consumer.assignment().into_iter().map(|key| (key.topic.to_string(), key.partition)).collect()
}

/// Polls until the members have this many partitions each, in any order, and each partition once.
fn settle(consumers: &[&Consumer], counts: &[usize]) {
    let mut sizes = Vec::new();
    let settled = eventually(|| {
        consumers.iter().for_each(|consumer| drop(consumer.poll(Duration::from_millis(5))));
        let assignments: Vec<_> = consumers.iter().map(|consumer| assigned(consumer)).collect();
        sizes = assignments.iter().map(BTreeSet::len).collect();
        sizes.sort_unstable();
        let union: BTreeSet<_> = assignments.iter().flatten().collect();
        sizes == counts && union.len() == sizes.iter().sum::<usize>()
    });
    assert!(settled, "the members have {sizes:?} partitions instead of {counts:?}");
}

fn subscriber_reads_everything_and_its_successor_only_what_follows(setup: &Setup<'_>) {
    let topic = setup.topic(3);
    write(setup, &topic, 3, 0..300);
    let first = consumer(setup, &topic, &[]);
    first.subscribe(&[&topic]).unwrap();
    assert_eq!(first.subscription(), [&*topic]);
    let seen = read(&[&first], 300);
    assert!(seen.values().all(|times| *times == 1), "each record comes once");
    first.close(TIMEOUT).unwrap();
    write(setup, &topic, 3, 300..400);
    let second = consumer(setup, &topic, &[]);
    second.subscribe(&[&topic]).unwrap();
    let seen = read(&[&second], 100);
    assert_eq!(seen.keys().min(), Some(&300), "the rest was committed by the first one's close");
    second.close(TIMEOUT).unwrap();
}

fn members_share_the_partitions_and_inherit_those_of_a_leaver(setup: &Setup<'_>) {
    let topic = setup.topic(6);
    let members: Vec<Consumer> = (0..3).map(|_| consumer(setup, &topic, &[])).collect();
    for (index, member) in members.iter().enumerate() {
        member.subscribe(&[&topic]).unwrap();
        let counts = [vec![6], vec![3, 3], vec![2, 2, 2]];
        settle(&members[..=index].iter().collect::<Vec<_>>(), &counts[index]);
    }
    write(setup, &topic, 6, 0..600);
    let seen = read(&members.iter().collect::<Vec<_>>(), 600);
    assert!(seen.values().all(|times| *times == 1), "nothing comes twice without a rebalance");
    members[1].close(TIMEOUT).unwrap();
    settle(&[&members[0], &members[2]], &[3, 3]);
    write(setup, &topic, 6, 600..900);
    let seen = read(&[&members[0], &members[2]], 300);
    assert_eq!(seen.keys().min(), Some(&600), "everything before was committed in the rebalance");
    members[0].unsubscribe(TIMEOUT).unwrap();
    settle(&[&members[2]], &[6]);
    assert!(members[0].assignment().is_empty());
}

fn cooperative_members_keep_what_does_not_move(setup: &Setup<'_>) {
    let topic = setup.topic(6);
    let strategy = [("partition.assignment.strategy", "cooperative-sticky")];
    let properties = if setup.is_classic() { &strategy[..] } else { &[] };
    let first = consumer(setup, &topic, properties);
    first.subscribe(&[&topic]).unwrap();
    settle(&[&first], &[6]);
    let second = consumer(setup, &topic, properties);
    second.subscribe(&[&topic]).unwrap();
    let mut fewest = 6;
    assert!(eventually(|| {
        drop(first.poll(Duration::from_millis(2)));
        drop(second.poll(Duration::from_millis(2)));
        fewest = fewest.min(first.assignment().len());
        second.assignment().len() == 3
    }));
    assert_eq!(fewest, 3, "it never gave up more than it had to");
    write(setup, &topic, 6, 0..600);
    let seen = read(&[&first, &second], 600);
    assert!(seen.values().all(|times| *times == 1), "nothing comes twice without a rebalance");
    first.close(TIMEOUT).unwrap();
    settle(&[&second], &[6]);
    write(setup, &topic, 6, 600..700);
    let seen = read(&[&second], 100);
    assert_eq!(seen.keys().min(), Some(&600), "everything before was committed");
}

fn every_assignor_assigns_every_partition_once(setup: &Setup<'_>) {
    let (property, assignors) = if setup.is_classic() {
        ("partition.assignment.strategy", &["range", "roundrobin", "sticky", "cooperative-sticky"][..])
    } else {
        ("group.remote.assignor", &["uniform", "range"][..])
    };
    for assignor in assignors {
        let (topic, other) = (setup.topic(3), setup.topic(2));
        let properties = [(property, *assignor)];
        let members: Vec<Consumer> = (0..2).map(|_| consumer(setup, &topic, &properties)).collect();
        members.iter().for_each(|member| member.subscribe(&[&topic, &other]).unwrap());
        settle(&members.iter().collect::<Vec<_>>(), &[2, 3]);
    }
}

fn partitions_that_are_added_are_assigned(setup: &Setup<'_>) {
    let topic = setup.topic(1);
    let members: Vec<Consumer> = (0..2).map(|_| consumer(setup, &topic, &[])).collect();
    let all: Vec<&Consumer> = members.iter().collect();
    all.iter().for_each(|member| member.subscribe(&[&topic]).unwrap());
    settle(&all, &[0, 1]);
    let admin = Admin::new(&setup.config(&[])).expect("the configuration is right");
    let more = NewPartitions::new(&topic, 4);
    admin.create_partitions(&[more], TIMEOUT).expect("the brokers respond");
    settle(&all, &[2, 2]);
    write(setup, &topic, 4, 0..40);
    read(&all, 40);
}

fn topic_that_is_created_later_is_consumed(setup: &Setup<'_>) {
    let (group, topic) = (unused_topic_name(), unused_topic_name());
    let known = setup.topic(1);
    let member = consumer(setup, &group, &[]);
    member.subscribe(&[&known, &topic]).unwrap();
    settle(&[&member], &[1]);
    let admin = Admin::new(&setup.config(&[])).expect("the configuration is right");
    admin.create_topics(&[NewTopic::new(&*topic, 2, 1)], TIMEOUT).expect("the brokers respond");
    settle(&[&member], &[3]);
    write(setup, &topic, 2, 0..20);
    read(&[&member], 20);
}

fn static_member_that_restarts_gets_its_partitions_back(setup: &Setup<'_>) {
    let topic = setup.topic(4);
    let start = |instance| {
        let member = consumer(setup, &topic, &[("group.instance.id", instance)]);
        member.subscribe(&[&topic]).unwrap();
        member
    };
    let (stays, restarts) = (start("one"), start("two"));
    settle(&[&stays, &restarts], &[2, 2]);
    let (kept, before) = (assigned(&stays), assigned(&restarts));
    restarts.close(TIMEOUT).unwrap();
    let restarted = start("two");
    assert!(eventually(|| {
        drop(restarted.poll(Duration::from_millis(5)));
        assert_eq!(assigned(&stays), kept, "the other member does not rebalance");
        assigned(&restarted) == before
    }));
}

fn static_member_that_leaves_for_good_gives_its_partitions_up(setup: &Setup<'_>) {
    let topic = setup.topic(4);
    let start = |instance| {
        let member = consumer(setup, &topic, &[("group.instance.id", instance)]);
        member.subscribe(&[&topic]).unwrap();
        member
    };
    let (stays, leaves) = (start("one"), start("two"));
    settle(&[&stays, &leaves], &[2, 2]);
    leaves.close_with(GroupMembershipOperation::LeaveGroup, TIMEOUT).unwrap();
    settle(&[&stays], &[4]);
}

fn enforced_rebalance_assigns_anew(setup: &Setup<'_>) {
    let topic = setup.topic(2);
    let member = consumer(setup, &topic, &[]);
    let refused = |result: ottla::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::State);
    refused(member.enforce_rebalance("nothing is subscribed to"));
    member.subscribe(&[&topic]).unwrap();
    settle(&[&member], &[2]);
    if !setup.is_classic() {
        return refused(member.enforce_rebalance("the coordinator assigns"));
    }
    let before = member.group_metadata().generation;
    assert!(before.is_some());
    member.enforce_rebalance(&"reason ".repeat(100)).unwrap();
    assert!(eventually(|| {
        drop(member.poll(Duration::from_millis(5)));
        member.group_metadata().generation > before
    }));
    settle(&[&member], &[2]);
}

fn one_of_two_consumers_with_the_same_instance_id_fails(setup: &Setup<'_>) {
    let topic = setup.topic(2);
    let start = || {
        let member = consumer(setup, &topic, &[("group.instance.id", "same")]);
        member.subscribe(&[&topic]).unwrap();
        member
    };
    let first = start();
    settle(&[&first], &[2]);
    let second = start();
    // A classic coordinator lets the newer member take over; the consumer protocol protects the older one.
    let (fails, stays, expected) = if setup.is_classic() {
        (&first, &second, "FENCED_INSTANCE_ID")
    } else {
        (&second, &first, "UNRELEASED_INSTANCE_ID")
    };
    settle(&[stays], &[2]);
    let mut errors = Vec::new();
    assert!(eventually(|| {
        let records = fails.poll(Duration::from_millis(5)).expect("it is open");
        errors.extend(records.events().iter().map(ToString::to_string));
        errors.iter().any(|error| error.contains(expected) && error.contains("\"same\""))
    }));
    assert!(fails.assignment().is_empty(), "it has no partitions");
    assert_eq!(assigned(stays).len(), 2);
    fails.close(TIMEOUT).unwrap();
}

fn changed_subscription_changes_the_assignment(setup: &Setup<'_>) {
    let (one, two) = (setup.topic(2), setup.topic(3));
    let member = consumer(setup, &one, &[]);
    member.subscribe(&[&one]).unwrap();
    settle(&[&member], &[2]);
    member.subscribe(&[&one, &two]).unwrap();
    settle(&[&member], &[5]);
    member.subscribe(&[&two]).unwrap();
    settle(&[&member], &[3]);
    member.unsubscribe(TIMEOUT).unwrap();
    assert!(member.assignment().is_empty());
    member.subscribe(&[&one]).unwrap();
    settle(&[&member], &[2]);
}

fn subscription_and_assignment_by_hand_exclude_each_other(setup: &Setup<'_>) {
    let topic = setup.topic(1);
    let kind = |result: ottla::Result<()>| result.expect_err("it is refused").kind();
    let by_hand = [(&*topic, 0, ottla::Offset::Beginning)];
    let member = consumer(setup, &topic, &[]);
    member.subscribe(&[&topic]).unwrap();
    assert_eq!(kind(member.assign(&by_hand)), ErrorKind::State);
    assert_eq!(kind(member.incremental_assign(&by_hand)), ErrorKind::State);
    assert_eq!(kind(member.incremental_unassign(&[(&*topic, 0)])), ErrorKind::State);
    member.unsubscribe(TIMEOUT).unwrap();
    member.assign(&by_hand).unwrap();
    assert_eq!(kind(member.subscribe(&[&topic])), ErrorKind::State);
    for bad in [vec![], vec![""], vec!["a b"], vec!["t", "t"], vec!["^["]] {
        assert_eq!(kind(member.subscribe(&bad)), ErrorKind::InvalidArgument, "{bad:?}");
    }
    let alone = Consumer::new(&setup.config(&[])).expect("the configuration is right");
    assert_eq!(kind(alone.subscribe(&[&topic])), ErrorKind::InvalidArgument);
    if setup.is_classic() {
        let odd = consumer(setup, &topic, &[("partition.assignment.strategy", "mine")]);
        assert!(odd.subscribe(&[&topic]).expect_err("it is refused").to_string().contains("`mine`"));
    }
}

/// Members of both protocols in one group.
mod migration {
    use super::*;

    struct Member {
        consumer: Consumer,
        protocol: &'static str,
    }

    impl Member {
        fn new(backend: &Backend, topic: &str, protocol: &'static str) -> Self {
            let strategy = [("partition.assignment.strategy", "cooperative-sticky")];
            let properties = if protocol == "classic" { &strategy[..] } else { &[] };
            let consumer = consumer(&Setup { backend, protocol }, topic, properties);
            consumer.subscribe(&[topic]).unwrap();
            Self { consumer, protocol }
        }

        fn generation(&self) -> Option<i32> {
            self.consumer.group_metadata().generation.map(|generation| generation.get())
        }

        fn leave(self) {
            self.consumer.close(TIMEOUT).unwrap();
        }
    }

    /// Returns true if all classic members are in the group's last generation. When the last member of the consumer protocol
    /// leaves, the group becomes a classic one of this generation, and members of earlier ones lose their partitions.
    fn are_in_the_last_generation(members: &[&Member]) -> bool {
        let last = members.iter().map(|member| member.generation()).max();
        let mut classic = members.iter().filter(|member| member.protocol == "classic");
        classic.all(|member| Some(member.generation()) == last)
    }

    /// Reads with all members until each number came, and checks that every partition has one owner.
    fn check(setup: &Setup<'_>, topic: &str, members: &[&Member], numbers: std::ops::Range<u32>) {
        let consumers: Vec<_> = members.iter().map(|member| &member.consumer).collect();
        let partitions: BTreeSet<_> = (0..6).map(|partition| (topic.to_owned(), partition)).collect();
        let mut owned = BTreeSet::new();
        let settled = eventually(|| {
            consumers.iter().for_each(|consumer| drop(consumer.poll(Duration::from_millis(5))));
            let assignments: Vec<_> = consumers.iter().map(|consumer| assigned(consumer)).collect();
            owned = assignments.iter().flatten().cloned().collect();
            let each_has_one_owner = assignments.iter().map(BTreeSet::len).sum::<usize>() == 6;
            owned == partitions && each_has_one_owner && are_in_the_last_generation(members)
        });
        let generations: Vec<_> = members.iter().map(|member| member.generation()).collect();
        assert!(settled, "the members have {owned:?} in the generations {generations:?}");
        let count = numbers.len();
        write(setup, topic, 6, numbers.clone());
        let seen = read(&consumers, count);
        assert_eq!(seen.keys().min(), Some(&numbers.start), "everything before was committed");
    }

    fn migrate(backend: &Backend, from: &'static str, to: &'static str) {
        let setup = Setup { backend, protocol: from };
        let topic = backend.topic(6);
        let (one, two) = (Member::new(backend, &topic, from), Member::new(backend, &topic, from));
        check(&setup, &topic, &[&one, &two], 0..60);
        let three = Member::new(backend, &topic, to);
        check(&setup, &topic, &[&one, &two, &three], 60..120);
        one.leave();
        let four = Member::new(backend, &topic, to);
        check(&setup, &topic, &[&two, &three, &four], 120..180);
        two.leave();
        check(&setup, &topic, &[&three, &four], 180..240);
        three.leave();
        check(&setup, &topic, &[&four], 240..300);
    }

    fn group_moves_to_the_consumer_protocol_one_member_at_a_time(backend: &Backend) {
        migrate(backend, "classic", "consumer");
    }

    fn group_moves_back_to_the_classic_protocol_one_member_at_a_time(backend: &Backend) {
        migrate(backend, "consumer", "classic");
    }

    ottla_scenarios::run_on_all!(
        group_moves_to_the_consumer_protocol_one_member_at_a_time,
        group_moves_back_to_the_classic_protocol_one_member_at_a_time,
    );
}

fn pattern_matches_topics_that_exist_and_that_are_created_later(setup: &Setup<'_>) {
    let (prefix, other) = (unused_topic_name(), setup.topic(1));
    let admin = Admin::new(&setup.config(&[])).expect("the configuration is right");
    let create = |suffix: &str, partitions| {
        let topic = NewTopic::new(format!("{prefix}-{suffix}"), partitions, 1);
        admin.create_topics(&[topic], TIMEOUT).expect("the brokers respond");
    };
    create("a", 2);
    create("b", 1);
    let member = consumer(setup, &other, &[]);
    let pattern = format!("^{prefix}-[a-c]$");
    member.subscribe(&[&*pattern, &other]).unwrap();
    assert_eq!(member.subscription(), [&*pattern, &*other]);
    settle(&[&member], &[4]);
    create("d", 5);
    create("c", 3);
    if setup.is_classic() {
        settle(&[&member], &[7]);
    } else {
        // Kafka matches a pattern again when a member changes its subscription, and otherwise every 10 minutes.
        let wider = format!("^{prefix}-[a-c]");
        member.subscribe(&[&*wider, &other]).unwrap();
        settle(&[&member], &[7]);
    }
    write(setup, &format!("{prefix}-c"), 3, 0..30);
    read(&[&member], 30);
    if setup.is_classic() {
        let hidden = format!("^{prefix}-a");
        let blind = consumer(setup, &unused_topic_name(), &[("topic.blacklist", &hidden)]);
        blind.subscribe(&[&pattern]).unwrap();
        settle(&[&blind], &[4]);
    }
    member.subscribe(&[&other]).unwrap();
    settle(&[&member], &[1]);
}

fn application_decides_when_a_rebalance_takes_effect(setup: &Setup<'_>) {
    let topic = setup.topic(2);
    write(setup, &topic, 2, 0..100);
    let first = consumer(setup, &topic, &[]);
    let rebalances = first.rebalances();
    first.subscribe(&[&topic]).unwrap();
    let assign = rebalances.next(TIMEOUT).expect("the group assigns partitions");
    assert_eq!(assign.kind(), RebalanceKind::Assign);
    let numbers: Vec<i32> = assign.partitions().iter().map(|key| key.partition).collect();
    assert_eq!(numbers, [0, 1]);
    assert!(first.poll(Duration::from_millis(300)).unwrap().is_empty(), "nothing comes before the answer");
    assert!(first.assignment().is_empty());
    assert!(assign.time_left() > Duration::from_secs(60));
    assign.accept_from(&[(&topic, 0, Offset::At(40))]).unwrap();
    let seen = read(&[&first], 60);
    let expected = (0..100).filter(|number| number % 2 == 1 || *number >= 80);
    assert!(seen.into_keys().eq(expected), "one partition starts where the application said");
    let second = consumer(setup, &topic, &[]);
    second.subscribe(&[&topic]).unwrap();
    let revoke = rebalances.next(TIMEOUT).expect("the other member joins");
    assert_eq!(revoke.kind(), RebalanceKind::Revoke);
    assert!(second.assignment().is_empty(), "it waits for the answer");
    revoke.accept();
    drop(rebalances);
    settle(&[&first, &second], &[1, 1]);
    first.close(TIMEOUT).unwrap();
    second.close(TIMEOUT).unwrap();
}

fn dropped_consumer_leaves_its_group(setup: &Setup<'_>) {
    let topic = setup.topic(2);
    // The default of the consumer protocol, and longer than the test waits.
    let session: &[_] = if setup.is_classic() { &[("session.timeout.ms", "45000")] } else { &[] };
    let first = consumer(setup, &topic, session);
    first.subscribe(&[&topic]).unwrap();
    let second = consumer(setup, &topic, &[]);
    second.subscribe(&[&topic]).unwrap();
    settle(&[&first, &second], &[1, 1]);
    drop(first);
    settle(&[&second], &[2]);
    second.close(TIMEOUT).unwrap();
}
