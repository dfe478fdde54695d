//! The tasks of a member as sets, and as the heartbeat has them.

use ottla_protocol::generated::streams_group_heartbeat::{StreamsGroupHeartbeatResponse, request, response};
use ottla_sorted::{SortedMap, SortedSet};

use crate::admin::groups::streams_groups::{StreamsTask, StreamsTasks};

/// Tasks by their role. The same task has one role at a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskSets {
    pub(super) active: SortedSet<StreamsTask>,
    pub(super) standby: SortedSet<StreamsTask>,
    pub(super) warmup: SortedSet<StreamsTask>,
}

/// The tasks of a heartbeat request, by role.
pub(super) type RequestTasks =
    (Vec<request::ActiveTask>, Vec<request::StandbyTask>, Vec<request::WarmupTask>);

impl TaskSets {
    /// Returns the tasks of a response; `None` if it has none. Error: it has only some of the roles, or a negative partition.
    pub(super) fn of_response(response: &StreamsGroupHeartbeatResponse) -> Result<Option<Self>, String> {
        let tasks = match (&response.active_tasks, &response.standby_tasks, &response.warmup_tasks) {
            (None, None, None) => return Ok(None),
            (Some(active), Some(standby), Some(warmup)) => Self {
                active: set_of(
                    active.iter().map(|it: &response::ActiveTask| (&it.subtopology_id, &it.partitions)),
                )?,
                standby: set_of(standby.iter().map(|it| (&it.subtopology_id, &it.partitions)))?,
                warmup: set_of(warmup.iter().map(|it| (&it.subtopology_id, &it.partitions)))?,
            },
            _ => return Err("tasks of some roles and not of all".to_owned()),
        };
        Ok(Some(tasks))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    /// Returns the IDs of the subtopologies that have tasks here.
    pub(super) fn subtopologies(&self) -> impl Iterator<Item = &str> {
        let all = self.active.iter().chain(&self.standby).chain(&self.warmup);
        all.map(|task| task.subtopology_id.as_str())
    }

    /// Returns the tasks that `other` does not have in the same role.
    pub(super) fn without(&self, other: &Self) -> Self {
        Self {
            active: &self.active - &other.active,
            standby: &self.standby - &other.standby,
            warmup: &self.warmup - &other.warmup,
        }
    }

    /// Returns the tasks of both.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self {
            active: &self.active | &other.active,
            standby: &self.standby | &other.standby,
            warmup: &self.warmup | &other.warmup,
        }
    }

    /// Returns the tasks as the application sees them.
    pub(super) fn to_tasks(&self) -> StreamsTasks {
        let list = |tasks: &SortedSet<StreamsTask>| tasks.iter().cloned().collect();
        StreamsTasks { active: list(&self.active), standby: list(&self.standby), warmup: list(&self.warmup) }
    }

    /// Returns the tasks as a request has them.
    pub(super) fn to_request(&self) -> RequestTasks {
        let active = by_subtopology(&self.active)
            .map(|(subtopology_id, partitions)| request::ActiveTask { subtopology_id, partitions });
        let standby = by_subtopology(&self.standby)
            .map(|(subtopology_id, partitions)| request::StandbyTask { subtopology_id, partitions });
        let warmup = by_subtopology(&self.warmup)
            .map(|(subtopology_id, partitions)| request::WarmupTask { subtopology_id, partitions });
        (active.collect(), standby.collect(), warmup.collect())
    }
}

fn set_of<'a>(
    tasks: impl Iterator<Item = (&'a String, &'a Vec<i32>)>,
) -> Result<SortedSet<StreamsTask>, String> {
    let mut set = SortedSet::new();
    for (subtopology_id, partitions) in tasks {
        for partition in partitions {
            if *partition < 0 {
                return Err(format!("a task of partition {partition}"));
            }
            set.insert(StreamsTask { subtopology_id: subtopology_id.clone(), partition: *partition });
        }
    }
    Ok(set)
}

fn by_subtopology(tasks: &SortedSet<StreamsTask>) -> impl Iterator<Item = (String, Vec<i32>)> {
    let mut sorted: SortedMap<String, Vec<i32>> = SortedMap::new();
    for task in tasks {
        sorted.entry(task.subtopology_id.clone()).or_default().push(task.partition);
    }
    sorted.into_iter()
}
