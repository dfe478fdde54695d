//! The contents of the brokers' logs, record by record, for the other checkers.

use ottla_embedded_broker::Cluster;
use ottla_protocol::batch::{Batch, Batches, Records};
use ottla_sorted::SortedMap;

use super::Broken;
use crate::workload::parse_value;

/// All records that were written, including deleted ones.
#[derive(Debug, Default)]
pub struct Log {
    partitions: SortedMap<(u32, i32), SortedMap<i64, Logged>>,
    /// The current log start offsets.
    starts: SortedMap<(u32, i32), i64>,
    history: History,
    /// The number of times that each record was sent, by producer and number.
    sends: SortedMap<(u32, u64), u32>,
}

/// Records that were removed from logs by anything but their producers.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Records deleted on purpose, by the new log start offset.
    deleted: SortedMap<(u32, i32), SortedMap<i64, Logged>>,
    /// Records lost with a topic or with a replica; other records may have their offsets now.
    lost: SortedMap<(u32, i32), SortedMap<i64, Vec<Logged>>>,
    changes: Vec<Change>,
    counts: SortedMap<(u32, i32), u64>,
}

/// Changes of a partition for its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The new log start offset of a partition.
    Start(u32, i32, i64),
    /// The log lost its end, or all of it.
    Cut(u32, i32),
}

impl History {
    /// Deletes a partition's records before `start`.
    pub fn delete(&mut self, cluster: &mut Cluster, topic: &str, index: u32, partition: i32, start: i64) {
        // The check at the end finds logs that can't be read.
        let records = read_partition(cluster, topic, index, partition).unwrap_or_default();
        self.deleted
            .entry((index, partition))
            .or_default()
            .extend(records.range(..start).map(|(offset, logged)| (*offset, *logged)));
        cluster.control().delete_records(topic, partition, start);
        self.note(index, partition, Change::Start(index, partition, start));
    }

    /// Drops a partition's records from `end` on.
    pub fn cut(&mut self, cluster: &mut Cluster, topic: &str, index: u32, partition: i32, end: i64) {
        let before = read_partition(cluster, topic, index, partition).unwrap_or_default();
        cluster.control().truncate_log(topic, partition, end);
        self.lose(index, partition, before);
        // Batches are lost as a whole. A log that is truncated before its start offset gets a lower one.
        let end = cluster.control().partition(topic, partition).map_or(end, |state| state.log_end_offset);
        let again = self.deleted.entry((index, partition)).or_default().split_off(&end);
        self.lose(index, partition, again);
    }

    /// Deletes a topic with all of its records.
    pub fn delete_topic(&mut self, cluster: &mut Cluster, topic: &str, index: u32, partitions: i32) {
        for partition in 0..partitions {
            let mut records = self.deleted.remove(&(index, partition)).unwrap_or_default();
            records.extend(read_partition(cluster, topic, index, partition).unwrap_or_default());
            self.lose(index, partition, records);
        }
        cluster.control().delete_topic(topic);
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the number of changes of a partition.
    pub fn changes_of(&self, index: u32, partition: i32) -> u64 {
        self.counts.get(&(index, partition)).copied().unwrap_or_default()
    }

    fn note(&mut self, index: u32, partition: i32, change: Change) {
        self.changes.push(change);
        *self.counts.entry((index, partition)).or_default() += 1;
    }

    fn lose(&mut self, index: u32, partition: i32, records: SortedMap<i64, Logged>) {
        let lost = self.lost.entry((index, partition)).or_default();
        for (offset, record) in records {
            lost.entry(offset).or_default().push(record);
        }
        self.note(index, partition, Change::Cut(index, partition));
    }
}

/// A written record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The topic's index in the list of topics.
    pub topic: u32,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The number of the producer that sent it.
    pub producer: u32,
    /// Its number there.
    pub number: u64,
    /// Producer ID, epoch and first sequence number of its batch.
    pub sender: (i64, i16, i32),
}

impl Log {
    /// Reads the logs of all partitions.
    pub fn read(
        cluster: &mut Cluster,
        topics: &[(String, i32)],
        history: History,
        sends: SortedMap<(u32, u64), u32>,
    ) -> Result<Self, Broken> {
        let mut log = Self { partitions: history.deleted.clone(), history, sends, ..Self::default() };
        for (index, (topic, partitions)) in topics.iter().enumerate() {
            for partition in 0..*partitions {
                let records = read_partition(cluster, topic, index as u32, partition)
                    .map_err(|what| Broken::new("delivery", format!("{topic} [{partition}]: {what}")))?;
                log.partitions.entry((index as u32, partition)).or_default().extend(records);
                let start = cluster.control().partition(topic, partition).map_or(0, |s| s.log_start_offset);
                log.starts.insert((index as u32, partition), start);
            }
        }
        Ok(log)
    }

    /// Returns all records by topic, partition and offset.
    pub fn records(&self) -> impl Iterator<Item = &Logged> {
        self.partitions.values().flat_map(SortedMap::values)
    }

    /// Returns the records of a partition in order.
    pub fn partition(&self, topic: u32, partition: i32) -> impl Iterator<Item = &Logged> {
        self.partitions.get(&(topic, partition)).into_iter().flat_map(SortedMap::values)
    }

    /// Returns true if the partition lost records, including acknowledged ones.
    pub fn was_cut(&self, topic: u32, partition: i32) -> bool {
        self.history.lost.contains_key(&(topic, partition))
    }

    /// Returns the number of times that a record was sent.
    pub fn sends(&self, producer: u32, number: u64) -> u32 {
        self.sends.get(&(producer, number)).copied().unwrap_or_default()
    }

    /// Returns the partition's log start offset.
    pub fn start(&self, topic: u32, partition: i32) -> i64 {
        self.starts.get(&(topic, partition)).copied().unwrap_or_default()
    }

    /// Returns true if the record is at this offset, or was until it was lost.
    pub fn ever_had(&self, topic: u32, partition: i32, offset: i64, producer: u32, number: u64) -> bool {
        let lost = self.history.lost.get(&(topic, partition)).and_then(|lost| lost.get(&offset));
        let mut all = lost.into_iter().flatten().chain(self.at(topic, partition, offset));
        all.any(|record| (record.producer, record.number) == (producer, number))
    }

    /// Returns the record at an offset.
    pub fn at(&self, topic: u32, partition: i32, offset: i64) -> Option<&Logged> {
        self.partitions.get(&(topic, partition))?.get(&offset)
    }
}

fn read_partition(
    cluster: &mut Cluster,
    topic: &str,
    index: u32,
    partition: i32,
) -> Result<SortedMap<i64, Logged>, String> {
    let mut records = SortedMap::new();
    for bytes in cluster.control().batches(topic, partition) {
        for batch in Batches::new(&bytes) {
            let Ok(Batch::V2(batch)) = batch else { return Err("the log has a damaged batch".into()) };
            batch.verify_crc().map_err(|error| error.to_string())?;
            let raw = batch.records(1 << 30).map_err(|_| "a batch can't be uncompressed".to_owned())?;
            let header = batch.header();
            for record in Records::new(header, &raw) {
                let Ok(record) = record else { return Err("the log has a damaged record".into()) };
                let Some((producer, number)) = record.value.and_then(parse_value) else {
                    return Err("a record that no producer sent".into());
                };
                let sender = (header.producer_id, header.producer_epoch, header.base_sequence);
                let offset = record.offset;
                records.insert(offset, Logged { topic: index, partition, offset, producer, number, sender });
            }
        }
    }
    Ok(records)
}
