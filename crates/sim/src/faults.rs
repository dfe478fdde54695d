//! What goes wrong, and how it heals.

use std::time::Duration;

use ottla_core::{machine::Instant, rng::Rng};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction, Tail};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use crate::{knobs::Knobs, world::World};

/// How many kinds of fault there are.
pub const KINDS: u32 = 12;
/// How many there were when there were no consumers.
pub const FIRST_KINDS: u32 = 12;

/// What ends a fault.
#[derive(Debug)]
pub enum Heal {
    /// A broker comes back.
    Restart(BrokerId),
    /// A client reaches a broker again.
    Connect(usize, BrokerId),
    /// Names are resolved again.
    Resolver,
    /// A broker is as quick as before.
    Latency(BrokerId),
    /// Metadata tells the truth again.
    Thaw,
}

/// Lets something go wrong; `heals` gets what ends it, and when.
pub fn strike(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    let kind = rng.below(u64::from(knobs.kinds)) as u32;
    if knobs.fault_kinds & (1 << kind) == 0 {
        return;
    }
    let broker = BrokerId(1 + rng.below(knobs.brokers as u64) as i32);
    let for_a_while = Duration::from_millis(10 + rng.below(4_000));
    let until = world.now + for_a_while;
    let now = world.now;
    let (topic, partitions) = knobs.topics[rng.below(knobs.topics.len() as u64) as usize].clone();
    let partition = rng.below(partitions as u64) as i32;
    match kind {
        0 => world.reset_a_link(),
        1 => world.stall_a_link(for_a_while),
        2 => {
            let client = rng.below(world.clients.len() as u64) as usize;
            world.trace.note(now, format_args!("client {client} can't reach broker {}", broker.0));
            world.partitioned.insert((client, broker));
            heals.push((until, Heal::Connect(client, broker)));
        }
        3 => {
            let tail = if knobs.lossy && rng.chance(1, 2) { Tail::Lost } else { Tail::Kept };
            world.trace.note(now, format_args!("broker {} is killed ({tail:?})", broker.0));
            world.cluster.control().kill_broker(broker, tail);
            heals.push((until, Heal::Restart(broker)));
        }
        4 => {
            world.trace.note(now, format_args!("all leaders rotate"));
            world.cluster.control().rotate_leaders();
        }
        5 => {
            world.trace.note(now, format_args!("{topic} [{partition}] goes to broker {}", broker.0));
            if world.cluster.control().is_alive(broker) {
                world.cluster.control().move_leader(&topic, partition, Some(broker));
            }
        }
        6 => {
            let codes = [
                ErrorCode::NOT_LEADER_OR_FOLLOWER,
                ErrorCode::NOT_ENOUGH_REPLICAS,
                ErrorCode::KAFKA_STORAGE_ERROR,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode::REQUEST_TIMED_OUT,
                ErrorCode::CORRUPT_MESSAGE,
            ];
            let code = codes[rng.below(codes.len() as u64) as usize];
            world.trace.note(now, format_args!("Produce to {topic} will be answered {}", code.name()));
            let times = 1 + rng.below(3) as u32;
            let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic).times(times);
            world.cluster.control().inject(fault);
        }
        7 => {
            world.trace.note(now, format_args!("the next answer to Produce is lost"));
            let fault = Fault::new(FaultAction::LoseAnswer).api(ApiKey::Produce).times(1);
            world.cluster.control().inject(fault);
        }
        8 => {
            let actions = [
                FaultAction::Delay(for_a_while),
                FaultAction::CloseConnection,
                FaultAction::Throttle(for_a_while),
                FaultAction::NeverAnswer,
                FaultAction::TruncateAnswer(rng.below(20) as usize),
                FaultAction::ShiftCorrelationId(1),
            ];
            let action = actions[rng.below(actions.len() as u64) as usize].clone();
            if matches!(action, FaultAction::TruncateAnswer(_) | FaultAction::ShiftCorrelationId(_)) {
                world.wire.expect_spoiled_answers();
            }
            world.trace.note(now, format_args!("some request will meet {action:?}"));
            world.cluster.control().inject(Fault::new(action).skip(rng.below(4) as u32).times(1));
        }
        9 => {
            world.trace.note(now, format_args!("no name is resolved"));
            world.resolver_down = true;
            heals.push((until, Heal::Resolver));
        }
        10 => {
            world.trace.note(now, format_args!("broker {} is slow", broker.0));
            world.cluster.control().set_latency(broker, for_a_while / 4);
            heals.push((until, Heal::Latency(broker)));
        }
        _ => {
            world.trace.note(now, format_args!("metadata is frozen"));
            world.cluster.control().freeze_metadata();
            heals.push((until, Heal::Thaw));
        }
    }
    world.settle_cluster();
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
            Heal::Resolver => world.resolver_down = false,
            Heal::Latency(broker) => world.cluster.control().set_latency(broker, Duration::ZERO),
            Heal::Thaw => world.cluster.control().thaw_metadata(),
        }
    }
    world.settle_cluster();
}

/// Ends all faults.
pub fn heal_all(world: &mut World) {
    world.trace.note(world.now, format_args!("everything heals"));
    world.partitioned.clear();
    world.resolver_down = false;
    let mut control = world.cluster.control();
    control.clear_faults();
    control.thaw_metadata();
    for broker in control.brokers() {
        control.restart_broker(broker);
        control.set_latency(broker, Duration::ZERO);
    }
    world.settle_cluster();
}
