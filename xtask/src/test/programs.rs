//! The test programs of the workspace: built once by cargo, run side by side by us.
//!
//! `cargo test` runs one program after the other, although most of them wait for brokers most of the time.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use serde_json::Value;

use super::session::Session;
use crate::{
    Result, install,
    shell::{cargo, patient, patient_cargo},
};

/// The manifest of the benchmarks.
pub const BENCH: &str = "bench/Cargo.toml";
/// The manifest of the fuzz targets.
pub const FUZZ: &str = "fuzz/Cargo.toml";

/// The tests of a program that run at the same time.
const THREADS: &str = "8";

/// The programs that take longest, which begin first.
const LONG: [&str; 5] = ["scenarios", "abi", "stuck", "secrets", "command_line"];

/// The packages whose tests compute and never wait: they get the processors when nothing else needs them.
const COMPUTING: [&str; 2] = [SIMULATOR, "ottla-protocol"];
const SIMULATOR: &str = "ottla-sim";

/// The examples that scripts run, with their packages.
const EXAMPLES: [(&str, &str); 2] = [("ottla-protocol", "batches"), ("ottla", "reauthentication_latency")];

/// What the names of tests with many seeds contain. Without optimization they take minutes.
const SEEDS: [&str; 2] = ["keep_all_guarantees", "every_fault_occurs"];

/// A test program.
#[derive(Clone, Debug, PartialEq)]
pub struct TestProgram {
    /// Its package, and the target in it: `ottla consumer`.
    pub name: String,
    pub path: PathBuf,
    /// The folder of its package, in which it runs.
    pub folder: PathBuf,
}

impl TestProgram {
    /// Returns the command that runs all its tests.
    pub fn command(&self) -> Command {
        let mut command = if self.computes() { patient(&self.path) } else { Command::new(&self.path) };
        command.current_dir(&self.folder);
        if !self.computes() {
            command.args(["--test-threads", THREADS]);
        }
        command
    }

    fn computes(&self) -> bool {
        COMPUTING.contains(&self.package())
    }

    fn package(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// True for the scenarios, which also run on Apache Kafka.
    pub fn uses_kafka(&self) -> bool {
        self.name.starts_with("ottla-scenarios ")
    }

    fn order(&self) -> usize {
        let target = self.name.split(' ').next_back().unwrap_or_default();
        LONG.iter().position(|name| *name == target).unwrap_or(LONG.len())
    }
}

/// Compiles all crates, their programs and their tests.
pub fn build(session: &Session) -> Result<()> {
    // The step `sim` builds the simulator's tests with optimization. Of the bench only the harness is tested: building the
    // peers takes minutes.
    let targets = ["--workspace", "--lib", "--bins", "--tests"];
    let all: &[&str] = &targets;
    let without_simulator: &[&str] = &[&targets[..], &["--exclude", SIMULATOR]].concat();
    let workspaces: [(&str, &[&str]); 2] = [
        ("cargo test --no-run", if session.is_quick() { all } else { without_simulator }),
        ("cargo test --no-run in bench/", &["--package", "harness", "--manifest-path", BENCH]),
    ];
    let (slot, mut programs) = (session.compiling(), Vec::new());
    for (what, arguments) in workspaces {
        let mut build = cargo();
        build.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]).args(arguments);
        let built = parse(&session.compile_in(&slot, what, &mut build)?);
        if built.is_empty() {
            return Err(format!("{what} built no test program").into());
        }
        programs.extend(built);
        session.pass(what);
    }
    // Tests of the C library use it while scripts install it: it must not be linked again meanwhile. Together with these packages
    // the examples have the features of the tests, and little is left to compile.
    let mut libraries = cargo();
    libraries.args(["build", "--package", "ottla-capi", "--package", "ottla-cli", "--lib", "--bins"]);
    for (package, name) in EXAMPLES {
        libraries.args(["--package", package, "--example", name]);
    }
    session.compile_in(&slot, "cargo build", &mut libraries)?;
    session.set_programs(programs);
    Ok(())
}

