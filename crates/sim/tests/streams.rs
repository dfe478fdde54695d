//! Runs seeds of the simulator's streams groups.

mod support;

use ottla_sim::streams::{Summary, run, schedules};

#[test]
fn streams_groups_keep_all_guarantees() {
    let mut sum = Summary::default();
    for summary in support::check("--streams-group ", 1..=12, run) {
        sum.assigned += summary.assigned;
        sum.reassigned += summary.reassigned;
        sum.lost += summary.lost;
        sum.members += summary.members;
        sum.killed += summary.killed;
        sum.pushed += summary.pushed;
    }
    println!("{sum:?}");
    assert!(sum.assigned > 200 && sum.reassigned > 20, "hardly any task moved: {sum:?}");
    assert!(sum.lost > 5, "hardly any membership ended: {sum:?}");
    assert!(sum.pushed > 20, "hardly any description was sent: {sum:?}");
    assert!(sum.members > 30 && sum.killed > 2, "hardly any member came or died: {sum:?}");
}

#[test]
fn fresh_streams_groups_keep_all_guarantees() {
    support::check_fresh("--streams-group ", 2, run);
}

#[test]
fn same_seed_gives_the_same_run() {
    assert_eq!(run(2), run(2));
}

#[test]
fn every_schedule_passes() {
    for name in schedules::NAMES {
        let (result, _) = schedules::run(name, false).expect("it has a name");
        let summary = result.unwrap_or_else(|broken| panic!("cargo xtask sim --schedule {name}: {broken}"));
        assert!(summary.assigned > 20 && summary.reassigned > 0, "{name}: {summary:?}");
    }
}
