//! Faults of brokers: they are killed, slow, replaced, and lose or gain leadership.

use std::time::Duration;

use ottla_core::{machine::Instant, rng::Rng};
use ottla_embedded_broker::{BrokerId, Tail};
use ottla_protocol::api::ApiKey;

use super::{FaultKind, Heal, Strike};
use crate::{knobs::Knobs, world::World};

/// The lowest and some highest versions of releases.
const SOME_VERSIONS: [(ApiKey, i16, &[i16]); 5] = [
    (ApiKey::Produce, 3, &[3, 7, 9, 12, 13]),
    (ApiKey::Fetch, 4, &[4, 7, 11, 12, 13, 15, 18]),
    (ApiKey::Metadata, 0, &[4, 7, 9, 12, 13]),
    (ApiKey::ListOffsets, 1, &[1, 2, 5, 9, 11]),
    (ApiKey::InitProducerId, 0, &[0, 2, 4, 5]),
];

/// The first version of Metadata responses with topic IDs.
const FIRST_WITH_IDS: i16 = 10;

/// The last version in which both Produce and Fetch identify topics by name.
const LAST_BY_NAME: i16 = 12;

impl Strike<'_> {
    /// Injects a fault of these kinds; returns false if it is of another kind.
    pub(super) fn strike_brokers(&mut self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::KillBroker => self.kill_broker(),
            FaultKind::RotateLeaders => self.rotate_leaders(),
            FaultKind::MoveLeader => self.move_leader(),
            FaultKind::SlowBroker => self.slow_broker(),
            FaultKind::FreezeMetadata => self.freeze_metadata(),
            FaultKind::ReplaceBroker => self.replace_broker(),
            FaultKind::EvictFetchSessions => self.evict_fetch_sessions(),
            FaultKind::MoveController => self.move_controller(),
            _ => return false,
        }
        true
    }

    /// Kills a broker.
    fn kill_broker(&mut self) {
        let (broker, until) = (self.broker, self.until);
        let tail = if self.knobs.lossy && self.rng.chance(1, 2) { Tail::Lost } else { Tail::Kept };
        kill(self.knobs, self.world, broker, tail);
        self.heals.push((until, Heal::Restart(broker)));
    }

    /// Moves every leader to another replica.
    fn rotate_leaders(&mut self) {
        let now = self.world.now;
        if !self.world.cluster.control().has_quorum() {
            return;
        }
        self.world.trace.note(now, format_args!("all leaders rotate"));
        self.world.cluster.control().rotate_leaders();
    }

    /// Moves the leader of a partition.
    fn move_leader(&mut self) {
        let (now, broker, topic, partition) =
            (self.world.now, self.broker, self.topic.clone(), self.partition);
        if !self.world.cluster.control().has_quorum() {
            return;
        }
        self.world.trace.note(now, format_args!("{topic} [{partition}] moves to broker {}", broker.0));
        if self.world.cluster.control().is_alive(broker) {
            self.world.cluster.control().move_leader(&topic, partition, Some(broker));
        }
    }

    /// Adds latency to a broker.
    fn slow_broker(&mut self) {
        let (now, broker, for_a_while, until) = (self.world.now, self.broker, self.for_a_while, self.until);
        self.world.trace.note(now, format_args!("broker {} is slow", broker.0));
        self.world.cluster.control().set_latency(broker, for_a_while / 4);
        self.heals.push((until, Heal::Latency(broker)));
    }

    /// Makes Metadata responses name old leaders.
    fn freeze_metadata(&mut self) {
        let (now, until) = (self.world.now, self.until);
        self.world.trace.note(now, format_args!("metadata is frozen"));
        self.world.cluster.control().freeze_metadata();
        self.heals.push((until, Heal::Thaw));
    }

    /// Replaces a broker by one of another release.
    fn replace_broker(&mut self) {
        let (now, broker, until) = (self.world.now, self.broker, self.until);
        // A rolling upgrade, or a rollback.
        let mut versions = SOME_VERSIONS
            .map(|(api, min, choices)| (api, min, choices[self.rng.below(choices.len() as u64) as usize]));
        let reports_ids = versions.iter().any(|of| of.0 == ApiKey::Metadata && of.2 >= FIRST_WITH_IDS);
        if self.knobs.ids_reported {
            let metadata = versions.iter_mut().filter(|of| of.0 == ApiKey::Metadata);
            metadata.for_each(|of| of.2 = of.2.max(FIRST_WITH_IDS));
        } else if self.knobs.topics_deleted && !reports_ids {
            // No release requires topic IDs without reporting them.
            let by_id = versions.iter_mut().filter(|of| matches!(of.0, ApiKey::Produce | ApiKey::Fetch));
            by_id.for_each(|of| of.2 = of.2.min(LAST_BY_NAME));
        }
        self.world.trace.note(now, format_args!("broker {} is replaced by one with {versions:?}", broker.0));
        let mut control = self.world.cluster.control();
        control.kill_broker(broker, Tail::Kept);
        for (api, min, max) in versions {
            control.set_api_versions(Some(broker), api, min, max);
        }
        self.heals.push((until, Heal::Restart(broker)));
    }

    /// Evicts the fetch sessions of a broker.
    fn evict_fetch_sessions(&mut self) {
        let (now, broker) = (self.world.now, self.broker);
        self.world.trace.note(now, format_args!("broker {} evicts all fetch sessions", broker.0));
        self.world.cluster.control().evict_fetch_sessions(broker);
    }

    /// Moves the controller.
    fn move_controller(&mut self) {
        let (now, broker) = (self.world.now, self.broker);
        self.world.trace.note(now, format_args!("broker {} becomes the controller", broker.0));
        self.world.cluster.control().move_controller(broker);
    }
}

/// Kills a broker that leads a partition with records that no follower has, so that they are lost.
pub(super) fn lose_a_tail(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    let control = world.cluster.control();
    let partitions =
        knobs.topics.iter().flat_map(|(topic, count)| (0..*count).map(move |index| (topic, index)));
    let states = partitions.filter_map(|(topic, index)| control.partition(topic, index));
    let tails = states.filter(|state| state.log_end_offset > state.high_watermark);
    let leaders: Vec<BrokerId> = tails.filter_map(|state| state.leader).collect();
    let Some(broker) = leaders.get(rng.below(leaders.len() as u64) as usize).copied() else { return };
    kill(knobs, world, broker, Tail::Lost);
    heals.push((world.now + Duration::from_millis(10 + rng.below(4_000)), Heal::Restart(broker)));
    world.settle_cluster();
}

/// Kills a broker.
fn kill(knobs: &Knobs, world: &mut World, broker: BrokerId, tail: Tail) {
    let before = written(knobs, world);
    world.cluster.control().kill_broker(broker, tail);
    let lost = before - written(knobs, world);
    let what = format_args!("broker {} is killed ({tail:?}), {lost} records are lost", broker.0);
    world.trace.note(world.now, what);
}

/// Returns the number of records in the logs.
fn written(knobs: &Knobs, world: &mut World) -> i64 {
    let partitions =
        knobs.topics.iter().flat_map(|(topic, count)| (0..*count).map(move |index| (topic, index)));
    let control = world.cluster.control();
    partitions.filter_map(|(topic, index)| control.partition(topic, index)).map(|it| it.log_end_offset).sum()
}
