//! Share groups (KIP-932): members join and leave by heartbeats, and the coordinator may assign the same partition to
//! several members. `share_partitions` has the state of the records.
//!
//! The group epoch rises whenever the members, their subscriptions or the subscribed topics change. The next heartbeat
//! computes an assignment for that epoch. Each member gets it with its next heartbeat: there is nothing to revoke
//! first.

use ottla_protocol::{error_code::ErrorCode, time::Instant};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    cluster::{Cluster, Timer},
    options::ShareGroupOptions,
    provisioning::Refusal,
    share_partitions::SharePartition,
    topics::{TopicIndex, Topics},
};

/// All share groups of the cluster. A hash of the name selects the coordinator.
#[derive(Debug, Default)]
pub(crate) struct ShareGroups {
    pub groups: SortedMap<String, ShareGroup>,
}

impl ShareGroups {
    /// Removes the state of a deleted topic.
    pub fn forget_topic(&mut self, topic: TopicIndex) {
        for group in self.groups.values_mut() {
            group.partitions.retain(|(of, _), _| *of != topic);
        }
    }
}

/// One share group.
#[derive(Debug, Default)]
pub(crate) struct ShareGroup {
    pub epoch: i32,
    /// The group epoch of the last assignment.
    pub assignment_epoch: i32,
    pub members: SortedMap<String, ShareMember>,
    pub partitions: SortedMap<(TopicIndex, i32), SharePartition>,
    /// An assignment set by a test.
    manual: Option<SortedMap<String, Assignment>>,
    /// The topics of the last assignment and their number of partitions.
    assigned_topics: SortedMap<TopicIndex, i32>,
    timer: Option<Instant>,
}

/// One member.
#[derive(Debug)]
pub(crate) struct ShareMember {
    pub epoch: i32,
    previous_epoch: i32,
    pub client_id: String,
    pub rack_id: Option<String>,
    pub topics: SortedSet<String>,
    /// The assignment that the member has received.
    pub assignment: Assignment,
    /// The member's target assignment.
    target: Assignment,
    /// The time at which the member's session expires without a request of the member.
    expires: Instant,
}

/// Partitions by topic.
pub(crate) type Assignment = SortedMap<TopicIndex, SortedSet<i32>>;

/// A member's heartbeat.
#[derive(Debug)]
pub(crate) struct ShareHeartbeat<'a> {
    pub member_id: &'a str,
    pub member_epoch: i32,
    pub client_id: &'a str,
    pub rack_id: Option<String>,
    pub topics: Option<Vec<String>>,
}

/// The response to a member's heartbeat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeardOf {
    pub member_epoch: i32,
    /// The assignment, if it has changed or the member requested it.
    pub assignment: Option<Assignment>,
}

/// The epochs with which a member joins and leaves.
pub(crate) const JOINS: i32 = 0;
pub(crate) const LEAVES: i32 = -1;

