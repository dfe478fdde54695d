//! A reader of all partitions, with `isolation.level=read_committed`: everything that it sees was committed.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    fetch::{
        deliver::{ConsumerEvent, Records},
        position::Offset,
        shared::ConsumerShared,
    },
    machine::Instant,
    rng::Rng,
};
use ottla_embedded_broker::Cluster;
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedMap;

use super::ledger::{Label, Ledger, Place};
use crate::checkers::Broken;

/// A reader, and the records that it has read.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) client: usize,
    shared: Arc<ConsumerShared>,
    topics: Vec<(String, i32)>,
    /// The record at each offset.
    pub(super) seen: SortedMap<Place, SortedMap<i64, Label>>,
    /// The last offset since the last seek.
    last: SortedMap<Place, i64>,
    /// The offset of each record.
    places: SortedMap<(u32, u64), (Place, i64)>,
    /// Once in this number of polls it reads a partition again from some offset; 0 is never.
    pub(super) rereads: u64,
    /// The offset at which each partition's end was last reported.
    ends: SortedMap<Place, i64>,
    /// The last stable offset at which a position stands, and since when.
    waits: SortedMap<Place, (i64, Instant)>,
    /// True if nothing keeps the reader from its brokers.
    is_calm: bool,
}

/// A reader has the end of a partition by then: a broker that has nothing new responds after half a second.
const END: Duration = Duration::from_secs(3);

impl Reader {
    pub(super) fn new(
        client: usize,
        shared: Arc<ConsumerShared>,
        topics: &[(String, i32)],
        rereads: u64,
        is_calm: bool,
    ) -> Self {
        let (seen, last, places, ends, waits) = Default::default();
        Self { client, shared, topics: topics.to_vec(), seen, last, places, rereads, ends, waits, is_calm }
    }

    /// Assigns all partitions.
    pub(super) fn start(&self, commands: &CommandQueue) {
        let places = self.topics.iter().flat_map(|(topic, count)| (0..*count).map(move |it| (topic, it)));
        let list: Vec<_> = places
            .map(|(topic, partition)| (TopicPartition::new(topic.as_str(), partition), Offset::Beginning))
            .collect();
        for command in self.shared.assign(&list) {
            commands.push(Command::Fetch(command));
        }
    }

