//! The groups of the model: lag, its trend, and the members that fall behind.

use std::time::Duration;

use ottla::TopicPartition;
use ottla_sorted::SortedMap;

use super::history::{Counter, History};
use super::update::{GroupSample, GroupsSample};

/// A member is slow if its lag is this many times the average lag of the others.
const SLOW_FACTOR: f64 = 2.0;

/// A group of consumers.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The state, in Kafka's words.
    pub state: String,
    /// The coordinator.
    pub coordinator: Option<i32>,
    /// The members, by ID.
    pub members: SortedMap<String, Member>,
    /// The lag of the partitions with a committed offset, over time.
    pub lag: History,
    /// The partitions with a committed offset.
    pub partitions: SortedMap<TopicPartition, GroupPartition>,
    /// The change of the lag per second.
    pub trend: Option<f64>,
    at: Option<Duration>,
}

/// A partition that a group consumes.
#[derive(Clone, Debug, Default)]
pub struct GroupPartition {
    /// The committed offset.
    pub committed: Counter,
    /// The records between the committed offset and the end.
    pub lag: Option<i64>,
}

/// A member of a group.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// The client ID.
    pub client_id: String,
    /// The host that the coordinator sees.
    pub host: String,
    /// The number of assigned partitions.
    pub partitions: usize,
    /// The lag of the assigned partitions with a committed offset.
    pub lag: i64,
    /// The change of the lag per second.
    pub trend: Option<f64>,
    /// The growth of the committed offsets per second.
    pub rate: Option<f64>,
    /// Whether the member falls behind the others.
    pub is_slow: bool,
}

/// Replaces the groups by those of a sample; `end` returns the end of a partition.
pub fn apply(
    groups: &mut SortedMap<String, Group>,
    sample: GroupsSample,
    end: impl Fn(&TopicPartition) -> Option<i64>,
) {
    let mut before = std::mem::take(groups);
    for one in sample.groups {
        let mut group = before.remove(&one.id).unwrap_or_default();
        let id = one.id.clone();
        group.update(sample.at, one, &end);
        groups.insert(id, group);
    }
    // A broker that did not respond may have had these.
    if sample.failure.is_some() {
        groups.append(&mut before);
    }
}

impl Group {
    fn update(&mut self, at: Duration, sample: GroupSample, end: &impl Fn(&TopicPartition) -> Option<i64>) {
        let mut before = std::mem::take(&mut self.partitions);
        for (key, committed) in sample.committed {
            let mut partition = before.remove(&key).unwrap_or_default();
            partition.committed.set(at, committed);
            partition.lag = end(&key).map(|end| end.saturating_sub(committed).max(0));
            self.partitions.insert(key, partition);
        }
        let members_before = std::mem::take(&mut self.members);
        let seconds = self.at.and_then(|before| at.checked_sub(before)).map(|gone| gone.as_secs_f64());
        let trend = |lag: i64, before: i64| {
            seconds.filter(|seconds| *seconds > 0.0).map(|seconds| (lag - before) as f64 / seconds)
        };
        for member in sample.members {
            let read: Vec<_> = member.partitions.iter().filter_map(|key| self.partitions.get(key)).collect();
            let lag = read.iter().filter_map(|one| one.lag).fold(0, i64::saturating_add);
            let rates = read.iter().filter_map(|one| one.committed.rate());
            let one = Member {
                client_id: member.client_id,
                host: member.host,
                partitions: member.partitions.len(),
                lag,
                trend: members_before.get(&member.id).and_then(|before| trend(lag, before.lag)),
                rate: rates.fold(None, |sum, rate| Some(sum.unwrap_or(0.0) + rate)),
                is_slow: false,
            };
            self.members.insert(member.id, one);
        }
        mark_slow(&mut self.members);
        let lag = self.partitions.values().filter_map(|one| one.lag).fold(0, i64::saturating_add);
        self.trend = self.lag.last().and_then(|before| trend(lag, before as i64));
        self.lag.push(lag as f64);
        self.state = sample.state;
        self.coordinator = sample.coordinator;
        self.at = Some(at);
    }

