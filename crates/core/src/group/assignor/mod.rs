//! Assignors: which member of a classic group gets which partitions.
//!
//! The leader of a generation computes the assignment from the subscriptions of all members. Each assignor is a pure
//! function of a [`GroupTable`]: it has no state, clock or randomness, and its result depends neither on the order of the
//! members nor on that of their topics.
//!
//! | assignor | protocol | partitions of a member |
//! |---|---|---|
//! | `range` | eager | per topic a contiguous range; the same numbers of co-partitioned topics |
//! | `roundrobin` | eager | one partition after the other, in a circle of members |
//! | `sticky` | eager | what it had in the generation before, as far as the members stay balanced |
//! | `cooperative-sticky` | cooperative | what it had, as far as the members stay balanced |
//!
//! The application can add its own: [`custom`].
//!
//! # Pitfalls
//!
//! - Members must be ordered as the Java client orders them: static members by instance ID and before dynamic ones.
//!   Another leader would otherwise move partitions although nothing changed
//!   (`static_members_come_first_and_in_order_of_instance_id`).

pub mod custom;
mod range;
mod round_robin;
mod sticky;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ottla_protocol::vocabulary::TopicPartition;

pub use self::custom::Strategy;
pub use super::shared::RebalanceProtocol;

/// An assignor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assignor {
    /// `range`.
    Range,
    /// `roundrobin`.
    RoundRobin,
    /// `sticky`.
    Sticky,
    /// `cooperative-sticky`.
    CooperativeSticky,
}

impl Assignor {
    /// All assignors.
    pub const ALL: [Self; 4] = [Self::Range, Self::RoundRobin, Self::Sticky, Self::CooperativeSticky];

    /// Returns the assignor with this name in `partition.assignment.strategy`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assignor| assignor.name() == name)
    }

    /// Returns the name that members offer to the broker.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
            Self::Sticky => "sticky",
            Self::CooperativeSticky => "cooperative-sticky",
        }
    }

    /// Returns how members that use the assignor give partitions up.
    pub const fn protocol(self) -> RebalanceProtocol {
        match self {
            Self::Range | Self::RoundRobin | Self::Sticky => RebalanceProtocol::Eager,
            Self::CooperativeSticky => RebalanceProtocol::Cooperative,
        }
    }

    /// Computes the assignment: for each member of the table its partitions, sorted.
    pub fn assign(self, table: &GroupTable) -> Vec<Vec<TopicPartition>> {
        let mut assignment = match self {
            Self::Range => range::assign(table),
            Self::RoundRobin => round_robin::assign(table),
            Self::Sticky | Self::CooperativeSticky => sticky::assign(table),
        };
        if self.protocol() == RebalanceProtocol::Cooperative {
            sticky::withhold_moving(table, &mut assignment);
        }
        assignment.iter_mut().for_each(|partitions| partitions.sort_unstable());
        assignment
    }
}

/// The input of an assignor: the ordered members, and the topics that they subscribe to.
#[derive(Clone, Debug)]
pub struct GroupTable {
    /// The members, in the order in which assignors consider them.
    members: Vec<GroupMember>,
    /// The topics that exist, by name.
    topics: BTreeMap<Arc<str>, TopicTable>,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMember {
    /// The member ID.
    pub id: String,
    /// `group.instance.id`.
    pub instance_id: Option<String>,
    /// The topics that it subscribes to.
    pub topics: BTreeSet<Arc<str>>,
    /// The partitions that it has.
    pub owned: Vec<TopicPartition>,
    /// The generation in which it got them, if known.
    pub generation: Option<i32>,
    /// `client.rack`, if set.
    pub rack: Option<Arc<str>>,
    /// The data that the member's assignor sent.
    pub user_data: Option<Vec<u8>>,
}

/// A topic as the leader's metadata describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicTable {
    /// For each partition the racks of its replicas.
    pub racks: Vec<BTreeSet<Arc<str>>>,
}

impl TopicTable {
    /// Returns a topic with this number of partitions, on brokers without racks.
    pub fn without_racks(partitions: usize) -> Self {
        Self { racks: vec![BTreeSet::new(); partitions] }
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.racks.len()
    }
}

impl GroupTable {
    /// Creates the table of a group.
    pub fn new(mut members: Vec<GroupMember>, topics: BTreeMap<Arc<str>, TopicTable>) -> Self {
        members.sort_by(compare_members);
        Self { members, topics }
    }

    /// Returns the members, in the order of the results of [`Assignor::assign`].
    pub fn members(&self) -> &[GroupMember] {
        &self.members
    }

    /// Returns the topics that exist, by name: those that some member subscribes to.
    pub const fn topics(&self) -> &BTreeMap<Arc<str>, TopicTable> {
        &self.topics
    }

