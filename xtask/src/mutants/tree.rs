//! The scratch copy of the repository to which mistakes are applied, and the programs that are run on it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::patch::{Mutant, Runner};
use crate::{
    Result,
    shell::{self, Finished, cargo, root},
    threads,
};

/// The time limit of one build, and of one run of a check.
const DEADLINE: Duration = Duration::from_secs(1800);

/// The profile in Cargo.toml that the simulator is built with.
const PROFILE: &str = "mutants";

/// A copy of the repository under `target/mutants/tree`.
pub struct Tree {
    folder: PathBuf,
    target: PathBuf,
    /// The simulator without a mistake, once it is built.
    correct: Option<PathBuf>,
}

/// The result of a mistake's check.
#[derive(Debug)]
pub enum Verdict {
    /// The named check noticed it; with its words.
    Noticed(String),
    /// The named check noticed nothing.
    Survived(String),
    /// There is no result: the code does not compile, the check does not exist or fails without the mistake, too.
    Failed(String),
}

impl Tree {
    /// Copies the repository, or brings the copy up to date.
    pub fn new() -> Result<Self> {
        let folder = threads::target("mutants/tree")?;
        let listed = shell::read(
            Command::new("git").args(["ls-files", "-co", "--exclude-standard", "-z"]).current_dir(root()),
        )?;
        let files: BTreeSet<&str> = listed.split('\0').filter(|file| !file.is_empty()).collect();
        for file in &files {
            // Deleted files and links to folders cannot be read, and no crate needs them.
            let Ok(contents) = fs::read(root().join(file)) else { continue };
            let to = folder.join(file);
            // Only what changed is written, so that cargo builds only that.
            if fs::read(&to).is_ok_and(|known| known == contents) {
                continue;
            }
            fs::create_dir_all(to.parent().unwrap_or(&folder))?;
            fs::write(to, contents)?;
        }
        remove_others(&folder, &folder, &files)?;
        Ok(Self { folder, target: threads::target("mutants/build")?, correct: None })
    }

    /// Applies a mistake, runs its check, and removes the mistake again.
    pub fn attempt(&mut self, mutant: &Mutant) -> Result<Verdict> {
        if !matches!(mutant.run, Runner::Loom { .. }) && self.correct.is_none() {
            self.correct = Some(self.build_correct()?);
        }
        let mut originals = Vec::new();
        for file in &mutant.files {
            let path = self.folder.join(&file.path);
            let right = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", file.path))?;
            originals.push((path, file.apply(&right)?, right));
        }
        for (path, wrong, _) in &originals {
            fs::write(path, wrong)?;
        }
        let verdict = match &mutant.run {
            Runner::Simulator { first, last } => self.simulate("--hunt", (*first, *last), &mutant.noticed_by),
            Runner::Sasl { first, last } => self.simulate("--hunt-sasl", (*first, *last), &mutant.noticed_by),
            Runner::Telemetry { first, last } => {
                self.simulate("--hunt-telemetry", (*first, *last), &mutant.noticed_by)
            }
            Runner::Groups { first, last } => {
                self.simulate("--hunt-groups", (*first, *last), &mutant.noticed_by)
            }
            Runner::Transactions { first, last } => {
                self.simulate("--hunt-transactions", (*first, *last), &mutant.noticed_by)
            }
            Runner::Shares { first, last } => {
                self.simulate("--hunt-shares", (*first, *last), &mutant.noticed_by)
            }
            Runner::Loom { package } => self.model(package, &mutant.noticed_by),
        };
        for (path, _, right) in &originals {
            fs::write(path, right)?;
        }
        verdict
    }

    fn build(&self) -> Result<Finished> {
        let mut build = cargo();
        // The profile decides: here the same crates are compiled again and again.
        build.env_remove("CARGO_INCREMENTAL");
        build.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target).args([
            "build",
            "--profile",
            PROFILE,
            "--package",
            "ottla-sim",
            "--bin",
            "ottla-sim",
        ]);
        shell::run(&mut build, DEADLINE, false)
    }

    fn simulator(&self) -> PathBuf {
        self.target.join(PROFILE).join("ottla-sim")
    }

    /// Builds the simulator without a mistake, and returns a copy of the program.
    fn build_correct(&self) -> Result<PathBuf> {
        let built = self.build()?;
        if !built.success {
            let end = tail(&built.output, 20);
            return Err(format!("the simulator does not build without a mistake: {end}").into());
        }
        let copy = self.target.join("ottla-sim-without-a-mistake");
        fs::copy(self.simulator(), &copy)?;
        Ok(copy)
    }

    fn simulate(&self, command: &str, (first, last): (u64, u64), checker: &str) -> Result<Verdict> {
        let built = self.build()?;
        if !built.success {
            return Ok(Verdict::Failed(format!("does not compile: {}", first_error(&built.output))));
        }
        let hunted = hunt(&self.simulator(), command, first, last - first + 1, checker)?;
        let Some(found) = hunted.output.lines().find_map(|line| line.strip_prefix("noticed by ")) else {
            let end = tail(&hunted.output, 3);
            return Ok(match hunted.output.contains("noticed nothing in") {
                true => Verdict::Survived(end),
                false => Verdict::Failed(format!("the simulator ended without a result: {end}")),
            });
        };
        let seed = found.split(':').next().and_then(|text| text.strip_prefix("seed ")?.parse().ok());
        let seed: u64 = seed.ok_or(format!("`{found}` names no seed"))?;
        // A seed that fails without the mistake says nothing about it.
        if let Some(correct) = &self.correct {
            let without = hunt(correct, command, seed, 1, checker)?;
            if without.success || without.output.contains("noticed something") {
                return Ok(Verdict::Failed(format!("seed {seed} fails without the mistake, too")));
            }
        }
        Ok(Verdict::Noticed(short(found)))
    }

    fn model(&self, package: &str, model: &str) -> Result<Verdict> {
        let done = shell::run(&mut threads::models_of(&self.folder, package, model)?, DEADLINE, false)?;
        if !done.output.contains("running 1 test") {
            let built = first_error(&done.output);
            return Ok(Verdict::Failed(format!("the model was not run: {built} ({})", done.ending)));
        }
        if done.success {
            return Ok(Verdict::Survived("the model passed".to_owned()));
        }
        Ok(Verdict::Noticed(panic_message(&done.output)))
    }
}

fn hunt(program: &Path, option: &str, first: u64, count: u64, checker: &str) -> Result<Finished> {
    let mut command = Command::new(program);
    command.args([option, &first.to_string(), &count.to_string(), checker]);
    shell::run(&mut command, DEADLINE, false)
}

/// Removes the files of the copy that the repository does not have.
fn remove_others(top: &Path, folder: &Path, files: &BTreeSet<&str>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(top, &path, files)?;
        } else if path.strip_prefix(top).ok().and_then(Path::to_str).is_some_and(|name| !files.contains(name))
        {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Returns the line after `thread ... panicked at ...`.
fn panic_message(output: &str) -> String {
    let panicked = output.lines().skip_while(|line| !line.contains(" panicked at ")).nth(1);
    short(panicked.unwrap_or("the test failed without a panic"))
}

fn first_error(output: &str) -> String {
    let error = output.lines().find(|line| line.starts_with("error"));
    error.map_or_else(|| tail(output, 3), short)
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

fn tail(output: &str, count: usize) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(count)..].join(" / ")
}
