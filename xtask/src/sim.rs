//! `cargo xtask sim SEED`, `cargo xtask swarm` and `cargo xtask mutants`: the simulator, with one seed, with many, and with
//! a client that makes deliberate mistakes.

use std::{fs, process::ExitCode, time::Duration};

use crate::{
    Result,
    shell::{self, cargo},
};

const SIM_HELP: &str = "\
cargo xtask sim SEED

Replays one seed of the simulator: its knobs, its story line by line, and the first broken promise, if any. SEED is
decimal or 0x-hexadecimal.
";

const SWARM_HELP: &str = "\
cargo xtask swarm [--seeds COUNT] [--first SEED] [--minutes N]

Runs the simulator with many seeds: COUNT (default 10,000) from SEED (default 1) on, or fresh ones for N minutes.
Prints each broken promise with the seed that shows it; `cargo xtask sim SEED` replays it.
";

const MUTANTS_HELP: &str = "\
cargo xtask mutants [--seeds COUNT] [MISTAKE...]

Lets the client make one deliberate mistake at a time (crates/core/src/mutation.rs), and runs up to COUNT (default 1,000)
seeds of the simulator until a checker notices it. Without names all mistakes are tried, and the table of who noticed what
is written into docs/simulation.md.
";

pub fn sim(args: &[String]) -> Result<ExitCode> {
    match args {
        [flag] if flag == "--help" || flag == "-h" => {
            print!("{SIM_HELP}");
            Ok(ExitCode::SUCCESS)
        }
        [seed] => simulator(&[seed]),
        _ => Err(SIM_HELP.into()),
    }
}

pub fn swarm(args: &[String]) -> Result<ExitCode> {
    let (mut count, mut first, mut minutes) = ("10000".to_owned(), "1".to_owned(), None);
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let mut value = || args.next().map(|text| text.replace([',', '_'], "")).ok_or(SWARM_HELP);
        match flag.as_str() {
            "--seeds" => count = value()?,
            "--first" => first = value()?,
            "--minutes" => minutes = Some(value()?),
            "--help" | "-h" => {
                print!("{SWARM_HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            _ => return Err(SWARM_HELP.into()),
        }
    }
    match minutes {
        Some(minutes) => simulator(&["--minutes", &minutes]),
        None => simulator(&["--swarm", &first, &count]),
    }
}

pub fn mutants(args: &[String]) -> Result<ExitCode> {
    let (mut count, mut names) = ("1000".to_owned(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => count = args.next().ok_or(MUTANTS_HELP)?.replace([',', '_'], ""),
            "--help" | "-h" => {
                print!("{MUTANTS_HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            name if name.starts_with('-') => return Err(MUTANTS_HELP.into()),
            name => names.push(name),
        }
    }
    let mut run = cargo();
    run.args(["run", "--quiet", "--release", "--package", "ottla-sim", "--features", "mutants", "--"]);
    run.args(["--mutants", &count]).args(&names);
    let done = shell::run(&mut run, Duration::from_secs(24 * 3600), true)?;
    if names.is_empty() {
        let rows = done.output.lines().filter(|line| line.starts_with("| ")).count();
        // A header, a line below it, and a row for each mistake.
        if rows < 2 {
            return Err("the hunt ended without a table; docs/simulation.md stays as it was".into());
        }
        let path = shell::root().join(SIMULATION);
        let document = fs::read_to_string(&path).map_err(|error| format!("{SIMULATION}: {error}"))?;
        fs::write(&path, with_table(&document, &done.output)?)?;
        println!("{SIMULATION} has the table");
    }
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const SIMULATION: &str = "docs/simulation.md";
const BEGIN: &str = "<!-- written by `cargo xtask mutants` -->\n";
const END: &str = "<!-- up to here -->\n";

/// The document with the table of `output` between the markers.
fn with_table(document: &str, output: &str) -> Result<String> {
    let missing = || format!("{SIMULATION} has not the lines {BEGIN:?} and {END:?}");
    let (before, rest) = document.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let mut table = String::new();
    for line in output.lines().filter(|line| line.starts_with('|')) {
        table.push_str(line);
        table.push('\n');
    }
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

fn simulator(args: &[&str]) -> Result<ExitCode> {
    let mut run = cargo();
    run.args(["run", "--quiet", "--release", "--package", "ottla-sim", "--"]).args(args);
    let done = shell::run(&mut run, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_goes_between_the_markers_and_nowhere_else() {
        let document = format!("above\n{BEGIN}old\n{END}below\n");
        let written = with_table(&document, "A: seed 1\n| a | b |\n|---|---|\n1 passed, 0 failed\n");
        assert_eq!(
            written.expect("it has markers"),
            format!("above\n{BEGIN}| a | b |\n|---|---|\n{END}below\n")
        );
        assert!(with_table("no markers", "| a |\n").is_err());
    }
}
