//! Reads the state of the cluster: one request per broker for the ends of all partitions, the rest less often.
//!
//! | what | requests | when |
//! |---|---|---|
//! | ends | one ListOffsets per broker | each interval; those of idle partitions every fourth if there are many |
//! | metadata | one Metadata | every second interval, every fourth if there are many, and when an end is missing |
//! | groups | one ListGroups per broker, one DescribeGroups per coordinator, one OffsetFetch per group | every second interval |
//! | sizes | one DescribeLogDirs per broker | every eighth interval |
//!
//! # Pitfalls
//!
//! - A partition without a leader isn't asked for its end: the call would wait for a leader until its timeout, and all values with
//!   it (`leaderless_partition_does_not_delay_the_others`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use ottla::admin::LogDir;
use ottla::{Admin, GroupFilter, GroupListing, OffsetSpec, TopicPartition};
use ottla_sorted::SortedMap;

use super::block_on::block_on;
use super::update::{
    BrokerSample, ClusterSample, EndsSample, GroupSample, GroupsSample, MemberSample, PartitionSample,
    SizesSample, TopicSample, Update,
};
use crate::events::describe;

/// The number of intervals between two readings of metadata, and of groups.
const METADATA_EVERY: u64 = 2;
/// The number of partitions above which metadata, and the ends of those without new records, are read less often.
const MANY: usize = 2000;
/// The number of intervals between two readings of metadata of so many partitions. A leader that moved is noticed at once, because
/// its partitions refuse ListOffsets.
const METADATA_OF_MANY_EVERY: u64 = 4;
/// The number of readings with the same end after which one of many partitions is idle.
const IDLE_AFTER: u32 = 4;
/// The number of intervals between two readings of the end of an idle partition; each interval reads a part of them.
const IDLE_EVERY: u64 = 4;
/// The number of intervals between two readings of sizes.
const SIZES_EVERY: u64 = 8;
/// The number of groups whose offsets are requested at the same time.
const GROUPS_AT_ONCE: usize = 64;
/// A broker that does not respond delays the values of the others by this long at most.
const LONGEST_CALL: Duration = Duration::from_secs(5);

/// What a round reads besides the ends of the partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    /// The ends of all partitions, also of idle ones.
    all_ends: bool,
    metadata: bool,
    groups: bool,
    sizes: bool,
}

/// Returns what to read in a round of a cluster with so many partitions; `is_incomplete` after a round in which something was missing.
fn round(number: u64, partitions: usize, is_incomplete: bool) -> Round {
    let metadata_every = if partitions > MANY { METADATA_OF_MANY_EVERY } else { METADATA_EVERY };
    Round {
        all_ends: number == 0 || partitions <= MANY,
        metadata: is_incomplete || number.is_multiple_of(metadata_every),
        groups: number.is_multiple_of(METADATA_EVERY),
        sizes: number.is_multiple_of(SIZES_EVERY),
    }
}

/// Reads the cluster through an admin client.
#[derive(Debug)]
pub struct Collector {
    admin: Admin,
    start: Instant,
    timeout: Duration,
    number: u64,
    is_incomplete: bool,
    /// The partitions with a leader.
    led: Vec<Led>,
}

/// A partition with a leader.
#[derive(Clone, Debug)]
struct Led {
    key: TopicPartition,
    /// The end when it was read last.
    end: Option<i64>,
    /// The number of readings since it changed.
    unchanged: u32,
}

impl Led {
    /// True if the end is read in a round; `index` spreads idle partitions over the rounds.
    fn is_due(&self, index: usize, number: u64) -> bool {
        self.unchanged < IDLE_AFTER || (index as u64).wrapping_add(number).is_multiple_of(IDLE_EVERY)
    }

    fn take(&mut self, end: Option<i64>) {
        self.unchanged = if end.is_some() && end == self.end { self.unchanged.saturating_add(1) } else { 0 };
        self.end = end;
    }
}

