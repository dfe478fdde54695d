//! Runs fixed seeds of the simulator's transactions.

use ottla_sim::transactions::{Summary, run};

#[test]
fn transactions_keep_all_guarantees() {
    let mut sum = Summary::default();
    for seed in 1..=30 {
        let summary = run(seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
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
    assert!(sum.committed > 1_000 && sum.aborted > 200, "hardly any transaction ended: {sum:?}");
    assert!(sum.read > 10_000 && sum.copies > 500, "hardly anything was read: {sum:?}");
    assert!(sum.fenced > 20 && sum.killed > 20 && sum.frozen > 10, "hardly anything failed: {sum:?}");
    assert!(sum.uncertain > 0 && sum.timeouts > 100, "all calls had results: {sum:?}");
}

#[test]
fn same_seed_gives_the_same_run() {
    for seed in [2, 5] {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
