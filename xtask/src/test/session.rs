//! A run of steps: what they share, and the counts of each.
//!
//! ```text
//! Run ── slots, Apache Kafka, test programs        Session ── one step's view: counts, CPU time, log
//!  └── a thread per step, each with a Session
//! ```
//!
//! # Pitfalls
//!
//! - A check that could not run says so in a file, because the output of a passed test is not shown: each program gets its own
//!   file in `OTTLA_NOT_CHECKED` (`what_a_program_could_not_check_is_counted`).

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    programs::TestProgram,
    slots::{Slot, Slots},
    summary::Summary,
    target_folder,
    usage::CpuTime,
};
use crate::{
    Result, kafka,
    shell::{self, Finished, Reaper, root},
};

/// Set for all child processes, so that a test that runs this command is an error instead of a loop.
pub const INSIDE: &str = "OTTLA_XTASK_TEST";
/// The file to which a program appends a line per check that it could not do.
const NOT_CHECKED: &str = "OTTLA_NOT_CHECKED";
/// The time limit of a script, and of a test program.
const MINUTES: u64 = 30;

/// What the steps of a run share.
pub struct Run {
    /// Without Java, other clients and valgrind.
    pub is_quick: bool,
    /// Calls of cargo that compile, in target folders of their own: one alone often waits for a single large crate.
    compiling: Slots,
    /// Programs of tests: most of them wait most of the time.
    running: Slots,
    kafka: OnceLock<std::result::Result<RunningKafka, String>>,
    pub programs: OnceLock<Vec<TestProgram>>,
    /// The folder of the logs, one per step.
    folder: PathBuf,
    files: AtomicU64,
    /// The programs that run now, with their begin.
    now: Mutex<Vec<(u64, String, Instant)>>,
}

struct RunningKafka {
    cluster: kafka::Cluster,
    folder: PathBuf,
    guard: Mutex<Option<Reaper>>,
}

impl Run {
    /// A run that keeps its logs in a folder, and runs this number of programs at the same time.
    pub fn new(folder: PathBuf, is_quick: bool, jobs: usize) -> Result<Self> {
        let _ = fs::remove_dir_all(folder.join("logs"));
        fs::create_dir_all(folder.join("logs"))?;
        Ok(Self {
            is_quick,
            compiling: Slots::new(2),
            running: Slots::new(jobs),
            kafka: OnceLock::new(),
            programs: OnceLock::new(),
            folder,
            files: AtomicU64::new(0),
            now: Mutex::default(),
        })
    }

    /// Returns the programs that run, for people who wait.
    pub fn doing(&self) -> String {
        let now = lock(&self.now);
        let names = now.iter().map(|(_, name, began)| format!("{name} ({} s)", began.elapsed().as_secs()));
        names.collect::<Vec<_>>().join(", ")
    }

    fn kafka(&self) -> Result<&RunningKafka> {
        let started = self.kafka.get_or_init(|| RunningKafka::start().map_err(|error| error.to_string()));
        started.as_ref().map_err(|error| error.clone().into())
    }

    /// Ends the brokers of Apache Kafka if they run. Idle ones use a tenth of a processor.
    pub fn end_kafka(&self) -> Result<()> {
        if let Some(Ok(kafka)) = self.kafka.get()
            && let Some(guard) = lock(&kafka.guard).take()
        {
            kafka.cluster.destroy()?;
            guard.dismiss();
        }
        Ok(())
    }
}

impl RunningKafka {
    fn start() -> Result<Self> {
        let folder = env::temp_dir().join(format!("ottla-test-kafka-{}", std::process::id()));
        let options = kafka::Options { is_brief: true, ..kafka::Options::default() };
        kafka::classes::prepare()?;
        let cluster = kafka::Cluster::create(&folder, 3, &options)?;
        if let Err(error) = cluster.start(&[1, 2, 3]) {
            let _ = cluster.destroy();
            return Err(error);
        }
        let guard = Mutex::new(Some(cluster.guard()?));
        Ok(Self { cluster, folder, guard })
    }
}

/// The counts of a step.
#[derive(Debug, Default)]
pub struct Counts {
    pub passed: u64,
    pub failures: Vec<String>,
    pub not_checked: Vec<String>,
}

/// A step's view of the run. Its clones count together.
#[derive(Clone)]
pub struct Session {
    run: Arc<Run>,
    /// The number of the step, and its name.
    step: (usize, &'static str),
    counts: Arc<Mutex<Counts>>,
    pub cpu: CpuTime,
}

impl Session {
    pub fn new(run: Arc<Run>, number: usize, name: &'static str) -> Self {
        Self { run, step: (number, name), counts: Arc::default(), cpu: CpuTime::default() }
    }

