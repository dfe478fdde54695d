//! What the brokers' logs hold, record by record: what the other checkers compare with.

use std::collections::BTreeMap;

use ottla_embedded_broker::Cluster;
use ottla_protocol::batch::{Batch, Batches, Records};

use super::Broken;
use crate::workload::parse_value;

/// All records that were written.
#[derive(Debug, Default)]
pub struct Log {
    partitions: BTreeMap<(u32, i32), BTreeMap<i64, Logged>>,
}

/// A record as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The topic's place in the list of topics.
    pub topic: u32,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The number of the producer that sent it.
    pub producer: u32,
    /// Its number there.
    pub number: u64,
    /// Producer id, epoch and first sequence of its batch.
    pub sender: (i64, i16, i32),
}

impl Log {
    /// Reads the logs of all partitions.
    pub fn read(cluster: &mut Cluster, topics: &[(String, i32)]) -> Result<Self, Broken> {
        let mut log = Self::default();
        for (index, (topic, partitions)) in topics.iter().enumerate() {
            for partition in 0..*partitions {
                let records = read_partition(cluster, topic, index as u32, partition)
                    .map_err(|what| Broken::new("delivery", format!("{topic} [{partition}]: {what}")))?;
                log.partitions.insert((index as u32, partition), records);
            }
        }
        Ok(log)
    }

    /// All records, by topic, partition and offset.
    pub fn records(&self) -> impl Iterator<Item = &Logged> {
        self.partitions.values().flat_map(BTreeMap::values)
    }

    /// The records of a partition, in order.
    pub fn partition(&self, topic: u32, partition: i32) -> impl Iterator<Item = &Logged> {
        self.partitions.get(&(topic, partition)).into_iter().flat_map(BTreeMap::values)
    }

    /// The record at an offset.
    pub fn at(&self, topic: u32, partition: i32, offset: i64) -> Option<&Logged> {
        self.partitions.get(&(topic, partition))?.get(&offset)
    }
}

fn read_partition(
    cluster: &mut Cluster,
    topic: &str,
    index: u32,
    partition: i32,
) -> Result<BTreeMap<i64, Logged>, String> {
    let mut records = BTreeMap::new();
    for bytes in cluster.control().batches(topic, partition) {
        for batch in Batches::new(&bytes) {
            let Ok(Batch::V2(batch)) = batch else { return Err("the log has a damaged batch".into()) };
            batch.verify_crc().map_err(|error| error.to_string())?;
            let raw = batch.records(1 << 30).map_err(|_| "a batch can't be uncompressed".to_owned())?;
            let header = batch.header();
            for record in Records::new(header, &raw) {
                let Ok(record) = record else { return Err("the log has a damaged record".into()) };
                let Some((producer, number)) = record.value.and_then(parse_value) else {
                    return Err("a record that nobody sent".into());
                };
                let sender = (header.producer_id, header.producer_epoch, header.base_sequence);
                let offset = record.offset;
                records.insert(offset, Logged { topic: index, partition, offset, producer, number, sender });
            }
        }
    }
    Ok(records)
}
