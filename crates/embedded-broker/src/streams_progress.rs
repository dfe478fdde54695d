//! The tasks of a streams group as its coordinator sees them, for tests and simulators.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    control::Control,
    groups::{Group, GroupKind, Tasks},
};

/// A streams group as its coordinator sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsProgress {
    /// Kafka's name of the state.
    pub state: String,
    /// The members by ID.
    pub members: BTreeMap<String, StreamsMemberProgress>,
}

/// The tasks of a member: subtopologies and partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsMemberProgress {
    /// The member epoch.
    pub epoch: i32,
    /// The active tasks that the member was told to have, and those that it has to give up.
    pub active: BTreeSet<(String, i32)>,
    /// The same of its standby tasks.
    pub standby: BTreeSet<(String, i32)>,
    /// True if the member has to give up tasks.
    pub is_revoking: bool,
}

impl Control<'_> {
    /// Returns the tasks of a streams group.
    pub fn streams_progress(&self, group: &str) -> Option<StreamsProgress> {
        let Group { kind: GroupKind::Streams(group), .. } = self.cluster.groups.get(group)? else {
            return None;
        };
        let members = group.members.iter().map(|(id, member)| {
            let owned: Tasks = member.owned();
            let progress = StreamsMemberProgress {
                epoch: member.epoch,
                active: owned.active.into_iter().collect(),
                standby: owned.standby.into_iter().collect(),
                is_revoking: member.is_revoking(),
            };
            (id.clone(), progress)
        });
        Some(StreamsProgress { state: group.state_name().to_owned(), members: members.collect() })
    }
}
