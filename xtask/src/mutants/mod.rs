//! `cargo xtask mutants`: deliberate mistakes, each of which a checker of the simulator or a loom model must notice.
//!
//! Each mistake is a patch file under `crates/sim/mutants` ([`patch`]). All of them are put into one copy of the
//! repository ([`copy`]), each behind a switch in the functions that it changes ([`functions`], [`switches`]). The
//! simulator, the models and the scripted tests are built there once ([`programs`]); then the check that a patch names is
//! run with the mistake's number in the environment ([`attempt`]).
//!
//! # Pitfalls
//!
//! - A loom model with one thread or one step too many can be blind: the extra step repairs what the mistake broke. Each
//!   model has a mistake that it must notice (`every_model_has_a_mistake`).
//! - A sample at fixed distances never reaches the last mistakes if the distance is rounded down. Each turn begins one
//!   mistake later, and the distances vary (`every_mistake_has_its_turn`).

mod attempt;
mod copy;
mod functions;
#[cfg(test)]
mod page;
mod patch;
mod programs;
mod switches;

use std::{
    collections::BTreeMap,
    fs, iter,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use clap::Parser;

use self::{
    attempt::Verdict,
    copy::Switches,
    patch::{FilePatch, Mutant, Runner},
    programs::{Needed, Programs},
};
use crate::{
    Result,
    shell::{self, root},
    test::{TestProgram, usage},
};

/// Puts deliberate mistakes into a copy of the repository, each behind a switch, builds it once, and runs for each mistake
/// the check that has to notice it: seeds of the simulator, a loom model, or a scripted test. Fails if a mistake survives, or if its patch
/// does not apply, has no switch or does not compile any more. The patches are in crates/sim/mutants.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask mutants")]
struct Options {
    /// The mistakes with these names, or with these texts in their names
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Option<Vec<String>>,
    /// N mistakes, spread evenly over all, others each time
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// The same sample as another run, which printed its turn
    #[arg(long, value_name = "NUMBER", requires = "sample")]
    turn: Option<u64>,
    /// The sample that CI tries with this commit
    #[arg(long, conflicts_with_all = ["sample", "only"])]
    ci: bool,
    /// Print the mistakes and the checks that must notice them
    #[arg(long)]
    list: bool,
    /// Only check that each patch applies and has a switch, and that its check exists
    #[arg(long)]
    check_apply: bool,
    /// Change the paths of patches whose lines were moved to another file
    #[arg(long)]
    follow: bool,
}

/// The number of mistakes that CI tries.
const IN_CI: usize = 30;

/// In one of so many turns, the mistakes of a sample are at the border to C.
const TURNS: u64 = 6;

/// The folder of the patches.
const FOLDER: &str = "crates/sim/mutants";

/// The folder of the C programs.
const PROGRAMS: &str = "crates/capi/tests/c";

/// The files with loom models.
const MODELS: [(&str, &str); 5] = [
    ("ottla-core", "crates/core/src/models/asking.rs"),
    ("ottla-core", "crates/core/src/models/receiving.rs"),
    ("ottla-core", "crates/core/src/models/sending.rs"),
    ("ottla-net", "crates/net/src/lead.rs"),
    ("ottla-net", "crates/net/src/mailbox.rs"),
];

pub fn main(args: &[String]) -> Result<ExitCode> {
    let name = "cargo xtask mutants".to_owned();
    let options = match Options::try_parse_from(iter::once(&name).chain(args)) {
        Ok(options) => options,
        Err(error) => {
            error.print()?;
            return Ok(if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    };
    let mut mutants = read_all()?;
    if let Some(names) = &options.only {
        mutants = named(mutants, names)?;
    }
    if let Some(count) = options.sample {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        mutants = sample(mutants, count, options.turn.unwrap_or(since.as_secs()));
    } else if options.ci {
        mutants = sample(mutants, IN_CI, turn_of_commit()?);
    }
    if options.list {
        return list(&mutants);
    }
    if options.check_apply {
        return check_all(&mutants);
    }
    if options.follow {
        return follow(&mutants);
    }
    let failures = try_all(&mutants, || {})?;
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads all patches, ordered by name.
fn read_all() -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let top = root().join(FOLDER);
    for folder in sorted(&top)?.into_iter().filter(|path| path.is_dir()) {
        for path in sorted(&folder)? {
            let name = path.strip_prefix(&top)?.with_extension("").display().to_string();
            let text = fs::read_to_string(&path)?;
            let mutant = Mutant::parse(&name, &text);
            let mutant = mutant.map_err(|error| format!("{FOLDER}/{name}.patch: {error}"))?;
            mutants.push(Mutant { number: u32::try_from(mutants.len() + 1)?, ..mutant });
        }
    }
    Ok(mutants)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Keeps the mistakes that these texts name.
fn named(mutants: Vec<Mutant>, names: &[String]) -> Result<Vec<Mutant>> {
    let fits = |mutant: &Mutant, name: &String| mutant.name.contains(name);
    if let Some(unknown) = names.iter().find(|name| !mutants.iter().any(|mutant| fits(mutant, name))) {
        return Err(format!("no mistake is named `{unknown}`; see cargo xtask mutants --list").into());
    }
    Ok(mutants.into_iter().filter(|mutant| names.iter().any(|name| fits(mutant, name))).collect())
}

/// Keeps `count` mistakes at equal distances, and prints how to try the same ones again. The turn decides which is the
/// first, and whether they are at the border to C.
fn sample(mutants: Vec<Mutant>, count: usize, turn: u64) -> Vec<Mutant> {
    let mutants = in_turn(mutants, turn);
    let count = count.min(mutants.len());
    println!("{count} of {} mistakes: cargo xtask mutants --sample {count} --turn {turn}", mutants.len());
    let chosen = sampled(mutants.len(), count, turn / TURNS);
    let mutants = mutants.into_iter().enumerate();
    mutants.filter(|(place, _)| chosen.contains(place)).map(|(_, mutant)| mutant).collect()
}

/// Returns the mistakes that a sample of this turn is taken from: those at the border to C in one of [`TURNS`], because the C
/// library has to be built for them, otherwise the others.
fn in_turn(mutants: Vec<Mutant>, turn: u64) -> Vec<Mutant> {
    let (at_border, others): (Vec<_>, Vec<_>) =
        mutants.into_iter().partition(|mutant| mutant.run == Runner::Program);
    let is_their_turn = turn.is_multiple_of(TURNS) && !at_border.is_empty();
    if is_their_turn || others.is_empty() { at_border } else { others }
}

/// Returns the places of a sample of `count` of `all`.
fn sampled(all: usize, count: usize, turn: u64) -> Vec<usize> {
    let count = count.min(all);
    let first = (turn % all.max(1) as u64) as usize;
    (0..count).map(|place| (first + place * all / count) % all).collect()
}

/// Returns the turn of the sample that CI tries: the beginning of the commit's hash, or outside of git the day.
fn turn_of_commit() -> Result<u64> {
    let hash = shell::read(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()));
    if let Some(turn) = hash.ok().and_then(|hash| u64::from_str_radix(hash.get(..8)?, 16).ok()) {
        return Ok(turn);
    }
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / (24 * 3600))
}

fn list(mutants: &[Mutant]) -> Result<ExitCode> {
    for mutant in mutants {
        let check = &mutant.noticed_by;
        let check = match &mutant.run {
            Runner::Simulator { worlds, first, last } => {
                format!("checker {check}{}, seeds {first} to {last}", worlds.what)
            }
            Runner::Loom { package } => format!("model {check} of {package}"),
            Runner::Scripted { package } => format!("test {check} of {package}"),
            Runner::Program => format!("C program {check}"),
        };
        println!("{}: {}\n    {check}", mutant.name, mutant.mistake);
    }
    println!("{} mistakes", mutants.len());
    Ok(ExitCode::SUCCESS)
}

/// Tries the mistakes, and returns those that were not noticed.
fn try_all(mutants: &[Mutant], is_built: impl FnOnce()) -> Result<Vec<String>> {
    let began = Instant::now();
    let programs = Programs::build(&read_all()?, Needed::of(mutants))?;
    is_built();
    let (built, mut cpu, mut failures) = (began.elapsed(), Duration::ZERO, Vec::new());
    attempt::side_by_side(mutants, &programs, |mutant, attempt| {
        let (word, message) = match &attempt.verdict {
            Verdict::Noticed(message) => ("noticed  ", message),
            Verdict::Survived(message) => ("SURVIVED ", message),
            Verdict::Failed(message) => ("FAILED   ", message),
        };
        let (wall, seconds) = (attempt.wall.as_secs_f64(), attempt.cpu.as_secs_f64());
        println!("{word} {} ({wall:.1} s, {seconds:.1} s of CPU): {message}", mutant.name);
        cpu += attempt.cpu;
        match attempt.verdict {
            Verdict::Noticed(_) => {}
            Verdict::Survived(_) => {
                failures.push(format!("{}: {} noticed nothing", mutant.name, mutant.noticed_by));
            }
            Verdict::Failed(message) => failures.push(format!("{}: {message}", mutant.name)),
        }
    });
    // The programs ran in other threads.
    usage::add(cpu);
    let noticed = mutants.len() - failures.len();
    let (built, wall, cpu) = (built.as_secs(), began.elapsed().as_secs(), cpu.as_secs());
    println!(
        "{noticed} of {} mistakes noticed in {wall} s, {built} of them for the build; {cpu} s of CPU without it",
        mutants.len()
    );
    Ok(failures)
}

/// Builds the loom models in the copy that has all mistakes, and returns the commands that run them without one, a
/// command per crate.
pub fn models_in_ci() -> Result<Vec<Command>> {
    Programs::build(&read_all()?, Needed::MODELS)?.without_mistakes()
}

/// Builds the simulator's tests in the copy that has all mistakes, where its crates are optimized. Their programs make none.
pub fn tests_in_ci() -> Result<Vec<TestProgram>> {
    let tests = Programs::build(&read_all()?, Needed::TESTS)?.tests;
    if tests.is_empty() { Err("cargo built no tests of the simulator".into()) } else { Ok(tests) }
}

/// Tries the mistakes whose turn it is, and calls `is_built` when nothing is left to compile. Returns their number, and what
/// was not noticed.
pub fn try_in_ci(is_built: impl FnOnce()) -> Result<(usize, Vec<String>)> {
    let mutants = sample(read_all()?, IN_CI, turn_of_commit()?);
    Ok((mutants.len(), try_all(&mutants, is_built)?))
}

fn check_all(mutants: &[Mutant]) -> Result<ExitCode> {
    let findings = findings(mutants)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("{} mistakes, {} findings", mutants.len(), findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a line for each patch that does not apply, has no switch, or names a check that does not exist.
fn findings(mutants: &[Mutant]) -> Result<Vec<String>> {
    let (simulator, core, models) = (sources("crates/sim/src")?, sources("crates/core/src")?, models()?);
    let refused = Switches::read(mutants, &root(), &BTreeMap::new())?.refused;
    let mut findings = Vec::new();
    for mutant in mutants {
        let before = findings.len();
        for file in &mutant.files {
            findings.extend(finding(file)?.map(|finding| format!("{}: {finding}", mutant.name)));
        }
        if let Some(reason) = refused.get(&mutant.number).filter(|_| findings.len() == before) {
            findings.push(format!("{}: {reason}", mutant.name));
        }
        let check = &mutant.noticed_by;
        let exists = match &mutant.run {
            Runner::Simulator { .. } => {
                simulator.iter().any(|(_, text)| text.contains(&format!("\"{check}\"")))
            }
            Runner::Loom { package } => models.iter().any(|(of, model)| of == package && model == check),
            Runner::Scripted { package } => {
                package == "ottla-core"
                    && core.iter().any(|(_, text)| text.contains(&format!("fn {check}()")))
            }
            Runner::Program => root().join(PROGRAMS).join(check).with_extension("c").exists(),
        };
        if !exists {
            findings.push(format!("{}: there is no check `{check}`", mutant.name));
        }
    }
    Ok(findings)
}

/// Returns why the changes of a file do not apply, and where they would.
fn finding(file: &FilePatch) -> Result<Option<String>> {
    let applied = match fs::read_to_string(root().join(&file.path)) {
        Ok(text) => file.apply(&text).map(drop),
        Err(error) => Err(format!("{}: {error}", file.path).into()),
    };
    let Err(error) = applied else { return Ok(None) };
    let moved = match moved_to(file)? {
        Some(path) => format!("; it applies to {path} (cargo xtask mutants --follow)"),
        None => String::new(),
    };
    Ok(Some(format!("{error}{moved}")))
}

/// Returns the only other file of the same crate to which the changes apply.
fn moved_to(file: &FilePatch) -> Result<Option<String>> {
    let folder: PathBuf = Path::new(&file.path).components().take(3).collect();
    let mut fitting = sources(&folder.to_string_lossy())?;
    fitting.retain(|(path, text)| *path != file.path && file.fits(text));
    Ok(if fitting.len() == 1 { fitting.pop().map(|(path, _)| path) } else { None })
}

/// Writes new paths into the patches whose lines were moved to another file.
fn follow(mutants: &[Mutant]) -> Result<ExitCode> {
    for mutant in mutants {
        for file in &mutant.files {
            if finding(file)?.is_none() {
                continue;
            }
            let Some(path) = moved_to(file)? else { continue };
            let patch = root().join(FOLDER).join(format!("{}.patch", mutant.name));
            let mut text = fs::read_to_string(&patch)?;
            for side in ["--- a/", "+++ b/"] {
                text = text.replace(&format!("{side}{}\n", file.path), &format!("{side}{path}\n"));
            }
            fs::write(&patch, text)?;
            println!("{}: {path}", mutant.name);
        }
    }
    check_all(&read_all()?)
}

/// Returns the paths and texts of the Rust files below a folder of the repository.
fn sources(folder: &str) -> Result<Vec<(String, String)>> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for path in sorted(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root())?.display().to_string();
                found.push((name, fs::read_to_string(&path)?));
            }
        }
    }
    Ok(found)
}

