//! `cargo xtask package --check-platforms`: type-checks the crates for Windows and macOS.
//!
//! C sources of dependencies are compiled, too, so that a platform needs a C compiler: Debian's mingw for Windows, zig with the headers
//! of macOS. For macOS nothing is linked: that needs Apple's frameworks. For Windows, program and library run under wine ([`windows`]).

use std::{process::Command, time::Duration};

use super::windows;
use crate::{
    Result, install,
    shell::{self, cargo, root},
};

/// A platform for which the crates are checked.
struct Row {
    triple: &'static str,
    /// The C compiler that the machine must have, and its Debian package; zig otherwise.
    compiler: Option<(&'static str, &'static str)>,
}

/// All that users install.
const CRATES: [&str; 5] = ["ottla", "ottla-embedded-broker", "ottla-sim", "ottla-capi", "ottla-cli"];

const ROWS: [Row; 3] = [
    Row {
        triple: "x86_64-pc-windows-gnu",
        compiler: Some(("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")),
    },
    Row { triple: "aarch64-apple-darwin", compiler: None },
    Row { triple: "x86_64-apple-darwin", compiler: None },
];

/// Checks all platforms. Returns whether every check could be made and passed.
pub fn check() -> Result<bool> {
    let mut holds = true;
    for row in &ROWS {
        let crates = CRATES.join(", ");
        match row.run() {
            Ok(()) => println!("checked for {}: {crates}", row.triple),
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
                check.arg("build");
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
        check.args(CRATES.iter().flat_map(|name| ["--package", name]));
        let done = shell::run(&mut check, Duration::from_secs(3600), true)?;
        // What zig leaves in the folder of a build script that asks which compiler it is.
        for folder in ["capi", "rdkafka-performance"] {
            let _ = std::fs::remove_file(root().join("crates").join(folder).join("a.o"));
        }
        if !done.success {
            return Err(format!("the compiler refuses them ({})", done.ending).into());
        }
        if self.triple.contains("windows") {
            let target = root().join("target/platforms");
            let lines = windows::run(&target.join(self.triple).join("debug"), &target.join("wine"))?;
            lines.iter().for_each(|line| println!("{}: {line}", self.triple));
        }
        Ok(())
    }
}
