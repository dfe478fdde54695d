//! What clients change in a cluster, as a list that another cluster can repeat.
//!
//! [`Control::record_changes`] begins the list, [`Control::take_changes`] takes what is new, [`Control::restore`] repeats a change.
//! Records of a transaction are in the list once it has committed, with their offsets, so that committed offsets of groups stay
//! valid: markers and aborted records leave gaps. Access rules, users, tokens and quotas are not in it, and neither is what
//! retention and compaction remove, because that happens again by itself.

mod restore;

use bytes::Bytes;
use ottla_protocol::batch::{
    ControlRecord,
    reader::{BatchHeader, RecordBatch, Records},
};
use ottla_sorted::SortedMap;

use crate::{
    batch::{UNCOMPRESSED_LIMIT, read_header},
    cluster::Cluster,
    control::Control,
    groups::CommittedOffset,
    topics::TopicIndex,
};

/// A change of what a cluster holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A topic was created.
    TopicCreated {
        /// Its name.
        topic: String,
        /// The number of its partitions.
        partitions: i32,
        /// The names and values that were set.
        configs: Vec<(String, String)>,
    },
    /// A topic was deleted.
    TopicDeleted {
        /// Its name.
        topic: String,
    },
    /// Partitions were added to a topic.
    PartitionsAdded {
        /// The topic's name.
        topic: String,
        /// The number of all its partitions.
        partitions: i32,
    },
    /// The configuration of a resource was replaced.
    ConfigsChanged {
        /// The kind of the resource.
        resource: ConfiguredResource,
        /// Its name.
        name: String,
        /// All names and values that are set now.
        configs: Vec<(String, String)>,
    },
    /// Records were produced, or the transaction that has them was committed.
    RecordsAppended {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The records in the order of their offsets.
        records: Vec<ChangedRecord>,
    },
    /// The records of a partition before an offset were deleted by a client.
    RecordsDeleted {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The first offset that stays.
        before: i64,
    },
    /// A group committed an offset.
    OffsetCommitted {
        /// The group.
        group: String,
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset of the next record to read.
        offset: i64,
        /// What the client stored with it.
        metadata: Option<String>,
    },
    /// A committed offset was deleted.
    OffsetDeleted {
        /// The group.
        group: String,
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// A group was deleted.
    GroupDeleted {
        /// The group.
        group: String,
    },
}

/// A kind of resource with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfiguredResource {
    /// A topic.
    Topic,
    /// A broker, by its ID.
    Broker,
    /// A group.
    Group,
    /// A subscription of client metrics.
    ClientMetrics,
}

/// A record of a [`Change`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedRecord {
    /// The offset.
    pub offset: i64,
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value.
    pub value: Option<Vec<u8>>,
    /// Names and values of the headers.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The changes that were not taken.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    changes: Vec<Change>,
    /// The batches of open transactions, by partition and producer ID.
    open: SortedMap<(TopicIndex, i32, i64), Vec<Bytes>>,
}

impl Control<'_> {
    /// Begins a list of changes.
    pub fn record_changes(&mut self) {
        self.cluster.recorder.get_or_insert_default();
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.cluster
            .recorder
            .as_mut()
            .map(|recorder| std::mem::take(&mut recorder.changes))
            .unwrap_or_default()
    }
}

impl Cluster {
    /// Adds a change to the list, if there is one.
    pub(crate) fn note_change(&mut self, change: impl FnOnce() -> Change) {
        if let Some(recorder) = &mut self.recorder {
            recorder.changes.push(change());
        }
    }

    /// Notes that the configuration of a resource was replaced.
    pub(crate) fn note_configs(
        &mut self,
        resource: ConfiguredResource,
        name: &str,
        configs: &SortedMap<String, String>,
    ) {
        self.note_change(|| Change::ConfigsChanged {
            resource,
            name: name.to_owned(),
            configs: configs.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        });
    }

    /// Notes a commit of a group.
    pub(crate) fn note_commit(&mut self, group: &str, key: &(String, i32), committed: &CommittedOffset) {
        self.note_change(|| Change::OffsetCommitted {
            group: group.to_owned(),
            topic: key.0.clone(),
            partition: key.1,
            offset: committed.offset,
            metadata: committed.metadata.clone(),
        });
    }

    /// Notes an appended batch: at once, or when its transaction commits.
    pub(crate) fn note_batch(
        &mut self,
        topic: TopicIndex,
        partition: i32,
        header: &BatchHeader,
        control: Option<ControlRecord>,
        bytes: &Bytes,
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let key = (topic, partition, header.producer_id);
        let batches = match control {
            Some(ControlRecord::EndTransaction { committed, .. }) => {
                recorder.open.remove(&key).filter(|_| committed).unwrap_or_default()
            }
            _ if header.is_control() => return,
            _ if header.is_transactional() => {
                recorder.open.entry(key).or_default().push(bytes.clone());
                return;
            }
            _ => vec![bytes.clone()],
        };
        let Some(name) = self.topics.get(topic).map(|topic| topic.name.clone()) else { return };
        for batch in batches {
            let records = records(&batch);
            recorder.changes.push(Change::RecordsAppended { topic: name.clone(), partition, records });
        }
    }
}

/// Returns the records of a stored batch. Those behind damage are left out.
fn records(batch: &[u8]) -> Vec<ChangedRecord> {
    let Ok(header) = read_header(batch) else { return Vec::new() };
    let Ok(raw) = RecordBatch::new(header, batch).records(UNCOMPRESSED_LIMIT) else { return Vec::new() };
    let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    let records = Records::new(&header, &raw).map_while(Result::ok).map(|record| ChangedRecord {
        offset: record.offset,
        timestamp: record.timestamp,
        key: owned(record.key),
        value: owned(record.value),
        headers: record.headers().map(|header| (header.key.to_vec(), owned(header.value))).collect(),
    });
    records.collect()
}
