//! Finds or installs the programs that commands need besides cargo; otherwise says what to install.

use std::{path::PathBuf, process::Command, time::Duration};

use crate::{
    Result,
    shell::{self, cache, cargo, installed},
};

const A_WHILE: Duration = Duration::from_secs(900);

/// The version of cargo-deny to install if it is missing. Pinned, so that a new release can't break an old commit.
const CARGO_DENY: &str = "0.20.2";

/// Requires a program of a Debian package. As root on Debian it installs the package; otherwise it returns an error
/// that names it.
pub fn debian(program: &str, package: &str) -> Result<()> {
    if installed(program) {
        return Ok(());
    }
    let asked =
        format!("`{program}` is missing: install it (on Debian and Ubuntu: apt-get install {package})");
    let root = shell::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || !installed("apt-get") {
        return Err(asked.into());
    }
    println!("`{program}` is missing: installing the Debian package {package}");
    for arguments in [vec!["-q", "update"], vec!["-qy", "install", "--no-install-recommends", package]] {
        let mut apt = Command::new("apt-get");
        let done = shell::run(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"), A_WHILE, false)?;
        if !done.success {
            return Err(format!("{}\n{asked}; {}", done.output, done.ending).into());
        }
    }
    if installed(program) { Ok(()) } else { Err(asked.into()) }
}

/// Requires Java and Maven, for Apache Kafka and its clients.
pub fn java() -> Result<()> {
    debian("java", "default-jdk-headless")?;
    debian("mvn", "maven")
}

/// Returns the path of cargo-deny, and builds it in the cache folder if it is missing. The build is not optimised: it
/// takes two minutes on two cores instead of ten, and the checks are the same.
pub fn cargo_deny() -> Result<PathBuf> {
    if installed("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let folder = cache().join("tools");
    let program = folder.join("bin/cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    println!("cargo-deny is missing: building {CARGO_DENY} into {}", folder.display());
    let mut install = cargo();
    install
        .args(["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--debug", "--root"])
        .arg(&folder);
    install.arg("--target-dir").arg(folder.join("target")).current_dir("/");
    let done = shell::run(&mut install, A_WHILE, true)?;
    let _ = std::fs::remove_dir_all(folder.join("target"));
    if !done.success {
        return Err(format!("{}; install it by hand: cargo install cargo-deny --locked", done.ending).into());
    }
    Ok(program)
}
