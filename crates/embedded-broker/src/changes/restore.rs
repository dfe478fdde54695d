//! Repeats a change in another cluster.

use bytes::Bytes;
use ottla_protocol::batch::{ChunkPool, HeaderRef, RecordBatchBuilder, SealOptions};
use ottla_sorted::SortedMap;

use super::{Change, ChangedRecord, ConfiguredResource};
use crate::{
    batch::{assign, assign_append_time, read_header},
    cluster::Cluster,
    control::Control,
    groups::CommittedOffset,
    provisioning::Refusal,
    topics::TopicIndex,
};

/// The largest number of records in a restored batch.
const BATCH_RECORDS: usize = 500;
/// The size from which on a restored batch takes no further record, in bytes.
const BATCH_BYTES: usize = 256 << 10;

impl Control<'_> {
    /// Repeats a change. Records keep their offsets, which must not be below the end of the partition.
    ///
    /// # Errors
    ///
    /// What is wrong with the change: the topic does not exist or exists already, a configuration is invalid, an offset is taken.
    pub fn restore(&mut self, change: &Change) -> Result<(), String> {
        let cluster = &mut *self.cluster;
        let done = match change {
            Change::TopicCreated { topic, partitions, configs } => {
                let created = cluster.create_topic(topic, *partitions, -1, sorted(configs), false);
                created.map(|_| ()).map_err(text)
            }
            Change::TopicDeleted { topic } => {
                cluster.existing(topic, 0).map(|index| cluster.delete_topic(index))
            }
            Change::PartitionsAdded { topic, partitions } => {
                let index = cluster.existing(topic, 0);
                index.and_then(|index| cluster.create_partitions(index, *partitions, false).map_err(text))
            }
            Change::ConfigsChanged { resource, name, configs } => {
                cluster.restore_configs(*resource, name, sorted(configs))
            }
            Change::RecordsAppended { topic, partition, records } => {
                cluster.restore_records(topic, *partition, records)
            }
            Change::RecordsDeleted { topic, partition, before } => {
                let index = cluster.existing(topic, *partition);
                index.map(|index| cluster.delete_records_before(index, *partition, *before))
            }
            Change::OffsetCommitted { group, topic, partition, offset, metadata } => {
                let committed = CommittedOffset {
                    offset: *offset,
                    leader_epoch: -1,
                    metadata: metadata.clone(),
                    written: 0,
                };
                cluster.existing(topic, *partition).map(|_| {
                    cluster.commit_offset(group, (topic.clone(), *partition), committed);
                })
            }
            Change::OffsetDeleted { group, topic, partition } => {
                cluster.delete_offset(group, (topic.clone(), *partition));
                Ok(())
            }
            Change::GroupDeleted { group } => {
                cluster.remove_group(group);
                Ok(())
            }
        };
        self.cluster.run();
        done
    }
}

impl Cluster {
    /// Error: the topic or its partition does not exist.
    fn existing(&self, topic: &str, partition: i32) -> Result<TopicIndex, String> {
        let index = self.topics.by_name(topic).ok_or_else(|| format!("topic \"{topic}\" does not exist"))?;
        match self.topics.partition(index, partition) {
            Some(_) => Ok(index),
            None => Err(format!("topic \"{topic}\" has no partition {partition}")),
        }
    }

    fn restore_configs(
        &mut self,
        resource: ConfiguredResource,
        name: &str,
        configs: SortedMap<String, String>,
    ) -> Result<(), String> {
        let done = match resource {
            ConfiguredResource::Topic => {
                let index = self.existing(name, 0)?;
                self.set_topic_configs(index, configs)
            }
            ConfiguredResource::Broker => {
                self.broker_of_resource(name).and_then(|id| self.set_broker_limits(id, configs, false))
            }
            ConfiguredResource::Group => self.set_group_configs(name, configs, false),
            ConfiguredResource::ClientMetrics => self.set_client_metrics_configs(name, configs, false),
        };
        done.map_err(text)
    }

    fn restore_records(
        &mut self,
        topic: &str,
        partition: i32,
        records: &[ChangedRecord],
    ) -> Result<(), String> {
        let index = self.existing(topic, partition)?;
        let has_append_time = self.topics.get(index).is_some_and(|topic| topic.limits.log_append_time);
        let mut rest = records;
        while let [first, ..] = rest {
            let end = self.topics.partition(index, partition).map_or(0, |state| state.log.end_offset());
            if first.offset < end {
                return Err(format!(
                    "offset {} of topic \"{topic}\" [{partition}] is taken: the next one is {end}",
                    first.offset
                ));
            }
            let (batch, after) = rest.split_at(length(rest, has_append_time));
            rest = after;
            self.restore_batch(index, partition, batch, has_append_time)?;
        }
        Ok(())
    }

    /// Appends records with consecutive offsets as one batch.
    fn restore_batch(
        &mut self,
        topic: TopicIndex,
        partition: i32,
        records: &[ChangedRecord],
        has_append_time: bool,
    ) -> Result<(), String> {
        let [first, ..] = records else { return Ok(()) };
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        for record in records {
            let headers = record.headers.iter();
            let headers: Vec<_> =
                headers.map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect();
            builder.append(record.timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
        }
        let sealed = builder.seal(&SealOptions::default());
        let mut batch = sealed.map_err(|_| "the records can't be encoded".to_owned())?.to_vec();
        let Some(state) = self.topics.partition_mut(topic, partition) else { return Ok(()) };
        state.log.skip_to(first.offset);
        assign(&mut batch, first.offset, state.leader_epoch);
        let unreadable = |_| "the records can't be encoded".to_owned();
        if has_append_time {
            assign_append_time(read_header(&batch).map_err(unreadable)?, &mut batch, first.timestamp);
        }
        let header = read_header(&batch).map_err(unreadable)?;
        self.append(topic, partition, &header, header.max_timestamp, Bytes::from(batch));
        Ok(())
    }
}

/// Returns how many of the first records go into one batch. With append times, one batch has one time.
fn length(records: &[ChangedRecord], has_append_time: bool) -> usize {
    let size = |record: &ChangedRecord| {
        let parts = [record.key.as_ref(), record.value.as_ref()];
        parts.into_iter().flatten().map(Vec::len).sum::<usize>()
    };
    let Some(first) = records.first() else { return 0 };
    let mut bytes = 0;
    let next = records.iter().zip(first.offset..).take(BATCH_RECORDS).take_while(|(record, offset)| {
        let has_room = bytes < BATCH_BYTES;
        bytes += size(record);
        record.offset == *offset && has_room && (!has_append_time || record.timestamp == first.timestamp)
    });
    next.count()
}

fn sorted(configs: &[(String, String)]) -> SortedMap<String, String> {
    configs.iter().cloned().collect()
}

fn text((error, message): Refusal) -> String {
    format!("{message} ({})", error.name())
}
