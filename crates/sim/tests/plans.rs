//! Worlds of plans: what shrinking a failing seed left, once its cause is mended, and what plans promise.

use ottla_sim::plan::Plan;

/// Checks that the world of a plan breaks nothing.
fn keeps_all_guarantees(plan: &str) {
    let ran = Plan::parse(plan).expect("the plan can be read").run(false);
    assert_eq!(ran.broken, None, "cargo xtask sim --plan '{plan}'");
}

#[test]
fn world_of_a_plan_keeps_all_guarantees() {
    keeps_all_guarantees(
        "world clients; seed 8; faults-ms 2000; producers 1; consumers 1; brokers 2; records 20;\
         incident 1.500000000 0x9e3779b97f4a7c15 4",
    );
}
