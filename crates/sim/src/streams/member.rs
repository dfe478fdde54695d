//! A member's application: it has the tasks that events assign, and gives up those that events revoke.

use std::{sync::Arc, time::Duration};

use ottla_core::{
    admin::groups::streams_groups::{StreamsTask, StreamsTasks},
    cluster::command::{Command, CommandQueue},
    completion::{Waiting, completion},
    group::departure::GroupMembershipOperation,
    machine::Instant,
    rng::Rng,
    streams::{
        StreamsCommand,
        news::{RevocationReason, StreamsEvent, StreamsRevocation},
        shared::StreamsShared,
    },
};
use ottla_sorted::SortedSet;

use super::setup::Setup;
use crate::checkers::Broken;

/// A member with its application.
pub(super) struct Member {
    pub(super) index: usize,
    pub(super) client: usize,
    pub(super) shared: Arc<StreamsShared>,
    pub(super) state: State,
    pub(super) frozen_until: Instant,
    /// The tasks that the application has, by role.
    pub(super) active: SortedSet<StreamsTask>,
    pub(super) standby: SortedSet<StreamsTask>,
    /// Revocations that the application carries out, each until a time.
    pub(super) revoking: Vec<(Instant, StreamsRevocation)>,
    /// Revoked tasks, which the application may have and no event may revoke again.
    revoked: SortedSet<(bool, StreamsTask)>,
    pub(super) assigned: u64,
    pub(super) reassigned: u64,
    pub(super) lost: u64,
}

/// What a member does.
pub(super) enum State {
    Running,
    /// It leaves; until this time it must have left.
    Leaving(Instant, Waiting<()>),
    Left,
    /// Its process died.
    Dead,
}

impl Member {
    pub(super) fn new(index: usize, client: usize, shared: Arc<StreamsShared>) -> Self {
        Self {
            index,
            client,
            shared,
            state: State::Running,
            frozen_until: Instant::ZERO,
            active: SortedSet::new(),
            standby: SortedSet::new(),
            revoking: Vec::new(),
            revoked: SortedSet::new(),
            assigned: 0,
            reassigned: 0,
            lost: 0,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    /// Handles events, and gives up the tasks whose time has come.
    pub(super) fn act(
        &mut self,
        now: Instant,
        commands: &CommandQueue,
        rng: &mut Rng,
        setup: &Setup,
    ) -> Result<(), Broken> {
        while let Some(event) = self.shared.take_event() {
            match event {
                StreamsEvent::Assigned(tasks) => self.take(&tasks)?,
                StreamsEvent::Revoked(revocation) => {
                    self.note_revoked(&revocation, setup)?;
                    let time = rng.jitter(setup.gives_up / 2, 99);
                    self.revoking.push((now + time, revocation));
                }
                _ => {}
            }
        }
        if let Some(error) = self.shared.fatal() {
            return Err(Broken::new("lost", format!("member {} can't continue: {error}", self.index)));
        }
        for (_, revocation) in self.revoking.extract_if(.., |(until, _)| *until <= now).collect::<Vec<_>>() {
            for (is_active, task) in tasks_of(&revocation.tasks) {
                let tasks = if is_active { &mut self.active } else { &mut self.standby };
                tasks.remove(&task);
                self.revoked.remove(&(is_active, task));
            }
            commands.push(Command::Streams(StreamsCommand::Acknowledge(revocation)));
        }
        Ok(())
    }

    fn take(&mut self, tasks: &StreamsTasks) -> Result<(), Broken> {
        for (is_active, task) in tasks_of(tasks) {
            self.assigned += 1;
            let known = if is_active { &mut self.active } else { &mut self.standby };
            if !known.insert(task.clone()) {
                let what = format!("member {} gets {task:?}, which it has", self.index);
                return Err(Broken::new("tasks", what));
            }
        }
        Ok(())
    }

    fn note_revoked(&mut self, revocation: &StreamsRevocation, setup: &Setup) -> Result<(), Broken> {
        for (is_active, task) in tasks_of(&revocation.tasks) {
            let known = if is_active { &self.active } else { &self.standby };
            let is_known = known.contains(&task);
            if !is_known || !self.revoked.insert((is_active, task.clone())) {
                let what = format!(
                    "member {} loses {task:?}, which it does not have or gives up already",
                    self.index
                );
                return Err(Broken::new("tasks", what));
            }
            match revocation.reason {
                RevocationReason::Reassigned => self.reassigned += 1,
                _ => self.lost += 1,
            }
        }
        match &revocation.reason {
            RevocationReason::Lost(error) if !setup.has_faults => {
                Err(Broken::new("lost", format!("member {}: {error}", self.index)))
            }
            _ => Ok(()),
        }
    }

    /// Stops all tasks, and begins to leave.
    pub(super) fn leave(&mut self, now: Instant, timeout: Duration, commands: &CommandQueue) {
        self.forget();
        let (done, waiting) = completion();
        let operation = GroupMembershipOperation::Default;
        commands.push(Command::Streams(StreamsCommand::Leave(timeout, operation, done)));
        self.state = State::Leaving(now + timeout, waiting);
    }

    /// The application has no tasks any more.
    pub(super) fn forget(&mut self) {
        self.active.clear();
        self.standby.clear();
        self.revoked.clear();
        self.revoking.clear();
    }
}

/// Returns tasks, each with whether it is active.
fn tasks_of(tasks: &StreamsTasks) -> impl Iterator<Item = (bool, StreamsTask)> {
    let active = tasks.active.iter().map(|task| (true, task.clone()));
    active.chain(tasks.standby.iter().chain(&tasks.warmup).map(|task| (false, task.clone())))
}