    /// Returns the member that has the largest lag, if one is slow.
    pub fn slowest(&self) -> Option<&Member> {
        self.members.values().filter(|member| member.is_slow).max_by_key(|member| member.lag)
    }
}

/// Marks the members whose lag is far above the average of the others.
fn mark_slow(members: &mut SortedMap<String, Member>) {
    let (count, total) = (members.len(), members.values().map(|member| member.lag as f64).sum::<f64>());
    for member in members.values_mut() {
        let others = (total - member.lag as f64) / (count.saturating_sub(1).max(1)) as f64;
        member.is_slow = count > 1 && member.lag > 0 && member.lag as f64 > SLOW_FACTOR * others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::update::MemberSample;

    fn key(partition: i32) -> TopicPartition {
        TopicPartition::new("orders", partition)
    }

    fn member(id: &str, partitions: &[i32]) -> MemberSample {
        let partitions = partitions.iter().map(|partition| key(*partition)).collect();
        MemberSample { id: id.into(), client_id: format!("{id}-client"), host: "/h".into(), partitions }
    }

    fn sample(seconds: u64, committed: &[i64], members: &[MemberSample]) -> GroupsSample {
        let committed = committed.iter().enumerate().map(|(index, offset)| (key(index as i32), *offset));
        let group = GroupSample {
            id: "billing".into(),
            state: "Stable".into(),
            committed: committed.collect(),
            members: members.to_vec(),
            ..GroupSample::default()
        };
        GroupsSample { at: Duration::from_secs(seconds), groups: vec![group], failure: None }
    }

    #[test]
    fn member_far_behind_the_others_is_slow() {
        let mut groups = SortedMap::new();
        let members = [member("a", &[0]), member("b", &[1]), member("c", &[2])];
        apply(&mut groups, sample(1, &[990, 980, 400], &members), |_| Some(1000));
        let group = &groups["billing"];
        assert_eq!(group.lag.last(), Some(630.0));
        let slow: Vec<_> = group.members.iter().filter(|(_, one)| one.is_slow).collect();
        assert_eq!(slow.len(), 1);
        assert_eq!((slow[0].0.as_str(), slow[0].1.lag), ("c", 600));
        assert_eq!(group.slowest().unwrap().client_id, "c-client");
        apply(&mut groups, sample(2, &[1000], &[member("a", &[0])]), |_| Some(2000));
        assert!(groups["billing"].slowest().is_none(), "a single member is not compared");
    }

    #[test]
    fn trend_is_the_change_of_lag_per_second() {
        let mut groups = SortedMap::new();
        apply(&mut groups, sample(1, &[100], &[member("a", &[0])]), |_| Some(200));
        assert_eq!(groups["billing"].trend, None);
        apply(&mut groups, sample(3, &[140], &[member("a", &[0])]), |_| Some(300));
        let group = &groups["billing"];
        assert_eq!((group.lag.last(), group.trend), (Some(160.0), Some(30.0)));
        let one = &group.members["a"];
        assert_eq!((one.trend, one.rate), (Some(30.0), Some(20.0)));
    }

    #[test]
    fn partition_without_an_end_has_no_lag() {
        let mut groups = SortedMap::new();
        apply(&mut groups, sample(1, &[100, 100], &[]), |key| (key.partition == 0).then_some(90));
        let lags: Vec<_> = groups["billing"].partitions.values().map(|one| one.lag).collect();
        assert_eq!(lags, [Some(0), None], "an end from before the commit says nothing about the lag");
    }

    #[test]
    fn groups_stay_while_a_broker_does_not_list_its_own() {
        let mut groups = SortedMap::new();
        apply(&mut groups, sample(1, &[100], &[]), |_| Some(200));
        let failure = Some("broker 2 did not respond".to_owned());
        let at = Duration::from_secs(2);
        apply(&mut groups, GroupsSample { at, groups: vec![], failure }, |_| None);
        assert_eq!(groups.len(), 1);
        apply(&mut groups, GroupsSample { at, ..GroupsSample::default() }, |_| None);
        assert!(groups.is_empty());
    }
}
