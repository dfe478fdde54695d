//! `cargo xtask test`: runs everything that CI runs, in steps, and counts the tests.
//!
//! ```text
//! steps ──► a thread each, when the steps before it have ended
//!             ├── calls of cargo, two at a time ─────────┐
//!             └── programs and scripts, side by side ────┴──► counts, logs, table of times
//! ```
//!
//! | file | content |
//! |---|---|
//! | [`steps`] | the table of steps, and short ones |
//! | [`programs`] | the Rust test programs: built once, run side by side |
//! | [`mod@stress`] | the same, repeated on a busy machine |
//! | [`session`] | what steps share, and what they count |
//! | [`slots`], [`usage`], [`summary`], [`report`] | helpers |
//!
//! All steps run even if others fail, so that one run shows every failure. The compiler has a lower priority than tests, which
//! mostly wait: both keep the processors busy without making tests slow.

mod programs;
mod report;
mod session;
mod slots;
mod steps;
mod stress;
mod summary;
pub mod usage;

use std::{
    collections::BTreeSet,
    env,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

pub use self::{
    programs::{TestProgram, parse as programs_of},
    session::Session,
    steps::Step,
};
use self::{
    report::Row,
    session::{INSIDE, Run},
    steps::{LINT, STEPS},
    usage::Machine,
};
use crate::{
    Result,
    shell::{self, cargo},
};

/// Runs everything that CI runs, and ends with `N passed, M failed`. Checks that could not run are counted, too; in CI they are
/// failures.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only these steps.
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    only: Vec<String>,
    /// All steps but these.
    #[arg(long, value_delimiter = ',', value_name = "STEP", conflicts_with = "only")]
    skip: Vec<String>,
    /// Without Java, other clients, release builds and valgrind.
    #[arg(long)]
    quick: bool,
    /// Programs that run at the same time; most of them wait most of the time.
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Instead of the steps: run each test program N times while all processors are busy, and list what failed.
    #[arg(long, value_name = "N", conflicts_with_all = ["only", "skip"])]
    stress: Option<u32>,
    /// With --stress: only programs whose name contains this text, such as `scenarios`.
    #[arg(long, value_name = "TEXT", requires = "stress")]
    program: Option<String>,
    /// Print the steps and what they took last time, and run nothing.
    #[arg(long)]
    list: bool,
}

pub fn main(options: &Options) -> Result<ExitCode> {
    if options.list {
        print_steps()?;
        return Ok(ExitCode::SUCCESS);
    }
    if env::var_os(INSIDE).is_some() {
        return Err("the tests are being run by the tests".into());
    }
    if let Some(times) = options.stress {
        return stress(options, times);
    }
    run(&chosen(options)?, options.quick, options.jobs)
}

pub fn lint() -> Result<ExitCode> {
    run(&STEPS.iter().filter(|step| LINT.contains(&step.name)).collect::<Vec<_>>(), true, 1)
}

fn print_steps() -> Result<()> {
    let times = report::recall(&times_file()?);
    for step in &STEPS {
        let quick = if step.is_quick { "quick" } else { "" };
        let took = times
            .get(step.name)
            .map_or_else(|| "not run yet".to_owned(), |(wall, cpu)| format!("{wall:.0} s, CPU {cpu:.0} s"));
        println!("{:13} {quick:6} {took:20} {}", step.name, step.what);
    }
    Ok(())
}

/// Returns the steps that the options choose.
fn chosen(options: &Options) -> Result<Vec<&'static Step>> {
    let named = options.only.iter().chain(&options.skip);
    if let Some(name) = named.into_iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(format!("there is no step `{name}`, see cargo xtask test --list").into());
    }
    let is_chosen = |step: &&Step| {
        let name = step.name.to_owned();
        (options.only.is_empty() || options.only.contains(&name))
            && !options.skip.contains(&name)
            && (step.is_quick || !options.quick)
    };
    let mut steps: Vec<&Step> = STEPS.iter().filter(is_chosen).collect();
    if steps.is_empty() {
        return Err("no step is left".into());
    }
    // The programs have to be built for those that run them.
    let build = &STEPS[STEPS.iter().position(|step| step.name == "build").unwrap_or_default()];
    if steps.iter().any(|step| step.name == "test") && !steps.iter().any(|step| step.name == "build") {
        steps.insert(0, build);
    }
    Ok(steps)
}

