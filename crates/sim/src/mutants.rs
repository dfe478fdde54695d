//! The mutation check: a core that makes one mistake must be caught by some checker, soon.

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
    // The story of a mistake that has randomness of its own has to be told twice.
    let twice = matches!(mutant, Mutant::OwnRandomness | Mutant::OwnOrder);
    for seed in 1..=most {
        let mut knobs = Knobs::from_seed(seed);
        let mutation = Mutation::of(mutant);
        knobs.producer.mutation = mutation;
        knobs.consumer.mutation = mutation;
        knobs.mutation = mutation;
        let outcome = run(&knobs, false);
        let second = twice.then(|| run(&knobs, false));
        let broken = match second {
            Some(second) if second.hash != outcome.hash => {
                Some(Broken::new("determinism", "the same seed told two stories"))
            }
            _ => outcome.broken,
        };
        if let Some(broken) = broken {
            return Verdict { mutant, caught: Some((seed, broken)), tried: seed };
        }
    }
    Verdict { mutant, caught: None, tried: most }
}

/// All verdicts, as rows of a table in Markdown.
pub fn table(verdicts: &[Verdict]) -> String {
    let mut table = String::from("| mistake | caught by | seed | what it said |\n|---|---|---|---|\n");
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
