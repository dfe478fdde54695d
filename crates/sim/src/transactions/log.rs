//! The brokers' logs, from which follows what readers must see: each record with the fate that its marker decided. The
//! brokers' own list of aborted transactions is not used.

use ottla_embedded_broker::Cluster;
use ottla_protocol::batch::{Batch, Batches, Records, control::ControlRecord};
use ottla_sorted::SortedMap;

use super::ledger::Label;

/// A record in a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logged {
    pub(super) offset: i64,
    pub(super) label: Label,
    /// The producer ID and epoch of its batch.
    pub(super) identity: (i64, i16),
    pub(super) fate: Fate,
}

/// What the marker behind a record decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// There is none.
    Open,
    /// The transaction committed; the offset of the marker.
    Committed(i64),
    /// The transaction aborted; the offset of the marker.
    Aborted(i64),
}

impl Logged {
    /// Returns true if readers of committed records must see it.
    pub(super) const fn is_visible(&self) -> bool {
        matches!(self.fate, Fate::Committed(_))
    }
}

/// Returns the records of a partition in order.
pub(super) fn read(cluster: &mut Cluster, topic: &str, partition: i32) -> Result<Vec<Logged>, String> {
    let mut records: Vec<Logged> = Vec::new();
    // The records of open transactions by producer ID.
    let mut open: SortedMap<i64, Vec<usize>> = SortedMap::new();
    for bytes in cluster.control().batches(topic, partition) {
        for batch in Batches::new(&bytes) {
            let Ok(Batch::V2(batch)) = batch else { return Err("the log has a damaged batch".into()) };
            batch.verify_crc().map_err(|error| error.to_string())?;
            let raw = batch.records(1 << 30).map_err(|_| "a batch can't be uncompressed".to_owned())?;
            let header = batch.header();
            let identity = (header.producer_id, header.producer_epoch);
            for record in Records::new(header, &raw) {
                let Ok(record) = record else { return Err("the log has a damaged record".into()) };
                if header.is_control() {
                    let control = ControlRecord::parse(record.key, record.value);
                    let Ok(ControlRecord::EndTransaction { committed, .. }) = control else { continue };
                    let fate =
                        if committed { Fate::Committed(record.offset) } else { Fate::Aborted(record.offset) };
                    for index in open.remove(&identity.0).unwrap_or_default() {
                        records[index].fate = fate;
                    }
                    continue;
                }
                let Some(label) = record.value.and_then(Label::parse) else {
                    return Err("a record that no producer sent".into());
                };
                if !header.is_transactional() {
                    return Err(format!("offset {} is outside of a transaction", record.offset));
                }
                open.entry(identity.0).or_default().push(records.len());
                records.push(Logged { offset: record.offset, label, identity, fate: Fate::Open });
            }
        }
    }
    Ok(records)
}