/// Runs all test programs.
pub fn run(session: &Session) -> Result<()> {
    if session.is_quick() {
        session.not_checked("scenarios on Apache Kafka (--quick)");
        session.not_checked("seeds of the simulator, other than those that failed once (--quick)");
    }
    // A test of the C library needs it.
    install::debian("kcat", "kcat")?;
    let (computing, waiting): (Vec<_>, Vec<_>) =
        session.programs()?.iter().partition(|program| program.computes());
    thread::scope(|scope| {
        let aside = session.clone();
        scope.spawn(move || {
            aside.cpu.count_here();
            compute(&aside, computing);
        });
        session.side_by_side(&waiting, |session, program| {
            let mut command = program.command();
            if program.uses_kafka() {
                session.give_kafka(&mut command)?;
            }
            session.tests(&program.name, &mut command)
        });
    });
    Ok(())
}

/// Runs programs that compute, one after the other: each of them keeps all processors busy.
pub fn compute<'a>(session: &Session, programs: impl IntoIterator<Item = &'a TestProgram>) {
    for program in programs {
        let _slot = session.computing();
        let mut command = program.command();
        if session.is_quick() && program.package() == SIMULATOR {
            command.args(SEEDS.iter().flat_map(|name| ["--skip", name]));
        }
        if let Err(error) = session.tests(&program.name, &mut command) {
            session.fail(&error.to_string());
        }
    }
}

/// Runs the examples in the documentation.
pub fn documentation(session: &Session) -> Result<()> {
    let mut test = patient_cargo();
    let _slot = session.compiling();
    session.tests("documentation", test.args(["test", "--doc", "--workspace", "--no-fail-fast"]))
}

/// Returns the programs that cargo's messages name, the longest first.
pub fn parse(messages: &str) -> Vec<TestProgram> {
    let messages = messages.lines().filter(|line| line.starts_with('{'));
    let messages = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs: Vec<TestProgram> = messages.filter_map(|message| of_message(&message)).collect();
    programs.sort_by_key(|program| (program.order(), program.name.clone()));
    programs
}

fn of_message(message: &Value) -> Option<TestProgram> {
    let path = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    // `path+file:///folder#name@0.1.0`, or `path+file:///folder/name#0.1.0`.
    let (place, version) = message["package_id"].as_str()?.split_once('#')?;
    let package = version.split_once('@').map_or_else(|| place.rsplit('/').next(), |(name, _)| Some(name))?;
    let name = format!("{package} {}", message["target"]["name"].as_str()?);
    Some(TestProgram { name, path: path.into(), folder: folder.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_messages_of_cargo() {
        let messages = r#"   Compiling ottla-core v0.1.0 (/x/crates/core)
{"reason":"compiler-artifact","package_id":"path+file:///x/crates/core#ottla-core@0.1.0","manifest_path":"/x/crates/core/Cargo.toml","target":{"name":"ottla_core"},"profile":{"test":true},"executable":"/x/target/debug/deps/ottla_core-1"}
{"reason":"compiler-artifact","package_id":"path+file:///x/xtask#0.1.0","manifest_path":"/x/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":true},"executable":"/x/target/debug/deps/xtask-2"}
{"reason":"compiler-artifact","package_id":"path+file:///x/crates/scenarios#ottla-scenarios@0.1.0","manifest_path":"/x/crates/scenarios/Cargo.toml","target":{"name":"scenarios"},"profile":{"test":true},"executable":"/x/target/debug/deps/scenarios-3"}
{"reason":"compiler-artifact","package_id":"path+file:///x/crates/cli#ottla-cli@0.1.0","manifest_path":"/x/crates/cli/Cargo.toml","target":{"name":"ottla"},"profile":{"test":false},"executable":"/x/target/debug/ottla"}
{"reason":"build-finished","success":true}
"#;
        let programs = parse(messages);
        let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["ottla-scenarios scenarios", "ottla-core ottla_core", "xtask xtask"]);
        assert_eq!(programs[1].folder, Path::new("/x/crates/core"));
        assert!(programs[0].uses_kafka() && !programs[1].uses_kafka());
    }
}
