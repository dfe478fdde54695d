//! The checks of every step, and those after the first phase.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ottla_core::{admin::groups::streams_groups::StreamsTask, machine::Instant};
use ottla_embedded_broker::StreamsProgress;
use ottla_sorted::SortedSet;

use super::{ASKS_AGAIN, GROUP, LEAVE, REBALANCE, Run, SESSION, SOURCE, member::State};
use crate::checkers::Broken;

/// Tasks as subtopology and partition.
type Tasks = BTreeSet<(String, i32)>;

fn tasks_of(tasks: &SortedSet<StreamsTask>) -> Tasks {
    tasks.iter().map(|task| (task.subtopology_id.clone(), task.partition)).collect()
}

impl Run {
    fn progress(&mut self) -> StreamsProgress {
        self.world.cluster.control().streams_progress(GROUP).unwrap_or_default()
    }

    /// No active task is two members' at the coordinator, and no application has a task that the coordinator does not count as
    /// its member's. A member that the coordinator has removed may not know it yet.
    pub(super) fn check_owners(&mut self) -> Result<(), Broken> {
        let progress = self.progress();
        let mut owners: BTreeMap<&(String, i32), &String> = BTreeMap::new();
        for (id, member) in &progress.members {
            for task in &member.active {
                if let Some(other) = owners.insert(task, id) {
                    return Err(Broken::new(
                        "exclusive",
                        format!("the coordinator gives {task:?} to {id} and {other}"),
                    ));
                }
            }
        }
        for member in self.members.iter().filter(|member| member.is_running()) {
            let id = member.shared.membership().member_id;
            let Some(known) = progress.members.get(&id) else { continue };
            let has = tasks_of(&member.active);
            if let Some(task) = has.difference(&known.active).next() {
                let what = format!("member {} has {task:?} after it was reported as given up", member.index);
                return Err(Broken::new("exclusive", what));
            }
        }
        if self.setup.has_faults {
            return Ok(());
        }
        let mut owners: BTreeMap<(String, i32), usize> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.is_running()) {
            for task in tasks_of(&member.active) {
                if let Some(other) = owners.insert(task.clone(), member.index) {
                    let what = format!("members {} and {other} have {task:?}", member.index);
                    return Err(Broken::new("exclusive", what));
                }
            }
        }
        Ok(())
    }

    /// Each description was sent by a member that was asked, and without faults there are no more of them than questions. A member
    /// that is asked may leave before it sends one.
    pub(super) fn check_descriptions(&mut self) -> Result<(), Broken> {
        let description = self.progress().description;
        self.pushed = description.pushed;
        let is_right = description.unasked == 0
            && description.is_stored
            && (self.setup.has_faults || description.pushed <= description.asked);
        if is_right { Ok(()) } else { Err(Broken::new("description", format!("{description:?}"))) }
    }

    /// Waits until each task is active at one member, and applications have what the coordinator says.
    pub(super) fn drain(&mut self) -> Result<(), Broken> {
        // A member that does not give up its tasks is removed after the rebalance timeout, and one that sleeps after its session.
        // The coordinator asks another member for the description if one that was asked is gone.
        let patience = SESSION + (REBALANCE + self.setup.gives_up) * 3 + Duration::from_secs(30) + ASKS_AGAIN;
        let deadline = self.awake() + patience;
        loop {
            let until = self.world.now + Duration::from_millis(200);
            while self.world.now < until {
                self.step()?;
            }
            let Some(what) = self.unfinished() else { return Ok(()) };
            if self.world.now > deadline {
                return Err(Broken::new("drain", what));
            }
        }
    }

    /// Returns when no host sleeps any more.
    fn awake(&self) -> Instant {
        let until = self.members.iter().map(|member| member.frozen_until).max();
        until.unwrap_or(Instant::ZERO).max(self.world.now)
    }

    /// Returns what is not as it must be at the end.
    fn unfinished(&mut self) -> Option<String> {
        let progress = self.progress();
        let partitions = self.setup.partitions;
        let all: Tasks = ["0", "1"]
            .iter()
            .flat_map(|id| (0..partitions).map(|number| ((*id).to_owned(), number)))
            .collect();
        let mut active = Tasks::new();
        for member in self.members.iter().filter(|member| member.is_running()) {
            let membership = member.shared.membership();
            let known = match progress.members.get(&membership.member_id) {
                Some(known) if membership.epoch == Some(known.epoch) && !known.is_revoking => known,
                known => {
                    return Some(format!(
                        "member {} is in epoch {:?}: {known:?}",
                        member.index, membership.epoch
                    ));
                }
            };
            let (has, stands_by) = (tasks_of(&member.active), tasks_of(&member.standby));
            if has != known.active || stands_by != known.standby {
                return Some(format!("member {} has {has:?} and {stands_by:?}: {known:?}", member.index));
            }
            active.extend(has);
        }
        if active != all {
            return Some(format!("{active:?} of {SOURCE} are active: {progress:?}"));
        }
        (!progress.description.is_stored).then(|| format!("the description is missing: {progress:?}"))
    }

    /// All members leave in time, and the group is empty.
    pub(super) fn leave_all(&mut self) -> Result<(), Broken> {
        for index in 0..self.members.len() {
            if self.members[index].is_running() {
                let commands = Arc::clone(&self.world.clients[self.members[index].client].commands);
                self.members[index].leave(self.world.now, LEAVE, &commands);
            }
        }
        let deadline = self.awake() + LEAVE + Duration::from_secs(1);
        while self.members.iter().any(|member| matches!(member.state, State::Leaving(..))) {
            self.step()?;
            if self.world.now > deadline {
                return Err(Broken::new("close", "a member does not leave"));
            }
        }
        // The sessions of members whose process died, or whose last heartbeat was lost, end by themselves.
        let patience = if self.setup.has_faults { SESSION } else { Duration::ZERO };
        let deadline = self.world.now + patience + Duration::from_millis(100);
        loop {
            let progress = self.progress();
            if progress.members.is_empty() {
                return Ok(());
            }
            if self.world.now > deadline {
                return Err(Broken::new("close", format!("all members have left: {progress:?}")));
            }
            self.step()?;
        }
    }
}
