//! The program and the library for Windows, built with Debian's mingw and run under wine.
//!
//! rustc names the import library `librdkafka.dll.a`, which linkers of GNU and LLVM take; for Microsoft's there is a list of the names
//! (`lib /def:rdkafka.def /machine:x64`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{Workshop, archive, builds::WINDOWS, checks::Outcome, trees};
use crate::{
    Result,
    embedded::Embedded,
    install,
    shell::{self, installed, root},
};

/// The C compiler, with threads of POSIX for the test programs.
const COMPILER: &str = "x86_64-w64-mingw32-gcc-posix";

/// A library of Windows that Rust's standard library needs for random numbers, and wine lacks before version 8.8.
const BCRYPT_PRIMITIVES: &str = "\
#include <stddef.h>
unsigned char __stdcall SystemFunction036(void *buffer, unsigned long length);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, size_t length) {
        return SystemFunction036(buffer, (unsigned long)length);
}
";

/// What the test programs of the C library that are not run use of Linux, and Windows has not.
const LINUX_ONLY: [(&str, &str); 13] = [
    ("damaged", "arpa/inet.h"),
    ("fork", "sys/wait.h"),
    ("groups", "arpa/inet.h"),
    ("interceptors", "unsetenv"),
    ("life", "arpa/inet.h"),
    ("mock_share_groups", "arpa/inet.h"),
    ("offset_file", "sys/wait.h"),
    ("robust", "sys/wait.h"),
    ("sigpipe", "arpa/inet.h"),
    ("sockets", "netdb.h"),
    ("stuck", "netdb.h"),
    ("telemetry", "arpa/inet.h"),
    ("transactional_producer", "rand_r"),
];

/// Packs `ottla.exe`, `rdkafka.dll`, its import library and the headers.
pub fn make(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    let built = WINDOWS.build(workshop)?;
    let name = format!("ottla-{}-{}", workshop.version, WINDOWS.name);
    let folder = workshop.empty(&name)?;
    let at = |path: &str| folder.join(&name).join(path);
    for (from, to) in [("ottla.exe", "bin/ottla.exe"), ("rdkafka.dll", "bin/rdkafka.dll")] {
        trees::copy_program(&built.join(from), &at(to))?;
        shell::read(WINDOWS.tool("strip").arg(at(to)))?;
    }
    trees::copy_program(&built.join("librdkafka.dll.a"), &at("lib/librdkafka.dll.a"))?;
    let names = functions()?;
    trees::write(
        &at("lib/rdkafka.def"),
        &format!("LIBRARY rdkafka\r\nEXPORTS\r\n{}\r\n", names.join("\r\n")),
    )?;
    for header in ["rdkafka.h", "rdkafka_mock.h", "rdkafka_ottla.h"] {
        let text = fs::read_to_string(root().join("crates/capi/include/librdkafka").join(header))?;
        trees::write(&at("include/librdkafka").join(header), &text)?;
    }
    trees::licences(&at("share/doc/ottla"))?;
    Ok(vec![archive::pack(workshop, &folder, &name)?])
}

fn functions() -> Result<Vec<String>> {
    let table = fs::read_to_string(root().join("crates/capi/abi/functions.txt"))?;
    Ok(super::checks::functions(&table).into_iter().collect())
}

/// Runs what was packed under wine.
pub fn check(workshop: &Workshop) -> Result<Outcome> {
    let name = format!("ottla-{}-{}", workshop.version, WINDOWS.name);
    let folder = super::checks::unpacked(workshop, &format!("{name}.tar.gz"))?.join(&name);
    let scratch = workshop.empty("check-windows")?;
    for file in ["bin/ottla.exe", "bin/rdkafka.dll", "lib/librdkafka.dll.a"] {
        let from = folder.join(file);
        fs::copy(&from, scratch.join(from.file_name().unwrap_or_default()))?;
    }
    match run(&scratch, &workshop.folder.join("wine")) {
        Ok(lines) => Ok(Outcome::Checked(lines)),
        Err(error) if wine().is_none() => Ok(Outcome::NotChecked(error.to_string())),
        Err(error) => Err(error),
    }
}

fn wine() -> Option<&'static str> {
    ["wine64", "wine"].into_iter().find(|name| installed(name))
}

