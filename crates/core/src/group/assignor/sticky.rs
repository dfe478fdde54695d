//! The `cooperative-sticky` assignor: balanced, and with as few moves as possible.
//!
//! | step | all members subscribe to the same topics | otherwise |
//! |---|---|---|
//! | 1 | members keep what they have in their rack, up to their quota | members keep what they have |
//! | 2 | unassigned partitions go to members in their rack, then back, then around the members below their quota | to the subscriber with the fewest partitions, topics with few subscribers first |
//! | 3 | | partitions move from members with many to members with few, while that balances them better |
//!
//! Steps 1 and 2 are linear. Step 3 ends because each move brings two members closer together; a budget bounds its time, and
//! the assignment is complete and valid whenever it ends.
//!
//! [`withhold_moving`] then takes out what another member still has (KIP-429): that member gives it up, the group
//! rebalances again, and the partition is free.
//!
//! # Pitfalls
//!
//! - A partition that two members claim belongs to the one with the later generation. With equal generations it belongs
//!   to neither, and both have to give it up, and nothing else for its sake
//!   (`partition_that_two_members_claim_is_revoked_from_both`, `claim_that_does_not_count_costs_its_members_nothing_else`).
//! - A claim of an earlier generation is not ignored: its member may still consume the partition, so that it must not go to
//!   another member before it was given up (`claim_of_an_earlier_generation_is_respected`).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use ottla_protocol::vocabulary::TopicPartition;

use super::{GroupTable, SubscribedTopic};

/// The number of comparisons after which step 3 ends with what it has reached.
const BUDGET: usize = 20_000_000;

/// Computes the balanced assignment, unsorted and including partitions that another member still has.
pub(super) fn assign(table: &GroupTable) -> Vec<Vec<TopicPartition>> {
    let topics = table.subscribed();
    let mut progress = Progress::new(table, &topics);
    let members = table.members();
    let all_equal = members.windows(2).all(|pair| pair[0].topics == pair[1].topics);
    if all_equal {
        progress.assign_equally();
    } else {
        progress.assign_unequally();
    }
    progress.into_assignment()
}

/// Removes from an assignment the partitions that another member still has.
pub(super) fn withhold_moving(table: &GroupTable, assignment: &mut [Vec<TopicPartition>]) {
    let mut claims: BTreeMap<&TopicPartition, Vec<usize>> = BTreeMap::new();
    for (index, member) in table.members().iter().enumerate() {
        for key in &member.owned {
            claims.entry(key).or_default().push(index);
        }
    }
    for (index, partitions) in assignment.iter_mut().enumerate() {
        let is_free =
            |key: &TopicPartition| claims.get(key).is_none_or(|by| by.iter().all(|one| *one == index));
        partitions.retain(is_free);
    }
}

/// A partition by the index of its topic, and its number.
type Place = (usize, usize);

struct Progress<'a> {
    table: &'a GroupTable,
    topics: &'a [SubscribedTopic<'a>],
    /// The indexes of the members in the order of their IDs, which decides ties.
    order: Vec<usize>,
    /// The place of each member in that order.
    rank: Vec<usize>,
    /// The former owner of each partition, by topic.
    former: Vec<Vec<Option<usize>>>,
    /// The owner of each partition, by topic.
    owner: Vec<Vec<Option<usize>>>,
    /// The partitions of each member.
    has: Vec<Vec<Place>>,
    uses_racks: bool,
}

