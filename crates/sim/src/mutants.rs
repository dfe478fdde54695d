//! The mutation check: a core that makes one mistake must be caught by some checker, soon.

use std::collections::BTreeMap;

use ottla_core::mutation::{Mutant, Mutation};

use crate::{Broken, Knobs, run};

/// A mistake, and how it was noticed.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The mistake.
    pub mutant: Mutant,
    /// Who noticed it, with which seed.
    pub caught: Option<(u64, Broken)>,
    /// How many seeds it took.
    pub tried: u64,
}

/// Runs the seeds from 1 on with a mistake until it is noticed, up to `most` of them.
pub fn hunt(mutant: Mutant, most: u64) -> Verdict {
    for seed in 1..=most {
        let Some(broken) = notice(mutant, seed) else { continue };
        // What breaks without the mistake, too, says nothing about it.
        if run(&Knobs::from_seed(seed), false).broken.is_none() {
            return Verdict { mutant, caught: Some((seed, broken)), tried: seed };
        }
    }
    Verdict { mutant, caught: None, tried: most }
}

/// What breaks with a mistake in the world of a seed.
pub fn notice(mutant: Mutant, seed: u64) -> Option<Broken> {
    // The story of a mistake that has randomness of its own has to be told twice.
    let twice = matches!(mutant, Mutant::OwnRandomness | Mutant::OwnOrder);
    let knobs = knobs(mutant, seed);
    let outcome = run(&knobs, false);
    let second = twice.then(|| run(&knobs, false));
    match second {
        Some(second) if second.hash != outcome.hash => {
            Some(Broken::new("determinism", "the same seed told two stories"))
        }
        _ => outcome.broken,
    }
}

/// The world of a seed, with a mistake.
pub fn knobs(mutant: Mutant, seed: u64) -> Knobs {
    let mut knobs = Knobs::from_seed(seed);
    let mutation = Mutation::of(mutant);
    knobs.producer.mutation = mutation;
    knobs.consumer.mutation = mutation;
    knobs.mutation = mutation;
    knobs
}

/// How many mistakes each checker noticed.
pub fn by_checker(verdicts: &[Verdict]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (_, broken) in verdicts.iter().filter_map(|verdict| verdict.caught.as_ref()) {
        *counts.entry(broken.checker).or_default() += 1;
    }
    counts
}

/// All verdicts, as rows of a table in Markdown.
pub fn table(verdicts: &[Verdict]) -> String {
    let mut table = String::from("| mistake | noticed by | seed | what it said |\n|---|---|---:|---|\n");
    for Verdict { mutant, caught, tried } in verdicts {
        let name = format!("`{mutant:?}`: {}", mutant.what().trim());
        let row = match caught {
            Some((seed, broken)) => {
                format!("| {name} | {} | {seed} | {} |\n", broken.checker, broken.what.replace('|', "/"))
            }
            None => format!("| {name} | nobody, in {tried} seeds | | |\n"),
        };
        table.push_str(&row);
    }
    table
}
