//! `ottla-sim SEED` replays one seed with its trace. `ottla-sim --swarm FIRST COUNT` runs many seeds, and `--swarm --minutes N`
//! fresh ones for N minutes. `--hunt FIRST COUNT CHECKER` runs seeds until a checker notices a broken guarantee.
//! `--group SEED` replays a world of a consumer group, `--schedule NAME` runs a schedule of a group (`all` runs each),
//! `--crowd SEED` a group of 500 members. `--groups` and `--hunt-groups` are like `--swarm` and `--hunt` with the worlds of
//! consumer groups, `--hunt-sasl`, `--hunt-telemetry` and `--hunt-ceilings` like `--hunt` with worlds in which clients authenticate, push metrics or
//! have a ceiling of their memory; the
//! flags of `WORLDS` replay one of them and of other special worlds. `--transaction SEED`,
//! `--transactions` and `--hunt-transactions` run the worlds of transactions, `--share SEED`, `--shares` and `--hunt-shares`
//! those of share groups, `--streams-group SEED`, `--streams-groups` and `--hunt-streams` those of streams groups.
//! `--hunt-misrouting` runs the schedules in which addresses lead elsewhere, by their numbers. `--minutes N` runs fresh seeds, every second one
//! with its group.

use std::{
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ottla_sim::{
    Broken, Knobs, Outcome, groups,
    hunt::{
        Hunt, hunt, hunt_ceilings, hunt_groups, hunt_misrouting, hunt_sasl, hunt_shares, hunt_streams,
        hunt_telemetry, hunt_transactions,
    },
    run, shares, streams, transactions,
};

/// A flag, and the knobs of its world from a seed.
type World = (&'static str, fn(u64) -> Knobs);

/// Special worlds: the flag that replays one, and its knobs.
const WORLDS: [World; 9] = [
    ("--sasl", Knobs::with_sasl),
    ("--sasl-outage", Knobs::with_outage),
    ("--sasl-week", Knobs::with_sasl_for_a_week),
    ("--telemetry", Knobs::with_telemetry),
    ("--differing-topics", Knobs::with_differing_topics),
    ("--ceilings", Knobs::with_ceilings),
    ("--producers-only", Knobs::producers_only),
    ("--untouched-logs", Knobs::untouched_logs),
    ("--without-ids", Knobs::without_ids),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| parse(text));
    match arguments.first().map(String::as_str) {
        Some("--swarm") => match Seeds::parse(&arguments[1..]) {
            Some(seeds) => swarm(&seeds, false),
            None => usage(),
        },
        Some("--hunt") => match (number(1), number(2), arguments.get(3)) {
            (Some(first), Some(count), Some(checker)) => notice(&hunt(first, count, checker), checker, count),
            _ => usage(),
        },
        Some(flag @ ("--hunt-sasl" | "--hunt-telemetry" | "--hunt-ceilings")) => {
            match (number(1), number(2), arguments.get(3)) {
                (Some(first), Some(count), Some(checker)) => {
                    let hunt = match flag {
                        "--hunt-sasl" => hunt_sasl,
                        "--hunt-telemetry" => hunt_telemetry,
                        _ => hunt_ceilings,
                    };
                    notice(&hunt(first, count, checker), checker, count)
                }
                _ => usage(),
            }
        }
        Some("--hunt-groups") => match (number(1), number(2), arguments.get(3)) {
            (Some(first), Some(count), Some(checker)) => {
                notice(&hunt_groups(first, count, checker), checker, count)
            }
            _ => usage(),
        },
        Some("--hunt-misrouting") => match (number(1), number(2), arguments.get(3)) {
            (Some(first), Some(count), Some(checker)) => {
                notice(&hunt_misrouting(first, count, checker), checker, count)
            }
            _ => usage(),
        },
        Some("--groups") => match Seeds::parse(&arguments[1..]) {
            Some(seeds) => {
                swarm_of("groups", &seeds, |seed| groups::run(seed).map(|summary| summary.virtual_time))
            }
            None => usage(),
        },
        Some("--transactions") => match Seeds::parse(&arguments[1..]) {
            Some(seeds) => swarm_of("transactions", &seeds, |seed| {
                transactions::run(seed).map(|summary| summary.virtual_time)
            }),
            None => usage(),
        },
        Some("--hunt-transactions") => match (number(1), number(2), arguments.get(3)) {
            (Some(first), Some(count), Some(checker)) => {
                notice(&hunt_transactions(first, count, checker), checker, count)
            }
            _ => usage(),
        },
        Some("--share" | "--shares" | "--hunt-shares") => of_shares(&arguments),
        Some("--streams-group" | "--streams-groups" | "--hunt-streams") => of_streams(&arguments),
        Some("--transaction") => match number(1) {
            Some(seed) => one_of_transactions(seed),
            None => usage(),
        },
        Some("--schedule") => match arguments.get(1).map(String::as_str) {
            Some("all") => all_schedules(),
            Some(name) => scheduled(name),
            None => usage(),
        },
        Some("--crowd") => match number(1) {
            Some(seed) => crowd(seed),
            None => usage(),
        },
        Some("--group") => match number(1) {
            Some(seed) => one_group(seed),
            None => usage(),
        },
        Some("--minutes") => match Seeds::parse(&arguments) {
            Some(seeds) => swarm(&seeds, true),
            None => usage(),
        },
        Some(text) => match (WORLDS.iter().find(|(flag, _)| *flag == text), parse(text)) {
            (Some((_, knobs)), _) => number(1).map_or_else(usage, |seed| one(&knobs(seed))),
            (None, Some(seed)) => one(&Knobs::from_seed(seed)),
            (None, None) => usage(),
        },
        None => usage(),
    }
}

/// The seeds of a swarm.
struct Seeds {
    first: u64,
    limit: Limit,
}

enum Limit {
    Count(u64),
    Minutes(u64),
}

impl Seeds {
    /// Parses `FIRST COUNT`, or `--minutes N` for fresh seeds.
    fn parse(arguments: &[String]) -> Option<Self> {
        let [first, second] = arguments else { return None };
        if first == "--minutes" {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let first = since.map_or(1, |since| since.as_nanos() as u64);
            return Some(Self { first, limit: Limit::Minutes(parse(second)?) });
        }
        Some(Self { first: parse(first)?, limit: Limit::Count(parse(second)?) })
    }

    /// Returns the seeds one by one, from now on.
    fn run(&self) -> impl Iterator<Item = u64> + use<'_> {
        let start = Instant::now();
        let goes_on = move |done: &u64| match self.limit {
            Limit::Count(count) => *done < count,
            Limit::Minutes(minutes) => start.elapsed().as_secs() < minutes * 60,
        };
        (0..).take_while(goes_on).map(|done| self.first.wrapping_add(done))
    }
}

