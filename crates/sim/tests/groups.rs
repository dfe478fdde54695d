//! Runs seeds of the group simulator, the schedules with names, and a large group.

mod support;

use ottla_core::group::assignor::Assignor;
use ottla_sim::groups::{Summary, crowd, run, schedules, steady};

#[test]
fn groups_keep_all_guarantees() {
    let mut sum = Summary::default();
    // Members of the last two are fenced.
    for summary in support::check("--group ", (1..=16).chain([21, 23]), run) {
        sum.records += summary.records;
        sum.delivered += summary.delivered;
        sum.members += summary.members;
        sum.changes += summary.changes;
        sum.frozen += summary.frozen;
        sum.killed += summary.killed;
        sum.fenced += summary.fenced;
        sum.commits.0 += summary.commits.0;
        sum.commits.1 += summary.commits.1;
    }
    println!("{sum:?}");
    assert!(sum.killed > 4 && sum.fenced > 0, "hardly any process died: {sum:?}");
    assert!(sum.commits.0 > 40 && sum.commits.1 > 0, "hardly any commit had an outcome: {sum:?}");
    assert!(sum.members > 80 && sum.changes > 200 && sum.frozen > 2, "hardly anything happened: {sum:?}");
    assert!(sum.delivered > 4_000, "hardly anything was delivered: {sum:?}");
}

#[test]
fn fresh_groups_keep_all_guarantees() {
    support::check_fresh("--group ", 1, run);
}

#[test]
fn member_is_late_from_its_last_poll_on_although_its_host_was_suspended() {
    support::check("--group ", [1_795_732_915_059_572_295], run);
}

#[test]
fn static_member_that_missed_a_generation_keeps_no_partitions() {
    support::check("--group ", [1_795_734_477_602_267_091], run);
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
    assert!(summary.delivered > 0, "{name} delivered nothing");
}

#[test]
fn member_that_joins_late_disturbs_no_rebalance() {
    schedule("join-late");
}

#[test]
fn group_survives_a_leader_that_dies_before_it_assigns() {
    schedule("leader-dies");
}

#[test]
fn lost_response_to_sync_is_recovered() {
    schedule("half-sync");
}

#[test]
fn member_restarts_after_its_leave_was_not_acknowledged() {
    schedule("lost-leave");
}

#[test]
fn frozen_member_rewinds_nothing_when_it_continues() {
    schedule("zombie");
}

#[test]
fn group_is_upgraded_and_downgraded_under_load() {
    schedule("upgrade");
    schedule("downgrade");
}

#[test]
fn target_with_an_unknown_topic_waits_for_metadata() {
    schedule("id-missing");
}

#[test]
fn target_may_change_with_every_heartbeat() {
    schedule("target-churn");
}

#[test]
fn application_may_respond_before_and_after_the_rebalance_timeout() {
    schedule("callback-slow");
}

#[test]
fn commit_after_a_lost_epoch_rewinds_nothing() {
    schedule("epoch-gap");
}

#[test]
fn one_of_two_members_with_an_instance_id_survives() {
    schedule("static-swap");
}

#[test]
fn coordinator_may_move_during_each_step_of_a_join() {
    schedule("coord-move");
}

#[test]
fn members_look_for_an_unknown_coordinator_with_back_offs() {
    schedule("coord-unknown");
}

#[test]
fn producer_sends_at_the_rate_of_its_quota() {
    schedule("quota");
}

#[test]
fn throttled_members_keep_their_partitions() {
    schedule("throttle");
}

#[test]
fn members_of_other_clients_share_a_group_with_ours() {
    schedule("mixed");
}

#[test]
fn returning_static_leader_finds_unassigned_partitions() {
    schedule("static-return");
}

#[test]
fn addresses_may_lead_to_other_nodes_and_other_clusters() {
    schedule("misrouted");
}

#[test]
fn members_commit_in_their_own_cluster_behind_a_mixing_load_balancer() {
    schedule("mixed-clusters");
}

#[test]
fn every_schedule_has_a_test() {
    let source = include_str!("groups.rs");
    for name in schedules::NAMES {
        assert!(source.contains(&format!("schedule(\"{name}\")")), "{name}");
    }
    assert!(schedules::run("no-such-schedule", false).is_none());
}

/// `cargo xtask sim --crowd SEED` runs 500 members.
#[test]
fn crowd_settles_without_storms() {
    support::check("--crowd ", 0..3, |seed| crowd::run(seed, 60));
}

#[test]
fn partitions_that_stay_pause_for_a_round_trip_at_most() {
    for assignor in [Some(Assignor::CooperativeSticky), None] {
        let pauses = steady::run(assignor).unwrap_or_else(|broken| panic!("{assignor:?}: {broken}"));
        println!("{assignor:?}: {pauses:?}");
        assert_eq!(pauses.stayed, 6, "{assignor:?}: {pauses:?}");
        assert!(pauses.changing <= pauses.calm + steady::ROUND_TRIP, "{assignor:?}: {pauses:?}");
    }
    // An eager group stops for the whole rebalance.
    let pauses = steady::run(Some(Assignor::RoundRobin)).expect("no checker complains");
    assert!(pauses.changing > pauses.calm + 2 * steady::ROUND_TRIP, "{pauses:?}");
}
