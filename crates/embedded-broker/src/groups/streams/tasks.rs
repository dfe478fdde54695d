//! Tasks by role.

use ottla_protocol::generated::streams_group_heartbeat::{StreamsGroupHeartbeatRequest, response};
use ottla_sorted::{SortedMap, SortedSet};

/// A task: the ID of its subtopology, and its partition.
pub(crate) type Task = (String, i32);

/// The tasks of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tasks {
    pub active: SortedSet<Task>,
    pub standby: SortedSet<Task>,
    pub warmup: SortedSet<Task>,
}

/// The tasks of a response, by role.
type ResponseTasks = (Vec<response::ActiveTask>, Vec<response::StandbyTask>, Vec<response::WarmupTask>);

impl Tasks {
    /// Returns the tasks that a heartbeat names, if it does.
    pub fn of_request(body: &StreamsGroupHeartbeatRequest) -> Option<Self> {
        let (active, standby, warmup) =
            (body.active_tasks.as_ref()?, body.standby_tasks.as_ref()?, body.warmup_tasks.as_ref()?);
        Some(Self {
            active: set_of(active.iter().map(|it| (&it.subtopology_id, &it.partitions))),
            standby: set_of(standby.iter().map(|it| (&it.subtopology_id, &it.partitions))),
            warmup: set_of(warmup.iter().map(|it| (&it.subtopology_id, &it.partitions))),
        })
    }

    pub fn to_response(&self) -> ResponseTasks {
        let active = by_subtopology(&self.active)
            .map(|(subtopology_id, partitions)| response::ActiveTask { subtopology_id, partitions });
        let standby = by_subtopology(&self.standby)
            .map(|(subtopology_id, partitions)| response::StandbyTask { subtopology_id, partitions });
        let warmup = by_subtopology(&self.warmup)
            .map(|(subtopology_id, partitions)| response::WarmupTask { subtopology_id, partitions });
        (active.collect(), standby.collect(), warmup.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    pub fn without(&self, other: &Self) -> Self {
        Self {
            active: &self.active - &other.active,
            standby: &self.standby - &other.standby,
            warmup: &self.warmup - &other.warmup,
        }
    }

    pub fn with(&self, other: &Self) -> Self {
        Self {
            active: &self.active | &other.active,
            standby: &self.standby | &other.standby,
            warmup: &self.warmup | &other.warmup,
        }
    }

    pub fn intersection(&self, other: &Self) -> Self {
        Self {
            active: &self.active & &other.active,
            standby: &self.standby & &other.standby,
            warmup: &self.warmup & &other.warmup,
        }
    }

    /// Returns true if it has the task in any role.
    pub fn has(&self, task: &Task) -> bool {
        self.active.contains(task) || self.standby.contains(task) || self.warmup.contains(task)
    }

    /// Returns true if it has any of these tasks in the same role.
    pub fn has_any(&self, tasks: &Self) -> bool {
        !self.intersection(tasks).is_empty()
    }

    /// Returns true if it has all of these tasks in the same role.
    pub fn has_all(&self, tasks: &Self) -> bool {
        tasks.without(self).is_empty()
    }
}

fn set_of<'a>(tasks: impl Iterator<Item = (&'a String, &'a Vec<i32>)>) -> SortedSet<Task> {
    tasks.flat_map(|(id, partitions)| partitions.iter().map(|partition| (id.clone(), *partition))).collect()
}

/// Returns the partitions of each subtopology.
pub(crate) fn by_subtopology(tasks: &SortedSet<Task>) -> impl Iterator<Item = (String, Vec<i32>)> {
    let mut sorted: SortedMap<String, Vec<i32>> = SortedMap::new();
    for (id, partition) in tasks {
        sorted.entry(id.clone()).or_default().push(*partition);
    }
    sorted.into_iter()
}
