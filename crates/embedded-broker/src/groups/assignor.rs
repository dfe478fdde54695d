//! The server-side assignors of Kafka's consumer protocol.
//!
//! `range` gives each subscriber of a topic one contiguous range of its partitions. `uniform` balances the number of
//! partitions per member as far as the subscriptions allow, and moves as few partitions as possible.

use ottla_protocol::uuid::Uuid;
use ottla_sorted::{SortedMap, SortedSet};

/// Partitions by topic. Every topic in the map has at least one partition.
pub(crate) type Partitions = SortedMap<Uuid, SortedSet<i32>>;

/// The assignment strategy of a group of the consumer protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Balances the number of partitions per member, and moves few of them.
    Uniform,
    /// Gives each subscriber of a topic a contiguous range of its partitions.
    Range,
}

/// The assignor's view of a member.
#[derive(Debug)]
pub(crate) struct Subscriber<'a> {
    pub member_id: &'a str,
    pub instance_id: Option<&'a str>,
    pub topics: SortedSet<Uuid>,
    /// The member's previous target assignment.
    pub target: &'a Partitions,
}

impl Assignor {
    /// Returns Kafka's name of the assignor.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// Returns the assignor with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Uniform, Self::Range].into_iter().find(|assignor| assignor.name() == name)
    }

    /// Returns the target assignment of each member, in the order of `members`. `topics` contains the number of
    /// partitions of every subscribed topic.
    pub(crate) fn assign(self, topics: &SortedMap<Uuid, i32>, members: &[Subscriber<'_>]) -> Vec<Partitions> {
        match self {
            Self::Uniform => Uniform::new(topics, members).assign(),
            Self::Range => range(topics, members),
        }
    }
}

/// Orders static members first, by instance ID, so that a member that returns under another member ID gets its previous
/// assignment.
fn range(topics: &SortedMap<Uuid, i32>, members: &[Subscriber<'_>]) -> Vec<Partitions> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|at| {
        let member = &members[*at];
        (member.instance_id.is_none(), member.instance_id, member.member_id)
    });
    let mut assigned = vec![Partitions::new(); members.len()];
    for (topic, count) in topics {
        let subscribers: Vec<usize> =
            order.iter().copied().filter(|at| members[*at].topics.contains(topic)).collect();
        let Ok(among) = i32::try_from(subscribers.len()) else { continue };
        if among == 0 {
            continue;
        }
        let (each, more) = (count / among, count % among);
        let mut next = 0;
        for (at, subscriber) in (0..).zip(subscribers) {
            let end = next + each + i32::from(at < more);
            if end > next {
                assigned[subscriber].insert(*topic, (next..end).collect());
            }
            next = end;
        }
    }
    assigned
}

/// The uniform assignor. First every member keeps its partitions. Then unassigned partitions go to the member with the
/// fewest. Finally partitions move from the member with the most to the member with the fewest, while this improves the
/// balance.
struct Uniform<'a> {
    topics: &'a SortedMap<Uuid, i32>,
    subscribers: SortedMap<Uuid, Vec<usize>>,
    assigned: Vec<Partitions>,
    /// The number of partitions of each member.
    loads: Vec<usize>,
}

