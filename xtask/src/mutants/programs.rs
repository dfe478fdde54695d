//! The programs that notice mistakes: the simulator, the loom models and the scripted tests of the copy, each built once for
//! all mistakes.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    copy::{Copy, SIMULATOR, WITH_MODELS},
    patch::{Mutant, Runner},
};
use crate::{
    Result,
    shell::{self, Finished, patient_cargo},
    test::{self, TestProgram},
    threads,
};

/// The time limit of a build.
const DEADLINE: Duration = Duration::from_secs(1800);

/// The optimization of the crates of the copy in the simulator. The others are built as for the tests.
const OPTIMIZED: [(&str, u8); 4] =
    [("ottla-protocol", 1), ("ottla-core", 1), ("ottla-embedded-broker", 1), ("ottla-sim", 1)];

/// The same for the models. loom runs thousands of orders of each.
const OPTIMIZED_WITH_LOOM: [(&str, u8); 6] = [
    ("ottla-protocol", 1),
    ("ottla-core", 0),
    ("ottla-net", 0),
    ("loom", 2),
    ("generator", 2),
    ("tracing-core", 2),
];

/// The programs.
#[derive(Debug, Default)]
pub struct Programs {
    /// The simulator.
    pub simulator: Option<PathBuf>,
    /// Its test programs.
    pub tests: Vec<TestProgram>,
    /// The program with the models of each package.
    pub models: BTreeMap<String, PathBuf>,
    /// The program with the unit tests of each package.
    pub scripted: BTreeMap<String, PathBuf>,
    /// The program whose tests are the C programs.
    pub c_programs: Option<PathBuf>,
    /// Why these mistakes are in none of them.
    pub refused: BTreeMap<u32, String>,
}

/// The programs that are needed.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    pub simulator: bool,
    pub tests: bool,
    pub models: bool,
    pub scripted: bool,
    pub c_programs: bool,
}

impl Needed {
    const NOTHING: Self =
        Self { simulator: false, tests: false, models: false, scripted: false, c_programs: false };
    pub const MODELS: Self = Self { models: true, ..Self::NOTHING };
    pub const TESTS: Self = Self { tests: true, ..Self::NOTHING };

    /// Returns what these mistakes need.
    pub fn of(mutants: &[Mutant]) -> Self {
        let any = |is_run: fn(&Runner) -> bool| mutants.iter().any(|mutant| is_run(&mutant.run));
        Self {
            simulator: any(|run| matches!(run, Runner::Simulator { .. })),
            tests: false,
            models: any(|run| matches!(run, Runner::Loom { .. })),
            scripted: any(|run| matches!(run, Runner::Scripted { .. })),
            c_programs: any(|run| matches!(run, Runner::Program)),
        }
    }
}

impl Programs {
    /// Builds them with all mistakes. Those that do not compile are left out.
    pub fn build(all: &[Mutant], needed: Needed) -> Result<Self> {
        let mut broken = BTreeMap::new();
        loop {
            let copy = Copy::write(all, &broken)?;
            match Self::of(&copy, needed)? {
                Ok(programs) => return Ok(Self { refused: copy.refused, ..programs }),
                Err(failed) => {
                    let blamed = copy.blamed(&failed.output);
                    if blamed.is_empty() {
                        return Err(
                            format!("the copy does not compile: {}", first_error(&failed.output)).into()
                        );
                    }
                    broken.extend(blamed);
                }
            }
        }
    }

    fn of(copy: &Copy, needed: Needed) -> Result<std::result::Result<Self, Finished>> {
        let mut programs = Self::default();
        if needed.simulator {
            let arguments = ["build", "--package", "ottla-sim", "--bin", SIMULATOR];
            let built = build("the simulator", &copy.folder, &arguments, &OPTIMIZED)?;
            if !built.success {
                return Ok(Err(built));
            }
            programs.simulator = executables(&built.output).pop().map(|(_, program)| program);
        }
        if needed.tests {
            let arguments = ["test", "--no-run", "--package", "ottla-sim", "--lib", "--tests"];
            let built = build("the simulator's tests", &copy.folder, &arguments, &OPTIMIZED)?;
            if !built.success {
                return Ok(Err(built));
            }
            programs.tests = test::programs_of(&built.output);
        }
        if needed.models {
            let arguments = [
                "test",
                "--no-run",
                "--lib",
                "--package",
                "ottla-core",
                "--package",
                "ottla-net",
                "--features",
                "ottla-core/ottla_loom,ottla-net/ottla_loom",
            ];
            let built = build("the models", &copy.folder, &arguments, &OPTIMIZED_WITH_LOOM)?;
            if !built.success {
                return Ok(Err(built));
            }
            programs.models = executables(&built.output).into_iter().collect();
        }
        if needed.scripted {
            let arguments = ["test", "--no-run", "--lib", "--package", "ottla-core"];
            let built = build("the scripted tests", &copy.folder, &arguments, &[])?;
            if !built.success {
                return Ok(Err(built));
            }
            programs.scripted = executables(&built.output).into_iter().collect();
        }
        if needed.c_programs {
            let arguments = ["test", "--no-run", "--package", "ottla-capi", "--test", "abi"];
            let built = build("the C library", &copy.folder, &arguments, &[])?;
            if !built.success {
                return Ok(Err(built));
            }
            programs.c_programs = executables(&built.output).pop().map(|(_, program)| program);
            remove_folders_of_c_programs()?;
        }
        Ok(Ok(programs))
    }

    /// Returns the commands that run all models without a mistake.
    pub fn without_mistakes(&self) -> Result<Vec<Command>> {
        if self.models.len() != WITH_MODELS.len() {
            return Err(format!("cargo built {} programs with models", self.models.len()).into());
        }
        let command = |program: &PathBuf| {
            let mut command = Command::new(program);
            command.arg("models::");
            command
        };
        Ok(self.models.values().map(command).collect())
    }
}

/// Removes what the C programs of earlier runs left: each process of theirs has a folder of its own.
fn remove_folders_of_c_programs() -> Result<()> {
    let Ok(entries) = fs::read_dir(threads::target("tmp")?) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("programs-") {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn build(what: &str, folder: &Path, arguments: &[&str], optimized: &[(&str, u8)]) -> Result<Finished> {
    let mut build = patient_cargo();
    build.current_dir(folder).env("CARGO_TARGET_DIR", threads::target("")?).args(arguments);
    build.args(["--message-format", "json-render-diagnostics"]);
    for (package, level) in optimized {
        build.args(["--config", &format!("profile.dev.package.{package}.opt-level={level}")]);
    }
    let began = Instant::now();
    let done = shell::run(&mut build, DEADLINE, false)?;
    let (wall, cpu) = (began.elapsed().as_secs(), done.cpu.as_secs());
    println!("built {what} with all mistakes in {wall} s, {cpu} s of CPU: {}", done.ending);
    Ok(done)
}

/// Returns the packages and programs that cargo's messages name.
fn executables(output: &str) -> Vec<(String, PathBuf)> {
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let named = messages.filter_map(|message| {
        let program = message["executable"].as_str()?;
        // `path+file:///folder/crates/core#ottla-core@0.1.0`
        let package = message["package_id"].as_str()?.rsplit_once('#')?.1;
        let name = package.split('@').next().unwrap_or(package);
        Some((name.to_owned(), PathBuf::from(program)))
    });
    named.collect()
}

fn first_error(output: &str) -> String {
    let mut errors = output.lines().skip_while(|line| !line.starts_with("error"));
    errors.by_ref().take(3).collect::<Vec<_>>().join(" ")
}
