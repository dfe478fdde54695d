//! `ottla-sim SEED [MISTAKE]` replays one seed with its story; `ottla-sim --swarm FIRST COUNT` runs many; `--minutes N` runs fresh
//! ones for so long; `--mutants COUNT` (with the feature `mutants`) hunts deliberate mistakes.

use std::{process::ExitCode, time::Instant};

use ottla_sim::{Knobs, Outcome, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| parse(text));
    match arguments.first().map(String::as_str) {
        Some("--swarm") => match (number(1), number(2)) {
            (Some(first), Some(count)) => swarm(first, |done, _| done < count),
            _ => usage(),
        },
        #[cfg(feature = "mutants")]
        Some("--mutants") => mutants(number(1).unwrap_or(1000), arguments.get(2..).unwrap_or_default()),
        Some("--minutes") => match number(1) {
            Some(minutes) => {
                let first = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(1, |since| since.as_nanos() as u64);
                let start = Instant::now();
                swarm(first, |_, _| start.elapsed().as_secs() < minutes * 60)
            }
            None => usage(),
        },
        Some(text) => match parse(text) {
            Some(seed) => match knobs(seed, arguments.get(1)) {
                Some(knobs) => one(seed, &knobs),
                None => usage(),
            },
            None => usage(),
        },
        None => usage(),
    }
}

/// The world of a seed, with the mistake of this name if there is one.
fn knobs(seed: u64, mistake: Option<&String>) -> Option<Knobs> {
    let Some(name) = mistake else { return Some(Knobs::from_seed(seed)) };
    #[cfg(feature = "mutants")]
    {
        let mutant =
            ottla_core::mutation::Mutant::ALL.iter().find(|mutant| format!("{mutant:?}") == *name)?;
        Some(ottla_sim::mutants::knobs(*mutant, seed))
    }
    #[cfg(not(feature = "mutants"))]
    {
        eprintln!("{name}: mistakes need the feature `mutants`");
        None
    }
}

fn one(seed: u64, knobs: &Knobs) -> ExitCode {
    println!("{knobs:#?}");
    let outcome = run(knobs, true);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    let again = run(knobs, false);
    if again.hash != outcome.hash {
        println!("determinism: the same seed told two stories");
        return ExitCode::from(4);
    }
    print_outcome(seed, &outcome);
    if outcome.broken.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// One of so many seeds is run twice, to see whether it tells the same story.
const TOLD_TWICE: u64 = 50;

fn swarm(first: u64, mut go_on: impl FnMut(u64, u64) -> bool) -> ExitCode {
    let start = Instant::now();
    let (mut done, mut failed, mut virtual_seconds, mut records) = (0, 0, 0.0, 0);
    while go_on(done, failed) {
        let seed = first.wrapping_add(done);
        let knobs = Knobs::from_seed(seed);
        let outcome = run(&knobs, false);
        virtual_seconds += outcome.virtual_time.as_secs_f64();
        records += outcome.records;
        done += 1;
        if seed % TOLD_TWICE == 0 && run(&knobs, false).hash != outcome.hash {
            failed += 1;
            println!("seed {seed}: determinism: the same seed told two stories");
        }
        if outcome.broken.is_some() {
            failed += 1;
            print_outcome(seed, &outcome);
        }
    }
    let real = start.elapsed().as_secs_f64();
    println!(
        "{done} seeds, {failed} failed, {records} records, {virtual_seconds:.0} virtual seconds in {real:.1} s: {:.0} times real time",
        virtual_seconds / real
    );
    println!("{} passed, {failed} failed", done - failed);
    if failed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Hunts the mistakes of these names, or all, with `most` seeds each.
#[cfg(feature = "mutants")]
fn mutants(most: u64, names: &[String]) -> ExitCode {
    use ottla_core::mutation::Mutant;
    use ottla_sim::mutants::{Verdict, by_checker, hunt, table};

    let unknown = |name: &&String| !Mutant::ALL.iter().any(|mutant| format!("{mutant:?}") == **name);
    if let Some(name) = names.iter().find(unknown) {
        eprintln!("there is no mistake {name}; crates/core/src/mutation.rs lists them");
        return ExitCode::from(2);
    }
    let mut verdicts: Vec<Verdict> = Vec::new();
    for mutant in Mutant::ALL {
        if !names.is_empty() && !names.contains(&format!("{mutant:?}")) {
            continue;
        }
        let verdict = hunt(*mutant, most);
        let caught = verdict.caught.as_ref();
        eprintln!(
            "{mutant:?}: {}",
            caught.map_or("not caught".into(), |(seed, by)| format!("seed {seed}, {by}"))
        );
        verdicts.push(verdict);
    }
    print!("{}", table(&verdicts));
    for (checker, count) in by_checker(&verdicts) {
        println!("{checker} noticed {count}");
    }
    let missed = verdicts.iter().filter(|verdict| verdict.caught.is_none()).count();
    println!("{} passed, {missed} failed", verdicts.len() - missed);
    if missed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

fn print_outcome(seed: u64, outcome: &Outcome) {
    match &outcome.broken {
        Some(broken) => println!("seed {seed}: {broken}"),
        None => println!(
            "seed {seed}: all promises kept, {} of {} records acknowledged, {:.1} virtual seconds, {} transitions, hash {:016x}",
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
        "usage: ottla-sim SEED [MISTAKE] | --swarm FIRST COUNT | --minutes N | --mutants COUNT [MISTAKE...]"
    );
    ExitCode::from(2)
}
