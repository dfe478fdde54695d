//! `cargo xtask package --check-platforms`: type-checks the crates for Windows and macOS.
//!
//! C sources of dependencies are compiled, too, so that a platform needs a C compiler: Debian's mingw for Windows, zig with the headers
//! of macOS. Nothing is linked: that needs Apple's frameworks.

use std::{process::Command, time::Duration};

use crate::{
    Result, install,
    shell::{self, cargo, installed, root},
};

/// A platform, and the crates that are checked for it.
struct Row {
    triple: &'static str,
    /// The C compiler that the machine must have, and its Debian package; zig otherwise.
    compiler: Option<(&'static str, &'static str)>,
    packages: &'static [&'static str],
    /// Why the other crates are not checked.
    others: &'static str,
}

const RUST_AND_PROGRAM: &[&str] = &["ottla", "ottla-embedded-broker", "ottla-sim", "ottla-cli"];

const ROWS: [Row; 3] = [
    Row {
        triple: "x86_64-pc-windows-gnu",
        compiler: Some(("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")),
        packages: RUST_AND_PROGRAM,
        others: "the C library uses descriptors and signals of POSIX",
    },
    Row {
        triple: "aarch64-apple-darwin",
        compiler: None,
        packages: &["ottla", "ottla-embedded-broker", "ottla-sim", "ottla-capi", "ottla-cli"],
        others: "all that users install is checked",
    },
    Row {
        triple: "x86_64-apple-darwin",
        compiler: None,
        packages: &["ottla", "ottla-embedded-broker", "ottla-sim", "ottla-capi", "ottla-cli"],
        others: "all that users install is checked",
    },
];

/// Checks all platforms. Returns whether every check could be made and passed.
pub fn check() -> Result<bool> {
    let mut holds = true;
    for row in &ROWS {
        let crates = row.packages.join(", ");
        match row.run() {
            Ok(()) => println!("checked for {}: {crates}; {}", row.triple, row.others),
            Err(error) => {
                holds = false;
                println!("NOT CHECKED: {crates} for {}, because {error}", row.triple);
            }
        }
    }
    Ok(holds)
}

impl Row {
    fn run(&self) -> Result<()> {
        super::builds::standard_library(self.triple)?;
        let mut check = match self.compiler {
            Some((program, package)) => {
                install::debian(program, package)?;
                let mut check = cargo();
                check.arg("check");
                check
            }
            None => {
                let folder = install::zig()?;
                let mut check = Command::new(folder.join("cargo-zigbuild"));
                check.arg("check").current_dir(root());
                let path = std::env::var("PATH").unwrap_or_default();
                check.env("PATH", format!("{}:{path}", folder.display()));
                check
            }
        };
        check
            .args(["--quiet", "--target", self.triple])
            .env("CARGO_TARGET_DIR", root().join("target/platforms"));
        check.args(self.packages.iter().flat_map(|name| ["--package", name]));
        let done = shell::run(&mut check, Duration::from_secs(3600), true)?;
        // What zig leaves in the folder of a build script that asks which compiler it is.
        for folder in ["capi", "rdkafka-performance"] {
            let _ = std::fs::remove_file(root().join("crates").join(folder).join("a.o"));
        }
        if !done.success {
            return Err(format!("the compiler refuses them ({})", done.ending).into());
        }
        if self.triple.contains("windows") { self.run_program() } else { Ok(()) }
    }

    /// Builds the program, and has it produce and consume on its own brokers under wine, if the machine has it.
    fn run_program(&self) -> Result<()> {
        let wine = ["wine64", "wine"].into_iter().find(|name| installed(name));
        let Some(wine) = wine else {
            println!("NOT CHECKED: ottla.exe, because wine is not installed (Debian: wine, wine64)");
            return Ok(());
        };
        let target = root().join("target/platforms");
        let mut build = cargo();
        build.args(["build", "--quiet", "--target", self.triple, "--package", "ottla-cli"]);
        let done = shell::run(build.env("CARGO_TARGET_DIR", &target), Duration::from_secs(3600), true)?;
        if !done.success {
            return Err(format!("ottla.exe can't be built ({})", done.ending).into());
        }
        let mut run = Command::new(wine);
        run.arg(target.join(self.triple).join("debug/ottla.exe")).env("WINEDEBUG", "-all");
        run.env("WINEPREFIX", target.join("wine"));
        run.args([
            "producer-perf-test",
            "--topic",
            "demo",
            "--num-records",
            "100000",
            "--record-size",
            "100",
        ]);
        run.args(["--throughput", "-1"]);
        let done = shell::run(&mut run, Duration::from_secs(300), true)?;
        if done.success { Ok(()) } else { Err(format!("ottla.exe under wine: {}", done.ending).into()) }
    }
}
