//! The `range` assignor, with racks (KIP-881) and co-partitioned topics.
//!
//! Each member gets a contiguous range of each topic, `floor(partitions / members)` of them, and the first members one more.
//! Where replicas and members have racks, a first pass gives members partitions that have a replica in their rack; topics
//! with the same subscribers and the same number of partitions are assigned together, so that their equal partitions go to
//! the same member.

use std::collections::{BTreeMap, BTreeSet};

use ottla_protocol::vocabulary::TopicPartition;

use super::{GroupTable, SubscribedTopic};

/// The progress of a topic's assignment.
struct Progress<'a> {
    topic: SubscribedTopic<'a>,
    /// The unassigned partitions, ascending.
    unassigned: BTreeSet<usize>,
    /// The number of partitions that each subscriber has, in the order of `topic.members`.
    counts: Vec<usize>,
    /// The number of partitions that every subscriber gets.
    quota: usize,
    /// The number of subscribers that still get one more.
    extras: usize,
    needs_racks: bool,
}

/// Computes the assignment, unsorted.
pub(super) fn assign(table: &GroupTable) -> Vec<Vec<TopicPartition>> {
    let mut assignment = vec![Vec::new(); table.members().len()];
    let mut topics: Vec<_> =
        table.subscribed().into_iter().map(|topic| Progress::new(table, topic)).collect();
    if topics.iter().any(|topic| topic.needs_racks) {
        assign_by_racks(table, &mut topics, &mut assignment);
    }
    for topic in &mut topics {
        topic.assign_ranges(&mut assignment, |_, _| true);
    }
    assignment
}

