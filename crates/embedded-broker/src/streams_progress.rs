//! A streams group as its coordinator sees it, for tests and simulators.

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
    /// The description of the topology.
    pub description: StreamsDescriptionProgress,
}

/// The description of a topology (KIP-1331) on its way to the brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamsDescriptionProgress {
    /// How often the coordinator asked a member.
    pub asked: u64,
    /// How often a member sent it.
    pub pushed: u64,
    /// How often a member sent it that was not asked since it joined.
    pub unasked: u64,
    /// The brokers have the description.
    pub is_stored: bool,
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
        let epoch = group.topology.as_ref().map(|topology| topology.epoch);
        let description = StreamsDescriptionProgress {
            asked: group.descriptions.asked,
            pushed: group.descriptions.pushed,
            unasked: group.descriptions.unasked,
            is_stored: epoch.is_some_and(|epoch| group.descriptions.of_epoch(epoch).is_some()),
        };
        let state = group.state_name().to_owned();
        Some(StreamsProgress { state, members: members.collect(), description })
    }

    /// Makes the brokers lose the description of a streams group's topology: the coordinator asks for it again.
    pub fn lose_topology_description(&mut self, group: &str) {
        if let Some(Group { kind: GroupKind::Streams(group), .. }) = self.cluster.groups.get_mut(group) {
            group.descriptions.forget();
        }
    }
}
