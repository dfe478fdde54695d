//! Some deliberate mistakes, each with a seed that shows it: the checkers notice. All of them: `cargo xtask mutants`.
#![cfg(feature = "mutants")]

use ottla_core::mutation::Mutant;
use ottla_sim::mutants::notice;

fn is_noticed_by(checker: &str, mutant: Mutant, seed: u64) {
    let broken = notice(mutant, seed);
    assert_eq!(broken.as_ref().map(|broken| broken.checker), Some(checker), "{mutant:?}: {broken:?}");
}

#[test]
fn delivery_notices_a_wrong_offset_in_a_report() {
    is_noticed_by("delivery", Mutant::WrongOffset, 1);
}

#[test]
fn consume_notices_records_of_a_paused_partition() {
    is_noticed_by("consume", Mutant::ForgetPause, 2);
}

#[test]
fn accounting_notices_bytes_that_stay_charged() {
    is_noticed_by("accounting", Mutant::ForgetBytes, 1);
}

#[test]
fn wire_notices_a_second_batch_before_the_first_is_acknowledged() {
    is_noticed_by("wire", Mutant::SecondBeforeFirst, 2);
}

#[test]
fn busy_notices_batches_that_are_sent_again_at_once() {
    is_noticed_by("busy", Mutant::RetryWithoutBackoff, 2);
}

#[test]
fn liveness_notices_a_reader_that_is_not_woken() {
    is_noticed_by("liveness", Mutant::LoseWakeup, 2);
}

#[test]
fn determinism_notices_an_order_of_its_own() {
    is_noticed_by("determinism", Mutant::OwnOrder, 1);
}
