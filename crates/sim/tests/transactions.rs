//! Runs seeds of the simulator's transactions.

mod support;

use ottla_sim::transactions::{Summary, run, schedules};

#[test]
fn transactions_keep_all_guarantees() {
    let mut sum = Summary::default();
    for summary in support::check("--transaction ", 1..=12, run) {
        sum.records += summary.records;
        sum.transactions += summary.transactions;
        sum.committed += summary.committed;
        sum.aborted += summary.aborted;
        sum.uncertain += summary.uncertain;
        sum.timeouts += summary.timeouts;
        sum.read += summary.read;
        sum.copies += summary.copies;
        sum.instances += summary.instances;
        sum.fenced += summary.fenced;
        sum.killed += summary.killed;
        sum.frozen += summary.frozen;
    }
    println!("{sum:?}");
    assert!(sum.committed > 400 && sum.aborted > 80, "hardly any transaction ended: {sum:?}");
    assert!(sum.read > 4_000 && sum.copies > 200, "hardly anything was read: {sum:?}");
    assert!(sum.fenced > 8 && sum.killed > 8 && sum.frozen > 4, "hardly anything failed: {sum:?}");
    assert!(sum.uncertain > 0 && sum.timeouts > 40, "all calls had results: {sum:?}");
}

#[test]
fn fresh_transactions_keep_all_guarantees() {
    support::check_fresh("--transaction ", 1, run);
}

#[test]
fn frozen_process_ends_a_late_call_after_it_continues() {
    support::check("--transaction ", [165, 393], run);
}

#[test]
fn same_seed_gives_the_same_run() {
    for seed in [2, 5] {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// Runs the schedule of a name.
fn schedule(name: &str) {
    let (result, _) = schedules::run(name, false).expect("it exists");
    let summary = result.unwrap_or_else(|broken| panic!("cargo xtask sim --schedule {name}: {broken}"));
    assert!(summary.committed > 3, "{name} committed {} transactions", summary.committed);
}

#[test]
fn delayed_batch_stays_out_of_the_next_transaction() {
    schedule("late-produce");
}

#[test]
fn delayed_commit_ends_no_later_transaction() {
    schedule("late-commit");
}

#[test]
fn delayed_registration_begins_no_transaction() {
    schedule("late-registration");
}

#[test]
fn delayed_offsets_belong_to_their_transaction() {
    schedule("late-offsets");
}

#[test]
fn commit_without_response_is_repeated() {
    schedule("lost-commit");
}

#[test]
fn producer_id_without_response_is_requested_again() {
    schedule("lost-producer-id");
}

#[test]
fn transactions_end_although_their_coordinator_moves() {
    schedule("coordinator-moves");
}

#[test]
fn producer_survives_its_own_timeout() {
    schedule("frozen");
}

#[test]
fn restarted_producer_ends_its_predecessors_transaction() {
    schedule("restarts");
}

#[test]
fn replaced_producer_commits_nothing_more() {
    schedule("zombie");
}

#[test]
fn used_up_epochs_are_replaced_by_a_new_producer_id() {
    schedule("epochs-used-up");
}

#[test]
fn transaction_version_may_change_between_transactions() {
    schedule("version-changes");
}

#[test]
fn transactions_wait_for_slow_markers() {
    schedule("slow-markers");
}

#[test]
fn each_record_is_copied_once_while_copiers_restart() {
    schedule("copiers-come-and-go");
}

#[test]
fn committed_records_survive_brokers_that_die() {
    schedule("brokers-die");
}

#[test]
fn transactions_survive_addresses_that_lead_elsewhere() {
    schedule("swapped-brokers");
}

#[test]
fn transactions_stay_in_one_cluster_behind_a_mixing_load_balancer() {
    schedule("two-clusters");
}
