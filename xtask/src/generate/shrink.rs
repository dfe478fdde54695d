//! The shortest program that still has a difference.

use super::{
    compare::{self, Difference, Outcome},
    program::Program,
    runner::{Pace, Runner, Transcript},
};
use crate::Result;

/// How often a difference has to be seen before it counts.
const CONFIRMATIONS: usize = 3;
/// The number of programs that are tried for one finding.
const TRIES: usize = 120;

/// A process for each library.
#[derive(Debug)]
pub struct Pair {
    pub original: Runner,
    pub ottla: Runner,
}

impl Pair {
    /// Runs a program with both libraries at the same time, and compares.
    ///
    /// # Errors
    ///
    /// A runner ended.
    pub fn compare(&mut self, program: &Program, pace: Pace) -> Result<(Outcome, [Transcript; 2])> {
        let Self { original, ottla } = self;
        let (a, b) = std::thread::scope(|scope| {
            let other = scope.spawn(|| ottla.run(program, pace).map_err(|error| error.to_string()));
            (original.run(program, pace).map_err(|error| error.to_string()), other.join())
        });
        let (a, b) = (a?, b.map_err(|_| "a thread panicked")??);
        Ok((compare::compare(&a, &b), [a, b]))
    }

    /// Returns the difference of a program, if all of several runs have the same one.
    ///
    /// # Errors
    ///
    /// A runner ended.
    pub fn confirm(&mut self, program: &Program) -> Result<Option<Difference>> {
        let mut confirmed: Option<Difference> = None;
        for _ in 0..CONFIRMATIONS {
            let (Outcome::Differs(difference), _) = self.compare(program, Pace::Full)? else {
                return Ok(None);
            };
            if confirmed.as_ref().is_some_and(|earlier| earlier.class() != difference.class()) {
                return Ok(None);
            }
            confirmed = Some(difference);
        }
        Ok(confirmed)
    }

    /// Removes steps as long as the program has the same difference.
    ///
    /// # Errors
    ///
    /// A runner ended.
    pub fn shrink(&mut self, program: &Program, difference: &Difference) -> Result<Program> {
        let class = difference.class();
        let (mut best, mut tries) = (program.clone(), 0);
        let mut is_same = |candidate: &Program| -> Result<bool> {
            Ok(
                matches!(self.compare(candidate, Pace::Quick)?.0, Outcome::Differs(found) if found.class() == class),
            )
        };
        // What follows the difference is not needed.
        let main = best.blocks.first().map_or(0, |block| block.steps.len());
        if let Some(step) = difference.step().filter(|step| *step < main) {
            let candidate = best.without(step, main);
            if is_same(&candidate)? {
                best = candidate;
            }
        }
        // Whole clients and clusters first, the last ones first.
        for at in (0..best.len()).rev() {
            let candidate = best.without_uses(at);
            if candidate.len() + 1 < best.len() && is_same(&candidate)? {
                best = candidate;
            }
        }
        let mut chunk = best.len().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            let mut is_shorter = false;
            while from < best.len() && tries < TRIES {
                let candidate = best.without(from, from + chunk);
                tries += 1;
                match self.compare(&candidate, Pace::Quick)?.0 {
                    Outcome::Differs(found) if found.class() == class => {
                        best = candidate;
                        is_shorter = true;
                    }
                    _ => from += chunk,
                }
            }
            if tries >= TRIES || (chunk == 1 && !is_shorter) {
                break;
            }
            chunk = (chunk / 2).max(1);
        }
        // A block that runs without steps as well is not needed, unless its callback has to be there.
        for at in (1..best.blocks.len()).rev() {
            let mut candidate = best.clone();
            if candidate.blocks[at].steps.is_empty() {
                candidate.blocks.remove(at);
                if matches!(self.compare(&candidate, Pace::Quick)?.0, Outcome::Differs(found) if found.class() == class)
                {
                    best = candidate;
                }
            }
        }
        // A shorter program that only sometimes differs, as one with two threads may, says more than the whole one.
        for _ in 0..CONFIRMATIONS {
            if matches!(self.compare(&best, Pace::Full)?.0, Outcome::Differs(found) if found.class() == class)
            {
                return Ok(best);
            }
        }
        Ok(program.clone())
    }
}
