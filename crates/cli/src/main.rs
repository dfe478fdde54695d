//! `ottla`: Kafka from the command line.
//!
//! `cli.rs` has the list of subcommands; each is a file in `commands/` with its options on top and what it does below.
//! Options that all clients share are in `client_options.rs`, what the performance tools are made of in `perf/`, how
//! `consume` prints in `message_format.rs`. A command ends in a [`failure::Failure`] or well; the exit codes follow
//! from that: 0 done, 1 failed, 2 wrongly called.

#![forbid(unsafe_code)]

mod cli;
mod client_options;
mod commands;
mod failure;
mod message_format;
mod metrics_port;
mod perf;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    cli::run(arguments)
}