/// The first pass: only members and partitions whose racks match.
fn assign_by_racks(table: &GroupTable, topics: &mut [Progress<'_>], assignment: &mut [Vec<TopicPartition>]) {
    let mut buckets: BTreeMap<(Vec<usize>, usize), Vec<&mut Progress<'_>>> = BTreeMap::new();
    for topic in topics {
        let bucket = (topic.topic.members.clone(), topic.topic.table.partitions());
        buckets.entry(bucket).or_default().push(topic);
    }
    for ((members, partitions), mut bucket) in buckets {
        match &mut *bucket {
            [topic] if topic.needs_racks => {
                let racks = &topic.topic.table.racks;
                topic.assign_ranges(assignment, |member, partition| {
                    matches_rack(table, member, &racks[partition])
                });
            }
            [_] => {}
            together => assign_together(table, &members, partitions, together, assignment),
        }
    }
}

/// Assigns topics with equal subscribers and partition counts: each partition number goes to one member in all of them.
fn assign_together(
    table: &GroupTable,
    members: &[usize],
    partitions: usize,
    topics: &mut [&mut Progress<'_>],
    assignment: &mut [Vec<TopicPartition>],
) {
    let mut remaining: Vec<usize> = (0..members.len()).collect();
    for partition in 0..partitions {
        let fits = |place: &usize| {
            topics.iter().all(|topic| {
                topic.room(*place) > 0
                    && matches_rack(table, members[*place], &topic.topic.table.racks[partition])
            })
        };
        let Some(place) = remaining.iter().copied().find(fits) else { continue };
        for topic in topics.iter_mut() {
            topic.give(place, [partition], assignment);
        }
        if topics.iter().all(|topic| topic.room(place) == 0) {
            remaining.retain(|other| *other != place);
        }
    }
}

/// Returns true if a member has no rack, or a replica is in its rack.
fn matches_rack(table: &GroupTable, member: usize, racks: &BTreeSet<std::sync::Arc<str>>) -> bool {
    table.members()[member].rack.as_ref().is_none_or(|rack| racks.contains(rack))
}

impl<'a> Progress<'a> {
    fn new(table: &GroupTable, topic: SubscribedTopic<'a>) -> Self {
        let (partitions, members) = (topic.table.partitions(), topic.members.len());
        Self {
            unassigned: (0..partitions).collect(),
            counts: vec![0; members],
            quota: partitions / members,
            extras: partitions % members,
            needs_racks: needs_racks(table, &topic),
            topic,
        }
    }

    /// Returns how many more partitions a subscriber may get.
    fn room(&self, place: usize) -> usize {
        let most = self.quota + usize::from(self.extras > 0);
        most.saturating_sub(self.counts[place])
    }

    /// Gives each subscriber in turn its first unassigned partitions that it may have.
    fn assign_ranges(
        &mut self,
        assignment: &mut [Vec<TopicPartition>],
        may_have: impl Fn(usize, usize) -> bool,
    ) {
        for place in 0..self.topic.members.len() {
            if self.unassigned.is_empty() {
                break;
            }
            let member = self.topic.members[place];
            let range = self.unassigned.iter().copied().filter(|partition| may_have(member, *partition));
            let range: Vec<usize> = range.take(self.room(place)).collect();
            self.give(place, range, assignment);
        }
    }

    fn give(
        &mut self,
        place: usize,
        partitions: impl IntoIterator<Item = usize>,
        assignment: &mut [Vec<TopicPartition>],
    ) {
        let before = self.counts[place];
        for partition in partitions {
            self.unassigned.remove(&partition);
            self.counts[place] += 1;
            assignment[self.topic.members[place]].push(self.topic.partition(partition));
        }
        if before <= self.quota && self.counts[place] > self.quota {
            self.extras -= 1;
        }
    }
}

/// Returns true if racks make a difference: a subscriber's rack has replicas, but not of all partitions.
fn needs_racks(table: &GroupTable, topic: &SubscribedTopic<'_>) -> bool {
    let of_topic: BTreeSet<_> = topic.table.racks.iter().flatten().collect();
    let of_members = topic.members.iter().filter_map(|member| table.members()[*member].rack.as_ref());
    of_members.into_iter().any(|rack| of_topic.contains(rack))
        && topic.table.racks.iter().any(|racks| racks.len() < of_topic.len())
}

#[cfg(test)]
mod tests {
    use super::super::{
        Assignor, GroupTable,
        tests::{member, on_racks, plain, shown, with_rack},
    };

    const THREE: [(&str, usize); 3] = [("t1", 6), ("t2", 7), ("t3", 2)];

    fn members(racks: &[usize], topics: &[&str]) -> Vec<super::super::GroupMember> {
        let members = racks.iter().zip(1..);
        members.map(|(rack, number)| with_rack(member(&format!("c{number}"), topics), *rack)).collect()
    }

    fn assigned(table: &GroupTable) -> Vec<String> {
        shown(table, &Assignor::Range.assign(table))
    }

    #[test]
    fn members_get_contiguous_ranges_and_the_first_ones_more() {
        let table = GroupTable::new(
            vec![member("c1", &["a", "b"]), member("c2", &["a", "b"])],
            plain(&[("a", 3), ("b", 3)]),
        );
        assert_eq!(assigned(&table), ["c1 a:0,1 b:0,1", "c2 a:2 b:2"]);
        let table = GroupTable::new(members(&[0, 1, 2], &["t1", "t2", "t3"]), plain(&THREE));
        let expected = ["c1 t1:0,1 t2:0,1,2 t3:0", "c2 t1:2,3 t2:3,4 t3:1", "c3 t1:4,5 t2:5,6"];
        assert_eq!(assigned(&table), expected);
    }

    #[test]
    fn partitions_with_one_replica_go_to_members_in_its_rack() {
        let members = members(&[0, 1, 2], &["t1", "t2", "t3"]);
        let table = GroupTable::new(members, on_racks(&THREE, 1, 3));
        let expected = ["c1 t1:0,3 t2:0,3,6", "c2 t1:1,4 t2:1,4 t3:0", "c3 t1:2,5 t2:2,5 t3:1"];
        assert_eq!(assigned(&table), expected);
    }

    #[test]
    fn partitions_with_two_replicas_go_to_members_in_their_racks() {
        let members = members(&[0, 1, 2], &["t1", "t2", "t3"]);
        let table = GroupTable::new(members, on_racks(&THREE, 2, 3));
        let expected = ["c1 t1:0,2 t2:0,2,3 t3:1", "c2 t1:1,3 t2:1,4 t3:0", "c3 t1:4,5 t2:5,6"];
        assert_eq!(assigned(&table), expected);
    }

    #[test]
    fn replicas_in_all_racks_leave_plain_ranges() {
        let topics = [("t1", 6), ("t2", 6), ("t3", 2), ("t4", 2), ("t5", 4), ("t6", 4)];
        let names: Vec<&str> = topics.iter().map(|(name, _)| *name).collect();
        let table = GroupTable::new(members(&[0, 1, 2], &names), on_racks(&topics, 3, 3));
        let expected = [
            "c1 t1:0,1 t2:0,1 t3:0 t4:0 t5:0,1 t6:0,1",
            "c2 t1:2,3 t2:2,3 t3:1 t4:1 t5:2 t6:2",
            "c3 t1:4,5 t2:4,5 t5:3 t6:3",
        ];
        assert_eq!(assigned(&table), expected);
    }

    #[test]
    fn co_partitioned_topics_stay_together_in_racks() {
        let mut all = members(&[0, 1], &["t1", "t2"]);
        all.extend(members(&[0, 0, 1, 0], &["t3", "t4"]).split_off(2));
        let table = GroupTable::new(all, on_racks(&[("t1", 6), ("t2", 6), ("t3", 2), ("t4", 2)], 1, 2));
        let expected = ["c1 t1:0,2,4 t2:0,2,4", "c2 t1:1,3,5 t2:1,3,5", "c3 t3:1 t4:1", "c4 t3:0 t4:0"];
        assert_eq!(assigned(&table), expected);
    }

    #[test]
    fn members_without_a_rack_take_any_partition() {
        let all = vec![with_rack(member("c1", &["t"]), 1), member("c2", &["t"])];
        let table = GroupTable::new(all, on_racks(&[("t", 4)], 1, 2));
        assert_eq!(assigned(&table), ["c1 t:1,3", "c2 t:0,2"]);
    }
}