fn stress(options: &Options, times: u32) -> Result<ExitCode> {
    let run = Arc::new(Run::new(target_folder()?.join("xtask"), options.quick, options.jobs.max(8))?);
    let session = Session::new(Arc::clone(&run), 0, "stress");
    session.cpu.count_here();
    programs::build(&session)?;
    let result = stress::run(&session, times, options.program.as_deref().unwrap_or_default());
    let counts = session.take_counts();
    drop(session);
    if let Ok(run) = Arc::try_unwrap(run) {
        run.end_kafka()?;
    }
    result?;
    counts.failures.iter().for_each(|failure| println!("FAILED {failure}"));
    println!("{}", report::last_line(counts.passed, counts.failures.len(), 0));
    Ok(if counts.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs steps that are not of the table.
pub fn run_steps(steps: &[&Step]) -> Result<ExitCode> {
    run(steps, false, 4)
}

/// Runs steps, each in a thread of its own when those before it have ended.
fn run(steps: &[&Step], is_quick: bool, jobs: usize) -> Result<ExitCode> {
    let (began, machine) = (Instant::now(), Machine::now());
    let run = Arc::new(Run::new(target_folder()?.join("xtask"), is_quick, jobs)?);
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    println!("{} steps: {}", steps.len(), names.join(", "));
    let (progress, rows) = (Progress::new(&names), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        scope.spawn(|| progress.tell(&run, began));
        for (number, step) in steps.iter().enumerate() {
            let session = Session::new(Arc::clone(&run), number, step.name);
            let (progress, rows) = (&progress, &rows);
            scope.spawn(move || {
                progress.wait_for(step.after);
                let row = perform(step, &session);
                rows.lock().unwrap_or_else(PoisonError::into_inner).push((number, row));
                progress.end(step.name);
            });
        }
    });
    if let Ok(run) = Arc::try_unwrap(run) {
        run.end_kafka()?;
    }
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(number, _)| *number);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    report::remember(&times_file()?, &rows)?;
    let busy = machine.zip(Machine::now()).map(|(before, after)| after.busy_since(before));
    Ok(conclude(&rows, began.elapsed(), busy))
}

fn perform(step: &Step, session: &Session) -> Row {
    println!("==> {}: {}", step.name, step.what);
    let began = Instant::now();
    session.cpu.count_here();
    if let Err(error) = (step.run)(session) {
        session.fail(&format!("{}: {error}", step.name));
    }
    let (counts, wall, cpu) = (session.take_counts(), began.elapsed(), session.cpu.total());
    println!(
        "<== {}: {}, {:.0} s",
        step.name,
        report::last_line(counts.passed, counts.failures.len(), counts.not_checked.len()),
        wall.as_secs_f64()
    );
    Row { step: step.name, counts, wall, cpu }
}

/// Prints the failures, the table and the last line.
fn conclude(rows: &[Row], wall: Duration, busy: Option<f64>) -> ExitCode {
    let passed = rows.iter().map(|row| row.counts.passed).sum();
    let failures: Vec<&String> = rows.iter().flat_map(|row| &row.counts.failures).collect();
    let not_checked: Vec<&String> = rows.iter().flat_map(|row| &row.counts.not_checked).collect();
    println!();
    not_checked.iter().for_each(|what| println!("NOT CHECKED {what}"));
    failures.iter().for_each(|failure| println!("FAILED {failure}"));
    report::print_table(rows);
    let busy = busy.map_or_else(String::new, |busy| format!(", processors busy for {:.0} %", busy * 100.0));
    println!("{:.0} s{busy}; logs: target/xtask/logs", wall.as_secs_f64());
    println!("{}", report::last_line(passed, failures.len(), not_checked.len()));
    let must_check_all = env::var_os("CI").is_some();
    if failures.is_empty() && (not_checked.is_empty() || !must_check_all) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Which steps have ended.
struct Progress {
    open: Mutex<BTreeSet<String>>,
    changed: Condvar,
}

impl Progress {
    fn new(steps: &[&str]) -> Self {
        let open = steps.iter().map(|name| (*name).to_owned()).collect();
        Self { open: Mutex::new(open), changed: Condvar::new() }
    }

    /// Waits until these steps have ended. Steps that do not run are not waited for.
    fn wait_for(&self, steps: &[&str]) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |open: &mut BTreeSet<String>| steps.iter().any(|name| open.contains(*name));
        drop(self.changed.wait_while(open, waits));
    }

    fn end(&self, step: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(step);
        self.changed.notify_all();
    }

    /// Tells what runs: each minute, and every ten seconds on a terminal, until all steps have ended.
    fn tell(&self, run: &Run, began: Instant) {
        let pause = Duration::from_secs(if std::io::stdout().is_terminal() { 10 } else { 60 });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !open.is_empty() {
            let (guard, waited) =
                self.changed.wait_timeout(open, pause).unwrap_or_else(PoisonError::into_inner);
            open = guard;
            if waited.timed_out() && !open.is_empty() {
                println!("    {:4} s: {}", began.elapsed().as_secs(), run.doing());
            }
        }
    }
}

fn times_file() -> Result<PathBuf> {
    Ok(target_folder()?.join("xtask/times.json"))
}

pub fn target_folder() -> Result<PathBuf> {
    let text = shell::read(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let folder = metadata["target_directory"].as_str().ok_or("cargo metadata names no target_directory")?;
    Ok(Path::new(folder).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Options {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            options: Options,
        }
        <Program as clap::Parser>::parse_from([&["test"], args].concat()).options
    }

    fn names(args: &[&str]) -> Vec<&'static str> {
        chosen(&options(args)).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_chosen_by_name_and_speed() {
        assert_eq!(names(&["--only", "tidy,format"]), ["format", "tidy"]);
        assert_eq!(names(&["--only", "test"]), ["build", "test"]);
        assert_eq!(names(&["--skip", "release"]).len(), STEPS.len() - 1);
        assert!(!names(&["--quick"]).contains(&"interop"));
        assert!(chosen(&options(&["--only", "tset"])).is_err());
    }

    #[test]
    fn step_waits_for_those_before_it() {
        let progress = Progress::new(&["a", "b"]);
        thread::scope(|scope| {
            let waits = scope.spawn(|| progress.wait_for(&["a", "not chosen"]));
            progress.end("a");
            waits.join().unwrap();
        });
        assert_eq!(progress.open.lock().unwrap().len(), 1);
    }
}