    pub fn is_quick(&self) -> bool {
        self.run.is_quick
    }

    /// Returns the test programs, which the step `build` built.
    pub fn programs(&self) -> Result<&[TestProgram]> {
        Ok(self.run.programs.get().ok_or("the test programs were not built")?)
    }

    pub fn set_programs(&self, programs: Vec<TestProgram>) {
        let _ = self.run.programs.set(programs);
    }

    pub fn take_counts(&self) -> Counts {
        std::mem::take(&mut lock(&self.counts))
    }

    pub fn pass(&self, what: &str) {
        lock(&self.counts).passed += 1;
        self.log(&format!("ok: {what}\n"));
    }

    pub fn fail(&self, what: &str) {
        println!("    FAILED: {what}");
        lock(&self.counts).failures.push(what.to_owned());
    }

    /// Counts a check that could not run.
    pub fn not_checked(&self, what: &str) {
        self.log(&format!("NOT CHECKED: {what}\n"));
        lock(&self.counts).not_checked.push(what.to_owned());
    }

    /// Runs a program that counts as one test.
    pub fn one(&self, what: &str, command: &mut Command, minutes: u64) -> Result<()> {
        let done = self.observed(what, command, minutes)?;
        if done.success {
            self.pass(what);
        } else {
            // What the program said last, because the list of failures is often all that is kept of a run.
            let reason =
                done.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output").trim();
            self.fail(&format!("{what} ({}): {reason}", done.ending));
        }
        Ok(())
    }

    /// Runs a program that prints what Rust's test programs print, and counts its tests.
    pub fn tests(&self, what: &str, command: &mut Command) -> Result<()> {
        let done = self.observed(what, command, MINUTES)?;
        let summary = Summary::of(&done.output);
        lock(&self.counts).passed += summary.passed;
        for name in &summary.failed {
            self.fail(&format!("{what}: test {name}"));
        }
        if summary.ignored > 0 {
            self.fail(&format!(
                "{what}: {} tests are ignored: a test runs or it isn't there",
                summary.ignored
            ));
        }
        if !done.success && summary.failed.is_empty() {
            self.fail(&format!("{what} ({})", done.ending));
        }
        Ok(())
    }

    /// Runs a program with the variables of tests; its output goes to the log, and is shown if it fails.
    fn observed(&self, what: &str, command: &mut Command, minutes: u64) -> Result<Finished> {
        let id = self.run.files.fetch_add(1, Ordering::Relaxed);
        let file = self.run.folder.join(format!("not-checked-{id}"));
        lock(&self.run.now).push((id, what.to_owned(), Instant::now()));
        let began = Instant::now();
        command.env(INSIDE, "1").env(NOT_CHECKED, &file).env("OTTLA_XTASK", env::current_exe()?);
        let done = shell::run(command, Duration::from_secs(minutes * 60), false);
        lock(&self.run.now).retain(|(other, ..)| *other != id);
        let done = done?;
        for line in fs::read_to_string(&file).unwrap_or_default().lines() {
            self.not_checked(&format!("{what}: {line}"));
        }
        let _ = fs::remove_file(&file);
        let (wall, cpu) = (began.elapsed().as_secs_f64(), done.cpu.as_secs_f64());
        let line = format!("{what}: {}, {wall:.1} s, CPU {cpu:.1} s", done.ending);
        self.log(&format!("--- {line}\n{}\n", done.output));
        if !done.success {
            println!("--- {line}\n{}", last_lines(&done.output, 300));
        } else if wall >= 5.0 {
            println!("    {}: {what}, {wall:.0} s, CPU {cpu:.0} s", self.step.1);
        }
        Ok(done)
    }

    /// Compiles: runs a command of cargo when it gets a slot. Returns its output; error: it failed.
    pub fn compile(&self, what: &str, command: &mut Command) -> Result<String> {
        self.compile_in(&self.compiling(), what, command)
    }

    /// Compiles in a slot that this step has.
    pub fn compile_in(&self, _: &Slot<'_>, what: &str, command: &mut Command) -> Result<String> {
        let done = self.observed(what, command, 40)?;
        if done.success { Ok(done.output) } else { Err(format!("{what} failed ({})", done.ending).into()) }
    }

    /// Waits until this step may compile.
    pub fn compiling(&self) -> Slot<'_> {
        self.run.compiling.take(self.step.0)
    }

