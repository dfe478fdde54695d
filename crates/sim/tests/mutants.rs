//! Some deliberate mistakes, which one of the first seeds shows: the checkers notice. All of them: `cargo xtask mutants`.
#![cfg(feature = "mutants")]

use ottla_core::mutation::Mutant;
use ottla_sim::mutants::notice;

/// One of the first seeds shows the mistake, and to this checker first.
fn is_noticed_by(checker: &str, mutant: Mutant) {
    let broken = (1..=SEEDS).find_map(|seed| notice(mutant, seed));
    assert_eq!(broken.as_ref().map(|broken| broken.checker), Some(checker), "{mutant:?}: {broken:?}");
}

const SEEDS: u64 = 20;

#[test]
fn delivery_notices_a_wrong_offset_in_a_report() {
    is_noticed_by("delivery", Mutant::WrongOffset);
}

#[test]
fn delivery_notices_a_batch_that_was_written_again_under_a_new_number() {
    // Both this batch and the one before it have to be written and not answered: few seeds have that.
    let broken = notice(Mutant::RenumberDoubtful, 63);
    assert_eq!(broken.as_ref().map(|broken| broken.checker), Some("delivery"), "{broken:?}");
}

#[test]
fn delivery_notices_sequence_numbers_that_are_used_again_after_a_purge_in_flight() {
    is_noticed_by("delivery", Mutant::PurgeReusesSequence);
}

#[test]
fn liveness_notices_records_that_have_no_report_after_a_purge() {
    is_noticed_by("liveness", Mutant::PurgeUnreported);
}

#[test]
fn accounting_notices_bytes_that_stay_charged_after_a_purge() {
    is_noticed_by("accounting", Mutant::PurgeForgetsBytes);
}

#[test]
fn consume_notices_records_of_a_paused_partition() {
    is_noticed_by("consume", Mutant::ForgetPause);
}

#[test]
fn accounting_notices_bytes_that_stay_charged() {
    is_noticed_by("accounting", Mutant::ForgetBytes);
}

#[test]
fn wire_notices_a_second_batch_before_the_first_is_acknowledged() {
    is_noticed_by("wire", Mutant::SecondBeforeFirst);
}

#[test]
fn busy_notices_batches_that_are_sent_again_at_once() {
    is_noticed_by("busy", Mutant::RetryWithoutBackoff);
}

#[test]
fn liveness_notices_a_reader_that_is_not_woken() {
    is_noticed_by("liveness", Mutant::LoseWakeup);
}

#[test]
fn determinism_notices_an_order_of_its_own() {
    is_noticed_by("determinism", Mutant::OwnOrder);
}
