//! The durations for which partitions that a member keeps pause while the group rebalances.
//!
//! Records arrive in every partition each millisecond, without faults. The longest pause of a partition is the longest time
//! between two deliveries of its records: first in a settled group, then while another member joins, among the partitions
//! that stay with their member.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    cluster::command::Command, group::assignor::Assignor, machine::Instant, produce::record::Record,
};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedMap;

use super::checks::Holders;
use super::{Manners, Pace, Protocol, Run, SETTLE, Setup};
use crate::{Broken, network::NetworkKnobs};

const TOPIC: &str = "t0";
const PARTITIONS: i32 = 9;
const LATENCY: Duration = Duration::from_millis(3);
const STEP: Duration = Duration::from_millis(1);
/// The duration for which a settled group is observed.
const CALM: Duration = Duration::from_secs(2);
/// The duration for which a group is observed in which a member joins; a member of the consumer protocol learns of it
/// with its heartbeat.
const CHANGE: Duration = Duration::from_secs(4);

/// The time from a request to its response, without the broker's wait.
pub const ROUND_TRIP: Duration = LATENCY.saturating_mul(2);

/// The longest pauses of partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// In a settled group.
    pub calm: Duration,
    /// While another member joins: of the partitions that stay.
    pub changing: Duration,
    /// The number of partitions that stay.
    pub stayed: usize,
}

/// Measures the pauses in a group of the consumer protocol, or of the classic protocol with this assignor.
pub fn run(assignor: Option<Assignor>) -> Result<Pauses, Broken> {
    let protocol = assignor.map_or(Protocol::Consumer, Protocol::Classic);
    let mut run = Run::new(1, setup(protocol), false);
    run.start_member(None);
    run.start_member(None);
    run.wait_until_settled(SETTLE)?;
    let calm = run.watch(CALM)?;
    let before = run.holders();
    run.start_member(None);
    let changing = run.watch(CHANGE)?;
    run.wait_until_settled(SETTLE)?;
    let after = run.holders();
    let holder = |holders: &Holders, place: &TopicPartition| holders.get(place).map(|(member, _)| *member);
    let stays = |place: &TopicPartition| holder(&before, place) == holder(&after, place);
    let longest =
        |pauses: &SortedMap<TopicPartition, Duration>| pauses.values().copied().max().unwrap_or_default();
    let of_staying =
        changing.iter().filter(|(place, _)| stays(place)).map(|(place, time)| (place.clone(), *time));
    let of_staying: SortedMap<_, _> = of_staying.collect();
    Ok(Pauses { calm: longest(&calm), changing: longest(&of_staying), stayed: of_staying.len() })
}

fn setup(protocol: Protocol) -> Setup {
    Setup {
        brokers: 1,
        topics: vec![(TOPIC.to_owned(), PARTITIONS)],
        protocol,
        has_faults: false,
        is_static: false,
        manners: Manners::PLAIN,
        network: NetworkKnobs { latency: LATENCY, jitter: Duration::ZERO, window: 1 << 20, cut_percent: 0 },
        relaxed_commits: true,
        initial_delay: Duration::ZERO,
        pace: Pace::USUAL,
    }
}

impl Run {
    /// Sends and reads records for this time. Returns the longest time without a record of each partition.
    fn watch(&mut self, time: Duration) -> Result<SortedMap<TopicPartition, Duration>, Broken> {
        let end = self.world.now + time;
        let mut last: SortedMap<TopicPartition, (i64, Instant)> = SortedMap::new();
        let mut pauses = SortedMap::new();
        while self.world.now < end {
            self.send_everywhere();
            self.step_by(STEP)?;
            let now = self.world.now;
            for (place, offset) in &self.received {
                let (seen, since) = last.entry(place.clone()).or_insert((*offset, now));
                if seen != offset {
                    let pause: &mut Duration = pauses.entry(place.clone()).or_default();
                    *pause = (*pause).max(now - *since);
                    (*seen, *since) = (*offset, now);
                }
            }
        }
        Ok(pauses)
    }

    /// Sends one record to each partition.
    fn send_everywhere(&mut self) {
        let commands = Arc::clone(&self.world.clients[0].commands);
        let (topic, is_new) = self.producer.topic(TOPIC);
        if is_new {
            commands.push(Command::Topic(Arc::clone(&topic)));
        }
        for partition in 0..PARTITIONS {
            let record = Record::new().value("x").partition(partition);
            if self.producer.send(&topic, self.world.now, 0, &record, None).is_ok() {
                self.summary.records += 1;
            }
        }
    }
}
