//! The `roundrobin` assignor: one partition after the other, in a circle of members.

use ottla_protocol::vocabulary::TopicPartition;

use super::GroupTable;

/// Computes the assignment.
pub(super) fn assign(table: &GroupTable) -> Vec<Vec<TopicPartition>> {
    let count = table.members().len();
    let mut assignment = vec![Vec::new(); count];
    let mut next = 0;
    for topic in table.subscribed() {
        for partition in 0..topic.table.partitions() {
            // The next subscriber in the circle; the subscribers are in ascending order, and there is at least one.
            let place = topic.members.partition_point(|member| *member < next);
            let member = topic.members[if place == topic.members.len() { 0 } else { place }];
            assignment[member].push(topic.partition(partition));
            next = (member + 1) % count;
        }
    }
    assignment
}

#[cfg(test)]
mod tests {
    use super::super::{
        Assignor, GroupTable,
        tests::{member, plain, shown},
    };

    fn assigned(members: &[(&str, &[&str])], topics: &[(&str, usize)]) -> Vec<String> {
        let members = members.iter().map(|(id, topics)| member(id, topics)).collect();
        let table = GroupTable::new(members, plain(topics));
        shown(&table, &Assignor::RoundRobin.assign(&table))
    }

    #[test]
    fn partitions_go_around_the_members() {
        let topics = ["t0", "t1"];
        let assigned = assigned(&[("C1", &topics), ("C2", &topics)], &[("t0", 3), ("t1", 3)]);
        assert_eq!(assigned, ["C1 t0:0,2 t1:1", "C2 t0:1 t1:0,2"]);
    }

    #[test]
    fn members_are_skipped_for_topics_they_do_not_subscribe_to() {
        let assigned = assigned(
            &[("a", &["x"]), ("b", &["x", "y"]), ("c", &["x", "y", "z"])],
            &[("x", 1), ("y", 2), ("z", 3)],
        );
        assert_eq!(assigned, ["a x:0", "b y:0", "c y:1 z:0,1,2"]);
    }
}
