//! `cargo xtask proof`: the rotation of everything that looks for defects with fresh inputs, for some hours, and one page about it.
//!
//! Each row of [`STAGES`] is a command of this tool. Those that take as long as they take come first, once each; the others divide
//! the time that is left by their weights. The page, `target/proof/page.md`, is written again after each of them, so that an
//! interruption leaves the truth: what did not run is "not checked".
//!
//! # Pitfalls
//!
//! - A stage that ends at its time limit has not passed: a hang looks like this (`stage_that_was_killed_has_failed`).

use std::{
    fmt::Write as _,
    fs,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use crate::{
    Result,
    shell::{self, root},
};

/// Runs simulated worlds, models, deliberate mistakes, fuzzing, generated C programs, sanitizers and real brokers that are killed, with
/// fresh inputs for this time, and writes target/proof/page.md.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The time for all of them.
    #[arg(long, value_name = "H", default_value_t = 8.0)]
    hours: f64,
    /// Only the stages with these names.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// List the stages and their shares of the time.
    #[arg(long)]
    list: bool,
}

/// A command of the rotation.
struct Stage {
    name: &'static str,
    /// What it looks for.
    what: &'static str,
    /// The arguments of `cargo xtask`, in which `MINUTES` stands for its share of the time.
    command: &'static str,
    time: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    /// As long as it takes.
    Once,
    /// A part of the rest, by this weight.
    Weight(u32),
}

#[rustfmt::skip]
const STAGES: [Stage; 16] = [
    Stage { name: "models", what: "every order of what threads share", command: "threads", time: Time::Once },
    Stage { name: "mistakes", what: "deliberate mistakes that the checks must notice", command: "mutants", time: Time::Once },
    Stage { name: "races", what: "TCP and threads under ThreadSanitizer", command: "sanitize thread", time: Time::Once },
    Stage { name: "addresses", what: "C programs under AddressSanitizer and valgrind", command: "sanitize programs", time: Time::Once },
    Stage { name: "kills", what: "three brokers of Apache Kafka are killed in turn", command: "kafka torture", time: Time::Once },
    Stage { name: "clients", what: "worlds of producers and consumers", command: "swarm --of clients --minutes MINUTES", time: Time::Weight(4) },
    Stage { name: "groups", what: "worlds of consumer groups", command: "swarm --groups --minutes MINUTES", time: Time::Weight(4) },
    Stage { name: "transactions", what: "worlds of transactions", command: "swarm --transactions --minutes MINUTES", time: Time::Weight(4) },
    Stage { name: "shares", what: "worlds of share groups", command: "swarm --shares --minutes MINUTES", time: Time::Weight(2) },
    Stage { name: "streams", what: "worlds of streams groups", command: "swarm --streams-groups --minutes MINUTES", time: Time::Weight(1) },
    Stage { name: "hardships", what: "damaged bytes, full disks, lost quorums", command: "swarm --of hardships --minutes MINUTES", time: Time::Weight(2) },
    Stage { name: "sasl", what: "worlds whose clients authenticate", command: "swarm --of sasl --minutes MINUTES", time: Time::Weight(1) },
    Stage { name: "guided", what: "plans that took rare transitions, changed", command: "swarm --guided --minutes MINUTES", time: Time::Weight(4) },
    Stage { name: "fuzzing", what: "bytes for whatever reads bytes", command: "fuzz --coverage all --minutes MINUTES/8", time: Time::Weight(4) },
    Stage { name: "programs", what: "generated C programs beside librdkafka", command: "abi --generate --minutes MINUTES", time: Time::Weight(4) },
    Stage { name: "unsteady", what: "the same on brokers with faults", command: "abi --generate --unsteady --minutes MINUTES", time: Time::Weight(2) },
];

/// The limit of a command without a share.
const LONGEST: Duration = Duration::from_secs(2 * 3600);
/// What a command may take besides its share: it builds, and ends its last world.
const GRACE: Duration = Duration::from_secs(1800);

/// The end of a stage.
#[derive(Debug)]
enum Outcome {
    NotChecked,
    Passed { line: String, took: Duration },
    Failed { line: String, took: Duration },
}

pub fn main(options: &Options) -> Result<ExitCode> {
    let stages = chosen(&options.only)?;
    if options.list {
        stages
            .iter()
            .for_each(|stage| println!("{:12} {:?}: cargo xtask {}", stage.name, stage.time, stage.command));
        return Ok(ExitCode::SUCCESS);
    }
    let end = Instant::now() + Duration::from_secs_f64(options.hours.clamp(0.0, 10_000.0) * 3600.0);
    let folder = root().join("target/proof");
    fs::create_dir_all(&folder)?;
    let page = folder.join("page.md");
    let mut outcomes: Vec<Outcome> = stages.iter().map(|_| Outcome::NotChecked).collect();
    for at in 0..stages.len() {
        let left = end.saturating_duration_since(Instant::now());
        let Some((arguments, limit)) = stages[at].arguments(left, weight(&stages[at..])) else { continue };
        println!("==> {}: cargo xtask {arguments}", stages[at].name);
        let began = Instant::now();
        let done = shell::run(
            Command::new(std::env::current_exe()?).args(arguments.split(' ')).current_dir(root()),
            limit,
            true,
        )?;
        fs::write(folder.join(stages[at].name).with_extension("log"), &done.output)?;
        outcomes[at] = Outcome::of(done.success, &done.output, done.ending, began.elapsed());
        fs::write(&page, written(&stages, &outcomes, &commit()?))?;
    }
    fs::write(&page, written(&stages, &outcomes, &commit()?))?;
    println!("the page: {}", page.display());
    let all_passed = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Passed { .. }));
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the stages with these names, or all. Error: no stage has a name.
fn chosen(names: &[String]) -> Result<Vec<&'static Stage>> {
    if let Some(unknown) = names.iter().find(|name| STAGES.iter().all(|stage| stage.name != **name)) {
        return Err(format!("no stage is named `{unknown}`; see cargo xtask proof --list").into());
    }
    let is_chosen = |stage: &&Stage| names.is_empty() || names.iter().any(|name| name == stage.name);
    Ok(STAGES.iter().filter(is_chosen).collect())
}

