//! `cargo xtask abi --side-by-side`: runs the same programs with Ottla's C library and with the original, and compares
//! their transcripts.
//!
//! ```text
//! tests/abi/side_by_side/*.{c,cpp} ──compile once──► programs ──run each case twice──► two transcripts ──► comparison
//!                                                         Ottla | original                             │
//!                                   docs/differences.md ── rows that allow a difference ───────────────┘
//! ```
//!
//! [`original`] fetches librdkafka, [`programs`] compiles and runs, [`transcript`] compares, [`differences`] reads the rows.
//! A difference without a row fails, and so does a row without a difference.

mod differences;
mod original;
mod programs;
mod transcript;

use std::{
    env,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use self::{
    differences::{Difference, Differences},
    original::Original,
    programs::{Case, Kind, Programs},
    transcript::{Comparison, Transcript},
};
use crate::{
    Result, abi, library,
    test::{Session, target_folder},
};

pub const HELP: &str = "\
cargo xtask abi --side-by-side [OPTIONS]

Runs every case of tests/abi/side_by_side with Ottla's C library and with the original librdkafka 2.16.0, and compares the
transcripts. docs/differences.md has a row with the reason for each permitted difference.

  --only PATTERN       cases whose name matches; `*` stands for any text, and a word without `*` matches anywhere
  --list               print the names of the cases, and run nothing
  --plain              only cases that need no broker: what CI runs
  --show               print the transcripts of the cases, equal or not
  --write              write differences without a row into the table `To be fixed` of docs/differences.md, and remove its
                       unused rows
  --repeat NUMBER      run each case this often; a transcript that differs from the first one of its library is a failure
  --jobs NUMBER        cases at a time (default 8: most of them wait)
  --original LIBRARY   the original library, instead of fetching it with pip
  --profile NAME       the profile that Ottla is built with: dev (the default) or release

Cases with brokers start embedded ones; OTTLA_BOOTSTRAP names others.
";

/// The options of the command line.
struct Options {
    only: Option<String>,
    plain: bool,
    list: bool,
    show: bool,
    write: bool,
    repeat: usize,
    jobs: usize,
    original: Option<PathBuf>,
    profile: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            only: None,
            plain: false,
            list: false,
            show: false,
            write: false,
            repeat: 1,
            jobs: 8,
            original: None,
            profile: "dev".into(),
        }
    }
}

impl Options {
    fn of(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--only" => options.only = Some(value()?.clone()),
                "--plain" => options.plain = true,
                "--list" => options.list = true,
                "--show" => options.show = true,
                "--write" => options.write = true,
                "--repeat" => options.repeat = value()?.parse()?,
                "--jobs" => options.jobs = value()?.parse()?,
                "--original" => options.original = Some(value()?.into()),
                "--profile" => options.profile.clone_from(value()?),
                other => return Err(format!("`{other}`?\n\n{HELP}").into()),
            }
        }
        Ok(options)
    }

    fn chooses(&self, case: &Case) -> bool {
        let named = self.only.as_ref().is_none_or(|pattern| {
            if pattern.contains('*') {
                differences::matches(pattern, &case.name)
            } else {
                case.name.contains(pattern.as_str())
            }
        });
        named && !(self.plain && case.kind == Kind::Broker)
    }
}

pub fn main(args: &[String]) -> Result<ExitCode> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::of(args)?;
    let original = Original::fetch(options.original.clone())?;
    let outcome = compare(&options, &original)?;
    Ok(if outcome.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The part that CI runs: all cases that need no broker.
pub fn step(session: &Session) -> Result<()> {
    let original = match Original::fetch(None) {
        Ok(original) => original,
        Err(error) => {
            session
                .not_checked(&format!("our C library beside the original, which can't be fetched: {error}"));
            return Ok(());
        }
    };
    let outcome = compare(&Options { plain: true, ..Options::default() }, &original)?;
    for case in &outcome.same {
        session.pass(&format!("{case} is the same with both libraries"));
    }
    for case in &outcome.failed {
        session.fail(&format!("{case} differs: cargo xtask abi --side-by-side --only '{case}'"));
    }
    Ok(())
}

/// The names of cases and rows, by result.
#[derive(Default)]
struct Outcome {
    same: Vec<String>,
    failed: Vec<String>,
    /// Differences without a row.
    new: Vec<Difference>,
}

/// The reasons of failed cases.
struct Failed {
    text: String,
    differences: Vec<(String, String)>,
}

impl From<String> for Failed {
    fn from(text: String) -> Self {
        Self { text, differences: Vec::new() }
    }
}

fn compare(options: &Options, original: &Original) -> Result<Outcome> {
    let began = Instant::now();
    let prefix = abi::installed(&options.profile)?;
    let ottla = library::ottla(&options.profile)?;
    let folder = target_folder()?.join("side-by-side");
    let programs = Programs::compile(&folder, &prefix, original, &ottla)?;
    let cases: Vec<Case> = programs.cases()?.into_iter().filter(|case| options.chooses(case)).collect();
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        println!("{} cases", cases.len());
        return Ok(Outcome::default());
    }
    if cases.is_empty() {
        return Err("no case matches: --list prints all of them".into());
    }
    let differences = Differences::read()?;
    let outcome = Mutex::new(Outcome::default());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(options, &programs, &differences, case);
                    let mut outcome = outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match result {
                        Ok(()) => outcome.same.push(case.name.clone()),
                        Err(failed) => {
                            println!("FAILED {}\n{}", case.name, failed.text);
                            outcome.failed.push(case.name.clone());
                            let named = |(original, ottla)| (case.name.clone(), original, ottla);
                            outcome.new.extend(failed.differences.into_iter().map(named));
                        }
                    }
                }
            });
        }
    });
    let mut outcome = outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // A row may be needed by cases that did not run.
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let complete = options.only.is_none() && !options.plain;
    if options.write {
        differences::write(&differences, complete, &outcome.new)?;
    }
    // Differences in timing may need the quick embedded brokers.
    let unused = if env::var_os("OTTLA_BOOTSTRAP").is_none() {
        differences.unused(&names, complete)
    } else {
        Vec::new()
    };
    for row in unused {
        println!("FAILED docs/differences.md: no difference needs this row any more: {row}");
        outcome.failed.push(row);
    }
    outcome.same.sort();
    outcome.failed.sort();
    println!(
        "{} transcripts: {} as allowed, {} failed; {} rows of docs/differences.md were needed; {} s",
        cases.len(),
        outcome.same.len(),
        outcome.failed.len(),
        differences.used(),
        began.elapsed().as_secs()
    );
    Ok(outcome)
}

/// Runs a case with both libraries. Error: the text to print about it.
fn run(
    options: &Options,
    programs: &Programs,
    differences: &Differences,
    case: &Case,
) -> std::result::Result<(), Failed> {
    let transcripts = |library| -> std::result::Result<Transcript, String> {
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
    let original = transcripts(programs::Library::Original)?;
    let ottla = transcripts(programs::Library::Ottla)?;
    if options.show {
        println!("==== {}\n{}", case.name, ottla.lines.join("\n"));
    }
    if original.crash.is_some() && case.kind == Kind::Crash && ottla.crash.is_none() {
        return Ok(());
    }
    let comparison = Comparison::of(&original, &ottla);
    let unexplained = differences.unexplained(&case.name, &comparison);
    if unexplained.hunks.is_empty() {
        return Ok(());
    }
    Err(Failed { text: unexplained.text(), differences: unexplained.pairs() })
}

/// The time limit of a case.
const DEADLINE: Duration = Duration::from_secs(150);
