//! Runs the check of a mistake, and judges what it printed.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use super::{
    patch::{Mutant, Runner},
    programs::Programs,
    switches::VARIABLE,
};
use crate::{
    Result,
    shell::{self, Finished},
};

/// The time limit of a run.
const DEADLINE: Duration = Duration::from_secs(600);

/// The result of a mistake's check.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The named check noticed it; with its words.
    Noticed(String),
    /// The named check noticed nothing.
    Survived(String),
    /// There is no result: the mistake has no switch, the check does not exist or fails without the mistake, too.
    Failed(String),
}

/// A verdict and what it took.
#[derive(Debug)]
pub struct Attempt {
    pub verdict: Verdict,
    pub wall: Duration,
    pub cpu: Duration,
}

impl Attempt {
    /// Runs the check of this mistake with its switch on, and what noticed it with the switch off.
    pub fn of(mutant: &Mutant, programs: &Programs) -> Self {
        let (began, mut cpu) = (Instant::now(), Duration::ZERO);
        let verdict = match (programs.refused.get(&mutant.number), &mutant.run) {
            (Some(reason), _) => Ok(Verdict::Failed(reason.clone())),
            (None, Runner::Simulator { worlds, first, last }) => {
                let seeds = (*first, last - first + 1);
                simulate(programs, mutant, worlds.option, seeds, &mut cpu)
            }
            (None, Runner::Loom { package }) => {
                let model = Check::part(&mutant.noticed_by, "model", package);
                model.run(programs.models.get(package), mutant, &mut cpu)
            }
            (None, Runner::Scripted { package }) => {
                let test = Check::part(&mutant.noticed_by, "test", package);
                test.run(programs.scripted.get(package), mutant, &mut cpu)
            }
            (None, Runner::Program) => {
                Check::program(&mutant.noticed_by).run(programs.c_programs.as_ref(), mutant, &mut cpu)
            }
        };
        let verdict = verdict.unwrap_or_else(|error| Verdict::Failed(error.to_string()));
        Self { verdict, wall: began.elapsed(), cpu }
    }
}

fn simulate(
    programs: &Programs,
    mutant: &Mutant,
    option: &str,
    (first, count): (u64, u64),
    cpu: &mut Duration,
) -> Result<Verdict> {
    let program = programs.simulator.as_ref().ok_or("cargo built no simulator")?;
    let checker = &mutant.noticed_by;
    let mut hunt = |number: u32, first: u64, count: u64| {
        let arguments = [option, &first.to_string(), &count.to_string(), checker];
        run(program, &arguments, number, cpu)
    };
    let hunted = hunt(mutant.number, first, count)?;
    let Some(found) = hunted.output.lines().find_map(|line| line.strip_prefix("noticed by ")) else {
        let end = tail(&hunted.output, 3);
        return Ok(match hunted.output.contains("noticed nothing in") {
            true => Verdict::Survived(end),
            false => {
                Verdict::Failed(format!("the simulator ended without a result: {end} ({})", hunted.ending))
            }
        });
    };
    let seed = found.split(':').next().and_then(|text| text.strip_prefix("seed ")?.parse().ok());
    let seed: u64 = seed.ok_or(format!("`{found}` names no seed"))?;
    // A seed that fails without the mistake says nothing about it.
    let without = hunt(0, seed, 1)?;
    if !without.output.contains("noticed nothing in") || without.output.contains("noticed something") {
        return Ok(Verdict::Failed(format!("seed {seed} fails without the mistake, too")));
    }
    Ok(Verdict::Noticed(short(found)))
}

/// A test of a test program.
struct Check {
    arguments: Vec<String>,
    kind: &'static str,
    package: String,
}

impl Check {
    /// A model or a test, by a part of its name that no other has.
    fn part(name: &str, kind: &'static str, package: &str) -> Self {
        Self { arguments: vec![name.to_owned()], kind, package: package.to_owned() }
    }

    /// A C program; the names of some are parts of others.
    fn program(name: &str) -> Self {
        let arguments = vec![format!("programs::{name}"), "--exact".to_owned()];
        Self { arguments, kind: "C program", package: "ottla-capi".to_owned() }
    }

    fn run(&self, program: Option<&PathBuf>, mutant: &Mutant, cpu: &mut Duration) -> Result<Verdict> {
        let Self { arguments, kind, package } = self;
        let program = program.ok_or(format!("cargo built no {kind}s of {package}"))?;
        let done = run(program, arguments, mutant.number, cpu)?;
        let failed =
            |what: &str| Ok(Verdict::Failed(format!("{what}: {} ({})", tail(&done.output, 3), done.ending)));
        if !done.output.contains("running 1 test") {
            return failed(&format!("the {kind} was not run"));
        }
        if done.success {
            return Ok(Verdict::Survived(format!("the {kind} passed")));
        }
        let Some(message) = failed_check(&done.output).or_else(|| panic_message(&done.output)) else {
            return failed(&format!("the {kind} ended without a result"));
        };
        if !run(program, arguments, 0, cpu)?.success {
            return Ok(Verdict::Failed(format!("{} fails without the mistake, too", mutant.noticed_by)));
        }
        Ok(Verdict::Noticed(message))
    }
}

/// Runs a program with this mistake, or without one if the number is 0.
fn run(program: &Path, arguments: &[impl AsRef<OsStr>], number: u32, cpu: &mut Duration) -> Result<Finished> {
    let mut command = Command::new(program);
    command.args(arguments).env(VARIABLE, number.to_string());
    let done = shell::run(&mut command, DEADLINE, false)?;
    *cpu += done.cpu;
    Ok(done)
}

