//! `ottla-sim SEED` replays one seed with its trace; a world that breaks a guarantee is shrunk instead. `--plan PLAN` repeats a plan,
//! which is a text or a file, and `--shrink PLAN` shrinks one. `--swarm-of KIND SEEDS` runs seeds of a kind, `--crowds SEEDS` crowds. `ottla-sim --swarm FIRST COUNT` runs many seeds, and `--swarm --minutes N`
//! fresh ones for N minutes. `--hunt FIRST COUNT CHECKER` runs seeds until a checker notices a broken guarantee.
//! `--group SEED` replays a world of a consumer group, `--schedule NAME` runs a schedule of a group (`all` runs each),
//! `--crowd SEED` a group of 500 members. `--groups` and `--hunt-groups` are like `--swarm` and `--hunt` with the worlds of
//! consumer groups, `--hunt-sasl`, `--hunt-telemetry` and `--hunt-ceilings` like `--hunt` with worlds in which clients authenticate, push metrics or
//! have a ceiling of their memory; the
//! flags of `WORLDS` replay one of them and of other special worlds. `--transaction SEED`,
//! `--transactions` and `--hunt-transactions` run the worlds of transactions, `--share SEED`, `--shares` and `--hunt-shares`
//! those of share groups, `--streams-group SEED`, `--streams-groups` and `--hunt-streams` those of streams groups.
//! `--hunt-misrouting` runs the schedules in which addresses lead elsewhere, by their numbers. `--minutes N` runs fresh seeds, every second one
//! with its group. `--guided MINUTES FIRST [PAGE]` and `--unguided` count transitions.

mod guided;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ottla_sim::{
    Broken, Knobs, Outcome, groups,
    hunt::{
        Hunt, hunt, hunt_ceilings, hunt_groups, hunt_hardships, hunt_misrouting, hunt_sasl, hunt_shares,
        hunt_streams, hunt_telemetry, hunt_transactions,
    },
    plan::{KINDS, Kind, Plan, Ran},
    report, run, shares,
    shrink::{Effort, PANIC, break_plan},
    streams, transactions,
};