impl Collector {
    /// Creates a collector that reads every `interval`.
    pub fn new(admin: Admin, interval: Duration) -> Collector {
        let timeout = interval.clamp(Duration::from_secs(1), LONGEST_CALL);
        Collector { admin, start: Instant::now(), timeout, number: 0, is_incomplete: false, led: Vec::new() }
    }

    /// Makes everything due in the next round.
    pub fn make_all_due(&mut self) {
        self.number = 0;
    }

    /// Reads what is due, and passes on each part as soon as it is there. Returns without the rest once `report` returns false.
    pub fn read(&mut self, report: &mut impl FnMut(Update) -> bool) {
        let due = round(self.number, self.led.len(), self.is_incomplete);
        self.number += 1;
        self.is_incomplete = false;
        if due.metadata {
            match self.cluster() {
                Ok(sample) => {
                    self.remember_led(&sample);
                    if !report(Update::Cluster(sample)) {
                        return;
                    }
                }
                Err(error) => {
                    self.is_incomplete = true;
                    report(Update::Trouble(self.cause(&error)));
                    return;
                }
            }
        }
        let ends = self.ends(due.all_ends);
        let is_lost = matches!(&ends, Update::Trouble(_));
        if !report(ends) || is_lost {
            return;
        }
        if due.groups && !report(Update::Groups(self.groups())) {
            return;
        }
        if due.sizes {
            report(Update::Sizes(self.sizes()));
        }
    }

    /// Returns why a call failed: the newest event, which names the broker, or else the error itself.
    fn cause(&self, error: &ottla::Error) -> String {
        let mut cause = describe(error);
        while let Some(event) = self.admin.poll_event() {
            if let ottla::Event::Error(error) = event {
                cause = describe(&error);
            }
        }
        format!("{cause}; retrying")
    }

    /// Remembers which partitions have a leader; what is known of their ends stays.
    fn remember_led(&mut self, sample: &ClusterSample) {
        let led = || {
            sample.topics.iter().flat_map(|topic| {
                let led = topic.partitions.iter().filter(|one| one.leader.is_some());
                led.map(|one| (&topic.name, one.id))
            })
        };
        let is_same =
            |(one, (name, id)): (&Led, (&Arc<str>, i32))| one.key.partition == id && *one.key.topic == **name;
        if led().count() == self.led.len() && self.led.iter().zip(led()).all(is_same) {
            return;
        }
        let before = std::mem::take(&mut self.led).into_iter().map(|one| (one.key.clone(), one));
        let mut before: SortedMap<TopicPartition, Led> = before.collect();
        for (name, id) in led() {
            let key = TopicPartition::new(Arc::clone(name), id);
            self.led.push(before.remove(&key).unwrap_or(Led { key, end: None, unchanged: 0 }));
        }
    }

    fn cluster(&self) -> ottla::Result<ClusterSample> {
        let cluster = self.admin.metadata(None, self.timeout)?;
        let brokers = cluster.brokers.into_iter().map(|broker| BrokerSample {
            id: broker.id,
            address: format!("{}:{}", broker.host, broker.port),
            rack: broker.rack,
        });
        let topics = cluster.topics.into_iter().map(|topic| TopicSample {
            name: topic.name.into(),
            error: topic.error.map(|error| error.to_string()),
            partitions: topic.partitions.into_iter().map(partition).collect(),
        });
        Ok(ClusterSample {
            id: cluster.cluster_id,
            controller: cluster.controller_id,
            brokers: brokers.collect(),
            topics: topics.collect(),
        })
    }

