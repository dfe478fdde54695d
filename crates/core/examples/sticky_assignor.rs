//! Measures the `cooperative-sticky` assignor: 10,000 partitions of 100 topics, 999 members, and one more joins.
//!
//! `cargo run --release -p ottla-core --example sticky_assignor` prints the time of 21 runs and the number of partitions that
//! change their owner, for members with equal and with different subscriptions.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use ottla_core::group::assignor::{Assignor, GroupMember, GroupTable, TopicTable};
use ottla_protocol::vocabulary::TopicPartition;

const MEMBERS: usize = 999;
const TOPICS: usize = 100;
const RUNS: usize = 21;

fn member(number: usize, skips_a_topic: bool, topics: &[Arc<str>]) -> GroupMember {
    let skipped = if skips_a_topic { number % TOPICS } else { usize::MAX };
    let subscribed = topics.iter().enumerate().filter(|(index, _)| *index != skipped);
    GroupMember {
        id: format!("m{number:04}"),
        topics: subscribed.map(|(_, topic)| Arc::clone(topic)).collect(),
        ..GroupMember::default()
    }
}

fn measure(skips_a_topic: bool) {
    let names: Vec<Arc<str>> = (0..TOPICS).map(|number| Arc::from(format!("topic-{number:03}"))).collect();
    let topics: BTreeMap<_, _> =
        names.iter().map(|name| (Arc::clone(name), TopicTable::without_racks(100))).collect();
    let members = (0..MEMBERS).map(|number| member(number, skips_a_topic, &names)).collect();
    let before = GroupTable::new(members, topics.clone());
    let assigned = Assignor::CooperativeSticky.assign(&before);
    let mut owners: BTreeMap<TopicPartition, String> = BTreeMap::new();
    let mut members = Vec::new();
    for (member, owned) in before.members().iter().zip(&assigned) {
        owners.extend(owned.iter().map(|key| (key.clone(), member.id.clone())));
        members.push(GroupMember { owned: owned.clone(), generation: Some(1), ..member.clone() });
    }
    members.push(member(MEMBERS, skips_a_topic, &names));
    let mut times: Vec<Duration> = Vec::new();
    let mut moved = 0;
    for _ in 0..RUNS {
        let (members, topics) = (members.clone(), topics.clone());
        let began = Instant::now();
        let table = GroupTable::new(members, topics);
        let assigned = Assignor::CooperativeSticky.assign(&table);
        times.push(began.elapsed());
        // A partition that moves is withheld until its owner has given it up.
        let kept: usize = table
            .members()
            .iter()
            .zip(&assigned)
            .map(|(member, keys)| keys.iter().filter(|key| owners[*key] == member.id).count())
            .sum();
        moved = owners.len() - kept;
    }
    times.sort_unstable();
    let subscriptions = if skips_a_topic { "different" } else { "equal" };
    println!(
        "{subscriptions} subscriptions: median {:.1} ms, longest {:.1} ms; {moved} of {} partitions move",
        times[RUNS / 2].as_secs_f64() * 1000.0,
        times[RUNS - 1].as_secs_f64() * 1000.0,
        owners.len()
    );
}

fn main() {
    measure(false);
    measure(true);
}
