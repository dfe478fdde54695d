//! The events of the members in the first phase.

use std::time::Duration;

use ottla_embedded_broker::{ApiKey, CoordinatorKey, ErrorCode, Fault, FaultAction, ScriptScope, ScriptStep};

use super::{GROUP, Run, SESSION, member::State, note_topic};

impl Run {
    pub(super) fn change(&mut self) {
        let subscribed: Vec<usize> =
            (0..self.members.len()).filter(|index| self.members[*index].is_subscribed()).collect();
        let some = subscribed.get(self.rng.below(subscribed.len() as u64) as usize).copied();
        let faults = if self.setup.has_faults { 13 } else { 4 };
        match (self.rng.below(faults), some) {
            (0 | 1, _) if subscribed.len() < 5 => self.start_member(None),
            (2, Some(index)) if subscribed.len() > 1 => self.close(index),
            (3, _) => self.add_partitions(),
            (4, Some(index)) => self.freeze(index),
            (5, Some(index)) => self.cut_off(index),
            (6, _) => self.move_coordinator(),
            (7, _) => self.world.reset_a_link(),
            (8, _) => {
                let time = Duration::from_millis(self.rng.below(3000));
                self.world.stall_a_link(time);
                // Every member may be behind for that long.
                let now = self.world.now;
                self.members.iter_mut().for_each(|member| member.well_since = now + time);
            }
            (9, _) => self.refuse_requests(),
            (10, Some(index)) => {
                let instance = self.members[index].instance.clone();
                self.kill(index);
                // It may be restarted at once.
                let restarts = subscribed.len() < 2 || self.rng.chance(1, 2);
                if restarts {
                    self.start_member(instance);
                }
            }
            (11, Some(index)) if self.setup.is_static && subscribed.len() < 5 && self.rng.chance(1, 3) => {
                let instance = self.members[index].instance.clone();
                self.start_member(instance);
            }
            (12, _) => self.forget_metadata(),
            _ => {}
        }
    }

    /// Adds a partition to a topic.
    fn add_partitions(&mut self) {
        let index = self.rng.below(self.setup.topics.len() as u64) as usize;
        let (name, count) = &mut self.setup.topics[index];
        if *count < 8 && self.rng.chance(1, 2) {
            *count += 1;
            // The topic exists.
            let _ = self.world.cluster.control().create_partitions(name, *count);
            let now = self.world.now;
            note_topic(&mut self.world, now, name, *count);
            self.world.settle_cluster();
        }
    }

    /// Suspends a member's host, in half of the cases for longer than its session.
    fn freeze(&mut self, index: usize) {
        let time = Duration::from_millis(self.rng.below(2 * SESSION.as_millis() as u64));
        self.suspend(index, time);
    }

    /// Suspends a member's host.
    pub(super) fn suspend(&mut self, index: usize, time: Duration) {
        self.summary.frozen += u64::from(time > SESSION);
        let until = self.world.now + time;
        self.members[index].state = State::Suspended(until);
        self.world.suspend(self.members[index].client, until);
    }

    /// Ends a member's process without a farewell.
    pub(super) fn kill(&mut self, index: usize) {
        self.summary.killed += 1;
        let member = &mut self.members[index];
        member.state = State::Gone;
        member.held.clear();
        let client = member.client;
        self.world.kill(client);
    }

    fn cut_off(&mut self, index: usize) {
        let brokers = self.world.cluster.control().brokers();
        let broker = brokers[self.rng.below(brokers.len() as u64) as usize];
        let until = self.world.now + Duration::from_millis(self.rng.below(2 * SESSION.as_millis() as u64));
        let client = self.members[index].client;
        self.world.cut_off(client, broker, until);
        self.cut.push((until, client, broker));
    }

    pub(super) fn move_coordinator(&mut self) {
        let brokers = self.world.cluster.control().brokers();
        let broker = brokers[self.rng.below(brokers.len() as u64) as usize];
        self.world.cluster.control().set_coordinator(CoordinatorKey::Group(GROUP), broker);
        let loading = Duration::from_millis(self.rng.below(1500));
        self.world.cluster.control().load_group(GROUP, loading);
        self.world
            .tell(format_args!("broker {} coordinates the group, and loads it for {loading:?}", broker.0));
        self.world.settle_cluster();
    }

    /// Makes brokers report old metadata until another time, or newer metadata again.
    fn forget_metadata(&mut self) {
        if self.rng.chance(1, 2) {
            self.world.tell(format_args!("brokers report old metadata from now on"));
            self.world.cluster.control().freeze_metadata();
        } else {
            self.world.tell(format_args!("brokers report new metadata again"));
            self.world.cluster.control().thaw_metadata();
        }
    }

    /// Makes brokers refuse the next requests of one kind, or lose their responses.
    fn refuse_requests(&mut self) {
        let apis = [
            ApiKey::JoinGroup,
            ApiKey::SyncGroup,
            ApiKey::Heartbeat,
            ApiKey::ConsumerGroupHeartbeat,
            ApiKey::OffsetCommit,
            ApiKey::OffsetFetch,
        ];
        let errors = [
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode::NOT_COORDINATOR,
            ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ];
        let api = apis[self.rng.below(apis.len() as u64) as usize];
        if self.rng.chance(1, 2) {
            let times = 1 + self.rng.below(2) as u32;
            return self.lose_responses(api, times);
        }
        let steps: Vec<ScriptStep> = (0..1 + self.rng.below(4))
            .map(|_| match self.rng.below(4) {
                3 => ScriptStep::close(),
                index => ScriptStep::error(errors[index as usize]),
            })
            .collect();
        self.world.tell(format_args!("the next {} get {steps:?}", api.name()));
        self.world.cluster.control().script(ScriptScope::Cluster, api as i16, steps);
    }

    /// Handles the next requests of an API, and loses the responses with their connections.
    pub(super) fn lose_responses(&mut self, api: ApiKey, times: u32) {
        self.world.tell(format_args!("the responses to {times} {} are lost", api.name()));
        let fault = Fault::new(FaultAction::LoseResponse).api(api).times(times);
        self.world.cluster.control().inject(fault);
    }
}