    fn ends(&mut self, is_all: bool) -> Update {
        let number = self.number;
        let is_due = |(index, one): &(usize, &mut Led)| is_all || one.is_due(*index, number);
        let mut due: Vec<&mut Led> =
            self.led.iter_mut().enumerate().filter(is_due).map(|(_, one)| one).collect();
        let mut sample = EndsSample::default();
        let mut first = None;
        if !due.is_empty() {
            let questions: Vec<_> =
                due.iter().map(|one| (&*one.key.topic, one.key.partition, OffsetSpec::Latest)).collect();
            match self.admin.list_offsets(&questions, self.timeout) {
                Ok(results) => {
                    for (one, result) in due.iter_mut().zip(results) {
                        let end = result.map(|listed| listed.offset);
                        one.take(end.as_ref().ok().copied().flatten());
                        match (end, one.end) {
                            (Ok(_), Some(end)) => sample.ends.push((one.key.clone(), end)),
                            (Ok(_), None) => sample.missing.push(one.key.clone()),
                            (Err(error), _) => {
                                sample.missing.push(one.key.clone());
                                first = first.or(Some(error));
                            }
                        }
                    }
                }
                Err(error) => {
                    self.is_incomplete = true;
                    return Update::Trouble(self.cause(&error));
                }
            }
        }
        if let Some(error) = first {
            self.is_incomplete = true;
            let cause = self.cause(&error);
            if sample.ends.is_empty() {
                return Update::Trouble(cause);
            }
            sample.failure = Some(cause);
        }
        sample.at = self.start.elapsed();
        Update::Ends(sample)
    }

    fn groups(&self) -> GroupsSample {
        let mut sample = GroupsSample { at: self.start.elapsed(), ..GroupsSample::default() };
        let listings = match self.admin.list_groups(&GroupFilter::default(), self.timeout) {
            Ok(listings) => listings,
            Err(error) => {
                sample.failure = Some(describe(&error));
                return sample;
            }
        };
        sample.failure = listings.failed.first().map(|(id, error)| format!("broker {id}: {error}"));
        let ids: Vec<&str> = listings
            .groups
            .iter()
            .filter(|group| GroupListing::is_of_consumers(group))
            .map(|group| group.group_id.as_str())
            .collect();
        if ids.is_empty() {
            return sample;
        }
        let mut found = Vec::new();
        match self.admin.describe_groups(&ids, self.timeout) {
            Ok(described) => {
                for (_, result) in described {
                    match result {
                        Ok(group) => found.push(described_group(group)),
                        Err(error) => sample.failure = Some(describe(&error)),
                    }
                }
            }
            Err(error) => sample.failure = Some(describe(&error)),
        }
        for some in found.chunks_mut(GROUPS_AT_ONCE) {
            self.add_committed(some, &mut sample.failure);
        }
        sample.groups = found;
        sample
    }

    /// Adds the committed offsets of groups; the calls are in flight at the same time.
    fn add_committed(&self, groups: &mut [GroupSample], failure: &mut Option<String>) {
        let calls: Vec<_> = groups
            .iter()
            .map(|group| self.admin.list_group_offsets_async(&group.id, None, self.timeout))
            .collect();
        for (group, call) in groups.iter_mut().zip(calls) {
            match block_on(call) {
                Ok(offsets) => {
                    for (key, result) in offsets {
                        match result {
                            Ok(offset) => group.committed.extend(offset.map(|offset| (key, offset.offset))),
                            Err(error) => *failure = Some(describe(&error)),
                        }
                    }
                }
                Err(error) => *failure = Some(describe(&error)),
            }
        }
    }

    fn sizes(&self) -> SizesSample {
        let mut sample = SizesSample { at: self.start.elapsed(), ..SizesSample::default() };
        let brokers = match self.admin.describe_log_dirs(None, None, self.timeout) {
            Ok(brokers) => brokers,
            Err(error) => {
                sample.failure = Some(describe(&error));
                return sample;
            }
        };
        for (broker, dirs) in brokers {
            match dirs {
                Ok(dirs) => sample.replicas.extend(dirs.into_iter().flat_map(|dir| replicas(broker, dir))),
                Err(error) => sample.failure = Some(format!("broker {broker}: {error}")),
            }
        }
        sample
    }
}

