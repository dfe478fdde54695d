//! The events of the first phase.

use std::{sync::Arc, time::Duration};

use ottla_core::machine::Instant;
use ottla_embedded_broker::{
    ApiKey, BrokerId, CoordinatorKey, ErrorCode, Fault, FaultAction, ScriptScope, ScriptStep, Tail,
};

use super::{GROUP, LEAVE, Run, member::State};

const HEARTBEATS: ApiKey = ApiKey::StreamsGroupHeartbeat;
const DESCRIPTIONS: ApiKey = ApiKey::StreamsGroupTopologyDescriptionUpdate;

impl Run {
    /// Something happens.
    pub(super) fn change(&mut self) {
        if !self.setup.has_faults {
            return match self.rng.below(4) {
                0 => self.part(),
                1 => self.start_member(),
                2 => self.lose_description(),
                _ => {}
            };
        }
        match self.rng.below(16) {
            0 => self.move_coordinator(),
            1 | 2 => self.inject(FaultAction::LoseResponse),
            3 => self.refuse_heartbeats(),
            4 => {
                let time = Duration::from_millis(self.rng.below(1_500));
                self.inject(FaultAction::Delay(time));
            }
            5 => self.inject(FaultAction::NeverRespond),
            6 => self.world.reset_a_link(),
            7 => {
                let time = Duration::from_millis(self.rng.below(2_000));
                self.world.stall_a_link(time);
            }
            8 => self.cut_off(),
            9 => self.freeze(),
            10 => self.crash(),
            11 => self.part(),
            12 => self.take_a_broker_down(),
            13 => self.lose_description(),
            14 => self.refuse_descriptions(),
            _ => self.start_member(),
        }
    }

    fn some_broker(&mut self) -> BrokerId {
        let brokers = self.world.cluster.control().brokers();
        brokers[self.rng.below(brokers.len() as u64) as usize]
    }

    /// A heartbeat, or a description of the topology, meets a fault.
    pub(super) fn inject(&mut self, action: FaultAction) {
        if self.rng.below(4) == 0 {
            return self.inject_into_descriptions(action);
        }
        self.world.trace.note(self.world.now, format_args!("a heartbeat meets {action:?}"));
        self.world.cluster.control().inject(Fault::new(action).api(HEARTBEATS).times(1));
    }

    /// A description of the topology meets a fault.
    pub(super) fn inject_into_descriptions(&mut self, action: FaultAction) {
        self.world.trace.note(self.world.now, format_args!("a description meets {action:?}"));
        self.world.cluster.control().inject(Fault::new(action).api(DESCRIPTIONS).times(1));
    }

    /// The brokers lose the description of the topology.
    pub(super) fn lose_description(&mut self) {
        self.world.trace.note(self.world.now, format_args!("the description is lost"));
        self.world.cluster.control().lose_topology_description(GROUP);
    }

    /// The coordinator refuses the next descriptions.
    pub(super) fn refuse_descriptions(&mut self) {
        const ERRORS: [ErrorCode; 3] = [
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode::NOT_COORDINATOR,
            ErrorCode::STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
        ];
        let steps: Vec<ScriptStep> = (0..1 + self.rng.below(3))
            .map(|_| ScriptStep::error(ERRORS[self.rng.below(ERRORS.len() as u64) as usize]))
            .collect();
        self.world.trace.note(self.world.now, format_args!("descriptions are refused"));
        self.world.cluster.control().script(ScriptScope::Cluster, DESCRIPTIONS as i16, steps);
    }

    pub(super) fn move_coordinator(&mut self) {
        let broker = self.some_broker();
        let loading = Duration::from_millis(self.rng.below(1_000));
        self.world.trace.note(self.world.now, format_args!("{broker:?} coordinates the group"));
        let mut control = self.world.cluster.control();
        control.set_coordinator(CoordinatorKey::Group(GROUP), broker);
        control.load_group(GROUP, loading);
        self.world.settle_cluster();
    }

    /// The coordinator refuses the next heartbeats.
    pub(super) fn refuse_heartbeats(&mut self) {
        const ERRORS: [ErrorCode; 5] = [
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode::NOT_COORDINATOR,
            ErrorCode::COORDINATOR_NOT_AVAILABLE,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::FENCED_MEMBER_EPOCH,
        ];
        let steps: Vec<ScriptStep> = (0..1 + self.rng.below(3))
            .map(|_| ScriptStep::error(ERRORS[self.rng.below(ERRORS.len() as u64) as usize]))
            .collect();
        self.world.trace.note(self.world.now, format_args!("heartbeats are refused"));
        self.world.cluster.control().script(ScriptScope::Cluster, HEARTBEATS as i16, steps);
    }

    /// Packets between a client and a broker vanish for some time.
    fn cut_off(&mut self) {
        let client = self.rng.below(self.world.clients.len() as u64) as usize;
        let broker = self.some_broker();
        let until = self.world.now + Duration::from_millis(self.rng.below(9_000));
        self.world.cut_off(client, broker, until);
        self.cut.push((until, client, broker));
    }

    fn some_member(&mut self) -> Option<usize> {
        let running: Vec<usize> =
            (0..self.members.len()).filter(|index| self.members[*index].is_running()).collect();
        running.get(self.rng.below(running.len().max(1) as u64) as usize).copied()
    }

    /// A member's host sleeps.
    fn freeze(&mut self) {
        let Some(index) = self.some_member() else { return };
        let until = self.world.now + Duration::from_millis(self.rng.below(9_000));
        self.members[index].frozen_until = until;
        self.world.suspend(self.members[index].client, until);
    }

    /// A member's process dies.
    fn crash(&mut self) {
        let Some(index) = self.some_member() else { return };
        self.world.kill(self.members[index].client);
        self.members[index].state = State::Dead;
        self.members[index].forget();
        self.killed += 1;
        self.start_member();
    }

    /// A member leaves, and another one joins.
    pub(super) fn part(&mut self) {
        let Some(index) = self.some_member() else { return };
        let commands = Arc::clone(&self.world.clients[self.members[index].client].commands);
        self.world.tell(format_args!("member {index} leaves"));
        self.members[index].leave(self.world.now, LEAVE, &commands);
        self.start_member();
    }

    fn take_a_broker_down(&mut self) {
        let broker = self.some_broker();
        if self.setup.brokers < 2 || !self.world.cluster.control().is_alive(broker) {
            return;
        }
        let until = self.world.now + Duration::from_millis(200 + self.rng.below(3_000));
        self.world.trace.note(self.world.now, format_args!("{broker:?} is down"));
        self.world.cluster.control().kill_broker(broker, Tail::Kept);
        self.world.settle_cluster();
        self.down.push((until, broker));
    }

    /// Ends faults whose time is over.
    pub(super) fn end_faults(&mut self, now: Instant) {
        for (_, client, broker) in self.cut.extract_if(.., |(until, ..)| *until <= now).collect::<Vec<_>>() {
            self.world.partitioned.remove(&(client, broker));
        }
        for (_, broker) in self.down.extract_if(.., |(until, _)| *until <= now).collect::<Vec<_>>() {
            self.world.cluster.control().restart_broker(broker);
            self.world.settle_cluster();
        }
    }
}
