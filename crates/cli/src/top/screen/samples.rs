//! A cluster made by hand, for tests of the screen.

use std::sync::Arc;
use std::time::Duration;

use ottla::TopicPartition;

use super::messages::{Line, Messages, Source};
use crate::top::model::Model;
use crate::top::update::{
    BrokerSample, ClusterSample, EndsSample, GroupSample, GroupsSample, MemberSample, PartitionSample,
    SizesSample, TopicSample, Update,
};

/// The topics: name, partitions, records per second and partition.
const TOPICS: [(&str, i32, i64); 7] = [
    ("clicks", 12, 4200),
    ("orders", 6, 850),
    ("payments", 6, 310),
    ("shipments", 3, 120),
    ("inventory", 3, 45),
    ("audit", 1, 3),
    ("orders.dead-letters", 1, 0),
];

/// Returns the metadata of three brokers; replicas on those of `lagging` are not in sync.
pub fn cluster(lagging: &[i32]) -> ClusterSample {
    let broker = |id| BrokerSample { id, address: format!("kafka-{id}.example:9092"), rack: None };
    let topic = |(name, count, _): (&str, i32, i64)| TopicSample {
        name: name.into(),
        partitions: (0..count).map(|id| partition(id, lagging)).collect(),
        error: None,
    };
    ClusterSample {
        id: Some("MkU3OEVBNTcwNTJENDM2Qk".into()),
        controller: Some(1),
        brokers: (1..=3).map(broker).collect(),
        topics: TOPICS.into_iter().map(topic).collect(),
    }
}

fn partition(id: i32, lagging: &[i32]) -> PartitionSample {
    let replicas = vec![id % 3 + 1, (id + 1) % 3 + 1];
    let in_sync: Vec<i32> = replicas.iter().copied().filter(|id| !lagging.contains(id)).collect();
    PartitionSample { id, leader: in_sync.first().copied(), replicas, in_sync }
}

/// Returns the ends after `second` seconds.
pub fn ends(second: u64) -> EndsSample {
    let mut ends = Vec::new();
    for (name, count, rate) in TOPICS {
        for id in 0..count {
            ends.push((TopicPartition::new(name, id), total(rate, second)));
        }
    }
    EndsSample { at: Duration::from_secs(second), ends, ..EndsSample::default() }
}

/// The records after some seconds, at a rate that rises and falls.
fn total(rate: i64, second: u64) -> i64 {
    let wave = [7, 9, 10, 12, 14, 13, 11, 10, 8, 6, 5, 6];
    (0..second).map(|at| rate * wave[(at / 2) as usize % wave.len()] / 10).sum()
}

fn members(second: u64) -> GroupsSample {
    let key = |id| TopicPartition::new("orders", id);
    let member = |name: &str, partitions: &[i32]| MemberSample {
        id: format!("{name}-6f1d"),
        client_id: name.into(),
        host: format!("/10.0.0.{}", 10 + partitions[0]),
        partitions: partitions.iter().map(|id| key(*id)).collect(),
    };
    let end = total(850, second);
    let slow = end - i64::try_from(second).unwrap() * 110;
    let committed = [end - 30, end - 12, end - 25, end - 8, slow, slow + 90];
    let billing = GroupSample {
        id: "billing".into(),
        state: "Stable".into(),
        coordinator: Some(2),
        members: vec![
            member("billing-1", &[0, 1]),
            member("billing-2", &[2, 3]),
            member("billing-3", &[4, 5]),
        ],
        committed: committed.iter().enumerate().map(|(id, offset)| (key(id as i32), *offset)).collect(),
    };
    let search = GroupSample {
        id: "search-index".into(),
        state: "Stable".into(),
        coordinator: Some(3),
        members: vec![member("indexer", &[0])],
        committed: vec![(key(0), end - 5)],
    };
    let report = GroupSample {
        id: "nightly-report".into(),
        state: "Empty".into(),
        coordinator: Some(1),
        members: Vec::new(),
        committed: vec![(key(0), end / 2)],
    };
    GroupsSample { at: Duration::from_secs(second), groups: vec![billing, search, report], failure: None }
}

fn sizes(second: u64) -> SizesSample {
    let mut replicas = Vec::new();
    for (name, count, rate) in TOPICS {
        for id in 0..count {
            let bytes = (total(rate, second) + rate * 100_000) * 214;
            let brokers = partition(id, &[]).replicas;
            replicas.extend(brokers.into_iter().map(|broker| (broker, TopicPartition::new(name, id), bytes)));
        }
    }
    SizesSample { at: Duration::from_secs(second), replicas, failure: None }
}

/// Returns a cluster that was watched for eighty seconds; in the end broker 3 falls behind.
pub fn model() -> Model {
    let mut model = Model::default();
    for second in (2..=80).step_by(2) {
        model.apply(Update::Cluster(cluster(if second > 70 { &[3] } else { &[] })));
        model.apply(Update::Ends(ends(second)));
        model.apply(Update::Groups(members(second)));
        if second % 16 == 2 {
            model.apply(Update::Sizes(sizes(second)));
        }
    }
    model
}

/// Returns messages of the topic `orders`.
pub fn messages() -> Messages {
    let line = |number: i64| Line {
        time_ms: 1_795_228_947_708 + number * 13,
        partition: (number % 6) as i32,
        offset: 20_000 + number / 6,
        key: format!("customer-{number}"),
        value: format!("{{\"order\": {number}, \"total\": {}.50}}", number * 7 % 90),
    };
    let source = Source { topic: Arc::from("orders"), partition: None };
    Messages { source: Some(source), lines: (0..40).map(line).collect(), is_awaited: false, failure: None }
}
