//! `cargo xtask recorded`: checks whose result depends on a few files only, and that take minutes. `xtask/recorded.json` has the
//! checksum of the files that each has passed with; `cargo xtask test` repeats it if they differ.
//!
//! `--advisories` asks for known vulnerabilities of the dependencies, which depends on the day, too, so it is not recorded.

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    fs,
    hash::{Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use crate::{
    Result, install,
    shell::{self, cargo, root},
    test::Session,
};

/// Checks dependencies and AWS-LC, and records what was checked in xtask/recorded.json.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Check the dependencies for known vulnerabilities instead. The list is a repository on github.com.
    #[arg(long)]
    advisories: bool,
}

/// A check that passes or fails for the same files in the same way.
struct Check {
    name: &'static str,
    what: &'static str,
    /// The files and folders that it depends on.
    inputs: &'static [&'static str],
    run: fn() -> Result<()>,
}

const CHECKS: [Check; 3] = [
    Check {
        name: "deny",
        what: "cargo deny: licences, sources and banned crates of the dependencies",
        inputs: &["Cargo.lock", "deny.toml"],
        run: deny,
    },
    Check {
        name: "aws-lc-rs",
        what: "the tests of TLS with AWS-LC instead of ring",
        inputs: &["Cargo.lock", "crates/net/Cargo.toml", "crates/net/src/tls"],
        run: aws_lc,
    },
    Check {
        name: "features",
        what: "the tests of the features opentelemetry, serde and tracing",
        inputs: &[
            "Cargo.lock",
            "crates/client/Cargo.toml",
            "crates/client/src/logging",
            "crates/client/src/open_telemetry.rs",
            "crates/client/src/trace_context.rs",
            "crates/client/tests/logging.rs",
            "crates/client/tests/open_telemetry.rs",
            "crates/client/tests/tracing.rs",
            "crates/core/Cargo.toml",
            "crates/core/src/stats",
            "crates/core/tests/serde.rs",
        ],
        run: features,
    },
];

const FILE: &str = "xtask/recorded.json";

pub fn main(options: &Options) -> Result<ExitCode> {
    if options.advisories {
        cargo_deny(&["advisories"])?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut recorded = read()?;
    for check in &CHECKS {
        let sum = checksum(&root(), check.inputs)?;
        (check.run)()?;
        println!("passed: {}", check.what);
        recorded.insert(check.name.to_owned(), sum);
        fs::write(root().join(FILE), serde_json::to_string_pretty(&recorded)? + "\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Repeats the checks whose files have changed.
pub fn step(session: &Session) -> Result<()> {
    let recorded = read()?;
    for check in &CHECKS {
        if recorded.get(check.name) != Some(&checksum(&root(), check.inputs)?) {
            println!("    {} changed, so this runs now: {}", check.inputs.join(", "), check.what);
            let _slot = session.compiling();
            if let Err(error) = (check.run)() {
                session.fail(&format!("{}: {error}", check.what));
                continue;
            }
        }
        session.pass(check.what);
    }
    Ok(())
}

fn read() -> Result<BTreeMap<String, String>> {
    Ok(serde_json::from_str(&fs::read_to_string(root().join(FILE)).unwrap_or_else(|_| "{}".to_owned()))?)
}

/// Returns a checksum of the names and contents of files.
fn checksum(root: &Path, inputs: &[&str]) -> Result<String> {
    let mut files: Vec<PathBuf> = inputs.iter().map(|input| root.join(input)).collect();
    let mut hasher = DefaultHasher::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let mut inside: Vec<PathBuf> = fs::read_dir(&path)?.flatten().map(|entry| entry.path()).collect();
            inside.sort();
            files.extend(inside);
            continue;
        }
        path.strip_prefix(root)?.hash(&mut hasher);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn deny() -> Result<()> {
    cargo_deny(&["bans", "licenses", "sources"])
}

fn cargo_deny(checks: &[&str]) -> Result<()> {
    let mut deny = Command::new(install::cargo_deny()?);
    // Called like a cargo subcommand.
    deny.args(["--workspace", "check", "--hide-inclusion-graph"]).args(checks).current_dir(root());
    succeed(&mut deny, 10)
}

fn aws_lc() -> Result<()> {
    succeed(cargo().args(["test", "--package", "ottla-net", "--lib", "--features", "aws-lc-rs", "tls::"]), 20)
}

fn features() -> Result<()> {
    let test = |package: &str, feature: &str, tests: &[&str]| {
        succeed(cargo().args(["test", "--package", package, "--features", feature]).args(tests), 20)
    };
    test("ottla-core", "serde", &["--test", "serde"])?;
    // `logging` has no subscriber of `tracing`, so its lines go to `log`.
    let of_tracing = ["--test", "tracing", "--test", "open_telemetry", "--test", "logging"];
    test("ottla", "opentelemetry,tracing", &of_tracing)?;
    test("ottla", "opentelemetry,tracing", &["--lib", "open_telemetry::"])
}

fn succeed(command: &mut Command, minutes: u64) -> Result<()> {
    let done = shell::run(command, Duration::from_secs(minutes * 60), true)?;
    if done.success { Ok(()) } else { Err(done.ending.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_depends_on_names_and_contents() {
        let folder = std::env::temp_dir().join(format!("ottla-recorded-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).unwrap();
        let sum = |name: &str, text: &str| {
            let _ = fs::remove_dir_all(folder.join("a"));
            fs::create_dir_all(folder.join("a")).unwrap();
            fs::write(folder.join("a").join(name), text).unwrap();
            checksum(&folder, &["a"]).unwrap()
        };
        let sums = [sum("one", "1"), sum("one", "2"), sum("two", "1"), sum("one", "1")];
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(sums[0], sums[3]);
        assert!(sums[0] != sums[1] && sums[0] != sums[2]);
    }

    #[test]
    fn inputs_of_all_checks_exist() {
        for check in &CHECKS {
            assert!(checksum(&root(), check.inputs).is_ok(), "{}", check.name);
        }
    }
}
