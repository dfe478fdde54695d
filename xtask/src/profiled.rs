//! `cargo xtask install --profiled`: the C library, optimized with a profile of its own work.
//!
//! ```text
//!   instrumented library ──► the bench's C program, each job ──► profile ──► the library, compiled with it
//! ```
//!
//! The compiler learns which branches are taken and which functions to inline. Both builds take as long as an ordinary
//! one (docs/internals/where-the-time-goes.md has the times, and what is gained). `llvm-profdata` must understand the profiles of
//! rustc's LLVM, so it comes from the toolchain or is of the same version.
//!
//! A process writes its profile when it exits in the ordinary way. The bench's program ends by `_Exit`, so it is compiled with
//! `PEER_PROFILED`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Result,
    embedded::Embedded,
    library, peer,
    shell::{self, cargo},
    test::target_folder,
};

/// The profile in Cargo.toml of what is packaged: a release with line numbers, which are split off.
pub const PROFILE: &str = "packaged";

const A_WHILE: Duration = Duration::from_secs(300);

/// A part of the work that the profile shows.
struct Job {
    topic: &'static str,
    partitions: &'static str,
    messages: &'static str,
    arguments: &'static [&'static str],
}

/// The work that programs do most. The consumers read what the first job wrote.
#[rustfmt::skip]
const JOBS: &[Job] = &[
    Job { topic: "few", partitions: "2", messages: "2000000", arguments: &["produce", "--size", "100"] },
    Job { topic: "few", partitions: "2", messages: "500000", arguments: &["produce", "--size", "100", "--threads", "4"] },
    Job { topic: "few", partitions: "2", messages: "500000", arguments: &["produce", "--size", "100", "--mode", "batch"] },
    Job { topic: "few", partitions: "2", messages: "200000", arguments: &["produce", "--size", "1000"] },
    Job { topic: "few", partitions: "2", messages: "200000", arguments: &["produce", "--size", "100", "--codec", "lz4"] },
    Job { topic: "few", partitions: "2", messages: "200000", arguments: &["produce", "--size", "100", "--codec", "zstd"] },
    Job { topic: "many", partitions: "1000", messages: "2000000", arguments: &["produce", "--size", "100", "--spread", "round-robin"] },
    Job { topic: "few", partitions: "2", messages: "200000", arguments: &["produce", "--size", "100", "--mode", "transactions", "--transaction", "1000", "--acks", "all"] },
    Job { topic: "few", partitions: "2", messages: "20000", arguments: &["latency", "--size", "100", "--set", "linger.ms=0"] },
    Job { topic: "few", partitions: "2", messages: "2000000", arguments: &["consume", "--size", "100", "--mode", "poll"] },
    Job { topic: "few", partitions: "2", messages: "2000000", arguments: &["consume", "--size", "100", "--mode", "callback"] },
    Job { topic: "few", partitions: "2", messages: "2000000", arguments: &["consume", "--size", "100", "--mode", "batch"] },
    Job { topic: "few", partitions: "2", messages: "2000000", arguments: &["consume", "--size", "100", "--mode", "member-poll"] },
];

/// Builds the library, and returns the folder that it is in.
pub fn build() -> Result<PathBuf> {
    let compiler = Compiler::installed()?;
    let profdata = compiler.profdata()?;
    let folder = target_folder()?.join("profiled");
    let (raw, merged) = (folder.join("raw"), folder.join("merged"));
    // Profiles of an older build don't fit.
    let _ = fs::remove_dir_all(&raw);
    fs::create_dir_all(&raw)?;
    let instrumented = compiler.build(&folder.join("generate"), "-Cprofile-generate=", &raw)?;
    train(&folder, &instrumented, &raw)?;
    let mut merge = Command::new(profdata);
    shell::read(merge.arg("merge").arg("-o").arg(&merged).arg(&raw))?;
    compiler.build(&folder.join("use"), "-Cprofile-use=", &merged)
}

/// The compiler that cargo uses.
#[derive(Debug, PartialEq)]
struct Compiler {
    host: String,
    /// The major version of its LLVM.
    llvm: String,
    sysroot: PathBuf,
}

impl Compiler {
    fn installed() -> Result<Self> {
        let rustc = || Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let sysroot = shell::read(rustc().args(["--print", "sysroot"]))?;
        Self::of(&shell::read(rustc().arg("-vV"))?, Path::new(sysroot.trim()))
    }

    fn of(versions: &str, sysroot: &Path) -> Result<Self> {
        let value = |name: &str| {
            let value = versions.lines().find_map(|line| line.strip_prefix(name));
            value.ok_or_else(|| format!("`rustc -vV` has no line `{name}`"))
        };
        let llvm = value("LLVM version: ")?.split('.').next().unwrap_or_default().to_owned();
        Ok(Self { host: value("host: ")?.to_owned(), llvm, sysroot: sysroot.to_path_buf() })
    }

