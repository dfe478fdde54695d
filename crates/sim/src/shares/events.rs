//! The events of the first phase.

use std::time::Duration;

use ottla_core::machine::Instant;
use ottla_embedded_broker::{
    ApiKey, BrokerId, CoordinatorKey, ErrorCode, Fault, FaultAction, ScriptScope, ScriptStep, Tail,
};

use super::{GROUP, LEAVE, Run, TOPIC, member::State};

/// The requests of a share consumer.
const APIS: [ApiKey; 3] = [ApiKey::ShareFetch, ApiKey::ShareAcknowledge, ApiKey::ShareGroupHeartbeat];

impl Run {
    /// Something happens in a world with faults.
    pub(super) fn change(&mut self) {
        match self.rng.below(14) {
            0 => self.move_leaders(),
            1 => self.move_coordinator(),
            2 => {
                let api = self.some_api();
                self.inject(FaultAction::LoseResponse, api, 1);
            }
            3 => self.refuse_requests(),
            4 | 5 => self.delay_requests(),
            6 => self.world.reset_a_link(),
            7 => {
                let time = Duration::from_millis(self.rng.below(2_000));
                self.world.stall_a_link(time);
            }
            8 => self.cut_off(),
            9 => self.freeze(),
            10 => self.crash(),
            11 => self.part(),
            12 => self.take_brokers_down(),
            _ => self.start_member(),
        }
    }

    fn some_api(&mut self) -> ApiKey {
        APIS[self.rng.below(APIS.len() as u64) as usize]
    }

    pub(super) fn some_broker(&mut self) -> BrokerId {
        let brokers = self.world.cluster.control().brokers();
        brokers[self.rng.below(brokers.len() as u64) as usize]
    }

    pub(super) fn inject(&mut self, action: FaultAction, api: ApiKey, times: u32) {
        self.world.trace.note(self.world.now, format_args!("{times} of {} meet {action:?}", api.name()));
        self.world.cluster.control().inject(Fault::new(action).api(api).times(times));
    }

    pub(super) fn move_leaders(&mut self) {
        let (partition, broker) = (self.rng.below(self.setup.partitions as u64) as i32, self.some_broker());
        let mut control = self.world.cluster.control();
        let now = self.world.now;
        if control.is_alive(broker) && control.move_leader(TOPIC, partition, Some(broker)) {
            self.world.trace.note(now, format_args!("{broker:?} leads [{partition}]"));
        }
        self.world.settle_cluster();
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

    /// Brokers refuse the next requests of one kind.
    pub(super) fn refuse_requests(&mut self) {
        let api = self.some_api();
        let errors: &[ErrorCode] = match api {
            ApiKey::ShareGroupHeartbeat => &[
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode::NOT_COORDINATOR,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
                ErrorCode::UNKNOWN_MEMBER_ID,
                ErrorCode::FENCED_MEMBER_EPOCH,
            ],
            _ => &[
                ErrorCode::SHARE_SESSION_NOT_FOUND,
                ErrorCode::INVALID_SHARE_SESSION_EPOCH,
                ErrorCode::SHARE_SESSION_LIMIT_REACHED,
            ],
        };
        let steps: Vec<ScriptStep> = (0..1 + self.rng.below(3))
            .map(|_| ScriptStep::error(errors[self.rng.below(errors.len() as u64) as usize]))
            .collect();
        self.world.trace.note(self.world.now, format_args!("{} is refused", api.name()));
        self.world.cluster.control().script(ScriptScope::Cluster, api as i16, steps);
    }

    fn delay_requests(&mut self) {
        let (api, time) = (self.some_api(), Duration::from_millis(self.rng.below(1_500)));
        let action = match self.rng.below(4) {
            0 => FaultAction::NeverRespond,
            1 => FaultAction::CloseConnection,
            _ => FaultAction::Delay(time),
        };
        self.inject(action, api, 1);
    }

    /// Packets between a client and a broker vanish for some time.
    fn cut_off(&mut self) {
        let client = self.rng.below(self.world.clients.len() as u64) as usize;
        let broker = self.some_broker();
        let until = self.world.now + Duration::from_millis(self.rng.below(4_000));
        self.world.cut_off(client, broker, until);
        self.cut.push((until, client, broker));
    }

    pub(super) fn some_member(&mut self) -> Option<usize> {
        let running: Vec<usize> =
            (0..self.members.len()).filter(|index| self.members[*index].is_running()).collect();
        running.get(self.rng.below(running.len().max(1) as u64) as usize).copied()
    }

    /// A member's host sleeps.
    fn freeze(&mut self) {
        let Some(index) = self.some_member() else { return };
        let until = self.world.now + Duration::from_millis(self.rng.below(8_000));
        self.members[index].frozen_until = until;
        self.world.suspend(self.members[index].client, until);
    }

    /// A member's process dies.
    pub(super) fn crash(&mut self) {
        let Some(index) = self.some_member() else { return };
        self.world.kill(self.members[index].client);
        self.members[index].state = State::Dead;
        self.ledger.forget(index);
        self.summary.killed += 1;
        self.start_member();
    }

    /// A member leaves, and another one joins.
    pub(super) fn part(&mut self) {
        let Some(index) = self.some_member() else { return };
        let commands = std::sync::Arc::clone(&self.world.clients[self.members[index].client].commands);
        self.world.tell(format_args!("member {index} leaves"));
        self.members[index].leave(self.world.now, LEAVE, &commands);
        self.start_member();
    }

    fn take_brokers_down(&mut self) {
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