/// Returns the sum of the weights.
fn weight(stages: &[&Stage]) -> u32 {
    let weight = |stage: &&Stage| if let Time::Weight(weight) = stage.time { weight } else { 0 };
    stages.iter().map(weight).sum()
}

impl Stage {
    /// Returns the arguments and the time limit; `None` if no minute is left. `weights` are those of this stage and the next ones.
    fn arguments(&self, left: Duration, weights: u32) -> Option<(String, Duration)> {
        let Time::Weight(weight) = self.time else {
            return (!left.is_zero()).then(|| (self.command.to_owned(), LONGEST));
        };
        let share = left * weight / weights.max(1);
        let minutes = share.as_secs() / 60;
        let mut command = self.command.replace("MINUTES/8", &format!("{:.2}", share.as_secs_f64() / 480.0));
        command = command.replace("MINUTES", &minutes.to_string());
        (minutes > 0).then(|| (command, share + GRACE))
    }
}

impl Outcome {
    fn of(is_success: bool, output: &str, ending: String, took: Duration) -> Self {
        let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let line = last.unwrap_or_default().to_owned();
        match is_success {
            true => Self::Passed { line, took },
            false => Self::Failed { line: format!("{ending}; {line}"), took },
        }
    }
}

fn commit() -> Result<String> {
    let described = shell::read(
        Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).current_dir(root()),
    )?;
    Ok(described.trim().to_owned())
}

/// Returns the page.
fn written(stages: &[&Stage], outcomes: &[Outcome], commit: &str) -> String {
    let mut page = format!(
        "# What was checked\n\nCommit {commit}. `cargo xtask proof` wrote this page; the logs are beside it.\n\n\
         | stage | what it looks for | result | minutes | its last line |\n|---|---|---|---:|---|\n"
    );
    for (Stage { name, what, .. }, outcome) in stages.iter().zip(outcomes) {
        let (word, took, line) = match outcome {
            Outcome::NotChecked => ("not checked", None, ""),
            Outcome::Passed { line, took } => ("passed", Some(took), &**line),
            Outcome::Failed { line, took } => ("**failed**", Some(took), &**line),
        };
        let minutes = took.map_or_else(String::new, |took| format!("{:.1}", took.as_secs_f64() / 60.0));
        let _ = writeln!(page, "| {name} | {what} | {word} | {minutes} | {} |", line.replace('|', "\\|"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn stages_divide_the_time_by_their_weights() {
        let stages = chosen(&["clients".to_owned(), "streams".to_owned(), "fuzzing".to_owned()]).unwrap();
        assert_eq!(weight(&stages), 9);
        let arguments = |stage: &Stage, left| stage.arguments(left, 9).map(|(command, _)| command);
        assert_eq!(arguments(stages[0], HOUR * 9).unwrap(), "swarm --of clients --minutes 240");
        assert_eq!(arguments(stages[1], HOUR * 9).unwrap(), "swarm --streams-groups --minutes 60");
        assert_eq!(arguments(stages[2], HOUR * 9).unwrap(), "fuzz --coverage all --minutes 30.00");
        assert_eq!(arguments(stages[1], HOUR / 10), None, "less than a minute");
        assert!(chosen(&["no-such-stage".to_owned()]).is_err());
        assert_eq!(chosen(&[]).unwrap().len(), STAGES.len());
    }

    #[test]
    fn stage_that_was_killed_has_failed() {
        let (stages, took) = (chosen(&[]).unwrap(), HOUR);
        let mut outcomes: Vec<Outcome> = stages.iter().map(|_| Outcome::NotChecked).collect();
        outcomes[0] = Outcome::of(true, "a\n12 | 13 seeds\n\n", "exit".to_owned(), took);
        outcomes[1] = Outcome::of(false, "seed 5\n", "killed after 7 s".to_owned(), took);
        let page = written(&stages, &outcomes, "abc");
        let row = |name: &str| page.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        assert!(row("models").ends_with("| passed | 60.0 | 12 \\| 13 seeds |"), "{page}");
        assert!(row("mistakes").ends_with("| **failed** | 60.0 | killed after 7 s; seed 5 |"), "{page}");
        assert!(row("programs").ends_with("| not checked |  |  |"), "{page}");
    }

    #[test]
    fn commands_of_the_stages_are_understood() {
        use clap::Parser as _;

        for stage in &STAGES {
            let (command, _) = stage.arguments(HOUR, 20).unwrap();
            let understood =
                crate::Arguments::try_parse_from(["cargo xtask"].into_iter().chain(command.split(' ')));
            assert!(understood.is_ok(), "{command}: {}", understood.err().unwrap());
        }
    }
}
