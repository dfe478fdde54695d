//! Finds or installs the programs that commands need besides cargo; otherwise says what to install.

use std::{path::PathBuf, process::Command, time::Duration};

use crate::{
    Result,
    shell::{self, cache, cargo, installed},
};

const A_WHILE: Duration = Duration::from_secs(900);

/// The version of cargo-deny to install if it is missing. Pinned, so that a new release can't break an old commit.
const CARGO_DENY: &str = "0.20.2";

/// The version of cargo-hack, which checks combinations of features.
const CARGO_HACK: &str = "0.6.46";

/// The version of cargo-semver-checks, which compares public interfaces.
const CARGO_SEMVER_CHECKS: &str = "0.51.0";

/// The version of mdBook, which makes the site.
const MDBOOK: &str = "0.5.4";

/// The version of nfpm, which makes deb, rpm and apk.
const NFPM: &str = "v2.43.4";

/// What packaging needs from the Python index: a linker with the symbols of every glibc, cargo's way to it, and the maker of wheels.
const PACKAGERS: [&str; 3] = ["ziglang==0.16.0", "cargo-zigbuild==0.24.1", "wheel==0.45.1"];

/// Requires a program of a Debian package. As root on Debian it installs the package; otherwise it returns an error
/// that names it.
pub fn debian(program: &str, package: &str) -> Result<()> {
    if installed(program) {
        return Ok(());
    }
    let asked =
        format!("`{program}` is missing: install it (on Debian and Ubuntu: apt-get install {package})");
    if !shell::is_root() || !installed("apt-get") {
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

/// Returns a Python with the packagers that PyPI has, in the cache folder. They are pinned, because they shape the bytes of packages.
pub fn python() -> Result<PathBuf> {
    let folder = cache().join("packagers");
    let (python, stamp) = (folder.join("bin/python"), folder.join("installed.txt"));
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == PACKAGERS.join(" ")) {
        return Ok(python);
    }
    println!("installing {} into {}", PACKAGERS.join(", "), folder.display());
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&folder);
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGERS);
    for mut command in [make, install] {
        let done = shell::run(&mut command, A_WHILE, true)?;
        if !done.success {
            return Err(format!(
                "{}; packaging needs python3 with venv and pip, and the Python index",
                done.ending
            )
            .into());
        }
    }
    std::fs::write(stamp, PACKAGERS.join(" "))?;
    Ok(python)
}

/// Returns the folder of cargo-zigbuild and zig.
pub fn zig() -> Result<PathBuf> {
    Ok(python()?.parent().map(PathBuf::from).unwrap_or_default())
}

/// Returns the path of nfpm, and builds it in the cache folder if it is missing.
pub fn nfpm() -> Result<PathBuf> {
    let folder = cache().join("tools/bin");
    let program = folder.join(format!("nfpm-{NFPM}"));
    if program.is_file() {
        return Ok(program);
    }
    debian("go", "golang")?;
    println!("nfpm is missing: building {NFPM} into {}", folder.display());
    let mut install = Command::new("go");
    install.args(["install", &format!("github.com/goreleaser/nfpm/v2/cmd/nfpm@{NFPM}")]);
    let done = shell::run(install.env("GOBIN", &folder).current_dir("/"), A_WHILE, true)?;
    if !done.success {
        return Err(format!("{}; nfpm comes from the Go module proxy", done.ending).into());
    }
    std::fs::rename(folder.join("nfpm"), &program)?;
    Ok(program)
}

/// Requires Java and Maven, for Apache Kafka and its clients.
pub fn java() -> Result<()> {
    debian("java", "default-jdk-headless")?;
    debian("mvn", "maven")
}

/// Returns the path of cargo-deny, and builds it in the cache folder if it is missing.
pub fn cargo_deny() -> Result<PathBuf> {
    from_crates_io("cargo-deny", CARGO_DENY, &[])
}

/// Returns the path of cargo-hack, and builds it in the cache folder if it is missing.
pub fn cargo_hack() -> Result<PathBuf> {
    from_crates_io("cargo-hack", CARGO_HACK, &[])
}

/// Returns the path of cargo-semver-checks, and builds it in the cache folder if it is missing.
pub fn cargo_semver_checks() -> Result<PathBuf> {
    from_crates_io("cargo-semver-checks", CARGO_SEMVER_CHECKS, &[])
}

/// Returns the path of mdBook, and builds it in the cache folder if it is missing.
pub fn mdbook() -> Result<PathBuf> {
    from_crates_io("mdbook", MDBOOK, &["--no-default-features", "--features", "search"])
}

/// Returns the path of a program of crates.io, and builds it in the cache folder if it is missing. The build is not optimised: it
/// takes two minutes on two cores instead of ten, and the results are the same.
fn from_crates_io(name: &str, version: &str, features: &[&str]) -> Result<PathBuf> {
    if installed(name) {
        return Ok(name.into());
    }
    let folder = cache().join("tools");
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    println!("{name} is missing: building {version} into {}", folder.display());
    let mut install = cargo();
    install.args(["install", name, "--version", version, "--locked", "--debug", "--root"]).arg(&folder);
    install.args(features).arg("--target-dir").arg(folder.join("target")).current_dir("/");
    let done = shell::run(&mut install, A_WHILE, true)?;
    let _ = std::fs::remove_dir_all(folder.join("target"));
    if !done.success {
        return Err(format!("{}; install it by hand: cargo install {name} --locked", done.ending).into());
    }
    Ok(program)
}
