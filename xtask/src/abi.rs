//! `cargo xtask abi`: tests that the C library is compatible with librdkafka.
//!
//! First the tests of the crate (exported symbols, layout, headers in C and C++, programs in C and kcat), then the scripts
//! in `tests/abi`, each on an installed tree and an embedded cluster.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use crate::{
    Result, generate, install,
    library::{self, Build, Layout},
    profiled,
    shell::cargo,
    side_by_side,
    test::{self, Session, Step, target_folder},
};

const HELP: &str = "\
cargo xtask abi [--profile dev|packaged]
cargo xtask abi --side-by-side [OPTIONS]     the same programs with librdkafka 2.16.0 (--help says more)
cargo xtask abi --generate [OPTIONS]         programs made from seeds with librdkafka 2.16.0 (--help says more)

Symbols, layout, headers and programs of crates/capi/tests/abi.rs, then tests/abi/*.sh on an installed tree: our examples
built with pkg-config and cmake, the same programs with Debian's original, programs that were built against that, and the
test programs under AddressSanitizer and valgrind.
";

pub fn main(args: &[String]) -> Result<ExitCode> {
    if let [first, rest @ ..] = args
        && first == "--side-by-side"
    {
        return side_by_side::main(rest);
    }
    if let [first, rest @ ..] = args
        && first == "--generate"
    {
        return generate::main(rest);
    }
    let packaged = match args {
        [] => false,
        [flag, profile] if flag == "--profile" && profile == "dev" => false,
        [flag, profile] if flag == "--profile" && profile == profiled::PROFILE => true,
        _ => {
            print!("{HELP}");
            return Ok(if args == ["--help"] { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    };
    let run: [fn(&Session) -> Result<()>; 2] = match packaged {
        true => [
            |session| scripts_with(session, profiled::PROFILE),
            |session| memory_with(session, profiled::PROFILE),
        ],
        false => [scripts, |session| memory_with(session, "dev")],
    };
    let step = |name, what, run| Step { name, what, after: &[], is_quick: true, run };
    let crate_tests = step("crate", "crates/capi/tests/abi.rs", crate_tests);
    let scripts = step("scripts", "tests/abi/*.sh and side_by_side", run[0]);
    let memory = step("memory", "tests/abi/memory/*.sh", run[1]);
    test::run_steps(&[&crate_tests, &scripts, &memory])
}

fn crate_tests(session: &Session) -> Result<()> {
    install::debian("kcat", "kcat")?;
    let mut test = cargo();
    test.args(["test", "--package", "ottla-capi", "--test", "abi"]);
    session.tests("abi", &mut test)
}

/// Runs the scripts of `tests/abi` on a tree that is installed under the target folder.
pub fn scripts(session: &Session) -> Result<()> {
    scripts_with(session, "dev")
}

/// Runs the programs in C under valgrind and with AddressSanitizer, with the library as released: unoptimized code takes valgrind
/// three times as long.
pub fn memory(session: &Session) -> Result<()> {
    memory_with(session, "release")
}

fn memory_with(session: &Session, profile: &str) -> Result<()> {
    // Without it one script is not checked.
    if let Err(error) = install::debian("valgrind", "valgrind") {
        println!("    {error}");
    }
    let (prefix, ottla) = (installed(profile)?, library::ottla(profile)?);
    session.scripts("tests/abi/memory", &[("OTTLA", ottla), ("OTTLA_PREFIX", prefix)])
}

fn scripts_with(session: &Session, profile: &str) -> Result<()> {
    for (program, package) in
        [("cc", "gcc"), ("c++", "g++"), ("pkg-config", "pkg-config"), ("cmake", "cmake")]
    {
        install::debian(program, package)?;
    }
    // In `cargo xtask test` the step `build` has compiled both.
    let prefix = installed(profile)?;
    session.pass("the library is installed under a prefix");
    let ottla = library::ottla(profile)?;
    session.scripts("tests/abi", &[("OTTLA", ottla), ("OTTLA_PREFIX", prefix)])?;
    side_by_side::step(session)
}

/// Installs the library under the target folder and returns the prefix. It does so once per run: programs of other steps may be
/// using it.
pub fn installed(profile: &str) -> Result<PathBuf> {
    static INSTALLED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let prefix = target_folder()?.join("installed").join(profile);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed.contains(profile) {
        library::install(&Layout::under(prefix.clone()), &Build::Plain(profile.to_owned()))?;
        installed.insert(profile.to_owned());
    }
    Ok(prefix)
}
