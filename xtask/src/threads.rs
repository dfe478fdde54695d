//! `cargo xtask threads` and `cargo xtask sanitize`: run the loom models of the code that threads share, and the tests
//! under sanitizers and valgrind. `docs/internals/threads.md` describes them.

use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

use serde_json::Value;

use crate::{
    Result, abi, library,
    shell::{self, cargo, root},
};

/// Runs the models of the places where threads meet under loom, in every order.
///
/// `cargo xtask mutants --only loom` runs each model on code with a mistake that it must notice. `cargo xtask test` runs the
/// models in the same programs, without a mistake.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Orders with at most this number of preemptions (`cargo xtask test` tries 2), or `all`, which may take hours.
    #[arg(long, default_value = "4", value_name = "N")]
    preemptions: String,
    /// The models whose names contain this text.
    #[arg(default_value = "models::")]
    test: String,
}

/// Runs tests with TCP and real threads under a sanitizer or valgrind.
#[derive(clap::Args, Debug)]
pub struct SanitizeOptions {
    kind: Sanitizer,
    /// The tests whose names contain this text; with `programs` a program, such as group_member.
    test: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sanitizer {
    /// ThreadSanitizer, with a nightly toolchain and its rust-src, because the standard library is built along.
    Thread,
    /// AddressSanitizer, likewise.
    Address,
    /// The tests of the driver and the client under valgrind.
    Valgrind,
    /// The test programs in C (crates/capi/tests/c), first with AddressSanitizer and then under valgrind.
    Programs,
}

/// The scripts that run the test programs in C.
const PROGRAMS: [&str; 2] =
    ["tests/abi/memory/programs_with_address_sanitizer.sh", "tests/abi/memory/programs_under_valgrind.sh"];

/// The crates with models.
const PACKAGES: [&str; 6] = ["--package", "ottla-core", "--package", "ottla-net", "--package", "ottla"];
const HOURS: Duration = Duration::from_secs(12 * 3600);

pub fn threads(options: &Options) -> Result<ExitCode> {
    let limit = match options.preemptions.as_str() {
        // Higher than the number of branches of any model.
        "all" => 1000,
        number => number.parse::<usize>()?,
    };
    finish(models(&options.test)?.env("LOOM_MAX_PREEMPTIONS", limit.to_string()))
}

/// Returns the command that runs the models whose names contain this text.
fn models(test: &str) -> Result<Command> {
    let mut command = cargo();
    command.args([
        "test",
        "--package",
        "ottla-core",
        "--package",
        "ottla-net",
        "--lib",
        "--no-fail-fast",
        "--",
    ]);
    command.arg(test);
    with_loom(&mut command)?;
    Ok(command)
}

fn with_loom(command: &mut Command) -> Result<()> {
    // These flags rebuild everything, so a separate folder keeps the usual build.
    command.env("RUSTFLAGS", "--cfg ottla_loom").env("CARGO_TARGET_DIR", target("loom")?);
    Ok(())
}

pub fn sanitize(options: &SanitizeOptions) -> Result<ExitCode> {
    let test = options.test.as_ref();
    match options.kind {
        Sanitizer::Thread => with_sanitizer("thread", test),
        Sanitizer::Address => with_sanitizer("address", test),
        Sanitizer::Valgrind => with_valgrind(test),
        Sanitizer::Programs => programs(test),
    }
}

fn with_sanitizer(kind: &str, test: Option<&String>) -> Result<ExitCode> {
    let sysroot =
        shell::read(Command::new("rustc").args(["+nightly", "--print", "sysroot"])).unwrap_or_default();
    let source = PathBuf::from(sysroot.trim()).join("lib/rustlib/src/rust/library/std");
    if !source.is_dir() {
        let how = "rustup toolchain install nightly --component rust-src";
        return Err(format!("a nightly toolchain with its sources is needed: {how}").into());
    }
    let version = shell::read(Command::new("rustc").args(["+nightly", "-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    // rustup's proxy, because the cargo that runs this program belongs to another toolchain.
    let mut command = Command::new("cargo");
    command.current_dir(root()).env_remove("RUSTC").env_remove("CARGO");
    command.args(["+nightly", "test", "-Zbuild-std", "--target", host, "--lib", "--tests", "--no-fail-fast"]);
    command.args(PACKAGES).arg("--").args(test);
    command.env("RUSTFLAGS", format!("-Zsanitizer={kind}"));
    command.env("CARGO_TARGET_DIR", target(&format!("sanitize-{kind}"))?);
    finish(&mut command)
}

/// Runs the test programs in C, or one of them, with AddressSanitizer and under valgrind.
fn programs(only: Option<&String>) -> Result<ExitCode> {
    let source = only.map(|name| root().join("crates/capi/tests/c").join(name).with_extension("c"));
    if let Some(source) = source.filter(|source| !source.is_file()) {
        return Err(format!("there is no program {}", source.display()).into());
    }
    let (prefix, ottla) = (abi::installed("dev")?, library::ottla("dev")?);
    let mut has_failed = false;
    for script in PROGRAMS {
        println!("==> {script}");
        let mut command = Command::new("bash");
        command.arg(root().join(script)).env("OTTLA", &ottla).env("OTTLA_PREFIX", &prefix);
        command.env("OTTLA_PROGRAM", only.map_or("", String::as_str));
        has_failed |= !shell::run(&mut command, HOURS, true)?.success;
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn with_valgrind(test: Option<&String>) -> Result<ExitCode> {
    if !shell::installed("valgrind") {
        return Err("valgrind is not installed (on Debian: apt-get install valgrind)".into());
    }
    let mut build = cargo();
    build.args(["test", "--package", "ottla-net", "--package", "ottla", "--lib", "--tests", "--no-run"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let messages = shell::read(&mut build)?;
    let programs: Vec<String> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(|message| message["executable"].as_str().map(str::to_owned))
        .collect();
    if programs.is_empty() {
        return Err("no test program was built".into());
    }
    let mut failed = 0;
    for program in &programs {
        println!("==> {program}");
        let mut command = Command::new("valgrind");
        command.args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ]);
        // Valgrind runs one thread at a time. Without fair scheduling, a thread that waits for another may get all of
        // the time.
        command.args(["--fair-sched=yes", program, "--test-threads=1"]).args(test).current_dir(root());
        let done = shell::run(&mut command, HOURS, true)?;
        failed += usize::from(!done.success);
    }
    println!("{} of {} test programs without a finding", programs.len() - failed, programs.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn finish(command: &mut Command) -> Result<ExitCode> {
    let done = shell::run(command, HOURS, true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A separate folder, so that the usual build is kept.
pub fn target(name: &str) -> Result<PathBuf> {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(folder.join(name))
}