impl ShareGroup {
    /// Returns Kafka's name of the state.
    pub fn state(&self) -> &'static str {
        if self.members.is_empty() { "Empty" } else { "Stable" }
    }

    /// Handles a heartbeat of a member that joins or stays.
    pub fn heartbeat(
        &mut self,
        now: Instant,
        settings: &ShareGroupOptions,
        topics: &Topics,
        heartbeat: ShareHeartbeat<'_>,
    ) -> Result<HeardOf, Refusal> {
        let ShareHeartbeat { member_id, member_epoch, .. } = heartbeat;
        let is_new = !self.members.contains_key(member_id);
        if is_new && member_epoch == JOINS && self.members.len() >= settings.max_size {
            let message =
                format!("The share group has reached its maximum capacity of {} members.", settings.max_size);
            return Err((ErrorCode::GROUP_MAX_SIZE_REACHED, message));
        }
        self.check_epoch(member_id, member_epoch)?;
        let member = self.members.entry(member_id.to_owned()).or_insert_with(|| ShareMember {
            epoch: JOINS,
            previous_epoch: LEAVES,
            client_id: String::new(),
            rack_id: None,
            topics: SortedSet::new(),
            assignment: Assignment::new(),
            target: Assignment::new(),
            expires: now,
        });
        heartbeat.client_id.clone_into(&mut member.client_id);
        member.expires = now + settings.session_timeout;
        if heartbeat.rack_id.is_some() {
            member.rack_id = heartbeat.rack_id;
        }
        let is_whole = heartbeat.topics.is_some();
        let mut changed = is_new;
        if let Some(topics) = heartbeat.topics {
            let subscribed = topics.into_iter().collect();
            changed |= member.topics != subscribed;
            member.topics = subscribed;
        }
        let of_topics = self.subscribed_topics(topics);
        if changed || of_topics != self.assigned_topics {
            self.epoch += 1;
        }
        if self.epoch > self.assignment_epoch {
            self.assign(of_topics, topics);
        }
        let Some(member) = self.members.get_mut(member_id) else {
            return Err((ErrorCode::UNKNOWN_MEMBER_ID, String::new()));
        };
        if member.epoch != self.assignment_epoch {
            member.previous_epoch = std::mem::replace(&mut member.epoch, self.assignment_epoch);
        }
        let has_news = member.assignment != member.target;
        member.assignment.clone_from(&member.target);
        let has_assignment = is_whole || has_news || member_epoch == JOINS;
        Ok(HeardOf {
            member_epoch: member.epoch,
            assignment: has_assignment.then(|| member.assignment.clone()),
        })
    }

    /// A member leaves.
    pub fn leave(&mut self, member_id: &str) -> Result<(), Refusal> {
        if self.members.remove(member_id).is_none() {
            return Err(unknown(member_id));
        }
        self.epoch += 1;
        Ok(())
    }

    /// Sets a manual assignment, or returns control to the assignor.
    pub fn assign_by_hand(&mut self, manual: Option<SortedMap<String, Assignment>>, topics: &Topics) {
        self.manual = manual;
        self.epoch += 1;
        let of_topics = self.subscribed_topics(topics);
        self.assign(of_topics, topics);
    }

    /// Removes the members whose sessions have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.timer = self.timer.filter(|timer| *timer > now);
        let before = self.members.len();
        self.members.retain(|_, member| member.expires > now);
        if self.members.len() < before {
            self.epoch += 1;
        }
    }

    /// Returns when the members must be checked next, if no timer is set for it.
    pub fn next_timer(&mut self) -> Option<Instant> {
        let next = self.members.values().map(|member| member.expires).min()?;
        if self.timer.is_some_and(|timer| timer <= next) {
            return None;
        }
        self.timer = Some(next);
        Some(next)
    }

    /// Checks a member's epoch. Epoch 0 joins again; otherwise the epoch must be the current or the previous one of the
    /// member.
    fn check_epoch(&self, member_id: &str, epoch: i32) -> Result<(), Refusal> {
        if epoch == JOINS {
            return Ok(());
        }
        let Some(member) = self.members.get(member_id) else { return Err(unknown(member_id)) };
        if epoch == member.epoch || epoch == member.previous_epoch {
            return Ok(());
        }
        let message = format!(
            "The member has epoch {epoch}, but the expected epoch is {}. It must release its partitions and join again.",
            member.epoch
        );
        Err((ErrorCode::FENCED_MEMBER_EPOCH, message))
    }

    /// Returns the subscribed topics that exist.
    fn subscribed_topics(&self, topics: &Topics) -> SortedMap<TopicIndex, i32> {
        let names: SortedSet<&String> = self.members.values().flat_map(|member| &member.topics).collect();
        let found = names.into_iter().filter_map(|name| {
            let index = topics.by_name(name)?;
            let partitions = topics.get(index)?.partitions.len();
            Some((index, i32::try_from(partitions).unwrap_or(i32::MAX)))
        });
        found.collect()
    }

    /// Computes the assignment of the group epoch.
    fn assign(&mut self, of_topics: SortedMap<TopicIndex, i32>, topics: &Topics) {
        if let Some(manual) = &self.manual {
            for (id, member) in &mut self.members {
                member.target = manual.get(id).cloned().unwrap_or_default();
            }
        } else {
            let subscribers = self.members.iter().map(|(id, member)| {
                let subscribed = member.topics.iter().filter_map(|name| topics.by_name(name));
                (id.clone(), Subscriber { topics: subscribed.collect(), had: member.target.clone() })
            });
            let mut assigned = assign_simply(&of_topics, &subscribers.collect());
            for (id, member) in &mut self.members {
                member.target = assigned.remove(id).unwrap_or_default();
            }
        }
        self.assigned_topics = of_topics;
        self.assignment_epoch = self.epoch;
    }
}

/// The assignor's view of a member.
#[derive(Debug, Default)]
struct Subscriber {
    topics: SortedSet<TopicIndex>,
    had: Assignment,
}

