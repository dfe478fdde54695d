//! `cargo xtask abi --side-by-side`: runs the same programs with Ottla's C library and with the original, and compares
//! their transcripts.
//!
//! ```text
//! tests/abi/side_by_side/*.{c,cpp} ──compile once──► programs ──run each case twice──► two transcripts ──► hunks
//!                                                         Ottla | original                                   │
//!                docs/guide/differences.md, tests/abi/side_by_side/differences ── rows that allow a hunk ──────────┘
//! ```
//!
//! [`options`] of the command line; [`original`] fetches librdkafka, [`mod@programs`] compiles and runs, [`transcript`] compares,
//! [`differences`] reads the rows and judges a case by them, [`entry`] is the format of their files, [`report`] counts. A
//! difference without a row fails, and so does a row that allows more than its cases need.

mod differences;
mod entry;
mod options;
mod original;
mod programs;
mod report;
mod transcript;

use std::{
    env,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Parser as _;

pub use self::original::Original;
use self::{
    differences::{Differences, Judgement},
    options::Options,
    programs::{Case, Kind, Library, Programs},
    report::{CaseResult, Outcome, Report},
    transcript::{Comparison, Transcript},
};
use crate::{
    Result, abi, library,
    test::{Session, target_folder},
};

/// The time limit of a case.
const DEADLINE: Duration = Duration::from_secs(150);

pub fn main(args: &[String]) -> Result<ExitCode> {
    let words = ["side-by-side"].into_iter().chain(args.iter().map(String::as_str));
    let options = match Options::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            error.print()?;
            return Ok(if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    };
    let programs = programs(&options)?;
    if options.list {
        let cases = programs.cases()?;
        let chosen: Vec<&Case> = cases.iter().filter(|case| options.chooses(case)).collect();
        chosen.iter().for_each(|case| println!("{}", case.name));
        println!("{} cases", chosen.len());
        return Ok(ExitCode::SUCCESS);
    }
    if options.write && env::var_os("OTTLA_BOOTSTRAP").is_some() {
        return Err("--write needs the embedded brokers: unset OTTLA_BOOTSTRAP".into());
    }
    let report = compare(&options, &programs)?;
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The part that CI runs: all cases that need no broker, each of which is a test.
pub fn step(session: &Session) -> Result<()> {
    let options = Options::parse_from(["side-by-side", "--plain"]);
    let report = compare(&options, &programs(&options)?)?;
    for CaseResult { name, outcome, .. } in &report.cases {
        match outcome {
            Outcome::AsAllowed => session.pass(&format!("{name} is the same with both libraries")),
            Outcome::Failed(_) => {
                session.fail(&format!("{name} differs: cargo xtask abi --side-by-side --only '{name}'"));
            }
            Outcome::NotChecked(reason) => {
                session.not_checked(&format!("{name} with both libraries: {reason}"));
            }
        }
    }
    report.stale.iter().for_each(|stale| session.fail(stale));
    Ok(())
}

/// Builds Ottla and the programs.
fn programs(options: &Options) -> Result<Programs> {
    let original = Original::fetch(options.original.clone());
    let prefix = abi::installed(&options.profile)?;
    let ottla = library::ottla(&options.profile)?;
    let folder = target_folder()?.join("side-by-side");
    Programs::compile(&folder, &prefix, &original, &ottla)
}

/// Runs the chosen cases, and prints what differs.
fn compare(options: &Options, programs: &Programs) -> Result<Report> {
    let began = Instant::now();
    let all = programs.cases()?;
    let mut cases: Vec<&Case> = all.iter().filter(|case| options.chooses(case)).collect();
    if cases.is_empty() {
        return Err("no case matches: --list prints all of them".into());
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    let mut differences = Differences::read()?;
    let (results, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(options, programs, &differences, case);
                    if let Outcome::Failed(text) = &result.outcome {
                        println!("FAILED {}\n{text}", case.name);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by(|a: &CaseResult, b| a.name.cmp(&b.name));
    if options.write {
        let judged: Vec<(&str, &Judgement)> =
            results.iter().map(|case| (case.name.as_str(), &case.judgement)).collect();
        differences.update(&judged);
        differences.write()?;
    }
    let names: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
    let stale = differences.unknown_cases(&names);
    stale.iter().for_each(|stale| println!("FAILED {stale}"));
    let report = Report { cases: results, stale };
    println!("{}; {} s", report.summary(), began.elapsed().as_secs());
    Ok(report)
}

/// Runs a case with both libraries.
fn run(options: &Options, programs: &Programs, differences: &Differences, case: &Case) -> CaseResult {
    let result = |outcome, judgement| CaseResult { name: case.name.clone(), outcome, judgement };
    if let Some(missing) = &case.missing {
        return result(Outcome::NotChecked(missing.clone()), Judgement::default());
    }
    let (original, ottla) = match transcripts(options, programs, case) {
        Ok(transcripts) => transcripts,
        Err(text) => return result(Outcome::Failed(text), Judgement::default()),
    };
    let judge = |original: &Transcript| {
        let crashes_alone = original.crash.is_some() && ottla.crash.is_none();
        let comparison = match case.kind == Kind::Crash && crashes_alone {
            true => Comparison::default(),
            false => Comparison::of(original, &ottla),
        };
        let mut judgement = differences.judge(&case.name, &comparison);
        // Differences in timing may need the quick embedded brokers.
        if case.kind == Kind::Broker && env::var_os("OTTLA_BOOTSTRAP").is_some() {
            judgement.unneeded.clear();
        }
        judgement
    };
    let mut judgement = judge(&original);
    // On a busy machine the original does not always do the same. Ottla has to do what it did once.
    for _ in 0..ORIGINALS {
        if judgement.is_as_allowed() {
            break;
        }
        let Ok(again) = programs.run(case, Library::Original) else { break };
        let other = judge(&again);
        if again != original && other.is_as_allowed() {
            judgement = other;
        }
    }
    let text = judgement.text();
    result(if text.is_empty() { Outcome::AsAllowed } else { Outcome::Failed(text) }, judgement)
}

/// How often the original runs again if Ottla differs from it.
const ORIGINALS: usize = 2;

/// Returns the transcripts of a case, the original's first. Error: the text to print about it.
fn transcripts(
    options: &Options,
    programs: &Programs,
    case: &Case,
) -> std::result::Result<(Transcript, Transcript), String> {
    let transcript = |library| -> std::result::Result<Transcript, String> {
        let first = programs.run(case, library).map_err(|error| error.to_string())?;
        for _ in 1..options.repeat {
            let again = programs.run(case, library).map_err(|error| error.to_string())?;
            if again != first {
                let text = Comparison::of(&first, &again).text();
                return Err(format!(
                    "  the same library ({library:?}) prints something else at another run:\n{text}"
                ));
            }
        }
        Ok(first)
    };
    let original = transcript(Library::Original)?;
    let ottla = transcript(Library::Ottla)?;
    if options.show {
        println!("==== {}\n{}", case.name, ottla.lines.join("\n"));
    }
    if !original.is_complete() && !ottla.is_complete() {
        let last = ottla.lines.last().map_or("nothing", String::as_str);
        return Err(format!("  the case ends early with both libraries; Ottla's last line: {last}\n"));
    }
    Ok((original, ottla))
}
