//! The progress of a share group in a partition, for tests and simulators.

use crate::{control::Control, share_partitions::RecordUse};

/// The progress of a share group in a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareProgress {
    /// All records before are acknowledged or archived.
    pub start_offset: i64,
    /// No record from here on was ever delivered.
    pub end_offset: i64,
    /// The records that members have: first and last offset, and member ID.
    pub acquired: Vec<(i64, i64, String)>,
    /// The records from the start offset on that are acknowledged, as ranges.
    pub acknowledged: Vec<(i64, i64)>,
    /// The records from the start offset on that are archived, as ranges.
    pub archived: Vec<(i64, i64)>,
}

impl Control<'_> {
    /// Returns the progress of a share group in a partition, if a member has fetched from it.
    pub fn share_progress(&self, group: &str, topic: &str, partition: i32) -> Option<ShareProgress> {
        let index = self.cluster.topics.by_name(topic)?;
        let state = self.cluster.share_groups.groups.get(group)?.partitions.get(&(index, partition))?;
        let mut progress = ShareProgress {
            start_offset: state.start_offset(),
            end_offset: state.end_offset(),
            ..ShareProgress::default()
        };
        for (first, last, used) in state.uses() {
            match used {
                RecordUse::Available => {}
                RecordUse::Acquired(member) => progress.acquired.push((first, last, member.to_owned())),
                RecordUse::Acknowledged => progress.acknowledged.push((first, last)),
                RecordUse::Archived => progress.archived.push((first, last)),
            }
        }
        Some(progress)
    }
}