/// Kafka's assignor "simple": every partition has a member, every member has a partition, and the numbers of members
/// per partition are balanced. Members keep their partitions if the balance allows it.
fn assign_simply(
    topics: &SortedMap<TopicIndex, i32>,
    subscribers: &SortedMap<String, Subscriber>,
) -> SortedMap<String, Assignment> {
    let mut assigned: SortedMap<String, Assignment> =
        subscribers.keys().map(|id| (id.clone(), Assignment::new())).collect();
    let partitions: usize = topics.values().map(|count| usize::try_from(*count).unwrap_or(0)).sum();
    let has_any = |subscriber: &Subscriber| subscriber.topics.iter().any(|topic| topics.contains_key(topic));
    let members = subscribers.values().filter(|subscriber| has_any(subscriber)).count();
    if partitions == 0 || members == 0 {
        return assigned;
    }
    let sharing = members.div_ceil(partitions);
    let quota = (partitions * sharing).div_ceil(members);
    let mut load: SortedMap<&str, usize> = subscribers.keys().map(|id| (id.as_str(), 0)).collect();
    let mut holders: SortedMap<(TopicIndex, i32), usize> = SortedMap::new();
    let mut give = |id: &str, topic: TopicIndex, partition: i32, load: &mut SortedMap<&str, usize>| {
        let is_new = assigned.entry(id.to_owned()).or_default().entry(topic).or_default().insert(partition);
        if is_new && let Some(load) = load.get_mut(id) {
            *load += 1;
        }
        is_new
    };
    for (id, subscriber) in subscribers {
        for (topic, had) in &subscriber.had {
            for partition in had {
                let exists = topics.get(topic).is_some_and(|count| partition < count);
                let held = holders.entry((*topic, *partition)).or_default();
                let is_fair = *held < sharing && load[id.as_str()] < quota;
                if exists
                    && is_fair
                    && subscriber.topics.contains(topic)
                    && give(id, *topic, *partition, &mut load)
                {
                    *held += 1;
                }
            }
        }
    }
    for (topic, count) in topics {
        let of_topic: Vec<&String> = subscribers
            .iter()
            .filter(|(_, subscriber)| subscriber.topics.contains(topic))
            .map(|(id, _)| id)
            .collect();
        for partition in 0..*count {
            let held = holders.entry((*topic, partition)).or_default();
            let mut left: Vec<&String> = of_topic.clone();
            while *held < sharing && !left.is_empty() {
                let at = (0..left.len()).min_by_key(|at| load[left[*at].as_str()]).unwrap_or(0);
                let id = left.remove(at);
                if give(id, *topic, partition, &mut load) {
                    *held += 1;
                }
            }
        }
    }
    for (id, subscriber) in subscribers {
        if load[id.as_str()] > 0 {
            continue;
        }
        let of_topics = subscriber.topics.iter().filter_map(|topic| Some((*topic, *topics.get(topic)?)));
        let all = of_topics.flat_map(|(topic, count)| (0..count).map(move |partition| (topic, partition)));
        if let Some((topic, partition)) = all.min_by_key(|key| holders.get(key).copied().unwrap_or(0)) {
            give(id, topic, partition, &mut load);
            *holders.entry((topic, partition)).or_default() += 1;
        }
    }
    assigned
}

fn unknown(member_id: &str) -> Refusal {
    (ErrorCode::UNKNOWN_MEMBER_ID, format!("The share group has no member {member_id}."))
}

impl Cluster {
    /// Returns true if there is a group of another type with this name.
    pub(crate) fn is_other_group(&self, name: &str) -> bool {
        self.groups.get(name).is_some()
    }

    /// Returns true if there is a share group with this name.
    pub(crate) fn is_share_group(&self, name: &str) -> bool {
        self.share_groups.groups.contains_key(name)
    }

    /// See [`Control::assign_share_group`](crate::Control::assign_share_group).
    pub(crate) fn assign_share_group(
        &mut self,
        group: &str,
        assignments: Option<&std::collections::BTreeMap<String, Vec<(String, i32)>>>,
    ) -> bool {
        let Some(group) = self.share_groups.groups.get_mut(group) else { return false };
        let manual = assignments.map(|assignments| {
            let mut manual: SortedMap<String, Assignment> = SortedMap::new();
            for (member, partitions) in assignments {
                let assignment = manual.entry(member.clone()).or_default();
                for (topic, partition) in partitions {
                    let index = self.topics.by_name(topic);
                    if let Some(index) =
                        index.filter(|index| self.topics.partition(*index, *partition).is_some())
                    {
                        assignment.entry(index).or_default().insert(*partition);
                    }
                }
            }
            manual
        });
        group.assign_by_hand(manual, &self.topics);
        true
    }

