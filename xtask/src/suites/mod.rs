//! `cargo xtask suites`: the tests of other projects that use librdkafka, with Ottla's C library in its place.
//!
//! Sources come from package registries into `suites` of the cache folder; the library is installed under the target folder, and an
//! embedded broker runs for the tests that need one. [`clients`] has the suites, [`expected`] the tests that fail for a reason,
//! and what no registry has. Nothing of another project is part of this repository.

mod clients;
mod expected;
mod output;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use self::{
    clients::{SUITES, Suite},
    expected::{EXPECTED, NOT_CHECKED},
    output::Results,
};
use crate::{
    Result, abi,
    embedded::Embedded,
    library,
    shell::{self, cache},
};

/// Runs the tests of other projects with Ottla's C library, and names what was not checked.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Suites whose name contains this word
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Print the names of the suites, and run nothing
    #[arg(long)]
    list: bool,
    /// Print the output of the tests
    #[arg(long)]
    show: bool,
    /// Where a library is installed, instead of Ottla's: for a comparison
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<PathBuf>,
    /// Brokers that run already, instead of an embedded one
    #[arg(long, value_name = "SERVERS")]
    broker: Option<String>,
    /// The profile that Ottla is built with: dev or release
    #[arg(long, value_name = "NAME", default_value = "dev")]
    profile: String,
}

/// What a suite needs.
pub struct Setting {
    /// Where the library is installed.
    prefix: PathBuf,
    /// The value for `bootstrap.servers`.
    servers: String,
    /// The folder of the suite.
    folder: PathBuf,
    shows: bool,
}

impl Setting {
    /// Returns a command that compiles with the installed library and runs with it.
    pub fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(program);
        let (include, lib) = (self.prefix.join("include"), self.prefix.join("lib"));
        // Programs name the headers with and without their folder.
        let includes = format!("{}:{}", include.display(), include.join("librdkafka").display());
        command
            .current_dir(folder)
            .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
            .env("CGO_LDFLAGS", format!("-L{}", lib.display()))
            .env("CPLUS_INCLUDE_PATH", &includes)
            .env("C_INCLUDE_PATH", &includes)
            .env("LIBRARY_PATH", &lib)
            .env("LD_LIBRARY_PATH", &lib)
            .env("KAFKA_HOST", &self.servers);
        command
    }

    /// Where the library is installed.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The value for `bootstrap.servers`.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// Runs a command that prepares something.
    ///
    /// # Errors
    ///
    /// It fails; the error has its last lines.
    pub fn prepare(&self, command: &mut Command) -> Result<String> {
        let done = shell::run(command, Duration::from_secs(1800), self.shows)?;
        let last: Vec<&str> = done.output.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        if done.success {
            Ok(done.output)
        } else {
            Err(format!("{}\n{}", done.ending, last.join("\n")).into())
        }
    }

    /// Runs tests, which may fail, and returns their output.
    ///
    /// # Errors
    ///
    /// They can't be run.
    pub fn test(&self, command: &mut Command, minutes: u64) -> Result<String> {
        let done = shell::run(command, Duration::from_secs(minutes * 60), self.shows)?;
        Ok(if done.success { done.output } else { format!("{}\n{}\n", done.output, done.ending) })
    }
}

pub fn main(options: &Options) -> Result<ExitCode> {
    let is_wanted = |name: &str| options.only.as_ref().is_none_or(|word| name.contains(word.as_str()));
    if options.list {
        SUITES.iter().for_each(|suite| println!("{}: {}", suite.name, suite.what));
        return Ok(ExitCode::SUCCESS);
    }
    let folder = cache().join("suites");
    std::fs::create_dir_all(&folder)?;
    let prefix = match &options.prefix {
        Some(prefix) => prefix.canonicalize()?,
        None => abi::installed(&options.profile)?,
    };
    let broker = match options.broker {
        Some(_) => None,
        None => Some(Embedded::start(&library::ottla(&options.profile)?, &folder, &["--partitions", "3"])?),
    };
    let servers = options.broker.clone();
    let servers = servers.or_else(|| broker.as_ref().map(|it| it.bootstrap.clone())).unwrap_or_default();
    let (mut all, mut not_checked) = (Results::default(), Vec::new());
    for suite in SUITES.iter().filter(|suite| is_wanted(suite.name)) {
        let folder = folder.join(suite.name);
        std::fs::create_dir_all(&folder)?;
        println!("{}: {}", suite.name, suite.what);
        let setting =
            Setting { prefix: prefix.clone(), servers: servers.clone(), folder, shows: options.show };
        match (suite.run)(&setting) {
            Ok(results) => all.add(judged(suite, results)),
            Err(error) => not_checked.push((suite.name, error.to_string())),
        }
    }
    let missing = NOT_CHECKED.iter().filter(|(name, _)| is_wanted(name));
    not_checked.extend(missing.map(|(name, reason)| (*name, (*reason).to_owned())));
    for (name, reason) in &not_checked {
        println!("NOT CHECKED: {name}: {reason}");
    }
    // What a suite skips was not checked either.
    let (passed, failed) = (all.passed.len(), all.failed.len());
    let not_checked = not_checked.len() + all.skipped.len();
    println!("{passed} passed, {failed} failed, {not_checked} not checked");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the results of a suite. Failures with a reason count as skipped.
fn judged(suite: &Suite, results: Results) -> Results {
    let reason = |test: &str| {
        EXPECTED.iter().find(|(name, of, _)| *name == suite.name && *of == test).map(|(.., reason)| *reason)
    };
    let Results { passed, failed, mut skipped } = results;
    let (expected, failed): (Vec<String>, Vec<String>) =
        failed.into_iter().partition(|test| reason(test).is_some());
    println!("    {} passed, {} failed, {} skipped by the suite", passed.len(), failed.len(), skipped.len());
    for test in &expected {
        println!("    fails for a reason: {test}: {}", reason(test).unwrap_or_default());
    }
    failed.iter().for_each(|test| println!("    FAILED: {test}"));
    let is_repaired = |test: &&str| passed.iter().any(|passed| passed == test);
    let listed = EXPECTED.iter().filter(|(name, ..)| *name == suite.name).map(|(_, test, _)| *test);
    listed.filter(is_repaired).for_each(|test| println!("    passes, so it needs no reason: {test}"));
    skipped.extend(expected);
    Results { passed, failed, skipped }
}
