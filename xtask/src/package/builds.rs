//! The programs and libraries of a platform, built with zig as linker: it has the symbols of every glibc, so that a program built
//! here starts on older systems.
//!
//! C sources for the machine's own architecture are compiled by its C compiler: of glibc they only need what every version has, and
//! [`Platform::glibc`] is checked in what was linked.

use std::{path::PathBuf, process::Command, time::Duration};

use super::Workshop;
use crate::{
    Result, install, profiled,
    shell::{self, cargo, root},
};

/// An operating system and processor.
pub struct Platform {
    /// The name in file names.
    pub name: &'static str,
    /// The target of rustc.
    pub triple: &'static str,
    /// The oldest glibc that the files may need.
    pub glibc: Option<&'static str>,
    /// The names of the C compiler and of binutils begin with this.
    pub tools: &'static str,
    /// The compiler of C and C++, and its Debian package.
    pub compiler: (&'static str, &'static str),
    /// What cargo builds.
    packages: &'static [&'static str],
}

const LIBRARY_AND_PROGRAM: &[&str] = &["ottla-capi", "ottla-cli"];

pub const X86_64: Platform = Platform {
    name: "x86_64-linux-gnu",
    triple: "x86_64-unknown-linux-gnu",
    glibc: Some("2.28"),
    tools: "",
    compiler: ("g++", "g++"),
    packages: LIBRARY_AND_PROGRAM,
};

pub const AARCH64: Platform = Platform {
    name: "aarch64-linux-gnu",
    triple: "aarch64-unknown-linux-gnu",
    glibc: Some("2.28"),
    tools: "aarch64-linux-gnu-",
    compiler: ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
    packages: LIBRARY_AND_PROGRAM,
};

/// The program without any library.
pub const ALONE: Platform = Platform {
    name: "x86_64-linux-musl",
    triple: "x86_64-unknown-linux-musl",
    glibc: None,
    tools: "",
    compiler: ("musl-gcc", "musl-tools"),
    packages: &["ottla-cli"],
};

/// Windows, by the compiler of mingw.
pub const WINDOWS: Platform = Platform {
    name: "x86_64-windows",
    triple: "x86_64-pc-windows-gnu",
    glibc: None,
    tools: "x86_64-w64-mingw32-",
    compiler: ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
    packages: LIBRARY_AND_PROGRAM,
};

impl Platform {
    /// Builds the library and the program, and returns the folder that they are in.
    pub fn build(&self, workshop: &Workshop) -> Result<PathBuf> {
        install::debian(self.compiler.0, self.compiler.1)?;
        standard_library(self.triple)?;
        let target = workshop.folder.join("build");
        let triple =
            format!("{}{}", self.triple, self.glibc.map_or(String::new(), |glibc| format!(".{glibc}")));
        let mut build = cargo();
        // musl is linked into the program; only symbols of glibc need zig.
        build.arg(if self.glibc.is_some() { "zigbuild" } else { "build" });
        build.args(["--profile", profiled::PROFILE, "--target", &triple]);
        build.args(self.packages.iter().flat_map(|package| ["--package", package]));
        if self.glibc.is_some() {
            let path = std::env::var("PATH").unwrap_or_default();
            build.env("PATH", format!("{}:{path}", install::zig()?.display()));
        }
        build.env("CARGO_TARGET_DIR", &target);
        let home = std::env::var("CARGO_HOME")
            .unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap_or_default()));
        let (here, sources) = (format!("{}=/ottla", root().display()), format!("{home}=/cargo"));
        let mut flags = format!("--remap-path-prefix={here} --remap-path-prefix={sources}");
        if self.triple.contains("windows") {
            flags.push_str(" -Clink-arg=-Wl,--no-insert-timestamp");
        }
        build.env("RUSTFLAGS", flags);
        let variable = self.triple.replace('-', "_");
        build.env(
            format!("CFLAGS_{variable}"),
            format!("-ffile-prefix-map={here} -ffile-prefix-map={sources}"),
        );
        if self.glibc.is_some() {
            build.env(format!("CC_{variable}"), format!("{}gcc", self.tools));
            build.env(format!("AR_{variable}"), format!("{}ar", self.tools));
        }
        build.env("CARGO_INCREMENTAL", "0").env("SOURCE_DATE_EPOCH", workshop.epoch.to_string());
        let done = shell::run(&mut build, Duration::from_secs(2 * 3600), true)?;
        if !done.success {
            return Err(format!("{} can't be built ({})", self.name, done.ending).into());
        }
        Ok(target.join(self.triple).join(profiled::PROFILE))
    }

    /// Returns a command of the C tool chain for this platform.
    pub fn tool(&self, name: &str) -> Command {
        Command::new(format!("{}{name}", self.tools))
    }
}

/// Requires the standard library of Rust for a target.
pub fn standard_library(triple: &str) -> Result<()> {
    let asked =
        || format!("the standard library of Rust for {triple} is missing: rustup target add {triple}");
    let mut rustup = Command::new("rustup");
    let installed = shell::read(rustup.args(["target", "list", "--installed"])).map_err(|_| asked())?;
    if installed.lines().any(|line| line == triple) {
        return Ok(());
    }
    let mut add = Command::new("rustup");
    let done = shell::run(add.args(["target", "add", triple]), Duration::from_secs(600), true)?;
    if done.success { Ok(()) } else { Err(asked().into()) }
}

/// Returns the newest glibc that a file needs, from its versioned symbols.
pub fn needed_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split(|it: char| !it.is_ascii_digit() && it != '.').next()?;
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_glibc_is_found_by_number() {
        let symbols = "00 DF *UND* 00 (GLIBC_2.2.5) memcpy\n00 DF *UND* 00 (GLIBC_2.28) fcntl64\n(GLIBC_2.9) pipe2\n(GLIBC_PRIVATE) x";
        assert_eq!(needed_glibc(symbols), Some((2, 28)));
        assert_eq!(needed_glibc("nothing"), None);
    }
}