    /// Returns the topics that exist and that some member subscribes to, each with the indexes of its subscribers.
    fn subscribed(&self) -> Vec<SubscribedTopic<'_>> {
        let mut subscribers: BTreeMap<&Arc<str>, Vec<usize>> = BTreeMap::new();
        for (index, member) in self.members.iter().enumerate() {
            for topic in &member.topics {
                subscribers.entry(topic).or_default().push(index);
            }
        }
        let topics = subscribers.into_iter().filter_map(|(name, members)| {
            let table = self.topics.get(name)?;
            Some(SubscribedTopic { name, table, members })
        });
        topics.collect()
    }
}

/// A topic with its subscribers.
#[derive(Debug)]
struct SubscribedTopic<'a> {
    name: &'a Arc<str>,
    table: &'a TopicTable,
    /// The indexes of the subscribed members, ascending.
    members: Vec<usize>,
}

impl SubscribedTopic<'_> {
    fn partition(&self, number: usize) -> TopicPartition {
        TopicPartition::new(Arc::clone(self.name), number as i32)
    }
}

/// Orders members as the Java client does: static members first, by instance ID; dynamic members by member ID.
fn compare_members(one: &GroupMember, other: &GroupMember) -> Ordering {
    match (&one.instance_id, &other.instance_id) {
        (Some(one_id), Some(other_id)) => one_id.cmp(other_id).then_with(|| one.id.cmp(&other.id)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.id.cmp(&other.id),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A member that subscribes to topics.
    pub(in crate::group) fn member(id: &str, topics: &[&str]) -> GroupMember {
        let topics = topics.iter().map(|topic| Arc::from(*topic)).collect();
        GroupMember { id: id.to_owned(), topics, ..GroupMember::default() }
    }

    pub(in crate::group) fn with_rack(mut member: GroupMember, rack: usize) -> GroupMember {
        member.rack = Some(Arc::from(format!("r{rack}")));
        member
    }

    /// Returns topics on brokers without racks.
    pub(in crate::group) fn plain(topics: &[(&str, usize)]) -> BTreeMap<Arc<str>, TopicTable> {
        topics.iter().map(|(name, count)| (Arc::from(*name), TopicTable::without_racks(*count))).collect()
    }

    /// Topics whose partitions have `factor` replicas on consecutive racks, counted over all topics.
    pub(in crate::group) fn on_racks(
        topics: &[(&str, usize)],
        factor: usize,
        racks: usize,
    ) -> BTreeMap<Arc<str>, TopicTable> {
        let mut running = 0;
        let mut table = BTreeMap::new();
        for (name, count) in topics {
            let of_partition = |number: usize| {
                (0..factor).map(|replica| Arc::from(format!("r{}", (number + replica) % racks))).collect()
            };
            let racks = (running..running + count).map(of_partition).collect();
            running += count;
            table.insert(Arc::from(*name), TopicTable { racks });
        }
        table
    }

    /// Formats an assignment: per member its topics, each with its partitions.
    pub(in crate::group) fn shown(table: &GroupTable, assignment: &[Vec<TopicPartition>]) -> Vec<String> {
        let mut lines = Vec::new();
        for (member, partitions) in table.members().iter().zip(assignment) {
            let mut topics: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for key in partitions {
                topics.entry(&key.topic).or_default().push(key.partition.to_string());
            }
            let topics = topics.iter().map(|(topic, numbers)| format!("{topic}:{}", numbers.join(",")));
            lines.push(
                format!("{} {}", member.id, topics.collect::<Vec<_>>().join(" ")).trim_end().to_owned(),
            );
        }
        lines
    }

    #[test]
    fn static_members_come_first_and_in_order_of_instance_id() {
        let fixed = |id: &str, instance: &str| GroupMember {
            instance_id: Some(instance.to_owned()),
            ..member(id, &["t"])
        };
        let members = vec![member("a", &["t"]), fixed("x", "2"), member("0", &["t"]), fixed("y", "1")];
        let table = GroupTable::new(members, plain(&[("t", 1)]));
        let order: Vec<&str> = table.members().iter().map(|member| &*member.id).collect();
        assert_eq!(order, ["y", "x", "0", "a"]);
    }

    #[test]
    fn missing_topic_is_not_assigned() {
        let members = vec![member("a", &["gone", "t"])];
        let table = GroupTable::new(members, plain(&[("t", 1), ("other", 3)]));
        for assignor in Assignor::ALL {
            assert_eq!(shown(&table, &assignor.assign(&table)), ["a t:0"], "{}", assignor.name());
        }
    }

    #[test]
    fn assignors_are_found_by_their_names() {
        for assignor in Assignor::ALL {
            assert_eq!(Assignor::from_name(assignor.name()), Some(assignor));
        }
        assert_eq!(Assignor::from_name("Range"), None);
    }
}
