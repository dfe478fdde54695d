//! The suites: where their sources come from, and how they are run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Setting, output::Results};
use crate::{
    Result,
    shell::{self, cargo, installed, root},
};

/// A suite.
pub struct Suite {
    pub name: &'static str,
    pub what: &'static str,
    /// Fetches, builds and runs it. Error: the reason why it was not checked.
    pub run: fn(&Setting) -> Result<Results>,
}

/// The suites that package registries have.
pub const SUITES: [Suite; 4] = [
    Suite {
        name: "confluent-kafka-go",
        what: "the Go client's unit tests, and those that need a broker are skipped by themselves",
        run: go,
    },
    Suite { name: "rdkafka", what: "the Rust crate's unit tests, and its tests with a broker", run: rust },
    Suite { name: "node-rdkafka", what: "the unit tests of Blizzard's Node client", run: node },
    Suite { name: "node-rdkafka-e2e", what: "the same client's tests with a broker", run: node_with_broker },
];

/// The version of node-rdkafka.
const NODE: &str = "3.6.1";

fn go(setting: &Setting) -> Result<Results> {
    let program = root().join("tests/interop/confluent-kafka-go");
    needs("go")?;
    let module = "github.com/confluentinc/confluent-kafka-go/v2";
    setting.prepare(Command::new("go").args(["mod", "download"]).current_dir(&program))?;
    let folder =
        Command::new("go").args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(&program).output()?;
    let source = String::from_utf8_lossy(&folder.stdout).trim().to_owned();
    let copy = copied(Path::new(&source), &setting.folder)?;
    let mut test = setting.command("go", &copy);
    test.args(["test", "-tags", "dynamic", "-v", "-timeout", "600s", "./kafka"]);
    let output = setting.test(&mut test, 40)?;
    some(Results::of_go(&output), &output)
}

fn rust(setting: &Setting) -> Result<Results> {
    let manifest = root().join("tests/interop/rdkafka-crate/Cargo.toml");
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let metadata: serde_json::Value = serde_json::from_str(&shell::read(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let package = packages.iter().find(|package| package["name"] == "rdkafka");
    let source =
        package.and_then(|package| package["manifest_path"].as_str()).ok_or("cargo knows no rdkafka")?;
    let copy = copied(Path::new(source).parent().ok_or("no folder")?, &setting.folder)?;
    let mut test = setting.command("cargo", &copy);
    test.args(["test", "--no-default-features", "--features", "dynamic-linking,tokio", "--no-fail-fast"])
        .args(["--lib", "--tests"])
        .env("CARGO_TARGET_DIR", setting.folder.join("target"));
    let output = setting.test(&mut test, 60)?;
    some(Results::of_cargo(&output), &output)
}

fn node(setting: &Setting) -> Result<Results> {
    let folder = node_client(setting)?;
    mocha(setting, &folder, "exports", &["test/**/*.js"])
}

fn node_with_broker(setting: &Setting) -> Result<Results> {
    let folder = node_client(setting)?;
    let mut scripts: Vec<String> = fs::read_dir(folder.join("e2e"))?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".spec.js"))
        .map(|name| format!("e2e/{name}"))
        .collect();
    scripts.sort();
    mocha(setting, &folder, "bdd", &scripts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Builds the client once for both of its suites, and returns its folder.
fn node_client(setting: &Setting) -> Result<PathBuf> {
    needs("npm")?;
    let base = setting.folder.with_file_name("node-rdkafka");
    fs::create_dir_all(&base)?;
    let folder = base.join("package");
    if folder.join("build/Release/node-librdkafka.node").is_file() {
        return Ok(folder);
    }
    let package = format!("node-rdkafka@{NODE}");
    setting.prepare(setting.command("npm", &base).args(["pack", "--silent", &package]))?;
    setting.prepare(setting.command("tar", &base).args(["xzf", &format!("node-rdkafka-{NODE}.tgz")]))?;
    let mut install = setting.command("npm", &folder);
    install.args(["install", "--no-audit", "--no-fund"]).env("BUILD_LIBRDKAFKA", "0");
    // Headers come from the system: registries have none.
    if Path::new("/usr/include/node/node.h").is_file() {
        install.env("npm_config_nodedir", "/usr");
    }
    setting.prepare(&mut install)?;
    Ok(folder)
}

/// Runs scripts in one of the two forms that mocha has for tests.
fn mocha(setting: &Setting, folder: &Path, form: &str, scripts: &[&str]) -> Result<Results> {
    let mut mocha = setting.command("node_modules/.bin/mocha", folder);
    mocha.args(["--exit", "--timeout", "120000", "--ui", form, "--reporter", "tap"]).args(scripts);
    let output = setting.test(&mut mocha, 30)?;
    some(Results::of_tap(&output), &output)
}

fn needs(program: &str) -> Result<()> {
    if installed(program) { Ok(()) } else { Err(format!("{program} is not installed").into()) }
}

/// Returns the results; an error with the last lines of the output if no test ran.
fn some(results: Results, output: &str) -> Result<Results> {
    if results != Results::default() {
        return Ok(results);
    }
    let last: Vec<&str> = output.lines().rev().take(8).collect();
    Err(format!("no test ran:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n")).into())
}

/// Copies a folder that may be read-only.
fn copied(source: &Path, to: &Path) -> Result<PathBuf> {
    let copy = to.join("source");
    let _ = fs::remove_dir_all(&copy);
    shell::read(Command::new("cp").arg("-r").arg(source).arg(&copy))?;
    shell::read(Command::new("chmod").args(["-R", "u+w"]).arg(&copy))?;
    Ok(copy)
}
