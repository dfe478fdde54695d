//! `ottla`: Kafka from the command line.
//!
//! `cli.rs` lists the subcommands; each is a file in `commands/`. The options of all clients are in
//! `client_options.rs`, the parts of the performance tools in `perf/`, the output of `consume` in
//! `records/`. A command returns `Ok` or a [`failure::Failure`], which determines the exit code. `events.rs`
//! prints the events of the client, `completion.rs` completes command lines in shells, `profiles/` has the clusters with
//! names. `signals.rs` ends a command on SIGINT and SIGTERM,
//! `patience.rs` after `--timeout` without progress. All that goes to standard error is printed by `standard_error.rs`. `doctor/` has
//! the examination of `ottla doctor`, `top/` the view of
//! `ottla top`, `report/` the pages of `--report`.

#![forbid(unsafe_code)]

mod bar;
mod cli;
mod client_options;
mod commands;
mod completion;
mod debug_lines;
mod deliveries;
mod doctor;
mod events;
mod failure;
mod help_text;
mod in_transactions;
mod input;
mod man_pages;
mod metrics_port;
mod partition_list;
mod patience;
mod perf;
#[cfg(test)]
mod pictures;
mod platform;
mod positions;
mod profiles;
mod progress;
mod records;
#[cfg(feature = "schemas")]
mod registry_options;
mod report;
mod sending;
mod signals;
mod standard_error;
mod times;
// Without the full screen only one table is printed.
#[cfg_attr(not(feature = "top"), allow(dead_code))]
mod top;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    cli::run(arguments)
}