impl<'a> Progress<'a> {
    fn new(table: &'a GroupTable, topics: &'a [SubscribedTopic<'a>]) -> Self {
        let mut order: Vec<usize> = (0..table.members().len()).collect();
        order.sort_by_key(|member| &table.members()[*member].id);
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, member)| rank[*member] = place);
        let nobody: Vec<Vec<_>> = topics.iter().map(|topic| vec![None; topic.table.partitions()]).collect();
        let mut progress = Self {
            table,
            topics,
            order,
            rank,
            former: nobody.clone(),
            owner: nobody,
            has: vec![Vec::new(); table.members().len()],
            uses_racks: uses_racks(table, topics),
        };
        progress.find_former_owners();
        progress
    }

    /// Finds the owner of each partition: the claimant with the latest generation, if it is only one.
    fn find_former_owners(&mut self) {
        let by_name: BTreeMap<&str, usize> =
            self.topics.iter().enumerate().map(|(index, topic)| (&**topic.name, index)).collect();
        // The latest generation in which each partition is claimed, and whether one member claims it.
        let mut latest: Vec<Vec<(Option<i32>, bool)>> =
            self.former.iter().map(|partitions| vec![(None, false); partitions.len()]).collect();
        for (index, member) in self.table.members().iter().enumerate() {
            let claimed: BTreeSet<&TopicPartition> = member.owned.iter().collect();
            for key in claimed {
                let Some(topic) = by_name.get(&*key.topic).copied() else { continue };
                let Some(partition) = usize::try_from(key.partition).ok() else { continue };
                if partition >= self.topics[topic].table.partitions() || !member.topics.contains(&key.topic) {
                    continue;
                }
                let claim = &mut latest[topic][partition];
                let is_first = self.former[topic][partition].is_none() && !claim.1;
                if is_first || member.generation > claim.0 {
                    *claim = (member.generation, false);
                    self.former[topic][partition] = Some(index);
                } else if member.generation == claim.0 {
                    claim.1 = true;
                    self.former[topic][partition] = None;
                }
            }
        }
    }

    /// Returns true if a member and a replica of a partition share a rack, or racks make no difference.
    fn matches_rack(&self, member: usize, (topic, partition): Place) -> bool {
        !self.uses_racks
            || self.table.members()[member]
                .rack
                .as_ref()
                .is_none_or(|rack| self.topics[topic].table.racks[partition].contains(rack))
    }

    fn give(&mut self, member: usize, place: Place) {
        self.owner[place.0][place.1] = Some(member);
        self.has[member].push(place);
    }

    /// Returns what each member had.
    fn formerly_owned(&self) -> Vec<Vec<Place>> {
        let mut owned = vec![Vec::new(); self.has.len()];
        for (topic, former) in self.former.iter().enumerate() {
            for (partition, member) in former.iter().enumerate() {
                if let Some(member) = *member {
                    owned[member].push((topic, partition));
                }
            }
        }
        owned
    }

    /// Returns the partitions without an owner, by topic and number.
    fn unassigned(&self) -> Vec<Place> {
        let of_topic = |(topic, owners): (usize, &Vec<Option<usize>>)| {
            let free = owners.iter().enumerate().filter(|(_, owner)| owner.is_none());
            free.map(|(partition, _)| (topic, partition)).collect::<Vec<_>>()
        };
        self.owner.iter().enumerate().flat_map(of_topic).collect()
    }

    // ---- equal subscriptions

    fn assign_equally(&mut self) {
        let partitions: usize = self.owner.iter().map(Vec::len).sum();
        let count = self.has.len();
        if count == 0 || partitions == 0 {
            return;
        }
        let mut quotas = Quotas {
            least: partitions / count,
            extras: partitions % count,
            under: Vec::new(),
            exact: Vec::new(),
        };
        let mut owned = self.formerly_owned();
        for member in self.order.clone() {
            let mut own = std::mem::take(&mut owned[member]);
            own.retain(|place| self.matches_rack(member, *place));
            own.sort_unstable_by_key(|(topic, partition)| (*partition, *topic));
            if own.len() < quotas.least {
                quotas.under.push(member);
            } else if own.len() > quotas.least && quotas.extras > 0 {
                own.truncate(quotas.least + 1);
                quotas.extras -= 1;
            } else {
                own.truncate(quotas.least);
                quotas.exact.push(member);
            }
            own.into_iter().for_each(|place| self.give(member, place));
        }
        let mut unassigned = self.unassigned();
        if self.uses_racks {
            unassigned = self.give_by_racks(&mut quotas, unassigned);
            unassigned = self.give_back(&mut quotas, unassigned);
        }
        for place in unassigned {
            let member = quotas.take_next(&self.has, |_| true);
            debug_assert!(member.is_some(), "the quotas add up to the number of partitions");
            if let Some(member) = member {
                self.give(member, place);
            }
        }
    }

    /// Gives partitions to members in their racks, those with few such members first. Returns the rest.
    fn give_by_racks(&mut self, quotas: &mut Quotas, mut unassigned: Vec<Place>) -> Vec<Place> {
        let members_near =
            |place: &Place| self.order.iter().filter(|member| self.matches_rack(**member, *place)).count();
        unassigned.sort_by_cached_key(members_near);
        let mut rest = Vec::new();
        for place in unassigned {
            match quotas.take_next(&self.has, |member| self.matches_rack(member, place)) {
                Some(member) => self.give(member, place),
                None => rest.push(place),
            }
        }
        rest.sort_unstable();
        rest
    }

    /// Gives partitions back to the members that had them in another rack, so that they don't go around among such members.
    /// Returns the rest.
    fn give_back(&mut self, quotas: &mut Quotas, unassigned: Vec<Place>) -> Vec<Place> {
        let mut rest = Vec::new();
        for place in unassigned {
            let former = self.former[place.0][place.1];
            match former.and_then(|former| quotas.take_next(&self.has, |member| member == former)) {
                Some(member) => self.give(member, place),
                None => rest.push(place),
            }
        }
        rest
    }

    // ---- unequal subscriptions

    fn assign_unequally(&mut self) {
        for (member, owned) in self.formerly_owned().into_iter().enumerate() {
            owned.into_iter().for_each(|place| self.give(member, place));
        }
        let mut unassigned = self.unassigned();
        unassigned.sort_by_key(|(topic, partition)| (self.topics[*topic].members.len(), *topic, *partition));
        for place in unassigned {
            let near = self.least_loaded(place.0, |member| self.matches_rack(member, place));
            if let Some(member) = near.or_else(|| self.least_loaded(place.0, |_| true)) {
                self.give(member, place);
            }
        }
        self.balance();
    }

    /// Returns the subscriber of a topic with the fewest partitions; the first one by ID of several.
    fn least_loaded(&self, topic: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let members = self.topics[topic].members.iter().copied().filter(|member| fits(*member));
        members.min_by_key(|member| (self.has[*member].len(), self.rank[*member]))
    }

    /// Moves partitions from members with many to members with few, until no move balances two members better.
    fn balance(&mut self) {
        let mut left = BUDGET;
        loop {
            let mut by_load = self.order.clone();
            by_load.sort_by_key(|member| Reverse(self.has[*member].len()));
            let loads: Vec<usize> = by_load.iter().map(|member| self.has[*member].len()).collect();
            let mut is_balanced = true;
            for (index, member) in by_load.into_iter().enumerate() {
                let fewest = self.has.iter().map(Vec::len).min().unwrap_or(0);
                if loads[index] <= fewest + 1 {
                    break;
                }
                // A member gives partitions until it has fewer than the next member, which gives then: no member gives
                // more than it must.
                let enough = loads.get(index + 1).copied().unwrap_or(0);
                is_balanced &= !self.relieve(member, enough, &mut left);
                if left == 0 {
                    return;
                }
            }
            if is_balanced {
                return;
            }
        }
    }

    /// Moves partitions away from a member while it has at least `enough`. Returns true if it gave any.
    fn relieve(&mut self, member: usize, enough: usize, left: &mut usize) -> bool {
        let before = self.has[member].len();
        let topics: BTreeSet<usize> = self.has[member].iter().map(|(topic, _)| *topic).collect();
        for topic in topics {
            while self.has[member].len() >= enough {
                *left = left.saturating_sub(self.topics[topic].members.len());
                let Some(taker) = self.least_loaded(topic, |_| true) else { break };
                if self.has[taker].len() + 1 >= self.has[member].len() || !self.move_one(topic, member, taker)
                {
                    break;
                }
            }
        }
        self.has[member].len() < before
    }

    /// Moves a partition of a topic to another member: one that the taker had before, otherwise one that the giver did not
    /// have. Returns false if the giver has none.
    fn move_one(&mut self, topic: usize, giver: usize, taker: usize) -> bool {
        let of_topic = self.has[giver].iter().enumerate().filter(|(_, place)| place.0 == topic);
        let cost = |(_, (_, partition)): &(usize, &Place)| {
            let former = self.former[topic][*partition];
            let cost = if former == Some(taker) { 0 } else { 1 + u8::from(former == Some(giver)) };
            (cost, Reverse(*partition))
        };
        let Some(index) = of_topic.min_by_key(cost).map(|(index, _)| index) else { return false };
        let place = self.has[giver].remove(index);
        self.give(taker, place);
        true
    }

    fn into_assignment(self) -> Vec<Vec<TopicPartition>> {
        let partition = |(topic, number): Place| self.topics[topic].partition(number);
        self.has.into_iter().map(|places| places.into_iter().map(partition).collect()).collect()
    }
}

