//! `cargo xtask sim SEED` and `cargo xtask swarm`: the simulator, with one seed and with many.

use std::{process::ExitCode, time::Duration};

use crate::{
    Result,
    shell::{self, cargo},
};

const SIM_HELP: &str = "\
cargo xtask sim SEED
cargo xtask sim --group SEED
cargo xtask sim --schedule NAME
cargo xtask sim --crowd SEED
cargo xtask sim --sasl | --sasl-outage | --sasl-week SEED
cargo xtask sim --telemetry SEED
cargo xtask sim --transaction SEED
cargo xtask sim --share SEED

Replays one seed of the simulator: its knobs, its trace line by line, and the first broken guarantee, if any. SEED is
decimal or 0x-hexadecimal.

  --group SEED     the world of a consumer group
  --schedule NAME  a group in a certain situation, such as leader-dies; an unknown NAME lists them, `all` runs each
  --crowd SEED     a group of 500 members
  --sasl SEED      one seed whose clients authenticate
  --sasl-outage SEED  the same for two and a half hours, of which the identity provider is down for one
  --sasl-week SEED    the same for a week, with sessions of an hour
  --telemetry SEED    one seed whose clients push metrics
  --transaction SEED  the world of transactions of one seed
  --share SEED     the world of a share group of one seed
";

/// The flags of `cargo xtask sim` with a value.
const FLAGS: [&str; 9] = [
    "--group",
    "--schedule",
    "--crowd",
    "--sasl",
    "--telemetry",
    "--sasl-outage",
    "--sasl-week",
    "--transaction",
    "--share",
];

const SWARM_HELP: &str = "\
cargo xtask swarm [--groups | --transactions | --shares] [--seeds COUNT] [--first SEED] [--minutes N]

Runs the simulator with many seeds: COUNT (default 10,000) from SEED (default 1) on, or fresh ones for N minutes.
With --groups, each seed is a world of a consumer group, with --transactions one of transactional producers, with --shares one
of a share group. Without them, every fourth seed has transactions besides its own world, and with --minutes every second one a
group.
Prints each broken promise with the seed that shows it; `cargo xtask sim SEED` replays it.
";

pub fn sim(args: &[String]) -> Result<ExitCode> {
    match args {
        [flag] if flag == "--help" || flag == "-h" => {
            print!("{SIM_HELP}");
            Ok(ExitCode::SUCCESS)
        }
        [seed] => simulator(&[seed]),
        [flag, what] if FLAGS.contains(&flag.as_str()) => simulator(&[flag, what]),
        _ => Err(SIM_HELP.into()),
    }
}

pub fn swarm(args: &[String]) -> Result<ExitCode> {
    let (mut count, mut first, mut minutes) = ("10000".to_owned(), "1".to_owned(), None);
    let mut kind = "--swarm";
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let mut value = || args.next().map(|text| text.replace([',', '_'], "")).ok_or(SWARM_HELP);
        match flag.as_str() {
            "--groups" => kind = "--groups",
            "--transactions" => kind = "--transactions",
            "--shares" => kind = "--shares",
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
        Some(minutes) if kind != "--swarm" => simulator(&[kind, "--minutes", &minutes]),
        Some(minutes) => simulator(&["--minutes", &minutes]),
        None => simulator(&[kind, &first, &count]),
    }
}

fn simulator(args: &[&str]) -> Result<ExitCode> {
    let mut run = cargo();
    run.args(["run", "--quiet", "--release", "--package", "ottla-sim", "--"]).args(args);
    let done = shell::run(&mut run, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
