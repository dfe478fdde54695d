//! `cargo xtask ...`: the commands of this repository.
//!
//! One file per command: [`mod@test`] (the steps that CI runs), [`kafka`] (Apache Kafka on this machine), [`codegen`],
//! [`docs`], [`mod@bench`], [`instructions`], [`fuzz`], [`sim`], [`mutants`], [`mod@threads`], [`library`] (installation of the C library,
//! [`profiled`] or not), [`abi`] (its compatibility). Helpers: [`shell`] runs other programs and keeps their output, [`install`]
//! installs missing programs or says what to install, [`embedded`] runs brokers, [`peer`] compiles the bench's C program, [`tidy`] checks rules that the compiler does not
//! check.

#![forbid(unsafe_code)]

mod abi;
mod bench;
mod codegen;
mod debug_files;
mod docs;
mod embedded;
mod fuzz;
mod install;
mod instructions;
mod kafka;
mod library;
mod mutants;
mod peer;
mod pitfalls;
mod profiled;
mod readme;
mod shell;
mod side_by_side;
mod sim;
mod style;
mod test;
mod threads;
mod tidy;

use std::{env, process::ExitCode};

/// The result of a command; the error is a sentence for the user.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
cargo xtask COMMAND [OPTIONS]        (cargo xtask COMMAND --help prints its options)

  test       run everything that CI runs; ends with `N passed, M failed`
  lint       check formatting, clippy and tidy only
  codegen    write crates/protocol/src/generated from schema/; --check only compares
  docs       write CONFIGURATION.md and the other generated pages; --check only compares
  kafka      run Apache Kafka on this machine: start, stop, restart, kill, status, destroy, run
  bench      benchmark Ottla, librdkafka, franz-go, the Java client, confluent-kafka and krafka
  instructions  count the instructions per message with valgrind, and compare them with bench/instructions.json
  install    install the C library, headers, pkg-config and cmake files, the program and documents under a prefix
  abi        test the C library: symbols, layout, headers, C programs, an installed tree
  fuzz       fuzz the decoders with random and damaged bytes
  sim        replay one seed of the simulator
  swarm      run the simulator with many seeds, fixed or fresh
  mutants    apply deliberate mistakes to a copy of the code, and verify that the checks notice them
  threads    run the models of the code that threads share, in every interleaving (loom)
  style      measure the language and structure of the sources
  sanitize   run the tests under ThreadSanitizer, AddressSanitizer or valgrind
";

fn main() -> ExitCode {
    let mut args: Vec<String> = env::args().skip(1).collect();
    let command = if args.is_empty() { String::new() } else { args.remove(0) };
    let response = match command.as_str() {
        "test" => test::main(&args),
        "lint" => test::lint(&args),
        "codegen" => codegen_main(&args),
        "docs" => docs::main(&args),
        "kafka" => kafka::main(&args),
        "bench" => bench::main(&args),
        "install" => library::main(&args),
        "instructions" => instructions::main(&args),
        "abi" => abi::main(&args),
        "fuzz" => fuzz::main(&args),
        "style" => style::main(&args),
        "sim" => sim::sim(&args),
        "swarm" => sim::swarm(&args),
        "mutants" => mutants::main(&args),
        "threads" => threads::threads(&args),
        "sanitize" => threads::sanitize(&args),
        "" | "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("there is no command `{other}`\n\n{HELP}").into()),
    };
    response.unwrap_or_else(|error| {
        eprintln!("cargo xtask {command}: {error}");
        ExitCode::FAILURE
    })
}

fn codegen_main(args: &[String]) -> Result<ExitCode> {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask codegen [--check]".into()),
    };
    codegen::run(check)?;
    Ok(ExitCode::SUCCESS)
}