    /// Returns the program that merges profiles.
    fn profdata(&self) -> Result<PathBuf> {
        let (host, llvm) = (&self.host, &self.llvm);
        let of_toolchain = self.sysroot.join("lib/rustlib").join(host).join("bin/llvm-profdata");
        let of_system = PathBuf::from(format!("/usr/lib/llvm-{llvm}/bin/llvm-profdata"));
        let name = format!("llvm-profdata-{llvm}");
        if let Some(path) = [of_toolchain, of_system].into_iter().find(|path| path.is_file()) {
            Ok(path)
        } else if shell::installed(&name) {
            Ok(name.into())
        } else {
            Err(format!(
                "llvm-profdata of LLVM {llvm} is missing: install it with `rustup component add llvm-tools`, or a package such as llvm-{llvm}"
            )
            .into())
        }
    }

    /// Builds the library with a further flag, and returns the folder that it is in.
    fn build(&self, folder: &Path, flag: &str, path: &Path) -> Result<PathBuf> {
        let mut flags = given_flags();
        flags.push(format!("{flag}{}", path.display()));
        let mut build = cargo();
        build.args(["build", "--package", "ottla-capi", "--profile", PROFILE]);
        build.args(["--target", &self.host, "--target-dir"]);
        // With --target, build scripts and macros are compiled without the flag.
        build.arg(folder).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        let done = shell::run(&mut build, Duration::from_secs(60 * 60), true)?;
        if !done.success {
            return Err(format!("the library can't be built with {flag} ({})", done.ending).into());
        }
        Ok(folder.join(&self.host).join(PROFILE))
    }
}

/// Returns the flags for rustc that the environment sets.
fn given_flags() -> Vec<String> {
    if let Ok(flags) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        return flags.split('\x1f').filter(|flag| !flag.is_empty()).map(str::to_owned).collect();
    }
    env::var("RUSTFLAGS").unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Runs every job with the instrumented library; each writes a profile into `raw`.
fn train(folder: &Path, instrumented: &Path, raw: &Path) -> Result<()> {
    let ottla = library::ottla(PROFILE)?;
    let libraries = folder.join("lib");
    fs::create_dir_all(&libraries)?;
    fs::copy(instrumented.join("librdkafka.so"), libraries.join("librdkafka.so.1"))?;
    let program = folder.join("peer");
    peer::compile(&program, &libraries, &["-DPEER_PROFILED"])?;
    let payloads = folder.join("payloads");
    fs::write(&payloads, (0..100_000).map(text).collect::<Vec<_>>())?;
    let brokers = Embedded::start(&ottla, folder, &["--topic", "few:2", "--topic", "many:1000"])?;
    for job in JOBS {
        println!("    profile of {} messages: {}", job.messages, job.arguments.join(" "));
        let mut command = Command::new(&program);
        command.args(job.arguments).arg("--payloads").arg(&payloads);
        command.args([
            "--bootstrap",
            &brokers.bootstrap,
            "--topic",
            job.topic,
            "--partitions",
            job.partitions,
        ]);
        command.args(["--messages", job.messages, "--codec", "none", "--acks", "1"]);
        command.env("LD_LIBRARY_PATH", &libraries).env("LLVM_PROFILE_FILE", raw.join("%p.profraw"));
        let done = shell::run(&mut command, A_WHILE, false)?;
        if !done.success {
            return Err(format!("{}: {}\n{}", job.arguments.join(" "), done.ending, done.output).into());
        }
    }
    Ok(())
}

/// Returns a byte of a text that codecs can hardly compress.
fn text(at: u32) -> u8 {
    // The six highest bits of a multiplicative hash.
    (at.wrapping_mul(0x9E37_79B1) >> 26) as u8 + b' '
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: &str =
        "rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\nLLVM version: 22.1.2\n";

    #[test]
    fn missing_profdata_is_named_with_its_version() {
        let compiler =
            Compiler { llvm: "0".into(), ..Compiler::of(VERSIONS, Path::new("/nowhere")).unwrap() };
        let error = compiler.profdata().unwrap_err().to_string();
        assert!(error.contains("llvm-profdata of LLVM 0 is missing"), "{error}");
    }

    #[test]
    fn compiler_is_read_from_its_versions() {
        let compiler = Compiler::of(VERSIONS, Path::new("/toolchain")).unwrap();
        assert_eq!((compiler.host.as_str(), compiler.llvm.as_str()), ("x86_64-unknown-linux-gnu", "22"));
        assert!(
            Compiler::of("rustc 1.95.0\n", Path::new("/"))
                .unwrap_err()
                .to_string()
                .contains("no line `LLVM version: `")
        );
    }
}
