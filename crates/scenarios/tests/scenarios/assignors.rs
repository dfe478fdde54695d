//! Assignors of the application, in groups of their own and beside the built-in ones.

use std::{
    collections::BTreeSet,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla::{
    Consumer, ConsumerEvent, ErrorCode, ErrorKind, GroupAssignment, GroupTable, MemberAssignment,
    PartitionAssignor, RebalanceProtocol, TopicPartition,
};
use ottla_scenarios::{Backend, TIMEOUT, eventually, unused_topic_name};

ottla_scenarios::run_on_all!(
    custom_assignor_decides_the_assignment,
    group_falls_back_to_the_assignor_that_all_members_have,
    member_without_the_groups_assignor_is_refused,
    member_whose_assignor_panics_leaves_the_lead_to_another,
    cooperative_custom_assignor_moves_partitions_without_overlap,
    assignors_with_wrong_names_are_refused_at_once,
);

/// Gives all partitions to the member with the largest user data.
struct ToTheGreatest {
    rank: u8,
    is_cooperative: bool,
    is_broken: Arc<AtomicBool>,
    assigned: Arc<AtomicUsize>,
}

impl ToTheGreatest {
    fn new(rank: u8) -> Self {
        let (is_broken, assigned) = Default::default();
        Self { rank, is_cooperative: false, is_broken, assigned }
    }
}

impl PartitionAssignor for ToTheGreatest {
    fn name(&self) -> &str {
        "to-the-greatest"
    }

    fn protocols(&self) -> &[RebalanceProtocol] {
        let all = &[RebalanceProtocol::Eager, RebalanceProtocol::Cooperative];
        if self.is_cooperative { all } else { &all[..1] }
    }

    fn user_data(&self, _topics: &BTreeSet<Arc<str>>) -> Option<Vec<u8>> {
        Some(vec![self.rank])
    }

    fn assign(&self, group: &GroupTable) -> Result<GroupAssignment, Box<dyn Error + Send + Sync>> {
        assert!(!self.is_broken.load(Ordering::Relaxed), "the assignor is broken");
        let greatest = group.members().iter().max_by_key(|member| &member.user_data);
        let greatest = greatest.ok_or("a group without members")?;
        let mut assignment = GroupAssignment::default();
        for (topic, table) in group.topics() {
            (0..table.partitions()).for_each(|number| {
                assignment.add(&greatest.id, TopicPartition::new(Arc::clone(topic), number as i32));
            });
        }
        Ok(assignment)
    }

    fn on_assignment(&self, assignment: &MemberAssignment, _generation: i32) {
        self.assigned.store(assignment.partitions.len(), Ordering::Relaxed);
    }
}

fn member(backend: &Backend, group: &str, strategy: &str, assignor: ToTheGreatest) -> Consumer {
    let config = backend.config(&[
        ("group.id", group),
        ("partition.assignment.strategy", strategy),
        ("session.timeout.ms", "6000"),
        ("heartbeat.interval.ms", "200"),
    ]);
    Consumer::builder(&config).assignor(assignor).build().expect("the configuration is right")
}

/// Polls until the members have this many partitions each. Returns the errors that came meanwhile.
fn settle(members: &[&Consumer], counts: &[usize]) -> Vec<ottla::Error> {
    let mut errors = Vec::new();
    let mut sizes = Vec::new();
    let settled = eventually(|| {
        members.iter().for_each(|member| errors.extend(poll_errors(member)));
        sizes = members.iter().map(|member| member.assignment().len()).collect();
        sizes == counts
    });
    assert!(settled, "the members have {sizes:?} partitions instead of {counts:?}; {errors:?}");
    errors
}

/// Polls once; returns the errors that came.
fn poll_errors(member: &Consumer) -> Vec<ottla::Error> {
    let records = member.poll(Duration::from_millis(5)).expect("the consumer is open");
    let errors = records.events().iter().filter_map(|event| match event {
        ConsumerEvent::Error(error) => Some(error.clone()),
        _ => None,
    });
    errors.collect()
}

fn custom_assignor_decides_the_assignment(backend: &Backend) {
    let topic = backend.topic(3);
    let less = ToTheGreatest::new(1);
    let assigned_to_less = Arc::clone(&less.assigned);
    let less = member(backend, &topic, "to-the-greatest", less);
    less.subscribe(&[&topic]).unwrap();
    settle(&[&less], &[3]);
    assert_eq!(assigned_to_less.load(Ordering::Relaxed), 3);
    let greater = member(backend, &topic, "to-the-greatest", ToTheGreatest::new(2));
    greater.subscribe(&[&topic]).unwrap();
    assert_eq!(settle(&[&less, &greater], &[0, 3]), [], "the older member leads, and obeys");
    // The other member may get its part of the result first.
    assert!(eventually(|| assigned_to_less.load(Ordering::Relaxed) == 0));
}

fn group_falls_back_to_the_assignor_that_all_members_have(backend: &Backend) {
    let topic = backend.topic(4);
    let custom = member(backend, &topic, "to-the-greatest,range", ToTheGreatest::new(1));
    let both = member(backend, &topic, "to-the-greatest,range", ToTheGreatest::new(2));
    custom.subscribe(&[&topic]).unwrap();
    both.subscribe(&[&topic]).unwrap();
    settle(&[&custom, &both], &[0, 4]);
    let built_in = member(backend, &topic, "range", ToTheGreatest::new(3));
    assert!(built_in.warnings()[0].contains("does not name it"), "{:?}", built_in.warnings());
    built_in.subscribe(&[&topic]).unwrap();
    let all = [&custom, &both, &built_in];
    let shared = eventually(|| {
        all.iter().for_each(|member| drop(member.poll(Duration::from_millis(5))));
        let mut sizes: Vec<_> = all.iter().map(|member| member.assignment().len()).collect();
        sizes.sort_unstable();
        sizes == [1, 1, 2]
    });
    assert!(shared, "range shares the partitions of the mixed group");
    built_in.close(TIMEOUT).unwrap();
    settle(&[&custom, &both], &[0, 4]);
}

fn member_without_the_groups_assignor_is_refused(backend: &Backend) {
    let topic = backend.topic(2);
    let custom = member(backend, &topic, "to-the-greatest", ToTheGreatest::new(1));
    custom.subscribe(&[&topic]).unwrap();
    settle(&[&custom], &[2]);
    let other = member(backend, &topic, "range", ToTheGreatest::new(1));
    other.subscribe(&[&topic]).unwrap();
    let mut refusal = None;
    assert!(eventually(|| {
        drop(custom.poll(Duration::from_millis(5)));
        let records = other.poll(Duration::from_millis(5)).unwrap();
        refusal = records.events().iter().find_map(|event| match event {
            ConsumerEvent::Error(error) => Some(error.kind()),
            _ => None,
        });
        refusal.is_some()
    }));
    assert_eq!(refusal, Some(ErrorKind::Broker(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)));
    assert_eq!(custom.assignment().len(), 2, "the group of others is unharmed");
}

fn member_whose_assignor_panics_leaves_the_lead_to_another(backend: &Backend) {
    let topic = backend.topic(2);
    let broken = ToTheGreatest::new(1);
    let is_broken = Arc::clone(&broken.is_broken);
    let broken = member(backend, &topic, "to-the-greatest", broken);
    broken.subscribe(&[&topic]).unwrap();
    settle(&[&broken], &[2]);
    is_broken.store(true, Ordering::Relaxed);
    let sound = member(backend, &topic, "to-the-greatest", ToTheGreatest::new(2));
    sound.subscribe(&[&topic]).unwrap();
    let mut errors = settle(&[&broken, &sound], &[0, 2]);
    // The event may come after the change of the assignment.
    assert!(eventually(|| {
        errors.extend(poll_errors(&broken));
        !errors.is_empty()
    }));
    let kinds: Vec<_> = errors.iter().map(ottla::Error::kind).collect();
    assert_eq!(kinds, [ErrorKind::AssignorFailed], "{errors:?}");
    assert!(errors[0].to_string().contains("panicked in `assign`: the assignor is broken"), "{errors:?}");
}

fn cooperative_custom_assignor_moves_partitions_without_overlap(backend: &Backend) {
    let topic = backend.topic(3);
    let cooperative = |rank| ToTheGreatest { is_cooperative: true, ..ToTheGreatest::new(rank) };
    let less = member(backend, &topic, "to-the-greatest,cooperative-sticky", cooperative(1));
    less.subscribe(&[&topic]).unwrap();
    settle(&[&less], &[3]);
    let greater = member(backend, &topic, "to-the-greatest,cooperative-sticky", cooperative(2));
    greater.subscribe(&[&topic]).unwrap();
    let moved = eventually(|| {
        drop(less.poll(Duration::from_millis(2)));
        drop(greater.poll(Duration::from_millis(2)));
        // In this order: a partition that moves between the two calls is then seen with neither, not with both.
        let (new, old) = (greater.assignment().len(), less.assignment().len());
        assert!(new + old <= 3, "a partition has two members");
        (new, old) == (3, 0)
    });
    assert!(moved);
}

fn assignors_with_wrong_names_are_refused_at_once(backend: &Backend) {
    let config = backend.config(&[("group.id", "g")]);
    let twice = Consumer::builder(&config).assignor(ToTheGreatest::new(1)).assignor(ToTheGreatest::new(2));
    let error = twice.build().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("two registered assignors"), "{error}");

    let config = backend.config(&[("group.id", "g"), ("partition.assignment.strategy", "to-the-smallest")]);
    let consumer = Consumer::builder(&config).assignor(ToTheGreatest::new(1)).build().unwrap();
    let error = consumer.subscribe(&[unused_topic_name()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("cooperative-sticky, to-the-greatest"), "{error}");
}
