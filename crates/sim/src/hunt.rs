//! The search for a seed that notices a deliberate mistake in the code.

use ottla_sorted::SortedMap;

use crate::{Broken, Knobs, groups, run, shares, streams, transactions};

/// The name of the check that the same seed gives the same trace. It needs a second run of the seed.
pub const DETERMINISM: &str = "determinism";

/// The result of [`hunt`].
#[derive(Clone, Debug, Default)]
pub struct Hunt {
    /// The first seed in which the checker noticed something.
    pub noticed: Option<(u64, Broken)>,
    /// The number of earlier seeds in which another checker noticed something.
    pub others: SortedMap<&'static str, u64>,
}

/// Runs `count` seeds from `first` on until the checker of this name notices a broken guarantee.
pub fn hunt(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| broken_by(seed, checker == DETERMINISM))
}

/// Like [`hunt`], in worlds in which clients authenticate.
pub fn hunt_sasl(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| run(&Knobs::with_sasl(seed), false).broken)
}

/// Like [`hunt`], in worlds with hardships.
pub fn hunt_hardships(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| run(&Knobs::with_hardships(seed), false).broken)
}

/// Like [`hunt`], in worlds in which clients have a ceiling of their memory.
pub fn hunt_ceilings(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| run(&Knobs::with_ceilings(seed), false).broken)
}

/// Like [`hunt`], in worlds in which clients push metrics.
pub fn hunt_telemetry(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| run(&Knobs::with_telemetry(seed), false).broken)
}

/// Like [`hunt`], in the worlds of consumer groups.
pub fn hunt_groups(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| groups::run(seed).err())
}

/// Like [`hunt`], in the worlds of transactions.
pub fn hunt_transactions(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |seed| transactions::run(seed).err())
}

/// Like [`hunt`], in the worlds of share groups: the named schedules, then seeds.
pub fn hunt_shares(first: u64, count: u64, checker: &str) -> Hunt {
    let names = shares::schedules::NAMES;
    search(first, count + names.len() as u64, checker, |seed| match names.get((seed - first) as usize) {
        Some(name) => shares::schedules::run(name, false).and_then(|(result, _)| result.err()),
        None => shares::run(seed - names.len() as u64).err(),
    })
}

/// Like [`hunt`], in the worlds of streams groups: the named schedules, then seeds.
pub fn hunt_streams(first: u64, count: u64, checker: &str) -> Hunt {
    let names = streams::schedules::NAMES;
    search(first, count + names.len() as u64, checker, |seed| match names.get((seed - first) as usize) {
        Some(name) => streams::schedules::run(name, false).and_then(|(result, _)| result.err()),
        None => streams::run(seed - names.len() as u64).err(),
    })
}

/// The schedules with addresses that lead to other nodes or other clusters, by the numbers from 1 on that stand for seeds.
const MISROUTING: [&str; 4] = ["misrouted", "mixed-clusters", "swapped-brokers", "two-clusters"];

/// Like [`hunt`], in schedules of groups and of transactions in which addresses lead to other nodes or clusters.
pub fn hunt_misrouting(first: u64, count: u64, checker: &str) -> Hunt {
    search(first, count, checker, |number| {
        let name = MISROUTING.get((number.checked_sub(1)?) as usize)?;
        match groups::schedules::run(name, false) {
            Some((result, _)) => result.err(),
            None => transactions::schedules::run(name, false).and_then(|(result, _)| result.err()),
        }
    })
}

fn search(first: u64, count: u64, checker: &str, broken_by: impl Fn(u64) -> Option<Broken>) -> Hunt {
    let mut result = Hunt::default();
    for seed in first..first.saturating_add(count) {
        let Some(broken) = broken_by(seed) else { continue };
        if broken.checker == checker {
            result.noticed = Some((seed, broken));
            break;
        }
        *result.others.entry(broken.checker).or_default() += 1;
    }
    result
}

/// Returns the guarantee that the world of a seed breaks; if `twice`, this includes determinism.
fn broken_by(seed: u64, twice: bool) -> Option<Broken> {
    let knobs = Knobs::from_seed(seed);
    let outcome = run(&knobs, false);
    if twice && run(&knobs, false).hash != outcome.hash {
        return Some(Broken::new(DETERMINISM, "two runs of the seed have different traces"));
    }
    outcome.broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_of_misrouting_exist() {
        let exists =
            |name| groups::schedules::NAMES.contains(&name) || transactions::schedules::NAMES.contains(&name);
        assert!(MISROUTING.into_iter().all(exists));
    }

    #[test]
    fn correct_code_is_not_reported() {
        for checker in ["delivery", DETERMINISM] {
            let hunt = hunt(1, 2, checker);
            assert_eq!(hunt.noticed, None);
            assert!(hunt.others.is_empty(), "{:?}", hunt.others);
        }
    }
}