/// The members that may get more partitions, where all members get the same number or one more.
struct Quotas {
    /// The number of partitions that every member gets.
    least: usize,
    /// The number of members that still get one more.
    extras: usize,
    /// The members below their quota, the next one first.
    under: Vec<usize>,
    /// The members at their quota, which may get one more.
    exact: Vec<usize>,
}

impl Quotas {
    /// Returns the next member that fits and may have another partition.
    fn take_next(&mut self, has: &[Vec<Place>], fits: impl Fn(usize) -> bool) -> Option<usize> {
        if let Some(index) = self.under.iter().position(|member| fits(*member)) {
            // The members that were skipped stay first; the member that takes the partition moves to the end of the
            // circle.
            let member = self.under.remove(index);
            let list = if has[member].len() + 1 < self.least { &mut self.under } else { &mut self.exact };
            list.push(member);
            return Some(member);
        }
        if self.extras == 0 {
            return None;
        }
        let index = self.exact.iter().position(|member| fits(*member))?;
        self.extras -= 1;
        Some(self.exact.remove(index))
    }
}

/// Returns true if racks make a difference: some member's rack has replicas, but not of all partitions.
fn uses_racks(table: &GroupTable, topics: &[SubscribedTopic<'_>]) -> bool {
    let partitions = || topics.iter().flat_map(|topic| &topic.table.racks);
    let racks: BTreeSet<_> = partitions().flatten().collect();
    let is_near =
        table.members().iter().filter_map(|member| member.rack.as_ref()).any(|rack| racks.contains(rack));
    is_near && partitions().any(|of_partition| of_partition.len() < racks.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{
        super::{
            Assignor, GroupMember, TopicTable,
            tests::{member, on_racks, plain, shown, with_rack},
        },
        *,
    };
    use crate::rng::Rng;

    const UNIFORM: [(&str, usize); 3] = [("t1", 6), ("t2", 7), ("t3", 2)];

    /// The balanced assignment, before moving partitions are withheld.
    fn balanced(table: &GroupTable) -> Vec<Vec<TopicPartition>> {
        let mut assignment = assign(table);
        assignment.iter_mut().for_each(|partitions| partitions.sort_unstable());
        assignment
    }

    /// Returns the same members, each owning the partitions that it was assigned.
    fn with_owned(
        table: &GroupTable,
        assignment: &[Vec<TopicPartition>],
        generation: i32,
    ) -> Vec<GroupMember> {
        let members = table.members().iter().zip(assignment);
        members
            .map(|(member, owned)| GroupMember {
                owned: owned.clone(),
                generation: Some(generation),
                ..member.clone()
            })
            .collect()
    }

    fn moves(
        before: &GroupTable,
        old: &[Vec<TopicPartition>],
        after: &GroupTable,
        new: &[Vec<TopicPartition>],
    ) -> usize {
        let owners =
            |table: &GroupTable, assignment: &[Vec<TopicPartition>]| -> BTreeMap<TopicPartition, String> {
                let members = table.members().iter().zip(assignment);
                members
                    .flat_map(|(member, keys)| keys.iter().map(|key| (key.clone(), member.id.clone())))
                    .collect()
            };
        let (old, new) = (owners(before, old), owners(after, new));
        old.iter().filter(|(key, owner)| new.get(*key) != Some(owner)).count()
    }

    fn owned(mut member: GroupMember, generation: i32, partitions: &[(&str, i32)]) -> GroupMember {
        member.owned = partitions.iter().map(|key| TopicPartition::from(*key)).collect();
        member.generation = Some(generation);
        member
    }

    #[test]
    fn equal_subscriptions_give_the_golden_result_with_and_without_racks() {
        let expected = ["c1 t1:0,3 t2:0,3,6", "c2 t1:1,4 t2:1,4 t3:0", "c3 t1:2,5 t2:2,5 t3:1"];
        let topics = ["t1", "t2", "t3"];
        let members: Vec<_> =
            (0..3).map(|rack| with_rack(member(&format!("c{}", rack + 1), &topics), rack)).collect();
        let tables =
            [plain(&UNIFORM), on_racks(&UNIFORM, 1, 3), on_racks(&UNIFORM, 2, 3), on_racks(&UNIFORM, 3, 3)];
        for (factor, topics) in tables.into_iter().enumerate() {
            let table = GroupTable::new(members.clone(), topics.clone());
            let assignment = balanced(&table);
            assert_eq!(shown(&table, &assignment), expected, "{factor} replicas");
            let again = GroupTable::new(with_owned(&table, &assignment, 1), topics);
            assert_eq!(shown(&again, &balanced(&again)), expected, "{factor} replicas, again");
        }
    }

    #[test]
    fn unequal_subscriptions_give_the_golden_result() {
        let (all, odd) = (["1", "2", "3", "4", "5"], ["1", "3", "5"]);
        let members = vec![member("c1", &all), member("c2", &odd), member("c3", &odd), member("c4", &all)];
        let table = GroupTable::new(members, plain(&[("1", 2), ("2", 1), ("3", 2), ("4", 1), ("5", 2)]));
        let expected = ["c1 2:0 3:0", "c2 1:0 3:1", "c3 1:1 5:0", "c4 4:0 5:1"];
        assert_eq!(shown(&table, &balanced(&table)), expected);
    }

    #[test]
    fn partition_that_two_members_claim_is_revoked_from_both() {
        let claim = |id: &str, own| owned(member(id, &["t"]), 4, &[("t", 0), own]);
        let table = GroupTable::new(vec![claim("a", ("t", 1)), claim("b", ("t", 2))], plain(&[("t", 3)]));
        assert_eq!(shown(&table, &Assignor::CooperativeSticky.assign(&table)), ["a t:1", "b t:2"]);
        let later = owned(member("b", &["t"]), 5, &[("t", 0), ("t", 2)]);
        let table = GroupTable::new(vec![claim("a", ("t", 1)), later], plain(&[("t", 3)]));
        assert_eq!(shown(&table, &balanced(&table)), ["a t:1", "b t:0,2"], "the later generation keeps it");
    }

    /// A member that is over its quota with a claim that does not count would lose another partition without a reason.
    #[test]
    fn claim_that_does_not_count_costs_its_members_nothing_else() {
        let claim = |id: &str, partitions| owned(member(id, &["t"]), 4, partitions);
        let (alone, both) = ([("t", 0)], [("t", 0), ("t", 1)]);
        for members in
            [vec![claim("a", &alone[..]), claim("b", &both)], vec![claim("a", &both), claim("b", &alone)]]
        {
            let table = GroupTable::new(members, plain(&[("t", 2)]));
            let kept: Vec<_> = Assignor::CooperativeSticky.assign(&table).concat();
            assert_eq!(kept, [TopicPartition::from(("t", 1))]);
        }
        // The third claim of the same generation does not count either.
        let members = vec![claim("a", &alone), claim("b", &alone), claim("c", &both)];
        let table = GroupTable::new(members, plain(&[("t", 3)]));
        assert_eq!(shown(&table, &Assignor::CooperativeSticky.assign(&table)), ["a", "b t:2", "c t:1"]);
    }

    #[test]
    fn claim_of_an_earlier_generation_is_respected() {
        let behind = owned(member("a", &["t"]), 1, &[("t", 0)]);
        let current = owned(member("b", &["t"]), 7, &[("t", 1), ("t", 2)]);
        let table = GroupTable::new(vec![behind, current, member("c", &["t"])], plain(&[("t", 3)]));
        let assignment = shown(&table, &Assignor::CooperativeSticky.assign(&table));
        assert_eq!(assignment, ["a t:0", "b t:1", "c"], "t 2 moves once b has given it up");
    }

    #[test]
    fn moving_partitions_are_withheld_until_they_are_free() {
        let topics = plain(&[("t", 4)]);
        let old = owned(member("a", &["t"]), 1, &[("t", 0), ("t", 1), ("t", 2), ("t", 3)]);
        let table = GroupTable::new(vec![old, member("b", &["t"])], topics.clone());
        let first = Assignor::CooperativeSticky.assign(&table);
        assert_eq!(shown(&table, &first), ["a t:0,1", "b"]);
        let table = GroupTable::new(with_owned(&table, &first, 2), topics);
        assert_eq!(shown(&table, &Assignor::CooperativeSticky.assign(&table)), ["a t:0,1", "b t:2,3"]);
    }

    /// A random group: members with random topics, claims that may be stale, invalid or repeated.
    fn random_table(rng: &mut Rng) -> (Vec<GroupMember>, BTreeMap<Arc<str>, TopicTable>) {
        let names: Vec<String> = (0..=rng.below(6)).map(|number| format!("t{number}")).collect();
        let topics: Vec<(&str, usize)> = names.iter().map(|name| (&**name, rng.below(9) as usize)).collect();
        let table =
            if rng.chance(1, 3) { on_racks(&topics, 1 + rng.below(3) as usize, 3) } else { plain(&topics) };
        let equal = rng.chance(1, 2);
        let mut members = Vec::new();
        for number in 0..=rng.below(8) {
            let subscribed: Vec<&str> =
                names.iter().map(|name| &**name).filter(|_| equal || rng.chance(2, 3)).collect();
            let mut member = member(&format!("m{number}"), &subscribed);
            for _ in 0..rng.below(8) {
                let topic = &names[rng.below(names.len() as u64) as usize];
                member.owned.push(TopicPartition::new(&**topic, rng.below(10) as i32));
            }
            member.generation = rng.chance(3, 4).then(|| rng.below(3) as i32);
            if rng.chance(1, 2) {
                member = with_rack(member, rng.below(4) as usize);
            }
            members.push(member);
        }
        (members, table)
    }

    #[test]
    fn random_groups_are_assigned_completely_and_evenly_and_always_the_same() {
        let mut rng = Rng::from_seed(7);
        for round in 0..2000 {
            let (mut members, topics) = random_table(&mut rng);
            let table = GroupTable::new(members.clone(), topics.clone());
            let assignment = balanced(&table);
            let mut seen = BTreeSet::new();
            for (member, partitions) in table.members().iter().zip(&assignment) {
                for key in partitions {
                    assert!(member.topics.contains(&key.topic), "round {round}: {key} is not subscribed to");
                    assert!(seen.insert(key.clone()), "round {round}: {key} is assigned twice");
                }
            }
            let subscribed = table.subscribed();
            let expected: usize = subscribed.iter().map(|topic| topic.table.partitions()).sum();
            assert_eq!(seen.len(), expected, "round {round}: every partition is assigned");
            for topic in &subscribed {
                for (giver, taker) in
                    topic.members.iter().flat_map(|a| topic.members.iter().map(move |b| (*a, *b)))
                {
                    let has_topic = assignment[giver].iter().any(|key| key.topic == *topic.name);
                    let (many, few) = (assignment[giver].len(), assignment[taker].len());
                    assert!(!has_topic || many <= few + 1, "round {round}: {many} and {few} partitions");
                }
            }
            rng.shuffle(&mut members);
            let shuffled = GroupTable::new(members, topics.clone());
            assert_eq!(shown(&shuffled, &balanced(&shuffled)), shown(&table, &assignment), "round {round}");
            if !topics.values().any(|topic| topic.racks.iter().any(|racks| !racks.is_empty())) {
                let again = GroupTable::new(with_owned(&table, &assignment, 9), topics);
                assert_eq!(balanced(&again), assignment, "round {round}: nothing moves without a reason");
            }
        }
    }

    #[test]
    fn withheld_partitions_are_never_held_twice_and_arrive_in_the_end() {
        let mut rng = Rng::from_seed(8);
        for round in 0..500 {
            let (mut members, topics) = random_table(&mut rng);
            // Each partition is held by one member at most.
            let mut held = BTreeSet::new();
            for member in &mut members {
                member.owned.retain(|key| held.insert(key.clone()));
            }
            for generation in 10..15 {
                let table = GroupTable::new(members, topics.clone());
                let assignment = Assignor::CooperativeSticky.assign(&table);
                for (index, partitions) in assignment.iter().enumerate() {
                    for (other, holder) in table.members().iter().enumerate() {
                        let twice =
                            partitions.iter().find(|key| other != index && holder.owned.contains(key));
                        assert_eq!(twice, None, "round {round}: {} still has it", holder.id);
                    }
                }
                members = with_owned(&table, &assignment, generation);
            }
            let assigned: usize = members.iter().map(|member| member.owned.len()).sum();
            let table = GroupTable::new(members, topics.clone());
            let expected: usize = table.subscribed().iter().map(|topic| topic.table.partitions()).sum();
            assert_eq!(assigned, expected, "round {round}: everything is assigned after a few rebalances");
        }
    }

    #[test]
    fn one_joins_and_one_leaves_with_minimal_moves() {
        let topics = plain(&[("a", 40), ("b", 35), ("c", 25)]);
        let names = ["a", "b", "c"];
        let members: Vec<_> = (0..10).map(|number| member(&format!("m{number}"), &names)).collect();
        let ten = GroupTable::new(members, topics.clone());
        let old = balanced(&ten);
        let mut members = with_owned(&ten, &old, 1);
        members.push(member("n", &names));
        let eleven = GroupTable::new(members, topics.clone());
        let new = balanced(&eleven);
        assert_eq!(moves(&ten, &old, &eleven, &new), 9, "100 / 11 partitions move to the new member");
        let mut members = with_owned(&eleven, &new, 2);
        let left = members.remove(3);
        let count = left.owned.len();
        let rest = GroupTable::new(members, topics);
        assert_eq!(moves(&eleven, &new, &rest, &balanced(&rest)), count, "only what the leaver had moves");
    }

    #[test]
    fn large_group_moves_only_the_share_of_a_new_member() {
        for equal in [true, false] {
            let names: Vec<String> = (0..100).map(|number| format!("topic-{number:03}")).collect();
            let topics: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 100)).collect();
            let topics = plain(&topics);
            let subscribed = |number: usize| -> Vec<&str> {
                let skipped = if equal { usize::MAX } else { number % 100 };
                names
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| *index != skipped)
                    .map(|(_, name)| &**name)
                    .collect()
            };
            let members = (0..999).map(|number| member(&format!("m{number:04}"), &subscribed(number)));
            let table = GroupTable::new(members.collect(), topics.clone());
            let old = balanced(&table);
            let mut members = with_owned(&table, &old, 1);
            members.push(member("n", &subscribed(0)));
            let joined = GroupTable::new(members, topics);
            let new = balanced(&joined);
            assert_eq!(moves(&table, &old, &joined, &new), 10, "only the new member gets something");
        }
    }
}