    /// Waits until nobody wants to compile, for a program that needs all processors.
    pub fn computing(&self) -> Slot<'_> {
        self.run.compiling.take(usize::MAX)
    }

    /// Runs jobs side by side, as many as the run has slots for. Their errors are failures of the step.
    pub fn side_by_side<T: Sync>(&self, jobs: &[T], job: impl Fn(&Self, &T) -> Result<()> + Sync) {
        thread::scope(|scope| {
            for one in jobs {
                let (session, job) = (self.clone(), &job);
                scope.spawn(move || {
                    session.cpu.count_here();
                    let _slot = session.run.running.take(session.step.0);
                    if let Err(error) = job(&session, one) {
                        session.fail(&error.to_string());
                    }
                });
            }
        });
    }

    /// Runs the scripts of a folder, each of which is a test.
    pub fn scripts(&self, folder: &str, variables: &[(&str, PathBuf)]) -> Result<()> {
        self.side_by_side(&scripts_of(folder)?, |session, script| session.script(script, variables));
        Ok(())
    }

    /// Runs the scripts of a folder one after the other.
    pub fn scripts_in_turn(&self, folder: &str, variables: &[(&str, PathBuf)]) -> Result<()> {
        scripts_of(folder)?.iter().try_for_each(|script| self.script(script, variables))
    }

    fn script(&self, script: &Path, variables: &[(&str, PathBuf)]) -> Result<()> {
        let name = script.strip_prefix(root()).unwrap_or(script).display().to_string();
        let mut command = Command::new("bash");
        command.arg(script).envs(variables.iter().map(|(name, value)| (name, value))).current_dir(root());
        self.give_kafka(&mut command)?;
        self.give_programs(&mut command)?;
        self.one(&name, &mut command, MINUTES)
    }

    /// Passes the paths of programs that were built, which a script would otherwise build behind what is being compiled.
    fn give_programs(&self, command: &mut Command) -> Result<()> {
        let built = self.run.programs.get().map_or(&[][..], Vec::as_slice);
        if let Some(scenarios) = built.iter().find(|program| program.uses_kafka()) {
            let examples = target_folder()?.join("debug/examples");
            command.env("OTTLA_SCENARIOS", &scenarios.path).env("OTTLA_EXAMPLES", examples);
        }
        Ok(())
    }

    /// Passes the addresses of the brokers of Apache Kafka to a program, and starts them if they do not run.
    pub fn give_kafka(&self, command: &mut Command) -> Result<()> {
        if !self.run.is_quick {
            let kafka = self.run.kafka()?;
            command.env("OTTLA_BOOTSTRAP", kafka.cluster.bootstrap()).env("OTTLA_KAFKA_DATA", &kafka.folder);
        }
        Ok(())
    }

    /// Ends the brokers of Apache Kafka: no step needs them any more.
    pub fn end_kafka(&self) -> Result<()> {
        self.run.end_kafka()
    }

    fn log(&self, text: &str) {
        let path = self.run.folder.join("logs").join(format!("{}.txt", self.step.1));
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
    }
}

/// Returns the scripts of a folder, in the order of their names.
fn scripts_of(folder: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root().join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    let mut scripts: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "sh"));
    scripts.sort();
    if scripts.is_empty() { Err(format!("{folder} has no script").into()) } else { Ok(scripts) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("ottla-session-{}-{number}", std::process::id()));
        Session::new(Arc::new(Run::new(folder, true, 2).unwrap()), 0, "a")
    }

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn what_a_program_could_not_check_is_counted() {
        let session = session();
        session.one("program", &mut shell("echo 'no java' >> $OTTLA_NOT_CHECKED"), 1).unwrap();
        let counts = session.take_counts();
        assert_eq!((counts.passed, counts.failures.len()), (1, 0));
        assert_eq!(counts.not_checked, ["program: no java"]);
    }

    #[test]
    fn failure_is_named_with_the_last_line_of_the_output() {
        let session = session();
        session.one("program", &mut shell("echo why; exit 3"), 1).unwrap();
        assert_eq!(session.take_counts().failures, ["program (sh: exit status: 3): why"]);
    }

    #[test]
    fn test_program_that_ends_early_is_a_failure() {
        let session = session();
        session.tests("program", &mut shell("echo 'test a ... ok'; exit 134")).unwrap();
        assert_eq!(session.take_counts().failures, ["program (sh: exit status: 134)"]);
    }

    #[test]
    fn jobs_that_fail_are_failures_of_the_step() {
        let session = session();
        session.side_by_side(&[1, 2, 3], |session, number| match number {
            2 => Err("two".into()),
            _ => session.one("ok", &mut shell("true"), 1),
        });
        let counts = session.take_counts();
        assert_eq!((counts.passed, counts.failures), (2, vec!["two".to_owned()]));
    }
}
