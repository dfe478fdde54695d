//! `cargo xtask mutants`: deliberate mistakes, each of which a checker of the simulator or a loom model must notice.
//!
//! Each mistake is a patch file under `crates/sim/mutants` ([`patch`]). It is applied to a copy of the repository, built,
//! and the check that its header names is run ([`tree`]).
//!
//! # Pitfalls
//!
//! - A loom model with one thread or one step too many can be blind: the extra step repairs what the mistake broke. Each
//!   model has a mistake that it must notice (`every_model_has_a_mistake`).

#[cfg(test)]
mod page;
mod patch;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use self::{
    patch::{FilePatch, Mutant, Runner},
    tree::{Tree, Verdict},
};
use crate::{Result, shell::root};

const HELP: &str = "\
cargo xtask mutants [--only NAME,...] [--sample N] [--ci]
cargo xtask mutants --list
cargo xtask mutants --check-apply
cargo xtask mutants --follow

Applies deliberate mistakes, one at a time, to a copy of the repository in target/mutants, builds it, and runs the check
that has to notice the mistake: seeds of the simulator, or a loom model. Fails if a mistake survives, or if its patch does
not apply or compile any more. The patches are in crates/sim/mutants.

  --only NAME,...  the mistakes with these names, or with these texts in their names
  --sample N       N mistakes, spread evenly over all, others each time
  --ci             the mistakes that CI tries
  --list           print the mistakes and the checks that must notice them
  --check-apply    only check that each patch applies, and that its check exists
  --follow         change the paths of patches whose lines were moved to another file
";

/// The folder of the patches.
const FOLDER: &str = "crates/sim/mutants";

/// The files with loom models.
const MODELS: [(&str, &str); 4] = [
    ("ottla-core", "crates/core/src/models/asking.rs"),
    ("ottla-core", "crates/core/src/models/receiving.rs"),
    ("ottla-core", "crates/core/src/models/sending.rs"),
    ("ottla-net", "crates/net/src/mailbox.rs"),
];

pub fn main(args: &[String]) -> Result<ExitCode> {
    let mut mutants = read_all()?;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => {
                let names = args.next().ok_or("--only needs names of mistakes")?;
                mutants = named(mutants, names)?;
            }
            "--sample" => {
                let count = args.next().ok_or("--sample needs a number")?.parse()?;
                mutants = sample(mutants, count, SystemTime::now().duration_since(UNIX_EPOCH)?);
            }
            "--ci" => mutants.retain(|mutant| mutant.in_ci),
            "--list" => return list(&mutants),
            "--check-apply" => return check_all(&mutants),
            "--follow" => return follow(&mutants),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(format!("there is no option `{other}`\n\n{HELP}").into()),
        }
    }
    let failures = try_all(&mutants)?;
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
            mutants.push(mutant.map_err(|error| format!("{FOLDER}/{name}.patch: {error}"))?);
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

/// Keeps the mistakes that these comma-separated texts name.
fn named(mutants: Vec<Mutant>, names: &str) -> Result<Vec<Mutant>> {
    let names: Vec<&str> = names.split(',').collect();
    let fits = |mutant: &Mutant, name: &str| mutant.name.contains(name);
    if let Some(unknown) = names.iter().find(|name| !mutants.iter().any(|mutant| fits(mutant, name))) {
        return Err(format!("no mistake is named `{unknown}`; see cargo xtask mutants --list").into());
    }
    Ok(mutants.into_iter().filter(|mutant| names.iter().any(|name| fits(mutant, name))).collect())
}

/// Keeps `count` mistakes at equal distances. The time decides which is the first.
fn sample(mutants: Vec<Mutant>, count: usize, time: Duration) -> Vec<Mutant> {
    let distance = (mutants.len() / count.max(1)).max(1);
    let first = time.as_secs() as usize % distance;
    mutants.into_iter().skip(first).step_by(distance).take(count).collect()
}

