//! `cargo xtask sim SEED` and `cargo xtask swarm`: the simulator, with one seed and with many.

use std::{process::ExitCode, time::Duration};

use crate::{
    Result,
    fuzz::number,
    shell::{self, cargo},
};

/// Replays one seed of the simulator: its knobs, its trace line by line, and the first broken guarantee, if any.
#[derive(clap::Args, Debug)]
#[group(id = "world", required = true, multiple = false)]
pub struct Options {
    /// The world of this seed, decimal or 0x-hexadecimal.
    seed: Option<String>,
    /// The world of a consumer group.
    #[arg(long, value_name = "SEED")]
    group: Option<String>,
    /// A group in a certain situation, such as leader-dies; an unknown name lists them, `all` runs each.
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// A group of 500 members.
    #[arg(long, value_name = "SEED")]
    crowd: Option<String>,
    /// A world whose clients authenticate.
    #[arg(long, value_name = "SEED")]
    sasl: Option<String>,
    /// The same for two and a half hours, of which the identity provider is down for one.
    #[arg(long, value_name = "SEED")]
    sasl_outage: Option<String>,
    /// The same for a week, with sessions of an hour.
    #[arg(long, value_name = "SEED")]
    sasl_week: Option<String>,
    /// A world whose clients push metrics.
    #[arg(long, value_name = "SEED")]
    telemetry: Option<String>,
    /// A world whose topics have their own settings.
    #[arg(long, value_name = "SEED")]
    differing_topics: Option<String>,
    /// A world whose clients have a ceiling of their memory.
    #[arg(long, value_name = "SEED")]
    ceilings: Option<String>,
    /// A world without consumers.
    #[arg(long, value_name = "SEED")]
    producers_only: Option<String>,
    /// A world in which only producers change logs.
    #[arg(long, value_name = "SEED")]
    untouched_logs: Option<String>,
    /// A world in which some brokers report no topic IDs.
    #[arg(long, value_name = "SEED")]
    without_ids: Option<String>,
    /// The world of transactions of one seed.
    #[arg(long, value_name = "SEED")]
    transaction: Option<String>,
    /// The world of a share group of one seed.
    #[arg(long, value_name = "SEED")]
    share: Option<String>,
    /// The world of a streams group of one seed.
    #[arg(long, value_name = "SEED")]
    streams_group: Option<String>,
}

/// Runs the simulator with many seeds, and prints each broken promise with the seed that shows it; `cargo xtask sim SEED` replays
/// it.
///
/// Without the name of a kind of world, every fourth seed has transactions besides its own world, and with --minutes every second
/// one a group.
#[derive(clap::Args, Debug)]
pub struct SwarmOptions {
    /// Worlds of consumer groups.
    #[arg(long, group = "kind")]
    groups: bool,
    /// Worlds of transactional producers.
    #[arg(long, group = "kind")]
    transactions: bool,
    /// Worlds of share groups.
    #[arg(long, group = "kind")]
    shares: bool,
    /// Worlds of streams groups.
    #[arg(long, group = "kind")]
    streams_groups: bool,
    /// The number of seeds.
    #[arg(long, default_value = "10000", value_parser = number, value_name = "COUNT")]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value = "1", value_parser = number, value_name = "SEED")]
    first: u64,
    /// Fresh seeds for this time, instead of fixed ones.
    #[arg(long, conflicts_with_all = ["seeds", "first"], value_name = "N")]
    minutes: Option<u64>,
}

pub fn sim(options: &Options) -> Result<ExitCode> {
    let named = [
        ("--group", &options.group),
        ("--schedule", &options.schedule),
        ("--crowd", &options.crowd),
        ("--sasl", &options.sasl),
        ("--sasl-outage", &options.sasl_outage),
        ("--sasl-week", &options.sasl_week),
        ("--telemetry", &options.telemetry),
        ("--differing-topics", &options.differing_topics),
        ("--ceilings", &options.ceilings),
        ("--producers-only", &options.producers_only),
        ("--untouched-logs", &options.untouched_logs),
        ("--without-ids", &options.without_ids),
        ("--transaction", &options.transaction),
        ("--share", &options.share),
        ("--streams-group", &options.streams_group),
    ];
    match named.into_iter().find_map(|(flag, value)| Some((flag, value.as_ref()?))) {
        Some((flag, value)) => simulator(&[flag, value]),
        None => simulator(&[options.seed.as_deref().unwrap_or_default()]),
    }
}

pub fn swarm(options: &SwarmOptions) -> Result<ExitCode> {
    let kinds = [
        ("--groups", options.groups),
        ("--transactions", options.transactions),
        ("--shares", options.shares),
        ("--streams-groups", options.streams_groups),
    ];
    let kind = kinds.into_iter().find_map(|(flag, is_chosen)| is_chosen.then_some(flag));
    match options.minutes.map(|minutes| minutes.to_string()) {
        Some(minutes) => simulator(&[kind.as_slice(), &["--minutes", &minutes]].concat()),
        None => {
            simulator(&[kind.unwrap_or("--swarm"), &options.first.to_string(), &options.seeds.to_string()])
        }
    }
}

fn simulator(args: &[&str]) -> Result<ExitCode> {
    let mut run = cargo();
    run.args(["run", "--quiet", "--release", "--package", "ottla-sim", "--"]).args(args);
    let done = shell::run(&mut run, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
