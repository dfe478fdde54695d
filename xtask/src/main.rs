//! `cargo xtask ...`: everything about this repository that is done by a program.
//!
//! One file per command: [`mod@test`] (what CI runs, made of the steps in `test/`), [`kafka`] (a real Apache Kafka on this
//! machine), [`codegen`], [`docs`], [`mod@bench`], [`fuzz`], [`sim`],
//! [`mod@threads`], [`library`] (the C library, laid out to be used), [`abi`] (is it librdkafka's?). Around them: [`shell`] runs other programs and never loses
//! their output, [`install`] fetches what is missing or says what to install, [`tidy`] checks what no compiler checks.

#![forbid(unsafe_code)]

mod abi;
mod bench;
mod breaks;
mod codegen;
mod docs;
mod fuzz;
mod install;
mod kafka;
mod library;
mod readme;
mod shell;
mod sim;
mod test;
mod threads;
mod tidy;

use std::{env, process::ExitCode};

/// What a command answers: an error is one sentence for the person at the terminal.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "\
cargo xtask COMMAND [OPTIONS]        (cargo xtask COMMAND --help says more)

  test       everything CI runs; ends with `N passed, M failed`
  lint       formatting, clippy and tidy alone
  codegen    write crates/protocol/src/generated from schema/; --check only compares
  docs       write CONFIGURATION.md and the other generated pages; --check only compares
  kafka      a real Apache Kafka cluster on this machine: start, stop, restart, kill, status, destroy, run
  bench      Ottla beside librdkafka, franz-go, the Java client, confluent-kafka and krafka
  install    the C library, its headers and the files that pkg-config and cmake read, under a prefix
  abi        is the C library librdkafka's? symbols, layout, headers, programs in C, an installed tree
  fuzz       hostile bytes against the decoders, as many as you like
  sim        replay one seed of the simulator
  swarm      run the simulator with many seeds, fixed or fresh
  mutants    let the client make deliberate mistakes, and see who of the simulator's checkers notices them
  threads    the places where threads meet, in every order (loom)
  sanitize   the tests under ThreadSanitizer, AddressSanitizer or valgrind
";

fn main() -> ExitCode {
    let mut args: Vec<String> = env::args().skip(1).collect();
    let command = if args.is_empty() { String::new() } else { args.remove(0) };
    let answer = match command.as_str() {
        "test" => test::main(&args),
        "lint" => test::lint(&args),
        "codegen" => codegen_main(&args),
        "docs" => docs::main(&args),
        "kafka" => kafka::main(&args),
        "bench" => bench::main(&args),
        "install" => library::main(&args),
        "abi" => abi::main(&args),
        "fuzz" => fuzz::main(&args),
        "sim" => sim::sim(&args),
        "swarm" => sim::swarm(&args),
        "mutants" => sim::mutants(&args),
        "threads" => threads::threads(&args),
        "sanitize" => threads::sanitize(&args),
        "" | "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("there is no command `{other}`\n\n{HELP}").into()),
    };
    answer.unwrap_or_else(|error| {
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