fn list(mutants: &[Mutant]) -> Result<ExitCode> {
    for mutant in mutants {
        let check = match &mutant.run {
            Runner::Simulator { first, last } => {
                format!("checker {}, seeds {first} to {last}", mutant.noticed_by)
            }
            Runner::Sasl { first, last } => {
                format!("checker {} with SASL, seeds {first} to {last}", mutant.noticed_by)
            }
            Runner::Telemetry { first, last } => {
                format!("checker {} with client metrics, seeds {first} to {last}", mutant.noticed_by)
            }
            Runner::Groups { first, last } => {
                format!("checker {} of groups, seeds {first} to {last}", mutant.noticed_by)
            }
            Runner::Transactions { first, last } => {
                format!("checker {} of transactions, seeds {first} to {last}", mutant.noticed_by)
            }
            Runner::Shares { first, last } => {
                format!("checker {} of share groups, seeds {first} to {last}", mutant.noticed_by)
            }
            Runner::Loom { package } => format!("model {} of {package}", mutant.noticed_by),
        };
        println!("{}: {}\n    {check}", mutant.name, mutant.mistake);
    }
    println!("{} mistakes", mutants.len());
    Ok(ExitCode::SUCCESS)
}

/// Tries the mistakes, and returns the names of those that were not noticed.
fn try_all(mutants: &[Mutant]) -> Result<Vec<String>> {
    let (mut tree, mut failures, start) = (Tree::new()?, Vec::new(), Instant::now());
    for mutant in mutants {
        let began = Instant::now();
        let verdict = tree.attempt(mutant).unwrap_or_else(|error| Verdict::Failed(error.to_string()));
        let seconds = began.elapsed().as_secs();
        match verdict {
            Verdict::Noticed(message) => println!("noticed   {} ({seconds} s): {message}", mutant.name),
            Verdict::Survived(message) => {
                println!("SURVIVED  {} ({seconds} s): {message}", mutant.name);
                failures.push(format!("{}: {} noticed nothing", mutant.name, mutant.noticed_by));
            }
            Verdict::Failed(message) => {
                println!("FAILED    {} ({seconds} s): {message}", mutant.name);
                failures.push(format!("{}: {message}", mutant.name));
            }
        }
    }
    let noticed = mutants.len() - failures.len();
    println!("{noticed} of {} mistakes noticed in {} s", mutants.len(), start.elapsed().as_secs());
    Ok(failures)
}

/// Tries the mistakes that CI tries. Returns their number, and what was not noticed.
pub fn try_in_ci() -> Result<(usize, Vec<String>)> {
    let mut mutants = read_all()?;
    mutants.retain(|mutant| mutant.in_ci);
    Ok((mutants.len(), try_all(&mutants)?))
}

fn check_all(mutants: &[Mutant]) -> Result<ExitCode> {
    let findings = findings(mutants)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("{} mistakes, {} findings", mutants.len(), findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a line for each patch that does not apply or names a check that does not exist.
fn findings(mutants: &[Mutant]) -> Result<Vec<String>> {
    let (simulator, models) = (sources("crates/sim/src")?, models()?);
    let mut findings = Vec::new();
    for mutant in mutants {
        for file in &mutant.files {
            findings.extend(finding(file)?.map(|finding| format!("{}: {finding}", mutant.name)));
        }
        let check = &mutant.noticed_by;
        let exists = match &mutant.run {
            Runner::Simulator { .. }
            | Runner::Sasl { .. }
            | Runner::Telemetry { .. }
            | Runner::Groups { .. }
            | Runner::Transactions { .. }
            | Runner::Shares { .. } => {
                simulator.iter().any(|(_, text)| text.contains(&format!("\"{check}\"")))
            }
            Runner::Loom { package } => models.iter().any(|(of, model)| of == package && model == check),
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
    fn ci_tries_the_simulator_and_a_model() {
        let mutants = read_all().unwrap();
        let tried = || mutants.iter().filter(|mutant| mutant.in_ci);
        assert!(tried().any(|mutant| matches!(mutant.run, Runner::Simulator { .. })));
        assert!(tried().any(|mutant| matches!(mutant.run, Runner::Loom { .. })));
    }

    #[test]
    fn sample_has_the_number_that_was_asked_for() {
        let all = read_all().unwrap().len();
        for seconds in 0..50 {
            let chosen = sample(read_all().unwrap(), 7, Duration::from_secs(seconds));
            assert_eq!(chosen.len(), 7, "of {all}");
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!(named(read_all().unwrap(), "drop_retry").unwrap().len(), 1);
        assert!(named(read_all().unwrap(), "drop_retry,no_such_mistake").is_err());
    }
}
