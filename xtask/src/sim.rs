//! `cargo xtask sim SEED` and `cargo xtask swarm`: the simulator, with one seed and with many.

use std::{process::ExitCode, time::Duration};

use crate::{
    Result,
    fuzz::number,
    shell::{self, cargo},
};

/// Replays one seed of the simulator: its knobs and its trace line by line. If its world breaks a guarantee, it is shrunk within two
/// minutes to a plan with few incidents, of which the story, a command and the skeleton of a test are printed.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Prints the whole trace of a world that breaks a guarantee.
    #[arg(long)]
    whole: bool,
    #[command(flatten)]
    world: WorldOptions,
}

/// The world that is replayed.
#[derive(clap::Args, Debug)]
#[group(id = "world", required = true, multiple = false)]
struct WorldOptions {
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
    /// A world with hardships: damaged bytes, full disks, a lost quorum, jobs that never return.
    #[arg(long, value_name = "SEED")]
    hardships: Option<String>,
    /// The world of transactions of one seed.
    #[arg(long, value_name = "SEED")]
    transaction: Option<String>,
    /// The world of a share group of one seed.
    #[arg(long, value_name = "SEED")]
    share: Option<String>,
    /// The world of a streams group of one seed.
    #[arg(long, value_name = "SEED")]
    streams_group: Option<String>,
    /// The world of a plan, which is a text or a file: what it breaks, and the story of that.
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// A smaller plan whose world breaks the same.
    #[arg(long, value_name = "PLAN")]
    shrink: Option<String>,
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
    /// Worlds of this kind: clients, sasl, sasl-outage, telemetry, ceilings, differing-topics, group and so on, as `cargo xtask sim` has
    /// them. The first one that fails is shrunk.
    #[arg(long, group = "kind", value_name = "KIND")]
    of: Option<String>,
    /// Groups of 500 members.
    #[arg(long, group = "kind")]
    crowds: bool,
    /// Count the transitions of the clients' machines, and look for rare ones: half of the worlds are fresh seeds, the others plans that
    /// took a rare transition, with changes.
    #[arg(long, group = "kind", requires = "minutes")]
    guided: bool,
    /// Count the transitions of fresh seeds only, for a comparison.
    #[arg(long, group = "kind", requires = "minutes")]
    unguided: bool,
    /// Write docs/internals/transitions.md: what no world did.
    #[arg(long, requires = "minutes")]
    page: bool,
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
    let Options { whole, world: options } = options;
    let whole: &[&str] = if *whole { &["--whole"] } else { &[] };
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
        ("--hardships", &options.hardships),
        ("--transaction", &options.transaction),
        ("--share", &options.share),
        ("--streams-group", &options.streams_group),
        ("--plan", &options.plan),
        ("--shrink", &options.shrink),
    ];
    match named.into_iter().find_map(|(flag, value)| Some((flag, value.as_ref()?))) {
        Some((flag, value)) => simulator(&[&[flag, value.as_str()], whole].concat()),
        None => simulator(&[&[options.seed.as_deref().unwrap_or_default()], whole].concat()),
    }
}

pub fn swarm(options: &SwarmOptions) -> Result<ExitCode> {
    let kinds = [
        ("--groups", options.groups),
        ("--transactions", options.transactions),
        ("--shares", options.shares),
        ("--streams-groups", options.streams_groups),
        ("--crowds", options.crowds),
    ];
    if options.guided || options.unguided {
        return guided(options);
    }
    let flag = kinds.into_iter().find_map(|(flag, is_chosen)| is_chosen.then_some(flag));
    let kind = match &options.of {
        Some(name) => vec!["--swarm-of", name],
        None => flag.into_iter().collect(),
    };
    match options.minutes.map(|minutes| minutes.to_string()) {
        Some(minutes) => simulator(&[&kind[..], &["--minutes", &minutes]].concat()),
        None => {
            let kind = if kind.is_empty() { vec!["--swarm"] } else { kind };
            simulator(&[&kind[..], &[&options.first.to_string(), &options.seeds.to_string()]].concat())
        }
    }
}

/// Minutes are those of the processor.
fn guided(options: &SwarmOptions) -> Result<ExitCode> {
    let flag = if options.guided { "--guided" } else { "--unguided" };
    let minutes = options.minutes.unwrap_or(1).to_string();
    let first = fresh_seed().to_string();
    let page = shell::root().join("docs/internals/transitions.md").display().to_string();
    let page = if options.page { &[page.as_str()][..] } else { &[] };
    simulator(&[&[flag, &minutes, &first], page].concat())
}

fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

fn simulator(args: &[&str]) -> Result<ExitCode> {
    let mut run = cargo();
    run.args(["run", "--quiet", "--release", "--package", "ottla-sim", "--"]).args(args);
    let done = shell::run(&mut run, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
