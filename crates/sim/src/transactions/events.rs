//! The events of the first phase.

use std::time::Duration;

use ottla_core::machine::Instant;
use ottla_embedded_broker::{
    ApiKey, CoordinatorKey, ErrorCode, Fault, FaultAction, ScriptScope, ScriptStep, Tail,
};

use super::{GROUP, Run, application::State, transactional_id};

/// The requests of a transaction.
const APIS: [ApiKey; 6] = [
    ApiKey::Produce,
    ApiKey::EndTxn,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::TxnOffsetCommit,
    ApiKey::InitProducerId,
];

impl Run {
    pub(super) fn change(&mut self) {
        self.replace_failed();
        if !self.setup.has_faults {
            return;
        }
        match self.rng.below(16) {
            0 | 1 => self.move_coordinator(),
            2 => self.lose_responses(),
            3 | 4 => self.deliver_late(),
            5 => self.refuse_requests(),
            6 => self.delay_requests(),
            7 => self.delay_markers(),
            8 => self.world.reset_a_link(),
            9 => {
                let time = Duration::from_millis(self.rng.below(2_000));
                self.world.stall_a_link(time);
            }
            10 => self.cut_off(),
            11 => self.freeze(),
            12 => self.crash(),
            13 => self.replace(),
            14 => self.take_brokers_down(),
            _ => self.move_leaders(),
        }
        if self.setup.is_switched && self.rng.chance(1, 8) {
            let version = self.rng.below(3) as i16;
            self.world.trace.note(self.world.now, format_args!("transaction.version is {version}"));
            self.world.cluster.control().set_transaction_version(version);
        }
    }

    /// Another broker coordinates a `transactional.id` or the group, and loads it for some time.
    pub(super) fn move_coordinator(&mut self) {
        let brokers = self.world.cluster.control().brokers();
        let broker = brokers[self.rng.below(brokers.len() as u64) as usize];
        let loading = Duration::from_millis(self.rng.below(1_000));
        let slots = (self.setup.producers + self.setup.copiers) as u64;
        let slot = self.rng.below(slots + 1);
        self.world
            .trace
            .note(self.world.now, format_args!("the coordinator of {slot} moves to {}", broker.0));
        let mut control = self.world.cluster.control();
        if slot == slots {
            control.set_coordinator(CoordinatorKey::Group(GROUP), broker);
            control.load_group(GROUP, loading);
        } else {
            let id = transactional_id(slot as usize);
            control.set_coordinator(CoordinatorKey::Transaction(&id), broker);
            control.load_transactions(&id, loading);
        }
        self.world.settle_cluster();
    }

    fn some_api(&mut self) -> ApiKey {
        APIS[self.rng.below(APIS.len() as u64) as usize]
    }

    pub(super) fn inject(&mut self, action: FaultAction, api: ApiKey, times: u32) {
        let skip = self.rng.below(4) as u32;
        self.world
            .trace
            .note(self.world.now, format_args!("{times} of {} meet {action:?} after {skip}", api.name()));
        self.world.cluster.control().inject(Fault::new(action).api(api).skip(skip).times(times));
    }

    /// Requests are carried out, and their responses are lost.
    fn lose_responses(&mut self) {
        let (api, times) = (self.some_api(), 1 + self.rng.below(3) as u32);
        self.inject(FaultAction::LoseResponse, api, times);
    }

    /// A request is lost with its connection, and arrives later all the same.
    fn deliver_late(&mut self) {
        let api = self.some_api();
        // A late request for a producer ID fences the producer that has repeated it: nothing can prevent that.
        let api = if api == ApiKey::InitProducerId { ApiKey::Produce } else { api };
        let late = [20, 300, 2 * self.setup.timeout.as_millis() as u64][self.rng.below(3) as usize];
        let late = Duration::from_millis(self.rng.below(late));
        self.registers_late |= matches!(api, ApiKey::AddPartitionsToTxn | ApiKey::AddOffsetsToTxn);
        self.ends_late |= api == ApiKey::EndTxn;
        self.inject(FaultAction::DeliverLate(late), api, 1);
    }

    /// Responses are late, throttled, or never come.
    fn delay_requests(&mut self) {
        let (api, time) = (self.some_api(), Duration::from_millis(self.rng.below(1_500)));
        let action = match self.rng.below(4) {
            0 => FaultAction::NeverRespond,
            1 => FaultAction::CloseConnection,
            _ => FaultAction::Delay(time),
        };
        let times = 1 + self.rng.below(2) as u32;
        self.inject(action, api, times);
    }

    /// Brokers refuse the next requests of one kind with errors that pass.
    fn refuse_requests(&mut self) {
        let api = self.some_api();
        let errors: &[ErrorCode] = match api {
            ApiKey::Produce => &[
                ErrorCode::NOT_LEADER_OR_FOLLOWER,
                ErrorCode::NOT_ENOUGH_REPLICAS,
                ErrorCode::REQUEST_TIMED_OUT,
            ],
            _ => &[
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode::NOT_COORDINATOR,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
                ErrorCode::CONCURRENT_TRANSACTIONS,
            ],
        };
        let steps: Vec<ScriptStep> = (0..1 + self.rng.below(4))
            .map(|_| ScriptStep::error(errors[self.rng.below(errors.len() as u64) as usize]))
            .collect();
        self.world.tell(format_args!("the next {} get {steps:?}", api.name()));
        self.world.cluster.control().script(ScriptScope::Cluster, api as i16, steps);
    }

