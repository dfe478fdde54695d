//! `cargo xtask ...`: the commands of this repository.
//!
//! One file per command: [`mod@test`] (the steps that CI runs), [`kafka`] (Apache Kafka on this machine), [`codegen`],
//! [`docs`], [`mod@bench`], [`instructions`], [`fuzz`], [`sim`], [`mutants`], [`mod@threads`], [`library`] (installation of the C library,
//! [`profiled`] or not), [`abi`] (its compatibility), [`suites`] (tests of other projects with it), [`proof`] (all searches in rotation). Helpers: [`shell`] runs other programs and keeps their output, [`install`]
//! installs missing programs or says what to install, [`embedded`] runs brokers, [`peer`] compiles the bench's C program, [`tidy`] checks rules that the compiler does not
//! check.

#![forbid(unsafe_code)]

mod abi;
mod archive;
mod bench;
mod codegen;
mod crates;
mod debug_files;
mod docs;
mod embedded;
mod features;
mod fuzz;
mod generate;
mod install;
mod instructions;
mod kafka;
#[cfg(test)]
mod kips;
mod library;
mod mutants;
mod package;
mod peer;
mod pitfalls;
mod profiled;
mod proof;
mod readme;
mod recorded;
mod shell;
mod side_by_side;
mod sim;
mod site;
mod style;
mod suites;
mod test;
mod threads;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The result of a command; the error is a sentence for the user.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The commands of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that CI runs; ends with `N passed, M failed`.
    Test(test::Options),
    /// Check formatting, clippy and tidy only.
    Lint,
    /// Write crates/protocol/src/generated from schema/.
    Codegen(codegen::Options),
    /// Write CONFIGURATION.md and the other generated pages; with --site build the documentation as a site.
    Docs(docs::Options),
    /// Run Apache Kafka on this machine: start, stop, restart, kill, status, destroy, run.
    #[command(disable_help_flag = true)]
    Kafka(Rest),
    /// Benchmark Ottla, librdkafka, franz-go, the Java client, confluent-kafka and krafka.
    #[command(disable_help_flag = true)]
    Bench(Rest),
    /// Count the instructions per message with valgrind, and compare them with bench/instructions.json.
    Instructions(instructions::Options),
    /// Install the C library, headers, pkg-config and cmake files, the program and documents under a prefix.
    Install(library::Options),
    /// Build what users install into target/packages: deb, rpm, apk, tarballs, a Python wheel, an image for containers.
    Package(package::Options),
    /// Check the crates that are published: manifests, packages, features, minimum Rust. Nothing is uploaded.
    Crates(crates::Options),
    /// Test the C library: symbols, layout, headers, C programs, an installed tree.
    #[command(disable_help_flag = true)]
    Abi(Rest),
    /// Fuzz the decoders with random and damaged bytes.
    Fuzz(fuzz::Options),
    /// Replay one seed of the simulator.
    Sim(Box<sim::Options>),
    /// Run the simulator with many seeds, fixed or fresh.
    Swarm(sim::SwarmOptions),
    /// Run everything that looks for defects with fresh inputs, for some hours, and write a page about it.
    Proof(proof::Options),
    /// Apply deliberate mistakes to a copy of the code, and verify that the checks notice them.
    #[command(disable_help_flag = true)]
    Mutants(Rest),
    /// Check dependencies and AWS-LC, and record what was checked.
    Recorded(recorded::Options),
    /// Run the models of the code that threads share, in every interleaving (loom).
    Threads(threads::Options),
    /// Measure the structure of the sources.
    #[command(disable_help_flag = true)]
    Style(Rest),
    /// Run the tests of other projects with the C library.
    Suites(suites::Options),
    /// Run the tests under ThreadSanitizer, AddressSanitizer or valgrind.
    Sanitize(threads::SanitizeOptions),
}

/// Arguments that the command reads itself.
#[derive(clap::Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    args: Vec<String>,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test(options) => test::main(&options),
        Command::Lint => test::lint(),
        Command::Codegen(options) => codegen::main(&options),
        Command::Docs(options) => docs::main(&options),
        Command::Kafka(rest) => kafka::main(&rest.args),
        Command::Bench(rest) => bench::main(&rest.args),
        Command::Instructions(options) => instructions::main(&options),
        Command::Install(options) => library::main(&options),
        Command::Package(options) => package::main(&options),
        Command::Crates(options) => crates::main(&options),
        Command::Abi(rest) => abi::main(&rest.args),
        Command::Fuzz(options) => fuzz::main(&options),
        Command::Sim(options) => sim::sim(&options),
        Command::Swarm(options) => sim::swarm(&options),
        Command::Mutants(rest) => mutants::main(&rest.args),
        Command::Proof(options) => proof::main(&options),
        Command::Recorded(options) => recorded::main(&options),
        Command::Threads(options) => threads::threads(&options),
        Command::Style(rest) => style::main(&rest.args),
        Command::Suites(options) => suites::main(&options),
        Command::Sanitize(options) => threads::sanitize(&options),
    };
    result.unwrap_or_else(|error| {
        eprintln!("cargo xtask: {error}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_described_without_contradiction() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }

    #[test]
    fn programs_arguments_are_passed_on() {
        let arguments = Arguments::parse_from(["xtask", "kafka", "run", "--help", "-x"]);
        let Command::Kafka(rest) = arguments.command else { panic!("another command") };
        assert_eq!(rest.args, ["run", "--help", "-x"]);
    }
}