impl<'a> Uniform<'a> {
    fn new(topics: &'a SortedMap<Uuid, i32>, members: &[Subscriber<'_>]) -> Self {
        let mut subscribers: SortedMap<Uuid, Vec<usize>> = SortedMap::new();
        let mut taken: SortedSet<(Uuid, i32)> = SortedSet::new();
        let mut assigned = Vec::new();
        for (at, member) in members.iter().enumerate() {
            for topic in &member.topics {
                subscribers.entry(*topic).or_default().push(at);
            }
            let mut kept = Partitions::new();
            for (topic, partitions) in member.target {
                let Some(count) = topics.get(topic).filter(|_| member.topics.contains(topic)) else {
                    continue;
                };
                for partition in partitions {
                    if (0..*count).contains(partition) && taken.insert((*topic, *partition)) {
                        kept.entry(*topic).or_default().insert(*partition);
                    }
                }
            }
            assigned.push(kept);
        }
        let loads = assigned.iter().map(|kept| kept.values().map(SortedSet::len).sum()).collect();
        Self { topics, subscribers, assigned, loads }
    }

    fn assign(mut self) -> Vec<Partitions> {
        self.hand_out();
        self.balance();
        self.assigned
    }

    /// Topics with few subscribers come first: their partitions have fewer candidates.
    fn hand_out(&mut self) {
        let mut topics: Vec<(Uuid, i32)> =
            self.topics.iter().map(|(topic, count)| (*topic, *count)).collect();
        topics.sort_by_key(|(topic, _)| self.subscribers.get(topic).map_or(0, Vec::len));
        for (topic, count) in topics {
            let Some(subscribers) = self.subscribers.get(&topic) else { continue };
            let has = |at: &usize| self.assigned[*at].get(&topic);
            let taken: SortedSet<i32> = subscribers.iter().filter_map(has).flatten().copied().collect();
            let mut by_load: SortedSet<(usize, usize)> =
                subscribers.iter().map(|at| (self.loads[*at], *at)).collect();
            for partition in (0..count).filter(|partition| !taken.contains(partition)) {
                let Some((load, at)) = by_load.pop_first() else { break };
                self.assigned[at].entry(topic).or_default().insert(partition);
                self.loads[at] = load + 1;
                by_load.insert((load + 1, at));
            }
        }
    }

    fn balance(&mut self) {
        // Each step reduces the sum of the squares of the loads, so the loop terminates.
        while let Some((topic, from, to)) = self.next_step() {
            let Some(partitions) = self.assigned[from].get_mut(&topic) else { return };
            let Some(partition) = partitions.pop_last() else { return };
            if partitions.is_empty() {
                self.assigned[from].remove(&topic);
            }
            self.assigned[to].entry(topic).or_default().insert(partition);
            self.loads[from] -= 1;
            self.loads[to] += 1;
        }
    }

    fn next_step(&self) -> Option<(Uuid, usize, usize)> {
        if self.loads.iter().max()? - self.loads.iter().min()? <= 1 {
            return None;
        }
        let mut givers: Vec<usize> = (0..self.loads.len()).collect();
        givers.sort_by_key(|at| std::cmp::Reverse(self.loads[*at]));
        givers.into_iter().find_map(|from| {
            let mut topics: Vec<(&Uuid, usize)> =
                self.assigned[from].iter().map(|(topic, partitions)| (topic, partitions.len())).collect();
            topics.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            topics.into_iter().find_map(|(topic, _)| {
                let to = *self.subscribers.get(topic)?.iter().min_by_key(|at| self.loads[**at])?;
                (self.loads[to] + 1 < self.loads[from]).then_some((*topic, from, to))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Uuid = Uuid([1; 16]);
    const B: Uuid = Uuid([2; 16]);

    fn assign(
        assignor: Assignor,
        topics: &[(Uuid, i32)],
        members: &[(&str, Option<&str>, &[Uuid], &Partitions)],
    ) -> Vec<Partitions> {
        let members: Vec<_> = members
            .iter()
            .map(|(member_id, instance_id, topics, target)| Subscriber {
                member_id,
                instance_id: *instance_id,
                topics: topics.iter().copied().collect(),
                target,
            })
            .collect();
        assignor.assign(&topics.iter().copied().collect(), &members)
    }

    fn partitions(of: &[(Uuid, &[i32])]) -> Partitions {
        of.iter().map(|(topic, partitions)| (*topic, partitions.iter().copied().collect())).collect()
    }

    fn loads(assigned: &[Partitions]) -> Vec<usize> {
        assigned.iter().map(|of| of.values().map(SortedSet::len).sum()).collect()
    }

    #[test]
    fn range_gives_the_first_members_one_more_partition() {
        let none = Partitions::new();
        let both: &[Uuid] = &[A, B];
        let assigned = assign(
            Assignor::Range,
            &[(A, 5), (B, 1)],
            &[("m2", None, both, &none), ("m1", None, both, &none), ("m3", None, &[A], &none)],
        );
        assert_eq!(assigned[0], partitions(&[(A, &[2, 3])]));
        assert_eq!(assigned[1], partitions(&[(A, &[0, 1]), (B, &[0])]), "m1 is the first by its name");
        assert_eq!(assigned[2], partitions(&[(A, &[4])]));
    }

    #[test]
    fn range_puts_static_members_first_by_their_instance_ids() {
        let none = Partitions::new();
        let assigned = assign(
            Assignor::Range,
            &[(A, 3)],
            &[("a", None, &[A], &none), ("z", Some("i1"), &[A], &none), ("b", Some("i2"), &[A], &none)],
        );
        let first = |at: usize| assigned[at][&A].first().copied();
        assert_eq!((first(0), first(1), first(2)), (Some(2), Some(0), Some(1)));
    }

    #[test]
    fn uniform_moves_the_fewest_partitions_when_a_member_joins() {
        let (one, two) = (partitions(&[(A, &[0, 1, 2, 3])]), partitions(&[(A, &[4, 5, 6, 7])]));
        let none = Partitions::new();
        let members: &[(&str, Option<&str>, &[Uuid], &Partitions)] =
            &[("a", None, &[A], &one), ("b", None, &[A], &two), ("c", None, &[A], &none)];
        let assigned = assign(Assignor::Uniform, &[(A, 8)], members);
        assert_eq!(loads(&assigned), [3, 3, 2]);
        assert!(assigned[0][&A].is_subset(&one[&A]) && assigned[1][&A].is_subset(&two[&A]));
    }

    #[test]
    fn uniform_gives_freed_partitions_to_members_with_the_fewest() {
        let two = partitions(&[(A, &[1]), (B, &[0])]);
        let (one, gone) = (partitions(&[(A, &[0])]), partitions(&[(A, &[9]), (Uuid([9; 16]), &[0])]));
        let assigned = assign(
            Assignor::Uniform,
            &[(A, 4), (B, 1)],
            &[("a", None, &[A, B], &two), ("b", None, &[A], &one), ("c", None, &[A], &gone)],
        );
        assert_eq!(assigned[0], two);
        assert_eq!(loads(&assigned), [2, 2, 1], "deleted partitions and topics do not count");
    }

    #[test]
    fn uniform_prefers_members_with_fewer_subscriptions() {
        let none = Partitions::new();
        let assigned = assign(
            Assignor::Uniform,
            &[(A, 2), (B, 4)],
            &[("a", None, &[A, B], &none), ("b", None, &[B], &none), ("c", None, &[A], &none)],
        );
        assert_eq!(loads(&assigned), [2, 2, 2]);
        assert_eq!(assigned[2], partitions(&[(A, &[0, 1])]));
    }

    #[test]
    fn assignors_assign_each_partition_once_from_any_previous_target() {
        let mut random = crate::random::Random::new(7);
        for _ in 0..300 {
            let mut upto = |n: u64| random.next_u64() % n;
            let topics: SortedMap<Uuid, i32> =
                (0..=upto(4)).map(|id| (Uuid([id as u8; 16]), upto(9) as i32)).collect();
            let before: Vec<Partitions> = (0..=upto(5))
                .map(|_| {
                    (0..upto(4)).map(|id| (Uuid([id as u8; 16]), (0..upto(9) as i32).collect())).collect()
                })
                .collect();
            let names: Vec<String> = (0..before.len()).map(|at| format!("m{at}")).collect();
            let members: Vec<_> = before
                .iter()
                .zip(&names)
                .map(|(target, member_id)| Subscriber {
                    member_id,
                    instance_id: None,
                    topics: topics.keys().filter(|_| upto(3) > 0).copied().collect(),
                    target,
                })
                .collect();
            for assignor in [Assignor::Uniform, Assignor::Range] {
                let assigned = assignor.assign(&topics, &members);
                for (topic, count) in &topics {
                    let mut seen: Vec<i32> =
                        assigned.iter().filter_map(|of| of.get(topic)).flatten().copied().collect();
                    seen.sort_unstable();
                    let somebody = members.iter().any(|member| member.topics.contains(topic));
                    assert_eq!(seen, if somebody { (0..*count).collect() } else { Vec::new() });
                }
                for (member, of) in members.iter().zip(&assigned) {
                    assert!(of.iter().all(|(topic, some)| member.topics.contains(topic) && !some.is_empty()));
                }
            }
        }
    }
}
