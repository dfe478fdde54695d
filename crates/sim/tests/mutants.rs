//! Some deliberate mistakes, each with a seed that shows it: the checkers notice. All of them: `cargo xtask mutants`.
#![cfg(feature = "mutants")]

use ottla_core::mutation::Mutant;
use ottla_sim::mutants::notice;

fn is_noticed_by(checker: &str, mutant: Mutant, seed: u64) {
    let broken = notice(mutant, seed);
    assert_eq!(broken.as_ref().map(|broken| broken.checker), Some(checker), "{mutant:?}: {broken:?}");
}
