//! The steps of `cargo xtask test`, and those that are a few lines long.

use std::{fs, path::PathBuf, process::Command};

use super::{
    programs::{self, BENCH, FUZZ},
    session::Session,
    target_folder,
};
use crate::{
    Result, abi, codegen, generate, install, instructions, kafka, library, mutants, readme, recorded,
    shell::{self, cargo, patient_cargo, root},
    tidy,
};

/// A row of [`STEPS`].
pub struct Step {
    /// The name of the step for `--only`.
    pub name: &'static str,
    pub what: &'static str,
    /// The steps that have to end before this one begins, if they run at all.
    pub after: &'static [&'static str],
    /// Whether `--quick` runs it.
    pub is_quick: bool,
    /// Counts passed and failed tests; an error counts as a failure.
    pub run: fn(&Session) -> Result<()>,
}

/// All steps. Of two steps that wait for the compiler, the one that stands first here gets it.
pub const STEPS: [Step; 20] = [
    Step { name: "format", what: "rustfmt changes nothing", after: &[], is_quick: true, run: format },
    Step {
        name: "tidy",
        what: "rules that the compiler does not check: dependencies, banned calls, links, markers",
        after: &[],
        is_quick: true,
        run: tidy,
    },
    Step {
        name: "codegen",
        what: "the generated protocol matches schema/",
        after: &[],
        is_quick: true,
        run: generated,
    },
    Step {
        name: "build",
        what: "all crates, programs and tests compile",
        after: &[],
        is_quick: true,
        run: programs::build,
    },
    Step {
        name: "test",
        what: "unit, golden and scenario tests of all crates; scenarios also on Apache Kafka",
        after: &["build"],
        is_quick: true,
        run: programs::run,
    },
    Step {
        name: "abi",
        what: "tests/abi: the installed C library, compared with Debian's original and librdkafka 2.16.0",
        after: &["build"],
        is_quick: false,
        run: abi::scripts,
    },
    Step {
        name: "generated",
        what: "programs made from seeds do the same with the C library and librdkafka 2.16.0",
        after: &["build"],
        is_quick: false,
        run: generate::step,
    },
    Step {
        name: "release",
        what: "the program and the C library compile as a release",
        after: &[],
        is_quick: false,
        run: release,
    },
    Step {
        name: "memory",
        what: "tests/abi/memory: the programs in C under valgrind and with AddressSanitizer",
        after: &["release"],
        is_quick: false,
        run: abi::memory,
    },
    Step {
        name: "readme",
        what: "the commands of README.md and of the page about the command line succeed",
        after: &["release"],
        is_quick: false,
        run: readme_commands,
    },
    Step {
        name: "interop",
        what: "tests/interop/*.sh: other clients and Ottla with each other's brokers and records",
        after: &["build", "release"],
        is_quick: false,
        run: interop,
    },
    Step {
        name: "real",
        what: "tests/kafka/*.sh: Ottla with brokers of Apache Kafka of its own",
        after: &["build", "release"],
        is_quick: false,
        run: real_kafka,
    },
    Step {
        name: "instructions",
        what: "the instructions of a message and of a batch are at most 3 % more than bench/instructions.json says",
        after: &["release"],
        is_quick: false,
        run: instructions::step,
    },
    // This one and the next two use the same copy of the code, in turn.
    Step {
        name: "threads",
        what: "loom models of the code that threads share",
        after: &["build"],
        is_quick: false,
        run: models,
    },
    Step {
        name: "sim",
        what: "the simulator's tests, optimized",
        after: &["build", "threads"],
        is_quick: false,
        run: simulator,
    },
    Step {
        name: "mutants",
        what: "deliberate mistakes in a copy of the code, which the simulator and loom must notice",
        after: &["build", "threads", "sim"],
        is_quick: false,
        run: mistakes,
    },
    Step {
        name: "clippy",
        what: "clippy with warnings denied",
        after: &["build"],
        is_quick: true,
        run: clippy,
    },
    Step {
        name: "docs",
        what: "rustdoc has no warning, and its examples run",
        after: &["build", "clippy"],
        is_quick: false,
        run: documents,
    },
    Step {
        name: "recorded",
        what: "dependencies and AWS-LC, if their sources changed since the last check",
        after: &["build"],
        is_quick: false,
        run: recorded::step,
    },
    Step {
        name: "killed",
        what: "tests/kafka/killed/*.sh: Ottla with brokers of Apache Kafka that are killed",
        after: &["test", "abi", "interop", "real", "release"],
        is_quick: false,
        run: killed_kafka,
    },
];

/// What `cargo clippy -- -D warnings` passes to its compiler.
const CLIPPY_ARGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The steps of `cargo xtask lint`.
pub const LINT: [&str; 3] = ["format", "tidy", "clippy"];

fn format(session: &Session) -> Result<()> {
    session.one("rustfmt", cargo().args(["fmt", "--all", "--check"]), 5)?;
    session.one(
        "rustfmt of bench/",
        cargo().args(["fmt", "--all", "--check", "--manifest-path", BENCH]),
        5,
    )?;
    session.one("rustfmt of fuzz/", cargo().args(["fmt", "--all", "--check", "--manifest-path", FUZZ]), 5)
}

fn tidy(session: &Session) -> Result<()> {
    for check in tidy::CHECKS {
        let found = (check.run)(&root())?;
        found.iter().for_each(|finding| println!("      {finding}"));
        if found.is_empty() {
            session.pass(check.what);
        } else {
            session.fail(&format!("{}: {} places, the first is {}", check.what, found.len(), found[0]));
        }
    }
    Ok(())
}

