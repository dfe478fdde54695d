//! Hardships: faults that only the worlds of [`Knobs::with_hardships`](crate::Knobs::with_hardships) have, so that all other seeds keep
//! their traces.
//!
//! | hardship | what must hold besides the guarantees |
//! |---|---|
//! | bytes of record batches are damaged on the way | the checksum notices it, and nothing wrong is delivered or written |
//! | the length of a response is damaged | the connection ends at once (`framing`) |
//! | the disk of a broker is full | |
//! | followers fall behind, with `min.insync.replicas=2` in half of the worlds | |
//! | the controller quorum is lost: nobody is elected | |
//! | a broker is replaced by one of 3.9 or of 4.3 | |
//! | workers never return their jobs, resolvers never respond | deadlines hold all the same |

use std::time::Duration;

use ottla_core::{machine::Instant, rng::Rng};
use ottla_embedded_broker::{BrokerId, BrokerRelease, Fault, FaultAction, Tail};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use super::Heal;
use crate::{
    knobs::Knobs,
    world::{Damage, Resolver, World},
};

/// Draws a hardship.
pub(super) fn strike(knobs: &Knobs, world: &mut World, rng: &mut Rng, heals: &mut Vec<(Instant, Heal)>) {
    let broker = BrokerId(1 + rng.below(knobs.brokers as u64) as i32);
    let longest = [1_000, 4_000, 15_000][rng.below(3) as usize];
    let until = world.now + Duration::from_millis(10 + rng.below(longest));
    match rng.below(10) {
        0 | 1 => (0..1 + rng.below(3)).for_each(|_| world.damage(Damage::FetchedBatch(rng.fork()))),
        2 => (0..1 + rng.below(3)).for_each(|_| world.damage(Damage::SentBatch(rng.fork()))),
        3 => world.damage(Damage::ResponseLength([0x7f, 0xff][rng.below(2) as usize])),
        4 => {
            fill_disk(world, broker);
            heals.push((until, Heal::Refusals));
        }
        5 => {
            let all = rng.chance(1, 2);
            for behind in (1..=knobs.brokers).map(BrokerId).filter(|it| all || *it == broker) {
                fall_behind(world, behind);
                heals.push((until, Heal::CatchUp(behind)));
            }
        }
        6 => {
            world.trace.note(world.now, format_args!("the controller quorum is lost"));
            world.cluster.control().lose_quorum();
            heals.push((until, Heal::Quorum));
        }
        7 => {
            let release = [BrokerRelease::V3_9_1, BrokerRelease::V4_3_1][rng.below(2) as usize];
            roll(world, broker, release);
            heals.push((until, Heal::Restart(broker)));
        }
        8 => {
            world.trace.note(world.now, format_args!("workers return no jobs"));
            world.keeps_jobs = true;
            heals.push((until, Heal::Jobs));
        }
        _ => {
            world.trace.note(world.now, format_args!("the resolver never responds"));
            world.resolver = Resolver::Silent;
            heals.push((until, Heal::Resolver));
        }
    }
    world.settle_cluster();
}

/// A broker can't write to its disk.
fn fill_disk(world: &mut World, broker: BrokerId) {
    world.trace.note(world.now, format_args!("the disk of broker {} is full", broker.0));
    let full = FaultAction::Error(ErrorCode::KAFKA_STORAGE_ERROR);
    world.cluster.control().inject(Fault::new(full).api(ApiKey::Produce).broker(broker));
}

fn fall_behind(world: &mut World, broker: BrokerId) {
    world.trace.note(world.now, format_args!("broker {} can't follow the others", broker.0));
    world.cluster.control().fall_behind(broker);
}

/// Replaces a broker by one of a release.
fn roll(world: &mut World, broker: BrokerId, release: BrokerRelease) {
    world.trace.note(world.now, format_args!("broker {} is replaced by one of {release:?}", broker.0));
    let mut control = world.cluster.control();
    control.kill_broker(broker, Tail::Kept);
    control.emulate_at(broker, release);
}
