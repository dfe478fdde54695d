//! `cargo xtask crates`: the crates that are published, in the order of their dependencies, and the checks before that.
//!
//! Without options it packs each crate and looks into the package. Nothing is uploaded: `cargo publish` without `--dry-run` is for
//! people.

use std::{collections::BTreeSet, path::Path, process::Command, process::ExitCode, time::Duration};

use crate::{
    Result, install,
    shell::{self, cargo, installed, root},
};

/// Packs the crates that are published, and looks into the packages. Nothing is uploaded.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Also run `cargo publish --dry-run --no-verify`, which asks crates.io about the dependencies.
    #[arg(long)]
    publish_dry_run: bool,
    /// Also check every combination of features, with cargo-hack.
    #[arg(long)]
    features: bool,
    /// Also compare the public interface with that of this commit, with cargo-semver-checks.
    #[arg(long, value_name = "COMMIT")]
    semver: Option<String>,
    /// Also check with the minimum Rust version, which rustup must have.
    #[arg(long)]
    minimum_rust: bool,
}

/// The published crates: each comes after those that it uses. The names are free on crates.io, or ours.
pub const PUBLISHED: [&str; 8] = [
    "ottla-sorted",
    "ottla-p521",
    "ottla-schema-registry",
    "ottla-protocol",
    "ottla-core",
    "ottla-net",
    "ottla-embedded-broker",
    "ottla",
];

/// The crates whose interface is a promise to users.
const PROMISED: [&str; 3] = ["ottla", "ottla-embedded-broker", "ottla-schema-registry"];

/// The packages with features, and what cargo-hack is told: without cryptography there is no TLS; the client takes the default of
/// ottla-net.
const FEATURES: [(&str, &[&str]); 5] = [
    ("ottla-schema-registry", &["--depth", "2"]),
    ("ottla-core", &[]),
    ("ottla-net", &["--at-least-one-of", "ring,aws-lc-rs", "--exclude-features", "fips"]),
    ("ottla", &["--exclude-features", "fips"]),
    ("ottla-cli", &["--exclude-features", "aws-lc-rs,fips"]),
];

/// What each package contains.
const CONTENTS: [&str; 5] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];

const AN_HOUR: Duration = Duration::from_secs(3600);

pub fn main(options: &Options) -> Result<ExitCode> {
    let mut failed = check(&root())?;
    for name in PUBLISHED {
        let list = shell::read(cargo().args(["package", "--list", "--allow-dirty", "--package", name]))?;
        let missing: Vec<&str> =
            CONTENTS.into_iter().filter(|file| !list.lines().any(|line| line == *file)).collect();
        println!("{name}: {} files", list.lines().count());
        failed.extend(missing.iter().map(|file| format!("the package of {name} lacks {file}")));
    }
    if options.publish_dry_run {
        succeed(
            cargo().args(["publish", "--dry-run", "--no-verify", "--allow-dirty"]).args(packages(&PUBLISHED)),
            &mut failed,
        )?;
    }
    if options.features {
        check_features(&mut failed)?;
    }
    if let Some(commit) = &options.semver {
        check_semver(commit, &mut failed)?;
    }
    if options.minimum_rust {
        check_minimum_rust(&mut failed)?;
    }
    failed.iter().for_each(|what| println!("FAILED: {what}"));
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the arguments that select packages.
fn packages<'a>(names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    names.iter().flat_map(|name| ["--package", *name])
}

/// Checks the published crates with the minimum Rust version.
fn check_minimum_rust(failed: &mut Vec<String>) -> Result<()> {
    let version = env!("CARGO_PKG_RUST_VERSION");
    if !installed("rustup") {
        failed.push(format!("the minimum version, Rust {version}, was not checked: rustup is missing"));
        return Ok(());
    }
    let mut check = Command::new("rustup");
    check.args(["run", "--install", version, "cargo", "check", "--locked"]);
    check.args(packages(&PUBLISHED));
    check.env("CARGO_TARGET_DIR", root().join("target/minimum-rust")).current_dir(root());
    succeed(&mut check, failed)
}