/// A flag, and what it runs: from a first seed on, a number of seeds, for a checker.
type Hunter = (&'static str, fn(u64, u64, &str) -> Hunt);

/// The flags that run seeds until a checker notices something.
const HUNTS: [Hunter; 10] = [
    ("--hunt", hunt),
    ("--hunt-sasl", hunt_sasl),
    ("--hunt-telemetry", hunt_telemetry),
    ("--hunt-ceilings", hunt_ceilings),
    ("--hunt-hardships", hunt_hardships),
    ("--hunt-groups", hunt_groups),
    ("--hunt-misrouting", hunt_misrouting),
    ("--hunt-transactions", hunt_transactions),
    ("--hunt-shares", hunt_shares),
    ("--hunt-streams", hunt_streams),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((flag, rest)) = arguments.split_first() else { return usage() };
    let is_whole = rest.iter().any(|argument| argument == WHOLE);
    let number = |index: usize| rest.get(index).and_then(|text| parse(text));
    if let Some((_, hunt)) = HUNTS.into_iter().find(|(name, _)| name == flag) {
        return match (number(0), number(1), rest.get(2)) {
            (Some(first), Some(count), Some(checker)) => notice(&hunt(first, count, checker), checker, count),
            _ => usage(),
        };
    }
    match (flag.as_str(), rest.first().map(String::as_str)) {
        ("--schedule", Some("all")) => all_schedules(),
        ("--schedule", Some(name)) => scheduled(name),
        ("--crowd", Some(_)) => number(0).map_or_else(usage, crowd),
        ("--plan", Some(text)) => planned(text, is_whole),
        ("--shrink", Some(text)) => shrink_plan(text),
        ("--swarm-of", Some(name)) => match (Kind::named(name), Seeds::parse(&rest[1..])) {
            (Some(kind), Some(seeds)) => swarm_of_kind(kind, &seeds),
            _ => usage(),
        },
        ("--guided" | "--unguided", Some(_)) => match (number(0), number(1)) {
            (Some(minutes), Some(first)) => {
                guided::run(first, minutes, flag == "--guided", rest.get(2).map(String::as_str))
            }
            _ => usage(),
        },
        ("--minutes", Some(_)) => Seeds::parse(&arguments).map_or_else(usage, |seeds| swarm(&seeds, true)),
        (flag, Some(_)) if SWARMS.contains(&flag) => {
            Seeds::parse(rest).map_or_else(usage, |seeds| run_swarm(flag, &seeds))
        }
        (flag, _) => match (flag.strip_prefix("--").and_then(Kind::named), parse(flag)) {
            (Some(kind), _) => number(0).map_or_else(usage, |seed| one(kind, seed, is_whole)),
            (None, Some(seed)) => one(KINDS[0], seed, is_whole),
            (None, None) => usage(),
        },
    }
}

/// The flags that run many seeds.
const SWARMS: [&str; 6] =
    ["--swarm", "--groups", "--transactions", "--shares", "--streams-groups", "--crowds"];

fn run_swarm(flag: &str, seeds: &Seeds) -> ExitCode {
    match flag {
        "--swarm" => swarm(seeds, false),
        "--groups" => swarm_of("groups", seeds, |seed| groups::run(seed).map(|summary| summary.virtual_time)),
        "--transactions" => swarm_of("transactions", seeds, |seed| {
            transactions::run(seed).map(|summary| summary.virtual_time)
        }),
        "--shares" => {
            swarm_of("share groups", seeds, |seed| shares::run(seed).map(|summary| summary.virtual_time))
        }
        "--streams-groups" => {
            swarm_of("streams groups", seeds, |seed| streams::run(seed).map(|summary| summary.virtual_time))
        }
        _ => swarm_of("crowds", seeds, |seed| groups::crowd::run(seed, groups::crowd::MEMBERS)),
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
            println!("fresh seeds from {first} on");
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

/// The flag that prints the whole trace of a world, also if it fails.
const WHOLE: &str = "--whole";

/// Replays a seed. If its world breaks a guarantee, it is shrunk unless the whole trace is wanted.
fn one(kind: Kind, seed: u64, is_whole: bool) -> ExitCode {
    if let Some(knobs) = kind.knobs(seed) {
        println!("{knobs:#?}");
    }
    match run_whole(Plan::drawn(kind, seed)) {
        Ok((plan, ran)) if ran.broken.is_none() && plan.run(false).hash != ran.hash => {
            println!("determinism: the same seed gave two traces");
            ExitCode::from(4)
        }
        Ok((_, ran)) if is_whole || ran.broken.is_none() => print_run(seed, ran),
        result => {
            print_shrunk(result);
            ExitCode::from(1)
        }
    }
}

/// Runs a plan with its trace. If it panics, returns the plan itself and the finding.
fn run_whole(plan: Plan) -> Result<(Plan, Ran), Box<(Plan, Broken)>> {
    let ran = quietly(|| catch_unwind(AssertUnwindSafe(|| plan.clone().with_incidents())));
    ran.map_err(|_| {
        let broken = quietly(|| break_plan(&plan));
        let broken = broken.unwrap_or_else(|| Broken::new(PANIC, "only the run with a trace panics"));
        Box::new((plan, broken))
    })
}

/// Prints the whole trace of a run, and what it broke.
fn print_run(seed: u64, ran: Ran) -> ExitCode {
    ran.trace.iter().for_each(|line| println!("{line}"));
    let (time, hash) = (ran.virtual_time.as_secs_f64(), ran.hash);
    match ran.broken {
        Some(broken) => {
            println!("seed {seed}: {broken}");
            ExitCode::from(1)
        }
        None => {
            println!("seed {seed}: all guarantees kept, {time:.1} virtual seconds, hash {hash:016x}");
            ExitCode::SUCCESS
        }
    }
}

/// Shrinks the plan of a failed run, and prints what is left.
fn print_shrunk(result: Result<(Plan, Ran), Box<(Plan, Broken)>>) {
    let (plan, broken) = match result {
        Ok((plan, Ran { broken: Some(broken), .. })) => (plan, broken),
        Err(failed) => *failed,
        Ok(_) => return println!("the world keeps all guarantees: there is nothing to shrink"),
    };
    println!("seed {}: {broken}", plan.seed);
    println!("{}", quietly(|| report::of_plan(plan, broken, Effort::usual(clock))));
}

/// Reads a plan: the text itself, or the file of this name.
fn read_plan(text: &str) -> Option<Plan> {
    let read = if text.contains(char::is_whitespace) {
        Ok(text.to_owned())
    } else {
        std::fs::read_to_string(text).map_err(|error| format!("{text:?} can't be read: {error}"))
    };
    read.and_then(|text| Plan::parse(&text)).map_err(|error| eprintln!("{error}")).ok()
}

/// Repeats a plan: prints what it breaks and the story of it, or the whole trace.
fn planned(text: &str, is_whole: bool) -> ExitCode {
    let Some(plan) = read_plan(text) else { return ExitCode::from(2) };
    match run_whole(plan) {
        Ok((plan, ran)) => match ran.broken {
            Some(broken) if !is_whole => {
                quietly(|| report::story_of(&plan, &broken)).iter().for_each(|line| println!("{line}"));
                ExitCode::from(1)
            }
            _ => print_run(plan.seed, ran),
        },
        Err(failed) => {
            let (plan, broken) = *failed;
            println!("seed {}: {broken}", plan.seed);
            ExitCode::from(1)
        }
    }
}

/// Shrinks a plan.
fn shrink_plan(text: &str) -> ExitCode {
    let Some(plan) = read_plan(text) else { return ExitCode::from(2) };
    print_shrunk(run_whole(plan));
    ExitCode::from(1)
}

/// Returns the time since the first call.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Runs something whose panics are findings.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = run();
    std::panic::set_hook(hook);
    result
}

/// Runs seeds of a kind of world, each of which has a plan; shrinks the first one that fails.
fn swarm_of_kind(kind: Kind, seeds: &Seeds) -> ExitCode {
    let is_first = std::cell::Cell::new(true);
    swarm_of(kind.name, seeds, |seed| {
        let ran = catch_unwind(|| Plan::drawn(kind, seed).run(false));
        let broken = match ran {
            Ok(ran) => match ran.broken {
                Some(broken) => broken,
                None => return Ok(ran.virtual_time),
            },
            Err(_) => Broken::new(PANIC, "the simulator panicked, see above"),
        };
        if is_first.replace(false) {
            print_shrunk(run_whole(Plan::drawn(kind, seed)));
        }
        Err(broken)
    })
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
            if failed == 1 {
                print_shrunk(run_whole(Plan::drawn(KINDS[0], seed)));
            }
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
    KINDS.iter().for_each(|kind| eprintln!("or: ottla-sim --{} SEED [{WHOLE}]", kind.name));
    eprintln!("or: ottla-sim --guided MINUTES FIRST [PAGE] | --unguided MINUTES FIRST [PAGE]");
    eprintln!("or: ottla-sim --plan PLAN [{WHOLE}] | --shrink PLAN | --swarm-of KIND SEEDS | --crowds SEEDS");
    ExitCode::from(2)
}
