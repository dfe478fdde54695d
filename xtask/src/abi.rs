//! `cargo xtask abi`: is our C library librdkafka's?
//!
//! First the tests of the crate (exported symbols, layout, headers in C and C++, programs in C and kcat), then the scripts
//! in `tests/abi`, each on an installed tree and an embedded cluster.

use std::{path::PathBuf, process::ExitCode};

use crate::{
    Result, install,
    library::{self, Layout},
    shell::cargo,
    test::{Session, Step, target_folder},
};

const HELP: &str = "\
cargo xtask abi [--profile dev|release]

Symbols, layout, headers and programs of crates/capi/tests/abi.rs, then tests/abi/*.sh on an installed tree: our examples
built with pkg-config and cmake, the same programs with Debian's original, programs that were built against that, and the
test programs under AddressSanitizer and valgrind.
";

pub fn main(args: &[String]) -> Result<ExitCode> {
    let release = match args {
        [] => false,
        [flag, profile] if flag == "--profile" && profile == "dev" => false,
        [flag, profile] if flag == "--profile" && profile == "release" => true,
        _ => {
            print!("{HELP}");
            return Ok(if args == ["--help"] { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    };
    let crate_tests = Step { name: "crate", what: "crates/capi/tests/abi.rs", run: crate_tests };
    let run = if release { release_scripts } else { scripts };
    let scripts = Step { name: "scripts", what: "tests/abi/*.sh", run };
    Session::new().run(&[&crate_tests, &scripts])
}

fn crate_tests(session: &mut Session) -> Result<()> {
    install::debian("kcat", "kcat")?;
    let mut test = cargo();
    test.args(["test", "--package", "ottla-capi", "--test", "abi"]);
    session.tests(&mut test)
}

/// The scripts of `tests/abi`, on a tree that is installed under the target folder.
pub fn scripts(session: &mut Session) -> Result<()> {
    scripts_with(session, "dev")
}

fn release_scripts(session: &mut Session) -> Result<()> {
    scripts_with(session, "release")
}

fn scripts_with(session: &mut Session, profile: &str) -> Result<()> {
    for (program, package) in
        [("cc", "gcc"), ("c++", "g++"), ("pkg-config", "pkg-config"), ("cmake", "cmake")]
    {
        install::debian(program, package)?;
    }
    // Without it one script has nothing to do, and says so.
    if let Err(error) = install::debian("valgrind", "valgrind") {
        println!("    {error}");
    }
    let prefix = installed(profile)?;
    session.pass("the library is installed under a prefix");
    let ottla = library::ottla(profile)?;
    session.scripts("tests/abi", &[("OTTLA", ottla), ("OTTLA_PREFIX", prefix)])
}

/// Lays the library out under the target folder, and gives the prefix.
pub fn installed(profile: &str) -> Result<PathBuf> {
    let prefix = target_folder()?.join("installed").join(profile);
    library::install(&Layout::under(prefix.clone()), profile)?;
    Ok(prefix)
}
