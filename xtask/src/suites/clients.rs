//! The suites: where their sources come from, and how they are run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Setting, output::Results};
use crate::{
    Result, library,
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
pub const SUITES: [Suite; 7] = [
    Suite {
        name: "confluent-kafka-go",
        what: "the Go client's unit tests, and those that need a broker are skipped by themselves",
        run: go_dynamic,
    },
    Suite {
        name: "confluent-kafka-go-static",
        what: "the same with Ottla's static library in place of the module's own",
        run: go_static,
    },
    Suite { name: "rdkafka", what: "the Rust crate's unit tests, and its tests with a broker", run: rust },
    Suite { name: "node-rdkafka", what: "the unit tests of Blizzard's Node client", run: node },
    Suite { name: "node-rdkafka-e2e", what: "the same client's tests with a broker", run: node_with_broker },
    Suite {
        name: "kafka-javascript",
        what: "Confluent's Node client, which brings no tests: a program that produces and consumes",
        run: kafka_javascript,
    },
    Suite {
        name: "schemas",
        what: "Confluent's Python serializers beside ottla-schema-registry, in both directions",
        run: schemas,
    },
];

/// The version of node-rdkafka.
const NODE: &str = "3.6.1";

/// The version of @confluentinc/kafka-javascript.
const KAFKA_JAVASCRIPT: &str = "1.10.1";

/// Each record is a test of the script.
fn schemas(setting: &Setting) -> Result<Results> {
    needs("python3")?;
    let mut script = setting.command("bash", &root());
    script.arg("tests/schemas/compare.sh").env("OTTLA", library::ottla("dev")?);
    let output = setting.test(&mut script, 30)?;
    let mut results = Results::default();
    let passed = output.lines().find_map(|line| line.strip_suffix(" passed, 0 failed"));
    match passed {
        Some(count) => results.passed.push(format!("{count} records")),
        None => results.failed.push(output.lines().last().unwrap_or("no output").to_owned()),
    }
    Ok(results)
}

fn go_dynamic(setting: &Setting) -> Result<Results> {
    let copy = go_module(setting)?;
    go_tests(setting, &copy, &["-tags", "dynamic"])
}

/// The module's archive has the name of a file of the module, which another file of the name replaces.
fn go_static(setting: &Setting) -> Result<Results> {
    let copy = go_module(setting)?;
    let archive = copy.join("kafka/librdkafka_vendor/librdkafka_glibc_linux_amd64.a");
    if !archive.is_file() {
        return Err(format!("{} is missing: is this x86-64?", archive.display()).into());
    }
    fs::copy(setting.prefix().join("lib/librdkafka.a"), archive)?;
    go_tests(setting, &copy, &[])
}

/// Returns a copy of the module.
fn go_module(setting: &Setting) -> Result<PathBuf> {
    let program = root().join("tests/interop/confluent-kafka-go");
    needs("go")?;
    let module = "github.com/confluentinc/confluent-kafka-go/v2";
    setting.prepare(Command::new("go").args(["mod", "download"]).current_dir(&program))?;
    let folder =
        Command::new("go").args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(&program).output()?;
    let source = String::from_utf8_lossy(&folder.stdout).trim().to_owned();
    copied(Path::new(&source), &setting.folder)
}

fn go_tests(setting: &Setting, copy: &Path, tags: &[&str]) -> Result<Results> {
    let mut test = setting.command("go", copy);
    test.arg("test").args(tags).args(["-v", "-timeout", "600s", "./kafka"]);
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

/// Builds the client on the installed library, and runs a program with it.
fn kafka_javascript(setting: &Setting) -> Result<Results> {
    needs("npm")?;
    let package = format!("@confluentinc/kafka-javascript@{KAFKA_JAVASCRIPT}");
    if !setting.folder.join("node_modules/@confluentinc/kafka-javascript/build/Release").is_dir() {
        fs::write(setting.folder.join("package.json"), "{\"name\": \"trial\", \"version\": \"1.0.0\"}")?;
        let mut install = setting.command("npm", &setting.folder);
        install.args(["install", "--no-audit", "--no-fund", "--build-from-source", &package]);
        install.env("BUILD_LIBRDKAFKA", "0").env("CKJS_LINKING", "dynamic");
        if Path::new("/usr/include/node/node.h").is_file() {
            install.env("npm_config_nodedir", "/usr");
        }
        setting.prepare(&mut install)?;
    }
    let program = root().join("tests/interop/kafka_javascript.js");
    fs::copy(program, setting.folder.join("trial.js"))?;
    let mut trial = setting.command("node", &setting.folder);
    let output = setting.test(trial.args(["trial.js", setting.servers()]), 5)?;
    some(Results::of_tap(&output), &output)
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