fn generated(session: &Session) -> Result<()> {
    codegen::run(true)?;
    session.pass("the generated code is fresh");
    Ok(())
}

fn clippy(session: &Session) -> Result<()> {
    let mut clippy = patient_cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    let slot = session.compiling();
    session.compile_in(&slot, "clippy", &mut clippy)?;
    session.pass("clippy has no warning");
    // The rest of the workspace turns all of them on; aws-lc-rs, which compiles for minutes, is checked by the step `recorded`.
    for features in ["", "log", "capi", "opentelemetry"] {
        let mut clippy = patient_cargo();
        clippy.args(["clippy", "--package", "ottla", "--no-default-features", "--features", features]);
        let what = format!("clippy of the client with the features `{features}`");
        session.compile_in(&slot, &what, clippy.args(["--", "-D", "warnings"]))?;
        session.pass(&what);
    }
    Ok(())
}

fn release(session: &Session) -> Result<()> {
    // Not with a low priority: six steps wait for it.
    let mut build = library::build_of("ottla-capi", "release");
    // Held until the library is installed: others would compile for minutes in between.
    let slot = session.compiling();
    session.compile_in(&slot, "cargo build --release", &mut build)?;
    abi::installed("release")?;
    session.pass("the library is built as a release and installed under a prefix");
    Ok(())
}

fn models(session: &Session) -> Result<()> {
    let slot = session.compiling();
    let mut programs = mutants::models_in_ci()?;
    drop(slot);
    programs.iter_mut().try_for_each(|program| session.tests("models", program))
}

fn simulator(session: &Session) -> Result<()> {
    let slot = session.compiling();
    let programs = mutants::tests_in_ci()?;
    drop(slot);
    programs::compute(session, &programs);
    Ok(())
}

fn mistakes(session: &Session) -> Result<()> {
    let slot = session.compiling();
    let (tried, failures) = mutants::try_in_ci(|| drop(slot))?;
    for _ in failures.len()..tried {
        session.pass("a mistake is noticed");
    }
    failures.iter().for_each(|failure| session.fail(failure));
    Ok(())
}

fn documents(session: &Session) -> Result<()> {
    let mut doc = patient_cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--document-private-items"])
        .env("RUSTDOCFLAGS", "-D warnings");
    as_clippy(&mut doc)?;
    session.compile("rustdoc", &mut doc)?;
    session.pass("rustdoc has no warning");
    programs::documentation(session)
}

/// Lets cargo use the crates that `cargo clippy` has checked, instead of checking them once more.
fn as_clippy(command: &mut Command) -> Result<()> {
    let sysroot = shell::read(Command::new("rustc").args(["--print", "sysroot"]))?;
    let driver = PathBuf::from(sysroot.trim()).join("bin/clippy-driver");
    if driver.is_file() {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", CLIPPY_ARGS);
    }
    Ok(())
}

fn readme_commands(session: &Session) -> Result<()> {
    let commands = readme::commands(&fs::read_to_string(root().join("README.md"))?);
    if commands.is_empty() {
        return Err("README.md has no command in a ```sh block".into());
    }
    session.side_by_side(&commands, |session, command| {
        if command == "cargo xtask test" {
            session.pass("cargo xtask test (it is what runs here)");
            return Ok(());
        }
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", command]).current_dir(root());
        session.one(command, &mut shell, 30)
    });
    command_line_page(session)
}

/// Runs the commands of the page about the command line in one shell, with a free port instead of 9092.
fn command_line_page(session: &Session) -> Result<()> {
    let page = "docs/guide/start/command-line.md";
    let port = kafka::free_port()?.to_string();
    let commands = readme::commands(&fs::read_to_string(root().join(page))?).join("\n");
    let script = format!("trap 'kill $(jobs -p)' EXIT\n{}", commands.replace("9092", &port));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c", &script]);
    shell.env("PATH", format!("{}:{path}", target_folder()?.join("release").display()));
    session.one(&format!("the commands of {page}"), &mut shell, 5)
}

/// Returns the environment of scripts that use Apache Kafka or its clients.
fn with_kafka() -> Result<[(&'static str, PathBuf); 4]> {
    let folder = target_folder()?;
    kafka::classes::prepare()?;
    Ok([
        ("OTTLA", folder.join("release/ottla")),
        ("OTTLA_PREFIX", folder.join("installed/release")),
        ("OTTLA_KAFKA_JARS", kafka::fetch()?),
        ("OTTLA_JAVA_CLASSES", kafka::classes::archive()),
    ])
}

fn interop(session: &Session) -> Result<()> {
    install::debian("kcat", "kcat")?;
    session.scripts("tests/interop", &with_kafka()?)
}

fn real_kafka(session: &Session) -> Result<()> {
    session.scripts("tests/kafka", &with_kafka()?)
}

/// One after the other, because they kill brokers that others would use. Nobody needs the brokers afterwards.
fn killed_kafka(session: &Session) -> Result<()> {
    session.scripts_in_turn("tests/kafka/killed", &with_kafka()?)?;
    session.end_kafka()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_name() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..at].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }

    #[test]
    fn steps_wait_for_steps_that_exist() {
        let exists = |name: &&str| STEPS.iter().any(|step| step.name == *name);
        assert!(LINT.iter().all(exists));
        for step in &STEPS {
            assert!(step.after.iter().all(exists), "{}", step.name);
            assert!(!step.after.contains(&step.name), "{} waits for itself", step.name);
        }
    }
}