    /// Markers of a partition are written late, or at once again.
    fn delay_markers(&mut self) {
        let index = self.rng.below(self.setup.topics.len() as u64) as usize;
        let (topic, count) = self.setup.topics[index].clone();
        let partition = self.rng.below(count as u64) as i32;
        let delay = (self.rng.chance(1, 2)).then(|| Duration::from_millis(self.rng.below(3_000)));
        self.world
            .trace
            .note(self.world.now, format_args!("markers of {topic} [{partition}] take {delay:?}"));
        self.world.cluster.control().delay_markers(&topic, partition, delay);
    }

    /// Packets between a client and a broker vanish for some time.
    fn cut_off(&mut self) {
        let client = self.rng.below(self.world.clients.len() as u64) as usize;
        let brokers = self.world.cluster.control().brokers();
        let broker = brokers[self.rng.below(brokers.len() as u64) as usize];
        let until = self.world.now + Duration::from_millis(self.rng.below(4_000));
        self.world.cut_off(client, broker, until);
        self.cut.push((until, client, broker));
    }

    pub(super) fn some_application(&mut self) -> Option<usize> {
        let alive: Vec<usize> =
            (0..self.applications.len()).filter(|index| !self.applications[*index].is_over()).collect();
        alive.get(self.rng.below(alive.len() as u64) as usize).copied()
    }

    /// A host sleeps, in half of the cases for longer than `transaction.timeout.ms`.
    fn freeze(&mut self) {
        let Some(index) = self.some_application() else { return };
        let longest = 2 * self.setup.timeout.min(Duration::from_secs(5)).as_millis() as u64;
        let time = Duration::from_millis(self.rng.below(longest));
        self.suspend(index, time);
    }

    /// Suspends the host of an application.
    pub(super) fn suspend(&mut self, index: usize, time: Duration) {
        self.summary.frozen += u64::from(time > self.setup.timeout);
        let until = self.world.now + time;
        let application = &mut self.applications[index];
        self.world.trace.note(self.world.now, format_args!("{} sleeps for {time:?}", application.client));
        application.frozen_until = until.max(application.frozen_until);
        self.world.suspend(application.client, until);
    }

    /// A process ends. It may be replaced at once, or by the next event. Its epochs may be used up by then, unless an earlier
    /// instance lives: the coordinator reports to such a one an unknown error instead of the fence.
    fn crash(&mut self) {
        let Some(index) = self.some_application() else { return };
        self.kill(index);
        let slot = self.applications[index].slot;
        let is_alone = !self.applications.iter().any(|it| it.slot == slot && !it.is_over());
        if self.rng.chance(1, 4) && is_alone {
            let epoch = i16::MAX - 1 - self.rng.below(4) as i16;
            let id = transactional_id(slot);
            if self.world.cluster.control().set_producer_epoch(&id, epoch) {
                self.exhausted.insert(slot);
                self.world.trace.note(self.world.now, format_args!("{id} has epoch {epoch}"));
            }
        }
        if self.rng.chance(1, 2) {
            self.start(slot);
        }
    }

    /// Ends the processes of a slot, and starts another one.
    pub(super) fn restart(&mut self, slot: usize) {
        for index in 0..self.applications.len() {
            if self.applications[index].slot == slot && !self.applications[index].is_over() {
                self.kill(index);
            }
        }
        self.start(slot);
    }

    pub(super) fn kill(&mut self, index: usize) {
        self.summary.killed += 1;
        let application = &mut self.applications[index];
        application.state = State::Gone;
        application.ended = Some(self.world.now);
        application.drop_call();
        application.frozen_until = Instant::FAR_FUTURE;
        let client = application.client;
        self.world.kill(client);
    }

    /// Another instance starts while one lives.
    pub(super) fn replace(&mut self) {
        let Some(index) = self.some_application() else { return };
        let slot = self.applications[index].slot;
        let alive = self.applications.iter().filter(|it| it.slot == slot && !it.is_over());
        if alive.count() < 2 {
            self.start(slot);
        }
    }

    pub(super) fn take_brokers_down(&mut self) {
        let brokers = self.world.cluster.control().brokers();
        let broker = brokers[self.rng.below(brokers.len() as u64) as usize];
        let is_alive = self.world.cluster.control().is_alive(broker);
        let alive = brokers.iter().filter(|broker| self.world.cluster.control().is_alive(**broker)).count();
        let tail = if self.setup.loses_tails && self.rng.chance(1, 2) { Tail::Lost } else { Tail::Kept };
        self.world.trace.note(
            self.world.now,
            format_args!("broker {} is {}", broker.0, if is_alive { "killed" } else { "restarted" }),
        );
        let mut control = self.world.cluster.control();
        if !is_alive {
            control.restart_broker(broker);
        } else if alive > 1 || self.rng.chance(1, 4) {
            control.kill_broker(broker, tail);
        }
        self.world.settle_cluster();
    }

    fn move_leaders(&mut self) {
        self.world.trace.note(self.world.now, format_args!("leaders move"));
        self.world.cluster.control().rotate_leaders();
        self.world.settle_cluster();
    }
}