    /// Handles a share group's timer.
    pub(crate) fn share_group_timeout(&mut self, name: &str) {
        if let Some(group) = self.share_groups.groups.get_mut(name) {
            group.handle_timeout(self.now);
        }
        self.settle_share_group(name);
    }

    /// Sets a share group's timer.
    pub(crate) fn settle_share_group(&mut self, name: &str) {
        if let Some(at) = self.share_groups.groups.get_mut(name).and_then(ShareGroup::next_timer) {
            self.timers.set(at, Timer::ShareGroup(name.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn loads(assigned: &SortedMap<String, Assignment>) -> Vec<usize> {
        assigned.values().map(|assignment| assignment.values().map(SortedSet::len).sum()).collect()
    }

    fn subscribers(count: usize, topics: &[usize]) -> SortedMap<String, Subscriber> {
        let topics: SortedSet<TopicIndex> = topics.iter().map(|index| TopicIndex(*index)).collect();
        let subscriber = || Subscriber { topics: topics.clone(), had: Assignment::new() };
        (0..count).map(|i| (format!("m{i:03}"), subscriber())).collect()
    }

    #[test]
    fn members_of_the_same_topics_have_similar_partition_counts() {
        for (members, partitions, expected) in [
            (1, 4, vec![4]),
            (2, 4, vec![2, 2]),
            (3, 4, vec![2, 1, 1]),
            (4, 2, vec![1, 1, 1, 1]),
            (3, 2, vec![2, 1, 1]),
            (3, 1, vec![1, 1, 1]),
        ] {
            let topics = SortedMap::from([(TopicIndex(0), partitions)]);
            let mut found = loads(&assign_simply(&topics, &subscribers(members, &[0])));
            found.sort_by(|a, b| b.cmp(a));
            assert_eq!(found, expected, "{members} members, {partitions} partitions");
        }
        assert_eq!(loads(&assign_simply(&SortedMap::new(), &subscribers(2, &[0]))), [0, 0]);
        assert!(assign_simply(&SortedMap::from([(TopicIndex(0), 3)]), &SortedMap::new()).is_empty());
    }

    #[test]
    fn every_partition_has_a_member_and_every_member_a_partition() {
        let mut random = Random::new(1);
        for _ in 0..500 {
            let mut below = |n: u64| usize::try_from(random.next_u64() % n).unwrap();
            let topics: SortedMap<TopicIndex, i32> = (0..below(4) + 1)
                .map(|index| (TopicIndex(index), i32::try_from(below(6) + 1).unwrap()))
                .collect();
            let mut members = subscribers(below(12) + 1, &[]);
            for subscriber in members.values_mut() {
                subscriber.topics = (0..5).filter(|_| below(2) == 0).map(TopicIndex).collect();
                for _ in 0..below(6) {
                    let partition = i32::try_from(below(8)).unwrap();
                    subscriber.had.entry(TopicIndex(below(5))).or_default().insert(partition);
                }
            }
            let assigned = assign_simply(&topics, &members);
            for (id, subscriber) in &members {
                let mut of_topics = assigned[id].iter();
                assert!(of_topics.all(|(topic, partitions)| {
                    subscriber.topics.contains(topic) && partitions.iter().all(|p| *p < topics[topic])
                }));
                let may_have = subscriber.topics.iter().any(|topic| topics.contains_key(topic));
                assert_eq!(assigned[id].values().any(|partitions| !partitions.is_empty()), may_have);
            }
            for (topic, count) in &topics {
                let is_requested = members.values().any(|subscriber| subscriber.topics.contains(topic));
                for partition in 0..*count {
                    let has = |a: &Assignment| a.get(topic).is_some_and(|p| p.contains(&partition));
                    assert_eq!(assigned.values().any(has), is_requested, "{topic:?} {partition}");
                }
            }
        }
    }

    #[test]
    fn members_keep_their_fair_share_of_partitions() {
        let topics = SortedMap::from([(TopicIndex(0), 6)]);
        let mut members = subscribers(2, &[0]);
        let before = assign_simply(&topics, &members);
        members.append(&mut subscribers(3, &[0]).split_off("m002"));
        for (id, assignment) in &before {
            members.get_mut(id).unwrap().had = assignment.clone();
        }
        let after = assign_simply(&topics, &members);
        assert_eq!(loads(&after), [2, 2, 2]);
        for (id, assignment) in &before {
            assert!(after[id][&TopicIndex(0)].is_subset(&assignment[&TopicIndex(0)]));
        }
    }
}