fn partition(one: ottla::PartitionDescription) -> PartitionSample {
    PartitionSample { id: one.id, leader: one.leader, replicas: one.replicas, in_sync: one.in_sync_replicas }
}

/// Returns the replicas of a directory; those that are being moved are there twice, and only the current ones count.
fn replicas(broker: i32, dir: LogDir) -> impl Iterator<Item = (i32, TopicPartition, i64)> {
    let current = dir.replicas.into_iter().filter(|(_, replica)| !replica.is_future);
    current.map(move |(key, replica)| (broker, key, replica.size))
}

fn described_group(group: ottla::GroupDescription) -> GroupSample {
    let members = group.members.into_iter().map(|member| MemberSample {
        id: member.member_id,
        client_id: member.client_id,
        host: member.host,
        partitions: member.assignment,
    });
    GroupSample {
        id: group.group_id,
        state: group.state.name().to_owned(),
        coordinator: group.coordinator.map(|broker| broker.id),
        members: members.collect(),
        committed: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::model::Model;
    use ottla::{Config, Producer, Record};
    use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, Tail};
    use ottla_protocol::api::ApiKey;

    fn collector(cluster: &EmbeddedCluster) -> Collector {
        let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
        Collector::new(Admin::new(&config).unwrap(), Duration::from_secs(5))
    }

    fn read(collector: &mut Collector, model: &mut Model) {
        collector.read(&mut |update| {
            model.apply(update);
            true
        });
    }

    #[test]
    fn rounds_read_the_costly_parts_less_often() {
        let reads = |partitions, part: fn(Round) -> bool| {
            (0..16).filter(|number| part(round(*number, partitions, false))).count()
        };
        let counts = |partitions| {
            [|it: Round| it.all_ends, |it: Round| it.metadata, |it: Round| it.groups, |it: Round| it.sizes]
                .map(|part| reads(partitions, part))
        };
        assert_eq!(counts(MANY), [16, 8, 8, 2]);
        assert_eq!(counts(MANY + 1), [1, 4, 8, 2]);
        assert!(round(1, MANY + 1, true).metadata, "metadata is due when something was missing");
    }

    #[test]
    fn idle_partitions_of_many_are_read_in_turns() {
        let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
        let partitions = MANY as i32 + 8;
        cluster.control(|control| control.create_topic("orders", partitions, 1)).unwrap();
        let (mut collector, mut model) = (collector(&cluster), Model::default());
        let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
        let producer = Producer::new(&config).unwrap();
        let (mut asked, mut end) = (Vec::new(), 0);
        for _ in 0..IDLE_AFTER + 1 + 2 * IDLE_EVERY as u32 {
            producer.topic("orders").send(Record::new().value("x").partition(3)).unwrap();
            producer.flush(Duration::from_secs(30)).unwrap();
            end += 1;
            collector.read(&mut |update| {
                if let Update::Ends(sample) = &update {
                    assert_eq!((&sample.failure, &sample.missing[..]), (&None, &[][..]));
                    asked.push(sample.ends.len());
                }
                model.apply(update);
                true
            });
            // The busy one is read each time, and the others count as current although they are not.
            assert_eq!(model.end(&TopicPartition::new("orders", 3)), Some(end));
            assert!(model.topics["orders"].partitions.values().all(|one| !model.is_old(one)));
        }
        let (first, later) = asked.split_at(IDLE_AFTER as usize + 1);
        assert!(first.iter().all(|count| *count == MANY + 8), "{asked:?}");
        assert!(later.iter().all(|count| (MANY / 4..=MANY / 4 + 3).contains(count)), "{asked:?}");
        // One that was idle is noticed within so many rounds.
        producer.topic("orders").send(Record::new().value("x").partition(4)).unwrap();
        producer.flush(Duration::from_secs(30)).unwrap();
        let key = TopicPartition::new("orders", 4);
        let noticed = (0..IDLE_EVERY).any(|_| {
            read(&mut collector, &mut model);
            model.end(&key) == Some(1)
        });
        assert!(noticed && model.topics["orders"].partitions[&4].end.rate().unwrap() > 0.0);
        collector.make_all_due();
        collector.read(&mut |update| {
            if let Update::Ends(sample) = &update {
                asked.push(sample.ends.len());
            }
            true
        });
        assert_eq!(asked.last(), Some(&(MANY + 8)));
    }

    #[test]
    fn round_sends_one_request_for_offsets_per_broker() {
        let options = ClusterOptions { brokers: 3, ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).unwrap();
        cluster.control(|control| control.create_topic("orders", 60, 3)).unwrap();
        let (mut collector, mut model) = (collector(&cluster), Model::default());
        // The first round also connects.
        read(&mut collector, &mut model);
        cluster.control(|control| control.record_requests());
        read(&mut collector, &mut model);
        let log = cluster.control(|control| control.take_requests());
        let asked: Vec<_> = log.iter().map(|request| request.api).collect();
        assert_eq!(asked, [ApiKey::ListOffsets; 3]);
        assert_eq!(model.topics["orders"].partitions.len(), 60);
        assert!(model.topics["orders"].partitions.values().all(|one| one.end.value() == Some(0)));
        assert_eq!(model.trouble, None);
    }

    #[test]
    fn records_become_a_rate_and_bytes() {
        let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
        cluster.control(|control| control.create_topic("orders", 2, 1)).unwrap();
        let (mut collector, mut model) = (collector(&cluster), Model::default());
        read(&mut collector, &mut model);
        let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
        let producer = Producer::new(&config).unwrap();
        for number in 0..100 {
            let value = number.to_string();
            producer.topic("orders").send(Record::new().value(&value)).unwrap();
        }
        producer.flush(Duration::from_secs(30)).unwrap();
        collector.make_all_due();
        read(&mut collector, &mut model);
        let topic = &model.topics["orders"];
        assert!(topic.rate.last().unwrap() > 0.0);
        assert!(model.rate.last().unwrap() > 0.0);
        assert_eq!(topic.partitions.values().filter_map(|one| one.end.value()).sum::<i64>(), 100);
        assert!(topic.bytes.value().unwrap() > 0, "{:?}", model.sizes_failure);
        assert!(topic.bytes.rate().unwrap() > 0.0);
    }

    #[test]
    fn leaderless_partition_does_not_delay_the_others() {
        let options = ClusterOptions { brokers: 2, ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).unwrap();
        cluster.control(|control| control.create_topic("alone", 2, 1)).unwrap();
        let (mut collector, mut model) = (collector(&cluster), Model::default());
        cluster.control(|control| control.kill_broker(BrokerId(2), Tail::Kept));
        read(&mut collector, &mut model);
        let topic = &model.topics["alone"];
        assert_eq!(topic.leaderless(), 1);
        assert_eq!(model.trouble, None, "the partition without a leader was not asked for");
        assert_eq!(topic.partitions.values().filter_map(|one| one.end.value()).count(), 1);
    }

    #[test]
    fn dead_cluster_is_trouble_until_it_is_back() {
        let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
        cluster.control(|control| control.create_topic("orders", 1, 1)).unwrap();
        let (mut collector, mut model) = (collector(&cluster), Model::default());
        read(&mut collector, &mut model);
        collector.timeout = Duration::from_millis(300);
        cluster.control(|control| control.kill_broker(BrokerId(1), Tail::Kept));
        read(&mut collector, &mut model);
        assert!(model.is_stale, "{:?}", model.trouble);
        let trouble = model.trouble.clone().unwrap();
        assert!(trouble.ends_with("; retrying"), "{trouble}");
        cluster.control(|control| control.restart_broker(BrokerId(1)));
        collector.timeout = Duration::from_secs(30);
        read(&mut collector, &mut model);
        assert_eq!((model.is_stale, &model.trouble), (false, &None));
        assert_eq!(model.end(&TopicPartition::new("orders", 0)), Some(0));
    }
}