/// Runs `ottla.exe` of a folder on brokers of its own, checks the names of its `rdkafka.dll`, and runs the test programs of the C library
/// with it. `prefix` is wine's folder.
pub fn run(folder: &Path, prefix: &Path) -> Result<Vec<String>> {
    let wine = wine().ok_or("wine is not installed (Debian: wine, wine64)")?;
    install::debian(COMPILER, "gcc-mingw-w64-x86-64")?;
    add_bcrypt_primitives(folder)?;
    let run = |program: &Path, arguments: &[&str]| -> Result<()> {
        let mut command = Command::new(wine);
        command.arg(program).args(arguments).env("WINEDEBUG", "-all").env("WINEPREFIX", prefix);
        let done = shell::run(command.current_dir(folder), Duration::from_secs(300), false)?;
        let end = &done.output[done.output.len().saturating_sub(2000)..];
        if done.success {
            Ok(())
        } else {
            Err(format!("{}: {}\n{end}", program.display(), done.ending).into())
        }
    };
    let job = ["producer-perf-test", "--topic", "demo", "--num-records", "100000", "--record-size", "100"];
    run(&folder.join("ottla.exe"), &[&job[..], &["--throughput", "-1"]].concat())?;
    let mut held =
        vec!["ottla.exe produces and consumes 100,000 records on its own brokers under wine".to_owned()];
    let exported = exported(&folder.join("rdkafka.dll"))?;
    if exported != functions()? {
        return Err(format!("rdkafka.dll exports {} names", exported.len()).into());
    }
    held.push(format!("rdkafka.dll exports {} functions, and no other name", exported.len()));

    let mut program = Command::new(wine);
    program.arg(folder.join("ottla.exe")).env("WINEDEBUG", "-all").env("WINEPREFIX", prefix);
    let broker = Embedded::with(program, folder, &["--partitions", "4", "--super-user", "ANONYMOUS"])?;
    let (mut passed, mut failed) = (0, Vec::new());
    for source in trees::files(&root().join("crates/capi/tests/c"))? {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_program = source.extension().is_some_and(|it| it == "c");
        if !is_program || LINUX_ONLY.iter().any(|(other, _)| *other == name) {
            continue;
        }
        // One of them is called ottla, too.
        let program = folder.join(format!("c-{name}.exe"));
        compile(&source, folder, &program)?;
        match run(&program, &[&broker.bootstrap]) {
            Ok(()) => passed += 1,
            Err(error) => failed.push(error.to_string()),
        }
    }
    if !failed.is_empty() {
        return Err(
            format!("{passed} test programs pass, {} fail:\n{}", failed.len(), failed.join("\n")).into()
        );
    }
    let left_out = LINUX_ONLY.map(|(name, _)| name).join(", ");
    held.push(format!("{passed} test programs in C pass under wine; {left_out} are programs for POSIX"));
    Ok(held)
}

/// Puts the library that wine may lack beside the program.
fn add_bcrypt_primitives(folder: &Path) -> Result<()> {
    let source = folder.join("bcryptprimitives.c");
    trees::write(&source, BCRYPT_PRIMITIVES)?;
    let mut compile = Command::new(COMPILER);
    compile.args(["-shared", "-o"]).arg(folder.join("bcryptprimitives.dll")).arg(&source).arg("-ladvapi32");
    shell::read(&mut compile)?;
    Ok(())
}

fn compile(source: &Path, folder: &Path, program: &Path) -> Result<()> {
    let mut compile = Command::new(COMPILER);
    compile.args(["-std=gnu90", "-g", "-o"]).arg(program).arg(source).arg("-I");
    compile.arg(root().join("crates/capi/include")).arg("-L").arg(folder);
    shell::read(compile.args(["-l:librdkafka.dll.a", "-static", "-lpthread"]))?;
    Ok(())
}

/// Returns the names that a library for Windows exports, in their order.
fn exported(library: &Path) -> Result<Vec<String>> {
    let text = shell::read(WINDOWS.tool("objdump").arg("-p").arg(library))?;
    Ok(names(&text))
}

/// Returns the names of the table of exports that objdump prints.
fn names(text: &str) -> Vec<String> {
    let table = text.split_once("[Ordinal/Name Pointer] Table").map_or("", |(_, table)| table);
    let rows = table.lines().skip(1).take_while(|line| line.trim_start().starts_with('['));
    let mut names: Vec<String> =
        rows.filter_map(|row| row.split_whitespace().last()).map(str::to_owned).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_names_stand_behind_their_numbers() {
        let text = "x\n[Ordinal/Name Pointer] Table -- Ordinal Base 1\n\t[   1] +base[   2] 0001 rd_b\n\t[   0] +base[   1] 0000 rd_a\n\nThe Function Table";
        assert_eq!(names(text), ["rd_a", "rd_b"]);
    }

    #[test]
    fn programs_that_are_left_out_are_there() {
        for (name, header) in LINUX_ONLY {
            let folder = root().join("crates/capi/tests/c");
            let text = fs::read_to_string(folder.join(name).with_extension("c")).unwrap();
            let wire = fs::read_to_string(folder.join("wire.h")).unwrap();
            let text = if text.contains("wire.h") { text + &wire } else { text };
            assert!(text.contains(header), "{name}");
        }
    }
}