/// Compares the public interface with that of a commit.
fn check_semver(commit: &str, failed: &mut Vec<String>) -> Result<()> {
    let program = match install::cargo_semver_checks() {
        Ok(program) => program,
        Err(error) => {
            failed.push(format!("the interface was not compared: cargo-semver-checks is missing: {error}"));
            return Ok(());
        }
    };
    let mut semver = Command::new(program);
    semver.args(["semver-checks", "--baseline-rev", commit]).current_dir(root());
    semver.args(packages(&PROMISED));
    succeed(&mut semver, failed)
}

/// Checks every combination of features that exclude each other nowhere; `fips` by itself, because its C code compiles for minutes.
fn check_features(failed: &mut Vec<String>) -> Result<()> {
    let program = match install::cargo_hack() {
        Ok(program) => program,
        Err(error) => {
            failed.push(format!("combinations of features were not checked: cargo-hack is missing: {error}"));
            return Ok(());
        }
    };
    for (package, others) in FEATURES {
        let mut check = Command::new(&program);
        check.args(["hack", "check", "--feature-powerset", "--package", package]).args(others);
        succeed(check.current_dir(root()), failed)?;
    }
    let missing: Vec<&str> = ["cmake", "go"].into_iter().filter(|program| !installed(program)).collect();
    if !missing.is_empty() {
        failed.push(format!("the feature fips was not checked: {} is missing", missing.join(" and ")));
        return Ok(());
    }
    succeed(cargo().args(["check", "--package", "ottla", "--features", "fips"]), failed)
}

fn succeed(command: &mut Command, failed: &mut Vec<String>) -> Result<()> {
    let done = shell::run(command, AN_HOUR, true)?;
    if !done.success {
        failed.push(format!("{command:?}: {}", done.ending));
    }
    Ok(())
}

/// Finds crates whose manifests are not ready: what crates.io shows, the order, and features that nobody explains.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let text = shell::read(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let mut found = Vec::new();
    let mut before = BTreeSet::new();
    for name in PUBLISHED {
        let package =
            packages.iter().find(|package| package["name"] == name).ok_or(format!("there is no {name}"))?;
        for field in ["description", "license", "repository", "readme", "rust_version"] {
            if package[field].is_null() {
                found.push(format!("{name} has no {field}"));
            }
        }
        for list in ["keywords", "categories"] {
            if !(1..=5).contains(&package[list].as_array().map_or(0, Vec::len)) {
                found.push(format!("{name} needs 1 to 5 {list}"));
            }
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            if used.starts_with("ottla") && !before.contains(used) {
                found.push(format!("{name} uses {used}, which is published later or not at all"));
            }
        }
        let manifest = package["manifest_path"].as_str().ok_or("no manifest")?;
        found.extend(unexplained(&std::fs::read_to_string(manifest)?).map(|feature| {
            format!(
                "{}: no comment explains the feature {feature}",
                manifest.trim_start_matches(&*root.to_string_lossy())
            )
        }));
        before.insert(name);
    }
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        // An empty list of registries: `publish = false`.
        let is_private = package["publish"].as_array().is_some_and(Vec::is_empty);
        if is_private == PUBLISHED.contains(&name) {
            found.push(format!("{name}: `publish` and the table PUBLISHED contradict each other"));
        }
    }
    Ok(found)
}

/// Returns the features without a comment above them. Features that follow each other share one.
fn unexplained(manifest: &str) -> impl Iterator<Item = &str> {
    let section = manifest.split_once("[features]\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n[").next().unwrap_or_default();
    let mut is_explained = false;
    section.lines().filter_map(move |line| {
        is_explained |= line.starts_with('#');
        let name = line.split_once(" = ")?.0;
        (!is_explained && name != "default").then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_without_a_comment_are_found() {
        let manifest =
            "[features]\ndefault = [\"a\"]\nb = []\n# What a does.\na = []\n\n[dependencies]\nc = 1\n";
        assert_eq!(unexplained(manifest).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn manifests_of_published_crates_are_complete() {
        assert_eq!(check(&root()).unwrap(), Vec::<String>::new());
    }
}
