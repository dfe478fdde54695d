//! Faults, and how they heal.
//!
//! [`strike`] draws a `FaultKind` and its target; the files of this folder implement the kinds.

mod brokers;
mod hardships;
mod kind;
mod logs;
mod network;
mod requests;

use std::time::Duration;

use ottla_core::{machine::Instant, rng::Rng};
use ottla_embedded_broker::BrokerId;

use self::kind::FaultKind;
pub use self::{
    kind::{FIRST_KINDS, KINDS, SECOND_KINDS},
    requests::refuse_identities,
};
use crate::{
    knobs::Knobs,
    world::{Direction, Resolver, World},
};

/// The end of a fault.
#[derive(Debug)]
pub enum Heal {
    /// Restarts a broker.
    Restart(BrokerId),
    /// Connects a client to a broker again.
    Connect(usize, BrokerId),
    /// Resolves names again.
    Resolver,
    /// Resets the latency of a broker.
    Latency(BrokerId),
    /// Delivers packets in both directions again.
    TwoWays(usize, BrokerId, Direction),
    /// Makes Metadata responses name the real leaders again.
    Thaw,
    /// Recreates a deleted topic: its index in the list of topics, and its number of partitions.
    Create(u32, i32),
    /// Ends the injected errors.
    Refusals,
    /// Makes brokers wait for records and keep fetch sessions again.
    Hasty,
    /// Lets a broker follow the others again.
    CatchUp(BrokerId),
    /// Restores the quorum of controllers.
    Quorum,
    /// Workers return their next jobs.
    Jobs,
}

/// A fault while it is injected: where it strikes, and for how long.
struct Strike<'a> {
    knobs: &'a Knobs,
    world: &'a mut World,
    rng: &'a mut Rng,
    heals: &'a mut Vec<(Instant, Heal)>,
    broker: BrokerId,
    for_a_while: Duration,
    until: Instant,
    topic: String,
    /// The index of the topic in the list of topics.
    index: u32,
    /// The number of partitions of the topic.
    partitions: i32,
    partition: i32,
}

/// Injects a fault; `heals` gets its end and the time of it.
pub fn strike(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    if knobs.harsh && rng.chance(1, 2) {
        return hardships::strike(knobs, world, rng, heals);
    }
    if knobs.doubts && rng.chance(1, 2) {
        return requests::lose_responses(knobs, world, rng);
    }
    if knobs.steady && knobs.lossy && rng.chance(1, 4) {
        return brokers::lose_a_tail(knobs, world, rng, heals);
    }
    let kind = rng.below(u64::from(knobs.kinds)) as u32;
    if knobs.fault_kinds & (1 << kind) == 0 {
        return;
    }
    let broker = BrokerId(1 + rng.below(knobs.brokers as u64) as i32);
    let for_a_while = Duration::from_millis(10 + rng.below(4_000));
    let until = world.now + for_a_while;
    let index = rng.below(knobs.topics.len() as u64) as usize;
    let (topic, partitions) = knobs.topics[index].clone();
    let index = index as u32;
    let partition = rng.below(partitions as u64) as i32;
    let mut strike =
        Strike { knobs, world, rng, heals, broker, for_a_while, until, topic, index, partitions, partition };
    let kind = FaultKind::ALL[kind as usize];
    // Each kind belongs to one of the groups.
    let _ = strike.strike_network(kind)
        || strike.strike_brokers(kind)
        || strike.strike_requests(kind)
        || strike.strike_logs(kind);
    strike.world.settle_cluster();
}

/// Creates a topic on the brokers that are up; if there are none, the topic has to wait.
fn create(world: &mut World, name: &str, partitions: i32) {
    let mut control = world.cluster.control();
    let up = control.brokers().into_iter().filter(|broker| control.is_alive(*broker)).count();
    if up > 0 && control.topic_id(name).is_none() {
        // The name is valid, and the topic does not exist.
        let _ = control.create_topic(name, partitions, up.min(3) as i16);
        world.tell_topic(name);
    }
}

/// Makes all brokers respond to Fetch at once for some time; returns the end of the fault and the time of it.
pub fn hurry(world: &mut World, duration: Duration) -> (Instant, Heal) {
    world.trace.note(world.now, format_args!("brokers respond to Fetch at once for {duration:?}"));
    world.wire.expect_hasty_brokers();
    set_hasty(world, true);
    (world.now + duration, Heal::Hasty)
}

fn set_hasty(world: &mut World, is_hasty: bool) {
    let mut control = world.cluster.control();
    for broker in control.brokers() {
        control.set_hasty(broker, is_hasty);
    }
}

/// Returns the name of a topic by its index in the list of topics.
pub fn topic_name(index: u32) -> String {
    format!("t{index}")
}

/// Ends faults.
pub fn apply(world: &mut World, heals: Vec<Heal>) {
    for heal in heals {
        world.trace.note(world.now, format_args!("healed: {heal:?}"));
        match heal {
            Heal::Restart(broker) => world.cluster.control().restart_broker(broker),
            Heal::Connect(client, broker) => {
                world.partitioned.remove(&(client, broker));
            }
            Heal::Resolver => world.resolver = Resolver::Works,
            Heal::Latency(broker) => world.cluster.control().set_latency(broker, Duration::ZERO),
            Heal::TwoWays(client, broker, direction) => {
                world.one_way.remove(&(client, broker, direction));
            }
            Heal::Thaw => world.cluster.control().thaw_metadata(),
            Heal::Refusals => world.cluster.control().clear_faults(),
            Heal::Hasty => set_hasty(world, false),
            Heal::CatchUp(broker) => world.cluster.control().catch_up(broker),
            Heal::Quorum => world.cluster.control().restore_quorum(),
            Heal::Jobs => world.keeps_jobs = false,
            Heal::Create(index, partitions) => create(world, &topic_name(index), partitions),
        }
    }
    world.settle_cluster();
}

/// Ends all faults.
pub fn heal_all(knobs: &Knobs, world: &mut World) {
    world.trace.note(world.now, format_args!("everything heals"));
    world.partitioned.clear();
    world.one_way.clear();
    world.resolver = Resolver::Works;
    world.end_damage();
    world.keeps_jobs = false;
    let mut control = world.cluster.control();
    control.restore_quorum();
    control.clear_faults();
    control.thaw_metadata();
    for broker in control.brokers() {
        control.restart_broker(broker);
        control.set_latency(broker, Duration::ZERO);
        control.set_hasty(broker, false);
    }
    if knobs.harsh {
        control.brokers().into_iter().for_each(|broker| control.catch_up(broker));
    }
    for (name, partitions) in &knobs.topics {
        create(world, name, *partitions);
    }
    world.settle_cluster();
}