fn one(knobs: &Knobs) -> ExitCode {
    println!("{knobs:#?}");
    let outcome = run(knobs, true);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    let again = run(knobs, false);
    if again.hash != outcome.hash {
        println!("determinism: the same seed gave two traces");
        return ExitCode::from(4);
    }
    print_outcome(knobs.seed, &outcome);
    if outcome.broken.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// One of this number of seeds runs twice, to check that the trace is the same.
const REPORTED_TWICE: u64 = 50;

/// Runs seeds, with the transactions of every fourth one, and the group of every second one if it `has_groups`.
fn swarm(seeds: &Seeds, has_groups: bool) -> ExitCode {
    let start = Instant::now();
    let (mut groups, mut transactions): (u64, u64) = (0, 0);
    let (mut done, mut failed, mut virtual_seconds, mut records) = (0, 0, 0.0, 0);
    for seed in seeds.run() {
        let knobs = Knobs::from_seed(seed);
        let outcome = run(&knobs, false);
        virtual_seconds += outcome.virtual_time.as_secs_f64();
        records += outcome.records;
        done += 1;
        if seed % REPORTED_TWICE == 0 && run(&knobs, false).hash != outcome.hash {
            failed += 1;
            println!("seed {seed}: determinism: the same seed gave two traces");
        }
        if outcome.broken.is_some() {
            failed += 1;
            print_outcome(seed, &outcome);
        }
        if seed % 4 == 1 {
            transactions += 1;
            match transactions::run(seed) {
                Ok(summary) => virtual_seconds += summary.virtual_time.as_secs_f64(),
                Err(broken) => {
                    failed += 1;
                    println!("transactions, seed {seed}: {broken}");
                }
            }
        }
        if has_groups && seed % 2 == 0 {
            groups += 1;
            match groups::run(seed) {
                Ok(summary) => virtual_seconds += summary.virtual_time.as_secs_f64(),
                Err(broken) => {
                    failed += 1;
                    println!("group {seed}: {broken}");
                }
            }
        }
    }
    let real = start.elapsed().as_secs_f64();
    println!(
        "{done} seeds, {groups} groups and {transactions} worlds of transactions, {failed} failed, {records} records, {virtual_seconds:.0} virtual seconds in {real:.1} s: {:.0} times real time",
        virtual_seconds / real
    );
    println!("{} passed, {failed} failed", (done + groups + transactions).saturating_sub(failed));
    if failed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Runs seeds until this checker notices something, and prints the seed. Succeeds if it did.
fn notice(hunt: &Hunt, checker: &str, count: u64) -> ExitCode {
    for (other, seeds) in &hunt.others {
        println!("{other} noticed something in {seeds} earlier seeds");
    }
    match &hunt.noticed {
        Some((seed, broken)) => {
            println!("noticed by seed {seed}: {broken}");
            ExitCode::SUCCESS
        }
        None => {
            println!("{checker} noticed nothing in {count} seeds");
            ExitCode::from(1)
        }
    }
}

/// Replays the transactions of a seed.
fn one_of_transactions(seed: u64) -> ExitCode {
    let (result, trace) = transactions::replay(seed, true);
    print_transactions(&format!("seed {seed}"), result, &trace)
}

fn print_transactions(
    name: &str,
    result: Result<transactions::Summary, Broken>,
    trace: &[String],
) -> ExitCode {
    trace.iter().for_each(|line| println!("{line}"));
    match result {
        Ok(summary) => println!("{name}: all guarantees kept, {summary:?}"),
        Err(broken) => {
            println!("{name}: {broken}");
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

/// Replays the group of a seed.
fn one_group(seed: u64) -> ExitCode {
    print_group(&format!("seed {seed}"), groups::replay(seed, true))
}

/// Runs the schedule of a name.
fn scheduled(name: &str) -> ExitCode {
    if let Some((result, trace)) = transactions::schedules::run(name, true) {
        return print_transactions(name, result, &trace);
    }
    if let Some(replay) = shares::schedules::run(name, true) {
        return print_group(name, replay);
    }
    if let Some(replay) = streams::schedules::run(name, true) {
        return print_group(name, replay);
    }
    let Some((result, trace)) = groups::schedules::run(name, true) else {
        let names = [
            &groups::schedules::NAMES[..],
            &transactions::schedules::NAMES,
            &shares::schedules::NAMES,
            &streams::schedules::NAMES,
        ]
        .concat();
        eprintln!("there is no schedule {name}; the schedules are {}", names.join(", "));
        return ExitCode::from(2);
    };
    trace.iter().for_each(|line| println!("{line}"));
    match result {
        Ok(summary) => println!("{name}: all guarantees kept, {summary:?}"),
        Err(broken) => {
            println!("{name}: {broken}");
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

/// Runs worlds of share groups.
fn of_shares(arguments: &[String]) -> ExitCode {
    let number = |index: usize| arguments.get(index).and_then(|text| parse(text));
    match (&*arguments[0], number(1), number(2), arguments.get(3)) {
        ("--share", Some(seed), ..) => print_group(&format!("seed {seed}"), shares::replay(seed, true)),
        ("--hunt-shares", Some(first), Some(count), Some(checker)) => {
            notice(&hunt_shares(first, count, checker), checker, count)
        }
        ("--shares", ..) => match Seeds::parse(&arguments[1..]) {
            Some(seeds) => {
                swarm_of("share groups", &seeds, |seed| shares::run(seed).map(|summary| summary.virtual_time))
            }
            None => usage(),
        },
        _ => usage(),
    }
}

/// Runs worlds of streams groups.
fn of_streams(arguments: &[String]) -> ExitCode {
    let number = |index: usize| arguments.get(index).and_then(|text| parse(text));
    match (&*arguments[0], number(1), number(2), arguments.get(3)) {
        ("--streams-group", Some(seed), ..) => {
            print_group(&format!("seed {seed}"), streams::replay(seed, true))
        }
        ("--hunt-streams", Some(first), Some(count), Some(checker)) => {
            notice(&hunt_streams(first, count, checker), checker, count)
        }
        ("--streams-groups", ..) => match Seeds::parse(&arguments[1..]) {
            Some(seeds) => swarm_of("streams groups", &seeds, |seed| {
                streams::run(seed).map(|summary| summary.virtual_time)
            }),
            None => usage(),
        },
        _ => usage(),
    }
}

/// Prints the trace and the result of a group of any kind.
fn print_group<S: std::fmt::Debug>(
    name: &str,
    (result, trace): (Result<S, Broken>, Vec<String>),
) -> ExitCode {
    trace.iter().for_each(|line| println!("{line}"));
    match result {
        Ok(summary) => {
            println!("{name}: all guarantees kept, {summary:?}");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("{name}: {broken}");
            ExitCode::from(1)
        }
    }
}

/// Runs every schedule.
fn all_schedules() -> ExitCode {
    let mut failed = 0;
    let of_groups = groups::schedules::NAMES.iter().map(|name| {
        let result = groups::schedules::run(name, false);
        (name, result.map(|(result, _)| result.map(|summary| summary.virtual_time)))
    });
    let of_transactions = transactions::schedules::NAMES.iter().map(|name| {
        let result = transactions::schedules::run(name, false);
        (name, result.map(|(result, _)| result.map(|summary| summary.virtual_time)))
    });
    let of_shares = shares::schedules::NAMES.iter().map(|name| {
        let result = shares::schedules::run(name, false);
        (name, result.map(|(result, _)| result.map(|summary| summary.virtual_time)))
    });
    let of_streams = streams::schedules::NAMES.iter().map(|name| {
        let result = streams::schedules::run(name, false);
        (name, result.map(|(result, _)| result.map(|summary| summary.virtual_time)))
    });
    for (name, result) in of_groups.chain(of_transactions).chain(of_shares).chain(of_streams) {
        match result {
            Some(Ok(time)) => {
                println!("{name}: all guarantees kept, {:.0} virtual seconds", time.as_secs_f64());
            }
            Some(Err(broken)) => {
                failed += 1;
                println!("{name}: {broken}");
            }
            None => {}
        }
    }
    if failed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Runs the group of 500 members of a seed.
fn crowd(seed: u64) -> ExitCode {
    match groups::crowd::run(seed, groups::crowd::MEMBERS) {
        Ok(time) => println!("crowd {seed}: all guarantees kept, {:.0} virtual seconds", time.as_secs_f64()),
        Err(broken) => {
            println!("crowd {seed}: {broken}");
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

/// Runs worlds of one kind, each of which returns its virtual time.
fn swarm_of(kind: &str, seeds: &Seeds, run: impl Fn(u64) -> Result<Duration, Broken>) -> ExitCode {
    let start = Instant::now();
    let (mut count, mut failed, mut virtual_seconds) = (0_u64, 0_u64, 0.0);
    for seed in seeds.run() {
        count += 1;
        match run(seed) {
            Ok(time) => virtual_seconds += time.as_secs_f64(),
            Err(broken) => {
                failed += 1;
                println!("{kind}, seed {seed}: {broken}");
            }
        }
    }
    let real = start.elapsed().as_secs_f64();
    println!(
        "{count} worlds of {kind}, {failed} failed, {virtual_seconds:.0} virtual seconds in {real:.1} s: {:.0} times real time",
        virtual_seconds / real
    );
    println!("{} passed, {failed} failed", count - failed);
    if failed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

fn print_outcome(seed: u64, outcome: &Outcome) {
    match &outcome.broken {
        Some(broken) => println!("seed {seed}: {broken}"),
        None => println!(
            "seed {seed}: all guarantees kept, {} of {} records acknowledged, {:.1} virtual seconds, {} transitions, hash {:016x}",
            outcome.acknowledged,
            outcome.records,
            outcome.virtual_time.as_secs_f64(),
            outcome.events,
            outcome.hash
        ),
    }
}

fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: ottla-sim SEED | --swarm SEEDS | --groups SEEDS | --minutes N | --hunt FIRST COUNT CHECKER | --group SEED | --schedule NAME | --crowd SEED | --hunt-groups FIRST COUNT CHECKER | --hunt-sasl FIRST COUNT CHECKER | --hunt-telemetry FIRST COUNT CHECKER | --hunt-misrouting FIRST COUNT CHECKER | --transaction SEED | --transactions SEEDS | --hunt-transactions FIRST COUNT CHECKER | --share SEED | --shares SEEDS | --hunt-shares FIRST COUNT CHECKER\nSEEDS: FIRST COUNT | --minutes N"
    );
    WORLDS.iter().for_each(|(flag, _)| eprintln!("or: ottla-sim {flag} SEED"));
    ExitCode::from(2)
}
