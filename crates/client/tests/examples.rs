//! Runs every example against embedded brokers. The logger of `logging` prints the lines of all.

#![allow(clippy::duplicate_mod, reason = "each example is a program with the module `support`")]

use std::{collections::BTreeSet, fs, path::Path};

#[allow(dead_code)]
#[path = "../examples/admin.rs"]
mod admin;
#[allow(dead_code)]
#[path = "../examples/asynchronous.rs"]
mod asynchronous;
#[allow(dead_code)]
#[path = "../examples/configuration.rs"]
mod configuration;
#[allow(dead_code)]
#[path = "../examples/consume.rs"]
mod consume;
#[allow(dead_code)]
#[path = "../examples/custom_assignor.rs"]
mod custom_assignor;
#[allow(dead_code)]
#[path = "../examples/dead_letters.rs"]
mod dead_letters;
#[allow(dead_code)]
#[path = "../examples/delivery_guarantees.rs"]
mod delivery_guarantees;
#[allow(dead_code)]
#[path = "../examples/embedded_broker.rs"]
mod embedded_broker;
#[allow(dead_code)]
#[path = "../examples/errors.rs"]
mod errors;
#[allow(dead_code)]
#[path = "../examples/graceful_shutdown.rs"]
mod graceful_shutdown;
#[allow(dead_code)]
#[path = "../examples/logging.rs"]
mod logging;
#[allow(dead_code)]
#[path = "../examples/produce.rs"]
mod produce;
#[allow(dead_code)]
#[path = "../examples/share_group.rs"]
mod share_group;
#[allow(dead_code)]
#[path = "../examples/streams_member.rs"]
mod streams_member;
#[allow(dead_code)]
#[path = "../examples/threads.rs"]
mod threads;
#[allow(dead_code)]
#[path = "../examples/trace_context.rs"]
mod trace_context;
#[allow(dead_code)]
#[path = "../examples/transactions.rs"]
mod transactions;

/// Programs that measure: they need arguments, or much time.
const MEASUREMENTS: [&str; 8] = [
    "commit_latency",
    "consume_cpu",
    "reauthentication_latency",
    "round_trips",
    "share_round_trips",
    "statistics_cpu",
    "telemetry_cpu",
    "where_records_wait",
];

/// Defines a test per example, and the list of their names.
macro_rules! examples {
    ($($test:ident: $example:ident),* $(,)?) => {
        const EXAMPLES: &[&str] = &[$(stringify!($example)),*];

        $(
            #[test]
            fn $test() {
                $example::main().unwrap();
            }
        )*
    };
}

examples!(
    admin_runs: admin,
    asynchronous_runs: asynchronous,
    configuration_runs: configuration,
    consume_runs: consume,
    custom_assignor_runs: custom_assignor,
    dead_letters_runs: dead_letters,
    delivery_guarantees_runs: delivery_guarantees,
    embedded_broker_runs: embedded_broker,
    errors_runs: errors,
    graceful_shutdown_runs: graceful_shutdown,
    logging_runs: logging,
    produce_runs: produce,
    share_group_runs: share_group,
    streams_member_runs: streams_member,
    threads_runs: threads,
    trace_context_runs: trace_context,
    transactions_runs: transactions,
);

#[test]
fn every_file_among_the_examples_is_listed_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let listed: BTreeSet<String> =
        EXAMPLES.iter().chain(&MEASUREMENTS).map(|name| name.to_string()).collect();
    assert_eq!(files, listed);
}