/// C programs per processor at a time: with a mistake, they wait for what does not come.
const WAITING: usize = 4;

/// Runs the checks of these mistakes, one per processor at a time, and passes each result on as it comes.
pub fn side_by_side(mutants: &[Mutant], programs: &Programs, done: impl FnMut(&Mutant, Attempt) + Send) {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let is_waiting = mutants.iter().all(|mutant| mutant.run == Runner::Program);
    let workers = if is_waiting { processors * WAITING } else { processors };
    let (waiting, done) = (Mutex::new(mutants.iter()), Mutex::new(done));
    let next = || waiting.lock().ok()?.next();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(mutant) = next() {
                    let attempt = Attempt::of(mutant, programs);
                    if let Ok(mut done) = done.lock() {
                        done(mutant, attempt);
                    }
                }
            });
        }
    });
}

/// Returns the first check of a C program that did not hold.
fn failed_check(output: &str) -> Option<String> {
    output.lines().find(|line| line.starts_with("line ")).map(short)
}

/// Returns the line after `thread ... panicked at ...`.
fn panic_message(output: &str) -> Option<String> {
    output.lines().skip_while(|line| !line.contains(" panicked at ")).nth(1).map(short)
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

fn tail(output: &str, count: usize) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(count)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// Writes a program that says one thing with a mistake and another without.
    fn program(name: &str, with: &str, without: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ottla-attempt-{}-{name}", std::process::id()));
        let script = format!("#!/bin/sh\nif [ $OTTLA_MISTAKE != 0 ]; then\n{with}\nelse\n{without}\nfi\n");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("a program");
        path
    }

    fn mutant(run: &str) -> Mutant {
        let text = format!("mistake: A.\nnoticed by: wire\nrun: {run}\n\n--- a/x.rs\n+++ b/x.rs\n@@\n-a\n");
        Mutant { number: 7, ..Mutant::parse("sim/x", &text).expect("a patch") }
    }

    fn verdict(run: &str, name: &str, with: &str, without: &str) -> Verdict {
        let path = program(name, with, without);
        let tests = || [("ottla-core".to_owned(), path.clone())].into();
        let programs = Programs {
            simulator: Some(path.clone()),
            models: tests(),
            scripted: tests(),
            ..Programs::default()
        };
        let verdict = Attempt::of(&mutant(run), &programs).verdict;
        fs::remove_file(path).expect("the script");
        verdict
    }

    fn failure(verdict: Verdict) -> String {
        match verdict {
            Verdict::Failed(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn checker_notices_a_mistake_and_nothing_without_it() {
        let hunt = |name: &str, with: &str, without: &str| {
            verdict("simulator 1..=9", &format!("hunt-{name}"), with, without)
        };
        let (found, nothing) =
            ("echo noticed by seed 3: gone", "echo wire noticed nothing in 1 seeds; exit 1");
        assert_eq!(hunt("noticed", found, nothing), Verdict::Noticed("seed 3: gone".to_owned()));
        assert!(matches!(hunt("survived", nothing, nothing), Verdict::Survived(_)));
        assert_eq!(failure(hunt("always", found, found)), "seed 3 fails without the mistake, too");
        assert!(
            failure(hunt("died", "kill -9 $$", nothing)).starts_with("the simulator ended without a result")
        );
    }

    #[test]
    fn model_fails_with_a_mistake_and_passes_without_it() {
        let model = |name: &str, with: &str, without: &str| verdict("loom ottla-core", name, with, without);
        let failed = "echo running 1 test; echo thread x panicked at x.rs:1; echo deadlock; exit 101";
        let passed = "echo running 1 test";
        assert_eq!(model("noticed", failed, passed), Verdict::Noticed("deadlock".to_owned()));
        assert!(matches!(model("survived", passed, passed), Verdict::Survived(_)));
        assert_eq!(failure(model("always", failed, failed)), "wire fails without the mistake, too");
        assert!(failure(model("none", "echo running 0 tests", passed)).starts_with("the model was not run"));
        let killed = failure(model("killed", "echo running 1 test; kill -9 $$", passed));
        assert!(killed.starts_with("the model ended without a result"), "{killed}");
        let scripted = verdict("scripted ottla-core", "scripted", passed, passed);
        assert_eq!(scripted, Verdict::Survived("the test passed".to_owned()));
    }

    #[test]
    fn what_was_not_built_is_a_failure() {
        let programs =
            Programs { refused: [(7, "changes nothing".to_owned())].into(), ..Programs::default() };
        for (run, reason) in [
            ("simulator 1..=9", "cargo built no simulator"),
            ("loom ottla-net", "cargo built no models of ottla-net"),
            ("scripted ottla-net", "cargo built no tests of ottla-net"),
        ] {
            assert_eq!(failure(Attempt::of(&mutant(run), &Programs::default()).verdict), reason);
            assert_eq!(failure(Attempt::of(&mutant(run), &programs).verdict), "changes nothing");
        }
    }

    #[test]
    fn each_mistake_is_tried_once_and_its_result_passed_on() {
        let mutants: Vec<Mutant> = (0..20).map(|_| mutant("simulator 1..=9")).collect();
        let mut count = 0;
        side_by_side(&mutants, &Programs::default(), |_, attempt| {
            failure(attempt.verdict);
            count += 1;
        });
        assert_eq!(count, 20);
    }
}
