//! `cargo xtask fuzz --coverage TARGET --minutes N`: a target of `fuzz/` under libFuzzer.
//!
//! ```text
//!   fuzz/corpus/NAME.bin ──► files ──► libFuzzer ──► more files ──► those that add coverage ──► fuzz/corpus/NAME.bin
//!                                          └── fuzz/findings/NAME/crash-...: what breaks a guarantee
//! ```
//!
//! The flags of the compiler are stable ones; the instrumented code is that of our crates and of the dependencies in Rust, and not
//! the codecs in C. `cargo test` repeats corpus and findings without libFuzzer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use super::packed;
use crate::{
    Result,
    shell::{self, patient, patient_cargo, root},
};

/// The targets, and their longest inputs.
pub const TARGETS: [(&str, u32); 8] = [
    ("messages", 2048),
    ("batches", 2048),
    ("credentials", 4096),
    ("configuration", 1024),
    ("oidc", 1024),
    ("sasl", 1024),
    ("telemetry", 1024),
    ("broker", 2048),
];

/// What instruments code for libFuzzer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// An input that takes longer is a finding, in seconds: the most expensive permitted key derivation takes ten.
const LONGEST: u32 = 30;

/// Prints the targets and their inputs.
pub fn list() -> Result<ExitCode> {
    for (name, _) in TARGETS {
        let inputs = packed::read(&root(), name)?;
        let bytes: usize = inputs.iter().map(Vec::len).sum();
        let findings = fs::read_dir(findings(name)).map_or(0, Iterator::count);
        println!("{name:16} {:5} inputs, {bytes:7} bytes, {findings} findings", inputs.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn findings(target: &str) -> PathBuf {
    root().join("fuzz/findings").join(target)
}

/// Runs a target, or all.
pub fn run(target: &str, time: Duration, seeds: Option<&Path>) -> Result<ExitCode> {
    let chosen: Vec<_> = TARGETS.into_iter().filter(|(name, _)| target == "all" || *name == target).collect();
    if chosen.is_empty() {
        let names = TARGETS.map(|(name, _)| name).join(", ");
        return Err(format!("there is no target {target}; the targets are {names}, or all").into());
    }
    let program = build()?;
    let mut failed = 0;
    for (name, longest) in chosen {
        let fuzzer = Fuzzer { program: &program, name, longest };
        failed += u32::from(!fuzzer.run(time, seeds)?);
    }
    println!("{failed} targets with findings");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the program with all targets. Build scripts and macros are not instrumented, because the platform is named.
fn build() -> Result<PathBuf> {
    let folder = root().join("target/fuzz");
    let version = shell::read(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let mut build = patient_cargo();
    build.args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    build.args(["--target", host]).arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS);
    // Settings of other builds.
    build.env_remove("CARGO_INCREMENTAL").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let done = shell::run(&mut build, Duration::from_secs(2 * 3600), true)?;
    if !done.success {
        return Err(format!("the targets can't be built: {}", done.ending).into());
    }
    Ok(folder.join(host).join("release/ottla-fuzz"))
}

struct Fuzzer<'a> {
    program: &'a Path,
    name: &'static str,
    longest: u32,
}

impl Fuzzer<'_> {
    /// Returns false if a guarantee was broken.
    fn run(&self, time: Duration, seeds: Option<&Path>) -> Result<bool> {
        let work = root().join("target/fuzz/work").join(self.name);
        let (inputs, kept) = (work.join("inputs"), work.join("kept"));
        for folder in [&inputs, &kept] {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder)?;
        }
        let mut known = packed::read(&root(), self.name)?;
        if let Some(seeds) = seeds {
            known.extend(packed::gather(&seeds.join(self.name))?);
        }
        packed::spread(&known, &inputs)?;
        fs::create_dir_all(findings(self.name))?;
        let is_kept = self.search(&inputs, time)?;
        self.fuzzer(&["-merge=1"], &[&kept, &inputs], time + Duration::from_secs(3600), false)?;
        let merged = packed::gather(&kept)?;
        let bytes: usize = merged.iter().map(Vec::len).sum();
        println!(
            "{}: {} inputs with {bytes} bytes are kept of {} before",
            self.name,
            merged.len(),
            known.len()
        );
        packed::write(&root(), self.name, merged)?;
        Ok(is_kept)
    }

    /// Looks for new inputs. Prints libFuzzer's counts.
    fn search(&self, inputs: &Path, time: Duration) -> Result<bool> {
        let seconds = format!("-max_total_time={}", time.as_secs().max(1));
        let arguments = ["-print_final_stats=1", "-reload=0", "-use_value_profile=1", &seconds];
        let done = self.fuzzer(&arguments, &[inputs], time + Duration::from_secs(600), false)?;
        let counts =
            |line: &&str| line.starts_with("stat::") || line.contains("DONE") || line.contains("INITED");
        done.output.lines().filter(counts).for_each(|line| println!("{}: {line}", self.name));
        if !done.success {
            println!("{}: a finding, {}", self.name, done.ending);
            let lines: Vec<&str> = done.output.lines().collect();
            lines[lines.len().saturating_sub(60)..].iter().for_each(|line| println!("{}: {line}", self.name));
        }
        // Empty folders are not in the repository.
        let _ = fs::remove_dir(findings(self.name));
        Ok(done.success)
    }

    fn fuzzer(
        &self,
        arguments: &[&str],
        folders: &[&Path],
        deadline: Duration,
        shows: bool,
    ) -> Result<shell::Finished> {
        let mut fuzzer = patient(self.program);
        fuzzer.current_dir(root()).env("OTTLA_FUZZ_TARGET", self.name).args(arguments).args(folders);
        fuzzer.arg(format!("-max_len={}", self.longest)).arg(format!("-timeout={LONGEST}"));
        fuzzer.args(["-rss_limit_mb=4096", "-verbosity=1"]);
        fuzzer.arg(format!("-artifact_prefix={}/", findings(self.name).display()));
        let dictionary = root().join("fuzz/dictionaries").join(self.name).with_extension("dict");
        if dictionary.is_file() {
            fuzzer.arg(format!("-dict={}", dictionary.display()));
        }
        shell::run(&mut fuzzer, deadline, shows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_fuzz_crate() {
        let read = |file: &str| fs::read_to_string(root().join("fuzz/src").join(file)).unwrap();
        let source = read("targets/mod.rs");
        let names = source.split("Target { name: \"").skip(1).filter_map(|rest| rest.split('"').next());
        let names: Vec<&str> = names.collect();
        assert_eq!(names, TARGETS.map(|(name, _)| name));
    }
}