    /// Reads the available records, and checks each.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        cluster: &mut Cluster,
        ledger: &Ledger,
        commands: &CommandQueue,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        if self.rereads > 0 && rng.chance(1, self.rereads) {
            self.read_again(commands, rng);
        }
        let mut records = Records::default();
        self.shared.queue.take(1 << 20, &mut records);
        for message in &records {
            let Some(topic) = self.topics.iter().position(|(topic, _)| topic == message.topic()) else {
                continue;
            };
            let place = (topic as u32, message.partition());
            let label = message.value().and_then(Label::parse);
            self.see(ledger, place, message.offset(), label)?;
        }
        for event in records.events() {
            self.handle_event(cluster, event)?;
        }
        self.check_positions(now, cluster)
    }

    fn see(
        &mut self,
        ledger: &Ledger,
        place: Place,
        offset: i64,
        label: Option<Label>,
    ) -> Result<(), Broken> {
        let at = format!("offset {offset} of {place:?}");
        let Some(label) = label else {
            return Err(Broken::new("stable", format!("{at} is not a record of a producer")));
        };
        let Some(transaction) = ledger.transactions.get(label.transaction as usize) else {
            return Err(Broken::new("stable", format!("{at} belongs to an unknown transaction: {label:?}")));
        };
        if !transaction.may_be_visible() {
            let anomaly = transaction.anomaly();
            return Err(Broken::new("truth", format!("{at} is visible: {anomaly}; {label:?}")));
        }
        if let Some(last) = self.last.insert(place, offset)
            && last >= offset
        {
            let what = format!("nonmonotonic-poll: {at} follows {last}");
            return Err(Broken::new("stable", what));
        }
        if let Some(other) = self.seen.entry(place).or_default().insert(offset, label)
            && other != label
        {
            let what = format!("inconsistent-offsets: {at} had {other:?} and has {label:?}");
            return Err(Broken::new("stable", what));
        }
        let key = (label.producer, label.number);
        if let Some(other) = self.places.insert(key, (place, offset))
            && other != (place, offset)
        {
            let what = format!("duplicate: {label:?} is at {other:?} and at {at}");
            return Err(Broken::new("exactly once", what));
        }
        Ok(())
    }

    fn handle_event(&mut self, cluster: &mut Cluster, event: &ConsumerEvent) -> Result<(), Broken> {
        let ConsumerEvent::EndOfPartition { topic, partition, offset, .. } = event else { return Ok(()) };
        let Some(state) = cluster.control().partition(topic, *partition) else { return Ok(()) };
        if let Some(index) = self.topics.iter().position(|(name, _)| **name == **topic) {
            self.ends.insert((index as u32, *partition), *offset);
        }
        if *offset > state.last_stable_offset {
            let what = format!(
                "the end of {topic} [{partition}] is reported at {offset}, and only {} is stable",
                state.last_stable_offset
            );
            return Err(Broken::new("stable", what));
        }
        Ok(())
    }

    /// No position is beyond the last stable offset, and a position that stays there is at the partition's end.
    fn check_positions(&mut self, now: Instant, cluster: &mut Cluster) -> Result<(), Broken> {
        for (index, (topic, count)) in self.topics.iter().enumerate() {
            for partition in 0..*count {
                let Ok(handle) = self.shared.partition(topic, partition) else { continue };
                let Some(state) = cluster.control().partition(topic, partition) else { continue };
                let Some(position) = handle.position() else { continue };
                let (place, stable) = ((index as u32, partition), state.last_stable_offset);
                if position > stable {
                    let what = format!(
                        "position {position} of {topic} [{partition}] is beyond the last stable offset {stable}"
                    );
                    return Err(Broken::new("stable", what));
                }
                let waits = self.waits.entry(place).or_insert((position, now));
                if waits.0 != position || position < stable || !self.is_calm {
                    *waits = (position, now);
                } else if now - waits.1 > END && self.ends.get(&place) != Some(&position) {
                    let what = format!(
                        "position {position} of {topic} [{partition}] is the last stable offset, and no end is reported"
                    );
                    return Err(Broken::new("stable", what));
                }
            }
        }
        Ok(())
    }

    /// Reads a partition again from some offset.
    fn read_again(&mut self, commands: &CommandQueue, rng: &mut Rng) {
        let index = rng.below(self.topics.len() as u64) as usize;
        let (topic, count) = &self.topics[index];
        let partition = rng.below(*count as u64) as i32;
        let place = (index as u32, partition);
        let last = self.last.get(&place).copied().unwrap_or(0);
        let from = rng.below(last as u64 + 1) as i64;
        if let Ok(command) = self.shared.seek(topic, partition, Offset::At(from), None) {
            self.last.remove(&place);
            self.ends.remove(&place);
            self.waits.remove(&place);
            commands.push(Command::Fetch(command));
        }
    }

    /// Returns a partition that was not read to its last stable offset, which is its end.
    pub(super) fn behind(&self, cluster: &mut Cluster) -> Option<String> {
        for (topic, count) in &self.topics {
            for partition in 0..*count {
                let state = cluster.control().partition(topic, partition)?;
                let position = self.shared.partition(topic, partition).ok().and_then(|it| it.position());
                if position.unwrap_or(0) < state.log_end_offset {
                    return Some(format!(
                        "{topic} [{partition}] was read up to {position:?} of {}, {} is stable",
                        state.log_end_offset, state.last_stable_offset
                    ));
                }
            }
        }
        None
    }
}
