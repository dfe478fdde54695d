//! The assignor of streams groups: active tasks stay where they are as far as that is balanced, and standby tasks go to other
//! processes.

use ottla_sorted::{SortedMap, SortedSet};

use super::{
    member::StreamsMember,
    tasks::{Task, Tasks},
};

/// Sets the target of each member. `tasks` are the numbers of tasks by subtopology; members with another topology than that of
/// `epoch` get none.
pub(super) fn assign(
    members: &mut SortedMap<String, StreamsMember>,
    tasks: &SortedMap<String, i32>,
    epoch: i32,
    standby_replicas: usize,
) {
    let all: Vec<Task> =
        tasks.iter().flat_map(|(id, count)| (0..*count).map(|partition| (id.clone(), partition))).collect();
    let able: Vec<String> = members
        .iter()
        .filter(|(_, member)| member.topology_epoch == epoch)
        .map(|(id, _)| id.clone())
        .collect();
    let mut targets: SortedMap<String, Tasks> =
        able.iter().map(|id| (id.clone(), Tasks::default())).collect();
    if !able.is_empty() {
        let most = all.len().div_ceil(able.len());
        let with_most = all.len() - (most.max(1) - 1) * able.len();
        let mut full = 0;
        let mut left = Vec::new();
        for task in all {
            let owner =
                members.iter().find(|(_, member)| member.target.active.contains(&task)).map(|(id, _)| id);
            let target = owner.and_then(|id| targets.get_mut(id));
            match target.map(|target| &mut target.active) {
                Some(active) if active.len() + 1 < most => {
                    active.insert(task);
                }
                Some(active) if active.len() < most && full < with_most => {
                    full += 1;
                    active.insert(task);
                }
                _ => left.push(task),
            }
        }
        for task in left {
            give(
                &mut targets,
                task,
                |tasks| &mut tasks.active,
                |tasks| tasks.active.len(),
                &SortedSet::new(),
            );
        }
        let owners: Vec<(Task, String)> = targets
            .iter()
            .flat_map(|(id, target)| target.active.iter().map(|task| (task.clone(), id.clone())))
            .collect();
        for (task, owner) in owners {
            let process =
                |id: &String| members.get(id).map(|member| member.process_id.clone()).unwrap_or_default();
            let mut excluded: SortedSet<String> =
                able.iter().filter(|id| process(id) == process(&owner)).cloned().collect();
            for _ in 0..standby_replicas {
                let load = |tasks: &Tasks| tasks.standby.len();
                let Some(to) = give(&mut targets, task.clone(), |tasks| &mut tasks.standby, load, &excluded)
                else {
                    break;
                };
                excluded.insert(to);
            }
        }
    }
    for (id, member) in members.iter_mut() {
        member.target = targets.remove(id).unwrap_or_default();
    }
}

/// Gives a task to the member with the fewest of its role, and returns that.
fn give(
    targets: &mut SortedMap<String, Tasks>,
    task: Task,
    role: impl Fn(&mut Tasks) -> &mut SortedSet<Task>,
    load: impl Fn(&Tasks) -> usize,
    excluded: &SortedSet<String>,
) -> Option<String> {
    let able = targets.iter().filter(|(id, _)| !excluded.contains(*id));
    let id = able.min_by_key(|(_, tasks)| load(tasks)).map(|(id, _)| id.clone())?;
    role(targets.get_mut(&id)?).insert(task);
    Some(id)
}
