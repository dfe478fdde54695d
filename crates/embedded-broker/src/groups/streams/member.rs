//! A member of a streams group: what it says about itself, its epoch and its tasks.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode, generated::streams_group_heartbeat::StreamsGroupHeartbeatRequest, time::Instant,
};
use ottla_sorted::SortedMap;

use super::tasks::{Task, Tasks};
use crate::provisioning::Refusal;

/// One member.
#[derive(Debug)]
pub(crate) struct StreamsMember {
    pub epoch: i32,
    pub instance_id: Option<String>,
    pub rack_id: Option<String>,
    pub client_id: String,
    pub process_id: String,
    pub topology_epoch: i32,
    /// Host and port of the application.
    pub endpoint: Option<(String, u16)>,
    pub client_tags: SortedMap<String, String>,
    /// How far the member has restored its tasks, and the ends of their changelogs.
    pub offsets: SortedMap<Task, i64>,
    pub end_offsets: SortedMap<Task, i64>,
    /// The member's target assignment.
    pub target: Tasks,
    /// The tasks that the member was told to have.
    pub assigned: Tasks,
    /// The member was asked for the description of its topology since it joined.
    pub(super) is_asked: bool,
    pub(super) previous_epoch: i32,
    pub(super) progress: Progress,
    /// Tasks that the member was asked to give up and may still have.
    pub(super) revoking: Tasks,
    pub(super) rebalance_timeout: Duration,
    /// The time at which the member's session expires without a heartbeat.
    pub(super) expires: Instant,
    /// The deadline for giving up `revoking`; the member is removed afterwards.
    pub(super) revokes_until: Instant,
}

/// A member's progress towards its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Stable,
    /// The member has to give up tasks first.
    Revoking,
    /// Other members have to give up tasks of its target first.
    Waiting,
}

impl StreamsMember {
    pub(super) fn new() -> Self {
        Self {
            epoch: 0,
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            process_id: String::new(),
            topology_epoch: 0,
            endpoint: None,
            client_tags: SortedMap::new(),
            offsets: SortedMap::new(),
            end_offsets: SortedMap::new(),
            target: Tasks::default(),
            assigned: Tasks::default(),
            is_asked: false,
            previous_epoch: 0,
            progress: Progress::Stable,
            revoking: Tasks::default(),
            rebalance_timeout: Duration::ZERO,
            expires: Instant::FAR_FUTURE,
            revokes_until: Instant::FAR_FUTURE,
        }
    }

    /// Updates the member from a heartbeat; returns true if something changed that the assignment depends on.
    pub(super) fn update(&mut self, body: &StreamsGroupHeartbeatRequest, client_id: &str) -> bool {
        client_id.clone_into(&mut self.client_id);
        self.is_asked &= body.member_epoch != 0;
        let before =
            (self.process_id.clone(), self.topology_epoch, self.endpoint.clone(), self.rack_id.clone());
        if body.instance_id.is_some() {
            self.instance_id.clone_from(&body.instance_id);
        }
        if body.rack_id.is_some() {
            self.rack_id.clone_from(&body.rack_id);
        }
        if let Some(process_id) = &body.process_id {
            self.process_id.clone_from(process_id);
        }
        if let Some(topology) = &body.topology {
            self.topology_epoch = topology.epoch;
        }
        if let Some(endpoint) = &body.user_endpoint {
            self.endpoint = Some((endpoint.host.clone(), endpoint.port));
        }
        if let Some(tags) = &body.client_tags {
            self.client_tags = tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect();
        }
        if let Ok(timeout) = u64::try_from(body.rebalance_timeout_ms) {
            self.rebalance_timeout = Duration::from_millis(timeout);
        }
        self.note_offsets(body);
        before != (self.process_id.clone(), self.topology_epoch, self.endpoint.clone(), self.rack_id.clone())
    }

    /// Takes the offsets of the member's tasks. Those of others would only take memory.
    fn note_offsets(&mut self, body: &StreamsGroupHeartbeatRequest) {
        let owned = self.owned();
        self.offsets.retain(|task, _| owned.has(task));
        self.end_offsets.retain(|task, _| owned.has(task));
        let of_task = |id: &str, partition| Some((id.to_owned(), partition)).filter(|task| owned.has(task));
        for reported in body.task_offsets.iter().flatten() {
            let task = of_task(&reported.subtopology_id, reported.partition);
            self.offsets.extend(task.map(|task| (task, reported.offset)));
        }
        for reported in body.task_end_offsets.iter().flatten() {
            let task = of_task(&reported.subtopology_id, reported.partition);
            self.end_offsets.extend(task.map(|task| (task, reported.offset)));
        }
    }

    /// Checks the member's epoch; epoch 0 joins again. The previous epoch is accepted if the member has no task that it should
    /// not have, because the response with the new epoch may have been lost.
    pub(super) fn check_epoch(&self, body: &StreamsGroupHeartbeatRequest) -> Result<(), Refusal> {
        let (reported, known) = (body.member_epoch, self.epoch);
        let word = match reported.cmp(&known) {
            _ if reported == 0 => return Ok(()),
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => "greater",
            std::cmp::Ordering::Less => {
                let owned = Tasks::of_request(body);
                if reported == self.previous_epoch && owned.is_some_and(|owned| self.assigned.has_all(&owned))
                {
                    return Ok(());
                }
                "smaller"
            }
        };
        let message = format!(
            "The streams group member has a {word} member epoch ({reported}) than the one known by the group coordinator \
             ({known}). The member must abandon all its tasks and rejoin."
        );
        Err((ErrorCode::FENCED_MEMBER_EPOCH, message))
    }

    /// Returns the tasks that the member may have.
    pub fn owned(&self) -> Tasks {
        self.assigned.with(&self.revoking)
    }

    /// Returns true if the member has to give up tasks.
    pub fn is_revoking(&self) -> bool {
        self.progress == Progress::Revoking
    }

    pub(super) fn is_stable_in(&self, epoch: i32) -> bool {
        self.progress == Progress::Stable && self.epoch == epoch
    }

    pub(super) fn due(&self) -> Instant {
        self.expires.min(self.revokes_until)
    }
}