/// Returns the package and the name of each loom model.
fn models() -> Result<Vec<(&'static str, String)>> {
    let mut models = Vec::new();
    for (package, file) in MODELS {
        let text = fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        for test in text.split("#[test]").skip(1) {
            let name = test.trim_start().trim_start_matches("fn ").split('(').next().unwrap_or_default();
            models.push((package, name.to_owned()));
        }
    }
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_applies_and_its_check_exists() {
        let findings = findings(&read_all().unwrap()).unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    #[test]
    fn every_model_has_a_mistake() {
        let mutants = read_all().unwrap();
        for (_, model) in models().unwrap() {
            assert!(mutants.iter().any(|mutant| mutant.noticed_by == model), "{model}");
        }
    }

    #[test]
    fn every_checker_has_a_mistake() {
        let mutants = read_all().unwrap();
        for checker in ["delivery", "consume", "accounting", "wire", "busy", "liveness", "determinism"] {
            assert!(mutants.iter().any(|mutant| mutant.noticed_by == checker), "{checker}");
        }
    }

    #[test]
    fn sample_of_ci_has_the_simulator_and_models() {
        let mutants = read_all().unwrap();
        let others = in_turn(mutants, 1);
        for turn in 0..others.len() as u64 {
            let chosen = sampled(others.len(), IN_CI, turn);
            let models =
                chosen.iter().filter(|place| matches!(others[**place].run, Runner::Loom { .. })).count();
            assert!((1..IN_CI).contains(&models), "{models} in turn {turn}");
        }
        let at_border = in_turn(read_all().unwrap(), 0);
        assert!(at_border.len() >= IN_CI && at_border.iter().all(|mutant| mutant.run == Runner::Program));
    }

    #[test]
    fn every_mistake_has_its_turn() {
        for (all, count) in [(208, 30), (208, 7), (59, 30), (5, 5), (5, 9)] {
            let mut times = vec![0; all];
            for turn in 0..all as u64 {
                let chosen = sampled(all, count, turn);
                assert_eq!(chosen.len(), count.min(all));
                chosen.into_iter().for_each(|place| times[place] += 1);
            }
            assert!(times.iter().all(|times| *times == count.min(all)), "{count} of {all}: {times:?}");
        }
        assert!(sampled(0, 30, 1).is_empty());
    }

    #[test]
    fn unknown_names_are_refused() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(named(read_all().unwrap(), &names("drop_retry")).unwrap().len(), 1);
        assert!(named(read_all().unwrap(), &names("drop_retry,no_such_mistake")).is_err());
    }

    #[test]
    fn turn_belongs_to_a_sample() {
        let parse = |text: &str| Options::try_parse_from(text.split(' '));
        assert!(parse("mutants --sample 30 --turn 7").is_ok());
        assert!(parse("mutants --turn 7").is_err());
        assert!(parse("mutants --ci --sample 30").is_err());
    }
}
